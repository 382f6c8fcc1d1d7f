//! How much of request bodies is held: by one principal, by all, over both versions of HTTP, and what becomes of it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir_tests::config::{Config, TENANT};
use weir_tests::h2::{END_HEADERS, END_STREAM, Frame, H2, Outcome, head as h2_head, kind};
use weir_tests::http::{Conn, Response};
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::audit;
use weir_tests::{Client, Era, Reply, Upstream, Weir, json};

const MIB: usize = 1 << 20;
/// A call of this length takes four steps, and what is sent of a slow one three.
const WHOLE: usize = 900_000;
const SENT: usize = 800_000;
const STEP: usize = 256 << 10;

const WINDOW_UPDATE: u8 = 8;
const NO_ERROR: u32 = 0;
const CANCEL: u32 = 8;

/// Three keys of one tenant, and bounds that a few bodies meet.
struct Lab {
    weir: Weir,
    config: Config,
    keys: [String; 3],
    upstream: Upstream,
}

impl Lab {
    fn new(limits: serde_json::Value) -> Self {
        let upstream = Upstream::mcp(|_| None);
        let mut config = Config::new(&upstream.url())
            .set("audit", json!({ "mode": "all" }))
            .set("limits", limits)
            .set("limits.message_bytes_max", json!(MIB));
        let keys = ["a", "b", "c"].map(|id| config.key(TENANT, id));
        Self {
            weir: Weir::serve(&config),
            config,
            keys,
            upstream,
        }
    }

    /// Two bodies of one principal, four of all.
    fn small() -> Self {
        Self::new(json!({
            "bodies_bytes_per_principal_max": 2 * MIB, "bodies_bytes_max": 3 * MIB }))
    }

    fn client(&self, who: usize) -> Client {
        Client::new(
            &self.weir,
            Era::Stateless,
            &[("X-API-Key", &self.keys[who])],
        )
    }

    /// The bytes of a whole request.
    fn request(&self, who: usize) -> Vec<u8> {
        let mut client = self.client(who);
        let text = "x".repeat(WHOLE);
        let message = client.message(
            "tools/call",
            json!({ "name": "echo", "arguments": { "message": text } }),
        );
        client.request_bytes(
            "POST",
            &client.headers_for(&message),
            message.to_string().as_bytes(),
        )
    }

    /// One that is not whole, and what is missing.
    fn slow(&self, who: usize) -> (Conn, Vec<u8>) {
        let mut bytes = self.request(who);
        let rest = bytes.split_off(SENT);
        let mut conn = Conn::open(self.weir.addr);
        conn.send(&bytes);
        (conn, rest)
    }

    fn call(&self, who: usize) -> Response {
        let mut conn = Conn::open(self.weir.addr);
        conn.send(self.request(who));
        conn.response().expect("an answer, whatever was sent")
    }

    fn metric(&self, name: &str) -> f64 {
        let (_, text) = self.weir.admin_get("/metrics");
        let line = text.lines().find_map(|l| l.strip_prefix(name));
        line.map_or(0.0, |value| value.trim().parse().expect("a number"))
    }

    fn wait_for_held(&self, steps: usize) {
        wait::until(&format!("{steps} steps that are held"), PATIENCE, || {
            let held = self.metric("weir_bodies_bytes ");
            (held == (steps * STEP) as f64).then_some(())
        });
    }
}

fn assert_echoed(response: &Response) {
    assert_eq!(response.status(), 200, "{:.300}", response.text());
    assert!(response.text().contains("Echo: xxx"));
}

