//! The command line.

mod audit;
mod check;
mod client_config;
mod config;
mod demo;
mod explain;
mod hosting;
mod key;
mod policy;
mod printable;
mod proxy;
mod reference;
mod rules;
mod scan;
mod serve;
mod stdio;

use std::io::{stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An MCP firewall: every message both ways is scanned, and only what policy allows goes on.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    about,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Front one MCP server: a URL, or a command that speaks stdio
    Proxy(proxy::ProxyArgs),
    /// Serve many servers of many tenants from a configuration file
    Serve(serve::ServeArgs),
    /// Stand between a desktop client and the stdio server it starts
    Stdio(stdio::StdioArgs),
    /// Check, describe or show an example of the configuration file
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make API keys
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Host servers: write, deploy, list, scale and end them
    #[command(subcommand)]
    Server(hosting::ServerCommand),
    /// Set and remove secrets of hosted servers
    #[command(subcommand)]
    Secret(hosting::SecretCommand),
    /// Run one tool of a hosted server once
    Exec(hosting::ExecArgs),
    /// Print ready snippets for MCP clients
    ClientConfig(client_config::ClientConfigArgs),
    /// Scan files (or standard input) and print what is found
    Scan(scan::ScanArgs),
    /// List, show, test and explain detection rules
    #[command(subcommand)]
    Rules(rules::RulesCommand),
    /// Say what was found in an exchange, what was done, why, and what would allow just this
    Explain(explain::ExplainArgs),
    /// Show one message blocked, one redacted and one passed, against a built-in server
    Check,
    /// Write, test and bind policy plugins
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Read the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            #[expect(
                clippy::print_stderr,
                reason = "the one place where an error reaches a person"
            )]
            {
                eprintln!("weir: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (mut out, mut err) = (stdout().lock(), stderr());
    match command {
        Command::Proxy(args) => {
            drop(out);
            proxy::run(&args)
        }
        Command::Serve(args) => {
            drop(out);
            serve::run(&args)
        }
        Command::Stdio(args) => {
            drop(out);
            stdio::run(&args)
        }
        Command::Config(command) => Ok(config::run(&command, &mut out, &mut err)?),
        Command::Key(command) => {
            key::run(&command, &mut out, &mut err)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Server(command) => {
            drop(out);
            hosting::run_server(command)
        }
        Command::Secret(command) => {
            drop(out);
            hosting::run_secret(command)
        }
        Command::Exec(args) => {
            drop(out);
            hosting::run_exec(args)
        }
        Command::ClientConfig(args) => {
            let exe = std::env::current_exe()?;
            client_config::run(&args, &exe.to_string_lossy(), &mut out, &mut err)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Scan(args) => scan::run(&args, &mut out),
        Command::Rules(command) => rules::run(&command, &mut out),
        Command::Explain(args) => explain::run(&args, &mut out),
        Command::Check => {
            drop(out);
            check::run()
        }
        Command::Policy(command) => policy::run(&command, &mut out),
        Command::Audit(command) => audit::run(&command, &mut out),
    }
}

/// Where a command without a configuration file keeps its data: a desktop client may start it
/// anywhere, also where nothing can be written (XDG Base Directory: state).
fn state_dir() -> PathBuf {
    let from = |name: &str, below: &str| {
        let dir = PathBuf::from(std::env::var_os(name)?);
        dir.is_absolute().then(|| dir.join(below))
    };
    from("XDG_STATE_HOME", "weir")
        .or_else(|| from("HOME", ".local/state/weir"))
        .unwrap_or_else(|| crate::config::DATA_DIR_DEFAULT.into())
}

/// The command line's word, else the file's, else the state folder.
fn data_dir(given: Option<PathBuf>, has_file: bool) -> Option<PathBuf> {
    given.or_else(|| (!has_file).then(state_dir))
}

/// Where a log is to be looked for when nobody says.
fn found_data_dir() -> PathBuf {
    let here = PathBuf::from(crate::config::DATA_DIR_DEFAULT);
    if here.is_dir() { here } else { state_dir() }
}
