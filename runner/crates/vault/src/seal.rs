//! AES-256-GCM (NIST SP 800-38D), and the boxes that it makes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::VaultError;

const NONCE_BYTES: usize = 12;

/// A 256-bit key. Overwritten when dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; 32]>);

impl Key {
    pub fn random() -> Result<Self, VaultError> {
        let mut bytes = Zeroizing::new([0; 32]);
        SystemRandom::new()
            .fill(&mut *bytes)
            .map_err(|_| VaultError::Random)?;
        Ok(Self(bytes))
    }

    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Seals under a fresh random nonce. No key here seals often: data keys once, the others once per key below them;
    /// the bound of 2^32 messages for random nonces is out of reach.
    pub fn seal(&self, clear: &[u8], context: &Context) -> Result<Sealed, VaultError> {
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| VaultError::Random)?;
        let bytes = self.seal_with(nonce, clear, &context.0)?;
        Ok(Sealed {
            nonce: STANDARD.encode(nonce),
            bytes: STANDARD.encode(bytes),
        })
    }

    /// The clear text; `None` when anything at all differs from what was sealed.
    pub fn open(&self, sealed: &Sealed, context: &Context) -> Option<Zeroizing<Vec<u8>>> {
        let nonce = STANDARD.decode(&sealed.nonce).ok()?.try_into().ok()?;
        let mut bytes = Zeroizing::new(STANDARD.decode(&sealed.bytes).ok()?);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let clear_bytes = self
            .cipher()?
            .open_in_place(nonce, Aad::from(&context.0), &mut bytes)
            .ok()?
            .len();
        bytes.truncate(clear_bytes);
        Some(bytes)
    }

    fn seal_with(
        &self,
        nonce: [u8; NONCE_BYTES],
        clear: &[u8],
        context: &[u8],
    ) -> Result<Vec<u8>, VaultError> {
        let mut bytes = Vec::with_capacity(clear.len() + AES_256_GCM.tag_len());
        bytes.extend_from_slice(clear);
        let cipher = self.cipher().ok_or(VaultError::Random)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = cipher.seal_in_place_append_tag(nonce, Aad::from(context), &mut bytes);
        sealed.map(|()| bytes).map_err(|_| VaultError::Random)
    }

    fn cipher(&self) -> Option<LessSafeKey> {
        UnboundKey::new(&AES_256_GCM, &*self.0)
            .ok()
            .map(LessSafeKey::new)
    }
}

/// A sealed box as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    nonce: String,
    bytes: String,
}

impl Sealed {
    /// Drawn anew each time that anything is sealed.
    pub fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// What a box is bound to: fields with their lengths, so that no two lists of fields are the same bytes.
pub struct Context(Vec<u8>);

impl Context {
    pub fn new(fields: &[&[u8]]) -> Self {
        let mut bytes = b"weir-vault-1".to_vec();
        for field in fields {
            bytes.extend((field.len() as u64).to_be_bytes());
            bytes.extend_from_slice(field);
        }
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |i: usize| u8::from_str_radix(&text[i..i + 2], 16).expect("hex");
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// Test cases 13 to 16 of "The Galois/Counter Mode of Operation (GCM)", McGrew and Viega, as submitted to NIST.
    #[test]
    fn known_answers() {
        let zero = "00".repeat(32);
        let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
        let nonce = "cafebabefacedbaddecaf888";
        let clear = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        let sealed = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662";
        for (key, nonce, clear, context, sealed) in [
            (
                &*zero,
                &zero[..24],
                String::new(),
                "",
                "530f8afbc74536b9a963b4f1c4cb738b".to_owned(),
            ),
            (
                &zero,
                &zero[..24],
                zero[..32].to_owned(),
                "",
                "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919".to_owned(),
            ),
            (
                key,
                nonce,
                format!("{clear}1aafd255"),
                "",
                format!("{sealed}898015adb094dac5d93471bdec1a502270e3cc6c"),
            ),
            (
                key,
                nonce,
                clear.to_owned(),
                "feedfacedeadbeeffeedfacedeadbeefabaddad2",
                format!("{sealed}76fc6ece0f4e1768cddf8853bb2d551b"),
            ),
        ] {
            let key = Key::from_bytes(&hex(key).try_into().expect("32 bytes"));
            let nonce = hex(nonce).try_into().expect("12 bytes");
            assert_eq!(
                key.seal_with(nonce, &hex(&clear), &hex(context))
                    .expect("sealed"),
                hex(&sealed)
            );
            let boxed = Sealed {
                nonce: STANDARD.encode(nonce),
                bytes: STANDARD.encode(hex(&sealed)),
            };
            let opened = key.open(&boxed, &Context(hex(context))).expect("opens");
            assert_eq!(*opened, hex(&clear));
        }
    }

    #[test]
    fn any_change_of_a_box_or_its_context_is_seen() {
        let key = Key::random().expect("a key");
        let context = Context::new(&[b"a", b"bc"]);
        let sealed = key.seal(b"value", &context).expect("sealed");
        assert!(key.open(&sealed, &context).is_some());
        assert!(
            key.open(&sealed, &Context::new(&[b"ab", b"c"])).is_none(),
            "fields keep apart"
        );
        assert!(
            Key::random()
                .expect("a key")
                .open(&sealed, &context)
                .is_none()
        );
        for part in 0..2 {
            let text = if part == 0 {
                &sealed.nonce
            } else {
                &sealed.bytes
            };
            let bytes = STANDARD.decode(text).expect("base64");
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let mut changed = sealed.clone();
                *(if part == 0 {
                    &mut changed.nonce
                } else {
                    &mut changed.bytes
                }) = STANDARD.encode(bytes);
                assert!(key.open(&changed, &context).is_none());
            }
        }
        assert_ne!(
            sealed,
            key.seal(b"value", &context).expect("sealed"),
            "a nonce is never used again"
        );
    }
}
