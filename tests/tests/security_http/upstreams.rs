//! Upstreams that answer wrongly, on purpose or not.

use std::time::{Duration, Instant};

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::upstream::result_message;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Request, Upstream, Weir, json};

use crate::GZIP;

type Answer = Box<dyn Fn(&Request) -> Reply + Send + Sync>;
type Case = (&'static str, Answer, &'static [u16]);

/// What an upstream can do wrong: name, answer, the statuses that are right.
fn hostile(canary: &Canary) -> Vec<Case> {
    let secret = canary.value().to_owned();
    let raw =
        |bytes: String| -> Answer { Box::new(move |_| Reply::Raw(bytes.clone().into_bytes())) };
    let good = json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [{ "type": "text", "text": "leaked" }], "resultType": "complete" } }).to_string();
    let n = good.len();
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let status = |code: u16, body: &str, kind: &'static str| -> Answer {
        let body = body.to_owned();
        Box::new(move |_| Reply::status(code, kind, body.clone()))
    };
    vec![
        (
            "CL and TE",
            raw(format!(
                "{ok}Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n\r\n{n:x}\r\n{good}\r\n0\r\n\r\n{secret}"
            )),
            &[200, 502],
        ),
        (
            "two CL",
            raw(format!(
                "{ok}Content-Length: {n}\r\nContent-Length: 5\r\n\r\n{good}"
            )),
            &[502],
        ),
        (
            "CL that is none",
            raw(format!("{ok}Content-Length: {n}x\r\n\r\n{good}")),
            &[502],
        ),
        (
            "CL longer than the body",
            raw(format!("{ok}Content-Length: {}\r\n\r\n{good}", n + 10)),
            &[502],
        ),
        (
            "chunk size that is none",
            raw(format!(
                "{ok}Transfer-Encoding: chunked\r\n\r\nzz\r\n{good}\r\n0\r\n\r\n"
            )),
            &[502],
        ),
        (
            "cut in a chunk",
            raw(format!(
                "{ok}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{good}",
                n + 10
            )),
            &[502],
        ),
        ("no HTTP", raw(format!("{secret}\r\n\r\n")), &[502]),
        ("HTTP/0.9", raw(format!("<html>{secret}</html>")), &[502]),
        (
            "bad status line",
            raw(format!("HTTP/1.1 abc {secret}\r\n\r\n")),
            &[502],
        ),
        (
            "status 99",
            raw("HTTP/1.1 99 X\r\nContent-Length: 0\r\n\r\n".to_owned()),
            &[502],
        ),
        (
            "status 999",
            raw(format!(
                "HTTP/1.1 999 X\r\nContent-Length: {}\r\n\r\n{secret}",
                secret.len()
            )),
            &[502],
        ),
        (
            "bare LF",
            raw(format!(
                "HTTP/1.1 200 OK\nContent-Type: application/json\nContent-Length: {n}\n\n{good}"
            )),
            &[200, 502],
        ),
        (
            "NUL in a header",
            raw(format!(
                "{ok}X-A: a\0b\r\nContent-Length: {n}\r\n\r\n{good}"
            )),
            &[200, 502],
        ),
        (
            "header of 1 MB",
            raw(format!(
                "{ok}X-A: {}\r\nContent-Length: {n}\r\n\r\n{good}",
                secret.repeat(25_000)
            )),
            &[502],
        ),
        (
            "20,000 headers",
            raw(format!(
                "{ok}{}Content-Length: {n}\r\n\r\n{good}",
                "X-A: b\r\n".repeat(20_000)
            )),
            &[502],
        ),
        (
            "10,000 interim answers",
            raw(format!(
                "{}{ok}Content-Length: {n}\r\n\r\n{good}",
                "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000)
            )),
            &[200, 502, 504],
        ),
        (
            "101 not asked for",
            raw(format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n{secret}"
            )),
            &[502],
        ),
        (
            "redirect",
            Box::new(|r| {
                Reply::status(307, "text/plain", "").with(
                    "Location",
                    &format!("http://{}/other", r.header("host").unwrap_or("x")),
                )
            }),
            &[502],
        ),
        (
            "302 with a secret",
            Box::new({
                let s = secret.clone();
                move |_| {
                    Reply::status(302, "text/plain", "")
                        .with("Location", &format!("http://x.example/{s}"))
                }
            }),
            &[502],
        ),
        (
            "html",
            status(200, &format!("<html>{secret}</html>"), "text/html"),
            &[502],
        ),
        ("text", status(200, &secret, "text/plain"), &[502]),
        (
            "octets",
            status(200, &secret, "application/octet-stream"),
            &[502],
        ),
        (
            "json that is none",
            status(200, &format!("{{\"a\": {secret}"), "application/json"),
            &[200, 502],
        ),
        (
            "json, not JSON-RPC",
            status(
                200,
                &format!("{{\"note\":\"{secret}\"}}"),
                "application/json",
            ),
            &[200, 502],
        ),
        (
            "json with a duplicate key",
            status(
                200,
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"result\":{}}",
                "application/json",
            ),
            &[200, 502],
        ),
        (
            "500 with a secret",
            status(500, &secret, "text/plain"),
            &[502],
        ),
        (
            "503 html",
            status(503, &format!("<html>{secret}</html>"), "text/html"),
            &[502, 503],
        ),
        (
            "401 with a secret",
            Box::new({
                let s = secret.clone();
                move |_| {
                    Reply::status(401, "text/plain", s.clone())
                        .with("WWW-Authenticate", &format!("Basic realm=\"{s}\""))
                }
            }),
            &[502],
        ),
        (
            "404 with a secret",
            status(404, &secret, "text/plain"),
            &[404, 502],
        ),
        (
            "400 JSON-RPC error with a secret",
            Box::new({
                let s = secret.clone();
                move |r| {
                    Reply::status(400, "application/json",
            json!({ "jsonrpc": "2.0", "id": r.json()["id"], "error": { "code": -32600, "message": s } }).to_string())
                }
            }),
            &[200, 400, 502],
        ),
        (
            "gzip",
            Box::new(|_| {
                Reply::status(200, "application/json", GZIP).with("Content-Encoding", "gzip")
            }),
            &[200, 502],
        ),
        (
            "unknown encoding",
            Box::new({
                let g = good.clone();
                move |_| {
                    Reply::status(200, "application/json", g.clone())
                        .with("Content-Encoding", "cow")
                }
            }),
            &[502],
        ),
        (
            "UTF-16",
            Box::new(|_| {
                Reply::status(
                    200,
                    "application/json; charset=utf-16",
                    "{}".encode_utf16()
                        .flat_map(u16::to_be_bytes)
                        .collect::<Vec<u8>>(),
                )
            }),
            &[200, 502],
        ),
        ("reset", Box::new(|_| Reply::Reset), &[502]),
        ("closed at once", raw(String::new()), &[502]),
        (
            "closed in the head",
            raw("HTTP/1.1 200 OK\r\nContent-Type: app".to_owned()),
            &[502],
        ),
        ("hang", Box::new(|_| Reply::Hang), &[504]),
        (
            "hang in the body",
            Box::new(move |_| {
                Reply::wire(|w| {
                    w.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{");
                    w.hang();
                })
            }),
            &[502, 504],
        ),
        ("204", status(204, "", "application/json"), &[502]),
        (
            "202 to a request",
            status(202, "", "application/json"),
            &[202, 502],
        ),
        (
            "an answer under 202",
            Box::new(|r| {
                let answer = result_message(r, json!({ "content": [] })).to_string();
                Reply::status(202, "application/json", answer)
            }),
            &[200],
        ),
        (
            "set-cookie",
            Box::new({
                let s = secret.clone();
                move |r| {
                    Reply::result(r, json!({ "content": [] }))
                        .with("Set-Cookie", &s)
                        .with("X-Debug", &s)
                        .with("Server", &s)
                }
            }),
            &[200],
        ),
        (
            "trailer",
            raw(format!(
                "{ok}Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n{n:x}\r\n{good}\r\n0\r\nX-T: {secret}\r\n\r\n"
            )),
            &[200, 502],
        ),
        (
            "body over the limit",
            Box::new(|r| {
                Reply::result(
                    r,
                    json!({ "content": [{ "type": "text", "text": "y".repeat(200_000) }] }),
                )
            }),
            &[200, 502],
        ),
        (
            "event over the limit",
            Box::new(|r| {
                Reply::events(&[result_message(
                    r,
                    json!({ "content": [{ "type": "text", "text": "y".repeat(200_000) }] }),
                )])
            }),
            &[200, 502],
        ),
        (
            "endless event",
            Box::new(|_| {
                Reply::wire(|w| {
                    w.event_head();
                    w.send("data: ");
                    while w.send("z".repeat(65_536)) {}
                })
            }),
            &[200, 502],
        ),
        (
            "stream that is cut",
            raw(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"a\":\"{secret}"
            )),
            &[200, 502],
        ),
    ]
}

