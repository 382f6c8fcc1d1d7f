//! Control groups, version 1 and 2: what runsc set up is read, frozen and taken away here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cores::list;
use crate::error::SandboxError;

/// Where the control groups of a host are. Tests point it at a folder of text files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroups {
    root: PathBuf,
    v2: bool,
}

/// The controllers of version 1 in which runsc makes a group.
const V1: &[&str] = &[
    "cpu",
    "cpuacct",
    "cpuset",
    "memory",
    "devices",
    "freezer",
    "blkio",
    "pids",
    "net_cls",
    "net_prio",
    "perf_event",
    "hugetlb",
    "systemd",
];

const WRITE_BPS: &str = "blkio.throttle.write_bps_device";

/// A device as the kernel's files name it, `7:3`.
fn numbers(device: u64) -> String {
    format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    )
}

/// Why the kernel ended or stopped something in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Alarms {
    /// Processes killed for memory.
    pub oom_kills: u64,
    /// Times that a process was not made because of the limit.
    pub pids_refused: u64,
}

impl Cgroups {
    /// Finds out which version is mounted at `root` (`/sys/fs/cgroup`).
    pub fn find(root: impl Into<PathBuf>) -> Option<Self> {
        let root = root.into();
        if root.join("cgroup.controllers").exists() {
            Some(Self { root, v2: true })
        } else if root.join("memory").is_dir() && root.join("freezer").is_dir() {
            Some(Self { root, v2: false })
        } else {
            None
        }
    }

    /// 1 or 2.
    pub fn version(&self) -> u8 {
        if self.v2 { 2 } else { 1 }
    }

    fn file(&self, group: &str, controller: &str, name: &str) -> PathBuf {
        let group = group.trim_start_matches('/');
        if self.v2 {
            self.root.join(group).join(name)
        } else {
            self.root.join(controller).join(group).join(name)
        }
    }

    fn read(&self, group: &str, controller: &str, name: &str) -> Option<String> {
        fs::read_to_string(self.file(group, controller, name)).ok()
    }

    /// CPU used so far by all processes of a group, in microseconds.
    pub fn cpu_us(&self, group: &str) -> u64 {
        if self.v2 {
            field(&self.read(group, "cpu", "cpu.stat"), "usage_usec")
        } else {
            number(&self.read(group, "cpuacct", "cpuacct.usage")) / 1000
        }
    }

    /// Memory in use now, in bytes.
    pub fn memory_bytes(&self, group: &str) -> u64 {
        let name = if self.v2 {
            "memory.current"
        } else {
            "memory.usage_in_bytes"
        };
        number(&self.read(group, "memory", name))
    }

    /// Lets a group have so much more memory than its limit. One without a limit stays so.
    pub(crate) fn raise_memory(&self, group: &str, bytes: u64) -> Result<(), SandboxError> {
        // With swap the limit is never less than without, so it goes first.
        let names = self.memory_limits();
        names
            .iter()
            .try_for_each(|name| self.move_limit(group, name, |limit| limit.saturating_add(bytes)))
    }

    /// Takes that away again. An error, if the group uses more by now and nothing of it can be let go.
    pub(crate) fn lower_memory(&self, group: &str, bytes: u64) -> Result<(), SandboxError> {
        let names = self.memory_limits().iter().rev();
        names
            .copied()
            .try_for_each(|name| self.move_limit(group, name, |limit| limit.saturating_sub(bytes)))
    }

