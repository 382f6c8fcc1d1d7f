//! Bytes to MCP messages and back.
//!
//! What it is: a strict JSON reader that keeps every byte's place ([`Document`]), the JSON-RPC envelope on top of it
//! ([`decode`], [`Message`]), and the two framings MCP uses ([`sse`], [`lines`]).
//!
//! What it never does: wait, read a clock, open anything, log, or repair. Input that two JSON readers could understand
//! differently is refused ([`DecodeError`]); what leaves is our own serialisation of what was read.
//!
//! ```
//! use mcp_codec::{decode, BatchRule, Edits, Limits, Payload};
//!
//! let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"to":"Eve"}}}"#;
//! let Payload::Single(message) = decode(body.as_slice().into(), &Limits::default(), BatchRule::Refused)? else {
//!     unreachable!("batches are refused here")
//! };
//! assert_eq!(message.method(), Some("tools/call"));
//! let leaf = message.doc().leaves().find(|leaf| leaf.text == "Eve").expect("it is there");
//! assert_eq!(message.doc().path(leaf.id).to_string(), "$.params.arguments.to");
//!
//! let mut edits = Edits::new();
//! edits.replace(leaf.id, 0..3, "***");
//! let redacted = message.doc().edit(&edits)?;
//! assert!(redacted.ends_with(br#"{"to":"***"}}}"#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod document;
mod duplicate;
mod edit;
mod error;
mod fold;
mod id;
mod leaf;
mod limits;
pub mod lines;
mod long_line;
mod message;
mod method;
mod outline;
mod parse;
mod path;
mod scan;
mod skim;
pub mod sse;
mod sse_long;
mod sse_over;
pub mod stream;
mod whose;
mod write;

pub use document::{Document, Elements, Kind, Members, Node};
pub use edit::{EditError, Edits};
pub use error::{DecodeError, DecodeErrorKind};
pub use id::{ID_NUMBER_MAX, Id};
pub use leaf::{Leaf, LeafId, LeafKind, Leaves, LeavesUnder};
pub use limits::Limits;
pub use long_line::LongLine;
pub use message::{BatchRule, Message, MessageKind, Payload, decode};
pub use outline::{Outline, Step};
pub use path::{PATH_CHARS_MAX, Path, push_path_key};
pub use whose::Whose;
pub use write::{push_escaped, push_string};
