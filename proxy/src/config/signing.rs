//! Signatures of plugins: Ed25519 (RFC 8032) over the component's bytes.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::load::read_bounded;

/// Longest file of a key or a signature.
pub const FILE_BYTES_MAX: u64 = 1024;

/// Beginning of a public key as text.
const PREFIX: &str = "ed25519:";
/// What is signed begins with this, so that no other signature of the key fits.
const DOMAIN: &[u8] = b"weir plugin v1\0";

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// Reads `ed25519:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.strip_prefix(PREFIX)
            .and_then(from_hex)
            .filter(|bytes| bytes.len() == 32)
            .map(Self)
            .ok_or_else(|| {
                format!("{text:?} is no public key; `weir policy key` prints one ({PREFIX}...)")
            })
    }
}

/// Makes a key pair: the private key's file text and the public key.
///
/// # Errors
/// The system gives no random numbers.
pub fn new_key() -> anyhow::Result<(String, String)> {
    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
        .map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).map_err(|e| anyhow::anyhow!("{e}"))?;
    let public = format!("{PREFIX}{}", hex(pair.public_key().as_ref()));
    Ok((format!("{}\n", hex(pkcs8.as_ref())), public))
}

/// Signs a component with a private key's file text; gives the signature in hexadecimal.
///
/// # Errors
/// The text is no private key.
pub fn sign(private: &str, component: &[u8]) -> anyhow::Result<String> {
    let pkcs8 = from_hex(private.trim()).context("this is no private key of `weir policy key`")?;
    let pair = Ed25519KeyPair::from_pkcs8(&pkcs8)
        .map_err(|_| anyhow::anyhow!("this is no private key of `weir policy key`"))?;
    Ok(hex(pair.sign(&signed(component)).as_ref()))
}

/// The key, of these, that signed a component.
///
/// # Errors
/// None of them did.
pub fn check<'k>(signature: &str, component: &[u8], keys: &'k [String]) -> Result<&'k str, String> {
    let bytes = from_hex(signature.trim()).ok_or("its signature is not hexadecimal")?;
    let message = signed(component);
    for key in keys {
        let public = PublicKey::parse(key)?;
        let public = UnparsedPublicKey::new(&ED25519, &public.0);
        if public.verify(&message, &bytes).is_ok() {
            return Ok(key);
        }
    }
    Err("it is not signed by any of the tenant's plugin_keys".into())
}

/// As [`check`], with the signature in a file.
///
/// # Errors
/// As [`check`], or there is no such file.
pub fn check_file<'k>(
    file: &Path,
    component: &[u8],
    keys: &'k [String],
) -> Result<&'k str, String> {
    let signature = read_bounded(file, FILE_BYTES_MAX).map_err(|problem| {
        format!(
            "{} {problem}; sign the plugin with `weir policy sign`",
            file.display()
        )
    })?;
    check(&signature, component, keys)
}

/// Where the signature of a component lies.
pub fn beside(component: &Path) -> PathBuf {
    let mut name = component.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}

fn signed(component: &[u8]) -> Vec<u8> {
    [DOMAIN, component].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_key_that_signed_and_the_bytes_it_signed_fit() {
        let (private, public) = new_key().unwrap();
        let (_, other) = new_key().unwrap();
        let signature = sign(&private, b"component").unwrap();
        let keys = [other.clone(), public.clone()];
        assert_eq!(check(&signature, b"component", &keys), Ok(public.as_str()));
        assert!(check(&signature, b"Component", &keys).is_err());
        assert!(check(&signature, b"component", &keys[..1]).is_err());
        let first = if signature.starts_with("00") {
            "01"
        } else {
            "00"
        };
        let forged = format!("{first}{}", &signature[2..]);
        for broken in ["", "zz", "00", &forged, &"é".repeat(64)] {
            assert!(check(broken, b"component", &keys).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        for text in [
            "",
            "ed25519:",
            "ed25519:00",
            "rsa:00",
            &format!("ed25519:{}", "g".repeat(64)),
        ] {
            assert!(PublicKey::parse(text).is_err(), "{text}");
        }
    }
}
