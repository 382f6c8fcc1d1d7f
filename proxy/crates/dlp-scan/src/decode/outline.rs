//! What is open around a place in JSON, be it a text that is read or a message whose leaves are given: which object each cell is
//! a member of, and which tables there are.

use super::columns::{Around, Tables};
use crate::layout::NO_OBJECT;
use crate::text::{NO_LEAF, Node, Span, to_u32};
use crate::{LeafKind, Step};

/// The objects and arrays that are open. It is as long as they are deep, and knows of every cell before `cells`.
#[derive(Default)]
pub(super) struct Open {
    stack: Vec<Frame>,
    tables: Tables,
}

/// A text may be nothing but brackets, so it is kept short.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub name: Span,
    /// Where it begins.
    pub at: u32,
    /// The innermost object here.
    inside: u32,
    pub object: bool,
}

impl Open {
    pub fn innermost(&self) -> Option<Frame> {
        self.stack.last().copied()
    }

    /// The name over what the innermost lies in.
    pub fn outer_name(&self) -> Option<Span> {
        let outer = self.stack.len().checked_sub(2)?;
        Some(self.stack[outer].name)
    }

    /// An object or an array begins under this name.
    pub fn begins(&mut self, object: bool, name: Span, at: usize, node: &mut Node, cells: usize) {
        let inside = match object {
            true => node.layout.opened(name, cells),
            false => self.stack.last().map_or(NO_OBJECT, |top| top.inside),
        };
        let at = to_u32(at);
        self.stack.push(Frame {
            name,
            at,
            inside,
            object,
        });
    }

    /// The array that began last is not empty: it may be a row of a table, or the names over its columns.
    pub fn has_elements(&mut self, node: &Node, cells: usize) {
        let (name, around) = match *self.stack {
            [.., outer, top, array] => {
                let of_member = !top.object && outer.object;
                let of_member = of_member.then_some(top.at);
                (array.name, (top.object, of_member))
            }
            [top, array] => (array.name, (top.object, None)),
            _ => return,
        };
        let (member, of_member) = around;
        if !name.is_empty() && (member || of_member.is_some()) {
            let around = Around {
                depth: self.stack.len(),
                member,
                of_member,
            };
            self.tables.array_opens(&around, name, node, cells);
        }
    }

    /// What began last ends.
    pub fn ends(&mut self, node: &mut Node, cells: usize) {
        let ended = self.stack.pop();
        if ended.is_some_and(|ended| ended.object) {
            let inside = self.stack.last().map_or(NO_OBJECT, |top| top.inside);
            node.layout.turned(inside, cells);
        }
        self.tables.closed(self.stack.len(), cells);
    }

    /// A value is over, with all that was in it.
    pub fn value_ended(&mut self, node: &Node, cells: usize) {
        if self.stack.len() == self.tables.watched() {
            self.tables.element_ended(node, cells);
        }
    }

    /// All is read.
    pub fn finish(&mut self, node: &mut Node) {
        std::mem::take(&mut self.tables).finish(node);
    }
}

/// Notes how the leaves of a message lie in it. Those that have no cell of their own (they are JSON themselves) are passed over.
pub(crate) fn lay_out(node: &mut Node, steps: impl Iterator<Item = Step>) {
    let (mut open, mut name, mut is_new) = (Open::default(), Span::default(), false);
    let (mut cells, mut leaf) = (0, 0);
    for (at, step) in steps.enumerate() {
        if std::mem::take(&mut is_new) && step != Step::End {
            open.has_elements(node, cells);
        }
        match step {
            Step::Object | Step::Array => {
                is_new = step == Step::Array;
                open.begins(!is_new, name, at, node, cells);
                continue;
            }
            Step::Leaf => {
                let before = |c: &crate::text::Cell| c.leaf == NO_LEAF || c.leaf < leaf;
                while node.cells.get(cells).is_some_and(before) {
                    cells += 1;
                }
                let own = node.cells.get_mut(cells).filter(|c| c.leaf == leaf);
                leaf = leaf.saturating_add(1);
                if let Some(cell) = own {
                    cells += 1;
                    if cell.kind == LeafKind::Key {
                        name = cell.span;
                        continue;
                    }
                    // It may have been written once more before a value that an object stands before.
                    if node.text[cell.name.range()] == node.text[name.range()] {
                        cell.name = name;
                    }
                }
            }
            Step::Other => {}
            Step::End => open.ends(node, cells),
        }
        open.value_ended(node, cells);
        let around = open.innermost().filter(|around| !around.object);
        name = around.map_or(Span::default(), |array| array.name);
    }
    open.finish(node);
}
