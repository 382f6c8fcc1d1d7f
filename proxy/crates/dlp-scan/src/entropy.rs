//! How random a value looks.

/// Shannon entropy of the bytes, in bits for each byte.
pub(crate) fn shannon(value: &[u8]) -> f32 {
    let mut counts = [0u16; 256];
    for b in value.iter().take(4096) {
        counts[usize::from(*b)] += 1;
    }
    let n = value.len().clamp(1, 4096) as f32;
    let mut bits = 0.0;
    for c in counts.iter().filter(|c| **c > 0) {
        let p = f32::from(*c) / n;
        bits -= p * p.log2();
    }
    bits
}

/// What kinds of characters a value is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    pub lower: u32,
    pub upper: u32,
    pub digit: u32,
    pub other: u32,
    /// How often neighbours change between lower case, upper case, digit and other.
    pub changes: u32,
}

impl Classes {
    pub fn of(value: &[u8]) -> Self {
        let mut c = Self::default();
        let mut last = 0u8;
        for b in value {
            let class = match b {
                b'a'..=b'z' => 1,
                b'A'..=b'Z' => 2,
                b'0'..=b'9' => 3,
                _ => 4,
            };
            match class {
                1 => c.lower += 1,
                2 => c.upper += 1,
                3 => c.digit += 1,
                _ => c.other += 1,
            }
            c.changes += u32::from(last != 0 && last != class);
            last = class;
        }
        c
    }

    pub fn letters(self) -> u32 {
        self.lower + self.upper
    }
}

/// 0 for noise to 1 for words: the share of letter pairs that English, code and brand names are full of.
pub(crate) fn wordiness(value: &[u8]) -> f32 {
    let (mut pairs, mut common) = (0u32, 0u32);
    for w in value.windows(2) {
        let (a, b) = (w[0].to_ascii_lowercase(), w[1].to_ascii_lowercase());
        if !a.is_ascii_lowercase() || !b.is_ascii_lowercase() {
            continue;
        }
        pairs += 1;
        let row = COMMON_PAIRS[usize::from(a - b'a')];
        common += (row >> (b - b'a')) & 1;
    }
    if pairs == 0 {
        0.0
    } else {
        common as f32 / pairs as f32
    }
}

/// For each first letter, a bit for each second letter that often follows it in English words.
static COMMON_PAIRS: [u32; 26] = {
    const ROWS: [&[u8]; 26] = [
        b"bcdgiklmnprstuvy",
        b"aeiloruy",
        b"aehiklorst",
        b"adeiorsuv",
        b"acdlmnprstvwxy",
        b"aefioru",
        b"aehilnoru",
        b"aeiot",
        b"acdeflmnorstvz",
        b"aou",
        b"eins",
        b"adefilosty",
        b"abeimopsu",
        b"acdefginostuv",
        b"bcdfklmnoprstuvw",
        b"aehiloprstu",
        b"u",
        b"acdegiklmnorstuvy",
        b"aceihkmopstuw",
        b"aehiorstuwy",
        b"abceilmnprst",
        b"aeio",
        b"aehinor",
        b"aceipt",
        b"eopst",
        b"aeioz",
    ];
    let mut out = [0; 26];
    let mut i = 0;
    while i < 26 {
        let mut j = 0;
        while j < ROWS[i].len() {
            out[i] |= 1 << (ROWS[i][j] - b'a');
            j += 1;
        }
        i += 1;
    }
    out
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_of_known_texts() {
        assert!(shannon(b"aaaaaaaa") < 0.01);
        assert!((shannon(b"abcdabcd") - 2.0).abs() < 0.01);
        assert!(shannon(b"q7Rk2ZpX9vLm4TsW") > 3.9);
        assert_eq!(shannon(b""), 0.0);
    }

    #[test]
    fn words_and_noise_are_told_apart() {
        for word in [
            "authentication",
            "production",
            "RefreshTokenHandler",
            "databaseconnection",
        ] {
            assert!(
                wordiness(word.as_bytes()) > 0.7,
                "{word} {}",
                wordiness(word.as_bytes())
            );
        }
        for noise in ["xqzkvjwpfhgt", "QzXkPvWbJtRg", "kjqxzvbnmwpf"] {
            assert!(
                wordiness(noise.as_bytes()) < 0.4,
                "{noise} {}",
                wordiness(noise.as_bytes())
            );
        }
    }

    #[test]
    fn classes_count_and_change() {
        let c = Classes::of(b"aB3-");
        assert_eq!(
            (c.lower, c.upper, c.digit, c.other, c.changes),
            (1, 1, 1, 1, 3)
        );
    }
}
