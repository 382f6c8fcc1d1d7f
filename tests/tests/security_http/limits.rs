//! What is too large, too slow or too many.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_tests::config::Config;
use weir_tests::http::{Conn, End};
use weir_tests::wait::{self, PATIENCE};
use weir_tests::{Client, Era, Reply, Upstream, Value, Weir, json};

use crate::{body, head, rss_kib, whole};

/// Who writes on while it is refused hears why: the connection is not reset over what was not read.
#[test]
fn who_sends_too_much_hears_why() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).set(
        "limits",
        json!({ "message_bytes_max": 65536, "streamed_bytes_max": 0 }),
    ));
    let body = vec![b'a'; 6 << 20];
    for length in [
        format!("Content-Length: {}", body.len()),
        "Transfer-Encoding: chunked".into(),
    ] {
        let mut conn = Conn::open(weir.addr);
        conn.send(format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{length}\r\n\r\n",
            weir.path()
        ));
        let chunked = length.starts_with('T');
        let all_sent = body.chunks(64 << 10).all(|piece| match chunked {
            true => {
                let head = format!("{:x}\r\n", piece.len());
                conn.try_send(&[head.as_bytes(), piece, b"\r\n"].concat())
            }
            false => conn.try_send(piece),
        });
        assert!(all_sent, "{length}: it was cut off");
        if chunked {
            conn.send("0\r\n\r\n");
        }
        let answer = conn.response().expect("an answer");
        assert_eq!(answer.status(), 413, "{length}: {}", answer.text());
    }
}

#[test]
fn what_is_too_large_is_refused_early() {
    let upstream = Upstream::mcp(|_| None);
    let limits =
        json!({ "message_bytes_max": 65536, "header_bytes_max": 16384, "headers_max": 50 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let path = weir.path();
    let start = head(path, "smuggled");
    let b = body("smuggled", "x");
    let many: String = (0..20_000).map(|i| format!("X-{i}: v\r\n")).collect();
    let some: String = (0..60).map(|i| format!("X-{i}: v\r\n")).collect();
    let big = "x".repeat(70_000);
    let cases: Vec<(&str, Vec<u8>, &[u16])> = vec![
        (
            "target of 1 MB",
            format!(
                "POST /{} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                "a".repeat(1 << 20)
            )
            .into(),
            &[400, 414, 431],
        ),
        (
            "header of 1 MB",
            format!("{start}X-A: {}\r\n\r\n", "a".repeat(1 << 20)).into(),
            &[400, 431],
        ),
        (
            "20,000 headers",
            format!("{start}{many}\r\n").into(),
            &[400, 431],
        ),
        (
            "60 headers",
            format!("{start}{some}Content-Length: {}\r\n\r\n{b}", b.len()).into(),
            &[400, 431],
        ),
        (
            "head of 20 kB",
            format!(
                "{start}X-A: {}\r\nX-B: {}\r\nContent-Length: {}\r\n\r\n{b}",
                "a".repeat(9000),
                "b".repeat(9000),
                b.len()
            )
            .into(),
            &[400, 431],
        ),
        (
            "Content-Length of 1 TB",
            format!("{start}Content-Length: 1099511627776\r\n\r\n").into(),
            &[413],
        ),
        (
            "Content-Length over the limit",
            format!("{start}Content-Length: {}\r\n\r\n", 65537).into(),
            &[413],
        ),
        (
            "chunked body over the limit",
            format!(
                "{start}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{big}\r\n0\r\n\r\n",
                big.len()
            )
            .into(),
            &[413],
        ),
        (
            "chunk of 1 TB announced",
            format!("{start}Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n{big}").into(),
            &[400, 413],
        ),
        (
            "chunk extension of 100 kB",
            format!(
                "{start}Transfer-Encoding: chunked\r\n\r\n1;{}\r\na\r\n",
                "e".repeat(100_000)
            )
            .into(),
            &[400, 413],
        ),
        (
            "endless trailer",
            format!(
                "{start}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{b}\r\n0\r\n{many}",
                b.len()
            )
            .into(),
            &[400, 413, 431],
        ),
    ];
    let mut faults = Vec::new();
    for (name, bytes, wanted) in cases {
        let mut conn = Conn::open(weir.addr);
        conn.send(&bytes);
        match conn.response() {
            Ok(response) if wanted.contains(&response.status()) => {}
            Ok(response) => faults.push(format!(
                "{name}: {} {:.200}",
                response.status(),
                response.text()
            )),
            // A reset after a close with unread input can eat the answer; a refusal it is all the same.
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(e) => faults.push(format!("{name}: {e}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        upstream.calls("tools/call").is_empty(),
        "something of it was passed on"
    );
}

#[test]
fn slow_clients_are_cut_and_do_not_hold_up_others() {
    let upstream = Upstream::mcp(|_| None);
    let limits =
        json!({ "header_timeout_ms": 700, "body_timeout_ms": 700, "idle_timeout_ms": 700 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let start = head(weir.path(), "echo");
    let beginnings = [
        "POST /ser".to_owned(),
        start.clone(),
        format!("{start}Content-Length: 1000\r\n\r\n{{"),
        format!("{start}Transfer-Encoding: chunked\r\n\r\n5\r\n{{"),
        String::new(),
    ];
    let mut conns: Vec<(usize, Conn)> = (0..300)
        .map(|i| {
            let mut conn = Conn::open(weir.addr);
            conn.send(&beginnings[i % beginnings.len()]);
            (i % beginnings.len(), conn)
        })
        .collect();
    let started = Instant::now();
    let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "Echo: hi");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "a good call took {:?}",
        started.elapsed()
    );
    for (kind, conn) in &mut conns {
        let rest = conn.rest(PATIENCE);
        assert_ne!(
            rest.end,
            End::StillOpen,
            "a slow client of kind {kind} is still connected"
        );
        let text = String::from_utf8_lossy(&rest.bytes).into_owned();
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 4"),
            "kind {kind}: {text:.100}"
        );
    }
}

#[test]
fn a_body_that_drips_is_cut() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(
        &Config::new(&upstream.url()).set("limits", json!({ "body_timeout_ms": 1000 })),
    );
    let mut conn = Conn::open(weir.addr);
    conn.send(format!(
        "{}Content-Length: 100000\r\n\r\n",
        head(weir.path(), "echo")
    ));
    let started = Instant::now();
    // Each byte is in time, the body as a whole is not.
    wait::until("the cut", Duration::from_secs(10), || {
        (!conn.try_send(b"{")).then_some(())
    });
    assert!(
        started.elapsed() >= Duration::from_millis(900),
        "cut too early: {:?}",
        started.elapsed()
    );
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let note = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                "params": { "level": "info", "data": "x".repeat(100_000) } });
            Reply::wire(move |wire| {
                wire.event_head();
                // Far more than the buffers of both sockets hold: back-pressure must reach us, or the end.
                for _ in 0..2000 {
                    if !wire.event(&note) {
                        return;
                    }
                }
            })
        })
    });
    let weir = Weir::serve(
        &Config::new(&upstream.url()).set("limits", json!({ "write_timeout_ms": 1000 })),
    );
    let before = rss_kib(&weir);
    let mut conn = Conn::open(weir.addr);
    conn.send(whole(weir.path(), "echo", "hi"));
    upstream.wait_for("the call", |r| r.rpc_method() == "tools/call");
    wait::until(
        "the end of the connection at Weir",
        Duration::from_secs(15),
        || (established(weir.addr.port()) == 0).then_some(()),
    );
    let grown = rss_kib(&weir).saturating_sub(before);
    assert!(
        grown < 64 * 1024,
        "memory grew by {grown} KiB for one stream"
    );
}

