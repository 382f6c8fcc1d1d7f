//! One sandbox, from the decision to start it to the last trace that is removed: one task, one queue of commands.
//!
//! ```text
//!  Starting --ready--> Alive <--freeze, thaw--> Alive(frozen) --checkpoint--> Resting
//!     |                  | ^                                                   |   |
//!     |                  | '------------------- restore -----------------------'   |
//!     '---- failed ------'------------- ended, stopped, failed --------------------'---> Ended --destroy--> (nothing left)
//! ```
//! Each state is a type and a transition consumes it. Whoever started it hears [`Word`]s and nothing else.

mod commands;
mod image;
mod launch;
mod rest;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use metering::Tally;
use runner_api::{EventKind, GoneReason, LogStream, SandboxId, ServerSpec, SessionKey};
use sandbox::{End, Placed, Prepared, SandboxError, Watch, on_thread};
use secret_prints::PrintSet;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use self::commands::Commands;
pub use self::commands::{Command, Ender};
pub(crate) use self::commands::{Told, commands};
use crate::context::Context;
use crate::gate::Pass;
use crate::images::idle;
use crate::logs::{self, Log};
use crate::meter;
use crate::secrets::Versions;
use crate::store;
use crate::wire::{Connected, Owner};
use crate::words;

/// From the start of its program to the first accepted connection.
const START_MAX: Duration = Duration::from_secs(60);
/// The same for one that is found again: most answer at once.
const ADOPT_MAX: Duration = Duration::from_secs(20);
/// How long one that was launched keeps others from starting.
const PASS_MAX: Duration = Duration::from_secs(4);
/// A server that takes longer to answer its first client has an image without it.
const REHEARSAL_MAX: Duration = Duration::from_secs(3);
/// How often a starting server is tried.
const PROBE_EVERY: Duration = Duration::from_millis(5);
/// What a sandbox that failed wrote last is often still in the pipe.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// What is to be started.
#[derive(Clone)]
pub struct Plan {
    /// Its id.
    pub id: SandboxId,
    /// What it runs, as checked.
    pub spec: Arc<ServerSpec>,
    /// The generation and a hash of the spec: what is started for another key does not stand for this one.
    pub key: String,
    /// The unpacked bundle.
    pub app: PathBuf,
    /// The layer's packages.
    pub deps: PathBuf,
    /// The root file system.
    pub rootfs: PathBuf,
    /// Whose session, if it is known already.
    pub session: Option<SessionKey>,
}

/// What is written down about a running sandbox, so that the next life of this program finds it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Saved {
    /// Its process.
    pub placed: Placed,
    /// Owner.
    pub tenant: domain::TenantId,
    /// Server.
    pub server: domain::ServerId,
    /// See [`Plan::key`].
    pub key: String,
    /// See [`Plan::app`]. It may be of another bundle than its server has now.
    #[serde(default)]
    pub app: PathBuf,
    /// See [`Plan::deps`].
    #[serde(default)]
    pub deps: PathBuf,
    /// Which values its files of secrets have, and none of them. An older runner did not write that down.
    #[serde(default)]
    pub secrets: Option<Versions>,
    /// Its session.
    pub session: Option<SessionKey>,
    /// How often it was restored from an image of its own.
    #[serde(default)]
    pub restores: u64,
    /// From before an image of its own is taken until it runs again: only the life that takes it can read it, so the next
    /// one ends what is left.
    #[serde(default)]
    pub checkpointed: bool,
}

/// What a sandbox tells its server.
#[derive(Debug)]
pub enum Word {
    /// It answers at this address.
    Ready(SocketAddr),
    /// It stands still.
    Frozen,
    /// It goes on.
    Thawed,
    /// It lies on disk, with so many bytes. `Ready` when it runs again.
    Checkpointed(u64),
    /// It cannot be checkpointed, and stands still as before.
    Unfit,
    /// It is gone; never preceded by `Ready` if it failed to start. In words, for the owner.
    Gone(GoneReason, Option<String>),
    /// Nothing of it is left; the last word.
    Removed,
}

