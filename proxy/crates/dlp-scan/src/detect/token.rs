//! Rules that are a pattern: at the keyword, or around it.

use regex_automata::{Anchored, Input};

use super::{Scratch, Sink};
use crate::decode::dressing;
use crate::rule::RuleId;
use crate::ruleset::Action;
use crate::ruleset::load::Edge;
use crate::text::{Cell, How, RUN_BYTES_MIN, Span};
use crate::{Category, Layer};

/// So far a token's pattern may reach in vain at the price of one look.
const UNCHARGED: u32 = 512;

/// Bytes that a further match under way may go on for the price of one look.
const OVERLAP: u32 = 8;

/// Bytes of a window in which what a pattern needs is looked for at the price of one look: a tenth of running the pattern there.
const LOOKED_AT: u32 = 32;

/// What may touch a token, and how far it may reach.
#[derive(Clone, Copy)]
pub(super) struct Edges {
    pub before: Edge,
    pub after_any: bool,
    pub ahead: u32,
}

/// The pattern begins at `at`.
pub(super) fn anchored(
    rule: RuleId,
    at: u32,
    cell: &Cell,
    edges: Edges,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) {
    let done = scratch.done.end(rule);
    let text = sink.text();
    let compiled = sink.rules.compiled(rule);
    // Where a checksum will prove the value, it need not stand free: base64 that was cut elsewhere
    // leaves a letter before it.
    let proves = compiled.checks.iter().any(|c| c.proves);
    let free = || free_before(edges.before, text, at as usize, cell.span.start as usize);
    if at < done || !(proves || free()) {
        return;
    }
    let rest = &text[at as usize..cell.span.end as usize];
    if !compiled.cased.is_empty() && !compiled.cased.iter().any(|k| rest.starts_with(k)) {
        return;
    }
    if !sink.limits.spend(compiled.weight) || !solid(rest, usize::from(compiled.solid), at, scratch)
    {
        return;
    }
    let end = cell.span.end.min(at.saturating_add(edges.ahead));
    let found = search(rule, &begins(text, at, end), sink, scratch);
    // Where keywords stand close together and their matches reach far, each would be walked and judged anew. What did
    // not match may have been walked to its end, too.
    let walked = match found {
        Some((whole, _)) => (whole.end - whole.start) / 8,
        None => (end - at).saturating_sub(UNCHARGED) / 32,
    };
    if !sink.limits.spend(walked.saturating_mul(compiled.weight)) {
        return;
    }
    let Some((whole, value)) = longer(rule, found, (at, end), cell, sink, scratch) else {
        // The beginning of a token that ends with its cell may go on in the next one.
        if cell.span.end - at < edges.ahead.min(96)
            && token_to_end(&text[at as usize..cell.span.end as usize])
        {
            scratch.broken.push(at);
        }
        return;
    };
    if !edges.after_any
        && text
            .get(whole.end as usize)
            .is_some_and(|b| whole.end < cell.span.end && is_word(*b))
    {
        return;
    }
    if sink.accept(rule, value, &mut scratch.compact) {
        scratch.done.set(rule, whole.end);
    }
}

/// The pattern at the beginning of a range.
fn begins(text: &[u8], at: u32, end: u32) -> Input<'_> {
    Input::new(text)
        .range(at as usize..end as usize)
        .anchored(Anchored::Yes)
}

