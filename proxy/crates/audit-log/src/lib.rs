//! The audit log: append-only records in segments, tamper-evident, searchable while it is being written.

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
