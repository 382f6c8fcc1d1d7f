//! Fields of a form as it is sent (URL standard, section 5: application/x-www-form-urlencoded): `text=My+card+is+4539+1488`. What is
//! written by `%` there is read in `written`.

use super::{Spawner, child_around};
use crate::Layer;
use crate::blob;
use crate::detect::Scratch;
use crate::text::{How, NO_LEAF, Node, Span};

/// Shorter values hold nothing that a blank would make whole.
const VALUE_BYTES_MIN: usize = 9;
const VALUE_BYTES_MAX: usize = 4096;

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let (mut index, mut done) = (0, 0);
    for at in memchr::memchr_iter(b'=', text) {
        let from = at + 1;
        if from < done {
            continue;
        }
        let value = text[from..].iter().take(VALUE_BYTES_MAX);
        let to = from + value.take_while(|b| of_value(**b)).count();
        done = to;
        let value = &text[from..to];
        if value.len() < VALUE_BYTES_MIN
            || !value.windows(3).any(parts_words)
            || blob::covers(&scratch.blobs, Span::new(from, to))
        {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        child_around(node, cell, Layer::Spaced, (from, to), spawn, |child| {
            let mut at = from;
            for piece in value.split(|b| *b == b'+') {
                if at > from {
                    child.push(b" ", Span::new(at - 1, at), How::Atom);
                }
                child.push(piece, Span::new(at, at + piece.len()), How::Copy);
                at += piece.len() + 1;
            }
        });
    }
}

fn of_value(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"+%.-_*@:,!'()~".contains(&b) || b >= 0x80
}

fn parts_words(three: &[u8]) -> bool {
    let word = |b: u8| b.is_ascii_alphanumeric() || b >= 0x80;
    three[1] == b'+' && word(three[0]) && word(three[2])
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_child, children};

    #[test]
    fn fields_have_their_blanks() {
        for (text, want) in [
            ("card=4111+1111+1111+1111", "4111 1111 1111 1111"),
            ("a=1&text=My+card+is+41&b=2", "My card is 41"),
            ("q=caf%C3%A9+au+lait", "caf%C3%A9 au lait"),
        ] {
            assert_child(text, Layer::Spaced, Some(want));
        }
    }

    #[test]
    fn sums_and_digits_are_left_alone() {
        for text in ["i = i+1", "x=a + b + c", "n=12345678901", "t=+4912345678"] {
            let got = children(text);
            assert!(got.iter().all(|(l, ..)| *l != Layer::Spaced), "{text}");
        }
    }
}
