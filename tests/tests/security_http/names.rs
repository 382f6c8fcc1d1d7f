//! Paths, hosts, origins, headers, encodings and keys: what counts as what.

use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::http::Conn;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::Start;
use weir_tests::{Answer, Canary, Client, Era, Reply, Upstream, Value, Weir, json};

use crate::{GZIP, body, head};

#[test]
fn encoded_bodies_are_refused_not_passed() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let b = body("echo", "hi");
    let utf16: Vec<u8> = b.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: Vec<(&str, &str, Vec<u8>)> = vec![
        ("gzip", "Content-Encoding: gzip\r\n", GZIP.to_vec()),
        (
            "gzip announced, plain sent",
            "Content-Encoding: gzip\r\n",
            b.clone().into(),
        ),
        ("gzip sent, not announced", "", GZIP.to_vec()),
        ("deflate", "Content-Encoding: deflate\r\n", b.clone().into()),
        ("br", "Content-Encoding: br\r\n", b.clone().into()),
        ("unknown", "Content-Encoding: cow\r\n", b.clone().into()),
        ("two", "Content-Encoding: identity, gzip\r\n", GZIP.to_vec()),
        ("BOM", "", [b"\xef\xbb\xbf", b.as_bytes()].concat()),
        ("UTF-16", "", utf16.clone()),
        (
            "UTF-16 with BOM",
            "",
            [b"\xff\xfe".as_slice(), &utf16].concat(),
        ),
        (
            "invalid UTF-8",
            "",
            b.replace("hi", "h\u{1}i")
                .into_bytes()
                .iter()
                .map(|c| if *c == 1 { 0xff } else { *c })
                .collect(),
        ),
        ("overlong UTF-8", "", [b.as_bytes(), b"\xc0\xaf"].concat()),
        (
            "raw control character in a string",
            "",
            b.replace("hi", "h\ti").into(),
        ),
        ("NUL byte", "", b.replace("hi", "h\0i").into()),
    ];
    let mut faults = Vec::new();
    for (name, header, bytes) in cases {
        let mut conn = Conn::open(weir.addr);
        conn.send(format!(
            "{}{header}Content-Length: {}\r\n\r\n",
            head(weir.path(), "echo"),
            bytes.len()
        ))
        .send(&bytes);
        match conn.response() {
            Ok(r) if (400..500).contains(&r.status()) => {}
            Ok(r) => faults.push(format!("{name}: {} {:.200}", r.status(), r.text())),
            Err(e) => faults.push(format!("{name}: {e}")),
        }
    }
    for kind in [
        "text/plain",
        "application/json; charset=utf-16",
        "application/json; charset=utf-7",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ] {
        let mut conn = Conn::open(weir.addr);
        let head =
            head(weir.path(), "echo").replace("application/json\r\n", &format!("{kind}\r\n"));
        conn.send(format!("{head}Content-Length: {}\r\n\r\n{b}", b.len()));
        match conn.response() {
            Ok(r) if (400..500).contains(&r.status()) => {}
            other => faults.push(format!("type {kind:?}: {:?}", other.map(|r| r.status()))),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        upstream.requests().is_empty(),
        "something was passed on: {:?}",
        upstream.requests()
    );
}

