//! A small MCP server inside this program, for `weir check`: it echoes, and it leaks on request.

use std::net::SocketAddr;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Largest body it reads.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Starts the server on a free loopback port.
pub async fn start() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = serve(stream).await;
            });
        }
    });
    Ok(address)
}

async fn serve(stream: TcpStream) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let Some(body) = request(&mut read).await? else {
            return Ok(());
        };
        let answer = answer(&body);
        let (status, text) = match answer {
            Some(answer) => ("200 OK", answer.to_string()),
            None => ("202 Accepted", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        write.write_all(head.as_bytes()).await?;
        write.write_all(text.as_bytes()).await?;
    }
}

async fn request(
    read: &mut BufReader<tokio::net::tcp::OwnedReadHalf>,
) -> std::io::Result<Option<serde_json::Value>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length.min(BODY_BYTES_MAX)];
    read.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body).ok())
}

fn answer(request: &serde_json::Value) -> Option<serde_json::Value> {
    let id = request.get("id")?;
    let text = |text: &str| serde_json::json!({"content": [{"type": "text", "text": text}]});
    let arguments = &request["params"]["arguments"];
    let result = match (
        request["method"].as_str()?,
        request["params"]["name"].as_str(),
    ) {
        ("initialize", _) => serde_json::json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "weir-demo", "version": "1"},
        }),
        ("tools/call", Some("echo")) => text(arguments["text"].as_str().unwrap_or("")),
        ("tools/call", Some("customer")) => {
            text("Jane Roe paid with card 4111 1111 1111 1111 on Monday.")
        }
        _ => serde_json::json!({}),
    };
    Some(serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result}))
}
