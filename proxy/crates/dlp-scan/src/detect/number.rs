//! Identifiers of a fixed shape: found by their digits, told apart by shape, check digits and the words around them.

use super::amount::{
    are_years, beside_firm, counts, describes, heads, is_by_chance, is_code_point, is_colour,
    is_of_arn, is_of_dump, is_postcode_of_japan, is_reference, is_stamp, names_amount, names_goods,
    names_id, names_thing,
};
use super::leet::Leet;
use super::{Scratch, Sink, context};
use crate::blob;
use crate::decode::{listed, misread, series, strides};
use crate::rule::RuleId;
use crate::ruleset::{Classes, Kind, Need, Outline};
use crate::text::{Cell, Span};
use crate::traces::Traces;
use crate::{Layer, LeafKind};

/// Most groups in one number.
const GROUPS_MAX: usize = Outline::RUNS_MAX;

/// Most groups that are looked at together.
const CHAIN_MAX: usize = 12;

/// Every candidate of the node.
pub(super) fn scan(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    if sink.rules.shapes.is_empty() {
        return;
    }
    let mut cell_index = 0;
    let mut at = 0;
    let mut leet = Leet::default();
    let mut groups = [Group::default(); CHAIN_MAX];
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
        if let Some(end) = noise_until(sink, at, cell.span) {
            at = end;
            continue;
        }
        leet.enter(crate::text::to_u32(cell_index), &cell);
        at = chain(at, &cell, &traces, (&mut leet, &mut groups), sink, scratch);
    }
    scratch.traces = traces;
}

/// The end of the letters and digits around a digit, if they stand in the midst of noise and are as noise is: with letters of both
/// cases. All that they look like they do by chance.
fn noise_until(sink: &Sink<'_>, at: usize, cell: Span) -> Option<usize> {
    blob::around(&sink.blobs, Span::new(at, at + 1))?;
    let text = sink.text();
    let is_word = |b: &&u8| b.is_ascii_alphanumeric();
    let (before, behind) = (&text[cell.start as usize..at], &text[at..cell.end as usize]);
    let start = at - before.iter().rev().take_while(is_word).count();
    let word = &text[start..at + behind.iter().take_while(is_word).count()];
    let has = |is: fn(&u8) -> bool| word.iter().any(is);
    (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase)).then_some(start + word.len())
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
    let named = || letters || from > place.0 && matches!(text[from - 1], b'_' | b'-' | b'[');
    if series::ends_name(text[stop])
        && place.1 - stop > series::JOINED_BYTES_MIN
        && text[stop - 1].is_ascii_digit()
        && named()
    {
        scratch.counted.push(crate::text::to_u32(stop));
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
    (leet, groups): (&mut Leet, &mut [Group; CHAIN_MAX]),
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
        let gap = match digits && !letters {
            true if len == 4 && text[from] != b'0' => card_gap(&text[stop..ceil]),
            true if (3..=5).contains(&len) && text[from] == b'0' => area_gap(&text[stop..ceil]),
            _ => 1,
        };
        let second = text[stop + 1..ceil].first().is_some_and(|b| is_sep(*b));
        // `13. 03. 1993`
        let ordinal = *sep == b'.' && len <= 2 && digits && !letters;
        if second && gap == 1 && *sep != b')' && !(ordinal && text[stop + 1] == b' ') {
            break;
        }
        from = stop + gap.max(1 + usize::from(second));
    }
    let mut next = end.max(at + 1);
    if n == groups.len() {
        next = groups[n / 2].from.max(at + 1);
    }
    if groups[..n].iter().any(|g| g.digits && g.letters) {
        note_misread(text, &groups[..n], scratch);
    } else if n == 1
        && end - start == 4
        && matches!(
            text[..ceil].get(end),
            Some(b'_' | b']' | b'*' | b'`' | b')')
        )
        && let Some(end) = misread::is_card_literal(&text[..ceil], start)
    {
        scratch.misread.push(Span::new(start, end));
        next = end;
    }
    // Too short for any shape.
    if end - start < crate::ruleset::SHAPE_BYTES_MIN {
        return next;
    }
    for first in 0..n {
        if (n == groups.len() && groups[first].from >= next) || !sink.limits.spend(1) {
            break;
        }
        from_group(&groups[first..n], cell, traces, sink, scratch);
        // `CC4539...`: the letters before the digits are a word of their own.
        if let Some(bare) = without_lead(text, &groups[first..n])
            && sink.limits.spend(1)
        {
            let lettered = groups[first];
            groups[first] = bare;
            from_group(&groups[first..n], cell, traces, sink, scratch);
            groups[first] = lettered;
        }
    }
    next
}

