//! What happened in one exchange, gathered on the way and closed into one audit record.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use audit_log::{Action, FindingRecord, Record, UpstreamOutcome};
use dlp_scan::RuleSet;
use domain::{AuditMode, Direction, Era, PolicyAction, ProtocolVersion};
use mcp_codec::{Document, LeafId, Message};

use super::Context;
use super::attribute;
use super::head::Trace;
use crate::gateway::Gateway;
use crate::pipeline::{self, Cleared, PassingReport, Place, Places, Report, Stop, Way};
use crate::session::Session;
use crate::snapshot::{ServerEntry, Snapshot};
use crate::span::SpanIds;
use crate::upstream::Head;

/// Findings kept in memory for one exchange; the log keeps fewer.
const FINDINGS_MAX: usize = 64;

/// A trace context that may go up, and into the record. Its ids are text of the caller's choice; one in which something is found
/// begins no trace here, whatever policy lets pass: it would stand in records and spans. The call goes on all the same: ids are
/// random, and some look like what rules look for.
fn passable(context: &Context, trace: &Trace) -> Trace {
    let ids = [trace.trace_id.as_deref(), trace.parent_id.as_deref()];
    let rules = &context.server.rules;
    let mut ids = ids.into_iter().flatten();
    if ids.all(|id| pipeline::written(rules, id) == id) {
        return trace.clone();
    }
    tracing::warn!(server_id = %context.server.id, "a trace context was left out: a rule finds something in it");
    Trace::default()
}

/// Why a call that may pass has no answer on record.
const BROKEN_OFF: &str = "nobody waited for the answer any more";

/// The audit log could not take a record that must be kept: the answer is not released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAudited;

/// Gathers one exchange.
#[derive(Debug)]
pub struct Trail {
    record: Record,
    /// The rules that findings name.
    rules: Arc<RuleSet>,
    started: Instant,
    upstream_since: Option<Instant>,
    /// Status and content type of the upstream's answer, for the log.
    heard: Option<(u16, &'static str)>,
    /// Messages that needed no scan.
    remembered: u64,
    span: Option<SpanIds>,
}

impl Trail {
    /// Begins the trail of an exchange with a server.
    pub fn new(server: &ServerEntry) -> Self {
        let record = Record::new(
            now_unix_us(),
            Arc::clone(&server.tenant),
            Arc::clone(&server.id),
        );
        Self {
            record,
            rules: Arc::clone(&server.rules),
            started: Instant::now(),
            upstream_since: None,
            heard: None,
            remembered: 0,
            span: None,
        }
    }

    /// What follows is found by these rules.
    pub fn judged_by(&mut self, rules: &Arc<RuleSet>) {
        self.rules = Arc::clone(rules);
    }

    /// The record so far.
    pub fn record(&mut self) -> &mut Record {
        &mut self.record
    }

    /// The id by which people refer to this exchange.
    pub fn id(&self) -> String {
        self.record.id.to_string()
    }

    /// The same as what it is.
    pub fn audit_id(&self) -> &audit_log::AuditId {
        &self.record.id
    }

    /// What is known before the message is read.
    pub fn begun(
        &mut self,
        context: &Context,
        session: Option<&Session>,
        trace: &Trace,
        request_bytes: u64,
    ) {
        self.record.principal = Some(Arc::clone(&context.principal.key_id));
        self.record.client.clone_from(&context.client);
        self.record.session = session.map(|s| Arc::clone(&s.tag));
        let trace = &passable(context, trace);
        self.span = SpanIds::new(trace, context.gateway.spans.is_some());
        self.record.trace_id = match &self.span {
            Some(span) => Some(span.trace_id().into()),
            None => trace.trace_id.as_deref().map(Into::into),
        };
        self.record.bytes.request = request_bytes;
    }

    /// How the message is spoken. What it says is only noted once it was scanned.
    pub fn spoken(&mut self, era: Era, version: Option<ProtocolVersion>) {
        let era = version
            .filter(|v| v.era() == era)
            .map_or(era.as_str(), ProtocolVersion::as_str);
        self.record.era = Some(era.into());
    }

