//! Messages that are too long to be held: strict JSON read while it arrives, in whatever cuts.
//!
//! [`Reader`] accepts what [`Document::parse`](crate::Document::parse) accepts and refuses the rest, and gives what it
//! reads as [`Event`]s. [`MessageReader`] adds the checks that [`Message`](crate::Message) makes. Neither keeps more than
//! [`StreamLimits`] says, whatever the length of the input.
//!
//! A message is acceptable only once `finish` has said so: what came before may be passed on, but never its last byte.

mod envelope;
mod keys;
mod reader;
mod string;

pub use envelope::{Facts, MessageReader};
pub use reader::{Event, Reader, Sink};

use crate::Limits;

/// What reading one long message may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Longest message, in bytes.
    pub bytes_max: u64,
    /// Deepest nesting of objects and arrays.
    pub depth_max: usize,
    /// Longest number, in bytes of its text.
    pub number_bytes_max: usize,
    /// Longest key, in decoded bytes: a key is never given in pieces.
    pub key_bytes_max: usize,
    /// Most keys of all objects that are open at one time: they are remembered, to find a second one.
    pub open_keys_max: usize,
    /// Longest id, method or name, in decoded bytes.
    pub id_bytes_max: usize,
}

impl StreamLimits {
    /// The bounds of whole messages, for one of so many bytes.
    pub fn of(limits: &Limits, bytes_max: u64) -> Self {
        StreamLimits {
            bytes_max,
            depth_max: limits.depth_max,
            number_bytes_max: limits.number_bytes_max,
            key_bytes_max: 4096,
            open_keys_max: 65_536,
            id_bytes_max: limits.id_bytes_max,
        }
    }
}
