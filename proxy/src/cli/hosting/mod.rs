//! `weir server`, `weir secret` and `weir exec`: the admin API from the command line, and nothing else.

mod client;
mod deploy;
mod exec;
mod init;
mod pack;
mod secret;
mod server;

use std::path::PathBuf;

use clap::Args;

pub use exec::ExecArgs;
pub use secret::SecretCommand;
pub use server::ServerCommand;

/// Where the admin API is.
#[derive(Debug, Clone, Args)]
pub struct ApiArgs {
    /// The admin API of `weir serve`
    #[arg(
        long,
        env = "WEIR_API",
        value_name = "URL",
        default_value = "http://127.0.0.1:8090",
        global = true
    )]
    pub api: String,
    /// File with the admin token; `weir serve` makes it in its data folder. WEIR_ADMIN_TOKEN may hold the token itself
    #[arg(
        long,
        env = "WEIR_ADMIN_TOKEN_FILE",
        value_name = "FILE",
        default_value = "weir-data/admin.token",
        global = true
    )]
    pub token_file: PathBuf,
}

/// Runs `weir server ...`.
pub fn run_server(command: ServerCommand) -> anyhow::Result<std::process::ExitCode> {
    within(server::run(command))
}

/// Runs `weir secret ...`.
pub fn run_secret(command: SecretCommand) -> anyhow::Result<std::process::ExitCode> {
    within(secret::run(command))
}

/// Runs `weir exec ...`.
pub fn run_exec(args: ExecArgs) -> anyhow::Result<std::process::ExitCode> {
    within(exec::run(args))
}

fn within(
    work: impl Future<Output = anyhow::Result<std::process::ExitCode>>,
) -> anyhow::Result<std::process::ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}
