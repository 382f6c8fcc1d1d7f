//! The command line.

use crate::compare::Compare;
use crate::floors::Floor;
use crate::overload::Overload;
use crate::peers::install::Peers;
use crate::pin::Pin;
use crate::plan::Content;
use crate::readme::Readme;
use crate::target::Kind;
use crate::wire::rpc::{Era, Expect};
use clap::{Args, Parser, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Measures what an MCP proxy costs: latency, throughput, CPU per call and memory, beside floors that do nothing.
///
/// Everything runs on this machine over loopback. Every answer is checked, a window with one wrong answer does not
/// count, and targets take turns so that their ratios hold even when the machine is busy.
#[derive(Parser)]
#[command(name = "weir-bench", version, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  weir-bench quick                                    about three minutes; needs target/release/weir
  weir-bench quick --targets direct,pingora,weir      fewer targets, faster
  weir-bench full --overload --soak 20 --out results  all sizes, SSE, TLS, findings, forms of weir, peers; over two hours
  weir-bench peers install                            other people's MCP proxies, from package registries
  weir-bench quick --targets direct,pingora,weir,mcp-proxy-npm,supergateway,mitmproxy --sizes 300
  weir-bench quick --contents redacted,blocked        one redaction, one block per call
  weir-bench quick --targets pingora,weir,weir-audit-off,weir-stdio,weir-many,weir-reload --sizes 4096
  weir-bench hosted --runtimes python                 a sandboxed server, the same native, and native behind weir
  weir-bench overload --targets pingora,weir          three times the peak rate, then recovery
  weir-bench compare old/report.json new/report.json  exit code 1 when something is worse by more than 10 %
  weir-bench run --url http://127.0.0.1:9000/mcp --tool echo --argument message --expect contains

The report (report.html, report.md, report.json) goes to target/bench/<time>/. The exit code is 1 when a target failed a
request or could not be started, 2 for a wrong command line.";

/// Subcommands.
#[derive(Subcommand)]
pub enum Command {
    /// The short benchmark: 300 B to 1 MiB, 1 and 16 connections.
    Quick(Suite),
    /// The long benchmark: more sizes, SSE answers, 64 connections, more rates.
    Full(Suite),
    /// Load an MCP endpoint of your own.
    Run(Run),
    /// A server in a sandbox against the same server native, and native behind weir. Needs root and gVisor.
    Hosted(crate::hosted::Options),
    /// Offer three times the peak rate: what is still answered, how fast the rest is refused, and how long recovery takes.
    Overload(Overload),
    /// A mixed day for a long time: memory and open descriptors must not creep.
    Soak(crate::soak::Options),
    /// Judge a run by an earlier one: exit code 1 when it is worse.
    Compare(Compare),
    /// Install other people's MCP proxies to compare with, or list them.
    Peers(Peers),
    /// Write the performance section of a README from a report.
    Readme(Readme),
    /// The echo upstream (started by the benchmark itself).
    #[command(hide = true)]
    ServeEcho {
        /// Address to listen on.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Speak on standard input and output instead.
        #[arg(long)]
        stdio: bool,
    },
    /// A floor (started by the benchmark itself).
    #[command(hide = true)]
    ServeFloor {
        /// Which.
        floor: Floor,
        /// Where it forwards to.
        #[arg(long)]
        upstream: SocketAddr,
        /// Worker threads.
        #[arg(long, default_value_t = 1)]
        threads: usize,
        /// Listen by TLS, here.
        #[arg(long, requires = "certificate", requires = "key")]
        listen: Option<SocketAddr>,
        /// The certificate, PEM.
        #[arg(long)]
        certificate: Option<String>,
        /// Its key, PEM.
        #[arg(long)]
        key: Option<String>,
    },
}

/// Options of `quick` and `full`.
#[derive(Args)]
pub struct Suite {
    /// Targets, in the order of the report; by default the floors and weir, and for `full` weir in all its forms. Peers
    /// that are not installed are left out, and the report says so.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub targets: Vec<Kind>,
    /// The weir program to measure.
    #[arg(long, default_value = "target/release/weir", value_name = "FILE")]
    pub weir: PathBuf,
    /// The weir-runner program, for weir-hosted; by default the one beside weir.
    #[arg(long, value_name = "FILE")]
    pub runner: Option<PathBuf>,
    /// One more argument for `weir proxy`; may be repeated.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub weir_arg: Vec<String>,
    /// Worker threads of the floors and peers; by default as many as targets have cores.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Which cores run what.
    #[arg(long, value_enum, default_value_t = Pin::Split)]
    pub pin: Pin,
    /// Only cells with one of these text sizes, in bytes.
    #[arg(long, value_delimiter = ',', value_name = "BYTES")]
    pub sizes: Vec<usize>,
    /// Only cells with one of these numbers of connections.
    #[arg(long, value_delimiter = ',')]
    pub connections: Vec<usize>,
    /// Only cells whose text holds one of these; one named here that the plan does not have is added at 4 KiB.
    #[arg(long, value_delimiter = ',', value_enum)]
    pub contents: Vec<Content>,
    /// Where other people's proxies are installed; by default the cache folder of this project.
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// The policy plugin of weir-plugin and weir-plugins3; they are left out when it is not there.
    #[arg(
        long,
        default_value = "policies/plugins/yardstick/yardstick.wasm",
        value_name = "FILE"
    )]
    pub plugin: PathBuf,
    /// Also offer three times the peak rate to bare pingora and weir, and put that into the report.
    #[arg(long)]
    pub overload: bool,
    /// Also soak weir for so many minutes, and put that into the report.
    #[arg(long, value_name = "MINUTES")]
    pub soak: Option<f64>,
    #[command(flatten)]
    pub common: Common,
}

