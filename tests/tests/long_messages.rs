//! Messages that are too long to be held pass in steps, redacted, or are seen to be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_tests::config::Config;
use weir_tests::http::Conn;
use weir_tests::upstream::Request;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

const MIB: usize = 1 << 20;
/// What the gateway may grow by over one long message: far less than the message, more than its buffer and windows.
const GROWTH_KIB_MAX: u64 = 24 << 10;
const FILLER: &str =
    "the report says nothing of note, 12 items in a/b.c and über \\\"that\\\" a line\\n";

fn config(upstream: &Upstream) -> Config {
    let limits = json!({ "message_bytes_max": MIB, "streamed_bytes_max": 128 * MIB });
    Config::new(&upstream.url())
        .set("limits", limits)
        .category("secret", "redact")
        .category("pii", "log")
        .category("injection", "warn")
}

/// A peak of the process's memory so far, in KiB.
fn peak_kib(weir: &Weir) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", weir.pid())).expect("it runs");
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let value = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    value.expect("Linux tells it")
}

/// That it grew by little, or what its memory is made of.
fn assert_grew_little(weir: &Weir, grown: u64) {
    if grown >= GROWTH_KIB_MAX {
        let text =
            std::fs::read_to_string(format!("/proc/{}/status", weir.pid())).expect("it runs");
        let is = |line: &&str| ["Vm", "Rss", "Threads"].iter().any(|w| line.starts_with(w));
        let lines: Vec<&str> = text.lines().filter(is).collect();
        panic!("the peak grew by {grown} KiB: {}", lines.join(", "));
    }
}

/// JSON text of so many bytes for the inside of a string, with something planted every `every` bytes.
fn text(bytes: usize, every: usize, planted: &str) -> String {
    let mut out = format!("{planted} ");
    while out.len() < bytes {
        let end = out.len() + every;
        while out.len() < end {
            out.push_str(FILLER);
        }
        out.push_str(planted);
        out.push(' ');
    }
    out.push_str(planted);
    out
}

/// The members of an object or a result: one long string, many small leaves, another long string.
fn long_value(token: &str, password: &str) -> String {
    let small: Vec<String> = (0..60_000)
        .map(|n| match n % 500 {
            7 => format!(r#"{{"db_password":"{password}","row":{n}}}"#),
            9 => format!(r#"{{"note":"it is {token} so","row":{n},"ok":true}}"#),
            _ => format!(r#"{{ "item":"item {n}", "price":{n}.50, "none":null, "tags":[] }}"#),
        })
        .collect();
    format!(
        r#"{{"first":"{}","rows":[{}],"second":"{}"}}"#,
        // Every place in a window is met.
        text(4 * MIB, 7_919, token),
        small.join(","),
        text(56 * MIB, 900_001, token),
    )
}

fn long_result(id: &Value, token: &str, password: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"resultType":"complete","structuredContent":{}}}}}"#,
        long_value(token, password)
    )
}

const PASSWORD: &str = "Iqvldm982*cfBKh";

fn answers(f: impl Fn(&Request) -> String + Send + Sync + 'static) -> Upstream {
    Upstream::mcp(move |r| {
        (r.rpc_method() == "tools/call").then(|| Reply::status(200, "application/json", f(r)))
    })
}

fn counted(weir: &Weir, action: &str) -> bool {
    let (_, metrics) = weir.admin_get("/metrics");
    let label = format!("action=\"{action}\"");
    let mut lines = metrics.lines();
    lines.any(|l| l.starts_with("weir_messages_total") && l.contains(&label) && l.ends_with(" 1"))
}

#[test]
fn a_long_result_is_redacted_everywhere_and_otherwise_the_same() {
    let canary = Canary::github();
    let token = canary.value().to_owned();
    let upstream = answers(move |r| long_result(&r.json()["id"], &token, PASSWORD));
    let weir = Weir::serve(&config(&upstream));
    let mut client = Client::connect(&weir, Era::Stateless);
    client.request("tools/list", json!({}));
    let before = peak_kib(&weir);
    let answer = client.call("echo", json!({}));
    let grown = peak_kib(&weir) - before;
    let expected = long_result(&answer.id, canary.value(), PASSWORD)
        .replace(canary.value(), "[REDACTED:github-pat]")
        .replace(PASSWORD, "[REDACTED:generic-password]");
    assert!(expected.len() > 60 * MIB);
    assert_eq!(answer.status(), 200);
    assert_eq!(canary.found_in(&answer.body), None);
    let differs = answer
        .body
        .iter()
        .zip(expected.as_bytes())
        .position(|(a, b)| a != b);
    let shown = differs.map(|at| {
        let from = at.saturating_sub(80);
        String::from_utf8_lossy(&answer.body[from..(at + 80).min(answer.body.len())]).into_owned()
    });
    assert_eq!((shown, answer.body.len()), (None, expected.len()));
    assert_grew_little(&weir, grown);
    println!(
        "peak memory grew by {grown} KiB for {} bytes",
        answer.body.len()
    );
    assert!(counted(&weir, "redact"));
    weir.assert_nowhere(&canary, "after a long result");
}

