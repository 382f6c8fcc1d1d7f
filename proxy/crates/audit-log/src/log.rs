//! The writing side: a bounded queue and one thread that writes in batches.
//!
//! ```text
//! append -> queue -> [writer thread: serialise, link, write, sync] -> tickets resolve
//!                                  \-> first fault: failed for good, every ticket and append says so
//! ```
//!
//! A record somebody waits for is written at once, together with whatever else is queued by then: while the disk
//! syncs, the next batch gathers. Records nobody waits for gather for [`LogConfig::linger`]. Nothing is ever retried.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::checkpoint::Checkpoint;
use crate::config::{AuditError, Durability, LogConfig, Recovery};
use crate::files::{Disk, Fault};
use crate::record::Record;
use crate::recover;
use crate::store::Store;
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
                ..State::default()
            }),
            work: Condvar::new(),
            in_hand: AtomicUsize::new(0),
            progress: Arc::new(Progress::starting_at(recovery.next_sequence)),
            checkpoint: Mutex::new(store.last_checkpoint()),
            config,
        });
        let writer = Writer {
            shared: shared.clone(),
            store,
            worked: false,
        };
        let spawned = std::thread::Builder::new()
            .name("audit-log".into())
            .spawn(|| writer.run());
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
        let mut state = self.shared.open_state()?;
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
        self.shared.wake(state);
        Ok(Ticket::new(&self.shared.progress, durability, target))
    }

    /// A ticket that resolves when everything appended so far is synced.
    pub fn flush(&self) -> Result<Ticket, AuditError> {
        let mut state = self.shared.open_state()?;
        let target = state.next_sequence;
        state.urgent = true;
        state.flush = true;
        self.shared.wake(state);
        Ok(Ticket::new(
            &self.shared.progress,
            Durability::Durable,
            target,
        ))
    }

    /// What opening found.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Why the log refuses records, if it does: for health checks.
    pub fn failure(&self) -> Option<AuditError> {
        self.shared.progress.failure().cloned()
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
    progress: Arc<Progress>,
    checkpoint: Mutex<Checkpoint>,
}

#[derive(Debug, Default)]
struct State {
    queue: Vec<Entry>,
    next_sequence: u64,
    /// Records refused since the last one that was taken.
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

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is sound between any two statements.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, if records are still taken.
    fn open_state(&self) -> Result<MutexGuard<'_, State>, AuditError> {
        if let Some(failure) = self.progress.failure() {
            return Err(failure.clone());
        }
        let state = self.lock();
        if state.closed {
            Err(AuditError::Closed)
        } else {
            Ok(state)
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

struct Writer {
    shared: Arc<Shared>,
    store: Store,
    /// The last batch had records.
    worked: bool,
}

impl Writer {
    fn run(mut self) {
        let guard = PanicGuard(self.shared.progress.clone());
        let mut spare = Vec::new();
        let ended = loop {
            let work = self.next_work(spare);
            self.worked = !work.batch.is_empty();
            match self.work(&work) {
                Err(fault) => break Err(fault),
                Ok(()) if work.closed => break self.store.finish(),
                Ok(()) => {}
            }
            spare = work.batch;
            spare.clear();
            spare.shrink_to(self.shared.config.batch_max);
        };
        self.publish_checkpoint();
        if let Err(fault) = ended {
            self.shared.progress.fail(fault.into());
        }
        std::mem::forget(guard);
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
        let progress = self.shared.progress.clone();
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
struct PanicGuard(Arc<Progress>);

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
        let progress = Arc::new(Progress::default());
        let ticket = Ticket::new(&progress, Durability::Durable, 1);
        let guard = PanicGuard(progress.clone());
        let thread = std::thread::spawn(move || {
            let _guard = guard;
            std::panic::resume_unwind(Box::new("the writer panics"));
        });
        assert!(thread.join().is_err());
        assert!(matches!(ticket.wait(), Err(AuditError::Failed { .. })));
    }
}
