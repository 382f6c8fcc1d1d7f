//! Letters of any script with the same sign between each two: `и г н о р и р у й`, `住-所-東-京`. Rows of ASCII alone have a reader
//! of their own (`breaks.rs`), which need not know where characters end.

use unicode_normalization::char::is_combining_mark;

use super::{Spawner, child_around};
use crate::Layer;
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::traces::Traces;

/// Fewer in a row are the days of a week.
const SINGLES_MIN: usize = 8;
/// Of those beyond ASCII.
const FOREIGN_MIN: usize = 2;
const SEPARATORS: &[u8; 13] = b" .-_,|*/~\t+:;";

pub(super) fn decode(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let (mut done, mut index, mut from) = (0, 0, 1);
    while let Some(at) = traces.next_wide(from) {
        from = at + 1;
        let separator = text[at - 1];
        // Of a character only the first byte.
        if at < done || text[at] < 0xC2 || !SEPARATORS.contains(&separator) {
            continue;
        }
        // Most single letters stand between words.
        let after = unit(&text[at..]);
        if text.get(at + after) != Some(&separator) {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let units = row(node, cell, at, done, separator);
        done = units
            .last()
            .map_or(at, |unit| unit.end as usize)
            .max(at + 1);
        let foreign = |unit: &&Span| {
            let unit = std::str::from_utf8(&text[unit.range()]).unwrap_or_default();
            unit.chars().any(|c| !c.is_ascii() && c.is_alphabetic())
        };
        if units.len() < SINGLES_MIN || units.iter().filter(foreign).count() < FOREIGN_MIN {
            continue;
        }
        let place = (units[0].start as usize, done);
        child_around(node, cell, Layer::Spaced, place, spawn, |child| {
            for unit in &units {
                child.push(&text[unit.range()], *unit, How::Copy);
            }
        });
    }
}

/// The characters around `at` with `separator` between each two, none of them before `done`.
fn row(node: &Node, cell: &Cell, at: usize, done: usize, separator: u8) -> Vec<Span> {
    let floor = (cell.span.start as usize).max(done);
    let text = &node.text[..cell.span.end as usize];
    let mut from = at;
    while let Some(end) = from.checked_sub(1).filter(|end| *end > floor) {
        let start = floor + start_of_last(&text[floor..end]);
        // A word's last letter is none by itself.
        let alone = start == floor || !of_word(text[start - 1]);
        if text[end] != separator || !alone {
            break;
        }
        from = start;
    }
    let mut units = Vec::new();
    while from < text.len() {
        let len = unit(&text[from..]);
        let end = from + len;
        let goes_on = text.get(end) == Some(&separator);
        let alone = goes_on || text.get(end).is_none_or(|b| !of_word(*b));
        if len == 0 || !alone {
            break;
        }
        units.push(Span::new(from, end));
        if !goes_on {
            break;
        }
        from = end + 1;
    }
    units
}

fn of_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80
}

/// How many bytes the character has that a text begins with, and the marks on it; none where it is a line's end.
fn unit(text: &[u8]) -> usize {
    let near = &text[..text.len().min(24)];
    let valid = match std::str::from_utf8(near) {
        Ok(valid) => valid,
        Err(e) => std::str::from_utf8(&near[..e.valid_up_to()]).unwrap_or_default(),
    };
    let mut chars = valid.chars();
    let Some(first) = chars.next().filter(|c| !c.is_control()) else {
        return 0;
    };
    let marks = chars.take_while(|c| is_combining_mark(*c));
    first.len_utf8() + marks.map(char::len_utf8).sum::<usize>()
}

/// Where the last character of a text begins, with the marks on it.
fn start_of_last(text: &[u8]) -> usize {
    let near = text.len().saturating_sub(24);
    let from = (near..text.len()).find(|at| text[*at] & 0xC0 != 0x80);
    let from = from.unwrap_or(text.len());
    let last = std::str::from_utf8(&text[from..]).unwrap_or_default();
    let base = last
        .char_indices()
        .rev()
        .find(|(_, c)| !is_combining_mark(*c));
    from + base.map_or(0, |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child, children};

    #[test]
    fn letters_of_any_script_come_together() {
        for (text, want) in [
            ("и г н о р и р у й   э т о", "игнорируй это"),
            ("see: d i r e c c i ó n ü b e r   5 3", "direcciónüber 53"),
            ("住-所-東-京-都-渋-谷-区-神", "住所東京都渋谷区神"),
            ("ا.ل.ع.ن.و.ا.ن.:.1", "العنوان:1"),
            ("ह िं द ी   म ें   ल ि ख", "हिंदी में लिख"),
        ] {
            assert_child(text, Layer::Spaced, Some(want));
        }
    }

    #[test]
    fn words_and_days_are_left_alone() {
        for text in [
            "一 二 三 四 五 六 日",
            "я и ты и он и мы и вы и они",
            "à la carte, é uma vez",
            "a · b · c · d · e · f · g · h · i",
        ] {
            assert_child(text, Layer::Spaced, None);
        }
    }

    #[test]
    fn redaction_meets_what_was_written() {
        let text = "адрес: у л и ц а   Л е н и н а   1 2 end";
        let found = children(text);
        let (_, child, map) = found
            .iter()
            .find(|(layer, child, _)| *layer == Layer::Spaced && child.contains("улица"))
            .expect("a child");
        let at = child.find("Ленина").expect("the value");
        assert_eq!(&text[map(at, at + "Ленина".len())], "Л е н и н а");
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("и г н о р и р у й\n");
    }
}
