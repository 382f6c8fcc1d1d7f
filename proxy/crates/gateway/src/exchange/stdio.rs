//! stdio on both sides: `weir stdio` stands between a desktop client and the server it starts.
//!
//! ```text
//! client stdout -> lines -> [the line] -> server stdin
//! client stdin  <- lines <- [the line] <- server stdout
//! ```
//!
//! Messages go up in the order they came; each answer is brought back as it arrives. A client that closes its side still
//! hears the answers to what it asked, within `limits.drain_timeout_ms`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_codec::lines::Decoder;
use mcp_codec::{BatchRule, Id, Payload, Whose};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::head::RequestHead;
use super::io::Extra;
use super::post::Post;
use super::trail::Trail;
use super::{Context, TOO_MANY_CALLS, drive, legacy};
use crate::bodies::Held;
use crate::gateway::Gateway;
use crate::pipeline::{Cleared, ToClient};
use crate::reply;
use crate::session::{Session, Turn};
use crate::upstream::Ended;

/// Answers that may wait for a slow client.
const CHANNEL_MAX: usize = 64;
/// How long calls that nobody waits for any more may take to close their records.
const RECORDS_WAIT: Duration = Duration::from_secs(2);
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// Why it ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StdioEnd {
    /// The client closed its side.
    #[error("the client closed its side")]
    Client,
    /// The server ended: how, where that is known.
    #[error("the server ended{}", .0.as_ref().map_or(String::new(), |how| format!(": {how}")))]
    Server(Option<String>),
    /// The server could not be started; the log says why.
    #[error("the server could not be started")]
    NotStarted,
    /// There is no such server, or it asks for a key.
    #[error("there is no open server to front")]
    NoServer,
}

/// What comes from a client.
pub type Input = Box<dyn AsyncRead + Unpin>;
/// What goes to it.
pub type Output = Box<dyn AsyncWrite + Unpin>;

/// Fronts the gateway's single server on a pair of pipes until either side ends.
pub fn front_stdio(gateway: &Arc<Gateway>, input: Input, output: Output) -> FrontingStdio<'_> {
    Box::pin(front(gateway, input, output))
}

/// Boxed for the same reason as [`crate::Serving`].
pub type FrontingStdio<'g> = Pin<Box<dyn Future<Output = StdioEnd> + 'g>>;

async fn front(gateway: &Arc<Gateway>, input: Input, output: Output) -> StdioEnd {
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
    let front = Front {
        context,
        own: Arc::clone(&own),
        channel,
        under_way: JoinSet::new(),
    };
    let end = front.carry(input, output, answers).await;
    gateway.sessions.close(&own);
    let ended = match &own.duplex {
        Some(duplex) => duplex.stop().await,
        None => None,
    };
    which_end(end, ended)
}

/// Both may end at the same moment, and which is seen first is chance. A server that failed and never said a word failed by
/// itself, whatever the client did.
fn which_end(end: StdioEnd, ended: Option<Ended>) -> StdioEnd {
    let Some(ended) = ended else { return end };
    let failed = ended.exit.code.is_some_and(|code| code != 0);
    match end {
        StdioEnd::Server(_) => StdioEnd::Server(Some(ended.exit.to_string())),
        StdioEnd::Client if failed && !ended.spoke => {
            StdioEnd::Server(Some(ended.exit.to_string()))
        }
        end => end,
    }
}

/// The two pipes, and what goes between them.
struct Front {
    context: Context,
    own: Arc<Session>,
    channel: mpsc::Sender<Cleared<ToClient>>,
    /// Answers that are brought back. There are at most as many as the channel has slots.
    under_way: JoinSet<()>,
}

