//! Where the messages of an answer come from, and the line down for each of them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use domain::{Era, Limits, ProtocolVersion};
use mcp_codec::{Edits, Id, Message, MessageKind, Whose};

use super::attribute::{self, Came, Tie};
use super::large;
use super::left_out::LeftOut;
use super::listed;
use super::revisions::{adapted, version_clamped, version_of, versions_narrowed};
use super::trail::{NotAudited, Trail};
use super::{Context, Renewed, unfit};
use crate::pipeline::{self, Cleared, Decoded, HeaderLeaf, Judge, Release, ToClient, ToServer};
use crate::reply;
use crate::session::{Call, Calls};
use crate::upstream::{EventStream, Fault, Oversize, Said, Silence, Subscription, message_of};

/// Messages that may come before the result of an `initialize`.
const PEEKED_MAX: usize = 16;

/// Where the messages of an answer come from.
pub(super) struct Source {
    /// What it is.
    pub origin: Origin,
    /// Items that were looked at before their turn.
    peeked: VecDeque<Item>,
    /// What came instead of an item when one was looked for before its turn.
    failed: Option<Fault>,
    /// Something that was too long to be held was passed over.
    passed_over: bool,
}

/// What a source is.
pub(super) enum Origin {
    /// A JSON body.
    Body(Option<Bytes>),
    /// An event stream.
    Events(Box<EventStream>),
    /// A duplex upstream.
    Duplex(Subscription),
}

/// One thing a source gave.
pub(super) struct Item {
    payload: Payload,
    /// The event's id.
    id: Option<Box<str>>,
    /// The event's retry advice.
    retry_ms: Option<u64>,
}

enum Payload {
    Nothing,
    /// A body.
    Bytes(Bytes),
    /// An event's data.
    Event(Bytes),
    Message(Message, bool),
    /// It was too long to be held.
    TooLong(Whose),
}

impl Payload {
    /// What there is to be read as a message.
    fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) | Self::Event(bytes) => Some(bytes),
            Self::Nothing | Self::Message(..) | Self::TooLong(_) => None,
        }
    }
}

impl Source {
    pub(super) fn new(origin: Origin) -> Self {
        Self {
            origin,
            peeked: VecDeque::new(),
            failed: None,
            passed_over: false,
        }
    }

    /// The next item, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Item>, Fault> {
        let next = match (self.peeked.pop_front(), self.failed.take()) {
            (Some(item), failed) => {
                self.failed = failed;
                Some(item)
            }
            (None, Some(fault)) => return Err(fault),
            (None, None) => self.origin.next().await?,
        };
        self.passed_over |=
            matches!(&next, Some(item) if matches!(item.payload, Payload::TooLong(_)));
        Ok(next)
    }

    /// Why there is no answer where it ended without one.
    pub(super) fn ended_early(&self, limits: &Limits) -> Fault {
        match (self.passed_over, limits.streams()) {
            (true, true) => Fault::TooLarge(Oversize::Kind),
            (true, false) => Fault::TooLarge(Oversize::Off),
            (false, _) => Fault::Broken("the answer ended too early"),
        }
    }

    /// The revision that the result of an `initialize` names, read before the result's turn.
    /// `None`: there is no such result in its time, or nobody here inspects that revision.
    pub(super) async fn peek_version(&mut self, limits: &Limits) -> Option<ProtocolVersion> {
        // Comments, progress and the like end no silence here: nothing is asked of a client that is not answered yet.
        let wait_ms = limits
            .upstream_response_timeout_ms
            .max(limits.upstream_idle_timeout_ms);
        let codec = crate::codec_limits(limits);
        let version = self.look_for_version(&codec);
        let version = tokio::time::timeout(Duration::from_millis(wait_ms), version).await;
        version.unwrap_or_else(|_| {
            self.failed = Some(Fault::TimedOut);
            None
        })
    }

    /// May be dropped between polls: what was read stays.
    async fn look_for_version(&mut self, codec: &mcp_codec::Limits) -> Option<ProtocolVersion> {
        while self.peeked.len() < PEEKED_MAX {
            let mut item = match self.origin.next().await {
                Ok(item) => item?,
                Err(fault) => {
                    self.failed = Some(fault);
                    return None;
                }
            };
            if let Some(bytes) = item.payload.bytes() {
                match Message::decode(bytes.clone(), codec) {
                    Ok(message) => item.payload = Payload::Message(message, true),
                    Err(error) if matches!(error.whose, Whose::Word | Whose::Call(_)) => {}
                    Err(_) => {
                        self.peeked.push_back(item);
                        return None;
                    }
                }
            }
            let version = match &item.payload {
                Payload::Message(m, _) if m.result().is_some() || m.error().is_some() => {
                    Some(version_of(m))
                }
                _ => None,
            };
            self.peeked.push_back(item);
            if let Some(version) = version {
                return version;
            }
        }
        None
    }
}

