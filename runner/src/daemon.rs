//! The daemon: its state folder is its own, its servers have a task each, and what ran before it is found again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use domain::{ServerId, TenantId};
use egress::{Filter, Guest, Targets};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use nix::fcntl::Flock;
use runner_api::{
    ApiError, ErrorCode, EventKind, GoneReason, LeaseId, SandboxId, SecretName, SecretValue,
    ServerSpec, ServerStatus,
};
use sandbox::{Cores, Host, Local, LocalConfig, Runsc, Wires, on_thread};
use secret_prints::{Print, PrintKey};
use serde::{Deserialize, Serialize};
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::boxes::{self, Saved};
use crate::callers::Callers;
use crate::context::{Context, Enders, Logs, Places, random_name};
use crate::events::Events;
use crate::gate::Gate;
use crate::images::Images;
use crate::images::idle::Bounds;
use crate::layers;
use crate::lock;
use crate::logs::Log;
use crate::meter::{Metering, Owner};
use crate::paths::{Paths, server_key};
use crate::room::Room;
use crate::secrets::{KeySource, Secrets};
use crate::servers::{self, Message};
use crate::shares::Shares;
use crate::stock;
use crate::store;
use crate::sweep;
use crate::wire;

/// Servers of one runner.
const SERVERS_MAX: usize = 10_000;

/// How the daemon is to run.
pub struct Options {
    /// What lasts.
    pub state: PathBuf,
    /// What lasts until the next boot.
    pub run: PathBuf,
    /// The program, if it is not to be searched for.
    pub runsc: Option<PathBuf>,
    /// More of its flags.
    pub runsc_flags: Vec<String>,
    /// The cores of sandboxes; all that this process may use if none are named.
    pub sandbox_cores: Option<Cores>,
    /// How fast a sandbox writes its storage in the long run, in MiB per second; `None` as fast as the host can.
    pub storage_write_mib_s: Option<NonZeroU32>,
    /// Refuse to run with an old runsc, and do not only warn.
    pub refuse_old: bool,
    /// Where names of egress rules may lead although it is not public.
    pub egress_private: Vec<egress::Net>,
    /// How many checkpoints of idle sandboxes there may be.
    pub idle_images: Bounds,
    /// The vault's root key.
    pub vault_key: KeySource,
    /// Group that may use the socket.
    pub socket_group: Option<u32>,
}

/// What makes one runner's names and addresses its own, for all its lives.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Instance {
    tag: String,
    base: Ipv4Addr,
}

/// What becomes of the servers that are written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Servers {
    Resumed,
    Forgotten,
}

/// A sandbox of an earlier life that nobody goes on with.
struct Orphan {
    id: SandboxId,
    owner: Owner,
    restores: u64,
    place: u32,
}

impl Orphan {
    /// One that is written down, of a server that is not.
    fn saved(saved: Saved) -> Option<Self> {
        Some(Self {
            id: SandboxId::parse(&saved.placed.id).ok()?,
            owner: Owner {
                tenant: saved.tenant,
                server: saved.server,
            },
            restores: saved.restores,
            place: saved.placed.place,
        })
    }

    /// One that was not written down yet, or no more: only what it was given and moved is.
    fn begun(id: SandboxId, owner: Owner) -> Self {
        Self {
            id,
            owner,
            restores: 0,
            place: Wires::NOBODYS,
        }
    }

    /// One that rested: its image died with the runner, so its owner hears that it is gone.
    fn tell(&self, ctx: &Context) {
        let Owner { tenant, server } = &self.owner;
        let words = "the runner ended, and with it the key of its checkpoint";
        let reason = GoneReason::Failed {
            detail: words.to_owned(),
        };
        ctx.events
            .tell(tenant, server, Some(&self.id), EventKind::Gone { reason });
        ctx.logs
            .of(&ctx.paths, tenant, server)
            .say(&self.id, format!("the sandbox ended: {words}"));
    }
}

/// Held while one server is changed.
type Changing = tokio::sync::Mutex<()>;

