//! What judges a message beside the policy bindings: plugins stand behind this trait.

use dlp_scan::{Finding, RuleSet};
use domain::{Direction, FailureMode, PolicyAction};

/// One more judge of a message. Its word is merged by [`Decision::merge`](crate::Decision::merge).
///
/// An evaluator sees one message at a time and keeps nothing of it.
pub trait Evaluator: Send + Sync {
    /// Its name in decisions, logs, metrics and audit records.
    fn name(&self) -> &str;

    /// What becomes of a message that it failed to judge.
    fn failure_mode(&self) -> FailureMode {
        FailureMode::Closed
    }

    /// Judges one message.
    ///
    /// # Errors
    /// It could not: the message then takes [`Evaluator::failure_mode`].
    fn evaluate(&self, input: &EvalInput<'_>) -> Result<Verdict, EvalError>;
}

/// What an evaluator is shown of a message.
#[derive(Debug, Clone, Copy)]
pub struct EvalInput<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// Its method, or that of the request it answers.
    pub method: &'a str,
    /// The tool it belongs to, where that is known.
    pub tool: Option<&'a str>,
    /// The message as JSON text.
    pub message: &'a str,
    /// What the scanner found in it.
    pub findings: &'a [Finding],
    /// The rules that the findings name.
    pub rules: &'a RuleSet,
}

/// One evaluator's word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// For the message as a whole; `None`: no objection.
    pub action: Option<PolicyAction>,
    /// For single findings, by their index in [`EvalInput::findings`]. Unknown indexes are passed over.
    pub findings: Vec<(u32, PolicyAction)>,
}

/// An evaluator that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// It stopped by a fault of its own.
    #[error("the evaluator trapped")]
    Trapped,
    /// It ran out of time.
    #[error("the evaluator ran out of time")]
    TimedOut,
    /// It wanted more memory or output than it may have.
    #[error("the evaluator went over its bounds")]
    OutOfBounds,
}
