//! Why a text was, or was not, found: for people who write rules. Never on the data path.
//!
//! A scan keeps every text it looked at, the message and what was decoded out of it; here each rule is tried again on
//! them, one step at a time, and the step at which it gave up is told.

use crate::entropy::shannon;
use crate::gate::Hit;
use crate::rule::RuleId;
use crate::ruleset::load::Edge;
use crate::ruleset::{
    Action, Classes, Compiled, Kind, Need, Outline, RuleSet, SHAPE_BYTES_MAX, SHAPE_BYTES_MIN,
};
use crate::scanner::Kept;
use crate::text::Cell;
use crate::{Budget, LeafInput, LeafKind, Outcome, Scanner};

/// Near misses told; the rest is counted.
const NEAR_MAX: usize = 64;
/// Tries made; a text that needs more is too long to be explained.
const TRIES_MAX: usize = 200_000;

/// What a scan found, and what it nearly found.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The findings, as the data path has them.
    pub outcome: Outcome,
    /// The chains of encodings that were undone, each once; the text itself is the empty chain.
    pub layers: Vec<String>,
    /// Rules that were tried and gave up, those that came furthest first; each rule once for each chain.
    pub near: Vec<Near>,
}

/// A rule that was tried and gave up.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// The rule.
    pub rule: RuleId,
    /// The encodings that the text lay under, outermost first; empty for the text itself.
    pub layers: String,
    /// Byte in the decoded text where the rule was tried.
    pub at: usize,
    /// Why it gave up.
    pub miss: Miss,
}

/// The step at which a rule gave up, the first step first.
#[derive(Clone, Debug, PartialEq)]
pub enum Miss {
    /// A letter, digit or `_` (or what the rule's `before` forbids) stands right before.
    Before,
    /// The keyword is written in another case than the rule asks for.
    Case,
    /// The pattern does not match there.
    Pattern,
    /// The value given to the name does not look as the rule wants it, or there is none.
    Value,
    /// A letter, digit or `_` stands right after.
    After,
    /// None of the rule's words stands near.
    Context,
    /// The value is less random than the rule asks for.
    Entropy {
        /// Its bits for each byte.
        found: f32,
        /// What the rule asks for.
        min: f32,
    },
    /// It looks like a placeholder.
    Placeholder,
    /// A named check says no.
    Check(&'static str),
    /// Every step holds. The finding is there, or a surer or wider one covers it.
    Covered,
}

impl Miss {
    /// How far the rule came.
    fn step(&self) -> u8 {
        match self {
            Self::Before => 0,
            Self::Case => 1,
            Self::Pattern | Self::Value => 2,
            Self::After => 3,
            Self::Context => 4,
            Self::Entropy { .. } => 5,
            Self::Placeholder => 6,
            Self::Check(_) => 7,
            Self::Covered => 8,
        }
    }
}

/// Scans one text and says why.
pub fn explain(
    rules: &RuleSet,
    scanner: &mut Scanner,
    name: Option<&str>,
    text: &str,
) -> Explained {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name,
    };
    let (outcome, kept) = scanner.scan_keeping(rules, leaf, &Budget::default());
    let mut layers: Vec<String> = Vec::new();
    let mut tries = Tries {
        rules,
        left: TRIES_MAX,
        near: Vec::new(),
    };
    for text in &kept {
        if !layers.contains(&text.layers) {
            layers.push(text.layers.clone());
        }
        tries.keywords(text);
        tries.numbers(text);
    }
    let mut near = tries.near;
    let found = |n: &Near| outcome.findings.iter().any(|f| f.rule == n.rule);
    near.retain(|n| !found(n));
    near.sort_by_key(|n| (std::cmp::Reverse(n.miss.step()), n.rule, n.at));
    near.truncate(NEAR_MAX);
    Explained {
        outcome,
        layers,
        near,
    }
}

struct Tries<'a> {
    rules: &'a RuleSet,
    left: usize,
    near: Vec<Near>,
}

