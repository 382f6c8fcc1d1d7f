//! What sandboxes use, read every few seconds and at their end, and kept as windows of an hour.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use domain::{ServerId, TenantId};
use metering::{Count, Counter, MeterStore, Now, Reading, Tally};
use runner_api::{SandboxId, UsageWindow};
use sandbox::{Backend, Usage, on_thread};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::events::now_ms;

/// Between two rounds. What a crash of the whole machine can lose is at most this much. A crash of the runner loses
/// nothing: the kernel's counters go on, and requests and bytes are in a [`Tally`].
const EVERY: Duration = Duration::from_secs(10);

/// Whose a sandbox is, as its tally says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Owner {
    /// The tenant.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
}

/// What the egress room counts goes into a sandbox's tally.
pub struct Bytes(pub Arc<Tally>);

impl egress::Tally for Bytes {
    fn up(&self, bytes: u64) {
        self.0.add(Count::EgressBytes, bytes);
    }

    fn down(&self, bytes: u64) {
        self.0.add(Count::IngressBytes, bytes);
    }
}

/// All that is metered.
pub struct Metering {
    store: MeterStore,
    tallies: PathBuf,
    /// Locked before `live`: a reading that is older than another must not be counted after it.
    meter: Mutex<metering::Meter>,
    live: Mutex<HashMap<SandboxId, Live>>,
}

struct Live {
    owner: Owner,
    tally: Arc<Tally>,
    /// How often it was restored: the kernel's counters begin again with each.
    restores: u64,
    lies: Option<Lies>,
}

/// What is known of a sandbox that is checkpointed: it has no control group to be read.
#[derive(Clone, Copy)]
struct Lies {
    cpu_us: u64,
    disk_bytes: u64,
}

impl Metering {
    /// Goes on where the file ends. Tallies are in a folder of their own.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn open(path: &Path, tallies: &Path) -> Result<Self> {
        let (store, mut meter) = MeterStore::open(path)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        if meter.begin(boot.trim()) {
            // What they count was forgotten just now; met again they would count once more.
            for entry in fs::read_dir(tallies)?.flatten() {
                fs::remove_file(entry.path()).context("remove a tally of before the boot")?;
            }
            store.save(&meter)?;
        }
        Ok(Self {
            store,
            tallies: tallies.to_owned(),
            meter: Mutex::new(meter),
            live: Mutex::default(),
        })
    }

    /// A sandbox begins, or is found again after so many restores. Gives what its requests and bytes are counted in.
    pub fn add(&self, id: &SandboxId, owner: Owner, restores: u64) -> Arc<Tally> {
        let whose = serde_json::to_vec(&owner).expect("two names are JSON");
        let tally = Tally::go_on(&self.tally(id), &whose, now_ms());
        let tally = Arc::new(tally.unwrap_or_else(|error| {
            tracing::error!(sandbox = %id, %error, "requests of a sandbox are counted in memory only");
            Tally::unkept(now_ms())
        }));
        let live = Live {
            owner,
            tally: Arc::clone(&tally),
            restores,
            lies: None,
        };
        lock(&self.live).insert(id.clone(), live);
        tally
    }

    /// Sandboxes of which nothing is known but that something was counted: the runner ended while they began or ended.
    pub fn strangers(&self, known: impl Fn(&SandboxId) -> bool) -> Vec<(SandboxId, Owner)> {
        let entries = fs::read_dir(&self.tallies).into_iter().flatten().flatten();
        let mut strangers = Vec::new();
        for entry in entries {
            let id = entry.file_name().into_string().ok();
            let Some(id) = id.and_then(|name| SandboxId::parse(&name).ok()) else {
                continue;
            };
            if known(&id) {
                continue;
            }
            let whose = Tally::whose(&entry.path()).unwrap_or_default();
            match serde_json::from_slice(&whose) {
                Ok(owner) => strangers.push((id, owner)),
                Err(error) => {
                    tracing::error!(sandbox = %id, %error, "nobody knows whose usage this is");
                }
            }
        }
        strangers
    }

    /// Lets go of all sandboxes but these.
    pub fn keep(&self, known: impl Fn(&str) -> bool) {
        lock(&self.meter).keep(known);
    }

    /// A sandbox answers: what it holds from now on is charged, also if it ends before the next round.
    pub fn begin(&self, id: &SandboxId, backend: &dyn Backend) {
        let mut meter = lock(&self.meter);
        if let Some(live) = lock(&self.live).get(id) {
            meter.observe(now(), &[reading(id, live, backend)]);
        }
    }

    /// A sandbox has ended and its control group is still there: the last reading. It is on disk when this returns,
    /// because the counters it was read from go away next. Waits for the disk.
    pub fn finish(&self, id: &SandboxId, backend: &dyn Backend) {
        let mut meter = lock(&self.meter);
        let Some(live) = lock(&self.live).remove(id) else {
            return;
        };
        meter.finish(now(), &reading(id, &live, backend));
        self.save(&meter);
    }

    /// A sandbox was checkpointed and its control group is still there: the last reading of that. From now on it holds its
    /// image on disk and no memory. Written down when this returns. Waits for the disk.
    pub fn lay_down(&self, id: &SandboxId, disk_bytes: u64, backend: &dyn Backend) {
        let mut meter = lock(&self.meter);
        let mut live = lock(&self.live);
        let Some(live) = live.get_mut(id) else {
            return;
        };
        let last = reading(id, live, backend);
        meter.observe(now(), std::slice::from_ref(&last));
        live.lies = Some(Lies {
            cpu_us: last.cpu_us.value,
            disk_bytes,
        });
        meter.observe(now(), &[reading(id, live, backend)]);
        self.save(&meter);
    }

    /// A sandbox is about to be restored for the so many-th time.
    pub fn wake(&self, id: &SandboxId, restores: u64) {
        if let Some(live) = lock(&self.live).get_mut(id) {
            live.lies = None;
            live.restores = restores;
        }
    }

    /// Nothing is left of a sandbox that was finished.
    pub fn forget(&self, id: &SandboxId) {
        match fs::remove_file(self.tally(id)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                // It is met again by the next life, which must know then what was counted.
                tracing::error!(sandbox = %id, %error, "a tally cannot be removed");
            }
            _ => lock(&self.meter).forget(id.as_str()),
        }
    }

    fn tally(&self, id: &SandboxId) -> PathBuf {
        self.tallies.join(id.as_str())
    }

    /// One round over all sandboxes, and the file.
    pub fn round(&self, backend: &dyn Backend) {
        let mut meter = lock(&self.meter);
        let readings: Vec<Reading> = {
            let live = lock(&self.live);
            live.iter()
                .map(|(id, live)| reading(id, live, backend))
                .collect()
        };
        let left_out = meter.observe(now(), &readings);
        if left_out > 0 {
            tracing::error!(left_out, "sandboxes are not metered: there are too many");
        }
        self.save(&meter);
    }

    /// Closed windows after a number.
    pub fn closed(&self, after: u64) -> Vec<UsageWindow> {
        lock(&self.meter)
            .closed(after, 1000)
            .iter()
            .map(window)
            .collect()
    }

    /// Lets windows go.
    pub fn acknowledge(&self, upto: u64) {
        let mut meter = lock(&self.meter);
        meter.acknowledge(upto);
        self.save(&meter);
    }

    fn save(&self, meter: &metering::Meter) {
        if let Err(error) = self.store.save(meter) {
            tracing::error!(%error, "usage cannot be written down");
        }
    }
}

