//! What a rule file says about its rules, for people: lists, reference pages, explanations.

use std::borrow::Cow;

use super::load::{self, Edge, RawKind, RawNeed};
use super::{RuleError, RuleSource, pattern};
use crate::Category;

/// All that stands in a file about one rule, its defaults filled in.
#[derive(Clone, Debug)]
pub struct RuleFacts {
    /// Stable name.
    pub id: String,
    /// What it finds.
    pub category: Category,
    /// A line for people.
    pub title: String,
    /// Why it matters. May be empty.
    pub description: String,
    /// `token`, `text`, `assign`, `number` or `detector`.
    pub kind: &'static str,
    /// 0 to 100: how sure a plain match is.
    pub confidence: u8,
    /// Texts that every match holds one of.
    pub keywords: Vec<String>,
    /// The pattern, if it has one.
    pub pattern: Option<String>,
    /// Shapes of numbers.
    pub shapes: Vec<String>,
    /// Named checks, all of which must hold.
    pub checks: Vec<String>,
    /// Words that have to stand nearby.
    pub context: Vec<String>,
    /// For numbers: `nothing`, `context` or `context-or-alone`.
    pub need: &'static str,
    /// Bits for each byte, at least.
    pub entropy: f32,
    /// What may touch the value: `word`, `strict` or `any`.
    pub before: &'static str,
    /// Where the facts of the format come from.
    pub provenance: String,
    /// The file.
    pub file: String,
    /// How many examples and counter-examples it has.
    pub examples: (usize, usize),
}

impl RuleFacts {
    /// The rules of one file, in order.
    ///
    /// # Errors
    /// The file is no rule file.
    pub fn of(source: &RuleSource<'_>) -> Result<Vec<Self>, RuleError> {
        let file = load::load(source)?;
        let defaults = file.defaults;
        let facts = file.rules.into_iter().map(|raw| Self {
            category: raw
                .category
                .or(defaults.category)
                .unwrap_or(Category::Secret),
            kind: match raw.kind.or(defaults.kind).unwrap_or(RawKind::Token) {
                RawKind::Token => "token",
                RawKind::Text => "text",
                RawKind::Assign => "assign",
                RawKind::Number => "number",
                RawKind::Detector => "detector",
            },
            confidence: raw.confidence.or(defaults.confidence).unwrap_or(90),
            need: match raw.need {
                RawNeed::Nothing => "nothing",
                RawNeed::Context => "context",
                RawNeed::ContextOrAlone => "context-or-alone",
            },
            before: match raw.before {
                Edge::Word => "word",
                Edge::Strict => "strict",
                Edge::Any => "any",
            },
            provenance: if raw.provenance.is_empty() {
                defaults.provenance.clone()
            } else {
                raw.provenance
            },
            file: source.name.to_owned(),
            examples: (raw.examples.len(), raw.counter_examples.len()),
            id: raw.id,
            title: raw.title,
            description: raw.description,
            keywords: raw.keywords,
            pattern: raw.pattern,
            shapes: raw.shapes,
            checks: raw.checks,
            context: raw.context,
            entropy: raw.entropy,
        });
        Ok(facts.collect())
    }

    /// The pattern as any engine of regular expressions over bytes reads it: letters beyond ASCII that stand in a pattern of
    /// bytes are spelled out. A pattern that is ASCII then is meant without Unicode, another one with it.
    ///
    /// # Errors
    /// The pattern has such a letter where none can stand.
    pub fn portable_pattern(&self) -> Result<Option<Cow<'_, str>>, String> {
        self.pattern.as_deref().map(pattern::spelled).transpose()
    }
}
