//! Ids and progress tokens that a client uses again: no call gets the policy of another by it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_tests::config::Config;
use weir_tests::http::Conn;
use weir_tests::upstream::{Request, Wire, result_message};
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

/// What comes for `strict` is redacted, what comes for any other tool is not.
fn config(upstream: Value) -> Config {
    Config::of(upstream)
        .bind(json!({ "direction": "to_client", "category": "secret", "action": "log" }))
        .bind(json!({ "tool": "strict", "direction": "to_client", "category": "secret", "action": "redact" }))
}

fn tool_of(request: &Request) -> String {
    let message = request.json();
    let name = message["params"]["name"].as_str().unwrap_or_default();
    match message["method"] == "tools/call" {
        true => name.to_owned(),
        false => String::new(),
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn progress(text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "p", "progress": 1, "message": text } })
}

/// A call of a tool with this id and the progress token `p`.
fn call(id: i64, tool: &str) -> Value {
    let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": "p" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Sends a message; its answer is not read.
fn send(client: &Client, message: &Value) -> Conn {
    let mut conn = Conn::open(client.addr);
    let body = message.to_string();
    conn.send(client.request_bytes("POST", &client.headers_for(message), body.as_bytes()));
    conn
}

fn assert_hidden(canary: &Canary, message: &Value, what: &str) {
    let shown = canary.found_in(message.to_string().as_bytes());
    assert!(shown.is_none(), "{what}: {message}");
    assert!(
        message.to_string().contains("REDACTED"),
        "{what}: {message}"
    );
}

#[test]
fn progress_is_judged_by_the_tool_whose_stream_it_comes_on() {
    let canary = Canary::github();
    let said = canary.value().to_owned();
    let both = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&both);
    let upstream = Upstream::mcp(move |r| {
        let (tool, last) = (tool_of(r), result_message(r, text("done")));
        let (both, said) = (Arc::clone(&begun), said.clone());
        match tool.as_str() {
            "strict" => Some(Reply::wire(move |wire| {
                wire.event_head();
                wait::until("the other call", PATIENCE, || {
                    both.load(Ordering::Relaxed).then_some(())
                });
                wire.event(&progress(&said));
                wire.event(&last);
            })),
            "lax" => Some(Reply::Hang),
            _ => None,
        }
    });
    let weir = Weir::serve(&config(json!({ "url": upstream.url() })));
    let client = Client::connect(&weir, Era::Handshake);
    let mut strict = client.open(&call(1, "strict"));
    let _lax = send(&client, &call(2, "lax"));
    upstream.wait_for("the other call", |r| tool_of(r) == "lax");
    both.store(true, Ordering::Relaxed);
    let report = strict.message(PATIENCE).expect("progress");
    assert_hidden(&canary, &report, "progress of strict");
    let last = strict.message(PATIENCE).expect("the answer");
    assert_eq!(last["result"], text("done"), "{last}");
}

/// A server whose `strict` begins with the event `e-strict`, and gives its answer to who comes back for it. Where it
/// `answers`, also at once. Its `lax` never answers.
fn resumable(canary: &Canary, answers: bool) -> Upstream {
    let said = canary.value().to_owned();
    let answer = json!({ "jsonrpc": "2.0", "id": 5, "result": text(&said) });
    Upstream::mcp(move |r| {
        let answer = answer.clone();
        let again = r.header("last-event-id") == Some("e-strict");
        match (r.method.as_str(), tool_of(r).as_str()) {
            ("POST", "strict") => Some(Reply::wire(move |wire| {
                wire.event_head();
                wire.send("id: e-strict\ndata: \n\n");
                match answers {
                    true => drop(wire.event(&answer)),
                    false => wire.hang(),
                }
            })),
            ("POST", "lax") => Some(Reply::Hang),
            ("GET", _) if again => Some(Reply::wire(move |wire| {
                wire.event_head();
                wire.event(&answer);
                wire.hang();
            })),
            _ => None,
        }
    })
}

