//! The second look at a sentence that may be an order: three neighbours of what three neighbours made, so that it sees what stands
//! further apart. It costs some thousand products for each piece, and only few sentences come to it.

use super::net::{FEATURES, Features, Reader, Sums};

/// What the second layer makes of a place.
const SEEN: usize = 48;
const HIDDEN: usize = 48;
/// How far apart the three neighbours are.
const APART: usize = 2;

type Row = [f32; SEEN];

pub(super) struct Deep {
    /// For each neighbour and feature what it adds.
    adds: Vec<Row>,
    bias: Row,
    first: Vec<[f32; HIDDEN]>,
    first_bias: [f32; HIDDEN],
    last: [f32; HIDDEN],
    last_bias: f32,
}

/// For each of what is seen the most and the sum over a text.
pub(super) struct Seen {
    most: Row,
    sum: Row,
}

impl Deep {
    /// Reads the last part of the weights' file: for each of three neighbours and each feature a row, the bias; the two layers
    /// behind it with theirs.
    pub fn read(file: &mut Reader) -> Self {
        Self {
            adds: (0..3 * FEATURES).map(|_| file.floats()).collect(),
            bias: file.floats(),
            first: (0..4 * (FEATURES + SEEN)).map(|_| file.floats()).collect(),
            first_bias: file.floats(),
            last: file.floats(),
            last_bias: file.floats::<1>()[0],
        }
    }

    /// What is seen in a text whose places have these features.
    #[inline(always)]
    pub fn see(&self, places: &[Sums], scales: &[f32; FEATURES]) -> Seen {
        let mut seen = Seen {
            most: [0.0; SEEN],
            sum: [0.0; SEEN],
        };
        for at in 0..places.len() {
            let mut row = self.bias;
            let neighbours = [at.checked_sub(APART), Some(at), at.checked_add(APART)];
            for (nth, place) in neighbours.into_iter().enumerate() {
                let Some(features) = place.and_then(|place| places.get(place)) else {
                    continue;
                };
                // Most features of a place are nothing.
                for (f, value) in features.iter().enumerate().filter(|(_, v)| **v != 0) {
                    let value = f32::from(*value) * scales[f];
                    let adds = &self.adds[nth * FEATURES + f];
                    row.iter_mut().zip(adds).for_each(|(r, a)| *r += value * a);
                }
            }
            for (g, value) in row.into_iter().enumerate() {
                seen.most[g] = seen.most[g].max(value);
                seen.sum[g] += value.max(0.0);
            }
        }
        let share = 0.3 / (places.len() as f32 + 1e-6).sqrt();
        seen.sum.iter_mut().for_each(|sum| *sum *= share);
        seen
    }

    /// How much of an order a sentence is, by its features and its neighbours': a logit.
    #[inline(always)]
    pub fn weigh(
        &self,
        before: &(Features, Seen),
        here: &(Features, Seen),
        after: &(Features, Seen),
    ) -> f32 {
        let mut hidden = self.first_bias;
        let mut at = 0;
        let mut add = |value: f32| {
            if value != 0.0 {
                let row = hidden.iter_mut().zip(&self.first[at]);
                row.for_each(|(h, w)| *h += value * w);
            }
            at += 1;
        };
        let most = |a: &[f32], b: &[f32], f: usize| a[f].max(b[f]);
        (0..FEATURES).for_each(|f| add(here.0.most[f]));
        (0..FEATURES).for_each(|f| add(here.0.sum[f]));
        (0..FEATURES).for_each(|f| add(most(&before.0.most, &after.0.most, f)));
        (0..FEATURES).for_each(|f| add(before.0.sum[f] + after.0.sum[f]));
        (0..SEEN).for_each(|g| add(here.1.most[g]));
        (0..SEEN).for_each(|g| add(here.1.sum[g]));
        (0..SEEN).for_each(|g| add(most(&before.1.most, &after.1.most, g)));
        (0..SEEN).for_each(|g| add(before.1.sum[g] + after.1.sum[g]));
        let last = hidden.iter().zip(&self.last);
        last.fold(self.last_bias, |sum, (h, w)| sum + h.max(0.0) * w)
    }
}
