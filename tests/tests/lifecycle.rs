//! Start, stop, crash and reload of the program, with traffic on it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use weir_tests::config::{Config, SERVER, TENANT};
use weir_tests::http::{Conn, End};
use weir_tests::upstream::result_message;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::Start;
use weir_tests::{Canary, Client, Era, Reply, Upstream, Value, Weir, json};

const STDIO_SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");

fn stdio_config() -> Config {
    Config::of(json!({ "command": STDIO_SERVER }))
}

fn exists(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

fn wait_gone(what: &str, pid: &str) {
    assert!(pid.parse::<u32>().is_ok(), "{what}: {pid:?} is no pid");
    wait::until(&format!("the end of {what} {pid}"), PATIENCE, || {
        (!exists(pid)).then_some(())
    });
}

#[test]
fn no_child_is_left_after_kill_9() {
    for ignore_term in [false, true] {
        let mut config = stdio_config();
        if ignore_term {
            config = config.set(
                &format!("tenants.{TENANT}.servers.{SERVER}.upstream.env"),
                json!({ "IGNORE_TERM": "1" }),
            );
        }
        let mut weir = Weir::serve(&config);
        let mut pids = Vec::new();
        for era in Era::ALL {
            let mut client = Client::connect(&weir, era);
            pids.push((
                "the server",
                client.call("pid", json!({})).first_text().to_owned(),
            ));
            pids.push((
                "its child",
                client.call("spawn", json!({})).first_text().to_owned(),
            ));
            // One call is under way when the end comes.
            let message =
                client.message("tools/call", json!({ "name": "silent", "arguments": {} }));
            Conn::open(weir.addr).send(client.request_bytes(
                "POST",
                &client.headers_for(&message),
                message.to_string().as_bytes(),
            ));
        }
        assert!(pids.iter().all(|(_, pid)| exists(pid)), "{pids:?}");
        weir.signal(Signal::SIGKILL);
        weir.wait_exit(PATIENCE);
        for (what, pid) in &pids {
            wait_gone(what, pid);
        }
    }
}

#[test]
fn no_child_is_left_after_sigterm() {
    let mut weir = Weir::serve(&stdio_config());
    let mut client = Client::connect(&weir, Era::Handshake);
    let server = client.call("pid", json!({})).first_text().to_owned();
    let child = client.call("spawn", json!({})).first_text().to_owned();
    weir.signal(Signal::SIGTERM);
    assert!(weir.wait_exit(PATIENCE).success());
    wait_gone("the server", &server);
    wait_gone("its child", &child);
}

#[test]
fn no_child_is_left_after_the_session_is_deleted() {
    let weir = Weir::serve(&stdio_config());
    let mut client = Client::connect(&weir, Era::Handshake);
    let server = client.call("pid", json!({})).first_text().to_owned();
    let status = client.delete();
    assert!((200..300).contains(&status), "DELETE: {status}");
    wait_gone("the server", &server);
    assert_eq!(client.request("tools/list", json!({})).status(), 404);
}

/// How many processes this one started and did not see the end of.
fn children(of: u32) -> usize {
    let stat = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()
    };
    // The name before the last bracket may hold anything.
    let parent = |stat: String| {
        let rest = stat.rsplit_once(')')?.1.to_owned();
        rest.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let all = std::fs::read_dir("/proc").expect("Linux has it");
    all.filter_map(stat)
        .filter_map(parent)
        .filter(|p| *p == of)
        .count()
}

/// Ends a connection without a word of farewell.
fn reset(stream: &std::net::TcpStream) {
    let reset = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
    reset.expect("TCP can");
}

fn get_sse(weir: &Weir) -> std::net::TcpStream {
    let mut stream = std::net::TcpStream::connect(weir.addr).expect("it listens");
    let path = weir.path().replace("/mcp", "/sse");
    let accept = "Accept: text/event-stream";
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\n{accept}\r\n\r\n",
        weir.addr
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).expect("it reads");
    stream
}

