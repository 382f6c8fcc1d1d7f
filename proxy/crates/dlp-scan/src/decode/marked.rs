//! Text behind a mark that little other text has: blocks in base85, uuencoded files, colours and overstrikes of a
//! terminal, `od -c`, `[char]103`, numbered lines.

use std::io::Read;
use std::sync::LazyLock;

use aho_corasick::packed::{MatchKind, Searcher};
use memchr::memmem::Finder;

use super::archive::{DEFLATED_HEAD, Packed, unpack};
use super::base::texty;
use super::{Spawner, child_around};
use crate::text::{Cell, How, NO_LEAF, Node, Span};
use crate::{Layer, OverBudget};

/// What each begins with. All are of three bytes and more, so that one pass of vectors finds them.
static MARKS: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    aho_corasick::packed::Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .builder()
        .extend(MARK_TEXTS)
        .build()
});
const MARK_TEXTS: [&[u8]; 19] = [
    b"\\e[",
    b"\\e]",
    b"\\033[",
    b"\\033]",
    b"^[[",
    b"b85decode",
    b"Z85: ",
    b"begin 6",
    b"begin 7",
    b"\nliteral ",
    b"0000000 ",
    b"[char]",
    b"\n2. ",
    b"\n2) ",
    b"\n2: ",
    b" 2. ",
    b" 2: ",
    b" 2\t",
    b"\n2,",
];
static ASCII85: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<~"));
/// Shortest text that is worth a child.
const BYTES_MIN: usize = 12;
/// How far before its number a numbered line may begin.
const LINE_BACK: usize = 512;
/// Longest label before a number.
const LABEL_BYTES_MAX: usize = 16;
/// Longest line of `od -c`, and longest first line of a uuencoded file.
const LINE_BYTES_MAX: usize = 512;

pub(super) fn decode(node: &Node, spawn: &mut Spawner<'_>) {
    let text = &node.text;
    let signs = memchr::memchr2_iter(0x1B, 0x08, text);
    each(node, signs.map(|at| (at, at, Mark::Terminal)), spawn);
    let blocks = ASCII85.find_iter(text);
    each(node, blocks.map(|at| (at, at + 2, Mark::Ascii85)), spawn);
    if let Some(marks) = &*MARKS {
        let found = marks.find_iter(text).map(|m| {
            let mark = match m.pattern().as_usize() {
                0..5 => Mark::Terminal,
                5 => Mark::Base85,
                6 => Mark::Z85,
                7 | 8 => Mark::Uuencoded,
                9 => Mark::GitLiteral,
                10 => Mark::OctalDump,
                11 => Mark::Chars,
                _ => Mark::Numbered,
            };
            (m.start(), m.end(), mark)
        });
        each(node, found, spawn);
    }
}

/// Which reader a mark belongs to.
#[derive(Clone, Copy)]
enum Mark {
    Terminal,
    Ascii85,
    Base85,
    Z85,
    Uuencoded,
    GitLiteral,
    OctalDump,
    Chars,
    Numbered,
}

/// Reads behind each mark (where it begins and ends) what no mark before it had part in. There may be as many marks as
/// bytes, and a block has no bound of its own: each reader stops before or shortly behind the next mark of its kind, or what
/// it read is not read again.
fn each(node: &Node, marks: impl Iterator<Item = (usize, usize, Mark)>, spawn: &mut Spawner<'_>) {
    let (mut index, mut done) = (0, 0);
    for (at, end, mark) in marks {
        if at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.leaf != NO_LEAF) else {
            continue;
        };
        let read = match mark {
            Mark::Terminal => terminal(node, cell, at),
            Mark::Ascii85 => ascii85(node, cell, at),
            Mark::Base85 => quoted85(node, cell, end, &rfc1924_digit),
            Mark::Z85 => quoted85(node, cell, end - 1, &z85_digit),
            Mark::Uuencoded => uuencoded(node, cell, at),
            Mark::GitLiteral => {
                done = git_literal(node, cell, at + 1, spawn).unwrap_or(done);
                continue;
            }
            Mark::OctalDump => octal_dump(node, cell, at),
            Mark::Chars => chars(node, cell, at),
            Mark::Numbered => numbered(node, cell, at + 1),
        };
        let Some(read) = read else {
            continue;
        };
        done = read.span.end as usize;
        if read.bytes.len() > spawn.room() {
            spawn.over.get_or_insert(OverBudget::DecodedBytes);
            return;
        }
        if read.bytes.len() < BYTES_MIN {
            continue;
        }
        let place = (read.span.start as usize, done);
        child_around(node, cell, read.layer, place, spawn, |child| {
            if read.parts.is_empty() {
                child.push(&read.bytes, read.span, How::Atom);
            }
            for part in &read.parts {
                child.push(&node.text[part.range()], *part, How::Copy);
            }
        });
    }
}

