//! Bytes written as lists: character codes (`103, 104, 112`, `[0x67, 0x68]`, numbers of a JSON array). However long a list is:
//! what was read is not read again.

use super::{Spawner, child_around, rows_of};
use crate::detect::Scratch;
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::traces::Traces;
use crate::{Layer, LeafKind};

/// Fewer codes in a row hold nothing that a rule finds.
pub(super) const CODES_MIN: usize = 8;
/// So many bare decimal numbers are needed before they count as codes.
pub(super) const BARE_CODES_MIN: usize = 12;

pub(super) fn decode(node: &Node, scratch: &Scratch, spawn: &mut Spawner<'_>) {
    let traces = &scratch.traces;
    codes(node, &traces.commas, spawn);
    code_rows(node, &scratch.code_rows, spawn);
    code_cells(node, spawn);
}

/// `103, 104, 112`: decimal or hexadecimal, with commas.
fn codes(node: &Node, behind_commas: &[u32], spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let (mut done, mut index) = (0, 0);
    let mut list = Vec::new();
    for behind in behind_commas {
        let before = *behind as usize - 1;
        let comma = if text[before] == b',' {
            before
        } else {
            before - 1
        };
        let next = text[comma + 1..]
            .iter()
            .take(24)
            .find(|b| !b.is_ascii_whitespace());
        let before = comma.checked_sub(1).map(|at| text[at]);
        if comma < done
            || !next.is_some_and(u8::is_ascii_digit)
            || !before.is_some_and(|b| b.is_ascii_hexdigit())
        {
            continue;
        }
        let Some(cell) = node.cell_from(comma, &mut index) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        let typed = text[floor..comma].ends_with(TYPE);
        let start = word_start(text, comma - usize::from(typed) * TYPE.len(), floor);
        let end = read_codes(&text[..ceil], start, &mut list);
        done = end.max(comma + 1);
        let before = text[floor..start].trim_ascii_end();
        let hex = text[start..].starts_with(b"0x") || text[start..].starts_with(b"0X");
        let called = before.ends_with(b"(") || hex;
        let enough = list.len() >= CODES_MIN
            && (called
                || list.len() >= BARE_CODES_MIN && telling(&list)
                || of_digits(&list)
                || coded(&list)
                || told(text, (start, end), cell));
        if enough {
            emit(node, cell, (start, end), &list, spawn);
        }
    }
}

/// What stands between two codes that no comma parts: `chr(103).chr(104)`, `U+0067 U+0068`, `103 104`.
const CODE_GAP_MAX: usize = 16;
/// Bits of a character, and of one of ASCII.
const BITS: usize = 8;
const ASCII_BITS: usize = 7;

fn code_len(text: &[u8], at: usize, ceil: usize) -> usize {
    let word = text[at..ceil].iter().take(BITS + 1);
    word.take_while(|b| b.is_ascii_alphanumeric()).count()
}

/// Does a number follow the one at `from..stop`, and then another, with the same bytes between?
pub(crate) fn row_at(
    text: &[u8],
    traces: &Traces,
    (from, stop): (usize, usize),
    ceil: usize,
) -> bool {
    let fits = |len: usize| matches!(len, 2..=4 | ASCII_BITS | BITS);
    // Lists with commas have a reader of their own, unless something stands before each; the others part versions, times
    // and dates.
    let listed = || {
        let mut behind = text[stop + 1..ceil].iter().take(CODE_GAP_MAX);
        behind.find(|b| **b != b' ').is_none_or(u8::is_ascii_digit)
    };
    if !fits(stop - from)
        || matches!(text[stop], b'.' | b':' | b'/')
        || text[stop] == b',' && listed()
    {
        return false;
    }
    let Some(next) = traces.next_digit(stop).filter(|next| *next < ceil) else {
        return false;
    };
    let gap = next - stop;
    if gap > CODE_GAP_MAX {
        return false;
    }
    let (len, ..) = traces.word(next..ceil);
    let end = next + len;
    fits(len) && end + gap < ceil && text[end..end + gap] == text[stop..next]
}

