//! From the client to the server: requests, notifications, headers.

use weir_tests::mcp::header_value;
use weir_tests::{Answer, Canary, Client, Era, Value, json};

use crate::{B, Bench, H, Policy, S, Table, echo, plant, post, short, told};

in_both_eras_and_policies!(check);

/// What `redact` can do about a place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    /// Free text: masked, the rest of it still there.
    InPlace,
    /// A name, an address, an encoded body: masked or refused.
    OrRefused,
}
use Mask::{InPlace, OrRefused};

type Row = (&'static str, &'static [Era], &'static str, Mask, Value);

fn requests() -> Vec<Row> {
    let call = |arguments: Value| json!({ "name": "echo", "arguments": arguments });
    let row = |name, eras, method, mask, params| (name, eras, method, mask, params);
    vec![
        row(
            "arguments",
            B,
            "tools/call",
            InPlace,
            call(json!({ "message": "$S" })),
        ),
        row(
            "arguments, deep",
            B,
            "tools/call",
            InPlace,
            call(json!({ "a": [{ "b": [1, null, { "c": "$S" }] }] })),
        ),
        row(
            "arguments, key",
            B,
            "tools/call",
            OrRefused,
            call(json!({ "$T": 1 })),
        ),
        row(
            "arguments, base64",
            B,
            "tools/call",
            OrRefused,
            call(json!({ "blob": "$B" })),
        ),
        row(
            "arguments, hex",
            B,
            "tools/call",
            OrRefused,
            call(json!({ "blob": "$H" })),
        ),
        row(
            "arguments, JSON in a string",
            B,
            "tools/call",
            InPlace,
            call(json!({ "json": "{\"a\":\"$S\"}" })),
        ),
        row(
            "arguments, two places",
            B,
            "tools/call",
            InPlace,
            call(json!({ "a": "$S", "b": { "c": "$S" } })),
        ),
        row(
            "tool name",
            B,
            "tools/call",
            OrRefused,
            json!({ "name": "$T", "arguments": {} }),
        ),
        row(
            "_meta",
            B,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {}, "_meta": { "example.com/note": "$S" } }),
        ),
        row(
            "_meta, key",
            B,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {}, "_meta": { "$T": "x" } }),
        ),
        row(
            "progress token",
            B,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {}, "_meta": { "progressToken": "$T" } }),
        ),
        row(
            "unknown member",
            B,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {}, "extra": "$S" }),
        ),
        row(
            "inputResponses",
            S,
            "tools/call",
            InPlace,
            json!({ "name": "echo", "arguments": {}, "requestState": "s",
            "inputResponses": { "k": { "action": "accept", "content": { "password": "$S" } } } }),
        ),
        row(
            "inputResponses, key",
            S,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {},
            "inputResponses": { "$T": { "action": "accept", "content": {} } } }),
        ),
        row(
            "inputResponses, sampling",
            S,
            "tools/call",
            InPlace,
            json!({ "name": "echo", "arguments": {},
            "inputResponses": { "k": { "role": "assistant", "model": "m", "content": { "type": "text", "text": "$S" } } } }),
        ),
        row(
            "inputResponses, roots",
            S,
            "prompts/get",
            OrRefused,
            json!({ "name": "p",
            "inputResponses": { "k": { "roots": [{ "uri": "file:///$T", "name": "$S" }] } } }),
        ),
        row(
            "requestState",
            S,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {}, "requestState": "$T" }),
        ),
        row(
            "tools/list cursor",
            B,
            "tools/list",
            OrRefused,
            json!({ "cursor": "$T" }),
        ),
        row(
            "resources/list cursor",
            B,
            "resources/list",
            OrRefused,
            json!({ "cursor": "$T" }),
        ),
        row(
            "templates/list cursor",
            B,
            "resources/templates/list",
            OrRefused,
            json!({ "cursor": "$T" }),
        ),
        row(
            "prompts/list cursor",
            B,
            "prompts/list",
            OrRefused,
            json!({ "cursor": "$T" }),
        ),
        row(
            "resource uri",
            B,
            "resources/read",
            OrRefused,
            json!({ "uri": "https://x.example/?q=$T" }),
        ),
        row(
            "resource inputResponses",
            S,
            "resources/read",
            InPlace,
            json!({ "uri": "file:///a",
            "inputResponses": { "k": { "action": "accept", "content": { "a": "$S" } } } }),
        ),
        row(
            "subscribe uri",
            H,
            "resources/subscribe",
            OrRefused,
            json!({ "uri": "file:///$T" }),
        ),
        row(
            "unsubscribe uri",
            H,
            "resources/unsubscribe",
            OrRefused,
            json!({ "uri": "file:///$T" }),
        ),
        row(
            "prompt name",
            B,
            "prompts/get",
            OrRefused,
            json!({ "name": "$T" }),
        ),
        row(
            "prompt arguments",
            B,
            "prompts/get",
            InPlace,
            json!({ "name": "p", "arguments": { "a": "$S" } }),
        ),
        row(
            "completion value",
            B,
            "completion/complete",
            InPlace,
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "$S" } }),
        ),
        row(
            "completion context",
            B,
            "completion/complete",
            InPlace,
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" },
                "context": { "arguments": { "other": "$S" } } }),
        ),
        row(
            "completion ref",
            B,
            "completion/complete",
            OrRefused,
            json!({ "ref": { "type": "ref/resource", "uri": "file:///$T" }, "argument": { "name": "a", "value": "v" } }),
        ),
        row(
            "ping",
            H,
            "ping",
            OrRefused,
            json!({ "_meta": { "n": "$S" } }),
        ),
        row(
            "setLevel",
            H,
            "logging/setLevel",
            OrRefused,
            json!({ "level": "$T" }),
        ),
        row(
            "discover",
            S,
            "server/discover",
            OrRefused,
            json!({ "_meta": { "example.com/n": "$S" } }),
        ),
        row(
            "client name",
            S,
            "tools/list",
            OrRefused,
            json!({ "_meta": { "io.modelcontextprotocol/clientCapabilities": { "experimental": { "x": { "y": "$S" } } } } }),
        ),
        row(
            "listen filter",
            S,
            "subscriptions/listen",
            OrRefused,
            json!({ "notifications": { "resourceSubscriptions": ["file:///$T"] } }),
        ),
        row(
            "task ttl neighbour",
            H,
            "tools/call",
            OrRefused,
            json!({ "name": "echo", "arguments": {}, "task": { "ttl": 1000, "note": "$S" } }),
        ),
        row(
            "tasks/get id",
            B,
            "tasks/get",
            OrRefused,
            json!({ "taskId": "$T" }),
        ),
        row(
            "tasks/result id",
            H,
            "tasks/result",
            OrRefused,
            json!({ "taskId": "$T" }),
        ),
        row(
            "tasks/cancel id",
            B,
            "tasks/cancel",
            OrRefused,
            json!({ "taskId": "$T" }),
        ),
        row(
            "tasks/list cursor",
            H,
            "tasks/list",
            OrRefused,
            json!({ "cursor": "$T" }),
        ),
        row(
            "tasks/update",
            S,
            "tasks/update",
            OrRefused,
            json!({ "taskId": "t1",
            "inputResponses": { "k": { "action": "accept", "content": { "a": "$S" } } } }),
        ),
        row(
            "unknown method",
            B,
            "vendor/thing",
            OrRefused,
            json!({ "a": { "b": "$S" } }),
        ),
        row("method itself", B, "vendor/$T", OrRefused, json!({})),
    ]
}

