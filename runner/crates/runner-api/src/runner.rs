//! The trait that callers of the runner see.

use std::collections::BTreeMap;
use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use domain::{ServerId, TenantId};
use futures_util::stream::BoxStream;
use secret_prints::{Print, PrintKey};

use crate::bundle::{BuildEvent, BuildRequest, BundleInfo};
use crate::doctor::Doctor;
use crate::error::RunnerError;
use crate::event::{Event, GoneReason, LogLine, LogQuery};
use crate::id::{LeaseId, SecretName, SessionKey};
use crate::lease::{Lease, LeaseRequest};
use crate::secret::SecretValue;
use crate::spec::ServerSpec;
use crate::usage::{ServerStatus, UsageWindow};

/// A stream of what comes from the runner. An error is its last item.
pub type Items<T> = BoxStream<'static, Result<T, RunnerError>>;

/// What can be asked of the runner. See [`crate::Request`] for the words at each.
#[async_trait]
pub trait Runner: Send + Sync {
    /// What the runner found on its machine.
    async fn doctor(&self) -> Result<Doctor, RunnerError>;

    /// Uploads a bundle, at most 250 MB packed. What is refused comes as `ErrorCode::BundleRefused` with reasons.
    async fn put_bundle(
        &self,
        tenant: &TenantId,
        bytes: BoxStream<'static, io::Result<Bytes>>,
    ) -> Result<BundleInfo, RunnerError>;

    /// Installs a bundle's dependencies; the last item of a good build is `BuildEvent::Done`.
    async fn build(&self, build: BuildRequest) -> Result<Items<BuildEvent>, RunnerError>;

    /// Makes or changes a server. Its bundle has to be built before the first lease.
    async fn put_server(&self, spec: ServerSpec) -> Result<(), RunnerError>;

    /// Ends a server and everything that belongs to it.
    async fn remove_server(&self, tenant: &TenantId, server: &ServerId) -> Result<(), RunnerError>;

    /// Drains all sandboxes of a server.
    async fn restart_server(&self, tenant: &TenantId, server: &ServerId)
    -> Result<(), RunnerError>;

    /// All servers of a tenant, or of all tenants.
    async fn servers(&self, tenant: Option<&TenantId>) -> Result<Vec<ServerStatus>, RunnerError>;

    /// Writes a secret. There is no way to read one.
    async fn set_secret(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &SecretName,
        value: SecretValue,
    ) -> Result<(), RunnerError>;

    /// The names of a server's secrets.
    async fn list_secrets(
        &self,
        tenant: &TenantId,
        server: &ServerId,
    ) -> Result<Vec<SecretName>, RunnerError>;

    /// Fingerprints of a server's secrets, made under this key: by these they are looked for in its traffic.
    async fn secret_prints(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        key: &PrintKey,
    ) -> Result<BTreeMap<SecretName, Vec<Print>>, RunnerError>;

    /// Removes a secret.
    async fn remove_secret(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &SecretName,
    ) -> Result<(), RunnerError>;

    /// Gets a sandbox for one exchange; waits in a fair, bounded queue.
    async fn lease(&self, lease: LeaseRequest) -> Result<Lease, RunnerError>;

    /// Gives a lease back. `timed_out`: the call did not end in time, so the sandbox is not trusted any more.
    async fn release(&self, lease: &LeaseId, timed_out: bool) -> Result<(), RunnerError>;

    /// Ends when the sandbox of a held lease is gone, with the reason; else never. Race it against the call in flight.
    async fn gone(&self, lease: &LeaseId) -> GoneReason;

    /// Ends the sandbox of a session.
    async fn end_session(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        session: &SessionKey,
    ) -> Result<(), RunnerError>;

    /// Lines of a server's log.
    async fn logs(&self, query: LogQuery) -> Result<Items<LogLine>, RunnerError>;

    /// Closed usage windows after a sequence number, oldest first, at most 1,000.
    async fn usage(&self, after: u64) -> Result<Vec<UsageWindow>, RunnerError>;

    /// Lets go of all windows up to a sequence number. Only after they are safe on the caller's side.
    async fn ack_usage(&self, upto: u64) -> Result<(), RunnerError>;

    /// Events after a sequence number, without end.
    async fn events(&self, after: u64) -> Result<Items<Event>, RunnerError>;
}
