//! Lower-case hexadecimal, one spelling per value: a changed letter case must not pass as the same bytes.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = vec![0; bytes.len() * 2];
    encode_to(bytes, &mut text);
    String::from_utf8(text).expect("hexadecimal digits are ASCII")
}

/// Writes into `text`, which must be twice as long as `bytes`.
pub(crate) fn encode_to(bytes: &[u8], text: &mut [u8]) {
    debug_assert_eq!(text.len(), bytes.len() * 2);
    for (byte, pair) in bytes.iter().zip(text.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// Reads exactly `N` bytes.
pub(crate) fn decode_array<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    (text.len() == 2 * N).then_some(())?;
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
