//! The shapes of the API.

use std::collections::BTreeMap;

use domain::{Policy, ServerId, TenantId};
use runner_api::{
    BundleInfo, EgressRule, HostedTransport, IdleTimes, Isolation, Limits, SandboxStats, Scale,
    ServerSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ControlError;
use crate::objects::Objects;

/// What a server is made of, beside its bundle and its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The command, run in the bundle's folder; empty: `python server.py` or `node server.js`.
    pub command: Vec<String>,
    /// The port on which it listens, on all addresses. Default 8000.
    pub port: u16,
    /// Path of its MCP endpoint. Default `/mcp`.
    pub path: String,
    /// `http` (Streamable HTTP) or `stdio`.
    #[schema(value_type = String)]
    pub transport: HostedTransport,
    /// Plain environment: visible here and in the log.
    pub env: BTreeMap<String, String>,
    /// `cpu_shares` 512-4096, `memory_mb` 256-8192, `storage_gb` 5-100, `processes` 64-512, `call_timeout_s` 1-900.
    #[schema(value_type = Object)]
    pub limits: Limits,
    /// Where it may connect to: `api.github.com`, `*.example.com:443,8080`. At most 10.
    pub egress: Vec<String>,
    /// `shared`, `session` or `call`.
    #[schema(value_type = String)]
    pub isolation: Isolation,
    /// `min` 0-16, `max` 1-256, `concurrency` 1-1000.
    #[schema(value_type = Object)]
    pub scale: Scale,
    /// `freeze_after_s`, `checkpoint_after_s`, `stop_after_s`, `forget_after_s`; 0: never.
    #[schema(value_type = Object)]
    pub idle: IdleTimes,
    /// Lets packages without a wheel be built, which runs their code.
    pub allow_sdist: bool,
    /// Lets checkpoints be taken though the server may have read its secrets.
    pub trust_checkpoint_with_secrets: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            port: 8000,
            path: "/mcp".to_owned(),
            transport: HostedTransport::default(),
            env: BTreeMap::new(),
            limits: Limits::default(),
            egress: Vec::new(),
            isolation: Isolation::default(),
            scale: Scale::default(),
            idle: IdleTimes::default(),
            allow_sdist: false,
            trust_checkpoint_with_secrets: false,
        }
    }
}

impl Settings {
    /// These settings with the members of `patch` in their place (RFC 7396).
    pub fn patched(&self, patch: &Value) -> Result<Self, ControlError> {
        if !patch.is_object() {
            return Err(ControlError::BadRequest(
                "settings are a JSON object".to_owned(),
            ));
        }
        let mut value = serde_json::to_value(self).map_err(|_| ControlError::Damaged("server"))?;
        merge(&mut value, patch, 0);
        serde_json::from_value(value)
            .map(|Objects(settings)| settings)
            .map_err(|error| ControlError::BadRequest(format!("settings: {error}")))
    }

    /// What the runner is told, checked against all limits.
    pub fn spec(
        &self,
        tenant: &TenantId,
        id: &ServerId,
        bundle: &BundleInfo,
        secrets: impl IntoIterator<Item = runner_api::SecretName>,
    ) -> Result<ServerSpec, ControlError> {
        let spec = ServerSpec {
            id: id.clone(),
            tenant: tenant.clone(),
            bundle: bundle.id.clone(),
            runtime: bundle.runtime,
            command: self.command.clone(),
            port: self.port,
            transport: self.transport,
            env: self.env.clone(),
            secrets: secrets.into_iter().collect(),
            limits: self.limits,
            egress: self.egress_rules()?,
            isolation: self.isolation,
            scale: self.scale,
            idle: self.idle,
            allow_sdist: self.allow_sdist,
            trust_checkpoint_with_secrets: self.trust_checkpoint_with_secrets,
        };
        self.check_path()?;
        let checked = spec.check().map_err(|wrong| {
            ControlError::Fields(
                wrong
                    .into_iter()
                    .map(|field| (field.field, field.reason))
                    .collect(),
            )
        })?;
        Ok(checked.get().clone())
    }

    fn check_path(&self) -> Result<(), ControlError> {
        let ok = |b: u8| b.is_ascii_alphanumeric() || b"/-_.~".contains(&b);
        let path = &self.path;
        if path.starts_with('/')
            && path.len() <= 256
            && path.bytes().all(ok)
            && !path.contains("..")
        {
            return Ok(());
        }
        let reason = "begins with '/' and has at most 256 characters of a-z, A-Z, 0-9, '/', '-', '_', '.' and '~'";
        Err(ControlError::Fields(vec![(
            "path".to_owned(),
            reason.to_owned(),
        )]))
    }

