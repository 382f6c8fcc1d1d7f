//! Calls that are too long to be held: they go up in steps, each of them decided.
//!
//! What the beginning says of the call is made a small message of its own, which takes the way of every other message: its
//! headers, its version, its limits and its tool are checked, and its id, method and name pass the line. Then the bytes
//! follow. Where they turn out not to be what they began as, the connection to the server breaks off within the body.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::{Direction, Era};
use mcp_codec::stream::Facts;
use mcp_codec::{DecodeError, Id, Message};
use pingora_core::protocols::http::ServerSession;
use tokio::time::Instant;

use super::attribute::{self, Tie};
use super::forward::circuit_admits;
use super::head::{BodyFacts, Refusal, RequestHead};
use super::io::{self, Extra, Gathered, Gone, Unread};
use super::post::{self, Answered, Post};
use super::prepare::Ready;
use super::trail::Trail;
use super::{After, Context};
use crate::bodies::Held;
use crate::pipeline::{self, Halted, Judge, Passed, Passing, Stop, ToServer};
use crate::reply::{self, code};
use crate::session::Session;
use crate::upstream::{Answer, Fault, HttpLink, Link, Oversize, Upload, UpstreamHeaders};

/// Bytes of a message's beginning that are judged before others get their turn.
const TURN_BYTES: usize = 256 << 10;

/// Why a call stopped on its way up.
enum Cut {
    Refused(Refusal),
    Stopped(Stop),
    Fault(Fault),
    /// Weir ends and can wait no longer.
    Ended,
}

impl From<Halted> for Cut {
    fn from(halted: Halted) -> Self {
        match halted {
            Halted::Malformed(error) => Self::Refused(refusal(&error)),
            Halted::Stopped(stop) => Self::Stopped(stop),
        }
    }
}

