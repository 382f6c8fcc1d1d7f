//! Streams that live long, break off, are resumed or cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_tests::config::Config;
use weir_tests::http::Conn;
use weir_tests::upstream::result_message;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Upstream, Weir, json};

fn note(text: &str) -> weir_tests::Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": text } })
}

#[test]
fn events_are_flushed_one_by_one() {
    let gate = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&gate);
    let upstream = Upstream::mcp(move |r| {
        let gate = Arc::clone(&opened);
        (r.rpc_method() == "tools/call").then(|| {
            let last = result_message(r, json!({ "content": [] }));
            Reply::wire(move |wire| {
                wire.event_head();
                wire.event(&note("early"));
                wait::until("the gate", PATIENCE, || {
                    gate.load(Ordering::Relaxed).then_some(())
                });
                wire.event(&last);
            })
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for era in Era::ALL {
        gate.store(false, Ordering::Relaxed);
        let mut client = Client::connect(&weir, era);
        let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
        let mut stream = client.open(&message);
        assert_eq!(
            stream.message(PATIENCE).expect("at once")["params"]["data"],
            json!("early"),
            "{era:?}"
        );
        gate.store(true, Ordering::Relaxed);
        assert_eq!(
            stream.message(PATIENCE).expect("the result")["id"],
            message["id"]
        );
    }
}

#[test]
fn an_event_is_judged_whole_however_it_is_cut() {
    for action in ["redact", "block"] {
        let canary = Canary::github();
        let token = canary.value().to_owned();
        let upstream = Upstream::mcp(move |r| {
            let token = token.clone();
            (r.rpc_method() == "tools/call").then(|| {
                let last = result_message(
                    r,
                    json!({ "content": [{ "type": "text", "text": format!("it is {token} so") }] }),
                )
                .to_string();
                let (a, b) = last.split_at(last.find(&token).expect("it is in there") + 7);
                // Two data lines join with a line break, which JSON allows only between tokens: cut there.
                let cut = last.find(",\"result\"").expect("a result") + 1;
                let lines = format!(
                    "event: message\r\ndata: {}\r\ndata: {}\r\n\r\n",
                    &last[..cut],
                    &last[cut..]
                );
                let plain = format!("event: message\ndata: {a}{b}\n\n");
                let text = if r.conn % 2 == 0 { lines } else { plain };
                Reply::wire(move |wire| {
                    wire.event_head();
                    for byte in text.bytes() {
                        wire.send([byte]);
                    }
                })
            })
        });
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        for era in Era::ALL {
            for _ in 0..4 {
                let answer = Client::connect(&weir, era).call("echo", json!({}));
                assert_eq!(canary.found_in(&answer.body), None, "{}", answer.text());
                assert_eq!(
                    answer.result()["isError"] == json!(true),
                    action == "block",
                    "{}",
                    answer.text()
                );
                assert_eq!(
                    answer.text().contains("it is "),
                    action == "redact",
                    "{}",
                    answer.text()
                );
            }
        }
    }
}

#[test]
fn line_ends_of_all_three_kinds_are_read() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let canary = Canary::github();
    for end in ["\n", "\r\n", "\r"] {
        let token = canary.value().to_owned();
        upstream.answer(move |r| {
            (r.rpc_method() == "tools/call").then(|| {
                let hidden = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": token } });
                let last = result_message(r, json!({ "content": [{ "type": "text", "text": "done" }] }));
                let body = format!(": note{end}{end}id: 1{end}data: {hidden}{end}{end}event: message{end}data: {last}{end}{end}");
                Reply::status(200, "text/event-stream", body)
            })
        });
        let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
        assert_eq!(canary.found_in(&answer.body), None, "{end:?}");
        assert_eq!(answer.first_text(), "done", "{end:?}: {}", answer.text());
    }
}

#[test]
fn events_of_other_names_are_no_messages() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    upstream.answer(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "n" } });
            let last = result_message(r, json!({ "content": [{ "type": "text", "text": "done" }] }));
            let body = format!("event: ping\ndata: {{}}\n\nevent: heartbeat\ndata: 12:00\n\nevent: other\ndata: {note}\n\ndata: {last}\n\n");
            Reply::status(200, "text/event-stream", body)
        })
    });
    for era in Era::ALL {
        let answer = Client::connect(&weir, era).call("echo", json!({}));
        assert_eq!(answer.first_text(), "done", "{}", answer.text());
        assert_eq!(answer.messages.len(), 1, "{}", answer.text());
    }
}

