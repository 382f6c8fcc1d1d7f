//! Values split over neighbouring cells: content blocks, array elements, single characters.

use smallvec::SmallVec;

use super::{Spawner, begin_cell, named, rows_of};
use crate::detect::{Scratch, is_value};
use crate::names::{self, Promise};
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::{Layer, LeafKind, OverBudget};

/// Longest piece taken from either side of a seam: more than a signed token has.
const PIECE_MAX: usize = 4096;
/// Elements this short in a row are one text taken apart.
const SHORT_BYTES_MAX: usize = 8;
const SHORT_RUN_MIN: usize = 4;
/// Two pieces that are shorter together hold nothing that a rule finds.
const SEAM_BYTES_MIN: usize = 12;
/// Parts of one word over several content blocks, joined with each that comes; more are joined once, at their end.
const CHAIN_PARTS_MAX: usize = 12;
/// Pieces of a text with blanks in it: how many, and how long, before they count as one that was cut.
const TEXT_PARTS_MIN: usize = 4;
const TEXT_PART_BYTES_MIN: usize = 6;
/// Cells that a token which broke off goes on in: so many, and more while they come to no more bytes than this.
const BROKEN_PARTS: usize = 8;
const BROKEN_BYTES_MAX: usize = 4096;
/// All of them come to no more than so many times the text; if one broke off in every cell, the rest is over budget.
const BROKEN_TIMES_MAX: usize = 32;

/// Longest path to a program, and most of its arguments that are read.
const PROGRAM_BYTES_MAX: usize = 24;
const ARGUMENTS_MAX: usize = 32;

/// Is it a name whose values follow each other as parts of one text?
pub(super) fn names_part(name: &[u8]) -> bool {
    matches!(
        name,
        b"text"
            | b"data"
            | b"blob"
            | b"content"
            | b"value"
            | b"delta"
            | b"body"
            | b"message"
            | b"chunk"
            | b"part"
            | b"arguments"
            | b"partial_json"
            | b"parts"
    )
}

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    if node.layer == Some(Layer::Joined) || node.cells.len() < 2 {
        return;
    }
    short_runs(node, spawn);
    numbers(node, spawn);
    named::decode(node, spawn);
    arguments(node, spawn);
    parts(node, spawn);
    seams(node, spawn);
    broken(node, scratch, spawn);
}

/// `["g","h","p","_"]`
fn short_runs(node: &Node, spawn: &mut Spawner<'_>) {
    let short = |c: &Cell| c.kind == LeafKind::String && c.span.len() <= SHORT_BYTES_MAX;
    let same = |a: &Cell, b: &Cell| short(a) && short(b) && node.layout.are_together(a, b);
    for cells in rows_of(&node.cells, SHORT_RUN_MIN, same) {
        join(node, cells.iter().map(|c| c.span), spawn);
    }
}

/// `"card_number": [4539, 1488, 0343, 6467]`, `"pesel_digits": [8, 0, 1, ...]`: a number in groups of as many digits each, or digit by
/// digit, under a name for one. Prices and years stand in rows, too, under names of theirs.
fn numbers(node: &Node, spawn: &mut Spawner<'_>) {
    const GROUP_DIGITS_MAX: usize = 6;
    let digits = |c: &Cell| {
        c.kind == LeafKind::Number
            && c.span.len() <= GROUP_DIGITS_MAX
            && node.text[c.span.range()].iter().all(u8::is_ascii_digit)
    };
    let same = |a: &Cell, b: &Cell| digits(a) && digits(b) && node.layout.are_together(a, b);
    for cells in rows_of(&node.cells, 3, same) {
        let (first, rest) = (cells[0].span.len(), &cells[..cells.len() - 1]);
        let total: usize = cells.iter().map(|c| c.span.len()).sum();
        let even = rest.iter().all(|c| c.span.len() == first);
        let named = names_number(&node.text[cells[0].name.range()]);
        if even && named && DIGITS.contains(&total) {
            join(node, cells.iter().map(|c| c.span), spawn);
        }
    }
}

