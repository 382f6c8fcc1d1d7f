//! Which signs stand in a text at all: a decoder that begins with one of them has nothing to do where there is none, and
//! need not go through the text to learn it.

use super::lanes::{Lanes, Window};
use crate::text::{CELL_END, NAME_END};

/// Signs that some decoder looks for in the whole text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signs(u16);

impl Signs {
    /// `{` or `[`.
    pub const OPENING: Self = Self(1);
    pub const BRACE: Self = Self(1 << 1);
    pub const BRACKET: Self = Self(1 << 2);
    pub const LESS: Self = Self(1 << 3);
    pub const EQUALS: Self = Self(1 << 4);
    pub const SEMICOLON: Self = Self(1 << 5);
    pub const DOLLAR: Self = Self(1 << 6);
    pub const STAR: Self = Self(1 << 7);
    pub const CARET: Self = Self(1 << 8);
    pub const BACKSLASH: Self = Self(1 << 9);
    pub const LINE: Self = Self(1 << 10);
    /// An escape or a backspace.
    pub const TERMINAL: Self = Self(1 << 11);
    /// Signs that stand in marks of text that some program wrote (`decode/marked.rs`).
    pub const OF_MARKS: Self = Self::LESS
        .or(Self::BRACKET)
        .or(Self::CARET)
        .or(Self::BACKSLASH)
        .or(Self::TERMINAL);
    /// Asked for until one of those was seen: what may be the end of a mark with a digit in it, or its beginning behind a line end: `b85d`, `Z85:`, `begin 6`,
    /// `2. ` and its like behind a blank, a line that begins with `l`.
    pub const MARK: Self = Self(1 << 12);

    /// A control character that is neither a blank nor the end of a line.
    pub const CONTROL: Self = Self(1 << 13);

    /// Is there any of those?
    pub fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Are all of those there?
    pub fn all(self, of: Self) -> bool {
        self.0 & of.0 == of.0
    }

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn note(&mut self, which: Self, seen: u64) {
        self.0 |= which.0 * u16::from(seen != 0);
    }

    /// Takes a block in, with its digits and what stands behind one; `whole` are the bytes of it that the text has. A group of signs
    /// that were all seen is not asked for again. Says how many bytes are such as part cells.
    #[inline(always)]
    pub(super) fn see<L: Lanes>(
        &mut self,
        block: &L,
        window: &Window,
        (digit, behind_digit): (u64, u64),
        whole: u64,
    ) -> u32 {
        let mut parting = 0;
        if !self.any(Self::LINE) {
            self.note(Self::LINE, block.eq(b'\n'));
        }
        let control = (block.within(0, 0x1F) | block.eq(0x7F)) & whole;
        if control != 0 {
            self.note(Self::TERMINAL, block.eq(0x08) | block.eq(0x1B));
            let laid_out = block.eq(b'\t') | block.eq(b'\n') | block.eq(b'\r');
            let parts = (block.eq(NAME_END) | block.eq(CELL_END)) & whole;
            parting = parts.count_ones();
            self.note(Self::CONTROL, control & !(laid_out | parts));
        }
        let compared = Self::SEMICOLON.or(Self::LESS).or(Self::EQUALS);
        if block.within(b';', b'=') != 0 && !self.all(compared) {
            self.note(Self::SEMICOLON, block.eq(b';'));
            self.note(Self::LESS, block.eq(b'<'));
            self.note(Self::EQUALS, block.eq(b'='));
        }
        let opened = Self::BRACKET.or(Self::BACKSLASH).or(Self::CARET);
        if block.within(b'[', b'^') != 0 && !self.all(opened) {
            self.note(Self::BRACKET.or(Self::OPENING), block.eq(b'['));
            self.note(Self::BACKSLASH, block.eq(b'\\'));
            self.note(Self::CARET, block.eq(b'^'));
        }
        if !self.any(Self::BRACE) {
            self.note(Self::BRACE.or(Self::OPENING), block.eq(b'{'));
        }
        self.note(Self::DOLLAR, block.eq(b'$'));
        self.note(Self::STAR, block.eq(b'*'));
        if self.any(Self::MARK.or(Self::OF_MARKS)) {
            return parting;
        }
        if behind_digit & !digit != 0 {
            let (one, two) = (L::load(window, 1), L::load(window, 2));
            let blank = two.eq(b' ') | two.eq(b'\n');
            let ends = block.eq(b'.') | block.eq(b':') | block.eq(b',') | block.eq(b')');
            let numbered = (ends | block.eq(b'\t')) & one.eq(b'2') & blank;
            let base85 = (block.eq(b':') | block.eq(b'd')) & one.eq(b'5') & two.eq(b'8');
            self.note(Self::MARK, numbered | base85);
        }
        if digit & !behind_digit != 0 {
            let (one, two) = (L::load(window, 1), L::load(window, 2));
            let begun = block.within(b'6', b'7') & one.eq(b' ') & two.eq(b'n');
            self.note(Self::MARK, begun);
        }
        if self.any(Self::LINE) {
            let literal = block.eq(b'l') & L::load(window, 1).eq(b'\n');
            self.note(Self::MARK, literal);
        }
        parting
    }
}