#[test]
fn no_child_is_left_after_a_stream_that_was_broken_off_at_once() {
    let weir = Weir::serve(&stdio_config());
    for _ in 0..8 {
        reset(&get_sse(&weir));
    }
    // One that stays, accepted after them.
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    client.path = weir.path().replace("/mcp", "/sse");
    let mut stays = client.listen(None);
    stays.event(PATIENCE).expect("the endpoint");
    wait::until("the others' end", PATIENCE, || {
        let (_, metrics) = weir.admin_get("/metrics");
        let open = metrics.lines().find(|l| l.starts_with("weir_connections "));
        open?.ends_with(" 1").then_some(())
    });
    wait::until("one child, and no more", PATIENCE, || {
        (children(weir.pid()) == 1).then_some(())
    });
}

#[test]
fn a_server_that_is_slow_to_start_is_not_waited_for_without_a_client() {
    let gate = Arc::new(AtomicBool::new(false));
    let was_left = Arc::new(AtomicBool::new(false));
    let (opened, left) = (Arc::clone(&gate), Arc::clone(&was_left));
    let upstream = Upstream::start(move |r| {
        let (gate, left) = (Arc::clone(&opened), Arc::clone(&left));
        if r.method != "GET" {
            return Reply::accepted();
        }
        Reply::wire(move |wire| {
            wire.event_head();
            wait::until("the gate", PATIENCE, || {
                gate.load(Ordering::Relaxed).then_some(())
            });
            wire.send("event: endpoint\ndata: /messages?session=1\n\n");
            left.store(wire.peer_closed(PATIENCE), Ordering::Relaxed);
        })
    });
    let weir = Weir::serve(&Config::of(json!({ "sse": upstream.url() })));
    let stream = get_sse(&weir);
    upstream.wait_for("the stream", |r| r.method == "GET");
    reset(&stream);
    drop(stream);
    gate.store(true, Ordering::Relaxed);
    wait::until("the end of the server's stream", PATIENCE, || {
        was_left.load(Ordering::Relaxed).then_some(())
    });
}

/// A server of the first revision that names this endpoint, and answers whatever is posted on its stream.
fn names_its_endpoint(endpoint: &'static str) -> Upstream {
    let stream = Arc::new(Mutex::new(Vec::new()));
    Upstream::start(move |r| {
        let queue = Arc::clone(&stream);
        if r.method == "GET" {
            return Reply::wire(move |wire| {
                wire.event_head();
                wire.send(format!("event: endpoint\ndata: {endpoint}\n\n"));
                while !wire.peer_closed(Duration::from_millis(20)) {
                    let said = std::mem::take(&mut *queue.lock().expect("no panic inside"));
                    for message in &said {
                        wire.event(message);
                    }
                }
            });
        }
        let message = r.json();
        if !message["id"].is_null() {
            let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {},
                "serverInfo": { "name": "s", "version": "1" } });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": hello });
            queue.lock().expect("no panic inside").push(answer);
        }
        Reply::accepted()
    })
}

#[test]
fn an_endpoint_is_read_from_where_its_stream_is_and_why_it_is_refused_is_said() {
    for (endpoint, expected) in [
        ("messages/?s=1", Ok("/a/messages/?s=1")),
        ("?s=1", Ok("/a/sse?s=1")),
        ("../m?s=1", Ok("/m?s=1")),
        ("/m?s=1", Ok("/m?s=1")),
        ("//127.0.0.2/m", Err("another origin")),
        ("/m of mine", Err("no URI")),
    ] {
        let upstream = names_its_endpoint(endpoint);
        let url = format!("http://{}/a/sse", upstream.addr());
        let weir = Weir::serve(&Config::of(json!({ "sse": url })));
        let mut client = Client::new(&weir, Era::Handshake, &[]);
        let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": {},
            "clientInfo": { "name": "c", "version": "1" } });
        let answer = client.request("initialize", hello);
        match expected {
            Ok(path) => {
                assert_eq!(answer.status(), 200, "{endpoint}: {}", answer.text());
                let posted = upstream.wait_for("a message", |r| r.method == "POST");
                assert_eq!(posted.path, path, "{endpoint}");
            }
            Err(why) => {
                assert_eq!(answer.told_status(), 502, "{endpoint}: {}", answer.text());
                weir.wait_for_log(why);
            }
        }
    }
}

