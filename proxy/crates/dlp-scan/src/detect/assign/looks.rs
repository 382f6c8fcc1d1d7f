//! What values look like that no sign sets apart, and the signs of other languages that do.

use crate::entropy::{Classes, wordiness};

/// Letters of both cases and digits in no order, as no word has them.
pub(super) fn drawn(word: &[u8]) -> bool {
    let c = Classes::of(word);
    let mixed = c.lower >= 2 && c.upper >= 2 && c.digit >= 1 && c.changes >= 6;
    (10..=40).contains(&word.len()) && mixed && wordiness(word) < 0.6
}

/// Quotation marks of other languages, and what closes them.
pub(super) fn opening(text: &[u8]) -> Option<(&'static str, &'static str)> {
    const MARKS: [(&str, &str); 6] = [
        ("«", "»"),
        ("“", "”"),
        ("„", "“"),
        ("「", "」"),
        ("『", "』"),
        ("‘", "’"),
    ];
    let first = text.first().filter(|b| **b >= 0x80);
    first.and_then(|_| {
        MARKS
            .into_iter()
            .find(|(o, _)| text.starts_with(o.as_bytes()))
    })
}

/// Does it begin with a sign that ends a part of a sentence in Chinese, Japanese or Arabic?
pub(super) fn begins_sign(text: &[u8]) -> bool {
    const SIGNS: [&str; 14] = [
        "，", "。", "；", "、", "）", "】", "」", "』", "”", "’", "»", "…", "！", "،",
    ];
    SIGNS.iter().any(|s| text.starts_with(s.as_bytes()))
}

/// What stands alone on its line and is neither a word nor code: three kinds of characters, a sign of passwords too.
pub(super) fn lone(line: &[u8]) -> bool {
    let c = Classes::of(line);
    let sign = |b: &u8| b"!@#$%^&*?+~".contains(b);
    let code = |b: &u8| b"()[]{}<>=:;,/\\|\"'`".contains(b);
    let mail = line.contains(&b'@') && line.contains(&b'.');
    let kinds = [c.lower, c.upper, c.digit]
        .iter()
        .filter(|n| **n > 0)
        .count();
    (8..64).contains(&line.len())
        && line[0].is_ascii_alphanumeric()
        && line.iter().all(u8::is_ascii_graphic)
        && !line.iter().any(code)
        && !mail
        && kinds >= 2
        && line.iter().any(sign)
}

/// `<br>` or `<br />`, and the end of the line behind it: how long they are.
pub(super) fn line_break(text: &[u8]) -> usize {
    let tags = ["<br>", "<br/>", "<br />", "<BR>"];
    let tag = tags.iter().find(|tag| text.starts_with(tag.as_bytes()));
    tag.map_or(0, |tag| {
        let behind = text[tag.len()..].iter().take(3);
        tag.len() + behind.take_while(|b| b.is_ascii_whitespace()).count()
    })
}
