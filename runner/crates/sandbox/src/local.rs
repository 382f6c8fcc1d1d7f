//! Sandboxes on this machine, by runsc.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::backend::{Backend, Launch, Order, Output, Placed, Prepared, Usage};
use crate::cgroup::{Alarms, Cgroups};
use crate::cores::{Assigned, Cores};
use crate::error::SandboxError;
use crate::net::{Wire, Wires};
use crate::pidfd::{self, Thread, Watch};
use crate::process::on_thread;
use crate::runsc::{AndThen, Runsc, Streams};
use crate::secrets::{self, SecretFile};
use crate::spec::{self, Bind};
use crate::storage::{self, Writes};

/// How often a process that is about to end is asked after.
const REAP_EVERY: Duration = Duration::from_millis(5);
/// How long its end is waited for when its image is written; what is left then is killed.
const ENDING_MAX: Duration = Duration::from_secs(1);

/// How often, and how many times, a thawed sandbox's watchdog is woken. gVisor's kernel is a Go program: after a thaw its threads
/// go back to what they waited for, and those that run at once (as many as it has cores) may all be among these; the packet
/// that it was thawed for waits until the runtime's watchdog looks, every 10 ms when it saw nothing for long.
const NUDGE_EVERY: Duration = Duration::from_millis(2);
const NUDGES: u32 = 3;

/// Where one runner keeps its sandboxes.
#[derive(Debug, Clone)]
pub struct LocalConfig {
    /// The engine.
    pub runsc: Runsc,
    /// The control groups of the host.
    pub cgroups: Cgroups,
    /// The parent group, like `/weir-ab12`.
    pub parent: String,
    /// The cores of sandboxes.
    pub cores: Cores,
    /// Addresses and names.
    pub wires: Wires,
    /// Folder of the running sandboxes: specs, mounts.
    pub boxes: PathBuf,
    /// Folder of their storage files.
    pub storage: PathBuf,
}

/// The local backend.
#[derive(Debug, Clone)]
pub struct Local {
    config: LocalConfig,
    assigned: Arc<Mutex<Assigned>>,
}

impl Local {
    /// A backend with this configuration.
    ///
    /// # Errors
    /// A folder or control group cannot be made.
    pub fn new(config: LocalConfig) -> Result<Self, SandboxError> {
        for dir in [&config.boxes, &config.storage, &config.runsc.state] {
            fs::create_dir_all(dir).map_err(|e| SandboxError::io("make", dir, e))?;
        }
        config.cgroups.weigh(&config.parent, config.cores.count())?;
        Ok(Self {
            config,
            assigned: Arc::default(),
        })
    }

    fn assigned(&self) -> MutexGuard<'_, Assigned> {
        self.assigned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose_cores(&self, order: &Order) -> Vec<usize> {
        let lives = |id: &str| !self.config.cgroups.processes(&self.group(id)).is_empty();
        let wanted = (order.size.cpu_shares, order.place);
        let mut assigned = self.assigned();
        assigned.choose(&order.id, &self.config.cores, wanted, lives)
    }

    fn cores_at_birth(&self, order: &Order, own: &[usize]) -> Vec<usize> {
        if order.second_core_at_birth {
            self.config.cores.at_birth(own)
        } else {
            own.to_vec()
        }
    }

    /// From the cores that it was made with to its own.
    fn confine(&self, order: &Order) -> Result<(), SandboxError> {
        let own = self.assigned().of(&order.id);
        if self.cores_at_birth(order, &own) == own {
            return Ok(());
        }
        self.config.cgroups.confine(&self.group(&order.id), &own)
    }

    /// From now on it writes its storage as fast as it was ordered, whatever it wrote before.
    fn pace(&self, order: &Order) {
        let device = storage::own_device(&self.paths(&order.id).store);
        let (Some(mib_s), Some(device)) = (order.size.storage_write_mib_s, device) else {
            return;
        };
        let bytes_s = u64::from(mib_s.get()) << 20;
        let groups = &self.config.cgroups;
        match groups.pace(&self.group(&order.id), device, bytes_s) {
            Ok(()) => storage::wait_for_disk(device),
            Err(error) => {
                tracing::debug!(sandbox = order.id, %error, "storage is written at any speed");
            }
        }
    }

