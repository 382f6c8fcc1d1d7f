//! What goes on in the next line, where each line has something before it that is no part of the text: a comment (`// `, `# `,
//! ` * `, `-- `), a mail that is quoted (`> `), a difference (`+`), a listing with line numbers, the frame of a box. The
//! lines come together with a blank between each two, as a reader joins them; a value that was cut comes together without.

use std::cell::OnceCell;

use super::{Ends, Spawner, begin_cell, name_of};
use crate::detect::is_dump_line;
use crate::text::{Cell, How, Node, Span, table_of};
use crate::{Layer, OverBudget};

/// Longest blanks before such a sign, longest number of a line, and what may stand around it.
const INDENT_MAX: usize = 40;
const NUMBER_BYTES_MAX: usize = 7;
/// Parts of a value that was cut: the shortest together, and how far one reaches into its line.
const CUT_BYTES_MIN: usize = 16;
const CUT_BYTES_MAX: usize = 200;
/// Prose is filled up to somewhere there, and has so many blanks, and words of such length on average.
const FILLED: std::ops::RangeInclusive<usize> = 36..=160;
const WORDS_MIN: usize = 4;
const WORD_BYTES_MAX: usize = 12;
/// More brackets and the like in two lines are a program's.
const SIGNS_MAX: usize = 4;
/// A line that parts others, and the head and the foot of what PEM encloses.
const RULE: &[u8] = b"----";
/// What comes along of a line that ends or begins with a part of a value and has nothing before it.
const BESIDE_BYTES_MAX: usize = 64;

pub(super) fn decode(node: &Node, ends: &Ends, spawn: &mut Spawner<'_>) {
    // Lines of noise are none.
    if node.only_sure {
        return;
    }
    let (mut index, mut done) = (0, 0);
    for end in ends.0.iter().map(|end| *end as usize) {
        if end < done {
            continue;
        }
        let Some(cell) = node.cell_from(end, &mut index) else {
            continue;
        };
        done = cell.span.end as usize;
        let mut open = [Open::default(), Open::default()];
        if !of_cell(node, cell, ends.within(cell.span), spawn, &mut open) {
            return;
        }
        for open in open {
            open.close(cell, spawn);
        }
    }
}

/// The child of a cell, once there is something to put into it.
#[derive(Default)]
struct Open {
    child: Option<Node>,
    name: Span,
    start: usize,
    /// Where what was put into it last ends.
    end: usize,
}

impl Open {
    /// Begins the child, if there is none; `None` once the budget is used up.
    fn child(&mut self, node: &Node, cell: &Cell, spawn: &mut Spawner<'_>) -> Option<&mut Node> {
        if self.child.is_none() {
            let mut child = spawn.begin(Layer::Wrapped)?;
            self.name = begin_cell(&mut child, node, name_of(node, cell));
            self.start = child.text.len();
            self.child = Some(child);
        }
        self.child.as_mut()
    }

    fn close(self, cell: &Cell, spawn: &mut Spawner<'_>) {
        if let Some(mut child) = self.child {
            child.close_cell(self.start, self.name, cell.kind, 0);
            spawn.end(child);
        }
    }
}

