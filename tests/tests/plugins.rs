//! Policy plugins in the real program: made, pushed, bound, deciding, swapped, taken away.

#![allow(
    clippy::print_stderr,
    reason = "who reads the output of a test wants it"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::{Answer, Client, Era, Upstream, Weir, json, kit, wait};

/// Plugins made of text; how is in the plugin host's tests. `word-guard` blocks what says `nightfall`.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/plugins")
        .join(name)
}

/// Whether an answer is the block of a tool call.
fn is_blocked(answer: &Answer) -> bool {
    answer.blocked_call_fault(Era::Handshake).is_none()
}

/// `weir policy ARGS`, as a user types it beside the `weir.yaml` of a running Weir.
fn policy(weir: &Weir, args: &[&str]) -> (bool, String) {
    let mut command = Command::new(weir_tests::weir::binary());
    command.arg("policy").args(args).current_dir(weir.dir());
    // What is compiled of other people's crates is kept for the next run.
    command.env(
        "CARGO_TARGET_DIR",
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins"),
    );
    if let Some(tools) = kit::part("componentize") {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let node = kit::dir().join("node22/node_modules/.bin");
        let all = [tools.join("node_modules/.bin"), node];
        let all = all.into_iter().chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).expect("paths"));
    }
    let output = command.output().expect("weir can be run");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn done(weir: &Weir, args: &[&str]) -> String {
    let (ok, text) = policy(weir, args);
    assert!(ok, "weir policy {}: {text}", args.join(" "));
    text
}

fn refused(weir: &Weir, args: &[&str], words: &str) {
    let (ok, text) = policy(weir, args);
    assert!(!ok, "weir policy {} was done: {text}", args.join(" "));
    assert!(text.contains(words), "{words:?} is not in: {text}");
}

/// The SDK's target, which `scripts/setup.sh build` adds.
fn has_wasm_target() -> bool {
    let libraries = Command::new("rustc")
        .args([
            "--print",
            "target-libdir",
            "--target",
            "wasm32-unknown-unknown",
        ])
        .output();
    let there = libraries.is_ok_and(|output| {
        let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && Path::new(&path).is_dir()
    });
    if !there {
        let text =
            "the target of plugins is missing; run: rustup target add wasm32-unknown-unknown";
        assert!(std::env::var_os("WEIR_KIT_REQUIRED").is_none(), "{text}");
        eprintln!("SKIPPED: {text}");
    }
    there
}

