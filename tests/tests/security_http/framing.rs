//! Where one request ends and the next begins, and what is no request at all.

use weir_tests::config::Config;
use weir_tests::http::{Conn, End};
use weir_tests::wait::PATIENCE;
use weir_tests::{Canary, Client, Era, Upstream, Weir, json, kit};

use crate::{body, head, whole};

/// What is no head at all is refused as anything else is: nothing tells which library reads heads.
#[test]
fn no_answer_names_a_library() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    for (bytes, status) in [
        ("NO HEAD\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404),
    ] {
        let mut conn = Conn::open(weir.addr);
        let answer = conn.send(bytes).response().expect("an answer");
        assert_eq!(answer.status(), status, "{bytes:?}");
        assert_eq!(answer.head.header("server"), None, "{bytes:?}");
        let headers = answer.head.headers.iter();
        let closes = headers.filter(|(name, value)| name == "connection" && value == "close");
        let closes = closes.count();
        assert_eq!(closes, usize::from(status == 400), "{:?}", answer.head);
    }
}

/// Requests whose framing two parsers could read differently. Each carries a second call, to `smuggled`.
fn desyncs(path: &str) -> Vec<(String, Vec<u8>)> {
    let inner = whole(path, "smuggled", "x");
    let outer = body("echo", "outer");
    let chunked = format!("{:x}\r\n{outer}\r\n0\r\n\r\n", outer.len());
    let mut list: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, framing: &str, rest: &str| {
        list.push((
            name.to_owned(),
            format!("{}{framing}\r\n{rest}", head(path, "echo")).into_bytes(),
        ));
    };
    let both = |te: &str| {
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: {te}\r\n",
            chunked.len() + inner.len()
        )
    };
    add("CL.TE", &both("chunked"), &format!("{chunked}{inner}"));
    add(
        "TE.CL",
        &format!(
            "Transfer-Encoding: chunked\r\nContent-Length: {}\r\n",
            outer.len()
        ),
        &format!("{chunked}{inner}"),
    );
    for te in [
        "xchunked",
        "chunked, identity",
        "identity, chunked",
        "chunked, chunked",
        "gzip, chunked",
        "chunked;a=b",
        "\tchunked",
        "chunked\t",
        "\"chunked\"",
        "chunk",
        "cow",
        "identity",
        "",
        "chunked,",
        ",chunked",
        "chunked\u{b}",
    ] {
        add(
            &format!("TE {te:?} with CL"),
            &both(te),
            &format!("{chunked}{inner}"),
        );
    }
    for te in ["identity", "gzip", "chunked, gzip", "cow", ""] {
        add(
            &format!("TE {te:?} without CL"),
            &format!("Transfer-Encoding: {te}\r\n"),
            &format!("{chunked}{inner}"),
        );
    }
    add(
        "two TE",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        &format!("{chunked}{inner}"),
    );
    add(
        "TE with a space before the colon",
        "Transfer-Encoding : chunked\r\n",
        &format!("{chunked}{inner}"),
    );
    add(
        "TE folded",
        "Transfer-Encoding:\r\n chunked\r\n",
        &format!("{chunked}{inner}"),
    );
    add(
        "TE with an underscore",
        &format!(
            "Transfer_Encoding: chunked\r\nContent-Length: {}\r\n\r\n",
            0
        ),
        &inner,
    );
    let n = outer.len();
    for (name, cl) in [
        (
            "two different CL",
            format!(
                "Content-Length: {n}\r\nContent-Length: {}\r\n",
                n + inner.len()
            ),
        ),
        (
            "CL list, different",
            format!("Content-Length: {n}, {}\r\n", n + inner.len()),
        ),
        ("CL with a plus", format!("Content-Length: +{n}\r\n")),
        ("CL negative", "Content-Length: -1\r\n".to_owned()),
        ("CL hex", format!("Content-Length: 0x{n:x}\r\n")),
        ("CL empty", "Content-Length:\r\n".to_owned()),
        ("CL with a letter", format!("Content-Length: {n}a\r\n")),
        (
            "CL with an inner space",
            "Content-Length: 1 0\r\n".to_owned(),
        ),
        (
            "CL too large for 64 bits",
            "Content-Length: 18446744073709551617\r\n".to_owned(),
        ),
        (
            "CL with a space before the colon",
            format!("Content-Length : {n}\r\n"),
        ),
        ("CL with a NUL", format!("Content-Length: {n}\0\r\n")),
        (
            "empty header name",
            format!(": x\r\nContent-Length: {n}\r\n"),
        ),
    ] {
        add(name, &cl, &format!("{outer}{inner}"));
    }
    for (name, chunks) in [
        (
            "chunk size with a plus",
            format!("+{n:x}\r\n{outer}\r\n0\r\n\r\n"),
        ),
        (
            "chunk size with 0x",
            format!("0x{n:x}\r\n{outer}\r\n0\r\n\r\n"),
        ),
        ("chunk size negative", format!("-1\r\n{outer}\r\n0\r\n\r\n")),
        (
            "chunk size of 17 digits",
            format!("1{n:016x}\r\n{outer}\r\n0\r\n\r\n"),
        ),
        (
            "chunk size with bare LF",
            format!("{n:x}\n{outer}\r\n0\r\n\r\n"),
        ),
        (
            "chunk without CRLF after its data",
            format!("{n:x}\r\n{outer}0\r\n\r\n"),
        ),
        (
            "chunk longer than its size",
            format!("{:x}\r\n{outer}\r\n0\r\n\r\n", n - 1),
        ),
        ("chunk size empty", format!("\r\n{outer}\r\n0\r\n\r\n")),
    ] {
        add(
            name,
            "Transfer-Encoding: chunked\r\n",
            &format!("{chunks}{inner}"),
        );
    }
    let http10 = head(path, "echo").replace("HTTP/1.1", "HTTP/1.0");
    list.push((
        "HTTP/1.0 with TE".into(),
        format!("{http10}Transfer-Encoding: chunked\r\n\r\n{chunked}{inner}").into_bytes(),
    ));
    list.push((
        "HTTP/1.0 with TE, kept alive".into(),
        format!(
            "{http10}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}{inner}"
        )
        .into_bytes(),
    ));
    list
}

