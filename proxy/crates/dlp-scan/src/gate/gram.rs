//! The gate in pure Rust. It looks at every 4 bytes of the text, letters folded by setting one bit, in a bitmap that
//! stays in the first-level cache. The positions do not depend on each other, so this runs at a byte a cycle where an
//! automaton waits for each load; what the bitmap lets pass is then confirmed against the few keywords that hold that
//! gram. Each keyword is filed under a gram of its own that others are filed under already, else the one that ordinary
//! text holds least often: what counts is how many places of a text pass for any of them.
//!
//! A gate for whole texts looks at every second place only. Of a word of five bytes and more, one gram begins there
//! wherever the word stands; a shorter one is filed with whatever may stand before it, too: the last three bytes of a
//! gram name a word of the bitmap, so that any first byte is half of one word, and not bits all over.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::{Hit, Keywords, LiteralGate, goes_on_after_three};
use crate::text::word_at;

/// Bits of a hash that name a word of the bitmap, and those that name a bit in either half of it.
pub(super) const WORD_BITS: u32 = 13;
pub(super) const BIT_BITS: u32 = 4;
pub(super) const BITMAP_WORDS: usize = 1 << WORD_BITS;
pub(super) const HASH_FACTOR: u32 = 0x9E37_79B1;
pub(super) const FOLD: u32 = 0x2020_2020;
pub(super) const FOLD64: u64 = 0x2020_2020_2020_2020;
const HEADS: usize = 1 << 14;

/// 32 KiB: what the first-level cache of most processors holds.
pub(super) type Bitmap = [u32; BITMAP_WORDS];

/// The pure Rust gate.
#[derive(Debug)]
pub(crate) struct GramGate {
    /// Each gram sets two bits of one word, so that one load answers for both: one for its first byte, and one for the
    /// others.
    pub(super) bits: Box<Bitmap>,
    /// What of it passes for good reason: short keywords fill the bitmap.
    pub(super) sieve: Sieve,
    /// What of that passes for good reason: many keywords begin alike.
    pub(super) fine: FineSieve,
    /// Where each bucket's entries begin; one more at the end.
    heads: Box<[u32]>,
    /// By bucket.
    entries: Box<[Entry]>,
    keywords: Keywords,
    /// Which places it looks at: all of them, or every second one.
    step: usize,
    #[cfg(target_arch = "x86_64")]
    pub(super) avx2: Option<super::wide::Avx2>,
    #[cfg(target_arch = "x86_64")]
    pub(super) avx512: Option<super::wide512::Avx512>,
}

/// A keyword under one of its grams.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Up to eight bytes from the gram on, folded, and which of them the keyword has; up to seven of those before it.
    /// Tells most texts apart from the keyword without looking it up.
    bytes: u64,
    mask: u64,
    before: u64,
    /// Bits of `before` that are not the keyword's, from the lowest on.
    before_off: u8,
    /// Its place among the gate's keywords, and its number there.
    keyword: u16,
    number: u16,
    /// That no more need be compared: these bytes are all that it has, and letters, which nothing else is folded to.
    whole: bool,
    /// How far into the keyword the gram begins; one before it where its first byte may be any.
    offset: i8,
}

/// A gram that others are filed under lets no more places pass: of two such, the less crowded is taken, and one of its
/// own only where so many share theirs.
const NEW_GRAM: u32 = 10;

/// More short words than this would fill the bitmap, each with all that may stand before it.
const SHORT_WORDS_MAX: usize = 2048;

impl GramGate {
    /// A gate for these keywords, which can look at pieces of a text.
    pub fn new(keywords: Keywords) -> Self {
        Self::with_step(keywords, 1)
    }

    /// A gate for these keywords in whole texts.
    pub fn whole(keywords: Keywords) -> Self {
        let short = keywords.iter().filter(|(_, word)| word.len() < 5).count();
        let step = if short > SHORT_WORDS_MAX { 1 } else { 2 };
        Self::with_step(keywords, step)
    }

