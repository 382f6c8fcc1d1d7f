//! Programs that run tests write `PASS: name-of-the-test-1` for each.

use super::heads::is_of_login;
use crate::entropy::{Classes, wordiness};
use crate::text::{Cell, Span};
use crate::value;

/// How many lines before and behind are asked.
const LINES: usize = 3;
/// Longest line that is read.
const LINE_BYTES_MAX: usize = 512;
/// What DejaGnu (its manual, "Test states") and others say of a test, and no log says of anything else.
const STATES: [&[u8]; 6] = [b"PASS", b"FAIL", b"XPASS", b"XFAIL", b"KPASS", b"KFAIL"];
/// Longer than any of them, with its sign.
const STATE_BYTES_MAX: usize = 8;
/// What they say, too, and much else does.
const DOUBTFUL_STATES: [&[u8]; 4] = [b"SKIP", b"ERROR", b"UNTESTED", b"UNSUPPORTED"];
/// Does the name say that a test has passed? It is that word and no other; its value is the name of a test, one of the
/// next lines tells of a test, too, and none of them of an account.
pub(super) fn is_verdict(text: &[u8], name: Span, value: Span, cell: &Cell) -> bool {
    let between = &text[name.end as usize..value.start as usize];
    let (called, told) = (&text[name.range()], &text[value.range()]);
    if !called.ends_with(b"PASS") || between.trim_ascii_end() != b":" {
        return false;
    }
    // What stood on the line before may be joined to the word.
    if is_list(told) {
        return true;
    }
    let Some(told) = test_in(told).filter(|_| called == b"PASS") else {
        return false;
    };
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let near = |from: usize, to: usize| &text[from.max(floor)..to.min(ceil)];
    let start = name.start as usize;
    let before = near(start.saturating_sub(LINE_BYTES_MAX), start);
    let behind = near(value.end as usize, value.end as usize + LINE_BYTES_MAX);
    let mut above = before.rsplit(|b| *b == b'\n');
    let mut below = behind.split(|b| *b == b'\n');
    // Where lines are joined, a test stands behind another.
    let own = [above.next(), Some(&text[value.range()]), below.next()];
    let lines = || above.clone().take(LINES).chain(below.clone().take(LINES));
    let told_of = own.into_iter().flatten().any(goes_on) || lines().any(|line| says(line, told));
    told_of && !lines().any(tells_of_login)
}

/// What a value looks like that may be the name of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Test {
    /// Words joined by signs.
    Named,
    /// It could be something that a person has chosen.
    Doubtful,
}

/// `ld-elf/pr19617b`, `gdb.base/break.exp`, `std::vec::push`: nothing in it was drawn.
fn test_in(value: &[u8]) -> Option<Test> {
    let sign = |b: &u8| b"-_./:,=+".contains(b);
    if !value.iter().all(|b| b.is_ascii_alphanumeric() || sign(b)) {
        return None;
    }
    let parts = || value.split(sign).filter(|part| !part.is_empty());
    if parts().next().is_none() || !parts().all(is_dull) {
        return None;
    }
    let c = Classes::of(value);
    let one = parts().count() == 1;
    if one && c.upper > 0 && c.lower > 0 && c.digit > 1 {
        return None;
    }
    match one && c.digit > 0 || value::is_drawn(value) {
        true => Some(Test::Doubtful),
        false => Some(Test::Named),
    }
}

/// `vers8PASS:vers9PASS:vers10`: names of tests whose lines were joined, each with its verdict.
fn is_list(value: &[u8]) -> bool {
    let (mut from, mut verdicts) = (0, 0);
    for at in memchr::memchr_iter(b':', value) {
        let before = &value[from..at];
        let Some(state) = STATES.iter().find(|state| before.ends_with(state)) else {
            continue;
        };
        // `XPASS` ends as `PASS` does.
        let name = before[..before.len() - state.len()].trim_ascii();
        let name = name.strip_suffix(b"X").unwrap_or(name);
        if !name.is_empty() && test_in(name).is_none() {
            return false;
        }
        (from, verdicts) = (at + 1, verdicts + 1);
    }
    let rest = value[from..].trim_ascii();
    verdicts > 0 && (rest.is_empty() || test_in(rest).is_some())
}

/// A word with a number in it or behind it, or a number.
fn is_dull(part: &[u8]) -> bool {
    const NUMBER_BYTES_MAX: usize = 6;
    let numbers = || {
        part.split(|b| !b.is_ascii_digit())
            .filter(|n| !n.is_empty())
    };
    let words = || part.split(u8::is_ascii_digit).filter(|w| !w.is_empty());
    let c = Classes::of(part);
    let mut runs = part.split(|b| !b.is_ascii_lowercase());
    let cased = c.upper == 0 || part.len() <= 3 || runs.all(|run| run.len() != 1);
    // Words of one case may be anybody's (`sleb128`); `vers8vers9vers10` was joined.
    let spoken = c.upper == 0 || words().all(|w| w.len() <= 5) || wordiness(part) > 0.4;
    let few = numbers().count() <= 2 || words().all(|w| w.len() >= 3);
    numbers().all(|n| n.len() <= NUMBER_BYTES_MAX) && few && spoken && cased
}

