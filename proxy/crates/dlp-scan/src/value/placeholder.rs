//! What stands for a value that is to be filled in, or was taken out.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::{generated, is_drawn, is_listed, pieces, words};
use crate::entropy::wordiness;

/// Words that only stand where somebody is told to put their own.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "your_",
    "your-",
    "<your",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "yourapi",
    "yourpass",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "replace",
    "dummy",
    "insert",
    "redacted",
    "xxxx",
    "****",
    "....",
    "todo",
    "fixme",
    "tokenhere",
    "keyhere",
    "secrethere",
    "helloworld",
    "hello_world",
    "${",
    "{{",
    "%(",
    "$(",
    "#{",
    "[[",
    "my_secret",
    "my-secret",
    "mysecret",
    "my_token",
    "my-token",
    "mytoken",
    "my_api",
    "my-api",
    "myapi",
    "my_pass",
    "mypass",
    "fake",
    "sample",
    "notreal",
    "not_real",
    "not-real",
    "undefined",
    "process.env",
    "00000000",
    "11111111",
    "deadbeef",
    "test_key",
    "test-key",
    "testkey",
    "testtoken",
    "test_token",
    "test-token",
    "some_",
    "enter_",
    "put_",
    "-here",
    "_here",
    "goes",
    "-----",
    "____",
    "secret_key_here",
    "truncated",
    "omitted",
    "removed",
    "hidden",
    "masked",
    "wrongpass",
    "wrong-pass",
    "wrong_pass",
    "incorrect",
    "null",
];
static PLACEHOLDER: LazyLock<AhoCorasick> = LazyLock::new(|| words(PLACEHOLDERS));

const WHOLE: &[&str] = &[
    "none",
    "null",
    "nil",
    "true",
    "false",
    "password",
    "passwd",
    "secret",
    "token",
    "string",
    "str",
    "test",
    "testing",
    "admin",
    "root",
    "user",
    "default",
    "required",
    "optional",
    "empty",
    "unset",
    "changeit",
    "qwerty",
    "foobar",
    "hunter",
    "letmein",
    "secure",
    "bearer",
    "basic",
    "digest",
    "apikey",
    "api_key",
    "value",
    "unknown",
    "number",
    "boolean",
    "object",
    "integer",
    "text",
    "hash",
    "yes",
    "key",
    "username",
    "passphrase",
    "password123",
    "password1",
    "secret123",
    "test123",
    "test1234",
    "admin123",
    "abc123",
    "mypassword",
];

/// A type of GraphQL that must be there: `String!`, `[ID!]!`.
fn is_type(lower: &[u8]) -> bool {
    let mut bare = lower;
    while let [inner @ .., b'!' | b']'] = bare {
        bare = inner;
    }
    let bare = bare.strip_prefix(b"[").unwrap_or(bare);
    let types: [&[u8]; 6] = [b"string", b"id", b"int", b"float", b"boolean", b"datetime"];
    bare.len() < lower.len() && types.contains(&bare)
}

/// So much of a value that is masked or cut off still shows where it is not the value any more.
const SHOWN_BYTES_MAX: usize = 40;

/// A word excuses a value whose rest is dull, too: not one with a value beside the word, that is as long as `least`.
fn excused(value: &[u8], lower: &[u8], least: impl Fn() -> usize) -> bool {
    if !PLACEHOLDER.is_match(lower) {
        return false;
    }
    // The secret keys of AWS's documentation end so, and are as long as others with it.
    if value.len() == 40 && value.ends_with(b"EXAMPLEKEY") {
        return true;
    }
    let masked = ["xxxx", "****", "...."];
    let masked = (masked.iter()).any(|m| memchr::memmem::find(lower, m.as_bytes()).is_some());
    let least = least().max(if masked { SHOWN_BYTES_MAX } else { 0 });
    !pieces(&PLACEHOLDER, lower).any(|at| {
        let piece = &value[at];
        piece.len() >= least
            && generated(piece, true)
            && !run_of_one(piece)
            && !counts(&piece.to_ascii_lowercase())
            && !prose(piece)
    })
}

/// A token without the word that was hung on it: `sk-...-example`.
pub(crate) fn without_word(value: &[u8]) -> Option<usize> {
    const WORD_BYTES_MAX: usize = 24;
    let tail = value.len().saturating_sub(WORD_BYTES_MAX);
    let at = tail
        + value[tail..]
            .iter()
            .rposition(|b| matches!(b, b'-' | b'_'))?;
    let word = value[at..].to_ascii_lowercase();
    (PLACEHOLDERS.iter())
        .any(|p| p.as_bytes() == &word[1..] || p.as_bytes() == word)
        .then_some(at)
}

/// Stands for a value that is to be filled in, or was taken out, or was typed by counting.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    stands_for(value, || 0)
}

