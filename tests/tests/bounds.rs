//! Bounds that hold before anybody is asked who he is, between principals, for what wants no answer, and after a reload.

use std::time::{Duration, Instant};

use weir_tests::config::{Config, TENANT};
use weir_tests::h2::H2;
use weir_tests::http::{Conn, End};
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::audit;
use weir_tests::{Answer, Canary, Client, Era, Upstream, Weir, json};

const STDIO_SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");

fn stdio() -> Config {
    Config::of(json!({ "command": STDIO_SERVER })).set("audit", json!({ "mode": "all" }))
}

fn rss_kib(weir: &Weir) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", weir.pid())).expect("it runs");
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.expect("a number")
}

fn hello(client: &mut Client) -> Answer {
    let params = json!({ "protocolVersion": client.revision, "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    let answer = client.request("initialize", params);
    client.session = answer.head.header("mcp-session-id").map(str::to_owned);
    answer
}

#[test]
fn every_record_says_from_where_the_call_came() {
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url()).set("audit", json!({ "mode": "all" }));
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let message = client.message(
        "tools/call",
        json!({ "name": "echo", "arguments": { "message": "hi" } }),
    );
    // Two on one connection of HTTP/1.1, and one over HTTP/2.
    let mut conn = Conn::open(weir.addr);
    let headers = client.headers_for(&message);
    for _ in 0..2 {
        conn.send(client.request_bytes("POST", &headers, message.to_string().as_bytes()));
        assert_eq!(conn.response().expect("an answer").status(), 200);
    }
    let mut conn = H2::open(weir.addr);
    let mut list = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", weir.path()),
        (":authority", "127.0.0.1"),
    ];
    let lower: Vec<(String, String)> = headers
        .iter()
        .map(|(n, v)| (n.to_lowercase(), v.clone()))
        .collect();
    list.extend(
        lower
            .iter()
            .filter(|(n, _)| !matches!(n.as_str(), "host" | "connection" | "content-length"))
            .map(|(n, v)| (n.as_str(), v.as_str())),
    );
    conn.request(1, &list, message.to_string().as_bytes());
    assert!(conn.outcome(1, PATIENCE).0.ended);
    let records = wait::until("three records", PATIENCE, || {
        let records = audit(&weir, &["--method", "tools/call"]);
        (records.len() == 3).then_some(records)
    });
    let mut clients: Vec<&str> = records
        .iter()
        .map(|r| r["client"].as_str().unwrap_or_default())
        .collect();
    assert!(
        clients.iter().all(|c| c.starts_with("127.0.0.1:")),
        "{records:?}"
    );
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients.len(), 2, "one for each connection: {clients:?}");
}

#[test]
fn unfinished_heads_take_no_more_memory_than_one_may_have() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let before = rss_kib(&weir);
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: {}",
        weir.path(),
        "a".repeat(1_000_000)
    );
    let mut conns: Vec<Conn> = (0..100)
        .map(|_| {
            let mut conn = Conn::open(weir.addr);
            // It may be cut before all of it is sent.
            conn.try_send(head.as_bytes());
            conn
        })
        .collect();
    for conn in &mut conns {
        let rest = conn.rest(PATIENCE);
        assert_ne!(rest.end, End::StillOpen, "a head too large is waited for");
        let text = String::from_utf8_lossy(&rest.bytes).into_owned();
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 431"),
            "{text}"
        );
    }
    let grown = rss_kib(&weir).saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} KiB for 100 heads");
}

#[test]
fn a_head_that_drips_is_cut_in_its_time_first_or_not() {
    let upstream = Upstream::mcp(|_| None);
    let limits = json!({ "header_timeout_ms": 1000, "idle_timeout_ms": 60_000 });
    let weir = Weir::serve(&Config::new(&upstream.url()).set("limits", limits));
    let get = "GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let beginnings = [String::new(), get.to_owned(), format!("{get}GET /n")];
    for beginning in beginnings {
        let mut conn = Conn::open(weir.addr);
        if !beginning.is_empty() {
            conn.send(&beginning);
            assert_eq!(conn.response().expect("an answer").status(), 404);
        }
        let started = Instant::now();
        wait::until("the cut", Duration::from_secs(20), || {
            (!conn.try_send(b"X")).then_some(())
        });
        let took = started.elapsed();
        assert!(
            took >= Duration::from_millis(700),
            "{beginning:?}: {took:?}"
        );
    }
}

