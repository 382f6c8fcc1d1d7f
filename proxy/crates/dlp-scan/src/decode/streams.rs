//! Streams that are packed in other ways than deflated: bzip2, xz and LZMA alone, Zstandard (RFC 8878).
//!
//! Their windows are as large as their writers like, and no larger here than what may still come out.

use std::io::Read;

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use smallvec::SmallVec;

use super::archive::{DEFLATED_HEAD, Packed, packed_in};
use super::base::utf16_order;

/// What a stream costs at the least, for the memory that it is read in.
const STREAM_BYTES: u64 = 16 << 10;
/// Smallest window of LZMA.
const WINDOW_BYTES_MIN: u32 = 4096;

/// What begins with these bytes.
pub(super) fn packed(head: &[u8]) -> Option<Packed> {
    match head {
        // A number from 1 to 9, and the digits of pi that a block begins with.
        [
            b'B',
            b'Z',
            b'h',
            b'1'..=b'9',
            0x31,
            0x41,
            0x59,
            0x26,
            0x53,
            0x59,
            ..,
        ] => Some(Packed::Bzip2),
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packed::Xz),
        // A frame, or one that readers leap over (section 3.1.2).
        [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Some(Packed::Zstd),
        // Properties, a window that is a power of two or half as much again, and a length that is not known or has four bytes.
        [..225, 0, a, b, c, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, ..]
        | [..225, 0, a, b, c, _, _, _, _, 0, ..]
            if is_window([*a, *b, *c]) =>
        {
            Some(Packed::Lzma)
        }
        _ => None,
    }
}

/// The upper three bytes of the size of a window (LZMA specification, "LZMA file format").
fn is_window([a, b, c]: [u8; 3]) -> bool {
    let size = u32::from_le_bytes([a, b, c, 0]);
    let (low, ones) = (size.trailing_zeros(), size.count_ones());
    low >= 4 && (ones == 1 || ones == 2 && size >> low == 3)
}

/// What comes out of a stream, up to `limit` bytes and to where it is broken, and what that costs.
pub(super) fn read(bytes: &[u8], packed: Packed, limit: u64) -> (Vec<u8>, u64) {
    let mut plain = Vec::new();
    let whole = match packed {
        Packed::Bzip2 => {
            let reader = bzip2::bufread::MultiBzDecoder::new(bytes);
            reader.take(limit).read_to_end(&mut plain).is_ok()
        }
        Packed::Xz => return xz(bytes, limit),
        Packed::Lzma if !begins_as_lzma(bytes) => return (plain, STREAM_BYTES),
        Packed::Lzma => lzma(bytes, window(limit)).is_some_and(|reader| {
            let mut reader = reader.take(limit);
            reader.read_to_end(&mut plain).is_ok()
        }),
        Packed::Zstd => return zstd(bytes, limit),
        Packed::Gzip | Packed::Zlib | Packed::Deflate | Packed::Zip => false,
    };
    // What fails may have filled a window before.
    let spent = match whole {
        true => plain.len() as u64,
        false => (plain.len() + bytes.len()) as u64 * 4,
    };
    (plain, spent.max(STREAM_BYTES))
}

/// Is the length one that is not known, or of four bytes and not none, and a zero behind it, which each stream begins with (LZMA
/// specification, "The main loop of decoder")?
pub(super) fn may_be_lzma(bytes: impl Iterator<Item = u8>) -> bool {
    const LENGTH_AT: usize = 5;
    let behind: SmallVec<[u8; 9]> = bytes.skip(LENGTH_AT).take(9).collect();
    match *behind {
        [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0] => true,
        [a, b, c, d, 0, 0, 0, 0, 0] => [a, b, c, d] != [0; 4],
        _ => false,
    }
}

/// Tables of small numbers begin like a stream of LZMA, which has no sign of its own; but what somebody packs is mostly text, or
/// packed once more.
fn begins_as_lzma(bytes: &[u8]) -> bool {
    if !may_be_lzma(bytes.iter().copied()) {
        return false;
    }
    let mut head = Vec::new();
    if let Some(reader) = lzma(bytes, WINDOW_BYTES_MIN) {
        // What is broken gives what came before.
        let _ = reader.take(DEFLATED_HEAD).read_to_end(&mut head);
    }
    let text = head
        .iter()
        .filter(|b| matches!(b, 0x20..|b'\n'| b'\r' | b'\t'));
    !head.is_empty()
        && (packed_in(&head).is_some()
            || text.count() * 4 >= head.len() * 3
            || utf16_order(&head).is_some())
}

