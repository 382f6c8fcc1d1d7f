//! Base64, base32, base58 and hexadecimal runs, forwards, backwards or rotated, and gzip, zlib or deflate behind them.

use super::archive::{Packed, unpack};
use super::base58::base58;
use super::digits::{Alphabet, Digits, base32_of, first_bytes, never_text};
use super::{Spawner, begin_cell, copy, margin_after, margin_before, name_over};
use crate::Layer;
use crate::detect::Scratch;
use crate::text::{Cell, How, Node, RUN_BYTES_MIN, Span, is_run};

/// Lines at least this long may be one wrapped run.
const WRAPPED_LINE_MIN: usize = 48;
/// Decoded bytes that have to be text before the rest is decoded.
const HEAD: usize = 10;
/// A deflated text with an alphabet of its own is not shorter, nor worth a try if it is.
const DEFLATED_BYTES_MIN: usize = 60;

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let (mut done, mut index) = (0, 0);
    // No run goes over the end of its cell.
    for span in &scratch.traces.runs {
        let (start, end) = (span.start as usize, span.end as usize);
        // It may be a line of a longer one.
        if start >= done
            && let Some(cell) = node.cell_from(start, &mut index)
        {
            done = run(node, cell, (start, end), spawn);
        }
    }
}

/// One run; returns where it ended, wrapped lines included.
fn run(node: &Node, cell: &Cell, (start, end): (usize, usize), spawn: &mut Spawner<'_>) -> usize {
    let text = &node.text[start..end];
    // PostgreSQL writes bytes as `\x6768`.
    let bytea = text[0] == b'x' && start > 0 && node.text[start - 1] == b'\\';
    let hex_from = usize::from(text.starts_with(b"0x")) * 2 + usize::from(bytea);
    if (text.len() - hex_from).is_multiple_of(2)
        && text[hex_from..].iter().all(u8::is_ascii_hexdigit)
    {
        let place = (start + hex_from, end);
        if text.len().is_multiple_of(8) && text.iter().all(|b| matches!(b, b'0' | b'1')) {
            emit(node, cell, place, Alphabet::Binary, spawn);
        } else if !emit(node, cell, place, Alphabet::Hex, spawn) {
            turned(node, cell, place, Alphabet::Hex, spawn);
        }
        return end;
    }
    if let Some(alphabet) = base32_of(text)
        && emit(node, cell, (start, end), alphabet, spawn)
    {
        return end;
    }
    let end = wrapped_end(node, cell, start, end);
    if emit(node, cell, (start, end), Alphabet::Base64, spawn) {
        return end;
    }
    // A path or a prefix glued to the front; UTF-7 begins with a plus.
    let cut = match text[0] {
        b'+' => Some(0),
        _ => text.iter().position(|b| *b == b'/'),
    };
    if let Some(cut) = cut
        && text.len() - cut > RUN_BYTES_MIN
        && emit(node, cell, (start + cut + 1, end), Alphabet::Base64, spawn)
    {
        return end;
    }
    if !turned(node, cell, (start, end), Alphabet::Base64, spawn) {
        base58(node, cell, (start, end), spawn);
    }
    end
}

/// The same run backwards, and (letters only) rotated.
fn turned(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) -> bool {
    let source = &node.text[start..end];
    if source.len() < RUN_BYTES_MIN || node.turned || memchr::memchr(b'\n', source).is_some() {
        return false;
    }
    // Few runs come any further than their first digits.
    let front = |turn: fn(usize, &[u8]) -> u8| {
        let first: [u8; 4] = std::array::from_fn(|i| turn(i, source));
        if never_text(&first, alphabet) {
            return false;
        }
        let front: [u8; RUN_BYTES_MIN] = std::array::from_fn(|i| turn(i, source));
        let mut text = [0; 8];
        let digits = Digits::new(&front, alphabet);
        text.iter_mut().zip(digits).for_each(|(to, b)| *to = b);
        packed(&text, 0).is_some() || texty(&text)
    };
    let mut emit_turned = |bytes: Vec<u8>, layer: Layer| {
        let how = (alphabet, Some(layer));
        emit_as(node, cell, (start, end), &bytes, how, spawn)
    };
    if front(|i, source| source[source.len() - 1 - i])
        && emit_turned(source.iter().rev().copied().collect(), Layer::Reversed)
    {
        return true;
    }
    alphabet == Alphabet::Base64
        && front(|i, source| super::rot13(source[i]))
        && emit_turned(
            source.iter().map(|b| super::rot13(*b)).collect(),
            Layer::Rot13,
        )
}

