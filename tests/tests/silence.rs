//! Servers that take a message and never answer it: over pipes, over HTTP+SSE, to every kind of client. The call
//! ends in time, the server hears that it did, and the session lives on.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::http::Conn;
use weir_tests::kit;
use weir_tests::upstream::Wire;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::audit;
use weir_tests::{Canary, Client, Era, Reply, Request, Upstream, Value, Weir, json};

const STDIO_SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");
/// What the tests allow a server, in milliseconds.
const SILENCE_MS: u64 = 400;
const IDLE_MS: u64 = 60_000;

fn config(upstream: Value) -> Config {
    let limits =
        json!({ "upstream_response_timeout_ms": SILENCE_MS, "upstream_idle_timeout_ms": IDLE_MS });
    Config::of(upstream)
        .set("limits", limits)
        .set("audit", json!({ "mode": "all" }))
}

fn stdio() -> Config {
    config(json!({ "command": STDIO_SERVER }))
}

/// It says so, and names its record.
fn assert_is_late(said: &Value) {
    let begins = "The MCP server did not answer in time. Audit id: aud_";
    let is_so = said.as_str().is_some_and(|said| said.starts_with(begins));
    assert!(is_so, "{said}");
}

/// The records of calls of a tool whose upstream did not answer in time.
fn timed_out(weir: &Weir, tool: &str) -> usize {
    let data = weir.dir().join("data").display().to_string();
    let words = [
        "audit",
        "search",
        "--data-dir",
        &data,
        "--tool",
        tool,
        "--json",
    ];
    let found = weir_tests::weir::run(&words, "");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    let late = |line: &&str| line.contains("upstream timed out") && line.contains("timed_out");
    found.lines().filter(late).count()
}

#[test]
fn a_stdio_server_that_never_answers_is_given_up_in_every_era() {
    let weir = Weir::serve(&stdio());
    for (nth, era) in Era::ALL.into_iter().enumerate() {
        let mut client = Client::connect(&weir, era);
        // The first request of the stateless era starts the server.
        client.call("echo", json!({ "message": "hi" }));
        let started = Instant::now();
        let answer = client.call("silent", json!({}));
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(SILENCE_MS),
            "{era:?}: {took:?}"
        );
        assert_eq!(answer.told_status(), 504, "{era:?}: {}", answer.text());
        assert_eq!(answer.response()["id"], answer.id, "{}", answer.text());
        assert_is_late(&answer.error()["message"]);
        let heard = client.call("heard", json!({})).first_text().to_owned();
        let heard: Vec<Value> = serde_json::from_str(&heard).expect("the session lives on");
        let cancelled = heard
            .iter()
            .filter(|m| m["method"] == "notifications/cancelled")
            .count();
        assert_eq!(cancelled, 1, "{era:?}: {heard:?}");
        assert_eq!(timed_out(&weir, "silent"), nth + 1, "{era:?}");
    }
}

