//! What a message is judged by: the rules, the policy of its server, and the call it belongs to.

use dlp_policy::{ActionsRef, Decision, PolicyTable};
use dlp_scan::{Outcome, RuleSet};
use domain::{Direction, Era, Limits};

use crate::tools::ToolSchemas;

/// Which call a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution<'a> {
    /// A call of this tool, or a part of its answer.
    Tool(&'a str),
    /// A message of a method without a tool.
    NoTool,
    /// It could not be tied to anything: the strictest policy judges.
    Unknown,
}

/// Everything that judges one message. Borrowed from the snapshot the request started with.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The compiled rules.
    pub rules: &'a RuleSet,
    /// The server's policy.
    pub policy: &'a PolicyTable,
    /// Bounds.
    pub limits: &'a Limits,
    /// The call.
    pub attribution: Attribution<'a>,
    /// Declared schemas of the tool, where known.
    pub schemas: Option<&'a ToolSchemas>,
    /// How the message is spoken.
    pub era: Era,
}

impl Judge<'_> {
    pub(super) fn decide(&self, direction: Direction, outcome: &Outcome) -> Decision {
        dlp_policy::decide(
            &outcome.findings,
            outcome.over_budget,
            &self.actions(direction),
            self.policy.failure_mode(),
            self.policy.dry_run(),
        )
    }

    pub(super) fn actions(&self, direction: Direction) -> ActionsRef {
        match self.attribution {
            Attribution::Tool(tool) => self.policy.for_tool(direction, Some(tool)),
            Attribution::NoTool => self.policy.for_tool(direction, None),
            Attribution::Unknown => self.policy.strictest(direction),
        }
    }
}
