//! Changes to a document: what redaction and filtering do to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use thiserror::Error;

use crate::document::{Document, Kind, Node, Tag};
use crate::leaf::{LeafId, LeafKind};
use crate::write::push_string;
use crate::{DecodeError, DecodeErrorKind, Limits};

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
    /// The result would be longer than [`Limits::edited_bytes_max`].
    #[error("an edited message above the size limit")]
    TooLarge,
    /// The edited message is no longer an acceptable message.
    #[error("an edited message that is no longer acceptable")]
    Rejected(#[source] DecodeError),
}

impl Document {
    /// The document with the changes made; every other byte as [`Document::to_bytes`] gives it.
    ///
    /// All changes are made or none is. Whether the outcome is still an acceptable message is for
    /// [`Message::edited`](crate::Message::edited) to say.
    pub fn edit(&self, edits: &Edits) -> Result<Bytes, EditError> {
        if edits.is_empty() {
            return Ok(self.to_bytes());
        }
        if self.canonical {
            return apply(self, edits);
        }
        // What we would write has the same tape, so every leaf and node keeps its name in it.
        let rewritten = Document::parse(self.to_bytes(), &self.limits)
            .map_err(|error| EditError::BadValue(error.kind))?;
        apply(&rewritten, edits)
    }
}

/// A range of the source and what stands there instead. Ranges never cross each other; they may be nested, then the outer
/// one counts.
struct Splice {
    span: Range<usize>,
    text: Vec<u8>,
}

fn apply(doc: &Document, edits: &Edits) -> Result<Bytes, EditError> {
    let removed = removed_nodes(doc, edits)?;
    let texts = leaf_texts(doc, edits)?;
    refuse_collisions(doc, edits, &texts, &removed)?;

    // In this order: of several changes with the same span the first one stays.
    let mut splices = Vec::new();
    push_removals(doc, &removed, &mut splices);
    for (node, json) in &edits.values {
        splices.push(value_splice(doc, *node, json)?);
    }
    for (leaf, text) in &texts {
        splices.push(Splice {
            span: doc.raw_span(Node(leaf.0)),
            text: text.to_json(),
        });
    }
    push_insertions(doc, edits, &removed, &mut splices)?;
    // The outer one of two that start together comes first; of two new values for one node the one asked for first.
    splices.sort_by(|a, b| {
        a.span
            .start
            .cmp(&b.span.start)
            .then(b.span.end.cmp(&a.span.end))
    });
    join(doc, &splices)
}

fn join(doc: &Document, splices: &[Splice]) -> Result<Bytes, EditError> {
    let source = doc.source();
    let bytes_max = doc.limits.edited_bytes_max();
    let added: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut out = Vec::with_capacity((source.len() + added).min(bytes_max));
    let mut done = 0;
    for splice in splices {
        if splice.span.start < done {
            continue;
        }
        out.extend_from_slice(&source[done..splice.span.start]);
        out.extend_from_slice(&splice.text);
        done = splice.span.end;
        if out.len() > bytes_max {
            return Err(EditError::TooLarge);
        }
    }
    out.extend_from_slice(&source[done..]);
    if out.len() > bytes_max {
        Err(EditError::TooLarge)
    } else {
        Ok(out.into())
    }
}

/// What a leaf becomes.
enum NewText {
    Zero,
    Text(String),
}

impl NewText {
    fn to_json(&self) -> Vec<u8> {
        match self {
            NewText::Zero => b"0".to_vec(),
            NewText::Text(text) => {
                let mut out = Vec::new();
                push_string(&mut out, text);
                out
            }
        }
    }
}

/// The new text of every leaf with a changed range, by leaf.
fn leaf_texts(doc: &Document, edits: &Edits) -> Result<BTreeMap<LeafId, NewText>, EditError> {
    let mut ranges: Vec<_> = edits.ranges.iter().collect();
    // Stable: of two ranges with the same start the one asked for first stays first.
    ranges.sort_by_key(|(leaf, range, _)| (*leaf, range.start));
    ranges
        .chunk_by(|a, b| a.0 == b.0)
        .map(|of_leaf| {
            let id = of_leaf[0].0;
            let leaf = doc.leaf_at(id.0).ok_or(EditError::NoSuchNode)?;
            let text = replace_ranges(leaf.text, of_leaf)?;
            Ok((
                id,
                if leaf.kind == LeafKind::Number {
                    NewText::Zero
                } else {
                    NewText::Text(text)
                },
            ))
        })
        .collect()
}

/// `ranges` are those of one leaf, sorted by their start.
fn replace_ranges(
    text: &str,
    ranges: &[&(LeafId, Range<usize>, Box<str>)],
) -> Result<String, EditError> {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (_, range, with) in ranges {
        if text.get(range.clone()).is_none() {
            return Err(EditError::BadRange);
        }
        let overlaps = range.start < done;
        if !overlaps {
            out.push_str(&text[done..range.start]);
            out.push_str(with);
        }
        done = done.max(range.end);
    }
    out.push_str(&text[done..]);
    Ok(out)
}

fn value_splice(doc: &Document, node: Node, json: &str) -> Result<Splice, EditError> {
    if doc
        .token(node.0)
        .is_none_or(|token| token.tag() == Tag::Key)
    {
        return Err(EditError::NoSuchNode);
    }
    Ok(Splice {
        span: doc.raw_span(node),
        text: checked_value(doc, depth_of(doc, node), json)?.to_vec(),
    })
}

