//! Keys that somebody typed by counting, where the name says whose key it is.
//!
//! `WALKSCORE_KEY=abcdef1234567890abcdef1234567890` may be an example, and may be the key of a server at home; it has the
//! length and the alphabet that keys have. It is told with little confidence. What has the length of no key, has words of a
//! placeholder in it or stands under a name that is anybody's (`API_KEY`) is left alone.

use super::Sink;
use crate::check;
use crate::entropy::Classes;
use crate::names::{self, Promise};
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::value;

/// How sure.
const CONFIDENCE: u8 = 40;
/// How far before a name it is read whose it is.
const WORDS_BYTES_MAX: usize = 48;
/// Typed keys are at least so long.
pub(super) const KEY_BYTES_MIN: usize = 20;
const KEY_BYTES_MAX: usize = 160;
/// The longest mark before a key, with its underscore.
const MARK_BYTES_MAX: usize = 8;

/// Reports a typed key. The name may be two words: `walkscore TOKEN`.
pub(super) fn believe_typed(
    found: Span,
    promise: Promise,
    name: Span,
    cell: &Cell,
    sink: &mut Sink<'_>,
) {
    let text = sink.text();
    if matches!(promise, Promise::Strong | Promise::Weak)
        && is_typed_key(&text[found.range()])
        && (names::says_whose(&text[name.range()]) || said_before(text, name, cell))
    {
        sink.report_for(Detector::GenericSecret, found, Some(CONFIDENCE));
    }
}

/// The length and the alphabet of keys, though it counts. Generators draw bytes, so what they make has an even number of
/// characters but for the 43 of base64 without padding; a short mark may stand before them (`sk_`, `live_`).
pub(super) fn is_typed_key(value: &[u8]) -> bool {
    let key = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'=');
    if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&value.len()) || !value.iter().all(key) {
        return false;
    }
    let drawn = |n: usize| n.is_multiple_of(2) || n == 43;
    let mark = value.iter().take(MARK_BYTES_MAX).position(|b| *b == b'_');
    let c = Classes::of(value);
    (drawn(value.len()) || mark.is_some_and(|at| drawn(value.len() - at - 1)))
        && c.letters() > 0
        && (c.digit > 0 || c.lower > 0 && c.upper > 0)
        && value::is_typed(value)
        && check::find("not-filler").is_some_and(|c| (c.run)(value))
}

/// Do the words before a name say whose it is: `walkscore TOKEN`, `walkscore PRIVATE ACCESS TOKEN`?
fn said_before(text: &[u8], name: Span, cell: &Cell) -> bool {
    let floor =
        (cell.span.start as usize).max((name.start as usize).saturating_sub(WORDS_BYTES_MAX));
    let before = &text[floor..name.start as usize];
    let Some((b' ', before)) = before.split_last() else {
        return false;
    };
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    for word in before.rsplit(|b| *b == b' ') {
        let from = word.iter().rposition(|b| !part(b));
        let last = &word[from.map_or(0, |at| at + 1)..];
        if names::says_whose(last) {
            return true;
        }
        // `PRIVATE`, `ACCESS`: it may be said one word earlier.
        if from.is_some() || names::promise(last) == Promise::Nothing && !is_part(last) {
            return false;
        }
    }
    false
}

/// A word that stands between whose a key is and what it is.
fn is_part(word: &[u8]) -> bool {
    ["private", "access", "api", "auth", "client"]
        .iter()
        .any(|p| word.eq_ignore_ascii_case(p.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_keys() {
        let cases = [
            ("abcdef1234567890abcdef1234567890", true),
            ("a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6", true),
            ("12345678-1234-1234-1234-1234567890ab", true),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZ123456", true),
            ("sk_abcdef1234567890abcdef1234567890", true),
            // No length of keys.
            ("abcdef1234567890", false),
            ("abcdefghijklmnopqrstuvwxyz12345", false),
            // An alphabet.
            ("abcdefghijklmnopqrstuvwxyz", false),
            // Words that mark a place.
            ("your1234567890abcdef", false),
            ("xxxx1234567890abcdef1234", false),
            // Drawn: nothing for this.
            ("5f4dcc3b5aa765d61d8327deb882cf99", false),
        ];
        for (value, want) in cases {
            assert_eq!(is_typed_key(value.as_bytes()), want, "{value}");
        }
    }
}
