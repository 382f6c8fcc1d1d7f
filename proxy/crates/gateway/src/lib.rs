//! The data plane: from an accepted connection to an audited answer.
//!
//! ```text
//! listener -> exchange -> pipeline (decode, scan, policy, decide) -> upstream
//!                 ^                    the same, back                   |
//!                 '-----------------------------------------------------'
//! ```
//!
//! What this room never does: read configuration files, keep tenants' data, run plugins' code, or
//! send anything that the pipeline did not clear.
#![forbid(unsafe_code)]

mod admin;
mod authn;
mod bodies;
mod breaker;
mod decimal;
mod descriptors;
mod exchange;
mod gate;
mod gateway;
mod gather;
mod guard;
mod head_watch;
mod listener;
mod lobby;
mod metrics;
mod pins;
pub mod pipeline;
mod reply;
mod schema;
mod seldom;
mod session;
mod shares;
mod snapshot;
mod span;
mod tools;
mod turns;
mod upstream;

pub use admin::{AdminPage, serve_admin};
pub use authn::hash_key;
pub use exchange::{FrontingStdio, Input, Output, StdioEnd, front_stdio};
pub use gateway::{Gateway, GatewayOptions};
pub use listener::{Serving, TlsSlot, serve};
pub use pins::{PinSource, Pins, Unsaved};
pub use snapshot::{CompileError, PluginSource, Snapshot};
pub use span::{ExchangeSpan, SpanSink};
pub use upstream::LinkOptions;

/// The decoder's bounds out of the data plane's.
fn codec_limits(limits: &domain::Limits) -> mcp_codec::Limits {
    mcp_codec::Limits {
        bytes_max: limits.message_bytes_max,
        depth_max: limits.depth_max,
        tokens_max: limits.tokens_max,
        batch_max: limits.batch_max,
        ..mcp_codec::Limits::default()
    }
}
