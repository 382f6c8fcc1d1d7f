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
    let base = cell.span.start as usize;
    let Ok(text) = std::str::from_utf8(&sink.text()[cell.span.range()]) else {
        return;
    };
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
            report(rule, cell, here, sink);
            return;
        }
    }
    if called && ORDERS.order(&after, &classes) {
        report(rule, cell, next, sink);
    }
}

/// Reports a sentence of the cell, unless the text only tells of the order in it.
fn report(rule: RuleId, cell: &Cell, sentence: Range<usize>, sink: &mut Sink<'_>) {
    let base = cell.span.start as usize;
    let bytes = &sink.text()[cell.span.range()][sentence.clone()];
    let lead = bytes.len() - bytes.trim_ascii_start().len();
    let end = base + sentence.start + bytes.trim_ascii_end().len();
    let found = Span::new(base + sentence.start + lead, end);
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
