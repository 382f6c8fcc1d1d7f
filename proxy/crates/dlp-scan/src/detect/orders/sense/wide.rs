//! The sums of the network compiled for AVX2, where the processor has it: the same whole numbers in a third of the
//! instructions. Unsafe here: the call of what the processor was asked about first.
#![allow(unsafe_code)]

use super::net::{FEATURES, Net, Place, Sums};

/// That the processor has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// [`Net::sums`].
    pub fn sums(self, net: &Net, pieces: &[u16], place: Place) -> (Sums, [u16; FEATURES]) {
        // SAFETY: a value of this type exists only where the processor has what it says.
        unsafe { sums(net, pieces, place) }
    }
}

#[target_feature(enable = "avx2")]
fn sums(net: &Net, pieces: &[u16], place: Place) -> (Sums, [u16; FEATURES]) {
    net.sums(pieces, place)
}
