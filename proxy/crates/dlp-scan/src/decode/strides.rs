//! Values in pieces of one length with the same few bytes between each two, whatever those are: `'ghp_' . 'Zq7k'`,
//! `ghp_<br>Zq7k`, `[g][h]`, a cell of a table each. The digits' detector says where two such gaps follow each other.

use super::spoken::is_phone;
use super::{Spawner, child_around};
use crate::Layer;
use crate::detect::{Scratch, may_name_test, shows_bytes, told_of_test};
use crate::text::{How, Node, Span, is_run, word_at};

/// How long a piece may be, and what stands between two.
const PIECE_BYTES_MAX: usize = 40;
const GAP_BYTES_MAX: usize = 16;
/// What comes together has to be as long as the shortest values that rules know by their beginning.
const JOINED_BYTES_MIN: usize = 16;
/// Single characters in a row before they count as a text taken apart.
const SINGLES_MIN: usize = 9;

/// Pieces at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stride {
    /// Where one of the pieces begins.
    piece: usize,
    /// How long each is, but for the last.
    len: usize,
    gap: usize,
}

/// A stride as it is noted: every third byte of a text may begin one, and none is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    piece: u32,
    len: u8,
    gap: u8,
}

impl From<Stride> for Noted {
    fn from(row: Stride) -> Self {
        const { assert!(PIECE_BYTES_MAX < 256 && GAP_BYTES_MAX < 256) };
        Self {
            piece: crate::text::to_u32(row.piece),
            len: row.len as u8,
            gap: row.gap as u8,
        }
    }
}

impl From<Noted> for Stride {
    fn from(noted: Noted) -> Self {
        Self {
            piece: noted.piece as usize,
            len: noted.len.into(),
            gap: noted.gap.into(),
        }
    }
}

fn of_piece(b: &u8) -> bool {
    is_run(*b) && !matches!(b, b'+' | b'/')
}

/// The row that the letters and digits at `from..stop` may be a piece of: the same bytes stand at both ends of it, or
/// of the next.
pub(crate) fn stride_at(
    text: &[u8],
    (from, stop): (usize, usize),
    (floor, ceil): (usize, usize),
) -> Option<Stride> {
    let before = text[floor..from].iter().rev().take(PIECE_BYTES_MAX);
    let piece = from - before.take_while(|b| of_piece(b)).count();
    let after = text[stop..ceil].iter().take(PIECE_BYTES_MAX);
    let end = stop + after.take_while(|b| of_piece(b)).count();
    let len = end - piece;
    if len > PIECE_BYTES_MAX || end >= ceil {
        return None;
    }
    // Two words are no row, and single characters with a sign between have a decoder of their own.
    let blank = text[end] == b' ' && text.get(end + 1) != Some(&b' ');
    let shortest = if len == 1 || blank { 2 } else { 1 };
    let first = text[end];
    // Bits of the gaps whose first byte stands again behind the next piece, or before this one.
    let longest = GAP_BYTES_MAX.min(ceil - end - 1);
    let gaps = (u32::MAX << shortest) & !(u32::MAX << 1 << longest);
    let behind = equal(text, end + len + 1, first) << 1;
    let before = equal(text, piece.wrapping_sub(GAP_BYTES_MAX), first).reverse_bits() >> 15;
    let mut left = (behind | before) & gaps;
    // The longest: a part of a gap repeats as well.
    while left != 0 {
        let gap = left.ilog2() as usize;
        left ^= 1 << gap;
        let row = Stride { piece, len, gap };
        let at = end + gap + len;
        if at < ceil
            && behind >> gap & 1 == 1
            && row.gap_at(text, at, ceil)
            && row.whole(text, end + gap)
        {
            return Some(row);
        }
        let from = piece.saturating_sub(gap + len);
        if piece >= floor + gap + len
            && before >> gap & 1 == 1
            && row.gap_at(text, piece - gap, ceil)
            && row.whole(text, from)
            // One byte stands between any two words; the one before has to be a piece and no more.
            && (gap > 1 || from == floor || !of_piece(&text[from - 1]))
        {
            return Some(row);
        }
    }
    None
}

/// Which of the [`GAP_BYTES_MAX`] bytes from `at` on are `byte`, the first the lowest; `at` may be before the text, as
/// `wrapping_sub` leaves it.
fn equal(text: &[u8], at: usize, byte: u8) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x80 * ONES;
    const { assert!(GAP_BYTES_MAX == 16) };
    let (Some(low), Some(high)) = (word_at(text, at), word_at(text, at.wrapping_add(8))) else {
        let there = |nth: usize| text.get(at.wrapping_add(nth)) == Some(&byte);
        return (0..GAP_BYTES_MAX).fold(0, |all, nth| all | u32::from(there(nth)) << nth);
    };
    let same = |word: u64| {
        let off = word ^ (ONES * u64::from(byte));
        let zero = !(((off & !TOPS) + !TOPS) | off) & TOPS;
        ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
    };
    same(low) | same(high) << 8
}

