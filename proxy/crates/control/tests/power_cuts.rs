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
        |rule: &str| json!({"bindings": vec![json!({"rule": rule, "action": "block"}); 400]});
    let at = "/api/v1/servers/one/policy";
    let (status, old) = plane.json("PUT", at, policy("old-*")).await;
    assert_eq!(status, 200, "{old}");
    let before = Disk::of(plane.dir.path());
    let (status, new) = plane.json("PUT", at, policy("new-*")).await;
    assert_eq!(status, 200, "{new}");
    let after = Disk::of(plane.dir.path());
    assert_eq!(before.database, after.database, "only the log was written");
    assert_eq!(after.policy().await, new);
    // The log may have begun again at its start, over frames that are in the database already.
    let was = |range: std::ops::Range<usize>| -> Vec<u8> {
        let old = before.log.get(range.start..).unwrap_or_default();
        let old = old.iter().copied().chain(std::iter::repeat(0));
        old.take(range.len()).collect()
    };
    let end = after.log.len();
    let sectors = (0..end).step_by(512).map(|at| at..(at + 512).min(end));
    let written: Vec<_> = sectors
        .filter(|s| was(s.clone()) != after.log[s.clone()])
        .collect();
    assert!(written.len() > 16, "{written:?}");
    // What was written before the power went: everything up to a sector, or everything but one.
    for sector in &written {
        let mut first = after.log[..sector.start].to_vec();
        first.extend(was(sector.start..end.max(before.log.len())));
        let mut hole = after.log.clone();
        hole[sector.clone()].copy_from_slice(&was(sector.clone()));
        for (kind, log) in [("up to", first), ("all but", hole)] {
            let disk = Disk {
                log,
                ..after.clone()
            };
            assert_eq!(disk.policy().await, old, "{kind} {sector:?} of {end}");
        }
    }
}