/// How many digits a number in pieces has.
pub(super) const DIGITS: std::ops::RangeInclusive<usize> = 9..=24;

/// Does a name say that a number is under it, not an amount?
pub(super) fn names_number(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 20] = [
        b"card",
        b"pan",
        b"number",
        b"digits",
        b"account",
        b"iban",
        b"ssn",
        b"phone",
        b"pesel",
        b"tax",
        b"groups",
        b"parts",
        b"social",
        b"tel",
        b"mobile",
        b"cpf",
        b"aadhaar",
        b"nhs",
        b"bsn",
        b"passport",
    ];
    let name = name.to_ascii_lowercase();
    let says = |n: &&[u8]| memchr::memmem::find(&name, n).is_some();
    NAMES.iter().any(says)
}

/// `["rm", "-r", "/home"]`, `{"command": "sh", "args": ["-c", "id"]}`: a command with its arguments one by one. It is one by its
/// program's name, or by an argument that begins as flags do.
fn arguments(node: &Node, spawn: &mut Spawner<'_>) {
    // Any argument may be a program that harm comes from; of all others a row has one.
    let (mut done, mut tried) = (0, 0);
    for (at, program) in node.cells.iter().enumerate() {
        let short = (2..=PROGRAM_BYTES_MAX).contains(&program.span.len());
        if at < done || !short || program.kind != LeafKind::String {
            continue;
        }
        let listed = |c: &&Cell| {
            let named = || names_arguments(&node.text[c.name.range()]);
            c.kind == LeafKind::String && (node.layout.are_together(c, program) || named())
        };
        let values = node.cells[at + 1..].iter().filter(|c| is_value(c));
        // Nearly all values stand under a name of their own.
        if !values.clone().next().is_some_and(|c| listed(&c)) {
            continue;
        }
        let text = &node.text[program.span.range()];
        let harmful = is_program(name_of(text));
        if !is_value(program) || !harmful && at < tried {
            continue;
        }
        let row: SmallVec<[Span; 8]> = values
            .take_while(listed)
            .take(ARGUMENTS_MAX)
            .map(|c| c.span)
            .filter(|span| !span.is_empty())
            .collect();
        tried = at + 1 + row.len();
        if harmful {
            done = tried;
        }
        let flagged = row.iter().any(|span| is_flag(&node.text[span.range()]));
        if row.is_empty() || !harmful && !flagged {
            continue;
        }
        let Some(mut child) = spawn.begin(Layer::Joined) else {
            return;
        };
        child.push(text, program.span, How::Copy);
        for span in row {
            child.push(
                b" ",
                Span::new(span.start as usize, span.start as usize + 1),
                How::Atom,
            );
            child.push(&node.text[span.range()], span, How::Copy);
        }
        child.close_cell(0, Span::default(), LeafKind::String, 0);
        // A command line may have a secret behind a flag; what only looks like one may not.
        child.only_injection = !flagged;
        spawn.end(child);
    }
}

/// `-p`, `--token`, `-Dkey=value`
fn is_flag(argument: &[u8]) -> bool {
    let dashes = argument.iter().take_while(|b| **b == b'-').count();
    (1..=2).contains(&dashes) && argument.get(dashes).is_some_and(u8::is_ascii_alphabetic)
}

/// The last part of the path to a program.
fn name_of(program: &[u8]) -> &[u8] {
    let slash = program.iter().rposition(|b| matches!(b, b'/' | b'\\'));
    &program[slash.map_or(0, |at| at + 1)..]
}

/// Is it one that harm comes from?
fn is_program(name: &[u8]) -> bool {
    matches!(
        name,
        b"rm"
            | b"sh"
            | b"bash"
            | b"zsh"
            | b"nc"
            | b"ncat"
            | b"netcat"
            | b"curl"
            | b"wget"
            | b"dd"
            | b"sudo"
            | b"chmod"
            | b"python"
            | b"python3"
            | b"perl"
            | b"ruby"
            | b"php"
            | b"node"
            | b"socat"
            | b"cmd"
            | b"powershell"
            | b"powershell.exe"
    )
}

