//! POST: a message from the client, judged, sent up, and its answer brought back.

use std::sync::Arc;
use std::time::Instant;

use audit_log::UpstreamOutcome;
use bytes::Bytes;
use domain::{Direction, Era, ProtocolVersion, ToolName};
use http::HeaderValue;
use mcp_codec::{BatchRule, Edits, Id, Message, MessageKind, Payload};
use pingora_core::protocols::http::ServerSession;

use super::attribute::{self, Tie};
use super::call::{Down, Origin, Source, stream_silence};
use super::head::{self, BodyFacts, Refusal, RequestHead};
use super::io::{self, Extra, Gone};
use super::pump::Pump;
use super::trail::Trail;
use super::usable::{Usable, usable};
use super::{After, Context, SESSION_NOT_FOUND};
use crate::gate::Permit;
use crate::pipeline::{self, Cleared, Decoded, Release, ToServer};
use crate::reply::{self, code};
use crate::session::{Call, Calls, NewSession, Session, SessionError};
use crate::upstream::{DuplexSession, Fault, Head, HttpLink, Link, UpstreamHeaders, Verb};

/// In the stateless era nothing is asked of a client that it could answer (2026-07-28, transports).
const NO_RESPONSES: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "In this protocol version clients send no responses.",
);

/// Serves a POST.
pub(super) async fn post(
    context: Context,
    session: &mut ServerSession,
    extra: Extra,
) -> Result<After, Gone> {
    let limits = &context.snapshot.limits;
    let headers = &session.req_header().headers;
    let parsed = head::check_body_headers(headers).and_then(|()| RequestHead::parse(headers));
    let head = match parsed {
        Ok(head) => head,
        Err(refusal) => return refuse(&context, session, refusal, None, extra).await,
    };
    let body = match io::read_body(session, limits).await {
        Ok(body) => body,
        Err(refusal) => return refuse(&context, session, refusal, None, extra).await,
    };
    serve_body(context, session, head, body, extra).await
}

async fn serve_body(
    context: Context,
    session: &mut ServerSession,
    head: RequestHead,
    body: Bytes,
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
    let spoken = own.as_ref().map(|s| s.version).or(head.known_version());
    let batches = spoken.is_some_and(ProtocolVersion::has_batches);
    let rule = if batches {
        BatchRule::Allowed
    } else {
        BatchRule::Refused
    };
    let size = body.len() as u64;
    let message = match mcp_codec::decode(body, &context.snapshot.codec, rule) {
        Ok(Payload::Single(message)) => message,
        Ok(Payload::Batch(messages)) => {
            return super::batch::serve(context, session, &head, own, messages, extra).await;
        }
        Err(error) => {
            let status = if error.kind == mcp_codec::DecodeErrorKind::TooLarge {
                413
            } else {
                400
            };
            let refusal = Refusal::new(status, error.json_rpc_code(), error.client_text());
            return refuse(
                &context,
                session,
                refusal,
                error.recovered_id.as_ref(),
                extra,
            )
            .await;
        }
    };
    let mut trail = Trail::new(&context.server);
    trail.begun(&context, own.as_deref(), &head.trace, size);
    let post = Post {
        context,
        head,
        own,
        trail,
        extra,
    };
    post.serve(session, message).await
}

/// One message being served.
pub(super) struct Post {
    pub(super) context: Context,
    pub(super) head: RequestHead,
    pub(super) own: Option<Arc<Session>>,
    pub(super) trail: Trail,
    pub(super) extra: Extra,
}

/// A request that went through the line and may be sent.
pub(super) struct Ready {
    pub(super) cleared: Cleared<ToServer>,
    pub(super) call: Arc<Call>,
    pub(super) calls: Arc<Calls>,
    pub(super) era: Era,
    pub(super) kind: MessageKind,
    pub(super) progress: Option<Id>,
    _permits: Vec<Permit>,
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
    async fn serve(mut self, session: &mut ServerSession, message: Message) -> Result<After, Gone> {
        match self.prepare(message) {
            Ok(ready) => self.forward(session, ready).await,
            Err(answered) => self.answer(session, *answered).await,
        }
    }

