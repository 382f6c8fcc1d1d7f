//! What a server says that is too long or no message: it ends nothing but what depends on it, and whoever asked hears of it.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use weir_tests::config::Config;
use weir_tests::upstream::{Request, Wire, result_message};
use weir_tests::wait::PATIENCE;
use weir_tests::weir::audit;
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

const STDIO_SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");

/// Longer than a message may be under [`config`].
const LONG: usize = 80_000;

fn config(upstream: Value, streams: bool) -> Config {
    let mut limits = json!({ "message_bytes_max": 65536, "upstream_response_timeout_ms": 5000 });
    if streams {
        limits["streamed_bytes_max"] = json!(1 << 20);
    }
    Config::of(upstream)
        .set("limits", limits)
        .set("audit", json!({ "mode": "all" }))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

/// Words of a server that nobody waits for and that are too long, as events.
fn noise() -> String {
    let pad = "x".repeat(LONG);
    let word = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": pad } });
    format!(": {pad}\n\nunknown: {pad}\n\n{}", event(&word.to_string()))
}

/// Two questions of a server's own: one that is too long and one that is ill-formed.
fn questions() -> String {
    let pad = "x".repeat(LONG);
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":"long","method":"sampling/createMessage","params":{{"systemPrompt":"{pad}"}}}}"#
    );
    let bad =
        r#"{"jsonrpc":"2.0","id":"bad","method":"sampling/createMessage","params":{"a":1,"a":2}}"#;
    event(&long) + &event(bad)
}

/// Whether Weir refused the question of this id.
fn is_refusal(request: &Request, id: &str) -> bool {
    let said = request.json();
    said["id"] == id && said["error"]["code"] == -32600 && said["method"].is_null()
}

fn tool_of(request: &Request) -> String {
    let name = &request.json()["params"]["name"];
    name.as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_answer_behind_long_words_among_events_arrives() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let last = result_message(r, text("done"));
            let body = noise() + &event(&last.to_string());
            Reply::status(200, "text/event-stream", body)
        })
    });
    for streams in [true, false] {
        let weir = Weir::serve(&config(json!({ "url": upstream.url() }), streams));
        for era in Era::ALL {
            let answer = Client::connect(&weir, era).call("echo", json!({}));
            assert_eq!(answer.first_text(), "done", "{}", answer.text());
            assert_eq!(answer.messages.len(), 1, "{}", answer.text());
        }
        weir.wait_for_log("it is dropped, and the stream goes on");
        let records = audit(&weir, &["--action", "refused"]);
        assert_eq!(records.len(), 2, "{records:?}");
        assert_eq!(records[0]["direction"], "to_client", "{records:?}");
        assert_eq!(records[0]["reason"], "The message is larger than allowed.");
    }
}

#[test]
fn a_servers_question_among_events_that_cannot_be_read_is_refused_and_the_call_goes_on() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let last = result_message(r, text("done"));
            let body = questions() + &event(&last.to_string());
            Reply::status(200, "text/event-stream", body)
        })
    });
    for streams in [true, false] {
        upstream.forget();
        let weir = Weir::serve(&config(json!({ "url": upstream.url() }), streams));
        let answer = Client::connect(&weir, Era::Handshake).call("echo", json!({}));
        assert_eq!(answer.first_text(), "done", "{}", answer.text());
        for id in ["long", "bad"] {
            upstream.wait_for("the refusal", |r| is_refusal(r, id));
        }
    }
}

#[test]
fn an_answer_that_is_too_long_still_fails_its_call() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let last = result_message(r, text(&"x".repeat(LONG)));
            Reply::status(200, "text/event-stream", event(&last.to_string()))
        })
    });
    let weir = Weir::serve(&config(json!({ "url": upstream.url() }), false));
    for era in Era::ALL {
        let answer = Client::connect(&weir, era).call("echo", json!({}));
        assert_eq!(answer.error()["code"], -31003, "{}", answer.text());
        assert!(!answer.text().contains("xxxx"));
    }
}

