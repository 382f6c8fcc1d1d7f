//! The digits of base64, base32, hexadecimal and binary, and the bytes they stand for.

use super::binary::{Bytes, TEXT_BYTES_MIN};
use super::packed::is_zlib;
use crate::Layer;

/// How the digits of a run are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    Hex,
    Base32,
    /// RFC 4648, section 7.
    Base32Hex,
    Base64,
    /// Eight bits for each byte.
    Binary,
}

impl Alphabet {
    pub fn layer(self) -> Layer {
        match self {
            Self::Hex => Layer::Hex,
            Self::Base32 | Self::Base32Hex => Layer::Base32,
            Self::Base64 => Layer::Base64,
            Self::Binary => Layer::Codes,
        }
    }

    /// How many bytes as many digits stand for, as the smallest whole numbers.
    pub fn group(self) -> (usize, usize) {
        match self {
            Self::Hex => (1, 2),
            Self::Base32 | Self::Base32Hex => (5, 8),
            Self::Base64 => (3, 4),
            Self::Binary => (1, 8),
        }
    }

    /// Bits of a digit.
    fn width(self) -> u32 {
        match self {
            Self::Hex => 4,
            Self::Base32 | Self::Base32Hex => 5,
            Self::Base64 => 6,
            Self::Binary => 1,
        }
    }

    /// What each byte stands for as a digit, or [`NO_DIGIT`].
    fn digits(self) -> &'static [u8; 256] {
        match self {
            Self::Hex => &HEX_DIGITS,
            Self::Base32 => &BASE32_DIGITS,
            Self::Base32Hex => &BASE32_HEX_DIGITS,
            Self::Base64 => &BASE64_DIGITS,
            Self::Binary => &BINARY_DIGITS,
        }
    }
}

/// Digits and nothing else, as the bytes they stand for.
pub(super) struct Coded<'t> {
    pub digits: &'t [u8],
    pub alphabet: Alphabet,
}

impl Bytes for Coded<'_> {
    fn len(&self) -> usize {
        self.digits.len() * self.alphabet.width() as usize / 8
    }

    #[inline]
    fn at(&self, at: usize) -> u8 {
        match self.alphabet {
            Alphabet::Base64 => {
                let (group, place) = (at / 3, at % 3);
                let Some([first, second, ..]) = self.digits.get(group * 4 + place..) else {
                    return 0;
                };
                let digit = |b: &u8| value(&BASE64_DIGITS, *b);
                digit(first) << (2 + 2 * place) | digit(second) >> (4 - 2 * place)
            }
            Alphabet::Hex => {
                let digit = |at: usize| value(&HEX_DIGITS, self.digits[at]);
                digit(2 * at) << 4 | digit(2 * at + 1)
            }
            alphabet => {
                let (width, bit) = (alphabet.width() as usize, at * 8);
                let last = (bit + 7) / width;
                let (digits, known) = (&self.digits[bit / width..=last], alphabet.digits());
                let bits = digits
                    .iter()
                    .fold(0u32, |bits, b| bits << width | u32::from(value(known, *b)));
                (bits >> ((last + 1) * width - bit - 8)) as u8
            }
        }
    }
}

/// All bytes that digits of base64 stand for, as [`Coded`] has them one by one.
pub(super) fn base64_bytes(digits: &[u8], out: &mut Vec<u8>) {
    let digit = |b: u8| u32::from(BASE64_VALUES[usize::from(b)]);
    let (groups, rest) = digits.as_chunks::<4>();
    out.clear();
    out.resize(groups.len() * 3, 0);
    for ([a, b, c, d], bytes) in groups.iter().zip(out.as_chunks_mut::<3>().0) {
        let bits = digit(*a) << 18 | digit(*b) << 12 | digit(*c) << 6 | digit(*d);
        let [_, own @ ..] = bits.to_be_bytes();
        *bytes = own;
    }
    let rest = Coded {
        digits: rest,
        alphabet: Alphabet::Base64,
    };
    out.extend((0..rest.len()).map(|at| rest.at(at)));
}

/// Is it a hexadecimal digit? One look, where a question for digits and one for letters are two that nobody can foresee.
#[inline]
pub(super) fn is_hex(b: &u8) -> bool {
    HEX_DIGITS[usize::from(*b)] != NO_DIGIT
}

/// The alphabet of base32 that all of the run is written in, in one case. Words have no digits.
pub(super) fn base32_of(text: &[u8]) -> Option<Alphabet> {
    let all = |is: fn(&u8) -> bool| text.iter().all(is);
    let digits = || text.iter().any(u8::is_ascii_digit);
    match text[0] {
        _ if all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7')) => Some(Alphabet::Base32),
        _ if all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7')) => {
            digits().then_some(Alphabet::Base32)
        }
        _ if all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'V')) => {
            digits().then_some(Alphabet::Base32Hex)
        }
        _ if all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'v')) => {
            digits().then_some(Alphabet::Base32Hex)
        }
        _ => None,
    }
}

