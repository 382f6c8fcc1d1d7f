//! Identifiers of a fixed shape: found by their digits, told apart by shape, check digits and the words around them.

use super::{Scratch, Sink};
use crate::names;
use crate::rule::RuleId;
use crate::ruleset::{Kind, Need};
use crate::text::{Cell, Span};

/// How far before and after a number the words count that say what it is.
const CONTEXT_BEFORE: usize = 72;
const CONTEXT_AFTER: usize = 36;
/// Longest letters-only group inside a number (`AB 12 34 56 C`).
const LETTERS_MAX: usize = 6;
/// Most groups in one number.
const GROUPS_MAX: usize = 10;

/// Every candidate of the node.
pub(super) fn scan(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    if sink.rules.shapes.is_empty() {
        return;
    }
    let text = sink.text();
    let mut cell_index = 0;
    let mut at = 0;
    let mut leet = (u32::MAX, 0);
    while at < text.len() {
        match next_digit(text, at) {
            Some(digit) => at = digit,
            None => return,
        }
        while sink
            .node
            .cells
            .get(cell_index)
            .is_some_and(|c| c.span.end as usize <= at)
        {
            cell_index += 1;
        }
        let Some(cell) = sink.node.cells.get(cell_index).copied() else {
            return;
        };
        if (cell.span.start as usize) > at {
            at += 1;
            continue;
        }
        let leet_cell = crate::text::to_u32(cell_index);
        at = chain(at, &cell, (leet_cell, &mut leet), sink, scratch);
    }
}