/// The server's end of a sandbox.
pub struct Handle {
    /// Its commands.
    pub commands: Commands,
    /// What is counted.
    pub tally: Arc<Tally>,
}

/// How the sandbox comes to be.
pub enum From {
    /// From its first instruction.
    Cold,
    /// It runs already.
    Adopted(Saved),
}

/// Starts the task of a sandbox. `tell` gets its words.
pub fn spawn<T>(ctx: &Arc<Context>, plan: Plan, from: From, tell: T) -> Handle
where
    T: Fn(SandboxId, Word) -> futures_util::future::BoxFuture<'static, ()> + Send + Sync + 'static,
{
    let (commands, told) = commands();
    let owner = meter::Owner {
        tenant: plan.spec.tenant.clone(),
        server: plan.spec.id.clone(),
    };
    let restores = match &from {
        From::Cold => 0,
        From::Adopted(saved) => saved.restores,
    };
    let tally = ctx.metering.add(&plan.id, owner, restores);
    ctx.enders
        .add(&plan.id, &plan.spec.tenant, commands.ender());
    let log = ctx.logs.of(&ctx.paths, &plan.spec.tenant, &plan.spec.id);
    let life = Life {
        ctx: Arc::clone(ctx),
        log,
        plan,
        commands: told,
        tally: Arc::clone(&tally),
        rules: None,
        restores,
        tell: Box::new(tell),
    };
    tokio::spawn(life.run(from));
    Handle { commands, tally }
}

/// The last reading of a sandbox. To be taken before anything of it is removed.
async fn last_reading(ctx: &Arc<Context>, id: &SandboxId) {
    let (ctx, id) = (Arc::clone(ctx), id.clone());
    on_thread("weir-meter", move || {
        ctx.metering.finish(&id, &*ctx.backend)
    })
    .await;
}

/// Ends a sandbox of an earlier life that nobody goes on with. What it used is counted.
pub async fn bury(
    ctx: &Arc<Context>,
    id: &SandboxId,
    owner: meter::Owner,
    restores: u64,
    place: u32,
) {
    ctx.metering.add(id, owner, restores);
    last_reading(ctx, id).await;
    ctx.backend.destroy(id.as_str(), place).await;
    store::remove(&ctx.paths.boxed(id.as_str()));
    ctx.metering.forget(id);
    ctx.places.give(place);
}

type Tell =
    Box<dyn Fn(SandboxId, Word) -> futures_util::future::BoxFuture<'static, ()> + Send + Sync>;

struct Life {
    ctx: Arc<Context>,
    log: Log,
    plan: Plan,
    commands: Told,
    tally: Arc<Tally>,
    /// Egress rules that came after it began.
    rules: Option<egress::Allowlist>,
    /// How often it was restored from an image of its own.
    restores: u64,
    tell: Tell,
}

/// What a sandbox needs before it can be started.
struct Surroundings {
    prepared: Prepared,
    /// Which values its files of secrets have.
    versions: Versions,
    /// Its secrets, as its log is searched for them.
    secrets: Arc<PrintSet>,
}

/// A sandbox that answers, or stands still.
struct Alive {
    watch: Watch,
    connected: Connected,
    readers: Vec<JoinHandle<()>>,
    address: SocketAddr,
    frozen: bool,
    /// What is written down about it.
    saved: Saved,
}

/// What ends a time awake.
enum Turn {
    /// It is over.
    Gone(GoneReason),
    /// An image of it may be taken.
    Rest(idle::Taking),
}

/// Why it did not start, for its server and its owner.
struct NotStarted {
    reason: GoneReason,
    words: String,
}

