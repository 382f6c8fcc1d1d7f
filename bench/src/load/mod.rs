//! One window of load: connect, warm up, measure between two barriers, and say honestly what came back.
//!
//! Closed loop: every connection sends its next call when the last one is answered. Open loop: calls are due at fixed
//! times whatever the answers do, and a call's time counts from when it was due, so that a stall is seen by every call
//! it delayed (no coordinated omission). Every window is bounded in time and in calls.

mod client;
mod link;
mod pace;

pub use client::{Client, Endpoint, Failure};
pub use link::Wire;
pub use pace::{due, sharpen, wait_until};

use crate::payload::Pool;
use crate::wire::rpc::Ask;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What to offer, for how long.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Connections, each in its own thread.
    pub connections: usize,
    /// Closed loop, or calls due per second over all connections.
    pub rate: Option<u32>,
    /// Not counted, but checked all the same.
    pub warmup: Duration,
    /// Counted.
    pub measure: Duration,
}

/// Calls one window may make, whatever the time.
const CALLS_MAX: u64 = 5_000_000;
/// Connections one window may open.
pub const CONNECTIONS_MAX: usize = 1024;
/// Different faults kept for the report.
const FAULTS_KEPT: usize = 4;

/// What a window gave. Times are in nanoseconds.
pub struct Outcome {
    /// Answered and right.
    pub calls: u64,
    /// Right answers, the warm-up's included: what the upstream must have seen.
    pub calls_with_warmup: u64,
    /// Those of them that a firewall had to stop and did: they must not have reached the upstream.
    pub stopped: u64,
    /// Failed, in warm-up or measurement.
    pub failed: u64,
    /// The first few failures, in words.
    pub faults: Vec<String>,
    /// From start to the last answer.
    pub elapsed: Duration,
    /// Closed loop: from send to answer. Open loop: from due to answer.
    pub latency: Histogram<u64>,
    /// Open loop: how late calls were sent for our own reasons, with a free connection waiting for the time to come.
    pub lateness: Histogram<u64>,
    /// Calls in flight on average, counted from calls that were answered (Little's law).
    pub in_flight: f64,
    /// Closed loop: share of the connections' time until the end of the window that led to an answer, the load
    /// generator's own work between two calls included. A target that leaves calls hanging shows less than 1.
    pub occupancy: f64,
    /// New connections the target forced by closing old ones, per window.
    pub reconnects: u64,
}

impl Outcome {
    /// Of no call at all.
    pub fn none() -> Outcome {
        Outcome {
            calls: 0,
            calls_with_warmup: 0,
            stopped: 0,
            failed: 0,
            faults: Vec::new(),
            elapsed: Duration::ZERO,
            latency: histogram(),
            lateness: histogram(),
            in_flight: 0.0,
            occupancy: 0.0,
            reconnects: 0,
        }
    }

    /// A window counts only when every call was right and there were some.
    pub fn valid(&self) -> bool {
        self.failed == 0 && self.calls > 0
    }
}

/// An empty histogram: 1 us to 2 minutes in nanoseconds, three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, 120_000_000_000, 3).expect("the bounds are in order")
}

/// Runs a window. `edge` is called right before the first and right after the last measured call.
pub fn run<T>(
    endpoint: &Endpoint,
    ask: &Ask,
    pool: &Pool,
    window: &Window,
    mut edge: impl FnMut() -> T,
) -> (Outcome, T, T) {
    let connections = window.connections.clamp(1, CONNECTIONS_MAX);
    let shared = Shared {
        ready: Barrier::new(connections + 1),
        go: Barrier::new(connections + 1),
        done: Barrier::new(connections + 1),
        start: OnceLock::new(),
        ticket: AtomicU64::new(0),
        faults: Mutex::new(Vec::new()),
        failed: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|at| {
                let shared = &shared;
                let builder = std::thread::Builder::new()
                    .name(format!("load-{at}"))
                    .stack_size(512 << 10);
                let spawned = builder.spawn_scoped(scope, move || {
                    worker(at as u64, endpoint, ask, pool, window, shared)
                });
                // The others would wait at the barrier for ever.
                spawned.unwrap_or_else(|error| {
                    crate::guard::give_up(&format!("no thread for a connection: {error}"))
                })
            })
            .collect();
        shared.ready.wait();
        let before = edge();
        let start = Instant::now();
        shared.start.set(start).expect("only set here");
        shared.go.wait();
        shared.done.wait();
        let elapsed = start.elapsed();
        let after = edge();
        let mut outcome = Outcome {
            elapsed,
            ..Outcome::none()
        };
        let (mut busy, mut active) = (Duration::ZERO, Duration::ZERO);
        for worker in workers {
            let tally = worker.join().expect("workers do not panic");
            outcome.calls += tally.calls;
            outcome.calls_with_warmup += tally.calls + tally.warm;
            outcome.stopped += tally.stopped;
            outcome.reconnects += tally.reconnects;
            outcome.latency += tally.latency;
            outcome.lateness += tally.lateness;
            busy += tally.busy;
            active += tally.active.min(window.measure);
        }
        outcome.failed = shared.failed.load(Ordering::Relaxed);
        outcome.faults = shared
            .faults
            .lock()
            .map(|mut faults| std::mem::take(&mut *faults))
            .unwrap_or_default();
        outcome.in_flight = busy.as_secs_f64() / elapsed.as_secs_f64();
        outcome.occupancy =
            active.as_secs_f64() / window.measure.as_secs_f64() / connections as f64;
        (outcome, before, after)
    })
}

