//! The whole chain of hosting with nothing faked: command line and REST, `weir serve`, `weir-runner`, gVisor, and other
//! people's clients. One lab and one test for all of it: packages are installed and a runner is started once.

#![allow(clippy::print_stderr, reason = "says where its time goes")]

mod lab;

use std::time::Instant;

use lab::{Lab, fixture};
use weir_tests::kit::{self, Tool, faults};
use weir_tests::wait::{PATIENCE, until};
use weir_tests::{Canary, Era, Value, json};

/// Which clients call which server: both SDKs in both of their versions, and in both eras; `auto` finds out what is spoken.
const CALLS: [(&str, &[&str]); 4] = [
    (
        "by-cli",
        &[
            "py1",
            "ts1",
            "py2-legacy",
            "ts2-legacy",
            "py2-auto",
            "ts2-auto",
            "py2-modern",
            "ts2-modern",
        ],
    ),
    ("by-rest", &["py1", "ts2-modern"]),
    ("node", &["py1", "ts2-legacy", "py2-modern", "ts2-modern"]),
    ("stdio", &["ts1", "py2-legacy", "py2-modern", "ts2-modern"]),
];

#[test]
fn uploaded_servers_run_in_gvisor_and_are_called_by_real_clients() {
    if !kit::ready() {
        return;
    }
    let began = Instant::now();
    let step = |what: &str| eprintln!("{:6.1} s: {what}", began.elapsed().as_secs_f32());
    let Some(lab) = Lab::start() else { return };
    step("runner and weir are up");
    deploy(&lab);
    step("four servers are deployed");
    call(&lab);
    step("clients of both eras have called them");
    what_a_stdio_server_says_during_a_call_is_heard(&lab);
    step("progress and a question came through");
    a_secret_in_arguments_never_reaches_the_sandbox(&lab);
    a_secret_in_an_answer_never_reaches_the_client(&lab);
    step("secrets were held, both ways");
    a_way_out_is_refused_and_recorded(&lab);
    only_its_tenant_finds_a_server(&lab);
    step("done");
}

/// Two at once, as the runner builds them.
fn deploy(lab: &Lab) {
    let seed = fixture("seed");
    std::thread::scope(|scope| {
        scope.spawn(|| lab.deploy(&lab.example("node"), "node", &[]));
        lab.deploy(&seed, "by-cli", &[]);
        lab.deploy(&fixture("stdio"), "stdio", &["--stdio"]);
    });
    assert_eq!(lab.deploy_by_rest(&seed, "by-rest"), lab.url("by-rest"));
}

/// Every client makes a good call, one with a secret, and a good one again, each on one session.
fn call(lab: &Lab) {
    let jobs: Vec<(&str, &str)> = CALLS
        .iter()
        .flat_map(|(server, clients)| clients.iter().map(|client| (*server, *client)))
        .collect();
    let (even, odd): (Vec<_>, Vec<_>) = jobs.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    let run = |jobs: &[(usize, &(&str, &str))]| -> Vec<String> {
        jobs.iter()
            .filter_map(|(_, (server, client))| fault_of(lab, server, client))
            .collect()
    };
    let wrong = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(&odd));
        let mut wrong = run(&even);
        wrong.extend(other.join().expect("a client's thread does not panic"));
        wrong
    });
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        jobs.len(),
        wrong.join("\n")
    );
}

/// What is wrong with a client's three calls, if anything is.
fn fault_of(lab: &Lab, server: &str, client: &str) -> Option<String> {
    let tool = match server {
        "node" => Tool {
            name: "greet",
            good: json!({"name": "you"}),
            bad: |s| json!({ "name": s }),
        },
        _ => get_data(),
    };
    let expected = if server == "node" {
        "Hello, you!"
    } else {
        "Result for: rain"
    };
    let canary = Canary::github();
    let header = format!("X-API-Key: {}", lab.key);
    let report = kit::client(
        client,
        &lab.url(server),
        &tool.calls(&canary),
        Some(&header),
    );
    let fault = match report {
        Err(text) => text,
        Ok(report) => {
            let mut fault = faults(&report, &canary);
            for good in report.iter().step_by(2) {
                if !good.text.contains(expected) {
                    fault.push_str(&format!(" answered {:?}", good.text));
                }
            }
            fault
        }
    };
    let found = lab.weir.found_anywhere(&canary);
    let fault = match found {
        Some(place) => format!("{fault}; the secret stands in {place}"),
        None => fault,
    };
    (!fault.is_empty()).then(|| format!("{client} of {server}: {fault}"))
}

fn get_data() -> Tool {
    Tool {
        name: "get_data",
        good: json!({"query": "rain"}),
        bad: |s| json!({ "query": s }),
    }
}

/// Progress reaches the callback of other people's clients, and a question of the server's is answered by one.
fn what_a_stdio_server_says_during_a_call_is_heard(lab: &Lab) {
    let header = format!("X-API-Key: {}", lab.key);
    let calls = json!([["count", {"to": 3}], ["get_data", {"query": "rain"}]]);
    let asks = json!([["count", {"to": 3}], ["get_data", {"query": "rain"}], ["ask_name", {}]]);
    for (client, calls) in [("py1", &asks), ("ts1", &calls)] {
        let report = kit::client(client, &lab.url("stdio"), calls, Some(&header));
        let report = report.expect("all calls are reported");
        assert_eq!(report[0].told, [1.0, 2.0, 3.0], "{client}: {report:?}");
        assert!(report[0].text.contains("counted to 3"), "{report:?}");
        assert!(report[1].told.is_empty(), "{client}: {report:?}");
        if let Some(asked) = report.get(2) {
            assert!(asked.text.contains("Hello, py1!"), "{report:?}");
        }
    }
    // One that can be asked nothing is refused at once, and hears of its progress all the same.
    let mut client = lab.client("stdio", Era::Stateless, &lab.key);
    let counting =
        json!({"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": "mine"}});
    let counted = client.request("tools/call", counting);
    let told = |m: &Value| m["params"]["progressToken"] == "mine";
    assert_eq!(
        counted.messages.iter().filter(|m| told(m)).count(),
        2,
        "{}",
        counted.text()
    );
    let refused = client.call("ask_name", json!({}));
    assert!(refused.text().contains("isError"), "{}", refused.text());
    // An answer that nobody asked for.
    let mut client = lab.client("stdio", Era::Handshake, &lab.key);
    client.initialize();
    let answer = json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "decline"}});
    let said = client.post(&answer);
    assert_eq!(said.status(), 400, "{}", said.text());
}

