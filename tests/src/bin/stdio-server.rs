//! A small stdio MCP server of the handshake era for the end-to-end tests. Its tools do what real servers should not.
//!
//! `echo` says it back, `pid` names this process, `spawn` starts a long-lived child in a session of its own and names
//! it, `exit` ends the process in mid-call, `silent` never answers, `flood` writes a line of that many bytes,
//! `garbage` writes a line that is no JSON before its answer. `IGNORE_TERM=1` makes it deaf to SIGTERM.

use std::io::{BufRead, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

fn main() {
    if std::env::var_os("IGNORE_TERM").is_some() {
        ignore_term();
    }
    let stdout = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        if message["id"].is_null() || message["method"].is_null() {
            continue;
        }
        let Some(body) = answer(&message) else {
            continue;
        };
        let mut reply = json!({ "jsonrpc": "2.0", "id": message["id"] });
        for (name, value) in body.as_object().into_iter().flatten() {
            reply[name] = value.clone();
        }
        let mut out = stdout.lock();
        if writeln!(out, "{reply}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
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
            let names = ["echo", "pid", "spawn", "exit", "silent", "flood", "garbage"];
            json!({ "tools": names.map(|n| json!({ "name": n, "inputSchema": { "type": "object" } })) })
        }
        "tools/call" => return call(params),
        _ => return Some(json!({ "error": { "code": -32601, "message": "Method not found" } })),
    };
    Some(json!({ "result": result }))
}

fn call(params: &Value) -> Option<Value> {
    let text = match params["name"].as_str()? {
        "echo" => params["arguments"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
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
        _ => return Some(json!({ "error": { "code": -32602, "message": "Unknown tool" } })),
    };
    Some(json!({ "result": { "content": [{ "type": "text", "text": text }] } }))
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
