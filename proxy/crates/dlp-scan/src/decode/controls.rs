//! Control characters that nothing shows: what reads a text for its sense reads over them, whether they stand between all letters
//! (UTF-16 that was taken for bytes has a zero there) or in one place of a value. Without them it is what it was.

use super::{Spawner, begin_cell};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::traces::{Signs, Traces};

/// In bytes that are mostly no text, so many characters in a row with the same one between them are one all the same.
const ROW_MIN: usize = 12;

pub(super) fn decode(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    // Those that part the cells stand once behind each.
    let in_values = traces.parting as usize > node.cells.len();
    if !traces.signs.any(Signs::CONTROL) && !in_values {
        return;
    }
    for cell in &node.cells {
        if cell.leaf != NO_LEAF && !cell.span.is_empty() {
            of_cell(node, cell, spawn);
        }
    }
}

fn of_cell(node: &Node, cell: &Cell, spawn: &mut Spawner<'_>) {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let text = &node.text[floor..ceil];
    let marks = text.iter().enumerate().filter(|(at, _)| is_mark(text, *at));
    // However many there are: a bound would be what hides a text.
    let within = marks.clone().any(|(at, _)| at > 0 && at + 1 < text.len());
    if !within || node.only_sure && !has_row(text) {
        return;
    }
    let Some(mut child) = spawn.begin(Layer::Fold) else {
        return;
    };
    let name = begin_cell(&mut child, node, cell.name);
    let start = child.text.len();
    let mut from = 0;
    for (at, _) in marks.chain([(text.len(), &0)]) {
        if from < at {
            let piece = Span::new(floor + from, floor + at);
            child.push(&text[from..at], piece, How::Copy);
        }
        from = at + 1;
    }
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
}

/// A control character that is left out: not one that lays a text out, nor the first of an escape that terminals read. One of
/// which the next begins right behind a single character is none.
fn is_mark(text: &[u8], at: usize) -> bool {
    match text[at] {
        b'\t' | b'\n' | b'\r' => false,
        0x1B => {
            let opens = text.get(at + 1).is_some_and(|b| b"[]()PX^_#%".contains(b));
            !opens || text.get(at + 2) == Some(&0x1B)
        }
        b => b < 0x20 || b == 0x7F,
    }
}

/// Does one control character stand between each two of a row?
fn has_row(text: &[u8]) -> bool {
    let mut row = 0;
    let mut at = 0;
    while at + 1 < text.len() {
        let (shown, mark) = (text[at].is_ascii_graphic(), text[at + 1]);
        let goes_on = shown && is_mark(text, at + 1) && (row == 0 || text[at - 1] == mark);
        (row, at) = match goes_on {
            true => (row + 1, at + 2),
            false => (0, at + 1),
        };
        if row >= ROW_MIN {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children_of;

    fn bare(text: &str) -> Option<String> {
        let children = children_of(&[("a", text)]);
        let mut bare = children
            .into_iter()
            .filter(|(layer, ..)| *layer == Layer::Fold);
        // The name stands before it.
        bare.next().map(|(_, text, _)| text.replace("a\u{1e}", ""))
    }

    #[test]
    fn control_characters_are_left_out_and_nothing_else() {
        let table = [
            ("ghp_ab\u{0}cd12", Some("ghp_abcd12")),
            ("g\u{1}h\u{1}p\u{1}_", Some("ghp_")),
            ("g\0\0\0h\0\0\0p\0\0\0_", Some("ghp_")),
            ("ghp_\u{7f}ab", Some("ghp_ab")),
            ("ghp_\u{1f}ab", Some("ghp_ab")),
            ("g\u{1e}h\u{1e}p\u{1e}_", Some("ghp_")),
            ("ghp_\u{1b}ab", Some("ghp_ab")),
            ("g\u{1b}h\u{1b}p\u{1b}_\u{1b}X\u{1b}a", Some("ghp_Xa")),
            ("g\0\0\0\0\0\0h\0\0\0\0\0\0p\0\0\0\0\0\0_", Some("ghp_")),
            ("ghp_\u{8}ab\u{b}c", Some("ghp_abc")),
            ("two\tcolumns\r\nand a line", None),
            ("the end\u{0}", None),
            ("", None),
        ];
        for (text, want) in table {
            assert_eq!(bare(text).as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn one_is_seen_wherever_it_stands() {
        for before in 1..200 {
            let text = format!("{}\u{0}b", "a".repeat(before));
            assert_eq!(bare(&text), Some("a".repeat(before) + "b"), "{before}");
        }
    }
}