/// What was read of a piece of the text.
struct Decoded {
    layer: Layer,
    span: Span,
    bytes: Vec<u8>,
    /// Where its bytes stand in the text, if they do.
    parts: Vec<Span>,
}

impl Decoded {
    fn text(layer: Layer, (from, to): (usize, usize), bytes: Vec<u8>) -> Option<Self> {
        let shown = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7E | 0x80..);
        let readable = bytes.iter().all(shown) && std::str::from_utf8(&bytes).is_ok();
        readable.then(|| Self {
            layer,
            span: Span::new(from, to),
            bytes,
            parts: Vec::new(),
        })
    }

    /// Pieces that stand in the text, without what is between them.
    fn pieces(node: &Node, layer: Layer, (from, to): (usize, usize), parts: Vec<Span>) -> Self {
        let mut bytes = Vec::new();
        for part in &parts {
            bytes.extend_from_slice(&node.text[part.range()]);
        }
        Self {
            layer,
            span: Span::new(from, to),
            bytes,
            parts,
        }
    }
}

/// Sequences that set colours (ECMA-48, also written out) and characters struck out by a backspace: the line that holds
/// the first, and those behind it that hold some, too.
fn terminal(node: &Node, cell: &Cell, at: usize) -> Option<Decoded> {
    // What takes nothing out would be read for ever again.
    if node.text[at] != 0x08 && sequence(&node.text[at..cell.span.end as usize]) == 0 {
        return None;
    }
    let floor = (cell.span.start as usize).max(at.saturating_sub(512));
    let from = memchr::memrchr(b'\n', &node.text[floor..at]).map_or(floor, |n| floor + n + 1);
    let end = cell.span.end as usize;
    let (mut parts, mut start, mut i) = (Vec::<Span>::new(), from, from);
    while i < end {
        let line_end = memchr::memchr(b'\n', &node.text[i..end]).map_or(end, |n| i + n);
        if i > at && !signed(&node.text[i..line_end]) {
            break;
        }
        while i < line_end {
            if node.text[i] == 0x08 {
                // What stands before it is overwritten by what stands behind.
                let before = i.saturating_sub(usize::from(i > start));
                parts.push(Span::new(start, before));
                start = i + 1;
                i += 1;
                continue;
            }
            // What a sequence begins with.
            if !matches!(node.text[i], 0x1B | b'\\' | b'^') {
                i += 1;
                continue;
            }
            let skipped = sequence(&node.text[i..line_end]);
            if skipped > 0 {
                parts.push(Span::new(start, i));
                start = i + skipped;
            }
            i += skipped.max(1);
        }
        i = line_end + 1;
    }
    let end = (i - 1).max(start).min(end);
    parts.push(Span::new(start, end));
    parts.retain(|p| !p.is_empty());
    Some(Decoded::pieces(node, Layer::Terminal, (from, end), parts))
}

/// Does a line hold what a terminal reads?
fn signed(line: &[u8]) -> bool {
    memchr::memchr2(0x1B, 0x08, line).is_some()
        || memchr::memchr2_iter(b'\\', b'^', line).any(|at| sequence(&line[at..]) > 0)
}

