//! The one decision about a message.

use std::sync::Arc;

use dlp_scan::{Finding, OverBudget, RuleId};
use domain::{FailureMode, PolicyAction};

use crate::allow::Allowed;
use crate::evaluator::{EvalError, Evaluator, Mark, Verdict};
use crate::table::ActionsRef;

/// Decides about a message from what was found in it.
///
/// The strictest action of its findings is the message's action. A scan cut short by its budget takes
/// the failure mode: closed blocks, open warns. `dry_run` changes [`Decision::enforced`] only.
///
/// Allocates nothing for a message without findings.
pub fn decide(
    findings: &[Finding],
    over_budget: Option<OverBudget>,
    actions: &ActionsRef,
    failure_mode: FailureMode,
    dry_run: bool,
) -> Decision {
    decide_allowing(
        findings,
        over_budget,
        actions,
        Allowed::default(),
        failure_mode,
        dry_run,
    )
}

/// The same, with the findings that an allowlist lets pass ([`Allow::of`](crate::Allow::of)): their action is at most
/// `log`.
pub fn decide_allowing(
    findings: &[Finding],
    over_budget: Option<OverBudget>,
    actions: &ActionsRef,
    allowed: Allowed,
    failure_mode: FailureMode,
    dry_run: bool,
) -> Decision {
    let mut decision = Decision::clean(dry_run);
    decision.hits.reserve_exact(findings.len());
    for (index, finding) in findings.iter().enumerate() {
        let mut action = actions.action(finding.rule);
        let always = actions.always(finding.rule);
        if allowed.by(index).is_some() && !always {
            action = action.min(PolicyAction::Log);
        }
        decision.hits.push(action);
        decision.raise(action.into(), || Reason::Rule(finding.rule));
        if always {
            decision.hold(index, action.into());
        }
    }
    decision.allowed = allowed;
    decision.over_budget = over_budget.map(|bound| (bound, failed(failure_mode)));
    decision.raise_over_budget();
    decision
}

/// What is done with a message, weakest first. Beside [`PolicyAction`], which says what is done with a
/// finding, this has a word for a message in which nothing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Nothing to record.
    Pass,
    /// Recorded, passed on.
    Log,
    /// Recorded, an alert is raised, passed on.
    Warn,
    /// Passed on without the matched values.
    Redact,
    /// Answered by Weir; goes no further.
    Block,
}

impl Action {
    /// The word used in logs, metrics and audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Log => "log",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }

    /// What is left of it in a dry run: the message passes, the record stays, and so do warnings.
    fn in_dry_run(self) -> Self {
        match self {
            Self::Redact | Self::Block => Self::Log,
            other => other,
        }
    }
}

impl From<PolicyAction> for Action {
    fn from(action: PolicyAction) -> Self {
        match action {
            PolicyAction::Ignore => Self::Pass,
            PolicyAction::Log => Self::Log,
            PolicyAction::Warn => Self::Warn,
            PolicyAction::Redact => Self::Redact,
            PolicyAction::Block => Self::Block,
        }
    }
}

/// Why a message got its action: the strictest word, and of equal ones the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was found, or nothing that policy minds.
    Clean,
    /// A finding of this rule.
    Rule(RuleId),
    /// The scan was cut short.
    OverBudget(OverBudget),
    /// The tool may not be called.
    ToolDenied,
    /// This evaluator said so, perhaps with a reason.
    Evaluator(Arc<str>, Option<Arc<str>>),
    /// This evaluator failed.
    EvaluatorFailed(Arc<str>, EvalError),
}

impl Reason {
    /// The word used in logs, metrics and audit records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Rule(_) => "rule",
            Self::OverBudget(_) => "over_budget",
            Self::ToolDenied => "tool_denied",
            Self::Evaluator(..) => "evaluator",
            Self::EvaluatorFailed(..) => "evaluator_failed",
        }
    }
}

/// All that was decided about one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What policy says.
    pub action: Action,
    /// What is really done: the same, or less in a dry run.
    pub enforced: Action,
    /// What policy says about each finding, in the order of the findings. In a dry run the values with
    /// [`PolicyAction::Redact`] are not redacted: look at `enforced` first.
    pub hits: Vec<PolicyAction>,
    /// Findings that an allowlist lets pass, and the line that does.
    pub allowed: Allowed,
    /// What made it so.
    pub reason: Reason,
    /// What evaluators found or change, with the name of each. In a dry run nothing of it is carried out.
    pub marks: Vec<(Arc<str>, Mark)>,
    dry_run: bool,
    /// Findings that nothing makes milder, and what is done about them at the least.
    held: (Vec<usize>, Action),
    /// What cut the scan short, and what is done about that at the least.
    over_budget: Option<(OverBudget, Action)>,
}

