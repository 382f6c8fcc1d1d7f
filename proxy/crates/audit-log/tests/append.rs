//! Appending: order, tickets, bounds, caps, one writer at a time.

// Helpers outside of test functions unwrap too.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use audit_log::*;
use common::*;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn tickets_resolve_for_blocking_and_for_async_callers_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(LogConfig::new(dir.path())).unwrap();
    for n in 0..30 {
        let durability = [
            Durability::Buffered,
            Durability::Written,
            Durability::Durable,
        ][n as usize % 3];
        let ticket = log.append(record(n), durability).unwrap();
        assert_eq!(ticket.sequence(), n);
        if n % 2 == 0 {
            block_on(ticket)
        } else {
            ticket.wait()
        }
        .unwrap();
        if durability != Durability::Buffered {
            assert_eq!(
                find(dir.path(), &Query::default()).len() as u64,
                n + 1,
                "written means readable"
            );
        }
    }
    log.close().unwrap();
    assert!(matches!(
        log.append(record(30), Durability::Buffered),
        Err(AuditError::Closed)
    ));
    assert!(matches!(log.flush(), Err(AuditError::Closed)));
    let report = verify(dir.path()).unwrap();
    assert!(report.is_clean() && report.size == 30 && report.checkpoints == 1);
    assert_eq!(
        log.last_checkpoint(),
        Checkpoint {
            size: 30,
            root: report.root,
            ..log.last_checkpoint()
        }
    );
}

#[test]
fn many_threads_get_gapless_sequences_in_file_order() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(LogConfig {
        segment_bytes_max: 64 << 10,
        ..LogConfig::new(dir.path())
    })
    .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..100 {
                    let ticket = log.append(record(n), Durability::Durable).unwrap();
                    if n % 10 == 9 {
                        block_on(ticket).unwrap();
                    }
                }
            });
        }
    });
    log.close().unwrap();
    assert_eq!(
        find(dir.path(), &Query::default()),
        (0..800).collect::<Vec<_>>()
    );
    assert_eq!(verify(dir.path()).unwrap().size, 800);
}

#[test]
fn a_full_queue_is_an_error_and_the_next_record_tells_how_many_were_refused() {
    let dir = tempfile::tempdir().unwrap();
    // The first records gather for an hour unless somebody waits.
    let config = LogConfig {
        queue_max: 4,
        linger: Duration::from_secs(3600),
        ..small(dir.path())
    };
    let log = AuditLog::open(config).unwrap();
    for n in 0..4 {
        log.append(record(n), Durability::Buffered)
            .unwrap()
            .wait()
            .unwrap();
    }
    for durability in [
        Durability::Buffered,
        Durability::Durable,
        Durability::Written,
    ] {
        assert!(matches!(
            log.append(record(9), durability),
            Err(AuditError::QueueFull { queue_max: 4 })
        ));
    }
    assert_eq!(log.queued(), 4);
    log.flush().unwrap().wait().unwrap();
    log.append(record(4), Durability::Written)
        .unwrap()
        .wait()
        .unwrap();
    log.append(record(5), Durability::Written)
        .unwrap()
        .wait()
        .unwrap();
    let mut lost = Vec::new();
    let collect = |record: &Record| {
        lost.push(record.lost_before);
        ControlFlow::Continue(())
    };
    search(dir.path(), &Query::default(), collect).unwrap();
    assert_eq!(lost, [0, 0, 0, 0, 3, 0]);
}

#[test]
fn a_second_writer_is_refused_until_the_first_ends() {
    let dir = tempfile::tempdir().unwrap();
    let first = AuditLog::open(small(dir.path())).unwrap();
    assert!(matches!(
        AuditLog::open(small(dir.path())),
        Err(AuditError::InUse { .. })
    ));
    first.close().unwrap();
    assert!(AuditLog::open(small(dir.path())).is_ok());
}

#[test]
fn dropping_the_log_writes_what_is_queued() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(LogConfig {
        linger: Duration::from_secs(3600),
        ..small(dir.path())
    })
    .unwrap();
    for n in 0..5 {
        drop(log.append(record(n), Durability::Buffered).unwrap());
    }
    drop(log);
    assert_eq!(verify(dir.path()).unwrap().size, 5);
}

