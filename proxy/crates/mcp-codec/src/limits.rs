//! The bounds on one message. Every one of them is written down here and reached by a test.

/// Longest method, in decoded bytes; and tool name or version, where a message is read piece by piece. Those that are in
/// use have some 40.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

/// What one JSON document may cost. A document above any of these is refused, never cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest document, in bytes.
    pub bytes_max: usize,
    /// Deepest nesting of objects and arrays; a scalar at the top has depth 0.
    pub depth_max: usize,
    /// Most tokens: every value, every key, every object and every array is one.
    pub tokens_max: usize,
    /// Longest number, in bytes of its text.
    pub number_bytes_max: usize,
    /// Longest string used as a JSON-RPC id or as a progress token, in decoded bytes.
    pub id_bytes_max: usize,
    /// Most messages in one batch.
    pub batch_max: usize,
}

impl Limits {
    /// Longest outcome of an edit: a redaction may be longer than what it replaces, so a message at its limit can still be
    /// redacted instead of being refused.
    pub fn edited_bytes_max(&self) -> usize {
        self.bytes_max.saturating_mul(2)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes_max: 4 << 20,
            depth_max: 64,
            tokens_max: 500_000,
            number_bytes_max: 400,
            id_bytes_max: 256,
            batch_max: 64,
        }
    }
}
