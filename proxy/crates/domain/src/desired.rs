//! What the operator wants: plain data that configuration publishes and the gateway compiles.

use std::collections::BTreeMap;
use std::path::PathBuf;

use secret_prints::SecretPrints;
use serde::{Deserialize, Serialize};

use crate::{Direction, KeyHash, KeyId, Limits, Plugin, PluginBinding, Secret, ServerId, TenantId};

/// The whole wanted state of a gateway. It is replaced as one piece or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Desired {
    /// Bounds of the data plane.
    pub limits: Limits,
    /// Every tenant by id.
    pub tenants: BTreeMap<TenantId, Tenant>,
    /// Every server by id; ids are unique over all tenants.
    pub servers: BTreeMap<ServerId, Server>,
    /// API keys. Empty together with `open_access` means that anyone on the listener is let in.
    pub keys: Vec<ApiKey>,
    /// No key is asked for: `weir proxy` on loopback. Every caller is the one local principal.
    pub open_access: bool,
    /// Browser origins that may call.
    pub cors: Cors,
    /// `Host` values that are answered beside those of the listener itself, such as
    /// `weir.example.com`. Loopback names are always among them when the listener is on loopback.
    pub hosts: Vec<String>,
    /// TLS of the client listener.
    pub tls: Option<ListenerTls>,
    /// Extra detection rule sources: (file name, YAML text).
    pub rules: Vec<(String, String)>,
    /// When an audit record must be safe on disk before the answer is released.
    pub audit: AuditMode,
}

/// A tenant's own bounds and policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tenant {
    /// Policy of all its servers, below the built-in default.
    pub policy: Policy,
    /// Bounds over all its calls.
    pub limits: CallLimits,
    /// What it has looked for, beside what everybody has.
    pub detection: Detection,
    /// Its plugins by name.
    pub plugins: BTreeMap<String, Plugin>,
    /// Public keys of which one must have signed each plugin; empty: any plugin is taken.
    pub plugin_keys: Vec<String>,
}

/// What a tenant, or one of its servers, has looked for beside the built-in rules. Nobody else's messages are judged
/// by it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Detection {
    /// Rule files: (file name, YAML text).
    pub rules: Vec<(String, String)>,
    /// Lists of values.
    pub values: Vec<ValueList>,
    /// The secrets of a hosted server, of which nobody but the runner has the values.
    pub prints: Option<SecretPrints>,
}

impl Detection {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.values.is_empty() && self.prints.is_none()
    }
}

/// Values that are looked for exactly as they are.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueList {
    /// Rule id under which they are reported.
    pub id: String,
    /// A line for people.
    pub title: String,
    /// `secret`, `pii` or `injection`.
    pub category: String,
    /// The values.
    pub values: Vec<Secret>,
}

/// One fronted MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its owner.
    pub tenant: TenantId,
    /// Where it really is.
    pub upstream: Upstream,
    /// Policy of this server, above the tenant's.
    pub policy: Policy,
    /// Bounds over the calls to this server.
    pub limits: CallLimits,
    /// What it has looked for, beside what its tenant has.
    pub detection: Detection,
    /// Plugins that judge its messages, in this order, after the rules did.
    pub plugins: Vec<PluginBinding>,
}

/// Where and how a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Upstream {
    /// The transport.
    pub transport: UpstreamTransport,
    /// Credentials that Weir sends as its own; the client's never pass through.
    pub auth: UpstreamAuth,
    /// Calls failing in a row until the circuit opens; 0 switches the breaker off.
    pub breaker_failures: u32,
    /// How long the circuit stays open, in milliseconds.
    pub breaker_open_ms: u64,
    /// Whether clients are told that the stateless era is spoken here; where they are not, those that know a handshake begin with one.
    pub tells_stateless: bool,
}

/// The transports an upstream can have.
#[derive(Debug, Clone, PartialEq)]
pub enum UpstreamTransport {
    /// Streamable HTTP at this URL (`http` or `https`).
    Http {
        /// The endpoint.
        url: String,
        /// PEM file with further trusted roots for `https`.
        ca_file: Option<PathBuf>,
    },
    /// HTTP+SSE of revision 2024-11-05; the URL is that of the event stream.
    Sse {
        /// The event stream's URL.
        url: String,
        /// PEM file with further trusted roots for `https`.
        ca_file: Option<PathBuf>,
    },
    /// A child process that speaks newline-delimited JSON.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Added to (or, with `env_clear`, in place of) Weir's own environment.
        env: BTreeMap<String, Secret>,
        /// Start from an empty environment.
        env_clear: bool,
        /// Working directory.
        cwd: Option<PathBuf>,
    },
    /// A sandbox of the runner, leased for each exchange.
    Hosted {
        /// Path of the MCP endpoint within the sandbox, such as `/mcp`.
        path: String,
        /// How sandboxes are shared.
        sharing: Sharing,
    },
}

/// How the sandboxes of a hosted server are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sharing {
    /// One serves many sessions.
    #[default]
    Shared,
    /// Each session has its own.
    Session,
    /// Each call has a new one.
    Call,
}

/// What Weir shows an upstream as its own credentials.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum UpstreamAuth {
    /// Nothing.
    #[default]
    None,
    /// `Authorization: Bearer ...`.
    Bearer(Secret),
    /// Headers by (lower-case) name.
    Headers(Vec<(String, Secret)>),
}

