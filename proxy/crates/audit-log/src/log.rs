//! The writing side: a bounded queue and one thread that writes in batches.
//!
//! ```text
//! append -> queue -> [writer thread: serialise, link, write, sync] -> tickets resolve
//!                         ^        \-> fault: every ticket and append says so
//!                         \-- the log is opened again, as after a crash, every [`LogConfig::retry_interval`]
//! ```
//!
//! A record somebody waits for is written at once, together with whatever else is queued by then: while the disk
//! syncs, the next batch gathers. Records nobody waits for gather for [`LogConfig::linger`]. No write or sync is ever
//! retried: after a fault the log goes on from what is on disk, and what was not acknowledged by then stays lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::checkpoint::Checkpoint;
use crate::config::{AuditError, Durability, LogConfig, Recovery};
use crate::files::{Disk, Fault};
use crate::record::Record;
use crate::recover;
use crate::store::{Failed, Store};
use crate::ticket::{Progress, Ticket};

/// An audit log open for writing. Share it in an `Arc`.
///
/// ```
/// # fn main() -> Result<(), audit_log::AuditError> {
/// use audit_log::{AuditLog, Durability, LogConfig, Record};
/// # let dir = tempfile::tempdir().expect("a temporary directory");
/// let log = AuditLog::open(LogConfig::new(dir.path()))?;
/// let record = Record::new(1_790_000_000_000_000, "acme".into(), "github".into());
/// let ticket = log.append(record, Durability::Durable)?;
/// ticket.wait()?; // or `ticket.await?`
/// log.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AuditLog {
    shared: Arc<Shared>,
    recovery: Recovery,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl AuditLog {
    /// Opens the log, dropping what an interrupted write left at its end (see [`AuditLog::recovery`]).
    pub fn open(config: LogConfig) -> Result<AuditLog, AuditError> {
        let disk = Disk::new(config.fsync);
        AuditLog::open_on(config, disk)
    }

    pub(crate) fn open_on(config: LogConfig, disk: Disk) -> Result<AuditLog, AuditError> {
        let (store, recovery) = recover::open(config.clone(), disk)?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                next_sequence: recovery.next_sequence,
                progress: Arc::new(Progress::starting_at(recovery.next_sequence)),
                ..State::default()
            }),
            work: Condvar::new(),
            in_hand: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            checkpoint: Mutex::new(store.last_checkpoint()),
            config,
        });
        let of_thread = shared.clone();
        let spawned = std::thread::Builder::new()
            .name("audit-log".into())
            .spawn(move || run(&of_thread, store));
        let thread = spawned.map_err(|source| AuditError::Failed {
            doing: "starting its thread".into(),
            source: Arc::new(source),
        })?;
        Ok(AuditLog {
            shared,
            recovery,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Hands a record to the writer, capped. Never waits for the disk.
    pub fn append(&self, mut record: Record, durability: Durability) -> Result<Ticket, AuditError> {
        record.cap();
        let mut state = self.shared.lock();
        if let Err(error) = state.is_open() {
            state.lost += 1;
            return Err(error);
        }
        let queue_max = self.shared.config.queue_max;
        if state.queue.len() + self.shared.in_hand.load(Ordering::Relaxed) >= queue_max {
            state.lost += 1;
            return Err(AuditError::QueueFull { queue_max });
        }
        record.sequence = state.next_sequence;
        record.lost_before = std::mem::take(&mut state.lost);
        state.next_sequence += 1;
        let target = state.next_sequence;
        state.queue.push(Entry { record, durability });
        state.urgent |=
            durability != Durability::Buffered || state.queue.len() >= self.shared.config.batch_max;
        let ticket = Ticket::new(&state.progress, durability, target);
        self.shared.wake(state);
        Ok(ticket)
    }

    /// A ticket that resolves when everything appended so far is synced.
    pub fn flush(&self) -> Result<Ticket, AuditError> {
        let mut state = self.shared.lock();
        state.is_open()?;
        let target = state.next_sequence;
        state.urgent = true;
        state.flush = true;
        let ticket = Ticket::new(&state.progress, Durability::Durable, target);
        self.shared.wake(state);
        Ok(ticket)
    }

    /// What opening found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Why the log refuses records, if it does: for health checks.
    pub fn failure(&self) -> Option<AuditError> {
        self.shared.lock().progress.failure().cloned()
    }

    /// Whether it refuses records now, as far as is known: cheap enough to ask before each call.
    pub fn is_broken(&self) -> bool {
        self.shared.broken.load(Ordering::Acquire)
    }

    /// Records waiting to be written: for metrics.
    pub fn queued(&self) -> usize {
        self.shared.lock().queue.len() + self.shared.in_hand.load(Ordering::Relaxed)
    }

    /// The last checkpoint left on disk: export it to where this host cannot rewrite it.
    pub fn last_checkpoint(&self) -> Checkpoint {
        *self
            .shared
            .checkpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is queued, syncs, leaves a checkpoint and ends the thread; blocks until done. Later appends get
    /// [`AuditError::Closed`]. Dropping the log does the same but cannot tell of a failure.
    pub fn close(&self) -> Result<(), AuditError> {
        let mut state = self.shared.lock();
        state.closed = true;
        state.urgent = true;
        self.shared.wake(state);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            // A panic of the thread is told as a failure by its guard.
            let _ = thread.join();
        }
        self.failure().map_or(Ok(()), Err)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.close();
    }
}

#[derive(Debug)]
struct Shared {
    config: LogConfig,
    state: Mutex<State>,
    work: Condvar,
    /// Records the writer took and has not written yet; they count towards `queue_max`.
    in_hand: AtomicUsize,
    /// What `state` says of a failure.
    broken: AtomicBool,
    checkpoint: Mutex<Checkpoint>,
}

#[derive(Debug, Default)]
struct State {
    queue: Vec<Entry>,
    next_sequence: u64,
    /// Of the log as it was opened last: who waits for what was there before a fault hears of that fault.
    progress: Arc<Progress>,
    /// Records that were refused, or lost by a fault, since the last one that was taken.
    lost: u64,
    /// Somebody waits, or the batch is full: no lingering.
    urgent: bool,
    flush: bool,
    closed: bool,
    /// What the writer sleeps for; it is woken only when that changes things, since a wake-up costs more than an
    /// append.
    sleep: Sleep,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sleep {
    /// It is at work and will look at the queue by itself.
    #[default]
    Awake,
    /// The queue was empty: any record wakes it.
    Idle,
    /// A batch gathers, or may soon: only urgency wakes it.
    Lingering,
}

#[derive(Debug)]
struct Entry {
    record: Record,
    durability: Durability,
}

impl State {
    /// Whether records are still taken.
    fn is_open(&self) -> Result<(), AuditError> {
        match self.progress.failure() {
            Some(failure) => Err(failure.clone()),
            None if self.closed => Err(AuditError::Closed),
            None => Ok(()),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is sound between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on nothing is taken, and all who wait hear why.
    fn fail(&self, error: AuditError) {
        let progress = self.lock().progress.clone();
        progress.fail(error);
        self.broken.store(true, Ordering::Release);
    }

    /// Waits for so long; false as soon as the log is to be closed.
    fn rest(&self, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.closed || now >= until {
                state.sleep = Sleep::Awake;
                return !state.closed;
            }
            state.sleep = Sleep::Idle;
            let slept = self.work.wait_timeout(state, until - now);
            state = slept.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let wakes = match state.sleep {
            Sleep::Awake => false,
            Sleep::Idle => true,
            Sleep::Lingering => state.urgent,
        };
        if wakes {
            state.sleep = Sleep::Awake;
            drop(state);
            self.work.notify_one();
        }
    }
}

/// What the thread is to do next.
struct Work {
    batch: Vec<Entry>,
    flush: bool,
    closed: bool,
}

/// The thread: writes until the log is closed, over faults of the disk.
fn run(shared: &Arc<Shared>, mut store: Store) {
    let guard = PanicGuard(shared.clone());
    loop {
        let mut writer = Writer {
            shared,
            progress: shared.lock().progress.clone(),
            store,
            worked: false,
        };
        let written = writer.write();
        writer.publish_checkpoint();
        let Err((fault, unwritten)) = written else {
            break;
        };
        match open_again(shared, fault, unwritten, writer.store.fail()) {
            Some(again) => store = again,
            None => break,
        }
    }
    std::mem::forget(guard);
}

/// Tells everybody of a fault, and tries until the log can be opened again. `None`: it was closed meanwhile.
fn open_again(
    shared: &Shared,
    fault: Fault,
    mut unwritten: Vec<Entry>,
    mut failed: Failed,
) -> Option<Store> {
    let fault = AuditError::from(fault);
    let mut told = with_source(&fault);
    tracing::error!("no record is taken until the log can be written again: {told}");
    shared.fail(fault);
    {
        // Nothing is added any more.
        let mut state = shared.lock();
        unwritten.append(&mut state.queue);
        (state.urgent, state.flush) = (false, false);
        shared.in_hand.store(0, Ordering::Relaxed);
    }
    let mut wait = shared.config.retry_interval;
    while shared.rest(wait) {
        let began = Instant::now();
        let (store, next) = match recover::again(&mut failed) {
            Ok((store, recovery)) => (store, recovery.next_sequence),
            Err(error) => {
                let why = with_source(&error);
                if why != told {
                    tracing::error!("the audit log stays broken: {why}");
                    told = why;
                }
                // Reading a large segment again and again may not take a processor for itself.
                wait = shared.config.retry_interval.max(began.elapsed() * 10);
                continue;
            }
        };
        let unkept = unwritten
            .iter()
            .filter(|entry| entry.record.sequence >= next);
        let mut lost: u64 = unkept.map(|entry| 1 + entry.record.lost_before).sum();
        // There once, and not any more.
        lost += failed.kept_size().saturating_sub(next);
        let mut state = shared.lock();
        state.lost += lost;
        state.next_sequence = next;
        state.progress = Arc::new(Progress::starting_at(next));
        shared.broken.store(false, Ordering::Release);
        let lost = state.lost;
        drop(state);
        tracing::warn!(
            lost,
            "the audit log is written again; the next record says how many were lost"
        );
        return Some(store);
    }
    None
}

fn with_source(error: &AuditError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

struct Writer<'s> {
    shared: &'s Shared,
    progress: Arc<Progress>,
    store: Store,
    /// The last batch had records.
    worked: bool,
}

impl Writer<'_> {
    /// Until the log is closed; the error has what may not have been written.
    fn write(&mut self) -> Result<(), (Fault, Vec<Entry>)> {
        let mut spare = Vec::new();
        loop {
            let work = self.next_work(spare);
            self.worked = !work.batch.is_empty();
            let done = match self.work(&work) {
                Ok(()) if work.closed => self.store.finish(),
                done => done,
            };
            match done {
                Err(fault) => return Err((fault, work.batch)),
                Ok(()) if work.closed => return Ok(()),
                Ok(()) => {}
            }
            spare = work.batch;
            spare.clear();
            spare.shrink_to(self.shared.config.batch_max);
        }
    }

    /// Sleeps until there is something to do, and takes all of it.
    fn next_work(&self, spare: Vec<Entry>) -> Work {
        let mut state = self.shared.lock();
        // After a batch the next one is taken to gather already, so that steady traffic wakes nobody: who appends finds
        // the writer asleep until a moment that is near anyhow.
        let mut gathering_since = self.worked.then(Instant::now);
        loop {
            let now = Instant::now();
            let (sleep, due) = if state.urgent {
                break;
            } else if state.queue.is_empty() && gathering_since.is_none() {
                (Sleep::Idle, self.store.next_due())
            } else {
                let since = *gathering_since.get_or_insert(now);
                (Sleep::Lingering, Some(since + self.shared.config.linger))
            };
            if due.is_some_and(|due| due <= now) {
                if sleep == Sleep::Lingering && state.queue.is_empty() {
                    gathering_since = None;
                    continue;
                }
                break;
            }
            state.sleep = sleep;
            state = match due {
                Some(due) => {
                    let slept = self.shared.work.wait_timeout(state, due - now);
                    slept.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .shared
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
            state.sleep = Sleep::Awake;
        }
        let batch = std::mem::replace(&mut state.queue, spare);
        self.shared.in_hand.store(batch.len(), Ordering::Relaxed);
        state.urgent = false;
        Work {
            batch,
            flush: std::mem::take(&mut state.flush),
            closed: state.closed,
        }
    }

    fn work(&mut self, work: &Work) -> Result<(), Fault> {
        let progress = self.progress.clone();
        for batch in work.batch.chunks(self.shared.config.batch_max.max(1)) {
            self.store.write(batch.iter().map(|entry| &entry.record))?;
            progress.wrote(self.store.size());
            self.shared
                .in_hand
                .fetch_sub(batch.len(), Ordering::Relaxed);
            if batch
                .iter()
                .any(|entry| entry.durability == Durability::Durable)
            {
                self.store.sync()?;
                progress.synced(self.store.size());
            }
        }
        if work.flush {
            self.store.sync()?;
        }
        self.store.housekeep(Instant::now())?;
        if self.store.is_synced() && progress.synced_count() < self.store.size() {
            progress.synced(self.store.size());
        }
        self.publish_checkpoint();
        Ok(())
    }

    fn publish_checkpoint(&self) {
        let mut checkpoint = self
            .shared
            .checkpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *checkpoint = self.store.last_checkpoint();
    }
}

/// Tells all who wait if the thread unwinds, so that nobody waits for ever.
struct PanicGuard(Arc<Shared>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        let source = std::io::Error::other("the writer thread panicked");
        self.0.fail(AuditError::Failed {
            doing: "writing".into(),
            source: Arc::new(source),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::{Fuse, scratch};
    use crate::verify;

    const COUNT: u64 = 24;

    fn record(n: u64) -> Record {
        Record::new(n, "t".into(), "s".into())
    }

    /// Appends durable records until something fails; gives how many were acknowledged.
    fn run(log: &AuditLog, first: u64) -> Result<u64, (u64, AuditError)> {
        for n in first..COUNT {
            let kept = log
                .append(record(n), Durability::Durable)
                .and_then(Ticket::wait);
            kept.map_err(|error| (n, error))?;
        }
        log.close().map(|()| COUNT).map_err(|error| (COUNT, error))
    }

    /// Every step that the writer takes on the disk fails once, the write before it having gone half through.
    #[test]
    fn whatever_step_fails_nothing_acknowledged_is_lost_and_nothing_is_acknowledged_after() {
        let mut failed_in_use = 0;
        for steps in 0.. {
            let dir = scratch();
            let config = LogConfig {
                segment_bytes_max: 2 << 10,
                checkpoint_every: 5,
                ..LogConfig::new(dir.path())
            };
            let fuse = Fuse::new(steps);
            let disk = Disk {
                fsync: true,
                fuse: Some(fuse.clone()),
            };
            let acknowledged = match AuditLog::open_on(config.clone(), disk) {
                Err(error) => {
                    assert!(
                        matches!(error, AuditError::Failed { .. }),
                        "{steps}: {error}"
                    );
                    0
                }
                Ok(log) => match run(&log, 0) {
                    Ok(_) => {
                        assert!(!fuse.blown());
                        assert!(
                            failed_in_use > 100,
                            "the scenario is long enough: {failed_in_use}"
                        );
                        return;
                    }
                    Err((acknowledged, error)) => {
                        failed_in_use += 1;
                        assert!(
                            matches!(error, AuditError::Failed { .. }),
                            "{steps}: {error}"
                        );
                        assert!(log.failure().is_some());
                        for durability in [Durability::Buffered, Durability::Durable] {
                            let again = log.append(record(0), durability);
                            assert!(matches!(again, Err(AuditError::Failed { .. })));
                        }
                        assert!(matches!(log.flush(), Err(AuditError::Failed { .. })));
                        acknowledged
                    }
                },
            };
            let log = AuditLog::open(config).unwrap_or_else(|error| panic!("{steps}: {error}"));
            let next = log.recovery().next_sequence;
            assert!(
                next >= acknowledged,
                "{steps}: {acknowledged} acknowledged, {next} there"
            );
            assert_eq!(run(&log, next).unwrap(), COUNT);
            assert!(verify(dir.path()).unwrap().is_clean(), "{steps}");
        }
    }

    #[test]
    fn a_panic_of_the_writer_reaches_those_who_wait() {
        let shared = Arc::new(Shared {
            config: LogConfig::new("nowhere"),
            state: Mutex::default(),
            work: Condvar::new(),
            in_hand: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            checkpoint: Mutex::new(Checkpoint {
                size: 0,
                root: [0; 32],
                time_unix_us: 0,
            }),
        });
        let ticket = Ticket::new(&shared.lock().progress, Durability::Durable, 1);
        let guard = PanicGuard(shared.clone());
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("the writer panics"));
        });
        assert!(thread.join().is_err());
        assert!(matches!(ticket.wait(), Err(AuditError::Failed { .. })));
        assert!(shared.broken.load(Ordering::Acquire));
    }

    /// Every step that the writer takes on the disk fails for a while, and works again.
    #[test]
    fn whatever_step_fails_the_log_goes_on_once_the_disk_works_again() {
        for steps in 0.. {
            let dir = scratch();
            let config = LogConfig {
                segment_bytes_max: 2 << 10,
                checkpoint_every: 5,
                retry_interval: Duration::from_millis(1),
                ..LogConfig::new(dir.path())
            };
            let fuse = Fuse::new(steps);
            let disk = Disk {
                fsync: true,
                fuse: Some(fuse.clone()),
            };
            let Ok(log) = AuditLog::open_on(config, disk) else {
                continue;
            };
            let (mut kept, mut failed) = (Vec::new(), 0);
            for n in 0..COUNT {
                let ticket = log.append(record(n), Durability::Durable);
                match ticket.and_then(Ticket::wait) {
                    Ok(()) => kept.push(n),
                    Err(_) => {
                        failed += 1;
                        fuse.mend();
                        while log.failure().is_some() {
                            std::thread::yield_now();
                        }
                        assert!(!log.is_broken());
                    }
                }
            }
            let closed = log.close();
            drop(log);
            if failed == 0 && closed.is_ok() {
                assert!(steps > 100, "the scenario is long enough: {steps}");
                return;
            }
            // A fault while it is closed is one that nothing comes after.
            assert!(failed <= 1 && (failed == 1) == closed.is_ok(), "{steps}");
            if closed.is_err() {
                AuditLog::open(LogConfig::new(dir.path())).unwrap();
            }
            let report = verify(dir.path()).unwrap();
            assert!(report.is_clean() && report.unvouched == 0, "{steps}");
            let (mut there, mut lost) = (Vec::new(), 0);
            let query = crate::Query::default();
            crate::search(dir.path(), &query, |record| {
                there.push(record.time_unix_us);
                lost += record.lost_before;
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
            // One that was not acknowledged may be there all the same; if it is not, the next one says so.
            assert!(kept.iter().all(|n| there.contains(n)), "{steps}");
            let said = there.len() as u64 + lost;
            let last_failed = kept.last() != Some(&(COUNT - 1));
            assert!(
                said == COUNT || last_failed && said + 1 == COUNT,
                "{steps}: {said}"
            );
        }
    }

    #[test]
    fn a_folder_that_is_removed_is_noticed_and_the_sequences_go_on() {
        for again in [false, true] {
            let dir = scratch();
            let path = dir.path().join("audit");
            let config = LogConfig {
                retry_interval: Duration::from_millis(1),
                ..LogConfig::new(&path)
            };
            let log = AuditLog::open(config).unwrap();
            let append = |n| {
                log.append(record(n), Durability::Durable)
                    .and_then(Ticket::wait)
            };
            for n in 0..5 {
                append(n).unwrap();
            }
            // Or put into another's place: what is written is not what is read.
            if again {
                let segment = path.join("audit-00000000000000000000.log");
                let copy = std::fs::read(&segment).unwrap();
                std::fs::remove_file(&segment).unwrap();
                std::fs::write(&segment, copy).unwrap();
            } else {
                std::fs::remove_dir_all(&path).unwrap();
            }
            assert!(matches!(append(5), Err(AuditError::Failed { .. })));
            while log.failure().is_some() {
                std::thread::yield_now();
            }
            append(6).unwrap();
            log.close().unwrap();
            let report = verify(&path).unwrap();
            let first = if again { 0 } else { 5 };
            assert_eq!((report.first_sequence, report.size), (first, 6));
        }
    }

    #[test]
    fn a_log_that_has_nothing_to_write_notices_that_its_folder_is_gone() {
        let dir = scratch();
        let path = dir.path().join("audit");
        let log = AuditLog::open(LogConfig::new(&path)).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::write(&path, "in its place").unwrap();
        while !log.is_broken() {
            std::thread::yield_now();
        }
        assert!(log.failure().is_some() && log.close().is_err());
    }
}
