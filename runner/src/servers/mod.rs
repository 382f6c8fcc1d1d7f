//! One task per server: who gets a sandbox, how many there are, and what becomes of idle ones.
//!
//! It decides and never waits: starting, freezing and ending is done by each sandbox's own task (`boxes`), which reports
//! back into the one queue of messages here.

mod choose;
mod generation;
mod idle;
mod sticky;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metering::Count;
use runner_api::{
    ApiError, CheckedSpec, ErrorCode, GoneReason, Isolation, Lease, LeaseId, SandboxId,
    SandboxState, SandboxStats, ServerSpec, ServerStatus, SessionKey,
};
use tokio::sync::{mpsc, oneshot};

use self::generation::Generation;
use self::sticky::Sticky;
use crate::backoff::Backoff;
use crate::boxes::{self, Command, From, Handle, Plan, Saved, Word};
use crate::callers::Caller;
use crate::context::{Context, new_lease_id, new_sandbox_id};
use crate::layers;
use crate::paths::{hex, server_key};
use crate::stock;

/// Leases that wait for one server; more are told to come back.
pub const WAITING_MAX: usize = 1000;
/// Messages that wait for one server.
const MESSAGES_MAX: usize = 4096;
const TICK: Duration = Duration::from_millis(500);
/// The exchanges of one call follow each other faster than this.
const CALL_GAP_MAX: Duration = Duration::from_secs(1);
/// An idle session's sandbox may be taken for another session after this long.
const EVICT_AFTER: Duration = Duration::from_secs(10);
/// The same when whoever began the session is gone: time enough to see that a connection was only made anew.
const EVICT_LOST_AFTER: Duration = Duration::from_secs(1);

/// A lease, and how its holder hears that its sandbox is gone.
pub struct Granted {
    /// The lease.
    pub lease: Lease,
    /// Resolves when the sandbox is gone.
    pub gone: oneshot::Receiver<GoneReason>,
}

/// What a server can be told.
pub enum Message {
    /// Give me a sandbox.
    Lease {
        /// For which session.
        session: Option<SessionKey>,
        /// Whose it is.
        caller: Option<Caller>,
        /// Until when.
        deadline: Instant,
        /// The answer.
        reply: oneshot::Sender<Result<Granted, ApiError>>,
    },
    /// I am done.
    Release {
        /// With which.
        lease: LeaseId,
        /// The call did not end in time.
        timed_out: bool,
    },
    /// A session is over.
    EndSession(SessionKey),
    /// A new spec.
    Put(CheckedSpec),
    /// Drain all sandboxes; answered when no runner gives them to anybody any more, this one or its next life.
    Restart(oneshot::Sender<()>),
    /// How is it?
    Status(oneshot::Sender<ServerStatus>),
    /// End everything; answered when nothing is left.
    Remove(oneshot::Sender<()>),
    /// A sandbox has something to say.
    Word(SandboxId, Word),
}

/// Starts the task of a server with the sandboxes that were found again.
pub fn spawn(ctx: &Arc<Context>, spec: CheckedSpec, adopted: Vec<Saved>) -> mpsc::Sender<Message> {
    let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
    let (tenant, id) = (&spec.get().tenant, &spec.get().id);
    let mut server = Server {
        generation: Generation::find(ctx.paths.generation(tenant, id)),
        ctx: Arc::clone(ctx),
        spec: Arc::new(spec.get().clone()),
        me: sender.clone(),
        boxes: HashMap::new(),
        waiting: VecDeque::new(),
        sessions: Sticky::default(),
        backoff: Backoff::new(),
        checkpoints_fail: false,
        removed: None,
    };
    for saved in adopted {
        server.adopt(saved);
    }
    tokio::spawn(server.run(receiver));
    sender
}

struct Server {
    ctx: Arc<Context>,
    spec: Arc<ServerSpec>,
    generation: Generation,
    me: mpsc::Sender<Message>,
    boxes: HashMap<SandboxId, Boxed>,
    waiting: VecDeque<Waiter>,
    /// Which shared sandbox a session began on.
    sessions: Sticky,
    backoff: Backoff,
    /// A checkpoint of an idle sandbox failed: none is tried again before something changes.
    checkpoints_fail: bool,
    removed: Option<oneshot::Sender<()>>,
}

struct Waiter {
    session: Option<SessionKey>,
    caller: Option<Caller>,
    since: Instant,
    deadline: Instant,
    reply: oneshot::Sender<Result<Granted, ApiError>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Starting,
    Ready,
    /// Told to freeze, not frozen yet.
    Freezing,
    Frozen,
    Thawing,
    /// Told to go to the disk, not there yet.
    Checkpointing,
    /// On the disk.
    Checkpointed,
    Restoring,
    /// Told to end, or gone.
    Ending,
}

