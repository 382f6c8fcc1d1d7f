//! A text scanned while it arrives, with a hold-back.
//!
//! ```text
//!        released          decided by this window        held back
//! ...............|<-- left -->|<------- step ------->|<-- hold-back + reach -->|
//!                 window_at   decided                 next decided              arrived
//! ```
//!
//! The text is scanned in overlapping windows at fixed places, however it was cut on its way. A window decides about the
//! findings that begin in its step: it sees as much before and after them as a match can need. What a whole scan would
//! find is found the same, as long as a match and the encoded text it lies in are no longer than the hold-back.
//! Memory is bounded by the window, whatever the length of the text.
//!
//! Never here: more than one leaf. Values that are cut over leaves are seen by [`Scanner::scan`] only.

use crate::finding::{Finding, Outcome};
use crate::{Budget, LeafInput, LeafKind, OverBudget, RuleSet, Scanner};

/// How far around a match something may stand that it needs: context words, names, what comes along when an encoding
/// is undone.
const REACH_BYTES: usize = 256;

/// Scans one long text piece by piece.
///
/// ```
/// use dlp_scan::{Budget, FingerprintKey, RuleSet, Scanner, StreamScanner};
/// let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
/// let mut stream = StreamScanner::new(StreamScanner::HOLD_BACK_DEFAULT, None);
/// let mut found = Vec::new();
/// for piece in ["mail ana@mail", "box.org now"] {
///     stream.push(&mut scanner, RuleSet::builtin(), &Budget::default(), piece, &mut found);
/// }
/// stream.finish(&mut scanner, RuleSet::builtin(), &Budget::default(), &mut found);
/// assert_eq!((found[0].start, found[0].end), (5, 20));
/// ```
#[derive(Debug)]
pub struct StreamScanner {
    hold_back: usize,
    name: Option<Box<str>>,
    window: String,
    /// Where the window begins in the text.
    window_at: u64,
    /// Findings that begin before this were reported.
    decided: u64,
    over_budget: Option<OverBudget>,
}

/// A finding in a text that was scanned in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFinding {
    /// First byte in the whole text.
    pub start: u64,
    /// One past the last byte. It may lie behind [`StreamScanner::decided`]: what follows the match is still to come.
    pub end: u64,
    /// The finding; its offsets count from the window and mean nothing here, its leaf is 0.
    pub finding: Finding,
}

impl StreamScanner {
    /// Room for the longest pattern that a rule may have, under an encoding that doubles it.
    pub const HOLD_BACK_DEFAULT: usize = 16 << 10;
    /// Less would cut ordinary tokens.
    pub const HOLD_BACK_MIN: usize = 256;

    /// A scan of one text, which stands under `name`. A hold-back below [`Self::HOLD_BACK_MIN`] is taken as that.
    pub fn new(hold_back: usize, name: Option<&str>) -> Self {
        Self {
            hold_back: hold_back.max(Self::HOLD_BACK_MIN),
            name: name.map(Into::into),
            window: String::new(),
            window_at: 0,
            decided: 0,
            over_budget: None,
        }
    }

    /// Takes the next piece. Appends the findings that became certain, in order of their start.
    pub fn push(
        &mut self,
        scanner: &mut Scanner,
        rules: &RuleSet,
        budget: &Budget,
        mut piece: &str,
        out: &mut Vec<StreamFinding>,
    ) {
        while !piece.is_empty() {
            let room = self.full_bytes().saturating_sub(self.window.len());
            let take = boundary_up(piece, room);
            self.window.push_str(&piece[..take]);
            piece = &piece[take..];
            if self.window.len() >= self.full_bytes() {
                let to = self.window.len() - self.hold_back - REACH_BYTES;
                self.decide(scanner, rules, budget, to, out);
                self.forget();
            }
        }
    }

