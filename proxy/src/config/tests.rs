//! Whole files: what they become, and what is refused with which words.

use std::path::Path;

use domain::{
    AuditMode, Direction, FailureMode, PolicyAction, Secret, UpstreamAuth, UpstreamTransport,
};

use super::load::{AdminListen, Reading, from_text, load, to_look_at};
use super::resolve::Secrets;
use super::{ConfigErrors, EXAMPLE, Loaded, LogFormat, ProxyOptions, ProxyUpstream};

fn env(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "t0ken".to_owned())
}

fn read(yaml: &str) -> Result<Loaded, ConfigErrors> {
    from_text(Path::new("/etc/weir/weir.yaml"), yaml, &env, Secrets::Read)
}

fn for_proxy(options: &ProxyOptions) -> Result<Loaded, ConfigErrors> {
    super::load::for_proxy(options, Reading::First)
}

const HASH_A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn a_file_that_says_nothing_is_refused_and_one_without_fields_is_all_defaults() {
    for yaml in ["", "# nothing\n", "---\n", "\n\n", "~"] {
        let error = read(yaml).unwrap_err().to_string();
        assert!(
            error.contains("there is nothing in it"),
            "{yaml:?}: {error}"
        );
    }
    let loaded = read("{}").unwrap();
    assert_eq!(loaded.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(loaded.admin_listen.unwrap().to_string(), "127.0.0.1:8081");
    assert_eq!(loaded.data_dir, Path::new("/etc/weir/weir-data"));
    assert_eq!(loaded.desired.limits, domain::Limits::default());
    assert!(loaded.desired.open_access);
    let watched = ["weir.yaml", "weir-data/plugins/registry.json"];
    let watched = watched.map(|name| Path::new("/etc/weir").join(name));
    assert_eq!(loaded.files_watched, watched);
}

#[test]
fn a_server_has_its_own_word_on_pinning_and_else_its_tenants() {
    let yaml = "tenants:\n  a:\n    policy: {tool_pinning: hold}\n    servers:\n      one: {upstream: {command: x}}\n      two: {upstream: {command: x}, policy: {tool_pinning: off}}\n  b: {servers: {three: {upstream: {command: x}}}}\n";
    let desired = read(yaml).unwrap().desired;
    let said = |id: &str| desired.servers[id].policy.tool_pinning;
    assert_eq!(said("one"), Some(domain::ToolPinning::Hold));
    assert_eq!(said("two"), Some(domain::ToolPinning::Off));
    assert_eq!(said("three"), None, "the gateway's default");
    let refused = read(&yaml.replace("hold", "held")).unwrap_err().to_string();
    assert!(
        refused.contains("tool_pinning") && refused.contains(":3"),
        "{refused}"
    );
}

#[test]
fn both_listeners_may_take_a_free_port() {
    let loaded = read("listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\n").unwrap();
    assert_eq!(
        (loaded.listen.port(), loaded.admin_listen.unwrap().port()),
        (0, 0)
    );
}

#[test]
fn the_example_loads() {
    let loaded = read(EXAMPLE).unwrap();
    assert_eq!(loaded.audit_retention_days, Some(30));
    let servers: Vec<&str> = loaded
        .desired
        .servers
        .keys()
        .map(domain::ServerId::as_str)
        .collect();
    assert_eq!(servers, ["files", "tickets"]);
}

#[test]
fn every_field_arrives() {
    let yaml = format!(
        "
listen: 0.0.0.0:0
admin_listen: 'off'
data_dir: ../data
hosts: [Weir.Example.com]
cors: {{origins: ['https://App.example.com']}}
limits: {{batch_max: 7}}
audit: {{mode: off}}
log: {{format: json, level: debug}}
otlp: {{endpoint: 'http://127.0.0.1:4318', headers: {{X-Team: {{env: TOKEN}}}}}}
tenants:
  acme:
    policy:
      dry_run: true
      failure_mode: open
      bindings: [{{category: pii, direction: to_client, action: warn}}]
    limits: {{concurrent_calls_max: 3}}
    keys:
      - {{id: k, hash: '{HASH_A}', servers: [http], tools: {{deny: ['rm*']}}, limits: {{rate: {{per_second: 0.5, burst: 2}}}}}}
    servers:
      http:
        upstream:
          url: https://example.com/mcp
          auth: {{bearer: {{env: TOKEN}}}}
          breaker: {{failures: 0}}
      child:
        upstream: {{command: ./run, args: [-x], env: {{A: b, T: {{env: TOKEN}}}}, env_clear: true}}
        policy: {{dry_run: false, bindings: [{{tool: 'a*', action: block}}], tools: {{allow: [a]}}}}
      old:
        upstream: {{sse: 'http://127.0.0.1:1/sse', auth: {{headers: {{X-Key: k}}}}}}
"
    );
    let loaded = read(&yaml).unwrap();
    assert_eq!(loaded.listen.to_string(), "0.0.0.0:0");
    assert_eq!(loaded.admin_listen, None);
    assert_eq!(loaded.data_dir, Path::new("/etc/weir/../data"));
    assert_eq!(
        (loaded.log.format, loaded.log.level.as_str()),
        (LogFormat::Json, "debug")
    );
    let otlp = loaded.otlp.unwrap();
    assert_eq!(otlp.headers, [("x-team".to_owned(), Secret::new("t0ken"))]);

    let desired = loaded.desired;
    assert_eq!(desired.hosts, ["weir.example.com"]);
    assert_eq!(desired.cors.origins, ["https://app.example.com"]);
    assert_eq!(desired.limits.batch_max, 7);
    assert_eq!(desired.audit, AuditMode::Off);
    assert!(!desired.open_access);

    let tenant = &desired.tenants["acme"];
    assert!(tenant.policy.dry_run);
    assert_eq!(
        tenant.policy.bindings[0].direction,
        Some(Direction::ToClient)
    );
    assert_eq!(tenant.limits.concurrent_calls_max, Some(3));

    let key = &desired.keys[0];
    assert_eq!((key.id.as_str(), key.tenant.as_str()), ("k", "acme"));
    assert_eq!(key.servers[0].as_str(), "http");
    assert_eq!(key.tools.deny, ["rm*"]);
    assert_eq!(key.limits.rate.unwrap().burst, 2);

    let http = &desired.servers["http"];
    assert_eq!(
        http.upstream.auth,
        UpstreamAuth::Bearer(Secret::new("t0ken"))
    );
    assert_eq!(
        (
            http.upstream.breaker_failures,
            http.upstream.breaker_open_ms
        ),
        (0, 10_000)
    );
    // The tenant's word where the server has none; its lines stay the tenant's.
    assert!(http.policy.dry_run);
    assert_eq!(http.policy.failure_mode, FailureMode::Open);
    assert!(http.policy.bindings.is_empty());

    let child = &desired.servers["child"];
    assert!(!child.policy.dry_run);
    assert_eq!(child.policy.bindings[0].action, PolicyAction::Block);
    assert_eq!(child.policy.tools.allow, ["a"]);
    let UpstreamTransport::Stdio {
        command,
        args,
        env,
        env_clear,
        cwd,
    } = &child.upstream.transport
    else {
        panic!("{child:?}");
    };
    assert_eq!(
        (command.as_str(), args.as_slice()),
        ("/etc/weir/run", &["-x".to_owned()][..])
    );
    assert_eq!(env["T"].expose(), "t0ken");
    assert!(*env_clear && cwd.is_none());

    let old = &desired.servers["old"];
    assert!(
        matches!(&old.upstream.transport, UpstreamTransport::Sse { url, .. } if url.ends_with("/sse"))
    );
    assert_eq!(
        old.upstream.auth,
        UpstreamAuth::Headers(vec![("x-key".into(), Secret::new("k"))])
    );
}

/// A file with one server, into which a case puts its own line.
fn server_with(upstream: &str) -> String {
    format!(
        "tenants:\n  acme:\n    servers:\n      git:\n        upstream:\n          {upstream}\n"
    )
}

fn tenant_with(field: &str) -> String {
    format!(
        "tenants:\n  acme:\n    {field}\n    servers:\n      git: {{upstream: {{command: x}}}}\n"
    )
}

#[test]
fn a_refusal_names_the_place_and_what_to_do() {
    let cases: &[(&str, &str)] = &[
        // shapes
        (
            "listn: x",
            "1:1: listn: there is no field \"listn\" here; did you mean \"listen\"?",
        ),
        ("listen: [", "1:"),
        ("- 1", "expected"),
        ("limits: {batch_max: -1}", "limits.batch_max: "),
        ("limits: {batch_max: many}", "1:21: limits.batch_max: "),
        (
            "log:\n  format: xml",
            "2:11: log.format: there is no word \"xml\" here; use one of: text, json",
        ),
        (
            "log:\n  level: warm",
            "2:10: log.level: there is no word \"warm\" here; did you mean \"warn\"?",
        ),
        (
            "listen: a\nlisten: b",
            "2:1: listen: \"listen\" stands here twice; keep one",
        ),
        (
            "tls: {cert_file: a}",
            "tls: the field \"key_file\" is missing; add it",
        ),
        ("--- {}\n--- {}", "more than one YAML document"),
        // addresses
        (
            "listen: 8080",
            "listen: \"8080\" is no address; use IP:PORT",
        ),
        (
            "listen: 0.0.0.0:8080",
            "1:1: listen: 0.0.0.0:8080 can be reached from other machines",
        ),
        (
            "admin_listen: 127.0.0.1:8080",
            "admin_listen: overlaps `listen` (127.0.0.1:8080); take another port",
        ),
        (
            "hosts: [a, 'http://b']",
            "1:12: hosts[1]: \"http://b\" is no host name",
        ),
        (
            "cors: {origins: ['*']}",
            "cors.origins[0]: origins are exact",
        ),
        // ranges
        (
            "limits: {message_bytes_max: 67108865}",
            "1:10: limits.message_bytes_max: 67108865 is out of range; use 1024 to 67108864",
        ),
        (
            "limits: {sessions_max: 0}",
            "limits.sessions_max: 0 is out of range; use 1 to 10000000",
        ),
        (
            "audit: {retention_days: 0}",
            "audit.retention_days: 0 is out of range",
        ),
        (
            "audit: {mode: off, retention_days: 1}",
            "audit.retention_days: means nothing",
        ),
        // files
        (
            "tls: {cert_file: no/such, key_file: b}",
            "tls.cert_file: /etc/weir/no/such cannot be opened: ",
        ),
        (
            "rules: [no.yml]",
            "rules[0]: /etc/weir/no.yml cannot be opened: ",
        ),
        ("otlp: {endpoint: 'localhost:4318'}", "otlp.endpoint: "),
        (
            "otlp: {endpoint: 'https://collector.example:4318'}",
            "otlp.endpoint: traces are sent by plain HTTP only",
        ),
    ];
    for (yaml, expected) in cases {
        refused(yaml, expected);
    }
}

#[test]
fn a_refusal_in_a_tenant_names_the_place_and_what_to_do() {
    let key = |rest: &str| tenant_with(&format!("keys: [{{id: k, hash: '{HASH_A}'{rest}}}]"));
    let cases: &[(&str, &str)] = &[
        (
            "tenants: {Acme: {}}",
            "1:11: tenants.Acme: a tenant id may hold only a-z",
        ),
        (
            "tenants: {acme: {servers: {a/b: {upstream: {command: x}}}}}",
            "tenants.acme.servers.a/b: a server id may hold only",
        ),
        (
            "tenants:\n  a: {servers: {git: {upstream: {command: x}}}}\n  b: {servers: {git: {upstream: {command: x}}}}",
            "3:17: tenants.b.servers.git: tenant \"a\" has a server of this id too",
        ),
        (
            "tenants: {a: {servers: {git: {}}}}",
            "tenants.a.servers.git.upstream: says not where the server is",
        ),
        // keys
        (
            &tenant_with("keys: [{id: k, hash: weir_abc}]"),
            "tenants.acme.keys[0].hash: this is the key itself",
        ),
        (
            &tenant_with("keys: [{id: k, hash: abc}]"),
            "3:20: tenants.acme.keys[0].hash: must be sha256: and 64",
        ),
        (
            &tenant_with("keys: [{id: 'k k', hash: abc}]"),
            "keys[0].id: a key id may hold only",
        ),
        (
            &key(", servers: [gut]"),
            "keys[0].servers[0]: this tenant has no server \"gut\"; did you mean \"git\"?",
        ),
        (
            &key(", tools: {allow: [a, '[']}"),
            "keys[0].tools.allow[1]: \"[\" is no glob",
        ),
        (
            &key(", limits: {concurrent_calls_max: 0}"),
            "keys[0].limits.concurrent_calls_max: 0 is out of range",
        ),
        (
            &tenant_with(&format!(
                "keys: [{{id: k, hash: '{HASH_A}'}}, {{id: j, hash: '{HASH_A}'}}]"
            )),
            "keys[1].hash: tenants.acme.keys[0] is the same key",
        ),
        (
            &tenant_with(&format!(
                "keys: [{{id: k, hash: '{HASH_A}'}}, {{id: k, hash: '{}'}}]",
                HASH_A.replace("aa", "bb")
            )),
            "keys[1].id: tenants.acme.keys[0] has this id too",
        ),
        // policy
        (
            &tenant_with("policy: {bindings: [{action: blok}]}"),
            "policy.bindings[0].action: there is no word \"blok\" here; did you mean \"block\"?",
        ),
        (
            &tenant_with("policy: {bindings: [{action: log}, {category: pi, action: log}]}"),
            "3:41: tenants.acme.policy.bindings[1].category: \"pi\" is no category",
        ),
        (
            &tenant_with("policy: {bindings: [{rule: no-such-rule-there-is, action: log}]}"),
            "policy.bindings[0].rule: no rule is called",
        ),
        (
            &tenant_with("policy: {bindings: [{tool: '{', action: log}]}"),
            "policy.bindings[0].tool: \"{\" is no glob",
        ),
        (
            &tenant_with("policy: {bindings: [{tool: x}]}"),
            "policy.bindings[0]: the field \"action\" is missing",
        ),
        (
            &tenant_with("policy: {tools: {deny: ['']}}"),
            "policy.tools.deny[0]: \"\" is no glob",
        ),
        (
            &tenant_with("limits: {rate: {per_second: 0, burst: 1}}"),
            "limits.rate.per_second: 0 is out of range",
        ),
        (
            &tenant_with("limits: {rate: {per_second: .inf, burst: 1}}"),
            "limits.rate.per_second: is no number",
        ),
        (
            &tenant_with("limits: {rate: {per_second: 1, burst: 0}}"),
            "limits.rate.burst: 0 is out of range",
        ),
    ];
    for (yaml, expected) in cases {
        refused(yaml, expected);
    }
}

#[test]
fn a_refusal_of_an_upstream_names_the_place_and_what_to_do() {
    let cases = [
        (
            "{}",
            "upstream: says not where the server is; add one of url, sse, command",
        ),
        (
            "{url: 'http://x', command: y}",
            "upstream: has more than one of url, sse, command",
        ),
        (
            "url: ftp://x",
            "6:11: tenants.acme.servers.git.upstream.url: \"ftp\" is no scheme for this; use http or https",
        ),
        (
            "url: https://u:hunter2@x/",
            "upstream.url: credentials do not belong into a URL",
        ),
        (
            "{url: 'http://x', args: [a]}",
            "upstream.args: belongs to `command`; take it out",
        ),
        (
            "{url: 'https://x', ca_file: no.pem}",
            "upstream.ca_file: /etc/weir/no.pem cannot be opened",
        ),
        (
            "{command: x, ca_file: no.pem}",
            "upstream.ca_file: belongs to `url` or `sse`",
        ),
        ("{command: ''}", "upstream.command: must name a program"),
        (
            "{command: x, cwd: no/such}",
            "upstream.cwd: /etc/weir/no/such is no folder",
        ),
        (
            "{command: x, env: {A=B: c}}",
            "upstream.env.A=B: is no name for an environment variable",
        ),
        (
            "{command: x, env: {A: {env: NOPE}}}",
            "upstream.env.A: the environment variable \"NOPE\" is not set",
        ),
        (
            "{command: x, env: {A: 12}}",
            "upstream.env.A: expected a text, {env: NAME} or {file: PATH}; put quotation marks",
        ),
        (
            "{command: x, auth: {bearer: hunter2}}",
            "upstream.auth: a stdio server takes no headers",
        ),
        (
            "{url: 'http://x', auth: hunter2}",
            "upstream.auth: expected ",
        ),
        (
            "{url: 'http://x', auth: {bearer: \"hunter2\\n\"}}",
            "upstream.auth.bearer: the value holds characters",
        ),
        (
            "{url: 'http://x', auth: {bearer: a, headers: {b: c}}}",
            "upstream.auth: has both",
        ),
        (
            "{url: 'http://x', auth: {headers: {Host: c}}}",
            "upstream.auth.headers.Host: the header \"host\" is Weir's own to set",
        ),
        (
            "{url: 'http://x', auth: {headers: {a: b, A: b}}}",
            "upstream.auth.headers.a: stands here twice, in another case",
        ),
        (
            "{url: 'http://x', breaker: {open_ms: 0}}",
            "upstream.breaker.open_ms: 0 is out of range",
        ),
        (
            "{url: 'http://x', breaker: {opens_ms: 1}}",
            "did you mean \"open_ms\"?",
        ),
    ];
    for (upstream, expected) in cases {
        refused(&server_with(upstream), expected);
    }
}

fn refused(yaml: &str, expected: &str) {
    let text = read(yaml).map(|_| ()).unwrap_err().to_string();
    let mut lines = text.lines();
    assert!(
        lines.all(|line| line.starts_with("/etc/weir/weir.yaml:")),
        "{yaml}\n{text}"
    );
    assert!(
        text.contains(expected),
        "{yaml}\n  got  {text}\n  want {expected}"
    );
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_nothing_that_only_follows_from_it() {
    let cases: &[(&str, &[&str])] = &[
        // Of shapes and of meanings, in the order of the file.
        (
            "listn: x\nlimits: {batch_max: many, sessions_max: 0}\nhosts: ['http://b', ok, 'a@b']\n",
            &[
                "1:1: listn: ",
                "2:21: limits.batch_max: ",
                "2:27: limits.sessions_max: ",
                "3:9: hosts[0]: ",
                "3:25: hosts[2]: ",
            ],
        ),
        // Elements behind one that is left out keep their places.
        (
            "tenants:\n  a:\n    policy:\n      bindings:\n      - {action: blok}\n      - {rule: emial, action: log}\n      - {action: log, category: pi, tool: '['}\n",
            &[
                "5:18: tenants.a.policy.bindings[0].action: ",
                "6:10: tenants.a.policy.bindings[1].rule: no rule is called \"emial\"; did you mean \"email\"?",
                "7:23: tenants.a.policy.bindings[2].category: ",
            ],
        ),
        // A name that was misspelt is not missing as well.
        (
            "tenants:\n  a:\n    keys:\n    - {idd: k, hash: x}\n    - {id: 'k k', hash: weir_x}\n",
            &[
                "4:8: tenants.a.keys[0].idd: there is no field \"idd\" here; did you mean \"id\"?",
                "5:8: tenants.a.keys[1].id: ",
                "5:19: tenants.a.keys[1].hash: this is the key itself",
            ],
        ),
        // What refers to something that is wrong itself is not to blame.
        (
            "listen: 0.0.0.0:1\ntenants:\n  a:\n    servers: {git: {upstream: {urll: x}}, fs: {upstream: {url: x}, plugins: [{plugin: p}, {plugin: q}]}}\n    plugins: {p: {flie: x}}\n    keys: [{id: k, hash: x, servers: [git, fs, gut]}]\n",
            &[
                "4:32: tenants.a.servers.git.upstream.urll: ",
                "4:59: tenants.a.servers.fs.upstream.url: ",
                "5:19: tenants.a.plugins.p.flie: ",
                "6:20: tenants.a.keys[0].hash: ",
            ],
        ),
        (
            "listen: a\nlisten: b\nadmin_listen: c\nlog: {level: warm, levle: x}\n",
            &[
                "2:1: listen: \"listen\" stands here twice",
                "3:1: admin_listen: ",
                "4:14: log.level: ",
                "4:20: log.levle: ",
            ],
        ),
        (
            "tenants:\n  a:\n    servers:\n      s: {upstream: {url: 'http://x', args: [a], cwd: b, auth: {headers: {Host: x, Te: y}}}}\n      t: {upstream: {command: '', env: {A=B: c, D: {env: NOPE}}}}\n",
            &[
                "upstream.args: ",
                "upstream.cwd: ",
                "headers.Host: ",
                "headers.Te: ",
                "t.upstream.command: ",
                "env.A=B: ",
                "env.D: ",
            ],
        ),
        // A form that none of the readers gets past.
        ("- 1", &["expected"]),
        ("tls: 1\ncors: 2\n", &["1:6: tls: ", "2:7: cors: "]),
    ];
    for (yaml, expected) in cases {
        let text = read(yaml).map(|_| ()).unwrap_err().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{yaml}\n{text}");
        for (line, expected) in lines.iter().zip(*expected) {
            assert!(
                line.contains(expected),
                "{yaml}\n  got  {line}\n  want {expected}"
            );
        }
    }
}

#[test]
fn no_more_is_told_than_can_be_read() {
    let hosts = |count| format!("hosts: [{}]\n", vec!["'@'"; count].join(", "));
    for (count, lines, last) in [
        (20, 20, "hosts[19]: \"@\" is no host name"),
        (21, 21, "and 1 more"),
        (5000, 21, "and 4980 more"),
    ] {
        let text = read(&hosts(count)).unwrap_err().to_string();
        assert_eq!(text.lines().count(), lines, "{text}");
        let end = text.lines().last().unwrap();
        assert!(end.contains(last), "{end}");
    }
    // Shapes are read anew for each: they end sooner.
    let fields: String = (0..5000).map(|i| format!("field{i}: 1\n")).collect();
    let text = read(&fields).unwrap_err().to_string();
    assert!(text.ends_with("and 81 more"), "{text}");
}

#[test]
fn files_are_read_from_the_files_folder_and_watched() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("tls")).unwrap();
    std::fs::write(path("tls/cert.pem"), "-----BEGIN CERTIFICATE-----\nx\n").unwrap();
    std::fs::write(path("tls/key.pem"), "-----BEGIN EC PRIVATE KEY-----\nx\n").unwrap();
    std::fs::write(path("token"), "t0ken\r\n").unwrap();
    let yaml = "tls: {cert_file: tls/cert.pem, key_file: tls/key.pem}
tenants: {a: {servers: {s: {upstream: {url: 'http://x', auth: {bearer: {file: token}}}}}}}
";
    std::fs::write(path("weir.yaml"), yaml).unwrap();
    let loaded = load(&path("weir.yaml")).unwrap();
    assert_eq!(loaded.desired.tls.unwrap().cert_file, path("tls/cert.pem"));
    let auth = &loaded.desired.servers["s"].upstream.auth;
    assert_eq!(*auth, UpstreamAuth::Bearer(Secret::new("t0ken")));
    let names = [
        "weir.yaml",
        "tls/cert.pem",
        "tls/key.pem",
        "token",
        "weir-data/plugins/registry.json",
    ];
    assert_eq!(loaded.files_watched, names.map(path));

    std::fs::write(path("tls/key.pem"), "-----BEGIN CERTIFICATE-----\nx\n").unwrap();
    let error = load(&path("weir.yaml")).unwrap_err().to_string();
    assert!(
        error.contains("holds no PEM block of kind PRIVATE KEY"),
        "{error}"
    );
}

