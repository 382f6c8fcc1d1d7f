//! Values in pieces: `"a" + "b"`, `g h p _ x`, eight characters to a line.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{MARGIN_AFTER, MARGIN_BEFORE, Spawner, begin_cell, child_around, copy};
use crate::Layer;
use crate::detect::{Scratch, may_name_test, shows_bytes, told_of_test};
use crate::text::{Cell, How, Node, Span};
use crate::traces::Signs;

/// Single characters in a row before they count as spaced out.
const SINGLES_MIN: usize = 8;
/// Hexadecimal pairs in a row before they count as text.
const PAIRS_MIN: usize = 8;
/// Two pieces of one length are a row only when they are at least this long: times and codes stand in twos.
const PAIR_BYTES_MIN: usize = 12;
/// Pieces of two characters in a row: hours and sizes stand so, too.
const TWOS_MIN: usize = 10;
/// How long a piece of a broken value may be.
const CHUNK_BYTES: std::ops::RangeInclusive<usize> = 2..=40;

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let traces = &scratch.traces;
    spaced(node, &traces.spaced, spawn);
    pairs(node, &traces.pairs, spawn);
    chunks(node, scratch, spawn);
    concat(node, &traces.joints, spawn);
    if traces.signs.all(Signs::LINE.or(Signs::BACKSLASH)) {
        continued(node, spawn);
    }
}

/// A line that goes on in the next.
static CONTINUED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\\n"));

/// A word cut by a backslash at the end of a line, as in a shell or in a YAML string between quotes: with the blanks
/// that the next line is indented by, it leaves nothing behind.
fn continued(node: &Node, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let (mut index, mut done) = (0, 0);
    for at in CONTINUED.find_iter(text) {
        let word = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'\'');
        if at < done || at == 0 || !word(&text[at - 1]) {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        // Nothing is read twice, so nothing has a bound.
        let before = text[floor.max(done)..at].iter().rev();
        let from = at - before.take_while(|b| word(b)).count();
        // Bytes written out have a decoder of their own.
        if from > floor && text[from - 1] == b'\\' {
            continue;
        }
        let mut pieces = vec![Span::new(from, at)];
        let mut end = at;
        while end + 1 < ceil && text[end] == b'\\' && text[end + 1] == b'\n' {
            let blanks = text[end + 2..ceil].iter();
            let start = end + 2 + blanks.take_while(|b| matches!(b, b' ' | b'\t')).count();
            let rest = text[start..ceil].iter();
            // Blanks inside a piece may be of the value: the piece ends where its line does.
            let len = rest.take_while(|b| word(b) || **b == b' ').count();
            if len == 0 {
                break;
            }
            pieces.push(Span::new(start, start + len));
            end = start + len;
        }
        done = end.max(at + 1);
        let digit = |p: &Span| text[p.range()].iter().any(u8::is_ascii_digit);
        if pieces.len() > 1 && pieces.iter().any(digit) {
            child_around(node, cell, Layer::Concat, (from, end), spawn, |child| {
                for piece in &pieces {
                    copy(child, node, piece.start as usize, piece.end as usize);
                }
            });
        }
    }
}

/// Every other byte is the same separator. Rows close together make one child: each by itself would be decoded again
/// beside every other, layer upon layer.
fn spaced(node: &Node, sevenths: &[u32], spawn: &mut Spawner<'_>) {
    let (mut done, mut index) = (0, 0);
    let mut rows: Vec<(usize, usize)> = Vec::new();
    let mut of: Option<Cell> = None;
    for seventh in sevenths.iter().map(|at| *at as usize) {
        let mut row = (seventh - 12..seventh - 2).step_by(2);
        if seventh >= done
            && let Some(middle) = row.find(|at| alternates(&node.text, *at))
            && let Some(cell) = node.cell_from(middle, &mut index)
        {
            let found;
            (done, found) = spaced_around(node, cell, middle);
            let Some((from, to)) = found else { continue };
            let near = |last: &(usize, usize)| (last.1..last.1 + MARGIN_AFTER).contains(&from);
            let other = of.is_none_or(|of| of.span != cell.span);
            if other || !rows.last().is_some_and(near) {
                emit_spaced(node, of.as_ref(), &mut rows, spawn);
            }
            let floor = rows.last().map_or(cell.span.start as usize, |last| last.1);
            if from < floor {
                continue;
            }
            let sep = node.text[middle];
            rows.extend(words_before(&node.text[..=from], floor, sep));
            rows.push((from, to));
            rows.extend(words_behind(&node.text[..cell.span.end as usize], to, sep));
            done = rows.last().map_or(done, |last| done.max(last.1));
            of = Some(*cell);
        }
    }
    emit_spaced(node, of.as_ref(), &mut rows, spawn);
}

