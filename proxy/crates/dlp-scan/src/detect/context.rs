//! The words around a value that say what it is: near it, in its name, or at the head of its column.
//!
//! The gate has seen where parts of context phrases begin. For each place, the phrases around it are noted once, and
//! every rule then asks whether one of its own is among them: what a place costs depends on the words near it, not on
//! how many rules look at it.

mod programs;

use std::sync::LazyLock;

use super::{Scratch, Sink};
use crate::gate::Hit;
use crate::names;
use crate::rule::RuleId;
use crate::ruleset::{Action, HEAD_BYTES, RuleSet};
use crate::text::{Cell, Span, to_u32};
use crate::traces::{BLOCK, Traces};
use memchr::memmem::Finder;

/// How far before and after a value the words count that say what it is.
const BEFORE: u32 = 72;
const AFTER: u32 = 36;
/// How far into a cell its first line may reach to be the head of a table.
const HEAD_BYTES_MAX: usize = 512;
/// Longest head of a column.
const COLUMN_BYTES_MAX: usize = 64;
/// How far into a cell the first statement that inserts rows may stand.
const INSERT_BYTES_MAX: usize = 64 * 1024;
/// Longest line of a table, or rows of an `INSERT`, up to the value.
const LINE_BYTES_MAX: usize = 2048;

/// What stands around the place that was looked at last.
#[derive(Debug, Default)]
pub(crate) struct Near {
    /// The place, and where its cell begins.
    place: Option<(Span, u32)>,
    parts: [Span; 4],
    /// Where words begin in the text, a bit for each byte; of these, where short ones do, and letters that are no ASCII.
    starts: Vec<u64>,
    short: Vec<u64>,
    hits: PartHits,
    /// By phrase: the last place that it stood near to, as counted by `places`.
    seen: Vec<u32>,
    places: u32,
    /// Those that stand near the place.
    noted: Vec<u16>,
    /// The head of the cell that was asked for last, by the cell's start.
    head: Option<(u32, Option<Head>)>,
    /// Whether that cell has statements that insert rows.
    inserts: Option<(u32, bool)>,
}

/// A worker keeps the room for so many blocks of a text.
const STARTS_KEPT: usize = 1 << 16;

/// The first line of a table.
#[derive(Clone, Copy, Debug)]
struct Head {
    end: usize,
    delimiter: u8,
}

impl Near {
    /// Begins a text: what was seen in the last one says nothing about it.
    pub fn begin(&mut self, phrases: usize, traces: &Traces) {
        for list in [&mut self.starts, &mut self.short] {
            if list.capacity() > STARTS_KEPT {
                *list = Vec::new();
            }
            list.clear();
        }
        traces.word_starts(&mut self.starts);
        traces.short_word_starts(&self.starts, &mut self.short);
        self.place = None;
        self.head = None;
        self.inserts = None;
        self.hits.clear();
        self.seen.resize(phrases, 0);
    }

    fn note(&mut self, phrase: u16) {
        let seen = &mut self.seen[usize::from(phrase)];
        if *seen != self.places {
            *seen = self.places;
            self.noted.push(phrase);
        }
    }

    fn next_place(&mut self, place: (Span, u32)) {
        self.place = Some(place);
        self.noted.clear();
        self.places = self.places.wrapping_add(1);
        if self.places == 0 {
            self.seen.fill(0);
            self.places = 1;
        }
    }
}

/// Does one of the rule's phrases stand near the value, in its name, or over its column?
pub(super) fn has(
    rule: RuleId,
    span: Span,
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) -> bool {
    any_of(
        &sink.rules.compiled(rule).context,
        span,
        cell,
        sink,
        scratch,
    )
}