    /// What a message says that is answered before it is judged: method and tool, unless something is found in them. They are
    /// short, and nothing else of it is looked at.
    pub fn names(&mut self, message: &Message) {
        let rules = &self.rules;
        let text = |text: &str| -> Arc<str> { pipeline::written(rules, text).into() };
        self.record.method = message.method().map(text);
        self.record.tool = attribute::named_thing(message).map(text);
    }

    /// The tool may not be called, for this reason.
    pub fn denied(&mut self, reason: &'static str) {
        self.record.action = Action::Block;
        self.record.reason = Some(reason.into());
    }

    /// Whether nothing was decided yet.
    pub fn untouched(&self) -> bool {
        self.record.action == Action::Pass
    }

    /// Whether there is something to record.
    pub fn has_findings(&self) -> bool {
        self.record.action > Action::Pass || !self.record.findings.is_empty()
    }

    /// A trail of its own for a message in the course of this exchange.
    pub fn branch(&self) -> Self {
        let mut record = Record::new(
            now_unix_us(),
            Arc::clone(&self.record.tenant),
            Arc::clone(&self.record.server),
        );
        let from = &self.record;
        record.principal.clone_from(&from.principal);
        record.client.clone_from(&from.client);
        record.session.clone_from(&from.session);
        record.trace_id.clone_from(&from.trace_id);
        record.era.clone_from(&from.era);
        record.tool.clone_from(&from.tool);
        Self {
            record,
            rules: Arc::clone(&self.rules),
            started: Instant::now(),
            upstream_since: None,
            heard: None,
            remembered: 0,
            span: None,
        }
    }

    /// The trace context that goes up: the trace, with this exchange as the parent of what follows.
    pub fn traceparent(&self, headers: &mut Vec<(http::HeaderName, http::HeaderValue)>) {
        if let Some(span) = &self.span {
            super::head::push(headers, "traceparent", &span.traceparent());
        }
    }

    /// The upstream is asked now.
    pub fn upstream_asked(&mut self) {
        self.upstream_since = Some(Instant::now());
    }

    /// The upstream's answer begins.
    pub fn heard(&mut self, head: &Head) {
        self.heard = Some((head.status, head.content_type));
    }

    /// What its answer began with: status and content type; absent where no answer came over HTTP.
    pub fn answer_head(&self) -> (Option<u16>, Option<&'static str>) {
        self.heard.unzip()
    }

    /// The upstream did what it did.
    pub fn upstream_done(&mut self, outcome: UpstreamOutcome) {
        if let Some(since) = self.upstream_since.take() {
            self.record.latency_us.upstream += us(since);
        }
        self.record.upstream = outcome;
    }

    /// Adds what the line found and decided about one message that may pass.
    pub fn passed<W: Way>(&mut self, cleared: &mut Cleared<W>) {
        let Some(report) = cleared.take_report() else {
            return;
        };
        if let Some(message) = cleared.message() {
            self.absorb(W::DIRECTION, message.doc(), &report, None);
        }
        self.record.bytes.forwarded += report.forwarded_bytes as u64;
    }

    /// Adds what the line found and decided about one message.
    pub fn absorb(
        &mut self,
        direction: Direction,
        doc: &Document,
        report: &Report,
        stop: Option<&Stop>,
    ) {
        if direction == Direction::ToServer || self.record.method.is_none() {
            self.note_message(doc, report);
        }
        self.record.latency_us.scan += report.times.scan_us;
        self.record.latency_us.policy += report.times.policy_us;
        self.remembered += u64::from(report.times.remembered);
        let action = match stop {
            Some(_) => Action::Block,
            None => audit_action(report.decision.action),
        };
        if action >= self.record.action {
            if action > self.record.action || stop.is_some() {
                self.record.reason = reason(&self.rules, report, stop);
            }
            if action > Action::Pass {
                self.record.direction = audit_direction(direction);
            }
            self.record.action = action;
        }
        if report.decision.is_dry_run() && report.decision.action > report.decision.enforced {
            self.record.dry_run = true;
        }
        if !report.outcome.findings.is_empty() {
            self.add_findings(direction, doc, report, PolicyAction::Log);
        }
        if !report.decision.marks.is_empty() {
            self.add_marks(direction, doc, report);
        }
    }

