//! `weir check`: the first minute. One message blocked, one redacted, one passed, for real: through
//! the same gateway that `weir proxy` runs, in front of a small built-in server.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use gateway::{Gateway, GatewayOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::demo;
use crate::config::{self, PROXY_SERVER, ProxyOptions, ProxyUpstream, Reading};

/// Largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What one of the three messages must come to.
struct Case {
    title: &'static str,
    tool: &'static str,
    text: String,
    expect: fn(&str) -> bool,
}

/// Runs the three messages; fails when one does not come out as it must.
pub fn run() -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime cannot be started")?;
    runtime.block_on(check())?;
    Ok(ExitCode::SUCCESS)
}

async fn check() -> anyhow::Result<()> {
    let upstream = demo::start().await?;
    let options = ProxyOptions {
        upstream: Some(ProxyUpstream::Url(format!("http://{upstream}/mcp"))),
        upstream_headers: Vec::new(),
        config: None,
        listen: None,
        admin_listen: None,
        data_dir: None,
        key: None,
        dry_run: false,
    };
    let loaded = config::for_proxy(&options, Reading::First)?;
    let single = Some(domain::ServerId::parse(PROXY_SERVER)?);
    let options = GatewayOptions {
        single,
        ..GatewayOptions::default()
    };
    let gateway = Gateway::new(&loaded.desired, options)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    gateway.bound_to(address.ip());
    tokio::spawn(gateway::serve(gateway, listener, None));
    let mut failed = 0;
    for (id, case) in cases().iter().enumerate() {
        let request = serde_json::json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": case.tool, "arguments": {"text": case.text}},
        });
        let answer = post(address, &request.to_string()).await?;
        let good = (case.expect)(&answer);
        failed += usize::from(!good);
        say(&format!(
            "{} {}\n   sent:     tools/call {} {}\n   answered: {answer}\n",
            if good { "ok  " } else { "FAIL" },
            case.title,
            case.tool,
            shorten(&case.text),
        ));
    }
    if failed > 0 {
        bail!("{failed} of 3 messages did not come out as they must");
    }
    say("Front your own server:  weir proxy --upstream URL   or   weir proxy -- COMMAND");
    Ok(())
}

fn cases() -> [Case; 3] {
    // Put together here so that no scanner takes this file for a leak.
    let key = ["AKIA", "Z7Q2M4N6P3R7T5V2"].concat();
    [
        Case {
            title: "blocked: a cloud key on its way to the server",
            tool: "echo",
            text: format!("deploy with aws_access_key_id={key}"),
            expect: |answer| answer.contains("\"isError\":true") && answer.contains("blocked"),
        },
        Case {
            title: "redacted: a card number on its way to the client",
            tool: "customer",
            text: String::new(),
            expect: |answer| answer.contains("[REDACTED:") && !answer.contains("4111"),
        },
        Case {
            title: "passed: nothing to find",
            tool: "echo",
            text: "hello, world".into(),
            expect: |answer| answer.contains("hello, world"),
        },
    ]
}

/// A secret is not printed here either.
fn shorten(text: &str) -> String {
    match text.split_once('=') {
        Some((before, value)) => format!("\"{before}={}***\"", value.get(..4).unwrap_or("")),
        None => format!("{text:?}"),
    }
}

async fn post(address: SocketAddr, body: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = String::new();
    stream
        .take(ANSWER_BYTES_MAX)
        .read_to_string(&mut answer)
        .await?;
    let (_, body) = answer
        .split_once("\r\n\r\n")
        .context("the gateway gave no answer")?;
    Ok(body.to_owned())
}

fn say(text: &str) {
    use std::io::Write as _;
    // Who reads it may have seen enough.
    let _ = writeln!(std::io::stdout(), "{text}");
}