    /// The text has ended: the rest of its findings.
    pub fn finish(
        mut self,
        scanner: &mut Scanner,
        rules: &RuleSet,
        budget: &Budget,
        out: &mut Vec<StreamFinding>,
    ) -> Option<OverBudget> {
        let to = self.window.len() + 1;
        self.decide(scanner, rules, budget, to, out);
        self.over_budget
    }

    /// All findings that begin before this byte are known: with them taken care of, the text up to here may go on.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Set when a window ran over its budget: "no findings" is then no statement.
    pub fn over_budget(&self) -> Option<OverBudget> {
        self.over_budget
    }

    /// Bytes kept in memory at the most, a character more or less.
    pub fn bytes_max(&self) -> usize {
        self.full_bytes()
    }

    /// Left context, a step, and what is held back.
    fn full_bytes(&self) -> usize {
        3 * self.hold_back + 2 * REACH_BYTES
    }

    /// Scans the window and reports what begins from `decided` to `to`, an index of the window.
    fn decide(
        &mut self,
        scanner: &mut Scanner,
        rules: &RuleSet,
        budget: &Budget,
        to: usize,
        out: &mut Vec<StreamFinding>,
    ) {
        let leaf = LeafInput {
            text: &self.window,
            kind: LeafKind::String,
            name: self.name.as_deref(),
        };
        let Outcome {
            findings,
            over_budget,
        } = scanner.scan(rules, std::iter::once(leaf), budget);
        self.over_budget = self.over_budget.or(over_budget);
        let to = self.window_at + to as u64;
        for finding in findings {
            let start = self.window_at + u64::from(finding.start);
            if (self.decided..to).contains(&start) {
                let end = self.window_at + u64::from(finding.end);
                out.push(StreamFinding {
                    start,
                    end,
                    finding,
                });
            }
        }
        self.decided = self.decided.max(to);
    }

    /// Drops what no later finding can need.
    fn forget(&mut self) {
        let decided = usize::try_from(self.decided - self.window_at).unwrap_or(self.window.len());
        let drop = decided.saturating_sub(self.hold_back + REACH_BYTES);
        let drop = self.window.floor_char_boundary(drop);
        self.window.drain(..drop);
        self.window_at += drop as u64;
    }
}

/// At least `bytes`, up to the end of the character there.
fn boundary_up(text: &str, bytes: usize) -> usize {
    let mut at = bytes.clamp(1, text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FingerprintKey;

    const HOLD: usize = StreamScanner::HOLD_BACK_MIN;

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

    fn in_pieces<'a>(scanner: &mut Scanner, pieces: impl Iterator<Item = &'a str>) -> Vec<Shown> {
        let (rules, budget) = (RuleSet::builtin(), Budget::default());
        let mut stream = StreamScanner::new(HOLD, None);
        let (mut found, mut decided, mut length) = (Vec::new(), 0, 0);
        for piece in pieces {
            let known = found.len();
            stream.push(scanner, rules, &budget, piece, &mut found);
            length += piece.len() as u64;
            assert!(stream.window.len() <= stream.bytes_max() + 4);
            assert!(length - stream.decided() <= stream.bytes_max() as u64 + 4);
            for f in &found[known..] {
                assert!(f.start >= decided && f.start < stream.decided());
            }
            decided = stream.decided();
        }
        assert_eq!(stream.finish(scanner, rules, &budget, &mut found), None);
        found
            .iter()
            .map(|f| show(f.start, f.end, &f.finding))
            .collect()
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
        let mut stream = StreamScanner::new(HOLD, None);
        let mut found = Vec::new();
        for _ in 0..2000 {
            let piece = "nothing to see in this line of text\n";
            stream.push(
                &mut scanner,
                RuleSet::builtin(),
                &Budget::default(),
                piece,
                &mut found,
            );
            assert!(stream.window.capacity() <= 4 * stream.bytes_max());
        }
        assert_eq!((found.len(), stream.over_budget()), (0, None));
    }
}