/// The tutorial of docs/plugins.md, word for word.
#[test]
fn the_tutorial_works_as_it_stands() {
    if !has_wasm_target() {
        return;
    }
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    let mut client = Client::connect(&weir, Era::Handshake);
    let bad = json!({ "text": "project nightfall" });

    assert!(done(&weir, &["new", "demo"]).contains("demo/src/lib.rs"));
    assert!(done(&weir, &["test"]).contains("2 passed, 0 failed"));
    assert!(done(&weir, &["build"]).contains("demo/demo.wasm"));
    assert!(done(&weir, &["push"]).contains("in force"));
    assert!(!is_blocked(&client.call("echo", bad.clone())));
    let config = r#"{"words": ["nightfall"]}"#;
    let bound = done(
        &weir,
        &["bind", "--tool", "echo", "--plugin-config", config],
    );
    assert!(bound.contains("in force"), "{bound}");

    upstream.forget();
    let blocked = client.call("echo", bad);
    assert!(is_blocked(&blocked));
    let said = blocked.first_text();
    assert!(
        said.contains("plugin demo: an argument holds a word that is not allowed."),
        "{said}"
    );
    assert!(upstream.calls("tools/call").is_empty());
    assert!(!is_blocked(
        &client.call("echo", json!({ "text": "lunch" }))
    ));

    // What was written wrong is said, and what is in force stays.
    refused(
        &weir,
        &["bind", "--plugin-config", r#"{"wrods": []}"#],
        "wrods",
    );
    refused(&weir, &["new", "demo"], "is there already");
    refused(&weir, &["bind", "--grant", "everything"], "session-state");
    assert!(done(&weir, &["list"]).contains("acme/demo 0.1.0"));
}

/// A plugin that logs, wants the time and panics, and what its author is told of it.
const TALKER: &str = r#"//! Blocks at night.

use dlp_sdk::{Host, JsonSchema, LogLevel, Message, Plugin, Verdict, serde::Deserialize};

pub struct Night;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde")]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {}

impl Plugin for Night {
    type Config = Config;

    fn new(_: Config) -> Result<Self, String> {
        Ok(Night)
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        host.log(LogLevel::Info, "what time is it?");
        if message.leaves().any(|leaf| leaf.text == "boom") {
            panic!("no word for this");
        }
        match host.now_ms() {
            Ok(_) => Verdict::pass(),
            Err(_) => Verdict::block("nobody knows the time"),
        }
    }
}

dlp_sdk::export!(Night);
"#;

#[test]
fn the_author_of_a_plugin_is_told_what_it_says_wants_and_dies_of() {
    if !has_wasm_target() {
        return;
    }
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    let write = |path: &str, text: &str| std::fs::write(weir.dir().join(path), text).expect(path);
    done(&weir, &["new", "night"]);
    write("night/src/lib.rs", TALKER);
    let message = |text: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "text": text } } });
    let cases = |grants: &str, text: &str| {
        let message = message(text);
        format!("{grants}cases:\n  - {{name: one, message: {message}, expect: {{action: pass}}}}\n")
    };

    write("night/tests/cases.yml", &cases("", "noon"));
    refused(
        &weir,
        &["test"],
        "one: the plugin asked for \"clock\", which is not granted; add it to `grants`",
    );
    write("night/tests/cases.yml", &cases("grants: [clock]\n", "noon"));
    let said = done(&weir, &["test"]);
    assert!(
        said.contains("1 passed, 0 failed") && said.contains("night: info: what time is it?"),
        "{said}"
    );
    write("night/tests/cases.yml", &cases("grants: [time]\n", "noon"));
    refused(&weir, &["test"], "there is no word \"time\" here");
    write("night/tests/cases.yml", &cases("grants: [clock]\n", "boom"));
    refused(&weir, &["test"], "no word for this");

    done(&weir, &["build"]);
    write("message.json", &message("noon").to_string());
    let run = ["run", "night/night.wasm", "message.json"];
    let said = done(&weir, &run);
    assert!(
        said.contains("nobody knows the time") && said.contains("--grant clock does"),
        "{said}"
    );
    let said = done(&weir, &[&run[..], &["--grant", "clock"]].concat());
    assert!(
        said.contains("plugin: pass") && !said.contains("--grant"),
        "{said}"
    );
    write("message.json", &message("boom").to_string());
    let said = done(&weir, &run);
    for words in [
        "night: info: what time is it?",
        "night: warn: panicked at src/lib.rs:",
        "no word for this",
        "night: warn: a plugin failed: wasm",
        "plugin: failed: the evaluator trapped",
    ] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }

    // Its panics are no business of whoever called the tool.
    done(&weir, &["push"]);
    done(&weir, &["bind"]);
    let blocked = Client::connect(&weir, Era::Handshake).call("echo", json!({ "text": "boom" }));
    assert!(is_blocked(&blocked));
    assert!(
        !blocked.text().contains("no word for this"),
        "{}",
        blocked.text()
    );
}

#[test]
fn a_plugin_in_javascript_is_made_built_and_bound_alike() {
    if kit::part("componentize").is_none() {
        return;
    }
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    let mut client = Client::connect(&weir, Era::Handshake);
    done(&weir, &["new", "words", "--lang", "javascript"]);
    assert!(done(&weir, &["test"]).contains("2 passed, 0 failed"));
    assert!(done(&weir, &["push"]).contains("in force"));
    let config = r#"{"words": ["nightfall"]}"#;
    done(
        &weir,
        &[
            "bind",
            "--isolation",
            "tenant",
            "--timeout-ms",
            "200",
            "--plugin-config",
            config,
        ],
    );
    let blocked = client.call("echo", json!({ "text": "project nightfall" }));
    assert!(is_blocked(&blocked));
    assert!(
        blocked.first_text().contains("plugin words: an argument"),
        "{}",
        blocked.first_text()
    );
    assert!(!is_blocked(
        &client.call("echo", json!({ "text": "lunch" }))
    ));
}

