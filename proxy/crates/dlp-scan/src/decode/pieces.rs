//! A value in pieces that are bold each (`**0908****6421**`), or with thin blanks between its digits, and a command with signs
//! in its words that its shell takes away (`c^e^r^t^u^t^i^l`): the signs go, the pieces close up.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Node, Span};

/// The end of one bold piece and the beginning of the next.
static BOLD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"****"));
/// U+2009 and U+202F, the blanks that are set inside numbers, begin with these bytes.
static THIN: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\xE2\x80"));
/// What `cmd.exe` takes away from the words of a command.
static CARET: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"^"));
/// So many pieces are no power and no pattern, and half of them are so short.
const CARET_PIECES_MIN: usize = 6;
const CARET_BYTES_MAX: usize = 2;
/// Longest value that is put together.
const VALUE_BYTES_MAX: usize = 1024;

pub(super) fn decode(node: &Node, strange: bool, carets: bool, spawn: &mut Spawner<'_>) {
    // Most texts have no such sign at all, and looking for one costs a third.
    if memchr::memchr(b'*', &node.text).is_some() {
        joined(node, &BOLD, Signs::Bold, spawn);
    }
    if strange {
        joined(node, &THIN, Signs::Thin, spawn);
    }
    if carets {
        joined(node, &CARET, Signs::Caret, spawn);
    }
}

/// What stands between the pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signs {
    Bold,
    Thin,
    Caret,
}

impl Signs {
    /// How long the sign is that the text begins with.
    fn len(self, text: &[u8]) -> usize {
        match self {
            Self::Bold if text.starts_with(b"****") => 4,
            Self::Thin
                if text.starts_with(b"\xE2\x80\x89") || text.starts_with(b"\xE2\x80\xAF") =>
            {
                3
            }
            Self::Caret if text.first() == Some(&b'^') => 1,
            _ => 0,
        }
    }
}

fn joined(node: &Node, finder: &Finder<'_>, signs: Signs, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for at in finder.find_iter(&node.text) {
        if at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        if signs.len(&node.text[at..ceil]) == 0 {
            continue;
        }
        let (from, to) = value(&node.text[..ceil], floor.max(done), at, signs);
        done = to;
        let text = &node.text[from..to];
        let mut pieces = Vec::new();
        let mut start = from;
        while let Some(end) = (start..to).find(|i| signs.len(&node.text[*i..to]) > 0) {
            pieces.push(Span::new(start, end));
            start = end + signs.len(&node.text[end..to]);
        }
        pieces.push(Span::new(start, to));
        // The shell takes away what stands before the first letter, too, and one of two.
        if signs == Signs::Caret {
            pieces.retain(|p| !p.is_empty());
        }
        // Masked numbers (`4539****1234`) open no piece and close none.
        let whole = match signs {
            Signs::Bold => {
                node.text[floor..from].ends_with(b"**") && node.text[to..ceil].starts_with(b"**")
            }
            Signs::Thin => text.iter().filter(|b| b.is_ascii_digit()).count() >= 7,
            Signs::Caret => {
                let short = pieces.iter().filter(|p| p.len() <= CARET_BYTES_MAX).count();
                pieces.len() >= CARET_PIECES_MIN && short * 2 >= pieces.len()
            }
        };
        if !whole || pieces.iter().any(|p| p.is_empty()) {
            continue;
        }
        let edge = if signs == Signs::Bold { 2 } else { 0 };
        child_around(
            node,
            cell,
            Layer::Spaced,
            (from - edge, to + edge),
            spawn,
            |child| {
                for piece in &pieces {
                    child.push(&node.text[piece.range()], *piece, crate::text::How::Copy);
                }
            },
        );
    }
}

/// Letters, digits and signs of values around `at`, and the signs between the pieces.
fn value(text: &[u8], floor: usize, at: usize, signs: Signs) -> (usize, usize) {
    let part = |b: u8| match signs {
        Signs::Bold => b.is_ascii_graphic() && b != b'*' || b == b' ',
        Signs::Caret => b.is_ascii_graphic() || b == b' ',
        Signs::Thin => {
            b.is_ascii_digit() || b.is_ascii_uppercase() || matches!(b, b'-' | b'.' | b'/')
        }
    };
    let reach = floor.max(at.saturating_sub(VALUE_BYTES_MAX));
    let before = text[reach..at].iter().rev().take_while(|b| part(**b));
    let from = at - before.count();
    let ceil = text.len().min(at + VALUE_BYTES_MAX);
    let mut to = at;
    while to < ceil {
        let sign = signs.len(&text[to..ceil]);
        if sign > 0 {
            to += sign;
        } else if part(text[to]) {
            to += 1;
        } else {
            break;
        }
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{children, run};

    fn read(text: &str) -> Option<String> {
        let mut found = children(text).into_iter();
        let child = found.find(|(layer, ..)| *layer == Layer::Spaced)?;
        Some(child.1)
    }

    #[test]
    fn pieces_close_up() {
        let cases = [
            (
                "personnr **0908****64 2****1167** ok",
                Some("personnr 090864 21167 ok"),
            ),
            (
                "card **4539****5787****6362****1486**",
                Some("card 4539578763621486"),
            ),
            ("card 4539****1234", None),
            ("**** **** **** 4242", None),
            ("a **bold** and a **second** word", None),
            (
                "370\u{202f}878\u{202f}770\u{202f}896\u{202f}224",
                Some("370878770896224"),
            ),
            ("12\u{2009}km and 3\u{2009}m", None),
            (
                "c^e^r^t^u^t^i^l -u^r^l^c^a^c^h^e -f h^t^t^p://a",
                Some("certutil -urlcache -f http://a"),
            ),
            ("^c^e^r^t^u^t^i^^l^ ^-u", Some("certutil -u")),
            ("x^2 + y^2 + z^2 = r^2, a^b^c", None),
            ("[^a-z]+^[^0-9]", None),
        ];
        for (text, want) in cases {
            assert_eq!(read(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        let (nodes, over) = run(&"**0908****6421** ".repeat(2000), 10_000);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 10_000);
        assert!(over.is_some());
        let (nodes, _) = run(&"****".repeat(20_000), 10_000);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 10_000);
    }
}
