//! GET: the listen stream of a handshake session, and the resumption of a stream that broke.

use std::sync::Arc;
use std::time::Duration;

use audit_log::UpstreamOutcome;
use bytes::Bytes;
use domain::{Direction, Era};
use http::HeaderValue;
use mcp_codec::Message;
use mcp_codec::sse::Event;
use pingora_core::protocols::http::ServerSession;

use super::attribute::Tie;
use super::call::{Down, Halt, Item, Origin, Resumed, Source, Step};
use super::forward::recorded_as;
use super::head::{self, Refusal, RequestHead};
use super::io::{self, Extra, Gone};
use super::trail::Trail;
use super::{After, Context, SESSION_NOT_FOUND, post, prepare, pump};
use crate::gateway::Gateway;
use crate::pipeline::{self, Decoded, HeaderLeaf, Release, ToServer};
use crate::reply::code;
use crate::session::{Calls, Session};
use crate::upstream::{Answer, Fault, Link, Purpose, UpstreamHeaders, Verb};

const NO_STREAM: Refusal = Refusal::new(
    405,
    code::INVALID_REQUEST,
    "There is no stream to listen to here.",
);

const UNKNOWN_VERSION: Refusal = Refusal::new(
    400,
    code::UNSUPPORTED_VERSION,
    "This protocol version is not supported.",
);

const BLOCKED: Refusal = Refusal::new(
    400,
    code::BLOCKED,
    "Weir blocked this request: policy does not allow its Last-Event-ID.",
);

const ALLOW_POST: (http::HeaderName, HeaderValue) = (
    http::header::ALLOW,
    HeaderValue::from_static("POST, DELETE, OPTIONS"),
);

/// Serves a GET.
pub(super) async fn listen(
    context: Context,
    session: &mut ServerSession,
    mut extra: Extra,
) -> Result<After, Gone> {
    let head = match RequestHead::parse(&session.req_header().headers) {
        Ok(head) => head,
        Err(refusal) => return post::refuse(&context, session, refusal, None, extra).await,
    };
    if head.known_version() == Some(domain::ProtocolVersion::V2026_07_28) {
        extra.push(ALLOW_POST);
        return post::refuse(&context, session, NO_STREAM, None, extra).await;
    }
    if head.version.is_some() && head.known_version().is_none() {
        return post::refuse(&context, session, UNKNOWN_VERSION, None, extra).await;
    }
    let own = match head.session_id.as_deref().map(|id| context.session(id)) {
        None => None,
        Some(Some(own)) => Some(own),
        Some(None) => {
            return post::refuse(&context, session, SESSION_NOT_FOUND, None, extra).await;
        }
    };
    if let Err(limited) = prepare::word_may_pass(&context) {
        return post::limited(&context, session, limited, extra).await;
    }
    let _slot = match context.stream() {
        Ok(slot) => slot,
        Err(refusal) => {
            extra.push((http::header::RETRY_AFTER, HeaderValue::from_static("5")));
            return post::refuse(&context, session, refusal, None, extra).await;
        }
    };
    let mut trail = Trail::new(&context.server);
    trail.begun(&context, own.as_deref(), &head.trace, 0);
    trail.spoken(Era::Handshake, head.known_version());
    if !may_resume(&context, own.as_deref(), &head, &mut trail) {
        close(&context, trail, 400).await;
        io::refuse(session, BLOCKED, None, extra).await?;
        return Ok(After::Keep);
    }
    trail.upstream_asked();
    let (source, upstream) = match open(&context, &head, own.as_deref(), session).await {
        Ok(opened) => opened,
        Err(why) => return not_opened(&context, session, why, trail, extra).await,
    };
    if io::begin_events(session, extra).await.is_err() {
        return left(&context, trail).await;
    }
    let calls = match &own {
        Some(own) => Arc::clone(&own.calls),
        None => Arc::new(Calls::new(context.snapshot.limits.pending_calls_max)),
    };
    let resumed = head.last_event_id.as_deref();
    let resumed = resumed.map(|id| Resumed::of(calls.by_event(id)));
    let down = Down {
        resumed: resumed.as_ref(),
        ..Down::unasked(&context, &calls)
    };
    let ended = carry(&down, source, &upstream, session, &mut trail).await;
    trail.upstream_done(UpstreamOutcome::Answered);
    close(&context, trail, 200).await;
    ended
}

