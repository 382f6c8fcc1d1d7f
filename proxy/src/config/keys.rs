//! API keys: how they are made and what is stored of them.
//!
//! A key is `weir_`, 27 base62 digits holding 160 random bits, and 6 base62 digits of the CRC-32 of what
//! stands before them. The check lets a scanner tell a key from a lookalike, and a typing mistake from a
//! revoked key; it proves nothing.

use domain::{KeyHash, Secret};

/// Every key begins so.
pub const KEY_PREFIX: &str = "weir_";

const RANDOM_BYTES: usize = 20;
/// 62^27 > 2^160.
const RANDOM_DIGITS: usize = 27;
/// 62^6 > 2^32.
const CHECK_DIGITS: usize = 6;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Makes a key from the system's random numbers.
///
/// # Errors
/// The system gives none.
pub fn new_key() -> Result<Secret, getrandom::Error> {
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    Ok(Secret::new(key_of(random)))
}

/// `sha256:` and 64 hexadecimal digits, as the configuration wants it.
pub fn hash_text(hash: &KeyHash) -> String {
    use std::fmt::Write as _;
    hash.0.iter().fold("sha256:".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn key_of(random: [u8; RANDOM_BYTES]) -> String {
    let body = format!("{KEY_PREFIX}{}", base62(&random, RANDOM_DIGITS));
    let check = check_of(&body);
    body + &check
}

fn check_of(body: &str) -> String {
    base62(
        &crc32fast::hash(body.as_bytes()).to_be_bytes(),
        CHECK_DIGITS,
    )
}

/// A big-endian number in a fixed count of base62 digits.
fn base62(number: &[u8], digits: usize) -> String {
    let mut number = number.to_vec();
    let mut out = vec![0; digits];
    for digit in out.iter_mut().rev() {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 62).expect("value < 62 * 256");
            rest = value % 62;
        }
        *digit = ALPHABET[rest as usize];
    }
    out.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a text is a whole key of ours, check digits included.
    fn is_key(text: &str) -> bool {
        let Some(digits) = text.strip_prefix(KEY_PREFIX) else {
            return false;
        };
        digits.len() == RANDOM_DIGITS + CHECK_DIGITS
            && digits.bytes().all(|b| b.is_ascii_alphanumeric())
            && text.ends_with(&check_of(&text[..text.len() - CHECK_DIGITS]))
    }

    #[test]
    fn keys_are_fresh_and_check() {
        let (a, b) = (new_key().unwrap(), new_key().unwrap());
        assert_ne!(a, b);
        for key in [a, b] {
            let key = key.expose();
            assert_eq!(key.len(), 38);
            assert!(is_key(key));
            let hash = gateway::hash_key(key);
            assert_eq!(KeyHash::parse(&hash_text(&hash)), Some(hash));
        }
    }

    #[test]
    fn a_mistyped_key_is_no_key() {
        let key = key_of([0xa5; RANDOM_BYTES]);
        assert!(is_key(&key));
        let mut wrong = key.clone().into_bytes();
        wrong[10] = if wrong[10] == b'x' { b'y' } else { b'x' };
        for text in [
            "",
            "weir_",
            "weir_é",
            &key[..37],
            &format!("{key}0"),
            &key.replace("weir_", "wear_"),
            &String::from_utf8(wrong).unwrap(),
            &key[5..],
        ] {
            assert!(!is_key(text), "{text}");
        }
    }

    #[test]
    fn base62_is_positional() {
        for (number, expected) in [
            (&[0][..], "000"),
            (&[61], "00z"),
            (&[62], "010"),
            (&[1, 0], "048"),
            (&[255, 255], "H31"),
        ] {
            assert_eq!(base62(number, 3), expected, "{number:?}");
        }
        assert_eq!(
            base62(&[0xff; RANDOM_BYTES], RANDOM_DIGITS).len(),
            RANDOM_DIGITS
        );
    }

    #[test]
    fn the_hash_is_sha_256() {
        // FIPS 180-2, appendix B.1
        assert_eq!(
            hash_text(&gateway::hash_key("abc")),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
