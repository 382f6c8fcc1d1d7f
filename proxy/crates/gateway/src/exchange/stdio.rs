//! stdio on both sides: `weir stdio` stands between a desktop client and the server it starts.
//!
//! ```text
//! client stdout -> lines -> [the line] -> server stdin
//! client stdin  <- lines <- [the line] <- server stdout
//! ```
//!
//! Messages go up in the order they came; each answer is brought back as it arrives.

use std::sync::Arc;

use bytes::Bytes;
use mcp_codec::lines::Decoder;
use mcp_codec::{BatchRule, Payload};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::head::RequestHead;
use super::io::Extra;
use super::post::Post;
use super::trail::Trail;
use super::{Context, TOO_MANY_CALLS, drive, legacy};
use crate::gateway::Gateway;
use crate::pipeline::{Cleared, ToClient};
use crate::reply;
use crate::session::Session;

/// Answers that may wait for a slow client.
const CHANNEL_MAX: usize = 64;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// Why it ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StdioEnd {
    /// The client closed its side.
    #[error("the client closed its side")]
    Client,
    /// The server ended.
    #[error("the server ended")]
    Server,
    /// The server could not be started.
    #[error("the server could not be started")]
    NotStarted,
    /// There is no such server, or it asks for a key.
    #[error("there is no open server to front")]
    NoServer,
}

/// Fronts the gateway's single server on a pair of pipes until either side ends.
pub async fn front_stdio(
    gateway: &Arc<Gateway>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> StdioEnd {
    let snapshot = gateway.snapshot();
    let server = gateway
        .single()
        .and_then(|id| snapshot.server(id.as_str()))
        .cloned();
    let principal = snapshot.keys().open().cloned();
    let (Some(server), Some(principal)) = (server, principal) else {
        return StdioEnd::NoServer;
    };
    let context = Context {
        gateway: Arc::clone(gateway),
        snapshot,
        server,
        principal,
        client: None,
    };
    let (channel, answers) = mpsc::channel(CHANNEL_MAX);
    let Ok(own) = legacy::open(&context, channel.clone()).await else {
        return StdioEnd::NotStarted;
    };
    let mut stopping = gateway.stopping();
    let end = tokio::select! {
        end = up(&context, &own, input, &channel) => end,
        end = down(output, answers) => end,
        () = legacy::listen(context.clone(), Arc::clone(&own)) => StdioEnd::Server,
        () = Gateway::stopped(&mut stopping) => StdioEnd::Client,
    };
    gateway.sessions.close(&own);
    if let Some(duplex) = &own.duplex {
        duplex.stop().await;
    }
    end
}

async fn up(
    context: &Context,
    own: &Arc<Session>,
    mut input: impl AsyncRead + Unpin,
    channel: &mpsc::Sender<Cleared<ToClient>>,
) -> StdioEnd {
    let mut lines = Decoder::new(context.snapshot.limits.message_bytes_max);
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = match input.read(&mut buffer).await {
            Ok(0) | Err(_) => return StdioEnd::Client,
            Ok(read) => read,
        };
        lines.push(&buffer[..read]);
        while let Some(line) = lines.next() {
            match line {
                Ok(line) => one(context, own, line, channel).await,
                Err(_) => refuse(channel, "The message is larger than allowed.").await,
            }
        }
    }
}

async fn one(
    context: &Context,
    own: &Arc<Session>,
    line: Bytes,
    channel: &mpsc::Sender<Cleared<ToClient>>,
) {
    let size = line.len() as u64;
    let message = match mcp_codec::decode(line, &context.snapshot.codec, BatchRule::Refused) {
        Ok(Payload::Single(message)) => message,
        Ok(Payload::Batch(_)) => return,
        Err(error) => {
            let id = error.recovered_id.as_ref();
            let own = reply::error(id, error.json_rpc_code(), error.client_text());
            let _ = channel.send(Cleared::of_ours(own)).await;
            return;
        }
    };
    // The snapshot in force now: a reload reaches a long-lived pipe too.
    let snapshot = context.gateway.snapshot();
    let server = snapshot.server(&own.server).cloned();
    let Some(server) = server else { return };
    let context = Context {
        snapshot,
        server,
        ..context.clone()
    };
    let mut trail = Trail::new(&context.server);
    trail.begun(&context, Some(own), &Default::default(), size);
    let head = RequestHead::default();
    let post = Post {
        context,
        head,
        own: Some(Arc::clone(own)),
        trail,
        extra: Extra::new(),
    };
    let slot = own.channel.as_ref().and_then(|c| c.slot(message.kind()));
    let Some(slot) = slot else {
        return drive::refuse(post, &message, TOO_MANY_CALLS, channel).await;
    };
    if let Some(sent) = drive::send_up(post, message, channel).await {
        let channel = channel.clone();
        tokio::spawn(async move {
            sent.bring_back(&channel).await;
            drop(slot);
        });
    }
}

async fn refuse(channel: &mpsc::Sender<Cleared<ToClient>>, text: &str) {
    let own = reply::error(None, reply::code::INVALID_REQUEST, text);
    let _ = channel.send(Cleared::of_ours(own)).await;
}

async fn down(
    mut output: impl AsyncWrite + Unpin,
    mut answers: mpsc::Receiver<Cleared<ToClient>>,
) -> StdioEnd {
    while let Some(answer) = answers.recv().await {
        let mut line = Vec::with_capacity(answer.bytes().len() + 1);
        if mcp_codec::lines::encode(&mut line, answer.bytes()).is_err() {
            continue;
        }
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return StdioEnd::Client;
        }
    }
    StdioEnd::Client
}
