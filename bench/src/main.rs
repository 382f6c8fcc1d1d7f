//! `weir-bench`: what an MCP proxy costs, measured side by side with floors that do nothing.
//!
//! ```text
//! load threads ── target (own process) ── echo upstream (own process)
//!      │              │ CPU, memory
//!      └── samples ── stats ── report (JSON, Markdown, HTML)
//! ```
//!
//! It never sends anything beyond loopback unless told to, never measures a debug build silently, and never counts a
//! window in which an answer was wrong.
#![forbid(unsafe_code)]

mod child;
mod cli;
mod compare;
mod echo;
mod events;
mod floors;
mod guard;
mod hosted;
mod kind;
mod load;
mod machine;
mod overload;
mod payload;
mod peers;
mod pin;
mod plan;
mod process;
mod progress;
mod random;
mod readme;
mod report;
mod run;
mod soak;
mod stages;
mod stats;
mod suite;
mod target;
mod tls;
mod weir;
mod wire;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = dispatch(Cli::parse().command);
    guard::yield_to_interrupt();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            progress::say(&format!("weir-bench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Quick(options) => {
            let hosting = hosted::Hosting {
                plan: plan::Plan::hosted_short(),
                builds_roots: false,
            };
            suite::suite(plan::Plan::quick(), &hosting, &options)
        }
        Command::Full(options) => {
            let hosting = hosted::Hosting {
                plan: plan::Plan::hosted(),
                builds_roots: true,
            };
            suite::suite(plan::Plan::full(), &hosting, &options)
        }
        Command::Run(options) => suite::own_endpoint(&options),
        Command::Hosted(options) => hosted::run(&options),
        Command::Overload(options) => overload::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Peers(options) => peers::install::run(&options),
        Command::Readme(options) => readme::run(&options),
        Command::ServeEcho { stdio: true, .. } => {
            echo::serve_lines(std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::ServeEcho { listen, .. } => {
            guard::end_with_parent();
            let listener = std::net::TcpListener::bind(listen)?;
            floors::announce(listener.local_addr()?)?;
            echo::serve(&listener)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::ServeFloor {
            floor,
            upstream,
            threads,
            listen,
            certificate,
            key,
        } => {
            guard::end_with_parent();
            let tls = match (listen, certificate, key) {
                (Some(listen), Some(certificate), Some(key)) => Some(floors::Tls {
                    listen,
                    certificate,
                    key,
                }),
                _ => None,
            };
            floors::serve(floor, upstream, threads, tls)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
