//! What begins like something packed, behind base64 or hexadecimal: at the front of a run, or further on in it.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _};

use memchr::memmem;

use super::archive::Packed;
use super::base::{texty, utf16_order};
use super::digits::{Alphabet, Digits, first_bytes};
use super::streams;

/// Decoded bytes that have to be text before the rest is decoded.
pub(super) const HEAD: usize = 10;
/// Nothing shorter holds a packed text and something before it.
const PACKED_DIGITS_MIN: usize = 32;
/// A deflated text with an alphabet of its own is not shorter, nor worth a try if it is.
const DEFLATED_BYTES_MIN: usize = 60;

/// Do the first two bytes begin a deflated text?
pub(super) fn may_be_deflated(source: &[u8], alphabet: Alphabet) -> bool {
    first_bytes(source, alphabet).is_some_and(|[first, second]| match first & 7 {
        3 => {
            let bits = u128::from(first) | u128::from(second) << 8;
            is_letter(fixed(bits, 0)) || fixed(bits, 0) == 0 || begins_marked(bits)
        }
        4 | 5 => source.len() >= DEFLATED_BYTES_MIN && first >> 3 < 30 && second & 0x1F < 30,
        _ => false,
    })
}

/// RFC 1951, section 3.2.6: the `nth` symbol after the head of a block, if all before are bytes below 144, in eight bits.
fn fixed(bits: u128, nth: u32) -> u8 {
    let code = (bits >> (3 + 8 * nth)) as u8;
    code.reverse_bits().wrapping_sub(0x30)
}

fn is_letter(symbol: u8) -> bool {
    symbol.is_ascii_graphic() || matches!(symbol, b' ' | b'\n' | b'\r' | b'\t')
}

/// Is the first symbol the greater byte of the mark of UTF-16, in nine bits?
fn begins_marked(bits: u128) -> bool {
    // The last of the nine is the only one in which its two bytes differ.
    bits >> 3 & 0xFF == 0xFF
}

/// Are the first symbols letters, or letters with a zero between each two, as in UTF-16, maybe behind its mark?
fn begins_with_text(bits: u128) -> bool {
    let letters = |from: u32, step: usize| {
        let mut symbols = (from..from + 3).step_by(step);
        symbols.all(|nth| is_letter(fixed(bits, nth)))
    };
    let zero = |nth: u32| fixed(bits, nth) == 0;
    let marked = begins_marked(bits) && bits >> 12 & 0xFF == 0xFF && {
        // Both bytes of the mark are ones but for a single bit.
        (bits >> 11 & 1) != (bits >> 20 & 1)
    };
    letters(0, 1)
        || letters(0, 2) && zero(1)
        || zero(0) && zero(2) && is_letter(fixed(bits, 1))
        || marked
}

/// RFC 1951 without a head: a last block begins with letters in the fixed alphabet, or (section 3.2.7) any with an alphabet of
/// its own, whose code leaves nothing over.
fn deflated(head: &[u8; HEAD], digits: usize) -> bool {
    let bits = head
        .iter()
        .rev()
        .fold(0, |bits, b| bits << 8 | u128::from(*b));
    let field = |at: u32, len: u32| (bits >> at) as u32 & ((1 << len) - 1);
    match field(0, 3) {
        3 => begins_with_text(bits),
        4 | 5 => {
            let lengths = (0..field(13, 4) + 4).map(|nth| field(17 + 3 * nth, 3));
            let taken: u32 = lengths.filter(|len| *len > 0).map(|len| 128 >> len).sum();
            digits >= DEFLATED_BYTES_MIN && field(3, 5) < 30 && field(8, 5) < 30 && taken == 128
        }
        _ => false,
    }
}

/// Gzip (RFC 1952), zlib (RFC 1950), an archive, another stream or deflate alone by their first bytes.
pub(super) fn packed(head: &[u8], digits: usize) -> Option<Packed> {
    match head {
        [0x1F, 0x8B, 8, ..] => Some(Packed::Gzip),
        [b'P', b'K', 3, 4, ..] => Some(Packed::Zip),
        [first, second, ..] if is_zlib(*first, *second) => Some(Packed::Zlib),
        _ => streams::packed(head).or_else(|| {
            let whole: &[u8; HEAD] = head.try_into().ok()?;
            let deflated = deflated(whole, digits) && utf16_order(head).is_none() && !texty(head);
            deflated.then_some(Packed::Deflate)
        }),
    }
}

