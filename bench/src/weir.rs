//! The proxy under test in its forms: which command, which configuration, and who is served where.

use crate::floors::free_port;
use crate::target::Kind;
use crate::tls::Certificate;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Tenants of `weir serve` with many, and servers of each.
const TENANTS: usize = 20;
const SERVERS_EACH: usize = 10;
/// How often the configuration is written anew for `weir-reload`.
const REWRITE_EVERY: Duration = Duration::from_millis(100);

/// How to start one form.
pub struct Plan {
    /// The command.
    pub command: Command,
    /// Where it will listen, when it cannot be asked to print a URL that is called.
    pub addr: Option<SocketAddr>,
    /// Paths that are called, one connection each in turn; empty: the printed URL.
    pub paths: Vec<String>,
    /// The configuration that is written again and again while it runs.
    pub rewritten: Option<PathBuf>,
    /// Where it tells its metrics.
    pub admin: Option<SocketAddr>,
}

/// What all forms are started from.
pub struct Parts<'a> {
    /// The program.
    pub weir: &'a Path,
    /// More arguments of the user's for `weir proxy`.
    pub args: &'a [String],
    /// This program, which is also an echo server on standard input and output.
    pub own_program: &'a Path,
    /// A folder for configurations and audit logs.
    pub scratch: &'a Path,
    /// URL of the upstream.
    pub upstream: &'a str,
    /// The policy plugin of the forms with plugins.
    pub plugin: &'a Path,
    /// The certificate of the forms with TLS.
    pub certificate: Option<&'a Certificate>,
    /// The most calls that may run at once; beyond it the proxy refuses.
    pub concurrent_calls_max: Option<u32>,
}

impl Parts<'_> {
    /// The command of a form.
    pub fn plan(&self, kind: Kind) -> anyhow::Result<Plan> {
        match kind {
            Kind::WeirMany => self.serve(kind, TENANTS, SERVERS_EACH, false),
            Kind::WeirReload => self.serve(kind, 1, 1, true),
            Kind::WeirPlugin => self.plugins(kind, 1),
            Kind::WeirPlugins3 => self.plugins(kind, 3),
            _ => self.proxy(kind),
        }
    }

    fn proxy(&self, kind: Kind) -> anyhow::Result<Plan> {
        let mut command = Command::new(self.weir);
        let admin = free_port()?;
        // It prints no URL that begins with http:// when it serves TLS.
        let addr = kind.is_tls().then(free_port).transpose()?;
        let listen = addr.map_or("127.0.0.1:0".to_owned(), |addr| addr.to_string());
        command.args(["proxy", "--listen", &listen, "--admin-listen"]);
        command.args([&admin.to_string(), "--data-dir"]);
        command.arg(self.data(kind));
        let config = self.proxy_config(kind);
        if !config.is_empty() {
            command.arg("--config").arg(self.file(kind, &config)?);
        }
        if kind == Kind::WeirDryRun {
            command.arg("--dry-run");
        }
        command.args(self.args);
        if kind == Kind::WeirStdio {
            command
                .arg("--")
                .arg(self.own_program)
                .args(["serve-echo", "--stdio"]);
        } else {
            command.args(["--upstream", self.upstream]);
        }
        Ok(Plan {
            command,
            addr,
            paths: Vec::new(),
            rewritten: None,
            admin: Some(admin),
        })
    }

    /// What this form says in its configuration; nothing where the defaults are what is measured.
    fn proxy_config(&self, kind: Kind) -> String {
        let mut config = match kind {
            Kind::WeirTls | Kind::WeirH2 => self.certificate.map_or_else(String::new, |made| {
                format!(
                    "tls: {{cert_file: \"{}\", key_file: \"{}\"}}\n",
                    made.chain.display(),
                    made.key.display()
                )
            }),
            Kind::WeirAuditOff => "audit: {mode: off}\n".to_owned(),
            Kind::WeirAuditAll => "audit: {mode: all}\n".to_owned(),
            _ => String::new(),
        };
        let mut tenant = Vec::new();
        if kind == Kind::WeirAllow {
            tenant.push("policy: {bindings: [{action: ignore}]}".to_owned());
        }
        if let Some(most) = self.concurrent_calls_max {
            tenant.push(format!("limits: {{concurrent_calls_max: {most}}}"));
        }
        if !tenant.is_empty() {
            // `weir proxy` keeps its server under this tenant.
            let _ = writeln!(config, "tenants: {{local: {{{}}}}}", tenant.join(", "));
        }
        config
    }

    fn serve(
        &self,
        kind: Kind,
        tenants: usize,
        servers_each: usize,
        rewrite: bool,
    ) -> anyhow::Result<Plan> {
        let addr = free_port()?;
        let (text, paths) = many(addr, &self.data(kind), self.upstream, tenants, servers_each);
        let config = self.file(kind, &text)?;
        let mut command = Command::new(self.weir);
        command.args(["serve", "--config"]).arg(&config);
        Ok(Plan {
            command,
            addr: Some(addr),
            paths,
            rewritten: rewrite.then_some(config),
            admin: None,
        })
    }

    /// One server with the same plugin bound so many times.
    fn plugins(&self, kind: Kind, count: usize) -> anyhow::Result<Plan> {
        let addr = free_port()?;
        let (mut text, paths) = many(addr, &self.data(kind), self.upstream, 1, 1);
        text.push_str("        plugins:\n");
        for _ in 0..count {
            text.push_str("          - {plugin: yardstick, config: {work: read}, isolation: tenant, timeout_ms: 1000}\n");
        }
        let _ = writeln!(
            text,
            "    plugins: {{yardstick: {{file: \"{}\"}}}}",
            self.plugin.display()
        );
        let config = self.file(kind, &text)?;
        let mut command = Command::new(self.weir);
        command.args(["serve", "--config"]).arg(&config);
        Ok(Plan {
            command,
            addr: Some(addr),
            paths,
            rewritten: None,
            admin: None,
        })
    }

    fn data(&self, kind: Kind) -> PathBuf {
        self.scratch.join(format!("{}-data", kind.id()))
    }

    fn file(&self, kind: Kind, text: &str) -> anyhow::Result<PathBuf> {
        let file = self.scratch.join(format!("{}.yaml", kind.id()));
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        Ok(file)
    }
}