fn names_arguments(name: &[u8]) -> bool {
    matches!(
        name,
        b"args" | b"arguments" | b"argv" | b"params" | b"options"
    )
}

/// Elements of one length but for the last, and values under `part1`, `part2`: without blanks, they are one in pieces.
fn parts(node: &Node, spawn: &mut Spawner<'_>) {
    let mut row: Vec<Cell> = Vec::new();
    let mut counter = Counter::default();
    for cell in node.cells.iter().filter(|c| is_value(c)) {
        if cell.leaf == NO_LEAF {
            continue;
        }
        // A number that counts the pieces is none.
        if cell.kind == LeafKind::Number {
            counter.note(&node.text[cell.span.range()]);
            continue;
        }
        let counted = counter.take();
        let goes_on = row.last().is_some_and(|last| {
            // A shorter one is the last of its row.
            let longest = row[0].span.len();
            match is_next(node, last, cell, counted) {
                Next::Element => last.span.len() == longest && cell.span.len() <= longest,
                Next::Numbered => true,
                Next::Other => false,
            }
        });
        if !goes_on {
            // Most rows are one value.
            if row.len() > 1 {
                join_parts(node, &row, spawn);
            }
            row.clear();
        }
        if cell.kind == LeafKind::String && (2..=PIECE_MAX).contains(&cell.span.len()) {
            row.push(*cell);
        }
    }
    join_parts(node, &row, spawn);
}

/// Pieces that are numbered: `{"i": 0, "c": "..."}, {"i": 1, "c": "..."}`.
#[derive(Default)]
struct Counter {
    last: Option<u32>,
    /// The numbers since the last piece: how many, and the one that was seen last.
    seen: (u32, Option<u32>),
}

impl Counter {
    fn note(&mut self, number: &[u8]) {
        let digits = number.strip_prefix(b"+").unwrap_or(number);
        let whole = digits.iter().try_fold(0_u32, |n, b| {
            let digit = b.checked_sub(b'0').filter(|digit| *digit < 10)?;
            n.checked_mul(10)?.checked_add(digit.into())
        });
        self.seen = (self.seen.0 + 1, whole.filter(|_| !digits.is_empty()));
    }

    /// Is the one number before the piece at hand the next after that of the piece before?
    fn take(&mut self) -> bool {
        let (seen, number) = std::mem::take(&mut self.seen);
        let next = self.last.and_then(|n| n.checked_add(1));
        self.last = number;
        seen == 0 || seen == 1 && number.is_some() && number == next
    }
}

/// How a value follows the one before.
pub(super) enum Next {
    /// In the same array, or under the same name again.
    Element,
    /// Under a name with the next number.
    Numbered,
    Other,
}

pub(super) fn is_next(node: &Node, last: &Cell, cell: &Cell, counted: bool) -> Next {
    if cell.name.is_empty() || cell.kind != LeafKind::String {
        return Next::Other;
    }
    let same = || node.text[cell.name.range()] == node.text[last.name.range()];
    if node.layout.are_together(cell, last) || counted && same() {
        return Next::Element;
    }
    let names = (&node.text[last.name.range()], &node.text[cell.name.range()]);
    // Few names have a number or a letter of their own at the end.
    let (Some(a), Some(b)) = (names.0.last(), names.1.last()) else {
        return Next::Other;
    };
    if !(a.is_ascii_digit() && b.is_ascii_digit()) {
        return match lettered(names) || are_halves(names) {
            true => Next::Numbered,
            false => Next::Other,
        };
    }
    let numbered = |name: Span| {
        let name = &node.text[name.range()];
        let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let (stem, number) = name.split_at(name.len() - digits);
        let number: u32 = std::str::from_utf8(number).ok()?.parse().ok()?;
        Some((stem, number))
    };
    match (numbered(last.name), numbered(cell.name)) {
        (Some((a, n)), Some((b, m))) if a == b && n.checked_add(1) == Some(m) => Next::Numbered,
        _ => Next::Other,
    }
}

