//! The leaves of a message scanned while they arrive, with a hold-back.
//!
//! ```text
//!        forgotten         decided by this window        held back
//! ...............|<-- left -->|<------- step ------->|<-- hold-back + reach -->|
//!                             from                   to                        arrived
//! ```
//!
//! The leaves are scanned in overlapping windows. A window decides about the findings that begin in its step: it sees as
//! much before and after them as a match can need, in the leaves beside them as well. What a whole scan would find is found
//! the same, as long as a match, and the encoded text it lies in, are no longer than the hold-back. Memory is bounded by
//! the window, whatever the number and the length of the leaves.
//!
//! What a window cannot see: values cut over places that are further apart than the hold-back, JSON or a dump in a leaf
//! that is longer than the window, the head of a table a window away, or of one in the message itself.

use std::sync::Arc;

use crate::finding::{Finding, Outcome};
use crate::scanner::Extent;
use crate::{Budget, Keeps, LeafInput, LeafKind, OverBudget, RuleSet, Scanner};

/// How far around a match something may stand that it needs: context words, names, what comes along when an encoding
/// is undone.
const REACH_BYTES: usize = 256;

/// What a leaf weighs beside its text, so that a window of tiny leaves is bounded, too.
const LEAF_WEIGHT: usize = 8;

/// What is forgotten of a run of letters and digits is a multiple of this: base64, base32 and hex before it are whole
/// groups.
const GROUP_BYTES: usize = 120;

/// Scans leaves that arrive one after the other, each in whatever pieces.
///
/// ```
/// use dlp_scan::{Budget, FingerprintKey, LeafKind, LeafStream, RuleSet, Scanner};
/// let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
/// let mut leaves = LeafStream::new(LeafStream::<()>::HOLD_BACK_DEFAULT, 64 << 10);
/// leaves.begin(LeafKind::String, None, (), 0);
/// leaves.push("mail ana@mail");
/// leaves.push("box.org now");
/// assert!(!leaves.is_full());
/// let step = leaves.decide(&mut scanner, RuleSet::builtin(), &Budget::default(), true);
/// assert_eq!((step.findings[0].start, step.findings[0].end), (5, 20));
/// ```
#[derive(Debug)]
pub struct LeafStream<T> {
    hold_back: usize,
    full: usize,
    text: String,
    leaves: Vec<Held<T>>,
    weight: usize,
    decided: Cut,
    /// The last step ended behind or within a finding that is longer than a step.
    torn: bool,
}

/// What is held of one leaf.
#[derive(Debug)]
struct Held<T> {
    kind: LeafKind,
    name: Option<Arc<str>>,
    tag: T,
    weight: usize,
    /// Where the text that is held begins in the leaf.
    offset: u64,
    /// Where it stands in the window.
    start: usize,
    end: usize,
}

/// A place in the window: all leaves before `leaf` lie before it, and so do the bytes of that leaf before `at`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    leaf: usize,
    /// Index into the window's text.
    at: usize,
}

/// A place among the held leaves, for whoever writes them: all leaves before `leaf` are over, and of it the bytes before
/// `byte` of the text that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of a held leaf; the number of held leaves at the end.
    pub leaf: usize,
    /// Byte of its held text.
    pub byte: usize,
}

/// What one window decided.
#[derive(Debug)]
pub struct StreamStep {
    /// The findings that begin from `from` to `to`. Their `leaf` is the index of a held leaf, their offsets count in its
    /// held text, and none of them reaches over `to`: one that is longer than a step comes in parts.
    pub findings: Vec<Finding>,
    /// A bound was reached: "no findings" is then no statement.
    pub over_budget: Option<OverBudget>,
    /// Where the last step ended.
    pub from: Place,
    /// Everything before this is decided.
    pub to: Place,
}

impl<T> LeafStream<T> {
    /// Room for the longest pattern that a rule may have, under an encoding that doubles it.
    pub const HOLD_BACK_DEFAULT: usize = 16 << 10;
    /// Less would cut ordinary tokens.
    pub const HOLD_BACK_MIN: usize = 256;

