//! JSON-RPC messages as MCP has them: the envelope is checked here, once, for both directions.
//!
//! Members of the envelope that the protocol does not know are allowed, since real peers add some; they are leaves like all
//! others and so they are scanned. What a message must not leave open is what it is.

use bytes::Bytes;

use crate::document::{Document, Kind, Node};
use crate::edit::{EditError, Edits};
use crate::id::ID_NUMBER_MAX;
use crate::leaf::LeafKind;
use crate::limits::NAME_BYTES_MAX;
use crate::method::has_known_twin;
use crate::whose::{Said, Whose};
use crate::{DecodeError, DecodeErrorKind as Bad, Id, Limits, fold};

/// Whether the protocol revision in force has batches (only 2025-03-26 and older do).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRule {
    /// An array of messages is accepted.
    Allowed,
    /// An array is refused.
    Refused,
}

/// What one body, one SSE event or one line holds.
#[derive(Debug)]
pub enum Payload {
    /// One message.
    Single(Message),
    /// A batch: at least one message, at most [`Limits::batch_max`].
    Batch(Vec<Message>),
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// `method` and `id`.
    Request,
    /// `method` without `id`.
    Notification,
    /// `result` and `id`.
    Response,
    /// `error`, and an `id` unless it could not be read.
    ErrorResponse,
}

/// One message that passed every check of this crate.
#[derive(Debug)]
pub struct Message {
    doc: Document,
    kind: MessageKind,
    id: Option<Id>,
    method: Option<Node>,
    /// `params`, `result` or `error`.
    body: Option<Node>,
}

/// Reads one message, or a batch where that is allowed. One unacceptable message refuses the whole batch.
pub fn decode(bytes: Bytes, limits: &Limits, batch: BatchRule) -> Result<Payload, DecodeError> {
    let doc = Document::parse(bytes, limits)?;
    match doc.kind(doc.root()) {
        Kind::Array if batch == BatchRule::Allowed => {
            decode_batch(&doc, limits).map(Payload::Batch)
        }
        Kind::Array => Err(DecodeError::new(Bad::BatchRefused, 0)),
        _ => Message::from_document(doc).map(Payload::Single),
    }
}

/// Every message gets a document of its own, read again from its part of the bytes: batches are rare and short, and all
/// that follows handles one kind of message only.
fn decode_batch(doc: &Document, limits: &Limits) -> Result<Vec<Message>, DecodeError> {
    let count = doc
        .elements(doc.root())
        .take(limits.batch_max.saturating_add(1))
        .count();
    if count == 0 {
        return Err(DecodeError::new(Bad::EmptyBatch, 0));
    }
    if count > limits.batch_max {
        return Err(DecodeError::new(Bad::BatchTooLarge, 0));
    }
    doc.elements(doc.root())
        .map(|element| {
            let span = doc.raw_span(element);
            Message::decode(doc.source().slice(span.clone()), limits).map_err(|error| DecodeError {
                offset: error.offset + span.start,
                recovered_id: error.reply_id().cloned(),
                whose: Whose::Nobody,
                ..error
            })
        })
        .collect()
}

impl Message {
    /// Reads exactly one message.
    pub fn decode(bytes: Bytes, limits: &Limits) -> Result<Message, DecodeError> {
        Message::from_document(Document::parse(bytes, limits)?)
    }

    /// Checks the envelope of a document.
    pub fn from_document(doc: Document) -> Result<Message, DecodeError> {
        match read_envelope(&doc) {
            Ok(Envelope {
                kind,
                id,
                method,
                body,
            }) => Ok(Message {
                doc,
                kind,
                id,
                method,
                body,
            }),
            Err((kind, node)) => Err(DecodeError {
                kind,
                offset: doc.raw_span(node).start,
                recovered_id: recover_id(&doc),
                whose: whose_of(&doc),
            }),
        }
    }

    /// The document it was read from.
    pub fn doc(&self) -> &Document {
        &self.doc
    }

    /// What it is.
    pub fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Its id; none for a notification and for an error reply to something unreadable.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        self.method.and_then(|node| self.doc.str(node))
    }

    /// The params object of a request or notification, if it has one.
    pub fn params(&self) -> Option<Node> {
        self.method.and(self.body)
    }

    /// The result object of a response.
    pub fn result(&self) -> Option<Node> {
        if self.kind == MessageKind::Response {
            self.body
        } else {
            None
        }
    }

    /// The error object of an error response.
    pub fn error(&self) -> Option<Node> {
        if self.kind == MessageKind::ErrorResponse {
            self.body
        } else {
            None
        }
    }

    /// Applies the changes and reads the outcome again, so that what is sent passed every check and can be scanned anew.
    pub fn edited(&self, edits: &Edits) -> Result<Message, EditError> {
        let bytes = self.doc.edit(edits)?;
        let limits = Limits {
            bytes_max: self.doc.limits.edited_bytes_max(),
            ..self.doc.limits
        };
        Message::decode(bytes, &limits).map_err(EditError::Rejected)
    }
}

