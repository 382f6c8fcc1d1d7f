//! How many messages the plugins of one tenant judge at once.
//!
//! All tenants share the slots that instances run in. A tenant whose plugins are slow and whose calls come many at a
//! time would take them all, and its neighbours' plugins would fail for want of a slot. So a tenant has a share; who
//! comes when it is used up waits for as long as the plugin may take, and no more than a share of those either.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// The turns of all tenants that have a plugin bound.
#[derive(Debug)]
pub(crate) struct Tenants {
    each: usize,
    of: Mutex<HashMap<Arc<str>, Weak<Turns>>>,
}

impl Tenants {
    /// An eighth of the slots for each: half of them are for fresh instances, so that it takes four tenants to use
    /// those up.
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            each: (slots as usize / 8).max(1),
            of: Mutex::default(),
        }
    }

    pub(crate) fn turns(&self, tenant: &Arc<str>) -> Arc<Turns> {
        let mut of = self.of.lock();
        // As many as there are tenants with a plugin.
        of.retain(|_, turns| turns.strong_count() > 0);
        if let Some(turns) = of.get(tenant).and_then(Weak::upgrade) {
            return turns;
        }
        let turns = Arc::new(Turns::new(self.each));
        of.insert(Arc::clone(tenant), Arc::downgrade(&turns));
        turns
    }
}

/// The turns of one tenant.
#[derive(Debug)]
pub(crate) struct Turns {
    max: usize,
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    judging: usize,
    waiting: usize,
}

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Turns);

impl Turns {
    fn new(max: usize) -> Self {
        Self {
            max,
            taken: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Whether the next one may have to wait: half of them are taken. It is asked before the first plugin of a message
    /// judges, and others come until it is this one's turn.
    pub(crate) fn are_scarce(&self) -> bool {
        self.taken.lock().judging * 2 >= self.max
    }

    /// A turn, at once or by `until`; `None`: there was none, or too many wait for one.
    pub(crate) fn take(&self, until: Instant) -> Option<Turn<'_>> {
        let mut taken = self.taken.lock();
        if taken.judging >= self.max {
            if taken.waiting >= self.max {
                return None;
            }
            taken.waiting += 1;
            while taken.judging >= self.max {
                if self.freed.wait_until(&mut taken, until).timed_out() {
                    break;
                }
            }
            taken.waiting -= 1;
            if taken.judging >= self.max {
                return None;
            }
        }
        taken.judging += 1;
        Some(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.0.taken.lock();
        taken.judging -= 1;
        if taken.waiting > 0 {
            self.0.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_tenants_turns_are_not_anothers_and_end_with_the_last_that_needs_them() {
        let tenants = Tenants::new(16);
        let (acme, other) = (Arc::from("acme"), Arc::from("other"));
        let turns = tenants.turns(&acme);
        let now = Instant::now();
        let taken = [turns.take(now), turns.take(now)];
        assert!(taken.iter().all(Option::is_some) && turns.are_scarce());
        assert!(tenants.turns(&acme).take(now).is_none());
        assert!(tenants.turns(&other).take(now).is_some());
        drop(taken);
        assert!(!turns.are_scarce());
        drop(turns);
        tenants.turns(&other);
        assert_eq!(tenants.of.lock().len(), 1);
    }

    #[test]
    fn they_are_scarce_before_the_last_is_taken() {
        let turns = Turns::new(4);
        let now = Instant::now();
        let mut taken = Vec::new();
        for scarce in [false, false, true, true, true] {
            assert_eq!(turns.are_scarce(), scarce, "{} are taken", taken.len());
            taken.extend(turns.take(now));
        }
        assert_eq!(taken.len(), 4);
    }

    #[test]
    fn who_waits_gets_the_turn_that_is_given_back_and_not_all_may_wait() {
        let turns = Turns::new(1);
        let far = Instant::now() + Duration::from_secs(60);
        let first = turns.take(far).expect("a turn");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| turns.take(far).is_some());
            while turns.taken.lock().waiting == 0 {
                std::thread::yield_now();
            }
            assert!(turns.take(far).is_none(), "one waits already");
            drop(first);
            assert!(second.join().expect("no panic"));
        });
        let _held = turns.take(far).expect("a turn");
        assert!(
            turns
                .take(Instant::now() + Duration::from_millis(5))
                .is_none()
        );
    }
}