#[test]
fn a_hostile_upstream_gets_nothing_unscanned_through() {
    let canary = Canary::github();
    let upstream = Upstream::mcp(|_| None);
    let limits = json!({ "message_bytes_max": 65536, "upstream_response_timeout_ms": 1000, "upstream_idle_timeout_ms": 1000 });
    let config = Config::new(&upstream.url()).set("limits", limits).set(
        &format!("tenants.{TENANT}.servers.{SERVER}.upstream.breaker"),
        json!({ "failures": 0 }),
    );
    let weir = Weir::serve(&config);
    let mut faults = Vec::new();
    for (name, answer, wanted) in hostile(&canary) {
        upstream.answer(move |r| (r.rpc_method() == "tools/call").then(|| answer(r)));
        let mut client = Client::connect(&weir, Era::Stateless);
        let message = client.message(
            "tools/call",
            json!({ "name": "echo", "arguments": { "message": "hi" } }),
        );
        let started = Instant::now();
        match client.try_post(&message) {
            Err(e) => faults.push(format!("{name}: no answer: {e}")),
            Ok(answer) => {
                let text = answer.text();
                if canary.found_in(&answer.bytes()).is_some() {
                    faults.push(format!("{name}: the secret came through: {text:.200}"));
                } else if !wanted.contains(&answer.told_status()) {
                    faults.push(format!("{name}: {} {text:.200}", answer.status()));
                } else if text.contains("yyyyyyyy") || text.contains("zzzzzzzz") {
                    faults.push(format!("{name}: more than the limit came through"));
                } else if answer.told_status() >= 500 && answer.error()["code"].is_null() {
                    faults.push(format!("{name}: not a JSON-RPC error: {text:.200}"));
                }
            }
        }
        if started.elapsed() > Duration::from_secs(8) {
            faults.push(format!("{name}: it took {:?}", started.elapsed()));
        }
        if let Some(place) = weir.found_anywhere(&canary) {
            faults.push(format!("{name}: the secret stands in {place}"));
        }
    }
    upstream.answer(|_| None);
    let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({ "message": "hi" }));
    assert_eq!(
        answer.first_text(),
        "Echo: hi",
        "afterwards: {}",
        answer.text()
    );
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn bytes_behind_an_answer_are_nobodys_answer() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    upstream.answer(|r| {
        if r.rpc_method() != "tools/call" {
            return None;
        }
        let good = result_message(r, json!({ "content": [{ "type": "text", "text": "mine" }] })).to_string();
        let forged = json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": [{ "type": "text", "text": "forged" }], "resultType": "complete" } }).to_string();
        let response = |b: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{b}", b.len());
        let both = format!("{}{}", response(&good), response(&forged));
        Some(Reply::wire(move |wire| {
            wire.send(both);
            wire.peer_closed(Duration::from_secs(3));
        }))
    });
    let mut client = Client::connect(&weir, Era::Stateless);
    for _ in 0..5 {
        assert_eq!(
            client.call("echo", json!({ "message": "hi" })).first_text(),
            "mine"
        );
    }
}

