//! Bytes as programs show them, line by line: with an offset at the head of each (`xxd`, `hexdump -C`, `od -tx1`), and in
//! columns of words in any of the usual bases, with or without one (`od`, `hexdump`, `od -An -tu1`, `xxd -b`).

use std::sync::LazyLock;

use memchr::memmem;
use smallvec::SmallVec;

use super::listed::{BARE_CODES_MIN, CODES_MIN, Code, printable, telling};
use super::{Ends, Spawner, child_around};
use crate::Layer;
use crate::detect::Scratch;
use crate::text::{Cell, How, Node, Span};

/// Most bytes that a line of a dump shows.
const LINE_BYTES_MAX: usize = 64;

pub(super) fn decode(node: &Node, scratch: &Scratch, ends: &Ends, spawn: &mut Spawner<'_>) {
    let traces = &scratch.traces;
    if traces.zeros {
        dumps(node, ends, spawn);
    }
    columns(node, scratch, spawn);
}

/// Most lines that are read together. What is longer is read in parts, which have so many lines in common.
const LINES_MAX: usize = 4096;
const LINES_AGAIN: usize = 64;
/// Longest line of columns that is read.
const COLUMNS_BYTES_MAX: usize = 512;
/// Longest word of a column.
const COLUMN_BYTES_MAX: usize = 16;
/// Most blanks between two columns.
const COLUMN_GAP_MAX: usize = 8;

/// What a line shows: the words that are numbers in some base, up to something else.
type Words = SmallVec<[Span; 17]>;

/// Lines of columns, wherever rows of numbers or an offset were seen.
fn columns(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    // Rows of numbers with other signs between are dates and the like.
    let apart = |at: &usize| {
        let mut behind = text[*at..].iter().take(COLUMN_BYTES_MAX + 1);
        let sign = behind.find(|b| !b.is_ascii_alphanumeric());
        sign.is_some_and(|b| matches!(b, b' ' | b'\t'))
    };
    let rows = scratch
        .code_rows
        .iter()
        .map(|at| *at as usize)
        .filter(apart);
    let pairs = scratch.traces.pairs.iter().map(|at| *at as usize);
    let mut at: Vec<usize> = rows.chain(pairs).collect();
    if scratch.traces.zeros {
        at.extend(ZEROS.find_iter(text));
    }
    at.sort_unstable();
    let (mut index, mut done) = (0, 0);
    for at in at {
        if at < done {
            continue;
        }
        if let Some(cell) = node.cell_from(at, &mut index) {
            done = columns_around(node, cell, (done, at), spawn);
        }
    }
}

/// The lines around a place, none of them before `done`; returns where they end.
fn columns_around(
    node: &Node,
    cell: &Cell,
    (done, at): (usize, usize),
    spawn: &mut Spawner<'_>,
) -> usize {
    let (floor, ceil) = (done.max(cell.span.start as usize), cell.span.end as usize);
    let text = &node.text[..ceil];
    // Where the line before a line end begins, and where a line ends.
    let begins = |end: usize| {
        let from = end.saturating_sub(COLUMNS_BYTES_MAX).max(floor);
        let line = memchr::memrchr(b'\n', &text[from..end]).map(|n| from + n + 1);
        line.or((from == floor).then_some(floor))
    };
    let ends = |from: usize| {
        let rest = &text[from..ceil.min(from + COLUMNS_BYTES_MAX)];
        let line = memchr::memchr(b'\n', rest).map(|n| from + n);
        line.or((from + rest.len() == ceil).then_some(ceil))
    };
    let words = |from: usize| {
        let end = ends(from)?;
        let words = words_of(text, from, end);
        (!words.is_empty()).then_some((words, end))
    };
    let first = begins(at).and_then(|start| Some((start, words(start)?)));
    let Some((mut start, (first, mut end))) = first else {
        // Nothing else in its line is looked at again.
        return ends(at).unwrap_or(at).max(at + 1);
    };
    let mut lines = vec![first];
    while start > floor
        && lines.len() < LINES_MAX
        && let Some((before, (above, _))) = begins(start - 1).and_then(|s| Some((s, words(s)?)))
    {
        lines.push(above);
        start = before;
    }
    lines.reverse();
    while end < ceil
        && lines.len() < LINES_MAX
        && let Some((below, to)) = words(end + 1)
    {
        lines.push(below);
        end = to;
    }
    for form in FORMS {
        let shown = form
            .with_offset(text, &lines)
            .or_else(|| form.bare(text, &lines));
        if let Some(shown) = shown {
            emit_words(node, cell, form, &shown, spawn);
        }
    }
    // A value may lie over the end of a part.
    let done = match lines.len() {
        LINES_MAX => lines[LINES_MAX - LINES_AGAIN][0].start as usize,
        _ => end,
    };
    done.max(at + 1)
}

