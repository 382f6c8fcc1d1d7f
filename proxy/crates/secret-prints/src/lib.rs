//! Prints of secrets: enough to find a value wherever it stands in a text, not enough to have it.
//!
//! Who holds a secret makes prints of it under a key; who reads traffic gets key and prints and compiles them into a
//! [`PrintSet`]. A print is the value's length, a keyed hash of all of it, and a tag of 16 bits of its first 8 bytes, so
//! that the hash is only computed at one place in thousands.
//!
//! Prints give away the length, 16 bits of the beginning (and of the end, since a value is also looked for backwards), and
//! a way to try guesses: a value that can be guessed can be confirmed. That is why there is a floor ([`is_looked_for`]), and
//! why prints live in memory only, under a key that is drawn anew by each process.
//!
//! Pure: bytes come in, places go out.

mod forms;
mod set;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use forms::{BYTES_MIN, DISTINCT_BYTES_MIN, codes_of_short, is_looked_for};
pub use set::{At, PrintSet};

/// Bytes of a value that its tag is made of.
pub(crate) const WINDOW: usize = 8;
const DIGEST_BYTES: usize = 16;

/// The key that prints are made and looked up with. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct PrintKey {
    bytes: [u8; 32],
    mix: [u64; 3],
}

impl PrintKey {
    /// A key of random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        let mut derived = [0; 24];
        let mut reader = blake3::Hasher::new_keyed(&bytes).finalize_xof();
        reader.fill(&mut derived);
        let word = |n: usize| {
            let eight = derived[n * 8..].first_chunk().expect("three words");
            u64::from_le_bytes(*eight)
        };
        Self {
            bytes,
            // A multiplier has to be odd.
            mix: [word(0), word(1) | 1, word(2) | 1],
        }
    }

    /// The prints of a value, as what it can look like in a text. None if it is below the floor.
    pub fn prints(&self, value: &[u8]) -> Vec<Print> {
        let forms = forms::of(value);
        let plain = forms.iter().map(|form| (form, false));
        // A code of what is below the floor would give that away as well.
        let codes = match forms.is_empty() {
            true => Vec::new(),
            false => codes_of_short(value.trim_ascii()),
        };
        let coded = codes.iter().map(|code| (code, true));
        let mut prints: Vec<Print> = plain
            .chain(coded)
            .filter_map(|(form, glued)| self.print(form, glued))
            .collect();
        prints.sort_unstable();
        prints.dedup();
        prints
    }

    fn print(&self, form: &[u8], glued: bool) -> Option<Print> {
        Some(Print {
            glued,
            len: u32::try_from(form.len()).ok()?,
            tag: self.tag(form.first_chunk()?),
            digest: self.digest(form),
        })
    }

    /// Two multiplications: this is done for every byte of a text.
    pub(crate) fn tag(&self, window: &[u8; WINDOW]) -> u16 {
        let [xor, first, second] = self.mix;
        let x = (u64::from_le_bytes(*window) ^ xor).wrapping_mul(first);
        let x = (x ^ (x >> 32)).wrapping_mul(second);
        (x >> 48) as u16
    }

    pub(crate) fn digest(&self, bytes: &[u8]) -> [u8; DIGEST_BYTES] {
        let hash = blake3::keyed_hash(&self.bytes, bytes);
        *hash.as_bytes().first_chunk().expect("32 bytes hold 16")
    }
}

impl fmt::Debug for PrintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrintKey(***)")
    }
}

/// What is known of one form of a secret, or of a part of a long one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Print {
    pub(crate) tag: u16,
    pub(crate) len: u32,
    /// Letters may touch it, however short it is: they belong to the same code.
    pub(crate) glued: bool,
    pub(crate) digest: [u8; DIGEST_BYTES],
}

impl fmt::Debug for Print {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Print(***)")
    }
}

/// The bit of a print's length on the wire that says whether letters may touch it. No form is nearly as long.
const GLUED: u32 = 1 << 31;

/// Hexadecimal digits on the wire: short, since a server may have thousands.
impl Serialize for Print {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = [0; 6 + DIGEST_BYTES];
        bytes[..2].copy_from_slice(&self.tag.to_be_bytes());
        let glued = if self.glued { GLUED } else { 0 };
        bytes[2..6].copy_from_slice(&(self.len | glued).to_be_bytes());
        bytes[6..].copy_from_slice(&self.digest);
        serializer.serialize_str(&hex(&bytes))
    }
}

impl<'de> Deserialize<'de> for Print {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes: [u8; 6 + DIGEST_BYTES] = unhex(deserializer)?;
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&bytes[6..]);
        let len = u32::from_be_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        Ok(Self {
            tag: u16::from_be_bytes([bytes[0], bytes[1]]),
            len: len & !GLUED,
            glued: len & GLUED != 0,
            digest,
        })
    }
}

impl Serialize for PrintKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.bytes))
    }
}

impl<'de> Deserialize<'de> for PrintKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unhex(deserializer).map(Self::new)
    }
}

/// Key and prints of all secrets of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretPrints {
    /// The key that they were made with.
    pub key: PrintKey,
    /// All of them, in any order.
    pub prints: Vec<Print>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex<'de, D: Deserializer<'de>, const N: usize>(deserializer: D) -> Result<[u8; N], D::Error> {
    let wrong = || serde::de::Error::custom("not the right number of hexadecimal digits");
    let text = String::deserialize(deserializer)?;
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return Err(wrong());
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        *byte = match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => high << 4 | low,
            _ => return Err(wrong()),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_prints_survive_the_wire_and_are_not_shown() {
        let key = PrintKey::new([9; 32]);
        let all = SecretPrints {
            prints: key.prints(b"s3cr3t-v4lue"),
            key,
        };
        assert_eq!(all.prints.len(), 3, "as it is, backwards, rotated");
        let text = serde_json::to_string(&all).expect("serialises");
        let back: SecretPrints = serde_json::from_str(&text).expect("parses");
        assert_eq!(back, all);
        assert_eq!(
            format!("{:?} {:?}", all.key, all.prints[0]),
            "PrintKey(***) Print(***)"
        );
        let short = all.key.prints(b"s3cr3tPw9");
        let text = serde_json::to_string(&short).expect("serialises");
        let back: Vec<Print> = serde_json::from_str(&text).expect("parses");
        assert_eq!(back, short);
        assert!(short.iter().any(|p| p.glued) && short.iter().any(|p| !p.glued));
        for bad in ["\"\"", "\"zz\"", "7", &format!("\"{}\"", "0".repeat(43))] {
            assert!(serde_json::from_str::<Print>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn prints_of_one_key_say_nothing_under_another() {
        let [one, other] = [1, 2].map(|n| PrintKey::new([n; 32]).prints(b"s3cr3t-v4lue"));
        assert!(one.iter().all(|print| !other.contains(print)));
    }
}