/// Does one of these phrases stand there? They are in order.
pub(super) fn any_of(
    phrases: &[u16],
    span: Span,
    cell: &Cell,
    sink: &mut Sink<'_>,
    scratch: &mut Scratch,
) -> bool {
    if phrases.is_empty() {
        return false;
    }
    if scratch.near.place != Some((span, cell.span.start)) {
        look(span, cell, sink, scratch);
    }
    // A rule may have hundreds of phrases; few stand near a place.
    let own = |p: &u16| phrases.binary_search(p).is_ok();
    scratch.near.noted.iter().any(own)
}

/// Notes the phrases around the value.
fn look(span: Span, cell: &Cell, sink: &mut Sink<'_>, scratch: &mut Scratch) {
    let text = sink.text();
    let near = &mut scratch.near;
    near.next_place((span, cell.span.start));
    // At the head of its cell a value is explained by the cells before it, else by its own text.
    let floor = if span.start < cell.span.start + 4 {
        0
    } else {
        cell.span.start
    };
    let before = Span {
        start: span.start.saturating_sub(BEFORE).max(floor),
        end: span.start,
    };
    let after = Span {
        start: span.end,
        end: (span.end + AFTER).min(cell.span.end),
    };
    let column = inserts(text, cell, near)
        .then(|| row_column(text, span, cell))
        .flatten()
        .or_else(|| column_head(text, span, cell, near))
        .unwrap_or_default();
    let before = Span {
        start: before.start.max(rows_from(text, span, cell, near)),
        ..before
    };
    near.parts = [before, after, cell.name, column];
    for part in near.parts {
        for block in blocks(part) {
            let starts = near.starts.get(block).copied().unwrap_or(0) & bits_of(part, block);
            for standing in near.hits.of(block, starts, text, sink.rules) {
                if standing.start < part.start || standing.end > part.end {
                    continue;
                }
                let seen = &mut near.seen[usize::from(standing.phrase)];
                if *seen != near.places {
                    *seen = near.places;
                    near.noted.push(standing.phrase);
                }
            }
        }
        look_short(part, sink, near);
    }
}

/// Phrases too short for the gate: they begin at a short word, at a letter that is no ASCII, or at a sign of their own. Each
/// that may stand there is paid for.
fn look_short(part: Span, sink: &mut Sink<'_>, near: &mut Near) {
    let (text, rules) = (sink.text(), sink.rules);
    let mut try_at = |at: usize, near: &mut Near| {
        let (first, second) = (text[at], text.get(at + 1).copied().unwrap_or(0));
        if !rules.short.may_begin(first, second) {
            return;
        }
        let mut head = [0; HEAD_BYTES];
        for (plain, byte) in head.iter_mut().zip(&text[at..]) {
            *plain = names::plain_byte(*byte);
        }
        for phrase in rules.short.of(head) {
            let words = &rules.phrases[usize::from(phrase)];
            if sink.limits.spend(1)
                && standing(text, to_u32(at), 0, words).is_some_and(|there| there.end <= part.end)
            {
                near.note(phrase);
            }
        }
    };
    for block in blocks(part) {
        let mut starts = near.short.get(block).copied().unwrap_or(0) & bits_of(part, block);
        while starts != 0 {
            try_at(block * BLOCK + starts.trailing_zeros() as usize, near);
            starts &= starts - 1;
        }
    }
    for sign in rules.short.signs() {
        let within = text.get(part.range()).unwrap_or_default();
        for at in memchr::memchr_iter(*sign, within) {
            try_at(part.start as usize + at, near);
        }
    }
}

/// The blocks that a part lies in.
fn blocks(part: Span) -> std::ops::Range<usize> {
    match part.is_empty() {
        true => 0..0,
        false => part.start as usize / BLOCK..(part.end as usize).div_ceil(BLOCK),
    }
}

/// The bytes of a block that lie in the part, a bit for each.
fn bits_of(part: Span, block: usize) -> u64 {
    let from = (part.start as usize).saturating_sub(block * BLOCK);
    let upto = (part.end as usize).saturating_sub(block * BLOCK).min(BLOCK);
    let below = |n: usize| u64::MAX.checked_shr((BLOCK - n) as u32).unwrap_or(0);
    below(upto) & !below(from.min(BLOCK))
}

