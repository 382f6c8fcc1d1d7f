//! Host names and the patterns that are compared with them.

use std::fmt;
use std::sync::Arc;

/// The longest host name, in bytes without the trailing dot (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// The longest label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Why a text is not a host name or pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing there.
    #[error("the host name is empty")]
    Empty,
    /// Longer than a host name can be.
    #[error("the host name has {bytes} bytes, at most {NAME_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// A byte that is no letter, digit, hyphen or dot.
    #[error(
        "character {at} of the host name is not a letter, a digit, '-' or '.'; write other scripts in their xn-- form"
    )]
    Character {
        /// Its position, in bytes from 1.
        at: usize,
    },
    /// An empty, long or ill-hyphenated label.
    #[error(
        "each part between dots must have 1 to {LABEL_BYTES_MAX} characters and no '-' at either end"
    )]
    Label,
    /// Only one label.
    #[error("the host name must be fully qualified, such as api.example.com")]
    NotQualified,
    /// An address, in whatever spelling.
    #[error("the last part of the host name is a number: addresses cannot be allowed, only names")]
    Address,
    /// A `*` that is not the whole first label, or stands before a single label.
    #[error("'*' may only be the whole first part, before at least two others: *.example.com")]
    Wildcard,
}

/// A fully qualified host name: lower case, letters, digits, hyphens and dots, at least two labels, no trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(Arc<str>);

impl HostName {
    /// Checks a text; upper case becomes lower case and one trailing dot goes.
    ///
    /// # Errors
    /// Says what is wrong. Nothing is repaired beyond case and the one dot: a byte outside the set is refused before
    /// anything is compared, since `evil\0.allowed.com` means one thing to a matcher and another to a resolver.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        let ok = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
        if let Some(at) = text.bytes().position(|b| !ok(b)) {
            return Err(HostError::Character { at: at + 1 });
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() > NAME_BYTES_MAX {
            return Err(HostError::TooLong { bytes: name.len() });
        }
        let mut labels = 0usize;
        for label in name.split('.') {
            labels += 1;
            let long = label.is_empty() || label.len() > LABEL_BYTES_MAX;
            if long || label.starts_with('-') || label.ends_with('-') {
                return Err(HostError::Label);
            }
        }
        let name = name.to_ascii_lowercase();
        let last = name.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return Err(HostError::Address);
        }
        if labels < 2 {
            return Err(HostError::NotQualified);
        }
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether resolvers would read a name that ends in this label as an IPv4 address (WHATWG URL, "ends in a number").
fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x");
    label.bytes().all(|b| b.is_ascii_digit())
        || hex.is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// A host name, or `*.` and a host name: exactly one label stands for the `*`.
///
/// ```
/// use egress::{HostName, HostPattern};
/// let pattern = HostPattern::parse("*.example.com").unwrap();
/// assert!(pattern.matches(&HostName::parse("api.example.com").unwrap()));
/// assert!(!pattern.matches(&HostName::parse("example.com").unwrap()));
/// assert!(!pattern.matches(&HostName::parse("a.b.example.com").unwrap()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostPattern {
    wildcard: bool,
    name: HostName,
}

impl HostPattern {
    /// Checks a text.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let (wildcard, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.contains('*') {
            return Err(HostError::Wildcard);
        }
        match HostName::parse(rest) {
            Ok(name) => Ok(Self { wildcard, name }),
            // `*.com`: a whole top level domain is no host of anybody's.
            Err(HostError::NotQualified) if wildcard => Err(HostError::Wildcard),
            Err(error) => Err(error),
        }
    }

    /// Whether this name is meant.
    pub fn matches(&self, name: &HostName) -> bool {
        if !self.wildcard {
            return self.name == *name;
        }
        let rest = name.as_str().split_once('.').map(|(_, rest)| rest);
        rest == Some(self.name.as_str())
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.wildcard { "*." } else { "" };
        write!(f, "{star}{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_spelling_of_a_name_is_left() {
        for (text, name) in [
            ("api.github.com", "api.github.com"),
            ("API.GitHub.com", "api.github.com"),
            ("api.github.com.", "api.github.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("1.example.com", "1.example.com"),
            ("4chan.0xabcg", "4chan.0xabcg"),
        ] {
            assert_eq!(
                HostName::parse(text).map(|n| n.to_string()),
                Ok(name.to_owned())
            );
        }
    }

    #[test]
    fn what_resolvers_could_read_otherwise_is_no_name() {
        let long = format!("{}.com", "a".repeat(64));
        let longer = vec!["a".repeat(63); 4].join(".") + ".com";
        let at = |at| HostError::Character { at };
        for (text, error) in [
            ("", HostError::Empty),
            (".", HostError::Label),
            ("evil\0.allowed.com", at(5)),
            ("evil.com\n", at(9)),
            ("evil.com ", at(9)),
            ("a_b.example.com", at(2)),
            ("bücher.example", at(2)),
            ("аpi.example.com", at(1)),
            ("example。com", at(8)),
            ("example.com:443", at(12)),
            ("http://example.com", at(5)),
            ("user@example.com", at(5)),
            ("[::1]", at(1)),
            ("example.com%2eevil", at(12)),
            ("a..com", HostError::Label),
            (".example.com", HostError::Label),
            ("example.com..", HostError::Label),
            ("-a.example.com", HostError::Label),
            ("a-.example.com", HostError::Label),
            (&long, HostError::Label),
            (&longer, HostError::TooLong { bytes: 259 }),
            ("localhost", HostError::NotQualified),
            ("com", HostError::NotQualified),
            ("169.254.169.254", HostError::Address),
            ("2852039166", HostError::Address),
            ("0xa9fea9fe", HostError::Address),
            ("0xa9.0xfe.0xa9.0xfe", HostError::Address),
            ("0251.0376.0251.0376", HostError::Address),
            ("127.1", HostError::Address),
            ("a.0x", HostError::Address),
            ("1.2.3.4.", HostError::Address),
        ] {
            assert_eq!(HostName::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_star_stands_for_one_label() {
        let pattern = HostPattern::parse("*.Internal.Company.com.").expect("a pattern");
        assert_eq!(pattern.to_string(), "*.internal.company.com");
        for (name, matched) in [
            ("a.internal.company.com", true),
            ("internal.company.com", false),
            ("a.b.internal.company.com", false),
            ("ainternal.company.com", false),
            ("a.internal.company.com.evil.com", false),
            ("company.com", false),
        ] {
            let name = HostName::parse(name).expect("a name");
            assert_eq!(pattern.matches(&name), matched, "{name}");
        }
        let exact = HostPattern::parse("a.com").expect("a pattern");
        for (name, matched) in [
            ("a.com", true),
            ("xa.com", false),
            ("a.com.evil", false),
            ("b.a.com", false),
        ] {
            assert_eq!(
                exact.matches(&HostName::parse(name).expect("a name")),
                matched,
                "{name}"
            );
        }
    }

    #[test]
    fn a_star_elsewhere_is_refused() {
        for text in [
            "*",
            "*.",
            "*.com",
            "*.*.example.com",
            "a.*.example.com",
            "a*.example.com",
            "**.example.com",
            "*a.example.com",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
