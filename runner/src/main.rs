//! The command line of `weir-runner`.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use futures_util::StreamExt as _;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use runner_api::{BuildEvent, Client, Runtime};
use sandbox::Host;
use weir_runner::daemon::{Daemon, Options, today};
use weir_runner::images::idle::Bounds;
use weir_runner::secrets::KeySource;
use weir_runner::{api, doctor, meter, rootfs, spared, stock};

/// Hosts untrusted MCP servers in gVisor sandboxes.
#[derive(Parser)]
#[command(name = "weir-runner", version)]
struct Cli {
    #[command(flatten)]
    places: Places,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Places {
    /// Folder of what lasts: bundles, layers, root file systems, logs.
    #[arg(long, global = true, default_value = doctor::STATE)]
    state: PathBuf,
    /// Folder of what lasts until the next boot: the socket, running sandboxes.
    #[arg(long, global = true, default_value = doctor::RUN)]
    run: PathBuf,
    /// The runsc program, if it is not on the usual path.
    #[arg(long, global = true)]
    runsc: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the daemon.
    Serve(Serve),
    /// Say what was found on this machine, what is missing, and how to mend it.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// End all sandboxes of a runner that does not run, and remove its packet filter. Bundles and layers stay.
    Purge,
    /// Measure how long starts and calls take, against a running daemon.
    Bench {
        /// Runs of each way to start.
        #[arg(long, default_value_t = 20)]
        runs: u32,
        /// First builds: each downloads all dependencies again.
        #[arg(long, default_value_t = 1)]
        builds: u32,
        /// Only this runtime.
        runtime: Option<RuntimeName>,
    },
    /// Common layers: what many servers install, fetched once for all builds of a week.
    Common {
        #[command(subcommand)]
        command: CommonCommand,
    },
    /// Root file systems of the runtimes.
    Rootfs {
        #[command(subcommand)]
        command: RootfsCommand,
    },
}

#[derive(Args)]
struct Serve {
    /// Refuse to run when runsc is more than half a year old, instead of warning.
    #[arg(long)]
    refuse_old_runsc: bool,
    /// A network that names of egress rules may lead to although it is not public, like 10.1.0.0/16. May be repeated.
    #[arg(long = "egress-private")]
    egress_private: Vec<egress::Net>,
    /// File with the vault's root key: 32 bytes, or their hexadecimal digits or base64; for its owner only. Without it
    /// a key is made in the state folder. WEIR_VAULT_KEY and WEIR_VAULT_PASSPHRASE in the environment go before it.
    #[arg(long)]
    vault_key: Option<PathBuf>,
    /// File with the root key that was in use before: everything is sealed anew with the other one at the start.
    #[arg(long, requires = "vault_key")]
    vault_key_before: Option<PathBuf>,
    /// Id of the group that may use the socket; without it only root may.
    #[arg(long)]
    socket_group: Option<u32>,
    /// The cores that sandboxes may use, like 2-7,9; all by default. The others are left to the gateway, the runner and the
    /// rest of the host, which then never wait for a sandbox.
    #[arg(long, value_name = "LIST")]
    sandbox_cores: Option<sandbox::Cores>,
    /// How fast a sandbox writes its storage once it has written 128 MiB more than the disk has taken, in MiB per second. 0: as
    /// fast as the host can.
    #[arg(long, value_name = "MIB", default_value_t = 128)]
    storage_write_mib_s: u32,
    /// Checkpoints of idle sandboxes, at the most; over it the oldest of the tenant who has the most ends. 0: none are taken.
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    idle_checkpoints: usize,
    /// What they may take of the disk, all together, in GiB.
    #[arg(long, value_name = "GIB", default_value_t = 20)]
    idle_checkpoints_gib: u32,
    /// One more flag for every call of runsc. May be repeated.
    #[arg(long = "runsc-flag", allow_hyphen_values = true)]
    runsc_flags: Vec<String>,
}

#[derive(Subcommand)]
enum CommonCommand {
    /// Make them anew, of the newest versions, with the daemon that runs; those before go. To be told once a day or a week.
    Build {
        /// Only of this runtime.
        runtime: Option<RuntimeName>,
        /// Which: mcp (the SDK, HTTP clients) or data (Python only).
        #[arg(default_value = "mcp")]
        list: String,
    },
}

#[derive(Subcommand)]
enum RootfsCommand {
    /// Build what is missing, from Debian packages; takes a minute or two each.
    Build {
        /// Only this one.
        runtime: Option<RuntimeName>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum RuntimeName {
    Python,
    Node,
}

fn main() -> ExitCode {
    let filter =
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match run(Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    // What is made here is read by a guest of another user through gVisor; the folders above are for root only.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    // Each lease is a connection; the usual soft limit of 1024 would be reached by the first burst.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("read the limit of open files")?;
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(65_536), hard)
        .context("raise the limit of open files")?;
    // What is in memory here, and in the sandboxes that inherit this, is worth more than a core file. The kernel takes 1 as
    // no dump at all; with 0 a program that core_pattern names would still be given one.
    setrlimit(Resource::RLIMIT_CORE, 1, 1)
        .or_else(|_| setrlimit(Resource::RLIMIT_CORE, 0, 0))
        .context("turn core dumps off")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        match cli.command {
            Command::Serve(serve) => self::serve(cli.places, serve).await,
            Command::Doctor { json } => doctor(cli.places, json).await,
            Command::Purge => purge(cli.places).await,
            Command::Bench {
                runs,
                builds,
                runtime,
            } => bench(cli.places, runs, builds, runtime).await,
            Command::Common {
                command: CommonCommand::Build { runtime, list },
            } => build_common(cli.places, runtime, &list).await,
            Command::Rootfs {
                command: RootfsCommand::Build { runtime },
            } => build(cli.places, runtime),
        }
    })
}

async fn serve(places: Places, serve: Serve) -> Result<ExitCode> {
    let group = serve.socket_group;
    let options = Options {
        state: places.state,
        run: places.run,
        runsc: places.runsc,
        runsc_flags: serve.runsc_flags,
        sandbox_cores: serve.sandbox_cores,
        storage_write_mib_s: NonZeroU32::new(serve.storage_write_mib_s),
        refuse_old: serve.refuse_old_runsc,
        egress_private: serve.egress_private,
        idle_images: Bounds {
            images: serve.idle_checkpoints,
            bytes: u64::from(serve.idle_checkpoints_gib) << 30,
        },
        vault_key: KeySource {
            file: serve.vault_key,
            previous: serve.vault_key_before,
        },
        socket_group: group,
    };
    let daemon = Daemon::start(&options).await?;
    let listener = daemon.listen(group)?;
    tracing::info!(socket = %options.run.join("runner.sock").display(), "weir-runner is ready");
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    // Each on a task of its own: a round of the meter waits for the disk, and who connects must not wait for that.
    let tasks = [
        tokio::spawn(api::serve(Arc::clone(&daemon), listener)),
        tokio::spawn(meter::run(Arc::clone(&daemon.ctx))),
        tokio::spawn(stock::run(Arc::clone(&daemon.ctx))),
        tokio::spawn(stock::guard(Arc::clone(&daemon.ctx))),
        tokio::spawn(spared::run(Arc::clone(&daemon.ctx))),
        tokio::spawn(reap()),
    ];
    tokio::select! {
        (ended, ..) = futures_util::future::select_all(tasks) => {
            ended.context("a part of the runner broke off")?;
        }
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    daemon.ctx.metering.round(&*daemon.ctx.backend);
    // Worthless without this process, which has their keys.
    daemon.ctx.images.end();
    daemon.ctx.events.end();
    // Sandboxes go on; the next life finds them.
    tracing::info!("weir-runner ends; sandboxes go on and are found again by the next start");
    Ok(ExitCode::SUCCESS)
}

async fn reap() {
    let mut reaper = sandbox::Reaper::default();
    let mut every = tokio::time::interval(std::time::Duration::from_secs(2));
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        reaper.round();
    }
}

async fn purge(places: Places) -> Result<ExitCode> {
    let options = Options {
        state: places.state,
        run: places.run,
        runsc: places.runsc,
        runsc_flags: Vec::new(),
        sandbox_cores: None,
        storage_write_mib_s: None,
        refuse_old: false,
        egress_private: Vec::new(),
        idle_images: Bounds {
            images: 0,
            bytes: 0,
        },
        vault_key: KeySource::default(),
        socket_group: None,
    };
    weir_runner::daemon::purge(&options).await?;
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::print_stdout, reason = "the report is what was asked for")]
async fn doctor(places: Places, json: bool) -> Result<ExitCode> {
    let host = Host::look(today(), places.runsc, places.state.clone()).await;
    let report = doctor::report(&host, &places.state, &places.run);
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", doctor::text(&report));
    }
    Ok(if report.fit {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[allow(clippy::print_stderr, reason = "progress for whoever waits")]
fn build(places: Places, runtime: Option<RuntimeName>) -> Result<ExitCode> {
    for runtime in runtimes(runtime) {
        rootfs::build(&places.state, runtime, &mut |line| {
            eprintln!("{}: {line}", runtime.as_str())
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::print_stderr, reason = "progress for whoever waits")]
async fn build_common(
    places: Places,
    runtime: Option<RuntimeName>,
    list: &str,
) -> Result<ExitCode> {
    let client = Client::new(places.run.join("runner.sock"));
    for runtime in runtimes(runtime) {
        let name = runtime.as_str();
        let mut events = client.build_common(runtime, list).await?;
        while let Some(event) = events.next().await {
            match event? {
                BuildEvent::Output { line } => eprintln!("{name}: {line}"),
                BuildEvent::Done { layer } => eprintln!(
                    "{name}: {list} is ready, {} packages, {} MiB",
                    layer.packages,
                    layer.bytes >> 20
                ),
                BuildEvent::Stage { .. } => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn runtimes(only: Option<RuntimeName>) -> Vec<Runtime> {
    match only {
        Some(RuntimeName::Python) => vec![Runtime::Python],
        Some(RuntimeName::Node) => vec![Runtime::Node],
        None => vec![Runtime::Python, Runtime::Node],
    }
}

#[allow(clippy::print_stdout, reason = "the figures are what was asked for")]
async fn bench(
    places: Places,
    runs: u32,
    builds: u32,
    runtime: Option<RuntimeName>,
) -> Result<ExitCode> {
    let plan = weir_runner::bench::Plan {
        socket: &places.run.join("runner.sock"),
        state: &places.state,
        runs: runs.max(1),
        builds,
    };
    for runtime in runtimes(runtime) {
        weir_runner::bench::run(&plan, runtime, &mut |line| println!("{line}")).await?;
    }
    Ok(ExitCode::SUCCESS)
}
