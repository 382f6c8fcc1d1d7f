//! What a crash can leave, and what opening makes of it; removal of old segments.

// Helpers outside of test functions unwrap too.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use audit_log::*;
use common::*;

/// A log of six records without a checkpoint, as a kill would leave it.
fn killed() -> tempfile::TempDir {
    let (live, dir) = (scratch(), scratch());
    let config = LogConfig {
        segment_bytes_max: 64 << 20,
        ..small(live.path())
    };
    let log = AuditLog::open(config).unwrap();
    for n in 0..6 {
        log.append(record(n), Durability::Written)
            .unwrap()
            .wait()
            .unwrap();
    }
    copy(live.path(), dir.path());
    dir
}

fn log_path(dir: &tempfile::TempDir) -> std::path::PathBuf {
    dir.path().join("audit-00000000000000000000.log")
}

#[test]
fn a_tail_torn_at_any_byte_costs_only_the_record_it_tore() {
    let dir = killed();
    let path = log_path(&dir);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len())
        .filter(|at| whole[*at] == b'\n')
        .map(|at| at + 1)
        .collect();
    let third_last = ends[ends.len() - 4];
    for cut in third_last..=whole.len() {
        for junk in [&b""[..], b"\0\0\0\0"] {
            fs::write(&path, [&whole[..cut], junk].concat()).unwrap();
            let kept = ends.iter().filter(|end| **end <= cut).count() - 1;
            let torn = cut - ends[kept] + junk.len();
            let config = LogConfig {
                segment_bytes_max: 64 << 20,
                ..small(dir.path())
            };
            let log = AuditLog::open(config).unwrap();
            let expected = Recovery {
                next_sequence: kept as u64,
                segments: 1,
                torn_bytes: torn as u64,
            };
            assert_eq!(log.recovery(), expected, "cut at {cut}");
            drop(log.append(record(99), Durability::Written).unwrap());
            log.close().unwrap();
            let report = verify(dir.path()).unwrap();
            assert!(report.is_clean() && report.size == kept as u64 + 1);
            fs::remove_file(path.with_extension("ckpt")).unwrap();
            fs::remove_file(dir.path().join(NEWEST)).unwrap();
        }
    }
    assert!(
        files(dir.path())
            .iter()
            .all(|path| path.extension().unwrap() == "log"),
        "nothing else was left"
    );
}

#[test]
fn pages_lost_before_sound_records_are_cut_and_kept_beside() {
    let dir = killed();
    let path = log_path(&dir);
    let mut bytes = fs::read(&path).unwrap();
    let third = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .nth(2)
        .unwrap()
        .0
        + 1;
    bytes[third + 60..third + 90].fill(0);
    fs::write(&path, &bytes).unwrap();
    let log = AuditLog::open(small(dir.path())).unwrap();
    assert_eq!(
        log.recovery(),
        Recovery {
            next_sequence: 2,
            segments: 1,
            torn_bytes: (bytes.len() - third) as u64
        }
    );
    log.close().unwrap();
    assert_eq!(
        fs::read(path.with_extension(format!("cut-{third}"))).unwrap(),
        bytes[third..]
    );
    assert_eq!(verify(dir.path()).unwrap().size, 2);
}

#[test]
fn a_torn_checkpoint_and_left_overs_do_not_matter() {
    let dir = scratch();
    write(
        LogConfig {
            checkpoint_every: 2,
            segment_bytes_max: 64 << 20,
            ..small(dir.path())
        },
        0,
        6,
    );
    let checkpoints = log_path(&dir).with_extension("ckpt");
    let whole = fs::read(&checkpoints).unwrap();
    for cut in 0..whole.len() {
        fs::write(&checkpoints, &whole[..cut]).unwrap();
        fs::write(
            dir.path().join("audit-00000000000000000006.tmp"),
            b"half a header",
        )
        .unwrap();
        // A writer that ended after sealing and before the next segment leaves an index of the live one.
        fs::write(log_path(&dir).with_extension("idx"), b"00000000 {}\n").unwrap();
        let log = AuditLog::open(small(dir.path())).unwrap();
        assert_eq!(
            (log.recovery().next_sequence, log.recovery().torn_bytes),
            (6, 0)
        );
        log.close().unwrap();
        assert!(verify(dir.path()).unwrap().is_clean(), "{cut}");
        assert_eq!(files(dir.path()).len(), 3);
    }
}

#[test]
fn sequences_and_links_go_on_over_openings_and_segments() {
    let dir = scratch();
    for opening in 0..10 {
        write(small(dir.path()), opening * 7, opening * 7 + 7);
    }
    let report = verify(dir.path()).unwrap();
    assert!(report.is_clean() && report.size == 70 && report.segments > 5);
    assert_eq!(
        find(dir.path(), &Query::default()),
        (0..70).collect::<Vec<_>>()
    );
}

#[test]
fn retention_removes_whole_sealed_segments_from_the_old_end_only() {
    let dir = scratch();
    write(small(dir.path()), 0, 60);
    let before = verify(dir.path()).unwrap();
    let kept = Checkpoint {
        size: before.size,
        root: before.root,
        time_unix_us: 0,
    };
    let early = Checkpoint { size: 1, ..kept };
    assert_eq!(remove_before(dir.path(), START_US).unwrap(), 0);

    let removed = remove_before(dir.path(), START_US + 30_500_000).unwrap();
    let report = verify_against(dir.path(), &[early, kept]).unwrap();
    assert_eq!(
        (
            report.segments,
            report.given_checked,
            report.given_unchecked
        ),
        (before.segments - removed, 1, 1)
    );
    assert!(removed > 1 && report.is_clean() && report.root == before.root);
    assert!(
        report.first_sequence <= 31,
        "a segment with one young record stays whole"
    );
    assert_eq!(
        find(dir.path(), &Query::default()),
        (report.first_sequence..60).collect::<Vec<_>>()
    );

    // However old all is, the live segment stays, and the log goes on; an index is not needed to know the age.
    for path in files(dir.path())
        .iter()
        .filter(|path| path.extension().unwrap() == "idx")
    {
        fs::remove_file(path).unwrap();
    }
    remove_before(dir.path(), u64::MAX).unwrap();
    assert_eq!(verify_against(dir.path(), &[kept]).unwrap().segments, 1);
    write(small(dir.path()), 60, 70);
    assert_eq!(verify_against(dir.path(), &[kept]).unwrap().size, 70);
}

#[test]
fn a_configured_retention_is_applied_when_a_segment_is_sealed() {
    let dir = scratch();
    // The records' times lie in the past or future of the clock, which is what tells them old or young.
    let old = |n| Record {
        time_unix_us: 1_000_000 + n,
        ..record(n)
    };
    let config = LogConfig {
        retention_days: Some(30),
        ..small(dir.path())
    };
    let log = AuditLog::open(config).unwrap();
    for n in 0..40 {
        let record = if n < 20 {
            old(n)
        } else {
            Record {
                time_unix_us: u64::MAX / 2,
                ..record(n)
            }
        };
        log.append(record, Durability::Written)
            .unwrap()
            .wait()
            .unwrap();
    }
    log.close().unwrap();
    let report = verify(dir.path()).unwrap();
    assert!(
        (10..=20).contains(&report.first_sequence) && report.size == 40,
        "{report:?}"
    );
}