/// A client without a session comes back for the rest of a stream: nobody knows there which calls wait.
#[test]
fn the_id_of_a_late_answer_that_is_too_long_is_no_way_past_the_scan() {
    let canary = Canary::github();
    let id = canary.value().to_owned();
    let upstream = Upstream::mcp(move |r| {
        let pad = "x".repeat(if r.header("last-event-id") == Some("long") {
            LONG
        } else {
            10
        });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": text(&pad) });
        (r.method == "GET").then(|| Reply::events(&[answer]))
    });
    for streams in [true, false] {
        let weir = Weir::serve(&config(json!({ "url": upstream.url() }), streams));
        let client = Client::new(&weir, Era::Handshake, &[]);
        for (event, code) in [("short", -31001), ("long", -31003)] {
            let mut resumed = client.listen(Some(event));
            let said = resumed.message(PATIENCE).expect("it says why");
            assert_eq!(said["error"]["code"], code, "{event}: {said}");
            assert_eq!(canary.found_in(said.to_string().as_bytes()), None, "{said}");
            assert!(said["id"].is_null(), "{event}: {said}");
        }
        weir.assert_nowhere(&canary, "the id of a late answer");
    }
}

/// In a session it is known which calls wait: who asked hears under its own id.
#[test]
fn a_late_answer_that_is_too_long_is_told_to_the_call_that_waits() {
    let upstream = Upstream::mcp(|r| {
        let answer = json!({ "jsonrpc": "2.0", "id": 5, "result": text(&"x".repeat(LONG)) });
        match (r.method.as_str(), tool_of(r).as_str()) {
            ("GET", _) => Some(Reply::events(&[answer])),
            ("POST", "slow") => Some(Reply::Hang),
            _ => None,
        }
    });
    let weir = Weir::serve(&config(json!({ "url": upstream.url() }), false));
    let mut client = Client::connect(&weir, Era::Handshake);
    let mut call = client.message("tools/call", json!({ "name": "slow", "arguments": {} }));
    call["id"] = json!(5);
    let head_and_body = client.headers_for(&call);
    let mut waits = weir_tests::http::Conn::open(weir.addr);
    waits.send(client.request_bytes("POST", &head_and_body, call.to_string().as_bytes()));
    upstream.wait_for("the call", |r| tool_of(r) == "slow");
    let said = client
        .listen(Some("late"))
        .message(PATIENCE)
        .expect("it says why");
    assert_eq!(said["id"], 5, "{said}");
    assert_eq!(said["error"]["code"], -31003, "{said}");
}

