//! From a node to the nodes that are hidden in it. Each decoder looks for its own traces, cheaply, and makes a child
//! of the piece around them: a little of the text before and after comes along, so that names and words which give a
//! value its meaning stay beside it.

mod archive;
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
mod dressed;
mod dumps;
mod figures;
mod flipped;
mod fold;
mod gathered;
mod grid;
mod joined;
pub(crate) mod json;
pub(crate) mod listed;
mod marked;
pub(crate) mod marks;
mod markup;
mod mirrored;
pub(crate) mod misread;
mod named;
mod numeral;
pub(crate) mod outline;
mod packed;
mod padded;
mod pieces;
mod recited;
mod resumed;
mod run;
mod sentences;
pub(crate) mod series;
mod shards;
mod shifted;
mod solid;
mod spoken;
mod streams;
pub(crate) mod strides;
pub(crate) mod strung;
mod turned;
mod variables;
mod written;

use smallvec::SmallVec;

use crate::detect::Scratch;
use crate::names::{self, Promise};
use crate::text::{Cell, Fresh, How, NO_LEAF, Node, Parent, Span};
use crate::traces::Signs;
use crate::{Layer, LeafKind, OverBudget};

pub(crate) use dressed::places as dressing;
pub(crate) use fold::bare_letter;
pub(crate) use turned::{LEET_WORDS_MIN, rot13};

/// Bytes of the surrounding text that come along.
const MARGIN_BEFORE: usize = 48;
const MARGIN_AFTER: usize = 128;

/// Makes children, within the budget.
pub(crate) struct Spawner<'a> {
    pub nodes: &'a mut Vec<Node>,
    pub free: &'a mut Vec<Node>,
    pub bytes_left: &'a mut u32,
    pub depth_max: u8,
    pub over: &'a mut Option<OverBudget>,
    pub parent: u32,
    pub parent_depth: u8,
    pub parent_only_injection: bool,
    pub parent_only_sure: bool,
    pub parent_turned: bool,
    pub parent_fresh: Fresh,
    /// Where the parent's calls were replaced.
    pub parent_made: &'a [Span],
    /// The children that calls beside each other share, as long as they may go on.
    pub shared: Vec<beside::Shared>,
}

impl Spawner<'_> {
    /// An empty child, or nothing if the depth is used up.
    pub fn begin(&mut self, layer: Layer) -> Option<Node> {
        if self.is_deepest() {
            self.over.get_or_insert(OverBudget::Depth);
            return None;
        }
        let mut node = self.free.pop().unwrap_or_default();
        node.clear();
        node.parent = Parent::Node(self.parent);
        node.layer = Some(layer);
        node.depth = self.parent_depth + 1;
        node.only_injection = self.parent_only_injection;
        node.only_sure = self.parent_only_sure;
        node.turned =
            self.parent_turned || matches!(layer, Layer::Reversed | Layer::Rot13 | Layer::Leet);
        Some(node)
    }

    /// Puts a child to the others, if it holds something new and its bytes can be afforded. What was made only of
    /// the parent's surroundings has been made of its parent, too: without that rule, neighbours that are encoded in
    /// different ways would be decoded again in every order.
    pub fn end(&mut self, mut node: Node) {
        let made_of = node.find_fresh();
        if !self.is_new(made_of, Fresh::touches) {
            self.free.push(node);
            return;
        }
        let cost = crate::text::to_u32(node.text.len());
        match self.bytes_left.checked_sub(cost) {
            Some(left) if !node.cells.is_empty() => {
                *self.bytes_left = left;
                self.nodes.push(node);
            }
            Some(_) => self.free.push(node),
            None => {
                self.over.get_or_insert(OverBudget::DecodedBytes);
                self.free.push(node);
            }
        }
    }

    /// Is a piece of the parent together with anything that the parent's decoder made?
    fn is_new(&self, piece: Span, together: impl Fn(Fresh, Span) -> bool) -> bool {
        if self.parent_made.is_empty() {
            return together(self.parent_fresh, piece);
        }
        let before = |made: &Span| made.end < piece.start;
        let near = &self.parent_made[self.parent_made.partition_point(before)..];
        let mut near = near.iter().take_while(|made| made.start <= piece.end);
        near.any(|made| together(Fresh::from(*made), piece))
    }

    pub fn drop(&mut self, node: Node) {
        self.free.push(node);
    }

    /// How many layers may lie under the one that is made.
    pub fn layers_left(&self) -> u8 {
        self.depth_max.saturating_sub(self.parent_depth + 1)
    }

    /// Is there no layer left for a child?
    pub fn is_deepest(&self) -> bool {
        self.parent_depth >= self.depth_max
    }

    /// Pays for what was unpacked in vain: with half of what is left, so that many such pieces together cost no more than
    /// one, and something is left for others.
    pub fn waste(&mut self) {
        *self.bytes_left /= 2;
    }

    /// Pays for what was unpacked and is no text.
    pub fn pay(&mut self, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        *self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// How much a decoder may produce at most.
    pub fn room(&self) -> usize {
        *self.bytes_left as usize
    }
}

