//! Bytes as programs show them, line by line, with an offset at the head of each (`xxd`, `hexdump -C`, `od -tx1`).

use std::sync::LazyLock;

use memchr::memmem;

use super::listed::{CODES_MIN, printable};
use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, Node, Span};
use crate::traces::Traces;

/// Most bytes that a line of a dump shows.
const LINE_BYTES_MAX: usize = 64;

pub(super) fn decode(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    if traces.zeros {
        dumps(node, spawn);
    }
}

/// `00000010: 6768 705f 5a71 376b  ghp_Zq7k`, line by line.
fn dumps(node: &Node, spawn: &mut Spawner<'_>) {
    let (mut index, mut at) = (0, 0);
    while let Some(n) = node.text.get(at..).and_then(|t| ZEROS.find(t)) {
        at += n;
        match node.cell_from(at, &mut index) {
            Some(cell) => {
                if cell.span.len() >= 32 {
                    dump(node, cell, spawn);
                }
                at = cell.span.end as usize;
            }
            None => at += 1,
        }
    }
}

/// Offsets begin with it.
static ZEROS: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"0000"));

fn dump(node: &Node, cell: &Cell, spawn: &mut Spawner<'_>) {
    let base = cell.span.start as usize;
    let text = &node.text[cell.span.range()];
    let mut rows: Vec<(Vec<u8>, Span)> = Vec::new();
    let mut expected = None;
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n').chain([&b""[..]]) {
        let read = dump_line(line);
        let goes_on = matches!((&read, expected), (Some((offset, ..)), Some(e)) if *offset == e);
        if !goes_on && !rows.is_empty() {
            emit_dump(node, cell, &rows, spawn);
            rows.clear();
        }
        expected = None;
        if let Some((offset, bytes, from)) = read {
            expected = offset.checked_add(bytes.len() as u64);
            let end = at + line.trim_ascii_end().len();
            rows.push((bytes, Span::new(base + at + from, base + end)));
        }
        at += line.len();
    }
}

/// The offset that a line of a dump begins with, the bytes after it, and where the offset begins. Before the first
/// line there may be something else, as in `token = '00000000  67 68`.
fn dump_line(line: &[u8]) -> Option<(u64, Vec<u8>, usize)> {
    let digits = |from: usize| {
        let rest = line[from..].iter().take(17);
        rest.take_while(|b| b.is_ascii_hexdigit()).count()
    };
    let mut start = 0;
    if digits(0) < 4 {
        start = ZEROS.find(line)?;
        if start > 0 && line[start - 1].is_ascii_alphanumeric() {
            return None;
        }
    }
    let len = digits(start);
    if !(4..=16).contains(&len) {
        return None;
    }
    let mut at = start + len;
    let offset = u64::from_str_radix(std::str::from_utf8(&line[start..at]).ok()?, 16).ok()?;
    at += usize::from(line.get(at) == Some(&b':'));
    let mut bytes = Vec::new();
    while bytes.len() < LINE_BYTES_MAX {
        let blanks = line[at..]
            .iter()
            .take(4)
            .take_while(|b| **b == b' ')
            .count();
        if blanks == 0 || blanks > 2 {
            break;
        }
        let len = digits(at + blanks);
        let word = &line[at + blanks..][..len];
        let whole = !line
            .get(at + blanks + len)
            .is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':' | b'.' | b'_'));
        if !(2..=16).contains(&len) || !len.is_multiple_of(2) || !whole {
            break;
        }
        for pair in word.chunks(2) {
            let digit = |b: u8| char::from(b).to_digit(16).unwrap_or_default() as u8;
            bytes.push(digit(pair[0]) << 4 | digit(pair[1]));
        }
        at += blanks + len;
    }
    (!bytes.is_empty() && bytes.len() <= LINE_BYTES_MAX).then_some((offset, bytes, start))
}

fn emit_dump(node: &Node, cell: &Cell, rows: &[(Vec<u8>, Span)], spawn: &mut Spawner<'_>) {
    let bytes: Vec<u8> = rows.iter().flat_map(|(bytes, _)| bytes).copied().collect();
    let text = bytes
        .iter()
        .filter(|b| printable(**b) || **b >= 0x80)
        .count();
    let (Some((_, first)), Some((_, last))) = (rows.first(), rows.last()) else {
        return;
    };
    if bytes.len() < CODES_MIN || text * 10 < bytes.len() * 9 {
        return;
    }
    let utf8 = std::str::from_utf8(&bytes).is_ok();
    let place = (first.start as usize, last.end as usize);
    child_around(node, cell, Layer::Hex, place, spawn, |child| {
        for (bytes, span) in rows {
            let shown = bytes
                .iter()
                .map(|b| if utf8 || b.is_ascii() { *b } else { b'.' });
            child.push(&shown.collect::<Vec<u8>>(), *span, How::Atom);
        }
        child.push(b" ", Span::new(place.1 - 1, place.1), How::Atom);
    });
}
