//! `weir-bench overload`: what becomes of a target that is offered more than it can do.
//!
//! ```text
//! peak (closed loop) ── the same under a multiple of that rate (open loop) ── one probe until it is well again
//! ```
//!
//! A refusal is 429 or 503, by HTTP or in the error of an HTTP 200. A call that waits in vain for a free connection of ours
//! was never offered; it is counted apart and makes the offered rate honest. Anything else that is not a right answer is a
//! failure.

use crate::guard;
use crate::load::{self, Client, Endpoint, Failure, Window, histogram};
use crate::machine;
use crate::payload::Pool;
use crate::pin::{self, Cores, Pin};
use crate::plan::{Cell, Content, Form};
use crate::process::cpu;
use crate::progress::say;
use crate::run::quantile_us;
use crate::target::{Kind, Launcher, Target};
use crate::wire::rpc::{Ask, Era};
use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Options of `overload`.
#[derive(clap::Args)]
pub struct Overload {
    /// Targets, one after the other.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Kind::Pingora, Kind::Weir])]
    pub targets: Vec<Kind>,
    /// The weir program.
    #[arg(long, default_value = "target/release/weir", value_name = "FILE")]
    pub weir: PathBuf,
    /// How many times the peak rate is offered.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=20))]
    pub factor: u32,
    /// Bytes of the text.
    #[arg(long, default_value_t = 4096, value_name = "BYTES")]
    pub size: usize,
    /// Connections while the peak is looked for.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub connections: u16,
    /// Connections under overload: enough that calls are offered on time.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub overload_connections: u16,
    /// Calls that weir lets run at once; it refuses the rest.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub concurrent_calls: u32,
    /// Length of the peak and of the overload, in milliseconds.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    pub measure_ms: u64,
    /// Folder for the figures.
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    pub out: PathBuf,
}

/// What one target did. Rates per second, times in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The target.
    pub target: String,
    /// Right answers in a closed loop.
    pub peak: f64,
    /// Calls due.
    pub due: f64,
    /// Calls really made.
    pub offered: f64,
    /// Right answers.
    pub good: f64,
    /// The same as a share of the peak.
    pub good_of_peak: f64,
    /// Refusals.
    pub refused: f64,
    /// Time to a refusal, median.
    pub refusal_p50_us: Option<f64>,
    /// The same of 99 in 100.
    pub refusal_p99_us: Option<f64>,
    /// Time to a right answer of 99 in 100.
    pub good_p99_us: Option<f64>,
    /// Neither answered right nor refused.
    pub failures: u64,
    /// The first few of those, in words.
    pub faults: Vec<String>,
    /// Cores that the load generator used under overload, without the upstream. Near the number it has, the offered rate
    /// and the times say more of it than of the target.
    #[serde(default)]
    pub load_cores: f64,
    /// Cores that the target used under overload.
    #[serde(default)]
    pub target_cores: Option<f64>,
    /// From the end of the overload until it was well again; absent when it was not within the time.
    pub recovery_ms: Option<f64>,
}

