//! A literal in a call that turns it round, takes signs out of it or reads it as hexadecimal digits: `"x7kq".split("").reverse()`,
//! `strrev('x7kq')`, `"ab#cd".replace("#", "")`, `pack("H*", "6768")`, `$(echo 6768 | xxd -r -p)`. What comes of it takes the
//! place of the whole call, so that the name it is given to stands beside it. And tokens with their signs in words:
//! `xapp dash 1 dash A7Q`.

use super::beside::{Call, call_in_place};
use super::marks::Mark;
use super::{Spawner, child_around, label_before};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// Longest literal, and longest name of a call before it.
const LITERAL_BYTES_MAX: usize = 1024;
const NAME_BYTES_MAX: usize = 48;
/// Shorter ones hold nothing that a rule finds.
const BYTES_MIN: usize = 6;
/// The same with signs in words.
const SIGNED_BYTES_MIN: usize = 10;

/// What a call makes of a literal.
struct Made {
    /// The call with all its arguments.
    place: (usize, usize),
    layer: Layer,
    pieces: Vec<Piece>,
}

/// Bytes, where they are written, and how they come out of that.
type Piece = (Vec<u8>, Span, How);

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    sign_words(node, marks, spawn);
    let (mut index, mut done) = (0, 0);
    for (at, mark) in marks.iter().map(|(at, mark)| (*at as usize, *mark)) {
        let own = mark == Mark::Called
            || mark == Mark::Backwards
                && (node.text[at] == b'[' || node.text[at..].starts_with(b"rev <<<"));
        if !own || at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let text = Text {
            bytes: &node.text[..cell.span.end as usize],
            floor: done.max(cell.span.start as usize),
            bare: matches!(node.layer, Some(Layer::Base64 | Layer::Hex | Layer::Rot13)),
        };
        let made = match text.bytes[at].to_ascii_lowercase() {
            // `rev`, and what takes signs out.
            b'[' => text.turned(at),
            b'.' | b's' => text.turned(at).or_else(|| text.turned_inside(at)),
            b'r' if text.is(b"replace", at) => text.replaced(at),
            b'r' if text.is(b"rev <<<", at) => text.here(at),
            b'g' => text.replaced(at),
            b'r' => text.turned_inside(at),
            b'x' => text.piped(at),
            _ => text.hex(at),
        };
        if let Some(made) = made {
            let before = std::mem::replace(&mut done, made.place.1.max(at + 1));
            emit(node, cell, made, before, spawn);
        }
    }
}

/// Up to `done` the calls before it reach.
fn emit(node: &Node, cell: &Cell, made: Made, done: usize, spawn: &mut Spawner<'_>) {
    // What says that it is turned says so of what was turned, too.
    if node.turned && made.layer == Layer::Reversed {
        return;
    }
    let (from, to) = made.place;
    let (label, sign) = match label_before(&node.text, cell, from) {
        (label, sign) if label >= done => (label, sign),
        _ => (from, &b" "[..]),
    };
    let call = Call { label, from, to };
    call_in_place(node, cell, made.layer, &call, spawn, |child| {
        child.push(sign, Span::new(from, from + 1), How::Atom);
        for (bytes, span, how) in &made.pieces {
            child.push(bytes, *span, *how);
        }
        child.push(b" ", Span::new(to - 1, to), How::Atom);
    });
}

struct Text<'t> {
    bytes: &'t [u8],
    floor: usize,
    /// Was a call within another replaced by its value, which has no quotes? `strrev( value )`
    bare: bool,
}

