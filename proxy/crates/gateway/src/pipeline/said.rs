//! What a server said last, so that a value split over successive messages is found when its last part comes.
//!
//! The pipeline keeps nothing between messages: whoever carries a stream keeps a [`Said`], and lends it to the judge of
//! the next message. What has gone is gone; what is found is the part in the message at hand, and that is redacted or
//! blocked.

use std::collections::VecDeque;
use std::ops::Range;

use dlp_scan::{Budget, Category, Finding, LeafInput, LeafKind, Outcome};
use domain::Direction;
use mcp_codec::{Document, Leaf};
use smallvec::SmallVec;

use super::judge::Judge;
use super::scratch;

/// Kept of each text.
const TAIL_BYTES_MAX: usize = 512;
/// Of these, what is kept of the beginning of a value that may go on, and of what stands before it: its first line says what
/// it is, however long it gets.
const FRONT_BYTES_MAX: usize = 256;
const BEFORE_BYTES_MAX: usize = 128;
/// Read of what follows.
const HEAD_BYTES_MAX: usize = 1024;
/// The same where a value goes on for longer. What is longer still is taken for a part of it to its end.
const LONG_HEAD_BYTES_MAX: usize = 32 * 1024;
/// The confidence of what is told by its own form.
const SURE: u8 = 90;
/// Of so many messages it is known where they begin.
const STARTS_MAX: usize = 3;
/// Names whose texts are kept at once.
const TAILS_MAX: usize = 4;
/// Kept of each name, which is the server's.
const NAME_BYTES_MAX: usize = 64;
/// No word of prose is longer.
const WORD_CHARS_MAX: usize = 24;

/// What was taken out of a message: the index of the leaf, and where in its text.
pub(super) type Taken = (u32, Range<u32>);

/// The ends of the texts that were sent on a stream.
#[derive(Clone, Default)]
pub struct Said {
    /// By the name of their leaf, the newest last.
    tails: VecDeque<Tail>,
}

#[derive(Clone, Default)]
struct Tail {
    name: String,
    text: String,
    /// Whether it does not go on with what was said before under that name.
    begins: bool,
    /// Whether it begins with what was taken out.
    goes_on: bool,
    /// Where a value begins that was taken out, and reaches the end: it may not be over.
    open: Option<usize>,
    /// What the short texts cost that were taken for parts of it.
    short_parts: u16,
    /// How long the last one was, at the end of the text.
    last_part: usize,
    /// Where the last messages begin in it: what was said before them hides no half that they begin with.
    starts: SmallVec<[usize; STARTS_MAX]>,
}

/// Hides the texts, which may be secrets.
impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Said")
            .field("tails", &self.tails.len())
            .finish_non_exhaustive()
    }
}

/// The end of what was said and the leaf that may go on with it.
struct Seam<'a> {
    tail: &'a Tail,
    leaf: u32,
    name: Option<&'a str>,
    after: &'a str,
}

impl Said {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// What a message says that goes on its way. Of a text from which something was taken out only what stands behind it is
    /// kept, so that it is not kept here either; but what reaches the end may be a half, and its other half is known by the
    /// first alone.
    pub(super) fn of(doc: &Document, mut taken: Vec<Taken>) -> Self {
        taken.sort_unstable_by_key(|(leaf, _)| *leaf);
        let mut taken = &*taken;
        let mut said = Self::default();
        for (index, leaf) in texts(doc) {
            taken = &taken[taken.partition_point(|(leaf, _)| *leaf < index)..];
            let own = &taken[..taken.partition_point(|(leaf, _)| *leaf == index)];
            said.append(name_of(&leaf), Piece::of(leaf.text, own));
        }
        said
    }

    /// What a message says that does not go on its way: nothing but the halves of what it was stopped for, and that there are
    /// no more of those that were known.
    pub(super) fn of_stopped(doc: &Document, taken: Vec<Taken>) -> Self {
        let mut said = Self::of(doc, taken);
        for tail in said.tails.iter_mut().filter(|tail| tail.open.is_none()) {
            tail.text.clear();
        }
        said
    }

