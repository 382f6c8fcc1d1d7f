//! Numbers that were cut where a line ended (`CPF: 019.379.` and `719-45` below it), and numbers in groups of four whatever
//! their own groups are (`PESEL: 5602 2604 805`). Only under a sign that gives them a name: elsewhere they are tables.

use super::{Ends, Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// Longest piece on a line, and most lines.
const PIECE_BYTES_MAX: usize = 40;
const LINES_MAX: usize = 8;
/// Fewer digits are no number of anything.
const DIGITS_MIN: usize = 6;
/// The length of a group, and most digits that stand in groups.
const GROUP_BYTES: usize = 4;
const GROUPED_BYTES_MAX: usize = 44;

pub(super) fn decode(node: &Node, ends: &Ends, spawn: &mut Spawner<'_>) {
    let (text, mut index, mut done) = (&node.text, 0, 0);
    for at in ends.0.iter().map(|end| *end as usize) {
        let near = |at: Option<usize>| {
            at.and_then(|at| text.get(at))
                .is_some_and(|b| of_number(*b))
        };
        if at < done || !near(at.checked_sub(1)) || !near(Some(at + 1)) {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let Some(pieces) = pieces_around(text, at, cell) else {
            continue;
        };
        done = pieces[pieces.len() - 1].end as usize;
        emit(node, cell, &pieces, spawn);
    }
}

/// A row of four digits each, with or without a shorter one at its end, behind the sign of a label.
pub(super) fn grouped(text: &[u8], (from, to): (usize, usize), cell: &Cell) -> bool {
    let row = &text[from..to];
    let digits = row.iter().filter(|b| b.is_ascii_digit()).count();
    let sizes = row.split(|b| *b == b' ').map(<[u8]>::len);
    digits >= DIGITS_MIN
        && row.len() <= GROUPED_BYTES_MAX
        && sizes.clone().all(|len| (1..=GROUP_BYTES).contains(&len))
        && sizes.clone().filter(|len| *len == GROUP_BYTES).count() + 1 >= sizes.count()
        && row
            .iter()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase() || *b == b' ')
        && labelled(text, from, cell)
}

fn of_number(b: u8) -> bool {
    b.is_ascii_digit() || b.is_ascii_uppercase() || matches!(b, b'-' | b'.' | b'/')
}

/// Does the sign of a label stand before it, or is it all that stands under a name?
fn labelled(text: &[u8], from: usize, cell: &Cell) -> bool {
    let floor = cell.span.start as usize;
    if from == floor {
        return !cell.name.is_empty();
    }
    let before = text[floor..from].trim_ascii_end();
    let told = [&b"\xEF\xBC\x9A"[..], b"->", b"=>"]
        .iter()
        .any(|sign| before.ends_with(sign));
    told || matches!(before.last(), Some(b':' | b'=' | b'#'))
}

/// The end of the line that ends at `at`, if a label gives it its name, and the lines after it that are nothing else than
/// its rest.
fn pieces_around(text: &[u8], at: usize, cell: &Cell) -> Option<Vec<Span>> {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let before = text[floor..at].iter().rev().take(PIECE_BYTES_MAX + 1);
    let from = at - before.take_while(|b| of_number(**b)).count();
    if at - from > PIECE_BYTES_MAX || !labelled(text, from, cell) {
        return None;
    }
    let mut pieces = vec![Span::new(from, at)];
    let mut line = at + 1;
    while pieces.len() < LINES_MAX {
        let rest = text[line.min(ceil)..ceil].iter().take(PIECE_BYTES_MAX + 1);
        let end = line + rest.take_while(|b| of_number(**b)).count();
        // What goes on in the line is another line of the text.
        let whole = text[..ceil]
            .get(end)
            .is_none_or(|b| matches!(b, b'\n' | b'"' | b'\'' | b'`' | b'<' | b'|'));
        if end == line || !whole {
            break;
        }
        pieces.push(Span::new(line, end));
        line = end + 1;
    }
    let count = |is: fn(&u8) -> bool| {
        pieces
            .iter()
            .flat_map(|p| &text[p.range()])
            .filter(|b| is(b))
            .count()
    };
    let digits = count(u8::is_ascii_digit);
    let known = digits >= DIGITS_MIN && digits >= count(u8::is_ascii_uppercase);
    (pieces.len() > 1 && known).then_some(pieces)
}

fn emit(node: &Node, cell: &Cell, pieces: &[Span], spawn: &mut Spawner<'_>) {
    let place = (
        pieces[0].start as usize,
        pieces[pieces.len() - 1].end as usize,
    );
    child_around(node, cell, Layer::Spaced, place, spawn, |child| {
        for piece in pieces {
            child.push(&node.text[piece.range()], *piece, How::Copy);
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn numbers_close_up() {
        for (text, want) in [
            ("CPF: 019.379.\n719-45", Some("CPF: 019.379.719-45")),
            ("BSN = 909\n548687\nnext", Some("BSN = 909548687\nnext")),
            (
                "IBAN: DE44\n48297039\n8824952253",
                Some("DE44482970398824952253"),
            ),
            ("909\n548687", None),
            ("count: 12\n34", None),
            ("rows: 909548\n687 of 12", None),
            ("built: 2026\nAPI", None),
        ] {
            assert_child(text, Layer::Spaced, want);
        }
    }

    #[test]
    fn many_are_paid_for() {
        assert_bounded("CPF: 019.379.\n719-45\n\n");
    }
}
