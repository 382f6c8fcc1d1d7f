//! Where sentences begin and end.
//!
//! Of a text that is JSON, `values` says that none goes on in the next value: what its values say together is read where they were
//! taken out of it. In all other text quotation marks and commas are what whoever wrote it likes.

/// No sentence is longer; a longer one is cut.
pub(super) const SENTENCE_BYTES_MAX: usize = 360;

/// The sentence around `at` in `text`, as a range of bytes.
pub(super) fn around(text: &str, at: usize, values: bool) -> std::ops::Range<usize> {
    let floor = ceil(text, at.saturating_sub(SENTENCE_BYTES_MAX));
    let start = ends_in(text, floor..at, values)
        .next_back()
        .unwrap_or(floor);
    start..end(text, at, values)
}

/// Where the sentence that goes on at `at` ends.
pub(super) fn end(text: &str, at: usize, values: bool) -> usize {
    let limit = ceil(text, (at + SENTENCE_BYTES_MAX).min(text.len()));
    ends_in(text, at..limit, values).next().unwrap_or(limit)
}

/// Behind each character in `range` that a sentence ends with.
fn ends_in(
    text: &str,
    range: std::ops::Range<usize>,
    values: bool,
) -> impl DoubleEndedIterator<Item = usize> + '_ {
    let may_end = |at: &usize| MAY_END[usize::from(text.as_bytes()[*at])];
    range.filter(may_end).filter_map(move |at| {
        let c = text.get(at..)?.chars().next()?;
        let is_end = match c {
            '"' => values && ends_value(text, at),
            c => ends(text, at, c),
        };
        is_end.then(|| at + c.len_utf8())
    })
}

/// The first bytes of all characters that a sentence may end with.
static MAY_END: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < ENDS.len() {
        let mut bytes = [0; 4];
        ENDS[i].encode_utf8(&mut bytes);
        table[bytes[0] as usize] = true;
        i += 1;
    }
    table
};

/// What [`ends_in`] asks about.
const ENDS: [char; 13] = [
    '。', '！', '？', '।', '؟', '\u{1b}', '<', '>', '.', '!', '?', '\n', '"',
];

/// Does the text up to `at` end with a value?
fn is_border(text: &str, at: usize, values: bool) -> bool {
    values && text[..at].ends_with('"') && ends_value(text, at - 1)
}

/// The sentence behind the one that ends at `from`, if it is one of the same value.
pub(super) fn next(text: &str, from: usize, values: bool) -> std::ops::Range<usize> {
    match is_border(text, from, values) {
        true => from..from,
        false => from..end(text, from, values),
    }
}

/// The sentence before the one that begins at `start`, if it is one of the same value.
pub(super) fn before(text: &str, start: usize, values: bool) -> std::ops::Range<usize> {
    let head = text[..start].trim_end();
    match head.char_indices().next_back() {
        Some((last, _)) if !is_border(text, start, values) => {
            around(text, last, values).start..start
        }
        _ => start..start,
    }
}

/// Does a sentence end with the character at `at`?
fn ends(text: &str, at: usize, c: char) -> bool {
    let rest = &text[at + c.len_utf8()..];
    match c {
        '。' | '！' | '？' | '।' | '؟' | '\u{1b}' => true,
        '<' => tag(rest),
        '>' => text[..at]
            .rfind('<')
            .is_some_and(|open| tag(&text[open + 1..at])),
        '.' | '!' | '?' => {
            let next = rest
                .trim_start_matches(['"', '\'', ')', '”', '»', '`'])
                .chars()
                .next();
            next.is_none_or(char::is_whitespace) && !abbreviated(&text[..at])
        }
        // Text is wrapped in the middle of a sentence; lists and logs are not.
        '\n' => {
            let next = rest.trim_start_matches([' ', '\t', '/', '#', '*', '-', '>']);
            let next = next.chars().next();
            next.is_none_or(|c| !c.is_lowercase() && !continues(c)) || rest.starts_with('\n')
        }
        _ => false,
    }
}

/// Is the quotation mark at `at` the last of a value in JSON, with another value behind it?
///
/// `"first", "b": "second"`, `"first"},{"b":"second"`, `"first","second"`. Words in quotation marks with a comma and a blank between
/// them are a sentence's.
fn ends_value(text: &str, at: usize) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    let rest = text.as_bytes()[at + 1..].trim_ascii_start();
    if !matches!(rest.first(), Some(b',' | b'}' | b']')) {
        return false;
    }
    let between = |b: &&u8| b",[]{}\\".contains(b) || b.is_ascii_whitespace();
    let (signs, behind) = rest.split_at(rest.iter().take_while(between).count());
    let Some((b'"', behind)) = behind.split_first().filter(|_| signs.contains(&b',')) else {
        return false;
    };
    let is_list = signs.iter().all(|b| matches!(b, b',' | b'\\'));
    let opens = signs.iter().any(|b| matches!(b, b'{' | b'['));
    let name = behind.iter().take(NAME_BYTES_MAX);
    let name = name.take_while(|b| **b != b'"').count();
    let after = behind.get(name + 1..).unwrap_or_default();
    is_list || opens || after.trim_ascii_start().starts_with(b":")
}

/// Does a tag of HTML begin so?
fn tag(inner: &str) -> bool {
    const TAGS: [&str; 20] = [
        "p", "div", "span", "h1", "h2", "h3", "li", "ul", "td", "tr", "br", "body", "html",
        "footer", "article", "a", "b", "img", "section", "font",
    ];
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let name = inner
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default();
    TAGS.iter().any(|t| name.eq_ignore_ascii_case(t))
        || inner.starts_with("!--")
        || inner.ends_with("--")
}

/// A script that has no small letters.
fn continues(c: char) -> bool {
    c.is_alphabetic() && !c.is_lowercase() && !c.is_uppercase()
}

/// "e.g." and "no." end no sentence.
fn abbreviated(before: &str) -> bool {
    let word = before.rsplit([' ', '\n', '(']).next().unwrap_or_default();
    matches!(
        word,
        "e.g" | "i.e" | "z.B" | "p.ej" | "no" | "No" | "vs" | "Mr" | "Dr" | "Ms"
    )
}

/// The place at or before this one that begins a character.
pub(super) fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The next place that begins a character.
pub(super) fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str, values: bool) -> Vec<&str> {
        let (mut all, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let to = end(text, at, values).max(at + 1);
            all.push(&text[at..to]);
            at = to;
        }
        all
    }

    #[test]
    fn a_value_is_not_read_on_into_the_next() {
        for (text, want) in [
            (
                r#"{"a":"one two","b":"three"}"#,
                [r#"{"a":"one two""#, r#","b":"three"}"#],
            ),
            (
                r#"{"a": "one two", "b": "three"}"#,
                [r#"{"a": "one two""#, r#", "b": "three"}"#],
            ),
            (
                r#"[{"a":"one"},{"a":"two"}]"#,
                [r#"[{"a":"one""#, r#"},{"a":"two"}]"#],
            ),
            (r#"["one two","three"]"#, [r#"["one two""#, r#","three"]"#]),
        ] {
            assert_eq!(sentences(text, true), want);
            let border = want[0].len();
            assert!(next(text, border, true).is_empty() && before(text, border, true).is_empty());
            // In text that is none the marks are whoever's who wrote it.
            assert_eq!(sentences(text, false), [text]);
        }
        for whole in [
            r#"say "yes", "no" and "maybe" to them"#,
            r#"say "yes": it is "no", or so"#,
            r#"{"a":"one"}"#,
        ] {
            assert_eq!(sentences(whole, true), [whole]);
        }
    }
}
