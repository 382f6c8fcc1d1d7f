//! A message as evaluators are shown it: flat, owned, made once for all of them.
//!
//! All strings lie in one `text` and everything else points into it, so that an evaluator in another
//! address space costs one copy.

use std::sync::Arc;

use dlp_scan::{Finding, RuleSet};
use domain::{Direction, Era, PolicyAction};

/// A piece of [`MessageView::text`]: first byte and number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Piece {
    /// First byte.
    pub start: u32,
    /// How many bytes.
    pub len: u32,
}

/// What a leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewKind {
    /// An object's key.
    Key = 0,
    /// A string value.
    Text = 1,
    /// A number value.
    Number = 2,
    /// An HTTP header.
    Header = 3,
}

impl ViewKind {
    const ALL: [Self; 4] = [Self::Key, Self::Text, Self::Number, Self::Header];
}

/// One leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewLeaf {
    /// What it is.
    pub kind: ViewKind,
    /// Its path.
    pub path: Piece,
    /// Its text.
    pub text: Piece,
}

impl ViewLeaf {
    fn of(&[kind, path, path_len, text, text_len]: &[u32; 5]) -> Self {
        let piece = |start, len| Piece { start, len };
        Self {
            kind: ViewKind::ALL[kind as usize],
            path: piece(path, path_len),
            text: piece(text, text_len),
        }
    }
}

/// One finding of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewFinding {
    /// The rule's id.
    pub rule: Piece,
    /// Its category.
    pub category: Piece,
    /// Index of the leaf.
    pub leaf: u32,
    /// First byte of the match.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// 0 to 100.
    pub confidence: u8,
    /// Policy's word.
    pub action: PolicyAction,
}

/// What is known about a message beside its leaves.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// How it is spoken.
    pub era: Era,
    /// Its method, or that of the request it answers; empty if unknown.
    pub method: &'a str,
    /// The tool it belongs to.
    pub tool: Option<&'a str>,
    /// Its server.
    pub server: &'a str,
    /// Its tenant.
    pub tenant: &'a str,
    /// The session's hash.
    pub session: Option<&'a str>,
    /// Id of the key that called.
    pub key_id: &'a str,
    /// For what comes from the server: method and JSON-RPC id (JSON text) of the call.
    pub call: Option<(&'a str, Option<&'a str>)>,
}

/// A message, flat. Its text is not shown by `Debug`.
#[derive(Clone)]
pub struct MessageView {
    text: String,
    /// Which way it goes.
    pub direction: Direction,
    /// How it is spoken.
    pub era: Era,
    /// Its method.
    pub method: Piece,
    /// Its tool.
    pub tool: Option<Piece>,
    /// Its server.
    pub server: Piece,
    /// Its tenant.
    pub tenant: Piece,
    /// Its session's hash.
    pub session: Option<Piece>,
    /// Id of the key that called.
    pub key_id: Piece,
    key_id_name: Piece,
    /// Method and id of the call.
    pub call: Option<(Piece, Option<Piece>)>,
    /// Five numbers per leaf: this is copied into another address space as it stands.
    leaves: Vec<[u32; 5]>,
    findings: Vec<ViewFinding>,
    words: Arc<Words>,
}

/// The values of a message that are no leaves, for those who compare messages whole: `true`, `false`, `null`,
/// and objects and lists with nothing in them. Their text is not shown by `Debug`.
#[derive(Clone, Default)]
pub struct Words {
    /// Their paths and what they are, one behind the other.
    pub text: String,
    /// Start and length of the path, start and length of the word.
    pub places: Vec<[u32; 4]>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words")
            .field("count", &self.places.len())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for MessageView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageView")
            .field("bytes", &self.text.len())
            .field("leaves", &self.leaves.len())
            .finish_non_exhaustive()
    }
}

impl MessageView {
    /// Begins a view; `bytes` and `leaves` say how much room to set aside.
    pub fn new(about: &About<'_>, bytes: usize, leaves: usize) -> Self {
        let mut text = String::with_capacity(bytes);
        let mut put = |piece: &str| put(&mut text, piece);
        Self {
            direction: about.direction,
            era: about.era,
            method: put(about.method),
            tool: about.tool.map(&mut put),
            server: put(about.server),
            tenant: put(about.tenant),
            session: about.session.map(&mut put),
            key_id: put(about.key_id),
            key_id_name: put("key-id"),
            call: about
                .call
                .map(|(method, id)| (put(method), id.map(&mut put))),
            leaves: Vec::with_capacity(leaves),
            findings: Vec::new(),
            words: Arc::default(),
            text,
        }
    }

    /// Adds a value that is no leaf.
    pub fn word(&mut self, path: &str, word: &str) {
        // Nobody shares them before the message is laid out.
        let words = Arc::make_mut(&mut self.words);
        let path = put(&mut words.text, path);
        let word = put(&mut words.text, word);
        words
            .places
            .push([path.start, path.len, word.start, word.len]);
    }

    /// The values that are no leaves, in the order of the message.
    pub fn words(&self) -> &Arc<Words> {
        &self.words
    }

    /// Adds a leaf. Leaves come in the order in which the scanner saw them.
    pub fn leaf(&mut self, kind: ViewKind, path: &str, text: &str) {
        let path = put(&mut self.text, path);
        let text = put(&mut self.text, text);
        let leaf = [kind as u32, path.start, path.len, text.start, text.len];
        self.leaves.push(leaf);
    }

    /// Adds what the rules found, with policy's word about each.
    pub fn found(&mut self, findings: &[Finding], hits: &[PolicyAction], rules: &RuleSet) {
        for (finding, action) in findings.iter().zip(hits) {
            let found = ViewFinding {
                rule: put(&mut self.text, &rules.rule(finding.rule).id),
                category: put(&mut self.text, finding.category.as_str()),
                leaf: finding.leaf,
                start: finding.start,
                end: finding.end,
                confidence: finding.confidence,
                action: *action,
            };
            self.findings.push(found);
        }
    }

    /// All strings.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One string.
    pub fn cut(&self, piece: Piece) -> &str {
        let start = piece.start as usize;
        self.text
            .get(start..start + piece.len as usize)
            .unwrap_or_default()
    }

    /// The words `key-id`, by which the key's id goes among what is known about a caller.
    pub fn key_id_name(&self) -> Piece {
        self.key_id_name
    }

    /// The leaves.
    pub fn leaves(&self) -> impl ExactSizeIterator<Item = ViewLeaf> {
        self.leaves.iter().map(ViewLeaf::of)
    }

    /// One leaf.
    pub fn leaf_at(&self, index: u32) -> Option<ViewLeaf> {
        self.leaves.get(index as usize).map(ViewLeaf::of)
    }

    /// The leaves as five numbers each: kind, start and length of the path, start and length of the text.
    pub fn leaf_numbers(&self) -> &[u32] {
        self.leaves.as_flattened()
    }

    /// The findings, in the order of the scanner's.
    pub fn findings(&self) -> &[ViewFinding] {
        &self.findings
    }
}

/// Messages are bounded far below 4 GiB; what would not fit reads as empty.
fn put(text: &mut String, piece: &str) -> Piece {
    let (Ok(start), Ok(len)) = (u32::try_from(text.len()), u32::try_from(piece.len())) else {
        return Piece::default();
    };
    if start.checked_add(len).is_none() {
        return Piece::default();
    }
    text.push_str(piece);
    Piece { start, len }
}
