//! From the command line to a written report: starts what is to be measured, runs the plan, stops it all.

use crate::cli::{Common, Run, Suite};
use crate::events;
use crate::guard;
use crate::hosted::{self, Beside, Hosting};
use crate::load::{CONNECTIONS_MAX, Endpoint};
use crate::machine;
use crate::pin::{self, Cores};
use crate::plan::{Cell, Content, Form, Plan};
use crate::process::memory;
use crate::progress::say;
use crate::report::{Config, Hosted, Report, TargetInfo, now};
use crate::run::{Runner, Sample};
use crate::soak::Soak;
use crate::stats::figures;
use crate::target::{Kind, Launcher, Target};
use crate::wire::rpc::{Ask, AskKind, Era};
use anyhow::{Context, bail};
use std::process::ExitCode;
use std::time::Duration;

/// `quick` and `full`.
pub fn suite(mut plan: Plan, hosting: &Hosting, options: &Suite) -> anyhow::Result<ExitCode> {
    guard::install()?;
    apply(&mut plan, &options.common);
    plan.cells
        .retain(|cell| options.sizes.is_empty() || options.sizes.contains(&cell.size));
    plan.cells.retain(|cell| {
        options.connections.is_empty() || options.connections.contains(&cell.connections)
    });
    plan.only(&options.contents);
    if let Some(era) = options.common.era {
        plan.speak(era);
    }
    let kinds = if options.targets.is_empty() {
        plan.targets.clone()
    } else {
        options.targets.clone()
    };
    if plan.cells.is_empty() {
        bail!("no cell of this benchmark has those sizes, connections and contents");
    }
    let machine = machine::describe();
    let started = now();
    let (hosted, kinds) = split_hosted(kinds, hosting, options);
    if kinds.is_empty() {
        plan.cells.clear();
    }
    let cores = Cores::give_out(options.pin);
    pin::move_to(&cores.load);
    let threads = options
        .threads
        .map_or_else(|| cores.for_target(), usize::from);
    let placement = cores.describe();
    let launcher = launcher(options, &kinds, threads, cores)?;
    let (upstream, endpoint) = launcher.upstream()?;
    let (mut targets, mut absent) = (Vec::new(), Vec::new());
    for &kind in &kinds {
        match start(&launcher, kind, &endpoint) {
            Ok(Some(target)) => targets.push(target),
            Ok(None) => absent.push(format!("{} is not installed", kind.label())),
            // Other people's programs may not start; that is no reason to measure nothing.
            Err(error) if kind.is_peer() => {
                say(&format!("{}: {error:#}", kind.label()));
                absent.push(format!("{} did not start: {error}", kind.label()));
            }
            Err(error) => return Err(error),
        }
    }
    if let Beside::Absent(why) | Beside::Failed(why) = &hosted {
        absent.push(format!("a server in a sandbox: {why}"));
    }
    let runner = Runner {
        plan: &plan,
        seed: options.common.seed,
        upstream: Some((&upstream, &endpoint)),
        ask: None,
    };
    let samples = runner.run(&mut targets)?;
    say("delays of single events");
    let events = events::measure(&mut targets, plan.rounds, options.common.seed);
    let mut report = assemble(
        started,
        machine,
        &plan,
        &options.common,
        (threads, placement),
        &targets,
        absent,
        &samples,
    );
    report.events = events;
    // What follows starts targets of its own, and has the cores for itself.
    drop(targets);
    if options.overload {
        report.overload = crate::overload::beside(&options.weir, &endpoint)?;
    }
    if let Some(minutes) = options.soak {
        report.soak = Some(soak(options, minutes, &endpoint)?);
    }
    report.machine.load_at_end = machine::load();
    let failed = failed(&samples) + usize::from(matches!(hosted, Beside::Failed(_)));
    report.hosted = match hosted {
        Beside::Measured(hosted) => Some(hosted),
        _ => None,
    };
    finish(&report, failed, samples.len(), &options.common.out)
}

/// Hosted servers have an upstream and cells of their own, and are measured before anything is pinned. They are left out
/// where only some cells were asked for and they were not.
fn split_hosted(mut kinds: Vec<Kind>, hosting: &Hosting, options: &Suite) -> (Beside, Vec<Kind>) {
    let all = kinds.len();
    kinds.retain(|kind| !kind.is_of_hosting());
    let some_cells = !options.sizes.is_empty()
        || !options.connections.is_empty()
        || !options.contents.is_empty()
        || options.common.era.is_some();
    let named = options.targets.contains(&Kind::WeirHosted);
    if kinds.len() == all || some_cells && !named {
        return (Beside::NotWanted, kinds);
    }
    let beside = hosted::beside(hosting, options);
    if let Beside::Absent(why) | Beside::Failed(why) = &beside {
        say(&format!("LEFT OUT: a server in a sandbox: {why}"));
    }
    (beside, kinds)
}