/// Whether the event that a client comes back for may be named to the server: it passes the line as all that goes up.
fn may_resume(
    context: &Context,
    own: Option<&Session>,
    head: &RequestHead,
    trail: &mut Trail,
) -> bool {
    let Some(id) = &head.last_event_id else {
        return true;
    };
    // A notification with nothing in it carries the id.
    let empty = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/resume"}"#);
    let Ok(message) = Message::decode(empty, &context.snapshot.codec) else {
        return false;
    };
    let decoded = Decoded::<ToServer>::new(message, vec![HeaderLeaf::fixed(id)]);
    let tie = Tie::unknown();
    let judge = tie.judge(context, Era::Handshake, own.map(|own| &*own.tag));
    let clear = match pipeline::run(decoded, &judge) {
        Release::Cleared(mut cleared) => {
            trail.passed(&mut cleared);
            true
        }
        Release::Blocked(blocked) => {
            let (doc, stop) = (blocked.message.doc(), &blocked.stop);
            trail.absorb(Direction::ToServer, doc, &blocked.report, Some(stop));
            false
        }
    };
    // The client called no method.
    trail.record().method = None;
    trail.record().bytes.forwarded = 0;
    clear
}

/// Why there is no stream.
enum NotOpened {
    /// The server was not asked for one, or did not give one.
    Refused(Refusal, UpstreamOutcome),
    /// The server failed.
    Faulted(Fault),
    /// The client left.
    Gone,
}

/// Closes the record of a stream that never was, and says why it is not.
async fn not_opened(
    context: &Context,
    session: &mut ServerSession,
    why: NotOpened,
    mut trail: Trail,
    mut extra: Extra,
) -> Result<After, Gone> {
    let refusal = match why {
        NotOpened::Gone => return left(context, trail).await,
        NotOpened::Faulted(fault) => {
            context.server.metrics().upstream_faults.increment(1);
            tracing::warn!(server_id = %context.server.id, %fault, "upstream fault");
            let (word, outcome) = recorded_as(&fault);
            trail.failed(word, outcome);
            Refusal::fault(&fault, &trail)
        }
        NotOpened::Refused(refusal, outcome) => {
            trail.upstream_done(outcome);
            if trail.untouched() {
                trail.refused(refusal.text);
            }
            refusal
        }
    };
    if refusal.status == 405 {
        extra.push(ALLOW_POST);
    }
    close(context, trail, refusal.status).await;
    io::refuse(session, refusal, None, extra).await?;
    Ok(After::Keep)
}

/// The client left before its stream began.
async fn left(context: &Context, mut trail: Trail) -> Result<After, Gone> {
    trail.upstream_done(UpstreamOutcome::Cancelled);
    close(context, trail, 499).await;
    Err(Gone)
}

async fn close(context: &Context, trail: Trail, status: u16) {
    let _ = trail
        .close(&context.gateway, &context.snapshot, &context.server, status)
        .await;
}

