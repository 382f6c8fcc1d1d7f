//! Parts of a value in an order that is told: from right to left (`Zq7k <- ghp_`), by letters (`a) ghp_`, `b) Zq7k`), by numbers
//! that a program sorts (`[(1, 'Zq7k'), (0, 'ghp_')]`), by how it begins and goes on (`begins with ghp_ and the rest is Zq7k`),
//! or in halves that stand in values of their own.

use super::marks::Mark;
use super::{Spawner, begin_cell, child_around, copy, margin_before, name_over};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// Longest part, and how many there may be.
const PART_BYTES_MAX: usize = 512;
const PARTS_MAX: usize = 64;
/// A shorter part of few is a name or a number of something.
const PART_BYTES_MIN: usize = 3;
/// Shorter texts hold nothing that a rule finds.
const BYTES_MIN: usize = 7;
/// How far before the parts it is told how they go together, or behind them what they are given to.
const NEAR: usize = 160;
/// How far a list may reach back from its mark.
const BACK: usize = 1024;

/// Without one of them letters before lines count answers.
const TOGETHER: [&[u8]; 12] = [
    b"glue",
    b"join",
    b"together",
    b"concat",
    b"combine",
    b"part",
    b"piece",
    b"zusammen",
    b"aneinander",
    b"assembl",
    b"juntar",
    b"unire",
];

struct Parts {
    /// What is replaced by the whole.
    place: (usize, usize),
    /// The name the whole is given to, where it stands behind the parts.
    name: Option<Span>,
    pieces: Vec<Span>,
}

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for (at, mark) in marks.iter().map(|(at, mark)| (*at as usize, *mark)) {
        let own = matches!(
            mark,
            Mark::Arrow | Mark::Lettered | Mark::Tuple | Mark::Begins | Mark::Half
        );
        if !own || at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if mark == Mark::Half {
            half_in_cell_before(node, cell, at, spawn);
            continue;
        }
        let text = Text {
            bytes: &node.text[..cell.span.end as usize],
            floor: done.max(cell.span.start as usize),
        };
        let parts = match mark {
            Mark::Arrow => text.arrows(at),
            Mark::Lettered => text.lettered(at),
            Mark::Tuple => text.sorted(at),
            _ => text.begun(at),
        };
        let Some(parts) = parts.filter(|parts| is_telling(&node.text, &parts.pieces)) else {
            continue;
        };
        done = parts.place.1;
        child_around(node, cell, Layer::Concat, parts.place, spawn, |child| {
            let (from, to) = parts.place;
            if let Some(name) = parts.name {
                child.push(b" ", Span::new(from, from + 1), How::Atom);
                copy(child, node, name.start as usize, name.end as usize);
                child.push(b" = ", Span::new(from, from + 1), How::Atom);
            }
            for piece in &parts.pieces {
                copy(child, node, piece.start as usize, piece.end as usize);
            }
            child.push(b" ", Span::new(to - 1, to), How::Atom);
        });
    }
}

/// Words and the names of things make no value.
fn is_telling(text: &[u8], pieces: &[Span]) -> bool {
    let bytes = || pieces.iter().flat_map(|p| &text[p.range()]);
    let is = |kind: fn(&u8) -> bool| bytes().any(kind);
    let mixed = is(u8::is_ascii_lowercase) && is(u8::is_ascii_uppercase);
    pieces.len() > 1
        && bytes().count() >= BYTES_MIN
        && (is(u8::is_ascii_digit) || mixed || is(u8::is_ascii_punctuation))
}

fn of_part(b: &&u8) -> bool {
    b.is_ascii_graphic() && !b"\"'`,;<>|".contains(b)
}

/// How long the part is that a text begins with: the end of a sentence is none of it.
fn part_len(text: &[u8]) -> usize {
    let len = text.iter().take(PART_BYTES_MAX).take_while(of_part).count();
    let ended = text[..len].ends_with(b".") && text.get(len).is_none_or(u8::is_ascii_whitespace);
    len - usize::from(ended)
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    let is = |w: &[u8]| w.eq_ignore_ascii_case(word);
    text.windows(word.len()).position(is)
}

