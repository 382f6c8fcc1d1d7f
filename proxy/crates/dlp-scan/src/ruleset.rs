//! An immutable set of compiled rules.

use std::sync::{Arc, LazyLock};

use crate::rule::{Rule, RuleId};

/// Compiled rules. Immutable, `Send + Sync`, shared in an `Arc`.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
}

/// One rule file.
#[derive(Clone, Copy, Debug)]
pub struct RuleSource<'a> {
    /// What error messages call it.
    pub name: &'a str,
    /// Its text.
    pub yaml: &'a str,
}

/// A rule file that was refused: where, which field, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{field}: {problem}", rule.as_deref().map(|r| format!("rule {r}: ")).unwrap_or_default())]
pub struct RuleError {
    /// The source's name.
    pub file: String,
    /// 1-based; 0 when the line is not known.
    pub line: usize,
    /// The rule's id, once it was read.
    pub rule: Option<String>,
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it and how to put it right.
    pub problem: String,
}

impl RuleSet {
    /// The rules shipped with the program. Compiled once.
    pub fn builtin() -> &'static Arc<Self> {
        static BUILTIN: LazyLock<Arc<RuleSet>> = LazyLock::new(|| {
            Arc::new(RuleSet::compile(&[]).expect("the shipped rules are compiled by a test"))
        });
        &BUILTIN
    }

    /// Compiles rule files into one set. The whole set is refused if any rule is.
    pub fn compile(_sources: &[RuleSource<'_>]) -> Result<Self, RuleError> {
        Ok(Self::default())
    }

    /// What a rule says about itself.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.index()]
    }

    /// The rule of that name.
    pub fn find(&self, id: &str) -> Option<RuleId> {
        let at = self.rules.iter().position(|r| &*r.id == id)?;
        u16::try_from(at).ok().map(RuleId)
    }

    /// All rules in order.
    pub fn rules(&self) -> impl Iterator<Item = (RuleId, &Rule)> {
        (0u16..).map(RuleId).zip(&self.rules)
    }

    /// How many rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True when there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}
