//! Hosted servers from the command line to the sandbox's door: real `weir serve`, real command line; the runner is a fake,
//! and what it calls a sandbox is an upstream under the test's control. Real sandboxes are tried in `runner/tests`.

#![allow(clippy::unwrap_used)]

mod fake;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fake::FakeRunner;
use runner_api::{ApiError, ErrorCode, GoneReason};
use tempfile::TempDir;
use weir_tests::config::{Config, TENANT};
use weir_tests::upstream::Reply;
use weir_tests::wait::{PATIENCE, until};
use weir_tests::weir::{Start, run};
use weir_tests::{Admin, Canary, Client, Era, Upstream, Weir, json};

const ID: &str = "hello";

struct Lab {
    weir: Weir,
    sandbox: Upstream,
    runner: FakeRunner,
    admin: Admin,
    key: String,
    other_key: String,
    config: Config,
    source: TempDir,
}

impl Lab {
    fn new() -> Self {
        let dir = Arc::new(TempDir::new().expect("a folder"));
        let sandbox = Upstream::mcp(|_| None);
        let runner = FakeRunner::start(dir.path(), sandbox.addr());
        let mut config = Config::new("http://127.0.0.1:9/mcp")
            .set("hosting.runner", json!(runner.socket))
            .set("hosting.listen", json!("127.0.0.1:0"));
        let key = config.key(TENANT, "mine");
        let other_key = config.key("other", "theirs");
        let weir = Start::serve_in(dir, &config).ready();
        let admin = Admin::of(&weir);
        let source = TempDir::new().expect("a folder");
        Self {
            weir,
            sandbox,
            runner,
            admin,
            key,
            other_key,
            config,
            source,
        }
    }

    fn cli(&self, args: &[&str], stdin: &str) -> (bool, String, String) {
        self.admin.cli(args, stdin)
    }

    fn deployed(settings: &[&str]) -> Self {
        let lab = Self::new();
        let source = lab.source.path().display().to_string();
        assert!(run(&["server", "init", &source], "").status.success());
        let (ok, out, said) = lab.cli(
            &[
                &["server", "deploy", &source, "--id", ID, "--tenant", TENANT],
                settings,
            ]
            .concat(),
            "",
        );
        assert!(ok, "{said}");
        assert_eq!(
            out.trim(),
            format!("http://{}/sandbox/{ID}/mcp", lab.weir.addr),
            "the URL alone is on stdout"
        );
        lab
    }

    fn client(&self, era: Era) -> Client {
        let mut client = Client::at(self.weir.addr, &format!("/sandbox/{ID}/mcp"), era);
        client.headers.push(("X-API-Key".into(), self.key.clone()));
        client
    }

    fn connected(&self) -> Client {
        let mut client = self.client(Era::Handshake);
        client.initialize();
        client
    }

    fn released(&self, count: usize) {
        until("the leases to be given back", PATIENCE, || {
            let (leases, back) = (
                self.runner.state.leases.lock().unwrap().len(),
                self.runner.state.releases.lock().unwrap().len(),
            );
            (leases == back && back >= count).then_some(())
        });
    }
}

#[test]
fn a_folder_becomes_a_url_that_clients_of_both_eras_call() {
    let lab = Lab::deployed(&["--egress", "api.github.com", "--env", "A=1"]);
    assert!(lab.runner.state.bundles.lock().unwrap()[0] > 100);
    let spec = lab
        .runner
        .state
        .specs
        .lock()
        .unwrap()
        .last()
        .expect("a spec")
        .clone();
    assert_eq!(
        (
            spec.tenant.as_str(),
            spec.egress[0].host.as_str(),
            spec.env["A"].as_str()
        ),
        (TENANT, "api.github.com", "1")
    );
    for era in Era::ALL {
        let mut client = lab.client(era);
        if era == Era::Handshake {
            client.initialize();
        }
        let answer = client.call("echo", json!({"message": "through the sandbox"}));
        assert_eq!(
            answer.first_text(),
            "Echo: through the sandbox",
            "{era:?}: {}",
            answer.text()
        );
    }
    lab.released(3);
    let (ok, list, _) = lab.cli(&["server", "list"], "");
    assert!(
        ok && list.contains("deployed") && list.contains(&format!("/sandbox/{ID}/mcp")),
        "{list}"
    );
}