impl Source {
    /// How long an event stream may say nothing.
    pub(super) fn set_idle_timeout(&mut self, most: Option<Duration>) {
        if let Origin::Events(events) = &mut self.origin {
            events.set_idle_timeout(most);
        }
    }

    /// Whether it is an event stream.
    pub(super) fn is_events(&self) -> bool {
        matches!(self.origin, Origin::Events(_))
    }
}

impl Origin {
    async fn next(&mut self) -> Result<Option<Item>, Fault> {
        match self {
            Self::Body(body) => Ok(body.take().map(|b| Item::of(Payload::Bytes(b)))),
            Self::Events(events) => {
                let mut event = match events.next().await? {
                    Some(Said::Event(event)) => event,
                    Some(Said::TooLong(whose)) => {
                        return Ok(Some(Item::of(Payload::TooLong(whose))));
                    }
                    None => return Ok(None),
                };
                let message = message_of(&mut event);
                let payload = message.map_or(Payload::Nothing, Payload::Event);
                Ok(Some(Item {
                    payload,
                    id: event.id,
                    retry_ms: event.retry_ms,
                }))
            }
            Self::Duplex(subscription) => match subscription.next().await? {
                Some(incoming) => Ok(Some(Item::of(Payload::Message(
                    incoming.message,
                    incoming.certain,
                )))),
                None => Err(Fault::Broken("the server ended")),
            },
        }
    }
}

impl Item {
    fn of(payload: Payload) -> Self {
        Self {
            payload,
            id: None,
            retry_ms: None,
        }
    }
}

/// How a message is judged and sent on the way down.
pub(super) struct Down<'a> {
    pub context: &'a Context,
    pub era: Era,
    pub calls: &'a Calls,
    /// The call whose answer this is; absent on a listen stream.
    pub call: Option<&'a Arc<Call>>,
    /// What a listen stream goes on with, by the event that the client came back for.
    pub resumed: Option<&'a Resumed>,
    /// Handles that were replaced on the way up and go back on the way down.
    pub handles: Option<&'a Handles>,
    /// The answer is a refusal (HTTP 4xx): whatever id it carries, it ends the call.
    pub refusal: bool,
    /// The server only knows the handshake: its results lack what the stateless era requires.
    pub adapt: bool,
}

/// What a stream goes on with that broke off.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    /// Whose answer it was, where that is remembered.
    pub call: Option<Arc<Call>>,
    /// The answer came: one stream has one.
    answered: AtomicBool,
}

impl Resumed {
    /// The stream in which the answer to this call, if to any, goes on.
    pub(super) fn of(call: Option<Arc<Call>>) -> Self {
        Self {
            call,
            answered: AtomicBool::new(false),
        }
    }
}

/// A shared duplex knows a request by our handle; the client knows it by its own.
#[derive(Debug, Clone)]
pub(super) struct Handles {
    pub ours: Id,
    pub id: Id,
    pub token: Option<Id>,
}

/// How long a duplex upstream may be silent on a call. A subscription has no answer to wait for.
pub(super) fn silence(context: &Context, call: &Call) -> Option<Silence> {
    (!listens(call)).then(|| Silence::of(&context.snapshot.limits))
}

