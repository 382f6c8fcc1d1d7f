//! A set of classes of words and of relations between them.

use std::ops::{BitAnd, BitOr, BitOrAssign};

const WORDS: usize = 6;
/// How many there may be.
pub(super) const BITS_MAX: usize = WORDS * 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits([u64; WORDS]);

impl Bits {
    pub const NONE: Self = Self([0; WORDS]);

    pub fn one(bit: u16) -> Self {
        let mut bits = Self::NONE;
        bits.add(bit);
        bits
    }

    pub fn add(&mut self, bit: u16) {
        self.0[usize::from(bit) / 64] |= 1 << (bit % 64);
    }

    pub fn has(self, bit: u16) -> bool {
        self.0[usize::from(bit) / 64] >> (bit % 64) & 1 == 1
    }

    /// Is a bit of the other set in this one?
    pub fn meets(self, other: Self) -> bool {
        (self & other) != Self::NONE
    }

    /// Those that are in, from the lowest.
    pub fn each(self) -> impl Iterator<Item = usize> {
        let words = self.0.into_iter().enumerate();
        words.flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros() as usize;
                word &= word.wrapping_sub(1);
                (bit < 64).then_some(at * 64 + bit)
            })
        })
    }

    /// More than one? Counting them takes dozens of steps on old processors.
    pub fn several(self) -> bool {
        let words = self.0.into_iter();
        words.fold(0u8, |most, word| {
            let more = u8::from(word & word.wrapping_sub(1) != 0);
            most + u8::from(word != 0) + more
        }) > 1
    }
}

impl BitAnd for Bits {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }
}

impl BitOr for Bits {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }
}

impl BitOrAssign for Bits {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_bit_are_told_apart() {
        let last = (BITS_MAX - 1) as u16;
        let both = Bits::one(0) | Bits::one(last);
        assert!(both.has(0) && both.has(last) && !both.has(64));
        assert!(both.several() && !Bits::one(last).several() && !Bits::NONE.several());
        assert!((Bits::one(1) | Bits::one(2)).several());
        assert_eq!(both.each().collect::<Vec<_>>(), [0, BITS_MAX - 1]);
        assert!(both.meets(Bits::one(last)) && !both.meets(Bits::one(63)));
    }
}