#[test]
fn where_policy_can_block_nothing_long_passes() {
    let upstream = answers(|r| {
        let text = text(2 * MIB, 10_000, "");
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#,
            r.json()["id"]
        )
    });
    let blocks = json!({ "category": "secret", "direction": "to_client", "tool": "echo", "action": "block" });
    let cases = [
        (config(&upstream), true),
        (
            config(&upstream)
                .bind(json!({ "category": "secret", "direction": "to_server", "action": "block" })),
            true,
        ),
        (config(&upstream).bind(blocks.clone()), false),
        (
            config(&upstream)
                .bind(blocks)
                .set("tenants.acme.servers.files.policy.dry_run", json!(true)),
            false,
        ),
        (
            config(&upstream).set("limits.streamed_bytes_max", json!(0)),
            false,
        ),
    ];
    for (n, (config, passes)) in cases.into_iter().enumerate() {
        let off = n == 4;
        let weir = Weir::serve(&config);
        let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
        let shown: String = answer.text().chars().take(300).collect();
        assert_eq!(answer.status() == 200, passes, "case {n}: {shown}");
        if !passes {
            let says = shown.contains("message_bytes_max") && shown.contains("policy can block it");
            assert_eq!(says, !off, "case {n}: {shown}");
        }
    }
}

#[test]
fn what_does_not_begin_with_what_it_is_is_refused() {
    let long = text(2 * MIB, 10_000, "");
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&config(&upstream));
    let cases: [(&str, Arc<str>); 3] = [
        (
            "the id comes last",
            format!(r#"{{"jsonrpc":"2.0","result":{{"content":"{long}"}},"id":ID}}"#).into(),
        ),
        (
            "another id",
            format!(r#"{{"jsonrpc":"2.0","id":"other","result":{{"content":"{long}"}}}}"#).into(),
        ),
        (
            "no object",
            format!(r#"[{{"jsonrpc":"2.0","id":ID,"result":{{"content":"{long}"}}}}]"#).into(),
        ),
    ];
    for (name, body) in cases {
        upstream.answer(move |r| {
            let body = body.replace("ID", &r.json()["id"].to_string());
            (r.rpc_method() == "tools/call").then(|| Reply::status(200, "application/json", body))
        });
        let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
        assert_eq!(answer.told_status(), 502, "{name}");
        assert!(answer.error().is_object(), "{name}");
    }
}

/// The bytes of a call, and the connection it went out on.
fn called(weir: &Weir) -> Conn {
    let mut client = Client::connect(weir, Era::Stateless);
    let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut conn = Conn::open(weir.addr);
    let headers = client.headers_for(&message);
    conn.send(client.request_bytes("POST", &headers, message.to_string().as_bytes()));
    conn
}

/// What comes after megabytes that were fine never makes them a whole message.
#[test]
fn a_bad_end_never_looks_whole() {
    let long = text(6 * MIB, 500_000, "");
    let good = r#""}]}}"#;
    let dense = "a@b.io ".repeat(150_000);
    let ends: Vec<(&str, String)> = vec![
        ("a second result", r#""}]},"result":{}}"#.into()),
        (
            "an error beside the result",
            r#""}]},"error":{"code":1,"message":"m"}}"#.into(),
        ),
        ("a second key", r#""}],"content":[]}}"#.into()),
        ("a look-alike", r#""}],"Content":[]}}"#.into()),
        ("a trailing comma", r#""}],}}"#.into()),
        ("data after it", format!("{good} {{}}")),
        (
            "many spaces and data after it",
            format!("{good}{}x", " ".repeat(200_000)),
        ),
        ("not UTF-8", "\u{1}".into()),
        ("half a surrogate pair", format!("\\ud83d{good}")),
        ("cut off in a string", String::new()),
        (
            "cut off before the last bracket",
            good[..good.len() - 1].into(),
        ),
        ("over budget", format!("{dense}{good}")),
    ];
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&config(&upstream));
    for (name, end) in ends {
        for framed in [true, false] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":ID,"result":{{"resultType":"complete","content":[{{"type":"text","text":"{long}{end}"#
            );
            upstream.answer(move |r| {
                let body = body.replace("ID", &r.json()["id"].to_string());
                (r.rpc_method() == "tools/call").then(|| match framed {
                    true => Reply::status(200, "application/json", body),
                    false => Reply::wire(move |wire| {
                        // The end of the connection is the end of the body.
                        wire.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
                        wire.send(body);
                    }),
                })
            });
            let mut conn = called(&weir);
            let head = conn.head().expect("a head");
            assert_eq!(head.status, 200, "{name}");
            assert_eq!(head.header("transfer-encoding"), Some("chunked"), "{name}");
            let rest = conn.rest(PATIENCE);
            assert!(
                rest.bytes.len() > 5 * MIB,
                "{name}: only {}",
                rest.bytes.len()
            );
            let whole = rest.bytes.ends_with(b"\r\n0\r\n\r\n");
            assert!(!whole, "{name}: the body looks whole");
            let tail = &rest.bytes[rest.bytes.len() - 64..];
            let tail = String::from_utf8_lossy(tail).into_owned();
            assert!(
                !tail.trim_end().ends_with("}}"),
                "{name}: the message looks whole: {tail}"
            );
        }
    }
}

#[test]
fn an_upstream_that_breaks_off_is_seen_to() {
    let upstream = Upstream::mcp(|r| {
        let id = r.json()["id"].clone();
        (r.rpc_method() == "tools/call").then(|| {
            Reply::wire(move |wire| {
                wire.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n\
                     {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":\"",
                    64 * MIB
                ));
                wire.send(text(8 * MIB, 100_000, ""));
            })
        })
    });
    let weir = Weir::serve(&config(&upstream));
    let error = called(&weir).response().expect_err("no whole answer");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    wait::until("the fault to be counted", PATIENCE, || {
        counted(&weir, "error").then_some(())
    });
}

#[test]
fn a_message_above_the_second_limit_is_cut() {
    let upstream = answers(|r| {
        let text = text(8 * MIB, 100_000, "");
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":"{text}"}}}}"#,
            r.json()["id"]
        )
    });
    let weir = Weir::serve(&config(&upstream).set("limits.streamed_bytes_max", json!(4 * MIB)));
    let error = called(&weir).response().expect_err("no whole answer");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

/// Who reads slowly is waited for, and so the server is not read from.
#[test]
fn a_slow_reader_holds_the_server_up() {
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let upstream = Upstream::mcp(move |r| {
        let (id, counter) = (r.json()["id"].clone(), Arc::clone(&counter));
        (r.rpc_method() == "tools/call").then(|| {
            Reply::wire(move |wire| {
                wire.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
                wire.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":""#));
                let piece = FILLER.repeat(1000);
                for _ in 0..64 * MIB / piece.len() {
                    if !wire.send(&piece) {
                        return;
                    }
                    counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
                }
                wire.send(r#""}}"#);
            })
        })
    });
    let weir = Weir::serve(&config(&upstream));
    Client::connect(&weir, Era::Stateless).request("tools/list", json!({}));
    let before = peak_kib(&weir);
    let mut conn = called(&weir);
    let (mut last, mut same) = (0, 0);
    wait::until("the server to be held up", PATIENCE, || {
        std::thread::sleep(Duration::from_millis(20));
        let now = sent.load(Ordering::Relaxed);
        same = if now == last && now > 0 { same + 1 } else { 0 };
        last = now;
        (same > 40).then_some(())
    });
    assert!(
        last < 32 * MIB as u64,
        "{last} bytes were taken from the server"
    );
    let answer = conn.response().expect("a whole answer");
    let grown = peak_kib(&weir) - before;
    assert_grew_little(&weir, grown);
    assert!(answer.body.len() > 60 * MIB && answer.body.ends_with(br#""}}"#));
}

/// Whoever leaves in the middle leaves nothing behind.
#[test]
fn a_client_that_leaves_ends_the_answer() {
    let closed = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&closed);
    let upstream = Upstream::mcp(move |r| {
        let (id, counter) = (r.json()["id"].clone(), Arc::clone(&counter));
        (r.rpc_method() == "tools/call").then(|| {
            Reply::wire(move |wire| {
                wire.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
                wire.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":""#));
                let piece = FILLER.repeat(1000);
                while wire.send(&piece) {}
                counter.fetch_add(1, Ordering::Relaxed);
            })
        })
    });
    let weir = Weir::serve(&config(&upstream));
    let mut conn = called(&weir);
    assert_eq!(conn.head().expect("a head").status, 200);
    drop(conn);
    wait::until("the upstream to see it", PATIENCE, || {
        (closed.load(Ordering::Relaxed) == 1).then_some(())
    });
}

/// The head of a call of the stateless era, without framing.
fn call_head(weir: &Weir, version: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {version}\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: echo\r\n",
        weir.path(),
        weir.addr
    )
}

/// Sends a call in chunks; gives how much was taken.
fn send_chunked(conn: &mut Conn, head: &str, body: &[u8], ends: bool) {
    conn.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
    for piece in body.chunks(100_000) {
        conn.send(format!("{:x}\r\n", piece.len()));
        conn.send(piece).send("\r\n");
    }
    if ends {
        conn.send("0\r\n\r\n");
    }
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

fn long_call(token: &str, password: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"echo",{META},"arguments":{}}}}}"#,
        long_value(token, password)
    )
}