/// Does a value follow another in such a way that the two may be pieces of one, by their names and by what they are made of?
pub(super) fn may_be_in_pieces(node: &Node) -> bool {
    let values = || node.cells.iter().filter(|c| c.kind == LeafKind::String);
    let bytes = |c: &Cell| &node.text[c.span.range()];
    let word = |c: &Cell| c.span.len() >= 2 && head(node, c) == c.span;
    let follows = |a: &Cell, b: &Cell| {
        node.layout.are_together(a, b) || !matches!(is_next(node, a, b, true), Next::Other)
    };
    let pair = |(a, b): (&Cell, &Cell)| {
        let any = |is: fn(&u8) -> bool| bytes(a).iter().chain(bytes(b)).any(is);
        a.span.len() + b.span.len() >= SEAM_BYTES_MIN
            && follows(a, b)
            && any(u8::is_ascii_digit)
            && any(u8::is_ascii_alphabetic)
            && word(a)
            && word(b)
    };
    let single = |c: &Cell| c.kind == LeafKind::String && c.span.len() == 1;
    let mut rows = rows_of(&node.cells, SHORT_RUN_MIN, |a, b| single(a) && single(b));
    values().zip(values().skip(1)).any(pair) || rows.next().is_some()
}

/// Are they names of two parts: `head` and `tail`, `key_first_half` and `key_second_half`?
fn are_halves(names: (&[u8], &[u8])) -> bool {
    if are_sides(names) {
        return true;
    }
    let (a, b) = names;
    let apart = |b: &u8| matches!(b, b'_' | b'-' | b' ');
    // Most names have neither the same beginning nor the same end.
    if a.first() != b.first() && a.last() != b.last() || !a.iter().any(apart) {
        return false;
    }
    let parts = |name: &'_ [u8]| -> SmallVec<[(usize, usize); 4]> {
        let mut from = 0;
        let lens = name.split(apart).map(<[u8]>::len);
        lens.map(|len| {
            let part = (from, from + len);
            from += len + 1;
            part
        })
        .collect()
    };
    let (parts_a, parts_b) = (parts(a), parts(b));
    let pairs = || parts_a.iter().zip(&parts_b);
    let of =
        |((a0, a1), (b0, b1)): (&(usize, usize), &(usize, usize))| (&a[*a0..*a1], &b[*b0..*b1]);
    let mut others = pairs().map(of).filter(|(a, b)| a != b);
    parts_a.len() == parts_b.len()
        && others.next().is_some_and(are_sides)
        && others.next().is_none()
}

fn are_sides(names: (&[u8], &[u8])) -> bool {
    matches!(
        names,
        (b"first", b"second")
            | (b"prefix", b"suffix")
            | (b"head", b"tail")
            | (b"left", b"right")
            | (b"start" | b"begin", b"end")
            | (b"hi", b"lo")
    )
}

/// `a` and `b`, `part_a` and `part_b`.
fn lettered((last, name): (&[u8], &[u8])) -> bool {
    let (Some((a, stem)), Some((b, same))) = (last.split_last(), name.split_last()) else {
        return false;
    };
    let apart = || stem.last().is_none_or(|b| matches!(b, b'_' | b'-'));
    // Few names end in letters that follow each other.
    a.is_ascii_alphabetic() && a + 1 == *b && b.is_ascii_alphabetic() && apart() && stem == same
}

fn join_parts(node: &Node, row: &[Cell], spawn: &mut Spawner<'_>) {
    let bytes = || row.iter().flat_map(|c| &node.text[c.span.range()]);
    // Two neighbours meet at their seam; short ones are joined as they are.
    let enough = row.len() > 2 && row[0].span.len() > SHORT_BYTES_MAX
        || row.len() > 1 && !node.layout.are_together(&row[0], &row[1]);
    // Many pieces of one length, shorter only at the end, may be of a sentence.
    let cut = row.len() >= TEXT_PARTS_MIN && row[0].span.len() >= TEXT_PART_BYTES_MIN;
    let fits = |b: &u8| b.is_ascii_graphic() || cut && matches!(b, b' ' | b'\n' | 0x80..);
    if enough
        && bytes().take(SEAM_BYTES_MIN).count() == SEAM_BYTES_MIN
        && bytes().all(fits)
        && bytes().any(u8::is_ascii_digit)
        && bytes().any(u8::is_ascii_alphabetic)
    {
        join_under(node, stem(node, row), row.iter().map(|c| c.span), spawn);
    }
}

