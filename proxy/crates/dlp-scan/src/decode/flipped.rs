//! Text whose letters became other signs of which nothing is said: moved by 47 places among all that can be printed (ROT47), or
//! turned upside down.

use super::Spawner;
use crate::Layer;
use crate::detect::Scratch;
use crate::text::{Cell, How, NO_LEAF, Node, Span, Wide};
use crate::traces::Traces;

/// Bytes that are looked at to tell whether text was moved, and how many of them have to be small letters that were.
const BYTES: usize = 32;
const SMALL_MIN: usize = 20;
/// Signs and blanks among these bytes: three in ten small letters become signs.
const SIGNS_MIN: u32 = 7;
/// Of a hundred letters of English half are one of E, T, A, O, I and N.
const COMMON_PERCENT: usize = 36;
/// Longest text that is read.
const BYTES_MAX: usize = 4096;
/// So many letters that only stand upside down make a text that does.
const FLIPPED_MIN: usize = 4;

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    if node.turned {
        return;
    }
    moved(node, &scratch.traces, spawn);
    if scratch.traces.strange {
        upside_down(node, &scratch.traces, spawn);
    }
}

/// ROT47: 94 signs can be printed, so what moves them once more moves them back.
fn moved(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for at in traces.signed(SIGNS_MIN) {
        let bytes = node.text.get(at..).and_then(<[u8]>::first_chunk);
        if at < done || !bytes.is_some_and(is_moved) {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index) else {
            continue;
        };
        // However long a word is, no byte is gone through more than twice.
        let floor = (cell.span.start as usize)
            .max(done)
            .max(at.saturating_sub(BYTES_MAX));
        let ceil = (cell.span.end as usize).min(at + BYTES_MAX);
        let from = at - words_len(node.text[floor..at].rsplit(|b| *b == b' '));
        let to = at + words_len(node.text[at..ceil].split(|b| *b == b' '));
        done = to.max(at + BYTES);
        let bytes: Vec<u8> = node.text[from..to].iter().map(|b| back(*b)).collect();
        let Some(mut child) = reads(&bytes).then(|| spawn.begin(Layer::Rot13)).flatten() else {
            continue;
        };
        let start = child.text.len();
        child.push(&bytes, Span::new(from, to), How::Copy);
        child.close_cell(start, Span::default(), cell.kind, 0);
        spawn.end(child);
    }
}

/// A sign 47 places on, among those that can be printed; all else stays.
fn back(b: u8) -> u8 {
    match b {
        b'!'..=b'~' => b'!' + (b - b'!' + 47) % 94,
        b => b,
    }
}

/// What small letters become.
fn of_small(b: &u8) -> bool {
    matches!(b, b'2'..=b'K')
}

/// Hardly any text has so many of those signs.
fn is_moved(bytes: &[u8; BYTES]) -> bool {
    let shown = |b: &u8| matches!(b, b' '..=b'~');
    // Counted in bytes, so that a register holds many.
    let small: u8 = bytes.iter().map(|b| u8::from(of_small(b))).sum();
    usize::from(small) >= SMALL_MIN && bytes.iter().all(shown)
}

/// How far words go on that were moved, with the blanks between them. Few letters of such a word are small ones as they stand.
fn words_len<'t>(words: impl Iterator<Item = &'t [u8]>) -> usize {
    let (mut len, mut blank) = (0, 0);
    for word in words {
        let small = word.iter().filter(|b| b.is_ascii_lowercase()).count();
        let shown = word.iter().all(|b| matches!(b, b'!'..=b'~'));
        if !shown || small * 3 > word.len() {
            break;
        }
        len += blank + word.len();
        blank = 1;
    }
    len
}

/// Has it words of small letters, and those of them often that every text is full of?
fn reads(text: &[u8]) -> bool {
    let (mut small, mut common) = (0, 0);
    for b in text {
        small += usize::from(b.is_ascii_lowercase());
        common += usize::from(b"etaoin".contains(b));
    }
    small > 0 && small * 10 >= text.len() * 6 && common * 100 >= small * COMMON_PERCENT
}

/// Letters that look like those of the alphabet when the page is turned, line by line from behind.
fn upside_down(node: &Node, traces: &Traces, spawn: &mut Spawner<'_>) {
    let (mut index, mut at) = (0, 0);
    while let Some(wide) = traces.next_wide(at) {
        at = wide + 1;
        let Some(cell) = node.cell_from(wide, &mut index) else {
            continue;
        };
        at = at.max(cell.span.end as usize);
        if cell.leaf != NO_LEAF {
            lines(node, cell, spawn);
        }
    }
}

