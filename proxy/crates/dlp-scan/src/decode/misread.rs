//! Numbers with letters that look like digits, as a scan or a typist puts them (`42OB 4641 34O3 7993`), and with one letter
//! between each two digits (`4x1x3x2`). They are read as the digits; what a number is its rule says, by its check and its label.

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// How many letters and digits such a number has.
const SIGNS: std::ops::RangeInclusive<usize> = 9..=24;
/// So many stand before a letter that proves them.
const PROVEN_MIN: usize = 7;
/// A digit and the letter behind it, so many times at least.
const PAIRS_MIN: usize = 8;

const DIGIT: u8 = 1;
/// A letter that looks like a digit; without those that hexadecimal numbers have there is no such number.
const LIKE: u8 = 2;
const LIKE_NO_HEX: u8 = 4;
const OTHER: u8 = 8;

static CLASS: [u8; 256] = {
    let mut classes = [OTHER; 256];
    let mut b = 0;
    while b < 256 {
        classes[b] = match b as u8 {
            b'0'..=b'9' => DIGIT,
            b'B' | b'D' => LIKE,
            b'O' | b'o' | b'Q' | b'I' | b'l' | b'S' | b'Z' | b'G' => LIKE_NO_HEX,
            _ => OTHER,
        };
        b += 1;
    }
    classes
};

fn class_of(word: &[u8]) -> u8 {
    word.iter().fold(0, |all, b| all | CLASS[usize::from(*b)])
}

/// The place of such a number among words that stand beside each other, if there is one.
pub(crate) fn place(text: &[u8], words: impl Iterator<Item = (usize, usize)>) -> Option<Span> {
    let (mut run, mut any, mut signs, mut digits): (Option<Span>, u8, usize, usize) =
        (None, 0, 0, 0);
    let mut found = None;
    let mut end = |run: Option<Span>, any: u8, signs: usize, digits: usize| {
        let number = any & LIKE_NO_HEX != 0 && SIGNS.contains(&signs) && digits * 5 >= signs * 2;
        found = found.or(run.filter(|_| number));
    };
    for (from, stop) in words {
        let word = &text[from..stop];
        // `84Sl233SP`: the letter that proves a number stands at its end.
        let proof = |b: &u8| b.is_ascii_uppercase() && CLASS[usize::from(*b)] == OTHER;
        let core = match word.split_last() {
            Some((last, rest)) if rest.len() >= PROVEN_MIN && proof(last) => rest,
            _ => word,
        };
        let class = class_of(core);
        if class & OTHER != 0 || class & DIGIT == 0 {
            end(run.take(), any, signs, digits);
            (any, signs, digits) = (0, 0, 0);
            continue;
        }
        let start = run.map_or(from, |run| run.start as usize);
        run = Some(Span::new(start, stop));
        any |= class;
        signs += word.len();
        digits += word.iter().filter(|b| b.is_ascii_digit()).count();
    }
    end(run, any, signs, digits);
    found
}

/// Is the word digits with one letter between each two?
pub(crate) fn is_parted(word: &[u8]) -> bool {
    let pairs = word.chunks(2);
    word.len() > 2 * PAIRS_MIN
        && word[1].is_ascii_alphabetic()
        && pairs.clone().all(|pair| {
            pair[0].is_ascii_digit() && pair.get(1).is_none_or(|letter| *letter == word[1])
        })
}

/// Where a card's number ends that begins at `from`, in fours with the same signs between each two that nothing else is parted by:
/// `4687_4251_8638_9152`, `[4818][3425][3366][0635]`, `**5507**9690**7521**3606`.
pub(crate) fn is_card_literal(text: &[u8], from: usize) -> Option<usize> {
    const GAPS: [&[u8]; 9] = [
        b"_", b"][", b"] [", b"**", b"** **", b"__", b"`", b"` `", b")(",
    ];
    let rest = text.get(from + 4..)?;
    let gap = GAPS
        .iter()
        .find(|gap| rest.starts_with(gap) && rest.get(gap.len()).is_some_and(u8::is_ascii_digit))?;
    let mut at = from;
    for nth in 0..4 {
        let four = text.get(at..at + 4)?;
        if !four.iter().all(u8::is_ascii_digit) {
            return None;
        }
        at += 4;
        if nth < 3 {
            at = text[at..].starts_with(gap).then_some(at + gap.len())?;
        }
    }
    let more = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' && *gap == b"_";
    (!text.get(at).is_some_and(more)).then_some(at)
}

