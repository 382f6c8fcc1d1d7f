//! What a value can look like in a text that was decoded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// A shorter value is not looked for: it would be found in texts that have nothing to do with it, and its prints would be
/// as good as the value itself.
pub const BYTES_MIN: usize = 8;
/// Nor is one with fewer different bytes.
pub const DISTINCT_BYTES_MIN: usize = 5;

/// A longer value is looked for in parts of this size, each by itself: no window of a stream has to hold all of it.
const PART_BYTES: usize = 4096;
/// A shorter last part stays with the one before it.
const LAST_PART_BYTES_MIN: usize = 64;

/// Is this value looked for? Blanks around it do not count: servers cut them off.
pub fn is_looked_for(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let mut seen = [false; 256];
    value.iter().for_each(|b| seen[usize::from(*b)] = true);
    let distinct = seen.iter().filter(|s| **s).count();
    value.len() >= BYTES_MIN && distinct >= DISTINCT_BYTES_MIN
}

/// All forms of a value that are looked for.
pub(crate) fn of(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for part in parts(value.trim_ascii()).filter(|part| is_looked_for(part)) {
        match std::str::from_utf8(part) {
            Ok(text) => written(text, &mut forms),
            // The cut between two parts may go through a character.
            Err(_) if std::str::from_utf8(value).is_ok() => forms.push(part.to_vec()),
            Err(_) => coded(part, &mut forms),
        }
    }
    forms
}

/// Scanners undo codes of at least so many digits.
const DECODED_DIGITS_MIN: usize = 16;
/// Fewer digits would be found in texts that have nothing to do with the value.
const CODE_DIGITS_MIN: usize = 10;

/// The codes of a value that are too short to be undone: in base64 behind any number of other bytes, and in hexadecimal.
pub fn codes_of_short(value: &[u8]) -> Vec<Vec<u8>> {
    if value.len() * 8 > (DECODED_DIGITS_MIN - 1) * 6 {
        return Vec::new();
    }
    let mut codes = Vec::new();
    coded(value, &mut codes);
    let hex = value.len() * 2;
    codes.retain(|code| {
        code.len() >= CODE_DIGITS_MIN && (code.len() != hex || hex < DECODED_DIGITS_MIN)
    });
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let cut = match rest.len() {
            0 => return None,
            len if len < PART_BYTES + LAST_PART_BYTES_MIN => len,
            _ => PART_BYTES,
        };
        let (part, after) = rest.split_at(cut);
        rest = after;
        Some(part)
    })
}

/// A text stands in traffic as it is once encodings are undone. Two ways of writing are not undone everywhere: backwards,
/// and rotated by 13.
fn written(text: &str, forms: &mut Vec<Vec<u8>>) {
    forms.push(text.as_bytes().to_vec());
    forms.push(text.chars().rev().collect::<String>().into_bytes());
    let rotated: Vec<u8> = text.bytes().map(rot13).collect();
    if rotated != text.as_bytes() {
        forms.push(rotated);
    }
}

fn rot13(b: u8) -> u8 {
    let base = if b.is_ascii_lowercase() { b'a' } else { b'A' };
    match b.is_ascii_alphabetic() {
        true => (b - base + 13) % 26 + base,
        false => b,
    }
}

/// Bytes that are no text stand in JSON in hexadecimal or base64 only, and what is undone is thrown away when it is no
/// text. Base64 differs by how many bytes came before.
fn coded(part: &[u8], forms: &mut Vec<Vec<u8>>) {
    for shift in 0..3 {
        let padded = [&[0; 2][..shift.min(2)], part].concat();
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let text = engine.encode(&padded);
            // The characters at both ends hold bits of what stands beside the value.
            let end = text.len() - usize::from(padded.len() % 3 != 0);
            forms.push(text.as_bytes()[(shift * 8).div_ceil(6)..end].to_vec());
        }
    }
    forms.push(
        part.iter()
            .flat_map(|b| format!("{b:02x}").into_bytes())
            .collect(),
    );
    forms.push(
        part.iter()
            .flat_map(|b| format!("{b:02X}").into_bytes())
            .collect(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_has_two_edges() {
        let cases: [(&[u8], bool); 9] = [
            (b"", false),
            (b"1234567", false),
            (b"12345678", true),
            (b"  1234567\n", false),
            (b"  12345678\n", true),
            (b"aaaaaaaaaaaaaaaa", false),
            (b"abababcdabababcd", false),
            (b"abababcdabababce", true),
            (b"\0\0\0\0\0\0\0\0", false),
        ];
        for (value, expected) in cases {
            assert_eq!(is_looked_for(value), expected, "{}", value.escape_ascii());
            assert_eq!(!of(value).is_empty(), expected, "{}", value.escape_ascii());
        }
    }

    #[test]
    fn only_short_values_are_looked_for_in_their_codes() {
        let cases: [(&str, &[&str]); 5] = [
            ("abcde", &["6162636465"]),
            ("abcdefg", &["61626364656667"]),
            ("abcdefgh", &["FiY2RlZmdo", "YWJjZGVmZ2", "hYmNkZWZna"]),
            (
                "abcdefghijk",
                &["FiY2RlZmdoaWpr", "YWJjZGVmZ2hpam", "hYmNkZWZnaGlqa"],
            ),
            ("abcdefghijkl", &[]),
        ];
        for (value, expected) in cases {
            let codes: Vec<String> = codes_of_short(value.as_bytes())
                .into_iter()
                .map(|code| String::from_utf8(code).expect("digits"))
                .collect();
            assert_eq!(codes, expected, "{value}");
        }
    }

    #[test]
    fn a_long_value_is_in_parts_and_nothing_of_it_is_left_out() {
        for len in [4095, 4096, 4159, 4160, 8192, 8300, 65_536] {
            let value: Vec<u8> = (0..len).map(|n| b'!' + (n * 7 % 90) as u8).collect();
            let all: Vec<&[u8]> = parts(&value).collect();
            assert_eq!(all.concat(), value, "{len}");
            assert!(
                all.iter()
                    .all(|p| p.len() < PART_BYTES + LAST_PART_BYTES_MIN),
                "{len}"
            );
            assert_eq!(of(&value).len(), 3 * all.len(), "{len}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_looked_for_in_their_codes() {
        let value: Vec<u8> = (0..23).map(|n| 0x80 | (n * 11)).collect();
        let forms = of(&value);
        for before in 0..4 {
            for after in 0..4 {
                let around = [&vec![7; before][..], &value, &vec![9; after]].concat();
                for text in [
                    STANDARD_NO_PAD.encode(&around),
                    URL_SAFE_NO_PAD.encode(&around),
                ] {
                    assert!(
                        forms
                            .iter()
                            .any(|f| text.as_bytes().windows(f.len()).any(|w| w == f)),
                        "{before} {after}"
                    );
                }
            }
        }
    }
}
