//! Searching and following, also under a writer.

// Helpers outside of test functions unwrap too.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use audit_log::*;
use common::*;

const COUNT: u64 = 100;

fn log_of_100() -> tempfile::TempDir {
    let dir = scratch();
    write(small(dir.path()), 0, COUNT);
    assert!(verify(dir.path()).unwrap().segments > 5);
    dir
}

#[test]
fn every_field_narrows_in_both_orders_with_and_without_indexes() {
    let dir = log_of_100();
    let mut id = None;
    let pick = Query {
        text: Some("\"SEQUENCE\":42,".into()),
        ..Query::default()
    };
    let note = |record: &Record| {
        id = Some(record.id.clone());
        ControlFlow::Continue(())
    };
    search(dir.path(), &pick, note).unwrap();
    let all = Query::default();
    type Expected = fn(u64) -> bool;
    let cases: Vec<(Query, Expected)> = vec![
        (all.clone(), |_| true),
        (pick, |n| n == 42),
        (Query { id, ..all.clone() }, |n| n == 42),
        (
            Query {
                since_unix_us: Some(START_US + 90_000_000),
                ..all.clone()
            },
            |n| n >= 90,
        ),
        (
            Query {
                until_unix_us: Some(START_US + 10_000_000),
                ..all.clone()
            },
            |n| n < 10,
        ),
        (
            Query {
                tenant: Some("acme".into()),
                ..all.clone()
            },
            |n| n % 2 == 0,
        ),
        (
            Query {
                tenant: Some("acm".into()),
                ..all.clone()
            },
            |_| false,
        ),
        (
            Query {
                server: Some("github".into()),
                ..all.clone()
            },
            |_| true,
        ),
        (
            Query {
                method: Some("tools/list".into()),
                ..all.clone()
            },
            |_| false,
        ),
        (
            Query {
                tool: Some("tool-3".into()),
                ..all.clone()
            },
            |n| n / 10 == 3,
        ),
        (
            Query {
                principal: Some("nobody".into()),
                ..all.clone()
            },
            |_| false,
        ),
        (
            Query {
                actions: vec![Action::Block, Action::Redact],
                ..all.clone()
            },
            |n| n % 5 == 3,
        ),
        (
            Query {
                actions: vec![Action::Error],
                ..all.clone()
            },
            |_| false,
        ),
        (
            Query {
                rule: Some("github-pat".into()),
                ..all.clone()
            },
            |n| n % 5 == 3,
        ),
        (
            Query {
                category: Some("pii".into()),
                ..all.clone()
            },
            |_| false,
        ),
        (
            Query {
                text: Some("no such text".into()),
                ..all.clone()
            },
            |_| false,
        ),
        (
            Query {
                tool: Some("tool-3".into()),
                actions: vec![Action::Block],
                ..all
            },
            |n| n == 33 || n == 38,
        ),
    ];
    for indexed in [true, false] {
        if !indexed {
            files(dir.path())
                .iter()
                .filter(|path| path.extension().unwrap() == "idx")
                .for_each(|path| {
                    std::fs::remove_file(path).unwrap();
                });
        }
        for (query, expected) in &cases {
            let mut expected: Vec<u64> = (0..COUNT).filter(|n| expected(*n)).collect();
            assert_eq!(find(dir.path(), query), expected, "{query:?}");
            expected.reverse();
            let newest = Query {
                order: Order::NewestFirst,
                ..query.clone()
            };
            assert_eq!(find(dir.path(), &newest), expected, "{query:?}");
            expected.truncate(3);
            assert_eq!(
                find(
                    dir.path(),
                    &Query {
                        limit: Some(3),
                        ..newest
                    }
                ),
                expected,
                "{query:?}"
            );
        }
    }
}

#[test]
fn indexes_save_reading_and_are_rebuilt_as_they_were() {
    let dir = log_of_100();
    let query = Query {
        tool: Some("tool-3".into()),
        ..Query::default()
    };
    let count = || search(dir.path(), &query, |_| ControlFlow::Continue(())).unwrap();
    let with = count();
    assert!(with.segments_skipped >= 4 && with.lines < 40, "{with:?}");
    let indexes: Vec<_> = files(dir.path())
        .into_iter()
        .filter(|path| path.extension().unwrap() == "idx")
        .collect();
    let before: Vec<_> = indexes
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    std::fs::remove_file(&indexes[0]).unwrap();
    std::fs::write(&indexes[1], b"00000000 {}\n").unwrap();
    assert_eq!(count().matched, with.matched);
    assert!(verify(dir.path()).is_err());
    assert_eq!(rebuild_indexes(dir.path()).unwrap(), 2);
    let after: Vec<_> = indexes
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert_eq!(before, after);
    assert_eq!(count(), with);
    assert!(verify(dir.path()).unwrap().is_clean());
}