/// How long the control sequence is that the text begins with (ECMA-48, 5.3 to 5.6; written out, those that scripts write).
fn sequence(text: &[u8]) -> usize {
    let written = [&b"\\e"[..], b"\\033", b"^["];
    let (lead, raw) = match text {
        [0x1B, ..] => (1, true),
        _ => match written.iter().find(|lead| text.starts_with(lead)) {
            Some(lead) => (lead.len(), false),
            None => return 0,
        },
    };
    let rest = &text[lead..];
    let of_class = |class: std::ops::RangeInclusive<u8>, from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        rest.iter()
            .take(32)
            .take_while(|b| class.contains(b))
            .count()
    };
    let body = match rest {
        [b'[', ..] => {
            let parameter =
                |b: &u8| matches!(b, b'0'..=b'9' | b';') || raw && matches!(b, b'0'..=b'?');
            let parameters = rest[1..]
                .iter()
                .take(32)
                .take_while(|b| parameter(b))
                .count();
            let last = 1 + parameters + of_class(b' '..=b'/', 1 + parameters);
            match rest.get(last) {
                Some(b'@'..=b'~') if raw => last + 1,
                Some(b'm') => last + 1,
                Some(b) if parameters > 0 && b.is_ascii_alphabetic() => last + 1,
                _ => 0,
            }
        }
        // A string, such as a link or a window's title: up to its end, and it holds no other sequence.
        [b']', ..] | [b'P' | b'X' | b'^' | b'_', ..] if raw || rest[0] == b']' => {
            string(&rest[1..]).map_or(0, |n| n + 1)
        }
        _ => 0,
    };
    match (body, raw) {
        (0, false) => 0,
        (0, true) => {
            let between = of_class(b' '..=b'/', 0);
            let last = rest.get(between).is_some_and(|b| (b'0'..=b'~').contains(b));
            1 + between + usize::from(last)
        }
        _ => lead + body,
    }
}

/// Where a control string ends, its end included: BEL or ST, also written out.
fn string(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(LINE_BYTES_MAX)];
    let at = text.iter().position(|b| *b < b' ' || *b == b'\\')?;
    let ends = [
        &b"\x07"[..],
        b"\x1b\\",
        b"\\a",
        b"\\007",
        b"\\e\\\\",
        b"\\033\\\\",
    ];
    let end = ends.iter().find(|end| text[at..].starts_with(end))?;
    Some(at + end.len())
}

/// `<~ ... ~>` (Adobe, PostScript Language Reference, ASCII85Encode).
fn ascii85(node: &Node, cell: &Cell, at: usize) -> Option<Decoded> {
    let end = cell.span.end as usize;
    let body = &node.text[at + 2..end];
    // No digit: whatever comes after it does not belong to this block.
    let len = memchr::memchr(b'~', body).filter(|n| body[*n..].starts_with(b"~>"))?;
    let digits = body[..len].iter().filter(|b| !b.is_ascii_whitespace());
    let bytes = groups85(digits.copied(), &ascii85_digit)?;
    Decoded::text(Layer::Base85, (at, at + 2 + len + 2), bytes)
}

/// The literal or the word after the name of the encoding.
fn quoted85(
    node: &Node,
    cell: &Cell,
    from: usize,
    digit: &dyn Fn(u8) -> Option<u8>,
) -> Option<Decoded> {
    let text = &node.text[from..cell.span.end as usize];
    let lead = text
        .iter()
        .take(4)
        .position(|b| matches!(b, b'"' | b'\'' | b' '))?;
    let quote = text[lead];
    let start = lead + 1;
    let len = match quote {
        b' ' => text[start..].iter().position(u8::is_ascii_whitespace),
        _ => text[start..].iter().position(|b| *b == quote),
    };
    let end = start + len.unwrap_or(text.len() - start);
    let bytes = groups85(text[start..end].iter().copied(), digit)?;
    let bytes = bytes.trim_ascii_end().to_vec();
    Decoded::text(Layer::Base85, (from + start, from + end), bytes)
}

/// Adobe's alphabet.
pub(super) fn ascii85_digit(b: u8) -> Option<u8> {
    (b'!'..=b'u').contains(&b).then(|| b - b'!')
}

/// RFC 1924, as Git and Python write it.
pub(super) fn rfc1924_digit(b: u8) -> Option<u8> {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    DIGITS
        .iter()
        .position(|d| *d == b)
        .and_then(|n| u8::try_from(n).ok())
}