impl Life {
    async fn run(mut self, from: From) {
        let began = Instant::now();
        let mut place = None;
        let mut started = match from {
            From::Cold => self.start(&mut place, began).await,
            From::Adopted(saved) => {
                place = Some(saved.placed.place);
                self.adopt_answering(saved).await
            }
        };
        loop {
            let mut alive = match started {
                Ok(alive) => alive,
                Err(NotStarted { reason, words }) => {
                    self.gone(reason, Some(words)).await;
                    break;
                }
            };
            (self.tell)(self.plan.id.clone(), Word::Ready(alive.address)).await;
            self.first_reading();
            match self.live(&mut alive).await {
                Turn::Gone(reason) => {
                    self.gone(reason, None).await;
                    self.let_go(alive).await;
                    break;
                }
                Turn::Rest(taking) => started = self.rest(alive, taking).await,
            }
        }
        self.remove(place).await;
    }

    /// Nobody waits for it: another thread may be writing down all that is metered.
    fn first_reading(&self) {
        let (ctx, id) = (Arc::clone(&self.ctx), self.plan.id.clone());
        tokio::spawn(on_thread("weir-meter", move || {
            ctx.metering.begin(&id, &*ctx.backend);
        }));
    }

    async fn let_go(&self, alive: Alive) {
        alive.connected.close(&self.ctx).await;
        alive.readers.iter().for_each(JoinHandle::abort);
    }

    async fn gone(&self, reason: GoneReason, words: Option<String>) {
        let text = words
            .clone()
            .unwrap_or_else(|| format!("the sandbox ended: {}", words::of(&reason)));
        self.log.say(&self.plan.id, text);
        self.event(EventKind::Gone {
            reason: reason.clone(),
        });
        (self.tell)(self.plan.id.clone(), Word::Gone(reason, words)).await;
    }