fn start(launcher: &Launcher, kind: Kind, upstream: &Endpoint) -> anyhow::Result<Option<Target>> {
    let Some(mut target) = launcher.start(kind, upstream)? else {
        return Ok(None);
    };
    target
        .endpoint
        .open(Era::Handshake)
        .with_context(|| format!("{}: first session", kind.label()))?;
    // Idle means after the first session: start-up work is over, and nothing has been scanned yet.
    std::thread::sleep(Duration::from_millis(300));
    target.pss_idle = target.pid().and_then(memory::pss_of_tree);
    say(&format!("started {} {}", kind.label(), target.version));
    target.freeze();
    Ok(Some(target))
}

/// A soak of a weir of its own, with a fresh memory.
fn soak(options: &Suite, minutes: f64, upstream: &Endpoint) -> anyhow::Result<Soak> {
    let cores = Cores::give_out(options.pin);
    let launcher = Launcher::new(&options.weir, [Kind::Weir], cores.for_target(), cores)?;
    let mut target = launcher
        .start(Kind::Weir, upstream)?
        .context("weir did not start")?;
    crate::soak::measure(&mut target, &crate::soak::Options::of(minutes))
}

/// `run --url`.
pub fn own_endpoint(options: &Run) -> anyhow::Result<ExitCode> {
    guard::install()?;
    let mut endpoint = Endpoint::parse(&options.url, options.allow_remote)?;
    for header in &options.headers {
        endpoint.headers.push(parse_header(header)?);
    }
    let kind = match &options.tool {
        Some(tool) => AskKind::Call {
            tool: tool.clone(),
            argument: options.argument.clone(),
            expect: options.expect,
        },
        None => AskKind::List,
    };
    let cell = |&size: &usize| {
        options.connections.iter().map(move |&connections| Cell {
            size,
            connections,
            rate: options.rate,
            form: Form::Json,
            content: Content::Clean,
            era: options.common.era.unwrap_or_default(),
        })
    };
    // Without a tool no text is sent, so one size is enough.
    let sizes = if options.tool.is_some() {
        options.sizes.as_slice()
    } else {
        &[0]
    };
    let mut plan = Plan {
        cells: sizes.iter().flat_map(cell).collect(),
        ..Plan::quick()
    };
    apply(&mut plan, &options.common);
    if let Some(cell) = plan
        .cells
        .iter()
        .find(|c| c.size > SIZE_MAX || !(1..=CONNECTIONS_MAX).contains(&c.connections))
    {
        bail!(
            "{}: at most {SIZE_MAX} bytes and 1 to {CONNECTIONS_MAX} connections",
            cell.label()
        );
    }
    let started = now();
    let mut machine = machine::describe();
    let mut target = Target::external(endpoint).with_pid(options.pid);
    target.pss_idle = target.pid().and_then(memory::pss_of_tree);
    let mut targets = [target];
    let ask = Ask {
        era: options.common.era.unwrap_or_default(),
        kind,
    };
    let runner = Runner {
        plan: &plan,
        seed: options.common.seed,
        upstream: None,
        ask: Some(ask),
    };
    let samples = runner.run(&mut targets)?;
    machine.load_at_end = machine::load();
    let report = assemble(
        started,
        machine,
        &plan,
        &options.common,
        (0, "not pinned".to_owned()),
        &targets,
        Vec::new(),
        &samples,
    );
    finish(
        &report,
        failed(&samples),
        samples.len(),
        &options.common.out,
    )
}

/// The largest text that `run` makes.
const SIZE_MAX: usize = 16 << 20;

/// What the command line says of rounds and windows.
pub fn apply(plan: &mut Plan, common: &Common) {
    plan.rounds = common.rounds.map_or(plan.rounds, usize::from);
    plan.measure = common
        .measure_ms
        .map_or(plan.measure, Duration::from_millis);
    plan.warmup = common.warmup_ms.map_or(plan.warmup, Duration::from_millis);
}

fn launcher(
    options: &Suite,
    kinds: &[Kind],
    threads: usize,
    cores: Cores,
) -> anyhow::Result<Launcher> {
    if cfg!(debug_assertions) {
        say("weir-bench: this is a debug build; the floors will look slow (build with --release)");
    }
    let mut launcher = Launcher::new(&options.weir, kinds.iter().copied(), threads, cores)?;
    launcher.weir_args.clone_from(&options.weir_arg);
    if let Some(peers) = &options.peers {
        launcher.peers.clone_from(peers);
    }
    // Absolute, because targets run in a folder of their own.
    launcher.plugin = options
        .plugin
        .canonicalize()
        .unwrap_or_else(|_| options.plugin.clone());
    Ok(launcher)
}

