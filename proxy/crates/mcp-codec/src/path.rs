//! Where a leaf is, for people: `$.params.arguments.items[3].name`.

use std::fmt::{self, Write};

use crate::document::{Document, Tag};
use crate::leaf::LeafId;

/// Longest path that is displayed, in characters; a longer one loses its middle.
pub const PATH_CHARS_MAX: usize = 256;

/// Longest key that is displayed within a path; a longer one loses its end.
const KEY_CHARS_MAX: usize = 64;

/// What stays of the end of a path that is too long: the place itself is there.
const TAIL_CHARS: usize = 96;

/// The path of a leaf; displays as text.
///
/// Keys that are identifiers are shown as `.name`, all others as `["..."]` with every character escaped that does not
/// print. A key leaf is shown as its object's path and `{key}`.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    doc: &'a Document,
    leaf: LeafId,
    masked: &'a [LeafId],
}

impl<'a> Path<'a> {
    pub(crate) fn new(doc: &'a Document, leaf: LeafId, masked: &'a [LeafId]) -> Self {
        Path { doc, leaf, masked }
    }

    /// What leads to the leaf, outermost first: keys and elements. At most as many as the document is deep.
    fn steps(&self) -> Vec<u32> {
        let mut steps = Vec::new();
        let mut at = self.leaf.0;
        while let Some(token) = self.doc.token(at).filter(|token| token.parent != at) {
            let is_leaf_key = at == self.leaf.0 && token.tag() == Tag::Key;
            if !is_leaf_key && (token.tag() == Tag::Key || self.doc.tag(token.parent) == Tag::Array)
            {
                steps.push(at);
            }
            at = token.parent;
        }
        steps.reverse();
        steps
    }

    fn push_step(&self, out: &mut String, step: u32) {
        match self.doc.token(step) {
            Some(token) if token.tag() != Tag::Key => {
                // Writing to a String cannot fail.
                let _ = write!(out, "[{}]", token.ordinal());
            }
            _ if self.masked.contains(&LeafId(step)) => out.push_str(".{masked}"),
            _ => push_path_key(out, self.doc.text_of(step)),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::from("$");
        for step in self.steps() {
            self.push_step(&mut text, step);
        }
        if self.doc.tag(self.leaf.0) == Tag::Key {
            text.push_str("{key}");
        }
        let chars = text.chars().count();
        if chars <= PATH_CHARS_MAX {
            return f.write_str(&text);
        }
        let head = byte_of_char(&text, PATH_CHARS_MAX - TAIL_CHARS - 1);
        let tail = byte_of_char(&text, chars - TAIL_CHARS);
        write!(f, "{}…{}", &text[..head], &text[tail..])
    }
}

impl fmt::Debug for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn byte_of_char(text: &str, index: usize) -> usize {
    text.char_indices()
        .nth(index)
        .map_or(text.len(), |(at, _)| at)
}

/// Appends a key to a path as [`Path`] shows it: `.name` for an identifier, else `["..."]`.
pub fn push_path_key(out: &mut String, key: &str) {
    let shown_end = byte_of_char(key, KEY_CHARS_MAX);
    let shown = &key[..shown_end];
    if is_identifier(key) && shown.len() == key.len() {
        out.push('.');
        out.push_str(key);
        return;
    }
    out.push_str("[\"");
    out.extend(shown.escape_debug());
    out.push_str(if shown.len() < key.len() {
        "…\"]"
    } else {
        "\"]"
    });
}

fn is_identifier(key: &str) -> bool {
    let mut bytes = key.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
