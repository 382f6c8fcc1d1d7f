//! The stages of a message as types: decode, scan, policy, decide.
//!
//! Each stage consumes the one before it, so none can be skipped and nothing awaits in between:
//!
//! ```text
//! bytes -> Decoded<W> -> Scanned<W> -> Decided<W> -> Cleared<W>  (may be sent, and only the way W)
//!                                                 \-> Blocked<W>  (is answered instead)
//! ```
//!
//! [`Cleared`] has no constructor outside this file. The functions that write to an upstream take
//! `Cleared<ToServer>`, those that write to a client take `Cleared<ToClient>`: forwarding something
//! that was not scanned does not compile.

use std::marker::PhantomData;
use std::time::Instant;

use bytes::Bytes;
use dlp_policy::{Action, Decision};
use dlp_scan::{Budget, LeafInput, LeafKind, Outcome, Outline, Scanner, Step};
use domain::{Direction, PolicyAction};
use mcp_codec::{Document, EditError, Edits, Id, Leaf, LeafId, Message};

use super::judge::Judge;
use super::plugins;
use super::redact::{self, Redaction};
use super::remembered::{self, Handles};
use super::said::{Said, Taken};
use super::scratch;
use super::stop::Stop;
use crate::reply::Own;

/// A way a message can go.
pub trait Way: Send + Sync + 'static {
    /// The same as a value.
    const DIRECTION: Direction;
}

/// From the client to the server.
#[derive(Debug, Clone, Copy)]
pub struct ToServer;

/// From the server to the client.
#[derive(Debug, Clone, Copy)]
pub struct ToClient;

impl Way for ToServer {
    const DIRECTION: Direction = Direction::ToServer;
}

impl Way for ToClient {
    const DIRECTION: Direction = Direction::ToClient;
}

/// A header that is scanned with the message it came with.
#[derive(Debug, Clone)]
pub struct HeaderLeaf {
    /// Lower-case name.
    pub name: Box<str>,
    /// Value with the base64 sentinel undone.
    pub value: Box<str>,
}

/// The name of a leaf that may go as it is or not at all. No header has a space in its name.
const FIXED: &str = "fixed text";

impl HeaderLeaf {
    /// Text of the head that is scanned but cannot be redacted: the name of a header, or what would mean another
    /// thing if it were changed.
    pub fn fixed(text: &str) -> Self {
        Self {
            name: FIXED.into(),
            value: text.into(),
        }
    }

    /// Whether this is such a text, and no header that could be sent.
    pub fn is_fixed(&self) -> bool {
        &*self.name == FIXED
    }
}

/// What each stage took, in microseconds, and why one took so little.
#[derive(Debug, Clone, Copy, Default)]
pub struct StageTimes {
    /// Scanning.
    pub scan_us: u64,
    /// Policy, decision and rewriting.
    pub policy_us: u64,
    /// The same message was clean before, so it was not scanned again.
    pub remembered: bool,
}

/// A strictly parsed message that nobody has looked at.
#[derive(Debug)]
pub struct Decoded<W> {
    message: Message,
    headers: Vec<HeaderLeaf>,
    way: PhantomData<W>,
}

impl<W: Way> Decoded<W> {
    /// Takes a parsed message and the headers to be judged with it.
    pub fn new(message: Message, headers: Vec<HeaderLeaf>) -> Self {
        Self {
            message,
            headers,
            way: PhantomData,
        }
    }

    /// The message, for routing. Reading it clears nothing.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Looks at every leaf and every header.
    pub fn scan(self, judge: &Judge<'_>) -> Scanned<W> {
        let started = Instant::now();
        let (outcome, remembered) =
            scan_leaves(W::DIRECTION, self.message.doc(), &self.headers, judge);
        Scanned {
            message: self.message,
            headers: self.headers,
            outcome,
            times: StageTimes {
                scan_us: elapsed_us(started),
                policy_us: 0,
                remembered,
            },
            way: PhantomData,
        }
    }
}

/// A message with its findings.
#[derive(Debug)]
pub struct Scanned<W> {
    message: Message,
    headers: Vec<HeaderLeaf>,
    outcome: Outcome,
    times: StageTimes,
    way: PhantomData<W>,
}

