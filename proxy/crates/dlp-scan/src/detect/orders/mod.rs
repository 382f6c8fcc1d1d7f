//! Orders to a model, by what their words do in the sentence: who is spoken to, what is to be dropped, sent, shown or
//! hushed up, whose it is, where it goes. A keyword only says which sentence to read.

mod judge;
mod split;

use self::judge::{Classes, ORDERS};
use super::{Scratch, Sink, told};
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
    let at = split::floor(text, at as usize - base);
    let here = split::around(text, at);
    scratch.done[rule.index()] = crate::text::to_u32(base + here.end);
    if !sink.limits.spend(8 + crate::text::to_u32(here.len()) / 8) {
        return;
    }
    let found = Span::new(base + here.start, base + here.end);
    let sentence = &text[here.clone()];
    let classes = read(sentence);
    if !ORDERS.may_order(&classes) {
        return;
    }
    let after = here.end..split::end(text, here.end);
    let before = split::before(text, here.start);
    let near = judge::merge(&[&read(&text[before]), &read(&text[after])]);
    if ORDERS.order(&classes, &near).is_some() && !told::tells_in(sink.text(), cell.span, found) {
        let lead = sentence.len() - sentence.trim_start().len();
        let span = Span::new(found.start as usize + lead, base + here.start + sentence.trim_end().len());
        sink.report(rule, span, sink.rules.rule(rule).confidence);
    }
}

fn read(sentence: &str) -> Classes {
    if judge::is_code(sentence) {
        return Classes::default();
    }
    ORDERS.classes(&judge::plain(sentence))
}
