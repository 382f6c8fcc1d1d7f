//! The limit on open files of the process: connections are bounded by it before it is met.

use weir_tests::config::Config;
use weir_tests::http::Conn;
use weir_tests::wait::{self, PATIENCE};
use weir_tests::weir::Start;
use weir_tests::{Client, Era, Upstream, Weir, json};

const STDIO_SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");

/// The soft limit on open files of a process.
fn soft_limit(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it runs");
    let line = text.lines().find_map(|l| l.strip_prefix("Max open files"));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.expect("a number")
}

/// As many connections as the process may have files, each kept open after a request without a key.
fn flood(weir: &Weir) -> Vec<Conn> {
    let asks = format!(
        "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n",
        weir.path()
    );
    let one = |_| {
        let mut conn = Conn::open(weir.addr);
        if conn.try_send(asks.as_bytes()) {
            let _refused = conn.response();
        }
        conn
    };
    (0..200).map(one).collect()
}

#[test]
fn a_flood_of_idle_connections_never_takes_the_last_open_file() {
    let upstream = Upstream::mcp(|_| None);
    let mut config = Config::new(&upstream.url());
    let key = config.key("acme", "k");
    let authorization = format!("Bearer {key}");
    let weir = Start::serve(&config).open_files(64, 128).ready();
    assert_eq!(soft_limit(weir.pid()), 128, "it takes what it may have");
    weir.wait_for_log("at most 48 connections are taken");
    assert!(weir.log().contains("4096"), "{}", weir.log());
    assert!(weir.log().contains("only 128 open files"), "{}", weir.log());
    let held = flood(&weir);
    for era in Era::ALL {
        let mut client = Client::connect_with(&weir, era, &[("Authorization", &authorization)]);
        let answer = client.call("echo", json!({ "message": "hi" }));
        assert_eq!(answer.first_text(), "Echo: hi", "{}", answer.text());
    }
    let (_, metrics) = weir.admin_get("/metrics");
    let displaced = metrics
        .lines()
        .find_map(|l| l.strip_prefix("weir_connections_displaced_total "))
        .and_then(|n| n.parse::<f64>().ok());
    assert!(displaced.is_some_and(|n| n >= 150.0), "{displaced:?}");
    assert!(
        !weir.log().contains("could not be accepted"),
        "{}",
        weir.log()
    );
    drop(held);
}

#[test]
fn a_soft_limit_is_raised_for_weir_and_kept_for_servers() {
    let config = Config::of(json!({ "command": STDIO_SERVER }));
    let weir = Start::serve(&config).open_files(512, 16_384).ready();
    assert_eq!(soft_limit(weir.pid()), 16_384);
    assert!(!weir.log().contains("open files"), "{}", weir.log());
    let mut client = Client::connect(&weir, Era::Handshake);
    let pid = client.call("pid", json!({})).first_text().parse();
    assert_eq!(soft_limit(pid.expect("a number")), 512);
}

#[test]
fn a_reload_that_asks_for_more_connections_than_files_is_told_so() {
    let upstream = Upstream::mcp(|_| None);
    let config =
        |max: u64| Config::new(&upstream.url()).set("limits", json!({ "connections_max": max }));
    let weir = Start::serve(&config(10)).open_files(128, 128).ready();
    assert!(!weir.log().contains("open files"), "{}", weir.log());
    weir.rewrite_config(&config(100).text());
    weir.wait_for_log("at most 48 connections are taken");
    wait::until("a call", PATIENCE, || {
        let mut client = Client::connect(&weir, Era::Stateless);
        let answer = client.call("echo", json!({ "message": "hi" }));
        (answer.first_text() == "Echo: hi").then_some(())
    });
}
