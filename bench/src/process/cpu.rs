//! CPU time of a process tree.
//!
//! The kernel keeps a clock per process that counts nanoseconds over all its threads, the ended ones included, and any
//! process may read it (`clock_getcpuclockid`). /proc/PID/stat has the same in 10 ms ticks, which is too coarse for a
//! window of half a second; it is used only for children that have ended.

use super::{stat_fields, tree};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::fs;
use std::path::Path;
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

/// CPU time used so far by all that is or was in a process's control group: of a sandbox, whose processes come and go and
/// are no tree of ours. `None`: the process is gone, or nobody counts there.
pub fn of_group(pid: u32) -> Option<Duration> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let (file, unit) = account(&groups)?;
    let text = fs::read_to_string(Path::new("/sys/fs/cgroup").join(file)).ok()?;
    let number = match unit {
        Unit::Nanoseconds => text.trim().parse().ok()?,
        Unit::Statistics => {
            let line = text.lines().find_map(|l| l.strip_prefix("usage_usec "))?;
            line.parse::<u64>().ok()?.checked_mul(1000)?
        }
    };
    Some(Duration::from_nanos(number))
}

/// How a file of a control group tells the time: version 1 as one number, version 2 on a line of several.
#[derive(Debug, PartialEq, Eq)]
enum Unit {
    Nanoseconds,
    Statistics,
}

/// The file below `/sys/fs/cgroup` with the time of the groups that `/proc/PID/cgroup` names.
fn account(groups: &str) -> Option<(String, Unit)> {
    let of = |wanted: &str| {
        groups.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            // The whole machine is nobody's group.
            let found = path != "/" && controllers.split(',').any(|name| name == wanted);
            found.then(|| {
                (
                    controllers.to_owned(),
                    path.trim_start_matches('/').to_owned(),
                )
            })
        })
    };
    if let Some((controllers, path)) = of("cpuacct") {
        return Some((
            format!("{controllers}/{path}/cpuacct.usage"),
            Unit::Nanoseconds,
        ));
    }
    let (_, path) = of("")?;
    Some((format!("{path}/cpu.stat"), Unit::Statistics))
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
    fn the_file_of_a_control_group() {
        let cases = [
            (
                "9:name=systemd:/w/a\n3:cpuset:/w/a\n2:cpuacct:/w/a\n1:cpu:/w/a\n",
                Some(("cpuacct/w/a/cpuacct.usage", Unit::Nanoseconds)),
            ),
            (
                "4:cpu,cpuacct:/w/a\n0::/user\n",
                Some(("cpu,cpuacct/w/a/cpuacct.usage", Unit::Nanoseconds)),
            ),
            ("0::/w/a\n", Some(("w/a/cpu.stat", Unit::Statistics))),
            ("2:cpuacct:/\n0::/\n", None),
            ("", None),
        ];
        for (groups, expected) in cases {
            let expected = expected.map(|(file, unit)| (file.to_owned(), unit));
            assert_eq!(account(groups), expected, "{groups}");
        }
        assert_eq!(of_group(u32::MAX), None);
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
