//! Quotation marks that are written twice within a quoted field: CSV (RFC 4180, section 2), SQL, YAML in single ones,
//! Visual Basic and Pascal: `"login(""anna"", ""Xk8qZ"")"`, `'login(''anna'', ''Xk8qZ'')'`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// From one such mark to the next.
const GAP_MAX: usize = 256;
/// So many marks in a row may be the field's own and one within it.
const ROW_MAX: usize = 3;

/// The shortest rows of each mark.
static TWICE: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [b"\"\"", b"''"].map(Finder::new));

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    for quotes in &*TWICE {
        let quote = quotes.needle()[0];
        let (mut at, mut index) = (0, 0);
        while let Some(row) = next(&node.text, quotes, at, node.text.len()) {
            at = row.end as usize;
            if !opens(&node.text, row) {
                continue;
            }
            let Some(cell) = node
                .cell_from(row.start as usize, &mut index)
                .filter(|c| c.leaf != NO_LEAF)
            else {
                continue;
            };
            let rows = cluster(node, cell, quotes, row);
            let last = rows[rows.len() - 1];
            at = last.end as usize;
            // The quotation marks of a Python docstring are three, all of them.
            let twice = rows.iter().any(|row| row.len() == 2);
            if !twice || !rows.iter().any(|row| closes(&node.text, *row)) {
                continue;
            }
            let place = (row.start as usize, at);
            child_around(node, cell, Layer::Escapes, place, spawn, |child| {
                let mut from = place.0;
                for row in &rows {
                    let (start, end) = (row.start as usize, row.end as usize);
                    child.push(&node.text[from..start], Span::new(from, start), How::Copy);
                    child.push(&[quote], *row, How::Atom);
                    from = end;
                }
            });
        }
    }
}

/// The next marks in a row, two or more.
fn next(text: &[u8], quotes: &Finder<'_>, from: usize, ceil: usize) -> Option<Span> {
    let at = from + quotes.find(text.get(from..ceil)?)?;
    let quote = text[at];
    let len = text[at..ceil].iter().take_while(|b| **b == quote).count();
    Some(Span::new(at, at + len))
}

/// The rows of marks from `first` on, each near the one before.
fn cluster(node: &Node, cell: &Cell, quotes: &Finder<'_>, first: Span) -> Vec<Span> {
    let mut rows = vec![first];
    let ceil = cell.span.end as usize;
    let mut at = first.end as usize;
    while let Some(row) = next(&node.text, quotes, at, ceil.min(at + GAP_MAX)) {
        if row.len() > ROW_MAX {
            break;
        }
        at = row.end as usize;
        rows.push(row);
    }
    rows
}

/// Does something quoted begin behind these marks?
fn opens(text: &[u8], row: Span) -> bool {
    let before = (row.start as usize).checked_sub(1).map(|n| text[n]);
    let parted = before.is_none_or(|b| !of_value(b) && b != b'\\');
    let within = |b: &u8| of_value(*b) || b"./{[@#%+~<".contains(b);
    row.len() <= ROW_MAX && parted && text.get(row.end as usize).is_some_and(within)
}

fn closes(text: &[u8], row: Span) -> bool {
    row.start > 0 && text[row.start as usize - 1] > b' '
}

fn of_value(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || b == b'_' || b == b'$' || b == b'-'
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child, children};

    #[test]
    fn quotation_marks_are_halved() {
        for (text, want) in [
            (
                r#"1,"new Client(""eu"", ""k7Qz"")","ok""#,
                r#"new Client("eu", "k7Qz")"#,
            ),
            ("VALUES ('f(''host'', ''k7Qz'')')", "f('host', 'k7Qz')"),
            (r#"1,"{""puk"": ""306""}""#, r#"{"puk": "306"}"#),
            (
                r#"1,"""method"":""login"",""x"":[1]""#,
                r#""method":"login","x":[1]"#,
            ),
        ] {
            assert_child(text, Layer::Escapes, Some(want));
        }
    }

    #[test]
    fn empty_values_are_none() {
        for text in [
            r#"{"a":"","b":""}"#,
            r#"f("", "a") + "" + g('')"#,
            r##""""Returns the first.""" x = """a"""; "##,
            "the ``word'' and f''(x) = g''(y)",
            "'''bold''' of a wiki",
            r#"a=""; b='' "#,
        ] {
            assert_child(text, Layer::Escapes, None);
        }
    }

    #[test]
    fn redaction_meets_what_was_written() {
        let text = r#"1,"f(""host"", ""k7Qz"")""#;
        let found = children(text);
        let (_, child, map) = found
            .iter()
            .find(|(layer, ..)| *layer == Layer::Escapes)
            .expect("a child");
        let at = child.find("k7Qz").expect("the value");
        assert_eq!(&text[map(at, at + 4)], "k7Qz");
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded(r#""(""abcdef"")", "#);
    }
}
