//! What sandboxes use, read every few seconds and at their end, and kept as windows of an hour.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use domain::{ServerId, TenantId};
use metering::{Counter, MeterStore, Now, Reading};
use runner_api::{SandboxId, UsageWindow};
use sandbox::Backend;

use crate::events::now_ms;

/// Between two rounds. What a crash of the whole machine can lose is at most this much. A crash of the runner loses no
/// processor time, memory or storage, because the kernel's counters go on; of requests and of bytes in and out, which are
/// counted here, it loses what came since the last round.
const EVERY: Duration = Duration::from_secs(10);

/// Counters of one sandbox in this life of the runner.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes out.
    pub egress: AtomicU64,
    /// Bytes in.
    pub ingress: AtomicU64,
    /// Leases given.
    pub leases: AtomicU64,
}

/// All that is metered.
pub struct Metering {
    store: MeterStore,
    meter: Mutex<metering::Meter>,
    live: Mutex<HashMap<SandboxId, Live>>,
    /// Names this life: counters of our own begin again with it.
    epoch: u64,
}

struct Live {
    tenant: TenantId,
    server: ServerId,
    counters: Arc<Counters>,
}

impl Metering {
    /// Goes on where the file ends.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let (store, mut meter) = MeterStore::open(path)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        meter.begin(boot.trim());
        Ok(Self {
            store,
            meter: Mutex::new(meter),
            live: Mutex::default(),
            epoch: now_ms(),
        })
    }

    /// A sandbox begins, or is found again.
    pub fn add(
        &self,
        id: &SandboxId,
        tenant: &TenantId,
        server: &ServerId,
        counters: Arc<Counters>,
    ) {
        let live = Live {
            tenant: tenant.clone(),
            server: server.clone(),
            counters,
        };
        lock(&self.live).insert(id.clone(), live);
    }

    /// A sandbox has ended and its control group is still there: the last reading. It is on disk when this returns,
    /// because the counters it was read from go away next. Waits for the disk.
    pub fn finish(&self, id: &SandboxId, backend: &dyn Backend) {
        let Some(live) = lock(&self.live).remove(id) else {
            return;
        };
        let reading = self.reading(id, &live, backend);
        let mut meter = lock(&self.meter);
        meter.finish(now(), &reading);
        self.save(&meter);
    }

    /// One round over all sandboxes, and the file.
    pub fn round(&self, backend: &dyn Backend) {
        let readings: Vec<Reading> = {
            let live = lock(&self.live);
            live.iter()
                .map(|(id, live)| self.reading(id, live, backend))
                .collect()
        };
        let mut meter = lock(&self.meter);
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

    fn reading(&self, id: &SandboxId, live: &Live, backend: &dyn Backend) -> Reading {
        let usage = backend.usage(id.as_str());
        let own = |value: &AtomicU64| Counter {
            value: value.load(Ordering::Relaxed),
            epoch: self.epoch,
        };
        Reading {
            sandbox: id.as_str().to_owned(),
            tenant: live.tenant.clone(),
            server: live.server.clone(),
            cpu_us: Counter {
                value: usage.cpu_us,
                epoch: 0,
            },
            egress_bytes: own(&live.counters.egress),
            requests: own(&live.counters.leases),
            memory_bytes: usage.memory_bytes,
            storage_bytes: usage.storage_bytes,
        }
    }
}

/// Reads for ever.
pub async fn run(metering: &Metering, backend: &dyn Backend) {
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        metering.round(backend);
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