struct Envelope {
    kind: MessageKind,
    id: Option<Id>,
    method: Option<Node>,
    body: Option<Node>,
}

#[derive(Default)]
struct Members {
    jsonrpc: Option<Node>,
    id: Option<Node>,
    method: Option<Node>,
    params: Option<Node>,
    result: Option<Node>,
    error: Option<Node>,
}

type Refused = (Bad, Node);

fn read_envelope(doc: &Document) -> Result<Envelope, Refused> {
    let root = doc.root();
    if doc.kind(root) != Kind::Object {
        return Err((Bad::NotAnObject, root));
    }
    let members = read_members(doc)?;
    match members.jsonrpc {
        Some(node) if doc.str(node) == Some("2.0") => {}
        other => return Err((Bad::BadVersion, other.unwrap_or(root))),
    }
    let id = members
        .id
        .map(|node| read_id(doc, node).map_err(|bad| (bad, node)))
        .transpose()?;
    match (members.method, members.result, members.error) {
        (Some(method), None, None) => read_call(doc, method, id, members.params),
        (None, Some(result), None) => read_response(doc, result, id),
        (None, None, Some(error)) => read_error(doc, error, id),
        _ => Err((Bad::AmbiguousMessage, root)),
    }
}

fn read_members(doc: &Document) -> Result<Members, Refused> {
    refuse_nul_in_keys(doc)?;
    let mut members = Members::default();
    for (key, name, value) in doc.members(doc.root()) {
        match name {
            "jsonrpc" => members.jsonrpc = Some(value),
            "id" => members.id = Some(value),
            "method" => members.method = Some(value),
            "params" => members.params = Some(value),
            "result" => members.result = Some(value),
            "error" => members.error = Some(value),
            _ if fold::ENVELOPE.has_twin_of(name) => {
                return Err((Bad::FoldedKey, doc.leaf(key).node));
            }
            _ => {}
        }
    }
    Ok(members)
}

/// `Some(None)` in, so to speak: an id that is null is none, and only an error response may have that.
fn read_id(doc: &Document, node: Node) -> Result<Option<Id>, Bad> {
    let id_bytes_max = doc.limits.id_bytes_max;
    match doc.kind(node) {
        Kind::Null => Ok(None),
        Kind::String => match doc.str(node).unwrap_or_default() {
            text if text.len() > id_bytes_max => Err(Bad::IdTooLong),
            text if text.contains('\0') => Err(Bad::NulInProtocolString),
            text => Ok(Some(Id::String(text.into()))),
        },
        Kind::Number => {
            let text = doc.number(node).unwrap_or_default();
            let number =
                integer(text).filter(|number| number.abs() <= ID_NUMBER_MAX && text != "-0");
            number
                .map(|number| Some(Id::Number(number)))
                .ok_or(Bad::BadId)
        }
        _ => Err(Bad::BadId),
    }
}

/// An integer without fraction and exponent that fits; JSON has already ruled out plus signs and leading zeros.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn read_call(
    doc: &Document,
    method: Node,
    id: Option<Option<Id>>,
    params: Option<Node>,
) -> Result<Envelope, Refused> {
    let kind = match id {
        None => MessageKind::Notification,
        Some(Some(_)) => MessageKind::Request,
        // A null id would make it a request to one peer and a notification to the other.
        Some(None) => return Err((Bad::BadId, doc.member(doc.root(), "id").unwrap_or(method))),
    };
    match doc.str(method) {
        None | Some("") => return Err((Bad::BadMethod, method)),
        Some(name) if name.len() > NAME_BYTES_MAX => return Err((Bad::NameTooLong, method)),
        Some(name) if name.contains('\0') => return Err((Bad::NulInProtocolString, method)),
        Some(name) if has_known_twin(name) => return Err((Bad::FoldedMethod, method)),
        Some(_) => {}
    }
    if let Some(params) = params {
        if doc.kind(params) != Kind::Object {
            return Err((Bad::BadParams, params));
        }
        fold::check_params(doc, params).map_err(|key| (Bad::FoldedKey, doc.leaf(key).node))?;
        refuse_nul_in_params(doc, params)?;
        refuse_long_tokens(doc, params)?;
    }
    Ok(Envelope {
        kind,
        id: id.flatten(),
        method: Some(method),
        body: params,
    })
}

fn read_response(
    doc: &Document,
    result: Node,
    id: Option<Option<Id>>,
) -> Result<Envelope, Refused> {
    let Some(id @ Some(_)) = id else {
        return Err((Bad::MissingId, doc.root()));
    };
    if doc.kind(result) != Kind::Object {
        return Err((Bad::BadResult, result));
    }
    fold::check_result(doc, result).map_err(|key| (Bad::FoldedKey, doc.leaf(key).node))?;
    refuse_nul_in_result(doc, result)?;
    Ok(Envelope {
        kind: MessageKind::Response,
        id,
        method: None,
        body: Some(result),
    })
}