/// Notes a number among the groups that has letters for digits, or between them.
fn note_misread(text: &[u8], groups: &[Group], scratch: &mut Scratch) {
    let place = misread::place(text, groups.iter().map(|g| (g.from, g.stop))).or_else(|| {
        let parted = |g: &&Group| g.letters && misread::is_parted(&text[g.from..g.stop]);
        groups
            .iter()
            .find(parted)
            .map(|g| Span::new(g.from, g.stop))
    });
    if let Some(place) = place
        && scratch
            .misread
            .last()
            .is_none_or(|last| last.end <= place.start)
    {
        scratch.misread.push(place);
    }
}

/// Tries all that begins with the first of the groups.
fn from_group(
    groups: &[Group],
    cell: &Cell,
    traces: &Traces,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) {
    let start = groups[0].from;
    let classes = traces.classes_from(start);
    let mut outline = Outline::begin(classes.letters & 1 != 0);
    for group in groups.iter().take(GROUPS_MAX) {
        let stop = group.stop;
        if stop - start > crate::ruleset::SHAPE_BYTES_MAX {
            break;
        }
        outline = outline.and(stop - group.from);
        if sink.rules.shapes.may_have(outline) {
            shaped((start, stop), (outline, classes), cell, sink, scratch);
        }
    }
}

/// The first group without a short word before its digits, where all together may be a card's number.
fn without_lead(text: &[u8], groups: &[Group]) -> Option<Group> {
    let (first, last) = (groups.first()?, groups.last()?);
    let mixed = first.digits && first.letters;
    if !mixed
        || last.stop - first.from < LONG_BYTES_MIN + 2
        || !text[first.from].is_ascii_alphabetic()
    {
        return None;
    }
    let word = &text[first.from..first.stop];
    let lead = word.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let digits = &word[lead..];
    let plain = (2..=LEAD_BYTES_MAX).contains(&lead) && digits.len() >= 4;
    (plain && digits.iter().all(u8::is_ascii_digit)).then_some(Group {
        from: first.from + lead,
        letters: false,
        ..*first
    })
}

/// Between the fours of a card number: a dash with blanks, or two blanks.
fn card_gap(text: &[u8]) -> usize {
    [&b" - "[..], b"  "]
        .into_iter()
        .find(|gap| text.starts_with(gap) && text.get(gap.len()).is_some_and(u8::is_ascii_digit))
        .map_or(1, <[u8]>::len)
}

