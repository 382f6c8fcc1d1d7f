//! Numbers and words of people in two halves: under heads of one table (`iin (first half),iin (second half)`), in two lines or blocks
//! (`IIN, first half: 5810`, `second half of IIN: 1930`), under two names (`iin_part1`, `iin_part2`), or in one value
//! (`(part 1) 5810 (part 2) 1930`). They come together under the name that both have.

use smallvec::SmallVec;

use super::marks::Mark;
use super::{Spawner, begin_cell, copy};
use crate::text::{NO_LEAF, Node, Span};
use crate::{Layer, LeafKind};

/// What the second half is called, and the first.
const HALVES: [(&[u8], &[u8]); 7] = [
    (b"second half", b"first half"),
    (b"second_half", b"first_half"),
    (b"second part", b"first part"),
    (b"(part 2)", b"(part 1)"),
    (b"part_2", b"part_1"),
    (b"_part2", b"_part1"),
    (b"part 2", b"part 1"),
];
/// How far before the second the first may stand, and how long a name and a half may be.
const BACK: usize = 224;
const NAME_BYTES_MAX: usize = 48;
const HALF_BYTES_MAX: usize = 40;
/// Signs between what says half and the half.
const SIGNS_MAX: usize = 10;
/// Longest head of a table and longest row, and so many rows are read.
const LINE_BYTES_MAX: usize = 1024;
const ROWS_MAX: usize = 64;
/// Fewer letters and digits are no value.
const BYTES_MIN: usize = 6;

/// A name and the halves of its value.
type Whole = (Span, Span, Span);

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut done, mut index) = (0, 0);
    for (at, mark) in marks {
        let at = *at as usize;
        if !matches!(mark, Mark::Half | Mark::Part) || at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).copied() else {
            continue;
        };
        let Some((second, first)) = HALVES
            .into_iter()
            .find(|(second, _)| is(&node.text, at, second))
        else {
            continue;
        };
        let text = &node.text;
        let floor = cell.span.start as usize;
        let mut found: SmallVec<[Whole; 4]> = SmallVec::new();
        if cell.leaf != NO_LEAF || cell.kind != LeafKind::Key {
            rows(
                &text[..cell.span.end as usize],
                floor,
                at,
                (second, first),
                &mut found,
            );
        }
        if found.is_empty() {
            found.extend(pair(text, at, (second, first)));
        }
        let Some(last) = found.last() else { continue };
        done = (last.2.end as usize).max(at + 1);
        let Some(mut child) = spawn.begin(Layer::Joined) else {
            return;
        };
        for (name, one, two) in &found {
            // In one value the name is that of its cell.
            let over = if name.is_empty() {
                super::name_of(node, &cell)
            } else {
                *name
            };
            let name = begin_cell(&mut child, node, over);
            let start = child.text.len();
            for half in [one, two] {
                copy(&mut child, node, half.start as usize, half.end as usize);
            }
            child.close_cell(start, name, LeafKind::String, 0);
        }
        spawn.end(child);
    }
}

fn is(text: &[u8], at: usize, word: &[u8]) -> bool {
    let here = text.get(at..at + word.len());
    here.is_some_and(|here| here.eq_ignore_ascii_case(word))
}

fn worth(text: &[u8], halves: [Span; 2]) -> bool {
    let bytes = || halves.into_iter().flat_map(|half| &text[half.range()]);
    let own = |b: &&u8| b.is_ascii_alphanumeric() || **b >= 0x80;
    !halves.iter().any(|half| half.is_empty())
        && bytes().filter(own).count() >= BYTES_MIN
        && bytes().any(u8::is_ascii_digit)
}

/// The halves under two heads of one table.
fn rows(
    text: &[u8],
    floor: usize,
    at: usize,
    (second, first): (&[u8], &[u8]),
    found: &mut SmallVec<[Whole; 4]>,
) {
    let back = at.saturating_sub(LINE_BYTES_MAX).max(floor);
    let start = memchr::memrchr(b'\n', &text[back..at]).map_or(back, |n| back + n + 1);
    let Some(len) = memchr::memchr(b'\n', &text[at..text.len().min(at + LINE_BYTES_MAX)]) else {
        return;
    };
    let end = at + len;
    let count = |sign: u8| memchr::memchr_iter(sign, &text[start..end]).count();
    let Some(sign) = [b',', b';', b'\t', b'|']
        .into_iter()
        .max_by_key(|sign| count(*sign))
    else {
        return;
    };
    let heads = fields(text, start, end, sign);
    let holds = |word: &[u8]| {
        heads
            .iter()
            .position(|head| (head.start as usize..head.end as usize).any(|n| is(text, n, word)))
    };
    let (Some(one), Some(two)) = (holds(first), holds(second)) else {
        return;
    };
    if one == two {
        return;
    }
    let Some(cut) =
        (heads[one].start as usize..heads[one].end as usize).find(|n| is(text, *n, first))
    else {
        return;
    };
    let name = trimmed(text, heads[one].start as usize, cut);
    let mut at = end + 1;
    for _ in 0..ROWS_MAX {
        // The last row may end with the text.
        let Some(rest) = text.get(at..text.len().min(at + LINE_BYTES_MAX)) else {
            return;
        };
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let row = fields(text, at, at + len, sign);
        if len == 0 || row.len() != heads.len() {
            return;
        }
        if !name.is_empty() && name.len() <= NAME_BYTES_MAX && worth(text, [row[one], row[two]]) {
            found.push((name, row[one], row[two]));
        }
        at += len + 1;
    }
}