/// Runs all targets. Exit code 1 when a call failed otherwise than by a refusal, or a target did not recover.
pub fn run(options: &Overload) -> anyhow::Result<ExitCode> {
    guard::install()?;
    let machine = machine::describe();
    let launcher = launcher(options)?;
    let (_upstream, endpoint) = launcher.upstream()?;
    let mut all = Vec::new();
    for &kind in &options.targets {
        let Some(mut target) = launcher.start(kind, &endpoint)? else {
            say(&format!("{} is not installed", kind.label()));
            continue;
        };
        target
            .endpoint
            .open(Era::Handshake)
            .with_context(|| kind.label())?;
        say(&format!(
            "{}: peak, {} times the peak, recovery",
            kind.label(),
            options.factor
        ));
        all.push(measure(&mut target, options)?);
    }
    if all.is_empty() {
        bail!("none of the targets is installed");
    }
    let report = serde_json::json!({"machine": machine, "factor": options.factor, "size": options.size,
        "concurrent_calls": options.concurrent_calls, "targets": all});
    let file = write(&options.out, &report)?;
    say(&format!("\n{}\nfigures: {}", table(&all), file.display()));
    let good = all
        .iter()
        .all(|figures| figures.failures == 0 && figures.recovery_ms.is_some());
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn launcher(options: &Overload) -> anyhow::Result<Launcher> {
    let cores = Cores::give_out(Pin::Split);
    pin::move_to(&cores.load);
    let kinds = options.targets.iter().copied();
    let mut launcher = Launcher::new(&options.weir, kinds, cores.for_target(), cores)?;
    launcher.concurrent_calls_max = Some(options.concurrent_calls);
    Ok(launcher)
}

/// The same with the default options, in front of an upstream that is already there, for the report of a longer run.
pub fn beside(weir: &Path, upstream: &Endpoint) -> anyhow::Result<Vec<Figures>> {
    let options = Overload {
        targets: vec![Kind::Pingora, Kind::Weir],
        weir: weir.to_owned(),
        factor: 3,
        size: 4096,
        connections: 16,
        overload_connections: 256,
        concurrent_calls: 32,
        measure_ms: 5000,
        out: PathBuf::new(),
    };
    let launcher = launcher(&options)?;
    let mut all = Vec::new();
    for &kind in &options.targets {
        if let Some(mut target) = launcher.start(kind, upstream)? {
            target.endpoint.open(Era::Handshake)?;
            say(&format!("{}: overload", kind.label()));
            all.push(measure(&mut target, &options)?);
        }
    }
    Ok(all)
}

fn write(out: &Path, report: &serde_json::Value) -> anyhow::Result<PathBuf> {
    let folder = out.join(crate::report::now().replace([':', '-'], ""));
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let file = folder.join("overload.json");
    std::fs::write(&file, serde_json::to_string_pretty(report)? + "\n")?;
    Ok(file)
}

/// No target needs longer, or it does not recover.
const RECOVERY_MAX: Duration = Duration::from_secs(30);
/// Calls in a row that have to be well.
const WELL_CALLS: u32 = 10;
/// A call is well within this multiple of the median before the overload, and always within the time beside it: far below
/// what anyone notices, and above what a busy machine adds by itself.
const WELL_FACTOR: f64 = 3.0;
const WELL_FLOOR: Duration = Duration::from_millis(5);

fn measure(target: &mut Target, options: &Overload) -> anyhow::Result<Figures> {
    let cell = Cell {
        size: options.size,
        connections: usize::from(options.connections),
        rate: None,
        form: Form::Json,
        content: Content::Clean,
        era: Era::Handshake,
    };
    let (ask, pool) = (cell.ask(target.kind, &target.endpoint), cell.pool(1));
    let window = |connections, millis| Window {
        connections,
        rate: None,
        warmup: Duration::from_millis(200),
        measure: Duration::from_millis(millis),
    };
    let label = target.kind.label();
    let calm = load::run(&target.endpoint, &ask, &pool, &window(1, 500), || ()).0;
    let peak = load::run(
        &target.endpoint,
        &ask,
        &pool,
        &window(cell.connections, options.measure_ms),
        || (),
    )
    .0;
    for outcome in [&calm, &peak] {
        if !outcome.valid() {
            bail!(
                "{label}: a call failed before there was any overload: {}",
                outcome.faults.join("; ")
            );
        }
    }
    let peak = peak.calls as f64 / peak.elapsed.as_secs_f64();
    let due = (peak * f64::from(options.factor)).clamp(1.0, 1e6) as u32;
    let used = || target.pid().map(cpu::of_tree);
    let before = used();
    let flood = flood(&target.endpoint, &ask, &pool, options, due);
    let target_cores = before
        .zip(used())
        .map(|(before, after)| flood.cores(after.saturating_sub(before)));
    let well = Duration::from_secs_f64(quantile_us(&calm.latency, 0.5) * WELL_FACTOR / 1e6)
        .max(WELL_FLOOR);
    let recovery = recover(&target.endpoint, &ask, &pool, well);
    target.check_alive()?;
    Ok(Figures {
        target_cores,
        ..flood.figures(label, peak, due, recovery)
    })
}

/// What the overload gave, over all connections.
struct Flood {
    good: Histogram<u64>,
    refused: Histogram<u64>,
    failures: u64,
    faults: Vec<String>,
    elapsed: Duration,
    /// CPU time of the load generator.
    cpu: Duration,
}

/// A target that fails everything is not hammered for long.
const FAILURES_MAX: u64 = 10_000;
const FAULTS_KEPT: usize = 4;

fn flood(endpoint: &Endpoint, ask: &Ask, pool: &Pool, options: &Overload, rate: u32) -> Flood {
    let (tickets, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let start = Instant::now();
    let cpu = cpu::of_process(std::process::id());
    let end = start + Duration::from_millis(options.measure_ms);
    let one = |at: u64| {
        load::sharpen();
        let mut mine = Flood::new();
        let mut client = Client::new(endpoint.nth(at), ask);
        loop {
            let ticket = tickets.fetch_add(1, Ordering::Relaxed);
            let due = start + load::due(ticket, rate);
            if due >= end
                || Instant::now() >= end
                || failures.load(Ordering::Relaxed) > FAILURES_MAX
            {
                return mine;
            }
            load::wait_until(due);
            match client.attempt(pool.nth(ticket)) {
                Ok(times) => mine
                    .good
                    .saturating_record((times.answered - times.sent).as_nanos() as u64),
                Err(Failure::Refused(_, times)) => {
                    mine.refused
                        .saturating_record((times.answered - times.sent).as_nanos() as u64);
                }
                Err(failure) => {
                    failures.fetch_add(1, Ordering::Relaxed);
                    mine.fail(failure.to_string());
                }
            }
        }
    };
    let mut all = Flood::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..u64::from(options.overload_connections))
            .filter_map(|at| {
                let builder = std::thread::Builder::new().stack_size(512 << 10);
                let one = &one;
                builder.spawn_scoped(scope, move || one(at)).ok()
            })
            .collect();
        for worker in workers {
            all.add(worker.join().expect("workers do not panic"));
        }
    });
    all.elapsed = start.elapsed();
    all.cpu = cpu::of_process(std::process::id()).saturating_sub(cpu);
    all
}

