//! POST: a message from the client, judged, sent up, and its answer brought back.

use std::sync::Arc;

use audit_log::UpstreamOutcome;
use domain::ProtocolVersion;
use http::HeaderValue;
use mcp_codec::{BatchRule, Id, Message, MessageKind, Payload, Whose};
use pingora_core::protocols::http::ServerSession;

use super::forward::note_fault;
use super::head::{self, Refusal, RequestHead};
use super::io::{self, Body, Extra, Gathered, Gone, Unread};
use super::prepare::{self, Limited, Ready};
use super::trail::Trail;
use super::{After, Context, NOT_RECORDED, SESSION_NOT_FOUND};
use crate::bodies::Held;
use crate::reply;
use crate::session::Session;
use crate::tools::ToolSchemas;
use crate::upstream::Fault;

/// Serves a POST.
pub(super) async fn post(
    context: Context,
    session: &mut ServerSession,
    extra: Extra,
) -> Result<After, Gone> {
    let headers = &session.req_header().headers;
    let parsed = head::check_body_headers(headers).and_then(|()| RequestHead::parse(headers));
    let head = match parsed {
        Ok(head) => head,
        Err(refusal) => return refuse(&context, session, refusal, None, extra).await,
    };
    let body = match io::begin_body(session, &context).await {
        Ok(body) => body,
        Err(why) => return unread(&context, session, why, extra).await,
    };
    serve_body(context, session, head, body, extra).await
}

async fn serve_body(
    context: Context,
    session: &mut ServerSession,
    head: RequestHead,
    body: Body,
    extra: Extra,
) -> Result<After, Gone> {
    let own = match head.session_id.as_deref() {
        None => None,
        // Clients of the stateless era have no sessions; a stray header is not looked at.
        Some(_) if head.known_version() == Some(ProtocolVersion::V2026_07_28) => None,
        Some(id) => match context.session(id) {
            Some(own) => Some(own),
            None => return refuse(&context, session, SESSION_NOT_FOUND, None, extra).await,
        },
    };
    let body = match body {
        Body::Whole(body) => body,
        Body::Begun(begun) => {
            let upload = super::upload::serve(context, session, head, own, begun, extra);
            return Box::pin(upload).await;
        }
    };
    let spoken = own.as_ref().map(|s| s.version).or(head.known_version());
    let batches = spoken.is_some_and(ProtocolVersion::has_batches);
    let rule = if batches {
        BatchRule::Allowed
    } else {
        BatchRule::Refused
    };
    let Gathered { bytes, held } = body;
    let size = bytes.len() as u64;
    let message = match mcp_codec::decode(bytes, &context.snapshot.codec, rule) {
        Ok(Payload::Single(message)) => message,
        Ok(Payload::Batch(messages)) => {
            let batch = super::batch::serve(context, session, &head, own, messages, held, extra);
            return Box::pin(batch).await;
        }
        Err(error) => {
            let status = if error.kind == mcp_codec::DecodeErrorKind::TooLarge {
                413
            } else {
                400
            };
            let refusal = Refusal::new(status, error.json_rpc_code(), error.client_text());
            let id = error.reply_id();
            let (refusal, after_s) = counted(&context, refusal);
            note_refused(&context, session, &refusal).await;
            io::refuse_request(session, refusal, id, after_s, extra).await?;
            return Ok(After::Keep);
        }
    };
    let mut trail = Trail::new(&context.server);
    trail.begun(&context, own.as_deref(), &head.trace, size);
    let post = Box::new(Post {
        context,
        head,
        own,
        trail,
        extra,
        on_pipe: false,
        compared: None,
        held,
    });
    post.serve(session, message).await
}

/// One message being served. In a box, because each step of it is a future that would hold it once more.
pub(super) struct Post {
    pub(super) context: Context,
    pub(super) head: RequestHead,
    pub(super) own: Option<Arc<Session>>,
    pub(super) trail: Trail,
    pub(super) extra: Extra,
    /// The message came on a pipe of its own: it needs no session header to be told apart, and no others.
    pub(super) on_pipe: bool,
    /// What the tool declares whose headers were compared with the body.
    pub(super) compared: Option<Arc<ToolSchemas>>,
    /// The room that the message's body takes until it was decided about.
    pub(super) held: Held,
}