/// The context phrases that a text holds. Most texts have few places to look at, so they are looked for there; no place is
/// looked at twice, and what stands at it is asked once, however many values it may explain.
#[derive(Debug, Default)]
struct PartHits {
    found: Vec<Standing>,
    blocks: Vec<Looked>,
    new: Vec<Hit>,
}

/// A phrase that stands by itself.
#[derive(Clone, Copy, Debug)]
struct Standing {
    start: u32,
    end: u32,
    /// The one before it of the same block.
    before: u32,
    phrase: u16,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
struct Looked {
    /// The bytes that were looked at, a bit for each.
    starts: u64,
    /// The last phrase, or none.
    last: u32,
}

/// There is no phrase, or none before.
const NONE: u32 = u32::MAX;

impl PartHits {
    fn clear(&mut self) {
        self.found.clear();
        self.blocks.clear();
    }

    /// Those with a word that begins at some bytes of a block, and others of the block that are known.
    fn of(&mut self, block: usize, starts: u64, text: &[u8], rules: &RuleSet) -> Standings<'_> {
        if self.blocks.len() <= block {
            let none = Looked {
                starts: 0,
                last: NONE,
            };
            self.blocks.resize(block + 1, none);
        }
        let known = &mut self.blocks[block];
        let new = starts & !known.starts;
        if new != 0 {
            known.starts |= new;
            let gate = &rules.gates.near;
            gate.hits(text, block * BLOCK, new, &mut self.new);
            for hit in self.new.drain(..) {
                for action in &rules.actions[usize::from(hit.keyword)] {
                    let Action::Context { phrase, offset } = *action else {
                        continue;
                    };
                    let words = &rules.phrases[usize::from(phrase)];
                    if let Some(there) = standing(text, hit.at, u32::from(offset), words) {
                        self.found.push(Standing {
                            start: there.start,
                            end: there.end,
                            before: known.last,
                            phrase,
                        });
                        known.last = to_u32(self.found.len() - 1);
                    }
                }
            }
        }
        Standings {
            found: &self.found,
            next: known.last,
        }
    }
}

/// The phrases of a block, the last first.
struct Standings<'h> {
    found: &'h [Standing],
    next: u32,
}

impl Iterator for Standings<'_> {
    type Item = Standing;

    fn next(&mut self) -> Option<Standing> {
        let standing = *self.found.get(self.next as usize)?;
        self.next = standing.before;
        Some(standing)
    }
}

/// Where the phrase stands by itself, with the keyword at `at` being `offset` bytes into it.
fn standing(text: &[u8], at: u32, offset: u32, phrase: &[u8]) -> Option<Span> {
    let start = at.checked_sub(offset)? as usize;
    let range = start..start + phrase.len();
    let there = text.get(range.clone())?;
    let same = |(t, p): (&u8, &u8)| names::plain_byte(*t) == *p;
    let stands = there.iter().zip(phrase).all(same)
        && by_itself(text, range.clone(), phrase)
        && !is_in_a_hash(text, &range)
        && !is_release(text, &range, phrase)
        && !is_in_a_word(text, &range, phrase)
        && !is_counted(&text[range.end..])
        && !programs::is_word(text, range.clone(), phrase);
    stands.then(|| Span::new(range.start, range.end))
}

/// Shorter words make too many names: `callId`, `cardWidth`.
const HUMP_PHRASE_MIN: usize = 5;

/// What a name is of that a word only begins: `passports_issued`, `phone_subs`, `plateSize`.
const COUNTED: [&[u8]; 22] = [
    b"issued",
    b"subs",
    b"subscribers",
    b"subscriptions",
    b"count",
    b"counts",
    b"total",
    b"totals",
    b"size",
    b"sizes",
    b"position",
    b"width",
    b"height",
    b"length",
    b"rate",
    b"ratio",
    b"share",
    b"percent",
    b"weight",
    b"thickness",
    b"price",
    b"latency",
];

