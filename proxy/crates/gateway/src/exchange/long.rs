//! Answers that are too long to be held: they go down in steps, each of them decided.
//!
//! What was let go cannot be taken back. So the last byte waits for the end of the message, for the last decision and for
//! the audit record; where one of them fails the connection breaks off, and what the client has is no whole message.

use std::sync::Arc;

use audit_log::UpstreamOutcome;
use bytes::Bytes;
use domain::Direction;
use http::Version;
use mcp_codec::sse::{Event, LongEvent};
use pingora_core::protocols::http::ServerSession;

use super::attribute::Tie;
use super::call::Down;
use super::forward::note_fault;
use super::io::{self, Extra, Gone};
use super::post::Post;
use super::prepare::Ready;
use super::trail::{NotAudited, Trail};
use super::{After, Context, NOT_RECORDED, Refusal};
use crate::pipeline::{self, Cleared, Halted, Judge, Passed, Passing, Stop, ToClient};
use crate::reply::{self, code};
use crate::session::Call;
use crate::upstream::{EventStream, Fault, Link, LongBody, Oversize};

/// Bytes of a message's beginning that are judged before others get their turn.
const TURN_BYTES: usize = 256 << 10;

/// Why an answer stopped on its way down.
enum Cut {
    Fault(Fault),
    Stopped(Stop),
    Gone,
}

impl From<Halted> for Cut {
    fn from(halted: Halted) -> Self {
        match halted {
            Halted::Malformed(error) => Self::Fault(Fault::Malformed(error.kind)),
            Halted::Stopped(stop) => Self::Stopped(stop),
        }
    }
}

impl From<Fault> for Cut {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Gone> for Cut {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// Where a long answer comes from, and so how it goes down.
pub(super) enum LongSource {
    /// A JSON body.
    Body(Box<LongBody>),
    /// An event of a stream; the stream down has begun.
    Event(Box<EventStream>, LongEvent),
}

impl LongSource {
    fn take_begun(&mut self) -> Bytes {
        match self {
            Self::Body(body) => body.take_begun(),
            Self::Event(_, event) => event.take_begun().into(),
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        match self {
            Self::Body(body) => body.next().await,
            Self::Event(events, event) => Ok(events.next_of(event).await?.map(Bytes::from)),
        }
    }
}

/// A long answer on its way down.
pub(super) struct Descent<'a> {
    pub(super) down: Down<'a>,
    pub(super) source: LongSource,
    pub(super) extra: Extra,
}

impl Post {
    /// Carries a long JSON answer down.
    pub(super) async fn answer_long(
        self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        body: Box<LongBody>,
    ) -> Result<After, Gone> {
        let down = Down {
            context: &self.context,
            era: ready.era,
            calls: &ready.calls,
            call: Some(&ready.call),
            resumed: None,
            handles: None,
            refusal: false,
            adapt: false,
        };
        let descent = Descent {
            down,
            source: LongSource::Body(body),
            extra: self.extra,
        };
        descent.run(session, self.trail).await
    }
}

impl Descent<'_> {
    /// Carries the answer down; closes the trail before its last byte.
    pub(super) async fn run(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
    ) -> Result<After, Gone> {
        let begun = self.source.take_begun();
        let call = match self.may_pass(session, &begun) {
            Ok(call) => call,
            Err(fault) => return self.cut(session, trail, false, Cut::Fault(fault)).await,
        };
        self.down.calls.ended(&call);
        let context = self.down.context;
        let tie = Tie::to(context, call);
        let judge = tie.judge(context, self.down.era, self.down.calls.session());
        let limits = &context.snapshot.limits;
        let mut passing = Passing::<ToClient>::new(limits, context.server.policy.dry_run());
        let mut begun_down = false;
        let carried = self
            .carry(session, &mut passing, &judge, begun, &mut begun_down)
            .await;
        trail.record().bytes.response += passing.position();
        let stop = match &carried {
            Err(Cut::Stopped(stop)) => Some(stop),
            _ => None,
        };
        trail.absorb_passing(Direction::ToClient, passing.report(), stop);
        match carried {
            Ok(last) => self.let_go(session, trail, last).await,
            Err(cut) => self.cut(session, trail, begun_down, cut).await,
        }
    }

    /// Whether an answer may go down in steps: what it is, and what policy can come to, is known from its beginning. Gives
    /// the call that it answers.
    fn may_pass(&self, session: &ServerSession, begun: &[u8]) -> Result<Arc<Call>, Fault> {
        let too_large = |why| Err(Fault::TooLarge(why));
        if session.req_header().version < Version::HTTP_11 {
            return too_large(Oversize::OldHttp);
        }
        let Some(call) = self.down.call.filter(|call| call.id.is_some()) else {
            return too_large(Oversize::Kind);
        };
        // Their results are changed on the way, or learnt from.
        if matches!(
            &*call.method,
            "initialize" | "tools/list" | "server/discover"
        ) {
            return too_large(Oversize::Kind);
        }
        let facts = pipeline::facts_of(begun, &self.down.context.snapshot.limits)
            .map_err(|error| Fault::Malformed(error.kind))?;
        if facts.method.is_some() {
            return too_large(Oversize::Kind);
        }
        match &facts.id {
            None => return too_large(Oversize::Unnamed),
            Some(id) if *id != call.id => {
                return Err(Fault::Broken("an answer to another request"));
            }
            Some(_) => {}
        }
        let tie = Tie::to(self.down.context, Arc::clone(call));
        let judge = tie.judge(self.down.context, self.down.era, self.down.calls.session());
        match Passing::<ToClient>::check(&judge) {
            Ok(()) => Ok(Arc::clone(call)),
            Err(why) => too_large(why.into()),
        }
    }