fn quiet_upstream() -> Upstream {
    // Bodies are not kept as text, so the method is looked for in the beginning.
    Upstream::start(|r| {
        let begins = String::from_utf8_lossy(&r.body[..r.body.len().min(200)]).into_owned();
        match begins.contains("tools/call") {
            true => Reply::json(&json!({ "jsonrpc": "2.0", "id": 5, "result": {
                "resultType": "complete", "content": [{ "type": "text", "text": "taken" }] } })),
            false => Reply::accepted(),
        }
    })
}

#[test]
fn a_long_call_is_redacted_on_its_way_up() {
    let canary = Canary::github();
    let body = long_call(canary.value(), PASSWORD);
    let expected = body
        .replace(canary.value(), "[REDACTED:github-pat]")
        .replace(PASSWORD, "[REDACTED:generic-password]");
    let upstream = quiet_upstream();
    let weir = Weir::serve(&config(&upstream));
    let before = peak_kib(&weir);
    for chunked in [true, false] {
        upstream.forget();
        let mut conn = Conn::open(weir.addr);
        let head = call_head(&weir, "2026-07-28");
        if chunked {
            send_chunked(&mut conn, &head, body.as_bytes(), true);
        } else {
            conn.send(format!("{head}Content-Length: {}\r\n\r\n", body.len()));
            conn.send(&body);
        }
        let answer = conn.response().expect("an answer");
        assert_eq!(answer.status(), 200, "{:.300}", answer.text());
        assert!(answer.text().contains("taken"), "{:.300}", answer.text());
        let seen = upstream.requests();
        let differs = seen[0]
            .body
            .iter()
            .zip(expected.as_bytes())
            .position(|(a, b)| a != b);
        assert_eq!((differs, seen[0].body.len()), (None, expected.len()));
        assert_eq!(seen[0].header("mcp-name"), Some("echo"));
    }
    let grown = peak_kib(&weir) - before;
    assert_grew_little(&weir, grown);
    println!(
        "peak memory grew by {grown} KiB for a call of {} bytes",
        body.len()
    );
    weir.assert_nowhere(&canary, "after a long call");
}

