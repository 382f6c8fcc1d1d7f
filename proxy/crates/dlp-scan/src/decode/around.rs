//! What comes along with a decoded piece: the name or label that says what it is, and a little of the text before and
//! after it.

use smallvec::SmallVec;

use super::Spawner;
use crate::names::{self, Promise};
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::{Layer, LeafKind};

/// Bytes of the surrounding text that come along.
pub(super) const MARGIN_BEFORE: usize = 48;
pub(super) const MARGIN_AFTER: usize = 128;

/// The name over a value that is written as code: its cell's, or the head of its column, which stands too far away to
/// come along with the text around the value.
pub(super) fn name_over(node: &Node, cell: &Cell, at: usize) -> Span {
    match cell.name.is_empty() {
        true => crate::detect::head_over(&node.text, at, cell).unwrap_or_default(),
        false => name_of(node, cell),
    }
}

/// The name that says what a value is.
pub(super) fn name_of(node: &Node, cell: &Cell) -> Span {
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
            | b"answer"
            | b"a"
            | b"v"
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
        b"label"
            | b"name"
            | b"key"
            | b"field"
            | b"title"
            | b"question"
            | b"header"
            | b"attribute"
            | b"q"
            | b"n"
            | b"k"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::json;
    use crate::decode::tests::{children, children_in, show};

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
}
