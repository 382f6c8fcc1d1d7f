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
    let is_next = |part: &Span| is_word(&text[part.range()]);
    let Some(at) = parts.iter().skip(1).position(is_next) else {
        return;
    };
    if stands(parts[at]) {
        parts.truncate(at + 1);
    }
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
        ] {
            assert!(is_word(word.as_bytes()), "{word}");
        }
        for rest in [
            "r7Lp4Ts8", "rlptswdb", "kQz", "48151623", "", "x9", "QZXJKVW",
        ] {
            assert!(!is_word(rest.as_bytes()), "{rest}");
        }
    }
}