/// How far around a list words stand that say what it is.
const TOLD_NEAR: usize = 40;
/// What a list of characters is made with, or called.
const TOLD: [&[u8]; 13] = [
    b"byte", b"char", b"chr", b"pack(", b"utf", b"ascii", b"string", b"<<", b"u8", b"codes",
    b"octal", b"rune", b"decode(",
];

/// Do words around a list say that its numbers are characters?
fn told(text: &[u8], (start, end): (usize, usize), cell: &Cell) -> bool {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let before = &text[start.saturating_sub(TOLD_NEAR).max(floor)..start];
    let after = &text[end.min(ceil)..(end + TOLD_NEAR / 2).min(ceil)];
    TOLD.iter()
        .any(|word| said(before, word) || said(after, word))
}

/// Does a short piece of text hold the word, in either case?
fn said(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len())
        .any(|w| w.eq_ignore_ascii_case(word))
}

/// Codes with the same few bytes between each two, in any of the usual bases.
fn code_rows(node: &Node, starts: &[u32], spawn: &mut Spawner<'_>) {
    let (text, mut done, mut index) = (&node.text, 0, 0);
    let mut words = Vec::new();
    for start in starts.iter().map(|at| *at as usize) {
        if start < done {
            continue;
        }
        let Some(cell) = node.cell_from(start, &mut index) else {
            continue;
        };
        let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
        let stop = start + code_len(text, start, ceil);
        let after = text[stop..ceil].iter().take(CODE_GAP_MAX + 1);
        let gap = &text[stop..][..after.take_while(|b| !b.is_ascii_digit()).count()];
        words.clear();
        words.push(Span::new(start, stop));
        let mut at = stop;
        while text[at..ceil].starts_with(gap) {
            let from = at + gap.len();
            let len = code_len(text, from, ceil);
            if !(1..=BITS).contains(&len) || !text[from].is_ascii_digit() {
                break;
            }
            at = from + len;
            words.push(Span::new(from, at));
        }
        done = at;
        if words.len() < CODES_MIN {
            continue;
        }
        let told = told(text, (start, at), cell);
        let marked = told
            || gap
                .iter()
                .any(|b| matches!(b, b'(' | b'\\' | b'+' | b'#' | b'x' | b'$'));
        // What is written before a code in a row of `U+0067`, `\67 ` or `$67, `.
        let lead = gap
            .last()
            .filter(|b| matches!(b, b'\\' | b'+' | b'x' | b'$'));
        let hexed = lead.is_some_and(|b| text[floor..start].ends_with(&[*b]));
        let octal = told
            && said(
                &text[floor.max(start.saturating_sub(TOLD_NEAR))..start],
                b"oct",
            );
        let Some(list) = read_row(text, &words, (hexed, octal)) else {
            continue;
        };
        // Eight bits each are no numbers that anybody counts with.
        let marked = marked
            || words
                .iter()
                .all(|word| matches!(word.len(), ASCII_BITS | BITS));
        if list.len() >= if marked { CODES_MIN } else { BARE_CODES_MIN }
            && (marked || telling(&list))
            || of_digits(&list)
        {
            emit(node, cell, (start, at), &list, spawn);
        }
    }
}

/// The codes of a row in the first base that makes characters of all of them.
fn read_row(text: &[u8], words: &[Span], (hexed, octal): (bool, bool)) -> Option<Vec<Code>> {
    let all = |base: u32, len: usize| {
        let codes = words.iter().map(|word| {
            let digits = std::str::from_utf8(&text[word.range()]).ok()?;
            let whole = len == 0 || digits.len() == len;
            let code = u32::from_str_radix(digits, base).ok().filter(|_| whole)?;
            (printable(u8::try_from(code).ok()?) || code >= 0x80).then_some((code, *word))
        });
        codes.collect::<Option<Vec<Code>>>()
    };
    // `0x67`, `67h`: each says its base.
    let first = &text[words.first()?.range()];
    if first.starts_with(b"0x") || first.ends_with(b"h") || first.ends_with(b"H") {
        let coded = words
            .iter()
            .map(|word| Some((code(&text[word.range()])?, *word)));
        return coded.collect();
    }
    if hexed {
        return all(16, 0);
    }
    if octal {
        return all(8, 0);
    }
    all(2, BITS)
        .or_else(|| all(2, ASCII_BITS))
        .or_else(|| all(8, 3).filter(|list| telling(list)))
        .or_else(|| all(10, 0))
        .or_else(|| all(16, 0))
}

