//! Why a policy was refused.

use std::fmt;

/// A policy that was refused: at which level, in which field, and why. The whole policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{level} policy: {field}: {problem}")]
pub struct PolicyError {
    /// Whose policy.
    pub level: Level,
    /// The field inside that policy, such as `bindings[3].rule` or `tools.deny[0]`.
    pub field: String,
    /// What is wrong with it and what to do.
    pub problem: Problem,
}

/// The two places where a policy can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// The tenant's, for all its servers.
    Tenant,
    /// One server's.
    Server,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Server => "server",
        })
    }
}

/// What is wrong with one field of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No rule has this id.
    #[error("no rule is called {rule:?}{}", suggest(near.as_deref()))]
    UnknownRule {
        /// The id that was given.
        rule: String,
        /// The id that was probably meant.
        near: Option<String>,
    },
    /// No rule's id matches this glob, so the line could never apply.
    #[error("no rule matches {glob:?}; see the rule ids or take the line out")]
    NoRuleMatches {
        /// The glob that was given.
        glob: String,
    },
    /// Not one of the categories.
    #[error("{category:?} is no category; use secret, pii or injection")]
    UnknownCategory {
        /// The word that was given.
        category: String,
    },
    /// Rule and category exclude each other, so the line could never apply.
    #[error("no rule of category {category:?} matches; take the category out")]
    CategoryMismatch {
        /// The category that was given.
        category: String,
    },
    /// Not a glob.
    #[error("{glob:?} is no glob: {why}")]
    BadGlob {
        /// The text that was given.
        glob: String,
        /// What the glob parser said.
        why: String,
    },
    /// A form for something that is not redacted.
    #[error("says how to redact, but the action is not redact; take it out")]
    FormWithoutRedact,
    /// A line of an allowlist that would let everything pass.
    #[error(
        "names none of value, pattern, path and rule, so it would let everything pass; name one"
    )]
    AllowsAll,
    /// Not a fingerprint.
    #[error("must be 32 hexadecimal digits in lower case; `weir rules hash` makes them")]
    BadFingerprint,
    /// Not a path.
    #[error(
        "{path:?} is no path: {why}; write it as audit records do, such as $.params.arguments.to"
    )]
    BadPath {
        /// The text that was given.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Longer than a list may be.
    #[error("{count} entries, at most {max} are allowed")]
    TooMany {
        /// How many were given.
        count: usize,
        /// How many may be.
        max: usize,
    },
}

fn suggest(near: Option<&str>) -> String {
    near.map_or_else(String::new, |n| format!("; did you mean {n:?}?"))
}
