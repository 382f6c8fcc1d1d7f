//! From the server to the client beside results: notifications, server requests, and what an event carries besides
//! its data; on the stream of a call and on listen streams.

use std::time::Duration;

use weir_tests::wait::PATIENCE;
use weir_tests::{Canary, Era, Reply, Value, json};

use crate::{B, Bench, H, Policy, Table, clean, echo, plant, post, short, shown, told};

in_both_eras_and_policies!(check);

/// Name, eras, method, params, whether it is sent on a call's stream too (or only on listen streams).
fn notifications() -> Vec<(&'static str, &'static [Era], &'static str, Value)> {
    vec![
        (
            "log data",
            B,
            "notifications/message",
            json!({ "level": "info", "data": { "a": ["$S"] } }),
        ),
        (
            "log text",
            B,
            "notifications/message",
            json!({ "level": "info", "data": "$S" }),
        ),
        (
            "logger",
            B,
            "notifications/message",
            json!({ "level": "info", "logger": "$T", "data": 1 }),
        ),
        (
            "progress",
            B,
            "notifications/progress",
            json!({ "progressToken": "p", "progress": 1, "message": "$S" }),
        ),
        (
            "cancel reason",
            H,
            "notifications/cancelled",
            json!({ "requestId": 77, "reason": "$S" }),
        ),
        (
            "updated uri",
            B,
            "notifications/resources/updated",
            json!({ "uri": "file:///$T" }),
        ),
        (
            "tools changed",
            B,
            "notifications/tools/list_changed",
            json!({ "_meta": { "n": "$S" } }),
        ),
        (
            "prompts changed",
            B,
            "notifications/prompts/list_changed",
            json!({ "_meta": { "n": "$S" } }),
        ),
        (
            "resources changed",
            B,
            "notifications/resources/list_changed",
            json!({ "_meta": { "n": "$S" } }),
        ),
        (
            "elicitation complete",
            H,
            "notifications/elicitation/complete",
            json!({ "elicitationId": "$T" }),
        ),
        (
            "task status",
            H,
            "notifications/tasks/status",
            json!({ "taskId": "t1", "status": "working", "statusMessage": "$S" }),
        ),
        (
            "task",
            B,
            "notifications/tasks",
            json!({ "taskId": "t1", "status": "completed",
            "result": { "content": [{ "type": "text", "text": "$S" }] } }),
        ),
        (
            "unknown",
            B,
            "notifications/vendor",
            json!({ "x": { "y": "$S" } }),
        ),
    ]
}

/// Requests of the server, which exist only in the handshake era.
fn server_requests() -> Vec<(&'static str, &'static str, Value)> {
    let sampling = |extra: Value| {
        let mut params = json!({ "maxTokens": 9, "messages": [] });
        for (k, v) in extra.as_object().into_iter().flatten() {
            params[k] = v.clone();
        }
        params
    };
    let said =
        |content: Value| sampling(json!({ "messages": [{ "role": "user", "content": content }] }));
    let form = |message: &str, properties: Value| json!({ "message": message, "requestedSchema": { "type": "object", "properties": properties } });
    vec![
        (
            "sampling text",
            "sampling/createMessage",
            said(json!({ "type": "text", "text": "$S" })),
        ),
        (
            "sampling image",
            "sampling/createMessage",
            said(json!({ "type": "image", "mimeType": "image/png", "data": "$B" })),
        ),
        (
            "sampling tool use",
            "sampling/createMessage",
            said(json!([{ "type": "tool_use", "id": "u", "name": "n", "input": { "a": "$S" } }])),
        ),
        (
            "sampling tool result",
            "sampling/createMessage",
            said(
                json!([{ "type": "tool_result", "toolUseId": "u", "content": [{ "type": "text", "text": "$S" }],
                "structuredContent": { "a": "$S" } }]),
            ),
        ),
        (
            "system prompt",
            "sampling/createMessage",
            sampling(json!({ "systemPrompt": "$S" })),
        ),
        (
            "sampling tools",
            "sampling/createMessage",
            sampling(
                json!({ "tools": [{ "name": "n", "description": "$S", "inputSchema": { "type": "object" } }] }),
            ),
        ),
        (
            "stop sequences",
            "sampling/createMessage",
            sampling(json!({ "stopSequences": ["$T"] })),
        ),
        (
            "metadata",
            "sampling/createMessage",
            sampling(json!({ "metadata": { "n": "$S" } })),
        ),
        (
            "elicitation message",
            "elicitation/create",
            form("$S", json!({})),
        ),
        (
            "elicitation schema",
            "elicitation/create",
            form(
                "m",
                json!({ "a": { "type": "string", "title": "$S", "description": "$S", "default": "$T" } }),
            ),
        ),
        (
            "elicitation url",
            "elicitation/create",
            json!({ "mode": "url", "elicitationId": "e", "message": "m", "url": "https://x.example/?t=$T" }),
        ),
        ("roots", "roots/list", json!({ "_meta": { "n": "$S" } })),
        ("ping", "ping", json!({ "_meta": { "n": "$S" } })),
        ("unknown request", "vendor/ask", json!({ "n": "$S" })),
    ]
}