#[test]
fn a_line_of_the_log_is_no_longer_for_a_long_name() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Handshake);
    let canary = Canary::github();
    let name = "n".repeat(1_000_000);
    // As long as a method may be.
    client.request(
        &format!("resources/{}", &name[..1000]),
        json!({ "uri": canary.value(), "name": name }),
    );
    weir.wait_for_log("exchange");
    let longest = weir.log().lines().map(str::len).max().unwrap_or(0);
    assert!(longest < 16_384, "a line of {longest} bytes");
}

#[test]
fn what_wants_no_answer_has_a_rate_too_and_leaves_calls_theirs() {
    let upstream = Upstream::mcp(|_| None);
    let rate = json!({ "rate": { "per_second": 0.001, "burst": 2 } });
    let config = Config::new(&upstream.url()).set(&format!("tenants.{TENANT}.limits"), rate);
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Handshake);
    let mut statuses = Vec::new();
    for n in 0..100 {
        let word = match n % 2 {
            0 => json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                "params": { "progressToken": 1, "progress": n } }),
            _ => json!({ "jsonrpc": "2.0", "id": n, "result": {} }),
        };
        let answer = client.post(&word);
        // A session would end with another, and nobody waits for an answer.
        assert_eq!((answer.status(), answer.text().as_str()), (202, ""));
        statuses.push(answer.head.header("retry-after").is_some());
    }
    // Four times the burst, and `notifications/initialized` was one of them.
    let limited = statuses.iter().filter(|s| **s).count();
    assert_eq!((statuses.len() - limited, limited), (7, 93), "{statuses:?}");
    let up = upstream.requests();
    let up = up.iter().filter(|r| !r.body.is_empty()).count();
    assert_eq!(up, 9, "what was refused did not go up");
    let listening = client.listen(None);
    assert_eq!(listening.head.status, 429, "GET");
    let waits = |(name, _): &&(String, String)| name == "retry-after";
    assert_eq!(listening.head.headers.iter().filter(waits).count(), 1);
    assert_eq!(client.delete(), 429, "DELETE");
    let answer = client.call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "Echo: hi", "{}", answer.text());
    let limited = client.call("echo", json!({}));
    assert_eq!(limited.status(), 200, "a session would end with another");
    let told = &limited.error()["data"];
    let wait = told["retry_after_s"].to_string();
    assert_eq!((&told["status"], wait.is_empty()), (&json!(429), false));
    assert_eq!(limited.head.header("retry-after"), Some(wait.as_str()));
}

#[test]
fn what_is_no_message_has_the_rate_of_what_wants_no_answer() {
    let upstream = Upstream::mcp(|_| None);
    let rate = json!({ "rate": { "per_second": 0.001, "burst": 2 } });
    let config = Config::new(&upstream.url())
        .set(&format!("tenants.{TENANT}.limits"), rate)
        .set("limits", json!({ "message_bytes_max": 65_536 }));
    let weir = Weir::serve(&config);
    let client = Client::new(&weir, Era::Handshake, &[]);
    let mut other = Client::connect(&weir, Era::Handshake);
    let long = format!(
        r#"{{"jsonrpc": "2.0", "method": "{}"}}"#,
        "a".repeat(70_000)
    );
    let bodies = [
        "{",
        "[1]",
        r#"{"jsonrpc": "1.0"}"#,
        r#"{"jsonrpc": "2.0", "id": 1, "id": 2}"#,
        &long,
    ];
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let status = |n: usize| {
        let body = bodies[n % bodies.len()].as_bytes();
        client
            .post_bytes(body, &headers)
            .expect("an answer")
            .status()
    };
    let statuses: Vec<u16> = (0..20).map(status).collect();
    // Four times the burst; `notifications/initialized` of the other client was one of them.
    assert_eq!(statuses[..7], [400, 400, 400, 400, 413, 400, 400]);
    assert!(statuses[7..].iter().all(|s| *s == 429), "{statuses:?}");
    // Calls have theirs.
    let answer = other.call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "Echo: hi", "{}", answer.text());
}