impl Text<'_> {
    fn at(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    fn is(&self, word: &[u8], at: usize) -> bool {
        let here = self.at(at).get(..word.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(word))
    }

    /// The first byte from `at` on that is none of `gap`.
    fn skip(&self, at: usize, gap: &[u8]) -> usize {
        at + self
            .at(at)
            .iter()
            .take(16)
            .take_while(|b| gap.contains(b))
            .count()
    }

    /// The content of the literal that begins at `at`, and where what follows it begins.
    fn literal(&self, at: usize) -> Option<(Span, usize)> {
        let quote = *self
            .at(at)
            .first()
            .filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
        let body = &self.at(at)[1..];
        let len = memchr::memchr2(quote, b'\n', &body[..body.len().min(LITERAL_BYTES_MAX)])?;
        (body[len] == quote).then(|| (Span::new(at + 1, at + 1 + len), at + len + 2))
    }

    /// The literal that ends before `end`.
    fn literal_before(&self, end: usize) -> Option<Span> {
        let quote = *self.bytes[self.floor..end]
            .last()
            .filter(|b| matches!(b, b'"' | b'\'' | b'`'))?;
        let from = (end - 1).saturating_sub(LITERAL_BYTES_MAX).max(self.floor);
        let open = from + memchr::memrchr2(quote, b'\n', &self.bytes[from..end - 1])?;
        (self.bytes[open] == quote).then(|| Span::new(open + 1, end - 1))
    }

    /// Where the name with its dots begins that ends at `end`.
    fn name_start(&self, end: usize) -> usize {
        let of_name = |b: &&u8| b.is_ascii_alphanumeric() || b"_.:$\\".contains(b);
        let before = self.bytes[self.floor..end].iter().rev();
        end - before.take(NAME_BYTES_MAX).take_while(of_name).count()
    }

    fn reversed(&self, literal: Span, place: (usize, usize)) -> Option<Made> {
        let bytes: Vec<u8> = self.bytes[literal.range()].iter().rev().copied().collect();
        let whole = bytes.len() >= BYTES_MIN && bytes.is_ascii();
        whole.then(|| Made {
            place,
            layer: Layer::Reversed,
            pieces: vec![(bytes, literal, How::Reversed)],
        })
    }

    /// `"x7kq"[::-1]`, `"x7kq".split("").reverse().join("")`, `"x7kq".reverse`.
    fn turned(&self, at: usize) -> Option<Made> {
        let before = &self.bytes[self.floor..at];
        let parted = [&b".split(\"\")"[..], b".split('')", b".chars", b".chars()"]
            .into_iter()
            .find(|call| before.ends_with(call));
        let end = at - parted.map_or(0, <[u8]>::len);
        // `[..."x7kq"].reverse()`
        let spread = before.ends_with(b"]");
        let literal = self.literal_before(end - usize::from(spread))?;
        let mut to = match self.at(at).first() {
            Some(b'[') => at + 6,
            _ => self.skip(at + 8, b"()"),
        };
        for join in [&b".join(\"\")"[..], b".join('')", b".collect::<String>()"] {
            to += if self.at(to).starts_with(join) {
                join.len()
            } else {
                0
            };
        }
        let start = literal.start as usize - 1;
        let opened = self.bytes[self.floor..start].ends_with(b"[...");
        self.reversed(literal, (start - 4 * usize::from(spread && opened), to))
    }

    /// `strrev("x7kq")`, `reverse('x7kq')`.
    fn turned_inside(&self, at: usize) -> Option<Made> {
        let open = at + self.at(at).iter().take(12).position(|b| *b == b'(')? + 1;
        let start = self.skip(open, b" ");
        let (literal, after) = self.literal(start).or_else(|| {
            let word = self.at(start).iter().take(LITERAL_BYTES_MAX);
            let len = word
                .take_while(|b| b.is_ascii_graphic() && **b != b')')
                .count();
            let end = start + len;
            (self.bare && len > 0).then(|| (Span::new(start, end), end))
        })?;
        self.reversed(literal, (self.name_start(at), self.skip(after, b" )")))
    }

    /// `$(rev <<<'x7kq')`, in a shell.
    fn here(&self, at: usize) -> Option<Made> {
        let (literal, after) = self.literal(self.skip(at + 7, b" "))?;
        let before = &self.bytes[self.floor..at];
        let opened = if before.ends_with(b"$(") {
            2
        } else {
            usize::from(before.ends_with(b"`"))
        };
        self.reversed(literal, (at - opened, self.skip(after, b" )`")))
    }

    /// `"ab#cd".replace("#", "")`, `replace('ab#cd', '#', '')`: what is taken out.
    fn replaced(&self, at: usize) -> Option<Made> {
        let open = at + self.at(at).iter().take(16).position(|b| *b == b'(')? + 1;
        let (first, next) = self.literal(self.skip(open, b" /"))?;
        let (second, after) = self.literal(self.skip(next, b", "))?;
        let (text, out, place) = if second.is_empty() {
            let dot = self.bytes[self.floor..at].last() == Some(&b'.');
            let text = self.literal_before(at - usize::from(dot))?;
            (text, first, (text.start as usize - 1, after))
        } else {
            let (empty, after) = self.literal(self.skip(after, b", "))?;
            let whole = empty.is_empty().then_some((self.name_start(at), after))?;
            (first, second, whole)
        };
        let sign = &self.bytes[out.range()];
        let (mut pieces, mut from) = (Vec::new(), text.start as usize);
        let mut piece = |from: usize, to: usize| {
            let bytes = self.bytes[from..to].to_vec();
            pieces.push((bytes, Span::new(from, to), How::Copy));
        };
        if sign.is_empty() {
            return None;
        }
        for n in memchr::memmem::find_iter(&self.bytes[text.range()], sign) {
            let cut = text.start as usize + n;
            piece(from, cut);
            from = cut + sign.len();
        }
        piece(from, text.end as usize);
        let long = pieces.iter().map(|p| p.0.len()).sum::<usize>() >= BYTES_MIN;
        (pieces.len() > 1 && long).then_some(Made {
            place: (place.0, self.skip(place.1, b" )")),
            layer: Layer::Concat,
            pieces,
        })
    }

    /// `pack("H*", "6768")`, `bytes.fromhex("6768")`.
    fn hex(&self, at: usize) -> Option<Made> {
        let open = at + self.at(at).iter().take(16).position(|b| *b == b'(')? + 1;
        let (mut literal, mut after) = self.literal(self.skip(open, b" "))?;
        if self
            .at(literal.start as usize)
            .first()
            .is_some_and(|b| matches!(b, b'H' | b'h'))
        {
            (literal, after) = self.literal(self.skip(after, b", ["))?;
        }
        self.digits(literal, (self.name_start(at), self.skip(after, b" ])")))
    }

    /// `$(echo 6768 | xxd -r -p)`.
    fn piped(&self, at: usize) -> Option<Made> {
        let from = at.saturating_sub(LITERAL_BYTES_MAX).max(self.floor);
        let pipe = from
            + self.bytes[from..at]
                .trim_ascii_end()
                .strip_suffix(b"|")?
                .len();
        let (start, end) = word_before(self.bytes, pipe, from)?;
        let to = at
            + self
                .at(at)
                .iter()
                .take(24)
                .take_while(|b| b" -rpxd".contains(b))
                .count();
        let open = echo_before(self.bytes, start, self.floor);
        self.digits(Span::new(start, end), (open, self.skip(to, b")`")))
    }

    fn digits(&self, literal: Span, place: (usize, usize)) -> Option<Made> {
        let digits = &self.bytes[literal.range()];
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
        let bytes: Vec<u8> = digits.chunks(2).map(pair).collect::<Option<_>>()?;
        let shown = bytes.iter().all(|b| (0x20..0x7F).contains(b));
        (shown && bytes.len() >= BYTES_MIN).then(|| Made {
            place,
            layer: Layer::Hex,
            pieces: vec![(bytes, literal, How::Blocks { dst: 1, src: 2 })],
        })
    }
}

