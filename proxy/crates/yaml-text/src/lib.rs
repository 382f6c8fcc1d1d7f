//! A YAML text to values, and what is wrong with one in words that people know.
//!
//! Never here: files, I/O. What a text has in place of a value is never repeated: it may be a secret in the wrong field.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_saphyr::{Error as YamlError, Location};

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Line and column, both from 1, where they are known.
    pub at: Option<(u64, u64)>,
    /// Whether a field is missing, so that `at` is where the fields begin that it should stand among.
    pub is_missing: bool,
    /// What to do about it, without the place.
    pub problem: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for Wrong {}

/// Reads a text of one document.
///
/// ```
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Shelf {
///     name: String,
/// }
/// let shelf: Shelf = yaml_text::read("name: north").unwrap();
/// assert_eq!(shelf.name, "north");
/// let wrong = yaml_text::read::<Shelf>("nme: north").unwrap_err();
/// assert_eq!(
///     wrong.to_string(),
///     r#"line 1, column 1: there is no field "nme" here; did you mean "name"?"#
/// );
/// ```
///
/// # Errors
/// What is wrong with the text, and where.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Wrong> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| Wrong::of(&error))
}

/// Reads a text of one document by a deserializer that `f` may put another around.
///
/// # Errors
/// As for [`read`].
pub fn read_with<'de, T, F>(
    text: &'de str,
    options: serde_saphyr::Options,
    f: F,
) -> Result<T, Wrong>
where
    for<'e> F: FnOnce(serde_saphyr::Deserializer<'de, 'e>) -> Result<T, YamlError>,
{
    serde_saphyr::with_deserializer_from_str_with_options(text, options, f)
        .map_err(|error| Wrong::of(&error))
}

/// Tighter than the parser's own bounds: what people write is small and flat.
pub fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 200_000,
            max_events: 500_000,
        },
        with_snippet: false,
        // `yes` is a text in YAML 1.2, and as JSON Schema has it.
        strict_booleans: true,
    }
}

/// Line and column of a place, both from 1; none if the parser does not know it.
pub fn place(location: Location) -> Option<(u64, u64)> {
    (location != Location::UNKNOWN).then(|| (location.line(), location.column()))
}

impl Wrong {
    fn of(error: &YamlError) -> Self {
        let inner = error.without_snippet();
        Self {
            at: error.location().and_then(place),
            is_missing: matches!(inner, YamlError::SerdeMissingField { .. }),
            problem: say(inner),
        }
    }
}

/// The parser's complaint in our words. What was found in place of a value is never repeated: it may
/// be a secret in the wrong field.
fn say(error: &YamlError) -> String {
    let said = said(error);
    match in_words(&said) {
        Some(words) => words.into(),
        None => said,
    }
}

/// What the parser says in its own terms, for people: which kind of thing belongs there, and what to do.
fn in_words(said: &str) -> Option<&'static str> {
    Some(match said {
        "expected mapping start" => {
            "expected fields, each as `name: value` (in one line: {name: value})"
        }
        "expected sequence start" => {
            "expected a list: [a, b] in one line, or one line for each that begins with `- `"
        }
        "expected string scalar" => "expected a single text",
        "expected boolean" => "expected true or false",
        "expected u8" | "expected u16" | "expected u32" | "expected u64" | "expected usize" => {
            "expected a whole number, 0 or more"
        }
        "expected i32" | "expected i64" => "expected a whole number",
        "expected f32" | "expected f64" => "expected a number",
        said if said.contains("anchor") || said.contains("alias") => {
            "a text that begins with * or & is a reference in YAML; put it in quotes, such as \"*\""
        }
        said if said.starts_with("unexpected character") => {
            "a text may not begin with this sign in YAML; put it in quotes"
        }
        said if said.starts_with("cannot deserialize null") => {
            "there is no value here; write one, or take the field out"
        }
        said if said.starts_with("data did not match any variant") => {
            "what stands here has none of the forms that it may have"
        }
        _ => return None,
    })
}

fn said(error: &YamlError) -> String {
    match error {
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => unknown("field", field, expected),
        YamlError::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("word", variant, expected),
        YamlError::SerdeMissingField { field, .. } => {
            format!("the field {field:?} is missing; add it")
        }
        YamlError::SerdeInvalidType {
            unexpected,
            expected,
            ..
        }
        | YamlError::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => format!("expected {expected}, found {}", kind_of(unexpected)),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => twice(key),
        YamlError::InvalidBooleanStrict { .. } => "expected boolean".into(),
        YamlError::InvalidScalar { ty, .. } => format!("expected {ty}"),
        YamlError::MultipleDocuments { .. } => {
            "there is more than one YAML document here; keep one".into()
        }
        YamlError::Budget { .. } => "larger or deeper than it may be".into(),
        other => strip_place(&other.to_string()),
    }
}

/// What is wrong with a field that stands twice among the same ones.
pub fn twice(key: &str) -> String {
    format!("{key:?} stands here twice; keep one")
}

fn unknown(what: &str, word: &str, known: &[&'static str]) -> String {
    let word: String = word.chars().take(64).collect();
    match domain::nearest(&word, known.iter().copied()) {
        Some(near) => format!("there is no {what} {word:?} here; did you mean {near:?}?"),
        None => format!(
            "there is no {what} {word:?} here; use one of: {}",
            known.join(", ")
        ),
    }
}

/// `string "abc"` -> `string`
fn kind_of(unexpected: &str) -> &str {
    let end = unexpected.find(['"', '`']).unwrap_or(unexpected.len());
    unexpected[..end].trim_end()
}

/// The parser ends its messages with the place, which stands at the front of ours.
fn strip_place(text: &str) -> String {
    let end = text
        .find(" at line ")
        .or_else(|| text.find("\n"))
        .unwrap_or(text.len());
    text[..end].trim_end_matches([',', ':']).to_owned()
}