impl<W: Way> Scanned<W> {
    /// Merges what policy says about each finding into one decision.
    pub fn decide(self, judge: &Judge<'_>) -> Decided<W> {
        let started = Instant::now();
        let mut decision = judge.decide(W::DIRECTION, self.message.doc(), &self.outcome);
        let (message, headers) = (&self.message, &self.headers);
        plugins::ask(
            W::DIRECTION,
            message,
            headers,
            &self.outcome,
            &mut decision,
            judge,
        );
        let mut times = self.times;
        times.policy_us = elapsed_us(started);
        Decided {
            message: self.message,
            headers: self.headers,
            outcome: self.outcome,
            decision,
            times,
            way: PhantomData,
        }
    }
}

/// A message with the decision about it.
#[derive(Debug)]
pub struct Decided<W> {
    message: Message,
    headers: Vec<HeaderLeaf>,
    outcome: Outcome,
    decision: Decision,
    times: StageTimes,
    way: PhantomData<W>,
}

/// What came out of the line.
#[derive(Debug)]
pub enum Release<W> {
    /// May be sent.
    Cleared(Cleared<W>),
    /// Must be answered instead.
    Blocked(Blocked<W>),
}

impl<W> Release<W> {
    /// What the message says to whoever it goes to, for the judge of the next one. Nothing once the report is out.
    pub(crate) fn said(&self) -> Said {
        match self {
            Self::Cleared(cleared) => match (&cleared.message, &cleared.report) {
                (Some(message), Some(report)) => Said::of(message.doc(), report.taken_out()),
                _ => Said::default(),
            },
            Self::Blocked(blocked) => {
                Said::of_stopped(blocked.message.doc(), blocked.report.taken_out())
            }
        }
    }
}

impl<W: Way> Decided<W> {
    /// Carries the decision out: lets pass, redacts, or blocks.
    pub fn release(self, judge: &Judge<'_>) -> Release<W> {
        let started = Instant::now();
        let verdict = self.carry_out(judge);
        let mut times = self.times;
        times.policy_us += elapsed_us(started);
        let report = Report {
            outcome: self.outcome,
            decision: self.decision,
            times,
            forwarded_bytes: verdict.as_ref().map_or(0, |v| v.bytes.len()),
        };
        match verdict {
            Ok(Verdict { bytes, headers }) => Release::Cleared(Cleared {
                bytes,
                headers,
                message: Some(self.message),
                report: Some(Box::new(report)),
                way: PhantomData,
            }),
            Err(stop) => Release::Blocked(Blocked {
                message: self.message,
                stop,
                report: Box::new(report),
                way: PhantomData,
            }),
        }
    }

    fn carry_out(&self, judge: &Judge<'_>) -> Result<Verdict, Stop> {
        match self.decision.enforced {
            Action::Block => Err(Stop::Policy(self.decision.reason.clone())),
            Action::Redact => {
                let redaction = redact::redact(
                    W::DIRECTION,
                    &self.message,
                    &self.headers,
                    &self.outcome,
                    &self.decision,
                    judge,
                );
                match redaction {
                    Redaction::Done { bytes, headers } => Ok(Verdict { bytes, headers }),
                    Redaction::Impossible(stop) => Err(stop),
                }
            }
            _ => Ok(Verdict {
                bytes: self.message.doc().to_bytes(),
                headers: self.headers.clone(),
            }),
        }
    }
}

struct Verdict {
    bytes: Bytes,
    headers: Vec<HeaderLeaf>,
}

/// What the line found, decided and took; goes into the audit record.
#[derive(Debug)]
pub struct Report {
    /// The findings.
    pub outcome: Outcome,
    /// The decision.
    pub decision: Decision,
    /// The time each stage took.
    pub times: StageTimes,
    /// Bytes released; 0 when blocked.
    pub forwarded_bytes: usize,
}

impl Report {
    /// What does not go on as it came: values found by rules, and what plugins object to.
    fn taken_out(&self) -> Vec<Taken> {
        if self.decision.enforced < Action::Redact {
            return Vec::new();
        }
        let taken = |action: PolicyAction| action >= PolicyAction::Redact;
        let found = self.outcome.findings.iter().zip(&self.decision.hits);
        let found = found.filter(|(_, action)| taken(**action));
        let marked = self.decision.marks.iter().map(|(_, mark)| mark);
        let marked = marked.filter(|mark| taken(mark.action));
        found
            .map(|(finding, _)| (finding.leaf, finding.start..finding.end))
            .chain(marked.map(|mark| (mark.leaf, mark.start..mark.end)))
            .collect()
    }
}

