//! Lines of a text that was written as one, as JSON and most languages do (`a\nb\nc`), and a value with a backslash before each of its signs: `\0\8\0\7\9\8\1`, `\L\i\n\d\e\n`. A shell and a printer read over them; a
//! number with three or four digits to a group would be octal.

use smallvec::SmallVec;

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// Fewer signs in a row are escapes of a string.
const SIGNS_MIN: usize = 7;
/// Longest value.
const SIGNS_MAX: usize = 160;

/// Fewer ends of lines in one are a message that a program prints. They stand no further apart than this.
const ENDS_MIN: usize = 3;
const LINE_BYTES_MAX: usize = 1024;
/// Backslashes of a text that was escaped again and again.
const BACKSLASHES_MAX: usize = 16;

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    lines(node, spawn);
    signs(node, spawn);
}

/// The lines of a text that has `\n` for their ends, with its other short escapes undone.
fn lines(node: &Node, spawn: &mut Spawner<'_>) {
    // Under the last layer it is another way to read what stands there, as those are that take ordinary text apart.
    // Where other escapes were undone, or control characters taken out, the ends of lines were looked at before.
    if spawn.is_deepest() || matches!(node.layer, Some(Layer::Escapes | Layer::Fold)) {
        return;
    }
    let (text, mut index, mut done) = (&node.text, 0, 0);
    while let Some(at) = memchr::memmem::find(&text[done..], b"\\n").map(|n| done + n) {
        done = at + 2;
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let ends = ends(&text[..cell.span.end as usize], at);
        done = ends[ends.len() - 1] + 2;
        if ends.len() < ENDS_MIN {
            continue;
        }
        let floor = (cell.span.start as usize).max(at.saturating_sub(LINE_BYTES_MAX));
        let from = memchr::memrchr(b'\n', &text[floor..at]).map_or(floor, |n| floor + n + 1);
        let from = (from..at).find(|at| text[*at] & 0xC0 != 0x80).unwrap_or(at);
        let ceil = (cell.span.end as usize).min(done + LINE_BYTES_MAX);
        let to = memchr::memchr(b'\n', &text[done..ceil]).map_or(ceil, |n| done + n);
        let to = (done..=to)
            .rev()
            .find(|at| text.get(*at).is_none_or(|b| b & 0xC0 != 0x80))
            .unwrap_or(done);
        done = to;
        if is_binary(&text[from..to]) {
            continue;
        }
        child_around(node, cell, Layer::Escapes, (from, to), spawn, |child| {
            let mut at = from;
            while let Some(escape) = next(text, at, to) {
                let (span, sign) = escape;
                child.push(
                    &text[at..span.start as usize],
                    Span::new(at, span.start as usize),
                    How::Copy,
                );
                child.push(&[sign], span, How::Atom);
                at = span.end as usize;
            }
            child.push(&text[at..to], Span::new(at, to), How::Copy);
        });
    }
}

/// The ends of lines from the one at `at` on, all within one line of the text.
fn ends(text: &[u8], at: usize) -> Vec<usize> {
    let mut ends = vec![at];
    let mut from = at + 2;
    while let Some(n) =
        memchr::memmem::find(&text[from..text.len().min(from + LINE_BYTES_MAX)], b"\\n")
    {
        if text[from..from + n].contains(&b'\n') {
            break;
        }
        ends.push(from + n);
        from += n + 2;
    }
    ends
}

/// Are bytes of no text among the others, or written out there? Then what looks like the end of a line is one of those.
fn is_binary(text: &[u8]) -> bool {
    let escaped = |three: &[u8]| {
        matches!(
            three,
            [b'\\', b'x', b'0' | b'1'] | [b'\\', b'0', b'0'..=b'3']
        )
    };
    let strange = |b: &u8| *b < b' ' && !b.is_ascii_whitespace();
    text.iter().any(strange) || text.windows(3).any(escaped)
}

/// The next short escape, and what it stands for.
fn next(text: &[u8], from: usize, to: usize) -> Option<(Span, u8)> {
    let mut at = from;
    loop {
        at += memchr::memchr(b'\\', text.get(at..to)?)?;
        let run = text[at..to].iter().take(BACKSLASHES_MAX);
        let run = run.take_while(|b| **b == b'\\').count();
        let sign = match text[..to].get(at + run) {
            Some(b'n') => Some(b'\n'),
            Some(b'r') => Some(b'\r'),
            Some(b't') => Some(b'\t'),
            Some(sign @ (b'"' | b'/' | b'\'')) => Some(*sign),
            _ => None,
        };
        if let Some(sign) = sign {
            return Some((Span::new(at, at + run + 1), sign));
        }
        at += run;
    }
}