impl Decision {
    /// The decision about a message in which nothing was found.
    pub fn clean(dry_run: bool) -> Self {
        Self {
            action: Action::Pass,
            enforced: Action::Pass,
            hits: Vec::new(),
            allowed: Allowed::default(),
            reason: Reason::Clean,
            marks: Vec::new(),
            dry_run,
            held: (Vec::new(), Action::Pass),
            over_budget: None,
        }
    }

    /// The decision about a call of a tool that policy denies
    /// ([`PolicyTable::tool_allowed`](crate::PolicyTable::tool_allowed)).
    pub fn tool_denied(dry_run: bool) -> Self {
        let mut decision = Self::clean(dry_run);
        decision.raise(Action::Block, || Reason::ToolDenied);
        decision
    }

    /// Whether this was a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Adds the words of all evaluators. They can make the decision stricter; one that may loosen
    /// can first make policy's word about a finding milder. One that failed counts by its own failure
    /// mode. The order of evaluators decides about the reason only.
    pub fn hear(
        &mut self,
        findings: &[Finding],
        verdicts: Vec<(&dyn Evaluator, Result<Verdict, EvalError>)>,
    ) {
        self.loosen(findings, &verdicts);
        for (evaluator, verdict) in verdicts {
            self.merge(evaluator, verdict);
        }
    }

    /// The milder words come first, so that none of them undoes a stricter one.
    fn loosen(
        &mut self,
        findings: &[Finding],
        verdicts: &[(&dyn Evaluator, Result<Verdict, EvalError>)],
    ) {
        let mut changed = false;
        for (evaluator, verdict) in verdicts {
            let (true, Ok(verdict)) = (evaluator.may_loosen(), verdict) else {
                continue;
            };
            for (index, action) in &verdict.findings {
                if self.held.0.contains(&(*index as usize)) {
                    continue;
                }
                if let Some(hit) = self
                    .hits
                    .get_mut(*index as usize)
                    .filter(|hit| **hit > *action)
                {
                    *hit = *action;
                    changed = true;
                }
            }
        }
        // What was not said by a finding stays: an over-budget scan cannot be loosened.
        if !changed || !matches!(self.reason, Reason::Rule(_)) {
            return;
        }
        (self.action, self.enforced, self.reason) = (Action::Pass, Action::Pass, Reason::Clean);
        for (hit, finding) in self.hits.clone().into_iter().zip(findings) {
            self.raise(hit.into(), || Reason::Rule(finding.rule));
        }
        self.raise_over_budget();
        self.enforced = self.enforced.max(self.held.1);
    }

    fn raise_over_budget(&mut self) {
        if let Some((bound, action)) = self.over_budget {
            self.raise(action, || Reason::OverBudget(bound));
        }
    }

    fn merge(&mut self, evaluator: &dyn Evaluator, verdict: Result<Verdict, EvalError>) {
        let name: Arc<str> = Arc::from(evaluator.name());
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                let mode = match error {
                    EvalError::NoRoom => FailureMode::Closed,
                    _ => evaluator.failure_mode(),
                };
                self.raise(failed(mode), || Reason::EvaluatorFailed(name, error));
                return;
            }
        };
        let reason = || Reason::Evaluator(Arc::clone(&name), verdict.reason.clone());
        for (index, action) in verdict.findings {
            let Some(hit) = self.hits.get_mut(index as usize) else {
                continue;
            };
            if action >= *hit {
                *hit = action;
                self.raise(action.into(), reason);
            }
        }
        if let Some(action) = verdict.action {
            let action = match action {
                PolicyAction::Redact => Action::Block,
                other => other.into(),
            };
            self.raise(action, reason);
        }
        for mark in &verdict.marks {
            self.raise(mark.action.into(), reason);
        }
        let marks = verdict
            .marks
            .into_iter()
            .map(|mark| (Arc::clone(&name), mark));
        self.marks.extend(marks);
    }

    /// This finding is stopped in a dry run, too.
    fn hold(&mut self, finding: usize, action: Action) {
        self.held.0.push(finding);
        self.held.1 = self.held.1.max(action);
        self.enforced = self.enforced.max(action);
    }

    fn raise(&mut self, action: Action, reason: impl FnOnce() -> Reason) {
        if action > self.action {
            self.action = action;
            let enforced = match self.dry_run {
                true => action.in_dry_run(),
                false => action,
            };
            self.enforced = enforced.max(self.held.1);
            self.reason = reason();
        }
    }
}

