//! From the server to the client: results and errors, as JSON and as an event stream.

use weir_tests::upstream::result_message;
use weir_tests::{Answer, Canary, Client, Era, Reply, Value, json};

use crate::{B, Bench, H, Policy, S, Table, plant, post, short, shown};

in_both_eras_and_policies!(check);

/// Whether the words around the secret must survive `redact`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mask {
    InPlace,
    Any,
}
use Mask::{Any, InPlace};

/// Name, eras, method, its params, mask, `result` or `error`.
type Row = (
    &'static str,
    &'static [Era],
    &'static str,
    Value,
    Mask,
    Value,
);

fn rows() -> Vec<Row> {
    let mut rows = call_rows();
    rows.extend(list_rows());
    rows.extend(other_rows());
    rows
}

fn call_rows() -> Vec<Row> {
    let result = |name, eras, mask, result: Value| {
        (
            name,
            eras,
            "tools/call",
            json!({ "name": "echo", "arguments": { "message": "hi" } }),
            mask,
            json!({ "result": result }),
        )
    };
    let content = |block: Value| json!({ "content": [block] });
    let input = |request: Value| json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "k": request } });
    vec![
        result(
            "text",
            B,
            InPlace,
            content(json!({ "type": "text", "text": "$S" })),
        ),
        result(
            "second block",
            B,
            InPlace,
            json!({ "content": [
            { "type": "text", "text": "clean" }, { "type": "text", "text": "$S" }] }),
        ),
        result(
            "text of an isError result",
            B,
            InPlace,
            json!({ "isError": true, "content": [{ "type": "text", "text": "$S" }] }),
        ),
        result(
            "base64 in text",
            B,
            Any,
            content(json!({ "type": "text", "text": "$B" })),
        ),
        result(
            "image data",
            B,
            Any,
            content(json!({ "type": "image", "mimeType": "image/png", "data": "$B" })),
        ),
        result(
            "audio data",
            B,
            Any,
            content(json!({ "type": "audio", "mimeType": "audio/wav", "data": "$B" })),
        ),
        result(
            "embedded text",
            B,
            InPlace,
            content(
                json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "$S" } }),
            ),
        ),
        result(
            "embedded blob",
            B,
            Any,
            content(
                json!({ "type": "resource", "resource": { "uri": "file:///a", "blob": "$B" } }),
            ),
        ),
        result(
            "embedded uri",
            B,
            Any,
            content(
                json!({ "type": "resource", "resource": { "uri": "file:///$T", "text": "x" } }),
            ),
        ),
        result(
            "link uri",
            B,
            Any,
            content(json!({ "type": "resource_link", "uri": "file:///$T", "name": "n" })),
        ),
        result(
            "link name",
            B,
            Any,
            content(json!({ "type": "resource_link", "uri": "file:///a", "name": "$T" })),
        ),
        result(
            "link title",
            B,
            Any,
            content(
                json!({ "type": "resource_link", "uri": "file:///a", "name": "n", "title": "$S" }),
            ),
        ),
        result(
            "link description",
            B,
            InPlace,
            content(
                json!({ "type": "resource_link", "uri": "file:///a", "name": "n", "description": "$S" }),
            ),
        ),
        result(
            "block annotations",
            B,
            Any,
            content(json!({ "type": "text", "text": "x", "annotations": { "note": "$S" } })),
        ),
        result(
            "block _meta",
            B,
            Any,
            content(json!({ "type": "text", "text": "x", "_meta": { "n": "$S" } })),
        ),
        result(
            "unknown block",
            B,
            Any,
            content(json!({ "type": "hologram", "payload": { "x": "$S" } })),
        ),
        result(
            "structuredContent",
            B,
            InPlace,
            json!({ "content": [{ "type": "text", "text": "{}" }],
            "structuredContent": { "a": { "b": ["$S"] } } }),
        ),
        result(
            "structuredContent, key",
            B,
            Any,
            json!({ "content": [{ "type": "text", "text": "{}" }],
            "structuredContent": { "$T": 1 } }),
        ),
        result(
            "text copy and structuredContent",
            B,
            InPlace,
            json!({
            "content": [{ "type": "text", "text": "{\"note\":\"$S\"}" }], "structuredContent": { "note": "$S" } }),
        ),
        result(
            "structuredContent not an object",
            S,
            InPlace,
            json!({ "content": [], "structuredContent": ["$S"] }),
        ),
        result(
            "_meta",
            B,
            Any,
            json!({ "content": [], "_meta": { "example.com/n": "$S" } }),
        ),
        result(
            "unknown member",
            B,
            Any,
            json!({ "content": [], "vendor": { "x": "$S" } }),
        ),
        result(
            "elicitation message",
            S,
            Any,
            input(json!({ "method": "elicitation/create", "params": {
            "mode": "form", "message": "$S", "requestedSchema": { "type": "object", "properties": {} } } })),
        ),
        result(
            "elicitation schema",
            S,
            Any,
            input(json!({ "method": "elicitation/create", "params": {
            "mode": "form", "message": "m", "requestedSchema": { "type": "object", "properties": {
                "a": { "type": "string", "title": "$S", "default": "$T" } } } } })),
        ),
        result(
            "elicitation url",
            S,
            Any,
            input(json!({ "method": "elicitation/create", "params": {
            "mode": "url", "elicitationId": "e", "message": "m", "url": "https://x.example/?t=$T" } })),
        ),
        result(
            "sampling message",
            S,
            Any,
            input(json!({ "method": "sampling/createMessage", "params": {
            "maxTokens": 9, "messages": [{ "role": "user", "content": { "type": "text", "text": "$S" } }] } })),
        ),
        result(
            "sampling system prompt",
            S,
            Any,
            input(json!({ "method": "sampling/createMessage", "params": {
            "maxTokens": 9, "systemPrompt": "$S", "messages": [] } })),
        ),
        result(
            "sampling tool use",
            S,
            Any,
            input(json!({ "method": "sampling/createMessage", "params": {
            "maxTokens": 9, "messages": [{ "role": "assistant", "content": {
                "type": "tool_use", "id": "u", "name": "n", "input": { "a": "$S" } } }] } })),
        ),
        result(
            "input request key",
            S,
            Any,
            json!({ "resultType": "input_required", "inputRequests": {
            "$T": { "method": "roots/list", "params": {} } } }),
        ),
        result(
            "requestState",
            S,
            Any,
            json!({ "resultType": "input_required", "requestState": "$T" }),
        ),
        result(
            "task status",
            H,
            Any,
            json!({ "task": { "taskId": "t1", "status": "working", "statusMessage": "$S",
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000 } }),
        ),
        result(
            "task, stateless",
            S,
            Any,
            json!({ "resultType": "task", "task": { "taskId": "t1", "status": "working",
            "statusMessage": "$S" } }),
        ),
        result(
            "task id",
            H,
            Any,
            json!({ "task": { "taskId": "$T", "status": "working",
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000 } }),
        ),
        result(
            "unknown resultType",
            S,
            Any,
            json!({ "resultType": "hologram", "x": "$S" }),
        ),
    ]
}