impl Stride {
    /// Does the row's gap stand at `at`?
    fn gap_at(&self, text: &[u8], at: usize, ceil: usize) -> bool {
        let end = self.piece + self.len;
        at + self.gap <= ceil && text[at..at + self.gap] == text[end..end + self.gap]
    }

    /// Is there a piece of the row at `at`, with no blank in it?
    fn whole(&self, text: &[u8], at: usize) -> bool {
        let piece = text.get(at..at + self.len);
        piece.is_some_and(|p| self.len == 1 && p[0] == b' ' || p.iter().all(u8::is_ascii_graphic))
    }

    /// All pieces of the row. The first and the last may be shorter.
    fn pieces(&self, text: &[u8], (floor, ceil): (usize, usize)) -> Vec<Span> {
        let step = self.len + self.gap;
        let mut start = self.piece;
        while start >= floor + step
            && self.gap_at(text, start - self.gap, ceil)
            && self.whole(text, start - step)
        {
            start -= step;
        }
        let mut pieces = Vec::new();
        if start > floor + self.gap && self.gap_at(text, start - self.gap, ceil) {
            let end = start - self.gap;
            let before = text[floor..end].iter().rev().take(self.len);
            let first = before.take_while(|b| b.is_ascii_graphic()).count();
            pieces.push(Span::new(end - first, end));
        }
        let mut end = start + self.len;
        pieces.push(Span::new(start, end));
        while self.gap_at(text, end, ceil) {
            let from = end + self.gap;
            if from + self.len > ceil || !self.whole(text, from) {
                let rest = text[from..ceil].iter().take(self.len);
                let last = rest.take_while(|b| of_piece(b)).count();
                pieces.push(Span::new(from, from + last));
                break;
            }
            end = from + self.len;
            pieces.push(Span::new(from, end));
        }
        pieces
    }
}

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let (text, mut done, mut index) = (&node.text, 0, 0);
    for row in scratch.strides.iter().map(|noted| Stride::from(*noted)) {
        if row.piece < done {
            continue;
        }
        let Some(cell) = node.cell_from(row.piece, &mut index) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        // It may reach behind `done`, but two rows of one stride never overlap: the first would have gone on.
        let mut pieces = row.pieces(text, (floor, ceil));
        let labels = trim_labels(text, &row, &mut pieces);
        let Some((start, end)) = pieces.first().zip(pieces.last()) else {
            continue;
        };
        let (mut start, mut end) = (start.start as usize, end.end as usize);
        done = end;
        if let Some(account) = account_of(text, &row, &pieces) {
            (start, end) = (
                account[0].start as usize,
                account[account.len() - 1].end as usize,
            );
            pieces = account;
        } else if !(labels || worth(text, &row, &pieces))
            || known(text, &row, (floor, start))
            || shows_bytes(text, Span::new(start, end))
            || of_source_map(text, &row, &pieces, (floor, ceil))
        {
            continue;
        }
        let phone = row.len == 1 && parts_digits(text, &row) && {
            let digits: Vec<u8> = pieces
                .iter()
                .flat_map(|p| &text[p.range()])
                .copied()
                .collect();
            is_phone(&digits)
        };
        child_around(node, cell, Layer::Spaced, (start, end), spawn, |child| {
            if phone {
                child.push(b"tel ", Span::new(start, start + 1), How::Atom);
            }
            for piece in &pieces {
                child.push(&text[piece.range()], *piece, How::Copy);
            }
        });
    }
}

/// `68656c6c.6f20776f.726c64.example.org`: bytes that the labels of a host's name carry out (RFC 1035) go up to the first that is
/// none of them. Their digits in hexadecimal have too few letters for a value.
fn trim_labels(text: &[u8], row: &Stride, pieces: &mut Vec<Span>) -> bool {
    let hex = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
    if row.gap != 1 || row.len % 2 == 1 || text[row.piece + row.len] != b'.' {
        return false;
    }
    let data = pieces
        .iter()
        .take_while(|p| p.len() == row.len && text[p.range()].iter().all(hex));
    let whole = data.count();
    let ends = |at: usize| !text.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let Some(last) = whole
        .checked_sub(1)
        .map(|nth| pieces[nth])
        .filter(|p| ends(p.end as usize))
    else {
        return false;
    };
    // The last may be shorter.
    let from = last.end as usize + 1;
    let rest = text.get(from..).unwrap_or_default();
    let len = rest.iter().take(row.len).take_while(|b| hex(b)).count();
    let shorter = len % 2 == 0
        && len > 0
        && len < row.len
        && text[last.end as usize] == b'.'
        && ends(from + len);
    let digits = whole * row.len + if shorter { len } else { 0 };
    if digits < JOINED_BYTES_MIN {
        return false;
    }
    pieces.truncate(whole);
    if shorter {
        pieces.push(Span::new(from, from + len));
    }
    true
}