/// The shipped ones; their cases run in a copy, so that nothing is written into the checkout.
#[test]
fn the_shipped_plugins_in_javascript_pass_their_cases() {
    if kit::part("componentize").is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    for (name, cases) in [("mail-scope", "31 passed"), ("yardstick", "2 passed")] {
        for file in [
            "dlp-sdk/js/weir.js".into(),
            format!("policies/javascript/{name}/package.json"),
            format!("policies/javascript/{name}/src/plugin.js"),
        ] {
            let to = weir.dir().join(&file);
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("it can be made");
            std::fs::copy(root.join(&file), to).expect("a file of the repository");
        }
        let own = root.join(format!("policies/javascript/{name}/tests"));
        let mut args = vec!["test".to_owned(), format!("policies/javascript/{name}")];
        for entry in std::fs::read_dir(own).expect("cases") {
            args.extend([
                "--cases".into(),
                entry.expect("a file").path().display().to_string(),
            ]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = done(&weir, &args);
        assert!(said.contains(cases), "{said}");
    }
}

#[test]
fn a_pushed_and_bound_plugin_decides_until_it_is_unbound() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    let mut client = Client::connect(&weir, Era::Handshake);
    let bad = json!({ "text": "project Nightfall" });
    assert!(!is_blocked(&client.call("echo", bad.clone())));

    let first = fixture("word-guard.wasm").display().to_string();
    let second = fixture("word-guard-2.wasm").display().to_string();
    assert!(done(&weir, &["push", &first, "--tenant", TENANT]).contains("in force"));
    assert!(
        !is_blocked(&client.call("echo", bad.clone())),
        "pushed is not bound"
    );
    let bind = [
        "bind",
        "word-guard",
        "--server",
        SERVER,
        "--tool",
        "ec*",
        "--direction",
        "to_server",
    ];
    done(&weir, &bind);

    upstream.forget();
    let mut says = |words: &str| {
        let blocked = client.call("echo", bad.clone());
        assert!(is_blocked(&blocked));
        assert!(
            blocked.first_text().contains(words),
            "{}",
            blocked.first_text()
        );
    };
    says("plugin word-guard: a word of list 1.");
    assert!(
        upstream.calls("tools/call").is_empty(),
        "nothing reached the server"
    );
    done(&weir, &["push", &second]);
    says("plugin word-guard: a word of list 2.");
    done(&weir, &["rollback", "word-guard", "--tenant", TENANT]);
    says("plugin word-guard: a word of list 1.");
    refused(
        &weir,
        &["rollback", "word-guard", "--tenant", TENANT],
        "no version before",
    );
    assert!(!is_blocked(
        &client.call("echo", json!({ "text": "lunch" }))
    ));
    assert!(
        !is_blocked(&client.call("add", json!({ "text": "nightfall" }))),
        "another tool"
    );

    done(&weir, &["unbind", "word-guard", "--server", SERVER]);
    assert!(!is_blocked(&client.call("echo", bad)));
    assert!(
        !weir.log().contains("Nightfall"),
        "no message text in the log"
    );
}

#[test]
fn what_is_no_plugin_or_not_signed_is_refused_and_what_is_in_force_stays() {
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::of(json!({ "url": upstream.url() }));
    let keys = tempfile::tempdir().expect("a temporary folder");
    let private = keys.path().join("private.key").display().to_string();
    let made = weir_tests::weir::run(&["policy", "key", "--out", &private], "");
    let public = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    config = config.set(&format!("tenants.{TENANT}.plugin_keys"), json!([public]));
    let weir = Weir::serve(&config);
    let copy = weir.dir().join("guard.wasm");
    std::fs::copy(fixture("word-guard.wasm"), &copy).expect("a copy");

    refused(&weir, &["push", "guard.wasm"], "weir policy sign");
    std::fs::write(weir.dir().join("text.wasm"), "no plugin").expect("it can be written");
    refused(&weir, &["push", "text.wasm"], "sign");
    done(&weir, &["sign", "guard.wasm", "--key", &private]);
    assert!(done(&weir, &["verify", "guard.wasm", "--key", &public]).contains("signed by"));
    assert!(done(&weir, &["push", "guard.wasm"]).contains("in force"));
    done(&weir, &["bind", "word-guard"]);
    // A signature of other bytes.
    std::fs::copy(fixture("endless.wasm"), &copy).expect("a copy");
    refused(
        &weir,
        &["push", "guard.wasm", "--name", "word-guard"],
        "not signed by any",
    );
    let mut client = Client::connect(&weir, Era::Handshake);
    assert!(is_blocked(
        &client.call("echo", json!({ "text": "nightfall" }))
    ));

    let no_keys = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    std::fs::write(no_keys.dir().join("text.wasm"), "no plugin").expect("it can be written");
    refused(&no_keys, &["push", "text.wasm"], "not WebAssembly");
}

/// A configuration whose one server has a plugin from a file beside it.
fn guarded(upstream: &Upstream, timeout_ms: u32) -> Config {
    Config::of(json!({ "url": upstream.url() }))
        .set("log.level", json!("error"))
        .set(
            &format!("tenants.{TENANT}.plugins"),
            json!({ "guard": { "file": "guard.wasm" } }),
        )
        .set(
            &format!("tenants.{TENANT}.servers.{SERVER}.plugins"),
            json!([{ "plugin": "guard", "isolation": "tenant", "timeout_ms": timeout_ms }]),
        )
}

fn start_with(config: &Config, component: &str) -> Weir {
    let dir = std::sync::Arc::new(tempfile::tempdir().expect("a temporary folder"));
    std::fs::copy(fixture(component), dir.path().join("guard.wasm")).expect("a copy");
    weir_tests::weir::Start::serve_in(dir, config).ready()
}

/// `SWAPS` says how many; it is 1,000.
#[test]
fn a_thousand_hot_swaps_under_traffic_lose_and_mix_nothing() {
    let swaps: usize = std::env::var("SWAPS").map_or(1_000, |n| n.parse().expect("a number"));
    let upstream = Upstream::mcp(|_| None);
    let weir = start_with(&guarded(&upstream, 1000), "word-guard.wasm");
    let versions = ["word-guard.wasm", "word-guard-2.wasm"]
        .map(|name| std::fs::read(fixture(name)).expect("a fixture"));
    let (stop, judged) = (
        AtomicBool::new(false),
        [AtomicU64::new(0), AtomicU64::new(0)],
    );
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::connect(&weir, Era::Handshake);
                while !stop.load(Ordering::Relaxed) {
                    let blocked = client.call("echo", json!({ "text": "about nightfall" }));
                    assert!(is_blocked(&blocked), "{}", blocked.text());
                    let said = blocked.first_text();
                    let version = (1..=2)
                        .find(|n| said.contains(&format!("plugin guard: a word of list {n}. ")));
                    let version = version.unwrap_or_else(|| panic!("neither version said: {said}"));
                    judged[version - 1].fetch_add(1, Ordering::Relaxed);
                    assert!(!is_blocked(
                        &client.call("echo", json!({ "text": "lunch" }))
                    ));
                }
            });
        }
        for n in 1..=swaps {
            let new = weir.dir().join("guard.wasm.new");
            std::fs::write(&new, &versions[n % 2]).expect("it can be written");
            std::fs::rename(new, weir.dir().join("guard.wasm")).expect("the same folder");
            weir.signal(Signal::SIGHUP);
            wait::until("the swap", wait::PATIENCE, || {
                (weir.log().matches("weir: configuration reloaded").count() >= n).then_some(())
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(!weir.log().contains("refused"), "{}", weir.log());
    let judged = judged.map(AtomicU64::into_inner);
    assert!(judged.iter().all(|n| *n > 0), "{judged:?}");
}

/// How long calls of a calm tenant take at the 99th percentile while others call a tenant whose plugin
/// is this one.
fn calm_p99(component: &str) -> Duration {
    let upstream = Upstream::mcp(|_| None);
    let config = guarded(&upstream, 10).set(
        "tenants.calm.servers.quiet.upstream",
        json!({ "url": upstream.url() }),
    );
    let weir = start_with(&config, component);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::new(&weir, Era::Stateless, &[]);
                while !stop.load(Ordering::Relaxed) {
                    client.call("echo", json!({ "text": "about nightfall" }));
                }
            });
        }
        let mut calm = Client::at(weir.addr, "/servers/quiet/mcp", Era::Stateless);
        let mut took: Vec<Duration> = (0..600)
            .map(|_| {
                let began = Instant::now();
                let answer = calm.call("echo", json!({ "text": "about nightfall" }));
                assert_eq!(answer.status(), 200);
                began.elapsed()
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        took.sort();
        took[took.len() * 99 / 100]
    })
}

