//! Identifiers, checked once where they enter.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Empty or longer than the bound.
    #[error("must have 1 to {max} characters, has {len}")]
    Length {
        /// The longest that is allowed.
        max: usize,
        /// The length that was given.
        len: usize,
    },
    /// A character outside the set.
    #[error("may hold only {allowed}; found {found:?} at position {at}")]
    Character {
        /// What is allowed, for people.
        allowed: &'static str,
        /// The offending character.
        found: char,
        /// Its position, in characters from 0.
        at: usize,
    },
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $max:expr, $allowed:expr, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The longest identifier of this kind, in characters.
            pub const LEN_MAX: usize = $max;

            /// Checks a text.
            ///
            /// # Errors
            /// Says which character or length is wrong.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let len = text.chars().count();
                if len == 0 || len > Self::LEN_MAX {
                    return Err(IdError::Length { max: Self::LEN_MAX, len });
                }
                let ok: fn(char) -> bool = $ok;
                match text.chars().enumerate().find(|&(_, c)| !ok(c)) {
                    Some((at, found)) => Err(IdError::Character { allowed: $allowed, found, at }),
                    None => Ok(Self(text.into())),
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().into()
            }
        }
    };
}

id!(
    /// A customer of one Weir: owns servers, keys and policy.
    TenantId, 64, "a-z, 0-9, '-' and '_'",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_'
);
id!(
    /// One MCP endpoint. It stands in URLs, so it has one spelling only.
    ServerId, 64, "a-z, 0-9, '-' and '_'",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_'
);
id!(
    /// The public name of an API key; audit records carry it as the principal.
    KeyId, 64, "a-z, A-Z, 0-9, '-', '_', '.' and '@'",
    |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@')
);
id!(
    /// A tool's name as the server declares it. Compared exactly, never folded.
    ///
    /// The specification recommends 1 to 128 characters of `A-Za-z0-9_-.`; real
    /// servers also use `/` and `:`.
    ToolName, 128, "A-Z, a-z, 0-9, '_', '-', '.', '/' and ':'",
    |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':')
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_spelling_is_an_id() {
        for good in ["a", "github", "my-server_2"] {
            assert!(ServerId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "A",
            "a b",
            "a/b",
            "..",
            "a%2f",
            "é",
            "a\0",
            &"x".repeat(65),
        ] {
            assert!(ServerId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_tool_name_has_no_look_alikes() {
        assert!(ToolName::parse("read_file").is_ok());
        for bad in ["read file", "reаd_file", "x\u{200b}", "a\nb"] {
            assert!(ToolName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
