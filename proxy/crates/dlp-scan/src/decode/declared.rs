//! Text whose writing is named beside it: `(rot13) tuc_...`, `tr 'A-Za-z' 'N-ZA-Mn-za-m'`, `shifted by 3`, `base85: ...`,
//! and documents in RTF.

use super::digits::{Alphabet, Digits};
use super::marked::{ascii85_digit, groups85, rfc1924_digit};
use super::marks::Mark;
use super::signwise::told_near;
use super::{Spawner, begin_cell, child_around, copy, margin_after, margin_before, rot13};
use crate::check::base64_digit;
use crate::text::{Cell, How, NO_LEAF, Node, RUN_BYTES_MIN, Span};
use crate::{Layer, OverBudget};

/// How far behind the name of a cipher its text begins.
const LEAD_BYTES_MAX: usize = 48;
/// Longest control word of a document.
const CONTROL_BYTES_MAX: usize = 32;
/// Shortest text worth a child.
const BYTES_MIN: usize = 6;

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut index, mut done, mut last) = (0, 0, 0);
    for (at, mark) in marks.iter().map(|(at, mark)| (*at as usize, *mark)) {
        let own = matches!(mark, Mark::Cipher | Mark::Base85 | Mark::Base64 | Mark::Rtf);
        if at < done || !own {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        done = match mark {
            Mark::Cipher if node.text[at..].starts_with(b"xor") => xored(node, cell, at, spawn),
            Mark::Cipher => cipher(node, cell, (at, std::mem::replace(&mut last, at)), spawn),
            Mark::Base85 => base85(node, cell, at, spawn),
            Mark::Base64 if node.text[at] == b'=' => encoded_word(node, cell, at, spawn),
            Mark::Base64 => base64(node, cell, at, spawn),
            _ => rtf(node, cell, at, spawn),
        }
        .unwrap_or(at + 1);
    }
}

/// What each character of a ciphered text stands for.
#[derive(Clone, Copy)]
enum Cipher {
    /// Letters moved back in the alphabet.
    Shift(u8),
    /// All visible ASCII turned by half.
    Rot47,
    /// Letters turned by half, and digits as well.
    Rot18,
    /// The alphabet backwards.
    Atbash,
}

impl Cipher {
    fn plain(self, b: u8) -> u8 {
        match self {
            Self::Shift(13) => rot13(b),
            Self::Shift(n) => match b {
                b'a'..=b'z' => (b - b'a' + 26 - n) % 26 + b'a',
                b'A'..=b'Z' => (b - b'A' + 26 - n) % 26 + b'A',
                b => b,
            },
            Self::Rot47 => match b {
                b'!'..=b'~' => (b - b'!' + 47) % 94 + b'!',
                b => b,
            },
            Self::Rot18 => match b {
                b'0'..=b'9' => (b - b'0' + 5) % 10 + b'0',
                b => rot13(b),
            },
            Self::Atbash => match b {
                b'a'..=b'z' => b'z' - (b - b'a'),
                b'A'..=b'Z' => b'Z' - (b - b'A'),
                b => b,
            },
        }
    }
}

/// Which cipher the name at the head of a text is that of.
fn named(text: &[u8]) -> Option<Cipher> {
    let is =
        |name: &[u8]| text.len() >= name.len() && text[..name.len()].eq_ignore_ascii_case(name);
    if is(b"rot13/rot5") || is(b"rot13+rot5") || is(b"rot13 + rot5") || is(b"rot13+5") {
        return Some(Cipher::Rot18);
    }
    if is(b"rot13") || is(b"rot-13") || is(b"n-za-m") {
        return Some(Cipher::Shift(13));
    }
    if is(b"rot47") {
        return Some(Cipher::Rot47);
    }
    if is(b"atbash") {
        return Some(Cipher::Atbash);
    }
    // `Caesar, 3`, `shifted by 3`: without a number it was three.
    let near = &text[..text.len().min(24)];
    let near = near
        .split(|b| matches!(b, b':' | b'='))
        .next()
        .unwrap_or(near);
    let digits = |b: &u8| b.is_ascii_digit();
    let shift = near.iter().position(digits).map(|at| {
        let number = near[at..].iter().take(2).take_while(|b| digits(b));
        number.fold(0u8, |n, b| n * 10 + (b - b'0'))
    });
    match shift {
        Some(n) => (1..26).contains(&n).then_some(Cipher::Shift(n)),
        None => is(b"caesar").then_some(Cipher::Shift(3)),
    }
}