/// Heads that are not HTTP, or only to the lenient.
fn odd_heads(path: &str) -> Vec<(&'static str, Vec<u8>)> {
    let b = body("smuggled", "x");
    let plain = format!(
        "{}Content-Length: {}\r\n\r\n{b}",
        head(path, "smuggled"),
        b.len()
    );
    let with = |line: &str| {
        plain
            .replacen(
                "\r\nContent-Type",
                &format!("\r\n{line}\r\nContent-Type"),
                1,
            )
            .into_bytes()
    };
    vec![
        (
            "bare LF line ends",
            plain.replace("\r\n", "\n").into_bytes(),
        ),
        ("bare CR in a value", with("X-A: a\rb")),
        ("bare LF in a value", with("X-A: a\nX-B: b")),
        ("NUL in a value", with("X-A: a\0b")),
        ("NUL in a name", with("X\0A: b")),
        ("folded header", with("X-A: a\r\n b")),
        ("space before the colon", with("X-A : b")),
        ("header without a colon", with("X-A")),
        ("space in a name", with("X A: b")),
        ("control character in a name", with("X\x01A: b")),
        (
            "space before the first header",
            plain.replacen("\r\nHost", "\r\n Host", 1).into_bytes(),
        ),
        ("two Host headers", with("Host: evil.example")),
        (
            "no Host",
            plain.replacen("Host: 127.0.0.1\r\n", "", 1).into_bytes(),
        ),
        (
            "unknown version",
            plain.replacen("HTTP/1.1", "HTTP/9.9", 1).into_bytes(),
        ),
        (
            "no version",
            plain.replacen(" HTTP/1.1", "", 1).into_bytes(),
        ),
        (
            "two spaces in the request line",
            plain.replacen("POST ", "POST  ", 1).into_bytes(),
        ),
        (
            "NUL in the target",
            plain.replacen(path, &format!("{path}\0"), 1).into_bytes(),
        ),
        (
            "method with a control character",
            plain.replacen("POST", "PO\x01ST", 1).into_bytes(),
        ),
        (
            "TLS to a plain listener",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        ),
        ("not HTTP at all", b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()),
    ]
}

#[test]
fn ambiguous_framing_is_refused_and_nothing_of_it_goes_on() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut faults = Vec::new();
    for (name, bytes) in desyncs(weir.path()) {
        faults.extend(desync(&weir, &upstream, &bytes).map(|f| format!("{name}: {f}")));
    }
    for (name, bytes) in odd_heads(weir.path()) {
        faults.extend(desync(&weir, &upstream, &bytes).map(|f| format!("{name}: {f}")));
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert_eq!(
        Client::connect(&weir, Era::Stateless)
            .call("echo", json!({ "message": "hi" }))
            .first_text(),
        "Echo: hi"
    );
}

