//! Carries a redaction out so that what leaves is still valid, or says that it cannot.
//!
//! Afterwards the result is parsed and scanned once more: a redaction that leaves a value behind
//! (or makes a new one by joining its surroundings) is a block, not a hope.

use base64::Engine as _;
use bytes::Bytes;
use dlp_policy::Decision;
use dlp_scan::{Finding, Outcome};
use domain::{Direction, PolicyAction};
use mcp_codec::{Document, Edits, LeafId, LeafKind, Message};

use super::judge::Judge;
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
const PROTECTED: &[&[&str]] = &[
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

pub(super) fn redact(
    direction: Direction,
    message: &Message,
    headers: &[HeaderLeaf],
    outcome: &Outcome,
    decision: &Decision,
    judge: &Judge<'_>,
) -> Redaction {
    let doc = message.doc();
    let marked = outcome.findings.iter().zip(decision.hits.iter());
    let marked = marked
        .filter(|(_, action)| **action == PolicyAction::Redact)
        .map(|(f, _)| f);
    let mut new_headers = headers.to_vec();
    let edits = match mark(doc, marked, &mut new_headers, judge) {
        Ok(edits) => edits,
        Err(stop) => return Redaction::Impossible(stop),
    };
    // Read again as a whole message: an edit may not make another one of it.
    let Ok(redacted) = message.edited(&edits) else {
        return Redaction::Impossible(Stop::Unredactable);
    };
    let redacted = redacted.doc();
    mirror_headers(doc, redacted, headers, &mut new_headers);
    if still_found(direction, redacted, &new_headers, judge) {
        return Redaction::Impossible(Stop::Unredactable);
    }
    if !schema_holds(direction, doc, redacted, judge) {
        return Redaction::Impossible(Stop::SchemaInvalid);
    }
    Redaction::Done {
        bytes: redacted.to_bytes(),
        headers: new_headers,
    }
}

fn mark<'f>(
    doc: &Document,
    findings: impl Iterator<Item = &'f Finding>,
    headers: &mut [HeaderLeaf],
    judge: &Judge<'_>,
) -> Result<Edits, Stop> {
    let protected: Vec<LeafId> = PROTECTED
        .iter()
        .filter_map(|path| doc.leaf_of(doc.get(path)?))
        .collect();
    let places = Places::of(doc);
    let mut edits = Edits::new();
    for (nth, finding) in findings.enumerate() {
        let rule = judge.rules.rule(finding.rule);
        match places.of_finding(finding) {
            Place::Header(index) => {
                headers[index].value = placeholder(&rule.id).into();
            }
            Place::Leaf(leaf) if protected.contains(&leaf) => return Err(Stop::Unredactable),
            Place::Leaf(leaf) => mark_leaf(doc, leaf, finding, &rule.id, nth, &mut edits),
        }
    }
    Ok(edits)
}

fn mark_leaf(
    doc: &Document,
    leaf: LeafId,
    finding: &Finding,
    rule: &str,
    nth: usize,
    edits: &mut Edits,
) {
    let at = doc.leaf(leaf);
    let range = finding.start as usize..finding.end as usize;
    match at.kind {
        // Several keys of one object may be redacted; each needs its own name.
        LeafKind::Key => edits.replace(leaf, range, &format!("[REDACTED:{rule}:{}]", nth + 1)),
        LeafKind::String if is_blob(at.name) && !finding.layers.is_empty() => {
            let text = base64::engine::general_purpose::STANDARD.encode(placeholder(rule));
            edits.replace(leaf, 0..at.text.len(), &text);
        }
        _ => edits.replace(leaf, range, &placeholder(rule)),
    }
}

/// What stands in the place of a value. No rule matches it; the rules' own tests see to that.
fn placeholder(rule: &str) -> String {
    format!("[REDACTED:{rule}]")
}

/// Members whose value the specification declares as base64 (`format: byte`).
fn is_blob(name: Option<&str>) -> bool {
    matches!(name, Some("blob" | "data"))
}

/// `Mcp-Param-*` repeat arguments: where the argument was redacted, the header says the same.
fn mirror_headers(before: &Document, after: &Document, old: &[HeaderLeaf], new: &mut [HeaderLeaf]) {
    for (old, new) in old.iter().zip(new) {
        if !old.name.starts_with("mcp-param-") {
            continue;
        }
        let twin = before
            .leaves()
            .zip(after.leaves())
            .find(|(b, a)| b.kind != LeafKind::Key && b.text == &*old.value && a.text != b.text);
        if let Some((_, after)) = twin {
            new.value = after.text.into();
        }
    }
}

fn still_found(
    direction: Direction,
    doc: &Document,
    headers: &[HeaderLeaf],
    judge: &Judge<'_>,
) -> bool {
    let outcome = scan_leaves(doc, headers, judge);
    let actions = judge.actions(direction);
    outcome.over_budget.is_some()
        || outcome
            .findings
            .iter()
            .any(|f| actions.action(f.rule) >= PolicyAction::Redact)
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
