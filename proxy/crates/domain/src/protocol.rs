//! Protocol revisions, eras and directions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which way a message travels.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the MCP server.
    ToServer,
    /// From the MCP server to the client.
    ToClient,
}

impl Direction {
    /// The word used in logs, metrics and audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToServer => "to_server",
            Self::ToClient => "to_client",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The two ways MCP has been spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` first; sessions; server requests. Revisions up to 2025-11-25.
    Handshake,
    /// Every request stands alone and says its version in `_meta`. From 2026-07-28.
    Stateless,
}

impl Era {
    /// The word used in logs, metrics and audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Stateless => "stateless",
        }
    }
}

/// A released revision of the Model Context Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProtocolVersion {
    /// 2024-11-05, HTTP+SSE.
    V2024_11_05,
    /// 2025-03-26, Streamable HTTP with batches.
    V2025_03_26,
    /// 2025-06-18.
    V2025_06_18,
    /// 2025-11-25, the last with a handshake.
    V2025_11_25,
    /// 2026-07-28, stateless.
    V2026_07_28,
}

impl ProtocolVersion {
    /// All that Weir inspects, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// Parses the date on the wire; `None` for one that Weir does not inspect.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.as_str() == text)
    }

    /// The date on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era this revision belongs to.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 {
            Era::Stateless
        } else {
            Era::Handshake
        }
    }

    /// Whether a body may be an array of messages (2025-03-26 only).
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_round_trip_and_unknown_is_none() {
        for v in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::parse(v.as_str()), Some(v));
        }
        assert_eq!(ProtocolVersion::parse("2027-01-01"), None);
        assert_eq!(ProtocolVersion::V2025_11_25.era(), Era::Handshake);
        assert_eq!(ProtocolVersion::V2026_07_28.era(), Era::Stateless);
    }
}
