//! The upstream: an MCP server that echoes, in as few steps as an honest one can.
//!
//! It speaks both eras over Streamable HTTP, answers `tools/call` of `echo` as JSON and of `echo_sse` as an event
//! stream, and copies the argument's JSON form into the answer unread. One blocking thread per connection. It checks
//! nothing that a security product would: it stands for the fastest server a proxy could be put in front of, so that
//! the proxy's own cost is what is seen. `GET /stats` says how many calls really arrived.

use crate::events;
use crate::wire::http::{Head, Reader};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// More connections than this are closed at once.
const CONNECTIONS_MAX: usize = 2048;
/// What stands before the data of the one event of an answer.
const EVENT: &str = "event: message\ndata: ";
/// A line longer than this is cut, and then no JSON.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// A connection that says nothing for this long is closed.
const IDLE: Duration = Duration::from_secs(300);

/// What has arrived so far.
#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    connections: AtomicU64,
    sessions: AtomicU64,
    open: AtomicUsize,
}

/// What `/stats` answers.
#[derive(Clone, Copy, Debug, Default, Deserialize, serde::Serialize)]
pub struct Stats {
    /// `tools/call` requests answered.
    pub calls: u64,
    /// Connections accepted.
    pub connections: u64,
}

/// Serves until the process ends.
pub fn serve(listener: &TcpListener) -> io::Result<()> {
    let counters = Arc::new(Counters::default());
    loop {
        let (stream, _) = listener.accept()?;
        let counters = Arc::clone(&counters);
        counters.connections.fetch_add(1, Ordering::Relaxed);
        if counters.open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            counters.open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        std::thread::Builder::new()
            .stack_size(256 << 10)
            .spawn(move || {
                // A peer that goes away is how every connection ends.
                let _ = connection(&stream, &counters);
                counters.open.fetch_sub(1, Ordering::Relaxed);
            })?;
    }
}

/// Serves one client on lines, as a stdio server does, until the input ends.
pub fn serve_lines(input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let counters = Counters::default();
    let (mut input, mut line, mut out) = (input, Vec::new(), Vec::new());
    loop {
        line.clear();
        if (&mut input)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)?
            == 0
        {
            return Ok(());
        }
        out.clear();
        post(&line, &counters, &mut out);
        // The same answers as over HTTP, without their heads.
        let body = memchr::memmem::find(&out, b"\r\n\r\n").map_or(out.len(), |end| end + 4);
        let body = out[body..]
            .strip_prefix(EVENT.as_bytes())
            .unwrap_or(&out[body..]);
        if !body.is_empty() {
            output.write_all(body.trim_ascii_end())?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
}

fn connection(stream: &TcpStream, counters: &Counters) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE))?;
    let mut reader = Reader::new(stream);
    let (mut body, mut out) = (Vec::new(), Vec::new());
    let mut go_on = || {
        let mut stream = stream;
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
    };
    while let Some(head) = reader.request(&mut body, &mut go_on)? {
        out.clear();
        if let Some((id, token)) = asks_for_events(&head, &body) {
            events(stream, &id, &token)?;
        } else {
            answer(&head, &body, counters, &mut out);
            let mut stream = stream;
            stream.write_all(&out)?;
        }
        if head.close {
            break;
        }
    }
    Ok(())
}

/// The id and the progress token of a call of the tool that streams events; no other call names it this early.
fn asks_for_events(head: &Head, body: &[u8]) -> Option<(String, String)> {
    const LOOK_BYTES: usize = 4096;
    if head.method != "POST" || body.len() > LOOK_BYTES {
        return None;
    }
    memchr::memmem::find(body, b"\"ticks\"")?;
    let request: Request<'_> = serde_json::from_slice(body).ok()?;
    let params: serde_json::Value = serde_json::from_str(request.params?.get()).ok()?;
    let named = request.method == Some("tools/call") && params["name"] == events::TOOL;
    named.then(|| {
        (
            request.id.map_or("null", RawValue::get).to_owned(),
            params["_meta"]["progressToken"].to_string(),
        )
    })
}

