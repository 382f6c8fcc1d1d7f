//! Questions to a block of bytes, answered with a bit for each byte.

/// Bytes of a block, and bits of an answer.
pub(crate) const BLOCK: usize = 64;
/// Bytes before the block that it may be compared with.
pub(super) const BACK: usize = 3;
/// A block and the bytes before it.
pub(super) type Window = [u8; BACK + BLOCK];

/// A block of 64 bytes. The first byte's bit is the lowest.
pub(super) trait Lanes: Copy {
    /// The block of a window, moved back by up to [`BACK`] bytes.
    fn load(window: &Window, back: usize) -> Self;
    /// The bytes that are `byte`.
    fn eq(self, byte: u8) -> u64;
    /// The bytes from `first` to `last`.
    fn within(self, first: u8, last: u8) -> u64;
    /// The bytes that are those of another block.
    fn same(self, other: Self) -> u64;
    /// The bytes that are no ASCII.
    fn high(self) -> u64;
    /// With one bit set in each byte that makes small letters of capital ones.
    fn folded(self) -> Self;
}

/// Lanes on any processor: eight bytes to a number.
#[derive(Clone, Copy)]
pub(super) struct Plain([u64; BLOCK / 8]);

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x80 * ONES;

/// A number that has the top bit of each byte set whose answer is yes, for every eight bytes.
fn gather(tops: impl Iterator<Item = u64>) -> u64 {
    let bits = |tops: u64| ((tops & TOPS) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let numbered = (0..).zip(tops);
    numbered.fold(0, |all, (nth, tops)| all | bits(tops) << (8 * nth))
}

/// The top bits of the bytes that are zero.
fn zeros(word: u64) -> u64 {
    !(((word & !TOPS) + !TOPS) | word)
}

impl Lanes for Plain {
    fn load(window: &Window, back: usize) -> Self {
        let (words, _) = window[BACK - back..].as_chunks();
        Self(std::array::from_fn(|nth| u64::from_le_bytes(words[nth])))
    }

    fn eq(self, byte: u8) -> u64 {
        let all = ONES * u64::from(byte);
        gather(self.0.iter().map(|word| zeros(word ^ all)))
    }

    fn within(self, first: u8, last: u8) -> u64 {
        debug_assert!(first <= last && last < 0x7F);
        let (to_first, past_last) = (
            ONES * u64::from(0x80 - first),
            ONES * u64::from(0x7F - last),
        );
        gather(self.0.iter().map(|word| {
            let low = word & !TOPS;
            (low + to_first) & !(low + past_last) & !word
        }))
    }

    fn same(self, other: Self) -> u64 {
        gather(self.0.iter().zip(other.0).map(|(a, b)| zeros(a ^ b)))
    }

    fn high(self) -> u64 {
        gather(self.0.into_iter())
    }

    fn folded(self) -> Self {
        Self(self.0.map(|word| word | (0x20 * ONES)))
    }
}