/// Words for signs, and the signs.
const SIGN_WORDS: [(&[u8], &[u8]); 7] = [
    (b" colon ", b":"),
    (b" dash ", b"-"),
    (b" hyphen ", b"-"),
    (b" minus ", b"-"),
    (b" underscore ", b"_"),
    (b" dot ", b"."),
    (b" slash ", b"/"),
];

/// `xapp dash 1 dash A7Q underscore 12`: pieces of a token with the signs between them in words.
fn sign_words(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for (at, _) in marks.iter().filter(|(_, mark)| *mark == Mark::SignWord) {
        let at = *at as usize;
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        if at < done {
            continue;
        }
        let text = &node.text[..cell.span.end as usize];
        let of_piece = |b: &&u8| b.is_ascii_alphanumeric() || b"_-+/=".contains(b);
        let floor = done.max(cell.span.start as usize);
        let len = text[floor..at].iter().rev().take_while(of_piece).count();
        let (start, mut end) = (at - len, at);
        let mut pieces = vec![(text[start..at].to_vec(), Span::new(start, at))];
        let sign_at = |at: usize| {
            let stands = |word: &[u8]| {
                let here = text.get(at..at + word.len());
                here.is_some_and(|here| here.eq_ignore_ascii_case(word))
            };
            SIGN_WORDS.iter().find(|(word, _)| stands(word))
        };
        while let Some((word, sign)) = sign_at(end) {
            let from = end + word.len();
            let len = text[from..].iter().take_while(of_piece).count();
            if len == 0 {
                break;
            }
            pieces.push((sign.to_vec(), Span::new(end, from)));
            pieces.push((text[from..from + len].to_vec(), Span::new(from, from + len)));
            end = from + len;
        }
        done = end.max(at + 1);
        let bytes = || pieces.iter().flat_map(|(bytes, _)| bytes);
        let digits = bytes().filter(|b| b.is_ascii_digit()).count();
        // One alone would be the same text again, and that one's child, too.
        if len == 0 || pieces.len() < 2 || digits < 3 || bytes().count() < SIGNED_BYTES_MIN {
            continue;
        }
        child_around(node, cell, Layer::Codes, (start, end), spawn, |child| {
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

/// The word before a pipe, without its quotes.
pub(super) fn word_before(text: &[u8], pipe: usize, floor: usize) -> Option<(usize, usize)> {
    let word = text[floor..pipe].trim_ascii_end();
    let end = floor + word.iter().rposition(|b| !b"\"'".contains(b))? + 1;
    let of_word = |b: &&u8| b.is_ascii_graphic() && !b"\"'`|;()".contains(b);
    let len = text[floor..end].iter().rev().take_while(of_word).count();
    (len > 0).then_some((end - len, end))
}

/// Where `$(echo -n "` begins that stands before a word, or the word itself.
pub(super) fn echo_before(text: &[u8], at: usize, floor: usize) -> usize {
    let mut before = &text[at.saturating_sub(32).max(floor)..at];
    let from = at - before.len();
    for end in [&b"\""[..], b"'", b" ", b"-n", b" ", b"%s", b"'%s'", b" "] {
        before = before.strip_suffix(end).unwrap_or(before);
    }
    let called = [&b"echo"[..], b"printf"]
        .into_iter()
        .find_map(|name| before.strip_suffix(name));
    let Some(mut before) = called else {
        return at;
    };
    for end in [&b"$("[..], b"`"] {
        before = before.strip_suffix(end).unwrap_or(before);
    }
    from + before.len()
}

#[cfg(test)]
mod tests {
    use crate::decode::tests::{assert_bounded, children};

    #[test]
    fn calls_give_their_value() {
        for (text, want) in [
            (
                "K = \"k7qZ_phg\".split(\"\").reverse().join(\"\");",
                "K = ghp_Zq7k ",
            ),
            ("K = \"k7qZ_phg\"[::-1]", "K = ghp_Zq7k "),
            ("K = [...'k7qZ_phg'].reverse().join('')", "K = ghp_Zq7k "),
            ("$k = strrev('k7qZ_phg');", "$k = ghp_Zq7k "),
            (
                "sshpass -p \"$(rev <<<'k7qZ_phg')\" x",
                "-p \" ghp_Zq7k \" x",
            ),
            ("set k = REVERSE('k7qZ_phg')", "set k = ghp_Zq7k "),
            ("K: \"gh#p_#Zq7k\".replace(\"#\", \"\")", "K: ghp_Zq7k "),
            ("K = 'gh--p_--Zq7k'.replaceAll('--', '');", "K = ghp_Zq7k "),
            ("k = \"ghX-p_XZq7k\".gsub(\"X\", \"\")", "k = gh-p_Zq7k "),
            ("SELECT REPLACE('gh#p_#Zq7k', '#', '')", "ghp_Zq7k "),
            ("K pack(\"H*\", \"6768705f5a71376b\").", "K  ghp_Zq7k "),
            (
                "K = bytes.fromhex('6768705f5a71376b').decode()",
                "K = ghp_Zq7k ",
            ),
            ("K=$(echo 6768705f5a71376b | xxd -r -p)", "K = ghp_Zq7k "),
            (
                "the key is xapp dash 1 dash A7Q underscore 12 now",
                "is xapp-1-A7Q_12 now",
            ),
        ] {
            let got = children(text);
            let texts: Vec<_> = got.iter().map(|(l, t, _)| (*l, t.clone())).collect();
            assert!(
                texts.iter().any(|(_, t)| t.contains(want)),
                "{text}: {texts:?}"
            );
        }
    }

    #[test]
    fn calls_of_names_give_nothing() {
        for text in [
            "list.reverse()",
            "name.replace(\"a\", \"b\")",
            "x.replace('', '')",
            "reverse(items)",
            "bytes.fromhex(value)",
            "xxd -r -p dump.txt",
            "an em dash between 2 words",
            "five minus 3 is 2",
            "due 2024-01-15 minus (see note)",
            "12/31/2025 minus $50",
            "order 1234567890 dash — x",
        ] {
            let got = children(text);
            assert!(got.is_empty(), "{text}");
        }
    }

    #[test]
    fn many_are_bounded() {
        assert_bounded("K = \"k7qZ_phgk7qZ_phg\"[::-1];\n");
        assert_bounded("a123456789 Dash ");
    }
}
