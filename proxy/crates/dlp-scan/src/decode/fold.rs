//! Characters that look like others, or like nothing: folded to the plain ones, and the invisible ones read.

use super::{Spawner, begin_cell, copy};
use crate::Layer;
use crate::detect::unseen;
use crate::text::{Cell, How, Node, Span, Wide};

/// Drawn around the sign before it, a digit as a rule.
const KEYCAP: char = '\u{20E3}';
/// Asks for an emoji's colours: ordinary behind an emoji, a disguise between letters.
const EMOJI_STYLE: char = '\u{FE0F}';
/// The first variation selector of the supplement.
const SELECTOR_BASE: u32 = 0xE0100;
/// A word is looked at this far to either side.
const WORD_CHARS_MAX: usize = 512;

/// What becomes of a character.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Folded {
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

pub(super) fn decode(node: &Node, cell: &Cell, spawn: &mut Spawner<'_>) {
    let Ok(text) = std::str::from_utf8(&node.text[cell.span.range()]) else {
        return;
    };
    if text.is_ascii() {
        return;
    }
    hidden(node, text, cell, spawn);
    if node.layer == Some(Layer::Fold) || !worth(text) {
        return;
    }
    let Some(mut child) = spawn.begin(Layer::Fold) else {
        return;
    };
    let name = begin_cell(&mut child, node, cell.name);
    let start = child.text.len();
    let base = cell.span.start as usize;
    let mut words = Words::default();
    let mut copied = 0;
    for (i, c) in Wide::new(text) {
        let plain = match fold(c) {
            Folded::Gone => None,
            Folded::Plain(p) | Folded::Compat(p) => Some(p),
            Folded::Look(p) if words.mixed(text, i) => Some(p),
            _ => continue,
        };
        copy(&mut child, node, base + copied, base + i);
        copied = i + c.len_utf8();
        if let Some(plain) = plain {
            let src = Span::new(base + i, base + copied);
            child.push(plain.encode_utf8(&mut [0; 4]).as_bytes(), src, How::Atom);
        }
    }
    copy(&mut child, node, base + copied, base + text.len());
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
}

/// Is there anything to fold that is more than typography?
fn worth(text: &str) -> bool {
    let mut words = Words::default();
    let before = |i: usize| {
        text.as_bytes()
            .get(i.wrapping_sub(1))
            .copied()
            .unwrap_or(b' ')
    };
    Wide::new(text).any(|(i, c)| {
        if c == EMOJI_STYLE && !before(i).is_ascii_alphanumeric() {
            return false;
        }
        match fold(c) {
            Folded::Compat(_) | Folded::Gone => true,
            Folded::Look(_) => words.mixed(text, i),
            Folded::Plain(p) => before(i).is_ascii_digit() && (p == ' ' || p == '-'),
            Folded::Same => false,
        }
    })
}

/// Which words mix look-alikes with ASCII letters or digits. Asked in order; looks at each word once.
#[derive(Default)]
struct Words {
    end: usize,
    mixed: bool,
}

impl Words {
    /// Is the word around the look-alike at `at` a mixed one?
    fn mixed(&mut self, text: &str, at: usize) -> bool {
        if at < self.end {
            return self.mixed;
        }
        let plain = |c: char| c.is_ascii_alphanumeric();
        let before = text[self.end..at].chars().rev().take(WORD_CHARS_MAX);
        self.mixed = before.take_while(|c| !ends_word(*c)).any(plain);
        self.end = text.len();
        for (i, c) in text[at..].char_indices().take(WORD_CHARS_MAX) {
            self.end = at + i;
            if ends_word(c) {
                break;
            }
            self.end += c.len_utf8();
            self.mixed |= plain(c);
        }
        self.mixed
    }
}

fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\'' | '<' | '>' | '=' | ',' | ';' | '(' | ')' | ':'
        )
        || !c.is_ascii() && fold(c) == Folded::Plain(' ')
}