fn assert_refused(response: &Response, status: u16, code: i64, limit: &str) {
    assert_eq!(response.status(), status, "{:.300}", response.text());
    assert_eq!(response.head.header("retry-after"), Some("1"));
    let said: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(said["error"]["code"], code, "{said}");
    assert!(said["id"].is_null(), "{said}");
    let text = said["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains(&format!("({limit})")), "{said}");
}

#[test]
fn one_principal_holds_no_more_than_its_share_of_bodies() {
    let lab = Lab::small();
    let slow = [lab.slow(0), lab.slow(0)];
    lab.wait_for_held(6);
    let limit = "limits.bodies_bytes_per_principal_max";
    for _ in 0..5 {
        // Refused while it is still being sent: the answer is read all the same.
        assert_refused(&lab.call(0), 429, -31002, limit);
    }
    lab.wait_for_held(6);
    let small = lab.client(0).call("echo", json!({ "message": "hi" }));
    assert_eq!(small.first_text(), "Echo: hi", "what is short goes on");
    assert_echoed(&lab.call(1));
    lab.wait_for_held(6);
    for (mut conn, rest) in slow {
        conn.send(&rest);
        assert_echoed(&conn.response().expect("an answer"));
    }
    lab.wait_for_held(0);
    assert_echoed(&lab.call(0));
    assert_eq!(lab.upstream.calls("tools/call").len(), 5);

    let refused = "weir_bodies_refused_total{reason=\"principal\"} ";
    assert_eq!(lab.metric(refused), 5.0);
    let records = audit(&lab.weir, &[]);
    let refused: Vec<_> = records.iter().filter(|r| r["status"] == 429).collect();
    assert_eq!(refused.len(), 5, "{records:?}");
    for record in refused {
        assert_eq!(record["principal"], "a", "{record}");
        assert_eq!(record["action"], "refused", "{record}");
        assert!(record["reason"].as_str().unwrap_or("").contains(limit));
    }
}

#[test]
fn all_together_hold_no_more_than_there_is_and_who_leaves_gives_back() {
    let lab = Lab::small();
    let of_a = [lab.slow(0), lab.slow(0)];
    lab.wait_for_held(6);
    let of_b = [lab.slow(1), lab.slow(1)];
    lab.wait_for_held(12);
    let limit = "limits.bodies_bytes_max";
    assert_refused(&lab.call(2), 503, -31006, limit);
    let small = lab.client(2).call("echo", json!({ "message": "hi" }));
    assert_eq!(small.first_text(), "Echo: hi");
    assert_eq!(
        lab.metric("weir_bodies_refused_total{reason=\"all\"} "),
        1.0
    );
    // Clients that leave in the middle.
    drop(of_a);
    lab.wait_for_held(6);
    assert_echoed(&lab.call(2));
    drop(of_b);
    lab.wait_for_held(0);
    assert_echoed(&lab.call(0));
}

#[test]
fn a_reload_changes_how_much_one_principal_may_hold() {
    let lab = Lab::new(json!({ "bodies_bytes_per_principal_max": MIB }));
    let slow = lab.slow(0);
    lab.wait_for_held(3);
    assert_eq!(lab.call(0).status(), 429);
    let with = |bytes: usize| {
        let config = lab.config.clone();
        config.set("limits.bodies_bytes_per_principal_max", json!(bytes))
    };
    lab.weir.rewrite_config(&with(2 * MIB).text());
    wait::until("room for a second body", PATIENCE, || {
        (lab.call(0).status() == 200).then_some(())
    });
    lab.weir.rewrite_config(&with(MIB).text());
    wait::until("no room for it again", PATIENCE, || {
        (lab.call(0).status() == 429).then_some(())
    });
    let (mut conn, rest) = slow;
    conn.send(&rest);
    assert_echoed(&conn.response().expect("an answer"));
    lab.wait_for_held(0);
}

#[test]
fn what_was_decided_about_and_waits_for_its_answer_takes_no_room() {
    let lab = Lab::new(json!({ "bodies_bytes_per_principal_max": MIB }));
    lab.upstream
        .answer(|r| (r.rpc_method() == "tools/call").then_some(Reply::Hang));
    let waiting: Vec<Conn> = (1..=3)
        .map(|calls| {
            let mut conn = Conn::open(lab.weir.addr);
            conn.send(lab.request(0));
            wait::until("the call", PATIENCE, || {
                (lab.upstream.calls("tools/call").len() == calls).then_some(())
            });
            conn
        })
        .collect();
    lab.wait_for_held(0);
    lab.upstream.answer(|_| None);
    assert_echoed(&lab.call(0));
    drop(waiting);
}

#[test]
fn the_longest_message_is_held_whatever_the_bounds() {
    let upstream = Upstream::mcp(|_| None);
    let limits = json!({ "message_bytes_max": 3 * MIB, "bodies_bytes_max": MIB,
        "bodies_bytes_per_principal_max": MIB });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let text = "x".repeat(3 * MIB - 1000);
    let mut client = Client::connect(&weir, Era::Stateless);
    let answer = client.call("echo", json!({ "message": text }));
    assert_eq!(answer.first_text().len(), "Echo: ".len() + text.len());
}

#[test]
fn what_goes_up_in_steps_is_held_no_longer_than_its_beginning() {
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::new(&upstream.url())
        .set(
            "limits",
            json!({ "message_bytes_max": MIB, "streamed_bytes_max": 64 * MIB }),
        )
        .category("secret", "redact")
        .category("pii", "log")
        .category("injection", "warn");
    let key = config.key(TENANT, "a");
    let weir = Weir::serve(&config);
    let lab = Lab {
        weir,
        config,
        keys: [key.clone(), key.clone(), key],
        upstream,
    };
    let mut client = lab.client(0);
    client.era = Era::Handshake;
    client.revision = Era::Handshake.revision().into();
    client.initialize();
    let text = "x ".repeat(2 * MIB);
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{text}"}}}}}}"#
    );
    let headers = client.headers_for(&json!({ "method": "tools/call" }));
    let bytes = client.request_bytes("POST", &headers, message.as_bytes());
    let (first, rest) = bytes.split_at(SENT);
    let (second, last) = rest.split_at(MIB);
    let mut conn = Conn::open(lab.weir.addr);
    conn.send(first);
    lab.wait_for_held(3);
    conn.send(second);
    // It is on its way to the server, and its end is not there yet.
    lab.wait_for_held(0);
    conn.send(last);
    let response = conn.response().expect("an answer");
    assert_eq!(response.status(), 200, "{:.300}", response.text());
}