    /// Decides about `step` bytes at a time. A hold-back below [`Self::HOLD_BACK_MIN`] is taken as that.
    pub fn new(hold_back: usize, step: usize) -> Self {
        let hold_back = hold_back.max(Self::HOLD_BACK_MIN);
        Self {
            hold_back,
            full: step.max(hold_back) + 2 * (hold_back + REACH_BYTES),
            text: String::new(),
            leaves: Vec::new(),
            weight: 0,
            decided: Cut::default(),
            torn: false,
        }
    }

    /// A leaf begins. `weight` is what its tag costs in memory.
    pub fn begin(&mut self, kind: LeafKind, name: Option<Arc<str>>, tag: T, weight: usize) {
        let weight = weight + LEAF_WEIGHT;
        self.weight += weight;
        self.leaves.push(Held {
            kind,
            name,
            tag,
            weight,
            offset: 0,
            start: self.text.len(),
            end: self.text.len(),
        });
    }

    /// More text of the leaf that began last.
    pub fn push(&mut self, piece: &str) {
        if let Some(leaf) = self.leaves.last_mut() {
            self.text.push_str(piece);
            self.weight += piece.len();
            leaf.end = self.text.len();
        }
    }

    /// Whether there is enough to decide about a step.
    pub fn is_full(&self) -> bool {
        self.weight >= self.full
    }

    /// Bytes held at the most before [`Self::is_full`] says so, what was pushed last left aside.
    pub fn bytes_max(&self) -> usize {
        self.full
    }

    /// What stands with a held leaf.
    pub fn tag(&self, leaf: usize) -> Option<&T> {
        self.leaves.get(leaf).map(|l| &l.tag)
    }

    /// The same, to change it.
    pub fn tag_mut(&mut self, leaf: usize) -> Option<&mut T> {
        self.leaves.get_mut(leaf).map(|l| &mut l.tag)
    }

    /// The text that is held of a leaf.
    pub fn text(&self, leaf: usize) -> &str {
        let range = self.leaves.get(leaf).map_or(0..0, |l| l.start..l.end);
        self.text.get(range).unwrap_or_default()
    }

    /// Where in the leaf that text begins.
    pub fn offset(&self, leaf: usize) -> u64 {
        self.leaves.get(leaf).map_or(0, |l| l.offset)
    }

    /// What the leaf is.
    pub fn kind(&self, leaf: usize) -> Option<LeafKind> {
        self.leaves.get(leaf).map(|l| l.kind)
    }

    /// The name over it.
    pub fn name(&self, leaf: usize) -> Option<&str> {
        self.leaves.get(leaf)?.name.as_deref()
    }

    /// How many leaves are held.
    pub fn held(&self) -> usize {
        self.leaves.len()
    }

