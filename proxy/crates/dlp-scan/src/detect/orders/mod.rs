//! Orders to a model, by what their words do in the sentence: who is spoken to, what is to be dropped, sent, shown or
//! hushed up, whose it is, where it goes. A keyword only says which sentence to read.

mod judge;
mod split;

use std::ops::Range;

use self::judge::{Classes, ORDERS};
use super::{Scratch, Sink, told};
use crate::rule::RuleId;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};

/// Reads the sentence around `at`, and those beside it if it takes them to say what it is.
pub(super) fn scan(at: u32, cell: &Cell, sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let Some(rule) = sink.rules.detectors[Detector::Orders as usize] else {
        return;
    };
    // One reading is enough for all keywords of a sentence.
    if at < scratch.done[rule.index()] {
        return;
    }
    let (base, text) = vicinity(sink.text(), at as usize, cell.span);
    let here = split::around(text, split::floor(text, at as usize - base));
    scratch.done[rule.index()] = crate::text::to_u32(base + here.end);
    if !sink.limits.spend(8 + crate::text::to_u32(here.len()) / 8) {
        return;
    }
    let classes = read(&text[here.clone()]);
    let ordered = ORDERS.may_order(&classes);
    // "Hello assistant!" gives no order; what follows may.
    let called = ORDERS.calls(&classes);
    if !ordered && !called {
        return;
    }
    let next = here.end..split::end(text, here.end);
    let after = read(&text[next.clone()]);
    if ordered {
        let before = read(&text[split::before(text, here.start)]);
        if ORDERS.order(&classes, &judge::merge(&[&before, &after])) {
            report(rule, cell, (base, text), here, sink);
            return;
        }
    }
    if called && ORDERS.order(&after, &classes) {
        report(rule, cell, (base, text), next, sink);
    }
}

/// The text that the sentence at `at` and those beside it lie in, and where it begins.
fn vicinity(text: &[u8], at: usize, cell: Span) -> (usize, &str) {
    const REACH: usize = 2 * split::SENTENCE_BYTES_MAX;
    let mut start = at.saturating_sub(REACH).max(cell.start as usize);
    let end = (at + REACH).min(cell.end as usize);
    // The bytes of a character that was cut in two.
    while start < at && text[start] & 0xC0 == 0x80 {
        start += 1;
    }
    let text = &text[start..end];
    let whole = std::str::from_utf8(text).map_or_else(|e| &text[..e.valid_up_to()], |_| text);
    (start, std::str::from_utf8(whole).unwrap_or_default())
}

/// Reports a sentence, unless the text only tells of the order in it.
fn report(rule: RuleId, cell: &Cell, (base, text): (usize, &str), sentence: Range<usize>, sink: &mut Sink<'_>) {
    let trimmed = text[sentence.clone()].trim_start();
    let start = base + sentence.end - trimmed.len();
    let found = Span::new(start, start + trimmed.trim_end().len());
    if !found.is_empty() && !told::tells_in(sink.text(), cell.span, found) {
        sink.report(rule, found, sink.rules.rule(rule).confidence);
    }
}

fn read(sentence: &str) -> Classes {
    if judge::is_code(sentence) {
        return Classes::default();
    }
    ORDERS.classes(&judge::plain(sentence))
}
