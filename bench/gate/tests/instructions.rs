//! The gate itself: the data path needs no more instructions than the baseline beside this package allows.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::process::Command;

/// Without valgrind, or in a build that cannot be compared, it says so and passes, except where everything is required.
const NOT_COMPARABLE: i32 = 3;

#[test]
fn the_data_path_costs_no_more_than_its_baseline() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir-gate"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => eprintln!("{said}"),
        Some(NOT_COMPARABLE) if std::env::var_os("WEIR_KIT_REQUIRED").is_none() => {
            eprintln!("SKIPPED: {said}")
        }
        _ => panic!("{said}"),
    }
}
