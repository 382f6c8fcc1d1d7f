//! The `weir-runner` program as a child process, with real sandboxes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::wait::{PATIENCE, until};
use crate::weir;

/// A running runner. It is ended, its sandboxes with it, when this goes out of scope.
pub struct Runner {
    child: Child,
    dir: TempDir,
}

impl Runner {
    /// Starts one in a folder of its own, if sandboxes can run on this machine. If not, that is said loudly, and is a
    /// failure where `make test` demands everything.
    pub fn start() -> Option<Self> {
        if let Some(missing) = missing() {
            let text = format!("sandboxes cannot run here: {missing}");
            assert!(std::env::var_os("WEIR_KIT_REQUIRED").is_none(), "{text}");
            eprintln!("SKIPPED: {text}");
            return None;
        }
        let dir = tempfile::Builder::new().prefix("weir-chain").tempdir();
        let dir = dir.expect("a temporary folder");
        std::fs::create_dir_all(dir.path().join("state")).expect("a new folder");
        let roots = dir.path().join("state/rootfs");
        std::os::unix::fs::symlink(build_roots(), roots).expect("a new folder");
        let log = File::create(dir.path().join("runner.log")).expect("a new folder");
        let child = command(dir.path())
            .arg("serve")
            .stderr(log)
            .spawn()
            .expect("weir-runner can be run");
        let mut runner = Self { child, dir };
        until("weir-runner to be ready", PATIENCE, || {
            if let Some(status) = runner.child.try_wait().expect("our own child") {
                panic!("weir-runner ended at once ({status}):\n{}", runner.log());
            }
            runner.log().contains("weir-runner is ready").then_some(())
        });
        Some(runner)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("run/runner.sock")
    }

    /// The folder with what it keeps.
    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// What it wrote to stderr so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("runner.log")).unwrap_or_default()
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "--- log of weir-runner ---\n{}--- end of log ---",
                self.log()
            );
        }
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        // Sandboxes outlive the runner on purpose; a test's do not.
        let purged = command(self.dir.path()).arg("purge").output();
        let done = purged.as_ref().is_ok_and(|o| o.status.success());
        let left = mounts_under(self.dir.path());
        assert!(
            done && left.is_empty() || std::thread::panicking(),
            "left behind: {purged:?} {left:?}"
        );
    }
}

fn mounts_under(dir: &Path) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let under = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|at| Path::new(at).starts_with(dir));
    under.map(str::to_owned).collect()
}

/// What keeps sandboxes from running here, as `weir-runner doctor` says it.
fn missing() -> Option<String> {
    let report = Command::new(program()).args(["doctor", "--json"]).output();
    let report = report.expect("weir-runner can be run");
    let doctor: Value = serde_json::from_slice(&report.stdout).unwrap_or_default();
    if doctor["fit"] == true {
        return None;
    }
    let checks = doctor["checks"].as_array();
    let failed = checks
        .into_iter()
        .flatten()
        .filter(|c| c["state"] == "fail");
    let words: Vec<_> = failed
        .map(|c| format!("{}: {}", c["name"], c["found"]))
        .collect();
    Some(match words.is_empty() {
        true => String::from_utf8_lossy(&report.stderr).into_owned(),
        false => words.join(", "),
    })
}

/// Builds the root file systems where the tests of the runner have theirs: minutes on a new machine, nothing afterwards.
fn build_roots() -> PathBuf {
    let cache = std::env::var_os("WEIR_CACHE").map_or("/var/cache/weir".into(), PathBuf::from);
    let built = Command::new(program())
        .arg("--state")
        .arg(&cache)
        .args(["rootfs", "build"])
        .output();
    let said = |o: &Output| String::from_utf8_lossy(&o.stderr).into_owned();
    let built = built.expect("weir-runner can be run");
    assert!(
        built.status.success(),
        "no root file systems: {}",
        said(&built)
    );
    cache.join("rootfs")
}

fn command(dir: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .arg("--state")
        .arg(dir.join("state"))
        .arg("--run")
        .arg(dir.join("run"))
        .stdin(Stdio::null());
    command
}

/// The program that stands beside `weir`.
fn program() -> PathBuf {
    let path = weir::binary().with_file_name("weir-runner");
    assert!(
        path.exists(),
        "{} is missing; build it with: make runner",
        path.display()
    );
    path
}