/// TCP connections on this port as the kernel sees them, from the listener's side.
fn established(port: u16) -> usize {
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let local = format!(":{port:04X}");
    text.lines()
        .filter(|l| {
            let mut fields = l.split_whitespace();
            fields.nth(1).is_some_and(|a| a.ends_with(&local)) && fields.nth(1) == Some("01")
        })
        .count()
}

#[test]
fn more_connections_than_allowed_are_turned_away_and_let_in_again() {
    let upstream = Upstream::mcp(|_| None);
    let weir =
        Weir::serve(&Config::new(&upstream.url()).set("limits", json!({ "connections_max": 20 })));
    let held: Vec<Conn> = (0..60)
        .map(|_| {
            let mut conn = Conn::open(weir.addr);
            conn.send("POST /");
            conn
        })
        .collect();
    drop(held);
    wait::until("a call that works again", PATIENCE, || {
        let mut client = Client::connect(&weir, Era::Stateless);
        let message = client.message(
            "tools/call",
            json!({ "name": "echo", "arguments": { "message": "hi" } }),
        );
        client
            .try_post(&message)
            .is_ok_and(|a| a.first_text() == "Echo: hi")
            .then_some(())
    });
}

#[test]
fn connections_that_ask_nothing_keep_nobody_out() {
    let upstream = Upstream::mcp(|r| {
        (r.method == "GET").then(|| {
            Reply::wire(|wire| {
                wire.event_head();
                wire.hang();
            })
        })
    });
    let weir =
        Weir::serve(&Config::new(&upstream.url()).set("limits", json!({ "connections_max": 20 })));
    let client = Client::connect(&weir, Era::Handshake);
    let call = |text: &str| {
        let mut client = Client::connect(&weir, Era::Stateless);
        let answer = client.call("echo", json!({ "message": text }));
        assert_eq!(answer.first_text(), format!("Echo: {text}"));
    };
    // What is under way stays, whoever comes.
    let mut listens: Vec<_> = (0..4).map(|_| client.listen(None)).collect();
    let h2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let asks = format!("GET {}x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", weir.path());
    for (name, said) in [
        ("silent", ""),
        ("half a head", "POST / HTTP/1.1\r\nX: "),
        ("HTTP/2", h2),
        ("asked once", &asks),
    ] {
        let mut held = Vec::new();
        for _ in 0..60 {
            let mut conn = Conn::open(weir.addr);
            let _ = conn.try_send(said.as_bytes());
            held.push(conn);
        }
        for _ in 0..5 {
            call(name);
        }
    }
    for stream in &mut listens {
        let more = stream.any_event(Duration::from_millis(50));
        assert!(more.is_err_and(|e| matches!(
            e.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        )));
    }
    // Where all are busy, one more is turned away.
    listens.extend((0..16).map(|_| client.listen(None)));
    let mut conn = Conn::open(weir.addr);
    let _ = conn.try_send(asks.as_bytes());
    assert!(conn.response().is_err(), "there is no place");
    drop(listens);
    wait::until("a place", PATIENCE, || {
        let mut conn = Conn::open(weir.addr);
        let _ = conn.try_send(asks.as_bytes());
        conn.response().is_ok().then_some(())
    });
}