fn fields(text: &[u8], start: usize, end: usize, sign: u8) -> SmallVec<[Span; 12]> {
    let mut from = start;
    let lens = text[start.min(end)..end]
        .split(|b| *b == sign)
        .map(<[u8]>::len);
    lens.map(|len| {
        let field = trimmed(text, from, from + len);
        from += len + 1;
        field
    })
    .collect()
}

/// A piece without blanks, quotes and brackets around it.
fn trimmed(text: &[u8], from: usize, to: usize) -> Span {
    let out = |b: &&u8| b" \"'`\r\t,_([-:".contains(b);
    let head = text[from..to].iter().take_while(out).count();
    let tail = text[from + head..to]
        .iter()
        .rev()
        .take_while(|b| b" \"'`\r\t,_([:".contains(b))
        .count();
    Span::new(from + head, to - tail)
}

/// The first half before the second, whatever stands between.
fn pair(text: &[u8], at: usize, (second, first): (&[u8], &[u8])) -> Option<Whole> {
    let from = at.saturating_sub(BACK);
    let start = (from..at).rev().find(|n| is(text, *n, first))?;
    let (of, two) = half(text, at + second.len(), text.len())?;
    let (_, one) = half(text, start + first.len(), at)?;
    if !worth(text, [one, two]) {
        return None;
    }
    // `second half of IIN:`, else what stands before the first one's.
    let name = of.unwrap_or_else(|| {
        let reach = start.saturating_sub(NAME_BYTES_MAX);
        let before = &text[reach..start];
        let begin = before
            .iter()
            .rposition(|b| *b < b' ' || b"\"'`;{}|=".contains(b));
        let mut begin = reach + begin.map_or(0, |n| n + 1);
        // `Macarena, IIN, first half`
        let inner = trimmed(text, begin, start);
        if let Some(comma) = memchr::memrchr(b',', &text[inner.range()]) {
            begin = inner.start as usize + comma + 1;
        }
        while begin < start && text[begin] & 0xC0 == 0x80 {
            begin += 1;
        }
        trimmed(text, begin, start)
    });
    Some((name, one, two))
}

/// The half behind what says so, and what it is said to be the half of.
fn half(text: &[u8], at: usize, ceil: usize) -> Option<(Option<Span>, Span)> {
    let mut from = at;
    let mut of = None;
    if is(text, at, b" of ") {
        let name = &text[at + 4..ceil.min(at + 4 + NAME_BYTES_MAX)];
        let len = memchr::memchr2(b':', b'=', name)?;
        of = Some(trimmed(text, at + 4, at + 4 + len));
        from = at + 4 + len;
    }
    let sign = |b: &&u8| **b <= b' ' || b"\"'`:=>)".contains(b);
    from += text[from..ceil]
        .iter()
        .take(SIGNS_MAX)
        .take_while(sign)
        .count();
    if is(text, from, b"is ") {
        from += 3;
    }
    let of_half = |b: &&u8| **b >= b' ' && !b"\"'`;,|<>{}()".contains(b);
    let rest = &text[from..ceil];
    let len = rest
        .iter()
        .take(HALF_BYTES_MAX + 1)
        .take_while(of_half)
        .count();
    if from == at || len > HALF_BYTES_MAX {
        return None;
    }
    // A sentence that goes on is none of it.
    let piece = &rest[..len];
    let len = memchr::memmem::find(piece, b" and ").unwrap_or(len);
    let piece = trimmed(text, from, from + len);
    let words = text[piece.range()].split(|b| *b == b' ');
    let told = words
        .filter(|w| w.len() > 3 && w.iter().all(u8::is_ascii_lowercase))
        .count();
    (told < 2).then_some((of, piece))
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, children, children_of};

    #[test]
    fn halves_come_together_under_their_name() {
        for (text, want) in [
            (
                "name,iin (first half),iin (second half)\nA,581019,308566\nB,581020,308567\n",
                "iin\x1f581019308566",
            ),
            // The text may end with its last row.
            (
                "iin (first half),iin (second half)\n581012,193045",
                "iin\x1f581012193045",
            ),
            (
                "Jitka, rodne_cislo, first half: 98522; second half of rodne_cislo: 7/5356",
                "rodne_cislo\x1f985227/5356",
            ),
            (
                "num_seg_social_part1: 46/1790\nnum_seg_social_part2: 0130/81\n",
                "num_seg_social\x1f46/17900130/81",
            ),
        ] {
            let got = children(text);
            let texts: Vec<_> = got
                .iter()
                .map(|(l, t, _)| (*l, t.replace('\x1e', "\x1f")))
                .collect();
            assert!(
                texts
                    .iter()
                    .any(|(l, t)| *l == Layer::Joined && t.contains(want)),
                "{text}: {texts:?}"
            );
        }
        let cells = [
            ("text", "IIN, first half: 1661 69"),
            ("text", "second half of IIN: 25 0834"),
        ];
        let got = children_of(&cells);
        assert!(
            got.iter()
                .any(|(l, t, _)| *l == Layer::Joined && t.contains("1661 6925 0834"))
        );
        let got = children_of(&[("cell_no", "(part 1) 082 89 (part 2) 2 5877")]);
        assert!(
            got.iter()
                .any(|(l, t, _)| *l == Layer::Joined && t.contains("082 892 5877"))
        );
    }

    #[test]
    fn other_halves_are_left_alone() {
        for text in [
            "the first half of the year was better than the second half of it",
            "part 1 is long, part 2 is short",
            "first half: profit rose, second half: it fell",
            "second half of 2024: 12 releases",
        ] {
            let got = children(text);
            assert!(got.iter().all(|(l, ..)| *l != Layer::Joined), "{text}");
        }
    }

    #[test]
    fn many_are_bounded() {
        assert_bounded("iin_part1: 581019\niin_part2: 308566\n");
    }
}