fn notifications() -> Vec<Row> {
    let row = |name, eras, method, params| (name, eras, method, InPlace, params);
    vec![
        row(
            "progress message",
            H,
            "notifications/progress",
            json!({ "progressToken": 1, "progress": 1, "message": "$S" }),
        ),
        row(
            "cancel reason",
            H,
            "notifications/cancelled",
            json!({ "requestId": 99, "reason": "$S" }),
        ),
        row(
            "initialized",
            H,
            "notifications/initialized",
            json!({ "_meta": { "n": "$S" } }),
        ),
        row(
            "roots changed",
            H,
            "notifications/roots/list_changed",
            json!({ "_meta": { "n": "$S" } }),
        ),
        row(
            "unknown notification",
            B,
            "notifications/vendor",
            json!({ "x": ["$S"] }),
        ),
    ]
}

fn check(era: Era, policy: Policy) {
    let mut table = Table::new(era, policy);
    let in_era = |row: &Row| row.1.contains(&era);
    for (name, _, method, mask, params) in requests().into_iter().filter(in_era) {
        let name = format!("{method} {name}");
        table.row(&name, |bench| request(bench, method, mask, &params));
    }
    for (name, _, method, _, params) in notifications().into_iter().filter(in_era) {
        let name = format!("{method} {name}");
        table.row(&name, |bench| notification(bench, method, &params));
    }
    for (name, place) in PLACES {
        table.row(name, |bench| outside_the_body(bench, *place));
    }
    match era {
        Era::Handshake => table.row("initialize", initialize),
        Era::Stateless => table.row("Mcp-Param", param_header),
    }
    table.end();
}

