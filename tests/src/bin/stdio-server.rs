//! A small stdio MCP server of the handshake era for the end-to-end tests. Its tools do what real servers should not.
//!
//! `echo` says it back, `length` says how long it was, `repeat` says two mail addresses so many times, `pid` names this process, `spawn` starts a long-lived child in a session of its own and names
//! it, `exit` ends the process in mid-call, `silent` never answers, `flood` writes a line of that many bytes,
//! `garbage` writes a line that is no JSON before its answer, `progress` reports so many times at such intervals
//! before it answers, `ask` asks the client to elicit something and answers when the client did, `heard` tells
//! which notifications came, `order` only their `n`, `answers` which answers came to no question of its own. `raw` writes
//! these lines as they are, with the call's id for `$ID` and so many letters for `$PAD`, and answers unless `mute`. `IGNORE_TERM=1` makes it deaf to SIGTERM.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn main() {
    if std::env::var_os("IGNORE_TERM").is_some() {
        ignore_term();
    }
    let (mut heard, mut answers) = (Vec::new(), Vec::new());
    let mut asking = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if message["id"].is_null() {
            heard.push(message);
            continue;
        }
        if message["method"].is_null() {
            match asking.take() {
                Some(id) => say(
                    &json!({ "jsonrpc": "2.0", "id": id, "result": text("the client answered") }),
                ),
                None => answers.push(message),
            }
            continue;
        }
        match message["params"]["name"].as_str() {
            Some("ask") => {
                asking = Some(message["id"].clone());
                say(
                    &json!({ "jsonrpc": "2.0", "id": "asked", "method": "elicitation/create",
                    "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } } }),
                );
                continue;
            }
            Some("order") => {
                let numbers: Vec<&Value> = heard.iter().map(|m| &m["params"]["n"]).collect();
                let numbers = text(&json!(numbers).to_string());
                say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": numbers }));
                continue;
            }
            Some("heard") => {
                let told = text(&json!(heard).to_string());
                say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": told }));
                continue;
            }
            Some("answers") => {
                let told = text(&json!(answers).to_string());
                say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": told }));
                continue;
            }
            Some("raw") => {
                raw(&message);
                continue;
            }
            Some("tell") => {
                // After its call, so that nothing asked for it.
                say(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": text("told") }));
                say(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": "info", "data": message["params"]["arguments"]["message"] } }),
                );
                continue;
            }
            _ => {}
        }
        let Some(body) = answer(&message) else {
            continue;
        };
        let mut reply = json!({ "jsonrpc": "2.0", "id": message["id"] });
        for (name, value) in body.as_object().into_iter().flatten() {
            reply[name] = value.clone();
        }
        say(&reply);
    }
}

/// Writes a message; ends the process when nobody reads any more.
fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{message}")
        .and_then(|()| out.flush())
        .is_err()
    {
        std::process::exit(0);
    }
}

fn raw(call: &Value) {
    let arguments = &call["params"]["arguments"];
    let pad = "x".repeat(usize::try_from(arguments["pad"].as_u64().unwrap_or(0)).unwrap_or(0));
    let id = call["id"].to_string();
    for line in arguments["lines"].as_array().into_iter().flatten() {
        let line = line.as_str().unwrap_or_default();
        let line = line.replace("$ID", &id).replace("$PAD", &pad);
        let mut out = std::io::stdout().lock();
        let _closed = writeln!(out, "{line}").and_then(|()| out.flush());
    }
    if arguments["mute"] != json!(true) {
        say(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": text("after") }));
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn answer(message: &Value) -> Option<Value> {
    let params = &message["params"];
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": match params["protocolVersion"].as_str() {
                Some("2026-07-28") | None => "2025-11-25",
                Some(version) => version,
            },
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "stdio-server", "version": "1" },
        }),
        "ping" => json!({}),
        "tools/list" => {
            let names = [
                "echo", "pid", "spawn", "exit", "silent", "flood", "garbage", "progress", "ask",
                "heard",
            ];
            json!({ "tools": names.map(|n| json!({ "name": n, "inputSchema": { "type": "object" } })) })
        }
        "tools/call" => return call(params),
        _ => return Some(json!({ "error": { "code": -32601, "message": "Method not found" } })),
    };
    Some(json!({ "result": result }))
}

fn call(params: &Value) -> Option<Value> {
    let said = match params["name"].as_str()? {
        "echo" => params["arguments"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        "length" => params["arguments"]["message"].as_str()?.len().to_string(),
        "repeat" => {
            let times = usize::try_from(params["arguments"]["times"].as_u64()?).ok()?;
            "joe@corp.io ann@corp.io ".repeat(times)
        }
        "pid" => std::process::id().to_string(),
        "spawn" => spawn(),
        "exit" => std::process::exit(3),
        "silent" => return None,
        "flood" => "x".repeat(usize::try_from(params["arguments"]["bytes"].as_u64()?).ok()?),
        "garbage" => {
            let mut out = std::io::stdout().lock();
            let _closed = writeln!(out, "this line is no JSON");
            "after garbage".to_owned()
        }
        "progress" => {
            progress(params);
            "done".to_owned()
        }
        _ => return Some(json!({ "error": { "code": -32602, "message": "Unknown tool" } })),
    };
    Some(json!({ "result": text(&said) }))
}

fn progress(params: &Value) {
    let arguments = &params["arguments"];
    for n in 1..=arguments["times"].as_u64().unwrap_or(1) {
        let every_ms = arguments["every_ms"].as_u64().unwrap_or(100);
        std::thread::sleep(std::time::Duration::from_millis(every_ms));
        say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": params["_meta"]["progressToken"], "progress": n } }),
        );
    }
}

/// `setsid` puts the child out of reach of a process-group kill.
fn spawn() -> String {
    let child = Command::new("setsid")
        .args(["sleep", "1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    child.map_or_else(|e| e.to_string(), |c| c.id().to_string())
}

fn ignore_term() {
    use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    let _kept = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None);
}