#[test]
fn sessions_have_a_child_each_and_a_dead_one_hurts_nobody_else() {
    let weir = Weir::serve(&stdio_config());
    let mut one = Client::connect(&weir, Era::Handshake);
    let mut two = Client::connect(&weir, Era::Handshake);
    let first = one.call("pid", json!({})).first_text().to_owned();
    let second = two.call("pid", json!({})).first_text().to_owned();
    assert_ne!(first, second);
    let died = one.call("exit", json!({}));
    assert!(
        !died.text().is_empty(),
        "a call whose server dies is answered"
    );
    assert!(
        matches!(died.told_status(), 200 | 404 | 502),
        "{} {}",
        died.status(),
        died.text()
    );
    assert_eq!(two.call("pid", json!({})).first_text(), second);
    let mut three = Client::connect(&weir, Era::Handshake);
    assert_eq!(
        three.call("echo", json!({ "message": "hi" })).first_text(),
        "hi"
    );
}

#[test]
fn a_stdio_server_that_dies_is_started_again() {
    let weir = Weir::serve(&stdio_config());
    let mut client = Client::connect(&weir, Era::Stateless);
    client.call("exit", json!({}));
    wait::until("a call that works again", PATIENCE, || {
        (client
            .call("echo", json!({ "message": "back" }))
            .first_text()
            == "back")
            .then_some(())
    });
}

#[test]
fn a_stdio_server_that_writes_garbage_or_too_much_is_survived() {
    let config = stdio_config().set("limits", json!({ "message_bytes_max": 65536 }));
    let weir = Weir::serve(&config);
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        assert_eq!(
            client.call("garbage", json!({})).first_text(),
            "after garbage"
        );
        let flood = client.call("flood", json!({ "bytes": 200_000 }));
        assert!(
            !flood.text().contains("xxxx"),
            "more than the limit came through"
        );
        assert!(
            flood.told_status() < 500 || matches!(flood.told_status(), 502 | 504),
            "{}",
            flood.status()
        );
        assert_eq!(
            client.call("echo", json!({ "message": "hi" })).first_text(),
            "hi"
        );
    }
}

#[test]
fn an_answer_that_is_too_long_for_a_pipe_fails_its_own_call_alone() {
    let config = stdio_config().set("limits", json!({ "message_bytes_max": 65536 }));
    let weir = Weir::serve(&config);
    for era in Era::ALL {
        let mut client = Client::connect(&weir, era);
        let asked = json!({ "name": "progress", "arguments": { "times": 3, "every_ms": 300 },
            "_meta": { "progressToken": "p" } });
        let slow = client.message("tools/call", asked);
        let mut waiting = Conn::open(weir.addr);
        waiting.send(client.request_bytes(
            "POST",
            &client.headers_for(&slow),
            slow.to_string().as_bytes(),
        ));
        // The server works on one call after the other, so the long line comes behind this answer; both wait.
        let flood = client.call("flood", json!({ "bytes": 200_000 }));
        assert_eq!(flood.told_status(), 502, "{}", flood.text());
        assert!(
            flood.text().contains("larger than") && !flood.text().contains("xxxx"),
            "{}",
            flood.text()
        );
        let reply = waiting.response().expect("an answer");
        assert!(reply.text().contains("done"), "{}", reply.text());
    }
    weir.wait_for_log("its call is failed");
}

#[test]
fn a_command_that_cannot_be_run_is_said_so() {
    let weir = Weir::serve(&Config::of(json!({ "command": "/no/such/program" })));
    let mut client = Client::new(&weir, Era::Handshake, &[]);
    let answer = client.request(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } }),
    );
    assert_eq!(answer.told_status(), 502, "{}", answer.text());
    assert!(
        !answer.text().contains("/no/such/program"),
        "the client learns the path: {}",
        answer.text()
    );
    weir.wait_for_log("/no/such/program");
}

#[test]
fn after_kill_9_it_is_ready_within_two_seconds_and_no_acknowledged_record_is_lost() {
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url()).set("audit", json!({ "mode": "all" }));
    let mut weir = Weir::serve(&config);
    let mut acknowledged = 0;
    for _ in 0..3 {
        let mut client = Client::connect(&weir, Era::Stateless);
        for i in 0..20 {
            let bad = i % 2 == 0;
            let text = if bad {
                Canary::github().value().to_owned()
            } else {
                "hi".to_owned()
            };
            let answer = client.call("echo", json!({ "message": text }));
            assert_eq!(
                answer.result()["isError"] == json!(true),
                bad,
                "{}",
                answer.text()
            );
            acknowledged += 1;
        }
        let started = Instant::now();
        weir = weir.kill_and_restart(|dir| Start::serve_in(dir, &config));
        let took = started.elapsed();
        assert!(took < Duration::from_secs(2), "ready again after {took:?}");
    }
    let data = weir.dir().join("data").display().to_string();
    let output = weir_tests::weir::run(
        &[
            "audit",
            "search",
            "--data-dir",
            &data,
            "--method",
            "tools/call",
            "--json",
            "--limit",
            "1000",
        ],
        "",
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found = stdout.lines().filter(|l| l.contains("tools/call")).count();
    assert!(
        found >= acknowledged,
        "{found} records of {acknowledged} acknowledged calls:\n{stdout}"
    );
}

