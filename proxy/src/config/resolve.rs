//! What the file means: shapes to [`Desired`], with every reference followed and every value checked.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dlp_policy::{Level, PolicyTable, ToolFilter};
use dlp_scan::RuleSet;
use domain::{
    ApiKey, AuditMode, CallLimits, Cors, Desired, IdError, KeyHash, KeyId, ListenerTls, Policy,
    Server, ServerId, Tenant, TenantId,
};

use super::check;
use super::error::{FieldError, FieldPath};
use super::load::{FILE_BYTES_MAX, read_bounded};
use super::own;
use super::raw;
use super::{Hosting, Loaded, Otlp, keys};

const LISTEN_DEFAULT: &str = "127.0.0.1:8080";
const ADMIN_LISTEN_DEFAULT: &str = "127.0.0.1:8081";
const HOSTING_LISTEN_DEFAULT: &str = "127.0.0.1:8090";
const RUNNER_DEFAULT: &str = "/run/weir-runner/runner.sock";
/// Folder of the audit log where nothing else is said.
pub const DATA_DIR_DEFAULT: &str = "weir-data";

/// What the file does not say itself.
pub(super) struct Source<'a> {
    /// The file, if there is one: relative paths are taken from its folder.
    pub file: Option<&'a Path>,
    /// Answers for environment variables.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The admin listener takes a free port where its default is taken (`weir proxy`).
    pub admin_moves: bool,
    /// Whether secrets are needed.
    pub secrets: Secrets,
}

/// What becomes of a secret that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrets {
    /// The configuration is refused.
    Read,
    /// It is left out: nothing will be served.
    Optional,
    /// It is left out and noted where it is an environment variable: the file is checked where it will not run.
    Noted,
}

/// Resolves a configuration, whole or not at all.
pub(super) fn resolve(config: raw::Config, source: Source<'_>) -> Result<Loaded, FieldError> {
    let mut resolver = Resolver {
        watched: source.file.map(PathBuf::from).into_iter().collect(),
        unset: Vec::new(),
        own: None,
        source,
    };
    resolver.config(config)
}

pub(super) struct Resolver<'a> {
    pub(super) source: Source<'a>,
    watched: Vec<PathBuf>,
    /// Complaints about environment variables that are only noted.
    pub(super) unset: Vec<String>,
    /// Where Weir itself listens, once that is known.
    pub(super) own: Option<SocketAddr>,
}

