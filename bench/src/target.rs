//! Targets: what is measured, started as child processes and stopped whatever happens.
//!
//! A target prints the URL it serves; nothing is started on a fixed port. A child that does not say where it listens
//! within the time, or ends, is an error with its last words in it.

use crate::floors::free_port;
use crate::guard;
use crate::load::Endpoint;
use crate::pin::{self, Cores};
use crate::process::memory;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
const LAST_WORDS_MAX: usize = 20;

/// What can be measured.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The upstream itself: the instrument's own floor.
    Direct,
    /// nginx, when installed.
    Nginx,
    /// haproxy, when installed.
    Haproxy,
    /// A bare hyper proxy.
    Hyper,
    /// A bare pass-through on pingora's server and connector: the floor goals are counted from.
    Pingora,
    /// pingora's stock `ProxyHttp`.
    PingoraProxy,
    /// `weir proxy`, scanning and audit on, default policy.
    Weir,
    /// The user's own endpoint.
    Url,
}

impl Kind {
    /// The name in reports.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Direct => "direct",
            Kind::Nginx => "nginx",
            Kind::Haproxy => "haproxy",
            Kind::Hyper => "bare hyper",
            Kind::Pingora => "bare pingora",
            Kind::PingoraProxy => "pingora ProxyHttp",
            Kind::Weir => "weir",
            Kind::Url => "your endpoint",
        }
    }
}

/// How to start targets.
pub struct Launcher {
    /// This program, which also holds the upstream and the floors.
    pub own_program: PathBuf,
    /// The proxy's program.
    pub weir: PathBuf,
    /// More arguments for `weir proxy`.
    pub weir_args: Vec<String>,
    /// Worker threads of floors and peers.
    pub threads: usize,
    /// Which cores run what.
    pub cores: Cores,
    /// Configuration files and data of targets; removed at the end.
    pub scratch: tempfile::TempDir,
}

/// A running target.
pub struct Target {
    /// What it is.
    pub kind: Kind,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Its version, where it has one of its own.
    pub version: String,
    /// The command that started it, without this machine's paths.
    pub command: String,
    process: Option<Process>,
    /// Root of the process tree when someone else started it.
    foreign_pid: Option<u32>,
    /// PSS after the start and the first handshake, before any load.
    pub pss_idle: Option<u64>,
    /// The highest PSS seen after a window.
    pub pss_peak: Option<u64>,
}

impl Target {
    /// Root of its process tree, when it is known.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid).or(self.foreign_pid)
    }

    /// Notes the memory now.
    pub fn sample_memory(&mut self) {
        let now = self.pid().and_then(memory::pss_of_tree);
        self.pss_peak = self.pss_peak.max(now);
    }

    /// The kernel's own peak (resident, so shared pages count fully).
    pub fn peak_rss(&self) -> Option<u64> {
        self.pid().and_then(memory::peak_rss_of_tree)
    }

    /// An error when its process has ended.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        match &mut self.process {
            Some(process) => process.check_alive().with_context(|| self.kind.label()),
            None => Ok(()),
        }
    }

    /// A target someone else runs.
    pub fn external(endpoint: Endpoint) -> Target {
        let (version, command) = (String::new(), String::new());
        Target {
            kind: Kind::Url,
            endpoint,
            version,
            command,
            process: None,
            foreign_pid: None,
            pss_idle: None,
            pss_peak: None,
        }
    }

    /// The same, with the process to measure.
    pub fn with_pid(self, pid: Option<u32>) -> Target {
        Target {
            foreign_pid: pid,
            ..self
        }
    }
}

impl Launcher {
    /// Starts the echo upstream.
    pub fn upstream(&self) -> anyhow::Result<(Process, Endpoint)> {
        let mut command = Command::new(&self.own_program);
        command.arg("serve-echo");
        let process = pin::on(&self.cores.upstream, &self.cores.load, || {
            Process::start(command)
        });
        let mut process = process.context("the echo upstream")?;
        let url = process.wait_for_url()?;
        Ok((process, Endpoint::parse(&url, false)?))
    }

