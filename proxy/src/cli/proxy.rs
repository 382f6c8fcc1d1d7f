//! `weir proxy`: one server, no account, no database, no configuration file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use domain::Secret;

use super::data_dir;
use crate::app::{self, Start};
use crate::config::{self, AdminListen, ProxyOptions, ProxyUpstream, Reading};

/// What to front, and where.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  weir proxy --upstream http://127.0.0.1:9000/mcp\n  \
    weir proxy -- npx -y @modelcontextprotocol/server-everything stdio"
)]
pub struct ProxyArgs {
    /// The server's Streamable HTTP endpoint
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub upstream: Option<String>,
    /// The server's event stream, for a server of revision 2024-11-05 (HTTP+SSE)
    #[arg(long, value_name = "URL", conflicts_with_all = ["upstream", "command"])]
    pub upstream_sse: Option<String>,
    /// A header that Weir sends to the server as its own credential; the value comes from an
    /// environment variable: NAME=VARIABLE
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = parse_header)]
    pub upstream_header: Vec<(String, String)>,
    /// Where clients connect; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "IP:PORT", value_parser = config::socket_address)]
    pub listen: Option<SocketAddr>,
    /// Where metrics, health and readiness are served, or `off` [default: 127.0.0.1:8081, or a free port where that is taken]
    #[arg(long, value_name = "IP:PORT", value_parser = parse_admin_listen)]
    pub admin_listen: Option<AdminListen>,
    /// A configuration file for policy, limits and keys: those of tenant `local`, and of its server `default`
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the audit log [default: the file's, or ~/.local/state/weir]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Decide and record, but enforce nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The command of a stdio server
    #[arg(last = true, value_name = "CMD ARGS")]
    pub command: Vec<String>,
}

/// Runs until it is told to stop.
pub fn run(args: &ProxyArgs) -> anyhow::Result<ExitCode> {
    for (option, url) in [
        ("--upstream", &args.upstream),
        ("--upstream-sse", &args.upstream_sse),
    ] {
        if let Some(Err(problem)) = url.as_deref().map(config::check_url) {
            bail!(super::Usage(format!("{option}: {problem}")));
        }
    }
    let upstream = match (&args.upstream, &args.upstream_sse, &args.command[..]) {
        (Some(url), None, []) => ProxyUpstream::Url(url.clone()),
        (None, Some(url), []) => ProxyUpstream::Sse(url.clone()),
        (None, None, [program, ..]) => {
            // A file may have a PATH or a folder of the server's own.
            if args.config.is_none() {
                check_program(program)?;
            }
            ProxyUpstream::Command(args.command.clone())
        }
        _ => bail!("say what to front: --upstream URL, or -- COMMAND of a stdio server"),
    };
    let mut upstream_headers = Vec::new();
    for (name, variable) in &args.upstream_header {
        let Ok(value) = std::env::var(variable) else {
            // It may be the value itself, typed in its place.
            bail!(
                "--upstream-header {name}: behind `=` stands the name of an environment variable that holds the value, and the environment has none of that name"
            );
        };
        upstream_headers.push((name.clone(), Secret::new(value)));
    }
    let options = ProxyOptions {
        upstream: Some(upstream),
        upstream_headers,
        config: args.config.clone(),
        listen: args.listen,
        admin_listen: args.admin_listen,
        data_dir: data_dir(args.data_dir.clone(), args.config.is_some()),
        key: None,
        dry_run: args.dry_run,
    };
    let loaded = config::for_proxy(&options, Reading::First)?;
    let reload = Box::new(move || config::for_proxy(&options, Reading::Again));
    app::run(Start {
        loaded,
        reload,
        single: true,
        shared_data_dir: true,
    })
}

/// Says at once what else the first call would run into, as `weir stdio` does. Whether it can be started is for the start.
fn check_program(program: &str) -> anyhow::Result<()> {
    let why = match program.contains('/') {
        true if !Path::new(program).exists() => "there is no such file",
        false if !is_in_path(program) => "it is not found in PATH",
        _ => return Ok(()),
    };
    bail!(
        "cannot start `{}`: {why}",
        super::printable::printable(program)
    );
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn parse_admin_listen(text: &str) -> Result<AdminListen, String> {
    match text {
        "off" => Ok(AdminListen::Off),
        text => config::socket_address(text)
            .map(AdminListen::At)
            .map_err(|problem| format!("{problem}, or `off`")),
    }
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, variable)) if !name.is_empty() && !variable.is_empty() => {
            Ok((name.to_owned(), variable.to_owned()))
        }
        _ => Err("give it as NAME=VARIABLE, such as Authorization=MY_TOKEN_VARIABLE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        for (program, expected) in [
            ("/bin/sh", None),
            ("sh", None),
            (
                "/no/such",
                Some("cannot start `/no/such`: there is no such file"),
            ),
            (
                "no-such",
                Some("cannot start `no-such`: it is not found in PATH"),
            ),
        ] {
            let found = check_program(program).err().map(|e| e.to_string());
            assert_eq!(found.as_deref(), expected, "{program}");
        }
    }
}
