//! Hosted servers: a sandbox of the runner is leased for each exchange, and given back after it.
//!
//! The session id that the rest of the gateway sees as the upstream's is made here: a random key, a dot, and the
//! sandbox's own session id (which may be empty). The key keeps a session on its sandbox; it never reaches a client
//! or a sandbox.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{ServerId, Sharing, TenantId};
use parking_lot::Mutex;
use runner_api::{
    ErrorCode, GoneReason, Lease, LeaseId, LeaseRequest, Runner, RunnerError, SandboxId, SessionKey,
};

use super::Fault;
use super::pool::Pool;
use crate::session::BoundedMap;

/// How long a call may wait for a sandbox, starts included.
const LEASE_WAIT: Duration = Duration::from_secs(60);
/// Sessions opened anew that are remembered; one that is forgotten is opened once more.
const RENEWED_MAX: usize = 10_000;
/// Sandboxes whose era is remembered; one that is forgotten is asked once more.
const ERAS_MAX: usize = 10_000;
/// Sandboxes whose connections are remembered; one that is forgotten gets new ones.
const CONNECTED_MAX: usize = 1_000;
/// How long a connection to a sandbox waits for its next exchange: less than any server waits before it closes it, also one
/// that gets little processor time, and less than a sandbox is at rest before it is frozen.
const CONNECTION_IDLE_FOR: Duration = Duration::from_secs(1);
/// How long a sandbox may take to end a session of Weir's own.
const FAREWELL_WAIT: Duration = Duration::from_secs(2);
/// A connection that broke may have broken because the sandbox is gone; the runner's word comes a moment later.
const REASON_WAIT: Duration = Duration::from_millis(300);

type Renewed = BoundedMap<Box<str>, Box<str>>;

/// Where the sandboxes of one server come from.
#[derive(Clone)]
pub struct Hosted {
    runner: Arc<dyn Runner>,
    tenant: TenantId,
    server: ServerId,
    pub sharing: Sharing,
    /// Sessions that Weir opened anew in another sandbox, by key: the sandbox's own ids.
    renewed: Arc<Mutex<Renewed>>,
    /// Sandboxes that were asked whether they speak the stateless era.
    stateless: Arc<Mutex<BoundedMap<SandboxId, bool>>>,
    /// Connections that wait for their next exchange.
    connections: Arc<Mutex<BoundedMap<SandboxId, Arc<Pool>>>>,
}

impl Hosted {
    pub fn new(
        runner: Arc<dyn Runner>,
        tenant: TenantId,
        server: ServerId,
        sharing: Sharing,
    ) -> Self {
        Self {
            runner,
            tenant,
            server,
            sharing,
            renewed: Arc::new(Mutex::new(BoundedMap::new(RENEWED_MAX))),
            stateless: Arc::new(Mutex::new(BoundedMap::new(ERAS_MAX))),
            connections: Arc::new(Mutex::new(BoundedMap::new(CONNECTED_MAX))),
        }
    }

    /// The sandbox's own id of a session that was opened anew.
    pub fn renewed(&self, key: &str) -> Option<Box<str>> {
        self.renewed.lock().get(key).cloned()
    }

    /// Remembers it. With a sandbox per call it would be of no use.
    pub fn renew(&self, key: &str, own: Option<&str>) {
        if let Some(own) = own
            && self.sharing != Sharing::Call
        {
            self.renewed.lock().insert(key.into(), own.into());
        }
    }

    /// Whether the server in a sandbox speaks the stateless era, if it was asked.
    pub fn knows_stateless(&self, sandbox: &SandboxId) -> Option<bool> {
        self.stateless.lock().get(sandbox).copied()
    }

    /// Remembers what it answered.
    pub fn learn_stateless(&self, sandbox: &SandboxId, knows: bool) {
        self.stateless.lock().insert(sandbox.clone(), knows);
    }

    /// Connections to a sandbox. One that ends with its call has them to itself: the handshake before it uses the same.
    pub(super) fn connections(&self, sandbox: &SandboxId) -> Arc<Pool> {
        let new = || Arc::new(Pool::keeping(CONNECTION_IDLE_FOR));
        if self.sharing == Sharing::Call {
            return new();
        }
        let mut all = self.connections.lock();
        if let Some(known) = all.get(sandbox) {
            return Arc::clone(known);
        }
        let pool = new();
        all.insert(sandbox.clone(), Arc::clone(&pool));
        pool
    }

    /// A sandbox for one exchange. Without a key, a server with a sandbox per session gets one that ends afterwards.
    pub async fn lease(&self, key: Option<&str>) -> Result<(Held, Lease), Fault> {
        let passing = key.is_none() && self.sharing == Sharing::Session;
        let key = match key {
            Some(key) => Some(session_key(key)?),
            None if passing => Some(session_key(&new_key()?)?),
            None => None,
        };
        let wanted = LeaseRequest {
            tenant: self.tenant.clone(),
            server: self.server.clone(),
            session: key.clone(),
            wait_ms: u32::try_from(LEASE_WAIT.as_millis()).unwrap_or(u32::MAX),
        };
        let lease = self
            .runner
            .lease(wanted)
            .await
            .map_err(|error| self.fault(&error))?;
        let held = Held {
            hosted: self.clone(),
            lease: lease.id.clone(),
            until: Instant::now() + Duration::from_secs(lease.call_timeout_s.into()),
            open_ended: false,
            timed_out: false,
            farewell: None,
            ends_session: key.filter(|_| passing),
        };
        Ok((held, lease))
    }

