//! `weir-bench soak`: hours of a mixed day against one target. Memory and open descriptors must not creep.
//!
//! The load is the mixed day (`payload/day.rs`) at a constant rate in both revisions, one after the other in short windows,
//! so that sessions come and go and connections are made anew. Every answer is checked, as in every other window.

use crate::guard;
use crate::load::{self, Window};
use crate::machine::{self, Machine};
use crate::pin::{self, Cores, Pin};
use crate::plan::{Cell, Content, Form};
use crate::process::{self, memory};
use crate::progress::say;
use crate::target::{Kind, Launcher, Target};
use crate::wire::rpc::Era;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Options of `soak`.
#[derive(clap::Args)]
pub struct Options {
    /// How long.
    #[arg(long, default_value_t = 20.0, value_parser = minutes)]
    pub minutes: f64,
    /// The target.
    #[arg(long, value_enum, default_value_t = Kind::Weir)]
    pub target: Kind,
    /// Calls per second.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rate: u32,
    /// Connections.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub connections: u16,
    /// The weir program.
    #[arg(long, default_value = "target/release/weir", value_name = "FILE")]
    pub weir: PathBuf,
    /// Folder for the report.
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    pub out: PathBuf,
}

impl Options {
    /// The defaults, for so long.
    pub fn of(minutes: f64) -> Options {
        Options {
            minutes,
            target: Kind::Weir,
            rate: 300,
            connections: 16,
            weir: PathBuf::new(),
            out: PathBuf::new(),
        }
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.05..=1440.0).contains(&value) => Ok(value),
        _ => Err("a number of minutes from 0.05 to 1440".to_owned()),
    }
}

/// What a soak showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Soak {
    /// The target.
    pub target: Kind,
    /// How long it was asked to last.
    pub minutes: f64,
    /// Calls due per second.
    pub rate: u32,
    /// Connections.
    pub connections: usize,
    /// Right answers.
    pub calls: u64,
    /// Wrong ones, or none.
    pub failed: u64,
    /// The first few failures, in words.
    pub faults: Vec<String>,
    /// Over time.
    pub samples: Vec<Sample>,
    /// What is judged: growth of memory from the end of the first third to the end, in percent.
    pub memory_growth_percent: f64,
    /// The same of descriptors, in pieces.
    pub descriptors_growth: i64,
    /// Neither crept, and nothing failed.
    pub flat: bool,
}

/// One look.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the start.
    pub seconds: f64,
    /// PSS of the process tree, MiB.
    pub pss_mib: f64,
    /// Open descriptors of the process tree.
    pub descriptors: u64,
    /// p99 of the window before it, microseconds.
    pub p99_us: f64,
}

/// The page of a soak alone: the same section as in the report of a full run.
#[derive(Serialize)]
struct Page<'a> {
    machine: &'a Machine,
    soak: &'a Soak,
}

/// Growth of memory that is still no leak: the larger of the two.
const GROWTH_PERCENT_MAX: f64 = 10.0;
const GROWTH_MIB_MAX: f64 = 4.0;
const DESCRIPTORS_MAX: i64 = 16;
/// Looks at a target, whatever the length.
const LOOKS: f64 = 120.0;
const FAULTS_KEPT: usize = 4;