/// The rest of the line behind the name, or the word that is piped into the alphabet. Gives where it ends. Nothing before
/// `last`, the name before this one, is looked at, and a line is read once: however long it is.
fn cipher(
    node: &Node,
    cell: &Cell,
    (at, last): (usize, usize),
    spawn: &mut Spawner<'_>,
) -> Option<usize> {
    if node.turned {
        return None;
    }
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let text = &node.text[..ceil];
    let cipher = named(&text[at..])?;
    let end_of_line = |from: usize| memchr::memchr(b'\n', &text[from..]).map_or(ceil, |n| from + n);
    let piped = text[at..].len() > 6 && text[at..at + 6].eq_ignore_ascii_case(b"n-za-m");
    let mut called = false;
    let (from, to) = if piped {
        let back = last.max(floor);
        let line = memchr::memrchr(b'\n', &text[back..at]).map_or(back, |n| back + n + 1);
        let pipe = line + memchr::memrchr(b'|', &text[line..at])?;
        let word = text[line..pipe].trim_ascii_end();
        let quote = word.last().filter(|b| matches!(b, b'"' | b'\''));
        let end = line + word.len() - usize::from(quote.is_some());
        let sign = quote.copied().unwrap_or(b' ');
        (line + memchr::memrchr(sign, &text[line..end])? + 1, end)
    } else {
        let lead = &text[at..ceil.min(at + LEAD_BYTES_MAX)];
        let lead = lead.split(|b| *b == b'\n').next()?;
        if let (Cipher::Rot47, Some(b' ')) = (cipher, lead.get(5)) {
            return rot47_number(node, cell, at, spawn);
        }
        let line_end = end_of_line(at);
        // A `(` opens a call: `rot13("tuc_...")`. Where the sign is missing, the text stands before: `tuc_... (shifted by 13)`.
        match lead.iter().position(|b| matches!(b, b':' | b'=' | b'(')) {
            Some(sign) => {
                let skipped = text[at + sign + 1..line_end].iter().take(4);
                let skipped = skipped.take_while(|b| b" \"'`".contains(b)).count();
                let from = at + sign + 1 + skipped;
                // A literal in a call ends with its quote: what stands behind is in clear.
                let quote = lead[sign] == b'(' && matches!(text[from - 1], b'"' | b'\'');
                let close = memchr::memchr(text[from - 1], &text[from..line_end]);
                called = quote && close.is_some();
                (from, close.filter(|_| quote).map_or(line_end, |n| from + n))
            }
            None => told_near(text, last.max(floor), at, <[u8]>::is_ascii)?,
        }
    };
    let end = match called {
        true => to,
        false => end_of_line(at).max(to),
    };
    if to < from + BYTES_MIN {
        return Some(end);
    }
    let layer = match cipher {
        Cipher::Shift(13) | Cipher::Rot18 => Layer::Rot13,
        _ => Layer::Reversed,
    };
    let mut child = spawn.begin(layer)?;
    let name = begin_cell(&mut child, node, super::name_of(node, cell));
    let start = child.text.len();
    copy(
        &mut child,
        node,
        margin_before(text, at.min(from), floor),
        at.min(from),
    );
    // All of a value stands alone, as rules for it want, or behind its own sign.
    let before = node.text[floor..at.min(from)].trim_ascii_end().last();
    let signed = before.is_none_or(|b| b":=\"'>".contains(b));
    if !signed {
        child.push(b": ", Span::new(from, from + 1), How::Atom);
    }
    let plain: Vec<u8> = text[from..to].iter().map(|b| cipher.plain(*b)).collect();
    child.push(&plain, Span::new(from, to), How::Blocks { dst: 1, src: 1 });
    if !signed {
        child.push(b" ", Span::new(to - 1, to), How::Atom);
    }
    if piped || called || to < at {
        copy(&mut child, node, to, margin_after(text, to, ceil));
    }
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
    Some(end)
}