    fn with_step(keywords: Keywords, step: usize) -> Self {
        let mut gate = Self {
            bits: Box::new([0; BITMAP_WORDS]),
            sieve: Sieve::default(),
            fine: FineSieve::default(),
            heads: vec![0; HEADS + 1].into(),
            entries: Box::default(),
            keywords: Vec::new(),
            step,
            #[cfg(target_arch = "x86_64")]
            avx2: super::wide::Avx2::detect(),
            #[cfg(target_arch = "x86_64")]
            avx512: super::wide512::Avx512::detect(),
        };
        let mut entries = Vec::new();
        let mut crowd: BTreeMap<u32, u32> = BTreeMap::new();
        // Short ones have no choice of grams, and longer ones take what others have taken.
        let mut by_length: Vec<_> = (0u16..).zip(&keywords).collect();
        by_length.sort_by_key(|(_, (_, word))| word.len());
        for (id, (_, word)) in by_length {
            if word.len() < 5 && step == 2 {
                entries.push(Entry::after_any(word, id));
            }
            if word.len() == 3 {
                // Upper case is folded away.
                for last in
                    (0..=b'z').filter(|b| !b.is_ascii_uppercase() && goes_on_after_three(*b))
                {
                    entries.push(Entry::new(&[word[0], word[1], word[2], last], 0, id));
                }
                continue;
            }
            for phase in 0..step {
                let grams = word
                    .windows(4)
                    .take(24)
                    .enumerate()
                    .skip(phase)
                    .step_by(step);
                let best = grams.min_by_key(|(_, g)| match crowd.get(&fold4(g)) {
                    Some(others) => others / 2,
                    None => NEW_GRAM + commonness(g),
                });
                if let Some((offset, gram)) = best {
                    *crowd.entry(fold4(gram)).or_default() += 1;
                    entries.push(Entry::new(word, offset, id));
                }
            }
        }
        gate.keywords = keywords;
        gate.file(entries);
        gate
    }

    fn file(&mut self, mut entries: Vec<Entry>) {
        entries.sort_by_key(|e| (bucket(e.gram()), e.keyword));
        for entry in &entries {
            self.sieve.add(entry);
            self.fine.add(entry);
            let gram = entry.gram();
            let first = match entry.offset {
                ANY_BEFORE => FIRST_HALF,
                _ => 1 << first_bit(gram),
            };
            let h = hash(gram);
            self.bits[word_of(h)] |= first | 1 << second_bit(h);
            self.heads[bucket(entry.gram()) + 1] += 1;
        }
        for i in 0..HEADS {
            self.heads[i + 1] += self.heads[i];
        }
        let known = entries.into_iter().map(|entry| {
            let (number, word) = &self.keywords[usize::from(entry.keyword)];
            entry.known_as(*number, word)
        });
        self.entries = known.collect();
    }

    /// Looks up the keywords that may stand around a place near the end, or where there are no vectors.
    #[inline(never)]
    fn confirm(&self, text: &[u8], at: usize, out: &mut Vec<Hit>) {
        let word = match word_at(text, at) {
            Some(word) => word | FOLD64,
            None => folded_word(text, at),
        };
        let before = before_word(text, at);
        if self.sieve.passes(word, before) && self.fine.passes(word, before) {
            self.look_up((word, before), text, at, out);
        }
    }

