//! The official conformance suite, straight to a server and through Weir: no check may come out worse.

#![allow(
    clippy::print_stdout,
    reason = "what the suite says is read when a test fails"
)]

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;
use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::{Weir, kit};

/// Everything the suite has, in front of a server that passes all of it, with an API key and the default policy.
#[test]
fn no_check_is_worse_through_weir_than_direct() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("py");
    let mut config = Config::new(&server.url);
    let key = config.key(TENANT, "suite");
    let weir = Weir::serve(&config);
    let out = TempDir::new().expect("a temporary folder");
    let direct = suite(
        &localhost(&server.url),
        &out.path().join("direct"),
        None,
        &[],
    );
    assert!(
        direct >= 300,
        "the suite ran only {direct} checks: the comparison would say nothing"
    );
    let through = suite(&through(&weir), &out.path().join("weir"), Some(&key), &[]);
    assert!(
        through >= 300,
        "the suite ran only {through} checks through Weir"
    );
    compare(out.path());
}

/// A server that answers to any Host: Weir in front of it does not, and nothing else changes.
#[test]
fn dns_rebinding_is_refused_in_front_of_a_server_that_allows_it() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts");
    let mut config = Config::new(&server.url);
    let key = config.key(TENANT, "suite");
    let weir = Weir::serve(&config);
    let out = TempDir::new().expect("a temporary folder");
    let sets = [("SETS", "2025-11-25 old")];
    suite(
        &localhost(&server.url),
        &out.path().join("direct"),
        None,
        &sets,
    );
    suite(&through(&weir), &out.path().join("weir"), Some(&key), &sets);
    const CHECK: &str = "dns-rebinding-protection\tlocalhost-host-rebinding-rejected";
    assert_eq!(
        status(&out.path().join("direct"), CHECK),
        "FAILURE",
        "the server does it itself now: choose another"
    );
    assert_eq!(status(&out.path().join("weir"), CHECK), "SUCCESS");
    compare(out.path());
}

/// Without the key nothing is answered, so the first test's key was really asked for.
#[test]
fn without_the_key_every_scenario_fails() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("py");
    let mut config = Config::new(&server.url);
    config.key(TENANT, "suite");
    let weir = Weir::serve(&config);
    let out = TempDir::new().expect("a temporary folder");
    suite(
        &through(&weir),
        &out.path().join("weir"),
        None,
        &[("SETS", "2025-11-25"), ("SCENARIO", "tools-list")],
    );
    let found = status(&out.path().join("weir"), "tools-list\ttools-list");
    assert_eq!(found, "FAILURE");
}

/// Runs the suite; how many checks it made.
fn suite(url: &str, out: &Path, key: Option<&str>, env: &[(&str, &str)]) -> usize {
    let output = kit::command(kit::scripts().join("run.sh"))
        .arg(url)
        .arg(out)
        .args(key.map(|k| format!("X-API-Key: {k}")))
        .envs(env.iter().copied())
        .output()
        .expect("run.sh can be run");
    println!("{url}\n{}", text(&output));
    std::fs::read_to_string(out.join("checks.tsv"))
        .unwrap_or_default()
        .lines()
        .count()
}

fn compare(out: &Path) {
    let output = kit::command(kit::scripts().join("checks.py"))
        .arg("compare")
        .args([out.join("direct/checks.tsv"), out.join("weir/checks.tsv")])
        .output()
        .expect("checks.py can be run");
    println!("{}", text(&output));
    assert!(
        output.status.success(),
        "worse through Weir:\n{}",
        text(&output)
    );
}

/// The status of a check in the 2025-11-25 set.
fn status(out: &Path, check: &str) -> String {
    let text = std::fs::read_to_string(out.join("checks.tsv")).unwrap_or_default();
    let line = text
        .lines()
        .find(|l| l.starts_with(&format!("2025-11-25\t{check}\t")));
    line.and_then(|l| l.split('\t').nth(3))
        .unwrap_or("missing")
        .to_owned()
}

/// One scenario insists on this name.
fn localhost(url: &str) -> String {
    url.replace("127.0.0.1", "localhost")
}

fn through(weir: &Weir) -> String {
    format!("http://localhost:{}/servers/{SERVER}/mcp", weir.addr.port())
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
