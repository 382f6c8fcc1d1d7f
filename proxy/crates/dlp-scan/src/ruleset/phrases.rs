//! Context phrases that are too short for the gate.

use crate::names;

/// The context phrases that are too short for the gate: no more than two letters in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShortPhrases {
    /// By their first byte. Empty where there are none at all.
    by_first: Vec<Vec<ShortPhrase>>,
    /// By the lower five bits of their first byte, which are the same in both cases, a bit for each byte that may stand
    /// second in a text.
    pairs: [[u64; 4]; 32],
    /// What they begin with that is neither a letter nor part of one.
    signs: Vec<u8>,
}

/// So many bytes of a phrase are compared at once.
pub(crate) const HEAD_BYTES: usize = 4;

#[derive(Clone, Copy, Debug)]
struct ShortPhrase {
    /// What it begins with.
    head: u32,
    /// All bits of the bytes that it has there.
    bits: u32,
    id: u16,
}

impl ShortPhrases {
    pub(super) fn add(&mut self, phrase: &[u8], id: u16) {
        let first = phrase[0];
        if first.is_ascii() && !first.is_ascii_alphabetic() && !self.signs.contains(&first) {
            self.signs.push(first);
        }
        self.by_first.resize(1 << u8::BITS, Vec::new());
        // A phrase of one byte may stand in front of anything.
        let second = phrase.get(1).copied();
        let (mut head, mut bits) = ([0; HEAD_BYTES], [0; HEAD_BYTES]);
        for (at, byte) in phrase.iter().take(HEAD_BYTES).enumerate() {
            (head[at], bits[at]) = (*byte, u8::MAX);
        }
        self.by_first[usize::from(first)].push(ShortPhrase {
            head: u32::from_ne_bytes(head),
            bits: u32::from_ne_bytes(bits),
            id,
        });
        let pairs = &mut self.pairs[usize::from(first & 31)];
        let fits = |b: &u8| second.is_none_or(|second| names::plain_byte(*b) == second);
        for b in (0..=u8::MAX).filter(fits) {
            pairs[usize::from(b >> 6)] |= 1 << (b & 63);
        }
    }

    /// May one begin with these two bytes, as they are in the text?
    #[inline]
    pub fn may_begin(&self, first: u8, second: u8) -> bool {
        self.pairs[usize::from(first & 31)][usize::from(second >> 6)] >> (second & 63) & 1 != 0
    }

    /// Those that may begin with these bytes, which are as [`crate::names::plain_byte`] writes them, and zero behind the text.
    #[inline]
    pub fn of(&self, head: [u8; HEAD_BYTES]) -> impl Iterator<Item = u16> + '_ {
        let same = self.by_first.get(usize::from(head[0]));
        let same = same.map_or(&[][..], Vec::as_slice).iter();
        let head = u32::from_ne_bytes(head);
        same.filter(move |phrase| head & phrase.bits == phrase.head)
            .map(|phrase| phrase.id)
    }

    pub fn signs(&self) -> &[u8] {
        &self.signs
    }
}
