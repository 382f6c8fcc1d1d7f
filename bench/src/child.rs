//! Child processes: started, listened to until they say where they serve, and ended whatever happens.

use crate::guard;
use crate::load::Endpoint;
use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Python gateways take their time on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(180);
const STOP_TIMEOUT: Duration = Duration::from_secs(3);
const LAST_WORDS_MAX: usize = 20;

/// A child process with its output drained, killed when dropped.
pub struct Process {
    child: Child,
    urls: Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Process {
    /// Starts a command.
    pub fn start(mut command: Command) -> anyhow::Result<Process> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = guard::unmasked(|| command.spawn())
            .with_context(|| command.get_program().to_string_lossy().into_owned())?;
        guard::watch(child.id());
        let (sender, urls) = channel();
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            readers.push(drain(out, sender.clone(), Arc::clone(&last_words)));
        }
        if let Some(err) = child.stderr.take() {
            readers.push(drain(err, sender, Arc::clone(&last_words)));
        }
        Ok(Process {
            child,
            urls,
            last_words,
            readers,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The first loopback URL it prints, once that accepts connections. A banner may name the upstream too, and taking
    /// that would measure the upstream and call it the target.
    pub fn wait_for_url(&mut self, not: Option<SocketAddr>) -> anyhow::Result<String> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            match self.urls.recv_timeout(Duration::from_millis(20)) {
                Ok(url) => {
                    let addr = Endpoint::parse(&url, false)?.addr;
                    if not == Some(addr) {
                        self.still_waiting(deadline)?;
                        continue;
                    }
                    self.wait_for_port(addr)?;
                    return Ok(url);
                }
                Err(_) => self.still_waiting(deadline)?,
            }
        }
    }

    /// Waits until the address accepts connections.
    pub fn wait_for_port(&mut self, addr: SocketAddr) -> anyhow::Result<String> {
        self.wait_until(|| TcpStream::connect_timeout(&addr, Duration::from_millis(200)).is_ok())?;
        Ok(format!("http://{addr}/mcp"))
    }

    /// Waits until it serves, as `ready` can tell.
    pub fn wait_until(&mut self, ready: impl Fn() -> bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        while !ready() {
            self.still_waiting(deadline)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
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

    /// What it printed last. After its end the readers get a moment to catch up; a grandchild may hold the pipe open.
    fn words(&self) -> String {
        let deadline = Instant::now() + Duration::from_millis(300);
        while Instant::now() < deadline && !self.readers.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(5));
        }
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
            // One that was stopped does not hear it.
            crate::process::signal_tree(self.child.id(), Signal::SIGCONT);
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
) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(out);
        let mut line = Vec::new();
        while matches!(reader.by_ref().take(16 << 10).read_until(b'\n', &mut line), Ok(n) if n > 0)
        {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            // Nobody listens after the first URL, which is fine.
            find_urls(&text)
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
    })
}

/// The loopback URLs ending in `/mcp` within a line of log or banner.
fn find_urls(line: &str) -> Vec<String> {
    line.match_indices("http://")
        .filter_map(|(at, _)| {
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
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

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
            assert_eq!(find_urls(line).first().map(String::as_str), url, "{line}");
        }
    }

    #[test]
    fn a_target_that_ends_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no config >&2; exit 3"]);
        let error = Process::start(command)
            .unwrap()
            .wait_for_url(None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.contains("no config"),
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
    fn a_child_of_a_guarded_thread_hears_the_polite_signal() {
        let spawn = || {
            let set = nix::sys::signal::SigSet::from(Signal::SIGTERM);
            set.thread_block().unwrap();
            let mut command = Command::new("sleep");
            command.arg("60");
            Process::start(command).unwrap()
        };
        let mut process = std::thread::spawn(spawn).join().unwrap();
        kill(Pid::from_raw(process.pid() as i32), Signal::SIGTERM).unwrap();
        let status = process.child.wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(15)
        );
    }

    #[test]
    fn the_upstream_in_a_banner_is_not_the_target() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (own, upstream) = (listener.local_addr().unwrap(), "127.0.0.1:9");
        let mut command = Command::new("sh");
        let banner = format!("echo 'http://{upstream}/mcp behind http://{own}/mcp'; sleep 60");
        command.args(["-c", &banner]);
        let mut process = Process::start(command).unwrap();
        let url = process
            .wait_for_url(Some(upstream.parse().unwrap()))
            .unwrap();
        assert_eq!(url, format!("http://{own}/mcp"));
    }
}