    /// The thread of a sandbox's kernel that looks after the others: the first that the Go runtime begins.
    fn watchdog(&self, id: &str) -> Option<Thread> {
        let pid = self.config.runsc.pid(id, &self.paths(id).dir).ok()?;
        let own = self.config.cgroups.processes(&self.group(id));
        own.contains(&pid).then(|| Thread::second(pid))?
    }

    fn group(&self, id: &str) -> String {
        format!("{}/{id}", self.config.parent)
    }

    fn paths(&self, id: &str) -> Paths {
        let dir = self.config.boxes.join(id);
        Paths {
            secrets: dir.join("secrets"),
            store: dir.join("store"),
            image: self.config.storage.join(format!("{id}.ext4")),
            dir,
        }
    }
}

struct Paths {
    dir: PathBuf,
    secrets: PathBuf,
    store: PathBuf,
    image: PathBuf,
}

#[async_trait]
impl Backend for Local {
    async fn prepare(
        &self,
        order: Order,
        secrets: &[SecretFile<'_>],
    ) -> Result<Prepared, SandboxError> {
        let paths = self.paths(&order.id);
        fs::create_dir_all(&paths.dir).map_err(|e| SandboxError::io("make", &paths.dir, e))?;
        let mut binds = order.binds.clone();
        if order.with_secrets {
            // Synchronous, so that the values need not be copied; a tmpfs takes well under a millisecond.
            secrets::mount_filled(&paths.secrets, secrets)?;
            binds.push(Bind {
                source: paths.secrets.clone(),
                target: "/run/secrets".into(),
                writable: false,
            });
        }
        let (image, store, mib) = (
            paths.image.clone(),
            paths.store.clone(),
            order.size.storage_mb,
        );
        let writes = match order.size.storage_write_mib_s {
            Some(_) => Writes::Paced,
            None => Writes::Fast,
        };
        let storage = on_thread("weir-storage", move || {
            storage::mount_sized(&image, &store, mib, writes)
        });
        let wire = async {
            let wire = self.config.wires.make(&order.id, order.place).await?;
            wire.address().await?;
            Ok::<_, SandboxError>(wire)
        };
        let (storage, wire) = tokio::join!(storage, wire);
        storage?;
        let wire = wire?;
        let cores = self.choose_cores(&order);
        let spec = spec::oci(&spec::Parts {
            rootfs: &order.rootfs,
            program: &order.program,
            binds: &binds,
            size: order.size,
            cores: &cores,
            cores_at_birth: &self.cores_at_birth(&order, &cores),
            cgroup: &self.group(&order.id),
            netns: &wire.netns,
        });
        let file = paths.dir.join("config.json");
        fs::write(&file, spec.to_string()).map_err(|e| SandboxError::io("write", file, e))?;
        Ok(Prepared { order, wire })
    }

    async fn launch(
        &self,
        prepared: &Prepared,
        launch: Launch<'_>,
        output: Output,
    ) -> Result<(Placed, Watch), SandboxError> {
        let id = &prepared.order.id;
        let paths = self.paths(id);
        let streams = Streams {
            out: output.out,
            err: output.err,
        };
        let runsc = &self.config.runsc;
        match launch {
            Launch::Cold => {
                runsc.create(id, &paths.dir, &paths.store, streams).await?;
                self.confine(&prepared.order)?;
                self.pace(&prepared.order);
                runsc.start(id, &paths.store).await?;
            }
            Launch::Restore(image) => {
                runsc
                    .restore(id, &paths.dir, image, &paths.store, streams)
                    .await?;
                self.confine(&prepared.order)?;
                self.pace(&prepared.order);
            }
        }
        self.assigned().launched(id);
        let pid = runsc.pid(id, &paths.dir)?;
        let started =
            pidfd::start_time(pid).ok_or_else(|| SandboxError::Gone { id: id.clone() })?;
        let watch = Watch::open(id, pid, started)?;
        let placed = Placed {
            id: id.clone(),
            place: prepared.order.place,
            pid,
            started,
        };
        Ok((placed, watch))
    }

    async fn adopt(&self, placed: &Placed) -> Result<Watch, SandboxError> {
        let watch = Watch::open(&placed.id, placed.pid, placed.started)?;
        // Not only the process: it has to be in its own control group too, or limits and metering would be lost.
        if self
            .config
            .cgroups
            .processes(&self.group(&placed.id))
            .contains(&placed.pid)
        {
            let list = self.config.cgroups.cores(&self.group(&placed.id));
            self.assigned().found(&placed.id, &list, &self.config.cores);
            Ok(watch)
        } else {
            Err(SandboxError::Gone {
                id: placed.id.clone(),
            })
        }
    }

    async fn freeze(&self, id: &str) -> Result<(), SandboxError> {
        let (groups, group) = (self.config.cgroups.clone(), self.group(id));
        on_thread("weir-freeze", move || groups.freeze(&group, true)).await
    }

    async fn thaw(&self, id: &str) -> Result<(), SandboxError> {
        // In place: a thread costs a good part of what a thaw does.
        self.config.cgroups.freeze(&self.group(id), false)?;
        if let Some(watchdog) = self.watchdog(id) {
            tokio::spawn(async move {
                for _ in 0..NUDGES {
                    tokio::time::sleep(NUDGE_EVERY).await;
                    watchdog.nudge();
                }
            });
        }
        Ok(())
    }

    fn lend_memory(&self, id: &str, bytes: u64) -> Result<(), SandboxError> {
        self.config.cgroups.raise_memory(&self.group(id), bytes)
    }

    fn take_memory_back(&self, id: &str, bytes: u64) -> Result<(), SandboxError> {
        self.config.cgroups.lower_memory(&self.group(id), bytes)
    }

    async fn checkpoint(&self, id: &str, image: &Path) -> Result<(), SandboxError> {
        let store = self.paths(id).store;
        let runsc = &self.config.runsc;
        runsc.checkpoint(id, image, AndThen::GoesOn, &store).await
    }

    async fn lay_down(&self, id: &str, image: &Path, bytes: u64) -> Result<(), SandboxError> {
        let store = self.paths(id).store;
        // An image on a tmpfs counts as memory of who writes it, and that is the sandbox's own kernel: within its limit one
        // that uses half of it would end half written.
        self.lend_memory(id, bytes)?;
        self.thaw(id).await?;
        let runsc = &self.config.runsc;
        // It ends the sandbox; whoever deletes it waits until its two processes are gone, status and all, and that is ours to
        // take. Their names are forgotten by then.
        let sentry = runsc.pid(id, &self.paths(id).dir).ok();
        let mut ending: Vec<i32> = sentry.into_iter().chain(runsc.gofer(id)).collect();
        let (groups, group) = (&self.config.cgroups, self.group(id));
        let written = runsc.checkpoint(id, image, AndThen::Ends, &store);
        tokio::pin!(written);
        let mut done: Option<()> = None;
        let mut deadline = Instant::now();
        loop {
            tokio::select! {
                result = &mut written, if done.is_none() => {
                    deadline = Instant::now() + ENDING_MAX;
                    done = Some(result?);
                }
                // Each once: the number may be another process's then.
                () = tokio::time::sleep(REAP_EVERY) => ending.retain(|&pid| !reaped(Pid::from_raw(pid))),
            }
            // Its guests' processes, too: what they use while they end has to be read from the group afterwards.
            let all_ended = || ending.is_empty() && groups.processes(&group).is_empty();
            if done.is_some() && (all_ended() || Instant::now() > deadline) {
                return Ok(());
            }
        }
    }

    fn usage(&self, id: &str) -> Usage {
        let (groups, group) = (&self.config.cgroups, self.group(id));
        Usage {
            cpu_us: groups.cpu_us(&group),
            memory_bytes: groups.memory_bytes(&group),
            storage_bytes: storage::used_bytes(&self.paths(id).store),
            tasks: groups.tasks(&group),
        }
    }

    fn alarms(&self, id: &str) -> Alarms {
        self.config.cgroups.alarms(&self.group(id))
    }

    fn wire(&self, id: &str, place: u32) -> Wire {
        self.config.wires.at(id, place)
    }

    async fn destroy(&self, id: &str, place: u32) {
        self.assigned().forget(id);
        let group = self.group(id);
        let (groups, ending) = (self.config.cgroups.clone(), group.clone());
        // First, and by ourselves: `runsc delete` waits until the processes are gone, and as their parent we are the one
        // who has to take their status. Done in this order it takes 50 ms, the other way around it never ends. The gofer
        // of a sandbox that ended by itself has left the group already: without its name, delete waits 2 s for the reaper.
        let gofer = self.config.runsc.gofer(id);
        on_thread("weir-end", move || end(&groups, &ending, gofer)).await;
        if let Err(error) = self.config.runsc.delete(id).await {
            tracing::debug!(sandbox = id, %error, "runsc did not delete");
        }
        self.config.wires.at(id, place).remove().await;
        let (groups, paths) = (self.config.cgroups.clone(), self.paths(id));
        let name = id.to_owned();
        on_thread("weir-destroy", move || {
            if !groups.remove(&group) {
                tracing::error!(sandbox = name, "processes of a sandbox cannot be killed");
            }
            if let Some(device) = storage::own_device(&paths.store) {
                // What is left to write is written at once.
                groups.unpace(device);
            }
            storage::unmount(&paths.image, &paths.store);
            secrets::unmount(&paths.secrets);
            if let Err(error) = fs::remove_dir_all(&paths.dir)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(sandbox = name, %error, "the folder of a sandbox is left");
            }
        })
        .await;
    }