    /// Goes on with what was said next.
    pub fn extend(&mut self, next: &Self) {
        for tail in &next.tails {
            let piece = Piece {
                text: &tail.text,
                begins: tail.begins,
                goes_on: tail.goes_on,
                open: tail.open,
            };
            self.append(&tail.name, piece);
        }
    }

    fn append(&mut self, name: &str, piece: Piece<'_>) {
        let known = self.tails.iter().position(|tail| tail.name == name);
        if piece.text.is_empty() {
            // What was not over is; the rest stands where it stood.
            if let Some(at) = known.filter(|at| self.tails[*at].open.is_some()) {
                self.tails.remove(at);
            }
            return;
        }
        let known = known.and_then(|at| self.tails.remove(at));
        let follows = |tail: &Tail| !piece.begins && (tail.open.is_none() || tail.may_hold(&piece));
        let full =
            |tails: &mut VecDeque<Tail>| (tails.len() == TAILS_MAX).then(|| tails.pop_front())?;
        let mut tail = match known {
            Some(tail) if follows(&tail) => tail,
            // Whose texts are over makes room for the next one's.
            other => {
                let over = other.is_some();
                let mut tail = other.or_else(|| full(&mut self.tails)).unwrap_or_default();
                tail.begin(name, &piece);
                tail.begins |= over;
                tail
            }
        };
        tail.push(&piece);
        self.tails.push_back(tail);
    }

    /// Each text under its own name, and the last one under the first.
    fn seams<'a>(&'a self, doc: &'a Document) -> Vec<Seam<'a>> {
        let seam = |tail: &'a Tail, leaf: u32, after: &Leaf<'a>| Seam {
            tail,
            leaf,
            name: after.name,
            after: after.text,
        };
        let mut seams = Vec::with_capacity(self.tails.len() + 1);
        let first_of_all = texts(doc).next();
        if let (Some(tail), Some((index, leaf))) = (self.tails.back(), &first_of_all)
            && name_of(leaf) != tail.name
        {
            seams.push(seam(tail, *index, leaf));
        }
        for tail in &self.tails {
            let same = |leaf: &Leaf<'_>| name_of(leaf) == tail.name;
            if let Some((index, leaf)) = texts(doc).find(|(_, leaf)| same(leaf)) {
                seams.push(seam(tail, index, &leaf));
            }
        }
        seams
    }

    /// Adds what is found over the seam between this message and what was said before.
    pub(super) fn scan(
        &self,
        direction: Direction,
        doc: &Document,
        judge: &Judge<'_>,
        budget: &Budget,
        outcome: &mut Outcome,
    ) {
        let keeps = judge.keeps(direction);
        // Each by itself: they are no neighbours.
        for seam in self.seams(doc) {
            seam.scan(outcome, |input| {
                scratch::with_scanner(|scanner| {
                    scanner.scan_for(judge.rules, std::iter::once(input), budget, &keeps)
                })
            });
        }
        outcome
            .findings
            .sort_by_key(|f| (f.leaf, f.start, std::cmp::Reverse(f.end)));
        outcome
            .findings
            .dedup_by_key(|f| (f.leaf, f.start, f.end, f.rule));
    }
}

/// What is kept of one text.
struct Piece<'a> {
    text: &'a str,
    /// As in [`Tail`].
    begins: bool,
    goes_on: bool,
    open: Option<usize>,
}

impl<'a> Piece<'a> {
    fn of(text: &'a str, taken: &[Taken]) -> Self {
        let taken = taken
            .iter()
            .map(|(_, range)| range.start as usize..range.end as usize);
        let (open, over): (Vec<_>, Vec<_>) = taken.clone().partition(|r| r.end >= text.len());
        let open = open.into_iter().map(|range| range.start).min();
        let over = over.into_iter().map(|range| range.end).max();
        let from = over.unwrap_or(0).min(open.unwrap_or(text.len()));
        Self {
            text: text.get(from..).unwrap_or(text),
            begins: over.is_some(),
            goes_on: taken.clone().any(|range| range.start == 0),
            open: open.map(|open| open - from),
        }
    }
}

