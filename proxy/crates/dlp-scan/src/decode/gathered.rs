//! Literals that code puts together one after the other: `s += "ghp_"`, `sb.append("Zq7k")`, `k[0] = "g"`,
//! `concat("ghp_", "Zq7k")`, `"%s%s" % ("ghp_", "Zq7k")`, under each other in brackets; and pieces that are counted,
//! `part 1/2: ghp_`, `[2/2] Zq7k`.

use super::beside::{Call, call_in_place};
use super::marks::Mark;
use super::{Spawner, copy, label_before};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// How far before the second of numbered pieces the first may begin, and how long a line of a table's head is.
const NUMBERED_BACK: usize = 64;
/// Longest name that pieces are given to.
const NAME_BYTES_MAX: usize = 48;
/// How far back the first of a row may lie from the mark, and how far from each other its pieces.
const BACK: usize = 256;
/// A list that turns out to be none is gone through again by the marks in it, if it is no longer than this.
const AGAIN_BYTES_MAX: usize = 1024;
/// How far behind the last piece the name may stand that the whole is given to.
const AFTER: usize = 120;
/// Shorter texts hold nothing that a rule finds.
const BYTES_MIN: usize = 7;
/// Rows of a text that are read with the name before the row before them.
const NAMED_MAX: u32 = 8;
/// Longest format of numbers alone: `{2}{0}{1}`.
const FORMAT_BYTES_MAX: usize = 64;
/// Brackets and blanks behind a list.
const CLOSING_BYTES_MAX: usize = 8;

/// What was read of a row. It has no bound of its own: whatever is read is not read again by a later mark, but for what
/// [`AGAIN_BYTES_MAX`] says, so all rows together cost what the text is long.
struct Row {
    /// Where the name ends that the whole is given to, and what to write between it and the whole.
    label: (usize, &'static [u8]),
    /// The name, where it does not stand before the pieces.
    name: Option<Span>,
    pieces: Vec<Span>,
    end: usize,
}

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut index, mut done, mut list) = (0, 0, 0);
    let mut before = Before::default();
    for (at, mark) in marks.iter().map(|(at, mark)| (*at as usize, *mark)) {
        if at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let text = Text {
            bytes: &node.text[..cell.span.end as usize],
            floor: cell.span.start as usize,
            list,
            cell,
        };
        if mark == Mark::List && matches!(node.text[at], b']' | b')') {
            list = at;
        }
        let row = match mark {
            Mark::Append => text.appended(at),
            Mark::More => text.added(at),
            Mark::Index => text.indexed(at),
            Mark::List => text.listed(at),
            Mark::Lines => text.under_each_other(at),
            Mark::Operator => text.operated(at),
            Mark::Glued => text.glued(at),
            Mark::Define => text.defined(at),
            Mark::Part => text.counted(at),
            Mark::Half => text.halved(at),
            Mark::Numbered => text.numbered(at),
            Mark::Folded => text.folded(at),
            _ => None,
        };
        if let Some(row) = row {
            done = row.end.max(at + 1);
            emit(node, cell, &row, &mut before, spawn);
        }
    }
}

/// What was put together before a row.
#[derive(Default)]
struct Before {
    /// Where the last of it ends.
    done: usize,
    /// How many went back to the name before it, each in a child of its own: `password = concat("a", "b") + concat("c", "d")`.
    named: u32,
}

fn emit(node: &Node, cell: &Cell, row: &Row, before: &mut Before, spawn: &mut Spawner<'_>) {
    let bytes = || row.pieces.iter().flat_map(|p| &node.text[p.range()]);
    let telling = bytes().any(|b| !b.is_ascii_lowercase() && *b != b' ');
    if row.pieces.len() < 2 || bytes().count() < BYTES_MIN || !telling {
        return;
    }
    let firsts = row.pieces.iter().map(|piece| piece.start as usize);
    let from = firsts.min().unwrap_or(row.end);
    let (mut label, mut sign) = row.label;
    if label < before.done && before.done <= from {
        before.named += 1;
        if before.named > NAMED_MAX {
            (label, sign) = (before.done, b" ");
        }
    }
    before.done = row.end;
    let to = row.end;
    let call = Call { label, from, to };
    call_in_place(node, cell, Layer::Concat, &call, spawn, |child| {
        let at = Span::new(label, label + 1);
        if let Some(name) = row.name {
            child.push(b" ", at, How::Atom);
            copy(child, node, name.start as usize, name.end as usize);
        }
        child.push(sign, at, How::Atom);
        for piece in &row.pieces {
            copy(child, node, piece.start as usize, piece.end as usize);
        }
        child.push(b" ", Span::new(row.end - 1, row.end), How::Atom);
    });
}

