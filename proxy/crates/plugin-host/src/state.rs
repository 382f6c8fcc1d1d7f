//! What plugins may remember: small values with a time to live, by tenant and plugin.
//!
//! In memory only: a restart forgets it, a swap of the plugin's version does not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;

/// Values of one plugin of one tenant.
pub(crate) const ENTRIES_MAX: usize = 20_000;
/// Their bytes, keys counted.
pub(crate) const BYTES_MAX: usize = 8 << 20;
/// Values of one session.
pub(crate) const SESSION_ENTRIES_MAX: u32 = 256;
/// One value.
pub(crate) const VALUE_BYTES_MAX: usize = 16 << 10;
/// One key.
pub(crate) const KEY_BYTES_MAX: usize = 256;
/// Longest time to live, in seconds.
const TTL_S_MAX: u32 = 86_400;

/// Why a value was not read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateError {
    /// A bound was reached.
    OverQuota,
    /// The value is no number.
    NotANumber,
}

/// A tenant and a plugin.
type Owner = (Arc<str>, Arc<str>);

/// All spaces, by tenant and plugin. A space lives as long as something is bound to it.
#[derive(Debug, Default)]
pub struct Spaces {
    spaces: Mutex<HashMap<Owner, Weak<Space>>>,
}

impl Spaces {
    /// The space of a plugin of a tenant.
    pub(crate) fn space(&self, tenant: &Arc<str>, plugin: &Arc<str>) -> Arc<Space> {
        let mut spaces = self.spaces.lock();
        spaces.retain(|_, space| space.strong_count() > 0);
        let key = (Arc::clone(tenant), Arc::clone(plugin));
        if let Some(space) = spaces.get(&key).and_then(Weak::upgrade) {
            return space;
        }
        let space = Arc::new(Space::default());
        spaces.insert(key, Arc::downgrade(&space));
        space
    }
}

/// What one plugin of one tenant remembers.
#[derive(Debug)]
pub(crate) struct Space {
    inner: Mutex<Inner>,
    began: Instant,
    /// For recorded messages: the time in place of the real one, unless 0.
    pretended_ms: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    entries: HashMap<Key, Entry>,
    per_session: HashMap<Box<str>, u32>,
    bytes: usize,
}

/// The session (`None`: the tenant's) and the key.
type Key = (Option<Box<str>>, Box<str>);

#[derive(Debug)]
struct Entry {
    value: Vec<u8>,
    until_ms: u64,
}

impl Default for Space {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            began: Instant::now(),
            pretended_ms: AtomicU64::new(0),
        }
    }
}

impl Space {
    /// Sets the clock by which values expire; 0: the real one.
    pub(crate) fn pretend_now_ms(&self, now_ms: u64) {
        self.pretended_ms.store(now_ms, Ordering::Relaxed);
    }

    pub(crate) fn get(&self, session: Option<&str>, key: &str) -> Option<Vec<u8>> {
        let now = self.now_ms();
        let inner = self.inner.lock();
        let entry = inner.entries.get(&own(session, key))?;
        (entry.until_ms > now).then(|| entry.value.clone())
    }

    pub(crate) fn set(
        &self,
        session: Option<&str>,
        key: &str,
        value: &[u8],
        ttl_s: u32,
    ) -> Result<(), StateError> {
        let now = self.now_ms();
        let mut inner = self.inner.lock();
        inner.put(own(session, key), value.to_vec(), now + ttl_ms(ttl_s), now)
    }

    pub(crate) fn add(
        &self,
        session: Option<&str>,
        key: &str,
        delta: i64,
        ttl_s: u32,
    ) -> Result<i64, StateError> {
        let now = self.now_ms();
        let mut inner = self.inner.lock();
        let key = own(session, key);
        if let Some(entry) = inner.entries.get_mut(&key).filter(|e| e.until_ms > now) {
            let bytes = <[u8; 8]>::try_from(&*entry.value).map_err(|_| StateError::NotANumber)?;
            let sum = i64::from_le_bytes(bytes).saturating_add(delta);
            entry.value = sum.to_le_bytes().to_vec();
            return Ok(sum);
        }
        inner.put(key, delta.to_le_bytes().to_vec(), now + ttl_ms(ttl_s), now)?;
        Ok(delta)
    }

