//! What the log costs: `cargo run --release -p audit-log --example throughput -- [RECORDS] [DIR]`.
//!
//! Prints, for each durability, records per second, what `append` costs the caller, and what the writer thread costs
//! per record; then how long open, verify and search take over what was written.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use audit_log::{
    Action, AuditError, AuditLog, Durability, FindingRecord, LogConfig, Query, Record, Ticket,
    search, verify,
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().map_or(Ok(200_000), |text| text.parse())?;
    let home = tempfile::tempdir_in(
        arguments
            .next()
            .map_or_else(|| PathBuf::from("."), PathBuf::from),
    )?;
    for durability in [
        Durability::Buffered,
        Durability::Written,
        Durability::Durable,
    ] {
        for clients in [1, 16, 256] {
            let dir = home.path().join(format!("{durability:?}-{clients}"));
            let count = if durability == Durability::Durable && clients == 1 {
                records / 10
            } else {
                records
            };
            append(&dir, count, durability, clients)?;
        }
    }
    paced(&home.path().join("paced"))?;
    read_back(&home.path().join("Buffered-1"))
}

/// One thread keeps `clients` tickets open at a time, as an async gateway would.
fn append(
    dir: &Path,
    records: u64,
    durability: Durability,
    clients: usize,
) -> Result<(), Box<dyn Error>> {
    let log = AuditLog::open(LogConfig::new(dir))?;
    let sample = sample();
    let mut open: std::collections::VecDeque<Ticket> = std::collections::VecDeque::new();
    let (begin, cpu) = (Instant::now(), cpu_of_writer());
    for _ in 0..records {
        if open.len() == clients
            && let Some(ticket) = open.pop_front()
        {
            ticket.wait()?;
        }
        open.push_back(append_one(&log, &sample, durability)?);
    }
    open.into_iter().try_for_each(Ticket::wait)?;
    log.flush()?.wait()?;
    let (took, cpu) = (begin.elapsed(), cpu_of_writer() - cpu);
    println!(
        "{durability:?}, {clients} open: {:.0} records/s, writer thread {:.2} us/record",
        records as f64 / took.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / records as f64
    );
    Ok(log.close()?)
}

fn append_one(
    log: &AuditLog,
    sample: &Record,
    durability: Durability,
) -> Result<Ticket, AuditError> {
    loop {
        match log.append(sample.clone(), durability) {
            Err(AuditError::QueueFull { .. }) => std::thread::yield_now(),
            done => return done,
        }
    }
}

/// What the caller pays at 5,000 records a second.
fn paced(dir: &Path) -> Result<(), Box<dyn Error>> {
    for (durability, every) in [(Durability::Buffered, 200), (Durability::Durable, 200)] {
        let log = AuditLog::open(LogConfig::new(dir.join(format!("{durability:?}"))))?;
        let sample = sample();
        let (mut spent, begin, cpu) = (Duration::ZERO, Instant::now(), cpu_of_writer());
        let count = 10_000;
        for n in 0..count {
            while begin.elapsed() < Duration::from_micros(n * every) {
                std::hint::spin_loop();
            }
            let record = sample.clone();
            let start = Instant::now();
            drop(log.append(record, durability)?);
            spent += start.elapsed();
        }
        log.flush()?.wait()?;
        let cpu = cpu_of_writer() - cpu;
        println!(
            "{durability:?}, 5,000/s: append {:.2} us, writer thread {:.2} us/record",
            spent.as_secs_f64() * 1e6 / count as f64,
            cpu.as_secs_f64() * 1e6 / count as f64
        );
        log.close()?;
    }
    Ok(())
}

fn read_back(dir: &Path) -> Result<(), Box<dyn Error>> {
    let time = |what: &str, begin: Instant| {
        println!("{what}: {:.0} ms", begin.elapsed().as_secs_f64() * 1e3)
    };
    let bytes: u64 = dir
        .read_dir()?
        .map(|entry| entry?.metadata().map(|data| data.len()))
        .sum::<Result<u64, _>>()?;
    println!("log of {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let begin = Instant::now();
    drop(AuditLog::open(LogConfig::new(dir))?);
    time("open", begin);
    let begin = Instant::now();
    let report = verify(dir)?;
    time(&format!("verify {} records", report.size), begin);
    for (what, query) in [
        ("search all", Query::default()),
        (
            "search a tool that is not there",
            Query {
                tool: Some("absent".into()),
                ..Query::default()
            },
        ),
        (
            "search text",
            Query {
                text: Some("no such text".into()),
                ..Query::default()
            },
        ),
    ] {
        let begin = Instant::now();
        let stats = search(dir, &query, |_| ControlFlow::Continue(()))?;
        time(
            &format!("{what}: {} found, {} lines", stats.matched, stats.lines),
            begin,
        );
    }
    Ok(())
}

fn sample() -> Record {
    let mut record = Record::new(1_790_000_000_123_456, "acme".into(), "github-tools".into());
    record.principal = Some("key_01hzy3q9v7".into());
    record.session = Some("9f3a11c0".into());
    record.era = Some("2025-06-18".into());
    record.method = Some("tools/call".into());
    record.tool = Some("create_issue".into());
    record.rpc_id = Some("184".into());
    record.action = Action::Redact;
    record.findings.push(FindingRecord {
        rule: "github-pat".into(),
        category: "secret".into(),
        action: Action::Redact,
        direction: None,
        path: "params.arguments.body".into(),
        start: 120,
        end: 160,
        layers: Vec::new(),
        fingerprint: Some(Arc::from("0123456789abcdef")),
        allowed_by: None,
    });
    record.status = Some(200);
    record.trace_id = Some("4bf92f3577b34da6a3ce929d0e0e4736".into());
    record.client = Some("127.0.0.1:55120".into());
    record
}

/// CPU time of the threads that are not this one, from the kernel's scheduler statistics.
fn cpu_of_writer() -> Duration {
    let this = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let others = tasks.filter(|task| Some(task.file_name().as_os_str()) != this.file_name());
    let nanos = others.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}