fn check(era: Era, policy: Policy) {
    let mut table = Table::new(era, policy);
    for (name, eras, method, params) in notifications() {
        if !eras.contains(&era) {
            continue;
        }
        let name = format!("{method} {name}");
        table.row(&name, |bench| on_a_call(bench, method, &params, None));
        table.row(&format!("{name}, listening"), |bench| {
            on_a_listen_stream(bench, method, &params)
        });
    }
    if era == Era::Handshake {
        for (name, method, params) in server_requests() {
            table.row(&format!("{method} {name}"), |bench| {
                on_a_call(bench, method, &params, Some("srv-1"))
            });
        }
    }
    for (name, event) in [
        ("event id", "id: $T\ndata: {}\n\n"),
        ("event type", "event: $T\ndata: {}\n\n"),
        ("comment", ": $T\n\n"),
        ("unknown field", "x-note: $T\ndata:\n\n"),
        ("data that is no JSON", "data: $T\n\n"),
        (
            "split over data lines",
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\ndata: \"params\":{\"level\":\"info\",\"data\":\"$T\"}}\n\n",
        ),
    ] {
        table.row(name, |bench| beside_the_data(bench, event));
    }
    table.end();
}

/// The message comes on the stream of a call, before its clean result. With `id` it is a server request.
fn on_a_call(
    bench: &Bench,
    method: &str,
    template: &Value,
    id: Option<&'static str>,
) -> Option<String> {
    let canary = Canary::github();
    let mut sent =
        json!({ "jsonrpc": "2.0", "method": method, "params": plant(template, &canary) });
    if let Some(id) = id {
        sent["id"] = json!(id);
    }
    bench.upstream.answer(move |r| {
        (r.rpc_method() == "tools/call").then(|| Reply::events(&[sent.clone(), clean(r)]))
    });
    let mut client = bench.client();
    bench.upstream.forget();
    let message = client.message(
        "tools/call",
        json!({ "name": "echo", "arguments": { "message": "hi" },
        "_meta": { "progressToken": "p", "io.modelcontextprotocol/logLevel": "debug" } }),
    );
    let answer = match post(&client, &message) {
        Ok(answer) => answer,
        Err(fault) => return Some(fault),
    };
    if let Some(fault) = shown(&canary, &answer.bytes()) {
        return Some(fault);
    }
    if answer.first_text() != "clean" {
        return Some(format!("the clean result did not come: {}", told(&answer)));
    }
    if let Some(leak) = bench.leak(&canary) {
        return Some(leak);
    }
    let came = answer.messages.iter().any(|m| m["method"] == json!(method));
    match (bench.policy, id) {
        (Policy::Block, _) if came => Some(format!("it came through: {}", short(&answer.text()))),
        // The server must not wait for ever: it is told that its request was refused.
        (Policy::Block, Some(id)) => {
            let told =
                bench
                    .upstream
                    .wait_for("an error reply to the blocked server request", |r| {
                        let reply = r.json();
                        reply["id"] == json!(id) && reply["error"].is_object()
                    });
            canary
                .found_in(&told.body)
                .map(|_| "the error reply repeats the secret".to_owned())
        }
        _ => None,
    }
}

