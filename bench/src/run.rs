//! The run: every target through every cell, round after round, in a shuffled order.
//!
//! Interleaving is what makes the ratios trustworthy on a machine that is not quiet: within a round all targets meet
//! the same minute, and a ratio is only ever taken within a round.

use crate::child::Process;
use crate::echo;
use crate::load::{self, Endpoint, Outcome, Window};
use crate::plan::{Cell, Plan};
use crate::process::meter::{Meter, Parts, Reading};
use crate::process::{cpu, noise};
use crate::progress::Progress;
use crate::random::Random;
use crate::stages::{self, Stages};
use crate::target::{Kind, Target};
use crate::wire::http::Reader;
use crate::wire::rpc::Ask;
use anyhow::Context;
use hdrhistogram::Histogram;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// One window of one target in one cell.
pub struct Sample {
    /// Index of the cell in the plan.
    pub cell: usize,
    /// The round.
    pub round: usize,
    /// The target.
    pub kind: Kind,
    /// What came back.
    pub outcome: Outcome,
    /// CPU per call of the target's process tree, in microseconds (of the upstream for `direct`).
    pub cpu_us: Option<f64>,
    /// The same by part, where more than the target's own tree works for it.
    pub cpu_parts: Option<Parts>,
    /// CPU per call of the load generator, in microseconds.
    pub client_cpu_us: f64,
    /// Cores used by everything that is not part of this run.
    pub foreign_cores: f64,
    /// Share of the time the hypervisor took away.
    pub stolen: f64,
    /// Where the target says its time went, per call.
    pub stages: Option<Stages>,
    /// Why the window does not count, beyond failed calls.
    pub rejected: Option<String>,
}

impl Sample {
    /// The window counts.
    pub fn valid(&self) -> bool {
        self.outcome.valid() && self.rejected.is_none()
    }
}

/// What every window of a run has in common.
pub struct Runner<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Orders and texts come from it.
    pub seed: u64,
    /// The upstream of all targets, when it is ours.
    pub upstream: Option<(&'a Process, &'a Endpoint)>,
    /// A call of the user's own instead of our echo.
    pub ask: Option<Ask>,
}

impl Runner<'_> {
    /// Runs the whole plan.
    pub fn run(&self, targets: &mut [Target]) -> anyhow::Result<Vec<Sample>> {
        let per_round: usize = self
            .plan
            .cells
            .iter()
            .map(|cell| targets.iter().filter(|t| t.kind.takes(cell)).count())
            .sum();
        let windows = self.plan.rounds * per_round;
        let mut progress = Progress::new(windows);
        let mut random = Random::new(self.seed);
        let pools: Vec<_> = self
            .plan
            .cells
            .iter()
            .map(|cell| cell.pool(self.seed))
            .collect();
        let mut samples = Vec::with_capacity(windows);
        // Cells in which a peer failed: it is not asked again, since each failure may take half a minute.
        let mut hopeless: Vec<(usize, usize)> = Vec::new();
        for round in 0..self.plan.rounds {
            let mut cells: Vec<usize> = (0..self.plan.cells.len()).collect();
            random.shuffle(&mut cells);
            for at in cells {
                let cell = &self.plan.cells[at];
                let mut order: Vec<usize> = (0..targets.len())
                    .filter(|&target| targets[target].kind.takes(cell))
                    .filter(|&target| !hopeless.contains(&(at, target)))
                    .collect();
                random.shuffle(&mut order);
                for index in order {
                    let target = &mut targets[index];
                    target.thaw();
                    target.check_alive()?;
                    let sample = self.window(at, round, cell, &pools[at], target);
                    target.sample_memory();
                    target.freeze();
                    let sample = match sample {
                        // Other people's programs may fall over; that is a result.
                        Err(error) if target.kind.is_peer() => {
                            failed_sample(at, round, target.kind, &error)
                        }
                        other => other?,
                    };
                    if target.kind.is_peer() && !sample.valid() {
                        hopeless.push((at, index));
                    }
                    progress.step(&describe(cell, &sample));
                    samples.push(sample);
                }
            }
        }
        progress.done();
        Ok(samples)
    }

    fn window(
        &self,
        at: usize,
        round: usize,
        cell: &Cell,
        pool: &crate::payload::Pool,
        target: &mut Target,
    ) -> anyhow::Result<Sample> {
        target
            .endpoint
            .open(cell.era)
            .with_context(|| format!("{}: opening a session", target.kind.label()))?;
        let ask = self
            .ask
            .clone()
            .unwrap_or_else(|| cell.ask(target.kind, &target.endpoint));
        let window = Window {
            connections: cell.connections,
            rate: cell.rate,
            warmup: self.plan.warmup,
            measure: self.plan.measure_for(cell),
        };
        let upstream_pid = self.upstream.map(|(process, _)| process.pid());
        let meter = if target.kind == Kind::Direct {
            Meter {
                own: upstream_pid,
                ..Meter::default()
            }
        } else {
            target.meter()
        };
        let counted = target.kind.calls_our_upstream();
        let seen_before = self.calls_seen()?;
        let stages_before = target.admin.and_then(stages::read);
        let (outcome, before, after) = load::run(&target.endpoint, &ask, pool, &window, || {
            Edge::now(&meter, upstream_pid)
        });
        let seen = self
            .calls_seen()?
            .zip(seen_before)
            .map(|(after, before)| after - before)
            .filter(|_| counted);
        let stages = target
            .admin
            .and_then(stages::read)
            .zip(stages_before)
            .and_then(|(after, before)| after.since(&before));
        let used = before.until(&after);
        let calls = outcome.calls.max(1) as f64;
        let of_target = used.target.filter(|_| meter.counts());
        let mut sample = Sample {
            cell: at,
            round,
            kind: target.kind,
            cpu_us: of_target.map(|used| used.total().as_secs_f64() * 1e6 / calls),
            cpu_parts: of_target
                .filter(|_| meter.helpers != Default::default())
                .map(|used| used.parts(calls)),
            client_cpu_us: used.client.as_secs_f64() * 1e6 / calls,
            foreign_cores: used.foreign_cores(target.kind != Kind::Direct && meter.counts()),
            stolen: used.machine.stolen.as_secs_f64() / used.wall.as_secs_f64(),
            stages,
            outcome,
            rejected: None,
        };
        sample.rejected = reject(cell, &sample.outcome, seen).or_else(|| {
            let lost = used.target.is_none() && sample.outcome.valid();
            lost.then(|| "its sandbox went away meanwhile".to_owned())
        });
        Ok(sample)
    }

    /// Calls the upstream has answered so far, when it is ours.
    fn calls_seen(&self) -> anyhow::Result<Option<u64>> {
        self.upstream
            .map(|(_, endpoint)| upstream_stats(endpoint).map(|stats| stats.calls))
            .transpose()
    }
}

