//! How a log is kept, how safe a record is to be, and what can go wrong.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::files::Fault;

/// How a log is kept. [`LogConfig::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// Directory of the log; made if absent, owned by one writer at a time.
    pub dir: PathBuf,
    /// A segment is sealed before it grows over this (64 MiB).
    pub segment_bytes_max: u64,
    /// Records waiting to be written before [`AuditError::QueueFull`] (8192).
    pub queue_max: usize,
    /// Records written and synced together at most (128).
    pub batch_max: usize,
    /// How long records nobody waits for may gather before they are written (10 ms): a batch costs several times what a
    /// record does.
    pub linger: Duration,
    /// How long records nobody waits for may stay unsynced once written (100 ms).
    pub sync_interval: Duration,
    /// Whether to sync to disk at all (true). Without it a power cut can lose acknowledged records; kill -9 cannot.
    pub fsync: bool,
    /// Whole sealed segments older than this are removed when a segment is sealed, a few at a time, and none while the
    /// clock is further ahead of the time kept in the file `clock` than can be (`None`: kept for ever).
    pub retention_days: Option<u32>,
    /// Records between two checkpoints at most (1000).
    pub checkpoint_every: u64,
    /// Time between two checkpoints at most, while there are new records (10 s).
    pub checkpoint_interval: Duration,
    /// How long after a fault of the disk it is tried to open the log again, and again (1 s).
    pub retry_interval: Duration,
}

impl LogConfig {
    pub(crate) const QUEUE_MAX: usize = 8192;
    pub(crate) const CHECKPOINT_EVERY: u64 = 1000;

    /// The defaults, in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        LogConfig {
            dir: dir.into(),
            segment_bytes_max: 64 << 20,
            queue_max: Self::QUEUE_MAX,
            batch_max: 128,
            linger: Duration::from_millis(10),
            sync_interval: Duration::from_millis(100),
            fsync: true,
            retention_days: None,
            checkpoint_every: Self::CHECKPOINT_EVERY,
            checkpoint_interval: Duration::from_secs(10),
            retry_interval: Duration::from_secs(1),
        }
    }
}

/// How safe a record must be before its ticket resolves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Resolves at once. A kill can lose the last few milliseconds ([`LogConfig::linger`]) of these.
    Buffered,
    /// Resolves when the kernel has it: survives kill -9, not a power cut.
    Written,
    /// Resolves when it is synced to disk (group commit).
    Durable,
}

/// Why a record was not taken or not kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AuditError {
    /// The writer cannot keep up. Nothing was written: fail the call that needed it.
    #[error("the audit queue is full ({queue_max} records)")]
    QueueFull {
        /// The bound that was met.
        queue_max: usize,
    },
    /// The log was closed.
    #[error("the audit log is closed")]
    Closed,
    /// Writing failed; nothing is acknowledged until the log could be opened again, which it tries by itself.
    #[error("the audit log has failed while {doing}")]
    Failed {
        /// What was being done, with the path.
        doing: Arc<str>,
        /// Why it did not work.
        source: Arc<std::io::Error>,
    },
    /// Another process writes this log.
    #[error("the audit log {} is in use by another process", dir.display())]
    InUse {
        /// The log's directory.
        dir: PathBuf,
    },
    /// The log on disk is damaged where it had been whole; it must be looked at (and moved away) before writing on.
    #[error("the audit log is damaged: {file}, record {sequence}: {what}")]
    Damaged {
        /// The file at fault.
        file: Arc<str>,
        /// First bad record.
        sequence: u64,
        /// What is wrong with it.
        what: Arc<str>,
    },
}

/// What opening found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Sequence the next record will get.
    pub next_sequence: u64,
    /// Segments on disk.
    pub segments: usize,
    /// Bytes of an unfinished (never acknowledged) write that were dropped from the end.
    pub torn_bytes: u64,
}

impl From<Fault> for AuditError {
    fn from(fault: Fault) -> Self {
        AuditError::Failed {
            doing: fault.doing,
            source: fault.source,
        }
    }
}
