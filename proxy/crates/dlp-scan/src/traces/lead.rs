//! Which characters outside ASCII need no second look.

use super::back;
use super::lanes::Lanes;

/// The bytes that characters begin with which are nothing to fold or to see through: letters of Latin scripts, marks,
/// quotation marks, dashes (but behind a digit), arrows, lines of boxes.
#[derive(Clone, Copy, Default)]
pub(super) struct Lead {
    /// U+0080 to U+017F, by their first bytes.
    c2: u64,
    c3: u64,
    c4: u64,
    c5: u64,
    /// U+2000 to U+2FFF; the second byte of punctuation, and of what is drawn.
    e2: u64,
    punctuation: u64,
    drawn: u64,
}

impl Lead {
    #[inline(always)]
    pub fn of<L: Lanes>(block: &L, last: &Self) -> Self {
        let (e2, any) = (block.eq(0xE2), |bytes: &[u8]| any_of(block, bytes));
        let second = back(e2, last.e2, 1);
        Self {
            c2: block.eq(0xC2),
            c3: block.eq(0xC3),
            c4: block.eq(0xC4),
            c5: block.eq(0xC5),
            e2,
            punctuation: block.eq(0x80) & second,
            drawn: any(&[0x86, 0x94, 0x95, 0x9C]) & second,
        }
    }

    /// The bytes of such characters.
    #[inline(always)]
    pub fn plain<L: Lanes>(&self, block: &L, last: &Self, high: u64, dashed: u64) -> u64 {
        let any = |bytes: &[u8]| any_of(block, bytes);
        let first = self.c2 | self.c3 | self.c4 | self.c5 | self.e2 | self.punctuation | self.drawn;
        // Blanks, soft hyphens, small digits; two letters that look like others.
        let of_c2 = back(self.c2, last.c2, 1) & !any(&[0xA0, 0xAD, 0xB2, 0xB3, 0xB9]);
        let of_c4 = back(self.c4, last.c4, 1) & !block.eq(0xB1);
        let of_c5 = back(self.c5, last.c5, 1) & !block.eq(0xBF);
        let marks = any(&[0x98, 0x99, 0x9C, 0x9D, 0xA2, 0xA6]) | any(&[0x93, 0x94]) & dashed;
        let third =
            back(self.punctuation, last.punctuation, 1) & marks | back(self.drawn, last.drawn, 1);
        first | high & (of_c2 | back(self.c3, last.c3, 1) | of_c4 | of_c5 | third)
    }
}

#[inline(always)]
fn any_of<L: Lanes>(block: &L, bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |all, b| all | block.eq(*b))
}
