//! What is packed: streams, and the files of a zip archive.

use std::io::Read;

use memchr::memmem;

use super::base::{texty, utf16_order};
use super::packed::is_zlib;
use super::{Spawner, begin_cell, copy, margin_after, margin_before, streams};
use crate::text::{Cell, How, Node, Span};
use crate::{Layer, OverBudget};

/// Bytes of a deflated text that have to be text before the rest is unpacked.
pub(super) const DEFLATED_HEAD: u64 = 64;

/// What a text is packed in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    Gzip,
    Zlib,
    Deflate,
    Zip,
    Bzip2,
    /// Of .xz files.
    Xz,
    /// LZMA alone.
    Lzma,
    Zstd,
}

/// What became of something packed.
#[derive(Default)]
pub(super) struct Unpacked {
    /// Was there anything?
    pub any: bool,
    /// Where the streams begin that were read one after the other.
    pub streams: Vec<usize>,
}

/// Reads what is packed into a child.
pub(super) fn unpack(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    layer: Layer,
    bytes: &[u8],
    inner: Packed,
    spawn: &mut Spawner<'_>,
) -> Unpacked {
    let mut files = Files {
        text: Vec::new(),
        spent: 0,
        limit: spawn.room() as u64 + 1,
        over: None,
    };
    let streams = files.read(bytes, inner, spawn.layers_left());
    let unpacked = |any: bool| Unpacked { any, streams };
    if files.left() == 0 {
        files.over = Some(OverBudget::DecodedBytes);
        spawn.waste();
    } else {
        // The text is paid for as a child.
        spawn.pay(files.spent.saturating_sub(files.text.len() as u64));
    }
    let is_over = files.over.is_some();
    if let Some(over) = files.over {
        spawn.over.get_or_insert(over);
    }
    if files.left() == 0 || files.text.is_empty() {
        return unpacked(is_over);
    }
    let Some(mut outer) = spawn.begin(layer) else {
        return unpacked(true);
    };
    // Two steps, one node: the compressed bytes themselves are no text.
    outer.layer = Some(match inner {
        Packed::Gzip => Layer::Gzip,
        Packed::Zlib | Packed::Deflate | Packed::Zip => Layer::Zlib,
        Packed::Bzip2 => Layer::Bzip2,
        Packed::Xz | Packed::Lzma => Layer::Xz,
        Packed::Zstd => Layer::Zstd,
    });
    outer.under = Some(layer);
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = begin_cell(&mut outer, node, super::name_of(node, cell));
    let at = outer.text.len();
    // Packed JSON is read as JSON only if it stands alone.
    let alone = super::json::looks_like(&files.text);
    if !alone {
        let from = margin_before(&node.text, start, floor);
        copy(&mut outer, node, from, start);
    }
    outer.push(&files.text, Span::new(start, end), How::Atom);
    if !alone {
        outer.push(b" ", Span::new(end - 1, end), How::Atom);
        let to = margin_after(&node.text, end, ceil);
        copy(&mut outer, node, end, to);
    }
    outer.close_cell(at, name, cell.kind, 0);
    spawn.end(outer);
    unpacked(true)
}

/// Going through so many bytes in the search for what is packed in them costs as much as unpacking one.
const SEARCH_BYTES: u64 = 8;

/// What came out, and what that cost.
struct Files {
    /// All texts, with a line end between each two.
    text: Vec<u8>,
    /// Bytes that were unpacked, or gone through in the search for what is packed.
    spent: u64,
    limit: u64,
    over: Option<OverBudget>,
}

impl Files {
    fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    /// Broken or cut-off streams give what they gave up to there. Gives where the streams begin that were read one after the
    /// other.
    fn read(&mut self, bytes: &[u8], packed: Packed, layers: u8) -> Vec<usize> {
        let limit = self.left();
        let (mut plain, mut read) = (Vec::new(), Vec::new());
        let _ = match packed {
            Packed::Gzip => {
                read = super::members::read(bytes, limit, &mut plain);
                Ok(plain.len())
            }
            // A dictionary that both sides have need not have been used.
            Packed::Zlib if bytes.get(1).is_some_and(|flags| flags & 0x20 != 0) => {
                inflate(bytes.get(6..).unwrap_or_default(), limit, &mut plain)
            }
            Packed::Zlib => flate2::bufread::ZlibDecoder::new(bytes)
                .take(limit)
                .read_to_end(&mut plain),
            Packed::Deflate => {
                let mut reader = flate2::bufread::DeflateDecoder::new(bytes).take(limit);
                let _ = reader.by_ref().take(DEFLATED_HEAD).read_to_end(&mut plain);
                // Without a head it may be anything; and nobody pays for what is unpacked and left.
                let is_text = texty(&plain) || utf16_order(&plain).is_some();
                if plain.len() < 8 || !is_text || is_uniform(&plain) {
                    return read;
                }
                reader.read_to_end(&mut plain)
            }
            Packed::Zip => {
                self.zip(bytes, layers);
                return read;
            }
            Packed::Bzip2 | Packed::Xz | Packed::Lzma | Packed::Zstd => {
                let spent;
                (plain, spent) = streams::read(bytes, packed, limit);
                self.spent += spent.saturating_sub(plain.len() as u64);
                Ok(plain.len())
            }
        };
        self.spent += plain.len() as u64;
        self.file(&plain, layers);
        read
    }

