//! What can go wrong with a sandbox.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a step of a sandbox's life failed. For operators; never for MCP clients.
#[derive(Debug, Error)]
pub enum SandboxError {
    /// A program of the host cannot be run.
    #[error("cannot run `{program}`; `weir-runner doctor` says how to install it")]
    Program {
        /// Its name.
        program: String,
        /// The system's words.
        source: io::Error,
    },
    /// A program of the host said no.
    #[error("`{program}` failed: {said}")]
    Failed {
        /// Its name and subcommand.
        program: String,
        /// The end of what it wrote, at most 600 characters.
        said: String,
    },
    /// A program of the host did not end in time; it was killed.
    #[error("`{program}` did not end within {waited_s} s")]
    Timeout {
        /// Its name and subcommand.
        program: String,
        /// How long, in seconds.
        waited_s: u64,
    },
    /// A file, mount or namespace could not be made or taken away.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Every address of the pool is in use.
    #[error("all {max} places of the address pool are in use")]
    NoPlace {
        /// How many there are.
        max: u32,
    },
    /// The sandbox is not (any more) what it was when it was written down.
    #[error("sandbox {id} is gone")]
    Gone {
        /// Its id.
        id: String,
    },
    /// The host cannot run sandboxes.
    #[error("this host cannot run sandboxes: {0}; see `weir-runner doctor`")]
    Unfit(String),
}

impl SandboxError {
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Io {
            what,
            path: path.into(),
            source: source.into(),
        }
    }
}
