//! Lines of digits with something before or behind each: a mail that is quoted (`> QUtJ`), a comment (` * QUtJ`), a difference
//! (`+QUtJ`), a log, a listing with numbers, cells of a table, strings in code (`"QUtJ" +`), lines that a shell goes on with (`QUtJ \`).
//!
//! The decoration is the same on each line, but for numbers that count and times that pass; the digits are as many on each, and on the
//! last no more.

use crate::text::{RUN_BYTES_MIN, Span, is_run};

/// Longest decoration before the digits and behind them.
const LEAD_BYTES_MAX: usize = 128;
const TAIL_BYTES_MAX: usize = 64;
/// RFC 4648, section 6: so many signs fill up the last digits.
const FILL_BYTES_MAX: usize = 6;
/// Longest decoration that is not the same on the first line.
const OTHER_LEAD_BYTES_MAX: usize = 24;

/// Columns that are told apart on a line.
const COLUMNS: usize = 4;

/// What of a text has been looked at.
#[derive(Default)]
pub(super) struct Seen {
    /// Digits of lines that were read, in order for each column.
    read: [Vec<Span>; COLUMNS],
    /// Up to where lines were looked at that are nothing together: from the second on they are nothing, either.
    unread: [u32; COLUMNS],
}

impl Seen {
    /// Was a run read together with others?
    pub fn covers(&self, run: Span) -> bool {
        self.read.iter().any(|bodies| {
            let next = bodies.partition_point(|body| body.end <= run.start);
            bodies.get(next).is_some_and(|body| body.start < run.end)
        })
    }

    /// Is it worth a look whether the last of these runs goes on in the next line, before `ceil`? Gives its
    /// column, and where its line ends.
    pub fn column(&self, text: &[u8], runs: &[Span], ceil: usize) -> Option<(usize, usize)> {
        let (run, before) = runs.split_last()?;
        let line_end = next_line(&text[..ceil], run.end as usize)?;
        let near = before.iter().rev().take(COLUMNS - 1);
        let beside = near.scan(run.start, |next, run| {
            let between = &text[run.end as usize..std::mem::replace(next, run.start) as usize];
            memchr::memchr(b'\n', between).is_none().then_some(())
        });
        let column = beside.count();
        (run.start >= self.unread[column]).then_some((column, line_end))
    }

    pub fn note(&mut self, column: usize, bodies: Vec<Span>, read: bool) {
        let last = bodies.last().map_or(0, |body| body.end);
        match read {
            true => self.read[column].extend(bodies),
            false => self.unread[column] = self.unread[column].max(last),
        }
    }
}

/// Where the digits of each line stand, for each way to read the lines from this run on, whose line ends at `line_end`. `floor` and
/// `ceil` are where the text around it begins and ends.
pub(super) fn rows(
    text: &[u8],
    (start, end): (usize, usize),
    line_end: usize,
    (floor, ceil): (usize, usize),
) -> impl Iterator<Item = Vec<Span>> {
    let text = &text[..ceil];
    let near = start.saturating_sub(LEAD_BYTES_MAX).max(floor);
    let line_start = memchr::memrchr(b'\n', &text[near..start]).map(|n| near + n + 1);
    // What is further away than a decoration reaches can still be the name that the first line gives.
    let whole = line_start.is_some() || near == floor;
    let lead_start = line_start.unwrap_or(near);
    let cuts = [0, glued(&text[lead_start..start], &text[start..end])];
    let cuts = cuts.into_iter().enumerate();
    // A sign that is none of the digits is tried first: with it they mean something else.
    let cuts = cuts.filter(|(nth, cut)| *nth == 0 || *cut > 0).rev();
    cuts.filter_map(move |(_, cut)| {
        let first = Span::new(start + cut, end);
        let row = Row {
            text,
            first,
            lead: &text[lead_start..start + cut],
            tail: &text[end..line_end],
        };
        row.bodies(whole)
    })
}

/// Where the line ends that goes on at `at`, if that is not far away and something follows.
fn next_line(text: &[u8], at: usize) -> Option<usize> {
    let near = &text[at..text.len().min(at + TAIL_BYTES_MAX + 1)];
    let end = at + memchr::memchr(b'\n', near)?;
    // A line that was filled up is the last one.
    (text[at] != b'=' && end + 1 < text.len()).then_some(end)
}

