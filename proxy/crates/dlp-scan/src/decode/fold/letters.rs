//! What a character is folded to.

use crate::detect::unseen;

/// Drawn around the sign before it, a digit as a rule.
const KEYCAP: char = '\u{20E3}';
/// Asks for an emoji's colours: ordinary behind an emoji, a disguise between letters.
pub(super) const EMOJI_STYLE: char = '\u{FE0F}';
/// What becomes of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Folded {
    /// Stays.
    Same,
    /// Typography: folded when something else gives reason to.
    Plain(char),
    /// Compatibility form (NFKC): reason enough.
    Compat(char),
    /// A letter of another script that looks like this one: reason enough in a word with Latin letters or digits.
    Look(char),
    /// Leaves no ink.
    Gone,
}

/// What becomes of it.
pub(super) fn fold(c: char) -> Folded {
    if c.is_ascii() {
        return Folded::Same;
    }
    let n = u32::from(c);
    if unseen(c).is_some() || matches!(c, EMOJI_STYLE | KEYCAP) {
        return Folded::Gone;
    }
    let plus = |from: u32, to: u32, base: char| {
        (from..=to)
            .contains(&n)
            .then(|| char::from_u32(u32::from(base) + n - from))
            .flatten()
    };
    // Full width; mathematical and enclosed letters; the digits of other scripts.
    if let Some(p) = plus(0xFF01, 0xFF5E, '!') {
        return Folded::Compat(p);
    }
    if (0x1D400..=0x1D6A3).contains(&n) {
        let i = (n - 0x1D400) % 52;
        let base = if i < 26 {
            u32::from('A') + i
        } else {
            u32::from('a') + i - 26
        };
        return char::from_u32(base).map_or(Folded::Same, Folded::Compat);
    }
    if (0x1D7CE..=0x1D7FF).contains(&n) {
        return char::from_digit((n - 0x1D7CE) % 10, 10).map_or(Folded::Same, Folded::Compat);
    }
    for (from, to, base) in [
        (0x24B6, 0x24CF, 'A'),
        (0x24D0, 0x24E9, 'a'),
        (0x1F130, 0x1F149, 'A'),
        (0x1F150, 0x1F169, 'A'),
        (0x1F170, 0x1F189, 'A'),
        (0x2460, 0x2468, '1'),
        (0x249C, 0x24B5, 'a'),
        (0x24EA, 0x24EA, '0'),
        (0x24FF, 0x24FF, '0'),
        (0x24F5, 0x24FD, '1'),
        (0x2474, 0x247C, '1'),
        (0x2776, 0x277E, '1'),
        (0x2780, 0x2788, '1'),
        (0x278A, 0x2792, '1'),
        (0x2080, 0x2089, '0'),
        (0xB2, 0xB3, '2'),
        (0xB9, 0xB9, '1'),
        (0x2070, 0x2070, '0'),
        (0x2074, 0x2079, '4'),
    ] {
        if let Some(p) = plus(from, to, base) {
            return Folded::Compat(p);
        }
    }
    for zero in DIGIT_ZEROS {
        if (zero..zero + 10).contains(&n) {
            return char::from_digit(n - zero, 10).map_or(Folded::Same, Folded::Compat);
        }
    }
    match c {
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => {
            Folded::Plain(' ')
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' => Folded::Plain('-'),
        '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{2032}' => Folded::Plain('\''),
        '\u{201C}' | '\u{201D}' | '\u{201F}' | '\u{2033}' => Folded::Plain('"'),
        '\u{3002}' | '\u{FF61}' | '\u{2024}' => Folded::Plain('.'),
        '\u{2044}' | '\u{2215}' => Folded::Plain('/'),
        _ => LOOKS
            .binary_search_by_key(&c, |(l, _)| *l)
            .map_or(Folded::Same, |i| Folded::Look(LOOKS[i].1)),
    }
}

/// Zero in scripts whose ten digits follow each other (Unicode general category Nd).
const DIGIT_ZEROS: [u32; 18] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50,
    0xED0, 0xF20, 0x1040, 0x17E0, 0x1810,
];

/// Letters that are drawn like Latin ones (after Unicode TR 39, the pairs that fonts do not tell apart).
static LOOKS: [(char, char); 82] = [
    ('\u{131}', 'i'),
    ('\u{17F}', 's'),
    ('\u{251}', 'a'),
    ('\u{261}', 'g'),
    ('\u{269}', 'i'),
    ('\u{28B}', 'u'),
    ('\u{391}', 'A'),
    ('\u{392}', 'B'),
    ('\u{395}', 'E'),
    ('\u{396}', 'Z'),
    ('\u{397}', 'H'),
    ('\u{399}', 'I'),
    ('\u{39A}', 'K'),
    ('\u{39C}', 'M'),
    ('\u{39D}', 'N'),
    ('\u{39F}', 'O'),
    ('\u{3A1}', 'P'),
    ('\u{3A4}', 'T'),
    ('\u{3A5}', 'Y'),
    ('\u{3A7}', 'X'),
    ('\u{3B1}', 'a'),
    ('\u{3B3}', 'y'),
    ('\u{3B9}', 'i'),
    ('\u{3BA}', 'k'),
    ('\u{3BD}', 'v'),
    ('\u{3BF}', 'o'),
    ('\u{3C1}', 'p'),
    ('\u{3C4}', 't'),
    ('\u{3C5}', 'u'),
    ('\u{3C7}', 'x'),
    ('\u{3F2}', 'c'),
    ('\u{3F3}', 'j'),
    ('\u{405}', 'S'),
    ('\u{406}', 'I'),
    ('\u{408}', 'J'),
    ('\u{410}', 'A'),
    ('\u{412}', 'B'),
    ('\u{415}', 'E'),
    ('\u{417}', '3'),
    ('\u{41A}', 'K'),
    ('\u{41C}', 'M'),
    ('\u{41D}', 'H'),
    ('\u{41E}', 'O'),
    ('\u{420}', 'P'),
    ('\u{421}', 'C'),
    ('\u{422}', 'T'),
    ('\u{423}', 'Y'),
    ('\u{425}', 'X'),
    ('\u{430}', 'a'),
    ('\u{433}', 'r'),
    ('\u{435}', 'e'),
    ('\u{437}', '3'),
    ('\u{43A}', 'k'),
    ('\u{43C}', 'm'),
    ('\u{43E}', 'o'),
    ('\u{43F}', 'n'),
    ('\u{440}', 'p'),
    ('\u{441}', 'c'),
    ('\u{442}', 't'),
    ('\u{443}', 'y'),
    ('\u{445}', 'x'),
    ('\u{44C}', 'b'),
    ('\u{455}', 's'),
    ('\u{456}', 'i'),
    ('\u{458}', 'j'),
    ('\u{475}', 'v'),
    ('\u{4AE}', 'Y'),
    ('\u{4AF}', 'y'),
    ('\u{4BB}', 'h'),
    ('\u{4C0}', 'l'),
    ('\u{4CF}', 'l'),
    ('\u{501}', 'd'),
    ('\u{51B}', 'q'),
    ('\u{51C}', 'W'),
    ('\u{51D}', 'w'),
    ('\u{54F}', 'S'),
    ('\u{555}', 'O'),
    ('\u{561}', 'w'),
    ('\u{570}', 'h'),
    ('\u{578}', 'n'),
    ('\u{57D}', 'u'),
    ('\u{585}', 'o'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(LOOKS.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
