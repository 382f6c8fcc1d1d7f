//! A runner, a gateway and deployed servers, in a temporary folder and for as long as a measurement takes.
//!
//! ```text
//! native server ─────────────────────┐ the same bundle, packages, command
//!   └── weir serve (/servers/...)    │
//!         └── weir-runner ── sandbox ┘ (/sandbox/...)
//! ```
//!
//! Sandboxes outlive their runner on purpose; those of a lab do not: they are purged when it is dropped, and when the
//! program is interrupted.

use super::bundle::Runtime;
use super::native::Sandbox;
use crate::child::Process;
use crate::floors::free_port;
use crate::guard;
use crate::load::Endpoint;
use crate::process::meter::{Helpers, Server};
use crate::progress::say;
use crate::target::{Kind, Target};
use crate::wire::rpc::Era;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::fmt::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TENANT: &str = "bench";
/// A runner that was killed lets go of its folders a moment later.
const PURGE_MAX: Duration = Duration::from_secs(10);
/// Of what a failed command said, as much as tells why.
const LAST_LINES: usize = 8;

/// The programs, and where root file systems are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// `weir`.
    pub weir: PathBuf,
    /// `weir-runner`.
    pub runner: PathBuf,
    /// The folder with `rootfs` in it.
    pub cache: PathBuf,
}

/// What `weir-runner doctor` finds.
#[derive(Debug, Default, Deserialize)]
struct Doctor {
    fit: bool,
    #[serde(default)]
    checks: Vec<Check>,
}

#[derive(Debug, Deserialize)]
struct Check {
    name: String,
    state: String,
    found: String,
}

impl Programs {
    /// Why this machine cannot host, in words for the report; `None` where it can.
    pub fn unfit(&self) -> Option<String> {
        if !nix::unistd::geteuid().is_root() {
            return Some("it needs root".to_owned());
        }
        if !self.runner.is_file() {
            return Some("weir-runner is not there; `make runner` makes it".to_owned());
        }
        match self.doctor() {
            Ok(doctor) => doctor.unfit(),
            Err(error) => Some(format!("weir-runner doctor: {error:#}")),
        }
    }

    /// What `doctor` says of gVisor.
    pub fn gvisor(&self) -> String {
        let doctor = self.doctor().unwrap_or_default();
        let check = doctor.checks.into_iter().find(|c| c.name == "gVisor");
        check.map_or_else(String::new, |check| version_in(&check.found))
    }

    fn doctor(&self) -> anyhow::Result<Doctor> {
        let output = output(Command::new(&self.runner).args(["doctor", "--json"]))?;
        serde_json::from_slice(&output.stdout).with_context(|| last_lines(&output))
    }

    /// Some root file system of each runtime is there; the runner says whether it is the one that it wants.
    pub fn have_roots(&self, runtimes: &[Runtime]) -> bool {
        let built = |runtime: &Runtime| {
            let entries = std::fs::read_dir(self.cache.join("rootfs"));
            entries.into_iter().flatten().flatten().any(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with(runtime.id()) && entry.path().join("etc/weir-rootfs").is_file()
            })
        };
        runtimes.iter().all(built)
    }

    /// Builds what is missing: a minute or two each on a new machine, nothing afterwards.
    pub fn build_roots(&self, runtimes: &[Runtime]) -> anyhow::Result<()> {
        for runtime in runtimes {
            say(&format!(
                "root file system for {} (the first time takes a minute or two)",
                runtime.id()
            ));
            let mut command = Command::new(&self.runner);
            command.arg("--state").arg(&self.cache);
            command.args(["rootfs", "build", runtime.id()]);
            succeed(&mut command).context("no root file system")?;
        }
        Ok(())
    }
}

impl Doctor {
    fn unfit(&self) -> Option<String> {
        if self.fit {
            return None;
        }
        let failed: Vec<String> = self
            .checks
            .iter()
            .filter(|check| check.state == "fail")
            .map(|check| format!("{}: {}", check.name, check.found))
            .collect();
        Some(failed.join(", "))
    }
}

/// The word that looks like a version, in a sentence with a path before it.
fn version_in(found: &str) -> String {
    let mut words = found.split_whitespace();
    let word = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    word.unwrap_or_default().to_owned()
}

/// All of it. Fields end in this order: first who calls, last what is called.
pub struct Lab {
    twins: Vec<Process>,
    gateway: Process,
    runner: Process,
    _purge: Purge,
    scratch: TempDir,
    addr: SocketAddr,
    native: Vec<(Runtime, SocketAddr)>,
}