/// Does the name that a phrase begins go on with a word that says how many there are, or how large?
fn is_counted(after: &[u8]) -> bool {
    let after = after.strip_prefix(b"s").unwrap_or(after);
    let after = match after.split_first() {
        Some((b'_' | b'-', rest)) => rest,
        Some((b'A'..=b'Z', _)) => after,
        _ => return false,
    };
    let len = after.iter().skip(1).take_while(|b| b.is_ascii_lowercase());
    let word = &after[..after.len().min(1 + len.count())];
    COUNTED.iter().any(|c| c.eq_ignore_ascii_case(word))
}

/// `6.1-rc.2`: the candidate of a release, and no `RČ`.
fn is_release(text: &[u8], range: &std::ops::Range<usize>, phrase: &[u8]) -> bool {
    let after = &text[range.end..];
    let number = after.strip_prefix(b".").unwrap_or(after);
    let digits = number.iter().take(4).take_while(|b| b.is_ascii_digit());
    phrase == b"rc" && (1..=3).contains(&digits.count())
}

/// Is a phrase of letters and digits in a row that change so often that it is a hash or an id, and no word?
fn is_in_a_hash(text: &[u8], range: &std::ops::Range<usize>) -> bool {
    const PHRASE_MAX: usize = 4;
    const REACH: usize = 24;
    const CHANGES_MIN: usize = 3;
    let digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_digit);
    let touched =
        digit(range.start.checked_sub(1).and_then(|i| text.get(i))) || digit(text.get(range.end));
    if range.len() > PHRASE_MAX || !touched {
        return false;
    }
    let run = |b: &&u8| b.is_ascii_alphanumeric();
    let before = text[..range.start].iter().rev().take(REACH);
    let from = range.start - before.take_while(run).count();
    let after = text[range.end..].iter().take(REACH);
    let upto = range.end + after.take_while(run).count();
    let whole = &text[from..upto];
    let changes = whole
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    // What stands before a number's own letters may be glued to it: `CI1234567LP`.
    from < range.start && changes.count() >= CHANGES_MIN
}

/// May a phrase in Cyrillic be part of a longer word? Short ones are in many: `др` in `ядро`.
fn is_in_a_word(text: &[u8], range: &std::ops::Range<usize>, phrase: &[u8]) -> bool {
    const SHORT_BYTES_MAX: usize = 6;
    const WHOLE_BYTES_MAX: usize = 4;
    let letter = |lead: u8, last: u8| matches!(lead, 0xD0 | 0xD1) && last & 0xC0 == 0x80;
    let starts = |bytes: &[u8]| matches!(*bytes, [lead, last, ..] if letter(lead, last));
    let ends = |bytes: &[u8]| matches!(*bytes, [.., lead, last] if letter(lead, last));
    phrase.len() <= SHORT_BYTES_MAX
        && starts(phrase)
        && (ends(&text[..range.start])
            || phrase.len() <= WHOLE_BYTES_MAX && ends(phrase) && starts(&text[range.end..]))
}

/// Is a phrase of ASCII letters no part of a longer word? A plural is the word itself, and a hump (`userPassport`,
/// `passportNo`) ends one.
fn by_itself(text: &[u8], range: std::ops::Range<usize>, phrase: &[u8]) -> bool {
    let letter = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphabetic);
    let plain_end = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let before = range.start.checked_sub(1).and_then(|i| text.get(i));
    let after = text.get(range.end);
    // `Möbel` is no `bel`.
    let marked = before.is_some_and(|b| *b >= 0x80)
        && text[..range.start]
            .last_chunk()
            .is_some_and(|[lead, last]| is_marked_letter(*lead, *last));
    if marked && phrase.first().is_some_and(u8::is_ascii_alphabetic) {
        return false;
    }
    let plural = phrase.len() > 4 && after.is_some_and(|b| b.eq_ignore_ascii_case(&b's'));
    let humps = phrase.len() >= HUMP_PHRASE_MIN;
    let hump = |left: Option<&u8>, right: Option<&u8>| {
        humps
            && left.is_some_and(u8::is_ascii_lowercase)
            && right.is_some_and(u8::is_ascii_uppercase)
    };
    let last = range.end.checked_sub(1).and_then(|i| text.get(i));
    (!letter(before) || !plain_end(phrase.first()) || hump(before, text.get(range.start)))
        && (!letter(after) || !plain_end(phrase.last()) || plural || hump(last, after))
}

