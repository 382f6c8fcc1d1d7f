//! The control plane of hosted servers.
//!
//! ```text
//!  CLI, dashboard --HTTP, admin token--> api --+--> store (SQLite): what is wanted, events, usage
//!                                              +--> Runner (trait): bundles, builds, servers, secrets, logs
//!                                              '--> Publisher (trait): what the gateway shall serve
//!  follow: the runner's events and usage windows --> store, each exactly once
//! ```
//!
//! It never serves MCP, never holds a secret's value longer than the request that brings it, and knows neither the
//! gateway nor the vault: the wiring joins them.
#![forbid(unsafe_code)]

mod api;
mod audit;
mod auth;
mod error;
mod exec;
mod follow;
mod hosted;
mod ids;
mod model;
mod objects;
mod prints;
mod store;

pub use api::{Api, ApiOptions, BUNDLE_BYTES_MAX, openapi_json, serve};
pub use auth::AdminToken;
pub use error::ControlError;
pub use exec::{ExecKeys, GATEWAY_KEY_ID};
pub use hosted::{HostedServers, Publisher};
pub use store::Store;
