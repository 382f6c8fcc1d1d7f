//! The leaves of a document: everything that can carry text from one side to the other.

use std::fmt;

use crate::document::{Document, Node};

/// Names one leaf of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafId(pub(crate) u32);

/// What a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeafKind {
    /// The key of an object's member.
    Key,
    /// A string value.
    String,
    /// A number value.
    Number,
}

/// One leaf with its decoded text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Leaf<'a> {
    /// Its name for [`Document::leaf`], [`Document::path`] and [`crate::Edits`].
    pub id: LeafId,
    /// The decoded text; for a number the text as received.
    pub text: &'a str,
    /// What it is.
    pub kind: LeafKind,
    /// The nearest object key above a value; none for a key.
    pub name: Option<&'a str>,
    /// The value itself; for a key the key's own node.
    pub node: Node,
}

/// Hides the text, which may be a secret.
impl fmt::Debug for Leaf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("bytes", &self.text.len())
            .finish_non_exhaustive()
    }
}

/// Iterator of [`Document::leaves`].
#[derive(Clone, Debug)]
pub struct Leaves<'a> {
    under: LeavesUnder<'a>,
    left: usize,
}

impl<'a> Leaves<'a> {
    pub(crate) fn new(doc: &'a Document) -> Self {
        Leaves {
            under: LeavesUnder::new(doc, doc.root()),
            left: doc.leaf_count as usize,
        }
    }
}

impl<'a> Iterator for Leaves<'a> {
    type Item = Leaf<'a>;

    #[inline]
    fn next(&mut self) -> Option<Leaf<'a>> {
        let leaf = self.under.next()?;
        self.left -= 1;
        Some(leaf)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Leaves<'_> {}

/// Iterator of [`Document::leaves_under`].
#[derive(Clone, Debug)]
pub struct LeavesUnder<'a> {
    doc: &'a Document,
    at: u32,
    end: u32,
}

impl<'a> LeavesUnder<'a> {
    pub(crate) fn new(doc: &'a Document, node: Node) -> Self {
        LeavesUnder {
            doc,
            at: node.0,
            end: doc.subtree_end(node.0),
        }
    }
}

impl<'a> Iterator for LeavesUnder<'a> {
    type Item = Leaf<'a>;

    #[inline]
    fn next(&mut self) -> Option<Leaf<'a>> {
        while self.at < self.end {
            let index = self.at;
            self.at += 1;
            if let Some(leaf) = self.doc.leaf_at(index) {
                return Some(leaf);
            }
        }
        None
    }
}