    /// Everything before the message goes up: no await, no lock held, nothing sent.
    pub(super) fn prepare(&mut self, message: Message) -> Result<Ready, Box<Answered>> {
        let refuse = |refusal, message: &Message| {
            Box::new(Answered::Refused(refusal, message.id().cloned(), None))
        };
        let header_version = self
            .own
            .as_ref()
            .map(|s| s.version)
            .or(self.head.known_version());
        let era = attribute::era_of(&message, header_version);
        // A pipe of one's own needs no session header to be told apart.
        let pinned = self.own.as_ref().is_some_and(|own| own.channel.is_some());
        if era == Era::Stateless && !pinned {
            self.own = None;
        }
        self.trail.spoken(era, header_version);
        let answers = matches!(
            message.kind(),
            MessageKind::Response | MessageKind::ErrorResponse
        );
        if answers && era == Era::Stateless && !pinned {
            return Err(refuse(NO_RESPONSES, &message));
        }
        // A mismatch comes first: with two versions named there is no telling which was meant.
        if !pinned {
            self.check_headers(&message)
                .map_err(|r| refuse(r, &message))?;
        }
        self.check_versions(&message, era)?;
        let message =
            inspected_version(message).map_err(|r| Box::new(Answered::Refused(r, None, None)))?;
        let calls = match &self.own {
            Some(own) => Arc::clone(&own.calls),
            None => Arc::new(Calls::new(self.context.snapshot.limits.pending_calls_max)),
        };
        if message.method() == Some("initialize") {
            calls.client_says(attribute::capabilities(&message));
        }
        let kind = message.kind();
        let permits = if kind == MessageKind::Request {
            self.enter_gates(&message)?
        } else {
            Vec::new()
        };
        let tie = attribute::tie_from_client(&self.context, &message, &calls);
        let call = tie
            .call
            .clone()
            .unwrap_or_else(|| Arc::new(attribute::call_of(&self.context, &message)));
        if message.method() == Some("tools/call") {
            self.check_tool(&message, era)?;
        }
        let progress = attribute::progress_token(&message);
        let cleared = self.judge(message, &tie, era)?;
        Ok(Ready {
            cleared,
            call,
            calls,
            era,
            kind,
            progress,
            _permits: permits,
        })
    }

    /// Through the line.
    fn judge(
        &mut self,
        message: Message,
        tie: &Tie,
        era: Era,
    ) -> Result<Cleared<ToServer>, Box<Answered>> {
        let headers = std::mem::take(&mut self.head.params);
        let judge = tie.judge(&self.context, era);
        match pipeline::run(Decoded::<ToServer>::new(message, headers), &judge) {
            Release::Cleared(mut cleared) => {
                self.trail.passed(&mut cleared);
                Ok(cleared)
            }
            Release::Blocked(blocked) => {
                let (doc, stop) = (blocked.message.doc(), &blocked.stop);
                self.trail
                    .absorb(Direction::ToServer, doc, &blocked.report, Some(stop));
                let text = stop.client_text(Direction::ToServer, &self.context.server.rules);
                Err(Box::new(Answered::Blocked(self.block(
                    &blocked.message,
                    era,
                    &text,
                ))))
            }
        }
    }

    fn block(&self, message: &Message, era: Era, text: &str) -> Option<reply::Own> {
        let text = format!("{text} Audit id: {}", self.trail.id());
        match (message.kind(), message.id()) {
            (MessageKind::Request, Some(id)) => {
                Some(reply::block(id, message.method().unwrap_or(""), era, &text))
            }
            _ => None,
        }
    }

