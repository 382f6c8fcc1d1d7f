//! What one message may cost, and what was exceeded. Over budget is reported, never taken for clean.

use std::fmt;

/// The bytes of a message for which one finding more may be reported.
const FINDING_BYTES: usize = 10;

/// Upper bounds on the work done for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes all decoding layers together may produce; for a message of `n` bytes no more than `32 n` and 256 KiB.
    pub decoded_bytes_max: u32,
    /// How many layers may lie on top of each other (`base64>gzip>json` is three).
    pub depth_max: u8,
    /// Findings reported, and one more for each 10 bytes of the message: a list of names and addresses is two to the line. The rest
    /// of the message is not searched for more.
    pub findings_max: u32,
    /// Candidate checks (prefilter hits that were looked at closely), counted over all layers; for a message of `n`
    /// bytes no more than `16 n` and 32,768, times what the dearest of a tenant's own patterns weighs. Real messages take
    /// less than `2 n`, hostile ones hundreds.
    pub candidates_max: u32,
}

impl Budget {
    /// The same for a message of so many bytes: what is sent costs by its length, whatever is in it. `weight` is what one
    /// look costs at the most.
    pub(crate) fn for_bytes(&self, bytes: usize, weight: u32) -> Self {
        let scaled = |factor: usize, least: usize| {
            crate::text::to_u32(bytes.saturating_mul(factor).saturating_add(least))
        };
        Self {
            decoded_bytes_max: self.decoded_bytes_max.min(scaled(32, 256 << 10)),
            candidates_max: self
                .candidates_max
                .min(scaled(16, 32 << 10).saturating_mul(weight.max(1))),
            findings_max: self
                .findings_max
                .saturating_add(crate::text::to_u32(bytes / FINDING_BYTES)),
            ..*self
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            decoded_bytes_max: 8 << 20,
            depth_max: 6,
            findings_max: 1024,
            candidates_max: 1 << 22,
        }
    }
}

/// The bound of [`Budget`] that a message ran into. Parts of it were not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OverBudget {
    /// `decoded_bytes_max` was reached.
    DecodedBytes,
    /// Something decodable lay under `depth_max` layers.
    Depth,
    /// `findings_max` was reached.
    Findings,
    /// `candidates_max` was reached.
    Candidates,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DecodedBytes => "decoded_bytes",
            Self::Depth => "depth",
            Self::Findings => "findings",
            Self::Candidates => "candidates",
        })
    }
}