/// Bytes that went through the whole line and may be sent the way `W`.
///
/// ```compile_fail,E0451
/// // A forward of something unscanned does not compile: the fields are private ...
/// use gateway::pipeline::{Cleared, ToServer};
/// let forged: Cleared<ToServer> = Cleared {
///     bytes: bytes::Bytes::from_static(b"{}"),
///     headers: Vec::new(),
///     message: None,
///     report: None,
///     way: std::marker::PhantomData,
/// };
/// ```
///
/// ```compile_fail,E0308
/// // ... and what was cleared one way cannot be sent the other.
/// use gateway::pipeline::{Cleared, ToClient, ToServer};
/// fn send_up(_: Cleared<ToServer>) {}
/// fn forward(answer: Cleared<ToClient>) {
///     send_up(answer);
/// }
/// ```
#[derive(Debug)]
pub struct Cleared<W> {
    bytes: Bytes,
    headers: Vec<HeaderLeaf>,
    message: Option<Message>,
    report: Option<Box<Report>>,
    way: PhantomData<W>,
}

impl<W: Way> Cleared<W> {
    /// The bytes to send: Weir's own serialisation of what was scanned.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The headers that were scanned with it, redacted where need be.
    pub fn headers(&self) -> &[HeaderLeaf] {
        &self.headers
    }

    /// The message as it came, for routing and attribution; absent for Weir's own words.
    pub fn message(&self) -> Option<&Message> {
        self.message.as_ref()
    }

    /// Keeps only what is to be sent.
    pub(crate) fn forget_message(&mut self) {
        self.message = None;
    }

    /// It was sent.
    pub(crate) fn sent(&mut self) {
        self.message = None;
        self.bytes = Bytes::new();
    }

    /// Takes the report out, for the audit record.
    pub fn take_report(&mut self) -> Option<Box<Report>> {
        self.report.take()
    }

    /// Replaces handles (ids, progress tokens) by others; it stays cleared.
    ///
    /// The new ones are integers of ours, or what the client itself sent and was scanned with its
    /// request, so nothing unscanned enters.
    ///
    /// # Errors
    /// What was cleared does not parse any more, which would be a defect of ours.
    pub(crate) fn put_handles(
        &mut self,
        changes: &[(&[&str], Id)],
        limits: &mcp_codec::Limits,
    ) -> Result<(), EditError> {
        let doc = self.read_again(limits)?;
        let mut edits = Edits::new();
        for (path, id) in changes {
            if let Some(node) = doc.get(path) {
                edits.replace_value(node, &id.to_json());
            }
        }
        if !edits.is_empty() {
            self.bytes = doc.edit(&edits)?;
        }
        Ok(())
    }

    /// Gives the receiver's own id to an error that has none.
    pub(crate) fn put_id(&mut self, id: &Id, limits: &mcp_codec::Limits) -> Result<(), EditError> {
        let doc = self.read_again(limits)?;
        let mut edits = Edits::new();
        match doc.get(&["id"]) {
            Some(node) => edits.replace_value(node, &id.to_json()),
            None => edits.insert_member(doc.root(), "id", &id.to_json()),
        };
        self.bytes = doc.edit(&edits)?;
        Ok(())
    }

    fn read_again(&self, limits: &mcp_codec::Limits) -> Result<Document, EditError> {
        // Redaction may have made it longer than a message may be that comes in.
        let limits = mcp_codec::Limits {
            bytes_max: limits.bytes_max.max(self.bytes.len()),
            ..*limits
        };
        Document::parse(self.bytes.clone(), &limits).map_err(|_| EditError::TooLarge)
    }
}

impl<W> Cleared<W> {
    /// Words of our own need no scan: they are built from fixed text, rule names and ids.
    pub(crate) fn of_ours(own: Own) -> Self {
        Self {
            bytes: own.into_bytes(),
            headers: Vec::new(),
            message: None,
            report: None,
            way: PhantomData,
        }
    }
}

impl Cleared<ToClient> {
    /// Answers as one batch.
    pub(crate) fn together(answers: &[Self]) -> Self {
        let parts: Vec<&[u8]> = answers.iter().map(|answer| &*answer.bytes).collect();
        let array = [b"[".as_slice(), &parts.join(&b','), b"]"].concat();
        Self {
            bytes: array.into(),
            headers: Vec::new(),
            message: None,
            report: None,
            way: PhantomData,
        }
    }
}

