//! `Mcp-Param-*` headers repeat arguments: where the argument was redacted, the header says the same.

use std::collections::HashMap;

use mcp_codec::{Document, LeafKind};

use super::stage::HeaderLeaf;
use crate::decimal::Decimal;

/// Gives each header that repeats a changed argument that argument's new text. Each leaf and each header is looked at once:
/// a caller chooses how many there are of both.
pub(super) fn mirror_headers(
    before: &Document,
    after: &Document,
    old: &[HeaderLeaf],
    new: &mut [HeaderLeaf],
) {
    let repeats = |header: &HeaderLeaf| header.name.starts_with("mcp-param-");
    if !old.iter().any(repeats) {
        return;
    }
    let changed = Changed::between(before, after);
    let both = old.iter().zip(new).filter(|(old, _)| repeats(old));
    for (old, new) in both {
        if let Some(text) = changed.by_old(&old.value) {
            new.value = text.into();
        }
    }
}

/// Where a changed value stands among the leaves, and its new text.
type Twin<'a> = (usize, &'a str);

/// The values that were changed, by what they were.
#[derive(Default)]
struct Changed<'a> {
    texts: HashMap<&'a str, Twin<'a>>,
    numbers: HashMap<Decimal, Twin<'a>>,
}

impl<'a> Changed<'a> {
    fn between(before: &'a Document, after: &'a Document) -> Self {
        let mut changed = Self::default();
        let leaves = before.leaves().zip(after.leaves()).enumerate();
        for (at, (old, new)) in leaves.filter(|(_, (old, new))| old.text != new.text) {
            let twin = (at, new.text);
            // Of values that are the same, the first one counts.
            match old.kind {
                LeafKind::Key => {}
                LeafKind::Number => {
                    if let Some(number) = Decimal::parse(old.text) {
                        changed.numbers.entry(number).or_insert(twin);
                    }
                }
                LeafKind::String => {
                    changed.texts.entry(old.text).or_insert(twin);
                }
            }
        }
        changed
    }

    /// The new text of the first value that was this, as a text or as a number.
    fn by_old(&self, value: &str) -> Option<&'a str> {
        let text = self.texts.get(value);
        let number = Decimal::parse(value).and_then(|number| self.numbers.get(&number));
        let first = text.into_iter().chain(number).min_by_key(|(at, _)| *at);
        first.map(|(_, text)| *text)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn parsed(text: String) -> Document {
        let limits = mcp_codec::Limits {
            bytes_max: 8 << 20,
            tokens_max: 2 << 20,
            ..mcp_codec::Limits::default()
        };
        Document::parse(text.into(), &limits).expect("a document")
    }

    fn mirrored(before: &str, after: &str, header: &str) -> String {
        let old = [HeaderLeaf {
            name: "mcp-param-a".into(),
            value: header.into(),
        }];
        let mut new = old.to_vec();
        let (before, after) = (parsed(before.to_owned()), parsed(after.to_owned()));
        mirror_headers(&before, &after, &old, &mut new);
        new[0].value.to_string()
    }

    #[test]
    fn a_header_says_what_became_of_the_argument_that_it_repeats() {
        for (before, after, header, said) in [
            (r#"{"a":"x"}"#, r#"{"a":"[R]"}"#, "x", "[R]"),
            (r#"{"a":"x"}"#, r#"{"a":"[R]"}"#, "y", "y"),
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#, "x", "x"),
            // The first of two counts, whether it is a text or a number.
            (r#"{"a":"x","b":"x"}"#, r#"{"a":"1","b":"2"}"#, "x", "1"),
            (r#"{"a":"5","b":5}"#, r#"{"a":"1","b":0}"#, "5", "1"),
            (r#"{"b":5,"a":"5"}"#, r#"{"b":0,"a":"1"}"#, "5", "0"),
            // One that was left as it was repeats nothing.
            (r#"{"a":"x","b":"x"}"#, r#"{"a":"x","b":"2"}"#, "x", "2"),
            // Numbers are compared as what they are, and no key is an argument.
            (r#"{"a":100}"#, r#"{"a":0}"#, "1e2", "0"),
            (r#"{"a":"100"}"#, r#"{"a":"0"}"#, "1e2", "1e2"),
            (r#"{"x":1}"#, r#"{"[R]":1}"#, "x", "x"),
        ] {
            assert_eq!(mirrored(before, after, header), said, "{before} {header}");
        }
    }

    #[test]
    fn many_headers_over_many_numbers_are_each_looked_at_once() {
        let numbers = |first: &str| format!("[{first}{}]", ",1.50".repeat(200_000));
        let (before, after) = (parsed(numbers("4111")), parsed(numbers("0")));
        let header = |value: String| HeaderLeaf {
            name: "mcp-param-a".into(),
            value: value.into(),
        };
        let old: Vec<HeaderLeaf> = (0..55).map(|_| header("9".repeat(500))).collect();
        let mut new = old.clone();
        let started = Instant::now();
        mirror_headers(&before, &after, &old, &mut new);
        // Each with each it is ten seconds and more.
        let took = started.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}