/// RFC 1950, section 2.2: deflated, with a window of any size, and both bytes together a multiple of 31.
pub(super) fn is_zlib(first: u8, second: u8) -> bool {
    first & 0xF == 8 && first >> 4 <= 7 && (u16::from(first) << 8 | u16::from(second)) % 31 == 0
}

/// Gzip streams in one run that something else stands before, for each way to write their first bytes.
const STREAMS_MAX: usize = 16;
/// Streams of xz for each way to write them. One is read on into those behind it, and each costs.
const XZ_MAX: usize = 4;
/// The head and the end of a stream (RFC 1952) alone are so many digits: no more of them stand in a run.
const STREAM_DIGITS_MIN: usize = 24;
/// Digits that show whether anything comes out of one. So many allow for one false head: in noise not one place in 2^24
/// looks like one.
const STREAM_HEAD_DIGITS: usize = 512;

/// Goes through the places where bytes begin like an archive or a stream that something else stands before: a tar archive, a file
/// of another make. `read` says where the streams began that it read from there on; those are not gone to again. False if there are
/// more such beginnings than are looked at.
pub(super) fn inside(bytes: &[u8], mut read: impl FnMut(usize, Packed) -> Vec<usize>) -> bool {
    if let Some(at) = memmem::find(&bytes[1..], b"PK\x03\x04") {
        read(at + 1, Packed::Zip);
    }
    let behind = |signs: &'static [u8]| memmem::find_iter(bytes, signs).filter(|at| *at > 0);
    let head = |at: usize| &bytes[at..bytes.len().min(at + STREAM_HEAD_DIGITS)];
    let heads = behind(b"\x1F\x8B\x08").filter(|at| is_head(head(*at).iter().copied()));
    let mut tries = STREAMS_MAX + bytes.len() / STREAM_HEAD_DIGITS;
    let (mut known, mut streams, mut all) = (BTreeSet::new(), 0, true);
    for at in heads {
        if known.contains(&at) {
            continue;
        }
        if tries == 0 || streams == STREAMS_MAX {
            all = false;
            break;
        }
        tries -= 1;
        if is_stream(head(at), at + STREAM_HEAD_DIGITS < bytes.len()) {
            streams += 1;
            known.extend(read(at, Packed::Gzip).into_iter().map(|start| at + start));
        }
    }
    for at in behind(b"\xFD7zXZ\0").take(XZ_MAX) {
        read(at, Packed::Xz);
    }
    let blocks = behind(b"\x31\x41\x59\x26\x53\x59").filter_map(|at| at.checked_sub(4));
    let bzip2 = blocks.filter(|at| *at > 0 && super::streams::packed(&bytes[*at..]).is_some());
    for at in bzip2.take(XZ_MAX) {
        read(at, Packed::Bzip2);
    }
    all
}

/// Something packed in a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Inside {
    /// The digit where the group begins in which it does, and the bytes of that group before it.
    pub first: usize,
    pub skipped: usize,
}

impl Inside {
    /// Which of the ways to take digits together it is, and which byte it begins with that way.
    fn byte(self, alphabet: Alphabet) -> (usize, usize) {
        let (bytes, digits) = alphabet.group();
        (
            self.first % digits,
            self.first / digits * bytes + self.skipped,
        )
    }
}