/// Words of hexadecimal digits between blanks, of which the first may have a colon behind it.
fn words_of(text: &[u8], from: usize, end: usize) -> Words {
    let mut words = Words::new();
    let mut at = from;
    loop {
        let rest = &text[at..end];
        let blanks = rest.iter().take(COLUMN_GAP_MAX + 1);
        let blanks = blanks.take_while(|b| matches!(b, b' ' | b'\t')).count();
        let len = rest[blanks..]
            .iter()
            .take(COLUMN_BYTES_MAX + 1)
            .take_while(|b| b.is_ascii_hexdigit())
            .count();
        let next = at + blanks + len;
        let offset = words.is_empty() && text[..end].get(next) == Some(&b':');
        let next_at = next + usize::from(offset);
        let whole = text[..end].get(next_at).is_none_or(u8::is_ascii_whitespace);
        let apart = blanks > 0 || words.is_empty();
        if !apart || blanks > COLUMN_GAP_MAX || !(1..=COLUMN_BYTES_MAX).contains(&len) || !whole {
            return words;
        }
        words.push(Span::new(at + blanks, next));
        at = next_at;
    }
}

/// How a word is written.
#[derive(Clone, Copy, Debug)]
struct Form {
    base: u32,
    /// How many digits each has; of one to three where there is none.
    digits: usize,
    /// How many bytes each stands for.
    bytes: usize,
    /// Whether the first byte is the lowest.
    little: bool,
}

const FORMS: [Form; 11] = {
    const fn form(base: u32, digits: usize, bytes: usize, little: bool) -> Form {
        Form {
            base,
            digits,
            bytes,
            little,
        }
    }
    [
        form(16, 2, 1, false),
        form(16, 4, 2, false),
        form(16, 4, 2, true),
        form(16, 8, 4, false),
        form(16, 8, 4, true),
        form(16, 16, 8, true),
        form(8, 3, 1, false),
        form(8, 6, 2, true),
        form(10, 0, 1, false),
        form(10, 5, 2, true),
        form(2, 8, 1, false),
    ]
};

/// The bytes of a word, and where it stands.
type Shown = (SmallVec<[u8; 8]>, Span);

impl Form {
    fn read(self, text: &[u8], word: Span) -> Option<Shown> {
        let digits = &text[word.range()];
        let whole = match self.digits {
            0 => digits.len() <= 3,
            len => digits.len() == len,
        };
        let digits = std::str::from_utf8(digits).ok().filter(|_| whole)?;
        let number = u64::from_str_radix(digits, self.base).ok()?;
        let bytes = number.to_le_bytes();
        let (bytes, above) = bytes.split_at(self.bytes);
        let mut bytes = SmallVec::from_slice(bytes);
        if !self.little {
            bytes.reverse();
        }
        above.iter().all(|b| *b == 0).then_some((bytes, word))
    }

    /// The words of a line, up to one of another form: what follows shows the same bytes as characters.
    fn line(self, text: &[u8], words: &[Span]) -> Vec<Shown> {
        words
            .iter()
            .map_while(|word| self.read(text, *word))
            .collect()
    }