/// Puts together what goes on over lines, lines behind a sign in one child, and what stands beside the ends of others in the second;
/// `false` once the budget is used up.
fn of_cell(
    node: &Node,
    cell: &Cell,
    ends: &[u32],
    spawn: &mut Spawner<'_>,
    open: &mut [Open; 2],
) -> bool {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let text = &node.text[..ceil];
    let mut before: Option<Line> = None;
    let block = OnceCell::new();
    let mut at = floor;
    for end in ends.iter().map(|end| *end as usize).chain([ceil]) {
        if at == ceil {
            break;
        }
        let line = Line::read(text, at, end, before.as_ref());
        let whole = &text[at..end];
        at = end + 1;
        let Some(last) = before.replace(line) else {
            continue;
        };
        let Some(how) = Join::of(text, &last, &line, &|| {
            *block.get_or_init(|| is_block(&text[floor..]))
        }) else {
            continue;
        };
        // What was taken over from noise was judged there, and a dump of bytes is read as those.
        if node.is_from_noise(Span::new(last.to, line.from)) || is_dump_line(whole) {
            continue;
        }
        let open = &mut open[usize::from(how.beside)];
        let (room, done) = (spawn.room(), open.end);
        let Some(child) = open.child(node, cell, spawn) else {
            return false;
        };
        child.fragments |= how.beside;
        // Ordinary text leaves room for others, and is no reason to refuse a message.
        let room = if how.beside { room / 8 } else { room };
        if child.text.len() + line.len() + last.len() > room {
            if how.beside {
                continue;
            }
            spawn.over.get_or_insert(OverBudget::DecodedBytes);
            return true;
        }
        let (from, to) = how.reach(text, &last, &line);
        if done < last.to {
            // What goes on where the last piece ends is one with it.
            if done > 0 && from > done {
                child.push(b"\n\n", Span::new(done, from), How::Atom);
            }
            let from = from.max(done);
            child.push(&text[from..last.to], Span::new(from, last.to), How::Copy);
        }
        if how.blank {
            child.push(b" ", Span::new(last.to, line.from), How::Atom);
        }
        child.push(&text[line.from..to], Span::new(line.from, to), How::Copy);
        open.end = to;
    }
    true
}

/// A line without what stands before and behind its text.
#[derive(Clone, Copy)]
struct Line {
    lead: Lead,
    /// A shell or a page says that it goes on.
    continued: bool,
    from: usize,
    to: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    /// Blanks, or nothing.
    None,
    /// Such a sign, so many times.
    Sign(u8, usize),
    Number(u32),
    /// The head of a log's line.
    Dated,
}

impl Line {
    fn read(text: &[u8], start: usize, end: usize, before: Option<&Self>) -> Self {
        let line = text[start..end].trim_ascii_end();
        let told = [&b"\\"[..], b"<br>", b"<br/>", b"<br />"];
        let told = match line.last() {
            Some(b'\\' | b'>') => told.into_iter().find_map(|sign| line.strip_suffix(sign)),
            _ => None,
        };
        // Behind other backslashes it may be one of an escape.
        let escape = |line: &&[u8]| {
            let word = line.iter().rev().take_while(|b| **b > b' ');
            word.take(INDENT_MAX).any(|b| *b == b'\\')
        };
        let told = told.filter(|line| !escape(line));
        let line = told.map_or(line, <[u8]>::trim_ascii_end);
        let end = start + line.len();
        let indent = line.len() - line.trim_ascii_start().len();
        let at = start + indent;
        // What a shell goes on with may begin with a sign.
        let goes_on = before.is_some_and(|line| line.continued && line.lead == Lead::None);
        let (lead, from) = match goes_on || indent > INDENT_MAX {
            true => (Lead::None, at),
            false => lead(&text[..end], at, before.map(|line| line.lead)),
        };
        let blanks = text[from..end].len() - text[from..end].trim_ascii_start().len();
        let mut line = Self {
            lead,
            continued: told.is_some(),
            from: from + blanks,
            to: end,
        };
        if let Lead::Sign(b'|', _) = lead {
            let body = text[line.from..end].strip_suffix(b"|");
            let body = body.filter(|body| !body.contains(&b'|'));
            line.to = line.from + body.map_or(0, |body| body.trim_ascii_end().len());
        }
        line
    }

    fn len(&self) -> usize {
        self.to - self.from
    }

    fn goes_on_in(&self, next: &Self) -> bool {
        self.len() > 0
            && next.len() > 0
            && match (self.lead, next.lead) {
                (Lead::Number(one), Lead::Number(two)) => one.checked_add(1) == Some(two),
                (one, two) => one == two,
            }
    }
}