/// The name over a value that is written as code: its cell's, or the head of its column, which stands too far away to
/// come along with the text around the value.
fn name_over(node: &Node, cell: &Cell, at: usize) -> Span {
    match cell.name.is_empty() {
        true => crate::detect::head_over(&node.text, at, cell).unwrap_or_default(),
        false => name_of(node, cell),
    }
}

/// The name that says what a value is.
fn name_of(node: &Node, cell: &Cell) -> Span {
    told_over(node, cell).unwrap_or(cell.name)
}

/// `{"label": "IBAN", "value": "..."}`, `{"iban": {"type": "string", "default": "..."}}`: what a member that is called after no
/// meaning is told to be by one of the same object, or by the name of that. Of several the one says it that promises a
/// secret, else the nearest.
fn told_over(node: &Node, cell: &Cell) -> Option<Span> {
    let called = |name: Span| &node.text[name.range()];
    if !matches!(
        called(cell.name),
        b"value"
            | b"default"
            | b"data"
            | b"content"
            | b"text"
            | b"example"
            | b"const"
            | b"val"
            | b"formula"
    ) {
        return None;
    }
    let index = node
        .cells
        .partition_point(|c| c.span.start < cell.span.start);
    let Some(object) = node.layout.object_of(index) else {
        return told_before(node, index);
    };
    let before = (index.saturating_sub(LABEL_CELLS_MAX)..index).rev();
    let after = index + 1..(index + 1 + LABEL_CELLS_MAX).min(node.cells.len());
    let mut kinds: SmallVec<[&[u8]; 4]> = SmallVec::new();
    let mut told: Option<Span> = None;
    let promises = |name: Span| names::promise(called(name)) > Promise::Nothing;
    for nth in before.chain(after) {
        let c = &node.cells[nth];
        let of = called(c.name);
        // Of one kind the nearest counts: rows of a table have one each.
        if c.kind != LeafKind::String
            || !is_label(of)
            || kinds.contains(&of)
            || node.layout.object_of(nth) != Some(object)
        {
            continue;
        }
        if promises(c.span) {
            return Some(c.span);
        }
        kinds.push(of);
        told = told.or(Some(c.span));
    }
    let own = Some(node.layout.name_of(object)).filter(|name| !name.is_empty());
    own.filter(|own| promises(*own)).or(told).or(own)
}

/// How many cells a label may be away on either side of its value.
const LABEL_CELLS_MAX: usize = 64;

/// Does a member of this name say what another is?
fn is_label(name: &[u8]) -> bool {
    matches!(
        name,
        b"label" | b"name" | b"key" | b"field" | b"title" | b"question" | b"header" | b"attribute"
    )
}