/// What the names of parts have in common says what the whole is: `password_begin` and `password_end`.
fn stem(node: &Node, row: &[Cell]) -> Span {
    let (Some(first), Some(last)) = (row.first(), row.last()) else {
        return Span::default();
    };
    let (a, b) = (
        &node.text[first.name.range()],
        &node.text[last.name.range()],
    );
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let mut called = &a[..same];
    for end in ["_part", "_piece", "_chunk", "_half", "part", "_"] {
        called = called.strip_suffix(end.as_bytes()).unwrap_or(called);
    }
    match names::promise(called) {
        Promise::Nothing => Span::default(),
        _ => Span::new(
            first.name.start as usize,
            first.name.start as usize + called.len(),
        ),
    }
}

/// The parts under one name that came last.
struct Chain<'n> {
    name: &'n [u8],
    last: Cell,
    /// Parts that are all one word: the latest, and all of them.
    latest: Vec<Span>,
    whole: Vec<Span>,
}

impl Chain<'_> {
    /// Joins the whole where the latest parts did not reach over it.
    fn end(&mut self, node: &Node, spawn: &mut Spawner<'_>) {
        if self.whole.len() > CHAIN_PARTS_MAX {
            join(node, self.whole.iter().copied(), spawn);
        }
        self.whole.clear();
    }
}

/// The end of one part and the beginning of the next.
fn seams(node: &Node, spawn: &mut Spawner<'_>) {
    let mut chains: Vec<Chain<'_>> = Vec::new();
    let mut prev: Option<Cell> = None;
    // Most seams are a cell each of one text: a text costs more than what is in it.
    let mut all: Option<Node> = None;
    for cell in &node.cells {
        if cell.leaf == NO_LEAF {
            continue;
        }
        if !is_value(cell) {
            prev = None;
            continue;
        }
        // What shows nothing stands between two parts as a line's end does within one.
        if node.text[cell.span.range()].trim_ascii().is_empty() {
            continue;
        }
        let name = &node.text[cell.name.range()];
        // Elements of one array, with no key between them.
        let beside = |p: &Cell| cell.kind == LeafKind::String && node.layout.are_together(p, cell);
        if let Some(left) = prev.filter(beside) {
            seam(node, &left, cell, &mut all, spawn);
        } else if names_part(name) {
            let at = chains.iter().position(|c| c.name == name);
            let at = at.unwrap_or_else(|| {
                chains.push(Chain {
                    name,
                    last: *cell,
                    latest: Vec::new(),
                    whole: Vec::new(),
                });
                chains.len() - 1
            });
            chain_on(node, &mut chains[at], cell, &mut all, spawn);
        }
        prev = Some(*cell);
    }
    for chain in &mut chains {
        chain.end(node, spawn);
    }
    if let Some(all) = all {
        spawn.end(all);
    }
}

fn chain_on(
    node: &Node,
    chain: &mut Chain<'_>,
    cell: &Cell,
    all: &mut Option<Node>,
    spawn: &mut Spawner<'_>,
) {
    let part = head(node, cell);
    if !chain.whole.is_empty() {
        block_seam(node, &chain.last, cell, all, spawn);
        chain.whole.push(part);
    }
    if chain.latest.len() > 1 && !part.is_empty() {
        join(node, chain.latest.iter().copied().chain([part]), spawn);
    }
    // Parts that are all one word reach on.
    if part != cell.span || chain.latest.len() >= CHAIN_PARTS_MAX {
        chain.latest.clear();
    }
    let last = tail(node, cell);
    chain.latest.push(last);
    if part != cell.span || chain.whole.is_empty() {
        chain.end(node, spawn);
        chain.whole.push(last);
    }
    chain.last = *cell;
}

