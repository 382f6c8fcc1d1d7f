//! The network compiled for AVX2, where the processor has it: the same numbers in a third of the instructions, as each feature is
//! summed up by itself and no product is rounded otherwise. Unsafe here: the calls of what the processor was asked about first.
#![allow(unsafe_code)]

use super::net::{Features, Net, Place, Sums, Text, Texts, Totals};

/// That the processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// [`Net::sums`].
    pub fn sums(self, net: &Net, pieces: &[u16], place: Place) -> (Sums, Totals) {
        // SAFETY: a value of this type exists only where the processor has what it says.
        unsafe { sums(net, pieces, place) }
    }

    /// [`Net::weigh`].
    pub fn weigh(self, net: &Net, before: Text<'_>, here: &Features, after: Text<'_>) -> f32 {
        // SAFETY: as above.
        unsafe { weigh(net, before, here, after) }
    }

    /// [`Net::weigh_closely`].
    pub fn weigh_closely(self, net: &Net, texts: Texts<'_>) -> f32 {
        // SAFETY: as above.
        unsafe { weigh_closely(net, texts) }
    }
}

#[target_feature(enable = "avx2")]
fn sums(net: &Net, pieces: &[u16], place: Place) -> (Sums, Totals) {
    net.sums(pieces, place)
}

#[target_feature(enable = "avx2")]
fn weigh(net: &Net, before: Text<'_>, here: &Features, after: Text<'_>) -> f32 {
    net.weigh_texts(before, here, after)
}

#[target_feature(enable = "avx2")]
fn weigh_closely(net: &Net, texts: Texts<'_>) -> f32 {
    net.weigh_texts_closely(texts)
}
