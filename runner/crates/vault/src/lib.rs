//! Secrets of hosted servers at rest.
//!
//! ```text
//!  root key (file, environment or passphrase; never on the vault's disk)
//!    └─ seals tenant keys (one active per tenant)
//!         └─ seals data keys (one per secret version)
//!              └─ seals the value
//! ```
//!
//! All sealing is AES-256-GCM with random nonces; the associated data binds every box to its tenant, server, name,
//! version and key, so that a box put in another's place does not open. Each level can be rotated while the vault is
//! in use, and a rotation that was cut off goes on where it stopped.
//!
//! Values go in and come out in one place only ([`Vault::mount`], for the tmpfs of a sandbox), and not before the
//! access is on record. There is no call that gives a value to an API.
//!
//! Never: a value or key in an error, a log, `Debug`, or a file name. What this room cannot promise: the cipher's own
//! expanded key is freed by `ring` without being overwritten, and who can read this process's memory can read secrets.
#![forbid(unsafe_code)]

mod disk;
mod error;
mod files;
mod record;
mod root;
mod seal;
mod value;
mod vault;

pub use disk::{Dir, Disk};
pub use error::VaultError;
pub use files::{NotReplaced, replace};
pub use root::{Kdf, RootKey, Roots};
pub use value::{SecretName, SecretNameError, SecretValue, ValueError};
pub use vault::{Access, AccessKind, AccessLog, Scope, SecretInfo, Vault};
