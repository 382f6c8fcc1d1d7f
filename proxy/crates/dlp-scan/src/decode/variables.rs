//! Pieces that are given names and joined later: `a = "ghp_"; b = "Zq7k"; connect(a + b)`.

use smallvec::SmallVec;

use super::{Spawner, child_around, copy, label_before};
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::{Layer, OverBudget};

/// How far back the names were given.
const REACH: usize = 1024;
/// Longest name, and longest piece.
const NAME_BYTES_MAX: usize = 32;
const PIECE_BYTES_MAX: usize = 512;

/// Signs that may stand between two names in a template: `{kind}_{rest}`.
const BETWEEN: &[u8] = b"_-.:";

/// Rows of names joined by an operator (`joints` are the operators), or written side by side in a template.
pub(super) fn decode(node: &Node, joints: &[u32], spawn: &mut Spawner<'_>) {
    let text = &node.text;
    // Two names side by side in a template, or with a sign between them.
    let in_template =
        |at: &usize| text.get(at + 1) == Some(&b'{') || sign_between(&text[*at..]).is_some();
    let templates = memchr::memchr_iter(b'}', text).filter(in_template);
    // `$A$B`, `${A}${B}`, `$(A)$(B)`
    let side_by_side = |at: usize| {
        let before = at.checked_sub(1)?;
        match (text[before], text.get(at + 1)?) {
            (b'}', b'{') | (b')', b'(') => Some(before),
            (a, b) if of_name(a) && of_name(*b) => Some(at),
            _ => None,
        }
    };
    let dollars = memchr::memchr_iter(b'$', text).filter_map(side_by_side);
    // Swift: `"\(a)\(b)"`
    let escaped = memchr::memchr(b'\\', text).map_or(text.len(), |at| at.saturating_sub(1));
    let swift = memchr::memmem::find_iter(&text[escaped..], b")\\(").map(|at| escaped + at);
    let operators = joints.iter().map(|at| *at as usize);
    let (mut index, mut done) = (0, 0);
    for at in operators {
        row_at(node, at, (&mut index, &mut done), spawn);
    }
    (index, done) = (0, 0);
    for at in templates {
        row_at(node, at, (&mut index, &mut done), spawn);
    }
    (index, done) = (0, 0);
    for at in swift {
        row_at(node, at, (&mut index, &mut done), spawn);
    }
    (index, done) = (0, 0);
    for at in dollars {
        row_at(node, at, (&mut index, &mut done), spawn);
    }
}

fn row_at(
    node: &Node,
    at: usize,
    (index, done): (&mut usize, &mut usize),
    spawn: &mut Spawner<'_>,
) {
    // Beside most signs stands no name.
    let before = node.text[..at].trim_ascii_end();
    if at < *done || !before.last().is_some_and(|b| of_name(*b)) {
        return;
    }
    let Some(cell) = node.cell_from(at, index).filter(|c| c.leaf != NO_LEAF) else {
        return;
    };
    let (names, end) = names_around(&node.text, at, cell);
    if names.len() < 2 {
        return;
    }
    *done = end;
    let before =
        &node.text[cell.span.range()][..names[0].start as usize - cell.span.start as usize];
    let floor = before.len().saturating_sub(REACH);
    let base = cell.span.start as usize + floor;
    if memchr::memchr(b'=', &before[floor..]).is_none() {
        return;
    }
    let given = names.iter().map(|name| {
        let piece = given(&before[floor..], &node.text[name.range()])?;
        Some(Span::new(base + piece.start, base + piece.end))
    });
    let Some(pieces) = given.collect::<Option<Vec<_>>>() else {
        return;
    };
    // A name of two bytes may stand for hundreds, and stand many times.
    if pieces.iter().map(|piece| piece.len()).sum::<usize>() > spawn.room() {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
        return;
    }
    // What the whole is given to says what it is: `DB_PASSWORD = a + b`, `TOKEN="${A}${B}"`.
    let first = names[0].start as usize;
    let floor = cell.span.start as usize;
    let ahead = &node.text[floor..first];
    let opening = if ahead.ends_with(b"${") {
        2
    } else {
        usize::from(ahead.ends_with(b"$"))
    };
    let open = first - opening;
    let braced = opening == 2 && node.text.get(end) == Some(&b'}');
    let end = end + usize::from(braced);
    let (label, sign) = label_before(&node.text, cell, open);
    // In the midst of a word nothing sets it apart: `postgres://app:${A}${B}@db`.
    let within = label == open && open > floor && node.text[open - 1].is_ascii_graphic();
    let (sign, closing): (&[u8], &[u8]) = match within && braced {
        true => (b"", b""),
        false => (sign, b" "),
    };
    child_around(node, cell, Layer::Concat, (label, end), spawn, |child| {
        child.push(sign, Span::new(label, label + 1), How::Atom);
        for (nth, piece) in pieces.iter().enumerate() {
            child.push(&node.text[piece.range()], *piece, How::Copy);
            // `{kind}_{rest}`
            let behind = names[nth].end as usize;
            if sign_between(&node.text[behind..]).is_some() && nth + 1 < pieces.len() {
                copy(child, node, behind + 1, behind + 2);
            }
        }
        child.push(closing, Span::new(end - 1, end), How::Atom);
    });
}