/// The same, of a value that has `least` bytes if it is one.
pub(crate) fn stands_for(value: &[u8], least: impl Fn() -> usize) -> bool {
    in_lower_case(value, |lower| {
        marks_a_place(value, lower, &least) || counts(lower)
    })
}

/// Counts up and down the keyboard, and marks no place otherwise: what people type where a key belongs.
pub(crate) fn is_typed(value: &[u8]) -> bool {
    in_lower_case(value, |lower| {
        counts(lower) && !marks_a_place(value, lower, || 0)
    })
}

/// Asks about the value in lower case; what is longer than placeholders are is none.
fn in_lower_case(value: &[u8], ask: impl Fn(&[u8]) -> bool) -> bool {
    if value.len() > 200 {
        return false;
    }
    let mut lower = [0u8; 200];
    let lower = &mut lower[..value.len()];
    lower.copy_from_slice(value);
    lower.make_ascii_lowercase();
    ask(lower)
}

/// Says by its words, its signs or by one character repeated that the value is yet to come, or is gone.
fn marks_a_place(value: &[u8], lower: &[u8], least: impl Fn() -> usize) -> bool {
    if WHOLE.iter().any(|w| w.as_bytes() == lower) || is_type(lower) || excused(value, lower, least)
    {
        return true;
    }
    let first = lower.first();
    if matches!(first, Some(b'$'))
        && lower[1..]
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'}' || *b == b'{')
        && !lower.get(1..3).is_some_and(|p| p.contains(&b'2'))
        && !super::is_scattered(value)
    {
        return true;
    }
    // `%s`, `{password}`, `[token]`, `:param`
    matches!(
        (first, lower.last()),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) | (Some(b'%'), Some(b'%'))
    ) || lower.len() <= 3
        || first == Some(&b'<') && lower.contains(&b'>')
        // `\fIpassword\fR`, `host[:port]`, `*New*UNIX*password*`
        || lower.starts_with(b"\\fi")
        || lower.starts_with(b"\\fb")
        || memchr::memmem::find(lower, b"[:").is_some() && lower.contains(&b']')
        || first == Some(&b'*') && memchr::memmem::find(lower, b"password*").is_some()
        || lower.windows(2).any(|w| w == b"'$" || w == b"\"$")
        || run_of_one(lower)
        || super::signs::has_variable(value)
        || prose(value)
}

/// Letters or digits in their order, in all of it or in a long part.
fn counts(lower: &[u8]) -> bool {
    const PARTS: [&[u8]; 3] = [b"1234567890", b"0123456789abcdef", b"abcdefgh"];
    let pairs = lower.len().saturating_sub(1).max(1);
    let up = |w: &&[u8]| w[1] == w[0].wrapping_add(1);
    lower.len() >= 6 && lower.windows(2).filter(up).count() * 10 > pairs * 7
        || counts_up(lower)
        || PARTS
            .iter()
            .any(|part| memchr::memmem::find(lower, part).is_some())
}

/// Letters in the order of the alphabet, or digits in theirs, whatever stands between: typed, not generated.
fn counts_up(v: &[u8]) -> bool {
    let steps = |keep: fn(&u8) -> bool, last: u8, first: u8, least: usize| {
        let (mut prev, mut n, mut up) = (0u8, 0usize, 0usize);
        for b in v.iter().copied().filter(keep) {
            n += 1;
            let next = b == prev.wrapping_add(1)
                || prev == last && b == first
                || prev == b'f' && b == b'a';
            up += usize::from(prev != 0 && next);
            prev = b;
        }
        // In a value without order some of a few letters may stand in theirs.
        let tenths = if n * 5 >= v.len() * 2 { 7 } else { 9 };
        n >= least && up * 10 >= (n - 1) * tenths
    };
    v.len() >= 10
        && (steps(u8::is_ascii_lowercase, b'z', b'a', 8)
            || steps(u8::is_ascii_digit, b'9', b'0', 8))
}

/// Long, and all of it words.
fn prose(v: &[u8]) -> bool {
    let letters = v.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let one = !v.iter().any(u8::is_ascii_whitespace);
    one && v.len() >= 24
        && letters * 4 >= v.len() * 3
        && wordiness(v) > 0.8
        && !is_mixed(v)
        && !is_drawn(v)
        && !is_listed(v, 3)
}

/// Letters and figures alone, in both cases and in turns, as no words are.
fn is_mixed(v: &[u8]) -> bool {
    let turns = crate::entropy::Classes::of(v).changes as usize;
    turns * 3 > v.len() && v.iter().all(u8::is_ascii_alphanumeric)
}

/// One character makes up most of it.
fn run_of_one(v: &[u8]) -> bool {
    let same = v.windows(2).filter(|w| w[0] == w[1]).count();
    let pairs = v.len().saturating_sub(1).max(1);
    let longest = v.chunk_by(|a, b| a == b).map(<[u8]>::len).max();
    longest.unwrap_or(0) >= 8 && v[0] != b'a' || v.len() >= 6 && same * 10 > pairs * 6
}