#[test]
fn rule_files_stand_beside_the_built_in_rules() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rule = "rules:\n- {id: our-badge, title: Badge, category: pii, confidence: 90, keywords: [BDG-], \
                pattern: 'BDG-[0-9]{6}', examples: ['BDG-123456'], counter_examples: ['BDG-1']}\n";
    std::fs::write(path("ours.yml"), rule).unwrap();
    let binding = |id: &str| format!("{{rule: {id}, action: block}}");
    let yaml = format!(
        "rules: [ours.yml]\ntenants: {{a: {{policy: {{bindings: [{}, {}]}}}}}}\n",
        binding("our-badge"),
        binding("email")
    );
    std::fs::write(path("weir.yaml"), yaml).unwrap();
    let loaded = load(&path("weir.yaml")).unwrap();
    assert_eq!(
        loaded.desired.rules,
        [("ours.yml".to_owned(), rule.to_owned())]
    );
    let names = ["weir.yaml", "ours.yml", "weir-data/plugins/registry.json"];
    assert_eq!(loaded.files_watched, names.map(path));

    std::fs::write(path("ours.yml"), "rules:\n- {id: x}\n").unwrap();
    let error = load(&path("weir.yaml")).unwrap_err();
    assert_eq!(error.first().field.to_string(), "rules");
    assert!(error.first().problem.starts_with("ours.yml:"), "{error}");
}

