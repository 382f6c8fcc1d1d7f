//! A value in a few pieces of any length, the elements of one array: `{"token": ["ghp_Zq", "7kW2", "m9"]}`. The name has to
//! promise a secret, or the pieces have to be digits: lists of words are what arrays hold.

use super::{Spawner, begin_cell};
use crate::detect::is_value;
use crate::names::{self, Promise};
use crate::text::{Cell, How, NO_LEAF, Node};
use crate::{Layer, LeafKind};

const PIECES: std::ops::RangeInclusive<usize> = 2..=8;
const PIECE_BYTES_MAX: usize = 512;
/// Pieces of which none is shorter are a list.
const ALONE_BYTES_MIN: usize = 12;
/// Shorter texts hold nothing that a rule finds.
const BYTES_MIN: usize = 7;
/// Most digits of a number in a name.
const NAME_DIGITS_MAX: usize = 4;
/// Longest name.
const NAME_BYTES_MAX: usize = 64;

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    if node.layer == Some(Layer::Joined) {
        return;
    }
    let piece = |c: &Cell| {
        c.kind == LeafKind::String && is_value(c) && !c.name.is_empty() && c.leaf != NO_LEAF
    };
    let named_alike = |a: &Cell, b: &Cell| a.name == b.name && piece(a) && piece(b);
    rows_in(node, named_alike, spawn);
    counted_in(node, spawn);
    // Over all columns of a table, too, of which one row may be cut.
    if node.layout.has_tables() {
        let listed = |a: &Cell, b: &Cell| piece(a) && piece(b) && node.layout.are_together(a, b);
        rows_in(node, listed, spawn);
    }
}

/// Joins the pieces of which each goes with the next.
fn rows_in(node: &Node, same: impl Fn(&Cell, &Cell) -> bool, spawn: &mut Spawner<'_>) {
    let (cells, mut at) = (&node.cells, 0);
    // Nearly all cells stand under another name than the one before.
    while let Some(n) = cells[at..]
        .windows(2)
        .position(|pair| same(&pair[0], &pair[1]))
    {
        let row = &cells[at + n..];
        let len = row.windows(2).position(|pair| !same(&pair[0], &pair[1]));
        let row = &row[..len.map_or(row.len(), |len| len + 1)];
        if PIECES.contains(&row.len()) && in_pieces(node, row) {
            join(node, row, spawn);
        }
        at += n + row.len();
    }
}

/// `"card_1": "4539", "card_2": "5787", ...`: groups of digits under names that count.
fn counted_in(node: &Node, spawn: &mut Spawner<'_>) {
    const GROUP: std::ops::RangeInclusive<usize> = 2..=6;
    const DIGITS_MIN: usize = 12;
    let group = |c: &Cell| {
        is_value(c)
            && GROUP.contains(&c.span.len())
            && node.text[c.span.range()].iter().all(u8::is_ascii_digit)
    };
    let number = |c: &Cell| counted(&node.text[c.name.range()]);
    let mut at = 0;
    while let Some(n) = node.cells[at..].iter().position(group) {
        let first = at + n;
        at = first + 1;
        let Some((stem, start)) = number(&node.cells[first]).filter(|(_, n)| *n <= 1) else {
            continue;
        };
        let mut row: smallvec::SmallVec<[Cell; 8]> = smallvec::SmallVec::new();
        row.push(node.cells[first]);
        // A key stands before each value.
        for (nth, cell) in node.cells[first + 1..]
            .iter()
            .filter(|c| is_value(c))
            .enumerate()
        {
            let next = number(cell).filter(|(other, _)| *other == stem);
            let follows = next.is_some_and(|(_, n)| n as usize == start as usize + nth + 1);
            if !follows || !group(cell) || row.len() == *PIECES.end() {
                break;
            }
            row.push(*cell);
        }
        let digits: usize = row.iter().map(|c| c.span.len()).sum();
        if row.len() > 1 && digits >= DIGITS_MIN {
            join(node, &row, spawn);
        }
        at = first + row.len();
    }
}