/// Is the gap of such a row none that columns, versions and lists have?
fn parts_digits(text: &[u8], row: &Stride) -> bool {
    let gap = &text[row.piece + row.len..][..row.gap];
    !gap.iter().any(|b| b" \t\r\n,;|.\"'[]{}()<>&=:".contains(b))
}

/// The pieces of an account's number (IBAN), in its fours: columns of a table, lines, array elements. Its sum proves it.
fn account_of(text: &[u8], row: &Stride, pieces: &[Span]) -> Option<Vec<Span>> {
    const PIECES_MAX: usize = 9;
    if row.len != 4 {
        return None;
    }
    // The end of what stands before may have been taken for a piece.
    for first in 0..pieces.len().min(2) {
        let mut account = Vec::new();
        let head = &text[pieces[first].range()];
        let Some(len) = crate::check::iban_len(head) else {
            continue;
        };
        let mut joined = Vec::new();
        for piece in pieces[first..].iter().take(PIECES_MAX) {
            let left = crate::text::to_u32(len - joined.len());
            let own = Span::new(
                piece.start as usize,
                (piece.start + left).min(piece.end) as usize,
            );
            joined.extend_from_slice(&text[own.range()]);
            account.push(own);
            if joined.len() == len {
                break;
            }
        }
        let ends = account.last().is_some_and(|own| {
            !text
                .get(own.end as usize)
                .is_some_and(u8::is_ascii_alphanumeric)
        });
        if ends && crate::check::is_iban(&joined) {
            return Some(account);
        }
    }
    None
}

/// Do the pieces look like a value? Rows of numbers and of words are tables, and so are lines with columns.
fn worth(text: &[u8], row: &Stride, pieces: &[Span]) -> bool {
    let bytes = || pieces.iter().flat_map(|piece| &text[piece.range()]);
    if row.len == 1 && number_apart(bytes()) {
        return true;
    }
    let gap = &text[row.piece + row.len..][..row.gap];
    // A sign at the end of a line parts nothing: `data: |`.
    let parts = |rest: &[u8]| {
        let mut on = rest.iter().skip(1).filter(|b| !b" \t\r".contains(b));
        b",;|\t".contains(&rest[0]) && on.next().is_some_and(|b| *b != b'\n')
    };
    let columns = |piece: &Span| (piece.range()).any(|at| parts(&text[at..piece.end as usize]));
    if gap.contains(&b'\n') && pieces.iter().any(columns) {
        return false;
    }
    // Names of tests with their verdicts are a name each. Whatever else stands behind a label may go on from line to line.
    let line = memchr::memchr(b'\n', gap).map(|at| &gap[at + 1..]);
    let names_test = |piece: &Span| may_name_test(&text[piece.range()]);
    if line.and_then(told_of_test).is_some() && pieces.iter().all(names_test) {
        return false;
    }
    let quoted = row.len == 1 && gap.iter().any(|b| matches!(b, b'"' | b'\''));
    let min = if quoted {
        SINGLES_MIN
    } else {
        JOINED_BYTES_MIN
    };
    bytes().nth(min - 1).is_some() && (quoted || telling(bytes()))
}

/// How many signs a number has that is taken apart digit by digit, how many of them are digits, and different ones.
const NUMBER_SIGNS: std::ops::RangeInclusive<usize> = 8..=24;
const NUMBER_DIGITS_MIN: usize = 6;
const NUMBER_KINDS_MIN: u32 = 4;

/// Are single characters a number that was taken apart, and no row that counts up or says yes and no?
fn number_apart<'t>(bytes: impl Iterator<Item = &'t u8> + Clone) -> bool {
    let digits = || bytes.clone().filter(|b| b.is_ascii_digit());
    let kinds = digits().fold(0u32, |seen, b| seen | 1 << (b - b'0'));
    let steps = digits().zip(digits().skip(1));
    NUMBER_SIGNS.contains(&bytes.clone().take(NUMBER_SIGNS.end() + 1).count())
        && digits().count() >= NUMBER_DIGITS_MIN
        && kinds.count_ones() >= NUMBER_KINDS_MIN
        && bytes.clone().all(u8::is_ascii_alphanumeric)
        && !steps.clone().take(6).all(|(a, b)| *b == *a + 1)
}

