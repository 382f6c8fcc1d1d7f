//! The gateway: the snapshot in force and everything that outlives it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use audit_log::{AuditLog, Durability, Record};
use domain::{AuditMode, Desired, ServerId};
use tokio::sync::{Notify, Semaphore, watch};

use crate::bodies::Bodies;
use crate::descriptors::{self, connections_within};
use crate::exchange::NotAudited;
use crate::guard::Guard;
use crate::lobby::Lobby;
use crate::metrics::GatewayMetrics;
use crate::pins::PinSource;
use crate::seldom::Seldom;
use crate::session::{BoundedMap, SessionLimits, Sessions};
use crate::shares::{Share, ShareLimits, Shares, Taken};
use crate::snapshot::{CompileError, PluginSource, Snapshot, Sources};
use crate::span::SpanSink;
use crate::turns::Turns;
use crate::upstream::LinkOptions;

/// Tasks remembered over all servers, by owner and id.
const TASKS_MAX: usize = 100_000;
/// Lines of the log about requests that reached no server, in so long.
const REFUSALS_SAID: u32 = 5;
const REFUSALS_SAID_EVERY: Duration = Duration::from_secs(10);
/// How long a connection that gives its place away may take to be gone.
const LEAVE_WAIT: Duration = Duration::from_millis(50);
/// Sessions of servers that may be told at once that they are over.
pub(crate) const FAREWELLS_MAX: usize = 256;

/// What a gateway is made with, beside the desired state.
#[derive(Default)]
pub struct GatewayOptions {
    /// Serve this server at `/mcp` too (`weir proxy`).
    pub single: Option<ServerId>,
    /// The audit log; without one nothing is recorded.
    pub audit: Option<Arc<AuditLog>>,
    /// How upstreams are reached.
    pub links: LinkOptions,
    /// Takes the spans of exchanges; without one a trace is carried on, but none is begun.
    pub spans: Option<Arc<dyn SpanSink>>,
    /// Makes evaluators of plugins; without one a server with plugins is refused.
    pub plugins: Option<Arc<dyn PluginSource>>,
    /// Keeps pins of tools; without one they are gone when the gateway ends.
    pub pins: Option<Arc<dyn PinSource>>,
    /// The most files that this process may have open; bounds its connections. Absent: nothing is known.
    pub files_max: Option<u64>,
}

/// One gateway: many listeners, one state.
pub struct Gateway {
    snapshot: ArcSwap<Snapshot>,
    guard: ArcSwapOption<Guard>,
    /// All sessions.
    pub(crate) sessions: Sessions,
    /// Which tool a task belongs to, by owner, server and task id; nothing where tools that differ announced the same.
    pub(crate) tasks: parking_lot::Mutex<BoundedMap<TaskKey, Option<Arc<str>>>>,
    /// Handles of metrics.
    pub(crate) metrics: GatewayMetrics,
    streams: Arc<Shares>,
    /// Bodies of requests that are held.
    pub(crate) bodies: Arc<Bodies>,
    /// Places for sessions of servers that are being ended.
    pub(crate) farewells: Arc<Semaphore>,
    connections: AtomicUsize,
    /// Those of them that wait for a request.
    pub(crate) lobby: Arc<Lobby>,
    /// A connection is over.
    connection_ended: Notify,
    single: Option<ServerId>,
    audit: Option<Arc<AuditLog>>,
    links: LinkOptions,
    plugins: Option<Arc<dyn PluginSource>>,
    pins: Option<Arc<dyn PinSource>>,
    /// How often it is said that a request was refused before it reached a server: it leaves no record.
    refusals: Seldom,
    /// The same of connections that could not be accepted.
    unaccepted: Seldom,
    files_max: Option<u64>,
    /// Where spans go.
    pub(crate) spans: Option<Arc<dyn SpanSink>>,
    stopping: watch::Sender<bool>,
    cut: watch::Sender<bool>,
}

/// Owner, server and task id.
pub(crate) type TaskKey = (Arc<str>, Arc<str>, Box<str>);

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway")
            .field("sessions", &self.sessions.count())
            .finish_non_exhaustive()
    }
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot(Arc<Gateway>);

/// Counts one stream until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    gateway: Arc<Gateway>,
    _share: Share,
}

