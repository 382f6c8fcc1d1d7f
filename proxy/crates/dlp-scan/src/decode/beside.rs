//! Calls and what is put together, beside each other: each is replaced by what it gives, all in one child. In a child for each
//! of them the others would stand around it as they were, to be made again in its children, and in those of these.

use super::{
    MARGIN_AFTER, Spawner, begin_cell, copy, margin_after, margin_before, name_over,
    without_data_head,
};
use crate::Layer;
use crate::text::{Cell, Fresh, Node, Span};

/// Behind so many bytes another child begins: of one that cannot be afforded nothing is looked at.
const SHARED_BYTES_MAX: usize = 16 << 10;

/// What is replaced, from where the name ends that it is given to.
pub(super) struct Call {
    pub label: usize,
    pub from: usize,
    pub to: usize,
}

/// A child that is not ended yet, because another call may stand beside the last one.
pub(crate) struct Shared {
    child: Node,
    cell: Cell,
    /// The name over it, in its parent and in itself.
    over: Span,
    name: Span,
    /// Where its cell begins, and how much of the parent's text is in it.
    start: usize,
    done: usize,
}

impl Shared {
    fn goes_on(&self, cell: &Cell, over: Span, label: usize) -> bool {
        self.cell.span == cell.span
            && self.over == over
            && (self.done..=self.done + MARGIN_AFTER).contains(&label)
            && self.child.text.len() < SHARED_BYTES_MAX
    }

    fn end(mut self, node: &Node, spawn: &mut Spawner<'_>) {
        let ceil = self.cell.span.end as usize;
        let to = margin_after(&node.text, self.done, ceil);
        copy(&mut self.child, node, self.done, to);
        self.child
            .close_cell(self.start, self.name, self.cell.kind, 0);
        spawn.end(self.child);
    }
}

/// Puts what `fill` writes in the place of a call. One that lies beside what the parent's decoder made, and not around it, has
/// been replaced in another child of the parent's parent.
pub(super) fn call_in_place(
    node: &Node,
    cell: &Cell,
    layer: Layer,
    call: &Call,
    spawn: &mut Spawner<'_>,
    fill: impl FnOnce(&mut Node),
) {
    if !spawn.is_new(Span::new(call.from, call.to), Fresh::overlaps) {
        return;
    }
    let over = name_over(node, cell, call.from);
    let of_layer = |shared: &Shared| shared.child.layer == Some(layer);
    let open = spawn.shared.iter().position(of_layer);
    let open = open.map(|nth| spawn.shared.swap_remove(nth));
    let mut shared = match open {
        Some(shared) if shared.goes_on(cell, over, call.label) => shared,
        open => {
            if let Some(open) = open {
                open.end(node, spawn);
            }
            let Some(mut child) = spawn.begin(layer) else {
                return;
            };
            let name = begin_cell(&mut child, node, over);
            let start = child.text.len();
            let margin = margin_before(&node.text, call.label, cell.span.start as usize);
            let before = without_data_head(&node.text[margin..call.label]);
            copy(&mut child, node, margin, margin + before.len());
            Shared {
                child,
                cell: *cell,
                over,
                name,
                start,
                done: call.label,
            }
        }
    };
    copy(&mut shared.child, node, shared.done, call.label);
    let from = shared.child.text.len();
    fill(&mut shared.child);
    let made = Span::new(from, shared.child.text.len());
    shared.child.made.push(made);
    shared.done = call.to;
    spawn.shared.push(shared);
}

/// Ends the children that may have gone on. There is one for each layer at the most.
pub(super) fn end_all(node: &Node, spawn: &mut Spawner<'_>) {
    while let Some(shared) = spawn.shared.pop() {
        shared.end(node, spawn);
    }
}