#[test]
fn a_long_call_that_may_not_go_up_does_not() {
    let long = text(2 * MIB, 100_000, "");
    let call = |params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{{params}}}}}"#)
    };
    let good = call(&format!(
        r#""name":"echo",{META},"arguments":{{"x":"{long}"}}"#
    ));
    let blocks = json!({ "category": "secret", "direction": "to_server", "action": "block" });
    let upstream = quiet_upstream();
    let open = || config(&upstream);
    // What is configured, the body, the status, a word of the answer.
    let cases = [
        (open(), good.clone(), 200, "taken"),
        (
            open().bind(blocks),
            good.clone(),
            413,
            "policy can block it",
        ),
        (
            open().set("limits.streamed_bytes_max", json!(0)),
            good.clone(),
            413,
            "larger than allowed",
        ),
        (
            open().set("limits.streamed_bytes_max", json!(3 * MIB / 2)),
            good.clone(),
            413,
            "larger than allowed",
        ),
        (
            open().set(
                "tenants.acme.servers.files.policy.tools",
                json!({ "deny": ["echo"] }),
            ),
            good.clone(),
            200,
            "may not be called",
        ),
        (
            open(),
            call(&format!(
                r#"{META},"arguments":{{"x":"{long}"}},"name":"echo""#
            )),
            413,
            "must come first",
        ),
        (
            open(),
            good.replace("\"name\":\"echo\"", "\"name\":\"other\""),
            400,
            "header",
        ),
        (
            open(),
            good.replace("tools/call", "prompts/get"),
            413,
            "kind",
        ),
        (
            open(),
            good.replace("\"x\":", "\"x\":[1,],\"y\":"),
            400,
            "comma",
        ),
    ];
    for (n, (config, body, status, says)) in cases.into_iter().enumerate() {
        upstream.forget();
        let weir = Weir::serve(&config);
        let mut conn = Conn::open(weir.addr);
        conn.send(format!(
            "{}Content-Length: {}\r\n\r\n",
            call_head(&weir, "2026-07-28"),
            body.len()
        ));
        conn.send(&body);
        match conn.response() {
            Ok(answer) => {
                let shown = answer.text();
                assert_eq!(answer.status(), status, "case {n}: {shown:.300}");
                let lower = shown.to_lowercase();
                assert!(
                    lower.contains(&says.to_lowercase()),
                    "case {n}: {shown:.300}"
                );
            }
            // A reset after a close with unread input can eat the answer.
            Err(e) => assert!(
                n > 0 && e.kind() == std::io::ErrorKind::ConnectionReset,
                "case {n}: {e}"
            ),
        }
        let calls = upstream.requests().len();
        assert_eq!(
            calls,
            usize::from(n == 0),
            "case {n}: {calls} reached the server"
        );
    }
}

