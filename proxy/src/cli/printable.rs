//! Words that others chose, for a terminal.

use std::borrow::Cow;

/// The text in one line, with nothing in it that a terminal would obey or that would turn it around: what a client, a server
/// or a sandbox says is shown, and does nothing. Tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let shown = |c| {
        if acts(c) {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    };
    text.chars().map(shown).collect::<String>().into()
}

fn acts(c: char) -> bool {
    // Line and paragraph separators, and what overrides the direction of writing (Unicode Standard Annex 9).
    let turns = matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    turns || c.is_control() && c != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_obeyed() {
        for (text, shown) in [
            (
                "plain, with a\ttab and Grüße",
                "plain, with a\ttab and Grüße",
            ),
            (
                "x\n2026-11-22T00:00:00Z  pass  a/b",
                "x\u{fffd}2026-11-22T00:00:00Z  pass  a/b",
            ),
            ("\u{1b}[31mred\u{7}", "\u{fffd}[31mred\u{fffd}"),
            ("\u{9b}2J", "\u{fffd}2J"),
            ("a\u{202e}gnp.exe", "a\u{fffd}gnp.exe"),
            ("a\u{2028}b\r", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(printable(text), shown, "{text:?}");
        }
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}