#[test]
fn a_server_that_wants_a_handshake_serves_clients_that_know_none() {
    let lab = Lab::deployed(&[]);
    let count = std::sync::atomic::AtomicU32::new(0);
    lab.sandbox.answer(move |request| {
        let refused = || Reply::status(400, "text/plain", "no such revision, or no session");
        if request.header("mcp-protocol-version") == Some(Era::Stateless.revision()) {
            return Some(refused());
        }
        match request.rpc_method().as_str() {
            "initialize" => {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "older", "version": "1"}});
                Some(Reply::result(request, result).with("Mcp-Session-Id", &format!("own-{number}")))
            }
            _ if request.header("mcp-session-id").is_none() => Some(refused()),
            _ if request.method == "DELETE" => Some(Reply::status(200, "text/plain", "")),
            "tools/call" => {
                let message = request.json();
                let text = format!("Older: {}", message["params"]["arguments"]["message"]);
                let result = json!({"content": [{"type": "text", "text": text}]});
                Some(Reply::json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result})))
            }
            _ => None,
        }
    });
    let mut client = lab.client(Era::Stateless);
    let discovered = client.request("server/discover", json!({}));
    let said = discovered.result();
    assert_eq!(
        said["supportedVersions"],
        json!(["2026-07-28", "2025-06-18"]),
        "{}",
        discovered.text()
    );
    assert_eq!(said["capabilities"], json!({"tools": {}}));
    for text in ["one", "two"] {
        let answer = client.call("echo", json!({"message": text}));
        assert_eq!(answer.first_text(), format!("Older: {text:?}"));
        assert_eq!(
            answer.result()["resultType"],
            "complete",
            "{}",
            answer.text()
        );
    }
    lab.released(3);
    // By session: the end of one does not hold up the next.
    let requests = lab.sandbox.requests();
    let of = |session: Option<&str>| -> Vec<String> {
        let own = requests
            .iter()
            .filter(|r| r.header("mcp-session-id") == session);
        own.map(|r| match r.method.as_str() {
            "DELETE" => "the end".to_owned(),
            _ => r.rpc_method(),
        })
        .collect()
    };
    let opened = ["server/discover", "initialize", "initialize", "initialize"];
    assert_eq!(of(None), opened, "asked once; each request has a session");
    let begun = "notifications/initialized";
    assert_eq!(of(Some("own-0")), [begun, "the end"]);
    for session in ["own-1", "own-2"] {
        assert_eq!(of(Some(session)), [begun, "tools/call", "the end"]);
    }
    for call in lab.sandbox.calls("tools/call") {
        assert_eq!(call.header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(call.header("mcp-method"), None);
    }
}

/// What is too long to be kept is asked for by `server/discover` alone, and every session has its end.
#[test]
fn a_server_with_a_long_handshake_is_called_all_the_same() {
    let lab = Lab::deployed(&[]);
    let instructions = "Use the tool. ".repeat(30_000);
    lab.sandbox.answer(move |request| {
        if request.header("mcp-protocol-version") == Some(Era::Stateless.revision()) {
            return Some(Reply::status(400, "text/plain", "no such revision"));
        }
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "instructions": instructions});
        (request.rpc_method() == "initialize").then(|| Reply::result(request, result).with("Mcp-Session-Id", "own"))
    });
    let mut client = lab.client(Era::Stateless);
    let discovered = client.request("server/discover", json!({}));
    assert_eq!(discovered.told_status(), 502, "{}", discovered.text());
    let answer = client.call("echo", json!({"message": "one"}));
    assert_eq!(answer.first_text(), "Echo: one");
    lab.released(2);
    let requests = lab.sandbox.requests();
    let ended = requests.iter().filter(|r| r.method == "DELETE").count();
    assert_eq!(ended, 2);
}

