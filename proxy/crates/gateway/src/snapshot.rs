//! The desired state, compiled: what a request is judged by from its first byte to its last.
//!
//! A snapshot never changes. A reload compiles a new one beside it and swaps; requests under way
//! keep the one they started with. What must survive a reload (connections, children, sessions,
//! counters) lives in [`Runtime`] and is carried over where the upstream stayed the same; where the limits changed, its
//! link is made anew for them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use dlp_policy::{Evaluators, OwnError, PolicyError, PolicyTable, ToolFilter};
use dlp_scan::{RuleError, RuleSet};
use domain::{
    AuditMode, CallLimits, Desired, Limits, Plugin, Server, ServerId, TenantId, ToolPinning,
    Upstream,
};
use mcp_codec::sse::SseLimits;

use crate::authn::{Keys, Principal};
use crate::breaker::Breaker;
use crate::gate::Gate;
use crate::metrics::ServerMetrics;
use crate::pins::{PinSource, Pins};
use crate::seldom::Seldom;
use crate::tools::ToolCache;
use crate::upstream::{Link, LinkError, LinkOptions};

/// Everything a request needs to know.
#[derive(Debug)]
pub struct Snapshot {
    /// Bounds of the data plane.
    pub limits: Limits,
    /// The same for the decoder.
    pub codec: mcp_codec::Limits,
    /// The same for event streams.
    pub sse: SseLimits,
    /// When records must be on disk.
    pub audit: AuditMode,
    /// Browser origins.
    pub origins: Vec<String>,
    /// Host names.
    pub hosts: Vec<String>,
    keys: Keys,
    servers: HashMap<ServerId, Arc<ServerEntry>>,
}

/// One server, ready to be called.
#[derive(Debug)]
pub struct ServerEntry {
    /// Its id.
    pub id: Arc<str>,
    /// Its tenant.
    pub tenant: Arc<str>,
    /// The rules its messages are judged by: the built-in ones, the operator's, its tenant's and its own.
    pub rules: Arc<RuleSet>,
    /// Its compiled policy.
    pub policy: PolicyTable,
    /// Its plugins, ready to judge.
    pub evaluators: Evaluators,
    /// What becomes of tools that nobody approved.
    pub pinning: ToolPinning,
    /// Which definitions of its tools were approved.
    pub pins: Arc<Pins>,
    /// Its call limits.
    pub gate: Arc<Gate>,
    /// Its tenant's call limits.
    pub tenant_gate: Arc<Gate>,
    /// What survives a reload.
    pub runtime: Arc<Runtime>,
    metrics: OnceLock<ServerMetrics>,
}

impl ServerEntry {
    /// Metric handles, registered when they are first wanted.
    pub fn metrics(&self) -> &ServerMetrics {
        let register = || ServerMetrics::new(&self.tenant, &self.id);
        self.metrics.get_or_init(register)
    }
}

/// The part of a server that outlives a snapshot.
#[derive(Debug)]
pub struct Runtime {
    /// How it is reached.
    pub link: Link,
    /// Its declared tools.
    pub tools: Arc<ToolCache>,
    /// Its circuit.
    pub breaker: Arc<Breaker>,
    /// How often it is said that it knows no endpoint.
    pub wrong_path: Arc<Seldom>,
    /// How often it is said that a message of it among events was dropped.
    pub dropped: Arc<Seldom>,
    /// How often it is said that it asks clients what only a session can answer.
    pub asks: Arc<Seldom>,
    pub(crate) made_from: Upstream,
    made_for: Limits,
}

impl Runtime {
    /// The same server under other limits.
    fn with_limits(&self, limits: &Limits) -> Self {
        Self {
            link: self.link.with_limits(limits),
            tools: Arc::clone(&self.tools),
            breaker: Arc::clone(&self.breaker),
            wrong_path: Arc::clone(&self.wrong_path),
            asks: Arc::clone(&self.asks),
            dropped: Arc::clone(&self.dropped),
            made_from: self.made_from.clone(),
            made_for: limits.clone(),
        }
    }
}