    async fn remove(self, place: Option<u32>) {
        let id = self.plan.id.as_str();
        last_reading(&self.ctx, &self.plan.id).await;
        if let Some(place) = place {
            self.ctx.backend.destroy(id, place).await;
            self.ctx.places.give(place);
        }
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            store::remove(&logs::pipe_path(
                &self.ctx.paths.run.join("pipes"),
                id,
                stream,
            ));
        }
        store::remove(&self.ctx.paths.boxed(id));
        self.ctx.metering.forget(&self.plan.id);
        self.ctx.enders.take(&self.plan.id);
        (self.tell)(self.plan.id.clone(), Word::Removed).await;
    }

    async fn start(
        &mut self,
        place: &mut Option<u32>,
        began: Instant,
    ) -> Result<Alive, NotStarted> {
        let internal = |error: anyhow::Error| NotStarted {
            reason: GoneReason::Failed {
                detail: format!("{error:#}"),
            },
            words:
                "the sandbox could not be made; the operator finds the reason in the runner's log"
                    .into(),
        };
        let ctx = Arc::clone(&self.ctx);
        if let Some(missing) = self.missing_secret() {
            let words = format!("the secret {missing} is not set; set it, then call again");
            return Err(NotStarted {
                reason: GoneReason::Failed {
                    detail: words.clone(),
                },
                words,
            });
        }
        let pass = self.pass_the_gate().await?;
        let number = ctx
            .places
            .take()
            .ok_or_else(|| internal(anyhow!("all places of the address pool are in use")))?;
        *place = Some(number);
        let env = self
            .plan
            .spec
            .env
            .iter()
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        self.event(EventKind::Starting { env });
        let image = self.image_name();
        let (alive, restored) = self.bring_up(number, image.as_deref()).await.map_err(|error| {
            // Its program ended before anybody could watch it.
            if let Some(SandboxError::Gone { .. }) = error.downcast_ref() {
                let reason = GoneReason::Exited { code: None };
                return NotStarted { words: self.explain(&reason), reason };
            }
            tracing::error!(sandbox = %self.plan.id, error = format!("{error:#}"), "a sandbox cannot be started");
            internal(error)
        })?;
        let answers = self.wait_with_pass(&alive, START_MAX, pass).await;
        if let Err(reason) = &answers {
            // One that was told to end says nothing about the image.
            let own_fault = matches!(
                reason,
                GoneReason::StartTimeout | GoneReason::Exited { .. } | GoneReason::OutOfMemory
            );
            if let (true, true, Some(image)) = (restored, own_fault, &image) {
                ctx.images.forget(image);
            }
            tokio::time::sleep(LAST_WORDS).await;
            self.let_go(alive).await;
            return Err(NotStarted {
                words: self.explain(reason),
                reason: reason.clone(),
            });
        }
        if let (false, Some(image)) = (restored, &image)
            && let Err(reason) = self.checkpoint(image, alive.address).await
        {
            self.let_go(alive).await;
            return Err(NotStarted {
                words: self.explain(&reason),
                reason,
            });
        }
        drop(answers);
        let took_ms = millis(began);
        let from = if restored { "restored" } else { "cold" };
        self.log
            .say(&self.plan.id, format!("ready after {took_ms} ms ({from})"));
        self.event(EventKind::Ready {
            from: from.into(),
            took_ms,
        });
        Ok(alive)
    }

    /// A place among those that start. One that is to end does not wait for it.
    async fn pass_the_gate(&self) -> Result<Pass, NotStarted> {
        let gate = &self.ctx.gate;
        tokio::select! {
            pass = gate.enter(&self.plan.spec.tenant) => Ok(pass),
            reason = self.commands.stopped() => {
                let words = format!("the sandbox ended: {}", words::of(&reason));
                Err(NotStarted { reason, words })
            }
        }
    }

    /// Waits until it answers. One that takes long uses little of the processor, and gives its place to the next.
    async fn wait_with_pass(
        &mut self,
        alive: &Alive,
        max: Duration,
        pass: Pass,
    ) -> Result<Option<Pass>, GoneReason> {
        match self.wait_until_it_answers(alive, PASS_MAX.min(max)).await {
            Ok(()) => Ok(Some(pass)),
            Err(GoneReason::StartTimeout) => {
                drop(pass);
                let left = max.saturating_sub(PASS_MAX);
                self.wait_until_it_answers(alive, left).await.map(|()| None)
            }
            Err(reason) => Err(reason),
        }
    }

    /// Tries to connect until the server listens. We close first: a connection that the guest would close lingers in
    /// its network stack, and then no checkpoint could be taken.
    async fn wait_until_it_answers(
        &mut self,
        alive: &Alive,
        max: Duration,
    ) -> Result<(), GoneReason> {
        let deadline = tokio::time::Instant::now() + max;
        loop {
            let probe = async {
                let connected =
                    tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(alive.address))
                        .await;
                if matches!(connected, Ok(Ok(_))) {
                    return true;
                }
                tokio::time::sleep(PROBE_EVERY).await;
                false
            };
            tokio::select! {
                biased;
                code = alive.watch.ended() => return Err(self.why_it_ended(code)),
                command = self.commands.next() => match command {
                    Command::Stop(reason) => return Err(reason),
                    Command::Rules(rules) => self.obey(alive, rules),
                    Command::Freeze | Command::Thaw | Command::Checkpoint | Command::Restore | Command::Session(_) => {}
                },
                () = tokio::time::sleep_until(deadline) => return Err(GoneReason::StartTimeout),
                answered = probe => if answered { return Ok(()) },
            }
        }
    }

    /// Serves until it ends, is told to, or may rest.
    async fn live(&mut self, alive: &mut Alive) -> Turn {
        loop {
            tokio::select! {
                biased;
                code = alive.watch.ended() => return Turn::Gone(self.why_it_ended(code)),
                command = self.commands.next() => match command {
                    Command::Stop(reason) => return Turn::Gone(reason),
                    Command::Rules(rules) => self.obey(alive, rules),
                    Command::Session(session) => self.belong(alive, session),
                    Command::Freeze => if let Err(reason) = self.freeze(alive, true).await { return Turn::Gone(reason) },
                    Command::Thaw => if let Err(reason) = self.freeze(alive, false).await { return Turn::Gone(reason) },
                    Command::Checkpoint => if let Some(taking) = self.may_rest(alive).await { return Turn::Rest(taking) },
                    // It is here.
                    Command::Restore => {}
                },
            }
        }
    }

    /// Rules that outlive a rest.
    fn obey(&mut self, alive: &Alive, rules: egress::Allowlist) {
        alive.connected.set_rules(rules.clone());
        self.rules = Some(rules);
    }

    /// Written down, so that the session finds it again after a restart of the runner.
    fn belong(&mut self, alive: &mut Alive, session: SessionKey) {
        self.plan.session = Some(session.clone());
        alive.saved.session = Some(session);
        let path = self.ctx.paths.boxed(self.plan.id.as_str());
        if let Err(error) = store::put(&path, &alive.saved) {
            tracing::warn!(sandbox = %self.plan.id, %error, "whose session a sandbox is cannot be written down");
        }
    }

    async fn freeze(&self, alive: &mut Alive, frozen: bool) -> Result<(), GoneReason> {
        if alive.frozen != frozen {
            let id = self.plan.id.as_str();
            let done = if frozen {
                self.ctx.backend.freeze(id).await
            } else {
                self.ctx.backend.thaw(id).await
            };
            done.map_err(|e| GoneReason::Failed {
                detail: e.to_string(),
            })?;
            alive.frozen = frozen;
            self.event(if frozen {
                EventKind::Frozen
            } else {
                EventKind::Thawed
            });
        }
        (self.tell)(
            self.plan.id.clone(),
            if frozen { Word::Frozen } else { Word::Thawed },
        )
        .await;
        Ok(())
    }

    /// The kernel's counters say more than an exit code: gVisor dies whole.
    fn why_it_ended(&self, end: End) -> GoneReason {
        let alarms = self.ctx.backend.alarms(self.plan.id.as_str());
        if alarms.oom_kills > 0 {
            GoneReason::OutOfMemory
        } else if alarms.pids_refused > 0 {
            GoneReason::TooManyProcesses
        } else {
            reason_of(end)
        }
    }

    /// What the owner is told about a start that failed.
    fn explain(&self, reason: &GoneReason) -> String {
        let spec = &self.plan.spec;
        let said = self.log.tail_of(&self.plan.id, 20);
        let hint = words::hint(&said, spec.runtime);
        let what = match reason {
            GoneReason::StartTimeout => format!(
                "nothing listened on port {} within {} s; the server has to listen on 0.0.0.0:{}",
                spec.port,
                START_MAX.as_secs(),
                spec.port
            ),
            GoneReason::Exited { .. } => format!(
                "`{}` ended before it listened on port {}",
                spec.command.join(" "),
                spec.port
            ),
            other => format!("the server did not start: {}", words::of(other)),
        };
        let last = said.iter().rev().find(|l| !l.trim().is_empty()).map(|l| {
            format!(
                "; it wrote last: {}",
                l.trim().chars().take(300).collect::<String>()
            )
        });
        [Some(what), last, hint].into_iter().flatten().collect()
    }

    fn owner(&self) -> Owner {
        let spec = &self.plan.spec;
        Owner {
            tenant: spec.tenant.clone(),
            server: spec.id.clone(),
            sandbox: self.plan.id.clone(),
        }
    }

    fn event(&self, kind: EventKind) {
        let spec = &self.plan.spec;
        self.ctx
            .events
            .tell(&spec.tenant, &spec.id, Some(&self.plan.id), kind);
    }
}

/// A guest that ends with the code of a signal did so itself: that is no kill from outside, which is forgiven.
fn reason_of(end: End) -> GoneReason {
    match end {
        End::Signaled(9) => GoneReason::Killed,
        End::Signaled(signal) => GoneReason::Exited {
            code: Some(128 + signal),
        },
        End::Exited(code) => GoneReason::Exited { code: Some(code) },
        End::Unknown => GoneReason::Exited { code: None },
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
