//! Programs that run tests write `PASS: name-of-the-test-1` for each.

use crate::text::{Cell, Span};

/// How many lines before and behind are asked.
const LINES: usize = 2;
/// Longest line that is read.
const LINE_BYTES_MAX: usize = 512;
/// What DejaGnu (its manual, "Test states") and others say of a test.
const STATES: [&[u8]; 10] = [
    b"PASS",
    b"FAIL",
    b"XPASS",
    b"XFAIL",
    b"KPASS",
    b"KFAIL",
    b"SKIP",
    b"ERROR",
    b"UNTESTED",
    b"UNSUPPORTED",
];

/// Does the name say that a test has passed? Beside it, on one of the next lines, another verdict stands, or the value is
/// (`is_drawn`) made of words as names of tests are.
pub(super) fn is_verdict(
    text: &[u8],
    name: Span,
    cell: &Cell,
    is_drawn: impl Fn() -> bool,
) -> bool {
    let called = &text[name.range()];
    if !called.ends_with(b"PASS") || called.contains(&b'_') {
        return false;
    }
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let near = |from: usize, to: usize| &text[from.max(floor)..to.min(ceil)];
    let before = near(
        (name.start as usize).saturating_sub(LINE_BYTES_MAX),
        name.start as usize,
    );
    let behind = near(name.end as usize, name.end as usize + LINE_BYTES_MAX);
    let mut lines = before.rsplit(|b| *b == b'\n').skip(1).take(LINES);
    lines.any(says) || behind.split(|b| *b == b'\n').skip(1).take(LINES).any(says) || is_drawn()
}

/// `FAIL: name`
fn says(line: &[u8]) -> bool {
    let state = line.trim_ascii_start().split(|b| *b == b':').next();
    state.is_some_and(|state| STATES.contains(&state) && line.len() > state.len())
}

#[cfg(test)]
mod tests {
    use super::is_verdict;
    use crate::LeafKind;
    use crate::text::{Cell, Span};

    #[test]
    fn a_test_that_passed_stands_among_others() {
        for (text, is) in [
            ("PASS: addr2line\nPASS: addr2line -f option\n", true),
            ("XFAIL: a\nPASS: ld-elf/pr19617b", true),
            ("PASS: one\n  FAIL: two", true),
            ("USER: admin\nPASS: Xk9vQ2mZ!", false),
            ("PASS: Xk9vQ2mZ!\nHOST: db", false),
            ("DB_PASS: Xk9vQ2mZ!\nPASS: x", false),
        ] {
            let at = text.find("PASS").unwrap();
            let from = text[..at].rfind('\n').map_or(0, |n| n + 1);
            let span = Span::new(0, text.len());
            let name = Span::new(
                if text[from..].starts_with("DB_") {
                    from
                } else {
                    at
                },
                at + 4,
            );
            let cell = Cell {
                span,
                name: Span::default(),
                kind: LeafKind::String,
                leaf: 0,
            };
            assert_eq!(
                is_verdict(text.as_bytes(), name, &cell, || false),
                is,
                "{text}"
            );
        }
    }
}
