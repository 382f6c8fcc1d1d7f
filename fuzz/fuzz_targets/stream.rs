//! However a text is cut on its way, a stream finds the same, and keeps no more than it says.
//!
//! Input: two bytes for each of up to 8 cuts, then the text, which is repeated to be longer than a window.
#![no_main]

use std::cell::RefCell;

use dlp_scan::{Budget, FingerprintKey, RuleSet, Scanner, StreamFinding, StreamScanner};
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
    let mut stream = StreamScanner::new(StreamScanner::HOLD_BACK_MIN, Some("text"));
    let (rules, budget) = (RuleSet::builtin(), Budget::default());
    let mut found: Vec<StreamFinding> = Vec::new();
    let mut from = 0;
    for &to in cuts.iter().chain([&text.len()]) {
        stream.push(scanner, rules, &budget, &text[from..to], &mut found);
        from = to;
    }
    stream.finish(scanner, rules, &budget, &mut found);
    found
        .iter()
        .map(|f| (f.start, f.end, f.finding.rule))
        .collect()
}