/// `ROT47 _cgbfcbg`: a number behind the name alone, up to a quote. Gives where it ends.
fn rot47_number(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    const BYTES_MAX: usize = 48;
    const DIGITS_MIN: usize = 5;
    let from = at + 6;
    let rest = &node.text[from..cell.span.end as usize];
    let of_number = |b: &&u8| {
        let plain = Cipher::Rot47.plain(**b);
        **b == b' '
            || plain.is_ascii_digit()
            || plain.is_ascii_uppercase()
            || b"-/.+".contains(&plain)
    };
    let len = rest.iter().take(BYTES_MAX).take_while(of_number).count();
    let len = rest[..len].trim_ascii_end().len();
    let plain: Vec<u8> = rest[..len]
        .iter()
        .map(|b| Cipher::Rot47.plain(*b))
        .collect();
    if plain.iter().filter(|b| b.is_ascii_digit()).count() < DIGITS_MIN {
        return None;
    }
    child_around(
        node,
        cell,
        Layer::Reversed,
        (at, from + len),
        spawn,
        |child| {
            child.push(&plain, Span::new(from, from + len), How::Copy);
        },
    );
    Some(from + len)
}

/// `xor(0x4f): 031b151f`: hexadecimal digits of bytes that were all changed by one that is told. Gives where they end.
fn xored(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    let text = &node.text[at..cell.span.end as usize];
    let hex = |pair: &[u8]| {
        std::str::from_utf8(pair)
            .ok()
            .and_then(|p| u8::from_str_radix(p, 16).ok())
    };
    let digits = |from: usize| {
        text[from..]
            .iter()
            .take_while(|b| b.is_ascii_hexdigit())
            .count()
    };
    let key_at = memchr::memmem::find(&text[..text.len().min(12)], b"0x")? + 2;
    let key = hex(text.get(key_at..key_at + digits(key_at).min(2))?)?;
    let mut from = key_at + digits(key_at);
    from += text[from..]
        .iter()
        .take(6)
        .take_while(|b| b") :=\"'".contains(b))
        .count();
    let len = digits(from) & !1;
    let bytes: Vec<u8> = text[from..from + len]
        .chunks(2)
        .map(|pair| hex(pair).map(|b| b ^ key))
        .collect::<Option<_>>()?;
    let shown = std::str::from_utf8(&bytes).is_ok_and(|t| !t.chars().any(char::is_control));
    let (start, end) = (at + from, at + from + len);
    if bytes.len() >= BYTES_MIN && shown {
        child_around(node, cell, Layer::Hex, (at, end), spawn, |child| {
            child.push(
                &bytes,
                Span::new(start, end),
                How::Blocks { dst: 1, src: 2 },
            );
        });
    }
    Some(end)
}