#[test]
fn a_file_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    std::fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.ends_with("is larger than 1048576 bytes"), "{error}");
    std::fs::write(&path, [0xff]).unwrap();
    assert!(
        load(&path)
            .unwrap_err()
            .to_string()
            .ends_with("is not UTF-8 text")
    );
    assert!(
        load(folder.path())
            .unwrap_err()
            .to_string()
            .contains("is a folder")
    );
    let missing = folder.path().join("missing.yaml");
    assert!(
        load(&missing)
            .unwrap_err()
            .to_string()
            .contains("cannot be opened")
    );
}

#[test]
fn bombs_are_refused() {
    let deep = format!("tenants: {}{}", "[".repeat(500), "]".repeat(500));
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..10 {
        let alias = format!("*a{}", i - 1);
        let row = vec![alias; 10].join(", ");
        laughs.push_str(&format!("a{i}: &a{i} [{row}]\n"));
    }
    for yaml in [deep, laughs] {
        assert!(read(&yaml).is_err());
    }
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused() {
    for end in (0..EXAMPLE.len()).step_by(13) {
        let Some(cut) = EXAMPLE.get(..end) else {
            continue;
        };
        if let Err(error) = read(cut) {
            assert!(!error.first().problem.is_empty(), "cut at {end}");
        }
    }
}

fn proxy(upstream: ProxyUpstream) -> ProxyOptions {
    ProxyOptions {
        upstream: Some(upstream),
        upstream_headers: Vec::new(),
        config: None,
        listen: None,
        admin_listen: None,
        data_dir: None,
        key: None,
        dry_run: false,
    }
}

#[test]
fn a_command_line_is_a_configuration() {
    let url = "http://127.0.0.1:9000/mcp".to_owned();
    let loaded = for_proxy(&ProxyOptions {
        upstream_headers: vec![("X-Key".into(), Secret::new("k"))],
        listen: Some("127.0.0.1:0".parse().unwrap()),
        data_dir: Some("/tmp/d".into()),
        dry_run: true,
        ..proxy(ProxyUpstream::Url(url.clone()))
    })
    .unwrap();
    let server = &loaded.desired.servers["default"];
    assert_eq!(
        server.upstream.transport,
        UpstreamTransport::Http { url, ca_file: None }
    );
    assert_eq!(server.tenant.as_str(), "local");
    assert!(server.policy.dry_run && loaded.desired.open_access);
    assert_eq!(loaded.listen.port(), 0);
    assert_eq!(loaded.data_dir, Path::new("/tmp/d"));

    let words = ["npx", "-y", "server"].map(String::from).to_vec();
    let loaded = for_proxy(&proxy(ProxyUpstream::Command(words))).unwrap();
    let transport = &loaded.desired.servers["default"].upstream.transport;
    assert!(
        matches!(transport, UpstreamTransport::Stdio { command, args, .. } if command == "npx" && args.len() == 2)
    );
}

#[test]
fn a_default_that_nobody_wrote_refuses_no_command_line() {
    let at = |admin_listen: Option<&str>| {
        for_proxy(&ProxyOptions {
            listen: Some("127.0.0.1:8081".parse().unwrap()),
            admin_listen: admin_listen.map(|at| AdminListen::At(at.parse().unwrap())),
            ..proxy(ProxyUpstream::Url("http://x".into()))
        })
    };
    assert!(at(None).is_ok());
    let error = at(Some("0.0.0.0:8081")).unwrap_err().to_string();
    assert!(
        error.contains("overlaps `listen` (127.0.0.1:8081)"),
        "{error}"
    );
}

#[test]
fn a_command_line_is_checked_like_a_file() {
    let open = ProxyOptions {
        listen: Some("0.0.0.0:8080".parse().unwrap()),
        ..proxy(ProxyUpstream::Url("http://x".into()))
    };
    let error = for_proxy(&open).unwrap_err().to_string();
    assert!(
        error.starts_with("command line: listen: 0.0.0.0:8080 can be reached"),
        "{error}"
    );
    let closed = ProxyOptions {
        key: Some(domain::KeyHash([1; 32])),
        ..open
    };
    assert!(!for_proxy(&closed).unwrap().desired.open_access);
    let error = for_proxy(&proxy(ProxyUpstream::Sse("x".into()))).unwrap_err();
    assert_eq!(
        error.first().field.to_string(),
        "tenants.local.servers.default.upstream.sse"
    );
    assert!(for_proxy(&proxy(ProxyUpstream::Command(vec![]))).is_err());
}

#[test]
fn a_command_line_stands_over_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    std::fs::write(
        &path,
        "listen: 127.0.0.1:7000\ntenants: {local: {policy: {failure_mode: open}}}\n",
    )
    .unwrap();
    let options = ProxyOptions {
        config: Some(path.clone()),
        ..proxy(ProxyUpstream::Url("http://x".into()))
    };
    let loaded = for_proxy(&options).unwrap();
    assert_eq!(loaded.listen.port(), 7000);
    assert_eq!(
        loaded.desired.servers["default"].policy.failure_mode,
        FailureMode::Open
    );
    let moved = ProxyOptions {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        ..options
    };
    assert_eq!(for_proxy(&moved).unwrap().listen.port(), 0);
    std::fs::write(&path, "limits: {batch_max: 0}\n").unwrap();
    let error = for_proxy(&moved).unwrap_err();
    let first = error.first();
    assert_eq!((first.at, &first.file), (Some((1, 10)), &path));
}

