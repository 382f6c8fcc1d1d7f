//! What was joined to a value from the next text: a part of it, or the next word, which is none.

use smallvec::SmallVec;

use crate::entropy;
use crate::text::Span;

/// No word of prose is longer.
const WORD_BYTES_MAX: usize = 24;
/// Shorter ones have no pairs of letters to tell by.
const PAIRS_BYTES_MIN: usize = 4;
/// What is made of pairs of letters as words are.
const WORDINESS_MIN: f32 = 0.6;

/// Ends a value before the first word of the next text, where `stands` says that it was found without it as well.
pub(crate) fn end_before_words(
    parts: &mut SmallVec<[Span; 2]>,
    text: &[u8],
    stands: impl FnOnce(Span) -> bool,
) {
    let is_next = |part: &Span| is_next(&text[part.range()]);
    let Some(at) = parts.iter().skip(1).position(is_next) else {
        return;
    };
    if stands(parts[at]) {
        parts.truncate(at + 1);
    }
}

/// What stands behind a value and is none of it: a word, a name of several (`isError`), a small number, a variable (`PORT=8080`).
fn is_next(text: &[u8]) -> bool {
    const NUMBER_BYTES_MAX: usize = 5;
    let number = text.len() <= NUMBER_BYTES_MAX && text.iter().all(u8::is_ascii_digit);
    let variable = text.iter().position(|b| *b == b'=').is_some_and(|at| {
        let name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        at > 2 && text[..at].iter().all(name) && text[at..].iter().any(|b| *b != b'=')
    });
    !text.is_empty() && (number || variable || is_word(text) || is_name(text))
}

/// Two words or more, each with a capital but for the first.
fn is_name(text: &[u8]) -> bool {
    let mut words = text.chunk_by(|_, b| !b.is_ascii_uppercase());
    let long = |w: &[u8]| w.len() >= PAIRS_BYTES_MIN;
    text.len() > PAIRS_BYTES_MIN
        && text[0].is_ascii_lowercase()
        && words.clone().count() > 1
        && words.clone().any(long)
        && words.all(is_word)
}

/// A word as it stands in prose: in small letters, in capitals, or capitalised.
fn is_word(text: &[u8]) -> bool {
    let [first, rest @ ..] = text else {
        return false;
    };
    let small = rest.iter().all(u8::is_ascii_lowercase);
    let capital = first.is_ascii_uppercase() && rest.iter().all(u8::is_ascii_uppercase);
    first.is_ascii_alphabetic()
        && (small || capital)
        && text.len() <= WORD_BYTES_MAX
        && (text.len() < PAIRS_BYTES_MIN
            || entropy::wordiness(&text.to_ascii_lowercase()) >= WORDINESS_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_none_of_it() {
        for word in [
            "and",
            "then",
            "Done",
            "connected",
            "see",
            "ok",
            "INFO",
            "Restarting",
            "isError",
            "maxTokens",
            "2",
            "8080",
            "LOG_LEVEL=debug",
        ] {
            assert!(is_next(word.as_bytes()), "{word}");
        }
        for rest in [
            "r7Lp4Ts8", "rlptswdb", "kQz", "48151623", "", "x9", "QZXJKVW", "kQzTr", "Zr7Lp4==",
        ] {
            assert!(!is_next(rest.as_bytes()), "{rest}");
        }
    }
}
