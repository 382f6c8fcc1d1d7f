//! Amounts, and the hours that they belong to.

use domain::{ServerId, TenantId};
use serde::{Deserialize, Serialize};

/// Closed windows that wait for their reader. Above it windows stay open over the hour, so that they do not get more:
/// amounts stay right, only their hours get coarse.
pub const CLOSED_MAX: usize = 100_000;

/// What was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time, in microseconds.
    pub cpu_us: u64,
    /// Memory over time, in byte-milliseconds.
    pub memory_byte_ms: u128,
    /// Storage over time, in byte-milliseconds.
    pub storage_byte_ms: u128,
    /// Bytes to the outside.
    pub egress_bytes: u64,
    /// Calls or sessions that got the sandbox.
    pub requests: u64,
}

impl Usage {
    /// Adds; the largest number there is stays the largest.
    pub fn add(&mut self, other: &Usage) {
        self.cpu_us = self.cpu_us.saturating_add(other.cpu_us);
        self.memory_byte_ms = self.memory_byte_ms.saturating_add(other.memory_byte_ms);
        self.storage_byte_ms = self.storage_byte_ms.saturating_add(other.storage_byte_ms);
        self.egress_bytes = self.egress_bytes.saturating_add(other.egress_bytes);
        self.requests = self.requests.saturating_add(other.requests);
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes `part` of `whole` out, rounded down; the rest stays here.
    pub(crate) fn split(&mut self, part: u64, whole: u64) -> Usage {
        let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
        // Quotient and rest apart: an amount times a time could overflow.
        let wide = |amount: u128| amount / whole * part + amount % whole * part / whole;
        let narrow = |amount: u64| u64::try_from(wide(u128::from(amount))).unwrap_or(amount);
        let taken = Usage {
            cpu_us: narrow(self.cpu_us),
            memory_byte_ms: wide(self.memory_byte_ms),
            storage_byte_ms: wide(self.storage_byte_ms),
            egress_bytes: narrow(self.egress_bytes),
            requests: narrow(self.requests),
        };
        self.cpu_us -= taken.cpu_us;
        self.memory_byte_ms -= taken.memory_byte_ms;
        self.storage_byte_ms -= taken.storage_byte_ms;
        self.egress_bytes -= taken.egress_bytes;
        self.requests -= taken.requests;
        taken
    }
}

/// What a server used in one hour, or in a part of it: an hour may come in several windows, whose amounts add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Counts up over all windows, from 1. Never given twice.
    pub seq: u64,
    /// The owner.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// Start of the hour, in seconds since 1970.
    pub hour_unix_s: u64,
    /// The amounts.
    pub usage: Usage,
}
