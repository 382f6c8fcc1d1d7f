//! The same over HTTP/2 with prior knowledge, and the attacks that only HTTP/2 has.

use std::time::{Duration, Instant};

use weir_tests::config::Config;
use weir_tests::h2::{END_HEADERS, END_STREAM, H2, head, kind, text};
use weir_tests::wait::PATIENCE;
use weir_tests::{Canary, Client, Era, Reply, Upstream, Weir, json};

use crate::{body, rss_kib};

fn headers<'a>(path: &'a str, tool: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "127.0.0.1"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ]
}

#[test]
fn calls_are_judged_over_h2_too() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let canary = Canary::github();
    let mut conn = H2::open(weir.addr);
    for (stream, message) in [(1, "hi"), (3, canary.value()), (5, "again")] {
        conn.request(
            stream,
            &headers(weir.path(), "echo"),
            body("echo", message).as_bytes(),
        );
        let (outcome, closed) = conn.outcome(stream, PATIENCE);
        assert!(outcome.ended && !closed, "{outcome:?}");
        let answer = String::from_utf8_lossy(&outcome.body).into_owned();
        assert_eq!(answer.contains("\"isError\":true"), stream == 3, "{answer}");
        assert_eq!(
            answer.contains(&format!("Echo: {message}")),
            stream != 3,
            "{answer}"
        );
    }
    assert_eq!(canary.found_in(&upstream.bytes()), None);
}

/// Over HTTP/2 a body needs no `Content-Length`.
#[test]
fn only_a_post_has_a_body_over_h2_too() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut conn = H2::open(weir.addr);
    for (stream, method) in [(1, "GET"), (3, "DELETE"), (5, "OPTIONS"), (7, "POST")] {
        let mut list = headers(weir.path(), "echo");
        list[0].1 = method;
        conn.request(stream, &list, body("echo", "hi").as_bytes());
        let (outcome, closed) = conn.outcome(stream, PATIENCE);
        let text = String::from_utf8_lossy(&outcome.body);
        let refused = text.contains("Only a POST may have a body");
        assert_eq!(refused, method != "POST", "{method}: {outcome:?}");
        assert!(!closed, "{method}");
    }
    assert_eq!(upstream.calls("tools/call").len(), 1);
}

#[test]
fn heads_that_would_be_something_else_in_http_1_are_refused() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let path = weir.path();
    let b = body("smuggled", "x");
    let length = b.len().to_string();
    let with = |extra: &[(&'static str, &'static str)]| {
        let mut list = headers(path, "smuggled");
        list.extend_from_slice(extra);
        list
    };
    let instead = |name: &str, value: &'static str| {
        let mut list = headers(path, "smuggled");
        for header in list.iter_mut().filter(|h| h.0 == name) {
            header.1 = value;
        }
        list
    };
    let mut faults = Vec::new();
    for (name, list) in [
        ("CRLF in a value", with(&[("x-a", "a\r\nx-b: c")])),
        ("LF in a value", with(&[("x-a", "a\nb")])),
        ("NUL in a value", with(&[("x-a", "a\0b")])),
        ("CRLF in a name", with(&[("x-a\r\nx-b", "c")])),
        ("colon in a name", with(&[("x-a: b", "c")])),
        ("upper case in a name", with(&[("X-A", "c")])),
        ("space in a name", with(&[("x a", "c")])),
        ("empty name", with(&[("", "c")])),
        (
            "transfer-encoding",
            with(&[("transfer-encoding", "chunked")]),
        ),
        ("connection", with(&[("connection", "close")])),
        ("upgrade", with(&[("upgrade", "h2c")])),
        ("content-length too small", with(&[("content-length", "5")])),
        (
            "content-length too large",
            with(&[("content-length", "100000")]),
        ),
        (
            "content-length twice",
            with(&[("content-length", "5"), ("content-length", "6")]),
        ),
        (
            "content-length that is none",
            with(&[("content-length", "x")]),
        ),
        (
            "CRLF in the path",
            instead(":path", "/servers/files/mcp HTTP/1.1\r\nhost: x\r\n\r\n"),
        ),
        (
            "space in the path",
            instead(":path", "/servers/files/mcp x"),
        ),
        ("empty path", instead(":path", "")),
        (
            "path without a slash",
            instead(":path", "servers/files/mcp"),
        ),
        (
            "CRLF in the method",
            instead(":method", "POST / HTTP/1.1\r\nx: y\r\n"),
        ),
        ("rebound authority", instead(":authority", "evil.example")),
        ("path twice", with(&[(":path", "/servers/files/mcp")])),
        ("unknown pseudo-header", with(&[(":note", "x")])),
        ("another host", with(&[("host", "evil.example")])),
        (
            "rebinding origin",
            with(&[("origin", "https://evil.example")]),
        ),
    ] {
        let mut conn = H2::open(weir.addr);
        conn.request(1, &list, b.as_bytes());
        let (outcome, _) = conn.outcome(1, Duration::from_secs(5));
        if String::from_utf8_lossy(&outcome.body).contains("Unknown tool") {
            faults.push(format!("{name}: it was passed on and answered"));
        }
        if !upstream.requests().is_empty() {
            faults.push(format!("{name}: the upstream was reached"));
            upstream.forget();
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // The same head without a trick is taken.
    let mut conn = H2::open(weir.addr);
    let mut good = headers(path, "smuggled");
    good.push(("content-length", &length));
    conn.request(1, &good, b.as_bytes());
    assert!(conn.outcome(1, PATIENCE).0.ended);
    assert_eq!(upstream.calls("tools/call").len(), 1);
}

/// Whatever one connection does, a call on another is answered in time and memory stays where it was.
fn while_attacked(attack: impl Fn(&Weir) -> bool) {
    let upstream =
        Upstream::mcp(|r| (r.json()["params"]["name"] == json!("slow")).then_some(Reply::Hang));
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let before = rss_kib(&weir);
    let cut = attack(&weir);
    let started = Instant::now();
    let answer = Client::connect(&weir, Era::Stateless).call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "Echo: hi");
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "a good call took {:?}",
        started.elapsed()
    );
    let grown = rss_kib(&weir).saturating_sub(before);
    assert!(grown < 96 * 1024, "memory grew by {grown} KiB");
    assert!(cut, "the attacker was not cut");
}

