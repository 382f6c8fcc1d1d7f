//! Pieces of a value under names that count: `KEY_1=ghp_Zq7k` and in the next line `KEY_2=W2mX`, `"part1": "..."`.

use memchr::memmem;

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, Node, Span};

/// Longest name without its number, most digits of that, and longest piece.
const STEM_BYTES_MAX: usize = 48;
const DIGITS_MAX: usize = 4;
const PIECE_BYTES_MAX: usize = 512;
/// Pieces of one value have not so many bytes of their beginning in common.
const ALIKE_BYTES_MIN: usize = 4;
/// What stands between a name and its piece, and between a piece and the next name.
const SIGNS_MAX: usize = 8;
const GAP_BYTES_MAX: usize = 32;
/// What comes together has to be as long as the shortest values that rules know by their beginning.
pub(crate) const JOINED_BYTES_MIN: usize = 16;

/// May a name that counts end before a byte? It stands between the name and its value.
pub(crate) fn ends_name(b: u8) -> bool {
    matches!(b, b'=' | b':' | b'"' | b'\'' | b']')
}

fn of_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[')
}

/// `ends` says where names with a number end.
pub(super) fn decode(node: &Node, ends: &[u32], spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for end in ends.iter().map(|end| *end as usize) {
        if end < done {
            continue;
        }
        let Some(cell) = node.cell_from(end, &mut index) else {
            continue;
        };
        let text = &node.text[..cell.span.end as usize];
        let Some((name, pieces)) = series(text, cell.span.start as usize, end) else {
            continue;
        };
        // Whatever it is, it is not gone through again.
        let last = pieces[pieces.len() - 1].end as usize;
        done = last;
        if !worth(text, &pieces) {
            continue;
        }
        child_around(
            node,
            cell,
            Layer::Concat,
            (name.end as usize, last),
            spawn,
            |child| {
                child.push(b" = ", Span::new(end - 1, end), How::Atom);
                for piece in &pieces {
                    child.push(&text[piece.range()], *piece, How::Copy);
                }
                child.push(b" ", Span::new(last - 1, last), How::Atom);
            },
        );
    }
}

/// The name that ends at `end`, without its number, and the pieces from it on, if there are any after it.
fn series(text: &[u8], floor: usize, end: usize) -> Option<(Span, Vec<Span>)> {
    let before = text[floor..end].iter().rev();
    let digits = before
        .clone()
        .take(DIGITS_MAX + 1)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let stem_end = end - digits;
    let stem = before
        .skip(digits)
        .take(STEM_BYTES_MAX + 1)
        .take_while(|b| of_name(**b))
        .count();
    let name = Span::new(stem_end - stem, stem_end);
    let stem = &text[name.range()];
    if !(1..=DIGITS_MAX).contains(&digits)
        || !(1..=STEM_BYTES_MAX).contains(&stem.len())
        || !stem.iter().any(u8::is_ascii_alphabetic)
    {
        return None;
    }
    let sign = |b: &u8| matches!(b, b'=' | b':' | b'"' | b'\'' | b']' | b' ' | b'>');
    let signs = text[end..]
        .iter()
        .take(SIGNS_MAX + 1)
        .take_while(|b| sign(b))
        .count();
    let signs = &text[end..end + signs];
    if signs.len() > SIGNS_MAX || !signs.iter().any(|b| matches!(b, b'=' | b':')) {
        return None;
    }
    let first = piece(text, end + signs.len())?;
    // Most such names are hours, with nothing behind them.
    if text.len() - (first.end as usize) < stem.len() + 1 + signs.len() {
        return None;
    }
    let mut pieces: Vec<Span> = vec![first];
    let mut number: u32 = std::str::from_utf8(&text[stem_end..end])
        .ok()?
        .parse()
        .ok()?;
    // What stands between the first piece and the second name stands between all.
    let mut gap: Option<&[u8]> = None;
    loop {
        let last = pieces[pieces.len() - 1].end as usize;
        number = number.checked_add(1)?;
        let next = [stem, number.to_string().as_bytes(), signs].concat();
        let rest = &text[last..];
        let here = match gap {
            Some(gap) => rest.starts_with(gap).then_some(gap.len()),
            None => memmem::find(&rest[..rest.len().min(GAP_BYTES_MAX + next.len())], &next),
        };
        let Some(len) = here.filter(|len| rest[*len..].starts_with(&next)) else {
            break;
        };
        if gap.is_none() && !parts(&rest[..len]) {
            break;
        }
        gap.get_or_insert(&rest[..len]);
        match piece(text, last + len + next.len()) {
            Some(piece) => pieces.push(piece),
            None => break,
        }
    }
    Some((name, pieces))
}

