//! `weir-bench hosted`, as a user has it: short, with one runtime.

#![allow(clippy::print_stderr, reason = "says what was left out")]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use weir_tests::{Value, runner, weir};

/// The three forms, in the order of the report.
const FORMS: [&str; 3] = ["native", "weir-native", "weir-hosted"];

#[test]
fn a_sandboxed_server_is_measured_beside_the_same_one_native() {
    if !runner::can_run() {
        return;
    }
    let cache = runner::build_roots();
    let (out, scratch) = (folder(), folder());
    let mut command = Command::new(bench());
    command.args(["hosted", "--short", "--runtimes", "node", "--rounds", "2"]);
    command.args(["--measure-ms", "400", "--warmup-ms", "50", "--weir"]);
    command.arg(weir::binary()).arg("--cache").arg(cache);
    command.arg("--out").arg(out.path());
    // What it leaves behind would be there.
    let ran = command.env("TMPDIR", scratch.path()).output();
    let ran = ran.expect("weir-bench can be run");
    assert!(ran.status.success(), "{}", said(&ran));
    let report = report(out.path());
    let server = &report["hosted"]["servers"][0];
    assert_eq!(server["label"], "Node, MCP SDK");
    assert_eq!(server["invalid"].as_array().map(Vec::len), Some(0));
    let results = server["cells"][0]["results"].as_array();
    let results = results.expect("the three forms");
    let forms: Vec<&str> = results
        .iter()
        .filter_map(|r| r["target"].as_str())
        .collect();
    assert_eq!(forms, FORMS);
    for (form, figures) in FORMS.iter().zip(results) {
        let number = |at: &str| figures.pointer(at).and_then(Value::as_f64).unwrap_or(0.0);
        assert_eq!(figures["windows"], 2, "{form}: {figures}");
        let times = ["/latency_us/p50", "/latency_us/p90", "/latency_us/p99"].map(number);
        assert!(times[0] > 0.0 && times.is_sorted(), "{form}: {times:?}");
        let [own, runner, server] =
            ["own_us", "runner_us", "server_us"].map(|part| number(&format!("/cpu_parts/{part}")));
        assert!(server > 0.0, "{form}: the server's CPU is counted");
        assert_eq!(own > 0.0, *form != "native", "{form}: the gateway's CPU");
        assert_eq!(runner > 0.0, *form == "weir-hosted", "{form}: the runner's");
        assert_eq!(number("/of_native/p50/median") > 0.0, *form != "native");
    }
    let left: Vec<_> = std::fs::read_dir(scratch.path())
        .expect("a folder of ours")
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    assert!(runner::mounts_under(scratch.path()).is_empty());
}

/// Anybody may ask; where it cannot be done the answer has the reason.
#[test]
fn without_a_runner_it_says_what_is_missing() {
    let mut command = Command::new(bench());
    command.args(["hosted", "--runner", "/nowhere/weir-runner", "--weir"]);
    let ran = command.arg(weir::binary()).output();
    let ran = ran.expect("weir-bench can be run");
    let text = said(&ran);
    assert!(
        !ran.status.success() && text.contains("sandboxes cannot run here"),
        "{text}"
    );
    assert!(
        text.contains("make runner") || text.contains("root"),
        "{text}"
    );
}

/// A report of other targets says that hosted servers were left out, and goes on.
#[test]
fn a_quick_run_without_a_runner_leaves_the_sandbox_out_by_name() {
    let out = folder();
    let mut command = Command::new(bench());
    command.args(["quick", "--targets", "direct,weir-hosted", "--sizes", "300"]);
    command.args(["--connections", "1", "--rounds", "1", "--measure-ms", "50"]);
    command.args([
        "--warmup-ms",
        "0",
        "--runner",
        "/nowhere/weir-runner",
        "--weir",
    ]);
    command.arg(weir::binary()).arg("--out").arg(out.path());
    let ran = command.output().expect("weir-bench can be run");
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(said(&ran).contains("LEFT OUT: a server in a sandbox"));
    let report = report(out.path());
    let absent = report["absent"][0].as_str().unwrap_or_default();
    assert!(absent.starts_with("a server in a sandbox: "), "{absent}");
    assert_eq!(report["hosted"], Value::Null);
}

fn bench() -> std::path::PathBuf {
    let path = weir::binary().with_file_name("weir-bench");
    assert!(path.exists(), "{} is missing", path.display());
    path
}

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The one report in a folder.
fn report(out: &Path) -> Value {
    let mut entries = std::fs::read_dir(out).expect("a report was written");
    let folder = entries.next().expect("one report").expect("readable");
    let text = std::fs::read(folder.path().join("report.json")).expect("report.json");
    serde_json::from_slice(&text).expect("JSON")
}
