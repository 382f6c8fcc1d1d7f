//! What is packed: gzip, zlib, deflate alone, and the files of a zip archive.

use std::io::Read;

use super::base::texty;
use super::{Spawner, begin_cell, copy, margin_after, margin_before};
use crate::Layer;
use crate::text::{Cell, How, Node, Span};

/// Bytes of a deflated text that have to be text before the rest is unpacked.
pub(super) const DEFLATED_HEAD: u64 = 64;
/// Files of one archive that are read.
const FILES_MAX: usize = 64;

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
        Packed::Zip => Ok(zip(bytes, limit, &mut plain)),
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

/// The files of a zip archive that are text, one after the other with a line end between them, no more than `limit` bytes
/// together (APPNOTE 4.3.7; deflated or stored). Gives how much was read. Such archives are what office documents are, too.
fn zip(bytes: &[u8], limit: u64, plain: &mut Vec<u8>) -> usize {
    let mut at = 0;
    for _ in 0..FILES_MAX {
        let Some(head) = bytes
            .get(at..at + ZIP_HEAD)
            .filter(|h| h.starts_with(b"PK\x03\x04"))
        else {
            break;
        };
        let short = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let packed = u32::from_le_bytes([head[18], head[19], head[20], head[21]]) as usize;
        let start = at + ZIP_HEAD + short(26) + short(28);
        let Some(rest) = bytes.get(start..) else {
            break;
        };
        let left = limit.saturating_sub(plain.len() as u64);
        // The length may stand behind the file only; then it is found by reading.
        let known = (packed > 0).then_some(packed.min(rest.len()));
        let from = plain.len();
        let (len, whole) = match short(8) {
            0 => {
                let body = &rest[..known.unwrap_or(0)];
                plain.extend_from_slice(&body[..body.len().min(left as usize)]);
                (body.len(), true)
            }
            8 => {
                let mut reader =
                    flate2::read::DeflateDecoder::new(&rest[..known.unwrap_or(rest.len())]);
                let _ = reader
                    .by_ref()
                    .take(DEFLATED_HEAD.min(left))
                    .read_to_end(plain);
                let text = texty(&plain[from..]);
                if text {
                    let more = limit.saturating_sub(plain.len() as u64);
                    let _ = reader.by_ref().take(more).read_to_end(plain);
                }
                let read = usize::try_from(reader.total_in()).unwrap_or(rest.len());
                (known.unwrap_or(read), text)
            }
            _ => (known.unwrap_or(0), false),
        };
        // Pictures and programs are no text, and nobody pays for them; without a length nothing after them is found.
        if !whole || !texty(&plain[from..]) {
            plain.truncate(from);
        } else {
            plain.push(b'\n');
        }
        at = start + len;
        if bytes.get(at..at + 4) == Some(b"PK\x07\x08") {
            at += 16;
        }
        if len == 0 && known.is_none() || plain.len() as u64 >= limit {
            break;
        }
    }
    plain.len()
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
}
