//! One parsed JSON document: the input bytes, and a flat tape that says where everything is.
//!
//! The tape holds one token per value and per key, in document order, so that a subtree is a range of it:
//!
//! ```text
//! {"a":[1,"x"]}   ->   0 object  1 key a  2 array  3 number 1  4 string x
//!                      parent -  parent 0 parent 1 parent 2    parent 2
//! ```
//!
//! Strings without an escape are read in place; the others are decoded once into one side buffer. Nothing here can be
//! built except by [`Document::parse`], so whoever holds a `Document` holds strict JSON.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

use crate::leaf::{Leaf, LeafId, LeafKind, Leaves, LeavesUnder};
use crate::outline::Outline;
use crate::path::Path;
use crate::{DecodeError, Limits, parse, write};

/// A value (or a key) of a [`Document`]. Only meaningful for the document it came from; a foreign one gives a wrong
/// answer or `None`, never a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub(crate) u32);

/// What a node is. A key is a `String`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// A number; its text is never interpreted.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// One token of the tape: 20 bytes, so that three fit into a cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// First byte of the value in the text (a string's opening quote).
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
    /// Object, array: one past the last token of the subtree. Escaped string: index into `Document::decoded`.
    pub link: u32,
    /// Key: its object. Value in an object: its key. Element: its array. The root: itself.
    pub parent: u32,
    /// Tag in the low bits, then the position in the parent array.
    pub meta: u32,
}

/// What a token is, in the low bits of [`Token::meta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Object,
    Array,
    Key,
    String,
    Number,
    True,
    False,
    Null,
}

const TAG_MASK: u32 = 0b0000_0111;
/// The string holds an escape, so its text is in the side buffer.
const ESCAPED: u32 = 0b0000_1000;
/// The string would be written differently by us (`\/`, a needless `\u`).
const REWRITE: u32 = 0b0001_0000;
const ORDINAL_SHIFT: u32 = 5;
/// Most tokens a tape can hold, whatever the limits say: a position must fit above the tag.
pub(crate) const TOKENS_CAP: usize = 1 << (32 - ORDINAL_SHIFT);

impl Token {
    pub(crate) fn meta(tag: Tag, ordinal: u32, escaped: bool, rewrite: bool) -> u32 {
        (tag as u32)
            | if escaped { ESCAPED } else { 0 }
            | if rewrite { REWRITE } else { 0 }
            | (ordinal << ORDINAL_SHIFT)
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        match self.meta & TAG_MASK {
            0 => Tag::Object,
            1 => Tag::Array,
            2 => Tag::Key,
            3 => Tag::String,
            4 => Tag::Number,
            5 => Tag::True,
            6 => Tag::False,
            _ => Tag::Null,
        }
    }

    #[inline]
    pub(crate) fn is_escaped(&self) -> bool {
        self.meta & ESCAPED != 0
    }

    pub(crate) fn needs_rewrite(&self) -> bool {
        self.meta & REWRITE != 0
    }

    pub(crate) fn ordinal(&self) -> u32 {
        self.meta >> ORDINAL_SHIFT
    }

    pub(crate) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A strict JSON document with every leaf at hand.
pub struct Document {
    pub(crate) text: ByteString,
    pub(crate) tape: Vec<Token>,
    /// Texts of the strings that have escapes, one after the other.
    pub(crate) side: String,
    /// Where each escaped string's text is in `side`.
    pub(crate) decoded: Vec<Range<u32>>,
    pub(crate) leaf_count: u32,
    /// The input is what we would write, up to spaces between tokens.
    pub(crate) canonical: bool,
    /// Some string holds U+0000.
    pub(crate) has_nul: bool,
    /// An array stands right in another one.
    pub(crate) has_rows: bool,
    pub(crate) limits: Limits,
}

impl Document {
    /// Reads strict JSON in one pass, without recursion. See [`DecodeError`] for everything that is refused.
    pub fn parse(bytes: Bytes, limits: &Limits) -> Result<Document, DecodeError> {
        parse::parse(bytes, limits)
    }

    /// The outermost value.
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// What the node is.
    pub fn kind(&self, node: Node) -> Kind {
        match self.tag(node.0) {
            Tag::Object => Kind::Object,
            Tag::Array => Kind::Array,
            Tag::Key | Tag::String => Kind::String,
            Tag::Number => Kind::Number,
            Tag::True => Kind::True,
            Tag::False => Kind::False,
            Tag::Null => Kind::Null,
        }
    }