pub(super) fn decode(node: &Node, places: &[Span], spawn: &mut Spawner<'_>) {
    let mut index = 0;
    for place in places {
        let (from, to) = (place.start as usize, place.end as usize);
        let Some(cell) = node
            .cell_from(from, &mut index)
            .filter(|c| c.leaf != NO_LEAF)
        else {
            continue;
        };
        let number = &node.text[from..to];
        if node.only_sure || is_time(number) {
            continue;
        }
        let digits = is_parted(number) || is_card_literal(number, 0) == Some(number.len());
        child_around(node, cell, Layer::Leet, (from, to), spawn, |child| {
            for at in from..to {
                let b = node.text[at];
                if digits && !b.is_ascii_digit() {
                    continue;
                }
                child.push(&[digit(b)], Span::new(at, at + 1), How::Atom);
            }
        });
    }
}

/// `270503042511Z091`: a time of a certificate (ITU-T X.690, sections 11.7 and 11.8), with what stands behind it in the bytes.
fn is_time(number: &[u8]) -> bool {
    let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
    matches!(digits, 12 | 14) && number.get(digits) == Some(&b'Z')
}

fn digit(b: u8) -> u8 {
    match b {
        b'O' | b'o' | b'Q' | b'D' => b'0',
        b'I' | b'l' => b'1',
        b'Z' => b'2',
        b'S' => b'5',
        b'G' => b'6',
        b'B' => b'8',
        b => b,
    }
}

#[cfg(test)]
mod tests {
    use super::{digit, is_card_literal, is_parted, place};

    /// What the number among the words of a text is read as, if there is one.
    fn read(text: &str) -> Option<String> {
        let bytes = text.as_bytes();
        let mut words = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let len = bytes[at..]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric())
                .count();
            if len > 0 {
                words.push((at, at + len));
            }
            at += len + 1;
        }
        let span = place(bytes, words.into_iter())?;
        let read = bytes[span.range()].iter().map(|b| char::from(digit(*b)));
        Some(read.collect())
    }

    #[test]
    fn letters_like_digits_are_read() {
        for (text, want) in [
            ("holder T: 42OB 4641 34O3 7993", Some("4208 4641 3403 7993")),
            ("typed 365-23-l3O9 as hers", Some("365-23-1309")),
            ("dni 84Sl233SP, x", Some("84512335P")),
            ("S6I7 476O 73I3 OS43 on it", Some("5617 4760 7313 0543")),
            ("42BD 4641 34B3 7993", None),
            ("took 10s 20s 30s 40s", None),
            ("12O", None),
            ("SOLO 1234 OSLO 5678", None),
        ] {
            assert_eq!(read(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn a_letter_between_each_two_digits_parts_them() {
        assert!(is_parted(b"4x1x3x2x1x9x9x4x6x5x2x4x5x3x0x9"));
        assert!(!is_parted(b"4x1x3x2"));
        assert!(!is_parted(b"4x1y3x2x1x9x9x4x6x5x2x4"));
    }

    #[test]
    fn a_card_in_fours_with_signs_between_ends_where_it_ends() {
        for (text, is) in [
            ("4687_4251_8638_9152", true),
            ("4818][3425][3366][0635", true),
            ("5507**9690**7521**3606", true),
            ("1111_0000_1111_0000_1111", false),
            ("4687_4251_8638", false),
            ("4687_4251-8638_9152", false),
        ] {
            let end = is_card_literal(text.as_bytes(), 0);
            assert_eq!(end == Some(text.len()), is, "{text}");
        }
    }
}
