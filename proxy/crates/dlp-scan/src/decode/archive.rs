//! What is packed: gzip, zlib, deflate alone, and the files of a zip archive.

use std::io::Read;

use super::base::texty;
use super::{Spawner, begin_cell, copy, margin_after, margin_before};
use crate::Layer;
use crate::text::{Cell, How, Node, Span};

/// Bytes of a deflated text that have to be text before the rest is unpacked.
pub(super) const DEFLATED_HEAD: u64 = 64;

/// What a text is packed in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    Gzip,
    Zlib,
    Deflate,
    Zip,
}

pub(super) fn unpack(
    node: &Node,
    cell: &Cell,
    (start, end): (usize, usize),
    layer: Layer,
    bytes: &[u8],
    inner: Packed,
    spawn: &mut Spawner<'_>,
) -> bool {
    let room = spawn.room();
    let mut plain = Vec::new();
    let limit = room as u64 + 1;
    let mut spent = 0;
    // Broken or cut-off streams give what they gave up to there.
    let _ = match inner {
        Packed::Gzip => flate2::read::MultiGzDecoder::new(bytes)
            .take(limit)
            .read_to_end(&mut plain),
        Packed::Deflate => {
            let mut reader = flate2::read::DeflateDecoder::new(bytes).take(limit);
            let _ = reader.by_ref().take(DEFLATED_HEAD).read_to_end(&mut plain);
            // Without a head it may be anything; and nobody pays for what is unpacked and left.
            if plain.len() < 8 || !texty(&plain) {
                return false;
            }
            reader.read_to_end(&mut plain)
        }
        Packed::Zlib => flate2::read::ZlibDecoder::new(bytes)
            .take(limit)
            .read_to_end(&mut plain),
        Packed::Zip => {
            spent = zip(bytes, limit, &mut plain);
            Ok(0)
        }
    };
    spent = spent.max(plain.len() as u64);
    if plain.is_empty() && spent < limit {
        return false;
    }
    if spent >= limit {
        spawn.over.get_or_insert(crate::OverBudget::DecodedBytes);
        return true;
    }
    let Some(mut outer) = spawn.begin(layer) else {
        return true;
    };
    // Two steps, one node: the compressed bytes themselves are no text.
    outer.layer = Some(match inner {
        Packed::Gzip => Layer::Gzip,
        Packed::Zlib | Packed::Deflate | Packed::Zip => Layer::Zlib,
    });
    outer.under = Some(layer);
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = begin_cell(&mut outer, node, cell.name);
    let at = outer.text.len();
    let text = String::from_utf8_lossy(&plain);
    // Packed JSON is read as JSON only if it stands alone.
    let alone = super::json::looks_like(text.as_bytes());
    if !alone {
        let from = margin_before(&node.text, start, floor);
        copy(&mut outer, node, from, start);
    }
    outer.push(text.as_bytes(), Span::new(start, end), How::Atom);
    if !alone {
        outer.push(b" ", Span::new(end - 1, end), How::Atom);
        let to = margin_after(&node.text, end, ceil);
        copy(&mut outer, node, end, to);
    }
    outer.close_cell(at, name, cell.kind, 0);
    spawn.end(outer);
    true
}

/// Length of the head of a file in an archive.
const ZIP_HEAD: usize = 30;

/// The files of a zip archive that are text, one after the other with a line end between them (APPNOTE 4.3.7; deflated or
/// stored). Such archives are what office documents are, too. Gives how much was unpacked, also of what turned out to be no
/// text: never more than `limit` bytes, and if it is so many, the rest was not looked at.
fn zip(bytes: &[u8], limit: u64, plain: &mut Vec<u8>) -> u64 {
    let (mut at, mut spent) = (0, 0);
    // Each round goes on by a head at least.
    while let Some(head) = bytes
        .get(at..at + ZIP_HEAD)
        .filter(|h| h.starts_with(b"PK\x03\x04"))
    {
        let short = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let packed = u32::from_le_bytes([head[18], head[19], head[20], head[21]]) as usize;
        let start = at + ZIP_HEAD + short(26) + short(28);
        let Some(rest) = bytes.get(start..) else {
            break;
        };
        // The length may stand behind the file only; then it is found by reading.
        let known = (packed > 0).then_some(packed.min(rest.len()));
        let from = plain.len();
        let (len, whole) = match short(8) {
            0 => {
                let body = &rest[..known.unwrap_or(0)];
                let text = texty(&body[..body.len().min(DEFLATED_HEAD as usize)]);
                if text {
                    let left = usize::try_from(limit - spent).unwrap_or(usize::MAX);
                    plain.extend_from_slice(&body[..body.len().min(left)]);
                }
                (body.len(), text)
            }
            8 => {
                let mut reader =
                    flate2::read::DeflateDecoder::new(&rest[..known.unwrap_or(rest.len())]);
                let head = DEFLATED_HEAD.min(limit - spent);
                let _ = reader.by_ref().take(head).read_to_end(plain);
                let text = texty(&plain[from..]);
                if text {
                    let more = limit - spent - (plain.len() - from) as u64;
                    let _ = reader.by_ref().take(more).read_to_end(plain);
                }
                let read = usize::try_from(reader.total_in()).unwrap_or(rest.len());
                (known.unwrap_or(read), text)
            }
            _ => (known.unwrap_or(0), false),
        };
        spent += (plain.len() - from) as u64;
        // Pictures and programs are no text; without a length nothing after them is found.
        if !whole || !texty(&plain[from..]) {
            plain.truncate(from);
        } else {
            plain.push(b'\n');
        }
        at = start + len;
        if bytes.get(at..at + 4) == Some(b"PK\x07\x08") {
            at += 16;
        }
        if len == 0 && known.is_none() || spent >= limit {
            break;
        }
    }
    spent
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
