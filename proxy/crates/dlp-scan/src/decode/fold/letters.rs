//! What a character is folded to.

use crate::detect::unseen;
use unicode_normalization::UnicodeNormalization;

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
    /// Compatibility form of several letters, as [`spelled`] has them.
    Several,
    /// A letter of another script that looks like this one: reason enough in a word with Latin letters or digits.
    Look(char),
    /// A letter of a flag: reason enough where many stand in a row.
    Flag(char),
    /// Belongs to the letter before it, where both are one character; else it is drawn over that letter.
    Mark(char),
    /// A picture, an arrow or a dot in the middle of the line: left out where each letter stands between two of them.
    Symbol,
    /// Leaves no ink.
    Gone,
}

/// Characters that are there and not shown (Unicode's Default_Ignorable_Code_Point and format characters), which some script has
/// honest use for: nobody is told of them, as of those that [`unseen`] knows, and they are read over.
fn is_ignored(n: u32) -> bool {
    matches!(
        n,
        0x61C
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x2065
            | 0xFFF0..=0xFFFB
            | 0x13430..=0x1345F
            | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A
            | 0xE0000..=0xE0FFF
    )
}

/// What a character is folded to. Not all compatibility forms are letters (full width signs), and not all look-alikes have one, so the
/// ranges that matter are listed; [`compat`] has the rest.
pub(super) fn fold(c: char) -> Folded {
    if c.is_ascii() {
        return Folded::Same;
    }
    let n = u32::from(c);
    if unseen(c).is_some() || is_ignored(n) || matches!(c, EMOJI_STYLE | KEYCAP) {
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
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{2800}' | '\u{3000}' => {
            Folded::Plain(' ')
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' => Folded::Plain('-'),
        '\u{2018}' | '\u{2019}' | '\u{201B}' | '\u{2032}' => Folded::Plain('\''),
        '\u{201C}' | '\u{201D}' | '\u{201F}' | '\u{2033}' => Folded::Plain('"'),
        '\u{3002}' | '\u{FF61}' | '\u{2024}' => Folded::Plain('.'),
        '\u{2044}' | '\u{2215}' => Folded::Plain('/'),
        '\u{2801}'..='\u{283D}' => braille(c).map_or(Folded::Same, Folded::Compat),
        '\u{B7}'
        | '\u{2022}'
        | '\u{2190}'..='\u{27BF}'
        | '\u{2900}'..='\u{2BFF}'
        | '\u{30FB}'
        | '\u{1F300}'..='\u{1FAFF}' => Folded::Symbol,
        '\u{1F1E6}'..='\u{1F1FF}' => plus(0x1F1E6, 0x1F1FF, 'A').map_or(Folded::Same, Folded::Flag),
        _ if is_mark(c) => Folded::Mark(c),
        _ => look(c).or_else(|| compat(c)).unwrap_or(Folded::Same),
    }
}

/// The letters of Braille, a to z; digits are letters behind a sign, which are read elsewhere.
fn braille(c: char) -> Option<char> {
    let nth = "⠁⠃⠉⠙⠑⠋⠛⠓⠊⠚⠅⠇⠍⠝⠕⠏⠟⠗⠎⠞⠥⠧⠺⠭⠽⠵".chars().position(|b| b == c)?;
    ('a'..='z').nth(nth)
}

fn look(c: char) -> Option<Folded> {
    let of = |table: &[(char, char)]| {
        let at = table.binary_search_by_key(&c, |(l, _)| *l).ok()?;
        Some(table[at].1)
    };
    of(&LOOKS)
        .map(Folded::Look)
        .or_else(|| of(&RARE).map(Folded::Compat))
}

/// Marks that are drawn over letters, and the parts of Korean and Japanese letters.
fn is_mark(c: char) -> bool {
    is_drawn_over(c)
        || matches!(c, '\u{1161}'..='\u{1175}' | '\u{11A8}'..='\u{11C2}' | '\u{3099}' | '\u{309A}')
}