fn desync(weir: &Weir, upstream: &Upstream, bytes: &[u8]) -> Option<String> {
    upstream.forget();
    let mut conn = Conn::open(weir.addr);
    conn.send(bytes);
    conn.finish();
    let rest = conn.rest(PATIENCE);
    let text = String::from_utf8_lossy(&rest.bytes).into_owned();
    let answers = text.matches("HTTP/1.1 ").count();
    let seen = upstream
        .requests()
        .iter()
        .any(|r| String::from_utf8_lossy(&r.body).contains("smuggled"));
    match () {
        () if seen => Some(format!("the second call reached the upstream: {text:.300}")),
        () if rest.end == End::StillOpen => Some("the connection stays open".into()),
        () if text.contains("Echo: outer") => Some(format!("it was answered: {text:.300}")),
        () if answers > 1 => Some(format!("{answers} answers: {text:.300}")),
        () if !(text.is_empty()
            || text.starts_with("HTTP/1.1 4")
            || text.starts_with("HTTP/1.1 505")) =>
        {
            Some(format!("not a 4xx: {text:.300}"))
        }
        () => None,
    }
}

/// pingora reads over a line feed inside a chunk extension, and shows chunk heads to nobody, so this one
/// body cannot be refused. What two parsers could make of it must then not matter: the body that goes on
/// is Weir's own, and nothing that follows on the connection is read as a request.
#[test]
fn a_chunk_head_that_cannot_be_refused_ends_its_connection() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let (outer, inner) = (body("echo", "outer"), body("smuggled", "x"));
    let bytes = format!(
        "{}Transfer-Encoding: chunked\r\n\r\n{:x};a\nb\r\n{outer}\r\n0\r\n\r\n{}Content-Length: {}\r\n\r\n{inner}",
        head(weir.path(), "echo"),
        outer.len(),
        head(weir.path(), "smuggled"),
        inner.len()
    );
    let mut conn = Conn::open(weir.addr);
    conn.send(bytes.as_bytes());
    conn.finish();
    let rest = conn.rest(PATIENCE);
    let text = String::from_utf8_lossy(&rest.bytes).into_owned();
    assert_ne!(rest.end, End::StillOpen, "{text:.300}");
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text:.300}");
    let seen = upstream.requests();
    assert_eq!(seen.len(), 1, "{text:.300}");
    let forwarded = String::from_utf8_lossy(&seen[0].body).into_owned();
    assert!(
        forwarded.contains("outer") && !forwarded.contains("smuggled"),
        "{forwarded:.300}"
    );
}

/// The same against servers whose own parsers are known to differ: nothing of the second call is ever answered.
#[test]
fn smuggling_does_not_work_against_real_back_ends() {
    if !kit::ready() {
        return;
    }
    for name in ["py", "ts"] {
        let server = kit::Server::start(name);
        let weir = Weir::serve(&Config::new(&server.url));
        let mut faults = Vec::new();
        for (variant, bytes) in desyncs(weir.path()) {
            let mut conn = Conn::open(weir.addr);
            conn.send(&bytes).finish();
            let rest = conn.rest(PATIENCE);
            let text = String::from_utf8_lossy(&rest.bytes).into_owned();
            if text.matches("HTTP/1.1 ").count() > 1
                || text.contains("smuggled")
                || text.starts_with("HTTP/1.1 2")
            {
                faults.push(format!("{variant}: {text:.200}"));
            }
        }
        assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
    }
}

#[test]
fn pipelined_requests_are_each_judged() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let canary = Canary::github();
    let mut conn = Conn::open(weir.addr);
    let path = weir.path();
    conn.send(
        [
            whole(path, "echo", "one"),
            whole(path, "echo", canary.value()),
            whole(path, "echo", "three"),
        ]
        .concat(),
    );
    let mut texts = Vec::new();
    while texts.len() < 3 {
        // A server may close after any answer; what it must not do is pass one on unjudged.
        match conn.response() {
            Ok(response) => texts.push(response.text()),
            Err(_) => break,
        }
    }
    assert!(texts[0].contains("Echo: one"), "{texts:?}");
    assert!(
        texts.get(1).is_none_or(|t| t.contains("\"isError\":true")),
        "{texts:?}"
    );
    assert_eq!(canary.found_in(&upstream.bytes()), None);
}