/// A client of HTTP/2 that minds the windows of the other side.
struct Peer {
    conn: H2,
    /// What may be sent on each stream, and (0) on all.
    windows: HashMap<u32, i64>,
    outcomes: HashMap<u32, Outcome>,
}

impl Peer {
    fn open(weir: &Weir) -> Self {
        Self {
            conn: H2::open(weir.addr),
            windows: HashMap::from([(0, 65_535)]),
            outcomes: HashMap::new(),
        }
    }

    fn begin(&mut self, stream: u32, path: &str, key: &str) {
        let headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "127.0.0.1"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "echo"),
            ("x-api-key", key),
        ];
        self.conn
            .send(kind::HEADERS, END_HEADERS, stream, &h2_head(&headers));
        self.windows.insert(stream, 65_535);
        self.outcomes.insert(stream, Outcome::default());
    }

    /// Sends a piece of a body as the windows allow; stops where the stream is answered.
    fn pour(&mut self, stream: u32, bytes: &[u8], flags: u8) {
        let mut pieces = bytes.chunks(16_000).peekable();
        while let Some(piece) = pieces.next() {
            let len = piece.len() as i64;
            while !self.is_answered(stream) && self.room(stream) < len {
                self.take();
            }
            if self.is_answered(stream) {
                return;
            }
            for counted in [0, stream] {
                *self.windows.entry(counted).or_default() -= len;
            }
            let last = if pieces.peek().is_none() { flags } else { 0 };
            self.conn.send(kind::DATA, last, stream, piece);
        }
    }

    fn room(&self, stream: u32) -> i64 {
        self.windows[&0].min(self.windows[&stream])
    }

    fn is_answered(&self, stream: u32) -> bool {
        let outcome = &self.outcomes[&stream];
        outcome.ended || outcome.reset.is_some()
    }

    fn reset(&mut self, stream: u32) {
        let code = CANCEL.to_be_bytes();
        self.conn.send(kind::RST_STREAM, 0, stream, &code);
    }

    fn answer(&mut self, stream: u32) -> String {
        while !self.is_answered(stream) {
            self.take();
        }
        String::from_utf8_lossy(&self.outcomes[&stream].body).into_owned()
    }

    fn wait_for_reset(&mut self, stream: u32) -> u32 {
        loop {
            if let Some(code) = self.outcomes[&stream].reset {
                return code;
            }
            self.take();
        }
    }

    fn take(&mut self) {
        let frame = self.conn.frame(Instant::now() + PATIENCE);
        let Frame {
            kind,
            flags,
            stream,
            payload,
        } = frame.expect("the connection goes on");
        let number = payload
            .first_chunk()
            .map_or(0, |four| u32::from_be_bytes(*four));
        match kind {
            kind::SETTINGS if flags & 1 == 0 => {
                self.conn.send(kind::SETTINGS, 1, 0, &[]);
            }
            kind::PING if flags & 1 == 0 => {
                self.conn.send(kind::PING, 1, 0, &payload);
            }
            WINDOW_UPDATE => *self.windows.entry(stream).or_default() += i64::from(number),
            kind::GOAWAY => panic!("the connection ends: {payload:?}"),
            _ => {}
        }
        let Some(outcome) = self.outcomes.get_mut(&stream) else {
            return;
        };
        match kind {
            kind::RST_STREAM => outcome.reset = Some(number),
            kind::DATA => {
                outcome.body.extend(payload);
                // So much may come again.
                let more = 16_384_u32.to_be_bytes();
                for window in [0, stream] {
                    self.conn.send(WINDOW_UPDATE, 0, window, &more);
                }
            }
            _ => {}
        }
        if matches!(kind, kind::HEADERS | kind::DATA) && flags & END_STREAM != 0 {
            outcome.ended = true;
        }
    }
}