/// The same where cells are all that is known: flags and short numbers have none, so a key right before another may name an
/// object or may be one of those.
fn told_before(node: &Node, index: usize) -> Option<Span> {
    const CELLS_BACK_MAX: usize = 8;
    let called = |name: Span| &node.text[name.range()];
    let before = &node.cells[index.saturating_sub(CELLS_BACK_MAX)..index];
    for (nth, c) in before.iter().enumerate().rev() {
        if c.kind == LeafKind::String && is_label(called(c.name)) {
            return Some(c.span);
        }
        let inner = before.get(nth + 1);
        if c.kind == LeafKind::Key
            && inner.is_some_and(|inner| inner.kind == LeafKind::Key)
            && !names_flag(called(c.span))
        {
            return Some(c.span);
        }
    }
    None
}

/// Is it a name of a member that is true or false in nearly all messages?
fn names_flag(name: &[u8]) -> bool {
    matches!(
        name,
        b"required"
            | b"optional"
            | b"nullable"
            | b"readOnly"
            | b"writeOnly"
            | b"readonly"
            | b"sensitive"
            | b"hidden"
            | b"masked"
            | b"encrypted"
            | b"deprecated"
            | b"enabled"
            | b"disabled"
            | b"unique"
    )
}

/// Starts a child's text with the name over its cell, so that the name still speaks for the value.
pub(crate) fn begin_cell(child: &mut Node, parent: &Node, name: Span) -> Span {
    if name.is_empty() || name.len() > 64 {
        return Span::default();
    }
    let start = child.text.len();
    child.text.extend_from_slice(&parent.text[name.range()]);
    let span = Span::new(start, child.text.len());
    child.close_cell(start, Span::default(), LeafKind::Key, NO_LEAF);
    span
}

/// Copies a piece of the parent as it is.
pub(crate) fn copy(child: &mut Node, parent: &Node, from: usize, to: usize) {
    if from < to {
        child.push(&parent.text[from..to], Span::new(from, to), How::Copy);
    }
}

/// The first beginning of a character from `at` on, no further than `ceil`.
pub(crate) fn on_char(text: &[u8], mut at: usize, ceil: usize) -> usize {
    while at < ceil && text[at] & 0xC0 == 0x80 {
        at += 1;
    }
    at
}

/// Up to [`MARGIN_BEFORE`] bytes before `at`, on a character's boundary. A line that begins a little earlier comes along from there:
/// its first words say what the rest is (`public key: ...`).
pub(crate) fn margin_before(text: &[u8], at: usize, floor: usize) -> usize {
    const LINE_BYTES: usize = 32;
    let mut from = at.saturating_sub(MARGIN_BEFORE).max(floor);
    let earlier = &text[from.saturating_sub(LINE_BYTES).max(floor)..from];
    match memchr::memrchr(b'\n', earlier) {
        Some(line) => from -= earlier.len() - line - 1,
        None if from - floor == earlier.len() => from = floor,
        None => {}
    }
    while from < at && text[from] & 0xC0 == 0x80 {
        from += 1;
    }
    from
}

/// Up to [`MARGIN_AFTER`] bytes after `at`, on a character's boundary.
pub(crate) fn margin_after(text: &[u8], at: usize, ceil: usize) -> usize {
    let mut to = (at + MARGIN_AFTER).min(ceil);
    while to > at && to < ceil && text[to] & 0xC0 == 0x80 {
        to -= 1;
    }
    to
}

/// How far before a value written as code the name stands that it is given to.
const LABEL_REACH: usize = 96;
/// Longest piece of code between that name and the value: `String::from_utf8(vec![`.
const WRAPPER_BYTES_MAX: usize = 48;

