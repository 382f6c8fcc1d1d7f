//! However a text is cut on its way, a stream finds the same, and keeps no more than it says.
//!
//! Input: two bytes for each of up to 8 cuts, then the text, which is repeated to be longer than a window.
#![no_main]

use std::cell::RefCell;

use dlp_scan::{Budget, FingerprintKey, LeafKind, LeafStream, RuleSet, Scanner};
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
    let text = text.repeat(3000 / text.len() + 1);
    let mut at: Vec<usize> = cuts
        .as_chunks::<2>()
        .0
        .iter()
        .map(|c| text.floor_char_boundary(usize::from(u16::from_le_bytes(*c)) % (text.len() + 1)))
        .collect();
    at.sort_unstable();
    SCANNER.with_borrow_mut(|scanner| {
        assert_eq!(stream(scanner, &text, &[]), stream(scanner, &text, &at));
    });
});

fn stream(scanner: &mut Scanner, text: &str, cuts: &[usize]) -> Vec<(u64, u64, dlp_scan::RuleId)> {
    let hold_back = LeafStream::<()>::HOLD_BACK_MIN;
    let mut stream = LeafStream::new(hold_back, hold_back);
    stream.begin(LeafKind::String, Some("text".into()), (), 0);
    let (rules, budget) = (RuleSet::builtin(), Budget::default());
    let mut found = Vec::new();
    let mut decide = |stream: &mut LeafStream<()>, last: bool| {
        let step = stream.decide(scanner, rules, &budget, last);
        assert!(last || (step.from.leaf, step.from.byte) < (step.to.leaf, step.to.byte));
        found.extend(step.findings.iter().map(|f| {
            let at = stream.offset(f.leaf as usize);
            (at + u64::from(f.start), at + u64::from(f.end), f.rule)
        }));
        stream.forget();
    };
    let mut from = 0;
    for &to in cuts.iter().chain([&text.len()]) {
        let mut rest = &text[from..to];
        // As whoever reads in chunks does it.
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(64.min(rest.len())));
            stream.push(piece);
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
