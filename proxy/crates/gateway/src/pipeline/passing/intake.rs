//! What is read becomes leaves, each with what stands before it and where it is.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dlp_scan::{LeafKind, LeafStream};
use mcp_codec::stream::{Event, Sink};
use mcp_codec::{DecodeErrorKind, Kind, PATH_CHARS_MAX, push_path_key};

/// Brackets, commas and spaces that may wait for the next leaf.
const GLUE_BYTES_MAX: usize = 4 << 10;
/// What a leaf costs beside its text.
const TAG_BYTES: usize = 56;
/// Bytes decided at a time.
const STEP_BYTES: usize = 96 << 10;
/// What stays of the end of a path that is too long, as for whole messages.
const PATH_TAIL_CHARS: usize = 96;

/// A key on the way to a leaf.
#[derive(Debug)]
pub(super) struct Key {
    text: Arc<str>,
    /// Something was found in it: it is not shown.
    found: AtomicBool,
}

impl Key {
    pub(super) fn mask(&self) {
        self.found.store(true, Ordering::Relaxed);
    }
}

/// One step to a leaf.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Key(Arc<Key>),
    Index(u32),
}

/// A bracket on the way to a leaf.
#[derive(Debug)]
struct Inner {
    above: Option<Arc<Inner>>,
    step: Step,
}

/// What belongs to a leaf beside its text.
#[derive(Debug)]
pub(super) struct Tag {
    /// Punctuation that stands before it.
    pub(super) before: Vec<u8>,
    /// `None`: there is no leaf, only punctuation.
    pub(super) step: Option<Step>,
    within: Option<Arc<Inner>>,
    pub(super) is_key: bool,
    /// `before` and the opening quote were written.
    pub(super) begun: bool,
}

impl Tag {
    fn steps(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> = self.step.iter().collect();
        let mut at = self.within.as_ref();
        while let Some(inner) = at {
            steps.push(&inner.step);
            at = inner.above.as_ref();
        }
        steps.reverse();
        steps
    }

    /// Whether the leaf stands at, or with `under` somewhere below, these keys.
    pub(super) fn is_at(&self, keys: &[&str], under: bool) -> bool {
        let steps = self.steps();
        let fits = |(step, key): (&&Step, &&str)| matches!(step, Step::Key(k) if &*k.text == *key);
        (steps.len() == keys.len() || under && steps.len() > keys.len())
            && steps.iter().zip(keys).all(fits)
    }

    /// `$.result.content[0].text`, as [`mcp_codec::Path`] shows it.
    pub(super) fn path(&self, masked: bool) -> String {
        let mut text = String::from("$");
        let mut steps = self.steps();
        if self.is_key {
            steps.pop();
        }
        for step in steps {
            match step {
                // Writing to a String cannot fail.
                Step::Index(index) => drop(write!(text, "[{index}]")),
                Step::Key(key) if masked && key.found.load(Ordering::Relaxed) => {
                    text.push_str(".{masked}");
                }
                Step::Key(key) => push_path_key(&mut text, &key.text),
            }
        }
        if self.is_key {
            text.push_str("{key}");
        }
        shortened(text)
    }
}

fn shortened(text: String) -> String {
    let chars = text.chars().count();
    if chars <= PATH_CHARS_MAX {
        return text;
    }
    let head: String = text
        .chars()
        .take(PATH_CHARS_MAX - PATH_TAIL_CHARS - 1)
        .collect();
    let tail: String = text.chars().skip(chars - PATH_TAIL_CHARS).collect();
    format!("{head}…{tail}")
}

/// A bracket that is open.
#[derive(Debug)]
struct Open {
    is_object: bool,
    inner: Option<Arc<Inner>>,
    key: Option<Arc<Key>>,
    /// The nearest key, for a list's elements.
    name: Option<Arc<str>>,
    count: u32,
}