    /// The client ended its session. `false`: the server in the sandbox should be told too.
    pub async fn end_session(&self, key: &str) -> Result<bool, Fault> {
        if self.sharing == Sharing::Session {
            let ended = self
                .runner
                .end_session(&self.tenant, &self.server, &session_key(key)?)
                .await;
            ended.map_err(|error| self.fault(&error))?;
        }
        Ok(self.sharing != Sharing::Shared)
    }

    fn fault(&self, error: &RunnerError) -> Fault {
        tracing::warn!(server_id = %self.server, error = error as &dyn std::error::Error, "no sandbox could be had");
        match error.code() {
            Some(ErrorCode::Busy | ErrorCode::NoCapacity) => Fault::Crowded,
            Some(ErrorCode::SandboxGone) => Fault::Gone("stopped"),
            Some(
                ErrorCode::StartFailed
                | ErrorCode::Conflict
                | ErrorCode::NotFound
                | ErrorCode::BadRequest,
            ) => Fault::NotStarted,
            _ => Fault::NoRunner,
        }
    }
}

/// A leased sandbox. Dropped, it is given back.
pub struct Held {
    hosted: Hosted,
    lease: LeaseId,
    until: Instant,
    open_ended: bool,
    timed_out: bool,
    farewell: Option<Farewell>,
    ends_session: Option<SessionKey>,
}

type Farewell = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl Held {
    /// The server whose sandbox it is.
    pub fn hosted(&self) -> &Hosted {
        &self.hosted
    }

    /// What comes from it has no end of its own: when the time of a call is over it is cut, which is no fault of the
    /// sandbox.
    pub fn open_ended(&mut self) {
        self.open_ended = true;
    }

    /// Whether it is.
    pub fn is_open_ended(&self) -> bool {
        self.open_ended
    }

    /// What is to be done in the sandbox before it is given back.
    pub fn farewell<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        work: impl FnOnce() -> F + Send + Sync + 'static,
    ) {
        self.farewell = Some(Box::new(|| Box::pin(work())));
    }

    /// Waits for `work` as long as the sandbox is there and the call's time is not over.
    pub async fn guard<T>(
        &mut self,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let gone = self.hosted.runner.gone(&self.lease);
        tokio::pin!(gone);
        let done = tokio::select! {
            biased;
            done = work => done,
            reason = &mut gone => return Err(self.gone(&reason)),
            () = tokio::time::sleep_until(self.until.into()) => {
                self.timed_out = !self.open_ended;
                return Err(Fault::TimedOut);
            }
        };
        if matches!(
            done,
            Err(Fault::Broken(_) | Fault::Cut | Fault::Malformed(_) | Fault::Unreachable(_))
        ) && let Ok(reason) = tokio::time::timeout(REASON_WAIT, gone).await
        {
            return Err(self.gone(&reason));
        }
        done
    }

    fn gone(&self, reason: &GoneReason) -> Fault {
        tracing::warn!(server_id = %self.hosted.server, ?reason, "a sandbox ended under a call");
        Fault::Gone(match reason {
            GoneReason::OutOfMemory => "out of memory",
            GoneReason::TooManyProcesses => "too many processes",
            GoneReason::HostDiskFull => "out of disk space",
            GoneReason::Exited { .. } => "its program ended",
            GoneReason::CallTimeout => "a call took too long",
            GoneReason::StartTimeout => "it did not start in time",
            _ => "stopped",
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (hosted, lease, timed_out) = (self.hosted.clone(), self.lease.clone(), self.timed_out);
        let ends_session = self.ends_session.take();
        // A sandbox that is taken away needs none.
        let farewell = self.farewell.take().filter(|_| !timed_out);
        tokio::spawn(async move {
            if let Some(farewell) = farewell {
                let _late = tokio::time::timeout(FAREWELL_WAIT, farewell()).await;
            }
            let released = hosted.runner.release(&lease, timed_out).await;
            let ended = match &ends_session {
                Some(key) => {
                    hosted
                        .runner
                        .end_session(&hosted.tenant, &hosted.server, key)
                        .await
                }
                None => Ok(()),
            };
            if let Err(error) = released.and(ended) {
                // The runner takes it back by itself when it is gone, or this process is.
                tracing::debug!(server_id = %hosted.server, error = &error as &dyn std::error::Error, "a lease was not given back in order");
            }
        });
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({})", self.lease)
    }
}

/// A key for a new session: 128 random bits.
pub fn new_key() -> Result<String, Fault> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| Fault::Broken("no random numbers"))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Key and the sandbox's own session id.
pub fn parts(id: &str) -> (&str, Option<&str>) {
    let (key, own) = id.split_once('.').unwrap_or((id, ""));
    (key, (!own.is_empty()).then_some(own))
}

/// The two in one.
pub fn joined(key: &str, own: Option<&str>) -> Box<str> {
    format!("{key}.{}", own.unwrap_or_default()).into()
}

fn session_key(key: &str) -> Result<SessionKey, Fault> {
    SessionKey::parse(key).map_err(|_| Fault::Broken("a session id"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_comes_apart_as_it_was_joined() {
        for own in [None, Some("x"), Some("a.b.c")] {
            let key = new_key().expect("random");
            assert_eq!(parts(&joined(&key, own)), (key.as_str(), own));
        }
    }
}
