//! "Did you mean": the known word closest to one that was not known.

/// The known word closest to `text`, if one is close enough to be what was meant.
///
/// ```
/// assert_eq!(domain::nearest("blok", ["log", "block"]), Some("block"));
/// assert_eq!(domain::nearest("anything", ["log", "block"]), None);
/// ```
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > TEXT_LEN_MAX {
        return None;
    }
    known
        .into_iter()
        // Two letters in the wrong order are one mistake.
        .map(|word| (strsim::damerau_levenshtein(text, word), word))
        .filter(|&(d, word)| d <= (text.len().max(word.len()) / 3).max(1))
        .min_by_key(|&(d, _)| d)
        .map(|(_, word)| word)
}

/// Longer texts are nobody's typing mistake, and the distance is quadratic.
const TEXT_LEN_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_words_are_meant() {
        let known = ["listen", "limits", "tenants"];
        for (text, expected) in [
            ("listn", Some("listen")),
            ("tenant", Some("tenants")),
            ("Limits", Some("limits")),
            ("litsen", Some("listen")),
            ("servers", None),
            ("", None),
            (&*"x".repeat(5000), None),
        ] {
            assert_eq!(nearest(text, known), expected, "{text}");
        }
    }
}
