//! Where the runner keeps what. No name that a user chose stands in a path: tenants and servers are hashed.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use domain::{ServerId, TenantId};
use runner_api::{BundleId, LayerId};
use sha2::{Digest, Sha256};

/// The two folders of one runner: what lasts, and what lasts until the next boot.
#[derive(Debug, Clone)]
pub struct Paths {
    /// `/var/lib/weir-runner`.
    pub state: PathBuf,
    /// `/run/weir-runner`.
    pub run: PathBuf,
}

impl Paths {
    /// Makes all folders, for root's eyes only.
    ///
    /// # Errors
    /// The system's.
    pub fn make(state: &Path, run: &Path) -> std::io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        for dir in [
            "bundles",
            "layers",
            "common",
            "servers",
            "generations",
            "boxes",
            "storage",
            "logs",
            "uploads",
            "checkpoints",
            "rootfs",
            "packs",
        ] {
            builder.create(state.join(dir))?;
        }
        for dir in ["boxes", "netns", "runsc", "pipes", "images", "tallies"] {
            builder.create(run.join(dir))?;
        }
        Ok(Self {
            state: state.canonicalize()?,
            run: run.canonicalize()?,
        })
    }

    /// The folder of a bundle.
    pub fn bundle(&self, tenant: &TenantId, id: &BundleId) -> PathBuf {
        self.state
            .join("bundles")
            .join(tenant_key(tenant))
            .join(id.as_str())
    }

    /// The folder of a layer.
    pub fn layer(&self, tenant: &TenantId, id: &LayerId) -> PathBuf {
        self.state
            .join("layers")
            .join(tenant_key(tenant))
            .join(id.as_str())
    }

    /// The file of a server's spec.
    pub fn server(&self, tenant: &TenantId, server: &ServerId) -> PathBuf {
        self.state
            .join("servers")
            .join(server_key(tenant, server))
            .with_extension("json")
    }

    /// The file that names which sandboxes of a server are today's.
    pub fn generation(&self, tenant: &TenantId, server: &ServerId) -> PathBuf {
        self.state
            .join("generations")
            .join(server_key(tenant, server))
            .with_extension("json")
    }

    /// The file of a sandbox that runs.
    pub fn boxed(&self, id: &str) -> PathBuf {
        self.state.join("boxes").join(id).with_extension("json")
    }

    /// The folder of what sandboxes are given and move. It ends with the machine, as they do.
    pub fn tallies(&self) -> PathBuf {
        self.run.join("tallies")
    }

    /// The log file of a server.
    pub fn log(&self, tenant: &TenantId, server: &ServerId) -> PathBuf {
        self.state
            .join("logs")
            .join(server_key(tenant, server))
            .with_extension("log")
    }
}

/// A tenant in a path.
pub fn tenant_key(tenant: &TenantId) -> String {
    hex(&Sha256::digest(tenant.as_str().as_bytes())[..16])
}

/// A server in a path. Ids hold no line feed, so the two cannot run into each other.
pub fn server_key(tenant: &TenantId, server: &ServerId) -> String {
    hex(&Sha256::digest(format!("{tenant}\n{server}").as_bytes())[..16])
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