/// The first digit at or after `at`, eight bytes at a look.
fn next_digit(text: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    while let Some(c) = text.get(at..at + 8) {
        let word = u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
        // A digit is 0x30 + 0..=9: with 0x30 taken off, adding 0x76 does not reach the top bit.
        let off = word ^ (ONES * 0x30);
        let not = ((off & (ONES * 0x7F)) + ONES * 0x76) | off;
        let digits = !not & (ONES * 0x80);
        if digits != 0 {
            return Some(at + digits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    text.get(at..)?
        .iter()
        .position(u8::is_ascii_digit)
        .map(|n| at + n)
}

/// Words such as `1gn0r3`: digits among letters of lower case.
fn count_leet(word: &[u8], index: u32, leet: &mut (u32, u32), scratch: &mut Scratch) {
    let letters = word.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let lower = word.iter().skip(1).all(|b| !b.is_ascii_uppercase());
    if !(2..=16).contains(&word.len())
        || letters == 0
        || !lower
        || word.iter().all(u8::is_ascii_hexdigit) && word.len() > 6
    {
        return;
    }
    if leet.0 != index {
        *leet = (index, 0);
    }
    leet.1 += 1;
    if leet.1 == crate::decode::LEET_WORDS_MIN {
        scratch.leet.push(index);
    }
}

/// Is the piece around `at` as long as the next one, after a blank or a line end? Broken values look like that.
pub(super) fn note_row(text: &[u8], at: usize, cell: &Cell, scratch: &mut Scratch) {
    const PIECE_MAX: usize = 40;
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let blank = |b: u8| matches!(b, b' ' | b'\n');
    let mut start = at;
    while start > floor && at - start <= PIECE_MAX && !blank(text[start - 1]) {
        start -= 1;
    }
    let rest = &text[start..ceil.min(start + 2 * PIECE_MAX + 2)];
    let len = rest.iter().position(|b| blank(*b)).unwrap_or(0);
    let more = rest.len() > len + 1 && rest[len + 1..].iter().take(len).all(|b| !blank(*b));
    let ends = rest.get(2 * len + 1).is_none_or(|b| blank(*b)) && rest.len() > 2 * len;
    if (3..=PIECE_MAX).contains(&len) && more && ends && scratch.rows.len() < 4096 {
        scratch.rows.push(crate::text::to_u32(start));
    }
}

/// Looks at the groups joined around the digit at `at`; returns where to go on.
fn chain(
    at: usize,
    cell: &Cell,
    leet: (u32, &mut (u32, u32)),
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) -> usize {
    let text = sink.text();
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let mut start = group_start(text, at, floor);
    for _ in 0..3 {
        let Some(before) = start
            .checked_sub(1)
            .filter(|s| *s > floor && is_sep(text[*s]) && text[*s - 1].is_ascii_alphabetic())
        else {
            break;
        };
        let left = group_start(text, before - 1, floor);
        if before - left > LETTERS_MAX {
            break;
        }
        start = left;
    }
    let mut groups = [(0usize, 0usize); 12];
    let mut n = 0;
    let mut from = start;
    let mut end = start;
    while from < ceil && n < groups.len() {
        let stop = group_end(text, from, ceil);
        let group = &text[from..stop];
        let digits = group.iter().any(u8::is_ascii_digit);
        if group.is_empty() || (!digits && group.len() > LETTERS_MAX) {
            break;
        }
        if digits {
            count_leet(group, leet.0, leet.1, scratch);
            if stop < ceil && matches!(text[stop], b' ' | b'\n') {
                note_row(text, from, cell, scratch);
            }
        }
        groups[n] = (from, stop);
        n += 1;
        end = stop;
        let gap = stop..ceil.min(stop + 2);
        let sep = text[gap.clone()].iter().take_while(|b| is_sep(**b)).count();
        if sep == 0 || sep > 2 || (sep == 2 && text[stop] != b')') {
            break;
        }
        from = stop + sep;
    }
    let mut next = end.max(at + 1);
    if n == groups.len() {
        next = groups[n / 2].0.max(at + 1);
    }
    for first in 0..n {
        if (n == groups.len() && groups[first].0 >= next) || !sink.limits.spend(1) {
            break;
        }
        for last in first..n.min(first + GROUPS_MAX) {
            let len = groups[last].1 - groups[first].0;
            if len > crate::ruleset::SHAPE_BYTES_MAX {
                break;
            }
            let lead = usize::from(!text[groups[first].0].is_ascii_digit());
            if sink
                .rules
                .shapes
                .get(len)
                .is_some_and(|s| !s[lead].is_empty())
            {
                shaped(groups[first].0, groups[last].1, cell, sink, scratch);
            }
        }
    }
    next
}

fn group_start(text: &[u8], at: usize, floor: usize) -> usize {
    let mut start = at;
    while start > floor && text[start - 1].is_ascii_alphanumeric() {
        start -= 1;
    }
    start
}

fn group_end(text: &[u8], at: usize, ceil: usize) -> usize {
    let mut end = at;
    while end < ceil && text[end].is_ascii_alphanumeric() {
        end += 1;
    }
    end
}

fn is_sep(b: u8) -> bool {
    matches!(b, b' ' | b'-' | b'.' | b'/' | b'(' | b')')
}

/// Tries the shapes of that length.
fn shaped(start: usize, end: usize, cell: &Cell, sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let rules = sink.rules;
    let text = sink.text();
    let value = &text[start..end];
    for shape in rules.shapes[end - start][usize::from(!value[0].is_ascii_digit())]
        .iter()
        .filter(|s| fits(&s.shape, value))
    {
        if touched(text, start, end, cell) {
            return;
        }
        for rule in &shape.rules {
            candidate(*rule, Span::new(start, end), cell, sink, scratch);
        }
    }
}

/// A value of the right shape: its check digits, then the words around it.
fn candidate(rule: RuleId, span: Span, cell: &Cell, sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let compiled = sink.rules.compiled(rule);
    let Kind::Number { need } = compiled.kind else {
        return;
    };
    let alone = need == Need::ContextOrAlone && cell.span == span && cell.name.is_empty();
    if need != Need::Nothing && !alone && !context_possible(rule, sink, scratch) {
        return;
    }
    let value = &sink.text()[span.range()];
    crate::check::compact(value, &mut scratch.compact);
    let passes = compiled
        .checks
        .iter()
        .all(|c| (c.run)(if c.raw { value } else { &scratch.compact }));
    if passes && (need == Need::Nothing || alone || has_context(rule, span, cell, sink, scratch)) {
        sink.report(rule, span, sink.rules.rule(rule).confidence);
    }
}

/// False when the gate saw none of the rule's words in the whole node.
fn context_possible(rule: RuleId, sink: &Sink<'_>, scratch: &Scratch) -> bool {
    !sink.rules.compiled(rule).context_gated || scratch.context_seen[rule.index()]
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
    let after = end < ceil
        && (text[end] == b'_' || glue(text[end]) && end + 1 < ceil && word(text[end + 1]));
    // A part of a longer row of groups is not a number of its own.
    let grouped = text[start..end].contains(&b' ');
    let digit = |i: usize| text.get(i).is_some_and(u8::is_ascii_digit);
    let in_row = grouped
        && (start >= floor + 2 && text[start - 1] == b' ' && digit(start - 2) && digit(start)
            || end + 1 < ceil && text[end] == b' ' && digit(end + 1) && digit(end - 1));
    before || after || in_row
}

/// Does one of the rule's words stand near the value, in its name, or at the head of its column?
pub(super) fn has_context(
    rule: RuleId,
    span: Span,
    cell: &Cell,
    sink: &Sink<'_>,
    scratch: &mut Scratch,
) -> bool {
    let words = &sink.rules.compiled(rule).context;
    if words.is_empty() || !context_possible(rule, sink, scratch) {
        return false;
    }
    let text = sink.text();
    let window = &mut scratch.context;
    window.clear();
    // At the head of its cell a value is explained by the cells before it, else by its own text.
    let floor = if span.start < cell.span.start + 4 {
        0
    } else {
        cell.span.start as usize
    };
    let before = (span.start as usize)
        .saturating_sub(CONTEXT_BEFORE)
        .max(floor);
    window.extend_from_slice(&text[before..span.start as usize]);
    window.push(0);
    let after = (span.end as usize + CONTEXT_AFTER).min(cell.span.end as usize);
    window.extend_from_slice(&text[span.end as usize..after]);
    window.push(0);
    window.extend_from_slice(&text[cell.name.range()]);
    window.push(0);
    if let Some(head) = column_head(text, span, cell) {
        window.extend_from_slice(&text[head.range()]);
    }
    names::plain_in_place(window);
    words.iter().any(|w| has_word(window, w))
}

/// `word` in `window`; a word of ASCII letters has to stand by itself.
fn has_word(window: &[u8], word: &[u8]) -> bool {
    let letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
    let ends_plain = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    memchr::memmem::find_iter(window, word).any(|at| {
        let starts = at == 0 || !letter(window.get(at - 1)) || !ends_plain(word.first());
        let after = window.get(at + word.len());
        let ends =
            !letter(after) || !ends_plain(word.last()) || (word.len() > 4 && after == Some(&b's'));
        starts && ends
    })
}

/// In a table of lines: the words over the value's column.
fn column_head(text: &[u8], span: Span, cell: &Cell) -> Option<Span> {
    const HEAD_BYTES_MAX: usize = 512;
    let floor = cell.span.start as usize;
    let upto = &text[floor..span.start as usize];
    let head_len = memchr::memchr(b'\n', &upto[..upto.len().min(HEAD_BYTES_MAX)])?;
    let head = &upto[..head_len];
    let delimiter = [b';', b',', b'\t', b'|']
        .into_iter()
        .max_by_key(|d| head.iter().filter(|b| *b == d).count())?;
    let line = memchr::memrchr(b'\n', upto)? + 1;
    if upto.len() - line > 2048 {
        return None;
    }
    let column = upto[line..].iter().filter(|b| **b == delimiter).count();
    let mut at = floor;
    for (i, part) in head.split(|b| *b == delimiter).enumerate() {
        if i == column && i + usize::from(column == 0) > 0 && head.contains(&delimiter) {
            return Some(Span::new(at, at + part.len()));
        }
        at += part.len() + 1;
    }
    None
}