/// Bytes that are judged together: a row may be long before a value comes in it.
const JUDGED_BYTES: usize = 128;

/// Is there a place with so many digits and capital letters among letters as a value has?
pub(super) fn telling<'t>(mut bytes: impl Iterator<Item = &'t u8>) -> bool {
    // How many, how many telling, how many letters: of this half of the place, and of the one before.
    let mut before = [0; 3];
    loop {
        let mut half = [0; 3];
        for b in bytes.by_ref().take(JUDGED_BYTES / 2) {
            half[0] += 1;
            half[1] += usize::from(b.is_ascii_digit() || b.is_ascii_uppercase());
            half[2] += usize::from(b.is_ascii_alphabetic());
        }
        let [all, telling, letters] = std::array::from_fn(|i| before[i] + half[i]);
        // What is left at the end was judged with the half before it.
        let whole = all == JUDGED_BYTES || half[0] < JUDGED_BYTES / 2;
        if whole && all > 0 && telling * 8 >= all && letters * 4 >= all {
            return true;
        }
        if half[0] < JUDGED_BYTES / 2 {
            return false;
        }
        before = half;
    }
}

/// Pieces between blanks or on lines are joined by another decoder, unless something is glued to the first.
fn known(text: &[u8], row: &Stride, (floor, start): (usize, usize)) -> bool {
    row.gap == 1
        && matches!(text[row.piece + row.len], b' ' | b'\n')
        && (start == floor || matches!(text[start - 1], b' ' | b'\n'))
}

/// So much on one side of a row tells a source map, with so many signs between its segments, none of which is longer.
const MAP_BYTES: usize = 64;
const MAP_SIGNS_MIN: usize = 6;
const MAP_SEGMENT_MAX: usize = 12;

/// Does the row lie among short segments with a sign between each two, and is each of its pieces a mapping of a source map? Some of
/// those are of one length by chance.
fn of_source_map(
    text: &[u8],
    row: &Stride,
    pieces: &[Span],
    (floor, ceil): (usize, usize),
) -> bool {
    let between = |b: &u8| matches!(b, b',' | b';');
    let gap = &text[row.piece + row.len..][..row.gap];
    let [first, inner @ .., last] = pieces else {
        return false;
    };
    let segments = |side: &[u8]| {
        let of_map = |b: &u8| is_run(*b) || between(b);
        side.len() == MAP_BYTES
            && side.iter().all(of_map)
            && side.iter().filter(|b| between(b)).count() >= MAP_SIGNS_MIN
            && side.split(between).all(|s| s.len() <= MAP_SEGMENT_MAX)
    };
    let before = &text[floor..first.start as usize];
    let behind = &text[last.end as usize..ceil];
    gap.len() == 1
        && between(&gap[0])
        // The outermost may have been cut.
        && inner.iter().all(|piece| is_mapping(&text[piece.range()]))
        && (segments(&before[before.len().saturating_sub(MAP_BYTES)..])
            || segments(&behind[..behind.len().min(MAP_BYTES)]))
}

