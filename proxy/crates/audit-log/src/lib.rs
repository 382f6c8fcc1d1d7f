//! The audit log: append-only records in segments, tamper-evident, searchable while it is being written.
//!
//! ```text
//!           append                       write, sync                    export
//! Record -------------> bounded queue ---------------> segments --------------------> Checkpoint notes
//!    ^                       |                             |                              |
//!  no message text        Ticket: kept,               search, Tail               verify_against: nothing was
//!                         or failed for good          while it is written        changed, cut or rolled back
//! ```
//!
//! What it promises:
//! - A [`Durability::Durable`] record whose ticket resolved survives a power cut, a [`Durability::Written`] one
//!   survives kill -9. A record is never acknowledged after any fault of the disk; the log then refuses everything by
//!   name, and the caller decides to fail closed. It is opened again, as after a crash, as soon as the disk lets it.
//! - A file that is removed while it is written is such a fault.
//! - Sequences have no gaps. Records refused because the queue was full or the log broken are counted in the next one.
//! - One record is one line of JSON behind a fixed prefix of 49 bytes: `cut -c50- audit-*.log | grep -h '"sequence"'`.
//! - Whoever can write the directory can forge all of it together. What was changed, cut or rolled back then shows
//!   against a checkpoint that was exported before; without one, only clumsier changes show. Of records after the last
//!   checkpoint nothing says that there were no more: [`Report::unvouched`] counts them.
//!
//! What it never does: hold matched text, retry a failed write or sync, take the clock for order, remove records by a
//! clock that is ahead of what can have passed, block the caller on the disk, or open a network connection.
//!
//! Memory is bounded by [`LogConfig::queue_max`] capped records: about 1 KiB each without findings, at most 40 KiB each
//! if every one carries the most and longest findings there can be.

#![forbid(unsafe_code)]

mod checkpoint;
mod clock;
mod config;
mod files;
mod frame;
mod hex;
mod id;
mod index;
mod log;
mod merkle;
mod query;
mod record;
mod recover;
mod retain;
mod segment;
mod store;
mod tail;
mod ticket;
mod verify;

pub use checkpoint::{BadCheckpoint, Checkpoint};
pub use config::{AuditError, Durability, LogConfig, Recovery};
pub use id::{AuditId, BadAuditId};
pub use log::AuditLog;
pub use query::{Order, Query, ReadError, SearchStats, search};
pub use record::{
    Action, BytesMoved, CUT_MARK, Direction, FINDINGS_MAX, FindingRecord, LAYER_BYTES_MAX,
    LAYERS_MAX, LatencyUs, NAME_BYTES_MAX, PATH_BYTES_MAX, Record, TEXT_BYTES_MAX, Text,
    UnknownAction, UpstreamOutcome,
};
pub use retain::{rebuild_indexes, remove_before};
pub use tail::{Tail, TailStart};
pub use ticket::Ticket;
pub use verify::{Report, VerifyError, verify, verify_against};
