//! What the file means: shapes to [`Desired`], with every reference followed and every value checked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dlp_policy::{Level, PolicyTable, ToolFilter};
use dlp_scan::RuleSet;
use domain::{
    ApiKey, AuditMode, CallLimits, Cors, Desired, IdError, KeyHash, KeyId, ListenerTls,
    PluginBinding, Policy, Server, ServerId, Tenant, TenantId,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::check;
use super::error::{FieldError, FieldPath};
use super::left_out::LeftOut;
use super::load::{FILE_BYTES_MAX, read_bounded};
use super::plugins::check_bindings;
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

/// Resolves a configuration, whole or not at all. What refers to something that was left out of it is not complained about.
///
/// # Errors
/// All that is wrong with it. There is none where that would only follow from what was left out.
pub(super) fn resolve(
    config: raw::Config,
    source: Source<'_>,
    left_out: &LeftOut,
) -> Result<Loaded, Vec<FieldError>> {
    let mut resolver = Resolver {
        watched: source.file.map(PathBuf::from).into_iter().collect(),
        unset: Vec::new(),
        own: None,
        wrong: Vec::new(),
        left_out,
        source,
    };
    match resolver.config(config) {
        Some(loaded) if resolver.wrong.is_empty() => Ok(loaded),
        _ => Err(resolver.wrong),
    }
}

pub(super) struct Resolver<'a> {
    pub(super) source: Source<'a>,
    watched: Vec<PathBuf>,
    /// Complaints about environment variables that are only noted.
    pub(super) unset: Vec<String>,
    /// Where Weir itself listens, once that is known.
    pub(super) own: Option<SocketAddr>,
    /// What was found to be wrong so far.
    wrong: Vec<FieldError>,
    /// What the file has, but not in the shape of a configuration.
    left_out: &'a LeftOut,
}