    /// With swap, where the kernel counts that, and without.
    fn memory_limits(&self) -> &'static [&'static str] {
        if self.v2 {
            &["memory.max"]
        } else {
            &["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]
        }
    }

    fn move_limit(
        &self,
        group: &str,
        name: &str,
        to: impl Fn(u64) -> u64,
    ) -> Result<(), SandboxError> {
        let limit = self.read(group, "memory", name);
        // `max`, or no such file.
        let Some(limit) = limit.and_then(|text| text.trim().parse::<u64>().ok()) else {
            return Ok(());
        };
        // Version 1 says so where there is none.
        const NONE: u64 = 1 << 62;
        if limit >= NONE {
            return Ok(());
        }
        let path = self.file(group, "memory", name);
        fs::write(&path, to(limit).to_string()).map_err(|e| SandboxError::io("write", &path, e))
    }

    /// Processes and threads now.
    pub fn tasks(&self, group: &str) -> u64 {
        number(&self.read(group, "pids", "pids.current"))
    }

    /// What the kernel did to it.
    pub fn alarms(&self, group: &str) -> Alarms {
        let oom = if self.v2 {
            "memory.events"
        } else {
            "memory.oom_control"
        };
        Alarms {
            oom_kills: field(&self.read(group, "memory", oom), "oom_kill"),
            pids_refused: field(&self.read(group, "pids", "pids.events"), "max"),
        }
    }

    /// The cores that a group may use, as a list like `0-1,3`.
    pub(crate) fn cores(&self, group: &str) -> String {
        self.read(group, "cpuset", "cpuset.cpus")
            .unwrap_or_default()
    }

    /// Confines a group to some cores.
    pub(crate) fn confine(&self, group: &str, cores: &[usize]) -> Result<(), SandboxError> {
        let path = self.file(group, "cpuset", "cpuset.cpus");
        fs::write(&path, list(cores)).map_err(|e| SandboxError::io("write", &path, e))
    }

    /// Bounds how fast a group writes to a device, which only it has, in bytes per second.
    ///
    /// Version 1 does not know whose the data is that the kernel writes later, so there the device is bounded for all, until
    /// [`Self::unpace`].
    pub(crate) fn pace(&self, group: &str, device: u64, bytes_s: u64) -> Result<(), SandboxError> {
        let (path, words) = if self.v2 {
            (self.file(group, "", "io.max"), format!("wbps={bytes_s}"))
        } else {
            (self.file("", "blkio", WRITE_BPS), bytes_s.to_string())
        };
        let line = format!("{} {words}", numbers(device));
        fs::write(&path, line).map_err(|e| SandboxError::io("write", &path, e))
    }

    /// Takes the bound of a device away; with version 2 it goes with the group.
    pub(crate) fn unpace(&self, device: u64) {
        if !self.v2 {
            let line = format!("{} 0", numbers(device));
            let _ = fs::write(self.file("", "blkio", WRITE_BPS), line);
        }
    }

    /// Processes in a group.
    pub fn processes(&self, group: &str) -> BTreeSet<i32> {
        let text = self
            .read(group, "memory", "cgroup.procs")
            .unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Makes a parent group that weighs as much as one ordinary process on each core: without it all sandboxes together
    /// would weigh as much as one process, and wait long wherever the host has other work.
    pub(crate) fn weigh(&self, parent: &str, cores: usize) -> Result<(), SandboxError> {
        let cores = cores as u64;
        let (name, weight) = if self.v2 {
            // Fails where it is delegated already, or in a group that is not ours to change; then there is no file below.
            let _ = fs::write(self.root.join("cgroup.subtree_control"), "+cpu");
            ("cpu.weight", (100 * cores).min(10_000))
        } else {
            ("cpu.shares", (1024 * cores).min(262_144))
        };
        let path = self.file(parent, "cpu", name);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|e| SandboxError::io("make", dir, e))?;
        }
        if self.v2 && !path.exists() {
            return Ok(());
        }
        fs::write(&path, weight.to_string()).map_err(|e| SandboxError::io("write", &path, e))?;
        if self.v2 {
            Ok(())
        } else {
            self.hand_down_cores(parent)
        }
    }

    /// In version 1 a new group has no cores at all, and its children can have none then.
    fn hand_down_cores(&self, parent: &str) -> Result<(), SandboxError> {
        for name in ["cpuset.cpus", "cpuset.mems"] {
            let Some(all) = self.read("", "cpuset", name) else {
                continue;
            };
            let path = self.file(parent, "cpuset", name);
            if let Some(dir) = path.parent() {
                fs::create_dir_all(dir).map_err(|e| SandboxError::io("make", dir, e))?;
            }
            fs::write(&path, all.trim()).map_err(|e| SandboxError::io("write", &path, e))?;
        }
        Ok(())
    }

    /// Stops or continues all processes of a group, and waits until it is so (at most 2 s).
    pub(crate) fn freeze(&self, group: &str, frozen: bool) -> Result<(), SandboxError> {
        let (name, word) = match (self.v2, frozen) {
            (true, true) => ("cgroup.freeze", "1"),
            (true, false) => ("cgroup.freeze", "0"),
            (false, true) => ("freezer.state", "FROZEN"),
            (false, false) => ("freezer.state", "THAWED"),
        };
        let path = self.file(group, "freezer", name);
        fs::write(&path, word).map_err(|e| SandboxError::io("write", &path, e))?;
        let deadline = Instant::now() + Duration::from_secs(2);
        while self.is_frozen(group) != frozen {
            if Instant::now() > deadline {
                return Err(SandboxError::io(
                    "freeze or thaw",
                    path,
                    std::io::ErrorKind::TimedOut,
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// True if all its processes stand still.
    pub fn is_frozen(&self, group: &str) -> bool {
        if self.v2 {
            field(&self.read(group, "", "cgroup.events"), "frozen") == 1
        } else {
            self.read(group, "freezer", "freezer.state")
                .is_some_and(|s| s.trim() == "FROZEN")
        }
    }

    /// Kills what is left and removes the group (at most 5 s). True if nothing is left.
    pub(crate) fn remove(&self, group: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            for pid in self.processes(group) {
                let pid = nix::unistd::Pid::from_raw(pid);
                // Fails if it has ended; only our own groups are named here.
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
            let left = self
                .folders(group)
                .into_iter()
                .filter(|dir| fs::remove_dir(dir).is_err() && dir.exists())
                .count();
            if left == 0 {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Removes a group that holds neither groups nor processes; any other stays.
    pub(crate) fn remove_empty(&self, group: &str) {
        for dir in self.folders(group) {
            let _ = fs::remove_dir(dir);
        }
    }

    /// Names of the groups in a parent group.
    pub fn children(&self, parent: &str) -> BTreeSet<String> {
        let dir = self.file(parent, "memory", "");
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .filter(|e| e.path().is_dir())
            .filter_map(|e| e.file_name().into_string().ok())
            .collect()
    }

    fn folders(&self, group: &str) -> Vec<PathBuf> {
        let group = group.trim_start_matches('/');
        let under = |base: &Path| base.join(group);
        let all: Vec<PathBuf> = if self.v2 {
            vec![under(&self.root)]
        } else {
            V1.iter().map(|c| under(&self.root.join(c))).collect()
        };
        all.into_iter().filter(|dir| dir.exists()).collect()
    }
}

fn number(text: &Option<String>) -> u64 {
    text.as_deref()
        .and_then(|t| t.trim().parse().ok())
        .unwrap_or(0)
}

fn field(text: &Option<String>, name: &str) -> u64 {
    let lines = text.as_deref().unwrap_or_default().lines();
    let mut values = lines.filter_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(' ')?
            .trim()
            .parse()
            .ok()
    });
    values.next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn version_1_is_read_from_its_own_files() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        put(root, "freezer/w/x/freezer.state", "FROZEN\n");
        put(root, "memory/w/x/memory.usage_in_bytes", "4096\n");
        put(
            root,
            "memory/w/x/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        );
        put(root, "memory/w/x/cgroup.procs", "12\n7\n");
        put(root, "cpuacct/w/x/cpuacct.usage", "5000000\n");
        put(root, "pids/w/x/pids.events", "max 2\n");
        put(root, "pids/w/x/pids.current", "31\n");
        let groups = Cgroups::find(root).expect("version 1");
        assert_eq!(groups.version(), 1);
        assert!(groups.is_frozen("/w/x"));
        assert_eq!(
            (
                groups.cpu_us("/w/x"),
                groups.memory_bytes("/w/x"),
                groups.tasks("/w/x")
            ),
            (5000, 4096, 31)
        );
        assert_eq!(
            groups.alarms("/w/x"),
            Alarms {
                oom_kills: 3,
                pids_refused: 2
            }
        );
        assert_eq!(groups.processes("/w/x"), BTreeSet::from([7, 12]));
        assert_eq!(groups.children("/w"), BTreeSet::from(["x".to_owned()]));
        assert_eq!(groups.cpu_us("/w/none"), 0);
    }

    #[test]
    fn version_2_is_read_from_its_own_files() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        put(root, "cgroup.controllers", "cpu memory pids\n");
        put(root, "w/x/cpu.stat", "usage_usec 77\nuser_usec 50\n");
        put(root, "w/x/memory.current", "8192\n");
        put(
            root,
            "w/x/memory.events",
            "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 0\n",
        );
        put(root, "w/x/pids.events", "max 0\n");
        put(root, "w/x/cgroup.events", "populated 1\nfrozen 1\n");
        let groups = Cgroups::find(root).expect("version 2");
        assert_eq!(
            (
                groups.version(),
                groups.cpu_us("w/x"),
                groups.memory_bytes("w/x")
            ),
            (2, 77, 8192)
        );
        assert_eq!(
            groups.alarms("w/x"),
            Alarms {
                oom_kills: 1,
                pids_refused: 0
            }
        );
        assert!(groups.is_frozen("w/x"));
    }

    #[test]
    fn writes_are_bounded_by_either_version() {
        let device = rustix::fs::makedev(7, 3);
        for (is_there, file, bounded, free) in [
            (
                ["memory/x", "freezer/x"],
                "blkio/blkio.throttle.write_bps_device",
                "7:3 1048576",
                "7:3 0",
            ),
            (
                ["cgroup.controllers", "w/x/cgroup.events"],
                "w/x/io.max",
                "7:3 wbps=1048576",
                // Its group goes, and the bound with it.
                "7:3 wbps=1048576",
            ),
        ] {
            let dir = tempfile::tempdir().expect("a folder");
            let root = dir.path();
            is_there.iter().for_each(|path| put(root, path, ""));
            put(root, file, "");
            let groups = Cgroups::find(root).expect("a version");
            let said = || fs::read_to_string(root.join(file)).expect("the file");
            groups.pace("/w/x", device, 1 << 20).expect("bounded");
            assert_eq!(said(), bounded);
            groups.unpace(device);
            assert_eq!(said(), free);
        }
    }

    #[test]
    fn all_sandboxes_together_weigh_a_process_per_core() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        put(root, "memory/x", "");
        put(root, "freezer/x", "");
        put(root, "cpuset/cpuset.cpus", "0-3\n");
        put(root, "cpuset/cpuset.mems", "0\n");
        let groups = Cgroups::find(root).expect("version 1");
        groups.weigh("/w", 4).expect("weighed");
        let shares = fs::read_to_string(root.join("cpu/w/cpu.shares")).expect("written");
        assert_eq!(shares, "4096");
        let cores = fs::read_to_string(root.join("cpuset/w/cpuset.cpus")).expect("written");
        assert_eq!(cores, "0-3");
        put(root, "cpuset/w/x/cpuset.cpus", "0-1");
        groups.confine("/w/x", &[1, 3]).expect("confined");
        assert_eq!(groups.cores("/w/x"), "1,3");
        put(root, "cgroup.controllers", "cpu");
        put(root, "w/cpu.weight", "100");
        let groups = Cgroups::find(root).expect("version 2");
        groups.weigh("/w", 4).expect("weighed");
        let weight = fs::read_to_string(root.join("w/cpu.weight")).expect("written");
        assert_eq!(weight, "400");
    }

    #[test]
    fn a_limit_of_memory_is_raised_where_there_is_one() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path();
        put(root, "memory/x", "");
        put(root, "freezer/x", "");
        put(root, "memory/w/x/memory.limit_in_bytes", "1000\n");
        put(
            root,
            "memory/w/x/memory.memsw.limit_in_bytes",
            "9223372036854771712\n",
        );
        let groups = Cgroups::find(root).expect("version 1");
        groups.raise_memory("/w/x", 50).expect("raised");
        let read = |path: &str| fs::read_to_string(root.join(path)).expect("readable");
        assert_eq!(read("memory/w/x/memory.limit_in_bytes"), "1050");
        assert_eq!(
            read("memory/w/x/memory.memsw.limit_in_bytes"),
            "9223372036854771712\n"
        );
        groups.lower_memory("/w/x", 50).expect("lowered");
        assert_eq!(read("memory/w/x/memory.limit_in_bytes"), "1000");
        put(root, "cgroup.controllers", "memory");
        put(root, "w/x/memory.max", "1000\n");
        put(root, "w/y/memory.max", "max\n");
        let groups = Cgroups::find(root).expect("version 2");
        groups.raise_memory("/w/x", 50).expect("raised");
        groups.raise_memory("/w/y", 50).expect("nothing to raise");
        assert_eq!(read("w/x/memory.max"), "1050");
        assert_eq!(read("w/y/memory.max"), "max\n");
        groups.lower_memory("w/x", 50).expect("lowered");
        assert_eq!(read("w/x/memory.max"), "1000");
    }

    #[test]
    fn no_cgroups_are_none() {
        let dir = tempfile::tempdir().expect("a folder");
        assert_eq!(Cgroups::find(dir.path()), None);
    }
}