/// A match that ends with the text it was looked for in may go on behind it: it is looked for in twice as much, and
/// again. One that was not found may be longer than that text, if all of it is one word; then its end is the word's.
fn longer(
    rule: RuleId,
    mut found: Option<(Span, Span)>,
    (at, mut end): (u32, u32),
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) -> Option<(Span, Span)> {
    let compiled = sink.rules.compiled(rule);
    let text = sink.text();
    let mut in_word = found.is_none();
    while end < cell.span.end {
        let next = match found {
            Some((whole, _)) if whole.end == end => end.saturating_add(end - at),
            None if in_word
                && of_token(&text[end as usize])
                && compiled.pattern.as_ref().is_some_and(|p| p.endless())
                && text[at as usize..end as usize].iter().rev().all(of_token) =>
            {
                let rest = &text[end as usize..cell.span.end as usize];
                end + crate::text::to_u32(rest.iter().take_while(|b| of_token(b)).count())
            }
            _ => break,
        };
        in_word = false;
        let next = next.min(cell.span.end);
        if !sink
            .limits
            .spend(((next - at) / OVERLAP).saturating_mul(compiled.weight))
        {
            break;
        }
        end = next;
        found = search(rule, &begins(text, at, end), sink, scratch);
    }
    found
}

/// Where a pattern is to be looked for once all hits are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    rule: RuleId,
    cell: Cell,
    span: Span,
    /// Keywords beside the first that lie in it.
    more: u32,
    /// How far the pattern reaches around each.
    reach: u32,
}

/// Notes that the pattern may be anywhere from `back` before the keyword to `ahead` after it. Windows that touch
/// become one, so that many keywords close together are searched once and not once each.
pub(super) fn around(
    rule: RuleId,
    at: u32,
    cell: &Cell,
    reach: (u32, u32),
    sink: &Sink<'_>,
    scratch: &mut Scratch,
) {
    let (back, ahead) = reach;
    let text = sink.text();
    let start = char_start(text, at.saturating_sub(back).max(cell.span.start));
    let end = char_end(
        text,
        cell.span.end.min(at.saturating_add(ahead)),
        cell.span.end,
    );
    if is_known(rule, (start, end), sink) {
        return;
    }
    // `done` holds the index of the rule's last window, one up.
    let last = scratch.done.end(rule) as usize;
    if let Some(window) = last.checked_sub(1).and_then(|i| scratch.windows.get_mut(i))
        && window.cell.span == cell.span
        && start <= window.span.end
    {
        window.span.end = window.span.end.max(end);
        window.more += 1;
        return;
    }
    scratch.windows.push(Window {
        rule,
        cell: *cell,
        span: Span { start, end },
        more: 0,
        reach: back.saturating_add(ahead),
    });
    let nth = crate::text::to_u32(scratch.windows.len());
    scratch.done.set(rule, nth);
}

/// Was the window searched where it was copied from? Of a text in which one letter was folded (`GOsa²`) all else is as it was, and
/// would be searched as often as it is folded, joined and both. An order is looked for in any case: the marks that dress it up are
/// sought beside it.
fn is_known(rule: RuleId, (start, end): (u32, u32), sink: &Sink<'_>) -> bool {
    /// So far behind the window what it finds may go on.
    const MARGIN: u32 = 64;
    let node = sink.node;
    if node.layer != Some(Layer::Fold) || sink.rules.rule(rule).category != Category::Secret {
        return false;
    }
    let next = node.segs.partition_point(|seg| seg.dst < start);
    let Some(seg) = next.checked_sub(1).and_then(|at| node.segs.get(at)) else {
        return false;
    };
    let ends = node.segs.get(next).map(|seg| seg.dst);
    seg.how == How::Copy && ends.is_none_or(|ends| end.saturating_add(MARGIN) <= ends)
}

