//! The `weir-runner` program as a child process, with real sandboxes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::wait::{PATIENCE, until};
use crate::weir;

/// The line that it says when it is ready.
const READY: &str = "weir-runner is ready";

/// A sandbox that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Its id.
    pub id: String,
    /// Its process.
    pub pid: i32,
    /// Its server.
    pub server: String,
}

/// What a server used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Leases.
    pub requests: u64,
    /// Processor time in microseconds.
    pub cpu_us: u64,
}

/// A running runner. It is ended, its sandboxes with it, when this goes out of scope.
pub struct Runner {
    child: Child,
    dir: TempDir,
}

impl Runner {
    /// Starts one in a folder of its own, if sandboxes can run on this machine. If not, that is said loudly, and is a
    /// failure where `make test` demands everything.
    pub fn start() -> Option<Self> {
        if !can_run() {
            return None;
        }
        let dir = folder(&program(), "weir-chain");
        std::fs::create_dir_all(dir.path().join("state")).expect("a new folder");
        let roots = dir.path().join("state/rootfs");
        std::os::unix::fs::symlink(build_roots().join("rootfs"), roots).expect("a new folder");
        let child = spawn(dir.path());
        let mut runner = Self { child, dir };
        runner.wait_ready(1);
        Some(runner)
    }

    fn wait_ready(&mut self, life: usize) {
        until("weir-runner to be ready", PATIENCE, || {
            if let Some(status) = self.child.try_wait().expect("our own child") {
                panic!("weir-runner ended at once ({status}):\n{}", self.log());
            }
            (self.log().matches(READY).count() >= life).then_some(())
        });
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    /// Another one on the same folders, after the end of the one before.
    pub fn start_again(&mut self) {
        let lives = self.log().matches(READY).count();
        self.child = spawn(self.dir.path());
        self.wait_ready(lives + 1);
    }

    /// Ends it in order. Its sandboxes go on.
    pub fn stop(&mut self) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(pid), Signal::SIGTERM).expect("our own child");
        until("weir-runner to end", PATIENCE, || {
            self.child.try_wait().expect("our own child")
        });
    }

    /// The sandboxes that it has written down.
    pub fn sandboxes(&self) -> Vec<Sandbox> {
        let files = std::fs::read_dir(self.state().join("boxes")).expect("its folder");
        let mut all = Vec::new();
        for path in files.flatten().map(|e| e.path()) {
            // One may go away meanwhile.
            let text = std::fs::read(&path).unwrap_or_default();
            let saved: Value = serde_json::from_slice(&text).unwrap_or_default();
            if let (Some(id), Some(pid), Some(server)) = (
                saved["placed"]["id"].as_str(),
                saved["placed"]["pid"].as_i64(),
                saved["server"].as_str(),
            ) {
                all.push(Sandbox {
                    id: id.to_owned(),
                    pid: i32::try_from(pid).expect("a pid"),
                    server: server.to_owned(),
                });
            }
        }
        all
    }

    /// Ids of all sandboxes of which anything is there: a process, control group, network namespace, mount, file.
    pub fn traces(&self) -> BTreeSet<String> {
        let run = self.dir.path().join("run");
        let instance = std::fs::read(self.state().join("instance.json")).unwrap_or_default();
        let instance: Value = serde_json::from_slice(&instance).unwrap_or_default();
        let parent = format!("weir-{}", instance["tag"].as_str().unwrap_or_default());
        let groups = Path::new("/sys/fs/cgroup");
        let mut folders = vec![run.join("boxes"), run.join("netns"), run.join("tallies")];
        folders.push(groups.join(&parent));
        let controllers = std::fs::read_dir(groups).into_iter().flatten().flatten();
        folders.extend(controllers.map(|c| c.path().join(&parent)));
        let entries = folders
            .iter()
            .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
        let mut ids: BTreeSet<String> = entries
            .filter_map(|e| e.file_name().into_string().ok())
            .filter(|name| is_id(name))
            .collect();
        ids.extend(of_processes(&run));
        let mounts = mounts_under(&run.join("boxes"));
        ids.extend(
            mounts
                .iter()
                .flat_map(|m| m.split('/'))
                .filter(|p| is_id(p))
                .map(str::to_owned),
        );
        ids
    }

    /// What its file of usage holds, by server: of windows that are closed and not fetched yet, and of open ones.
    pub fn usage(&self) -> (BTreeMap<String, Usage>, BTreeMap<String, Usage>) {
        let bytes = std::fs::read(self.state().join("usage")).expect("usage is written down");
        let json = bytes.splitn(2, |b| *b == b'\n').nth(1).expect("two lines");
        let meter: Value = serde_json::from_slice(json).expect("JSON");
        let sums = |windows: &Value| {
            let mut sums: BTreeMap<String, Usage> = BTreeMap::new();
            for window in windows.as_array().into_iter().flatten() {
                let server = window["server"].as_str().expect("a server").to_owned();
                let sum = sums.entry(server).or_default();
                sum.requests += window["usage"]["requests"].as_u64().expect("a number");
                sum.cpu_us += window["usage"]["cpu_us"].as_u64().expect("a number");
            }
            sums
        };
        (sums(&meter["closed"]), sums(&meter["open"]))
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

/// A folder for a runner of this process. What killed runs left behind under the same prefix goes: runner, sandboxes,
/// mounts, folder.
pub fn folder(program: &Path, prefix: &str) -> TempDir {
    let all = std::fs::read_dir(std::env::temp_dir()).expect("a folder for temporary files");
    let ours = all
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with(prefix))
        .map(|e| e.path());
    // One without the name of its owner may have been made just now.
    for dir in ours.filter(|dir| std::fs::read_to_string(dir.join(OWNER)).is_ok_and(|o| gone(&o))) {
        clear(program, &dir);
    }
    let dir = tempfile::Builder::new().prefix(prefix).tempdir();
    let dir = dir.expect("a temporary folder");
    let (unfinished, owner) = (dir.path().join("owner.new"), dir.path().join(OWNER));
    std::fs::write(&unfinished, owner_of(std::process::id())).expect("a new folder");
    std::fs::rename(unfinished, owner).expect("a new folder");
    dir
}