/// Runs one and writes its figures. Exit code 1: memory or descriptors crept, or a call failed.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    guard::install()?;
    let mut machine = machine::describe();
    let cores = Cores::give_out(Pin::Split);
    pin::move_to(&cores.load);
    let launcher = Launcher::new(&options.weir, [options.target], cores.for_target(), cores)?;
    let (_upstream, endpoint) = launcher.upstream()?;
    let mut target = launcher
        .start(options.target, &endpoint)?
        .context("the target is not installed")?;
    let soak = measure(&mut target, options)?;
    machine.load_at_end = machine::load();
    let folder = options.out.join(format!(
        "soak-{}",
        crate::report::now().replace([':', '-'], "")
    ));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let page = Page {
        machine: &machine,
        soak: &soak,
    };
    std::fs::write(
        folder.join("soak.json"),
        serde_json::to_string_pretty(&page)? + "\n",
    )?;
    std::fs::write(
        folder.join("soak.html"),
        crate::report::soak_page(&soak, &machine),
    )?;
    say(&format!(
        "{}\nreport: {}",
        soak.sentence(),
        folder.join("soak.html").display()
    ));
    Ok(if soak.flat {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Loads a target for that long.
pub fn measure(target: &mut Target, options: &Options) -> anyhow::Result<Soak> {
    let whole = Duration::from_secs_f64(options.minutes * 60.0);
    let each = Duration::from_secs_f64((options.minutes * 60.0 / LOOKS).max(0.5));
    let cell = |era| Cell {
        size: 0,
        connections: usize::from(options.connections),
        rate: Some(options.rate),
        form: Form::Json,
        content: Content::Day,
        era,
    };
    let pool = cell(Era::Handshake).pool(1);
    let start = Instant::now();
    let (mut calls, mut failed, mut faults, mut samples) = (0, 0, Vec::new(), Vec::new());
    while start.elapsed() < whole {
        let era = if samples.len() % 2 == 0 {
            Era::Handshake
        } else {
            Era::Stateless
        };
        let cell = cell(era);
        target.check_alive()?;
        target.endpoint.open(era)?;
        let window = Window {
            connections: cell.connections,
            rate: cell.rate,
            warmup: Duration::from_millis(20),
            measure: each.min(whole.saturating_sub(start.elapsed()) + Duration::from_millis(200)),
        };
        let ask = cell.ask(target.kind, &target.endpoint);
        let (outcome, (), ()) = load::run(&target.endpoint, &ask, &pool, &window, || ());
        calls += outcome.calls_with_warmup;
        failed += outcome.failed;
        let room = FAULTS_KEPT.saturating_sub(faults.len());
        faults.extend(outcome.faults.into_iter().take(room));
        let pid = target.pid().context("the process is not ours")?;
        let sample = Sample {
            seconds: start.elapsed().as_secs_f64(),
            pss_mib: memory::pss_of_tree(pid).unwrap_or(0) as f64 / f64::from(1 << 20),
            descriptors: process::descriptors_of_tree(pid).unwrap_or(0),
            p99_us: crate::run::quantile_us(&outcome.latency, 0.99),
        };
        say(&format!(
            "{:>6.0} s  {calls} calls, {failed} failed, {:.1} MiB, {} descriptors",
            sample.seconds, sample.pss_mib, sample.descriptors
        ));
        samples.push(sample);
    }
    Ok(judge(target.kind, options, calls, failed, faults, samples))
}

fn judge(
    target: Kind,
    options: &Options,
    calls: u64,
    failed: u64,
    faults: Vec<String>,
    samples: Vec<Sample>,
) -> Soak {
    // The middle of a few looks: connections of the window before may still be closing at one of them.
    let around = |from: usize, to: usize, value: &dyn Fn(&Sample) -> f64| {
        crate::stats::Spread::of(samples[from..to].iter().map(value)).map_or(0.0, |s| s.median)
    };
    let count = samples.len();
    let few = (count / 8).clamp(1, 8).min(count.max(1));
    let third = (count / 3).min(count.saturating_sub(few));
    let (then, now) = (
        (third, third + few.min(count)),
        (count.saturating_sub(few), count),
    );
    let pss = |(from, to)| around(from, to, &|s| s.pss_mib);
    let descriptors = |(from, to)| around(from, to, &|s| s.descriptors as f64);
    let (before, after) = (pss(then), pss(now));
    let memory_growth_percent = if before > 0.0 {
        (after / before - 1.0) * 100.0
    } else {
        0.0
    };
    let descriptors_growth = (descriptors(now) - descriptors(then)).round() as i64;
    let crept = memory_growth_percent > GROWTH_PERCENT_MAX && after - before > GROWTH_MIB_MAX;
    Soak {
        target,
        minutes: options.minutes,
        rate: options.rate,
        connections: usize::from(options.connections),
        calls,
        failed,
        faults,
        flat: failed == 0 && calls > 0 && !crept && descriptors_growth <= DESCRIPTORS_MAX,
        samples,
        memory_growth_percent,
        descriptors_growth,
    }
}

impl Soak {
    /// The whole in words.
    pub fn sentence(&self) -> String {
        format!(
            "{}: {} calls of a mixed day in {} minutes, {} failed; memory {:+.1} % and descriptors {:+} from the end of the first third to the end: {}{}",
            self.target.label(),
            self.calls,
            self.minutes,
            self.failed,
            self.memory_growth_percent,
            self.descriptors_growth,
            if self.flat { "flat" } else { "NOT flat" },
            if self.faults.is_empty() {
                String::new()
            } else {
                format!(" ({})", self.faults.join("; "))
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soak(memory: impl Fn(usize) -> f64, descriptors: impl Fn(usize) -> u64) -> Soak {
        let options = Options::of(1.0);
        let samples = (0..60)
            .map(|at| Sample {
                seconds: at as f64,
                pss_mib: memory(at),
                descriptors: descriptors(at),
                p99_us: 1.0,
            })
            .collect();
        judge(Kind::Weir, &options, 100, 0, Vec::new(), samples)
    }

    #[test]
    fn creeping_is_told_from_settling() {
        assert!(soak(|_| 40.0, |_| 50).flat);
        // Caches fill in the first third; that is no leak.
        assert!(soak(|at| 20.0 + at.min(19) as f64, |_| 50).flat);
        assert!(!soak(|at| 40.0 + at as f64, |_| 50).flat);
        assert!(!soak(|_| 40.0, |at| 50 + at as u64).flat);
        let small = soak(|at| 5.0 + at as f64 / 30.0, |_| 50);
        assert!(
            small.flat && small.memory_growth_percent > 10.0,
            "{small:?}"
        );
    }

    #[test]
    fn a_failure_or_no_call_at_all_is_not_flat() {
        let good = soak(|_| 40.0, |_| 50);
        assert!(good.sentence().contains("flat") && good.sentence().contains("0 failed"));
        let options = Options::of(0.1);
        let none = judge(Kind::Weir, &options, 0, 0, Vec::new(), good.samples.clone());
        let failed = judge(Kind::Weir, &options, 9, 1, vec!["x".into()], good.samples);
        assert!(!none.flat && !failed.flat && failed.sentence().contains("NOT flat (x)"));
    }
}