/// Why a desired state was refused. The old snapshot stays.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A detection rule.
    #[error("rules: {0}")]
    Rules(#[source] RuleError),
    /// A tenant's rules, lists of values or allowlist.
    #[error("tenant {tenant}: {source}")]
    TenantRules {
        /// The tenant.
        tenant: TenantId,
        /// What is wrong.
        source: OwnError,
    },
    /// A server's.
    #[error("server {server}: {source}")]
    ServerRules {
        /// The server.
        server: ServerId,
        /// What is wrong.
        source: OwnError,
    },
    /// A policy.
    #[error("server {server}: policy: {source}")]
    Policy {
        /// The server.
        server: ServerId,
        /// What is wrong.
        source: PolicyError,
    },
    /// Its pins of tools.
    #[error("server {server}: pins of its tools: {problem}")]
    Pins {
        /// The server.
        server: ServerId,
        /// What is wrong.
        problem: String,
    },
    /// A plugin.
    #[error("server {server}: plugins: {problem}")]
    Plugin {
        /// The server.
        server: ServerId,
        /// What is wrong.
        problem: String,
    },
    /// A glob in a key's tool lists.
    #[error("key {key}: tools.{field}: {problem}")]
    KeyTools {
        /// The key's id.
        key: String,
        /// The field.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// An upstream.
    #[error("server {server}: upstream: {source}")]
    Upstream {
        /// The server.
        server: ServerId,
        /// What is wrong.
        source: LinkError,
    },
}

/// Makes evaluators of a server's plugins. Stands outside: the data plane runs no plugin's code.
pub trait PluginSource: Send + Sync {
    /// The evaluators of one server, of one without plugins too. May take seconds: it is asked before a snapshot is
    /// swapped in, never while a message waits.
    ///
    /// # Errors
    /// Which binding cannot be carried out, and why. The snapshot is refused then.
    fn evaluators(
        &self,
        tenant: &TenantId,
        plugins: &BTreeMap<String, Plugin>,
        id: &ServerId,
        server: &Server,
        rules: &Arc<RuleSet>,
    ) -> Result<Evaluators, String>;
}

/// What a snapshot is made of beside the desired state.
#[derive(Clone, Copy, Default)]
pub struct Sources<'a> {
    /// Makes evaluators of plugins.
    pub plugins: Option<&'a dyn PluginSource>,
    /// Keeps pins of tools.
    pub pins: Option<&'a dyn PinSource>,
}

impl Snapshot {
    /// Compiles a desired state, taking over what may live on from the one before.
    ///
    /// # Errors
    /// The first thing that does not compile; nothing is taken over then.
    pub fn compile(
        desired: &Desired,
        before: Option<&Snapshot>,
        options: &LinkOptions,
        sources: Sources<'_>,
    ) -> Result<Self, CompileError> {
        let rules = tenant_rules(desired)?;
        let tenant_gates: HashMap<_, _> = desired
            .tenants
            .iter()
            .map(|(id, tenant)| {
                let old = before.and_then(|b| b.tenant_gate(id.as_str()));
                (id.clone(), keep_gate(old, &tenant.limits))
            })
            .collect();
        let mut servers = HashMap::new();
        for (id, server) in &desired.servers {
            let old = before.and_then(|b| b.servers.get(id));
            let tenant_gate = tenant_gates
                .get(&server.tenant)
                .cloned()
                .unwrap_or_else(|| Gate::new(&CallLimits::default()));
            let rules = rules.of(server, id)?;
            let evaluators = compile_plugins(desired, id, server, &rules, sources.plugins)?;
            let mut entry = compile_server(desired, id, server, rules, old, tenant_gate, options)?;
            entry.evaluators = evaluators;
            entry.pins = pins_of(entry.pinning, id, server, old, sources.pins)?;
            entry.pins.judges_by(&entry.rules);
            servers.insert(id.clone(), Arc::new(entry));
        }
        Ok(Self {
            codec: crate::codec_limits(&desired.limits),
            sse: SseLimits {
                event_bytes_max: desired.limits.message_bytes_max,
                line_bytes_max: desired.limits.message_bytes_max + 64,
                id_bytes_max: 1024,
            },
            limits: desired.limits.clone(),
            audit: desired.audit,
            origins: desired.cors.origins.clone(),
            hosts: desired.hosts.clone(),
            keys: compile_keys(desired, before)?,
            servers,
        })
    }

    /// The keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// A server by its id.
    pub fn server(&self, id: &str) -> Option<&Arc<ServerEntry>> {
        self.servers.get(id)
    }

    /// All servers.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ServerEntry>> {
        self.servers.values()
    }

    /// Registers the metrics of all servers. Of what is only checked nothing is to be seen in them.
    pub fn register(&self) {
        for server in self.servers.values() {
            server.metrics();
        }
    }

    fn tenant_gate(&self, tenant: &str) -> Option<&Arc<Gate>> {
        self.servers
            .values()
            .find(|s| &*s.tenant == tenant)
            .map(|s| &s.tenant_gate)
    }
}

