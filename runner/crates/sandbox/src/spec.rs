//! The OCI spec of a sandbox.

use std::num::NonZeroU32;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cores::list;

/// User and group of everything in a sandbox. Never 0: root in the guest would escape RLIMIT_NPROC.
pub const GUEST_UID: u32 = 10001;

/// What gVisor itself needs beside the plan's memory: sentry about 20 MB, gofer about 5 MB (measured).
const OVERHEAD_MB: u64 = 32;
/// Size of `/tmp`, which counts as memory.
const TMP_MB: u32 = 64;
/// When the host's memory is at its end, a sandbox ends before anything of the host's own: 1000 is the first of all.
const OOM_SCORE: i32 = 800;
const MIB: u64 = 1024 * 1024;
const PERIOD_US: u64 = 100_000;

/// What a sandbox may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Weight against other sandboxes; 512 is one core at most, 1024 two, and so on (see [`crate::Cores`]).
    pub cpu_shares: u32,
    /// For the guest, in MiB.
    pub memory_mb: u32,
    /// Writable storage, in MiB.
    pub storage_mb: u32,
    /// How fast it is written in the long run, in MiB per second; `None` as fast as the host can.
    pub storage_write_mib_s: Option<NonZeroU32>,
    /// Processes and threads of the guest.
    pub processes: u32,
}

impl Size {
    /// What the host lets the whole sandbox have, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (u64::from(self.memory_mb) + OVERHEAD_MB) * MIB
    }

    /// The host's backstop: gVisor uses 30 to 40 tasks of its own and up to 2 for each of the guest's (measured).
    /// It must never be reached before RLIMIT_NPROC, because it ends the whole sandbox.
    pub fn tasks(&self) -> u32 {
        self.processes * 3 + 128
    }
}

/// A folder or file of the host in the guest, read-only, without devices and set-uid programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// On the host.
    pub source: PathBuf,
    /// In the guest.
    pub target: String,
    /// True for the few that the guest may write to.
    pub writable: bool,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Its words.
    pub args: Vec<String>,
    /// Its environment, whole.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub cwd: String,
}

pub(crate) struct Parts<'a> {
    pub(crate) rootfs: &'a std::path::Path,
    pub(crate) program: &'a Program,
    pub(crate) binds: &'a [Bind],
    pub(crate) size: Size,
    /// Its own.
    pub(crate) cores: &'a [usize],
    /// Those it is made with, see [`crate::Cores::at_birth`].
    pub(crate) cores_at_birth: &'a [usize],
    pub(crate) cgroup: &'a str,
    pub(crate) netns: &'a std::path::Path,
}

/// The spec, as `config.json` holds it.
pub(crate) fn oci(parts: &Parts<'_>) -> Value {
    let p = parts.program;
    let env: Vec<String> = p
        .env
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut mounts = vec![
        json!({"destination": "/proc", "type": "proc", "source": "proc"}),
        json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}),
        json!({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "nodev", format!("size={TMP_MB}m"), "mode=1777"]}),
    ];
    for bind in parts.binds {
        let mode = if bind.writable { "rw" } else { "ro" };
        mounts.push(
            json!({"destination": bind.target, "type": "bind", "source": bind.source,
            "options": ["bind", mode, "nosuid", "nodev"]}),
        );
    }
    let size = parts.size;
    let none: [&str; 0] = [];
    json!({
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": parts.rootfs, "readonly": false},
        "process": {
            "user": {"uid": GUEST_UID, "gid": GUEST_UID},
            "cwd": p.cwd, "args": p.args, "env": env,
            "capabilities": {"bounding": none, "effective": none, "permitted": none, "inheritable": none, "ambient": none},
            "noNewPrivileges": true,
            "oomScoreAdj": OOM_SCORE,
            "rlimits": [
                rlimit("RLIMIT_NPROC", u64::from(size.processes)),
                rlimit("RLIMIT_NOFILE", 4096),
                rlimit("RLIMIT_CORE", 0),
            ],
        },
        "mounts": mounts,
        "linux": {
            "cgroupsPath": parts.cgroup,
            "namespaces": [{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"},
                {"type": "network", "path": parts.netns}],
            "resources": {
                "cpu": cpu(size.cpu_shares, parts.cores, parts.cores_at_birth),
                "memory": {"limit": size.memory_bytes()},
                "pids": {"limit": size.tasks()},
            },
        },
    })
}

/// The cores are the limit; a quota is set only where they are more than the shares are worth.
fn cpu(shares: u32, cores: &[usize], at_birth: &[usize]) -> Value {
    let mut cpu = json!({"shares": shares, "cpus": list(at_birth)});
    let quota = u64::from(shares) * PERIOD_US / 512;
    if quota < cores.len() as u64 * PERIOD_US {
        cpu["quota"] = quota.into();
        cpu["period"] = PERIOD_US.into();
    }
    cpu
}

fn rlimit(kind: &str, value: u64) -> Value {
    json!({"type": kind, "soft": value, "hard": value})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_no_rights() {
        let program = Program {
            args: vec!["python3".into()],
            env: vec![("A".into(), "b=c".into())],
            cwd: "/app".into(),
        };
        let bind = Bind {
            source: "/x".into(),
            target: "/app".into(),
            writable: false,
        };
        let size = Size {
            cpu_shares: 1024,
            memory_mb: 512,
            storage_mb: 5120,
            storage_write_mib_s: None,
            processes: 100,
        };
        let spec = oci(&Parts {
            rootfs: "/r".as_ref(),
            program: &program,
            binds: &[bind],
            size,
            cores: &[3],
            cores_at_birth: &[3, 0],
            cgroup: "/weir-t/x",
            netns: "/n".as_ref(),
        });
        assert_eq!(spec["process"]["user"]["uid"], GUEST_UID);
        assert_ne!(GUEST_UID, 0);
        let capabilities = spec["process"]["capabilities"]
            .as_object()
            .expect("all five sets");
        assert_eq!(capabilities.len(), 5);
        assert!(capabilities.values().all(|set| set == &json!([])));
        assert_eq!(spec["process"]["noNewPrivileges"], true);
        assert_eq!(spec["process"]["oomScoreAdj"], OOM_SCORE);
        assert_eq!(spec["process"]["env"][0], "A=b=c");
        assert_eq!(
            spec["process"]["rlimits"][0],
            json!({"type": "RLIMIT_NPROC", "soft": 100, "hard": 100})
        );
        assert_eq!(
            spec["mounts"][3]["options"],
            json!(["bind", "ro", "nosuid", "nodev"])
        );
        // The host's counts are backstops behind the guest's own limits.
        assert_eq!(spec["linux"]["resources"]["memory"]["limit"], 544 * MIB);
        assert_eq!(spec["linux"]["resources"]["pids"]["limit"], 428);
        assert_eq!(
            spec["linux"]["resources"]["cpu"],
            json!({"shares": 1024, "cpus": "3,0"})
        );
        assert_eq!(
            cpu(768, &[1, 2], &[1, 2]),
            json!({"shares": 768, "cpus": "1,2", "quota": 150_000, "period": 100_000})
        );
        // The core that it only begins with is no reason for a quota.
        assert_eq!(
            cpu(512, &[1], &[1, 0]),
            json!({"shares": 512, "cpus": "1,0"})
        );
    }
}
