//! Targets: what is measured, started as child processes and stopped whatever happens.
//!
//! A target prints the URL it serves; nothing is started on a fixed port. A child that does not say where it listens
//! within the time, or ends, is an error with its last words in it.

use crate::child::Process;
use crate::floors::free_port;
use crate::guard;
pub use crate::kind::Kind;
use crate::load::{Endpoint, Wire};
use crate::peers::{self, find_program, haproxy_config, nginx_config};
use crate::pin::{self, Cores};
use crate::process::meter::{Helpers, Meter};
use crate::process::{self, memory};
use crate::tls::Certificate;
use crate::weir;
use anyhow::{Context, bail};
use nix::sys::signal::Signal;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How to start targets.
pub struct Launcher {
    /// This program, which also holds the upstream and the floors.
    pub own_program: PathBuf,
    /// The proxy's program.
    pub weir: PathBuf,
    /// More arguments for `weir proxy`.
    pub weir_args: Vec<String>,
    /// Where other people's proxies are installed.
    pub peers: PathBuf,
    /// The policy plugin of `weir-plugin`, as a component.
    pub plugin: PathBuf,
    /// The certificate of all targets that speak TLS; `None` without the program that makes one.
    pub certificate: Option<Certificate>,
    /// The most calls that weir may let run at once.
    pub concurrent_calls_max: Option<u32>,
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
    /// Stopped before the process is.
    rewriter: Option<weir::Rewriter>,
    process: Option<Process>,
    /// Root of the process tree when someone else started it.
    foreign_pid: Option<u32>,
    /// What works for it outside of its own tree.
    pub helpers: Helpers,
    /// Where it tells its own metrics.
    pub admin: Option<SocketAddr>,
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

