//! Attacks at the level of HTTP, from clients and from upstreams, with raw sockets.

mod framing;
mod h2;
mod limits;
mod names;
mod upstreams;

use weir_tests::{Weir, json};

/// A call in the stateless era, so that one request is enough.
fn body(tool: &str, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": tool, "arguments": { "message": message }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} } } })
    .to_string()
}

/// The head of such a call, up to the framing headers.
fn head(path: &str, tool: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    )
}

fn whole(path: &str, tool: &str, message: &str) -> String {
    let body = body(tool, message);
    format!(
        "{}Content-Length: {}\r\n\r\n{body}",
        head(path, tool),
        body.len()
    )
}

fn rss_kib(weir: &Weir) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", weir.pid())).expect("it runs");
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .unwrap_or("0");
    line.split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// `{}` in gzip.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xab, 0xae, 0x05, 0x00, 0x43, 0xbf,
    0xa6, 0xa3, 0x02, 0x00, 0x00, 0x00,
];
