//! Sends a message that may go up to an HTTP upstream, and sorts what comes back.

use std::sync::Arc;
use std::time::Instant;

use audit_log::UpstreamOutcome;
use http::HeaderValue;
use mcp_codec::{Message, MessageKind};
use pingora_core::protocols::http::ServerSession;

use super::attribute;
use super::call::{Down, Origin, Source, stream_silence};
use super::head::{self, Refusal};
use super::io::{self, Gone};
use super::post::{Answered, Post};
use super::prepare::Ready;
use super::pump::Pump;
use super::trail::Trail;
use super::usable::{Usable, usable};
use super::{After, Context, SESSION_NOT_FOUND, farewell};
use crate::breaker::Opened;
use crate::reply::code;
use crate::session::{Admitted, NewSession, Session, SessionError, TRY_AGAIN_S};
use crate::upstream::{
    Answer, DuplexSession, Fault, Head, Health, HttpLink, Link, Purpose, UpstreamHeaders, Verb,
};

impl Post {
    /// Sends a cleared message up and brings back what comes of it.
    pub(super) async fn forward(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
    ) -> Result<After, Gone> {
        if let Err(fault) = circuit_admits(&self.context, ready.kind) {
            return Box::pin(self.fault(session, &ready, fault)).await;
        }
        let runtime = Arc::clone(&self.context.server.runtime);
        self.trail.upstream_asked();
        match &runtime.link {
            Link::Http(link) => self.forward_http(session, ready, link).await,
            Link::Duplex(link) => Box::pin(self.forward_duplex(session, ready, link)).await,
        }
    }

    async fn forward_http(
        self: Box<Self>,
        session: &mut ServerSession,
        mut ready: Box<Ready>,
        link: &HttpLink,
    ) -> Result<After, Gone> {
        let upstream = self.upstream_headers(&ready);
        ready.goes_up();
        if ready.kind == MessageKind::Request {
            ready.calls.opened(&ready.call, ready.progress.clone());
        }
        let answer = tokio::select! {
            biased;
            answer = link.send(Verb::Post, &upstream, Some(&ready.cleared)) => answer,
            () = io::closed(session, &self.context.gateway) => return self.left().await,
        };
        ready.cleared.sent();
        self.answered(session, ready, upstream, answer).await
    }

    /// Whatever a server answered to a message that went up.
    pub(super) async fn answered(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        upstream: UpstreamHeaders,
        answer: Result<Answer, Fault>,
    ) -> Result<After, Gone> {
        if let Ok(answer) = &answer {
            self.trail.heard(answer.head());
        }
        let answer = match answer.and_then(usable) {
            Ok(answer) => answer,
            Err(fault) => return Box::pin(self.fault(session, &ready, fault)).await,
        };
        well(&self.context);
        self.look_for_wrong_path(&answer);
        let answer = match ready.kind {
            MessageKind::Request => answer,
            _ => answer.of_a_word(),
        };
        match answer {
            Usable::Json(head, body) => {
                self.answer_up(
                    session,
                    ready,
                    upstream,
                    head,
                    Source::new(Origin::Body(Some(body))),
                    false,
                )
                .await
            }
            Usable::Long(_, body) => Box::pin(self.answer_long(session, ready, body)).await,
            Usable::Events(head, events) => {
                let source = Source::new(Origin::Events(events));
                self.answer_up(session, ready, upstream, head, source, true)
                    .await
            }
            Usable::Nothing(head) => Box::pin(self.nothing(session, ready, head)).await,
        }
    }

    /// A server that knows no endpoint where it is asked for one answers each call so, and only whoever runs Weir can mend it. One
    /// that says so of a session, or by a message, is a server that does its part.
    fn look_for_wrong_path(&self, answer: &Usable) {
        let status = match answer {
            Usable::Nothing(head) => head.status,
            Usable::Json(head, body) if matches!(head.status, 404 | 405) => {
                match Message::decode(body.clone(), &self.context.snapshot.codec) {
                    Ok(_) => return,
                    Err(_) => head.status,
                }
            }
            _ => return,
        };
        let is_wrong_path = match status {
            404 => self.own.is_none(),
            status => status == 405,
        };
        if !is_wrong_path {
            return;
        }
        let server = &self.context.server;
        server.metrics().upstream_faults.increment(1);
        if let Some(left_out) = server.runtime.wrong_path.admits(Instant::now()) {
            tracing::warn!(
                server_id = %server.id, status, left_out,
                "the server has no MCP endpoint at the path of `url`: look at the path (often /mcp); the address of an event \
                 stream (often /sse) belongs under `sse` (--upstream-sse)"
            );
        }
    }