impl Resolver<'_> {
    /// Nothing if something is wrong with it.
    fn config(&mut self, raw: raw::Config) -> Option<Loaded> {
        let top = FieldPath::default();
        let listen = self.listen(&raw, &top);
        let admin_listen = self.admin_listen(&raw, listen, &top);
        self.own = listen;
        self.within_ranges(&raw.limits, &top.key("limits"));
        let tls = self.tls(raw.tls, &top.key("tls"));
        let hosts = self.each(&raw.hosts, &top.key("hosts"), check::host);
        let origins = self.each(&raw.cors.origins, &top.join("cors.origins"), check::origin);
        self.ok(check_retention(&raw.audit, &top.key("audit")));
        let rules = self.rules(&raw.rules, &top.key("rules"));
        let rule_set = rules.as_ref().and_then(|rules| {
            let set = dlp_policy::base_rules(rules);
            self.ok(set.or_else(|e| top.key("rules").error(e.to_string())))
        });
        let data_dir = self.path(raw.data_dir.as_deref().unwrap_or(DATA_DIR_DEFAULT.as_ref()));
        let otlp = self.otlp(raw.otlp, &top.key("otlp"));
        let taken = [("listen", listen), ("admin_listen", admin_listen.flatten())];
        let hosting = self.hosting(raw.hosting, taken, &top.key("hosting"));
        let has_keys = raw.tenants.values().any(|tenant| !tenant.keys.is_empty());
        let mut people = self.tenants(raw.tenants, rule_set.as_ref(), &top.key("tenants"));
        let open_access = !has_keys;
        if let Some(listen) = listen
            && open_access
            && !listen.ip().is_loopback()
            && !self.left_out.touches(&top.key("tenants"))
        {
            self.wrong(
                &top.key("listen"),
                format!(
                    "{listen} can be reached from other machines, and no tenant has a key: anyone could call. \
                     Listen on 127.0.0.1, or make a key with `weir key new` and add it under `keys`"
                ),
            );
        }
        // What was pushed is about what there is.
        if !self.wrong.is_empty() {
            return None;
        }
        let pushed = self.pushed(&data_dir, &mut people.tenants, &mut people.servers);
        let plugin_generation = self.ok(pushed)?;
        let desired = Desired {
            limits: raw.limits,
            tenants: people.tenants,
            servers: people.servers,
            keys: people.keys,
            open_access,
            cors: Cors { origins },
            hosts,
            tls: tls?,
            rules: rules?,
            audit: raw.audit.mode,
        };
        Some(Loaded {
            desired,
            listen: listen?,
            admin_listen: admin_listen?,
            data_dir,
            audit_retention_days: raw.audit.retention_days,
            log: raw.log,
            otlp: otlp?,
            hosting: hosting?,
            plugin_generation,
            notes: std::mem::take(&mut self.unset),
            admin_is_default: raw.admin_listen.is_none(),
            files_watched: std::mem::take(&mut self.watched),
        })
    }

    /// What is right; what is wrong is noted.
    pub(super) fn ok<T>(&mut self, result: Result<T, FieldError>) -> Option<T> {
        result.map_err(|error| self.wrong.push(error)).ok()
    }

    pub(super) fn wrong(&mut self, at: &FieldPath, problem: impl Into<String>) {
        self.wrong.push(FieldError {
            field: at.clone(),
            problem: problem.into(),
        });
    }

    /// Notes all of them.
    pub(super) fn wrong_below(&mut self, at: &FieldPath, wrong: Vec<check::Wrong>) {
        for (field, problem) in wrong {
            self.wrong(&at.join(&field), problem);
        }
    }

    pub(super) fn within_ranges<T: JsonSchema + Serialize>(&mut self, value: &T, at: &FieldPath) {
        self.wrong_below(at, check::ranges(value));
    }

    fn each(
        &mut self,
        texts: &[String],
        at: &FieldPath,
        check: impl Fn(&str) -> Result<String, String>,
    ) -> Vec<String> {
        let checked = texts.iter().enumerate();
        checked
            .filter_map(|(i, text)| {
                self.ok(check(text).or_else(|problem| at.index(i).error(problem)))
            })
            .collect()
    }

    fn listen(&mut self, raw: &raw::Config, top: &FieldPath) -> Option<SocketAddr> {
        let text = raw.listen.as_deref().unwrap_or(LISTEN_DEFAULT);
        self.ok(check::socket_address(text).or_else(|problem| top.key("listen").error(problem)))
    }

    fn admin_listen(
        &mut self,
        raw: &raw::Config,
        listen: Option<SocketAddr>,
        top: &FieldPath,
    ) -> Option<Option<SocketAddr>> {
        let at = top.key("admin_listen");
        let text = raw.admin_listen.as_deref().unwrap_or(ADMIN_LISTEN_DEFAULT);
        if text == "off" {
            return Some(None);
        }
        let admin = self.ok(check::socket_address(text).or_else(|problem| at.error(problem)))?;
        // The default was written by nobody, and moves.
        let moves = self.source.admin_moves && raw.admin_listen.is_none();
        if let Some(listen) = listen.filter(|listen| !moves && overlap(admin, *listen)) {
            self.wrong(
                &at,
                format!("overlaps `listen` ({listen}); take another port"),
            );
        }
        Some(Some(admin))
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

    /// Nothing where something is wrong, as with all that follow.
    fn tls(&mut self, raw: Option<ListenerTls>, at: &FieldPath) -> Option<Option<ListenerTls>> {
        let Some(raw) = raw else { return Some(None) };
        let cert_file = self.pem(&raw.cert_file, "CERTIFICATE", &at.key("cert_file"));
        let cert_file = self.ok(cert_file);
        let key_file = self.pem(&raw.key_file, "PRIVATE KEY", &at.key("key_file"));
        let key_file = self.ok(key_file);
        Some(Some(ListenerTls {
            cert_file: cert_file?,
            key_file: key_file?,
        }))
    }

    pub(super) fn rules(
        &mut self,
        files: &[PathBuf],
        at: &FieldPath,
    ) -> Option<Vec<(String, String)>> {
        let mut out = Vec::with_capacity(files.len());
        for (i, file) in files.iter().enumerate() {
            let path = self.path(file);
            match read_bounded(&path, FILE_BYTES_MAX) {
                Ok(text) => out.push((file.display().to_string(), text)),
                Err(problem) => {
                    self.wrong(&at.index(i), format!("{} {problem}", path.display()));
                }
            }
            self.watch(path);
        }
        (out.len() == files.len()).then_some(out)
    }

    fn otlp(&mut self, raw: Option<raw::Otlp>, at: &FieldPath) -> Option<Option<Otlp>> {
        let Some(raw) = raw else { return Some(None) };
        let endpoint = at.key("endpoint");
        match check::url(&raw.endpoint) {
            Err(problem) => self.wrong(&endpoint, problem),
            Ok(()) if check::url_is_tls(&raw.endpoint) => self.wrong(
                &endpoint,
                "traces are sent by plain HTTP only; name a collector on this machine or \
                 in a trusted network, such as http://127.0.0.1:4318, and let it speak TLS",
            ),
            Ok(()) => {}
        }
        let headers = self.headers(&raw.headers, &at.key("headers"));
        Some(Some(Otlp {
            endpoint: raw.endpoint,
            headers,
        }))
    }

    fn hosting(
        &mut self,
        raw: Option<raw::Hosting>,
        taken: [(&str, Option<SocketAddr>); 2],
        at: &FieldPath,
    ) -> Option<Option<Hosting>> {
        let Some(raw) = raw else { return Some(None) };
        let listen = hosting_listen(&raw, taken, &at.key("listen"));
        let listen = self.ok(listen);
        if let Some(Err(problem)) = raw.public_url.as_deref().map(check::origin) {
            self.wrong(&at.key("public_url"), problem);
        }
        let runner = raw.runner.unwrap_or_else(|| RUNNER_DEFAULT.into());
        Some(Some(Hosting {
            runner: self.path(&runner),
            listen: listen?,
            public_url: raw.public_url,
        }))
    }

    fn tenants(
        &mut self,
        raw: BTreeMap<String, raw::Tenant>,
        rules: Option<&Arc<RuleSet>>,
        at: &FieldPath,
    ) -> People {
        let mut people = People::default();
        for (name, raw) in raw {
            let at = at.key(&name);
            let id = TenantId::parse(&name).or_else(|e| at.error(bad_id("tenant", &e)));
            if let Some(id) = self.ok(id) {
                self.tenant(&id, raw, rules, &mut people, &at);
            }
        }
        people
    }

    fn tenant(
        &mut self,
        id: &TenantId,
        raw: raw::Tenant,
        rules: Option<&Arc<RuleSet>>,
        people: &mut People,
        at: &FieldPath,
    ) {
        self.call_limits(&raw.limits, &at.key("limits"));
        let policy = policy_of(&raw.policy, &raw::Policy::default());
        let detection = self.detection(&raw.rules, raw.values, at);
        let rules = self.rules_with(rules, detection.as_ref(), &policy.allow, at);
        // A tenant may have no server yet; its policy is checked all the same.
        self.policy(&Policy::default(), &policy, rules.as_ref(), at);
        let names: Vec<String> = raw.plugins.keys().cloned().collect();
        let plugins = self.plugins(raw.plugins, &raw.plugin_keys, at);
        let servers: BTreeSet<String> = raw.servers.keys().cloned().collect();
        for (name, server) in raw.servers {
            let at = at.key("servers").key(&name);
            let server_id = ServerId::parse(&name).or_else(|e| at.error(bad_id("server", &e)));
            let Some(server_id) = self.ok(server_id) else {
                continue;
            };
            if let Some(owner) = people.owners.insert(server_id.clone(), id.clone()) {
                let owner = owner.as_str();
                let problem = format!(
                    "tenant {owner:?} has a server of this id too, and ids stand in URLs; rename one"
                );
                self.wrong(&at, problem);
                continue;
            }
            self.call_limits(&server.limits, &at.key("limits"));
            let own = policy_of(&server.policy, &raw.policy);
            let detection = self.detection(&server.rules, server.values, &at);
            let rules = self.rules_with(rules.as_ref(), detection.as_ref(), &own.allow, &at);
            self.policy(&policy, &own, rules.as_ref(), &at);
            self.bindings(&server.plugins, &names, &at.key("plugins"));
            let upstream = self.upstream(server.upstream, &at.key("upstream"));
            let (Some(detection), Some(upstream)) = (detection, upstream) else {
                continue;
            };
            let server = Server {
                plugins: server.plugins,
                tenant: id.clone(),
                upstream,
                policy: own,
                limits: server.limits,
                detection,
            };
            people.servers.insert(server_id, server);
        }
        for (i, key) in raw.keys.into_iter().enumerate() {
            self.key(people, id, key, &servers, &at.key("keys").index(i));
        }
        let tenant = detection.map(|detection| Tenant {
            policy,
            limits: raw.limits,
            detection,
            plugins,
            plugin_keys: raw.plugin_keys,
        });
        people
            .tenants
            .extend(tenant.map(|tenant| (id.clone(), tenant)));
    }

    fn key(
        &mut self,
        people: &mut People,
        tenant: &TenantId,
        raw: raw::Key,
        servers: &BTreeSet<String>,
        at: &FieldPath,
    ) {
        let id = KeyId::parse(&raw.id).or_else(|e| at.key("id").error(bad_id("key", &e)));
        let id = self.ok(id);
        let hash = self.ok(key_hash(&raw.hash, &at.key("hash")));
        let same = id.as_ref().map(|id| (id.clone(), at.clone()));
        if let Some(other) = same.and_then(|(id, at)| people.key_ids.insert(id, at)) {
            let problem =
                format!("{other} has this id too; audit records could not tell them apart");
            self.wrong(&at.key("id"), problem);
        }
        let same = hash.and_then(|hash| people.key_hashes.insert(hash, at.clone()));
        if let Some(other) = same {
            let problem = format!("{other} is the same key; make one for each");
            self.wrong(&at.key("hash"), problem);
        }
        self.call_limits(&raw.limits, &at.key("limits"));
        let at_tools = at.key("tools");
        let (_, globs) = ToolFilter::compile_all(&raw.tools);
        let globs = globs.into_iter().map(|(f, p)| (f, p.to_string()));
        self.wrong_below(&at_tools, globs.collect());
        self.wrong_below(&at_tools, check::tool_access(&raw.tools));
        let mut reachable = Vec::with_capacity(raw.servers.len());
        for (i, name) in raw.servers.iter().enumerate() {
            let at = at.key("servers").index(i);
            reachable.extend(self.server_of(tenant, servers, name, &at));
        }
        if let (Some(id), Some(hash)) = (id, hash) {
            people.keys.push(ApiKey {
                id,
                hash,
                tenant: tenant.clone(),
                servers: reachable,
                tools: raw.tools,
                limits: raw.limits,
            });
        }
    }

    fn server_of(
        &mut self,
        tenant: &TenantId,
        servers: &BTreeSet<String>,
        name: &str,
        at: &FieldPath,
    ) -> Option<ServerId> {
        if servers.contains(name) {
            return ServerId::parse(name).ok();
        }
        let there = FieldPath::default().key("tenants").key(tenant.as_str());
        if !self.left_out.touches(&there.key("servers")) {
            let near = domain::nearest(name, servers.iter().map(String::as_str));
            let hint = near.map_or_else(String::new, |n| format!("; did you mean {n:?}?"));
            self.wrong(at, format!("this tenant has no server {name:?}{hint}"));
        }
        None
    }

    /// Complains about bindings of plugins, which are those of the server's tenant.
    fn bindings(&mut self, bindings: &[PluginBinding], plugins: &[String], at: &FieldPath) {
        let names = plugins.iter().map(String::as_str);
        let wrong = check_bindings(bindings, names, at);
        // tenants.ID.servers.ID.plugins
        let tenant = at.parent().parent().parent();
        let some_left_out = self.left_out.touches(&tenant.key("plugins"));
        let is_name = |wrong: &FieldError| wrong.field.steps().len() > at.steps().len() + 1;
        self.wrong
            .extend(wrong.into_iter().filter(|w| !(some_left_out && is_name(w))));
    }

    /// Compiles the policy of a tenant, above which there is nothing, or of one of its servers, for its errors only.
    fn policy(
        &mut self,
        above: &Policy,
        own: &Policy,
        rules: Option<&Arc<RuleSet>>,
        at: &FieldPath,
    ) {
        let at = at.key("policy");
        self.wrong_below(&at, check::policy_tools(own));
        let Some(rules) = rules else { return };
        let problems = PolicyTable::problems(above, own, rules).into_iter();
        // What is wrong above was said there.
        let own = problems.filter(|problem| problem.level == Level::Server);
        let own = own.map(|problem| (problem.field, problem.problem.to_string()));
        self.wrong_below(&at, own.collect());
    }

    fn call_limits(&mut self, limits: &CallLimits, at: &FieldPath) {
        self.within_ranges(limits, at);
        if let Some(rate) = &limits.rate {
            let at = at.key("rate");
            if !rate.per_second.is_finite() {
                self.wrong(&at.key("per_second"), "is no number");
            }
            self.within_ranges(rate, &at);
        }
    }
}

