//! Where a leaf is, for people: `$.params.arguments.items[3].name`.

use std::fmt;

use crate::document::Document;
use crate::leaf::LeafId;

/// Longest path that is displayed, in characters; a longer one loses its middle.
pub const PATH_CHARS_MAX: usize = 256;

/// The path of a leaf; displays as text.
#[derive(Clone, Copy)]
pub struct Path<'a> {
    doc: &'a Document,
    leaf: LeafId,
    masked: &'a [LeafId],
}

impl<'a> Path<'a> {
    pub(crate) fn new(doc: &'a Document, leaf: LeafId, masked: &'a [LeafId]) -> Self {
        Path { doc, leaf, masked }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _ = (self.doc, self.leaf, self.masked);
        todo!()
    }
}