/// A configuration with this many servers on one upstream, and the paths of up to 32 of them, spread over the tenants.
fn many(
    listen: SocketAddr,
    data: &Path,
    upstream: &str,
    tenants: usize,
    servers_each: usize,
) -> (String, Vec<String>) {
    let mut text = format!(
        "listen: {listen}\nadmin_listen: \"off\"\ndata_dir: {}\ntenants:\n",
        data.display()
    );
    let mut paths = Vec::new();
    for tenant in 0..tenants {
        let _ = writeln!(text, "  t{tenant}:\n    servers:");
        for server in 0..servers_each {
            let _ = writeln!(
                text,
                "      t{tenant}-s{server}:\n        upstream: {{url: \"{upstream}\"}}"
            );
            if server < 32usize.div_ceil(tenants) && paths.len() < 32 {
                paths.push(format!("/servers/t{tenant}-s{server}/mcp"));
            }
        }
    }
    (text, paths)
}

/// Writes a configuration anew, with a change in it, until dropped; each time the process is told by SIGHUP.
pub struct Rewriter {
    stop: Arc<AtomicBool>,
    paused: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Rewriter {
    /// Starts.
    pub fn start(config: PathBuf, pid: u32) -> anyhow::Result<Rewriter> {
        let original = std::fs::read_to_string(&config)?;
        let (stop, written) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let paused = Arc::new(AtomicBool::new(false));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&written));
        let resting = Arc::clone(&paused);
        let thread = std::thread::spawn(move || {
            let temporary = config.with_extension("next");
            let mut nth = 0u32;
            while !stopped.load(Ordering::Relaxed) {
                if resting.load(Ordering::Relaxed) {
                    std::thread::park_timeout(REWRITE_EVERY);
                    continue;
                }
                nth = nth.wrapping_add(1);
                // Every second one has another limit, so that what is loaded differs from what is in force.
                let text = format!(
                    "{original}limits: {{connections_max: {}}}\n",
                    4000 + nth % 2
                );
                // Renamed into place: a reader sees the old file or the new one.
                let renamed = std::fs::write(&temporary, text)
                    .and_then(|()| std::fs::rename(&temporary, &config));
                if renamed.is_ok() && hang_up(pid) {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::park_timeout(REWRITE_EVERY);
            }
        });
        Ok(Rewriter {
            stop,
            paused,
            written,
            thread: Some(thread),
        })
    }

