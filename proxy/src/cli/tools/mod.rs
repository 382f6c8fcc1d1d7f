//! `weir tools`: what servers say of their tools, what of it was approved, and what changed since.

mod diff;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use domain::{ServerId, ToolPin, ToolPins};
use serde_json::json;

use super::printable::escaped;
use crate::config;
use crate::pins::{self, Kept};

/// `weir tools ...`
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools of servers, and whether their definitions are approved
    List(ListArgs),
    /// Show what a server changed: the approved definition against the last other one
    Diff(DiffArgs),
    /// Approve the last other definition of tools; a running `weir serve` takes it within a second
    Approve(ChangeArgs),
    /// Forget tools: what is listed next is approved as it comes
    Forget(ChangeArgs),
}

/// Whose `weir serve`.
#[derive(Debug, Args)]
struct Where {
    /// The configuration file of the `weir serve`
    #[arg(long, short, value_name = "FILE", default_value = "weir.yaml")]
    config: PathBuf,
}

/// What to list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The server; absent: all
    server: Option<String>,
    #[command(flatten)]
    at: Where,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// What to show.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The server
    server: String,
    /// The tool; absent: all that are not as they were approved
    tool: Option<String>,
    #[command(flatten)]
    at: Where,
}

/// What to approve or to forget.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// The server
    server: String,
    /// The tools
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    tools: Vec<String>,
    /// All of the server's
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    at: Where,
}

/// Runs it.
pub fn run(command: &ToolsCommand, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match command {
        ToolsCommand::List(args) => list(args, out)?,
        ToolsCommand::Diff(args) => diff(args, out)?,
        ToolsCommand::Approve(args) => approve(args, out)?,
        ToolsCommand::Forget(args) => forget(args, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Where {
    fn data_dir(&self) -> anyhow::Result<PathBuf> {
        Ok(config::to_look_at(&self.config)?.data_dir)
    }
}

/// A server of which something is kept.
fn server(data_dir: &std::path::Path, named: &str) -> anyhow::Result<Kept> {
    let known = pins::servers(data_dir)?;
    let found = known.iter().find(|id| id.as_str() == named);
    let Some(id) = found else {
        let near = domain::nearest(named, known.iter().map(ServerId::as_str));
        bail!(
            "nothing is known of the tools of a server {named:?}{}; they are pinned when a `weir serve` lists them",
            meant(near)
        );
    };
    let kept = pins::read(data_dir, id).map_err(anyhow::Error::msg)?;
    kept.with_context(|| format!("what is known of {id} is gone again"))
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!(" (do you mean {near:?}?)"))
}

fn unknown_tool(pins: &ToolPins, named: &str) -> anyhow::Error {
    let near = domain::nearest(named, pins.tools.keys().map(String::as_str));
    anyhow::anyhow!("the server has listed no tool {named:?}{}", meant(near))
}

/// The word for where a tool stands.
fn state(pin: &ToolPin) -> &'static str {
    match (&pin.approved, pin.lists_other) {
        (None, _) => "added",
        (Some(_), true) => "changed",
        (Some(_), false) => "approved",
    }
}

fn time(unix_s: u64) -> String {
    let at = i64::try_from(unix_s).ok();
    let at = at.and_then(|at| chrono::DateTime::from_timestamp(at, 0));
    at.map_or_else(
        || "-".to_owned(),
        |at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

fn list(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let data_dir = args.at.data_dir()?;
    let named = match &args.server {
        Some(named) => vec![server(&data_dir, named)?],
        None => {
            let ids = pins::servers(&data_dir)?;
            let all = ids.iter().map(|id| server(&data_dir, id.as_str()));
            all.collect::<Result<_, _>>()?
        }
    };
    for kept in &named {
        for (tool, pin) in &kept.pins.tools {
            match args.json {
                true => writeln!(out, "{}", as_json(kept, tool, pin))?,
                false => {
                    let seen = time(pin.first_seen_unix_s);
                    let server = &kept.server;
                    writeln!(
                        out,
                        "{:<8}  {seen}  {server}  {}",
                        state(pin),
                        escaped(tool)
                    )?;
                }
            }
        }
    }
    Ok(())
}

fn as_json(kept: &Kept, tool: &str, pin: &ToolPin) -> serde_json::Value {
    json!({
        "tenant": kept.tenant,
        "server": kept.server,
        "tool": tool,
        "state": state(pin),
        "first_seen": time(pin.first_seen_unix_s),
        "approved_sha256": pin.approved.as_ref().map(|approved| &approved.sha256),
        "other_sha256": pin.other.as_ref().map(|other| &other.sha256),
    })
}

fn diff(args: &DiffArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let kept = server(&args.at.data_dir()?, &args.server)?;
    let pins = &kept.pins;
    let one = match &args.tool {
        Some(named) => {
            let one = pins.tools.get_key_value(named);
            Some(one.ok_or_else(|| unknown_tool(pins, named))?)
        }
        None => None,
    };
    let waiting = pins.tools.iter().filter(|(_, pin)| !pin.is_approved());
    let mut shown: Vec<_> = match one {
        Some(one) => vec![one],
        None => waiting.collect(),
    };
    shown.retain(|(_, pin)| pin.other.is_some());
    if shown.is_empty() {
        writeln!(out, "nothing differs from what was approved")?;
    }
    for (tool, pin) in shown {
        diff::write(tool, pin, out)?;
    }
    Ok(())
}

fn approve(args: &ChangeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let data_dir = args.at.data_dir()?;
    let id = server(&data_dir, &args.server)?.server;
    let approved = pins::decide(&data_dir, &id, |pins| {
        let all = pins.tools.iter().filter(|(_, pin)| !pin.is_approved());
        let tools: Vec<String> = match args.all {
            true => all.map(|(tool, _)| tool.clone()).collect(),
            false => args.tools.clone(),
        };
        let mut approved = Vec::new();
        for tool in tools {
            let Some(pin) = pins.tools.get_mut(&tool) else {
                return Err(unknown_tool(pins, &tool));
            };
            match pin.approve() {
                Some(sha256) => approved.push((tool, sha256)),
                // Twice does no harm.
                None if pin.is_approved() => {}
                None => bail!("no definition of {tool:?} is known; forget it to begin again"),
            }
        }
        Ok(approved)
    })?;
    if approved.is_empty() {
        writeln!(out, "nothing waits for approval")?;
    }
    for (tool, sha256) in approved {
        let short = sha256.get(..12).unwrap_or_default();
        writeln!(out, "approved {} ({short})", escaped(&tool))?;
    }
    Ok(())
}

fn forget(args: &ChangeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let data_dir = args.at.data_dir()?;
    let id = server(&data_dir, &args.server)?.server;
    let gone = pins::decide(&data_dir, &id, |pins| {
        if args.all {
            let gone = pins.tools.keys().cloned().collect();
            pins.forget_all();
            return Ok(gone);
        }
        let gone: std::collections::BTreeSet<String> = args.tools.iter().cloned().collect();
        for tool in &gone {
            if !pins.tools.contains_key(tool) {
                return Err(unknown_tool(pins, tool));
            }
        }
        for tool in &gone {
            pins.forget(tool);
        }
        Ok(gone)
    })?;
    for tool in gone {
        writeln!(out, "forgotten {}", escaped(&tool))?;
    }
    Ok(())
}
