//! What was found once is found wherever else it stands in the message: a password that its name gave away is as good in the
//! sentence beside it, where nothing does.

use std::collections::HashSet;

use smallvec::SmallVec;

use crate::detect::{Limits, Raw};
use crate::finding::Fingerprint;
use crate::names::Promise;
use crate::text::{NO_LEAF, Node, Parent, Span, to_u32};
use crate::{Category, OverBudget, RuleSet, value};

/// Shorter values are words and numbers that may stand anywhere. By so many bytes they are looked up.
const VALUE_BYTES_MIN: usize = 8;
/// Of digits alone it takes more: eight are a date.
const DIGITS_MIN: usize = 9;
/// Of digits among letters.
const DIGITS_MIXED_MIN: usize = 4;

/// Adds a match for every other place where a value stands by itself that was found as a secret or as personal data. Costs one
/// pass over the texts, and a look (of the budget's candidates) for each length that values with the same beginning have.
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
            for (at, group) in values.places(text) {
                for len in &group.lens {
                    let Some(here) = text.get(at..at + len) else {
                        break;
                    };
                    let start = cell.span.start + to_u32(at);
                    let end = start + to_u32(*len);
                    let span = Span { start, end };
                    if !stands_alone(text, at, at + len)
                        || is_copy(nodes, node, span)
                        || crate::detect::shows_bytes(&node.text, span)
                    {
                        continue;
                    }
                    if !limits.spend(1) {
                        return;
                    }
                    for value in group.equal(here) {
                        if known.contains(&(index, start, value.category)) {
                            continue;
                        }
                        if limits.findings == 0 {
                            limits.over.get_or_insert(OverBudget::Findings);
                            return;
                        }
                        limits.findings -= 1;
                        let node = index;
                        raw.push(Raw {
                            node,
                            span,
                            ..value.raw
                        });
                    }
                }
            }
        }
    }
}

struct Value<'a> {
    text: &'a [u8],
    category: Category,
    raw: Raw,
}

/// Values that begin alike.
struct Group<'a> {
    head: u64,
    /// By their text.
    values: Vec<Value<'a>>,
    /// Their lengths, each once, the shortest first.
    lens: SmallVec<[usize; 2]>,
}

impl Group<'_> {
    fn equal(&self, text: &[u8]) -> &[Value<'_>] {
        let from = self.values.partition_point(|value| value.text < text);
        let rest = &self.values[from..];
        &rest[..rest.partition_point(|value| value.text == text)]
    }
}

/// The values that were found, by their first bytes.
struct Values<'a> {
    groups: Vec<Group<'a>>,
    /// Bits of the heads' hashes.
    heads: [u64; 64],
    /// The bytes that they begin with.
    firsts: Vec<u8>,
}

impl<'a> Values<'a> {
    /// None if there are none.
    fn of(nodes: &'a [Node], rules: &RuleSet, raw: &[Raw]) -> Option<Self> {
        let mut seen: HashSet<(Fingerprint, Category)> = HashSet::new();
        let mut values = Vec::new();
        for raw in raw {
            let text = &nodes[raw.node as usize].text[raw.span.range()];
            let category = rules.rule(raw.rule).category;
            if tells_itself(text, category)
                && let Some(head) = head_at(text, 0)
                && seen.insert((raw.fingerprint, category))
            {
                let raw = *raw;
                values.push((
                    head,
                    Value {
                        text,
                        category,
                        raw,
                    },
                ));
            }
        }
        values.sort_by(|(a, x), (b, y)| (a, x.text).cmp(&(b, y.text)));
        let mut groups: Vec<Group<'a>> = Vec::new();
        let mut heads = [0; 64];
        for (head, value) in values {
            let (word, bit) = slot(head);
            heads[word] |= bit;
            match groups.last_mut().filter(|group| group.head == head) {
                Some(group) => group.values.push(value),
                None => groups.push(Group {
                    head,
                    values: vec![value],
                    lens: SmallVec::new(),
                }),
            }
        }
        for group in &mut groups {
            group.lens = group.values.iter().map(|value| value.text.len()).collect();
            group.lens.sort_unstable();
            group.lens.dedup();
        }
        let mut firsts: Vec<u8> = groups.iter().map(|group| group.head as u8).collect();
        firsts.sort_unstable();
        firsts.dedup();
        (!groups.is_empty()).then_some(Self {
            groups,
            heads,
            firsts,
        })
    }

    /// Where one may begin, with those that begin so.
    fn places(&self, text: &[u8]) -> impl Iterator<Item = (usize, &Group<'a>)> {
        let mut from = 0;
        std::iter::from_fn(move || {
            loop {
                let at = from + self.first_in(&text[from..])?;
                from = at + 1;
                let head = head_at(text, at)?;
                let (word, bit) = slot(head);
                if self.heads[word] & bit == 0 {
                    continue;
                }
                if let Ok(found) = self.groups.binary_search_by_key(&head, |group| group.head) {
                    return Some((at, &self.groups[found]));
                }
            }
        })
    }

