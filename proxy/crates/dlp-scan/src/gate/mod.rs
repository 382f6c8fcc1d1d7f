//! The literal gate: which rules' keywords occur in a text, and where.
//!
//! [`LiteralGate`] is the seam between engines; all report the same hits.

mod gram;

pub(crate) use gram::GramGate;

/// A keyword and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub at: u32,
    pub keyword: u16,
}

/// Finds every occurrence of every keyword, ASCII letters in either case.
pub(crate) trait LiteralGate {
    /// Appends all hits, ordered by position, then keyword.
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>);
}
