//! What a sealed segment holds, in short: lets a search skip it. Can always be rebuilt from the segment.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::frame;
use crate::record::{Action, Record, Text};

/// Different words kept per field; beyond that the field is "anything" and cannot rule a segment out.
const WORDS_MAX: usize = 1024;

/// The side file of a sealed segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentIndex {
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// Length of the segment it was made from: another length means it is stale.
    pub(crate) bytes: u64,
    pub(crate) time_min: u64,
    pub(crate) time_max: u64,
    pub(crate) id_ms_min: u64,
    pub(crate) id_ms_max: u64,
    pub(crate) actions: BTreeSet<Action>,
    pub(crate) tenants: Words,
    pub(crate) principals: Words,
    pub(crate) servers: Words,
    pub(crate) methods: Words,
    pub(crate) tools: Words,
    pub(crate) rules: Words,
    pub(crate) categories: Words,
}

/// The words of a field; `None` if there were too many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Words(Option<BTreeSet<Text>>);

impl Words {
    pub(crate) fn may_hold(&self, word: &str) -> bool {
        self.0.as_ref().is_none_or(|words| words.contains(word))
    }
}

impl SegmentIndex {
    pub(crate) fn to_line(&self) -> Vec<u8> {
        frame::sealed_line(&serde_json::to_vec(self).expect("numbers and text serialise"))
    }

    /// Reads a side file; `None` if it is damaged.
    pub(crate) fn from_file(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(frame::checked(bytes.strip_suffix(b"\n")?).ok()?).ok()
    }
}

/// Gathers a [`SegmentIndex`] record by record.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    first: u64,
    count: u64,
    time: Span,
    id_ms: Span,
    actions: u8,
    tenants: WordSet,
    principals: WordSet,
    servers: WordSet,
    methods: WordSet,
    tools: WordSet,
    rules: WordSet,
    categories: WordSet,
}

impl IndexBuilder {
    pub(crate) fn new(first: u64) -> Self {
        IndexBuilder {
            first,
            count: 0,
            time: Span::EMPTY,
            id_ms: Span::EMPTY,
            actions: 0,
            tenants: WordSet::default(),
            principals: WordSet::default(),
            servers: WordSet::default(),
            methods: WordSet::default(),
            tools: WordSet::default(),
            rules: WordSet::default(),
            categories: WordSet::default(),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn add(&mut self, record: &Record) {
        self.count += 1;
        self.time.add(record.time_unix_us);
        self.id_ms.add(record.id.time_unix_ms());
        self.actions |= 1 << record.action as u8;
        self.tenants.add(Some(&record.tenant));
        self.principals.add(record.principal.as_ref());
        self.servers.add(Some(&record.server));
        self.methods.add(record.method.as_ref());
        self.tools.add(record.tool.as_ref());
        for finding in &record.findings {
            self.rules.add(Some(&finding.rule));
            self.categories.add(Some(&finding.category));
        }
    }

    /// The index of a segment that is `bytes` long.
    pub(crate) fn finish(&self, bytes: u64) -> SegmentIndex {
        let has = |action: &Action| self.actions & (1 << *action as u8) != 0;
        SegmentIndex {
            first: self.first,
            count: self.count,
            bytes,
            time_min: self.time.min,
            time_max: self.time.max,
            id_ms_min: self.id_ms.min,
            id_ms_max: self.id_ms.max,
            actions: Action::ALL.into_iter().filter(has).collect(),
            tenants: self.tenants.words(),
            principals: self.principals.words(),
            servers: self.servers.words(),
            methods: self.methods.words(),
            tools: self.tools.words(),
            rules: self.rules.words(),
            categories: self.categories.words(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    min: u64,
    max: u64,
}

impl Span {
    /// Nothing lies in it.
    const EMPTY: Span = Span {
        min: u64::MAX,
        max: 0,
    };

    fn add(&mut self, value: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
}

#[derive(Debug, Default)]
struct WordSet {
    words: HashSet<Text>,
    overflowed: bool,
}

impl WordSet {
    fn add(&mut self, word: Option<&Text>) {
        let Some(word) = word else { return };
        if self.overflowed || self.words.contains(word) {
            return;
        }
        if self.words.len() == WORDS_MAX {
            self.overflowed = true;
            self.words = HashSet::new();
        } else {
            self.words.insert(word.clone());
        }
    }

    fn words(&self) -> Words {
        Words((!self.overflowed).then(|| self.words.iter().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_words_mean_anything() {
        let mut index = IndexBuilder::new(0);
        for n in 0..=WORDS_MAX {
            let mut record = Record::new(n as u64, "t".into(), "s".into());
            record.tool = Some(format!("tool{n}").into());
            index.add(&record);
            let tools = index.finish(1).tools;
            assert!(tools.may_hold(&format!("tool{n}")));
            assert_eq!(tools.may_hold("other"), n == WORDS_MAX);
        }
        let built = index.finish(99);
        assert_eq!(
            (built.time_min, built.time_max, built.count),
            (0, WORDS_MAX as u64, WORDS_MAX as u64 + 1)
        );
        assert_eq!(
            SegmentIndex::from_file(&built.to_line()),
            Some(built.clone())
        );
        assert!(!built.tenants.may_hold("u") && !built.actions.contains(&Action::Block));
    }
}
