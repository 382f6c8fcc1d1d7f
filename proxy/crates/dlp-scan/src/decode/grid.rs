//! Tables in text: what stands in a row gets the name of its column. Columns are kept apart by blanks (`kubectl get`, a data frame
//! in a notebook), by the lines of a frame (`│`, `|` under `+---+`), by signs of a wiki (`||User||`, `^ User ^`), or by one sign between
//! all fields where the head is not the first line of its text; those with their head in the first line are read where
//! they stand (`detect/context.rs`, `detect/assign/tables.rs`).

use std::cell::LazyCell;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use smallvec::SmallVec;

use super::columns::{is_head, is_measured, may_head};
use super::{Spawner, copy, rows_of};
use crate::layout::Field;
use crate::names::{self, Promise};
use crate::text::{Cell, NO_LEAF, Node, Span, to_u32};
use crate::traces::{BLOCK, Traces};
use crate::{Layer, LeafKind};

/// Longer lines are no rows that anybody reads, and most columns.
const LINE_BYTES_MAX: usize = 4 * 1024;
const COLUMNS_MAX: usize = 64;
/// A table with a name over one column only is a list.
const HEADS_MIN: usize = 2;
/// A table takes no more than this part of what decoding may still produce: what is longer is no attack, and its other rows are
/// looked at where they stand.
const ROOM_SHARE: usize = 4;
/// A list of lines has at least a head and a row.
const LINES_MIN: usize = 2;
/// Fewer bytes hold no head and row.
const TABLE_BYTES_MIN: usize = 16;

/// The fields of a line, or the heads.
type Fields = SmallVec<[Span; 12]>;

/// From which column of a screen to which each head is shown.
type Columns = SmallVec<[(usize, usize); 12]>;

/// What keeps the columns apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// Two blanks and more.
    Blanks,
    /// One sign; a frame has it at both ends, too.
    Sign(u8),
    /// A line of a frame, by the last two bytes of its three.
    Frame([u8; 2]),
    /// Heads by another sign than rows: `||User||`, `^ User ^`.
    Wiki(u8),
}

/// `│`, `┃`, `║`, `｜`.
const FRAMES: [[u8; 3]; 4] = [
    *b"\xE2\x94\x82",
    *b"\xE2\x94\x83",
    *b"\xE2\x95\x91",
    *b"\xEF\xBD\x9C",
];

/// What parts columns of [`Between::Blanks`], but for a tab.
static BLANKS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"  "));
/// The end of a value that is a line.
static LINE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\n\x1F"));

pub(super) fn decode(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    let mut cuts = Cuts {
        text: &node.text,
        places: &traces.cuts,
    };
    let (mut index, mut at) = (0, 0);
    loop {
        cuts.pass(at);
        let Some(cut) = cuts.places.first() else {
            break;
        };
        // Of a block only the first place is known: a later cell may have one, too.
        let from = at.max(*cut as usize);
        at = from + 1;
        let Some(cell) = node.cell_from(from, &mut index) else {
            continue;
        };
        at = at.max(cell.span.end as usize);
        let text = &node.text[cell.span.range()];
        if text.len() >= TABLE_BYTES_MIN && memchr::memchr(b'\n', text).is_some() {
            read(node, Lines::of(&node.text, cell), &mut cuts, spawn);
        }
    }
    if LINE.find(&node.text).is_some() {
        for cells in lines_in(node) {
            read(node, Lines::Cells(cells), &mut cuts, spawn);
        }
    }
}

/// Where columns may be parted in a text: lines without that, and no such line after them, are not looked at.
struct Cuts<'t> {
    text: &'t [u8],
    /// The first of each block.
    places: &'t [u32],
}

impl Cuts<'_> {
    /// What lies before this is done with.
    fn pass(&mut self, upto: usize) {
        let done = |at: &&u32| (**at as usize / BLOCK + 1) * BLOCK <= upto;
        let done = self.places.iter().take_while(done).count();
        self.places = &self.places[done..];
    }

    /// The line before the next with a cut, no sooner than `from`.
    fn next_line(&mut self, from: usize) -> Option<usize> {
        self.pass(from);
        let at = *self.places.first()? as usize;
        let start = |upto: usize| {
            let before = self.text.get(from..upto)?;
            memchr::memrchr(b'\n', before).map(|n| from + n + 1)
        };
        let line = start(at).unwrap_or(from);
        Some(start(line.saturating_sub(1)).unwrap_or(from))
    }
}

