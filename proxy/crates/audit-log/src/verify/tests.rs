//! Forging a log with full knowledge of its format.

use super::*;
use crate::files::tests::scratch;
use crate::{AuditLog, Durability, LogConfig};

/// How thoroughly a record is forged.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Forgery {
    /// Its checksum is redone.
    Checksum,
    /// Its link too, those after it are not.
    Link,
    /// All links after it too, and the segment headers.
    Links,
    /// All checkpoints in the directory too.
    Checkpoints,
}

const COUNT: u64 = 40;

fn log_of_40(dir: &Path) {
    let config = LogConfig {
        segment_bytes_max: 4 << 10,
        checkpoint_every: 4,
        fsync: false,
        ..LogConfig::new(dir)
    };
    let log = AuditLog::open(config).unwrap();
    for n in 0..COUNT {
        log.append(Record::new(n, "t".into(), "s".into()), Durability::Written)
            .unwrap()
            .wait()
            .unwrap();
    }
    log.close().unwrap();
    assert!(verify(dir).unwrap().segments > 2);
}

/// Says of record `target` that less was moved, and hides it.
fn forge(dir: &Path, target: u64, forgery: Forgery) {
    let mut chain = Chain::default();
    for paths in segment::list(dir).unwrap() {
        let log = fs::read(&paths.log).unwrap();
        let mut lines = log
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| &line[..line.len() - 1]);
        let mut header = Header::from_line(lines.next().unwrap(), paths.first).unwrap();
        if forgery >= Forgery::Links {
            header.chain = chain.clone();
        }
        let mut out = header.to_line();
        let sound = CheckpointFile::parse(&fs::read(paths.checkpoints()).unwrap())
            .unwrap()
            .checkpoints;
        let mut checkpoints = Vec::new();
        for line in lines {
            let frame = frame::decode(line).unwrap();
            let mut record: Record = serde_json::from_slice(frame.json).unwrap();
            if record.sequence == target {
                record.bytes.request = 7;
            }
            let start = frame::begin(&mut out);
            serde_json::to_writer(&mut out, &record).unwrap();
            let redone = chain.push(frame::json_at(&out, start));
            let own =
                forgery >= Forgery::Links || forgery == Forgery::Link && record.sequence == target;
            frame::finish(&mut out, start, if own { &redone } else { &frame.link });
            let size = chain.tree.size();
            checkpoints.extend(
                sound
                    .iter()
                    .filter(|checkpoint| checkpoint.size == size)
                    .map(|checkpoint| {
                        let forged = Checkpoint {
                            root: chain.tree.root(),
                            ..*checkpoint
                        };
                        if forgery >= Forgery::Checkpoints {
                            forged
                        } else {
                            *checkpoint
                        }
                    }),
            );
        }
        let checkpoints: Vec<u8> = checkpoints
            .into_iter()
            .flat_map(Checkpoint::to_line)
            .collect();
        fs::write(paths.checkpoints(), checkpoints).unwrap();
        // Same length: "request":0 became 7. So the index still fits.
        assert_eq!(out.len(), log.len());
        fs::write(&paths.log, out).unwrap();
    }
    if forgery >= Forgery::Checkpoints {
        let newest = Checkpoint::of(&chain.tree, 0);
        fs::write(dir.join(segment::LAST_FILE), newest.to_line()).unwrap();
    }
}

#[test]
fn forgeries_are_found_and_named_as_closely_as_what_is_left_allows() {
    for target in 0..COUNT {
        for forgery in [
            Forgery::Checksum,
            Forgery::Link,
            Forgery::Links,
            Forgery::Checkpoints,
        ] {
            let dir = scratch();
            log_of_40(dir.path());
            let sound = verify(dir.path()).unwrap();
            let given = [10, COUNT].map(|size| root_at(dir.path(), size));
            assert_eq!(verify_against(dir.path(), &given).unwrap().given_checked, 2);
            forge(dir.path(), target, forgery);
            let found = verify(dir.path());
            match forgery {
                Forgery::Checksum => assert_eq!(named(&found), Some(target), "{found:?}"),
                // The next record does not fit any more (at a segment's end, the next header), unless a checkpoint
                // right behind the forged one tells first.
                Forgery::Link if named(&found).is_some() => {
                    assert_eq!(named(&found), Some(target + 1))
                }
                Forgery::Link | Forgery::Links => assert_between(target, &found),
                Forgery::Checkpoints => {
                    assert!(
                        found.is_ok_and(|report| report.root != sound.root),
                        "nothing local can tell"
                    );
                    assert_between(target, &verify_against(dir.path(), &given));
                }
            }
        }
    }
}

fn root_at(dir: &Path, size: u64) -> Checkpoint {
    let mut chain = Chain::default();
    for paths in segment::list(dir).unwrap() {
        let log = fs::read(&paths.log).unwrap();
        for line in log.split_inclusive(|byte| *byte == b'\n').skip(1) {
            if chain.tree.size() < size {
                chain.push(frame::decode(&line[..line.len() - 1]).unwrap().json);
            }
        }
    }
    Checkpoint::of(&chain.tree, 0)
}

fn named(found: &Result<Report, VerifyError>) -> Option<u64> {
    match found {
        Err(VerifyError::Record { sequence, .. } | VerifyError::Segment { sequence, .. }) => {
            Some(*sequence)
        }
        _ => None,
    }
}

fn assert_between(target: u64, found: &Result<Report, VerifyError>) {
    let Err(VerifyError::Root { since, size, .. }) = found else {
        panic!("{target}: {found:?}")
    };
    assert!((*since..*size).contains(&target), "{target}: {found:?}");
}
