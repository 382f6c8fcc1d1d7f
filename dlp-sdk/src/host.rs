//! What a plugin can ask of Weir.

use std::ops::Range;

use crate::bindings::weir::policy::host;

pub use host::{HostError, LogLevel, Scope};

/// A match of a detection rule in a text that the plugin had scanned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Id of the rule.
    pub rule: String,
    /// `secret`, `pii` or `injection`.
    pub category: String,
    /// Where in the text, in bytes.
    pub at: Range<usize>,
    /// 0 to 100.
    pub confidence: u8,
}

/// A value that is no leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Where it stands, as [`Leaf::path`](crate::Leaf::path) says it.
    pub path: String,
    /// `true`, `false`, `null`, `{}` or `[]`.
    pub text: String,
}

/// Weir, as far as a plugin may use it. In tests on the build machine `testing::TestHost` stands in.
pub trait Host {
    /// Writes a line into Weir's log. At most 8 per message; never message text.
    fn log(&self, level: LogLevel, line: &str);

    /// Runs Weir's detection rules over a text; `rules` names categories, rule ids or globs, empty: all.
    ///
    /// # Errors
    /// Not granted (`scan`), over a bound, or a name that no rule has.
    fn scan(&self, text: &str, rules: &[&str]) -> Result<Vec<Hit>, HostError>;

    /// The first `limit` matches of a regular expression, in bytes.
    ///
    /// # Errors
    /// The pattern does not compile, or a bound was reached.
    fn find(&self, pattern: &str, text: &str, limit: u32) -> Result<Vec<Range<usize>>, HostError>;

    /// Whether a regular expression matches somewhere.
    ///
    /// # Errors
    /// As [`Host::find`].
    fn is_match(&self, pattern: &str, text: &str) -> Result<bool, HostError> {
        Ok(!self.find(pattern, text, 1)?.is_empty())
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Not granted (`session-state`, `tenant-state`), or over a bound.
    fn state_get(&self, scope: Scope, key: &str) -> Result<Option<Vec<u8>>, HostError>;

    /// Writes a value that is forgotten after `ttl_s` seconds (at most a day; 0 means that).
    ///
    /// # Errors
    /// As [`Host::state_get`].
    fn state_set(&self, scope: Scope, key: &str, value: &[u8], ttl_s: u32)
    -> Result<(), HostError>;

    /// Adds to a number in one step and gives the sum.
    ///
    /// # Errors
    /// As [`Host::state_get`]; `invalid` when the value there is no number.
    fn state_add(&self, scope: Scope, key: &str, delta: i64, ttl_s: u32) -> Result<i64, HostError>;

    /// A hash under a key of the tenant's, in 32 hexadecimal digits.
    fn keyed_hash(&self, data: &[u8]) -> String;

    /// Milliseconds since 1970 (UTC).
    ///
    /// # Errors
    /// Not granted (`clock`).
    fn now_ms(&self) -> Result<u64, HostError>;

    /// What the message at hand holds beside its leaves, in its order: every `true`, `false` and `null`, and
    /// every object and list with nothing in it.
    fn words(&self) -> Vec<Word>;
}

/// The real one: the imports of the contract.
pub(crate) struct Weir;

impl Host for Weir {
    fn log(&self, level: LogLevel, line: &str) {
        host::log(level, line);
    }

    fn scan(&self, text: &str, rules: &[&str]) -> Result<Vec<Hit>, HostError> {
        let rules: Vec<String> = rules.iter().map(|&rule| rule.to_owned()).collect();
        let hits = host::scan(text, &rules)?;
        let hits = hits.into_iter().map(|hit| Hit {
            rule: hit.rule,
            category: hit.category,
            at: range(hit.at),
            confidence: hit.confidence,
        });
        Ok(hits.collect())
    }

    fn find(&self, pattern: &str, text: &str, limit: u32) -> Result<Vec<Range<usize>>, HostError> {
        let found = host::find(pattern, text, limit)?;
        Ok(found.into_iter().map(range).collect())
    }

    fn state_get(&self, scope: Scope, key: &str) -> Result<Option<Vec<u8>>, HostError> {
        host::state_get(scope, key)
    }

    fn state_set(
        &self,
        scope: Scope,
        key: &str,
        value: &[u8],
        ttl_s: u32,
    ) -> Result<(), HostError> {
        host::state_set(scope, key, value, ttl_s)
    }

    fn state_add(&self, scope: Scope, key: &str, delta: i64, ttl_s: u32) -> Result<i64, HostError> {
        host::state_add(scope, key, delta, ttl_s)
    }

    fn keyed_hash(&self, data: &[u8]) -> String {
        host::keyed_hash(data)
    }

    fn now_ms(&self) -> Result<u64, HostError> {
        host::now()
    }

    fn words(&self) -> Vec<Word> {
        let host::WordList { text, places } = host::words();
        let cut = |start: u32, len: u32| {
            let (start, len) = (start as usize, len as usize);
            let end = start.saturating_add(len);
            text.get(start..end).unwrap_or_default().to_owned()
        };
        let words = places.as_chunks().0.iter();
        let words = words.map(|&[path, path_len, word, word_len]| Word {
            path: cut(path, path_len),
            text: cut(word, word_len),
        });
        words.collect()
    }
}

fn range(at: host::Range) -> Range<usize> {
    at.start as usize..at.end as usize
}