fn list_rows() -> Vec<Row> {
    let tool = |name, mask, extra: Value| {
        let mut tool =
            json!({ "name": "t", "description": "d", "inputSchema": { "type": "object" } });
        for (k, v) in extra.as_object().into_iter().flatten() {
            tool[k] = v.clone();
        }
        (
            name,
            B,
            "tools/list",
            json!({}),
            mask,
            json!({ "result": { "tools": [tool] } }),
        )
    };
    let property =
        |p: Value| json!({ "inputSchema": { "type": "object", "properties": { "a": p } } });
    let other = |name, method, result: Value| {
        (name, B, method, json!({}), Any, json!({ "result": result }))
    };
    vec![
        tool("tool description", InPlace, json!({ "description": "$S" })),
        tool("tool title", Any, json!({ "title": "$S" })),
        tool("tool name", Any, json!({ "name": "$T" })),
        tool(
            "schema description",
            InPlace,
            property(json!({ "type": "string", "description": "$S" })),
        ),
        tool(
            "schema title",
            Any,
            property(json!({ "type": "string", "title": "$S" })),
        ),
        tool(
            "schema default",
            Any,
            property(json!({ "type": "string", "default": "$S" })),
        ),
        tool(
            "schema enum",
            Any,
            property(json!({ "type": "string", "enum": ["a", "$T"] })),
        ),
        tool("schema const", Any, property(json!({ "const": "$T" }))),
        tool(
            "schema examples",
            Any,
            property(json!({ "type": "string", "examples": ["$S"] })),
        ),
        tool(
            "schema $ref",
            Any,
            property(json!({ "$ref": "https://x.example/$T" })),
        ),
        tool(
            "schema x-mcp-header",
            Any,
            property(json!({ "type": "string", "x-mcp-header": "$T" })),
        ),
        tool(
            "schema property name",
            Any,
            json!({ "inputSchema": { "type": "object", "properties": { "$T": {} } } }),
        ),
        tool(
            "output schema",
            Any,
            json!({ "outputSchema": { "type": "object", "description": "$S" } }),
        ),
        tool(
            "annotations",
            Any,
            json!({ "annotations": { "title": "$S" } }),
        ),
        tool(
            "icons",
            Any,
            json!({ "icons": [{ "src": "https://x.example/$T.png" }] }),
        ),
        tool(
            "icon data",
            Any,
            json!({ "icons": [{ "src": "data:image/png;base64,$B" }] }),
        ),
        tool("tool _meta", Any, json!({ "_meta": { "n": "$S" } })),
        tool(
            "execution",
            Any,
            json!({ "execution": { "taskSupport": "optional", "note": "$S" } }),
        ),
        other(
            "tools next cursor",
            "tools/list",
            json!({ "tools": [], "nextCursor": "$T" }),
        ),
        other(
            "resource uri",
            "resources/list",
            json!({ "resources": [{ "uri": "file:///$T", "name": "n" }] }),
        ),
        other(
            "resource name",
            "resources/list",
            json!({ "resources": [{ "uri": "file:///a", "name": "$T" }] }),
        ),
        other(
            "resource title",
            "resources/list",
            json!({ "resources": [{ "uri": "a:b", "name": "n", "title": "$S" }] }),
        ),
        other(
            "resource description",
            "resources/list",
            json!({ "resources": [{ "uri": "a:b", "name": "n", "description": "$S" }] }),
        ),
        other(
            "resource icon",
            "resources/list",
            json!({ "resources": [{ "uri": "a:b", "name": "n", "icons": [{ "src": "https://x.example/$T" }] }] }),
        ),
        other(
            "template uri",
            "resources/templates/list",
            json!({ "resourceTemplates": [{ "uriTemplate": "file:///$T/{a}", "name": "n" }] }),
        ),
        other(
            "template description",
            "resources/templates/list",
            json!({ "resourceTemplates": [{ "uriTemplate": "a:{b}", "name": "n", "description": "$S" }] }),
        ),
        other(
            "prompt name",
            "prompts/list",
            json!({ "prompts": [{ "name": "$T" }] }),
        ),
        other(
            "prompt description",
            "prompts/list",
            json!({ "prompts": [{ "name": "p", "description": "$S" }] }),
        ),
        other(
            "prompt title",
            "prompts/list",
            json!({ "prompts": [{ "name": "p", "title": "$S" }] }),
        ),
        other(
            "prompt argument",
            "prompts/list",
            json!({ "prompts": [{ "name": "p", "arguments": [{ "name": "a", "description": "$S" }] }] }),
        ),
    ]
}