/// In `}_{` and `}-${`: how long that is.
fn sign_between(text: &[u8]) -> Option<usize> {
    let [b'}', sign, rest @ ..] = text else {
        return None;
    };
    let opens = if rest.starts_with(b"${") {
        2
    } else {
        usize::from(rest.first() == Some(&b'{'))
    };
    (BETWEEN.contains(sign) && opens > 0).then_some(2 + opens)
}

fn of_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The names joined around the sign at `at`, and where the row ends.
fn names_around(text: &[u8], at: usize, cell: &Cell) -> (SmallVec<[Span; 4]>, usize) {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let first_end = text[floor..at].trim_ascii_end().len() + floor;
    let len = text[floor..first_end]
        .iter()
        .rev()
        .take_while(|b| of_name(**b))
        .count();
    let mut names = SmallVec::new();
    let mut next = (first_end - len, first_end);
    loop {
        let (from, to) = next;
        let named = (1..=NAME_BYTES_MAX).contains(&(to - from)) && !text[from].is_ascii_digit();
        if !named {
            return (names, to.max(at + 1));
        }
        names.push(Span::new(from, to));
        // ` + `, `..`, `}{`, `}${`, ` . $`
        let rest = &text[to..ceil];
        let gap = rest
            .iter()
            .take(8)
            .take_while(|b| b" +.&~|{}$".contains(b))
            .count();
        let expanded = from > floor && text[from - 1] == b'$' && rest[..gap] == *b"$";
        let called = rest.starts_with(b")$(") || rest.starts_with(b")\\(");
        let between = sign_between(rest);
        let gap = match between {
            Some(len) => len,
            None if called => 3,
            None => gap,
        };
        let joins = expanded
            || called
            || between.is_some()
            || rest[..gap].iter().any(|b| !matches!(b, b' ' | b'$'));
        let len = rest[gap..].iter().take_while(|b| of_name(**b)).count();
        if !joins || len == 0 {
            return (names, to.max(at + 1));
        }
        next = (to + gap, to + gap + len);
    }
}

/// The literal that was last given to the name.
fn given(before: &[u8], name: &[u8]) -> Option<std::ops::Range<usize>> {
    memchr::memmem::rfind_iter(before, name)
        .take(16)
        .find_map(|at| {
            let free = at == 0 || !of_name(before[at - 1]);
            let rest = &before[at + name.len()..];
            let blanks = |text: &[u8]| text.iter().take_while(|b| **b == b' ').count();
            let mut i = blanks(rest);
            // `: string =`, `:=`
            i += rest[i..].iter().take(16).position(|b| *b == b'=')?;
            let typed = rest[..i]
                .iter()
                .all(|b| b.is_ascii_alphabetic() || b" :&'".contains(b));
            i += 1 + blanks(rest.get(i + 1..)?);
            let quote = *rest.get(i)?;
            let quoted = matches!(quote, b'"' | b'\'' | b'`');
            let start = i + usize::from(quoted);
            let ends = |b: &u8| match quoted {
                true => *b == quote,
                false => b.is_ascii_whitespace() || matches!(b, b';' | b'&' | b'"' | b'\''),
            };
            // A quotation mark behind a backslash is one of the piece.
            let (piece, mut escaped) = (rest.get(start..)?, false);
            let len = piece.iter().take(PIECE_BYTES_MAX).position(|b| {
                let end = ends(b) && !escaped;
                escaped = quoted && *b == b'\\' && !escaped;
                end
            })?;
            let from = at + name.len() + start;
            (free && typed && len >= 2).then_some(from..from + len)
        })
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    #[test]
    fn pieces_under_names_come_together() {
        for text in [
            "a = \"ghp_ab12\"; b = \"cd34ef56\"; connect(a + b)",
            "const p1 = 'ghp_ab12';\nconst p2 = 'cd34';\nlet p3: string = 'ef56';\nfetch(u, p1 + p2 + p3);",
            "a=\"ghp_ab12\"\nb=\"cd34ef56\"\nx=f\"{a}{b}\"",
            "a=\"ghp\"\nb=\"ab12cd34ef56\"\nx=f\"{a}_{b}\"",
            "A=ghp_ab12\nB=cd34ef56\nU=postgres://app:${A}${B}@db",
            "A=ghp_ab12\nB=cd34ef56\nexport C=\"${A}${B}\"",
            "A=ghp_ab12\nB=cd34ef56\nEXPORTED=${A}${B}",
            "A=ghp_ab12\nB=cd34\nC=ef56\nEXPORTED=$A$B$C",
            "A := ghp_ab12\nB := cd34ef56\nEXPORTED = $(A)$(B)",
            "let a = \"ghp_ab12\"; let b = \"cd34ef56\"; let t = \"\\(a)\\(b)\"",
            "$a = 'ghp_ab12'; $b = 'cd34ef56'; f($a . $b);",
            r#"a = "f(\"ghp_ab12"; b = "cd34ef56\")"; run(a + b)"#,
        ] {
            let got = children(text);
            assert!(
                got.iter().any(|(l, t, _)| *l == Layer::Concat
                    && t.contains("ghp_ab12cd34ef56")
                    && (!text.contains("EXPORTED") || t.contains("EXPORTED = ghp_"))),
                "{text}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn sums_are_none() {
        for text in [
            "total = a + b",
            "x = 1; y = 2; z = x + y",
            "f(a + b); a = \"ghp_\"; b = \"x1\"",
        ] {
            let got = children(text);
            assert!(!got.iter().any(|(l, ..)| *l == Layer::Concat), "{text}");
        }
    }
}