#[test]
fn a_dry_run_on_the_command_line_is_for_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    let yaml = "tenants: {a: {servers: {s: {upstream: {command: x}, policy: {dry_run: false}}}}}\n";
    std::fs::write(&path, yaml).unwrap();
    let options = ProxyOptions {
        upstream: None,
        config: Some(path),
        dry_run: true,
        ..proxy(ProxyUpstream::Url("http://x".into()))
    };
    assert!(
        for_proxy(&options).unwrap().desired.servers["s"]
            .policy
            .dry_run
    );
}

#[test]
fn a_server_that_nobody_could_call_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    let yaml = format!("tenants: {{a: {{keys: [{{id: k, hash: '{HASH_A}'}}]}}}}\n");
    std::fs::write(&path, yaml).unwrap();
    let options = ProxyOptions {
        config: Some(path),
        ..proxy(ProxyUpstream::Url("http://x".into()))
    };
    let error = for_proxy(&options).unwrap_err().to_string();
    assert!(error.contains("nobody could call it"), "{error}");
    let with_key = ProxyOptions {
        key: Some(domain::KeyHash([1; 32])),
        ..options
    };
    assert!(for_proxy(&with_key).is_ok());
}

#[test]
fn a_tenants_own_rules_values_and_allowlist_arrive() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let rule = |id: &str| {
        format!(
            "rules:\n- {{id: {id}, title: T, category: pii, keywords: [{id}], pattern: '{id}[0-9]{{4}}'}}\n"
        )
    };
    std::fs::write(path("t.yml"), rule("ten-")).unwrap();
    std::fs::write(path("s.yml"), rule("srv-")).unwrap();
    std::fs::write(path("names.txt"), "Ada Lovelace\n\nGrace Hopper\r\n").unwrap();
    std::fs::write(path("vault"), "hunter22hunter22\n").unwrap();
    let yaml = "