/// The bytes that digits of an alphabet stand for.
pub(super) struct Digits<'t> {
    source: std::slice::Iter<'t, u8>,
    known: &'static [u8; 256],
    width: u32,
    acc: u32,
    bits: u32,
}

impl<'t> Digits<'t> {
    pub fn new(source: &'t [u8], alphabet: Alphabet) -> Self {
        Self {
            source: source.iter(),
            known: alphabet.digits(),
            width: alphabet.width(),
            acc: 0,
            bits: 0,
        }
    }
}

impl Iterator for Digits<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let value = self.known[usize::from(*self.source.next()?)];
            if value == NO_DIGIT {
                continue;
            }
            self.acc = self.acc << self.width | u32::from(value);
            self.bits += self.width;
            if self.bits >= 8 {
                self.bits -= 8;
                return Some((self.acc >> self.bits) as u8);
            }
        }
    }
}

/// The first two bytes, where there is more than one digit for each.
pub(super) fn first_bytes(source: &[u8], alphabet: Alphabet) -> Option<[u8; 2]> {
    let digit = |at: usize| -> u32 {
        let b = source.get(at).copied().unwrap_or(0);
        match alphabet {
            Alphabet::Hex => u32::from(value(&HEX_DIGITS, b)),
            _ => u32::from(value(&BASE64_DIGITS, b)),
        }
    };
    let bits = match alphabet {
        Alphabet::Hex => digit(0) << 12 | digit(1) << 8 | digit(2) << 4 | digit(3),
        Alphabet::Base64 => (digit(0) << 12 | digit(1) << 6 | digit(2)) >> 2,
        Alphabet::Base32 | Alphabet::Base32Hex => {
            let mut bytes = Digits::new(source, alphabet);
            return Some([bytes.next()?, bytes.next()?]);
        }
        Alphabet::Binary => return None,
    };
    Some([(bits >> 8) as u8, bits as u8])
}

/// Do the first two bytes show that it is neither text nor packed? Half of all hashes do.
pub(super) fn never_text(source: &[u8], alphabet: Alphabet) -> bool {
    let Some([first, second]) = first_bytes(source, alphabet) else {
        return false;
    };
    let control = |b: u8| b < 0x20 && !matches!(b, b'\n' | b'\r' | b'\t' | 0x1B) || b == 0x7F;
    match first {
        0x1F => second != 0x8B,
        _ if is_zlib(first, second) => false,
        // LZMA alone, whose window is a power of two.
        ..=0xE0 if second == 0 => false,
        // Of .xz files and of Zstandard.
        0xFD if second == b'7' => false,
        0x28 if second == 0xB5 => false,
        // Where the first is zero, it may be UTF-16, the higher byte first.
        0 => !(0x20..0x7F).contains(&second),
        // Neither text nor the half of a character of two bytes,
        // unless it is the mark of UTF-16.
        0xFE | 0xFF => first ^ second != 1,
        0x80..=0xC1 | 0xF5.. => true,
        0xC2.. => second & 0xC0 != 0x80,
        _ if control(first) => true,
        // Where the second is zero, it may be UTF-16.
        _ => control(second) && second != 0 || (0x80..0xC2).contains(&second) || second >= 0xF5,
    }
}

/// Longer runs are looked at every few bytes, which costs less than all of them.
const HASH_DIGITS_MAX: usize = 64;

/// May hexadecimal digits stand for bytes of which some are text? Most hashes are told apart without a look at the texts in
/// them: no eight bytes in a row are characters, and none is zero, as between those of UTF-16.
pub(super) fn may_hold_text(digits: &[u8]) -> bool {
    if digits.len() > HASH_DIGITS_MAX {
        return true;
    }
    let (mut row, mut last) = (0, NO_PART);
    for pair in digits.as_chunks::<2>().0 {
        let digit = |b: u8| HEX_DIGITS[usize::from(b)];
        let part = PARTS[usize::from(digit(pair[0]) << 4 | digit(pair[1]) & 0xF)];
        row = match FOLLOWS[usize::from(last & 7)][usize::from(part & 7)] {
            true => row + 1,
            false => usize::from(part & 1),
        };
        if row == TEXT_BYTES_MIN || part == ZERO {
            return true;
        }
        last = part;
    }
    false
}