/// In `NAME = bytes([103, 104])`: where the name ends, and what to write between it and the plain value, so that the
/// calls and brackets around the code are no part of it. `at` is where the code begins. Without a name it is `at`.
pub(crate) fn label_before(text: &[u8], cell: &Cell, at: usize) -> (usize, &'static [u8]) {
    let floor = at.saturating_sub(LABEL_REACH).max(cell.span.start as usize);
    let line = memchr::memrchr(b'\n', &text[floor..at]).map_or(floor, |n| floor + n + 1);
    // What stands before the end of a template's statement is given there.
    let line = memchr::memmem::rfind(&text[line..at], b"%}").map_or(line, |n| line + n + 2);
    let before = without_data_head(&text[line..at]);
    let single = |i: &usize| {
        let colon = |i: usize| before.get(i) == Some(&b':');
        before[*i] != b':' || !(colon(i + 1) || *i > 0 && colon(i - 1))
    };
    let last = |sign: u8| memchr::memrchr_iter(sign, before).find(single);
    let (sign, written): (usize, &[u8]) = match (last(b'='), last(b':'), last(b',')) {
        (Some(equals), ..) => (equals, b" = "),
        (None, Some(colon), comma) if comma.is_none_or(|c| c < colon) => (colon, b": "),
        // What is told in a sentence is in no field.
        // Nor does a comma between what a call is given part fields: `map(chr, [`.
        (None, _, Some(comma))
            if !before[comma + 1..].trim_ascii().contains(&b' ')
                && !opens_call(&before[..comma]) =>
        {
            (comma, b", ")
        }
        // `kt. CHAR(48, 52)`: the name of the call is no part of the value, either.
        _ => return (call_start(&text[..at], line), b" "),
    };
    // `=CONCATENATE("`: the formula of a cell, whose name stands over it.
    if before[..sign].trim_ascii().is_empty() && line == cell.span.start as usize {
        return (line, b" ");
    }
    if before.len() < at - line && before[sign + 1..].trim_ascii().is_empty() {
        return (line + before[..sign].trim_ascii_end().len(), written);
    }
    let wrapper = before[sign + 1..].trim_ascii();
    let called = matches!(
        wrapper.last(),
        Some(b'(' | b'[' | b'{' | b'<' | b'"' | b'\'')
    );
    if wrapper.len() > WRAPPER_BYTES_MAX || !called && !wrapper.is_empty() {
        return (at, b" ");
    }
    // `name[] =`, `name[12] =`, `name :=`, `name +=`
    let mut name = before[..sign].trim_ascii_end();
    if written == b" = " {
        let signs = |b: &u8| b":;,+?".contains(b);
        let len = name.iter().rposition(|b| !signs(b)).map_or(0, |n| n + 1);
        name = name[..len].trim_ascii_end();
    }
    if name.ends_with(b"]")
        && let Some(open) = memchr::memrchr(b'[', name).filter(|open| name.len() - open < 8)
    {
        name = &name[..open];
    }
    (line + name.len(), written)
}

/// Is a bracket open at the end of the text?
fn opens_call(text: &[u8]) -> bool {
    let count = |sign: u8| memchr::memchr_iter(sign, text).count();
    count(b'(') > count(b')')
}

/// Where the name of a call begins that ends with the bracket which opens it, or the end of the text.
fn call_start(text: &[u8], floor: usize) -> usize {
    let of_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    let Some(called) = text[floor..].strip_suffix(b"(") else {
        return text.len();
    };
    let name = called.iter().rev().take(WRAPPER_BYTES_MAX);
    floor + called.len() - name.take_while(of_name).count()
}