/// A message that Weir answers itself.
pub(super) enum Answered {
    /// With a status and fixed words.
    Refused(Refusal, Option<Id>, Option<u64>),
    /// With HTTP 200 and a block, or 202 for what wants no answer.
    Blocked(Option<reply::Own>),
    /// With words of ours and this status.
    Said(u16, reply::Own),
}

impl Post {
    async fn serve(
        mut self: Box<Self>,
        session: &mut ServerSession,
        message: Message,
    ) -> Result<After, Gone> {
        match self.prepare(message).await {
            Ok(ready) => self.forward(session, ready).await,
            Err(answered) => self.answer(session, *answered).await,
        }
    }

    pub(super) async fn fault(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: &Ready,
        fault: Fault,
    ) -> Result<After, Gone> {
        note_fault(&self.context, &mut self.trail, &fault);
        if fault.is_final() {
            ready.calls.ended(&ready.call);
        }
        let refusal = Refusal::fault(&fault, &self.trail);
        // That of a response is the server's: with it, our words would answer another request.
        let asks = ready.kind == MessageKind::Request;
        let id = ready.call.id.clone().filter(|_| asks);
        let refused = Answered::Refused(refusal, id, fault.retry_after_s());
        self.answer(session, refused).await
    }

    pub(super) async fn accepted(
        self: Box<Self>,
        session: &mut ServerSession,
    ) -> Result<After, Gone> {
        let context = self.context;
        let kept = self
            .trail
            .close(&context.gateway, &context.snapshot, &context.server, 202)
            .await;
        let status = if kept.is_ok() { 202 } else { 503 };
        io::empty(session, status, self.extra).await?;
        Ok(After::Keep)
    }

    /// Answers with Weir's own words, once the record is kept.
    pub(super) async fn answer(
        mut self: Box<Self>,
        session: &mut ServerSession,
        answered: Answered,
    ) -> Result<After, Gone> {
        let (status, words) = match &answered {
            Answered::Refused(refusal, ..) => (refusal.status, Some(refusal.text)),
            Answered::Blocked(Some(_)) => (200, None),
            // A notification or response that was blocked: anything but 202 reads as a broken transport.
            Answered::Blocked(None) => (202, None),
            Answered::Said(status, _) => (*status, Some("refused")),
        };
        if let Some(words) = words.filter(|_| self.trail.untouched()) {
            self.trail.refused(words);
        }
        let context = &self.context;
        let kept = self
            .trail
            .close(&context.gateway, &context.snapshot, &context.server, status)
            .await;
        if kept.is_err() {
            io::refuse(session, NOT_RECORDED, None, self.extra).await?;
            return Ok(After::Keep);
        }
        match answered {
            // The server's trouble, or a limit, with what wants no answer ends no session, either: the record has it.
            Answered::Refused(refusal, None, after_s)
                if refusal.status != 400
                    && head::is_lost_by(&session.req_header().headers, refusal.status) =>
            {
                self.extra.extend(retry_after(after_s));
                io::empty(session, 202, self.extra).await?;
            }
            Answered::Refused(refusal, id, after_s) => {
                io::refuse_request(session, refusal, id.as_ref(), after_s, self.extra).await?;
            }
            Answered::Blocked(Some(own)) | Answered::Said(_, own) => {
                io::json(session, status, own.into_bytes(), self.extra).await?;
            }
            Answered::Blocked(None) => io::empty(session, status, self.extra).await?,
        }
        Ok(After::Keep)
    }

    /// The client left before there was an answer.
    pub(super) async fn left(mut self: Box<Self>) -> Result<After, Gone> {
        self.trail.upstream_done(UpstreamOutcome::Cancelled);
        self.close(499).await;
        Err(Gone)
    }

    pub(super) async fn close(self: Box<Self>, status: u16) {
        let context = &self.context;
        let _ = self
            .trail
            .close(&context.gateway, &context.snapshot, &context.server, status)
            .await;
    }
}

