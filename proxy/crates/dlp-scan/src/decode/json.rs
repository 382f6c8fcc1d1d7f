//! JSON text inside a string: a node with a cell for every key and value, escapes undone.
//!
//! Lenient where it costs nothing (lone surrogates, control characters), strict in structure: what does not parse is
//! left to be scanned as plain text, so nothing can hide behind being almost JSON.

use super::listed;
use super::outline::Open;
use crate::LeafKind;
use crate::text::{How, Node, Span, word_at};

/// Shorter numbers hold nothing that a rule looks for.
const NUMBER_BYTES_MIN: usize = 6;

/// Could this be a JSON object or array, or a line of them?
pub(crate) fn looks_like(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.len() >= 8
        && matches!((text[0], text[text.len() - 1]), (b'{', b'}') | (b'[', b']'))
        && text.contains(&b'"')
}

/// Fills `node` from `text`, whose first byte is byte `base` of the parent. False when it is not JSON; the node is
/// then to be thrown away.
pub(crate) fn walk(text: &[u8], base: usize, node: &mut Node) -> bool {
    let mut walker = Walker {
        text,
        base,
        at: 0,
        node,
        open: Open::default(),
    };
    let mut any = false;
    loop {
        walker.skip_space();
        if walker.at >= text.len() {
            walker.open.finish(walker.node);
            return any;
        }
        if !walker.value() {
            return false;
        }
        any = true;
    }
}

/// The same for one object or array that other text follows: where it ends. Of one that breaks off, where the innermost begins that
/// is open there, and how far it was read: those around that break off at the same place.
pub(crate) fn walk_first(
    text: &[u8],
    base: usize,
    node: &mut Node,
) -> Result<usize, (usize, usize)> {
    let mut walker = Walker {
        text,
        base,
        at: 0,
        node,
        open: Open::default(),
    };
    match walker.value() {
        true => {
            walker.open.finish(walker.node);
            Ok(walker.at)
        }
        false => {
            let innermost = walker.open.innermost();
            Err((innermost.map_or(0, |frame| frame.at as usize), walker.at))
        }
    }
}

struct Walker<'t, 'n> {
    text: &'t [u8],
    base: usize,
    at: usize,
    node: &'n mut Node,
    open: Open,
}

impl Walker<'_, '_> {
    fn skip_space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let ok = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(ok);
        ok
    }

    /// One value with everything under it, however deep: without recursion, and what is open is no longer than the text.
    fn value(&mut self) -> bool {
        let mut name = Span::default();
        loop {
            self.skip_space();
            let opened = match self.text.get(self.at) {
                Some(b'{') => Some(true),
                Some(b'[') => Some(false),
                _ => None,
            };
            if let Some(object) = opened {
                let cells = self.node.cells.len();
                self.open.begins(object, name, self.at, self.node, cells);
                self.at += 1;
                if self.eat(if object { b'}' } else { b']' }) {
                    self.open.ends(self.node, cells);
                } else if object {
                    match self.key() {
                        Some(key) => name = key,
                        None => return false,
                    }
                    continue;
                } else {
                    self.codes(self.name_over_codes(name));
                    self.open.has_elements(self.node, self.node.cells.len());
                    continue;
                }
            } else if !self.scalar(name) {
                return false;
            }
            // After a value: the next one, or the end of what it stood in.
            loop {
                let Some(top) = self.open.innermost() else {
                    return true;
                };
                let cells = self.node.cells.len();
                self.open.value_ended(self.node, cells);
                if self.eat(b',') {
                    name = top.name;
                    if top.object {
                        match self.key() {
                            Some(key) => name = key,
                            None => return false,
                        }
                    }
                    break;
                }
                if !self.eat(if top.object { b'}' } else { b']' }) {
                    return false;
                }
                self.open.ends(self.node, cells);
            }
        }
    }

    fn key(&mut self) -> Option<Span> {
        self.skip_space();
        let start = self.node.text.len();
        if !self.string() {
            return None;
        }
        let span = Span::new(start, self.node.text.len());
        self.node
            .close_cell(start, Span::default(), LeafKind::Key, 0);
        self.eat(b':').then_some(span)
    }

    fn scalar(&mut self, name: Span) -> bool {
        match self.text.get(self.at) {
            Some(b'"') => {
                let start = self.node.text.len();
                if !self.string() {
                    return false;
                }
                self.node.close_cell(start, name, LeafKind::String, 0);
                true
            }
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => {
                self.number(name);
                true
            }
            _ => false,
        }
    }

    fn word(&mut self, word: &[u8]) -> bool {
        let ok = self.text[self.at..].starts_with(word);
        self.at += if ok { word.len() } else { 0 };
        ok
    }

    /// `{"type": "Buffer", "data": [103, 104]}`: what the bytes of a program are is said by the name over them.
    fn name_over_codes(&self, name: Span) -> Span {
        let outer = self.open.outer_name();
        let own = &self.node.text[name.range()];
        match outer.filter(|outer| !outer.is_empty()) {
            Some(outer) if matches!(own, b"data" | b"bytes" | b"codes" | b"chars") => outer,
            _ => name,
        }
    }

    /// An array of character codes is the text that it stands for.
    fn codes(&mut self, name: Span) {
        self.skip_space();
        if !self.text.get(self.at).is_some_and(u8::is_ascii_digit) {
            return;
        }
        // A buffer says of itself what its numbers are.
        let told = self.node.cells.iter().rev().nth(1);
        let told = told.is_some_and(|c| &self.node.text[c.span.range()] == b"Buffer");
        if let Some(mut list) = listed::code_array(self.text, self.at, told) {
            for (_, span) in &mut list {
                *span = Span::new(
                    self.base + span.start as usize,
                    self.base + span.end as usize,
                );
            }
            let start = self.node.text.len();
            listed::push_codes(self.node, &list);
            self.node.close_cell(start, name, LeafKind::String, 0);
        }
    }

    fn number(&mut self, name: Span) {
        let start = self.at;
        while matches!(
            self.text.get(self.at),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'e' | b'E')
        ) {
            self.at += 1;
        }
        let written = &self.text[start..self.at];
        if written.len() >= NUMBER_BYTES_MIN && may_be_whole(written) {
            let dst = self.node.text.len();
            let src = Span::new(self.base + start, self.base + self.at);
            self.node.push(written, src, How::Copy);
            self.node.close_cell(dst, name, LeafKind::Number, 0);
        }
    }

    /// A string's content, escapes undone.
    fn string(&mut self) -> bool {
        if self.text.get(self.at) != Some(&b'"') {
            return false;
        }
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let Some(stop) = quote_or_escape(rest) else {
                return false;
            };
            let src = Span::new(self.base + self.at, self.base + self.at + stop);
            self.node.push(&rest[..stop], src, How::Copy);
            self.at += stop;
            if rest[stop] == b'"' {
                self.at += 1;
                return true;
            }
            let Some((c, len)) = escape(&self.text[self.at..]) else {
                return false;
            };
            let mut utf8 = [0; 4];
            let src = Span::new(self.base + self.at, self.base + self.at + len);
            self.node
                .push(c.encode_utf8(&mut utf8).as_bytes(), src, How::Atom);
            self.at += len;
        }
    }
}

