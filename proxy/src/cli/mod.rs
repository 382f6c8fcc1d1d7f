//! The command line.

mod audit;
mod check;
mod client_config;
mod config;
mod demo;
mod explain;
mod hosting;
mod key;
mod out;
mod policy;
mod printable;
mod proxy;
mod reference;
mod rules;
mod scan;
mod serve;
mod stdio;
mod tools;

use std::io::{stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};

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
    /// List, compare and approve what servers say of their tools
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Read the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

/// What was asked cannot be done as it was asked: exit code 2, where 1 is an answer.
#[derive(Debug)]
struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs what the command line asks for.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let words = std::env::args_os().skip(1);
        let words: Vec<String> = words.map(|word| word.to_string_lossy().into()).collect();
        match with_dashes(&error, &words) {
            Some(text) => {
                crate::app::complain(&text);
                std::process::exit(2)
            }
            None => with_group(without_secret(error)).exit(),
        }
    });
    match run(cli.command) {
        Ok(code) => code,
        // Whoever read has what it wanted, such as `head`.
        Err(_) if out::is_closed() => ExitCode::SUCCESS,
        Err(error) => {
            crate::app::complain(&format!("{error:#}"));
            match error.is::<Usage>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

/// What stands behind these options in the wrong form may be a secret, and errors end up in logs: the value is left out.
fn without_secret(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let secret = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => {
            arg.starts_with("--url ") || arg.starts_with("--upstream-header ")
        }
        _ => false,
    };
    if secret && error.kind() == ErrorKind::ValueValidation {
        error.insert(
            ContextKind::InvalidValue,
            ContextValue::String("(not shown)".to_owned()),
        );
    }
    error
}

/// A command that stands in a group, called without the group's name: `weir validate`.
fn with_group(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let cli = Cli::command();
    let groups = cli.get_subcommands();
    let within = groups.filter(|group| group.find_subcommand(word).is_some());
    let tips: Vec<StyledStr> = within
        .map(|group| format!("there is `weir {} {word}`", group.get_name()).into())
        .collect();
    if !tips.is_empty() {
        // The very word is nearer than a similar one.
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let (mut out, mut err) = (out::Out::new(stdout().lock()), stderr());
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
        Command::Tools(command) => tools::run(&command, &mut out),
        Command::Audit(command) => audit::run(&command, &mut out),
    }
}

/// A server's command without the two dashes before it, written as it should be.
fn with_dashes(error: &clap::Error, words: &[String]) -> Option<String> {
    let (first, fronts) = (words.first()?, ["proxy", "stdio"]);
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_ours = error.kind() == ErrorKind::UnknownArgument && fronts.contains(&first.as_str());
    if !is_ours || found.starts_with('-') || words.iter().any(|word| word == "--") {
        return None;
    }
    let at = words.iter().position(|word| word == found)?;
    let (options, command) = words.split_at(at);
    let (options, command) = (options.join(" "), command.join(" "));
    Some(format!(
        "{found:?} is no option; put -- before the server's command: weir {options} -- {command}"
    ))
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