/// What a line begins with at `at`, behind its blanks, and where its text begins.
fn lead(text: &[u8], at: usize, before: Option<Lead>) -> (Lead, usize) {
    let rest = &text[at..];
    let Some(sign) = rest.first() else {
        return (Lead::None, at);
    };
    let times = rest.iter().take_while(|b| *b == sign).count();
    let behind = rest.get(times);
    let parted = behind.is_none_or(u8::is_ascii_whitespace);
    let known = match sign {
        b'>' => true,
        b'#' | b'%' => times < 3 && parted,
        b';' => times < 4 && parted,
        b'/' if rest.starts_with(b"/*") => return (Lead::Sign(b'*', 1), at + 1 + stars(rest)),
        b'/' => (2..4).contains(&times) || times == 2 && behind == Some(&b'!'),
        b'-' => times == 2 && parted || times == 1 && behind.is_some_and(|b| *b > b' '),
        b'+' => times == 1 && (!parted || before == Some(Lead::Sign(b'+', 1))),
        // Only in a comment that began with `/*`: elsewhere it is a list's.
        b'*' => times == 1 && parted && before == Some(Lead::Sign(b'*', 1)),
        b'|' => times == 1,
        b'0'..=b'9' | b'[' | b'A'..=b'S' => {
            return numbered(text, at)
                .or_else(|| dated(text, at))
                .unwrap_or((Lead::None, at));
        }
        _ => false,
    };
    match (known, sign) {
        // A mail may be quoted by several, with blanks between their signs.
        (true, b'>') => {
            let signs = rest.iter().take_while(|b| matches!(b, b'>' | b' ')).count();
            let times = rest[..signs].iter().filter(|b| **b == b'>').count();
            (Lead::Sign(b'>', times), at + signs)
        }
        (true, _) => {
            let doc = usize::from(*sign == b'/' && behind == Some(&b'!'));
            (Lead::Sign(*sign, times), at + times + doc)
        }
        (false, _) => (Lead::None, at),
    }
}

fn stars(rest: &[u8]) -> usize {
    rest[1..].iter().take_while(|b| **b == b'*').count()
}

/// The number of a line, and what parts it from the text: `12: `, `12 | `, `12→`, a tab.
fn numbered(text: &[u8], at: usize) -> Option<(Lead, usize)> {
    let rest = &text[at..];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=NUMBER_BYTES_MAX).contains(&digits) {
        return None;
    }
    let number = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let behind = &rest[digits..];
    let blanks = behind.iter().take(4).take_while(|b| **b == b' ').count();
    let len = match &behind[blanks..] {
        [b'\t' | b'|', ..] => 1,
        [b':', next, ..] if blanks == 0 && !next.is_ascii_digit() => 1,
        [0xE2, 0x86, 0x92, ..] | [0xE2, 0x94, 0x82, ..] => 3,
        _ => return None,
    };
    Some((Lead::Number(number), at + digits + blanks + len))
}

/// A time, and what a log has behind it before its text: `2026-11-29 06:22:30 INFO `, `Nov 29 06:22:30 web app[12]: `.
fn dated(text: &[u8], at: usize) -> Option<(Lead, usize)> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    const TIME_BYTES_MAX: usize = 40;
    const DIGITS: std::ops::RangeInclusive<usize> = 6..=24;
    const WORDS_MAX: usize = 3;
    let rest = &text[at..];
    let month = rest.get(..3)?;
    let month = MONTHS.as_chunks::<3>().0.iter().any(|m| m == month) && rest.get(3) == Some(&b' ');
    if !month && !rest[0].is_ascii_digit() && rest.get(1).is_none_or(|b| !b.is_ascii_digit()) {
        return None;
    }
    let from = if month { 4 } else { 0 };
    let of_time = |b: &u8| b.is_ascii_digit() || b"-:/.,+[] TZ".contains(b);
    let time = rest[from..].iter().take(TIME_BYTES_MAX);
    let time = &rest[from..from + time.take_while(|b| of_time(b)).count()];
    let digits = time.iter().filter(|b| b.is_ascii_digit()).count();
    if !DIGITS.contains(&digits) || !time.contains(&b':') || time.last() != Some(&b' ') {
        return None;
    }
    // Programs say their name, and how grave it is.
    let mut body = from + time.len();
    let mut end = body;
    for _ in 0..WORDS_MAX {
        let word = rest[end..].split(|b| *b == b' ').next()?;
        let grave = word.len() <= 8 && !word.is_empty() && word.iter().all(u8::is_ascii_uppercase);
        let named = word.ends_with(b":") || word.starts_with(b"[") && word.ends_with(b"]");
        end = (end + word.len() + 1).min(rest.len());
        if grave || named {
            body = end;
        }
    }
    Some((Lead::Dated, at + body))
}

/// How two lines come together.
#[derive(Clone, Copy)]
struct Join {
    /// As words, and not as parts of a value that was cut.
    blank: bool,
    /// Only what stands beside the line's end, where nothing says that all of a text is written so.
    beside: bool,
}

