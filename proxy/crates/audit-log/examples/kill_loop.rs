//! Kills a writer again and again and checks that nothing it acknowledged is lost:
//! `cargo run --release -p audit-log --example kill_loop -- [ROUNDS] [DIR]`.
//!
//! Each round starts this program as a child that appends from several threads and prints a sequence once its ticket
//! resolved, kills it (SIGKILL) at a random moment, opens the log again, verifies it, and looks up every sequence
//! that was printed. All rounds work on one log, which rotates every few hundred records.

#![allow(clippy::print_stdout)]

use std::collections::BTreeSet;
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use audit_log::{
    AuditLog, Checkpoint, Durability, LogConfig, Order, Query, Record, search, verify_against,
};

const CHILD: &str = "child";
const THREADS: u64 = 4;
/// A child lives at most this long once it was heard of.
const LIFE_MS_MAX: u64 = 120;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some(CHILD) {
        return write_for_ever(Path::new(
            &arguments.next().ok_or("the child needs a directory")?,
        ));
    }
    let rounds: u64 = first.map_or(Ok(100), |text| text.parse())?;
    let home = tempfile::tempdir_in(
        arguments
            .next()
            .map_or_else(|| PathBuf::from("."), PathBuf::from),
    )?;
    let (random, mut totals) = (RandomState::new(), Totals::default());
    for round in 0..rounds {
        let life = Duration::from_micros(random.hash_one(round) % (LIFE_MS_MAX * 1000));
        let acknowledged = run_and_kill(home.path(), life)?;
        check(home.path(), &acknowledged, &mut totals)
            .map_err(|error| format!("round {round}: {error}"))?;
    }
    println!(
        "{rounds} kills: {} acknowledged records, all there; {} records, {} torn ends cut, slowest opening {:?}",
        totals.acknowledged, totals.size, totals.torn, totals.slowest_open
    );
    Ok(())
}

#[derive(Default)]
struct Totals {
    acknowledged: usize,
    size: u64,
    torn: u64,
    slowest_open: Duration,
    checkpoints: Vec<Checkpoint>,
}

fn run_and_kill(dir: &Path, life: Duration) -> Result<BTreeSet<u64>, Box<dyn Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg(CHILD)
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines =
        BufReader::new(child.stdout.take().ok_or("the child's output is piped")?).lines();
    let mut acknowledged = BTreeSet::new();
    acknowledged.extend(
        lines
            .next()
            .transpose()?
            .map(|line| line.parse::<u64>())
            .transpose()?,
    );
    let killer = std::thread::spawn(move || {
        // The moment is what is random here, nothing is waited for.
        std::thread::sleep(life);
        child.kill().and_then(|()| child.wait())
    });
    for line in lines {
        // Lines are printed whole, and so is the last.
        acknowledged.insert(line?.parse()?);
    }
    killer.join().map_err(|_| "the killer panicked")??;
    Ok(acknowledged)
}

fn check(
    dir: &Path,
    acknowledged: &BTreeSet<u64>,
    totals: &mut Totals,
) -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let log = AuditLog::open(LogConfig::new(dir))?;
    totals.slowest_open = totals.slowest_open.max(begin.elapsed());
    totals.torn += u64::from(log.recovery().torn_bytes > 0);
    log.close()?;
    // Every root of every earlier round must still be that of its size.
    let report = verify_against(dir, &totals.checkpoints)?;
    totals.checkpoints.push(Checkpoint {
        size: report.size,
        root: report.root,
        time_unix_us: 0,
    });
    let mut missing = acknowledged.clone();
    let newest = Query {
        order: Order::NewestFirst,
        ..Query::default()
    };
    search(dir, &newest, |record| {
        missing.remove(&record.sequence);
        if missing.is_empty() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    totals.acknowledged += acknowledged.len();
    totals.size = report.size;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("acknowledged and lost: {missing:?}").into())
    }
}

fn write_for_ever(dir: &Path) -> Result<(), Box<dyn Error>> {
    let log = AuditLog::open(LogConfig {
        segment_bytes_max: 128 << 10,
        checkpoint_every: 50,
        ..LogConfig::new(dir)
    })?;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                let mut n = thread;
                // Ends when the parent does: the pipe breaks.
                while append(log, n).is_ok() {
                    n += THREADS;
                }
            });
        }
    });
    Ok(())
}

fn append(log: &AuditLog, n: u64) -> Result<(), Box<dyn Error>> {
    let mut record = Record::new(1_790_000_000_000_000 + n, "acme".into(), "github".into());
    record.reason = Some("x".repeat((n % 200) as usize).into());
    let durability = [
        Durability::Durable,
        Durability::Written,
        Durability::Buffered,
    ][(n % 3) as usize];
    let ticket = log.append(record, durability)?;
    let sequence = ticket.sequence();
    ticket.wait()?;
    // A buffered record is only promised to be on its way.
    if durability != Durability::Buffered {
        let line = format!("{sequence}\n");
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
