//! Why the vault did not do it.

use std::io;

/// What went wrong. No variant holds anything secret.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// A file operation.
    #[error("the vault's file {file} cannot be {what}")]
    Disk {
        /// Its name.
        file: String,
        /// The participle: read, written.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Something was not made durable, and nobody can say what is on the disk. Nothing is written any more.
    #[error(
        "a write to the vault failed before; restart the runner, which reads what is really on the disk"
    )]
    Poisoned,
    /// A file that is not as the vault writes it, or does not open with its keys.
    #[error(
        "the vault's file {file} is damaged ({what}); restore it from a backup, or remove it to give up what is in it"
    )]
    Damaged {
        /// Its name.
        file: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Sealed by a root key that was not given.
    #[error(
        "the vault was sealed with another root key ({found}); give that one, as the current or the previous key"
    )]
    WrongRoot {
        /// The fingerprint of the key that is needed.
        found: String,
    },
    /// The root key cannot be had.
    #[error("the vault's root key: {what}")]
    Root {
        /// What is wrong with it.
        what: String,
    },
    /// No such secret.
    #[error("there is no secret of this name")]
    Unknown,
    /// Too many.
    #[error("a server can have at most {max} secrets")]
    TooMany {
        /// The bound.
        max: usize,
    },
    /// The access could not be recorded, so it did not happen.
    #[error("the access to a secret cannot be recorded, so it is refused")]
    NotRecorded(#[source] io::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}
