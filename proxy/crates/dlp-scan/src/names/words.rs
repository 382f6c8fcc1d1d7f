//! Names cut into words: by `_ - . / space` and by humps, whatever the case.

use unicode_normalization::UnicodeNormalization;

/// Shorter words without their marks are other words.
const UNMARKED_LETTERS_MIN: usize = 5;

/// A word of Latin letters as programs and keyboards without its marks write it: `szemelyi szam`, `pruefnummer` and `prufnummer`.
pub(crate) fn unmarked(word: &str) -> Vec<String> {
    if word.is_ascii() {
        return Vec::new();
    }
    let lower = word.to_lowercase();
    let german = lower
        .replace('ä', "ae")
        .replace('ö', "oe")
        .replace('ü', "ue");
    let bare = |word: &str| -> String {
        let letters = word.nfd().filter(|c| !('\u{300}'..='\u{36F}').contains(c));
        letters.fold(String::new(), |mut out, c| {
            match c {
                'ß' => out.push_str("ss"),
                'æ' => out.push_str("ae"),
                'œ' => out.push_str("oe"),
                'ø' => out.push('o'),
                'ł' => out.push('l'),
                'đ' | 'ð' => out.push('d'),
                'ı' => out.push('i'),
                'ə' => out.push('e'),
                'þ' => out.push_str("th"),
                '’' => out.push('\''),
                c => out.push(c),
            }
            out
        })
    };
    let letters = |word: &String| word.bytes().filter(u8::is_ascii_alphabetic).count();
    let mut out = vec![bare(&lower), bare(&german)];
    out.retain(|word| word.is_ascii() && letters(word) >= UNMARKED_LETTERS_MIN);
    out.dedup();
    out
}

/// The ways a word is commonly written. The gate and [`plain`] fold the case of ASCII alone, so a word of another
/// script is looked for in lower case, upper case, with a capital, and with one for each word.
pub(crate) fn cases(word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    if lower.is_ascii() {
        return vec![lower];
    }
    let mut first = lower.chars();
    let capital = first
        .next()
        .map(|c| c.to_uppercase().chain(first).collect())
        .unwrap_or_default();
    // `Αριθμός Φορολογικού Μητρώου`
    let title = lower.split_inclusive(' ').flat_map(|word| {
        let mut rest = word.chars();
        let first = rest.next().into_iter().flat_map(char::to_uppercase);
        first.chain(rest).collect::<Vec<_>>()
    });
    let title = title.collect();
    let mut out = vec![lower.to_uppercase(), capital, title, lower];
    out.sort();
    out.dedup();
    out
}

/// Lower case, with a blank for every `_`, `-` and `.`: so that one way to write a word finds all.
pub(crate) fn plain(name: &[u8]) -> Vec<u8> {
    let mut out = name.to_vec();
    plain_in_place(&mut out);
    out
}

/// [`plain`], where it stands.
pub(crate) fn plain_in_place(text: &mut [u8]) {
    for b in text {
        *b = plain_byte(*b);
    }
}

/// [`plain`] of one byte.
pub(crate) fn plain_byte(b: u8) -> u8 {
    match b {
        b'_' | b'-' | b'.' | 0x1E | 0x1F => b' ',
        b => b.to_ascii_lowercase(),
    }
}

/// The words of an identifier, lower case, at most 12 of at most 24 bytes: by `_ - . / space` and by humps.
pub(super) struct Words {
    buf: [u8; 160],
    ends: [u8; 12],
    pub(super) n: usize,
}

impl Words {
    pub(super) fn of(name: &[u8]) -> Self {
        let name = &name[name.len().saturating_sub(128)..];
        let mut w = Self {
            buf: [0; 160],
            ends: [0; 12],
            n: 0,
        };
        let mut len = 0u8;
        let mut prev = 0u8;
        for (i, b) in name.iter().enumerate() {
            let next_lower = name.get(i + 1).is_some_and(u8::is_ascii_lowercase);
            let hump = b.is_ascii_uppercase()
                && (prev.is_ascii_lowercase()
                    || prev.is_ascii_digit()
                    || (prev.is_ascii_uppercase() && next_lower));
            let word_byte = b.is_ascii_alphanumeric() || *b >= 0x80;
            if (hump || !word_byte) && len > w.start(w.n) && w.n < 11 {
                w.ends[w.n] = len;
                w.n += 1;
            }
            if word_byte && usize::from(len) < w.buf.len() {
                w.buf[usize::from(len)] = b.to_ascii_lowercase();
                len += 1;
            }
            prev = *b;
        }
        if len > w.start(w.n) {
            w.ends[w.n] = len;
            w.n += 1;
        }
        w
    }

    fn start(&self, i: usize) -> u8 {
        if i == 0 { 0 } else { self.ends[i - 1] }
    }

    fn get(&self, i: usize) -> &[u8] {
        if i >= self.n {
            return b"";
        }
        &self.buf[usize::from(self.start(i))..usize::from(self.ends[i])]
    }

    /// Counted from the last, which is 0.
    pub(super) fn back(&self, i: usize) -> &[u8] {
        if i < self.n {
            self.get(self.n - 1 - i)
        } else {
            b""
        }
    }

    pub(super) fn any(&self, list: &[&str]) -> bool {
        (0..self.n).any(|i| super::is_in(self.get(i), list))
    }
}

#[cfg(test)]
mod tests {
    use super::unmarked;

    #[test]
    fn words_without_their_marks() {
        for (word, want) in [
            ("személyi szám", &["szemelyi szam"][..]),
            ("Prüfnummer", &["prufnummer", "pruefnummer"]),
            ("číslo op", &["cislo op"]),
            ("né", &[]),
            ("ascii word", &[]),
            ("омс полис", &[]),
            ("führerschein 电话", &[]),
            ("doğum tarixi", &["dogum tarixi"]),
            ("złoty numer", &["zloty numer"]),
        ] {
            assert_eq!(unmarked(word), want, "{word}");
        }
    }
}
