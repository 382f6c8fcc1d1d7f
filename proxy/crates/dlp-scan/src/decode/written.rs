//! Characters written out: `\u0041`, `\x41`, `\101`, `\"`, `\/`, `\_`, `%41`, `&#65;`, `&amp;`, `=41`.

use super::{Spawner, begin_cell, copy, margin_after, margin_before};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::traces::Traces;

/// Written-out characters this close together become one child; those in one word do, however far apart. Lines of a mail have
/// 76 (RFC 2045, section 6.7).
const GAP_MAX: usize = 64;
const LINE_GAP_MAX: usize = 78;
/// Most bytes of the word before the first of them, and behind the last, that come along.
const WORD_BYTES_MAX: usize = 4096;

type Reader = fn(&[u8], usize) -> Option<(char, usize)>;

pub(super) fn decode(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    let written = traces.written;
    if written.any() {
        for cell in super::cells_with(node, [b'\\', b'%', b'&']) {
            if written.backslash {
                islands(node, cell, b'\\', backslash, Layer::Escapes, spawn);
            }
            if written.percent {
                islands(node, cell, b'%', percent, Layer::Percent, spawn);
            }
            if written.entity {
                islands(node, cell, b'&', entity, Layer::Html, spawn);
            }
        }
    }
    if traces.quoted
        && let Some(first) =
            memchr::memmem::find(&node.text, b"=\n").or_else(|| quoted_pair(&node.text))
    {
        let from = node.cells.partition_point(|c| c.span.end as usize <= first);
        for cell in node.cells[from..].iter().filter(|c| c.leaf != NO_LEAF) {
            islands(node, cell, b'=', quoted, Layer::QuotedPrintable, spawn);
        }
    }
}

/// Finds each sign, reads what it begins, and makes a child of every cluster.
fn islands(
    node: &Node,
    cell: &Cell,
    sign: u8,
    read: Reader,
    layer: Layer,
    spawn: &mut Spawner<'_>,
) {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let mail = layer == Layer::QuotedPrintable;
    let gap_max = if mail { LINE_GAP_MAX } else { GAP_MAX };
    let mut at = floor;
    while let Some((first, ..)) = next(node, at, ceil, sign, read) {
        let Some(mut child) = spawn.begin(layer) else {
            return;
        };
        // In a mail one sign at the end of a line may as well be that of base64: only with another near it are words glued.
        let second = ceil.min(first + gap_max + 12);
        let glued = !mail || next(node, first + 1, second, sign, read).is_some();
        let of_word = |b: u8| glued && of_word(b);
        let name = begin_cell(&mut child, node, super::name_of(node, cell));
        let start = child.text.len();
        let before = first.saturating_sub(WORD_BYTES_MAX).max(floor).max(at);
        let word = node.text[before..first].iter().rposition(|b| !of_word(*b));
        let mut copied = margin_before(&node.text, first, floor.max(at));
        copied = copied.min(word.map_or(before, |n| before + n + 1));
        let mut from = first;
        let mut word_end = first;
        let (mut bytes, mut utf8) = (Vec::new(), [0; 4]);
        loop {
            if word_end <= from {
                let rest = &node.text[from..ceil];
                let len = rest.iter().position(|b| !of_word(*b));
                word_end = from + len.unwrap_or(rest.len());
            }
            let near = ceil.min((from + gap_max + 12).max(word_end));
            let Some((pos, c, len)) = next(node, from, near, sign, read) else {
                break;
            };
            if pos > from + gap_max && pos >= word_end && pos != first {
                break;
            }
            if pos > copied {
                flush(&mut child, &mut bytes, layer);
                copy_before(&mut child, node, (copied, pos), first);
            }
            // Bytes above 0x7F written one at a time are pieces of UTF-8.
            if c == SOFT_BREAK {
                flush(&mut child, &mut bytes, layer);
            } else if (0x80..0x100).contains(&u32::from(c)) {
                bytes.push(((u32::from(c) & 0xFF) as u8, pos, len));
            } else {
                flush(&mut child, &mut bytes, layer);
                child.push(
                    c.encode_utf8(&mut utf8).as_bytes(),
                    Span::new(pos, pos + len),
                    How::Atom,
                );
            }
            copied = pos + len;
            from = copied;
            if child.text.len() > spawn.room() {
                break;
            }
        }
        flush(&mut child, &mut bytes, layer);
        let word = word_end.min(copied + WORD_BYTES_MAX);
        let end = margin_after(&node.text, copied, ceil).max(word);
        copy(&mut child, node, copied, end);
        child.close_cell(start, name, cell.kind, 0);
        spawn.end(child);
        at = from.max(first + 1);
    }
}

