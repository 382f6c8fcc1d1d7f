//! `weir-runner`: hosts untrusted MCP servers in gVisor sandboxes.
//!
//! Privileged, and small in what it reads: frames of `runner-api` from its socket, and bundles, by strict parsers of its
//! own. It never speaks MCP, never reads a tenant's traffic, and starts nothing of a tenant's outside gVisor.
#![forbid(unsafe_code)]

pub mod api;
mod backoff;
pub mod bench;
pub mod boxes;
pub mod bundle;
pub mod callers;
pub mod context;
pub mod daemon;
pub mod doctor;
pub mod events;
pub mod gate;
pub mod images;
pub mod index;
pub mod layers;
mod lock;
pub mod logs;
mod mcp;
pub mod meter;
mod order;
mod pack;
pub mod paths;
pub mod room;
pub mod rootfs;
pub mod secrets;
pub mod servers;
pub mod shares;
pub mod shim;
pub mod spared;
pub mod stock;
pub mod store;
mod sweep;
pub mod wire;
pub mod words;
