//! What is known about one rule.

use std::fmt;

/// What kind of thing a rule finds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A credential.
    Secret,
    /// Personal data.
    Pii,
    /// Prompt injection, tool poisoning, hidden text, dangerous commands, exfiltration.
    Injection,
}

impl Category {
    /// The word used in configuration, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Pii => "pii",
            Self::Injection => "injection",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Index of a rule in the [`RuleSet`](crate::RuleSet) it came from; means nothing in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub(crate) u16);

impl RuleId {
    /// The index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a rule says about itself.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Stable name, for example `github-pat`; unique in its set.
    pub id: Box<str>,
    /// What it finds.
    pub category: Category,
    /// A line for people.
    pub title: Box<str>,
    /// Why it matters, what to do about a finding. May be empty.
    pub description: Box<str>,
    /// 0 to 100: how sure a plain match is.
    pub confidence: u8,
}