#[test]
fn an_endless_plugin_is_its_tenants_matter_alone() {
    let decent = calm_p99("word-guard.wasm");
    let endless = calm_p99("endless.wasm");
    eprintln!(
        "p99 of another tenant: {decent:?} beside a decent plugin, {endless:?} beside an endless one"
    );
    // Wide, for machines that do other things as well; what it must catch is a tenth of a second.
    assert!(
        endless <= decent * 3 + Duration::from_millis(15),
        "{decent:?} became {endless:?}"
    );
}

#[test]
fn a_plugin_that_fails_takes_its_fail_mode_and_says_so() {
    let upstream = Upstream::mcp(|_| None);
    for (mode, blocks) in [("closed", true), ("open", false)] {
        let at = format!("tenants.{TENANT}.servers.{SERVER}.plugins");
        let bound = json!([{ "plugin": "guard", "fail_mode": mode, "timeout_ms": 5 }]);
        let weir = start_with(&guarded(&upstream, 5).set(&at, bound), "endless.wasm");
        let mut client = Client::connect(&weir, Era::Handshake);
        let answer = client.call("echo", json!({ "text": "lunch" }));
        assert_eq!(is_blocked(&answer), blocks, "{mode}: {}", answer.text());
        if blocks {
            assert!(
                answer
                    .first_text()
                    .contains("plugin guard could not judge it")
            );
            // Blocked messages are on disk before they are answered.
            let data = weir.dir().join("data").display().to_string();
            let search = ["audit", "search", "--data-dir", &data, "--action", "block"];
            let records = weir_tests::weir::run(&search, "");
            let records = String::from_utf8_lossy(&records.stdout).into_owned();
            assert!(
                records.contains("plugin guard failed: the evaluator ran out of time"),
                "{records}"
            );
        }
        let (_, metrics) = weir.admin_get("/metrics");
        let failed = metrics.lines().find(|line| {
            line.starts_with("weir_plugin_failures_total") && line.contains("kind=\"timeout\"")
        });
        assert!(
            failed.is_some_and(|line| !line.ends_with(" 0")),
            "{failed:?}"
        );
        // `initialize`, its notification and the call each failed: the breaker is open.
        wait::until("the alert", wait::PATIENCE, || {
            weir.log()
                .contains("failed three times in a row")
                .then_some(())
        });
    }
}