    /// What came out may be packed itself.
    fn file(&mut self, plain: &[u8], layers: u8) {
        if let Some(inner) = packed_in(plain) {
            let before = (self.text.len(), self.over);
            match layers.checked_sub(1) {
                Some(layers) => drop(self.read(plain, inner, layers)),
                None => self.over = self.over.or(Some(OverBudget::Depth)),
            }
            if (self.text.len(), self.over) != before {
                return;
            }
        }
        if plain.is_empty() || self.left() == 0 {
            return;
        }
        let is_text = std::str::from_utf8(plain).is_ok() && texty(plain);
        if !is_text {
            self.spent += plain.len() as u64 / SEARCH_BYTES;
            let all = super::packed::inside(plain, |at, inner| {
                self.spent += FAILED_BYTES as u64;
                match layers.checked_sub(1) {
                    Some(layers) => self.read(&plain[at..], inner, layers),
                    None => {
                        self.over = self.over.or(Some(OverBudget::Depth));
                        Vec::new()
                    }
                }
            });
            if !all {
                self.over = self.over.or(Some(OverBudget::DecodedBytes));
            }
            if self.left() == 0 {
                return;
            }
        }
        if !self.text.is_empty() {
            self.text.push(b'\n');
        }
        let printable = |b: &&u8| matches!(b, 0x20..0x7F | b'\n' | b'\r' | b'\t');
        if is_text {
            self.text.extend_from_slice(plain);
        } else if plain.iter().filter(printable).count() * 4 >= plain.len() * 3 {
            let lossy = String::from_utf8_lossy(plain);
            self.text.extend_from_slice(lossy.as_bytes());
        } else {
            self.text.extend(super::binary::join(plain));
        }
    }

    /// The files of a zip archive (APPNOTE 4.3; deflated or stored); office documents are such archives, too. Readers
    /// disagree about which files there are: those that the directory at the end names, or those whose heads follow each
    /// other. Here all are read.
    fn zip(&mut self, bytes: &[u8], layers: u8) {
        let mut listed = directory(bytes);
        listed.sort_unstable_by_key(|file| file.head);
        for file in &mut listed {
            let end = file.start + file.len;
            // Whether a stream has come to its end shows in that it takes no byte more.
            let more = usize::from(file.method != STORED && end < bytes.len());
            let (taken, whole) = self.entry(&bytes[file.start..end + more], file.method, layers);
            file.undisputed &= whole && taken <= file.len;
            file.len = taken;
        }
        listed.retain(|file| file.undisputed);
        // Each round goes on by a head at least.
        let mut at = 0;
        while self.left() > 0
            && let Some(next) = memmem::find(&bytes[at..], FILE_HEAD)
        {
            at += next;
            let Some(head) = bytes.get(at..at + FILE_HEAD_BYTES) else {
                break;
            };
            if let Ok(known) = listed.binary_search_by_key(&at, |file| file.head) {
                at = listed[known].start + listed[known].len;
                continue;
            }
            let names = usize::from(u16_at(head, 26)) + usize::from(u16_at(head, 28));
            // Its length may stand behind it only, or be wrong.
            if let Some(rest) = bytes.get(at + FILE_HEAD_BYTES + names..) {
                let method = u16_at(head, 8);
                let body = match method {
                    STORED => &rest[..next_head(rest)],
                    _ => rest,
                };
                self.entry(body, method, layers);
            }
            // Nor does anybody say where it ends: what it takes for itself, its name too, may hold the next.
            at += FILE_HEAD.len();
        }
    }