impl Front {
    /// Both ways until either side ends; what was asked before that is still answered.
    async fn carry(
        mut self,
        input: Input,
        output: Output,
        answers: mpsc::Receiver<Cleared<ToClient>>,
    ) -> StdioEnd {
        let gateway = Arc::clone(&self.context.gateway);
        let mut stopping = gateway.stopping();
        // A task, so that the server is heard all the time: what nobody takes would hold up the answers behind it.
        let unasked = legacy::listen(self.context.clone(), Arc::clone(&self.own));
        let mut unasked = AbortOnDrop(tokio::spawn(unasked));
        let (last, no_more) = oneshot::channel();
        let mut down = Box::pin(down(output, answers, no_more));
        let (end, is_heard) = tokio::select! {
            end = self.up(input) => (end, true),
            end = &mut down => (end, false),
            _ = &mut unasked.0 => (StdioEnd::Server(None), true),
            () = Gateway::stopped(&mut stopping) => (StdioEnd::Client, false),
        };
        if is_heard {
            let rest = async {
                let answered = async {
                    self.answered().await;
                    let _ = last.send(());
                };
                tokio::join!(answered, &mut down)
            };
            let drain_ms = gateway.snapshot().limits.drain_timeout_ms;
            tokio::select! {
                _ = rest => {}
                () = tokio::time::sleep(Duration::from_millis(drain_ms)) => {}
                () = Gateway::stopped(&mut stopping) => {}
            }
        }
        // Whoever still waits for an answer sees that nobody takes it, and closes its record.
        drop(down);
        let _ = tokio::time::timeout(RECORDS_WAIT, self.answered()).await;
        end
    }

    async fn answered(&mut self) {
        while self.under_way.join_next().await.is_some() {}
    }

    async fn up(&mut self, mut input: Input) -> StdioEnd {
        let snapshot = &self.context.snapshot;
        let mut lines =
            Decoder::new(snapshot.limits.message_bytes_max).reading_long(snapshot.codec);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = match input.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => read,
            };
            lines.push(&buffer[..read]);
            while let Some(line) = lines.next() {
                // One that is too long is answered once it is known whose it is.
                if let Ok(line) = line {
                    self.one(line).await;
                }
            }
            while let Some(whose) = lines.next_skipped() {
                self.too_long(whose).await;
            }
        }
        let unfinished = lines.finish().is_err();
        if let Some(whose) = lines.next_skipped() {
            self.too_long(whose).await;
        } else if unfinished {
            self.refuse(None, "The last message has no line end.").await;
        }
        StdioEnd::Client
    }

    async fn one(&mut self, line: Bytes) {
        let (context, own, channel) = (&self.context, &self.own, &self.channel);
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
            on_pipe: true,
            compared: None,
            // One client, whose lines are read one by one.
            held: Held::default(),
        };
        let slot = own.channel.as_ref().and_then(|c| c.slot(message.kind()));
        let Some(slot) = slot else {
            return drive::refuse(post, &message, TOO_MANY_CALLS, channel).await;
        };
        if let Some(sent) = drive::send_up(post, message, Turn::default(), channel).await {
            let channel = channel.clone();
            while self.under_way.try_join_next().is_some() {}
            self.under_way.spawn(async move {
                sent.bring_back(&channel).await;
                drop(slot);
            });
        }
    }

    /// Nobody waits for an answer to an answer or to a word.
    async fn too_long(&self, whose: Whose) {
        let id = match &whose {
            Whose::Call(id) => Some(id),
            Whose::Unknown | Whose::Nobody => None,
            Whose::Answer(_) | Whose::Word => {
                tracing::warn!(
                    "a message of the client is longer than limits.message_bytes_max: it is dropped"
                );
                return;
            }
        };
        let text = "The message is larger than limits.message_bytes_max.";
        self.refuse(id, text).await;
    }

    async fn refuse(&self, id: Option<&Id>, text: &str) {
        let own = reply::error(id, reply::code::INVALID_REQUEST, text);
        let _ = self.channel.send(Cleared::of_ours(own)).await;
    }
}

/// Ends a task with whoever waits for it.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Answers go down until the client takes none; or, once there will be no more, until the last is written.
async fn down(
    mut output: Output,
    mut answers: mpsc::Receiver<Cleared<ToClient>>,
    mut no_more: oneshot::Receiver<()>,
) -> StdioEnd {
    loop {
        let answer = tokio::select! {
            biased;
            answer = answers.recv() => answer,
            _ = &mut no_more, if !answers.is_closed() => {
                answers.close();
                continue;
            }
        };
        let Some(answer) = answer else {
            return StdioEnd::Client;
        };
        let mut line = Vec::with_capacity(answer.bytes().len() + 1);
        if mcp_codec::lines::encode(&mut line, answer.bytes()).is_err() {
            continue;
        }
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return StdioEnd::Client;
        }
    }
}