/// Options of `run`.
#[derive(Args)]
pub struct Run {
    /// The endpoint, for instance http://127.0.0.1:9000/mcp.
    #[arg(long)]
    pub url: String,
    /// A header to send, for instance 'Authorization: Bearer ...'; may be repeated. Never printed.
    #[arg(long = "header", value_name = "NAME:VALUE")]
    pub headers: Vec<String>,
    /// The tool to call with a text; without it, tools/list is called.
    #[arg(long)]
    pub tool: Option<String>,
    /// The tool's argument that takes the text.
    #[arg(long, default_value = "text", requires = "tool")]
    pub argument: String,
    /// What a right answer is: the text alone, a text that contains it, or any result.
    #[arg(long, value_enum, default_value_t = Expect::Contains, requires = "tool")]
    pub expect: Expect,
    /// Text sizes in bytes.
    #[arg(long, value_delimiter = ',', default_values_t = [300usize, 4096], value_name = "BYTES")]
    pub sizes: Vec<usize>,
    /// Numbers of connections.
    #[arg(long, value_delimiter = ',', default_values_t = [1usize, 16])]
    pub connections: Vec<usize>,
    /// Calls per second over all connections (open loop); without it, as fast as answers come (closed loop).
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Process whose tree's CPU and memory are measured.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Allow an endpoint that is not on this machine. Only load servers that you may load.
    #[arg(long)]
    pub allow_remote: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Options of every measurement.
#[derive(Args)]
pub struct Common {
    /// How often every target goes through every cell.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// Measured part of a window, in milliseconds.
    #[arg(long, value_parser = clap::value_parser!(u64).range(50..=600_000))]
    pub measure_ms: Option<u64>,
    /// Unmeasured start of a window, in milliseconds.
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub warmup_ms: Option<u64>,
    /// Speak this revision only; by default each cell's own.
    #[arg(long, value_enum)]
    pub era: Option<Era>,
    /// Seed of texts and of the order of targets.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for the report.
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    pub out: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn bounds_are_checked() {
        let ok = |args: &str| Cli::try_parse_from(args.split(' ')).is_ok();
        assert!(ok(
            "weir-bench quick --targets direct,pingora --rounds 2 --sizes 300,4096"
        ));
        assert!(ok(
            "weir-bench hosted --runtimes python,node --short --connections 1 --rounds 2"
        ));
        assert!(ok("weir-bench quick --targets weir,weir-hosted"));
        assert!(ok(
            "weir-bench run --url http://127.0.0.1:1/mcp --tool echo --argument message --expect contains"
        ));
        for bad in [
            "weir-bench",
            "weir-bench quick --rounds 0",
            "weir-bench quick --targets mars",
            "weir-bench run",
            "weir-bench run --url x --measure-ms 1",
            "weir-bench hosted --runtimes ruby",
            "weir-bench quick --targets native",
            "weir-bench overload --factor 0",
            "weir-bench compare a.json",
            "weir-bench compare a.json b.json --tolerance -1",
            "weir-bench compare a.json b.json --tolerance nan",
        ] {
            assert!(!ok(bad), "{bad}");
        }
    }
}
