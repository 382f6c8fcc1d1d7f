//! Bundles (what a tenant uploads) and layers (its dependencies, installed once).

use domain::TenantId;
use serde::{Deserialize, Serialize};

use crate::id::{BundleId, LayerId};
use crate::spec::Runtime;

/// What was found in an accepted bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleInfo {
    /// SHA-256 of the uploaded bytes.
    pub id: BundleId,
    /// The owner.
    pub tenant: TenantId,
    /// What its root files say it is.
    pub runtime: Runtime,
    /// Size as uploaded, in bytes.
    pub packed_bytes: u64,
    /// Size of all files, in bytes.
    pub unpacked_bytes: u64,
    /// How many files.
    pub files: u64,
    /// Names in the root folder, sorted, at most 50.
    pub root_names: Vec<String>,
    /// Direct dependencies as written, at most 500.
    pub dependencies: Vec<String>,
}

/// One reason why a bundle, or something in it, was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The path inside the archive, with anything unprintable escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line in that file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What is wrong and what to do.
    pub reason: String,
}

/// Asks for the layer of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildRequest {
    /// The owner; a layer is never shared with another tenant.
    pub tenant: TenantId,
    /// The bundle whose dependencies are to be installed.
    pub bundle: BundleId,
    /// Lets packages without a wheel be built: their code runs in the build sandbox.
    #[serde(default)]
    pub allow_sdist: bool,
}

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildStage {
    /// Waits for a build slot.
    Queued,
    /// Unpacks the bundle.
    Unpacking,
    /// Resolves and downloads.
    Installing,
    /// Compiles bytecode.
    Compiling,
    /// Makes the layer read-only and puts it in its place.
    Sealing,
}

/// Progress of a build. A build ends with `Done`, or the stream ends with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum BuildEvent {
    /// The next stage began.
    Stage {
        /// Which.
        stage: BuildStage,
        /// Milliseconds since the request.
        elapsed_ms: u64,
    },
    /// A line that the installer printed, cleaned of control characters, at most 1,000 characters.
    Output {
        /// The line.
        line: String,
    },
    /// The layer is there.
    Done {
        /// What was built or found.
        layer: LayerInfo,
    },
}

/// A finished layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerInfo {
    /// Its key.
    pub id: LayerId,
    /// Packages in it.
    pub packages: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// True if it was there already.
    pub cached: bool,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}
