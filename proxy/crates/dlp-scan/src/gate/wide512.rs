//! Sixteen grams at a time, and the sieves for eight places, where the processor can (AVX-512): the same hashes and the
//! same tables as [`super::gram`].
//!
//! Unsafe here: intrinsics that take a pointer, and the call of what the processor was asked about first.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::ops::Range;

use super::Hit;
use super::gram::{
    BIT_BITS, BITMAP_WORDS, Bitmap, Bits, FOLD, FOLD64, FineSieve, GramGate, HASH_FACTOR, Sieve,
    WORD_BITS,
};

/// That the processor has AVX-512 with what is asked for here, as all have that have its bytes' permutations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The places of a turn.
    const GRAMS: usize = 16;
    /// Bytes before a place that the sieves ask about, and so the first place that may be looked at.
    pub const BACK: usize = 8;

    pub fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Self(()))
    }

    /// Looks at every `STEP`th place of the range, turn by turn, as long as there is text for one; returns where it
    /// ended.
    pub fn look<const STEP: usize>(
        self,
        gate: &GramGate,
        text: &[u8],
        range: Range<usize>,
        out: &mut Vec<Hit>,
    ) -> usize {
        if range.start < Self::BACK || i32::try_from(text.len()).is_err() {
            return range.start;
        }
        // SAFETY: a value of this type exists only where the processor has what it says; the range begins behind so many
        // bytes, and places are numbered with 31 bits.
        unsafe { look::<STEP>(gate, text, range, out) }
    }
}

/// The places of a stretch of text that passed so far. Each has [`Avx512::BACK`] bytes before it and eight from it on.
struct Places {
    at: [u32; Self::MAX],
    len: usize,
}

impl Places {
    const MAX: usize = 128;

    /// Room for `N` more.
    fn free<const N: usize>(&mut self, from: usize) -> &mut [u32; N] {
        let free = self.at.get_mut(from..).and_then(|f| f.first_chunk_mut());
        free.expect("is emptied before it is full")
    }
}

/// # Safety
/// The range begins at [`Avx512::BACK`] or later, and the text is no longer than 31 bits say.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn look<const STEP: usize>(
    gate: &GramGate,
    text: &[u8],
    range: Range<usize>,
    out: &mut Vec<Hit>,
) -> usize {
    let mut places = Places {
        at: [0; Places::MAX],
        len: 0,
    };
    let (mut at, turn) = (range.start, Avx512::GRAMS * STEP);
    while at + turn <= range.end
        && let Some(bytes) = text.get(at..).and_then(|t| t.first_chunk())
    {
        let passed = passes::<STEP>(&gate.bits, bytes);
        let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let numbers = _mm512_mullo_epi32(numbers, _mm512_set1_epi32(STEP as i32));
        let those = _mm512_add_epi32(numbers, _mm512_set1_epi32(at as i32));
        let those = _mm512_maskz_compress_epi32(passed, those);
        let free: &mut [u32; 16] = places.free(places.len);
        // SAFETY: there is room for sixteen.
        unsafe { _mm512_storeu_si512(free.as_mut_ptr().cast(), those) };
        places.len += passed.count_ones() as usize;
        at += turn;
        if places.len + 16 > Places::MAX {
            // SAFETY: the places have bytes around them, as `bytes` has 64.
            unsafe { sift(gate, text, &mut places, out) };
        }
    }
    // SAFETY: as above.
    unsafe { sift(gate, text, &mut places, out) };
    at
}

/// Which of the sixteen grams that begin every `STEP` bytes pass the bitmap.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
#[inline]
fn passes<const STEP: usize>(bitmap: &Bitmap, text: &[u8; 64]) -> __mmask16 {
    let spread: [u8; 64] = std::array::from_fn(|nth| (nth / 4 * STEP + nth % 4) as u8);
    // SAFETY: both have 64 bytes.
    let (bytes, spread) = unsafe {
        (
            _mm512_loadu_si512(text.as_ptr().cast()),
            _mm512_loadu_si512(spread.as_ptr().cast()),
        )
    };
    let folded = _mm512_or_si512(bytes, _mm512_set1_epi32(FOLD as i32));
    let grams = _mm512_permutexvar_epi8(spread, folded);
    const { assert!(1 << (BIT_BITS + 1) == u32::BITS && BITMAP_WORDS == 1 << WORD_BITS) };
    let others = _mm512_srli_epi32::<8>(grams);
    let product = _mm512_mullo_epi32(others, _mm512_set1_epi32(HASH_FACTOR as i32));
    let index = _mm512_srli_epi32::<{ 32 - WORD_BITS }>(product);
    // SAFETY: an index has WORD_BITS bits, and the bitmap has so many words.
    let words = unsafe { _mm512_i32gather_epi32::<4>(index, bitmap.as_ptr().cast()) };
    let (low, half) = (
        _mm512_set1_epi32((1 << BIT_BITS) - 1),
        _mm512_set1_epi32(1 << BIT_BITS),
    );
    let one = _mm512_srlv_epi32(words, _mm512_and_si512(grams, low));
    let next = _mm512_srli_epi32::<{ 32 - WORD_BITS - BIT_BITS }>(product);
    let second = _mm512_or_si512(_mm512_and_si512(next, low), half);
    let two = _mm512_srlv_epi32(words, second);
    _mm512_test_epi32_mask(_mm512_and_si512(one, two), _mm512_set1_epi32(1))
}