/// Copies what stands before a written character; the head of a data URI before the first is no part of its value.
fn copy_before(child: &mut Node, node: &Node, (from, to): (usize, usize), first: usize) {
    let head = match to == first {
        true => super::without_data_head(&node.text[from..to]).len(),
        false => to - from,
    };
    copy(child, node, from, from + head);
}

/// What a signed token is made of, and what characters are written out with.
fn of_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.+~%\\&#;".contains(&b)
}

/// Bytes written one at a time, pushed as the characters they are in UTF-8. What is none are characters of Latin 1,
/// as a string's `\xe9` is in most languages; in an address or a mail they were broken.
fn flush(child: &mut Node, bytes: &mut Vec<(u8, usize, usize)>, layer: Layer) {
    if bytes.is_empty() {
        return;
    }
    let raw: Vec<u8> = bytes.iter().map(|(b, ..)| *b).collect();
    let last = bytes[bytes.len() - 1];
    let src = Span::new(bytes[0].1, last.1 + last.2);
    match std::str::from_utf8(&raw) {
        Err(_) if layer == Layer::Escapes || layer == Layer::Html => {
            for (byte, at, len) in bytes.iter() {
                let mut utf8 = [0; 4];
                let c = char::from(*byte).encode_utf8(&mut utf8);
                child.push(c.as_bytes(), Span::new(*at, at + len), How::Atom);
            }
        }
        _ => child.push(String::from_utf8_lossy(&raw).as_bytes(), src, How::Atom),
    }
    bytes.clear();
}

fn next(
    node: &Node,
    from: usize,
    ceil: usize,
    sign: u8,
    read: Reader,
) -> Option<(usize, char, usize)> {
    let mut at = from;
    loop {
        at += memchr::memchr(sign, node.text.get(at..ceil)?)?;
        if let Some((c, len)) = read(&node.text[..node.text.len().min(ceil + 12)], at)
            && at + len <= ceil
        {
            return Some((at, c, len));
        }
        at += 1;
    }
}

/// What a line break that is none is read as: it leaves nothing behind.
const SOFT_BREAK: char = '\0';

/// Two upper-case hexadecimal digits after `=`, as in `=41=42`, twice: once alone is an assignment.
fn quoted_pair(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'=', text).find(|at| {
        quoted(text, *at).is_some()
            && text.get(at + 3) == Some(&b'=')
            && quoted(text, at + 3).is_some()
    })
}

/// `=41`, or `=` at the end of a line (RFC 2045, section 6.7).
fn quoted(text: &[u8], at: usize) -> Option<(char, usize)> {
    let rest = text.get(at + 1..)?;
    // The second of two ends a base64 value.
    if at > 0 && text[at - 1] == b'=' && rest.first().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        return None;
    }
    if rest.first() == Some(&b'\n') {
        return Some((SOFT_BREAK, 2));
    }
    if rest.starts_with(b"\r\n") {
        return Some((SOFT_BREAK, 3));
    }
    let pair = rest.get(..2)?;
    let upper = |b: &u8| b.is_ascii_digit() || (b'A'..=b'F').contains(b);
    let code = hex(pair).filter(|_| pair.iter().all(upper))?;
    (code >= 0x20).then_some((char::from_u32(code)?, 3))
}

