//! Carries a redaction out so that what leaves is still valid, or says that it cannot.
//!
//! Afterwards the result is parsed and scanned once more: a redaction that leaves a value behind
//! (or makes a new one by joining its surroundings) is a block, not a hope.

use std::collections::BTreeMap;
use std::ops::Range;

use base64::Engine as _;
use bytes::Bytes;
use dlp_policy::{ActionsRef, Decision};
use dlp_scan::{Finding, Layer, Outcome};
use domain::{Direction, PolicyAction, RedactForm};
use mcp_codec::{Document, Edits, LeafId, LeafKind, Message};

use super::forms::{self, FormKey, placeholder};
use super::judge::Judge;
use super::mirrored::mirror_headers;
use super::scratch;
use super::stage::{HeaderLeaf, Place, Places, scan_leaves};
use super::stop::Stop;

/// How a redaction went.
pub(super) enum Redaction {
    /// What may leave.
    Done {
        /// The message.
        bytes: Bytes,
        /// The headers that go with it.
        headers: Vec<HeaderLeaf>,
    },
    /// It cannot be redacted and still be a valid message.
    Impossible(Stop),
}

/// Places whose text steers the protocol: changing it would break the exchange or mean another call.
pub(super) const PROTECTED: &[&[&str]] = &[
    &["id"],
    &["jsonrpc"],
    &["method"],
    &["params", "name"],
    &["params", "uri"],
    &["params", "taskId"],
    &["params", "cursor"],
    &["params", "requestState"],
    &["params", "protocolVersion"],
    &["params", "requestId"],
    &["params", "progressToken"],
    &["params", "ref", "name"],
    &["params", "ref", "uri"],
    &["params", "_meta", "progressToken"],
    &["params", "_meta", "io.modelcontextprotocol/protocolVersion"],
    &["result", "protocolVersion"],
    &["result", "resultType"],
    &["result", "requestState"],
    &["result", "nextCursor"],
];

/// Redacts in the forms that policy names; where those leave something that a rule finds, or that the tool's schema
/// refuses, by placeholders alone.
pub(super) fn redact(
    direction: Direction,
    message: &Message,
    headers: &[HeaderLeaf],
    outcome: &Outcome,
    decision: &Decision,
    judge: &Judge<'_>,
) -> Redaction {
    let marked = outcome.findings.iter().zip(decision.hits.iter());
    let marked: Vec<&Finding> = marked
        .filter(|(_, action)| **action == PolicyAction::Redact)
        .map(|(f, _)| f)
        .collect();
    let actions = judge.actions(direction);
    let formed = marked
        .iter()
        .any(|f| actions.form(f.rule) != RedactForm::Placeholder);
    let work = Work {
        direction,
        message,
        headers,
        judge,
        decision,
        granted: Granted::by(direction, message, outcome, decision, judge),
    };
    if formed {
        let key = scratch::form_key(judge.tenant);
        let done = work.carry_out(&marked, Some((&actions, &key)));
        if matches!(done, Redaction::Done { .. }) {
            return done;
        }
    }
    work.carry_out(&marked, None)
}

/// The forms that policy names, and the tenant's key; none: placeholders.
type Forms<'a> = Option<(&'a ActionsRef, &'a FormKey)>;

/// One message to be redacted.
struct Work<'a> {
    direction: Direction,
    message: &'a Message,
    headers: &'a [HeaderLeaf],
    judge: &'a Judge<'a>,
    decision: &'a Decision,
    granted: Granted<'a>,
}