    /// Behind offsets that count the bytes, in the base that they are in.
    fn with_offset(self, text: &[u8], lines: &[Words]) -> Option<Vec<Shown>> {
        // Words as they are read stand behind offsets for the reader of such dumps.
        if self.base == 16 && !self.little {
            return None;
        }
        let offset = |line: &Words, base: u32| {
            let first = line.first().filter(|word| (4..=16).contains(&word.len()))?;
            u64::from_str_radix(std::str::from_utf8(&text[first.range()]).ok()?, base).ok()
        };
        [16, 8, 10].into_iter().find_map(|base| {
            let mut shown = Vec::new();
            let mut expected = offset(lines.first()?, base)?;
            for line in lines {
                if offset(line, base)? != expected {
                    return None;
                }
                let words = self.line(text, &line[1..]);
                expected = expected.checked_add((words.len() * self.bytes) as u64)?;
                shown.extend(words);
            }
            let bytes = self.text_in(&shown)?;
            (bytes.len() >= CODES_MIN).then_some(shown)
        })
    }

    /// Without.
    fn bare(self, text: &[u8], lines: &[Words]) -> Option<Vec<Shown>> {
        let all = lines.iter().flatten();
        let shown = all
            .map(|word| self.read(text, *word))
            .collect::<Option<Vec<_>>>()?;
        let bytes = self.text_in(&shown)?;
        let codes: Vec<Code> = bytes
            .iter()
            .map(|b| (u32::from(*b), Span::default()))
            .collect();
        (codes.len() >= BARE_CODES_MIN && telling(&codes)).then_some(shown)
    }

    /// The bytes, if nearly all are text. The last word may be filled up with zeros.
    fn text_in(self, shown: &[Shown]) -> Option<Vec<u8>> {
        let mut bytes: Vec<u8> = shown.iter().flat_map(|(bytes, _)| bytes).copied().collect();
        let zeros = bytes
            .iter()
            .rev()
            .take(self.bytes - 1)
            .take_while(|b| **b == 0);
        bytes.truncate(bytes.len() - zeros.count());
        let text = bytes
            .iter()
            .filter(|b| printable(**b) || **b >= 0x80)
            .count();
        (text * 10 >= bytes.len() * 9).then_some(bytes)
    }
}

fn emit_words(node: &Node, cell: &Cell, form: Form, shown: &[Shown], spawn: &mut Spawner<'_>) {
    let (Some((_, first)), Some((_, last))) = (shown.first(), shown.last()) else {
        return;
    };
    let layer = match form.base {
        16 => Layer::Hex,
        _ => Layer::Codes,
    };
    let place = (first.start as usize, last.end as usize);
    child_around(node, cell, layer, place, spawn, |child| {
        child.push(b" ", Span::new(place.0, place.0 + 1), How::Atom);
        for (bytes, word) in shown {
            let shown = bytes.iter().filter(|b| **b != 0);
            let shown: SmallVec<[u8; 8]> = shown
                .map(|b| if b.is_ascii() { *b } else { b'.' })
                .collect();
            child.push(&shown, *word, How::Atom);
        }
        child.push(b" ", Span::new(place.1 - 1, place.1), How::Atom);
    });
}

/// `00000010: 6768 705f 5a71 376b  ghp_Zq7k`, line by line.
fn dumps(node: &Node, ends: &Ends, spawn: &mut Spawner<'_>) {
    let (mut index, mut at) = (0, 0);
    while let Some(n) = node.text.get(at..).and_then(|t| ZEROS.find(t)) {
        at += n;
        match node.cell_from(at, &mut index) {
            Some(cell) => {
                if cell.span.len() >= 32 {
                    dump(node, cell, ends.within(cell.span), spawn);
                }
                at = cell.span.end as usize;
            }
            None => at += 1,
        }
    }
}

/// Offsets begin with it.
static ZEROS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"0000"));

fn dump(node: &Node, cell: &Cell, ends: &[u32], spawn: &mut Spawner<'_>) {
    let base = cell.span.start as usize;
    let text = &node.text[cell.span.range()];
    let mut rows: Vec<(Vec<u8>, Span)> = Vec::new();
    let mut expected = None;
    let mut at = 0;
    let ends = ends.iter().map(|end| *end as usize - base + 1);
    // Nothing goes on behind the last line.
    for end in ends.chain([text.len(), text.len()]) {
        let line = &text[at..end];
        let read = dump_line(line);
        let goes_on = matches!((&read, expected), (Some((offset, ..)), Some(e)) if *offset == e);
        if !goes_on && !rows.is_empty() {
            emit_dump(node, cell, &rows, spawn);
            rows.clear();
        }
        expected = None;
        if let Some((offset, bytes, from)) = read {
            expected = offset.checked_add(bytes.len() as u64);
            let bare = at + line.trim_ascii_end().len();
            rows.push((bytes, Span::new(base + at + from, base + bare)));
        }
        at = end;
    }
}