    /// Whose CPU time is this target's.
    pub fn meter(&self) -> Meter {
        Meter {
            own: self.pid(),
            helpers: self.helpers,
        }
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

    /// Stops the processes of a peer while others are measured, for some of them never rest; and the writing of
    /// configurations.
    pub fn freeze(&self) {
        self.rewriter
            .iter()
            .for_each(|rewriter| rewriter.pause(true));
        self.signal(Signal::SIGSTOP);
    }

    /// Lets them go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
        self.rewriter
            .iter()
            .for_each(|rewriter| rewriter.pause(false));
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = self.process.as_ref().filter(|_| self.kind.is_peer()) {
            process::signal_tree(process.pid(), signal);
        }
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
            rewriter: None,
            process: None,
            foreign_pid: None,
            helpers: Helpers::default(),
            admin: None,
            pss_idle: None,
            pss_peak: None,
        }
    }

    /// Configurations written while it ran.
    pub fn rewritten(&self) -> Option<u64> {
        self.rewriter.as_ref().map(weir::Rewriter::written)
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
    /// With a scratch folder of its own; the proxy's program must be there when one of the targets is a form of it.
    pub fn new(
        weir: &Path,
        kinds: impl IntoIterator<Item = Kind>,
        threads: usize,
        cores: Cores,
    ) -> anyhow::Result<Launcher> {
        let weir = if kinds.into_iter().any(Kind::is_weir) {
            weir.canonicalize().with_context(|| {
                format!(
                    "{} is not there: `make build` makes it; or leave weir out with --targets",
                    weir.display()
                )
            })?
        } else {
            weir.to_owned()
        };
        let scratch = tempfile::Builder::new().prefix("weir-bench-").tempdir()?;
        guard::scratch(scratch.path().to_owned());
        Ok(Launcher {
            own_program: std::env::current_exe()?,
            weir,
            weir_args: Vec::new(),
            peers: peers::programs::default_folder(),
            plugin: PathBuf::new(),
            certificate: Certificate::make(scratch.path())?,
            concurrent_calls_max: None,
            threads,
            cores,
            scratch,
        })
    }

    /// Starts the echo upstream.
    pub fn upstream(&self) -> anyhow::Result<(Process, Endpoint)> {
        let mut command = Command::new(&self.own_program);
        command.arg("serve-echo");
        let process = pin::on(&self.cores.upstream, &self.cores.load, || {
            Process::start(command)
        });
        let mut process = process.context("the echo upstream")?;
        let url = process.wait_for_url(None)?;
        Ok((process, Endpoint::parse(&url, false)?))
    }

    /// Starts a target in front of the upstream. `None`: it is a peer that is not installed.
    pub fn start(&self, kind: Kind, upstream: &Endpoint) -> anyhow::Result<Option<Target>> {
        if kind.is_tls() && self.certificate.is_none() {
            return Ok(None);
        }
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
        if kind.is_peer() {
            return self.start_peer(kind, upstream);
        }
        if [Kind::WeirPlugin, Kind::WeirPlugins3].contains(&kind) && !self.plugin.is_file() {
            return Ok(None);
        }
        if kind.is_weir() && !kind.is_of_hosting() {
            return self.start_weir(kind, upstream).map(Some);
        }
        let (command, addr) = match kind {
            Kind::Url => bail!("an endpoint of the user's own is not started"),
            kind if kind.is_of_hosting() => bail!(
                "{}: measured by quick, full and hosted, and by nothing else",
                kind.label()
            ),
            Kind::Direct => {
                return Ok(Some(Target {
                    kind,
                    ..Target::external(upstream.clone())
                }));
            }
            Kind::Hyper => own("hyper"),
            Kind::Pingora => own("pingora"),
            Kind::PingoraProxy => own("pingora-proxy"),
            Kind::PingoraTls | Kind::PingoraH2 => {
                let addr = free_port()?;
                let (mut command, _) = own("pingora");
                command.args(["--listen", &addr.to_string()]);
                if let Some(certificate) = &self.certificate {
                    command.arg("--certificate").arg(&certificate.chain);
                    command.arg("--key").arg(&certificate.key);
                }
                (command, Some(addr))
            }
            _ => {
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
        self.run(kind, command, addr, upstream).map(Some)
    }

    fn start_weir(&self, kind: Kind, upstream: &Endpoint) -> anyhow::Result<Target> {
        let parts = weir::Parts {
            weir: &self.weir,
            args: &self.weir_args,
            own_program: &self.own_program,
            scratch: self.scratch.path(),
            upstream: &format!("http://{}{}", upstream.addr, upstream.path),
            plugin: &self.plugin,
            certificate: self.certificate.as_ref(),
            concurrent_calls_max: self.concurrent_calls_max,
        };
        let plan = parts.plan(kind)?;
        let mut target = self.run(kind, plan.command, plan.addr, upstream)?;
        target.admin = plan.admin;
        if let Some((first, others)) = plan.paths.split_first() {
            target.endpoint.path.clone_from(first);
            let sibling = |path: &String| Endpoint {
                path: path.clone(),
                ..target.endpoint.clone()
            };
            target.endpoint.siblings = others.iter().map(sibling).collect();
        }
        if let (Some(config), Some(pid)) = (plan.rewritten, target.pid()) {
            target.rewriter = Some(weir::Rewriter::start(config, pid)?);
        }
        Ok(target)
    }

    fn start_peer(&self, kind: Kind, upstream: &Endpoint) -> anyhow::Result<Option<Target>> {
        let parts = peers::programs::Parts {
            folder: &self.peers,
            own_program: &self.own_program,
            scratch: self.scratch.path(),
            upstream: &format!("http://{}{}", upstream.addr, upstream.path),
        };
        let Some(plan) = parts.plan(kind)? else {
            return Ok(None);
        };
        let mut target = self.run(kind, plan.command, Some(plan.addr), upstream)?;
        target.version = peers::programs::version(&self.peers, kind);
        target.endpoint.path = plan.path;
        if let Some(set_up) = plan.set_up {
            set_up
                .apply(&mut target.endpoint)
                .with_context(|| kind.label())?;
        }
        if [Kind::Mitmproxy, Kind::ContextforgePlugins].contains(&kind) {
            peers::programs::prove_it_looks(&mut target.endpoint)?;
        }
        Ok(Some(target))
    }

    fn run(
        &self,
        kind: Kind,
        mut command: Command,
        addr: Option<SocketAddr>,
        upstream: &Endpoint,
    ) -> anyhow::Result<Target> {
        command.current_dir(self.scratch.path());
        let shown = shown(&command);
        let version = version(kind, &command);
        let process = pin::on(&self.cores.target, &self.cores.load, || {
            Process::start(command)
        });
        let mut process = process.with_context(|| format!("cannot start {}", kind.label()))?;
        let url = match addr {
            Some(addr) => process.wait_for_port(addr),
            None => process.wait_for_url(Some(upstream.addr)),
        };
        let url = url.with_context(|| kind.label())?;
        let mut endpoint = Endpoint::parse(&url, false)?;
        if let Some(certificate) = self.certificate.as_ref().filter(|_| kind.is_tls()) {
            endpoint.wire = Wire::tls(&certificate.chain, kind.is_http2())?;
        }
        Ok(Target {
            kind,
            version,
            command: shown,
            process: Some(process),
            ..Target::external(endpoint)
        })
    }
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
        kind if kind.is_weir() => ask("--version"),
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
        match arg.split_once("=/") {
            _ if arg.starts_with('/') => format!("<{}>", name(&arg)),
            Some((key, path)) => format!("{key}=<{}>", name(path)),
            None => arg.into_owned(),
        }
    }));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_without_paths() {
        let mut command = Command::new("/opt/x/weir");
        command.args(["proxy", "--data-dir", "/tmp/abc/data", "dir=/tmp/x/y"]);
        assert_eq!(shown(&command), "weir proxy --data-dir <data> dir=<y>");
    }
}
