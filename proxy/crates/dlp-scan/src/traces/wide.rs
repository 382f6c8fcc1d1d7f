//! Blocks in one register of 64 bytes, or two of 32, where the processor has them (AVX-512, AVX2). Unsafe here:
//! intrinsics, and the call of what the processor was asked about first.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::lanes::{BACK, Lanes, Window};
use super::{Reader, Traces};

/// What the processor has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide(Width);

#[derive(Clone, Copy, Debug)]
enum Width {
    Avx512,
    Avx2,
}

impl Wide {
    /// All that the processor has, the widest first.
    pub fn detect() -> impl Iterator<Item = Self> {
        let bits = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let avx512 = (avx512 && bits).then_some(Self(Width::Avx512));
        let avx2 = (is_x86_feature_detected!("avx2") && bits).then_some(Self(Width::Avx2));
        [avx512, avx2].into_iter().flatten()
    }

    /// Reads a text.
    pub fn read(self, text: &[u8], traces: &mut Traces) {
        // SAFETY: a value of this type exists only where the processor has what it says.
        unsafe {
            match self.0 {
                Width::Avx512 => read_512(text, traces),
                Width::Avx2 => read_256(text, traces),
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
fn read_512(text: &[u8], traces: &mut Traces) {
    Reader::read::<Whole>(text, traces);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn read_256(text: &[u8], traces: &mut Traces) {
    Reader::read::<Halves>(text, traces);
}

/// Is used only within [`read_512`], into which all of it is compiled.
#[derive(Clone, Copy)]
struct Whole(__m512i);

impl Lanes for Whole {
    #[inline(always)]
    fn load(window: &Window, back: usize) -> Self {
        let from = &window[BACK - back..][..64];
        // SAFETY: there are 64 bytes, and the caller is compiled for AVX-512, as for every function here.
        unsafe { Self(_mm512_loadu_si512(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn eq(self, byte: u8) -> u64 {
        // SAFETY: see `load`.
        unsafe { _mm512_cmpeq_epi8_mask(self.0, _mm512_set1_epi8(byte as i8)) }
    }

    #[inline(always)]
    fn within(self, first: u8, last: u8) -> u64 {
        // SAFETY: see `load`.
        unsafe {
            let off = _mm512_sub_epi8(self.0, _mm512_set1_epi8(first as i8));
            _mm512_cmple_epu8_mask(off, _mm512_set1_epi8((last - first) as i8))
        }
    }

    #[inline(always)]
    fn same(self, other: Self) -> u64 {
        // SAFETY: see `load`.
        unsafe { _mm512_cmpeq_epi8_mask(self.0, other.0) }
    }

    #[inline(always)]
    fn high(self) -> u64 {
        // SAFETY: see `load`.
        unsafe { _mm512_movepi8_mask(self.0) }
    }

    #[inline(always)]
    fn folded(self) -> Self {
        // SAFETY: see `load`.
        unsafe { Self(_mm512_or_si512(self.0, _mm512_set1_epi8(0x20))) }
    }
}

/// Is used only within [`read_256`], into which all of it is compiled.
#[derive(Clone, Copy)]
struct Halves(__m256i, __m256i);

/// One bit for each byte whose top bit is set.
///
/// SAFETY: as for every function here, the caller is compiled for AVX2.
#[inline(always)]
unsafe fn bits(low: __m256i, high: __m256i) -> u64 {
    unsafe {
        let (low, high) = (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high));
        u64::from(low as u32) | u64::from(high as u32) << 32
    }
}

impl Lanes for Halves {
    #[inline(always)]
    fn load(window: &Window, back: usize) -> Self {
        let from = &window[BACK - back..][..64];
        // SAFETY: there are 64 bytes; see `bits`.
        unsafe {
            Self(
                _mm256_loadu_si256(from.as_ptr().cast()),
                _mm256_loadu_si256(from[32..].as_ptr().cast()),
            )
        }
    }

    #[inline(always)]
    fn eq(self, byte: u8) -> u64 {
        // SAFETY: see `bits`.
        unsafe {
            let all = _mm256_set1_epi8(byte as i8);
            bits(
                _mm256_cmpeq_epi8(self.0, all),
                _mm256_cmpeq_epi8(self.1, all),
            )
        }
    }

    #[inline(always)]
    fn within(self, first: u8, last: u8) -> u64 {
        // SAFETY: see `bits`.
        unsafe {
            // From `first` on, what is no more than the width stays as it is.
            let (from, width) = (
                _mm256_set1_epi8(first as i8),
                _mm256_set1_epi8((last - first) as i8),
            );
            let is = |v| {
                let off = _mm256_sub_epi8(v, from);
                _mm256_cmpeq_epi8(_mm256_min_epu8(off, width), off)
            };
            bits(is(self.0), is(self.1))
        }
    }

    #[inline(always)]
    fn same(self, other: Self) -> u64 {
        // SAFETY: see `bits`.
        unsafe {
            bits(
                _mm256_cmpeq_epi8(self.0, other.0),
                _mm256_cmpeq_epi8(self.1, other.1),
            )
        }
    }

    #[inline(always)]
    fn high(self) -> u64 {
        // SAFETY: see `bits`.
        unsafe { bits(self.0, self.1) }
    }

    #[inline(always)]
    fn folded(self) -> Self {
        // SAFETY: see `bits`.
        unsafe {
            let bit = _mm256_set1_epi8(0x20);
            Self(_mm256_or_si256(self.0, bit), _mm256_or_si256(self.1, bit))
        }
    }
}
