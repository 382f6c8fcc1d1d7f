//! `{"name": "DB_PASSWORD", "value": "..."}`: a value beside its label, in the same object or in one that belongs to it: the
//! object under a member that is called a value, the object around a member that is called a label, the next in a list.

use super::trim;
use crate::detect::{Sink, is_value};
use crate::layout::Layout;
use crate::text::{Cell, Parent, Span};

/// Cells that are asked behind a label in its own object; around it in others.
const OWN_CELLS_MAX: usize = 8;
const CELLS_MAX: usize = 8;
/// `{"value": {"data": {"value": ...`
const DEPTH_MAX: usize = 3;

/// What labels are called.
const LABELS: &[&str] = &[
    "name",
    "key",
    "field",
    "variable",
    "var",
    "env",
    "id",
    "label",
    "param",
    "parameter",
    "parameterkey",
    "header",
    "setting",
    "text",
    "display",
    "title",
    "question",
    "q",
    "n",
    "k",
    "attribute",
    "property",
    "caption",
    "type",
    "uri",
    "path",
    "file",
    "filename",
    "file_name",
    "element",
    "option_name",
    "setting_name",
    "config_name",
    "config_key",
    "meta_key",
    "env_name",
    "param_name",
    "field_name",
    "variable_name",
    "secret_name",
    "key_name",
    "attr_name",
    "item_name",
    "selector",
    "locator",
    "css",
    "xpath",
    "target",
];
/// What an object with a label in it is called, by the end of its name.
const HOLDERS: &[&str] = &[
    "field",
    "attribute",
    "param",
    "parameter",
    "variable",
    "property",
    "header",
    "setting",
    "question",
    "column",
    "option",
    "definition",
    "metadata",
    "label",
    "key",
];
/// What values are called beside a label, and farther off.
const VALUES: &[&str] = &[
    "value",
    "val",
    "v",
    "answer",
    "a",
    "content",
    "data",
    "default",
    "secret",
    "text",
    "option_value",
    "setting_value",
    "config_value",
    "meta_value",
    "env_value",
    "param_value",
    "field_value",
    "variable_value",
    "secret_value",
    "key_value",
    "attr_value",
    "item_value",
    "parametervalue",
    "body",
    "plaintext",
    "formula",
    // What a change says of a field.
    "new",
    "old",
    "new_value",
    "old_value",
    "newvalue",
    "oldvalue",
];
const FAR_VALUES: &[&str] = &[
    "value",
    "val",
    "stringvalue",
    "string_value",
    "plaintext",
    "text",
    "content",
];
const SURE_VALUES: &[&str] = &["value", "val"];

fn is(name: &[u8], list: &[&str]) -> bool {
    list.iter().any(|w| name.eq_ignore_ascii_case(w.as_bytes()))
}

fn ends(name: &[u8], list: &[&str]) -> bool {
    let end = |w: &&str| name.len().checked_sub(w.len()).map(|at| &name[at..]);
    list.iter()
        .any(|w| end(w).is_some_and(|end| end.eq_ignore_ascii_case(w.as_bytes())))
}

/// The value of a label, if the cell is one.
pub(super) fn named_beside(cell: (usize, Cell), sink: &Sink<'_>) -> Option<Span> {
    let text = sink.text();
    if !is(&text[cell.1.name.range()], LABELS) {
        return None;
    }
    let beside = Beside {
        text,
        cells: &sink.node.cells,
        layout: &sink.node.layout,
        label: cell.0,
    };
    let own = beside.layout.object_of(cell.0);
    let found = beside.in_own(own).or_else(|| {
        let own = own?;
        let below = beside.below(own);
        below
            .or_else(|| beside.above(own))
            .or_else(|| beside.next(own))
            .or_else(|| (sink.node.parent == Parent::Root).then(|| beside.near())?)
    });
    Some(trim(text, beside.cells[found?].span))
}

struct Beside<'n> {
    text: &'n [u8],
    cells: &'n [Cell],
    layout: &'n Layout,
    label: usize,
}