/// After the server has taken megabytes: it never sees the end of a body that turned bad.
#[test]
fn a_long_call_that_turns_bad_never_looks_whole() {
    let long = text(6 * MIB, 500_000, "");
    let begin = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"echo","arguments":{{"x":"{long}"}}"#
    );
    let other_version = META.replace("2026-07-28", "2025-11-25");
    let dense = "a@b.io ".repeat(150_000);
    let cases = [
        (
            "a second key",
            format!(r#"{begin},"name":"other"}}}}"#),
            true,
            400,
        ),
        (
            "another version, late",
            format!("{begin},{other_version}}}}}"),
            true,
            400,
        ),
        ("cut off", begin.clone(), true, 400),
        (
            "over budget",
            format!(r#"{begin},"y":"{dense}"}}}}"#),
            true,
            200,
        ),
        ("the client leaves", begin.clone(), false, 0),
    ];
    let upstream = quiet_upstream();
    let weir = Weir::serve(&config(&upstream));
    for (name, body, ends, status) in cases {
        upstream.forget();
        let mut conn = Conn::open(weir.addr);
        send_chunked(
            &mut conn,
            &call_head(&weir, "2026-07-28"),
            body.as_bytes(),
            ends,
        );
        if ends {
            let answer = conn.response().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(answer.status(), status, "{name}: {:.300}", answer.text());
            assert!(!answer.text().contains("taken"), "{name}");
        }
        drop(conn);
        wait::until("the server to have seen some of it", PATIENCE, || {
            (upstream.bytes().len() > 4 * MIB).then_some(())
        });
        // The harness hands on whole requests only.
        assert!(upstream.requests().is_empty(), "{name}: it looked whole");
    }
    // A later version that agrees is fine.
    upstream.forget();
    let mut conn = Conn::open(weir.addr);
    let body = format!("{begin},{META}}}}}");
    send_chunked(
        &mut conn,
        &call_head(&weir, "2026-07-28"),
        body.as_bytes(),
        true,
    );
    assert_eq!(conn.response().expect("an answer").status(), 200);
    assert_eq!(upstream.requests().len(), 1);
}

/// The same as an event of a stream, after a message that is not long.
#[test]
fn a_long_event_is_redacted_everywhere_and_otherwise_the_same() {
    let canary = Canary::github();
    let token = canary.value().to_owned();
    let upstream = Upstream::mcp(move |r| {
        let token = token.clone();
        let id = r.json()["id"].clone();
        (r.rpc_method() == "tools/call").then(|| {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": format!("early {token}") } });
            Reply::wire(move |wire| {
                wire.event_head();
                wire.event(&note);
                let result = long_result(&id, &token, PASSWORD);
                wire.send(format!("id: e7\nevent: message\ndata: {result}\n\n"));
            })
        })
    });
    let weir = Weir::serve(&config(&upstream));
    let mut client = Client::connect(&weir, Era::Stateless);
    client.request("tools/list", json!({}));
    let before = peak_kib(&weir);
    let answer = client.call("echo", json!({}));
    let grown = peak_kib(&weir) - before;
    assert_eq!(canary.found_in(&answer.body), None);
    let text = answer.text();
    let mut events = text.split("\n\n").filter(|e| !e.is_empty());
    let note = events.next().expect("the first event");
    assert!(note.contains("early [REDACTED:github-pat]"), "{note}");
    let (head, data) = events
        .next()
        .and_then(|event| event.split_once("data: "))
        .expect("the long event");
    assert_eq!(head, "id: e7\nevent: message\n");
    assert_eq!(events.next(), None);
    let expected = long_result(&answer.id, canary.value(), PASSWORD)
        .replace(canary.value(), "[REDACTED:github-pat]")
        .replace(PASSWORD, "[REDACTED:generic-password]");
    let differs = data.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
    assert_eq!((differs, data.len()), (None, expected.len()));
    assert_grew_little(&weir, grown);
    println!(
        "peak memory grew by {grown} KiB for an event of {} bytes",
        data.len()
    );
    weir.assert_nowhere(&canary, "after a long event");
}

/// An event is one only with the empty line after it.
#[test]
fn a_long_event_that_turns_bad_is_none() {
    let long = text(6 * MIB, 500_000, "");
    let ends = [
        ("a second key", r#""}],"content":[]}}"#.to_owned() + "\n\n"),
        (
            "another line that makes it bad",
            "\"}]}}\ndata: {}\n\n".to_owned(),
        ),
        ("cut off", String::new()),
        ("cut off before the empty line", "\"}]}}\n".to_owned()),
        ("half of a character", "\\ud83d\"}]}}\n\n".to_owned()),
    ];
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&config(&upstream));
    for (name, end) in ends {
        let begin = format!(
            r#"data: {{"jsonrpc":"2.0","id":ID,"result":{{"resultType":"complete","content":[{{"type":"text","text":"{long}"#
        );
        upstream.answer(move |r| {
            let body = format!("{begin}{end}").replace("ID", &r.json()["id"].to_string());
            (r.rpc_method() == "tools/call").then(|| {
                Reply::wire(move |wire| {
                    wire.event_head();
                    wire.send(body);
                })
            })
        });
        let mut conn = called(&weir);
        assert_eq!(conn.head().expect("a head").status, 200, "{name}");
        let rest = conn.rest(PATIENCE);
        assert!(
            rest.bytes.len() > 5 * MIB,
            "{name}: only {}",
            rest.bytes.len()
        );
        assert!(
            !rest.bytes.ends_with(b"0\r\n\r\n"),
            "{name}: the stream looks whole"
        );
        let has_end = rest.bytes.windows(2).any(|w| w == b"\n\n");
        assert!(!has_end, "{name}: the event looks whole");
    }
}

#[test]
fn a_long_event_that_may_not_pass_is_refused() {
    let long = text(2 * MIB, 100_000, "");
    let upstream = Upstream::mcp(|_| None);
    let blocks = json!({ "category": "secret", "direction": "to_client", "action": "block" });
    let answer = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"x":"{long}"}}}}"#);
    let note = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{long}"}}}}"#
    );
    let cases = [
        (
            config(&upstream).bind(blocks),
            &answer,
            "policy can block it",
        ),
        (config(&upstream), &note, "messages of its kind"),
        (
            config(&upstream).set("limits.streamed_bytes_max", json!(0)),
            &answer,
            "answer is larger than allowed (limits.message_bytes_max). Audit id: aud_",
        ),
    ];
    for (config, event, says) in cases {
        let event = event.clone();
        upstream.answer(move |r| {
            let event = event.replace("ID", &r.json()["id"].to_string());
            (r.rpc_method() == "tools/call")
                .then(|| Reply::status(200, "text/event-stream", format!("data: {event}\n\n")))
        });
        let weir = Weir::serve(&config);
        let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({}));
        let error = answer.error();
        assert!(
            error["message"].as_str().is_some_and(|m| m.contains(says)),
            "{says}: {error}"
        );
    }
}
