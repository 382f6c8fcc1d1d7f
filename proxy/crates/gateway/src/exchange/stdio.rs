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
use domain::ProtocolVersion;
use mcp_codec::lines::Decoder;
use mcp_codec::{BatchRule, Id, Message, Payload, Whose};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::head::RequestHead;
use super::io::Extra;
use super::post::Post;
use super::trail::Trail;
use super::{Context, Refusal, TOO_MANY_CALLS, batch, drive, legacy};
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
const TOO_LARGE: Refusal = Refusal::new(
    413,
    reply::code::INVALID_REQUEST,
    "The message is larger than limits.message_bytes_max.",
);
const UNFINISHED: Refusal = Refusal::new(
    400,
    reply::code::INVALID_REQUEST,
    "The last message has no line end.",
);
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
            self.refuse(None, UNFINISHED, 0).await;
        }
        StdioEnd::Client
    }

    async fn one(&mut self, line: Bytes) {
        let size = line.len() as u64;
        let agreed = self.own.calls.agreed();
        let rule = match agreed.is_some_and(ProtocolVersion::has_batches) {
            true => BatchRule::Allowed,
            false => BatchRule::Refused,
        };
        match mcp_codec::decode(line, &self.context.snapshot.codec, rule) {
            Ok(Payload::Single(message)) => {
                let channel = self.channel.clone();
                self.send_up(message, &channel).await;
            }
            Ok(Payload::Batch(messages)) => self.batch(messages, size).await,
            Err(error) => {
                let text = error.client_text();
                match &error.whose {
                    Whose::Answer(id) => self.drop_answer(id, text, size).await,
                    _ => {
                        let refusal = Refusal::new(400, error.json_rpc_code(), text);
                        self.refuse(error.recovered_id.as_ref(), refusal, size)
                            .await;
                    }
                }
            }
        }
    }

    /// Each message goes up alone; the answers go back as one.
    async fn batch(&mut self, messages: Vec<Message>, size: u64) {
        if let Some(refusal) = batch::refusal_of(&messages) {
            return self.refuse(None, refusal, size).await;
        }
        let (out, said) = mpsc::channel(CHANNEL_MAX);
        let bytes_max = self.context.snapshot.limits.message_bytes_max;
        self.under_way
            .spawn(gather(said, self.channel.clone(), bytes_max));
        for message in messages {
            self.send_up(message, &out).await;
        }
    }

    /// One message; what comes of it goes into `out`.
    async fn send_up(&mut self, message: Message, out: &mpsc::Sender<Cleared<ToClient>>) {
        let Some(context) = self.context_now() else {
            return;
        };
        let mut trail = Trail::new(&context.server);
        let size = message.doc().source().len() as u64;
        trail.begun(&context, Some(&self.own), &Default::default(), size);
        let post = Post {
            context,
            head: RequestHead::default(),
            own: Some(Arc::clone(&self.own)),
            trail,
            extra: Extra::new(),
            on_pipe: true,
            compared: None,
            // One client, whose lines are read one by one.
            held: Held::default(),
        };
        let places = self.own.channel.as_ref();
        let Some(slot) = places.and_then(|c| c.slot(message.kind())) else {
            return drive::refuse(post, &message, TOO_MANY_CALLS, out).await;
        };
        if let Some(sent) = drive::send_up(post, message, Turn::default(), out).await {
            let out = out.clone();
            while self.under_way.try_join_next().is_some() {}
            self.under_way.spawn(async move {
                sent.bring_back(&out).await;
                drop(slot);
            });
        }
    }

    /// With the snapshot in force now: a reload reaches a long-lived pipe too.
    fn context_now(&self) -> Option<Context> {
        let snapshot = self.context.gateway.snapshot();
        let server = snapshot.server(&self.own.server).cloned()?;
        Some(Context {
            snapshot,
            server,
            ..self.context.clone()
        })
    }

    async fn too_long(&self, whose: Whose) {
        match &whose {
            Whose::Call(id) => self.refuse(Some(id), TOO_LARGE, 0).await,
            Whose::Unknown | Whose::Nobody => self.refuse(None, TOO_LARGE, 0).await,
            Whose::Answer(id) => self.drop_answer(id, TOO_LARGE.text, 0).await,
            // Nobody waits for an answer to a word.
            Whose::Word => {
                tracing::warn!(
                    "a message of the client is longer than limits.message_bytes_max: it is dropped"
                );
                self.record_refused(&TOO_LARGE, 0).await;
            }
        }
    }

    /// An answer of the client that is none. It has the id of a question of the server's: an error under it would pass for an
    /// answer to whatever call of the client has the same. An id that no question waits by is text of the client that nobody
    /// looked through: it goes nowhere.
    async fn drop_answer(&self, id: &Id, text: &'static str, size: u64) {
        let is_asked = self.own.calls.answered_for_client(id);
        tracing::warn!(
            reason = text,
            is_asked,
            "an answer of the client is not accepted; a server that asked is told so"
        );
        let refusal = Refusal::new(400, reply::code::INVALID_REQUEST, text);
        self.record_refused(&refusal, size).await;
        let Some(duplex) = self.own.duplex.as_ref().filter(|_| is_asked) else {
            return;
        };
        let own = reply::error(
            Some(id),
            refusal.code,
            "The client's answer was not accepted.",
        );
        // One that is gone has nobody who waits.
        let _ = duplex.send(&Cleared::of_ours(own)).await;
    }

    async fn refuse(&self, id: Option<&Id>, refusal: Refusal, size: u64) {
        self.record_refused(&refusal, size).await;
        let own = reply::error(id, refusal.code, &refusal.words());
        let _ = self.channel.send(Cleared::of_ours(own)).await;
    }

    async fn record_refused(&self, refusal: &Refusal, size: u64) {
        let Some(context) = self.context_now() else {
            return;
        };
        let mut trail = Trail::new(&context.server);
        trail.begun(&context, Some(&self.own), &Default::default(), size);
        trail.refused(refusal.text);
        let (snapshot, server) = (&context.snapshot, &context.server);
        let _ = trail
            .close(&context.gateway, snapshot, server, refusal.status)
            .await;
    }
}

/// Gathers the answers to a batch; what else is said on the way goes down at once. Once they are as long as a message may be,
/// each goes down alone.
async fn gather(
    mut said: mpsc::Receiver<Cleared<ToClient>>,
    channel: mpsc::Sender<Cleared<ToClient>>,
    bytes_max: usize,
) {
    let (mut answers, mut bytes) = (Vec::new(), 1);
    while let Some(message) = said.recv().await {
        let is_answer = message.message().is_none_or(|m| m.method().is_none());
        let more = message.bytes().len() + 1;
        if is_answer && bytes + more <= bytes_max {
            bytes += more;
            answers.push(message);
        } else if channel.send(message).await.is_err() {
            return;
        }
    }
    if !answers.is_empty() {
        let _ = channel.send(Cleared::together(&answers)).await;
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
