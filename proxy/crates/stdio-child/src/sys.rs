//! The calls to the kernel that need `unsafe`, each behind a safe function. Nothing else is here.
#![allow(unsafe_code)]

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, UnixAddr, recvmsg};
use nix::unistd::{Pid, getppid};

/// Marks every descriptor from 3 up as close-on-exec, so that whatever an earlier program forgot to
/// mark ends here and not in a server. Needs Linux 5.11.
pub(crate) fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: the call takes three integers and touches no memory; marking a descriptor does not
    // close it, so no owner in this process is affected.
    let done = unsafe {
        libc::close_range(
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC as libc::c_int,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes the process that `command` will start die with its parent `reaper`, and gives it an empty
/// signal mask (the reaper's own mask blocks nearly everything and would be inherited).
///
/// The kernel sends the parent-death signal when the parent's *thread* that forked ends. The reaper
/// has one thread, its main thread, so thread and process end together.
pub(crate) fn die_with_parent(command: &mut Command, reaper: Pid) {
    let prepare = move || {
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The reaper may have died before the line above took effect; then nobody would send it.
        if getppid() != reaper {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec. It makes three system calls, which are
    // async-signal-safe, and allocates nothing (an `io::Error` from an errno holds the number only).
    unsafe { command.pre_exec(prepare) };
}

/// Takes the one descriptor that the other end of `socket` has sent. `UnexpectedEof` if the other end
/// is closed, `InvalidData` if a message holds no descriptor.
pub(crate) fn receive_fd(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut byte = [0u8; 1];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!([libc::c_int; 1]);
    let message = recvmsg::<UnixAddr>(
        socket.as_raw_fd(),
        &mut parts,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = part
            && let [fd] = fds[..]
        {
            // SAFETY: the kernel has just made this descriptor for this process, and there is no
            // other owner. There is exactly one: the buffer has room for one.
            return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// Gives SIGCHLD its default action. Had an ancestor ignored it, which is inherited, the kernel would
/// throw away every exit status.
pub(crate) fn default_sigchld() -> io::Result<()> {
    // SAFETY: no handler is installed, so no code can run at a bad moment.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    Ok(())
}

/// Takes the status of one child that has ended: `Ok(None)` if none has, ECHILD if there is no child.
/// (The safe wrapper of `nix` takes the status and then drops it if the signal is a real-time one.)
pub(crate) fn wait_any() -> io::Result<Option<(Pid, ExitStatus)>> {
    let mut status: libc::c_int = 0;
    // SAFETY: `status` is valid for a write during the call, and the call keeps no pointer.
    match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some((Pid::from_raw(pid), ExitStatus::from_raw(status)))),
        _ => Err(io::Error::last_os_error()),
    }
}