/// Writes events with the time of each in it, then the result.
fn events(stream: &TcpStream, id: &str, token: &str) -> io::Result<()> {
    let chunk = |event: &str| {
        let mut stream = stream;
        let event = format!("event: message\ndata: {event}\n\n");
        // One write for each, as a server that flushes does.
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
    };
    let mut head = stream;
    head.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    )?;
    for nth in 1..=events::EVENTS {
        std::thread::sleep(events::EVERY);
        let sent = events::letters(events::now_ns());
        chunk(&format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{token},\"progress\":{nth},\"message\":\"{sent}\"}}}}"
        ))?;
    }
    chunk(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"done\"}}]}}}}"
    ))?;
    head.write_all(b"0\r\n\r\n")
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: &'a str,
    #[serde(borrow)]
    arguments: Arguments<'a>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

fn answer(head: &Head, body: &[u8], counters: &Counters, out: &mut Vec<u8>) {
    match head.method.as_str() {
        "GET" if head.path == "/stats" => {
            let stats = Stats {
                calls: counters.calls.load(Ordering::Relaxed),
                connections: counters.connections.load(Ordering::Relaxed),
            };
            reply(
                out,
                "200 OK",
                "application/json",
                None,
                &[&serde_json::to_vec(&stats).unwrap_or_default()],
            );
        }
        "POST" => post(body, counters, out),
        // No stream of its own and no session to end: both are allowed answers.
        _ => reply(out, "405 Method Not Allowed", "text/plain", None, &[]),
    }
}

fn post(body: &[u8], counters: &Counters, out: &mut Vec<u8>) {
    let Ok(request) = serde_json::from_slice::<Request<'_>>(body) else {
        return reply(
            out,
            "400 Bad Request",
            "text/plain",
            None,
            &[b"not JSON-RPC"],
        );
    };
    let (Some(id), Some(method)) = (request.id, request.method) else {
        return reply(out, "202 Accepted", "", None, &[]);
    };
    let id = id.get().as_bytes();
    match method {
        "tools/call" => match request
            .params
            .map(|p| serde_json::from_str::<CallParams<'_>>(p.get()))
        {
            Some(Ok(call)) if call.name == "echo" || call.name == "echo_sse" => {
                counters.calls.fetch_add(1, Ordering::Relaxed);
                echo(id, &call, out);
            }
            _ => error(out, id, -32602, "unknown tool or no text"),
        },
        "initialize" => {
            let session = format!(
                "bench-{}",
                counters.sessions.fetch_add(1, Ordering::Relaxed)
            );
            result(out, id, Some(&session), INITIALIZE);
        }
        "server/discover" => result(out, id, None, DISCOVER),
        "tools/list" => result(out, id, None, TOOLS),
        "ping" => result(out, id, None, "{}"),
        _ => error(out, id, -32601, "method not found"),
    }
}

fn echo(id: &[u8], call: &CallParams<'_>, out: &mut Vec<u8>) {
    let kind: &[u8] = if call.meta.is_some_and(|m| m.get().contains("2026-07-28")) {
        b",\"result\":{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":"
    } else {
        b",\"result\":{\"content\":[{\"type\":\"text\",\"text\":"
    };
    let text = call.arguments.text.get().as_bytes();
    let (before, after): (&[u8], &[u8]) = (b"{\"jsonrpc\":\"2.0\",\"id\":", b"}]}}");
    if call.name == "echo_sse" {
        let parts: [&[u8]; 7] = [EVENT.as_bytes(), before, id, kind, text, after, b"\n\n"];
        reply(out, "200 OK", "text/event-stream", None, &parts);
    } else {
        reply(
            out,
            "200 OK",
            "application/json",
            None,
            &[before, id, kind, text, after],
        );
    }
}

fn result(out: &mut Vec<u8>, id: &[u8], session: Option<&str>, result: &str) {
    let parts: [&[u8]; 5] = [
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        id,
        b",\"result\":",
        result.as_bytes(),
        b"}",
    ];
    reply(out, "200 OK", "application/json", session, &parts);
}

