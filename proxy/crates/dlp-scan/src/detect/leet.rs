//! Where words stand that have digits for letters (`1gn0r3`), so that a text is read with letters in their place.

use super::Scratch;
use crate::decode::{LEET_WORDS_MIN, goes_on_in_sign, may_spell_word};
use crate::text::{Cell, Span};

/// Cells up to this length are read as a whole where they hold such words.
const LEET_CELL_BYTES: u32 = 16 * 1024;
/// In longer ones, how close together such words have to be, and how far around them is read.
const LEET_NEAR: u32 = 256;

/// So many of them may be words, and are no names of versions, types and sizes.
const LEET_KNOWN_MIN: u32 = 2;

/// Words such as `1gn0r3` in the cell at hand.
pub(super) struct Leet {
    index: u32,
    cell: Span,
    words: u32,
    /// How many of them may be words with letters for their digits.
    known: u32,
    /// Where the last ones stand, and whether they may be words.
    last: [(u32, bool); LEET_WORDS_MIN as usize - 1],
}

impl Default for Leet {
    fn default() -> Self {
        Self {
            index: u32::MAX,
            cell: Span::default(),
            words: 0,
            known: 0,
            last: Default::default(),
        }
    }
}

/// What a byte of a word says about it.
const UPPER: u8 = 1;
/// `sha256`: no letter looks like these.
const REMAINS: u8 = 2;
const NO_HEX: u8 = 4;

static LEET: [u8; 256] = {
    let mut signs = [0; 256];
    let mut b = 0;
    while b < 256 {
        let sign = b as u8;
        signs[b] = (UPPER * sign.is_ascii_uppercase() as u8)
            | (REMAINS * matches!(sign, b'2' | b'6') as u8)
            | (NO_HEX * !sign.is_ascii_hexdigit() as u8);
        b += 1;
    }
    signs
};

impl Leet {
    pub fn enter(&mut self, index: u32, cell: &Cell) {
        if self.index != index {
            (self.index, self.cell) = (index, cell.span);
            (self.words, self.known) = (0, 0);
        }
    }

    /// Is there enough of them for the whole cell to be read?
    fn is_read(&self) -> bool {
        self.words >= LEET_WORDS_MIN && self.known >= LEET_KNOWN_MIN
    }

    /// Counts a word if it has digits among letters of lower case.
    pub fn count(&mut self, text: &[u8], (from, stop): (usize, usize), scratch: &mut Scratch) {
        let word = &text[from..stop];
        if !(2..=16).contains(&word.len()) {
            return;
        }
        // All bytes at once: nobody can foresee where the first digit of a hash stands, or its first letter.
        let signs = |bytes: &[u8]| bytes.iter().fold(0, |all, b| all | LEET[usize::from(*b)]);
        let (first, rest) = (signs(&word[..1]), signs(&word[1..]));
        let hex = word.len() > 6 && (first | rest) & NO_HEX == 0;
        if hex || rest & UPPER | (first | rest) & REMAINS != 0 {
            return;
        }
        let is_known = || may_spell_word(word) || goes_on_in_sign(text, from, stop);
        if self.cell.end - self.cell.start <= LEET_CELL_BYTES {
            if self.is_read() {
                return;
            }
            self.words += 1;
            self.known += u32::from(is_known());
            if self.is_read() {
                scratch.leet.push((self.index, self.cell));
            }
            return;
        }
        // Long texts are full of `sha256` and `x86`: a digit has to stand before a letter.
        let inner = |w: &[u8]| w[0].is_ascii_digit() && w[1].is_ascii_lowercase();
        if !word.windows(2).any(inner) {
            return;
        }
        let at = crate::text::to_u32(from);
        // What was looked at before is looked at again where a row of groups was too long.
        if self.words > 0 && at <= self.last[LEET_WORDS_MIN as usize - 2].0 {
            return;
        }
        let is_known = is_known();
        let last = self.last.iter().filter(|(_, known)| *known).count();
        let known = crate::text::to_u32(last) + u32::from(is_known);
        let (first, _) = self.last[0];
        self.words += 1;
        if self.words >= LEET_WORDS_MIN
            && known >= LEET_KNOWN_MIN
            && at.saturating_sub(first) <= LEET_NEAR
        {
            let around = Span {
                start: on_char(text, first.saturating_sub(LEET_NEAR).max(self.cell.start)),
                end: on_char(text, (at + LEET_NEAR).min(self.cell.end)),
            };
            match scratch.leet.last_mut() {
                Some((index, place)) if *index == self.index && place.end >= around.start => {
                    place.end = around.end;
                }
                _ => scratch.leet.push((self.index, around)),
            }
        }
        self.last.rotate_left(1);
        self.last[LEET_WORDS_MIN as usize - 2] = (at, is_known);
    }
}

/// The beginning of the character that the byte is part of.
fn on_char(text: &[u8], mut at: u32) -> u32 {
    while at > 0 && text.get(at as usize).is_some_and(|b| b & 0xC0 == 0x80) {
        at -= 1;
    }
    at
}
