//! Passphrases: words with blanks between them, where the name says that it is one.
//!
//! `ember quarry dusty island`. What else stands behind such a name is a sentence that tells of it ("asked for at each start"), which
//! has words that join others and words that bend.

use super::chosen::is_spoken;
use super::glued::{is_known, says_alone};

/// Fewest and most words, and the letters of one.
const WORDS: std::ops::RangeInclusive<usize> = 4..=12;
const LETTERS: std::ops::RangeInclusive<usize> = 3..=12;

/// Words that only a sentence has.
const JOINING: &[&str] = &[
    "the",
    "and",
    "for",
    "was",
    "were",
    "are",
    "has",
    "have",
    "had",
    "will",
    "shall",
    "would",
    "could",
    "may",
    "might",
    "must",
    "than",
    "then",
    "them",
    "they",
    "their",
    "its",
    "been",
    "being",
    "but",
    "per",
    "via",
    "about",
    "after",
    "before",
    "under",
    "over",
    "more",
    "most",
    "all",
    "each",
    "every",
    "also",
    "while",
    "until",
    "unless",
    "because",
    "since",
    "during",
    "between",
    "within",
    "against",
    "who",
    "whose",
    "did",
    "does",
    "done",
    "just",
    "once",
    "yet",
    "nor",
    "you",
    "she",
    "him",
    "her",
    "his",
    "our",
    "out",
    "off",
    "let",
    "made",
    "phrase",
    "passphrase",
    "sentence",
    "words",
    "people",
    "someone",
];
/// How words bend in sentences.
const ENDINGS: &[&str] = &["ed", "ing", "ly", "tion", "s"];

/// Words that were drawn, all small or each with a capital; one in four or five may be a word of programs, and one at the least is English.
pub(crate) fn is_passphrase(value: &[u8], quoted: bool) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let (mut words, mut saying, mut unknown, mut bent, mut titled) = (0, 0, 0, 0, 0);
    for word in text.split(' ') {
        // A figure among them, as generators put one.
        if (1..=4).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit()) && words > 0 {
            continue;
        }
        let low = word.to_ascii_lowercase();
        let rest = word.bytes().zip(low.bytes()).skip(1);
        let cased = word == low || rest.into_iter().all(|(a, b)| a == b);
        if !LETTERS.contains(&word.len())
            || !cased
            || !word.bytes().all(|b| b.is_ascii_alphabetic())
            || JOINING.contains(&low.as_str())
            || is_spoken(low.as_bytes())
            || !quoted && words == 0 && says_alone(&low)
        {
            return false;
        }
        words += 1;
        titled += usize::from(word != low);
        saying += usize::from(says_alone(&low));
        unknown += usize::from(!is_known(&low));
        let ends = |end: &&str| low.len() > end.len() + 2 && low.ends_with(*end);
        bent += usize::from(ENDINGS.iter().any(ends) && !low.ends_with("ss"));
    }
    let (bent_max, saying_max) = match quoted {
        true => (words / 3, words / 4),
        false => (words / 5, words / 5),
    };
    WORDS.contains(&words)
        && (titled == 0 || titled == words)
        && saying <= saying_max
        && unknown <= words * 3 / 4
        && bent <= bent_max
}

#[cfg(test)]
mod tests {
    use super::is_passphrase;

    #[test]
    fn drawn_words_are_told_from_sentences() {
        for (text, quoted, is) in [
            ("ember quarry dusty island", true, true),
            ("ember quarry dusty island", false, true),
            ("correct horse battery staple", false, true),
            ("Acorn Umber 42 Copper Fable", true, true),
            ("harbor river willow meadow", true, true),
            ("juniper zephyr lantern meadow velvet quarry", false, true),
            ("ember quarry dusty", true, false),
            ("asked for at each start", true, false),
            ("prompt when the key is loaded", true, false),
            ("used while mounting encrypted volumes", true, false),
            ("generated during first boot", false, false),
            ("your passphrase goes here", true, false),
            ("enter a long sentence", true, false),
            ("ÉCOLE maison livre table", true, false),
            ("ÜBER alles in der Welt", false, false),
            ("éCOLE\u{301} x 漢字 y", true, false),
            ("protects private keys stored locally", false, false),
            ("Ember quarry Dusty island", true, false),
            ("minimum length twelve characters", true, false),
        ] {
            assert_eq!(is_passphrase(text.as_bytes(), quoted), is, "{text}");
        }
    }
}
