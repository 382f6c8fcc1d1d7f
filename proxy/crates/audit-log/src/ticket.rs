//! The promise that a record is kept: how far the writer has come, and who waits for it.
//!
//! Sequences only grow, so progress is two counters and a ticket is a number to compare with them; a waker is stored
//! only for a ticket that was polled too early. Never touches the disk.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::config::{AuditError, Durability};

/// Resolves when the record is as safe as asked for; a future for async callers, [`Ticket::wait`] for the others.
///
/// Dropping it takes nothing back: the record is written all the same.
#[derive(Debug)]
#[must_use = "an answer that must be audited is released only after its ticket resolves"]
pub struct Ticket {
    progress: Arc<Progress>,
    durability: Durability,
    /// How many records must be safe.
    target: u64,
    /// Tells tickets of the same target apart.
    number: u64,
    waker_stored: bool,
}

impl Ticket {
    pub(crate) fn new(progress: &Arc<Progress>, durability: Durability, target: u64) -> Self {
        let number = progress.tickets.fetch_add(1, Ordering::Relaxed);
        Ticket {
            progress: progress.clone(),
            durability,
            target,
            number,
            waker_stored: false,
        }
    }

    /// The sequence the record got; of a flush ticket, that of the last record it waits for.
    pub fn sequence(&self) -> u64 {
        self.target.saturating_sub(1)
    }

    /// Blocks until the record is safe or the log has failed. Not for async code: await the ticket there.
    pub fn wait(self) -> Result<(), AuditError> {
        if let Some(outcome) = self.outcome() {
            return outcome;
        }
        let mut waiting = self.progress.lock();
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            waiting = self
                .progress
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn outcome(&self) -> Option<Result<(), AuditError>> {
        let reached = match self.durability {
            Durability::Buffered => u64::MAX,
            Durability::Written => self.progress.written.load(Ordering::Acquire),
            Durability::Durable => self.progress.synced.load(Ordering::Acquire),
        };
        if reached >= self.target {
            Some(Ok(()))
        } else {
            self.progress.failure.get().map(|error| Err(error.clone()))
        }
    }
}

impl Future for Ticket {
    type Output = Result<(), AuditError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = self.get_mut();
        if let Some(outcome) = ticket.outcome() {
            return Poll::Ready(outcome);
        }
        let mut waiting = ticket.progress.lock();
        // Again under the lock: the writer moves the counters first and looks for wakers after, under the same lock.
        if let Some(outcome) = ticket.outcome() {
            return Poll::Ready(outcome);
        }
        waiting
            .of(ticket.durability)
            .insert((ticket.target, ticket.number), context.waker().clone());
        drop(waiting);
        ticket.waker_stored = true;
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.waker_stored {
            self.progress
                .lock()
                .of(self.durability)
                .remove(&(self.target, self.number));
        }
    }
}

/// How far the writer has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    written: AtomicU64,
    synced: AtomicU64,
    failure: OnceLock<AuditError>,
    tickets: AtomicU64,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// Wakers by target and ticket number. Bounded by the tickets that are held, which the queue bounds.
#[derive(Debug, Default)]
struct Waiting {
    written: BTreeMap<(u64, u64), Waker>,
    synced: BTreeMap<(u64, u64), Waker>,
}

impl Waiting {
    fn of(&mut self, durability: Durability) -> &mut BTreeMap<(u64, u64), Waker> {
        if durability == Durability::Durable {
            &mut self.synced
        } else {
            &mut self.written
        }
    }
}

impl Progress {
    /// A log that already holds `records`.
    pub(crate) fn starting_at(records: u64) -> Self {
        Progress {
            written: AtomicU64::new(records),
            synced: AtomicU64::new(records),
            ..Progress::default()
        }
    }

    /// The kernel has the first `records`.
    pub(crate) fn wrote(&self, records: u64) {
        self.written.store(records, Ordering::Release);
        self.wake(Durability::Written, records);
    }

    /// The disk has the first `records`.
    pub(crate) fn synced(&self, records: u64) {
        self.synced.store(records, Ordering::Release);
        self.wake(Durability::Durable, records);
    }

    pub(crate) fn synced_count(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Nothing more will be written. Only the first failure counts.
    pub(crate) fn fail(&self, error: AuditError) {
        // A second failure says nothing that the first did not.
        let _ = self.failure.set(error);
        self.wake(Durability::Written, u64::MAX);
        self.wake(Durability::Durable, u64::MAX);
    }

    pub(crate) fn failure(&self) -> Option<&AuditError> {
        self.failure.get()
    }

    fn wake(&self, durability: Durability, records: u64) {
        let woken = {
            let mut waiting = self.lock();
            let all = waiting.of(durability);
            let later = all.split_off(&(records.saturating_add(1), 0));
            std::mem::replace(all, later)
        };
        self.changed.notify_all();
        woken.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // The maps are sound between any two statements, so a panic elsewhere does not spoil them.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll(ticket: &mut Ticket, count: &Arc<Count>) -> Poll<Result<(), AuditError>> {
        Pin::new(ticket).poll(&mut Context::from_waker(&Waker::from(count.clone())))
    }

    #[test]
    fn each_durability_resolves_at_its_own_counter() {
        let progress = Arc::new(Progress::starting_at(5));
        let count = Arc::new(Count::default());
        let [mut buffered, mut written, mut durable] = [
            Durability::Buffered,
            Durability::Written,
            Durability::Durable,
        ]
        .map(|durability| Ticket::new(&progress, durability, 7));
        assert!(poll(&mut buffered, &count).is_ready());
        progress.wrote(6);
        progress.synced(6);
        assert!(poll(&mut written, &count).is_pending() && poll(&mut durable, &count).is_pending());
        assert!(
            poll(&mut durable, &count).is_pending(),
            "polled twice, woken once"
        );
        progress.wrote(7);
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(poll(&mut written, &count).is_ready() && poll(&mut durable, &count).is_pending());
        progress.synced(7);
        assert_eq!(count.0.load(Ordering::SeqCst), 2);
        assert!(poll(&mut durable, &count).is_ready());
    }

    #[test]
    fn a_failure_reaches_those_who_wait_and_not_those_who_are_served() {
        let progress = Arc::new(Progress::starting_at(1));
        let count = Arc::new(Count::default());
        let mut served = Ticket::new(&progress, Durability::Durable, 1);
        let mut late = Ticket::new(&progress, Durability::Durable, 2);
        let blocked = Ticket::new(&progress, Durability::Written, 2);
        assert!(poll(&mut late, &count).is_pending());
        let thread = std::thread::spawn(|| blocked.wait());
        progress.fail(AuditError::Closed);
        assert!(matches!(thread.join().unwrap(), Err(AuditError::Closed)));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(matches!(
            poll(&mut late, &count),
            Poll::Ready(Err(AuditError::Closed))
        ));
        assert!(matches!(poll(&mut served, &count), Poll::Ready(Ok(()))));
    }

    #[test]
    fn a_dropped_ticket_leaves_no_waker() {
        let progress = Arc::new(Progress::default());
        let count = Arc::new(Count::default());
        let mut ticket = Ticket::new(&progress, Durability::Durable, 1);
        assert!(poll(&mut ticket, &count).is_pending());
        drop(ticket);
        assert!(progress.lock().synced.is_empty());
    }
}
