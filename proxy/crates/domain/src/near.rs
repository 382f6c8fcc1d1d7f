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
        .map(|word| (distance(text, word), word))
        .filter(|&(d, word)| d <= (text.len().max(word.len()) / 3).max(1))
        .min_by_key(|&(d, _)| d)
        .map(|(_, word)| word)
}

/// Longer texts are nobody's typing mistake, and the distance is quadratic.
const TEXT_LEN_MAX: usize = 256;

/// Levenshtein distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, d) in [
            ("", "", 0),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(a, b), d, "{a} {b}");
        }
    }

    #[test]
    fn only_close_words_are_meant() {
        let known = ["listen", "limits", "tenants"];
        for (text, expected) in [
            ("listn", Some("listen")),
            ("tenant", Some("tenants")),
            ("Limits", Some("limits")),
            ("servers", None),
            ("", None),
            (&*"x".repeat(5000), None),
        ] {
            assert_eq!(nearest(text, known), expected, "{text}");
        }
    }
}