/// Lists of lines, each a value of its own that ends with its line, as notebooks keep them. The last may have no end.
fn lines_in(node: &Node) -> impl Iterator<Item = &[Cell]> {
    let line = |c: &Cell| {
        let text = &node.text[c.span.range()];
        let end = text.len().checked_sub(1);
        c.kind == LeafKind::String
            && c.leaf != NO_LEAF
            && end.is_some()
            && memchr::memchr(b'\n', text) == end
    };
    let same = move |a: &Cell, b: &Cell| {
        b.kind == LeafKind::String && line(a) && node.layout.are_together(a, b)
    };
    rows_of(&node.cells, LINES_MIN, same)
}

/// May a piece of JSON within other text hold a table as a list of lines?
pub(super) fn may_hold_lines(node: &Node) -> bool {
    if LINE.find(&node.text).is_none() {
        return false;
    }
    let drawn = |c: &Cell| BLANKS.find(&node.text[c.span.range()]).is_some();
    lines_in(node).any(|lines| drawn(&lines[0]))
}

/// Lines one after another.
#[derive(Clone, Copy)]
enum Lines<'t> {
    /// Of a text that begins at `base`.
    Text {
        text: &'t [u8],
        base: usize,
        at: usize,
    },
    /// Each a cell of its own.
    Cells(&'t [Cell]),
}

impl<'t> Lines<'t> {
    fn of(text: &'t [u8], cell: &Cell) -> Self {
        Self::Text {
            text: &text[cell.span.range()],
            base: cell.span.start as usize,
            at: 0,
        }
    }

    /// Goes on to the line before the next that may be cut, or says that there is none.
    fn skip_to(&mut self, cuts: &mut Cuts<'_>) -> bool {
        let Self::Text { text, base, at } = self else {
            return true;
        };
        match cuts.next_line(*base + *at) {
            Some(line) if line < *base + text.len() => {
                *at = line - *base;
                true
            }
            _ => false,
        }
    }

    /// Is the next line the first of a text?
    fn is_first(&self) -> bool {
        matches!(self, Self::Text { at: 0, .. })
    }
}

impl Iterator for Lines<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        match self {
            Self::Text { text, base, at } => {
                let rest = text.get(*at..).filter(|rest| !rest.is_empty())?;
                let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let start = *base + *at;
                *at += len + 1;
                Some(Span::new(start, start + len))
            }
            Self::Cells(cells) => {
                let (first, rest) = cells.split_first()?;
                *cells = rest;
                Some(first.span)
            }
        }
    }
}

/// The tables of some lines, each line once: a table that ends is not begun again within.
fn read(node: &Node, mut lines: Lines<'_>, cuts: &mut Cuts<'_>, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    while lines.skip_to(cuts) {
        let first = lines.is_first();
        let Some(line) = lines.next() else {
            return;
        };
        let head = text[line.range()].trim_ascii();
        let begins = |b: &u8| b.is_ascii_alphanumeric() || *b >= 0x80 || b"|^!\"`*_#%".contains(b);
        if !(6..=LINE_BYTES_MAX).contains(&head.len())
            || !head.first().is_some_and(begins)
            || is_rule(head)
        {
            continue;
        }
        if let Some(table) = Table::begin(text, line, lines, first) {
            lines = table.emit(node, lines, spawn);
        }
    }
}

fn count(line: &[u8], sign: u8) -> usize {
    memchr::memchr_iter(sign, line).count()
}

/// Lines and corners of a frame, and nothing else: `|---|`, `+----+`, `==== ===`, `├──┼──┤`.
fn is_rule(line: &[u8]) -> bool {
    if line.first().is_none_or(u8::is_ascii_alphanumeric) {
        return false;
    }
    let line = line.trim_ascii();
    let drawn = |b: &[u8]| b[0] == 0xE2 && matches!(b[1], 0x94 | 0x95);
    let ascii = |b: &u8| b"-=+|: *_~".contains(b);
    match line.first() {
        None => false,
        Some(b'|') if line.starts_with(b"|-") && !line.contains(&b' ') => true,
        Some(0xE2) => {
            line.chunks_exact(3).all(|c| drawn(c) || c == FRAMES[0])
                && line.len().is_multiple_of(3)
                && line.len() >= 9
        }
        Some(_) => {
            line.len() >= 3
                && line.iter().all(ascii)
                && line.iter().filter(|b| b"-=_~".contains(b)).count() * 2 >= line.len() / 2
        }
    }
}

