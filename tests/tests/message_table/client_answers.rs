//! What the client answers to a server's request (handshake era): model output, form fields, local paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Era, Reply, Value, json};

use crate::{Bench, Policy, Table, clean, echo, plant, told};

#[test]
fn block() {
    check(Policy::Block);
}

#[test]
fn redact() {
    check(Policy::Redact);
}

fn rows() -> Vec<(&'static str, &'static str, Value)> {
    let sampled = |content: Value| json!({ "result": { "role": "assistant", "model": "m", "content": content } });
    vec![
        (
            "sampling text",
            "sampling/createMessage",
            sampled(json!({ "type": "text", "text": "$S" })),
        ),
        (
            "sampling image",
            "sampling/createMessage",
            sampled(json!({ "type": "image", "mimeType": "image/png", "data": "$B" })),
        ),
        (
            "sampling tool use",
            "sampling/createMessage",
            sampled(
                json!([{ "type": "tool_use", "id": "u", "name": "n", "input": { "a": "$S" } }]),
            ),
        ),
        (
            "sampling model",
            "sampling/createMessage",
            json!({ "result": { "role": "assistant", "model": "$T", "content": { "type": "text", "text": "x" } } }),
        ),
        (
            "elicited field",
            "elicitation/create",
            json!({ "result": { "action": "accept", "content": { "a": "$S" } } }),
        ),
        (
            "elicited key",
            "elicitation/create",
            json!({ "result": { "action": "accept", "content": { "$T": "x" } } }),
        ),
        (
            "elicitation action",
            "elicitation/create",
            json!({ "result": { "action": "$T" } }),
        ),
        (
            "root uri",
            "roots/list",
            json!({ "result": { "roots": [{ "uri": "file:///$T" }] } }),
        ),
        (
            "root name",
            "roots/list",
            json!({ "result": { "roots": [{ "uri": "file:///a", "name": "$S" }] } }),
        ),
        (
            "error message",
            "sampling/createMessage",
            json!({ "error": { "code": -1, "message": "$S" } }),
        ),
        (
            "error data",
            "sampling/createMessage",
            json!({ "error": { "code": -1, "message": "m", "data": { "a": "$S" } } }),
        ),
        (
            "_meta",
            "roots/list",
            json!({ "result": { "roots": [], "_meta": { "n": "$S" } } }),
        ),
    ]
}

fn check(policy: Policy) {
    let mut table = Table::new(Era::Handshake, policy);
    for (name, method, answer) in rows() {
        table.row(&format!("{method} {name}"), |bench| {
            one(bench, method, &answer)
        });
    }
    table.end();
}

fn one(bench: &Bench, method: &'static str, template: &Value) -> Option<String> {
    let canary = Canary::github();
    let answered = Arc::new(AtomicBool::new(false));
    let go_on = Arc::clone(&answered);
    bench.upstream.answer(move |r| {
        (r.rpc_method() == "tools/call").then(|| {
            let last = clean(r);
            let go_on = Arc::clone(&go_on);
            Reply::wire(move |wire| {
                wire.event_head();
                wire.event(
                    &json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": {
                    "maxTokens": 1, "messages": [], "message": "m",
                    "requestedSchema": { "type": "object", "properties": {} } } }),
                );
                wait::until("the client's answer", PATIENCE, || {
                    go_on.load(Ordering::Relaxed).then_some(())
                });
                wire.event(&last);
            })
        })
    });
    let mut client = bench.client();
    bench.upstream.forget();
    let call = echo(&mut client);
    let mut stream = client.open(&call);
    let asked = match stream.message(PATIENCE) {
        Ok(asked) => asked,
        Err(e) => {
            answered.store(true, Ordering::Relaxed);
            return Some(format!("the server's request did not come: {e}"));
        }
    };
    let mut reply = plant(template, &canary);
    reply["jsonrpc"] = json!("2.0");
    reply["id"] = asked["id"].clone();
    let posted = client.try_post(&reply);
    answered.store(true, Ordering::Relaxed);
    let posted = match posted {
        Ok(posted) => posted,
        Err(e) => return Some(format!("no answer to the answer: {e}")),
    };
    if posted.status() != 202 {
        return Some(format!("not 202: {}", told(&posted)));
    }
    // The result shows that the call went on.
    match stream.message(PATIENCE) {
        Ok(last) if last["result"]["content"][0]["text"] == json!("clean") => {}
        other => return Some(format!("the call did not end well: {other:?}")),
    }
    bench.any_leak(&canary).or_else(|| {
        // The server must hear something, or it waits for ever: the masked answer, or an error in its place.
        let heard = bench.upstream.requests().into_iter();
        let mut heard = heard.filter(|r| r.json()["id"] == json!(7));
        let Some(heard) = heard.next().map(|r| r.json()) else {
            return Some("the server heard nothing".to_owned());
        };
        match bench.policy {
            Policy::Block => {
                (!heard["error"].is_object()).then(|| format!("the server got {heard}"))
            }
            Policy::Redact => None,
        }
    })
}