async fn open(
    context: &Context,
    head: &RequestHead,
    own: Option<&Session>,
    session: &mut ServerSession,
) -> Result<(Source, UpstreamHeaders), NotOpened> {
    let no_stream = || NotOpened::Refused(NO_STREAM, UpstreamOutcome::NotSent);
    match &context.server.runtime.link {
        Link::Duplex(_) => {
            let duplex = own.and_then(|own| own.duplex.clone());
            let duplex = duplex.ok_or_else(no_stream)?;
            let source = Source::new(Origin::Duplex(duplex.listen()));
            Ok((source, UpstreamHeaders::default()))
        }
        // An open stream would keep a sandbox from ever being idle.
        Link::Http(link) if link.is_hosted() => Err(no_stream()),
        Link::Http(link) => {
            let mut protocol = Vec::new();
            if let Some(version) = head.known_version() {
                head::push(&mut protocol, "mcp-protocol-version", version.as_str());
            }
            if let Some(id) = &head.last_event_id {
                head::push(&mut protocol, "last-event-id", id);
            }
            let upstream = UpstreamHeaders {
                purpose: Purpose::Word,
                accept: head.accept,
                session_id: own.and_then(|o| o.upstream_id()),
                protocol,
            };
            let answer = tokio::select! {
                biased;
                answer = link.send(Verb::Get, &upstream, None) => answer,
                () = io::closed(session, &context.gateway) => return Err(NotOpened::Gone),
            };
            match answer.map_err(NotOpened::Faulted)? {
                Answer::Events(head, mut events) if head.status == 200 => {
                    // Listen streams live for hours.
                    events.set_idle_timeout(None);
                    Ok((Source::new(Origin::Events(events)), upstream))
                }
                Answer::Events(head, _)
                | Answer::Json(head, _)
                | Answer::Long(head, _)
                | Answer::Empty(head) => Err(refused(head.status)),
            }
        }
    }
}

fn refused(status: u16) -> NotOpened {
    let refusal = match status {
        404 => SESSION_NOT_FOUND,
        405 => NO_STREAM,
        400 | 406 | 409 | 429 => {
            let text = "The MCP server refused the request.";
            Refusal::new(status, code::UPSTREAM, text)
        }
        other => return NotOpened::Faulted(Fault::Status(other)),
    };
    NotOpened::Refused(refusal, UpstreamOutcome::Answered)
}

async fn carry(
    down: &Down<'_>,
    mut source: Source,
    upstream: &UpstreamHeaders,
    session: &mut ServerSession,
    trail: &mut Trail,
) -> Result<After, Gone> {
    let every = Duration::from_millis(down.context.snapshot.limits.keep_alive_ms.max(100));
    loop {
        let Some(item) = next(&mut source, session, every, down.context).await? else {
            break;
        };
        match down.step(item, trail).await {
            Ok(Step::Send {
                message,
                id,
                retry_ms,
                ..
            }) => {
                told(down, id.as_deref());
                let event = Event {
                    id,
                    retry_ms,
                    ..Event::default()
                };
                pump::send_event(session, &message, event).await?;
            }
            Ok(Step::Prime { id, retry_ms }) => {
                told(down, id.as_deref());
                let event = Event {
                    id,
                    retry_ms,
                    data: Some("".into()),
                    ..Event::default()
                };
                io::event(session, &event).await?;
            }
            Ok(Step::Skip {
                to_server: Some(word),
            }) => {
                tokio::select! {
                    biased;
                    () = pump::tell_server(down.context, &source, upstream, &word) => {}
                    () = io::closed(session, &down.context.gateway) => return Err(Gone),
                }
            }
            Ok(Step::Skip { to_server: None }) => {}
            // A message that is none, or whose record cannot be kept, is not shown; the stream ends.
            // Nor is one that the client may not hear any more.
            Err(Halt::Fault(_) | Halt::NotAudited | Halt::Revoked) => break,
        }
    }
    io::end(session).await?;
    Ok(After::Keep)
}

fn told(down: &Down<'_>, id: Option<&str>) {
    if let Some(id) = id {
        down.told_event(id);
    }
}

/// The next item; `None` when the upstream or the gateway ends the stream.
async fn next(
    source: &mut Source,
    session: &mut ServerSession,
    every: Duration,
    context: &Context,
) -> Result<Option<Item>, Gone> {
    let mut stopping = context.gateway.stopping();
    let next = source.next();
    tokio::pin!(next);
    loop {
        tokio::select! {
            biased;
            item = &mut next => return Ok(item.ok().flatten()),
            () = Gateway::stopped(&mut stopping) => return Ok(None),
            () = tokio::time::sleep(every) => match context.lives_on() {
                true => io::keep_alive(session).await?,
                false => return Ok(None),
            },
            () = io::closed(session, &context.gateway) => return Err(Gone),
        }
    }
}
