//! Names and values of secrets.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Why a text is not the name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of a secret has 1 to 64 characters of A-Z, a-z, 0-9 and '_'")]
pub struct SecretNameError;

/// The name of a secret: a file name under `/run/secrets`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(Arc<str>);

impl SecretName {
    /// Checks a text.
    ///
    /// # Errors
    /// Says what a name looks like.
    pub fn parse(text: &str) -> Result<Self, SecretNameError> {
        let ok = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if text.is_empty() || text.len() > 64 || !text.bytes().all(ok) {
            return Err(SecretNameError);
        }
        Ok(Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SecretName {
    type Error = SecretNameError;
    fn try_from(text: String) -> Result<Self, SecretNameError> {
        Self::parse(&text)
    }
}

impl From<SecretName> for String {
    fn from(name: SecretName) -> String {
        name.0.as_ref().into()
    }
}

/// Why bytes are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret has 1 to {} bytes, this one has {bytes}",
    SecretValue::BYTES_MAX
)]
pub struct ValueError {
    /// How many there were.
    pub bytes: usize,
}

/// A secret's value. Overwritten when dropped; never printed, compared or serialised.
///
/// ```compile_fail
/// let value = vault::SecretValue::new(b"x".to_vec()).unwrap();
/// println!("{value}");
/// ```
pub struct SecretValue(Zeroizing<Vec<u8>>);

impl SecretValue {
    /// The longest value, in bytes.
    pub const BYTES_MAX: usize = 64 * 1024;

    /// Takes the bytes; they are overwritten also when they are no value.
    ///
    /// # Errors
    /// Too many bytes, or none.
    pub fn new(bytes: Vec<u8>) -> Result<Self, ValueError> {
        let bytes = Zeroizing::new(bytes);
        match bytes.len() {
            1..=Self::BYTES_MAX => Ok(Self(bytes)),
            bytes => Err(ValueError { bytes }),
        }
    }

    /// The bytes, for the one place that writes them into a sandbox.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_file_names_and_nothing_else() {
        for good in ["A", "API_KEY", "_x", "github_token2", &"a".repeat(64)] {
            assert!(SecretName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a.b",
            "a-b",
            "a b",
            "a\0",
            "é",
            "a\n",
            &"a".repeat(65),
        ] {
            assert_eq!(SecretName::parse(bad), Err(SecretNameError), "{bad:?}");
        }
    }

    #[test]
    fn values_have_bounds_and_no_face() {
        assert!(SecretValue::new(vec![]).is_err());
        assert!(SecretValue::new(vec![0; SecretValue::BYTES_MAX + 1]).is_err());
        let value = SecretValue::new(b"hunter2".to_vec()).expect("a value");
        assert_eq!(format!("{value:?}"), "SecretValue(***)");
    }
}
