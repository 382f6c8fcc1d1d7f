//! A circuit breaker per upstream: after so many failures in a row, callers are told at once.
//!
//! ```text
//! closed --failures >= max--> open --after open_ms--> one probe --ok--> closed
//!                              ^                          |
//!                              '---------- fails ---------'
//! ```
//!
//! Each key has a circuit of its own: a call that the server fails at may be one that only this key makes, and one key must
//! not close the server for the others. Where a second key's circuit opens while another's is open, it is the server that
//! fails, and for `open_ms` nobody is let through.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::session::BoundedMap;

/// Keys whose failures are remembered; above it the one that failed the longest ago is forgotten.
const KEYS_MAX: usize = 1024;

/// The state of one upstream's circuits.
pub struct Breaker {
    failures_max: u32,
    open_for: Duration,
    circuits: Mutex<Circuits>,
}

struct Circuits {
    /// Of keys whose last call failed; every other is closed.
    of_keys: BoundedMap<Arc<str>, State>,
    /// Whose circuit opened last, and until when it is open.
    opened: Option<(Arc<str>, Instant)>,
    /// Nobody is let through until then.
    all_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    Probing { until: Instant },
}

/// For whom a failure opened the circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// For nobody.
    No,
    /// For the key whose call it was.
    ForKey,
    /// For everybody.
    ForAll,
}

impl std::fmt::Debug for Breaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Breaker")
            .field("failures_max", &self.failures_max)
            .finish_non_exhaustive()
    }
}

impl Breaker {
    /// Closed circuits; `failures_max` 0 never opens.
    pub fn new(failures_max: u32, open_for: Duration) -> Self {
        Self {
            failures_max,
            open_for,
            circuits: Mutex::new(Circuits {
                of_keys: BoundedMap::new(KEYS_MAX),
                opened: None,
                all_until: None,
            }),
        }
    }

    /// Whether a call of this owner may be tried now.
    ///
    /// # Errors
    /// It may not, for so long.
    pub fn admit(&self, owner: &Arc<str>, now: Instant) -> Result<(), Duration> {
        let mut circuits = self.circuits.lock();
        let left = |until: Instant| until.checked_duration_since(now).filter(|d| !d.is_zero());
        if let Some(left) = circuits.all_until.and_then(left) {
            return Err(left);
        }
        match circuits.of_keys.get_mut(owner) {
            None | Some(State::Closed { .. }) => Ok(()),
            Some(state) => {
                let (State::Open { until } | State::Probing { until }) = *state else {
                    return Ok(());
                };
                if let Some(left) = left(until) {
                    return Err(left);
                }
                // One probe at a time; a probe that never reports back gives way after open_for.
                *state = State::Probing {
                    until: now + self.open_for,
                };
                Ok(())
            }
        }
    }

    /// A call of this owner was answered.
    pub fn succeeded(&self, owner: &Arc<str>) {
        let mut circuits = self.circuits.lock();
        circuits.all_until = None;
        if circuits.of_keys.remove(owner).is_some()
            && circuits
                .opened
                .as_ref()
                .is_some_and(|(whose, _)| whose == owner)
        {
            circuits.opened = None;
        }
    }