/// How many bytes at the front of a run are a sign of its line, and no digits: `+QUtJ` in a difference, `12-QUtJ` of `grep`.
fn glued(lead: &[u8], run: &[u8]) -> usize {
    if run[0].is_ascii_alphabetic() || lead.iter().any(u8::is_ascii_alphanumeric) {
        return 0;
    }
    let number = run
        .iter()
        .take(8)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let sign = match (number, run[number]) {
        (0, b'+' | b'-') | (1.., b'-') => 1,
        _ => return 0,
    };
    let cut = number + sign;
    match run.len() - cut >= RUN_BYTES_MIN && !matches!(run[cut], b'+' | b'-') {
        true => cut,
        false => 0,
    }
}

/// The digits of all lines.
pub(super) fn digits(text: &[u8], bodies: &[Span]) -> Vec<u8> {
    let len = bodies.iter().map(|body| body.len()).sum();
    let mut digits = Vec::with_capacity(len);
    bodies
        .iter()
        .for_each(|body| digits.extend_from_slice(&text[body.range()]));
    digits
}

/// Where the first line begins and the last one ends, as far as their decorations reach.
pub(super) fn around(
    text: &[u8],
    (first, last): (Span, Span),
    (floor, ceil): (usize, usize),
) -> (usize, usize) {
    let (start, end) = (first.start as usize, last.end as usize);
    let near = start.saturating_sub(LEAD_BYTES_MAX).max(floor);
    let from = memchr::memrchr(b'\n', &text[near..start]).map_or(near, |n| near + n + 1);
    let near = (end + TAIL_BYTES_MAX).min(ceil);
    let to = memchr::memchr(b'\n', &text[end..near]).map_or(near, |n| end + n);
    (
        super::on_char(text, from, start),
        super::on_char(text, to, ceil),
    )
}

/// The first of some lines.
struct Row<'t> {
    text: &'t [u8],
    /// Its digits, and what stands on either side of them.
    first: Span,
    lead: &'t [u8],
    tail: &'t [u8],
}

impl Row<'_> {
    /// The digits of all lines that go with the first, if there are any; `whole` says whether all that stands before them is known.
    fn bodies(&self, whole: bool) -> Option<Vec<Span>> {
        let blank = |part: &[u8]| part.trim_ascii().is_empty();
        let next = self.first.end as usize + self.tail.len() + 1;
        let rest = &self.text[next..];
        let lead = match whole.then(|| like(self.lead, rest)).flatten() {
            Some(_) => self.lead,
            None => self.other_lead(rest)?,
        };
        // Nothing but blanks is a break like any other.
        if blank(lead) && blank(self.tail) {
            return None;
        }
        let mut bodies = vec![self.first];
        let mut at = next;
        while let Some((body, end)) = self.line(lead, at) {
            bodies.push(body);
            match end {
                Some(end) => at = end + 1,
                None => break,
            }
        }
        (bodies.len() > 1).then_some(bodies)
    }

    /// The decoration of the second line, where the first begins otherwise: `key = "QUtJ" +`, `/* QUtJ`.
    fn other_lead<'r>(&self, rest: &'r [u8]) -> Option<&'r [u8]> {
        let near = &rest[..rest.len().min(OTHER_LEAD_BYTES_MAX)];
        let digit = near.iter().position(u8::is_ascii_alphanumeric)?;
        // Signs may be digits, too: the line is as long as the first one then.
        let signs = near[..digit].iter().rev().take_while(|b| is_run(**b));
        let run = signs.count();
        let len = self.digits(&rest[digit..]);
        let missing = match self.first.len().checked_sub(len)? {
            missing if missing <= run => missing,
            _ => 0,
        };
        let lead = &rest[..digit - missing];
        let sign = lead.trim_ascii();
        let known = sign.is_empty() || memchr::memmem::find(self.lead, sign).is_some();
        (known && !lead.contains(&b'\n')).then_some(lead)
    }

    /// How many digits a text begins with, up to one more than the first line has.
    fn digits(&self, text: &[u8]) -> usize {
        let most = self.first.len() + 1;
        text.iter().take(most).take_while(|b| is_run(**b)).count()
    }

    /// The digits of the line at `at`, and where the line ends if others may follow.
    fn line(&self, lead: &[u8], at: usize) -> Option<(Span, Option<usize>)> {
        let from = at + like(lead, self.text.get(at..)?)?;
        let len = self.digits(&self.text[from..]);
        if len == 0 || len > self.first.len() {
            return None;
        }
        let end = from + len;
        let body = Span::new(from, end);
        let near = &self.text[end..self.text.len().min(end + TAIL_BYTES_MAX)];
        let tail = memchr::memchr(b'\n', near).map_or(near, |n| &near[..n]);
        let same = like(self.tail, tail) == Some(tail.len());
        if same && len == self.first.len() {
            let more = end + tail.len() + 1 < self.text.len();
            return Some((body, more.then_some(end + tail.len())));
        }
        // Words behind it are another line's, unless what stands behind each stands there, behind what fills up the last.
        let filled = tail.iter().take(FILL_BYTES_MAX).take_while(|b| **b == b'=');
        let rest = &tail[filled.count()..];
        let known = !self.tail.is_empty() && like(self.tail, rest).is_some();
        let last = known || !rest.iter().any(u8::is_ascii_alphanumeric);
        last.then_some((body, None))
    }
}

