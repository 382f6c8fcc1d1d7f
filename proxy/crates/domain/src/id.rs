//! Identifiers, checked once where they enter.

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Too short or too long.
    #[error("must have {min} to {max} characters, has {len}")]
    Length {
        /// The shortest that is allowed.
        min: usize,
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

/// Defines a type of identifiers: a text of `min` to `max` characters, all of them allowed, checked where it is parsed or
/// deserialised. Whoever uses it depends on `serde`.
///
/// ```
/// domain::id!(
///     /// Names a shelf.
///     ShelfId, 1, 8, "a-z", |c| c.is_ascii_lowercase()
/// );
/// assert!(ShelfId::parse("north").is_ok());
/// assert!(ShelfId::parse("North").is_err());
/// ```
#[macro_export]
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $min:expr, $max:expr, $allowed:expr, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(::std::sync::Arc<str>);

        impl $name {
            /// The longest identifier of this kind, in characters.
            pub const LEN_MAX: usize = $max;

            /// Checks a text.
            ///
            /// # Errors
            /// Says which character or length is wrong.
            pub fn parse(text: &str) -> Result<Self, $crate::IdError> {
                let len = text.chars().count();
                if !($min..=$max).contains(&len) {
                    return Err($crate::IdError::Length { min: $min, max: $max, len });
                }
                let ok: fn(char) -> bool = $ok;
                match text.chars().enumerate().find(|&(_, c)| !ok(c)) {
                    Some((at, found)) => Err($crate::IdError::Character { allowed: $allowed, found, at }),
                    None => Ok(Self(text.into())),
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl ::std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::IdError;
            fn try_from(text: String) -> Result<Self, $crate::IdError> {
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
    TenantId, 1, 64, "a-z, 0-9, '-' and '_'",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_'
);
id!(
    /// One MCP endpoint. It stands in URLs, so it has one spelling only.
    ServerId, 1, 64, "a-z, 0-9, '-' and '_'",
    |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_'
);
id!(
    /// The public name of an API key; audit records carry it as the principal.
    KeyId, 1, 64, "a-z, A-Z, 0-9, '-', '_', '.' and '@'",
    |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@')
);
id!(
    /// A tool's name as the server declares it. Compared exactly, never folded.
    ///
    /// The specification recommends 1 to 128 characters of `A-Za-z0-9_-.`; real
    /// servers also use `/` and `:`.
    ToolName, 1, 128, "A-Z, a-z, 0-9, '_', '-', '.', '/' and ':'",
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
