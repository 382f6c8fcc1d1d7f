//! The line on which a field of a rule stands. A file is read for this only after something was found wrong with it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::Spanned;
use yaml_text::Wrong;

/// The line, from 1, of a field of the `nth` rule; that of the rule if it has no such field; 0 if the text cannot
/// be read.
pub(super) fn line_of(yaml: &str, nth: usize, field: &str) -> usize {
    let Ok(file) = serde_saphyr::from_str::<File>(yaml) else {
        return 0;
    };
    let Some(rule) = file.rules.get(nth) else {
        return 0;
    };
    let line = |name: &str| rule.0.iter().find(|(n, _)| n == name).map(|(_, l)| *l);
    line(field)
        .or_else(|| line("id"))
        .or_else(|| rule.0.first().map(|(_, l)| *l))
        .unwrap_or(0)
}

/// The field right before the value that has the wrong form, where it stands on the same line.
pub(super) fn named_before<'y>(yaml: &'y str, wrong: &Wrong) -> Option<&'y str> {
    let (line, column) = wrong.at?;
    let nth = |n: u64| usize::try_from(n).ok()?.checked_sub(1);
    let text = yaml.lines().nth(nth(line)?)?;
    let value = text.char_indices().nth(nth(column)?)?.0;
    let before = text[..value].trim_end().strip_suffix(':')?;
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let name = &before[before.trim_end_matches(is_name).len()..];
    let is_named = wrong.problem.starts_with("expected ") && !name.is_empty();
    is_named.then_some(name)
}

#[derive(serde::Deserialize)]
struct File {
    rules: Vec<Fields>,
}

/// The names of a rule's fields and their lines.
struct Fields(Vec<(String, usize)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rule")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key::<Spanned<String>>()? {
            let line = usize::try_from(name.referenced.line()).unwrap_or(0);
            fields.push((name.value, line));
            map.next_value::<IgnoredAny>()?;
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_lines() {
        let yaml = "# x\ndefaults: {category: pii}\nrules:\n- id: a\n  title: t\n- id: b\n  # c\n  pattern: p\n";
        for (nth, field, line) in [
            (0, "title", 5),
            (0, "pattern", 4),
            (1, "id", 6),
            (1, "pattern", 8),
            (2, "id", 0),
        ] {
            assert_eq!(line_of(yaml, nth, field), line, "{nth} {field}");
        }
        assert_eq!(line_of("rules: [", 0, "id"), 0);
    }
}