/// Gathers leaves.
#[derive(Debug)]
pub(super) struct Intake {
    pub(super) leaves: LeafStream<Tag>,
    pub(super) glue: Vec<u8>,
    open: Vec<Open>,
}

impl Intake {
    pub(super) fn new() -> Self {
        let hold_back = LeafStream::<Tag>::HOLD_BACK_DEFAULT;
        Self {
            leaves: LeafStream::new(hold_back, STEP_BYTES),
            glue: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Where the next value stands, and the name over it.
    fn next(&mut self) -> (Option<Step>, Option<Arc<str>>) {
        let Some(open) = self.open.last_mut() else {
            return (None, None);
        };
        if let Some(key) = open.key.as_ref().filter(|_| open.is_object) {
            return (
                Some(Step::Key(Arc::clone(key))),
                Some(Arc::clone(&key.text)),
            );
        }
        open.count += 1;
        (Some(Step::Index(open.count - 1)), open.name.clone())
    }

    fn begin(&mut self, kind: LeafKind, step: Option<Step>, name: Option<Arc<str>>) {
        let before = std::mem::take(&mut self.glue);
        let weight = before.len() + TAG_BYTES;
        let tag = Tag {
            before,
            step,
            within: self.open.last().and_then(|open| open.inner.clone()),
            is_key: kind == LeafKind::Key,
            begun: false,
        };
        self.leaves.begin(kind, name, tag, weight);
    }

    fn open(&mut self, kind: Kind) {
        let (step, name) = self.next();
        let above = self.open.last().and_then(|open| open.inner.clone());
        let is_object = kind == Kind::Object;
        self.glue.push(if is_object { b'{' } else { b'[' });
        self.open.push(Open {
            is_object,
            inner: step.map(|step| Arc::new(Inner { above, step })),
            key: None,
            name: if is_object { None } else { name },
            count: 0,
        });
    }

    /// Punctuation without leaves does not gather without bound. After the last bracket nothing is let go: the message is
    /// not over until it is accepted.
    fn bound_glue(&mut self) {
        if self.glue.len() > GLUE_BYTES_MAX && !self.open.is_empty() {
            self.begin(LeafKind::Number, None, None);
        }
    }
}

impl Sink for Intake {
    fn event(&mut self, event: Event<'_>, _: Range<u64>) -> Result<(), DecodeErrorKind> {
        match event {
            // Around the message there is nothing to be kept.
            Event::Spaces(_) if self.open.is_empty() => {}
            Event::Spaces(count) => {
                let mut left = count;
                while left > 0 {
                    let some = left.min(GLUE_BYTES_MAX);
                    self.glue.resize(self.glue.len() + some, b' ');
                    left -= some;
                    self.bound_glue();
                }
            }
            Event::Open(kind) => self.open(kind),
            Event::Close(kind) => {
                self.glue
                    .push(if kind == Kind::Object { b'}' } else { b']' });
                self.open.pop();
            }
            Event::Comma => self.glue.push(b','),
            Event::Colon => self.glue.push(b':'),
            Event::Key(text) => {
                let key = Arc::new(Key {
                    text: text.into(),
                    found: AtomicBool::new(false),
                });
                if let Some(open) = self.open.last_mut() {
                    open.key = Some(Arc::clone(&key));
                }
                self.begin(LeafKind::Key, Some(Step::Key(key)), None);
                self.leaves.push(text);
            }
            Event::TextStart => {
                let (step, name) = self.next();
                self.begin(LeafKind::String, step, name);
            }
            Event::Text(piece) => self.leaves.push(piece),
            Event::TextEnd => {}
            Event::Number(text) => {
                let (step, name) = self.next();
                self.begin(LeafKind::Number, step, name);
                self.leaves.push(text);
            }
            Event::Word(kind) => {
                self.next();
                self.glue.extend_from_slice(match kind {
                    Kind::True => b"true",
                    Kind::False => b"false",
                    _ => b"null",
                });
            }
        }
        self.bound_glue();
        Ok(())
    }
}
