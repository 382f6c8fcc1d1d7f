//! The audit log: append-only records in segments, tamper-evident, searchable while it is being written.

#![forbid(unsafe_code)]

mod id;
mod log;
mod record;
mod ticket;

pub use id::{AuditId, BadAuditId};
pub use log::{AuditError, AuditLog, Durability, LogConfig, Recovery};
pub use record::{
    Action, BytesMoved, CUT_MARK, Direction, FINDINGS_MAX, FindingRecord, LAYER_BYTES_MAX,
    LAYERS_MAX, LatencyUs, NAME_BYTES_MAX, PATH_BYTES_MAX, Record, TEXT_BYTES_MAX, Text,
    UnknownAction, UpstreamOutcome,
};
pub use ticket::Ticket;