#[test]
fn a_damaged_line_is_counted_and_the_rest_is_found() {
    let dir = scratch();
    write(
        LogConfig {
            segment_bytes_max: 64 << 20,
            ..small(dir.path())
        },
        0,
        20,
    );
    let path = &files(dir.path())[1];
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes
        .windows(16)
        .position(|window| window == b"\"tool\":\"tool-1\",")
        .unwrap();
    bytes[at - 30] ^= 1;
    std::fs::write(path, bytes).unwrap();
    for order in [Order::OldestFirst, Order::NewestFirst] {
        let query = Query {
            order,
            ..Query::default()
        };
        let stats = search(dir.path(), &query, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((stats.matched, stats.damaged), (19, 1));
    }
}

#[test]
fn a_tail_begins_where_asked() {
    let dir = log_of_100();
    let collect = |start, query| {
        let mut seen = Vec::new();
        Tail::open(dir.path(), start, query)
            .unwrap()
            .poll(|record| seen.push(record.sequence))
            .unwrap();
        seen
    };
    let blocked = Query {
        actions: vec![Action::Block],
        limit: Some(1),
        order: Order::NewestFirst,
        ..Query::default()
    };
    assert_eq!(collect(TailStart::Last(2), Query::default()), [98, 99]);
    assert_eq!(collect(TailStart::Last(2), blocked), [93, 98]);
    assert_eq!(
        collect(TailStart::Last(0), Query::default()),
        [] as [u64; 0]
    );
    assert_eq!(
        collect(TailStart::Last(1000), Query::default()).len() as u64,
        COUNT
    );
    assert_eq!(
        collect(TailStart::Sequence(97), Query::default()),
        [97, 98, 99]
    );
    assert_eq!(
        collect(TailStart::Sequence(100), Query::default()),
        [] as [u64; 0]
    );
}

#[test]
fn a_tail_waits_for_the_rest_of_a_line() {
    let (whole, dir) = (log_of_100(), scratch());
    let name = files(whole.path())[1].file_name().unwrap().to_owned();
    let bytes = std::fs::read(whole.path().join(&name)).unwrap();
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    let mut tail = Tail::open(dir.path(), TailStart::Sequence(0), Query::default()).unwrap();
    let mut seen = Vec::new();
    for end in (0..=bytes.len()).step_by(7).chain([bytes.len()]) {
        std::fs::write(dir.path().join(&name), &bytes[..end]).unwrap();
        tail.poll(|record| seen.push(record.sequence)).unwrap();
    }
    assert_eq!(seen, (0..lines as u64 - 1).collect::<Vec<_>>());
    assert_eq!(tail.damaged(), 0);
}

#[test]
fn readers_see_a_sound_growing_log_while_it_is_written() {
    const WRITTEN: u64 = 3000;
    let dir = scratch();
    let config = LogConfig {
        segment_bytes_max: 32 << 10,
        linger: Duration::from_micros(100),
        ..small(dir.path())
    };
    let log = AuditLog::open(LogConfig {
        checkpoint_every: 50,
        ..config
    })
    .unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..WRITTEN {
                let durability = if n % 7 == 0 {
                    Durability::Written
                } else {
                    Durability::Buffered
                };
                log.append(record(n), durability).unwrap().wait().unwrap();
            }
            log.close().unwrap();
            done.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            let mut tail =
                Tail::open(dir.path(), TailStart::Sequence(0), Query::default()).unwrap();
            let mut next = 0;
            loop {
                let last_look = done.load(Ordering::SeqCst);
                let check = |record: &Record| {
                    assert_eq!(record.sequence, next, "no gap, no repetition");
                    next += 1;
                };
                tail.poll(check).unwrap();
                if last_look {
                    break;
                }
            }
            assert_eq!((next, tail.damaged()), (WRITTEN, 0));
        });
        let (mut size, mut rounds) = (0, 0);
        while !done.load(Ordering::SeqCst) || rounds == 0 {
            let report = verify(dir.path()).unwrap();
            assert!(report.size >= size);
            size = report.size;
            let newest = Query {
                order: Order::NewestFirst,
                limit: Some(5),
                ..Query::default()
            };
            let found = find(dir.path(), &newest);
            assert!(
                found.is_sorted_by(|later, earlier| *later == earlier + 1)
                    && found.first() >= size.checked_sub(1).as_ref()
            );
            rounds += 1;
        }
    });
    assert_eq!(verify(dir.path()).unwrap().size, WRITTEN);
}