fn failed(mode: FailureMode) -> Action {
    match mode {
        FailureMode::Closed => Action::Block,
        FailureMode::Open => Action::Warn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluator::EvalInput;

    use PolicyAction::{Block, Ignore, Log, Redact, Warn};

    struct Plugin(FailureMode);

    struct Loose;

    impl Evaluator for Loose {
        fn name(&self) -> &str {
            "loose"
        }

        fn may_loosen(&self) -> bool {
            true
        }

        fn evaluate(&self, _: &EvalInput<'_>) -> Result<Verdict, EvalError> {
            Err(EvalError::Trapped)
        }
    }

    impl Evaluator for Plugin {
        fn name(&self) -> &str {
            "plugin"
        }

        fn failure_mode(&self) -> FailureMode {
            self.0
        }

        fn evaluate(&self, _: &EvalInput<'_>) -> Result<Verdict, EvalError> {
            Err(EvalError::Trapped)
        }
    }

    fn decided(hits: &[PolicyAction], dry_run: bool) -> Decision {
        let mut decision = Decision::clean(dry_run);
        for &hit in hits {
            decision.hits.push(hit);
            decision.raise(hit.into(), || Reason::ToolDenied);
        }
        decision
    }

    #[test]
    fn a_dry_run_changes_what_is_enforced_and_nothing_else() {
        let cases = [
            (&[][..], Action::Pass, Action::Pass),
            (&[Ignore], Action::Pass, Action::Pass),
            (&[Log, Ignore], Action::Log, Action::Log),
            (&[Warn, Log], Action::Warn, Action::Warn),
            (&[Warn, Redact], Action::Redact, Action::Log),
            (&[Redact, Block, Log], Action::Block, Action::Log),
        ];
        for (hits, action, in_dry_run) in cases {
            let (real, dry) = (decided(hits, false), decided(hits, true));
            assert_eq!((real.action, real.enforced), (action, action), "{hits:?}");
            assert_eq!((dry.action, dry.enforced), (action, in_dry_run), "{hits:?}");
            assert_eq!((&real.hits, &real.reason), (&dry.hits, &dry.reason));
        }
    }

    #[test]
    fn an_evaluator_can_only_make_it_stricter() {
        let verdict = |action, findings: &[(u32, PolicyAction)]| {
            Ok(Verdict {
                action,
                findings: findings.to_vec(),
                ..Verdict::default()
            })
        };
        let cases = [
            (verdict(None, &[]), Action::Warn, [Log, Warn]),
            (verdict(Some(Log), &[]), Action::Warn, [Log, Warn]),
            (verdict(Some(Block), &[]), Action::Block, [Log, Warn]),
            (
                verdict(None, &[(0, Redact)]),
                Action::Redact,
                [Redact, Warn],
            ),
            (
                verdict(None, &[(1, Ignore), (7, Block)]),
                Action::Warn,
                [Log, Warn],
            ),
        ];
        for (verdict, action, hits) in cases {
            let mut decision = decided(&[Log, Warn], false);
            let before = decision.reason.clone();
            let plugin = Plugin(FailureMode::Closed);
            decision.hear(&[], vec![(&plugin, verdict.clone())]);
            assert_eq!(
                (decision.action, &decision.hits[..]),
                (action, &hits[..]),
                "{verdict:?}"
            );
            let raised = Reason::Evaluator("plugin".into(), None);
            let reason = if action == Action::Warn {
                before
            } else {
                raised
            };
            assert_eq!(decision.reason, reason, "{verdict:?}");
        }
    }

    #[test]
    fn only_one_that_may_loosens_and_a_stricter_word_wins() {
        let rules = dlp_scan::RuleSet::builtin();
        // Its check digits fit. In two parts, so that no scanner stumbles over it here.
        let key = concat!("ghp_Q7dR2mXk9LwZtV4c", "NpB1sYhE6uJgA34eUZEa");
        let leaf = dlp_scan::LeafInput {
            text: key,
            kind: dlp_scan::LeafKind::String,
            name: Some("token"),
        };
        let budget = dlp_scan::Budget::default();
        let outcome = dlp_scan::Scanner::new(dlp_scan::FingerprintKey::new([7; 32])).scan(
            rules,
            [leaf].into_iter(),
            &budget,
        );
        let findings = &outcome.findings[..1];
        let says = |action| {
            Ok(Verdict {
                findings: vec![(0, action)],
                ..Verdict::default()
            })
        };
        let plugin = Plugin(FailureMode::Closed);
        type Words<'a> = Vec<(&'a dyn Evaluator, Result<Verdict, EvalError>)>;
        let cases: Vec<(Words<'_>, Action)> = vec![
            (vec![(&plugin, says(Log))], Action::Block),
            (vec![(&Loose, says(Log))], Action::Log),
            (vec![(&Loose, says(Ignore))], Action::Pass),
            (
                vec![(&Loose, says(Log)), (&plugin, says(Redact))],
                Action::Redact,
            ),
            (
                vec![(&plugin, says(Redact)), (&Loose, says(Log))],
                Action::Redact,
            ),
            (
                vec![(&Loose, says(Log)), (&plugin, Err(EvalError::Trapped))],
                Action::Block,
            ),
        ];
        for (words, action) in cases {
            let mut decision = Decision::clean(false);
            decision.hits.push(Block);
            decision.raise(Action::Block, || Reason::Rule(findings[0].rule));
            decision.hear(findings, words);
            assert_eq!(decision.action, action, "{:?}", decision.reason);
        }
    }

    #[test]
    fn a_scan_cut_short_is_not_loosened_whatever_else_blocked() {
        let rules = dlp_scan::RuleSet::builtin();
        let leaf = dlp_scan::LeafInput {
            text: "ghp_016C7A5F3d2B1e9048c6a7f2d3b5e4c1a0974v2Vld7w",
            kind: dlp_scan::LeafKind::String,
            name: Some("token"),
        };
        let mut scanner = dlp_scan::Scanner::new(dlp_scan::FingerprintKey::new([7; 32]));
        let outcome = scanner.scan(rules, [leaf].into_iter(), &dlp_scan::Budget::default());
        let findings = &outcome.findings[..1];
        for (mode, action) in [
            (FailureMode::Closed, Action::Block),
            (FailureMode::Open, Action::Warn),
        ] {
            let mut decision = Decision::clean(false);
            decision.hits.push(Block);
            decision.raise(Action::Block, || Reason::Rule(findings[0].rule));
            decision.over_budget = Some((OverBudget::Depth, failed(mode)));
            let milder = Verdict {
                findings: vec![(0, Ignore)],
                ..Verdict::default()
            };
            decision.hear(findings, vec![(&Loose, Ok(milder))]);
            assert_eq!(decision.action, action);
            assert_eq!(decision.enforced, action);
            assert_eq!(decision.reason, Reason::OverBudget(OverBudget::Depth));
        }
    }

    #[test]
    fn a_mark_counts_by_its_action() {
        let mark = |action| Mark {
            leaf: 0,
            start: 0,
            end: 1,
            label: "word".into(),
            action,
            replacement: None,
        };
        for (action, outcome) in [
            (Log, Action::Log),
            (Redact, Action::Redact),
            (Block, Action::Block),
        ] {
            let verdict = Verdict {
                marks: vec![mark(action)],
                ..Verdict::default()
            };
            let plugin = Plugin(FailureMode::Closed);
            let mut decision = Decision::clean(false);
            decision.hear(&[], vec![(&plugin, Ok(verdict))]);
            assert_eq!((decision.action, decision.marks.len()), (outcome, 1));
        }
    }

    #[test]
    fn an_evaluator_that_failed_takes_its_own_failure_mode() {
        for (mode, action) in [
            (FailureMode::Closed, Action::Block),
            (FailureMode::Open, Action::Warn),
        ] {
            let plugin = Plugin(mode);
            let mut decision = Decision::clean(false);
            decision.hear(&[], vec![(&plugin, Err(EvalError::TimedOut))]);
            assert_eq!(decision.action, action);
            let failed = Reason::EvaluatorFailed("plugin".into(), EvalError::TimedOut);
            assert_eq!(decision.reason, failed);
        }
    }

    #[test]
    fn an_evaluator_that_there_was_no_room_for_blocks_whatever_its_failure_mode() {
        for mode in [FailureMode::Closed, FailureMode::Open] {
            let mut decision = Decision::clean(false);
            decision.hear(&[], vec![(&Plugin(mode), Err(EvalError::NoRoom))]);
            assert_eq!(decision.enforced, Action::Block);
        }
    }

    #[test]
    fn a_denied_tool_is_blocked_unless_it_is_a_dry_run() {
        assert_eq!(Decision::tool_denied(false).enforced, Action::Block);
        let dry = Decision::tool_denied(true);
        assert_eq!((dry.action, dry.enforced), (Action::Block, Action::Log));
        assert_eq!(dry.reason.as_str(), "tool_denied");
    }
}