fn reading(id: &SandboxId, live: &Live, backend: &dyn Backend) -> Reading {
    let usage = match live.lies {
        Some(lies) => Usage {
            cpu_us: lies.cpu_us,
            storage_bytes: lies.disk_bytes,
            ..Usage::default()
        },
        None => backend.usage(id.as_str()),
    };
    Reading {
        sandbox: id.as_str().to_owned(),
        tenant: live.owner.tenant.clone(),
        server: live.owner.server.clone(),
        cpu_us: Counter {
            value: usage.cpu_us,
            epoch: live.restores,
        },
        egress_bytes: live.tally.get(Count::EgressBytes),
        requests: live.tally.get(Count::Requests),
        memory_bytes: usage.memory_bytes,
        storage_bytes: usage.storage_bytes,
    }
}

/// Reads for ever.
pub async fn run(ctx: Arc<Context>) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let ctx = Arc::clone(&ctx);
        on_thread("weir-meter", move || ctx.metering.round(&*ctx.backend)).await;
    }
}

fn window(window: &metering::Window) -> UsageWindow {
    UsageWindow {
        seq: window.seq,
        tenant: window.tenant.clone(),
        server: window.server.clone(),
        hour_unix_s: window.hour_unix_s,
        cpu_us: window.usage.cpu_us,
        memory_byte_s: window.usage.memory_byte_ms / 1000,
        storage_byte_s: window.usage.storage_byte_ms / 1000,
        egress_bytes: window.usage.egress_bytes,
        requests: window.usage.requests,
    }
}

fn now() -> Now {
    let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds: f64 = uptime
        .split(' ')
        .next()
        .and_then(|t| t.parse().ok())
        .unwrap_or(0.0);
    Now {
        unix_ms: now_ms(),
        boot_ms: (seconds * 1000.0) as u64,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
