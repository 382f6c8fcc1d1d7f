//! What a target's processes cost: CPU time and memory of a whole process tree, read from the kernel.
//!
//! Linux only, read only. A target may fork (nginx, node, a stdio server's child), so the root's own numbers are never
//! enough; the tree is walked anew for every reading, since it may grow.

pub mod cpu;
pub mod memory;
pub mod meter;
pub mod noise;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;

/// A tree larger than this is cut off: no target is.
const PROCESSES_MAX: usize = 4096;

/// The process and all its living descendants, root first.
pub fn tree(root: u32) -> Vec<u32> {
    descendants(root, &parents())
}

/// Sends a signal to every process of a tree.
pub fn signal_tree(root: u32, signal: Signal) {
    for pid in tree(root) {
        if let Ok(pid) = i32::try_from(pid) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }
}

/// Open file descriptors of a tree, `None` when the kernel does not tell us.
pub fn descriptors_of_tree(root: u32) -> Option<u64> {
    let count = |pid: u32| Some(fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as u64);
    let sum: u64 = tree(root).into_iter().filter_map(count).sum();
    (sum > 0).then_some(sum)
}

/// (process, parent) of everything visible in /proc. Processes that end while we look are left out.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|pid: u32| {
        Some((
            pid,
            stat_fields(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?.parent,
        ))
    })
    .collect()
}

fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() && found.len() < PROCESSES_MAX {
        let parent = found[next];
        found.extend(
            parents
                .iter()
                .filter(|(pid, of)| *of == parent && *pid != parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found
}

/// The fields of /proc/PID/stat used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Own user and system time, in clock ticks.
    own_ticks: u64,
    /// The same of children that ended and were waited for.
    reaped_ticks: u64,
}

/// The command name stands in brackets and may itself contain brackets and spaces, so fields count from the last one.
fn stat_fields(stat: &str) -> Option<Stat> {
    let fields: Vec<&str> = stat
        .get(stat.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: u32::try_from(number(1)?).ok()?,
        own_ticks: number(11)? + number(12)?,
        reaped_ticks: number(13)? + number(14)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_hostile_name() {
        let line =
            "77 (a) R 1 (b) S 42 77 77 0 -1 4194560 100 0 0 0 11 22 3 4 20 0 1 0 100 1000 10";
        assert_eq!(
            stat_fields(line),
            Some(Stat {
                parent: 42,
                own_ticks: 33,
                reaped_ticks: 7
            })
        );
        for cut in 0..line.rfind(" 20 0 1").unwrap() - 1 {
            let _ = stat_fields(&line[..cut]);
        }
        assert_eq!(stat_fields("77 (x"), None);
        assert_eq!(stat_fields(""), None);
    }

    #[test]
    fn trees() {
        let parents = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (9, 1), (0, 0)];
        assert_eq!(descendants(2, &parents), [2, 3, 4, 5]);
        assert_eq!(descendants(9, &parents), [9]);
        assert_eq!(descendants(0, &parents), [0, 1, 2, 9, 3, 4, 5]);
    }

    #[test]
    fn a_real_child_is_found() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let found = tree(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&child.id()));
    }
}