fn seam(node: &Node, left: &Cell, right: &Cell, all: &mut Option<Node>, spawn: &mut Spawner<'_>) {
    // A person's name beside the address is no part of it; in a table's rows that is the rule.
    let address = |c: &Cell| is_address(&node.text[c.span.range()]);
    if left.name != right.name && (address(left) || address(right)) {
        return;
    }
    let least = Least {
        together: SEAM_BYTES_MIN,
        one_above: SHORT_BYTES_MAX,
        each: 2,
    };
    join_seam(node, (left, right), least, all, spawn);
}

/// Is all of it one mail address?
fn is_address(text: &[u8]) -> bool {
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"._+-".contains(b);
    let Some(at) = memchr::memchr(b'@', text) else {
        return false;
    };
    let (user, domain) = (&text[..at], &text[at + 1..]);
    let dot = memchr::memrchr(b'.', domain).unwrap_or(0);
    let top = domain.get(dot + 1..).unwrap_or_default();
    let top = top.len() >= 2 && top.iter().all(u8::is_ascii_alphabetic);
    !user.is_empty() && dot > 0 && top && user.iter().chain(domain).all(part)
}

/// How long the pieces on both sides of a seam are at the least.
#[derive(Clone, Copy)]
struct Least {
    together: usize,
    one_above: usize,
    each: usize,
}

/// Two blocks of text: what people choose as a password is shorter than what machines make. A block of one character is a piece.
fn block_seam(
    node: &Node,
    left: &Cell,
    right: &Cell,
    all: &mut Option<Node>,
    spawn: &mut Spawner<'_>,
) {
    let is_one = left.span.len() == 1 || right.span.len() == 1;
    let least = Least {
        together: SHORT_BYTES_MAX,
        one_above: 2,
        each: if is_one { 1 } else { 2 },
    };
    join_seam(node, (left, right), least, all, spawn);
}

/// What explains a value at the head of its cell stands in the cells before it: a seam with less before it is a text of
/// its own.
const CONTEXT_BYTES_MIN: usize = 4;

/// Joins the neighbours if they are long enough, as a cell of `all`.
fn join_seam(
    node: &Node,
    (left, right): (&Cell, &Cell),
    least: Least,
    all: &mut Option<Node>,
    spawn: &mut Spawner<'_>,
) {
    if left.span.len() + right.span.len() < least.together {
        return;
    }
    let (a, b) = (tail(node, left), head(node, right));
    // A part which is all one word reaches on to the next; those two are joined there.
    if a.len().min(b.len()) >= least.each
        && a.len() + b.len() >= least.together
        && a.len().max(b.len()) > least.one_above
    {
        let context = Span::new(
            super::margin_before(&node.text, a.start as usize, left.span.start as usize),
            a.start as usize,
        );
        if context.len() < CONTEXT_BYTES_MIN {
            join(node, [context, a, b].into_iter(), spawn);
            return;
        }
        if all.is_none() {
            *all = spawn.begin(Layer::Joined);
        }
        if let Some(all) = all {
            let start = all.text.len();
            // It is paid for as a whole, so it may not outgrow what there is.
            let len = context.len() + a.len() + b.len();
            if start + len + 1 > spawn.room() {
                spawn.over.get_or_insert(OverBudget::DecodedBytes);
                return;
            }
            for part in [context, a, b] {
                all.push(&node.text[part.range()], part, How::Copy);
            }
            all.close_cell(start, Span::default(), LeafKind::String, 0);
        }
    }
}

