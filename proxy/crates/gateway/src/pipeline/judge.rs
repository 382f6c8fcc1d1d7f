//! What a message is judged by: the rules, the policy of its server, and the call it belongs to.

use dlp_policy::{ActionsRef, AllowInput, Decision, Evaluators, PolicyTable};
use dlp_scan::{Finding, Outcome, RuleId, RuleSet};
use domain::{Direction, Era, Limits, PolicyAction};
use mcp_codec::Document;

use super::said::Said;
use super::stage::{Place, Places};
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
    /// The server's compiled rules.
    pub rules: &'a RuleSet,
    /// Whose server it is.
    pub tenant: &'a str,
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
    /// The server's plugins.
    pub evaluators: &'a Evaluators,
    /// What plugins are told about where the message belongs.
    pub whose: Whose<'a>,
    /// What was said before on the same stream.
    pub said: Option<&'a Said>,
}

/// Where a message belongs, for plugins.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whose<'a> {
    /// Its server.
    pub server: &'a str,
    /// Its tenant.
    pub tenant: &'a str,
    /// Id of the key that called.
    pub key_id: &'a str,
    /// Hash of the session.
    pub session: Option<&'a str>,
    /// Method and id of the call it belongs to.
    pub call: Option<(&'a str, Option<&'a mcp_codec::Id>)>,
}

impl Judge<'_> {
    pub(super) fn decide(
        &self,
        direction: Direction,
        doc: &Document,
        outcome: &Outcome,
    ) -> Decision {
        let places = std::cell::OnceCell::new();
        let place =
            |finding: &Finding| match places.get_or_init(|| Places::of(doc)).of_finding(finding) {
                Place::Leaf(leaf) => doc.path(leaf).to_string(),
                Place::Header(index) => format!("header[{index}]"),
            };
        self.decide_about(direction, outcome, &place)
    }

    /// The same for findings whose place somebody else knows.
    pub(super) fn decide_about(
        &self,
        direction: Direction,
        outcome: &Outcome,
        place: &dyn Fn(&Finding) -> String,
    ) -> Decision {
        let tool = match self.attribution {
            Attribution::Tool(tool) => Some(tool),
            Attribution::NoTool | Attribution::Unknown => None,
        };
        let input = AllowInput {
            direction,
            tool,
            place,
        };
        let allowed = self.policy.allow().of(&outcome.findings, &input);
        dlp_policy::decide_allowing(
            &outcome.findings,
            outcome.over_budget,
            &self.actions(direction),
            allowed,
            self.policy.failure_mode(),
            self.policy.dry_run(),
        )
    }

    /// Of two findings at one place, the one that another covers is kept where it is treated more strictly, or where a
    /// plugin or an allowlist might make the other's treatment milder: see [`dlp_scan::Scanner::scan_for`].
    pub(super) fn keeps(&self, direction: Direction) -> impl Fn(RuleId, RuleId) -> bool {
        let actions = std::cell::OnceCell::new();
        move |covered, over| {
            let actions: &ActionsRef = actions.get_or_init(|| self.actions(direction));
            let action = actions.action(covered);
            let milder = || self.evaluators.may_loosen() || !self.policy.allow().is_empty();
            action > actions.action(over)
                || actions.always(covered) && !actions.always(over)
                || action > PolicyAction::Log && milder()
        }
    }

    pub(super) fn actions(&self, direction: Direction) -> ActionsRef {
        match self.attribution {
            Attribution::Tool(tool) => self.policy.for_tool(direction, Some(tool)),
            Attribution::NoTool => self.policy.for_tool(direction, None),
            Attribution::Unknown => self.policy.strictest(direction),
        }
    }
}