/// Can the number be a whole one, however it is written: `-12`, `12.0`, `1.2e1`? Measurements and the like are not.
fn may_be_whole(number: &[u8]) -> bool {
    let unsigned = number.strip_prefix(b"-").unwrap_or(number);
    match unsigned.iter().position(|b| !b.is_ascii_digit()) {
        Some(at) if unsigned[at] == b'.' => match unsigned[at + 1..].iter().find(|b| **b != b'0') {
            Some(b'e' | b'E' | b'0'..=b'9') => memchr::memchr2(b'e', b'E', unsigned).is_some(),
            after => after.is_none(),
        },
        Some(at) => matches!(unsigned[at], b'e' | b'E'),
        None => true,
    }
}

/// Where a string ends or has an escape. Most strings are short: the first words are looked at here.
fn quote_or_escape(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Zero bytes of `word ^ ONES * b` are its bytes `b`; the lowest mark is always right.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & (ONES * 0x80);
    for at in [0, 8, 16] {
        let Some(word) = word_at(text, at) else {
            break;
        };
        let marks = zero(word ^ (ONES * u64::from(b'"'))) | zero(word ^ (ONES * u64::from(b'\\')));
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize / 8);
        }
    }
    memchr::memchr2(b'"', b'\\', text)
}

/// One JSON escape at the start of `text`: its character and how long it is written.
pub(crate) fn escape(text: &[u8]) -> Option<(char, usize)> {
    let simple = match text.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'u' => return unicode_escape(text),
        _ => return None,
    };
    Some((simple, 2))
}

fn unicode_escape(text: &[u8]) -> Option<(char, usize)> {
    let high = hex4(text.get(2..6)?)?;
    if (0xD800..0xDC00).contains(&high)
        && text.get(6..8) == Some(b"\\u")
        && let Some(low) = text.get(8..12).and_then(hex4)
        && (0xDC00..0xE000).contains(&low)
    {
        let c = char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))?;
        return Some((c, 12));
    }
    Some((
        char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER),
        6,
    ))
}

