//! Base64, base32 and hexadecimal runs, and gzip or zlib behind them.

use std::io::Read;

use super::{Spawner, begin_cell, copy, margin_after, margin_before};
use crate::Layer;
use crate::check::base64_digit;
use crate::detect::Scratch;
use crate::text::{Cell, How, Node, RUN_BYTES_MIN, Span, is_run};

/// Lines at least this long may be one wrapped run.
const WRAPPED_LINE_MIN: usize = 48;
/// Decoded bytes that have to be text before the rest is decoded.
const HEAD: usize = 10;

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
    let hex_from = usize::from(text.starts_with(b"0x")) * 2;
    if text.len().is_multiple_of(2) && text[hex_from..].iter().all(u8::is_ascii_hexdigit) {
        emit(node, cell, (start + hex_from, end), Layer::Hex, spawn);
        return end;
    }
    if text.iter().all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7'))
        && emit(node, cell, (start, end), Layer::Base32, spawn)
    {
        return end;
    }
    let end = wrapped_end(node, cell, start, end);
    if emit(node, cell, (start, end), Layer::Base64, spawn) {
        return end;
    }
    // A path or a prefix glued to the front.
    if let Some(cut) = text.iter().position(|b| *b == b'/')
        && text.len() - cut > RUN_BYTES_MIN
    {
        emit(node, cell, (start + cut + 1, end), Layer::Base64, spawn);
    }
    end
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
    (start, end): (usize, usize),
    layer: Layer,
    spawn: &mut Spawner<'_>,
) -> bool {
    let source = &node.text[start..end];
    if never_text(source, layer) {
        return false;
    }
    let mut head = [0; HEAD];
    let mut len = 0;
    for (b, _) in Digits::new(source, layer).take(HEAD) {
        head[len] = b;
        len += 1;
    }
    let head = &head[..len];
    let packed = packed(head);
    let wide = is_utf16(head);
    if packed.is_none() && !wide && !(len >= 8 && texty(head)) {
        return false;
    }
    let mut bytes = Vec::with_capacity(source.len() * 3 / 4);
    if bytes.capacity() > spawn.room() {
        spawn.over.get_or_insert(crate::OverBudget::DecodedBytes);
        return true;
    }
    Digits::new(source, layer).for_each(|(b, _)| bytes.push(b));
    if let Some(inner) = packed {
        return unpack(node, cell, (start, end), layer, &bytes, inner, spawn);
    }
    if wide {
        bytes = from_utf16(&bytes);
    }
    let valid = valid_len(&bytes);
    if valid < 8 || valid * 10 < bytes.len() * 8 || !texty(&bytes[..valid]) {
        return false;
    }
    let Some(mut child) = spawn.begin(layer) else {
        return true;
    };
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = begin_cell(&mut child, node, cell.name);
    let at = child.text.len();
    copy(
        &mut child,
        node,
        margin_before(&node.text, start, floor),
        start,
    );
    if wide || source.contains(&b'\n') {
        child.push(&bytes[..valid], Span::new(start, end), How::Atom);
        if source.contains(&b'\n') && !wide {
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

/// Do the first two bytes show that it is neither text nor packed? Half of all hashes do.
fn never_text(source: &[u8], layer: Layer) -> bool {
    let digit = |at: usize| -> u32 {
        let b = source.get(at).copied().unwrap_or(0);
        match layer {
            Layer::Hex => u32::from(HEX_DIGITS[usize::from(b)]),
            _ => u32::from(BASE64_DIGITS[usize::from(b)]),
        }
    };
    let bits = match layer {
        Layer::Hex => digit(0) << 12 | digit(1) << 8 | digit(2) << 4 | digit(3),
        Layer::Base64 => (digit(0) << 12 | digit(1) << 6 | digit(2)) >> 2,
        _ => return false,
    };
    let (first, second) = ((bits >> 8) as u8, bits as u8);
    let control = |b: u8| b < 0x20 && !matches!(b, b'\n' | b'\r' | b'\t' | 0x1B) || b == 0x7F;
    match first {
        0x1F => second != 0x8B,
        // Neither text nor the half of a character of two bytes.
        0x80..=0xC1 | 0xF5.. => true,
        0xC2.. => second & 0xC0 != 0x80,
        _ if control(first) => second != 0,
        // Where the second is zero, it may be UTF-16; where `x`, a packed text.
        0x78 => false,
        _ => control(second) && second != 0 || (0x80..0xC2).contains(&second) || second >= 0xF5,
    }
}

static HEX_DIGITS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = match b as u8 {
            c @ b'0'..=b'9' => c - b'0',
            c @ b'a'..=b'f' => c - b'a' + 10,
            c @ b'A'..=b'F' => c - b'A' + 10,
            _ => 0,
        };
        b += 1;
    }
    table
};

static BASE64_DIGITS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        if let Some(digit) = base64_digit(b as u8) {
            table[b] = digit;
        }
        b += 1;
    }
    table
};