/// Between the code of an area and the number in it: `0171 / 480 57 10`.
fn area_gap(text: &[u8]) -> usize {
    [&b" / "[..], b" - ", b"  "]
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

/// Tries the shapes of that outline.
fn shaped(
    (start, end): (usize, usize),
    (outline, classes): (Outline, Classes),
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) {
    let text = sink.text();
    let value = &text[start..end];
    let span = Span::new(start, end);
    let mut beside = None;
    for shape in sink.rules.shapes.of(value, outline, classes) {
        let beside = *beside.get_or_insert_with(|| {
            crate::check::compact(value, &mut scratch.compact);
            touched(text, start, end, cell)
        });
        if beside == Beside::Part {
            return;
        }
        let (rules, untold) = shape.rules();
        // Most numbers stand beside no word that explains them.
        let upto = match context::any_of(shape.phrases(), span, cell, sink, scratch) {
            true => rules.len(),
            false => untold,
        };
        for rule in &rules[..upto] {
            candidate(*rule, span, beside, cell, sink, scratch);
        }
    }
}

/// A value of the right shape, compacted in `scratch.compact`: the words around it, then its check digits.
fn candidate(
    rule: RuleId,
    span: Span,
    beside: Beside,
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) {
    let compiled = sink.rules.compiled(rule);
    let Kind::Number { need } = compiled.kind else {
        return;
    };
    if beside != Beside::Free && compiled.checks.is_empty() || !sink.limits.spend(1) {
        return;
    }
    let text = sink.text();
    let twin = || {
        twins(text, span, cell).any(|twin| {
            let mut compact = Vec::new();
            crate::check::compact(&text[twin.range()], &mut compact);
            compiled.checks.iter().all(|c| !c.raw && (c.run)(&compact))
        })
    };
    let value = &text[span.range()];
    let passes = |scratch: &Scratch| {
        let mut checks = compiled.checks.iter();
        checks.all(|c| (c.run)(if c.raw { value } else { &scratch.compact }))
    };
    // Most windows of a row of numbers are none.
    if matches!(beside, Beside::Row { .. }) && !passes(scratch) {
        return;
    }
    // What is a name of something else is not alone.
    let nameless = cell.name.is_empty() && cell.kind != LeafKind::Key;
    let alone = need == Need::ContextOrAlone && cell.span == span && nameless;
    let labelled = |names: fn(&[u8]) -> bool| {
        names(&text[cell.span.start as usize..span.start as usize])
            || span.start == cell.span.start && names(&text[cell.name.range()])
    };
    let named = || labelled(names_goods);
    let measured = || value.iter().all(u8::is_ascii_digit) && labelled(names_amount);
    // A number in one piece that has the sum of a card's: one in ten has, in every catalogue.
    let of_catalogue = || {
        let digits = value.iter().all(u8::is_ascii_digit);
        let sum = |word: &[u8]| compiled.checks.iter().all(|c| (c.run)(word));
        digits
            && (15..=16).contains(&value.len())
            && passes(scratch)
            && (labelled(names_thing)
                || is_by_chance(text, (span.start as usize, span.end as usize), sum))
    };
    let chain = value.starts_with(b"0x");
    let few = value.iter().filter(|b| b.is_ascii_digit()).count() < FEW_DIGITS;
    if chain && named() {
        return;
    }
    let told = match beside {
        // So few digits may be anything that has a number, where the word before says so.
        Beside::Free if need == Need::Nothing && few && named() => false,
        // Nor is what counts up, or is measured.
        Beside::Free if need == Need::Nothing && !few && (measured() || of_catalogue()) => false,
        Beside::Free => {
            (need == Need::Nothing || alone)
                && !counts_up(&scratch.compact)
                && !(is_put_together(sink) && is_of_levels(&scratch.compact))
        }
        Beside::Row { .. } if twin() => need == Need::Nothing,
        Beside::Row { tellable: false } => return,
        Beside::Row { .. } | Beside::Near | Beside::Part => false,
    };
    let says_other = || {
        let before = &text[cell.span.start as usize..span.start as usize];
        let after = &text[span.end as usize..cell.span.end as usize];
        describes(before)
            || heads(before)
            || counts(value, after)
            || is_colour(value, after)
            || is_reference(before, value)
            || is_postcode_of_japan(before, value, after)
            // A phone beside it, or none: `{"osm_id": 269931826, "phone": null}`.
            || compiled.phones
                && (labelled(names_goods) || labelled(names_thing) || labelled(names_id))
    };
    if !told && (!context::has(rule, span, cell, sink, scratch) || says_other()) {
        return;
    }
    if compiled.firms && beside_firm(text, (span.start as usize, span.end as usize)) {
        return;
    }
    if passes(scratch) {
        // `A123456(3)`: what a number has in brackets ends with one.
        let open = value.contains(&b'(') && !value.contains(&b')');
        let closed = open && span.end < cell.span.end && text[span.end as usize] == b')';
        let whole = Span {
            start: span.start,
            end: span.end + u32::from(closed),
        };
        sink.report(rule, whole, sink.rules.rule(rule).confidence);
    }
}

/// Was it put together of pieces that stand apart? Single digits in a row are the priorities of a queue as well.
fn is_put_together(sink: &Sink<'_>) -> bool {
    matches!(sink.node.layer, Some(Layer::Spaced | Layer::Joined))
}

/// Is no digit of it above 3, as in a list of priorities or of answers? Of a thousand million numbers of cards one is so.
fn is_of_levels(compact: &[u8]) -> bool {
    compact.len() >= LONG_BYTES_MIN && compact.iter().all(|b| (b'0'..=b'3').contains(b))
}

/// `0123456789`: all the digits in order, one behind the other.
fn counts_up(compact: &[u8]) -> bool {
    compact.len() >= FEW_DIGITS
        && compact
            .windows(2)
            .all(|pair| pair[1] == pair[0] + 1 || pair == b"90")
}

/// A number of fewer digits is one of many.
const FEW_DIGITS: usize = 10;

/// Fewer digits than this are no card's and no account's number.
const LONG_BYTES_MIN: usize = 13;
/// So much of a number's neighbour is read.
const NEIGHBOUR_BYTES_MAX: usize = 24;
/// Longest word that may be glued to a number.
const LEAD_BYTES_MAX: usize = 12;

/// What stands at a number's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Free,
    /// Something that may be a sign before it or a neighbour: only check digits and the words around tell.
    Near,
    /// A row of groups that goes on with others as long: the same number of them next to it is one as well, or the words
    /// around tell, where it goes on to one side only.
    Row {
        tellable: bool,
    },
    /// It is part of something longer: a version, a path, a UUID, a decimal.
    Part,
}

