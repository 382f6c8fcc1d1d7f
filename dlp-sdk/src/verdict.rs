//! What a plugin says about a message.

use std::ops::Range;

use crate::bindings::exports::weir::policy::policy as raw;
use crate::bindings::weir::policy::types;
use crate::message::{Finding, Leaf};

pub use types::Action;

/// A plugin's word about one message, built step by step.
///
/// ```
/// # use dlp_sdk::{Action, Verdict};
/// let objection = Verdict::warn("the statement has no LIMIT");
/// assert_eq!(objection.action(), Some(Action::Warn));
/// assert_eq!(Verdict::pass().action(), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    action: Option<Action>,
    reason: String,
    marks: Vec<types::Mark>,
    edits: Vec<types::Edit>,
    rulings: Vec<types::Ruling>,
}

impl Verdict {
    /// No objection.
    pub fn pass() -> Self {
        Self::default()
    }

    /// The message is recorded and passes.
    pub fn log(reason: impl Into<String>) -> Self {
        Self::of(Action::Log, reason)
    }

    /// The message passes and an alert is raised.
    pub fn warn(reason: impl Into<String>) -> Self {
        Self::of(Action::Warn, reason)
    }

    /// The message goes no further. The reason reaches the caller: never quote the message in it.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::of(Action::Block, reason)
    }

    /// An action for the message as a whole.
    pub fn of(action: Action, reason: impl Into<String>) -> Self {
        Self {
            action: Some(action),
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// Says why, where marks or edits decide.
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Reports a piece of a leaf. `label` is a word of the plugin's, never text of the message.
    pub fn mark(mut self, leaf: &Leaf<'_>, at: Range<usize>, label: &str, action: Action) -> Self {
        self.marks.push(types::Mark {
            leaf: leaf.index,
            start: clamp(at.start),
            end: clamp(at.end),
            label: label.to_owned(),
            action,
        });
        self
    }

    /// Puts other text in the place of a piece of a leaf.
    pub fn edit(mut self, leaf: &Leaf<'_>, at: Range<usize>, with: impl Into<String>) -> Self {
        self.edits.push(types::Edit {
            leaf: leaf.index,
            start: clamp(at.start),
            end: clamp(at.end),
            replacement: with.into(),
        });
        self
    }

    /// Puts other text in the place of a whole leaf.
    pub fn replace(self, leaf: &Leaf<'_>, with: impl Into<String>) -> Self {
        self.edit(leaf, 0..leaf.text.len(), with)
    }

    /// Gives a finding of the detection rules another action. A milder one counts only where the
    /// binding grants `loosen`.
    pub fn rule(mut self, finding: &Finding<'_>, action: Action) -> Self {
        self.rulings.push(types::Ruling {
            finding: finding.index,
            action,
        });
        self
    }

    /// The action for the message as a whole.
    pub fn action(&self) -> Option<Action> {
        self.action
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether nothing is objected to, marked, changed or ruled.
    pub fn is_pass(&self) -> bool {
        self.action.is_none()
            && self.marks.is_empty()
            && self.edits.is_empty()
            && self.rulings.is_empty()
    }

    /// The verdict as the contract has it.
    pub fn into_raw(self) -> raw::Verdict {
        raw::Verdict {
            action: self.action,
            reason: self.reason,
            marks: self.marks,
            edits: self.edits,
            rulings: self.rulings,
        }
    }
}

fn clamp(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
