//! Programs of the host, run with a deadline, each from a thread of its own.
//!
//! A thread of its own, because a namespace belongs to a thread: what is unshared here ends with the thread and
//! never leaks into one that serves others.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::SandboxError;

/// Where the end of a program cannot be waited for, it is asked after this often.
const ASK_EVERY: Duration = Duration::from_millis(8);
/// What a program wrote is kept to this many characters in errors.
const SAID_MAX: usize = 600;

/// How long a new thread is waited for where the host has none left, and between two tries.
const THREAD_WAIT_MAX: Duration = Duration::from_secs(120);
const THREAD_AGAIN: Duration = Duration::from_millis(200);

/// Runs `work` on a new thread and waits for it without blocking the runtime. When no thread can be started it waits for one:
/// a sandbox that was given up half way for that would leave its server waiting for its word.
pub async fn on_thread<T, F>(name: &str, work: F) -> T
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (tell, told) = tokio::sync::oneshot::channel();
    // Kept until a thread has taken it.
    let work = Arc::new(Mutex::new(Some((work, tell))));
    let deadline = Instant::now() + THREAD_WAIT_MAX;
    loop {
        let work = Arc::clone(&work);
        let run = move || {
            let taken = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some((work, tell)) = taken {
                // Nobody listens any more: the work was done all the same.
                let _ = tell.send(work());
            }
        };
        match std::thread::Builder::new().name(name.to_owned()).spawn(run) {
            Ok(_) => break,
            Err(error) if Instant::now() < deadline => {
                tracing::warn!(name, %error, "no thread can be started; waiting for one");
                tokio::time::sleep(THREAD_AGAIN).await;
            }
            Err(error) => panic!("no thread can be started: {error}"),
        }
    }
    match told.await {
        Ok(value) => value,
        Err(_) => panic!("a helper thread ended without a word; its panic message is above"),
    }
}

/// A program to run to its end.
pub(crate) struct Run<'a> {
    pub(crate) program: &'a str,
    pub(crate) args: Vec<String>,
    pub(crate) input: &'a str,
    pub(crate) wait_max: Duration,
}

impl Run<'_> {
    /// Runs on the calling thread; gives what was written to stdout.
    pub(crate) fn output(&self) -> Result<String, SandboxError> {
        let mut out = scratch()?;
        let mut command = self.command()?;
        command.stdout(clone(&out)?);
        self.finish(command)?;
        out.rewind()
            .map_err(|e| SandboxError::io("read", "the output of a program", e))?;
        let mut text = String::new();
        out.take(1024 * 1024)
            .read_to_string(&mut text)
            .map_err(|e| SandboxError::io("read", "the output of a program", e))?;
        Ok(text)
    }

    /// Runs on the calling thread with these as stdout and stderr of the program (which it may hand on to a sandbox).
    pub(crate) fn with_output(
        &self,
        stdin: Stdio,
        out: OwnedFd,
        err: OwnedFd,
    ) -> Result<(), SandboxError> {
        let mut command = self.command()?;
        command.stdin(stdin).stdout(out).stderr(err);
        let status = self.wait(command.spawn().map_err(|e| self.cannot(e))?)?;
        self.judge(status, String::new())
    }

    fn command(&self) -> Result<Command, SandboxError> {
        let mut command = Command::new(self.program);
        // The tenant's traffic and the runner's own settings have no business in a helper's environment.
        command.env_clear().env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        command.env("LC_ALL", "C");
        command.args(&self.args);
        if self.input.is_empty() {
            command.stdin(Stdio::null());
        } else {
            let mut file = scratch()?;
            file.write_all(self.input.as_bytes())
                .and_then(|()| file.rewind())
                .map_err(|e| SandboxError::io("write", "the input of a program", e))?;
            command.stdin(file);
        }
        Ok(command)
    }

    fn finish(&self, mut command: Command) -> Result<(), SandboxError> {
        let mut err = scratch()?;
        command.stderr(clone(&err)?);
        let status = self.wait(command.spawn().map_err(|e| self.cannot(e))?)?;
        let mut said = String::new();
        // A program that wrote no text is judged by its status alone.
        let _ = err
            .rewind()
            .and_then(|()| err.take(16 * 1024).read_to_string(&mut said));
        self.judge(status, said)
    }

    /// Until it ends. Its end is waited for, not asked after: a start runs half a dozen programs, one after the other.
    fn wait(&self, mut child: Child) -> Result<ExitStatus, SandboxError> {
        let deadline = Instant::now() + self.wait_max;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        // Not taken yet, so the number is still this child's.
        let fd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        loop {
            if let Some(status) = child.try_wait().map_err(|e| self.cannot(e))? {
                return Ok(status);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Fails only if it ended in this moment.
                let _ = child.kill();
                let _ = child.wait();
                return Err(SandboxError::Timeout {
                    program: self.name(),
                    waited_s: self.wait_max.as_secs(),
                });
            }
            match &fd {
                Some(fd) => readable(fd, left),
                None => std::thread::sleep(left.min(ASK_EVERY)),
            }
        }
    }

    fn judge(&self, status: ExitStatus, said: String) -> Result<(), SandboxError> {
        if status.success() {
            return Ok(());
        }
        let said = said.trim();
        let skip = said.chars().count().saturating_sub(SAID_MAX);
        let tail: String = said.chars().skip(skip).collect();
        Err(SandboxError::Failed {
            program: self.name(),
            said: if tail.is_empty() {
                status.to_string()
            } else {
                tail
            },
        })
    }

    fn cannot(&self, source: io::Error) -> SandboxError {
        SandboxError::Program {
            program: self.program.to_owned(),
            source,
        }
    }

    fn name(&self) -> String {
        let verb = self.args.iter().find(|a| !a.starts_with('-'));
        verb.map_or_else(
            || self.program.to_owned(),
            |verb| format!("{} {verb}", self.program),
        )
    }
}

/// Waits until there is something to read, a signal comes, or the time is over.
fn readable(fd: &OwnedFd, wait_max: Duration) {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    // Longer than a `timespec` can say is no deadline at all.
    let wait = Timespec::try_from(wait_max).ok();
    // An error is a signal; who called looks for itself.
    let _ = poll(&mut fds, wait.as_ref());
}

/// A file without a name: pipes would have to be emptied while waiting, files need not be.
fn scratch() -> Result<File, SandboxError> {
    let fd = rustix::fs::memfd_create("weir", rustix::fs::MemfdFlags::CLOEXEC)
        .map_err(|e| SandboxError::io("make", "a scratch file", e))?;
    Ok(File::from(fd))
}

fn clone(file: &File) -> Result<File, SandboxError> {
    file.try_clone()
        .map_err(|e| SandboxError::io("open", "a scratch file", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, input: &str) -> Result<String, SandboxError> {
        Run {
            program: "sh",
            args: vec!["-c".into(), script.into()],
            input,
            wait_max: Duration::from_millis(300),
        }
        .output()
    }

    #[test]
    fn a_program_gives_its_output_or_its_complaint_or_is_killed() {
        assert_eq!(sh("cat", "hello").expect("ran"), "hello");
        let failed = sh("echo no >&2; exit 3", "")
            .expect_err("failed")
            .to_string();
        assert!(failed.contains("no"), "{failed}");
        assert!(matches!(
            sh("sleep 60", ""),
            Err(SandboxError::Timeout { .. })
        ));
    }

    #[test]
    fn what_it_says_is_bounded() {
        let error = sh("yes | head -c 100000 >&2; exit 1", "").expect_err("failed");
        assert!(error.to_string().len() < 700);
    }
}
