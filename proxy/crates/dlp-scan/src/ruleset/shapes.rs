//! The shapes of numbers, found by the lengths of their runs of letters and digits.

use std::collections::BTreeMap;

use super::{Compiled, Kind, Need};
use crate::rule::RuleId;

/// A shape of a number rule: `9` a digit, `A` a letter, `X` either, all else itself.
#[derive(Debug)]
pub(crate) struct Shape {
    outline: Outline,
    shape: Box<[u8]>,
    /// The rules that share it; those that words around the number have to explain are the last.
    rules: Vec<RuleId>,
    explained: usize,
}

impl Shape {
    /// Does the text, which has such an outline, look like that?
    pub fn fits(&self, text: &[u8]) -> bool {
        let mut pairs = self.shape.iter().zip(text);
        self.shape.len() == text.len()
            && pairs.all(|(s, v)| match s {
                b'9' => v.is_ascii_digit(),
                b'A' => v.is_ascii_alphabetic(),
                b'X' => v.is_ascii_alphanumeric(),
                s => s == v,
            })
    }

    /// The rules that share it, and how many of them, the first, may do without a word around the number.
    pub fn rules(&self) -> (&[RuleId], usize) {
        (&self.rules, self.rules.len() - self.explained)
    }
}

/// The runs of letters and digits of a shape or of a text: how long they are, and what they are made of. Tells most
/// texts from most shapes without a look at their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Six bits a run, the first the lowest; 63 for longer ones.
    lens: u64,
    /// A bit a run, set when it holds digits alone.
    digits: u16,
    /// The same for letters.
    letters: u16,
    runs: u8,
}

impl Outline {
    /// Most runs told apart.
    pub const RUNS_MAX: usize = 10;

    /// With one more run.
    pub fn and(mut self, len: usize, has_digits: bool, has_letters: bool) -> Self {
        let n = u32::from(self.runs);
        self.lens |= (len.min(63) as u64) << (6 * n);
        self.digits |= u16::from(!has_letters) << n;
        self.letters |= u16::from(!has_digits) << n;
        self.runs += 1;
        self
    }

    /// The outline of a shape: `9` is a digit, `A` a letter, `X` may be either.
    pub fn of_shape(shape: &[u8]) -> Self {
        let runs = groups(shape).take(Self::RUNS_MAX);
        runs.fold(Self::default(), |outline, run| {
            let may = |letter: bool| {
                run.iter().any(|b| match b {
                    b'X' => true,
                    b => b.is_ascii_alphabetic() == letter,
                })
            };
            outline.and(run.len(), may(false), may(true))
        })
    }

    /// Tells the lengths of the runs from most others.
    fn hash(self) -> usize {
        (self.lens.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Shapes::BITS)) as usize
    }

    /// False when no text of that outline has this shape.
    pub fn admits(self, text: Self) -> bool {
        self.lens == text.lens
            && self.digits & !text.digits == 0
            && self.letters & !text.letters == 0
    }
}

/// All shapes of a set, found by the lengths of their runs.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// In the order of a hash of these lengths.
    all: Box<[Shape]>,
    /// A bit for each hash there is: most texts need no other look.
    known: Box<[u64; 1 << (Shapes::BITS - 6)]>,
    /// By hash, where its shapes begin; one more at the end.
    from: Box<[u32]>,
}

impl Shapes {
    const BITS: u32 = 13;

    pub(super) fn new(shapes: BTreeMap<Box<[u8]>, Vec<RuleId>>, rules: &[Compiled]) -> Self {
        let told = |rule: &RuleId| {
            let kind = rules[rule.index()].kind;
            matches!(
                kind,
                Kind::Number {
                    need: Need::Context
                }
            )
        };
        let of_rules = |(shape, mut rules): (Box<[u8]>, Vec<RuleId>)| {
            rules.sort_by_key(told);
            Shape {
                outline: Outline::of_shape(&shape),
                explained: rules.iter().filter(|r| told(r)).count(),
                shape,
                rules,
            }
        };
        let mut all: Box<[Shape]> = shapes.into_iter().map(of_rules).collect();
        all.sort_by_key(|s| s.outline.hash());
        let mut known = Box::new([0; _]);
        let mut from = vec![0_u32; (1 << Self::BITS) + 1].into_boxed_slice();
        for shape in &all {
            let hash = shape.outline.hash();
            known[hash / 64] |= 1 << (hash % 64);
            from[hash + 1] += 1;
        }
        for hash in 0..1 << Self::BITS {
            from[hash + 1] += from[hash];
        }
        Self { all, known, from }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of texts that are as long.
    pub fn of_len(&self, len: usize) -> impl Iterator<Item = &Shape> {
        self.all.iter().filter(move |s| s.shape.len() == len)
    }

    /// Each with its rules.
    pub(super) fn each(&self) -> impl Iterator<Item = (Box<[u8]>, Vec<RuleId>)> + '_ {
        self.all.iter().map(|s| (s.shape.clone(), s.rules.clone()))
    }

    /// May a text of this outline have any?
    #[inline]
    pub fn may_have(&self, outline: Outline) -> bool {
        let hash = outline.hash();
        self.known[hash / 64] >> (hash % 64) & 1 != 0
    }

    /// Those that a text of this outline may have.
    pub fn of(&self, outline: Outline) -> impl Iterator<Item = &Shape> {
        let hash = outline.hash();
        let here = &self.all[self.from[hash] as usize..self.from[hash + 1] as usize];
        here.iter().filter(move |s| s.outline.admits(outline))
    }
}

/// What runs of letters without a digit the shapes allow for. Text is not followed further than any shape goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lettered {
    /// Bytes of the longest.
    pub bytes_max: usize,
    /// Most in a row, anywhere.
    pub row_max: usize,
    /// Most in a row, at the beginning.
    pub lead_max: usize,
}

impl Lettered {
    pub(super) fn with(mut self, shape: &[u8]) -> Self {
        let (mut row, mut leading) = (0, true);
        for group in groups(shape) {
            // `9` and written-out digits are digits; `A`, `X` and written-out letters may be letters.
            let letters = !group.iter().any(u8::is_ascii_digit);
            leading &= letters;
            row = if letters { row + 1 } else { 0 };
            if letters {
                self.bytes_max = self.bytes_max.max(group.len());
                self.row_max = self.row_max.max(row);
            }
            if leading {
                self.lead_max = self.lead_max.max(row);
            }
        }
        self
    }
}

/// The runs of letters and digits of a shape.
fn groups(shape: &[u8]) -> impl Iterator<Item = &[u8]> {
    shape
        .split(|b| !b.is_ascii_alphanumeric())
        .filter(|g| !g.is_empty())
}
