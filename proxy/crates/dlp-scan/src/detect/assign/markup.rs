//! Tables in HTML: the values under a name that stands in the head.

use super::HEAD_BYTES_MAX;
use crate::text::{Cell, Span, to_u32};

/// Longest row that is read.
const ROW_BYTES_MAX: usize = 4096;
/// Bytes of a row that are read for the price of one look.
const BYTES_A_LOOK: usize = 64;

/// The fields under a head, row by row.
pub(super) struct Fields<'t> {
    text: &'t [u8],
    /// Behind the row that was read last, and where the text ends.
    at: usize,
    ceil: usize,
    nth: usize,
}

/// `<th>User</th><th>Password</th></tr><tr><td>mia</td><td>...`: nothing where the name is no head.
pub(super) fn fields_under<'t>(text: &'t [u8], name: Span, cell: &Cell) -> Option<Fields<'t>> {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let (start, end) = (name.start as usize, name.end as usize);
    let close = text.get(end..ceil.min(end + 4))?;
    if !close.eq_ignore_ascii_case(b"</th") {
        return None;
    }
    let before = &text[start.saturating_sub(HEAD_BYTES_MAX).max(floor)..start];
    let row = before
        .windows(3)
        .rposition(|w| w.eq_ignore_ascii_case(b"<tr"))?;
    let heads = before[row..].windows(3);
    let heads = heads.filter(|w| w.eq_ignore_ascii_case(b"<th")).count();
    Some(Fields {
        text,
        at: end,
        ceil,
        nth: heads.checked_sub(1)?,
    })
}

impl Iterator for Fields<'_> {
    /// What the row costs, and the field.
    type Item = (u32, Option<Span>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.text[self.at..self.ceil.min(self.at + ROW_BYTES_MAX)];
        let row = find(rest, b"<tr")? + 3;
        let body = &rest[row..];
        let len = find(body, b"<tr").unwrap_or(body.len());
        let table = find(&body[..len], b"</table").unwrap_or(len);
        let from = self.at + row;
        self.at = from + table;
        if table < len {
            self.ceil = self.at;
        }
        let field = field_of(&body[..table], self.nth);
        let field = field.map(|f| Span::new(from + f.start, from + f.end));
        Some((to_u32(1 + (row + len) / BYTES_A_LOOK), field))
    }
}

/// What stands in the cell of that number.
fn field_of(row: &[u8], nth: usize) -> Option<std::ops::Range<usize>> {
    let mut at = 0;
    for _ in 0..=nth {
        at += find(&row[at..], b"<td")? + 3;
    }
    let open = at + memchr::memchr(b'>', &row[at..])? + 1;
    let mut start = open;
    // `<td><code>...`
    while row.get(start) == Some(&b'<') && row.get(start + 1) != Some(&b'/') {
        start += memchr::memchr(b'>', &row[start..])? + 1;
    }
    let len = memchr::memchr(b'<', &row[start..])?;
    (len > 0).then_some(start..start + len)
}

fn find(text: &[u8], tag: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = memchr::memchr(b'<', text.get(from..)?) {
        let found = from + at;
        let here = text.get(found..found + tag.len())?;
        if here.eq_ignore_ascii_case(tag) {
            return Some(found);
        }
        from = found + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeafKind;

    #[test]
    fn fields_by_their_heads() {
        let cases: &[(&str, &[&str])] = &[
            (
                "<table><tr><th>u</th><th>pw</th></tr><tr><td>a</td><td>x1</td></tr><tr><td>b</td><td><code>y2</code></td></tr></table><tr><td>z</td><td>q</td>",
                &["x1", "y2"],
            ),
            ("<TR><TH>pw</TH><TR><TD>x1</TD>", &["x1"]),
            ("<tr><td>pw</td></tr><tr><td>x</td></tr>", &[]),
            ("<tr><th>pw</th></tr>", &[]),
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
            let got = fields_under(text.as_bytes(), Span::new(at, at + 2), &cell);
            let got = got.into_iter().flatten().filter_map(|row| row.1);
            let got: Vec<_> = got.map(|s| &text[s.range()]).collect();
            assert_eq!(&got, want, "{text}");
        }
    }
}
