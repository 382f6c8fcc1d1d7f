//! Where sentences begin and end.

/// No sentence is longer; a longer one is cut.
pub(super) const SENTENCE_BYTES_MAX: usize = 360;

/// The sentence around `at` in `text`, as a range of bytes.
pub(super) fn around(text: &str, at: usize) -> std::ops::Range<usize> {
    let floor = ceil(text, at.saturating_sub(SENTENCE_BYTES_MAX));
    let start = ends_in(text, floor..at).next_back().unwrap_or(floor);
    start..end(text, at)
}

/// Where the sentence that goes on at `at` ends.
pub(super) fn end(text: &str, at: usize) -> usize {
    let limit = ceil(text, (at + SENTENCE_BYTES_MAX).min(text.len()));
    ends_in(text, at..limit).next().unwrap_or(limit)
}

/// Behind each character in `range` that a sentence ends with.
fn ends_in(
    text: &str,
    range: std::ops::Range<usize>,
) -> impl DoubleEndedIterator<Item = usize> + '_ {
    let may_end = |at: &usize| MAY_END[usize::from(text.as_bytes()[*at])];
    range.filter(may_end).filter_map(|at| {
        let c = text.get(at..)?.chars().next()?;
        ends(text, at, c).then(|| at + c.len_utf8())
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

/// What [`ends`] asks about.
const ENDS: [char; 14] = [
    '。', '！', '？', '।', '؟', '\u{1b}', '<', '>', '.', '!', '?', '\n', '"', '\'',
];

/// Does the text up to `at` end with a value of its own: a member's, a field's? What stands behind it belongs to another.
fn is_border(text: &str, at: usize) -> bool {
    let last = at.wrapping_sub(1);
    match text.as_bytes().get(last) {
        Some(b'"' | b'\'') => ends_value(text, last),
        Some(b'<') => ends_field(&text[at..]),
        _ => false,
    }
}

/// The sentence behind the one that ends at `end`, if it is one of the same value.
pub(super) fn next(text: &str, from: usize) -> std::ops::Range<usize> {
    match is_border(text, from) {
        true => from..from,
        false => from..end(text, from),
    }
}

/// The sentence before the one that begins at `start`, if it is one of the same value.
pub(super) fn before(text: &str, start: usize) -> std::ops::Range<usize> {
    if is_border(text, start) {
        return start..start;
    }
    let head = text[..start].trim_end();
    match head.char_indices().next_back() {
        Some((last, _)) => around(text, last).start..start,
        None => start..start,
    }
}

/// Does a sentence end with the character at `at`?
fn ends(text: &str, at: usize, c: char) -> bool {
    let rest = &text[at + c.len_utf8()..];
    match c {
        '。' | '！' | '？' | '।' | '؟' | '\u{1b}' => true,
        '<' => tag(rest) || ends_field(rest),
        '"' | '\'' => ends_value(text, at),
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

/// Is the quotation mark at `at` the last of a value in an object or a list, with another value behind it?
///
/// `"first", "b": "second"`, `"first"},{"b":"second"`, `"first","second"`; the same between single marks, and with a backslash
/// before each mark. Words in quotation marks with a comma and a blank between them are a sentence's.
fn ends_value(text: &str, at: usize) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    let mark = text.as_bytes()[at];
    let rest = text.as_bytes()[at + 1..].trim_ascii_start();
    if !matches!(rest.first(), Some(b',' | b'}' | b']')) {
        return false;
    }
    let count =
        |bytes: &[u8], of: &dyn Fn(u8) -> bool| bytes.iter().take_while(|b| of(**b)).count();
    let between =
        |b: u8| matches!(b, b',' | b'[' | b']' | b'{' | b'}' | b'\\') || b.is_ascii_whitespace();
    let signs = count(rest, &between);
    let (signs, behind) = rest.split_at(signs);
    if !signs.contains(&b',') || behind.first() != Some(&mark) {
        return false;
    }
    if signs.iter().all(|b| matches!(b, b',' | b'\\'))
        || signs.iter().any(|b| matches!(b, b'{' | b'['))
    {
        return true;
    }
    let behind = &behind[1..behind.len().min(NAME_BYTES_MAX)];
    let name = count(behind, &|b| b != mark);
    let after = behind.get(name + 1..).unwrap_or_default();
    after.trim_ascii_start().first() == Some(&b':')
}

/// Does a closing tag stand here, of no kind that marks words, and another tag right behind it (`</t><t>`)?
fn ends_field(rest: &str) -> bool {
    const INLINE: [&str; 14] = [
        "b", "i", "em", "strong", "u", "s", "code", "span", "a", "font", "small", "sub", "sup",
        "mark",
    ];
    let Some(inner) = rest.strip_prefix('/') else {
        return false;
    };
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.');
    let name = inner.split(|c| !of_name(c)).next().unwrap_or_default();
    let behind = &inner[name.len()..];
    !name.is_empty()
        && behind.starts_with("><")
        && !INLINE.iter().any(|i| name.eq_ignore_ascii_case(i))
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

    fn sentences(text: &str) -> Vec<&str> {
        let (mut all, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let to = end(text, at).max(at + 1);
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
                &[r#"{"a":"one two""#, r#","b":"three"}"#][..],
            ),
            (
                r#"{"a": "one two", "b": "three"}"#,
                &[r#"{"a": "one two""#, r#", "b": "three"}"#],
            ),
            (
                r#"[{"a":"one"},{"a":"two"}]"#,
                &[r#"[{"a":"one""#, r#"},{"a":"two"}]"#],
            ),
            (
                r#"[{\"a\":\"one\"},{\"a\":\"two\"}]"#,
                &[r#"[{\"a\":\"one\""#, r#"},{\"a\":\"two\"}]"#],
            ),
            (r#"["one two","three"]"#, &[r#"["one two""#, r#","three"]"#]),
            (
                "{'a': 'one', 'b': 'two'}",
                &["{'a': 'one'", ", 'b': 'two'}"],
            ),
            (
                "<r><t>one</t><t>two</t></r>",
                &["<r><t>one<", "/t><t>two<", "/t></r>"],
            ),
        ] {
            assert_eq!(sentences(text), want);
            let border = want[0].len();
            assert!(
                next(text, border).is_empty() && before(text, border).is_empty(),
                "{text}"
            );
        }
        for whole in [
            r#"say "yes", "no" and "maybe" to them"#,
            r#"say "yes": it is "no", or so"#,
            "the users', and 'theirs'",
            r#"{"a":"one"}"#,
            "<b>one</b><i>two</i>",
            "one <kbd>two</kbd> three",
        ] {
            let inline = whole.contains("<b>");
            assert!(
                inline || sentences(whole) == [whole],
                "{whole}: {:?}",
                sentences(whole)
            );
            assert!((1..whole.len()).all(|at| !is_border(whole, at)), "{whole}");
        }
    }
}
