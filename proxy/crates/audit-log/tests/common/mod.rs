//! Helpers shared by the tests of the audit log.

#![allow(dead_code, clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use audit_log::{Action, AuditLog, Durability, FindingRecord, LogConfig, Query, Record, search};

/// The file with the newest checkpoint.
pub const NEWEST: &str = "audit-last.ckpt";

pub const START_US: u64 = 1_790_000_000_000_000;

/// A directory in memory where there is one: file systems flush files that are truncated and written again, which the
/// tests that spoil files do thousands of times.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// The `n`-th of a series of unlike records, one second apart.
pub fn record(n: u64) -> Record {
    let tenant = if n.is_multiple_of(2) { "acme" } else { "umbra" };
    let mut record = Record::new(START_US + n * 1_000_000, tenant.into(), "github".into());
    record.method = Some("tools/call".into());
    record.tool = Some(format!("tool-{}", n / 10).into());
    record.rpc_id = Some(n.to_string().into());
    if n % 5 == 3 {
        record.action = Action::Block;
        record.findings.push(finding("github-pat"));
    }
    record
}

pub fn finding(rule: &str) -> FindingRecord {
    FindingRecord {
        rule: rule.into(),
        category: "secret".into(),
        action: Action::Block,
        direction: None,
        path: "params.arguments.body".into(),
        start: 4,
        end: 44,
        layers: vec!["base64".into()],
        fingerprint: Some("0123456789abcdef".into()),
        allowed_by: None,
    }
}

/// Small segments, no syncing: for tests that are not about the disk.
pub fn small(dir: &Path) -> LogConfig {
    LogConfig {
        segment_bytes_max: 4 << 10,
        fsync: false,
        linger: Duration::ZERO,
        ..LogConfig::new(dir)
    }
}

/// Writes records `from..to` and closes.
pub fn write(config: LogConfig, from: u64, to: u64) {
    let log = AuditLog::open(config).unwrap();
    assert_eq!(log.recovery().next_sequence, from);
    for n in from..to {
        // Each in a batch of its own, so that segments and checkpoints fall where they always do.
        log.append(record(n), Durability::Written)
            .unwrap()
            .wait()
            .unwrap();
    }
    log.close().unwrap();
}

pub fn find(dir: &Path, query: &Query) -> Vec<u64> {
    let mut found = Vec::new();
    search(dir, query, |record| {
        found.push(record.sequence);
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// Paths in `dir` that hold the log, in order.
pub fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = dir
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| !path.ends_with("lock") && !path.ends_with("clock"));
    files.sort();
    files
}

pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in files(from) {
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}