impl Resolver<'_> {
    fn config(&mut self, raw: raw::Config) -> Result<Loaded, FieldError> {
        let top = FieldPath::default();
        let (listen, admin_listen) = listeners(&raw, self.source.admin_moves, &top)?;
        self.own = Some(listen);
        check::ranges(&raw.limits).or_else(|(f, p)| top.key("limits").key(&f).error(p))?;
        let tls = self.tls(raw.tls, &top.key("tls"))?;
        let hosts = each(&raw.hosts, &top.key("hosts"), check::host)?;
        let origins = each(&raw.cors.origins, &top.join("cors.origins"), check::origin)?;
        check_retention(&raw.audit, &top.key("audit"))?;
        let rules = self.rules(&raw.rules, &top.key("rules"))?;
        let rule_set =
            dlp_policy::base_rules(&rules).or_else(|e| top.key("rules").error(e.to_string()))?;
        let data_dir = self.path(raw.data_dir.as_deref().unwrap_or(DATA_DIR_DEFAULT.as_ref()));
        let otlp = self.otlp(raw.otlp, &top.key("otlp"))?;
        let hosting = self.hosting(
            raw.hosting,
            [("listen", Some(listen)), ("admin_listen", admin_listen)],
            &top.key("hosting"),
        )?;
        let mut people = self.tenants(raw.tenants, &rule_set, &top.key("tenants"))?;
        let plugin_generation = self.pushed(&data_dir, &mut people.tenants, &mut people.servers)?;
        let open_access = people.keys.is_empty();
        if open_access && !listen.ip().is_loopback() {
            return top.key("listen").error(format!(
                "{listen} can be reached from other machines, and no tenant has a key: anyone could call. \
                 Listen on 127.0.0.1, or make a key with `weir key new` and add it under `keys`"
            ));
        }
        let desired = Desired {
            limits: raw.limits,
            tenants: people.tenants,
            servers: people.servers,
            keys: people.keys,
            open_access,
            cors: Cors { origins },
            hosts,
            tls,
            rules,
            audit: raw.audit.mode,
        };
        Ok(Loaded {
            desired,
            listen,
            admin_listen,
            data_dir,
            audit_retention_days: raw.audit.retention_days,
            log: raw.log,
            otlp,
            hosting,
            plugin_generation,
            notes: std::mem::take(&mut self.unset),
            admin_is_default: raw.admin_listen.is_none(),
            files_watched: std::mem::take(&mut self.watched),
        })
    }

    /// A path as the file means it: from the file's folder.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        let folder = self.source.file.and_then(Path::parent);
        let path = folder.map_or_else(|| path.to_owned(), |folder| folder.join(path));
        std::path::absolute(&path).unwrap_or(path)
    }

    pub(super) fn watch(&mut self, path: PathBuf) {
        if !self.watched.contains(&path) {
            self.watched.push(path);
        }
    }

    fn tls(
        &mut self,
        raw: Option<ListenerTls>,
        at: &FieldPath,
    ) -> Result<Option<ListenerTls>, FieldError> {
        let Some(raw) = raw else { return Ok(None) };
        Ok(Some(ListenerTls {
            cert_file: self.pem(&raw.cert_file, "CERTIFICATE", &at.key("cert_file"))?,
            key_file: self.pem(&raw.key_file, "PRIVATE KEY", &at.key("key_file"))?,
        }))
    }

    pub(super) fn rules(
        &mut self,
        files: &[PathBuf],
        at: &FieldPath,
    ) -> Result<Vec<(String, String)>, FieldError> {
        let mut out = Vec::new();
        for (i, file) in files.iter().enumerate() {
            let path = self.path(file);
            let text = read_bounded(&path, FILE_BYTES_MAX)
                .or_else(|problem| at.index(i).error(format!("{} {problem}", path.display())))?;
            out.push((file.display().to_string(), text));
            self.watch(path);
        }
        Ok(out)
    }

    fn otlp(&mut self, raw: Option<raw::Otlp>, at: &FieldPath) -> Result<Option<Otlp>, FieldError> {
        let Some(raw) = raw else { return Ok(None) };
        let endpoint = at.key("endpoint");
        check::url(&raw.endpoint).or_else(|problem| endpoint.error(problem))?;
        if check::url_is_tls(&raw.endpoint) {
            let problem = "traces are sent by plain HTTP only; name a collector on this machine or \
                           in a trusted network, such as http://127.0.0.1:4318, and let it speak TLS";
            return endpoint.error(problem);
        }
        let headers = self.headers(&raw.headers, &at.key("headers"))?;
        Ok(Some(Otlp {
            endpoint: raw.endpoint,
            headers,
        }))
    }

    fn hosting(
        &self,
        raw: Option<raw::Hosting>,
        taken: [(&str, Option<SocketAddr>); 2],
        at: &FieldPath,
    ) -> Result<Option<Hosting>, FieldError> {
        let Some(raw) = raw else { return Ok(None) };
        let listen = check::socket_address(raw.listen.as_deref().unwrap_or(HOSTING_LISTEN_DEFAULT))
            .or_else(|problem| at.key("listen").error(problem))?;
        let overlapping = |(name, at): (&str, Option<SocketAddr>)| {
            let at = at.filter(|at| overlap(*at, listen))?;
            Some(format!("`{name}` ({at})"))
        };
        if let Some(other) = taken.into_iter().find_map(overlapping) {
            let problem = format!("overlaps {other}; take another port");
            return at.key("listen").error(problem);
        }
        if !listen.ip().is_loopback() {
            let problem = "the admin API is plain HTTP and starts programs: it is served on loopback only, such as \
                           127.0.0.1:8090. Put something that speaks TLS before it to reach it from elsewhere";
            return at.key("listen").error(problem);
        }
        if let Some(url) = &raw.public_url {
            check::origin(url).or_else(|problem| at.key("public_url").error(problem))?;
        }
        let runner = raw.runner.unwrap_or_else(|| RUNNER_DEFAULT.into());
        Ok(Some(Hosting {
            runner: self.path(&runner),
            listen,
            public_url: raw.public_url,
        }))
    }

    fn tenants(
        &mut self,
        raw: BTreeMap<String, raw::Tenant>,
        rules: &Arc<RuleSet>,
        at: &FieldPath,
    ) -> Result<People, FieldError> {
        let mut people = People::default();
        for (name, raw) in raw {
            let at = at.key(&name);
            let id = TenantId::parse(&name).or_else(|e| at.error(bad_id("tenant", &e)))?;
            self.tenant(&id, raw, rules, &mut people, &at)?;
        }
        Ok(people)
    }

    fn tenant(
        &mut self,
        id: &TenantId,
        raw: raw::Tenant,
        rules: &Arc<RuleSet>,
        people: &mut People,
        at: &FieldPath,
    ) -> Result<(), FieldError> {
        call_limits(&raw.limits, &at.key("limits"))?;
        let policy = policy_of(&raw.policy, &raw::Policy::default());
        let detection = self.detection(&raw.rules, raw.values, at)?;
        let rules = own::rules_with(rules, &detection, &policy.allow, at)?;
        // A tenant may have no server yet; its policy is checked all the same.
        compile(&policy, &Policy::default(), &rules, at, at)?;
        let plugins = self.plugins(raw.plugins, &raw.plugin_keys, at)?;
        for (name, server) in raw.servers {
            let at = at.key("servers").key(&name);
            let server_id = ServerId::parse(&name).or_else(|e| at.error(bad_id("server", &e)))?;
            if let Some(other) = people.servers.get(&server_id) {
                let owner = &other.tenant;
                return at.error(format!(
                    "tenant {owner:?} has a server of this id too, and ids stand in URLs; rename one",
                    owner = owner.as_str()
                ));
            }
            call_limits(&server.limits, &at.key("limits"))?;
            let own = policy_of(&server.policy, &raw.policy);
            let detection = self.detection(&server.rules, server.values, &at)?;
            let rules = own::rules_with(&rules, &detection, &own.allow, &at)?;
            compile(&policy, &own, &rules, &at, &at)?;
            super::plugins::check_bindings(&server.plugins, &plugins, &at.key("plugins"))?;
            let server = Server {
                plugins: server.plugins,
                tenant: id.clone(),
                upstream: self.upstream(server.upstream, &at.key("upstream"))?,
                policy: own,
                limits: server.limits,
                detection,
            };
            people.servers.insert(server_id, server);
        }
        for (i, key) in raw.keys.into_iter().enumerate() {
            people.add_key(id, key, &at.key("keys").index(i))?;
        }
        let tenant = Tenant {
            policy,
            limits: raw.limits,
            detection,
            plugins,
            plugin_keys: raw.plugin_keys,
        };
        people.tenants.insert(id.clone(), tenant);
        Ok(())
    }
}