impl Flood {
    fn new() -> Flood {
        Flood {
            good: histogram(),
            refused: histogram(),
            failures: 0,
            faults: Vec::new(),
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    fn cores(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() / self.elapsed.as_secs_f64()
    }

    fn fail(&mut self, fault: String) {
        self.failures += 1;
        if self.faults.len() < FAULTS_KEPT && !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn add(&mut self, other: Flood) {
        self.good += other.good;
        self.refused += other.refused;
        let before = self.failures;
        other.faults.into_iter().for_each(|fault| self.fail(fault));
        self.failures = before + other.failures;
    }

    fn figures(self, target: &str, peak: f64, due: u32, recovery: Option<Duration>) -> Figures {
        let seconds = self.elapsed.as_secs_f64();
        let load_cores = self.cores(self.cpu);
        let per_second = |count: u64| count as f64 / seconds;
        let quantile = |of: &Histogram<u64>, at| (!of.is_empty()).then(|| quantile_us(of, at));
        Figures {
            target: target.to_owned(),
            peak,
            due: f64::from(due),
            offered: per_second(self.good.len() + self.refused.len() + self.failures),
            good: per_second(self.good.len()),
            good_of_peak: per_second(self.good.len()) / peak,
            refused: per_second(self.refused.len()),
            refusal_p50_us: quantile(&self.refused, 0.5),
            refusal_p99_us: quantile(&self.refused, 0.99),
            good_p99_us: quantile(&self.good, 0.99),
            failures: self.failures,
            faults: self.faults,
            load_cores,
            target_cores: None,
            recovery_ms: recovery.map(|time| time.as_secs_f64() * 1e3),
        }
    }
}

/// One connection calls until enough calls in a row were well; says when the first of those was sent.
fn recover(endpoint: &Endpoint, ask: &Ask, pool: &Pool, well: Duration) -> Option<Duration> {
    let start = Instant::now();
    let mut client = Client::new(endpoint, ask);
    let (mut in_a_row, mut since, mut nth) = (0, start, 0);
    while start.elapsed() < RECOVERY_MAX {
        let begun = Instant::now();
        let good = client
            .attempt(pool.nth(nth))
            .is_ok_and(|times| times.answered - times.sent <= well);
        nth += 1;
        if !good {
            in_a_row = 0;
            // Not to be the overload that it waits out.
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        if in_a_row == 0 {
            since = begun;
        }
        in_a_row += 1;
        if in_a_row == WELL_CALLS {
            return Some(since - start);
        }
    }
    None
}

/// The figures as Markdown.
pub fn table(all: &[Figures]) -> String {
    let mut out = "| target | peak /s | offered /s | good /s | of the peak | refused /s | refusal p50 / p99 | good p99 | failures | recovery | cores: target, load |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let time = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{:.1} ms", us / 1e3));
    for figures in all {
        let _ = writeln!(
            out,
            "| {} | {:.0} | {:.0} of {:.0} | {:.0} | {:.0} % | {:.0} | {} / {} | {} | {} | {} | {}, {:.2} |",
            figures.target,
            figures.peak,
            figures.offered,
            figures.due,
            figures.good,
            figures.good_of_peak * 100.0,
            figures.refused,
            time(figures.refusal_p50_us),
            time(figures.refusal_p99_us),
            time(figures.good_p99_us),
            figures.failures,
            figures
                .recovery_ms
                .map_or("not within 30 s".to_owned(), |ms| format!("{ms:.0} ms")),
            figures
                .target_cores
                .map_or("-".to_owned(), |cores| format!("{cores:.2}")),
            figures.load_cores,
        );
        for fault in &figures.faults {
            let _ = writeln!(out, "| | {fault} |");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::http::Reader;
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    /// Echoes calls that find fewer than `most` others, refuses the rest with 503, and is out of order for as many calls
    /// as `sick` says.
    fn server(most: usize, sick: usize) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (running, sick) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicUsize::new(sick)),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (running, sick) = (Arc::clone(&running), Arc::clone(&sick));
                std::thread::spawn(move || serve(&stream, most, &running, &sick));
            }
        });
        Endpoint::parse(&url, false).unwrap()
    }

    fn serve(stream: &TcpStream, most: usize, running: &AtomicUsize, sick: &AtomicUsize) {
        let (mut reader, mut body) = (Reader::new(stream), Vec::new());
        while let Ok(Some(_)) = reader.request(&mut body, &mut || Ok(())) {
            let mut stream = stream;
            let is_sick = sick
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok();
            if running.fetch_add(1, Ordering::SeqCst) >= most || is_sick {
                let _ = stream
                    .write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
            } else {
                let call: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let result = serde_json::json!({"content": [{"type": "text", "text": call["params"]["arguments"]["text"]}]});
                let answer =
                    serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
                        .to_string();
                std::thread::sleep(Duration::from_millis(2));
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                    answer.len()
                );
            }
            running.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn options() -> Overload {
        use clap::Parser;
        let words = [
            "weir-bench",
            "overload",
            "--measure-ms",
            "300",
            "--overload-connections",
            "16",
            "--size",
            "64",
        ];
        match crate::cli::Cli::try_parse_from(words).unwrap().command {
            crate::cli::Command::Overload(options) => options,
            _ => unreachable!("asked for overload"),
        }
    }

    fn ask_and_pool(endpoint: &Endpoint) -> (Ask, Pool) {
        let cell = Cell {
            size: 64,
            connections: 1,
            rate: None,
            form: Form::Json,
            content: Content::Clean,
            era: Era::Handshake,
        };
        (cell.ask(Kind::Url, endpoint), cell.pool(1))
    }

    #[test]
    fn refusals_are_no_failures_and_are_timed() {
        let endpoint = server(2, 0);
        let (ask, pool) = ask_and_pool(&endpoint);
        let flood = flood(&endpoint, &ask, &pool, &options(), 20_000);
        assert!(
            !flood.good.is_empty() && !flood.refused.is_empty(),
            "{:?}",
            flood.faults
        );
        assert_eq!(flood.failures, 0, "{:?}", flood.faults);
        let figures = flood.figures("x", 500.0, 20_000, Some(Duration::from_millis(7)));
        assert!(
            figures.refusal_p50_us.is_some()
                && figures.offered >= figures.good + figures.refused - 1.0
        );
        assert!(table(&[figures]).contains("7 ms"));
    }

    #[test]
    fn failures_are_counted_apart() {
        let mut endpoint = server(1, 0);
        let (ask, pool) = ask_and_pool(&endpoint);
        endpoint.addr.set_port(1);
        let flood = flood(&endpoint, &ask, &pool, &options(), 1000);
        assert!(
            flood.failures > 0 && flood.good.is_empty() && flood.faults[0].contains("connection")
        );
    }

    #[test]
    fn recovery_counts_from_the_first_of_the_good_calls() {
        let endpoint = server(1, 20);
        let (ask, pool) = ask_and_pool(&endpoint);
        let well = Duration::from_secs(5);
        let sick = recover(&endpoint, &ask, &pool, well).unwrap();
        assert!(sick >= Duration::from_millis(20 * 5), "{sick:?}");
    }
}
