//! How the leaves of a document lie in its objects and arrays.

use crate::document::{Document, Tag};

/// One step through a document, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An object begins.
    Object,
    /// An array begins.
    Array,
    /// The next of [`Document::leaves`]: a key, a string or a number.
    Leaf,
    /// A value that is no leaf: true, false, null.
    Other,
    /// What began last, and has not ended, ends.
    End,
}

/// Iterator of [`Document::outline`].
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    doc: &'a Document,
    at: u32,
    /// The innermost object or array that has not ended.
    inside: Option<u32>,
}

impl<'a> Outline<'a> {
    pub(crate) fn new(doc: &'a Document) -> Self {
        Self {
            doc,
            at: 0,
            inside: None,
        }
    }

    /// The object or array that one lies in.
    fn around(&self, index: u32) -> Option<u32> {
        let parent = self.doc.token(index)?.parent;
        let container = match self.doc.tag(parent) {
            Tag::Key => self.doc.token(parent)?.parent,
            _ => parent,
        };
        (container != index).then_some(container)
    }
}

impl Iterator for Outline<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(inside) = self.inside
            && self.at >= self.doc.subtree_end(inside)
        {
            self.inside = self.around(inside);
            return Some(Step::End);
        }
        let index = self.at;
        let tag = self.doc.token(index)?.tag();
        self.at += 1;
        if matches!(tag, Tag::Object | Tag::Array) {
            self.inside = Some(index);
        }
        Some(match tag {
            Tag::Object => Step::Object,
            Tag::Array => Step::Array,
            Tag::Key | Tag::String | Tag::Number => Step::Leaf,
            Tag::True | Tag::False | Tag::Null => Step::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Limits};

    use super::Step;

    fn check(text: &'static str, want: &str, has_rows: bool) {
        let doc = Document::parse(text.as_bytes().into(), &Limits::default()).unwrap();
        let shown = |step| match step {
            Step::Object => '{',
            Step::Array => '[',
            Step::Leaf => 'x',
            Step::Other => 'o',
            Step::End => '.',
        };
        let steps: String = doc.outline().map(shown).collect();
        assert_eq!((steps.as_str(), doc.has_rows()), (want, has_rows), "{text}");
        let leaves = steps.chars().filter(|step| *step == 'x').count();
        assert_eq!(leaves, doc.leaves().len());
    }

    #[test]
    fn an_outline_is_what_the_text_is() {
        check("7", "x", false);
        check("null", "o", false);
        check("{}", "{.", false);
        check(r#"{"a":[1,"x"],"b":{}}"#, "{x[xx.x{..", false);
        check(r#"[[],[true,{"a":null}],3]"#, "[[.[o{xo..x.", true);
        check(r#"{"rows":[{"cells":[1]},2]}"#, "{x[{x[x..x..", false);
        check(r#"{"rows":[1,[2]]}"#, "{x[x[x...", true);
    }
}
