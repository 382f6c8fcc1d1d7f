//! CPU time of a process tree.
//!
//! The kernel keeps a clock per process that counts nanoseconds over all its threads, the ended ones included, and any
//! process may read it (`clock_getcpuclockid`). /proc/PID/stat has the same in 10 ms ticks, which is too coarse for a
//! window of half a second; it is used only for children that have ended.

use super::{stat_fields, tree};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs;
use std::time::Duration;

/// CPU time used so far by a tree, living and reaped.
pub fn of_tree(root: u32) -> Duration {
    tree(root).into_iter().map(of_process).sum()
}

/// One process: its own clock, and what its waited-for children had used.
pub fn of_process(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| stat_fields(&stat));
    let reaped = stat.as_ref().map_or(0, |stat| stat.reaped_ticks);
    let own = clock(pid).unwrap_or_else(|| ticks(stat.map_or(0, |stat| stat.own_ticks)));
    own + ticks(reaped)
}

fn clock(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    Some(ClockId::now(clock).ok()?.into())
}

/// Clock ticks as time.
pub fn ticks(count: u64) -> Duration {
    let per_second = sysconf(SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .map_or(100, |n| n.max(1) as u64);
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / per_second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;
    use std::process::Command;
    use std::time::Instant;

    /// Uses this thread's time, whatever else the machine does.
    fn burn(time: Duration) {
        let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
        let start: Duration = clock.now().unwrap().into();
        while Duration::from(clock.now().unwrap()) - start < time {
            black_box((0..1000u64).map(black_box).sum::<u64>());
        }
    }

    #[test]
    fn own_threads_count_also_when_they_have_ended() {
        let before = of_process(std::process::id());
        std::thread::spawn(|| burn(Duration::from_millis(30)))
            .join()
            .unwrap();
        let used = of_process(std::process::id()) - before;
        assert!(used >= Duration::from_millis(30), "{used:?}");
    }

    #[test]
    fn another_process_can_be_read() {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let start = Instant::now();
        while of_tree(child.id()) < Duration::from_millis(20) {
            assert!(start.elapsed() < Duration::from_secs(20));
        }
        let wall = start.elapsed();
        assert!(of_tree(child.id()) <= wall * 2 + Duration::from_millis(20));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(clock(child.id()), None);
    }
}
