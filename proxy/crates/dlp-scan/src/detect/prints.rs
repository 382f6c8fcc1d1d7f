//! Values of which only prints are known.

use super::{Scratch, Sink};
use crate::text::Span;

/// A hash of this many bytes counts as one look.
const LOOK_BYTES: usize = 64;

pub(super) fn scan(sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let (rules, node) = (sink.rules, sink.node);
    let Some((rule, set)) = &rules.prints else {
        return;
    };
    for cell in &node.cells {
        let text = &node.text[cell.span.range()];
        let first = cell.span.start as usize;
        for at in set.candidates(text) {
            let look = |bytes: usize| {
                let cost = u32::try_from(1 + bytes / LOOK_BYTES).unwrap_or(u32::MAX);
                sink.limits.spend(cost)
            };
            let found = set.at(text, at, look);
            let start = first + at;
            if let Some(len) = found.len {
                sink.report(*rule, Span::new(start, start + len), 100);
            } else if found.cut {
                scratch.broken.push(crate::text::to_u32(start));
            }
        }
    }
}
