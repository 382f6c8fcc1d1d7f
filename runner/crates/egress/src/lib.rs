//! What a sandbox may reach, and the only way there.
//!
//! A sandbox has one network interface. Its packets meet a filter that drops everything but two things, which it hands
//! to this crate: DNS questions go to the resolver, TCP connections to the forwarder.
//!
//! ```text
//!  guest --UDP/TCP 53--> resolver: is the name on the list? then an address out of 198.18.0.0/15, else NXDOMAIN
//!  guest --TCP---------> forwarder: address -> name -> port on the list? -> TLS: server name the same?
//!                          -> resolves the name itself -> refuses what is not public -> connects to exactly that
//!  guest --all else----> dropped (UDP, ICMP, IPv6, neighbours, the host)
//! ```
//!
//! The guest never learns a real address and no question of its leaves the host, so an address literal, a rebound
//! name, another resolver, or data in names lead nowhere.
//!
//! What is not seen here: the name inside TLS. A site that answers for another one behind the same certificate
//! ("domain fronting") can be reached through an allowed name of the same provider.
//!
//! This crate never decides which network namespace it works in: it takes sockets that are bound already, and the
//! way outside as a trait ([`Outside`]).
#![forbid(unsafe_code)]

mod address;
mod dns;
mod event;
mod first;
mod forwarder;
mod hello;
mod host;
mod names;
mod nft;
mod outside;
mod relay;
mod resolver;
mod rules;
mod serve;

pub use address::{Net, NetError, Targets, is_global};
pub use event::{EgressEvent, EventSink, Refusal, event_channel};
pub use hello::{HelloError, server_name};
pub use host::{HostError, HostName, HostPattern};
pub use names::SYNTHETIC;
pub use nft::{Filter, FilterError, Guest};
pub use outside::{Outside, Sparing, System};
pub use rules::{Allowlist, EgressRule, PORTS_MAX, RULES_MAX, RuleError};
pub use serve::{Bounds, Egress, Sockets, Tally, Traffic};
