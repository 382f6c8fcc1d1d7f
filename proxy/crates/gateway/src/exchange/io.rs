//! Reading a request and writing an answer over pingora's server session, within bounds.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderName, HeaderValue, Version};
use mcp_codec::stream::StreamLimits;
use mcp_codec::{LongLine, Whose, sse};
use pingora_core::protocols::http::ServerSession;
use pingora_http::ResponseHeader;

use super::Context;
use super::head::{self, Refusal};
use crate::bodies::Held;
use crate::gateway::Gateway;
use crate::pipeline::{Cleared, Passed, ToClient};
use crate::reply::{self, code};
use crate::shares::Taken;

/// The client is gone or too slow; nothing more can be said to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// When a waiting answer first looks whether its client is still there.
const LOOK_AFTER: Duration = Duration::from_millis(5);
/// Where nothing else is configured.
const WRITE_WAIT: Duration = Duration::from_secs(30);

/// Extra headers of an answer.
pub type Extra = Vec<(HeaderName, HeaderValue)>;

/// Bytes of a body, and the room that they take.
#[derive(Default)]
pub struct Gathered {
    pub bytes: Bytes,
    pub held: Held,
}

/// A request's body, or as much of it as may be held.
pub enum Body {
    /// All of it.
    Whole(Gathered),
    /// Its beginning: it is longer than `message_bytes_max`, and may be streamed.
    Begun(Gathered),
}

