//! Identifiers of a fixed shape: found by their digits, told apart by shape, check digits and the words around them.

use super::{Scratch, Sink, context};
use crate::decode::{listed, strides};
use crate::rule::RuleId;
use crate::ruleset::{Kind, Need, Outline, ShapeRef};
use crate::text::{Cell, Span};
use crate::traces::Traces;

/// Most groups in one number.
const GROUPS_MAX: usize = Outline::RUNS_MAX;

/// Every candidate of the node.
pub(super) fn scan(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    if sink.rules.shapes.is_empty() {
        return;
    }
    let mut cell_index = 0;
    let mut at = 0;
    let mut leet = Leet::default();
    let traces = std::mem::take(&mut scratch.traces);
    while let Some(digit) = traces.next_digit(at) {
        at = digit;
        while sink
            .node
            .cells
            .get(cell_index)
            .is_some_and(|c| c.span.end as usize <= at)
        {
            cell_index += 1;
        }
        let Some(cell) = sink.node.cells.get(cell_index).copied() else {
            break;
        };
        if (cell.span.start as usize) > at {
            at += 1;
            continue;
        }
        leet.enter(crate::text::to_u32(cell_index), &cell);
        at = chain(at, &cell, &traces, &mut leet, sink, scratch);
    }
    scratch.traces = traces;
}

/// Cells up to this length are read as a whole where they hold such words.
const LEET_CELL_BYTES: u32 = 16 * 1024;
/// In longer ones, how close together such words have to be, and how far around them is read.
const LEET_NEAR: u32 = 256;

/// Words such as `1gn0r3` in the cell at hand.
struct Leet {
    index: u32,
    cell: Span,
    words: u32,
    /// Where the last ones stand.
    last: [u32; crate::decode::LEET_WORDS_MIN as usize - 1],
}

impl Default for Leet {
    fn default() -> Self {
        Self {
            index: u32::MAX,
            cell: Span::default(),
            words: 0,
            last: Default::default(),
        }
    }
}

impl Leet {
    fn enter(&mut self, index: u32, cell: &Cell) {
        if self.index != index {
            (self.index, self.cell, self.words) = (index, cell.span, 0);
        }
    }

    /// Counts a word if it has digits among letters of lower case.
    fn count(&mut self, text: &[u8], (from, stop): (usize, usize), scratch: &mut Scratch) {
        let word = &text[from..stop];
        let hex = || word.iter().all(u8::is_ascii_hexdigit);
        if !(2..=16).contains(&word.len())
            || word[1..].iter().any(u8::is_ascii_uppercase)
            || word.len() > 6 && hex()
        {
            return;
        }
        if self.cell.end - self.cell.start <= LEET_CELL_BYTES {
            self.words += 1;
            if self.words == crate::decode::LEET_WORDS_MIN {
                scratch.leet.push((self.index, self.cell));
            }
            return;
        }
        // Long texts are full of `sha256` and `x86`: a digit has to stand before a letter.
        let inner = |w: &[u8]| w[0].is_ascii_digit() && w[1].is_ascii_lowercase();
        if !word.windows(2).any(inner) {
            return;
        }
        let at = crate::text::to_u32(from);
        self.words += 1;
        if self.words >= crate::decode::LEET_WORDS_MIN && at - self.last[0] <= LEET_NEAR {
            let around = Span {
                start: on_char(
                    text,
                    self.last[0].saturating_sub(LEET_NEAR).max(self.cell.start),
                ),
                end: on_char(text, (at + LEET_NEAR).min(self.cell.end)),
            };
            match scratch.leet.last_mut() {
                Some((index, place)) if *index == self.index && place.end >= around.start => {
                    place.end = around.end;
                }
                _ => scratch.leet.push((self.index, around)),
            }
        }
        self.last.rotate_left(1);
        self.last[crate::decode::LEET_WORDS_MIN as usize - 2] = at;
    }
}