    /// Rests while other targets are measured, or goes on.
    pub fn pause(&self, rest: bool) {
        self.paused.store(rest, Ordering::Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// How many configurations were written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn hang_up(pid: u32) -> bool {
    i32::try_from(pid).is_ok_and(|pid| kill(Pid::from_raw(pid), Signal::SIGHUP).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(scratch: &Path) -> Parts<'_> {
        Parts {
            weir: Path::new("weir"),
            args: &[],
            own_program: Path::new("weir-bench"),
            scratch,
            upstream: "http://127.0.0.1:9/mcp",
            plugin: Path::new("yardstick.wasm"),
            certificate: None,
            concurrent_calls_max: None,
        }
    }

    #[test]
    fn forms_differ_in_what_their_names_say() {
        let scratch = tempfile::tempdir().unwrap();
        let line = |kind| {
            let plan = parts(scratch.path()).plan(kind).unwrap();
            let words: Vec<String> = plan
                .command
                .get_args()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect();
            (words.join(" "), plan)
        };
        assert!(
            line(Kind::Weir)
                .0
                .ends_with("--upstream http://127.0.0.1:9/mcp")
        );
        assert!(line(Kind::WeirDryRun).0.contains("--dry-run"));
        assert!(
            line(Kind::WeirStdio)
                .0
                .ends_with("-- weir-bench serve-echo --stdio")
        );
        for (kind, mode) in [(Kind::WeirAuditOff, "off"), (Kind::WeirAuditAll, "all")] {
            let file = scratch.path().join(format!("{}.yaml", kind.id()));
            assert!(line(kind).0.contains(&file.display().to_string()));
            assert_eq!(
                std::fs::read_to_string(file).unwrap(),
                format!("audit: {{mode: {mode}}}\n")
            );
        }
        line(Kind::WeirAllow);
        let file = scratch.path().join("weir-allow.yaml");
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            "tenants: {local: {policy: {bindings: [{action: ignore}]}}}\n"
        );
        let (words, many) = line(Kind::WeirMany);
        assert!(
            words.starts_with("serve --config") && many.addr.is_some() && many.paths.len() == 32
        );
        let reload = line(Kind::WeirReload).1;
        assert_eq!(reload.paths, ["/servers/t0-s0/mcp"]);
        assert!(reload.rewritten.is_some() && many.rewritten.is_none());
    }

    #[test]
    fn many_means_all_of_them_and_calls_are_spread() {
        let listen = "127.0.0.1:1".parse().unwrap();
        let (text, paths) = many(listen, Path::new("data"), "http://127.0.0.1:9/mcp", 20, 10);
        assert_eq!(text.matches("upstream:").count(), 200);
        let tenants: std::collections::BTreeSet<&str> =
            paths.iter().filter_map(|p| p.split('-').next()).collect();
        assert!(paths.len() == 32 && tenants.len() >= 16, "{paths:?}");
    }

    #[test]
    fn a_configuration_is_written_until_it_is_enough() {
        let scratch = tempfile::tempdir().unwrap();
        let config = scratch.path().join("c.yaml");
        std::fs::write(&config, "listen: x\n").unwrap();
        // A process that takes a hang-up as nothing.
        let mut child = Command::new("sh")
            .args(["-c", "trap : HUP; while :; do read x; done"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let rewriter = Rewriter::start(config.clone(), child.id()).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while rewriter.written() < 3 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(rewriter.written() >= 3);
        drop(rewriter);
        let _ = child.kill();
        child.wait().unwrap();
        let text = std::fs::read_to_string(config).unwrap();
        assert!(
            text.starts_with("listen: x\nlimits: {connections_max: 400"),
            "{text}"
        );
    }
}
