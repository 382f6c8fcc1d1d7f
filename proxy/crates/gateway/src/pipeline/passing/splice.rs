//! Writes what a step decided, with what is to be redacted taken out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use base64::Engine as _;
use dlp_policy::{ActionsRef, Decision};
use dlp_scan::{Budget, Finding, LeafInput, LeafKind, LeafStream, StreamStep};
use domain::{Direction, PolicyAction};
use mcp_codec::{push_escaped, push_string};

use super::intake::Tag;
use crate::pipeline::forms::{self, FormKey, placeholder};
use crate::pipeline::judge::Judge;
use crate::pipeline::redact::{Change, PROTECTED, Texts, joined};
use crate::pipeline::scratch;
use crate::pipeline::stop::Stop;

/// The changes of one step, by held leaf; sorted, and none over another.
pub(super) type Changes = BTreeMap<usize, Vec<Change>>;

/// One step of one message.
pub(super) struct Splice<'a> {
    pub(super) direction: Direction,
    pub(super) leaves: &'a LeafStream<Tag>,
    pub(super) step: &'a StreamStep,
    pub(super) decision: &'a Decision,
    pub(super) judge: &'a Judge<'a>,
    pub(super) budget: &'a Budget,
    /// Keys redacted so far: each gets a name of its own.
    pub(super) keys: usize,
}

impl Splice<'_> {
    /// What is to be changed, in the forms that policy names; where those leave something that a rule finds, by
    /// placeholders alone.
    pub(super) fn changes(&self) -> Result<Changes, Stop> {
        let actions = self.judge.actions(self.direction);
        let key = scratch::form_key(self.judge.tenant);
        let formed = self.plan(Some((&actions, &key)))?;
        if formed.is_empty() || self.holds(&formed) {
            return Ok(formed);
        }
        let plain = self.plan(None)?;
        if self.holds(&plain) {
            Ok(plain)
        } else {
            Err(Stop::Unredactable)
        }
    }

    fn plan(&self, forms: Option<(&ActionsRef, &FormKey)>) -> Result<Changes, Stop> {
        let mut changes = Changes::new();
        let hits = self.step.findings.iter().zip(&self.decision.hits);
        let marked = hits.filter(|(_, action)| **action == PolicyAction::Redact);
        let mut texts = Texts::default();
        for (nth, (finding, _)) in marked.enumerate() {
            let leaf = finding.leaf as usize;
            let change = self.change(leaf, finding, nth, forms, &mut texts)?;
            changes.entry(leaf).or_default().push(change);
        }
        for of_leaf in changes.values_mut() {
            *of_leaf = joined(of_leaf);
        }
        Ok(changes)
    }

    fn change(
        &self,
        leaf: usize,
        finding: &Finding,
        nth: usize,
        forms: Option<(&ActionsRef, &FormKey)>,
        texts: &mut Texts<usize>,
    ) -> Result<Change, Stop> {
        let tag = self.leaves.tag(leaf).ok_or(Stop::Unredactable)?;
        if PROTECTED.iter().any(|keys| tag.is_at(keys, false)) {
            return Err(Stop::Unredactable);
        }
        let typed: &[&str] = match self.direction {
            Direction::ToServer => &["params", "arguments"],
            Direction::ToClient => &["result", "structuredContent"],
        };
        let declared = |s: &crate::tools::ToolSchemas| s.declares(self.direction);
        if self.judge.schemas.is_some_and(declared) && tag.is_at(typed, true) {
            // Whether the value as a whole would still satisfy it cannot be said.
            return Err(Stop::SchemaInvalid);
        }
        let rule = &self.judge.rules.rule(finding.rule).id;
        let (text, range) = (
            self.leaves.text(leaf),
            finding.start as usize..finding.end as usize,
        );
        let plain = |range: Range<usize>, text: String| Change {
            range,
            plain: text.clone(),
            text,
            made_up: false,
        };
        match self.leaves.kind(leaf) {
            Some(LeafKind::Key) => {
                let nth = self.keys + nth + 1;
                return Ok(plain(range, format!("[REDACTED:{rule}:{nth}]")));
            }
            Some(LeafKind::Number) => return Ok(plain(0..text.len(), "0".into())),
            _ => {}
        }
        if texts.is_blob(leaf, self.leaves.name(leaf), text, finding) {
            // All of it or nothing: a part would not be base64.
            let is_whole = !tag.begun && leaf < self.step.to.leaf;
            let encoded = base64::engine::general_purpose::STANDARD.encode(placeholder(rule));
            return match is_whole {
                true => Ok(plain(0..text.len(), encoded)),
                false => Err(Stop::Unredactable),
            };
        }
        let Some((actions, key)) = forms else {
            return Ok(plain(range, placeholder(rule)));
        };
        let value = text.get(range.clone()).unwrap_or_default();
        let form = actions.form(finding.rule);
        let made = forms::replacement(form, value, finding, rule, key);
        Ok(Change {
            range,
            text: made.text,
            made_up: made.made_up,
            plain: placeholder(rule),
        })
    }

    /// Whether nothing that has to go is left, or made by joining its surroundings.
    fn holds(&self, changes: &Changes) -> bool {
        let mut made_up: Vec<(usize, Range<usize>)> = Vec::new();
        let texts: Vec<Cow<'_, str>> = (0..self.leaves.held())
            .map(|leaf| match changes.get(&leaf) {
                None => Cow::Borrowed(self.leaves.text(leaf)),
                Some(of_leaf) => Cow::Owned(changed(self.leaves.text(leaf), of_leaf, |range| {
                    made_up.push((leaf, range));
                })),
            })
            .collect();
        let inputs = self.leaves.inputs().zip(&texts);
        let inputs = inputs.map(|(input, text)| LeafInput { text, ..input });
        let keeps = self.judge.keeps(self.direction);
        let outcome = scratch::with_scanner(|scanner| {
            scanner.scan_for(self.judge.rules, inputs, self.budget, &keeps)
        });
        if outcome.over_budget.is_some() {
            return false;
        }
        let place = |finding: &Finding| {
            let tag = self.leaves.tag(finding.leaf as usize);
            tag.map_or_else(String::new, |tag| tag.path(false))
        };
        let decision = self.judge.decide_about(self.direction, &outcome, &place);
        let hits = outcome.findings.iter().zip(&decision.hits);
        let mut left = hits.filter(|(_, action)| **action >= PolicyAction::Redact);
        let stands = |finding: &Finding| {
            let (leaf, start) = (finding.leaf as usize, finding.start as usize);
            let within = |(l, range): &(usize, Range<usize>)| {
                *l == leaf && range.start <= start && finding.end as usize <= range.end
            };
            self.is_written(leaf, start, &texts[leaf])
                && !(finding.layers.is_empty() && made_up.iter().any(within))
        };
        !left.any(|(finding, _)| stands(finding))
    }

    /// Whether a place of a changed text is part of this step.
    fn is_written(&self, leaf: usize, start: usize, text: &str) -> bool {
        let (from, to) = (self.step.from, self.step.to);
        if leaf < from.leaf || leaf > to.leaf || leaf == from.leaf && start < from.byte {
            return false;
        }
        // What is held back of the last leaf is not changed, so it can be counted from its end.
        let held_back = self.leaves.text(leaf).len() - to.byte.min(self.leaves.text(leaf).len());
        leaf < to.leaf || start + held_back < text.len()
    }
}