/// Refuses what its call limits do not allow now.
pub(super) async fn limited(
    context: &Context,
    session: &mut ServerSession,
    limited: Limited,
    mut extra: Extra,
) -> Result<After, Gone> {
    let after = HeaderValue::from(limited.after_s);
    extra.push((http::header::RETRY_AFTER, after));
    refuse(context, session, limited.refusal, None, extra).await
}

/// Refuses a request whose body was not read. Where its client would be lost by the status, whose message it is decides what is
/// said instead.
pub(super) async fn unread(
    context: &Context,
    session: &mut ServerSession,
    why: Unread,
    mut extra: Extra,
) -> Result<After, Gone> {
    let (refusal, begun) = match why {
        Unread::Refused(refusal) => (refusal, None),
        Unread::Long(refusal, begun) => (refusal, Some(begun)),
    };
    let is_long = begun.is_some() || refusal.status == 413;
    // What is too long is no message either; what broke off or found no room was not read.
    let (refusal, after_s) = match refusal.status {
        413 => counted(context, refusal),
        _ => {
            let after_s = after_s(&refusal);
            (refusal, after_s)
        }
    };
    let headers = &session.req_header().headers;
    let is_lost = head::is_lost_by(headers, refusal.status) && is_of_session(context, headers);
    let whose = match begun.filter(|_| is_lost) {
        Some(begun) => io::whose(session, context, begun).await,
        None => Whose::Unknown,
    };
    note_refused(context, session, &refusal).await;
    match whose {
        Whose::Call(id) => {
            io::refuse_request(session, refusal, Some(&id), after_s, extra).await?;
        }
        Whose::Word | Whose::Answer(_) => {
            extra.extend(retry_after(after_s));
            io::empty(session, 202, extra).await?;
        }
        Whose::Unknown | Whose::Nobody => {
            io::refuse_request(session, refusal, None, after_s, extra).await?;
        }
    }
    if is_long {
        io::discard_body(session).await;
    }
    Ok(After::Keep)
}

/// Does the request name a session that there is?
fn is_of_session(context: &Context, headers: &http::HeaderMap) -> bool {
    let id = headers
        .get("mcp-session-id")
        .and_then(|id| id.to_str().ok());
    id.is_some_and(|id| context.session(id).is_some())
}

/// There is room for a body again as soon as another one was decided about.
pub(super) fn after_s(refusal: &Refusal) -> Option<u64> {
    matches!(refusal.status, 429 | 503).then_some(1)
}

pub(super) fn retry_after(after_s: Option<u64>) -> Option<(http::HeaderName, HeaderValue)> {
    after_s.map(|s| (http::header::RETRY_AFTER, HeaderValue::from(s)))
}

/// Refuses a request whose body was not understood.
pub(super) async fn refuse(
    context: &Context,
    session: &mut ServerSession,
    refusal: Refusal,
    id: Option<&Id>,
    mut extra: Extra,
) -> Result<After, Gone> {
    let (refusal, after_s) = counted(context, refusal);
    extra.extend(retry_after(after_s));
    note_refused(context, session, &refusal).await;
    io::refuse(session, refusal, id, extra).await?;
    Ok(After::Keep)
}

/// What is no message costs its reading and a record as one does, so it counts as one that wants no answer. Over that rate it is
/// told so; trouble of ours is nobody's.
pub(super) fn counted(context: &Context, refusal: Refusal) -> (Refusal, Option<u64>) {
    // What a rate refused was counted, and who lost its session has to learn that.
    if refusal.status >= 500 || matches!(refusal.status, 404 | 429) {
        return (refusal, None);
    }
    match prepare::word_may_pass(context) {
        Ok(()) => (refusal, None),
        Err(limited) => (limited.refusal, Some(limited.after_s)),
    }
}

/// Records that a request was refused whose body was not understood.
pub(super) async fn note_refused(context: &Context, session: &ServerSession, refusal: &Refusal) {
    let mut trail = Trail::new(&context.server);
    let trace = head::trace(&session.req_header().headers);
    trail.begun(context, None, &trace, 0);
    trail.refused(refusal.text);
    let _ = trail
        .close(
            &context.gateway,
            &context.snapshot,
            &context.server,
            refusal.status,
        )
        .await;
}
