//! JSON numbers as what they mean (RFC 8259, section 6): `4.5395e15` and `4539500000000000.0` are written in digits alone.

use super::Spawner;
use crate::text::{Cell, How, NO_LEAF, Node};
use crate::{Layer, LeafKind};

/// The numbers that are looked for have so many digits.
const DIGITS: std::ops::RangeInclusive<usize> = 6..=40;

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    let mut child = None;
    for cell in node.cells.iter().filter(|c| c.kind == LeafKind::Number) {
        if cell.leaf == NO_LEAF {
            continue;
        }
        let Some((negative, digits)) = whole(&node.text[cell.span.range()]) else {
            continue;
        };
        if child.is_none() {
            child = spawn.begin(Layer::Number);
        }
        let Some(child) = &mut child else {
            return;
        };
        push(child, node, cell, negative, &digits);
    }
    if let Some(child) = child {
        spawn.end(child);
    }
}

fn push(child: &mut Node, node: &Node, cell: &Cell, negative: bool, digits: &[u8]) {
    let name = super::begin_cell(child, node, super::name_of(node, cell));
    let start = child.text.len();
    if negative {
        child.push(b"-", cell.span, How::Atom);
    }
    child.push(digits, cell.span, How::Atom);
    child.close_cell(start, name, cell.kind, 0);
}

/// The digits of a number that is whole and not written so, and whether it is negative.
fn whole(text: &[u8]) -> Option<(bool, Vec<u8>)> {
    // Most numbers are short.
    let at = text.iter().position(|b| matches!(b, b'.' | b'e' | b'E'))?;
    let negative = text.starts_with(b"-");
    let unsigned = &text[usize::from(negative)..];
    let at = at.checked_sub(usize::from(negative))?;
    let exponent_at = unsigned[at..]
        .iter()
        .position(|b| matches!(b, b'e' | b'E'))
        .map_or(unsigned.len(), |n| at + n);
    let exponent: i64 = match unsigned.get(exponent_at + 1..) {
        Some(digits) => std::str::from_utf8(digits).ok()?.parse().ok()?,
        None => 0,
    };
    let (before, after) = match unsigned[..exponent_at].split_at_checked(at) {
        Some((before, [b'.', after @ ..])) => (before, after),
        Some((before, _)) => (before, &[][..]),
        None => return None,
    };
    if before.len() + after.len() > 4 * DIGITS.end() {
        return None;
    }
    // Where the point stands in them, once the exponent has moved it.
    let point = i64::try_from(before.len()).ok()?.checked_add(exponent)?;
    let point = usize::try_from(point)
        .ok()
        .filter(|p| *p <= 4 * DIGITS.end())?;
    // Most are amounts, with something behind the point.
    if before.iter().chain(after).skip(point).any(|b| *b != b'0') {
        return None;
    }
    let mut digits = [before, after].concat();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    digits.resize(point, b'0');
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    digits.drain(..zeros);
    DIGITS.contains(&digits.len()).then_some((negative, digits))
}

#[cfg(test)]
mod tests {
    #[test]
    fn whole_numbers_however_written() {
        for (text, want) in [
            ("4539578763621486.0", Some("4539578763621486")),
            ("4.539578763621486e15", Some("4539578763621486")),
            ("4.539578763621486E+15", Some("4539578763621486")),
            ("4539578763621486e0", Some("4539578763621486")),
            ("45395787636214860e-1", Some("4539578763621486")),
            ("0.0004539578763621486e19", Some("4539578763621486")),
            ("-4539578763621486.00", Some("4539578763621486")),
            ("4539578763621486", None),
            ("4539578763621486.5", None),
            ("45395787636214861e-1", None),
            ("1.5e3", None),
            ("1e400", None),
            ("1e99999999999999999999", None),
            ("1e-9223372036854775808", None),
            ("12.", None),
        ] {
            let got = super::whole(text.as_bytes()).map(|(_, d)| String::from_utf8(d).unwrap());
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }
}