#[test]
fn a_session_keeps_to_its_sandbox_and_its_ids_stay_here() {
    let lab = Lab::new();
    lab.sandbox.answer(|request| {
        let hello = request.rpc_method() == "initialize";
        let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        hello.then(|| Reply::result(request, result).with("Mcp-Session-Id", "inner-id.7"))
    });
    let source = lab.source.path().display().to_string();
    assert!(run(&["server", "init", &source], "").status.success());
    assert!(
        lab.cli(
            &["server", "deploy", &source, "--id", ID, "--tenant", TENANT],
            ""
        )
        .0
    );
    let mut client = lab.connected();
    client.call("echo", json!({"message": "a"}));
    let leases = lab.runner.state.leases.lock().unwrap().clone();
    let keys: Vec<_> = leases
        .iter()
        .map(|l| l.session.as_ref().expect("a key").to_string())
        .collect();
    assert!(
        keys.len() >= 3 && keys.iter().all(|k| *k == keys[0]),
        "{keys:?}"
    );
    let inside = lab.sandbox.calls("tools/call");
    assert_eq!(inside[0].header("mcp-session-id"), Some("inner-id.7"));
    let outside = client.session.clone().expect("a session");
    assert!(!outside.contains("inner") && !outside.contains(&keys[0]));
    assert!(
        !String::from_utf8_lossy(&lab.sandbox.bytes()).contains(&keys[0]),
        "the key never reaches the sandbox"
    );
}

#[test]
fn an_execution_that_takes_too_long_is_cancelled_in_the_server() {
    let lab = Lab::deployed(&[]);
    lab.sandbox
        .answer(|request| (request.rpc_method() == "tools/call").then_some(Reply::Hang));
    let (ok, _, said) = lab.cli(&["exec", ID, "echo", "{}", "--timeout", "1"], "");
    assert!(
        !ok && said.contains("no result within 1 s; the call was cancelled"),
        "{said}"
    );
    let word = lab.sandbox.wait_for("the cancellation", |request| {
        request.rpc_method() == "notifications/cancelled"
    });
    let call = &lab.sandbox.calls("tools/call")[0];
    assert_eq!(word.json()["params"]["requestId"], call.json()["id"]);
    assert_eq!(word.header("mcp-session-id"), call.header("mcp-session-id"));
}