struct Shared {
    ready: Barrier,
    go: Barrier,
    done: Barrier,
    start: OnceLock<Instant>,
    ticket: AtomicU64,
    faults: Mutex<Vec<String>>,
    failed: AtomicU64,
}

impl Shared {
    fn fail(&self, fault: String) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut faults) = self.faults.lock()
            && faults.len() < FAULTS_KEPT
            && !faults.contains(&fault)
        {
            faults.push(fault);
        }
    }
}

struct Tally {
    calls: u64,
    warm: u64,
    stopped: u64,
    reconnects: u64,
    /// Time in calls that were answered.
    busy: Duration,
    /// From the start to the last answer.
    active: Duration,
    latency: Histogram<u64>,
    lateness: Histogram<u64>,
}

/// One connection. Whatever fails, it reaches all three barriers.
fn worker(
    at: u64,
    endpoint: &Endpoint,
    ask: &Ask,
    pool: &Pool,
    window: &Window,
    shared: &Shared,
) -> Tally {
    pace::sharpen();
    let mut tally = Tally {
        calls: 0,
        warm: 0,
        stopped: 0,
        reconnects: 0,
        busy: Duration::ZERO,
        active: Duration::ZERO,
        latency: histogram(),
        lateness: histogram(),
    };
    let mut client = Client::new(endpoint.nth(at), ask);
    // Starting places are spread over the pool so that connections do not send the same text at the same time.
    let mut nth = at.wrapping_mul(7919);
    let warm = warm_up(&mut client, ask, pool, window, &mut nth, &mut tally);
    if let Err(fault) = &warm {
        shared.fail(format!("warm-up: {fault}"));
    }
    shared.ready.wait();
    shared.go.wait();
    if warm.is_ok() {
        measure(&mut client, ask, pool, window, shared, &mut nth, &mut tally);
    }
    tally.reconnects = client.reconnects();
    shared.done.wait();
    tally
}

fn warm_up(
    client: &mut Client<'_>,
    ask: &Ask,
    pool: &Pool,
    window: &Window,
    nth: &mut u64,
    tally: &mut Tally,
) -> Result<(), String> {
    let end = Instant::now() + window.warmup;
    loop {
        let payload = pool.nth(*nth);
        client.call(payload)?;
        *nth += 1;
        tally.warm += 1;
        tally.stopped += u64::from(ask.stops(payload));
        if Instant::now() >= end {
            return Ok(());
        }
    }
}

fn measure(
    client: &mut Client<'_>,
    ask: &Ask,
    pool: &Pool,
    window: &Window,
    shared: &Shared,
    nth: &mut u64,
    tally: &mut Tally,
) {
    let start = *shared.start.get().expect("set before the barrier");
    let end = start + window.measure;
    loop {
        let ticket = shared.ticket.fetch_add(1, Ordering::Relaxed);
        if ticket >= CALLS_MAX {
            return;
        }
        let due = match window.rate {
            None => None,
            Some(rate) => {
                let due = start + pace::due(ticket, rate);
                if due >= end {
                    return;
                }
                if let Some(late) = pace::wait_until(due) {
                    tally.lateness.saturating_record(late.as_nanos() as u64);
                }
                Some(due)
            }
        };
        if due.is_none() && Instant::now() >= end {
            return;
        }
        let payload = pool.nth(*nth);
        match client.call(payload) {
            Ok(times) => {
                tally.calls += 1;
                tally.stopped += u64::from(ask.stops(payload));
                tally.busy += times.answered - times.sent;
                tally.active = times.answered - start;
                let from = due.unwrap_or(times.sent);
                tally
                    .latency
                    .saturating_record((times.answered - from).as_nanos() as u64);
            }
            Err(fault) => {
                shared.fail(fault);
                if shared.failed.load(Ordering::Relaxed) > 100 {
                    return; // The window is lost; do not hammer a target that refuses.
                }
            }
        }
        *nth += 1;
        // A far overloaded open loop ends late, but it ends.
        if due.is_some() && Instant::now() >= end + window.measure {
            shared.fail("overloaded: calls still due when twice the time was over".to_owned());
            return;
        }
    }
}
