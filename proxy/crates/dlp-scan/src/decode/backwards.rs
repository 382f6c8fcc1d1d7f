//! A value that its own line says is written backwards: `889 338 117 (reversed)`, `SIN, backwards: 889338117`. Numbers have
//! no words that would show it.

use super::marks::Mark;
use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// How far from the word its value may stand, and how long that may be.
const NEAR: usize = 36;
const VALUE_BYTES_MAX: usize = 64;
/// A shorter one is no number of anything.
const DIGITS_MIN: usize = 5;

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    // What says so still says it of what was turned.
    if node.turned {
        return;
    }
    let (mut index, mut done) = (0, 0);
    for (at, _) in marks.iter().filter(|(_, mark)| *mark == Mark::Backwards) {
        let at = *at as usize;
        // A word that the value before it reached, or the head of a column (`| revision`).
        let longer = node.text[at..].starts_with(b"| rev")
            && node.text.get(at + 5).is_some_and(u8::is_ascii_alphanumeric);
        if at < done || longer {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let text = &node.text[..cell.span.end as usize];
        let found = before(text, at, (cell.span.start as usize).max(done))
            .or_else(|| behind(text, at))
            .or_else(|| drawn_behind(text, at));
        let Some((from, to)) = found else { continue };
        done = to;
        let bytes: Vec<u8> = text[from..to].iter().rev().copied().collect();
        child_around(node, cell, Layer::Reversed, (from, to), spawn, |child| {
            child.push(&bytes, Span::new(from, to), How::Reversed);
        });
    }
}

/// What stands between a mark that turns the direction of writing to the left (U+202E) and the one that ends it: a screen shows
/// it from its end.
pub(super) fn decode_overridden(node: &Node, spawn: &mut Spawner<'_>) {
    const OPEN: &[u8] = "\u{202E}".as_bytes();
    const CLOSE: &[u8] = "\u{202C}".as_bytes();
    const BYTES: std::ops::RangeInclusive<usize> = 5..=256;
    if node.turned {
        return;
    }
    let mut index = 0;
    for at in memchr::memmem::find_iter(&node.text, OPEN) {
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let (from, ceil) = (at + OPEN.len(), cell.span.end as usize);
        let rest = &node.text[from..ceil.min(from + BYTES.end())];
        // Without its end, or with another in it, it is no value.
        let Some(len) = memchr::memmem::find(rest, CLOSE) else {
            continue;
        };
        let to = from + len;
        let Ok(piece) = std::str::from_utf8(&node.text[from..to]) else {
            continue;
        };
        if !BYTES.contains(&piece.len()) || piece.contains('\u{202E}') {
            continue;
        }
        let turned: String = piece.chars().rev().collect();
        child_around(node, cell, Layer::Reversed, (at, to), spawn, |child| {
            child.push(turned.as_bytes(), Span::new(from, to), How::Atom);
        });
    }
}

fn of_value(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b' ' | b'-' | b'.' | b'/' | b'@' | b'_' | b'+')
}

/// Does the piece hold a number, and no sentence?
fn numbered(piece: &[u8]) -> bool {
    let digits = piece.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = piece.iter().filter(|b| b.is_ascii_lowercase()).count();
    // `V8374EPYEF`
    let coded = digits == DIGITS_MIN - 1 && letters == 0 && !piece.contains(&b' ');
    digits >= DIGITS_MIN && letters <= 10 || coded
}

/// The piece that ends before the word, up to the sign of a label or a quote.
fn before(text: &[u8], at: usize, floor: usize) -> Option<(usize, usize)> {
    let near = at.saturating_sub(NEAR).max(floor);
    let end = near + text[near..at].iter().rposition(u8::is_ascii_alphanumeric)? + 1;
    // ", written backwards": back over words to the value.
    let mut end = end;
    while end > near && !text[end - 1].is_ascii_digit() {
        let word = text[near..end]
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_lowercase())
            .count();
        let gap = text[near..end - word]
            .iter()
            .rev()
            .take_while(|b| matches!(b, b' ' | b',' | b'('))
            .count();
        if word == 0 || gap == 0 {
            break;
        }
        end -= word + gap;
    }
    let reach = end.saturating_sub(VALUE_BYTES_MAX).max(floor);
    let len = text[reach..end]
        .iter()
        .rev()
        .take_while(|b| of_value(**b))
        .count();
    whole(text, end - len, end)
}

