//! A small MCP client over one connection: for our own handshake before an image is taken, and for measuring.

use std::net::SocketAddr;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// A client with a session.
pub(crate) struct Caller {
    stream: TcpStream,
    session: Option<String>,
}

impl Caller {
    /// Connects and initializes.
    ///
    /// # Errors
    /// The system's, or an answer that is none.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        // Whatever ends this early, the server is told at once that there is nobody any more.
        stream.set_zero_linger()?;
        let mut caller = Self {
            stream,
            session: None,
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

    /// Closes its end; the session goes on.
    pub(crate) async fn hang_up(&mut self) -> Result<()> {
        Ok(self.stream.shutdown().await?)
    }

    /// Connects again, in the same session.
    pub(crate) async fn again(&mut self, address: SocketAddr) -> Result<()> {
        self.stream = TcpStream::connect(address).await?;
        Ok(self.stream.set_nodelay(true)?)
    }

    /// Ends the session, if there is one, and the connection from both sides.
    pub(crate) async fn end(mut self) -> Result<()> {
        if self.session.is_some() {
            self.send("DELETE", "").await?;
        }
        self.hang_up().await?;
        let mut buffer = [0; 8192];
        let mut left = ANSWER_BYTES_MAX;
        loop {
            match self.stream.read(&mut buffer).await? {
                0 => return Ok(()),
                count if count < left => left -= count,
                _ => bail!("the server does not close the connection"),
            }
        }
    }

    /// One message, and the whole answer to it, head and body.
    pub(crate) async fn exchange(&mut self, message: &Value) -> Result<String> {
        self.send("POST", &message.to_string()).await
    }

    async fn send(&mut self, method: &str, body: &str) -> Result<String> {
        let session = self
            .session
            .as_ref()
            .map(|s| format!("Mcp-Session-Id: {s}\r\n"))
            .unwrap_or_default();
        // Servers of the SDK take only local names in Host.
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
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

/// Has a server do once what its first client will ask for, and forgets that client: a server compiles and loads much
/// of itself only then, and an image that is taken afterwards has it done.
pub(crate) async fn rehearse(address: SocketAddr) -> Result<()> {
    let mut caller = Caller::open(address).await?;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    caller.exchange(&list).await?;
    caller.end().await
}

/// The `initialize` request.
pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "weir", "version": "0"}}})
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
