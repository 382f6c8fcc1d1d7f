//! A host for tests: nothing outside of the test's reach.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::{Hit, Host, HostError, LogLevel, Scope, Word};

/// The session (none: the tenant's) and the key.
type Key = (Option<String>, String);
/// The bytes, and until when.
type Value = (Vec<u8>, u64);

/// What a binding allows a plugin beyond looking at the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// [`Host::scan`].
    Scan,
    /// State of [`Scope::Session`].
    SessionState,
    /// State of [`Scope::Tenant`].
    TenantState,
    /// [`Host::now_ms`].
    Clock,
    /// Milder actions for single findings; not the host's business.
    Loosen,
}

impl Grant {
    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::SessionState => "session-state",
            Self::TenantState => "tenant-state",
            Self::Clock => "clock",
            Self::Loosen => "loosen",
        }
    }
}

/// Stands in for Weir. State lives as long as it does; time stands still until it is set.
#[derive(Debug, Default)]
pub struct TestHost {
    state: RefCell<HashMap<Key, Value>>,
    session: RefCell<String>,
    now_ms: Cell<u64>,
    hits: RefCell<Vec<(String, String, String)>>,
    lines: RefCell<Vec<String>>,
    words: RefCell<Vec<Word>>,
    /// None: all.
    grants: Option<Vec<Grant>>,
    denied: RefCell<BTreeSet<Grant>>,
}

impl TestHost {
    /// A host without state, at 1 January 1970, that grants everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, granting only this.
    pub fn granting(grants: &[Grant]) -> Self {
        Self {
            grants: Some(grants.to_vec()),
            ..Self::default()
        }
    }

    /// What was asked for since this was asked last, and is not granted.
    pub fn denied(&self) -> BTreeSet<Grant> {
        self.denied.take()
    }

    /// Sets the clock.
    pub fn set_now_ms(&self, now_ms: u64) {
        self.now_ms.set(now_ms);
    }

    /// Whose state the scope `session` means from now on.
    pub fn set_session(&self, session: &str) {
        session.clone_into(&mut self.session.borrow_mut());
    }

    /// From now on a scan finds this text, as this rule of this category.
    pub fn finds(&self, rule: &str, category: &str, text: &str) {
        let hit = (rule.to_owned(), category.to_owned(), text.to_owned());
        self.hits.borrow_mut().push(hit);
    }

    /// From now on this is the message at hand, as far as [`Host::words`] goes.
    pub fn shows(&self, json: &Json) {
        *self.words.borrow_mut() = super::flatten::words(json);
    }

    /// What was logged so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    fn live(&self, scope: Scope, key: &str) -> Option<Vec<u8>> {
        let state = self.state.borrow();
        let (value, until) = state.get(&self.key(scope, key))?;
        (*until > self.now_ms.get()).then(|| value.clone())
    }

    fn granted(&self, grant: Grant) -> Result<(), HostError> {
        match &self.grants {
            Some(grants) if !grants.contains(&grant) => {
                self.denied.borrow_mut().insert(grant);
                Err(HostError::Denied)
            }
            _ => Ok(()),
        }
    }

    fn state_granted(&self, scope: Scope) -> Result<(), HostError> {
        self.granted(match scope {
            Scope::Session => Grant::SessionState,
            Scope::Tenant => Grant::TenantState,
        })
    }

    fn key(&self, scope: Scope, key: &str) -> Key {
        let session = match scope {
            Scope::Session => Some(self.session.borrow().clone()),
            Scope::Tenant => None,
        };
        (session, key.to_owned())
    }

    fn until(&self, ttl_s: u32) -> u64 {
        let ttl_s = if ttl_s == 0 {
            86_400
        } else {
            ttl_s.min(86_400)
        };
        self.now_ms.get() + u64::from(ttl_s) * 1000
    }
}

impl Host for TestHost {
    fn log(&self, _: LogLevel, line: &str) {
        self.lines.borrow_mut().push(line.to_owned());
    }

    fn scan(&self, text: &str, rules: &[&str]) -> Result<Vec<Hit>, HostError> {
        self.granted(Grant::Scan)?;
        let mut found = Vec::new();
        for (rule, category, what) in self.hits.borrow().iter() {
            let named = rules.is_empty() || rules.iter().any(|r| r == rule || r == category);
            if let Some(at) = text.find(what.as_str()).filter(|_| named) {
                found.push(Hit {
                    rule: rule.clone(),
                    category: category.clone(),
                    at: at..at + what.len(),
                    confidence: 100,
                });
            }
        }
        Ok(found)
    }

    fn find(&self, pattern: &str, text: &str, limit: u32) -> Result<Vec<Range<usize>>, HostError> {
        let pattern = regex::Regex::new(pattern).map_err(|_| HostError::Invalid)?;
        let found = pattern.find_iter(text).take(limit.min(1024) as usize);
        Ok(found.map(|m| m.range()).collect())
    }

    fn state_get(&self, scope: Scope, key: &str) -> Result<Option<Vec<u8>>, HostError> {
        self.state_granted(scope)?;
        Ok(self.live(scope, key))
    }

    fn state_set(
        &self,
        scope: Scope,
        key: &str,
        value: &[u8],
        ttl_s: u32,
    ) -> Result<(), HostError> {
        self.state_granted(scope)?;
        let key = self.key(scope, key);
        let value = (value.to_vec(), self.until(ttl_s));
        self.state.borrow_mut().insert(key, value);
        Ok(())
    }

    fn state_add(&self, scope: Scope, key: &str, delta: i64, ttl_s: u32) -> Result<i64, HostError> {
        self.state_granted(scope)?;
        let old = self.live(scope, key);
        let number = match &old {
            None => 0,
            Some(bytes) => {
                let bytes = bytes
                    .as_slice()
                    .try_into()
                    .map_err(|_| HostError::Invalid)?;
                i64::from_le_bytes(bytes)
            }
        };
        let sum = number.saturating_add(delta);
        let mut state = self.state.borrow_mut();
        let entry = state.entry(self.key(scope, key)).or_default();
        if old.is_none() {
            entry.1 = self.until(ttl_s);
        }
        entry.0 = sum.to_le_bytes().to_vec();
        Ok(sum)
    }

    /// FNV-1a, twice: good enough to tell values of a test apart.
    fn keyed_hash(&self, data: &[u8]) -> String {
        let fnv = |seed: u64| {
            data.iter().fold(seed, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        format!(
            "{:016x}{:016x}",
            fnv(0xcbf2_9ce4_8422_2325),
            fnv(0x1234_5678_9abc_def1)
        )
    }

    fn now_ms(&self) -> Result<u64, HostError> {
        self.granted(Grant::Clock)?;
        Ok(self.now_ms.get())
    }

    fn words(&self) -> Vec<Word> {
        self.words.borrow().clone()
    }
}