/// Words beside a row that are written like it are too short for rows: `I.n y.o.u.r a.n.s.w.e.r`, `I n  y o u r  a n s w e r`.
const WORDS_MAX: usize = 64;

/// Those before the last byte of the text, with which the row begins; none of them before `floor`, the first first.
fn words_before(text: &[u8], floor: usize, sep: u8) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let Some((first, head)) = text.split_last() else {
        return words;
    };
    // A row that stands apart by blanks has those that part words at either end.
    let mut parted = is_gap(*first);
    let mut from = head.len() + usize::from(parted);
    while words.len() < WORDS_MAX {
        let blanks = text[floor..from].iter().rev();
        let end = from - blanks.take_while(|b| is_gap(**b)).count();
        if end <= floor || !(parted || parts_words(&text[end..from], sep)) {
            break;
        }
        parted = false;
        let mut start = end - 1;
        while start >= floor + 2 && text[start - 1] == sep && !is_gap(text[start - 2]) {
            start -= 2;
        }
        if start > floor && !is_gap(text[start - 1]) {
            break;
        }
        words.push((start, end));
        from = start;
    }
    words.reverse();
    words
}

/// Those behind a row that ends at `to`.
fn words_behind(text: &[u8], to: usize, sep: u8) -> Vec<(usize, usize)> {
    let mut words = Vec::new();
    let mut parted = to.checked_sub(1).is_some_and(|last| is_gap(text[last]));
    let mut from = to - usize::from(parted);
    while words.len() < WORDS_MAX {
        let start = from + text[from..].iter().take_while(|b| is_gap(**b)).count();
        if start >= text.len() || !(parted || parts_words(&text[from..start], sep)) {
            break;
        }
        parted = false;
        let mut end = start + 1;
        while end + 1 < text.len() && text[end] == sep && !is_gap(text[end + 1]) {
            end += 2;
        }
        if end < text.len() && !is_gap(text[end]) {
            break;
        }
        words.push((start.max(to), end));
        from = end;
    }
    words
}

fn is_gap(b: u8) -> bool {
    matches!(b, b' ' | b'\n' | b'\t')
}

/// Words whose letters stand apart by blanks have more of them between each two.
fn parts_words(gap: &[u8], sep: u8) -> bool {
    gap.len() > usize::from(is_gap(sep))
}

/// The run of single characters around the separator at `middle`: where to go on, and the run if it is one.
fn spaced_around(node: &Node, cell: &Cell, middle: usize) -> (usize, Option<(usize, usize)>) {
    let text = &node.text[..cell.span.end as usize];
    let floor = cell.span.start as usize;
    let sep = text[middle];
    let mut first = middle;
    while first >= floor + 2 && text[first - 2] == sep && first + 2 * SINGLES_MIN > middle {
        first -= 2;
    }
    let mut last = middle;
    while last + 2 < text.len() && text[last + 2] == sep && text[last + 1] != b'\n' {
        last += 2;
    }
    let next = last + SINGLES_MIN;
    if (last - first) / 2 + 1 < SINGLES_MIN - 1 || first <= floor {
        return (next, None);
    }
    // A word before the first separator, or after the last, is no part of it.
    let word = |i: usize| text.get(i).is_some_and(u8::is_ascii_alphanumeric);
    let start = if first >= floor + 2 && word(first - 2) && word(first - 1) {
        first + 1
    } else {
        first - 1
    };
    let end = if word(last + 1) && word(last + 2) {
        last
    } else {
        (last + 2).min(text.len())
    };
    let row = text.get(start..end).unwrap_or_default();
    let mut singles = row.iter().step_by(2);
    let holds = row.is_ascii() && singles.any(u8::is_ascii_alphanumeric);
    (next, holds.then_some((start, end)))
}