/// One or more backslashes (text that was escaped again and again) and what they escape.
fn backslash(text: &[u8], at: usize) -> Option<(char, usize)> {
    let run = text[at..]
        .iter()
        .take(16)
        .take_while(|b| **b == b'\\')
        .count();
    let rest = &text[at + run..];
    let (c, len) = match rest.first()? {
        b'u' if rest.get(1) == Some(&b'{') => {
            let close = rest.iter().take(10).position(|b| *b == b'}')?;
            (char::from_u32(hex(&rest[2..close])?)?, close + 1)
        }
        b'u' => {
            let mut joined = [b'\\'; 12];
            let n = rest.len().min(11);
            joined[1..=n].copy_from_slice(&rest[..n]);
            let (c, len) = super::json::escape(&joined[..=n])?;
            (c, len - 1)
        }
        b'U' => (char::from_u32(hex(rest.get(1..9)?)?)?, 9),
        b'x' if rest.get(1) == Some(&b'{') => {
            let close = rest.iter().take(10).position(|b| *b == b'}')?;
            (char::from_u32(hex(&rest[2..close])?)?, close + 1)
        }
        b'x' => (char::from_u32(hex(rest.get(1..3)?)?)?, 3),
        // CSS: six digits.
        b'0' if rest.starts_with(b"0000") && hex(rest.get(4..6)?).is_some_and(|n| n >= 0x20) => {
            (char::from_u32(hex(&rest[4..6])?)?, 6)
        }
        b'0'..=b'3' => {
            let octal = |b: &u8| (b'0'..=b'7').contains(b);
            // `g\0h\0`: zeros between the characters.
            let Some(d) = rest.get(..3).filter(|d| d.iter().all(octal)) else {
                return match rest[0] {
                    b'0' => Some((SOFT_BREAK, run + 1)),
                    _ => octal_in_row(text, at, run).map(|c| (c, run + 2)),
                };
            };
            let n = d.iter().fold(0, |n, b| n * 8 + u32::from(b - b'0'));
            (char::from_u32(n).filter(|c| *c >= ' ')?, 3)
        }
        b'4'..=b'7' => (octal_in_row(text, at, run)?, 2),
        b'"' => ('"', 1),
        // JSON as some write it (`https:\/\/`), within text that was read as JSON before.
        b'/' => ('/', 1),
        // Markdown and TeX.
        b'_' if at > 0 && text[at - 1].is_ascii_alphanumeric() => ('_', 1),
        b'@' if at > 0 && text[at - 1].is_ascii_alphanumeric() => ('@', 1),
        b'.' if at > 0 && text[at - 1].is_ascii_alphanumeric() && near_sign(text, at) => ('.', 1),
        sign if is_quoted_sign(text, at, run) => (char::from(*sign), 1),
        _ => return None,
    };
    Some((c, run + len))
}

/// Signs of keys, links and addresses that are no more than that for a pattern.
const QUOTED_SIGNS: &[u8; 6] = b"-:@,/#";
/// And those that mean something to some patterns, unless letters or digits stand on both sides.
const MAYBE_QUOTED_SIGNS: &[u8; 6] = b"=&%+~;";
/// How near another of them stands where dots, blanks, brackets and quotation marks are what they say.
const QUOTED_REACH: usize = 64;

/// Is it a sign within a value that Markdown, a shell or `re.escape` put a backslash before: between letters and digits, or
/// beside others like it? Brackets alone are a pattern's, as dots are, and a blank may be that of a file's name.
fn is_quoted_sign(text: &[u8], at: usize, run: usize) -> bool {
    let of_word = |b: &u8| b.is_ascii_alphanumeric() || *b >= 0x80;
    let sign = |b: &u8| *b == b' ' || b.is_ascii_punctuation() && *b != b'\\';
    let own = text.get(at + run).filter(|b| sign(b));
    let before = &text[..at];
    let begun = match before {
        [.., b'\\', last] if sign(last) => true,
        [.., last] => of_word(last),
        [] => false,
    };
    let goes_on = match text.get(at + run + 1..).unwrap_or_default() {
        [b'\\', next, ..] => sign(next),
        [next, ..] => of_word(next),
        [] => begun,
    };
    let near = &text[at.saturating_sub(QUOTED_REACH)..text.len().min(at + QUOTED_REACH)];
    let escaped = |is: fn(&u8) -> bool| {
        let pairs = near.windows(2);
        pairs.filter(|two| two[0] == b'\\' && is(&two[1])).count()
    };
    let between = before.last().is_some_and(of_word) && text.get(at + run + 1).is_some_and(of_word);
    own.is_some_and(|b| {
        begun
            && goes_on
            && (QUOTED_SIGNS.contains(b)
                || between && MAYBE_QUOTED_SIGNS.contains(b)
                || escaped(|b| QUOTED_SIGNS.contains(b)) > 0
                || escaped(|b| *b == b' ') > 1)
    })
}