    /// Adds what a list was blocked for, the rest of which goes on without it.
    pub fn left_out(&mut self, direction: Direction, doc: &Document, report: &Report) {
        let before = self.record.action;
        self.record.latency_us.scan += report.times.scan_us;
        self.record.latency_us.policy += report.times.policy_us;
        self.record.direction = audit_direction(direction);
        if before < Action::Redact {
            self.record.action = Action::Redact;
            self.record.reason = reason(&self.rules, report, None);
        }
        // The rest is judged again, with what else was found in it.
        self.add_findings(direction, doc, report, PolicyAction::Block);
    }

    /// Adds what was found and decided about a message that passed in steps. Method, id and tool are known before.
    pub fn absorb_passing(
        &mut self,
        direction: Direction,
        report: &PassingReport,
        stop: Option<&Stop>,
    ) {
        self.record.latency_us.scan += report.times.scan_us;
        self.record.latency_us.policy += report.times.policy_us;
        self.record.bytes.forwarded += report.forwarded_bytes;
        let action = match stop {
            Some(_) => Action::Block,
            None => audit_action(report.action),
        };
        if action >= self.record.action {
            if action > self.record.action || stop.is_some() {
                self.record.reason = reason_of(&self.rules, &report.reason, stop);
            }
            if action > Action::Pass {
                self.record.direction = audit_direction(direction);
            }
            self.record.action = action;
        }
        self.record.dry_run |= report.dry_run && report.action > report.enforced;
        for passed in &report.findings {
            if self.record.findings.len() == FINDINGS_MAX {
                self.record.findings_dropped = self.record.findings_dropped.saturating_add(1);
                continue;
            }
            let finding = &passed.finding;
            let byte = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
            self.record.findings.push(FindingRecord {
                rule: self.rules.rule(finding.rule).id.as_ref().into(),
                category: finding.category.as_str().into(),
                action: audit_action(passed.action.into()),
                direction: Some(audit_direction(direction)),
                path: passed.path.as_str().into(),
                start: byte(passed.start),
                end: byte(passed.end),
                layers: finding.layers.iter().map(|l| l.name().into()).collect(),
                fingerprint: Some(finding.fingerprint.to_string().into()),
                allowed_by: passed.allowed_by.as_deref().map(Into::into),
            });
        }
        let dropped = self.record.findings_dropped;
        self.record.findings_dropped = dropped.saturating_add(report.findings_dropped);
    }

    /// What plugins found or changed: by the plugin's own word for it, never by its text.
    fn add_marks(&mut self, direction: Direction, doc: &Document, report: &Report) {
        let places = Places::of(doc);
        let masked: Vec<LeafId> = report
            .decision
            .marks
            .iter()
            .filter_map(|(_, mark)| places.leaf(mark.leaf))
            .collect();
        for (plugin, mark) in &report.decision.marks {
            if mark.action == PolicyAction::Ignore {
                continue;
            }
            if self.record.findings.len() == FINDINGS_MAX {
                self.record.findings_dropped = self.record.findings_dropped.saturating_add(1);
                continue;
            }
            let path = match places.leaf(mark.leaf) {
                Some(leaf) => doc.path_masked(leaf, &masked).to_string(),
                None => "header".to_owned(),
            };
            self.record.findings.push(FindingRecord {
                rule: format!("{plugin}/{}", mark.label).into(),
                category: "plugin".into(),
                action: audit_action(mark.action.into()),
                direction: Some(audit_direction(direction)),
                path: path.into(),
                start: mark.start,
                end: mark.end,
                layers: Vec::new(),
                fingerprint: None,
                allowed_by: None,
            });
        }
    }

