//! What is refused before it is judged: no part of it that a rule finds is written down, whatever policy lets pass.

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::upstream::tools;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::audit;
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

/// Policies under which a secret passes.
fn lenient(upstream: &Upstream) -> [(&'static str, Config); 2] {
    let config = || {
        Config::new(&upstream.url())
            .set("audit", json!({ "mode": "all" }))
            .set(
                &format!("tenants.{TENANT}.policy.tools"),
                json!({ "deny": ["ghp_*"] }),
            )
    };
    [
        (
            "dry run",
            config().set(&format!("tenants.{TENANT}.policy.dry_run"), json!(true)),
        ),
        ("warn", config().category("secret", "warn")),
    ]
}

/// A message of the newest revision without the headers that it requires.
fn without_headers(client: &Client, message: &Value) -> u16 {
    let headers: Vec<(String, String)> = client
        .headers_for(message)
        .into_iter()
        .filter(|(name, _)| !matches!(name.as_str(), "Mcp-Method" | "Mcp-Name"))
        .collect();
    let body = message.to_string();
    let answer = client.post_bytes(body.as_bytes(), &headers);
    answer.expect("an answer").told_status()
}

#[test]
fn names_of_refused_messages_are_masked() {
    let upstream = Upstream::mcp(|_| None);
    for (policy, config) in lenient(&upstream) {
        let canary = Canary::github();
        let weir = Weir::serve(&config);
        let mut client = Client::connect(&weir, Era::Stateless);
        let denied = client.call(canary.value(), json!({}));
        assert!(denied.text().contains("may not be called"), "{policy}");
        let method = client.message(&format!("x/{}", canary.value()), json!({}));
        assert_eq!(without_headers(&client, &method), 400, "{policy}");
        let uri = json!({ "uri": format!("crm://{}", canary.value()) });
        let read = client.message("resources/read", uri);
        assert_eq!(without_headers(&client, &read), 400, "{policy}");
        // What holds nothing is written as it is.
        let plain = client.message("resources/read", json!({ "uri": "crm://plain" }));
        assert_eq!(without_headers(&client, &plain), 400, "{policy}");
        let records = wait::until("four records", PATIENCE, || {
            let mut found = audit(&weir, &["--action", "refused", "--oldest-first"]);
            found.extend(audit(&weir, &["--action", "block"]));
            (found.len() == 4).then_some(found)
        });
        let said = |name: &str| -> Vec<&str> {
            let said = records.iter().map(|r| r[name].as_str().unwrap_or("-"));
            said.collect()
        };
        assert_eq!(
            said("method"),
            ["[masked]", "resources/read", "resources/read", "tools/call"],
            "{policy}"
        );
        assert_eq!(
            said("tool"),
            ["-", "[masked]", "crm://plain", "[masked]"],
            "{policy}"
        );
        weir.assert_nowhere(&canary, policy);
    }
}

#[test]
fn the_name_of_a_tool_that_a_server_lists_later_is_masked() {
    let upstream = Upstream::mcp(|_| None);
    for (policy, config) in lenient(&upstream) {
        let canary = Canary::github();
        let pinning = format!("tenants.{TENANT}.servers.{SERVER}.policy.tool_pinning");
        let weir = Weir::serve(&config.set(&pinning, json!("warn")));
        let mut client = Client::connect(&weir, Era::Handshake);
        upstream.answer(|_| None);
        client.request("tools/list", json!({}));
        let mut more = tools();
        more[0]["name"] = json!(canary.value());
        upstream.answer(move |r| {
            let asked = r.rpc_method() == "tools/list";
            asked.then(|| Reply::result(r, json!({ "tools": more })))
        });
        client.request("tools/list", json!({}));
        weir.wait_for_log("a tool's definition was not approved");
        assert!(weir.log().contains("tool=\"[masked]\""), "{}", weir.log());
        weir.assert_nowhere(&canary, policy);
    }
}

/// The ids of a trace are text of the caller's, which stands in records and spans.
#[test]
fn a_trace_in_which_something_is_found_is_left_out() {
    let upstream = Upstream::mcp(|_| None);
    for (policy, config) in lenient(&upstream) {
        let weir = Weir::serve(&config.category("pii", "warn"));
        let mut client = Client::connect(&weir, Era::Stateless);
        // In the second, one id is a card's number.
        for (trace, is_kept) in [
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                true,
            ),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-4111111111111111-01",
                false,
            ),
        ] {
            let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
            let mut headers = client.headers_for(&message);
            headers.push(("traceparent".into(), trace.into()));
            let body = message.to_string();
            let answer = client.post_bytes(body.as_bytes(), &headers);
            assert_eq!(answer.expect("an answer").status(), 200, "{policy}");
            let seen = upstream.requests().pop().expect("a request");
            assert_eq!(
                seen.header("traceparent").is_some(),
                is_kept,
                "{policy} {trace}"
            );
        }
    }
}