/// A closed loop keeps all its connections busy; less means calls that never came back.
const OCCUPANCY_MIN: f64 = 0.8;

fn reject(cell: &Cell, outcome: &Outcome, seen: Option<u64>) -> Option<String> {
    if !outcome.valid() {
        return None; // Its faults say more.
    }
    let due = outcome.calls_with_warmup - outcome.stopped;
    if let Some(seen) = seen.filter(|&seen| seen != due) {
        return Some(format!(
            "{due} calls were answered that the upstream must have seen, {seen} reached it"
        ));
    }
    if cell.rate.is_none() && outcome.occupancy < OCCUPANCY_MIN {
        return Some(format!(
            "calls were left hanging: {:.0} % of the offered concurrency was used",
            outcome.occupancy * 100.0
        ));
    }
    None
}

/// Asks our upstream what arrived.
pub fn upstream_stats(endpoint: &Endpoint) -> anyhow::Result<echo::Stats> {
    let mut reader = Reader::new(TcpStream::connect_timeout(
        &endpoint.addr,
        Duration::from_secs(5),
    )?);
    reader
        .source()
        .set_read_timeout(Some(Duration::from_secs(5)))?;
    reader
        .source()
        .write_all(b"GET /stats HTTP/1.1\r\nconnection: close\r\n\r\n")?;
    let mut body = Vec::new();
    reader
        .answer(&mut body)?
        .context("the upstream closed the connection")?;
    Ok(serde_json::from_slice(&body)?)
}

/// What is read right before and right after the measured calls.
struct Edge {
    at: Instant,
    target: Option<Reading>,
    upstream: Duration,
    client: Duration,
    machine: noise::Machine,
}

impl Edge {
    fn now(target: &Meter, upstream: Option<u32>) -> Edge {
        Edge {
            target: target.read(),
            upstream: upstream.map_or(Duration::ZERO, cpu::of_process),
            client: cpu::of_process(std::process::id()),
            machine: noise::machine(),
            at: Instant::now(),
        }
    }

    fn until(&self, end: &Edge) -> Used {
        Used {
            wall: end.at - self.at,
            target: (end.target.zip(self.target)).map(|(end, begin)| end.since(&begin)),
            upstream: end.upstream.saturating_sub(self.upstream),
            client: end.client.saturating_sub(self.client),
            machine: noise::Machine {
                busy: end.machine.busy.saturating_sub(self.machine.busy),
                stolen: end.machine.stolen.saturating_sub(self.machine.stolen),
            },
        }
    }
}

struct Used {
    wall: Duration,
    target: Option<Reading>,
    upstream: Duration,
    client: Duration,
    machine: noise::Machine,
}

impl Used {
    fn foreign_cores(&self, separate_target: bool) -> f64 {
        let target = match &self.target {
            Some(used) if separate_target => used.total(),
            _ => Duration::ZERO,
        };
        let others = self
            .machine
            .busy
            .saturating_sub(target + self.upstream + self.client);
        others.as_secs_f64() / self.wall.as_secs_f64()
    }
}

/// A window that could not even be begun.
fn failed_sample(cell: usize, round: usize, kind: Kind, error: &anyhow::Error) -> Sample {
    Sample {
        cell,
        round,
        kind,
        outcome: Outcome::none(),
        cpu_us: None,
        cpu_parts: None,
        client_cpu_us: 0.0,
        foreign_cores: 0.0,
        stolen: 0.0,
        stages: None,
        rejected: Some(format!("{error:#}")),
    }
}

fn describe(cell: &Cell, sample: &Sample) -> String {
    let outcome = &sample.outcome;
    if !sample.valid() {
        let why = sample
            .rejected
            .as_ref()
            .or(outcome.faults.first())
            .map_or("no call finished", String::as_str);
        return format!(
            "{:<34} {:<22} INVALID: {} failed: {why}",
            cell.label(),
            sample.kind.label(),
            outcome.failed
        );
    }
    let cpu = sample
        .cpu_us
        .map_or_else(String::new, |cpu| format!("{cpu:>9.1} us CPU"));
    format!(
        "{:<34} {:<22} {:>8.0}/s  p50 {:>9.1} us {cpu}",
        cell.label(),
        sample.kind.label(),
        outcome.calls as f64 / outcome.elapsed.as_secs_f64(),
        quantile_us(&outcome.latency, 0.5),
    )
}

/// A quantile in microseconds.
pub fn quantile_us(latency: &Histogram<u64>, quantile: f64) -> f64 {
    latency.value_at_quantile(quantile) as f64 / 1e3
}

#[cfg(test)]
mod tests;
