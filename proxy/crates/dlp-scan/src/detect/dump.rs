//! Bytes that a program shows (`xxd`, `hexdump -C`): what their digits come to by chance is no number of anybody. What the bytes
//! say is read as a text of its own.

use crate::text::Span;

/// Longest line that is asked, up to the place in it.
const LINE_BYTES_MAX: usize = 160;
/// How long the offset at the head of a line is, and what it shows at the least.
const OFFSET_DIGITS: std::ops::RangeInclusive<usize> = 6..=16;
const SHOWN_DIGITS_MIN: usize = 16;

/// Does a value begin among the digits of such a line, and hold nothing else? A line has an offset, a colon or blanks, and columns
/// of digits, all as long as each other.
pub(crate) fn shows(text: &[u8], span: Span) -> bool {
    let (start, end) = (span.start as usize, span.end as usize);
    let shown = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b' ' | b'\n' | b'\r' | b':' | b'\t');
    if !text[start..end].iter().all(shown) {
        return false;
    }
    let before = &text[start.saturating_sub(LINE_BYTES_MAX)..start];
    let line = match memchr::memrchr(b'\n', before) {
        Some(at) => start - before.len() + at + 1,
        None if start <= LINE_BYTES_MAX => 0,
        None => return false,
    };
    // The cell begins behind its name.
    let line = match memchr::memrchr(0x1E, &text[line..start]) {
        Some(at) => line + at + 1,
        None => line,
    };
    let rest = &text[line..text.len().min(line + LINE_BYTES_MAX)];
    columns(rest).is_some_and(|shown| shown.contains(&(start - line)))
}

/// Is it a line of such a dump?
pub(crate) fn is_line(line: &[u8]) -> bool {
    columns(&line[..line.len().min(LINE_BYTES_MAX)]).is_some()
}

/// How far the offset and the columns of a line go.
fn columns(rest: &[u8]) -> Option<std::ops::Range<usize>> {
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let offset = digits(rest);
    let behind = rest[offset..].strip_prefix(b":").unwrap_or(&rest[offset..]);
    if !OFFSET_DIGITS.contains(&offset) || !behind.starts_with(b" ") {
        return None;
    }
    let columns = behind.split(|b| *b == b' ').filter(|word| !word.is_empty());
    let mut columns = columns.map(|word| (digits(word), word.len()));
    let (len, _) = columns.next()?;
    let of_column = |(shown, all): &(usize, usize)| shown == all && *all == len;
    let more = columns.take_while(of_column).count();
    let from = rest.len() - behind.len();
    let to = from + (more + 1) * (len + 1) + 2;
    let shown = matches!(len, 2 | 4 | 8 | 16) && (more + 1) * len >= SHOWN_DIGITS_MIN;
    shown.then_some(0..to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_a_dump_are_no_numbers() {
        for (line, value, shown) in [
            (
                "00000010: 0300 3e00 0100 0000 4111 1111 1111 1111  ..>.....A",
                "4111 1111 1111 1111",
                true,
            ),
            (
                "00000010: 41111111 11111111 0300 3e00",
                "41111111 11111111",
                true,
            ),
            (
                "00000010  41 11 11 11 11 11 11 11  03 00 3e 00 01 00 00 00  |A...|",
                "41 11 11 11 11 11 11 11",
                true,
            ),
            ("card: 4111 1111 1111 1111", "4111 1111 1111 1111", false),
            ("00000010: 4111 1111 1111 1111", "4111 1111 1111 1111", true),
            ("20260101: 4111", "4111", false),
            (
                "1234567 paid with 4111 1111 1111 1111",
                "4111 1111 1111 1111",
                false,
            ),
            (
                "00000010: 0300 3e00 0100 0000 0300 3e00 0100 0000  4111111111111111",
                "4111111111111111",
                false,
            ),
        ] {
            for before in ["", "name\u{1e}", "first line\n"] {
                let text = format!("{before}{line}");
                let at = text.find(value).expect("in it");
                let span = Span::new(at, at + value.len());
                assert_eq!(shows(text.as_bytes(), span), shown, "{text}");
            }
        }
    }
}