#[test]
fn streams_of_http_2_are_refused_one_by_one_and_the_connection_goes_on() {
    let lab = Lab::small();
    let [a, b, _] = &lab.keys;
    let request = lab.request(0);
    let start = request
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    let body = &request[start + 4..];
    let (first, rest) = body.split_at(SENT);
    let path = lab.weir.path();
    let mut peer = Peer::open(&lab.weir);
    for stream in [1, 3] {
        peer.begin(stream, path, a);
        peer.pour(stream, first, 0);
    }
    lab.wait_for_held(6);
    // More bytes in all than the connection's window has: what nobody read of them is given back to it.
    for stream in [5, 7, 9, 11, 13] {
        peer.begin(stream, path, a);
        peer.pour(stream, body, END_STREAM);
        let said = peer.answer(stream);
        assert!(said.contains("-31002"), "{said:.300}");
        assert!(said.contains("limits.bodies_bytes_per_principal_max"));
        assert_eq!(peer.wait_for_reset(stream), NO_ERROR);
    }
    lab.wait_for_held(6);
    peer.begin(15, path, b);
    peer.pour(15, body, END_STREAM);
    assert!(peer.answer(15).contains("Echo: xxx"));
    // One leaves, the other goes on to its end.
    peer.reset(1);
    lab.wait_for_held(3);
    peer.pour(3, rest, END_STREAM);
    assert!(peer.answer(3).contains("Echo: xxx"));
    peer.begin(17, path, a);
    peer.pour(17, body, END_STREAM);
    assert!(peer.answer(17).contains("Echo: xxx"));
    lab.wait_for_held(0);
    let records = wait::until("the records", Duration::from_secs(20), || {
        let records = audit(&lab.weir, &[]);
        let refused = records.iter().filter(|r| r["status"] == 429).count();
        (refused >= 5).then_some(refused)
    });
    assert_eq!(records, 5);
}

/// The head of a POST of such a message, without a body.
fn head_of(client: &Client, message: &serde_json::Value) -> String {
    let bytes = client.request_bytes("POST", &client.headers_for(message), b"");
    String::from_utf8(bytes).expect("text")
}

