//! Why a message goes no further, in words for the client and for the audit record.

use dlp_policy::Reason;
use dlp_scan::{OverBudget, RuleSet};
use domain::Direction;

/// Why a message goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Policy said so.
    Policy(Reason),
    /// It should have been redacted, but a value stands where none can be replaced, or stayed.
    Unredactable,
    /// The redacted value would not satisfy the tool's declared schema.
    SchemaInvalid,
}

impl Stop {
    /// The word used in logs, metrics and audit records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Policy(reason) => reason.as_str(),
            Self::Unredactable => "unredactable",
            Self::SchemaInvalid => "schema_invalid",
        }
    }

    /// One sentence for the client. It names the rule, never the value.
    pub fn client_text(&self, direction: Direction, rules: &RuleSet) -> String {
        let what = match direction {
            Direction::ToServer => "request",
            Direction::ToClient => "answer",
        };
        match self {
            Self::Policy(Reason::Rule(id)) => {
                let rule = rules.rule(*id);
                let category = rule.category;
                format!(
                    "Weir blocked this {what}: rule {} ({category}) found something in it.",
                    rule.id
                )
            }
            Self::Policy(Reason::OverBudget(bound)) => {
                let why = match bound {
                    OverBudget::Depth | OverBudget::DecodedBytes => "is too deeply encoded",
                    OverBudget::Findings | OverBudget::Candidates => {
                        "holds too much that has to be looked into"
                    }
                };
                format!("Weir blocked this {what}: it {why} to be inspected.")
            }
            Self::Policy(Reason::ToolDenied) => {
                "Weir blocked this request: this tool may not be called.".into()
            }
            Self::Policy(Reason::Evaluator(plugin, reason)) => match reason {
                Some(reason) => format!(
                    "Weir blocked this {what}: plugin {plugin}: {}.",
                    reason.trim_end_matches('.')
                ),
                None => format!("Weir blocked this {what}: plugin {plugin} does not allow it."),
            },
            Self::Policy(Reason::EvaluatorFailed(plugin, _)) => {
                format!("Weir blocked this {what}: plugin {plugin} could not judge it.")
            }
            Self::Unredactable | Self::SchemaInvalid => format!(
                "Weir blocked this {what}: something in it had to be redacted, and the {what} would not be valid without it."
            ),
            _ => format!("Weir blocked this {what}: policy does not allow it."),
        }
    }
}