    /// An answer with content goes down message by message.
    async fn answer_up(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        upstream: UpstreamHeaders,
        head: Head,
        mut source: Source,
        events: bool,
    ) -> Result<After, Gone> {
        if let Origin::Events(events) = &mut source.origin {
            events.set_idle_timeout(stream_silence(&self.context, &ready.call));
            if self.context.snapshot.limits.streams() {
                events.hand_over();
            }
        }
        if head.status == 404 && self.own.is_some() {
            // The upstream forgot the session; the client starts a new one on 404.
            if let Some(own) = self.own.take() {
                self.context.gateway.sessions.close(&own);
            }
            return self
                .answer(
                    session,
                    Answered::Refused(SESSION_NOT_FOUND, ready.call.id.clone(), None),
                )
                .await;
        }
        let mut calls = Arc::clone(&ready.calls);
        let mut opened = None;
        if &*ready.call.method == "initialize" && head.status == 200 {
            match self
                .open_session(session, &ready, &mut source, head.session_id, None)
                .await
            {
                Ok(new) => opened = new,
                Err(NotOpened::Answered(answered)) => return self.answer(session, *answered).await,
                Err(NotOpened::Left) => return self.left().await,
            }
            if let Some(opened) = &opened {
                calls = Arc::clone(&opened.calls);
            }
        }
        let down = Down {
            context: &self.context,
            era: ready.era,
            calls: &calls,
            call: Some(&ready.call),
            resumed: None,
            handles: None,
            refusal: head.status >= 400,
            adapt: head.older,
        };
        let extra = std::mem::take(&mut self.extra);
        let pump = Pump {
            down,
            source,
            status: status_of_answer(head.status),
            extra,
            upstream,
            events,
            resumable: false,
        };
        let ended = pump.run(session, self.trail).await;
        unless_heard_of(&self.context, opened.as_deref(), ended)
    }

    /// A status without content.
    async fn nothing(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        head: Head,
    ) -> Result<After, Gone> {
        if head.status == 404 && self.own.is_some() {
            if let Some(own) = self.own.take() {
                self.context.gateway.sessions.close(&own);
            }
            return self
                .answer(
                    session,
                    Answered::Refused(SESSION_NOT_FOUND, ready.call.id.clone(), None),
                )
                .await;
        }
        if (200..300).contains(&head.status) {
            if ready.kind == MessageKind::Request {
                return self
                    .fault(session, &ready, Fault::Broken("no answer to a request"))
                    .await;
            }
            self.trail.upstream_done(UpstreamOutcome::Accepted);
            return self.accepted(session).await;
        }
        ready.calls.ended(&ready.call);
        self.trail.upstream_done(UpstreamOutcome::Answered);
        let text = "The MCP server refused the request.";
        let refusal = Refusal::new(head.status, code::UPSTREAM, text);
        self.answer(
            session,
            Answered::Refused(refusal, ready.call.id.clone(), None),
        )
        .await
    }

    /// Makes the session that an `initialize` asks for, if the server's answer is a result.
    ///
    /// The answer is looked at only for that; the pump takes it through the line like any other.
    pub(super) async fn open_session(
        &mut self,
        session: &mut ServerSession,
        ready: &Ready,
        source: &mut Source,
        upstream_id: Option<Box<str>>,
        duplex: Option<Arc<DuplexSession>>,
    ) -> Result<Option<Arc<Session>>, NotOpened> {
        if upstream_id.is_none() && duplex.is_none() {
            return Ok(None);
        }
        let version = tokio::select! {
            biased;
            version = source.peek_version(&self.context.snapshot.limits) => version,
            () = io::closed(session, &self.context.gateway) => {
                farewell::say(&self.context, upstream_id);
                return Err(NotOpened::Left);
            }
        };
        let Some(version) = version else {
            return Ok(None);
        };
        let minted = upstream_id.clone();
        let new = NewSession {
            owner: Arc::clone(&self.context.principal.owner),
            server: Arc::clone(&self.context.server.id),
            upstream_id,
            version,
            calls: Arc::clone(&ready.calls),
            duplex,
            channel: None,
        };
        let limits = crate::gateway::Gateway::session_limits(&self.context.snapshot);
        match self.context.gateway.sessions.open(new, limits) {
            Ok(Admitted { session, gave_way }) => {
                farewell::say_of(&self.context, gave_way.as_deref());
                if let Ok(id) = HeaderValue::from_str(&session.id) {
                    self.extra
                        .push((http::HeaderName::from_static("mcp-session-id"), id));
                }
                self.trail.record().session = Some(Arc::clone(&session.tag));
                Ok(Some(session))
            }
            Err(SessionError::Full | SessionError::PrincipalFull) => {
                let text = "Too many sessions are open; try again later.";
                let refusal = Refusal::new(429, code::LIMITED, text);
                farewell::say(&self.context, minted);
                let answered = Answered::Refused(refusal, ready.call.id.clone(), Some(TRY_AGAIN_S));
                Err(NotOpened::Answered(Box::new(answered)))
            }
        }
    }