/// Tokens that broke off at the end of their cell go on in the cells after it, whatever their names. Of those in one cell
/// the first holds the others.
fn broken(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let mut places = scratch.broken.clone();
    places.sort_unstable();
    let (mut child, mut done) = (None, 0);
    for at in places {
        let Some(index) = node.cell_at(at).filter(|_| at >= done) else {
            continue;
        };
        let rest = Span {
            start: at,
            end: node.cells[index].span.end,
        };
        done = rest.end;
        let mut parts: SmallVec<[Span; 9]> = SmallVec::new();
        let next = node.cells[index + 1..].iter().filter(|c| is_value(c));
        let mut bytes = 0;
        for (nth, cell) in next.enumerate() {
            let part = head(node, cell);
            bytes += part.len();
            if nth >= BROKEN_PARTS && bytes > BROKEN_BYTES_MAX {
                break;
            }
            if !part.is_empty() {
                parts.push(part);
            }
            if part != cell.span {
                break;
            }
        }
        if parts.is_empty() {
            continue;
        }
        if child.is_none() {
            child = spawn.begin(Layer::Joined);
        }
        let Some(child) = &mut child else {
            return;
        };
        let start = child.text.len();
        for part in std::iter::once(rest).chain(parts) {
            child.push(&node.text[part.range()], part, How::Copy);
        }
        child.close_cell(start, Span::default(), LeafKind::String, 0);
        if child.text.len() > BROKEN_TIMES_MAX * node.text.len() {
            spawn.over.get_or_insert(OverBudget::DecodedBytes);
            break;
        }
    }
    if let Some(child) = child {
        spawn.end(child);
    }
}

fn token(b: u8) -> bool {
    TOKEN[usize::from(b)]
}

static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        let sign = b as u8;
        table[b] = sign.is_ascii_graphic()
            && !matches!(
                sign,
                b'"' | b'\'' | b'`' | b'<' | b'>' | b'(' | b')' | b'{' | b'}' | b',' | b';'
            );
        b += 1;
    }
    table
};

fn tail(node: &Node, cell: &Cell) -> Span {
    let text = &node.text[cell.span.range()];
    let n = text
        .iter()
        .rev()
        .take(PIECE_MAX)
        .take_while(|b| token(**b))
        .count();
    Span::new(cell.span.end as usize - n, cell.span.end as usize)
}

fn head(node: &Node, cell: &Cell) -> Span {
    let text = &node.text[cell.span.range()];
    let n = text
        .iter()
        .take(PIECE_MAX)
        .take_while(|b| token(**b))
        .count();
    Span::new(cell.span.start as usize, cell.span.start as usize + n)
}

fn join(node: &Node, parts: impl Iterator<Item = Span>, spawn: &mut Spawner<'_>) {
    join_under(node, Span::default(), parts, spawn);
}