    /// Everything but the last piece, which is given back.
    async fn carry(
        &mut self,
        session: &mut ServerSession,
        passing: &mut Passing<ToClient>,
        judge: &Judge<'_>,
        begun: Bytes,
        begun_down: &mut bool,
    ) -> Result<Passed<ToClient>, Cut> {
        // The beginning is judged before any of it goes down: what is wrong with it can still be answered.
        let mut first = Vec::new();
        for piece in begun.chunks(TURN_BYTES) {
            first.push(passing.push(piece, judge)?);
            tokio::task::yield_now().await;
        }
        drop(begun);
        *begun_down = true;
        match &mut self.source {
            LongSource::Body(_) => {
                io::begin_json(session, std::mem::take(&mut self.extra)).await?;
            }
            LongSource::Event(_, event) => {
                let id = event.id.take().filter(|id| self.down.id_is_clean(id));
                io::begin_event(session, id.as_deref()).await?;
            }
        }
        for piece in first {
            io::passed(session, &piece).await?;
        }
        loop {
            let piece = tokio::select! {
                biased;
                piece = self.source.next() => piece?,
                () = io::closed(session, &self.down.context.gateway) => return Err(Cut::Gone),
            };
            match piece {
                Some(piece) => io::passed(session, &passing.push(&piece, judge)?).await?,
                None => return Ok(passing.finish(judge)?),
            }
        }
    }

    /// The last piece, once the record is kept.
    async fn let_go(
        self,
        session: &mut ServerSession,
        mut trail: Trail,
        last: Passed<ToClient>,
    ) -> Result<After, Gone> {
        let context = self.down.context;
        trail.upstream_done(UpstreamOutcome::Answered);
        let kept = trail
            .close(&context.gateway, &context.snapshot, &context.server, 200)
            .await;
        if kept.is_err() {
            return Err(Gone);
        }
        io::passed(session, &last).await?;
        match self.source {
            LongSource::Body(body) => {
                io::end(session).await?;
                if let Link::Http(link) = &context.server.runtime.link {
                    link.give_back_long(*body).await;
                }
            }
            LongSource::Event(..) => {
                io::end_event(session).await?;
                io::end(session).await?;
            }
        }
        Ok(After::Keep)
    }

    /// Nothing more goes down. Before its beginning that can be said; after it the connection breaks off.
    async fn cut(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
        begun_down: bool,
        cut: Cut,
    ) -> Result<After, Gone> {
        let context = self.down.context;
        let call = self.down.call;
        let id = call.and_then(|call| call.id.clone());
        let events = matches!(self.source, LongSource::Event(..));
        let (status, said) = match cut {
            Cut::Gone => {
                trail.upstream_done(UpstreamOutcome::Cancelled);
                let _ = close(context, trail, 499).await;
                return Err(Gone);
            }
            Cut::Fault(fault) => {
                note_fault(context, &mut trail, &fault);
                let refusal = Refusal::fault(&fault, &trail);
                (if events { 200 } else { fault.status() }, Err(refusal))
            }
            Cut::Stopped(stop) => {
                trail.upstream_done(UpstreamOutcome::Answered);
                let text = stop.client_text(Direction::ToClient, &context.server.rules);
                let text = format!("{text} Audit id: {}", trail.id());
                let own = match (&id, call) {
                    (Some(id), Some(call)) => reply::block(id, &call.method, self.down.era, &text),
                    _ => reply::error(None, code::BLOCKED, &text),
                };
                (200, Ok(own))
            }
        };
        let kept = close(context, trail, if begun_down { 200 } else { status }).await;
        if begun_down {
            return Err(Gone);
        }
        let said = kept.map_or(Err(NOT_RECORDED), |()| said);
        let extra = std::mem::take(&mut self.extra);
        match said {
            Ok(own) if !events => io::json(session, 200, own.into_bytes(), extra).await?,
            Err(refusal) if !events => {
                io::refuse_request(session, refusal, id.as_ref(), None, extra).await?;
            }
            said => {
                let own = said.unwrap_or_else(|r| reply::error(id.as_ref(), r.code, &r.words()));
                let message = Cleared::<ToClient>::of_ours(own);
                super::pump::send_event(session, &message, Event::default()).await?;
                io::end(session).await?;
            }
        }
        Ok(After::Keep)
    }
}

async fn close(context: &Context, trail: Trail, status: u16) -> Result<(), NotAudited> {
    trail
        .close(&context.gateway, &context.snapshot, &context.server, status)
        .await
}