struct Text<'t> {
    bytes: &'t [u8],
    floor: usize,
}

impl Text<'_> {
    fn at(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    fn near(&self, at: usize, bytes: usize) -> &[u8] {
        let rest = self.at(at);
        &rest[..rest.len().min(bytes)]
    }

    fn before(&self, at: usize, bytes: usize) -> &[u8] {
        &self.bytes[at.saturating_sub(bytes).max(self.floor)..at]
    }

    /// `Zq7k <- ghp_`
    fn arrows(&self, at: usize) -> Option<Parts> {
        let sign: &[u8] = match self.at(at).get(1)? {
            b'<' => b" <- ",
            _ => " ← ".as_bytes(),
        };
        let before = self.before(at, PART_BYTES_MAX).iter().rev();
        let start = at - before.take_while(of_part).count();
        let (mut pieces, mut end) = (vec![Span::new(start, at)], at);
        while self.at(end).starts_with(sign) && pieces.len() < PARTS_MAX {
            let from = end + sign.len();
            let len = part_len(self.at(from));
            pieces.push(Span::new(from, from + len));
            end = from + len;
        }
        let told = self.before(start, NEAR);
        let told = [&b"right to left"[..], b"from the right", b"backwards"]
            .iter()
            .any(|word| find(told, word).is_some());
        let least = if told { 2 } else { 3 };
        let whole = pieces.len() >= least && pieces.iter().all(|p| p.len() >= PART_BYTES_MIN);
        pieces.reverse();
        whole.then_some(Parts {
            place: (start, end),
            name: None,
            pieces,
        })
    }

    /// `a) ghp_`, `b) Zq7k`: on lines of their own or in one.
    fn lettered(&self, at: usize) -> Option<Parts> {
        let letter = at + 1;
        let letter = letter + usize::from(self.at(letter).first() == Some(&b'('));
        let first = *self.at(letter).first()? - 1;
        // What stands between two parts, from the end of the first to the second's letter.
        let signs = self.at(letter + 1).iter().take(3);
        let signs = signs.take_while(|b| b") .:".contains(b)).count();
        let head = |n: usize| {
            let mut head = self.bytes[letter..letter + 1 + signs].to_vec();
            head[0] = first + u8::try_from(n).unwrap_or(u8::MAX - first);
            head
        };
        let back = self.before(at, BACK);
        let open = memchr::memmem::rfind(back, &head(0))?;
        if open > 0 && back[open - 1].is_ascii_alphanumeric() {
            return None;
        }
        let start = at - back.len() + open;
        let (mut pieces, mut end) = (Vec::new(), start);
        let mut next = start;
        while self.at(next).starts_with(&head(pieces.len())) && pieces.len() < 26 {
            let from = next + 1 + signs;
            let len = part_len(self.at(from));
            if len == 0 {
                return None;
            }
            pieces.push(Span::new(from, from + len));
            end = from + len;
            let gap = self.at(end).iter().take(8);
            next = end + gap.take_while(|b| b" \r\n,;(".contains(b)).count();
        }
        let told = self.before(start, NEAR);
        let told = TOGETHER.iter().any(|word| find(told, word).is_some());
        (told && end > at).then_some(Parts {
            place: (start, end),
            name: None,
            pieces,
        })
    }

    /// `[(1, 'Zq7k'), (0, 'ghp_')]`, with the name behind it that it is given to.
    fn sorted(&self, at: usize) -> Option<Parts> {
        let bracket = *self.at(at).get(2)?;
        let back = self.before(at, BACK);
        let open = memchr::memmem::rfind(back, &[b'[', bracket])?;
        let start = at - back.len() + open;
        let mut found: Vec<(usize, Span)> = Vec::new();
        let mut next = start + 1;
        while self.at(next).first() == Some(&bracket) && found.len() < PARTS_MAX {
            let digits = self.at(next + 1).iter().take(3);
            let digits = digits.take_while(|b| b.is_ascii_digit()).count();
            let number = std::str::from_utf8(self.at(next + 1).get(..digits)?).ok()?;
            let quoted = self.skip(next + 1 + digits, b", ");
            let quote = *self.at(quoted).first().filter(|b| b"\"'".contains(b))?;
            let body = self.near(quoted + 1, PART_BYTES_MAX);
            let len = memchr::memchr2(quote, b'\n', body)?;
            found.push((
                number.parse().ok()?,
                Span::new(quoted + 1, quoted + 1 + len),
            ));
            next = self.skip(quoted + len + 2, b")], \r\n");
        }
        found.sort_by_key(|(nth, _)| *nth);
        let first = found.first()?.0;
        let counted = found
            .iter()
            .enumerate()
            .all(|(n, (nth, _))| *nth == first + n);
        let after = self.near(next, NEAR);
        let told = [&b"sort"[..], b"join"]
            .iter()
            .any(|word| find(after, word).is_some());
        let name = find(after, b"join(").and_then(|join| {
            let line = memchr::memrchr(b'\n', &after[..join]).map_or(0, |n| n + 1);
            let sign = line + memchr::memchr(b'=', &after[line..join])?;
            let name = after[line..sign].trim_ascii_end();
            let of_name = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
            let len = name.iter().rev().take_while(of_name).count();
            let end = next + line + name.len();
            (len > 0).then(|| Span::new(end - len, end))
        });
        (counted && told && first <= 1 && next > at).then_some(Parts {
            place: (start, next),
            name,
            pieces: found.into_iter().map(|(_, piece)| piece).collect(),
        })
    }

    /// `begins with ghp_ and the rest, without a blank, is Zq7k`
    fn begun(&self, at: usize) -> Option<Parts> {
        const GOES_ON: [&[u8]; 6] = [
            b" rest",
            b"ends with ",
            b"ends in ",
            b"continues with ",
            b"goes on with ",
            b"followed by ",
        ];
        let verb = self.at(at).iter().position(|b| *b == b' ')?;
        let with = verb + 1 + self.at(at + verb + 1).iter().position(|b| *b == b' ')?;
        let start = self.skip(at + with, b" \"'`");
        let len = part_len(self.at(start));
        let one = Span::new(start, start + len);
        let rest = self.near(start + len, NEAR);
        let rest = rest.split(|b| *b == b'\n').next()?;
        let (word, said) = GOES_ON
            .iter()
            .filter_map(|word| find(rest, word).map(|n| (n, *word)))
            .min_by_key(|(n, _)| *n)?;
        let behind = word + said.len();
        let sign = match said {
            b" rest" => {
                let is = find(&rest[behind..], b" is ").map(|n| n + 4);
                let colon = find(&rest[behind..], b": ").map(|n| n + 2);
                is.into_iter().chain(colon).min()?
            }
            _ => 0,
        };
        let from = self.skip(start + len + behind + sign, b" \"'`:");
        let two = Span::new(from, from + part_len(self.at(from)));
        let worth = |p: Span| {
            let piece = &self.bytes[p.range()];
            let word = piece.iter().all(u8::is_ascii_lowercase);
            p.len() >= PART_BYTES_MIN && !word
        };
        // A word that something begins with, or a letter, is no half of a value.
        (worth(one) && worth(two)).then_some(Parts {
            place: (start, two.end as usize),
            name: None,
            pieces: vec![one, two],
        })
    }

    fn skip(&self, at: usize, gap: &[u8]) -> usize {
        let rest = self.at(at).iter().take(16);
        at + rest.take_while(|b| gap.contains(b)).count()
    }
}