    /// The value of a member of an object; `None` if there is none or the node is no object.
    pub fn member(&self, object: Node, key: &str) -> Option<Node> {
        let keys = self.children_range(object, Tag::Object);
        let mut at = keys.start;
        while at < keys.end {
            if self.key_is(at, key) {
                return Some(Node(at + 1));
            }
            at = self.subtree_end(at + 1);
        }
        None
    }

    /// The members of an object in document order; empty for anything else.
    pub fn members(&self, object: Node) -> Members<'_> {
        let range = self.children_range(object, Tag::Object);
        Members {
            doc: self,
            at: range.start,
            end: range.end,
        }
    }

    /// The elements of an array in order; empty for anything else.
    pub fn elements(&self, array: Node) -> Elements<'_> {
        let range = self.children_range(array, Tag::Array);
        Elements {
            doc: self,
            at: range.start,
            end: range.end,
        }
    }

    /// Follows object keys from the root.
    pub fn get(&self, keys: &[&str]) -> Option<Node> {
        keys.iter()
            .try_fold(self.root(), |node, key| self.member(node, key))
    }

    /// The decoded text of a string or a key.
    pub fn str(&self, node: Node) -> Option<&str> {
        match self.token(node.0)?.tag() {
            Tag::Key | Tag::String => Some(self.text_of(node.0)),
            _ => None,
        }
    }

    /// The text of a number, exactly as received.
    pub fn number(&self, node: Node) -> Option<&str> {
        match self.token(node.0)?.tag() {
            Tag::Number => Some(self.text_of(node.0)),
            _ => None,
        }
    }

    /// The bytes of a value exactly as received.
    pub fn raw(&self, node: Node) -> &[u8] {
        &self.text.as_bytes()[self.raw_span(node)]
    }

    /// Where the bytes of a value are in the input.
    pub fn raw_span(&self, node: Node) -> Range<usize> {
        self.token(node.0).map_or(0..0, Token::span)
    }

    /// Every key, string and number, in document order.
    pub fn leaves(&self) -> Leaves<'_> {
        Leaves::new(self)
    }

    /// How the leaves lie in objects and arrays, in document order.
    pub fn outline(&self) -> Outline<'_> {
        Outline::new(self)
    }

    /// Whether an array is an element of another one, as the rows of a table are.
    pub fn has_rows(&self) -> bool {
        self.has_rows
    }

    /// One leaf by its id.
    ///
    /// # Panics
    /// If the id comes from another document and names no leaf of this one. Ids never come from input.
    pub fn leaf(&self, id: LeafId) -> Leaf<'_> {
        self.leaf_at(id.0)
            .expect("a LeafId is only made for a leaf of its own document")
    }

    /// The leaf of a string, a number or a key; `None` for anything else.
    pub fn leaf_of(&self, node: Node) -> Option<LeafId> {
        self.leaf_kind(node.0).map(|_| LeafId(node.0))
    }

    /// Every key, string and number of a subtree, in document order. The key before the subtree is not part of it.
    pub fn leaves_under(&self, node: Node) -> LeavesUnder<'_> {
        LeavesUnder::new(self, node)
    }

    /// Where a leaf is, for people: `$.params.arguments.items[3].name`.
    ///
    /// The text may hold keys that an attacker chose; see [`Document::path_masked`].
    pub fn path(&self, leaf: LeafId) -> Path<'_> {
        Path::new(self, leaf, &[])
    }

    /// As [`Document::path`], with the given key leaves shown as `{masked}`.
    pub fn path_masked<'a>(&'a self, leaf: LeafId, masked: &'a [LeafId]) -> Path<'a> {
        Path::new(self, leaf, masked)
    }

    /// The document as we write it: no raw newline, no needless escape, numbers and order untouched.
    ///
    /// If the input is already so (spaces between tokens are fine) these are the same bytes, not a copy; otherwise it is
    /// written compactly.
    pub fn to_bytes(&self) -> Bytes {
        if self.canonical {
            return self.text.as_bytes().clone();
        }
        write::compact(self)
    }

    /// Whether [`Document::to_bytes`] gives the input itself.
    pub fn is_canonical(&self) -> bool {
        self.canonical
    }

    /// The input.
    pub fn source(&self) -> &Bytes {
        self.text.as_bytes()
    }
}