tenants:
  a:
    rules: [t.yml]
    values:
      customers: {title: Customers, category: pii, file: names.txt}
    policy:
      bindings: [{rule: ten-, action: redact, form: keep_last_4}]
      allow: [{rule: customers, path: $.result.**, note: public}]
    servers:
      s:
        upstream: {command: x}
        rules: [s.yml]
        values: {vault: {list: [{file: vault}, another-value]}}
        policy:
          bindings: [{rule: vault, action: block}, {rule: srv-, action: redact, form: hash}]
          allow: [{pattern: 'ten-0+', tool: t}]
      other: {upstream: {command: y}}
";
    std::fs::write(path("weir.yaml"), yaml).unwrap();
    let loaded = load(&path("weir.yaml")).unwrap();
    let (tenant, server) = (&loaded.desired.tenants["a"], &loaded.desired.servers["s"]);
    assert_eq!(tenant.detection.rules, [("t.yml".to_owned(), rule("ten-"))]);
    let list = &tenant.detection.values[0];
    assert_eq!(
        (list.id.as_str(), list.category.as_str()),
        ("customers", "pii")
    );
    let names = ["Ada Lovelace", "Grace Hopper"].map(Secret::new);
    assert_eq!(list.values, names);
    let list = &server.detection.values[0];
    assert_eq!(
        list.values,
        ["hunter22hunter22", "another-value"].map(Secret::new)
    );
    assert_eq!(list.category, "secret");
    assert_eq!(server.policy.allow[0].pattern.as_deref(), Some("ten-0+"));
    assert_eq!(
        tenant.policy.bindings[0].form,
        Some(domain::RedactForm::KeepLast4)
    );
    assert!(loaded.desired.servers["other"].detection.is_empty());
    for name in ["t.yml", "s.yml", "names.txt", "vault"] {
        let watched = &loaded.files_watched;
        assert!(
            watched.iter().any(|p| p.ends_with(name)),
            "{name}: {watched:?}"
        );
    }
    assert!(!format!("{loaded:?}").contains("hunter22"));
}