/// A replacement as we write it, if it is acceptable with `depth` containers around it.
fn checked_value(doc: &Document, depth: usize, json: &str) -> Result<Bytes, EditError> {
    let limits = Limits {
        depth_max: doc.limits.depth_max.saturating_sub(depth),
        ..doc.limits
    };
    let value = Document::parse(Bytes::copy_from_slice(json.as_bytes()), &limits);
    value
        .map(|value| value.to_bytes())
        .map_err(|error| EditError::BadValue(error.kind))
}

/// How many containers are around a value.
fn depth_of(doc: &Document, node: Node) -> usize {
    let mut depth = 0;
    let mut at = node.0;
    while let Some(token) = doc.token(at).filter(|token| token.parent != at) {
        at = token.parent;
        depth += (doc.tag(at) != Tag::Key) as usize;
    }
    depth
}

/// The containers from which something is removed, with what is.
type Removed = BTreeMap<u32, BTreeSet<Node>>;

fn removed_nodes(doc: &Document, edits: &Edits) -> Result<Removed, EditError> {
    let mut removed = Removed::new();
    for &node in &edits.removed {
        let token = doc
            .token(node.0)
            .filter(|token| token.tag() != Tag::Key)
            .ok_or(EditError::NoSuchNode)?;
        let container = match doc.tag(token.parent) {
            Tag::Key => doc
                .token(token.parent)
                .map_or(token.parent, |key| key.parent),
            Tag::Array if token.parent != node.0 => token.parent,
            _ => return Err(EditError::NoSuchNode),
        };
        removed.entry(container).or_default().insert(node);
    }
    Ok(removed)
}

/// The values of an object or the elements of an array, each with where it starts (with its key, if it has one).
fn children(doc: &Document, container: u32) -> impl Iterator<Item = (usize, Node)> {
    let members = doc
        .members(Node(container))
        .map(|(key, _, value)| (doc.raw_span(Node(key.0)).start, value));
    let elements = doc
        .elements(Node(container))
        .map(|node| (doc.raw_span(node).start, node));
    members.chain(elements)
}

fn push_removals(doc: &Document, removed: &Removed, splices: &mut Vec<Splice>) {
    for (&container, nodes) in removed {
        let mut survivor_before = false;
        let mut previous_end = 0;
        let mut children = children(doc, container).peekable();
        while let Some((start, node)) = children.next() {
            let end = doc.raw_span(node).end;
            if !nodes.contains(&node) {
                survivor_before = true;
            } else {
                // With its comma: the one before it if something stays before it, else the one after it.
                let span = match (survivor_before, children.peek()) {
                    (true, _) => previous_end..end,
                    (false, Some(&(next_start, _))) => start..next_start,
                    (false, None) => start..end,
                };
                splices.push(Splice {
                    span,
                    text: Vec::new(),
                });
            }
            previous_end = end;
        }
    }
}

fn push_insertions(
    doc: &Document,
    edits: &Edits,
    removed: &Removed,
    splices: &mut Vec<Splice>,
) -> Result<(), EditError> {
    let mut by_object: BTreeMap<Node, Vec<u8>> = BTreeMap::new();
    for (object, key, json) in &edits.inserted {
        if doc.kind(*object) != Kind::Object {
            return Err(EditError::NoSuchNode);
        }
        let value = checked_value(doc, depth_of(doc, *object) + 1, json)?;
        let text = by_object.entry(*object).or_default();
        let gone = removed.get(&object.0).map_or(0, BTreeSet::len);
        if !text.is_empty() || doc.members(*object).nth(gone).is_some() {
            text.push(b',');
        }
        push_string(text, key);
        text.push(b':');
        text.extend_from_slice(&value);
    }
    splices.extend(by_object.into_iter().map(|(object, text)| {
        let at = doc.raw_span(object).end - 1;
        Splice { span: at..at, text }
    }));
    Ok(())
}

/// Looks at every object that gets a new or changed key, once.
fn refuse_collisions(
    doc: &Document,
    edits: &Edits,
    texts: &BTreeMap<LeafId, NewText>,
    removed: &Removed,
) -> Result<(), EditError> {
    let changed = texts.keys().filter(|leaf| doc.tag(leaf.0) == Tag::Key);
    let mut objects: BTreeSet<u32> = changed
        .filter_map(|leaf| doc.token(leaf.0))
        .map(|key| key.parent)
        .collect();
    objects.extend(edits.inserted.iter().map(|(object, ..)| object.0));
    for object in objects {
        let gone = removed.get(&object);
        let kept = doc
            .members(Node(object))
            .filter(|(_, _, value)| gone.is_none_or(|gone| !gone.contains(value)));
        let kept = kept.map(|(key, name, _)| match texts.get(&key) {
            Some(NewText::Text(text)) => text.as_str(),
            _ => name,
        });
        let inserted = edits
            .inserted
            .iter()
            .filter(|(of, ..)| of.0 == object)
            .map(|(_, key, _)| &**key);
        let mut seen = BTreeSet::new();
        if !kept.chain(inserted).all(|name| seen.insert(name)) {
            return Err(EditError::KeyCollision);
        }
    }
    Ok(())
}
