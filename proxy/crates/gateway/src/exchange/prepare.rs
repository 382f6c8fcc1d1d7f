//! What a message from the client is checked for before it may go up: its era and version, the
//! headers that repeat it, call limits, the tools it may name, and the line. Nothing awaits here but
//! for a place among the calls that may run at once.

use std::sync::Arc;

use domain::{Direction, Era, ProtocolVersion, ToolName};
use mcp_codec::{Edits, Id, Message, MessageKind};

use super::attribute::{self, Tie};
use super::head::{BodyFacts, Refusal};
use super::large;
use super::listed;
use super::post::{Answered, Post};
use super::{Context, NOT_RECORDED, SESSION_NOT_FOUND};
use crate::gate::{Gate, Permit, Refused};
use crate::pipeline::{Cleared, Decoded, Release, ToServer};
use crate::reply::{self, code};
use crate::session::{Call, Calls};

const DENIED: &str = "Weir blocked this request: this tool may not be called.";
const NO_TOOL_NAME: &str = "Weir blocked this request: a tool's name has 1 to 128 characters of A-Z, a-z, 0-9, '_', '-', '.', '/' and ':'.";
const HELD: &str = "Weir blocked this request: the definition of this tool is new or has changed, and waits for approval.";

/// In the stateless era nothing is asked of a client that it could answer (2026-07-28, transports).
const NO_RESPONSES: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "In this protocol version clients send no responses.",
);

/// A request that went through the line and may be sent.
pub(super) struct Ready {
    pub(super) cleared: Cleared<ToServer>,
    pub(super) call: Arc<Call>,
    pub(super) calls: Arc<Calls>,
    pub(super) era: Era,
    pub(super) kind: MessageKind,
    pub(super) progress: Option<Id>,
    _permits: Option<[Permit; 3]>,
}

impl Ready {
    /// It goes up, and nobody looks at it any more but for its bytes: what was decoded of it is many times as much, and an answer
    /// takes its time.
    pub(super) fn goes_up(&mut self) {
        // What discovers is answered by Weir where the server cannot, and a cancellation names a call.
        if self.kind == MessageKind::Request && &*self.call.method != "server/discover" {
            self.cleared.forget_message();
        }
    }
}