/// The same under a name.
fn join_under(node: &Node, name: Span, parts: impl Iterator<Item = Span>, spawn: &mut Spawner<'_>) {
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    let name = begin_cell(&mut child, node, name);
    let start = child.text.len();
    for part in parts.filter(|p| !p.is_empty()) {
        child.push(&node.text[part.range()], part, How::Copy);
    }
    child.close_cell(start, name, LeafKind::String, 0);
    spawn.end(child);
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children_of;

    #[test]
    fn parts_of_a_signed_token() {
        let cells = |names: [&'static str; 3]| {
            [
                (names[0], "eyJhbGciOiJIUzI1NiJ9"),
                (names[1], "eyJzdWIiOiI5MSJ9"),
                (names[2], "6SiAIdl4k52rUbRG"),
            ]
        };
        let whole = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI5MSJ9.6SiAIdl4k52rUbRG";
        let holds = |names| {
            children_of(&cells(names))
                .iter()
                .any(|(_, t, _)| t == whole)
        };
        assert!(holds(["header", "payload", "signature"]));
        assert!(holds(["h", "p", "s"]));
        assert!(!holds(["a", "p", "s"]));
    }

    #[test]
    fn what_parts_are_called_says_what_the_whole_is() {
        let found = children_of(&[("password_begin", "UBhzCEu"), ("password_end", "yFn1qXz")]);
        assert!(
            found
                .iter()
                .any(|(_, t, _)| t.starts_with("password") && t.contains("UBhzCEuyFn1qXz"))
        );
    }

    #[test]
    fn parts_are_joined() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (
                &[
                    ("text", "token npm_0maMGtterp5"),
                    ("type", "text"),
                    ("text", "uUTe8kb4YTjLF ok"),
                ],
                "npm_0maMGtterp5uUTe8kb4YTjLF",
            ),
            (
                &[("c", "g"), ("c", "h"), ("c", "p"), ("c", "_"), ("c", "x")],
                "ghp_x",
            ),
            (
                &[("p", "Z2hwX2FiY2Rl"), ("p", "ZmdoaWprbG1u"), ("p", "b3A=")],
                "Z2hwX2FiY2RlZmdoaWprbG1ub3A=",
            ),
            (
                &[("part1", "ghp_aa"), ("part2", "bb11bb"), ("part3", "ccdd")],
                "ghp_aabb11bbccdd",
            ),
            (
                &[("a", "ghp_aabb11"), ("b", "ccdd22ee")],
                "ghp_aabb11ccdd22ee",
            ),
            (
                &[("argv", "/bin/rm"), ("argv", "-r"), ("argv", "/home")],
                "/bin/rm -r /home",
            ),
            (
                &[("command", "sh"), ("args", "-c"), ("args", "id")],
                "sh -c id",
            ),
            (
                &[("exe", "mysql"), ("args", "-pghp_x"), ("args", "shop")],
                "mysql -pghp_x shop",
            ),
            (
                &[("prefix", "ghp_aabb11"), ("suffix", "ccdd22ee")],
                "ghp_aabb11ccdd22ee",
            ),
            (
                &[
                    ("key_first_half", "ghp_aabb11"),
                    ("key_second_half", "ccdd22ee"),
                ],
                "ghp_aabb11ccdd22ee",
            ),
            (
                &[
                    ("text", "ghp_aabb"),
                    ("type", "text"),
                    ("text", "ccdd22ee"),
                    ("type", "text"),
                    ("text", "ff33gg ok"),
                ],
                "ghp_aabbccdd22eeff33gg",
            ),
            (
                &[
                    ("c", "The SSN of"),
                    ("c", "Ana is 219"),
                    ("c", "-09-9998 a"),
                    ("c", "nd no more"),
                    ("c", "."),
                ],
                "219-09-9998",
            ),
            (
                &[
                    ("text", "key: MAR!6"),
                    ("type", "text"),
                    ("text", "86cobalt"),
                ],
                "MAR!686cobalt",
            ),
            (
                &[("items", "ghp_aaaabbbb"), ("items", "ccccdddd")],
                "ghp_aaaabbbbccccdddd",
            ),
        ];
        for (cells, want) in cases {
            let got = children_of(cells);
            assert!(
                got.iter()
                    .any(|(l, t, _)| *l == Layer::Joined && t.contains(want)),
                "{cells:?}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn pieces_in_json_within_text_come_together() {
        let cases = [
            "Here:\n```json\n{\"part1\": \"ghp_aabb1122\", \"part2\": \"ccdd33445566\"}\n```\nok",
            "got [{\"i\": 0, \"c\": \"ghp_aabb1122\"}, {\"i\": 1, \"c\": \"ccdd33445566\"}] end",
            "{ broken [\"ghp_aabb1122\", \"ccdd33445566\"] end",
            "[[[[[[[[ [\"ghp_aabb1122\", \"ccdd33445566\"] end",
        ];
        for text in cases {
            let got = children_of(&[("text", text)]);
            let shown: Vec<_> = got.iter().map(|(l, t, _)| (*l, t)).collect();
            let json = got.iter().find(|(l, ..)| *l == Layer::Json);
            assert!(json.is_some(), "{text}: {shown:?}");
        }
        for text in [
            "a {\"b\": \"c\", \"d\": \"some words of it\"} e",
            "see [\"a\"] and {x}",
        ] {
            let got = children_of(&[("text", text)]);
            assert!(got.iter().all(|(l, ..)| *l != Layer::Json), "{text}");
        }
    }
}