    /// Looks up the keywords around a place that has eight bytes before and after it.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn look_up_at(&self, text: &[u8], at: usize, out: &mut Vec<Hit>) {
        let word = word_at(text, at).map_or(0, |w| w | FOLD64);
        self.look_up((word, before_word(text, at)), text, at, out);
    }

    #[inline(never)]
    fn look_up(&self, (word, before): (u64, u64), text: &[u8], at: usize, out: &mut Vec<Hit>) {
        let gram = word as u32;
        self.confirm_in(bucket(gram), (word, before), text, at, out);
        if self.step == 2 && self.sieve.short(word) {
            self.confirm_in(bucket(gram & !0xFF), (word, before), text, at, out);
        }
    }

    /// Confirms the places that are left of `near` once the sieve has had them. None is within eight bytes of the end.
    #[inline(always)]
    fn sift(&self, text: &[u8], near: &mut Near, out: &mut Vec<Hit>) {
        near.keep(&self.sieve, text);
        near.keep(&self.fine, text);
        for at in &near.at[..near.len] {
            self.look_up(around(text, *at), text, *at as usize, out);
        }
        near.len = 0;
    }

    #[inline(always)]
    fn confirm_in(
        &self,
        b: usize,
        (word, before): (u64, u64),
        text: &[u8],
        at: usize,
        out: &mut Vec<Hit>,
    ) {
        for entry in &self.entries[self.heads[b] as usize..self.heads[b + 1] as usize] {
            let after = (word ^ entry.bytes) & entry.mask;
            // At least eight bits are off, and at most all.
            let differs = (before ^ entry.before) >> 1 >> (entry.before_off - 1);
            if after | differs != 0 {
                continue;
            }
            let Some(start) = at.checked_add_signed(-isize::from(entry.offset)) else {
                continue;
            };
            if entry.whole || self.stands(entry, text, start) {
                out.push(Hit {
                    at: u32::try_from(start).unwrap_or(u32::MAX),
                    keyword: entry.number,
                });
            }
        }
    }

    /// Does the entry's keyword stand there, byte by byte?
    fn stands(&self, entry: &Entry, text: &[u8], start: usize) -> bool {
        let (_, word) = &self.keywords[usize::from(entry.keyword)];
        let there = text.get(start..start + word.len());
        there.is_some_and(|t| t.eq_ignore_ascii_case(word))
            && (word.len() > 3 || text.get(start + 3).is_some_and(|b| goes_on_after_three(*b)))
    }
}

impl Entry {
    /// `word` under its gram at `offset`. A word made longer by what may follow it counts as far as it goes.
    fn new(word: &[u8], offset: usize, keyword: u16) -> Self {
        let len = (word.len() - offset).min(8);
        let mut mask = [0; 8];
        mask[..len].fill(0xFF);
        Self {
            bytes: folded_word(word, offset),
            mask: u64::from_le_bytes(mask),
            before: before_word(word, offset),
            before_off: 64 - 8 * offset.min(7) as u8,
            keyword,
            number: 0,
            whole: false,
            offset: i8::try_from(offset).unwrap_or(0),
        }
    }

    /// A short word under the gram that begins one byte before it, whatever that byte is.
    fn after_any(word: &[u8], keyword: u16) -> Self {
        let entry = Self::new(word, 0, keyword);
        Self {
            bytes: entry.bytes << 8,
            mask: entry.mask << 8,
            offset: ANY_BEFORE,
            ..entry
        }
    }

    /// With what is known of its keyword.
    fn known_as(self, number: u16, word: &[u8]) -> Self {
        let after = word.len() as isize - isize::from(self.offset);
        let within = word.len() > 3 && self.offset <= 7 && after <= 8;
        Self {
            number,
            whole: within && word.iter().all(u8::is_ascii_lowercase),
            ..self
        }
    }

    fn gram(&self) -> u32 {
        self.bytes as u32
    }
}

/// The offset of a gram of which only the last three bytes are the keyword's.
const ANY_BEFORE: i8 = -1;

/// The eight bytes from a place on and the eight before it, folded.
#[inline(always)]
fn around(text: &[u8], at: u32) -> (u64, u64) {
    let at = at as usize;
    let word = word_at(text, at).map_or(0, |w| w | FOLD64);
    (word, before_word(text, at))
}

