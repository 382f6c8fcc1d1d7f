//! The keys of the objects that are open: remembered by a hash, so that memory does not depend on their length.
//!
//! Equal keys have equal hashes, so no second key is missed. Two keys that only share a hash are refused as well: that
//! happens once in 2^64 pairs, or to somebody who wants it to happen to their own message.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Fewer keys are compared one by one.
const LISTED_MAX: usize = 16;

/// The keys of the open objects, innermost last.
#[derive(Debug, Default)]
pub(super) struct OpenKeys {
    listed: Vec<u64>,
    /// For each open object, where its list begins, and its further keys.
    objects: Vec<(usize, BTreeSet<u64>)>,
    count: usize,
}

/// Why a key cannot be taken.
pub(super) enum KeyFault {
    Second,
    TooMany,
}

impl OpenKeys {
    pub(super) fn open(&mut self) {
        self.objects.push((self.listed.len(), BTreeSet::new()));
    }

    pub(super) fn close(&mut self) {
        if let Some((from, more)) = self.objects.pop() {
            self.count -= self.listed.len() - from + more.len();
            self.listed.truncate(from);
        }
    }

    /// Takes a key of the innermost object.
    pub(super) fn add(&mut self, key: &str, max: usize) -> Result<(), KeyFault> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        let Some((from, more)) = self.objects.last_mut() else {
            return Ok(());
        };
        let listed = &self.listed[*from..];
        if listed.contains(&hash) {
            return Err(KeyFault::Second);
        }
        if listed.len() < LISTED_MAX {
            self.listed.push(hash);
        } else if !more.insert(hash) {
            return Err(KeyFault::Second);
        }
        self.count += 1;
        if self.count > max {
            Err(KeyFault::TooMany)
        } else {
            Ok(())
        }
    }
}
