//! Several values under one name: `API_KEYS = ["...", "..."]`, `api_keys: a1..., b2...`, the lines of a list or a map in YAML, a
//! map in JSON.

use smallvec::SmallVec;

use super::super::{Sink, is_value};
use super::{Value, believe};
use crate::LeafKind;
use crate::check;
use crate::names::{self, Promise};
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::value;

/// So many values of a list are looked at.
const ITEMS_MAX: usize = 64;
const ITEM_BYTES: std::ops::RangeInclusive<usize> = 8..=512;
/// How far behind its name a list opens: `: Vec<&'static str> = vec![`.
const OPENING_BYTES_MAX: usize = 48;
/// How far before a value its line begins.
const LINE_BYTES_MAX: usize = 1024;
/// Values put together with commas.
const PIECE_BYTES_MIN: usize = 12;

/// The values, and whether they are members with names of their own.
#[derive(Debug, Default)]
struct Listed {
    values: SmallVec<[Span; 8]>,
    named: bool,
}

/// What the name of many promises about each: `tokens` are words as well, so less than `token` does.
pub(super) fn promise_of_many(name: &[u8]) -> Promise {
    let one = name.strip_suffix(b"s").or(name.strip_suffix(b"S"));
    match one.map(names::promise) {
        Some(Promise::Strong | Promise::Weak) => Promise::Weak,
        Some(Promise::Password) => Promise::Password,
        _ => Promise::Nothing,
    }
}

/// Reports the values of a list in a text.
pub(super) fn believe_listed(name: Span, promise: Promise, cell: &Cell, sink: &mut Sink<'_>) {
    let listed = listed(sink.text(), name, cell.span);
    believe_all(&listed, promise, sink);
}

/// Reports the members of an object under the name of many: all of them or none.
pub(super) fn believe_members(cell: (usize, Cell), promise: Promise, sink: &mut Sink<'_>) {
    let (index, own) = cell;
    let node = sink.node;
    let key = &node.text[own.span.range()];
    let many = matches!(key.last(), Some(b's' | b'S'));
    let opens = node.cells.get(index + 1).is_some_and(|c| !is_value(c));
    let (outer, inner) = (
        node.layout.object_of(index),
        node.layout.object_of(index + 1),
    );
    if !many || !opens || inner.is_none() || inner == outer {
        return;
    }
    let mut listed = Listed {
        named: true,
        ..Listed::default()
    };
    for (nth, c) in node
        .cells
        .iter()
        .enumerate()
        .skip(index + 1)
        .take(2 * ITEMS_MAX)
    {
        if node.layout.object_of(nth) != inner {
            break;
        }
        if is_value(c) && (c.kind != LeafKind::String || names_other(&node.text[c.name.range()])) {
            return;
        }
        if is_value(c) {
            listed.values.push(c.span);
        }
    }
    believe_all(&listed, promise, sink);
}