/// A cell's text, from the node's beginning on.
struct Text<'t> {
    bytes: &'t [u8],
    floor: usize,
    /// Where the list before ended: the next begins behind it.
    list: usize,
    cell: &'t Cell,
}

fn of_name(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'@') || *b >= 0x80
}

/// The pieces as the numbers of a format call them, or as they are.
fn in_order_of(format: &[u8], pieces: Vec<Span>) -> Vec<Span> {
    let numbers = format.split(|b| matches!(b, b'{' | b'}'));
    let numbers = numbers.filter(|number| !number.is_empty());
    let called = numbers.map(|number| {
        let number: usize = std::str::from_utf8(number).ok()?.parse().ok()?;
        pieces.get(number).copied()
    });
    let called = called
        .collect::<Option<Vec<_>>>()
        .filter(|called| called.len() > 1);
    called.unwrap_or(pieces)
}

impl Text<'_> {
    fn at(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    /// The content of the literal that begins at `at`, and where what follows it begins.
    fn literal(&self, at: usize) -> Option<(Span, usize)> {
        let rest = self.at(at);
        let quote = *rest.first().filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
        let body = &rest[1..];
        let len = memchr::memchr2(quote, b'\n', body)?;
        (body[len] == quote).then(|| (Span::new(at + 1, at + 1 + len), at + len + 2))
    }

    /// The first byte from `at` on that is none of `gap`.
    fn skip(&self, at: usize, gap: &[u8]) -> usize {
        let rest = self.at(at).iter();
        at + rest.take_while(|b| gap.contains(b)).count()
    }

    /// The name that ends at `end`.
    fn name_before(&self, end: usize) -> Span {
        let before = self.bytes[self.floor..end].iter().rev();
        let len = before
            .take(NAME_BYTES_MAX)
            .take_while(|b| of_name(b))
            .count();
        Span::new(end - len, end)
    }

    fn trimmed(&self, end: usize) -> usize {
        let from = end.saturating_sub(8).max(self.floor);
        from + self.bytes[from..end].trim_ascii_end().len()
    }

    /// Literals from `at` on with nothing but `gap` between them.
    fn literals(&self, at: usize, gap: &[u8]) -> (Vec<Span>, usize) {
        let (mut pieces, mut end, mut at) = (Vec::new(), at, at);
        while let Some((piece, next)) = self.literal(at) {
            pieces.push(piece);
            end = next;
            at = self.skip(next, gap);
        }
        (pieces, end)
    }

    /// `sb.append("ghp_").append("Zq7k");`, `sb.append("x");`
    fn appended(&self, at: usize) -> Option<Row> {
        let receiver = self.name_before(at);
        let open = at + self.at(at).iter().take(16).position(|b| *b == b'(')?;
        let method = self.bytes[at..=open].to_vec();
        // `new StringBuilder("ghp_").append("Zq7k")`
        let first = self.bytes[self.floor..at]
            .strip_suffix(b"\")")
            .and_then(|before| {
                let quote = memchr::memrchr2(b'"', b'\n', before)?;
                let made = before[..quote].ends_with(b"(") && before[quote] == b'"';
                let end = self.floor + before.len();
                made.then(|| Span::new(self.floor + quote + 1, end))
            });
        let built = first.map(|piece| label_before(self.bytes, self.cell, piece.start as usize));
        let (mut pieces, mut next, mut end) = (Vec::from_iter(first), open + 1, at);
        while let Some((piece, after)) = self.literal(next) {
            pieces.push(piece);
            end = after;
            let mut i = self.skip(after, b"); \t\r\n");
            let called = &self.bytes[receiver.range()];
            if !called.is_empty() && self.at(i).starts_with(called) {
                i += called.len();
            }
            if !self.at(i).starts_with(&method) {
                break;
            }
            next = i + method.len();
        }
        let named = self.given_after(end, receiver);
        let name = named.unwrap_or(receiver);
        Some(Row {
            label: built.unwrap_or((receiver.start as usize, b" = ")),
            name: (!name.is_empty()).then_some(name),
            pieces,
            end,
        })
    }

    /// `this.apiKey = sb.toString()`: the name before the sign.
    fn given_after(&self, end: usize, receiver: Span) -> Option<Span> {
        let called = &self.bytes[receiver.range()];
        let rest = &self.at(end)[..self.at(end).len().min(AFTER)];
        let used = memchr::memmem::find(rest, called).filter(|_| called.len() > 1)?;
        let sign = memchr::memrchr(b'=', &rest[..used])?;
        let name = self.name_before(self.trimmed(end + sign));
        (!name.is_empty() && name.start as usize >= end).then_some(name)
    }

    /// `s += "ghp_"`, again and again, with what it was at first.
    fn added(&self, at: usize) -> Option<Row> {
        let sign = &self.bytes[at..at + 2];
        let name = self.name_before(self.trimmed(at));
        let called = &self.bytes[name.range()];
        if called.is_empty() {
            return None;
        }
        let mut pieces: Vec<Span> = Vec::new();
        let (mut next, mut end) = (self.skip(at + 2, b" \t"), at);
        while let Some((piece, after)) = self.literal(next) {
            pieces.push(piece);
            end = after;
            let mut i = self.skip(after, b"; \t\r\n");
            if !self.at(i).starts_with(called) {
                break;
            }
            i = self.skip(i + called.len(), b" \t");
            if !self.at(i).starts_with(sign) {
                break;
            }
            next = self.skip(i + 2, b" \t");
        }
        let first = self.first_of(name, called);
        let label = first.map_or(name.end, |(label, _)| label);
        if let Some((_, piece)) = first {
            pieces.insert(0, piece);
        }
        Some(Row {
            label: (label as usize, b" = "),
            name: None,
            pieces,
            end,
        })
    }

    /// In the line before: the end of the name, and the literal it was given at first.
    fn first_of(&self, name: Span, called: &[u8]) -> Option<(u32, Span)> {
        let before = &self.bytes[self.floor..name.start as usize];
        let close = before.iter().rposition(|b| !b"; \t\r\n".contains(b))?;
        let quote = before[close];
        let open = memchr::memrchr2(quote, b'\n', &before[..close])?;
        let literal = matches!(quote, b'"' | b'\'' | b'`') && before[open] == quote;
        let given = before[..open].trim_ascii_end().strip_suffix(b"=")?;
        let len = given.iter().rposition(|b| !b" \t:".contains(b))? + 1;
        (literal && given[..len].ends_with(called)).then(|| {
            let piece = Span::new(self.floor + open + 1, self.floor + close);
            (crate::text::to_u32(self.floor + len), piece)
        })
    }

    /// `k[0] = "g"`, `k[1] = "h"`.
    fn indexed(&self, at: usize) -> Option<Row> {
        let digits = |end: usize| {
            let before = self.bytes[self.floor..end].iter().rev().take(9);
            before.take_while(|b| b.is_ascii_digit()).count()
        };
        let number = |from: usize, to: usize| {
            let digits = std::str::from_utf8(self.bytes.get(from..to)?).ok()?;
            digits.parse::<usize>().ok()
        };
        let open = (at - digits(at))
            .checked_sub(1)
            .filter(|open| *open > self.floor)?;
        let mut n = number(open + 1, at)?;
        let name = self.name_before(open);
        let called = &self.bytes[name.start as usize..=open];
        if self.bytes[open] != b'[' || name.is_empty() {
            return None;
        }
        let (mut pieces, mut next, mut end) = (Vec::new(), self.skip(at, b"] ="), at);
        while let Some((piece, after)) = self.literal(next) {
            pieces.push(piece);
            end = after;
            let i = self.skip(after, b"; \t\r\n");
            if !self.at(i).starts_with(called) {
                break;
            }
            let from = i + called.len();
            let len = self
                .at(from)
                .iter()
                .take(9)
                .take_while(|b| b.is_ascii_digit())
                .count();
            if number(from, from + len) != Some(n + 1) {
                break;
            }
            n += 1;
            next = self.skip(from + len, b"] =");
        }
        Some(Row {
            label: (name.end as usize, b" = "),
            name: None,
            pieces,
            end,
        })
    }

    /// `concat("ghp_", "Zq7k")`, `["ghp_", "Zq7k"].join('')`, `"%s%s" % ("ghp_", "Zq7k")`.
    fn listed(&self, at: usize) -> Option<Row> {
        const BETWEEN: &[u8] = b",; \t\r\n";
        let rest = self.at(at);
        let mut format: &[u8] = b"";
        let (start, begin) = match rest.first()? {
            // What is joined stands before.
            close @ (b']' | b')') => {
                let from = self.list.max(self.floor);
                let bracket = if *close == b']' { b'[' } else { b'(' };
                let open = from + memchr::memrchr(bracket, &self.bytes[from..at])?;
                (open + 1, open + 1)
            }
            // A format: the literal it stands in ends, and the values come after it.
            b'%' | b'{' | b'}' => {
                // `"{1}{0}" -f 'Zq7k', 'ghp_'`
                let numbers = self.bytes[self.floor..at]
                    .iter()
                    .rev()
                    .take(FORMAT_BYTES_MAX);
                let numbers = numbers.take_while(|b| b"{}0123456789".contains(b)).count();
                let at = at - if rest.starts_with(b"}{") { numbers } else { 0 };
                let open = at
                    .checked_sub(1)
                    .filter(|o| *o >= self.floor && matches!(self.bytes[*o], b'"' | b'\''))?;
                let close = self.skip(at, b"%s{}0123456789");
                format = &self.bytes[at..close];
                let only = self.at(close).first() == Some(&self.bytes[open]);
                let method = self.at(close + 1).starts_with(b".format");
                let mut after = close + 1 + 7 * usize::from(method);
                after += 3 * usize::from(self.at(after).starts_with(b" -f"));
                only.then_some((self.skip(after, b", %([\t\r\n"), open))?
            }
            b'(' => (at + 5, at + 1),
            _ => {
                let open = at
                    + rest
                        .iter()
                        .take(12)
                        .rposition(|b| matches!(b, b'(' | b'['))?
                    + 1;
                // `implode('', [`, `join("", `
                let separator = self.literal(open).filter(|(s, _)| s.is_empty());
                match separator {
                    Some((_, next)) => (self.skip(next, b", [("), open),
                    None => (open, open),
                }
            }
        };
        let between: &[u8] = if rest.starts_with(b"(") {
            b" "
        } else {
            BETWEEN
        };
        let (pieces, end) = self.literals(self.skip(start, b" \t\r\n"), between);
        let closed = self.at(self.skip(end, b" \t\r\n,")).first();
        // The list of an operator has no bracket.
        let open = rest.starts_with(b"}{") && closed.is_none_or(|b| b.is_ascii_graphic());
        if !open && !matches!(closed, Some(b')' | b']')) || pieces.is_empty() {
            return self.none(at, end);
        }
        // The brackets around are no part of the value. A comma behind them is none of it, either.
        let behind = self.skip(end, b" \t\r\n,)]").min(end + CLOSING_BYTES_MAX);
        let bracket = |b: &u8| matches!(b, b')' | b']');
        let last = self.bytes[end..behind].iter().rposition(bracket);
        let end = end + last.map_or(0, |last| last + 1);
        Some(Row {
            label: label_before(self.bytes, self.cell, begin),
            name: None,
            pieces: in_order_of(format, pieces),
            end,
        })
    }

    /// What is no row. It is not gone through again where it is long.
    fn none(&self, at: usize, end: usize) -> Option<Row> {
        (end > at + AGAIN_BYTES_MAX).then(|| Row {
            label: (at, b""),
            name: None,
            pieces: Vec::new(),
            end,
        })
    }

    /// A bracket that opens at the end of a line, and literals in it with nothing between them.
    fn under_each_other(&self, at: usize) -> Option<Row> {
        let (pieces, end) = self.literals(self.skip(at + 3, b" \t\r\n"), b" \t\r\n\\+");
        let closed = self.at(self.skip(end, b" \t\r\n+")).first() == Some(&b')');
        // `+` at the head of each line: a diff that adds them.
        let (pieces, end, closed) = match pieces.is_empty() {
            true => {
                let (pieces, end) = self.literals(self.skip(at + 3, b" \t\r\n+"), b" \t\r\n+");
                let closed = self.at(self.skip(end, b" \t\r\n+")).first() == Some(&b')');
                (pieces, end, closed)
            }
            false => (pieces, end, closed),
        };
        if !closed {
            return self.none(at, end);
        }
        Some(Row {
            label: (self.trimmed(at), b" = "),
            name: None,
            pieces,
            end,
        })
    }

    /// `"ghp_" ^ "Zq7k"`, in the languages that join so.
    fn operated(&self, at: usize) -> Option<Row> {
        let from = self.floor;
        let open = from + memchr::memrchr2(self.bytes[at], b'\n', &self.bytes[from..at])?;
        let (pieces, end) = self.literals(open, b" \t\r\n^<>+/~");
        Some(Row {
            label: label_before(self.bytes, self.cell, open),
            name: None,
            pieces,
            end,
        })
    }

    /// `'ghp_'""'Zq7k'`: what a shell takes for one word.
    fn glued(&self, at: usize) -> Option<Row> {
        let from = self.floor;
        let open = from + memchr::memrchr2(self.bytes[at], b'\n', &self.bytes[from..at])?;
        let (mut pieces, end) = self.literals(open, b"");
        pieces.retain(|piece| !piece.is_empty());
        Some(Row {
            label: label_before(self.bytes, self.cell, open),
            name: None,
            pieces,
            end,
        })
    }

    /// `#define KEY "ghp_" "Zq7k"`.
    fn defined(&self, at: usize) -> Option<Row> {
        let name = self.skip(at + 7, b" \t");
        let len = self
            .at(name)
            .iter()
            .take(NAME_BYTES_MAX)
            .take_while(|b| of_name(b))
            .count();
        let (pieces, end) = self.literals(self.skip(name + len, b" \t"), b" \t");
        (pieces.len() > 1).then(|| Row {
            label: (name + len, b" = "),
            name: None,
            pieces,
            end,
        })
    }

    /// `part 1/2: ghp_` and `part 2/2: Zq7k`, whatever is on their lines before.
    fn counted(&self, at: usize) -> Option<Row> {
        let two = at + self.at(at).iter().take(8).position(|b| *b == b'2')?;
        let head = |n: usize| [&self.bytes[at..two], n.to_string().as_bytes()].concat();
        let from = at.saturating_sub(BACK).max(self.floor);
        let first = from + memchr::memmem::rfind(&self.bytes[from..at], &head(1))?;
        let (mut pieces, mut end, mut line, mut n) = (Vec::new(), at, first, 1);
        while let Some((piece, after)) = self.piece(line + head(n).len()) {
            pieces.push(piece);
            end = after;
            n += 1;
            let rest = &self.at(end)[..self.at(end).len().min(BACK)];
            let Some(next) = memchr::memmem::find(rest, &head(n)) else {
                break;
            };
            line = end + next;
        }
        Some(Row {
            label: (self.label_end(first), b": "),
            name: None,
            pieces,
            end,
        })
    }

    /// `first half ghp_ and second half Zq7k`, `prefix: ghp_` and `suffix: Zq7k`.
    fn halved(&self, at: usize) -> Option<Row> {
        const HALVES: [(&[u8], &[u8]); 6] = [
            (b"part two", b"part one"),
            (b"second half", b"first half"),
            (b"second part", b"first part"),
            (b"second piece", b"first piece"),
            (b"suffix", b"prefix"),
            (b"\"second\":", b"\"first\":"),
        ];
        let is = |name: &[u8], at: usize| {
            let word = self.at(at).get(..name.len());
            word.is_some_and(|w| w.eq_ignore_ascii_case(name))
        };
        let (second, first) = HALVES.iter().find(|(second, _)| is(second, at))?;
        let from = at.saturating_sub(BACK).max(self.floor);
        let start = (from..at).rev().find(|i| is(first, *i))?;
        let (one, _) = self.half(start + first.len())?;
        let (two, end) = self.half(at + second.len())?;
        Some(Row {
            label: (self.label_end(start), b": "),
            name: None,
            pieces: vec![one, two],
            end,
        })
    }

    /// Where the label before `at` ends, without the sign that ends it.
    fn label_end(&self, at: usize) -> usize {
        let from = at.saturating_sub(8).max(self.floor);
        let before = &self.bytes[from..at];
        let last = before.iter().rposition(|b| !b" \t\r\n:=,{\"'".contains(b));
        last.map_or(at, |n| from + n + 1)
    }

    /// What the name of a half is followed by: `": "ghp_`, ` is ghp_`.
    fn half(&self, at: usize) -> Option<(Span, usize)> {
        let mut start = self.skip(at, b" \t:=\"'`");
        if self.at(start).starts_with(b"is ") {
            start = self.skip(start + 3, b" :\"'`");
        }
        if start == at {
            return None;
        }
        let of_piece =
            |b: &&u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'`' | b',' | b';');
        let len = self.at(start).iter().take_while(of_piece).count();
        let piece = &self.at(start)[..len];
        let len = piece.strip_suffix(b".").unwrap_or(piece).len();
        (len > 0).then(|| (Span::new(start, start + len), start + len))
    }

    /// `token: >-` and lines under it that are one word each: folded where it should have been whole.
    fn folded(&self, at: usize) -> Option<Row> {
        const INDENT_MAX: usize = 32;
        const WRAPPED_BYTES_MIN: usize = 16;
        let of_piece = |b: &&u8| b.is_ascii_alphanumeric() || b"-_.+/=:~@".contains(b);
        // In a literal block line ends stay, unless it was wrapped.
        let literal = self.at(at).iter().take(4).any(|b| *b == b'|');
        let mut line = at + self.at(at).iter().take(8).position(|b| *b == b'\n')? + 1;
        let (mut pieces, mut end): (Vec<Span>, usize) = (Vec::new(), line);
        loop {
            let indent = self.at(line).iter().take(INDENT_MAX);
            let start = line + indent.take_while(|b| **b == b' ').count();
            let len = self.at(start).iter().take_while(of_piece).count();
            let ends = matches!(
                self.at(start + len).first(),
                None | Some(b'\n' | b'\r' | b'"' | b'\'')
            );
            let named = self.at(start)[..len].ends_with(b":");
            if start == line || len == 0 || !ends || named {
                break;
            }
            pieces.push(Span::new(start, start + len));
            end = start + len;
            let line_end = [&b"\n"[..], b"\r\n"];
            let line_end = line_end.into_iter().find(|e| self.at(end).starts_with(e));
            let Some(line_end) = line_end else {
                break;
            };
            line = end + line_end.len();
        }
        let wrapped = || {
            let (last, others) = pieces.split_last()?;
            let width = others.first()?.len();
            let full = others.iter().all(|piece| piece.len() == width);
            (full && width >= WRAPPED_BYTES_MIN && last.len() <= width).then_some(())
        };
        if literal && wrapped().is_none() {
            return None;
        }
        let digits = pieces.iter().flat_map(|p| &self.bytes[p.range()]);
        let digits = digits.filter(|b| b.is_ascii_digit()).count();
        (pieces.len() > 1 && digits > 1).then(|| Row {
            label: (self.trimmed(at), b": "),
            name: None,
            pieces,
            end,
        })
    }

    /// `| 1 | g |` and `| 2 | h |` under each other, `"0": "g", "1": "h"`.
    fn numbered(&self, at: usize) -> Option<Row> {
        let table = self.at(at).starts_with(b"\n");
        let (before, after, close): (&[u8], &[u8], u8) = match table {
            true => (b"| ", b" | ", b' '),
            false => (b"\"", b"\": \"", b'"'),
        };
        let head = |n: usize| [before, n.to_string().as_bytes(), after].concat();
        let from = at.saturating_sub(NUMBERED_BACK).max(self.floor);
        let near = &self.bytes[from..at + usize::from(table)];
        let back = |n: usize| memchr::memmem::rfind(near, &head(n)).map(|i| from + i);
        let (mut i, mut n) = back(0).map(|i| (i, 0)).or_else(|| Some((back(1)?, 1)))?;
        let (first, mut pieces, mut end) = (i, Vec::new(), at);
        loop {
            let start = i + head(n).len();
            let body = self.at(start).iter().take(8);
            let len = body.take_while(|b| **b != close && **b != b'\n').count();
            if len == 0 {
                break;
            }
            pieces.push(Span::new(start, start + len));
            end = start + len;
            let gap = self.skip(end, b" |\n\r,\"");
            n += 1;
            // The gap takes the sign along that the next head begins with.
            let next = (gap.saturating_sub(3)..=gap)
                .find(|g| *g >= end && self.at(*g).starts_with(&head(n)));
            match next {
                Some(next) => i = next,
                None => break,
            }
        }
        Some(Row {
            label: (self.numbered_label(first, table), b" = "),
            name: None,
            pieces,
            end,
        })
    }

    /// Where the label over such a list ends: before the table's head, or before the brace.
    fn numbered_label(&self, first: usize, table: bool) -> usize {
        let mut end = self.trimmed(first);
        if !table {
            let signs = |b: &u8| b"{[\": =".contains(b);
            let from = end.saturating_sub(8).max(self.floor);
            return self.bytes[from..end]
                .iter()
                .rposition(|b| !signs(b))
                .map_or(end, |n| from + n + 1);
        }
        // The head, and the line of dashes under it.
        for _ in 0..2 {
            let from = end.saturating_sub(NUMBERED_BACK).max(self.floor);
            let Some(line) = memchr::memrchr(b'\n', &self.bytes[from..end]) else {
                break;
            };
            if self.bytes[from + line + 1..end].trim_ascii().first() != Some(&b'|') {
                break;
            }
            end = self.trimmed(from + line);
        }
        end
    }

    /// What a count is followed by, up to the end of the word: `/3]: ghp_`.
    fn piece(&self, at: usize) -> Option<(Span, usize)> {
        let mut i = at;
        if self.at(i).first() == Some(&b'/') || self.at(i).starts_with(b" of ") {
            i = self.skip(i, b"/ of");
            i += self
                .at(i)
                .iter()
                .take(9)
                .take_while(|b| b.is_ascii_digit())
                .count();
        }
        let start = self.skip(i, b" ]):=-\"'`");
        if start == i {
            return None;
        }
        let of_piece = |b: &&u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'\'' | b'`' | b',');
        let len = self.at(start).iter().take_while(of_piece).count();
        (len > 0).then(|| (Span::new(start, start + len), start + len))
    }
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    #[test]
    fn pieces_are_put_together() {
        for (text, want) in [
            (
                "sb.append(\"ghp_\");\nsb.append(\"Zq7k\");\nthis.api_key = sb.toString();",
                " api_key = ghp_Zq7k ",
            ),
            ("key.append(\"ghp_\").append(\"Zq7k\");", " key = ghp_Zq7k "),
            ("K = \"\"\nK += \"ghp_\"\nK += \"Zq7k\"", "K = ghp_Zq7k "),
            ("$k = 'gh'; $k .= 'p_Z'; $k .= 'q7k';", "$k = ghp_Zq7k "),
            (
                "k[0] = \"ghp\"\nk[1] = \"_Zq\"\nk[2] = \"7k\"",
                "k = ghp_Zq7k ",
            ),
            ("K = string.Concat(\"ghp_\", \"Zq7k\");", "K = ghp_Zq7k "),
            ("K: =CONCATENATE(\"ghp_\";\"Zq7k\")", "ghp_Zq7k "),
            ("K='ghp_'\"\"'Zq7k'\"\"", "K = ghp_Zq7k "),
            ("K = \"\".join([\"ghp_\", \"Zq7k\"])", "K = ghp_Zq7k "),
            (
                "const K = [\"ghp_\", \"Zq7k\"].join('')",
                "const K = ghp_Zq7k ",
            ),
            ("K = \"%s%s\" % (\"ghp_\", \"Zq7k\")", "K = ghp_Zq7k "),
            (
                "String K = String.format(\"%s%s\", \"ghp_\", \"Zq7k\");",
                "String K = ghp_Zq7k ",
            ),
            ("(def K (str \"ghp_\" \"Zq7k\"))", "ghp_Zq7k "),
            ("$k = implode('', ['ghp_', 'Zq7k']);", "$k = ghp_Zq7k "),
            ("K = (\n  \"ghp_\"\n  \"Zq7k\"\n)", "K = ghp_Zq7k "),
            ("+K = (\n+  \"ghp_\"\n+  \"Zq7k\"\n+)", "K = ghp_Zq7k "),
            ("let k = \"ghp_\" ^ \"Zq7k\"", "let k = ghp_Zq7k "),
            ("#define K \"ghp_\" \"Zq7k\"", "K = ghp_Zq7k "),
            ("k << \"ghp_\" << \"Zq7k\";", "ghp_Zq7k "),
            (
                "K = String.join(\"\", \"ghp_\", \"Zq7k\");",
                "K = ghp_Zq7k ",
            ),
            (
                "let k = [\"ghp_\", \"Zq7k\"].concat();",
                "let k = ghp_Zq7k ",
            ),
            ("k.push(\"ghp_\");\nk.push(\"Zq7k\");", " k = ghp_Zq7k "),
            ("K part 1/2: ghp_\nK part 2/2: Zq7k\n", "K: ghp_Zq7k "),
            ("K: first half ghp_ and second half Zq7k", "K: ghp_Zq7k "),
            ("K. Part one: ghp_. Part two: Zq7k.", "ghp_Zq7k "),
            ("K = ('{0}{1}' -f 'ghp_', 'Zq7k')", "K = ghp_Zq7k "),
            ("K = \"{0}{1}\".format(\"ghp_\", \"Zq7k\")", "K = ghp_Zq7k "),
            ("K = join('', 'ghp_', 'Zq7k')", "K = ghp_Zq7k "),
            ("K = \"\".join((\"ghp_\", \"Zq7k\"))", "K = ghp_Zq7k "),
            ("K = ('ghp_','Zq7k') -join ''", "K = ghp_Zq7k "),
            (
                "K = new StringBuilder(\"ghp_\").append(\"Zq7k\").toString();",
                "K = ghp_Zq7k ",
            ),
            ("  K: >-\n    ghp_4\n    Zq7k\n  L: x", "K: ghp_4Zq7k "),
            ("K:\n  prefix: ghp_\n  suffix: Zq7k\n", "K: ghp_Zq7k "),
            (
                "K\n\n| pos | char |\n|---|---|\n| 1 | g |\n| 2 | h |\n| 3 | p |\n| 4 | _ |\n| 5 | Z |\n| 6 | q |\n| 7 | 7 |",
                "K = ghp_Zq7 ",
            ),
            (
                "\"K\": {\"0\": \"gh\", \"1\": \"p_\", \"2\": \"Zq\", \"3\": \"7k\"}",
                "\"K = ghp_Zq7k ",
            ),
            ("K: >-\r\n  ghp_\r\n  Zq72k\r\n", "K: ghp_Zq72k "),
            (
                "09:00 INFO K [1/2] ghp_\n09:01 INFO K [2/2] Zq7k",
                "INFO K: ghp_Zq7k ",
            ),
        ] {
            let got = children(text);
            assert!(
                got.iter()
                    .any(|(l, t, _)| *l == Layer::Concat && t.contains(want)),
                "{text}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn other_code_stays_as_it_is() {
        for text in [
            "out += \"line\"; n += 1;",
            "d[\"a\"] = \"b\"; d[\"c\"] = \"d\"",
            "k[0] = \"g\"\nk[7] = \"h\"",
            "list.append(\"one\"); other.append(\"two\");",
            "concat(a, b)",
            "x = (\n  \"only one\"\n)",
            "part 1 is long, part 2 is short",
            "the first half of the file and the second half of it",
            "| 1 | one |\n| 2 | two |",
            "#define VERSION \"1.2.3\"",
            "run: |\n  make all\n  make test2",
            "steps: |\n  build\n  test\n",
            "ids: |\n  4539\n  5787\n  6362\n  1486",
            "\"{0}{1}\"",
        ] {
            let got = children(text);
            assert!(!got.iter().any(|(l, ..)| *l == Layer::Concat), "{text}");
        }
    }
}
