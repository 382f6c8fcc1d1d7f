//! What the sandboxes of one tenant may take, all together, of what this process has for everybody: names resolved at
//! once (each holds a thread until the answer, or its absence, is there), connections to the outside (each holds two
//! descriptors), leases (each holds a connection of the socket, also while it waits), and events (of which so many are kept
//! for all).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::TenantId;
use egress::{Sparing, System};
use nix::sys::resource::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Names of one tenant at once, and of all: those wait in turn, so that the rest of the runtime's 512 threads for what blocks
/// is left to the runner's own files.
const NAMES_AT_ONCE_MAX: usize = 32;
const NAMES_OF_ALL_MAX: usize = 384;
/// Of all descriptors a tenant's connections hold an eighth at the most.
const CONNECTION_OF_DESCRIPTORS: u64 = 16;
const CONNECTIONS_MIN: u64 = 64;
/// Connections of the socket at once: a quarter of the descriptors, and no more than these.
const CALLERS_MAX: u64 = 16_384;
const CALLERS_MIN: u64 = 256;
/// Of those a tenant's leases hold a quarter at the most.
const LEASE_OF_CALLERS: usize = 4;
/// Told of egress per second, and at once after quiet.
const EVENTS_PER_SECOND: f64 = 100.0;
const EVENTS_BURST: f64 = 1000.0;
/// How often it is told that some were missed.
pub const MISSED_EVERY: Duration = Duration::from_secs(1);

/// The shares of all tenants who have a sandbox, or anything under way of one that they had: a share that was begun anew with
/// each sandbox would bound nobody.
pub struct Shares {
    /// Connections of the socket at once, for all.
    pub callers_max: usize,
    connections_max: usize,
    outside: Sparing<System>,
    all: Mutex<HashMap<TenantId, Arc<Share>>>,
}

/// One tenant's.
pub struct Share {
    /// Its way out.
    pub outside: Sparing<Sparing<System>>,
    leases: Arc<Semaphore>,
    events: Mutex<Events>,
}

struct Events {
    level: f64,
    at: Instant,
    missed: u64,
    /// When it was told last that some were missed.
    told: Option<Instant>,
}

impl Shares {
    /// As this process's limits allow.
    pub fn of_this_process() -> Self {
        let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
        let connections = (files / CONNECTION_OF_DESCRIPTORS).max(CONNECTIONS_MIN);
        let callers = (files / 4).clamp(CALLERS_MIN, CALLERS_MAX);
        Self {
            callers_max: usize::try_from(callers).unwrap_or(usize::MAX),
            connections_max: usize::try_from(connections).unwrap_or(usize::MAX),
            // Connections are bounded for each tenant.
            outside: Sparing::new(System, NAMES_OF_ALL_MAX, usize::MAX),
            all: Mutex::default(),
        }
    }

    /// The share of a tenant: the same for all its sandboxes.
    pub fn of(&self, tenant: &TenantId) -> Arc<Share> {
        self.of_at(tenant, Instant::now())
    }

    fn of_at(&self, tenant: &TenantId, now: Instant) -> Arc<Share> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = all.get(tenant) {
            return Arc::clone(share);
        }
        // Nobody can take one of them meanwhile: they are given out under this lock only.
        all.retain(|_, share| Arc::strong_count(share) > 1 || !share.at_rest(now));
        let share = Arc::new(Share {
            outside: Sparing::new(
                self.outside.clone(),
                NAMES_AT_ONCE_MAX,
                self.connections_max,
            ),
            leases: Arc::new(Semaphore::new(self.callers_max / LEASE_OF_CALLERS)),
            events: Mutex::new(Events {
                level: EVENTS_BURST,
                at: now,
                missed: 0,
                told: None,
            }),
        });
        all.insert(tenant.clone(), Arc::clone(&share));
        share
    }
}

