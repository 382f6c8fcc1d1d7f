//! SQL: the values of an `INSERT` by the names of its columns.

use super::HEAD_BYTES_MAX;
use crate::text::{Cell, Span, to_u32};

/// Bytes of a row that are read for the price of one look.
const BYTES_A_LOOK: usize = 64;

/// `INSERT INTO t (id, name) VALUES (1, 'x'), (2, 'y')`: what stands in each row where the name stands among the
/// columns.
pub(super) struct Tuples<'t> {
    text: &'t [u8],
    /// Where the next row begins, and where the text ends.
    at: usize,
    ceil: usize,
    column: usize,
}

impl Iterator for Tuples<'_> {
    /// What the row costs, and the field.
    type Item = (u32, Option<Span>);

    fn next(&mut self) -> Option<Self::Item> {
        let blank = blanks(&self.text[self.at..self.ceil]);
        self.at += blank;
        let row = &self.text[self.at..self.ceil];
        if row.first() != Some(&b'(') {
            return None;
        }
        let (field, stop) = field_of(row, self.column);
        let field = field.map(|f| Span::new(self.at + f.start, self.at + f.end));
        self.at += stop;
        Some((to_u32(1 + (blank + stop) / BYTES_A_LOOK), field))
    }
}

/// Nothing where the name is no column of such rows.
pub(super) fn tuples_under<'t>(text: &'t [u8], name: Span, cell: &Cell) -> Option<Tuples<'t>> {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let (start, end) = (name.start as usize, name.end as usize);
    let after = &text[end..ceil.min(end + HEAD_BYTES_MAX)];
    let quotes = |b: &u8| matches!(b, b'"' | b'`' | b'\\' | b']' | b' ');
    let next = after.iter().find(|b| !quotes(b))?;
    if !matches!(next, b',' | b')') {
        return None;
    }
    let reach = start.saturating_sub(HEAD_BYTES_MAX).max(floor);
    let open = reach + memchr::memrchr(b'(', &text[reach..start])?;
    let column = memchr::memchr_iter(b',', &text[open..start]).count();
    let close = end + memchr::memchr(b')', after)? + 1;
    let word = close + blanks(&text[close..ceil]);
    if !text.get(word..word + 6)?.eq_ignore_ascii_case(b"values") {
        return None;
    }
    Some(Tuples {
        text,
        at: word + 6,
        ceil,
        column,
    })
}

/// Blanks, and what stands between two rows.
fn blanks(text: &[u8]) -> usize {
    let part = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t' | b',' | b'\\' | b'n');
    let len = text.iter().take_while(part).count();
    // The `n` of an escaped line end, not of a word.
    match text[..len].contains(&b'\\') {
        true => len,
        false => text[..len].iter().take_while(|b| **b != b'n').count(),
    }
}

/// The field of that number in the row that begins the text, without its quotes, and where the row ends.
fn field_of(row: &[u8], column: usize) -> (Option<std::ops::Range<usize>>, usize) {
    let (mut quote, mut nth, mut from, mut found) = (None, 0, 1, None);
    for (at, b) in row.iter().enumerate().skip(1) {
        match (quote, *b) {
            (None, b'\'' | b'"') => quote = Some(*b),
            (Some(q), b) if b == q => quote = None,
            (None, b',' | b')') => {
                if nth == column {
                    found = Some(bare(row, from..at));
                }
                (nth, from) = (nth + 1, at + 1);
                if *b == b')' {
                    return (found, at + 1);
                }
            }
            _ => {}
        }
    }
    (found, row.len())
}

/// A field without blanks and quotes around it.
fn bare(row: &[u8], mut field: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let off = |b: u8| matches!(b, b' ' | b'\n' | b'\t' | b'\'' | b'"' | b'\\');
    while !field.is_empty() && off(row[field.start]) {
        field.start += 1;
    }
    while !field.is_empty() && off(row[field.end - 1]) {
        field.end -= 1;
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeafKind;

    #[test]
    fn rows_by_their_columns() {
        let cases: &[(&str, &[&str])] = &[
            ("INSERT INTO t (id, pw) VALUES (1, 'a''b');", &["a''b"]),
            (
                "insert into t (`id`, `pw`, n) values\n(1, 'x, (y)', 2),\n(2, \"z\", 3);",
                &["x, (y)", "z"],
            ),
            ("INSERT INTO t (pw, id) VALUES (N'q', 1", &["N'q"]),
            ("call(id, pw) returns (1, 'x')", &[]),
            ("INSERT INTO t (id, pw) VALUES", &[]),
            ("INSERT INTO t (id, pw) VALUES (1)", &[]),
            ("pw", &[]),
        ];
        for (text, want) in cases {
            let at = text.find("pw").expect("every case has the name");
            let cell = Cell {
                span: Span::new(0, text.len()),
                name: Span::default(),
                kind: LeafKind::String,
                leaf: 0,
            };
            let got = tuples_under(text.as_bytes(), Span::new(at, at + 2), &cell);
            let got = got.into_iter().flatten().filter_map(|row| row.1);
            let got: Vec<_> = got.map(|s| &text[s.range()]).collect();
            assert_eq!(&got, want, "{text}");
        }
    }

    #[test]
    fn every_row_is_read_and_paid_for() {
        let text = format!("INSERT INTO t (pw) VALUES {}", "('x'),".repeat(4000));
        let cell = Cell {
            span: Span::new(0, text.len()),
            name: Span::default(),
            kind: LeafKind::String,
            leaf: 0,
        };
        let got = tuples_under(text.as_bytes(), Span::new(15, 17), &cell);
        let paid: Vec<_> = got.into_iter().flatten().map(|row| row.0).collect();
        assert_eq!(
            (paid.len(), paid.iter().all(|cost| *cost > 0)),
            (4000, true)
        );
    }
}