    /// A call of this owner could not be answered.
    pub fn failed(&self, owner: &Arc<str>, now: Instant) -> Opened {
        if self.failures_max == 0 {
            return Opened::No;
        }
        let mut circuits = self.circuits.lock();
        let failures = match circuits.of_keys.get(owner) {
            None => 1,
            Some(State::Closed { failures }) => failures + 1,
            Some(State::Open { .. }) => return Opened::No,
            Some(State::Probing { .. }) => self.failures_max,
        };
        if failures < self.failures_max {
            let state = State::Closed { failures };
            circuits.of_keys.insert(Arc::clone(owner), state);
            return Opened::No;
        }
        let until = now + self.open_for;
        let state = State::Open { until };
        circuits.of_keys.insert(Arc::clone(owner), state);
        let before = circuits.opened.replace((Arc::clone(owner), until));
        if before.is_some_and(|(whose, until)| whose != *owner && now < until) {
            circuits.all_until = Some(until);
            return Opened::ForAll;
        }
        Opened::ForKey
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_FOR: Duration = Duration::from_secs(10);

    fn keys() -> [Arc<str>; 3] {
        ["a", "b", "c"].map(Arc::from)
    }

    #[test]
    fn opens_after_failures_in_a_row_and_closes_on_a_good_probe() {
        let (now, [a, ..]) = (Instant::now(), keys());
        let breaker = Breaker::new(2, OPEN_FOR);
        assert_eq!(breaker.failed(&a, now), Opened::No);
        breaker.succeeded(&a);
        assert_eq!(breaker.failed(&a, now), Opened::No);
        assert_eq!(breaker.failed(&a, now), Opened::ForKey);
        let left = Duration::from_secs(1);
        assert_eq!(breaker.admit(&a, now + Duration::from_secs(9)), Err(left));
        let later = now + Duration::from_secs(11);
        assert!(breaker.admit(&a, later).is_ok(), "one probe");
        assert!(breaker.admit(&a, later).is_err(), "only one");
        assert_eq!(breaker.failed(&a, later), Opened::ForKey, "again");
        let later = later + Duration::from_secs(11);
        assert!(breaker.admit(&a, later).is_ok());
        breaker.succeeded(&a);
        assert!(breaker.admit(&a, later).is_ok());
        assert_eq!(breaker.failed(&a, later), Opened::No, "it begins anew");
    }

    #[test]
    fn one_key_alone_closes_the_server_for_nobody_else() {
        let (now, [a, b, c]) = (Instant::now(), keys());
        let breaker = Breaker::new(2, OPEN_FOR);
        for _ in 0..100 {
            breaker.failed(&a, now);
        }
        assert!(breaker.admit(&a, now).is_err());
        assert!(breaker.admit(&b, now).is_ok() && breaker.admit(&c, now).is_ok());
        breaker.succeeded(&b);
        assert!(
            breaker.admit(&a, now).is_err(),
            "another's good call says nothing of a's"
        );

        // A second key that finds the same does.
        assert_eq!(breaker.failed(&b, now), Opened::No);
        assert_eq!(breaker.failed(&b, now), Opened::ForAll);
        assert!(breaker.admit(&c, now).is_err());
        let later = now + Duration::from_secs(11);
        assert!(breaker.admit(&c, later).is_ok());
        assert_eq!(breaker.failed(&c, later), Opened::No);
        assert_eq!(
            breaker.failed(&c, later),
            Opened::ForKey,
            "the others' are over"
        );
    }

    #[test]
    fn a_good_call_opens_the_server_for_all_again() {
        let (now, [a, b, c]) = (Instant::now(), keys());
        let breaker = Breaker::new(1, OPEN_FOR);
        breaker.failed(&a, now);
        assert_eq!(breaker.failed(&b, now), Opened::ForAll);
        // One that was under way.
        breaker.succeeded(&c);
        assert!(breaker.admit(&c, now).is_ok());
        assert!(breaker.admit(&a, now).is_err() && breaker.admit(&b, now).is_err());
    }

    #[test]
    fn zero_switches_it_off() {
        let (now, [a, b, _]) = (Instant::now(), keys());
        let breaker = Breaker::new(0, OPEN_FOR);
        for _ in 0..100 {
            assert_eq!(breaker.failed(&a, now), Opened::No);
            assert_eq!(breaker.failed(&b, now), Opened::No);
        }
        assert!(breaker.admit(&a, now).is_ok());
    }

    #[test]
    fn no_more_keys_are_remembered_than_may_be() {
        let (now, breaker) = (Instant::now(), Breaker::new(1, OPEN_FOR));
        let key = |n: usize| Arc::<str>::from(n.to_string());
        for n in 0..=KEYS_MAX {
            breaker.failed(&key(n), now);
        }
        assert_eq!(breaker.circuits.lock().of_keys.len(), KEYS_MAX);
        breaker.circuits.lock().all_until = None;
        assert!(
            breaker.admit(&key(0), now).is_ok(),
            "the oldest is forgotten"
        );
        assert!(breaker.admit(&key(1), now).is_err());
    }
}
