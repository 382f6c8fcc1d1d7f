//! From a node to the nodes that are hidden in it. Each decoder looks for its own traces, cheaply, and makes a child
//! of the piece around them: a little of the text before and after comes along, so that names and words which give a
//! value its meaning stay beside it.

mod archive;
mod around;
mod backwards;
mod base;
mod base58;
mod beside;
mod binary;
mod breaks;
mod called;
mod chopped;
mod columns;
mod controls;
mod cut;
mod declared;
mod defanged;
mod digits;
mod doubled;
mod dressed;
mod dumps;
mod figures;
mod flipped;
mod fold;
mod form;
mod gathered;
mod glued;
mod grid;
mod halves;
mod joined;
pub(crate) mod json;
mod labelled;
mod lines;
pub(crate) mod listed;
mod marked;
pub(crate) mod marks;
mod markup;
mod members;
mod mended;
mod mirrored;
pub(crate) mod misread;
mod named;
mod numeral;
mod office;
mod ordered;
pub(crate) mod outline;
mod packed;
mod padded;
mod parted;
mod pieces;
mod recited;
mod resumed;
mod run;
mod sentences;
pub(crate) mod series;
mod shards;
mod shifted;
mod signwise;
mod singles;
mod slashed;
mod solid;
mod spawner;
mod spoken;
mod streams;
pub(crate) mod strides;
pub(crate) mod strung;
mod turned;
mod variables;
mod wrapped;
mod written;

use crate::detect::Scratch;
use crate::text::{Cell, Node, Span, to_u32};
use crate::traces::Signs;
use crate::{Layer, OverBudget};

use around::{MARGIN_AFTER, MARGIN_BEFORE, child_around, margin_after, margin_before};
pub(crate) use around::{begin_cell, copy, label_before, on_char};
use around::{name_of, name_over, without_data_head};
pub(crate) use columns::is_measured;
pub(crate) use dressed::places as dressing;
pub(crate) use fold::bare_letter;
pub(crate) use spawner::{Spawner, is_reading};
pub(crate) use turned::{LEET_WORDS_MIN, goes_on_in_sign, may_spell_word, rot13};

/// Runs every decoder over the node. Each looks at the whole text first: most cells are short, and most texts hold
/// nothing that is encoded.
pub(crate) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let traces = &scratch.traces;
    // Most texts lack most of the signs that decoders begin with.
    let signs = traces.signs;
    // Of words without what dressed them up, only what reads words is of use: lists, tables, dumps and what goes on from value to value are
    // those of the text that they were taken out of.
    let whole = !node.only_patterns;
    if whole && signs.any(Signs::OPENING) {
        nested_json(node, spawn);
    }
    // No code is left where figures were read as letters.
    let codes = node.layer != Some(Layer::Leet);
    if codes {
        written::decode(node, traces, spawn);
        base::decode(node, scratch, spawn);
    }
    if whole {
        if codes && signs.any(Signs::EQUALS.or(Signs::SEMICOLON)) {
            padded::decode(node, spawn);
        }
        if signs.any(Signs::EQUALS) {
            form::decode(node, scratch, spawn);
        }
        if signs.any(Signs::BACKSLASH) {
            slashed::decode(node, spawn);
        }
        doubled::decode(node, spawn);
        if traces.strange {
            backwards::decode_overridden(node, spawn);
        }
    }
    if traces.strange || signs.any(Signs::STAR.or(Signs::CARET)) {
        pieces::decode(node, traces.strange, signs.any(Signs::CARET), spawn);
    }
    if whole {
        parted::decode(node, spawn);
    }
    breaks::decode(node, scratch, spawn);
    singles::decode(node, traces, spawn);
    let ends = Ends::of(&node.text, signs);
    glued::decode(node, scratch, &ends, spawn);
    if signs.any(Signs::LINE) {
        if whole {
            cut::decode(node, &ends, spawn);
        }
        wrapped::decode(node, &ends, spawn);
    }
    if whole {
        strides::decode(node, scratch, spawn);
        listed::decode(node, scratch, spawn);
        if signs.any(Signs::LINE) {
            grid::decode(node, traces, spawn);
        }
        dumps::decode(node, scratch, &ends, spawn);
        if traces.zeros || signs.any(Signs::MARK.or(Signs::OF_MARKS)) {
            marked::decode(node, spawn);
        }
    }
    if signs.any(Signs::LESS.or(Signs::DOLLAR)) {
        markup::decode(node, spawn);
    }
    if whole {
        told(node, scratch, spawn);
    }
    fold::decode(node, traces, spawn);
    controls::decode(node, traces, spawn);
    turned::decode(node, scratch, spawn);
    shifted::decode(node, scratch, spawn);
    flipped::decode(node, scratch, spawn);
    if whole {
        solid::decode(node, scratch, spawn);
        joined::decode(node, scratch, spawn);
        chopped::decode(node, spawn);
        labelled::decode(node, &ends, spawn);
        shards::decode(node, spawn);
        recited::decode(node, spawn);
        sentences::decode(node, scratch, spawn);
    }
    dressed::decode(node, scratch, spawn);
    mended::decode(node, scratch, spawn);
    strung::decode(node, scratch, spawn);
    if whole {
        numeral::decode(node, spawn);
        misread::decode(node, &scratch.misread, spawn);
    }
}