    /// One file of an archive: how many of its bytes it took, and whether nothing in them was wrong.
    fn entry(&mut self, body: &[u8], method: u16, layers: u8) -> (usize, bool) {
        let mut plain = Vec::new();
        let (taken, whole) = match method {
            STORED => (body.len(), true),
            BZIP2 | LZMA | XZ | ZSTD => {
                let (packed, body) = match method {
                    BZIP2 => (Packed::Bzip2, body.into()),
                    XZ => (Packed::Xz, body.into()),
                    ZSTD => (Packed::Zstd, body.into()),
                    _ => (Packed::Lzma, alone(body)),
                };
                let spent;
                (plain, spent) = streams::read(&body, packed, self.left());
                self.spent += spent.saturating_sub(plain.len() as u64);
                (0, false)
            }
            // Nobody here can say what is in it.
            SHRUNK..=IMPLODED | DEFLATED_64 | 96..=99 => {
                self.over = self.over.or(Some(OverBudget::DecodedBytes));
                return (0, false);
            }
            DEFLATED => {
                let mut reader = flate2::bufread::DeflateDecoder::new(body);
                let read = reader.by_ref().take(self.left()).read_to_end(&mut plain);
                let taken = usize::try_from(reader.total_in()).unwrap_or(body.len());
                (taken, read.is_ok())
            }
            _ => return (0, false),
        };
        let cost = if whole { 0 } else { FAILED_BYTES };
        self.spent += taken.max(plain.len()).max(cost) as u64;
        if self.left() > 0 {
            self.file(if method == STORED { body } else { &plain }, layers);
        }
        (taken.min(body.len()), whole)
    }
}

/// What is deflated, without a head and a sum at its end.
fn inflate(bytes: &[u8], limit: u64, plain: &mut Vec<u8>) -> std::io::Result<usize> {
    let reader = flate2::bufread::DeflateDecoder::new(bytes);
    reader.take(limit).read_to_end(plain)
}

/// LZMA in an archive (APPNOTE 5.8.8): its version and the length of its properties stand before those, and no length behind.
fn alone(body: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    const PROPERTIES: std::ops::Range<usize> = 4..9;
    let (Some(properties), Some(rest)) = (body.get(PROPERTIES), body.get(PROPERTIES.end..)) else {
        return (&[][..]).into();
    };
    [properties, &[0xFF; 8], rest].concat().into()
}

/// A few bytes, again and again: so read rows of the same digit, and noise that is taken for a stream, which mostly repeats what
/// came out. Nobody says anything that way.
fn is_uniform(text: &[u8]) -> bool {
    const DISTINCT_MIN: usize = 4;
    /// A text of so many bytes has one in eight of its own.
    const SAYS_BYTES: usize = 64;
    let seen = text.iter().fold(0_u128, |seen, b| seen | 1 << (b & 0x7F));
    (seen.count_ones() as usize) < DISTINCT_MIN.max(text.len().min(SAYS_BYTES) / 8)
}

/// What a file is packed in, by its first bytes.
pub(super) fn packed_in(file: &[u8]) -> Option<Packed> {
    match file {
        [0x1F, 0x8B, 8, ..] => Some(Packed::Gzip),
        [b'P', b'K', 3, 4, ..] => Some(Packed::Zip),
        // So may a text begin.
        [first, second, ..]
            if is_zlib(*first, *second)
                && !texty(&file[..file.len().min(DEFLATED_HEAD as usize)]) =>
        {
            Some(Packed::Zlib)
        }
        _ => streams::packed(file),
    }
}

/// What a file of an archive begins with, what its entry in the directory does, and the end of the directory.
const FILE_HEAD: &[u8] = b"PK\x03\x04";
const FILE_HEAD_BYTES: usize = 30;
const ENTRY: &[u8] = b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
const END: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;
/// Longest comment behind the end.
const COMMENT_BYTES_MAX: usize = 65_535;

/// How a file is kept in an archive (4.4.5).
const STORED: u16 = 0;
const SHRUNK: u16 = 1;
const IMPLODED: u16 = 6;
const DEFLATED: u16 = 8;
const DEFLATED_64: u16 = 9;
const BZIP2: u16 = 12;
const LZMA: u16 = 14;
const ZSTD: u16 = 93;
const XZ: u16 = 95;

/// What a file whose stream fails costs at the least: false heads are as short as four bytes.
const FAILED_BYTES: usize = 512;

/// The flag of a file whose length stands behind it (4.4.4).
const LENGTH_BEHIND: u16 = 1 << 3;

/// A file that the directory names.
struct Listed {
    head: usize,
    start: usize,
    len: usize,
    method: u16,
    /// Its own head says the same, so that nobody reads anything else there.
    undisputed: bool,
}

