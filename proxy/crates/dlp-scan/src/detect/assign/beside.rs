//! `{"name": "DB_PASSWORD", "value": "..."}`: a value beside its label, in the same object or in one that belongs to it: the
//! object under a member that is called a value, the object around a member that is called a label, the next in a list.

use super::trim;
use crate::detect::{Sink, is_value};
use crate::layout::Layout;
use crate::text::{Cell, Parent, Span};
use smallvec::SmallVec;

/// Cells that are asked behind a label in its own object; around it in others.
const OWN_CELLS_MAX: usize = 8;
const CELLS_MAX: usize = 8;
/// In an object below, which may stand behind members of the label's own, and in those of a list.
const BELOW_CELLS_MAX: usize = 32;
/// `{"value": {"data": {"value": ...`
const DEPTH_MAX: usize = 3;
/// Values of one label, by where they hold.
const VALUES_MAX: usize = 8;

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
    "keyname",
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

/// The value of a label, if the cell is one; several where they are listed.
pub(super) fn named_beside(cell: (usize, Cell), sink: &Sink<'_>) -> SmallVec<[Span; 2]> {
    let text = sink.text();
    if !is(&text[cell.1.name.range()], LABELS) {
        return SmallVec::new();
    }
    let beside = Beside {
        text,
        cells: &sink.node.cells,
        layout: &sink.node.layout,
        label: cell.0,
    };
    let own = beside.layout.object_of(cell.0);
    let one = |at: Option<usize>| at.into_iter().collect::<SmallVec<[usize; 2]>>();
    let mut found = one(beside.drawn().or_else(|| beside.in_own(own)));
    if found.is_empty()
        && let Some(own) = own
    {
        found = beside.below(own);
        if found.is_empty() {
            let far = beside.above(own).or_else(|| beside.next(own));
            found = one(far.or_else(|| (sink.node.parent == Parent::Root).then(|| beside.near())?));
        }
    }
    let spans = found.into_iter().map(|at| beside.cells[at].span);
    spans.map(|span| trim(text, span)).collect()
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
        let near = self.label.saturating_sub(CELLS_MAX)..self.behind(BELOW_CELLS_MAX).end;
        let at = near.into_iter().find(key)?;
        Some((at, self.layout.object_of(at)))
    }

    /// What Terraform draws has no name of its own: `"type": "random_password"`, and somewhere under it `"result": "..."`. Its state
    /// and its plans hold it so. The next thing has a type, too.
    fn drawn(&self) -> Option<usize> {
        const CELLS_MAX: usize = 64;
        let told = &self.text[self.cells[self.label].span.range()];
        if told != b"random_password" || self.called(self.label) != b"type" {
            return None;
        }
        let values = self
            .behind(CELLS_MAX)
            .filter(|at| is_value(&self.cells[*at]));
        let mut own = values.take_while(|at| self.called(*at) != b"type");
        own.find(|at| self.called(*at) == b"result")
    }

    /// No other label stands in that object.
    fn is_free(&self, object: u32) -> bool {
        self.is_free_of(object, |_| true)
    }

    /// The same, of labels that count.
    fn is_free_of(&self, object: u32, counts: impl Fn(&[u8]) -> bool) -> bool {
        let near = self.label.saturating_sub(CELLS_MAX)..self.behind(BELOW_CELLS_MAX).end;
        !near.into_iter().any(|at| {
            let same = at != self.label && self.layout.object_of(at) == Some(object);
            let called = self.called(at);
            same && is_value(&self.cells[at])
                && counts(called)
                && is(called, LABELS)
                && !is(called, VALUES)
        })
    }

    /// `"valueFrom": {"value": ...}`, `"values": [{"value": ...}, {"value": ...}]`
    fn below(&self, own: u32) -> SmallVec<[usize; 2]> {
        // On the way up one key is called a value: `"values": {"production": {"value": ...`
        let leads = |object: u32| {
            let (mut at, mut valued) = (object, false);
            (0..DEPTH_MAX).any(|_| match self.over(at) {
                Some((key, Some(around))) => {
                    let key = &self.text[self.cells[key].span.range()];
                    let begins = key.len() >= 5 && key[..5].eq_ignore_ascii_case(b"value");
                    valued |= begins || is(key, &["val", "default", "secret"]);
                    at = around;
                    valued && at == own
                }
                _ => false,
            })
        };
        // What it is numbered by is no label.
        let free = |object| self.is_free_of(object, |called| !is(called, &["id"]));
        let found = self.behind(BELOW_CELLS_MAX).filter(|at| {
            let object = self.layout.object_of(*at);
            is_value(&self.cells[*at])
                && is(self.called(*at), FAR_VALUES)
                && object.is_some_and(|object| object != own && leads(object) && free(object))
        });
        found.take(VALUES_MAX).collect()
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