/// ZeroMQ RFC 32.
pub(super) fn z85_digit(b: u8) -> Option<u8> {
    const DIGITS: &[u8; 85] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    DIGITS
        .iter()
        .position(|d| *d == b)
        .and_then(|n| u8::try_from(n).ok())
}

/// Five digits for four bytes, a shorter last group for fewer; `z` for four zeros has no place in a text.
pub(super) fn groups85(
    digits: impl Iterator<Item = u8>,
    value: &dyn Fn(u8) -> Option<u8>,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut group, mut n) = (0u32, 0);
    for b in digits {
        group = group.checked_mul(85)?.checked_add(u32::from(value(b)?))?;
        n += 1;
        if n == 5 {
            out.extend(group.to_be_bytes());
            (group, n) = (0, 0);
        }
    }
    if n > 1 {
        for _ in n..5 {
            group = group.checked_mul(85)?.checked_add(84)?;
        }
        out.extend(&group.to_be_bytes()[..n - 1]);
    }
    Some(out)
}

/// Where the first line ends, if it is no longer than such lines are.
fn first_line(text: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', &text[..text.len().min(LINE_BYTES_MAX)])
}

/// `begin 644 name`, lines that begin with their length, `end` (POSIX, uuencode).
fn uuencoded(node: &Node, cell: &Cell, at: usize) -> Option<Decoded> {
    let end = cell.span.end as usize;
    let text = &node.text[at..end];
    let mode = text.get(6..10)?;
    if !mode[..3].iter().all(|b| (b'0'..=b'7').contains(b)) {
        return None;
    }
    let (mut bytes, mut read) = (Vec::new(), first_line(text)? + 1);
    for line in text[read..].split_inclusive(|b| *b == b'\n') {
        let digits = line.trim_ascii_end();
        let value = |b: &u8| (0x20..=0x60).contains(b).then(|| (b - 0x20) & 0x3F);
        let Some(len) = digits
            .first()
            .and_then(value)
            .filter(|n| *n > 0 && digits != b"end")
        else {
            break;
        };
        let mut row = Vec::new();
        for four in digits[1..].chunks(4) {
            let mut group = 0u32;
            for n in 0..4 {
                group = group << 6 | u32::from(four.get(n).map_or(Some(0), value)?);
            }
            row.extend(&group.to_be_bytes()[1..]);
        }
        bytes.extend(row.get(..usize::from(len))?);
        read += line.len();
    }
    Decoded::text(Layer::Uuencode, (at, at + read), bytes)
}

/// `literal 60` and lines in base85 that begin with their length: a deflated blob of a binary patch (Git). Gives its end.
fn git_literal(node: &Node, cell: &Cell, at: usize, spawn: &mut Spawner<'_>) -> Option<usize> {
    let end = cell.span.end as usize;
    let text = &node.text[at..end];
    let head = memchr::memchr(b'\n', &text[..text.len().min(24)])?;
    if !text[8..head].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (mut packed, mut read) = (Vec::new(), head + 1);
    for line in text[read..].split_inclusive(|b| *b == b'\n') {
        let digits = line.trim_ascii_end();
        let len = match digits.first() {
            Some(b @ b'A'..=b'Z') => b - b'A' + 1,
            Some(b @ b'a'..=b'z') => b - b'a' + 27,
            _ => break,
        };
        let row = groups85(digits[1..].iter().copied(), &rfc1924_digit)?;
        packed.extend(row.get(..usize::from(len))?);
        read += line.len();
    }
    let (mut beginning, place) = (Vec::new(), (at, at + read));
    let reader = flate2::read::ZlibDecoder::new(&packed[..]);
    let _ = reader.take(DEFLATED_HEAD).read_to_end(&mut beginning);
    // Pictures and programs are no text, and nobody would pay for unpacking them.
    if texty(&beginning) {
        unpack(
            node,
            cell,
            place,
            Layer::Base85,
            &packed,
            Packed::Zlib,
            spawn,
        );
    }
    Some(place.1)
}