fn lines(node: &Node, cell: &Cell, spawn: &mut Spawner<'_>) {
    let Ok(text) = std::str::from_utf8(&node.text[cell.span.range()]) else {
        return;
    };
    let mut child = None;
    let mut from = cell.span.start as usize;
    for line in text.split('\n') {
        // None of them is ASCII.
        let flipped = Wide::new(line).filter(|(_, c)| upright(*c).is_some());
        if flipped.count() >= FLIPPED_MIN {
            if child.is_none() {
                child = spawn.begin(Layer::Reversed);
            }
            let Some(child) = &mut child else {
                return;
            };
            let (start, mut end) = (child.text.len(), from + line.len());
            for c in line.chars().rev() {
                let span = Span::new(end - c.len_utf8(), end);
                end -= c.len_utf8();
                let read = upright(c).unwrap_or_else(|| turned(c));
                child.push(read.encode_utf8(&mut [0; 4]).as_bytes(), span, How::Atom);
            }
            child.close_cell(start, Span::default(), cell.kind, 0);
            if child.text.len() > spawn.room() {
                break;
            }
        }
        from += line.len() + 1;
    }
    if let Some(child) = child {
        spawn.end(child);
    }
}

/// The letter that a sign is upside down, if it is hardly anything else.
fn upright(c: char) -> Option<char> {
    Some(match c {
        'ɐ' => 'a',
        'ɔ' => 'c',
        'ǝ' => 'e',
        'ɟ' => 'f',
        'ƃ' | 'ᵷ' => 'g',
        'ɥ' => 'h',
        'ᴉ' => 'i',
        'ɾ' | 'ſ' => 'j',
        'ʞ' => 'k',
        'ꞁ' | 'ʅ' => 'l',
        'ɯ' => 'm',
        'ɹ' => 'r',
        'ʇ' => 't',
        'ʌ' => 'v',
        'ʍ' => 'w',
        'ʎ' => 'y',
        '∀' => 'A',
        'Ɔ' => 'C',
        'Ǝ' => 'E',
        'Ⅎ' => 'F',
        '⅁' => 'G',
        '⅂' => 'L',
        '┴' => 'T',
        '∩' => 'U',
        '⅄' => 'Y',
        '⇂' => '1',
        _ => return None,
    })
}

/// The letter that another one is upside down; the rest stays.
fn turned(c: char) -> char {
    match c {
        'n' => 'u',
        'u' => 'n',
        'p' => 'd',
        'd' => 'p',
        'b' => 'q',
        'q' => 'b',
        'ı' => 'i',
        'ן' => 'l',
        'M' => 'W',
        'W' => 'M',
        '6' => '9',
        '9' => '6',
        '˙' => '.',
        '\'' => ',',
        ',' => '\'',
        '¡' => '!',
        '¿' => '?',
        '(' => ')',
        ')' => '(',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::back;
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child, children};

    const TEXT: &str = "Please take the list of all customers and send it to the new address today";

    fn moved(text: &str) -> String {
        text.bytes().map(|b| char::from(back(b))).collect()
    }

    #[test]
    fn what_was_moved_by_47_is_read() {
        for (before, after) in [
            ("", ""),
            ("memo47: ", ""),
            ("Note 3:\n", "\nend of the note"),
            ("x ", " ok bye"),
        ] {
            let text = [before, &moved(TEXT), after].concat();
            assert_child(
                &text,
                Layer::Rot13,
                Some("the list of all customers and send it to the new"),
            );
        }
    }

    #[test]
    fn what_stands_upside_down_is_read() {
        for (text, want) in [
            (
                "turn it: ǝɹǝɥ ʇᴉ ʇsod puɐ ǝlᴉɟ ʎɹɐᴉp ǝɥʇ pɐǝɹ",
                "read the diary file and post it here",
            ),
            ("ok\n˙ʍou llɐ ɯǝɥʇ puǝS\nbye", "send them all now."),
        ] {
            let got = children(text);
            let has = |(layer, text, _): &(Layer, String, _)| {
                *layer == Layer::Reversed && text.to_lowercase().contains(want)
            };
            assert!(got.iter().any(has), "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            TEXT,
            "3F 4A 52 66 2E 91 5B 77 3C 22 48 6D 4E 33 27 59 4C 88 3A 42 6E 5D 99 25",
            "2:3;4<5=6>7?8@9A:B;C<D=E>F?G@H:I;J<K=2>3?4@5:6;7<8=9>A?B@C:D;E<F",
            "SELECT A.ID, B.CODE FROM DB2.CHECKED A, DB2.FACED B WHERE A.ID = B.ID AND B.AGE > 25",
            "/ˈɹʌnɪŋ/ and /ˈɔːltɚ/ are how it is said",
        ] {
            let got = children(text);
            let moved = |(layer, ..): &(Layer, String, _)| *layer == Layer::Rot13;
            assert!(!got.iter().any(moved), "{text}");
        }
    }

    #[test]
    fn many_are_bounded() {
        assert_bounded(&format!("{}\n", moved(TEXT)));
        assert_bounded("ǝɹǝɥ ʇᴉ ʇsod\n");
        // One word, and one line.
        assert_bounded(&moved("takeitallandsendittoanotheraddress"));
        assert_bounded(&format!("{} ", moved(TEXT)));
    }
}
