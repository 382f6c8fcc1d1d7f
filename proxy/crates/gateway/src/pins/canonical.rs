//! A definition in the form in which it is compared: members sorted by key, no blanks, one spelling of every text.

use mcp_codec::{Document, Kind, Node};
use sha2::{Digest as _, Sha256};

/// Servers put what differs from call to call here; it is no part of what a tool says of itself.
const LEFT_OUT: &str = "_meta";

/// The canonical form of one definition. As deep as the decoder lets a message be, and no deeper.
pub(super) fn text(doc: &Document, definition: Node) -> String {
    let mut out = String::with_capacity(doc.raw(definition).len());
    write(doc, definition, &mut out, Some(LEFT_OUT));
    out
}

/// SHA-256 in hexadecimal.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // A String takes what is written.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

fn write(doc: &Document, node: Node, out: &mut String, left_out: Option<&str>) {
    match doc.kind(node) {
        Kind::Object => {
            let mut members: Vec<(&str, Node)> = doc
                .members(node)
                .map(|(_, key, value)| (key, value))
                .filter(|(key, _)| Some(*key) != left_out)
                .collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&crate::reply::json_string(key));
                out.push(':');
                write(doc, value, out, None);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (i, element) in doc.elements(node).enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(doc, element, out, None);
            }
            out.push(']');
        }
        Kind::String => out.push_str(&crate::reply::json_string(
            doc.str(node).unwrap_or_default(),
        )),
        Kind::Number => out.push_str(doc.number(node).unwrap_or_default()),
        Kind::True => out.push_str("true"),
        Kind::False => out.push_str("false"),
        Kind::Null => out.push_str("null"),
    }
}
