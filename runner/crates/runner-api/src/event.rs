//! What happened, told as it happens.

use domain::{ServerId, TenantId};
use serde::{Deserialize, Serialize};

use crate::id::{SandboxId, SecretName};

/// One thing that happened. Goes to the audit log; holds no value of a secret and no traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up from 1 over the life of the runner's state; a gap means that events were dropped.
    pub seq: u64,
    /// When, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Whose.
    pub tenant: TenantId,
    /// Which server.
    pub server: ServerId,
    /// Which sandbox, if one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxId>,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A sandbox is being made; the plain environment is named here and nowhere else.
    Starting {
        /// Names of environment variables and secrets (never values of secrets).
        env: Vec<(String, String)>,
    },
    /// It answers.
    Ready {
        /// `cold`, `restored` or `adopted`.
        from: String,
        /// From the decision to start to the first answer, in milliseconds.
        took_ms: u64,
    },
    /// Idle: frozen.
    Frozen,
    /// Woken.
    Thawed,
    /// A checkpoint was taken.
    Checkpointed {
        /// Its size, in bytes, encrypted.
        bytes: u64,
        /// Of what.
        #[serde(default)]
        of: Moment,
        /// How long that took, in milliseconds; 0 if it is not known.
        #[serde(default)]
        took_ms: u64,
    },
    /// It goes on where its checkpoint was taken while it was idle.
    Restored {
        /// From the first request to the first answer, in milliseconds.
        took_ms: u64,
    },
    /// The sandbox ended. Calls in flight on it are lost.
    Gone {
        /// Why.
        reason: GoneReason,
    },
    /// A connection to the outside ended.
    EgressConnection {
        /// The name that the server asked for.
        host: String,
        /// The port.
        port: u16,
        /// Bytes out.
        sent_bytes: u64,
        /// Bytes in.
        received_bytes: u64,
        /// How long, in milliseconds.
        duration_ms: u64,
    },
    /// A connection or a name was refused.
    EgressRefused {
        /// The name or address that was asked for, escaped, at most 255 characters.
        target: String,
        /// The port, if it came that far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// Why.
        reason: String,
    },
    /// Secrets were mounted into a sandbox.
    SecretsMounted {
        /// Which.
        names: Vec<SecretName>,
    },
    /// Secrets were opened to make fingerprints of them, by which the gateway looks for them in traffic.
    SecretsFingerprinted {
        /// Which.
        names: Vec<SecretName>,
    },
    /// A secret was written.
    SecretSet {
        /// Which.
        name: SecretName,
    },
    /// A secret was removed.
    SecretRemoved {
        /// Which.
        name: SecretName,
    },
    /// A secret was asked for and not given.
    SecretDenied {
        /// Which, escaped.
        name: String,
        /// Why.
        reason: String,
    },
    /// Events were lost because nobody took them in time.
    Dropped {
        /// How many.
        count: u64,
    },
}

/// What a checkpoint holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A server that has just started, for all later sandboxes of it.
    #[default]
    Start,
    /// A sandbox that nobody uses at the moment, for itself alone. Its memory is free now.
    Idle,
}

impl Moment {
    /// The word for it, here and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Idle => "idle",
        }
    }
}

/// Why a sandbox ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GoneReason {
    /// It used more memory than it may.
    OutOfMemory,
    /// It made more processes than the backstop allows.
    TooManyProcesses,
    /// The host's disk was nearly full, and it was the largest sandbox of the tenant that took the most of it.
    HostDiskFull,
    /// Its program ended.
    Exited {
        /// The exit code, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
    },
    /// It was killed from outside.
    Killed,
    /// A call ran over its time and the sandbox was taken away.
    CallTimeout,
    /// It did not answer in time after its start.
    StartTimeout,
    /// Nobody used it.
    Idle,
    /// Nobody used it, and its checkpoint had to make room for others.
    NoRoom,
    /// Its one call or session is over.
    Finished,
    /// Somebody asked for it: restart, new spec, removal, shutdown.
    Stopped,
    /// The runner could not go on with it.
    Failed {
        /// In words, for the operator.
        detail: String,
    },
}

/// Which logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuery {
    /// The owner.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// How many of the last lines, at most 10,000.
    pub tail: u32,
    /// Whether to go on with what comes.
    pub follow: bool,
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// The server's standard output.
    Stdout,
    /// The server's standard error.
    Stderr,
    /// The runner's own words about it.
    Lifecycle,
}

/// One line of a server's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When it was read, milliseconds since 1970.
    pub at_unix_ms: u64,
    /// Which sandbox.
    pub sandbox: SandboxId,
    /// Where from.
    pub stream: LogStream,
    /// The text, at most 4,096 bytes, invalid UTF-8 replaced.
    pub text: String,
    /// Lines that were dropped before this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