/// Tenants, their servers and their keys.
#[derive(Default)]
struct People {
    tenants: BTreeMap<TenantId, Tenant>,
    servers: BTreeMap<ServerId, Server>,
    owners: BTreeMap<ServerId, TenantId>,
    keys: Vec<ApiKey>,
    key_ids: HashMap<KeyId, FieldPath>,
    key_hashes: HashMap<KeyHash, FieldPath>,
}

/// Whether both cannot be bound: one port, at one address or at all of them. All of IPv6 takes in IPv4.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let takes_in =
        |a: IpAddr, b: IpAddr| a == b || a.is_unspecified() && (a.is_ipv6() || b.is_ipv4());
    let ips = (a.ip().to_canonical(), b.ip().to_canonical());
    let meet = takes_in(ips.0, ips.1) || takes_in(ips.1, ips.0);
    a.port() == b.port() && a.port() != 0 && meet
}

fn hosting_listen(
    raw: &raw::Hosting,
    taken: [(&str, Option<SocketAddr>); 2],
    at: &FieldPath,
) -> Result<SocketAddr, FieldError> {
    let listen = check::socket_address(raw.listen.as_deref().unwrap_or(HOSTING_LISTEN_DEFAULT))
        .or_else(|problem| at.error(problem))?;
    let overlapping = |(name, at): (&str, Option<SocketAddr>)| {
        let at = at.filter(|at| overlap(*at, listen))?;
        Some(format!("`{name}` ({at})"))
    };
    if let Some(other) = taken.into_iter().find_map(overlapping) {
        return at.error(format!("overlaps {other}; take another port"));
    }
    if !listen.ip().is_loopback() {
        return at.error(
            "the admin API is plain HTTP and starts programs: it is served on loopback only, such as \
             127.0.0.1:8090. Put something that speaks TLS before it to reach it from elsewhere",
        );
    }
    Ok(listen)
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
