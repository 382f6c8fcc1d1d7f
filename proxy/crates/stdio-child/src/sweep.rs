//! The last resort: ends what a reaper left behind when it was itself killed. The server died with it
//! (parent-death signal), the server's own children did not. They are found by the session which the reaper
//! opened, or, if they opened their own, by a tag in their environment.

use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::procfs;

/// A round finds what was born during the round before; 200 rounds of 10 ms end any sane tree.
const ROUNDS_MAX: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// Kills until nothing is found. Blocks; at most about two seconds. The reaper must not have been waited for
/// yet: its id names the session and stays taken so long. Returns whether all are gone.
pub(crate) fn sweep(reaper: i32, tag: &str) -> bool {
    let mut killed = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let found: Vec<i32> = procfs::members(reaper, tag)
            .into_iter()
            .filter(|pid| *pid != reaper)
            .collect();
        for &pid in &found {
            // Gone already, or not ours to signal: the next round shows.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            killed.push(pid);
        }
        // As the first process of a container we inherit the orphans and must take their status.
        killed.retain(|pid| !is_own_child(*pid) || !took_status(*pid));
        killed.sort_unstable();
        killed.dedup();
        if found.is_empty() {
            return true;
        }
        thread::sleep(PAUSE);
    }
    false
}

fn is_own_child(pid: i32) -> bool {
    procfs::stat(pid).is_some_and(|stat| stat.parent == std::process::id() as i32)
}

fn took_status(pid: i32) -> bool {
    waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG))
        .is_ok_and(|status| status.pid().is_some())
}
