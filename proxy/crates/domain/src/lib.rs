//! The nouns of Weir and their limits: plain data that every room may name.
//!
//! This room never does I/O, never reads a clock and holds no behaviour beyond
//! parsing a noun into a type that cannot be wrong.
#![forbid(unsafe_code)]

mod desired;
mod id;
mod limits;
mod near;
mod pin;
mod plan;
mod plugin;
mod protocol;
mod secret;

pub use desired::{
    AllowLine, ApiKey, AuditMode, CallLimits, Cors, Desired, Detection, FailureMode, ListenerTls,
    Policy, PolicyAction, PolicyBinding, RateLimit, RedactForm, Server, Sharing, Tenant,
    ToolAccess, ToolPinning, Upstream, UpstreamAuth, UpstreamTransport, ValueList,
};
pub use id::{IdError, KeyId, ServerId, TenantId, ToolName};
pub use limits::Limits;
pub use near::nearest;
pub use pin::{Definition, PINS_MAX, ToolPin, ToolPins};
pub use plan::Plan;
pub use plugin::{
    Grant, Isolation, PLUGIN_BINDINGS_MAX, PLUGIN_NAME_BYTES_MAX, Plugin, PluginBinding,
};
pub use protocol::{Direction, Era, ProtocolVersion};
pub use secret::{KeyHash, SECRETS_PER_SERVER_MAX, Secret};