#[test]
fn live_traffic_is_recorded_where_no_plugin_is_bound_and_hindered_by_nothing() {
    let upstream = Upstream::mcp(|_| None);
    // Long messages pass in steps where nobody judges them, and somebody who looks on does not.
    let limits = json!({ "message_bytes_max": 65_536, "streamed_bytes_max": 1 << 20 });
    let config = Config::of(json!({ "url": upstream.url() }))
        .set("limits", limits)
        .category("secret", "redact")
        .category("pii", "log")
        .category("injection", "warn");
    let weir = Weir::serve(&config);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            let mut client = Client::connect(&weir, Era::Handshake);
            let mut refused = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                client.call("echo", json!({ "message": "hi" }));
                let message = client.message("tools/call", json!({ "name": "typed" }));
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"typed","arguments":{{"message":"{}"}}}}}}"#,
                    message["id"],
                    "x".repeat(100_000)
                );
                let answer = client.post_bytes(body.as_bytes(), &client.headers_for(&message));
                let answer = answer.expect("an answer");
                if answer.status() != 200 {
                    refused.push(answer.text());
                }
            }
            refused
        });
        let words = ["record", "--messages", "4", "--tool", "echo"];
        let recorded = done(&weir, &[&words[..], &["--out", "live.yml"]].concat());
        assert!(recorded.contains("4 cases in live.yml"), "{recorded}");
        let words = ["record", "--messages", "4", "--direction", "to_server"];
        let recorded = done(&weir, &[&words[..], &["--out", "-"]].concat());
        assert_eq!(recorded.matches("recorded ").count(), 4, "{recorded}");
        stop.store(true, Ordering::Relaxed);
        let refused = long.join().expect("the client lives");
        assert!(refused.is_empty(), "{:?}", refused.first());
    });
    let text = std::fs::read_to_string(weir.dir().join("live.yml")).expect("it was written");
    assert!(text.contains("tools/call echo"), "{text}");
}