impl Work<'_> {
    fn carry_out(&self, marked: &[&Finding], forms: Forms<'_>) -> Redaction {
        let doc = self.message.doc();
        let mut headers = self.headers.to_vec();
        let mut plan = match self.plan(marked, &mut headers, forms) {
            Ok(plan) => plan,
            Err(stop) => return Redaction::Impossible(stop),
        };
        let (edits, made_up) = plan.edits(doc);
        // Read again as a whole message: an edit may not make another one of it.
        let Ok(redacted) = self.message.edited(&edits) else {
            return Redaction::Impossible(Stop::Unredactable);
        };
        let redacted = redacted.doc();
        mirror_headers(doc, redacted, self.headers, &mut headers);
        if self.still_found(redacted, &headers, &made_up) {
            return Redaction::Impossible(Stop::Unredactable);
        }
        if !schema_holds(self.direction, doc, redacted, self.judge) {
            return Redaction::Impossible(Stop::SchemaInvalid);
        }
        Redaction::Done {
            bytes: redacted.to_bytes(),
            headers,
        }
    }

    fn plan(
        &self,
        marked: &[&Finding],
        headers: &mut [HeaderLeaf],
        forms: Forms<'_>,
    ) -> Result<Plan, Stop> {
        let doc = self.message.doc();
        let protected: Vec<LeafId> = PROTECTED
            .iter()
            .filter_map(|path| doc.leaf_of(doc.get(path)?))
            .collect();
        let places = Places::of(doc);
        let mut plan = Plan::default();
        let mut texts = Texts::default();
        for (nth, finding) in marked.iter().enumerate() {
            let rule = &self.judge.rules.rule(finding.rule).id;
            match places.of_finding(finding) {
                Place::Header(index) if headers[index].is_fixed() => {
                    return Err(Stop::Unredactable);
                }
                Place::Header(index) => headers[index].value = placeholder(rule).into(),
                Place::Leaf(leaf) if protected.contains(&leaf) => return Err(Stop::Unredactable),
                Place::Leaf(leaf) => {
                    let change = change(doc, leaf, finding, rule, nth, forms, &mut texts);
                    plan.0.entry(leaf).or_default().push(change);
                }
            }
        }
        self.plan_for_plugins(&mut plan, headers, &protected, &places)?;
        Ok(plan)
    }

    /// What plugins want taken out or changed.
    fn plan_for_plugins(
        &self,
        plan: &mut Plan,
        headers: &mut [HeaderLeaf],
        protected: &[LeafId],
        places: &Places,
    ) -> Result<(), Stop> {
        let doc = self.message.doc();
        let marks = self.decision.marks.iter().map(|(_, mark)| mark);
        let marks = marks.filter(|mark| mark.action == PolicyAction::Redact);
        for (nth, mark) in marks.enumerate() {
            let Some(leaf) = places.leaf(mark.leaf) else {
                let header = (mark.leaf as usize).checked_sub(doc.leaves().len());
                let header = header.and_then(|index| headers.get_mut(index));
                let header = header.filter(|header| !header.is_fixed());
                let header = header.ok_or(Stop::Unredactable)?;
                header.value = match &mark.replacement {
                    Some(text) => text.to_string().into(),
                    None => placeholder(&mark.label).into(),
                };
                continue;
            };
            if protected.contains(&leaf) {
                return Err(Stop::Unredactable);
            }
            // Two keys of one object may not become the same.
            let plain = match doc.leaf(leaf).kind {
                LeafKind::Key => format!("[REDACTED:{}:p{}]", mark.label, nth + 1),
                _ => placeholder(&mark.label),
            };
            plan.0.entry(leaf).or_default().push(Change {
                range: mark.start as usize..mark.end as usize,
                text: mark
                    .replacement
                    .as_ref()
                    .map_or_else(|| plain.clone(), |text| text.to_string()),
                made_up: false,
                plain,
            });
        }
        Ok(())
    }

    fn still_found(&self, doc: &Document, headers: &[HeaderLeaf], made_up: &MadeUp) -> bool {
        let (outcome, _) = scan_leaves(self.direction, doc, headers, self.judge);
        if outcome.over_budget.is_some() {
            return true;
        }
        if outcome.findings.is_empty() {
            return false;
        }
        let decision = self.judge.decide(self.direction, doc, &outcome);
        let places = Places::of(doc);
        let hits = outcome.findings.iter().zip(&decision.hits);
        let mut left = hits.filter(|(finding, action)| {
            **action >= PolicyAction::Redact && !self.granted.has(finding)
        });
        left.any(|(finding, _)| {
            !made_up.explains(finding, places.of_finding(finding), doc, headers)
        })
    }
}

/// Findings that a plugin was allowed to let stand: they are found again, and that is no fault.
struct Granted<'a>(Vec<&'a Finding>);

impl<'a> Granted<'a> {
    fn by(
        direction: Direction,
        message: &Message,
        outcome: &'a Outcome,
        decision: &Decision,
        judge: &Judge<'_>,
    ) -> Self {
        if judge.evaluators.is_empty() || outcome.findings.is_empty() {
            return Self(Vec::new());
        }
        let before = judge.decide(direction, message.doc(), outcome);
        let hits = before.hits.iter().zip(&decision.hits);
        let loosened = outcome.findings.iter().zip(hits);
        let loosened = loosened.filter(|(_, (before, after))| after < before);
        Self(loosened.map(|(finding, _)| finding).collect())
    }

    /// In the same leaf, by the same rule, the same value.
    fn has(&self, found: &Finding) -> bool {
        let same = |f: &&Finding| {
            (f.leaf, f.rule, f.fingerprint) == (found.leaf, found.rule, found.fingerprint)
        };
        self.0.iter().any(same)
    }
}

/// What is changed, by leaf.
#[derive(Default)]
struct Plan(BTreeMap<LeafId, Vec<Change>>);