impl Post {
    /// Everything before the message goes up: no lock held, nothing sent. Waits only for a place.
    pub(super) async fn prepare(&mut self, message: Message) -> Result<Box<Ready>, Box<Answered>> {
        let header_version = self
            .own
            .as_ref()
            .map(|s| s.version)
            .or(self.head.known_version());
        let era = attribute::era_of(&message, header_version);
        let pinned = self.on_pipe;
        if era == Era::Stateless && !pinned {
            self.own = None;
        }
        let piped = self.own.as_ref().is_some_and(|own| own.channel.is_some());
        if piped && !pinned {
            // A session that has a pipe is spoken to on it, and nowhere else.
            return Err(self.refuse(SESSION_NOT_FOUND, &message));
        }
        self.trail.spoken(era, header_version);
        let answers = matches!(
            message.kind(),
            MessageKind::Response | MessageKind::ErrorResponse
        );
        if answers && era == Era::Stateless && !pinned {
            return Err(self.refuse(NO_RESPONSES, &message));
        }
        // A mismatch comes first: with two versions named there is no telling which was meant.
        if !pinned {
            self.check_headers(&message)
                .map_err(|r| self.refuse(r, &message))?;
        }
        let method = message.method();
        self.head
            .keep_repeated(method, attribute::named_thing(&message));
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
            Some(self.enter_gates(&message).await?)
        } else {
            word_may_pass(&self.context).map_err(|limited| self.limit(limited, &message))?;
            None
        };
        // Once more, after it may have waited; pipes have no other place.
        if self.context.gateway.leaves_no_record() {
            return Err(self.refuse(NOT_RECORDED, &message));
        }
        let tie = attribute::tie_from_client(&self.context, &message, &calls);
        let call = tie
            .call
            .clone()
            .unwrap_or_else(|| Arc::new(attribute::call_of(&self.context, &message)));
        if message.method() == Some("tools/call") {
            self.check_tool(&message, era)?;
        }
        let progress = attribute::progress_token(&message);
        let cleared = self.judge(message, &tie, era).await?;
        self.held.end();
        Ok(Box::new(Ready {
            cleared,
            call,
            calls,
            era,
            kind,
            progress,
            _permits: permits,
        }))
    }

    /// Through the line.
    async fn judge(
        &mut self,
        message: Message,
        tie: &Tie,
        era: Era,
    ) -> Result<Cleared<ToServer>, Box<Answered>> {
        let headers = std::mem::take(&mut self.head.params);
        let session = self.own.as_ref().map(|own| &*own.tag);
        let judge = tie.judge(&self.context, era, session);
        let turn = large::turn(&message).await;
        let decoded = Decoded::<ToServer>::new(message, headers);
        let (release, ()) = turn.run(decoded, &judge, |_| ()).await;
        match release {
            Release::Cleared(mut cleared) => {
                self.trail.passed(&mut cleared);
                Ok(cleared)
            }
            Release::Blocked(blocked) => {
                let (doc, stop) = (blocked.message.doc(), &blocked.stop);
                self.trail
                    .absorb(Direction::ToServer, doc, &blocked.report, Some(stop));
                if let Some(word) = in_place_of_answer(&blocked.message, tie) {
                    return Ok(word);
                }
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

    fn check_headers(&mut self, message: &Message) -> Result<(), Refusal> {
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
        let required =
            self.head.is_stateless_with(version) && message.kind() == MessageKind::Request;
        self.head.agrees_with(facts, required)?;
        if required && method == "tools/call" {
            self.compared = attribute::params_agree(&self.context, message, &self.head.params)?;
        }
        Ok(())
    }

    async fn enter_gates(&mut self, message: &Message) -> Result<[Permit; 3], Box<Answered>> {
        let entered = tokio::select! {
            biased;
            entered = Gate::enter_all(gates_of(&self.context)) => entered,
            () = self.context.gateway.was_cut() => {
                return Err(self.refuse(ENDS, message));
            }
        };
        entered.map_err(|refused| {
            let limited = Limited::of(&self.context, TOO_MANY, refused);
            self.limit(limited, message)
        })
    }

    fn check_tool(&mut self, message: &Message, era: Era) -> Result<(), Box<Answered>> {
        let Some(name) = attribute::named_thing(message) else {
            return Err(self.names_no_tool(message));
        };
        let (reason, text) = match ToolName::parse(name) {
            _ if may_call(&self.context, name) => match listed::holds(&self.context, name) {
                true => ("tool_held", HELD),
                false => return Ok(()),
            },
            Ok(_) => ("tool_denied", DENIED),
            Err(_) => ("tool_denied", NO_TOOL_NAME),
        };
        self.trail.names(message);
        self.trail.denied(reason);
        Err(Box::new(Answered::Blocked(self.block(message, era, text))))
    }
}

impl Post {
    fn refuse(&mut self, refusal: Refusal, message: &Message) -> Box<Answered> {
        self.trail.names(message);
        Box::new(Answered::Refused(refusal, asked_by(message), None))
    }

    fn limit(&mut self, limited: Limited, message: &Message) -> Box<Answered> {
        self.trail.names(message);
        Box::new(limited.answered(asked_by(message)))
    }

    fn names_no_tool(&mut self, message: &Message) -> Box<Answered> {
        let text = "The call names no tool: params.name must be a text.";
        self.trail.names(message);
        self.trail.refused(text);
        Box::new(match message.id() {
            Some(id) => Answered::Said(200, reply::error(Some(id), code::INVALID_PARAMS, text)),
            None => Answered::Blocked(None),
        })
    }
}

/// The id that somebody waits by. That of a response is the server's: with it, our words would answer another request.
pub(super) fn asked_by(message: &Message) -> Option<Id> {
    let asks = message.kind() == MessageKind::Request;
    message.id().filter(|_| asks).cloned()
}

/// What goes up in place of an answer of the client's that was blocked: who asked would wait for one until its time limit.
/// Only where the id is one that the server asked by; any other is text of the client.
fn in_place_of_answer(blocked: &Message, tie: &Tie) -> Option<Cleared<ToServer>> {
    let answers = matches!(
        blocked.kind(),
        MessageKind::Response | MessageKind::ErrorResponse
    );
    let id = blocked.id().filter(|_| answers && tie.call.is_some())?;
    let text = "Blocked by the gateway's policy.";
    Some(Cleared::of_ours(reply::error(
        Some(id),
        code::BLOCKED,
        text,
    )))
}

const ENDS: Refusal = Refusal::new(503, code::UNAVAILABLE, "The gateway is ending.");
const TOO_MANY: Refusal = Refusal::new(429, code::LIMITED, "Too many calls; try again later.");
const TOO_MANY_WORDS: Refusal = Refusal::new(
    429,
    code::LIMITED,
    "Too many messages or streams; try again later (limits.rate).",
);

/// Refused by call limits.
#[derive(Debug, Clone)]
pub(super) struct Limited {
    /// What is said.
    pub(super) refusal: Refusal,
    /// When to try again.
    pub(super) after_s: u64,
}

impl Limited {
    fn of(context: &Context, refusal: Refusal, refused: Refused) -> Self {
        context.server.metrics().throttled.increment(1);
        Self {
            refusal,
            after_s: refused.retry_after.as_secs().max(1),
        }
    }

    fn answered(self, id: Option<Id>) -> Answered {
        Answered::Refused(self.refusal, id, Some(self.after_s))
    }
}

fn gates_of(context: &Context) -> [&Gate; 3] {
    let server = &context.server;
    [&context.principal.gate, &server.gate, &server.tenant_gate]
}

/// Whether a message that wants no answer, a stream or the end of a session may go up.
pub(super) fn word_may_pass(context: &Context) -> Result<(), Limited> {
    Gate::word_all(gates_of(context))
        .map_err(|refused| Limited::of(context, TOO_MANY_WORDS, refused))
}

/// Whether this principal may call a tool of this server. Names are compared as they are.
pub(super) fn may_call(context: &Context, tool: &str) -> bool {
    ToolName::parse(tool).is_ok()
        && context.server.policy.tool_allowed(tool)
        && context.principal.tools.allows(tool)
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