/// What is known of a number by what it touches.
fn touched(text: &[u8], start: usize, end: usize, cell: &Cell) -> Beside {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let glue = |b: u8| {
        matches!(
            b,
            b'-' | b'.' | b'/' | b'_' | b'+' | b'#' | b'%' | b'@' | b'\\' | b'$'
        )
    };
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let letter = |at: usize| at >= floor && text[at].is_ascii_alphabetic();
    let value = &text[start..end];
    if are_years(value)
        || is_stamp(&text[end..ceil])
        || is_of_arn(&text[floor..start])
        || is_code_point(text[floor..start].last().copied(), value, &text[end..ceil])
        || is_of_dump(text, (start, end), (floor, ceil))
    {
        return Beside::Part;
    }
    let before = (start > floor).then(|| text[start - 1]);
    // The sign of a number, `#`, and the dot of `no.` are none of it.
    let negative = cell.kind == LeafKind::Number && start == floor + 1 && before == Some(b'-');
    let signed = before == Some(b'#') || before == Some(b'.') && start >= 2 && letter(start - 2);
    // `:59:/DE89...`: the account in a message of SWIFT.
    let field = before == Some(b'/')
        && start >= floor + 2
        && text[start - 2] == b':'
        && text[start].is_ascii_uppercase()
        && end - start >= 15;
    let part_before = !field
        && before.is_some_and(|b| {
            b == b'_'
                || glue(b)
                    && (start < floor + 2
                        || word(text[start - 2])
                        || matches!(b, b'.' | b'$' | b'#' | b'/'))
        });
    // `4539578763621486.0`: a whole number that a program took for a decimal.
    let decimal = end - start >= 9
        && text[end..ceil].starts_with(b".0")
        && text[start..end].iter().all(u8::is_ascii_digit)
        && text[end + 2..ceil]
            .first()
            .is_none_or(|b| !word(*b) && *b != b'.');
    // `...6103\\n`: the end of a line in a string of some program, behind no path.
    let line_end = before != Some(b'\\')
        && before != Some(b'/')
        && text[end..ceil].starts_with(b"\\")
        && matches!(text[end + 1..ceil].first(), Some(b'n' | b'r' | b't'));
    let part_after = end < ceil
        && !decimal
        && !line_end
        && (text[end] == b'_'
            || glue(text[end]) && end + 1 < ceil && word(text[end + 1])
            // `/2001/12/11/`: a day in a path.
            || text[end] == b'/' && value.get(4) == Some(&b'/') && value.len() == 10);
    let part =
        part_before && !signed && !negative || part_after && !card_tail(value, &text[end..ceil]);
    if part && !stands_out(value) {
        return Beside::Part;
    }
    let lettered = start > floor && text[start - 1].is_ascii_alphabetic();
    match in_row(text, (start, end), (floor, ceil)) {
        Beside::Free if part_before && signed || lettered => Beside::Near,
        beside => beside,
    }
}

