//! Clients of revision 2024-11-05: one event stream down, POSTs up that are answered on the stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::Era;
use http::HeaderValue;
use mcp_codec::sse::Event;
use mcp_codec::{BatchRule, Id, Payload, Whose};
use pingora_core::protocols::http::ServerSession;
use tokio::sync::mpsc;

use super::call::{Down, Origin, Source, Step};
use super::duplex::open_in_place;
use super::head::{self, Refusal, RequestHead, Trace};
use super::io::{self, Extra, Gathered, Gone, Unread};
use super::post::Post;
use super::trail::Trail;
use super::{After, Context, SESSION_NOT_FOUND, TOO_MANY_CALLS};
use super::{drive, farewell, post, prepare, pump, reopened};
use crate::gateway::Gateway;
use crate::pipeline::{Cleared, ToClient};
use crate::reply::{self, code};
use crate::session::{Channel, Session, SessionError, TRY_AGAIN_S};
use crate::upstream::{Link, UpstreamHeaders};

/// Answers that may wait for a slow client; above it the upstream waits.
const CHANNEL_MAX: usize = 64;

/// GET: opens the stream and names the endpoint to post to.
pub(super) async fn stream(
    context: Context,
    session: &mut ServerSession,
    mut extra: Extra,
) -> Result<After, Gone> {
    if let Err(limited) = prepare::word_may_pass(&context) {
        return post::limited(&context, session, limited, extra).await;
    }
    let slot = context.stream();
    let (channel, answers) = mpsc::channel(CHANNEL_MAX);
    let opened = match &slot {
        // A client that leaves meanwhile takes what was begun for it along.
        Ok(_) => tokio::select! {
            opened = open(&context, channel) => opened,
            () = io::closed(session, &context.gateway) => return Err(Gone),
        },
        Err(refusal) => Err(refusal.clone()),
    };
    let own = match opened {
        Ok(own) => own,
        Err(refusal) => {
            if refusal.status == 429 {
                // A stream, and with it a session, ends with its client.
                let seconds = HeaderValue::from(TRY_AGAIN_S);
                extra.push((http::header::RETRY_AFTER, seconds));
            }
            return post::refuse(&context, session, refusal, None, extra).await;
        }
    };
    let ended = carry(&context, session, &own, answers, extra).await;
    // However it ended, also before its first byte: the session, and its process, live no longer than the stream.
    context.gateway.sessions.close(&own);
    farewell::say(&context, own.upstream_id());
    ended
}

/// `/servers/x/sse` -> `/servers/x/`; the path was checked by the router.
fn endpoint_base(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let path = path.split('?').next().unwrap_or("/");
    path.strip_suffix("sse").unwrap_or("/").to_owned()
}

pub(super) async fn open(
    context: &Context,
    answers: mpsc::Sender<Cleared<ToClient>>,
) -> Result<Arc<Session>, Refusal> {
    let mut new = drive::new_session(context);
    let under_way_max = context.snapshot.limits.pending_calls_max;
    new.channel = Some(Channel::new(answers, under_way_max));
    if let Link::Duplex(link) = &context.server.runtime.link {
        let opened = open_in_place(context, || link.open(&context.principal)).await;
        let duplex = opened.map_err(|fault| {
            tracing::warn!(server_id = %context.server.id, %fault, "upstream fault");
            Refusal::new(fault.status(), code::UPSTREAM, fault.client_text())
        })?;
        new.duplex = Some(duplex);
    }
    let limits = Gateway::session_limits(&context.snapshot);
    let full = |_: SessionError| Refusal::new(429, code::LIMITED, "Too many sessions are open.");
    let opened = context.gateway.sessions.open(new, limits).map_err(full)?;
    farewell::say_of(context, opened.gave_way.as_deref());
    Ok(opened.session)
}

/// The endpoint, and then answers and unasked messages, go down until either side ends.
async fn carry(
    context: &Context,
    session: &mut ServerSession,
    own: &Arc<Session>,
    mut answers: mpsc::Receiver<Cleared<ToClient>>,
    extra: Extra,
) -> Result<After, Gone> {
    let base = endpoint_base(session.req_header().raw_path());
    io::begin_events(session, extra).await?;
    let endpoint = Event {
        event: Some("endpoint".into()),
        data: Some(Bytes::from(format!("{base}message?sessionId={}", own.id))),
        ..Event::default()
    };
    io::event(session, &endpoint).await?;
    let every = Duration::from_millis(context.snapshot.limits.keep_alive_ms.max(100));
    let mut stopping = context.gateway.stopping();
    let listener = listen(context.clone(), Arc::clone(own));
    tokio::pin!(listener);
    loop {
        tokio::select! {
            biased;
            answer = answers.recv() => match answer {
                Some(message) => pump::send_event(session, &message, Event::default()).await?,
                None => break,
            },
            () = &mut listener => break,
            () = Gateway::stopped(&mut stopping) => break,
            () = tokio::time::sleep(every) => match context.lives_on() {
                true => io::keep_alive(session).await?,
                false => break,
            },
            () = io::closed(session, &context.gateway) => return Err(Gone),
        }
    }
    io::end(session).await?;
    Ok(After::Close)
}

