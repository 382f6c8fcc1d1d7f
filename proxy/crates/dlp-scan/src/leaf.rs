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

/// One step through the objects and arrays that the leaves of a message lie in, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An object begins.
    Object,
    /// An array begins.
    Array,
    /// The next leaf.
    Leaf,
    /// A value that is no leaf: true, false, null.
    Other,
    /// What began last, and has not ended, ends.
    End,
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
