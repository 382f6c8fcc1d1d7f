//! Takes an answer through the line into a channel: for clients whose answers do not go back on the
//! request they made (HTTP+SSE of 2024-11-05, and batches of 2025-03-26).

use audit_log::UpstreamOutcome;
use mcp_codec::{Id, Message, MessageKind};
use tokio::sync::mpsc;

use super::call::{Down, Halt, Item, Origin, Source, Step, silence, stream_silence};
use super::forward::{circuit_admits, note_fault, well};
use super::post::{Answered, Post};
use super::prepare::{Ready, asked_by};
use super::pump;
use super::reopened::Rest;
use super::trail::Trail;
use super::usable::usable_answer;
use super::{Context, NOT_RECORDED, Refusal};
use crate::pipeline::{Cleared, ToClient};
use crate::reply::{self, code};
use crate::session::{NewSession, Turn};
use crate::upstream::{CallError, Fault, Link, UpstreamHeaders, Verb};

/// Serves one message; what the client is to get goes into `out`, in order.
pub(super) async fn drive(
    post: Post,
    message: Message,
    turn: Turn,
    out: &mpsc::Sender<Cleared<ToClient>>,
) {
    if let Some(sent) = send_up(post, message, turn, out).await {
        sent.bring_back(out).await;
    }
}

/// A request that went up and waits for its answer.
pub(super) struct Sent {
    post: Post,
    ready: Box<Ready>,
    source: Source,
    upstream: UpstreamHeaders,
}

impl Sent {
    /// Takes the answer through the line into `out`.
    pub(super) async fn bring_back(self, out: &mpsc::Sender<Cleared<ToClient>>) {
        let down = Down {
            context: &self.post.context,
            era: self.ready.era,
            calls: &self.ready.calls,
            call: Some(&self.ready.call),
            resumed: None,
            handles: None,
            refusal: false,
            adapt: false,
        };
        carry(&down, self.source, self.upstream, self.post.trail, out).await;
    }
}

/// Judges one message and sends it up when it is its turn. `None`: nothing more comes of it.
pub(super) async fn send_up(
    mut post: Post,
    message: Message,
    mut turn: Turn,
    out: &mpsc::Sender<Cleared<ToClient>>,
) -> Option<Sent> {
    turn.come().await;
    let is_request = message.kind() == MessageKind::Request;
    let id = message.id().filter(|_| is_request).cloned();
    let mut ready = match post.prepare(message).await {
        Ok(ready) => ready,
        Err(answered) => {
            if post.trail.untouched() {
                post.trail.refused(match &*answered {
                    Answered::Refused(refusal, ..) => refusal.text,
                    _ => "refused",
                });
            }
            let own = match close(&post.context, post.trail, 200).await {
                true => own_words(*answered),
                false => not_recorded(id.as_ref()),
            };
            send(out, own.map(Cleared::of_ours)).await;
            return None;
        }
    };
    if let Err(fault) = circuit_admits(&post.context, ready.kind) {
        return faulted(post, &ready, fault, out).await;
    }
    post.trail.upstream_asked();
    let opened = tokio::select! {
        biased;
        opened = source_of(&mut post, &mut ready, &mut turn) => opened,
        () = out.closed() => {
            cancelled(&post.context, post.trail).await;
            return None;
        }
    };
    match opened {
        Ok(Some((source, upstream))) => Some(Sent {
            post,
            ready,
            source,
            upstream,
        }),
        Ok(None) => {
            let channel = post.own.as_ref().and_then(|own| own.channel.as_ref());
            if let (Some(channel), "notifications/initialized") = (channel, &*ready.call.method) {
                channel.greet();
            }
            post.trail.upstream_done(UpstreamOutcome::Accepted);
            close(&post.context, post.trail, 202).await;
            None
        }
        Err(fault) => faulted(post, &ready, fault, out).await,
    }
}

/// Refuses a message in `out`.
pub(super) async fn refuse(
    mut post: Post,
    message: &Message,
    refusal: Refusal,
    out: &mpsc::Sender<Cleared<ToClient>>,
) {
    post.trail.refused(refusal.text);
    let id = asked_by(message);
    if close(&post.context, post.trail, refusal.status).await {
        let own = own_words(Answered::Refused(refusal, id, None));
        send(out, own.map(Cleared::of_ours)).await;
    }
}