    /// Most messages have one value or two, and then few bytes are looked at.
    fn first_in(&self, text: &[u8]) -> Option<usize> {
        match *self.firsts {
            [a] => memchr::memchr(a, text),
            [a, b] => memchr::memchr2(a, b, text),
            [a, b, c] => memchr::memchr3(a, b, c, text),
            _ => (!text.is_empty()).then_some(0),
        }
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

/// Nobody writes it but who means this value: a secret as generators make them, a number of nine digits, an identifier of
/// letters and digits. Dates, names and passwords like `Python3.12` stand in other places for what they are there.
fn tells_itself(value: &[u8], category: Category) -> bool {
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    match category {
        Category::Secret => value::judge(value, Promise::Strong, true).is_some(),
        Category::Pii => {
            let letters = value.iter().any(u8::is_ascii_alphabetic);
            let apart = value.iter().any(u8::is_ascii_whitespace);
            digits >= DIGITS_MIN || letters && !apart && digits >= DIGITS_MIXED_MIN
        }
        Category::Injection => false,
    }
}

/// Whether a part of a text was taken over as it was: it is found where it comes from.
fn is_copy(nodes: &[Node], node: &Node, span: Span) -> bool {
    let Parent::Node(parent) = node.parent else {
        return false;
    };
    let came_from = |parts: SmallVec<[Span; 2]>| match *parts {
        [part] => nodes[parent as usize].text.get(part.range()),
        _ => None,
    };
    !node.fresh.touches(span) || came_from(node.to_parent(span)) == node.text.get(span.range())
}

/// Whether what stands from here to there is no part of a longer word.
fn stands_alone(text: &[u8], from: usize, to: usize) -> bool {
    let goes_on = |at: usize| {
        let (before, behind) = (at.checked_sub(1).and_then(|n| text.get(n)), text.get(at));
        let pair = before.zip(behind);
        pair.is_some_and(|(a, b)| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
    };
    !goes_on(from) && !goes_on(to)
}

#[cfg(test)]
mod tests {
    use crate::{Budget, FingerprintKey, LeafInput, LeafKind, OverBudget, RuleSet, Scanner};

    /// Leaf, matched text.
    type Shown = (u32, String);

    fn scan(leaves: &[(&str, &str)]) -> (Vec<Shown>, Option<OverBudget>) {
        let inputs = leaves.iter().map(|(name, text)| LeafInput {
            text,
            kind: LeafKind::String,
            name: (!name.is_empty()).then_some(*name),
        });
        let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
        let outcome = scanner.scan(RuleSet::builtin(), inputs, &Budget::default());
        let text = |leaf: u32, start: u32, end: u32| {
            leaves[leaf as usize].1[start as usize..end as usize].to_owned()
        };
        let found = outcome.findings.iter();
        let found = found.map(|f| (f.leaf, text(f.leaf, f.start, f.end)));
        (found.collect(), outcome.over_budget)
    }

    #[test]
    fn what_was_found_once_is_found_wherever_it_stands() {
        let value = "Iqvldm982*cfBKh";
        let secret = format!("password={value}");
        let coded = "aXQgaG9sZHMgSXF2bGRtOTgyKmNmQktoLCBhcyBpdCBkaWQgYmVmb3Jl";
        let cases: &[(&str, &[&str])] = &[
            ("It is Iqvldm982*cfBKh, said he", &[value]),
            ("Iqvldm982*cfBKh Iqvldm982*cfBKh", &[value, value]),
            ("{\"rows\":[[\"ana\",\"Iqvldm982*cfBKh\"]]}", &[value]),
            (coded, &["SXF2bGRtOTgyKmNmQkto"]),
            ("xIqvldm982*cfBKh", &[]),
            ("Iqvldm982*cfBKh2", &[]),
            ("Iqvldm982*cfBK", &[]),
        ];
        for (text, want) in cases {
            for leaves in [
                [("cfg", secret.as_str()), ("note", text)],
                [("note", text), ("cfg", &secret)],
            ] {
                let (found, over) = scan(&leaves);
                let told = u32::from(leaves[0].1 != secret);
                let elsewhere = found.iter().filter(|f| f.0 != told);
                let texts: Vec<&str> = elsewhere.map(|f| f.1.as_str()).collect();
                assert_eq!((&*texts, over), (*want, None), "{text}");
            }
        }
    }

    #[test]
    fn values_that_are_words_or_dates_are_found_where_they_were_told() {
        for (told, text) in [
            ("date of birth: 1987-03-14", "released 1987-03-14"),
            ("password=Xk9vQ2m", "by train, said Xk9vQ2m once"),
            ("password: Python3.12", "requires Python3.12 or newer"),
            ("DOB: 01 January 1970", "time starts on 01 January 1970"),
        ] {
            let (found, _) = scan(&[("cfg", told), ("note", text)]);
            assert!(found.iter().any(|f| f.0 == 0), "{told}");
            assert!(found.iter().all(|f| f.0 == 0), "{text}: {found:?}");
        }
    }

    #[test]
    fn values_that_begin_alike_or_stand_often_are_within_budget() {
        let list = |lines: usize, line: fn(usize) -> String| (0..lines).map(line).collect();
        let cases: [(usize, String); 3] = [
            (150, list(150, |n| format!("password: Xk9vQ2mZ{n:04}!\n"))),
            (
                900,
                list(900, |n| format!("customer{n:06}@firma-nord.de\n")),
            ),
            (
                900,
                list(900, |n| match n {
                    0 => "password=Iqvldm982*cfBKh\n".into(),
                    _ => format!("line {n}: sent Iqvldm982*cfBKh to db\n"),
                }),
            ),
        ];
        for (lines, text) in cases {
            let (found, over) = scan(&[("", &text)]);
            // Of what counts up a few are believed by nobody.
            assert!(found.len() * 10 > lines * 9 && over.is_none(), "{text:.80}");
        }
    }
}