/// Is it nothing but ink over the letter before?
pub(super) fn is_drawn_over(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36F}' | '\u{483}'..='\u{489}' | '\u{1AB0}'..='\u{1ACE}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20F0}' | '\u{FE20}'..='\u{FE2F}')
}

/// The compatibility form (Unicode Annex 15, NFKC) of what is nothing but another way to write letters.
fn compat(c: char) -> Option<Folded> {
    // Scripts that have none, and signs of ordinary typography.
    if matches!(c, '\u{80}'..='\u{2AF}' | '\u{370}'..='\u{10FF}' | '\u{1200}'..='\u{1CFF}' | '\u{3040}'..='\u{318F}'
        | '\u{3400}'..='\u{A4CF}' | '\u{AC00}'..='\u{D7A3}' | '™' | '℠' | '№')
    {
        return None;
    }
    let mut letters = spelled(c);
    let (first, second) = (letters.next()?, letters.next());
    match second {
        None if first == c => None,
        None if is_mark(first) => Some(Folded::Mark(first)),
        _ if !spelled(c).all(char::is_alphanumeric) => None,
        None => Some(Folded::Compat(first)),
        Some(_) => Some(Folded::Several),
    }
}

/// A character in its compatibility form.
pub(super) fn spelled(c: char) -> impl Iterator<Item = char> {
    std::iter::once(c).nfkd()
}

/// A Latin letter without marks and strokes, if it has any.
pub(super) fn bare(c: char) -> Option<char> {
    if !matches!(c, '\u{C0}'..='\u{24F}' | '\u{253}'..='\u{2AF}' | '\u{1D6C}'..='\u{1D76}' | '\u{1E00}'..='\u{1EFF}' | '\u{2C60}'..='\u{2C7F}')
    {
        return None;
    }
    let letter = std::iter::once(c).nfd().next().filter(char::is_ascii);
    letter.or_else(|| {
        let stroked = |(letter, all): &(char, &str)| all.contains(c).then_some(*letter);
        STROKED.iter().find_map(stroked)
    })
}

/// Letters with strokes, hooks and tails, which no normal form takes off.
const STROKED: [(char, &str); 24] = [
    ('a', "ⱥᶏ"),
    ('b', "ƀƃɓᵬ"),
    ('c', "ȼƈɕ"),
    ('d', "đðƌɖɗᵭ"),
    ('e', "ɇɛ"),
    ('f', "ƒᵮ"),
    ('g', "ǥɠ"),
    ('h', "ħɦⱨ"),
    ('i', "ıɨ"),
    ('j', "ɉʝɟ"),
    ('k', "ƙⱪ"),
    ('l', "łƚɫɬɭⱡ"),
    ('m', "ɱᵯ"),
    ('n', "ƞɲɳŋᵰ"),
    ('o', "øɵɔ"),
    ('p', "ƥᵱ"),
    ('q', "ɋʠ"),
    ('r', "ɍɼɽɾᵲ"),
    ('s', "ʂȿᵴ"),
    ('t', "ŧƫƭʈⱦᵵ"),
    ('u', "ʉ"),
    ('v', "ʋⱴ"),
    ('w', "ⱳ"),
    ('z', "ƶȥʐʑɀⱬᵶ"),
];

/// Zero in scripts whose ten digits follow each other (Unicode general category Nd).
const DIGIT_ZEROS: [u32; 18] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50,
    0xED0, 0xF20, 0x1040, 0x17E0, 0x1810,
];

