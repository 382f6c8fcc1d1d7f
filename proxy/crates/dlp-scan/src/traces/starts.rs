//! Words by their letters: where they begin, and which bytes are of them.

use super::{BLOCK, Traces};

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

    /// Which of the 64 bytes from `at` on are letters or digits, the first the lowest.
    pub fn alnum_from(&self, at: usize) -> u64 {
        let of = |block: usize| self.kinds.get(block).map_or(0, |kinds| kinds.alnum);
        let (block, first) = (at / BLOCK, at % BLOCK);
        // No shift is as wide as the block.
        of(block) >> first | of(block + 1) << 1 << (BLOCK - 1 - first)
    }
}
