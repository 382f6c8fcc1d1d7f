//! Answers that are too long to be held: they go down in steps, each of them decided.
//!
//! What was let go cannot be taken back. So the last byte waits for the end of the message, for the last decision and for
//! the audit record; where one of them fails the connection breaks off, and what the client has is no whole message.

use audit_log::UpstreamOutcome;
use bytes::Bytes;
use domain::Direction;
use http::Version;
use mcp_codec::MessageKind;
use pingora_core::protocols::http::ServerSession;

use super::After;
use super::attribute::Tie;
use super::forward::note_fault;
use super::io::{self, Gone};
use super::post::{Answered, Post};
use super::prepare::Ready;
use crate::pipeline::{self, Halted, Judge, Passed, Passing, Stop, ToClient};
use crate::reply;
use crate::upstream::{Fault, Link, LongBody, Oversize};

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
            Halted::Malformed(_) => Self::Fault(Fault::Broken("a message that is not accepted")),
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

impl Post {
    /// Carries a long JSON answer down.
    pub(super) async fn answer_long(
        mut self,
        session: &mut ServerSession,
        ready: Ready,
        mut body: LongBody,
    ) -> Result<After, Gone> {
        let begun = body.take_begun();
        if let Err(fault) = self.may_pass(session, &ready, &begun) {
            return self.fault(session, &ready, fault).await;
        }
        if let Some(id) = &ready.call.id {
            ready.calls.answered(id);
        }
        let context = self.context.clone();
        let tie = Tie::to(&context, ready.call.clone());
        let judge = tie.judge(&context, ready.era, ready.calls.session());
        let limits = &context.snapshot.limits;
        let mut passing = Passing::<ToClient>::new(limits, context.server.policy.dry_run());
        let mut begun_down = false;
        let carried = self
            .carry_long(
                session,
                &mut passing,
                &judge,
                begun,
                &mut body,
                &mut begun_down,
            )
            .await;
        self.trail.record().bytes.response += passing.position();
        let stop = match &carried {
            Err(Cut::Stopped(stop)) => Some(stop),
            _ => None,
        };
        let report = passing.report();
        self.trail.absorb_passing(Direction::ToClient, report, stop);
        match carried {
            Ok(last) => {
                self.trail.upstream_done(UpstreamOutcome::Answered);
                if let Link::Http(link) = &context.server.runtime.link {
                    link.give_back_long(body).await;
                }
                self.let_go(session, last).await
            }
            Err(cut) => self.cut(session, &ready, begun_down, cut).await,
        }
    }

    /// Whether an answer may go down in steps: what it is, and what policy can come to, is known from its beginning.
    fn may_pass(&self, session: &ServerSession, ready: &Ready, begun: &[u8]) -> Result<(), Fault> {
        let too_large = |why| Err(Fault::TooLarge(why));
        if session.req_header().version < Version::HTTP_11 {
            return too_large(Oversize::OldHttp);
        }
        // Their results are changed on the way, or learnt from.
        let kind = matches!(
            &*ready.call.method,
            "initialize" | "tools/list" | "server/discover"
        );
        if kind || ready.kind != MessageKind::Request {
            return too_large(Oversize::Kind);
        }
        let facts = pipeline::facts_of(begun, &self.context.snapshot.limits)
            .map_err(|_| Fault::Broken("a message that is not accepted"))?;
        if facts.method.is_some() || facts.id.as_ref().is_some_and(|id| *id != ready.call.id) {
            return Err(Fault::Broken("an answer to another request"));
        }
        if facts.id.is_none() {
            return too_large(Oversize::Unnamed);
        }
        let tie = Tie::to(&self.context, ready.call.clone());
        let judge = tie.judge(&self.context, ready.era, ready.calls.session());
        Passing::<ToClient>::check(&judge).map_err(|why| Fault::TooLarge(why.into()))
    }

    /// Everything but the last piece, which is given back.
    async fn carry_long(
        &mut self,
        session: &mut ServerSession,
        passing: &mut Passing<ToClient>,
        judge: &Judge<'_>,
        begun: Bytes,
        body: &mut LongBody,
        begun_down: &mut bool,
    ) -> Result<Passed<ToClient>, Cut> {
        // The beginning is judged before the head goes down: what is wrong with it can still be answered.
        let mut first = Vec::new();
        for piece in begun.chunks(TURN_BYTES) {
            first.push(passing.push(piece, judge)?);
            tokio::task::yield_now().await;
        }
        drop(begun);
        *begun_down = true;
        io::begin_json(session, std::mem::take(&mut self.extra)).await?;
        for piece in first {
            io::passed(session, &piece).await?;
        }
        loop {
            let piece = tokio::select! {
                biased;
                piece = body.next() => piece?,
                () = io::closed(session) => return Err(Cut::Gone),
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
        last: Passed<ToClient>,
    ) -> Result<After, Gone> {
        let context = self.context;
        let trail = self.trail;
        let kept = trail
            .close(&context.gateway, &context.snapshot, &context.server, 200)
            .await;
        if kept.is_err() {
            return Err(Gone);
        }
        io::passed(session, &last).await?;
        io::end(session).await?;
        Ok(After::Keep)
    }

    /// Nothing more goes down. Before the head that can be said; after it the connection breaks off.
    async fn cut(
        mut self,
        session: &mut ServerSession,
        ready: &Ready,
        begun_down: bool,
        cut: Cut,
    ) -> Result<After, Gone> {
        let server = self.context.server.clone();
        match cut {
            Cut::Gone => {
                self.trail.upstream_done(UpstreamOutcome::Cancelled);
                self.close(499).await;
                Err(Gone)
            }
            Cut::Fault(fault) if !begun_down => self.fault(session, ready, fault).await,
            Cut::Fault(fault) => {
                note_fault(&self.context, &mut self.trail, &fault);
                self.close(200).await;
                Err(Gone)
            }
            Cut::Stopped(stop) => {
                self.trail.upstream_done(UpstreamOutcome::Answered);
                if begun_down {
                    self.close(200).await;
                    return Err(Gone);
                }
                let text = stop.client_text(Direction::ToClient, &server.rules);
                let text = format!("{text} Audit id: {}", self.trail.id());
                let id = ready.call.id.as_ref();
                let own = id.map(|id| reply::block(id, &ready.call.method, ready.era, &text));
                self.answer(session, Answered::Blocked(own)).await
            }
        }
    }
}