/// Goes through archives and streams behind something else. Their first bytes are looked for as they are written, each way. `read`
/// says where the streams began that it read from there on; those are not gone to again, nor are those that were read from the
/// `front` of the run. False if there are more than are looked at.
pub(super) fn packed_inside(
    digits: &[u8],
    alphabet: Alphabet,
    front: &[usize],
    mut read: impl FnMut(Inside, Packed) -> Vec<usize>,
) -> bool {
    // Most runs are hashes and paths.
    if digits.len() < PACKED_DIGITS_MIN {
        return true;
    }
    // What is written, and at which digit of its group that stands.
    let (archives, streams): (&[Written], &[Written]) = match alphabet {
        Alphabet::Base64 => (
            &[(b"UEsDB", 0), (b"BLAw", 2), (b"QSwME", 3)],
            &[(b"H4sI", 0), (b"+LC", 2), (b"-LC", 2), (b"fiwg", 3)],
        ),
        Alphabet::Hex => (
            &[(b"504b0304", 0), (b"504B0304", 0)],
            &[
                (b"1f8b08", 0),
                (b"1F8B08", 0),
                (b"1F8b08", 0),
                (b"1f8B08", 0),
            ],
        ),
        _ => (&[], &[]),
    };
    let group = |at: usize, place: usize| {
        let (first, skipped) = (at.checked_sub(place)?, place.saturating_sub(1));
        (at > 0).then_some(Inside { first, skipped })
    };
    // The first is enough wherever groups begin as they do there: all heads behind it are looked for.
    let mut firsts: [Option<Inside>; 4] = [None; 4];
    for (signs, place) in archives {
        let groups = memmem::find_iter(digits, signs).filter_map(|at| group(at, *place));
        for at in groups {
            let known = &mut firsts[at.first % alphabet.group().1];
            if known.is_none_or(|before| at < before) {
                *known = Some(at);
            }
        }
    }
    for at in firsts.into_iter().flatten() {
        read(at, Packed::Zip);
    }
    // Its sign is so long that none stands there by chance.
    let xz: &[Written] = match alphabet {
        Alphabet::Base64 => &[
            (b"/Td6WFoA", 0),
            (b"_Td6WFoA", 0),
            (b"03elhaA", 2),
            (b"9N3pYWg", 3),
        ],
        Alphabet::Hex => &[(b"fd377a585a00", 0), (b"FD377A585A00", 0)],
        _ => &[],
    };
    for (signs, place) in xz {
        let groups = memmem::find_iter(digits, signs).filter_map(|at| group(at, *place));
        for at in groups.take(XZ_MAX) {
            read(at, Packed::Xz);
        }
    }
    let bytes = |at: Inside| {
        let head = &digits[at.first..digits.len().min(at.first + STREAM_HEAD_DIGITS)];
        Digits::new(head, alphabet).skip(at.skipped)
    };
    let mut heads = Vec::new();
    for (form, (signs, place)) in streams.iter().enumerate() {
        let groups = memmem::find_iter(digits, signs).filter_map(|at| group(at, *place));
        let groups = groups.filter(|at| is_head(bytes(*at)));
        heads.extend(groups.map(|at| (at, form)));
    }
    // Of streams behind each other the first leads to the others.
    heads.sort_unstable();
    let mut known: BTreeSet<_> = front.iter().map(|start| (0, *start)).collect();
    let fit = digits.len() / STREAM_DIGITS_MIN;
    let mut tries = fit.min(STREAMS_MAX) + digits.len() / STREAM_HEAD_DIGITS;
    // The rest of the digits is gone through for each.
    let (mut left, mut all) = ([STREAMS_MAX; 4], true);
    for (at, form) in heads {
        let (way, start) = at.byte(alphabet);
        if known.contains(&(way, start)) {
            continue;
        }
        if tries == 0 || left[form] == 0 {
            all = false;
            continue;
        }
        tries -= 1;
        let goes_on = at.first + STREAM_HEAD_DIGITS < digits.len();
        if is_stream(&bytes(at).collect::<Vec<u8>>(), goes_on) {
            left[form] -= 1;
            let read = read(at, Packed::Gzip);
            known.extend(read.into_iter().map(|next| (way, start + next)));
        }
    }
    all
}

/// RFC 1952, section 2.3.1: deflated, and without the flags that every reader refuses. All else in a head is as its writer
/// likes.
fn is_head(mut bytes: impl Iterator<Item = u8>) -> bool {
    let mut next = || bytes.next().unwrap_or(u8::MAX);
    [next(), next(), next()] == [0x1F, 0x8B, 8] && next() < 0x20
}

/// Does anything come out of a stream, or may that still be to come? Names and empty blocks before it are of any length.
fn is_stream(head: &[u8], goes_on: bool) -> bool {
    match flate2::bufread::GzDecoder::new(head).read(&mut [0]) {
        Ok(len) => len > 0,
        Err(err) => goes_on && err.kind() == ErrorKind::UnexpectedEof,
    }
}

/// First bytes as they are written, and at which digit of their group those stand.
type Written = (&'static [u8], usize);

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits of a picture, with a seed.
    fn noise(alphabet: &[u8], len: usize, seed: u64) -> Vec<u8> {
        let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let digit = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            alphabet[(x >> 32) as usize % alphabet.len()]
        };
        std::iter::repeat_with(digit).take(len).collect()
    }

    #[test]
    fn noise_is_within_budget() {
        let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for seed in 0..20 {
            let hex: &[u8] = b"0123456789abcdef";
            for (digits, alphabet) in [(&base64[..], Alphabet::Base64), (hex, Alphabet::Hex)] {
                let (digits, mut found) = (noise(digits, 1 << 20, seed), 0);
                let count = |_, _| {
                    found += 1;
                    Vec::new()
                };
                assert!(packed_inside(&digits, alphabet, &[], count), "{seed}");
                assert!(found < 2);
            }
        }
    }
}