/// One, four or five numbers in base64 (ECMA-426, "Decoding mappings"): a digit below 32 is the last of a number. Of the pieces of a
/// token not one in three is that.
fn is_mapping(segment: &[u8]) -> bool {
    let is_last = |digit: &u8| matches!(digit, b'A'..=b'Z' | b'a'..=b'f');
    let numbers = segment.iter().filter(|digit| is_last(digit)).count();
    let of_base64 = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    matches!(numbers, 1 | 4 | 5)
        && segment.last().is_some_and(is_last)
        && segment.iter().all(of_base64)
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    /// `pieces` with `gap` between them.
    fn row(gap: &str) -> String {
        ["ghp_Zq7k", "W2mXv9Lp", "4TsR8bNc", "3Yd"].join(gap)
    }

    #[test]
    fn labels_of_a_host_carry_bytes() {
        for text in [
            "get 6768.705f.5a71.376b.5732.6d58.7639.4c70.3454.7352.3862.x.example.org",
            "q: 6768705f.5a71376b.57326d58.76394c70.34547352.3862.example.org",
        ] {
            let found = children(text);
            let digits = "6768705f5a71376b57326d5876394c70345473523862";
            assert!(
                found
                    .iter()
                    .any(|(l, t, _)| *l == Layer::Spaced && t.contains(digits)),
                "{text}"
            );
        }
    }

    #[test]
    fn an_account_in_its_fours_comes_together() {
        for text in [
            "name,a,b,c,d,e,f\nVreni,DE89,3704,0044,0532,0130,00,x",
            "Titular: Ovidio\nDE89\n3704\n0044\n0532\n0130\n00",
            "DE89|3704|0044|0532|0130|00",
            "[\"DE89\", \"3704\", \"0044\", \"0532\", \"0130\", \"00\"]",
        ] {
            let found = children(text);
            let whole = |t: &str| t.contains("DE89370400440532013000");
            assert!(
                found
                    .iter()
                    .any(|(l, t, _)| *l == Layer::Spaced && whole(t)),
                "{text:?}"
            );
        }
        let found = children("DE88,3704,0044,0532,0130,00");
        assert!(!found.iter().any(|(_, t, _)| t.contains("DE8837040044")));
    }

    #[test]
    fn equal_pieces_come_together_over_any_gap() {
        for gap in [
            "' . '",
            "\" \"",
            "\"\n    \"",
            "<br>",
            "</b><b>",
            "|",
            " | ",
            "**",
            "\\\n",
            "\r\n",
            "\n   ",
            "', '",
            "<!-- -->",
            "\u{1b}[31m",
            "\u{a0}",
            "\u{3000}",
            "][",
            "\"\nk += \"",
            "</span><span>",
        ] {
            let text = format!("key is '{}' here", row(gap));
            let found = children(&text);
            let hit = found.iter().find(|(layer, child, _)| {
                *layer == Layer::Spaced
                    && child.contains("key is 'ghp_Zq7kW2mXv9Lp4TsR8bNc3Yd' here")
            });
            let Some((_, child, source)) = hit else {
                panic!(
                    "{text:?}: {:?}",
                    found.iter().map(|c| (c.0, &c.1)).collect::<Vec<_>>()
                );
            };
            let at = child.find("W2m").unwrap();
            assert_eq!(&text[source(at, at + 3)], "W2m", "{text:?}");
        }
        let singles: Vec<_> = "ghp_Zq7kW2mXv9Lp4TsR"
            .split("")
            .filter(|c| !c.is_empty())
            .collect();
        for gap in [", ", "' '", "\",\"", "]["] {
            let text = singles.join(gap);
            let found = children(&text);
            assert!(
                found
                    .iter()
                    .any(|(_, child, _)| child.contains("ghp_Zq7kW2mXv9Lp4TsR")),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_row_behind_many_others_is_found() {
        let decoys = "a1' 'b2' 'c3' d; ".repeat(20_000);
        let text = format!("{decoys}key is '{}' here", row("<br>"));
        let found = children(&text);
        let whole = |child: &str| child.contains("ghp_Zq7kW2mXv9Lp4TsR8bNc3Yd");
        assert!(found.iter().any(|(_, child, _)| whole(child)));
    }

    #[test]
    fn lines_with_a_label_each_are_joined_whatever_it_promises() {
        let value = "ghp_Zq7kW2mXv9Lp4TsR8bNc3YdaB1cD2eF3gH4i";
        for label in [
            "key", "token", "password", "part", "PASSWORD", "PASS", "FAIL",
        ] {
            let pieces = value.as_bytes().chunks(12).map(String::from_utf8_lossy);
            let lines: Vec<String> = pieces.map(|piece| format!("{label}: {piece}")).collect();
            let found = children(&lines.join("\n"));
            let whole = |child: &str| child.contains(value);
            assert!(found.iter().any(|(_, child, _)| whole(child)), "{label}");
        }
    }

    #[test]
    fn tables_of_words_and_numbers_are_left_alone() {
        for text in [
            "| alpha | gamma | delta | omega |",
            "| 1024 | 2048 | 4096 | 8192 |",
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14",
            "a1, b, c, d",
            "v1.2.3, v1.2.4",
            "x1 = 3; y1 = 4; z1 = 5",
            "PASS: vers10\nPASS: vers11\nPASS: vers12\nPASS: vers13",
            "PASS: ld-elf/pr13195\nPASS: ld-elf/pr13839\nPASS: ld-elf/pr14052",
            "AAAA,SAASA,GAAG,IAAI,CAAC,MAAM,EAAE;IAC9B,MAAM,EAAE,GAAG,IAAI,CAAC;EACtB,OAAO,EAAE,KAAK,CAAC;AACjB,EAAW,IAAA,CAAA",
        ] {
            let found = children(text);
            assert!(
                found.iter().all(|(layer, ..)| *layer != Layer::Spaced),
                "{text}: {:?}",
                found.iter().map(|c| (c.0, &c.1)).collect::<Vec<_>>()
            );
        }
    }
}
