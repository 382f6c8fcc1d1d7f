//! Signs in brackets, as people write addresses and tokens so that nothing opens or sends them: `hxxps://hooks[.]chat[.]com/...`,
//! `sk[_]live[_]4eC3`, `eyJh(dot)eyJz(dot)k3v`.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::marks::Mark;
use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{How, NO_LEAF, Node, Span};

/// Shorter ones hold no token; addresses of hosts and of mail have rules of their own.
const BYTES_MIN: usize = 20;
const DIGITS_MIN: usize = 3;
/// How far a piece goes on.
const PIECE_BYTES_MAX: usize = 512;

/// What stands for a sign.
const SIGNS: [(&[u8], &[u8]); 16] = [
    (b"[.]", b"."),
    (b"(.)", b"."),
    (b"{.}", b"."),
    (b"[dot]", b"."),
    (b"(dot)", b"."),
    (b"{dot}", b"."),
    (b"[_]", b"_"),
    (b"(_)", b"_"),
    (b"[underscore]", b"_"),
    (b"(underscore)", b"_"),
    (b"[-]", b"-"),
    (b"(dash)", b"-"),
    (b"[dash]", b"-"),
    (b"[:]", b":"),
    (b"[/]", b"/"),
    (b"[://]", b"://"),
];

static DOT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"[.]"));
static UNDERSCORE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"[_]"));

/// `bracket`: is there one in the text at all?
pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], bracket: bool, spawn: &mut Spawner<'_>) {
    let mut places: Vec<usize> = Vec::new();
    if bracket {
        places.extend(DOT.find_iter(&node.text));
        places.extend(UNDERSCORE.find_iter(&node.text));
    }
    let words = marks.iter().filter(|(_, mark)| *mark == Mark::Defanged);
    places.extend(words.map(|(at, _)| *at as usize));
    places.sort_unstable();
    let (mut index, mut done) = (0, 0);
    for at in places {
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if at < done {
            continue;
        }
        let text = &node.text[..cell.span.end as usize];
        let floor = done.max(cell.span.start as usize);
        let (from, to, pieces) = around(text, at, floor);
        done = to.max(at + 1);
        let bytes = || pieces.iter().flat_map(|(bytes, _)| *bytes);
        let digits = bytes().filter(|b| b.is_ascii_digit()).count();
        if digits < DIGITS_MIN || bytes().count() < BYTES_MIN {
            continue;
        }
        child_around(node, cell, Layer::Fold, (from, to), spawn, |child| {
            for (bytes, span) in &pieces {
                let how = match span.len() == bytes.len() {
                    true => How::Copy,
                    false => How::Atom,
                };
                child.push(bytes, *span, how);
            }
        });
    }
}

/// Bytes that come out, and where they are written.
type Piece<'t> = (&'t [u8], Span);

/// The word around the sign at `at`: where it begins and ends, and what it is made of.
fn around(text: &[u8], at: usize, floor: usize) -> (usize, usize, Vec<Piece<'_>>) {
    let of_piece = |b: &&u8| b.is_ascii_alphanumeric() || b"_-+/=:.?&%~@".contains(b);
    let back = text[floor..at].iter().rev().take(PIECE_BYTES_MAX);
    let from = at - back.take_while(of_piece).count();
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    // `hxxps://`
    let scheme = text[from..at].len() >= 5 && text[from..from + 4].eq_ignore_ascii_case(b"hxxp");
    let mut end = from;
    if scheme {
        pieces.push((b"http", Span::new(from, from + 4)));
        end += 4;
    }
    loop {
        let rest = text[end..].iter().take(PIECE_BYTES_MAX);
        let len = rest.take_while(of_piece).count();
        if len > 0 {
            pieces.push((&text[end..end + len], Span::new(end, end + len)));
        }
        end += len;
        let sign = SIGNS.iter().find(|(written, _)| {
            let here = text.get(end..end + written.len());
            here.is_some_and(|here| here.eq_ignore_ascii_case(written))
        });
        let Some((written, meant)) = sign else {
            break;
        };
        // A sign that nothing follows ends a sentence.
        let next = text.get(end + written.len());
        if !next.is_some_and(|b| of_piece(&b) || *b == b'[' || *b == b'(') {
            break;
        }
        pieces.push((*meant, Span::new(end, end + written.len())));
        end += written.len();
    }
    (from, end, pieces)
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn signs_in_brackets() {
        for (text, want) in [
            (
                "see hxxps://hooks[.]chat[.]com/services/T0AB12CD3/x9",
                Some("see https://hooks.chat.com/services/T0AB12CD3/x9"),
            ),
            (
                "defanged sk[_]live[_]4eC39HqLyjWDarjt",
                Some("sk_live_4eC39HqLyjWDarjt"),
            ),
            (
                "is eyJhbGci0(dot)eyJzdWI1(dot)k3vq9x now",
                Some("is eyJhbGci0.eyJzdWI1.k3vq9x now"),
            ),
            ("xy[dot]12345678901234567", Some("xy.12345678901234567")),
            ("evil[.]example[.]com", None),
            ("10[.]9[.]8[.]7", None),
            ("a regex of 1234567890123 [.] and so on", None),
            ("match[_] in 1234567890123456789", None),
        ] {
            assert_child(text, Layer::Fold, want);
        }
    }

    #[test]
    fn many_are_bounded() {
        assert_bounded("sk[_]live[_]4eC39HqLyjWDarjt ");
    }
}