    fn check_versions(&self, message: &Message, era: Era) -> Result<(), Box<Answered>> {
        let named = attribute::meta_version(message).or(self.head.version.as_deref());
        let Some(named) = named else { return Ok(()) };
        let known = ProtocolVersion::parse(named);
        let fits = known.is_some_and(|v| era == Era::Stateless || v.era() == Era::Handshake);
        if fits || (era == Era::Stateless && known.is_some()) {
            return Ok(());
        }
        // A stateless request can only be repeated in a stateless revision.
        let stateless = attribute::meta_version(message).is_some();
        let supported: Vec<&str> = ProtocolVersion::ALL
            .into_iter()
            .filter(|v| !stateless || v.era() == Era::Stateless)
            .map(ProtocolVersion::as_str)
            .collect();
        let data = format!(
            r#"{{"supported":{},"requested":{}}}"#,
            serde_json::Value::from(supported),
            reply::json_string(&named.chars().take(64).collect::<String>()),
        );
        let text = "This protocol version is not supported.";
        let own = reply::error_with(message.id(), code::UNSUPPORTED_VERSION, text, &data);
        Err(Box::new(Answered::Said(400, own)))
    }

    fn check_headers(&self, message: &Message) -> Result<(), Refusal> {
        let Some(method) = message.method() else {
            return Ok(());
        };
        let version = attribute::meta_version(message);
        let facts = BodyFacts {
            method,
            name: attribute::named_thing(message),
            version,
            names: attribute::must_be_named(method),
        };
        let required = version.is_some() && message.kind() == MessageKind::Request;
        self.head.agrees_with(facts, required)?;
        if required && method == "tools/call" {
            attribute::params_agree(&self.context, message, &self.head.params)?;
        }
        Ok(())
    }

    fn enter_gates(&self, message: &Message) -> Result<Vec<Permit>, Box<Answered>> {
        let server = &self.context.server;
        let gates = [
            &self.context.principal.gate,
            &server.gate,
            &server.tenant_gate,
        ];
        let mut permits = Vec::with_capacity(gates.len());
        for gate in gates {
            match gate.enter() {
                Ok(permit) => permits.push(permit),
                Err(refused) => {
                    server.metrics.throttled.increment(1);
                    let text = "Too many calls; try again later.";
                    let refusal = Refusal::new(429, code::LIMITED, text);
                    let after_s = refused.retry_after.as_secs().max(1);
                    let id = message.id().cloned();
                    return Err(Box::new(Answered::Refused(refusal, id, Some(after_s))));
                }
            }
        }
        Ok(permits)
    }

    fn check_tool(&mut self, message: &Message, era: Era) -> Result<(), Box<Answered>> {
        let doc = message.doc();
        let name = doc
            .get(&["params", "name"])
            .and_then(|n| doc.str(n))
            .unwrap_or("");
        if may_call(&self.context, name) {
            return Ok(());
        }
        self.trail.denied();
        let text = "Weir blocked this request: this tool may not be called.";
        Err(Box::new(Answered::Blocked(self.block(message, era, text))))
    }

    /// Sends a cleared message up and brings back what comes of it.
    async fn forward(mut self, session: &mut ServerSession, ready: Ready) -> Result<After, Gone> {
        if !circuit_admits(&self.context, ready.kind) {
            return self.fault(session, &ready, Fault::CircuitOpen).await;
        }
        let runtime = Arc::clone(&self.context.server.runtime);
        self.trail.upstream_asked();
        match &runtime.link {
            Link::Http(link) => self.forward_http(session, ready, link).await,
            Link::Duplex(link) => self.forward_duplex(session, ready, link).await,
        }
    }