/// `base85: VPaz}...`: the word behind the name. Gives where it ends.
fn base85(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    let text = &node.text[at..cell.span.end as usize];
    let name = text.iter().take(12).position(|b| *b == b'5')? + 1;
    let lead = text[name..]
        .iter()
        .take(6)
        .take_while(|b| b" )]:=\"'`".contains(b))
        .count();
    let given = text[name..name + lead]
        .iter()
        .any(|b| matches!(b, b':' | b'='));
    let start = name + lead;
    if !given {
        return None;
    }
    let len = text[start..]
        .iter()
        .take_while(|b| b.is_ascii_graphic())
        .count();
    // A word is read once, whatever is in it.
    let end = at + start + len;
    if len < BYTES_MIN {
        return Some(end);
    }
    let word = &text[start..start + len];
    let word = match text[start - 1] {
        quote @ (b'"' | b'\'') => word.split(|b| *b == quote).next().unwrap_or(word),
        _ => word,
    };
    let alphabets = [rfc1924_digit as fn(u8) -> Option<u8>, ascii85_digit];
    let bytes = alphabets.into_iter().find_map(|digit| {
        let bytes = groups85(word.iter().copied(), &digit)?;
        let shown = std::str::from_utf8(&bytes).is_ok_and(|t| !t.chars().any(char::is_control));
        shown.then_some(bytes)
    });
    let Some(bytes) = bytes else {
        return Some(end);
    };
    if bytes.len() > spawn.room() {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
        return Some(end);
    }
    let place = (at + start, at + start + word.len());
    child_around(node, cell, Layer::Base85, place, spawn, |child| {
        child.push(&bytes, Span::new(place.0, place.1), How::Atom);
        child.push(b" ", Span::new(place.1 - 1, place.1), How::Atom);
    });
    Some(place.1)
}

/// How far from its name a short text in base64 stands.
const SHORT_LEAD_MAX: usize = 32;
/// Longer ones are found without a name.
const SHORT_BYTES: std::ops::Range<usize> = 8..RUN_BYTES_MIN;

/// In a call or before a pipe: more than a token has.
const CALLED_BYTES_MAX: usize = 1024;

/// Where the name begins that ends the text, with the module it is of (`[Convert]::From`).
fn name_start(text: &[u8]) -> usize {
    let of_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':');
    let start = text.len() - text.iter().rev().take(48).take_while(of_name).count();
    if !text[start..].starts_with(b"::") || !text[..start].ends_with(b"]") {
        return start;
    }
    let class = text[..start - 1]
        .iter()
        .rev()
        .take(48)
        .take_while(of_name)
        .count();
    match text[..start - 1 - class].ends_with(b"[") {
        true => start - 2 - class,
        false => start,
    }
}

/// Where the command begins whose output a shell puts in the place of `$(...)`: the text ends within its name.
fn command_start(text: &[u8]) -> usize {
    let of_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b' ' | b'/');
    let len = text
        .iter()
        .rev()
        .take(SHORT_LEAD_MAX)
        .take_while(of_name)
        .count();
    let start = text.len() - len;
    match &text[..start] {
        before if before.ends_with(b"$(") => start - 2,
        before if before.ends_with(b"`") => start - 1,
        _ => text.len(),
    }
}

/// `=?utf-8?B?SE40Njg1MTRE?=` (RFC 2047), in the head of a mail. Gives where it ends.
fn encoded_word(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    const LEAD: usize = b"=?utf-8?b?".len();
    let from = at + LEAD;
    let rest = node.text.get(from..cell.span.end as usize)?;
    if node.text[from - 2].eq_ignore_ascii_case(&b'q') {
        return quoted_word(node, cell, (at, from), spawn);
    }
    let len = rest
        .iter()
        .take(CALLED_BYTES_MAX)
        .take_while(|b| base64_digit(**b).is_some())
        .count();
    let pads = rest[len..]
        .iter()
        .take(2)
        .take_while(|b| **b == b'=')
        .count();
    let end = from + len + pads + 2;
    if !rest[len + pads..].starts_with(b"?=") {
        return None;
    }
    let bytes: Vec<u8> = Digits::new(&rest[..len], Alphabet::Base64).collect();
    let shown = std::str::from_utf8(&bytes).is_ok_and(|t| !t.chars().any(char::is_control));
    if bytes.len() >= BYTES_MIN && shown {
        child_around(node, cell, Layer::Base64, (at, end), spawn, |child| {
            child.push(&bytes, Span::new(from, end), How::Atom);
        });
    }
    Some(end)
}