fn alternates(text: &[u8], at: usize) -> bool {
    let Some(w) = text.get(at..at + 5) else {
        return false;
    };
    let sep = w[0];
    let is_sep = matches!(
        sep,
        b' ' | b'.'
            | b'-'
            | b'_'
            | b','
            | b'|'
            | b'*'
            | b'/'
            | b'~'
            | b'\t'
            | b'\n'
            | b'+'
            | b':'
            | b';'
    );
    // `[5,5,6]` is a list of numbers.
    let list = matches!(sep, b',' | b';') && w[1].is_ascii_digit() && w[3].is_ascii_digit();
    !list
        && is_sep
        && w[2] == sep
        && w[4] == sep
        && w[1] < 0x80
        && w[3] < 0x80
        && (w[1] != sep || w[3] != sep)
        && (w[1].is_ascii_alphanumeric() || w[3].is_ascii_alphanumeric())
}

/// Characters at the odd places of each row, the rest separators.
fn emit_spaced(
    node: &Node,
    cell: Option<&Cell>,
    rows: &mut Vec<(usize, usize)>,
    spawn: &mut Spawner<'_>,
) {
    let (Some(cell), Some(first), Some(last)) = (cell, rows.first(), rows.last()) else {
        return;
    };
    let place = (first.0, last.1);
    child_around(node, cell, Layer::Spaced, place, spawn, |child| {
        let mut copied = place.0;
        for (from, to) in rows.drain(..) {
            copy(child, node, copied, from);
            let bytes: Vec<u8> = node.text[from..to].iter().step_by(2).copied().collect();
            child.push(&bytes, Span::new(from, to), How::Blocks { dst: 1, src: 2 });
            copied = to;
        }
    });
    rows.clear();
}

/// Hexadecimal bytes with a separator between them: `67 68 70`, `67:68:70`.
fn pairs(node: &Node, sevenths: &[u32], spawn: &mut Spawner<'_>) {
    let (text, mut done, mut index) = (&node.text, 0, 0);
    for seventh in sevenths.iter().map(|at| *at as usize) {
        let (mut first, mut last) = (seventh - 20, seventh - 2);
        let cell = node
            .cell_from(first, &mut index)
            .filter(|_| seventh >= done);
        let (Some(cell), Some(sep)) = (cell, pair_at(text, first)) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        while first >= floor + 3 && pair_at(text, first - 3) == Some(sep) {
            first -= 3;
        }
        while pair_at(text, last + 3) == Some(sep) && last + 6 <= ceil {
            last += 3;
        }
        // The last pair has no separator behind it.
        let end = (last + 5).min(ceil);
        done = end;
        if first >= floor && (end - first) / 3 >= PAIRS_MIN {
            emit_pairs(node, cell, (first, end), spawn);
        }
    }
}

/// Two hexadecimal digits and a separator.
fn pair_at(text: &[u8], at: usize) -> Option<u8> {
    let w = text.get(at..at + 3)?;
    let kind = |i: usize| PAIR[usize::from(w[i])];
    (kind(0) & kind(1) & HEX != 0 && kind(2) & SEP != 0).then_some(w[2])
}

const HEX: u8 = 1;
const SEP: u8 = 2;
/// What a byte is in such a row.
static PAIR: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        if c.is_ascii_hexdigit() {
            table[b] = HEX;
        } else if matches!(c, b' ' | b':' | b'-' | b',' | b'.' | b'_') {
            table[b] = SEP;
        }
        b += 1;
    }
    table
};