/// Is the `@` of a mail address escaped nearby, too? A dot alone may be a pattern's.
fn near_sign(text: &[u8], at: usize) -> bool {
    const REACH: usize = 32;
    let near = &text[at.saturating_sub(REACH)..text.len().min(at + REACH)];
    near.windows(2).any(|two| two == b"\\@")
}

/// A character of two octal digits, as a shell writes it, where another in octal stands before or behind it: alone it may be
/// a group of a pattern.
fn octal_in_row(text: &[u8], at: usize, run: usize) -> Option<char> {
    let octal = |b: &u8| (b'0'..=b'7').contains(b);
    let pair = text.get(at + run..at + run + 2)?;
    let ends = |b: Option<&u8>| b.is_none_or(|b| !octal(b));
    let code = pair
        .iter()
        .fold(0, |n, b| n * 8 + u32::from(b.wrapping_sub(b'0')));
    let behind = text.get(at + run + 2..).unwrap_or_default();
    let before = &text[at.saturating_sub(4)..at];
    let stands = |digits: &[u8]| (2..=3).contains(&digits.len()) && digits.iter().all(octal);
    let goes_on = behind.first() == Some(&b'\\') && behind.get(1..3).is_some_and(stands);
    let went_on =
        before.rsplit(|b| *b == b'\\').next().is_some_and(stands) && before.contains(&b'\\');
    let is_char = pair.iter().all(octal) && ends(behind.first()) && code >= 0x20;
    char::from_u32(code).filter(|_| is_char && (goes_on || went_on))
}

fn hex(digits: &[u8]) -> Option<u32> {
    (!digits.is_empty() && digits.len() <= 8)
        .then(|| super::json::hex4(digits))
        .flatten()
}

fn percent(text: &[u8], at: usize) -> Option<(char, usize)> {
    if text.get(at + 1) == Some(&b'u') {
        return Some((char::from_u32(hex(text.get(at + 2..at + 6)?)?)?, 6));
    }
    Some((char::from_u32(hex(text.get(at + 1..at + 3)?)?)?, 3))
}

