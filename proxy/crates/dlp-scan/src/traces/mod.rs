//! What a text shows at first sight: where its numbers, long runs and signs stand that some detector or decoder begins
//! with. One pass asks each block of 64 bytes once; who comes later looks only where there is something.
//!
//! All questions look back, so that no block waits for the next: a place is noted when its last byte has been seen.

mod lanes;
mod lead;
mod signs;
mod starts;
#[cfg(target_arch = "x86_64")]
mod wide;

use std::ops::Range;

pub(crate) use self::lanes::BLOCK;
use self::lanes::{BACK, Lanes, Plain, Window};
use self::lead::Lead;
pub(crate) use self::signs::Signs;
use crate::text::{RUN_BYTES_MIN, Span, to_u32};

/// Bytes of the shortest row of twelve words with at least three letters.
pub(crate) const WORDS_BYTES_MIN: usize = 12 * 4 - 1;

/// A worker keeps the room for so many places, of four bytes each.
const PLACES_KEPT: usize = 1 << 18;

/// What was seen of a text.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// Which bytes are digits, letters or digits, capital letters, and no ASCII, a bit each; a block more than there is text.
    kinds: Vec<Kinds>,
    /// The long runs of letters and digits; see [`crate::text::is_run`].
    pub runs: Vec<Span>,
    /// Every `@`.
    pub ats: Vec<u32>,
    /// The second of two colons with at most four hexadecimal digits between them.
    pub colons: Vec<u32>,
    /// The second of two dots with one to three digits between them, and a digit before.
    pub dots: Vec<u32>,
    /// The digit or second blank behind a comma that has a hexadecimal digit before it.
    pub commas: Vec<u32>,
    /// What of a number may follow `+`, and the third digit behind `(`.
    pub phones: Vec<u32>,
    /// Signs that may join two literals, behind a quotation mark or a blank.
    pub joints: Vec<u32>,
    /// For each block of [`BLOCK`] bytes the first place that may part columns: the second of two blanks behind something, what
    /// stands behind a tab, a bar, or a comma or semicolon that has no blank on either side; a line of a box.
    pub cuts: Vec<u32>,
    /// The last of seven equal separators, every second byte.
    pub spaced: Vec<u32>,
    /// The separator behind the last of seven pairs of hexadecimal digits.
    pub pairs: Vec<u32>,
    /// Rows of at least [`WORDS_BYTES_MIN`] bytes that are small letters and single blanks, with no word of less than
    /// three letters between two blanks.
    pub words: Vec<Span>,
    /// There are characters that are neither ASCII nor what Latin scripts and typography bring along; see [`Lead`].
    pub strange: bool,
    /// There is `=` before a line end, or before two hexadecimal digits and another `=`.
    pub quoted: bool,
    /// There is `0000`.
    pub zeros: bool,
    /// There is a backslash before what it may escape, `%` before hexadecimal digits, `&` before a letter or `#`.
    pub written: Written,
    /// Signs that decoders look for in the whole text.
    pub signs: Signs,
    /// How many bytes are such as part cells, in values or between them.
    pub parting: u32,
}

/// Whether there are beginnings of characters that are written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub backslash: bool,
    pub percent: bool,
    pub entity: bool,
}

