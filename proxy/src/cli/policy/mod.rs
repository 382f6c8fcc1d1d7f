//! `weir policy`: plugins from the first line to the decision in force.

mod aloud;
mod cases;
mod contract;
mod keys;
mod live;
mod project;
mod pushed;
mod run;
mod scaffold;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use plugin_host::PluginHost;

use crate::config::{self, COMPONENT_BYTES_MAX};
use crate::plugins::host_for_trying as host;

/// `weir policy ...`
#[derive(Debug, clap::Subcommand)]
pub enum PolicyCommand {
    /// Make a project that builds and passes its tests at once
    New(scaffold::NewArgs),
    /// Compile a project into a component that keeps to the contract
    Build(project::BuildArgs),
    /// Run recorded messages against a component and compare the decisions
    Test(cases::TestArgs),
    /// Judge one message and explain the decision
    Run(run::RunArgs),
    /// Write test cases from live traffic, what rules find masked
    Record(live::RecordArgs),
    /// Judge recorded or live messages by two versions and list the differences; nothing is enforced
    Shadow(cases::ShadowArgs),
    /// Say what a component is, with the schema of its configuration
    Show {
        /// The component
        component: PathBuf,
    },
    /// Print the reference page of the contract (docs/plugin-contract.md)
    Contract,
    /// Make a key pair for signing plugins
    Key(keys::KeyArgs),
    /// Sign a component; the signature goes into COMPONENT.sig
    Sign(keys::SignArgs),
    /// Check a component's signature
    Verify(keys::VerifyArgs),
    /// Hand a component to a `weir serve` and put it in force
    Push(pushed::PushArgs),
    /// List what was pushed and bound
    List(pushed::ListArgs),
    /// Bind a pushed plugin to a server, or to some of its tools
    Bind(pushed::BindArgs),
    /// Take bindings away
    Unbind(pushed::UnbindArgs),
    /// Put the version before the one in force back
    Rollback(pushed::RollbackArgs),
}

/// Runs it.
pub fn run(command: &PolicyCommand, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match command {
        PolicyCommand::New(args) => scaffold::new(args, out)?,
        PolicyCommand::Build(args) => {
            let component = project::build(&project::find(args.dir.as_deref())?)?;
            writeln!(out, "{}", component.display())?;
        }
        PolicyCommand::Test(args) => return cases::test(args, out),
        PolicyCommand::Run(args) => run::run(args, out)?,
        PolicyCommand::Record(args) => live::record(args, out)?,
        PolicyCommand::Shadow(args) => cases::shadow(args, out)?,
        PolicyCommand::Show { component } => show(component, out)?,
        PolicyCommand::Contract => out.write_all(contract::page()?.as_bytes())?,
        PolicyCommand::Key(args) => keys::key(args, out)?,
        PolicyCommand::Sign(args) => keys::sign(args, out)?,
        PolicyCommand::Verify(args) => keys::verify(args, out)?,
        PolicyCommand::Push(args) => pushed::push(args, out)?,
        PolicyCommand::List(args) => pushed::list(args, out)?,
        PolicyCommand::Bind(args) => pushed::bind(args, out)?,
        PolicyCommand::Unbind(args) => pushed::unbind(args, out)?,
        PolicyCommand::Rollback(args) => pushed::rollback(args, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show(component: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let plugin = load(&host()?, component)?;
    let said = plugin.description();
    writeln!(
        out,
        "{} {}\n{}\ncontract {}",
        said.name,
        said.version,
        said.summary,
        plugin_host::CONTRACT
    )?;
    let schema: serde_json::Value = serde_json::from_str(&said.config_schema)
        .context("the schema of its configuration is no JSON")?;
    writeln!(
        out,
        "configuration:\n{}",
        serde_json::to_string_pretty(&schema)?
    )?;
    Ok(())
}

fn load(host: &PluginHost, component: &Path) -> anyhow::Result<Arc<plugin_host::Plugin>> {
    let bytes = read(component)?;
    host.load(&bytes)
        .with_context(|| format!("{} is no plugin", component.display()))
}

fn read(component: &Path) -> anyhow::Result<Vec<u8>> {
    config::read_given(component, COMPONENT_BYTES_MAX)
        .map_err(|problem| anyhow::anyhow!("{} {problem}", component.display()))
}