#[test]
fn an_upstream_that_is_not_there_is_a_502() {
    let gone = Upstream::mcp(|_| None).url();
    let weir = Weir::serve(&Config::new(&gone));
    let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.told_status(), 502, "{}", answer.text());
    assert!(
        !answer.text().contains("127.0.0.1"),
        "the client learns where the upstream is: {}",
        answer.text()
    );
}

#[test]
fn a_failing_upstream_opens_the_circuit_and_a_well_one_closes_it() {
    let upstream = Upstream::mcp(|_| Some(Reply::Reset));
    let config = Config::new(&upstream.url()).set(
        &format!("tenants.{TENANT}.servers.{SERVER}.upstream.breaker"),
        json!({ "failures": 3, "open_ms": 300 }),
    );
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let statuses: Vec<u16> = (0..6)
        .map(|_| client.call("echo", json!({})).told_status())
        .collect();
    assert!(
        statuses.iter().all(|s| matches!(s, 502 | 503)),
        "{statuses:?}"
    );
    let reached = upstream.requests().len();
    assert!(reached < 6 + 1, "the upstream was asked {reached} times");
    upstream.answer(|_| None);
    wait::until("the circuit to close", PATIENCE, || {
        (client.call("echo", json!({ "message": "hi" })).first_text() == "Echo: hi").then_some(())
    });
}