/// The files that the directory names and that are there. Something may stand before the archive; then all places are
/// counted from where it begins.
fn directory(bytes: &[u8]) -> Vec<Listed> {
    let mut files = Vec::new();
    let tail = bytes.len().saturating_sub(COMMENT_BYTES_MAX + END_BYTES);
    let Some(end) = memmem::rfind(&bytes[tail..], END).map(|at| tail + at) else {
        return files;
    };
    let Some(record) = bytes.get(end..end + END_BYTES) else {
        return files;
    };
    let (size, offset) = (u32_at(record, 12), u32_at(record, 16));
    let Some(mut at) = end.checked_sub(size) else {
        return files;
    };
    let Some(before) = at.checked_sub(offset) else {
        return files;
    };
    while let Some(entry) = bytes.get(at..at + ENTRY_BYTES)
        && entry.starts_with(ENTRY)
    {
        let short = |at: usize| usize::from(u16_at(entry, at));
        let head = before + u32_at(entry, 42);
        if let Some(local) = bytes.get(head..head + FILE_HEAD_BYTES)
            && local.starts_with(FILE_HEAD)
        {
            let names = usize::from(u16_at(local, 26)) + usize::from(u16_at(local, 28));
            let start = head + FILE_HEAD_BYTES + names;
            // A longer one is counted elsewhere (4.5.3), and found by its head.
            if let Some(rest) = bytes.get(start..)
                && u32_at(entry, 20) <= rest.len()
            {
                let (len, method) = (u32_at(entry, 20), u16_at(entry, 10));
                // A stream may be longer than its head knew, if the head says so.
                let of_head = u32_at(local, 18);
                let is_behind = u16_at(local, 6) & LENGTH_BEHIND != 0;
                let same = of_head == len || of_head == 0 && method == DEFLATED && is_behind;
                files.push(Listed {
                    head,
                    start,
                    len,
                    method,
                    undisputed: same && u16_at(local, 8) == method,
                });
            }
        }
        at += ENTRY_BYTES + short(28) + short(30) + short(32);
    }
    files
}