#[test]
fn live_traffic_is_recorded_with_masks_and_two_versions_are_compared_on_it() {
    let canary = weir_tests::Canary::github();
    let upstream = Upstream::mcp(|_| None);
    let config = Config::of(json!({ "url": upstream.url() })).category("secret", "log");
    let weir = Weir::serve(&config);
    let push = |name: &str| {
        let path = fixture(name).display().to_string();
        done(&weir, &["push", &path]);
    };
    push("word-guard.wasm");
    done(
        &weir,
        &[
            "bind",
            "word-guard",
            "--direction",
            "to_server",
            "--tool",
            "echo",
        ],
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(&weir, Era::Handshake);
            while !stop.load(Ordering::Relaxed) {
                let secret = format!("my token is {}", canary.value());
                client.call("echo", json!({ "text": secret }));
                client.call("echo", json!({ "text": "about nightfall" }));
            }
        });
        let recorded = done(
            &weir,
            &[
                "record",
                "--plugin",
                "word-guard",
                "--messages",
                "6",
                "--out",
                "live.yml",
            ],
        );
        assert!(
            recorded.contains("6 cases in live.yml, 0 messages withheld"),
            "{recorded}"
        );
        let text = std::fs::read_to_string(weir.dir().join("live.yml")).expect("it was written");
        assert!(canary.found_in(text.as_bytes()).is_none(), "{text}");
        assert!(text.contains("[masked:"), "{text}");

        // What was recorded is a test that the version in force passes.
        let guard = fixture("word-guard.wasm").display().to_string();
        let newer = fixture("word-guard-2.wasm").display().to_string();
        let tested = done(
            &weir,
            &["test", "--component", &guard, "--cases", "live.yml"],
        );
        assert!(tested.contains("6 passed, 0 failed"), "{tested}");
        let compared = done(&weir, &["shadow", "recorded", &guard, &newer, "live.yml"]);
        assert!(compared.contains("3 alike, 3 different"), "{compared}");

        let live = done(
            &weir,
            &[
                "shadow",
                "live",
                &newer,
                "--plugin",
                "word-guard",
                "--messages",
                "6",
            ],
        );
        assert!(live.contains("old: block \"a word of list 1\""), "{live}");
        assert!(live.contains("new: block \"a word of list 2\""), "{live}");
        assert!(
            live.contains("3 alike, 3 different; nothing was enforced"),
            "{live}"
        );
        stop.store(true, Ordering::Relaxed);
    });
    // Nobody looks on any more, and nothing stays behind.
    let left = std::fs::read_dir(weir.dir().join("data/plugins/taps")).expect("the folder of taps");
    assert_eq!(left.count(), 0);
    let registry = std::fs::read_to_string(weir.dir().join("data/plugins/registry.json"))
        .expect("the registry");
    assert!(!registry.contains("taps"), "{registry}");
    refused(&weir, &["record", "--plugin", "nobody"], "not bound");
}

#[test]
fn a_bound_plugin_is_bound_again_only_in_place_of_what_binds_it() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::of(json!({ "url": upstream.url() })));
    let first = fixture("word-guard.wasm").display().to_string();
    done(&weir, &["push", &first]);
    let bind = |words: &[&'static str]| [&["bind", "word-guard", "--tool", "echo"], words].concat();
    done(&weir, &bind(&["--direction", "to_server"]));
    for same in [
        &[][..],
        &["--direction", "to_server"],
        &["--timeout-ms", "20"],
    ] {
        refused(&weir, &bind(same), "--replace");
    }
    // Other messages are another binding.
    done(&weir, &["bind", "word-guard", "--tool", "typed"]);
    done(&weir, &bind(&["--direction", "to_client"]));
    let bindings = |text: &str| {
        let lines = text
            .lines()
            .filter(|l| l.starts_with(&format!("{SERVER}: ")));
        lines.count()
    };
    assert_eq!(bindings(&done(&weir, &["list"])), 3);
    // One for both directions takes the place of both.
    done(&weir, &bind(&["--timeout-ms", "20", "--replace"]));
    let listed = done(&weir, &["list"]);
    assert_eq!(bindings(&listed), 2, "{listed}");
    assert!(listed.contains("\"timeout_ms\":20"), "{listed}");
}