impl Beside<'_> {
    fn called(&self, cell: usize) -> &[u8] {
        &self.text[self.cells[cell].name.range()]
    }

    /// The cells behind the label.
    fn behind(&self, most: usize) -> std::ops::Range<usize> {
        self.label + 1..(self.label + 1 + most).min(self.cells.len())
    }

    /// Those before it, too.
    fn around(&self) -> std::ops::Range<usize> {
        self.label.saturating_sub(CELLS_MAX)..self.behind(CELLS_MAX).end
    }

    fn in_own(&self, own: Option<u32>) -> Option<usize> {
        self.behind(OWN_CELLS_MAX).find(|at| {
            is_value(&self.cells[*at])
                && self.layout.object_of(*at) == own
                && is(self.called(*at), VALUES)
        })
    }

    /// In an object of any name that no other label claims. Of a message itself the objects are known only where it has tables;
    /// what is found without knowing them is found with them.
    fn near(&self) -> Option<usize> {
        self.behind(OWN_CELLS_MAX).find(|at| {
            let object = self.layout.object_of(*at);
            is_value(&self.cells[*at])
                && is(self.called(*at), VALUES)
                && object.is_none_or(|object| self.is_free(object))
        })
    }

    /// The key over an object, and the object that it is a member of.
    fn over(&self, object: u32) -> Option<(usize, Option<u32>)> {
        let name = self.layout.name_of(object);
        let key = |at: &usize| !is_value(&self.cells[*at]) && self.cells[*at].span == name;
        let at = self.around().find(key)?;
        Some((at, self.layout.object_of(at)))
    }

    /// No other label stands in that object.
    fn is_free(&self, object: u32) -> bool {
        !self.around().any(|at| {
            let same = at != self.label && self.layout.object_of(at) == Some(object);
            same && is_value(&self.cells[at])
                && is(self.called(at), LABELS)
                && !is(self.called(at), VALUES)
        })
    }

    /// `"valueFrom": {"value": ...}`
    fn below(&self, own: u32) -> Option<usize> {
        let leads = |object: u32| {
            let mut at = object;
            (0..DEPTH_MAX).any(|_| match self.over(at) {
                Some((key, Some(around))) => {
                    let key = &self.text[self.cells[key].span.range()];
                    let begins = key.len() >= 5 && key[..5].eq_ignore_ascii_case(b"value");
                    let named = begins || is(key, &["val", "default", "secret"]);
                    at = if named { around } else { u32::MAX };
                    at == own
                }
                _ => false,
            })
        };
        self.behind(CELLS_MAX).find(|at| {
            let object = self.layout.object_of(*at);
            is_value(&self.cells[*at])
                && is(self.called(*at), FAR_VALUES)
                && object
                    .is_some_and(|object| object != own && leads(object) && self.is_free(object))
        })
    }

    /// `"field": {"name": ...}, "value": ...`
    fn above(&self, own: u32) -> Option<usize> {
        let (key, around) = self.over(own)?;
        let around = around.filter(|_| ends(&self.text[self.cells[key].span.range()], HOLDERS))?;
        let found = self.around().find(|at| {
            is_value(&self.cells[*at])
                && self.layout.object_of(*at) == Some(around)
                && is(self.called(*at), SURE_VALUES)
        });
        found.filter(|_| self.is_free(around))
    }

    /// `[{"name": ...}, {"value": ...}]`
    fn next(&self, own: u32) -> Option<usize> {
        let list = self.layout.name_of(own);
        let mut others = self
            .behind(CELLS_MAX)
            .filter(|at| self.layout.object_of(*at) != Some(own));
        let next = self.layout.object_of(others.next()?)?;
        let found = self.behind(CELLS_MAX).find(|at| {
            is_value(&self.cells[*at])
                && self.layout.object_of(*at) == Some(next)
                && is(self.called(*at), SURE_VALUES)
        });
        found.filter(|_| self.layout.name_of(next) == list && self.is_free(next))
    }
}