/// Why a body was not read.
pub enum Unread {
    /// For how it came; nothing more of it is asked for.
    Refused(Refusal),
    /// For its length. What was read of it may say whose message it is, and so may the rest.
    Long(Refusal, Gathered),
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How long, and how many bytes, of a body that was refused are still taken.
const DISCARD_WAIT: Duration = Duration::from_secs(2);
const DISCARD_BYTES_MAX: usize = 8 << 20;

/// How much longer than what is held a body may be to be read for whose message it is. Many clients write the id last.
const SKIMMED_BYTES_OVER: usize = 64 << 20;
/// Most keys of open objects that are remembered meanwhile: no more memory than is free of each body.
const SKIMMED_KEYS_MAX: usize = 4096;
/// How long the rest of it may take.
const SKIM_WAIT: Duration = Duration::from_secs(10);
/// Bytes of it that are read before others get their turn.
const SKIMMED_PART_BYTES: usize = 256 << 10;

const TOO_LARGE: Refusal = Refusal::new(
    413,
    code::INVALID_REQUEST,
    "The message is larger than allowed.",
);
const NO_ROOM: Refusal = Refusal::new(
    503,
    code::UNAVAILABLE,
    "Too many bytes of messages are on their way; try again later (limits.bodies_bytes_max).",
);
const NO_ROOM_FOR_YOU: Refusal = Refusal::new(
    429,
    code::LIMITED,
    "Too many bytes of your messages are on their way; try again later (limits.bodies_bytes_per_principal_max).",
);

/// Reads the whole request body within the limits.
///
/// # Errors
/// 413 or 408, the connection broke, or there is no room for it.
pub async fn read_body(session: &mut ServerSession, context: &Context) -> Result<Gathered, Unread> {
    let bytes_max = context.snapshot.limits.message_bytes_max;
    match read(session, context, bytes_max as u64).await? {
        Body::Whole(body) => Ok(body),
        Body::Begun(begun) => Err(Unread::Long(TOO_LARGE, begun)),
    }
}

/// The same, or its beginning where it may be scanned while it arrives.
///
/// # Errors
/// The same.
pub async fn begin_body(session: &mut ServerSession, context: &Context) -> Result<Body, Unread> {
    let limits = &context.snapshot.limits;
    if !limits.streams() {
        return read_body(session, context).await.map(Body::Whole);
    }
    read(session, context, limits.streamed_bytes_max).await
}

async fn read(
    session: &mut ServerSession,
    context: &Context,
    declared_max: u64,
) -> Result<Body, Unread> {
    const TOO_SLOW: Refusal = Refusal::new(
        408,
        code::INVALID_REQUEST,
        "The request body did not arrive in time.",
    );
    let declared = session
        .get_header(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    let expects = session.get_header("expect").is_some();
    if let Some(len) = declared.filter(|len: &usize| *len as u64 > declared_max) {
        // Who asks before it sends, or would send too much of it, is told at once.
        let is_skimmed = !expects && len <= skimmed_bytes_max(context);
        return Err(match is_skimmed {
            true => Unread::Long(TOO_LARGE, Gathered::default()),
            false => TOO_LARGE.into(),
        });
    }
    if expects && session.write_continue_response().await.is_err() {
        return Err(TOO_SLOW.into());
    }
    let limits = &context.snapshot.limits;
    let read = read_chunks(session, context, declared);
    match tokio::time::timeout(Duration::from_millis(limits.body_timeout_ms), read).await {
        Ok(read) => read,
        Err(_) => Err(TOO_SLOW.into()),
    }
}

async fn read_chunks(
    session: &mut ServerSession,
    context: &Context,
    declared: Option<usize>,
) -> Result<Body, Unread> {
    let max = context.snapshot.limits.message_bytes_max;
    let mut held = Held::default();
    let Some(first) = next_chunk(session).await? else {
        let bytes = Bytes::new();
        return Ok(Body::Whole(Gathered { bytes, held }));
    };
    if first.len() > max {
        return Ok(Body::Begun(Gathered { bytes: first, held }));
    }
    if declared == Some(first.len()) {
        // The whole body came at once: no copy. The end of the body is already known.
        return Ok(Body::Whole(Gathered { bytes: first, held }));
    }
    let holder = context.holder();
    let mut body = BytesMut::with_capacity(declared.unwrap_or(0).max(first.len() * 2).min(max));
    body.extend_from_slice(&first);
    while let Some(chunk) = next_chunk(session).await? {
        let room = held.grow_to(body.len() + chunk.len(), &holder);
        body.extend_from_slice(&chunk);
        if let Err(taken) = room {
            let refusal = match taken {
                Taken::All => NO_ROOM,
                Taken::Share => NO_ROOM_FOR_YOU,
            };
            let bytes = body.freeze();
            return Err(Unread::Long(refusal, Gathered { bytes, held }));
        }
        if body.len() > max {
            let bytes = body.freeze();
            return Ok(Body::Begun(Gathered { bytes, held }));
        }
    }
    let bytes = body.freeze();
    Ok(Body::Whole(Gathered { bytes, held }))
}

async fn next_chunk(session: &mut ServerSession) -> Result<Option<Bytes>, Unread> {
    const MALFORMED: Refusal = Refusal::new(400, code::PARSE, "The request body is malformed.");
    let read = session.read_request_body().await;
    read.map_err(|_| MALFORMED.into())
}

/// Whose message a body is that is not held, of which `begun` was read: the rest is read as it comes, and none of it kept.
pub async fn whose(session: &mut ServerSession, context: &Context, begun: Gathered) -> Whose {
    let bytes_max = skimmed_bytes_max(context);
    let mut line = LongLine::within(StreamLimits {
        open_keys_max: SKIMMED_KEYS_MAX,
        ..StreamLimits::of(&context.snapshot.codec, bytes_max as u64)
    });
    let mut left = bytes_max.saturating_sub(begun.bytes.len());
    for part in begun.bytes.chunks(SKIMMED_PART_BYTES) {
        line.push(part);
        tokio::task::yield_now().await;
    }
    drop(begun);
    let rest = async {
        while let Some(piece) = session.read_request_body().await.ok()? {
            left = left.checked_sub(piece.len())?;
            line.push(&piece);
        }
        Some(())
    };
    let time = Duration::from_millis(context.snapshot.limits.body_timeout_ms).min(SKIM_WAIT);
    let is_whole = matches!(tokio::time::timeout(time, rest).await, Ok(Some(())));
    match line.so_far() {
        // An id may still come, or stand behind what was not understood: somebody may wait by it.
        Whose::Word if !is_whole || line.is_broken() => Whose::Unknown,
        whose => whose,
    }
}

fn skimmed_bytes_max(context: &Context) -> usize {
    let held_max = context.snapshot.limits.message_bytes_max;
    held_max.saturating_add(SKIMMED_BYTES_OVER)
}

/// Takes what still comes of a body that was refused, and keeps none of it. A connection that is closed over bytes that were not
/// read is reset, and who is still sending may then never see why. A stream of HTTP/2 is reset with its answer whole.
pub async fn discard_body(session: &mut ServerSession) {
    if session.req_header().version == Version::HTTP_2 {
        return;
    }
    let rest = async {
        let mut left = DISCARD_BYTES_MAX;
        while let Ok(Some(piece)) = session.read_request_body().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARD_WAIT, rest).await;
}

/// Sends a refusal as a JSON-RPC error with its HTTP status.
pub async fn refuse(
    session: &mut ServerSession,
    refusal: Refusal,
    id: Option<&mcp_codec::Id>,
    extra: Extra,
) -> Result<(), Gone> {
    let own = reply::error(id, refusal.code, &refusal.words());
    json(session, refusal.status, own.into_bytes(), extra).await
}

/// Sends a refusal in place of an answer. Where the client of a request would be lost by the status, that stands in the
/// error and HTTP says 200, as it does of a block.
pub async fn refuse_request(
    session: &mut ServerSession,
    refusal: Refusal,
    id: Option<&mcp_codec::Id>,
    retry_after_s: Option<u64>,
    mut extra: Extra,
) -> Result<(), Gone> {
    let status = refusal.status;
    if let Some(after_s) = retry_after_s {
        extra.push((RETRY_AFTER, HeaderValue::from(after_s)));
    }
    if id.is_none() || !head::is_lost_by(&session.req_header().headers, status) {
        return refuse(session, refusal, id, extra).await;
    }
    let own = reply::error_of_status(id, refusal.code, &refusal.words(), status, retry_after_s);
    json(session, 200, own.into_bytes(), extra).await
}

/// Sends Weir's own JSON words.
pub async fn json(
    session: &mut ServerSession,
    status: u16,
    body: Bytes,
    extra: Extra,
) -> Result<(), Gone> {
    let json = HeaderValue::from_static("application/json");
    whole(session, status, Some(json), body, extra).await
}

/// Sends a cleared message as a JSON body.
pub async fn cleared(
    session: &mut ServerSession,
    status: u16,
    message: &Cleared<ToClient>,
    extra: Extra,
) -> Result<(), Gone> {
    json(session, status, message.bytes().clone(), extra).await
}

/// Sends a status without a body.
pub async fn empty(session: &mut ServerSession, status: u16, extra: Extra) -> Result<(), Gone> {
    whole(session, status, None, Bytes::new(), extra).await
}

async fn whole(
    session: &mut ServerSession,
    status: u16,
    content_type: Option<HeaderValue>,
    body: Bytes,
    extra: Extra,
) -> Result<(), Gone> {
    let mut head =
        ResponseHeader::build_no_case(status, Some(6 + extra.len())).map_err(|_| Gone)?;
    if let Some(content_type) = content_type {
        insert(&mut head, CONTENT_TYPE, content_type)?;
        insert(
            &mut head,
            X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        )?;
    }
    if status != 204 {
        insert(&mut head, CONTENT_LENGTH, HeaderValue::from(body.len()))?;
    }
    for (name, value) in extra {
        insert(&mut head, name, value)?;
    }
    write_head(session, head).await?;
    write_body(session, body, true).await
}

/// Begins an event stream.
pub async fn begin_events(session: &mut ServerSession, extra: Extra) -> Result<(), Gone> {
    let mut head = ResponseHeader::build_no_case(200, Some(6 + extra.len())).map_err(|_| Gone)?;
    insert(
        &mut head,
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    )?;
    insert(
        &mut head,
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    )?;
    insert(&mut head, X_ACCEL_BUFFERING, HeaderValue::from_static("no"))?;
    if session.req_header().version == Version::HTTP_11 {
        insert(
            &mut head,
            TRANSFER_ENCODING,
            HeaderValue::from_static("chunked"),
        )?;
    }
    for (name, value) in extra {
        insert(&mut head, name, value)?;
    }
    write_head(session, head).await
}

/// Begins a JSON body whose length is not known.
pub async fn begin_json(session: &mut ServerSession, extra: Extra) -> Result<(), Gone> {
    let mut head = ResponseHeader::build_no_case(200, Some(3 + extra.len())).map_err(|_| Gone)?;
    let json = HeaderValue::from_static("application/json");
    insert(&mut head, CONTENT_TYPE, json)?;
    let nosniff = HeaderValue::from_static("nosniff");
    insert(&mut head, X_CONTENT_TYPE_OPTIONS, nosniff)?;
    if session.req_header().version == Version::HTTP_11 {
        let chunked = HeaderValue::from_static("chunked");
        insert(&mut head, TRANSFER_ENCODING, chunked)?;
    }
    for (name, value) in extra {
        insert(&mut head, name, value)?;
    }
    write_head(session, head).await
}

/// Writes a piece of a message that passes in steps; waits until the client takes it.
pub async fn passed(session: &mut ServerSession, piece: &Passed<ToClient>) -> Result<(), Gone> {
    match piece.bytes().is_empty() {
        true => Ok(()),
        false => chunk(session, piece.bytes().clone()).await,
    }
}

/// Begins an event whose data passes in steps. It has no line breaks.
pub async fn begin_event(session: &mut ServerSession, id: Option<&str>) -> Result<(), Gone> {
    let event = sse::Event {
        event: Some("message".into()),
        id: id.map(Into::into),
        ..sse::Event::default()
    };
    let mut out = Vec::new();
    sse::encode(&mut out, &event);
    // Without the empty line that ends it.
    out.pop();
    out.extend_from_slice(b"data: ");
    chunk(session, out.into()).await
}

/// Ends such an event: only now it is one.
pub async fn end_event(session: &mut ServerSession) -> Result<(), Gone> {
    chunk(session, Bytes::from_static(b"\n\n")).await
}

/// Writes one event at once.
pub async fn event(session: &mut ServerSession, event: &sse::Event) -> Result<(), Gone> {
    let mut out = Vec::with_capacity(64 + event.data.as_ref().map_or(0, Bytes::len));
    sse::encode(&mut out, event);
    chunk(session, out.into()).await
}

/// Writes a comment that keeps the stream open.
pub async fn keep_alive(session: &mut ServerSession) -> Result<(), Gone> {
    chunk(session, Bytes::from_static(sse::KEEP_ALIVE)).await
}

/// Ends a stream.
pub async fn end(session: &mut ServerSession) -> Result<(), Gone> {
    write_body(session, Bytes::new(), true).await
}

/// Resolves when the client closes its side, or when Weir ends and can wait for the answer no longer.
///
/// Most answers come sooner than a client can leave, and looking costs a system call; so the first
/// look is a little later. The timer is pingora's, which ticks every 10 ms whether somebody waits or
/// not: a timer of the runtime that is due before all others interrupts its sleep to say so, a write
/// and a wake-up for each call.
pub async fn closed(session: &mut ServerSession, gateway: &Gateway) {
    pingora_timeout::sleep(LOOK_AFTER).await;
    tokio::select! {
        () = left(session) => {}
        () = gateway.was_cut() => {}
    }
}

async fn left(session: &mut ServerSession) {
    loop {
        // `Ok` would be body bytes after the body's end, which pingora never gives out.
        if session.read_body_or_idle(true).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn chunk(session: &mut ServerSession, bytes: Bytes) -> Result<(), Gone> {
    write_body(session, bytes, false).await
}

async fn write_head(session: &mut ServerSession, head: ResponseHeader) -> Result<(), Gone> {
    let wait = session.get_write_timeout().unwrap_or(WRITE_WAIT);
    let write = session.write_response_header(Box::new(head));
    in_time(wait, write).await
}

async fn write_body(session: &mut ServerSession, bytes: Bytes, end: bool) -> Result<(), Gone> {
    let wait = session.get_write_timeout().unwrap_or(WRITE_WAIT);
    let write = session.write_response_body(bytes, end);
    in_time(wait, write).await
}

/// A client that takes nothing for so long is cut, whatever pingora's own timer covers.
async fn in_time(
    wait: Duration,
    write: impl Future<Output = pingora_core::Result<()>>,
) -> Result<(), Gone> {
    match tokio::time::timeout(wait, write).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

fn insert(head: &mut ResponseHeader, name: HeaderName, value: HeaderValue) -> Result<(), Gone> {
    head.append_header(name, value)
        .map(|_| ())
        .map_err(|_| Gone)
}

const X_CONTENT_TYPE_OPTIONS: HeaderName = http::header::X_CONTENT_TYPE_OPTIONS;
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
