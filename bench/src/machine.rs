//! What the figures were measured on: without it they mean nothing to anyone else.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Machine and build.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Processor, as it names itself.
    pub cpu: String,
    /// Cores this process may use.
    pub cores: usize,
    /// MiB of memory.
    pub memory_mib: u64,
    /// Kernel release.
    pub kernel: String,
    /// Under a hypervisor.
    pub virtual_machine: bool,
    /// Load average of the last minute at the start.
    pub load_at_start: String,
    /// The same at the end.
    pub load_at_end: String,
    /// Commit of the working tree, with `+` when it has changes.
    pub commit: String,
    /// Version of this program, and how it was built.
    pub bench_version: String,
    /// Version of pingora-core that the floors are built on.
    pub pingora_version: String,
}

/// Reads what this machine is.
pub fn describe() -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    Machine {
        cpu: value(&cpuinfo, "model name").unwrap_or_default().to_owned(),
        cores: cores(),
        memory_mib: memory_mib(&read("/proc/meminfo")),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        virtual_machine: value(&cpuinfo, "flags")
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        load_at_start: load(),
        load_at_end: String::new(),
        commit: commit(),
        bench_version: format!(
            "{} ({})",
            env!("CARGO_PKG_VERSION"),
            if cfg!(debug_assertions) {
                "debug build"
            } else {
                "release build"
            }
        ),
        pingora_version: locked_version(include_str!("../../Cargo.lock"), "pingora-core")
            .unwrap_or_default(),
    }
}

/// The load average of the last minute.
pub fn load() -> String {
    read("/proc/loadavg")
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| {
        line.split(':')
            .next()
            .is_some_and(|name| name.trim() == key)
    })?;
    Some(line.split_once(':')?.1.trim())
}

fn memory_mib(meminfo: &str) -> u64 {
    let kib =
        value(meminfo, "MemTotal").and_then(|v| v.strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .args(args)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_none_or(|changes| !changes.is_empty());
    if changed { head + "+" } else { head }
}

fn locked_version(lock: &str, package: &str) -> Option<String> {
    let entry = lock
        .split("[[package]]")
        .find(|entry| entry.contains(&format!("name = \"{package}\"\n")))?;
    let line = entry
        .lines()
        .find_map(|line| line.strip_prefix("version = "))?;
    Some(line.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_text() {
        let text =
            "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\nflags\t\t: fpu hypervisor sse\n";
        assert_eq!(value(text, "model name"), Some("Some CPU @ 2.50GHz"));
        assert_eq!(
            memory_mib("MemTotal:       24000000 kB\nMemFree: 1 kB\n"),
            23_437
        );
        assert_eq!(memory_mib(""), 0);
    }

    #[test]
    fn versions_from_the_lock_file() {
        let lock = "[[package]]\nname = \"a-b\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"a\"\nversion = \"4.5.6\"\n";
        assert_eq!(locked_version(lock, "a").as_deref(), Some("4.5.6"));
        assert_eq!(locked_version(lock, "c"), None);
        assert!(!describe().pingora_version.is_empty());
    }
}