/// A message that could not be sent up.
async fn faulted(
    mut post: Post,
    ready: &Ready,
    fault: Fault,
    out: &mpsc::Sender<Cleared<ToClient>>,
) -> Option<Sent> {
    note_fault(&post.context, &mut post.trail, &fault);
    if fault.is_final() {
        ready.calls.ended(&ready.call);
    }
    let refusal = Refusal::fault(&fault, &post.trail);
    close(&post.context, post.trail, refusal.status).await;
    if ready.kind == MessageKind::Request {
        let id = ready.call.id.as_ref();
        let own = reply::error(id, refusal.code, &refusal.words());
        send(out, Some(Cleared::of_ours(own))).await;
    }
    None
}

/// Sends the message up. `None`: it wants no answer and was taken. The turn of a call is over when the server has it, that
/// of a word when the server took it.
async fn source_of(
    post: &mut Post,
    ready: &mut Ready,
    turn: &mut Turn,
) -> Result<Option<(Source, UpstreamHeaders)>, Fault> {
    let wants_answer = ready.kind == MessageKind::Request;
    let runtime = std::sync::Arc::clone(&post.context.server.runtime);
    match &runtime.link {
        Link::Http(link) => {
            let upstream = post.upstream_headers(ready);
            ready.goes_up();
            if wants_answer {
                ready.calls.opened(&ready.call, ready.progress.clone());
            }
            let sent = || {
                if wants_answer {
                    turn.over();
                }
            };
            let answer = link
                .send_telling(Verb::Post, &upstream, Some(&ready.cleared), sent)
                .await?;
            ready.cleared.sent();
            post.trail.heard(answer.head());
            let (origin, head) = usable_answer(answer, wants_answer)?;
            well(&post.context);
            if let (Some(id), Some(own)) = (head.session_id, &post.own) {
                own.upstream_says(id);
            }
            Ok(origin.map(|mut origin| {
                if let Origin::Events(events) = &mut origin {
                    events.set_idle_timeout(stream_silence(&post.context, &ready.call));
                }
                (Source::new(origin), upstream)
            }))
        }
        Link::Duplex(_) => {
            let duplex = post.own.as_ref().and_then(|own| own.duplex.clone());
            let Some(duplex) = duplex.filter(|d| d.is_open()) else {
                return Err(Fault::Broken("the server ended"));
            };
            if !wants_answer {
                duplex.send(&ready.cleared).await?;
                return Ok(None);
            }
            let Some(id) = ready.call.id.clone() else {
                return Ok(None);
            };
            let silence = silence(&post.context, &ready.call);
            ready.goes_up();
            let subscription = duplex
                .call(id, ready.progress.clone(), &ready.cleared, silence)
                .await;
            ready.cleared.sent();
            let subscription = subscription.map_err(|error| match error {
                CallError::Fault(fault) => fault,
                CallError::TooMany => Fault::Busy,
                CallError::DuplicateId => Fault::IdInUse,
            })?;
            // Only now: one that is refused for its id may not touch the call that has it.
            ready.calls.opened(&ready.call, ready.progress.clone());
            let source = Source::new(Origin::Duplex(subscription));
            Ok(Some((source, UpstreamHeaders::default())))
        }
    }
}

