//! The instrument before targets that lie, drop, cut, stall and hang.

use super::*;
use crate::plan::{Content, Form};
use crate::wire::rpc::Era;
use std::net::TcpListener;

fn cell(connections: usize, rate: Option<u32>) -> Cell {
    Cell {
        size: 300,
        connections,
        rate,
        form: Form::Json,
        content: Content::Clean,
        era: Era::Handshake,
    }
}

fn window(connections: usize, rate: Option<u32>, millis: u64) -> Window {
    Window {
        connections,
        rate,
        warmup: Duration::from_millis(5),
        measure: Duration::from_millis(millis),
    }
}

fn echo_endpoint() -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || echo::serve(&listener));
    Endpoint::parse(&url, false).unwrap()
}

#[test]
fn the_upstream_sees_every_call_in_both_eras_and_forms() {
    for era in [Era::Handshake, Era::Stateless] {
        for form in [Form::Json, Form::Sse] {
            let mut endpoint = echo_endpoint();
            endpoint.open(era).unwrap();
            assert_eq!(endpoint.session.is_some(), era == Era::Handshake);
            let cell = Cell {
                form,
                era,
                ..cell(4, None)
            };
            let (outcome, (), ()) = load::run(
                &endpoint,
                &cell.ask(Kind::Direct, &endpoint),
                &cell.pool(1),
                &window(4, None, 50),
                || (),
            );
            assert!(outcome.valid(), "{:?}", outcome.faults);
            assert_eq!(outcome.latency.len(), outcome.calls);
            let seen = upstream_stats(&endpoint).unwrap().calls;
            assert_eq!(seen, outcome.calls_with_warmup);
            assert_eq!(reject(&cell, &outcome, Some(seen)), None);
            assert!(
                reject(&cell, &outcome, Some(seen + 1))
                    .unwrap()
                    .contains("reached it")
            );
        }
    }
}

#[test]
fn open_loop_makes_the_calls_that_are_due() {
    let endpoint = echo_endpoint();
    let cell = cell(4, Some(200));
    let (outcome, (), ()) = load::run(
        &endpoint,
        &cell.ask(Kind::Direct, &endpoint),
        &cell.pool(1),
        &window(4, cell.rate, 500),
        || (),
    );
    assert!(outcome.valid(), "{:?}", outcome.faults);
    assert_eq!(outcome.calls, 100);
}

/// A server that answers the calls of one connection and leaves the others hanging, as proxies do that mix up ids.
#[test]
fn hanging_calls_are_seen() {
    let outcome = |occupancy| Outcome {
        calls: 100,
        calls_with_warmup: 100,
        stopped: 0,
        failed: 0,
        faults: Vec::new(),
        elapsed: Duration::from_secs(1),
        latency: load::histogram(),
        lateness: load::histogram(),
        in_flight: 1.0,
        occupancy,
        reconnects: 0,
    };
    assert_eq!(reject(&cell(16, None), &outcome(0.95), None), None);
    assert!(
        reject(&cell(16, None), &outcome(1.0 / 16.0), None)
            .unwrap()
            .contains("6 %")
    );
    assert_eq!(
        reject(&cell(16, Some(10)), &outcome(1.0 / 16.0), None),
        None
    );
}

/// The tool is unknown to the upstream, so every call fails; the window must not count and must end.
#[test]
fn failures_make_a_window_invalid() {
    let endpoint = echo_endpoint();
    let mut ask = cell(2, None).ask(Kind::Direct, &endpoint);
    if let crate::wire::rpc::AskKind::Call { tool, .. } = &mut ask.kind {
        *tool = "other".to_owned();
    }
    let (outcome, (), ()) = load::run(
        &endpoint,
        &ask,
        &cell(2, None).pool(1),
        &window(2, None, 50),
        || (),
    );
    assert!(!outcome.valid());
    assert_eq!((outcome.calls, outcome.failed), (0, 2));
    assert!(
        outcome.faults[0].contains("unknown tool"),
        "{:?}",
        outcome.faults
    );
}

/// Calls that take longer than the whole window: every connection gets its one answer, and the window counts.
#[test]
fn a_slow_closed_loop_is_no_overload() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || slow_echo(&stream));
        }
    });
    let (endpoint, cell) = (Endpoint::parse(&url, false).unwrap(), cell(3, None));
    let (outcome, (), ()) = load::run(
        &endpoint,
        &cell.ask(Kind::Direct, &endpoint),
        &cell.pool(1),
        &window(3, None, 20),
        || (),
    );
    assert!(outcome.valid(), "{:?}", outcome.faults);
    assert_eq!((outcome.calls, reject(&cell, &outcome, None)), (3, None));
}

/// Echoes each call 100 ms later.
fn slow_echo(stream: &TcpStream) {
    let (mut reader, mut body) = (Reader::new(stream), Vec::new());
    while let Ok(Some(_)) = reader.request(&mut body, &mut || Ok(())) {
        let call: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let text = &call["params"]["arguments"]["text"];
        let result = serde_json::json!({"content": [{"type": "text", "text": text}]});
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
        let answer = answer.to_string();
        std::thread::sleep(Duration::from_millis(100));
        let mut stream = stream;
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
    }
}