/// The running daemon.
pub struct Daemon {
    /// What all parts share.
    pub ctx: Arc<Context>,
    /// Who is connected.
    pub callers: Callers,
    servers: Mutex<HashMap<(TenantId, ServerId), mpsc::Sender<Message>>>,
    /// Servers that are being changed.
    changing: Mutex<HashMap<(TenantId, ServerId), Arc<Changing>>>,
    _locks: [Flock<File>; 2],
}

impl Daemon {
    /// Looks at the machine, takes the state folder, puts the packet filter in force and finds again what runs.
    ///
    /// # Errors
    /// The machine cannot run sandboxes, or another runner has one of the folders.
    pub fn start(options: &Options) -> BoxFuture<'_, Result<Arc<Self>>> {
        // Boxed, as all that the program polls: so it is compiled here, and not again there.
        Self::start_with(options, Servers::Resumed).boxed()
    }

    async fn start_with(options: &Options, what: Servers) -> Result<Arc<Self>> {
        let host = Host::look(today(), options.runsc.clone(), options.state.clone()).await;
        let doctor = crate::doctor::report(&host, &options.state, &options.run);
        ensure!(doctor.fit, "{}", crate::doctor::text(&doctor));
        let old = host
            .findings
            .iter()
            .any(|f| f.name == "gVisor" && f.state == sandbox::State::Warn);
        if old {
            ensure!(
                !options.refuse_old,
                "runsc is too old and --refuse-old-runsc is set\n{}",
                crate::doctor::text(&doctor)
            );
            tracing::warn!(
                version = host.version,
                "runsc is old: known holes in it may be open; see `weir-runner doctor`"
            );
        }
        let paths =
            Paths::make(&options.state, &options.run).context("make the runner's folders")?;
        let state_lock = lock::take(&paths.state)?;
        nix::sys::prctl::set_child_subreaper(true).context("adopt sandboxes of ended helpers")?;
        let instance = instance(&paths.state)?;
        // Before anything in there is looked at: what runs may be another's.
        let locks = [state_lock, lock::take_run(&paths, &instance.tag)?];
        crate::shim::install(&paths.run)?;
        let filter = Filter::new(&instance.tag)?;
        let wires = Wires::new(
            instance.base,
            format!("w{}-", instance.tag),
            paths.run.join("netns"),
        );
        let sealed = wires.clone();
        on_thread("weir-ip", move || sealed.seal())
            .await
            .context("addresses without a sandbox cannot be made to lead nowhere; nothing is started without it")?;
        let gateway = wires.gateway();
        fs::write(
            paths.run.join("resolv.conf"),
            format!("nameserver {gateway}\noptions timeout:3 attempts:2\n"),
        )?;
        let present = wires.present();
        let cgroups = host.cgroups.clone().context("no control groups")?;
        let backend = Local::new(LocalConfig {
            runsc: Runsc {
                program: host.runsc.clone(),
                state: paths.run.join("runsc"),
                cover_sys_net: host.cover_sys_net,
                extra: options.runsc_flags.clone(),
            },
            cgroups,
            parent: format!("/weir-{}", instance.tag),
            cores: options
                .sandbox_cores
                .clone()
                .unwrap_or_else(Cores::of_this_process),
            wires,
            boxes: paths.run.join("boxes"),
            storage: paths.state.join("storage"),
        })?;
        let saved: Vec<Saved> = store::all(&paths.state.join("boxes"));
        let events = Events::open(&paths.state.join("events.jsonl"));
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let ctx = Arc::new(Context {
            backend: Arc::new(backend),
            storage_write_mib_s: options.storage_write_mib_s,
            filter,
            gateway,
            shares: Shares::of_this_process(),
            targets: Targets {
                private: options.egress_private.clone(),
                refused: Vec::new(),
            },
            // Those of sandboxes that are not written down too, until they are ended.
            places: Places::new(saved.iter().map(|s| s.placed.place).chain(present.clone())),
            gate: Gate::new(2 * cores),
            builds: Gate::new(cores),
            short_builds: Gate::new(cores),
            room: Room::of(&paths.state),
            stocked: Notify::new(),
            enders: Enders::default(),
            events: events.clone(),
            images: Images::begin(
                &paths.state.join("checkpoints"),
                &paths.run.join("images"),
                options.idle_images,
            )?,
            logs: Logs::default(),
            metering: Metering::open(&paths.state.join("usage"), &paths.tallies())?,
            secrets: match what {
                Servers::Resumed => Secrets::open(&paths.state, &options.vault_key, events)?,
                // Who ends everything opens nothing, and needs no key for it.
                Servers::Forgotten => Secrets::none(&paths.run.join("no-vault"), events)?,
            },
            host,
            paths,
        });
        let daemon = Arc::new(Self {
            ctx,
            callers: Callers::default(),
            servers: Mutex::default(),
            changing: Mutex::default(),
            _locks: locks,
        });
        daemon.resume(saved, present, what).await?;
        Ok(daemon)
    }

    /// Puts the filter in force, gives each server its sandboxes back, and ends what belongs to nobody.
    async fn resume(
        self: &Arc<Self>,
        saved: Vec<Saved>,
        present: Vec<u32>,
        what: Servers,
    ) -> Result<()> {
        let ctx = &self.ctx;
        // With no entry at first: until a sandbox is taken over, it reaches nobody.
        let guests: Vec<Guest> = Vec::new();
        ctx.filter
            .install(&guests)
            .await
            .context("the packet filter cannot be put in force; nothing is started without it")?;
        let placed: HashSet<u32> = saved.iter().map(|s| s.placed.place).collect();
        let known: HashSet<String> = saved.iter().map(|s| s.placed.id.clone()).collect();
        // Before any server begins: what it starts is nobody's left-over.
        let begun = ctx.metering.strangers(|id| known.contains(id.as_str()));
        let leftovers = ctx.backend.leftovers().await;
        let unfinished = sweep::unfinished(&ctx.paths.state);
        ctx.metering
            .keep(|id| known.contains(id) || begun.iter().any(|(begun, _)| begun.as_str() == id));
        let (checkpointed, saved): (Vec<_>, Vec<_>) =
            saved.into_iter().partition(|saved| saved.checkpointed);
        let checkpointed: Vec<_> = checkpointed.into_iter().filter_map(Orphan::saved).collect();
        checkpointed.iter().for_each(|orphan| orphan.tell(ctx));
        let mut by_server: HashMap<(TenantId, ServerId), Vec<Saved>> = HashMap::new();
        for saved in saved {
            by_server
                .entry((saved.tenant.clone(), saved.server.clone()))
                .or_default()
                .push(saved);
        }
        let specs = match what {
            Servers::Resumed => store::all::<ServerSpec>(&ctx.paths.state.join("servers")),
            Servers::Forgotten => Vec::new(),
        };
        for spec in specs {
            let key = (spec.tenant.clone(), spec.id.clone());
            let adopted = by_server.remove(&key).unwrap_or_default();
            match spec.check() {
                Ok(checked) => {
                    let sender = servers::spawn(ctx, checked, adopted);
                    self.lock().insert(key, sender);
                }
                Err(errors) => {
                    tracing::error!(server = %key.1, error = %errors[0], "a stored server is not within limits any more");
                    by_server.insert(key, adopted);
                }
            }
        }
        let orphans = by_server.into_values().flatten().filter_map(Orphan::saved);
        let begun = begun
            .into_iter()
            .map(|(id, owner)| Orphan::begun(id, owner));
        let all: Vec<Orphan> = orphans.chain(begun).chain(checkpointed).collect();
        let named: HashSet<String> = all.iter().map(|o| o.id.to_string()).collect();
        let strangers: Vec<String> = leftovers
            .into_iter()
            .filter(|id| !known.contains(id) && !named.contains(id))
            .collect();
        let ctx = Arc::clone(ctx);
        let end =
            tokio::spawn(async move {
                let buried = all.into_iter().map(async |orphan| {
                tracing::warn!(sandbox = %orphan.id, "a sandbox that belongs to nobody is ended");
                boxes::bury(&ctx, &orphan.id, orphan.owner, orphan.restores, orphan.place).await;
            });
                let ended = strangers.into_iter().map(async |id| {
                    tracing::warn!(sandbox = id, "a sandbox that belongs to nobody is ended");
                    ctx.backend.destroy(&id, Wires::NOBODYS).await;
                });
                tokio::join!(
                    futures_util::future::join_all(buried),
                    futures_util::future::join_all(ended)
                );
                on_thread("weir-sweep", move || sweep::remove(&unfinished)).await;
                let free = present.iter().filter(|place| !placed.contains(place));
                free.for_each(|place| ctx.places.give(*place));
            });
        if what == Servers::Forgotten {
            end.await.context("end sandboxes")?;
        }
        Ok(())
    }

    /// Opens the socket. One that an earlier life left is replaced.
    ///
    /// # Errors
    /// The system's.
    pub fn listen(&self, group: Option<u32>) -> Result<UnixListener> {
        let path = self.ctx.paths.run.join("runner.sock");
        store::remove(&path);
        let listener =
            UnixListener::bind(&path).with_context(|| format!("listen on {}", path.display()))?;
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        if group.is_some() {
            std::os::unix::fs::chown(&path, None, group)?;
            // The folder has to let the group through to the socket, and to nothing else.
            fs::set_permissions(&self.ctx.paths.run, fs::Permissions::from_mode(0o711))?;
        }
        Ok(listener)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(TenantId, ServerId), mpsc::Sender<Message>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(
        &self,
        tenant: &TenantId,
        server: &ServerId,
    ) -> Result<mpsc::Sender<Message>, ApiError> {
        let found = self.lock().get(&(tenant.clone(), server.clone())).cloned();
        found.ok_or_else(|| {
            ApiError::new(ErrorCode::NotFound, format!("there is no server {server}"))
        })
    }

    /// Changes of one server come one after the other: each sees, on disk and in memory, what the one before left.
    async fn change(&self, key: &(TenantId, ServerId)) -> tokio::sync::OwnedMutexGuard<()> {
        let own = {
            let mut changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            changing.retain(|_, one| Arc::strong_count(one) > 1);
            Arc::clone(changing.entry(key.clone()).or_default())
        };
        own.lock_owned().await
    }

    /// Puts a message into a server's queue.
    ///
    /// # Errors
    /// No such server, or its queue is full.
    pub fn tell(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        message: Message,
    ) -> Result<(), ApiError> {
        self.sender(tenant, server)?
            .try_send(message)
            .map_err(|_| ApiError {
                retry_after_ms: Some(1000),
                ..ApiError::new(ErrorCode::Busy, "too much is going on at this server")
            })
    }

    /// A lease comes back. Waits for room in the queue if it must: a lost release would hold a sandbox for ever.
    pub fn give_back(&self, tenant: &TenantId, server: &ServerId, lease: LeaseId, timed_out: bool) {
        let Ok(sender) = self.sender(tenant, server) else {
            return;
        };
        let message = Message::Release { lease, timed_out };
        if let Err(mpsc::error::TrySendError::Full(message)) = sender.try_send(message) {
            tokio::spawn(async move {
                let _ = sender.send(message).await;
            });
        }
    }

    /// Has a server's sandboxes ended, each with its last lease, and new ones started for whoever comes. Written down when this
    /// returns.
    ///
    /// # Errors
    /// No such server, or its queue is full.
    pub async fn restart(&self, tenant: &TenantId, server: &ServerId) -> Result<(), ApiError> {
        let (done, drained) = oneshot::channel();
        self.tell(tenant, server, Message::Restart(done))?;
        let removed = |_| ApiError::new(ErrorCode::NotFound, "the server was removed");
        drained.await.map_err(removed)
    }

    /// Makes or changes a server.
    ///
    /// # Errors
    /// What is wrong with the spec.
    pub async fn put_server(self: &Arc<Self>, spec: ServerSpec) -> Result<(), ApiError> {
        let bad = |text: String| ApiError::new(ErrorCode::BadRequest, text);
        let checked = spec.check().map_err(|errors| {
            bad(errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "))
        })?;
        let spec = checked.get().clone();
        wire::allowlist(&spec.egress).map_err(|e| bad(e.to_string()))?;
        let info = layers::bundle_info(&self.ctx, &spec.tenant, &spec.bundle)?;
        if info.runtime != spec.runtime {
            return Err(bad(format!(
                "the bundle is for {}, the server for {}",
                info.runtime.as_str(),
                spec.runtime.as_str()
            )));
        }
        // So that it stays until the server is written down.
        stock::asked_for(&self.ctx.paths.bundle(&spec.tenant, &spec.bundle));
        let key = (spec.tenant.clone(), spec.id.clone());
        let _changing = self.change(&key).await;
        if self.lock().len() >= SERVERS_MAX && !self.lock().contains_key(&key) {
            return Err(ApiError::new(
                ErrorCode::NoCapacity,
                format!("this runner has {SERVERS_MAX} servers, which is its limit"),
            ));
        }
        store::put(&self.ctx.paths.server(&spec.tenant, &spec.id), &spec).map_err(|error| {
            tracing::error!(%error, "a server cannot be stored");
            ApiError::new(
                ErrorCode::Internal,
                "the server cannot be stored; the runner's log has the reason",
            )
        })?;
        // The task of one whose removal failed has ended.
        let existing = self.lock().get(&key).cloned();
        match existing.filter(|sender| !sender.is_closed()) {
            Some(sender) => {
                let _ = sender.send(Message::Put(checked)).await;
            }
            None => {
                let sender = servers::spawn(&self.ctx, checked, Vec::new());
                self.lock().insert(key, sender);
            }
        }
        Ok(())
    }

    /// Ends a server and all that is its own.
    ///
    /// # Errors
    /// There is none.
    pub async fn remove_server(
        &self,
        tenant: &TenantId,
        server: &ServerId,
    ) -> Result<(), ApiError> {
        let _changing = self.change(&(tenant.clone(), server.clone())).await;
        let sender = self.sender(tenant, server)?;
        let (done, ended) = oneshot::channel();
        if sender.send(Message::Remove(done)).await.is_ok() {
            let _ = ended.await;
        }
        self.ctx.logs.forget(&self.ctx.paths, tenant, server);
        self.ctx.secrets.remove_server(tenant, server)?;
        store::remove(&self.ctx.paths.generation(tenant, server));
        self.ctx.images.drop_all(&server_key(tenant, server));
        // Last: until its secrets are gone it is there, also for the next life, and can be removed once more.
        store::remove(&self.ctx.paths.server(tenant, server));
        self.lock().remove(&(tenant.clone(), server.clone()));
        Ok(())
    }

    /// How servers are.
    pub async fn servers(&self, tenant: Option<&TenantId>) -> Vec<ServerStatus> {
        let senders: Vec<_> = {
            let servers = self.lock();
            let own = servers
                .iter()
                .filter(|((owner, _), _)| tenant.is_none_or(|t| t == owner));
            own.map(|(_, sender)| sender.clone()).collect()
        };
        let mut all = Vec::new();
        for sender in senders {
            let (reply, status) = oneshot::channel();
            if sender.send(Message::Status(reply)).await.is_ok() {
                all.extend(status.await);
            }
        }
        all.sort_by(|a, b| (&a.tenant, &a.server).cmp(&(&b.tenant, &b.server)));
        all
    }

    /// The log of a server.
    ///
    /// # Errors
    /// There is no such server.
    pub fn log(&self, tenant: &TenantId, server: &ServerId) -> Result<Log, ApiError> {
        self.sender(tenant, server)?;
        Ok(self.ctx.logs.of(&self.ctx.paths, tenant, server))
    }

    /// Writes a secret.
    ///
    /// # Errors
    /// There is no such server, or the vault cannot store it.
    pub fn set_secret(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &SecretName,
        value: SecretValue,
    ) -> Result<(), ApiError> {
        self.sender(tenant, server)?;
        self.ctx.secrets.set(tenant, server, name, value)
    }

    /// Names of secrets.
    ///
    /// # Errors
    /// There is no such server.
    pub fn list_secrets(
        &self,
        tenant: &TenantId,
        server: &ServerId,
    ) -> Result<Vec<SecretName>, ApiError> {
        self.sender(tenant, server)?;
        Ok(self.ctx.secrets.list(tenant, server))
    }

    /// Fingerprints of a server's secrets.
    ///
    /// # Errors
    /// There is no such server, or the vault cannot open them.
    pub fn secret_prints(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        key: &PrintKey,
    ) -> Result<BTreeMap<SecretName, Vec<Print>>, ApiError> {
        self.sender(tenant, server)?;
        self.ctx.secrets.prints(tenant, server, key)
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// There is no such server or secret.
    pub fn remove_secret(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &SecretName,
    ) -> Result<(), ApiError> {
        self.sender(tenant, server)?;
        self.ctx.secrets.remove(tenant, server, name)
    }
}

/// Made once; addresses are drawn so that runners side by side do not clash, and checked against this host's own.
fn instance(state: &Path) -> Result<Instance> {
    let path = state.join("instance.json");
    if let Some(instance) = store::get(&path) {
        return Ok(instance);
    }
    let tag: String = random_name().chars().take(4).collect();
    let base = (0..100)
        .map(|_| {
            let mut bytes = [0; 2];
            getrandom::fill(&mut bytes).expect("the system has random numbers");
            // 10.128.0.0/9 in steps of a /18.
            Ipv4Addr::new(10, 128 | (bytes[0] & 0x7f), bytes[1] & 0xc0, 0)
        })
        .find(|base| !in_use(*base))
        .context("no free address range was found in 10.128.0.0/9")?;
    let instance = Instance { tag, base };
    store::put(&path, &instance)?;
    Ok(instance)
}

/// True if a route of this host (other than the default one) leads into these 16384 addresses.
fn in_use(base: Ipv4Addr) -> bool {
    let text = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let base = u32::from(base);
    text.lines().skip(1).any(|line| {
        let mut fields = line.split_whitespace();
        let number = |field: Option<&str>| {
            field
                .and_then(|f| u32::from_str_radix(f, 16).ok())
                .map(u32::swap_bytes)
        };
        let (destination, mask) = (number(fields.nth(1)), number(fields.nth(5)));
        match (destination, mask) {
            (Some(destination), Some(mask)) if mask != 0 => {
                let common = mask & !0x3fff;
                destination & common == base & common
            }
            _ => false,
        }
    })
}

/// Ends all sandboxes of a runner that is not running, and removes its packet filter.
///
/// # Errors
/// A runner works with one of the folders, or the machine cannot run sandboxes.
pub fn purge(options: &Options) -> BoxFuture<'_, Result<()>> {
    forget(options).boxed()
}

async fn forget(options: &Options) -> Result<()> {
    let daemon = Daemon::start_with(options, Servers::Forgotten).await?;
    daemon
        .ctx
        .filter
        .uninstall()
        .await
        .context("remove the packet filter")?;
    daemon.ctx.images.end();
    daemon.ctx.backend.retire();
    Ok(())
}

/// The date as a number: 20261121.
pub fn today() -> u32 {
    let days = crate::events::now_ms() / 86_400_000;
    // Civil date from days (Howard Hinnant's algorithm, public domain description).
    let z = days + 719_468;
    let era = z / 146_097;
    let doe = z % 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + u64::from(month <= 2);
    u32::try_from(year * 10_000 + month * 100 + day).unwrap_or(0)
}