#[test]
fn only_the_exact_path_is_a_server() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let b = body("echo", "hi");
    let mut faults = Vec::new();
    for path in [
        "/",
        "/mcp",
        "/servers",
        "/servers/",
        "/servers/files",
        "/servers/files/",
        "/servers//mcp",
        "/servers/files/mcp/",
        "/servers/files//mcp",
        "//servers/files/mcp",
        "/servers/./files/mcp",
        "/servers/x/../files/mcp",
        "/./servers/files/mcp",
        "/servers/%66iles/mcp",
        "/servers/files%2fmcp",
        "/servers%2ffiles/mcp",
        "/servers/files/mcp%00",
        "/servers/files/mcp;a=b",
        "/servers/files;a/mcp",
        "/servers/FILES/mcp",
        "/servers/files/MCP",
        "/SERVERS/files/mcp",
        "/servers/files/mcp/x",
        "/servers/files%20/mcp",
        "/servers/other/mcp",
        "/servers/fi%C0%AFles/mcp",
        "\\servers\\files\\mcp",
        "/servers/files\\mcp",
        "/servers/../servers/files/mcp",
        "/servers/files/mcp/..",
        "/servers/files/mcp#x",
        "*",
        "servers/files/mcp",
    ] {
        let mut conn = Conn::open(weir.addr);
        conn.send(format!(
            "{}Content-Length: {}\r\n\r\n{b}",
            head(path, "echo"),
            b.len()
        ));
        match conn.response() {
            Ok(r) if matches!(r.status(), 400 | 404) => {}
            Ok(r) => faults.push(format!("{path}: {}", r.status())),
            Err(e) => faults.push(format!("{path}: {e}")),
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(upstream.requests().is_empty());
}

#[test]
fn host_and_origin_are_checked_on_every_path() {
    let upstream = Upstream::mcp(|_| None);
    let config =
        Config::new(&upstream.url()).set("cors", json!({ "origins": ["https://app.example"] }));
    let weir = Weir::serve(&config);
    let port = weir.addr.port();
    let b = body("echo", "hi");
    let send = |method: &str, host: &str, origin: Option<&str>| {
        let mut conn = Conn::open(weir.addr);
        let mut head = head(weir.path(), "echo")
            .replacen("POST", method, 1)
            .replace("Host: 127.0.0.1", &format!("Host: {host}"));
        if let Some(origin) = origin {
            head.push_str(&format!("Origin: {origin}\r\n"));
        }
        match method {
            "POST" => conn.send(format!("{head}Content-Length: {}\r\n\r\n{b}", b.len())),
            _ => conn.send(format!("{head}\r\n")),
        };
        conn.response().map_or(0, |r| r.status())
    };
    for method in ["POST", "GET", "DELETE"] {
        for host in [
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "127.0.0.1@evil.example",
            "169.254.169.254",
            "[::ffff:1.2.3.4]",
            "",
            "0.0.0.0",
        ] {
            let status = send(method, host, None);
            assert!(
                matches!(status, 400 | 403 | 421),
                "{method} Host {host:?}: {status}"
            );
        }
        for origin in [
            "https://evil.example",
            "null",
            "http://app.example",
            "https://app.example.evil.example",
            "https://app.example:444",
            "https://APP.example.evil",
            "file://",
            "http://localhost.evil.example",
        ] {
            assert_eq!(
                send(method, "localhost", Some(origin)),
                403,
                "{method} Origin {origin}"
            );
        }
    }
    assert!(
        upstream.requests().is_empty(),
        "a refused one was passed on"
    );
    for host in [
        "127.0.0.1",
        "localhost",
        &format!("127.0.0.1:{port}"),
        &format!("localhost:{port}"),
        "LOCALHOST",
    ] {
        assert_eq!(send("POST", host, None), 200, "Host {host}");
    }
    assert_eq!(send("POST", "localhost", Some("https://app.example")), 200);
}

#[test]
fn a_browser_client_of_a_configured_origin_is_served() {
    let upstream = Upstream::mcp(|_| None);
    let config =
        Config::new(&upstream.url()).set("cors", json!({ "origins": ["https://app.example"] }));
    let weir = Weir::serve(&config);
    let preflight = |origin: &str| {
        let mut conn = Conn::open(weir.addr);
        conn.send(format!(
            "OPTIONS {} HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: content-type, mcp-session-id, mcp-protocol-version, x-api-key, Mcp-Param-Region, \
             x-evil\r\n\r\n", weir.path()));
        conn.response().expect("an answer")
    };
    let good = preflight("https://app.example");
    assert!(matches!(good.status(), 200 | 204), "{}", good.status());
    assert_eq!(
        good.head.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let allowed = good
        .head
        .header("access-control-allow-headers")
        .unwrap_or_default()
        .to_ascii_lowercase();
    for header in [
        "content-type",
        "mcp-session-id",
        "mcp-protocol-version",
        "x-api-key",
        "mcp-param-region",
    ] {
        assert!(allowed.contains(header), "{header} is not in {allowed:?}");
    }
    assert!(!allowed.contains("x-evil"), "{allowed:?}");
    let bad = preflight("https://evil.example");
    assert_eq!(bad.head.header("access-control-allow-origin"), None);
    assert!(upstream.requests().is_empty(), "a preflight was passed on");
}

/// Pages of this machine, like Inspector's, may call a loopback listener; whoever names origins means those and no others.
#[test]
fn named_origins_are_the_only_ones() {
    let upstream = Upstream::mcp(|_| None);
    let b = body("echo", "hi");
    for (named, status) in [(json!([]), 200), (json!(["https://app.example"]), 403)] {
        let config = Config::new(&upstream.url()).set("cors", json!({ "origins": named }));
        let weir = Weir::serve(&config);
        let head = head(weir.path(), "echo");
        for origin in [
            "http://localhost:9999",
            "http://127.0.0.1:5000",
            "https://[::1]",
        ] {
            upstream.forget();
            let mut conn = Conn::open(weir.addr);
            let len = b.len();
            conn.send(format!(
                "{head}Origin: {origin}\r\nContent-Length: {len}\r\n\r\n{b}"
            ));
            let answer = conn.response().expect("an answer");
            assert_eq!(answer.status(), status, "{origin} {named}");
            let shown = answer.head.header("access-control-allow-origin");
            assert_eq!(shown, (status == 200).then_some(origin), "{named}");
            assert_eq!(upstream.requests().is_empty(), status != 200);
        }
    }
}

#[test]
fn a_trace_context_is_judged_before_it_goes_anywhere() {
    // Sixteen bytes in hexadecimal, as a trace's id; half of them as a span's.
    let (listed, half) = ("9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c", "e7d6c5b4a3928170");
    let plain = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url())
        .set("audit", json!({ "mode": "all" }))
        .set(
            &format!("tenants.{TENANT}.values"),
            json!({ "vault": { "list": [listed, half] } }),
        );
    let weir = Weir::serve(&config);
    let traced = |(trace, span): (&str, &str)| {
        let parent = format!("00-{trace}-{span}-01");
        let mut client = Client::new(&weir, Era::Stateless, &[("traceparent", &parent)]);
        upstream.forget();
        let answer = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.first_text(), "Echo: hi", "{}", answer.text());
        let call = upstream.calls("tools/call").pop().expect("the call");
        call.header("traceparent").map(str::to_owned)
    };
    let carried = traced(plain).expect("it is carried on");
    assert!(carried.contains(plain.0), "{carried}");
    assert_eq!(traced((listed, plain.1)), None);
    assert_eq!(traced((plain.0, half)), None);
    let records = wait::until("three records", PATIENCE, || {
        let records = weir_tests::weir::audit(&weir, &["--method", "tools/call"]);
        (records.len() == 3).then_some(records)
    });
    let told = format!("{records:?}");
    assert!(told.contains(plain.0) && !told.contains(listed), "{told}");
}