/// What the upstream says unasked. Ends when a duplex one does.
pub(super) async fn listen(context: Context, own: Arc<Session>) {
    let Some(channel) = &own.channel else {
        return std::future::pending().await;
    };
    let Some(duplex) = &own.duplex else {
        return reopened::listen(&context, &own, channel).await;
    };
    let mut source = Source::new(Origin::Duplex(duplex.listen()));
    let mut trail = Trail::new(&context.server);
    // Nothing else names whose stream this is, and its messages have records of their own.
    trail.begun(&context, Some(&own), &Trace::default(), 0);
    trail.spoken(Era::Handshake, Some(own.version));
    let down = Down::unasked(&context, &own.calls);
    while let Ok(Some(item)) = source.next().await {
        match down.step(item, &mut trail).await {
            Ok(Step::Send { message, .. }) => {
                if channel.answers().send(message).await.is_err() {
                    return;
                }
            }
            Ok(Step::Skip {
                to_server: Some(word),
            }) => {
                pump::tell_server(&context, &source, &UpstreamHeaders::default(), &word).await;
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// POST: takes a message; its answer comes on the stream.
pub(super) async fn message(
    context: Context,
    session: &mut ServerSession,
    extra: Extra,
) -> Result<After, Gone> {
    let headers = &session.req_header().headers;
    let parsed = head::check_body_headers(headers).and_then(|()| RequestHead::parse(headers));
    let head = match parsed {
        Ok(head) => head,
        Err(refusal) => return post::refuse(&context, session, refusal, None, extra).await,
    };
    let id = session_of(session.req_header().raw_path());
    let own = id
        .and_then(|id| context.session(&id))
        .filter(|own| own.channel.is_some());
    let Some(own) = own else {
        return post::refuse(&context, session, SESSION_NOT_FOUND, None, extra).await;
    };
    let Gathered { bytes, held } = match io::read_body(session, &context).await {
        Ok(body) => body,
        Err(Unread::Long(refusal, begun)) => {
            let whose = io::whose(session, &context, begun).await;
            let id = match &whose {
                Whose::Call(id) => Some(id),
                _ => None,
            };
            let mut extra = extra;
            extra.extend(post::retry_after(post::after_s(&refusal)));
            let after = refuse(&context, session, &own, refusal, id, extra).await?;
            io::discard_body(session).await;
            return Ok(after);
        }
        Err(why) => return post::unread(&context, session, why, extra).await,
    };
    let size = bytes.len() as u64;
    let decoded = mcp_codec::decode(bytes, &context.snapshot.codec, BatchRule::Refused);
    let message = match decoded {
        Ok(Payload::Single(message)) => message,
        Ok(Payload::Batch(_)) => return Err(Gone),
        Err(error) => {
            let refusal = Refusal::new(400, error.json_rpc_code(), error.client_text());
            let id = error.reply_id();
            return refuse(&context, session, &own, refusal, id, extra).await;
        }
    };
    let Some(channel) = own.channel.clone() else {
        return Err(Gone);
    };
    // The answer must not hold the POST, so each message is a task, and there are only so many. They go up in the order in
    // which they were accepted: what cancels a call must not overtake it.
    let Some(slot) = channel.slot(message.kind()) else {
        context.server.metrics().throttled.increment(1);
        let mut extra = extra;
        extra.push((http::header::RETRY_AFTER, HeaderValue::from_static("1")));
        let id = prepare::asked_by(&message);
        return refuse(&context, session, &own, TOO_MANY_CALLS, id.as_ref(), extra).await;
    };
    let turn = channel.turn(message.kind());
    let mut trail = Trail::new(&context.server);
    trail.begun(&context, Some(&own), &head.trace, size);
    let post = Post {
        context,
        head,
        own: Some(own),
        trail,
        extra: Extra::new(),
        on_pipe: true,
        compared: None,
        held,
    };
    // The POST is over before it is.
    let under_way = post.context.gateway.turns().begin();
    tokio::spawn(async move {
        drive::drive(post, message, turn, channel.answers()).await;
        drop((slot, under_way));
    });
    io::empty(session, 202, extra).await?;
    Ok(After::Keep)
}

/// Refuses a message on the stream: whoever asked waits there, and would not connect the status of a POST with its call. A
/// stream that is full, and a message that nobody waits by, leave the status.
async fn refuse(
    context: &Context,
    session: &mut ServerSession,
    own: &Session,
    refusal: Refusal,
    id: Option<&Id>,
    mut extra: Extra,
) -> Result<After, Gone> {
    let (refusal, after_s) = post::counted(context, refusal);
    let told = id.zip(own.channel.as_ref()).is_some_and(|(id, channel)| {
        let words = Cleared::of_ours(reply::error(Some(id), refusal.code, &refusal.words()));
        channel.answers().try_send(words).is_ok()
    });
    post::note_refused(context, session, &refusal).await;
    if !told {
        extra.extend(post::retry_after(after_s));
        io::refuse(session, refusal, id, extra).await?;
        return Ok(After::Keep);
    }
    io::empty(session, 202, extra).await?;
    Ok(After::Keep)
}

fn session_of(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok()?;
    let (_, query) = path.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("sessionId="))
        .map(str::to_owned)
}