/// `=?utf-8?Q?ghp=5FN5l...?=`: the same with `=` and two digits for what is no letter, and `_` for a blank.
fn quoted_word(
    node: &Node,
    cell: &Cell,
    (at, from): (usize, usize),
    spawn: &mut Spawner<'_>,
) -> Option<usize> {
    let rest = &node.text[from..cell.span.end as usize];
    let rest = &rest[..rest.len().min(CALLED_BYTES_MAX)];
    let len = memchr::memmem::find(rest, b"?=")?;
    let end = from + len + 2;
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let (mut bytes, mut nth) = (Vec::with_capacity(len), 0);
    let mut coded = false;
    while nth < len {
        let pair = || Some(digit(*rest.get(nth + 1)?)? << 4 | digit(*rest.get(nth + 2)?)?);
        match rest[nth] {
            b'=' => {
                bytes.push(pair()?);
                coded = true;
                nth += 2;
            }
            b'_' => bytes.push(b' '),
            b => bytes.push(b),
        }
        nth += 1;
    }
    let shown = std::str::from_utf8(&bytes).is_ok_and(|t| !t.chars().any(char::is_control));
    if coded && bytes.len() >= BYTES_MIN && shown {
        child_around(
            node,
            cell,
            Layer::QuotedPrintable,
            (at, end),
            spawn,
            |child| {
                child.push(&bytes, Span::new(from, end), How::Atom);
            },
        );
    }
    Some(end)
}

/// `(base64): c2VjcmV0MQ==`, `atob("c2VjcmV0MQ")`, `echo c2VjcmV0MQ== | base64 -d`: the word behind the name or before
/// it, where it is too short to be found by itself. Gives where it ends.
fn base64(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = node.text[at..ceil].iter().take(10);
    let after = at + name.take_while(|b| b.is_ascii_alphanumeric()).count();
    let digit = |b: &&u8| crate::text::is_run(**b) || **b == b'=';
    // Of a call the value takes the place, however long it is.
    let behind = || {
        let lead = &node.text[after..ceil.min(after + SHORT_LEAD_MAX)];
        let lead = lead.split(|b| *b == b'\n').next()?;
        // `base64 -d <<< c2VjcmV0MQ==`
        let fed = memchr::memmem::find(lead, b"<<<");
        let fed = fed.filter(|at| !lead[..*at].iter().any(|b| b":=(".contains(b)));
        let sign = match fed {
            Some(at) => at + 3,
            None => lead.iter().position(|b| b":=(".contains(b))? + 1,
        };
        let skipped = lead[sign..].iter().take(4);
        let start = after + sign + skipped.take_while(|b| b" :=(\"'`".contains(b)).count();
        let called = lead[sign - 1] == b'(' || fed.is_some();
        // What is given to a name is read here only if it is short; the padding comes along.
        let most = match called {
            true => CALLED_BYTES_MAX,
            false => SHORT_BYTES.end + 2,
        };
        let word = node.text[start..ceil].iter().take(most);
        let len = word.take_while(digit).count();
        let open = match called {
            true if fed.is_some() => command_start(&node.text[floor..at]) + floor,
            true => name_start(&node.text[floor..at]) + floor,
            false => start,
        };
        Some((start, start + len, open, called))
    };
    let before = || {
        let near = at.saturating_sub(SHORT_LEAD_MAX).max(floor);
        let pipe = near + memchr::memrchr(b'|', &node.text[near..at])?;
        let back = pipe.saturating_sub(CALLED_BYTES_MAX).max(floor);
        let word = node.text[back..pipe].trim_ascii_end();
        let end = back + word.iter().rposition(|b| !b"\"'".contains(b))? + 1;
        let len = node.text[back..end].iter().rev().take_while(digit).count();
        let start = end - len;
        let open = super::called::echo_before(&node.text, start, floor);
        Some((start, end, open, open < start))
    };
    for (start, end, open, called) in [behind(), before()].into_iter().flatten() {
        let word = &node.text[start..end];
        let len = word.iter().rposition(|b| *b != b'=').map_or(0, |n| n + 1);
        let most = match called {
            true => CALLED_BYTES_MAX,
            false => SHORT_BYTES.end,
        };
        if !(SHORT_BYTES.start..most).contains(&len) {
            continue;
        }
        let digits: Option<Vec<u8>> = word[..len].iter().map(|b| base64_digit(*b)).collect();
        let Some(digits) = digits else {
            continue;
        };
        let (mut bytes, mut acc, mut bits) = (Vec::new(), 0u32, 0);
        for value in digits {
            acc = acc << 6 | u32::from(value);
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes.push((acc >> bits) as u8);
            }
        }
        if bytes.len() < BYTES_MIN || !bytes.iter().all(|b| (0x20..0x7F).contains(b)) {
            continue;
        }
        let (label, sign) = super::label_before(&node.text, cell, open);
        child_around(node, cell, Layer::Base64, (label, end), spawn, |child| {
            child.push(sign, Span::new(start, start + 1), How::Atom);
            child.push(&bytes, Span::new(start, end), How::Atom);
            child.push(b" ", Span::new(end - 1, end), How::Atom);
        });
        return Some(end.max(after));
    }
    Some(after)
}

