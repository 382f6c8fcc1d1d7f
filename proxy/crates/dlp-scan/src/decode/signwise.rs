//! Values of which each sign was changed, in a way that is told beside them: upper and lower case swapped, the signs of each pair
//! swapped, each byte combined with a key (`4f1c... (each byte xor 0x5a)`), every second sign put in (`"gxhxpx_x"[::2]`).

use super::marks::Mark;
use super::{Spawner, child_around, label_before};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// Longest value, and shortest.
const VALUE_BYTES_MAX: usize = 1024;
const BYTES_MIN: usize = 6;
/// How far from the word it is told what was swapped, and how long a key is.
const NEAR: usize = 48;

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    // What says so says it of what was turned, too.
    if node.turned {
        return;
    }
    let (mut index, mut done) = (0, 0);
    for (at, _) in marks.iter().filter(|(_, mark)| *mark == Mark::Signwise) {
        let at = *at as usize;
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if at < done {
            continue;
        }
        let text = &node.text[..cell.span.end as usize];
        let floor = done.max(cell.span.start as usize);
        done = at + 1;
        if text[at] == b'[' {
            if let Some((literal, end, step)) = every(text, floor, at) {
                done = end;
                let (label, sign) = label_before(&node.text, cell, literal.start as usize - 1);
                child_around(node, cell, Layer::Spaced, (label, end), spawn, |child| {
                    child.push(sign, Span::new(label, label + 1), How::Atom);
                    for at in literal.range().skip(step.0).step_by(step.1) {
                        child.push(&text[at..=at], Span::new(at, at + 1), How::Copy);
                    }
                    child.push(b" ", Span::new(end - 1, end), How::Atom);
                });
            }
            continue;
        }
        let near = &text[at.saturating_sub(NEAR).max(floor)..text.len().min(at + NEAR)];
        let Some(change) = Change::told(near, &text[at..]) else {
            continue;
        };
        let Some(place) = told_near(text, floor, at, |word| change.fits(word)) else {
            continue;
        };
        done = done.max(place.1);
        let value = &text[place.0..place.1];
        let span = Span::new(place.0, place.1);
        let (layer, bytes, how) = match change {
            Change::Case => (
                Layer::Reversed,
                value.iter().map(swap_case).collect(),
                How::Blocks { dst: 1, src: 1 },
            ),
            Change::Pairs => {
                let pairs = value.chunks(2).flat_map(|pair| pair.iter().rev().copied());
                (Layer::Reversed, pairs.collect(), How::Atom)
            }
            Change::Key(key) => match combined(value, key) {
                Some(bytes) => (Layer::Hex, bytes, How::Blocks { dst: 1, src: 2 }),
                None => continue,
            },
        };
        let bytes: Vec<u8> = bytes;
        child_around(node, cell, layer, place, spawn, |child| {
            child.push(&bytes, span, how);
        });
    }
}

#[derive(Clone, Copy)]
enum Change {
    Case,
    Pairs,
    Key(u8),
}

impl Change {
    /// What is told around the word, and from it on.
    fn told(near: &[u8], from: &[u8]) -> Option<Self> {
        let has = |words: &[&[u8]]| {
            let is = |word: &&[u8]| {
                let here = |w: &[u8]| w.eq_ignore_ascii_case(word);
                near.windows(word.len()).any(here)
            };
            words.iter().any(is)
        };
        if from[0].eq_ignore_ascii_case(&b's') {
            return if has(&[b"case", b"capital"]) {
                Some(Self::Case)
            } else {
                has(&[b"pair", b"adjacent", b"every two", b"two by two"]).then_some(Self::Pairs)
            };
        }
        // ` xor 0x5a`, `xored with key 90`
        let lead = &from[..from.len().min(24)];
        let lead = lead.split(|b| b"\n:;)".contains(b)).next()?;
        let digit = lead.iter().position(u8::is_ascii_digit)?;
        let number = &lead[digit..];
        let (digits, radix) = match number.strip_prefix(b"0x") {
            Some(hex) => (hex, 16),
            None => (number, 10),
        };
        let len = digits.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let digits = std::str::from_utf8(&digits[..len]).ok()?;
        let key = u8::from_str_radix(digits, radix).ok()?;
        (key > 0).then_some(Self::Key(key))
    }

    /// May the word have been changed so?
    fn fits(self, word: &[u8]) -> bool {
        match self {
            Self::Key(_) => word.len().is_multiple_of(2) && word.iter().all(u8::is_ascii_hexdigit),
            _ => word.is_ascii(),
        }
    }
}

fn swap_case(b: &u8) -> u8 {
    match b.is_ascii_alphabetic() {
        true => b ^ 0x20,
        false => *b,
    }
}

/// Hexadecimal digits of bytes, each of them combined with the key.
fn combined(digits: &[u8], key: u8) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16);
    let byte = |pair: &[u8]| {
        let byte = digit(pair[0])? << 4 | digit(*pair.get(1)?)?;
        u8::try_from(byte).ok().map(|byte| byte ^ key)
    };
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    let shown = bytes.iter().all(|b| (0x20..0x7F).contains(b));
    (shown && bytes.len() >= BYTES_MIN).then_some(bytes)
}

