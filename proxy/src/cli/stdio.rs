//! `weir stdio`: stdio on both sides, to put before a server's command in a client's configuration.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use super::data_dir;
use crate::app;
use crate::config::{self, ProxyOptions, ProxyUpstream, Reading};

/// The server to start.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  weir stdio -- npx -y @modelcontextprotocol/server-filesystem ~/notes"
)]
pub struct StdioArgs {
    /// A configuration file for policy and limits: those of tenant `local`, and of its server `default`
    #[arg(long, short, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the audit log [default: the file's, or ~/.local/state/weir]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Decide and record, but enforce nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The command of the server
    #[arg(last = true, value_name = "CMD ARGS", required = true)]
    pub command: Vec<String>,
}

/// Runs until either side ends.
pub fn run(args: &StdioArgs) -> anyhow::Result<ExitCode> {
    if args.command.is_empty() {
        bail!(super::Usage(
            "say which server to start: weir stdio -- COMMAND ARGS".into()
        ));
    }
    let options = ProxyOptions {
        upstream: Some(ProxyUpstream::Command(args.command.clone())),
        upstream_headers: Vec::new(),
        config: args.config.clone(),
        listen: None,
        admin_listen: None,
        data_dir: data_dir(args.data_dir.clone(), args.config.is_some()),
        key: None,
        dry_run: args.dry_run,
    };
    app::run_stdio(config::for_proxy(&options, Reading::First)?)
}