struct Table {
    between: Between,
    head: Span,
    heads: Fields,
    /// What stands under the name of a secret is read without it.
    read: bool,
}

impl Table {
    /// The line is the head of a table: it names columns, and the line after it has as many.
    fn begin(text: &[u8], line: Span, mut after: Lines<'_>, first: bool) -> Option<Self> {
        let head = &text[line.range()];
        let mut below = None;
        let next = loop {
            let next = after.next()?;
            if !is_rule(&text[next.range()]) {
                break next;
            }
            if next.len() > LINE_BYTES_MAX {
                return None;
            }
            below = Some(next);
        };
        let row = &text[next.range()];
        if row.len() > LINE_BYTES_MAX {
            return None;
        }
        let lines = memchr::memchr2_iter(0xE2, 0xEF, head);
        let mut drawn = lines.filter_map(|at| head[at..].first_chunk());
        let frame = drawn.find(|sign| FRAMES.contains(sign));
        let same = |sign: u8, least: usize| {
            let n = count(head, sign);
            n >= least && count(row, sign) == n
        };
        let (bare, below_it) = (head.trim_ascii(), row.trim_ascii());
        let wiki = |signs: &[u8]| bare.starts_with(signs) && below_it.starts_with(b"|");
        let between = if let Some([_, a, b]) = frame {
            Between::Frame([*a, *b])
        } else if wiki(b"||") {
            Between::Wiki(b'|')
        } else if wiki(b"!") {
            Between::Wiki(b'!')
        } else if wiki(b"^") {
            Between::Wiki(b'^')
        } else if !first && same(b'|', 1) {
            Between::Sign(b'|')
        } else if !first && same(b'\t', 1) {
            Between::Sign(b'\t')
        } else if !first && same(b';', 2) {
            Between::Sign(b';')
        } else if !first && same(b',', 2) {
            Between::Sign(b',')
        } else if [below_it, bare].map(gap_in).contains(&None) {
            // Most lines are no row of anything.
            return None;
        } else {
            Between::Blanks
        };
        let heads = fields(text, line, between, true);
        if heads.len() < HEADS_MIN || fields(text, next, between, false).len() < 2 {
            return None;
        }
        let named = heads
            .iter()
            .filter(|head| may_head(&text[head.range()]))
            .count();
        let sentence = |head: &Span| {
            let head = &text[head.range()];
            head.ends_with(b".") && head.contains(&b' ') && !head.ends_with(b"No.")
        };
        if named < HEADS_MIN || named * 2 < heads.len() || heads.iter().any(sentence) {
            return None;
        }
        if heads.iter().any(|head| is_measured(&text[head.range()])) {
            return None;
        }
        // Names that promise a secret are read where they stand, in tables that are no drawing.
        let read = match between {
            Between::Sign(sign) => {
                let rule = |line: Span| text[line.range()].contains(&sign);
                count(head, sign) >= 2 && below.is_none_or(rule)
            }
            _ => false,
        };
        Some(Self {
            between,
            head: line,
            heads,
            read,
        })
    }

