//! Base64 read from the end: its padding stands in front (`=MzM5UjMzkjM`), where no other text has it.

use super::digits::{Alphabet, Digits};
use super::{Spawner, child_around};
use crate::Layer;
use crate::check::base64_digit;
use crate::text::{Cell, How, Node, Span};

/// Fewer letters hold no number. However many there are: none is read twice, for `=` is none of them.
const LETTERS_MIN: usize = 10;
/// What comes out has so many digits: a number, or a text with one.
const DIGITS_MIN: usize = 5;

/// Where the letters end that follow the padding which begins at `at`.
pub(super) fn run(text: &[u8], at: usize) -> Option<usize> {
    let alone = at == 0 || base64_digit(text[at - 1]).is_none() && text[at - 1] != b'=';
    let pads = 1 + usize::from(text.get(at + 1) == Some(&b'='));
    let first = *text.get(at + pads)?;
    if !alone || base64_digit(first).is_none() {
        return None;
    }
    let rest = text[at + pads..].iter();
    let len = rest.take_while(|b| base64_digit(**b).is_some()).count();
    let end = at + pads + len;
    let is = len >= LETTERS_MIN && (len + pads).is_multiple_of(4);
    (is && text.get(end) != Some(&b'=')).then_some(end)
}

/// A child of the text, if it is one: printable, with digits in it.
pub(super) fn read(node: &Node, cell: &Cell, (at, end): (usize, usize), spawn: &mut Spawner<'_>) {
    if end > cell.span.end as usize {
        return;
    }
    let turned: Vec<u8> = node.text[at..end].iter().rev().copied().collect();
    let bytes: Vec<u8> = Digits::new(&turned, Alphabet::Base64).collect();
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return;
    };
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    if digits < DIGITS_MIN || text.chars().any(char::is_control) {
        return;
    }
    child_around(node, cell, Layer::Base64, (at, end), spawn, |child| {
        child.push(&bytes, Span::new(at, end), How::Atom);
    });
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn the_padding_in_front_tells_it() {
        for (text, want) in [
            ("mrn =MzM5UjMzkjM", Some("mrn 29325933")),
            ("id: ==QNxITN1gzM1YjN", Some("id: 6653855215")),
            ("a =bcdefghijkl", None),
            ("x =MzM5UjMzkjM=", None),
            ("name=value1234567890123", None),
            ("=", None),
            ("==", None),
        ] {
            assert_child(text, Layer::Base64, want);
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("m =MzM5UjMzkjM, ");
    }
}