/// Tenants, their servers and their keys.
#[derive(Default)]
struct People {
    tenants: BTreeMap<TenantId, Tenant>,
    servers: BTreeMap<ServerId, Server>,
    keys: Vec<ApiKey>,
    key_ids: HashMap<KeyId, FieldPath>,
    key_hashes: HashMap<KeyHash, FieldPath>,
}

impl People {
    fn add_key(
        &mut self,
        tenant: &TenantId,
        raw: raw::Key,
        at: &FieldPath,
    ) -> Result<(), FieldError> {
        let id = KeyId::parse(&raw.id).or_else(|e| at.key("id").error(bad_id("key", &e)))?;
        let hash = key_hash(&raw.hash, &at.key("hash"))?;
        if let Some(other) = self.key_ids.insert(id.clone(), at.clone()) {
            return at.key("id").error(format!(
                "{other} has this id too; audit records could not tell them apart"
            ));
        }
        if let Some(other) = self.key_hashes.insert(hash, at.clone()) {
            return at
                .key("hash")
                .error(format!("{other} is the same key; make one for each"));
        }
        call_limits(&raw.limits, &at.key("limits"))?;
        ToolFilter::compile(&raw.tools)
            .or_else(|(field, problem)| at.key("tools").join(&field).error(problem.to_string()))?;
        check::tool_access(&raw.tools)
            .or_else(|(field, problem)| at.key("tools").join(&field).error(problem))?;
        let servers = raw.servers.iter().enumerate();
        let servers = servers
            .map(|(i, name)| self.server_of(tenant, name, &at.key("servers").index(i)))
            .collect::<Result<_, _>>()?;
        self.keys.push(ApiKey {
            id,
            hash,
            tenant: tenant.clone(),
            servers,
            tools: raw.tools,
            limits: raw.limits,
        });
        Ok(())
    }

    fn server_of(
        &self,
        tenant: &TenantId,
        name: &str,
        at: &FieldPath,
    ) -> Result<ServerId, FieldError> {
        let own = || self.servers.iter().filter(|(_, s)| s.tenant == *tenant);
        if let Some((id, _)) = own().find(|(id, _)| id.as_str() == name) {
            return Ok(id.clone());
        }
        let near = domain::nearest(name, own().map(|(id, _)| id.as_str()));
        let hint = near.map_or_else(String::new, |n| format!("; did you mean {n:?}?"));
        at.error(format!("this tenant has no server {name:?}{hint}"))
    }
}

/// Whether both cannot be bound: one port, at one address or at all of them. All of IPv6 takes in IPv4.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let takes_in =
        |a: IpAddr, b: IpAddr| a == b || a.is_unspecified() && (a.is_ipv6() || b.is_ipv4());
    let ips = (a.ip().to_canonical(), b.ip().to_canonical());
    let meet = takes_in(ips.0, ips.1) || takes_in(ips.1, ips.0);
    a.port() == b.port() && a.port() != 0 && meet
}