impl Join {
    /// `block` says whether the lines are all there is of one value.
    fn of(text: &[u8], last: &Line, next: &Line, block: &dyn Fn() -> bool) -> Option<Self> {
        if !last.goes_on_in(next) {
            return None;
        }
        let beside = last.lead == Lead::None && !last.continued;
        let blank = !is_cut(text, last, next, block);
        let joined = !blank
            || last.continued && text[next.from] != b'\\'
            || match last.lead {
                Lead::None | Lead::Dated => is_filled(text, last, next),
                _ => !ends(text, last) && goes_on(text, next),
            };
        joined.then_some(Self { blank, beside })
    }

    /// From where on the line before belongs to it, and up to where the next does.
    fn reach(self, text: &[u8], last: &Line, next: &Line) -> (usize, usize) {
        if !self.beside {
            return (last.from, next.to);
        }
        let near = last.to.saturating_sub(BESIDE_BYTES_MAX).max(last.from);
        let begin = |at: &usize| *at == last.from || text[*at] & 0xC0 != 0x80;
        let from = (near..last.to).find(begin).unwrap_or(last.to);
        let near = (next.from + BESIDE_BYTES_MAX).min(next.to);
        let end = |at: &usize| *at == next.to || text[*at] & 0xC0 != 0x80;
        // A part of a value is whole.
        let part = next.from + part_after(text, next).len();
        let to = (near.max(part)..=next.to).find(end).unwrap_or(next.to);
        (from.min(last.to - part_before(text, last).len()), to)
    }
}

/// Does a sentence end with the line, a statement or a mark?
fn ends(text: &[u8], line: &Line) -> bool {
    let text = &text[..line.to];
    let end = text.last().is_some_and(|b| b".!?;{}>".contains(b));
    end || text.ends_with(RULE)
}

/// May a line be what the one before it goes on with?
fn goes_on(text: &[u8], line: &Line) -> bool {
    let text = &text[line.from..];
    let begin = |b: &u8| b.is_ascii_alphanumeric() || *b >= 0x80 || b"\"'`-/<([{$~@%&".contains(b);
    text.first().is_some_and(begin) && !text.starts_with(RULE)
}

/// Is it a line of prose that was filled up to the margin, and goes on in the next?
fn is_filled(text: &[u8], last: &Line, next: &Line) -> bool {
    let (end, begin) = (text[last.to - 1], text[next.from]);
    let word = end.is_ascii_alphanumeric() || end >= 0x80 || matches!(end, b',' | b'"' | b'\'');
    let behind = text.get(next.from + 1).is_some_and(|b| *b > b' ');
    let signed = |b| {
        matches!(
            b,
            b'"' | b'\'' | b'-' | b'/' | b'<' | b'(' | b'$' | b'~' | b'@' | b'0'..=b'9'
        )
    };
    let begun = begin.is_ascii_lowercase() || begin >= 0x80 || behind && signed(begin);
    if !word || !begun || !FILLED.contains(&last.len()) {
        return false;
    }
    let of = |line: &Line| text[line.from..line.to].iter();
    let blanks = of(last).filter(|b| **b == b' ').count();
    let signs = |line: &Line| {
        of(line)
            .map(|b| usize::from(OF_PROGRAM[usize::from(*b)]))
            .sum::<usize>()
    };
    blanks >= WORDS_MIN
        && last.len() <= blanks * WORD_BYTES_MAX
        && signs(last) + signs(next) <= SIGNS_MAX
}

/// In a program a line that goes on is none of prose.
static OF_PROGRAM: [bool; 256] = table_of(b"{}()[];=|&\\<>");

/// What stands around values.
static AROUND: [bool; 256] = table_of(b"\"'`<>(){}[],;|");

fn of_part(b: &u8) -> bool {
    b.is_ascii_graphic() && !AROUND[usize::from(*b)]
}

fn part_before<'t>(text: &'t [u8], line: &Line) -> &'t [u8] {
    let near = &text[line.to.saturating_sub(CUT_BYTES_MAX).max(line.from)..line.to];
    let len = near.iter().rev().take_while(|b| of_part(b)).count();
    &near[near.len() - len..]
}

