//! What of pins may be written down: a definition in which rules find a secret or personal data is kept as its hash, and a tool
//! with such a name not at all. Looked at when pins are saved, so that no message waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use dlp_scan::{Budget, Category, FingerprintKey, LeafInput, LeafKind, Outcome, RuleSet, Scanner};
use domain::{Definition, ToolPins};
use mcp_codec::{Document, Limits};

use crate::pipeline::leaf_input;

/// Knows what was clean before, by its hash: at most the definitions of one server.
#[derive(Default)]
pub(super) struct Cleaner {
    rules: Option<Arc<RuleSet>>,
    known: HashMap<String, bool>,
}

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleaner").finish_non_exhaustive()
    }
}

impl Cleaner {
    /// From now on these rules say what is clean.
    pub(super) fn judges_by(&mut self, rules: &Arc<RuleSet>) {
        if !self
            .rules
            .as_ref()
            .is_some_and(|old| Arc::ptr_eq(old, rules))
        {
            self.rules = Some(Arc::clone(rules));
            self.known = HashMap::new();
        }
    }

    /// Takes out what may not be written down.
    pub(super) fn clean(&mut self, pins: &mut ToolPins) {
        let before = std::mem::take(&mut self.known);
        let mut look = Look {
            rules: self.rules.as_deref(),
            before,
            known: HashMap::new(),
            scanner: None,
        };
        pins.tools.retain(|name, _| look.is_clean_name(name));
        for pin in pins.tools.values_mut() {
            let both = [&mut pin.approved, &mut pin.other].into_iter().flatten();
            both.for_each(|definition| look.at(definition));
        }
        self.known = look.known;
    }
}

struct Look<'a> {
    rules: Option<&'a RuleSet>,
    before: HashMap<String, bool>,
    known: HashMap<String, bool>,
    scanner: Option<Scanner>,
}

impl Look<'_> {
    fn at(&mut self, definition: &mut Definition) {
        let Some(text) = &definition.text else { return };
        let is_clean = match self.before.get(&definition.sha256) {
            Some(known) => *known,
            None => self.is_clean_text(text),
        };
        self.known.insert(definition.sha256.clone(), is_clean);
        if !is_clean {
            definition.text = None;
        }
    }

    fn is_clean_name(&mut self, name: &str) -> bool {
        // No hash is as short or has such a sign in it.
        let key = format!("name {name}");
        let is_clean = match (self.before.get(&key), self.rules) {
            (Some(known), _) => *known,
            // Nothing is known of what is looked for.
            (None, None) => true,
            (None, Some(_)) => {
                let leaf = LeafInput {
                    text: name,
                    kind: LeafKind::String,
                    name: None,
                };
                self.scan([leaf].into_iter())
            }
        };
        self.known.insert(key, is_clean);
        is_clean
    }

    fn is_clean_text(&mut self, text: &str) -> bool {
        match Document::parse(text.to_owned().into(), &Limits::default()) {
            Ok(doc) => self.scan(doc.leaves().map(leaf_input)),
            Err(_) => false,
        }
    }

    fn scan<'t>(&mut self, leaves: impl Iterator<Item = LeafInput<'t>> + Clone) -> bool {
        let Some(rules) = self.rules else {
            return false;
        };
        let scanner = self
            .scanner
            .get_or_insert_with(|| Scanner::new(FingerprintKey::new([0; 32])));
        let Outcome {
            findings,
            over_budget,
        } = scanner.scan(rules, leaves, &Budget::default());
        let tells = |category| matches!(category, Category::Secret | Category::Pii);
        over_budget.is_none() && !findings.iter().any(|finding| tells(finding.category))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins::Pins;

    #[test]
    fn nothing_that_rules_find_is_written_down() {
        let token = "AKIAQ3EGRX7ZKTWM4LHB";
        let list = format!(
            r#"[{{"name":"a","description":"reads"}},{{"name":"b","description":"use {token}"}},{{"name":"{token}"}}]"#
        );
        let doc = Document::parse(list.into(), &Limits::default()).unwrap();
        let pins = Pins::default();
        pins.judges_by(RuleSet::builtin());
        pins.listed(&doc, doc.root(), true, 1);
        for _ in 0..2 {
            let saved = pins.to_save(None).unwrap().pins;
            let names: Vec<_> = saved.tools.keys().map(String::as_str).collect();
            assert_eq!(names, ["a", "b"]);
            let text = |name: &str| saved.tools[name].approved.as_ref().unwrap().text.as_deref();
            assert_eq!(text("a"), Some(r#"{"description":"reads","name":"a"}"#));
            assert_eq!(text("b"), None);
        }
    }
}