/// MIME and PEM break long runs into lines.
fn wrapped_end(node: &Node, cell: &Cell, start: usize, end: usize) -> usize {
    let ceil = cell.span.end as usize;
    let mut end = end;
    let mut line = end - start;
    while line >= WRAPPED_LINE_MIN && line.is_multiple_of(4) {
        let gap = node.text[end..ceil]
            .iter()
            .take(2)
            .take_while(|b| matches!(b, b'\n' | b'\r'))
            .count();
        let next = end + gap;
        let len = node.text[next..ceil]
            .iter()
            .take_while(|b| is_run(**b))
            .count();
        if gap == 0 || len == 0 || len > line {
            break;
        }
        end = next + len;
        line = len;
    }
    end
}

/// Decodes a run into a child if what comes out is text.
fn emit(
    node: &Node,
    cell: &Cell,
    place: (usize, usize),
    alphabet: Alphabet,
    spawn: &mut Spawner<'_>,
) -> bool {
    let source = &node.text[place.0..place.1];
    emit_as(node, cell, place, source, (alphabet, None), spawn)
}

/// As [`emit`], of digits that may have been turned before.
fn emit_as(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    source: &[u8],
    (alphabet, under): (Alphabet, Option<Layer>),
    spawn: &mut Spawner<'_>,
) -> bool {
    let layer = alphabet.layer();
    if never_text(source, alphabet) && !may_be_deflated(source, alphabet) {
        return false;
    }
    let mut head = [0; HEAD];
    let mut len = 0;
    for b in Digits::new(source, alphabet).take(HEAD) {
        head[len] = b;
        len += 1;
    }
    let head = &head[..len];
    let packed = packed(head, source.len());
    let wide = utf16_order(head);
    if packed.is_none() && wide.is_none() && !(len >= 8 && texty(head)) {
        return false;
    }
    let mut bytes = Vec::with_capacity(source.len() * 3 / 4);
    if bytes.capacity() > spawn.room() {
        spawn.over.get_or_insert(crate::OverBudget::DecodedBytes);
        return true;
    }
    Digits::new(source, alphabet).for_each(|b| bytes.push(b));
    if let Some(inner) = packed {
        return unpack(node, cell, (start, end), layer, &bytes, inner, spawn);
    }
    if let Some(read) = wide {
        bytes = from_utf16(&bytes, read);
    }
    let valid = valid_len(&bytes);
    if valid < 8 || valid * 10 < bytes.len() * 8 || !texty(&bytes[..valid]) {
        return false;
    }
    let Some(mut child) = spawn.begin(layer) else {
        return true;
    };
    child.under = under;
    child.turned |= under.is_some();
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = begin_cell(&mut child, node, name_over(node, cell, start));
    let at = child.text.len();
    copy(
        &mut child,
        node,
        margin_before(&node.text, start, floor),
        start,
    );
    // `0x` or a prefix of letters is no part of the value.
    let glued = start > floor && node.text[start - 1].is_ascii_alphanumeric();
    if glued {
        child.push(b" ", Span::new(start, start + 1), How::Atom);
    }
    if wide.is_some() || under.is_some() || source.contains(&b'\n') {
        child.push(&bytes[..valid], Span::new(start, end), How::Atom);
        if source.contains(&b'\n') && wide.is_none() {
            child.segs.pop();
            by_line(&mut child, source, start, layer, valid);
        }
    } else {
        child.push(&bytes[..valid], Span::new(start, end), blocks(layer));
    }
    let mut tail = end;
    while tail < ceil && node.text[tail] == b'=' {
        tail += 1;
    }
    // A blank keeps the margin apart from the value.
    child.push(b" ", Span::new(end.saturating_sub(1), end), How::Atom);
    copy(&mut child, node, tail, margin_after(&node.text, tail, ceil));
    child.close_cell(at, name, cell.kind, 0);
    spawn.end(child);
    true
}

/// Do the first two bytes begin a deflated text that is one block?
fn may_be_deflated(source: &[u8], alphabet: Alphabet) -> bool {
    first_bytes(source, alphabet).is_some_and(|[first, second]| match first & 7 {
        3 => fixed_letter(u128::from(first) | u128::from(second) << 8, 0),
        5 => source.len() >= DEFLATED_BYTES_MIN && first >> 3 < 30 && second & 0x1F < 30,
        _ => false,
    })
}