/// `FAIL: name`. Beside what is doubtful it has to be a word that says nothing else.
fn says(line: &[u8], told: Test) -> bool {
    let Some(sign) = memchr::memchr(b':', line) else {
        return false;
    };
    let (state, rest) = (line[..sign].trim_ascii_start(), &line[sign + 1..]);
    let known = is_state(state) || told == Test::Named && DOUBTFUL_STATES.contains(&state);
    let first = rest.trim_ascii().first();
    known && first.is_some_and(|b| !b.is_ascii_digit())
}

fn is_state(word: &[u8]) -> bool {
    STATES.contains(&word)
}

/// What is told of a test in a line that begins as `PASS: name` does.
pub(crate) fn told_of_test(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let sign = memchr::memchr(b':', &line[..line.len().min(STATE_BYTES_MAX)]);
    sign.filter(|at| is_state(&line[..*at]))
        .map(|at| &line[at + 1..])
}

/// Could it be of what a test is called? Each word is a name, and none was drawn.
pub(crate) fn may_name_test(piece: &[u8]) -> bool {
    let mut words = piece
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty());
    words.all(|word| test_in(word).is_some())
}

/// `... PASS: name` within a line, with or without a blank before it.
fn goes_on(line: &[u8]) -> bool {
    let mut signs = memchr::memchr_iter(b':', line);
    signs.any(|at| STATES.iter().any(|state| line[..at].ends_with(state)))
}

/// `USER: admin`, `DB_HOST=...`, `ftp> open`
fn tells_of_login(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let part = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let first = &line[..line.iter().take_while(part).count()];
    let last = first.rsplit(|b| !b.is_ascii_alphanumeric()).next();
    last.is_some_and(is_of_login)
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
            ("PASS: gdb.base/break.exp: 2\nSKIP: gdb.base/x.exp", true),
            ("PASS: TestHTTP2Server/sub_3\nERROR: TestX", true),
            ("PASS: std::vec::push_12\nUNTESTED: std::map", true),
            ("USER: admin\nPASS: Xk9vQ2mZ!", false),
            ("USER: admin\nPASS: harbor2\nFAIL: harbor3", false),
            ("DB_HOST=x\nPASS: harbor-2\nERROR: refused", false),
            ("PASS: Xk9vQ2mZ!\nHOST: db", false),
            ("PASS: Xk9vQ2mZ!\nERROR: connection refused", false),
            ("DB_PASS: harbor-2\nPASS: x", false),
            ("SMTP-PASS: harbor-2\nPASS: x", false),
            ("PASS=harbor-2\nPASS: x", false),
            ("PASS: harbor2\nERROR: refused", false),
            ("PASS: Winter2024\nFAIL: login", false),
            ("PASS: harbor-2\nFAIL: 530", false),
            ("PASS: ribbon-meadow-zipper-96\nERROR: refused", false),
            ("PASS: ribbon-meadow-zipper-96", false),
            ("PASS: q8Zr4Lw2Xk9vT6nB1mYc7Hd3pQ\nPASS: x", false),
            ("PASS: ld-gc/pr20022\nPASS: --gc-sections with x", true),
            ("PASS: ld-elf/ehdr_start\nPASS: .loc 0", true),
            ("FAIL: vers10 PASS: vers11", true),
            ("PASS: vers10PASS:vers11vers12", true),
            ("vers8PASS: vers9XPASS:vers10PASS:pr14156aPASS:", true),
            ("DBPASS: Winter2024!xPASS:x", false),
            ("DBPASS: vers9", false),
            ("PASS: -fence-load=yes\nPASS: .sleb128 tests", true),
            ("PASS: .sleb128\nPASS: x", true),
            ("PASS: q8zr4lw2xk9v\nPASS: x", false),
        ] {
            let at = text.find("PASS").unwrap();
            let from = text[..at].rfind('\n').map_or(0, |n| n + 1);
            let end = at + 4;
            let joined = text[from..].starts_with("DB_") || text[from..].starts_with("SMTP-");
            let joined = joined || at > 0 && text.as_bytes()[at - 1].is_ascii_alphanumeric();
            let name = Span::new(if joined { from } else { at }, end);
            let rest = text[end + 1..].trim_start();
            let start = text.len() - rest.len();
            let len = rest.find(|c: char| c.is_ascii_whitespace());
            let value = Span::new(start, start + len.unwrap_or(rest.len()));
            let cell = Cell {
                span: Span::new(0, text.len()),
                name: Span::default(),
                kind: LeafKind::String,
                leaf: 0,
            };
            assert_eq!(
                is_verdict(text.as_bytes(), name, value, &cell),
                is,
                "{text}"
            );
        }
    }
}