/// Clients that end without a word leave sessions with a process each; they shut nobody out.
#[test]
fn a_session_that_was_left_gives_its_process_to_the_next() {
    for (limit, expected) in [(3, [200, 404, 200]), (4, [200; 3])] {
        let limits = json!({ "processes_per_principal_max": limit });
        let mut config = stdio().set("limits", limits);
        let key = config.key(TENANT, "a");
        let weir = Weir::serve(&config);
        let connect = || {
            let mut client = Client::new(&weir, Era::Handshake, &[("X-API-Key", &key)]);
            let welcome = hello(&mut client);
            assert_eq!(welcome.status(), 200, "{}", welcome.text());
            client
        };
        let mut left: Vec<Client> = (0..3).map(|_| connect()).collect();
        let listens = left[0].listen(None);
        let mut last = connect();
        let answer = last.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.first_text(), "hi", "{}", answer.text());
        let mut alive = |n: usize| left[n].call("echo", json!({ "message": "hi" })).status();
        assert_eq!([alive(0), alive(1), alive(2)], expected, "{limit}");
        drop(listens);
    }
}

/// All processes that a server may have are one key's, and were left: another key, and one without a session, get places of them. A key that
/// has one of its own, idle, gives up that one first.
#[test]
fn what_one_key_left_shuts_no_other_out() {
    const PROCESSES_MAX: usize = 256;
    let limits = json!({ "processes_per_principal_max": PROCESSES_MAX });
    let mut config = stdio().set("limits", limits);
    let [a, b, c] = ["a", "b", "c"].map(|id| config.key(TENANT, id));
    let weir = Weir::serve(&config);
    let connect = |key: &str, era: Era| Client::new(&weir, era, &[("X-API-Key", key)]);
    let open = |key: &str| {
        let mut client = connect(key, Era::Handshake);
        let welcome = hello(&mut client);
        assert_eq!(welcome.status(), 200, "{}", welcome.text());
        client
    };
    let says_hi = |client: &mut Client| {
        let answer = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.first_text(), "hi", "{}", answer.text());
    };
    let mut left: Vec<Client> = (0..PROCESSES_MAX).map(|_| open(&a)).collect();
    let mut first = open(&b);
    says_hi(&mut first);
    says_hi(&mut open(&b));
    says_hi(&mut connect(&c, Era::Stateless));
    let status = |client: &mut Client| client.call("echo", json!({ "message": "hi" })).status();
    assert_eq!(status(&mut first), 404);
    let last = PROCESSES_MAX - 1;
    assert_eq!(
        [0, 1, 2, last].map(|n| status(&mut left[n])),
        [404, 404, 200, 200]
    );
}