/// Eight bytes from `at` on with letters folded; past the end, blanks.
fn folded_word(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.len().min(8);
    bytes[..len].copy_from_slice(&rest[..len]);
    u64::from_le_bytes(bytes) | FOLD64
}

/// Eight bytes up to `at` with letters folded, the last the highest; before the beginning, blanks.
fn before_word(text: &[u8], at: usize) -> u64 {
    if let Some(from) = at.checked_sub(8) {
        return word_at(text, from).unwrap_or(0) | FOLD64;
    }
    let mut bytes = [0; 8];
    bytes[8 - at..].copy_from_slice(&text[..at]);
    u64::from_le_bytes(bytes) | FOLD64
}

impl LiteralGate for GramGate {
    fn hits(&self, text: &[u8], out: &mut Vec<Hit>) {
        let first = out.len();
        match self.step {
            2 => self.look::<2>(text, 0..text.len(), out),
            _ => self.look::<1>(text, 0..text.len(), out),
        }
        out[first..].sort_unstable();
    }
}

impl GramGate {
    /// Appends the hits whose grams begin in the range, and with it all that lie in it. Not for a gate for whole texts.
    pub fn hits_in(&self, text: &[u8], range: std::ops::Range<usize>, out: &mut Vec<Hit>) {
        debug_assert_eq!(self.step, 1);
        self.look::<1>(text, range, out);
    }

    /// Looks at every `STEP`th place of the range as long as there is text for a turn; returns where it ended.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn look_in_turns<const STEP: usize>(
        &self,
        text: &[u8],
        range: std::ops::Range<usize>,
        out: &mut Vec<Hit>,
        passes: impl Fn(&Bitmap, &[u8; super::wide::Avx2::BYTES]) -> u32,
    ) -> usize {
        let (mut at, turn) = (range.start, super::wide::Avx2::GRAMS * STEP);
        let mut near = Near::default();
        loop {
            let chunk = text.get(at..).and_then(|t| t.first_chunk());
            let Some(chunk) = chunk.filter(|_| at + turn <= range.end) else {
                break;
            };
            near.push::<STEP>(at, passes(&self.bits, chunk));
            at += turn;
            if near.full() {
                self.sift(text, &mut near, out);
            }
        }
        self.sift(text, &mut near, out);
        at
    }

    #[inline(always)]
    fn look<const STEP: usize>(
        &self,
        text: &[u8],
        range: std::ops::Range<usize>,
        out: &mut Vec<Hit>,
    ) {
        let bits = &*self.bits;
        let test = |gram: u32| {
            let h = hash(gram);
            let word = bits[word_of(h)];
            (word >> first_bit(gram)) & (word >> second_bit(h)) & 1
        };
        let (mut at, end) = (range.start, range.end);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = self.avx512 {
            // The first turn is another's: there is not enough before it.
            if let Some(avx2) = self.avx2.filter(|_| at < super::wide512::Avx512::BACK) {
                at = avx2.look::<STEP>(
                    self,
                    text,
                    at..end.min(at + super::wide512::Avx512::BACK * STEP),
                    out,
                );
            }
            at = avx512.look::<STEP>(self, text, at..end, out);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = self.avx2 {
            at = avx2.look::<STEP>(self, text, at..end, out);
        }
        // Some grams a turn, out of one 8-byte load and one test.
        while at + 4 <= end
            && let Some(chunk) = word_at(text, at)
        {
            let word = chunk | FOLD64;
            let gram = |nth: usize| (word >> (8 * STEP * nth)) as u32;
            let set: [u32; 4] = std::array::from_fn(|nth| match STEP * nth {
                0..=4 => test(gram(nth)),
                _ => 0,
            });
            if (set[0] | set[1] | set[2] | set[3]) != 0 {
                for (nth, _) in set.iter().enumerate().filter(|(_, hit)| **hit != 0) {
                    self.confirm(text, at + STEP * nth, out);
                }
            }
            at += if STEP == 1 { 4 } else { 6 };
        }
        while at < end
            && let Some(g) = text.get(at..at + 4)
        {
            if test(fold4(g)) != 0 {
                self.confirm(text, at, out);
            }
            at += STEP;
        }
    }
}