/// An API key: who may call what.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKey {
    /// The principal's name in logs and audit records.
    pub id: KeyId,
    /// SHA-256 of the key.
    pub hash: KeyHash,
    /// The tenant it belongs to.
    pub tenant: TenantId,
    /// Servers it may reach; empty means all of the tenant's.
    pub servers: Vec<ServerId>,
    /// Tools it may call.
    pub tools: ToolAccess,
    /// Its own bounds.
    pub limits: CallLimits,
}

/// Tools allowed and denied, as globs over tool names. Deny wins; an empty allow list allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolAccess {
    /// Tools that may be called; empty: all.
    pub allow: Vec<String>,
    /// Tools that may never be called.
    pub deny: Vec<String>,
}

/// Bounds over calls; absent means no bound of this kind at this level.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CallLimits {
    /// Calls that may run at once. Above it: 429 with Retry-After.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub concurrent_calls_max: Option<u32>,
    /// Calls over time. Above it: 429 with Retry-After. What wants no answer (notifications, responses, opening a listen
    /// stream, ending a session) or is no message at all is counted by itself, with four times this rate and burst.
    pub rate: Option<RateLimit>,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Calls per second, refilled evenly.
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub per_second: f64,
    /// Calls that may come at once.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub burst: u32,
}

/// What to do with findings, in the order given; the most specific binding wins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Decide and record, but enforce nothing.
    pub dry_run: bool,
    /// What happens when a message cannot be judged (budget used up). Default closed.
    pub failure_mode: FailureMode,
    /// The bindings.
    pub bindings: Vec<PolicyBinding>,
    /// Findings that are let pass and counted.
    pub allow: Vec<AllowLine>,
    /// Tools that nobody may call on this server, whatever the key says.
    pub tools: ToolAccess,
    /// What becomes of tools whose definitions nobody approved; absent: the tenant's word, then `warn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_pinning: Option<ToolPinning>,
}

/// What becomes of a tool whose definition is another than the approved one, or that came later than the first listing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolPinning {
    /// Definitions are not looked at.
    Off,
    /// It passes, with a warning in the log.
    #[default]
    Warn,
    /// It is left out of lists and cannot be called until it was approved.
    Hold,
}

/// One line of policy: where it applies, and the action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyBinding {
    /// Glob over tool names; absent: every tool and every message without a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Absent: both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// `secret`, `pii` or `injection`; absent: every category.
    #[schemars(extend("enum" = ["secret", "pii", "injection", null]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Glob over rule ids; absent: every rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What to do.
    pub action: PolicyAction,
    /// What stands in the place of a redacted value; only with `action: redact`. Default placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<RedactForm>,
}

/// What stands in the place of a redacted value. A value that is too short for a form, or lay under an encoding, gets
/// the placeholder. In the order of what they give away, the most first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RedactForm {
    /// `****1234`: the last four characters stay. For values of at least 12 characters.
    #[serde(rename = "keep_last_4")]
    KeepLast4,
    /// Other characters of the same classes in the same places: digits for digits, letters for letters. Equal values of
    /// a tenant become equal. For values with at least 6 letters and digits, all ASCII.
    FormatPreserving,
    /// `[HASH:rule:0123456789abcdef]`: a keyed hash; equal values of a tenant become equal.
    Hash,
    /// `[REDACTED:rule]`.
    #[default]
    Placeholder,
}

impl RedactForm {
    /// The word used in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeepLast4 => "keep_last_4",
            Self::FormatPreserving => "format_preserving",
            Self::Hash => "hash",
            Self::Placeholder => "placeholder",
        }
    }
}

/// A finding that is let pass: neither redacted nor blocked, but recorded. Everything that the line names must fit;
/// it has to name at least one of `value`, `pattern`, `path` and `rule`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AllowLine {
    /// Fingerprint of the value, as audit records and `weir rules hash` give it.
    #[schemars(regex(pattern = "^[0-9a-f]{32}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Regular expression that the whole value has to match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Where the value stands, as audit records write it: `$.params.arguments.to`. `*` stands for any one step
    /// (`$.result.content[*].text`), `**` for any number of steps (`$.result.**.id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Glob over rule ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// `secret`, `pii` or `injection`.
    #[schemars(extend("enum" = ["secret", "pii", "injection", null]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Glob over tool names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Absent: both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The actions, weakest first. The strictest of a message's findings decides about the message.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PolicyAction {
    /// Not even recorded as a finding: for rules that do not fit a place.
    Ignore,
    /// Recorded, passed on.
    Log,
    /// Recorded, an alert is raised, passed on.
    Warn,
    /// The matched value is replaced.
    Redact,
    /// The message is answered by Weir and goes no further.
    Block,
}

impl PolicyAction {
    /// The word used in config, logs, metrics and audit records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Log => "log",
            Self::Warn => "warn",
            Self::Redact => "redact",
            Self::Block => "block",
        }
    }
}

/// What a part that failed makes of the message it could not judge.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// The message is blocked.
    #[default]
    Closed,
    /// The message passes, with a record and a warning.
    Open,
}

/// When an audit record must be on disk before the answer is released.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AuditMode {
    /// Blocked and redacted messages are on disk first; the rest follow within milliseconds.
    #[default]
    Enforced,
    /// Every message is on disk first.
    All,
    /// No audit log is kept.
    Off,
}

/// Browser origins that may call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cors {
    /// Exact origins, such as `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Certificate and key of the client listener, read again when they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListenerTls {
    /// PEM file with the chain, leaf first.
    pub cert_file: PathBuf,
    /// PEM file with the private key.
    pub key_file: PathBuf,
}
