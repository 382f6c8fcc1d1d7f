//! Calls of the server's one tool, one after the other over one connection, each answer checked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::mcp;

/// A client with a session.
pub(super) struct Caller {
    own: mcp::Caller,
    count: u32,
}

impl Caller {
    /// Connects and initializes.
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let own = mcp::Caller::open(address).await?;
        Ok(Self { own, count: 0 })
    }

    /// Closes its end; the session goes on.
    pub(super) async fn hang_up(&mut self) -> Result<()> {
        self.own.hang_up().await
    }

    /// Connects again, in the same session.
    pub(super) async fn again(&mut self, address: SocketAddr) -> Result<()> {
        self.own.again(address).await
    }

    /// One call.
    pub(super) async fn call(&mut self) -> Result<Duration> {
        self.count += 1;
        let query = format!("q{}", self.count);
        let body = json!({"jsonrpc": "2.0", "id": self.count + 1, "method": "tools/call",
            "params": {"name": "get_data", "arguments": {"query": query}}});
        let began = Instant::now();
        let answer = self.own.exchange(&body).await?;
        let took = began.elapsed();
        ensure!(
            answer.contains(&format!("Result for: {query}\"")),
            "a wrong answer: {answer:.300}"
        );
        Ok(took)
    }
}