/// The same for the event stream that an HTTP upstream answers a call with.
pub(super) fn stream_silence(context: &Context, call: &Call) -> Option<Duration> {
    let idle_ms = context.snapshot.limits.upstream_idle_timeout_ms;
    (!listens(call)).then(|| Duration::from_millis(idle_ms))
}

fn listens(call: &Call) -> bool {
    &*call.method == "subscriptions/listen"
}

/// What to do with one item.
pub(super) enum Step {
    /// Send this to the client.
    Send {
        message: Cleared<ToClient>,
        last: bool,
        id: Option<Box<str>>,
        retry_ms: Option<u64>,
    },
    /// An event without a message: ids and retry advice only.
    Prime {
        id: Option<Box<str>>,
        retry_ms: Option<u64>,
    },
    /// Nothing goes to the client; perhaps the server is told something.
    Skip {
        to_server: Option<Cleared<ToServer>>,
    },
}

/// Why an answer cannot go on.
pub(super) enum Halt {
    /// The upstream.
    Fault(Fault),
    /// The audit log.
    NotAudited,
    /// Whoever listens may not any more.
    Revoked,
}

impl From<NotAudited> for Halt {
    fn from(_: NotAudited) -> Self {
        Self::NotAudited
    }
}

impl<'a> Down<'a> {
    /// For what a server says on its own in a session of a handshake, in no call's course.
    pub(super) fn unasked(context: &'a Context, calls: &'a Calls) -> Self {
        Self {
            context,
            era: Era::Handshake,
            calls,
            call: None,
            resumed: None,
            handles: None,
            refusal: false,
            adapt: false,
        }
    }
}