fn blocks(layer: Layer) -> How {
    match layer {
        Layer::Hex => How::Blocks { dst: 1, src: 2 },
        Layer::Base32 => How::Blocks { dst: 5, src: 8 },
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

/// Gzip (RFC 1952) or zlib (RFC 1950) by their first bytes.
fn packed(head: &[u8]) -> Option<Layer> {
    match head {
        [0x1F, 0x8B, 8, ..] => Some(Layer::Gzip),
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => Some(Layer::Zlib),
        _ => None,
    }
}

fn unpack(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    layer: Layer,
    bytes: &[u8],
    inner: Layer,
    spawn: &mut Spawner<'_>,
) -> bool {
    let room = spawn.room();
    let mut plain = Vec::new();
    let limit = room as u64 + 1;
    // Broken or cut-off streams give what they gave up to there.
    let _ = match inner {
        Layer::Gzip => flate2::read::MultiGzDecoder::new(bytes)
            .take(limit)
            .read_to_end(&mut plain),
        _ => flate2::read::ZlibDecoder::new(bytes)
            .take(limit)
            .read_to_end(&mut plain),
    };
    if plain.is_empty() {
        return false;
    }
    if plain.len() > room {
        spawn.over.get_or_insert(crate::OverBudget::DecodedBytes);
        return true;
    }
    let Some(mut outer) = spawn.begin(layer) else {
        return true;
    };
    // Two steps, one node: the compressed bytes themselves are no text.
    outer.layer = Some(inner);
    outer.under = Some(layer);
    let name = begin_cell(&mut outer, node, cell.name);
    let at = outer.text.len();
    let text = String::from_utf8_lossy(&plain);
    outer.push(text.as_bytes(), Span::new(start, end), How::Atom);
    outer.close_cell(at, name, cell.kind, 0);
    spawn.end(outer);
    true
}

/// How much of the front is UTF-8.
fn valid_len(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(e) => e.valid_up_to(),
    }
}

/// Printable or blank, UTF-8 as far as it goes.
fn texty(bytes: &[u8]) -> bool {
    let valid = valid_len(bytes);
    valid + 3 >= bytes.len()
        && bytes[..valid]
            .iter()
            .filter(|b| **b < 0x20 && !matches!(b, b'\n' | b'\r' | b'\t' | 0x1B) || **b == 0x7F)
            .count()
            * 50
            <= valid
}

/// Letters with a zero after each (PowerShell's -EncodedCommand), now and then one of another script.
fn is_utf16(head: &[u8]) -> bool {
    let units = head.as_chunks::<2>().0;
    let plain = |u: &&[u8; 2]| {
        u[1] == 0 && ((0x20..0x7F).contains(&u[0]) || matches!(u[0], b'\n' | b'\r' | b'\t'))
    };
    head.len() >= 8 && units.iter().filter(plain).count() * 5 >= units.len() * 4
}

/// UTF-16, the lower byte first, as UTF-8.
fn from_utf16(bytes: &[u8]) -> Vec<u8> {
    let units = bytes.as_chunks::<2>().0;
    let chars = char::decode_utf16(units.iter().map(|u| u16::from_le_bytes(*u)));
    let text: String = chars
        .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    text.into_bytes()
}

/// The bytes that digits of an alphabet stand for.
struct Digits<'t> {
    source: std::iter::Enumerate<std::slice::Iter<'t, u8>>,
    layer: Layer,
    acc: u32,
    bits: u32,
}

impl<'t> Digits<'t> {
    fn new(source: &'t [u8], layer: Layer) -> Self {
        Self {
            source: source.iter().enumerate(),
            layer,
            acc: 0,
            bits: 0,
        }
    }
}

impl Iterator for Digits<'_> {
    type Item = (u8, usize);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (i, b) = self.source.next()?;
            let (value, width) = match self.layer {
                Layer::Hex => (char::from(*b).to_digit(16).map(|d| d as u8), 4),
                Layer::Base32 => (base32_digit(*b), 5),
                _ => (base64_digit(*b), 6),
            };
            let Some(value) = value else { continue };
            self.acc = self.acc << width | u32::from(value);
            self.bits += width;
            if self.bits >= 8 {
                self.bits -= 8;
                return Some(((self.acc >> self.bits) as u8, i));
            }
        }
    }
}

fn base32_digit(b: u8) -> Option<u8> {
    match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'2'..=b'7' => Some(b - b'2' + 26),
        _ => None,
    }
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
