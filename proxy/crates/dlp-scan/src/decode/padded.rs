//! Short base64: numbers of nine to eleven digits give fewer letters than a run has that is looked for everywhere. The
//! padding behind it, or the `;base64,` before it, tells it; only text without signs of its own is taken.

use super::{Spawner, child_around, mirrored};
use crate::Layer;
use crate::check::base64_digit;
use crate::text::{Cell, How, Node, RUN_BYTES_MIN, Span};

/// Letters of seven bytes.
const DIGITS_MIN: usize = 10;
/// What a data URI says before the letters.
const DATA: &[u8] = b";base64,";

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let (mut done, mut index) = (0, 0);
    // One look at the text for both.
    for at in memchr::memchr2_iter(b'=', b';', text) {
        if text[at] == b'='
            && let Some(end) = mirrored::run(text, at)
            && let Some(cell) = node.cell_from(at, &mut index)
        {
            mirrored::read(node, cell, (at, end), spawn);
            continue;
        }
        if text[at] == b'='
            && at >= done
            && let Some((start, to)) = padded32(text, at)
            && let Some(cell) = node.cell_from(start, &mut index)
            && short32(node, cell, (start, at), to, spawn)
        {
            done = to;
            continue;
        }
        let found = match text[at] {
            b';' => named(text, at),
            _ if at < done => None,
            _ => padded(text, at, &mut done),
        };
        if let Some((start, end, to)) = found
            && let Some(cell) = node.cell_from(start, &mut index)
        {
            short(node, cell, (start, end), to, spawn);
        }
    }
}

/// The letters before the padding at `at`, and where that ends.
fn padded(text: &[u8], at: usize, done: &mut usize) -> Option<(usize, usize, usize)> {
    // A sign behind a blank or the second of two ends nothing.
    base64_digit(text[at.checked_sub(1)?])?;
    let letters = text[..at].iter().rev().take(RUN_BYTES_MIN);
    let len = letters.take_while(|b| base64_digit(**b).is_some()).count();
    let pads = 1 + usize::from(text.get(at + 1) == Some(&b'='));
    *done = at + pads;
    let glued = text
        .get(*done)
        .is_some_and(|b| *b == b'=' || base64_digit(*b).is_some());
    let is = (DIGITS_MIN..RUN_BYTES_MIN).contains(&len) && (len + pads).is_multiple_of(4) && !glued;
    is.then_some((at - len, at, *done))
}

/// The value of a letter of base32 (RFC 4648, section 6).
fn base32_digit(b: u8) -> Option<u8> {
    match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'2'..=b'7' => Some(b - b'2' + 26),
        _ => None,
    }
}

/// Where the letters of base32 begin that the padding at `at` fills up to groups of eight, and where that ends.
fn padded32(text: &[u8], at: usize) -> Option<(usize, usize)> {
    base32_digit(text[at.checked_sub(1)?])?;
    let letters = text[..at].iter().rev().take(RUN_BYTES_MIN);
    let len = letters.take_while(|b| base32_digit(**b).is_some()).count();
    let pads = text[at..]
        .iter()
        .take(7)
        .take_while(|b| **b == b'=')
        .count();
    let free = |b: Option<&u8>| b.is_none_or(|b| *b != b'=' && base64_digit(*b).is_none());
    let is = (DIGITS_MIN..RUN_BYTES_MIN).contains(&len)
        && (len + pads).is_multiple_of(8)
        && free(text.get(at + pads))
        && (at == len || free(text.get(at - len - 1)) || text[at - len - 1] == b'=');
    is.then_some((at - len, at + pads))
}

/// A child of the text that short base32 stands for, if it is one.
fn short32(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    to: usize,
    spawn: &mut Spawner<'_>,
) -> bool {
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(RUN_BYTES_MIN), 0u32, 0);
    let digits = node.text[start..end]
        .iter()
        .filter_map(|b| base32_digit(*b));
    for digit in digits {
        (bits, held) = (bits << 5 | u32::from(digit), held + 5);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    let shown = bytes.iter().all(|b| (0x20..0x7F).contains(b));
    if to > cell.span.end as usize || !shown || !bytes.iter().any(u8::is_ascii_digit) {
        return false;
    }
    child_around(node, cell, Layer::Base32, (start, to), spawn, |child| {
        child.push(&bytes, Span::new(start, to), How::Atom);
    });
    true
}

/// The letters behind what a data URI says.
fn named(text: &[u8], at: usize) -> Option<(usize, usize, usize)> {
    if !text[at..].starts_with(DATA) {
        return None;
    }
    let start = at + DATA.len();
    let letters = text[start..].iter().take(RUN_BYTES_MIN);
    let len = letters.take_while(|b| base64_digit(**b).is_some()).count();
    // With padding it was found by that.
    let bare = text.get(start + len) != Some(&b'=');
    let is = (DIGITS_MIN..RUN_BYTES_MIN).contains(&len) && bare;
    is.then_some((start, start + len, start + len))
}

/// A child of the text, if it is one: printable, with a digit in it.
fn short(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    to: usize,
    spawn: &mut Spawner<'_>,
) {
    if to > cell.span.end as usize {
        return;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(RUN_BYTES_MIN), 0u32, 0);
    for digit in node.text[start..end]
        .iter()
        .filter_map(|b| base64_digit(*b))
    {
        (bits, held) = (bits << 6 | u32::from(digit), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    let text = bytes.iter().all(|b| (0x20..0x7F).contains(b));
    if !text || !bytes.iter().any(u8::is_ascii_digit) {
        return;
    }
    child_around(node, cell, Layer::Base64, (start, to), spawn, |child| {
        child.push(&bytes, Span::new(start, to), How::Atom);
    });
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{children, run};

    #[test]
    fn short_base32_is_read() {
        for (text, want) in [
            ("ppsn: GQYTKMJXGY4VO===; x", Some("ppsn: 4151769W; x")),
            ("id = HA3FIQZQGMZTGMQ=", Some("id = 86TC03332")),
            ("KEY=VALUE2=", None),
            ("ABCDEFGHIJKLM===", None),
        ] {
            let found = children(text)
                .into_iter()
                .find(|(layer, ..)| *layer == Layer::Base32);
            assert_eq!(found.map(|c| c.1).as_deref(), want, "{text}");
        }
    }

    fn read(text: &str) -> Option<String> {
        let mut found = children(text).into_iter();
        let child = found.find(|(layer, ..)| *layer == Layer::Base64)?;
        Some(child.1)
    }

    #[test]
    fn short_texts_are_read() {
        let cases = [
            ("MRN: MTc4OTM3OTk=", Some("MRN: 17893799")),
            (
                "data:text/plain;base64,MTY2NTM1ODUyMQ== end",
                Some("1665358521 end"),
            ),
            ("x;base64,MTIzNDU2Nzg5", Some("x;base64,123456789")),
            ("MRN: MTc4OTM3OTk==", None),
            ("MRN: MTc4OTM3OTk=x", None),
            ("accessToken=", None),
            ("MTc4OTM3OTk", None),
            ("=", None),
            (";base64,", None),
        ];
        for (text, want) in cases {
            assert_eq!(read(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        let (nodes, over) = run(&"MTc4OTM3OTk= ".repeat(2000), 10_000);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 10_000);
        assert!(over.is_some());
    }
}