    /// Starts a target in front of the upstream. `None`: it is a peer that is not installed.
    pub fn start(&self, kind: Kind, upstream: &Endpoint) -> anyhow::Result<Option<Target>> {
        let own = |floor: &str| {
            let mut command = Command::new(&self.own_program);
            command.args([
                "serve-floor",
                floor,
                "--upstream",
                &upstream.addr.to_string(),
                "--threads",
                &self.threads.to_string(),
            ]);
            (command, None)
        };
        let (mut command, addr) = match kind {
            Kind::Url => bail!("an endpoint of the user's own is not started"),
            Kind::Direct => {
                return Ok(Some(Target {
                    kind,
                    ..Target::external(upstream.clone())
                }));
            }
            Kind::Hyper => own("hyper"),
            Kind::Pingora => own("pingora"),
            Kind::PingoraProxy => own("pingora-proxy"),
            Kind::Weir => (self.weir_command(upstream), None),
            Kind::Nginx | Kind::Haproxy => {
                let Some(program) = find_program(if kind == Kind::Nginx {
                    "nginx"
                } else {
                    "haproxy"
                }) else {
                    return Ok(None);
                };
                let addr = free_port()?;
                let config = self.scratch.path().join(kind.label());
                let text = if kind == Kind::Nginx {
                    nginx_config
                } else {
                    haproxy_config
                }(addr, upstream.addr, self.threads, self.scratch.path());
                std::fs::File::create(&config)?.write_all(text.as_bytes())?;
                let mut command = Command::new(program);
                command
                    .args(if kind == Kind::Nginx {
                        ["-e", "stderr", "-c"].as_slice()
                    } else {
                        ["-q", "-f"].as_slice()
                    })
                    .arg(&config);
                (command, Some(addr))
            }
        };
        command.current_dir(self.scratch.path());
        let shown = shown(&command);
        let version = version(kind, &command);
        let process = pin::on(&self.cores.target, &self.cores.load, || {
            Process::start(command)
        });
        let mut process = process.with_context(|| format!("cannot start {}", kind.label()))?;
        let url = match addr {
            Some(addr) => process.wait_for_port(addr),
            None => process.wait_for_url(),
        };
        let url = url.with_context(|| kind.label())?;
        let endpoint = Endpoint::parse(&url, false)?;
        Ok(Some(Target {
            kind,
            version,
            command: shown,
            process: Some(process),
            ..Target::external(endpoint)
        }))
    }

    fn weir_command(&self, upstream: &Endpoint) -> Command {
        let mut command = Command::new(&self.weir);
        command.args([
            "proxy",
            "--upstream",
            &format!("http://{}{}", upstream.addr, upstream.path),
        ]);
        command
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(self.scratch.path().join("weir-data"));
        command.args(&self.weir_args);
        command
    }
}

/// A child process with its output drained, killed when dropped.
pub struct Process {
    child: Child,
    urls: Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    /// Starts a command.
    pub fn start(mut command: Command) -> anyhow::Result<Process> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| command.get_program().to_string_lossy().into_owned())?;
        guard::watch(child.id());
        let (sender, urls) = channel();
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(out) = child.stdout.take() {
            drain(out, sender.clone(), Arc::clone(&last_words));
        }
        if let Some(err) = child.stderr.take() {
            drain(err, sender, Arc::clone(&last_words));
        }
        Ok(Process {
            child,
            urls,
            last_words,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The URL of the first line that has a loopback one with a path, reachable.
    pub fn wait_for_url(&mut self) -> anyhow::Result<String> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.urls.recv_timeout(Duration::from_millis(20)) {
                Ok(url) => {
                    let addr = Endpoint::parse(&url, false)?.addr;
                    self.wait_for_port(addr)?;
                    return Ok(url);
                }
                Err(_) => self.still_waiting(deadline)?,
            }
        }
    }

    /// Waits until the address accepts connections.
    pub fn wait_for_port(&mut self, addr: SocketAddr) -> anyhow::Result<String> {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect_timeout(&addr, Duration::from_millis(200)).is_err() {
            self.still_waiting(deadline)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(format!("http://{addr}/mcp"))
    }

    fn still_waiting(&mut self, deadline: Instant) -> anyhow::Result<()> {
        self.check_alive()?;
        if Instant::now() > deadline {
            bail!(
                "did not say where it listens within {START_TIMEOUT:?}; it said:\n{}",
                self.words()
            );
        }
        Ok(())
    }

    /// An error when the process has ended.
    pub fn check_alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("ended early ({status}); it said:\n{}", self.words()),
            None => Ok(()),
        }
    }

    fn words(&self) -> String {
        let words = self
            .last_words
            .lock()
            .map(|words| words.iter().cloned().collect::<Vec<_>>().join("\n"));
        words.unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Asked first, so that a target with children of its own can end them; then killed.
        if let Ok(pid) = i32::try_from(self.child.id()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        guard::unwatch(self.child.id());
    }
}

/// Reads a child's output to its end, so that it never blocks on a full pipe; keeps the last lines.
fn drain(
    out: impl Read + Send + 'static,
    urls: Sender<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(out);
        let mut line = Vec::new();
        while matches!(reader.by_ref().take(16 << 10).read_until(b'\n', &mut line), Ok(n) if n > 0)
        {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            // Nobody listens after the first URL, which is fine.
            find_url(&text)
                .into_iter()
                .for_each(|url| drop(urls.send(url)));
            if let Ok(mut words) = last_words.lock() {
                words.push_back(text);
                if words.len() > LAST_WORDS_MAX {
                    words.pop_front();
                }
            }
            line.clear();
        }
    });
}

