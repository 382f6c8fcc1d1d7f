//! Rule files as they are written.

use serde::Deserialize;

use super::compile::Refusal;
use super::pattern::{Filler, Lists};
use super::{Detector, RuleError, RuleSource, place};
use crate::Category;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[serde(default)]
    pub defaults: Defaults,
    /// Words that patterns and keywords of several rules have in common.
    #[serde(default)]
    pub lists: Lists,
    pub rules: Vec<RawRule>,
}

/// What the rules of a file have in common.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defaults {
    pub category: Option<Category>,
    pub kind: Option<RawKind>,
    pub confidence: Option<u8>,
    #[serde(default)]
    pub provenance: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RawKind {
    Token,
    Text,
    Assign,
    Number,
    Detector,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Edge {
    /// A letter, digit or `_` may not touch.
    #[default]
    Word,
    /// Nor may `-`, `.`, `/`.
    Strict,
    /// Anything may.
    Any,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RawNeed {
    Nothing,
    #[default]
    Context,
    ContextOrAlone,
}

/// A rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRule {
    pub id: String,
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub category: Option<Category>,
    pub kind: Option<RawKind>,
    #[serde(default)]
    pub keywords: Vec<String>,
    pub pattern: Option<String>,
    #[serde(default)]
    pub shapes: Vec<String>,
    #[serde(default)]
    pub before: Edge,
    #[serde(default)]
    pub after: Edge,
    #[serde(default)]
    pub back: u32,
    pub ahead: Option<u32>,
    #[serde(default)]
    pub checks: Vec<String>,
    #[serde(default)]
    pub solid: u16,
    #[serde(default)]
    pub entropy: f32,
    #[serde(default)]
    pub context: Vec<String>,
    #[serde(default)]
    pub within: Vec<String>,
    #[serde(default)]
    pub need: RawNeed,
    #[serde(default)]
    pub any_name: bool,
    #[serde(default)]
    pub placeholders_pass: bool,
    #[serde(default)]
    pub lines: bool,
    #[serde(default)]
    pub firms: bool,
    #[serde(default)]
    pub persons: bool,
    pub detector: Option<Detector>,
    pub confidence: Option<u8>,
    #[serde(default)]
    pub provenance: String,
    #[serde(default)]
    pub examples: Vec<Example>,
    #[serde(default)]
    pub counter_examples: Vec<Example>,
}

/// A text, or its parts: what other scanners would refuse to see in a repository is stored in pieces.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Example {
    Whole(String),
    Parts(Vec<String>),
}

impl Example {
    pub fn text(&self) -> String {
        match self {
            Self::Whole(text) => text.clone(),
            Self::Parts(parts) => parts.concat(),
        }
    }
}

/// Reads one file; its patterns are in one line then, and its lists filled in.
pub(crate) fn load(source: &RuleSource<'_>) -> Result<File, RuleError> {
    let mut file: File = yaml_text::read(source.yaml).map_err(|wrong| RuleError {
        file: source.name.to_owned(),
        line: wrong
            .at
            .map_or(0, |(line, _)| usize::try_from(line).unwrap_or(0)),
        rule: None,
        field: "file",
        problem: match place::named_before(source.yaml, &wrong) {
            Some(name) => format!("{name}: {}", wrong.problem),
            None => wrong.problem,
        },
    })?;
    let mut filler = Filler::new(&file.lists);
    for (nth, rule) in file.rules.iter_mut().enumerate() {
        rule.fill(&mut filler)
            .map_err(|(field, problem)| RuleError {
                file: source.name.to_owned(),
                line: place::line_of(source.yaml, nth, field),
                rule: Some(rule.id.clone()),
                field,
                problem,
            })?;
    }
    Ok(file)
}

impl RawRule {
    fn fill(&mut self, filler: &mut Filler<'_>) -> Result<(), Refusal> {
        if let Some(pattern) = &mut self.pattern {
            *pattern = filler.pattern(pattern)?;
        }
        for (field, words) in [
            ("keywords", &mut self.keywords),
            ("context", &mut self.context),
            ("shapes", &mut self.shapes),
        ] {
            *words = filler.words(field, std::mem::take(words))?;
        }
        Ok(())
    }
}