/// Where the word that ends at `end` begins.
fn word_start(text: &[u8], end: usize, floor: usize) -> usize {
    let word = text[floor..end].iter().rev().take(8);
    end - word.take_while(|b| b.is_ascii_alphanumeric()).count()
}

/// Puts the codes of printable characters from `at` on in place of what is in `list`, and tells where they end.
pub(super) fn read_codes(text: &[u8], mut at: usize, list: &mut Vec<Code>) -> usize {
    list.clear();
    let mut end = at;
    loop {
        let len = text[at..]
            .iter()
            .take(8)
            .take_while(|b| b.is_ascii_alphanumeric())
            .count();
        let Some(code) = code(&text[at..at + len]) else {
            break;
        };
        list.push((code, Span::new(at, at + len)));
        end = at + len;
        end += usize::from(text[end..].starts_with(TYPE)) * TYPE.len();
        let blank = |at: usize| {
            let blanks = text.get(at..).unwrap_or_default().iter().take(40);
            blanks.take_while(|b| b.is_ascii_whitespace()).count()
        };
        let comma = end + blank(end);
        if text.get(comma) != Some(&b',') {
            break;
        }
        at = comma + 1 + blank(comma + 1);
        if at >= text.len() {
            break;
        }
    }
    end
}

pub(super) fn printable(b: u8) -> bool {
    matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7E)
}

/// A number, and where it is written.
pub(super) type Code = (u32, Span);

/// What programs write behind a number to say of what type it is: apart from it, or right behind it.
const TYPE: &[u8] = b"_u8";
const TYPES: [&str; 5] = ["u8", "i8", "u", "U", "L"];