/// The rule set of each tenant, and the one below them.
struct TenantRules {
    base: Arc<RuleSet>,
    tenants: HashMap<TenantId, Arc<RuleSet>>,
}

fn tenant_rules(desired: &Desired) -> Result<TenantRules, CompileError> {
    let base = dlp_policy::base_rules(&desired.rules).map_err(CompileError::Rules)?;
    let mut tenants = HashMap::new();
    for (id, tenant) in &desired.tenants {
        let rules = dlp_policy::own_rules(&base, &tenant.detection, &tenant.policy.allow);
        let rules = rules.map_err(|source| CompileError::TenantRules {
            tenant: id.clone(),
            source,
        })?;
        tenants.insert(id.clone(), rules);
    }
    Ok(TenantRules { base, tenants })
}

impl TenantRules {
    fn of(&self, server: &Server, id: &ServerId) -> Result<Arc<RuleSet>, CompileError> {
        let tenant = self.tenants.get(&server.tenant).unwrap_or(&self.base);
        dlp_policy::own_rules(tenant, &server.detection, &server.policy.allow).map_err(|source| {
            CompileError::ServerRules {
                server: id.clone(),
                source,
            }
        })
    }
}

fn compile_server(
    desired: &Desired,
    id: &ServerId,
    server: &Server,
    rules: Arc<RuleSet>,
    old: Option<&Arc<ServerEntry>>,
    tenant_gate: Arc<Gate>,
    options: &LinkOptions,
) -> Result<ServerEntry, CompileError> {
    let none = domain::Policy::default();
    let tenant_policy = desired
        .tenants
        .get(&server.tenant)
        .map_or(&none, |t| &t.policy);
    let policy = PolicyTable::compile(tenant_policy, &server.policy, &rules).map_err(|source| {
        CompileError::Policy {
            server: id.clone(),
            source,
        }
    })?;
    let own = old.filter(|o| o.tenant.as_ref() == server.tenant.as_str());
    let kept = own.filter(|o| o.runtime.made_from == server.upstream);
    // Other credentials or another breaker lead to the same server, which has the same tools.
    let tools = own
        .filter(|o| o.runtime.made_from.transport == server.upstream.transport)
        .map(|o| Arc::clone(&o.runtime.tools));
    let runtime = match kept.map(|old| &old.runtime) {
        Some(old) if old.made_for == desired.limits => Arc::clone(old),
        Some(old) => Arc::new(old.with_limits(&desired.limits)),
        None => Arc::new(Runtime {
            link: Link::new(
                id,
                &server.tenant,
                &server.upstream,
                &desired.limits,
                options,
            )
            .map_err(|source| CompileError::Upstream {
                server: id.clone(),
                source,
            })?,
            tools: tools.unwrap_or_default(),
            wrong_path: Arc::new(Seldom::new(1, Duration::from_secs(10))),
            dropped: Arc::new(Seldom::new(5, Duration::from_secs(10))),
            asks: Arc::new(Seldom::new(1, Duration::from_secs(60))),
            breaker: Arc::new(Breaker::new(
                server.upstream.breaker_failures,
                Duration::from_millis(server.upstream.breaker_open_ms),
            )),
            made_from: server.upstream.clone(),
            made_for: desired.limits.clone(),
        }),
    };
    Ok(ServerEntry {
        id: id.as_str().into(),
        tenant: server.tenant.as_str().into(),
        rules,
        policy,
        evaluators: Evaluators::default(),
        pinning: pinning_of(tenant_policy, &server.policy),
        pins: Arc::default(),
        gate: keep_gate(old.map(|o| &o.gate), &server.limits),
        tenant_gate,
        runtime,
        metrics: OnceLock::new(),
    })
}

/// The server's word, else its tenant's. What is only tried out holds nobody up.
fn pinning_of(tenant: &domain::Policy, server: &domain::Policy) -> ToolPinning {
    let said = server.tool_pinning.or(tenant.tool_pinning);
    match said.unwrap_or_default() {
        ToolPinning::Hold if server.dry_run => ToolPinning::Warn,
        said => said,
    }
}

fn pins_of(
    pinning: ToolPinning,
    id: &ServerId,
    server: &Server,
    old: Option<&Arc<ServerEntry>>,
    source: Option<&dyn PinSource>,
) -> Result<Arc<Pins>, CompileError> {
    match source {
        Some(source) if pinning != ToolPinning::Off => {
            source
                .pins(&server.tenant, id)
                .map_err(|problem| CompileError::Pins {
                    server: id.clone(),
                    problem,
                })
        }
        _ => {
            let own = old.filter(|old| *old.tenant == *server.tenant.as_str());
            Ok(own.map(|old| Arc::clone(&old.pins)).unwrap_or_default())
        }
    }
}

