//! A process that cannot be mistaken for another.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::error::SandboxError;

/// How a process ended, if we are the one who may know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code. What its guest does to itself is among these, also with the code of a signal.
    Exited(i32),
    /// By a signal of the host's.
    Signaled(i32),
    /// It was not our child.
    Unknown,
}

/// A handle to a running process. Its end is seen at once; a signal never hits a stranger with the same number.
#[derive(Debug, Clone)]
pub struct Watch(Arc<AsyncFd<OwnedFd>>);

impl Watch {
    /// Opens the process with this number, if it was started at this time (field 22 of `/proc/PID/stat`, in ticks).
    ///
    /// # Errors
    /// [`SandboxError::Gone`] if there is no such process, or another one by now.
    pub fn open(id: &str, pid: i32, started: u64) -> Result<Self, SandboxError> {
        let gone = || SandboxError::Gone { id: id.to_owned() };
        let fd = Pid::from_raw(pid)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok())
            .ok_or_else(gone)?;
        // The handle is held: from here on the number cannot pass to another process.
        if start_time(pid) != Some(started) || is_zombie(pid) {
            return Err(gone());
        }
        // Deprecated for types whose descriptor may change under it; an `OwnedFd` is one descriptor all its life.
        #[allow(deprecated)]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)
            .map_err(|e| SandboxError::io("watch", format!("/proc/{pid}"), e))?;
        Ok(Self(Arc::new(fd)))
    }

    /// Resolves when the process has ended; takes its status if it is our child, so that no zombie is left.
    pub async fn ended(&self) -> End {
        // An error means that the handle cannot be waited for; then it is checked by and by.
        while self.0.readable().await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        match waitid(
            Id::PIDFd(self.0.get_ref().as_fd()),
            WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG,
        ) {
            Ok(WaitStatus::Exited(_, code)) => End::Exited(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => End::Signaled(signal as i32),
            _ => End::Unknown,
        }
    }

    /// True if it has ended.
    pub fn has_ended(&self) -> bool {
        let mut fds = [rustix::event::PollFd::new(
            self.0.get_ref(),
            rustix::event::PollFlags::IN,
        )];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        !matches!(rustix::event::poll(&mut fds, Some(&now)), Ok(0))
    }

    /// SIGKILL.
    pub fn kill(&self) {
        // Fails only if it has ended already.
        let _ = pidfd_send_signal(self.0.get_ref(), Signal::KILL);
    }
}

/// A thread of a process.
#[derive(Debug)]
pub(crate) struct Thread(OwnedFd);

impl Thread {
    /// The second that the process began, if it has one, and if the kernel has handles for threads (Linux 6.9).
    pub(crate) fn second(pid: i32) -> Option<Self> {
        // The kernel lists them as they began.
        let task = fs::read_dir(format!("/proc/{pid}/task"))
            .ok()?
            .nth(1)?
            .ok()?;
        let number = task.file_name().to_str()?.parse().ok()?;
        let fd = pidfd_open(Pid::from_raw(number)?, PIDFD_THREAD).ok()?;
        Some(Self(fd))
    }

    /// SIGURG: it ends the thread's sleep, and who does not ask for it never sees it.
    pub(crate) fn nudge(&self) {
        // Fails only if it has ended.
        let _ = pidfd_send_signal(&self.0, Signal::URG);
    }
}

/// The flag of `pidfd_open` for a thread.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());

/// When a process was started, in clock ticks since boot.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    stat(pid)?.1.split(' ').nth(19)?.parse().ok()
}

/// True if a process has ended and nobody took its status, or is not there at all.
pub(crate) fn is_zombie(pid: i32) -> bool {
    stat(pid).is_none_or(|(_, rest)| rest.starts_with('Z'))
}

/// The parent of a process.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    stat(pid)?.1.split(' ').nth(1)?.parse().ok()
}

/// True if a process leads a session of its own, as those of a sandbox do and our other children do not.
pub(crate) fn leads_session(pid: i32) -> bool {
    let session = stat(pid).and_then(|(_, rest)| rest.split(' ').nth(3)?.parse().ok());
    session == Some(pid)
}

/// `/proc/PID/stat` split behind the name, which may hold anything.
fn stat(pid: i32) -> Option<(String, String)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = text.rsplit_once(") ")?;
    Some((name.to_owned(), rest.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nudge_ends_nothing() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep");
        let pid = i32::try_from(child.id()).expect("a pid");
        assert!(Thread::second(pid).is_none(), "it has one thread");
        child.kill().expect("killed");
        let _ = child.wait();

        let (tell, told) = std::sync::mpsc::channel::<()>();
        let waits = std::thread::spawn(move || told.recv());
        let own = i32::try_from(std::process::id()).expect("a pid");
        // None where the kernel has no handles for threads.
        for _ in 0..3 {
            if let Some(thread) = Thread::second(own) {
                thread.nudge();
            }
        }
        tell.send(()).expect("it still waits");
        assert!(waits.join().expect("joined").is_ok());
    }

    #[tokio::test]
    async fn another_process_with_the_same_number_is_not_taken() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("sleep");
        let pid = i32::try_from(child.id()).expect("a pid");
        let started = start_time(pid).expect("running");
        assert!(matches!(
            Watch::open("x", pid, started + 1),
            Err(SandboxError::Gone { .. })
        ));
        let watch = Watch::open("x", pid, started).expect("watched");
        assert!(!watch.has_ended());
        watch.kill();
        assert_eq!(watch.ended().await, End::Signaled(9));
        assert!(watch.has_ended());
        assert!(matches!(
            Watch::open("x", pid, started),
            Err(SandboxError::Gone { .. })
        ));
        let _ = child.wait();
    }
}