#[test]
fn a_good_file_is_taken_and_a_bad_one_refused_while_it_runs() {
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url());
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let blocked = |client: &mut Client| {
        let answer = client.call("echo", json!({ "message": Canary::github().value() }));
        answer.result()["isError"] == json!(true)
    };
    assert!(
        blocked(&mut client),
        "the default policy blocks a secret on its way to the server"
    );

    weir.rewrite_config(&config.clone().category("secret", "log").text());
    wait::until("the new policy", PATIENCE, || {
        (!blocked(&mut client)).then_some(())
    });

    weir.rewrite_config(&config.clone().category("secret", "blok").text());
    weir.wait_for_log("blok");
    assert!(
        !blocked(&mut client),
        "a file that is refused changes nothing"
    );
    let log = weir.log();
    let line = log
        .lines()
        .find(|l| l.contains("blok"))
        .unwrap_or_default()
        .to_owned();
    assert!(
        line.contains("bindings") && line.contains("action"),
        "the error names the field: {line}"
    );

    // Whoever asks again is told again.
    let word = "weir: the new configuration is refused";
    let told = || weir.log().matches(word).count();
    weir.wait_for_log(word);
    let before = told();
    weir.signal(Signal::SIGHUP);
    wait::until("another word", PATIENCE, || (told() > before).then_some(()));

    weir.rewrite_config(&config.clone().category("secret", "block").text());
    wait::until("the third policy", PATIENCE, || {
        blocked(&mut client).then_some(())
    });

    weir.rewrite_config(&config.clone().category("secret", "warn").text());
    weir.signal(Signal::SIGHUP);
    wait::until("the fourth policy", PATIENCE, || {
        (!blocked(&mut client)).then_some(())
    });
}

#[test]
fn a_refused_file_is_tried_again_and_taken_once_what_it_lacks_has_come() {
    const RULE: &str = "rules:
- id: house-ticket
  title: House ticket
  category: secret
  keywords: [htk-]
  pattern: 'htk-[0-9]{12}'
  examples: ['htk-483920175563']
";
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url());
    let weir = Weir::serve(&config);
    let lacking = config.set("rules", json!(["late.yml"]));
    weir.rewrite_config(&lacking.text());
    weir.wait_for_log("late.yml");
    // A file that was never read is not watched: the configuration itself does not change any more.
    let beside = weir.dir().join("late.new");
    std::fs::write(&beside, RULE).expect("the temporary folder is writable");
    std::fs::rename(beside, weir.dir().join("late.yml")).expect("the same folder");
    weir.wait_for_log("configuration reloaded");
    let (_, metrics) = weir.admin_get("/metrics");
    assert!(
        metrics.contains("weir_reloads_refused_total 1\n"),
        "{metrics}"
    );
}

#[test]
fn a_reload_keeps_sessions_and_streams() {
    let upstream = Upstream::mcp(|r| {
        (r.method == "GET").then(|| {
            Reply::wire(|wire| {
                wire.event_head();
                wire.send(": open\n\n");
                wire.hang();
            })
        })
    });
    let config = Config::new(&upstream.url());
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Handshake);
    let mut stream = client.listen(None);
    assert_eq!(stream.head.status, 200);
    weir.rewrite_config(&config.clone().category("secret", "log").text());
    wait::until("the new policy", PATIENCE, || {
        let answer = client.call("echo", json!({ "message": Canary::github().value() }));
        assert_eq!(answer.status(), 200, "the session went: {}", answer.text());
        (answer.result()["isError"] != json!(true)).then_some(())
    });
    let silent = stream
        .message(Duration::from_millis(100))
        .expect_err("nothing was sent");
    assert_eq!(
        silent.kind(),
        std::io::ErrorKind::TimedOut,
        "the stream was cut"
    );
}

