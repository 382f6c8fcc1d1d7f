//! Whatever a tenant writes as a rule file is refused with a place and a reason, or gives a set that scans.
//!
//! Input: a rule file.
#![no_main]

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, Own, RuleSet, RuleSource, Scanner};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(yaml) = std::str::from_utf8(data) else {
        return;
    };
    let sources = [RuleSource {
        name: "own.yml",
        yaml,
    }];
    let own = Own {
        sources: &sources,
        ..Own::default()
    };
    match empty().with(&own) {
        Ok(rules) => {
            let mut scanner = Scanner::new(FingerprintKey::new([3; 32]));
            let leaf = LeafInput {
                text: yaml,
                kind: LeafKind::String,
                name: None,
            };
            scanner.scan(&rules, [leaf].into_iter(), &Budget::default());
            let _ = rules.failed_examples(&sources);
        }
        Err(error) => {
            assert!(
                !error.problem.is_empty() && error.file == "own.yml",
                "{error:?}"
            );
            // To YAML, a carriage return alone ends a line too.
            let lines = yaml.split(['\n', '\r']).count();
            assert!(error.line <= lines + 1, "{error}");
        }
    }
});

/// A set without rules, which is quick to add to.
fn empty() -> RuleSet {
    RuleSet::compile(&[]).expect("nothing can be wrong with nothing")
}