/// Looks into every window.
pub(super) fn search_windows(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let windows = std::mem::take(&mut scratch.windows);
    let mut marks = None;
    for window in &windows {
        let Window {
            rule, cell, span, ..
        } = window;
        // A tenant's own pattern finds what it says, told of or not.
        let orders = sink.rules.rule(*rule).category == Category::Injection
            && !sink.rules.compiled(*rule).own;
        if orders {
            let marks = marks.get_or_insert_with(|| dressing(sink.text(), &scratch.traces));
            let next = marks.partition_point(|at| *at < span.start);
            if marks.get(next).is_some_and(|at| *at < span.end) {
                scratch.dressed.push(*span);
            }
        }
        if !may_match(*rule, *span, sink, scratch) {
            continue;
        }
        let needs = sink.rules.compiled(*rule).needs_context();
        if needs
            && !super::context::has(
                *rule,
                Span {
                    start: span.start,
                    end: span.start + 1,
                },
                cell,
                sink,
                scratch,
            )
        {
            continue;
        }
        // A long gap in a pattern costs a step for each byte and each place in the gap: hence by the byte.
        let weight = sink.rules.compiled(*rule).weight;
        let cost = |bytes: u32| (1 + bytes / 4).saturating_mul(weight);
        let bytes = span.end - span.start;
        if !sink
            .limits
            .spend((1 + bytes / LOOKED_AT).saturating_mul(weight))
        {
            break;
        }
        if !holds_needed(*rule, *span, sink, scratch) {
            continue;
        }
        if !sink.limits.spend(cost(bytes)) {
            break;
        }
        // So does each keyword that the pattern may begin at while it is under way from those before.
        let reach = window.reach.min(span.end - span.start);
        let under_way = window.more.saturating_mul(reach / OVERLAP);
        if !sink.limits.spend(under_way.saturating_mul(weight)) {
            break;
        }
        // All searches together go over the window once. What one of them read beyond its match is read again by the next: so
        // far as the pattern reaches, and all that is left if it has no end.
        let pattern = sink.rules.compiled(*rule).pattern.as_ref();
        let again = match pattern.is_some_and(|p| p.endless()) {
            true => span.end - span.start,
            false => reach,
        };
        let category = sink.rules.rule(*rule).category;
        let secret = category == Category::Secret;
        let mut start = span.start;
        while start < span.end {
            // `$` is the end of a value, and never that of a window. What is said of a command may end with it.
            let text = match span.end == cell.span.end && category != Category::Injection {
                true => &sink.text()[..span.end as usize],
                false => sink.text(),
            };
            let input = Input::new(text).range(start as usize..span.end as usize);
            let Some(mut found) = search(*rule, &input, sink, scratch) else {
                break;
            };
            // A value that ends with its window may go on behind it.
            let cut = secret && found.0.end == span.end && found.1.end == span.end;
            if cut && span.end < cell.span.end && of_token(&sink.text()[span.end as usize]) {
                let at = (found.0.start, span.end);
                found = longer(*rule, Some(found), at, cell, sink, scratch).unwrap_or(found);
            }
            let (whole, value) = found;
            let idle = |text: &[u8]| {
                super::told::tells_of(text, cell.span, whole)
                    || super::forbidden::forbids(text, cell.span, whole)
            };
            let other = secret && is_id_of_another(sink.text(), whole, value)
                || sink.rules.compiled(*rule).firms && super::assign::is_firms(value, cell, sink);
            if !(other || orders && idle(sink.text())) {
                let found = sink.accept(*rule, value, &mut scratch.compact);
                if found && sink.rules.compiled(*rule).lines {
                    accept_lines(*rule, value, cell, sink, scratch);
                }
            }
            start = whole.end.max(start + 1);
            if !sink
                .limits
                .spend(cost(again.min(span.end.saturating_sub(start))))
            {
                break;
            }
        }
    }
    scratch.windows = windows;
    scratch.windows.clear();
}

/// The values in the lines behind a match that are written as its own is.
fn accept_lines(
    rule: RuleId,
    found: Span,
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) {
    for value in super::assign::lines_behind(sink.text(), found, cell.span.end as usize) {
        if !sink.limits.spend(sink.rules.compiled(rule).weight) {
            break;
        }
        sink.accept(rule, value, &mut scratch.compact);
    }
}

/// `password reset requested correlation_id=a4f1...`: the words that a pattern began with stand before a name that says itself what
/// the value is.
fn is_id_of_another(text: &[u8], whole: Span, value: Span) -> bool {
    let before = &text[whole.start as usize..value.start as usize];
    crate::value::is_uuid(&text[value.range()])
        && before.contains(&b' ')
        && super::coded::names_id(before)
}

