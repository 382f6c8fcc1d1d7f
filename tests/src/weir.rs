//! The `weir` program as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::config::{Config, SERVER};
use crate::wait::{self, PATIENCE};

/// The program under test: `$WEIR_BIN`, or the one beside the tests.
pub fn binary() -> PathBuf {
    let path = std::env::var_os("WEIR_BIN").map_or_else(beside_the_tests, PathBuf::from);
    assert!(
        path.exists(),
        "{} is missing; build it with: make build (or point WEIR_BIN at one)",
        path.display()
    );
    path
}

/// A test is in `target/<profile>/deps`, a program such as kill-loop beside `weir` itself.
fn beside_the_tests() -> PathBuf {
    let me = std::env::current_exe().expect("a running program has a path");
    let folder = me.parent().unwrap_or(Path::new("."));
    let folder = match folder.file_name() {
        Some(name) if name == "deps" => folder.parent().unwrap_or(folder),
        _ => folder,
    };
    folder.join("weir")
}

/// A running Weir. It is killed, and its files removed, when this goes out of scope.
pub struct Weir {
    child: Child,
    log: Arc<Lines>,
    out: Arc<Lines>,
    /// Where clients connect.
    pub addr: SocketAddr,
    /// The admin listener.
    pub admin: Option<SocketAddr>,
    path: String,
    dir: Arc<TempDir>,
}

/// How to start one.
pub struct Start {
    args: Vec<String>,
    env: Vec<(String, String)>,
    files: Option<(u64, u64)>,
    dir: Arc<TempDir>,
    path: String,
}

impl Weir {
    /// `weir serve` with this configuration, ready to take calls.
    pub fn serve(config: &Config) -> Self {
        Start::serve(config).ready()
    }

    /// `weir proxy --upstream URL`, ready to take calls.
    pub fn proxy(upstream_url: &str) -> Self {
        Start::proxy(&["--upstream", upstream_url]).ready()
    }

    /// The URL of the first server.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.addr, self.path)
    }

    /// The path of the first server.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The folder that holds its configuration and data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The same, to start another one in it.
    pub fn folder(&self) -> Arc<TempDir> {
        Arc::clone(&self.dir)
    }

    /// Replaces its configuration file in one step.
    pub fn rewrite_config(&self, text: &str) {
        let path = self.dir().join("weir.yaml");
        let new = self.dir().join("weir.yaml.new");
        std::fs::write(&new, text).expect("the temporary folder is writable");
        std::fs::rename(new, path).expect("the same folder");
    }

    /// Everything it wrote to stderr so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits until its stderr holds `needle`.
    pub fn wait_for_log(&self, needle: &str) {
        wait::until(&format!("{needle:?} in the log"), PATIENCE, || {
            self.log().contains(needle).then_some(())
        });
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).expect("a pid"));
        kill(pid, signal).expect("our own child");
    }

    /// Waits for it to end.
    pub fn wait_exit(&mut self, timeout: Duration) -> ExitStatus {
        wait::until("weir to exit", timeout, || {
            self.child.try_wait().expect("our own child")
        })
    }

    /// kill -9, and starts another on the same folder.
    pub fn kill_and_restart(mut self, start: impl FnOnce(Arc<TempDir>) -> Start) -> Self {
        self.signal(Signal::SIGKILL);
        self.wait_exit(PATIENCE);
        start(Arc::clone(&self.dir)).ready()
    }

    /// A GET on the admin listener: status and body.
    pub fn admin_get(&self, path: &str) -> (u16, String) {
        let admin = self.admin.expect("an admin listener was asked for");
        let mut conn = crate::http::Conn::open(admin);
        conn.send(format!(
            "GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n"
        ));
        let response = conn
            .response()
            .unwrap_or_else(|e| panic!("GET {path} on the admin listener: {e}"));
        (response.status(), response.text())
    }

    /// Panics when the value stands anywhere it was written: logs, data folder, metrics.
    pub fn assert_nowhere(&self, canary: &crate::Canary, context: &str) {
        if let Some(found) = self.found_anywhere(canary) {
            panic!("{context}: the secret stands in {found}");
        }
    }

    /// Where the value was written, if it was: logs, data folder, metrics.
    pub fn found_anywhere(&self, canary: &crate::Canary) -> Option<String> {
        if let Some(form) = canary.found_in(self.log().as_bytes()) {
            return Some(format!("the log ({form})"));
        }
        if let Some(form) = canary.found_in(self.out.text().as_bytes()) {
            return Some(format!("stdout ({form})"));
        }
        if let Some(place) = canary.found_under(self.dir()) {
            return Some(place);
        }
        self.admin?;
        let (_, metrics) = self.admin_get("/metrics");
        canary
            .found_in(metrics.as_bytes())
            .map(|form| format!("the metrics ({form})"))
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
        if std::thread::panicking() {
            eprintln!(
                "--- log of weir ---\n{}--- end of log ---",
                tail(&self.log(), 6000)
            );
        }
    }
}

impl Start {
    /// `weir serve -c weir.yaml` in a folder of its own.
    pub fn serve(config: &Config) -> Self {
        Self::serve_in(
            Arc::new(TempDir::new().expect("a temporary folder")),
            config,
        )
    }