fn other_rows() -> Vec<Row> {
    let read = |name, mask, contents: Value| {
        (
            name,
            B,
            "resources/read",
            json!({ "uri": "file:///a" }),
            mask,
            json!({ "result": { "contents": [contents] } }),
        )
    };
    let prompt = |name, mask, result: Value| {
        (
            name,
            B,
            "prompts/get",
            json!({ "name": "p" }),
            mask,
            json!({ "result": result }),
        )
    };
    let message = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "v" } });
    let error = |name, method, params, error: Value| {
        (name, B, method, params, Any, json!({ "error": error }))
    };
    let call = || json!({ "name": "echo", "arguments": {} });
    let task = || json!({ "taskId": "t1" });
    vec![
        read("text", InPlace, json!({ "uri": "file:///a", "text": "$S" })),
        read("blob", Any, json!({ "uri": "file:///a", "blob": "$B" })),
        read("uri", Any, json!({ "uri": "file:///$T", "text": "x" })),
        read(
            "mime type",
            Any,
            json!({ "uri": "file:///a", "text": "x", "mimeType": "text/$T" }),
        ),
        prompt(
            "description",
            InPlace,
            json!({ "description": "$S", "messages": [] }),
        ),
        prompt(
            "text",
            InPlace,
            message(json!({ "type": "text", "text": "$S" })),
        ),
        prompt(
            "image",
            Any,
            message(json!({ "type": "image", "mimeType": "image/png", "data": "$B" })),
        ),
        prompt(
            "resource",
            InPlace,
            message(json!({ "type": "resource", "resource": { "uri": "a:b", "text": "$S" } })),
        ),
        (
            "completion",
            B,
            "completion/complete",
            complete,
            InPlace,
            json!({ "result": { "completion": { "values": ["a", "$S"] } } }),
        ),
        (
            "resource input request",
            S,
            "resources/read",
            json!({ "uri": "file:///a" }),
            Any,
            json!({ "result": { "resultType": "input_required", "inputRequests": { "k": { "method": "elicitation/create",
                "params": { "mode": "form", "message": "$S", "requestedSchema": { "type": "object", "properties": {} } } } } } }),
        ),
        (
            "tasks/result",
            H,
            "tasks/result",
            task(),
            Any,
            json!({ "result": { "content": [{ "type": "text", "text": "$S" }] } }),
        ),
        (
            "tasks/get status",
            H,
            "tasks/get",
            task(),
            Any,
            json!({ "result": { "taskId": "t1", "status": "working", "statusMessage": "$S" } }),
        ),
        (
            "tasks/list status",
            H,
            "tasks/list",
            json!({}),
            Any,
            json!({ "result": { "tasks": [{ "taskId": "t1", "status": "failed", "statusMessage": "$S" }] } }),
        ),
        (
            "tasks/get result",
            S,
            "tasks/get",
            task(),
            Any,
            json!({ "result": { "taskId": "t1", "status": "completed",
            "result": { "content": [{ "type": "text", "text": "$S" }] } } }),
        ),
        (
            "tasks/get error",
            S,
            "tasks/get",
            task(),
            Any,
            json!({ "result": { "taskId": "t1", "status": "failed",
            "error": { "code": -32603, "message": "$S" } } }),
        ),
        (
            "tasks/get input",
            S,
            "tasks/get",
            task(),
            Any,
            json!({ "result": { "taskId": "t1", "status": "input_required",
            "inputRequests": { "k": { "method": "elicitation/create", "params": { "message": "$S" } } } } }),
        ),
        (
            "empty result, _meta",
            H,
            "ping",
            json!({}),
            Any,
            json!({ "result": { "_meta": { "n": "$S" } } }),
        ),
        (
            "unknown method",
            B,
            "vendor/thing",
            json!({}),
            Any,
            json!({ "result": { "x": { "y": "$S" } } }),
        ),
        error(
            "error message of a call",
            "tools/call",
            call(),
            json!({ "code": -32602, "message": "$S" }),
        ),
        error(
            "error data of a call",
            "tools/call",
            call(),
            json!({ "code": -32602, "message": "m", "data": { "a": ["$S"] } }),
        ),
        error(
            "error data, key",
            "tools/call",
            call(),
            json!({ "code": -32602, "message": "m", "data": { "$T": 1 } }),
        ),
        error(
            "url elicitation error",
            "tools/call",
            call(),
            json!({ "code": -32042, "message": "m", "data": {
            "elicitations": [{ "mode": "url", "elicitationId": "e", "url": "https://x.example/?t=$T", "message": "$S" }] } }),
        ),
        error(
            "error of a read",
            "resources/read",
            json!({ "uri": "file:///a" }),
            json!({ "code": -32002, "message": "$S" }),
        ),
        error(
            "error of a list",
            "tools/list",
            json!({}),
            json!({ "code": -32603, "message": "m", "data": "$S" }),
        ),
        error(
            "error of a prompt",
            "prompts/get",
            json!({ "name": "p" }),
            json!({ "code": -32602, "message": "$S" }),
        ),
    ]
}

