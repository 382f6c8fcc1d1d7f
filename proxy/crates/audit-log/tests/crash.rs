//! Kills and disk faults against a writer in a process of its own.
//!
//! The child is this test program, started again for `child_writer` only. It prints each sequence when it is
//! acknowledged; what it printed must be there afterwards.

// Helpers outside of test functions unwrap too.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use audit_log::*;
use common::*;

const DIR: &str = "AUDIT_LOG_TEST_DIR";
const RECORDS_MAX: u64 = 100_000;

/// Not a test by itself: the child of the others.
#[test]
#[ignore = "started by the other tests as their child"]
fn child_writer() {
    let Some(dir) = std::env::var_os(DIR) else {
        return;
    };
    let config = LogConfig {
        segment_bytes_max: 24 << 10,
        checkpoint_every: 20,
        ..LogConfig::new(dir)
    };
    let log = match AuditLog::open(config) {
        Ok(log) => log,
        Err(error) => return say(&format!("failed {error}")),
    };
    for _ in 0..RECORDS_MAX {
        let ticket = log.append(record(0), Durability::Durable);
        let kept = ticket.and_then(|ticket| Ok((ticket.sequence(), ticket.wait()?)));
        match kept {
            Ok((sequence, ())) => say(&format!("acked {sequence}")),
            Err(error) => {
                say(&format!("failed {error}"));
                let again = log.append(record(0), Durability::Buffered);
                return say(if matches!(again, Err(AuditError::Failed { .. })) {
                    "closed"
                } else {
                    "open"
                });
            }
        }
    }
}

/// Unbuffered: what was said before a kill was said.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Starts the child under `wrapper`, a shell line in which `"$@"` stands for it.
fn child(dir: &Path, wrapper: &str) -> Child {
    let this = std::env::current_exe().unwrap();
    Command::new("sh")
        .args(["-c", wrapper, "sh"])
        .arg(this)
        .args([
            "--exact",
            "child_writer",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a child said.
#[derive(Debug, Default)]
struct Said {
    acknowledged: Option<u64>,
    failed: Option<String>,
    closed: bool,
}

fn hear(child: &mut Child, mut heard: impl FnMut(u64)) -> Said {
    let mut said = Said::default();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        // A killed child may end in the middle of a line; such a line acknowledges nothing.
        let Ok(line) = line else { break };
        match line.split_once(' ') {
            Some(("acked", sequence)) => {
                said.acknowledged = sequence.parse().ok().max(said.acknowledged);
                heard(said.acknowledged.unwrap_or(0));
            }
            Some(("failed", why)) => said.failed = Some(why.to_owned()),
            _ => said.closed |= line == "closed",
        }
    }
    said
}

/// Opens the log again, and checks that all acknowledged is there.
fn check(dir: &Path, said: &Said) -> u64 {
    let log = AuditLog::open(LogConfig::new(dir)).unwrap();
    log.close().unwrap();
    let report = verify(dir).unwrap();
    assert!(
        report.torn_bytes == 0 && said.acknowledged.is_none_or(|last| last < report.size),
        "{said:?} {report:?}"
    );
    assert_eq!(
        find(dir, &Query::default()),
        (0..report.size).collect::<Vec<_>>()
    );
    report.size
}

#[test]
fn a_killed_writer_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut size = 0;
    for round in 0..8 {
        let mut writer = child(dir.path(), r#"exec "$@""#);
        let id = writer.id().to_string();
        let kill_after = size + 5 + round * 17;
        let mut killed = false;
        let said = hear(&mut writer, |sequence| {
            if sequence >= kill_after && !killed {
                killed = true;
                assert!(
                    Command::new("kill")
                        .args(["-9", &id])
                        .status()
                        .unwrap()
                        .success()
                );
            }
        });
        writer.wait().unwrap();
        assert!(killed && said.failed.is_none(), "{said:?}");
        size = check(dir.path(), &said);
        assert!(size > kill_after);
    }
}

fn fails_closed(dir: &Path, wrapper: &str, why: &str) {
    let mut writer = child(dir, wrapper);
    let said = hear(&mut writer, |_| ());
    writer.wait().unwrap();
    assert!(
        said.failed
            .as_ref()
            .is_some_and(|failed| failed.contains(why))
            && said.closed,
        "{said:?}"
    );
    assert!(said.acknowledged.is_some(), "it worked before: {said:?}");
    check(dir, &said);
}

#[test]
fn a_file_size_limit_ends_all_acknowledging() {
    let dir = tempfile::tempdir().unwrap();
    // 16 blocks of 512 or 1,024 bytes, below a segment either way.
    fails_closed(
        dir.path(),
        r#"trap "" XFSZ; ulimit -f 16; exec "$@""#,
        "writing",
    );
}

#[test]
fn a_full_disk_ends_all_acknowledging() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(dir.path())
        .output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        eprintln!("skipped: mounting a small tmpfs on {path} needs root and CAP_SYS_ADMIN");
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        let mut writer = child(dir.path(), r#"exec "$@""#);
        let said = hear(&mut writer, |_| ());
        writer.wait().unwrap();
        assert!(said.closed && said.acknowledged.is_some(), "{said:?}");
        // With the disk still full it may or may not open; what is there is sound and holds all acknowledged.
        let report = verify(dir.path()).unwrap();
        assert!(said.acknowledged < Some(report.size), "{said:?} {report:?}");
    });
    assert!(
        Command::new("umount")
            .arg(dir.path())
            .status()
            .unwrap()
            .success()
    );
    outcome.unwrap();
}

#[test]
fn a_failing_sync_ends_all_acknowledging() {
    let traced = Command::new("strace")
        .args(["-f", "-e", "trace=none", "true"])
        .output();
    if !traced.is_ok_and(|traced| traced.status.success()) {
        eprintln!("skipped: strace is absent or may not trace here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let inject = "fdatasync:error=EIO:when=9";
    let wrapper =
        format!(r#"exec strace -f -o /dev/null -e trace=fdatasync -e inject={inject} "$@""#);
    fails_closed(dir.path(), &wrapper, "syncing");
}