#[test]
fn one_key_opens_no_circuit_for_another() {
    let upstream = Upstream::mcp(|r| match r.json()["params"]["name"].as_str() {
        Some("fails") => Some(Reply::status(500, "text/plain", "")),
        Some("refuses") => Some(Reply::status(403, "text/plain", "")),
        _ => None,
    });
    let mut config = Config::new(&upstream.url()).set(
        &format!("tenants.{TENANT}.servers.{SERVER}.upstream.breaker"),
        json!({ "failures": 2, "open_ms": 600_000 }),
    );
    let keys = ["a", "b", "c"].map(|id| config.key(TENANT, id));
    let weir = Weir::serve(&config);
    let [mut a, mut b, mut c] = keys
        .each_ref()
        .map(|key| Client::connect_with(&weir, Era::Stateless, &[("X-API-Key", key)]));
    let ask = |client: &mut Client, tool: &str| client.call(tool, json!({})).told_status();
    // A status for one call is no sign that the server fails.
    let statuses: Vec<u16> = (0..4).map(|_| ask(&mut a, "refuses")).collect();
    assert_eq!(statuses, [502; 4]);
    assert_eq!(ask(&mut a, "echo"), 200);

    let statuses: Vec<u16> = (0..3).map(|_| ask(&mut a, "fails")).collect();
    assert_eq!(statuses, [502, 502, 503]);
    let refused = a.call("echo", json!({}));
    assert_eq!(refused.told_status(), 503, "a's circuit is open");
    let wait_s: u64 = refused
        .head
        .header("retry-after")
        .and_then(|seconds| seconds.parse().ok())
        .expect("it says for how long");
    assert!((500..=600).contains(&wait_s), "{wait_s}");
    assert_eq!(ask(&mut b, "echo"), 200, "b's is not");

    // Where a second key finds the same, it is the server.
    let statuses: Vec<u16> = (0..2).map(|_| ask(&mut b, "fails")).collect();
    assert_eq!(statuses, [502, 502]);
    assert_eq!(ask(&mut c, "echo"), 503, "nobody is let through");
}