/// Are they pieces of one value? More than two are of one length, but for the last, and do not all begin alike: those are values
/// of a kind.
fn worth(text: &[u8], pieces: &[Span]) -> bool {
    let Some((last, others)) = pieces.split_last().filter(|(_, others)| !others.is_empty()) else {
        return false;
    };
    let cut = others.iter().all(|p| p.len() == others[0].len()) && last.len() <= others[0].len();
    let bytes = || pieces.iter().flat_map(|piece| &text[piece.range()]);
    let of_kind = pieces.windows(2).all(|pair| {
        let [a, b] = [pair[0], pair[1]].map(|piece| &text[piece.range()]);
        let same = a.iter().zip(b).take_while(|(a, b)| a == b);
        same.count() >= ALIKE_BYTES_MIN
    });
    (others.len() == 1 || cut)
        && !of_kind
        && bytes().count() >= JOINED_BYTES_MIN
        && bytes().any(u8::is_ascii_digit)
        && bytes().any(u8::is_ascii_alphabetic)
}

/// Does what stands between a piece and the next name part the two, and hold no name of its own?
fn parts(gap: &[u8]) -> bool {
    let mut words = gap
        .split(|b| !b.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty());
    words.all(|word| {
        matches!(
            word,
            b"export" | b"set" | b"env" | b"const" | b"let" | b"var"
        )
    })
}

/// A piece without blanks.
fn piece(text: &[u8], from: usize) -> Option<Span> {
    let ends =
        |b: &u8| !b.is_ascii_graphic() || matches!(b, b'"' | b'\'' | b',' | b';' | b'`' | b'<');
    let rest = text.get(from..)?.iter().take(PIECE_BYTES_MAX + 1);
    let len = rest.take_while(|b| !ends(b)).count();
    (2..=PIECE_BYTES_MAX)
        .contains(&len)
        .then(|| Span::new(from, from + len))
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    #[test]
    fn pieces_under_counted_names_come_together() {
        let cases = [
            "KEY_1=ghp_Zq7k\nKEY_2=W2mXv9Lp\nKEY_3=4Ts",
            "here:\n{\"part0\": \"ghp_Zq7k\", \"part1\": \"W2mXv9Lp\", \"part2\": \"4Ts\"}\nend",
            "key1: ghp_Zq7k\nkey2: W2mXv9Lp\nkey3: 4Ts\n",
            "export A9='ghp_Zq7k'; export A10='W2mXv9Lp'; export A11='4Ts'",
            "k[0] = \"ghp_Zq7k\";\nk[1] = \"W2mXv9Lp\";\nk[2] = \"4Ts\";",
            "t-1=ghp_Zq7k\nt-2=W2mXv9Lp4Ts",
        ];
        for text in cases {
            let found = children(text);
            let hit = found
                .iter()
                .find(|(l, t, _)| *l == Layer::Concat && t.contains(" = ghp_Zq7kW2mXv9Lp4Ts "));
            let Some((_, child, source)) = hit else {
                let shown: Vec<_> = found.iter().map(|c| (c.0, &c.1)).collect();
                panic!("{text}: {shown:?}");
            };
            let at = child.find("ghp_").unwrap();
            assert_eq!(&text[source(at, at + 8)], "ghp_Zq7k", "{text}");
        }
    }

    #[test]
    fn other_names_are_left_alone() {
        let cases = [
            "host1=alpha.example.com\nhost2=beta.example.com\nhost3=gamma.example.com",
            "KEY_1=ghp_Zq7k\nKEY_3=W2mXv9Lp4Ts",
            "10:22:00 start\n10:23:00 stop\n10:24:00 end of it",
            "2026-05-12T10:22:00Z\n2026-05-12T11:22:00Z\n",
            "a1: the first\na2: the second of them",
            "x1=1\nx2=2\nx3=3\n",
            "secret1=db-prod-01/app\nsecret2=db-prod-02/app",
            "tags: tagKeys/key1=tagValues/value1,tagKeys/key2=tagValues/value2",
        ];
        for text in cases {
            let found = children(text);
            let shown: Vec<_> = found.iter().map(|c| (c.0, &c.1)).collect();
            assert!(
                found.iter().all(|c| c.0 != Layer::Concat),
                "{text}: {shown:?}"
            );
        }
    }

    /// Gone through anew from each name it would take minutes.
    #[test]
    fn a_row_is_gone_through_once() {
        let text: String = (1..100_000).map(|n| format!("c{n}: val\n")).collect();
        let found = children(&text);
        assert!(found.iter().all(|c| c.0 != Layer::Concat));
    }

    #[test]
    fn a_long_row_is_one() {
        let text: String = (0..300)
            .map(|n| format!("c{n}={:04x}\n", n * 7919 % 65_536))
            .collect();
        let all: String = (0..300)
            .map(|n| format!("{:04x}", n * 7919 % 65_536))
            .collect();
        let found = children(&text);
        assert!(
            found
                .iter()
                .any(|(l, t, _)| *l == Layer::Concat && t.contains(&all))
        );
    }
}