/// The places of a stretch of text that passed the bitmap.
struct Near {
    at: [u32; Self::MAX],
    len: usize,
}

impl Default for Near {
    fn default() -> Self {
        Self {
            at: [0; Self::MAX],
            len: 0,
        }
    }
}

impl Near {
    const MAX: usize = 128;

    /// Notes which of the eight places from `at` on have their bit set, without a branch for each.
    #[inline(always)]
    fn push<const STEP: usize>(&mut self, at: usize, passed: u32) {
        let first = at as u32;
        if let Some(free) = self
            .at
            .get_mut(self.len..)
            .and_then(|free| free.first_chunk_mut::<8>())
        {
            *free = ORDER[passed as usize & 0xFF].map(|nth| first + STEP as u32 * u32::from(nth));
            self.len += passed.count_ones() as usize;
        }
    }

    /// Keeps the places that pass, without a branch: whether a place is left is a matter of chance. (With a closure in place of
    /// the sieve it would be a call for each place.)
    #[inline(always)]
    fn keep(&mut self, sieve: &impl Sift, text: &[u8]) {
        let mut left = 0;
        for nth in 0..self.len {
            let at = self.at[nth];
            self.at[left] = at;
            let (word, before) = around(text, at);
            left += usize::from(sieve.passes(word, before));
        }
        self.len = left;
    }

    fn full(&self) -> bool {
        self.len + 8 > Self::MAX
    }
}

/// The numbers of the bits that are set in a byte, in order.
static ORDER: [[u8; 8]; 256] = {
    let mut order = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut len) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                order[byte][len] = bit as u8;
                len += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    order
};

/// Tells most places that passed the bitmap from those where a keyword stands, by as much of the keyword as there is
/// around its gram: six bytes from its first on or up to its last, the gram, or the three that short ones have.
#[derive(Debug)]
pub(super) struct Sieve {
    pub from: Box<Bits>,
    pub upto: Box<Bits>,
    pub four: Box<Bits>,
    pub three: Box<[u64; 1 << (Self::BITS_SHORT - 6)]>,
}

pub(super) type Bits = [u64; 1 << Sieve::BITS];

impl Default for Sieve {
    fn default() -> Self {
        let bits = || Box::new([0; 1 << Self::BITS]);
        Self {
            from: bits(),
            upto: bits(),
            four: bits(),
            three: Box::new([0; 1 << (Self::BITS_SHORT - 6)]),
        }
    }
}

impl Sieve {
    /// Bits of a hash that name a word; twelve more name two bits in it.
    pub const BITS: u32 = 11;
    pub const BITS_SHORT: u32 = 13;
    pub const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    const SIX: u64 = (1 << 48) - 1;

    fn add(&mut self, entry: &Entry) {
        let set = |bits: &mut Bits, hash: u64| {
            bits[Self::word_of(hash)] |= 1 << (hash >> 6 & 63) | 1 << (hash & 63);
        };
        if entry.offset == ANY_BEFORE && entry.mask >> 32 == 0 {
            let hash = Self::of_three(entry.gram());
            self.three[hash / 64] |= 1 << (hash % 64);
        } else if entry.offset == ANY_BEFORE {
            set(&mut self.four, Self::of_four((entry.bytes >> 8) as u32));
        } else if entry.mask & Self::SIX == Self::SIX {
            set(&mut self.from, Self::of_six(entry.bytes));
        } else if entry.offset >= 2 {
            set(
                &mut self.upto,
                Self::of_six(Self::upto(entry.bytes, entry.before)),
            );
        } else {
            set(&mut self.four, Self::of_four(entry.gram()));
        }
    }

