//! Recovery phrases that stand without a name: 12 to 24 words of BIP-39's English list with the right check digits.
//!
//! Twelve words take at least 47 bytes. In a row of small letters and single blanks, with no word of less than three
//! letters, one word is looked up for every 30 bytes; little prose has such rows, and few of those words are the list's.

use std::sync::LazyLock;

use super::{Scratch, Sink, is_value};
use crate::ruleset::Detector;
use crate::text::Span;
use crate::traces::Traces;

const WORDS_MIN: usize = 12;
const WORDS_MAX: usize = 24;
/// Words of the list that may stand beside a phrase by chance.
const SLACK: usize = 2;
/// A blank, a word of at most eight letters and a blank lie in so many bytes of a phrase.
const WINDOW: usize = 18;
/// Windows so far from each other leave no room for a phrase between them.
const STEP: usize = crate::traces::WORDS_BYTES_MIN - WINDOW + 1;

pub(super) fn scan(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    if sink.rules.detectors[Detector::Mnemonic as usize].is_none() {
        return;
    }
    let node = sink.node;
    let mut index = 0;
    for i in 0..scratch.traces.words.len() {
        let row = scratch.traces.words[i];
        let Some(cell) = node
            .cell_from(row.start as usize, &mut index)
            .filter(|c| is_value(c))
        else {
            continue;
        };
        let (text, base) = (&node.text[cell.span.range()], cell.span.start as usize);
        let mut at = row.start as usize - base;
        while at + WINDOW <= row.end as usize - base {
            let word = whole_word(&scratch.traces, base + at);
            let word = at + word.start..at + word.end;
            if !in_list(&text[word.clone()]) {
                at += STEP;
                continue;
            }
            let end = around(text, word, scratch);
            let run = &scratch.words;
            // A longer row is a list of words, not a phrase in a sentence.
            if (WORDS_MIN..=WORDS_MAX + SLACK).contains(&run.len()) {
                if !sink.limits.spend(8) {
                    return;
                }
                // Words that were cells have nothing beside them, and labels are lists of everyday words, too.
                let whole = run.first().is_some_and(|word| word.0 == 0) && end == text.len();
                let is_row = whole && node.layer == Some(crate::Layer::Joined);
                if let Some((start, end)) = phrase(text, run, is_row) {
                    let span = Span::new(base + start, base + end);
                    sink.report_for(Detector::Mnemonic, span, None);
                }
            }
            // Up to here there is no other run.
            at = end + STEP;
        }
    }
}

/// The first whole word between blanks in the window at `at`, of a row that has nothing but letters and blanks. Empty
/// where there is none.
fn whole_word(traces: &Traces, at: usize) -> std::ops::Range<usize> {
    let blanks = !traces.alnum_from(at) & ((1 << WINDOW) - 1);
    let others = blanks & blanks.wrapping_sub(1);
    match others {
        0 => 0..0,
        _ => blanks.trailing_zeros() as usize + 1..others.trailing_zeros() as usize,
    }
}

/// Is it a word of the English list?
pub(crate) fn in_list(word: &[u8]) -> bool {
    let key = head(word);
    let (heads, seen) = (&*HEADS, hash(key) >> (32 - HEADS_BITS));
    let seen = heads[seen as usize / 64] >> (seen % 64) & 1 == 1;
    // One question, that is nearly always answered alike.
    if !((3..=8).contains(&word.len()) & seen) {
        return false;
    }
    let mut at = slot(key);
    while let Some((known, index)) = WORDS[at] {
        if known == key {
            let words = bip39::Language::English.word_list();
            return words[usize::from(index)].as_bytes() == word;
        }
        at = (at + 1) % SLOTS;
    }
    false
}

/// The first four letters, which no two words of the list share.
fn head(word: &[u8]) -> u32 {
    match *word {
        [a, b, c, d, ..] => u32::from_le_bytes([a, b, c, d]),
        [a, b, c] => u32::from_le_bytes([a, b, c, b' ']),
        _ => 0,
    }
}

/// Twice as many as there are words, so that a search soon ends at a free one.
const SLOTS: usize = 4096;

fn slot(head: u32) -> usize {
    (hash(head) >> 20) as usize % SLOTS
}

fn hash(head: u32) -> u32 {
    head.wrapping_mul(0x9E37_79B1)
}

/// Bits of a hash that name a bit of [`HEADS`].
const HEADS_BITS: u32 = 14;

/// Tells most words that are none of the list's, in two kilobytes that stay near.
static HEADS: LazyLock<Box<[u64; 1 << (HEADS_BITS - 6)]>> = LazyLock::new(|| {
    let mut heads = Box::new([0; _]);
    for word in bip39::Language::English.word_list() {
        let seen = hash(head(word.as_bytes())) >> (32 - HEADS_BITS);
        heads[seen as usize / 64] |= 1 << (seen % 64);
    }
    heads
});

/// The head of a word and its number in the list.
type Slot = Option<(u32, u16)>;

/// The words of the list, by their heads.
static WORDS: LazyLock<Box<[Slot]>> = LazyLock::new(|| {
    let mut slots: Vec<Slot> = vec![None; SLOTS];
    for (index, word) in (0u16..).zip(bip39::Language::English.word_list()) {
        let key = head(word.as_bytes());
        let mut at = slot(key);
        while slots[at].is_some() {
            at = (at + 1) % SLOTS;
        }
        slots[at] = Some((key, index));
    }
    slots.into()
});