/// What elements and words of the text say how to read, and values in pieces.
fn told(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let (traces, marks) = (&scratch.traces, &scratch.marks);
    let signs = traces.signs;
    if signs.any(Signs::LESS) {
        office::decode(node, spawn);
    }
    if signs.any(Signs::STAR.or(Signs::BRACKET)) {
        markup::decode_stars(node, spawn);
    }
    if !marks.is_empty() {
        gathered::decode(node, marks, spawn);
        spoken::decode(node, marks, spawn);
        figures::decode(node, marks, spawn);
        backwards::decode(node, marks, spawn);
        halves::decode(node, marks, spawn);
        declared::decode(node, marks, spawn);
        called::decode(node, marks, spawn);
        ordered::decode(node, marks, spawn);
        signwise::decode(node, marks, spawn);
        resumed::decode(node, marks, spawn);
        beside::end_all(node, spawn);
    }
    if signs.any(Signs::BRACKET) || !marks.is_empty() {
        defanged::decode(node, marks, signs.any(Signs::BRACKET), spawn);
    }
    let joining = Signs::BRACE.or(Signs::DOLLAR).or(Signs::BACKSLASH);
    if !traces.joints.is_empty() || signs.any(joining) {
        variables::decode(node, &traces.joints, spawn);
    }
    series::decode(node, &scratch.counted, spawn);
}

/// Where the lines of a text end, for all decoders that go line by line.
struct Ends(Vec<u32>);

impl Ends {
    fn of(text: &[u8], signs: Signs) -> Self {
        if !signs.any(Signs::LINE) {
            return Self(Vec::new());
        }
        // Counted first, which takes less than to grow.
        let ends = memchr::memchr_iter(b'\n', text);
        let mut places = Vec::with_capacity(ends.clone().count());
        places.extend(ends.map(to_u32));
        Self(places)
    }

    /// Those within a piece of the text.
    fn within(&self, piece: Span) -> &[u32] {
        let from = self.0.partition_point(|end| *end < piece.start);
        let behind = &self.0[from..];
        &behind[..behind.partition_point(|end| *end < piece.end)]
    }
}

/// The longest rows of at least `least` cells of which each goes with the next.
pub(crate) fn rows_of(
    cells: &[Cell],
    least: usize,
    together: impl Fn(&Cell, &Cell) -> bool,
) -> impl Iterator<Item = &[Cell]> {
    let mut done = 0;
    // One of so many in a row is in each, and most are in none.
    let places = (least - 1..cells.len()).step_by(least);
    places.filter_map(move |at| {
        if at < done {
            return None;
        }
        let goes_on = |nth: usize| together(&cells[nth - 1], &cells[nth]);
        let start = (done + 1..=at).rev().take_while(|nth| goes_on(*nth)).last();
        let start = start.map_or(at, |nth| nth - 1);
        let end = (at + 1..cells.len()).find(|nth| !goes_on(*nth));
        done = end.unwrap_or(cells.len());
        (done - start >= least).then(|| &cells[start..done])
    })
}

/// The cells which hold one of `signs`, each once.
pub(crate) fn cells_with(node: &Node, signs: [u8; 3]) -> impl Iterator<Item = &Cell> {
    let (mut index, mut at) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            at += memchr::memchr3(signs[0], signs[1], signs[2], node.text.get(at..)?)?;
            match node.cell_from(at, &mut index) {
                Some(cell) => {
                    at = cell.span.end as usize;
                    if cell.span.len() >= 8 {
                        return Some(cell);
                    }
                }
                None => at += 1,
            }
        }
    })
}

fn nested_json(node: &Node, spawn: &mut Spawner<'_>) {
    for cell in cells_with(node, [b'{', b'[', b'{']) {
        let text = &node.text[cell.span.range()];
        if !json::looks_like(text) {
            embedded_json(node, cell, spawn);
            continue;
        }
        let Some(mut child) = spawn.begin(Layer::Json) else {
            return;
        };
        if json::walk(text, cell.span.start as usize, &mut child) {
            spawn.end(child);
        } else {
            spawn.drop(child);
        }
    }
}