/// The two bytes of a Latin letter with a mark.
fn is_marked_letter(lead: u8, last: u8) -> bool {
    matches!(lead, 0xC3..=0xC9)
        && last & 0xC0 == 0x80
        && !(lead == 0xC3 && matches!(last, 0x97 | 0xB7))
}

/// In a table of lines: the words over the value's column.
fn column_head(text: &[u8], span: Span, cell: &Cell, near: &mut Near) -> Option<Span> {
    let floor = cell.span.start as usize;
    let head = match near.head {
        Some((start, head)) if start == cell.span.start => head,
        _ => {
            let head = first_line(&text[cell.span.range()]);
            near.head = Some((cell.span.start, head));
            head
        }
    }?;
    let upto = &text[floor..span.start as usize];
    if upto.len() <= head.end {
        return None;
    }
    let line_floor = upto.len().saturating_sub(LINE_BYTES_MAX);
    let line = line_floor + memchr::memrchr(b'\n', &upto[line_floor..])? + 1;
    let column = memchr::memchr_iter(head.delimiter, &upto[line..]).count();
    let over = upto[..head.end]
        .split(|b| *b == head.delimiter)
        .nth(column)?;
    let start = over.as_ptr().addr() - text.as_ptr().addr();
    (over.len() <= COLUMN_BYTES_MAX).then(|| Span::new(start, start + over.len()))
}

/// In a table whose rows have as many columns as its head: where the rows begin. What stands over the other columns says
/// nothing about a value.
fn rows_from(text: &[u8], span: Span, cell: &Cell, near: &Near) -> u32 {
    let (floor, at) = (cell.span.start as usize, span.start as usize);
    let Some((_, Some(head))) = near.head.filter(|(start, _)| *start == cell.span.start) else {
        return 0;
    };
    let end = floor + head.end;
    if at <= end {
        return 0;
    }
    let over = &text[floor..end];
    // A sentence has commas as well, and blanks.
    let names = head.delimiter != b',' || !over.contains(&b' ');
    let line_floor = at.saturating_sub(LINE_BYTES_MAX).max(end);
    let line_ceil = (at + LINE_BYTES_MAX).min(cell.span.end as usize);
    let start =
        memchr::memrchr(b'\n', &text[line_floor..at]).map_or(line_floor, |n| line_floor + n + 1);
    let stop = memchr::memchr(b'\n', &text[at..line_ceil]).map_or(line_ceil, |n| at + n);
    let columns = |line: &[u8]| memchr::memchr_iter(head.delimiter, line).count();
    match names && columns(over) == columns(&text[start..stop]) {
        true => to_u32(end),
        false => 0,
    }
}

/// The head of the column that a place in a table stands in, or the name of its column in an `INSERT`.
pub(crate) fn head_over(text: &[u8], at: usize, cell: &Cell) -> Option<Span> {
    let place = Span::new(at, at);
    row_column(text, place, cell).or_else(|| column_head(text, place, cell, &mut Near::default()))
}

/// Before the first value of a row there is at least `INTO t(c)VALUES(`.
const INSERT_BYTES_MIN: usize = 16 + crate::ruleset::SHAPE_BYTES_MIN;

/// What such a statement holds, in either case.
static INTO: [LazyLock<Finder<'static>>; 2] = [
    LazyLock::new(|| Finder::new(b"INTO ")),
    LazyLock::new(|| Finder::new(b"into ")),
];
static VALUES: [LazyLock<Finder<'static>>; 2] = [
    LazyLock::new(|| Finder::new(b"VALUES")),
    LazyLock::new(|| Finder::new(b"values")),
];