    async fn forward_http(
        mut self,
        session: &mut ServerSession,
        ready: Ready,
        link: &HttpLink,
    ) -> Result<After, Gone> {
        let upstream = self.upstream_headers(&ready.cleared);
        if ready.kind == MessageKind::Request {
            ready.calls.opened(&ready.call, ready.progress.clone());
        }
        let answer = tokio::select! {
            biased;
            answer = link.send(Verb::Post, &upstream, Some(&ready.cleared)) => answer,
            () = io::closed(session) => {
                self.trail.upstream_done(UpstreamOutcome::Cancelled);
                self.close(499).await;
                return Err(Gone);
            }
        };
        let answer = match answer.and_then(usable) {
            Ok(answer) => answer,
            Err(fault) => return self.fault(session, &ready, fault).await,
        };
        self.context.server.runtime.breaker.succeeded();
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
            Usable::Events(head, events) => {
                let source = Source::new(Origin::Events(events));
                self.answer_up(session, ready, upstream, head, source, true)
                    .await
            }
            Usable::Nothing(head) => self.nothing(session, ready, head).await,
        }
    }

    /// An answer with content goes down message by message.
    async fn answer_up(
        mut self,
        session: &mut ServerSession,
        ready: Ready,
        upstream: UpstreamHeaders,
        head: Head,
        mut source: Source,
        events: bool,
    ) -> Result<After, Gone> {
        if let Origin::Events(events) = &mut source.origin {
            events.set_idle_timeout(stream_silence(&self.context, &ready.call));
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
        if &*ready.call.method == "initialize" && head.status == 200 {
            match self
                .open_session(&ready, &mut source, head.session_id, None)
                .await
            {
                Ok(Some(opened)) => calls = Arc::clone(&opened.calls),
                Ok(None) => {}
                Err(answered) => return self.answer(session, *answered).await,
            }
        }
        let down = Down {
            context: &self.context,
            era: ready.era,
            calls: &calls,
            call: Some(&ready.call),
            handles: None,
            refusal: head.status >= 400,
            adapt: false,
        };
        let extra = std::mem::take(&mut self.extra);
        let pump = Pump {
            down,
            source,
            status: head.status,
            extra,
            upstream,
            events,
            resumable: false,
        };
        pump.run(session, self.trail).await
    }

    /// A status without content.
    async fn nothing(
        mut self,
        session: &mut ServerSession,
        ready: Ready,
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
        ready: &Ready,
        source: &mut Source,
        upstream_id: Option<Box<str>>,
        duplex: Option<Arc<DuplexSession>>,
    ) -> Result<Option<Arc<Session>>, Box<Answered>> {
        if upstream_id.is_none() && duplex.is_none() {
            return Ok(None);
        }
        let version = source.peek_version(&self.context.snapshot.codec).await;
        let Some(version) = version else {
            return Ok(None);
        };
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
            Ok(session) => {
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
                Err(Box::new(Answered::Refused(
                    refusal,
                    ready.call.id.clone(),
                    Some(30),
                )))
            }
        }
    }

    pub(super) fn upstream_headers(&self, cleared: &Cleared<ToServer>) -> UpstreamHeaders {
        let head = &self.head;
        let mut protocol = Vec::new();
        if let Some(version) = &head.version {
            head::push(&mut protocol, "mcp-protocol-version", version);
        }
        let named = [("mcp-method", &head.method), ("mcp-name", &head.name)];
        let named = named.iter().filter_map(|(n, v)| Some((*n, v.as_deref()?)));
        let params = cleared.headers().iter().map(|h| (&*h.name, &*h.value));
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
            accept: head.accept,
            session_id,
            protocol,
        }
    }

    pub(super) async fn fault(
        mut self,
        session: &mut ServerSession,
        ready: &Ready,
        fault: Fault,
    ) -> Result<After, Gone> {
        note_fault(&self.context, &mut self.trail, &fault);
        let own = reply::error(ready.call.id.as_ref(), code::UPSTREAM, fault.client_text());
        let status = fault.status();
        self.answer(session, Answered::Said(status, own)).await
    }

    pub(super) async fn accepted(self, session: &mut ServerSession) -> Result<After, Gone> {
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
        mut self,
        session: &mut ServerSession,
        answered: Answered,
    ) -> Result<After, Gone> {
        let (status, body) = match answered {
            Answered::Refused(refusal, id, retry_after_s) => {
                if self.trail.untouched() {
                    self.trail.refused(refusal.text);
                }
                if let Some(after_s) = retry_after_s {
                    self.extra
                        .push((http::header::RETRY_AFTER, HeaderValue::from(after_s)));
                }
                (
                    refusal.status,
                    Some(reply::error(id.as_ref(), refusal.code, refusal.text)),
                )
            }
            Answered::Blocked(Some(own)) => (200, Some(own)),
            // A notification or response that was blocked: anything but 202 reads as a broken transport.
            Answered::Blocked(None) => (202, None),
            Answered::Said(status, own) => {
                if self.trail.untouched() {
                    self.trail.refused("refused");
                }
                (status, Some(own))
            }
        };
        let context = &self.context;
        let kept = self
            .trail
            .close(&context.gateway, &context.snapshot, &context.server, status)
            .await;
        if kept.is_err() {
            let text = "The gateway cannot keep its audit log; nothing is answered until it can.";
            let refusal = Refusal::new(503, code::UNAVAILABLE, text);
            io::refuse(session, refusal, None, self.extra).await?;
            return Ok(After::Keep);
        }
        match body {
            Some(own) => io::json(session, status, own.into_bytes(), self.extra).await?,
            None => io::empty(session, status, self.extra).await?,
        }
        Ok(After::Keep)
    }

    async fn close(self, status: u16) {
        let context = &self.context;
        let _ = self
            .trail
            .close(&context.gateway, &context.snapshot, &context.server, status)
            .await;
    }
}

