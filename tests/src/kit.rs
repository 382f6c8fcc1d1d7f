//! Other people's servers and clients, installed by `scripts/setup.sh test`.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Canary, wait};

/// Whether the kit is there. Without it a test is skipped with a word, except where `make test` demands it.
pub fn ready() -> bool {
    let node = dir().join("node22/.stamp");
    let complete = [
        "node22",
        "everything",
        "conf",
        "conf-old",
        "inspector",
        "clients",
        "py",
        "pyold",
        "everything-py",
    ]
    .iter()
    .all(|part| dir().join(part).join(".stamp").exists());
    if !complete {
        let text = format!(
            "the kit in {} is not complete; run: scripts/setup.sh test",
            dir().display()
        );
        assert!(std::env::var_os("WEIR_KIT_REQUIRED").is_none(), "{text}");
        eprintln!("SKIPPED: {text} (looked for {})", node.display());
    }
    complete
}

/// The folder of one part, if it is there. Without it a test is skipped with a word, except where
/// `make test` demands it.
pub fn part(name: &str) -> Option<PathBuf> {
    let part = dir().join(name);
    if part.join(".stamp").exists() {
        return Some(part);
    }
    let text = format!("{} is missing; run: scripts/setup.sh test", part.display());
    assert!(std::env::var_os("WEIR_KIT_REQUIRED").is_none(), "{text}");
    eprintln!("SKIPPED: {text}");
    None
}

/// Where it is.
pub fn dir() -> PathBuf {
    let var = |name| std::env::var_os(name).map(PathBuf::from);
    var("WEIR_KIT").unwrap_or_else(|| {
        var("WEIR_CACHE")
            .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("weir")))
            .or_else(|| var("HOME").map(|d| d.join(".cache/weir")))
            .unwrap_or_default()
            .join("kit")
    })
}

/// The folder with the scripts that drive it.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

/// A command with the kit in its environment.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("WEIR_KIT", dir()).stdin(Stdio::null());
    command
}

/// The command line of server-everything over stdio.
pub fn everything_stdio() -> Vec<String> {
    let node = dir().join("node22/node_modules/.bin/node");
    let js =
        dir().join("everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    vec![
        node.display().to_string(),
        js.display().to_string(),
        "stdio".into(),
    ]
}

/// A real MCP server; killed when it goes out of scope.
pub struct Server {
    child: Child,
    /// The URL of its endpoint.
    pub url: String,
    _port: OwnPort,
}

impl Server {
    /// Starts one of those that `serve.sh` knows and waits until it listens.
    pub fn start(name: &str) -> Self {
        let own = OwnPort::take();
        let port = own.number;
        let mut child = command(scripts().join("serve.sh"))
            .args([name, &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("serve.sh can be run");
        wait::until(
            &format!("{name} to listen"),
            Duration::from_secs(60),
            || {
                if let Some(status) = child.try_wait().expect("our own child") {
                    panic!("{name} ended at once: {status}");
                }
                TcpStream::connect(("127.0.0.1", port)).ok()
            },
        );
        let path = if name == "ts-sse" { "sse" } else { "mcp" };
        Self {
            child,
            url: format!("http://127.0.0.1:{port}/{path}"),
            _port: own,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// One line of a client's report (see `clients/common.mjs`).
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// `result`, `tool_error` or `throw`.
    pub outcome: String,
    /// What it got.
    pub text: String,
    /// How many tools it still lists after the call; -1 when its session is dead.
    pub tools: i64,
    /// The progress that it was told before.
    pub told: Vec<f64>,
}

/// Makes these calls with a client of `client.sh`, all on one session.
///
/// # Errors
/// The client did not report every call; the text is what it said instead.
pub fn client(
    name: &str,
    url: &str,
    calls: &Value,
    header: Option<&str>,
) -> Result<Vec<Call>, String> {
    let output = command("timeout")
        .arg("90")
        .arg(scripts().join("client.sh"))
        .args([name, url, &calls.to_string()])
        .args(header)
        .output()
        .map_err(|e| e.to_string())?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let report: Vec<Call> = stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| Call {
            outcome: line["outcome"].as_str().unwrap_or_default().to_owned(),
            text: line["text"].as_str().unwrap_or_default().to_owned(),
            tools: line["tools"].as_i64().unwrap_or(-1),
            told: line["told"].as_array().map_or_else(Vec::new, |told| {
                told.iter().filter_map(Value::as_f64).collect()
            }),
        })
        .collect();
    if report.len() == calls.as_array().map_or(0, Vec::len) {
        return Ok(report);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<&str> = stderr.lines().rev().take(12).collect();
    Err(format!(
        "{name}: {} of its calls; {stdout}{}",
        report.len(),
        tail.into_iter().rev().collect::<Vec<_>>().join("\n")
    ))
}

/// A tool, how to call it well, and how to call it with a secret.
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Arguments without a secret.
    pub good: Value,
    /// Arguments with one.
    pub bad: fn(&str) -> Value,
}

impl Tool {
    /// A good call, one with the canary in it, and a good one again.
    pub fn calls(&self, canary: &Canary) -> Value {
        let bad = (self.bad)(&format!("my token is {} keep it", canary.value()));
        json!([
            [self.name, self.good],
            [self.name, bad],
            [self.name, self.good]
        ])
    }
}

/// What is wrong with a report of the three calls; empty when nothing is.
pub fn faults(report: &[Call], canary: &Canary) -> String {
    let mut faults = Vec::new();
    let outcomes: Vec<&str> = report.iter().map(|c| c.outcome.as_str()).collect();
    if outcomes != ["result", "tool_error", "result"] {
        faults.push(format!("outcomes {outcomes:?}"));
    }
    if report.iter().any(|c| c.tools <= 0) {
        faults.push("the session is dead".to_owned());
    }
    if report
        .iter()
        .any(|c| canary.found_in(c.text.as_bytes()).is_some())
    {
        faults.push("the secret came back".to_owned());
    }
    faults.join(", ")
}

/// A port for a server that cannot be told to take any: no other test has it while this lives.
struct OwnPort {
    number: u16,
    _lock: File,
}

impl OwnPort {
    /// Below those that the system gives to whoever asks for any.
    const RANGE: std::ops::Range<u16> = 20_000..30_000;

    fn take() -> Self {
        let locks = std::env::temp_dir().join("weir-test-ports");
        std::fs::create_dir_all(&locks).expect("a folder for locks");
        let offset = std::process::id() as usize % Self::RANGE.len();
        let ports = Self::RANGE.cycle().skip(offset).take(Self::RANGE.len());
        let mut own = ports.filter_map(|number| {
            let lock = File::create(locks.join(number.to_string())).ok()?;
            lock.try_lock().ok()?;
            TcpListener::bind(("127.0.0.1", number)).ok()?;
            Some(Self {
                number,
                _lock: lock,
            })
        });
        own.next().expect("a free port")
    }
}