fn error(out: &mut Vec<u8>, id: &[u8], code: i32, message: &str) {
    let error = format!(",\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}");
    reply(
        out,
        "200 OK",
        "application/json",
        None,
        &[b"{\"jsonrpc\":\"2.0\",\"id\":", id, error.as_bytes()],
    );
}

fn reply(out: &mut Vec<u8>, status: &str, media: &str, session: Option<&str>, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("HTTP/1.1 {status}\r\n").as_bytes());
    if !media.is_empty() {
        out.extend_from_slice(format!("content-type: {media}\r\n").as_bytes());
    }
    if let Some(session) = session {
        out.extend_from_slice(format!("mcp-session-id: {session}\r\n").as_bytes());
    }
    out.extend_from_slice(format!("content-length: {length}\r\n\r\n").as_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

const INITIALIZE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench-echo","version":"1"}}"#;
const DISCOVER: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench-echo","version":"1"}}}"#;
const TOOLS: &str = r#"{"resultType":"complete","ttlMs":60000,"cacheScope":"public","tools":[{"name":"echo","description":"Returns the text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"ticks","description":"Streams events","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},{"name":"echo_sse","description":"Returns the text as an event","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;
    use crate::wire::rpc::{Ask, AskKind, Era, Expect};

    fn post_answer(body: &[u8]) -> (Head, Vec<u8>) {
        let (counters, mut out) = (Counters::default(), Vec::new());
        post(body, &counters, &mut out);
        let mut answer = Vec::new();
        let head = Reader::new(out.as_slice())
            .answer(&mut answer)
            .unwrap()
            .unwrap();
        (head, answer)
    }

    #[test]
    fn calls_come_back_in_every_form() {
        let payload = Payload::new("tab\t, quote \", – dash and \u{1F980} ".repeat(20));
        for era in [Era::Handshake, Era::Stateless] {
            for tool in ["echo", "echo_sse"] {
                let kind = AskKind::Call {
                    tool: tool.into(),
                    argument: "text".into(),
                    expect: Expect::Echo,
                };
                let ask = Ask { era, kind };
                let mut body = Vec::new();
                ask.body(41, &payload, &mut body);
                let (head, answer) = post_answer(&body);
                assert_eq!(
                    ask.check(41, &payload, head.status, &head.media, &answer),
                    Ok(())
                );
            }
        }
    }

    #[test]
    fn other_methods() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
                200,
                "protocolVersion",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#,
                200,
                "\"id\":\"a\"",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#,
                200,
                "supportedVersions",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, 200, "{}"),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                202,
                "",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#, 200, "-32601"),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm","arguments":{"text":""}}}"#,
                200,
                "-32602",
            ),
            ("{", 400, "not JSON-RPC"),
        ];
        for (body, status, contains) in cases {
            let (head, answer) = post_answer(body.as_bytes());
            let answer = String::from_utf8(answer).unwrap();
            assert_eq!(head.status, status, "{body}");
            assert!(answer.contains(contains), "{body}: {answer}");
            if status == 200 {
                serde_json::from_str::<serde_json::Value>(&answer).unwrap();
            }
        }
    }

    #[test]
    fn lines_are_answered_by_lines() {
        let input = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\
             {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
             {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"x\"}}}\n";
        let mut out = Vec::new();
        serve_lines(input.as_bytes(), &mut out).unwrap();
        let lines: Vec<serde_json::Value> = std::str::from_utf8(&out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["result"]["content"][0]["text"], "x");
    }

    #[test]
    fn serves_and_counts_over_a_socket() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener));
        let mut stream = TcpStream::connect(addr).unwrap();
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}"#;
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n\r\n{call}GET /stats HTTP/1.1\r\n\r\n",
            call.len()
        )
        .unwrap();
        let mut reader = Reader::new(stream);
        let mut body = Vec::new();
        reader.answer(&mut body).unwrap().unwrap();
        reader.answer(&mut body).unwrap().unwrap();
        let stats: Stats = serde_json::from_slice(&body).unwrap();
        assert_eq!((stats.calls, stats.connections), (1, 1));
    }
}