#[derive(Debug, Clone, Copy)]
enum Framing {
    Json,
    Events,
}

fn check(era: Era, policy: Policy) {
    let mut table = Table::new(era, policy);
    for (name, eras, method, params, mask, answer) in rows() {
        if !eras.contains(&era) {
            continue;
        }
        for framing in [Framing::Json, Framing::Events] {
            let name = format!("{method} {name} ({framing:?})");
            table.row(&name, |bench| {
                one(bench, method, &params, mask, &answer, framing)
            });
        }
    }
    for (name, template) in hello_rows(era) {
        table.row(&format!("hello {name}"), |bench| hello(bench, &template));
    }
    table.end();
}

fn one(
    bench: &Bench,
    method: &str,
    params: &Value,
    mask: Mask,
    template: &Value,
    framing: Framing,
) -> Option<String> {
    let canary = Canary::github();
    let body = plant(template, &canary);
    let wanted = method.to_owned();
    bench.upstream.answer(move |request| {
        if request.rpc_method() != wanted {
            return None;
        }
        let message = match body.get("result") {
            Some(result) => result_message(request, result.clone()),
            None => json!({ "jsonrpc": "2.0", "id": request.json()["id"], "error": body["error"] }),
        };
        Some(match framing {
            Framing::Json => Reply::json(&message),
            Framing::Events => Reply::events(&[message]),
        })
    });
    let mut client = bench.client();
    let message = client.message(method, params.clone());
    let answer = match post(&client, &message) {
        Ok(answer) => answer,
        Err(fault) => return Some(fault),
    };
    leak(bench, &canary, &answer)
        .or_else(|| judge(bench, method, mask, &answer))
        .map(|f| short(&f))
        .or_else(|| alive(&mut client))
}

