//! What was found once is found wherever else it stands in the message: a password that its name gave away is as good in the
//! sentence beside it, where nothing does.

use std::collections::HashSet;

use crate::detect::{Limits, Raw};
use crate::finding::Fingerprint;
use crate::text::{NO_LEAF, Node, Span, to_u32};
use crate::{Category, OverBudget, RuleSet};

/// Shorter values are words and numbers that may stand anywhere. By so many bytes they are looked up.
const VALUE_BYTES_MIN: usize = 8;
/// Of digits alone it takes more: eight are a date.
const DIGITS_MIN: usize = 9;

/// Adds a match for every other place where a value stands by itself that was found as a secret or as personal data. Costs one
/// pass over the texts, and a look (of the budget's candidates) for each value whose beginning stands somewhere.
pub(crate) fn find(nodes: &[Node], rules: &RuleSet, raw: &mut Vec<Raw>, limits: &mut Limits) {
    let Some(values) = Values::of(nodes, rules, raw) else {
        return;
    };
    let found_at = |r: &Raw| (r.node, r.span.start, rules.rule(r.rule).category);
    let known: HashSet<(u32, u32, Category)> = raw.iter().map(found_at).collect();
    for (index, node) in nodes.iter().enumerate() {
        if node.only_injection {
            continue;
        }
        let index = to_u32(index);
        for cell in node.cells.iter().filter(|cell| cell.leaf != NO_LEAF) {
            let text = &node.text[cell.span.range()];
            for at in values.places(text) {
                let start = cell.span.start + to_u32(at);
                for value in values.at(text, at) {
                    if known.contains(&(index, start, value.category)) {
                        continue;
                    }
                    if !limits.spend(1) {
                        return;
                    }
                    if !stands_at(value.text, text, at) {
                        continue;
                    }
                    if limits.findings == 0 {
                        limits.over.get_or_insert(OverBudget::Findings);
                        return;
                    }
                    limits.findings -= 1;
                    let end = start + to_u32(value.text.len());
                    raw.push(Raw {
                        node: index,
                        span: Span { start, end },
                        ..value.raw
                    });
                }
            }
        }
    }
}

struct Value<'a> {
    head: u64,
    text: &'a [u8],
    category: Category,
    raw: Raw,
}

/// The values that were found, by their first bytes.
struct Values<'a> {
    sorted: Vec<Value<'a>>,
    /// Bits of the heads' hashes.
    heads: [u64; 64],
}

impl<'a> Values<'a> {
    /// None if there are none.
    fn of(nodes: &'a [Node], rules: &RuleSet, raw: &[Raw]) -> Option<Self> {
        let mut seen: HashSet<(Fingerprint, Category)> = HashSet::new();
        let mut sorted = Vec::new();
        for raw in raw {
            let text = &nodes[raw.node as usize].text[raw.span.range()];
            let category = rules.rule(raw.rule).category;
            if category != Category::Injection
                && tells_itself(text)
                && let Some(head) = head_at(text, 0)
                && seen.insert((raw.fingerprint, category))
            {
                sorted.push(Value {
                    head,
                    text,
                    category,
                    raw: *raw,
                });
            }
        }
        sorted.sort_by_key(|value| value.head);
        let mut heads = [0; 64];
        for value in &sorted {
            let (word, bit) = slot(value.head);
            heads[word] |= bit;
        }
        (!sorted.is_empty()).then_some(Self { sorted, heads })
    }

    /// Where one may begin.
    fn places(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        (0..(text.len() + 1).saturating_sub(VALUE_BYTES_MIN)).filter(|at| {
            let (word, bit) = slot(head_at(text, *at).unwrap_or_default());
            self.heads[word] & bit != 0
        })
    }

    /// Those that begin as the text here.
    fn at(&self, text: &[u8], at: usize) -> &[Value<'a>] {
        let head = head_at(text, at).unwrap_or_default();
        let from = self.sorted.partition_point(|value| value.head < head);
        let rest = &self.sorted[from..];
        &rest[..rest.partition_point(|value| value.head == head)]
    }
}

fn head_at(text: &[u8], at: usize) -> Option<u64> {
    let head = text.get(at..at + VALUE_BYTES_MIN)?;
    Some(u64::from_le_bytes(head.try_into().ok()?))
}

fn slot(head: u64) -> (usize, u64) {
    // The golden ratio's bits (Knuth, volume 3, section 6.4).
    let hash = head.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Nobody writes it but who means this value.
fn tells_itself(value: &[u8]) -> bool {
    let count = |is: fn(&u8) -> bool| value.iter().filter(|b| is(b)).count();
    let digits = count(u8::is_ascii_digit);
    let (small, large) = (count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase));
    let signs = value.len() - digits - small - large;
    digits >= DIGITS_MIN || digits > 0 && small + large > 0 || small > 0 && large > 0 && signs > 0
}

/// Whether a value stands here, and is no part of a longer word.
fn stands_at(value: &[u8], text: &[u8], at: usize) -> bool {
    let end = at + value.len();
    let goes_on = |a: Option<&u8>, b: Option<&u8>| {
        a.zip(b)
            .is_some_and(|(a, b)| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
    };
    text[at..].starts_with(value)
        && !goes_on(text[..at].last(), value.first())
        && !goes_on(value.last(), text.get(end))
}
