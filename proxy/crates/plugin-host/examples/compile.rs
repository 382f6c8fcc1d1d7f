//! A program that compiles plugins for another one and does nothing else: what a program that uses
//! `Compiler::Process` does when it is started with `COMPILE_COMMAND`. The tests use this one.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args
        .next()
        .is_some_and(|first| first == plugin_host::COMPILE_COMMAND)
    {
        return ExitCode::from(plugin_host::compile_main(args));
    }
    ExitCode::FAILURE
}