impl Document {
    #[inline]
    pub(crate) fn token(&self, index: u32) -> Option<&Token> {
        self.tape.get(index as usize)
    }

    /// A foreign node reads as null.
    pub(crate) fn tag(&self, index: u32) -> Tag {
        self.token(index).map_or(Tag::Null, Token::tag)
    }

    /// One past the last token of the subtree at `index`.
    #[inline]
    pub(crate) fn subtree_end(&self, index: u32) -> u32 {
        match self.token(index) {
            Some(token) => match token.tag() {
                Tag::Object | Tag::Array => token.link,
                _ => index + 1,
            },
            None => index,
        }
    }

    /// Compares lengths first: most keys differ there, and their text need not be looked at.
    #[inline]
    fn key_is(&self, index: u32, key: &str) -> bool {
        match self.token(index) {
            Some(token) if !token.is_escaped() => {
                let text = token.start as usize + 1..token.end as usize - 1;
                text.len() == key.len() && self.text.as_bytes()[text] == *key.as_bytes()
            }
            _ => self.text_of(index) == key,
        }
    }

    fn children_range(&self, node: Node, tag: Tag) -> Range<u32> {
        match self.token(node.0) {
            Some(token) if token.tag() == tag => node.0 + 1..token.link,
            _ => 0..0,
        }
    }

    /// The decoded text of a string or key, or the text of any other scalar.
    #[inline]
    pub(crate) fn text_of(&self, index: u32) -> &str {
        let Some(token) = self.token(index) else {
            return "";
        };
        match token.tag() {
            Tag::Key | Tag::String if token.is_escaped() => {
                let range = &self.decoded[token.link as usize];
                &self.side[range.start as usize..range.end as usize]
            }
            Tag::Key | Tag::String => &self.text[token.start as usize + 1..token.end as usize - 1],
            _ => &self.text[token.span()],
        }
    }

    #[inline]
    pub(crate) fn leaf_kind(&self, index: u32) -> Option<LeafKind> {
        match self.token(index)?.tag() {
            Tag::Key => Some(LeafKind::Key),
            Tag::String => Some(LeafKind::String),
            Tag::Number => Some(LeafKind::Number),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn leaf_at(&self, index: u32) -> Option<Leaf<'_>> {
        let kind = self.leaf_kind(index)?;
        Some(Leaf {
            id: LeafId(index),
            text: self.text_of(index),
            kind,
            name: if kind == LeafKind::Key {
                None
            } else {
                self.name_above(index)
            },
            node: Node(index),
        })
    }

    /// The nearest key above a value. At most `depth_max` steps.
    #[inline]
    fn name_above(&self, index: u32) -> Option<&str> {
        let mut at = index;
        loop {
            let parent = self.token(at)?.parent;
            match self.tag(parent) {
                Tag::Key => return Some(self.text_of(parent)),
                Tag::Array if parent != at => at = parent,
                _ => return None,
            }
        }
    }
}

/// Shows sizes only: a document may hold secrets.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("bytes", &self.text.len())
            .field("tokens", &self.tape.len())
            .field("canonical", &self.canonical)
            .finish_non_exhaustive()
    }
}

/// Iterator of [`Document::members`].
#[derive(Clone, Debug)]
pub struct Members<'a> {
    doc: &'a Document,
    at: u32,
    end: u32,
}

impl<'a> Iterator for Members<'a> {
    type Item = (LeafId, &'a str, Node);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let (key, value) = (self.at, self.at + 1);
        self.at = self.doc.subtree_end(value);
        Some((LeafId(key), self.doc.text_of(key), Node(value)))
    }
}

/// Iterator of [`Document::elements`].
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    doc: &'a Document,
    at: u32,
    end: u32,
}

impl Iterator for Elements<'_> {
    type Item = Node;

    #[inline]
    fn next(&mut self) -> Option<Node> {
        if self.at >= self.end {
            return None;
        }
        let node = Node(self.at);
        self.at = self.doc.subtree_end(self.at);
        Some(node)
    }
}