/// A client of a session asked: it gets the error under its id, wherever the id stands, and goes on. What wants no answer is 202.
#[test]
fn a_session_outlives_a_message_that_is_too_long() {
    let upstream = Upstream::mcp(|_| None);
    let limits = json!({ "message_bytes_max": MIB / 4, "streamed_bytes_max": 0 });
    let config = Config::new(&upstream.url()).set("audit", json!({ "mode": "all" }));
    let weir = Weir::serve(&config.set("limits", limits));
    let client = Client::connect(&weir, Era::Handshake);
    let long = |bytes: usize| format!(r#""x":"{}""#, "x".repeat(bytes));
    let ask = r#""jsonrpc":"2.0","method":"tools/call""#;
    // The body, and the status that is told, or 202.
    let cases = [
        (
            format!(r#"{{{ask},"params":{{{}}},"id":"last"}}"#, long(MIB)),
            413,
        ),
        (
            format!(r#"{{"id":"last",{ask},"params":{{{}}}}}"#, long(20 * MIB)),
            413,
        ),
        (format!(r#"{{{ask},"params":{{{}}}}}"#, long(MIB)), 202),
        (
            format!(r#"{{"jsonrpc":"2.0","result":{{{}}},"id":9}}"#, long(MIB)),
            202,
        ),
    ];
    let head = head_of(&client, &serde_json::Value::Null);
    for (body, told) in &cases {
        for chunked in [false, true] {
            let case = format!("{:.60}, {} B, chunked: {chunked}", body, body.len());
            let mut conn = Conn::open(weir.addr);
            let length = match chunked {
                true => "Transfer-Encoding: chunked".to_owned(),
                false => format!("Content-Length: {}", body.len()),
            };
            conn.send(head.replace("Content-Length: 0", &length));
            if chunked {
                for piece in body.as_bytes().chunks(MIB) {
                    conn.send(
                        [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
                    );
                }
                conn.send("0\r\n\r\n");
            } else {
                conn.send(body);
            }
            let answer = conn.response().unwrap_or_else(|e| panic!("{case}: {e}"));
            if *told == 202 {
                assert_eq!(
                    (answer.status(), answer.body.len()),
                    (202, 0),
                    "{case}: {}",
                    answer.text()
                );
                continue;
            }
            assert_eq!(answer.status(), 200, "{case}: {}", answer.text());
            let said: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
            assert_eq!(said["id"], "last", "{case}: {said}");
            assert_eq!(said["error"]["data"]["status"], *told, "{case}: {said}");
        }
    }
    let mut client = client;
    let answer = client.call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "Echo: hi");
    let records = audit(&weir, &[]);
    let refused = records.iter().filter(|r| r["status"] == 413).count();
    assert_eq!(refused, 2 * cases.len(), "{records:?}");
}

/// What no session is lost by is not read on for an id, and neither is what is no message or is far too long.
#[test]
fn what_is_too_long_without_a_session_is_refused_at_once() {
    let upstream = Upstream::mcp(|_| None);
    let limits = json!({ "message_bytes_max": MIB / 4, "streamed_bytes_max": 0 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let client = Client::connect(&weir, Era::Handshake);
    let session = head_of(&client, &serde_json::Value::Null);
    let mut stateless = Client::new(&weir, Era::Stateless, &[]);
    let call = stateless.message("tools/call", json!({ "name": "echo" }));
    let stateless = head_of(&stateless, &call);
    let cases = [
        ("a stateless client", stateless, MIB),
        ("80 MiB", session.clone(), 80 * MIB),
        (
            "who asks first",
            session.replace("Content-Length", "Expect: 100-continue\r\nContent-Length"),
            MIB,
        ),
    ];
    for (case, head, bytes) in cases {
        let mut conn = Conn::open(weir.addr);
        conn.send(head.replace("Content-Length: 0", &format!("Content-Length: {bytes}")));
        let answer = conn.response().unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_eq!(answer.status(), 413, "{case}: {}", answer.text());
    }
}

/// The same where there is no room for the body of one who asks.
#[test]
fn a_session_outlives_a_want_of_room() {
    let lab = Lab::small();
    let slow = [lab.slow(0), lab.slow(0)];
    lab.wait_for_held(6);
    let key = [("X-API-Key", &*lab.keys[0])];
    let mut client = Client::connect_with(&lab.weir, Era::Handshake, &key);
    let refused = client.call("echo", json!({ "message": "x".repeat(WHOLE) }));
    assert_eq!(refused.status(), 200, "{}", refused.text());
    assert_eq!(refused.told_status(), 429, "{}", refused.text());
    assert_eq!(refused.error()["data"]["retry_after_s"], 1);
    drop(slow);
    lab.wait_for_held(0);
    let answer = client.call("echo", json!({ "message": "x".repeat(WHOLE) }));
    assert!(answer.first_text().starts_with("Echo: xxx"));
}

/// Somebody may wait by an id that nobody read: the status is told, and not that all is well.
#[test]
fn what_cannot_be_read_up_to_its_id_is_told_its_status() {
    let upstream = Upstream::mcp(|_| None);
    let limits = json!({ "message_bytes_max": MIB / 4, "streamed_bytes_max": 0 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let client = Client::connect(&weir, Era::Handshake);
    let headers = client.headers_for(&serde_json::Value::Null);
    let long = "x".repeat(MIB);
    let many: Vec<String> = (0..5000).map(|n| format!(r#""k{n}":"{n:060}""#)).collect();
    let many = many.join(",");
    let begun = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"arguments":"#;
    for (case, arguments) in [
        ("more keys than are remembered", format!("{{{many}}}")),
        ("a key twice", format!(r#"{{"a":1,"a":"{long}"}}"#)),
        ("no JSON", format!(r#"["{long}",]"#)),
    ] {
        for body in [
            format!(r#"{begun}{arguments}}},"id":7}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"params":{arguments},"method":"tools/call"}}"#),
        ] {
            let answer = client.post_bytes(body.as_bytes(), &headers);
            let answer = answer.unwrap_or_else(|e| panic!("{case}: {e}"));
            assert_eq!(answer.status(), 413, "{case}: {}", answer.text());
        }
    }
    // A session that is not there is no reason to read on.
    let mut headers = headers;
    for (name, value) in &mut headers {
        if name == "Mcp-Session-Id" {
            *value = "made-up".to_owned();
        }
    }
    let body = format!(r#"{begun}"{long}"}},"id":7}}"#);
    let answer = client
        .post_bytes(body.as_bytes(), &headers)
        .expect("an answer");
    assert_eq!(answer.status(), 413, "{}", answer.text());
}