impl From<Fault> for Cut {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Serves a POST whose body is longer than may be held.
pub(super) async fn serve(
    context: Context,
    session: &mut ServerSession,
    head: RequestHead,
    own: Option<Arc<Session>>,
    begun: Gathered,
    extra: Extra,
) -> Result<After, Gone> {
    let (message, facts) = match beginning(&context, &head, own.as_deref(), &begun.bytes) {
        Ok(known) => known,
        Err((refusal, None)) => {
            let why = Unread::Long(refusal, begun);
            return post::unread(&context, session, why, extra).await;
        }
        Err((refusal, Some(id))) => {
            let (refusal, after_s) = post::counted(&context, refusal);
            post::note_refused(&context, session, &refusal).await;
            io::refuse_request(session, refusal, Some(&id), after_s, extra).await?;
            io::discard_body(session).await;
            return Ok(After::Keep);
        }
    };
    let mut trail = Trail::new(&context.server);
    trail.begun(
        &context,
        own.as_deref(),
        &head.trace,
        begun.bytes.len() as u64,
    );
    let mut post = Box::new(Post {
        context,
        head,
        own,
        trail,
        extra,
        on_pipe: false,
        compared: None,
        // Its beginning is held longer than until the message that says what it says was decided about.
        held: Held::default(),
    });
    match post.prepare(message).await {
        Ok(ready) => post.upload(session, ready, facts, begun).await,
        Err(answered) => {
            let after = post.answer(session, *answered).await?;
            io::discard_body(session).await;
            Ok(after)
        }
    }
}

/// What the beginning says, as a message of its own.
fn beginning(
    context: &Context,
    head: &RequestHead,
    own: Option<&Session>,
    begun: &[u8],
) -> Result<(Message, Facts), (Refusal, Option<Id>)> {
    let facts = pipeline::facts_of(begun, &context.snapshot.limits)
        .map_err(|error| (refusal(&error), error.reply_id().cloned()))?;
    let id = facts.id.clone().flatten();
    let too_large = |why: Oversize| {
        (
            Refusal::new(413, code::INVALID_REQUEST, why.text()),
            id.clone(),
        )
    };
    match &context.server.runtime.link {
        Link::Http(link) if !link.is_hosted() => {}
        _ => return Err(too_large(Oversize::Off)),
    }
    let (Some(call), Some(method)) = (&id, &facts.method) else {
        return Err(too_large(Oversize::Unnamed));
    };
    if &**method != "tools/call" {
        return Err(too_large(Oversize::Kind));
    }
    let Some(name) = facts.name.as_ref().filter(|_| facts.version_seen) else {
        return Err(too_large(Oversize::Unnamed));
    };
    let tool = context.server.runtime.tools.get(name);
    if !head.params.is_empty() || tool.is_some_and(|tool| !tool.mirrors().is_empty()) {
        return Err(too_large(Oversize::Mirrored));
    }
    let text = synthetic(call, name, &facts);
    let message = Message::decode(text.into(), &context.snapshot.codec)
        .map_err(|error| (refusal(&error), id.clone()))?;
    let spoken = own.map(|s| s.version).or(head.known_version());
    let era = attribute::era_of(&message, spoken);
    let tie = Tie::to(context, Arc::new(attribute::call_of(context, &message)));
    let judge = tie.judge(context, era, None);
    Passing::<ToServer>::check(&judge).map_err(|why| too_large(why.into()))?;
    Ok((message, facts))
}

fn synthetic(id: &Id, name: &str, facts: &Facts) -> String {
    let mut meta = Vec::new();
    if let Some(version) = &facts.meta_version {
        let version = reply::json_string(version);
        meta.push(format!(
            r#""io.modelcontextprotocol/protocolVersion":{version}"#
        ));
    }
    if let Some(token) = &facts.progress {
        meta.push(format!(r#""progressToken":{}"#, token.to_json()));
    }
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":{},"_meta":{{{}}}}}}}"#,
        id.to_json(),
        reply::json_string(name),
        meta.join(",")
    )
}

fn refusal(error: &DecodeError) -> Refusal {
    let status = match error.kind {
        mcp_codec::DecodeErrorKind::TooLarge => 413,
        _ => 400,
    };
    Refusal::new(status, error.json_rpc_code(), error.client_text())
}

impl Post {
    async fn upload(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        facts: Facts,
        begun: Gathered,
    ) -> Result<After, Gone> {
        if let Err(fault) = circuit_admits(&self.context, ready.kind) {
            return self.fault(session, &ready, fault).await;
        }
        self.trail.upstream_asked();
        let upstream = self.upstream_headers(&ready);
        ready.calls.opened(&ready.call, ready.progress.clone());
        let context = self.context.clone();
        let Link::Http(link) = &context.server.runtime.link else {
            let fault = Fault::CircuitOpen(Duration::ZERO);
            return self.fault(session, &ready, fault).await;
        };
        let tie = Tie::to(&context, ready.call.clone());
        let own = self.own.as_ref().map(|own| &*own.tag);
        let judge = tie.judge(&context, ready.era, own);
        let limits = &context.snapshot.limits;
        let mut passing = Passing::<ToServer>::new(limits, context.server.policy.dry_run());
        let carry_up = self.carry_up(
            session,
            &mut passing,
            &judge,
            &facts,
            begun,
            link,
            &upstream,
        );
        let carried = tokio::select! {
            biased;
            carried = carry_up => carried,
            () = context.gateway.was_cut() => Err(Cut::Ended),
        };
        self.trail.record().bytes.request = passing.position();
        let stop = match &carried {
            Err(Cut::Stopped(stop)) => Some(stop),
            _ => None,
        };
        self.trail
            .absorb_passing(Direction::ToServer, passing.report(), stop);
        match carried {
            Ok(answer) => self.answered(session, ready, upstream, Ok(answer)).await,
            Err(cut) => {
                // Unless the server had all of it, it cannot answer.
                if matches!(cut, Cut::Refused(_) | Cut::Stopped(_)) {
                    ready.calls.ended(&ready.call);
                }
                self.not_sent(session, ready, cut).await
            }
        }
    }

    /// All of the message, and the server's answer. Dropped before its end, the upload breaks off.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller; all of it is one message's facts"
    )]
    async fn carry_up(
        &self,
        session: &mut ServerSession,
        passing: &mut Passing<ToServer>,
        judge: &Judge<'_>,
        facts: &Facts,
        begun: Gathered,
        link: &HttpLink,
        upstream: &UpstreamHeaders,
    ) -> Result<Answer, Cut> {
        let mut first = Vec::new();
        for piece in begun.bytes.chunks(TURN_BYTES) {
            first.push(passing.push(piece, judge)?);
            tokio::task::yield_now().await;
        }
        let mut upload = link.begin_upload(upstream).await?;
        for piece in first {
            upload.write(&piece).await?;
        }
        drop(begun);
        let started = Instant::now();
        while let Some(piece) = self
            .next_piece(session, started, passing.position())
            .await?
        {
            upload.write(&passing.push(&piece, judge)?).await?;
        }
        let last = passing.finish(judge)?;
        self.is_as_begun(passing.facts(), facts)?;
        self.end(upload, &last, link).await
    }

