//! The configuration file as it is written: shapes only, no meaning.
//!
//! The doc comments here are the descriptions in the published JSON Schema. What the words mean
//! together is checked in `resolve`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::{
    AllowLine, AuditMode, CallLimits, Cors, FailureMode, Limits, ListenerTls, PluginBinding,
    PolicyBinding, ToolAccess, ToolPinning,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::secret_ref::SecretRef;

/// Configuration of `weir serve`. Relative paths are taken from the folder of this file.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "Weir configuration")]
pub struct Config {
    /// Where clients connect, as IP:PORT. Port 0 takes a free one. Default 127.0.0.1:8080.
    pub listen: Option<String>,
    /// Where metrics, health and readiness are served, as IP:PORT, or `off`. Default 127.0.0.1:8081.
    pub admin_listen: Option<String>,
    /// Folder of the audit log. Default `weir-data`.
    pub data_dir: Option<PathBuf>,
    /// Serve https with this certificate; the files are read again when they change.
    pub tls: Option<ListenerTls>,
    /// `Host` names that are answered beside the listener's own address, such as weir.example.com.
    pub hosts: Vec<String>,
    /// Browser origins that may call.
    pub cors: Cors,
    /// Bounds of the data plane.
    pub limits: Limits,
    /// The audit log.
    pub audit: Audit,
    /// Weir's own log.
    pub log: Log,
    /// Traces go there by OTLP over HTTP (JSON), read once at the start; absent: no traces.
    pub otlp: Option<Otlp>,
    /// Files with further detection rules, in the form of the built-in ones.
    pub rules: Vec<PathBuf>,
    /// Hosted servers: sandboxes of weir-runner, and the admin API. Absent: none. Only changes by a restart.
    pub hosting: Option<Hosting>,
    /// Tenants by id.
    pub tenants: BTreeMap<String, Tenant>,
}

/// Hosted servers.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hosting {
    /// The socket of weir-runner. Default /run/weir-runner/runner.sock.
    pub runner: Option<PathBuf>,
    /// Where the admin API is served, as IP:PORT. Its token is in `admin.token` in `data_dir`. Default 127.0.0.1:8090.
    pub listen: Option<String>,
    /// Scheme and authority of the URLs that are shown to users, such as https://weir.example.com. Default: the
    /// address of `listen` at the top.
    pub public_url: Option<String>,
}

/// The audit log.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// When a record must be on disk before the answer is released.
    pub mode: AuditMode,
    /// Records older than this are deleted. Absent: kept for ever.
    #[schemars(range(min = 1, max = 36_500))]
    pub retention_days: Option<u32>,
}

/// Weir's own log, on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The form of a line.
    pub format: LogFormat,
    /// The least important kind of line that is written.
    pub level: LogLevel,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// How important a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is wrong, work goes on.
    Warn,
    /// What happened.
    #[default]
    Info,
    /// How it happened.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// The word in the file, and in a filter directive.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Where traces go.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// The collector's base URL, such as http://127.0.0.1:4318; plain HTTP. Spans go to /v1/traces below it.
    pub endpoint: String,
    /// Headers sent with every export.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretRef>,
}

/// One tenant.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tenant {
    /// Policy of all its servers.
    pub policy: Policy,
    /// Bounds over all its calls.
    pub limits: CallLimits,
    /// Files with detection rules of its own, in the form of the built-in ones. Nobody else's messages are judged by
    /// them.
    pub rules: Vec<PathBuf>,
    /// Lists of values to be found exactly as they are, under any encoding, by the rule id to report them under.
    pub values: BTreeMap<String, Values>,
    /// API keys. If no tenant has any, everyone who can connect is let in: on loopback only.
    pub keys: Vec<Key>,
    /// Its policy plugins by name; `weir policy push` adds further ones.
    pub plugins: BTreeMap<String, PluginFile>,
    /// Public keys as `weir policy key` prints them. With one here every plugin of this tenant must be
    /// signed by one of them.
    #[schemars(length(max = 16))]
    pub plugin_keys: Vec<String>,
    /// Its MCP servers by id. Ids stand in URLs and are unique over all tenants.
    pub servers: BTreeMap<String, Server>,
}

/// A policy plugin.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginFile {
    /// The component, as `weir policy build` makes it; a signature lies beside it in FILE.sig.
    pub file: PathBuf,
    /// SHA-256 of the file in hexadecimal; another file is refused.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: Option<String>,
}

/// A list that was emptied to let nothing pass would let everything pass.
fn some_names<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::deserialize(deserializer)?;
    match names.is_empty() {
        true => Err(serde::de::Error::custom(
            "names nothing; leave the field out for all, or take the key out for none",
        )),
        false => Ok(names),
    }
}

/// An API key. `weir key new` makes one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key's public name; it stands in logs and audit records.
    pub id: String,
    /// `sha256:` and the SHA-256 of the key in 64 hexadecimal digits.
    #[schemars(regex(pattern = r"^sha256:[0-9a-fA-F]{64}$"))]
    pub hash: String,
    /// Servers it may reach; absent: all of the tenant's.
    #[serde(default, deserialize_with = "some_names")]
    #[schemars(length(min = 1))]
    pub servers: Vec<String>,
    /// Tools it may call.
    #[serde(default)]
    pub tools: ToolAccess,
    /// Bounds over its calls.
    #[serde(default)]
    pub limits: CallLimits,
}