/// A status of HTTP ends the session of some of them; it stands in the error where a session would be lost.
#[test]
fn real_clients_live_on_after_a_call_that_nobody_answers() {
    if !kit::ready() {
        return;
    }
    let weir = Weir::serve(&stdio());
    let calls = json!([
        ["echo", { "message": "hello" }],
        ["silent", {}],
        ["echo", { "message": "hello again" }],
    ]);
    let mut wrong = Vec::new();
    for client in [
        "ts1",
        "ts2-legacy",
        "ts2-modern",
        "py1",
        "py2-legacy",
        "py2-modern",
    ] {
        let report = kit::client(client, &weir.url(), &calls, None).expect(client);
        let outcomes: Vec<&str> = report.iter().map(|c| c.outcome.as_str()).collect();
        let alive = report.iter().all(|c| c.tools > 0);
        if outcomes != ["result", "throw", "result"] || !alive {
            wrong.push(format!("{client}: {report:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_failed_keeps_its_status_where_no_session_is_lost_by_it() {
    let weir = Weir::serve(&stdio());
    let mut client = Client::connect(&weir, Era::Handshake);
    let call = client.message("tools/call", json!({ "name": "silent", "arguments": {} }));
    let headers = client.headers_for(&call);
    for (left_out, status, data) in [
        (&[][..], 200, json!({ "status": 504 })),
        (&["MCP-Protocol-Version"], 200, json!({ "status": 504 })),
    ] {
        let mut headers = headers.clone();
        headers.retain(|(name, _)| !left_out.contains(&name.as_str()));
        let body = call.to_string().into_bytes();
        let answer = client.post_bytes(&body, &headers).expect("an answer");
        assert_eq!(answer.status(), status, "{}", answer.text());
        assert_eq!(answer.error()["data"], data, "{}", answer.text());
    }
    let mut modern = Client::connect(&weir, Era::Stateless);
    modern.call("echo", json!({ "message": "hi" }));
    let answer = modern.call("silent", json!({}));
    assert_eq!(answer.status(), 504, "{}", answer.text());
    assert_eq!(answer.error()["data"], Value::Null, "{}", answer.text());
}

/// Nobody waits for an answer to these, so what goes wrong with them is in the record only.
#[test]
fn words_that_the_server_does_not_take_end_no_session() {
    let upstream = Upstream::mcp(
        |r| match (r.rpc_method().as_str(), r.json()["n"].as_u64()) {
            (_, Some(1)) => Some(Reply::status(500, "text/plain", "")),
            (_, Some(2)) => Some(Reply::Reset),
            (_, Some(3)) => Some(Reply::status(202, "application/json", "null")),
            (_, Some(4)) => Some(Reply::json(&json!({}))),
            _ => None,
        },
    );
    let weir = Weir::serve(&Config::new(&upstream.url()).set("audit", json!({ "mode": "all" })));
    let client = Client::connect(&weir, Era::Handshake);
    for n in 1..=4 {
        let params = json!({ "progressToken": 1, "progress": n });
        let word = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params, "n": n });
        let answer = client.post(&word);
        assert_eq!((answer.status(), answer.text().as_str()), (202, ""), "{n}");
        // With the id, which is the server's, it would be an answer to a request of the client's.
        let word = json!({ "jsonrpc": "2.0", "id": 1, "result": {}, "n": n });
        let answer = client.post(&word);
        assert_eq!((answer.status(), answer.text().as_str()), (202, ""), "{n}");
    }
    let records = weir_tests::weir::audit(&weir, &["--method", "notifications/progress"]);
    let statuses: Vec<&Value> = records.iter().map(|r| &r["status"]).collect();
    assert_eq!(statuses, [202, 202, 502, 502], "{records:?}");
}

/// Where a stream can be gone on with, its client does; an error would have it call again.
#[test]
fn a_line_that_breaks_within_a_stream_that_can_be_resumed_loses_no_call() {
    let upstream = Upstream::mcp(|r| {
        let id = r.json()["id"].clone();
        match (r.rpc_method().as_str(), r.header("last-event-id")) {
            ("tools/call", _) => Some(Reply::wire(move |wire| {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                wire.send(head);
                let event = format!("id: {id}\nretry: 60\ndata: \n\n");
                // No last chunk follows.
                wire.send(format!("{:x}\r\n{event}\r\n", event.len()));
            })),
            (_, Some(event)) => {
                let id: u64 = event.parse().expect("ours");
                let result = json!({ "content": [{ "type": "text", "text": "late" }] });
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                Some(Reply::events(&[answer]))
            }
            _ => None,
        }
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    let answer = client.call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(answer.messages.is_empty(), "{}", answer.text());
    let event = answer.id.to_string();
    let mut rest = client.listen(Some(&event));
    let late = rest.message(PATIENCE).expect("the answer");
    assert_eq!(late["result"]["content"][0]["text"], "late", "{late}");
}

#[test]
fn progress_keeps_a_call_alive_and_its_end_does_not() {
    let weir = Weir::serve(&stdio());
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        let step_ms = SILENCE_MS / 2;
        let arguments = json!({ "times": 5, "every_ms": step_ms });
        let params = json!({ "name": "progress", "arguments": arguments, "_meta": { "progressToken": "p" } });
        let answer = client.request("tools/call", params);
        assert_eq!(answer.first_text(), "done", "{era:?}: {}", answer.text());
        assert_eq!(answer.messages.len(), 6, "{era:?}: {}", answer.text());
    }
}

#[test]
fn a_server_that_waits_for_the_client_is_not_silent() {
    let weir = Weir::serve(&stdio());
    let mut client = Client::connect(&weir, Era::Handshake);
    let call = client.message("tools/call", json!({ "name": "ask", "arguments": {} }));
    let mut stream = client.open(&call);
    let asked = stream.message(PATIENCE).expect("the server's question");
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    // Longer than a server may be silent: here it is the client who thinks.
    let since = Instant::now();
    wait::until("the client's thought", PATIENCE, || {
        (since.elapsed() > Duration::from_millis(2 * SILENCE_MS)).then_some(())
    });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
    assert_eq!(client.post(&answer).status(), 202);
    let last = stream.message(PATIENCE).expect("the call's answer");
    assert_eq!(
        last["result"]["content"][0]["text"], "the client answered",
        "{last}"
    );
}

#[test]
fn a_server_whose_answer_is_blocked_hears_that() {
    let weir = Weir::serve(&stdio().category("secret", "block"));
    let mut client = Client::connect(&weir, Era::Handshake);
    let call = client.message("tools/call", json!({ "name": "ask", "arguments": {} }));
    let mut stream = client.open(&call);
    let asked = stream.message(PATIENCE).expect("the server's question");
    let canary = Canary::github();
    let content = json!({ "action": "accept", "content": { "a": canary.value() } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": content });
    assert_eq!(client.post(&answer).status(), 202);
    let last = stream.message(PATIENCE).expect("the call's answer");
    let text = &last["result"]["content"][0]["text"];
    assert_eq!(text, "the client answered", "{last}");
    let blocked = wait::until("its record", PATIENCE, || {
        let records = audit(&weir, &["--action", "block"]);
        records.into_iter().next()
    });
    assert_eq!(blocked["status"], 202, "{blocked}");
    // An answer to nothing is not one to tell of: its id is the client's text.
    let nothing = json!({ "jsonrpc": "2.0", "id": "nobody asked", "result": content });
    assert_eq!(client.post(&nothing).status(), 202);
    let heard = client.call("heard", json!({})).first_text().to_owned();
    assert!(!heard.contains("nobody asked"), "{heard}");
}

#[test]
fn a_call_that_was_given_up_frees_its_place() {
    let weir = Weir::serve(&stdio().set("limits.pending_calls_max", json!(1)));
    let mut client = Client::connect(&weir, Era::Handshake);
    for _ in 0..3 {
        assert_eq!(client.call("silent", json!({})).told_status(), 504);
    }
    assert_eq!(
        client.call("echo", json!({ "message": "hi" })).first_text(),
        "hi"
    );
}

#[test]
fn answers_close_the_circuit_that_silence_opened() {
    let config = stdio().set(
        &format!("tenants.{TENANT}.servers.{SERVER}.upstream.breaker"),
        json!({ "failures": 2, "open_ms": 100 }),
    );
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Handshake);
    for _ in 0..3 {
        assert_eq!(client.call("silent", json!({})).told_status(), 504);
        let echo = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(echo.first_text(), "hi", "one failure is none in a row");
    }
    for _ in 0..2 {
        assert_eq!(client.call("silent", json!({})).told_status(), 504);
    }
    assert_eq!(client.call("silent", json!({})).told_status(), 503);
    wait::until("the circuit to close", PATIENCE, || {
        let echo = client.call("echo", json!({ "message": "hi" }));
        (echo.first_text() == "hi").then_some(())
    });
    let statuses: Vec<u16> = (0..3)
        .map(|_| client.call("echo", json!({ "message": "hi" })).status())
        .collect();
    assert_eq!(statuses, [200, 200, 200]);
}

#[test]
fn a_server_that_never_says_hello_is_given_up() {
    let upstream = json!({ "command": "sleep", "args": ["1000"] });
    let weir = Weir::serve(&config(upstream));
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    let started = Instant::now();
    let answer = client.request("initialize", hello);
    assert_eq!(answer.told_status(), 504, "{}", answer.text());
    assert_eq!(answer.head.header("mcp-session-id"), None);
    let took = started.elapsed();
    assert!(
        took < Duration::from_millis(2 * SILENCE_MS),
        "it was waited for twice: {took:?}"
    );
}

/// A server of revision 2024-11-05: answers what `answer` gives, on its stream.
fn sse_server(answer: impl Fn(&Request) -> Option<Value> + Send + Sync + 'static) -> Upstream {
    let queue: Arc<(Mutex<Vec<Value>>, Condvar)> = Arc::default();
    Upstream::start(move |request| {
        let queue = Arc::clone(&queue);
        if request.method == "GET" {
            return Reply::wire(move |wire| stream(wire, &queue));
        }
        if let Some(result) = answer(request) {
            let id = &request.json()["id"];
            let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            queue.0.lock().expect("no panic inside").push(message);
            queue.1.notify_all();
        }
        Reply::accepted()
    })
}

fn stream(wire: &mut Wire, queue: &(Mutex<Vec<Value>>, Condvar)) {
    wire.event_head();
    wire.send("event: endpoint\ndata: /messages?session=1\n\n");
    loop {
        let answers = queue.0.lock().expect("no panic inside");
        let waited = queue.1.wait_timeout(answers, Duration::from_millis(50));
        let answers = std::mem::take(&mut *waited.expect("no panic inside").0);
        let sent = answers.iter().all(|message| wire.event(message));
        if !sent || wire.peer_closed(Duration::from_millis(1)) {
            return;
        }
    }
}

fn echoing(request: &Request) -> Option<Value> {
    let message = request.json();
    match message["method"].as_str()? {
        "initialize" => Some(json!({ "protocolVersion": "2024-11-05", "capabilities": {},
            "serverInfo": { "name": "s", "version": "1" } })),
        "tools/call" if message["params"]["name"] == "echo" => {
            Some(json!({ "content": [{ "type": "text", "text": "hi" }] }))
        }
        _ => None,
    }
}

#[test]
fn an_http_sse_server_that_never_answers_is_given_up() {
    let upstream = sse_server(echoing);
    let weir = Weir::serve(&config(json!({ "sse": upstream.url() })));
    let mut client = Client::connect(&weir, Era::Handshake);
    let answer = client.call("silent", json!({}));
    assert_eq!(answer.told_status(), 504, "{}", answer.text());
    upstream.wait_for("the cancellation", |r| {
        r.rpc_method() == "notifications/cancelled" && r.json()["params"]["requestId"] == answer.id
    });
    assert_eq!(client.call("echo", json!({})).first_text(), "hi");
    assert_eq!(timed_out(&weir, "silent"), 1);
}

/// The stream of a client of revision 2024-11-05, and where it posts.
struct First {
    stream: weir_tests::mcp::Stream,
    poster: Client,
}

impl First {
    fn connect(weir: &Weir) -> Self {
        let mut client = Client::new(weir, Era::Handshake, &[]);
        client.path = weir.path().replace("/mcp", "/sse");
        let mut stream = client.listen(None);
        let endpoint = stream.event(PATIENCE).expect("the endpoint event").data;
        let mut poster = client;
        poster.path = endpoint;
        poster.revision = "2024-11-05".into();
        let mut first = Self { stream, poster };
        let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } });
        let hello = first.poster.message("initialize", hello);
        assert!(first.ask(&hello)["result"].is_object());
        first
    }

    fn ask(&mut self, message: &Value) -> Value {
        assert_eq!(self.poster.post(message).status(), 202);
        let answer = self.stream.message(PATIENCE).expect("an answer");
        assert_eq!(answer["id"], message["id"], "{answer}");
        answer
    }

    fn call(&mut self, tool: &str) -> Value {
        let params = json!({ "name": tool, "arguments": { "message": "hi" } });
        let message = self.poster.message("tools/call", params);
        self.ask(&message)
    }
}

#[test]
fn a_client_of_the_first_revision_hears_of_it_on_its_stream() {
    let weir = Weir::serve(&stdio());
    let mut first = First::connect(&weir);
    let answer = first.call("silent");
    assert_is_late(&answer["error"]["message"]);
    let heard = first.call("heard");
    let heard = heard["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    assert!(heard.contains("notifications/cancelled"), "{heard}");
    assert_eq!(timed_out(&weir, "silent"), 1);
}

#[test]
fn what_a_client_of_the_first_revision_sends_goes_up_in_its_order() {
    let weir = Weir::serve(&Config::of(json!({ "command": STDIO_SERVER })));
    let mut first = First::connect(&weir);
    for n in 0..40 {
        // Large and small by turns: the large ones take longer to judge.
        let words = "some words of text here ".repeat(if n % 2 == 0 { 40_000 } else { 1 });
        let params = json!({ "n": n, "level": "info", "data": words });
        let answer = first.poster.notify("notifications/message", params);
        assert_eq!(answer.status(), 202, "{}", answer.text());
    }
    let order = first.call("order");
    let wanted = json!((0..40).collect::<Vec<_>>()).to_string();
    assert_eq!(order["result"]["content"][0]["text"], wanted, "{order}");
}

#[test]
fn a_slow_call_of_the_first_revision_holds_up_no_other() {
    let slow = |r: &Request| (r.json()["params"]["name"] == "slow").then_some(Reply::Hang);
    let upstream = Upstream::mcp(slow);
    let pipes = Config::of(json!({ "command": STDIO_SERVER }));
    for (config, tool) in [(Config::new(&upstream.url()), "slow"), (pipes, "silent")] {
        let weir = Weir::serve(&config);
        let mut first = First::connect(&weir);
        let params = json!({ "name": tool, "arguments": {} });
        let call = first.poster.message("tools/call", params);
        assert_eq!(first.poster.post(&call).status(), 202);
        // The next answer on the stream is not its.
        let echo = first.call("echo");
        assert!(echo["result"].is_object(), "{echo}");
    }
}

#[test]
fn a_batch_is_answered_though_one_of_its_calls_is_not() {
    let weir = Weir::serve(&stdio());
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    client.revision = "2025-03-26".into();
    client.initialize();
    let call = |id: i64, tool: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": { "message": "hi" } } })
    };
    let batch = json!([call(11, "silent"), call(12, "echo")]);
    let answer = client.post(&batch);
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let of = |id: i64| {
        let found = answer.messages.iter().find(|m| m["id"] == id);
        found.cloned().unwrap_or_default()
    };
    assert!(of(11)["error"].is_object(), "{}", answer.text());
    assert_eq!(of(12)["result"]["content"][0]["text"], "hi");
}

#[test]
fn a_server_that_does_not_read_holds_nobody() {
    // Reads nothing: its pipe and the queue before it fill up.
    let upstream = json!({ "command": "sleep", "args": ["1000"] });
    let config = config(upstream).set("limits.write_timeout_ms", json!(SILENCE_MS));
    let weir = Weir::serve(&config);
    let client = Client::new(&weir, Era::Handshake, &[]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {
        "name": "x".repeat(1 << 20), "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let mut conn = Conn::open(weir.addr);
    conn.send(client.request_bytes(
        "POST",
        &client.headers_for(&hello),
        hello.to_string().as_bytes(),
    ));
    let answer = weir_tests::mcp::read_answer(&mut conn).expect("an answer");
    assert_eq!(answer.told_status(), 504, "{}", answer.text());
}

#[test]
fn a_client_of_the_first_revision_has_so_many_calls_under_way_and_no_more() {
    let upstream = Upstream::mcp(|r| (r.rpc_method() == "tools/call").then_some(Reply::Hang));
    let config = Config::new(&upstream.url()).set("limits.pending_calls_max", json!(2));
    let weir = Weir::serve(&config);
    let mut first = First::connect(&weir);
    let mut statuses = Vec::new();
    let mut refused = None;
    for _ in 0..3 {
        let params = json!({ "name": "echo", "arguments": {} });
        let message = first.poster.message("tools/call", params);
        let answer = first.poster.post(&message);
        statuses.push(answer.status());
        refused = Some(answer);
    }
    // Whoever asked waits at the stream.
    assert_eq!(statuses, [202; 3]);
    let refused = refused.expect("three were posted");
    assert!(refused.head.header("retry-after").is_some());
    let told = first.stream.message(PATIENCE).expect("an answer");
    assert_eq!(told["id"], refused.id, "{told}");
    let words = told["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("limits.pending_calls_max"), "{words}");
    // What wants no answer is not a call: the client must be able to cancel one.
    let word = first
        .poster
        .notify("notifications/cancelled", json!({ "requestId": 1 }));
    assert_eq!(word.status(), 202, "{}", word.text());
    upstream.wait_for("the cancellation", |r| {
        r.rpc_method() == "notifications/cancelled"
    });
    assert_eq!(upstream.calls("tools/call").len(), 2);
}