/// A client of 2025-03-26, and calls for it to batch.
fn batcher(weir: &Weir) -> (Client, impl Fn(i64, &str) -> Value) {
    let mut client = Client::new(weir, Era::Handshake, &[]);
    client.revision = "2025-03-26".into();
    client.initialize();
    let call = |id: i64, tool: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": { "message": "hi" } } })
    };
    (client, call)
}

#[test]
fn a_batch_gathers_no_more_than_one_message_may_have() {
    let hung_up = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&hung_up);
    let upstream = Upstream::mcp(move |r| {
        let seen = Arc::clone(&seen);
        (r.json()["params"]["name"] == "flood").then(|| {
            Reply::wire(move |wire| {
                wire.event_head();
                let said = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": "info", "data": "x".repeat(1000) } });
                // Some 100 MB, if nobody stops it.
                let sent = (0..100_000).take_while(|_| wire.event(&said)).count();
                seen.store(sent < 100_000, Ordering::Relaxed);
            })
        })
    });
    let limits = json!({ "message_bytes_max": 65536 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let (client, call) = batcher(&weir);
    let batch = json!([call(11, "echo"), call(12, "flood"), call(13, "echo")]);
    let answer = client.post(&batch);
    assert_eq!(answer.status(), 200);
    assert!(answer.body.len() <= 65536 + 1000, "{}", answer.body.len());
    let of = |id: i64| answer.messages.iter().find(|m| m["id"] == id);
    let echoed = of(11).map(|m| m["result"]["content"][0]["text"].clone());
    assert_eq!(echoed, Some(json!("Echo: hi")), "{}", answer.text());
    for id in [12, 13] {
        let words = of(id).map(|m| m["error"]["message"].to_string());
        let words = words.unwrap_or_default();
        assert!(words.contains("limits.message_bytes_max"), "{id}: {words}");
    }
    assert_eq!(answer.messages.len(), 3, "what was cut off went down");
    assert_eq!(upstream.calls("tools/call").len(), 2, "the third went up");
    wait::until("the flood to be stopped", PATIENCE, || {
        hung_up.load(Ordering::Relaxed).then_some(())
    });
}

#[test]
fn a_batch_whose_client_left_is_given_up() {
    let hung_up = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&hung_up);
    let upstream = Upstream::mcp(move |r| {
        let seen = Arc::clone(&seen);
        let begins = r.json()["params"]["name"] == "begins";
        (r.rpc_method() == "tools/call").then(|| {
            Reply::wire(move |wire| {
                if begins {
                    wire.event_head();
                }
                seen.store(wire.peer_closed(PATIENCE), Ordering::Relaxed);
            })
        })
    });
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let (client, call) = batcher(&weir);
    // Before the head of the answer, and after it.
    for tool in ["silent", "begins"] {
        hung_up.store(false, Ordering::Relaxed);
        upstream.forget();
        let batch = json!([call(11, tool), call(12, "echo")]);
        let mut conn = Conn::open(weir.addr);
        conn.send(client.request_bytes(
            "POST",
            &client.headers_for(&batch),
            batch.to_string().as_bytes(),
        ));
        upstream.wait_for("the call", |r| r.rpc_method() == "tools/call");
        drop(conn);
        wait::until("the call to be given up", PATIENCE, || {
            hung_up.load(Ordering::Relaxed).then_some(())
        });
        assert_eq!(upstream.calls("tools/call").len(), 1, "{tool}");
    }
}