/// What is no part of a name or a path whatever sign it touches: it begins as an IBAN and is as long, or has the groups that are
/// printed on a card.
fn stands_out(value: &[u8]) -> bool {
    const IBAN_BYTES_MIN: usize = 15;
    let iban = value.len() >= IBAN_BYTES_MIN
        && value[..2].iter().all(u8::is_ascii_uppercase)
        && value[2..4].iter().all(u8::is_ascii_digit);
    let mut groups = value.split(|b| *b == b' ');
    let grouped = groups.clone().count() == 4
        && groups.all(|group| group.len() == 4 && group.iter().all(u8::is_ascii_digit));
    iban || grouped
}

/// Behind a card's number: the month and year that it is good until (`/12/27`), or the digits on its back (`-123`).
fn card_tail(value: &[u8], after: &[u8]) -> bool {
    let digits = |from: usize| {
        let rest = after.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let end = match (after.first(), digits(1)) {
        (Some(b'/'), 2) if after.get(3) == Some(&b'/') => 4 + digits(4),
        (Some(b'-'), n @ 3..=4) if value.contains(&b'-') => 1 + n,
        _ => return false,
    };
    let month = || (&b"01"[..]..=&b"12"[..]).contains(&&after[1..3]);
    let whole = after[0] == b'-' || matches!(end, 6 | 8) && month();
    let on = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'_');
    long(value) && whole && !after.get(end).is_some_and(on)
}

/// Is a number in groups one of its own, or part of a longer row of groups? A date, an hour, an amount or the digits on
/// a card's back are shorter than its groups.
fn in_row(text: &[u8], (start, end): (usize, usize), (floor, ceil): (usize, usize)) -> Beside {
    let value = &text[start..end];
    let digit = u8::is_ascii_digit;
    let (Some(first), Some(last)) = (
        value.iter().position(|b| *b == b' '),
        value.rsplit(|b| *b == b' ').next(),
    ) else {
        return Beside::Free;
    };
    let left = match start > floor && text[start - 1] == b' ' && digit(&value[0]) {
        true => text[floor..start - 1]
            .iter()
            .rev()
            .take(NEIGHBOUR_BYTES_MAX)
            .take_while(|b| digit(b))
            .count(),
        false => 0,
    };
    let right = match end < ceil && text[end] == b' ' && last.last().is_some_and(digit) {
        true => text[end + 1..ceil]
            .iter()
            .take(NEIGHBOUR_BYTES_MAX)
            .take_while(|b| digit(b))
            .count(),
        false => 0,
    };
    // An account's number says by its letters how long it is.
    if left == 0 && right == 0 || value[0].is_ascii_alphabetic() && long(value) {
        return Beside::Free;
    }
    if !long(value) || value.iter().filter(|b| **b == b' ').count() < 2 {
        return Beside::Part;
    }
    let small = |run: usize, group: usize| run <= 3 && run != group;
    let (left_small, right_small) = (small(left, first), small(right, last.len()));
    match (left_small, right_small) {
        (true, true) if left == 0 || right == 0 => Beside::Free,
        (true, true) => Beside::Near,
        (false, false) => Beside::Row { tellable: false },
        _ => Beside::Row { tellable: true },
    }
}

/// As many digits as a card or an account has.
fn long(value: &[u8]) -> bool {
    value.iter().filter(|b| b.is_ascii_digit()).count() >= LONG_BYTES_MIN
}

/// The numbers beside one that are in groups as it is.
fn twins(text: &[u8], span: Span, cell: &Cell) -> impl Iterator<Item = Span> {
    let (start, end, len) = (span.start as usize, span.end as usize, span.len());
    let value = &text[span.range()];
    let left = (start.checked_sub(len + 1)).map(|from| Span::new(from, start - 1));
    let right = Some(Span::new(end + 1, end + 1 + len));
    [left, right].into_iter().flatten().filter(move |twin| {
        twin.start >= cell.span.start && twin.end <= cell.span.end && {
            let mut pairs = text[twin.range()].iter().zip(value);
            pairs.all(|(a, b)| a.is_ascii_digit() && b.is_ascii_digit() || a == b)
        }
    })
}