    /// The held leaves as the scanner takes them.
    pub fn inputs(&self) -> impl Iterator<Item = LeafInput<'_>> + Clone {
        self.leaves.iter().map(|leaf| LeafInput {
            text: self.text.get(leaf.start..leaf.end).unwrap_or_default(),
            kind: leaf.kind,
            name: leaf.name.as_deref(),
        })
    }

    /// Scans what is held and decides about a step of it, or about all of it when this is the `last` one. Call
    /// [`Self::forget`] when what was decided has been dealt with.
    pub fn decide(
        &mut self,
        scanner: &mut Scanner,
        rules: &RuleSet,
        budget: &Budget,
        last: bool,
    ) -> StreamStep {
        self.decide_for(scanner, rules, budget, last, &|_, _| false)
    }

    /// The same for somebody who treats rules differently ([`Scanner::scan_for`]).
    pub fn decide_for(
        &mut self,
        scanner: &mut Scanner,
        rules: &RuleSet,
        budget: &Budget,
        last: bool,
        keeps: Keeps<'_>,
    ) -> StreamStep {
        let Outcome {
            mut findings,
            over_budget,
        } = scanner.look(rules, self.inputs(), None, budget, keeps, Extent::Part);
        let from = self.decided;
        let (to, torn) = match last {
            true => {
                let end = Cut {
                    leaf: self.leaves.len(),
                    at: self.text.len(),
                };
                (end, false)
            }
            false => self.uncut(&findings, from, self.held_from().max(from)),
        };
        let goes_on = std::mem::replace(&mut self.torn, torn);
        findings.retain_mut(|f| {
            let (start, end) = (self.cut(f, f.start), self.cut(f, f.end));
            if goes_on && start < from && from < end {
                f.start += crate::text::to_u32(from.at - start.at);
            }
            if torn && start < to && to < end {
                f.end -= crate::text::to_u32(end.at - to.at);
            }
            (from..to).contains(&self.cut(f, f.start))
        });
        self.decided = to;
        StreamStep {
            findings,
            over_budget,
            from: self.place(from),
            to: self.place(to),
        }
    }

    /// Drops what no later finding can need.
    pub fn forget(&mut self) {
        let mut left = self.hold_back + REACH_BYTES;
        let decided = self.decided;
        let mut keep = Cut { leaf: 0, at: 0 };
        for (index, leaf) in self.leaves.iter().enumerate().take(decided.leaf + 1).rev() {
            let end = if index == decided.leaf {
                decided.at
            } else {
                leaf.end
            };
            let length = end - leaf.start;
            if length > left {
                let at = self.group_start(leaf, leaf.start + length - left);
                keep = Cut { leaf: index, at };
                break;
            }
            // The leaf that is not over stays, whatever it weighs.
            left = match left.checked_sub(length + leaf.weight) {
                Some(left) => left,
                None => {
                    keep = Cut {
                        leaf: index,
                        at: leaf.start,
                    };
                    break;
                }
            };
        }
        self.drop_before(keep);
    }

    /// The last place up to `at` where no character ends and no group of digits is cut. A run that was cut before was cut
    /// between two groups, so that what is left of it counts from its own beginning.
    fn group_start(&self, leaf: &Held<T>, at: usize) -> usize {
        let at = self.text.floor_char_boundary(at);
        let held = self.text.as_bytes().get(leaf.start..at).unwrap_or_default();
        let run = held.iter().rev().take_while(|b| crate::text::is_run(**b));
        at - run.count() % GROUP_BYTES
    }

    fn drop_before(&mut self, keep: Cut) {
        let gone: usize = self.leaves.drain(..keep.leaf).map(|leaf| leaf.weight).sum();
        self.weight -= gone + keep.at;
        self.text.drain(..keep.at);
        for leaf in &mut self.leaves {
            leaf.offset += keep.at.saturating_sub(leaf.start) as u64;
            leaf.start = leaf.start.saturating_sub(keep.at);
            leaf.end -= keep.at;
        }
        self.decided = Cut {
            leaf: self.decided.leaf - keep.leaf,
            at: self.decided.at - keep.at,
        };
    }

    /// Where what is held back begins.
    fn held_from(&self) -> Cut {
        let mut left = self.hold_back + REACH_BYTES;
        for (index, leaf) in self.leaves.iter().enumerate().rev() {
            let length = leaf.end - leaf.start;
            if length > left {
                let at = match leaf.kind {
                    LeafKind::String => self.text.floor_char_boundary(leaf.end - left),
                    // Keys and numbers are short, and written whole.
                    _ => leaf.start,
                };
                return Cut { leaf: index, at };
            }
            left = left.saturating_sub(length + leaf.weight);
            if left == 0 {
                return Cut {
                    leaf: index,
                    at: leaf.start,
                };
            }
        }
        Cut::default()
    }

    /// `far`, or the place before it that no finding lies over. Where that would be no step at all, one of them is longer
    /// than a step: the place behind it, and whether the next step has to go on with what lies there. A finding that
    /// reaches the end of the window is cut through: were all of the window decided, a value that its end cuts would
    /// pass unseen.
    fn uncut(&self, findings: &[Finding], from: Cut, far: Cut) -> (Cut, bool) {
        let over = |to: Cut| {
            let found = findings.iter().map(|f| self.span(f));
            found.filter(move |(start, end)| *start < to && to < *end)
        };
        let mut to = far;
        while let Some(start) = over(to).map(|(start, _)| start).min() {
            to = start;
        }
        if to > from {
            return (to, false);
        }
        to = far;
        while let Some(end) = over(to).map(|(_, end)| end).max() {
            to = end;
        }
        if far > from && to.at + REACH_BYTES > self.text.len() {
            to = far;
        }
        (to, true)
    }

    /// What must not be cut: the finding, or the whole leaf where it is a key or a number.
    fn span(&self, finding: &Finding) -> (Cut, Cut) {
        let index = finding.leaf as usize;
        match self.leaves.get(index) {
            Some(leaf) if leaf.kind != LeafKind::String => (
                Cut {
                    leaf: index,
                    at: leaf.start,
                },
                Cut {
                    leaf: index + 1,
                    at: leaf.end,
                },
            ),
            _ => (
                self.cut(finding, finding.start),
                self.cut(finding, finding.end),
            ),
        }
    }

    fn cut(&self, finding: &Finding, byte: u32) -> Cut {
        let leaf = finding.leaf as usize;
        Cut {
            leaf,
            at: self.leaves.get(leaf).map_or(0, |l| l.start) + byte as usize,
        }
    }

    fn place(&self, cut: Cut) -> Place {
        let start = self.leaves.get(cut.leaf).map_or(cut.at, |l| l.start);
        Place {
            leaf: cut.leaf,
            byte: cut.at.saturating_sub(start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FingerprintKey;

    const HOLD: usize = LeafStream::<()>::HOLD_BACK_MIN;

    fn key() -> FingerprintKey {
        FingerprintKey::new([4; 32])
    }

    type Shown = (u64, u64, u16, String, crate::Fingerprint);

    fn show(start: u64, end: u64, f: &Finding) -> Shown {
        (start, end, f.rule.0, f.layers.to_string(), f.fingerprint)
    }

    fn whole(text: &str) -> Vec<Shown> {
        let leaf = LeafInput {
            text,
            kind: LeafKind::String,
            name: None,
        };
        let rules = RuleSet::builtin();
        let outcome = Scanner::new(key()).scan(rules, [leaf].into_iter(), &Budget::default());
        let found = outcome.findings.iter();
        found
            .map(|f| show(u64::from(f.start), u64::from(f.end), f))
            .collect()
    }

    fn take(
        stream: &mut LeafStream<usize>,
        scanner: &mut Scanner,
        last: bool,
        found: &mut Vec<(usize, Shown)>,
    ) {
        let step = stream.decide(scanner, RuleSet::builtin(), &Budget::default(), last);
        assert_eq!(step.over_budget, None);
        for f in &step.findings {
            let leaf = f.leaf as usize;
            let at = stream.offset(leaf);
            let shown = show(at + u64::from(f.start), at + u64::from(f.end), f);
            found.push((*stream.tag(leaf).expect("a held leaf"), shown));
            let place = (leaf, f.start as usize);
            assert!(
                place >= (step.from.leaf, step.from.byte) && place < (step.to.leaf, step.to.byte)
            );
            assert!(
                leaf < step.to.leaf || f.end as usize <= step.to.byte,
                "cut: {f:?} {step:?}"
            );
        }
        assert!((step.from.leaf, step.from.byte) < (step.to.leaf, step.to.byte) || last);
        stream.forget();
    }

    fn in_pieces<'a>(scanner: &mut Scanner, pieces: impl Iterator<Item = &'a str>) -> Vec<Shown> {
        let mut stream = LeafStream::new(HOLD, HOLD);
        let mut found = Vec::new();
        stream.begin(LeafKind::String, None, 0, 0);
        for piece in pieces {
            // As large as a window at the most, as whoever reads in chunks does it.
            for piece in split(piece, 700) {
                stream.push(piece);
                while stream.is_full() {
                    take(&mut stream, scanner, false, &mut found);
                }
                assert!(stream.text.len() <= stream.bytes_max());
            }
        }
        take(&mut stream, scanner, true, &mut found);
        found.into_iter().map(|(_, shown)| shown).collect()
    }

    fn split(mut text: &str, bytes: usize) -> Vec<&str> {
        let mut out = Vec::new();
        while !text.is_empty() {
            let (piece, rest) = text.split_at(text.ceil_char_boundary(bytes.min(text.len())));
            out.push(piece);
            text = rest;
        }
        out
    }

    /// Leaves with names, short and long, next to each other.
    #[test]
    fn leaves_in_windows_give_what_the_whole_gives() {
        let mut scanner = Scanner::new(key());
        let (mut longest, mut split_values) = (0, 0);
        for seed in 0..40 {
            let mut leaves: Vec<(Option<Arc<str>>, String)> = Vec::new();
            let token = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
            for n in 0..120u64 {
                let (name, value) = match (seed + n * 7) % 11 {
                    0 => ("db_password", "Iqvldm982*cfBKh".to_owned()),
                    1 => ("note", text(seed * 1000 + n)),
                    2 => ("key", format!("it is {token} so")),
                    3 => ("text", format!("first {}", &token[..9])),
                    4 => ("text", String::new()),
                    _ => ("item", format!("item {} of {n}", n * 31 % 17)),
                };
                leaves.push((Some(name.into()), value));
                if leaves.last().is_some_and(|(_, v)| v.starts_with("first")) {
                    leaves.push((Some("text".into()), format!("{} second", &token[9..])));
                }
            }
            let inputs = leaves.iter().map(|(name, text)| LeafInput {
                text,
                kind: LeafKind::String,
                name: name.as_deref(),
            });
            let whole = scanner.scan(RuleSet::builtin(), inputs, &Budget::default());
            assert_eq!(whole.over_budget, None);
            let expected: Vec<_> = whole
                .findings
                .iter()
                .map(|f| (f.leaf as usize, show(f.start.into(), f.end.into(), f)))
                .collect();
            assert!(expected.len() > 40);
            split_values += expected.iter().filter(|(_, s)| s.3 == "joined").count();
            let mut stream = LeafStream::new(2048, 2048);
            let mut found = Vec::new();
            for (n, (name, text)) in leaves.iter().enumerate() {
                longest = longest.max(text.len());
                stream.begin(LeafKind::String, name.clone(), n, 0);
                for piece in split(text, 1 + (seed as usize * 37) % 500) {
                    stream.push(piece);
                    while stream.is_full() {
                        take(&mut stream, &mut scanner, false, &mut found);
                    }
                }
            }
            take(&mut stream, &mut scanner, true, &mut found);
            assert_eq!(found, expected, "seed {seed}");
        }
        assert!(
            longest > 2000 && split_values > 20,
            "{longest} {split_values}"
        );
    }

    #[test]
    fn tiny_leaves_are_bounded_too() {
        let mut scanner = Scanner::new(key());
        let mut stream = LeafStream::new(HOLD, HOLD);
        let mut found = Vec::new();
        for n in 0..20_000 {
            stream.begin(LeafKind::Number, None, n, 16);
            stream.push("7");
            while stream.is_full() {
                take(&mut stream, &mut scanner, false, &mut found);
            }
            assert!(stream.held() < stream.bytes_max() / LEAF_WEIGHT);
        }
        take(&mut stream, &mut scanner, true, &mut found);
        assert!(found.is_empty());
    }

    /// A finding without an end, as a text full of turned writing directions gives it, comes in parts, and what else lies there
    /// is found all the same.
    #[test]
    fn a_finding_as_long_as_the_text_hides_no_value() {
        let mut scanner = Scanner::new(key());
        let token = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
        for seed in 0..50 {
            let gap = 20 + seed;
            let piece = format!("{}\u{202e}abc", "words ".repeat(gap / 6));
            let mut text = String::new();
            for n in 0..60 {
                text.push_str(&piece);
                if n % 5 == 0 {
                    text.push_str(&format!("{} {token} ", "x".repeat(n)));
                }
            }
            let whole = whole(&text);
            let found = in_pieces(&mut scanner, split(&text, 64).into_iter());
            let (mut hidden, mut tokens) = (0, 0);
            for f in &whole {
                let parts = found
                    .iter()
                    .filter(|p| p.2 == f.2 && p.0 < f.1 && f.0 < p.1);
                let covered: u64 = parts.map(|p| p.1.min(f.1) - p.0.max(f.0)).sum();
                if f.1 - f.0 > 1000 {
                    hidden += 1;
                    // What lies between the last such character of a window and the first of the next may pass.
                    assert!(covered * 4 > (f.1 - f.0) * 3, "{gap}: {f:?} {found:?}");
                } else {
                    tokens += 1;
                    assert_eq!(covered, f.1 - f.0, "{gap}: {f:?} {found:?}");
                }
            }
            assert!(hidden == 1 && tokens == 12, "{hidden} {tokens}");
        }
    }

    /// A finding that is longer than a window is not cut, and the window goes on.
    #[test]
    fn a_finding_over_the_end_of_a_step_is_decided_in_one() {
        let mut scanner = Scanner::new(key());
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7x2b0\n".repeat(20)
        );
        for before in [0, 10, 600, 900, 1300, 2000] {
            let text = format!("{}{pem} after", "words and words ".repeat(before / 16));
            let found = in_pieces(&mut scanner, std::iter::once(text.as_str()));
            let whole = whole(&text);
            assert!(!whole.is_empty());
            let covered = |start: u64, end: u64| {
                found
                    .iter()
                    .any(|f| f.0 <= start && f.1 >= end.min(start + 64))
            };
            assert!(
                whole.iter().all(|f| covered(f.0, f.1)),
                "{before}: {found:?} {whole:?}"
            );
        }
    }

    /// Values of several kinds, plain and encoded, between words, at changing distances.
    fn text(seed: u64) -> String {
        let token = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
        let hex: String = token.bytes().map(|b| format!("{b:02x}")).collect();
        let percent: String = "ana@mailbox.org"
            .bytes()
            .map(|b| format!("%{b:02X}"))
            .collect();
        let values = [
            token,
            format!("data {hex} end"),
            "mail anna.lindqvist@mailbox.org".to_owned(),
            format!("to={percent}"),
            "card 4539 5787 6362 1486".to_owned(),
            "é host 81.169.145.78 ü".to_owned(),
        ];
        let words = [
            "the ",
            "report ",
            "says ",
            "über ",
            "nothing, ",
            "12 items ",
            "a/b.c\n",
        ];
        let mut state = seed;
        let mut next = |n: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        let mut out = String::new();
        for _ in 0..14 {
            for _ in 0..next(40) {
                out.push_str(words[next(words.len())]);
            }
            out.push_str(&values[next(values.len())]);
            out.push(' ');
        }
        out
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let mut scanner = Scanner::new(key());
        for seed in 0..60 {
            let text = text(seed);
            let expected = whole(&text);
            assert!(expected.len() >= 5, "{text}");
            let all = in_pieces(&mut scanner, std::iter::once(text.as_str()));
            assert_eq!(all, expected, "seed {seed}");
            let chars = text.char_indices().map(|(i, c)| &text[i..i + c.len_utf8()]);
            assert_eq!(in_pieces(&mut scanner, chars), expected, "seed {seed}");
        }
    }

    /// A seed of one-time codes ends with its text, or before a blank; no digit follows it that is none of its own.
    #[test]
    fn the_end_of_a_piece_is_not_the_end_of_a_value() {
        let mut scanner = Scanner::new(key());
        for (last, found) in [("KQ4GZ2M7XWPLT3VD", 1), ("KQ4GZ2M7XWPLT3VD9QX", 0)] {
            let text = format!("{}2FA setup key: {last}", "It was warm. ".repeat(200));
            let expected = whole(&text);
            assert_eq!(expected.len(), found, "{last}");
            for cut in text.len() - 40..text.len() {
                let (a, b) = text.split_at(cut);
                let pieces = in_pieces(&mut scanner, [a, b].into_iter());
                assert_eq!(pieces, expected, "{cut}");
            }
            let chars = text.char_indices().map(|(i, c)| &text[i..i + c.len_utf8()]);
            assert_eq!(in_pieces(&mut scanner, chars), expected, "{last}");
        }
    }

    #[test]
    fn no_cut_changes_what_is_found() {
        let mut scanner = Scanner::new(key());
        let text = text(7);
        let expected = whole(&text);
        for cut in (0..=text.len()).filter(|c| text.is_char_boundary(*c)) {
            let (a, b) = text.split_at(cut);
            assert_eq!(
                in_pieces(&mut scanner, [a, b].into_iter()),
                expected,
                "{cut}"
            );
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_text() {
        let mut scanner = Scanner::new(key());
        let mut stream = LeafStream::new(HOLD, HOLD);
        let mut found = Vec::new();
        stream.begin(LeafKind::String, None, 0, 0);
        for _ in 0..2000 {
            stream.push("nothing to see in this line of text\n");
            while stream.is_full() {
                take(&mut stream, &mut scanner, false, &mut found);
            }
            assert!(stream.text.capacity() <= 4 * stream.bytes_max());
        }
        assert!(found.is_empty());
    }
}
