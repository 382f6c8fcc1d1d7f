//! JSON-RPC ids: an integer or a string, and `1` is never `"1"`.

use std::fmt;

use crate::write::push_string;

/// Largest magnitude of a numeric id: what a double holds exactly, so that no peer can confuse two ids by rounding.
pub const ID_NUMBER_MAX: i64 = 1 << 53;

/// The id of a request, as the sender chose it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// An integer of at most [`ID_NUMBER_MAX`] in magnitude; only a [`DecodeError`](crate::DecodeError) may name a larger one.
    Number(i64),
    /// A string, decoded.
    String(Box<str>),
}

impl Id {
    /// The JSON text of the id, fit to be put into a reply.
    ///
    /// ```
    /// use mcp_codec::Id;
    /// assert_eq!(Id::Number(1).to_json(), "1");
    /// assert_eq!(Id::String("a\"b".into()).to_json(), r#""a\"b""#);
    /// ```
    pub fn to_json(&self) -> String {
        match self {
            Id::Number(n) => n.to_string(),
            Id::String(s) => {
                let mut out = Vec::with_capacity(s.len() + 2);
                push_string(&mut out, s);
                String::from_utf8(out).expect("a JSON string written from a str is UTF-8")
            }
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// Shows no string: the peer chose it, and it may be a secret.
impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Number(n) => write!(f, "Number({n})"),
            Id::String(s) => write!(f, "String(<{} bytes>)", s.len()),
        }
    }
}