/// The members of such names in the objects under a key, one object or an array of them.
pub(super) fn values_in(
    cell: (usize, Cell),
    names: &[&str],
    sink: &mut Sink<'_>,
    mut take: impl FnMut(Span, &mut Sink<'_>),
) {
    const CELLS_MAX: usize = 512;
    const CELLS_UNSURE: usize = 8;
    let (index, own) = cell;
    let node = sink.node;
    let outer = node.layout.object_of(index);
    // Of a message itself the objects may not be known.
    let reach = if outer.is_some() {
        CELLS_MAX
    } else {
        CELLS_UNSURE
    };
    if node.cells.get(index + 1).is_none_or(is_value) {
        return;
    }
    for (nth, c) in node.cells.iter().enumerate().skip(index + 1).take(reach) {
        let object = node.layout.object_of(nth);
        // What is named by a key before this one lies beside it.
        let beside = |object: Option<u32>| {
            object == outer || object.is_some_and(|o| node.layout.name_of(o).start < own.span.start)
        };
        if outer.is_some() && beside(object) || !sink.limits.spend(1) {
            break;
        }
        let under = object.is_none_or(|object| node.layout.name_of(object) == own.span);
        let called = &node.text[c.name.range()];
        let named = names
            .iter()
            .any(|name| called.eq_ignore_ascii_case(name.as_bytes()));
        if c.kind == LeafKind::String && under && named {
            take(c.span, sink);
        }
    }
}

/// The values in the `data` or the `stringData` of a Secret of Kubernetes.
pub(super) fn secret_data(cell: (usize, Cell), sink: &mut Sink<'_>) {
    const NEAR: usize = 24;
    let (index, own) = cell;
    let node = sink.node;
    let (outer, inner) = (
        node.layout.object_of(index),
        node.layout.object_of(index + 1),
    );
    if is_value(&own) || inner.is_none() || inner == outer || !sink.limits.spend(2) {
        return;
    }
    let check = match &node.text[own.span.range()] {
        b"stringData" => "told-or-drawn",
        b"data" => "base64-text",
        _ => return,
    };
    let kind = |nth: &usize| {
        let c = &node.cells[*nth];
        is_value(c)
            && &node.text[c.name.range()] == b"kind"
            && &node.text[c.span.range()] == b"Secret"
            && node.layout.object_of(*nth) == outer
    };
    let near = index.saturating_sub(NEAR)..(index + 2 * NEAR).min(node.cells.len());
    if !near.into_iter().any(|nth| kind(&nth)) {
        return;
    }
    for (nth, c) in node
        .cells
        .iter()
        .enumerate()
        .skip(index + 1)
        .take(2 * ITEMS_MAX)
    {
        if node.layout.object_of(nth) != inner || !sink.limits.spend(1) {
            break;
        }
        let told = &node.text[c.span.range()];
        let passes = || check::find(check).is_some_and(|c| (c.run)(told));
        if c.kind == LeafKind::String && !value::is_placeholder(told) && passes() {
            sink.report_for(Detector::SecretData, c.span, None);
        }
    }
}

/// The values in the lines behind one that holds a value, as far as they are indented alike: `- a` or `name: a`.
pub(crate) fn lines_behind(text: &[u8], found: Span, ceil: usize) -> SmallVec<[Span; 8]> {
    let floor = (found.start as usize).saturating_sub(LINE_BYTES_MAX);
    let before = &text[floor..found.start as usize];
    let Some(start) = memchr::memrchr(b'\n', before).map(|at| floor + at + 1) else {
        return SmallVec::new();
    };
    let own = text[start..]
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let dashed = text[start + own..ceil].starts_with(b"- ");
    let mut at = start;
    let mut values = SmallVec::new();
    for _ in 0..ITEMS_MAX {
        let rest = &text[at..ceil.min(at + 2 * ITEM_BYTES.end())];
        let Some(len) = memchr::memchr(b'\n', rest) else {
            break;
        };
        at += len + 1;
        let line = text[at..ceil.min(at + LINE_BYTES_MAX)]
            .split(|b| *b == b'\n')
            .next()
            .unwrap_or_default()
            .trim_ascii_end();
        let indented = line
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        if indented != own || line[own..].starts_with(b"- ") != dashed || line.len() == own {
            break;
        }
        if let Some(value) = line_value(&line[own..], dashed) {
            values.push(Span::new(at + own + value.start, at + own + value.end));
        }
    }
    values
}

/// `client_id` beside `client_secret`: members that are what belongs together, not one secret each.
fn names_other(key: &[u8]) -> bool {
    const ENDS: [&[u8]; 14] = [
        b"id",
        b"name",
        b"user",
        b"url",
        b"uri",
        b"hash",
        b"print",
        b"public",
        b"public_key",
        b"publickey",
        b"type",
        b"email",
        b"region",
        b"host",
    ];
    let key = key.to_ascii_lowercase();
    ENDS.iter().any(|end| key.ends_with(end))
}

/// The name before the colon of a line.
fn key_of(line: &[u8]) -> &[u8] {
    line.split(|b| *b == b':').next().unwrap_or_default()
}

fn believe_all(listed: &Listed, promise: Promise, sink: &mut Sink<'_>) {
    let text = sink.text();
    let made = |span: &Span| {
        let told = &text[span.range()];
        value::judge(told, promise, true).is_some() && !(listed.named && value::is_uuid(told))
    };
    if listed.named && !listed.values.iter().all(made) {
        return;
    }
    for span in &listed.values {
        if !sink.limits.spend(1) {
            break;
        }
        believe(Value::of(*span, true), promise, sink);
    }
}

fn listed(text: &[u8], name: Span, cell: Span) -> Listed {
    let ceil = cell.end as usize;
    let after = &text[name.end as usize..ceil];
    let quotes = after
        .iter()
        .take(2)
        .take_while(|b| b"\"'`]".contains(b))
        .count();
    let rest = &after[quotes..];
    let blanks = rest.iter().take_while(|b| **b == b' ').count();
    let sign = match &rest[blanks.min(2)..] {
        [b':', b'=', ..] | [b'=', b'>', ..] => 2,
        [b'=' | b':', ..] => 1,
        _ => return Listed::default(),
    };
    let mut list = List {
        text,
        at: name.end as usize + quotes + blanks + sign,
        ceil,
    };
    if blanks > 2 {
        return Listed::default();
    }
    let lines = list.opens_lines();
    let values = match lines {
        true => {
            let many = matches!(text[name.end as usize - 1], b's' | b'S');
            let found = list.lines(indent(text, name.start as usize, cell.start as usize));
            return if many || !found.named {
                found
            } else {
                Listed::default()
            };
        }
        false if list.opens_quoted() => {
            let found = list.quoted();
            let many = matches!(text[name.end as usize - 1], b's' | b'S');
            return if many || !found.named {
                found
            } else {
                Listed::default()
            };
        }
        false => list.bare(),
    };
    Listed {
        values,
        named: false,
    }
}

/// How far the line of a name is indented.
fn indent(text: &[u8], name: usize, floor: usize) -> usize {
    let before = &text[floor..name];
    let line = memchr::memrchr(b'\n', before).map_or(before, |at| &before[at + 1..]);
    line.iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

struct List<'t> {
    text: &'t [u8],
    at: usize,
    ceil: usize,
}

impl List<'_> {
    fn rest(&self) -> &[u8] {
        &self.text[self.at..self.ceil]
    }

    /// Nothing but blanks up to the end of the line.
    fn opens_lines(&mut self) -> bool {
        let blanks = self
            .rest()
            .iter()
            .take(4)
            .take_while(|b| matches!(b, b' ' | b'\r'))
            .count();
        let ends = self.rest().get(blanks) == Some(&b'\n');
        self.at += if ends { blanks + 1 } else { 0 };
        ends
    }

    /// A bracket with a quotation mark behind it, and no call before it.
    fn opens_quoted(&mut self) -> bool {
        let rest = self.rest();
        for (nth, b) in rest.iter().enumerate().take(OPENING_BYTES_MAX) {
            match b {
                b'[' | b'(' | b'{' => {
                    let inner = &rest[nth + 1..];
                    let white = inner
                        .iter()
                        .take(32)
                        .take_while(|b| b.is_ascii_whitespace())
                        .count();
                    if matches!(inner.get(white), Some(b'"' | b'\'')) {
                        let free = *b != b'(' || rest[..nth].iter().all(u8::is_ascii_whitespace);
                        self.at += nth + 1 + white;
                        return free;
                    }
                }
                b'"' | b'\n' | b';' | b',' => return false,
                _ => {}
            }
        }
        false
    }

    /// `"a", 'b', # of the shop`, `"shop": "a", "mail": "b"`: up to what is no value.
    fn quoted(mut self) -> Listed {
        let mut listed = Listed::default();
        while listed.values.len() < ITEMS_MAX {
            let Some(mut found) = self.in_quotes() else {
                break;
            };
            let sign = self
                .rest()
                .iter()
                .take(2)
                .take_while(|b| **b == b' ')
                .count();
            if let [b':', ..] | [b'=', b'>', ..] = &self.rest()[sign..] {
                let behind = self.rest()[sign..]
                    .iter()
                    .take(4)
                    .take_while(|b| b" :=>".contains(b))
                    .count();
                self.at += sign + behind;
                let Some(value) = self.in_quotes() else {
                    listed.values.clear();
                    break;
                };
                if names_other(&self.text[found.range()]) {
                    listed.values.clear();
                    break;
                }
                (found, listed.named) = (value, true);
            }
            if ITEM_BYTES.contains(&found.len()) {
                listed.values.push(found);
            }
            if !self.next_item() {
                break;
            }
        }
        listed
    }

    /// What stands in quotation marks here.
    fn in_quotes(&mut self) -> Option<Span> {
        let rest = self.rest();
        let quote = rest
            .first()
            .copied()
            .filter(|b| matches!(b, b'"' | b'\''))?;
        let inner = &rest[1..rest.len().min(ITEM_BYTES.end() + 2)];
        let len = inner.iter().position(|b| *b == quote)?;
        let found = Span::new(self.at + 1, self.at + 1 + len);
        self.at += len + 2;
        Some(found)
    }

    /// Over the comma, the end of the line and what is noted there.
    fn next_item(&mut self) -> bool {
        const GAP_BYTES_MAX: usize = 120;
        let rest = &self.text[self.at..self.ceil.min(self.at + GAP_BYTES_MAX)];
        let mut commas = 0;
        let mut at = 0;
        while let Some(b) = rest.get(at) {
            match b {
                b',' if commas == 0 => commas += 1,
                b if b.is_ascii_whitespace() => {}
                b'#' | b'/' => {
                    let Some(end) = memchr::memchr(b'\n', &rest[at..]) else {
                        return false;
                    };
                    at += end;
                }
                _ => break,
            }
            at += 1;
        }
        self.at += at;
        commas == 1
    }

    /// `[a, b]`, `(a b)`, `a,b,c`, `"a,b,c"`: all on one line.
    fn bare(self) -> SmallVec<[Span; 8]> {
        let rest = self.rest();
        let blanks = rest.iter().take(2).take_while(|b| **b == b' ').count();
        let open = rest.get(blanks).copied().filter(|b| b"[(\"'".contains(b));
        let from = blanks + usize::from(open.is_some());
        let close = match open {
            Some(b'[') => b']',
            Some(b'(') => b')',
            Some(quote) => quote,
            None => b'\n',
        };
        let mut values = SmallVec::new();
        let mut start = from;
        let line = &rest[from..rest.len().min(from + 16 * ITEM_BYTES.end())];
        let end = line.iter().position(|b| *b == close || *b == b'\n');
        let end = from + end.unwrap_or(line.len());
        // What is cut off by blanks alone is a row of words, but for an array of a shell.
        let cuts = |b: u8| b == b',' || close == b')' && b == b' ';
        while start < end && values.len() < ITEMS_MAX {
            let white = rest[start..end].iter().take_while(|b| **b == b' ').count();
            start += white;
            let piece = &rest[start..end];
            let len = piece.iter().position(|b| cuts(*b)).unwrap_or(piece.len());
            let told = piece[..len].trim_ascii_end();
            let plain = |b: &u8| b.is_ascii_graphic() && !b"\"'`()[]{}<>".contains(b);
            // `password=...,ssl=True`: what follows has names of its own.
            let member = told
                .trim_ascii_end()
                .split(|b| *b == b'=')
                .filter(|part| !part.is_empty());
            if !(PIECE_BYTES_MIN..=*ITEM_BYTES.end()).contains(&told.len())
                || !told.iter().all(plain)
                || member.count() > 1
            {
                return SmallVec::new();
            }
            values.push(Span::new(self.at + start, self.at + start + told.len()));
            start += len + 1;
        }
        match values.len() {
            0 | 1 => SmallVec::new(),
            _ => values,
        }
    }

    /// `- a` in each line, or `name: a` in lines that are indented further than the name of them all.
    fn lines(self, outer: usize) -> Listed {
        let mut listed = Listed::default();
        let mut at = self.at;
        let mut first: Option<(usize, bool)> = None;
        while at < self.ceil && listed.values.len() < ITEMS_MAX {
            let rest = &self.text[at..self.ceil];
            let len = memchr::memchr(b'\n', &rest[..rest.len().min(2 * ITEM_BYTES.end())]);
            let line = rest[..len.unwrap_or(rest.len().min(2 * ITEM_BYTES.end()))].trim_ascii_end();
            let own = line
                .iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count();
            let dashed = line[own..].starts_with(b"- ");
            let shape = *first.get_or_insert((own, dashed));
            let Some(value) = line_value(&line[own..], dashed)
                .filter(|_| shape == (own, dashed) && (dashed || own > outer))
                .filter(|_| dashed || !names_other(key_of(&line[own..])))
            else {
                // A map with something else in it is no map of secrets.
                if !dashed && own > outer && !listed.values.is_empty() {
                    listed.values.clear();
                }
                break;
            };
            listed
                .values
                .push(Span::new(at + own + value.start, at + own + value.end));
            listed.named = !dashed;
            let Some(len) = len else { break };
            at += len + 1;
        }
        listed
    }
}