    /// Method, tool and id, each masked if something was found in it.
    fn note_message(&mut self, doc: &Document, report: &Report) {
        let places = Places::of_findings(doc, &report.outcome);
        let text = |path: &[&str]| -> Option<Arc<str>> {
            let node = doc.get(path)?;
            let leaf = doc.leaf_of(node)?;
            if places.contains(&Place::Leaf(leaf)) {
                return Some(pipeline::MASKED.into());
            }
            let text = doc.leaf(leaf).text;
            Some(match report.outcome.over_budget {
                // Perhaps the scan did not come so far.
                Some(_) => pipeline::written(&self.rules, text).into(),
                None => text.into(),
            })
        };
        self.record.method = text(&["method"]).or_else(|| self.record.method.take());
        self.record.rpc_id = text(&["id"]);
        let tool = text(&["params", "name"]).or_else(|| text(&["params", "uri"]));
        self.record.tool = tool.or_else(|| self.record.tool.take());
    }

    /// Those that this is done about, or more.
    fn add_findings(
        &mut self,
        direction: Direction,
        doc: &Document,
        report: &Report,
        least: PolicyAction,
    ) {
        let places = Places::of(doc);
        let key_leaves: Vec<LeafId> = report
            .outcome
            .findings
            .iter()
            .filter_map(|f| match places.of_finding(f) {
                Place::Leaf(leaf) => Some(leaf),
                Place::Header(_) => None,
            })
            .collect();
        let hits = report.outcome.findings.iter().zip(&report.decision.hits);
        for (index, (finding, action)) in hits.enumerate() {
            if *action < least {
                continue;
            }
            if self.record.findings.len() == FINDINGS_MAX {
                self.record.findings_dropped = self.record.findings_dropped.saturating_add(1);
                continue;
            }
            let path = match places.of_finding(finding) {
                // A key may be the very thing that was found, here or further down the path.
                Place::Leaf(leaf) => doc.path_masked(leaf, &key_leaves).to_string(),
                Place::Header(index) => format!("header[{index}]"),
            };
            self.record.findings.push(FindingRecord {
                rule: self.rules.rule(finding.rule).id.as_ref().into(),
                category: finding.category.as_str().into(),
                action: audit_action((*action).into()),
                direction: Some(audit_direction(direction)),
                path: path.into(),
                start: finding.start,
                end: finding.end,
                layers: finding.layers.iter().map(|l| l.name().into()).collect(),
                fingerprint: Some(finding.fingerprint.to_string().into()),
                allowed_by: report
                    .decision
                    .allowed
                    .by(index)
                    .map(|line| line.to_string().into()),
            });
        }
    }

    /// The exchange was refused before policy.
    pub fn refused(&mut self, reason: &'static str) {
        self.record.action = Action::Refused;
        self.record.reason = Some(reason.into());
    }

    /// A message of the server is none that is accepted.
    pub fn dropped(&mut self, reason: &'static str) {
        self.refused(reason);
        self.record.direction = audit_log::Direction::ToClient;
        self.record.upstream = UpstreamOutcome::Answered;
    }

    /// The exchange ended by a fault. What policy did before stays on record if it was stricter.
    pub fn failed(&mut self, reason: &'static str, outcome: UpstreamOutcome) {
        self.upstream_done(outcome);
        if self.record.action < Action::Block {
            self.record.action = Action::Error;
            self.record.reason = Some(reason.into());
        }
    }

