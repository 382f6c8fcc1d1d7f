//! The network and its weights, which `policies/sense/train.py` wrote.
//!
//! A piece adds to each feature of the place before it, its own and the one behind it; what it adds was worked out when the
//! weights were written, so that a place costs three sums of small whole numbers and no product.
//!
//! The file, all numbers little-endian: `WSN4`; three `u32`, how many pieces, features and hidden ones; each piece as a byte
//! of length and its bytes; for each piece three times the features (`i8`): what it adds to the place behind it, to its own,
//! to the one before it; the same three (`i16`) for any piece that stands before, in and behind the sentence, the features'
//! bias in its own; then as `f32` a scale for each feature, the two layers with their biases, the weights and bias of the
//! sentence by itself, and what the second look has ([`Deep`]).

use super::deep::{Deep, Seen};
use std::sync::LazyLock;

/// Pieces of a neighbouring sentence, and of the sentence, that are looked at.
const BESIDE_MAX: usize = 28;
const HERE_MAX: usize = 64;
pub(super) const FEATURES: usize = 64;
/// The sums of a whole text fit in 16 bits while a place has no more than this by itself.
const PLACE_MAX: i16 = (u16::MAX as usize / HERE_MAX - 3 * i8::MAX as usize) as i16;
const HIDDEN: usize = 32;

pub(super) static NET: LazyLock<Net> = LazyLock::new(|| {
    Net::of_file(include_bytes!(
        "../../../../../../../policies/sense/weights.bin"
    ))
});

type Row = [f32; FEATURES];
pub(super) type Sums = [i16; FEATURES];
pub(super) type Totals = [u16; FEATURES];
/// Pieces of a sentence, and where it stands.
pub(super) type Text<'a> = (&'a [u16], Place);
/// A sentence and those beside it, in their order.
pub(super) type Texts<'a> = [Text<'a>; 3];

#[cfg(target_arch = "x86_64")]
static AVX2: LazyLock<Option<super::wide::Avx2>> = LazyLock::new(super::wide::Avx2::detect);

pub(super) struct Net {
    vocabulary: Vec<&'static [u8]>,
    /// For each piece what it adds behind itself, at itself and before itself (`i8`).
    adds: &'static [[u8; FEATURES]],
    /// What stands in each text: with nothing beside it, with a piece before it, behind it, on both sides.
    places: [[Sums; 4]; 3],
    scales: Row,
    first: Vec<[f32; HIDDEN]>,
    first_bias: [f32; HIDDEN],
    last: [f32; HIDDEN],
    last_bias: f32,
    alone: [Row; 2],
    alone_bias: f32,
    deep: Deep,
}

/// What a text comes to: for each feature the most and the sum.
pub(super) struct Features {
    pub most: Row,
    pub sum: Row,
}

/// Where a text stands.
#[derive(Clone, Copy)]
pub(super) enum Place {
    Before,
    Here,
    After,
}

impl Net {
    fn of_file(file: &'static [u8]) -> Self {
        let mut file = Reader(file);
        assert_eq!(file.bytes(4), b"WSN4", "the weights' own file");
        let [pieces, features, hidden] = [(); 3].map(|()| file.number());
        assert_eq!([features, hidden], [FEATURES, HIDDEN]);
        let vocabulary = (0..pieces).map(|_| {
            let length = usize::from(file.bytes(1)[0]);
            file.bytes(length)
        });
        let net = Self {
            vocabulary: vocabulary.collect(),
            adds: file.bytes(pieces * 3 * FEATURES).as_chunks().0,
            places: [(); 3].map(|()| {
                let [behind, own, ahead] = [(); 3].map(|()| file.sums());
                let with = |a, b| sum(&own, a, b);
                let none = [0; FEATURES];
                [
                    own,
                    with(&behind, &none),
                    with(&none, &ahead),
                    with(&behind, &ahead),
                ]
            }),
            scales: file.floats(),
            first: (0..4 * FEATURES).map(|_| file.floats()).collect(),
            first_bias: file.floats(),
            last: file.floats(),
            last_bias: file.floats::<1>()[0],
            alone: [(); 2].map(|()| file.floats()),
            alone_bias: file.floats::<1>()[0],
            deep: Deep::read(&mut file),
        };
        let most = net.places.as_flattened().as_flattened().iter().max();
        assert!(most.is_some_and(|most| *most <= PLACE_MAX));
        assert!(file.0.is_empty(), "the weights' own file");
        net
    }