impl Gateway {
    /// Compiles the desired state and makes a gateway of it.
    ///
    /// # Errors
    /// What does not compile.
    pub fn new(desired: &Desired, options: GatewayOptions) -> Result<Arc<Self>, CompileError> {
        let sources = Sources {
            plugins: options.plugins.as_deref(),
            pins: options.pins.as_deref(),
        };
        let snapshot = Snapshot::compile(desired, None, &options.links, sources)?;
        snapshot.register();
        descriptors::warn_if_few(options.files_max, snapshot.limits.connections_max);
        Ok(Arc::new(Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            guard: ArcSwapOption::empty(),
            sessions: Sessions::default(),
            tasks: parking_lot::Mutex::new(BoundedMap::new(TASKS_MAX)),
            metrics: GatewayMetrics::default(),
            streams: Arc::default(),
            bodies: Arc::default(),
            farewells: Arc::new(Semaphore::new(FAREWELLS_MAX)),
            connections: AtomicUsize::new(0),
            lobby: Arc::default(),
            connection_ended: Notify::new(),
            single: options.single,
            audit: options.audit,
            links: options.links,
            plugins: options.plugins,
            pins: options.pins,
            refusals: Seldom::new(REFUSALS_SAID, REFUSALS_SAID_EVERY),
            unaccepted: Seldom::new(REFUSALS_SAID, REFUSALS_SAID_EVERY),
            files_max: options.files_max,
            spans: options.spans,
            stopping: watch::Sender::new(false),
            cut: watch::Sender::new(false),
        }))
    }

    /// Replaces the desired state as one piece.
    ///
    /// # Errors
    /// What does not compile; the old state stays in force then.
    pub fn reload(&self, desired: &Desired) -> Result<(), CompileError> {
        let before = self.snapshot.load_full();
        let snapshot = Snapshot::compile(desired, Some(&before), &self.links, self.sources())?;
        snapshot.register();
        if let Some(guard) = self.guard.load_full() {
            self.guard.store(Some(Arc::new(
                guard.with(&snapshot.hosts, &snapshot.origins),
            )));
        }
        if snapshot.limits.connections_max != before.limits.connections_max {
            descriptors::warn_if_few(self.files_max, snapshot.limits.connections_max);
        }
        let snapshot = Arc::new(snapshot);
        self.snapshot.store(Arc::clone(&snapshot));
        let sessions = &self.sessions;
        sessions.keep_those_of(|server| snapshot.server(server).is_some());
        self.metrics.reloads.increment(1);
        Ok(())
    }

    /// Counts a reload that was refused: whoever asks for it knows whether it was refused before, or did not even load.
    pub fn count_refused(&self) {
        self.metrics.reloads_refused.increment(1);
    }

    /// Whether a desired state would be taken.
    ///
    /// # Errors
    /// As for [`Gateway::reload`].
    pub fn check(&self, desired: &Desired) -> Result<(), CompileError> {
        let before = self.snapshot.load_full();
        Snapshot::compile(desired, Some(&before), &self.links, self.sources()).map(drop)
    }

    fn sources(&self) -> Sources<'_> {
        Sources {
            plugins: self.plugins.as_deref(),
            pins: self.pins.as_deref(),
        }
    }

    /// The snapshot in force.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The server that `/mcp` means.
    pub fn single(&self) -> Option<&ServerId> {
        self.single.as_ref()
    }

    /// How many calls are under way.
    pub(crate) fn turns(&self) -> &Arc<Turns> {
        &self.links.turns
    }

    /// Says where the listener is bound, which decides what `Host` may be.
    pub fn bound_to(&self, ip: IpAddr) {
        let snapshot = self.snapshot();
        self.guard.store(Some(Arc::new(Guard::new(
            ip,
            &snapshot.hosts,
            &snapshot.origins,
        ))));
    }

    /// Who may talk to the listener. Before anything is bound: nobody.
    pub(crate) fn guard(&self) -> Arc<Guard> {
        self.guard.load_full().unwrap_or_default()
    }

    /// Whether the gateway does what it must: its audit log takes records.
    ///
    /// # Errors
    /// Why it does not.
    pub fn ready(&self) -> Result<(), String> {
        let log = self.audit.as_ref().filter(|_| self.must_record());
        match log.and_then(|log| log.failure()) {
            Some(error) => Err(error.to_string()),
            None => Ok(()),
        }
    }

    fn must_record(&self) -> bool {
        self.snapshot.load().audit != AuditMode::Off
    }

    /// Whether what is done now would leave no record: the audit log is known to be broken.
    pub(crate) fn leaves_no_record(&self) -> bool {
        let is_broken = self.audit.as_ref().is_some_and(|log| log.is_broken());
        is_broken && self.must_record()
    }

    /// Stops taking connections; calls under way may end.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Resolves when [`Gateway::stop`] was called.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Waits until [`Gateway::stop`] was called.
    pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
        // An error means that the gateway is gone, which is as good as stopped.
        let _ = stopping.wait_for(|stop| *stop).await;
    }

    /// Tells calls under way to end now, as if their clients had left.
    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }

    /// Waits until [`Gateway::cut`] was called.
    pub(crate) async fn was_cut(&self) {
        Self::stopped(&mut self.cut.subscribe()).await;
    }

    /// Connections open now.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Forgets idle sessions, again and again, until the gateway stops.
    pub async fn sweep(self: Arc<Self>) {
        let mut stopping = self.stopping();
        let mut every = tokio::time::interval(Duration::from_secs(10));
        loop {
            tokio::select! {
                _ = stopping.changed() => return,
                _ = every.tick() => {
                    let idle_ms = self.snapshot().limits.session_idle_s.saturating_mul(1000);
                    self.sessions.sweep(idle_ms);
                    self.note_sessions();
                }
            }
        }
    }

    /// Counts a request that is refused before it reached a server, and says so as far as the log is not flooded by it. What it
    /// asked for may hold a secret and is left out.
    pub(crate) fn note_refusal(&self, status: u16, why: &str, client: Option<&str>) {
        let counter = match status {
            401 => &self.metrics.unauthenticated,
            _ => &self.metrics.refused,
        };
        counter.increment(1);
        if let Some(left_out) = self.refusals.admits(Instant::now()) {
            let client = client.unwrap_or("-");
            tracing::warn!(status, client, left_out, "refused before any server: {why}");
        }
    }

    /// Writes down how many sessions are open: each time before the number is shown, for they come and go in between.
    pub(crate) fn note_sessions(&self) {
        self.metrics.sessions.set(self.sessions.count() as f64);
    }

    pub(crate) fn session_limits(snapshot: &Snapshot) -> SessionLimits {
        SessionLimits {
            sessions_max: snapshot.limits.sessions_max,
            per_principal_max: snapshot.limits.sessions_per_principal_max,
            idle_ms: snapshot.limits.session_idle_s.saturating_mul(1000),
        }
    }

    /// The most connections that are taken: as configured, and no more than the limit on open files leaves room for.
    pub(crate) fn connections_max(&self) -> usize {
        let room = self.files_max.map_or(usize::MAX, connections_within);
        self.snapshot.load().limits.connections_max.min(room)
    }

    /// A connection could not be accepted. Where files ran out all the same, one that waits for a request gives its own.
    pub(crate) fn could_not_accept(&self, error: &std::io::Error) {
        if is_out_of_files(error) && self.lobby.tell_one_to_leave() {
            self.metrics.connections_displaced.increment(1);
        }
        if let Some(left_out) = self.unaccepted.admits(Instant::now()) {
            tracing::warn!(%error, left_out, "a connection could not be accepted");
        }
    }

    /// Counts one more connection if there are fewer than `max`.
    pub(crate) fn connection(self: &Arc<Self>, max: usize) -> Option<ConnectionSlot> {
        let one_more = |n| (n < max).then(|| n + 1);
        let counter = &self.connections;
        counter
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more)
            .ok()?;
        self.metrics.connections.increment(1);
        Some(ConnectionSlot(Arc::clone(self)))
    }

    /// The same; where there are as many as may be, one that waits for a request leaves for it.
    pub(crate) async fn place_for_connection(
        self: &Arc<Self>,
        max: usize,
    ) -> Option<ConnectionSlot> {
        if let Some(slot) = self.connection(max) {
            return Some(slot);
        }
        if !self.lobby.tell_one_to_leave() {
            return None;
        }
        self.metrics.connections_displaced.increment(1);
        let left = async {
            loop {
                // Asked for before the look, so that none is missed.
                let ended = self.connection_ended.notified();
                if let Some(slot) = self.connection(max) {
                    return slot;
                }
                ended.await;
            }
        };
        tokio::time::timeout(LEAVE_WAIT, left).await.ok()
    }

    /// Counts one more stream of this owner, if there may be one.
    pub(crate) fn stream(
        self: &Arc<Self>,
        owner: &Arc<str>,
        limits: ShareLimits,
    ) -> Result<StreamSlot, Taken> {
        let share = self.streams.take(owner, limits)?;
        self.metrics.streams.increment(1);
        Ok(StreamSlot {
            gateway: Arc::clone(self),
            _share: share,
        })
    }

    /// Hands a record to the log; with `must` returns only when it is safe on disk.
    pub(crate) async fn audit(&self, record: Record, must: bool) -> Result<(), NotAudited> {
        let Some(log) = &self.audit else {
            return Ok(());
        };
        let durability = if must {
            Durability::Durable
        } else {
            Durability::Buffered
        };
        // Then the log has said so itself, once for all that come.
        let is_known = log.is_broken();
        let kept = match log.append(record, durability) {
            Ok(ticket) if must => ticket.await,
            Ok(_) => return Ok(()),
            Err(error) => Err(error),
        };
        kept.map_err(|error| {
            self.metrics.audit_failures.increment(1);
            if !is_known {
                tracing::error!(%error, "an audit record could not be kept; its answer is held back");
            }
            NotAudited
        })
    }
}

fn is_out_of_files(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
        self.0.connection_ended.notify_one();
        self.0.metrics.connections.decrement(1);
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.gateway.metrics.streams.decrement(1);
    }
}
