//! JSON-RPC messages as MCP has them.

use bytes::Bytes;

use crate::document::{Document, Node};
use crate::edit::{EditError, Edits};
use crate::{DecodeError, Id, Limits};

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

/// Reads one message, or a batch where that is allowed.
pub fn decode(bytes: Bytes, limits: &Limits, batch: BatchRule) -> Result<Payload, DecodeError> {
    let _ = (bytes, limits, batch);
    todo!()
}

impl Message {
    /// Reads exactly one message.
    pub fn decode(bytes: Bytes, limits: &Limits) -> Result<Message, DecodeError> {
        let _ = (bytes, limits);
        todo!()
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
        let _ = edits;
        todo!()
    }
}