/// `0000000   g   h   p   _  \n` (POSIX, od -c).
fn octal_dump(node: &Node, cell: &Cell, at: usize) -> Option<Decoded> {
    let end = cell.span.end as usize;
    let (mut bytes, mut read) = (Vec::new(), at);
    while read < end {
        let rest = &node.text[read..end];
        let line = match first_line(rest) {
            Some(n) => &rest[..=n],
            None if rest.len() <= LINE_BYTES_MAX => rest,
            None => break,
        };
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let Some((offset, fields)) = body.split_at_checked(7) else {
            break;
        };
        let number = offset.iter().try_fold(0usize, |n, b| {
            (b'0'..=b'7')
                .contains(b)
                .then(|| n * 8 + usize::from(b - b'0'))
        });
        let hex = std::str::from_utf8(offset).ok();
        let hex = hex.and_then(|o| usize::from_str_radix(o, 16).ok());
        // What is shown of the last line is filled up with blanks.
        let shown = [number, hex]
            .into_iter()
            .flatten()
            .find(|n| *n <= bytes.len() && bytes[*n..].iter().all(|b| *b == b' '));
        let Some(shown) = shown else {
            break;
        };
        bytes.truncate(shown);
        read += line.len();
        for field in fields.chunks(4) {
            let sign = field.trim_ascii();
            bytes.push(match sign {
                b"\\n" => b'\n',
                b"\\t" => b'\t',
                b"\\r" => b'\r',
                b"" => b' ',
                [one] => *one,
                _ => return None,
            });
        }
    }
    Decoded::text(Layer::Codes, (at, read.min(end)), bytes)
}

/// `[char]103,[char]0x68` (PowerShell), up to one that stands for no character of a text.
fn chars(node: &Node, cell: &Cell, at: usize) -> Option<Decoded> {
    let end = cell.span.end as usize;
    let (mut text, mut i) = (String::new(), at);
    while let Some(rest) = node.text[i..end].strip_prefix(b"[char]") {
        let hexed = rest.starts_with(b"0x");
        let digits = &rest[2 * usize::from(hexed)..];
        let len = digits
            .iter()
            .take(5)
            .take_while(|b| b.is_ascii_hexdigit())
            .count();
        let radix = if hexed { 16 } else { 10 };
        let number = std::str::from_utf8(&digits[..len]).unwrap_or_default();
        i += 6 + 2 * usize::from(hexed) + len;
        let sign = u32::from_str_radix(number, radix).ok();
        let Some(sign) = sign.and_then(char::from_u32).filter(readable) else {
            break;
        };
        text.push(sign);
        let gap = node.text[i..end].iter().take(5).position(|b| *b == b'[');
        let Some(gap) = gap else { break };
        if !node.text[i..i + gap]
            .iter()
            .all(|b| b" ,+()\t\r\n".contains(b))
        {
            break;
        }
        i += gap;
    }
    Decoded::text(Layer::Codes, (at, i), text.into_bytes())
}

fn readable(c: &char) -> bool {
    !c.is_control() || matches!(c, '\t' | '\n' | '\r')
}

/// `1. ghp_Zq7k`, `2. 0xPv` and so on, the same words before all the numbers: one word to a line, or lines of one
/// length, as when a text was cut. The second number is at `at`.
fn numbered(node: &Node, cell: &Cell, at: usize) -> Option<Decoded> {
    let (floor, end) = (cell.span.start as usize, cell.span.end as usize);
    let text = &node.text[..end];
    let line_of = |at: usize, floor: usize| {
        memchr::memrchr(b'\n', &text[floor..at]).map_or(floor, |n| floor + n + 1)
    };
    let line = line_of(at, floor.max(at.saturating_sub(LINE_BACK)));
    let label = text[line..at].trim_ascii_start();
    let sep = text.get(at + 1..at + 3)?;
    let single = matches!(sep[0], b'\t' | b',');
    let sep = if single { &sep[..1] } else { sep };
    if label.len() > LABEL_BYTES_MAX || line == floor {
        return None;
    }
    let head = [label, b"1", sep].concat();
    let above = line_of(line - 1, floor);
    let mut first = above + memchr::memmem::rfind(&text[above..line], &head)?;
    // Programs count from zero.
    let above = line_of(
        above.saturating_sub(1).max(floor),
        floor.max(above.saturating_sub(LINE_BACK)),
    );
    let zeroth = [label, b"0", sep].concat();
    let zeroth = memchr::memmem::rfind(&text[above..first], &zeroth).filter(|_| above < first);
    let count = match zeroth {
        Some(at) => {
            first = above + at;
            0
        }
        None => 1,
    };
    let parts = pieces(text, first, count, label, sep);
    let part = |p: &Span| &text[p.range()];
    let words = parts
        .iter()
        .all(|p| part(p).iter().all(u8::is_ascii_graphic));
    let (last, rest) = parts.split_last()?;
    let cut = rest.iter().all(|p| p.len() == rest[0].len()) && last.len() <= rest.first()?.len();
    let place = (first, last.end as usize);
    // In a table the second column may be anything: only single characters are pieces of something.
    let single = parts.iter().all(|p| p.len() == 1) && parts.len() >= BYTES_MIN;
    let words = if sep == b"," { single } else { words || cut };
    words.then(|| Decoded::pieces(node, Layer::Spaced, place, parts))
}