#[test]
fn an_early_answer_does_not_make_the_rest_of_the_body_a_request() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let inner = whole(weir.path(), "smuggled", "x");
    for head in [
        // Refused by its head alone; the body is a request.
        format!(
            "POST /no/such HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{inner}",
            inner.len()
        ),
        format!(
            "PUT {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{inner}",
            weir.path(),
            inner.len()
        ),
        format!(
            "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{inner}",
            weir.path(),
            inner.len()
        ),
        format!(
            "POST {} HTTP/1.1\r\nHost: evil.example\r\nContent-Length: {}\r\n\r\n{inner}",
            weir.path(),
            inner.len()
        ),
        format!(
            "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{inner}",
            weir.path(),
            inner.len()
        ),
    ] {
        let mut conn = Conn::open(weir.addr);
        conn.send(&head).finish();
        let rest = conn.rest(PATIENCE);
        let text = String::from_utf8_lossy(&rest.bytes).into_owned();
        assert!(text.starts_with("HTTP/1.1 4"), "{head:.60}: {text:.200}");
        assert_eq!(
            text.matches("HTTP/1.1 ").count(),
            1,
            "{head:.60}: {text:.400}"
        );
    }
    assert!(
        upstream
            .requests()
            .iter()
            .all(|r| !String::from_utf8_lossy(&r.body).contains("smuggled"))
    );
}

#[test]
fn no_tunnel_is_opened() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let b = body("echo", "hi");
    for extra in [
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n",
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Upgrade: foo\r\nConnection: Upgrade\r\n",
    ] {
        upstream.forget();
        let mut conn = Conn::open(weir.addr);
        conn.send(format!(
            "{}{extra}Content-Length: {}\r\n\r\n{b}",
            head(weir.path(), "echo"),
            b.len()
        ));
        let response = conn.response().expect("an answer");
        assert_ne!(response.status(), 101, "{extra}");
        assert!(
            upstream
                .requests()
                .iter()
                .all(|r| r.header("upgrade").is_none()),
            "{extra}"
        );
    }
    let mut conn = Conn::open(weir.addr);
    conn.send("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n");
    let status = conn.response().map_or(400, |r| r.status());
    assert!((400..500).contains(&status), "CONNECT: {status}");
}

#[test]
fn expect_100_continue_is_answered_and_the_body_judged() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let canary = Canary::github();
    let b = body("echo", canary.value());
    let mut conn = Conn::open(weir.addr);
    conn.send(format!(
        "{}Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        head(weir.path(), "echo"),
        b.len()
    ));
    let first = conn.head().expect("an interim or a final answer");
    if first.status == 100 {
        conn.send(&b);
        assert!(
            conn.response()
                .expect("an answer")
                .text()
                .contains("\"isError\":true")
        );
    } else {
        assert!((400..500).contains(&first.status), "{}", first.status);
    }
    assert_eq!(canary.found_in(&upstream.bytes()), None);
}

#[test]
fn the_verdict_does_not_depend_on_how_the_bytes_are_cut() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let canary = Canary::github();
    for (text, blocked) in [(canary.value(), true), ("all is well", false)] {
        let whole = whole(weir.path(), "echo", text);
        let b = body("echo", text);
        let one_byte_chunks: String = b
            .bytes()
            .map(|c| format!("1\r\n{}\r\n", c as char))
            .collect();
        let chunked = format!(
            "{}Transfer-Encoding: chunked\r\n\r\n{one_byte_chunks}0\r\n\r\n",
            head(weir.path(), "echo")
        );
        for bytes in [&whole, &chunked] {
            let mut conn = Conn::open(weir.addr);
            conn.send_slowly(bytes.as_bytes());
            let answer = conn.response().expect("an answer").text();
            assert_eq!(answer.contains("\"isError\":true"), blocked, "{answer}");
            assert_eq!(answer.contains("Echo: all is well"), !blocked, "{answer}");
        }
    }
    assert_eq!(canary.found_in(&upstream.bytes()), None);
    assert!(
        upstream
            .requests()
            .iter()
            .all(|r| canary.found_in(&r.body).is_none())
    );
}