/// How much of a text is like a decoration: numbers may be others, of other lengths, and so may blanks be that fill them up.
fn like(lead: &[u8], text: &[u8]) -> Option<usize> {
    let (mut i, mut at) = (0, 0);
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let count = |part: &[u8], is: fn(&u8) -> bool| part.iter().take_while(|b| is(b)).count();
    while i < lead.len() {
        let (rest, other) = (&lead[i..], &text[at..]);
        if rest[0].is_ascii_digit() {
            // Some count in sixteens.
            let of_number: fn(&u8) -> bool = u8::is_ascii_hexdigit;
            let len = count(&other[..other.len().min(LEAD_BYTES_MAX)], of_number);
            if !other[..len].iter().any(u8::is_ascii_digit) && len < 4 {
                return None;
            }
            (i, at) = (i + count(rest, of_number), at + len);
        } else if blank(&rest[0]) {
            let own = rest.iter().take_while(|b| blank(b)).count();
            let len = other
                .iter()
                .take(LEAD_BYTES_MAX)
                .take_while(|b| blank(b))
                .count();
            let numbered = rest.get(own).is_some_and(u8::is_ascii_digit)
                || i > 0 && lead[i - 1].is_ascii_digit();
            // A tab stays one, and what is no number's has its place.
            let same = own == len && rest[..own] == other[..len];
            let fills = numbered && (len > 0 || i == 0) && !rest[..own].contains(&b'\t');
            if !same && !fills {
                return None;
            }
            (i, at) = (i + own, at + len);
        } else if other.first() == Some(&rest[0]) {
            (i, at) = (i + 1, at + 1);
        } else {
            return None;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use crate::Layer;
    use crate::decode::tests::{children, run};

    const TEXT: &str = "the first words of it, then ghp_Zq7kW2mXv9Lp4TsR8bNc and so on, to the end of what is said here.";

    fn base32(bytes: &[u8]) -> String {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let bits: String = bytes.iter().map(|b| format!("{b:08b}")).collect();
        let digit = |five: &[u8]| {
            let bits = std::str::from_utf8(five).unwrap();
            char::from(digits[usize::from_str_radix(&format!("{bits:0<5}"), 2).unwrap()])
        };
        bits.as_bytes().chunks(5).map(digit).collect()
    }

    /// The lines of a code, each within what `dress` puts around it.
    fn lines(code: &str, width: usize, dress: &dyn Fn(usize, &str) -> String) -> String {
        let chunks = code
            .as_bytes()
            .chunks(width)
            .map(|l| std::str::from_utf8(l).unwrap());
        let lines: Vec<_> = chunks
            .enumerate()
            .map(|(nth, line)| dress(nth, line))
            .collect();
        lines.join("\n")
    }

    type Dress = Box<dyn Fn(usize, &str) -> String>;

    fn dresses() -> Vec<Dress> {
        let both = |lead: &'static str, tail: &'static str| -> Dress {
            Box::new(move |_, line| format!("{lead}{line}{tail}"))
        };
        vec![
            both("> ", ""),
            both(">> ", "\r"),
            both("+", ""),
            both("-", ""),
            both("# ", ""),
            both("\t// ", ""),
            both(" * ", ""),
            both("-- ", ""),
            both("; ", ""),
            both("", " \\"),
            both("| ", " |"),
            both("    '", "',"),
            both("s = s & \"", "\""),
            both("<l>", "</l>"),
            both("", "<br>"),
            Box::new(|nth, line| format!("{nth},{line},ok")),
            Box::new(|nth, line| format!("{}: {line}", nth + 9)),
            Box::new(|nth, line| format!("{}-{line}", nth + 9)),
            Box::new(|nth, line| format!("{:>6}\t{line}", nth + 9)),
            Box::new(|nth, line| format!("{:>2} | {line}", nth + 9)),
            Box::new(|nth, line| format!("{:<4}{line}", nth + 9)),
            Box::new(|nth, line| format!("{:08x}: {line}", nth * 64)),
            Box::new(|nth, line| format!("| {nth} | {line} | x |")),
            Box::new(|nth, line| {
                format!("2026-05-0{} 12:{nth}7:01.{nth}31Z INFO  {line}", nth % 9)
            }),
            Box::new(|nth, line| format!("{}{line}", if nth == 0 { "/* " } else { " * " })),
            Box::new(|nth, line| format!("{}{line} \\", if nth == 0 { "echo " } else { "  " })),
            Box::new(|nth, line| {
                format!("{}{line}\" +", if nth == 0 { "k = \"" } else { "    \"" })
            }),
            Box::new(|nth, line| format!("# {}{line}", if nth == 0 { "it: " } else { "" })),
        ]
    }

    #[test]
    fn what_stands_around_each_line_is_no_part_of_it() {
        let hex: String = TEXT.bytes().map(|b| format!("{b:02x}")).collect();
        for (layer, code) in [
            (Layer::Base64, STANDARD.encode(TEXT)),
            (Layer::Hex, hex),
            (Layer::Base32, base32(TEXT.as_bytes())),
        ] {
            for (nth, dress) in dresses().iter().enumerate() {
                for width in [44, 46, 61] {
                    let text = format!("see\n{}\nthere", lines(&code, width, dress));
                    let found = children(&text);
                    let child = found
                        .iter()
                        .find(|(of, child, _)| *of == layer && child.contains(TEXT));
                    let Some((_, child, source)) = child else {
                        panic!("{nth} {layer:?} {text}");
                    };
                    let at = child.find(TEXT).unwrap();
                    let (first, last) = (
                        &text[source(at, at + 1)],
                        &text[source(at + 95, at + TEXT.len())],
                    );
                    assert!(code.starts_with(first) && first.len() <= 8, "{nth} {first}");
                    assert!(
                        code.ends_with(last.trim_end_matches('=')) || code.contains(last),
                        "{nth} {last}"
                    );
                }
            }
        }
    }

    #[test]
    fn short_lines_are_read_as_well() {
        let code = STANDARD.encode(TEXT);
        let numbered = |nth: usize, line: &str| format!("{:>3} | {line}", nth + 8);
        for width in [16, 21, 32] {
            let found = children(&lines(&code, width, &numbered));
            assert!(
                found.iter().any(|(_, child, _)| child.contains(TEXT)),
                "{width}"
            );
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let xz = "/Td6WFoAAATm1rRGAgAhARYAAAB0L+Wj4ABEADZdADgYSuADCc/39R7qGuYrllg1xzqS7D7Gz/lF7g7MHqPFZ2HvZFlx0ukKURJSNjxNrvoerQMAAAAAABocDgjihKo2AAFSReI/va4ftvN9AQAAAAAEWVo=";
        for dress in dresses() {
            let text = lines(xz, 60, &dress);
            let found = children(&text);
            assert!(
                found
                    .iter()
                    .any(|(_, child, _)| child.contains("Kx7mQ2vRt9 for all")),
                "{text}"
            );
        }
    }

    #[test]
    fn values_of_one_length_stay_apart() {
        let values = [
            "ghp_Zq7kW2mXv9Lp4TsR8bNc",
            "ghp_B8dRt5YqN3kLw9XzC2vM",
            "ghp_H6jPs4QnT7gFx1KaD5bV",
        ];
        let row =
            |(nth, value): (usize, &&str)| format!("| key{nth} | {} |", STANDARD.encode(value));
        let text: Vec<_> = values.iter().enumerate().map(row).collect();
        let found = children(&text.join("\n"));
        let apart = "| key0 | ghp_Zq7kW2mXv9Lp4TsR8bNc |\n| key1 | ghp_B8dRt5YqN3kLw9XzC2vM |\n";
        assert!(found.iter().any(|(_, child, _)| child.contains(apart)));
    }

    #[test]
    fn what_stands_beside_the_lines_is_looked_at() {
        let note = STANDARD.encode("another value, somewhere else");
        let dress = |nth: usize, line: &str| match nth {
            1 => format!("| {note} | {line} |"),
            _ => format!("| {} | {line} |", "x".repeat(note.len())),
        };
        let text = lines(&STANDARD.encode(TEXT), 44, &dress);
        assert!(
            children(&text)
                .iter()
                .any(|(_, child, _)| child.contains("another value, somewhere")),
            "{text}"
        );
    }

    #[test]
    fn other_lines_are_none() {
        let code = STANDARD.encode(TEXT);
        let (first, second) = code.split_at(60);
        for text in [
            // Other decorations, and other lengths.
            format!("# {first}\n// {second}"),
            format!("a: {first}\nb: {second}"),
            format!("> {}\n> {}", &code[..40], &code[40..]),
            format!("12: {first}\n\n13: {second}"),
            format!("| {first} | {first} |\n| {second} |"),
            format!("| {first} | one |\n| {second} | two |"),
            format!("x = {first}=\nx = {second}"),
        ] {
            assert!(
                !children(&text)
                    .iter()
                    .any(|(_, child, _)| child.contains(TEXT)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_word_below_the_last_line_is_none_of_its_digits() {
        let code = STANDARD.encode(&TEXT[..90]);
        for below in ["> Regards", "> so", "> Kind regards to all"] {
            let text = format!("> {}\n> {}\n{below}", &code[..60], &code[60..]);
            let whole = |child: &str| child.contains(&TEXT[..90]);
            assert!(
                children(&text).iter().any(|(_, child, _)| whole(child)),
                "{text}"
            );
        }
    }

    #[test]
    fn lines_of_what_is_no_text_are_within_budget() {
        for width in [16, 20, 28, 40] {
            for seed in 0..8_u8 {
                let noise = |len: u8| (0..len).map(move |n| 0x80 | n.wrapping_mul(37) ^ seed);
                let bytes: Vec<u8> = noise(50).chain(TEXT.bytes()).chain(noise(70)).collect();
                let text = lines(&STANDARD.encode(bytes), width, &|_, line| {
                    format!("> {line}")
                });
                let (nodes, over) = run(&text, 1 << 20);
                assert_eq!(over, None, "{width} {seed}");
                let key =
                    |text: &[u8]| memchr::memmem::find(text, &TEXT.as_bytes()[28..52]).is_some();
                assert!(nodes.iter().any(|node| key(&node.text)), "{width} {seed}");
            }
        }
    }

    #[test]
    fn many_lines_are_within_budget() {
        let noise = |nth: usize| {
            let mut x = (nth as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let byte = |_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (x >> 56) as u8
            };
            (0..48).map(byte).collect::<Vec<u8>>()
        };
        let rows: String = (0..4000)
            .map(|nth| format!("| {nth} | {} |\n", STANDARD.encode(noise(nth))))
            .collect();
        let (_, over) = run(&rows, 1 << 20);
        assert_eq!(over, None);
    }
}