    fn egress_rules(&self) -> Result<Vec<EgressRule>, ControlError> {
        let parse = |(number, text): (usize, &String)| {
            let (host, ports) = text
                .split_once(':')
                .map_or((text.as_str(), None), |(h, p)| (h, Some(p)));
            let ports: Result<Vec<u16>, _> = ports
                .iter()
                .flat_map(|list| list.split(','))
                .map(str::parse)
                .collect();
            let wrong = |_| {
                let reason = "is written as a host and, after ':', ports with commas between them: api.example.com:443,8080";
                ControlError::Fields(vec![(format!("egress[{number}]"), reason.to_owned())])
            };
            Ok(EgressRule {
                host: host.to_owned(),
                ports: ports.map_err(wrong)?,
            })
        };
        self.egress.iter().enumerate().map(parse).collect()
    }
}

/// How deep settings may be nested; they are three deep.
const DEPTH_MAX: usize = 8;

fn merge(into: &mut Value, patch: &Value, depth: usize) {
    let (Value::Object(members), true) = (patch, depth < DEPTH_MAX) else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(serde_json::Map::new());
    }
    let Some(object) = into.as_object_mut() else {
        return;
    };
    for (name, value) in members {
        if value.is_null() {
            object.remove(name);
        } else {
            merge(
                object.entry(name.clone()).or_insert(Value::Null),
                value,
                depth + 1,
            );
        }
    }
}

/// Makes a server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    /// Its id, which stands in its URL; a random one if absent.
    #[serde(default)]
    pub id: Option<String>,
    /// The owner.
    pub tenant: String,
    /// What differs from the defaults.
    #[serde(default)]
    #[schema(value_type = Settings)]
    pub settings: Value,
}

/// A server as it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerView {
    /// Its id.
    #[schema(value_type = String)]
    pub id: ServerId,
    /// Its owner.
    #[schema(value_type = String)]
    pub tenant: TenantId,
    /// Where MCP clients connect.
    pub url: String,
    /// `empty` (nothing uploaded), `uploaded` (not built yet) or `deployed`.
    pub state: &'static str,
    /// The newest upload is not what runs; build it.
    pub stale: bool,
    /// The upload that runs, or else the newest.
    #[schema(value_type = Object)]
    pub bundle: Option<BundleInfo>,
    /// Its settings.
    pub settings: Settings,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was changed last, in milliseconds since 1970.
    pub changed_ms: i64,
    /// Its sandboxes now; absent when the runner cannot be asked.
    pub live: Option<Live>,
    /// Why the gateway does not serve it although it is deployed; absent when it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A server's sandboxes now.
#[derive(Debug, Serialize, ToSchema)]
pub struct Live {
    /// Each with its state and what it uses.
    #[schema(value_type = Vec<Object>)]
    pub sandboxes: Vec<SandboxStats>,
    /// Calls that wait for a place.
    pub queued: u32,
    /// Why the last start failed.
    pub last_error: Option<String>,
}

/// A server as it is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    pub id: ServerId,
    pub tenant: TenantId,
    pub created_ms: i64,
    pub changed_ms: i64,
    pub settings: Settings,
    pub policy: Policy,
    pub uploaded: Option<BundleInfo>,
    pub deployed: Option<BundleInfo>,
}

impl Stored {
    pub fn new(id: ServerId, tenant: TenantId, settings: Settings, now_ms: i64) -> Self {
        let policy = Policy::default();
        Self {
            id,
            tenant,
            created_ms: now_ms,
            changed_ms: now_ms,
            settings,
            policy,
            uploaded: None,
            deployed: None,
        }
    }

    pub fn view(self, public_url: &str, live: Option<Live>, refused: Option<String>) -> ServerView {
        let state = match (&self.deployed, &self.uploaded) {
            (Some(_), _) => "deployed",
            (None, Some(_)) => "uploaded",
            (None, None) => "empty",
        };
        ServerView {
            url: format!("{public_url}/sandbox/{}/mcp", self.id),
            state,
            stale: self.uploaded.is_some() && self.uploaded != self.deployed,
            bundle: self.deployed.or(self.uploaded),
            id: self.id,
            tenant: self.tenant,
            settings: self.settings,
            created_ms: self.created_ms,
            changed_ms: self.changed_ms,
            live,
            refused,
        }
    }
}