#[test]
fn an_answer_that_is_fetched_later_is_judged_by_its_own_tool() {
    for answered in [false, true] {
        let canary = Canary::github();
        let upstream = resumable(&canary, answered);
        let weir = Weir::serve(&config(json!({ "url": upstream.url() })));
        let client = Client::connect(&weir, Era::Handshake);
        let mut strict = client.open(&call(5, "strict"));
        let first = strict.event(PATIENCE).expect("the first event");
        assert_eq!(first.id.as_deref(), Some("e-strict"));
        if answered {
            let answer = strict.message(PATIENCE).expect("the answer");
            assert_hidden(&canary, &answer, "the answer of strict");
        }
        drop(strict);
        let _lax = send(&client, &call(5, "lax"));
        upstream.wait_for("the other call", |r| tool_of(r) == "lax");
        let mut again = client.listen(Some("e-strict"));
        let answer = again.message(PATIENCE).expect("the answer, again");
        let what = format!("answered before: {answered}");
        assert_hidden(&canary, &answer, &what);
        // An event that nobody here remembers lends no policy either.
        upstream.answer({
            let said = canary.value().to_owned();
            move |r| {
                let answer = json!({ "jsonrpc": "2.0", "id": 5, "result": text(&said) });
                (r.method == "GET").then(|| Reply::events(&[answer]))
            }
        });
        let mut astray = client.listen(Some("e-other"));
        let answer = astray.message(PATIENCE).expect("an answer");
        assert_hidden(&canary, &answer, "of another event");
    }
}

#[test]
fn two_calls_of_one_id_are_judged_by_the_strictest() {
    let canary = Canary::github();
    let said = canary.value().to_owned();
    // It knows its streams by id, as some do: what `strict` says goes to whoever used the id last.
    let upstream = Upstream::mcp(move |r| match tool_of(r).as_str() {
        "strict" => Some(Reply::Hang),
        "lax" => Some(Reply::result(r, text(&said))),
        _ => None,
    });
    let weir = Weir::serve(&config(json!({ "url": upstream.url() })));
    let client = Client::connect(&weir, Era::Handshake);
    let strict = send(&client, &call(5, "strict"));
    upstream.wait_for("the first call", |r| tool_of(r) == "strict");
    let answer = client.post(&call(5, "lax"));
    assert_hidden(&canary, answer.response(), "both wait");
    drop(strict);
    let answer = client.post(&call(5, "lax"));
    assert_hidden(&canary, answer.response(), "the first was left");
    let answer = client.post(&call(6, "lax"));
    assert_eq!(answer.first_text(), canary.value(), "another id");
    // Another session's ids are its own.
    let other = Client::connect(&weir, Era::Handshake);
    let answer = other.post(&call(5, "lax"));
    assert_eq!(answer.first_text(), canary.value(), "another session");
}

#[test]
fn ids_and_tokens_that_are_used_again_after_the_answer_cost_nothing() {
    let canary = Canary::github();
    let said = canary.value().to_owned();
    let upstream = Upstream::mcp(move |r| {
        let tool = tool_of(r);
        if r.method == "GET" {
            let answer = json!({ "jsonrpc": "2.0", "id": 9, "result": text(&said) });
            return Some(Reply::events(&[answer]));
        }
        match tool.as_str() {
            "strict" | "lax" => {
                let last = result_message(r, text(&said));
                Some(Reply::events(&[progress(&said), last]))
            }
            "later" => Some(Reply::status(
                200,
                "text/event-stream",
                "id: e-later\ndata: \n\n",
            )),
            _ => None,
        }
    });
    let weir = Weir::serve(&config(json!({ "url": upstream.url() })));
    let client = Client::connect(&weir, Era::Handshake);
    for tool in ["strict", "lax", "strict", "lax"] {
        let answer = client.post(&call(7, tool));
        assert_eq!(answer.messages.len(), 2, "{}", answer.text());
        for message in &answer.messages {
            match tool {
                "strict" => assert_hidden(&canary, message, tool),
                _ => assert!(message.to_string().contains(canary.value()), "{message}"),
            }
        }
    }
    // A server may hang up and answer whoever comes back.
    let mut later = client.open(&call(9, "later"));
    assert!(later.event(PATIENCE).is_ok_and(|event| event.id.is_some()));
    let answer = client.listen(Some("e-later")).message(PATIENCE);
    let answer = answer.expect("the answer");
    assert!(answer.to_string().contains(canary.value()), "{answer}");
}

/// What is said on the stream of a server of revision 2024-11-05.
type Queue = Arc<Mutex<Vec<Value>>>;

fn stream(wire: &mut Wire, queue: &Queue) {
    wire.event_head();
    wire.send("event: endpoint\ndata: /messages?session=1\n\n");
    while !wire.peer_closed(Duration::from_millis(20)) {
        let said = std::mem::take(&mut *queue.lock().expect("no panic inside"));
        for message in &said {
            wire.event(message);
        }
    }
}