/// The message comes on a listen stream; a clean one behind it must arrive.
fn on_a_listen_stream(bench: &Bench, method: &str, template: &Value) -> Option<String> {
    let canary = Canary::github();
    let bad = json!({ "jsonrpc": "2.0", "method": method, "params": plant(template, &canary) });
    let era = bench.era;
    bench.upstream.answer(move |r| {
        let listens = match era {
            Era::Handshake => r.method == "GET",
            Era::Stateless => r.rpc_method() == "subscriptions/listen",
        };
        listens.then(|| {
            let id = r.json()["id"].clone();
            let (mut bad, tag) = (bad.clone(), json!({ "io.modelcontextprotocol/subscriptionId": id.to_string() }));
            Reply::wire(move |wire| {
                wire.event_head();
                let mut clean = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
                    "params": { "uri": "file:///clean" } });
                if era == Era::Stateless {
                    bad["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] =
                        tag["io.modelcontextprotocol/subscriptionId"].clone();
                    clean["params"]["_meta"] = tag.clone();
                    wire.event(&json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                        "params": { "_meta": tag, "notifications": { "resourceSubscriptions": ["file:///clean"] } } }));
                }
                wire.event(&bad);
                wire.event(&clean);
                wire.hang();
            })
        })
    });
    let mut client = bench.client();
    let mut stream = match era {
        Era::Handshake => client.listen(None),
        Era::Stateless => {
            let message = client.message(
                "subscriptions/listen",
                json!({ "notifications": {
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": ["file:///clean"] } }),
            );
            client.open(&message)
        }
    };
    if stream.head.status != 200 {
        return Some(format!("no stream: {}", stream.head.status));
    }
    let mut seen = Vec::new();
    loop {
        match stream.message(PATIENCE) {
            Ok(message) => {
                let clean = message["params"]["uri"] == json!("file:///clean");
                seen.push(message);
                if clean {
                    break;
                }
            }
            Err(e) => {
                return Some(format!(
                    "the clean message behind it did not come: {e}; saw {seen:?}"
                ));
            }
        }
    }
    let text = format!("{seen:?}");
    if let Some(fault) = shown(&canary, text.as_bytes()) {
        return Some(fault);
    }
    let came = seen
        .iter()
        .any(|m| m["method"] == json!(method) && m["params"]["uri"] != json!("file:///clean"));
    (came && bench.policy == Policy::Block)
        .then(|| format!("it came through: {}", short(&text)))
        .or_else(|| bench.leak(&canary))
}

/// What an event can carry beside a message.
fn beside_the_data(bench: &Bench, event: &str) -> Option<String> {
    let canary = Canary::github();
    let event = event.replace("$T", canary.value());
    bench.upstream.answer(move |r| {
        (r.rpc_method() == "tools/call").then(|| {
            let last = clean(r);
            Reply::status(200, "text/event-stream", format!("{event}data: {last}\n\n"))
        })
    });
    let mut client = bench.client();
    let message = echo(&mut client);
    let mut stream = client.open(&message);
    let mut raw = stream.head.raw.clone();
    // To the end of the stream or its first silence; comments and ids count.
    while let Ok(event) = stream.any_event(Duration::from_secs(2)) {
        let last = event.data.contains("clean");
        raw.extend_from_slice(format!("{event:?}").as_bytes());
        if last {
            break;
        }
    }
    shown(&canary, &raw).or_else(|| bench.leak(&canary))
}