fn leak(bench: &Bench, canary: &Canary, answer: &Answer) -> Option<String> {
    shown(canary, &answer.bytes()).or_else(|| bench.leak(canary))
}

fn judge(bench: &Bench, method: &str, mask: Mask, answer: &Answer) -> Option<String> {
    let text = answer.text();
    if answer.status() != 200 {
        return Some(format!("status {} {text}", answer.status()));
    }
    if answer.response()["id"] != answer.id {
        return Some(format!("the id is not the request's: {text}"));
    }
    if bench.era == Era::Stateless
        && answer.result().is_object()
        && !answer.result()["resultType"].is_string()
    {
        return Some(format!("no resultType: {text}"));
    }
    match bench.policy {
        Policy::Block if text.contains("before ") => Some(format!(
            "something of the blocked message came through: {text}"
        )),
        Policy::Block if method == "tools/call" => answer.blocked_call_fault(bench.era),
        // The result of a task may be answered as the call's or as the request's own.
        Policy::Block
            if method.starts_with("tasks/") && answer.blocked_call_fault(bench.era).is_none() =>
        {
            None
        }
        Policy::Block => answer.blocked_request_fault(),
        Policy::Redact
            if mask == InPlace && !(text.contains("before ") && text.contains(" after")) =>
        {
            Some(format!("the words around it went too: {text}"))
        }
        Policy::Redact => None,
    }
}

/// After a refusal the session still works.
fn alive(client: &mut Client) -> Option<String> {
    let answer = client.request("ping-or-prompts", json!({}));
    (answer.told_status() >= 500).then(|| format!("the session is dead: {}", answer.told_status()))
}

fn hello_rows(era: Era) -> Vec<(&'static str, Value)> {
    let of = |extra: Value| {
        let mut result = match era {
            Era::Handshake => json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": { "name": "s", "version": "1" } }),
            Era::Stateless => json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }),
        };
        for (k, v) in extra.as_object().into_iter().flatten() {
            result[k] = v.clone();
        }
        result
    };
    let mut rows = vec![
        ("instructions", of(json!({ "instructions": "$S" }))),
        (
            "capabilities",
            of(json!({ "capabilities": { "experimental": { "x": { "n": "$S" } } } })),
        ),
        ("_meta", of(json!({ "_meta": { "example.com/n": "$S" } }))),
    ];
    let info = |extra: Value| {
        let mut info = json!({ "name": "s", "version": "1" });
        for (k, v) in extra.as_object().into_iter().flatten() {
            info[k] = v.clone();
        }
        match era {
            Era::Handshake => of(json!({ "serverInfo": info })),
            Era::Stateless => {
                of(json!({ "_meta": { "io.modelcontextprotocol/serverInfo": info } }))
            }
        }
    };
    rows.push(("server title", info(json!({ "title": "$S" }))));
    rows.push(("server description", info(json!({ "description": "$S" }))));
    rows.push((
        "server website",
        info(json!({ "websiteUrl": "https://x.example/$T" })),
    ));
    rows.push((
        "server icon",
        info(json!({ "icons": [{ "src": "https://x.example/$T" }] })),
    ));
    rows
}

fn hello(bench: &Bench, template: &Value) -> Option<String> {
    let canary = Canary::github();
    let result = plant(template, &canary);
    bench.upstream.answer(move |r| {
        matches!(r.rpc_method().as_str(), "initialize" | "server/discover")
            .then(|| Reply::result(r, result.clone()))
    });
    let mut client = Client::new(&bench.weir, bench.era, &[]);
    let answer = match bench.era {
        Era::Handshake => client.request(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } }),
        ),
        Era::Stateless => client.request("server/discover", json!({})),
    };
    leak(bench, &canary, &answer)
        .or_else(|| judge(bench, "hello", Any, &answer))
        .map(|f| short(&f))
}