/// The piece behind the word and the sign of its label.
fn behind(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let ceil = (at + NEAR).min(text.len());
    let near = &text[at..ceil];
    let sign = near.iter().position(|b| matches!(b, b':' | b'='));
    let arrow = memchr::memmem::find(near, "→".as_bytes()).map(|n| n + "→".len() - 1);
    let sign = sign.into_iter().chain(arrow).min();
    // `bsn achterstevoren 385878935`: right behind the word.
    let word = near
        .iter()
        .take_while(|b| b.is_ascii_alphabetic() || **b >= 0x80);
    let word = word.count();
    let closed = near.get(word) == Some(&b')');
    let word = word + usize::from(closed);
    let first = |b: &u8| b.is_ascii_digit() || closed && (b.is_ascii_uppercase() || *b == b'+');
    let direct = near.get(word) == Some(&b' ') && near.get(word + 1).is_some_and(first);
    let from = match sign {
        Some(sign) if !direct => at + sign + 1,
        _ if direct => at + word + 1,
        _ => return None,
    };
    let to = (from + VALUE_BYTES_MAX).min(text.len());
    let mut len = text[from..to].iter().take_while(|b| of_value(**b)).count();
    // A sentence goes on behind it.
    if closed && sign.is_none() {
        let goes_on = |n: &usize| {
            text[from + n] == b' ' && text.get(from + n + 1).is_some_and(u8::is_ascii_lowercase)
        };
        len = (0..len).find(goes_on).unwrap_or(len);
    }
    whole(text, from, from + len)
}

/// `reversed 3XA1S8uBe4cLaXt4...`: a word behind it that is longer than words are, with letters and figures.
fn drawn_behind(text: &[u8], at: usize) -> Option<(usize, usize)> {
    const WORD_BYTES: std::ops::RangeInclusive<usize> = 20..=2048;
    const WORDS_MAX: usize = 5;
    let of_word = |b: &&u8| b.is_ascii_alphanumeric() || b"-._+/=".contains(b);
    let mut from = at;
    let mut len = 0;
    for _ in 0..WORDS_MAX {
        let rest = &text[from..];
        let near = &rest[..rest.len().min(NEAR)];
        // Words of a sentence, and the signs between them and the value.
        let signs = near
            .iter()
            .take_while(|b| b" :=()[]|\"'`,".contains(b))
            .count();
        from += signs;
        let rest = text[from..].iter().take(*WORD_BYTES.end());
        len = rest.take_while(of_word).count();
        let word = &text[from..from + len];
        if len == 0 && text.get(from).is_none_or(|b| *b < 0x80) || word.len() >= 20 {
            break;
        }
        from += std::mem::take(&mut len);
        let foreign = text[from..].iter().take(NEAR);
        from += foreign.take_while(|b| **b >= 0x80).count();
    }
    let word = &text[from..from + len];
    let digits = word.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = word.iter().filter(|b| b.is_ascii_alphabetic()).count();
    (WORD_BYTES.contains(&len) && digits >= 3 && letters >= 8).then_some((from, from + len))
}

/// The piece without blanks at its ends and without words of a sentence before it.
fn whole(text: &[u8], from: usize, to: usize) -> Option<(usize, usize)> {
    let piece = &text[from..to];
    let mut start = from + piece.len() - piece.trim_ascii_start().len();
    let end = from + piece.trim_ascii_end().len();
    // "My SIN is 889 338 117"
    while start < end
        && let Some(blank) = memchr::memchr(b' ', &text[start..end])
        && text[start..start + blank]
            .iter()
            .all(u8::is_ascii_alphabetic)
        && text[start..start + blank]
            .iter()
            .any(u8::is_ascii_lowercase)
    {
        start += blank + 1;
    }
    (start < end && numbered(&text[start..end])).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn what_says_so_is_turned() {
        for (text, want) in [
            ("SIN = 889 338 117 (reversed)", Some("711 833 988")),
            (
                "number IX 736 802 3131, written backwards",
                Some("1313 208 637 XI"),
            ),
            (
                "My id is 5-36344-42326-1 (read it backwards)",
                Some("1-62324-44363-5"),
            ),
            (
                "card, reversed: 6841 2636 7875 9354",
                Some("4539 5787 6362 1486"),
            ),
            ("reversed, backwards: 889338117", Some("711833988")),
            ("bsn achterstevoren 385878935 van K", Some("539878583")),
            (
                "read it backwards (Cordelia's visa): 5032109138204104",
                Some("4014028319012305"),
            ),
            (
                "pass (omgekeerd genoteerd): 3XA1S8uBe4cLaXt4gWYYwJ51",
                Some("15JwYYWg4tXaLc4eBu8S1AX3"),
            ),
            (
                "key reversed 3XA1S8uBe4cLaXt4gWYYwJ51",
                Some("15JwYYWg4tXaLc4eBu8S1AX3"),
            ),
            ("for x in reversed(items): y = 12", None),
            ("the list is reversed", None),
        ] {
            assert_child(text, Layer::Reversed, want);
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("8893381170 (reversed) ");
    }
}