#[test]
fn only_known_headers_go_on() {
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::new(&upstream.url());
    let key = config.key(TENANT, "k");
    config = config.set(
        &format!("tenants.{TENANT}.servers.{SERVER}.upstream.auth"),
        json!({ "bearer": "upstream-credential" }),
    );
    let weir = Weir::serve(&config);
    let mut conn = Conn::open(weir.addr);
    let b = body("echo", "hi");
    conn.send(format!(
        "{}X-API-Key: {key}\r\nAuthorization: Basic dXNlcjpwdw==\r\nCookie: a=b\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\n\
         X-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nX-HTTP-Method-Override: DELETE\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\n\
         X-User: root\r\nX-Remote-User: root\r\nProxy-Authorization: Basic YQ==\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
         Keep-Alive: timeout=5\r\nAccept-Encoding: gzip, br\r\nConnection: close, X-Keep-Me, Mcp-Method\r\nX-Keep-Me: 1\r\nRange: bytes=0-1\r\n\
         If-None-Match: x\r\nMax-Forwards: 1\r\nTrailer: X-T\r\nContent-Length: {}\r\n\r\n{b}", head(weir.path(), "echo"), b.len()));
    let response = conn.response().expect("an answer");
    assert_eq!(response.status(), 200, "{}", response.text());
    let seen = upstream.calls("tools/call").pop().expect("the call");
    let allowed = [
        "host",
        "content-type",
        "accept",
        "content-length",
        "transfer-encoding",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "authorization",
        "user-agent",
        "traceparent",
        "tracestate",
        "connection",
        "accept-encoding",
        "last-event-id",
    ];
    for (name, value) in &seen.headers {
        assert!(allowed.contains(&name.as_str()), "{name}: {value} went on");
        assert!(!value.contains(&key), "the client's key went on in {name}");
    }
    assert_eq!(
        seen.header("authorization"),
        Some("Bearer upstream-credential")
    );
    assert!(
        seen.header("accept-encoding")
            .is_none_or(|v| v == "identity"),
        "{:?}",
        seen.header("accept-encoding")
    );
    assert_eq!(
        seen.header("mcp-method"),
        Some("tools/call"),
        "a Connection header took it away"
    );
    assert_eq!(
        seen.header("host"),
        Some(upstream.addr().to_string().as_str())
    );
    assert!(
        !weir.log().contains(&key) && !weir.log().contains("upstream-credential"),
        "a credential is in the log"
    );
}

#[test]
fn nobody_is_let_in_without_a_key_where_keys_exist() {
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::new(&upstream.url());
    let key = config.key(TENANT, "good");
    config.0["tenants"]["other"] =
        json!({ "servers": { "theirs": { "upstream": { "url": upstream.url() } } } });
    let foreign = config.key("other", "foreign");
    let weir = Weir::serve(&config);
    let call = |headers: &[(&str, &str)]| {
        let mut client = Client::connect_with(&weir, Era::Stateless, headers);
        client.call("echo", json!({ "message": "hi" })).status()
    };
    assert_eq!(call(&[("X-API-Key", &key)]), 200);
    assert_eq!(call(&[("Authorization", &format!("Bearer {key}"))]), 200);
    upstream.forget();
    let mut cut = key.clone();
    cut.pop();
    for (name, headers) in [
        ("no key", vec![]),
        ("empty", vec![("X-API-Key", String::new())]),
        (
            "wrong",
            vec![("X-API-Key", weir_tests::canary::api_key().0)],
        ),
        ("cut", vec![("X-API-Key", cut)]),
        ("with a space", vec![("X-API-Key", format!("{key} x"))]),
        ("basic", vec![("Authorization", format!("Basic {key}"))]),
        (
            "two keys",
            vec![
                ("X-API-Key", weir_tests::canary::api_key().0),
                ("X-API-Key", key.clone()),
            ],
        ),
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(call(&headers), 401, "{name}");
    }
    // Somebody else's server does not exist.
    assert_eq!(call(&[("X-API-Key", &foreign)]), 404);
    assert!(upstream.requests().is_empty());
    // In the query it is no key either.
    let mut client = Client::connect(&weir, Era::Stateless);
    client.path = format!("{}?api_key={key}", client.path);
    assert_eq!(client.call("echo", json!({})).status(), 401);
    assert!(!weir.log().contains(&key), "the key stands in the log");
}

#[test]
fn proxy_and_serve_print_where_they_listen() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Start::proxy(&["--upstream", &upstream.url()]).ready();
    assert!(
        weir.log()
            .contains(&format!("weir: listening on http://{}/mcp", weir.addr)),
        "{}",
        weir.log()
    );
    assert_eq!(
        Client::connect(&weir, Era::Handshake)
            .call("echo", json!({ "message": "hi" }))
            .first_text(),
        "Echo: hi"
    );
}

/// Posts a message with these headers beside its own.
fn post_with(client: &Client, message: &Value, extra: &[(&str, &str)]) -> Answer {
    let mut headers = client.headers_for(message);
    let extra = extra
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    headers.extend(extra);
    let sent = client.post_bytes(message.to_string().as_bytes(), &headers);
    sent.expect("an answer")
}

#[test]
fn a_header_goes_up_only_where_it_repeats_the_body() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let seen = |name: &str| -> Option<String> {
        let request = upstream.requests().pop().expect("a request");
        request.header(name).map(str::to_owned)
    };
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        let list = client.message("tools/list", json!({}));
        let extra = [("Mcp-Name", "made-up"), ("Mcp-Param-Note", "made-up")];
        let status = post_with(&client, &list, &extra).status();
        assert_eq!((status, seen("mcp-name")), (200, None), "{era:?}");
        assert_eq!(seen("mcp-param-note"), None, "{era:?}");
        let params = json!({ "name": "typed", "arguments": { "region": "eu" } });
        let call = client.message("tools/call", params);
        let extra = [("Mcp-Param-Region", "eu"), ("Mcp-Param-Note", "made-up")];
        assert_eq!(post_with(&client, &call, &extra).status(), 200, "{era:?}");
        assert_eq!(seen("mcp-param-note"), None, "{era:?}");
        // The older revisions have no such header, and nobody compares it there.
        let region = (era == Era::Stateless).then_some("eu");
        assert_eq!(seen("mcp-param-region").as_deref(), region, "{era:?}");
        if era == Era::Stateless {
            assert_eq!(seen("mcp-name").as_deref(), Some("typed"));
            assert_eq!(seen("mcp-method").as_deref(), Some("tools/call"));
        }
    }
    let client = Client::connect(&weir, Era::Handshake);
    let response = json!({ "jsonrpc": "2.0", "id": 77, "result": {} });
    let extra = [("Mcp-Method", "tools/call"), ("Mcp-Name", "made-up")];
    assert_eq!(post_with(&client, &response, &extra).status(), 202);
    assert_eq!((seen("mcp-method"), seen("mcp-name")), (None, None));
}