/// Does the cell hold statements that insert rows? Asked once for each cell.
fn inserts(text: &[u8], cell: &Cell, near: &mut Near) -> bool {
    let floor = cell.span.start as usize;
    match near.inserts {
        Some((start, inserts)) if start == cell.span.start => inserts,
        _ => {
            let head = &text[floor..(cell.span.end as usize).min(floor + INSERT_BYTES_MAX)];
            let stands = |words: &[LazyLock<Finder<'static>>; 2]| {
                words.iter().any(|word| word.find(head).is_some())
            };
            let inserts = head.len() >= INSERT_BYTES_MIN && stands(&VALUES) && stands(&INTO);
            near.inserts = Some((cell.span.start, inserts));
            inserts
        }
    }
}

/// SQL: the column that a value of an `INSERT` stands for.
fn row_column(text: &[u8], span: Span, cell: &Cell) -> Option<Span> {
    let floor = cell.span.start as usize;
    let reach = (span.start as usize)
        .saturating_sub(LINE_BYTES_MAX)
        .max(floor);
    let before = &text[reach..span.start as usize];
    let (columns, rows) = rows_of(before)?;
    let nth = place_in_row(rows)?;
    let open = memchr::memrchr(b'(', columns)? + 1;
    let over = columns[open..].split(|b| *b == b',').nth(nth)?;
    let start = over.as_ptr().addr() - text.as_ptr().addr();
    (over.len() <= COLUMN_BYTES_MAX).then(|| Span::new(start, start + over.len()))
}

/// What a statement has before `VALUES`, behind the last word of which a bracket was shut, and what it has behind it.
fn rows_of(statement: &[u8]) -> Option<(&[u8], &[u8])> {
    const WORD: &[u8] = b"VALUES";
    memchr::memrchr2_iter(b'S', b's', statement).find_map(|last| {
        let (head, rows) = statement.split_at(last + 1);
        let (head, word) = head.split_at(head.len().checked_sub(WORD.len())?);
        if !word.eq_ignore_ascii_case(WORD) {
            return None;
        }
        let columns = head.trim_ascii_end().strip_suffix(b")")?;
        Some((columns, rows))
    })
}

/// So many brackets are asked whether a row begins with them.
const BRACKETS_MAX: usize = 64;

/// How many values stand before the end of what begins with rows, in the row that it ends in: the last that begins behind nothing or behind
/// the comma after another one. What was quoted before that row is not looked at: how marks are written within a text depends on the
/// database, and one that is misread would part all that follows in wrong places.
fn place_in_row(rows: &[u8]) -> Option<usize> {
    let begins = |at: &usize| {
        let lead = rows[..*at].trim_ascii_end();
        let next = lead.strip_suffix(b",").map(<[u8]>::trim_ascii_end);
        lead.is_empty() || next.is_some_and(|lead| lead.ends_with(b")"))
    };
    let mut brackets = memchr::memrchr_iter(b'(', rows).take(BRACKETS_MAX);
    let row = &rows[brackets.find(begins)? + 1..];
    let (mut depth, mut quoted, mut nth) = (1_usize, false, 0);
    for b in row {
        match b {
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => nth += 1,
            _ => {}
        }
    }
    (depth > 0).then_some(nth)
}

/// The first line of a cell, when it is cut into columns.
fn first_line(cell: &[u8]) -> Option<Head> {
    let end = memchr::memchr(b'\n', &cell[..cell.len().min(HEAD_BYTES_MAX)])?;
    let count = |d: u8| memchr::memchr_iter(d, &cell[..end]).count();
    let delimiter = [b';', b',', b'\t', b'|']
        .into_iter()
        .max_by_key(|d| count(*d))?;
    (count(delimiter) > 0).then_some(Head { end, delimiter })
}
