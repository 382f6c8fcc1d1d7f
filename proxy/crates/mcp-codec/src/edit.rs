//! Changes to a document: what redaction and filtering do to it.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use thiserror::Error;

use crate::document::{Document, Node};
use crate::leaf::LeafId;
use crate::{DecodeError, DecodeErrorKind};

/// A set of changes to one document, applied together by [`Document::edit`].
///
/// Where changes overlap: ranges on one leaf are merged (the union is replaced, by the first replacement); a change of a
/// value wins over changes inside it; a removal wins over everything inside it.
#[derive(Clone, Default)]
pub struct Edits {
    pub(crate) ranges: Vec<(LeafId, Range<usize>, Box<str>)>,
    pub(crate) values: Vec<(Node, Box<str>)>,
    pub(crate) removed: Vec<Node>,
    pub(crate) inserted: Vec<(Node, Box<str>, Box<str>)>,
}

impl Edits {
    /// No change.
    pub fn new() -> Self {
        Edits::default()
    }

    /// Replaces a byte range of a leaf's decoded text. A number loses its whole value and becomes `0`.
    pub fn replace(&mut self, leaf: LeafId, range: Range<usize>, with: &str) {
        self.ranges.push((leaf, range, with.into()));
    }

    /// Replaces a value by JSON text, which [`Document::edit`] checks.
    pub fn replace_value(&mut self, node: Node, json: &str) {
        self.values.push((node, json.into()));
    }

    /// Removes an element of an array, or a member of an object together with its key (give the value's node).
    pub fn remove(&mut self, node: Node) {
        self.removed.push(node);
    }

    /// Appends a member to an object; the value is JSON text, which [`Document::edit`] checks.
    pub fn insert_member(&mut self, object: Node, key: &str, json: &str) {
        self.inserted.push((object, key.into(), json.into()));
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
            && self.values.is_empty()
            && self.removed.is_empty()
            && self.inserted.is_empty()
    }
}

/// Shows counts only: a replacement may quote what it replaces.
impl fmt::Debug for Edits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edits")
            .field("ranges", &self.ranges.len())
            .field("values", &self.values.len())
            .field("removed", &self.removed.len())
            .field("inserted", &self.inserted.len())
            .finish()
    }
}

/// Why a set of changes cannot be applied. Nothing of it is applied then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    /// The node or leaf is not one of this document that can be changed so.
    #[error("an edit of something that is not there")]
    NoSuchNode,
    /// The range is outside of the leaf's text or cuts a character.
    #[error("an edit range that does not fit its leaf")]
    BadRange,
    /// The edited key would equal another key of its object.
    #[error("an edited key equals a sibling key")]
    KeyCollision,
    /// The replacement value is not acceptable JSON.
    #[error("a replacement value that is not acceptable: {0}")]
    BadValue(DecodeErrorKind),
    /// The result would be above the document's size limit.
    #[error("an edited message above the size limit")]
    TooLarge,
    /// The edited message is no longer an acceptable message.
    #[error("an edited message that is no longer acceptable")]
    Rejected(#[source] DecodeError),
}

impl Document {
    /// The document with the changes made; every other byte as [`Document::to_bytes`] gives it.
    pub fn edit(&self, edits: &Edits) -> Result<Bytes, EditError> {
        let _ = edits;
        todo!()
    }
}
