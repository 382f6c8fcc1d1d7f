//! A circuit breaker per upstream: after so many failures in a row, callers are told at once.
//!
//! ```text
//! closed --failures >= max--> open --after open_ms--> one probe --ok--> closed
//!                              ^                          |
//!                              '---------- fails ---------'
//! ```

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The state of one upstream's circuit.
#[derive(Debug)]
pub struct Breaker {
    failures_max: u32,
    open_for: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    Probing { until: Instant },
}

impl Breaker {
    /// A closed circuit; `failures_max` 0 never opens.
    pub fn new(failures_max: u32, open_for: Duration) -> Self {
        Self {
            failures_max,
            open_for,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    /// Whether a call may be tried now.
    pub fn admits(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        match *state {
            State::Closed { .. } => true,
            State::Open { until } | State::Probing { until } if now < until => false,
            // One probe at a time; a probe that never reports back gives way after open_for.
            _ => {
                *state = State::Probing {
                    until: now + self.open_for,
                };
                true
            }
        }
    }

    /// A call was answered.
    pub fn succeeded(&self) {
        *self.state.lock() = State::Closed { failures: 0 };
    }

    /// A call could not be answered. Returns true when this opened the circuit.
    pub fn failed(&self, now: Instant) -> bool {
        if self.failures_max == 0 {
            return false;
        }
        let mut state = self.state.lock();
        let failures = match *state {
            State::Closed { failures } => failures + 1,
            State::Open { .. } => return false,
            State::Probing { .. } => self.failures_max,
        };
        if failures >= self.failures_max {
            *state = State::Open {
                until: now + self.open_for,
            };
            true
        } else {
            *state = State::Closed { failures };
            false
        }
    }

    /// Whether the circuit is open, for metrics.
    pub fn is_open(&self) -> bool {
        !matches!(*self.state.lock(), State::Closed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_failures_in_a_row_and_closes_on_a_good_probe() {
        let now = Instant::now();
        let b = Breaker::new(2, Duration::from_secs(10));
        assert!(!b.failed(now));
        b.succeeded();
        assert!(!b.failed(now));
        assert!(b.failed(now) && b.is_open());
        assert!(!b.admits(now + Duration::from_secs(9)));
        let later = now + Duration::from_secs(11);
        assert!(b.admits(later), "one probe");
        assert!(!b.admits(later), "only one");
        assert!(b.failed(later), "a failed probe opens again");
        let later = later + Duration::from_secs(11);
        assert!(b.admits(later));
        b.succeeded();
        assert!(b.admits(later) && !b.is_open());
    }

    #[test]
    fn zero_switches_it_off() {
        let now = Instant::now();
        let b = Breaker::new(0, Duration::from_secs(10));
        for _ in 0..100 {
            assert!(!b.failed(now));
        }
        assert!(b.admits(now));
    }
}
