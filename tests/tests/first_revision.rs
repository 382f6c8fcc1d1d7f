//! Clients of revision 2024-11-05 before servers of a newer one: what such a client cannot ask for, streams of the server's
//! own and the rest of one that broke off, Weir asks for in its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weir_tests::config::Config;
use weir_tests::mcp::Stream;
use weir_tests::upstream::{Wire, result_message};
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Request, Upstream, Value, Weir, json};

/// The stream of such a client, and where it posts.
struct First {
    stream: Stream,
    poster: Client,
}

impl First {
    fn connect(weir: &Weir) -> Self {
        let mut poster = Client::new(weir, Era::Handshake, &[]);
        poster.path = weir.path().replace("/mcp", "/sse");
        let mut stream = poster.listen(None);
        poster.path = stream.event(PATIENCE).expect("the endpoint event").data;
        poster.revision = "2024-11-05".into();
        let mut first = Self { stream, poster };
        let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": { "roots": {} },
            "clientInfo": { "name": "c", "version": "1" } });
        let hello = first.poster.message("initialize", hello);
        assert_eq!(first.poster.post(&hello).status(), 202);
        assert!(first.next()["result"].is_object());
        first
    }

    fn is_ready(&self) {
        let word = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.poster.post(&word).status(), 202);
    }

    fn next(&mut self) -> Value {
        self.stream.message(PATIENCE).expect("a message")
    }
}

fn is_get(request: &Request) -> bool {
    request.method == "GET"
}

fn with_id(wire: &mut Wire, id: &str, data: &str) {
    wire.send(format!("id: {id}\nretry: 60\ndata: {data}\n\n"));
}

#[test]
fn what_a_server_says_unasked_arrives_also_after_its_stream_ended() {
    let canary = Canary::github();
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message",
        "params": { "level": "info", "data": format!("token {}", canary.value()) } });
    let upstream = Upstream::mcp(move |r| {
        let from = r.header("last-event-id").map(str::to_owned);
        let log = log.to_string();
        is_get(r).then(|| {
            Reply::wire(move |wire| {
                wire.event_head();
                match from.as_deref() {
                    None => with_id(wire, "e1", &list_changed("tools").to_string()),
                    Some("e1") => {
                        with_id(wire, "e2", &log);
                        let asks = json!({ "jsonrpc": "2.0", "id": "q1", "method": "roots/list" });
                        with_id(wire, "e3", &asks.to_string());
                    }
                    _ => wire.hang(),
                }
            })
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut first = First::connect(&weir);
    assert!(
        !upstream.requests().iter().any(is_get),
        "before it is ready"
    );
    first.is_ready();
    assert_eq!(first.next(), list_changed("tools"));
    let said = first.next();
    assert_eq!(said["method"], "notifications/message");
    assert_eq!(canary.found_in(said.to_string().as_bytes()), None, "{said}");
    let asked = first.next();
    assert_eq!(asked["method"], "roots/list");
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } });
    assert_eq!(first.poster.post(&answer).status(), 202);
    let came = upstream.wait_for("the answer", |r| {
        r.method == "POST" && r.json()["result"]["roots"].is_array()
    });
    assert_eq!(came.json()["id"], "q1");
    upstream.wait_for("the third stream", |r| {
        r.header("last-event-id") == Some("e3")
    });
    let call = first.poster.message(
        "tools/call",
        json!({ "name": "echo", "arguments": { "message": "hi" } }),
    );
    assert_eq!(first.poster.post(&call).status(), 202);
    assert_eq!(first.next()["result"]["content"][0]["text"], "Echo: hi");
}

#[test]
fn a_server_without_a_stream_is_asked_once_and_one_that_fails_again() {
    for (status, at_least, at_most) in [(405, 1, 1), (404, 1, 1), (503, 2, usize::MAX)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let upstream = Upstream::mcp(move |r| {
            is_get(r).then(|| {
                count.fetch_add(1, Ordering::Relaxed);
                Reply::status(status, "text/plain", "")
            })
        });
        let weir = Weir::serve(&Config::new(&upstream.url()));
        let mut first = First::connect(&weir);
        first.is_ready();
        wait::until("the server to be asked", PATIENCE, || {
            (asked.load(Ordering::Relaxed) >= at_least).then_some(())
        });
        let call = first.poster.message(
            "tools/call",
            json!({ "name": "echo", "arguments": { "message": "hi" } }),
        );
        assert_eq!(first.poster.post(&call).status(), 202);
        assert_eq!(first.next()["result"]["content"][0]["text"], "Echo: hi");
        let asked = asked.load(Ordering::Relaxed);
        assert!((at_least..=at_most).contains(&asked), "{status}: {asked}");
    }
}

/// A server may close the stream of a call and go on in another (2025-11-25, transports, polling).
#[test]
fn an_answer_whose_stream_the_server_closes_is_fetched() {
    let last = Arc::new(std::sync::Mutex::new(None));
    let kept = Arc::clone(&last);
    let upstream = Upstream::mcp(move |r| {
        if r.rpc_method() == "tools/call" {
            let result = json!({ "content": [{ "type": "text", "text": "late" }] });
            *kept.lock().expect("no panic inside") = Some(result_message(r, result));
            return Some(Reply::wire(|wire| {
                wire.event_head();
                with_id(wire, "c1", "");
            }));
        }
        let from = r.header("last-event-id").map(str::to_owned);
        let answer = kept.lock().expect("no panic inside").clone();
        is_get(r).then(|| match (from.as_deref(), answer) {
            (Some("c1"), Some(answer)) => Reply::wire(move |wire| {
                wire.event_head();
                with_id(wire, "c2", &progress(&answer["id"]).to_string());
            }),
            (Some("c2"), Some(answer)) => Reply::events(&[answer]),
            _ => Reply::status(405, "text/plain", ""),
        })
    });
    let audit = json!({ "mode": "all" });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("audit", audit));
    let mut first = First::connect(&weir);
    first.is_ready();
    let params = json!({ "name": "echo", "arguments": {}, "_meta": { "progressToken": 2 } });
    let mut call = first.poster.message("tools/call", params);
    call["id"] = json!(2);
    assert_eq!(first.poster.post(&call).status(), 202);
    assert_eq!(first.next()["method"], "notifications/progress");
    let answer = first.next();
    assert_eq!(answer["id"], 2, "{answer}");
    assert_eq!(answer["result"]["content"][0]["text"], "late");
    let asked = upstream.requests();
    let asked = asked.iter().filter_map(|r| r.header("last-event-id"));
    assert_eq!(asked.collect::<Vec<_>>(), ["c1", "c2"]);
    let record = weir_tests::weir::audit(&weir, &["--tool", "echo"]);
    assert_eq!(record[0]["upstream"], "answered", "{record:?}");
}

fn list_changed(of: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": format!("notifications/{of}/list_changed") })
}

fn progress(token: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": token, "progress": 1 } })
}

/// Its client waits at the stream; a status of the POST it would never connect with the call.
#[test]
fn a_message_that_is_refused_is_answered_on_the_stream() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut first = First::connect(&weir);
    let mut deep = json!("x");
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let params = json!({ "name": "echo", "arguments": { "message": deep } });
    let call = first.poster.message("tools/call", params);
    assert_eq!(first.poster.post(&call).status(), 202);
    let answer = first.next();
    assert_eq!(answer["id"], call["id"], "{answer}");
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    assert!(upstream.calls("tools/call").is_empty());
}