async fn carry(
    down: &Down<'_>,
    mut source: Source,
    upstream: UpstreamHeaders,
    mut trail: Trail,
    out: &mpsc::Sender<Cleared<ToClient>>,
) {
    // An error without an id among events: it is the answer only if no other comes.
    let mut orphan: Option<Cleared<ToClient>> = None;
    let mut rest = Rest::new();
    let halt = loop {
        let next = tokio::select! {
            // A source that always has more must not hide that nobody wants it.
            biased;
            () = out.closed() => {
                pump::abandon(down, &source, "nobody waits for the answer").await;
                return cancelled(down.context, trail).await;
            }
            next = next_of(down, &mut source, &upstream, &rest, orphan.is_none()) => next,
        };
        let item = match next {
            Ok(Some(item)) => item,
            Ok(None) => break Halt::Fault(source.ended_early(&down.context.snapshot.limits)),
            Err(Fault::Cancelled) => return cancelled(down.context, trail).await,
            Err(fault) => break Halt::Fault(fault),
        };
        let step = down.step(item, &mut trail).await;
        if let Ok(step) = &step {
            rest.pass(step);
        }
        match step {
            Ok(Step::Send {
                message,
                last: true,
                ..
            }) if orphan.is_none() && source.is_events() && is_nobodys(&message) => {
                orphan = Some(message);
            }
            Ok(Step::Send {
                message,
                last: true,
                ..
            }) => {
                trail.upstream_done(UpstreamOutcome::Answered);
                // For a duplex this is the first sign that it is well.
                well(down.context);
                let message = match close(down.context, trail, 200).await {
                    true => Some(message),
                    false => {
                        let id = down.call.and_then(|call| call.id.as_ref());
                        not_recorded(id).map(Cleared::of_ours)
                    }
                };
                send(out, message).await;
                return;
            }
            Ok(Step::Send { message, .. }) => send(out, Some(message)).await,
            Ok(Step::Prime { .. } | Step::Skip { to_server: None }) => {}
            Ok(Step::Skip {
                to_server: Some(word),
            }) => {
                tokio::select! {
                    biased;
                    () = pump::tell_server(down.context, &source, &upstream, &word) => {}
                    // The next turn says so.
                    () = out.closed() => {}
                }
            }
            Err(halt) => break halt,
        }
    };
    let id = down.call.and_then(|c| c.id.clone());
    let own = match (halt, orphan) {
        (Halt::Fault(_), Some(orphan)) => {
            trail.upstream_done(UpstreamOutcome::Answered);
            let message = match close(down.context, trail, 200).await {
                true => Some(orphan),
                false => not_recorded(id.as_ref()).map(Cleared::of_ours),
            };
            return send(out, message).await;
        }
        (Halt::Fault(fault), None) => {
            pump::give_up(down, &source, &fault).await;
            note_fault(down.context, &mut trail, &fault);
            let refusal = Refusal::fault(&fault, &trail);
            close(down.context, trail, refusal.status).await;
            reply::error(id.as_ref(), refusal.code, &refusal.words())
        }
        (Halt::Revoked, _) => {
            pump::abandon(down, &source, "nobody may listen any more").await;
            trail.upstream_done(UpstreamOutcome::Cancelled);
            close(down.context, trail, 401).await;
            reply::error(id.as_ref(), code::UNAUTHENTICATED, pump::REVOKED)
        }
        (Halt::NotAudited, _) => reply::error(id.as_ref(), code::UNAVAILABLE, NOT_RECORDED.text),
    };
    if id.is_some() {
        send(out, Some(Cleared::of_ours(own))).await;
    }
}

/// The next item of an answer, out of another stream where the one that it began in is over (SEP-1699): the client has no
/// way to come back for it.
async fn next_of(
    down: &Down<'_>,
    source: &mut Source,
    upstream: &UpstreamHeaders,
    rest: &Rest,
    goes_on: bool,
) -> Result<Option<Item>, Fault> {
    loop {
        let next = source.next().await;
        // Whether on purpose or not: the server may have kept the rest.
        let is_over = matches!(next, Ok(None) | Err(Fault::Cut));
        if !is_over || !goes_on || !source.is_events() {
            return next;
        }
        match rest.open(down, upstream).await? {
            Some(again) => *source = again,
            None => return next,
        }
    }
}

/// An answer without an id: the server could not tell whose it is.
pub(super) fn is_nobodys(message: &Cleared<ToClient>) -> bool {
    message.message().is_some_and(|m| m.id().is_none())
}

/// In place of an answer that left no record: who asked must not wait for ever.
fn not_recorded(id: Option<&Id>) -> Option<reply::Own> {
    id.map(|id| reply::error(Some(id), code::UNAVAILABLE, NOT_RECORDED.text))
}

fn own_words(answered: Answered) -> Option<reply::Own> {
    match answered {
        Answered::Refused(refusal, id, _) => id
            .as_ref()
            .map(|id| reply::error(Some(id), refusal.code, &refusal.words())),
        Answered::Blocked(own) => own,
        Answered::Said(_, own) => Some(own),
    }
}

/// Closes a trail; false when its answer must be held back.
async fn close(context: &Context, trail: Trail, status: u16) -> bool {
    trail
        .close(&context.gateway, &context.snapshot, &context.server, status)
        .await
        .is_ok()
}

/// Whoever asked takes no answers any more.
async fn cancelled(context: &Context, mut trail: Trail) {
    trail.upstream_done(UpstreamOutcome::Cancelled);
    close(context, trail, 499).await;
}

async fn send(out: &mpsc::Sender<Cleared<ToClient>>, message: Option<Cleared<ToClient>>) {
    if let Some(message) = message {
        // A client that is gone loses its messages; who reads the next one sees that it is.
        let _ = out.send(message).await;
    }
}

/// What a session of a client without `Mcp-Session-Id` is made of.
pub(super) fn new_session(context: &Context) -> NewSession {
    NewSession {
        owner: std::sync::Arc::clone(&context.principal.owner),
        server: std::sync::Arc::clone(&context.server.id),
        upstream_id: None,
        version: domain::ProtocolVersion::V2024_11_05,
        calls: std::sync::Arc::new(crate::session::Calls::new(
            context.snapshot.limits.pending_calls_max,
        )),
        duplex: None,
        channel: None,
    }
}