    /// Closes the record. Returns when the answer may be released.
    ///
    /// # Errors
    /// The log cannot keep a record that must be kept. Fails closed: the answer is held back.
    pub async fn close(
        mut self,
        gateway: &Gateway,
        snapshot: &Snapshot,
        server: &ServerEntry,
        status: u16,
    ) -> Result<(), NotAudited> {
        self.record.status = Some(status);
        if status == 499 && self.record.upstream == UpstreamOutcome::Cancelled {
            // What was decided stands, and this is how it ended.
            let ended = || BROKEN_OFF.into();
            self.record.reason.get_or_insert_with(ended);
        }
        self.record.latency_us.total = us(self.started);
        let latency = &self.record.latency_us;
        let seconds = |us: u64| us as f64 / 1e6;
        server.metrics().count(self.record.action);
        let allowed = self
            .record
            .findings
            .iter()
            .filter(|f| f.allowed_by.is_some());
        server.metrics().allowed.increment(allowed.count() as u64);
        server.metrics().remembered.increment(self.remembered);
        server.metrics().scan_seconds.record(seconds(latency.scan));
        server
            .metrics()
            .policy_seconds
            .record(seconds(latency.policy));
        server
            .metrics()
            .total_seconds
            .record(seconds(latency.total));
        if self.record.upstream != UpstreamOutcome::NotSent {
            server
                .metrics()
                .upstream_seconds
                .record(seconds(latency.upstream));
        }
        self.tell();
        let span = gateway.spans.as_ref().zip(self.span);
        let span = span.and_then(|(sink, ids)| Some((sink, ids.close(&mut self.record, status)?)));
        let kept = match snapshot.audit {
            AuditMode::Off => Ok(()),
            AuditMode::All => gateway.audit(self.record, true).await,
            AuditMode::Enforced => {
                let must = matches!(self.record.action, Action::Block | Action::Redact);
                gateway.audit(self.record, must).await
            }
        };
        if let Some((sink, mut span)) = span {
            span.error |= kept.is_err();
            sink.exchange(span);
        }
        kept
    }

    fn tell(&mut self) {
        let action = self.record.action;
        if action < Action::Warn || action == Action::Refused {
            return;
        }
        // Names come from the message, and a line of the log is no longer than a record.
        self.record.cap();
        let r = &self.record;
        // The rule that decided, and where none did the first of the strictest.
        let decided = r
            .reason
            .as_deref()
            .and_then(|why| why.strip_prefix("rule "));
        let strictest = || r.findings.iter().rev().max_by_key(|f| f.action);
        let rule = decided.or_else(|| strictest().map(|f| &*f.rule));
        tracing::warn!(
            audit_id = %r.id, tenant_id = %r.tenant, server_id = %r.server,
            method = r.method.as_deref(), tool = r.tool.as_deref(), action = r.action.as_str(),
            reason = r.reason.as_deref(), rule, dry_run = r.dry_run, "exchange"
        );
    }
}

fn reason(rules: &RuleSet, report: &Report, stop: Option<&Stop>) -> Option<Arc<str>> {
    reason_of(rules, &report.decision.reason, stop)
}

fn reason_of(
    rules: &RuleSet,
    reason: &dlp_policy::Reason,
    stop: Option<&Stop>,
) -> Option<Arc<str>> {
    let rule = match reason {
        dlp_policy::Reason::Rule(id) => Some(&*rules.rule(*id).id),
        _ => None,
    };
    match reason {
        dlp_policy::Reason::Evaluator(plugin, why)
            if matches!(stop, None | Some(Stop::Policy(_))) =>
        {
            let why = why.as_deref().map_or(String::new(), |r| format!(": {r}"));
            return Some(format!("plugin {plugin}{why}").into());
        }
        dlp_policy::Reason::EvaluatorFailed(plugin, error) => {
            return Some(format!("plugin {plugin} failed: {error}").into());
        }
        dlp_policy::Reason::OverBudget(bound) if matches!(stop, None | Some(Stop::Policy(_))) => {
            return Some(format!("{}: {bound}", reason.as_str()).into());
        }
        _ => {}
    }
    let word = stop.map_or(reason.as_str(), Stop::as_str);
    match (word, rule) {
        ("clean", _) => None,
        ("rule", Some(rule)) => Some(format!("rule {rule}").into()),
        (word, _) => Some(word.into()),
    }
}

fn audit_action(action: dlp_policy::Action) -> Action {
    match action {
        dlp_policy::Action::Pass => Action::Pass,
        dlp_policy::Action::Log => Action::Log,
        dlp_policy::Action::Warn => Action::Warn,
        dlp_policy::Action::Redact => Action::Redact,
        dlp_policy::Action::Block => Action::Block,
    }
}

fn audit_direction(direction: Direction) -> audit_log::Direction {
    match direction {
        Direction::ToServer => audit_log::Direction::ToServer,
        Direction::ToClient => audit_log::Direction::ToClient,
    }
}

fn us(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn now_unix_us() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}