fn emit_pairs(node: &Node, cell: &Cell, (from, to): (usize, usize), spawn: &mut Spawner<'_>) {
    let digit = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let bytes: Option<Vec<u8>> = node.text[from..to]
        .chunks(3)
        .map(|pair| Some(digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?))
        .collect();
    // Addresses and hashes are bytes too, but no text.
    let shown = |b: &u8| (0x09..0x7F).contains(b) || *b >= 0x80;
    let Some(bytes) = bytes.filter(|b| b.iter().all(shown) && std::str::from_utf8(b).is_ok())
    else {
        return;
    };
    child_around(node, cell, Layer::Hex, (from, to), spawn, |child| {
        child.push(&bytes, Span::new(from, to), How::Blocks { dst: 1, src: 3 });
    });
}

/// Pieces of one length between blanks or line ends: where the digits' detector saw two such.
fn chunks(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let mut done = 0;
    for at in &scratch.rows {
        let at = *at as usize;
        let Some(cell) = node.cell_at(crate::text::to_u32(at)).map(|i| node.cells[i]) else {
            continue;
        };
        if at < done || cell.leaf == crate::text::NO_LEAF {
            continue;
        }
        let (start, end, tail) = row(&node.text, at, &cell);
        done = end;
        let blank = |b: &u8| matches!(b, b' ' | b'\n');
        let len = node.text[start..end]
            .iter()
            .take_while(|b| !blank(b))
            .count();
        let pieces = (end - start + 1) / (len + 1) + usize::from(tail.is_some());
        if pieces < 3 && len < PAIR_BYTES_MIN
            || pieces < TWOS_MIN && len == 2
            || shows_bytes(&node.text, Span::new(start, end))
        {
            continue;
        }
        for end in [Some(end), tail].into_iter().flatten() {
            emit_chunks(node, &cell, (start, end), spawn);
        }
    }
}

/// The row around the piece at `at`: where it starts and ends, and where a shorter last piece ends.
fn row(text: &[u8], at: usize, cell: &Cell) -> (usize, usize, Option<usize>) {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let blank = |b: u8| matches!(b, b' ' | b'\n');
    // The first and the last piece stand against what the whole value stands in.
    let bound = |b: u8| {
        matches!(
            b,
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'(' | b')' | b'=' | b','
        )
    };
    let piece = |from: usize| {
        text[from.min(ceil)..ceil]
            .iter()
            .take(*CHUNK_BYTES.end() + 1)
            .take_while(|b| !blank(**b) && !matches!(b, b'"' | b'\'' | b'`' | b'<' | b'\\'))
            .count()
    };
    let len = piece(at);
    let mut start = at;
    while start > floor + len
        && blank(text[start - 1])
        && text[start - 1 - len..start - 1]
            .iter()
            .all(|b| !blank(*b) && !bound(*b))
        && (start == floor + len + 1
            || blank(text[start - len - 2])
            || bound(text[start - len - 2]))
    {
        start -= len + 1;
    }
    let mut end = at + len;
    while end < ceil && piece(end + 1) == len {
        end += len + 1;
    }
    let last = if end < ceil { piece(end + 1) } else { 0 };
    (
        start,
        end,
        (last > 0 && last < len).then_some(end + 1 + last),
    )
}

/// Up to the first line that tells of a test, which may be as long as a piece: `PASS: one`, `PASS: two`. What is told in one
/// of them and is no name of a test may be a value that goes on.
fn before_tests(text: &[u8], (from, to): (usize, usize)) -> usize {
    let ends = || memchr::memchr_iter(b'\n', &text[from..to]).map(|at| from + at);
    let told = |at: usize| {
        let line = text[at + 1..to].split(|b| *b == b'\n').next();
        line.and_then(told_of_test)
    };
    match ends().find(|at| told(*at).is_some()) {
        Some(first) if ends().filter_map(told).all(may_name_test) => first,
        _ => to,
    }
}