fn request(bench: &Bench, method: &str, mask: Mask, template: &Value) -> Option<String> {
    let canary = Canary::github();
    let mut client = bench.client();
    bench.upstream.forget();
    // The upstream takes whatever gets that far.
    bench.upstream.answer(|r| {
        let known = !matches!(r.rpc_method().as_str(), m if m.starts_with("tasks/") || m.starts_with("vendor/"));
        (!known && r.json()["id"] != Value::Null).then(|| weir_tests::Reply::result(r, json!({})))
    });
    let method = method.replace("$T", canary.value());
    let message = client.message(&method, plant(template, &canary));
    let answer = match post(&client, &message) {
        Ok(answer) => answer,
        Err(fault) => return Some(fault),
    };
    let passed = bench.upstream.calls(&method).pop();
    let leak = bench.any_leak(&canary).or_else(|| {
        canary
            .found_in(&answer.bytes())
            .map(|_| format!("the answer repeats the secret: {}", short(&answer.text())))
    });
    leak.or_else(|| match bench.policy {
        Policy::Block => match passed {
            Some(_) => Some("it was passed on".into()),
            None => refused(&method, bench.era, &answer),
        },
        Policy::Redact => match passed {
            Some(got) if mask == InPlace => {
                let body = String::from_utf8_lossy(&got.body).into_owned();
                (!(body.contains("before ") && body.contains(" after")))
                    .then(|| format!("the words around it went too: {body}"))
            }
            Some(_) => (answer.status() != 200)
                .then(|| format!("masked but not answered: {}", short(&answer.text()))),
            None if mask == InPlace => Some(format!("not passed on: {}", told(&answer))),
            None => refused(&method, bench.era, &answer),
        },
    })
}

/// A call is refused by an isError result, all else by an error; 4xx only where the method itself is none.
fn refused(method: &str, era: Era, answer: &Answer) -> Option<String> {
    match method {
        "tools/call" => answer.blocked_call_fault(era),
        _ => answer.blocked_request_fault(),
    }
    .map(|f| short(&f))
}

fn notification(bench: &Bench, method: &str, template: &Value) -> Option<String> {
    let canary = Canary::github();
    let mut client = bench.client();
    bench.upstream.forget();
    let answer = client.notify(method, plant(template, &canary));
    if answer.status() != 202 || !answer.body.is_empty() {
        return Some(format!("not 202: {}", told(&answer)));
    }
    // The one behind it on the same path shows that the first was dealt with.
    client.request("tools/list", json!({}));
    let passed = bench.upstream.calls(method).pop();
    bench.any_leak(&canary).or_else(|| {
        (bench.policy == Policy::Block && passed.is_some()).then(|| "it was passed on".into())
    })
}

/// Places beside the message where a client can put text.
type Place = fn(&mut Client, &Canary) -> Vec<(String, String)>;

