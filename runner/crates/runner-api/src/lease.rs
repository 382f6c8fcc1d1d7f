//! A sandbox given to one exchange.

use std::net::SocketAddr;

use domain::{ServerId, TenantId};
use serde::{Deserialize, Serialize};

use crate::id::{LeaseId, SandboxId, SessionKey};

/// Asks for a sandbox. A lease is held for one exchange: a request and its whole answer, or one open stream.
///
/// Which sandbox comes is decided by the server's isolation: any that has room (`shared`), the one of this
/// session (`session`, which needs `session`), or a new one that ends with the lease (`call`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// The owner of the server, as the caller authenticated it.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// The session; for `session` isolation, and it makes `shared` sticky.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionKey>,
    /// The longest wait for a place, in milliseconds, at most 120,000.
    pub wait_ms: u32,
}

/// A sandbox that can be talked to now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Name it in [`crate::Runner::release`]. A lease also ends when its holder's program does.
    pub id: LeaseId,
    /// The sandbox.
    pub sandbox: SandboxId,
    /// Where it answers plain HTTP.
    pub address: SocketAddr,
    /// True if no lease was given on this sandbox before: an MCP session has to be opened first.
    pub fresh: bool,
    /// How long the lease waited, in milliseconds.
    pub waited_ms: u64,
    /// The longest a call may take, in seconds.
    pub call_timeout_s: u32,
}
