//! Names of audit records: `aud_` and 26 characters that sort by time (the ULID layout).
//!
//! An id is made before its record is appended, because the answer to a blocked call quotes it. It carries no count
//! of calls: what follows the time is keyed noise, so one tenant cannot read another's traffic off its own ids.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::record::Text;

const PREFIX: &str = "aud_";
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const DIGIT_COUNT: usize = 26;

/// Name of one audit record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct AuditId(Text);

impl AuditId {
    /// A fresh id for a message that arrived at `time_unix_us`.
    pub fn new(time_unix_us: u64) -> Self {
        let millis = u128::from((time_unix_us / 1000) & 0xffff_ffff_ffff);
        let bits = (millis << 80) | noise();
        let mut text = [0_u8; PREFIX.len() + DIGIT_COUNT];
        text[..PREFIX.len()].copy_from_slice(PREFIX.as_bytes());
        for (index, digit) in text[PREFIX.len()..].iter_mut().enumerate() {
            let shift = 5 * (DIGIT_COUNT - 1 - index);
            *digit = DIGITS[((bits >> shift) & 31) as usize];
        }
        AuditId(str::from_utf8(&text).expect("the alphabet is ASCII").into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The time inside the id, in milliseconds.
    pub(crate) fn time_unix_ms(&self) -> u64 {
        let digits = &self.0.as_bytes()[PREFIX.len()..];
        // 48 bits of time are the first 10 digits: the layout leaves the two topmost bits of 130 unused.
        digits[..10].iter().fold(0, |time, digit| {
            (time << 5) | digit_value(*digit).unwrap_or(0)
        })
    }
}

impl std::fmt::Display for AuditId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that is not `aud_` and 26 base-32 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an audit id: expected aud_ and 26 characters")]
pub struct BadAuditId;

impl TryFrom<Text> for AuditId {
    type Error = BadAuditId;

    fn try_from(text: Text) -> Result<Self, BadAuditId> {
        let digits = text.strip_prefix(PREFIX).ok_or(BadAuditId)?.as_bytes();
        let sound =
            digits.len() == DIGIT_COUNT && digits.iter().all(|digit| digit_value(*digit).is_some());
        if sound {
            Ok(AuditId(text))
        } else {
            Err(BadAuditId)
        }
    }
}

impl std::str::FromStr for AuditId {
    type Err = BadAuditId;

    fn from_str(text: &str) -> Result<Self, BadAuditId> {
        AuditId::try_from(Text::from(text))
    }
}

impl From<AuditId> for Text {
    fn from(id: AuditId) -> Text {
        id.0
    }
}

fn digit_value(digit: u8) -> Option<u64> {
    memchr::memchr(digit, DIGITS).map(|value| value as u64)
}

/// 80 bits that do not repeat: a counter under a keyed hash, and 16 bits of this process.
fn noise() -> u128 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let key = KEY.get_or_init(RandomState::new);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let process = key.hash_one("process") & 0xffff;
    (u128::from(process) << 64) | u128::from(key.hash_one(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_their_time_and_differ() {
        for time_unix_us in [0, 1, 999, 1_790_000_000_123_456, (1 << 48) * 1000 - 1] {
            let (one, two) = (AuditId::new(time_unix_us), AuditId::new(time_unix_us));
            assert_ne!(one, two);
            assert_eq!(one.time_unix_ms(), time_unix_us / 1000);
            assert_eq!(one.as_str().parse::<AuditId>(), Ok(one.clone()));
        }
        assert!(AuditId::new(1_000_000).as_str() < AuditId::new(2_000_000).as_str());
    }

    #[test]
    fn other_text_is_no_id() {
        for text in [
            "",
            "aud_",
            "aud_0",
            "aud_0123456789abcdefghjkmnpqr!",
            "bud_0123456789abcdefghjkmnpqrs",
        ] {
            assert_eq!(text.parse::<AuditId>(), Err(BadAuditId), "{text}");
        }
    }
}