fn read_error(doc: &Document, error: Node, id: Option<Option<Id>>) -> Result<Envelope, Refused> {
    let code = doc
        .member(error, "code")
        .and_then(|node| doc.number(node))
        .and_then(integer);
    let message = doc.member(error, "message").and_then(|node| doc.str(node));
    if code.is_none() || message.is_none() {
        return Err((Bad::BadError, error));
    }
    fold::check_error(doc, error).map_err(|key| (Bad::FoldedKey, doc.leaf(key).node))?;
    Ok(Envelope {
        kind: MessageKind::ErrorResponse,
        id: id.flatten(),
        method: None,
        body: Some(error),
    })
}

/// What progress is reported by is remembered as long as its request, as the id is: so it is no longer than one.
fn refuse_long_tokens(doc: &Document, params: Node) -> Result<(), Refused> {
    let max = doc.limits.id_bytes_max;
    if doc.source().len() <= max {
        return Ok(());
    }
    let asked = doc.member(params, "_meta");
    let asked = asked.and_then(|meta| doc.member(meta, "progressToken"));
    let told = doc.member(params, "progressToken");
    let mut tokens = asked.into_iter().chain(told);
    let long = tokens.find(|node| doc.str(*node).is_some_and(|text| text.len() > max));
    long.map_or(Ok(()), |node| Err((Bad::TokenTooLong, node)))
}

/// A key with a NUL is another key to a peer written in C, so none is let through, wherever it is.
fn refuse_nul_in_keys(doc: &Document) -> Result<(), Refused> {
    if !doc.has_nul {
        return Ok(());
    }
    let bad = doc
        .leaves()
        .find(|leaf| leaf.kind == LeafKind::Key && leaf.text.contains('\0'));
    bad.map_or(Ok(()), |leaf| Err((Bad::NulInProtocolString, leaf.node)))
}

/// The strings by which a peer picks something: a NUL ends them early for a peer written in C.
fn refuse_nul_in_params(doc: &Document, params: Node) -> Result<(), Refused> {
    if !doc.has_nul {
        return Ok(());
    }
    const NAMES: [&str; 8] = [
        "name",
        "uri",
        "taskId",
        "cursor",
        "url",
        "elicitationId",
        "protocolVersion",
        "level",
    ];
    refuse_nul(doc, params, &NAMES)?;
    for inner in ["ref", "argument"] {
        if let Some(node) = doc.member(params, inner) {
            refuse_nul(doc, node, &["name", "uri"])?;
        }
    }
    Ok(())
}

fn refuse_nul_in_result(doc: &Document, result: Node) -> Result<(), Refused> {
    if !doc.has_nul {
        return Ok(());
    }
    refuse_nul(
        doc,
        result,
        &["nextCursor", "taskId", "protocolVersion", "resultType"],
    )?;
    for list in [
        "tools",
        "resources",
        "resourceTemplates",
        "prompts",
        "contents",
        "content",
        "roots",
    ] {
        for item in doc
            .member(result, list)
            .into_iter()
            .flat_map(|list| doc.elements(list))
        {
            refuse_nul(doc, item, &["name", "uri", "uriTemplate", "type"])?;
            if let Some(resource) = doc.member(item, "resource") {
                refuse_nul(doc, resource, &["uri"])?;
            }
        }
    }
    Ok(())
}

fn refuse_nul(doc: &Document, object: Node, names: &[&str]) -> Result<(), Refused> {
    names
        .iter()
        .filter_map(|name| doc.member(object, name))
        .try_for_each(|node| match doc.str(node) {
            Some(text) if text.contains('\0') => Err((Bad::NulInProtocolString, node)),
            _ => Ok(()),
        })
}

/// Whose a message is that is refused for its envelope.
fn whose_of(doc: &Document) -> Whose {
    let (mut said, mut is_foreign) = (Said::default(), false);
    for (_, name, node) in doc.members(doc.root()) {
        match name {
            "jsonrpc" => said.version |= doc.str(node) == Some("2.0"),
            "method" => said.method = true,
            "result" | "error" => said.outcome = true,
            "id" | "params" => {}
            _ => is_foreign = true,
        }
    }
    said.id = recover_id(doc);
    said.whose(is_foreign)
}

/// The id of a message that is refused for its envelope.
fn recover_id(doc: &Document) -> Option<Id> {
    told_id(doc, doc.member(doc.root(), "id")?)
}

/// An id that goes into an error and nowhere else: there an integer that is too large to be accepted is told as it stood.
pub(crate) fn told_id(doc: &Document, node: Node) -> Option<Id> {
    match doc.number(node) {
        Some(text) => integer(text).filter(|_| text != "-0").map(Id::Number),
        None => read_id(doc, node).ok().flatten(),
    }
}