/// A name and the number it ends with.
fn counted(name: &[u8]) -> Option<(&[u8], u32)> {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let (stem, number) = name.split_at(name.len() - digits.min(2));
    let number = std::str::from_utf8(number).ok()?.parse().ok()?;
    (digits <= 2 && !stem.is_empty()).then_some((stem, number))
}

fn in_pieces(node: &Node, cells: &[Cell]) -> bool {
    let name = cells[0].name;
    let texts = || cells.iter().map(|c| &node.text[c.span.range()]);
    let len: usize = texts().map(<[u8]>::len).sum();
    if len < BYTES_MIN
        || name.len() > NAME_BYTES_MAX
        || texts().any(|t| t.is_empty() || t.len() > PIECE_BYTES_MAX)
    {
        return false;
    }
    let digits = texts().flatten().filter(|b| b.is_ascii_digit()).count();
    let letters = texts().flatten().filter(|b| b.is_ascii_alphabetic());
    let number = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase() || b" -./+()".contains(b);
    let numbers =
        digits >= BYTES_MIN - 1 && digits >= letters.count() && texts().flatten().all(number);
    let solid = |b: &u8| b.is_ascii_graphic();
    let named = || texts().all(is_name);
    // Elements that are all long enough to stand alone are values of their own, or names of such.
    let alone = |t: &[u8]| t.len() >= ALONE_BYTES_MIN;
    numbers
        || digits > 0
            && texts().flatten().all(solid)
            && !texts().all(alone)
            && !named()
            && names::promise(&node.text[name.range()]) > Promise::Weak
}

/// `required`, `min:12`, `server_cert_v1`: a rule or a name, of words in one case with short numbers.
fn is_name(text: &[u8]) -> bool {
    let part = |part: &[u8]| {
        let letters = part.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (word, number) = part.split_at(letters);
        let one_case =
            word.iter().all(u8::is_ascii_lowercase) || word.iter().all(u8::is_ascii_uppercase);
        one_case && number.len() <= NAME_DIGITS_MAX && number.iter().all(u8::is_ascii_digit)
    };
    let mut parts = text.split(|b| matches!(b, b':' | b'=' | b'_' | b'-' | b'.'));
    text.first().is_some_and(u8::is_ascii_alphabetic) && parts.all(part)
}

fn join(node: &Node, cells: &[Cell], spawn: &mut Spawner<'_>) {
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    let name = begin_cell(&mut child, node, cells[0].name);
    let start = child.text.len();
    for cell in cells {
        child.push(&node.text[cell.span.range()], cell.span, How::Copy);
    }
    child.close_cell(start, name, LeafKind::String, 0);
    spawn.end(child);
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{children_in, children_of, node_of};

    /// Is there a child of all the pieces, one after the other?
    fn joined(name: &str, pieces: &[&str]) -> bool {
        let cells: Vec<_> = pieces.iter().map(|piece| (name, *piece)).collect();
        let whole = pieces.concat();
        let found = children_of(&cells);
        found
            .iter()
            .any(|(layer, text, _)| *layer == Layer::Joined && text.ends_with(&whole))
    }

    #[test]
    fn pieces_of_an_array_are_one() {
        for (name, pieces, want) in [
            ("NINO", &["CA 9", "8 9", "8 20 C"][..], true),
            ("OIB", &["3243", "74", "70603"], true),
            ("db_password", &["nB24!", "XGk", "vnZtZm"], true),
            ("tags", &["v1", "beta", "x86"], false),
            ("password", &["forgotten", "reset", "now"], false),
            ("password", &["required", "min:12", "max:128"], false),
            ("password", &["bcrypt", "cost=12"], false),
            ("years", &["2019", "20"], false),
        ] {
            assert_eq!(joined(name, pieces), want, "{name}");
        }
    }

    #[test]
    fn many_are_paid_for() {
        let names: Vec<String> = (0..2000).map(|n| format!("token{n}")).collect();
        let cells: Vec<_> = names
            .iter()
            .flat_map(|name| [(name.as_str(), "Zq7kW2"), (name.as_str(), "m9XvT4rBy")])
            .collect();
        let (nodes, over) = children_in(node_of(&cells), 10_000);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 10_000);
        assert!(over.is_some());
    }
}