    /// The same in a folder that exists.
    pub fn serve_in(dir: Arc<TempDir>, config: &Config) -> Self {
        let file = dir.path().join("weir.yaml");
        std::fs::write(&file, config.text()).expect("the temporary folder is writable");
        let file = file.display().to_string();
        Self {
            args: words(&["serve", "-c", &file]),
            env: vec![],
            files: None,
            dir,
            path: format!("/servers/{SERVER}/mcp"),
        }
    }

    /// `weir proxy` with these words, on ports chosen by the system, in a folder of its own.
    pub fn proxy(args: &[&str]) -> Self {
        Self::proxy_in(Arc::new(TempDir::new().expect("a temporary folder")), args)
    }

    /// The same in a folder that exists, which may be another's too.
    pub fn proxy_in(dir: Arc<TempDir>, args: &[&str]) -> Self {
        let data = dir.path().join("data").display().to_string();
        let mut all = words(&[
            "proxy",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
            &data,
        ]);
        all.extend(words(args));
        Self {
            args: all,
            env: vec![],
            files: None,
            dir,
            path: "/mcp".into(),
        }
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts it with these soft and hard limits on open files.
    pub fn open_files(mut self, soft: u64, hard: u64) -> Self {
        self.files = Some((soft, hard));
        self
    }

    fn command(&self) -> Command {
        let Some((soft, hard)) = self.files else {
            return Command::new(binary());
        };
        let mut shell = Command::new("sh");
        let limits = format!("ulimit -S -n {soft} && ulimit -H -n {hard} && exec \"$0\" \"$@\"");
        shell.arg("-c").arg(limits).arg(binary());
        shell
    }

    /// Starts it and waits for its ready line.
    pub fn ready(self) -> Weir {
        self.try_ready()
            .unwrap_or_else(|log| panic!("weir did not start:\n{log}"))
    }

    /// Starts it; the error is what it wrote before it gave up.
    pub fn try_ready(self) -> Result<Weir, String> {
        let mut child = self
            .command()
            .args(&self.args)
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        let log = Lines::read(child.stderr.take().expect("piped"));
        let out = Lines::read(child.stdout.take().expect("piped"));
        let deadline = Instant::now() + PATIENCE;
        let addr = loop {
            if let Some(addr) = log.address("weir: listening on ") {
                break addr;
            }
            if child.try_wait().map_err(|e| e.to_string())?.is_some() || Instant::now() > deadline {
                let _gone = child.kill();
                let _reaped = child.wait();
                log.wait_end();
                return Err(log.text());
            }
            log.wait_more();
        };
        let admin = log.address("weir: admin on ");
        Ok(Weir {
            child,
            log,
            out,
            addr,
            admin,
            path: self.path,
            dir: self.dir,
        })
    }
}

/// Runs `weir` to its end with this on stdin.
pub fn run(args: &[&str], stdin: &str) -> Output {
    use std::io::Write;
    let mut child = Command::new(binary())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("weir can be run");
    let mut pipe = child.stdin.take().expect("piped");
    let text = stdin.to_owned();
    // A thread, for a program that answers before it has read everything.
    let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("our own child");
    let _closed = writer.join().expect("the writer does not panic");
    output
}

/// What `weir audit search` finds with these words: one record each.
pub fn audit(weir: &Weir, words: &[&str]) -> Vec<serde_json::Value> {
    let data = weir.dir().join("data").display().to_string();
    let all = ["audit", "search", "--data-dir", &data, "--json"];
    let found = run(&[&all, words].concat(), "");
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    let lines = String::from_utf8_lossy(&found.stdout).into_owned();
    lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// What a process writes, line by line, kept as it comes.
struct Lines {
    state: Mutex<(String, bool)>,
    more: Condvar,
}

impl Lines {
    fn read(from: impl Read + Send + 'static) -> Arc<Self> {
        let lines = Arc::new(Self {
            state: Mutex::default(),
            more: Condvar::new(),
        });
        let writer = Arc::clone(&lines);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(from);
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let mut state = writer.state.lock().expect("no panic inside");
                state.0.push_str(&String::from_utf8_lossy(&line));
                line.clear();
                writer.more.notify_all();
            }
            writer.state.lock().expect("no panic inside").1 = true;
            writer.more.notify_all();
        });
        lines
    }

    fn text(&self) -> String {
        self.state.lock().expect("no panic inside").0.clone()
    }

    /// The address in the first line that begins so.
    fn address(&self, prefix: &str) -> Option<SocketAddr> {
        let text = self.text();
        let line = text.lines().find_map(|l| l.strip_prefix(prefix))?;
        let rest = line.split_once("://")?.1;
        rest.split(['/', ' ']).next()?.parse().ok()
    }

    fn wait_more(&self) {
        let state = self.state.lock().expect("no panic inside");
        let _woken = self
            .more
            .wait_timeout(state, Duration::from_millis(20))
            .expect("no panic inside");
    }

    fn wait_end(&self) {
        wait::until("the end of the log", PATIENCE, || {
            self.state.lock().expect("no panic inside").1.then_some(())
        });
    }
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|a| (*a).to_owned()).collect()
}

fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}