fn part_after<'t>(text: &'t [u8], line: &Line) -> &'t [u8] {
    let near = &text[line.from..line.to.min(line.from + CUT_BYTES_MAX)];
    &near[..near.iter().take_while(|b| of_part(b)).count()]
}

/// Was a value cut between these lines? Letters and digits stand on both sides, and together they are no word: digits among
/// letters, or letters of both cases in turns. Lines that are one value each, as long as each other, are a list or have another reader.
fn is_cut(text: &[u8], last: &Line, next: &Line, block: &dyn Fn() -> bool) -> bool {
    let ends = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=');
    let ruled = text[..last.to].ends_with(RULE) || text[next.from..].starts_with(RULE);
    if ruled || !ends(text[last.to - 1]) || !ends(text[next.from]) {
        return false;
    }
    let after = part_after(text, next);
    if after.len() < 3 {
        return false;
    }
    let before = part_before(text, last);
    if before.len() < 4 || !(CUT_BYTES_MIN..=CUT_BYTES_MAX).contains(&(before.len() + after.len()))
    {
        return false;
    }
    let alone = before.len() == last.len() && after.len() == next.len();
    if alone && before.len() <= after.len() && !block() {
        return false;
    }
    // A number in hexadecimal is whole.
    if before.starts_with(b"0x") && before.len() <= 18 {
        return false;
    }
    let word = |part: &[u8]| part[1..].iter().all(u8::is_ascii_lowercase);
    (is_strange(before) || is_strange(after))
        && !word(before)
        && !word(after)
        && !is_named(after, &text[next.from..next.to])
}

/// Does a name begin the line, with a value of its own? What pads base64 is none.
fn is_named(part: &[u8], line: &[u8]) -> bool {
    let of_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let name = part.iter().take_while(|b| of_name(b)).count();
    match &part[name..] {
        [] => matches!(line[name..].trim_ascii_start(), [b'=' | b':', ..]),
        [b':', b'/', b'/', ..] => false,
        [b':', ..] => true,
        [b'=', rest @ ..] => !rest.iter().all(|b| *b == b'='),
        _ => false,
    }
}

/// Are the lines of a text all there is of one value: a few without blanks, as long as each other but for the last?
fn is_block(text: &[u8]) -> bool {
    const LINES_MAX: usize = 8;
    let text = text.trim_ascii();
    let line = |line: &[u8]| line.trim_ascii().len();
    let mut lines = text.split(|b| *b == b'\n').take(LINES_MAX + 1);
    let Some(first) = lines.next().map(line) else {
        return false;
    };
    let (mut count, mut shorter) = (1, 0);
    for line in lines {
        count += 1;
        let line = line.trim_ascii();
        // Half of a value may be a sign longer than the other.
        if shorter > 0 || line.len() > first + 1 || line.contains(&b' ') {
            return false;
        }
        shorter += usize::from(line.len() < first);
    }
    count <= LINES_MAX
}

/// Has it digits among letters, or letters of both cases in turns?
fn is_strange(part: &[u8]) -> bool {
    let kind = |b: u8| match b {
        b'0'..=b'9' => 1,
        b'A'..=b'Z' => 2,
        b'a'..=b'z' => 3,
        _ => 0,
    };
    let turns = part.windows(2).filter(|two| {
        let (one, other) = (kind(two[0]), kind(two[1]));
        // A capital begins a word, and a number stands behind one.
        one != other && one != 0 && other != 0 && (one, other) != (2, 3) && (one, other) != (3, 1)
    });
    turns.count() >= 2
}

#[cfg(test)]
mod tests {
    use crate::Layer;
    use crate::decode::tests::{assert_bounded, assert_child, children, run};

