//! Whatever a message holds: the decoders end, findings lie in their leaves on characters' boundaries, one message
//! leaves nothing behind for the next, and both engines find the same.
//!
//! Input: leaves, cut apart by NUL; a leaf that begins with `=` is a name for the next one.
#![no_main]

use std::cell::RefCell;
use std::sync::LazyLock;

use dlp_scan::{Budget, Engine, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};
use libfuzzer_sys::fuzz_target;

static OTHER: LazyLock<RuleSet> = LazyLock::new(|| {
    let set = RuleSet::builtin().with_engine(Engine::Vectorscan);
    assert_eq!(set.engine(), Engine::Vectorscan, "libhs took the keywords");
    set
});
static FIRST: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::builtin().with_engine(Engine::Rust));

thread_local! {
    static USED: RefCell<Scanner> = RefCell::new(scanner());
}

fn scanner() -> Scanner {
    Scanner::new(FingerprintKey::new([3; 32]))
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut leaves: Vec<(Option<&str>, &str)> = Vec::new();
    let mut name = None;
    for part in text.split('\0') {
        match part.strip_prefix('=') {
            Some(n) => name = Some(n),
            None => leaves.push((name.take(), part)),
        }
    }
    let scan = |scanner: &mut Scanner, rules: &RuleSet| {
        let inputs = leaves.iter().map(|(name, text)| LeafInput {
            text,
            kind: LeafKind::String,
            name: *name,
        });
        scanner.scan(rules, inputs, &Budget::default())
    };
    let outcome = USED.with_borrow_mut(|scanner| scan(scanner, &FIRST));
    lies_in_leaves(&outcome, &leaves);
    assert_eq!(
        outcome,
        scan(&mut scanner(), &FIRST),
        "a used scanner and a new one"
    );
    assert_eq!(
        outcome,
        USED.with_borrow_mut(|s| scan(s, &OTHER)),
        "both engines"
    );
});

fn lies_in_leaves(outcome: &Outcome, leaves: &[(Option<&str>, &str)]) {
    for f in &outcome.findings {
        let text = leaves[f.leaf as usize].1;
        let found = text.get(f.start as usize..f.end as usize);
        assert!(
            found.is_some_and(|found| !found.is_empty()),
            "{f:?} in {text:?}"
        );
    }
}
