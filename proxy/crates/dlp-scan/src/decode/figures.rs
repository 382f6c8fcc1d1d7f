//! Numbers in figures that are no digits of their script: `四五三九`, `사오삼구`, `ヨン・ゴ・サン`, and Braille, where ten letters
//! behind a sign are the digits.

use super::marks::Mark;
use super::spoken::is_phone;
use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};

/// Fewer are no number of anything.
const FIGURES_MIN: usize = 6;
/// How far to either side of the mark a number is read; a longer row is read on from its next mark.
const REACH: usize = 160;

/// Unicode, numeric values of Han characters and their Sino-Korean readings, zero first.
const FIGURES: [&str; 10] = [
    // 幺, 两, 拐, 勾, 洞: as numbers are read out in China.
    "〇零洞영공",
    "一壱壹幺일",
    "二弐貳贰两이",
    "三参參叁삼",
    "四肆사",
    "五伍오",
    "六陸陆륙육",
    "七柒拐칠",
    "八捌팔",
    "九玖勾구",
];
/// Digits as they are read out in Japan, in the letters that machines write down what they hear in.
const KANA: [(&str, u8); 17] = [
    ("ゼロ", 0),
    ("レイ", 0),
    ("マル", 0),
    ("イチ", 1),
    ("ニー", 2),
    ("ニ", 2),
    ("サン", 3),
    ("ヨン", 4),
    ("ヨ", 4),
    ("ゴー", 5),
    ("ゴ", 5),
    ("ロク", 6),
    ("ナナ", 7),
    ("シチ", 7),
    ("ハチ", 8),
    ("キュウ", 9),
    ("キュー", 9),
];
/// Braille: what stands before a number, and its digits.
const NUMBER_SIGN: char = '⠼';
const BRAILLE: &str = "⠚⠁⠃⠉⠙⠑⠋⠛⠓⠊";

/// What a character is in a row of figures.
enum Part {
    Figure(u8),
    /// The sign of Braille, blanks and dashes.
    Between,
}

fn part(c: char) -> Option<Part> {
    if matches!(
        c,
        ' ' | '-' | '.' | '、' | NUMBER_SIGN | '⠤' | '\u{2800}' | '・'
    ) {
        return Some(Part::Between);
    }
    if c.is_ascii() {
        return None;
    }
    let found = FIGURES.iter().position(|f| f.contains(c));
    let value = found.or_else(|| BRAILLE.chars().position(|b| b == c))?;
    u8::try_from(value).ok().map(|d| Part::Figure(b'0' + d))
}

pub(super) fn decode(node: &Node, marks: &[(u32, Mark)], spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for (at, _) in marks.iter().filter(|(_, mark)| *mark == Mark::Figures) {
        let at = *at as usize;
        if at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let figures = row_around(node, cell, at);
        let (Some(first), Some(last)) = (figures.first(), figures.last()) else {
            continue;
        };
        let (from, to) = (first.1.start as usize, last.1.end as usize);
        done = to.max(at + 1);
        if figures.len() < FIGURES_MIN {
            continue;
        }
        let digits: Vec<u8> = figures.iter().map(|(digit, _)| *digit).collect();
        child_around(node, cell, Layer::Codes, (from, to), spawn, |child| {
            if is_phone(&digits) {
                child.push(b"tel ", Span::new(from, from + 1), How::Atom);
            }
            for (digit, span) in &figures {
                child.push(&[*digit], *span, How::Atom);
            }
            child.push(b" ", Span::new(to - 1, to), How::Atom);
        });
    }
}

/// The figures before and behind `at`, which stands at the first byte of one.
fn row_around(node: &Node, cell: &Cell, at: usize) -> Vec<(u8, Span)> {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let start = super::on_char(&node.text, at.saturating_sub(REACH).max(floor), at);
    let end = super::on_char(&node.text, (at + REACH).min(ceil), ceil);
    let text =
        |from: usize, to: usize| std::str::from_utf8(&node.text[from..to]).unwrap_or_default();
    let mut row = Vec::new();
    let mut before = text(start, at);
    while let Some((left, part)) = last_part(before) {
        if let Part::Figure(d) = part {
            row.push((d, Span::new(start + left.len(), start + before.len())));
        }
        before = left;
    }
    row.reverse();
    let mut behind = text(at, end);
    while let Some((left, part)) = first_part(behind) {
        if let Part::Figure(d) = part {
            row.push((d, Span::new(end - behind.len(), end - left.len())));
        }
        behind = left;
    }
    row
}

/// What a text ends with, and what is left before it.
fn last_part(text: &str) -> Option<(&str, Part)> {
    let kana = |(word, d): &(&str, u8)| Some((text.strip_suffix(word)?, Part::Figure(b'0' + d)));
    KANA.iter().find_map(kana).or_else(|| {
        let c = text.chars().next_back()?;
        Some((&text[..text.len() - c.len_utf8()], part(c)?))
    })
}

/// What a text begins with, and what is left behind it.
fn first_part(text: &str) -> Option<(&str, Part)> {
    let kana = |(word, d): &(&str, u8)| Some((text.strip_prefix(word)?, Part::Figure(b'0' + d)));
    KANA.iter().find_map(kana).or_else(|| {
        let c = text.chars().next()?;
        Some((&text[c.len_utf8()..], part(c)?))
    })
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child};

    #[test]
    fn figures_are_read() {
        for (text, want) in [
            ("身份证号 四九四三五九九七四七八八", Some("494359974788")),
            (
                "手机: 一 三 八 〇 〇 二 九 〇 三 九 五。",
                Some("13800290395"),
            ),
            ("번호 사일육칠칠이삼오사칠", Some("4167723547")),
            ("CNH (braille): ⠼⠋⠑⠛⠓⠑⠃⠑⠁⠙⠉⠊", Some("65785251439")),
            ("NSS ⠼⠁⠼⠉⠼⠙⠼⠊⠼⠑⠼⠊⠼⠁", Some("1349591")),
            (
                "番号は ゼロ・ハチ・ゼロ・イチ・ニ・サン・ヨン です",
                Some("0801234"),
            ),
            ("加微信 幺五勾洞洞洞五三洞两八 找小卢", Some("15900053028")),
            ("ゼロ・エミッション・サンシャイン", None),
            ("一九七八年三月", None),
            ("七八个人", None),
        ] {
            assert_child(text, Layer::Codes, want);
        }
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("七八七八七八七八x ");
    }
}