fn entity(text: &[u8], at: usize) -> Option<(char, usize)> {
    let rest = &text[at..text.len().min(at + 12)];
    if rest.get(1) == Some(&b'#') {
        let hexed = matches!(rest.get(2), Some(b'x' | b'X'));
        let from = if hexed { 3 } else { 2 };
        let digits = rest[from..]
            .iter()
            .take_while(|b| {
                if hexed {
                    b.is_ascii_hexdigit()
                } else {
                    b.is_ascii_digit()
                }
            })
            .count();
        if digits == 0 || digits > 7 {
            return None;
        }
        let n = u32::from_str_radix(
            std::str::from_utf8(&rest[from..from + digits]).ok()?,
            if hexed { 16 } else { 10 },
        )
        .ok()?;
        let len = from + digits;
        return Some((
            char::from_u32(n)?,
            len + usize::from(rest.get(len) == Some(&b';')),
        ));
    }
    const NAMED: &[(&str, char)] = &[
        ("&amp;", '&'),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&nbsp;", ' '),
        ("&colon;", ':'),
        ("&equals;", '='),
        ("&lowbar;", '_'),
        ("&period;", '.'),
        ("&commat;", '@'),
        ("&sol;", '/'),
        ("&hyphen;", '-'),
        ("&num;", '#'),
        ("&plus;", '+'),
        ("&Tab;", '\t'),
        ("&NewLine;", '\n'),
        ("&dash;", '-'),
        ("&dollar;", '$'),
    ];
    NAMED
        .iter()
        .find(|(n, _)| rest.starts_with(n.as_bytes()))
        .map(|(n, c)| (*c, n.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::children;

    #[test]
    fn written_out_characters() {
        let cases = [
            (r"key \u0067hp", Layer::Escapes, "key ghp"),
            (r"a\\u0067b", Layer::Escapes, "agb"),
            (r"\x67\x68\x70\x5f", Layer::Escapes, "ghp_"),
            (r"\u{67}\U00000068\160x", Layer::Escapes, "ghpx"),
            (r"\x6e\xc3\xba\x6d", Layer::Escapes, "núm"),
            (r"\156\303\272\155", Layer::Escapes, "núm"),
            (r"caf\xe9 \u00e9t\u00e9", Layer::Escapes, "café été"),
            (r#"{\"a\":\"b\"} and"#, Layer::Escapes, r#"{"a":"b"} and"#),
            (r"the key ghp\_a1\_b2", Layer::Escapes, "the key ghp_a1_b2"),
            (r"sk\-ant\-a1\.b2", Layer::Escapes, "sk-ant-a1.b2"),
            (r"12B\,\ MG\ Road", Layer::Escapes, "12B, MG Road"),
            (r"Do\ it\ at\ once", Layer::Escapes, "Do it at once"),
            (
                r#"api\_key\ \=\ f\(\"a1\-b2\"\)"#,
                Layer::Escapes,
                r#"api_key = f("a1-b2")"#,
            ),
            (
                r"at https:\/\/a.example\/b",
                Layer::Escapes,
                "at https://a.example/b",
            ),
            (r"$'\147\62\160'", Layer::Escapes, "$'g2p'"),
            (r"$'\160\62'", Layer::Escapes, "$'p2'"),
            ("d=%67%68p%5F end", Layer::Percent, "d=ghp_ end"),
            ("d: data:,%67%68p%5F end", Layer::Percent, "d: ghp_ end"),
            ("d=%c3%a9t%C3%A9...", Layer::Percent, "d=été..."),
            ("a &#103;&#x68;&#112 b", Layer::Html, "a ghp b"),
            ("&lt;IMPORTANT&gt;", Layer::Html, "<IMPORTANT>"),
            ("k =67=68=70_=C3=A9 z", Layer::QuotedPrintable, "k ghp_é z"),
            (
                "token ghp_abc=\ndef=\r\nghi",
                Layer::QuotedPrintable,
                "token ghp_abcdefghi",
            ),
        ];
        for (text, layer, want) in cases {
            let got = children(text);
            assert!(
                got.iter().any(|(l, t, _)| *l == layer && t == want),
                "{text}"
            );
        }
    }

    #[test]
    fn ordinary_text_makes_no_child() {
        for text in [
            "100% of C:\\dir\\name",
            "a & b && c",
            "50%off AT&T",
            "\\n\\t only",
            "s/(a)(b)/\\21 \\12/",
            "C:\\_cache",
            "a=41 b=42",
            "x=FF;y=AB",
            r"^\d+\.\d+$",
            r"a\.b|c\ d",
            r"[\w\-]+\+$",
            r"\%(filter\|text\|handle\)\>",
        ] {
            let got = children(text);
            assert!(
                got.iter().all(|(l, ..)| !matches!(
                    l,
                    Layer::Escapes | Layer::Percent | Layer::Html | Layer::QuotedPrintable
                )),
                "{text}"
            );
        }
    }

    #[test]
    fn offsets_lead_back_to_what_was_written() {
        let text = r"key \u0067hp_abc tail";
        for (_, child, map) in children(text) {
            let at = child.find("ghp_abc").unwrap();
            assert_eq!(&text[map(at, at + 7)], r"\u0067hp_abc");
        }
    }
}