#[test]
fn what_is_wrong_with_a_tenants_own_is_said_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let text =
        "rules:\n- id: own-a\n  title: t\n  category: pii\n  keywords: [own]\n  pattern: 'own('\n";
    std::fs::write(path("bad.yml"), text).unwrap();
    std::fs::write(path("short.txt"), "long enough\nabc\n").unwrap();
    let cases = [
        (
            "rules: [bad.yml]",
            "tenants.a.rules[0]",
            "bad.yml:6: rule own-a: pattern: unclosed group",
        ),
        (
            "rules: [none.yml]",
            "tenants.a.rules[0]",
            "cannot be opened",
        ),
        (
            "values: {v: {file: short.txt}}",
            "tenants.a.values.v.file",
            "short.txt, line 2: a value of 3 bytes; 4 to 16384 are possible",
        ),
        ("values: {v: {}}", "tenants.a.values.v", "holds no value"),
        (
            "values: {v: {list: [{env: NONE_SUCH_HERE}]}}",
            "tenants.a.values.v.list[0]",
            "is not set",
        ),
        (
            "values: {email: {list: [abcdef]}}",
            "tenants.a.values.email",
            "is taken",
        ),
        (
            "values: {V: {list: [abcdef]}}",
            "tenants.a.values.V",
            "lower-case",
        ),
        (
            "values: {v: {category: food, list: [abcdef]}}",
            "tenants.a.values.v.category",
            "no category",
        ),
        (
            "policy: {allow: [{tool: x}]}",
            "tenants.a.policy.allow[0]",
            "names none of value",
        ),
        (
            "policy: {allow: [{pattern: 'a*'}]}",
            "tenants.a.policy.allow[0].pattern",
            "empty text",
        ),
        (
            "policy: {allow: [{path: a.b}]}",
            "tenants.a.policy.allow[0].path",
            "begin with $",
        ),
        (
            "policy: {allow: [{value: x}]}",
            "tenants.a.policy.allow[0].value",
            "weir rules hash",
        ),
        (
            "policy: {bindings: [{rule: email, action: log, form: hash}]}",
            "tenants.a.policy.bindings[0].form",
            "not redact",
        ),
        (
            "policy: {bindings: [{rule: email, action: redact, form: blur}]}",
            "tenants.a.policy.bindings[0].form",
            "blur",
        ),
    ];
    for (line, field, why) in cases {
        let yaml = format!("tenants:\n  a:\n    {line}\n");
        std::fs::write(path("weir.yaml"), yaml).unwrap();
        let error = load(&path("weir.yaml")).unwrap_err();
        assert_eq!(error.first().field.to_string(), field, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.first().at.map(|(line, _)| line), Some(3), "{error}");
        assert!(!error.to_string().contains("long enough"));
    }
    // A server's rule is not there for its tenant, nor for another server.
    let rule = "rules: [{id: own-b, title: t, category: pii, keywords: [own], pattern: own1}]";
    std::fs::write(path("good.yml"), rule).unwrap();
    let yaml = "tenants: {a: {servers: {s: {upstream: {command: x}, rules: [good.yml]},
      o: {upstream: {command: x}, policy: {bindings: [{rule: own-b, action: block}]}}}}}";
    std::fs::write(path("weir.yaml"), yaml).unwrap();
    let error = load(&path("weir.yaml")).unwrap_err();
    assert_eq!(
        error.first().field.to_string(),
        "tenants.a.servers.o.policy.bindings[0].rule"
    );
}