#[test]
fn an_error_without_an_id_is_the_answer_only_if_no_other_comes() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for answered in [true, false] {
        upstream.answer(move |r| {
            (r.rpc_method() == "tools/call").then(|| {
                let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "no message" } });
                let last = result_message(r, json!({ "content": [{ "type": "text", "text": "done" }] }));
                let both = [error, last];
                Reply::events(if answered { &both } else { &both[..1] })
            })
        });
        let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
        match answered {
            true => assert_eq!(answer.first_text(), "done", "{}", answer.text()),
            false => assert_eq!(answer.error()["code"], -32700, "{}", answer.text()),
        }
    }
}

#[test]
fn a_stream_that_ends_without_its_answer_is_an_error_and_not_silence() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| Reply::events(&[note("only this")]))
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
    let told = answer.error().is_object()
        || answer.told_status() >= 500
        || answer.result()["isError"] == json!(true);
    assert!(told, "{} {}", answer.status(), answer.text());
}

#[test]
fn an_idle_stream_gets_keep_alives_and_outlives_the_idle_time() {
    let upstream = Upstream::mcp(|r| {
        (r.method == "GET" || r.rpc_method() == "subscriptions/listen").then(|| {
            Reply::wire(|wire| {
                wire.event_head();
                wire.hang();
            })
        })
    });
    let limits = json!({ "keep_alive_ms": 100, "idle_timeout_ms": 400, "upstream_idle_timeout_ms": 400,
        "upstream_response_timeout_ms": 400, "write_timeout_ms": 400 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        let mut stream = match era {
            Era::Handshake => client.listen(None),
            Era::Stateless => {
                let message = client.message(
                    "subscriptions/listen",
                    json!({ "notifications": { "toolsListChanged": true } }),
                );
                client.open(&message)
            }
        };
        assert_eq!(stream.head.status, 200);
        let started = Instant::now();
        let mut comments = 0;
        while started.elapsed() < Duration::from_millis(1500) {
            let event = stream
                .any_event(Duration::from_secs(5))
                .expect("the stream lives");
            comments += event.comments.len();
        }
        assert!(
            comments >= 5,
            "{era:?}: {comments} keep-alives in {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn a_replayed_answer_is_judged() {
    let canary = Canary::github();
    let token = canary.value().to_owned();
    let upstream = Upstream::mcp(move |r| {
        let token = token.clone();
        match (r.method.as_str(), r.header("last-event-id")) {
            ("GET", Some(_)) => {
                let known = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [{ "type": "text", "text": format!("known {token}") }] } });
                let unknown = json!({ "jsonrpc": "2.0", "id": 999, "result": { "x": format!("unknown {token}") } });
                let last = note("the end");
                Some(Reply::wire(move |wire| {
                    wire.event_head();
                    wire.send(format!("id: e2\ndata: {known}\n\n"));
                    wire.send(format!("id: e3\ndata: {unknown}\n\n"));
                    wire.send(format!("id: e4\ndata: {last}\n\n"));
                    wire.hang();
                }))
            }
            _ if r.rpc_method() == "tools/call" => Some(Reply::wire(|wire| {
                // A priming event, and the connection breaks off.
                wire.event_head();
                wire.send("id: e1\nretry: 10\ndata:\n\n");
            })),
            _ => None,
        }
    });
    for action in ["redact", "block"] {
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        let mut client = Client::connect(&weir, Era::Handshake);
        let mut message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
        message["id"] = json!(3);
        let mut stream = client.open(&message);
        let primed = stream.event(PATIENCE).expect("the priming event");
        let id = primed.id.expect("an event id");
        let mut resumed = client.listen(Some(&id));
        assert_eq!(resumed.head.status, 200);
        let mut seen = String::new();
        loop {
            let event = resumed.event(PATIENCE).expect("the last event comes");
            seen.push_str(&format!("{event:?}"));
            if event.data.contains("the end") {
                break;
            }
        }
        assert_eq!(canary.found_in(seen.as_bytes()), None, "{action}: {seen}");
        assert_eq!(
            seen.contains("known "),
            action == "redact",
            "{action}: {seen}"
        );
    }
}