impl Lab {
    /// Starts runner and gateway and deploys a server of each runtime.
    pub fn start(programs: &Programs, runtimes: &[Runtime]) -> anyhow::Result<Lab> {
        let scratch = tempfile::Builder::new()
            .prefix("weir-bench-hosted-")
            .tempdir()?;
        let purge = Purge::of(&programs.runner, scratch.path());
        guard::scratch(scratch.path().to_owned());
        std::fs::create_dir(purge.state())?;
        std::os::unix::fs::symlink(programs.cache.join("rootfs"), purge.state().join("rootfs"))?;
        let socket = purge.run().join("runner.sock");
        let mut runner = Process::start(purge.command("serve"))?;
        runner
            .wait_until(|| UnixStream::connect(&socket).is_ok())
            .context("weir-runner")?;
        let (addr, api) = (free_port()?, free_port()?);
        let mut native = Vec::new();
        for &runtime in runtimes {
            native.push((runtime, free_port()?));
        }
        let file = scratch.path().join("weir.yaml");
        let data = scratch.path().join("data");
        std::fs::write(&file, config(addr, api, &socket, &data, &native))?;
        let mut command = Command::new(&programs.weir);
        command.args(["serve", "--config"]).arg(&file);
        let mut gateway = Process::start(command)?;
        for addr in [addr, api] {
            gateway.wait_for_port(addr).context("weir serve")?;
        }
        deploy(&programs.weir, scratch.path(), api, &data, runtimes)?;
        Ok(Lab {
            twins: Vec::new(),
            gateway,
            runner,
            _purge: purge,
            scratch,
            addr,
            native,
        })
    }

    /// The three targets of a runtime: native, behind the gateway, and in a sandbox behind it.
    pub fn targets(&mut self, runtime: Runtime) -> anyhow::Result<Vec<Target>> {
        let at = self.native.iter().find(|(of, _)| *of == runtime);
        let listen = at.context("a runtime that was not deployed")?.1;
        let url = |path: &str| format!("http://{}{path}", self.addr);
        let hosted = url(&format!("/sandbox/{}/mcp", runtime.id()));
        let mut sandboxed = Endpoint::parse(&hosted, false)?;
        // The first session starts the sandbox.
        sandboxed
            .open(Era::Handshake)
            .with_context(|| format!("the hosted {} server", runtime.id()))?;
        let (state, run) = (
            self.scratch.path().join("state"),
            self.scratch.path().join("run"),
        );
        let sandbox = Sandbox::of(runtime.id(), &state, &run)?;
        let twin = sandbox.twin(listen).context("the native server")?;
        let outside = Helpers {
            runner: None,
            server: Some(Server::Tree(twin.pid())),
        };
        self.twins.push(twin);
        let gateway = self.gateway.pid();
        let target = |kind, endpoint, pid, helpers, command: &str| {
            let mut target = Target::external(endpoint).with_pid(pid);
            target.kind = kind;
            target.helpers = helpers;
            target.command = command.to_owned();
            target
        };
        let native = Endpoint::parse(&format!("http://{listen}/mcp"), false)?;
        let fronted = Endpoint::parse(&url(&format!("/servers/{}/mcp", twin_id(runtime))), false)?;
        let inside = Helpers {
            runner: Some(self.runner.pid()),
            server: Some(Server::Sandbox(sandbox.pid)),
        };
        Ok(vec![
            target(Kind::Native, native, None, outside, "the bundle's command"),
            target(
                Kind::WeirNative,
                fronted,
                Some(gateway),
                outside,
                "weir serve",
            ),
            target(
                Kind::WeirHosted,
                sandboxed,
                Some(gateway),
                inside,
                "weir serve, weir-runner serve",
            ),
        ])
    }
}

/// The id of the server in front of a native one.
fn twin_id(runtime: Runtime) -> String {
    format!("native-{}", runtime.id())
}

fn config(
    listen: SocketAddr,
    api: SocketAddr,
    socket: &Path,
    data: &Path,
    native: &[(Runtime, SocketAddr)],
) -> String {
    let mut text = format!(
        "listen: {listen}\nadmin_listen: \"off\"\ndata_dir: {}\nhosting: {{runner: {}, listen: \"{api}\"}}\ntenants:\n  {TENANT}:\n    servers:\n",
        data.display(),
        socket.display()
    );
    for (runtime, addr) in native {
        let id = twin_id(*runtime);
        let _ = writeln!(
            text,
            "      {id}: {{upstream: {{url: \"http://{addr}/mcp\"}}}}"
        );
    }
    text
}

/// Uploads and builds all of them at once.
fn deploy(
    weir: &Path,
    scratch: &Path,
    api: SocketAddr,
    data: &Path,
    runtimes: &[Runtime],
) -> anyhow::Result<()> {
    let one = |runtime: Runtime| -> anyhow::Result<()> {
        let folder = runtime.write(&scratch.join("bundles"))?;
        let mut command = Command::new(weir);
        command.args(["server", "deploy"]).arg(folder);
        command.args(["--id", runtime.id(), "--tenant", TENANT]);
        command.args(["--api", &format!("http://{api}"), "--token-file"]);
        command.arg(data.join("admin.token"));
        succeed(&mut command).with_context(|| format!("deploy the {} server", runtime.id()))
    };
    say("deploying: packages are installed");
    std::thread::scope(|scope| {
        let jobs: Vec<_> = runtimes
            .iter()
            .map(|&runtime| scope.spawn(move || one(runtime)))
            .collect();
        let done: Vec<_> = jobs.into_iter().map(|job| job.join()).collect();
        done.into_iter()
            .try_for_each(|job| job.unwrap_or_else(|_| bail!("deploying failed")))
    })
}