#[test]
fn sigterm_lets_running_calls_end_and_takes_no_new_ones() {
    let gate = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&gate);
    let upstream = Upstream::mcp(move |r| {
        let gate = Arc::clone(&opened);
        (r.rpc_method() == "tools/call").then(|| {
            let last = result_message(
                r,
                json!({ "content": [{ "type": "text", "text": "done" }] }),
            );
            Reply::wire(move |wire| {
                wait::until("the gate", PATIENCE, || {
                    gate.load(Ordering::Relaxed).then_some(())
                });
                wire.event_head();
                wire.event(&last);
            })
        })
    });
    let mut weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut conn = Conn::open(weir.addr);
    conn.send(client.request_bytes(
        "POST",
        &client.headers_for(&message),
        message.to_string().as_bytes(),
    ));
    upstream.wait_for("the call", |r| r.rpc_method() == "tools/call");
    weir.signal(Signal::SIGTERM);
    wait::until("the listener to close", PATIENCE, || {
        std::net::TcpStream::connect(weir.addr).err()
    });
    gate.store(true, Ordering::Relaxed);
    let answer = weir_tests::mcp::read_answer(&mut conn).expect("the running call is answered");
    assert_eq!(answer.first_text(), "done", "{}", answer.text());
    assert!(weir.wait_exit(PATIENCE).success());
}

#[test]
fn sigterm_does_not_wait_for_ever() {
    let upstream = Upstream::mcp(|r| {
        (r.rpc_method() == "tools/call" || r.method == "GET").then_some(Reply::Hang)
    });
    let config = Config::new(&upstream.url()).set("limits", json!({ "drain_timeout_ms": 300 }));
    let mut weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Handshake);
    let message = client.message("tools/call", json!({ "name": "echo", "arguments": {} }));
    let mut conn = Conn::open(weir.addr);
    conn.send(client.request_bytes(
        "POST",
        &client.headers_for(&message),
        message.to_string().as_bytes(),
    ));
    upstream.wait_for("the call", |r| r.rpc_method() == "tools/call");
    let started = Instant::now();
    weir.signal(Signal::SIGTERM);
    weir.wait_exit(PATIENCE);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        started.elapsed()
    );
    let rest = conn.rest(PATIENCE);
    assert_ne!(rest.end, End::StillOpen);
}

#[test]
fn calls_that_outlast_the_drain_are_recorded() {
    let upstream = Upstream::mcp(|r| (r.rpc_method() == "tools/call").then_some(Reply::Hang));
    let http = Config::new(&upstream.url());
    for config in [http, stdio_config()] {
        let config = config
            .set("audit", json!({ "mode": "all" }))
            .set("limits.drain_timeout_ms", json!(300));
        let mut weir = Weir::serve(&config);
        let mut conns = Vec::new();
        let send = |client: &Client, message: &Value| {
            let mut conn = Conn::open(weir.addr);
            let body = message.to_string();
            conn.send(client.request_bytes("POST", &client.headers_for(message), body.as_bytes()));
            conn
        };
        for era in Era::ALL {
            let mut client = Client::connect(&weir, era);
            let params = json!({ "name": "silent", "arguments": {} });
            let message = client.message("tools/call", params);
            conns.push(send(&client, &message));
        }
        // One whose answer would come on a stream of its own.
        let mut first = Client::new(&weir, Era::Handshake, &[]);
        first.path = weir.path().replace("/mcp", "/sse");
        let mut stream = first.listen(None);
        first.path = stream.event(PATIENCE).expect("the endpoint").data;
        first.revision = "2024-11-05".into();
        let params = json!({ "name": "silent", "arguments": {} });
        let message = first.message("tools/call", params);
        assert_eq!(first.post(&message).status(), 202);
        wait::until("all calls to be under way", PATIENCE, || {
            let at_http = upstream.calls("tools/call").len();
            (at_http == 3 || children(weir.pid()) == 3).then_some(())
        });
        weir.signal(Signal::SIGTERM);
        assert!(weir.wait_exit(PATIENCE).success());
        let records = weir_tests::weir::audit(&weir, &["--tool", "silent"]);
        let ends: Vec<_> = records
            .iter()
            .map(|r| (&r["status"], &r["upstream"]))
            .collect();
        assert_eq!(
            ends,
            vec![(&json!(499), &json!("cancelled")); 3],
            "{records:?}"
        );
    }
}