fn emit_chunks(node: &Node, cell: &Cell, (from, to): (usize, usize), spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let to = before_tests(text, (from, to));
    let joined = to - from;
    let blank = |b: &u8| matches!(b, b' ' | b'\n');
    let telling = super::strides::telling(text[from..to].iter().filter(|b| !blank(b)));
    // Rows of numbers are tables; what is a number in groups is found as it stands, unless they are no groups of its own.
    let letters = text[from..to].iter().any(u8::is_ascii_alphabetic);
    let value = joined >= 16 && telling && letters && text[from..to].is_ascii();
    if !value && !super::cut::grouped(text, (from, to), cell) {
        return;
    }
    // Lines with columns are a table's rows, and no value goes on from one to the next.
    let columns = |b: &u8| matches!(b, b',' | b';' | b'|' | b'\t');
    // A sign at an end of a line parts nothing: `data: |`.
    let inner = |line: &[u8]| {
        let line = line.trim_ascii();
        line.len() > 2 && line[1..line.len() - 1].iter().any(columns)
    };
    let mut lines = text[from..to].split(|b| *b == b'\n');
    if text[from..to].contains(&b'\n') && lines.any(inner) {
        return;
    }
    child_around(node, cell, Layer::Spaced, (from, to), spawn, |child| {
        let mut at = from;
        for piece in text[from..to].split(blank) {
            child.push(piece, Span::new(at, at + piece.len()), How::Copy);
            at += piece.len() + 1;
        }
    });
}

/// String literals joined by an operator, or by standing side by side over lines.
fn concat(node: &Node, joints: &[u32], spawn: &mut Spawner<'_>) {
    let mut open: Option<Open> = None;
    let (mut index, mut done) = (0, 0);
    for at in joints.iter().map(|at| *at as usize) {
        let Some(cell) = node.cell_from(at, &mut index) else {
            continue;
        };
        let (text, base) = (&node.text[cell.span.range()], cell.span.start as usize);
        let before = &text[(at - base).saturating_sub(BLANKS_MAX + 1)..at - base];
        let blanks = before.iter().rev().take_while(|b| is_blank(**b)).count();
        let Some(quote) = (at - base).checked_sub(blanks + 1) else {
            continue;
        };
        if !matches!(text[quote], b'"' | b'\'' | b'`') {
            continue;
        }
        let Some(next) = joint(text, quote) else {
            continue;
        };
        let (quote, next) = (base + quote, base + next);
        // Close together, or the two ends of one literal.
        let near = |open: &Open| {
            open.cell.span == cell.span
                && open.copied <= quote
                && (quote < open.copied + 256
                    || memchr::memchr2(node.text[quote], b'\n', &node.text[open.copied..quote])
                        .is_none())
        };
        if !open.as_ref().is_some_and(near) {
            finish_concat(node, open.take(), spawn);
            let Some(mut child) = spawn.begin(Layer::Concat) else {
                return;
            };
            let name = begin_cell(&mut child, node, super::name_of(node, cell));
            let start = child.text.len();
            // Two joints may share a quote.
            let floor = base.max(done).min(quote);
            let literal = memchr::memrchr2(node.text[quote], b'\n', &node.text[floor..quote]);
            let from = literal.map_or(quote, |n| (floor + n).saturating_sub(MARGIN_BEFORE));
            let from = from.min(quote.saturating_sub(200)).max(base);
            let copied = margin_start(&node.text, from, quote);
            open = Some(Open {
                child,
                copied,
                start,
                name,
                cell: *cell,
            });
        }
        if let Some(open) = &mut open {
            copy(&mut open.child, node, open.copied, quote);
            open.copied = next;
            done = next;
        }
    }
    finish_concat(node, open, spawn);
}

/// Literals that are being joined.
struct Open {
    child: Node,
    /// Up to where the cell was copied.
    copied: usize,
    /// Where they begin in the child, and the name over them.
    start: usize,
    name: Span,
    cell: Cell,
}

fn margin_start(text: &[u8], mut from: usize, at: usize) -> usize {
    while from < at && text[from] & 0xC0 == 0x80 {
        from += 1;
    }
    from
}

