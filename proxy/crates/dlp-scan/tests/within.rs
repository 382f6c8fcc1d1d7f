//! `within` saves work and changes nothing: the rules without it find the same.

mod common;

use common::{Generator, inputs};
use dlp_scan::{Budget, FingerprintKey, RuleSet, RuleSource, Scanner};

#[test]
fn words_within_lose_no_match() {
    let texts: Vec<(&str, String)> = RuleSet::builtin_sources()
        .iter()
        .map(|source| {
            // The field is a list, of one line or several.
            let mut within = false;
            let lines = source.yaml.lines().filter(|line| {
                let of_it = within || line.starts_with("  within: ");
                within = of_it && !line.ends_with(']');
                !of_it
            });
            (source.name, lines.collect::<Vec<_>>().join("\n"))
        })
        .collect();
    let sources: Vec<_> = texts
        .iter()
        .map(|(name, yaml)| RuleSource { name, yaml })
        .collect();
    let dropped = RuleSet::builtin_sources()
        .iter()
        .map(|s| s.yaml.len())
        .sum::<usize>()
        - texts.iter().map(|(_, yaml)| yaml.len()).sum::<usize>();
    assert!(dropped > 100, "no rule has the field");
    let (with, without) = (
        RuleSet::builtin(),
        RuleSet::compile(&sources).expect("good rules"),
    );
    let mut scanner = Scanner::new(FingerprintKey::new([9; 32]));
    let mut agree = |leaves: &common::Leaves| {
        let a = scanner.scan(with, inputs(leaves), &Budget::default());
        let b = scanner.scan(&without, inputs(leaves), &Budget::default());
        // Looks are counted, and the rules without the field look more often.
        if a.over_budget.is_none() && b.over_budget.is_none() {
            assert_eq!(a, b, "{leaves:?}");
        }
        a.findings.len()
    };
    let mut found = 0;
    for text in common::examples().into_iter().chain(common::results()) {
        found += agree(&vec![(String::new(), text)]);
    }
    let mut generator = Generator::new(31);
    for _ in 0..10_000 {
        found += agree(&generator.message());
    }
    assert!(found > 5_000, "{found} findings");
}
