//! The reference page of the built-in rules: docs/rules.md, made from the rule files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dlp_scan::{Category, RuleFacts, RuleSet};

use super::rules::severity;

/// The page.
pub fn page() -> String {
    let mut by_category: BTreeMap<Category, Vec<RuleFacts>> = BTreeMap::new();
    for source in RuleSet::builtin_sources() {
        let facts = RuleFacts::of(source).expect("a test compiles the shipped rules");
        for fact in facts {
            by_category.entry(fact.category).or_default().push(fact);
        }
    }
    let mut out = String::from(HEAD);
    for (category, facts) in &by_category {
        // Writing to a String cannot fail.
        let _ = write!(out, "\n## {} ({} rules)\n", title(*category), facts.len());
        let mut file = "";
        for f in facts {
            if f.file != file {
                file = &f.file;
                let _ = write!(out, "\n### {file}\n\n{COLUMNS}");
            }
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} | {} |",
                f.id,
                cell(&f.title),
                severity(f),
                cell(&needs(f)),
                cell(&f.provenance),
            );
        }
    }
    out
}

const HEAD: &str = "# The built-in rules

Made from `policies/rules` by `weir rules reference > docs/rules.md`; a test compares. `weir rules show ID` says all about
one rule, `docs/detection.md` what the fields of a rule mean, `docs/policy.md` what is done about a finding.

Severity goes by category and by how sure a plain match is: critical and high for secrets, high and medium for injection,
medium and low for personal data.
";

const COLUMNS: &str = "| id | finds | severity | besides its pattern it needs | facts from |\n|---|---|---|---|---|\n";

fn title(category: Category) -> &'static str {
    match category {
        Category::Secret => "Secrets",
        Category::Pii => "Personal data",
        Category::Injection => "Injection",
    }
}

/// What a value needs besides its form.
fn needs(f: &RuleFacts) -> String {
    let mut needs = Vec::new();
    if !f.checks.is_empty() {
        needs.push(f.checks.join(", "));
    }
    match (f.kind, f.need, f.context.is_empty()) {
        ("number", "context", false) | ("text", _, false) => needs.push("a word near it".into()),
        ("number", "context-or-alone", false) => {
            needs.push("a word near it, or to stand alone".into())
        }
        ("assign", ..) => needs.push("its name".into()),
        ("detector", ..) => needs.push("code".into()),
        _ => {}
    }
    if f.entropy > 0.0 {
        needs.push(format!("{} bits a byte", f.entropy));
    }
    needs.join("; ")
}

/// A text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_page_is_the_generated_one() {
        let published = include_str!("../../../docs/rules.md");
        assert!(
            published == page(),
            "docs/rules.md is old; run `weir rules reference > docs/rules.md`"
        );
    }

    #[test]
    fn every_rule_has_a_row() {
        let page = page();
        for (_, rule) in RuleSet::builtin().rules() {
            assert!(
                page.contains(&format!("\n| `{}` | ", rule.id)),
                "{}",
                rule.id
            );
        }
    }
}