/// What of a character a byte may be; what one may begin with is odd.
const NO_PART: u8 = 0;
const PLAIN: u8 = 1;
const INNER: u8 = 2;
const LEAD: u8 = 3;
const ZERO: u8 = 4;

static PARTS: [u8; 256] = {
    let mut parts = [NO_PART; 256];
    let mut b = 0;
    while b < 256 {
        parts[b] = match b as u8 {
            0 => ZERO,
            b'\t' | b'\n' | b'\r' | 0x20..=0x7E => PLAIN,
            0x80..0xC0 => INNER,
            0xC2..0xF5 => LEAD,
            _ => NO_PART,
        };
        b += 1;
    }
    parts
};

/// May the second of two stand in one text with the first?
static FOLLOWS: [[bool; 8]; 8] = {
    let mut follows = [[false; 8]; 8];
    let pairs = [
        (PLAIN, PLAIN),
        (PLAIN, LEAD),
        (INNER, PLAIN),
        (INNER, INNER),
        (INNER, LEAD),
        (LEAD, INNER),
    ];
    let mut nth = 0;
    while nth < pairs.len() {
        follows[pairs[nth].0 as usize][pairs[nth].1 as usize] = true;
        nth += 1;
    }
    follows
};

/// What a byte stands for; zero where it is no digit.
#[inline]
fn value(known: &[u8; 256], b: u8) -> u8 {
    match known[usize::from(b)] {
        NO_DIGIT => 0,
        value => value,
    }
}

/// What is no digit.
const NO_DIGIT: u8 = u8::MAX;

static HEX_DIGITS: [u8; 256] = table(&[b"0123456789abcdef", b"0123456789ABCDEF"]);
static BASE32_DIGITS: [u8; 256] = table(&[
    b"abcdefghijklmnopqrstuvwxyz234567",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
]);
static BASE32_HEX_DIGITS: [u8; 256] = table(&[
    b"0123456789abcdefghijklmnopqrstuv",
    b"0123456789ABCDEFGHIJKLMNOPQRSTUV",
]);
static BASE64_DIGITS: [u8; 256] = table(&[
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
]);
static BINARY_DIGITS: [u8; 256] = table(&[b"01"]);

/// What each digit of base64 stands for; zero where it is none.
static BASE64_VALUES: [u8; 256] = {
    let (mut values, mut b) = ([0; 256], 0);
    while b < 256 {
        if BASE64_DIGITS[b] != NO_DIGIT {
            values[b] = BASE64_DIGITS[b];
        }
        b += 1;
    }
    values
};

/// What each byte stands for, by its place in one of the alphabets.
const fn table(alphabets: &[&[u8]]) -> [u8; 256] {
    let mut table = [NO_DIGIT; 256];
    let mut nth = 0;
    while nth < alphabets.len() {
        let mut digit = 0;
        while digit < alphabets[nth].len() {
            table[alphabets[nth][digit] as usize] = digit as u8;
            digit += 1;
        }
        nth += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::binary::Texts;

    #[test]
    fn all_bytes_are_what_each_is() {
        let digits = b"aGVsbG8gd29ybGQ+/-_=!QUJD\xff0123456789abcdefghijklmnop";
        for len in 0..digits.len() {
            let digits = &digits[..len];
            let coded = Coded {
                digits,
                alphabet: Alphabet::Base64,
            };
            let each: Vec<u8> = (0..coded.len()).map(|at| coded.at(at)).collect();
            let mut all = vec![7; 5];
            base64_bytes(digits, &mut all);
            assert_eq!(all, each, "{len}");
        }
    }

    #[test]
    fn what_holds_a_text_may_hold_one() {
        let mut seed = 3_u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % n
        };
        let pieces: [&[u8]; 8] = [
            b"word",
            "\u{e9}t\u{e9}".as_bytes(),
            "\u{65e5}".as_bytes(),
            b"a\0",
            b"\x80",
            b"\xff",
            b"\xc3",
            b"\x07",
        ];
        let (mut texts, mut none) = (0, 0);
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            while bytes.len() < 2 + next(40) {
                match next(3) {
                    0 => bytes.push(next(256) as u8),
                    _ => bytes.extend(pieces[next(pieces.len())]),
                }
            }
            let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            let digits = &digits.as_bytes()[next(2)..];
            let coded = Coded {
                digits,
                alphabet: Alphabet::Hex,
            };
            let found = Texts::new(&coded).next().is_some();
            let may = may_hold_text(digits);
            assert!(may || !found, "{}", String::from_utf8_lossy(digits));
            (texts, none) = (texts + usize::from(found), none + usize::from(!may));
        }
        assert!(texts > 100 && none > 1000, "{texts} {none}");
    }
}