/// A message that goes no further, and why.
#[derive(Debug)]
pub struct Blocked<W> {
    /// The message.
    pub message: Message,
    /// What decided it.
    pub stop: Stop,
    /// For the audit record.
    pub report: Box<Report>,
    way: PhantomData<W>,
}

/// Scans all leaves of a document and the headers that came with it, unless the same were clean before; the second says whether.
/// An id or a progress token that is a short number is taken for one without digits (see `remembered`).
///
/// Findings with a leaf index at or above `doc.leaves().len()` are of headers.
pub(super) fn scan_leaves(
    direction: Direction,
    doc: &Document,
    headers: &[HeaderLeaf],
    judge: &Judge<'_>,
) -> (Outcome, bool) {
    let handles = Handles::of(doc);
    let leaves = doc
        .leaves()
        .map(|leaf| {
            let is_handle = leaf.kind == mcp_codec::LeafKind::Number && handles.have(leaf.node);
            if is_handle {
                empty_input(leaf)
            } else {
                leaf_input(leaf)
            }
        })
        .chain(headers.iter().map(header_input));
    let budget = budget_of(judge);
    let keeps = judge.keeps(direction);
    // What stands over a value is its column's name only in a table, and few messages have any.
    let mut outline = doc.has_rows().then(|| doc.outline().map(step_of));
    let outline = outline.as_mut().map(|steps| steps as Outline<'_>);
    let scan = |scanner: &mut Scanner| {
        scanner.scan_laid_out(judge.rules, leaves, outline, &budget, &keeps)
    };
    let (mut outcome, remembered) =
        remembered::unless_remembered(doc, &handles, headers, judge, &budget, || {
            scratch::with_scanner(scan)
        });
    if let Some(said) = judge.said {
        said.scan(direction, doc, judge, &budget, &mut outcome);
    }
    (outcome, remembered)
}

/// Whether these rules find anything in a text that is no part of a message. One that could not be looked through counts.
pub(crate) fn has_findings(rules: &dlp_scan::RuleSet, text: &str) -> bool {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let outcome = scratch::with_scanner(|scanner| {
        scanner.scan(rules, std::iter::once(leaf), &Budget::default())
    });
    outcome.over_budget.is_some() || !outcome.findings.is_empty()
}

/// What stands in the log and in records for text of a message that must not stand there.
pub(crate) const MASKED: &str = "[masked]";

/// A longer text is masked unread: whoever is refused shall not make work.
const WRITTEN_BYTES_MAX: usize = 256;

/// A text of a message as it may be written into the log, a record or a span where the message itself was not judged. What
/// policy would let pass is no measure: in a dry run that is everything.
pub(crate) fn written<'t>(rules: &dlp_scan::RuleSet, text: &'t str) -> &'t str {
    match text.len() <= WRITTEN_BYTES_MAX && !has_findings(rules, text) {
        true => text,
        false => MASKED,
    }
}

fn budget_of(judge: &Judge<'_>) -> Budget {
    Budget {
        decoded_bytes_max: u32::try_from(judge.limits.decoded_bytes_max).unwrap_or(u32::MAX),
        depth_max: u8::try_from(judge.limits.decode_depth_max).unwrap_or(u8::MAX),
        ..Budget::default()
    }
}

fn empty_input(leaf: Leaf<'_>) -> LeafInput<'_> {
    LeafInput {
        text: "",
        // An empty string would part the texts before and behind it.
        kind: LeafKind::Number,
        name: leaf.name,
    }
}

/// A leaf of a message as the scanner takes it.
pub fn leaf_input(leaf: Leaf<'_>) -> LeafInput<'_> {
    let kind = match leaf.kind {
        mcp_codec::LeafKind::Key => LeafKind::Key,
        mcp_codec::LeafKind::String => LeafKind::String,
        mcp_codec::LeafKind::Number => LeafKind::Number,
    };
    LeafInput {
        text: leaf.text,
        kind,
        name: leaf.name,
    }
}

fn step_of(step: mcp_codec::Step) -> Step {
    match step {
        mcp_codec::Step::Object => Step::Object,
        mcp_codec::Step::Array => Step::Array,
        mcp_codec::Step::Leaf => Step::Leaf,
        mcp_codec::Step::Other => Step::Other,
        mcp_codec::Step::End => Step::End,
    }
}

fn header_input(header: &HeaderLeaf) -> LeafInput<'_> {
    LeafInput {
        text: &header.value,
        kind: LeafKind::Header,
        name: Some(&header.name),
    }
}

/// Where a finding is: a leaf of the document or a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A leaf of the message.
    Leaf(LeafId),
    /// The n-th header.
    Header(usize),
}

