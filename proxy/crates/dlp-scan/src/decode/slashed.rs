//! A value with a backslash before each of its signs: `\0\8\0\7\9\8\1`, `\L\i\n\d\e\n`. A shell and a printer read over them; a
//! number with three or four digits to a group would be octal.

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// Fewer signs in a row are escapes of a string.
const SIGNS_MIN: usize = 7;
/// Longest value.
const SIGNS_MAX: usize = 160;

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for at in memchr::memchr_iter(b'\\', &node.text) {
        if at < done {
            continue;
        }
        let signs = row(&node.text, at);
        done = signs.last().map_or(at + 1, |sign| sign.end as usize);
        let digits = signs
            .iter()
            .filter(|s| node.text[s.start as usize].is_ascii_digit())
            .count();
        if signs.len() < SIGNS_MIN || digits < 4 {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if done > cell.span.end as usize {
            continue;
        }
        child_around(node, cell, Layer::Escapes, (at, done), spawn, |child| {
            for sign in &signs {
                child.push(&node.text[sign.range()], *sign, How::Copy);
            }
        });
    }
}

/// The signs of a row, each without its backslash.
fn row(text: &[u8], mut at: usize) -> Vec<Span> {
    let mut signs = Vec::new();
    while signs.len() < SIGNS_MAX && text.get(at) == Some(&b'\\') {
        let Some(first) = text.get(at + 1).filter(|b| **b >= b' ' && **b != b'\\') else {
            break;
        };
        let len = match first {
            0xF0.. => 4,
            0xE0.. => 3,
            0xC0.. => 2,
            _ => 1,
        };
        // `\x41`, `\u0041`, `\101`: more than one sign follows.
        if at + 1 + len > text.len() {
            break;
        }
        signs.push(Span::new(at + 1, at + 1 + len));
        at += 1 + len;
    }
    signs
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, children};

    #[test]
    fn backslashes_before_each_sign_go() {
        for (text, want) in [
            (
                r"emso: \0\8\0\7\9\8\1\5\0\9\6\3\4",
                Some("emso: 0807981509634"),
            ),
            (
                r"at \L\i\n\d\e\n\w\e\g\ \4\3\,\ \5\0\1\3",
                Some("at Lindenweg 43, 5013"),
            ),
            (r"\101\102\103\104\105", None),
            (r"a\b\c\d", None),
            (r"^\d\d\d\d\-\d\d$", None),
        ] {
            let got = children(text);
            // Two of them may be octal as well.
            let read = got
                .iter()
                .any(|(l, t, _)| *l == Layer::Escapes && want.is_some_and(|want| t.contains(want)));
            assert_eq!(read, want.is_some(), "{text}");
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded(r"emso: \0\8\0\7\9\8\1\5\0\9\6\3\4, ");
    }
}