#[test]
fn a_broken_audit_log_stops_calls_before_they_go_up_and_recovers() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let mut client = Client::connect(&weir, Era::Stateless);
    let call = |client: &mut Client| client.call("echo", json!({ "message": "hi" }));
    assert_eq!(call(&mut client).status(), 200);
    let ready = || weir.admin_get("/readyz").0;
    let folder = weir.dir().join("data/audit");
    // Records would go on into files that nobody looks for.
    std::fs::rename(&folder, weir.dir().join("moved")).expect("the same folder");
    std::fs::write(&folder, "in its place").expect("the temporary folder is writable");
    wait::until("Weir to notice", PATIENCE, || {
        (ready() == 503).then_some(())
    });
    let before = upstream.calls("tools/call").len();
    let answer = call(&mut client);
    assert_eq!(answer.told_status(), 503);
    assert!(answer.text().contains("audit log"), "{}", answer.text());
    assert_eq!(upstream.calls("tools/call").len(), before);
    std::fs::remove_file(&folder).expect("it is there");
    wait::until("the log to be written again", PATIENCE, || {
        (ready() == 200).then_some(())
    });
    let blocked = client.call("echo", json!({ "message": Canary::github().value() }));
    assert_eq!(blocked.result()["isError"], json!(true));
    let records = weir_tests::weir::audit(&weir, &["--action", "block"]);
    assert_eq!(records.len(), 1, "{records:?}");
    assert!(records[0]["lost_before"].as_u64() > Some(0), "{records:?}");
}

#[test]
fn a_file_is_read_once_nobody_writes_into_it() {
    use std::io::Write as _;
    let upstream = Upstream::mcp(|_| None);
    let config = Config::new(&upstream.url());
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Stateless);
    let mut blocked = || {
        let answer = client.call("echo", json!({ "message": Canary::github().value() }));
        answer.result()["isError"] == json!(true)
    };
    let path = weir.dir().join("weir.yaml");
    let refused = |n: u32| {
        let (_, metrics) = weir.admin_get("/metrics");
        metrics.contains(&format!("weir_reloads_refused_total {n}\n"))
    };
    // Begun by a writer that does not go on.
    std::fs::write(&path, "").expect("the temporary folder is writable");
    weir.wait_for_log("there is nothing in it");
    assert!(blocked() && refused(1));
    // Nobody writes into a pipe.
    std::fs::remove_file(&path).expect("it is there");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    weir.wait_for_log("is a pipe or a device");
    assert!(blocked() && refused(2));
    std::fs::remove_file(&path).expect("it is there");
    let mut file = std::fs::File::create(&path).expect("the temporary folder is writable");
    for piece in config
        .category("secret", "log")
        .text()
        .as_bytes()
        .chunks(64)
    {
        file.write_all(piece).expect("room");
        std::thread::sleep(Duration::from_millis(40));
    }
    wait::until("the new policy", PATIENCE, || (!blocked()).then_some(()));
    assert!(refused(2), "no half of it was read");
}

#[test]
fn the_admin_listener_tells_how_it_stands() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    assert_eq!(weir.admin_get("/healthz").0, 200);
    assert_eq!(weir.admin_get("/readyz").0, 200);
    let mut client = Client::connect(&weir, Era::Stateless);
    client.call("echo", json!({ "message": Canary::github().value() }));
    client.call("echo", json!({ "message": "hi" }));
    let (status, text) = weir.admin_get("/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("# TYPE weir_"), "{text}");
    assert!(
        text.contains("block"),
        "no blocked message in the metrics:\n{text}"
    );
    assert_eq!(weir.admin_get("/no-such").0, 404);
}

#[test]
fn the_admin_listener_is_not_open_to_web_pages() {
    let upstream = Upstream::mcp(|_| None);
    let weir = Weir::serve(&Config::new(&upstream.url()));
    let admin = weir.admin.expect("an admin listener");
    let mut conn = Conn::open(admin);
    conn.send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
    let status = conn.response().expect("an answer").status();
    assert!(matches!(status, 403 | 421), "a rebound Host got {status}");
}