/// Notes the words of the list around one of them, as far as they follow each other, but no more than make too many;
/// returns where they end.
fn around(text: &[u8], first: std::ops::Range<usize>, scratch: &mut Scratch) -> usize {
    const ENOUGH: usize = WORDS_MAX + SLACK + 1;
    let words = &mut scratch.words;
    words.clear();
    words.push((first.start, first.end));
    let mut start = first.start;
    while start > 0 && words.len() < ENOUGH && text[start - 1] == b' ' {
        let before = text[..start - 1].iter().rev().take(9);
        let len = before.take_while(|b| b.is_ascii_lowercase()).count();
        if !in_list(&text[start - 1 - len..start - 1]) {
            break;
        }
        start -= 1 + len;
        words.push((start, start + len));
    }
    words.reverse();
    let mut end = first.end;
    while words.len() < ENOUGH && text.get(end) == Some(&b' ') {
        let rest = text[end + 1..].iter().take(9);
        let len = rest.take_while(|b| b.is_ascii_lowercase()).count();
        if !in_list(&text[end + 1..end + 1 + len]) {
            break;
        }
        words.push((end + 1, end + 1 + len));
        end += 1 + len;
    }
    end
}

/// The phrase among neighbouring words whose check digits hold. One or two words beside it may be the sentence's, if it is no row
/// of words that stood by themselves.
fn phrase(text: &[u8], words: &[(usize, usize)], is_row: bool) -> Option<(usize, usize)> {
    let lens = [24, 21, 18, 15, 12].into_iter();
    let slack = if is_row { 0 } else { SLACK };
    for n in lens.filter(|n| (*n..=n + slack).contains(&words.len())) {
        for run in words.windows(n) {
            let (start, end) = (run[0].0, run[n - 1].1);
            let phrase = std::str::from_utf8(&text[start..end]).ok()?;
            if bip39::Mnemonic::parse_in_normalized(bip39::Language::English, phrase).is_ok() {
                return Some((start, end));
            }
        }
    }
    (!is_row).then(|| lone(text, words)).flatten()
}

/// A phrase whose check digits do not hold, as those of other wallets (TON, Electrum) do not: so many words of the list as
/// phrases have, in no order, with no other words of a sentence beside them.
fn lone(text: &[u8], words: &[(usize, usize)]) -> Option<(usize, usize)> {
    let (start, end) = (words.first()?.0, words.last()?.1);
    let said = |beside: Option<&[u8]>| {
        beside.is_some_and(|two| two.iter().any(|b| b.is_ascii_alphabetic() || *b >= 0x80))
    };
    let before = text[..start]
        .len()
        .checked_sub(2)
        .map(|at| &text[at..start]);
    let behind = &text[end..text.len().min(end + 2)];
    let word = |at: usize| &text[words[at].0..words[at].1];
    let rising = (1..words.len())
        .filter(|at| word(at - 1) < word(*at))
        .count();
    let twice = (1..words.len())
        .filter(|at| (0..*at).any(|n| word(n) == word(*at)))
        .count();
    let ordered = |n: usize| n * 5 >= words.len() * 4;
    let known = matches!(words.len(), 12 | 13 | 15 | 18 | 21 | 24 | 25);
    let lone = known && !said(before) && !said(Some(behind)) && twice <= 2;
    (lone && !ordered(rising) && !ordered(words.len() - 1 - rising)).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use crate::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

    fn found(text: &str) -> Vec<String> {
        let leaf = LeafInput {
            text,
            kind: LeafKind::String,
            name: None,
        };
        let rules = RuleSet::builtin();
        let outcome = Scanner::new(FingerprintKey::new([2; 32])).scan(
            rules,
            [leaf].into_iter(),
            &Budget::default(),
        );
        let of_rule = |f: &&crate::Finding| &*rules.rule(f.rule).id == "mnemonic-phrase";
        let text = |f: &crate::Finding| text[f.start as usize..f.end as usize].to_owned();
        outcome.findings.iter().filter(of_rule).map(text).collect()
    }

    #[test]
    fn every_word_of_the_list_is_known_and_no_other() {
        let words = bip39::Language::English.word_list();
        assert!(words.iter().all(|w| super::in_list(w.as_bytes())));
        for other in ["the", "abandons", "abou", "zoos", "through", "", "aa"] {
            assert!(!super::in_list(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn phrases_are_found_wherever_they_stand() {
        // Made here from a counter, for nobody.
        for (n, words) in [(16, 12), (20, 15), (32, 24)] {
            let entropy: Vec<u8> = (0..n).map(|i| (i * 37 + n) as u8).collect();
            let phrase = bip39::Mnemonic::from_entropy(&entropy).unwrap().to_string();
            assert_eq!(phrase.split(' ').count(), words);
            for pad in 0..60 {
                let text = format!("{} the {phrase}, and more of it", "x".repeat(pad));
                assert_eq!(found(&text), [phrase.as_str()], "{text}");
            }
        }
    }

    #[test]
    fn words_without_the_check_digits_are_prose() {
        for text in [
            "zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo",
            "the above abstract about access across act action actor actress actual adapt add",
            // The list itself, in its order.
            "abandon ability able about above absent absorb abstract absurd abuse access accident account accuse \
             achieve acid acoustic acquire across act action actor actress actual adapt add addict address adjust",
            "we must never forget the old house near the river because every summer story began there",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
