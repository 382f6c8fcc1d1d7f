//! What the gateway shall serve of hosted servers.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    CallLimits, Detection, Server, ServerId, Sharing, TenantId, Upstream, UpstreamAuth,
    UpstreamTransport,
};
use runner_api::Isolation;
use secret_prints::SecretPrints;

use crate::model::Stored;

/// All hosted servers as the gateway sees them.
pub type HostedServers = BTreeMap<ServerId, Server>;

/// Calls failing in a row until a hosted server is left alone for a moment: its sandbox is ended and started by then.
const BREAKER_FAILURES: u32 = 10;
const BREAKER_OPEN_MS: u64 = 2_000;

/// Joins hosted servers with those of the configuration, and makes the gateway serve both.
pub trait Publisher: Send + Sync {
    /// Replaces all hosted servers. May take seconds; the old ones stay when it fails.
    ///
    /// # Errors
    /// What does not fit, in words for the operator: an id that the configuration has too, a policy that does not
    /// compile.
    fn publish(&self, servers: HostedServers) -> Result<(), String>;

    /// Whether these would be taken if they were published, with their policies compiled. Nothing is published.
    ///
    /// # Errors
    /// As for [`Publisher::publish`].
    fn check(&self, servers: HostedServers) -> Result<(), String>;

    /// The tenants of the configuration: a hosted server belongs to one of them.
    fn tenants(&self) -> BTreeSet<TenantId>;
}

/// The gateway's view of one server. `closed`: its tenant has used up the month, or it is not known yet what its secrets
/// look like; whatever is sent is answered with 429.
pub fn of(stored: &Stored, closed: bool, prints: Option<SecretPrints>) -> Server {
    let sharing = match stored.settings.isolation {
        Isolation::Shared => Sharing::Shared,
        Isolation::Session => Sharing::Session,
        Isolation::Call => Sharing::Call,
    };
    Server {
        tenant: stored.tenant.clone(),
        upstream: Upstream {
            transport: UpstreamTransport::Hosted {
                path: stored.settings.path.clone(),
                sharing,
            },
            auth: UpstreamAuth::None,
            breaker_failures: BREAKER_FAILURES,
            breaker_open_ms: BREAKER_OPEN_MS,
            tells_stateless: true,
        },
        policy: stored.policy.clone(),
        limits: CallLimits {
            concurrent_calls_max: closed.then_some(0),
            rate: None,
        },
        detection: Detection {
            prints,
            ..Detection::default()
        },
        plugins: Vec::new(),
    }
}
