//! Batches of revision 2025-03-26: each message is judged and sent alone, so that what the upstream
//! gets is never an array; the answers go back as one.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use mcp_codec::Message;
use pingora_core::protocols::http::ServerSession;
use tokio::sync::mpsc;

use super::head::RequestHead;
use super::io::{self, Extra, Gone};
use super::post::Post;
use super::trail::Trail;
use super::{After, Context, Refusal, drive, post};
use crate::pipeline::{Cleared, ToClient};
use crate::reply::code;
use crate::session::Session;

/// Two answers could not be told apart, nor tied to their tools.
const SAME_ID: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "Two messages of the batch have the same id.",
);

/// Serves a batch.
pub(super) async fn serve(
    context: Context,
    session: &mut ServerSession,
    head: &RequestHead,
    own: Option<Arc<Session>>,
    messages: Vec<Message>,
    extra: Extra,
) -> Result<After, Gone> {
    let mut ids: Vec<_> = messages.iter().filter_map(Message::id).collect();
    ids.sort();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return post::refuse(&context, session, SAME_ID, None, extra).await;
    }
    let (out, mut answers) = mpsc::channel(64);
    let work = async move {
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
            };
            drive::drive(post, message, &out).await;
        }
    };
    let collect = async {
        let mut array = BytesMut::new();
        while let Some(answer) = answers.recv().await {
            push(&mut array, &answer);
        }
        array
    };
    let ((), array) = tokio::join!(work, collect);
    if array.is_empty() {
        io::empty(session, 202, extra).await?;
        return Ok(After::Keep);
    }
    let mut body = BytesMut::with_capacity(array.len() + 1);
    body.extend_from_slice(&array);
    body.put_u8(b']');
    io::json(session, 200, Bytes::from(body), extra).await?;
    Ok(After::Keep)
}

fn push(array: &mut BytesMut, answer: &Cleared<ToClient>) {
    array.put_u8(if array.is_empty() { b'[' } else { b',' });
    array.extend_from_slice(answer.bytes());
}