/// The literal before `[::2]`, where the brackets end, and which of its signs stay.
fn every(text: &[u8], floor: usize, at: usize) -> Option<(Span, usize, (usize, usize))> {
    let close = at + text[at..].iter().take(8).position(|b| *b == b']')?;
    let mut numbers = text[at + 1..close].split(|b| *b == b':');
    let first = match numbers.next()? {
        [] => 0,
        [digit] => usize::from(digit - b'0'),
        _ => return None,
    };
    let step = usize::from(text[close - 1] - b'0');
    let quote = *text[floor..at].last().filter(|b| b"\"'".contains(b))?;
    let from = (at - 1).saturating_sub(VALUE_BYTES_MAX).max(floor);
    let open = from + memchr::memrchr2(quote, b'\n', &text[from..at - 1])?;
    let literal = Span::new(open + 1, at - 1);
    let whole =
        text[open] == quote && literal.len() >= BYTES_MIN * step && text[open..at].is_ascii();
    whole.then_some((literal, close + 1, (first, step)))
}

/// What a word tells something about: the nearest word before it in its line that nobody speaks, or the next one behind it there,
/// or the line below it or above it.
pub(super) fn told_near(
    text: &[u8],
    floor: usize,
    at: usize,
    fits: impl Fn(&[u8]) -> bool,
) -> Option<(usize, usize)> {
    let back = at.saturating_sub(VALUE_BYTES_MAX).max(floor);
    let ahead = text.len().min(at + VALUE_BYTES_MAX);
    let line = memchr::memrchr(b'\n', &text[back..at]).map_or(back, |n| back + n + 1);
    let end = memchr::memchr(b'\n', &text[at..ahead]).map_or(ahead, |n| at + n);
    let word = |place: &(usize, usize)| {
        let word = &text[place.0..place.1];
        is_drawn(word) && fits(word)
    };
    if let Some(place) = words(text, line, at).into_iter().rev().find(word) {
        return Some(place);
    }
    if let Some(place) = words(text, at, end).into_iter().find(word) {
        return Some(place);
    }
    // The line below, maybe with an empty one between them; words in capitals are one value.
    let gap = text[end..ahead]
        .iter()
        .take_while(|b| b.is_ascii_whitespace());
    let below = end + gap.count();
    let stop = memchr::memchr(b'\n', &text[below..ahead]).map_or(ahead, |n| below + n);
    let stop = below + text[below..stop].trim_ascii_end().len();
    let row = &text[below..stop];
    let capitals = |b: &u8| b.is_ascii_uppercase() || *b == b' ';
    if row.len() >= 40 && row.iter().all(capitals) && fits(row) {
        return Some((below, stop));
    }
    let last = |from: usize, to: usize| words(text, from, to).into_iter().rev().find(word);
    last(below, stop).or_else(|| {
        let above = back + text[back..line].trim_ascii_end().len();
        let start = memchr::memrchr(b'\n', &text[back..above]).map_or(back, |n| back + n + 1);
        last(start, above)
    })
}

/// Where the words lie, without the signs of a sentence around them.
fn words(text: &[u8], from: usize, to: usize) -> Vec<(usize, usize)> {
    let around = |b: &u8| b"\"'`()[]{},;:.<>".contains(b);
    let (mut found, mut start) = (Vec::new(), from);
    for word in text[from..to].split(|b| b.is_ascii_whitespace()) {
        let lead = word.iter().take_while(|b| around(b)).count();
        let tail = word[lead..].iter().rev().take_while(|b| around(b)).count();
        found.push((start + lead, start + word.len() - tail));
        start += word.len() + 1;
    }
    found
}

/// A word that nobody speaks: of some length, with figures, or with capital letters within it.
fn is_drawn(word: &[u8]) -> bool {
    const WORD_BYTES_MIN: usize = 8;
    let count = |kind: fn(&u8) -> bool| word.iter().filter(|b| kind(b)).count();
    word.len() >= WORD_BYTES_MIN
        && (count(u8::is_ascii_digit) > 0
            || count(u8::is_ascii_uppercase) > 1 && count(u8::is_ascii_lowercase) > 1)
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn what_is_told_is_undone() {
        for (text, layer, want) in [
            (
                "I typed GHP_zQ7K (with upper and lower case swapped)",
                Layer::Reversed,
                Some("ghp_Zq7k"),
            ),
            (
                "the key, case swapped, is below.\n\n    GHP_zQ7Kz\nend",
                Layer::Reversed,
                Some("ghp_Zq7kZ\nend"),
            ),
            (
                "each pair of signs swapped\nhg_pqZk7z1",
                Layer::Reversed,
                Some("ghp_Zq7k1z"),
            ),
            (
                "key: 3d322a0a003d6d31 (each byte xor 0x5a)",
                Layer::Hex,
                Some("key: ghpPZg7k"),
            ),
            (
                "K = \"gxhxpx_xZxqx7xkx\"[::2]",
                Layer::Spaced,
                Some("K = ghp_Zq7k "),
            ),
            (
                "K = 'xgxhxpx_xZxqx7xk'[1::2]",
                Layer::Spaced,
                Some("K = ghp_Zq7k "),
            ),
            (
                "the disks were swapped, see 0a1b2c3d",
                Layer::Reversed,
                None,
            ),
            ("names[::2]", Layer::Spaced, None),
            ("a xor b, then 3d322a0a003d6d31 xor 9999", Layer::Hex, None),
            (
                "3d322a0a003d6d31 xor 0x01 is noise of 0a1b",
                Layer::Hex,
                None,
            ),
        ] {
            assert_child(text, layer, want);
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("GHP_zQ7Kz1 (case swapped) ");
        assert_bounded("K = \"gxhxpx_xZxqx7xkx\"[::2]\n");
    }
}