/// The number of a character that can be printed, or a byte of one: `103`, `0x67`, `0x67u8`, `67h`.
fn code(word: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(word).ok()?;
    let text = TYPES
        .iter()
        .find_map(|t| text.strip_suffix(t))
        .unwrap_or(text);
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let hex = hex.or_else(|| text.strip_suffix(['h', 'H']));
    let code = match hex {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    let shown = match u8::try_from(code) {
        Ok(byte) if byte.is_ascii() => printable(byte),
        Ok(_) => true,
        Err(_) => char::from_u32(code).is_some_and(|c| !c.is_control()),
    };
    shown.then_some(code)
}

/// The codes of a text that is encoded once more: base64, hexadecimal, percent signs, entities. Numbers that are measured
/// do not keep to the characters of those in such number.
fn coded(row: &[Code]) -> bool {
    const CODED_MIN: usize = 20;
    let sign = |c: u8| c.is_ascii_alphanumeric() || b"+/=-_%&#;\\".contains(&c);
    let plain = |c: u8| c.is_ascii_alphanumeric();
    let count = |is: &dyn Fn(u8) -> bool| {
        let bytes = row.iter().filter_map(|(c, _)| u8::try_from(*c).ok());
        bytes.filter(|c| is(*c)).count()
    };
    row.len() >= CODED_MIN && count(&sign) == row.len() && count(&plain) * 5 >= row.len() * 2
}

/// Reads the array of codes that begins at `at`, if it is one.
/// Of one that is told to be a text fewer will do.
pub(super) fn code_array(text: &[u8], at: usize, told: bool) -> Option<Vec<Code>> {
    let mut list = Vec::new();
    read_codes(text, at, &mut list);
    (told && list.len() >= CODES_MIN
        || list.len() >= BARE_CODES_MIN && (telling(&list) || coded(&list)))
    .then_some(list)
}

/// Appends what the codes stand for, each where it is written.
pub(super) fn push_codes(child: &mut Node, list: &[Code]) {
    let bytes: Option<Vec<u8>> = list.iter().map(|(c, _)| u8::try_from(*c).ok()).collect();
    let utf8 = bytes.filter(|b| std::str::from_utf8(b).is_ok());
    for (i, (code, span)) in list.iter().enumerate() {
        match &utf8 {
            Some(bytes) => child.push(&bytes[i..=i], *span, How::Atom),
            None => {
                let c = char::from_u32(*code).unwrap_or(char::REPLACEMENT_CHARACTER);
                child.push(c.encode_utf8(&mut [0; 4]).as_bytes(), *span, How::Atom);
            }
        }
    }
}

/// The numbers of a JSON array, each a cell of its own.
fn code_cells(node: &Node, spawn: &mut Spawner<'_>) {
    let number = |c: &Cell| c.kind == LeafKind::Number && c.leaf != NO_LEAF;
    let same = |a: &Cell, b: &Cell| number(a) && number(b) && node.layout.are_together(a, b);
    for cells in rows_of(&node.cells, BARE_CODES_MIN, same) {
        let mut row: Vec<Code> = Vec::new();
        for cell in cells {
            let code = code(&node.text[cell.span.range()]);
            if code.is_none() {
                join(&row, spawn);
                row.clear();
            }
            row.extend(code.map(|c| (c, cell.span)));
        }
        join(&row, spawn);
    }
}

/// What several cells give together.
fn join(row: &[Code], spawn: &mut Spawner<'_>) {
    if row.len() < BARE_CODES_MIN || !telling(row) && !coded(row) {
        return;
    }
    let Some(mut child) = spawn.begin(Layer::Joined) else {
        return;
    };
    push_codes(&mut child, row);
    child.close_cell(0, Span::default(), LeafKind::String, 0);
    spawn.end(child);
}

/// The codes of digits, with blanks, dashes and dots: no other numbers lie so close together in such number.
fn of_digits(row: &[Code]) -> bool {
    let digits = row.iter().filter(|(c, _)| (48..=57).contains(c));
    let kinds = digits
        .clone()
        .fold(0u32, |seen, (c, _)| seen | 1 << (c - 48));
    digits.count() >= CODES_MIN
        && kinds.count_ones() >= 4
        && row.iter().all(|(c, _)| matches!(c, 32 | 45..=57))
}

/// Counts and prices are numbers, too: a text is nearly all letters, digits and blanks, and has small letters. One of more
/// signs has more small letters, a number of somebody neither signs nor small letters, and what is UTF-8 is told by that.
pub(super) fn telling(row: &[Code]) -> bool {
    const SURE_MIN: usize = 12;
    // A column of one number is none.
    const KINDS_MIN: usize = 6;
    let text = as_text(row);
    let all = text.chars().count();
    let count = |is: fn(char) -> bool| text.chars().filter(|c| is(*c)).count();
    let word = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let told = |c: char| c.is_alphanumeric() || " -_:.,/()=\"".contains(c);
    let usual =
        |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '=' | ':' | '"');
    let small = count(char::is_lowercase);
    let plain = count(usual) * 10 >= all * 9 && small * 4 >= all;
    let long = || {
        let words = count(word);
        let mut kinds: Vec<char> = text.chars().take(4 * SURE_MIN).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.len() >= KINDS_MIN
            && (count(told) == all && count(|c| c.is_ascii_digit()) > 0 && words * 10 >= all * 7
                || words * 4 >= all * 3 && (small * 10 >= all * 3 || all < row.len() - 2))
    };
    plain || row.len() >= SURE_MIN && long()
}

/// What codes stand for: bytes of UTF-8 where they are that, else characters.
fn as_text(row: &[Code]) -> String {
    let bytes: Option<Vec<u8>> = row.iter().map(|(c, _)| u8::try_from(*c).ok()).collect();
    let utf8 = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    utf8.unwrap_or_else(|| {
        let chars = row.iter().filter_map(|(c, _)| char::from_u32(*c));
        chars.collect()
    })
}