    async fn leftovers(&self) -> Vec<String> {
        let mut ids: BTreeSet<String> = self.config.cgroups.children(&self.config.parent);
        ids.extend(self.config.runsc.list().await.unwrap_or_default());
        for dir in [&self.config.boxes, &self.config.wires.dir().to_owned()] {
            let entries = fs::read_dir(dir).into_iter().flatten().flatten();
            ids.extend(entries.filter_map(|e| e.file_name().into_string().ok()));
        }
        ids.into_iter().collect()
    }

    fn retire(&self) {
        self.config.wires.unseal();
        self.config.cgroups.remove_empty(&self.config.parent);
    }
}

/// Kills all processes of a group and takes the status of those that are our children, until none is left (at most 5 s).
/// So it does with the status of `gofer`, which may have left the group.
fn end(groups: &Cgroups, group: &str, gofer: Option<i32>) {
    // What stands still cannot be killed, nor what is about to: in version 1 that may be so for as long as one of its
    // processes waits for a disk. Fails if there is no such group.
    let _ = groups.freeze(group, false);
    let deadline = Instant::now() + Duration::from_secs(5);
    // A process that ended leaves the group before its status is taken.
    let mut seen: BTreeSet<i32> = gofer
        .into_iter()
        // Its number may be another process's by now, if its status was taken.
        .filter(|&pid| pidfd::leads_session(pid))
        .collect();
    loop {
        let left = groups.processes(group);
        for &pid in &left {
            // Fails if it has ended; only groups of our own are named here.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        seen.extend(left.iter().copied());
        seen.retain(|&pid| !reaped(Pid::from_raw(pid)));
        if (left.is_empty() && seen.is_empty()) || Instant::now() > deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// True if it is no child of ours (any more). An error of waiting means that another task took the status.
fn reaped(pid: Pid) -> bool {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    if pidfd::parent(pid.as_raw()) != Some(own) {
        return true;
    }
    !matches!(
        waitpid(pid, Some(WaitPidFlag::WNOHANG)),
        Ok(WaitStatus::StillAlive)
    )
}
