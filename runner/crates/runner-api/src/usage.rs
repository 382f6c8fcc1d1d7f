//! What sandboxes are doing and what they used.

use domain::{ServerId, TenantId};
use serde::{Deserialize, Serialize};

use crate::id::{BundleId, LayerId, SandboxId};

/// Where a sandbox is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxState {
    /// Being made or restored.
    Starting,
    /// Answers.
    Ready,
    /// Its processes stand still and cost no CPU.
    Frozen,
    /// It lies on disk, encrypted, and costs neither CPU nor memory.
    Checkpointed,
    /// Takes no new lease and ends with the last one.
    Draining,
}

/// One sandbox now. Counters are since its start and may begin again with another sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxStats {
    /// The sandbox.
    pub sandbox: SandboxId,
    /// Its server.
    pub server: ServerId,
    /// Its owner.
    pub tenant: TenantId,
    /// Its state.
    pub state: SandboxState,
    /// CPU used, with gVisor's own share, in microseconds.
    pub cpu_us: u64,
    /// Memory now, in bytes.
    pub memory_bytes: u64,
    /// Writable storage used now, in bytes; of one that is checkpointed, the size of its image.
    pub storage_bytes: u64,
    /// Bytes out of the sandbox to the outside.
    pub egress_bytes: u64,
    /// Bytes into the sandbox from the outside.
    pub ingress_bytes: u64,
    /// Leases held now.
    pub leases: u32,
    /// Leases given in all.
    pub leases_total: u64,
    /// Milliseconds since it was started.
    pub uptime_ms: u64,
}

/// One server now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerStatus {
    /// The server.
    pub server: ServerId,
    /// Its owner.
    pub tenant: TenantId,
    /// Its bundle.
    pub bundle: BundleId,
    /// Its layer, once built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<LayerId>,
    /// Its sandboxes.
    pub sandboxes: Vec<SandboxStats>,
    /// Leases that wait for a place.
    pub queued: u32,
    /// Why the last start failed, for the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// What one server used in one hour, or a part of it that was closed early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageWindow {
    /// Counts up over all windows of this runner. Acknowledging n lets go of everything up to n.
    pub seq: u64,
    /// The owner.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
    /// Begin of the hour, seconds since 1970.
    pub hour_unix_s: u64,
    /// CPU, in microseconds.
    pub cpu_us: u64,
    /// Memory over time, in byte-seconds.
    pub memory_byte_s: u128,
    /// Storage over time, in byte-seconds.
    pub storage_byte_s: u128,
    /// Bytes to the outside.
    pub egress_bytes: u64,
    /// Leases given.
    pub requests: u64,
}