fn emit(
    node: &Node,
    cell: &Cell,
    (from, to): (usize, usize),
    list: &[Code],
    spawn: &mut Spawner<'_>,
) {
    let (label, sign) = super::label_before(&node.text, cell, from);
    // Where no name stands before the call, one may stand behind it: `"".join(map(chr, [103, 104]))  # mail password`.
    let (label, end) = match sign {
        b" " => (
            call_around(&node.text, label, cell.span.start as usize),
            closed(&node.text, to, cell.span.end as usize),
        ),
        _ => (label, to),
    };
    child_around(node, cell, Layer::Codes, (label, end), spawn, |child| {
        // Blanks keep it apart from the brackets and commas around, which are no part of the text.
        child.push(sign, Span::new(from, from + 1), How::Atom);
        push_codes(child, list);
        child.push(b" ", Span::new(to - 1, to), How::Atom);
    });
}

/// Where the calls begin that the list at `at` stands in.
fn call_around(text: &[u8], at: usize, floor: usize) -> usize {
    const BYTES_MAX: usize = 48;
    let mut from = at;
    while from > floor && at - from < BYTES_MAX {
        let b = text[from - 1];
        let apart = b == b' ' && from >= floor + 2 && text[from - 2] == b',';
        let part = b.is_ascii_alphanumeric() || b"_.'\"([{,".contains(&b);
        if !apart && !part {
            break;
        }
        from -= 1;
    }
    // Only what opens a bracket is a call.
    match text[from..at].iter().any(|b| b"([{".contains(b)) {
        true => from,
        false => at,
    }
}