/// `text` with the changes made; `made_up` is told where values of our own making stand in it.
fn changed(text: &str, changes: &[Change], mut made_up: impl FnMut(Range<usize>)) -> String {
    let (mut out, mut done) = (String::with_capacity(text.len()), 0);
    for change in changes {
        out.push_str(text.get(done..change.range.start).unwrap_or_default());
        let start = out.len();
        out.push_str(&change.text);
        if change.made_up {
            made_up(start..out.len());
        }
        done = change.range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// Writes everything that a step decided.
pub(super) fn write(
    leaves: &mut LeafStream<Tag>,
    step: &StreamStep,
    changes: &Changes,
    out: &mut Vec<u8>,
) {
    for leaf in step.from.leaf..=step.to.leaf {
        if leaf == step.to.leaf && step.to.byte == 0 {
            return;
        }
        let is_over = leaf < step.to.leaf;
        let from = if leaf == step.from.leaf {
            step.from.byte
        } else {
            0
        };
        let to = if is_over { usize::MAX } else { step.to.byte };
        let Some(tag) = leaves.tag_mut(leaf) else {
            return;
        };
        let opens = !std::mem::replace(&mut tag.begun, true);
        if opens {
            out.extend_from_slice(&std::mem::take(&mut tag.before));
        }
        let is_punctuation = tag.step.is_none();
        if is_punctuation {
            continue;
        }
        let text = leaves.text(leaf);
        let to = to.min(text.len());
        let none = Vec::new();
        let of_leaf = changes.get(&leaf).unwrap_or(&none);
        match leaves.kind(leaf) {
            Some(LeafKind::Number) => {
                let text = of_leaf.first().map_or(text, |change| &*change.text);
                out.extend_from_slice(text.as_bytes());
            }
            Some(LeafKind::Key) => push_string(out, &changed(text, of_leaf, |_| ())),
            _ => {
                if opens {
                    out.push(b'"');
                }
                let mut done = from;
                for change in of_leaf {
                    push_escaped(out, text.get(done..change.range.start).unwrap_or_default());
                    push_escaped(out, &change.text);
                    done = change.range.end;
                }
                push_escaped(out, text.get(done..to).unwrap_or_default());
                if is_over {
                    out.push(b'"');
                }
            }
        }
    }
}