    async fn end(
        &self,
        mut upload: Upload,
        last: &Passed<ToServer>,
        link: &HttpLink,
    ) -> Result<Answer, Cut> {
        upload.write(last).await?;
        Ok(link.finish_upload(upload).await?)
    }

    /// Each further `message_bytes_max` has as much time as the first.
    async fn next_piece(
        &self,
        session: &mut ServerSession,
        started: Instant,
        position: u64,
    ) -> Result<Option<Bytes>, Cut> {
        let limits = &self.context.snapshot.limits;
        let shares = position / (limits.message_bytes_max as u64).max(1) + 1;
        let time = Duration::from_millis(limits.body_timeout_ms.saturating_mul(shares));
        let read = tokio::time::timeout_at(started + time, session.read_request_body());
        match read.await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(_)) => {
                let text = "The request body is malformed.";
                Err(Cut::Refused(Refusal::new(400, code::PARSE, text)))
            }
            Err(_) => {
                let text = "The request body did not arrive in time.";
                Err(Cut::Refused(Refusal::new(408, code::INVALID_REQUEST, text)))
            }
        }
    }

    /// What came late may not say something else than what was checked.
    fn is_as_begun(&self, facts: &Facts, begun: &Facts) -> Result<(), Cut> {
        if facts.meta_version == begun.meta_version {
            return Ok(());
        }
        let spoken = self.own.as_ref().map(|s| s.version);
        let spoken = spoken.or(self.head.known_version());
        if spoken.is_none_or(|version| version.era() == Era::Handshake) {
            let text = "The message names a version that its beginning and its headers do not.";
            return Err(Cut::Refused(Refusal::new(400, code::HEADER_MISMATCH, text)));
        }
        let said = BodyFacts {
            method: "tools/call",
            name: facts.name.as_deref(),
            version: facts.meta_version.as_deref(),
            names: true,
        };
        self.head.agrees_with(said, true).map_err(Cut::Refused)
    }

    async fn not_sent(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        cut: Cut,
    ) -> Result<After, Gone> {
        let id = ready.call.id.clone();
        match cut {
            Cut::Refused(refusal) => {
                if self.trail.untouched() {
                    self.trail.refused(refusal.text);
                }
                self.answer(session, Answered::Refused(refusal, id, None))
                    .await
            }
            Cut::Fault(fault) => self.fault(session, &ready, fault).await,
            Cut::Ended => self.left().await,
            Cut::Stopped(stop) => {
                let text = stop.client_text(Direction::ToServer, &self.context.server.rules);
                let text = format!("{text} Audit id: {}", self.trail.id());
                let own = id.map(|id| reply::block(&id, &ready.call.method, ready.era, &text));
                self.answer(session, Answered::Blocked(own)).await
            }
        }
    }
}
