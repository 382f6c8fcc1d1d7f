//! How fast a message is read: MB/s next to serde_json's validation in the same run.
//!
//! `cargo run --release -p mcp-codec --example speed [seconds per row]`
#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_codec::{BatchRule, Document, Limits, decode};
use serde_json::{Value, json};

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0.5);
    let each = Duration::from_secs_f64(seconds);
    println!(
        "{:<28}{:>9}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "message", "bytes", "serde", "parse", "decode", "+leaves", "us/decode"
    );
    for (name, text) in corpus() {
        let bytes = Bytes::from(text);
        let limits = Limits {
            bytes_max: 64 << 20,
            ..Limits::default()
        };
        let serde = rate(each, &bytes, |b| {
            black_box(serde_json::from_slice::<serde::de::IgnoredAny>(b).is_ok());
        });
        let parse = rate(each, &bytes, |b| {
            black_box(Document::parse(b.clone(), &limits).is_ok());
        });
        let decoded = rate(each, &bytes, |b| {
            black_box(decode(b.clone(), &limits, BatchRule::Refused).is_ok());
        });
        let leaves = rate(each, &bytes, |b| {
            let doc = Document::parse(b.clone(), &limits).expect("the corpus is valid");
            black_box(
                doc.leaves()
                    .map(|leaf| leaf.text.len() + leaf.name.map_or(0, str::len))
                    .sum::<usize>(),
            );
        });
        assert!(
            decode(bytes.clone(), &limits, BatchRule::Refused).is_ok(),
            "{name}"
        );
        println!(
            "{name:<28}{:>9}{serde:>12.0}{parse:>12.0}{decoded:>12.0}{leaves:>12.0}{:>12.2}",
            bytes.len(),
            bytes.len() as f64 / decoded
        );
    }
}

/// MB/s, the best of several slices, which is what an undisturbed core gives.
fn rate(each: Duration, bytes: &Bytes, mut run: impl FnMut(&Bytes)) -> f64 {
    let rounds = (200_000 / bytes.len()).max(1);
    let start = Instant::now();
    let mut best = f64::MAX;
    while start.elapsed() < each {
        let slice = Instant::now();
        for _ in 0..rounds {
            run(black_box(bytes));
        }
        best = best.min(slice.elapsed().as_secs_f64() / rounds as f64);
    }
    bytes.len() as f64 / best / 1e6
}

fn corpus() -> Vec<(&'static str, String)> {
    let call = json!({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search_issues","arguments":{
        "query":"is:open label:bug memory leak in the stream decoder","repo":"acme/widgets","page":2,"per_page":30},
        "_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}});
    let text = |n: usize| result(json!([{"type":"text","text":prose(n)}]));
    let records: Vec<Value> = (0..40).map(record).collect();
    let many: Vec<Value> = (0..600).map(record).collect();
    let tools: Vec<Value> = (0..40).map(tool).collect();
    vec![
        ("call, 300 B", call.to_string()),
        ("text 4 KiB", text(4 << 10)),
        ("text 64 KiB", text(64 << 10)),
        ("text 1 MiB", text(1 << 20)),
        ("records 8 KiB", result_with(json!([]), json!({"rows": records}))),
        ("records 120 KiB", result_with(json!([]), json!({"rows": many}))),
        ("records as text, escaped", result(json!([{"type":"text","text":serde_json::to_string(&json!({"rows":records})).expect("valid")}]))),
        ("records pretty, as text", result(json!([{"type":"text","text":serde_json::to_string_pretty(&json!({"rows":records})).expect("valid")}]))),
        ("tools/list", json!({"jsonrpc":"2.0","id":1,"result":{"tools":tools}}).to_string()),
        ("japanese 16 KiB", result(json!([{"type":"text","text":"設定ファイルを読み込めませんでした。".repeat(300)}]))),
        ("pretty printed", serde_json::to_string_pretty(&json!({"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"rows":records}}})).expect("valid")),
    ]
}

fn result(content: Value) -> String {
    json!({"jsonrpc":"2.0","id":7,"result":{"content":content,"isError":false}}).to_string()
}

fn result_with(content: Value, structured: Value) -> String {
    json!({"jsonrpc":"2.0","id":7,"result":{"content":content,"structuredContent":structured}})
        .to_string()
}

fn prose(len: usize) -> String {
    let words = "The decoder reads one event at a time and hands it on as soon as it is whole, so that \"nothing\" waits.\nIt never ";
    words.chars().cycle().take(len).collect()
}

fn record(n: usize) -> Value {
    json!({"id":n,"name":format!("widget-{n}"),"price":n as f64 * 1.25,"tags":["new","sale"],"ok":n & 1 == 0,
        "owner":{"login":format!("user{n}"),"url":format!("https://example.test/users/{n}")},"note":null})
}

fn tool(n: usize) -> Value {
    json!({"name":format!("tool_{n}"),"title":"A tool","description":"Looks something up and says what it found, with its source.",
        "inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What to look for"},
        "limit":{"type":"integer","minimum":1,"maximum":100,"default":10}},"required":["query"]}})
}
