//! The scan of one message.

use crate::{Budget, FingerprintKey, LeafInput, Outcome, RuleSet};

/// Reusable scratch of one worker. Holds no state from one message to the next.
#[derive(Debug)]
pub struct Scanner {
    #[expect(dead_code, reason = "read once rules are loaded")]
    key: FingerprintKey,
}

impl Scanner {
    /// A scanner whose fingerprints are made with `key`.
    pub fn new(key: FingerprintKey) -> Self {
        Self { key }
    }

    /// Scans the leaves of one message.
    pub fn scan<'a>(
        &mut self,
        _rules: &RuleSet,
        _leaves: impl Iterator<Item = LeafInput<'a>> + Clone,
        _budget: &Budget,
    ) -> Outcome {
        Outcome::default()
    }
}