/// Letters that are drawn like Latin ones (after Unicode TR 39, the pairs that fonts do not tell apart).
static LOOKS: [(char, char); 86] = [
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
    ('\u{3B5}', 'e'),
    ('\u{3B7}', 'n'),
    ('\u{3B9}', 'i'),
    ('\u{3BA}', 'k'),
    ('\u{3BD}', 'v'),
    ('\u{3BF}', 'o'),
    ('\u{3C1}', 'p'),
    ('\u{3C4}', 't'),
    ('\u{3C5}', 'u'),
    ('\u{3C7}', 'x'),
    ('\u{3C9}', 'w'),
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
    ('\u{42C}', 'b'),
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

/// Small capitals, and the letters of scripts that hardly anybody writes today, drawn like Latin ones (Lisu and Cherokee, after Unicode
/// TR 39).
static RARE: [(char, char); 77] = [
    ('\u{262}', 'g'),
    ('\u{26A}', 'i'),
    ('\u{274}', 'n'),
    ('\u{280}', 'r'),
    ('\u{28F}', 'y'),
    ('\u{299}', 'b'),
    ('\u{29C}', 'h'),
    ('\u{29F}', 'l'),
    ('\u{13A0}', 'D'),
    ('\u{13A1}', 'R'),
    ('\u{13A2}', 'T'),
    ('\u{13A5}', 'i'),
    ('\u{13AA}', 'A'),
    ('\u{13AB}', 'J'),
    ('\u{13AC}', 'E'),
    ('\u{13B3}', 'W'),
    ('\u{13B7}', 'M'),
    ('\u{13BB}', 'H'),
    ('\u{13BD}', 'Y'),
    ('\u{13C0}', 'G'),
    ('\u{13C2}', 'h'),
    ('\u{13C3}', 'Z'),
    ('\u{13CE}', '4'),
    ('\u{13CF}', 'b'),
    ('\u{13D2}', 'R'),
    ('\u{13D4}', 'W'),
    ('\u{13D5}', 'S'),
    ('\u{13D9}', 'V'),
    ('\u{13DA}', 'S'),
    ('\u{13DE}', 'L'),
    ('\u{13DF}', 'C'),
    ('\u{13E2}', 'P'),
    ('\u{13E6}', 'K'),
    ('\u{13F4}', 'B'),
    ('\u{1D00}', 'a'),
    ('\u{1D04}', 'c'),
    ('\u{1D05}', 'd'),
    ('\u{1D07}', 'e'),
    ('\u{1D0A}', 'j'),
    ('\u{1D0B}', 'k'),
    ('\u{1D0D}', 'm'),
    ('\u{1D0F}', 'o'),
    ('\u{1D18}', 'p'),
    ('\u{1D1B}', 't'),
    ('\u{1D1C}', 'u'),
    ('\u{1D20}', 'v'),
    ('\u{1D21}', 'w'),
    ('\u{1D22}', 'z'),
    ('\u{A4D0}', 'B'),
    ('\u{A4D1}', 'P'),
    ('\u{A4D2}', 'd'),
    ('\u{A4D3}', 'D'),
    ('\u{A4D4}', 'T'),
    ('\u{A4D6}', 'G'),
    ('\u{A4D7}', 'K'),
    ('\u{A4D9}', 'J'),
    ('\u{A4DA}', 'C'),
    ('\u{A4DC}', 'Z'),
    ('\u{A4DD}', 'F'),
    ('\u{A4DF}', 'M'),
    ('\u{A4E0}', 'N'),
    ('\u{A4E1}', 'L'),
    ('\u{A4E2}', 'S'),
    ('\u{A4E3}', 'R'),
    ('\u{A4E6}', 'V'),
    ('\u{A4E7}', 'H'),
    ('\u{A4EA}', 'W'),
    ('\u{A4EB}', 'X'),
    ('\u{A4EC}', 'Y'),
    ('\u{A4EE}', 'A'),
    ('\u{A4F0}', 'E'),
    ('\u{A4F2}', 'I'),
    ('\u{A4F3}', 'O'),
    ('\u{A4F4}', 'U'),
    ('\u{A730}', 'f'),
    ('\u{A731}', 's'),
    ('\u{A7AF}', 'q'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(LOOKS.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(RARE.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