#[test]
fn a_process_that_nobody_heard_of_ends_with_the_clients_patience() {
    let dir = tempfile::TempDir::new().expect("a temporary folder");
    let (started, may_speak) = (dir.path().join("started"), dir.path().join("go"));
    let slow = format!(
        "echo x >> {}; until [ -e {} ]; do sleep 0.02; done; exec {STDIO_SERVER}",
        started.display(),
        may_speak.display()
    );
    let upstream = json!({ "command": "sh", "args": ["-c", slow] });
    let mut config = Config::of(upstream)
        .set("audit", json!({ "mode": "all" }))
        .set("limits.processes_per_principal_max", json!(2));
    let key = config.key(TENANT, "a");
    let weir = Weir::serve(&config);
    let mut client = Client::new(&weir, Era::Handshake, &[("X-API-Key", &key)]);
    let params = json!({ "protocolVersion": client.revision, "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } });
    let message = client.message("initialize", params);
    let bytes = client.request_bytes(
        "POST",
        &client.headers_for(&message),
        message.to_string().as_bytes(),
    );
    let mut impatient: Vec<Conn> = (0..2).map(|_| Conn::open(weir.addr)).collect();
    for conn in &mut impatient {
        conn.send(&bytes);
    }
    wait::until("both processes", PATIENCE, || {
        let lines = std::fs::read_to_string(&started).unwrap_or_default();
        (lines.lines().count() == 2).then_some(())
    });
    assert_eq!(
        hello(&mut client).told_status(),
        429,
        "both places are taken"
    );
    drop(impatient);
    wait::until("both to be seen leaving", PATIENCE, || {
        let records = audit(&weir, &["--method", "initialize"]);
        (records.iter().filter(|r| r["status"] == 499).count() == 2).then_some(())
    });
    std::fs::write(&may_speak, "").expect("a file");
    wait::until("a place for a process", PATIENCE, || {
        (hello(&mut client).status() == 200).then_some(())
    });
}

/// A tool that says how long its argument was, and one that says something again and again.
fn lengths(request: &weir_tests::Request) -> Option<weir_tests::Reply> {
    let params = &request.json()["params"];
    let arguments = &params["arguments"];
    let said = match params["name"].as_str()? {
        "length" => arguments["message"].as_str()?.len().to_string(),
        "repeat" => {
            "joe@corp.io ann@corp.io ".repeat(usize::try_from(arguments["times"].as_u64()?).ok()?)
        }
        _ => return None,
    };
    let result = json!({ "content": [{ "type": "text", "text": said }] });
    Some(weir_tests::Reply::result(request, result))
}

#[test]
fn what_redaction_makes_longer_than_a_message_may_be_goes_on() {
    let upstream = Upstream::mcp(lengths);
    let pipes = json!({ "command": STDIO_SERVER });
    for upstream in [json!({ "url": upstream.url() }), pipes] {
        let redact = |tool: &str, direction: &str| json!({ "tool": tool, "direction": direction, "rule": "email*", "action": "redact" });
        let config = Config::of(upstream.clone())
            .set("audit", json!({ "mode": "all" }))
            .set("limits.message_bytes_max", json!(8192))
            .bind(redact("length", "to_server"))
            .bind(redact("repeat", "to_client"));
        let weir = Weir::serve(&config);
        for era in Era::ALL {
            let mut client = Client::connect(&weir, era);
            let long = "joe@corp.io ann@corp.io ".repeat(300);
            let answer = client.call("length", json!({ "message": long }));
            let up: usize = answer.first_text().parse().unwrap_or_default();
            assert!(up > 8192, "{upstream} {era:?}: {}", answer.text());
            let answer = client.call("repeat", json!({ "times": 300 }));
            let down = answer.first_text();
            assert!(
                down.len() > 8192 && !down.contains('@'),
                "{upstream} {era:?}: {down:.200}"
            );
        }
        let redacted = wait::until("four records", PATIENCE, || {
            let records = audit(&weir, &["--action", "redact"]);
            (records.len() == 4).then_some(records)
        });
        assert!(redacted.iter().all(|r| r["status"] == 200), "{redacted:?}");
    }
}

#[test]
fn what_redaction_makes_too_long_for_a_pipe_is_answered_and_recorded() {
    let redact = json!({ "direction": "to_server", "rule": "email*", "action": "redact" });
    let config = stdio()
        .set("limits.message_bytes_max", json!(1024))
        .bind(redact);
    let weir = Weir::serve(&config);
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    // An unknown revision is replaced before it is judged, so that both may make it longer.
    let name = "a@b.io ".repeat(125);
    let params = json!({ "protocolVersion": "2024-01-01", "capabilities": {},
        "clientInfo": { "name": name, "version": "1" } });
    let answer = client.request("initialize", params);
    assert_eq!(answer.status(), 413, "{}", answer.text());
    assert_eq!(answer.response()["id"], answer.id, "{}", answer.text());
    let record = wait::until("its record", PATIENCE, || {
        let records = audit(&weir, &["--method", "initialize"]);
        records.into_iter().next()
    });
    assert_eq!(record["status"], 413, "{record}");
    assert_eq!(record["upstream"], "not_sent", "{record}");
}

#[test]
fn one_principal_leaves_processes_and_streams_to_the_others() {
    let mut config = stdio().set(
        "limits",
        json!({ "processes_per_principal_max": 2, "streams_per_principal_max": 2 }),
    );
    let (a, b) = (config.key(TENANT, "a"), config.key(TENANT, "b"));
    let weir = Weir::serve(&config);
    let connect = |key: &str| {
        let mut client = Client::new(&weir, Era::Handshake, &[("X-API-Key", key)]);
        (hello(&mut client), client)
    };
    let held = [connect(&a), connect(&a)];
    // Somebody listens to both, so neither was left.
    let [open, other] = held.each_ref().map(|(_, client)| client.listen(None));
    assert_eq!((open.head.status, other.head.status), (200, 200));
    let (refused, _) = connect(&a);
    assert_eq!(refused.told_status(), 429, "{}", refused.text());
    assert!(
        refused.text().contains("processes_per_principal_max"),
        "{}",
        refused.text()
    );
    let (welcome, of_b) = connect(&b);
    assert_eq!(welcome.status(), 200, "{}", welcome.text());
    let [(_, first), (_, second)] = &held;
    assert_eq!(second.listen(None).head.status, 429);
    assert_eq!(of_b.listen(None).head.status, 200);
    drop(open);
    wait::until("a stream again", PATIENCE, || {
        (second.listen(None).head.status == 200).then_some(())
    });
    assert_eq!(first.delete(), 204);
    wait::until("a process again", PATIENCE, || {
        (connect(&a).0.status() == 200).then_some(())
    });
}

#[test]
fn records_of_what_nobody_asked_for_name_whose_stream_it_was() {
    // Only what something was found in has a record of its own.
    let mut config = stdio().category("secret", "log");
    let key = config.key(TENANT, "mine");
    let weir = Weir::serve(&config);
    let mut client = Client::new(&weir, Era::Handshake, &[("X-API-Key", &key)]);
    client.path = weir.path().replace("/mcp", "/sse");
    let mut stream = client.listen(None);
    client.path = stream.event(PATIENCE).expect("the endpoint event").data;
    client.revision = "2024-11-05".into();
    assert_eq!(hello(&mut client).status(), 202);
    let message = Canary::github().value().to_owned();
    client.call("tell", json!({ "message": message }));
    while stream.message(PATIENCE).expect("a message")["params"]["data"] != *message {}
    let records = wait::until("a record of it", PATIENCE, || {
        let records = audit(&weir, &["--method", "notifications/message"]);
        (!records.is_empty()).then_some(records)
    });
    for record in &records {
        assert_eq!(record["principal"], "mine", "{record}");
        for field in ["session", "client", "era"] {
            assert!(record[field].is_string(), "{field}: {record}");
        }
    }
}

#[test]
fn changed_limits_reach_servers_that_stayed_the_same() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call").then(|| {
            let text = "x".repeat(200_000);
            let content = json!({ "content": [{ "type": "text", "text": text }] });
            weir_tests::Reply::result(r, content)
        })
    });
    let http = Config::new(&upstream.url());
    for (config, tool) in [(http, "echo"), (stdio(), "flood")] {
        let with = |bytes: usize| {
            config
                .clone()
                .set("limits", json!({ "message_bytes_max": bytes }))
        };
        let weir = Weir::serve(&with(65_536));
        let long = |weir: &Weir| {
            let mut client = Client::connect(weir, Era::Handshake);
            let answer = client.call(tool, json!({ "message": "hi", "bytes": 200_000 }));
            answer.first_text().len() == 200_000
        };
        assert!(!long(&weir), "{tool}: over the bound");
        weir.rewrite_config(&with(1 << 20).text());
        wait::until("the new limits", PATIENCE, || long(&weir).then_some(()));
        weir.rewrite_config(&with(65_536).text());
        wait::until("the old limits", PATIENCE, || (!long(&weir)).then_some(()));
    }
}

