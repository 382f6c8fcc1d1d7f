//! `weir-bench hosted`: what a sandbox costs a call, and what of it is the gateway's part.
//!
//! The same server three times in the same minute: native on loopback, behind Weir, and in a sandbox behind Weir. Ratios
//! are taken within a round, as everywhere. Nothing is pinned but the sandboxes, by the runner, as it does in service.

mod bundle;
mod lab;
mod native;

pub use bundle::Runtime;
pub use lab::Programs;

use crate::cli::{Common, Suite};
use crate::guard;
use crate::machine;
use crate::peers;
use crate::plan::Plan;
use crate::process::memory;
use crate::progress::say;
use crate::report::{Config, Hosted, HostedServer, Report, now};
use crate::run::Runner;
use crate::stats::figures;
use crate::suite;
use crate::target::Kind;
use anyhow::bail;
use lab::Lab;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `hosted`.
#[derive(clap::Args)]
pub struct Options {
    /// The weir program.
    #[arg(long, default_value = "target/release/weir", value_name = "FILE")]
    pub weir: PathBuf,
    /// The weir-runner program; by default the one beside weir.
    #[arg(long, value_name = "FILE")]
    pub runner: Option<PathBuf>,
    /// The folder whose `rootfs` holds the runner's root file systems; by default the cache folder of this project.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Servers to host.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Runtime::ALL)]
    pub runtimes: Vec<Runtime>,
    /// The short form: one cell of 4 KiB.
    #[arg(long)]
    pub short: bool,
    /// Only cells with one of these text sizes, in bytes.
    #[arg(long, value_delimiter = ',', value_name = "BYTES")]
    pub sizes: Vec<usize>,
    /// Only cells with one of these numbers of connections.
    #[arg(long, value_delimiter = ',')]
    pub connections: Vec<usize>,
    #[command(flatten)]
    pub common: Common,
}

/// The subcommand: where it cannot be measured, that is an error with the reason.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    guard::install()?;
    let mut plan = if options.short {
        Plan::hosted_short()
    } else {
        Plan::hosted()
    };
    suite::apply(&mut plan, &options.common);
    plan.cells.retain(|cell| {
        (options.sizes.is_empty() || options.sizes.contains(&cell.size))
            && (options.connections.is_empty() || options.connections.contains(&cell.connections))
    });
    if let Some(era) = options.common.era {
        plan.speak(era);
    }
    if plan.cells.is_empty() {
        bail!("no cell of this benchmark has those sizes and connections");
    }
    let programs = programs(
        &options.weir,
        options.runner.as_deref(),
        options.cache.as_deref(),
    )?;
    if let Some(why) = programs.unfit() {
        bail!("sandboxes cannot run here: {why}");
    }
    programs.build_roots(&options.runtimes)?;
    let started = now();
    let mut machine = machine::describe();
    let hosted = measure(&plan, options.common.seed, &programs, &options.runtimes)?;
    machine.load_at_end = machine::load();
    let report = Report::of_hosted(started, suite::own_command_line(), machine, hosted);
    suite::finish(&report, 0, 0, &options.common.out)
}

/// The same for the report of a longer run.
pub enum Beside {
    /// It was not asked for.
    NotWanted,
    /// Measured.
    Measured(Hosted),
    /// This machine cannot, and why.
    Absent(String),
    /// It can, and something went wrong.
    Failed(String),
}

/// How much of it a longer run takes in.
pub struct Hosting {
    /// The cells, rounds and windows.
    pub plan: Plan,
    /// Root file systems that are missing are built, which takes minutes; otherwise it is left out then.
    pub builds_roots: bool,
}

/// Measures beside `quick` or `full`, before anything is pinned.
pub fn beside(hosting: &Hosting, options: &Suite) -> Beside {
    let programs = match programs(&options.weir, options.runner.as_deref(), None) {
        Ok(programs) => programs,
        Err(error) => return Beside::Failed(format!("{error:#}")),
    };
    if let Some(why) = programs.unfit() {
        return Beside::Absent(why);
    }
    if !hosting.builds_roots && !programs.have_roots(&Runtime::ALL) {
        return Beside::Absent(
            "the root file systems are not built yet; `make bench-hosted` builds them".to_owned(),
        );
    }
    let measured = programs
        .build_roots(&Runtime::ALL)
        .and_then(|()| measure(&hosting.plan, options.common.seed, &programs, &Runtime::ALL));
    match measured {
        Ok(hosted) => Beside::Measured(hosted),
        Err(error) => Beside::Failed(format!("{error:#}")),
    }
}

fn programs(weir: &Path, runner: Option<&Path>, cache: Option<&Path>) -> anyhow::Result<Programs> {
    let Ok(weir) = weir.canonicalize() else {
        bail!("{} is not there: `make build` makes it", weir.display());
    };
    let beside = weir.with_file_name("weir-runner");
    Ok(Programs {
        runner: runner.map_or(beside, Path::to_owned),
        cache: cache.map_or_else(peers::programs::cache_folder, Path::to_owned),
        weir,
    })
}

fn measure(
    plan: &Plan,
    seed: u64,
    programs: &Programs,
    runtimes: &[Runtime],
) -> anyhow::Result<Hosted> {
    say("hosted servers: starting weir-runner and weir serve");
    let load_at_start = machine::load();
    let mut lab = Lab::start(programs, runtimes)?;
    let mut servers = Vec::new();
    for &runtime in runtimes {
        let mut targets = lab.targets(runtime)?;
        for target in &mut targets {
            target.pss_idle = target.pid().and_then(memory::pss_of_tree);
        }
        say(&format!("hosted: {}", runtime.label()));
        let runner = Runner {
            plan,
            seed,
            upstream: None,
            ask: None,
        };
        let samples = runner.run(&mut targets)?;
        servers.push(HostedServer {
            label: runtime.label().to_owned(),
            targets: targets.iter().map(suite::target_info).collect(),
            invalid: suite::invalid_windows(plan, &samples),
            cells: figures(&plan.cells, &Kind::HOSTING, &samples),
        });
    }
    Ok(Hosted {
        config: Config::of(plan, seed, 0, "only sandboxes are pinned, by the runner"),
        gvisor: programs.gvisor(),
        load_at_start,
        load_at_end: machine::load(),
        servers,
    })
}