impl Tail {
    /// Another text, which keeps the room of the one before.
    fn begin(&mut self, name: &str, piece: &Piece<'_>) {
        self.name.clear();
        self.name.push_str(name);
        self.text.clear();
        self.starts.clear();
        (self.open, self.short_parts, self.last_part) = (None, 0, 0);
        (self.begins, self.goes_on) = (piece.begins, piece.goes_on);
    }

    fn push(&mut self, piece: &Piece<'_>) {
        let mut open = piece.open;
        if !self.may_go_on(piece) {
            // The value is over, and this one is no part of it.
            self.text.clear();
            self.starts.clear();
            (self.open, self.short_parts, self.last_part, open) = (None, 0, 0, None);
        }
        if self.starts.len() == STARTS_MAX {
            self.starts.remove(0);
        }
        self.starts.push(self.text.len());
        let [front, rest] = kept(piece.text, open);
        let open = match open {
            Some(at) => Some(self.text.len() + at - front.start),
            None => self.open.filter(|_| self.may_hold(piece)),
        };
        // One that goes on began where it began.
        self.open = open.map(|at| self.open.unwrap_or(at));
        self.text.push_str(&piece.text[front]);
        self.text.push_str(&piece.text[rest]);
        let [front, rest] = kept(&self.text, self.open);
        self.text.drain(front.end..rest.start);
        self.text.drain(..front.start);
        self.open = self.open.map(|at| at - front.start);
        let (gone, left_out) = (front.start, rest.start - front.end);
        self.starts.retain(|start| {
            let is_kept = front.contains(start) || rest.contains(start);
            let before = gone + if *start < rest.start { 0 } else { left_out };
            *start = start.saturating_sub(before);
            is_kept
        });
    }

    /// Whether a value that was not over goes on with this. Short texts may be but words that look like parts of it.
    fn may_go_on(&mut self, piece: &Piece<'_>) -> bool {
        let is_short = piece.text.len() < LONG_BYTES_MIN;
        let is_part = piece.goes_on || self.open.is_some() && self.may_hold(piece);
        if !is_part || !is_short {
            self.last_part = 0;
            return true;
        }
        let is_word = piece.text.len() > 2
            && matches!(word_of(piece.text), (word, "") if shape(word).is_some());
        let cost = if is_word { WORD_PART_COST } else { 1 };
        self.short_parts = self.short_parts.saturating_add(cost);
        let is_alike = self.last_begins_as(piece.text) && !is_random(piece.text);
        self.last_part = piece.text.len();
        self.short_parts <= SHORT_PARTS_MAX && !is_alike
    }

    /// Whether the value that is open may reach over this text: it is a part of it, or a number, of which nobody can tell.
    fn may_hold(&self, piece: &Piece<'_>) -> bool {
        piece.goes_on || piece.open.is_none() && piece.text.bytes().all(|b| b.is_ascii_digit())
    }

    /// Whether a text is cut as the last short part was, to its length, or byte by byte: nobody speaks in single letters.
    fn is_cut_as(&self, text: &str) -> bool {
        (self.last_part == text.len() || text.len() == 1) && text.bytes().all(is_of_key)
    }

    /// Whether a text begins as the last short part did, as words that count do and no parts of one value.
    fn last_begins_as(&self, text: &str) -> bool {
        let last = self.text.len().saturating_sub(self.last_part);
        let last = &self.text.as_bytes()[last..];
        let same = last.iter().zip(text.as_bytes());
        same.take_while(|(a, b)| a == b).count() >= ALIKE_BYTES_MIN
    }
}