/// Resolves the leaf indexes of findings. Made only for messages that have some.
#[derive(Debug)]
pub struct Places(Vec<LeafId>);

impl Places {
    /// The places of one message.
    pub fn of(doc: &Document) -> Self {
        Self(doc.leaves().map(|leaf| leaf.id).collect())
    }

    /// The places of all findings of one message; empty (and free) when there are none.
    pub fn of_findings(doc: &Document, outcome: &Outcome) -> Vec<Place> {
        if outcome.findings.is_empty() {
            return Vec::new();
        }
        let places = Self::of(doc);
        outcome
            .findings
            .iter()
            .map(|f| places.of_finding(f))
            .collect()
    }

    /// The leaf with this index; `None`: a header.
    pub fn leaf(&self, index: u32) -> Option<LeafId> {
        self.0.get(index as usize).copied()
    }

    /// The place of a finding.
    pub fn of_finding(&self, finding: &dlp_scan::Finding) -> Place {
        let index = finding.leaf as usize;
        match self.0.get(index) {
            Some(leaf) => Place::Leaf(*leaf),
            None => Place::Header(index - self.0.len()),
        }
    }
}

fn elapsed_us(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use dlp_policy::{Evaluators, PolicyTable};
    use dlp_scan::RuleSet;
    use domain::{Era, Limits, Policy, PolicyAction, PolicyBinding};

    use super::*;
    use crate::pipeline::{self, Attribution, Whose};

    /// What goes on where secrets are taken out.
    fn redacted<W: Way>(text: &str) -> String {
        let binding = PolicyBinding {
            tool: None,
            direction: None,
            category: Some("secret".into()),
            rule: None,
            action: PolicyAction::Redact,
            form: None,
        };
        let own = Policy {
            bindings: vec![binding],
            ..Policy::default()
        };
        let table = PolicyTable::compile(&Policy::default(), &own, RuleSet::builtin());
        let limits = Limits::default();
        let judge = Judge {
            rules: RuleSet::builtin(),
            tenant: "acme",
            policy: &table.expect("a policy"),
            limits: &limits,
            attribution: Attribution::NoTool,
            schemas: None,
            era: Era::Handshake,
            evaluators: &Evaluators::default(),
            whose: Whose::default(),
            said: None,
        };
        let message = Message::decode(text.to_owned().into(), &crate::codec_limits(&limits));
        let decoded = Decoded::<W>::new(message.expect("a message"), Vec::new());
        match pipeline::run(decoded, &judge) {
            Release::Cleared(cleared) => {
                String::from_utf8(cleared.bytes().to_vec()).expect("the text of a message")
            }
            Release::Blocked(_) => String::from("blocked"),
        }
    }

    #[test]
    fn what_stands_in_the_column_of_a_secret_is_taken_out() {
        let secret = "Xk9vQ2mZr7Lp";
        for table in [
            format!(r#"{{"columns":["id","password"],"rows":[[1,"{secret}"]]}}"#),
            format!(r#"{{"values":[["user_id","mail","password"],["x","y","{secret}"]]}}"#),
            format!(r#"{{"variables":[{{"name":"DB_PASSWORD","value":"{secret}"}}]}}"#),
        ] {
            let structured = |table: &str| {
                redacted::<ToClient>(&format!(
                    r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"structuredContent":{table}}}}}"#
                ))
            };
            let logged = |table: &str| {
                redacted::<ToClient>(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{table}}}}}"#
                ))
            };
            let asked = |table: &str| {
                redacted::<ToServer>(&format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"put","arguments":{table}}}}}"#
                ))
            };
            for sent in [structured(&table), logged(&table), asked(&table)] {
                let only = |word: &str| sent.matches(word).count() == table.matches(word).count();
                assert!(!sent.contains(secret) && sent != "blocked", "{sent}");
                assert!(
                    only("\"password\"") && only("\"x\"") && only("DB_"),
                    "{sent}"
                );
            }
            let harmless = table
                .replace("password", "city")
                .replace("PASSWORD", "CITY");
            assert!(structured(&harmless).contains(secret), "{harmless}");
        }
    }
}