/// No window need be larger than what may still come out.
fn window(limit: u64) -> u32 {
    u32::try_from(limit)
        .unwrap_or(u32::MAX)
        .max(WINDOW_BYTES_MIN)
}

/// Frames of Zstandard behind each other. One that cannot be read here, for its window or its dictionary, takes all that is
/// left: somebody else may read it.
fn zstd(mut bytes: &[u8], limit: u64) -> (Vec<u8>, u64) {
    /// What writers take for the largest files, unless they are told otherwise (section 3.1.1.1.2 recommends as much).
    const WINDOW_BYTES_MAX: u64 = 8 << 20;
    const BLOCK_BYTES_MAX: usize = 128 << 10;
    let (mut plain, mut spent) = (Vec::new(), STREAM_BYTES);
    let mut frames = FrameDecoder::new();
    frames.set_max_window_size(WINDOW_BYTES_MAX);
    while spent < limit {
        if let Some(behind) = behind_skipped(bytes) {
            bytes = behind;
            spent += 1;
            continue;
        }
        if packed(bytes) != Some(Packed::Zstd) {
            break;
        }
        if frames.init(&mut bytes).is_err() {
            return (plain, limit);
        }
        let upto = BlockDecodingStrategy::UptoBytes((limit - spent) as usize);
        let read = frames.decode_blocks(&mut bytes, upto);
        // Nothing comes out of a frame before its window is full or it ends.
        let decoded = match frames.collect() {
            Some(text) => {
                plain.extend_from_slice(&text);
                text.len()
            }
            None => 0,
        };
        spent += match read {
            Ok(true) => decoded.max(1),
            _ => decoded.max(frames.blocks_decoded() * BLOCK_BYTES_MAX),
        } as u64;
        if !matches!(read, Ok(true)) {
            break;
        }
    }
    (plain, spent)
}

/// What stands behind a frame that readers leap over.
fn behind_skipped(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    let (size, rest) = rest.split_first_chunk()?;
    let size = usize::try_from(u32::from_le_bytes(*size)).unwrap_or(usize::MAX);
    matches!(head, [0x50..=0x5F, 0x2A, 0x4D, 0x18]).then(|| rest.get(size..).unwrap_or_default())
}

/// The blocks of .xz files behind each other (The .xz File Format 1.2.1, sections 2 and 3). One that more than LZMA2 was used
/// for takes all that is left: somebody else may read it.
fn xz(bytes: &[u8], limit: u64) -> (Vec<u8>, u64) {
    const MAGIC: &[u8] = b"\xFD7zXZ\0";
    const STREAM_HEAD_BYTES: usize = 12;
    let (mut plain, mut spent) = (Vec::new(), 0);
    for at in memchr::memmem::find_iter(bytes, MAGIC) {
        let stream = &bytes[at..];
        // Its second byte says how long the check behind each block is (section 2.1.1.2).
        let Some(check) = stream.get(MAGIC.len() + 1) else {
            break;
        };
        let check_bytes = match check & 0xF {
            0 => 0,
            kind @ 1.. => 4usize << ((kind - 1) / 3),
        };
        let mut rest = stream.get(STREAM_HEAD_BYTES..).unwrap_or_default();
        while let Some(block) = Block::of(rest) {
            spent += STREAM_BYTES;
            let Some(size) = block.window.filter(|_| spent < limit) else {
                return (plain, limit);
            };
            let before = plain.len();
            let size = size.min(window(limit));
            let reader = lzma_rust2::Lzma2Reader::new(block.body, size, None);
            let whole = reader.take(limit - spent).read_to_end(&mut plain).is_ok();
            if !whole && plain.len() == before {
                cut_chunk(block.body, size, limit - spent, &mut plain);
            }
            spent += (plain.len() - before) as u64;
            if !whole {
                break;
            }
            let end = block.len.next_multiple_of(4) + check_bytes;
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    (plain, spent.max(STREAM_BYTES))
}

/// A block of an .xz file (section 3).
struct Block<'b> {
    /// How much of a window it takes; `None` where something else than LZMA2 was used.
    window: Option<u32>,
    body: &'b [u8],
    /// With its head, and without what pads it.
    len: usize,
}

impl<'b> Block<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        const LZMA2: u64 = 0x21;
        let head_bytes = (usize::from(*bytes.first()?) + 1) * 4;
        // Zero is the index behind all blocks.
        let (head, body) = bytes
            .split_at_checked(head_bytes)
            .filter(|_| head_bytes > 4)?;
        let flags = head[1];
        let mut fields = &head[2..];
        for sized in [0x40, 0x80] {
            if flags & sized != 0 {
                number(&mut fields)?;
            }
        }
        let plain = flags & 3 == 0 && number(&mut fields)? == LZMA2 && number(&mut fields)? == 1;
        let window = plain.then(|| fields.first()).flatten().map(|bits| {
            let bits = u32::from(*bits);
            match bits {
                0..40 => (2 | bits & 1) << (bits / 2 + 11),
                _ => u32::MAX,
            }
        });
        Some(Self {
            window,
            body,
            len: head_bytes + chunks_len(body),
        })
    }
}

