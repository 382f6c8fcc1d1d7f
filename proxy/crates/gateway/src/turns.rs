//! When a write waits for the end of a turn.
//!
//! A write to a peer on the same machine wakes it, and waking an idle core costs more than the write itself. Where many
//! calls are under way, several of them are ready in the same turn of a worker; their writes then go out one after the
//! other at its end, and find the peer awake from the first of them. Where few are, a write waits for nothing; where very
//! many are, neither: peers have enough to do to stay awake, and another turn would only make everybody later.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls under way for each worker from which on several of them are likely to be ready at once.
const MANY: usize = 4;
/// Calls under way for each worker from which on turns are long.
const TOO_MANY: usize = 64;

/// How many calls are under way, over all connections of a gateway.
#[derive(Debug, Default)]
pub struct Turns {
    under_way: AtomicUsize,
    /// 0 until it is known.
    workers: AtomicUsize,
}

/// Counted while a call is under way.
#[derive(Debug)]
pub struct UnderWay(Arc<Turns>);

impl Turns {
    /// Says how many workers share the calls. Before it is said no write waits.
    pub fn shared_by(&self, workers: usize) {
        self.workers.store(workers, Ordering::Relaxed);
    }

    /// One more call, until it is dropped.
    pub fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// How many calls are under way.
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Whether a write should wait for the end of the turn.
    pub fn are_shared(&self) -> bool {
        let workers = self.workers.load(Ordering::Relaxed);
        let share = self.under_way.load(Ordering::Relaxed).checked_div(workers);
        share.is_some_and(|share| (MANY..TOO_MANY).contains(&share))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_shared_while_many_calls_are_under_way() {
        let turns = Arc::new(Turns::default());
        let first = turns.begin();
        assert!(
            !turns.are_shared(),
            "nobody said how many workers there are"
        );
        turns.shared_by(2);
        let mut others: Vec<_> = (1..2 * MANY).map(|_| turns.begin()).collect();
        assert!(turns.are_shared());
        drop(first);
        assert!(!turns.are_shared(), "too few");
        others.extend((others.len()..2 * TOO_MANY).map(|_| turns.begin()));
        assert!(!turns.are_shared(), "too many");
        others.pop();
        assert!(turns.are_shared());
        drop(others);
        assert_eq!(turns.under_way.load(Ordering::Relaxed), 0);
    }
}