#[test]
fn a_header_of_a_tool_that_was_never_listed_does_not_go_up() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let call = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    // In capitals it is a key; the name of a header arrives without them.
    let name = format!("Mcp-Param-AKIA{}", "Z7QX4MPL2VNR6TDK");
    assert_eq!(post_with(&client, &call, &[(&name, "x")]).status(), 200);
    let request = upstream.requests().pop().expect("a request");
    assert_eq!(request.header(&name.to_ascii_lowercase()), None);
}

#[test]
fn the_name_of_a_header_is_judged_as_its_value_is() {
    let upstream = Upstream::mcp(|_| None);
    for action in ["block", "redact"] {
        let config = Config::new(&upstream.url()).category("pii", action);
        let weir = Weir::serve(&config);
        let card = Canary::card();
        let mut client = Client::connect(&weir, Era::Stateless);
        upstream.forget();
        // The tool was never listed here, so nobody knows what it declares.
        let call = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
        let name = format!("Mcp-Param-{}", card.value());
        let answer = post_with(&client, &call, &[(&name, "x")]);
        assert_eq!(answer.result()["isError"], true, "{}", answer.text());
        assert!(upstream.requests().is_empty(), "{action}: it went up");
    }
}

#[test]
fn what_a_client_comes_back_for_is_judged_before_it_goes_up() {
    let upstream = Upstream::mcp(|r| {
        (r.method == "GET").then(|| {
            Reply::wire(|wire| {
                wire.event_head();
                wire.hang();
            })
        })
    });
    for action in ["block", "redact"] {
        let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", action));
        let client = Client::connect(&weir, Era::Handshake);
        upstream.forget();
        let canary = Canary::github();
        assert_eq!(client.listen(Some(canary.value())).head.status, 400);
        let mut stranger = client.clone();
        stranger.revision = format!("v-{}", canary.value());
        assert_eq!(stranger.listen(None).head.status, 400);
        assert!(upstream.requests().is_empty(), "{action}: it went up");
        assert_eq!(client.listen(Some("stream-7/12")).head.status, 200);
        let seen = upstream.wait_for("the GET", |r| r.method == "GET");
        assert_eq!(seen.header("last-event-id"), Some("stream-7/12"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
        weir.assert_nowhere(&canary, action);
    }
}
