//! What can go wrong between a caller and the runner.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bundle::Refusal;

/// The kind of a refusal, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorCode {
    /// The request is not well-formed or breaks a limit.
    BadRequest,
    /// No such server, bundle, layer, lease or secret (or another tenant's: the two look the same).
    NotFound,
    /// What was asked does not fit the state: a server without a layer, an id that is taken.
    Conflict,
    /// The bundle was refused; `refusals` says why.
    BundleRefused,
    /// The queue of starts or of this server is full; try again after `retry_after_ms`.
    Busy,
    /// The sandbox did not become ready; the message is for the server's owner.
    StartFailed,
    /// The sandbox of this lease is gone.
    SandboxGone,
    /// The machine is short of something (disk, memory, addresses).
    NoCapacity,
    /// The host cannot run sandboxes (no gVisor, no cgroups); `weir-runner doctor` says what to do.
    HostUnfit,
    /// The two sides do not speak the same version.
    Version,
    /// The runner failed; its log has the reason.
    Internal,
}

/// A refusal as it goes over the wire. The message is for operators and owners, never for MCP clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind.
    pub code: ErrorCode,
    /// What was wrong, where, and what to do.
    pub message: String,
    /// When it is worth trying again, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Each thing that was found wrong, at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

impl ApiError {
    /// An error of this kind with this text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
            refusals: Vec::new(),
        }
    }
}

/// Why a call of [`crate::Runner`] failed.
#[derive(Debug, Error)]
pub enum RunnerError {
    /// The runner said no.
    #[error(transparent)]
    Refused(#[from] ApiError),
    /// The runner cannot be reached, or went away in the middle.
    #[error("the runner cannot be reached; is `weir-runner serve` running?")]
    Unavailable(#[source] std::io::Error),
    /// What came is not what the protocol says.
    #[error("the runner's answer is not understood: {0}")]
    Protocol(String),
}

impl RunnerError {
    /// The kind, if the runner said one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(error) => Some(error.code),
            Self::Unavailable(_) | Self::Protocol(_) => None,
        }
    }
}

impl From<std::io::Error> for RunnerError {
    fn from(error: std::io::Error) -> Self {
        Self::Unavailable(error)
    }
}
