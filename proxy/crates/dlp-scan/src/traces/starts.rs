//! Words by their letters: where they begin, and which bytes are of them.

use super::{BLOCK, Kinds, Traces};
use crate::ruleset::Classes;

impl Traces {
    /// For each block, the letters that have none before them or are capitals behind a small one, and all bytes that are no
    /// ASCII.
    pub fn word_starts(&self, out: &mut Vec<u64>) {
        let (mut letter_before, mut small_before) = (0, 0);
        out.extend(self.kinds.iter().map(|kinds| {
            let letters = kinds.alnum & !kinds.digit;
            let small = letters & !kinds.upper;
            let inside =
                (letters << 1 | letter_before) & !(kinds.upper & (small << 1 | small_before));
            (letter_before, small_before) = (letters >> 63, small >> 63);
            letters & !inside | kinds.high
        }));
    }

    /// Of these, the letters that no two letters follow, and all bytes that are no ASCII, for each block.
    pub fn short_word_starts(&self, starts: &[u64], out: &mut Vec<u64>) {
        let letters = |block: usize| self.kinds.get(block).map_or(0, |k| k.alnum & !k.digit);
        out.extend(starts.iter().enumerate().map(|(block, starts)| {
            let (this, next) = (letters(block), letters(block + 1));
            let after = |n: u32| this >> n | next << (u64::BITS - n);
            starts & !(this & after(1) & after(2))
        }));
    }

    /// How many small letters stand right before `at`, up to sixteen of them.
    pub fn small_before(&self, at: usize) -> usize {
        let back = at.min(16);
        let small = self.from(at - back, |k| k.alnum & !k.digit & !k.upper);
        // What stands from `at` on falls out at the top.
        let last = ((small as u32) << (16 - back)) as u16;
        last.leading_ones() as usize
    }

    /// Which of the 64 bytes from `at` on are letters or digits, the first the lowest.
    pub fn alnum_from(&self, at: usize) -> u64 {
        self.from(at, |kinds| kinds.alnum)
    }

    /// The classes of the 64 bytes from `at` on.
    pub fn classes_from(&self, at: usize) -> Classes {
        let (digits, either) = (self.from(at, |k| k.digit), self.alnum_from(at));
        Classes {
            digits,
            letters: either & !digits,
            either,
        }
    }

    #[inline(always)]
    fn from(&self, at: usize, which: impl Fn(&Kinds) -> u64) -> u64 {
        let of = |block: usize| self.kinds.get(block).map_or(0, &which);
        let (block, first) = (at / BLOCK, at % BLOCK);
        // No shift is as wide as the block.
        of(block) >> first | of(block + 1) << 1 << (BLOCK - 1 - first)
    }
}