impl Down<'_> {
    /// Takes one item through the line.
    ///
    /// # Errors
    /// It is no message, or its record cannot be kept, or nobody may hear it any more.
    pub(super) async fn step(&self, item: Item, trail: &mut Trail) -> Result<Step, Halt> {
        let renewed = match self.listens() {
            true => self.context.renewed(),
            false => Renewed::Same,
        };
        match renewed {
            Renewed::Same => self.step_now(item, trail).await,
            Renewed::Gone => Err(Halt::Revoked),
            Renewed::Changed(context) => {
                trail.judged_by(&context.server.rules);
                let now = Down {
                    context: &context,
                    ..*self
                };
                Box::pin(now.step_now(item, trail)).await
            }
        }
    }

    /// Whether this is no answer to one call but lives on and on: each message is judged by the state in force then.
    pub(super) fn listens(&self) -> bool {
        self.call.is_none_or(|call| listens(call))
    }

    async fn step_now(&self, item: Item, trail: &mut Trail) -> Result<Step, Halt> {
        let headers = event_id_leaf(item.id.as_deref());
        let (message, certain) = match item.payload {
            Payload::Nothing => {
                // Nothing but an id: it is carried on if it is clean, and left out if not.
                let id = item.id.filter(|id| self.id_is_clean(id));
                if id.is_none() && item.retry_ms.is_none() {
                    return Ok(Step::Skip { to_server: None });
                }
                return Ok(Step::Prime {
                    id,
                    retry_ms: item.retry_ms,
                });
            }
            Payload::Message(message, certain) => (message, certain),
            Payload::TooLong(whose) => return self.too_long(whose, trail).await,
            Payload::Bytes(bytes) => {
                trail.record().bytes.response += bytes.len() as u64;
                let message = Message::decode(bytes, &self.context.snapshot.codec);
                (message.map_err(|error| unfit::broken(&error))?, true)
            }
            Payload::Event(bytes) => {
                trail.record().bytes.response += bytes.len() as u64;
                match Message::decode(bytes, &self.context.snapshot.codec) {
                    Ok(message) => (message, true),
                    Err(error) => return self.ill_formed(error, trail).await,
                }
            }
        };
        self.judge(message, certain, headers, item.retry_ms, trail)
            .await
    }

    async fn judge(
        &self,
        message: Message,
        certain: bool,
        headers: Vec<HeaderLeaf>,
        retry_ms: Option<u64>,
        trail: &mut Trail,
    ) -> Result<Step, Halt> {
        let kind = message.kind();
        let is_answer = matches!(kind, MessageKind::Response | MessageKind::ErrorResponse);
        let last = is_answer && self.ends_call(&message);
        let is_asked_for = || match self.call {
            Some(_) => last,
            None => self.may_be_answered_here(message.id()),
        };
        if is_answer && !is_asked_for() {
            // An answer to somebody else's question, to nobody's, or a second one.
            return Ok(Step::Skip { to_server: None });
        }
        let tie = if certain {
            self.tie(&message)
        } else {
            Tie::unknown()
        };
        let (message, unlearnt) = self.prepared(message, &tie)?;
        let id = message.id().cloned();
        if let (MessageKind::Request, Some(id)) = (kind, &id)
            && (self.era == Era::Stateless
                || !self.calls.client_can(message.method().unwrap_or("")))
        {
            // The client never said that it can, or its era has no such thing.
            self.note_unasked(&message);
            let own = reply::error(Some(id), reply::code::METHOD_NOT_FOUND, "Not supported.");
            return Ok(Step::Skip {
                to_server: Some(Cleared::of_ours(own)),
            });
        }
        if kind == MessageKind::Request
            && let Some(id) = &id
        {
            self.calls.server_asked(id.clone(), tie.call.clone());
        }
        let mut left_out = match last {
            true => LeftOut::of(&tie, &headers),
            false => LeftOut::nothing(),
        };
        let decoded = Decoded::<ToClient>::new(message, headers);
        let mut release = self.run_after_what_was_said(decoded, &tie, last).await;
        let mut own_trail = None;
        let trail = if last {
            trail
        } else {
            own_trail.insert(trail.branch())
        };
        while let Release::Blocked(blocked) = &release
            && let Some(rest) = left_out.rest(blocked, trail, &self.context.snapshot.codec)
        {
            release = Box::pin(self.run_after_what_was_said(rest, &tie, last)).await;
        }
        let step = match release {
            Release::Cleared(mut cleared) => {
                let unlearnt =
                    unlearnt.and_then(|list| list.without(left_out.entries(), self.context));
                if unlearnt.is_some_and(|unlearnt| !unlearnt.forwarded(self.context)) {
                    let why = "a list of tools that changed while it was read";
                    return Err(Halt::Fault(Fault::Broken(why)));
                }
                trail.passed(&mut cleared);
                let id = cleared.headers().first().map(|h| h.value.clone());
                let message = self.handles_put_back(cleared)?;
                Step::Send {
                    message,
                    last,
                    id,
                    retry_ms,
                }
            }
            Release::Blocked(blocked) => {
                if let Some(unlearnt) = unlearnt {
                    unlearnt.stopped(self.context);
                }
                let doc = blocked.message.doc();
                trail.absorb(
                    domain::Direction::ToClient,
                    doc,
                    &blocked.report,
                    Some(&blocked.stop),
                );
                let text = blocked
                    .stop
                    .client_text(domain::Direction::ToClient, &self.context.server.rules);
                self.instead(kind, id, &tie, &text, last, retry_ms, trail)
            }
        };
        if let Some(own) = own_trail
            && own.has_findings()
        {
            own.close(
                &self.context.gateway,
                &self.context.snapshot,
                &self.context.server,
                200,
            )
            .await?;
        }
        Ok(step)
    }

    /// Through the line, with what the server said before; the last word of a call is followed by nothing.
    async fn run_after_what_was_said(
        &self,
        decoded: Decoded<ToClient>,
        tie: &Tie,
        last: bool,
    ) -> Release<ToClient> {
        let turn = large::turn(decoded.message()).await;
        let said = self.calls.said();
        let judge = Judge {
            said: said.as_ref(),
            ..tie.judge(self.context, self.era, self.calls.session())
        };
        let says = |release: &Release<ToClient>| (!last).then(|| release.said());
        let (release, says) = turn.run(decoded, &judge, says).await;
        if let Some(says) = says {
            self.calls.said_more(&says);
        }
        release
    }

    /// What the client (or the server) gets in place of a blocked message.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller; all of it is one message's facts"
    )]
    fn instead(
        &self,
        kind: MessageKind,
        id: Option<Id>,
        tie: &Tie,
        text: &str,
        last: bool,
        retry_ms: Option<u64>,
        trail: &Trail,
    ) -> Step {
        match (kind, id) {
            (MessageKind::Response | MessageKind::ErrorResponse, _) => {
                let id = self.answered_id(tie);
                let method = tie.call.as_ref().map_or("", |c| &*c.method);
                let text = format!("{text} Audit id: {}", trail.id());
                let own = match id {
                    Some(id) => reply::block(&id, method, self.era, &text),
                    None => reply::error(None, reply::code::BLOCKED, &text),
                };
                Step::Send {
                    message: Cleared::of_ours(own),
                    last,
                    id: None,
                    retry_ms,
                }
            }
            (MessageKind::Request, Some(id)) => {
                // The client never hears of it, and has nothing to answer.
                self.calls.answered_for_client(&id);
                let words = "Blocked by the gateway's policy.";
                Step::Skip {
                    to_server: Some(Cleared::of_ours(reply::error(
                        Some(&id),
                        reply::code::BLOCKED,
                        words,
                    ))),
                }
            }
            _ => Step::Skip { to_server: None },
        }
    }

    /// The id that stands in place of a blocked answer: the client's own, as it sent it. The answer's id is text of
    /// the server, and may be what it was blocked for.
    fn answered_id(&self, tie: &Tie) -> Option<Id> {
        match (self.handles, self.call) {
            (Some(handles), _) => Some(handles.id.clone()),
            (None, Some(call)) => call.id.clone(),
            (None, None) => tie.call.as_ref()?.id.clone(),
        }
    }

    fn tie(&self, message: &Message) -> Tie {
        match self.handles {
            // Under our handles the call is the one whose channel this came on.
            Some(_) => self.call.map_or_else(Tie::unknown, |call| {
                attribute::tie_on_channel(self.context, message, call)
            }),
            None => attribute::tie_from_server(self.context, message, self.calls, self.came()),
        }
    }

    fn came(&self) -> Came<'_> {
        let resumed = self.resumed.map(|resumed| resumed.call.as_ref());
        match (self.call, resumed) {
            (Some(call), _) => Came::Answering(call),
            (None, None) => Came::Unasked,
            (None, Some(Some(call))) => Came::Resuming(call),
            (None, Some(None)) => Came::Astray,
        }
    }

    /// Whether an answer with this id may come on a listen stream: only where that goes on with one that broke off, and once.
    pub(super) fn may_be_answered_here(&self, id: Option<&Id>) -> bool {
        let Some(resumed) = self.resumed else {
            return false;
        };
        self.came().may_bring(id, self.calls) && !resumed.answered.swap(true, Ordering::Relaxed)
    }

    /// Whether an answer's id is one that the client gave to a call, as far as that is remembered.
    pub(super) fn is_clients_own(&self, id: &Id) -> bool {
        match self.came() {
            Came::Answering(call) | Came::Resuming(call) => call.id.as_ref() == Some(id),
            Came::Unasked | Came::Astray => self.calls.by_id(id).is_some(),
        }
    }

    /// The client hears of an event of this id, and may come back for what follows it.
    pub(super) fn told_event(&self, id: &str) {
        if let Came::Answering(call) | Came::Resuming(call) = self.came() {
            self.calls.told_event(id, call);
        }
    }

    fn ends_call(&self, message: &Message) -> bool {
        let Some(call) = self.call else { return false };
        if self.refusal {
            return true;
        }
        match message.id() {
            Some(id) => self.awaits(call, id),
            // An error without an id on the answer to one request can only mean that request.
            None => message.kind() == MessageKind::ErrorResponse,
        }
    }

    /// Whether an answer of this id is the call's.
    pub(super) fn awaits(&self, call: &Call, id: &Id) -> bool {
        let awaited = self.handles.map(|h| &h.ours).or(call.id.as_ref());
        Some(id) == awaited
    }

    /// Facts learnt and narrowed before the message is judged, and what is learnt once it is.
    fn prepared(
        &self,
        message: Message,
        tie: &Tie,
    ) -> Result<(Message, Option<listed::Unlearnt>), Halt> {
        if message.result().is_none() {
            return Ok((message, None));
        }
        let Some(call) = &tie.call else {
            let edits = listed::untied(self.context, &message);
            return Ok((narrowed(message, &edits)?, None));
        };
        attribute::learn_task(self.context, call, &message);
        let mut unlearnt = None;
        let mut edits = match &*call.method {
            "tools/list" => {
                let (edits, news) = listed::tools(self.context, &message);
                unlearnt = news;
                edits
            }
            "server/discover" => versions_narrowed(self.context, &message),
            "initialize" => {
                if let Some(version) = version_of(&message) {
                    self.calls.agree(version);
                }
                version_clamped(&message)
            }
            _ => Edits::new(),
        };
        if self.adapt {
            adapted(&message, &call.method, &mut edits);
        }
        Ok((narrowed(message, &edits)?, unlearnt))
    }

    fn handles_put_back(&self, mut cleared: Cleared<ToClient>) -> Result<Cleared<ToClient>, Halt> {
        let Some(message) = cleared.message() else {
            return Ok(cleared);
        };
        let cannot = |_| Halt::Fault(Fault::Broken("a message that cannot be put back"));
        let is_nobodys = message.kind() == MessageKind::ErrorResponse && message.id().is_none();
        if let (true, Some(id)) = (is_nobodys, self.call.and_then(|call| call.id.as_ref())) {
            // The client waits for an answer to its own id, and would not know that this is it.
            let put = cleared.put_id(id, &self.context.snapshot.codec);
            put.map_err(cannot)?;
            return Ok(cleared);
        }
        let Some(handles) = self.handles else {
            return Ok(cleared);
        };
        let answer = matches!(
            message.kind(),
            MessageKind::Response | MessageKind::ErrorResponse
        );
        let mut changes: Vec<(&[&str], Id)> = Vec::new();
        if answer {
            changes.push((&["id"], handles.id.clone()));
        }
        if let Some(token) = &handles.token {
            changes.push((&["params", "progressToken"], token.clone()));
        }
        changes.push((SUBSCRIPTION, handles.id.clone()));
        let put = cleared.put_handles(&changes, &self.context.snapshot.codec);
        put.map_err(cannot)?;
        Ok(cleared)
    }

    /// Whether an event's id may go down.
    pub(super) fn id_is_clean(&self, id: &str) -> bool {
        // A notification with nothing in it carries the id through the line.
        let empty = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/message"}"#);
        let Ok(message) = Message::decode(empty, &self.context.snapshot.codec) else {
            return false;
        };
        let tie = Tie::unknown();
        let decoded = Decoded::<ToClient>::new(message, event_id_leaf(Some(id)));
        let release = pipeline::run(
            decoded,
            &tie.judge(self.context, self.era, self.calls.session()),
        );
        matches!(release, Release::Cleared(c) if c.headers().first().is_some_and(|h| &*h.value == id))
    }
}

const SUBSCRIPTION: &[&str] = &["params", "_meta", "io.modelcontextprotocol/subscriptionId"];

fn event_id_leaf(id: Option<&str>) -> Vec<HeaderLeaf> {
    id.map(|id| HeaderLeaf {
        name: "sse-event-id".into(),
        value: id.into(),
    })
    .into_iter()
    .collect()
}

fn narrowed(message: Message, edits: &Edits) -> Result<Message, Halt> {
    if edits.is_empty() {
        return Ok(message);
    }
    message
        .edited(edits)
        .map_err(|_| Halt::Fault(Fault::Broken("a list that cannot be narrowed")))
}
