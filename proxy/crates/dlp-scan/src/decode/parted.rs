//! A number or an address of mail in short pieces of one length with one sign between all of them: `28_11_56_35_04`,
//! `250 / 658 / -67 / 9U`. Longer values in pieces are looked for in `strides`.

use smallvec::SmallVec;

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// Most pieces of a value, and fewest.
const PIECES: std::ops::RangeInclusive<usize> = 4..=16;
/// Fewer digits are no number of anybody.
const DIGITS_MIN: usize = 7;

/// How pieces are parted, and how long they may be.
struct Sign {
    bytes: &'static [u8],
    lens: std::ops::RangeInclusive<usize>,
}

const LOW_LINE: Sign = Sign {
    bytes: b"_",
    lens: 2..=3,
};
const STROKE: Sign = Sign {
    bytes: b" / ",
    lens: 2..=6,
};

impl Sign {
    fn of_piece(&self, b: u8) -> bool {
        match self.bytes {
            b"_" => b.is_ascii_alphanumeric(),
            _ => b.is_ascii_graphic() && !b"\"'`|/,;()<>".contains(&b),
        }
    }
}

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    let text = &node.text;
    for at in memchr::memchr2_iter(b'_', b'/', text) {
        let near = |n: usize| text.get(n).copied().unwrap_or(0);
        let before = near(at.wrapping_sub(1));
        let (sign, from) = match (text[at], before) {
            (b'_', b) if b.is_ascii_digit() && near(at + 1).is_ascii_digit() => (LOW_LINE, at),
            (b'/', b' ') if near(at + 1) == b' ' => (STROKE, at - 1),
            _ => continue,
        };
        if at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        let pieces = row(&text[..ceil], floor.max(done), from, &sign);
        let Some(last) = pieces.last() else { continue };
        let (start, end) = (pieces[0].start as usize, last.end as usize);
        done = end;
        if !PIECES.contains(&pieces.len()) || !worth(text, &pieces) {
            continue;
        }
        child_around(node, cell, Layer::Spaced, (start, end), spawn, |child| {
            for piece in &pieces {
                child.push(&text[piece.range()], *piece, How::Copy);
            }
        });
    }
}

/// The pieces from the one before the sign at `at` on.
fn row(text: &[u8], floor: usize, at: usize, sign: &Sign) -> SmallVec<[Span; 16]> {
    let mut pieces = SmallVec::new();
    let before = text[floor..at].iter().rev().take(sign.lens.end() + 1);
    let len = before.take_while(|b| sign.of_piece(**b)).count();
    // More of the same sign stands before the first.
    let outside = (at - len)
        .checked_sub(1)
        .filter(|n| *n >= floor)
        .map_or(b' ', |n| text[n]);
    if !sign.lens.contains(&len) || outside == b'_' || outside == b'/' {
        return pieces;
    }
    pieces.push(Span::new(at - len, at));
    let mut from = at;
    while text[from..].starts_with(sign.bytes) && pieces.len() <= *PIECES.end() {
        let start = from + sign.bytes.len();
        let own = text[start..]
            .iter()
            .take(len + 1)
            .take_while(|b| sign.of_piece(**b))
            .count();
        if own == 0 || own > len {
            pieces.clear();
            return pieces;
        }
        pieces.push(Span::new(start, start + own));
        from = start + own;
        if own < len {
            break;
        }
    }
    pieces
}

fn worth(text: &[u8], pieces: &[Span]) -> bool {
    let bytes = || pieces.iter().flat_map(|piece| &text[piece.range()]);
    let digits = bytes().filter(|b| b.is_ascii_digit()).count();
    digits >= DIGITS_MIN
        || bytes().filter(|b| **b == b'@').count() == 1 && bytes().any(|b| *b == b'.')
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn short_pieces_come_together() {
        for (text, want) in [
            ("cpr-nr. 28_11_56_35_04 er", Some("cpr-nr. 2811563504 er")),
            (
                "id 87_11_01_12_45_08_5, proof",
                Some("id 8711011245085, proof"),
            ),
            ("hetu: 250 / 658 / -67 / 9U", Some("hetu: 250658-679U")),
            (
                "mail: tru / jil / lo@ / sez / nam / .cz",
                Some("mail: trujillo@seznam.cz"),
            ),
            ("on 12 / 05 / 2024 at", None),
            ("2024_01_15_10_22", None),
            ("read / write / list / admin", None),
            ("a_10_20_30", None),
        ] {
            assert_child(text, Layer::Spaced, want);
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("cpr 28_11_56_35_04, ");
    }
}