    /// The two bytes before a gram and its own.
    fn upto(word: u64, before: u64) -> u64 {
        word << 16 | before >> 48
    }

    /// May a short keyword begin after the first byte?
    #[inline(always)]
    fn short(&self, word: u64) -> bool {
        let hash = Self::of_three(word as u32);
        let three = self.three[hash / 64] >> (hash % 64) & 1;
        (three | Self::bit(&self.four, Self::of_four((word >> 8) as u32))) != 0
    }

    #[inline(always)]
    fn bit(bits: &Bits, hash: u64) -> u64 {
        let word = bits[Self::word_of(hash)];
        word >> (hash >> 6 & 63) & word >> (hash & 63) & 1
    }

    fn of_six(word: u64) -> u64 {
        (word << 16).wrapping_mul(Self::FACTOR) >> (64 - Self::BITS - 12)
    }

    fn of_four(gram: u32) -> u64 {
        u64::from(gram).wrapping_mul(Self::FACTOR) >> (64 - Self::BITS - 12)
    }

    fn word_of(hash: u64) -> usize {
        (hash >> 12) as usize % (1 << Self::BITS)
    }

    fn of_three(gram: u32) -> usize {
        (u64::from(gram >> 8).wrapping_mul(Self::FACTOR) >> (64 - Self::BITS_SHORT)) as usize
    }
}

/// The same by all that an entry knows, up to eight bytes: slower, for the few places that are left.
#[derive(Debug)]
pub(super) struct FineSieve(pub Box<[Bits; FineSieve::WAYS]>);

impl Default for FineSieve {
    fn default() -> Self {
        Self(Box::new([[0; 1 << Sieve::BITS]; Self::WAYS]))
    }
}

impl FineSieve {
    /// In how many ways bytes around a gram are told.
    const WAYS: usize = 9;

    /// The bytes around a gram, told in each of the ways.
    #[inline(always)]
    fn told(word: u64, before: u64) -> [u64; Self::WAYS] {
        let first = |bytes: u32, of: u64| of & (u64::MAX >> (64 - 8 * bytes));
        [
            word,
            word << 32 | before >> 32,
            first(6, word),
            first(6, word << 16 | before >> 48),
            first(5, word),
            first(5, word << 8 | before >> 56),
            first(4, word),
            // A short word after the gram's first byte: four letters, or three.
            first(4, word >> 8),
            first(3, word >> 8),
        ]
    }

    /// The way that tells the most of an entry.
    fn way(entry: &Entry) -> usize {
        let known = |bytes: u32| entry.mask.trailing_ones() >= 8 * bytes;
        match entry.offset {
            ANY_BEFORE => 7 + usize::from(entry.mask >> 32 == 0),
            _ if known(8) => 0,
            4.. => 1,
            _ if known(6) => 2,
            2.. => 3,
            _ if known(5) => 4,
            1 => 5,
            _ => 6,
        }
    }

    fn add(&mut self, entry: &Entry) {
        let way = Self::way(entry);
        let hash = Self::hash(Self::told(entry.bytes, entry.before)[way]);
        self.0[way][Sieve::word_of(hash)] |= 1 << (hash >> 6 & 63) | 1 << (hash & 63);
    }

    #[inline(always)]
    fn hash(told: u64) -> u64 {
        told.wrapping_mul(Sieve::FACTOR) >> (64 - Sieve::BITS - 12)
    }
}

/// Tells places by the bytes around them.
trait Sift {
    /// May a keyword have a gram here? `word` and `before` are folded.
    fn passes(&self, word: u64, before: u64) -> bool;
}

impl Sift for Sieve {
    #[inline(always)]
    fn passes(&self, word: u64, before: u64) -> bool {
        (u64::from(self.short(word))
            | Self::bit(&self.from, Self::of_six(word))
            | Self::bit(&self.upto, Self::of_six(Self::upto(word, before)))
            | Self::bit(&self.four, Self::of_four(word as u32)))
            != 0
    }
}

