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

/// The text in one line with everything in it visible: what acts, and what no font shows, is written as its number, since
/// whoever compares two texts must see that they differ.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| acts(c) || hides(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match acts(c) || hides(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out.into()
}

/// Characters that take no place or look like a blank (Unicode: default ignorable, and blanks other than the usual one).
fn hides(c: char) -> bool {
    matches!(c,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}'
        | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
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

    #[test]
    fn everything_is_seen() {
        for (text, shown) in [
            ("plain, Grüße 漢字", "plain, Grüße 漢字"),
            ("a\u{200b}b\u{feff}", r"a\u{200b}b\u{feff}"),
            ("a\n\u{1b}[0m", r"a\u{a}\u{1b}[0m"),
            ("\u{e0041}\u{202e}\u{a0}", r"\u{e0041}\u{202e}\u{a0}"),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }
}