/// Ends the sandboxes of a runner that has ended, once. Who comes second waits for the first: an interrupt must not end
/// the program in the middle of it.
struct Purge {
    program: PathBuf,
    folder: PathBuf,
    done: Arc<Mutex<bool>>,
}

impl Purge {
    fn of(program: &Path, folder: &Path) -> Purge {
        let purge = Purge {
            program: program.to_owned(),
            folder: folder.to_owned(),
            done: Arc::default(),
        };
        let interrupted = Purge {
            program: purge.program.clone(),
            folder: purge.folder.clone(),
            done: Arc::clone(&purge.done),
        };
        guard::at_end(move || drop(interrupted));
        purge
    }

    fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn run(&self) -> PathBuf {
        self.folder.join("run")
    }

    fn command(&self, word: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--state").arg(self.state());
        command.arg("--run").arg(self.run()).arg(word);
        command
    }
}

impl Drop for Purge {
    fn drop(&mut self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *done, true) || !self.run().exists() {
            return;
        }
        let deadline = Instant::now() + PURGE_MAX;
        while let Err(error) = succeed(&mut self.command("purge")) {
            if Instant::now() > deadline {
                let folder = self.folder.display();
                return say(&format!("sandboxes are left, see {folder}: {error:#}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // What was being built when the runner ended has a disk of its own.
        for place in mounts_under(&self.folder) {
            let _ = succeed(Command::new("umount").arg(place));
        }
    }
}

/// Mounts in a folder, the innermost first.
fn mounts_under(folder: &Path) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut under: Vec<PathBuf> = places
        .map(PathBuf::from)
        .filter(|place| place.starts_with(folder))
        .collect();
    under.reverse();
    under
}

fn output(command: &mut Command) -> anyhow::Result<Output> {
    let command = command.stdin(Stdio::null());
    guard::unmasked(|| command.output())
        .with_context(|| command.get_program().to_string_lossy().into_owned())
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let output = output(command)?;
    if !output.status.success() {
        bail!("{}", last_lines(&output));
    }
    Ok(())
}

fn last_lines(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_by_name() {
        let doctor = |text: &str| serde_json::from_str::<Doctor>(text).unwrap();
        let unfit = doctor(
            r#"{"runner": "x", "fit": false, "checks": [
                {"name": "rights", "state": "fail", "found": "not root", "mend": "run it as root"},
                {"name": "ip", "state": "ok", "found": "/usr/sbin/ip"},
                {"name": "gVisor", "state": "fail", "found": "no runsc"}]}"#,
        );
        assert_eq!(
            unfit.unfit().as_deref(),
            Some("rights: not root, gVisor: no runsc")
        );
        assert_eq!(doctor(r#"{"fit": true}"#).unfit(), None);
        let programs = Programs {
            weir: "weir".into(),
            runner: "/nowhere/weir-runner".into(),
            cache: "/nowhere".into(),
        };
        let why = programs.unfit().unwrap();
        let root = nix::unistd::geteuid().is_root();
        assert!(
            why.contains(if root { "make runner" } else { "root" }),
            "{why}"
        );
        assert!(!programs.have_roots(&[Runtime::Python]));
    }

    #[test]
    fn a_version_is_found_in_what_the_doctor_says() {
        for (found, version) in [
            (
                "/usr/bin/runsc 0.0~20240729.0 is more than half a year old",
                "0.0~20240729.0",
            ),
            ("/opt/runsc 20261101.0", "20261101.0"),
            ("no runsc", ""),
        ] {
            assert_eq!(version_in(found), version, "{found}");
        }
    }

    #[test]
    fn the_configuration_has_the_twins_and_the_runner() {
        let at = |text: &str| text.parse().unwrap();
        let text = config(
            at("127.0.0.1:1"),
            at("127.0.0.1:2"),
            Path::new("/r.sock"),
            Path::new("/d"),
            &[
                (Runtime::Python, at("127.0.0.1:3")),
                (Runtime::Node, at("127.0.0.1:4")),
            ],
        );
        for part in [
            "listen: 127.0.0.1:1\n",
            "hosting: {runner: /r.sock, listen: \"127.0.0.1:2\"}\n",
            "      native-python: {upstream: {url: \"http://127.0.0.1:3/mcp\"}}\n",
            "      native-node: {upstream: {url: \"http://127.0.0.1:4/mcp\"}}\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
