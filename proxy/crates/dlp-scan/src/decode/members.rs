//! Gzip streams behind each other (RFC 1952, section 2.2), as tools append to a log or write in blocks that can be found again.

use flate2::{Decompress, FlushDecompress, Status};

/// What is unpacked at a time.
const STEP: usize = 16 << 10;
/// The sum and the length behind a stream.
const FOOT_BYTES: usize = 8;

/// Reads all of them, up to `limit` bytes or to where they are broken, whatever their sums are. Gives where each begins.
pub(super) fn read(bytes: &[u8], limit: u64, plain: &mut Vec<u8>) -> Vec<usize> {
    let mut inflater = Decompress::new(false);
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(body) = bytes.get(at..).and_then(behind_head) {
        starts.push(at);
        inflater.reset(false);
        let Some(len) = inflate(&mut inflater, body, limit, plain) else {
            break;
        };
        at = bytes.len() - body.len() + len + FOOT_BYTES;
    }
    starts
}

/// Reads one of them without its head: how long it is, if its end was reached.
fn inflate(
    inflater: &mut Decompress,
    body: &[u8],
    limit: u64,
    plain: &mut Vec<u8>,
) -> Option<usize> {
    let mut step = vec![0; STEP];
    loop {
        let room = limit.saturating_sub(plain.len() as u64);
        let room = usize::try_from(room).map_or(STEP, |room| room.min(STEP));
        let (read, written) = (inflater.total_in(), inflater.total_out());
        let rest = body.get(usize::try_from(read).ok()?..)?;
        let status = inflater.decompress(rest, &mut step[..room], FlushDecompress::None);
        let len = usize::try_from(inflater.total_out() - written).ok()?;
        plain.extend_from_slice(&step[..len]);
        match status {
            Ok(Status::StreamEnd) => return usize::try_from(inflater.total_in()).ok(),
            // Nothing was left to be read, or no room to write to.
            Ok(_) if len == 0 && inflater.total_in() == read => return None,
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

/// What stands behind the head of a gzip stream (RFC 1952, section 2.3), whatever the sum over the head says.
fn behind_head(bytes: &[u8]) -> Option<&[u8]> {
    if !bytes.starts_with(&[0x1F, 0x8B, 8]) {
        return None;
    }
    const HEAD_BYTES: usize = 10;
    let (flags, mut rest) = (*bytes.get(3)?, bytes.get(HEAD_BYTES..)?);
    if flags & 4 != 0 {
        let (len, behind) = rest.split_first_chunk()?;
        rest = behind.get(usize::from(u16::from_le_bytes(*len))..)?;
    }
    for named in [8, 16] {
        if flags & named != 0 {
            rest = &rest[memchr::memchr(0, rest)? + 1..];
        }
    }
    rest.get(if flags & 2 != 0 { 2 } else { 0 }..)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::Layer;
    use crate::decode::tests::run;
    use crate::text::Node;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text).unwrap();
        packer.finish().unwrap()
    }

    /// A block of BGZF (SAM specification, section 4.1): its length stands in its head.
    fn block(text: &[u8]) -> Vec<u8> {
        let mut packed = gzip(text);
        packed[3] = 4;
        let len = u16::try_from(packed.len() + 7).unwrap().to_le_bytes();
        packed.splice(10..10, [6, 0, b'B', b'C', 2, 0, len[0], len[1]]);
        packed
    }

    fn lines(from: usize, to: usize) -> Vec<u8> {
        let line = |nth: usize| format!("{nth}: {:x}\n", nth.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        (from..to).flat_map(|nth| line(nth).into_bytes()).collect()
    }

    fn texts_with(nodes: &[Node], want: &[u8]) -> usize {
        let has = |node: &&Node| {
            node.layer == Some(Layer::Gzip) && memchr::memmem::find(&node.text, want).is_some()
        };
        nodes.iter().filter(has).count()
    }

    #[test]
    fn each_begins_where_it_begins() {
        let parts: Vec<Vec<u8>> = (0..40).map(|nth| gzip(&lines(nth, nth + 3))).collect();
        let mut plain = Vec::new();
        let starts = read(&parts.concat(), 1 << 20, &mut plain);
        let want = parts.iter().scan(0, |at, part| {
            let start = *at;
            *at += part.len();
            Some(start)
        });
        assert_eq!(starts, want.collect::<Vec<_>>());
        assert!(plain.starts_with(&lines(0, 3)) && plain.ends_with(&lines(39, 42)));
    }

    #[test]
    fn what_is_cut_bent_or_too_long_is_read_as_far_as_it_goes() {
        let all = [gzip(&lines(0, 3)), gzip(&lines(3, 300))].concat();
        for len in 0..all.len() {
            let mut plain = Vec::new();
            read(&all[..len], 1 << 20, &mut plain);
            assert!(lines(0, 300).starts_with(&plain), "{len}");
            let mut plain = Vec::new();
            let mut bent = all.clone();
            bent[len] ^= 0x41;
            read(&bent, 5000, &mut plain);
            assert!(plain.len() <= 5000);
        }
        let mut plain = Vec::new();
        read(&all[..all.len() / 2], 1 << 20, &mut plain);
        assert!(plain.starts_with(&lines(0, 30)));
    }

    #[test]
    fn many_are_within_budget() {
        for parts in [20, 300] {
            let all: Vec<u8> = (0..parts)
                .flat_map(|nth| gzip(&lines(nth, nth + 2)))
                .collect();
            for text in [
                STANDARD.encode(&all),
                STANDARD.encode(["\u{1}a name\0".as_bytes(), &all].concat()),
                all.iter().map(|b| format!("{b:02x}")).collect(),
                STANDARD.encode(gzip(&["\0\u{1}\0\0".as_bytes(), &all].concat())),
            ] {
                let (nodes, over) = run(&text, 1 << 20);
                assert_eq!(over, None, "{parts}");
                assert_eq!(
                    texts_with(&nodes, &lines(parts - 1, parts + 1)),
                    1,
                    "{parts}"
                );
            }
        }
    }

    #[test]
    fn blocks_of_a_megabyte_are_within_budget() {
        let text = lines(0, 40_000);
        assert!(text.len() > 900_000);
        let blocks: Vec<u8> = text.chunks(0xFF00).flat_map(block).collect();
        let (nodes, over) = run(&STANDARD.encode(&blocks), 4 << 20);
        assert_eq!(over, None);
        assert_eq!(texts_with(&nodes, &lines(39_999, 40_000)), 1);
    }

    #[test]
    fn what_stands_between_and_within_heads_is_read_as_well() {
        let (first, second, last) = (
            gzip(&lines(0, 9)),
            gzip(b"some other text"),
            gzip(&lines(9, 18)),
        );
        let mut extra = gzip(&lines(0, 9));
        extra[3] = 4;
        let len = u16::try_from(second.len()).unwrap().to_le_bytes();
        extra.splice(10..10, [&len[..], &second].concat());
        for all in [
            [&first[..], &last, b"\x07rest\0\xff", &second].concat(),
            [&extra[..], &last].concat(),
        ] {
            let (nodes, over) = run(&STANDARD.encode(&all), 1 << 20);
            assert_eq!(over, None);
            assert_eq!(texts_with(&nodes, &lines(9, 18)), 1);
            assert_eq!(texts_with(&nodes, b"some other text"), 1);
        }
    }
}
