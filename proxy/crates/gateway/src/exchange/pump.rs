//! Carries an answer to the client: as JSON while it is one message, else as events.

use std::time::Duration;

use audit_log::UpstreamOutcome;
use mcp_codec::sse::{Event, LongEvent};
use pingora_core::protocols::http::ServerSession;

use super::call::{Down, Halt, Origin, Source, Step};
use super::io::{self, Extra, Gone};
use super::long::{Descent, LongSource};
use super::trail::Trail;
use super::{After, NOT_RECORDED, Refusal};
use crate::pipeline::{Cleared, ToClient, ToServer};
use crate::reply::{self, code};
use crate::upstream::{Fault, Link, Purpose, UpstreamHeaders, Verb};

/// How long an upstream may take to end a stream whose answer was given.
const TAIL_WAIT: Duration = Duration::from_millis(20);

/// How long a server may take to read that it is to stop.
const CANCEL_WAIT: Duration = Duration::from_millis(500);

/// For a client whose subscription outlived what allowed it.
pub(super) const REVOKED: &str =
    "This stream has ended: its key is not valid here any more, or its server is another one now.";

/// One answer on its way.
pub(super) struct Pump<'a> {
    pub down: Down<'a>,
    pub source: Source,
    pub status: u16,
    pub extra: Extra,
    /// Where error replies to the server go: its session.
    pub upstream: UpstreamHeaders,
    /// Events even for a single message: the upstream chose so.
    pub events: bool,
    /// The stream named event ids, so a client can come back for the rest.
    pub resumable: bool,
}

