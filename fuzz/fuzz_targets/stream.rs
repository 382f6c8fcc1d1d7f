//! However a text is cut on its way, a stream finds the same, as long as that is no longer than the hold-back, and it keeps no
//! more than it says.
//!
//! Input: two bytes for each of up to 8 cuts, then a piece of text. It is repeated, to be longer than a window, with plain
//! words between: without them a value, or what is encoded, would go on from one to the next, for longer than the hold-back.
#![no_main]

use std::cell::RefCell;

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, LeafStream, RuleSet, Scanner};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SCANNER: RefCell<Scanner> = RefCell::new(Scanner::new(FingerprintKey::new([3; 32])));
}

fuzz_target!(|data: &[u8]| {
    let Some((cuts, text)) = data.split_at_checked(16) else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    if text.is_empty() {
        return;
    }
    // One line: what heads a table is not seen a window away.
    let piece = text[..text.floor_char_boundary(PIECE_MAX)].replace('\n', " ");
    let unit = format!("{piece} {}", "and plain words after it ".repeat(12));
    let text = unit.repeat(3000 / unit.len() + 1);
    let mut at: Vec<usize> = cuts
        .as_chunks::<2>()
        .0
        .iter()
        .map(|c| text.floor_char_boundary(usize::from(u16::from_le_bytes(*c)) % (text.len() + 1)))
        .collect();
    at.sort_unstable();
    SCANNER.with_borrow_mut(|scanner| {
        // What is longer than the hold-back may come in parts, and what lies there by another name.
        let long: Vec<_> = whole(scanner, &text)
            .into_iter()
            .filter(|f| f.1 - f.0 > LeafStream::<()>::HOLD_BACK_MIN as u64)
            .collect();
        let mut found = |cuts: &[usize]| -> Vec<Found> {
            let clear = |f: &Found| !long.iter().any(|l| f.0 < l.1 && l.0 < f.1);
            let all = stream(scanner, &text, cuts).into_iter();
            all.filter(clear).collect()
        };
        assert_eq!(found(&[]), found(&at));
    });
});

/// Shorter than the hold-back.
const PIECE_MAX: usize = 200;

/// From, to, and by which rule.
type Found = (u64, u64, dlp_scan::RuleId);

fn whole(scanner: &mut Scanner, text: &str) -> Vec<Found> {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: Some("text"),
    };
    let outcome = scanner.scan(RuleSet::builtin(), [leaf].into_iter(), &Budget::default());
    let found = outcome.findings.iter();
    found
        .map(|f| (u64::from(f.start), u64::from(f.end), f.rule))
        .collect()
}

fn stream(scanner: &mut Scanner, text: &str, cuts: &[usize]) -> Vec<Found> {
    let hold_back = LeafStream::<()>::HOLD_BACK_MIN;
    let mut stream = LeafStream::new(hold_back, hold_back);
    stream.begin(LeafKind::String, Some("text".into()), (), 0);
    let (rules, budget) = (RuleSet::builtin(), Budget::default());
    let mut found = Vec::new();
    let mut decide = |stream: &mut LeafStream<()>, last: bool| {
        let step = stream.decide(scanner, rules, &budget, last);
        assert!(last || (step.from.leaf, step.from.byte) < (step.to.leaf, step.to.byte));
        for f in &step.findings {
            let at = stream.offset(f.leaf as usize);
            let (start, end) = (at + u64::from(f.start), at + u64::from(f.end));
            // One that is longer than a step comes in parts.
            match found
                .iter_mut()
                .find(|p: &&mut Found| p.1 == start && p.2 == f.rule)
            {
                Some(part) => part.1 = end,
                None => found.push((start, end, f.rule)),
            }
        }
        stream.forget();
    };
    let mut from = 0;
    for &to in cuts.iter().chain([&text.len()]) {
        let mut rest = &text[from..to];
        // As whoever reads in chunks does it.
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(64.min(rest.len())));
            stream.push(piece);
            assert!(stream.text(0).len() <= stream.bytes_max() + piece.len());
            rest = after;
            while stream.is_full() {
                decide(&mut stream, false);
            }
        }
        from = to;
    }
    decide(&mut stream, true);
    found
}
