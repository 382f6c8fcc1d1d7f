//! Bytes that a program shows (`xxd`, `hexdump -C`, `od -A x -t x1z`): what their digits come to by chance is no number of anybody.
//! What the bytes say is read as a text of its own.
//!
//! Anybody can write an offset before a number. So only a line counts whose letters at the end are those of its digits.

use smallvec::SmallVec;

use crate::text::{CELL_END, NAME_END, Span};

/// Longest line that is asked, up to the place in it.
const LINE_BYTES_MAX: usize = 160;
/// How long the offset at the head of a line is, and what it shows at the least and at the most.
const OFFSET_DIGITS: std::ops::RangeInclusive<usize> = 6..=16;
const SHOWN_DIGITS_MIN: usize = 16;
const COLUMNS_MAX: usize = 32;

/// Does a value begin among the digits of such a line, and hold nothing else?
pub(crate) fn shows(text: &[u8], span: Span) -> bool {
    let (start, end) = (span.start as usize, span.end as usize);
    let shown = |b: &u8| b.is_ascii_hexdigit() || b" \n\r:\t".contains(b);
    if !text[start..end].iter().all(shown) {
        return false;
    }
    let before = &text[start.saturating_sub(LINE_BYTES_MAX)..start];
    let line = match memchr::memrchr3(b'\n', NAME_END, CELL_END, before) {
        Some(at) => start - before.len() + at + 1,
        None if start <= LINE_BYTES_MAX => 0,
        None => return false,
    };
    let rest = &text[line..text.len().min(line + LINE_BYTES_MAX)];
    digits_of(rest).is_some_and(|end| start - line < end)
}

/// Is it a line of such a dump?
pub(crate) fn is_line(line: &[u8]) -> bool {
    digits_of(&line[..line.len().min(LINE_BYTES_MAX)]).is_some()
}

/// Where the offset and the columns of a line end, if it is one.
fn digits_of(line: &[u8]) -> Option<usize> {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let offset = digits(line);
    let colon = usize::from(line.get(offset) == Some(&b':'));
    if !OFFSET_DIGITS.contains(&offset) || line.get(offset + colon) != Some(&b' ') {
        return None;
    }
    let mut columns: SmallVec<[Span; COLUMNS_MAX]> = SmallVec::new();
    let mut at = offset + colon;
    while columns.len() < COLUMNS_MAX {
        // Some leave a wider gap in the middle.
        let blanks = line[at..].iter().take(2).take_while(|b| **b == b' ');
        let from = at + blanks.count();
        let column = Span::new(from, from + digits(&line[from..]));
        let is_like_others = columns
            .first()
            .is_none_or(|first| first.len() == column.len());
        if from == at || !matches!(column.len(), 2 | 4 | 8 | 16) || !is_like_others {
            break;
        }
        at = column.end as usize;
        columns.push(column);
    }
    // The first letters may look like one column more.
    while let Some(last) = columns.last().copied() {
        if columns.len() * last.len() < SHOWN_DIGITS_MIN {
            return None;
        }
        let end = last.end as usize;
        let bytes = columns.iter().flat_map(|column| {
            let pairs = line[column.range()].as_chunks::<2>().0;
            pairs
                .iter()
                .map(|pair| pair.map(value))
                .map(|[high, low]| high << 4 | low)
        });
        if spells(&line[end..], bytes) {
            return Some(end);
        }
        columns.pop();
    }
    None
}

/// What a hexadecimal digit stands for.
fn value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Are these the letters of the bytes, with a dot for each that has none?
fn spells(behind: &[u8], mut bytes: impl Iterator<Item = u8>) -> bool {
    let letters = behind.strip_prefix(b" ").unwrap_or_default();
    let blanks = letters.iter().take_while(|b| **b == b' ').count();
    // A text may begin with blanks itself.
    let framed = letters[blanks..].first().is_some_and(|b| b"|>".contains(b));
    let starts = [
        blanks + usize::from(framed),
        blanks,
        usize::from(blanks > 0),
    ];
    let bytes: SmallVec<[u8; COLUMNS_MAX]> = bytes.by_ref().collect();
    let shown = |byte: &u8| {
        if matches!(byte, 0x20..0x7F) {
            *byte
        } else {
            b'.'
        }
    };
    starts.into_iter().any(|start| {
        let own = letters.get(start..start + bytes.len());
        own.is_some_and(|own| {
            own.iter()
                .zip(&bytes)
                .all(|(letter, byte)| *letter == shown(byte))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_dump_are_no_numbers() {
        const CARD: &str = "4111 1111 1111 1111";
        for (line, value, shown) in [
            (
                "00000010: 0300 3e00 0100 0000 4111 1111 1111 1111  ..>.....A.......",
                CARD,
                true,
            ),
            (
                "00000ca0: 6567 6973 7465 7254 4d43 6c6f 6e65 5461  egisterTMCloneTa",
                "6567 6973 7465 7254",
                true,
            ),
            (
                "00000010  41 11 11 11 11 11 11 11  03 00 3e 00 01 00 00 00  |A.........>.....|",
                "41 11 11 11 11 11 11 11",
                true,
            ),
            (
                "000010 41 11 11 11 11 11 11 11 03 00 3e 00 01 00 00 00  >A.........>.....<",
                "41 11 11 11 11 11 11 11",
                true,
            ),
            // The letters look like one more column, and begin with blanks.
            (
                "00000020: 4111 1111 1111 1111 6465 6164 2062 6565  A.......dead bee",
                CARD,
                true,
            ),
            (
                "00000020: 2020 1111 1111 1111 6465 6164 2062 6565    ......dead bee",
                "1111 1111 1111 6465",
                true,
            ),
            // Whoever writes an offset before a number has shown no bytes.
            ("00000010: 4111 1111 1111 1111", CARD, false),
            ("1234567890 4111 1111 1111 1111", CARD, false),
            (
                "20261129  4111 1111 1111 1111  paid by A. Nobody",
                CARD,
                false,
            ),
            ("card: 4111 1111 1111 1111", CARD, false),
            (
                "00000010: 0300 3e00 0100 0000 0300 3e00 0100 0000  4111111111111111",
                "4111111111111111",
                false,
            ),
        ] {
            for before in ["", "name\u{1e}", "value\u{1f}", "first line\n"] {
                let text = format!("{before}{line}");
                let at = text.find(value).expect("in it");
                let span = Span::new(at, at + value.len());
                assert_eq!(shows(text.as_bytes(), span), shown, "{text}");
            }
        }
    }
}
