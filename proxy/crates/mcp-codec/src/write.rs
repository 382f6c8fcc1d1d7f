//! Our own serialisation: compact, minimal escapes, numbers byte for byte.

use bytes::Bytes;

use crate::document::{Document, Tag};
use crate::scan::plain_end;

/// Appends `text` as a JSON string with its quotes.
///
/// The output has no raw control character, so it is fit for a line and for an event.
///
/// ```
/// let mut out = Vec::new();
/// mcp_codec::push_string(&mut out, "a/b\n\u{1}\"é");
/// assert_eq!(out, r#""a/b\n\u0001\"é""#.as_bytes());
/// ```
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    push_escaped(out, text);
    out.push(b'"');
}

/// The same without the quotes: the next piece of a string that is written piece by piece.
pub fn push_escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut run = 0;
    loop {
        let at = plain_end(bytes, run);
        out.extend_from_slice(&bytes[run..at]);
        let Some(&byte) = bytes.get(at) else { break };
        push_escape(out, byte);
        run = at + 1;
    }
}

fn push_escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Writes the whole tape without white space.
pub(crate) fn compact(doc: &Document) -> Bytes {
    let mut out = Vec::with_capacity(doc.text.len());
    // What is open: one past its last token, and its closing byte. As deep as the document at most.
    let mut open: Vec<(u32, u8)> = Vec::new();
    for (index, token) in doc.tape.iter().enumerate() {
        let index = index as u32;
        close_until(&mut out, &mut open, index);
        let tag = token.tag();
        let in_list = tag == Tag::Key || doc.tag(token.parent) == Tag::Array;
        if in_list && index > token.parent + 1 {
            out.push(b',');
        }
        match tag {
            Tag::Object => {
                out.push(b'{');
                open.push((token.link, b'}'));
            }
            Tag::Array => {
                out.push(b'[');
                open.push((token.link, b']'));
            }
            Tag::Key | Tag::String if token.needs_rewrite() => {
                push_string(&mut out, doc.text_of(index))
            }
            _ => out.extend_from_slice(&doc.text.as_bytes()[token.span()]),
        }
        if tag == Tag::Key {
            out.push(b':');
        }
    }
    close_until(&mut out, &mut open, doc.tape.len() as u32);
    out.into()
}

fn close_until(out: &mut Vec<u8>, open: &mut Vec<(u32, u8)>, index: u32) {
    while let Some(&(end, byte)) = open.last() {
        if end > index {
            return;
        }
        out.push(byte);
        open.pop();
    }
}