/// Reads the first chunk of LZMA2 as far as it is there: readers want all of it. It is a stream of LZMA without its head.
fn cut_chunk(body: &[u8], window: u32, limit: u64, plain: &mut Vec<u8>) {
    // New properties, and nothing that is referred to; both sizes, less one.
    const FRESH: u8 = 0xE0;
    let Some(([control, high, low, _, _, props], digits)) = body.split_first_chunk() else {
        return;
    };
    if *control < FRESH {
        return;
    }
    let size = u32::from_be_bytes([0, control & 0x1F, *high, *low]) + 1;
    let reader = lzma_rust2::LzmaReader::new_with_props(digits, size.into(), *props, window, None);
    if let Ok(mut reader) = reader {
        reader.set_defer_errors(true);
        // What is broken gives what came before.
        let _ = reader.take(limit).read_to_end(plain);
    }
}

/// How long the chunks of LZMA2 are that begin here, with the zero behind them.
fn chunks_len(body: &[u8]) -> usize {
    let u16_at =
        |at: usize| Some(usize::from(*body.get(at)?) << 8 | usize::from(*body.get(at + 1)?));
    let mut at = 0;
    loop {
        let len = match body.get(at) {
            None => return body.len(),
            Some(0) => return at + 1,
            // As it is: its size, less one, and the bytes.
            Some(1..0x80) => u16_at(at + 1).map(|size| 3 + size + 1),
            // Both sizes, less one; new properties.
            Some(control @ 0x80..) => {
                let props = usize::from(*control >= 0xC0);
                u16_at(at + 3).map(|size| 5 + props + size + 1)
            }
        };
        let Some(len) = len else {
            return body.len();
        };
        at += len;
    }
}