/// RFC 1951, section 3.2.6: is the `nth` symbol after the head of a block a letter, in eight bits?
fn fixed_letter(bits: u128, nth: u32) -> bool {
    let code = (bits >> (3 + 8 * nth)) as u8;
    let letter = code.reverse_bits().wrapping_sub(0x30);
    letter.is_ascii_graphic() || matches!(letter, b' ' | b'\n' | b'\r' | b'\t')
}

/// RFC 1951 without a head: the last block begins with letters in the fixed alphabet, or (section 3.2.7) with an
/// alphabet of its own, whose code leaves nothing over.
fn deflated(head: &[u8; HEAD], digits: usize) -> bool {
    let bits = head
        .iter()
        .rev()
        .fold(0, |bits, b| bits << 8 | u128::from(*b));
    let field = |at: u32, len: u32| (bits >> at) as u32 & ((1 << len) - 1);
    match field(0, 3) {
        3 => (0..3).all(|nth| fixed_letter(bits, nth)),
        5 => {
            let lengths = (0..field(13, 4) + 4).map(|nth| field(17 + 3 * nth, 3));
            let taken: u32 = lengths.filter(|len| *len > 0).map(|len| 128 >> len).sum();
            digits >= DEFLATED_BYTES_MIN && field(3, 5) < 30 && field(8, 5) < 30 && taken == 128
        }
        _ => false,
    }
}

fn blocks(layer: Layer) -> How {
    match layer {
        Layer::Hex => How::Blocks { dst: 1, src: 2 },
        Layer::Base32 => How::Blocks { dst: 5, src: 8 },
        Layer::Codes => How::Blocks { dst: 1, src: 8 },
        _ => How::Blocks { dst: 3, src: 4 },
    }
}

/// Segments for a run of several lines, each a whole number of quads.
fn by_line(child: &mut Node, source: &[u8], start: usize, layer: Layer, valid: usize) {
    let mut dst = child.text.len() - valid;
    let mut at = 0;
    for line in source.split(|b| matches!(b, b'\n' | b'\r')) {
        if !line.is_empty() {
            let src = Span::new(start + at, start + at + line.len());
            child.segs.push(crate::text::Seg {
                dst: crate::text::to_u32(dst),
                src,
                how: blocks(layer),
            });
            dst += line.len() * 3 / 4;
        }
        at += line.len() + 1;
    }
}

/// Gzip (RFC 1952), zlib (RFC 1950), an archive or deflate alone by their first bytes.
fn packed(head: &[u8], digits: usize) -> Option<Packed> {
    match head {
        [0x1F, 0x8B, 8, ..] => Some(Packed::Gzip),
        [b'P', b'K', 3, 4, ..] => Some(Packed::Zip),
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => Some(Packed::Zlib),
        _ => {
            let whole: &[u8; HEAD] = head.try_into().ok()?;
            let deflated = deflated(whole, digits) && utf16_order(head).is_none() && !texty(head);
            deflated.then_some(Packed::Deflate)
        }
    }
}

/// How much of the front is UTF-8.
fn valid_len(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(e) => e.valid_up_to(),
    }
}

/// Printable or blank, UTF-8 as far as it goes.
pub(super) fn texty(bytes: &[u8]) -> bool {
    let valid = valid_len(bytes);
    valid + 3 >= bytes.len()
        && bytes[..valid]
            .iter()
            .filter(|b| **b < 0x20 && !matches!(b, b'\n' | b'\r' | b'\t' | 0x1B) || **b == 0x7F)
            .count()
            * 50
            <= valid
}

/// One unit of UTF-16.
type ReadUnit = fn([u8; 2]) -> u16;

/// Letters with a zero after each (PowerShell's -EncodedCommand) or before, now and then one of another script.
fn utf16_order(head: &[u8]) -> Option<ReadUnit> {
    let units = head.as_chunks::<2>().0;
    let orders: [ReadUnit; 2] = [u16::from_le_bytes, u16::from_be_bytes];
    orders.into_iter().find(|read| {
        let plain = units.iter().filter(|unit| {
            matches!(read(**unit), 0x20..0x7F) || b"\n\r\t".map(u16::from).contains(&read(**unit))
        });
        head.len() >= 8 && plain.count() * 5 >= units.len() * 4
    })
}