/// What stands before `data:text/plain;base64,`, where a text ends with that.
/// The same for `!!binary |` and `-----BEGIN DATA-----`.
pub(crate) fn without_data_head(before: &[u8]) -> &[u8] {
    const HEAD_BYTES_MAX: usize = 64;
    let tail = before.len().saturating_sub(HEAD_BYTES_MAX);
    let trimmed = before.trim_ascii_end();
    if trimmed.ends_with(b"-----") {
        let head = memchr::memmem::rfind(&trimmed[tail.min(trimmed.len())..], b"-----BEGIN");
        return head.map_or(before, |head| &before[..tail + head]);
    }
    if let Some(tagged) = trimmed.strip_suffix(b"|") {
        let tagged = tagged.trim_ascii_end();
        return tagged.strip_suffix(b"!!binary").unwrap_or(before);
    }
    let head = before
        .ends_with(b",")
        .then(|| memchr::memmem::rfind(&before[tail..], b"data:"))
        .flatten()
        .filter(|head| {
            let mime = |b: &u8| b.is_ascii_alphanumeric() || b"/;=.+-:,".contains(b);
            before[tail + head..].iter().all(mime)
        });
    head.map_or(before, |head| &before[..tail + head])
}

/// A child made of `from..to`, with a little of the text around it, by whatever `fill` puts in.
pub(crate) fn child_around(
    node: &Node,
    cell: &Cell,
    layer: Layer,
    (from, to): (usize, usize),
    spawn: &mut Spawner<'_>,
    fill: impl FnOnce(&mut Node),
) {
    let Some(mut child) = spawn.begin(layer) else {
        return;
    };
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let name = begin_cell(&mut child, node, name_over(node, cell, from));
    let start = child.text.len();
    let margin = margin_before(&node.text, from, floor);
    let before = without_data_head(&node.text[margin..from]);
    copy(&mut child, node, margin, margin + before.len());
    fill(&mut child);
    copy(&mut child, node, to, margin_after(&node.text, to, ceil));
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
}

