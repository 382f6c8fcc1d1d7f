//! Takes the status of processes that came to us as their nearest living ancestor and that nobody waits for: helpers which
//! runsc leaves behind. Without it each start would leave a few entries in the process table.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::pidfd;

/// Who was found ended the last time.
#[derive(Debug, Default)]
pub struct Reaper {
    ended: BTreeSet<(i32, u64)>,
}

impl Reaper {
    /// One round; to be called every few seconds. A child counts as nobody's when it was there ended in two rounds: who
    /// waits for a child of its own takes its status within milliseconds. Gives how many were taken.
    pub fn round(&mut self) -> usize {
        let ended: BTreeSet<(i32, u64)> = children()
            .into_iter()
            .filter(|&pid| pidfd::is_zombie(pid))
            .filter_map(|pid| Some((pid, pidfd::start_time(pid)?)))
            .collect();
        let old: Vec<i32> = self
            .ended
            .intersection(&ended)
            .map(|(pid, _)| *pid)
            .collect();
        self.ended = ended;
        let taken = |pid: &&i32| waitpid(Pid::from_raw(**pid), Some(WaitPidFlag::WNOHANG)).is_ok();
        old.iter().filter(taken).count()
    }
}

/// Children of all threads of this process.
fn children() -> BTreeSet<i32> {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}
