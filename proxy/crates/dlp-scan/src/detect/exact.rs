//! Values of a list, exactly as they are.

use super::{Scratch, Sink};
use crate::ruleset::{EXACT_FREE_BYTES, Form};
use crate::text::{Cell, Span};

/// The values whose head stands at `at`.
pub(super) fn values(at: u32, cell: &Cell, sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let rules = sink.rules;
    let text = sink.text();
    let rest = &text[at as usize..cell.span.end as usize];
    let mut found = smallvec::SmallVec::<[_; 2]>::new();
    rules.exact.at(
        rest,
        || sink.limits.spend(1),
        |rule, len, form| found.push((rule, len, form)),
    );
    if found.is_empty() && rules.exact.goes_on(rest) {
        scratch.broken.push(at);
    }
    for (rule, len, form) in found {
        let span = Span::new(at as usize, at as usize + len);
        if len >= EXACT_FREE_BYTES || form == Form::Coded || stands_free(text, span, cell) {
            sink.report(rule, span, 100);
        }
    }
}

fn stands_free(text: &[u8], span: Span, cell: &Cell) -> bool {
    let touches = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let (start, end) = (span.start as usize, span.end as usize);
    let before = &text[cell.span.start as usize..start];
    let after = &text[end..cell.span.end as usize];
    !before.last().is_some_and(touches) && !after.first().is_some_and(touches)
}