impl Sift for FineSieve {
    #[inline(always)]
    fn passes(&self, word: u64, before: u64) -> bool {
        let mut any = 0;
        for (bits, told) in self.0.iter().zip(Self::told(word, before)) {
            any |= Sieve::bit(bits, Self::hash(told));
        }
        any != 0
    }
}

/// Of the last three bytes. The upper bits of the product name the word and those below them a bit in its upper half.
fn hash(gram: u32) -> u32 {
    (gram >> 8).wrapping_mul(HASH_FACTOR) >> (32 - WORD_BITS - BIT_BITS)
}

fn word_of(hash: u32) -> usize {
    (hash >> BIT_BITS) as usize % BITMAP_WORDS
}

/// The bit of the first byte, in the lower half of the word.
fn first_bit(gram: u32) -> u32 {
    gram & ((1 << BIT_BITS) - 1)
}

/// All that may be first.
const FIRST_HALF: u32 = (1 << (1 << BIT_BITS)) - 1;

/// The bit of the others.
fn second_bit(hash: u32) -> u32 {
    hash & ((1 << BIT_BITS) - 1) | 1 << BIT_BITS
}

fn bucket(gram: u32) -> usize {
    gram.wrapping_mul(HASH_FACTOR) as usize >> 18 & (HEADS - 1)
}

fn fold4(g: &[u8]) -> u32 {
    u32::from_le_bytes([g[0], g[1], g[2], g[3]]) | FOLD
}

/// How often a gram occurs in prose, code and JSON, as a logarithm: the sum over its pairs of bytes, and more for the
/// most common ones.
fn commonness(gram: &[u8]) -> u32 {
    if let Some(rank) = COMMON.get(&fold4(gram)) {
        return COMMON_MIN + (COMMON.len() as u32 - rank) / 32;
    }
    let class = |b: u8| match b {
        b'a'..=b'z' => Some(usize::from(b - b'a')),
        b' ' => Some(26),
        _ => None,
    };
    let pair = |w: &[u8]| match (class(w[0]), class(w[1])) {
        (Some(a), Some(b)) => u32::from(PAIRS[a][b] - b'0'),
        _ => 3,
    };
    gram.windows(2).map(pair).sum()
}

/// More than any gram has by its pairs.
const COMMON_MIN: u32 = 28;

/// The most common grams, letters folded, the first the most common; `_` stands for a blank. Counted over prose,
/// source code and tool results.
static COMMON: LazyLock<HashMap<u32, u32>> = LazyLock::new(|| {
    let grams = include_str!("common-grams.txt").split_ascii_whitespace();
    let folded = grams.map(|g| fold4(g.replace('_', " ").as_bytes()));
    folded.zip(0..).collect()
});

/// How often one letter or blank follows another, in steps of 2^(4/3), counted over 8 MB of documentation, source
/// code and tool results.
const PAIRS: [&[u8; 27]; 27] = [
    b"467634626157772617785544526",
    b"524362225516225314426001524",
    b"724373265166427325475321315",
    b"633583227114236315545222417",
    b"747767534148684658873557528",
    b"623455317005347316445110308",
    b"423261345104354205645210126",
    b"612281016013326104344011216",
    b"556657513137687526771515054",
    b"300050001011004101303010103",
    b"412361214113132312423140115",
    b"743587217126246413666230526",
    b"753472115124526602545110206",
    b"736775726155357413675531418",
    b"466746415256685608676554226",
    b"724473235026226516465331505",
    b"100100000002011002115000002",
    b"735584627144577406665431607",
    b"525383457145446624786342518",
    b"735484287125437517667242628",
    b"454465405016663607661102004",
    b"611071115000223102111111003",
    b"521352056103145115410131014",
    b"425242114003202401261004214",
    b"222242114003344602551230116",
    b"200050014002212001111000112",
    b"877777668457777747886674449",
];