/// An upstream whose streams say what is put into the list, each message once.
fn telling(queue: &Arc<Mutex<VecDeque<Value>>>) -> Upstream {
    let queue = Arc::clone(queue);
    Upstream::mcp(move |r| {
        let queue = Arc::clone(&queue);
        let listens = r.method == "GET" || r.rpc_method() == "subscriptions/listen";
        listens.then(|| {
            Reply::wire(move |wire| {
                wire.event_head();
                while !wire.peer_closed(Duration::from_millis(20)) {
                    let next = queue.lock().expect("no panic inside").pop_front();
                    if let Some(message) = next {
                        wire.event(&message);
                    }
                }
            })
        })
    })
}

#[test]
fn an_open_stream_obeys_the_policy_and_the_keys_in_force() {
    let queue = Arc::new(Mutex::new(VecDeque::new()));
    let tell = |text: &str| {
        let params = json!({ "level": "info", "data": text, "_meta": {
            "io.modelcontextprotocol/subscriptionId": 1 } });
        let said = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
        queue.lock().expect("no panic inside").push_back(said);
    };
    let upstream = telling(&queue);
    for era in Era::ALL {
        let mut config = Config::new(&upstream.url()).set("limits.keep_alive_ms", json!(300));
        let stays = config.key(TENANT, "stays");
        let without = config.clone();
        let goes = config.key(TENANT, "goes");
        let weir = Weir::serve(&config.clone().category("secret", "log"));
        let mut other = Client::connect_with(&weir, era, &[("X-API-Key", &stays)]);
        let open = |key: &str| {
            let mut client = Client::connect_with(&weir, era, &[("X-API-Key", key)]);
            match era {
                Era::Handshake => (client.listen(None), client),
                Era::Stateless => {
                    let asked = json!({ "notifications": { "toolsListChanged": true } });
                    let message = client.message("subscriptions/listen", asked);
                    (client.open(&message), client)
                }
            }
        };
        let (mut stream, mut client) = open(&goes);
        let data =
            |message: std::io::Result<Value>| message.expect("a message")["params"]["data"].clone();
        let canary = Canary::github();
        tell(canary.value());
        assert_eq!(data(stream.message(PATIENCE)), canary.value(), "{era:?}");

        weir.rewrite_config(&config.clone().category("secret", "block").text());
        wait::until("the stricter policy", PATIENCE, || {
            let answer = other.call("echo", json!({ "message": canary.value() }));
            (answer.result()["isError"] == json!(true)).then_some(())
        });
        tell(canary.value());
        tell("clean");
        assert_eq!(data(stream.message(PATIENCE)), "clean", "{era:?}");

        weir.rewrite_config(&without.category("secret", "block").text());
        wait::until("the end of the key", PATIENCE, || {
            (client.call("echo", json!({})).status() == 401).then_some(())
        });
        // Nothing is said, and all the same it ends.
        let mut after = Vec::new();
        let end = loop {
            match stream.message(PATIENCE) {
                Ok(message) => after.push(message),
                Err(end) => break end,
            }
        };
        assert_eq!(end.kind(), std::io::ErrorKind::UnexpectedEof, "{era:?}");
        assert!(after.iter().all(|m| m["error"].is_object()), "{after:?}");
    }
}

#[test]
fn a_cancelled_call_is_over_at_once_and_nobodys_fault() {
    let weir = Weir::serve(&stdio_config());
    let mut client = Client::connect(&weir, Era::Handshake);
    // As many failures in a row would open the circuit.
    for _ in 0..6 {
        let call = client.message("tools/call", json!({ "name": "silent", "arguments": {} }));
        let mut conn = Conn::open(weir.addr);
        conn.send(client.request_bytes(
            "POST",
            &client.headers_for(&call),
            call.to_string().as_bytes(),
        ));
        let waiting = std::thread::spawn(move || conn.response());
        wait::until("the end of a cancelled call", PATIENCE, || {
            // It may not have come to the server yet.
            client.notify(
                "notifications/cancelled",
                json!({ "requestId": call["id"] }),
            );
            waiting.is_finished().then_some(())
        });
        let answer = waiting.join().expect("it read").expect("an answer");
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert!(!answer.text().contains("error"), "{}", answer.text());
    }
    let answer = client.call("echo", json!({ "message": "hi" }));
    assert_eq!(answer.first_text(), "hi", "{}", answer.text());
    assert!(!weir.log().contains("upstream fault"), "{}", weir.log());
}

