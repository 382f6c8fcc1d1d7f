//! Lines: how a record, a segment header, a checkpoint and an index are framed on disk.
//!
//! ```text
//! record, header:      crc32 length link                             json
//!                      9a3f00c1 000412 0123456789abcdef0123456789abcdef {"sequence":7,...}
//! checkpoint, index:   crc32 json
//! ```
//!
//! The checksum covers everything after it up to the newline, the spelling of every field is the only one allowed,
//! and JSON escapes control characters: so one record is one line, and any changed byte shows. `cut -c50-` gives
//! plain JSON lines. Pure: bytes in, bytes out.

use crate::hex;
use crate::merkle::Link;

/// Bytes before the JSON of a record.
pub(crate) const PREFIX_BYTES: usize = CRC_BYTES + LENGTH_DIGITS + 1 + LINK_DIGITS + 1;
/// The longest JSON text a record or header may have; capped records stay below it.
pub(crate) const JSON_BYTES_MAX: usize = 256 << 10;
/// The longest line a reader keeps.
pub(crate) const LINE_BYTES_MAX: usize = PREFIX_BYTES + JSON_BYTES_MAX;

const CRC_BYTES: usize = 9;
const LENGTH_DIGITS: usize = 6;
const LINK_DIGITS: usize = 32;

/// A sound record or header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) link: Link,
    pub(crate) json: &'a [u8],
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the line is cut short")]
    Short,
    #[error("the line is not in the form of a record")]
    Form,
    #[error("the length does not match")]
    Length,
    #[error("the checksum does not match")]
    Checksum,
}

/// Makes room for the prefix of a line; append the JSON, then call [`finish`] with what this returned.
pub(crate) fn begin(buffer: &mut Vec<u8>) -> usize {
    let start = buffer.len();
    buffer.resize(start + PREFIX_BYTES, b' ');
    start
}

/// The JSON of the line begun at `start`.
pub(crate) fn json_at(buffer: &[u8], start: usize) -> &[u8] {
    &buffer[start + PREFIX_BYTES..]
}

/// Fills in the prefix and ends the line.
pub(crate) fn finish(buffer: &mut Vec<u8>, start: usize, link: &Link) {
    let mut rest = json_at(buffer, start).len();
    debug_assert!(rest <= JSON_BYTES_MAX);
    let line = &mut buffer[start..];
    for digit in line[CRC_BYTES..CRC_BYTES + LENGTH_DIGITS].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    hex::encode_to(
        link,
        &mut line[CRC_BYTES + LENGTH_DIGITS + 1..PREFIX_BYTES - 1],
    );
    let crc = crc32fast::hash(&line[CRC_BYTES..]).to_be_bytes();
    hex::encode_to(&crc, &mut line[..CRC_BYTES - 1]);
    buffer.push(b'\n');
}

/// Reads a record or header line, without its newline.
pub(crate) fn decode(line: &[u8]) -> Result<Frame<'_>, FrameError> {
    let body = checked(line)?;
    if body.len() < PREFIX_BYTES - CRC_BYTES {
        return Err(FrameError::Short);
    }
    let (length, rest) = body.split_at(LENGTH_DIGITS);
    let (link, json) = rest[1..].split_at(LINK_DIGITS);
    if rest[0] != b' ' || json[0] != b' ' || !length.iter().all(u8::is_ascii_digit) {
        return Err(FrameError::Form);
    }
    let (link, json) = (hex::decode_array(link).ok_or(FrameError::Form)?, &json[1..]);
    let length = length
        .iter()
        .fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    if length == json.len() {
        Ok(Frame { link, json })
    } else {
        Err(FrameError::Length)
    }
}

/// A checkpoint or index line with its newline.
pub(crate) fn sealed_line(json: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(CRC_BYTES + json.len() + 1);
    line.extend_from_slice(hex::encode(&crc32fast::hash(json).to_be_bytes()).as_bytes());
    line.push(b' ');
    line.extend_from_slice(json);
    line.push(b'\n');
    line
}

/// The JSON of a line made by [`sealed_line`], given without its newline.
pub(crate) fn checked(line: &[u8]) -> Result<&[u8], FrameError> {
    let (crc, body) = line.split_at_checked(CRC_BYTES).ok_or(FrameError::Short)?;
    let (crc, space) = crc.split_at(CRC_BYTES - 1);
    let crc = hex::decode_array(crc).ok_or(FrameError::Form)?;
    if space != b" " {
        return Err(FrameError::Form);
    }
    if crc32fast::hash(body) == u32::from_be_bytes(crc) {
        Ok(body)
    } else {
        Err(FrameError::Checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(json: &[u8]) -> Vec<u8> {
        let mut buffer = b"before\n".to_vec();
        let start = begin(&mut buffer);
        buffer.extend_from_slice(json);
        assert_eq!(json_at(&buffer, start), json);
        finish(&mut buffer, start, &[0xa5; 16]);
        buffer.split_off(start)
    }

    #[test]
    fn what_is_framed_comes_back() {
        for json in [
            &b"{}"[..],
            b"",
            br#"{"sequence":1}"#,
            &[b'x'; JSON_BYTES_MAX],
        ] {
            let line = line(json);
            assert_eq!(line.last(), Some(&b'\n'));
            assert_eq!(
                decode(&line[..line.len() - 1]),
                Ok(Frame {
                    link: [0xa5; 16],
                    json
                })
            );
        }
    }

    #[test]
    fn every_changed_bit_and_every_cut_shows() {
        for line in [line(br#"{"sequence":1}"#), sealed_line(br#"{"size":1}"#)] {
            let line = &line[..line.len() - 1];
            for place in 0..line.len() {
                for bit in 0..8 {
                    let mut changed = line.to_vec();
                    changed[place] ^= 1 << bit;
                    assert!(
                        checked(&changed).is_err() && decode(&changed).is_err(),
                        "{place} {bit}"
                    );
                }
                assert!(decode(&line[..place]).is_err(), "{place}");
            }
        }
    }
}