#[test]
fn a_late_answer_in_a_pipe_is_nobodys_whose_id_it_has() {
    let canary = Canary::github();
    let said = canary.value().to_owned();
    let queue = Queue::default();
    let upstream = Upstream::start(move |r| {
        let queue = Arc::clone(&queue);
        if r.method == "GET" {
            return Reply::wire(move |wire| stream(wire, &queue));
        }
        let message = r.json();
        let result = match (message["method"].as_str(), tool_of(r).as_str()) {
            (Some("initialize"), _) => {
                Some(json!({ "protocolVersion": "2024-11-05", "capabilities": {},
                "serverInfo": { "name": "s", "version": "1" } }))
            }
            // Not its own answer but that of `strict`, which took so long.
            (_, "lax") => Some(text(&said)),
            _ => None,
        };
        if let Some(result) = result {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            queue.lock().expect("no panic inside").push(answer);
        }
        Reply::accepted()
    });
    let weir = Weir::serve(&config(json!({ "sse": upstream.url() })));
    let client = Client::connect(&weir, Era::Handshake);
    let strict = send(&client, &call(5, "strict"));
    upstream.wait_for("the first call", |r| tool_of(r) == "strict");
    drop(strict);
    // Refused until it is seen that the first one's client left.
    let answer = wait::until("the id to be free", PATIENCE, || {
        let answer = client.post(&call(5, "lax"));
        (answer.told_status() == 200).then_some(answer)
    });
    assert_hidden(&canary, answer.response(), "the late answer");
    let mut other = call(6, "lax");
    other["params"]["_meta"] = json!({});
    let answer = client.post(&other);
    assert_eq!(answer.first_text(), canary.value(), "another id");
}

#[test]
fn what_is_said_of_tasks_is_judged_by_their_tools_or_by_the_strictest() {
    let canary = Canary::github();
    let said = canary.value().to_owned();
    let upstream = Upstream::mcp(move |r| {
        let asked = r.json();
        let text_of = |id: &str| json!({ "taskId": id, "status": "failed", "statusMessage": said });
        match r.rpc_method().as_str() {
            // Each has a task of its own, and both say that `shared` is theirs.
            "tools/call" => {
                let own = asked["params"]["arguments"]["task"].clone();
                Some(Reply::result(
                    r,
                    json!({ "task": { "taskId": own, "status": "working" } }),
                ))
            }
            "tasks/list" => Some(Reply::result(r, json!({ "tasks": [text_of("of-strict")] }))),
            "tasks/get" => {
                let id = asked["params"]["taskId"].as_str().unwrap_or_default();
                Some(Reply::result(r, text_of(id)))
            }
            // What names a task comes on the stream of a request that has no tool.
            "ping" => {
                let told = |id: &str| json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": text_of(id) });
                let last = result_message(r, json!({}));
                Some(Reply::events(&[
                    told("of-strict"),
                    told("of-nobody"),
                    told("of-lax"),
                    last,
                ]))
            }
            _ => None,
        }
    });
    let weir = Weir::serve(&config(json!({ "url": upstream.url() })));
    let mut client = Client::connect(&weir, Era::Handshake);
    for (tool, task) in [
        ("strict", "of-strict"),
        ("lax", "of-lax"),
        ("strict", "shared"),
        ("lax", "shared"),
    ] {
        client.call(tool, json!({ "task": task }));
    }
    let answer = client.request("tasks/list", json!({}));
    assert_hidden(&canary, answer.response(), "a list of all tasks");
    for (task, hidden) in [
        ("of-strict", true),
        ("shared", true),
        ("of-nobody", true),
        ("of-lax", false),
    ] {
        let answer = client.request("tasks/get", json!({ "taskId": task }));
        match hidden {
            true => assert_hidden(&canary, answer.response(), task),
            false => assert_eq!(answer.result()["statusMessage"], json!(canary.value())),
        }
    }
    let told = client.request("ping", json!({})).messages;
    assert_eq!(told.len(), 4, "{told:?}");
    assert_hidden(&canary, &told[0], "a task of strict");
    assert_hidden(&canary, &told[1], "a task that nobody knows");
    assert_eq!(told[2]["params"]["statusMessage"], json!(canary.value()));
}