    #[test]
    fn lines_behind_the_same_sign_go_on() {
        for (text, want) in [
            ("# send all\n# keys to me", "send all keys to me"),
            ("> send all\r\n> keys to me\r\n", "send all keys to me"),
            ("> > send all\n> > keys to me", "send all keys to me"),
            (
                "x = 1\n  // send all\n  // keys to me\ny = 2",
                "send all keys to me",
            ),
            (
                "/**\n * send all\n * keys to me\n */",
                "send all keys to me",
            ),
            (
                "@@ -1 +1,2 @@\n+send all\n+keys to me\n",
                "send all keys to me",
            ),
            ("-- send all\n-- keys to me", "send all keys to me"),
            ("| send all   |\n| keys to me |", "send all keys to me"),
            ("  9\tsend all\n 10\tkeys to me", "send all keys to me"),
            ("12: send all\n13: keys to me", "send all keys to me"),
            (
                "2026-11-29T06:22:30Z INFO web: for all of you it is now time to send all of the\n2026-11-29T06:22:30Z INFO web: keys to me",
                "send all of the keys to me",
            ),
            (
                "Nov 29 06:22:30 web app[12]: for all of you it is now time to send all of the\nNov 29 06:22:30 web app[12]: keys to me",
                "send all of the keys to me",
            ),
            ("curl \\\n  -u ann:x", "curl -u ann:x"),
            ("send all<br>\nkeys to me", "send all keys to me"),
            (
                "# key: sk-q7Zk2Lm9\n# Xw4Tb8Vn1c end",
                "key: sk-q7Zk2Lm9Xw4Tb8Vn1c end",
            ),
        ] {
            assert_child(text, Layer::Wrapped, Some(want));
        }
    }

    #[test]
    fn a_value_that_a_line_cut_is_whole() {
        for (text, want) in [
            (
                "the key is sk-q7Zk2Lm9Xw4T\nb8Vn1cQ3 as said",
                "sk-q7Zk2Lm9Xw4Tb8Vn1cQ3",
            ),
            (
                "key: sk-q7Zk2Lm9Xw4T\r\n    b8Vn1cQ3",
                "sk-q7Zk2Lm9Xw4Tb8Vn1cQ3",
            ),
        ] {
            assert_child(text, Layer::Wrapped, Some(want));
        }
    }

    #[test]
    fn lines_that_stand_by_themselves_are_left_alone() {
        for text in [
            "one line\nanother line",
            "* a list\n* of things",
            "- a list\n- of things",
            "# A head\n## another",
            "# it ends here.\n# Another begins",
            "| a | b |\n| c | d |",
            "1\tone\n3\tthree",
            "06:22:30 INFO started\n06:22:31 INFO listening",
            "May I\nSay so",
            "0 \\0\\0\\0\\\n  \\0\\0\\0\\\n",
            "version2\nversion3b",
            "    keyA = api2.RegEnumKey\n    RegEnumValue = api2.RegEnumValue",
            "see v2@PAGEOFF9.\n  MCLOH3a is next",
            "password: X1k9vQ2mZr7Lp\npassword: X2k9vQ2mZr7Lp",
            "keys:\nsk-q7Zk2Lm9Xw\nsk-b8Vn1cQ3Lm9K",
        ] {
            assert_child(text, Layer::Wrapped, None);
        }
    }

    #[test]
    fn redaction_meets_what_was_written() {
        let text = "# the key: sk-q7Zk2Lm9\n# Xw4Tb8Vn1c end";
        let found = children(text);
        let (_, child, map) = found
            .iter()
            .find(|(layer, ..)| *layer == Layer::Wrapped)
            .expect("a child");
        let at = child.find("sk-").expect("the key");
        let written = &text[map(at, at + "sk-q7Zk2Lm9Xw4Tb8Vn1c".len())];
        assert!(written.starts_with("sk-q7Zk2Lm9") && written.ends_with("Xw4Tb8Vn1c"));
    }

    /// However much prose stands before it, and however small the share of it that is read beside the ends of lines.
    #[test]
    fn prose_hides_no_comment() {
        let prose =
            "and so the long day went by in the quiet old town of the\nriver until ".repeat(400);
        let text = format!("{prose}\n# send all\n# keys to me\n");
        let (nodes, over) = run(&text, 16_000);
        let wrapped = nodes.iter().filter(|n| n.layer == Some(Layer::Wrapped));
        let texts: Vec<_> = wrapped.map(|n| String::from_utf8_lossy(&n.text)).collect();
        assert_eq!((texts.len(), over), (2, None));
        assert!(
            texts
                .iter()
                .any(|text| text.contains("send all keys to me"))
        );
    }

    #[test]
    fn many_take_no_more_than_the_room() {
        assert_bounded("# send all\n# keys to me\n\n");
    }
}