/// A number of seven bits in each byte, the lowest first (section 1.2).
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for nth in 0..9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << (7 * nth);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// LZMA alone: properties, the size of the window and the length of what comes out, all bits set if that is not known.
fn lzma(bytes: &[u8], window: u32) -> Option<lzma_rust2::LzmaReader<&[u8]>> {
    let (props, rest) = bytes.split_first()?;
    let (size, rest) = rest.split_first_chunk()?;
    let (length, body) = rest.split_first_chunk()?;
    let size = u32::from_le_bytes(*size).clamp(WINDOW_BYTES_MIN, window);
    let length = u64::from_le_bytes(*length);
    let reader = lzma_rust2::LzmaReader::new_with_props(body, length, *props, size, None);
    let mut reader = reader.ok()?;
    // What is cut off gives all that is there.
    reader.set_defer_errors(true);
    Some(reader)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::Layer;
    use crate::decode::tests::{children, run};

    /// `password: Kx7mQ2vRt9 for all of them, and so on, and so on, and so on`, by Python's modules and by zstd.
    const PACKED: [(Layer, &str); 4] = [
        (Layer::Bzip2, BZIP2),
        (Layer::Xz, XZ),
        (Layer::Xz, LZMA),
        (Layer::Zstd, ZSTD),
    ];
    const PACKED_WIDE: [&str; 13] = [
        "K2BIZCgGwnKGfIYihhQGKwYFBm+GCgZzhlyGQAYjhjKGIIYSBkugaBpYhQJQfQ4QKgB5aUCyhCGDIRWoFgA=",
        "PY9LDsIwDETfUXwAVmwQXIEV3CCIVq1EG1SHz/GZOCKy4iTjN078JOGKD5mNOyeMM18OLFzY8+ZK4Sh1DMLEPxSm26hcmBjEVn2V39QrR3VlF/XcKdNqTPP+O9VqUrbYvbtu4XFpc7iSlMwryNbRg1jCXXTewj3rlUrXPw+azPp0zg8=",
        "XQAAgAD//////////wA4AAg+/E9NNLYOalMpsmMi2AeHYZpH5HLyDhmYnxa2YtZoGP8EEwy2UzT8DmpfhRtKLc2cNrv//z+kAAA=",
        "YyhgSGQoBsJyhnyGIoYUBisGBQZvhgoGc4ZchkAGI4YyhiCGEgZLoGgaWIUCUH0OECoAeWlAsoQhgyGVIRcA",
        "PY9LDsIwDETfUXwAVmwQXIEV3CCIVq1EG1SHz/GZOCKy4iTjN07Mk4QrPmQ27pwwznw5sHBhz5srhaPUMQgT/1CYbqNyYWIQW/VVflOvHNWVXdRzp0yrMc3771SrSdli9+66hcelzeFKUjKvIFtHD2IJd9F5C/esVypd/zxoMuvT+Q8=",
        "XQAAgAD//////////wAAHQCQPEKaTRrGZjCuPNnyVDFCLkO8dmc9ThX1SOiUF/jlCB75T9xIkIxgGAq7Cbs0nw+wtAL//5N6AAA=",
        "+/+vgCGRoRgIyxnyGYoYUhisGBQYvBkqGMwZchkCGYwYyhiCGEoYLIGiaWAVCkD1OUCoAOSlAckShgyGVKBaAA==",
        "PY9LDsIwDETfUXwAVt0guAKrcoMgWrUSbVATPqcHJo6IrDjJ+I0Tfz93AknxIrJx5Yhx4s2ehZ6OJ2cyB6mjEyb+pjDdRuXMxCC26Kv8pl7Rqys7r8dGmVZlqvffqVSDsvmemuviniRtdleQEnk4WTsmJxZ3Z503d896pdDlz4MmszZd4gc=",
        "XQAAgAD//////////wB/v4mQAu8DT3HtK7g6vAD4qbA7vEdxo5g10GQ50BVsJWMpbIJQFwX7JplSc2oPFwJrUV5koJp/E///26IAAA==",
        "FI1NEkIhDIOvkgO4cuPoFVzpDcoDXkFKmUf9Ob4lm8zkSyaD5vzqEW+4/y7yOH+edkXWA9QaNMM4CahHTIX2E0xXhOSJ01UyJgPTXCgkTCoRFPRtqzgThMzSMVE6CDl9se5m2kociiF7HATppIURX+SC7J3YGTd2q/6eq7O+1+qDMFjQc2ubImZpPh+hSs5/AAAA//8DAA==",
        "7U3XUWC2AAAAJZWWWRDAEABBAELAAAAAOQX6LI7AABCAANS5AA4BQSXAAME4757VD3VBVZRLSZMDLRZ2SLWD5RWP7FC64DWMD2R4KZ3B55SFS4OS5EFFCESSGY6E3LX2D2WQGAAAAAAAAGQ4BYEOFBFKGYAACUSF4I733LQ7W3ZX2AIAAAAAABCZLI======",
        "7u3xuwc2aaaajzwwwrdaeabbaelaaaaaoqx6li7aabcaans5aa4bqsxaame4757vd3vbvzrlszmdlrz2slwd5rwp7fc64dwmd2r4kz3b55sfs4os5effcessgy6e3lx2d2wqgaaaaaaaagq4byeofbfkgyaacusf4i733lq7w3zx2aiaaaaaabczli",
        "CWG4WEICEEKAIU4ZAA6HTMJUAVHZVQPQP654BIYWOQGV7ODWZ6T3D52TB734B43XFOX6X5Z55YEHVABZIMBUN4QFVQHF3IPVQKQQXQKPGLWQVDOEQHCL5FHR5AKAOGX5RQK6YHUFMP4KGQZKRDQE7LF3TYMFHSOIFIWB5MM2SYRWVSZVCO5TFBIAFPDFUQRJNFHINPGZBES4RJR3LJZ5YCXWDLC4TLBTWH6AC===",
    ];
    const BZIP2: &str = "QlpoOTFBWSZTWXDJlfcAABwfgEAEELAACDAAJ0fdwCAASGVGnlNGaJkPQKGjQAaBkT2BWtyxra4pl1ZcbgPE0eadN+/yiB2weQLZminLEUAwT4u5IpwoSDhkyvuA";
    const XZ: &str = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ABEADZdADgYSuADCc/39R7qGuYrllg1xzqS7D7Gz/lF7g7MHqPFZ2HvZFlx0ukKURJSNjxNrvoerQMAAAAAABocDgjihKo2AAFSReI/va4ftvN9AQAAAAAEWVo=";
    const LZMA: &str = "XQAAgAD//////////wA4GErgAwnP9/Ue6hrmK5ZYNcc6kuw+xs/5Re4OzB6jxWdh72RZcdLpClESUjY8Ta76HsWD+///9IiQAA==";
    const ZSTD: &str = "KLUv/QRYtQEA9AJwYXNzd29yZDogS3g3bVEydlJ0OSBmb3IgYWxsIG9mIHRoZW0sIGFuZCBzbyBvbgEAt1LKlrha0Q==";

    #[test]
    fn every_kind_of_stream_is_read() {
        for (layer, text) in PACKED {
            let hex: String = STANDARD
                .decode(text)
                .unwrap()
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            for written in [text, &hex] {
                let got = children(&format!("see {written} there"));
                let read = |(l, t, _): &(Layer, String, _)| {
                    *l == layer && t.contains("password: Kx7mQ2vRt9 for all")
                };
                assert!(got.iter().any(read), "{layer:?} {written}");
            }
        }
    }

    #[test]
    fn a_stream_that_is_cut_or_bent_is_no_harm() {
        for (layer, text) in PACKED {
            let bytes = STANDARD.decode(text).unwrap();
            let kind = packed(&bytes).unwrap_or_else(|| panic!("{layer:?}"));
            for len in 0..bytes.len() {
                let (plain, spent) = read(&bytes[..len], kind, 1 << 20);
                assert!(
                    plain.len() < 100 && spent >= STREAM_BYTES,
                    "{layer:?} {len}"
                );
                let mut bent = bytes.clone();
                bent[len] ^= 0x41;
                read(&bent, kind, 1 << 16);
            }
        }
    }

    #[test]
    fn a_stream_that_is_cut_is_read_as_far_as_it_goes() {
        for (text, packed) in [(XZ, Packed::Xz), (LZMA, Packed::Lzma)] {
            let bytes = STANDARD.decode(text).unwrap();
            let lens = (0..bytes.len()).map(|len| read(&bytes[..len], packed, 1 << 20).0.len());
            let lens: Vec<_> = lens.collect();
            assert!(lens.is_sorted() && lens[bytes.len() / 2] > 8, "{lens:?}");
            let (plain, _) = read(&bytes[..bytes.len() / 2], packed, 1 << 20);
            assert!(b"password: Kx7mQ2vRt9 for all of them".starts_with(&plain));
        }
    }

    #[test]
    fn other_alphabets_and_letters_of_two_bytes_are_read() {
        // In UTF-16, either order, with its mark and without; in base32; a deflated text with a second block. By Python's modules.
        for text in PACKED_WIDE {
            let got = children(&format!("see {text} there"));
            let read = |(_, t, _): &(Layer, String, _)| t.contains("password: Kx7mQ2vRt9 for all");
            assert!(got.iter().any(read), "{text}");
        }
    }

    #[test]
    fn no_stream_hides_behind_another() {
        let harmless = |text: &str| STANDARD.decode(text).unwrap();
        // `nothing to see` alone, and a frame that is leapt over.
        let (xz, zstd) = (
            harmless(
                "/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQANbm90aGluZyB0byBzZWUAAADnNFA7vBwwfAABJg4IG+AEH7bzfQEAAAAABFla",
            ),
            harmless("KLUv/QRYcQAAbm90aGluZyB0byBzZWUQFgCo"),
        );
        let skipped = b"\x53\x2A\x4D\x18\x03\0\0\0abc".to_vec();
        for (layer, parts) in [
            (Layer::Xz, vec![xz, STANDARD.decode(XZ).unwrap()]),
            (Layer::Xz, vec![STANDARD.decode("/Td6WFoAAATm1rRGAgAhARYAAAB0L+WjAQANbm90aGluZyB0byBzZWUAAADnNFA7vBwwfAIAIQEWAAAAdC/lo+AARAA2XQA4GErgAwnP9/Ue6hrmK5ZYNcc6kuw+xs/5Re4OzB6jxWdh72RZcdLpClESUjY8Ta76Hq0DAAAAAAAaHA4I4oSqNgAAAAA=").unwrap()]),
            (Layer::Zstd, vec![zstd, skipped.clone(), STANDARD.decode(ZSTD).unwrap()]),
            (Layer::Zstd, vec![skipped, STANDARD.decode(ZSTD).unwrap()]),
        ] {
            let text = format!("see {} there", STANDARD.encode(parts.concat()));
            let got = children(&text);
            let read = |(l, t, _): &(Layer, String, _)| {
                *l == layer && t.contains("password: Kx7mQ2vRt9 for all")
            };
            assert!(got.iter().any(read), "{layer:?} {text}");
        }
    }

    #[test]
    fn what_cannot_be_read_here_is_said() {
        // Delta before LZMA2; a window of 64 MiB.
        for text in [
            "/Td6WFoAAATm1rRGAgEDAQAhARZ5IMTu4ABEADtdADg8PkAALEZx4fCd/RDSDY3Uxek84cKssAXfvJan/ak5HrNg4zj4ItSmVSFVedMHrQsrdJhGb/mc5AAAAAAaHA4I4oSqNgABV0Wny8rTH7bzfQEAAAAABFla",
            "KLUv/QCAAQAAeHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eA==",
        ] {
            let (_, over) = run(&format!("see {text} there"), 1 << 20);
            assert_eq!(over, Some(crate::OverBudget::DecodedBytes), "{text}");
        }
    }

    #[test]
    fn a_bomb_is_bounded() {
        for (layer, text) in [
            (
                Layer::Bzip2,
                "QlpoOTFBWSZTWZtj4uoAQEABgKAAAAQACCAAMMwFKaYBANiAgHi7kinChITbHxdQ",
            ),
            (
                Layer::Xz,
                "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj//8RAWxdADDv+7/+o7Fe5fg/sqomVfhocEFwFQ+N/R5MG4pCtxn0aRhxrmYjiopNL6MN2X+m44wjEVPgWRjFdYrid/i2lH8MasDedElk4ulcU7IE2PdEDKtfDW1G6eXDdoi3llestk3haR1v+0uIEGxCy4g/XACP0E6vJiiUcR89jyThcJ6nI1/sKMuF0ZWYin4qkfIndfcZwAaYTZj92K/VkA/EJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1IrdM0eWyBC+d1TPfgpZAk7gMsqbN+1O/DEvS5fqg8+S2ZCkBMO/xCT+HF4WfgLzf+VKEYPqfx83vuaMC5WwI+F84OBwGXEJVP49ZE2MQWlsO5vwXBNRwzRkRGqrWAdus6xJxhcWYbpZlJYvul2rFnk5VsFCPnH2q38+1IrdM0eWyBC+d1TPfgpZAk7gMsqbN+1O/DEvEgn5liAAO0ABQAcpiTxAAAAuP1OSuvl3m4AAZMDgICAAYbP71+xxGf7AgAAAAAEWVo=",
            ),
            (
                Layer::Zstd,
                "KLUv/QRYVAAAEGFhAQD7/znAAgIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQIAEGECABBhAgAQYQEAAFpj/B8=",
            ),
        ] {
            let (nodes, over) = run(text, 1 << 20);
            assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 1 << 20);
            assert_eq!(over, Some(crate::OverBudget::DecodedBytes), "{layer:?}");
        }
    }
}