/// Whether this principal may call a tool of this server. Names are compared as they are.
pub(super) fn may_call(context: &Context, tool: &str) -> bool {
    ToolName::parse(tool).is_ok()
        && context.server.policy.tool_allowed(tool)
        && context.principal.tools.allows(tool)
}

/// Whether the upstream's circuit lets a message through. A duplex never says that it took one that
/// wants no answer; such a message can open or close no circuit, so it is not asked.
pub(super) fn circuit_admits(context: &Context, kind: MessageKind) -> bool {
    let runtime = &context.server.runtime;
    let unanswered = matches!(runtime.link, Link::Duplex(_)) && kind != MessageKind::Request;
    unanswered || runtime.breaker.admits(Instant::now())
}

/// Notes an upstream fault in metrics, breaker and trail.
pub(super) fn note_fault(context: &Context, trail: &mut Trail, fault: &Fault) {
    let server = &context.server;
    server.metrics.upstream_faults.increment(1);
    tracing::warn!(server_id = %server.id, %fault, "upstream fault");
    let (word, outcome) = match fault {
        Fault::Unreachable(_) => ("upstream unreachable", UpstreamOutcome::Unreachable),
        Fault::TimedOut => ("upstream timed out", UpstreamOutcome::TimedOut),
        Fault::CircuitOpen => ("circuit open", UpstreamOutcome::NotSent),
        Fault::Busy => ("too many upstream sessions", UpstreamOutcome::NotSent),
        Fault::Credentials(_) => ("upstream refused credentials", UpstreamOutcome::Answered),
        Fault::Status(_) | Fault::Broken(_) => ("upstream broken", UpstreamOutcome::Broken),
    };
    trail.failed(word, outcome);
    let counts = !matches!(fault, Fault::CircuitOpen | Fault::Busy);
    if counts && server.runtime.breaker.failed(Instant::now()) {
        tracing::warn!(server_id = %server.id, "the upstream's circuit is open");
    }
}

/// Refuses a request whose body was not understood.
pub(super) async fn refuse(
    context: &Context,
    session: &mut ServerSession,
    refusal: Refusal,
    id: Option<&Id>,
    extra: Extra,
) -> Result<After, Gone> {
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
    io::refuse(session, refusal, id, extra).await?;
    Ok(After::Keep)
}

/// A handshake that asks for a revision nobody inspects is made one for the newest that has one.
fn inspected_version(message: Message) -> Result<Message, Refusal> {
    if message.method() != Some("initialize") {
        return Ok(message);
    }
    let doc = message.doc();
    let Some(node) = doc.get(&["params", "protocolVersion"]) else {
        return Ok(message);
    };
    let named = doc.str(node).and_then(ProtocolVersion::parse);
    if named.is_some_and(|v| v.era() == Era::Handshake) {
        return Ok(message);
    }
    let mut edits = Edits::new();
    edits.replace_value(
        node,
        &reply::json_string(ProtocolVersion::V2025_11_25.as_str()),
    );
    let text = "The protocolVersion cannot be read.";
    message
        .edited(&edits)
        .map_err(|_| Refusal::new(400, code::INVALID_REQUEST, text))
}
