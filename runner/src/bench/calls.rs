//! Calls of the server's one tool, one after the other over one connection, each answer checked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A client with a session.
pub(super) struct Caller {
    stream: TcpStream,
    session: Option<String>,
    count: u32,
}

impl Caller {
    /// Connects and initializes.
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut caller = Self {
            stream,
            session: None,
            count: 0,
        };
        let answer = caller.exchange(&initialize()).await?;
        ensure!(
            answer.contains("serverInfo"),
            "no answer to initialize: {answer:.200}"
        );
        let head = answer.split("\r\n\r\n").next().unwrap_or_default();
        caller.session = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.trim().to_owned())
        });
        caller
            .exchange(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await?;
        Ok(caller)
    }

    /// One call.
    pub(super) async fn call(&mut self) -> Result<Duration> {
        self.count += 1;
        let query = format!("q{}", self.count);
        let body = json!({"jsonrpc": "2.0", "id": self.count + 1, "method": "tools/call",
            "params": {"name": "get_data", "arguments": {"query": query}}});
        let began = Instant::now();
        let answer = self.exchange(&body).await?;
        let took = began.elapsed();
        ensure!(
            answer.contains(&format!("Result for: {query}\"")),
            "a wrong answer: {answer:.300}"
        );
        Ok(took)
    }

    async fn exchange(&mut self, body: &Value) -> Result<String> {
        let body = body.to_string();
        let session = self
            .session
            .as_ref()
            .map(|s| format!("Mcp-Session-Id: {s}\r\n"))
            .unwrap_or_default();
        // Servers of the SDK take only local names in Host.
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2025-06-18\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        let mut buffer = [0; 8192];
        while !whole(&answer) {
            match self.stream.read(&mut buffer).await? {
                0 => bail!("the server closed the connection"),
                count if answer.len() < ANSWER_BYTES_MAX => answer.extend(&buffer[..count]),
                _ => bail!("an endless answer"),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// The `initialize` request.
pub(super) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}}})
}

/// True if an answer has come to its end.
fn whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let head = head.to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    body.len() >= length.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn an_answer_is_whole_at_its_end_and_not_before() {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 202 Accepted\r\n\r\n",
        ] {
            assert!(whole(answer.as_bytes()), "{answer}");
            for cut in 0..answer.len() {
                assert!(!whole(&answer.as_bytes()[..cut]), "{answer} at {cut}");
            }
        }
    }
}