/// Parts of a document that are not shown.
const UNSHOWN: [&[u8]; 6] = [
    b"fonttbl",
    b"colortbl",
    b"stylesheet",
    b"info",
    b"pict",
    b"generator",
];

/// The text of a document in RTF (Microsoft, Rich Text Format Specification 1.9.1). Gives where it ends.
fn rtf(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    let end = cell.span.end as usize;
    let text = &node.text[..end];
    if text.len() - at > spawn.room() {
        spawn.over.get_or_insert(OverBudget::DecodedBytes);
        return Some(end);
    }
    let mut child = spawn.begin(Layer::Escapes)?;
    let name = begin_cell(&mut child, node, super::name_of(node, cell));
    let start = child.text.len();
    let (mut i, mut depth, mut unshown, mut copied) = (at, 0usize, None, at);
    while i < end {
        let b = text[i];
        if !matches!(b, b'{' | b'}' | b'\\' | b'\n' | b'\r') {
            i += 1;
            continue;
        }
        if unshown.is_none() {
            copy(&mut child, node, copied, i);
        }
        let mut wrote: Option<char> = None;
        let from = i;
        match b {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if unshown.is_some_and(|of| depth < of) {
                    unshown = None;
                }
            }
            b'\\' => {
                let control = control(&text[i..]);
                i += control.len - 1;
                wrote = control.shows;
                if unshown.is_none() && UNSHOWN.contains(&control.word) {
                    unshown = Some(depth);
                }
            }
            _ => {}
        }
        i += 1;
        copied = i.min(end);
        if let (Some(c), None) = (wrote, unshown) {
            child.push(
                c.encode_utf8(&mut [0; 4]).as_bytes(),
                Span::new(from, copied),
                How::Atom,
            );
        }
        if depth == 0 {
            break;
        }
    }
    if unshown.is_none() {
        copy(&mut child, node, copied, i.min(end));
    }
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
    Some(i.min(end))
}

/// A control word or sign of RTF.
struct Control<'t> {
    word: &'t [u8],
    len: usize,
    shows: Option<char>,
}