/// JSON within other text is read as that text; only where values may be in pieces there, as values of their own, too.
fn embedded_json(node: &Node, cell: &Cell, spawn: &mut Spawner<'_>) {
    let (base, text) = (cell.span.start as usize, &node.text[cell.span.range()]);
    // Of one that breaks off, what is inside is looked at again: each byte as often as this together.
    let mut left = 4 * text.len();
    let mut at = 0;
    while let Some(n) = memchr::memchr2(b'{', b'[', &text[at..]) {
        at += n;
        let inside = text[at + 1..].trim_ascii_start();
        let begins = match text[at] {
            b'{' => inside.starts_with(b"\""),
            _ => matches!(inside.first(), Some(b'{' | b'[' | b'"')),
        };
        if !begins {
            at += 1;
            continue;
        }
        let mut read = spawn.free.pop().unwrap_or_default();
        read.clear();
        let walked = json::walk_first(&text[at..], base + at, &mut read);
        let is_worth =
            walked.is_ok() && (joined::may_be_in_pieces(&read) || grid::may_hold_lines(&read));
        if is_worth && let Some(mut child) = spawn.begin(Layer::Json) {
            child.text.append(&mut read.text);
            child.cells.append(&mut read.cells);
            child.segs.append(&mut read.segs);
            std::mem::swap(&mut child.layout, &mut read.layout);
            spawn.end(child);
        }
        spawn.drop(read);
        match walked {
            Ok(len) => at += len,
            Err((open, len)) => {
                at += open + 1;
                let Some(rest) = left.checked_sub(len) else {
                    spawn.over.get_or_insert(OverBudget::DecodedBytes);
                    return;
                };
                left = rest;
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::LeafKind;
    use crate::text::{CELL_END, Fresh, NO_LEAF, Span};

    type Child = (
        Layer,
        String,
        Box<dyn Fn(usize, usize) -> std::ops::Range<usize>>,
    );

    pub fn node_of(cells: &[(&str, &str)]) -> Node {
        let mut node = Node {
            depth: 0,
            ..Node::default()
        };
        let mut last = ("", Span::default());
        for (name, value) in cells {
            let start = node.text.len();
            if !name.is_empty() && last.0 != *name {
                node.text.extend_from_slice(name.as_bytes());
                last = (name, Span::new(start, node.text.len()));
                node.close_cell(start, Span::default(), LeafKind::Key, NO_LEAF);
            }
            let start = node.text.len();
            node.text.extend_from_slice(value.as_bytes());
            node.close_cell(start, last.1, LeafKind::String, 0);
        }
        node
    }

    pub fn children_in(node: Node, room: u32) -> (Vec<Node>, Option<OverBudget>) {
        let (mut nodes, mut free, mut left, mut over) = (Vec::new(), Vec::new(), room, None);
        let mut spawn = Spawner {
            nodes: &mut nodes,
            free: &mut free,
            bytes_left: &mut left,
            depth_max: 6,
            over: &mut over,
            parent: 0,
            parent_depth: 0,
            layers_above: [None; 2],
            parent_coded: 0,
            parent_only_injection: false,
            parent_only_sure: false,
            parent_turned: false,
            parent_fragments: false,
            parent_is_reading: false,
            parent_fresh: Fresh::default(),
            parent_made: &[],
            parent_blobs: &[],
            parent_noise: &[],
            shared: Vec::new(),
        };
        let mut scratch = Scratch::default();
        crate::detect::note_traces(&node, &mut scratch);
        decode(&node, &scratch, &mut spawn);
        (nodes, over)
    }

    pub(crate) fn show(nodes: Vec<Node>) -> Vec<Child> {
        nodes
            .into_iter()
            .map(|mut n| {
                let end = n.text.len() - usize::from(n.text.last() == Some(&CELL_END));
                n.text.truncate(end);
                let text = String::from_utf8(n.text.clone()).unwrap();
                let layer = n.layer.unwrap();
                let map = move |a, b| {
                    let parts = n.to_parent(Span::new(a, b));
                    parts[0].start as usize..parts[parts.len() - 1].end as usize
                };
                (layer, text, Box::new(map) as _)
            })
            .collect()
    }

    /// The children of one unnamed cell.
    pub(crate) fn children(text: &str) -> Vec<Child> {
        let mut node = Node::default();
        node.text.extend_from_slice(text.as_bytes());
        node.cells.push(Cell {
            span: Span::new(0, text.len()),
            name: Span::default(),
            kind: LeafKind::String,
            leaf: 0,
        });
        // What a message of that length may make of it.
        let room = u32::try_from(32 * text.len()).unwrap().max(1 << 20);
        show(children_in(node, room).0)
    }

    /// The first child of the layer holds this; or there is none.
    pub(crate) fn assert_child(text: &str, layer: Layer, want: Option<&str>) {
        let found = children(text);
        let child = found.iter().find(|(of, ..)| *of == layer);
        match want {
            Some(want) => assert!(child.is_some_and(|c| c.1.contains(want)), "{text}"),
            None => assert!(child.is_none(), "{text}"),
        }
    }

    /// Many of it take no more than the room there is, and that is said.
    pub(crate) fn assert_bounded(piece: &str) {
        let (nodes, over) = run(&piece.repeat(2000), 10_000);
        assert!(nodes.iter().map(|n| n.text.len()).sum::<usize>() <= 10_000);
        assert!(over.is_some());
    }

    pub(crate) fn children_of(cells: &[(&str, &str)]) -> Vec<Child> {
        show(children_in(node_of(cells), 1 << 20).0)
    }

    pub(crate) fn run(text: &str, room: u32) -> (Vec<Node>, Option<OverBudget>) {
        children_in(node_of(&[("", text)]), room)
    }
}