fn listeners(
    raw: &raw::Config,
    admin_moves: bool,
    top: &FieldPath,
) -> Result<(SocketAddr, Option<SocketAddr>), FieldError> {
    let listen = check::socket_address(raw.listen.as_deref().unwrap_or(LISTEN_DEFAULT))
        .or_else(|problem| top.key("listen").error(problem))?;
    let at = top.key("admin_listen");
    let admin = match raw.admin_listen.as_deref().unwrap_or(ADMIN_LISTEN_DEFAULT) {
        "off" => None,
        text => Some(check::socket_address(text).or_else(|problem| at.error(problem))?),
    };
    let overlaps = admin.is_some_and(|admin| overlap(admin, listen));
    // The default was written by nobody, and moves.
    if overlaps && !(admin_moves && raw.admin_listen.is_none()) {
        return at.error(format!("overlaps `listen` ({listen}); take another port"));
    }
    Ok((listen, admin))
}

fn check_retention(audit: &raw::Audit, at: &FieldPath) -> Result<(), FieldError> {
    match audit.retention_days {
        Some(days) if days == 0 || days > 36_500 => at
            .key("retention_days")
            .error(format!("{days} is out of range; use 1 to 36500")),
        Some(_) if audit.mode == AuditMode::Off => at
            .key("retention_days")
            .error("means nothing with `mode: off`; take it out"),
        _ => Ok(()),
    }
}

/// Compiles the policy of one server, for its errors only.
fn compile(
    tenant: &Policy,
    server: &Policy,
    rules: &RuleSet,
    tenant_at: &FieldPath,
    server_at: &FieldPath,
) -> Result<(), FieldError> {
    for (policy, at) in [(tenant, tenant_at), (server, server_at)] {
        check::policy_tools(policy)
            .or_else(|(field, problem)| at.key("policy").join(&field).error(problem))?;
    }
    match PolicyTable::compile(tenant, server, rules) {
        Ok(_) => Ok(()),
        Err(e) => {
            let at = match e.level {
                Level::Tenant => tenant_at,
                Level::Server => server_at,
            };
            at.key("policy").join(&e.field).error(e.problem.to_string())
        }
    }
}

/// A server takes its tenant's word where it says nothing itself. The lines stay apart: their level
/// counts when they are equally specific.
fn policy_of(raw: &raw::Policy, above: &raw::Policy) -> Policy {
    Policy {
        dry_run: raw.dry_run.or(above.dry_run).unwrap_or_default(),
        failure_mode: raw.failure_mode.or(above.failure_mode).unwrap_or_default(),
        bindings: raw.bindings.clone(),
        allow: raw.allow.clone(),
        tools: raw.tools.clone(),
        tool_pinning: raw.tool_pinning.or(above.tool_pinning),
    }
}

fn call_limits(limits: &CallLimits, at: &FieldPath) -> Result<(), FieldError> {
    check::ranges(limits).or_else(|(field, problem)| at.key(&field).error(problem))?;
    if let Some(rate) = &limits.rate {
        if !rate.per_second.is_finite() {
            return at.join("rate.per_second").error("is no number");
        }
        let at = at.key("rate");
        check::ranges(rate).or_else(|(field, problem)| at.key(&field).error(problem))?;
    }
    Ok(())
}

fn key_hash(text: &str, at: &FieldPath) -> Result<KeyHash, FieldError> {
    KeyHash::parse(text).map_or_else(
        || {
            at.error(if text.starts_with(keys::KEY_PREFIX) {
                "this is the key itself, which does not belong into a file: make a new one with \
                 `weir key new` and put its `hash` here"
            } else {
                "must be sha256: and 64 hexadecimal digits; `weir key new` prints the line"
            })
        },
        Ok,
    )
}

fn each(
    texts: &[String],
    at: &FieldPath,
    check: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, FieldError> {
    let checked = texts.iter().enumerate();
    checked
        .map(|(i, text)| check(text).or_else(|problem| at.index(i).error(problem)))
        .collect()
}

fn bad_id(what: &str, error: &IdError) -> String {
    format!("a {what} id {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_overlap_where_they_cannot_both_be_bound() {
        for (a, b, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080", true),
            ("127.0.0.1:8080", "127.0.0.1:8081", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            ("127.0.0.1:8080", "127.0.0.2:8080", false),
            ("0.0.0.0:8080", "127.0.0.1:8080", true),
            ("0.0.0.0:8080", "[::1]:8080", false),
            ("[::]:8080", "127.0.0.1:8080", true),
            ("[::]:8080", "0.0.0.0:8080", true),
            ("[::]:8080", "[::1]:8080", true),
            ("[::1]:8080", "127.0.0.1:8080", false),
            ("[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", true),
        ] {
            let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
            assert_eq!(
                (overlap(a, b), overlap(b, a)),
                (expected, expected),
                "{a} {b}"
            );
        }
    }
}