/// The control that the text begins with.
fn control(text: &[u8]) -> Control<'_> {
    let sign = |len: usize, shows: Option<char>| Control {
        word: b"",
        len: len.min(text.len()),
        shows,
    };
    match text.get(1) {
        Some(b'\'') => {
            let digits = text.get(2..4).and_then(|d| std::str::from_utf8(d).ok());
            let code = digits.and_then(|d| u8::from_str_radix(d, 16).ok());
            sign(4, code.map(char::from))
        }
        Some(c @ (b'\\' | b'{' | b'}')) => sign(2, Some(char::from(*c))),
        Some(b'~') => sign(2, Some(' ')),
        Some(b'_') => sign(2, Some('-')),
        Some(b'a'..=b'z' | b'A'..=b'Z') => {
            let rest = &text[1..text.len().min(CONTROL_BYTES_MAX)];
            let word = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
            let minus = usize::from(rest.get(word) == Some(&b'-'));
            let number = rest[word + minus..]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count();
            let mut len = 1 + word + minus + number;
            let value = std::str::from_utf8(&rest[word..word + minus + number]).ok();
            let value: Option<i32> = value.and_then(|v| v.parse().ok());
            let shows = match &rest[..word] {
                b"par" | b"line" | b"row" => Some('\n'),
                b"tab" | b"cell" => Some('\t'),
                // The character that is shown where Unicode is not known.
                b"u" => {
                    len += usize::from(!matches!(text.get(len), None | Some(b'\\' | b'{' | b'}')));
                    let code = value.map(|v| if v < 0 { v + 0x1_0000 } else { v });
                    code.and_then(|c| char::from_u32(u32::try_from(c).ok()?))
                }
                _ => None,
            };
            if &rest[..word] != b"u" {
                len += usize::from(text.get(len) == Some(&b' '));
            }
            Control {
                word: &rest[..word],
                len,
                shows,
            }
        }
        _ => sign(2, None),
    }
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    #[test]
    fn ciphers_are_read_by_their_names() {
        for (text, want) in [
            ("pw (rot13): Jnyehf-77!", "pw (: Walrus-77!"),
            (
                "echo 'Jnyehf-77!' | tr 'A-Za-z' 'N-ZA-Mn-za-m'",
                "Walrus-77!",
            ),
            ("pw (rot47): (2=CFD\\ffP", "Walrus-77!"),
            ("pw (atbash): Dzoifh-77", "Walrus-77"),
            ("pw, each letter shifted by 3: Zdouxv-77", "Walrus-77"),
            ("pw (base64): V2FscnVzLTc3", "pw (base64): Walrus-77 "),
            ("pw = atob(\"V2FscnVzLTc3IQ==\")", "pw = Walrus-77! "),
            ("echo V2FscnVzLTc3IQ== | base64 -d", "Walrus-77! "),
            ("PW=$(base64 -d <<< V2FscnVzLTc3IQ==)", "PW = Walrus-77! "),
            (
                "PW+=\"$(openssl base64 -d <<<\"V2FscnVzLTc3IQ==\")\"",
                "PW = Walrus-77! ",
            ),
            (
                "$pw = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String(\"V2FscnVzLTc3IQ==\"))",
                "$pw = Walrus-77! ",
            ),
            ("Caesar: Zdouxv-77", "Walrus-77"),
            ("pw (base85): S7B^&b#pB@Hz5", "Walrus-77!"),
        ] {
            let got = children(text);
            assert!(
                got.iter().any(|(_, t, _)| t.contains(want)),
                "{text}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn documents_show_their_text() {
        let text = "{\\rtf1\\ansi{\\fonttbl{\\f0 Arial;}}\\b pass\\b0 word: \\'57alrus\\u45?77\\par next\\}}";
        let got = children(text);
        let shown = got.iter().find(|(l, ..)| *l == Layer::Escapes).unwrap();
        assert_eq!(shown.1, "password: Walrus-77\nnext}");
        let at = shown.1.find("Walrus").unwrap();
        assert_eq!(&text[(shown.2)(at, at + 6)], "\\'57alrus");
    }

    #[test]
    fn talk_of_ciphers_is_none() {
        for text in [
            "rot13 is no encryption",
            "shifted by a week",
            "see base85 for more",
            "base64: encode",
            "base64: abcdefgh12",
            "{\\rt is no head",
        ] {
            let got = children(text);
            assert!(
                got.iter().all(|(l, ..)| !matches!(
                    l,
                    Layer::Rot13 | Layer::Base64 | Layer::Base85 | Layer::Escapes
                )),
                "{text}"
            );
        }
    }
}