impl Share {
    /// The right to one lease more, or to wait for it; none if there are too many.
    pub fn lease(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.leases).try_acquire_owned().ok()
    }

    /// Whether a new one would be the same: nothing of it is held or under way, and no event is held against it.
    fn at_rest(&self, now: Instant) -> bool {
        let mut events = self.events();
        events.refill(now);
        let quiet = events.missed == 0 && events.level >= EVENTS_BURST;
        quiet && self.outside.at_rest() && Arc::strong_count(&self.leases) == 1
    }

    /// Whether an event may be told now. One that may not is counted as missed.
    pub fn may_tell(&self, now: Instant) -> bool {
        let mut events = self.events();
        let may = events.take(now);
        events.missed += u64::from(!may);
        may
    }

    /// How many were missed since this was told last; 0 if that was a moment ago.
    pub fn missed(&self, now: Instant) -> u64 {
        let mut events = self.events();
        let since = events.told.map(|told| now.saturating_duration_since(told));
        if events.missed == 0 || since.is_some_and(|since| since < MISSED_EVERY) {
            return 0;
        }
        events.told = Some(now);
        std::mem::take(&mut events.missed)
    }

    /// Whether somebody has to be told of missed ones.
    pub fn has_missed(&self) -> bool {
        self.events().missed > 0
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let there = self.level >= 1.0;
        self.level -= f64::from(u8::from(there));
        there
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * EVENTS_PER_SECOND).min(EVENTS_BURST);
        self.at = now.max(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::Outside as _;

    #[test]
    fn a_tenant_has_one_share_and_a_flood_in_it_is_counted() {
        let shares = Shares::of_this_process();
        let [one, two] = ["one", "two"].map(|name| TenantId::parse(name).expect("an id"));
        let (share, same) = (shares.of(&one), shares.of(&one));
        assert!(Arc::ptr_eq(&share, &same));
        let now = Instant::now();
        let told = (0..5000).filter(|_| share.may_tell(now)).count();
        assert_eq!(told, EVENTS_BURST as usize);
        assert!(!same.may_tell(now) && same.has_missed());
        assert!(shares.of(&two).may_tell(now), "another's is its own");
        assert_eq!(share.missed(now), 4001);
        assert!(!share.has_missed());
        assert!(!share.may_tell(now));
        assert_eq!(share.missed(now), 0, "it was told just now");
        let later = now + Duration::from_secs(1);
        assert_eq!(share.missed(later), 1);
        let told = (0..5000).filter(|_| share.may_tell(later)).count();
        assert_eq!(told, EVENTS_PER_SECOND as usize);
        // Nor do its leases take the places of another's.
        let held: Vec<_> = std::iter::from_fn(|| share.lease()).collect();
        assert_eq!(held.len(), shares.callers_max / LEASE_OF_CALLERS);
        assert!(same.lease().is_none() && shares.of(&two).lease().is_some());
        drop((held, share, same));
        let kept = |at: Instant| {
            let other = TenantId::parse(&format!("t{:?}", at.duration_since(now).as_secs()));
            drop(shares.of_at(&other.expect("an id"), at));
            shares.all.lock().expect("whole").contains_key(&one)
        };
        // It does not begin anew because nobody has a sandbox at the moment.
        assert!(kept(later) && !shares.of_at(&one, later).may_tell(later));
        // Nor before it was said what was missed.
        let much_later = later + Duration::from_secs(60);
        assert!(kept(much_later));
        assert!(shares.of_at(&one, much_later).missed(much_later) > 0);
        assert!(
            !kept(much_later + Duration::from_secs(1)),
            "nothing is kept"
        );
    }

    #[test]
    fn what_is_under_way_keeps_the_share_of_a_tenant_without_a_sandbox() {
        let shares = Shares::of_this_process();
        let tenant = |name: &str| TenantId::parse(name).expect("an id");
        // Nothing is tidied away but when somebody comes.
        let is_kept = |visitor: &str| {
            drop(shares.of(&tenant(visitor)));
            shares
                .all
                .lock()
                .expect("whole")
                .contains_key(&tenant("one"))
        };
        let share = shares.of(&tenant("one"));
        let (lease, way) = (share.lease(), share.outside.clone());
        let connection = way.admit();
        drop(share);
        assert!(is_kept("a"), "a way out is used");
        drop(way);
        assert!(is_kept("b"), "a connection is open");
        drop(connection);
        assert!(is_kept("c"), "a lease is held");
        drop(lease);
        assert!(!is_kept("d"));
    }
}