impl Pump<'_> {
    /// Carries the answer; closes the trail before the last message is released.
    pub(super) async fn run(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
    ) -> Result<After, Gone> {
        let mut begun = false;
        let halt = match self.carry(session, &mut trail, &mut begun).await {
            Ok(Carried::Last(last)) => {
                let (message, event) = *last;
                return self.release(session, trail, begun, message, event).await;
            }
            Ok(Carried::Long(event)) => {
                let Origin::Events(events) = self.source.origin else {
                    return Err(Gone);
                };
                let descent = Descent {
                    down: self.down,
                    source: LongSource::Event(events, event),
                    extra: self.extra,
                };
                return Box::pin(descent.run(session, trail)).await;
            }
            Ok(Carried::Ended) if self.resumable && begun => {
                // SEP-1699: the server hung up on purpose; the client comes back with Last-Event-ID.
                trail.upstream_done(UpstreamOutcome::Answered);
                return self.interrupted(session, trail).await;
            }
            Err(Stopped::Halt(Halt::Fault(fault @ Fault::Cut))) if self.resumable && begun => {
                // So it does where the line broke: the server may have kept the rest, and an error would have it call again.
                super::forward::note_fault(self.down.context, &mut trail, &fault);
                return self.interrupted(session, trail).await;
            }
            Ok(Carried::Ended) => {
                let limits = &self.down.context.snapshot.limits;
                Halt::Fault(self.source.ended_early(limits))
            }
            Err(Stopped::Halt(halt)) => halt,
            Err(Stopped::Gone) => {
                trail.upstream_done(UpstreamOutcome::Cancelled);
                Box::pin(self.cancel_upstream()).await;
                self.close(trail, 499).await;
                return Err(Gone);
            }
        };
        Box::pin(self.fail(session, trail, begun, halt)).await
    }

    /// Everything up to the last message, or up to one that is too long to be held.
    async fn carry(
        &mut self,
        session: &mut ServerSession,
        trail: &mut Trail,
        begun: &mut bool,
    ) -> Result<Carried, Stopped> {
        if self.events {
            // The upstream began its stream, so ours begins: the head must not wait for an event.
            self.begin(session, begun).await?;
        }
        // An error without an id among events: it is the answer only if no other comes.
        let mut orphan: Option<Box<(Cleared<ToClient>, Event)>> = None;
        loop {
            let item = match self.next(session, begun).await {
                Ok(Some(item)) => item,
                Ok(None) => return Ok(orphan.map_or(Carried::Ended, Carried::Last)),
                Err(stopped) => {
                    return match (self.long_event(&stopped), stopped, orphan) {
                        (Some(event), ..) => Ok(Carried::Long(event)),
                        (None, Stopped::Halt(Halt::Fault(_)), Some(orphan)) => {
                            Ok(Carried::Last(orphan))
                        }
                        (None, stopped, _) => Err(stopped),
                    };
                }
            };
            match self.down.step(item, trail).await.map_err(Stopped::Halt)? {
                Step::Send {
                    message,
                    last: true,
                    id,
                    retry_ms,
                } => {
                    let event = Event {
                        id,
                        retry_ms,
                        ..Event::default()
                    };
                    let last = Box::new((message, event));
                    if !self.events || !super::drive::is_nobodys(&last.0) {
                        return Ok(Carried::Last(last));
                    }
                    orphan.get_or_insert(last);
                }
                Step::Send {
                    message,
                    last: false,
                    id,
                    retry_ms,
                } => {
                    if !self.events && !matches!(self.source.origin, Origin::Duplex(_)) {
                        // A JSON body that does not answer the question.
                        let fault = Fault::Broken("an answer to another request");
                        return Err(Stopped::Halt(Halt::Fault(fault)));
                    }
                    self.told(id.as_deref());
                    self.begin(session, begun).await?;
                    send_event(
                        session,
                        &message,
                        Event {
                            id,
                            retry_ms,
                            ..Event::default()
                        },
                    )
                    .await?;
                }
                Step::Prime { id, retry_ms } => {
                    self.told(id.as_deref());
                    self.begin(session, begun).await?;
                    let event = Event {
                        id,
                        retry_ms,
                        data: Some("".into()),
                        ..Event::default()
                    };
                    io::event(session, &event).await?;
                }
                Step::Skip { to_server } => {
                    if let Some(message) = to_server {
                        tokio::select! {
                            biased;
                            () = Box::pin(self.tell_server(&message)) => {}
                            () = io::closed(session, &self.down.context.gateway) => return Err(Stopped::Gone),
                        }
                    }
                }
            }
        }
    }

    /// Whoever hears of an event's id can come back for what follows it.
    fn told(&mut self, id: Option<&str>) {
        if let Some(id) = id {
            self.resumable = true;
            self.down.told_event(id);
        }
    }

    /// The event that was too long to be an item.
    fn long_event(&mut self, stopped: &Stopped) -> Option<LongEvent> {
        let Origin::Events(events) = &mut self.source.origin else {
            return None;
        };
        let too_large = matches!(stopped, Stopped::Halt(Halt::Fault(Fault::TooLarge(_))));
        let streams = too_large && self.down.context.snapshot.limits.streams();
        if streams { events.take_long() } else { None }
    }

    /// The next item. While the upstream is silent the client is kept company, or found gone.
    async fn next(
        &mut self,
        session: &mut ServerSession,
        begun: &mut bool,
    ) -> Result<Option<super::call::Item>, Stopped> {
        let limits = &self.down.context.snapshot.limits;
        let every = Duration::from_millis(limits.keep_alive_ms.max(100));
        let may_begin = matches!(self.source.origin, Origin::Duplex(_));
        let extra = &mut self.extra;
        let next = self.source.next();
        tokio::pin!(next);
        loop {
            tokio::select! {
                biased;
                item = &mut next => return item.map_err(|f| Stopped::Halt(Halt::Fault(f))),
                () = tokio::time::sleep(every) => {
                    if self.down.listens() && !self.down.context.lives_on() {
                        return Err(Stopped::Halt(Halt::Revoked));
                    }
                    if !*begun && may_begin {
                        *begun = true;
                        io::begin_events(session, std::mem::take(extra)).await?;
                    }
                    if *begun {
                        io::keep_alive(session).await?;
                    }
                }
                () = io::closed(session, &self.down.context.gateway) => return Err(Stopped::Gone),
            }
        }
    }

    async fn begin(&mut self, session: &mut ServerSession, begun: &mut bool) -> Result<(), Gone> {
        if *begun {
            return Ok(());
        }
        *begun = true;
        io::begin_events(session, std::mem::take(&mut self.extra)).await
    }

    /// Gives the last message to the client once its record is safe.
    async fn release(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
        begun: bool,
        message: Cleared<ToClient>,
        event: Event,
    ) -> Result<After, Gone> {
        trail.upstream_done(UpstreamOutcome::Answered);
        let context = self.down.context;
        // For a duplex this is the first sign that it is well.
        super::forward::well(context);
        let status = self.status_of(&message);
        let kept = trail
            .close(&context.gateway, &context.snapshot, &context.server, status)
            .await;
        if kept.is_err() {
            return Box::pin(self.unavailable(session, begun)).await;
        }
        if !begun && !self.events {
            io::cleared(session, status, &message, std::mem::take(&mut self.extra)).await?;
            return Ok(After::Keep);
        }
        let mut begun = begun;
        self.begin(session, &mut begun).await?;
        send_event(session, &message, event).await?;
        io::end(session).await?;
        Box::pin(self.finish_source()).await;
        Ok(After::Keep)
    }

    /// Reads the rest of a stream that should be over, so that its connection can be used again.
    async fn finish_source(self) {
        if let (Origin::Events(mut events), Link::Http(link)) =
            (self.source.origin, &self.down.context.server.runtime.link)
        {
            let end = pingora_timeout::timeout(TAIL_WAIT, events.next()).await;
            if matches!(end, Ok(Ok(None))) {
                link.give_back(*events).await;
            }
        }
    }

    /// Ends the client's stream without an answer.
    async fn interrupted(self, session: &mut ServerSession, trail: Trail) -> Result<After, Gone> {
        self.close(trail, 200).await;
        io::end(session).await?;
        Ok(After::Keep)
    }

    async fn fail(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
        begun: bool,
        halt: Halt,
    ) -> Result<After, Gone> {
        let fault = match halt {
            Halt::Fault(Fault::Cancelled) => return self.cancelled(session, trail, begun).await,
            Halt::Fault(fault) => fault,
            Halt::NotAudited => return self.unavailable(session, begun).await,
            Halt::Revoked => return self.revoked(session, trail, begun).await,
        };
        give_up(&self.down, &self.source, &fault).await;
        super::forward::note_fault(self.down.context, &mut trail, &fault);
        let refusal = Refusal::fault(&fault, &trail);
        let status = if begun { 200 } else { refusal.status };
        self.close(trail, status).await;
        self.last_words(session, begun, refusal, fault.retry_after_s())
            .await
    }

    /// The client took the call back: its answer is an empty stream.
    async fn cancelled(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
        mut begun: bool,
    ) -> Result<After, Gone> {
        trail.upstream_done(UpstreamOutcome::Cancelled);
        self.close(trail, Fault::Cancelled.status()).await;
        self.begin(session, &mut begun).await?;
        io::end(session).await?;
        Ok(After::Keep)
    }

    /// Whoever listened may not any more.
    async fn revoked(
        mut self,
        session: &mut ServerSession,
        mut trail: Trail,
        begun: bool,
    ) -> Result<After, Gone> {
        abandon(&self.down, &self.source, "nobody may listen any more").await;
        trail.upstream_done(UpstreamOutcome::Cancelled);
        let status = if begun { 200 } else { 401 };
        self.close(trail, status).await;
        let refusal = Refusal::new(401, code::UNAUTHENTICATED, REVOKED);
        self.last_words(session, begun, refusal, None).await
    }

    async fn unavailable(
        mut self,
        session: &mut ServerSession,
        begun: bool,
    ) -> Result<After, Gone> {
        self.last_words(session, begun, NOT_RECORDED, None).await
    }

    async fn last_words(
        &mut self,
        session: &mut ServerSession,
        begun: bool,
        refusal: Refusal,
        retry_after_s: Option<u64>,
    ) -> Result<After, Gone> {
        let id = self.id();
        if begun {
            let own = reply::error(id.as_ref(), refusal.code, &refusal.words());
            let message = Cleared::<ToClient>::of_ours(own);
            send_event(session, &message, Event::default()).await?;
            io::end(session).await?;
        } else {
            let extra = std::mem::take(&mut self.extra);
            io::refuse_request(session, refusal, id.as_ref(), retry_after_s, extra).await?;
        }
        Ok(After::Keep)
    }

    /// In the stateless era an unknown method is HTTP 404; a duplex upstream has no status to say so.
    fn status_of(&self, message: &Cleared<ToClient>) -> u16 {
        let stateless = self.down.era == domain::Era::Stateless;
        let duplex = matches!(self.source.origin, Origin::Duplex(_));
        let unknown = message.message().is_some_and(|m| {
            let code = m.doc().get(&["error", "code"]);
            code.and_then(|n| m.doc().number(n)) == Some("-32601")
        });
        if stateless && duplex && unknown {
            404
        } else {
            self.status
        }
    }

    fn id(&self) -> Option<mcp_codec::Id> {
        self.down.call.and_then(|c| c.id.clone())
    }

    async fn close(&self, trail: Trail, status: u16) {
        let context = self.down.context;
        let _ = trail
            .close(&context.gateway, &context.snapshot, &context.server, status)
            .await;
    }

    /// In the stateless era a closed answer is a cancellation (2026-07-28, transports); over HTTP
    /// dropping the connection says it, a duplex upstream is told.
    async fn cancel_upstream(&self) {
        if self.down.era == domain::Era::Stateless {
            cancel(&self.source, "client disconnected").await;
        }
    }

    async fn tell_server(&self, message: &Cleared<ToServer>) {
        tell_server(self.down.context, &self.source, &self.upstream, message).await;
    }
}