    /// A text of the heads and then the fields, each in a cell with the name of its column. Gives the lines behind the table.
    fn emit<'t>(&self, node: &Node, mut lines: Lines<'t>, spawn: &mut Spawner<'_>) -> Lines<'t> {
        let text = &node.text;
        // Too deep for a text of its own the fields are looked at where they stand, as all else.
        let child = (!spawn.is_deepest()).then(|| spawn.begin(Layer::Table));
        let Some(mut child) = child.flatten() else {
            return lines;
        };
        let promises = |head: &Span| names::promise(&text[head.range()]) > Promise::Nothing;
        let mut names: Fields = SmallVec::new();
        for head in &self.heads {
            let start = child.text.len();
            if !may_head(&text[head.range()]) || self.read && promises(head) {
                names.push(Span::default());
                continue;
            }
            copy(&mut child, node, head.start as usize, head.end as usize);
            child.close_cell(start, Span::default(), LeafKind::String, 0);
            names.push(Span::new(start, child.text.len() - 1));
        }
        let telling = LazyCell::new(|| self.heads.iter().any(promises));
        let mut has_numbers = false;
        let over = |head: &Span| columns_of(text, self.head, *head);
        let over: Columns = self.heads.iter().map(over).collect();
        let (mut places, mut rest) = (Vec::new(), lines);
        let room = spawn.room() / ROOM_SHARE;
        while let Some(line) = lines.next() {
            let row = &text[line.range()];
            if is_rule(row) {
                continue;
            }
            if row.len() > LINE_BYTES_MAX || row.trim_ascii().is_empty() {
                break;
            }
            let fields = fields(text, line, self.between, false);
            // What looked like heads was none if one comes that promises more.
            let head = |field: &Span| may_head(&text[field.range()]);
            let anew = fields.iter().all(head) && fields.iter().any(promises) && !*telling;
            if fields.len() < 2 || anew {
                break;
            }
            rest = lines;
            if child.text.len() > room {
                continue;
            }
            for (field, nth) in self.placed(text, line, &fields, &over) {
                let name = names.get(nth).filter(|name| !name.is_empty());
                let Some(name) = name.filter(|_| !field.is_empty()) else {
                    continue;
                };
                let start = child.text.len();
                let value = &text[field.range()];
                has_numbers |= value.iter().any(|b| b.is_ascii_digit() || *b == b'@');
                copy(&mut child, node, field.start as usize, field.end as usize);
                places.push(Field {
                    cell: to_u32(child.cells.len()),
                    at: to_u32(start),
                    list: *name,
                    head: *name,
                });
                child.close_cell(start, *name, LeafKind::String, 0);
            }
        }
        // Longer ones are known by what they promise, too.
        let known = |head: &Span| is_head(&text[head.range()]) || head.len() == 1 && promises(head);
        let worth = || has_numbers || self.heads.iter().any(known);
        if places.is_empty() || !worth() {
            spawn.drop(child);
        } else {
            child.layout.set_fields(places);
            spawn.end(child);
        }
        rest
    }

    /// Each field and in which column it stands: by counting where the row has as many as there are heads, or one more in
    /// front that no head stands over; else by what it stands under.
    fn placed(
        &self,
        text: &[u8],
        line: Span,
        fields: &Fields,
        over: &Columns,
    ) -> SmallVec<[(Span, usize); 12]> {
        let heads = self.heads.len();
        let counted = self.between != Between::Blanks || fields.len() == heads;
        if counted {
            return fields.iter().copied().zip(0..).collect();
        }
        let index = &text[fields[0].range()];
        if fields.len() == heads + 1 && !index.is_empty() && index.iter().all(u8::is_ascii_digit) {
            return fields.iter().skip(1).copied().zip(0..).collect();
        }
        let shared =
            |a: (usize, usize), b: (usize, usize)| a.1.min(b.1).saturating_sub(a.0.max(b.0));
        let placed = fields.iter().filter_map(|field| {
            let own = columns_of(text, line, *field);
            let best = (0..over.len()).max_by_key(|nth| shared(own, over[*nth]))?;
            (shared(own, over[best]) > 0).then_some((*field, best))
        });
        placed.collect()
    }
}

/// From which column to which a piece of a line is shown: a character of East Asia takes two.
fn columns_of(text: &[u8], line: Span, piece: Span) -> (usize, usize) {
    let width = |bytes: &[u8]| {
        let begins = |b: &&u8| **b & 0xC0 != 0x80;
        bytes
            .iter()
            .filter(begins)
            .map(|b| 1 + usize::from(matches!(*b, 0xE3..=0xED | 0xEF)))
            .sum::<usize>()
    };
    let start = width(&text[line.start as usize..piece.start as usize]);
    (start, start + width(&text[piece.range()]))
}