impl Tries<'_> {
    fn keywords(&mut self, kept: &Kept) {
        let mut hits: Vec<Hit> = Vec::new();
        self.rules.gates.all_hits(&kept.text, &mut hits);
        for hit in hits {
            let at = hit.at as usize;
            let Some(cell) = cell_at(kept, at) else {
                continue;
            };
            for action in &self.rules.actions[usize::from(hit.keyword)] {
                let Action::Try(rule) = *action else {
                    continue;
                };
                if self.spend() {
                    let miss = self.tried(kept, rule, at, cell);
                    self.note(kept, rule, at, miss);
                }
            }
        }
    }

    fn tried(&self, kept: &Kept, rule: RuleId, at: usize, cell: &Cell) -> Miss {
        let compiled = self.rules.compiled(rule);
        let text = &kept.text;
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        match compiled.kind {
            Kind::Token {
                before,
                after_any,
                ahead,
            } => {
                if !free_before(before, text, at, floor) {
                    return Miss::Before;
                }
                let cased = &compiled.cased;
                if !cased.is_empty() && !cased.iter().any(|k| text[at..ceil].starts_with(k)) {
                    return Miss::Case;
                }
                let end = ceil.min(at + ahead as usize);
                let Some((whole, value)) = find(compiled, text, at..end, true) else {
                    return Miss::Pattern;
                };
                if !after_any && whole.end < ceil && is_word(text[whole.end]) {
                    return Miss::After;
                }
                judge(compiled, &text[value])
            }
            Kind::Text { back, ahead } => {
                let start = at.saturating_sub(back as usize).max(floor);
                let end = ceil.min(at + ahead as usize);
                let Some((_, value)) = find(compiled, text, start..end, false) else {
                    return Miss::Pattern;
                };
                if !near_words(self.rules, compiled, kept, start, end, cell) {
                    return Miss::Context;
                }
                judge(compiled, &text[value])
            }
            Kind::Assign { .. } => Miss::Value,
            _ => Miss::Pattern,
        }
    }

    /// Every run of characters that has the shape of a number rule.
    fn numbers(&mut self, kept: &Kept) {
        let text = &kept.text;
        for cell in kept.cells.iter().filter(|c| c.kind != LeafKind::Key) {
            let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
            for at in floor..ceil {
                let begins = text[at].is_ascii_alphanumeric() || text[at] == b'(';
                if !begins || at > floor && is_word(text[at - 1]) {
                    continue;
                }
                for len in SHAPE_BYTES_MIN..=SHAPE_BYTES_MAX.min(ceil - at) {
                    let end = at + len;
                    if end < ceil && is_word(text[end]) {
                        continue;
                    }
                    self.shaped(kept, at..end, cell);
                }
            }
        }
    }

    fn shaped(&mut self, kept: &Kept, range: std::ops::Range<usize>, cell: &Cell) {
        let rules = self.rules;
        let value = &kept.text[range.clone()];
        let classes = Classes::of(value);
        let outline = Outline::of(value, classes.letters & 1 != 0);
        for shape in rules.shapes.of(value, outline, classes) {
            for rule in shape.rules().0 {
                if !self.spend() {
                    return;
                }
                let compiled = rules.compiled(*rule);
                let needs = matches!(
                    compiled.kind,
                    Kind::Number {
                        need: Need::Context | Need::ContextOrAlone
                    }
                );
                let checked = checks(compiled, value);
                let miss = match checked {
                    None if needs
                        && !near_words(rules, compiled, kept, range.start, range.end, cell) =>
                    {
                        Miss::Context
                    }
                    None => Miss::Covered,
                    Some(miss) => miss,
                };
                self.note(kept, *rule, range.start, miss);
            }
        }
    }

    fn spend(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    /// Keeps the furthest try of a rule under each chain.
    fn note(&mut self, kept: &Kept, rule: RuleId, at: usize, miss: Miss) {
        let same = |n: &&mut Near| n.rule == rule && n.layers == kept.layers;
        match self.near.iter_mut().find(same) {
            Some(near) if near.miss.step() < miss.step() => (near.at, near.miss) = (at, miss),
            Some(_) => {}
            None => self.near.push(Near {
                rule,
                layers: kept.layers.clone(),
                at,
                miss,
            }),
        }
    }
}

/// What is asked of a value that the pattern matched.
fn judge(compiled: &Compiled, value: &[u8]) -> Miss {
    let proven = compiled
        .checks
        .iter()
        .any(|c| c.proves && c.raw && (c.run)(value));
    let found = shannon(value);
    if !proven && compiled.entropy_min > 0.0 && found < compiled.entropy_min {
        return Miss::Entropy {
            found,
            min: compiled.entropy_min,
        };
    }
    if !proven && compiled.placeholder(value) {
        return Miss::Placeholder;
    }
    checks(compiled, value).unwrap_or(Miss::Covered)
}

/// The first check that says no.
fn checks(compiled: &Compiled, value: &[u8]) -> Option<Miss> {
    let mut compact = Vec::new();
    crate::check::compact(value, &mut compact);
    let mut all = compiled.checks.iter();
    all.find(|c| !(c.run)(if c.raw { value } else { &compact }))
        .map(|c| Miss::Check(c.name))
}

fn find(
    compiled: &Compiled,
    text: &[u8],
    range: std::ops::Range<usize>,
    anchored: bool,
) -> Option<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    use regex_automata::{Anchored, Input};
    let regex = compiled.pattern.as_ref()?.regex()?;
    let anchored = if anchored {
        Anchored::Yes
    } else {
        Anchored::No
    };
    let mut caps = regex.create_captures();
    regex.search_captures(&Input::new(text).range(range).anchored(anchored), &mut caps);
    let whole = caps.get_match()?.range();
    let group = (1..caps.group_len()).find_map(|i| caps.get_group(i));
    let value = group.map_or(whole.clone(), |g| g.start..g.end);
    Some((whole, value))
}