fn compile_plugins(
    desired: &Desired,
    id: &ServerId,
    server: &Server,
    rules: &Arc<RuleSet>,
    source: Option<&dyn PluginSource>,
) -> Result<Evaluators, CompileError> {
    let none = BTreeMap::new();
    let plugins = desired.tenants.get(&server.tenant);
    let plugins = plugins.map_or(&none, |tenant| &tenant.plugins);
    let made = match source {
        // Also without plugins: somebody may look on.
        Some(source) => source.evaluators(&server.tenant, plugins, id, server, rules),
        None if server.plugins.is_empty() => Ok(Evaluators::default()),
        // A binding that nobody carries out would be a hole.
        None => Err("plugins do not run here".to_owned()),
    };
    made.map_err(|problem| CompileError::Plugin {
        server: id.clone(),
        problem,
    })
}

fn compile_keys(desired: &Desired, before: Option<&Snapshot>) -> Result<Keys, CompileError> {
    let mut keys = Keys::default();
    for key in &desired.keys {
        let tools =
            ToolFilter::compile(&key.tools).map_err(|(field, problem)| CompileError::KeyTools {
                key: key.id.to_string(),
                field,
                problem: problem.to_string(),
            })?;
        let old = before.and_then(|b| b.keys.by_hash(&key.hash));
        let principal = Principal {
            owner: format!("{}/{}", key.tenant, key.id).into(),
            key: Some(key.hash),
            key_id: key.id.as_str().into(),
            tenant: Some(key.tenant.as_str().into()),
            servers: key.servers.clone(),
            tools,
            gate: keep_gate(old.map(|p| &p.gate), &key.limits),
        };
        keys.add(key.hash, Arc::new(principal));
    }
    if desired.open_access {
        keys.open_to_all(Arc::new(Principal {
            owner: "local/local".into(),
            key: None,
            key_id: "local".into(),
            tenant: None,
            servers: Vec::new(),
            tools: ToolFilter::default(),
            gate: Gate::new(&CallLimits::default()),
        }));
    }
    Ok(keys)
}

/// A gate that did not change keeps its counts: a reload gives nobody a fresh burst.
fn keep_gate(old: Option<&Arc<Gate>>, limits: &CallLimits) -> Arc<Gate> {
    match old {
        Some(gate) if gate.limits() == limits => Arc::clone(gate),
        _ => Gate::new(limits),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use domain::{Cors, Detection, Policy, UpstreamAuth, UpstreamTransport};

    use super::*;

    fn desired(upstream: Upstream) -> Desired {
        let server = Server {
            tenant: TenantId::parse("acme").unwrap(),
            upstream,
            policy: Policy::default(),
            limits: CallLimits::default(),
            detection: Detection::default(),
            plugins: Vec::new(),
        };
        Desired {
            limits: Limits::default(),
            tenants: BTreeMap::new(),
            servers: [(ServerId::parse("one").unwrap(), server)].into(),
            keys: Vec::new(),
            open_access: true,
            cors: Cors { origins: vec![] },
            hosts: Vec::new(),
            tls: None,
            rules: Vec::new(),
            audit: AuditMode::Off,
        }
    }

    #[test]
    fn tools_are_forgotten_with_their_server_only() {
        let at = |url: &str| Upstream {
            transport: UpstreamTransport::Http {
                url: url.to_owned(),
                ca_file: None::<PathBuf>,
            },
            auth: UpstreamAuth::None,
            breaker_failures: 5,
            breaker_open_ms: 1000,
            tells_stateless: true,
        };
        let (options, first) = (LinkOptions::default(), at("http://127.0.0.1:9000/mcp"));
        let compile = |upstream: &Upstream, before: Option<&Snapshot>| {
            Snapshot::compile(
                &desired(upstream.clone()),
                before,
                &options,
                Sources::default(),
            )
            .unwrap()
        };
        let before = compile(&first, None);
        let tools = |of: &Snapshot| Arc::clone(&of.server("one").unwrap().runtime.tools);
        let breaker = Upstream {
            breaker_failures: 7,
            ..first
        };
        let other = compile(&breaker, Some(&before));
        assert!(Arc::ptr_eq(&tools(&before), &tools(&other)));
        let moved = compile(&at("http://127.0.0.1:9001/mcp"), Some(&other));
        assert!(!Arc::ptr_eq(&tools(&other), &tools(&moved)));
    }
}
