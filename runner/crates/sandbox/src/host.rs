//! What this machine has, and what it lacks. Looked at once at the start; `weir-runner doctor` prints it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};

use crate::cgroup::Cgroups;
use crate::process::{Run, on_thread};

/// How a finding counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Ok,
    /// Works, with something to know.
    Warn,
    /// Sandboxes cannot run.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// How it counts.
    pub state: State,
    /// What was found.
    pub found: String,
    /// The command that mends it.
    pub mend: Option<String>,
}

/// A machine that was looked at.
#[derive(Debug, Clone)]
pub struct Host {
    /// All findings, in order.
    pub findings: Vec<Finding>,
    /// Where runsc is.
    pub runsc: PathBuf,
    /// Whether it was named, and not found.
    pub runsc_is_named: bool,
    /// Its version, as it says it.
    pub version: String,
    /// True if an empty tmpfs has to lie over `/proc/sys/net` while runsc starts a sandbox.
    pub cover_sys_net: bool,
    /// Model and features of the processor: an image restores only where they are the same.
    pub processor: String,
    /// The control groups.
    pub cgroups: Option<Cgroups>,
}

/// Where gVisor's own newest release is. What distributions have is too old, or on its way there.
const RUNSC_RELEASE: &str = "https://storage.googleapis.com/gvisor/releases/release/latest";
/// Where runsc is looked for before the folders of distributions.
const RUNSC_OWN: &str = "/usr/local/bin/runsc";
/// Builds before this date take the existence of a file for the root namespace (mended upstream 2024-07-31).
const NET_PROBE_MENDED: u32 = 20_240_731;
/// Before it there are no commands for uncompressed checkpoints, which restore depends on.
const OLDEST: u32 = 20_240_501;

impl Host {
    /// Looks at this machine. `today` is the date as a number (20261121), to tell the age of runsc; `state` is the folder
    /// whose disk is looked at.
    pub async fn look(today: u32, runsc: Option<PathBuf>, state: PathBuf) -> Self {
        on_thread("weir-doctor", move || look(today, runsc, &state)).await
    }

    /// True if sandboxes can run.
    pub fn fit(&self) -> bool {
        self.findings.iter().all(|f| f.state != State::Fail)
    }
}

fn look(today: u32, named: Option<PathBuf>, state: &Path) -> Host {
    let is_named = named.is_some();
    let runsc = named
        .or_else(|| find("runsc"))
        .unwrap_or_else(|| "runsc".into());
    let version = version(&runsc);
    let install = install_runsc(&runsc, is_named);
    let mut findings = vec![root(), gvisor(&runsc, version.as_deref(), today, &install)];
    let cgroups = Cgroups::find("/sys/fs/cgroup");
    findings.push(groups(cgroups.as_ref()));
    let date = version.as_deref().and_then(date).unwrap_or(0);
    let cover = date < NET_PROBE_MENDED && fresh_namespace_has_root_knob();
    findings.push(Finding {
        name: "network namespaces",
        state: State::Ok,
        found: if cover {
            "this kernel has per-namespace knobs that this runsc misreads; they are covered while it starts".into()
        } else {
            "as runsc expects them".into()
        },
        mend: None,
    });
    for (tool, package) in TOOLS {
        findings.push(match find(tool) {
            Some(path) => ok(tool, path.display().to_string()),
            None => fail(tool, "not found", install_package(package)),
        });
    }
    findings.push(loops());
    findings.push(swap());
    findings.push(disk(state));
    Host {
        findings,
        runsc,
        runsc_is_named: is_named,
        version: version.unwrap_or_default(),
        cover_sys_net: cover,
        processor: processor(),
        cgroups,
    }
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &&str| {
        ["model name", "flags", "Features", "CPU part"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let mut lines: Vec<&str> = text.lines().filter(named).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.join("\n")
}

const TOOLS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
];

fn install_package(package: &str) -> String {
    match find("apt-get") {
        Some(_) => format!("apt-get install -y {package}"),
        None => format!("install the package that Debian calls {package}"),
    }
}

/// Puts gVisor's newest release where it is found before the one there is: in the place of the one that was named or that
/// nobody's package manager looks after, else before that of the distribution. What runs meanwhile keeps its own file.
fn install_runsc(found: &Path, is_named: bool) -> String {
    let own = is_named || found.starts_with("/usr/local");
    let path = if own { found } else { Path::new(RUNSC_OWN) };
    format!(
        "new=$(mktemp -d) && from={RUNSC_RELEASE}/$(uname -m) && curl -fsSL -o $new/runsc $from/runsc -o $new/runsc.sha512 $from/runsc.sha512 \
         && (cd $new && sha512sum -c runsc.sha512) && install -m 755 $new/runsc {}",
        path.display()
    )
}

fn ok(name: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        name,
        state: State::Ok,
        found: found.into(),
        mend: None,
    }
}