/// Where the next head of an archive begins, or what stands behind a file.
fn next_head(bytes: &[u8]) -> usize {
    let mut heads = memmem::find_iter(bytes, b"PK");
    let is = |at: &usize| {
        matches!(
            bytes.get(at + 2..at + 4),
            Some([3, 4] | [1, 2] | [7, 8] | [5, 6])
        )
    };
    heads.find(is).unwrap_or(bytes.len())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    #[test]
    fn archives_show_their_files() {
        // Two files, `a.txt` stored and `b.txt` deflated.
        let text = "docs: UEsDBBQAAAAAAAAAIQBcJ/ENDQAAAA0AAAAFAAAAYS50eHRwYXNzd29yZDogYWIxUEsDBBQAAAAIAAAAIQCcJ7c7DgAAAC8AAAAFAAAAYi50eHQryc9OzbNSSE4xIgoDAFBLAQIUAxQAAAAAAAAAIQBcJ/ENDQAAAA0AAAAFAAAAAAAAAAAAAACAAQAAAABhLnR4dFBLAQIUAxQAAAAIAAAAIQCcJ7c7DgAAAC8AAAAFAAAAAAAAAAAAAACAATAAAABiLnR4dFBLBQYAAAAAAgACAGYAAABhAAAAAAA= ok";
        let got = children(text);
        assert!(
            got.iter().any(|(l, t, _)| *l == Layer::Zlib
                && t.contains("password: ab1")
                && t.contains("token: cd2")),
            "{:?}",
            got.iter()
                .map(|(l, t, _)| (*l, t.clone()))
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn rarer_heads_are_read_as_well() {
        // By Python's modules: a window of 512 bytes, a dictionary that was not used, files by bzip2 and LZMA, LZMA alone with
        // other properties, a head of gzip with a wrong sum and one with a flag that nobody uses.
        let table = [
            "GJUrSCwuLs8vSrFS8K4wzw00KgsqsVRIyy9SSMzJUchPUyjJSM3VUUjMS1EozlfIz8POBAA+3Rcq",
            "eLsGagIgK0gsLi7PL0qxUvCuMM8NNCoLKrFUSMsvUkjMyVHIT1MoyUjN1VFIzEtRKM5XyM/DzgQAPt0XKg==",
            "UEsDBC4AAAAMAAAAIVAiBoPsXQAAAEUAAAAFAAAAYS50eHRCWmg5MUFZJlNZcMmV9wAAHB+AQAQQsAAIMAAnR93AIABIZUaeU0ZomQ9AoaNABoGRPYFa3LGtrimXVlxuA8TR5p037/KIHbB5AtmaKcsRQDBPi7kinChIOGTK+4BQSwECLgMuAAAADAAAACFQIgaD7F0AAABFAAAABQAAAAAAAAAAAAAAgAEAAAAAYS50eHRQSwUGAAAAAAEAAQAzAAAAgAAAAAAA",
            "UEsDBD8AAgAOAAAAIVAiBoPsRQAAAEUAAAAFAAAAYS50eHQJBAUAXQAAgAAAOBhK4AMJz/f1Huoa5iuWWDXHOpLsPsbP+UXuDsweo8VnYe9kWXHS6QpRElI2PE2u+h7Fg/v///SIkABQSwECPwM/AAIADgAAACFQIgaD7EUAAABFAAAABQAAAAAAAAAAAAAAgAEAAAAAYS50eHRQSwUGAAAAAAEAAQAzAAAAaAAAAAAA",
            "AAAAgAD//////////wA4GU+J8neNNVJGZG87x8vdn//2c3H7vGsof5G0iW4IV5MpgvtQviVJoVesr9hvLI237///cIAAAA==",
            "uAAAAAT//////////wA4GEp4dzkTxa0z5vEhfUkKau0hRgMHSX6wGFImWYUAkC/8JMYtzIx4u+0qUyIjAae2F7F9Z3X///q81AA=",
            "H4sIAgAAAAACA2FiK0gsLi7PL0qxUvCuMM8NNCoLKrFUSMsvUkjMyVHIT1MoyUjN1VFIzEtRKM5XyM/DzgQAIgaD7EUAAAA=",
            "H4sIIAAAAAACAytILC4uzy9KsVLwrjDPDTQqCyqxVEjLL1JIzMlRyE9TKMlIzdVRSMxLUSjOV8jPw84EACIGg+xFAAAA",
        ];
        for text in table {
            let got = children(&format!("see {text} there"));
            let read = |(_, t, _): &(Layer, String, _)| t.contains("Kx7mQ2vRt9 for all");
            assert!(got.iter().any(read), "{text}");
        }
    }

    #[test]
    fn a_file_that_nobody_can_read_is_told_of() {
        let mut file = stored(b'a', b"whatever this may be");
        file[8] = 99;
        let hex: String = file.iter().map(|b| format!("{b:02x}")).collect();
        let (_, over) = crate::decode::tests::run(&hex, 1 << 20);
        assert_eq!(over, Some(crate::OverBudget::DecodedBytes));
    }

    #[test]
    fn a_bomb_is_bounded() {
        use std::io::Write;
        let mut deflated =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        deflated.write_all(&vec![b'a'; 8 << 20]).unwrap();
        let body = deflated.finish().unwrap();
        let mut file = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        file.extend(b"\0\0\0\0\x01\0\0\0a");
        file.extend(body);
        let hex: String = file.iter().map(|b| format!("{b:02x}")).collect();
        let (nodes, over) = crate::decode::tests::run(&hex, 1 << 20);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 1 << 20);
        assert_eq!(over, Some(crate::OverBudget::DecodedBytes));
    }

    /// A stored file as it stands in an archive.
    fn stored(name: u8, body: &[u8]) -> Vec<u8> {
        let mut file = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        let len = u32::try_from(body.len()).unwrap().to_le_bytes();
        file.extend(len);
        file.extend(len);
        file.extend(b"\x01\0\0\0");
        file.push(name);
        file.extend(body);
        file
    }

    #[test]
    fn a_file_behind_many_others_is_read() {
        let mut all: Vec<u8> = (0..300)
            .flat_map(|_| stored(b'a', b"nothing here\n"))
            .collect();
        all.extend(stored(b'p', b"\x89PNG\0\0\0\0\xff\xfe\0\0\0"));
        all.extend(stored(b'z', b"password: the last of all"));
        let hex: String = all.iter().map(|b| format!("{b:02x}")).collect();
        let (nodes, over) = crate::decode::tests::run(&hex, 1 << 20);
        assert_eq!(over, None);
        let last = |text: &[u8]| memchr::memmem::find(text, b"the last of all").is_some();
        assert!(nodes.iter().any(|node| last(&node.text)));
    }

    #[test]
    fn what_turns_out_to_be_no_text_is_paid_for() {
        use std::io::Write;
        let mut text = vec![b'a'; 70];
        text.resize(300_000, 0);
        let mut all = Vec::new();
        for _ in 0..8 {
            let mut deflated =
                flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
            deflated.write_all(&text).unwrap();
            let mut file = stored(b'a', &deflated.finish().unwrap());
            file[8] = 8;
            all.extend(file);
        }
        let hex: String = all.iter().map(|b| format!("{b:02x}")).collect();
        let (_, over) = crate::decode::tests::run(&hex, 1 << 20);
        assert_eq!(over, Some(crate::OverBudget::DecodedBytes));
    }
}
