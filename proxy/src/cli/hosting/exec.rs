//! `weir exec`: one tool, once.

use std::io::{Write as _, stderr, stdout};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use http::Method;
use serde_json::{Value, json};

use super::server::One;
use crate::cli::printable::printable;

/// What to run.
#[derive(Debug, Args)]
pub struct ExecArgs {
    #[command(flatten)]
    pub one: One,
    /// The tool's name
    pub tool: String,
    /// Its arguments, a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// How long it may take in seconds, 1 to 900
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub timeout: u32,
    /// Print the whole reply: result, duration and log lines
    #[arg(long)]
    pub json: bool,
}

/// Runs it; exit code 1 when the tool says that it failed, or Weir blocked it.
pub async fn run(args: ExecArgs) -> anyhow::Result<ExitCode> {
    let arguments: Value =
        serde_json::from_str(&args.arguments).context("the arguments are not JSON")?;
    if !arguments.is_object() {
        bail!("the arguments must be a JSON object, such as '{{\"query\": \"x\"}}'");
    }
    let (client, path) = args.one.open()?;
    let wanted = json!({"tool": args.tool, "arguments": arguments, "timeout_s": args.timeout});
    let reply = client
        .send(Method::POST, &format!("{path}/exec"), &wanted)
        .await?;
    let failed = reply["result"]["isError"] == true;
    if args.json {
        writeln!(stdout(), "{reply:#}")?;
    } else {
        print(&reply)?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn print(reply: &Value) -> anyhow::Result<()> {
    for block in reply["result"]["content"].as_array().into_iter().flatten() {
        match block["text"].as_str() {
            Some(text) => {
                for line in text.lines() {
                    writeln!(stdout(), "{}", printable(line))?;
                }
            }
            None => writeln!(stdout(), "{}", printable(&block.to_string()))?,
        }
    }
    for line in reply["logs"].as_array().into_iter().flatten() {
        let text = line["text"].as_str().unwrap_or_default();
        writeln!(stderr(), "| {}", printable(text))?;
    }
    writeln!(stderr(), "{} ms", reply["duration_ms"])?;
    Ok(())
}