pub(super) struct Change {
    pub(super) range: Range<usize>,
    pub(super) text: String,
    pub(super) made_up: bool,
    /// What stands there if another change overlaps this one: of two values over each other no part is shown.
    pub(super) plain: String,
}

impl Plan {
    /// The changes as edits, overlapping ones as one, and where our own inventions will stand.
    fn edits(&mut self, doc: &Document) -> (Edits, MadeUp) {
        let (mut edits, mut made_up) = (Edits::new(), MadeUp::default());
        for (leaf, changes) in &mut self.0 {
            let is_text = doc.leaf(*leaf).kind == LeafKind::String;
            // How much longer the text became so far.
            let mut longer = 0isize;
            for change in joined(changes) {
                edits.replace(*leaf, change.range.clone(), &change.text);
                let start = change.range.start.saturating_add_signed(longer);
                if change.made_up && is_text {
                    made_up.0.push((*leaf, start..start + change.text.len()));
                }
                longer += change.text.len() as isize - change.range.len() as isize;
            }
        }
        (edits, made_up)
    }
}

/// Overlapping changes become one, by the first one's placeholder.
pub(super) fn joined(changes: &mut Vec<Change>) -> Vec<Change> {
    changes.sort_by_key(|c| c.range.start);
    let mut out: Vec<Change> = Vec::with_capacity(changes.len());
    for change in changes.drain(..) {
        match out.last_mut() {
            // Two rules for the very same place: the first one's form is as good as any.
            Some(last) if change.range == last.range => {}
            Some(last) if change.range.start < last.range.end => {
                last.range.end = last.range.end.max(change.range.end);
                last.text.clone_from(&last.plain);
                last.made_up = false;
            }
            _ => out.push(change),
        }
    }
    out
}

/// Where values of our own making stand in the redacted message.
#[derive(Default)]
struct MadeUp(Vec<(LeafId, Range<usize>)>);

impl MadeUp {
    /// Whether a finding in the redacted message is about such a value, and about nothing else.
    fn explains(
        &self,
        finding: &Finding,
        place: Place,
        doc: &Document,
        headers: &[HeaderLeaf],
    ) -> bool {
        let within = |range: &Range<usize>| {
            range.start <= finding.start as usize && finding.end as usize <= range.end
        };
        let mut known = self.0.iter().filter(|(_, range)| within(range));
        finding.layers.is_empty()
            && match place {
                Place::Leaf(leaf) => known.any(|(l, _)| *l == leaf),
                // A header that repeats the argument.
                Place::Header(i) => known.any(|(l, _)| doc.leaf(*l).text == &*headers[i].value),
            }
    }
}

fn change(
    doc: &Document,
    leaf: LeafId,
    finding: &Finding,
    rule: &str,
    nth: usize,
    forms: Forms<'_>,
    texts: &mut Texts<LeafId>,
) -> Change {
    let at = doc.leaf(leaf);
    let range = finding.start as usize..finding.end as usize;
    let in_text = at.kind == LeafKind::String && names_member(at.text, &range);
    if at.kind == LeafKind::Key || in_text {
        // Several keys of one object may be redacted; each needs its own name.
        let text = format!("[REDACTED:{rule}:{}]", nth + 1);
        return Change {
            range,
            plain: text.clone(),
            text,
            made_up: false,
        };
    }
    let value = at.text.get(range.clone()).unwrap_or_default();
    let forms::Replacement { text, made_up } = match forms {
        Some((actions, key)) => {
            forms::replacement(actions.form(finding.rule), value, finding, rule, key)
        }
        None => forms::Replacement {
            text: placeholder(rule),
            made_up: false,
        },
    };
    if at.kind == LeafKind::String && texts.is_blob(leaf, at.name, at.text, finding) {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        return Change {
            range: 0..at.text.len(),
            text: encode(&text),
            made_up: false,
            plain: encode(&placeholder(rule)),
        };
    }
    if let Some(range) = number_at(at.text, &range)
        && (is_member(at.text, range.start)
            || texts.is_json(leaf, at.text) && !texts.is_quoted(leaf, at.text, range.start))
    {
        return Change {
            range,
            text: NO_NUMBER.into(),
            made_up: false,
            plain: NO_NUMBER.into(),
        };
    }
    Change {
        range,
        text,
        made_up,
        plain: placeholder(rule),
    }
}

/// What stands for a number, so that its text is still JSON.
const NO_NUMBER: &str = "0";

/// Longest number that is looked at, in bytes.
const NUMBER_BYTES_MAX: usize = 64;

