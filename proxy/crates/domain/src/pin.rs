//! Pins: which definitions of a server's tools were approved, and which came since.
//!
//! ```text
//!            first listing              another definition, listed
//! (no pins) ---------------> approved <---------------------------> lists_other
//!                               ^          the approved one again        |
//!                               '------------- approve -----------------'
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Tools of one server that are pinned. What is over it is not approved.
pub const PINS_MAX: usize = 2048;

/// A definition in its canonical form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    /// The text; absent where it was too long to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// What is known of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPin {
    /// When it was first listed.
    pub first_seen_unix_s: u64,
    /// What was approved; absent: nothing yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Definition>,
    /// The last other one that was listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Definition>,
    /// Whether that is what the server lists now.
    #[serde(default)]
    pub lists_other: bool,
}

/// What is known of the tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPins {
    /// Counts what people decided: approvals, and what was forgotten.
    #[serde(default)]
    pub decisions: u64,
    /// The first listing came to its end: a tool that comes now is one that was added.
    #[serde(default)]
    pub settled: bool,
    /// When the first listing began.
    #[serde(default)]
    pub begun_unix_s: u64,
    /// Tools that were forgotten: their next definition is approved as it comes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub first_use: BTreeSet<String>,
    /// The pins by tool.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolPin>,
}

impl ToolPin {
    /// Whether what the server lists is what was approved.
    pub fn is_approved(&self) -> bool {
        self.approved.is_some() && !self.lists_other
    }

    /// Takes the last other definition as the approved one. Gives its hash; `None`: there is no other one.
    pub fn approve(&mut self) -> Option<String> {
        let other = self.other.take()?;
        self.lists_other = false;
        Some(self.approved.insert(other).sha256.clone())
    }

    /// Bytes of text that are kept.
    pub fn text_bytes(&self) -> usize {
        let both = [&self.approved, &self.other].into_iter().flatten();
        both.filter_map(|definition| definition.text.as_ref())
            .map(String::len)
            .sum()
    }
}

impl ToolPins {
    /// Forgets all: the next listing is the first one again.
    pub fn forget_all(&mut self) {
        *self = Self {
            decisions: self.decisions,
            ..Self::default()
        };
    }

    /// Forgets one tool. The last one that goes takes the rest with it.
    pub fn forget(&mut self, tool: &str) -> bool {
        if self.tools.remove(tool).is_none() {
            return false;
        }
        // What was forgotten before gives way rather than grow without end.
        if self.first_use.len() >= PINS_MAX {
            self.first_use.pop_first();
        }
        self.first_use.insert(tool.to_owned());
        if self.tools.is_empty() {
            self.forget_all();
        }
        true
    }
}