#[test]
fn the_log_says_what_an_answer_was_that_cannot_be_used() {
    let upstream = Upstream::mcp(|r| match tool_of(r).as_str() {
        "page" => Some(Reply::status(
            502,
            "text/html; charset=utf-8",
            "<p>bad gateway",
        )),
        "secret" => Some(Reply::status(200, "application/json", r#"{"id":1"#)),
        _ => None,
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    assert_eq!(client.call("page", json!({})).told_status(), 502);
    weir.wait_for_log("text/html");
    assert_eq!(client.call("secret", json!({})).told_status(), 502);
    weir.wait_for_log("an unexpected end of the input");
    let faults: Vec<String> = weir
        .log()
        .lines()
        .filter(|l| l.contains("upstream fault"))
        .map(str::to_owned)
        .collect();
    assert!(
        faults[0].contains("http_status") && faults[0].contains("502"),
        "{faults:?}"
    );
    assert!(
        faults[1].contains("200") && faults[1].contains("application/json"),
        "{faults:?}"
    );
}

/// Events that a server of HTTP+SSE has yet to say.
type Queue = Arc<(Mutex<Vec<String>>, Condvar)>;

/// A server of HTTP+SSE: what it says to each call.
fn sse_server(says: impl Fn(&Request) -> String + Send + Sync + 'static) -> Upstream {
    let queue = Queue::default();
    Upstream::start(move |r| {
        let queue = Arc::clone(&queue);
        if r.method == "GET" {
            return Reply::wire(move |wire| stream(wire, &queue));
        }
        let said = match r.rpc_method().as_str() {
            "initialize" => {
                let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {},
                    "serverInfo": { "name": "s", "version": "1" } });
                event(&result_message(r, hello).to_string())
            }
            "tools/call" => says(r),
            _ => return Reply::accepted(),
        };
        queue.0.lock().expect("no panic inside").push(said);
        queue.1.notify_all();
        Reply::accepted()
    })
}

fn stream(wire: &mut Wire, queue: &(Mutex<Vec<String>>, Condvar)) {
    wire.event_head();
    wire.send("event: endpoint\ndata: /messages?session=1\n\n");
    loop {
        let said = queue.0.lock().expect("no panic inside");
        let waited = queue.1.wait_timeout(said, Duration::from_millis(50));
        let said = std::mem::take(&mut *waited.expect("no panic inside").0);
        let sent = said.iter().all(|events| wire.send(events));
        if !sent || wire.peer_closed(Duration::from_millis(1)) {
            return;
        }
    }
}

#[test]
fn an_event_of_http_sse_that_is_too_long_fails_its_own_call_alone() {
    let upstream = sse_server(|r| {
        let answer = |said: &str| event(&result_message(r, text(said)).to_string());
        match tool_of(r).as_str() {
            "long" => answer(&"x".repeat(LONG)),
            "noisy" => noise() + &answer("done"),
            "asks" => questions() + &answer("done"),
            _ => answer("hi"),
        }
    });
    let weir = Weir::serve(&config(json!({ "sse": upstream.url() }), true));
    let mut client = Client::connect(&weir, Era::Handshake);
    let answer = client.call("long", json!({}));
    assert_eq!(answer.told_status(), 502, "{}", answer.text());
    assert!(
        answer
            .text()
            .contains("larger than limits.message_bytes_max"),
        "{}",
        answer.text()
    );
    weir.wait_for_log("its call is failed");
    assert_eq!(client.call("noisy", json!({})).first_text(), "done");
    assert_eq!(client.call("asks", json!({})).first_text(), "done");
    for id in ["long", "bad"] {
        upstream.wait_for("the refusal", |r| is_refusal(r, id));
    }
    assert_eq!(client.call("echo", json!({})).first_text(), "hi");
    let streams = upstream
        .requests()
        .iter()
        .filter(|r| r.method == "GET")
        .count();
    assert_eq!(streams, 1, "the session went on");
}

#[test]
fn why_a_stream_of_http_sse_is_over_is_in_the_log() {
    let upstream = sse_server(|_| format!("id: {}\n\n", "x".repeat(2000)));
    let weir = Weir::serve(&config(json!({ "sse": upstream.url() }), true));
    let answer = Client::connect(&weir, Era::Handshake).call("echo", json!({}));
    assert_eq!(answer.told_status(), 502, "{}", answer.text());
    weir.wait_for_log("an event id or name above the size limit");
}

const NOBODYS: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no message"}}"#;

#[test]
fn an_error_without_an_id_is_the_answer_to_the_only_call_that_waits() {
    let stdio = config(json!({ "command": STDIO_SERVER }), true);
    let upstream = sse_server(|_| event(NOBODYS));
    let sse = config(json!({ "sse": upstream.url() }), true);
    for (config, eras) in [(stdio, &Era::ALL[..]), (sse, &[Era::Handshake])] {
        let weir = Weir::serve(&config);
        for era in eras {
            let mut client = Client::connect(&weir, *era);
            let lines = json!({ "mute": true, "lines": [NOBODYS] });
            let answer = client.call("raw", lines);
            assert_eq!(answer.error()["code"], -32700, "{}", answer.text());
            assert_eq!(answer.response()["id"], answer.id, "{}", answer.text());
            let lines = json!({ "mute": true, "lines": [NOBODYS.replace(r#""id":null,"#, "")] });
            let answer = client.call("raw", lines);
            assert_eq!(answer.response()["id"], answer.id, "{}", answer.text());
        }
    }
}

#[test]
fn an_error_without_an_id_is_nobodys_where_two_calls_wait() {
    let weir = Weir::serve(&config(json!({ "command": STDIO_SERVER }), true));
    let mut client = Client::connect(&weir, Era::Handshake);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
    let arguments = json!({ "mute": true, "lines": [progress] });
    let silent =
        json!({ "name": "raw", "arguments": arguments, "_meta": { "progressToken": "p" } });
    let silent = client.message("tools/call", silent);
    let mut waiting = client.open(&silent);
    let said = waiting.message(PATIENCE).expect("the progress");
    assert_eq!(said["method"], "notifications/progress", "{said}");
    let answer = client.call("raw", json!({ "lines": [NOBODYS] }));
    assert_eq!(answer.first_text(), "after", "{}", answer.text());
}

#[test]
fn log_lines_of_a_program_are_no_answers() {
    let weir = Weir::serve(&config(json!({ "command": STDIO_SERVER }), true));
    let lines = json!({ "pad": LONG, "lines": [
        r#"{"id":$ID,"level":"info","msg":"started"}"#,
        r#"{"id":$ID,"level":"error","error":"boom"}"#,
        r#"{"id":$ID}"#,
        "$PAD",
        "[$PAD]",
        "\"$PAD\"",
        r#"{"id":$ID,"level":"error","error":"$PAD"}"#,
        r#"{"level":"error","error":"$PAD"}"#,
        r#"{"time":"now" $PAD"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"$PAD"}}"#,
    ]});
    for era in Era::ALL {
        let answer = Client::connect(&weir, era).call("raw", lines.clone());
        assert_eq!(answer.first_text(), "after", "{}", answer.text());
    }
}

#[test]
fn an_answer_of_a_program_that_is_none_fails_its_call_at_once_and_says_why() {
    let weir = Weir::serve(&config(json!({ "command": STDIO_SERVER }), true));
    for line in [
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"a":1,"a":2}}"#,
        r#"{"jsonrpc":"2.0","id":$ID,"result":5}"#,
        r#"{"id":$ID,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":$ID}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        for era in Era::ALL {
            let started = Instant::now();
            let arguments = json!({ "mute": true, "lines": [line] });
            let answer = Client::connect(&weir, era).call("raw", arguments);
            assert_eq!(answer.told_status(), 502, "{line}: {}", answer.text());
            assert!(started.elapsed() < Duration::from_secs(4), "{line}");
        }
    }
    weir.wait_for_log("a duplicate key");
    let log = weir.log();
    assert!(!log.contains("the server ended"), "{log}");
}

#[test]
fn a_programs_question_that_cannot_be_read_is_refused() {
    let weir = Weir::serve(&config(json!({ "command": STDIO_SERVER }), true));
    let lines = json!({ "pad": LONG, "lines": [
        r#"{"jsonrpc":"2.0","id":"bad","method":"sampling/createMessage","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":"long","method":"sampling/createMessage","params":{"systemPrompt":"$PAD"}}"#,
        r#"{"method":"sampling/createMessage","params":{"systemPrompt":"$PAD"},"jsonrpc":"2.0","id":"late"}"#,
    ]});
    let mut client = Client::connect(&weir, Era::Handshake);
    assert_eq!(client.call("raw", lines).first_text(), "after");
    let told = weir_tests::wait::until("the refusals", PATIENCE, || {
        let told = client.call("answers", json!({})).first_text().to_owned();
        let told: Vec<Value> = serde_json::from_str(&told).expect("a list");
        (told.len() == 3).then_some(told)
    });
    for id in ["bad", "long", "late"] {
        let refused = told.iter().find(|m| m["id"] == id).expect("an answer");
        assert_eq!(refused["error"]["code"], -32600, "{refused}");
    }
}
