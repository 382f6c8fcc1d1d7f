//! `weir serve`: many servers of many tenants behind one listener.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app::{self, Start};
use crate::config::{self, Reading};

/// The configuration to serve.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The configuration file (see `weir config example`); read again when it changes, or on SIGHUP
    #[arg(long, short, value_name = "FILE")]
    pub config: PathBuf,
}

/// Runs until it is told to stop.
pub fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let path = args.config.clone();
    let loaded = config::to_serve(&path, Reading::First)?;
    let reload = Box::new(move || config::to_serve(&path, Reading::Again));
    app::run(Start {
        loaded,
        reload,
        single: false,
        shared_data_dir: false,
    })
}