/// Runs one tool once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: serde_json::Map<String, Value>,
    /// 1 to 900; default 30.
    #[serde(default = "timeout_default")]
    pub timeout_s: u32,
}

fn timeout_default() -> u32 {
    30
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExecReply {
    /// The tool's result, as the server's policy left it; `isError` in it is the tool's own word, or Weir's.
    #[schema(value_type = Object)]
    pub result: Value,
    /// From the request to the result, in milliseconds.
    pub duration_ms: u64,
    /// What the server wrote meanwhile, at most 200 lines. With `shared` isolation other calls' lines may be among them.
    pub logs: Vec<LogView>,
}

/// One line of a log.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogView {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Which sandbox.
    pub sandbox: String,
    /// `stdout`, `stderr` or `lifecycle`.
    #[schema(value_type = String)]
    pub stream: runner_api::LogStream,
    /// The text.
    pub text: String,
    /// Lines that were lost before this one.
    pub dropped: u64,
}

impl From<runner_api::LogLine> for LogView {
    fn from(line: runner_api::LogLine) -> Self {
        let sandbox = line.sandbox.to_string();
        Self {
            at_ms: line.at_unix_ms,
            sandbox,
            stream: line.stream,
            text: line.text,
            dropped: line.dropped,
        }
    }
}

/// What was used in one hour.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UsageView {
    /// The owner.
    pub tenant: String,
    /// The server.
    pub server: String,
    /// Start of the hour, in seconds since 1970.
    pub hour_unix_s: i64,
    /// Processor time, in seconds.
    pub cpu_s: f64,
    /// Memory over time, in GiB-seconds.
    pub memory_gb_s: f64,
    /// Storage over time, in GiB-seconds.
    pub storage_gb_s: f64,
    /// Bytes to the outside.
    pub egress_bytes: i64,
    /// Leases: calls and sessions.
    pub requests: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bundle() -> BundleInfo {
        serde_json::from_value(json!({
            "id": "ab".repeat(32), "tenant": "acme", "runtime": "python", "packed_bytes": 1, "unpacked_bytes": 1, "files": 1,
            "root_names": [], "dependencies": [],
        }))
        .expect("a bundle")
    }

    fn spec(patch: Value) -> Result<ServerSpec, ControlError> {
        let (tenant, id) = (
            TenantId::parse("acme").expect("an id"),
            ServerId::parse("one").expect("an id"),
        );
        Settings::default()
            .patched(&patch)?
            .spec(&tenant, &id, &bundle(), [])
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let one = Settings::default()
            .patched(&json!({"limits": {"memory_mb": 1024}, "env": {"A": "1", "B": "2"}}))
            .expect("taken");
        assert_eq!(
            (one.limits.memory_mb, one.limits.cpu_shares),
            (1024, Limits::default().cpu_shares)
        );
        let two = one
            .patched(&json!({"env": {"A": null}, "limits": null}))
            .expect("taken");
        assert_eq!((two.env.len(), two.limits), (1, Limits::default()));
        for bad in [
            json!({"memory": 1}),
            json!({"limits": {"memory": 1}}),
            json!([]),
            json!(1),
            json!({"port": 70000}),
            json!({"isolation": "none"}),
        ] {
            assert!(Settings::default().patched(&bad).is_err(), "{bad}");
        }
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "a": deep });
        }
        assert!(Settings::default().patched(&deep).is_err());
    }

    #[test]
    fn egress_rules_and_paths_are_read() {
        let rules = spec(json!({"egress": ["a.example.com", "*.b.example.com:443,8080"]}))
            .expect("taken")
            .egress;
        assert_eq!(
            (rules[0].host.as_str(), rules[0].ports.as_slice()),
            ("a.example.com", &[][..])
        );
        assert_eq!(
            (rules[1].host.as_str(), rules[1].ports.as_slice()),
            ("*.b.example.com", &[443, 8080][..])
        );
        for bad in [
            json!({"egress": ["a.example.com:"]}),
            json!({"egress": ["a.example.com:http"]}),
            json!({"egress": ["a.example.com:1:2"]}),
            json!({"path": "mcp"}),
            json!({"path": "/a/../b"}),
            json!({"path": "/a b"}),
            json!({"path": "/a?x"}),
            json!({"limits": {"memory_mb": 64}}),
            json!({"env": {"LD_PRELOAD": "x"}}),
        ] {
            assert!(
                matches!(spec(bad.clone()), Err(ControlError::Fields(_))),
                "{bad}"
            );
        }
    }
}