/// Nothing is awaited any more from a server that was silent too long: it is told to stop, and
/// whatever else it says on the call is nobody's.
pub(super) async fn give_up(down: &Down<'_>, source: &Source, fault: &Fault) {
    if *fault == Fault::TimedOut {
        abandon(down, source, "no answer in time").await;
    }
}

/// Nobody waits for the answer to this call any more.
pub(super) async fn abandon(down: &Down<'_>, source: &Source, reason: &'static str) {
    let Some(call) = down.call else { return };
    // It keeps its id: the server may answer all the same.
    // An `initialize` must not be cancelled (cancellation, all revisions that have one).
    if &*call.method != "initialize" {
        cancel(source, reason).await;
    }
    if let Origin::Duplex(subscription) = &source.origin {
        subscription.forget();
    }
}

/// Tells a duplex upstream that nobody waits for an answer any more.
async fn cancel(source: &Source, reason: &'static str) {
    let Origin::Duplex(subscription) = &source.origin else {
        return;
    };
    let Some(id) = subscription.id() else { return };
    let word = Cleared::<ToServer>::of_ours(reply::cancelled(id, reason));
    // It may have stopped reading: the client's answer does not wait for it.
    let told = tokio::time::timeout(CANCEL_WAIT, subscription.session().send(&word));
    let _ = told.await;
}

