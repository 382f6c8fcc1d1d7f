//! All engines find the same: on the rules' examples, on real tool results, and on messages made out of both.
#![cfg(feature = "vectorscan")]

mod common;

use common::{Generator, Leaves, inputs};
use dlp_scan::Category;
use dlp_scan::{Budget, Engine, FingerprintKey, Own, RuleSet, RuleSource, Scanner, ValueList};

struct Pair {
    sets: Vec<RuleSet>,
    scanner: Scanner,
    messages: usize,
    findings: usize,
}

impl Pair {
    fn new(rules: &RuleSet) -> Self {
        let sets: Vec<_> = Engine::ALL.iter().map(|e| rules.with_engine(*e)).collect();
        let engines: Vec<_> = sets.iter().map(RuleSet::engine).collect();
        assert_eq!(engines, [Engine::Rust, Engine::Vectorscan]);
        Self {
            sets,
            scanner: Scanner::new(FingerprintKey::new([9; 32])),
            messages: 0,
            findings: 0,
        }
    }

    fn agree(&mut self, leaves: &Leaves) {
        let mut scan = |set: &RuleSet| self.scanner.scan(set, inputs(leaves), &Budget::default());
        let (a, b) = (scan(&self.sets[0]), scan(&self.sets[1]));
        assert_eq!(a, b, "{leaves:?}");
        self.messages += 1;
        self.findings += a.findings.len();
    }
}

#[test]
fn engines_agree_on_examples_and_tool_results() {
    let mut pair = Pair::new(RuleSet::builtin());
    for text in common::examples().into_iter().chain(common::results()) {
        pair.agree(&vec![(String::new(), text)]);
    }
    assert!(pair.findings > 1000, "{} findings", pair.findings);
}

#[test]
fn engines_agree_on_a_hundred_thousand_made_up_messages() {
    let mut pair = Pair::new(RuleSet::builtin());
    let mut generator = Generator::new(0x9E37_79B9_7F4A_7C15);
    for _ in 0..100_000 {
        pair.agree(&generator.message());
    }
    assert!(pair.findings > 50_000, "{} findings", pair.findings);
}

#[test]
fn engines_agree_on_a_tenants_own_rules_and_values() {
    let yaml = "rules: [{id: acme-badge, title: Badge, category: pii, keywords: [acme-], pattern: 'ACME-[0-9]{6}',
      examples: [ACME-123456]}]";
    let sources = [RuleSource {
        name: "acme.yml",
        yaml,
    }];
    let values = ["zürich-geheim-77", "plain value of ours", "0x1f\u{1f}bytes"];
    let lists = [ValueList {
        id: "ours",
        title: "ours",
        category: Category::Secret,
        values: &values,
    }];
    let own = Own {
        sources: &sources,
        lists: &lists,
        ..Own::default()
    };
    let mut pair = Pair::new(&RuleSet::builtin().with(&own).expect("good rules"));
    let mut generator = Generator::new(77);
    for _ in 0..2_000 {
        let mut message = generator.message();
        let value = values[generator.below(values.len())];
        message.push(("x".to_owned(), format!("acme-123456 {value} ZÜRICH")));
        pair.agree(&message);
    }
    assert!(pair.findings > 2_000, "{} findings", pair.findings);
}