/// What stands behind the numbers, from the line that begins at `from`.
fn pieces(text: &[u8], from: usize, count: usize, label: &[u8], sep: &[u8]) -> Vec<Span> {
    let (mut parts, mut i) = (Vec::new(), from);
    for n in count.. {
        let blanks = text[i..]
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        let mut head = label.to_vec();
        head.extend(n.to_string().bytes());
        head.extend(sep);
        let Some(rest) = text[i + blanks..].strip_prefix(&head[..]) else {
            break;
        };
        let start = i + blanks + head.len();
        i = start + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        parts.push(Span::new(start, i));
        if text.get(i) != Some(&b'\n') {
            break;
        }
        i += 1;
    }
    parts.retain(|p| !p.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use crate::decode::tests::{children, children_in, node_of};
    use crate::{Layer, OverBudget};

    #[test]
    fn blocks_behind_their_marks() {
        let cases = [
            (
                "\x1b[31mghp_\x1b[32mabcd\x1b[0mefgh1234",
                Layer::Terminal,
                "ghp_abcdefgh1234",
            ),
            (
                "\\e[31mghp_\\e[32mabcd\\033[0mefgh1234",
                Layer::Terminal,
                "ghp_abcdefgh1234",
            ),
            (
                "\x1b(B\x1b[mghp_\x1b[38:5:1mabcd\x1b]8;;http://a.example/\x1b\\efgh\x1b]8;;\x071234",
                Layer::Terminal,
                "ghp_abcdefgh1234",
            ),
            (
                "^[[31mghp_^[[mabcd\\e]8;;http://a.example/\\aefgh1234",
                Layer::Terminal,
                "ghp_abcdefgh1234",
            ),
            (
                "g_\u{8}gh_\u{8}hp_\u{8}p_abcdefgh1234",
                Layer::Terminal,
                "gghhpp_abcdefgh1234",
            ),
            (
                "g\u{8}gh\u{8}hp\u{8}p_abcdefgh1234",
                Layer::Terminal,
                "ghp_abcdefgh1234",
            ),
            ("k: <~FDkr+DEVWGE*m$_0er~>", Layer::Base85, "token=ghp_ab12"),
            (
                "b85decode(\"bZ={AZarsca9?3!V`K\")",
                Layer::Base85,
                "token=ghp_abcd",
            ),
            (
                "begin 644 note\n.=&]K96X]9VAP7V%B,3(`\n`\nend",
                Layer::Uuencode,
                "token=ghp_ab12",
            ),
            (
                "0000000   t   o   k   e   n   =   g   h   p   _   a   b   1   2\n0000016\n",
                Layer::Codes,
                "token=ghp_ab12",
            ),
            (
                "-join([char]103,[char]104,[char]0x70,[char]95,[char]97,[char]98,[char]99,[char]100,[char]101,[char]102,[char]103,[char]104)",
                Layer::Codes,
                "ghp_abcdefgh",
            ),
            (
                "1. ghp_abcd\n2. efgh1234\n3. ij",
                Layer::Spaced,
                "ghp_abcdefgh1234ij",
            ),
            (
                "     1\tghp_abcd\n     2\tefgh1234",
                Layer::Spaced,
                "ghp_abcdefgh1234",
            ),
            (
                "k: 1. ghp_abcd\n2. efgh1234",
                Layer::Spaced,
                "ghp_abcdefgh1234",
            ),
            (
                "1. token = g\n2. hp_abcdef\n3. gh",
                Layer::Spaced,
                "token = ghp_abcdefgh",
            ),
            (
                "part 1: ghp_abcd\npart 2: efgh1234",
                Layer::Spaced,
                "ghp_abcdefgh1234",
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
    fn lists_and_words_are_none() {
        for text in [
            "1. write them down\n2. keep them",
            "begin 644 files",
            "if a <~ b and c ~> d then stop",
            "literal 12 of them\nand more",
        ] {
            let got = children(text);
            let marked = [Layer::Base85, Layer::Uuencode];
            assert!(!got.iter().any(|(l, ..)| marked.contains(l)), "{text}");
        }
    }

    #[test]
    fn any_number_of_decoys_hides_nothing() {
        let decoys = [
            "\x1b!\n",
            "<~ab",
            "<~a~b",
            "b85decode(\"x\")\n",
            "begin 644 a\n",
            "begin 644 ",
            "\nliteral 60\n",
            "0000000 \n",
            "[char]9999,",
            "1. ab\n",
        ];
        let blocks = [
            ("\n\x1b[31mghp_\x1b[0mabcdefgh1234", "ghp_abcdefgh1234"),
            ("\n<~FDkr+DEVWGE*m$_0er~>", "token=ghp_ab12"),
            (
                "\nbegin 644 note\n.=&]K96X]9VAP7V%B,3(`\n`\nend",
                "token=ghp_ab12",
            ),
            (
                "\n0000000   t   o   k   e   n   =   g   h   p   _   a   b   1   2\n0000016\n",
                "token=ghp_ab12",
            ),
            (
                "\n[char]103,[char]104,[char]112,[char]95,[char]97,[char]98,\r\n[char]99,[char]100,[char]101,[char]8364",
                "ghp_abcde\u{20ac}",
            ),
        ];
        for decoy in decoys {
            for (block, want) in blocks {
                let text = decoy.repeat(1000) + block;
                let got = children(&text);
                assert!(
                    got.iter().any(|(_, t, _)| t.contains(want)),
                    "{decoy:?} before {block:?}"
                );
            }
        }
    }

    #[test]
    fn a_block_larger_than_what_is_left_is_said() {
        for (text, room) in [
            ("<~FDkr+DEVWGE*m$_0er~>", 10),
            ("begin 644 note\n.=&]K96X]9VAP7V%B,3(`\n`\nend", 10),
            ("\x1b[31mghp_\x1b[32mabcd\x1b[0mefgh1234", 4),
        ] {
            let (nodes, over) = children_in(node_of(&[("", text)]), room);
            assert_eq!(over, Some(OverBudget::DecodedBytes), "{text:?}");
            assert!(nodes.iter().all(|n| n.text.len() <= room as usize));
        }
    }

    #[test]
    fn what_a_terminal_reads_is_taken_out_once() {
        for text in [
            "\x1b(B\x1b[mplain words",
            "\x1b]8;;http://a.example/\x1b\\link\x1b]8;;\x1b\\",
            "\x1b]8;;no end\n\x1b!\n\x1b",
            "\x1b=\x1b>\x1bM\x1b7",
            "\x1b[\x1b[\x1b[1m1m",
        ] {
            let (mut text, mut layers) = (text.to_owned(), 0);
            while let Some(child) = children(&text).into_iter().find(|c| c.0 == Layer::Terminal) {
                assert!(child.1.len() < text.len(), "{text:?}");
                text = child.1;
                layers += 1;
            }
            assert!(layers <= 2, "{text:?} after {layers}");
        }
        for text in ["^[[:alpha:]]+$ and [^[]", "\\emph{a} \\e[a-z]", "a ^[ b"] {
            assert!(
                !children(text).iter().any(|c| c.0 == Layer::Terminal),
                "{text}"
            );
        }
    }
}