    pub(super) fn upstream_headers(&self, ready: &Ready) -> UpstreamHeaders {
        let cleared = &ready.cleared;
        let purpose = match ready.kind {
            MessageKind::Request if &*ready.call.method == "initialize" => Purpose::Hello,
            MessageKind::Request => Purpose::Call,
            _ => Purpose::Word,
        };
        let head = &self.head;
        let mut protocol = Vec::new();
        if let Some(version) = head.known_version() {
            head::push(&mut protocol, "mcp-protocol-version", version.as_str());
        }
        let named = [("mcp-method", &head.method), ("mcp-name", &head.name)];
        let named = named.iter().filter_map(|(n, v)| Some((*n, v.as_deref()?)));
        let params = attribute::repeated(self.compared.as_deref(), cleared.headers());
        let params = params.map(|h| (&*h.name, &*h.value));
        for (name, value) in named.chain(params) {
            if let (Ok(name), Some(value)) = (
                http::HeaderName::from_bytes(name.as_bytes()),
                head::encode_sentinel(value),
            ) {
                protocol.push((name, value));
            }
        }
        self.trail.traceparent(&mut protocol);
        let session_id = self.own.as_ref().and_then(|s| s.upstream_id());
        UpstreamHeaders {
            purpose,
            accept: head.accept,
            session_id,
            protocol,
        }
    }
}

/// A client reads no message under 202 or its like, where an upstream may have put one.
fn status_of_answer(upstream: u16) -> u16 {
    if (201..300).contains(&upstream) {
        200
    } else {
        upstream
    }
}

/// A session whose id nobody heard of is over with the answer that was to name it, and its process with it.
pub(super) fn unless_heard_of(
    context: &Context,
    opened: Option<&Session>,
    ended: Result<After, Gone>,
) -> Result<After, Gone> {
    if let (Err(Gone), Some(opened)) = (ended, opened) {
        context.gateway.sessions.close(opened);
        farewell::say(context, opened.upstream_id());
    }
    ended
}

/// Why an `initialize` has no session.
pub(super) enum NotOpened {
    /// It is answered by this.
    Answered(Box<Answered>),
    /// Its client left.
    Left,
}

/// Whether the upstream's circuit lets a message through. A duplex never says that it took one that
/// wants no answer; such a message can open or close no circuit, so it is not asked.
pub(super) fn circuit_admits(context: &Context, kind: MessageKind) -> Result<(), Fault> {
    let runtime = &context.server.runtime;
    let unanswered = matches!(runtime.link, Link::Duplex(_)) && kind != MessageKind::Request;
    let owner = &context.principal.owner;
    if unanswered {
        return Ok(());
    }
    let admitted = runtime.breaker.admit(owner, Instant::now());
    admitted.map_err(Fault::CircuitOpen)
}

/// Notes that the upstream answered a call.
pub(super) fn well(context: &Context) {
    let owner = &context.principal.owner;
    context.server.runtime.breaker.succeeded(owner);
}

/// Notes an upstream fault in metrics, breaker and trail.
pub(super) fn note_fault(context: &Context, trail: &mut Trail, fault: &Fault) {
    let server = &context.server;
    server.metrics().upstream_faults.increment(1);
    let (http_status, content_type) = trail.answer_head();
    tracing::warn!(server_id = %server.id, %fault, http_status, content_type, "upstream fault");
    let (word, outcome) = recorded_as(fault);
    trail.failed(word, outcome);
    let owner = &context.principal.owner;
    let opened = match fault.health() {
        Health::Unknown => return,
        Health::Lives => return server.runtime.breaker.succeeded(owner),
        Health::Fails => server.runtime.breaker.failed(owner, Instant::now()),
    };
    match opened {
        Opened::No => {}
        Opened::ForKey => {
            tracing::warn!(server_id = %server.id, %owner, "the upstream's circuit is open for a key");
        }
        Opened::ForAll => {
            tracing::warn!(server_id = %server.id, "the upstream's circuit is open");
        }
    }
}

/// What a record says of a fault.
pub(super) fn recorded_as(fault: &Fault) -> (&'static str, UpstreamOutcome) {
    match fault {
        Fault::Unreachable(_) => ("upstream unreachable", UpstreamOutcome::Unreachable),
        Fault::TimedOut => ("upstream timed out", UpstreamOutcome::TimedOut),
        Fault::Cancelled => ("cancelled", UpstreamOutcome::Cancelled),
        Fault::CircuitOpen(_) => ("circuit open", UpstreamOutcome::NotSent),
        Fault::Resting(_) => ("upstream failed just now", UpstreamOutcome::NotSent),
        Fault::Busy => ("too many upstream sessions", UpstreamOutcome::NotSent),
        Fault::ShareTaken => (
            "too many upstream sessions of one principal",
            UpstreamOutcome::NotSent,
        ),
        Fault::IdInUse => ("id in use", UpstreamOutcome::NotSent),
        Fault::Grown => ("message too large once redacted", UpstreamOutcome::NotSent),
        Fault::Credentials(_) => ("upstream refused credentials", UpstreamOutcome::Answered),
        Fault::Status(_) | Fault::Broken(_) | Fault::Cut | Fault::Malformed(_) => {
            ("upstream broken", UpstreamOutcome::Broken)
        }
        Fault::Gone(_) => ("sandbox gone", UpstreamOutcome::Broken),
        Fault::NotStarted => ("sandbox not started", UpstreamOutcome::Unreachable),
        Fault::Crowded => ("no sandbox free", UpstreamOutcome::NotSent),
        Fault::NoRunner => ("runner unreachable", UpstreamOutcome::NotSent),
        Fault::TooLarge(_) => ("answer too large", UpstreamOutcome::Answered),
    }
}