/// A loopback URL ending in `/mcp` within a line of log or banner.
fn find_url(line: &str) -> Option<String> {
    line.match_indices("http://").find_map(|(at, _)| {
        let rest = &line[at..];
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || ":/.-_[]".contains(c)))
            .unwrap_or(rest.len());
        let url = rest[..end].trim_end_matches(['.', ']']);
        let local = ["http://127.0.0.1:", "http://localhost:", "http://[::1]:"]
            .iter()
            .any(|start| url.starts_with(start));
        (local && url.ends_with("/mcp") && !url.contains(":0/")).then(|| url.to_owned())
    })
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn version(kind: Kind, command: &Command) -> String {
    let ask = |flag| {
        let output = Command::new(command.get_program())
            .arg(flag)
            .stdin(Stdio::null())
            .output()
            .ok()?;
        let text = [output.stdout, output.stderr].concat();
        let first = String::from_utf8_lossy(&text)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        output.status.success().then(|| version_in(&first))
    };
    match kind {
        Kind::Nginx | Kind::Haproxy => ask("-v"),
        Kind::Weir => ask("--version"),
        _ => None,
    }
    .unwrap_or_default()
}

/// The words of a first line of version output, up to a date.
fn version_in(line: &str) -> String {
    let line = line.strip_prefix("nginx version: ").unwrap_or(line);
    line.split(" 20")
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The command for the report: file names instead of this machine's paths, and values of headers or keys left out.
fn shown(command: &Command) -> String {
    let name = |text: &str| {
        Path::new(text)
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let mut words = vec![name(&command.get_program().to_string_lossy())];
    words.extend(command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.starts_with('/') {
            format!("<{}>", name(&arg))
        } else {
            arg.into_owned()
        }
    }));
    words.join(" ")
}

fn nginx_config(
    listen: SocketAddr,
    upstream: SocketAddr,
    threads: usize,
    scratch: &Path,
) -> String {
    let scratch = scratch.display();
    format!(
        "daemon off;\nworker_processes {threads};\npid {scratch}/nginx.pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 2048; }}\nhttp {{\n  access_log off;\n  client_max_body_size 64m;\n\
         \x20 client_body_buffer_size 2m;\n  keepalive_requests 1000000;\n\
         \x20 client_body_temp_path {scratch}/nginx-body;\n  proxy_temp_path {scratch}/nginx-proxy;\n\
         \x20 fastcgi_temp_path {scratch}/nginx-f;\n  uwsgi_temp_path {scratch}/nginx-u;\n  scgi_temp_path {scratch}/nginx-s;\n\
         \x20 upstream up {{ server {upstream}; keepalive 128; keepalive_requests 1000000; }}\n\
         \x20 server {{\n    listen {listen};\n    location / {{\n      proxy_pass http://up;\n      proxy_http_version 1.1;\n\
         \x20     proxy_set_header Connection \"\";\n      proxy_request_buffering off;\n      proxy_buffering off;\n    }}\n  }}\n}}\n"
    )
}

fn haproxy_config(
    listen: SocketAddr,
    upstream: SocketAddr,
    threads: usize,
    _scratch: &Path,
) -> String {
    format!(
        "global\n  nbthread {threads}\n  maxconn 4096\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n\
         \x20 timeout server 60s\n  http-reuse always\nfrontend in\n  bind {listen}\n  default_backend up\nbackend up\n  server one {upstream}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_in_output() {
        let cases = [
            (
                "listening on http://127.0.0.1:4711/mcp",
                Some("http://127.0.0.1:4711/mcp"),
            ),
            (
                "serving \u{1b}[1mhttp://127.0.0.1:9/mcp\u{1b}[0m -> http://127.0.0.1:8/mcp",
                Some("http://127.0.0.1:9/mcp"),
            ),
            (
                "{\"url\":\"http://127.0.0.1:80/servers/a/mcp\"}",
                Some("http://127.0.0.1:80/servers/a/mcp"),
            ),
            (
                "see http://127.0.0.1:5/mcp.",
                Some("http://127.0.0.1:5/mcp"),
            ),
            ("http://127.0.0.1:0/mcp", None),
            ("metrics at http://127.0.0.1:9100/metrics", None),
            ("docs at http://example.com/mcp", None),
            ("", None),
        ];
        for (line, url) in cases {
            assert_eq!(find_url(line).as_deref(), url, "{line}");
        }
    }

    #[test]
    fn a_target_that_ends_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no config >&2; exit 3"]);
        let error = Process::start(command)
            .unwrap()
            .wait_for_url()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("ended early"),
            "{error}"
        );
    }

    #[test]
    fn a_dropped_target_is_gone() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; echo; sleep 60"]);
        let process = Process::start(command).unwrap();
        let pid = process.pid();
        drop(process);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn commands_are_shown_without_paths() {
        let mut command = Command::new("/opt/x/weir");
        command.args(["proxy", "--data-dir", "/tmp/abc/data"]);
        assert_eq!(shown(&command), "weir proxy --data-dir <data>");
    }
}
