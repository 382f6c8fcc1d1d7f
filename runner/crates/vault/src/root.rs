//! The key above all others. It comes from outside and is never written down here.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::VaultError;
use crate::seal::Key;

/// A root key and its fingerprint.
#[derive(Clone)]
pub struct RootKey {
    key: Key,
    id: String,
}

/// How a passphrase becomes a key: argon2id (RFC 9106), with a salt that belongs to one vault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kdf {
    salt: String,
    memory_kib: u32,
    passes: u32,
}

impl Kdf {
    /// A random salt, with the second recommended parameters of RFC 9106 (64 MiB, 3 passes) on one lane.
    ///
    /// # Errors
    /// Without random numbers.
    pub fn new() -> Result<Self, VaultError> {
        let salt = Key::random()?;
        Ok(Self {
            salt: STANDARD.encode(&salt.bytes()[..16]),
            memory_kib: 64 * 1024,
            passes: 3,
        })
    }
}

impl RootKey {
    /// Takes 32 bytes.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        let mac = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let tag = hmac::sign(&mac, b"weir-vault root key fingerprint");
        let id = tag
            .as_ref()
            .iter()
            .take(8)
            .map(|b| format!("{b:02x}"))
            .collect();
        Self {
            key: Key::from_bytes(bytes),
            id,
        }
    }

    /// Takes 64 hexadecimal digits or 44 characters of base64, with or without a line end.
    ///
    /// # Errors
    /// [`VaultError::Root`].
    pub fn from_text(text: &str) -> Result<Self, VaultError> {
        let text = text.trim_ascii();
        let bytes = Zeroizing::new(
            if text.len() == 64 {
                unhex(text)
            } else {
                STANDARD.decode(text).ok()
            }
            .unwrap_or_default(),
        );
        let bytes: &[u8; 32] = bytes
            .as_slice()
            .try_into()
            .map_err(|_| wrong("it must be 32 bytes, as 64 hexadecimal digits or in base64"))?;
        Ok(Self::from_bytes(bytes))
    }

    /// Reads 32 raw bytes, or text as [`RootKey::from_text`] takes it.
    ///
    /// # Errors
    /// [`VaultError::Root`], also when others than the owner may read the file.
    pub fn from_file(path: &Path) -> Result<Self, VaultError> {
        let at =
            |error: std::io::Error| wrong(&format!("{} cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(at)?;
        if file.metadata().map_err(at)?.mode() & 0o077 != 0 {
            return Err(wrong(&format!(
                "{path} can be read by others; run: chmod 600 {path}",
                path = path.display()
            )));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(128));
        file.take(128).read_to_end(&mut bytes).map_err(at)?;
        if let Ok(raw) = bytes.as_slice().try_into() {
            return Ok(Self::from_bytes(raw));
        }
        Self::from_text(std::str::from_utf8(&bytes).unwrap_or_default())
    }

    /// Derives the key from a passphrase of at least 12 characters.
    ///
    /// # Errors
    /// [`VaultError::Root`].
    pub fn from_passphrase(passphrase: &str, kdf: &Kdf) -> Result<Self, VaultError> {
        if passphrase.chars().count() < 12 {
            return Err(wrong("a passphrase needs at least 12 characters"));
        }
        let salt = STANDARD
            .decode(&kdf.salt)
            .map_err(|_| wrong("the salt is not base64"))?;
        let params = argon2::Params::new(kdf.memory_kib, kdf.passes, 1, Some(32))
            .map_err(|_| wrong("impossible argon2 parameters"))?;
        let argon2 =
            argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        let mut bytes = Zeroizing::new([0; 32]);
        let derived = argon2.hash_password_into(passphrase.as_bytes(), &salt, &mut *bytes);
        derived.map_err(|_| wrong("argon2 refuses the salt"))?;
        Ok(Self::from_bytes(&bytes))
    }

    /// A fingerprint that says nothing about the key.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for RootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RootKey({})", self.id)
    }
}

/// The root key in use and, while it is being replaced, the one before.
#[derive(Debug, Clone)]
pub struct Roots {
    /// Seals.
    pub current: RootKey,
    /// Only opens.
    pub previous: Option<RootKey>,
}

impl Roots {
    pub(crate) fn current_id(&self) -> &str {
        &self.current.id
    }

    pub(crate) fn by_id(&self, id: &str) -> Result<&Key, VaultError> {
        let mut all = std::iter::once(&self.current).chain(&self.previous);
        let found = all.find(|root| root.id == id);
        found
            .map(|root| &root.key)
            .ok_or_else(|| VaultError::WrongRoot {
                found: id.to_owned(),
            })
    }
}

fn wrong(what: &str) -> VaultError {
    VaultError::Root {
        what: what.to_owned(),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |b: &u8| char::from(*b).to_digit(16);
    let pair = |pair: &[u8]| u8::try_from(digit(&pair[0])? * 16 + digit(&pair[1])?).ok();
    text.as_bytes().chunks_exact(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_in_three_spellings() {
        let hex = "00".repeat(31) + "ff";
        let key = RootKey::from_text(&hex).expect("a key");
        let base64 = STANDARD.encode(unhex(&hex).expect("hex"));
        assert_eq!(
            RootKey::from_text(&format!("{base64}\n"))
                .expect("a key")
                .id(),
            key.id()
        );
        assert!(!format!("{key:?}").contains("00000"));
        for bad in [
            "",
            "ff",
            &hex[1..],
            &format!("{hex}0"),
            &"zz".repeat(32),
            &STANDARD.encode([0; 31]),
        ] {
            assert!(RootKey::from_text(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_file_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("key");
        std::fs::write(&path, [7; 32]).expect("written");
        let mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode")
        };
        mode(0o640);
        assert!(RootKey::from_file(&path).is_err());
        mode(0o600);
        assert_eq!(
            RootKey::from_file(&path).expect("a key").id(),
            RootKey::from_bytes(&[7; 32]).id()
        );
    }

    /// Section 5.3 of RFC 9106 needs a secret and associated data; this is the vector of the reference implementation's
    /// test program for argon2id, version 0x13.
    #[test]
    fn a_known_passphrase() {
        let mut out = [0; 32];
        let params = argon2::Params::new(65536, 2, 1, Some(32)).expect("parameters");
        let argon2 =
            argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        argon2
            .hash_password_into(b"password", b"somesalt", &mut out)
            .expect("derived");
        let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7"
        );
    }

    #[test]
    fn passphrases_depend_on_the_vault() {
        let weak = |salt: u8| Kdf {
            salt: STANDARD.encode([salt; 16]),
            memory_kib: 64,
            passes: 1,
        };
        let id = |phrase: &str, salt| {
            RootKey::from_passphrase(phrase, &weak(salt))
                .expect("a key")
                .id()
                .to_owned()
        };
        assert_eq!(
            id("correct horse battery", 1),
            id("correct horse battery", 1)
        );
        assert_ne!(
            id("correct horse battery", 1),
            id("correct horse battery", 2)
        );
        assert_ne!(
            id("correct horse battery", 1),
            id("correct horse batterz", 1)
        );
        assert!(RootKey::from_passphrase("short", &weak(1)).is_err());
    }
}