fn parse_header(header: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = header.split_once(':').context("a header is NAME:VALUE")?;
    let name_ok = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if !name_ok || value.bytes().any(|b| b < b' ' && b != b'\t') {
        bail!("a header is NAME:VALUE with a plain name and no line break");
    }
    if [
        "host",
        "content-length",
        "content-type",
        "accept",
        "connection",
        "transfer-encoding",
    ]
    .contains(&name.to_ascii_lowercase().as_str())
    {
        bail!("the header {name} is set by the benchmark");
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

#[allow(
    clippy::too_many_arguments,
    reason = "called twice, and each argument is a part of the report"
)]
fn assemble(
    started: String,
    machine: machine::Machine,
    plan: &Plan,
    common: &Common,
    (threads, placement): (usize, String),
    targets: &[Target],
    absent: Vec<String>,
    samples: &[Sample],
) -> Report {
    let kinds: Vec<Kind> = targets.iter().map(|target| target.kind).collect();
    Report {
        started,
        command: own_command_line(),
        machine,
        config: Config::of(plan, common.seed, threads, &placement),
        targets: targets.iter().map(target_info).collect(),
        absent,
        invalid: invalid_windows(plan, samples),
        cells: figures(&plan.cells, &kinds, samples),
        events: Vec::new(),
        overload: Vec::new(),
        soak: None,
        hosted: None,
    }
}

/// A target's line in the report.
pub fn target_info(target: &Target) -> TargetInfo {
    let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    TargetInfo {
        target: target.kind,
        version: target.version.clone(),
        command: match target.rewritten() {
            Some(times) => format!("{} ({times} times reloaded)", target.command),
            None => target.command.clone(),
        },
        pss_idle_mib: mib(target.pss_idle),
        pss_peak_mib: mib(target.pss_peak),
        rss_peak_mib: mib(target.peak_rss()),
    }
}

/// Windows that do not count, and why.
pub fn invalid_windows(plan: &Plan, samples: &[Sample]) -> Vec<String> {
    let invalid_ones = samples.iter().filter(|sample| !sample.valid());
    invalid_ones.map(|sample| invalid(plan, sample)).collect()
}

/// What other people's proxies cannot do is told in the report and is no failure of the run.
fn failed(samples: &[Sample]) -> usize {
    let failed = |sample: &&Sample| !sample.valid() && !sample.kind.is_peer();
    samples.iter().filter(failed).count()
}

fn invalid(plan: &Plan, sample: &Sample) -> String {
    let why = sample
        .rejected
        .clone()
        .unwrap_or_else(|| match sample.outcome.faults.join("; ") {
            none if none.is_empty() => "no call finished".to_owned(),
            faults => format!("{} failed: {faults}", sample.outcome.failed),
        });
    format!(
        "{}, {}, round {}: {why}",
        sample.kind.label(),
        plan.cells[sample.cell].label(),
        sample.round + 1
    )
}

/// The command line of this program, for the report.
pub fn own_command_line() -> String {
    command_line(std::env::args())
}

/// A command line for the report, without folders and without the values of headers.
fn command_line(args: impl Iterator<Item = String>) -> String {
    let mut hide = false;
    let words = args.enumerate().map(|(at, arg)| {
        let hidden = std::mem::replace(&mut hide, arg == "--header");
        match arg {
            _ if at == 0 => "weir-bench".to_owned(),
            _ if hidden => "<header>".to_owned(),
            arg if arg.starts_with("--header=") => "--header=<header>".to_owned(),
            // A folder of this machine says nothing to anyone else.
            arg if arg.starts_with('/') => {
                format!("<{}>", arg.rsplit('/').next().unwrap_or_default())
            }
            arg => arg,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Writes the report, shows the tables, and says by the exit code whether every request was answered right.
pub fn finish(
    report: &Report,
    failed: usize,
    windows: usize,
    out: &std::path::Path,
) -> anyhow::Result<ExitCode> {
    let folder = report.write(out)?;
    say(&format!("\n{}", report.markdown()));
    say(&format!("report: {}", folder.join("report.html").display()));
    let of_hosted = report.hosted.as_ref();
    let failed = failed + of_hosted.map_or(0, Hosted::invalid_windows);
    let windows = windows + of_hosted.map_or(0, Hosted::windows);
    if failed > 0 {
        say(&format!(
            "weir-bench: {failed} of {windows} windows are invalid"
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        assert_eq!(
            parse_header("X-API-Key: a:b").unwrap(),
            ("X-API-Key".into(), "a:b".into())
        );
        for bad in [
            "novalue",
            ": x",
            "a b: c",
            "X: a\r\nY: b",
            "Host: x",
            "content-length: 5",
        ] {
            assert!(parse_header(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn credentials_stay_out_of_the_report() {
        let args = [
            "/opt/bench",
            "run",
            "--header",
            "Authorization: hush",
            "--header=X-API-Key: hush",
            "--url",
            "http://127.0.0.1:1/",
        ];
        let shown = command_line(args.iter().map(ToString::to_string));
        assert_eq!(
            shown,
            "weir-bench run --header <header> --header=<header> --url http://127.0.0.1:1/"
        );
    }
}