#[test]
fn a_server_that_is_taken_out_ends() {
    let config = stdio_config();
    let weir = Weir::serve(&config);
    let mut client = Client::connect(&weir, Era::Handshake);
    let pid = client.call("pid", json!({})).first_text().to_owned();
    assert!(exists(&pid), "{pid}");
    let other = config.clone().set(
        &format!("tenants.{TENANT}.servers"),
        json!({ "other": { "upstream": { "command": STDIO_SERVER } } }),
    );
    weir.rewrite_config(&other.text());
    wait_gone("a server that was taken out", &pid);
    let (_, metrics) = weir.admin_get("/metrics");
    assert!(metrics.contains("weir_sessions 0\n"), "{metrics}");
}

/// A server asks for roots as soon as it hears that the client is ready; the client opens its stream only then.
#[test]
fn what_a_server_says_before_anybody_listens_is_kept_for_who_comes() {
    let streams = Arc::new(Mutex::new(HashMap::<String, Vec<Value>>::new()));
    let written = Arc::new(AtomicBool::new(false));
    let is_written = Arc::clone(&written);
    let count = AtomicUsize::new(0);
    let upstream = Upstream::start(move |r| {
        let (streams, written) = (Arc::clone(&streams), Arc::clone(&is_written));
        if r.method == "GET" {
            let own = format!("/messages/{}", count.fetch_add(1, Ordering::Relaxed));
            return Reply::wire(move |wire| {
                wire.event_head();
                wire.send(format!("event: endpoint\ndata: {own}\n\n"));
                while !wire.peer_closed(Duration::from_millis(20)) {
                    let said = streams.lock().expect("no panic inside").remove(&own);
                    for message in said.iter().flatten() {
                        wire.event(message);
                        if message["method"] == "roots/list" {
                            written.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        let message = r.json();
        let mut streams = streams.lock().expect("no panic inside");
        let queue = streams.entry(r.path.clone()).or_default();
        if r.rpc_method() == "notifications/initialized" {
            for n in 0..20 {
                queue.push(json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": "info", "data": format!("line {n}") } }));
            }
            queue.push(json!({ "jsonrpc": "2.0", "id": "q1", "method": "roots/list" }));
        } else if !message["id"].is_null() && message["method"].is_string() {
            let result = match r.rpc_method().as_str() {
                "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                    "serverInfo": { "name": "s", "version": "1" } }),
                _ => json!({ "content": [{ "type": "text", "text": "hi" }] }),
            };
            queue.push(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        }
        Reply::accepted()
    });
    let weir = Weir::serve(&Config::of(json!({ "sse": upstream.url() })));
    // Words that are read while a call waits may belong to it, and which comes first is chance.
    let client = wait::until("words that nobody heard", PATIENCE, || {
        let mut client = Client::new(&weir, Era::Handshake, &[]);
        let hello = json!({ "protocolVersion": client.revision, "capabilities": { "roots": {} },
            "clientInfo": { "name": "c", "version": "1" } });
        let welcome = client.request("initialize", hello);
        assert_eq!(welcome.status(), 200, "{}", welcome.text());
        client.session = welcome.head.header("mcp-session-id").map(str::to_owned);
        written.store(false, Ordering::Relaxed);
        client.notify("notifications/initialized", json!({}));
        wait::until("the server's words", PATIENCE, || {
            written.load(Ordering::Relaxed).then_some(())
        });
        // They came before this answer, on the one stream that the server has.
        let answer = client.call("echo", json!({}));
        assert_eq!(answer.first_text(), "hi", "{}", answer.text());
        (answer.messages.len() == 1).then_some(client)
    });
    let mut stream = client.listen(None);
    let mut said = Vec::new();
    while said.last() != Some(&json!("roots/list")) {
        let message = stream.message(PATIENCE).expect("what was said before");
        let text = &message["params"]["data"];
        said.push(if text.is_null() {
            message["method"].clone()
        } else {
            text.clone()
        });
    }
    let kept: Vec<Value> = (5..20).map(|n| json!(format!("line {n}"))).collect();
    assert_eq!(
        said,
        [&kept[..], &[json!("roots/list")]].concat(),
        "the last 16"
    );
}