/// False when the gate saw none of the words there that every match of the rule holds.
fn may_match(rule: RuleId, span: Span, sink: &Sink<'_>, scratch: &Scratch) -> bool {
    let within = &sink.rules.compiled(rule).within;
    if within.is_empty() {
        return true;
    }
    let first = scratch.hits.partition_point(|h| h.at < span.start);
    let hits = scratch.hits[first..].iter();
    hits.take_while(|h| h.at < span.end).any(|hit| {
        let actions = &sink.rules.actions[usize::from(hit.keyword)];
        actions
            .iter()
            .any(|a| matches!(a, Action::Within(id) if within.contains(id)))
    })
}

/// False when the text lacks something that every match of the rule's pattern holds.
fn holds_needed(rule: RuleId, span: Span, sink: &Sink<'_>, scratch: &mut Scratch) -> bool {
    let Some(pattern) = &sink.rules.compiled(rule).pattern else {
        return false;
    };
    if pattern.holds_run() && !has_run(span, &scratch.traces.runs) {
        return false;
    }
    let folded = &mut scratch.compact;
    folded.clear();
    folded.extend_from_slice(&sink.text()[span.range()]);
    folded.make_ascii_lowercase();
    pattern.may_match(folded)
}

/// Does so much of a long run lie in the span that it is long there?
fn has_run(span: Span, runs: &[Span]) -> bool {
    let first = runs.partition_point(|run| run.end <= span.start);
    let within = runs[first..].iter().take_while(|r| r.start < span.end);
    let inside = |r: &Span| r.end.min(span.end) - r.start.max(span.start);
    within.map(inside).any(|len| len as usize >= RUN_BYTES_MIN)
}

/// The match, and the part of it that is the value.
fn search(
    rule: RuleId,
    input: &Input<'_>,
    sink: &Sink<'_>,
    scratch: &mut Scratch,
) -> Option<(Span, Span)> {
    let pattern = sink.rules.compiled(rule).pattern.as_ref()?;
    scratch.automata.find(pattern, input)
}

/// Does the text go on solidly for long enough? Where it ends with the cell, the next one may have the rest.
fn solid(rest: &[u8], want: usize, at: u32, scratch: &mut Scratch) -> bool {
    let breaks = |b: &u8| *b <= b' ' || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>');
    match rest.iter().take(want).position(breaks) {
        Some(_) => false,
        None if rest.len() < want => {
            scratch.broken.push(at);
            false
        }
        None => true,
    }
}

fn free_before(edge: Edge, text: &[u8], at: usize, floor: usize) -> bool {
    match edge {
        Edge::Any => true,
        Edge::Word => !touches_before(text, at, floor),
        Edge::Strict => {
            let glued = at > floor && matches!(text[at - 1], b'-' | b'.' | b'/');
            !touches_before(text, at, floor) && !glued
        }
    }
}

/// Is the byte before part of the same word? `\n` and `%3D` written out before it are not.
pub(super) fn touches_before(text: &[u8], at: usize, floor: usize) -> bool {
    if at <= floor || !is_word(text[at - 1]) {
        return false;
    }
    let back = |n: usize| (at >= floor + n).then(|| text[at - n]);
    let escape = back(2) == Some(b'\\') && matches!(text[at - 1], b'n' | b't' | b'r');
    let percent = back(3) == Some(b'%')
        && text[at - 2].is_ascii_hexdigit()
        && text[at - 1].is_ascii_hexdigit();
    !escape && !percent
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

fn token_to_end(rest: &[u8]) -> bool {
    rest.iter().all(of_token)
}

/// What tokens are made of.
fn of_token(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'=' | b'+' | b'/' | b':')
}

fn char_start(text: &[u8], mut at: u32) -> u32 {
    while at > 0 && text.get(at as usize).is_some_and(|b| b & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}

fn char_end(text: &[u8], mut at: u32, limit: u32) -> u32 {
    while at < limit && text.get(at as usize).is_some_and(|b| b & 0xC0 == 0x80) {
        at += 1;
    }
    at
}
