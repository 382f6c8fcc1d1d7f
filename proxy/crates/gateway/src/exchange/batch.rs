//! Batches of revision 2025-03-26: each message is judged and sent alone, so that what the upstream
//! gets is never an array; the answers go back as one.
//!
//! All of it is gathered before the first byte goes down, so all of it together is bounded as one message is. What
//! does not fit is answered by an error, and nothing after it goes up.

use std::pin::Pin;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use mcp_codec::{Id, Message, MessageKind};
use pingora_core::protocols::http::ServerSession;
use tokio::sync::mpsc;

use super::head::RequestHead;
use super::io::{self, Extra, Gone};
use super::post::Post;
use super::trail::Trail;
use super::{After, Context, Refusal, drive, post};
use crate::bodies::Held;
use crate::pipeline::{Cleared, ToClient};
use crate::reply::{self, code};
use crate::session::{Session, Turn};

/// Two answers could not be told apart, nor tied to their tools.
const SAME_ID: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "Two messages of the batch have the same id.",
);

/// Revision 2025-03-26, lifecycle: it must not be part of a batch; and a batch has no session to open.
const HANDSHAKE: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "A batch may not hold an initialize request.",
);

/// One of the messages got more than the rest of the bound.
const TOO_LARGE: Refusal = Refusal::new(
    200,
    code::LIMITED,
    "The answers to the batch are larger than allowed (limits.message_bytes_max).",
);

/// Answers that wait to be gathered; above it the upstream waits.
const CHANNEL_MAX: usize = 64;

/// Serves a batch.
pub(super) async fn serve(
    context: Context,
    session: &mut ServerSession,
    head: &RequestHead,
    own: Option<Arc<Session>>,
    messages: Vec<Message>,
    held: Held,
    extra: Extra,
) -> Result<After, Gone> {
    if let Some(refusal) = refusal_of(&messages) {
        return post::refuse(&context, session, refusal, None, extra).await;
    }
    let mut answers = Answers::new(context.snapshot.limits.message_bytes_max);
    {
        let mut closed = std::pin::pin!(io::closed(session, &context.gateway));
        for message in messages {
            let mut trail = Trail::new(&context.server);
            trail.begun(
                &context,
                own.as_deref(),
                &head.trace,
                message.doc().source().len() as u64,
            );
            let post = Post {
                context: context.clone(),
                head: head.for_batch(),
                own: own.clone(),
                trail,
                extra: Extra::new(),
                on_pipe: false,
                compared: None,
                // The messages are pieces of one body.
                held: Held::default(),
            };
            one(post, message, &mut answers, closed.as_mut()).await?;
        }
    }
    drop(held);
    let Some(body) = answers.into_body() else {
        io::empty(session, 202, extra).await?;
        return Ok(After::Keep);
    };
    io::json(session, 200, body, extra).await?;
    Ok(After::Keep)
}

/// Why a batch is refused as a whole.
pub(super) fn refusal_of(messages: &[Message]) -> Option<Refusal> {
    let mut ids: Vec<_> = messages.iter().filter_map(Message::id).collect();
    ids.sort();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Some(SAME_ID);
    }
    let initializes = |m: &Message| m.method() == Some("initialize");
    messages.iter().any(initializes).then_some(HANDSHAKE)
}

/// One message of the batch, and what comes of it.
async fn one(
    post: Post,
    message: Message,
    answers: &mut Answers,
    mut closed: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), Gone> {
    let id = (message.kind() == MessageKind::Request)
        .then(|| message.id().cloned())
        .flatten();
    let (out, mut said) = mpsc::channel(CHANNEL_MAX);
    if answers.full {
        answers.refuse(id.as_ref());
        drop(said);
        drive::refuse(post, &message, TOO_LARGE, &out).await;
        return Ok(());
    }
    let begun = answers.array.len();
    let work = async move { drive::drive(post, message, Turn::default(), &out).await };
    // Where this ends early, the channel closes and the work ends: nobody waits for it.
    let gather = async {
        loop {
            tokio::select! {
                biased;
                answer = said.recv() => match answer {
                    Some(answer) if answers.push(&answer) => {}
                    Some(_) => {
                        answers.array.truncate(begun);
                        answers.refuse(id.as_ref());
                        break;
                    }
                    None => return Ok(()),
                },
                () = closed.as_mut() => {
                    said.close();
                    return Err(Gone);
                }
            }
        }
        said.close();
        Ok(())
    };
    let ((), gathered) = tokio::join!(work, gather);
    gathered
}

/// What goes back, as it grows.
struct Answers {
    array: BytesMut,
    bytes_max: usize,
    /// Something did not fit: only refusals follow, as many as the batch has messages.
    full: bool,
}

impl Answers {
    fn new(bytes_max: usize) -> Self {
        Self {
            array: BytesMut::new(),
            bytes_max,
            full: false,
        }
    }

    /// Adds an answer; false when it does not fit.
    fn push(&mut self, answer: &Cleared<ToClient>) -> bool {
        // Beside it a bracket or a comma before it, and the bracket at the end.
        if self.array.len() + answer.bytes().len() + 2 > self.bytes_max {
            return false;
        }
        self.add(answer.bytes());
        true
    }

    /// Adds the refusal of a message that waits for an answer.
    fn refuse(&mut self, id: Option<&Id>) {
        self.full = true;
        if let Some(id) = id {
            let own = reply::error(Some(id), TOO_LARGE.code, TOO_LARGE.text);
            self.add(&own.into_bytes());
        }
    }

    fn add(&mut self, answer: &[u8]) {
        self.array
            .put_u8(if self.array.is_empty() { b'[' } else { b',' });
        self.array.extend_from_slice(answer);
    }

    /// The whole; `None` when nothing was answered.
    fn into_body(mut self) -> Option<Bytes> {
        if self.array.is_empty() {
            return None;
        }
        self.array.put_u8(b']');
        Some(self.array.freeze())
    }
}