#[test]
fn a_listen_stream_that_never_began_has_its_record() {
    let upstream = Upstream::mcp(|r| match (r.method.as_str(), r.header("last-event-id")) {
        ("GET", None) => Some(weir_tests::Reply::Hang),
        _ => None,
    });
    let config = Config::new(&upstream.url())
        .set("audit", json!({ "mode": "all" }))
        .category("secret", "log");
    let weir = Weir::serve(&config);
    let client = Client::connect(&weir, Era::Handshake);
    let record = |status: u16| {
        wait::until(&format!("a record of {status}"), PATIENCE, || {
            let records = audit(&weir, &[]);
            records.into_iter().find(|r| r["status"] == status)
        })
    };

    // The server has none.
    let canary = Canary::github();
    assert_eq!(client.listen(Some(canary.value())).head.status, 405);
    let refused = record(405);
    let findings = refused["findings"].as_array().cloned().unwrap_or_default();
    assert_eq!(findings.len(), 1, "{refused}");
    assert_eq!(refused["upstream"], "answered", "{refused}");
    assert!(refused["session"].is_string(), "{refused}");

    // The client leaves while the server thinks.
    let bytes = client.request_bytes("GET", &client.headers_for(&json!(null)), b"");
    let mut conn = Conn::open(weir.addr);
    conn.send(bytes);
    upstream.wait_for("the GET", |r| {
        r.method == "GET" && r.header("last-event-id").is_none()
    });
    drop(conn);
    let left = record(499);
    assert_eq!(left["upstream"], "cancelled", "{left}");
    // What was decided is one thing, how it ended another.
    let action = (&left["action"], &left["reason"]);
    let ended = json!("nobody waited for the answer any more");
    assert_eq!(action, (&json!("pass"), &ended), "{left}");
    assert!(left["session"].is_string(), "{left}");

    // The server fails.
    upstream
        .answer(|r| (r.method == "GET").then(|| weir_tests::Reply::status(500, "text/plain", "")));
    assert_eq!(client.listen(None).head.status, 502);
    let failed = record(502);
    assert_eq!(failed["action"], "error", "{failed}");
    assert_eq!(failed["upstream"], "broken", "{failed}");
}