/// The beginning of the character that the byte is part of.
fn on_char(text: &[u8], mut at: u32) -> u32 {
    while at > 0 && text.get(at as usize).is_some_and(|b| b & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}

/// Is the piece that ends with the group as long as the next one, after a blank or a line end? Broken values look
/// like that.
pub(super) fn note_row(
    text: &[u8],
    (from, stop): (usize, usize),
    cell: &Cell,
    scratch: &mut Scratch,
) {
    const PIECE_MAX: usize = 40;
    if stop - from > PIECE_MAX {
        return;
    }
    let blank = |b: &u8| matches!(b, b' ' | b'\n');
    let floor = (cell.span.start as usize).max(stop.saturating_sub(PIECE_MAX + 1));
    let len = text[floor..from]
        .iter()
        .rev()
        .take_while(|b| !blank(b))
        .count()
        + stop
        - from;
    let after = &text[stop + 1..cell.span.end as usize];
    let ends = after.get(len).is_none_or(blank);
    if (2..=PIECE_MAX).contains(&len)
        && ends
        && after.len() >= len
        && !after[..len].iter().any(blank)
    {
        scratch.rows.push(crate::text::to_u32(stop - len));
    }
}

/// May the group be a piece of a value, or the code of one character, in a row of such? Numbers alone are codes.
pub(super) fn note_pieces(
    text: &[u8],
    traces: &Traces,
    (from, stop): (usize, usize),
    letters: bool,
    cell: &Cell,
    scratch: &mut Scratch,
) {
    let place = (cell.span.start as usize, cell.span.end as usize);
    if stop >= place.1 {
        return;
    }
    let stride = match letters || stop - from == 1 {
        true => strides::stride_at(text, (from, stop), place),
        false => None,
    };
    let coded = stride.is_none() || text[from..].starts_with(b"0x");
    scratch.strides.extend(stride.map(strides::Noted::from));
    if coded && text[from].is_ascii_digit() && listed::row_at(text, traces, (from, stop), place.1) {
        scratch.code_rows.push(crate::text::to_u32(from));
    }
}

/// Looks at the groups joined around the digit at `at`; returns where to go on.
fn chain(
    at: usize,
    cell: &Cell,
    traces: &Traces,
    leet: &mut Leet,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) -> usize {
    let text = sink.text();
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let lettered = sink.rules.lettered;
    let mut start = traces.word_start(at, floor);
    for _ in 0..lettered.lead_max {
        let Some(before) = start
            .checked_sub(1)
            .filter(|s| *s > floor && is_sep(text[*s]) && text[*s - 1].is_ascii_alphabetic())
        else {
            break;
        };
        let left = traces.word_start(before, floor);
        if before - left > lettered.bytes_max {
            break;
        }
        start = left;
    }
    let mut groups = [Group::default(); 12];
    let mut n = 0;
    let mut from = start;
    let mut end = start;
    let mut letters_row = 0;
    while from < ceil && n < groups.len() {
        let (len, digits, letters) = traces.word(from..ceil);
        let stop = from + len;
        letters_row = if digits { 0 } else { letters_row + 1 };
        if len == 0 || (!digits && len > lettered.bytes_max) || letters_row > lettered.row_max {
            break;
        }
        if digits {
            if letters {
                leet.count(text, (from, stop), scratch);
            }
            note_pieces(text, traces, (from, stop), letters, cell, scratch);
            if stop < ceil && matches!(text[stop], b' ' | b'\n') {
                note_row(text, (from, stop), cell, scratch);
            }
        }
        groups[n] = Group {
            from,
            stop,
            digits,
            letters,
        };
        n += 1;
        end = stop;
        let Some(sep) = text[stop..ceil].first().filter(|b| is_sep(**b)) else {
            break;
        };
        let gap = if digits && !letters && len == 4 {
            card_gap(&text[stop..ceil])
        } else {
            1
        };
        let second = text[stop + 1..ceil].first().is_some_and(|b| is_sep(*b));
        if second && gap == 1 && *sep != b')' {
            break;
        }
        from = stop + gap.max(1 + usize::from(second));
    }
    let mut next = end.max(at + 1);
    if n == groups.len() {
        next = groups[n / 2].from.max(at + 1);
    }
    // Too short for any shape.
    if end - start < crate::ruleset::SHAPE_BYTES_MIN {
        return next;
    }
    for first in 0..n {
        if (n == groups.len() && groups[first].from >= next) || !sink.limits.spend(1) {
            break;
        }
        let start = groups[first].from;
        let lead = usize::from(!text[start].is_ascii_digit());
        let mut outline = Outline::default();
        for (nth, group) in groups[first..n].iter().take(GROUPS_MAX).enumerate() {
            let stop = group.stop;
            if stop - start > crate::ruleset::SHAPE_BYTES_MAX {
                break;
            }
            outline = outline.and(stop - group.from, group.digits, group.letters);
            if !sink.rules.outlines.may_have(outline) {
                continue;
            }
            let known = sink.rules.shapes.get(stop - start).map(|s| &s[lead]);
            if let Some(shapes) = known.and_then(|s| s.get(nth + 1))
                && !shapes.is_empty()
                && sink.limits.spend(1)
            {
                shaped((start, stop), outline, shapes, cell, sink, scratch);
            }
        }
    }
    next
}

/// Between the fours of a card number: a dash with blanks, or two blanks.
fn card_gap(text: &[u8]) -> usize {
    [&b" - "[..], b"  "]
        .into_iter()
        .find(|gap| text.starts_with(gap) && text.get(gap.len()).is_some_and(u8::is_ascii_digit))
        .map_or(1, <[u8]>::len)
}

/// Letters and digits in a row.
#[derive(Clone, Copy, Default)]
struct Group {
    from: usize,
    stop: usize,
    digits: bool,
    letters: bool,
}

fn is_sep(b: u8) -> bool {
    matches!(b, b' ' | b'-' | b'.' | b'/' | b'(' | b')')
}

/// Tries the shapes of that length and that many groups.
fn shaped(
    (start, end): (usize, usize),
    outline: Outline,
    shapes: &[ShapeRef],
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) {
    let text = sink.text();
    let value = &text[start..end];
    let mut compacted = false;
    let alike = shapes.iter().filter(|s| s.outline.admits(outline));
    for shape in alike.filter(|s| fits(&s.shape, value)) {
        if !compacted {
            if touched(text, start, end, cell) {
                return;
            }
            crate::check::compact(value, &mut scratch.compact);
            compacted = true;
        }
        for rule in &shape.rules {
            candidate(*rule, Span::new(start, end), cell, sink, scratch);
        }
    }
}

/// A value of the right shape, compacted in `scratch.compact`: the words around it, then its check digits.
fn candidate(rule: RuleId, span: Span, cell: &Cell, sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let compiled = sink.rules.compiled(rule);
    let Kind::Number { need } = compiled.kind else {
        return;
    };
    if !sink.limits.spend(1) {
        return;
    }
    let alone = need == Need::ContextOrAlone && cell.span == span && cell.name.is_empty();
    if need != Need::Nothing && !alone && !context::has(rule, span, cell, sink, scratch) {
        return;
    }
    let value = &sink.text()[span.range()];
    let passes = |c: &crate::check::Check| (c.run)(if c.raw { value } else { &scratch.compact });
    if compiled.checks.iter().all(passes) {
        sink.report(rule, span, sink.rules.rule(rule).confidence);
    }
}

fn fits(shape: &[u8], value: &[u8]) -> bool {
    shape.iter().zip(value).all(|(s, v)| match s {
        b'9' => v.is_ascii_digit(),
        b'A' => v.is_ascii_alphabetic(),
        b'X' => v.is_ascii_alphanumeric(),
        s => s == v,
    })
}

/// Part of something longer: a version, a path, a UUID, a decimal.
fn touched(text: &[u8], start: usize, end: usize, cell: &Cell) -> bool {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let glue = |b: u8| {
        matches!(
            b,
            b'-' | b'.' | b'/' | b'_' | b'+' | b'#' | b'%' | b'@' | b'\\' | b'$'
        )
    };
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let before = start > floor
        && (text[start - 1] == b'_'
            || glue(text[start - 1])
                && (start < floor + 2
                    || word(text[start - 2])
                    || matches!(text[start - 1], b'.' | b'$' | b'#' | b'/')));
    // `4539578763621486.0`: a whole number that a program took for a decimal.
    let decimal = end - start >= 9
        && text[end..ceil].starts_with(b".0")
        && text[start..end].iter().all(u8::is_ascii_digit)
        && text[end + 2..ceil]
            .first()
            .is_none_or(|b| !word(*b) && *b != b'.');
    let after = end < ceil
        && !decimal
        && (text[end] == b'_' || glue(text[end]) && end + 1 < ceil && word(text[end + 1]));
    // A part of a longer row of groups is not a number of its own.
    let grouped = text[start..end].contains(&b' ');
    let digit = |i: usize| text.get(i).is_some_and(u8::is_ascii_digit);
    let in_row = grouped
        && (start >= floor + 2 && text[start - 1] == b' ' && digit(start - 2) && digit(start)
            || end + 1 < ceil && text[end] == b' ' && digit(end + 1) && digit(end - 1));
    before || after || in_row
}