fn fail(name: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Finding {
    Finding {
        name,
        state: State::Fail,
        found: found.into(),
        mend: Some(mend.into()),
    }
}

fn root() -> Finding {
    if nix::unistd::geteuid().is_root() {
        ok("rights", "root")
    } else {
        fail(
            "rights",
            "not root: namespaces and control groups need it",
            "sudo weir-runner serve",
        )
    }
}

fn gvisor(path: &Path, version: Option<&str>, today: u32, install: &str) -> Finding {
    let name = "gVisor";
    let Some(version) = version else {
        return fail(
            name,
            format!(
                "{} cannot be run; nothing is hosted without it",
                path.display()
            ),
            install,
        );
    };
    let Some(built) = date(version) else {
        return fail(
            name,
            format!("runsc {version:?} does not say its date"),
            install,
        );
    };
    let found = format!("{} {version}", path.display());
    if built < OLDEST {
        return fail(name, format!("{found} is too old"), install);
    }
    if months(today).saturating_sub(months(built)) > 6 {
        let found = format!(
            "{found} is more than half a year old; security fixes of gVisor since then are missing"
        );
        return Finding {
            name,
            state: State::Warn,
            found,
            mend: Some(install.to_owned()),
        };
    }
    ok(name, found)
}

fn groups(cgroups: Option<&Cgroups>) -> Finding {
    match cgroups {
        Some(groups) => ok("control groups", format!("version {}", groups.version())),
        None => fail(
            "control groups",
            "neither version is mounted at /sys/fs/cgroup",
            "mount -t cgroup2 none /sys/fs/cgroup",
        ),
    }
}

fn loops() -> Finding {
    if Path::new("/dev/loop-control").exists() {
        ok("loop devices", "/dev/loop-control")
    } else {
        fail(
            "loop devices",
            "/dev/loop-control is missing: storage limits need it",
            "modprobe loop",
        )
    }
}

fn swap() -> Finding {
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() <= 1 {
        return ok("swap", "none");
    }
    Finding {
        name: "swap",
        state: State::Warn,
        found: "on: memory of sandboxes may be written to it".into(),
        mend: Some("swapoff -a".into()),
    }
}

fn disk(state: &Path) -> Finding {
    // The folder is made by the first start.
    let mut folders = state.ancestors();
    let there = folders.find_map(|folder| Some((folder, rustix::fs::statvfs(folder).ok()?)));
    let Some((folder, room)) = there else {
        return Finding {
            name: "disk",
            state: State::Warn,
            found: format!("the disk of {} cannot be looked at", state.display()),
            mend: None,
        };
    };
    let free = (room.f_bavail * room.f_frsize) >> 30;
    let folder = folder.display();
    if free >= 5 {
        ok("disk", format!("{free} GiB free in {folder}"))
    } else {
        Finding {
            name: "disk",
            state: State::Warn,
            found: format!(
                "{free} GiB free in {folder}; bundles, layers and storage want 5 or more"
            ),
            mend: None,
        }
    }
}

fn find(tool: &str) -> Option<PathBuf> {
    let dirs = [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ];
    dirs.iter()
        .map(|dir| Path::new(dir).join(tool))
        .find(|path| path.is_file())
}

fn version(runsc: &Path) -> Option<String> {
    let program = runsc.to_string_lossy();
    let run = Run {
        program: &program,
        args: vec!["--version".into()],
        input: "",
        wait_max: Duration::from_secs(20),
    };
    let said = run.output().ok()?;
    Some(
        said.lines()
            .next()?
            .strip_prefix("runsc version ")?
            .trim()
            .to_owned(),
    )
}

/// The build date in a version: `0.0~20240729.0` of a distribution, `release-20260817.0` of upstream.
fn date(version: &str) -> Option<u32> {
    let digits = version
        .split(|c: char| !c.is_ascii_digit())
        .find(|part| part.len() == 8)?;
    digits
        .parse()
        .ok()
        .filter(|d| (20_180_000..21_000_000).contains(d))
}

fn months(date: u32) -> u32 {
    date / 10_000 * 12 + date / 100 % 100
}

/// On a thread of its own already; the namespace ends with it.
fn fresh_namespace_has_root_knob() -> bool {
    let probe = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).is_ok() && {
            // `/proc/self` is the process's first thread; this thread's view is under its own name.
            Path::new("/proc/thread-self/net").exists()
                && Path::new("/proc/sys/net/core/rmem_default").exists()
        }
    });
    probe.join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_runsc_is_judged() {
        let state = |version: Option<&str>| {
            gvisor("/usr/bin/runsc".as_ref(), version, 20_261_121, "mend").state
        };
        assert_eq!(state(None), State::Fail);
        assert_eq!(state(Some("unknown")), State::Fail);
        assert_eq!(state(Some("0.0~20221219.0")), State::Fail);
        assert_eq!(state(Some("0.0~20240729.0")), State::Warn);
        assert_eq!(state(Some("release-20260817.0")), State::Ok);
    }
    #[test]
    fn a_new_runsc_is_put_where_it_is_found_first() {
        for (found, is_named, place) in [
            ("runsc", false, "/usr/local/bin/runsc"),
            ("/usr/bin/runsc", false, "/usr/local/bin/runsc"),
            ("/usr/local/sbin/runsc", false, "/usr/local/sbin/runsc"),
            ("/opt/gvisor/runsc", true, "/opt/gvisor/runsc"),
        ] {
            let command = install_runsc(found.as_ref(), is_named);
            assert!(
                command.ends_with(&format!(" $new/runsc {place}")),
                "{found}: {command}"
            );
            let checked = command.find("sha512sum -c runsc.sha512) && install");
            assert!(checked.is_some(), "{found}: {command}");
        }
    }

    #[test]
    fn the_disk_of_the_state_folder_is_looked_at() {
        for (state, folder) in [("/proc/no/such", "/proc"), ("/no-such/folder", "/")] {
            let found = disk(state.as_ref()).found;
            assert!(found.contains(&format!(" GiB free in {folder}")), "{found}");
        }
    }
}
