//! What judges a message beside the policy bindings: plugins stand behind this trait.

use std::sync::Arc;

use dlp_scan::{Finding, RuleSet};
use domain::{Direction, FailureMode, PolicyAction};

use crate::error::Problem;
use crate::tools::Pattern;
use crate::view::MessageView;

/// One more judge of a message. Its word is merged by [`Decision::hear`](crate::Decision::hear).
///
/// An evaluator sees one message at a time.
pub trait Evaluator: Send + Sync {
    /// Its name in decisions, logs, metrics and audit records.
    fn name(&self) -> &str;

    /// What becomes of a message that it failed to judge.
    fn failure_mode(&self) -> FailureMode {
        FailureMode::Closed
    }

    /// Whether it has lately taken so long that whoever waits on the same thread would notice.
    fn is_slow(&self) -> bool {
        false
    }

    /// Whether its word about a single finding counts where it is milder than policy's.
    fn may_loosen(&self) -> bool {
        false
    }

    /// Whether it has a word at all; one that only looks on has none.
    fn judges(&self) -> bool {
        true
    }

    /// Judges one message.
    ///
    /// # Errors
    /// It could not: the message then takes [`Evaluator::failure_mode`], except for [`EvalError::NoRoom`].
    fn evaluate(&self, input: &EvalInput<'_>) -> Result<Verdict, EvalError>;
}

/// What an evaluator is shown of a message.
#[derive(Debug, Clone, Copy)]
pub struct EvalInput<'a> {
    /// The message.
    pub view: &'a MessageView,
    /// The message as JSON text, as it came.
    pub json: &'a [u8],
    /// What the scanner found in it.
    pub findings: &'a [Finding],
    /// The rules that the findings name.
    pub rules: &'a RuleSet,
}

/// One evaluator's word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// For the message as a whole; `None`: no objection. Redact means block here.
    pub action: Option<PolicyAction>,
    /// Why, in words that may be shown to the caller and kept in the audit log.
    pub reason: Option<Arc<str>>,
    /// For single findings, by their index in [`EvalInput::findings`]. Unknown indexes are passed over.
    pub findings: Vec<(u32, PolicyAction)>,
    /// What it found or changes itself.
    pub marks: Vec<Mark>,
}

/// A piece of a leaf that an evaluator objects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Index of the leaf, as in the view.
    pub leaf: u32,
    /// First byte; a character boundary.
    pub start: u32,
    /// One past the last byte; a character boundary.
    pub end: u32,
    /// What it is; a word, never text of the message.
    pub label: Arc<str>,
    /// What to do about it.
    pub action: PolicyAction,
    /// With `redact`: what stands there instead; `None`: a placeholder.
    pub replacement: Option<Box<str>>,
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
    /// It said something that means nothing, such as a mark outside of its leaf.
    #[error("the evaluator gave a verdict that means nothing")]
    BadVerdict,
    /// It failed so often that it is not asked for a while.
    #[error("the evaluator failed too often and is left alone for a while")]
    Open,
    /// There was no room to ask it: no failure of its own, and nobody may bring one about to get past it. The message
    /// is blocked whatever its failure mode is.
    #[error("the evaluator could not be asked: too many messages are being judged")]
    NoRoom,
}

/// The evaluators of one server, with the place of each.
#[derive(Clone, Default)]
pub struct Evaluators {
    lines: Vec<Line>,
}

#[derive(Clone)]
struct Line {
    tool: Option<Pattern>,
    direction: Option<Direction>,
    evaluator: Arc<dyn Evaluator>,
}

impl std::fmt::Debug for Evaluators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.lines.iter().map(|line| line.evaluator.name());
        f.debug_list().entries(names).finish()
    }
}

impl Evaluators {
    /// Whether one of them may make policy's word about a finding milder.
    pub fn may_loosen(&self) -> bool {
        self.lines.iter().any(|line| line.evaluator.may_loosen())
    }

    /// Adds an evaluator for tools that match a glob (absent: every message) and a direction
    /// (absent: both).
    ///
    /// # Errors
    /// The glob means nothing.
    pub fn add(
        &mut self,
        tool: Option<&str>,
        direction: Option<Direction>,
        evaluator: Arc<dyn Evaluator>,
    ) -> Result<(), Problem> {
        let tool = tool.map(Pattern::parse).transpose()?;
        self.lines.push(Line {
            tool,
            direction,
            evaluator,
        });
        Ok(())
    }

    /// Whether there is none at all.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Those that judge a message of this tool, in order.
    pub fn for_tool<'a>(
        &'a self,
        direction: Direction,
        tool: ToolOf<'a>,
    ) -> impl Iterator<Item = &'a Arc<dyn Evaluator>> + Clone {
        let fits = move |line: &&Line| {
            line.direction.is_none_or(|d| d == direction)
                && match (&line.tool, tool) {
                    (None, _) | (Some(_), ToolOf::Unknown) => true,
                    (Some(_), ToolOf::None) => false,
                    (Some(pattern), ToolOf::Tool(name)) => pattern.matches(name),
                }
        };
        self.lines.iter().filter(fits).map(|line| &line.evaluator)
    }
}

/// Which tool a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOf<'a> {
    /// This one.
    Tool(&'a str),
    /// None.
    None,
    /// It cannot be told: every evaluator judges.
    Unknown,
}