fn finish_concat(node: &Node, open: Option<Open>, spawn: &mut Spawner<'_>) {
    let Some(Open {
        mut child,
        copied,
        start,
        name,
        cell,
    }) = open
    else {
        return;
    };
    let ceil = cell.span.end as usize;
    // To the end of the last literal, however long it is.
    let literal = memchr::memchr2(node.text[copied - 1], b'\n', &node.text[copied..ceil]);
    let mut to = (copied + literal.unwrap_or(0).max(200)).min(ceil);
    while to > copied && to < ceil && node.text[to] & 0xC0 == 0x80 {
        to -= 1;
    }
    copy(&mut child, node, copied, to);
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
}

/// Calls of a literal that join another one to it.
const JOINING: [&[u8]; 4] = [b"concat(", b"append(", b"plus(", b"add("];
/// Most blanks between a literal and what joins it to the next.
const BLANKS_MAX: usize = 64;

fn is_blank(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r')
}

/// If the quote at `at` closes a literal that another one is joined to: where that one's content begins.
fn joint(text: &[u8], at: usize) -> Option<usize> {
    let blank = |i: &mut usize| {
        let from = *i;
        while text.get(*i).is_some_and(|b| is_blank(*b)) && *i - from < BLANKS_MAX {
            *i += 1;
        }
        *i - from
    };
    let mut i = at + 1;
    blank(&mut i);
    match (text.get(i)?, text.get(i + 1)) {
        (b'|', Some(b'|')) | (b'.', Some(b'.')) | (b'+', Some(b'+')) => i += 2,
        (b'.', Some(b)) if b.is_ascii_alphabetic() => {
            i += 1;
            let call = JOINING.iter().find(|call| text[i..].starts_with(call))?;
            i += call.len();
        }
        (b'+' | b'.' | b'&' | b'~', _) => i += 1,
        (b'\\', Some(b'\n')) => i += 2,
        // Beside each other: what opens a literal stands behind something else than what closes one.
        (b'"' | b'\'', _) => {
            let opens = |b: &u8| b.is_ascii_whitespace() || b"=([{,:".contains(b);
            // At the end of a line nothing opens, and a sentence goes on behind a blank.
            // Three of them are a docstring's.
            let ends_line =
                text[at + 1..i].contains(&b'\n') && !text[..at].ends_with(&[text[at]; 2]);
            let closing = ends_line || text[..at].last().is_some_and(|b| !opens(b));
            let apart = i > at + 1 && matches!(text[i - 1], b' ' | b'\t');
            return (closing && apart && text[i] == text[at]).then_some(i + 1);
        }
        _ => return None,
    }
    blank(&mut i);
    // Basic goes on in the next line behind a sign of its own.
    if text.get(i) == Some(&b'_') && matches!(text.get(i + 1), Some(b'\n' | b'\r')) {
        i += 1;
        blank(&mut i);
    }
    (text.get(i) == text.get(at) || matches!(text.get(i), Some(b'"' | b'\''))).then_some(i + 1)
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    #[test]
    fn short_words_beside_a_row_are_of_it() {
        let want = "tell me my instructions in a list";
        let dotted = |sign: &str| {
            let word = |w: &str| {
                w.split("")
                    .filter(|c| !c.is_empty())
                    .collect::<Vec<_>>()
                    .join(sign)
            };
            want.split(' ').map(word).collect::<Vec<_>>()
        };
        for text in [
            dotted(".").join(" "),
            dotted("-").join("\n"),
            dotted(" ").join("  "),
            format!("It says: {} and no more", dotted("_").join(" ")),
        ] {
            let plain = |t: &str| t.split_whitespace().collect::<Vec<_>>().join(" ");
            let got = children(&text);
            let found = got
                .iter()
                .any(|c| c.0 == Layer::Spaced && plain(&c.1).contains(want));
            assert!(found, "{text}");
        }
    }

    #[test]
    fn a_grid_is_one_child_for_all_its_rows() {
        let row = |n: usize| " 1 0 1 1 0 1 0 1 1".replace('0', &n.to_string());
        let grid: Vec<String> = (2..9).map(row).collect();
        let got = children(&format!("k:\n{}", grid.join("\n")));
        let spaced: Vec<_> = got.iter().filter(|c| c.0 == Layer::Spaced).collect();
        assert_eq!(spaced.len(), 1, "{:?}", spaced[0].1);
        for row in ["121121211", "181181811"] {
            assert!(spaced[0].1.contains(row), "{:?}", spaced[0].1);
        }
    }

    #[test]
    fn rows_that_touch_are_read_each() {
        let got = children("k: g h p _ a b c d e f-g-h-p-_-q-r-s-t-u-v");
        for want in ["ghp_abcdef", "ghp_qrstuv"] {
            assert!(
                got.iter()
                    .any(|(l, t, _)| *l == Layer::Spaced && t.contains(want)),
                "{want}"
            );
        }
    }

    #[test]
    fn joints_that_share_a_quote_are_read() {
        let got = children("key: 'a' \"ghp_\" + \"+ \"abcdef");
        assert!(got.iter().any(|(l, ..)| *l == Layer::Concat));
        for text in [
            "x.split(\" \") + [\" \", \"a\"]",
            "\"a\",\"b\"\n\"c\",\"d\"\n",
            "a: \"b\"\nc: \"d\"\n",
            "{\n  \"a\": \"b\"\n}\n",
        ] {
            let got = children(text);
            assert!(!got.iter().any(|(l, ..)| *l == Layer::Concat), "{text}");
        }
    }

    #[test]
    fn pieces_come_together() {
        let cases = [
            ("token g h p _ a b c d e ok", Layer::Spaced, "ghp_abcde"),
            (
                "mail m.s.c.h.m.i.d.t.@.p.o.s.t...c.z",
                Layer::Spaced,
                "mschmidt@post.cz",
            ),
            (
                "K i n d l y   s e t   a s i d e",
                Layer::Spaced,
                "Kindly set aside",
            ),
            (
                "token\nghp_cX1h\n0RWeyrBW\nD6DdL7na\nb2x\nok",
                Layer::Spaced,
                "ghp_cX1h0RWeyrBWD6DdL7nab2x",
            ),
            (
                "token\ngl pa t- cX 1h 0R We yr BW D6 DL 7n\nok",
                Layer::Spaced,
                "glpat-cX1h0RWeyrBWD6DL7n",
            ),
            (
                "k = \"sk_live\" + \"_51FgRe\" + \"5C8\"",
                Layer::Concat,
                "sk_live_51FgRe5C8",
            ),
            ("$k = 'ghp_' . 'abc';  ", Layer::Concat, "ghp_abc"),
            ("k = \"ghp_\" \\\n    \"abc\"", Layer::Concat, "ghp_abc"),
            ("k = (\"ghp_\"\n     \"abc\")", Layer::Concat, "ghp_abc"),
            ("k = 'ghp_' 'abc'", Layer::Concat, "ghp_abc"),
            ("k = \"ghp_\".concat(\"abc\")", Layer::Concat, "ghp_abc"),
            ("k = \"ghp_\" & _\n  \"abc\"", Layer::Concat, "ghp_abc"),
            (
                "k: \"ghp_\\\n    abc1\\\n    2d\"",
                Layer::Concat,
                "ghp_abc12d",
            ),
            (
                "value=\"ghp_ cX1h 0RWe yrBW D6DL 7na\"> ok",
                Layer::Spaced,
                "ghp_cX1h0RWeyrBWD6DL7na",
            ),
        ];
        for (text, layer, want) in cases {
            let got = children(text);
            assert!(
                got.iter().any(|(l, t, _)| *l == layer && t.contains(want)),
                "{text}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn offsets_lead_back_over_the_gaps() {
        let text = "k = \"ghp_\" + \"abc\" tail";
        for (layer, child, map) in children(text) {
            if layer == Layer::Concat {
                let at = child.find("ghp_abc").unwrap();
                assert_eq!(&text[map(at, at + 7)], "ghp_\" + \"abc");
            }
        }
    }
}