#[test]
fn what_a_file_says_of_the_command_lines_server_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    let with = |servers: &str| {
        let yaml = format!("tenants: {{local: {{servers: {{{servers}}}}}}}\n");
        std::fs::write(&path, yaml).unwrap();
        let mut options = proxy(ProxyUpstream::Url("http://x/mcp".into()));
        options.config = Some(path.clone());
        let loaded = for_proxy(&options).unwrap();
        loaded.desired.servers["default"].clone()
    };
    let policy = "policy: {tools: {deny: [rm]}}, limits: {concurrent_calls_max: 3}";
    for upstream in [
        "",
        "upstream: {breaker: {failures: 7}}, ",
        // Its own address gives way, and what belongs to that is not sent to another.
        "upstream: {url: 'http://other/', auth: {bearer: hunter2}, breaker: {failures: 7}}, ",
        "upstream: {command: other, env: {A: b}, breaker: {failures: 7}}, ",
    ] {
        let server = with(&format!("default: {{{upstream}{policy}}}"));
        assert_eq!(server.policy.tools.deny, ["rm"], "{upstream}");
        assert_eq!(server.limits.concurrent_calls_max, Some(3));
        let url = "http://x/mcp".to_owned();
        let transport = UpstreamTransport::Http { url, ca_file: None };
        assert_eq!(server.upstream.transport, transport, "{upstream}");
        assert_eq!(server.upstream.auth, UpstreamAuth::None, "{upstream}");
        let failures = if upstream.is_empty() { 5 } else { 7 };
        assert_eq!(server.upstream.breaker_failures, failures, "{upstream}");
    }
    // What names no server goes with the one of the command line.
    let server = with("default: {upstream: {auth: {bearer: hunter2}}}");
    assert!(matches!(server.upstream.auth, UpstreamAuth::Bearer(_)));
}

