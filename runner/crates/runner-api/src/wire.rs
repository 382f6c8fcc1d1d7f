//! Requests and replies as they stand in frames.

use std::collections::BTreeMap;

use domain::{ServerId, TenantId};
use secret_prints::{Print, PrintKey};
use serde::{Deserialize, Serialize};

use crate::bundle::{BuildEvent, BuildRequest, BundleInfo};
use crate::doctor::Doctor;
use crate::error::ApiError;
use crate::event::{Event, GoneReason, LogLine, LogQuery};
use crate::id::{CallerId, LeaseId, SecretName, SessionKey};
use crate::lease::{Lease, LeaseRequest};
use crate::secret::SecretValue;
use crate::spec::{Runtime, ServerSpec};
use crate::usage::{ServerStatus, UsageWindow};

/// Raised whenever a change would be misread by the other side. Both sides refuse any other number.
pub const PROTOCOL_VERSION: u32 = 2;

/// The first frame of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`].
    pub protocol: u32,
    /// Name and version of the program, for logs.
    pub program: String,
    /// Whose connection it is. When none of a caller's is left, nobody comes back for the sessions that it began: their
    /// keys were in its memory alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<CallerId>,
}

impl Hello {
    /// This side's greeting.
    pub fn of(program: &str) -> Self {
        Self {
            protocol: PROTOCOL_VERSION,
            program: program.into(),
            caller: None,
        }
    }

    /// The greeting of this caller.
    pub fn from(self, caller: CallerId) -> Self {
        Self {
            caller: Some(caller),
            ..self
        }
    }
}

/// What can be asked. Whether the answer is one reply or a stream is written at each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
#[allow(
    missing_docs,
    reason = "the fields are the parameters of `Runner`'s functions"
)]
pub enum Request {
    /// -> `Doctor`
    Doctor,
    /// Chunk frames follow, an empty one ends them -> `Bundle`. What is refused early is answered early.
    PutBundle { tenant: TenantId },
    /// -> `Ok`, a stream of `Build`, then `End`
    Build { build: BuildRequest },
    /// -> `Ok`, a stream of `Build`, then `End`. A common layer of the runner's own list of this name; for its operator.
    BuildCommon { runtime: Runtime, list: String },
    /// -> `Ok`. Starts nothing unless `scale.min` says so; a changed spec drains what runs.
    PutServer { spec: Box<ServerSpec> },
    /// -> `Ok`. Ends its sandboxes; its secrets and logs go too.
    RemoveServer { tenant: TenantId, server: ServerId },
    /// -> `Ok`. Drains all its sandboxes; the next lease starts a new one.
    RestartServer { tenant: TenantId, server: ServerId },
    /// -> `Servers`. None: all of all tenants.
    Servers { tenant: Option<TenantId> },
    /// -> `Ok`. Takes effect in sandboxes that are started later.
    SetSecret {
        tenant: TenantId,
        server: ServerId,
        name: SecretName,
        value: SecretValue,
    },
    /// -> `Secrets`: names only.
    ListSecrets { tenant: TenantId, server: ServerId },
    /// -> `SecretPrints`, made under this key.
    SecretPrints {
        tenant: TenantId,
        server: ServerId,
        key: PrintKey,
    },
    /// -> `Ok`
    RemoveSecret {
        tenant: TenantId,
        server: ServerId,
        name: SecretName,
    },
    /// -> `Lease`. From then on the connection belongs to the lease: the runner may say `Gone` once, unasked; the
    /// caller's next request is `Release`; the end of the connection gives the lease back too.
    Lease { lease: LeaseRequest },
    /// -> `Ok`. `timed_out` takes the sandbox away from everybody.
    Release { lease: LeaseId, timed_out: bool },
    /// -> `Ok`. Ends the sandbox of a session.
    EndSession {
        tenant: TenantId,
        server: ServerId,
        session: SessionKey,
    },
    /// -> `Ok`, a stream of `Log`, then `End` unless followed
    Logs { query: LogQuery },
    /// -> `Usage`: closed windows after `after`, oldest first, at most 1,000.
    Usage { after: u64 },
    /// -> `Ok`. Lets go of all windows up to `upto`.
    AckUsage { upto: u64 },
    /// -> `Ok`, a stream of `Event`, from the first after `after` on, without end.
    Events { after: u64 },
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "body", rename_all = "snake_case")]
#[allow(missing_docs, reason = "named at each request")]
pub enum Reply {
    Ok,
    Error(ApiError),
    /// The end of a stream.
    End,
    Doctor(Doctor),
    Bundle(BundleInfo),
    Build(BuildEvent),
    Servers(Vec<ServerStatus>),
    Secrets(Vec<SecretName>),
    SecretPrints(BTreeMap<SecretName, Vec<Print>>),
    Lease(Lease),
    /// The sandbox of this connection's lease ended.
    Gone(GoneReason),
    Log(LogLine),
    Usage(Vec<UsageWindow>),
    Event(Event),
}
