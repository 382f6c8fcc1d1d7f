//! Entries that are left out of a list, where the list as a whole would be blocked for them.
//!
//! One tool with a poisoned description shall not take away the forty beside it. What is left goes through the whole line
//! again as a message of its own, so nothing goes on that was not judged as it stands.

use std::collections::HashSet;

use bytes::Bytes;
use dlp_policy::Reason;
use domain::{Direction, PolicyAction};
use mcp_codec::{Edits, Kind, Limits, Message, Node};

use super::attribute::Tie;
use super::trail::Trail;
use crate::pipeline::{Blocked, Decoded, HeaderLeaf, Place, Places, Stop, ToClient};

/// How often what is left of one list is judged again.
const ROUNDS_MAX: usize = 3;

/// What is left out of one answer.
pub(super) struct LeftOut {
    /// The member of the result that is a list; none where the answer is no list.
    list: Option<&'static str>,
    headers: Vec<HeaderLeaf>,
    /// The entries, as they came.
    entries: HashSet<Bytes>,
    rounds: usize,
}

impl LeftOut {
    /// Of the last word of a call.
    pub(super) fn of(tie: &Tie, headers: &[HeaderLeaf]) -> Self {
        let list = tie.call.as_ref().and_then(|call| list_of(&call.method));
        let headers = list.map(|_| headers.to_vec());
        Self {
            list,
            headers: headers.unwrap_or_default(),
            entries: HashSet::new(),
            rounds: 0,
        }
    }

    /// Of an answer that nothing is left out of.
    pub(super) fn nothing() -> Self {
        Self {
            list: None,
            headers: Vec::new(),
            entries: HashSet::new(),
            rounds: 0,
        }
    }

    /// The rest of a list that is blocked for some of its entries, to be judged again. `None`: the answer is blocked as it is.
    pub(super) fn rest(
        &mut self,
        blocked: &Blocked<ToClient>,
        trail: &mut Trail,
        codec: &Limits,
    ) -> Option<Decoded<ToClient>> {
        let list = self.list.filter(|_| self.rounds < ROUNDS_MAX)?;
        self.rounds += 1;
        let (entries, rest) = split(blocked, list, codec)?;
        let doc = blocked.message.doc();
        let raw = |entry: Node| Bytes::copy_from_slice(doc.raw(entry));
        self.entries.extend(entries.into_iter().map(raw));
        trail.left_out(Direction::ToClient, doc, &blocked.report);
        Some(Decoded::new(rest, self.headers.clone()))
    }

    /// Whatever is left out, each as it came.
    pub(super) fn entries(&self) -> &HashSet<Bytes> {
        &self.entries
    }
}

/// The member of a result that lists something, by the method that asks for it.
fn list_of(method: &str) -> Option<&'static str> {
    match method {
        "tools/list" => Some("tools"),
        "prompts/list" => Some("prompts"),
        "resources/list" => Some("resources"),
        "resources/templates/list" => Some("resourceTemplates"),
        _ => None,
    }
}

/// The entries that a list is blocked for, and the answer without them. `None` where something else is blocked, too, and where
/// nothing would be left to show.
fn split(blocked: &Blocked<ToClient>, list: &str, codec: &Limits) -> Option<(Vec<Node>, Message)> {
    let Stop::Policy(Reason::Rule(_)) = blocked.stop else {
        return None;
    };
    let doc = blocked.message.doc();
    let array = doc.get(&["result", list])?;
    if doc.kind(array) != Kind::Array {
        return None;
    }
    let spans: Vec<_> = doc.elements(array).map(|e| (e, doc.raw_span(e))).collect();
    let places = Places::of(doc);
    let report = &blocked.report;
    let hits = report.outcome.findings.iter().zip(&report.decision.hits);
    let hits = hits.filter(|(_, action)| **action == PolicyAction::Block);
    let mut entries = Vec::new();
    for (finding, _) in hits {
        let Place::Leaf(leaf) = places.of_finding(finding) else {
            return None;
        };
        let at = doc.raw_span(doc.leaf(leaf).node).start;
        // They are in the order of the text.
        let index = spans.partition_point(|(_, span)| span.end <= at);
        let (entry, _) = spans.get(index).filter(|(_, span)| span.contains(&at))?;
        entries.push(*entry);
    }
    entries.sort_unstable();
    entries.dedup();
    let more_follows = doc
        .get(&["result", "nextCursor"])
        .is_some_and(|cursor| doc.kind(cursor) != Kind::Null);
    if entries.is_empty() || entries.len() == spans.len() && !more_follows {
        return None;
    }
    let mut edits = Edits::new();
    entries.iter().for_each(|entry| edits.remove(*entry));
    let bytes = doc.edit(&edits).ok()?;
    Some((entries, Message::decode(bytes, codec).ok()?))
}
