//! The harness of the end-to-end tests: it starts the real `weir` program between a client and an upstream that
//! are both under the test's control, down to the byte.
//!
//! It never links a room of Weir. What it knows of Weir is what a user knows: the command line, the ready line on
//! stderr, the wire. Waiting is always for a condition with a deadline, never for a time to pass.

#![allow(clippy::print_stderr, reason = "a test talks to whoever runs it")]

pub mod admin;
pub mod canary;
pub mod config;
pub mod h2;
pub mod http;
pub mod kit;
pub mod mcp;
pub mod runner;
pub mod search;
pub mod sse;
pub mod upstream;
pub mod wait;
pub mod weir;

pub use admin::Admin;
pub use canary::Canary;
pub use mcp::{Answer, Client, Era};
pub use serde_json::{Value, json};
pub use upstream::{Reply, Request, Upstream};
pub use weir::Weir;