/// Confirms the places that are left once the sieves have had them.
///
/// # Safety
/// Each place has eight bytes before it and eight from it on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn sift(gate: &GramGate, text: &[u8], places: &mut Places, out: &mut Vec<Hit>) {
    // SAFETY: what holds of all places holds of those that are kept.
    unsafe {
        keep(text, places, |word, before| {
            passes_sieve(&gate.sieve, word, before)
        });
        keep(text, places, |word, before| {
            passes_fine(&gate.fine, word, before)
        });
    }
    for at in &places.at[..places.len] {
        gate.look_up_at(text, *at as usize, out);
    }
    places.len = 0;
}

/// Keeps the places for which `is` holds.
///
/// # Safety
/// Each place has eight bytes before it and eight from it on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn keep(text: &[u8], places: &mut Places, is: impl Fn(__m512i, __m512i) -> __mmask8) {
    let (len, mut left) = (places.len, 0);
    for nth in (0..len).step_by(8) {
        let those: &mut [u32; 8] = places.free(nth);
        let some = u8::MAX >> 8_usize.saturating_sub(len - nth);
        // SAFETY: there are eight, of which those are places that `some` says; what is asked of them lies in the text.
        let (at, word, before) = unsafe {
            let at = _mm256_loadu_si256(those.as_ptr().cast());
            let back = _mm256_sub_epi32(at, _mm256_set1_epi32(Avx512::BACK as i32));
            let (none, text) = (_mm512_setzero_si512(), text.as_ptr().cast());
            (
                at,
                _mm512_mask_i32gather_epi64::<1>(none, some, at, text),
                _mm512_mask_i32gather_epi64::<1>(none, some, back, text),
            )
        };
        let fold = _mm512_set1_epi64(FOLD64 as i64);
        let passed = is(_mm512_or_si512(word, fold), _mm512_or_si512(before, fold)) & some;
        let kept: &mut [u32; 8] = places.free(left);
        // SAFETY: there is room for eight: no more are written than were read.
        unsafe {
            _mm256_storeu_si256(
                kept.as_mut_ptr().cast(),
                _mm256_maskz_compress_epi32(passed, at),
            )
        };
        left += passed.count_ones() as usize;
    }
    places.len = left;
}

/// The product of the sieves' hashes.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn product(of: __m512i) -> __m512i {
    _mm512_mullo_epi64(of, _mm512_set1_epi64(Sieve::FACTOR as i64))
}

/// Whether both bits of a hash are set: the lowest bit of each lane.
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn bit(bits: &Bits, of: __m512i) -> __m512i {
    const { assert!(Sieve::BITS == 11) };
    let hash = _mm512_srli_epi64::<{ 64 - 11 - 12 }>(product(of));
    // SAFETY: twelve bits less, a hash has as many as tell the words apart.
    let words =
        unsafe { _mm512_i64gather_epi64::<8>(_mm512_srli_epi64::<12>(hash), bits.as_ptr().cast()) };
    let low = _mm512_set1_epi64(63);
    let one = _mm512_srlv_epi64(words, _mm512_and_si512(_mm512_srli_epi64::<6>(hash), low));
    let two = _mm512_srlv_epi64(words, _mm512_and_si512(hash, low));
    _mm512_and_si512(one, two)
}

/// The first bytes of each lane.
#[target_feature(enable = "avx512f")]
#[inline]
fn first<const BYTES: u32>(of: __m512i) -> __m512i {
    _mm512_and_si512(of, _mm512_set1_epi64((u64::MAX >> (64 - 8 * BYTES)) as i64))
}

/// As [`Sieve::passes`].
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn passes_sieve(sieve: &Sieve, word: __m512i, before: __m512i) -> __mmask8 {
    let after = _mm512_srli_epi64::<8>(word);
    const { assert!(Sieve::BITS_SHORT == 13) };
    let three = _mm512_srli_epi64::<{ 64 - 13 }>(product(first::<3>(after)));
    // SAFETY: six bits less, a hash has as many as tell the words apart.
    let short = unsafe {
        let index = _mm512_srli_epi64::<6>(three);
        _mm512_i64gather_epi64::<8>(index, sieve.three.as_ptr().cast())
    };
    let short = _mm512_srlv_epi64(short, _mm512_and_si512(three, _mm512_set1_epi64(63)));
    let begun = _mm512_slli_epi64::<16>(word);
    let upto = _mm512_or_si512(begun, _mm512_srli_epi64::<48>(before));
    let six = _mm512_or_si512(
        bit(&sieve.from, begun),
        bit(&sieve.upto, _mm512_slli_epi64::<16>(upto)),
    );
    let four = _mm512_or_si512(
        bit(&sieve.four, first::<4>(word)),
        bit(&sieve.four, first::<4>(after)),
    );
    let any = _mm512_or_si512(_mm512_or_si512(short, six), four);
    _mm512_test_epi64_mask(any, _mm512_set1_epi64(1))
}

/// As [`FineSieve::passes`].
#[target_feature(enable = "avx512f,avx512dq")]
#[inline]
fn passes_fine(sieve: &FineSieve, word: __m512i, before: __m512i) -> __mmask8 {
    let after = _mm512_srli_epi64::<8>(word);
    let back = |bytes: u32| {
        let (up, down) = (
            _mm512_set1_epi64(i64::from(8 * bytes)),
            _mm512_set1_epi64(i64::from(64 - 8 * bytes)),
        );
        _mm512_or_si512(_mm512_sllv_epi64(word, up), _mm512_srlv_epi64(before, down))
    };
    let told = [
        word,
        back(4),
        first::<6>(word),
        first::<6>(back(2)),
        first::<5>(word),
        first::<5>(back(1)),
        first::<4>(word),
        first::<4>(after),
        first::<3>(after),
    ];
    let mut any = _mm512_setzero_si512();
    for (bits, told) in sieve.0.iter().zip(told) {
        any = _mm512_or_si512(any, bit(bits, told));
    }
    _mm512_test_epi64_mask(any, _mm512_set1_epi64(1))
}
