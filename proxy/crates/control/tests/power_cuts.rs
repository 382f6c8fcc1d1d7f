//! The power goes at every place of what the database writes: a change is there whole, or not at all.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::Plane;
use serde_json::{Value, json};

/// Database and write-ahead log, as they are on disk now.
#[derive(Clone)]
struct Disk {
    database: Vec<u8>,
    log: Vec<u8>,
}

impl Disk {
    fn of(dir: &Path) -> Self {
        let read = |name| fs::read(dir.join(name)).unwrap();
        Self {
            database: read("control.db"),
            log: read("control.db-wal"),
        }
    }

    /// What a start on this disk finds of the server.
    async fn policy(&self) -> Value {
        let dir = Arc::new(tempfile::tempdir().unwrap());
        fs::write(dir.path().join("control.db"), &self.database).unwrap();
        fs::write(dir.path().join("control.db-wal"), &self.log).unwrap();
        let plane = Plane::on(dir).await;
        let (status, servers) = plane.get("/api/v1/servers").await;
        assert_eq!(
            (status, servers.as_array().unwrap().len()),
            (200, 1),
            "{servers}"
        );
        plane.get("/api/v1/servers/one/policy").await.1
    }
}

#[tokio::test]
async fn a_change_is_there_whole_or_not_at_all() {
    let plane = Plane::start().await;
    plane.deployed("one").await;
    let policy =
        |rule: &str| json!({"bindings": vec![json!({"rule": rule, "action": "block"}); 40]});
    let at = "/api/v1/servers/one/policy";
    let (status, old) = plane.json("PUT", at, policy("old-*")).await;
    assert_eq!(status, 200, "{old}");
    let before = Disk::of(plane.dir.path());
    let (status, new) = plane.json("PUT", at, policy("new-*")).await;
    assert_eq!(status, 200, "{new}");
    let after = Disk::of(plane.dir.path());
    assert_eq!(before.database, after.database, "only the log was written");
    assert!(after.log.starts_with(&before.log) && after.log.len() > before.log.len() + 8192);
    assert_eq!(after.policy().await, new);
    let (start, end) = (before.log.len(), after.log.len());
    // Sectors that were written before the power went, in order, with every kind of rest behind them: nothing, zeros, and
    // all of them but one.
    for cut in (start..end).step_by(512) {
        let short = after.log[..cut].to_vec();
        let mut zeros = short.clone();
        zeros.resize(end, 0);
        let mut hole = after.log.clone();
        hole[cut..(cut + 512).min(end)].fill(0);
        for (kind, log) in [("short", short), ("zeros", zeros), ("hole", hole)] {
            let disk = Disk {
                log,
                ..after.clone()
            };
            assert_eq!(
                disk.policy().await,
                old,
                "{kind} at {cut} of {start}..{end}"
            );
        }
    }
}