/// The fields of a line, without the blanks around them, or signs around heads.
fn fields(text: &[u8], line: Span, between: Between, head: bool) -> Fields {
    let (base, whole) = (line.start as usize, &text[line.range()]);
    let trimmed = whole.trim_ascii();
    let from = base + (trimmed.as_ptr().addr() - whole.as_ptr().addr());
    let mut out = Fields::new();
    let mut push = |start: usize, end: usize| {
        let field = &text[start..end];
        let bare = field.trim_ascii();
        let bare = match bare {
            [b'"', inner @ .., b'"'] | [b'`', inner @ .., b'`'] => inner,
            [b'*', b'*', inner @ .., b'*', b'*'] if head => inner,
            _ => bare,
        };
        let start = start + (bare.as_ptr().addr() - field.as_ptr().addr());
        if out.len() < COLUMNS_MAX {
            out.push(Span::new(start, start + bare.len()));
        }
    };
    match between {
        Between::Blanks => {
            let (mut at, mut n) = (0, 0);
            while at < trimmed.len() && n < COLUMNS_MAX {
                n += 1;
                let gap = gap_in(&trimmed[at..]).map_or(trimmed.len(), |n| at + n);
                push(from + at, from + gap);
                let blanks = trimmed[gap..]
                    .iter()
                    .take_while(|b| b.is_ascii_whitespace())
                    .count();
                at = gap + blanks;
            }
        }
        Between::Sign(sign) => split(trimmed, from, &[sign], sign == b'|', &mut push),
        Between::Frame([a, b]) => split(
            trimmed,
            from,
            &[if a == 0xBD { 0xEF } else { 0xE2 }, a, b],
            true,
            &mut push,
        ),
        Between::Wiki(b'|') if head => split(trimmed, from, b"||", true, &mut push),
        Between::Wiki(b'!') => {
            // `! User !! Password` over `| bob || ...`.
            let (lead, sign): (&[u8], &[u8]) = if head { (b"!", b"!!") } else { (b"|", b"||") };
            let bare = trimmed.strip_prefix(lead).unwrap_or(trimmed);
            split(
                bare,
                from + trimmed.len() - bare.len(),
                sign,
                false,
                &mut push,
            );
        }
        Between::Wiki(sign) if head => split(trimmed, from, &[sign], true, &mut push),
        Between::Wiki(_) => split(trimmed, from, b"|", true, &mut push),
    }
    out
}

/// Where two blanks or a tab stand first.
fn gap_in(line: &[u8]) -> Option<usize> {
    let blanks = BLANKS.find(line);
    let tab = memchr::memchr(b'\t', &line[..blanks.unwrap_or(line.len())]);
    tab.or(blanks)
}

/// The pieces between signs; a frame has one before the first and after the last.
fn split(line: &[u8], base: usize, sign: &[u8], framed: bool, push: &mut impl FnMut(usize, usize)) {
    let mut at = 0;
    let mut end = line.len();
    if framed {
        at += usize::from(line.starts_with(sign)) * sign.len();
        end -= usize::from(line.ends_with(sign) && end >= at + sign.len()) * sign.len();
    }
    for next in memchr::memmem::find_iter(&line[at..end], sign)
        .map(|n| n + at)
        .collect::<SmallVec<[usize; 16]>>()
    {
        push(base + at, base + next);
        at = next + sign.len();
    }
    push(base + at, base + end);
}

#[cfg(test)]
mod tests {
    use crate::LeafKind;
    use crate::decode::{json, tests::children_in};
    use crate::text::Node;
    use crate::{Layer, decode::tests::node_of};

    /// What stands under each head of the tables in a node.
    fn told_in(node: Node) -> Vec<(String, String)> {
        let (nodes, _) = children_in(node, 1 << 24);
        let tables = nodes.iter().filter(|n| n.layer == Some(Layer::Table));
        let fields = tables.flat_map(|n| {
            let text =
                |span: crate::text::Span| String::from_utf8(n.text[span.range()].to_vec()).unwrap();
            n.cells
                .iter()
                .filter(|c| !c.name.is_empty())
                .map(move |c| (text(c.name), text(c.span)))
        });
        fields.collect()
    }

    fn assert_told(text: &str, want: &[(&str, &str)]) {
        let told = told_in(node_of(&[("", text)]));
        for (head, field) in want {
            assert!(
                told.iter().any(|(h, f)| h == head && f == field),
                "{text}\n{told:?}"
            );
        }
        if want.is_empty() {
            assert!(told.is_empty(), "{text}\n{told:?}");
        }
    }