/// UTF-16 as UTF-8.
fn from_utf16(bytes: &[u8], read: ReadUnit) -> Vec<u8> {
    let units = bytes.as_chunks::<2>().0;
    let chars = char::decode_utf16(units.iter().map(|unit| read(*unit)));
    let text: String = chars
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::children;

    fn has(text: &str, layer: Layer, want: &str) -> bool {
        children(text)
            .iter()
            .any(|(l, t, _)| *l == layer && t.contains(want))
    }

    #[test]
    fn alphabets() {
        let cases = [
            (
                "payload: dG9rZW49Z2hwX2FiY2RlZg==",
                Layer::Base64,
                "token=ghp_abcdef",
            ),
            (
                "d=dG9rZW49Z2hwX2FiY2RlZj8_Pz8",
                Layer::Base64,
                "token=ghp_abcdef????",
            ),
            ("746f6b656e3d6768705f616263", Layer::Hex, "token=ghp_abc"),
            ("ORXWWZLOHVTWQ4C7MFRGGZA=", Layer::Base32, "token=ghp_abcd"),
            (
                "p dABvAGsAZQBuAD0AZwBoAHAAXwA=",
                Layer::Base64,
                "token=ghp_",
            ),
            (
                "p AHQAbwBrAGUAbgA9AGcAaABwAF8=",
                Layer::Base64,
                "token=ghp_",
            ),
            (
                "p +AHQAbwBrAGUAbgA9AGcAaABwAF8-",
                Layer::Base64,
                "token=ghp_",
            ),
            (
                "0111000001100001011100110111001100111101011110000011000100111001",
                Layer::Codes,
                "pass=x19",
            ),
            (
                "n = 0x746f6b656e3d6768705f616263",
                Layer::Hex,
                "0x token=ghp_abc",
            ),
            ("orxwwzlohvtwq4c7mfrggza", Layer::Base32, "token=ghp_abcd"),
            ("EHNMMPBE7LJMGS2VC5H66P0=", Layer::Base32, "token=ghp_abcd"),
            (
                "==gZlR2YiF2Xwh2Z94WZr9Gd",
                Layer::Base64,
                "token=ghp_abcdef",
            ),
            (
                "qT9eMJ49M2ujK2SvL2EyMt==",
                Layer::Base64,
                "token=ghp_abcdef",
            ),
            (
                "665646362616f5078676d3e656b6f647",
                Layer::Hex,
                "token=ghp_abcdef",
            ),
            ("FNvKWh5xS1JzvPJmmawXWV", Layer::Base58, "token=ghp_abcdef"),
            ("K8nPTs2zTc8oiE9MSk5JTQMA", Layer::Zlib, "token=ghp_abcdef"),
        ];
        for (text, layer, want) in cases {
            assert!(
                has(text, layer, want),
                "{text}: {:?}",
                children(text)
                    .iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn noise_is_left_alone() {
        for text in [
            "4012b2614a42b61c43ca1f4a3e98d956dfec4925",
            "iVBORw0KGgoAAAANSUhEUgAAw0wt04+nRZVMwK9aimq6dA",
            "some-long-identifier-name-here_and_more",
            "0xdeadbeefdeadbe",
        ] {
            assert!(
                children(text)
                    .iter()
                    .all(|(l, ..)| !matches!(l, Layer::Base64 | Layer::Hex | Layer::Base32)),
                "{text}"
            );
        }
    }

    #[test]
    fn offsets_lead_back_to_the_digits() {
        let text = "x: dG9rZW49Z2hwX2FiY2RlZg== y";
        for (layer, child, map) in children(text) {
            if layer == Layer::Base64 {
                let at = child.find("ghp_abc").unwrap();
                assert_eq!(&text[map(at, at + 7)], "Z2hwX2FiY2Rl");
            }
        }
    }

    #[test]
    fn gzip_is_bounded() {
        use std::io::Write;
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gz.write_all(&vec![b'a'; 20 << 20]).unwrap();
        let packed = gz.finish().unwrap();
        let text: String = packed.iter().map(|b| format!("{b:02x}")).collect();
        let (nodes, over) = crate::decode::tests::run(&text, 1 << 20);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 1 << 20);
        assert_eq!(over, Some(crate::OverBudget::DecodedBytes));
    }
}