impl Phase {
    /// Ready soon, or on the disk soon and to be woken from there: no other need be started meanwhile.
    fn comes(self) -> bool {
        matches!(
            self,
            Self::Starting | Self::Thawing | Self::Checkpointing | Self::Restoring
        )
    }
}

struct Boxed {
    handle: Handle,
    phase: Phase,
    address: Option<SocketAddr>,
    leases: HashMap<LeaseId, oneshot::Sender<GoneReason>>,
    leases_total: u64,
    session: Option<SessionKey>,
    /// Who was given it last; not known of one that was found again.
    caller: Option<Caller>,
    /// Takes no new lease; ends with the last one.
    draining: bool,
    /// Found again: who was given it by an earlier life may use it still, and has no lease here.
    adopted: bool,
    /// It cannot be checkpointed.
    unfit: bool,
    /// When it was last told to be checkpointed.
    asked: Instant,
    /// The size of its image on disk, if it is there.
    image_bytes: u64,
    began: Instant,
    last_used: Instant,
}

impl Boxed {
    fn open(&self) -> bool {
        !self.draining && self.phase != Phase::Ending
    }

    fn unused(&self) -> bool {
        self.leases_total == 0 && self.session.is_none()
    }

    /// Of a session that nobody comes back for.
    fn is_lost(&self) -> bool {
        self.caller.as_ref().is_some_and(Caller::is_gone)
    }

    /// An earlier life of the runner gave it out for a call, and does not hear any more when that is over.
    fn lost_its_call(&self, isolation: Isolation) -> bool {
        let given = isolation == Isolation::Call && !self.unused() && self.leases.is_empty();
        given && matches!(self.phase, Phase::Ready | Phase::Frozen)
    }

    /// Stands still and has something in memory that can go to the disk.
    fn fit(&self, isolation: Isolation, checkpoints_fail: bool) -> bool {
        let has_memory = isolation != Isolation::Call && !self.unused() && !self.draining;
        self.phase == Phase::Frozen && has_memory && !self.unfit && !checkpoints_fail
    }

    fn lay_down(&mut self) {
        self.phase = Phase::Checkpointing;
        self.asked = Instant::now();
        self.command(Command::Checkpoint);
    }

    fn command(&self, command: Command) {
        self.handle.commands.tell(command);
    }
}

