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
const ENDS: [char; 12] = [
    '。', '！', '？', '।', '؟', '\u{1b}', '<', '>', '.', '!', '?', '\n',
];

/// The sentence before the one that begins at `start`.
pub(super) fn before(text: &str, start: usize) -> std::ops::Range<usize> {
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
