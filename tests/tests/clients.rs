//! Other people's clients through Weir to other people's servers. Each makes a good call, one with a secret in it
//! and a good one again, on the same session: the middle one is refused in a way that leaves the session alive.

use weir_tests::config::{Config, TENANT};
use weir_tests::kit::{Tool, faults};
use weir_tests::weir::Start;
use weir_tests::{Canary, Value, Weir, json, kit};

/// Clients of `client.sh` that speak to a server of the handshake era.
const HANDSHAKE: [&str; 9] = [
    "ts1",
    "ts2-legacy",
    "ts2-auto",
    "py1",
    "py2-legacy",
    "py2-auto",
    "inspector-legacy",
    "mcp-remote",
    "supergateway",
];
/// Those over HTTP+SSE of revision 2024-11-05.
const FIRST: [&str; 3] = ["ts1-sse", "py1-sse", "inspector-sse"];
/// Those that speak nothing but the stateless era.
const STATELESS: [&str; 3] = ["ts2-modern", "py2-modern", "inspector-modern"];

#[test]
fn python_everything_server() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("py");
    let tool = Tool {
        name: "test_simple_text",
        good: json!({}),
        bad: |s| json!({ "note": s }),
    };
    check(
        json!({ "url": server.url }),
        &tool,
        &[&HANDSHAKE[..], &STATELESS].concat(),
    );
}

#[test]
fn server_everything_over_http() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts");
    check(json!({ "url": server.url }), &ECHO(), &HANDSHAKE);
}

#[test]
fn server_everything_over_http_and_sse() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts-sse");
    check(json!({ "sse": server.url }), &ECHO(), &HANDSHAKE);
}

/// A stdio server is served in both eras, whichever it speaks itself.
#[test]
fn server_everything_over_stdio() {
    if !kit::ready() {
        return;
    }
    let words = kit::everything_stdio();
    let upstream = json!({ "command": words[0], "args": words[1..] });
    check(upstream, &ECHO(), &[&HANDSHAKE[..], &STATELESS].concat());
}

/// What a server asks its client needs a session. A client that knows both eras has one where it is told of no other.
#[test]
fn a_server_that_asks_its_client() {
    if !kit::ready() {
        return;
    }
    let python = kit::dir().join("pyold/bin/python");
    let script = kit::scripts().join("asks.py");
    let calls = json!([["ask", { "question": "what is it?" }]]);
    let cases = [
        (None, "tool_error", "Not supported."),
        (Some(false), "result", "the model says 42"),
    ];
    for (stateless, outcome, says) in cases {
        let mut upstream = json!({ "command": python, "args": [script] });
        if let Some(stateless) = stateless {
            upstream["stateless"] = json!(stateless);
        }
        let mut config = Config::of(upstream);
        let key = config.key(TENANT, "clients");
        let weir = Weir::serve(&config);
        let header = format!("X-API-Key: {key}");
        let report = kit::client("py2-auto", &weir.url(), &calls, Some(&header)).expect("calls");
        let call = &report[0];
        assert_eq!(call.outcome, outcome, "{stateless:?}: {}", call.text);
        assert!(call.text.contains(says), "{stateless:?}: {}", call.text);
        let hint = weir.log().contains("`upstream.stateless: false`");
        assert_eq!(hint, stateless.is_none(), "{}", weir.log());
    }
}

/// Clients of revision 2024-11-05 find the event stream beside the endpoint, whatever the server behind it speaks.
#[test]
fn clients_of_the_first_revision_and_a_server_of_theirs() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts-sse");
    check_at("/sse", json!({ "sse": server.url }), &ECHO(), &FIRST);
}

#[test]
fn clients_of_the_first_revision_and_a_newer_server() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts");
    check_at("/sse", json!({ "url": server.url }), &ECHO(), &FIRST);
}

#[test]
fn clients_of_the_first_revision_and_a_stdio_server() {
    if !kit::ready() {
        return;
    }
    let words = kit::everything_stdio();
    let upstream = json!({ "command": words[0], "args": words[1..] });
    check_at("/sse", upstream, &ECHO(), &FIRST);
}

#[test]
fn fastmcp_server() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("fastmcp");
    let tool = Tool {
        name: "get_data",
        good: json!({ "query": "rain" }),
        bad: |s| json!({ "query": s }),
    };
    check(json!({ "url": server.url }), &tool, &HANDSHAKE);
}

/// `weir proxy`, as in the README: no key, no file.
#[test]
fn proxy_command_with_url_and_with_program() {
    if !kit::ready() {
        return;
    }
    let server = kit::Server::start("ts");
    let by_url = Weir::proxy(&server.url);
    let words = kit::everything_stdio();
    let mut args = vec!["--"];
    args.extend(words.iter().map(String::as_str));
    let by_program = Start::proxy(&args).ready();
    for weir in [by_url, by_program] {
        for client in ["ts1", "py2-auto"] {
            let canary = Canary::github();
            let report =
                kit::client(client, &weir.url(), &ECHO().calls(&canary), None).expect(client);
            assert_eq!(faults(&report, &canary), "", "{client} {report:?}");
        }
    }
}

/// `weir stdio`: the wrapper that stands before a server's command in a desktop client's configuration.
#[test]
fn stdio_wrapper() {
    if !kit::ready() {
        return;
    }
    let canary = Canary::github();
    let dir = tempfile::TempDir::new().expect("a temporary folder");
    let output = kit::command("python3")
        .arg(kit::scripts().join("clients/bridge.py"))
        .arg(ECHO().calls(&canary).to_string())
        .arg("--")
        .arg(weir_tests::weir::binary())
        .args(["stdio", "--"])
        .args(kit::everything_stdio())
        .current_dir(dir.path())
        .output()
        .expect("python3 can be run");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let outcomes: Vec<String> = stdout
        .lines()
        .map(|l| {
            serde_json::from_str::<Value>(l).unwrap_or_default()["outcome"]
                .as_str()
                .unwrap_or("?")
                .to_owned()
        })
        .collect();
    assert_eq!(
        outcomes,
        ["result", "tool_error", "result"],
        "{stdout}\n{stderr}"
    );
    assert_eq!(canary.found_in(&output.stdout), None);
    assert_eq!(canary.found_in(&output.stderr), None);
    assert_eq!(canary.found_under(dir.path()), None);
}

#[allow(non_snake_case, reason = "stands for a constant that JSON cannot be")]
fn ECHO() -> Tool {
    Tool {
        name: "echo",
        good: json!({ "message": "hello" }),
        bad: |s| json!({ "message": s }),
    }
}

fn check(upstream: Value, tool: &Tool, clients: &[&str]) {
    check_at("/mcp", upstream, tool, clients);
}

/// The same at another end of the server's path.
fn check_at(end: &str, upstream: Value, tool: &Tool, clients: &[&str]) {
    let mut config = Config::of(upstream);
    let key = config.key(TENANT, "clients");
    let weir = Weir::serve(&config);
    let url = weir.url().replace("/mcp", end);
    let mut wrong = Vec::new();
    for client in clients {
        let canary = Canary::github();
        let header = format!("X-API-Key: {key}");
        match kit::client(client, &url, &tool.calls(&canary), Some(&header)) {
            Err(text) => wrong.push(text),
            Ok(report) => {
                let faults = faults(&report, &canary);
                if !faults.is_empty() {
                    wrong.push(format!("{client}: {faults} {report:?}"));
                }
            }
        }
        if let Some(place) = weir.found_anywhere(&canary) {
            wrong.push(format!("{client}: the secret stands in {place}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} clients:\n{}",
        wrong.len(),
        clients.len(),
        wrong.join("\n")
    );
}
