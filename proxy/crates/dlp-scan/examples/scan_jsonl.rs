//! Speaks the labelled corpus' protocol: `{"id","text"}` lines in, findings in code points out.

use std::io::{BufRead, Write};

use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rules = match std::env::var_os("RULES_DIR") {
        Some(dir) => load(dir.as_ref())?,
        None => RuleSet::builtin().clone(),
    };
    let mut scanner = Scanner::new(FingerprintKey::new([0; 32]));
    let explain = std::env::args().any(|a| a == "--explain");
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let row: serde_json::Value = serde_json::from_str(&line?)?;
        let text = row["text"].as_str().unwrap_or_default();
        let leaf = LeafInput {
            text,
            kind: LeafKind::String,
            name: None,
        };
        let outcome = scanner.scan(&rules, [leaf].into_iter(), &Budget::default());
        let points = |at: u32| text[..at as usize].chars().count();
        let findings: Vec<_> = outcome
            .findings
            .iter()
            .map(|f| {
                let mut shown = serde_json::json!({
                    "rule": rules.rule(f.rule).id, "category": f.category, "start": points(f.start), "end": points(f.end),
                });
                if explain {
                    shown["layers"] = f.layers.to_string().into();
                    shown["text"] = text[f.start as usize..f.end as usize].into();
                    shown["confidence"] = f.confidence.into();
                }
                shown
            })
            .collect();
        let mut answer = serde_json::json!({"id": row["id"], "findings": findings});
        if let Some(over) = outcome.over_budget {
            answer["over_budget"] = over.to_string().into();
        }
        writeln!(out, "{answer}")?;
    }
    Ok(())
}

/// Rule files of a directory instead of the built-in ones, to try changes without compiling.
fn load(dir: &std::path::Path) -> Result<std::sync::Arc<RuleSet>, Box<dyn std::error::Error>> {
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "yml") {
            texts.push((path.display().to_string(), std::fs::read_to_string(&path)?));
        }
    }
    texts.sort();
    let sources: Vec<_> = texts
        .iter()
        .map(|(name, yaml)| dlp_scan::RuleSource { name, yaml })
        .collect();
    Ok(std::sync::Arc::new(RuleSet::compile(&sources)?))
}