/// The offset that a line of a dump begins with, the bytes after it, and where the offset begins. Before the first
/// line there may be something else, as in `token = '00000000  67 68`.
fn dump_line(line: &[u8]) -> Option<(u64, Vec<u8>, usize)> {
    let digits = |from: usize| {
        let rest = line[from..].iter().take(17);
        rest.take_while(|b| b.is_ascii_hexdigit()).count()
    };
    let mut start = 0;
    if digits(0) < 4 {
        start = ZEROS.find(line)?;
        if start > 0 && line[start - 1].is_ascii_alphanumeric() {
            return None;
        }
    }
    let len = digits(start);
    if !(4..=16).contains(&len) {
        return None;
    }
    let mut at = start + len;
    let offset = u64::from_str_radix(std::str::from_utf8(&line[start..at]).ok()?, 16).ok()?;
    at += usize::from(line.get(at) == Some(&b':'));
    let mut bytes = Vec::new();
    while bytes.len() < LINE_BYTES_MAX {
        let blanks = line[at..]
            .iter()
            .take(4)
            .take_while(|b| **b == b' ')
            .count();
        if blanks == 0 || blanks > 2 {
            break;
        }
        let len = digits(at + blanks);
        let word = &line[at + blanks..][..len];
        let whole = !line
            .get(at + blanks + len)
            .is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':' | b'.' | b'_'));
        if !(2..=16).contains(&len) || !len.is_multiple_of(2) || !whole {
            break;
        }
        for pair in word.chunks(2) {
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or_default() as u8;
            bytes.push(digit(pair[0]) << 4 | digit(pair[1]));
        }
        at += blanks + len;
    }
    (!bytes.is_empty() && bytes.len() <= LINE_BYTES_MAX).then_some((offset, bytes, start))
}

fn emit_dump(node: &Node, cell: &Cell, rows: &[(Vec<u8>, Span)], spawn: &mut Spawner<'_>) {
    let bytes: Vec<u8> = rows.iter().flat_map(|(bytes, _)| bytes).copied().collect();
    let text = bytes
        .iter()
        .filter(|b| printable(**b) || **b >= 0x80)
        .count();
    let (Some((_, first)), Some((_, last))) = (rows.first(), rows.last()) else {
        return;
    };
    if bytes.len() < CODES_MIN || text * 10 < bytes.len() * 9 {
        return;
    }
    let utf8 = std::str::from_utf8(&bytes).is_ok();
    let place = (first.start as usize, last.end as usize);
    child_around(node, cell, Layer::Hex, place, spawn, |child| {
        for (bytes, span) in rows {
            let shown = bytes
                .iter()
                .map(|b| if utf8 || b.is_ascii() { *b } else { b'.' });
            child.push(&shown.collect::<Vec<u8>>(), *span, How::Atom);
        }
        child.push(b" ", Span::new(place.1 - 1, place.1), How::Atom);
    });
}

#[cfg(test)]
mod tests {
    use super::LINES_MAX;
    use crate::Layer;
    use crate::decode::tests::children;

    const TEXT: &[u8] = b"password=hunter2! and more of it";

    /// Lines of sixteen bytes, in words of `bytes` each.
    fn lines(
        bytes: usize,
        offset: impl Fn(usize) -> String,
        word: impl Fn(&[u8]) -> String,
    ) -> String {
        let line = |(nth, line): (usize, &[u8])| {
            let words: String = line.chunks(bytes).map(&word).collect();
            format!("{}{words}\n", offset(16 * nth))
        };
        let shown: String = TEXT.chunks(16).enumerate().map(line).collect();
        format!("$ show\n{shown}{}\n$ ", offset(TEXT.len()))
    }