#[test]
fn calls_are_scanned_whichever_way_they_come() {
    let lab = Lab::deployed(&[]);
    let canary = Canary::github();
    let mut client = lab.connected();
    let answer = client.call("echo", json!({"message": canary.value()}));
    assert_eq!(answer.blocked_call_fault(Era::Handshake), None);
    let argument = json!({"message": canary.value()}).to_string();
    let (ok, out, said) = lab.cli(&["exec", ID, "echo", &argument], "");
    assert!(!ok && !out.contains(canary.value()), "{out} {said}");
    assert!(
        lab.sandbox.calls("tools/call").is_empty(),
        "nothing reached the sandbox"
    );
    let (ok, out, said) = lab.cli(&["exec", ID, "echo", r#"{"message": "hi there"}"#], "");
    assert!(
        ok && out.trim() == "Echo: hi there" && said.contains(" ms"),
        "{out} {said}"
    );
    let (ok, _, said) = lab.cli(&["exec", "nosuch", "echo"], "");
    assert!(!ok && said.contains("no server"), "{said}");
    lab.weir.assert_nowhere(&canary, "a blocked execution");
}

#[test]
fn only_one_path_leads_to_a_hosted_server_and_only_its_tenant_goes_it() {
    let lab = Lab::deployed(&[]);
    let status = |path: &str, key: &str| {
        let mut client = lab.client(Era::Stateless);
        client.path = path.to_owned();
        client.headers = vec![("X-API-Key".into(), key.to_owned())];
        client.call("echo", json!({"message": "x"})).status()
    };
    assert_eq!(status("/sandbox/hello/mcp", &lab.key), 200);
    assert_eq!(
        status("/sandbox/hello/mcp", &lab.other_key),
        404,
        "another tenant's"
    );
    assert_eq!(status("/sandbox/hello/mcp", "wrong"), 401);
    for path in [
        "/servers/hello/mcp",
        "/sandbox/nosuch/mcp",
        "/sandbox/files/mcp",
        "/sandbox/hello/mcp/",
        "/sandbox/hello",
        "/sandbox/hello/",
        "/sandbox//hello/mcp",
        "/sandbox/hello//mcp",
        "//sandbox/hello/mcp",
        "/Sandbox/hello/mcp",
        "/sandbox/HELLO/mcp",
        "/sandbox/hello/MCP",
        "/sandbox/hello/sse",
        "/sandbox/hello/message",
        "/sandbox/./hello/mcp",
        "/sandbox/x/../hello/mcp",
        "/sandbox/hello%2fmcp",
        "/sandbox/%68ello/mcp",
        "/sandbox/hello/mcp%00",
        "/sandbox/hello/mcp;x",
        "/sandbox/hello\\mcp",
        "/mcp",
        "/hello/mcp",
        "/sandbox/hello/x/mcp",
        "/sandbox/mcp",
        "/sandbox/mcp/mcp",
        "/sandbox/hello.mcp",
    ] {
        assert_eq!(status(path, &lab.key), 404, "{path}");
    }
}

#[test]
fn a_call_fails_at_once_when_its_sandbox_is_gone() {
    let lab = Lab::deployed(&[]);
    lab.sandbox
        .answer(|request| (request.rpc_method() == "tools/call").then_some(Reply::Hang));
    for (reason, text) in [
        (GoneReason::OutOfMemory, "out of memory"),
        (GoneReason::Exited { code: Some(1) }, "its program ended"),
    ] {
        let mut client = lab.client(Era::Stateless);
        lab.sandbox.forget();
        let asked = std::thread::spawn(move || client.call("echo", json!({"message": "x"})));
        lab.sandbox
            .wait_for("the call", |r| r.rpc_method() == "tools/call");
        let killed = Instant::now();
        lab.runner.kill_sandboxes(reason);
        let answer = asked.join().expect("an answer");
        assert!(
            killed.elapsed() < Duration::from_secs(1),
            "{:?}",
            killed.elapsed()
        );
        let message = answer.error()["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(message.contains(text), "{message}");
    }
    lab.released(2);
}

#[test]
fn a_call_that_takes_too_long_takes_its_sandbox_with_it() {
    let lab = Lab::deployed(&[]);
    lab.sandbox
        .answer(|request| (request.rpc_method() == "tools/call").then_some(Reply::Hang));
    let mut client = lab.client(Era::Stateless);
    let answer = client.call("echo", json!({"message": "x"}));
    assert!(
        answer.error()["message"]
            .as_str()
            .unwrap_or_default()
            .contains("in time"),
        "{}",
        answer.text()
    );
    lab.released(1);
    assert_eq!(*lab.runner.state.releases.lock().unwrap(), [true]);
}

#[test]
fn who_only_listens_leaves_the_sandbox_to_the_others() {
    let lab = Lab::deployed(&[]);
    lab.sandbox.answer(|request| {
        (request.rpc_method() == "subscriptions/listen").then(|| {
            Reply::wire(|wire| {
                wire.event_head();
                wire.send(": open\n\n");
                wire.hang();
            })
        })
    });
    let mut client = lab.client(Era::Stateless);
    let asked = json!({ "notifications": { "toolsListChanged": true } });
    let message = client.message("subscriptions/listen", asked);
    let mut stream = client.open(&message);
    assert_eq!(stream.head.status, 200);
    // It is cut when the time of a call is over.
    while stream.message(PATIENCE).is_ok() {}
    lab.released(1);
    let releases = lab.runner.state.releases.lock().unwrap().clone();
    assert_eq!(releases, [false], "its sandbox has done nothing wrong");
}

#[test]
fn a_deploy_for_another_tenant_changes_nothing() {
    let lab = Lab::deployed(&[]);
    let before = lab.runner.state.bundles.lock().unwrap().len();
    let source = lab.source.path().display().to_string();
    let deploy = |more: &[&str]| {
        let words = [&["server", "deploy", &source, "--id", ID], more].concat();
        lab.cli(&words, "")
    };
    let (ok, _, said) = deploy(&["--tenant", "other", "--env", "A=2"]);
    assert!(
        !ok && said.contains(&format!("of tenant {TENANT}")),
        "{said}"
    );
    assert_eq!(lab.runner.state.bundles.lock().unwrap().len(), before);
    let (ok, _, said) = deploy(&[]);
    assert!(ok, "whose it is need not be said again: {said}");
}

#[test]
fn a_runner_that_is_down_full_or_unable_is_a_clear_error() {
    let mut lab = Lab::deployed(&[]);
    let cases = [
        (ErrorCode::Busy, 429, "try again later"),
        (ErrorCode::StartFailed, 502, "could not be started"),
        (ErrorCode::Internal, 503, "cannot be reached"),
    ];
    for (code, status, text) in cases {
        *lab.runner.state.refuse.lock().unwrap() =
            Some(ApiError::new(code, "words for the operator, with /a/path"));
        let answer = lab
            .client(Era::Stateless)
            .call("echo", json!({"message": "x"}));
        let message = answer.error()["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            answer.status() == status && message.contains(text) && !message.contains("/a/path"),
            "{code:?} {} {message}",
            answer.status()
        );
        assert_eq!(answer.head.header("retry-after").is_some(), status != 502);
    }
    *lab.runner.state.refuse.lock().unwrap() = None;
    lab.runner.die();
    let answer = lab
        .client(Era::Stateless)
        .call("echo", json!({"message": "x"}));
    assert_eq!(answer.told_status(), 503, "{}", answer.text());
    let (ok, _, said) = lab.cli(&["server", "restart", ID], "");
    assert!(!ok && said.contains("weir-runner"), "{said}");
    lab.runner.go_on();
    let answer = until("the runner to be asked again", PATIENCE, || {
        let answer = lab
            .client(Era::Stateless)
            .call("echo", json!({"message": "back"}));
        (answer.status() == 200).then_some(answer)
    });
    assert_eq!(answer.first_text(), "Echo: back");
}

#[test]
fn with_a_sandbox_per_call_weir_shakes_hands_with_each() {
    let lab = Lab::deployed(&["--isolation", "call"]);
    let mut client = lab.connected();
    lab.released(1);
    assert_eq!(
        lab.runner.state.leases.lock().unwrap().len(),
        1,
        "a notification needs no sandbox"
    );
    lab.sandbox.forget();
    for text in ["one", "two"] {
        assert_eq!(
            client.call("echo", json!({"message": text})).first_text(),
            format!("Echo: {text}")
        );
    }
    lab.released(3);
    let methods: Vec<_> = lab
        .sandbox
        .requests()
        .iter()
        .map(weir_tests::upstream::Request::rpc_method)
        .collect();
    let each = ["initialize", "notifications/initialized", "tools/call"];
    assert_eq!(methods, [each, each].concat());
    assert_eq!(client.delete(), 204);
    // An execution takes one sandbox, not two.
    let (ok, out, said) = lab.cli(&["exec", ID, "echo", r#"{"message": "three"}"#], "");
    assert!(ok && out.trim() == "Echo: three", "{out} {said}");
    lab.released(4);
    assert_eq!(lab.runner.state.leases.lock().unwrap().len(), 4);
}

/// Which connections so many calls came on, in their order.
fn connections_of(lab: &Lab, client: &mut Client, calls: usize) -> Vec<u64> {
    lab.sandbox.forget();
    for _ in 0..calls {
        let answer = client.call("echo", json!({"message": "x"}));
        assert_eq!(answer.first_text(), "Echo: x");
    }
    let calls = lab.sandbox.calls("tools/call");
    calls.iter().map(|request| request.conn).collect()
}

/// Accepting one is dear in a sandbox. A connection to one that is gone must not lead into another at its address.
#[test]
fn a_connection_is_kept_for_the_next_call_to_the_same_sandbox_and_no_other() {
    const CALLS: usize = 20;
    let lab = Lab::deployed(&[]);
    let mut client = lab.connected();
    let mut seen = BTreeSet::new();
    for life in 1..=3 {
        lab.runner.state.life.store(life, Ordering::Relaxed);
        let here: BTreeSet<u64> = connections_of(&lab, &mut client, CALLS)
            .into_iter()
            .collect();
        // On a very busy machine one or the other is closed before its next call.
        assert!(here.len() < CALLS, "none was used twice: {here:?}");
        assert!(seen.is_disjoint(&here), "life {life}: {here:?} {seen:?}");
        seen.extend(here);
    }
}

/// A sandbox per call shares nothing, and no connection either.
#[test]
fn with_a_sandbox_per_call_each_has_connections_of_its_own() {
    let lab = Lab::deployed(&["--isolation", "call"]);
    let mut client = lab.connected();
    let mut here = connections_of(&lab, &mut client, 5);
    here.dedup();
    assert_eq!(here.len(), 5, "{here:?}");
}

#[test]
fn a_session_outlives_its_sandbox() {
    let lab = Lab::deployed(&[]);
    // Each sandbox knows the sessions that were opened in it, as servers with state do.
    let life = Arc::new(std::sync::atomic::AtomicU32::new(1));
    let now = Arc::clone(&life);
    lab.sandbox.answer(move |request| {
        let id = format!("life-{}", now.load(Ordering::Relaxed));
        if request.rpc_method() == "initialize" {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
            return Some(Reply::result(request, result).with("Mcp-Session-Id", &id));
        }
        (request.header("mcp-session-id") != Some(&id)).then(|| Reply::status(404, "text/plain", "no such session"))
    });
    let mut client = lab.connected();
    assert_eq!(
        client.call("echo", json!({"message": "one"})).first_text(),
        "Echo: one"
    );
    life.store(2, Ordering::Relaxed);
    for text in ["two", "three"] {
        assert_eq!(
            client.call("echo", json!({"message": text})).first_text(),
            format!("Echo: {text}")
        );
    }
    assert_eq!(
        lab.sandbox.calls("initialize").len(),
        2,
        "it was opened anew once"
    );
    // An answer or a notification is about what went with the old one: it opens none, and is no error to its client.
    life.store(3, Ordering::Relaxed);
    let changed = client.notify("notifications/roots/list_changed", json!({}));
    assert_eq!(changed.status(), 202, "{}", changed.text());
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"roots": []}});
    assert_eq!(client.post(&answer).status(), 202);
    assert_eq!(lab.sandbox.calls("initialize").len(), 2);
}

#[test]
fn with_a_sandbox_per_session_its_end_ends_it() {
    let lab = Lab::deployed(&["--isolation", "session"]);
    let (mut one, mut two) = (lab.connected(), lab.connected());
    one.call("echo", json!({"message": "x"}));
    two.call("echo", json!({"message": "x"}));
    let keys: Vec<_> = lab
        .runner
        .state
        .leases
        .lock()
        .unwrap()
        .iter()
        .map(|l| l.session.clone().expect("a key").to_string())
        .collect();
    assert!(keys[0] != keys[2] && keys.contains(&keys[0]));
    assert_eq!(one.delete(), 204);
    until("the session's end", PATIENCE, || {
        lab.runner
            .state
            .ended_sessions
            .lock()
            .unwrap()
            .contains(&keys[0])
            .then_some(())
    });
    // A request without a session gets a passing one.
    lab.client(Era::Stateless)
        .call("echo", json!({"message": "x"}));
    until("its end", PATIENCE, || {
        (lab.runner.state.ended_sessions.lock().unwrap().len() == 2).then_some(())
    });
    // An open stream would keep the sandbox from ever being idle.
    let listened = two.listen(None);
    assert_eq!(listened.head.status, 405);
}

#[test]
fn a_secret_comes_from_standard_input_and_stays_in() {
    let lab = Lab::deployed(&[]);
    let canary = Canary::stripe();
    let (ok, out, said) = lab.cli(
        &["secret", "set", ID, "API_KEY"],
        &format!("{}\n", canary.value()),
    );
    assert!(ok, "{out} {said}");
    assert_eq!(lab.cli(&["secret", "list", ID], "").1.trim(), "API_KEY");
    assert!(
        lab.runner
            .state
            .specs
            .lock()
            .unwrap()
            .last()
            .expect("a spec")
            .secrets
            .iter()
            .any(|n| n.as_str() == "API_KEY")
    );
    assert!(
        !lab.cli(&["secret", "set", ID, "../x"], "x").0
            && !lab.cli(&["secret", "set", ID, "EMPTY"], "").0
    );
    lab.weir.assert_nowhere(&canary, "a secret that was set");
}

/// Nothing in it looks like a secret to any rule.
const PLAIN: &str = "seven-green-boats-42";

impl Lab {
    /// The server answers with this text from now on.
    fn says(&self, text: &str) {
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.sandbox.answer(move |request| {
            (request.rpc_method() == "tools/call").then(|| Reply::result(request, result.clone()))
        });
    }

    fn put_policy(&self, policy: &weir_tests::Value) -> u16 {
        let path = format!("/api/v1/servers/{ID}/policy");
        let body = policy.to_string();
        let response = self
            .admin
            .request("PUT", &path, "application/json", body.as_bytes());
        response.status()
    }

    fn set_secret(&self, id: &str, value: &str) {
        let (ok, out, said) = self.cli(&["secret", "set", id, "API_KEY"], value);
        assert!(ok, "{out} {said}");
    }
}

fn assert_blocked(answer: &weir_tests::Answer) {
    let fault = answer.blocked_call_fault(Era::Handshake);
    assert_eq!(fault, None, "{}", answer.text());
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[test]
fn a_secret_never_comes_out_of_its_server_and_never_goes_in() {
    let lab = Lab::deployed(&[]);
    let mut client = lab.connected();
    let mut answer = |text: &str| {
        lab.says(text);
        client.call("echo", json!({"message": "tell me"}))
    };
    let written = |value: &str| {
        vec![
            format!("the key is {value}, really"),
            format!("it is {} in base64", base64(value)),
            value.chars().rev().collect(),
            value.bytes().map(|b| format!("{b:02x}")).collect(),
        ]
    };
    for text in written(PLAIN) {
        assert_eq!(answer(&text).first_text(), text, "no secret yet");
    }
    lab.set_secret(ID, PLAIN);
    for text in written(PLAIN) {
        let answer = answer(&text);
        assert_blocked(&answer);
        assert!(!answer.text().contains(&text), "{}", answer.text());
    }
    assert_eq!(
        answer("seven-green-boats-43").first_text(),
        "seven-green-boats-43"
    );
    // In a call it goes no further than here.
    lab.sandbox.forget();
    let call = lab
        .connected()
        .call("echo", json!({"message": base64(PLAIN)}));
    assert_blocked(&call);
    assert!(lab.sandbox.calls("tools/call").is_empty());
    // After a rotation the new one is looked for, and the old one still: sandboxes that have it may answer.
    lab.set_secret(ID, "eight-brown-boats-43");
    for value in [PLAIN, "eight-brown-boats-43"] {
        for text in written(value) {
            let answer = answer(&text);
            assert_blocked(&answer);
        }
    }
    // Nobody else's messages are judged by it.
    let source = lab.source.path().display().to_string();
    let (ok, _, said) = lab.cli(
        &[
            "server", "deploy", &source, "--id", "second", "--tenant", TENANT,
        ],
        "",
    );
    assert!(ok, "{said}");
    let mut second = Client::at(lab.weir.addr, "/sandbox/second/mcp", Era::Stateless);
    second.headers.push(("X-API-Key".into(), lab.key.clone()));
    for text in written(PLAIN) {
        lab.says(&text);
        let answer = second.call("echo", json!({"message": PLAIN}));
        assert_eq!(answer.first_text(), text, "{}", answer.text());
    }
}

#[test]
fn no_policy_lets_a_secret_pass() {
    let lab = Lab::deployed(&[]);
    lab.set_secret(ID, PLAIN);
    let loose =
        json!({"dry_run": true, "bindings": [{"action": "ignore"}], "allow": [{"path": "$.**"}]});
    assert_eq!(lab.put_policy(&loose), 200);
    lab.says(PLAIN);
    let answer = lab.connected().call("echo", json!({"message": "x"}));
    assert_blocked(&answer);
    // Cut out instead of stopped: that much a policy may say.
    let cut =
        json!({"bindings": [{"category": "secret", "action": "redact", "form": "keep_last_4"}]});
    assert_eq!(lab.put_policy(&cut), 200);
    let answer = lab.connected().call("echo", json!({"message": "x"}));
    assert_eq!(answer.first_text(), "[REDACTED:vault-secret]");
}

#[test]
fn a_server_whose_secrets_are_not_known_is_closed() {
    let mut lab = Lab::deployed(&[]);
    lab.set_secret(ID, PLAIN);
    lab.says(PLAIN);
    lab.runner.die();
    let Lab {
        weir,
        key,
        config,
        mut runner,
        sandbox,
        ..
    } = lab;
    let weir = weir.kill_and_restart(|dir| Start::serve_in(dir, &config));
    let call = || {
        let mut client = Client::at(weir.addr, &format!("/sandbox/{ID}/mcp"), Era::Stateless);
        client.headers.push(("X-API-Key".into(), key.clone()));
        client.call("echo", json!({"message": "x"}))
    };
    assert_eq!(
        call().status(),
        429,
        "nobody knows what its secrets look like"
    );
    let mut client = Client::at(weir.addr, &format!("/sandbox/{ID}/mcp"), Era::Stateless);
    client.headers.push(("X-API-Key".into(), key.clone()));
    let heard = sandbox.requests().len();
    let word = client.notify("notifications/cancelled", json!({"requestId": 1}));
    assert_eq!(word.told_status(), 429, "nor what it may be told");
    assert_eq!(sandbox.requests().len(), heard);
    runner.go_on();
    until("the runner is followed again", PATIENCE, || {
        (call().status() == 200).then_some(())
    });
    assert_eq!(
        call().blocked_call_fault(Era::Stateless),
        None,
        "{}",
        call().text()
    );
    drop((runner, sandbox));
}

#[test]
fn an_id_is_hosted_or_in_the_file_but_not_both() {
    let lab = Lab::deployed(&[]);
    let clash = lab.config.clone().set(
        &format!("tenants.{TENANT}.servers.{ID}"),
        json!({"upstream": {"url": "http://127.0.0.1:9/mcp"}}),
    );
    lab.weir.rewrite_config(&clash.text());
    lab.weir
        .wait_for_log("server hello is hosted, and stands in the configuration file too");
    assert_eq!(
        lab.connected()
            .call("echo", json!({"message": "still here"}))
            .first_text(),
        "Echo: still here"
    );
    let source = lab.source.path().display().to_string();
    let (ok, _, said) = lab.cli(
        &[
            "server", "deploy", &source, "--id", "files", "--tenant", TENANT,
        ],
        "",
    );
    assert!(
        !ok && said.contains("files is hosted, and stands in the configuration file too"),
        "{said}"
    );
}

#[test]
fn hosted_servers_survive_a_reload_and_a_kill() {
    let lab = Lab::deployed(&[]);
    lab.weir
        .rewrite_config(&lab.config.clone().set("log.level", json!("info")).text());
    lab.weir.wait_for_log("configuration reloaded");
    assert_eq!(
        lab.connected()
            .call("echo", json!({"message": "a"}))
            .first_text(),
        "Echo: a"
    );
    let Lab {
        weir,
        key,
        config,
        runner,
        sandbox,
        ..
    } = lab;
    let weir = weir.kill_and_restart(|dir| Start::serve_in(dir, &config));
    let mut client = Client::at(weir.addr, &format!("/sandbox/{ID}/mcp"), Era::Stateless);
    client.headers.push(("X-API-Key".into(), key));
    assert_eq!(
        client.call("echo", json!({"message": "b"})).first_text(),
        "Echo: b"
    );
    drop((runner, sandbox));
}

#[test]
fn the_admin_api_answers_only_to_its_own_name_and_token() {
    let lab = Lab::new();
    let addr = lab.admin.addr;
    let token = std::fs::read_to_string(lab.admin.token_file()).expect("a token");
    let get = |host: &str, token: &str, more: &str| {
        let mut conn = weir_tests::http::Conn::open(addr);
        conn.send(format!("GET /api/v1/servers HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{more}Connection: close\r\n\r\n"));
        conn.response().expect("an answer").status()
    };
    let (own, token) = (addr.to_string(), token.trim());
    assert_eq!(get(&own, token, ""), 200);
    assert_eq!(get(&own, "x", ""), 401);
    assert_eq!(get("evil.example", token, ""), 403);
    assert_eq!(get(&own, token, "Origin: https://evil.example\r\n"), 403);
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(lab.admin.token_file())
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}
