//! `weir policy run`: one message in, the decision and its explanation out.

use std::io::{Read as _, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use domain::{Direction, Grant};

use super::aloud::aloud;
use super::cases::{Judged, Recorded, Tried, binding};
use super::pushed::grant;

/// What to judge by what.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The component
    pub component: PathBuf,
    /// File with the message, one JSON-RPC object; - reads standard input
    #[arg(default_value = "-")]
    pub message: PathBuf,
    /// The plugin's configuration, as JSON
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub plugin_config: String,
    /// What the plugin may do beyond looking, as for `bind`; may be repeated
    #[arg(long, value_name = "GRANT", value_parser = grant)]
    pub grant: Vec<Grant>,
    /// The message comes from the server, in answer to a call of this tool
    #[arg(long, value_name = "TOOL")]
    pub answer_of: Option<String>,
}

/// Longest message read, in bytes.
const MESSAGE_BYTES_MAX: u64 = 16 << 20;

/// Runs it.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let host = super::host()?;
    let plugin = super::load(&host, &args.component)?;
    let config =
        serde_json::from_str(&args.plugin_config).context("--plugin-config is no JSON object")?;
    let binding = binding(&plugin, config, &args.grant);
    let tried = aloud(|| Tried::new(&host, &plugin, binding))?;
    let mut text = Vec::new();
    if args.message.as_os_str() == "-" {
        std::io::stdin()
            .take(MESSAGE_BYTES_MAX)
            .read_to_end(&mut text)?;
    } else {
        let file = std::fs::File::open(&args.message)
            .with_context(|| format!("{} cannot be read", args.message.display()))?;
        file.take(MESSAGE_BYTES_MAX).read_to_end(&mut text)?;
    }
    let mut recorded = Recorded::new(text);
    if let Some(tool) = &args.answer_of {
        recorded.direction = Direction::ToClient;
        recorded.call = Some(("tools/call".into(), Some(tool.clone()), None));
    }
    let judged = aloud(|| tried.judge(&recorded))?;
    explain(&judged, out)
}

fn explain(judged: &Judged, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "rules alone: {}", judged.rules_alone.as_str())?;
    for (rule, path, action) in &judged.findings {
        writeln!(out, "  {rule} at {path}: {}", action.as_str())?;
    }
    match &judged.verdict {
        Err(error) => writeln!(out, "plugin: failed: {error}")?,
        Ok(verdict) => {
            writeln!(out, "plugin: {}", judged.plugin_action().as_str())?;
            if let Some(reason) = &verdict.reason {
                writeln!(out, "  reason: {reason}")?;
            }
            for mark in &verdict.marks {
                let path = judged.path(mark.leaf);
                let what = match &mark.replacement {
                    Some(text) => format!("becomes {text:?}"),
                    None => mark.action.as_str().to_owned(),
                };
                writeln!(
                    out,
                    "  {} at {path}, bytes {} to {}: {what}",
                    mark.label, mark.start, mark.end
                )?;
            }
        }
    }
    for grant in &judged.denied {
        let grant = grant.as_str();
        writeln!(
            out,
            "  it asked for {grant}, which is not granted; --grant {grant} does"
        )?;
    }
    writeln!(
        out,
        "decision: {} (took {} us)",
        judged.together.as_str(),
        judged.took.as_micros()
    )?;
    Ok(())
}
