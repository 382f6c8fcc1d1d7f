//! Tampering without knowing the format: changed bytes, cut, swapped, repeated and removed lines and files, old copies.
//! (Forging with knowledge of it is tried beside the verifier.)

// Helpers outside of test functions unwrap too.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use audit_log::*;
use common::*;

/// Few, since every byte of them is tried.
const COUNT: u64 = 9;

/// Three segments or so, closed.
fn small_log() -> tempfile::TempDir {
    let dir = scratch();
    write(
        LogConfig {
            segment_bytes_max: 1600,
            checkpoint_every: 3,
            ..small(dir.path())
        },
        0,
        COUNT,
    );
    let report = verify(dir.path()).unwrap();
    assert!(report.is_clean() && report.segments >= 3, "{report:?}");
    dir
}

fn with_extension(dir: &Path, extension: &str) -> Vec<PathBuf> {
    files(dir)
        .into_iter()
        .filter(|path| path.extension().unwrap() == extension)
        .collect()
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    fs::read(path)
        .unwrap()
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

/// Sequence of the first bad record according to the verifier.
fn named(dir: &Path) -> Option<u64> {
    match verify(dir) {
        Err(VerifyError::Record { sequence, .. } | VerifyError::Segment { sequence, .. }) => {
            Some(sequence)
        }
        Err(VerifyError::CutShort { have, .. }) => Some(have),
        _ => None,
    }
}

#[test]
fn every_byte_of_every_file_counts() {
    let dir = small_log();
    let mut tried = 0;
    for path in files(dir.path()) {
        let sound = fs::read(&path).unwrap();
        for place in 0..sound.len() {
            // One bit, and the letter case, which some readers of hexadecimal overlook.
            for change in [0x01, 0x20] {
                let mut bytes = sound.clone();
                bytes[place] ^= change;
                fs::write(&path, &bytes).unwrap();
                let found = verify(dir.path()).is_ok_and(|report| report.is_clean());
                assert!(
                    !found,
                    "byte {place} of {} changed by {change:#x}",
                    path.display()
                );
                tried += 1;
            }
        }
        fs::write(&path, &sound).unwrap();
    }
    assert!(verify(dir.path()).unwrap().is_clean());
    assert!(tried > 10_000, "{tried}");
}

#[test]
fn changed_records_are_named() {
    let dir = small_log();
    let mut sequence = 0;
    for path in with_extension(dir.path(), "log") {
        let sound = lines(&path);
        for line in 1..sound.len() {
            let mut changed = sound.clone();
            let middle = changed[line].len() / 2;
            changed[line][middle] ^= 1;
            fs::write(&path, changed.concat()).unwrap();
            assert_eq!(named(dir.path()), Some(sequence));
            sequence += 1;
        }
        fs::write(&path, sound.concat()).unwrap();
    }
    assert_eq!(sequence, COUNT);
}

#[test]
fn removed_repeated_swapped_and_cut_lines_are_named() {
    let dir = small_log();
    let mut first = 0;
    for path in with_extension(dir.path(), "log") {
        let sound = lines(&path);
        let check = |what: &str, lines: Vec<Vec<u8>>, expected: u64| {
            fs::write(&path, lines.concat()).unwrap();
            assert_eq!(
                named(dir.path()),
                Some(expected),
                "{what}, {}",
                path.display()
            );
        };
        for line in 1..sound.len() {
            let sequence = first + line as u64 - 1;
            let mut lines = sound.clone();
            lines.remove(line);
            check("removed", lines, sequence);
            let mut lines = sound.clone();
            lines.insert(line, sound[line].clone());
            check("repeated", lines, sequence + 1);
            check("cut before", sound[..line].to_vec(), sequence);
            let mut lines = sound.clone();
            lines.truncate(line + 1);
            lines[line].pop();
            check("cut within", lines, sequence);
            if line + 1 < sound.len() {
                let mut lines = sound.clone();
                lines.swap(line, line + 1);
                check("swapped", lines, sequence);
            }
        }
        fs::write(&path, sound.concat()).unwrap();
        first += sound.len() as u64 - 1;
    }
}

#[test]
fn removed_files_show_where_they_can_and_never_pass_for_whole() {
    let dir = small_log();
    let kept = verify(dir.path()).unwrap();
    let checkpoint = Checkpoint {
        size: kept.size,
        root: kept.root,
        time_unix_us: 0,
    };
    let paths = files(dir.path());
    let first = &with_extension(dir.path(), "log")[0];
    for path in &paths {
        let sound = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        let found = verify_against(dir.path(), &[checkpoint]);
        let unaided = verify(dir.path());
        match path.extension().unwrap().to_str().unwrap() {
            // The oldest segment may have been removed by retention: the report says from where on it speaks.
            "log" if path == first => assert!(found.is_ok_and(|report| report.first_sequence > 0)),
            "log" => assert!(
                matches!(unaided, Err(VerifyError::Segment { .. })),
                "{unaided:?}"
            ),
            "idx" => {
                assert!(found.is_ok_and(|report| report.missing_indexes == 1 && !report.is_clean()))
            }
            _ if path.ends_with(NEWEST) => {
                assert!(found.is_ok() && unaided.is_ok(), "the others stand for it")
            }
            _ => assert!(
                matches!(found, Err(VerifyError::SideFile { .. })),
                "{found:?}"
            ),
        }
        fs::write(path, sound).unwrap();
    }
}

/// Cuts the last record off.
fn cut_last(dir: &Path) {
    let path = with_extension(dir, "log").pop().unwrap();
    let mut lines = lines(&path);
    lines.pop();
    fs::write(path, lines.concat()).unwrap();
}

/// A log of nine records in one segment, closed or as a kill leaves it.
fn one_segment(is_closed: bool) -> tempfile::TempDir {
    let (live, dir) = (scratch(), scratch());
    let config = LogConfig {
        segment_bytes_max: 64 << 20,
        ..small(live.path())
    };
    let log = AuditLog::open(config).unwrap();
    for n in 0..COUNT {
        let ticket = log.append(record(n), Durability::Written).unwrap();
        ticket.wait().unwrap();
    }
    if is_closed {
        log.close().unwrap();
    }
    copy(live.path(), dir.path());
    dir
}

#[test]
fn an_end_that_was_cut_off_shows_though_its_checkpoints_went_with_it() {
    let segment = "audit-00000000000000000000.ckpt";
    for is_removed in [false, true] {
        let lose = |dir: &tempfile::TempDir, name: &str| match is_removed {
            true => fs::remove_file(dir.path().join(name)).unwrap(),
            false => fs::write(dir.path().join(name), b"").unwrap(),
        };
        let dir = one_segment(true);
        lose(&dir, segment);
        let found = verify(dir.path());
        assert!(
            matches!(found, Err(VerifyError::SideFile { .. })),
            "{found:?}"
        );
        cut_last(dir.path());
        assert_eq!(named(dir.path()), Some(COUNT - 1));
        // One that knows of both files.
        lose(&dir, NEWEST);
        assert!(verify(dir.path()).is_err());
    }
    let dir = one_segment(true);
    cut_last(dir.path());
    for name in [segment, NEWEST] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    let found = verify(dir.path());
    let expected = |found: &Result<Report, VerifyError>| {
        matches!(
            found,
            Err(VerifyError::Unvouched {
                since: 0,
                size: 8,
                ..
            })
        )
    };
    assert!(expected(&found), "{found:?}");
}

#[test]
fn a_log_that_is_written_or_whose_writer_was_killed_is_not_called_cut() {
    let dir = one_segment(false);
    let report = verify(dir.path()).unwrap();
    assert!(report.is_clean());
    assert_eq!((report.size, report.unvouched), (COUNT, COUNT));
    // A checkpoint from elsewhere vouches for what it covers.
    let closed = one_segment(true);
    let kept = verify(closed.path()).unwrap();
    assert_eq!(kept.unvouched, 0);
    for name in ["audit-00000000000000000000.ckpt", NEWEST] {
        fs::remove_file(closed.path().join(name)).unwrap();
    }
    let given = Checkpoint {
        size: kept.size,
        root: kept.root,
        time_unix_us: 0,
    };
    assert_eq!(
        verify_against(closed.path(), &[given]).unwrap().unvouched,
        0
    );
    // Written on, it has records that nothing covers again, and then not.
    write(small(dir.path()), COUNT, COUNT + 3);
    assert_eq!(verify(dir.path()).unwrap().unvouched, 0);
}

#[test]
fn an_older_copy_is_found_by_a_checkpoint_kept_elsewhere() {
    let (dir, old) = (scratch(), scratch());
    write(small(dir.path()), 0, 10);
    copy(dir.path(), old.path());
    write(small(dir.path()), 10, 15);
    let report = verify(dir.path()).unwrap();
    let kept = Checkpoint {
        size: report.size,
        root: report.root,
        time_unix_us: 0,
    };
    let kept = Checkpoint::from_note(&kept.to_note("test")).unwrap();
    assert_eq!(
        verify_against(dir.path(), &[kept]).unwrap().given_checked,
        1
    );

    assert!(
        verify(old.path()).unwrap().is_clean(),
        "the copy is sound in itself"
    );
    let found = verify_against(old.path(), &[kept]);
    assert!(
        matches!(
            found,
            Err(VerifyError::CutShort {
                have: 10,
                size: 15,
                ..
            })
        ),
        "{found:?}"
    );
    // Written on to the same size, it is a fork: as sound, with another root.
    write(small(old.path()), 10, 15);
    let fork = verify(old.path()).unwrap();
    assert!(
        fork.is_clean() && fork.root != report.root,
        "ids differ, so records do"
    );
    let found = verify_against(old.path(), &[kept]);
    assert!(
        matches!(found, Err(VerifyError::Root { size: 15, .. })),
        "{found:?}"
    );
}

#[test]
fn a_log_that_was_whole_and_is_not_any_more_is_not_written_on() {
    type Spoil = fn(&Path);
    let cases: [(&str, Spoil); 9] = [
        ("changed record", |dir| {
            let path = with_extension(dir, "log").pop().unwrap();
            let mut lines = lines(&path);
            lines[1][100] ^= 1;
            fs::write(path, lines.concat()).unwrap();
        }),
        ("cut record", |dir| {
            let path = with_extension(dir, "log").pop().unwrap();
            let mut lines = lines(&path);
            lines.pop();
            fs::write(path, lines.concat()).unwrap();
        }),
        ("changed header", |dir| {
            let path = with_extension(dir, "log").pop().unwrap();
            let mut lines = lines(&path);
            lines[0][60] ^= 1;
            fs::write(path, lines.concat()).unwrap();
        }),
        ("changed checkpoint", |dir| {
            let path = with_extension(dir, "log").pop().unwrap();
            let path = path.with_extension("ckpt");
            let mut lines = lines(&path);
            lines[0][20] ^= 1;
            fs::write(path, lines.concat()).unwrap();
        }),
        ("cut record, and its checkpoints emptied", |dir| {
            cut_last(dir);
            let path = with_extension(dir, "log").pop().unwrap();
            fs::write(path.with_extension("ckpt"), b"").unwrap();
        }),
        ("changed newest checkpoint", |dir| {
            let path = dir.join(NEWEST);
            let mut bytes = fs::read(&path).unwrap();
            bytes[20] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("all but the newest checkpoint gone", |dir| {
            for path in files(dir).iter().filter(|path| !path.ends_with(NEWEST)) {
                fs::remove_file(path).unwrap();
            }
        }),
        ("last segment gone", |dir| {
            fs::remove_file(with_extension(dir, "log").pop().unwrap()).unwrap();
        }),
        ("all segments gone", |dir| {
            with_extension(dir, "log")
                .iter()
                .for_each(|path| fs::remove_file(path).unwrap())
        }),
    ];
    for (what, spoil) in cases {
        let dir = small_log();
        spoil(dir.path());
        let before: Vec<_> = files(dir.path())
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect();
        assert!(
            matches!(
                AuditLog::open(small(dir.path())),
                Err(AuditError::Damaged { .. })
            ),
            "{what}"
        );
        let after: Vec<_> = files(dir.path())
            .iter()
            .map(|path| fs::read(path).unwrap())
            .collect();
        assert_eq!(before, after, "{what}: the evidence is left as it is");
    }
}
