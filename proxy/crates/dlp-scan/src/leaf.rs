//! What is scanned: one leaf of a message.

/// What a leaf was in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeafKind {
    /// An object's key.
    Key,
    /// A string value, its JSON escapes undone.
    String,
    /// A number, as it was written.
    Number,
    /// A header's value.
    Header,
}

/// One leaf: its decoded text, and the name that stands over it.
#[derive(Clone, Copy, Debug)]
pub struct LeafInput<'a> {
    /// The text; finding offsets count its bytes.
    pub text: &'a str,
    /// What it was.
    pub kind: LeafKind,
    /// The nearest object key above (for an array element: the array's key), or the header's name.
    pub name: Option<&'a str>,
}