/// A server that lies, drops or delays, in front of a real echo.
#[derive(Clone, Copy, Debug)]
enum Liar {
    /// The id of another call.
    OtherId,
    /// One byte of the text is another.
    OneByte,
    /// A text of the right length from an earlier call.
    Repeats,
    /// Closes the connection in place of every fifth answer.
    Drops,
    /// Half an answer, then silence by closing.
    Cuts,
    /// `isError` with the right text.
    Error,
    /// HTTP 200 with a JSON-RPC error.
    RpcError,
}

fn lie(liar: Liar) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || lies(&stream, liar));
        }
    });
    Endpoint::parse(&url, false).unwrap()
}

fn lies(stream: &TcpStream, liar: Liar) -> Option<()> {
    let (mut reader, mut body, mut nth) = (Reader::new(stream), Vec::new(), 0);
    let mut first = None;
    while let Ok(Some(_)) = reader.request(&mut body, &mut || Ok(())) {
        nth += 1;
        let call: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let mut text = call["params"]["arguments"]["text"].as_str()?.to_owned();
        let mut id = call["id"].clone();
        let mut error = false;
        match liar {
            Liar::OtherId if nth > 3 => id = (id.as_u64()? + 1).into(),
            Liar::OneByte if nth > 3 => text.replace_range(9..10, "~"),
            Liar::Repeats => text = first.get_or_insert(text).clone(),
            Liar::Drops if nth % 5 == 0 => return None,
            Liar::Error if nth > 3 => error = true,
            _ => {}
        }
        let mut answer = serde_json::json!({"jsonrpc": "2.0", "id": id,
            "result": {"isError": error, "content": [{"type": "text", "text": text}]}});
        if matches!(liar, Liar::RpcError) && nth > 3 {
            answer = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "busy"}});
        }
        let answer = answer.to_string();
        let cut = if matches!(liar, Liar::Cuts) && nth > 3 {
            answer.len() / 2
        } else {
            answer.len()
        };
        reply(stream, answer.len(), &answer[..cut])?;
        if cut < answer.len() {
            return None;
        }
    }
    None
}

/// In one write: two would wait for each other's acknowledgement.
fn reply(mut stream: &TcpStream, length: usize, body: &str) -> Option<()> {
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).ok()
}

#[test]
fn a_target_that_lies_or_drops_has_no_valid_window() {
    for liar in [
        Liar::OtherId,
        Liar::OneByte,
        Liar::Repeats,
        Liar::Drops,
        Liar::Cuts,
        Liar::Error,
        Liar::RpcError,
    ] {
        for rate in [None, Some(400)] {
            let (endpoint, cell) = (lie(liar), cell(2, rate));
            let (outcome, (), ()) = load::run(
                &endpoint,
                &cell.ask(Kind::Direct, &endpoint),
                &cell.pool(1),
                &window(2, rate, 60),
                || (),
            );
            assert!(!outcome.valid(), "{liar:?} {rate:?}");
            assert!(!outcome.faults.is_empty(), "{liar:?} {rate:?}");
        }
    }
}

/// A proxy that answers from memory does not ask the upstream; one that asks twice does not count as right either.
#[test]
fn answers_that_the_upstream_never_gave_are_seen() {
    let outcome = Outcome {
        calls: 90,
        calls_with_warmup: 100,
        stopped: 4,
        occupancy: 1.0,
        ..Outcome::none()
    };
    assert_eq!(reject(&cell(1, None), &outcome, Some(96)), None);
    for seen in [0, 50, 95, 97, 100] {
        let why = reject(&cell(1, None), &outcome, Some(seen)).unwrap();
        assert!(why.contains(&format!("{seen} reached it")), "{why}");
    }
}

/// Echoes at once, except that everything stands still for 300 ms in the middle.
#[test]
fn a_stall_counts_for_every_call_that_it_delayed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let start = Instant::now();
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || stalling(&stream, start));
        }
    });
    let (endpoint, cell) = (Endpoint::parse(&url, false).unwrap(), cell(2, Some(200)));
    let (outcome, (), ()) = load::run(
        &endpoint,
        &cell.ask(Kind::Direct, &endpoint),
        &cell.pool(1),
        &window(2, cell.rate, 1000),
        || (),
    );
    assert!(outcome.valid(), "{:?}", outcome.faults);
    assert_eq!(outcome.calls, 200);
    // 60 of the 200 calls were due during the stall; half of those waited longer than half of it.
    let slow = outcome.latency.len() - outcome.latency.count_between(0, 140_000_000);
    assert!(slow >= 20, "{slow}");
}

fn stalling(stream: &TcpStream, start: Instant) -> Option<()> {
    let (mut reader, mut body) = (Reader::new(stream), Vec::new());
    while let Ok(Some(_)) = reader.request(&mut body, &mut || Ok(())) {
        let at = start.elapsed().as_millis();
        if (400..700).contains(&at) {
            std::thread::sleep(Duration::from_millis(700 - at as u64));
        }
        let call: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let text = &call["params"]["arguments"]["text"];
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": call["id"],
            "result": {"content": [{"type": "text", "text": text}]}})
        .to_string();
        reply(stream, answer.len(), &answer)?;
    }
    None
}

#[test]
fn nobody_listening_is_a_fault_not_a_hang() {
    let mut endpoint = echo_endpoint();
    endpoint.addr.set_port(1);
    let (outcome, (), ()) = load::run(
        &endpoint,
        &cell(3, None).ask(Kind::Direct, &endpoint),
        &cell(3, None).pool(1),
        &window(3, None, 50),
        || (),
    );
    assert!(!outcome.valid());
    assert!(endpoint.open(Era::Handshake).is_err());
}
