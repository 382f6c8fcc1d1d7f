//! The line between `weir` and `weir-runner`: what can be asked, what comes back, and how it is framed.
//!
//! This room holds no implementation: a caller names [`Runner`], the daemon answers [`Request`]s, and both
//! agree on [`frame`]. Nothing here ever gives a secret's value back: values go in by [`Runner::set_secret`]
//! and there is no reply that could carry one out.
//!
//! ```text
//!  caller --hello-->  runner          one connection carries one request at a time;
//!         <--hello--                  a stream of replies (build, logs, events) ends with `end` or an error
//!         --request-> [chunk.. empty chunk]
//!         <--reply--  [item.. end]
//! ```
#![forbid(unsafe_code)]

mod bundle;
#[cfg(feature = "client")]
mod client;
mod doctor;
mod error;
mod event;
pub mod frame;
mod id;
mod lease;
mod runner;
mod secret;
mod spec;
mod usage;
mod wire;

pub use bundle::{BuildEvent, BuildRequest, BuildStage, BundleInfo, LayerInfo, Refusal};
#[cfg(feature = "client")]
pub use client::Client;
pub use doctor::{Check, CheckState, Doctor};
pub use error::{ApiError, ErrorCode, RunnerError};
pub use event::{Event, EventKind, GoneReason, LogLine, LogQuery, LogStream, Moment};
pub use id::{BundleId, CallerId, LayerId, LeaseId, SandboxId, SecretName, SessionKey};
pub use lease::{Lease, LeaseRequest};
pub use runner::{Items, Runner};
pub use secret::{SECRET_BYTES_MAX, SecretValue};
pub use spec::{
    CheckedSpec, EgressRule, FieldError, HostedTransport, IdleTimes, Isolation, Limits, Runtime,
    Scale, ServerSpec,
};
pub use usage::{SandboxState, SandboxStats, ServerStatus, UsageWindow};
pub use wire::{Hello, PROTOCOL_VERSION, Reply, Request};
