//! What is found in one text.

use dlp_scan::{Budget, Finding, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

/// What is found that is `wanted`, as it is written.
pub fn found(text: &str, wanted: impl Fn(&Finding) -> bool) -> Vec<String> {
    let leaf = LeafInput {
        text,
        kind: LeafKind::String,
        name: None,
    };
    let mut scanner = Scanner::new(FingerprintKey::new([8; 32]));
    let outcome = scanner.scan(RuleSet::builtin(), [leaf].into_iter(), &Budget::default());
    let places = outcome.findings.iter().filter(|f| wanted(f));
    places
        .map(|f| text[f.start as usize..f.end as usize].to_owned())
        .collect()
}