/// What is kept of a text: its end; and of a value that goes on its beginning as well.
fn kept(text: &str, open: Option<usize>) -> [Range<usize>; 2] {
    let len = text.len();
    let from = match open {
        Some(at) if len > TAIL_BYTES_MAX => {
            text.floor_char_boundary(at.saturating_sub(BEFORE_BYTES_MAX))
        }
        Some(_) => 0,
        None => text.ceil_char_boundary(len.saturating_sub(TAIL_BYTES_MAX)),
    };
    if len - from <= TAIL_BYTES_MAX {
        return [from..len, len..len];
    }
    let rest = text.ceil_char_boundary(len - (TAIL_BYTES_MAX - FRONT_BYTES_MAX));
    [
        from..text.floor_char_boundary(from + FRONT_BYTES_MAX),
        rest..len,
    ]
}

impl Seam<'_> {
    fn scan(&self, outcome: &mut Outcome, scan: impl Fn(LeafInput<'_>) -> Outcome) {
        let open = self.tail.open;
        // The rest of a value, or something new: of what may not be over the first word alone says it.
        let anew = begins_anew(self.after) && !self.tail.is_cut_as(self.after);
        if open.is_some() && anew {
            return;
        }
        // Each message is read by itself as well: in its own nothing of the one before stood right before it.
        let mut froms: SmallVec<[usize; STARTS_MAX + 2]> = SmallVec::new();
        for from in [0].into_iter().chain(open).chain(self.tail.starts.clone()) {
            if !froms.contains(&from) {
                froms.push(from);
            }
        }
        for from in froms {
            let mut found = self.found(from, anew, outcome, &scan);
            outcome.findings.append(&mut found);
        }
    }

    /// Whether a finding that lies on both sides is one value, of which so much was said before. Sentences go on with any word. Of what
    /// nothing was found in so far, words and whole identifiers are over; and words begin something new, unless they end what is surely a
    /// secret with them (`OQ` the checksum of a token).
    fn is_one(&self, finding: &Finding, from: usize, anew: bool) -> bool {
        let start = from + finding.start as usize;
        let said = |range: Range<usize>| self.tail.text.get(range).unwrap_or_default();
        let end = self.tail.text.len();
        // It may go over more messages than the last.
        let seams = self.tail.starts.iter().filter(|seam| **seam > start);
        let was_over = || {
            seams
                .clone()
                .any(|seam| is_over(said(start..*seam), said(*seam..end)))
        };
        let ends_it = || finding.confidence >= SURE;
        self.tail.open.is_some()
            || finding.category == Category::Injection
            || !was_over() && !is_over(said(start..end), self.after) && (!anew || ends_it())
    }

    /// What is found on both sides, where what was said is read from here on.
    fn found(
        &self,
        from: usize,
        anew: bool,
        outcome: &mut Outcome,
        scan: impl Fn(LeafInput<'_>) -> Outcome,
    ) -> Vec<Finding> {
        let said = self.tail.text.get(from..).unwrap_or_default();
        let mut head = HEAD_BYTES_MAX;
        loop {
            let after = first(self.after, head);
            let text = [said, after].concat();
            let over = scan(LeafInput {
                text: &text,
                kind: LeafKind::String,
                name: self.name,
            });
            let found = over.findings.into_iter();
            let found = found.filter(|found| self.is_one(found, from, anew));
            let found = found.filter_map(|found| self.crossed(found, said.len()));
            let mut found: Vec<Finding> = found.collect();
            let mut longer = found.iter_mut().filter(|f| f.end as usize == after.len());
            let is_cut = after.len() < self.after.len();
            if is_cut && head < LONG_HEAD_BYTES_MAX && longer.next().is_some() {
                head = LONG_HEAD_BYTES_MAX;
                continue;
            }
            if is_cut {
                longer.for_each(|f| f.end = u32::try_from(self.after.len()).unwrap_or(u32::MAX));
            }
            outcome.over_budget = outcome.over_budget.or(over.over_budget);
            return found;
        }
    }

    /// The part in the leaf, of a finding that lies on both sides.
    fn crossed(&self, mut finding: Finding, at: usize) -> Option<Finding> {
        let at = u32::try_from(at).ok()?;
        let end = finding.end.checked_sub(at).filter(|end| *end > 0)?;
        (finding.start < at).then(|| {
            (finding.leaf, finding.start, finding.end) = (self.leaf, 0, end);
            finding
        })
    }
}

/// Whether what was said ends with something whole: a UUID (RFC 9562), or a word of small letters where what follows may be one as well
/// (`ghp` goes on with what nobody writes by itself).
fn is_over(before: &str, after: &str) -> bool {
    let is_word = match shape(before) {
        Some(Shape::Capitalised) => true,
        Some(Shape::Plain) => before.len() > 2 && !before.contains(char::is_uppercase),
        None => false,
    };
    let mut groups = before.split('-');
    let is_group = |len: usize, group: Option<&str>| {
        group.is_some_and(|g| g.len() == len && g.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let is_uuid = [8, 4, 4, 4, 12]
        .into_iter()
        .all(|len| is_group(len, groups.next()));
    let next = after.split_whitespace().next().unwrap_or_default();
    is_word && !is_random(before) && !is_random(next) || is_uuid && groups.next().is_none()
}

/// Whether a text begins as no rest of a value does. Who takes a word for the rest of a value spoils it; who takes the rest for
/// a word lets a part of a secret through. So the first word has to look like a part of something random: long and of the signs
/// that keys are made of, or of letters in both cases, or with digits or other signs among them; and no path, hour, ratio or
/// label. Beside that, a date or JSON, a capitalised word and two plain words are none.
fn begins_anew(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    if !may_be_rest(word) {
        return true;
    }
    let date = b"dddd-dd-dd".iter().zip(text.as_bytes());
    let is_date = text.len() >= 10
        && date.into_iter().all(|(form, byte)| match form {
            b'd' => byte.is_ascii_digit(),
            _ => byte == form,
        });
    if is_date || text.starts_with("{\"") {
        return true;
    }
    let (word, rest) = word_of(text.strip_prefix('[').unwrap_or(text));
    let rest = rest
        .strip_prefix(|c| ".,:;!?)]".contains(c))
        .unwrap_or(rest);
    let next = rest.trim_start();
    let ends = next.is_empty() || next.len() < rest.len();
    match shape(word) {
        Some(Shape::Capitalised) => ends,
        Some(Shape::Plain) => ends && shape(word_of(next).0).is_some(),
        None => false,
    }
}

/// Short parts that cost more than this are no parts of one value, but words that look like such.
const SHORT_PARTS_MAX: u16 = 1024;
/// What a part costs that may be a word, against one of any others.
const WORD_PART_COST: u16 = 16;
/// Nor are two that have so many bytes of their beginning in common.
const ALIKE_BYTES_MIN: usize = 3;
/// Shorter words are a rest only if they look like one in every way.
const LONG_BYTES_MIN: usize = 20;

fn may_be_rest(word: &str) -> bool {
    let any = |is: fn(&u8) -> bool| word.bytes().any(|b| is(&b));
    let (letters, digits) = (any(u8::is_ascii_alphabetic), any(u8::is_ascii_digit));
    let mixed = any(u8::is_ascii_lowercase) && any(u8::is_ascii_uppercase);
    let is_path = word.contains('/') && (word.contains('.') || word.starts_with(['/', '~']));
    // What ends a key.
    if word.starts_with("-----") {
        return true;
    }
    // No word, and no path: but names stand before colons that look like this.
    if is_random(word) && !word.contains(':') {
        return true;
    }
    if word.len() >= LONG_BYTES_MIN {
        return !is_path && word.bytes().all(is_of_key) && (digits || mixed);
    }
    let sign = any(|b| b"!@#$^&*?".contains(b));
    let parts = word.contains(['/', ':']) || word.ends_with(['%', ',', ';']);
    letters && !parts && (digits || mixed || sign)
}

/// Whether a text has what words, names and paths have not: one kind of sign after another in no order, or no vowels.
fn is_random(text: &str) -> bool {
    let pairs = text.as_bytes().windows(2);
    let turns = pairs.filter(|pair| match (kind(pair[0]), kind(pair[1])) {
        // Capitalised words are joined to names.
        (Kind::Capital, Kind::Small) => false,
        (Kind::Other, _) | (_, Kind::Other) => false,
        (a, b) => a != b,
    });
    let turns = turns.count();
    if turns >= TURNS_MIN && turns * TURNS_EVERY_MAX >= text.len() {
        return true;
    }
    let mut run = 0;
    text.bytes().any(|byte| {
        let is_vowel = b"aeiouyAEIOUY".contains(&byte);
        run = if byte.is_ascii_alphabetic() && !is_vowel {
            run + 1
        } else {
            0
        };
        run >= CONSONANTS_MIN
    })
}

/// So many turns between kinds of signs, and one in so many bytes, are in no word.
const TURNS_MIN: usize = 3;
const TURNS_EVERY_MAX: usize = 4;
/// Nor are so many consonants.
const CONSONANTS_MIN: usize = 7;

#[derive(PartialEq, Eq)]
enum Kind {
    Small,
    Capital,
    Digit,
    Other,
}

fn kind(byte: u8) -> Kind {
    match byte {
        b'a'..=b'z' => Kind::Small,
        b'A'..=b'Z' => Kind::Capital,
        b'0'..=b'9' => Kind::Digit,
        _ => Kind::Other,
    }
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-_.~".contains(&byte)
}

enum Shape {
    Capitalised,
    /// Of small letters, or of capital ones.
    Plain,
}

fn shape(word: &str) -> Option<Shape> {
    let mut rest = word.chars();
    let first = rest.next()?;
    let small = rest.clone().all(char::is_lowercase);
    let is_word = word.chars().nth(WORD_CHARS_MAX).is_none();
    match first.is_uppercase() {
        true if small && word.chars().count() > 2 => Some(Shape::Capitalised),
        true if rest.all(char::is_uppercase) => Some(Shape::Plain),
        false if small && first.is_lowercase() => Some(Shape::Plain),
        _ => None,
    }
    .filter(|_| is_word)
}

/// The letters that a text begins with, and what follows them.
fn word_of(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_alphabetic());
    text.split_at(end.unwrap_or(text.len()))
}

/// The texts of a message that a model or a user may read on, with their leaves' indexes.
fn texts(doc: &Document) -> impl Iterator<Item = (u32, Leaf<'_>)> {
    let steers = |name: &str| {
        matches!(
            name,
            "jsonrpc"
                | "method"
                | "id"
                | "level"
                | "logger"
                | "progressToken"
                | "requestId"
                | "type"
                | "role"
                | "mimeType"
                | "uri"
        )
    };
    // What a server calls so in its own data steers nothing.
    let data = [["params", "data"], ["result", "structuredContent"]];
    let data = data.map(|keys| doc.get(&keys).map(|node| doc.raw_span(node)));
    let is_data = move |leaf: &Leaf<'_>| {
        let at = doc.raw_span(leaf.node).start;
        data.iter().flatten().any(|span| span.contains(&at))
    };
    let free = move |leaf: &Leaf<'_>| {
        leaf.kind == mcp_codec::LeafKind::String
            && !leaf.text.is_empty()
            && (!leaf.name.is_some_and(steers) || is_data(leaf))
    };
    (0u32..)
        .zip(doc.leaves())
        .filter(move |(_, leaf)| free(leaf))
}

/// Texts belong together that are called the same.
fn name_of<'a>(leaf: &Leaf<'a>) -> &'a str {
    first(leaf.name.unwrap_or_default(), NAME_BYTES_MAX)
}

fn first(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests;