/// Four hex digits.
pub(crate) fn hex4(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |n, b| Some(n * 16 + char::from(*b).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Option<Vec<(String, String)>> {
        let mut node = Node::default();
        walk(text.as_bytes(), 0, &mut node).then(|| {
            let show = |s: Span| String::from_utf8(node.text[s.range()].to_vec()).unwrap();
            node.cells
                .iter()
                .filter(|c| c.kind != LeafKind::Key)
                .map(|c| (show(c.name), show(c.span)))
                .collect()
        })
    }

    #[test]
    fn rows_stand_under_the_names_of_their_columns() {
        let under = |text: &str, head: &str| -> Vec<String> {
            let cells = cells(text).expect("JSON");
            let own = cells.into_iter().filter(|(name, _)| name == head);
            own.map(|(_, value)| value).collect()
        };
        for (text, head, want) in [
            (
                r#"{"columns": ["id", "ssn", "ok"], "rows": [[1, "a", true], [null, "b", false]]}"#,
                "ssn",
                &["a", "b"][..],
            ),
            (
                r#"{"fields": [{"name": "id", "type": "int"}, {"name": "pin", "type": "text"}], "data": [[7, "a"]]}"#,
                "pin",
                &["a"],
            ),
            (
                r#"{"values": [["who", "mail", "iban"], ["x", "y", "z"], ["u"]]}"#,
                "iban",
                &["z"],
            ),
            (
                r#"{"columns": ["a", "b"], "rows": [[["x"], "y"]]}"#,
                "b",
                &["y"],
            ),
            (r#"{"t": {"columns": ["a"]}, "rows": [["x"]]}"#, "a", &[]),
            (r#"{"values": [["a", "b"], ["x", "y"]]}"#, "a", &[]),
            (r#"{"rows": [["x"]], "columns": ["a"]}"#, "a", &["x"]),
        ] {
            assert_eq!(under(text, head), want, "{text}");
        }
        let many = format!(
            r#"{{"columns": [{}"a"], "rows": [["x"]]}}"#,
            r#""a","#.repeat(5000)
        );
        assert_eq!(under(&many, "a"), ["x"]);
    }

    #[test]
    fn bytes_of_a_buffer_are_text() {
        let text = r#"{"pin": {"type": "Buffer", "data": [52, 55, 49, 49, 45, 49, 49, 65]}}"#;
        let cells = cells(text).expect("JSON");
        assert!(cells.contains(&("pin".to_owned(), "4711-11A".to_owned())));
    }

    #[test]
    fn values_come_with_their_names() {
        type Want = Option<&'static [(&'static str, &'static str)]>;
        let cases: &[(&str, Want)] = &[
            (r#"{"a":"b"}"#, Some(&[("a", "b")])),
            (
                r#"{"a":["b","c",{"d":"e"}],"f":"g"}"#,
                Some(&[("a", "b"), ("a", "c"), ("d", "e"), ("f", "g")]),
            ),
            (
                r#"{"a":1,"n":1234567,"x":1.2345678}"#,
                Some(&[("n", "1234567")]),
            ),
            (
                r#"[-1234567,12345.0,123e45,1.25e12,1.25,12345.01,0.12345,1.0e0.5-]"#,
                Some(&[
                    ("", "-1234567"),
                    ("", "12345.0"),
                    ("", "123e45"),
                    ("", "1.25e12"),
                    ("", "1.0e0.5-"),
                ]),
            ),
            (
                r#"{"a":"\u0041\n\"\ud83d\ude00"}"#,
                Some(&[("a", "A\n\"😀")]),
            ),
            (r#"{"a":"b"} {"a":"c"}"#, Some(&[("a", "b"), ("a", "c")])),
            (r#"[[],{},"x",true,null,false]"#, Some(&[("", "x")])),
            (r#"{"a":"b""#, None),
            (r#"{"a" "b"}"#, None),
            (r#"{a:"b"}"#, None),
            (r#"{"a":"b"} trailing"#, None),
        ];
        for (text, want) in cases {
            let want = want.map(|w| {
                w.iter()
                    .map(|(a, b)| (a.to_string(), b.to_string()))
                    .collect::<Vec<_>>()
            });
            assert_eq!(cells(text), want, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        // A text of brackets alone has a frame for each.
        assert!(size_of::<crate::decode::outline::Frame>() <= 24);
        assert_eq!(cells(&"[".repeat(100_000)), None);
        assert!(cells(&format!("{}\"x\"{}", "[".repeat(100), "]".repeat(100))).is_some());
    }

    #[test]
    fn offsets_lead_back_over_escapes() {
        let text = r#"{"k":"ab\u0041cd"}"#;
        let mut node = Node::default();
        assert!(walk(text.as_bytes(), 0, &mut node));
        let cell = node.cells[1];
        assert_eq!(&node.text[cell.span.range()], b"abAcd");
        let part = node.to_parent(Span {
            start: cell.span.start + 1,
            end: cell.span.start + 3,
        })[0];
        assert_eq!(&text[part.range()], r"b\u0041");
    }
}