const PLACES: &[(&str, Place)] = &[
    ("query string", |client, canary| {
        client.path = format!("{}?note={}", client.path, canary.value());
        vec![]
    }),
    ("unknown header", |_, canary| {
        vec![("X-Note".into(), canary.value().into())]
    }),
    ("cookie", |_, canary| {
        vec![("Cookie".into(), format!("a={}", canary.value()))]
    }),
    ("user agent", |_, canary| {
        vec![("User-Agent".into(), canary.value().into())]
    }),
    ("authorization", |_, canary| {
        vec![("Authorization".into(), format!("Bearer {}", canary.value()))]
    }),
    ("accept", |_, canary| {
        vec![(
            "Accept".into(),
            format!("application/json, text/event-stream, x/{}", canary.value()),
        )]
    }),
    ("unknown Mcp-Param", |_, canary| {
        vec![("Mcp-Param-Note".into(), canary.value().into())]
    }),
    ("encoded Mcp-Param", |_, canary| {
        vec![(
            "Mcp-Param-Note".into(),
            format!("=?base64?{}?=", canary.base64()),
        )]
    }),
    ("trace state", |_, canary| {
        vec![
            (
                "traceparent".into(),
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into(),
            ),
            ("tracestate".into(), format!("k={}", canary.value())),
        ]
    }),
    ("baggage", |_, canary| {
        vec![("baggage".into(), format!("k={}", canary.value()))]
    }),
    ("last event id", |_, canary| {
        vec![("Last-Event-ID".into(), canary.value().into())]
    }),
    ("session id", |client, canary| {
        client.session = Some(canary.value().to_owned());
        vec![]
    }),
];

fn outside_the_body(bench: &Bench, place: Place) -> Option<String> {
    let canary = Canary::github();
    let mut client = bench.client();
    bench.upstream.forget();
    let extra = place(&mut client, &canary);
    let message = echo(&mut client);
    let mut headers = client.headers_for(&message);
    headers.retain(|(name, _)| !extra.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)));
    headers.extend(extra);
    let answer = match client.post_bytes(message.to_string().as_bytes(), &headers) {
        Ok(answer) => answer,
        Err(e) => return Some(format!("no answer: {e}")),
    };
    let server_fault = (answer.told_status() >= 500).then(|| told(&answer));
    bench.any_leak(&canary).or(server_fault)
}

fn initialize(bench: &Bench) -> Option<String> {
    for (place, params) in [
        (
            "client name",
            json!({ "clientInfo": { "name": "$S", "version": "1" }, "capabilities": {} }),
        ),
        (
            "experimental",
            json!({ "clientInfo": { "name": "c", "version": "1" },
            "capabilities": { "experimental": { "x": { "note": "$S" } } } }),
        ),
    ] {
        let canary = Canary::github();
        bench.upstream.forget();
        let mut client = Client::new(&bench.weir, bench.era, &[]);
        let mut params = plant(&params, &canary);
        params["protocolVersion"] = json!(client.revision);
        let answer = client.request("initialize", params);
        let passed = !bench.upstream.calls("initialize").is_empty();
        let fault = bench.any_leak(&canary).or_else(|| match bench.policy {
            Policy::Block if passed => Some("it was passed on".to_owned()),
            Policy::Block => answer.blocked_request_fault().map(|f| short(&f)),
            Policy::Redact => (answer.status() != 200).then(|| told(&answer)),
        });
        if let Some(fault) = fault {
            return Some(format!("{place}: {fault}"));
        }
    }
    None
}

/// An argument that is mirrored into a header: both are judged, and after redaction they still agree.
fn param_header(bench: &Bench) -> Option<String> {
    let canary = Canary::github();
    let mut client = bench.client();
    client.request("tools/list", json!({}));
    bench.upstream.forget();
    let region = format!("before {} after", canary.value());
    let message = client.message(
        "tools/call",
        json!({ "name": "typed", "arguments": { "region": region } }),
    );
    let mut headers = client.headers_for(&message);
    headers.push(("Mcp-Param-Region".into(), header_value(&region)));
    let answer = client
        .post_bytes(message.to_string().as_bytes(), &headers)
        .expect("an answer");
    let passed = bench.upstream.calls("tools/call").pop();
    bench
        .any_leak(&canary)
        .or_else(|| match (bench.policy, passed) {
            (Policy::Block, Some(_)) => Some("it was passed on".into()),
            (Policy::Block, None) => None,
            (Policy::Redact, None) => Some(format!("not passed on: {}", told(&answer))),
            (Policy::Redact, Some(got)) => {
                let argument = got.json()["params"]["arguments"]["region"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let header = got.header("mcp-param-region").unwrap_or("none").to_owned();
                (header != header_value(&argument))
                    .then(|| format!("argument {argument:?}, header {header:?}"))
            }
        })
}