/// The whole number that the finding is about, where it stands as one does in JSON.
fn number_at(text: &str, found: &Range<usize>) -> Option<Range<usize>> {
    let of_number = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E');
    let (before, after) = (text.get(..found.start)?, text.get(found.end..)?);
    let (before, after) = (before.bytes().rev(), after.bytes());
    let start = before.take(NUMBER_BYTES_MAX).take_while(of_number).count();
    let end = after.take(NUMBER_BYTES_MAX).take_while(of_number).count();
    let range = found.start - start..found.end + end;
    let whole = text.get(range.clone())?.as_bytes();
    let follows = text[..range.start].trim_ascii_end().bytes().next_back();
    let precedes = text[range.end..].trim_ascii_start().bytes().next();
    (whole.iter().all(of_number)
        && whole.iter().any(u8::is_ascii_digit)
        && matches!(follows, None | Some(b':' | b',' | b'['))
        && matches!(precedes, None | Some(b',' | b'}' | b']')))
    .then_some(range)
}

/// Does a member's value begin there: `"card": `? So it does in lines of JSON, in JSON between other text and in a string of JSON,
/// where the quotation marks are escaped.
fn is_member(text: &str, at: usize) -> bool {
    let name = text[..at].trim_ascii_end().strip_suffix(':');
    name.is_some_and(|name| name.trim_ascii_end().ends_with('"'))
}

/// Is it the name of a member in a text that holds JSON? Two of one object may not become the same.
fn names_member(text: &str, found: &Range<usize>) -> bool {
    let (Some(before), Some(after)) = (text.get(..found.start), text.get(found.end..)) else {
        return false;
    };
    let rest = after.trim_start_matches('\\').strip_prefix('"');
    before.ends_with('"') && rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(':'))
}

/// What the texts of leaves are as a whole. Asked once for all findings of a leaf, which follow each other: a text of
/// megabytes may have a thousand.
pub(super) struct Texts<L> {
    base64: Option<(L, bool)>,
    json: Option<(L, bool)>,
    quoted: Option<(L, Quoted)>,
}

/// Whether a place of a JSON text lies in one of its strings, from its beginning on.
#[derive(Default)]
struct Quoted {
    upto: usize,
    is_open: bool,
    is_escaped: bool,
}

impl<L> Default for Texts<L> {
    fn default() -> Self {
        Self {
            base64: None,
            json: None,
            quoted: None,
        }
    }
}

impl<L: Copy + PartialEq> Texts<L> {
    /// Whether the finding lies in a member whose value the specification declares as base64 (`format: byte`), and
    /// whose value is that. (`data` is the name of much else.)
    pub(super) fn is_blob(
        &mut self,
        leaf: L,
        name: Option<&str>,
        text: &str,
        finding: &Finding,
    ) -> bool {
        let of_base64 = |b: u8| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n')
        };
        matches!(name, Some("blob" | "data"))
            && finding.layers.iter().next() == Some(Layer::Base64)
            && once(&mut self.base64, leaf, || text.bytes().all(of_base64))
    }

    fn is_json(&mut self, leaf: L, text: &str) -> bool {
        once(&mut self.json, leaf, || {
            text.trim_start().starts_with(['{', '['])
                && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
        })
    }

    /// Whether a place of a JSON text lies in a string of it. Findings come in order; of one that does not, nobody knows.
    fn is_quoted(&mut self, leaf: L, text: &str, at: usize) -> bool {
        let known = self.quoted.take().filter(|(of, _)| *of == leaf);
        let (_, quoted) = self
            .quoted
            .insert(known.unwrap_or((leaf, Quoted::default())));
        if at < quoted.upto {
            return true;
        }
        for b in text.as_bytes()[quoted.upto..at].iter() {
            let is_escaped = std::mem::take(&mut quoted.is_escaped);
            match b {
                b'"' if !is_escaped => quoted.is_open = !quoted.is_open,
                b'\\' => quoted.is_escaped = !is_escaped,
                _ => {}
            }
        }
        quoted.upto = at;
        quoted.is_open
    }
}

fn once<L: PartialEq>(
    last: &mut Option<(L, bool)>,
    leaf: L,
    answer: impl FnOnce() -> bool,
) -> bool {
    match last {
        Some((of, known)) if *of == leaf => *known,
        _ => last.insert((leaf, answer())).1,
    }
}

/// Whether the part that has a declared schema still satisfies it, if it did before.
fn schema_holds(
    direction: Direction,
    before: &Document,
    after: &Document,
    judge: &Judge<'_>,
) -> bool {
    let path: &[&str] = match direction {
        Direction::ToServer => &["params", "arguments"],
        Direction::ToClient => &["result", "structuredContent"],
    };
    let (Some(old), Some(new)) = (before.get(path), after.get(path)) else {
        return true;
    };
    if before.raw(old) == after.raw(new) {
        return true;
    }
    match judge.schemas {
        None => true,
        Some(schemas) => schemas.accepts(direction, after.raw(new)),
    }
}