    #[test]
    fn columns_in_every_form_are_read() {
        let number = |b: &[u8]| b.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let octal = |at: usize| format!("{at:07o}");
        let hex = |at: usize| format!("{at:07x}");
        let none = |_: usize| String::new();
        let cases = [
            ("od", lines(2, octal, |b| format!(" {:06o}", number(b)))),
            ("od -x", lines(2, octal, |b| format!(" {:04x}", number(b)))),
            ("od -b", lines(1, octal, |b| format!(" {:03o}", b[0]))),
            (
                "od -tx4",
                lines(4, octal, |b| format!(" {:08x}", number(b))),
            ),
            (
                "od -tx8",
                lines(8, octal, |b| format!(" {:016x}", number(b))),
            ),
            ("od -tu1", lines(1, octal, |b| format!(" {:4}", b[0]))),
            ("hexdump", lines(2, hex, |b| format!(" {:04x}", number(b)))),
            (
                "hexdump -x",
                lines(2, hex, |b| format!("    {:04x}", number(b))),
            ),
            (
                "hexdump -d",
                lines(2, hex, |b| format!("   {:05}", number(b))),
            ),
            ("hexdump -b", lines(1, hex, |b| format!(" {:03o}", b[0]))),
            ("od -An -tx1", lines(1, none, |b| format!(" {:02x}", b[0]))),
            (
                "od -An -tx4",
                lines(4, none, |b| format!(" {:08x}", number(b))),
            ),
            ("od -An -tu1", lines(1, none, |b| format!(" {:3}", b[0]))),
            ("od -An -b", lines(1, none, |b| format!(" {:03o}", b[0]))),
            (
                "words",
                lines(2, none, |b| format!("{:02x}{:02x} ", b[0], b[1])),
            ),
            (
                "xxd -b",
                lines(1, |at| format!("{at:08x}:"), |b| format!(" {:08b}", b[0])),
            ),
        ];
        for (name, text) in cases {
            let found = children(&text);
            let hit = found.iter().find(|(layer, child, _)| {
                matches!(layer, Layer::Hex | Layer::Codes)
                    && child.contains("password=hunter2! and more of it")
            });
            let Some((_, child, source)) = hit else {
                let shown: Vec<_> = found.iter().map(|c| (c.0, &c.1)).collect();
                panic!("{name}: {text}: {shown:?}");
            };
            let at = child.find("hunter2!").unwrap();
            let range = source(at, at + 8);
            assert!(range.len() < text.len() / 2, "{name}: {range:?}");
        }
    }

    #[test]
    fn a_value_over_the_end_of_a_part_is_whole_in_one() {
        let word = |text: &str| {
            text.bytes()
                .map(|b| format!(" {b:02x}"))
                .collect::<String>()
        };
        let filler = |lines: usize| format!("{}\n", word("just text")).repeat(lines);
        let value: Vec<String> = ["password", "=hunter2!", " and more"].map(word).to_vec();
        for before in LINES_MAX - 3..LINES_MAX + 1 {
            let text = [filler(before), value.join("\n"), "\n".into(), filler(500)].concat();
            let found = children(&text);
            let whole = |child: &str| child.contains("password=hunter2! and more");
            assert!(found.iter().any(|(_, child, _)| whole(child)), "{before}");
        }
    }

    #[test]
    fn tables_of_numbers_are_left_alone() {
        let cases = [
            "0000000 123456 234567\n0000020 123456 234567\n",
            " 103  14  98  88 120\n  12  55  93  44  71\n 101 102  99  87  54\n",
            "2021 2022 2023 2024\n1001 1002 1003 1004\n3001 3002 3003 3004\n",
            "deadbeef 00c0ffee 8badf00d\ncafebabe feedface 0badcafe\n",
            "10 20 30\n40 50 60\n70 80 90\n11 12 13\n",
        ];
        for text in cases {
            let found = children(text);
            let shown: Vec<_> = found.iter().map(|c| (c.0, &c.1)).collect();
            let decoded = |layer: &Layer| matches!(layer, Layer::Hex | Layer::Codes);
            assert!(found.iter().all(|c| !decoded(&c.0)), "{text}: {shown:?}");
        }
    }
}
