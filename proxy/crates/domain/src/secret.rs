//! Values that must never be printed.

use std::fmt;

/// Secrets that one hosted server may have: what is stored of them is mounted, and looked for in its traffic.
pub const SECRETS_PER_SERVER_MAX: usize = 100;

/// A secret text. `Debug` and `Display` hide it; only [`Secret::expose`] gives it out.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a clear text.
    pub fn new(clear: impl Into<Box<str>>) -> Self {
        Self(clear.into())
    }

    /// The clear text, for the one place that must send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// SHA-256 of an API key: what is stored in place of the key.
///
/// Keys carry at least 128 random bits, so a fast hash is enough: there is no
/// dictionary to try (see OWASP's note on high-entropy tokens).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

impl KeyHash {
    /// Parses `sha256:` and 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?.as_bytes();
        if hex.len() != 64 {
            return None;
        }
        let mut out = [0u8; 32];
        for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = u8::try_from(high * 16 + low).ok()?;
        }
        Some(Self(out))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let s = Secret::new("hunter2");
        assert_eq!(format!("{s} {s:?}"), "*** Secret(***)");
        assert_eq!(s.expose(), "hunter2");
    }

    #[test]
    fn key_hash_takes_only_its_own_form() {
        let good = format!("sha256:{}", "0f".repeat(32));
        assert_eq!(KeyHash::parse(&good), Some(KeyHash([0x0f; 32])));
        for bad in [
            "",
            "sha256:",
            "sha256:0f",
            "sha1:00",
            &good[7..],
            &format!("{good}0"),
        ] {
            assert_eq!(KeyHash::parse(bad), None, "{bad}");
        }
    }
}