/// `first half: ghp_` in one content block, `second half, right behind it: Zq7k` in the next.
fn half_in_cell_before(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) {
    const HALVES: [(&[u8], &[u8]); 4] = [
        (b"part two", b"part one"),
        (b"second half", b"first half"),
        (b"second part", b"first part"),
        (b"second piece", b"first piece"),
    ];
    let floor = cell.span.start as usize;
    let here = &node.text[at..cell.span.end as usize];
    let is = |name: &[u8]| here.len() > name.len() && here[..name.len()].eq_ignore_ascii_case(name);
    let Some((second, first)) = HALVES.iter().find(|(second, _)| is(second)) else {
        return;
    };
    let near = floor.saturating_sub(BACK);
    let Some(n) = find(&node.text[near..floor], first) else {
        return;
    };
    let begin = near + n;
    let nth = node.cells.partition_point(|c| c.span.end as usize <= begin);
    let Some(other) = node.cells.get(nth).filter(|c| {
        c.span.start as usize <= begin && c.span.end < cell.span.start && c.leaf != NO_LEAF
    }) else {
        return;
    };
    let ahead = &node.text[begin..other.span.end as usize];
    let (Some(one), Some(two)) = (half(ahead, first.len()), half(here, second.len())) else {
        return;
    };
    let one = Span::new(begin + one.0, begin + one.1);
    let two = Span::new(at + two.0, at + two.1);
    if !is_telling(&node.text, &[one, two]) {
        return;
    }
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    let name = begin_cell(&mut child, node, name_over(node, other, begin));
    let start = child.text.len();
    let margin = margin_before(&node.text, begin, other.span.start as usize);
    copy(&mut child, node, margin, begin);
    child.push(b": ", Span::new(begin, begin + 1), How::Atom);
    copy(&mut child, node, one.start as usize, one.end as usize);
    copy(&mut child, node, two.start as usize, two.end as usize);
    child.close_cell(start, name, other.kind, 0);
    spawn.end(child);
}