/// The stdio server writes down what it is asked: good words are there, so a blocked one would be.
fn a_secret_in_arguments_never_reaches_the_sandbox(lab: &Lab) {
    let canary = Canary::github();
    for era in Era::ALL {
        let mut client = lab.client("stdio", era, &lab.key);
        if era == Era::Handshake {
            client.initialize();
        }
        let blocked = client.call("get_data", json!({"query": canary.value()}));
        assert_eq!(blocked.blocked_call_fault(era), None);
        let answer = client.call("get_data", json!({"query": format!("after it, {era:?}")}));
        assert!(answer.first_text().starts_with("Result for: after it"));
    }
    let (ok, out, said) = lab
        .admin
        .cli(&["exec", "stdio", "get_data", r#"{"query": "once"}"#], "");
    assert!(ok && out.trim() == "Result for: once", "{out} {said}");
    let argument = json!({"query": canary.value()}).to_string();
    let (ok, out, said) = lab.admin.cli(&["exec", "stdio", "get_data", &argument], "");
    assert!(!ok && !out.contains(canary.value()), "{out} {said}");
    let logs = until("the last word in the server's log", PATIENCE, || {
        let logs = lab.logs("stdio");
        logs.contains("asked for: after it, Stateless")
            .then_some(logs)
    });
    assert!(logs.contains("asked for: after it, Handshake"), "{logs}");
    assert_eq!(canary.found_in(logs.as_bytes()), None);
    nowhere(lab, &canary);
}

/// The vault's value is in the sandbox, and the server gives it away.
fn a_secret_in_an_answer_never_reaches_the_client(lab: &Lab) {
    let canary = Canary::github();
    let (ok, _, said) = lab.admin.cli(
        &["secret", "set", "stdio", "TOKEN"],
        &format!("{}\n", canary.value()),
    );
    assert!(ok, "{said}");
    for era in Era::ALL {
        let mut client = lab.client("stdio", era, &lab.key);
        if era == Era::Handshake {
            client.initialize();
        }
        let answer = client.call("give_away", json!({"name": "TOKEN"}));
        let text = answer.first_text();
        assert!(text.contains("rule vault-secret"), "{}", answer.text());
        assert_eq!(canary.found_in(&answer.bytes()), None);
    }
    // The server had it to give away.
    let names: Vec<String> = lab
        .events("stdio")
        .iter()
        .filter(|e| e["event"] == "secrets_mounted")
        .map(|e| e["names"].to_string())
        .collect();
    assert!(names.iter().any(|n| n == r#"["TOKEN"]"#), "{names:?}");
    nowhere(lab, &canary);
}

/// Nothing that lasts holds the value: not what Weir wrote, not what the runner keeps.
fn nowhere(lab: &Lab, canary: &Canary) {
    lab.weir.assert_nowhere(canary, "the whole chain");
    assert_eq!(canary.found_in(lab.runner.log().as_bytes()), None);
    for part in ["servers", "boxes", "logs", "vault", "usage", "checkpoints"] {
        assert_eq!(canary.found_under(&lab.runner.state().join(part)), None);
    }
    let events = std::fs::read(lab.runner.state().join("events.jsonl")).expect("events");
    assert_eq!(canary.found_in(&events), None);
}

fn a_way_out_is_refused_and_recorded(lab: &Lab) {
    let mut client = lab.client("stdio", Era::Handshake, &lab.key);
    client.initialize();
    for (host, port) in [("exfiltration.example", 443), ("169.254.169.254", 80)] {
        let answer = client.call("connect", json!({"host": host, "port": port}));
        let text = answer.first_text();
        assert!(
            text.starts_with("refused: ") || text == "answered: b''",
            "{}",
            answer.text()
        );
        let refused = until("the refusal among the events", PATIENCE, || {
            let events = lab.events("stdio");
            events
                .into_iter()
                .find(|e| e["event"] == "egress_refused" && e["target"] == host)
        });
        assert!(
            refused["reason"].as_str().is_some_and(|r| !r.is_empty()),
            "{refused}"
        );
    }
    let connected: Vec<Value> = lab
        .events("stdio")
        .into_iter()
        .filter(|e| e["event"] == "egress_connection")
        .collect();
    assert!(connected.is_empty(), "{connected:?}");
}

fn only_its_tenant_finds_a_server(lab: &Lab) {
    for server in ["by-cli", "by-rest", "node", "stdio"] {
        let keys = [
            ("its tenant's key", &*lab.key, 200),
            ("another tenant's key", &lab.other_key, 404),
            ("no key of anybody", "wrong", 401),
        ];
        for (whose, key, status) in keys {
            let mut client = lab.client(server, Era::Handshake, key);
            let hello = client.message(
                "initialize",
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}),
            );
            assert_eq!(client.post(&hello).status(), status, "{server}, {whose}");
        }
    }
}