/// One fronted MCP server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Where it really is. Only `default` of tenant `local` may do without, for `weir proxy` and `weir stdio`, which name it on
    /// their command line.
    #[serde(default)]
    pub upstream: Upstream,
    /// Policy of this server; its lines beat the tenant's equally specific ones.
    #[serde(default)]
    pub policy: Policy,
    /// Bounds over the calls to it.
    #[serde(default)]
    pub limits: CallLimits,
    /// Files with further detection rules, for this server only.
    #[serde(default)]
    pub rules: Vec<PathBuf>,
    /// Further lists of values, for this server only.
    #[serde(default)]
    pub values: BTreeMap<String, Values>,
    /// Plugins that judge its messages, in this order, after the rules did.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub plugins: Vec<PluginBinding>,
}

impl Upstream {
    /// Whether it says where the server is.
    pub fn names_transport(&self) -> bool {
        self.url.is_some() || self.sse.is_some() || self.command.is_some()
    }
}

impl Tenant {
    /// Whether it says how messages of any of its servers are to be judged.
    pub fn has_policy(&self) -> bool {
        let own = |policy: &Policy, rules: &[PathBuf], values: &BTreeMap<String, Values>| {
            policy.says_something() || !rules.is_empty() || !values.is_empty()
        };
        let mut servers = self.servers.values();
        own(&self.policy, &self.rules, &self.values)
            || servers.any(|s| own(&s.policy, &s.rules, &s.values) || !s.plugins.is_empty())
    }
}

impl Policy {
    /// Whether it is more than the built-in one.
    pub fn says_something(&self) -> bool {
        self.dry_run.is_some()
            || self.failure_mode.is_some()
            || !self.bindings.is_empty()
            || !self.allow.is_empty()
            || !self.tools.allow.is_empty()
            || !self.tools.deny.is_empty()
            || self.tool_pinning.is_some()
    }
}

/// Values to be found exactly as they are; at most 10,000 of 4 to 16,384 bytes. They are never shown.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Values {
    /// A line for people.
    pub title: Option<String>,
    /// What they are: `secret` (the default), `pii` or `injection`.
    #[schemars(extend("enum" = ["secret", "pii", "injection", null]))]
    pub category: Option<String>,
    /// The values, or where to read each of them.
    pub list: Vec<SecretRef>,
    /// A file with one value a line; empty lines do not count.
    pub file: Option<PathBuf>,
}

/// Where a server is: exactly one of `url`, `sse` and `command`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("oneOf" = [{"required": ["url"]}, {"required": ["sse"]}, {"required": ["command"]}]))]
pub struct Upstream {
    /// Streamable HTTP endpoint, http or https.
    pub url: Option<String>,
    /// Event stream of an HTTP+SSE server (revision 2024-11-05), http or https.
    pub sse: Option<String>,
    /// PEM file with further trusted roots for https.
    pub ca_file: Option<PathBuf>,
    /// Program of a stdio server.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, on top of Weir's own (or alone, with `env_clear`).
    pub env: BTreeMap<String, SecretRef>,
    /// Start from an empty environment.
    pub env_clear: bool,
    /// Its working directory.
    pub cwd: Option<PathBuf>,
    /// What Weir sends as its own credentials; the client's never pass through.
    pub auth: Auth,
    /// The circuit breaker.
    pub breaker: Breaker,
    /// Whether `server/discover` tells clients of revision 2026-07-28. With `false` clients that know a handshake begin with one, and
    /// have what only a session has before a server of the handshake: sampling, elicitation, roots, subscriptions. Default true.
    pub stateless: Option<bool>,
}

/// Credentials for an upstream: at most one of `bearer` and `headers`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// Sent as `Authorization: Bearer ...`.
    pub bearer: Option<SecretRef>,
    /// Sent as they are.
    pub headers: BTreeMap<String, SecretRef>,
}

/// When an upstream that keeps failing is left alone for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Breaker {
    /// Calls of one key failing in a row until the circuit opens for that key, and for all keys where it is open for another
    /// already; 0 switches the breaker off. A status below 500 is no failure. Default 5.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub failures: u32,
    /// How long it stays open, in milliseconds. Default 10,000.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub open_ms: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            open_ms: 10_000,
        }
    }
}

/// What to do with findings.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Decide and record, but enforce nothing. A server takes its tenant's word. Default false.
    pub dry_run: Option<bool>,
    /// What becomes of a message that could not be judged: `closed` blocks it, `open` passes it with a
    /// warning. A server takes its tenant's word. Default closed.
    pub failure_mode: Option<FailureMode>,
    /// The lines of policy; the most specific wins.
    pub bindings: Vec<PolicyBinding>,
    /// Findings that are let pass: neither redacted nor blocked, but recorded.
    pub allow: Vec<AllowLine>,
    /// Tools that anybody may call, whatever a key says.
    pub tools: ToolAccess,
    /// What becomes of a tool whose definition is another than the approved one, or that came after the first listing: `off`
    /// looks at none, `warn` lets it pass with a line in the log, `hold` leaves it out of lists and refuses calls of it until
    /// `weir tools approve`. A server takes its tenant's word. Default warn.
    pub tool_pinning: Option<ToolPinning>,
}