/// Runs every decoder over the node. Each looks at the whole text first: most cells are short, and most texts hold
/// nothing that is encoded.
pub(crate) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let traces = &scratch.traces;
    // Most texts lack most of the signs that decoders begin with.
    let signs = traces.signs;
    if signs.any(Signs::OPENING) {
        nested_json(node, spawn);
    }
    written::decode(node, traces, spawn);
    base::decode(node, scratch, spawn);
    if signs.any(Signs::EQUALS.or(Signs::SEMICOLON)) {
        padded::decode(node, spawn);
    }
    if traces.strange || signs.any(Signs::STAR.or(Signs::CARET)) {
        pieces::decode(node, traces.strange, signs.any(Signs::CARET), spawn);
    }
    breaks::decode(node, scratch, spawn);
    if signs.any(Signs::LINE) {
        cut::decode(node, spawn);
    }
    strides::decode(node, scratch, spawn);
    listed::decode(node, scratch, spawn);
    if signs.any(Signs::LINE) {
        grid::decode(node, traces, spawn);
    }
    dumps::decode(node, scratch, spawn);
    if traces.zeros || signs.any(Signs::MARK.or(Signs::OF_MARKS)) {
        marked::decode(node, spawn);
    }
    if signs.any(Signs::LESS.or(Signs::DOLLAR)) {
        markup::decode(node, spawn);
    }
    if signs.any(Signs::STAR) {
        markup::decode_stars(node, spawn);
    }
    if !scratch.marks.is_empty() {
        gathered::decode(node, &scratch.marks, spawn);
        spoken::decode(node, &scratch.marks, spawn);
        figures::decode(node, &scratch.marks, spawn);
        backwards::decode(node, &scratch.marks, spawn);
        declared::decode(node, &scratch.marks, spawn);
        called::decode(node, &scratch.marks, spawn);
        resumed::decode(node, &scratch.marks, spawn);
        beside::end_all(node, spawn);
    }
    if signs.any(Signs::BRACKET) || !scratch.marks.is_empty() {
        defanged::decode(node, &scratch.marks, signs.any(Signs::BRACKET), spawn);
    }
    let joining = Signs::BRACE.or(Signs::DOLLAR).or(Signs::BACKSLASH);
    if !traces.joints.is_empty() || signs.any(joining) {
        variables::decode(node, &traces.joints, spawn);
    }
    series::decode(node, &scratch.counted, spawn);
    fold::decode(node, traces, spawn);
    controls::decode(node, traces, spawn);
    turned::decode(node, scratch, spawn);
    shifted::decode(node, scratch, spawn);
    flipped::decode(node, scratch, spawn);
    solid::decode(node, scratch, spawn);
    joined::decode(node, scratch, spawn);
    chopped::decode(node, spawn);
    shards::decode(node, spawn);
    recited::decode(node, spawn);
    sentences::decode(node, scratch, spawn);
    dressed::decode(node, scratch, spawn);
    strung::decode(node, scratch, spawn);
    numeral::decode(node, spawn);
    misread::decode(node, &scratch.misread, spawn);
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
    use crate::text::CELL_END;

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
            parent_only_injection: false,
            parent_only_sure: false,
            parent_turned: false,
            parent_fresh: Fresh::default(),
            parent_made: &[],
            shared: Vec::new(),
        };
        let mut scratch = Scratch::default();
        crate::detect::note_traces(&node, &mut scratch);
        decode(&node, &scratch, &mut spawn);
        (nodes, over)
    }

    fn show(nodes: Vec<Node>) -> Vec<Child> {
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
        show(children_in(node, 1 << 20).0)
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

    #[test]
    fn the_head_of_a_column_comes_along() {
        let far = "x".repeat(60);
        let text = format!("id,note,patient no\n1,{far},MTc4OTM3OTk=");
        let found = children(&text)
            .into_iter()
            .find(|(l, ..)| *l == Layer::Base64);
        let child = found.expect("a child").1;
        assert!(
            child.starts_with("patient no") && child.contains("17893799"),
            "{child}"
        );
    }

    #[test]
    fn the_label_beside_a_value_comes_along() {
        let coded = "NDUzOSA1Nzg3IDYzNjIgMTQ4Ng==";
        for text in [
            format!(r#"{{"label": "patient no", "value": "{coded}"}}"#),
            format!(r#"{{"patient no": {{"type": "string", "default": "{coded}"}}}}"#),
        ] {
            let mut node = Node::default();
            assert!(json::walk(text.as_bytes(), 0, &mut node));
            let found = show(children_in(node, 1 << 20).0).into_iter();
            let told = found.filter(|(layer, ..)| *layer == Layer::Base64);
            let texts: Vec<_> = told.map(|c| c.1).collect();
            assert!(texts.iter().any(|t| t.contains("patient no")), "{texts:?}");
        }
    }

    #[test]
    fn labels_speak_in_their_own_object() {
        let told = |text: &str| {
            let mut node = Node::default();
            assert!(json::walk(text.as_bytes(), 0, &mut node));
            let of = |span: Span| String::from_utf8(node.text[span.range()].to_vec()).unwrap();
            let value = node.cells.iter().find(|c| of(c.span) == "X").unwrap();
            of(name_of(&node, value))
        };
        for (text, want) in [
            (r#"{"secret": false, "value": "X"}"#, "value"),
            (r#"{"iban": {"required": true, "default": "X"}}"#, "iban"),
            (
                r#"{"name": "generate_password", "arguments": {"text": "X"}}"#,
                "arguments",
            ),
            (
                r#"{"name": "db_password", "title": "Database", "value": "X"}"#,
                "db_password",
            ),
            (r#"{"value": "X", "label": "patient no"}"#, "patient no"),
            (
                r#"{"label": "IBAN", "a": {"b": null}, "value": "X"}"#,
                "IBAN",
            ),
            (
                r#"[{"label": "password", "value": "a"}, {"label": "note", "value": "X"}]"#,
                "note",
            ),
            (
                r#"{"columns": ["label", "value"], "rows": [["password", "a"], ["note", "X"]]}"#,
                "note",
            ),
        ] {
            assert_eq!(told(text), want, "{text}");
        }
    }

    pub(crate) fn run(text: &str, room: u32) -> (Vec<Node>, Option<OverBudget>) {
        children_in(node_of(&[("", text)]), room)
    }
}