    #[test]
    fn fields_get_the_names_of_their_columns() {
        let want = &[("password", "Xk39dkfj2kd"), ("name", "bob")][..];
        for text in [
            "id  name  password\n1   bob   Xk39dkfj2kd\n2   jim   Kj38dja92ls\n",
            "Accounts:\n\nname     password      age\nbob      Xk39dkfj2kd   3d\n",
            "   name     password\n0  bob  Xk39dkfj2kd\n1  jim  Kj38dja92ls\n",
            "id  name  password\n--  ----  -----------\n1   bob   Xk39dkfj2kd\n",
            "+----+------+-------------+\n| id | name | password    |\n+----+------+-------------+\n|  1 | bob  | Xk39dkfj2kd |\n+----+------+-------------+\n",
            "┌────┬──────┬─────────────┐\n│ id │ name │ password    │\n├────┼──────┼─────────────┤\n│ 1  │ bob  │ Xk39dkfj2kd │\n└────┴──────┴─────────────┘\n",
            "=====  =====  ===========\nid     name   password\n=====  =====  ===========\n1      bob    Xk39dkfj2kd\n=====  =====  ===========\n",
            "||name||password||\n|bob|Xk39dkfj2kd|\n",
            "^ name ^ password ^\n| bob | Xk39dkfj2kd |\n",
            "{| class=\"wikitable\"\n! name !! password\n|-\n| bob || Xk39dkfj2kd\n|}",
            "Below is the export.\nname\tpassword\nbob\tXk39dkfj2kd\n",
            "name   age  password\nbob         Xk39dkfj2kd\n",
            "name  note  password     x\nbob   ok    Xk39dkfj2kd\n",
        ] {
            assert_told(text, want);
        }
    }

    /// Passwords are read where they stand.
    #[test]
    fn names_of_secrets_are_left_to_others_where_one_sign_parts_all() {
        for text in [
            "All of them:\n\n| **name** | password |\n|:--|--:|\n| bob | `Xk39dkfj2kd` |\n\nThat is all.",
            "Below is the export.\nid,name,password\n1,bob,Xk39dkfj2kd\n",
        ] {
            let told = told_in(node_of(&[("", text)]));
            assert!(told.contains(&("name".into(), "bob".into())), "{told:?}");
            assert!(!told.iter().any(|(head, _)| head == "password"), "{told:?}");
        }
    }

    #[test]
    fn lines_of_an_array_are_a_table() {
        let text = r#"{"text/plain": ["   name         iban\n", "0  Bob  GB33BUKB20201555555555\n", "1  Jim  x"]}"#;
        let mut node = Node::default();
        assert!(json::walk(text.as_bytes(), 0, &mut node));
        assert!(node.cells.iter().any(|c| c.kind == LeafKind::String));
        let told = told_in(node);
        assert!(
            told.contains(&("iban".into(), "GB33BUKB20201555555555".into())),
            "{told:?}"
        );
    }

    #[test]
    fn two_columns_of_wide_letters_are_told_apart() {
        assert_told(
            "氏名        電話          メモ\n佐藤 美咲               7 回\n",
            &[("氏名", "佐藤 美咲"), ("メモ", "7 回")],
        );
    }

    #[test]
    fn text_is_no_table() {
        for text in [
            "It was good.  He said so.\nThen he left.  All was well in 1984.\n",
            "fn main() {\n    let x  = 1;\n    let yy = 22;\n}\n",
            "a\nb\nc\n",
            "name  password\n",
            "10  20  30\n40  50  60\n",
            "- one, two, three\n- four, five, six\n",
        ] {
            assert_told(text, &[]);
        }
    }

    #[test]
    fn a_head_may_follow_a_list_without_a_blank_line() {
        assert_told(
            "ready  yes\nstate  open\nname  password\nbob   Xk39dkfj2kd\n",
            &[("password", "Xk39dkfj2kd")],
        );
    }

    /// Long tables are what tools return every day: they leave room for others, and are no reason to refuse a message.
    #[test]
    fn a_long_table_is_not_over_budget() {
        let rows = "NAME  AGE\nalpha  31\n".to_owned() + &"alpha  31\n".repeat(200_000);
        let (nodes, over) = children_in(node_of(&[("", &rows)]), 1 << 20);
        let bytes: usize = nodes.iter().map(|n| n.text.len()).sum();
        assert!(
            over.is_none() && bytes > 200_000 && bytes < 300_000,
            "{over:?} {bytes}"
        );
    }

    /// Rows that could each be a head are read once.
    #[test]
    fn long_lists_cost_what_they_are_long() {
        let rows = "alpha  beta  gamma1\n".repeat(20_000);
        let told = told_in(node_of(&[("", &rows)]));
        assert_eq!(told.len(), 3 * 19_999);
        let dull = "alpha  beta  gamma\n".repeat(200_000);
        assert!(told_in(node_of(&[("", &dull)])).is_empty());
        let wide = format!("{}\n{}", "ab  ".repeat(1000), "x1  y\n".repeat(100_000));
        assert_eq!(told_in(node_of(&[("", &wide)])).len(), 200_000);
    }
}
