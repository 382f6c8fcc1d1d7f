//! A plugin that keeps failing is left alone for a while.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Failures in a row that open it.
const FAILURES: u32 = 3;
/// How long it stays open; then one message tries again.
const OPEN: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Whether anything failed since the last success: without it the lock is not taken, and each
    /// message saves it twice.
    troubled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

/// What a failure did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tripped {
    /// The breaker opened by it.
    Opened,
    /// It did not.
    No,
}

impl Breaker {
    /// Whether the plugin may be asked. While it is open one message is let through each time the
    /// wait is over.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        if !self.troubled.load(Ordering::Acquire) {
            return true;
        }
        let mut state = self.state.lock();
        match state.open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                state.open_until = Some(now + OPEN);
                true
            }
        }
    }

    pub(crate) fn succeeded(&self) {
        if self.troubled.load(Ordering::Acquire) {
            let mut state = self.state.lock();
            *state = State::default();
            self.troubled.store(false, Ordering::Release);
        }
    }

    pub(crate) fn failed(&self, now: Instant) -> Tripped {
        let mut state = self.state.lock();
        self.troubled.store(true, Ordering::Release);
        state.failures = state.failures.saturating_add(1);
        if state.failures < FAILURES {
            return Tripped::No;
        }
        state.open_until = Some(now + OPEN);
        if state.failures == FAILURES {
            Tripped::Opened
        } else {
            Tripped::No
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_in_a_row_open_it_and_one_success_closes_it() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.failed(now), Tripped::No);
        breaker.succeeded();
        assert_eq!([breaker.failed(now), breaker.failed(now)], [Tripped::No; 2]);
        assert!(breaker.admits(now));
        assert_eq!(breaker.failed(now), Tripped::Opened);
        assert!(!breaker.admits(now));
        let later = now + OPEN;
        assert!(breaker.admits(later));
        assert!(!breaker.admits(later), "one try at a time");
        breaker.succeeded();
        assert!(breaker.admits(later));
    }
}
