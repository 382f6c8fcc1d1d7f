//! `weir-gate`: how many instructions the data path spends on fixed messages, held against a baseline.
//!
//! ```text
//! weir-gate ── valgrind (callgrind) ── weir-gate work ── decode, scan, policy, splice, SSE, the whole line
//!     └── counts per case and room ── baseline.json
//! ```
//!
//! Instructions and not time: they are the same on a busy machine. Only what is linked into the program counts; the C
//! library picks its copy loops by processor, so it is left out. Never here: sockets, clocks that matter, load.
#![forbid(unsafe_code)]

mod baseline;
mod callgrind;
mod inputs;
mod work;

use anyhow::Context;
use baseline::Baseline;
use clap::{Parser, Subcommand};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Counts the instructions of the data path and compares them with the baseline.
///
/// Exit code 0: nothing rose by more than the tolerance. 1: something did, or the counting failed. 3: valgrind is not
/// installed, or this build cannot be compared (not a plain release build for x86_64).
#[derive(Parser)]
#[command(name = "weir-gate", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Write the counts as the new baseline instead of comparing.
    #[arg(long)]
    write_baseline: bool,
    /// The baseline.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/baseline.json"), value_name = "FILE")]
    baseline: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Run the cases once (under valgrind), naming each on standard output.
    #[command(hide = true)]
    Work,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Some(Command::Work) => work::run_all(&mut std::io::stdout().lock()).map(|()| 0),
        None => gate(cli.write_baseline, &cli.baseline),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&format!("weir-gate: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

const NOT_COMPARABLE: u8 = 3;

fn gate(write: bool, file: &Path) -> anyhow::Result<u8> {
    if let Some(why) = not_comparable() {
        say(&format!("weir-gate: not compared: {why}"));
        return Ok(NOT_COMPARABLE);
    }
    let counted = Baseline::new(callgrind::count()?);
    if write {
        let old = Baseline::read(file).unwrap_or_default();
        counted.write(file)?;
        say(&old.compare(&counted).table());
        say(&format!("written: {}", file.display()));
        return Ok(0);
    }
    let old = Baseline::read(file).with_context(|| {
        format!(
            "{}: no baseline; `make baseline` writes one",
            file.display()
        )
    })?;
    let comparison = old.compare(&counted);
    say(&comparison.table());
    match comparison.complaint() {
        Some(complaint) => {
            say(&complaint);
            Ok(1)
        }
        None => Ok(0),
    }
}

/// Why the counts of this build or machine would say nothing.
fn not_comparable() -> Option<&'static str> {
    if !callgrind::installed() {
        Some("valgrind is not installed (scripts/setup.sh test, or apt-get install valgrind)")
    } else if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        Some("the baseline was counted for x86_64 Linux")
    } else if !has_vectors() {
        Some(
            "the baseline was counted on a processor with AVX2, which the matchers pick their loops by",
        )
    } else if cfg!(debug_assertions) {
        Some("this is a debug build (cargo test --release)")
    } else if option_env!("CARGO_PROFILE_RELEASE_INCREMENTAL").is_some_and(|on| on != "false") {
        Some(
            "this is an incremental build, which inlines differently (unset CARGO_PROFILE_RELEASE_INCREMENTAL)",
        )
    } else {
        None
    }
}

/// Valgrind shows a program AVX2 where the processor has it, and nothing newer.
fn has_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// A line for people. A closed standard error must not end the run.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