#[test]
fn records_nobody_waits_for_are_written_synced_and_covered_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig {
        sync_interval: Duration::from_millis(5),
        checkpoint_interval: Duration::from_millis(20),
        ..LogConfig::new(dir.path())
    };
    let log = AuditLog::open(config).unwrap();
    drop(log.append(record(0), Durability::Buffered).unwrap());
    let mut tail = Tail::open(dir.path(), TailStart::Sequence(0), Query::default()).unwrap();
    let mut seen = 0;
    while seen == 0 || log.last_checkpoint().size == 0 {
        seen += tail.poll(|_| ()).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(verify(dir.path()).unwrap().checkpoints, 1);
}

#[test]
fn checkpoints_come_by_count() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig {
        checkpoint_every: 10,
        segment_bytes_max: 64 << 20,
        ..small(dir.path())
    };
    write(config, 0, 35);
    assert_eq!(
        verify(dir.path()).unwrap().checkpoints,
        4,
        "at 10, 20, 30 and at the close"
    );
}

fn oversize(text: &str) -> Record {
    let long: Text = text.repeat((1 << 20) / text.len()).into();
    let mut record = Record::new(START_US, long.clone(), long.clone());
    let fields = [
        &mut record.principal,
        &mut record.session,
        &mut record.era,
        &mut record.method,
        &mut record.tool,
        &mut record.rpc_id,
        &mut record.reason,
        &mut record.trace_id,
        &mut record.client,
    ];
    fields
        .into_iter()
        .for_each(|field| *field = Some(long.clone()));
    let finding = FindingRecord {
        rule: long.clone(),
        category: long.clone(),
        path: long.clone(),
        layers: vec![long.clone(); 100],
        fingerprint: Some(long),
        ..finding("")
    };
    record.findings = vec![finding; 1000];
    record
}

#[test]
fn every_field_is_capped_and_hostile_text_stays_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = AuditLog::open(small(dir.path())).unwrap();
    let texts = [
        "\0",
        "\n",
        "\u{1f}",
        "\"",
        "\\",
        "\u{1F600}",
        "\u{2028}",
        "x\r\n00000000 000002 {}\n",
        "\u{7f}",
    ];
    for text in texts {
        log.append(oversize(text), Durability::Written)
            .unwrap()
            .wait()
            .unwrap();
    }
    log.close().unwrap();
    let mut lines = 0;
    for path in files(dir.path())
        .iter()
        .filter(|path| path.extension().unwrap() == "log")
    {
        let bytes = std::fs::read(path).unwrap();
        lines += bytes.iter().filter(|byte| **byte == b'\n').count() - 1;
        assert!(
            bytes
                .iter()
                .all(|byte| *byte == b'\n' || !byte.is_ascii_control() || *byte == 0x7f)
        );
        assert!(bytes.len() < 300 << 10, "{}", bytes.len());
    }
    assert_eq!(lines, texts.len());
    assert!(verify(dir.path()).unwrap().is_clean());
    let mut texts = texts.iter();
    let check = |stored: &Record| {
        let mut expected = oversize(texts.next().unwrap());
        (expected.id, expected.sequence) = (stored.id.clone(), stored.sequence);
        expected.cap();
        assert_eq!(*stored, expected);
        assert_eq!(
            (stored.findings.len(), stored.findings_dropped),
            (FINDINGS_MAX, 1000 - FINDINGS_MAX as u32)
        );
        assert_eq!(stored.findings[0].layers.len(), LAYERS_MAX);
        let method = stored.method.as_ref().unwrap();
        assert!(method.len() <= TEXT_BYTES_MAX && method.ends_with(CUT_MARK));
        assert!(
            stored.tenant.len() <= NAME_BYTES_MAX
                && stored.findings[0].path.len() <= PATH_BYTES_MAX
        );
        assert!(stored.findings[0].layers[0].len() <= LAYER_BYTES_MAX);
        ControlFlow::Continue(())
    };
    search(dir.path(), &Query::default(), check).unwrap();
    // What is looked for is cut like what was stored.
    let long = Query {
        tool: Some("\n".repeat(5000).into()),
        ..Query::default()
    };
    assert_eq!(find(dir.path(), &long), [1]);
}