#[test]
fn policy_of_other_tenants_is_not_ignored_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    let with = |yaml: &str| {
        std::fs::write(&path, yaml).unwrap();
        let mut options = proxy(ProxyUpstream::Url("http://x/mcp".into()));
        options.config = Some(path.clone());
        for_proxy(&options).map_err(|e| e.to_string())
    };
    let acme = "tenants:\n  acme: {policy: {tools: {deny: [rm]}}}\n";
    let error = with(acme).unwrap_err();
    for part in [
        "weir.yaml:2:3: tenants.acme: this is policy of tenant \"acme\"",
        "Put it under tenants.local.policy",
    ] {
        assert!(error.contains(part), "{error}");
    }
    let notes = with(&format!("{acme}  local: {{}}\n")).unwrap().notes;
    assert!(
        matches!(&notes[..], [one] if one.contains("does not hold there")),
        "{notes:?}"
    );
    let both = format!("{acme}  local: {{policy: {{dry_run: true}}}}\n");
    assert_eq!(with(&both).unwrap().notes, Vec::<String>::new());
    assert_eq!(
        with("tenants: {acme: {}}\n").unwrap().notes,
        Vec::<String>::new()
    );
}

#[test]
fn who_looks_at_a_file_needs_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weir.yaml");
    let yaml = "tenants:\n  a:\n    values: {own: {list: [{env: WEIR_TEST_UNSET}]}}\n    servers:\n      \
                s: {upstream: {url: 'http://x', auth: {bearer: {file: gone}}}}\n  local: {servers: {default: {}}}\n";
    std::fs::write(&path, yaml).unwrap();
    assert!(
        load(&path)
            .unwrap_err()
            .to_string()
            .contains("WEIR_TEST_UNSET")
    );
    let loaded = to_look_at(&path).unwrap();
    assert!(loaded.desired.servers.contains_key("s"));
    assert!(loaded.desired.servers.contains_key("default"));
}