    fn now_ms(&self) -> u64 {
        let pretended = self.pretended_ms.load(Ordering::Relaxed);
        if pretended > 0 {
            return pretended;
        }
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Inner {
    fn put(&mut self, key: Key, value: Vec<u8>, until_ms: u64, now: u64) -> Result<(), StateError> {
        if value.len() > VALUE_BYTES_MAX || key.1.len() > KEY_BYTES_MAX {
            return Err(StateError::OverQuota);
        }
        self.remove(&key);
        if !self.has_room(&key, value.len()) {
            self.forget_expired(now);
            if !self.has_room(&key, value.len()) {
                return Err(StateError::OverQuota);
            }
        }
        self.bytes += size(&key, &value);
        if let Some(session) = &key.0 {
            *self.per_session.entry(session.clone()).or_default() += 1;
        }
        self.entries.insert(key, Entry { value, until_ms });
        Ok(())
    }

    fn has_room(&self, key: &Key, value_bytes: usize) -> bool {
        let of_session = key.0.as_ref().and_then(|s| self.per_session.get(s));
        self.entries.len() < ENTRIES_MAX
            && self.bytes + value_bytes + key.1.len() + 64 <= BYTES_MAX
            && of_session.is_none_or(|count| *count < SESSION_ENTRIES_MAX)
    }

    fn remove(&mut self, key: &Key) {
        let Some(entry) = self.entries.remove(key) else {
            return;
        };
        self.bytes -= size(key, &entry.value);
        if let Some(session) = &key.0
            && let Some(count) = self.per_session.get_mut(session)
        {
            *count -= 1;
            if *count == 0 {
                self.per_session.remove(session);
            }
        }
    }

    fn forget_expired(&mut self, now: u64) {
        let expired = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.until_ms <= now);
        let expired: Vec<Key> = expired.map(|(key, _)| key.clone()).collect();
        for key in expired {
            self.remove(&key);
        }
    }
}

fn own(session: Option<&str>, key: &str) -> Key {
    (session.map(Into::into), key.into())
}

/// What an entry costs: its key, its value and a little for the tables.
fn size(key: &Key, value: &[u8]) -> usize {
    key.1.len() + value.len() + 64
}

fn ttl_ms(ttl_s: u32) -> u64 {
    let ttl_s = if ttl_s == 0 {
        TTL_S_MAX
    } else {
        ttl_s.min(TTL_S_MAX)
    };
    u64::from(ttl_s) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_tenants_and_plugins_do_not_see_each_other() {
        let spaces = Spaces::default();
        let names: [Arc<str>; 3] = ["acme".into(), "other".into(), "guard".into()];
        let space = spaces.space(&names[0], &names[2]);
        space.set(Some("a"), "k", b"1", 0).unwrap();
        space.set(None, "k", b"2", 0).unwrap();
        assert_eq!(space.get(Some("a"), "k").as_deref(), Some(&b"1"[..]));
        assert_eq!(space.get(Some("b"), "k"), None);
        assert_eq!(space.get(None, "k").as_deref(), Some(&b"2"[..]));
        assert_eq!(spaces.space(&names[1], &names[2]).get(None, "k"), None);
        assert!(Arc::ptr_eq(&space, &spaces.space(&names[0], &names[2])));
    }

    #[test]
    fn numbers_add_up_and_stop_at_the_ends() {
        let space = Space::default();
        assert_eq!(space.add(None, "n", 2, 0), Ok(2));
        assert_eq!(space.add(None, "n", 3, 0), Ok(5));
        assert_eq!(space.add(None, "n", i64::MAX, 0), Ok(i64::MAX));
        space.set(None, "text", b"no number", 0).unwrap();
        assert_eq!(space.add(None, "text", 1, 0), Err(StateError::NotANumber));
    }

    #[test]
    fn every_bound_is_reached() {
        let space = Space::default();
        let full = Err(StateError::OverQuota);
        assert_eq!(space.set(None, "k", &vec![0; VALUE_BYTES_MAX + 1], 0), full);
        assert_eq!(
            space.set(None, &"k".repeat(KEY_BYTES_MAX + 1), b"", 0),
            full
        );
        for n in 0..SESSION_ENTRIES_MAX {
            space.set(Some("s"), &n.to_string(), b"", 0).unwrap();
        }
        assert_eq!(space.set(Some("s"), "one more", b"", 0), full);
        space.set(Some("s"), "0", b"again", 0).unwrap();
        let mut n = 0;
        while space
            .set(None, &format!("b{n}"), &vec![0; VALUE_BYTES_MAX], 0)
            .is_ok()
        {
            n += 1;
        }
        assert!(n * VALUE_BYTES_MAX <= BYTES_MAX && (n + 2) * (VALUE_BYTES_MAX + 128) > BYTES_MAX);
        let small = Space::default();
        for n in 0..ENTRIES_MAX {
            small.set(None, &n.to_string(), b"", 0).unwrap();
        }
        assert_eq!(small.set(None, "one more", b"", 0), full);
    }

    #[test]
    fn a_value_expires_by_the_clock_of_the_recorded_messages() {
        let space = Space::default();
        space.set(None, "k", b"1", 60).unwrap();
        for (now_ms, kept) in [(1_000, true), (59_000, true), (61_000 + 60_000, false)] {
            space.pretend_now_ms(now_ms);
            assert_eq!(space.get(None, "k").is_some(), kept, "{now_ms}");
        }
        space.pretend_now_ms(0);
        assert!(space.get(None, "k").is_some());
    }

    #[test]
    fn what_is_expired_makes_room() {
        let mut inner = Inner::default();
        for n in 0..SESSION_ENTRIES_MAX {
            inner
                .put(own(Some("s"), &n.to_string()), Vec::new(), 10, 0)
                .unwrap();
        }
        assert!(inner.put(own(Some("s"), "x"), Vec::new(), 20, 9).is_err());
        inner.put(own(Some("s"), "x"), Vec::new(), 20, 10).unwrap();
        assert_eq!((inner.entries.len(), inner.bytes), (1, 65));
    }
}
