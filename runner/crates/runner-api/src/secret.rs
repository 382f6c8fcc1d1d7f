//! Secret values on their one way: in.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The longest secret value, in bytes.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;

/// A secret's value. Never printed, wiped when dropped; base64 on the wire.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct SecretValue(Vec<u8>);

impl SecretValue {
    /// Takes a value of 1 to [`SECRET_BYTES_MAX`] bytes.
    pub fn new(mut bytes: Vec<u8>) -> Option<Self> {
        if bytes.is_empty() || bytes.len() > SECRET_BYTES_MAX {
            bytes.zeroize();
            return None;
        }
        Some(Self(bytes))
    }

    /// The clear bytes, for the vault that seals them.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(***)")
    }
}

impl Serialize for SecretValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = STANDARD.encode(&self.0);
        let done = serializer.serialize_str(&text);
        text.zeroize();
        done
    }
}

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(&text);
        text.zeroize();
        // The error must not quote what did not parse.
        let bytes = bytes.map_err(|_| D::Error::custom("a secret value is not base64"))?;
        Self::new(bytes).ok_or_else(|| D::Error::custom("a secret value has 1 to 65536 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_survives_the_wire_and_is_never_printed() {
        let value = SecretValue::new(b"hunter2\0\xff".to_vec()).expect("a value");
        let text = serde_json::to_string(&value).expect("serialises");
        let back: SecretValue = serde_json::from_str(&text).expect("parses");
        assert_eq!(back.expose(), b"hunter2\0\xff");
        assert_eq!(format!("{value:?}"), "SecretValue(***)");
    }

    /// What has most forms is what is no text.
    #[test]
    fn the_prints_of_all_secrets_of_a_server_fit_a_frame() {
        let key = secret_prints::PrintKey::new([7; 32]);
        let mut state = 1u64;
        let mut value = || -> Vec<u8> {
            let mut byte = || {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                (state >> 56) as u8
            };
            (0..SECRET_BYTES_MAX).map(|_| byte()).collect()
        };
        let name = |n: usize| format!("{n:_>64}");
        let all: std::collections::BTreeMap<_, _> = (0..domain::SECRETS_PER_SERVER_MAX)
            .map(|n| (name(n), key.prints(&value())))
            .collect();
        let bytes = serde_json::to_vec(&all).expect("JSON").len();
        let room = crate::frame::FRAME_BYTES_MAX - 1024;
        assert!(
            all.values().all(|prints| !prints.is_empty()) && bytes < room,
            "{bytes}"
        );
    }

    #[test]
    fn a_bad_value_is_not_quoted() {
        let error = serde_json::from_str::<SecretValue>("\"hunter2!\"").expect_err("no base64");
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(SecretValue::new(vec![]).is_none());
        assert!(SecretValue::new(vec![1; SECRET_BYTES_MAX + 1]).is_none());
    }
}