fn signs(node: &Node, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for at in memchr::memchr_iter(b'\\', &node.text) {
        if at < done {
            continue;
        }
        let signs = row(&node.text, at);
        done = signs.last().map_or(at + 1, |sign| sign.end as usize);
        let digits = signs
            .iter()
            .filter(|s| node.text[s.start as usize].is_ascii_digit())
            .count();
        if signs.len() < SIGNS_MIN || digits < 4 {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if done > cell.span.end as usize {
            continue;
        }
        child_around(node, cell, Layer::Escapes, (at, done), spawn, |child| {
            for sign in &signs {
                child.push(&node.text[sign.range()], *sign, How::Copy);
            }
        });
    }
}

/// The signs of a row, each without its backslash.
fn row(text: &[u8], mut at: usize) -> SmallVec<[Span; 8]> {
    let mut signs = SmallVec::new();
    while signs.len() < SIGNS_MAX && text.get(at) == Some(&b'\\') {
        let Some(first) = text.get(at + 1).filter(|b| **b >= b' ' && **b != b'\\') else {
            break;
        };
        let len = match first {
            0xF0.. => 4,
            0xE0.. => 3,
            0xC0.. => 2,
            _ => 1,
        };
        // `\x41`, `\u0041`, `\101`: more than one sign follows.
        if at + 1 + len > text.len() {
            break;
        }
        signs.push(Span::new(at + 1, at + 1 + len));
        at += 1 + len;
    }
    signs
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, children};

    #[test]
    fn backslashes_before_each_sign_go() {
        for (text, want) in [
            (
                r"emso: \0\8\0\7\9\8\1\5\0\9\6\3\4",
                Some("emso: 0807981509634"),
            ),
            (
                r"at \L\i\n\d\e\n\w\e\g\ \4\3\,\ \5\0\1\3",
                Some("at Lindenweg 43, 5013"),
            ),
            (r"\101\102\103\104\105", None),
            (r"a\b\c\d", None),
            (r"^\d\d\d\d\-\d\d$", None),
        ] {
            let got = children(text);
            // Two of them may be octal as well.
            let read = got
                .iter()
                .any(|(l, t, _)| *l == Layer::Escapes && want.is_some_and(|want| t.contains(want)));
            assert_eq!(read, want.is_some(), "{text}");
        }
    }

    #[test]
    fn lines_in_one_come_apart() {
        for (text, want) in [
            (
                r#"{"note": "first\nuser = ann\n\tpass = x\nlast"} end"#,
                Some("first\nuser = ann\n\tpass = x\nlast"),
            ),
            (
                r#"log: \"a: 1\\nb: \\\"2\\\"\\nc: 3\\nd\""#,
                Some("a: 1\nb: \"2\"\nc: 3\nd"),
            ),
            (r#"print("one\n"); print("two\n")"#, None),
            ("a\\nb\nc\\nd\ne\\nf\n", None),
            (r"b'\n\x0cname\n\x12type\nfield\n'", None),
        ] {
            let got = children(text);
            let read = got
                .iter()
                .any(|(l, t, _)| *l == Layer::Escapes && want.is_some_and(|want| t.contains(want)));
            let lines = got
                .iter()
                .any(|(l, t, _)| *l == Layer::Escapes && t.lines().count() > 3);
            assert_eq!((read, lines), (want.is_some(), want.is_some()), "{text}");
        }
    }

    #[test]
    fn redaction_meets_what_was_written() {
        let text = r"a\nkey: Xk8q\nb\nc";
        let found = children(text);
        let (_, child, map) = found
            .iter()
            .find(|(l, ..)| *l == Layer::Escapes)
            .expect("a child");
        let at = child.find("Xk8q").expect("the value");
        assert_eq!(&text[map(at, at + 4)], "Xk8q");
    }

    #[test]
    fn many_lines_take_no_more_than_the_room() {
        assert_bounded(r"key\nuser\npass\n");
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded(r"emso: \0\8\0\7\9\8\1\5\0\9\6\3\4, ");
    }
}