/// Where the value of a half lies whose name a text begins with: behind the sign of its label.
fn half(text: &[u8], name: usize) -> Option<(usize, usize)> {
    let line = text[name..].iter().take(64);
    let line = line.take_while(|b| **b != b'\n').count();
    let lead = &text[name..name + line];
    let colon = lead.iter().position(|b| b":=".contains(b)).map(|n| n + 1);
    let sign = colon.or_else(|| find(lead, b" is ").map(|n| n + 4))?;
    let gap = text[name + sign..].iter().take(4);
    let from = name + sign + gap.take_while(|b| b" \r\n\"'`".contains(b)).count();
    let len = part_len(&text[from..]);
    (len >= PART_BYTES_MIN).then_some((from, from + len))
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child, children_of};

    #[test]
    fn parts_come_into_their_order() {
        for (text, want) in [
            (
                "key, read from right to left: Zq7k <- ghp_",
                Some("left: ghp_Zq7k "),
            ),
            ("key: mV9k ← Zq7k ← ghp_", Some("key: ghp_Zq7kmV9k ")),
            (
                "glue a to c together:\na) ghp_\nb) Zq7k\nc) mV9k\nend",
                Some("ghp_Zq7kmV9k "),
            ),
            ("the parts: A) ghp_ B) Zq7k.", Some("parts: ghp_Zq7k .")),
            (
                "P = [(2, 'mV9k'), (0, 'ghp_'), (1, 'Zq7k')]\nkey = ''.join(x for _, x in sorted(P))",
                Some(" key = ghp_Zq7kmV9k "),
            ),
            (
                "it begins with ghp_7 and the rest, without a blank, is Zq7k.",
                Some("with ghp_7Zq7k ."),
            ),
            ("starts with 'gH7p', ends with 'Zq7k' ok", Some("gH7pZq7k ")),
            ("x <- y <- 3", None),
            ("df2 <- read.csv(path1)", None),
            ("Which port?\na) 8080\nb) 8443", None),
            ("T = [(1, 'Zq7k'), (0, 'ghp_')]", None),
            ("it begins with a letter and the rest is digits", None),
            ("starts with https and ends with .com", None),
        ] {
            assert_child(text, Layer::Concat, want);
        }
    }

    #[test]
    fn halves_in_values_of_their_own() {
        let found = children_of(&[
            ("text", "backup key, first half: ghp_Zq7k"),
            ("text", "second half, put right behind the first: mV9k_2"),
        ]);
        let whole = |text: &str| text.contains("key,") && text.contains("ghp_Zq7kmV9k_2");
        assert!(found.iter().any(|c| c.0 == Layer::Joined && whole(&c.1)));
        let found = children_of(&[
            ("text", "the first half: went well"),
            ("text", "the second half was better"),
        ]);
        assert!(found.iter().all(|c| c.0 != Layer::Joined));
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("from right to left: Zq7k12 <- ghp_a1\n");
        assert_bounded("parts: a) ghp_7 b) Zq7k12 ");
    }
}
