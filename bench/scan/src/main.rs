//! `scan-bench`: what a scan costs, beside a floor that only looks for a byte and beside a plain set of all patterns.
//!
//! Engines take turns over the same texts in the same process, and each text's figure is its best round: the machine
//! is shared, and nothing makes a round cheaper than it is. Times are of the processor, not of the clock on the wall.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "its results go there")]

mod engines;
mod measure;
mod texts;
mod worst;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// As the program has it: a tenth of a scan is the C library's, which the program does not use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a scan costs.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Clean messages, real tool results, messages with findings, and the dearest inputs known: engine by engine.
    Table {
        /// Labelled rows (`{"id", "text", ...}` a line) to measure as well, as one text each.
        #[arg(long)]
        rows: Option<PathBuf>,
        /// Only texts with this in their name.
        #[arg(long, default_value = "")]
        only: String,
        /// Only engines with this in their name: what a profile is taken of. The floor stays.
        #[arg(long, default_value = "")]
        engine: String,
        /// Milliseconds for each engine and text.
        #[arg(long, default_value_t = 300)]
        millis: u64,
    },
    /// Looks for inputs that cost much for each byte, and checks that none costs more than linear.
    Worst {
        /// How long to look.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Where the dice start.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Table {
            rows,
            only,
            engine,
            millis,
        } => {
            let rows = rows.map(|path| {
                std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))
            });
            let mut texts = texts::all(rows.transpose()?.as_deref())?;
            texts.retain(|t| t.name.contains(&only));
            table(&texts, &engine, Duration::from_millis(millis))
        }
        Command::Worst { seconds, seed } => worst::search(Duration::from_secs(seconds), seed),
    }
}

fn table(texts: &[texts::Text], engine: &str, budget: Duration) -> anyhow::Result<()> {
    let mut engines = engines::all()?;
    let mut nth = 0..;
    engines.retain(|e| nth.next() == Some(0) || e.name.contains(engine));
    println!("| text | bytes | {} |", join(&engines, |e| e.name.clone()));
    println!("|---|---:|{}", "---:|".repeat(engines.len()));
    for text in texts {
        let cells = measure::rounds(&mut engines, text, budget);
        let floor = cells[0].as_ref().map_or(f64::NAN, |c| c.nanos);
        let cell = |c: &Option<measure::Cell>| {
            let Some(c) = c else { return "–".to_owned() };
            let found = c
                .findings
                .map_or_else(String::new, |n| format!(", {n} found"));
            let speed = text.bytes as f64 / c.nanos * 1e3;
            format!(
                "{} · {speed:.0} MB/s · {:.0}x{found}",
                micros(c.nanos / text.among as f64),
                c.nanos / floor
            )
        };
        let row: Vec<_> = cells.iter().map(cell).collect();
        println!(
            "| {} | {} | {} |",
            text.name,
            text.bytes_each(),
            row.join(" | ")
        );
    }
    Ok(())
}

fn join(engines: &[engines::Engine], text: impl Fn(&engines::Engine) -> String) -> String {
    engines.iter().map(text).collect::<Vec<_>>().join(" | ")
}

fn micros(nanos: f64) -> String {
    match nanos / 1e3 {
        us if us < 10.0 => format!("{us:.2} µs"),
        us if us < 10_000.0 => format!("{us:.0} µs"),
        us => format!("{:.1} ms", us / 1e3),
    }
}
