//! Eight grams at a time, where the processor can (AVX2): the same hash, the same bitmap, one load for eight answers.
//!
//! Unsafe here: intrinsics that take a pointer, and the call of what the processor was asked about first. The crate has
//! unsafe code in two other places, [`super::wide512`] and [`crate::traces`], for the same.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::Range;

use super::Hit;
use super::gram::{BIT_BITS, BITMAP_WORDS, Bitmap, FOLD, GramGate, HASH_FACTOR, WORD_BITS};

/// That the processor has AVX2, and what came with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The places of a turn.
    pub const GRAMS: usize = 8;
    /// Bytes looked at in a turn, for steps of one place or two.
    pub const BYTES: usize = 24;

    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }

    /// Looks at every `STEP`th place from `at` on, turn by turn, as long as there is text for one; returns where it ended.
    pub fn look<const STEP: usize>(
        self,
        gate: &GramGate,
        text: &[u8],
        range: Range<usize>,
        out: &mut Vec<Hit>,
    ) -> usize {
        // SAFETY: a value of this type exists only where the processor has what it says.
        unsafe { look::<STEP>(gate, text, range, out) }
    }
}

/// The whole loop is compiled for the processor, so that nothing is called and no constant loaded in a turn.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn look<const STEP: usize>(
    gate: &GramGate,
    text: &[u8],
    range: Range<usize>,
    out: &mut Vec<Hit>,
) -> usize {
    gate.look_in_turns::<STEP>(text, range, out, |bitmap, bytes| {
        passes::<STEP>(bitmap, bytes)
    })
}

/// Which of the eight grams that begin every `STEP` bytes pass: a bit each, the first the lowest.
#[target_feature(enable = "avx2")]
#[inline]
fn passes<const STEP: usize>(bitmap: &Bitmap, text: &[u8; Avx2::BYTES]) -> u32 {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&text[at..at + 8]);
        i64::from_le_bytes(bytes)
    };
    // The second half begins with the fifth gram.
    let half = 4 * STEP;
    let bytes = _mm256_set_epi64x(word(half + 8), word(half), word(8), word(0));
    let spread = match STEP {
        1 => _mm256_setr_epi8(
            0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, //
            0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6,
        ),
        _ => _mm256_setr_epi8(
            0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9, //
            0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9,
        ),
    };
    let folded = _mm256_or_si256(bytes, _mm256_set1_epi32(FOLD as i32));
    let grams = _mm256_shuffle_epi8(folded, spread);
    const { assert!(1 << (BIT_BITS + 1) == u32::BITS && BITMAP_WORDS == 1 << WORD_BITS) };
    let others = _mm256_srli_epi32::<8>(grams);
    let product = _mm256_mullo_epi32(others, _mm256_set1_epi32(HASH_FACTOR as i32));
    let index = _mm256_srli_epi32::<{ (32 - WORD_BITS) as i32 }>(product);
    // SAFETY: an index has WORD_BITS bits, and the bitmap has so many words.
    let words = unsafe { _mm256_i32gather_epi32::<4>(bitmap.as_ptr().cast(), index) };
    let (low, half) = (
        _mm256_set1_epi32((1 << BIT_BITS) - 1),
        _mm256_set1_epi32(1 << BIT_BITS),
    );
    let one = _mm256_srlv_epi32(words, _mm256_and_si256(grams, low));
    let next = _mm256_srli_epi32::<{ (32 - WORD_BITS - BIT_BITS) as i32 }>(product);
    let second = _mm256_or_si256(_mm256_and_si256(next, low), half);
    let two = _mm256_srlv_epi32(words, second);
    let both = _mm256_slli_epi32::<31>(_mm256_and_si256(one, two));
    _mm256_movemask_ps(_mm256_castsi256_ps(both)) as u32
}
