//! Calls of runsc.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::error::SandboxError;
use crate::process::{Run, on_thread};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;

/// A start of one sandbox under load took 4 s at the most (measured); a restore of 8 GiB takes longer.
const STEP_MAX: Duration = Duration::from_secs(60);

/// The engine, and where it keeps its own state.
#[derive(Debug, Clone)]
pub struct Runsc {
    /// The program.
    pub program: PathBuf,
    /// `--root`.
    pub state: PathBuf,
    /// See [`crate::Host::cover_sys_net`].
    pub cover_sys_net: bool,
    /// More flags of the operator's; none by default.
    pub extra: Vec<String>,
}

/// What becomes of a sandbox when its image is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AndThen {
    GoesOn,
    Ends,
}

/// Where the output of a sandbox goes.
pub(crate) struct Streams {
    pub(crate) out: OwnedFd,
    pub(crate) err: OwnedFd,
}

impl Runsc {
    /// `create`: the sandbox exists, its program does not run yet. Its output goes to `streams`.
    pub(crate) async fn create(
        &self,
        id: &str,
        bundle: &Path,
        store: &Path,
        streams: Streams,
    ) -> Result<(), SandboxError> {
        let pid = text(&pid_file(bundle));
        let words =
            ["create", "--pid-file", &pid, "--bundle", &text(bundle), id].map(str::to_owned);
        self.with_streams(words.to_vec(), store, streams).await
    }

    /// `start`: its program runs.
    pub(crate) async fn start(&self, id: &str, store: &Path) -> Result<(), SandboxError> {
        self.call(&["start", id], store).await.map(|_| ())
    }

    /// `restore`: the program goes on where the image was taken.
    pub(crate) async fn restore(
        &self,
        id: &str,
        bundle: &Path,
        image: &Path,
        store: &Path,
        streams: Streams,
    ) -> Result<(), SandboxError> {
        let pid = text(&pid_file(bundle));
        let words = [
            "restore",
            "--detach",
            "--pid-file",
            &pid,
            "--image-path",
            &text(image),
            "--bundle",
            &text(bundle),
            id,
        ];
        self.with_streams(words.map(str::to_owned).to_vec(), store, streams)
            .await
    }

    /// `checkpoint`: writes an image.
    pub(crate) async fn checkpoint(
        &self,
        id: &str,
        image: &Path,
        then: AndThen,
        store: &Path,
    ) -> Result<(), SandboxError> {
        let image = text(image);
        let mut words = vec![
            "checkpoint",
            "--compression=none",
            "--exclude-committed-zero-pages",
            "--image-path",
            &image,
        ];
        if then == AndThen::GoesOn {
            words.push("--leave-running");
        }
        words.push(id);
        self.call(&words, store).await.map(|_| ())
    }

    /// The process id of a sandbox that was just made: read from a file, as asking runsc would cost 20 ms more.
    pub(crate) fn pid(&self, id: &str, bundle: &Path) -> Result<i32, SandboxError> {
        let text = std::fs::read_to_string(pid_file(bundle)).unwrap_or_default();
        let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
        pid.ok_or_else(|| SandboxError::Gone { id: id.to_owned() })
    }

    /// The helper of a sandbox that opens files for it, as runsc wrote it down: `delete` waits until that process is
    /// gone, status and all.
    pub(crate) fn gofer(&self, id: &str) -> Option<i32> {
        let file = self.state.join(format!("{id}_sandbox:{id}.state"));
        let state: Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
        i32::try_from(state["goferPid"].as_i64()?).ok()
    }

    /// `delete --force`. Takes a second or two, nearly all of it waiting.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), SandboxError> {
        self.call(&["delete", "--force", id], Path::new("/"))
            .await
            .map(|_| ())
    }

    /// Ids of all sandboxes that it knows.
    pub(crate) async fn list(&self) -> Result<Vec<String>, SandboxError> {
        let said = self.call(&["list", "--quiet"], Path::new("/")).await?;
        Ok(said
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect())
    }

    fn args(&self, words: Vec<String>, store: &Path) -> Vec<String> {
        let mut args = vec![
            format!("--root={}", self.state.display()),
            "--platform=systrap".into(),
            "--network=sandbox".into(),
            // The writable layer of the root lies in the sandbox's own bounded storage.
            format!("--overlay2=root:dir={}", store.display()),
            "--net-disconnect-ok".into(),
            "--host-uds=none".into(),
            "--host-fifo=none".into(),
            // On: the sentry opens the (read-only) files itself, inside its own mount namespace and seccomp filter.
            // Off costs 0.6 s of each cold start (measured: 1.9 s against 1.3 s to listen).
            "--directfs=true".into(),
        ];
        args.extend(self.extra.iter().cloned());
        args.extend(words);
        args
    }

    async fn call(&self, words: &[&str], store: &Path) -> Result<String, SandboxError> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let covers = self.cover_sys_net && words.first().is_some_and(|w| w == "start");
        let (args, program) = (self.args(words, store), text(&self.program));
        on_thread("weir-runsc", move || {
            if covers {
                cover_sys_net()?;
            }
            Run {
                program: &program,
                args,
                input: "",
                wait_max: STEP_MAX,
            }
            .output()
        })
        .await
    }

    async fn with_streams(
        &self,
        words: Vec<String>,
        store: &Path,
        streams: Streams,
    ) -> Result<(), SandboxError> {
        let log = store.with_file_name("runsc.log");
        let mut args = self.args(words, store);
        // Its words go to a file: what it inherits as stderr is the tenant's.
        args.insert(0, format!("--log={}", log.display()));
        let (covers, program) = (self.cover_sys_net, text(&self.program));
        let result = on_thread("weir-runsc", move || {
            if covers {
                cover_sys_net()?;
            }
            let run = Run {
                program: &program,
                args,
                input: "",
                wait_max: STEP_MAX,
            };
            run.with_output(Stdio::null(), streams.out, streams.err)
        })
        .await;
        result.map_err(|error| explain(error, &log))
    }
}

/// Puts the end of runsc's log into an error.
fn explain(error: SandboxError, log: &Path) -> SandboxError {
    let SandboxError::Failed { program, said } = error else {
        return error;
    };
    let text = read_end(log).unwrap_or_default();
    let said = if text.is_empty() { said } else { text };
    SandboxError::Failed { program, said }
}

fn read_end(log: &Path) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(log).ok()?;
    let len = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(600))).ok()?;
    let mut bytes = Vec::new();
    file.take(600).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// On the calling thread, which must be one of its own: a private mount namespace in which `/proc/sys/net` is empty.
/// To cover only `/proc/sys/net/core` does not work: that folder is made anew for each network namespace.
fn cover_sys_net() -> Result<(), SandboxError> {
    let at = "/proc/sys/net";
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|e| SandboxError::io("leave the mount namespace for", at, e))?;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
        .map_err(|e| SandboxError::io("make private", "/", e))?;
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("weir"), at, Some("tmpfs"), flags, None::<&str>)
        .map_err(|e| SandboxError::io("cover", at, e))
}

fn pid_file(bundle: &Path) -> PathBuf {
    bundle.join("pid")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
