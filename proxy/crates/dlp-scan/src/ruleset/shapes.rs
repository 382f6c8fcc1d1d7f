//! The shapes of numbers, found by the lengths of their runs of letters and digits.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compiled, Kind, Need, SHAPE_BYTES_MAX};
use crate::rule::RuleId;

/// A shape of a number rule: `9` a digit, `A` a letter, `X` either, all else itself.
#[derive(Debug)]
pub(crate) struct Shape {
    outline: Outline,
    classes: Classes,
    /// What stands for itself, by its place.
    signs: Box<[(u8, u8)]>,
    shape: Box<[u8]>,
    /// The rules that share it; those that words around the number have to explain are the last.
    rules: Vec<RuleId>,
    explained: usize,
    /// What explains any of those, in order.
    phrases: Box<[u16]>,
}

impl Shape {
    fn new(shape: Box<[u8]>, lead: bool, rules: Vec<RuleId>, all: &[Compiled]) -> Self {
        let compiled = rules.iter().map(|rule| &all[rule.index()]);
        let told: Vec<&Compiled> = compiled.filter(|c| is_told(c)).collect();
        let phrases = told.iter().flat_map(|c| &c.context).copied();
        let phrases = BTreeSet::from_iter(phrases).into_iter().collect();
        let explained = told.len();
        let is_sign = |(_, b): &(u8, u8)| !matches!(b, b'9' | b'A' | b'X');
        Self {
            outline: Outline::of(&shape, lead),
            classes: Classes::of_shape(&shape),
            signs: (0..).zip(shape.iter().copied()).filter(is_sign).collect(),
            shape,
            rules,
            explained,
            phrases,
        }
    }

    /// Does a text of this outline and these classes look like that?
    #[inline]
    fn fits(&self, text: &[u8], outline: Outline, classes: Classes) -> bool {
        let mut signs = self.signs.iter();
        self.classes.lie_in(classes)
            && self.outline == outline
            && self.shape.len() == text.len()
            && signs.all(|(at, sign)| text[usize::from(*at)] == *sign)
    }

    /// The rules that share it, and how many of them, the first, may do without a word around the number.
    pub fn rules(&self) -> (&[RuleId], usize) {
        (&self.rules, self.rules.len() - self.explained)
    }

    /// The words around a number that any of the last rules has to find there, in order.
    pub fn phrases(&self) -> &[u16] {
        &self.phrases
    }
}

/// Does it take a word around a number to be of that rule?
fn is_told(rule: &Compiled) -> bool {
    let kind = rule.kind;
    matches!(
        kind,
        Kind::Number {
            need: Need::Context
        }
    )
}

/// Which bytes are digits and which are letters, a bit each, the first the lowest: of a shape those that have to be, of a
/// text those that are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Classes {
    pub digits: u64,
    pub letters: u64,
    /// Digits or letters.
    pub either: u64,
}

impl Classes {
    /// Of the first bytes of a text.
    pub fn of(text: &[u8]) -> Self {
        let mut classes = Self::default();
        for (at, b) in text.iter().enumerate().take(u64::BITS as usize) {
            classes.digits |= u64::from(b.is_ascii_digit()) << at;
            classes.letters |= u64::from(b.is_ascii_alphabetic()) << at;
        }
        classes.either = classes.digits | classes.letters;
        classes
    }

    fn of_shape(shape: &[u8]) -> Self {
        const { assert!(SHAPE_BYTES_MAX <= u64::BITS as usize) };
        let which = |sign: u8| {
            let places = shape.iter().enumerate().filter(|(_, b)| **b == sign);
            places.fold(0, |all, (at, _)| all | 1 << at)
        };
        Self {
            digits: which(b'9'),
            letters: which(b'A'),
            either: which(b'X'),
        }
    }

    fn lie_in(self, text: Self) -> bool {
        (self.digits & !text.digits) | (self.letters & !text.letters) | (self.either & !text.either)
            == 0
    }
}

/// The runs of letters and digits of a shape or of a text: how long they are, and how the first begins. Tells most texts
/// from most shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Six bits a run, the first the lowest; 63 for longer ones.
    lens: u64,
    runs: u8,
    /// Whether the first byte is a letter.
    lead: bool,
}

impl Outline {
    /// Most runs told apart.
    pub const RUNS_MAX: usize = 10;

    /// With one more run.
    pub fn and(mut self, len: usize) -> Self {
        self.lens |= (len.min(63) as u64) << (6 * u32::from(self.runs));
        self.runs += 1;
        self
    }

    /// Of a text that begins with a letter, or does not.
    pub fn begin(lead: bool) -> Self {
        Self {
            lead,
            ..Self::default()
        }
    }

    /// The outline of a text or a shape.
    pub fn of(text: &[u8], lead: bool) -> Self {
        let runs = groups(text).take(Self::RUNS_MAX);
        runs.fold(Self::begin(lead), |outline, run| outline.and(run.len()))
    }

    /// Tells the lengths of the runs from most others.
    fn hash(self) -> usize {
        let hash = self.lens.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - Shapes::BITS);
        hash as usize ^ usize::from(self.lead)
    }
}

/// All shapes of a set, found by the lengths of their runs.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// In the order of a hash of their outlines; those that may begin with either twice.
    all: Box<[Shape]>,
    /// A bit for each hash there is: most texts need no other look.
    known: Box<[u64; 1 << (Shapes::BITS - 6)]>,
    /// By hash, where its shapes begin; one more at the end.
    from: Box<[u32]>,
}

impl Shapes {
    const BITS: u32 = 13;

    pub(super) fn new(shapes: BTreeMap<Box<[u8]>, Vec<RuleId>>, all_rules: &[Compiled]) -> Self {
        let mut all = Vec::new();
        for (shape, mut rules) in shapes {
            rules.sort_by_key(|rule| is_told(&all_rules[rule.index()]));
            let leads: &[bool] = match shape[0] {
                b'X' => &[false, true],
                b if b.is_ascii_digit() => &[false],
                _ => &[true],
            };
            let of_lead = |lead: &bool| Shape::new(shape.clone(), *lead, rules.clone(), all_rules);
            all.extend(leads.iter().map(of_lead));
        }
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
        Self {
            all: all.into(),
            known,
            from,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
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

    /// Those that a text has, of this outline and these classes.
    pub fn of<'s>(
        &'s self,
        text: &'s [u8],
        outline: Outline,
        classes: Classes,
    ) -> impl Iterator<Item = &'s Shape> {
        let hash = outline.hash();
        let here = &self.all[self.from[hash] as usize..self.from[hash + 1] as usize];
        let fits = move |s: &&Shape| s.fits(text, outline, classes);
        here.iter().filter(fits)
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