impl Server {
    async fn run(mut self, mut messages: mpsc::Receiver<Message>) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let busy =
                !self.boxes.is_empty() || !self.waiting.is_empty() || self.spec.scale.min > 0;
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.take(message),
                    None => return,
                },
                _ = tick.tick(), if busy => self.idle(),
            }
            self.pump();
            if self.boxes.is_empty()
                && let Some(done) = self.removed.take()
            {
                let _ = done.send(());
                return;
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Lease {
                session,
                caller,
                deadline,
                reply,
            } => self.enqueue(Waiter {
                session,
                caller,
                since: Instant::now(),
                deadline,
                reply,
            }),
            Message::Release { lease, timed_out } => self.release(&lease, timed_out),
            Message::EndSession(session) => self.end_session(&session),
            Message::Put(spec) => self.put(spec),
            Message::Restart(done) => {
                self.checkpoints_fail = false;
                self.drain(GoneReason::Stopped);
                let _ = done.send(());
            }
            Message::Status(reply) => {
                let _ = reply.send(self.status());
            }
            Message::Remove(done) => {
                self.removed = Some(done);
                let gone = ApiError::new(ErrorCode::NotFound, "the server was removed");
                for waiter in self.waiting.drain(..) {
                    let _ = waiter.reply.send(Err(gone.clone()));
                }
                for boxed in self.boxes.values_mut() {
                    boxed.command(Command::Stop(GoneReason::Stopped));
                    boxed.phase = Phase::Ending;
                }
            }
            Message::Word(id, word) => self.word(&id, word),
        }
    }

    fn enqueue(&mut self, waiter: Waiter) {
        let refusal = if self.removed.is_some() {
            Some(ApiError::new(ErrorCode::NotFound, "the server was removed"))
        } else if self.spec.isolation == Isolation::Session && waiter.session.is_none() {
            Some(ApiError::new(
                ErrorCode::BadRequest,
                "this server has a sandbox per session; the lease needs a session",
            ))
        } else if self.waiting.len() >= WAITING_MAX {
            Some(busy(
                "too many calls wait for this server",
                Duration::from_secs(2),
            ))
        } else {
            None
        };
        match refusal {
            Some(error) => {
                let _ = waiter.reply.send(Err(error));
            }
            None => self.waiting.push_back(waiter),
        }
    }

    fn release(&mut self, lease: &LeaseId, timed_out: bool) {
        let Some((id, boxed)) = self
            .boxes
            .iter_mut()
            .find(|(_, b)| b.leases.contains_key(lease))
        else {
            return;
        };
        boxed.leases.remove(lease);
        boxed.last_used = Instant::now();
        let reason = if timed_out {
            Some(GoneReason::CallTimeout)
        } else if self.spec.isolation == Isolation::Call {
            Some(GoneReason::Finished)
        } else if boxed.draining && boxed.leases.is_empty() {
            Some(GoneReason::Stopped)
        } else {
            None
        };
        if let Some(reason) = reason {
            let id = id.clone();
            self.stop(&id, reason);
        }
    }

    fn end_session(&mut self, session: &SessionKey) {
        self.sessions.end(session);
        if self.spec.isolation == Isolation::Session {
            let own: Vec<_> = self
                .boxes
                .iter()
                .filter(|(_, b)| b.session.as_ref() == Some(session))
                .map(|(id, _)| id.clone())
                .collect();
            for id in own {
                self.stop(&id, GoneReason::Finished);
            }
        }
    }

    fn put(&mut self, spec: CheckedSpec) {
        let old = std::mem::replace(&mut self.spec, Arc::new(spec.get().clone()));
        self.backoff = Backoff::new();
        if old.egress != self.spec.egress
            && let Ok(rules) = crate::wire::allowlist(&self.spec.egress)
        {
            for boxed in self.boxes.values() {
                boxed.command(Command::Rules(rules.clone()));
            }
        }
        if key_of(&old) != key_of(&self.spec) {
            self.checkpoints_fail = false;
            self.drain(GoneReason::Stopped);
        }
    }

    /// All sandboxes end, each with its last lease.
    fn drain(&mut self, reason: GoneReason) {
        self.generation.renew();
        // No later one begins where one of these did.
        let own = server_key(&self.spec.tenant, &self.spec.id);
        self.ctx.images.drop_all(&own);
        self.sessions = Sticky::default();
        let idle: Vec<_> = self
            .boxes
            .iter_mut()
            .filter_map(|(id, boxed)| {
                boxed.draining = true;
                boxed.leases.is_empty().then(|| id.clone())
            })
            .collect();
        for id in idle {
            self.stop(&id, reason.clone());
        }
    }

    fn stop(&mut self, id: &SandboxId, reason: GoneReason) {
        if let Some(boxed) = self.boxes.get_mut(id)
            && boxed.phase != Phase::Ending
        {
            boxed.phase = Phase::Ending;
            for (_, gone) in boxed.leases.drain() {
                let _ = gone.send(reason.clone());
            }
            boxed.command(Command::Stop(reason));
        }
    }

    fn word(&mut self, id: &SandboxId, word: Word) {
        let Some(boxed) = self.boxes.get_mut(id) else {
            return;
        };
        match word {
            Word::Ready(address) => {
                boxed.address = Some(address);
                boxed.last_used = Instant::now();
                if matches!(boxed.phase, Phase::Starting | Phase::Restoring) {
                    boxed.phase = Phase::Ready;
                }
                self.backoff.ready();
            }
            Word::Frozen if matches!(boxed.phase, Phase::Freezing | Phase::Checkpointing) => {
                boxed.phase = Phase::Frozen;
            }
            Word::Thawed if matches!(boxed.phase, Phase::Thawing | Phase::Checkpointing) => {
                boxed.phase = Phase::Ready;
            }
            Word::Checkpointed(bytes) if boxed.phase == Phase::Checkpointing => {
                boxed.phase = Phase::Checkpointed;
                boxed.image_bytes = bytes;
            }
            Word::Unfit => {
                boxed.unfit = true;
                if boxed.phase == Phase::Checkpointing {
                    boxed.phase = Phase::Frozen;
                }
            }
            // It is told to end.
            Word::Frozen | Word::Thawed | Word::Checkpointed(_) => {}
            Word::Gone(reason, words) => {
                // One that is not found again had started, once.
                let failed = boxed.phase == Phase::Starting && !boxed.adopted;
                self.checkpoints_fail |= boxed.phase == Phase::Checkpointing;
                boxed.phase = Phase::Ending;
                for (_, gone) in boxed.leases.drain() {
                    let _ = gone.send(reason.clone());
                }
                match (failed, &reason) {
                    (true, GoneReason::Stopped) => {}
                    // Those who wait for it get another.
                    (true, GoneReason::Killed) => self.backoff.crashed(Instant::now(), &reason),
                    (true, _) => {
                        self.start_failed(words.unwrap_or_else(|| crate::words::of(&reason)));
                    }
                    (false, _) => self.backoff.ended(Instant::now(), &reason),
                }
            }
            Word::Removed => {
                self.boxes.remove(id);
                self.sessions.forget(id);
            }
        }
    }

    fn start_failed(&mut self, words: String) {
        self.backoff.start_failed(Instant::now(), words);
        // Those who could still be served by others wait on.
        if !self.boxes.values().any(Boxed::open) {
            self.refuse_waiting();
        }
    }

    /// Those who wait are told when to come back.
    fn refuse_waiting(&mut self) {
        let error = self.backoff.refusal(Instant::now());
        for waiter in self.waiting.drain(..) {
            let _ = waiter.reply.send(Err(error.clone()));
        }
    }

    /// Gives sandboxes to those who wait, in their order, and has missing ones started.
    fn pump(&mut self) {
        let now = Instant::now();
        let mut unserved = VecDeque::new();
        while let Some(waiter) = self.waiting.pop_front() {
            if waiter.reply.is_closed() {
                continue;
            }
            match self.place_for(waiter.session.as_ref()) {
                Some(id) => self.grant(&id, waiter),
                None if now >= waiter.deadline => {
                    let _ = waiter.reply.send(Err(busy(
                        "no sandbox became free in time",
                        Duration::from_secs(1),
                    )));
                }
                None => unserved.push_back(waiter),
            }
        }
        self.waiting = unserved;
        if self.removed.is_none() {
            self.want();
        }
    }

    fn grant(&mut self, id: &SandboxId, waiter: Waiter) {
        let Some(boxed) = self.boxes.get_mut(id) else {
            return;
        };
        let Some(address) = boxed.address else { return };
        let (tell, gone) = oneshot::channel();
        let lease = Lease {
            id: new_lease_id(),
            sandbox: id.clone(),
            address,
            fresh: boxed.leases_total == 0,
            waited_ms: u64::try_from(waiter.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            call_timeout_s: self.spec.limits.call_timeout_s,
        };
        let lease_id = lease.id.clone();
        let session = waiter.session;
        // Before it is given: what somebody has got is counted, whenever this program ends.
        boxed.handle.tally.add(Count::Requests, 1);
        if waiter.reply.send(Ok(Granted { lease, gone })).is_err() {
            return;
        }
        boxed.leases.insert(lease_id, tell);
        boxed.caller = waiter.caller;
        boxed.leases_total += 1;
        boxed.last_used = Instant::now();
        // It may have closed its connections, or have less in memory, when it is idle next.
        boxed.unfit = false;
        match (self.spec.isolation, session) {
            (Isolation::Session, Some(session)) if boxed.session.is_none() => {
                boxed.command(Command::Session(session.clone()));
                boxed.session = Some(session);
            }
            (Isolation::Shared, Some(session)) => self.sessions.hear(session, id.clone()),
            _ => {}
        }
    }

    fn start(&mut self) -> Result<(), ApiError> {
        self.ctx.room.check()?;
        let plan = self.plan(new_sandbox_id())?;
        // So that they stay, whatever becomes of the server meanwhile.
        for part in [&plan.app, &plan.deps] {
            part.parent().into_iter().for_each(stock::asked_for);
        }
        self.add(plan, From::Cold);
        Ok(())
    }

    fn plan(&self, id: SandboxId) -> Result<Plan, ApiError> {
        let found = layers::find(&self.ctx, &self.spec)?;
        Ok(Plan {
            id,
            key: self.key(),
            spec: Arc::clone(&self.spec),
            app: found.app,
            deps: found.deps,
            rootfs: found.rootfs,
            session: None,
        })
    }

    /// What sandboxes have to have to stand for each other, see [`key_of`].
    fn key(&self) -> String {
        format!("{}-{}", self.generation.name(), key_of(&self.spec))
    }

    /// Whether whoever calls now may get it: it was not being drained, and has today's secrets.
    fn is_todays(&self, saved: &Saved) -> bool {
        let spec = &self.spec;
        let secrets = self.ctx.secrets.versions(&spec.tenant, &spec.id);
        saved.key == self.key() && saved.secrets == Some(secrets)
    }

    fn adopt(&mut self, saved: Saved) {
        let Ok(id) = SandboxId::parse(&saved.placed.id) else {
            return;
        };
        match self.plan(id.clone()) {
            Ok(mut plan) => {
                plan.key.clone_from(&saved.key);
                plan.session.clone_from(&saved.session);
                // One that an older runner wrote down does not say.
                if !saved.app.as_os_str().is_empty() {
                    plan.app.clone_from(&saved.app);
                    plan.deps.clone_from(&saved.deps);
                }
                self.add(plan, From::Adopted(saved));
            }
            Err(error) => {
                // It cannot be served any more: end it.
                tracing::warn!(sandbox = saved.placed.id, %error, "a sandbox of an earlier life is given up");
                let (ctx, place) = (Arc::clone(&self.ctx), saved.placed.place);
                let owner = crate::meter::Owner {
                    tenant: saved.tenant,
                    server: saved.server,
                };
                tokio::spawn(
                    async move { boxes::bury(&ctx, &id, owner, saved.restores, place).await },
                );
            }
        }
    }

    fn add(&mut self, plan: Plan, from: From) {
        let me = self.me.clone();
        let tell = move |id: SandboxId, word: Word| {
            let me = me.clone();
            Box::pin(async move {
                // The server's task ends only after its last sandbox.
                let _ = me.send(Message::Word(id, word)).await;
            }) as futures_util::future::BoxFuture<'static, ()>
        };
        let (id, session) = (plan.id.clone(), plan.session.clone());
        let (adopted, draining) = match &from {
            From::Cold => (false, false),
            From::Adopted(saved) => (true, !self.is_todays(saved)),
        };
        let handle = boxes::spawn(&self.ctx, plan, from, tell);
        let now = Instant::now();
        let boxed = Boxed {
            handle,
            phase: Phase::Starting,
            address: None,
            leases: HashMap::new(),
            leases_total: u64::from(adopted),
            session,
            caller: None,
            draining,
            adopted,
            unfit: false,
            asked: now,
            image_bytes: 0,
            began: now,
            last_used: now,
        };
        self.boxes.insert(id, boxed);
    }

    fn status(&self) -> ServerStatus {
        let sandboxes = self.boxes.iter().map(|(id, boxed)| {
            let usage = self.ctx.backend.usage(id.as_str());
            SandboxStats {
                sandbox: id.clone(),
                server: self.spec.id.clone(),
                tenant: self.spec.tenant.clone(),
                state: match boxed.phase {
                    Phase::Starting | Phase::Restoring => SandboxState::Starting,
                    Phase::Frozen | Phase::Checkpointing => SandboxState::Frozen,
                    Phase::Checkpointed => SandboxState::Checkpointed,
                    _ if !boxed.open() => SandboxState::Draining,
                    _ => SandboxState::Ready,
                },
                cpu_us: usage.cpu_us,
                memory_bytes: usage.memory_bytes,
                storage_bytes: match boxed.phase {
                    Phase::Checkpointed => boxed.image_bytes,
                    _ => usage.storage_bytes,
                },
                egress_bytes: boxed.handle.tally.get(Count::EgressBytes).value,
                ingress_bytes: boxed.handle.tally.get(Count::IngressBytes).value,
                leases: u32::try_from(boxed.leases.len()).unwrap_or(u32::MAX),
                leases_total: boxed.handle.tally.get(Count::Requests).value,
                uptime_ms: u64::try_from(boxed.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            }
        });
        ServerStatus {
            server: self.spec.id.clone(),
            tenant: self.spec.tenant.clone(),
            bundle: self.spec.bundle.clone(),
            layer: layers::find(&self.ctx, &self.spec)
                .ok()
                .map(|found| found.layer),
            sandboxes: sandboxes.collect(),
            queued: u32::try_from(self.waiting.len()).unwrap_or(u32::MAX),
            last_error: self.backoff.last_error().map(str::to_owned),
        }
    }
}

/// Sandboxes of two specs with the same key can stand for each other. Scaling, idle times and egress rules change live.
fn key_of(spec: &ServerSpec) -> String {
    use sha2::{Digest, Sha256};
    let same = ServerSpec {
        scale: runner_api::Scale::default(),
        idle: runner_api::IdleTimes::default(),
        egress: Vec::new(),
        ..spec.clone()
    };
    hex(&Sha256::digest(serde_json::to_vec(&same).unwrap_or_default())[..16])
}

fn busy(words: &str, wait: Duration) -> ApiError {
    ApiError {
        retry_after_ms: Some(u64::try_from(wait.as_millis()).unwrap_or(0)),
        ..ApiError::new(ErrorCode::Busy, words)
    }
}