#[test]
fn rapid_resets_are_cut() {
    while_attacked(|weir| {
        let mut conn = H2::open(weir.addr);
        let b = body("slow", "x");
        for i in 0..20_000 {
            let stream = 2 * i + 1;
            let ok = conn.request(stream, &headers(weir.path(), "slow"), b.as_bytes())
                && conn.send(kind::RST_STREAM, 0, stream, &8_u32.to_be_bytes());
            if !ok {
                return true;
            }
        }
        conn.drain(Duration::from_secs(5)).1
    });
}

#[test]
fn endless_continuations_are_cut() {
    while_attacked(|weir| {
        let mut conn = H2::open(weir.addr);
        conn.send(kind::HEADERS, 0, 1, &head(&headers(weir.path(), "echo")));
        let piece = head(&[("x-a", &"a".repeat(8000))]);
        for _ in 0..20_000 {
            if !conn.send(kind::CONTINUATION, 0, 1, &piece) {
                return true;
            }
        }
        conn.drain(Duration::from_secs(5)).1
    });
}

#[test]
fn a_header_table_bomb_is_refused() {
    while_attacked(|weir| {
        let mut conn = H2::open(weir.addr);
        // One large header into the table, then a reference to it thousands of times.
        let mut block = head(&headers(weir.path(), "echo"));
        block.push(0x40);
        text(&mut block, b"x-a");
        text(&mut block, "a".repeat(3900).as_bytes());
        block.extend(std::iter::repeat_n(0x80 | 62, 10_000));
        conn.send(kind::HEADERS, END_HEADERS | END_STREAM, 1, &block);
        let (outcome, closed) = conn.outcome(1, Duration::from_secs(5));
        closed || outcome.reset.is_some() || outcome.ended
    });
}

#[test]
fn floods_of_settings_and_pings_hurt_nobody_else() {
    for (kind, payload) in [(kind::SETTINGS, &[][..]), (kind::PING, &[0; 8])] {
        while_attacked(|weir| {
            let mut conn = H2::open(weir.addr);
            for _ in 0..200_000 {
                if !conn.send(kind, 0, 0, payload) {
                    break;
                }
            }
            // To be cut or to be answered are both right; to eat memory is not.
            true
        });
    }
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let upstream =
        Upstream::mcp(|r| (r.json()["params"]["name"] == json!("slow")).then_some(Reply::Hang));
    let weir =
        Weir::serve(&Config::new(&upstream.url()).set("limits", json!({ "h2_streams_max": 10 })));
    let mut conn = H2::open(weir.addr);
    let b = body("slow", "x");
    for i in 0..50 {
        conn.request(2 * i + 1, &headers(weir.path(), "slow"), b.as_bytes());
    }
    let (kinds, closed) = conn.drain(Duration::from_secs(1));
    assert!(
        closed || kinds.get(&kind::RST_STREAM).copied().unwrap_or(0) >= 40,
        "{kinds:?}"
    );
    assert!(upstream.calls("tools/call").len() <= 10);
}