/// The file in a runner's folder that names the process that the folder belongs to.
const OWNER: &str = "owner";

/// A process and when it began, so that another of the same number is not taken for it.
fn owner_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let began = after_name.split_whitespace().nth(19).unwrap_or_default();
    format!("{pid} {began}")
}

fn gone(owner: &str) -> bool {
    let pid = owner.split(' ').next().and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid| owner_of(pid) != owner)
}

fn clear(program: &Path, dir: &Path) {
    eprintln!("clearing up after a killed run: {}", dir.display());
    let state = dir.join("state").display().to_string();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|b| *b == 0).collect();
        let pid = process.file_name().to_str().and_then(|n| n.parse().ok());
        if let Some(pid) = pid
            && words.contains(&state.as_bytes())
            && words.contains(&&b"serve"[..])
        {
            let _ended = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    // A killed process lets go of its lock a moment later.
    let deadline = Instant::now() + PATIENCE;
    let purge = || command_of(program, dir).arg("purge").output();
    while !purge().is_ok_and(|o| o.status.success()) {
        if Instant::now() > deadline {
            return eprintln!("it cannot be cleared up");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _removed = std::fs::remove_dir_all(dir);
}

fn spawn(dir: &Path) -> Child {
    let mut options = File::options();
    let log = options
        .append(true)
        .create(true)
        .open(dir.join("runner.log"));
    command(dir)
        .arg("serve")
        .stderr(log.expect("a log"))
        .spawn()
        .expect("weir-runner can be run")
}

/// Sandboxes of which a process runs, also one that is about to start or to end them.
fn of_processes(run: &Path) -> BTreeSet<String> {
    let run = run.display().to_string();
    let mut ids = BTreeSet::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(&run) {
            ids.extend(line.split('\0').filter(|w| is_id(w)).map(str::to_owned));
        }
    }
    ids
}

fn is_id(word: &str) -> bool {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    word.len() == 16 && word.bytes().all(letter)
}

/// Mounts in a folder, in this process's view.
pub fn mounts_under(dir: &Path) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let under = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|at| Path::new(at).starts_with(dir));
    under.map(str::to_owned).collect()
}

/// Whether sandboxes can run on this machine. If not, that is said loudly, and is a failure where `make test` demands
/// everything.
pub fn can_run() -> bool {
    let Some(missing) = missing() else {
        return true;
    };
    let text = format!("sandboxes cannot run here: {missing}");
    assert!(std::env::var_os("WEIR_KIT_REQUIRED").is_none(), "{text}");
    eprintln!("SKIPPED: {text}");
    false
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
/// Gives the folder with `rootfs` in it.
pub fn build_roots() -> PathBuf {
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
    cache
}

fn command(dir: &Path) -> Command {
    command_of(&program(), dir)
}

fn command_of(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
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