    /// The pieces with their numbers.
    pub fn vocabulary(&self) -> impl Iterator<Item = (u16, &'static [u8])> {
        (0..).zip(self.vocabulary.iter().copied())
    }

    /// What the sentence itself comes to.
    pub fn here(&self, pieces: &[u16]) -> Features {
        self.features(&pieces[..pieces.len().min(HERE_MAX)], Place::Here)
    }

    /// May it be an order, whatever stands beside it? Most that are none are told so, and one in fifty that is.
    pub fn may_order(&self, here: &Features) -> bool {
        let [most, sum] = &self.alone;
        dot(&here.most, most) + dot(&here.sum, sum) + self.alone_bias > 0.0
    }

    /// How much of an order a sentence is that comes to this, between these two: a logit.
    pub fn weigh(&self, before: &[u16], here: &Features, after: &[u16]) -> f32 {
        let [before, _, after] = looked_at(before, &[], after);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = *AVX2 {
            return avx2.weigh(self, before, here, after);
        }
        self.weigh_texts(before, here, after)
    }

    /// The same looked at more closely.
    pub fn weigh_closely(&self, before: &[u16], here: &[u16], after: &[u16]) -> f32 {
        let texts = looked_at(before, here, after);
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = *AVX2 {
            return avx2.weigh_closely(self, texts);
        }
        self.weigh_texts_closely(texts)
    }

    // Nothing here goes through `map` of an array or the like: what is called in there is not compiled for the processor that the
    // caller was.
    #[inline(always)]
    pub(super) fn weigh_texts(&self, before: Text<'_>, here: &Features, after: Text<'_>) -> f32 {
        let (before, after) = (self.read(before), self.read(after));
        let mut hidden = self.first_bias;
        let mut add = |at: usize, value: f32| {
            if value != 0.0 {
                let row = hidden.iter_mut().zip(&self.first[at]);
                row.for_each(|(h, w)| *h += value * w);
            }
        };
        for f in 0..FEATURES {
            add(f, here.most[f]);
            add(FEATURES + f, here.sum[f]);
            add(2 * FEATURES + f, before.most[f].max(after.most[f]));
            add(3 * FEATURES + f, before.sum[f] + after.sum[f]);
        }
        let last = hidden.iter().zip(&self.last);
        last.fold(self.last_bias, |sum, (h, w)| sum + h.max(0.0) * w)
    }

    #[inline(always)]
    pub(super) fn weigh_texts_closely(&self, [before, here, after]: Texts<'_>) -> f32 {
        let (before, here, after) = (self.see(before), self.see(here), self.see(after));
        self.deep.weigh(&before, &here, &after)
    }

    #[inline(always)]
    fn read(&self, (pieces, place): Text<'_>) -> Features {
        self.scaled(self.sums(pieces, place), pieces.len())
    }

    #[inline(always)]
    fn see(&self, (pieces, place): Text<'_>) -> (Features, Seen) {
        let mut places = Vec::with_capacity(pieces.len());
        self.each(pieces, place, |value| places.push(*value));
        let seen = self.deep.see(&places, &self.scales);
        (self.scaled(sums(&places), pieces.len()), seen)
    }