/// Does one of the rule's words stand around the range, or in its name? Rougher than the data path: for a hint.
fn near_words(
    rules: &RuleSet,
    compiled: &Compiled,
    kept: &Kept,
    start: usize,
    end: usize,
    cell: &Cell,
) -> bool {
    if !compiled.needs_context() {
        return true;
    }
    let from = start.saturating_sub(72).max(cell.span.start as usize);
    let to = (end + 36).min(cell.span.end as usize);
    let around = crate::names::plain(&kept.text[from..to]);
    let name = crate::names::plain(&kept.text[cell.name.range()]);
    let mut phrases = compiled
        .context
        .iter()
        .map(|p| &rules.phrases[usize::from(*p)]);
    phrases.any(|w| {
        memchr::memmem::find(&around, w).is_some() || memchr::memmem::find(&name, w).is_some()
    })
}

fn cell_at(kept: &Kept, at: usize) -> Option<&Cell> {
    let i = kept.cells.partition_point(|c| c.span.end as usize <= at);
    kept.cells.get(i).filter(|c| c.span.start as usize <= at)
}

fn free_before(edge: Edge, text: &[u8], at: usize, floor: usize) -> bool {
    let before = (at > floor).then(|| text[at - 1]);
    match edge {
        Edge::Any => true,
        Edge::Word => !before.is_some_and(is_word),
        Edge::Strict => !before.is_some_and(|b| is_word(b) || matches!(b, b'-' | b'.' | b'/')),
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FingerprintKey, Own, RuleSource};

    const RULE: &str = "rules:
- {id: own-token, title: t, category: secret, keywords: [OWN_], pattern: 'OWN_[a-zA-Z0-9]{16}', entropy: 3, checks: [has-digit]}
- {id: own-text, title: t, category: pii, kind: text, keywords: [badge], back: 20, pattern: '[0-9]{6}', context: [staff]}
- {id: own-number, title: t, category: pii, kind: number, shapes: ['9999-9999'], context: [locker], checks: [luhn]}
";

    fn near(text: &str, id: &str) -> Option<Near> {
        let sources = [RuleSource {
            name: "t.yml",
            yaml: RULE,
        }];
        let own = Own {
            sources: &sources,
            ..Own::default()
        };
        let rules = RuleSet::builtin().with(&own).unwrap();
        let mut scanner = Scanner::new(FingerprintKey::new([1; 32]));
        let explained = explain(&rules, &mut scanner, None, text);
        let id = rules.find(id).unwrap();
        explained.near.into_iter().find(|n| n.rule == id)
    }

    #[test]
    fn the_step_is_named_at_which_a_rule_gave_up() {
        let cases = [
            ("own-token", "x OWN_aZ8kQ2mXv9Lp4TsR y", None),
            ("own-token", "xOWN_aZ8kQ2mXv9Lp4TsR", Some(Miss::Before)),
            ("own-token", "own_aZ8kQ2mXv9Lp4TsR", Some(Miss::Case)),
            ("own-token", "OWN_aZ8kQ2m", Some(Miss::Pattern)),
            ("own-token", "OWN_aZ8kQ2mXv9Lp4TsRR", Some(Miss::After)),
            (
                "own-token",
                "OWN_abXdefzhkQnpWrxt",
                Some(Miss::Check("has-digit")),
            ),
            ("own-token", "nothing", None),
            ("own-text", "badge 12345", Some(Miss::Pattern)),
            ("own-text", "badge 123456", Some(Miss::Context)),
            ("own-number", "no 1234-5678 here", Some(Miss::Check("luhn"))),
            ("own-number", "no 4539-1489 here", Some(Miss::Context)),
        ];
        for (id, text, expected) in cases {
            let got = near(text, id).map(|n| n.miss);
            assert_eq!(got, expected, "{id}: {text}");
        }
        let dull = near("OWN_aaaaaaaaaaaaaaa1", "own-token").unwrap().miss;
        assert!(
            matches!(dull, Miss::Entropy { found, min } if found < min),
            "{dull:?}"
        );
    }

    #[test]
    fn decoded_texts_are_tried_too() {
        let hex: String = "OWN_aZ8kQ2mX and some more text"
            .bytes()
            .map(|b| format!("{b:02x}"))
            .collect();
        let found = near(&format!("data {hex} end"), "own-token").unwrap();
        assert_eq!((found.layers.as_str(), found.miss), ("hex", Miss::Pattern));
    }
}
