//! `weir`: an MCP firewall. This file only chooses what to run.
#![forbid(unsafe_code)]

mod app;
mod cli;
mod config;
mod descriptors;
mod hosting;
mod otel;
mod pins;
mod plugins;
mod taps;

use std::process::ExitCode;

/// A call allocates some ninety times, buffers of 64 KiB among them, which the C library's allocator is slow to give and take.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // The reaper of a stdio server is this program again; it must not start a thread.
    if args
        .next()
        .is_some_and(|first| first == stdio_child::REAPER_COMMAND)
    {
        let code = stdio_child::reaper_main(args);
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    // So is what compiles plugins; it bounds itself before it reads any.
    let mut args = std::env::args_os().skip(1);
    if args
        .next()
        .is_some_and(|first| first == plugin_host::COMPILE_COMMAND)
    {
        return ExitCode::from(plugin_host::compile_main(args));
    }
    cli::main()
}