    fn features(&self, pieces: &[u16], place: Place) -> Features {
        #[cfg(target_arch = "x86_64")]
        let sums = match *AVX2 {
            Some(avx2) => avx2.sums(self, pieces, place),
            None => self.sums(pieces, place),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let sums = self.sums(pieces, place);
        self.scaled(sums, pieces.len())
    }

    /// What the sums of a text of so many pieces come to.
    #[inline(always)]
    fn scaled(&self, (most, total): (Sums, Totals), pieces: usize) -> Features {
        let share = 0.3 / (pieces as f32 + 1e-6).sqrt();
        let mut features = Features {
            most: [0.0; FEATURES],
            sum: [0.0; FEATURES],
        };
        for f in 0..FEATURES {
            features.most[f] = f32::from(most[f]) * self.scales[f];
            features.sum[f] = f32::from(total[f]) * self.scales[f] * share;
        }
        features
    }

    /// For each feature the most of all places and their sum: whole numbers, the same however they are added up.
    #[inline(always)]
    pub(super) fn sums(&self, pieces: &[u16], place: Place) -> (Sums, Totals) {
        let mut sums = NOTHING;
        self.each(pieces, place, |value| count(&mut sums, value));
        sums
    }

    /// Calls `found` with the features of each place.
    #[inline(always)]
    fn each(&self, pieces: &[u16], place: Place, mut found: impl FnMut(&Sums)) {
        for (at, piece) in pieces.iter().enumerate() {
            let (before, next) = (at.checked_sub(1), pieces.get(at + 1));
            let beside = usize::from(before.is_some()) + 2 * usize::from(next.is_some());
            let mut value = self.places[place as usize][beside];
            self.add(&mut value, *piece, 1);
            if let Some(before) = before {
                self.add(&mut value, pieces[before], 0);
            }
            if let Some(next) = next {
                self.add(&mut value, *next, 2);
            }
            for v in &mut value {
                *v = (*v).max(0);
            }
            found(&value);
        }
    }

    /// What a piece adds to the place behind it (0), its own (1), the one before it (2).
    #[inline(always)]
    fn add(&self, value: &mut Sums, piece: u16, to: usize) {
        let adds = &self.adds[usize::from(piece) * 3 + to];
        for f in 0..FEATURES {
            value[f] += i16::from(adds[f].cast_signed());
        }
    }
}

const NOTHING: (Sums, Totals) = ([0; FEATURES], [0; FEATURES]);

/// [`Net::sums`] of places that are known.
#[inline(always)]
fn sums(places: &[Sums]) -> (Sums, Totals) {
    let mut sums = NOTHING;
    places.iter().for_each(|value| count(&mut sums, value));
    sums
}

#[inline(always)]
fn count((most, total): &mut (Sums, Totals), value: &Sums) {
    for f in 0..FEATURES {
        most[f] = most[f].max(value[f]);
        total[f] += value[f].cast_unsigned();
    }
}

/// A sentence between its neighbours, as much of them as is looked at.
fn looked_at<'a>(before: &'a [u16], here: &'a [u16], after: &'a [u16]) -> Texts<'a> {
    [
        (
            &before[before.len().saturating_sub(BESIDE_MAX)..],
            Place::Before,
        ),
        (&here[..here.len().min(HERE_MAX)], Place::Here),
        (&after[..after.len().min(BESIDE_MAX)], Place::After),
    ]
}

fn sum(a: &Sums, b: &Sums, c: &Sums) -> Sums {
    std::array::from_fn(|f| a[f] + b[f] + c[f])
}

/// In order, so that it is the same everywhere.
fn dot(a: &Row, b: &Row) -> f32 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

/// The file is a part of the program, and whole.
pub(super) struct Reader(&'static [u8]);

impl Reader {
    fn bytes(&mut self, n: usize) -> &'static [u8] {
        let (own, rest) = self.0.split_at(n);
        self.0 = rest;
        own
    }

    fn number(&mut self) -> usize {
        let bytes = self.bytes(4).try_into().expect("four bytes");
        u32::from_le_bytes(bytes) as usize
    }

    fn sums(&mut self) -> Sums {
        let bytes = self.bytes(2 * FEATURES);
        std::array::from_fn(|f| i16::from_le_bytes([bytes[2 * f], bytes[2 * f + 1]]))
    }

    pub fn floats<const N: usize>(&mut self) -> [f32; N] {
        let bytes = self.bytes(4 * N);
        std::array::from_fn(|i| {
            let own = bytes[4 * i..4 * i + 4].try_into().expect("four bytes");
            f32::from_le_bytes(own)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{NET, looked_at};

    /// Whatever the processor has, the number is the same to the bit.
    #[test]
    fn vectors_change_no_bit() {
        let mut seed = 7_u64;
        let mut pieces = |n: usize| -> Vec<u16> {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 33) as usize % (NET.adds.len() / 3)
            };
            (0..n).map(|_| u16::try_from(next()).unwrap()).collect()
        };
        for n in (0..80).chain([200]) {
            let [before, here, after] = [n / 2, n, n / 3].map(&mut pieces);
            let texts = looked_at(&before, &here, &after);
            let [first, own, last] = texts;
            let one = NET.weigh_texts(first, &NET.read(own), last);
            let two = NET.weigh_texts_closely(texts);
            let weighed = NET.weigh(&before, &NET.here(&here), &after);
            assert_eq!(weighed.to_bits(), one.to_bits());
            let closely = NET.weigh_closely(&before, &here, &after);
            assert_eq!(closely.to_bits(), two.to_bits());
        }
    }
}