/// Where the brackets end that close behind a list.
fn closed(text: &[u8], to: usize, ceil: usize) -> usize {
    let behind = text[to..ceil].iter().take(8);
    to + behind.take_while(|b| b")]}".contains(b)).count()
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::children;

    /// The codes of `password=hunter2!` with `before` and `after` each.
    fn row(before: &str, format: &str, after: &str) -> String {
        let write = |b: u8| match format {
            "{:04X}" => format!("{b:04X}"),
            "{:x}" => format!("{b:x}"),
            "{:03o}" => format!("{b:03o}"),
            "{:08b}" => format!("{b:08b}"),
            _ => b.to_string(),
        };
        let codes = "password=hunter2!"
            .bytes()
            .map(|b| format!("{before}{}{after}", write(b)));
        format!("x = {}end", codes.collect::<String>())
    }

    #[test]
    fn lists_and_dumps_are_read() {
        let codes: Vec<String> = "password=hunter2!".bytes().map(|b| b.to_string()).collect();
        let hex: Vec<String> = "password=hunter2!"
            .bytes()
            .map(|b| format!("0x{b:02x}"))
            .collect();
        let cases = [
            (format!("x = [{}] y", codes.join(", ")), Layer::Codes, "password=hunter2!"),
            (format!("fromCharCode({})", codes.join(",")), Layer::Codes, "password=hunter2!"),
            (format!("{{ {} }};", hex.join(",\n  ")), Layer::Codes, "password=hunter2!"),
            (
                "dump:\n00000000: 7061 7373 776f 7264 3d68 756e 7465 7232  password=hunter2\n00000010: 2121 2121  !!!!\nend"
                    .to_owned(),
                Layer::Hex,
                "password=hunter2!!!!",
            ),
            (
                "key='00000000  70 61 73 73 77 6f 72 64  3d 68 75 6e 74 65 72 32\n00000010  c3 a9' ok".to_owned(),
                Layer::Hex,
                "password=hunter2é",
            ),
            (
                "String.fromCharCode(1080,1075,1085,1086,1088,1080,1088,1091,1081)".to_owned(),
                Layer::Codes,
                "игнорируй",
            ),
            ("BSN: f(52,55,49,57,56,48,54,57,57)".to_owned(), Layer::Codes, "471980699"),
            (row("chr(", "{}", ")+"), Layer::Codes, "password=hunter2!"),
            (row("chr(", "{}", ")."), Layer::Codes, "password=hunter2!"),
            (row("Chr(", "{}", ") & "), Layer::Codes, "password=hunter2!"),
            (row("", "{}", " "), Layer::Codes, "password=hunter2!"),
            (row("U+", "{:04X}", " "), Layer::Codes, "password=hunter2!"),
            (row("\\", "{:x}", " "), Layer::Codes, "password=hunter2!"),
            (row("", "{:03o}", " "), Layer::Codes, "password=hunter2!"),
            (row("", "{:08b}", " "), Layer::Codes, "password=hunter2!"),
            (row("", "{}", "-"), Layer::Codes, "password=hunter2!"),
            (row("(byte)0x", "{:x}", ", "), Layer::Codes, "password=hunter2!"),
            (row("$", "{:x}", ", "), Layer::Codes, "password=hunter2!"),
            (row("", "{:x}", "h "), Layer::Codes, "password=hunter2!"),
            (row("0x", "{:x}", "u8, "), Layer::Codes, "password=hunter2!"),
            (row("", "{}", "_u8, "), Layer::Codes, "password=hunter2!"),
            (
                "byte[] PIN = new byte[] { 52, 55, 49, 57, 56, 48, 54, 57, 57 };".to_owned(),
                Layer::Codes,
                "PIN = 471980699 ",
            ),
            (
                "KEY = \"\".join(map(chr, [52, 55, 49, 57, 56, 48, 54, 57, 57]))".to_owned(),
                Layer::Codes,
                "KEY = 471980699 ",
            ),
            (
                "BSN: [52, 55, 49, 57, 56, 48, 54, 57, 57].pack('c*')".to_owned(),
                Layer::Codes,
                "BSN: 471980699 ",
            ),
            ("BSN (octal): 64 67 61 71 70 60 66 71 71".to_owned(), Layer::Codes, "471980699"),
            ("BSN as ASCII codes: 52 55 49 57 56 48 54 57 57".to_owned(), Layer::Codes, "471980699"),
            (
                "00000000  70 61 73 73 77 6f 72 64  3d 68 75 6e 74 65 72 32  |password=hunter2|\n".to_owned(),
                Layer::Hex,
                "password=hunter2",
            ),
        ];
        for (text, layer, want) in cases {
            let found = children(&text);
            let hit = found
                .iter()
                .find(|(l, t, _)| *l == layer && t.contains(want));
            let Some((_, decoded, source)) = hit else {
                panic!(
                    "{text:?}: {:?}",
                    found.iter().map(|c| (c.0, &c.1)).collect::<Vec<_>>()
                );
            };
            let at = decoded.find(want).unwrap();
            let range = source(at, at + want.len());
            assert!(text[range].len() >= want.len());
        }
    }

    #[test]
    fn numbers_that_are_no_text_are_left_alone() {
        let cases = [
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14",
            "scores 88, 92, 79, 90, 85, 91, 77, 95, 60, 58, 44, 39, 61, 62",
            "33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48",
            "87, 92, 103, 77, 110, 68, 99, 121, 64, 91, 96, 94, 35, 60",
            "f(1, 2, 3, 4, 5, 6, 7, 8)",
            "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p",
            "88 92 79 90 85 91 77 95 60 58 44 39 61 62",
            "| 87 | 92 | 103 | 77 | 110 | 68 | 99 | 121 | 64 | 91 | 96 | 94 | 35 | 60 |",
            "00000001 00000010 00000011 00000100 00000101 00000110 00000111 00000111 00000111",
            "2024: 1234 5678\n2025: 2345 6789\n",
            "00000000: 0001 0203 0405 0607\n00000008: 08ff\n",
        ];
        for text in cases {
            let found: Vec<_> = children(text)
                .into_iter()
                .filter(|c| matches!(c.0, Layer::Codes | Layer::Hex))
                .map(|c| (c.0, c.1))
                .collect();
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }
}