/// What takes long is done where it holds up nobody, and as strictly.
#[test]
fn large_messages_beside_small_ones_are_inspected_as_all_are() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()).category("secret", "redact"));
    let canary = Canary::github();
    let say = |client: &mut Client, text: &str| {
        let answer = client.call("echo", json!({ "message": text }));
        answer.first_text().to_owned()
    };
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (weir, canary) = (&weir, &canary);
            scope.spawn(move || {
                let mut client = Client::connect(weir, Era::Stateless);
                let filler = format!("line {n} of many, ").repeat(12_000);
                for _ in 0..4 {
                    let text = format!("{filler}{} {filler}end", canary.value());
                    let said = say(&mut client, &text);
                    assert_eq!(canary.found_in(said.as_bytes()), None);
                    assert!(said.contains("[REDACTED:github-pat]") && said.ends_with("end"));
                }
            });
        }
        let mut client = Client::connect(&weir, Era::Stateless);
        for n in 0..300 {
            let text = format!("small {n}");
            assert_eq!(say(&mut client, &text), format!("Echo: {text}"));
        }
    });
    // Field 19 of `stat` is the niceness; the name before it may hold blanks.
    let tasks = std::fs::read_dir(format!("/proc/{}/task", weir.pid())).expect("it runs");
    let stands_back = |task: &std::path::Path| {
        let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        name.ends_with("weir-large") && rest.split_whitespace().nth(16) == Some("10")
    };
    assert!(tasks.flatten().any(|task| stands_back(&task.path())));
}