/// Sends a word of ours up, in the session that an answer belongs to.
pub(super) async fn tell_server(
    context: &super::Context,
    source: &Source,
    headers: &UpstreamHeaders,
    message: &Cleared<ToServer>,
) {
    let told = match (&source.origin, &context.server.runtime.link) {
        (Origin::Duplex(subscription), _) => subscription.session().send(message).await,
        (_, Link::Http(link)) => {
            let headers = UpstreamHeaders {
                purpose: Purpose::Word,
                ..headers.clone()
            };
            let told = link.send(Verb::Post, &headers, Some(message)).await;
            told.map(|_| ())
        }
        _ => Ok(()),
    };
    if let Err(fault) = told {
        tracing::warn!(server_id = %context.server.id, %fault, "a refusal could not be told");
    }
}

pub(super) async fn send_event(
    session: &mut ServerSession,
    message: &Cleared<ToClient>,
    event: Event,
) -> Result<(), Gone> {
    let data = Some(message.bytes().clone());
    io::event(
        session,
        &Event {
            event: Some("message".into()),
            data,
            ..event
        },
    )
    .await
}

/// How far an answer was carried.
enum Carried {
    /// Up to its last message.
    Last(Box<(Cleared<ToClient>, Event)>),
    /// Up to one that is too long to be held.
    Long(LongEvent),
    /// The stream ended.
    Ended,
}

enum Stopped {
    Halt(Halt),
    Gone,
}

impl From<Gone> for Stopped {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}