/// The value in a line of a list or of a map, without its quotes.
fn line_value(line: &[u8], dashed: bool) -> Option<std::ops::Range<usize>> {
    let name = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let from = match dashed {
        true => 2,
        false => {
            let len = line.iter().take_while(|b| name(b)).count();
            (len > 0 && line[len..].starts_with(b": ")).then_some(len + 2)?
        }
    };
    let from = from + line[from..].iter().take_while(|b| **b == b' ').count();
    let told = &line[from..];
    let (from, told) = match told {
        [quote @ (b'"' | b'\''), inner @ .., end] if quote == end => (from + 1, inner),
        told => (from, told),
    };
    let plain = |b: &u8| b.is_ascii_graphic() && !b"\"'`".contains(b);
    let fits = ITEM_BYTES.contains(&told.len()) && told.iter().all(plain);
    fits.then_some(from..from + told.len())
}

#[cfg(test)]
mod tests {
    use super::listed;
    use crate::text::Span;

    fn values(text: &str) -> Vec<&str> {
        let len = text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap();
        let found = listed(text.as_bytes(), Span::new(0, len), Span::new(0, text.len()));
        found.values.iter().map(|v| &text[v.range()]).collect()
    }

    #[test]
    fn all_of_a_list() {
        for (text, want) in [
            (
                "keys = [\"aaaaaaaa\", 'bbbbbbbb']",
                vec!["aaaaaaaa", "bbbbbbbb"],
            ),
            (
                "keys := []string{\n\t\"aaaaaaaa\", // one\n\t\"bbbbbbbb\",\n}",
                vec!["aaaaaaaa", "bbbbbbbb"],
            ),
            (
                "keys: [aaaaaaaaaaaa, bbbbbbbbbbbb]",
                vec!["aaaaaaaaaaaa", "bbbbbbbbbbbb"],
            ),
            (
                "keys=(aaaaaaaaaaaa bbbbbbbbbbbb)",
                vec!["aaaaaaaaaaaa", "bbbbbbbbbbbb"],
            ),
            (
                "keys=aaaaaaaaaaaa,bbbbbbbbbbbb\nnext",
                vec!["aaaaaaaaaaaa", "bbbbbbbbbbbb"],
            ),
            (
                "keys:\n  - aaaaaaaa\n  - \"bbbbbbbb\"\nother: x",
                vec!["aaaaaaaa", "bbbbbbbb"],
            ),
            (
                "keys:\n  one: aaaaaaaa\n  two: bbbbbbbb\n",
                vec!["aaaaaaaa", "bbbbbbbb"],
            ),
            ("keys:\none: aaaaaaaa\n", vec![]),
            ("keys:\n  one: aaaaaaaa\n  two:\n    x: y\n", vec![]),
            (
                "keys = {\n  \"one\": \"aaaaaaaa\",\n  'two' => 'bbbbbbbb',\n}",
                vec!["aaaaaaaa", "bbbbbbbb"],
            ),
            ("keys:\n  client_id: aaaaaaaa\n  secret: bbbbbbbb\n", vec![]),
            ("keys = get(\"aaaaaaaa\", \"bbbbbbbb\")", vec![]),
            ("keys = aaaaaaaaaaaa", vec![]),
            ("keys, values = [\"aaaaaaaa\"]", vec![]),
        ] {
            assert_eq!(values(text), want, "{text}");
        }
    }
}
