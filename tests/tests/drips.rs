//! Servers that send a byte now and then: they are late all the same, and what their calls hold is free when the client leaves.

use std::time::{Duration, Instant};

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::http::Conn;
use weir_tests::upstream::Wire;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::audit;
use weir_tests::{Client, Era, Reply, Request, Upstream, Value, Weir, json};

/// Sends this again and again until the other side is gone.
fn drip(wire: &mut Wire, piece: &str) {
    while wire.send(piece) && !wire.peer_closed(Duration::from_millis(20)) {}
}

/// A head that never ends.
fn head() -> Reply {
    Reply::wire(|wire| {
        wire.send("HTTP/1.1 200 OK\r\nX-A: ");
        drip(wire, "a");
    })
}

/// A JSON body that never ends.
fn body() -> Reply {
    Reply::wire(|wire| {
        wire.send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n",
        );
        drip(wire, " ");
    })
}

/// A stream that opens a session and says nothing.
fn comments() -> Reply {
    Reply::wire(|wire| {
        wire.send(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nMcp-Session-Id: x\r\n\r\n",
        );
        drip(wire, ": x\n\n");
    })
}

fn is_call(request: &Request) -> bool {
    request.rpc_method() == "tools/call"
}

fn hello(client: &mut Client) -> Value {
    client.message(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } }),
    )
}

#[test]
fn an_answer_that_drips_is_late() {
    let upstream = Upstream::mcp(|r| match r.json()["params"]["name"].as_str() {
        Some("head") => Some(head()),
        Some("body") => Some(body()),
        _ if r.rpc_method() == "initialize" => Some(comments()),
        _ => None,
    });
    let limits = json!({ "upstream_response_timeout_ms": 500, "upstream_idle_timeout_ms": 600 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let mut client = Client::new(&weir, Era::Stateless, &[]);
    let mut first = Client::new(&weir, Era::Handshake, &[]);
    for tool in ["head", "body", "initialize"] {
        let started = Instant::now();
        let answer = match tool {
            "initialize" => {
                let hello = hello(&mut first);
                first.post(&hello)
            }
            _ => client.call(tool, json!({})),
        };
        let said = answer.error()["message"].as_str().unwrap_or_default();
        let begins = "The MCP server did not answer in time. Audit id: aud_";
        assert!(said.starts_with(begins), "{tool}: {said}");
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(500), "{tool}: {took:?}");
    }
}

/// The bad server of a tenant that may have two calls under way, and a good one beside it.
fn beside(bad: Value, good: &Upstream) -> Config {
    Config::of(bad)
        .set("audit", json!({ "mode": "all" }))
        .set(
            &format!("tenants.{TENANT}.servers.good.upstream"),
            json!({ "url": good.url() }),
        )
        .set(
            &format!("tenants.{TENANT}.limits"),
            json!({ "concurrent_calls_max": 2 }),
        )
}

/// Two clients ask the bad server, hold both places of the tenant, and leave.
fn leaves_nothing_taken(what: &str, config: &Config, era: Era, holds: impl Fn()) {
    let weir = Weir::serve(config);
    let mut good = Client::new(&weir, Era::Stateless, &[]);
    good.path = good.path.replace(SERVER, "good");
    let mut asking = Client::new(&weir, era, &[]);
    let conns: Vec<Conn> = (0..2)
        .map(|_| {
            let message = match era {
                Era::Handshake => hello(&mut asking),
                Era::Stateless => asking.message(
                    "tools/call",
                    json!({ "name": "echo", "arguments": {}, "_meta": {
                        "io.modelcontextprotocol/clientCapabilities": {} } }),
                ),
            };
            let mut conn = Conn::open(weir.addr);
            let headers = asking.headers_for(&message);
            conn.send(asking.request_bytes("POST", &headers, message.to_string().as_bytes()));
            conn
        })
        .collect();
    holds();
    wait::until("all places to be taken", PATIENCE, || {
        (good.call("echo", json!({})).told_status() == 429).then_some(())
    });
    drop(conns);
    wait::until(&format!("{what}: a place to be free"), PATIENCE, || {
        (good.call("echo", json!({})).status() == 200).then_some(())
    });
    wait::until(&format!("{what}: the records"), PATIENCE, || {
        let records = audit(&weir, &["--server", SERVER]);
        let left = records.iter().filter(|r| r["status"] == 499).count();
        (left == 2).then_some(())
    });
}

#[test]
fn what_an_initialize_holds_is_free_when_its_client_leaves() {
    let good = Upstream::mcp(|_| None);
    let bad = Upstream::mcp(|r| (r.rpc_method() == "initialize").then(comments));
    let config = beside(json!({ "url": bad.url() }), &good);
    leaves_nothing_taken("initialize", &config, Era::Handshake, || {
        wait::until("both at the server", PATIENCE, || {
            (bad.calls("initialize").len() == 2).then_some(())
        });
    });
    let ended = bad.wait_for("the end of the session", |r| r.method == "DELETE");
    assert_eq!(ended.header("mcp-session-id"), Some("x"));
}

#[test]
fn who_waits_for_a_shared_stream_to_open_holds_nothing_once_gone() {
    let good = Upstream::mcp(|_| None);
    let bad = Upstream::start(|_| head());
    let config = beside(json!({ "sse": bad.url() }), &good);
    leaves_nothing_taken("opening", &config, Era::Stateless, || {
        bad.wait_for("the stream", |r| r.method == "GET");
    });
}

#[test]
fn a_refusal_that_the_server_does_not_take_holds_nobody() {
    let good = Upstream::mcp(|_| None);
    let bad = Upstream::mcp(|r| match is_call(r) {
        true => Some(Reply::wire(|wire| {
            wire.event_head();
            // Nobody of this era can be asked, and Weir says so.
            wire.event(
                &json!({ "jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage",
                "params": { "maxTokens": 1, "messages": [] } }),
            );
            wire.hang();
        })),
        false => Some(head()),
    });
    let config = beside(json!({ "url": bad.url() }), &good);
    leaves_nothing_taken("a refusal", &config, Era::Stateless, || {
        wait::until("both refusals", PATIENCE, || {
            let told = bad.requests().into_iter();
            let told = told.filter(|r| r.json()["error"].is_object()).count();
            (told == 2).then_some(())
        });
    });
}

#[test]
fn the_end_of_a_session_holds_no_stream() {
    let upstream = Upstream::mcp(|r| (r.method == "DELETE").then(head));
    let config = Config::new(&upstream.url()).set("limits.streams_max", json!(1));
    let weir = Weir::serve(&config);
    for nth in 1..=3 {
        let mut client = Client::new(&weir, Era::Handshake, &[]);
        client.path = weir.path().replace("/mcp", "/sse");
        let mut stream = wait::until("a place for a stream", PATIENCE, || {
            let stream = client.listen(None);
            (stream.head.status == 200).then_some(stream)
        });
        client.path = stream.event(PATIENCE).expect("the endpoint event").data;
        let hello = hello(&mut client);
        assert_eq!(client.post(&hello).status(), 202);
        stream.message(PATIENCE).expect("the answer");
        drop(stream);
        wait::until("the end of its session", PATIENCE, || {
            let ends = upstream.requests().into_iter();
            (ends.filter(|r| r.method == "DELETE").count() == nth).then_some(())
        });
    }
}