impl Written {
    pub fn any(self) -> bool {
        self.backslash | self.percent | self.entity
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Kinds {
    digit: u64,
    alnum: u64,
    upper: u64,
    high: u64,
}

impl Traces {
    /// Reads a text, in place of what was read before.
    pub fn read(&mut self, text: &[u8]) {
        self.clear();
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = wide::Wide::detect().next() {
            wide.read(text, self);
            return;
        }
        Reader::read::<Plain>(text, self);
    }

    /// Where the next byte stands from `at` on that is not ASCII.
    pub fn next_wide(&self, at: usize) -> Option<usize> {
        let mut nth = at / BLOCK;
        let mut high = self.kinds.get(nth)?.high & (u64::MAX << (at % BLOCK));
        while high == 0 {
            nth += 1;
            high = self.kinds.get(nth)?.high;
        }
        Some(nth * BLOCK + high.trailing_zeros() as usize)
    }

    /// Where the blocks of [`BLOCK`] bytes begin that have at least so many letters.
    pub fn lettered(&self, least: u32) -> impl Iterator<Item = usize> {
        let blocks = self.kinds.iter().enumerate();
        blocks.filter_map(move |(nth, kinds)| {
            let letters = kinds.alnum & !kinds.digit;
            (letters.count_ones() >= least).then_some(nth * BLOCK)
        })
    }

    /// Where the second halves of blocks begin that have at least so many bytes of ASCII which are no letters or digits.
    pub fn signed(&self, least: u32) -> impl Iterator<Item = usize> {
        let blocks = self.kinds.iter().enumerate();
        blocks.filter_map(move |(nth, kinds)| {
            let signs = !(kinds.alnum | kinds.high) >> (BLOCK / 2);
            (signs.count_ones() >= least).then_some(nth * BLOCK + BLOCK / 2)
        })
    }

    /// Gives back what a long text needed.
    pub fn recycle(&mut self) {
        let lists = [
            &self.ats,
            &self.colons,
            &self.dots,
            &self.commas,
            &self.phones,
            &self.joints,
            &self.cuts,
            &self.spaced,
            &self.pairs,
        ];
        let places: usize = lists.iter().map(|list| list.capacity()).sum();
        let spans = self.runs.capacity() + self.words.capacity();
        if places + 2 * spans + 4 * self.kinds.capacity() > PLACES_KEPT {
            *self = Self::default();
        }
    }

    fn clear(&mut self) {
        self.kinds.clear();
        self.runs.clear();
        self.words.clear();
        (self.strange, self.quoted, self.zeros) = (false, false, false);
        (self.written, self.signs) = (Written::default(), Signs::default());
        self.parting = 0;
        for list in [
            &mut self.ats,
            &mut self.colons,
            &mut self.dots,
            &mut self.commas,
            &mut self.phones,
            &mut self.joints,
            &mut self.cuts,
            &mut self.spaced,
            &mut self.pairs,
        ] {
            list.clear();
        }
    }

    /// The first digit at or after `at`.
    pub fn next_digit(&self, at: usize) -> Option<usize> {
        let mut block = at / BLOCK;
        let mut digits = self.kinds.get(block)?.digit & (u64::MAX << (at % BLOCK));
        while digits == 0 {
            block += 1;
            digits = self.kinds.get(block)?.digit;
        }
        Some(block * BLOCK + digits.trailing_zeros() as usize)
    }

    /// Where the letters and digits before `at` begin, no earlier than `floor`.
    pub fn word_start(&self, at: usize, floor: usize) -> usize {
        let mut start = at;
        while start > floor {
            let (block, bits) = ((start - 1) / BLOCK, (start - 1) % BLOCK);
            let before = self.kinds.get(block).map_or(0, |k| k.alnum) << (BLOCK - 1 - bits);
            let len = before.leading_ones() as usize;
            start -= len;
            if len <= bits {
                break;
            }
        }
        start.max(floor.min(at))
    }

    /// The letters and digits from `range.start` on: how many there are within the range, and whether there are digits
    /// and letters among them.
    pub fn word(&self, range: Range<usize>) -> (usize, bool, bool) {
        let (mut at, mut digits, mut letters) = (range.start, false, false);
        while at < range.end {
            let (block, first) = (at / BLOCK, at % BLOCK);
            let kinds = self.kinds.get(block).copied().unwrap_or_default();
            let room = (BLOCK - first).min(range.end - at);
            let len = ((kinds.alnum >> first).trailing_ones() as usize).min(room);
            let mask = u64::MAX.checked_shr((BLOCK - len) as u32).unwrap_or(0) << first;
            digits |= kinds.digit & mask != 0;
            letters |= kinds.alnum & !kinds.digit & mask != 0;
            at += len;
            if len < room {
                break;
            }
        }
        (at - range.start, digits, letters)
    }
}

/// What the next block goes on from.
#[derive(Default)]
struct Reader {
    /// Of the text, in bytes.
    len: usize,
    /// Where a long run began that goes on, and a row of words.
    run: Option<usize>,
    words: Option<usize>,
    last: Answers,
}

/// The answers about one block.
#[derive(Clone, Copy, Default)]
struct Answers {
    digit: u64,
    hex: u64,
    alnum: u64,
    blank: u64,
    /// Blanks, tabs and line ends.
    space: u64,
    quote: u64,
    comma: u64,
    colon: u64,
    dot: u64,
    plus: u64,
    paren: u64,
    equals: u64,
    zero: u64,
    backslash: u64,
    percent: u64,
    and: u64,
    high: u64,
    lead: Lead,
    /// Bytes of runs; the last of 2, 4, 8 and 16 such.
    run: [u64; 5],
    /// As the byte two before; so is that one, too.
    twice: [u64; 2],
    /// A separator behind a pair of digits; the same behind two, three pairs.
    pair: [u64; 3],
    /// Tabs and their like, commas and semicolons, and first bytes of a line of a box.
    tab: u64,
    parted: u64,
    boxed: u64,
    /// Bytes of rows of words; the last of 2, 4, 8, 16 and 32 such.
    words: [u64; 6],
    /// The last of [`WORDS_BYTES_MIN`] such.
    enough_words: u64,
}

/// The answers for the byte `n` before each.
#[inline(always)]
fn back(this: u64, last: u64, n: u32) -> u64 {
    this << n | last >> (u64::BITS - n)
}

impl Reader {
    #[inline(always)]
    fn read<L: Lanes>(text: &[u8], traces: &mut Traces) {
        let mut reader = Self {
            len: text.len(),
            ..Self::default()
        };
        for at in (0..text.len()).step_by(BLOCK) {
            let whole = at
                .checked_sub(BACK)
                .and_then(|from| text.get(from..)?.first_chunk());
            match whole {
                Some(window) => reader.block::<L>(at, window, traces),
                None => reader.block::<L>(at, &edge(text, at), traces),
            }
        }
        let open = |start: Option<usize>| start.map(|start| Span::new(start, text.len()));
        traces.runs.extend(open(reader.run));
        traces.words.extend(open(reader.words));
        traces.kinds.push(Kinds::default());
    }

    #[inline(always)]
    fn block<L: Lanes>(&mut self, base: usize, window: &Window, traces: &mut Traces) {
        let block = L::load(window, 0);
        let last = &self.last;
        let folded = block.folded();
        let digit = block.within(b'0', b'9');
        let alnum = digit | folded.within(b'a', b'z');
        let hex = digit | folded.within(b'a', b'f');
        let blank = block.eq(b' ');
        let space = blank | block.within(b'\t', b'\r');
        let quote = block.eq(b'"') | block.eq(b'\'') | block.eq(b'`');
        let (comma, colon, dot) = (block.eq(b','), block.eq(b':'), block.eq(b'.'));
        let (plus, minus, slash) = (block.eq(b'+'), block.eq(b'-'), block.eq(b'/'));
        let (score, equals, paren) = (block.eq(b'_'), block.eq(b'='), block.eq(b'('));
        let zero = block.eq(b'0');
        let (upper, high) = (block.within(b'A', b'Z'), block.high());
        traces.kinds.push(Kinds {
            digit,
            alnum,
            upper,
            high,
        });
        let lead = match high | last.high {
            0 => Lead::default(),
            _ => {
                let lead = Lead::of(&block, &last.lead);
                let dashed = !back(digit, last.digit, 3);
                traces.strange |= high & !lead.plain(&block, &last.lead, high, dashed) != 0;
                lead
            }
        };
        push(&mut traces.ats, base, block.eq(b'@'));

        if colon != 0 {
            let colon_n = |n| back(colon, last.colon, n);
            let (mut near, mut between) = (colon_n(1), u64::MAX);
            for n in 1..=4 {
                between &= back(hex, last.hex, n);
                near |= between & colon_n(n + 1);
            }
            push(&mut traces.colons, base, colon & near);
        }

        let digit_n = |n| back(digit, last.digit, n);
        if dot != 0 {
            let dot_n = |n| back(dot, last.dot, n);
            let one = dot_n(2) & digit_n(3);
            let two = digit_n(2) & dot_n(3) & digit_n(4);
            let three = digit_n(2) & digit_n(3) & dot_n(4) & digit_n(5);
            push(
                &mut traces.dots,
                base,
                dot & digit_n(1) & (one | two | three),
            );
        }

        let hex_n = |n| back(hex, last.hex, n);
        let space_1 = back(space, last.space, 1);
        let comma_n = |n| back(comma, last.comma, n);
        // The number may stand behind more than one blank.
        let blanks = (digit | space) & space_1 & comma_n(2) & hex_n(3);
        push(
            &mut traces.commas,
            base,
            digit & comma_n(1) & hex_n(2) | blanks,
        );

        if plus | paren | last.plus | last.paren != 0 {
            let plus_1 = back(plus, last.plus, 1) & !back(alnum, last.alnum, 2);
            let country = (digit | blank | minus | dot | slash | paren) & plus_1;
            let area = digit & digit_n(1) & digit_n(2) & back(paren, last.paren, 3);
            push(&mut traces.phones, base, country | area);
        }

        let (backslash, percent, and) = (block.eq(b'\\'), block.eq(b'%'), block.eq(b'&'));
        let sign = plus | dot | and | block.eq(b'~') | block.eq(b'|') | backslash;
        let quote_1 = back(quote, last.quote, 1);
        // Two literals with nothing but blanks between them, the second perhaps in the next line.
        let beside = quote & space_1 & back(quote, last.quote, 2) | block.eq(b'\n') & quote_1;
        push(
            &mut traces.joints,
            base,
            sign & (quote_1 | space_1) | beside,
        );

        let (line, bar, semicolon) = (block.eq(b'\n'), block.eq(b'|'), block.eq(b';'));
        let space_2 = back(space, last.space, 2);
        let gap = blank & back(blank, last.blank, 1) & !space_2;
        let tabbed = alnum & back(tab_of(space, blank, line), last.tab, 1);
        let parted = comma | semicolon;
        let solid = alnum | quote;
        let inner = solid & back(parted, last.parted, 1) & back(solid, last.alnum | last.quote, 2);
        let boxed = match high | last.high {
            0 => 0,
            _ => {
                let first = block.eq(0xE2) | block.eq(0xEF);
                (block.within(0x94, 0x95) | block.eq(0xBD)) & back(first, last.boxed, 1)
            }
        };
        let cuts = gap | tabbed | bar | inner | boxed;
        push(&mut traces.cuts, base, cuts & cuts.wrapping_neg());

        if equals | last.equals != 0 {
            let equals_1 = back(equals, last.equals, 1);
            let pairs = equals & hex_n(1) & hex_n(2) & back(equals, last.equals, 3);
            traces.quoted |= block.eq(b'\n') & equals_1 | pairs != 0;
        }
        if zero != 0 {
            let zero_n = |n| back(zero, last.zero, n);
            traces.zeros |= zero & zero_n(1) & zero_n(2) & zero_n(3) != 0;
        }

        let whole = u64::MAX >> (BLOCK - (self.len - base).min(BLOCK));
        traces.parting += traces.signs.see(&block, window, (digit, digit_n(1)), whole);

        let written = &mut traces.written;
        if backslash | last.backslash != 0 {
            let named = block.eq(b'u') | block.eq(b'U') | block.eq(b'x') | block.eq(b'"');
            // Signs that some put one before, the colon and the at sign among them.
            let sign = block.within(b'#', b'/') | block.within(b':', b'@') | block.eq(b' ');
            let escaped = named | score | sign | block.within(b'0', b'7');
            written.backslash |= escaped & back(backslash, last.backslash, 1) != 0;
        }
        if percent | last.percent != 0 {
            let (one, two) = (
                back(percent, last.percent, 1),
                back(percent, last.percent, 2),
            );
            written.percent |= block.eq(b'u') & one | hex & hex_n(1) & two != 0;
        }
        if and | last.and != 0 {
            let begins = block.eq(b'#') | alnum & !digit;
            written.entity |= begins & back(and, last.and, 1) != 0;
        }

        let of_run = alnum | plus | minus | slash | score;
        let run = rows(of_run, &last.run);
        const { assert!(RUN_BYTES_MIN == 1 << 4) };
        let ends = (run[4], last.run[4]);
        note(ends, RUN_BYTES_MIN, &mut self.run, base, &mut traces.runs);
        let twice = spaced(
            &block,
            block.same(L::load(window, 2)),
            alnum,
            last,
            base,
            traces,
        );
        let separator = blank | colon | minus | comma | dot | score;
        let pair = pairs_of(
            separator & hex_n(1) & hex_n(2),
            || block.same(L::load(window, 3)),
            last,
            base,
            traces,
        );
        let blank_n = |n| back(blank, last.blank, n);
        let short = blank & (blank_n(1) | blank_n(2) | blank_n(3));
        let of_words = (block.within(b'a', b'z') | blank) & !short;
        let words = rows(of_words, &last.words);
        const { assert!(WORDS_BYTES_MIN == 32 + 16 - 1) };
        let enough_words = words[5] & back(words[4], last.words[4], 31);
        let ends = (enough_words, last.enough_words);
        note(
            ends,
            WORDS_BYTES_MIN,
            &mut self.words,
            base,
            &mut traces.words,
        );
        self.last = Answers {
            digit,
            hex,
            alnum,
            blank,
            space,
            quote,
            comma,
            colon,
            dot,
            plus,
            paren,
            equals,
            zero,
            backslash,
            percent,
            and,
            high,
            lead,
            run,
            twice,
            pair,
            tab: tab_of(space, blank, line),
            parted,
            boxed: match high {
                0 => 0,
                _ => block.eq(0xE2) | block.eq(0xEF),
            },
            words,
            enough_words,
        };
    }
}

/// What of blank bytes is neither a blank nor a line end.
#[inline(always)]
fn tab_of(space: u64, blank: u64, line: u64) -> u64 {
    space & !blank & !line
}

/// The last of 1, 2, 4 and so on of the bytes in a row.
#[inline(always)]
fn rows<const N: usize>(one: u64, last: &[u64; N]) -> [u64; N] {
    let mut rows = [one; N];
    for nth in 1..N {
        rows[nth] = rows[nth - 1] & back(rows[nth - 1], last[nth - 1], 1 << (nth - 1));
    }
    rows
}

/// Notes rows that end where the bit of `min` such bytes is no longer set.
#[inline(always)]
fn note(
    (enough, last): (u64, u64),
    min: usize,
    open: &mut Option<usize>,
    base: usize,
    list: &mut Vec<Span>,
) {
    let mut turns = enough ^ back(enough, last, 1);
    while turns != 0 {
        let at = base + turns.trailing_zeros() as usize;
        *open = match *open {
            None => Some(at + 1 - min),
            Some(start) => {
                list.push(Span::new(start, at));
                None
            }
        };
        turns &= turns - 1;
    }
}

/// Notes rows of seven equal separators with something between them.
#[inline(always)]
fn spaced<L: Lanes>(
    block: &L,
    twice: u64,
    alnum: u64,
    last: &Answers,
    base: usize,
    traces: &mut Traces,
) -> [u64; 2] {
    let two = twice & back(twice, last.twice[0], 2);
    let six = two & back(two, last.twice[1], 4) & back(two, last.twice[1], 8);
    if six != 0 {
        let separator = b" .-_,|*/~\t\n+:;"
            .iter()
            .fold(0, |all, b| all | block.eq(*b));
        let between = [1, 3, 5, 7, 9, 11].into_iter();
        let some = between.fold(0, |all, n| all | back(alnum, last.alnum, n));
        push(&mut traces.spaced, base, six & separator & some);
    }
    [twice, two]
}

/// Notes rows of seven pairs of digits with equal separators.
#[inline(always)]
fn pairs_of(
    one: u64,
    same: impl Fn() -> u64,
    last: &Answers,
    base: usize,
    traces: &mut Traces,
) -> [u64; 3] {
    let two = one & back(one, last.pair[0], 3);
    if two | last.pair[1] | last.pair[2] == 0 {
        return [one, 0, 0];
    }
    let two = two & same();
    let three = two & back(two, last.pair[1], 3);
    let seven = three & back(three, last.pair[2], 6) & back(three, last.pair[2], 12);
    push(&mut traces.pairs, base, seven);
    [one, two, three]
}

/// Notes the places of the bits.
#[inline(always)]
fn push(list: &mut Vec<u32>, base: usize, mut bits: u64) {
    while bits != 0 {
        list.push(to_u32(base + bits.trailing_zeros() as usize));
        bits &= bits - 1;
    }
}

/// The window at `at` where the text does not fill it.
fn edge(text: &[u8], at: usize) -> Window {
    let mut window = [0; BACK + BLOCK];
    let from = at.saturating_sub(BACK);
    let to = text.len().min(at + BLOCK);
    let lead = BACK - (at - from);
    window[lead..lead + to - from].copy_from_slice(&text[from..to]);
    window
}

#[cfg(test)]
mod tests;