/// In the stateless era closing the connection is the cancel, and it goes on at once.
#[test]
fn closing_the_connection_cancels_in_the_stateless_era() {
    let closed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&closed);
    let upstream = Upstream::mcp(move |r| {
        let flag = Arc::clone(&flag);
        (r.rpc_method() == "tools/call").then(|| {
            Reply::wire(move |wire| {
                wire.event_head();
                wire.event(&note("started"));
                flag.store(wire.peer_closed(PATIENCE), Ordering::Relaxed);
            })
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut stream = client.open(&message);
    stream.message(PATIENCE).expect("it started");
    drop(stream);
    wait::until(
        "the upstream to see the cancel",
        Duration::from_secs(5),
        || closed.load(Ordering::Relaxed).then_some(()),
    );
}

/// The same before the upstream has answered anything.
#[test]
fn closing_the_connection_cancels_before_the_answer_begins() {
    let closed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&closed);
    let upstream = Upstream::mcp(move |r| {
        let flag = Arc::clone(&flag);
        (r.rpc_method() == "tools/call").then(|| {
            Reply::wire(move |wire| {
                flag.store(wire.peer_closed(PATIENCE), Ordering::Relaxed);
            })
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut conn = Conn::open(weir.addr);
    conn.send(client.request_bytes(
        "POST",
        &client.headers_for(&message),
        message.to_string().as_bytes(),
    ));
    upstream.wait_for("the call", |r| r.rpc_method() == "tools/call");
    drop(conn);
    wait::until(
        "the upstream to see the cancel",
        Duration::from_secs(5),
        || closed.load(Ordering::Relaxed).then_some(()),
    );
}

/// In the handshake era a lost connection is no cancel: the server works on.
#[test]
fn closing_the_connection_is_no_cancel_in_the_handshake_era() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let last = result_message(r, json!({ "content": [] }));
            Reply::wire(move |wire| {
                wire.event_head();
                wire.event(&note("started"));
                if !wire.peer_closed(Duration::from_secs(1)) {
                    wire.event(&last);
                }
            })
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut stream = client.open(&message);
    stream.message(PATIENCE).expect("it started");
    drop(stream);
    assert_eq!(client.request("tools/list", json!({})).status(), 200);
    assert!(
        upstream.calls("notifications/cancelled").is_empty(),
        "a lost connection was made a cancel"
    );
    let cancel = client.notify(
        "notifications/cancelled",
        json!({ "requestId": message["id"], "reason": "enough" }),
    );
    assert_eq!(cancel.status(), 202);
    let seen = upstream.wait_for("the cancel", |r| {
        r.rpc_method() == "notifications/cancelled"
    });
    assert_eq!(
        seen.json()["params"]["requestId"],
        upstream.calls("tools/call")[0].json()["id"]
    );
}

#[test]
fn a_storm_of_cancelled_calls_leaks_nothing() {
    let upstream = Upstream::mcp(|r| (r.rpc_method() == "tools/call").then_some(Reply::Hang));
    let config = Config::new(&upstream.url()).set("limits", json!({ "pending_calls_max": 32 }));
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let count = || {
        std::fs::read_dir(format!("/proc/{}/fd", weir.pid()))
            .expect("it runs")
            .count()
    };
    client.request("tools/list", json!({}));
    let before = count();
    for _ in 0..200 {
        let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
        let mut conn = Conn::open(weir.addr);
        conn.send(client.request_bytes(
            "POST",
            &client.headers_for(&message),
            message.to_string().as_bytes(),
        ));
    }
    wait::until("the descriptors to come back", PATIENCE, || {
        (count() <= before + 40).then_some(())
    });
    assert_eq!(client.request("tools/list", json!({})).status(), 200);
}

#[test]
fn a_server_request_that_the_client_cannot_take_does_not_reach_it() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let ask = json!({ "jsonrpc": "2.0", "id": "srv", "method": "sampling/createMessage",
                "params": { "maxTokens": 1, "messages": [] } });
            Reply::events(&[
                ask,
                result_message(
                    r,
                    json!({ "content": [{ "type": "text", "text": "done" }] }),
                ),
            ])
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    let hello = client.request(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } }),
    );
    client.session = hello.head.header("mcp-session-id").map(str::to_owned);
    let answer = client.call("echo", json!({}));
    assert_eq!(answer.first_text(), "done", "{}", answer.text());
    assert!(
        !answer.text().contains("sampling/createMessage"),
        "it declared no sampling: {}",
        answer.text()
    );
}