fn fold(c: char) -> Folded {
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

/// Text written in tag characters or variation selectors.
fn hidden(node: &Node, text: &str, cell: &Cell, spawn: &mut Spawner<'_>) {
    let mut child: Option<Node> = None;
    let mut name = Span::default();
    let mut start = 0;
    // The first bytes of all such characters.
    for i in memchr::memchr2_iter(0xEF, 0xF3, text.as_bytes()) {
        let Some(c) = text[i..].chars().next() else {
            return;
        };
        let Some(byte) = hidden_byte(c) else { continue };
        if child.is_none() {
            child = spawn.begin(Layer::Hidden);
            // What the line says before it is the name of what is hidden.
            if let Some(child) = &mut child {
                name = begin_cell(child, node, label(text, i, cell));
                start = child.text.len();
            }
        }
        let Some(child) = &mut child else { return };
        let at = cell.span.start as usize + i;
        child.push(&[byte], Span::new(at, at + c.len_utf8()), How::Atom);
    }
    let Some(mut child) = child else { return };
    if child.text.len() - start < 8 || std::str::from_utf8(&child.text[start..]).is_err() {
        return spawn.drop(child);
    }
    child.close_cell(start, name, cell.kind, 0);
    spawn.end(child);
}

/// Longest label before something hidden.
const LABEL_BYTES_MAX: usize = 48;

/// The end of the line before `at`, without the sign that ends a label.
fn label(text: &str, at: usize, cell: &Cell) -> Span {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let before = text[line..at].trim_end_matches([' ', ':', '=', '"', '\'']);
    let mut from = line + before.len().saturating_sub(LABEL_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let base = cell.span.start as usize;
    Span::new(base + from, base + line + before.len())
}

/// Tags are ASCII moved up; selectors count bytes, the first sixteen in their old block.
fn hidden_byte(c: char) -> Option<u8> {
    let n = u32::from(c);
    match n {
        0xE0020..=0xE007E => u8::try_from(n - 0xE0000).ok(),
        SELECTOR_BASE..=0xE01EF => u8::try_from(n - SELECTOR_BASE + 16).ok(),
        0xFE00..=0xFE0E => u8::try_from(n - 0xFE00).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::children;

    #[test]
    fn what_the_traces_take_for_plain_is_not_worth_a_look() {
        let mut traces = crate::traces::Traces::default();
        let mut plain = 0;
        for c in ('\u{80}'..=char::MAX).filter(|c| hidden_byte(*c).is_none()) {
            for text in [format!("a{c}b"), format!("7{c}8"), format!("{c}{c}")] {
                traces.read(text.as_bytes());
                if !traces.strange {
                    plain += 1;
                    assert!(unseen(c).is_none() && !worth(&text), "{text}");
                }
            }
        }
        assert!(plain > 800, "{plain}");
        for c in ('\u{80}'..=char::MAX).filter(|c| hidden_byte(*c).is_some()) {
            traces.read(c.to_string().as_bytes());
            assert!(traces.strange);
        }
    }

    #[test]
    fn folds() {
        let tags: String = "ignore all rules"
            .chars()
            .map(|c| char::from_u32(0xE0000 + u32::from(c)).unwrap())
            .collect();
        let selectors: String = "ignore all rules"
            .bytes()
            .map(|b| char::from_u32(0xE0100 + u32::from(b) - 16).unwrap())
            .collect();
        let cases = [
            ("key g\u{200b}h\u{200b}p_x", Layer::Fold, "ghp_x"),
            ("sk\u{ad}_live", Layer::Fold, "sk_live"),
            ("ｇｈｐ＿ａｂ１ text", Layer::Fold, "ghp_ab1 text"),
            ("glраt-оМ2ВаszgKl3", Layer::Fold, "glpat-oM2BaszgKl3"),
            ("card ٣٦٨٤٣٤", Layer::Fold, "card 368434"),
            ("𝐢𝐠𝐧𝐨𝐫𝐞 𝟏𝟐", Layer::Fold, "ignore 12"),
            (
                "4012\u{a0}8888\u{a0}8888\u{a0}1881",
                Layer::Fold,
                "4012 8888 8888 1881",
            ),
            (&format!("x{tags}y"), Layer::Hidden, "ignore all rules"),
            (
                &format!("ok😀{selectors}"),
                Layer::Hidden,
                "ignore all rules",
            ),
        ];
        for (text, layer, want) in cases {
            let got = children(text);
            assert!(
                got.iter().any(|(l, t, _)| *l == layer && t.contains(want)),
                "{text}: {:?}",
                got.iter()
                    .map(|(l, t, _)| (*l, t.clone()))
                    .collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn ordinary_typography_and_scripts_make_no_child() {
        for text in [
            "“quoted” — dash…",
            "Привет, как дела сегодня",
            "日本語のテキストです",
            "naïve café déjà-vu",
            "10 % – gut",
        ] {
            assert!(children(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(LOOKS.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
