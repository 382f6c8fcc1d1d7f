//! `name = value` in its many dresses: JSON members, env files, YAML, code, flags, tables, XML, URL queries.

use super::{Scratch, Sink, is_value};
use crate::names::{self, Promise};
use crate::rule::RuleId;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::value;

/// Longest value taken.
const VALUE_BYTES_MAX: usize = 4096;
/// Longest value that is not in quotes.
const BARE_BYTES_MAX: usize = 512;
/// Longest name read.
const NAME_BYTES_MAX: usize = 96;
/// Elements looked at under one name.
const ELEMENTS_MAX: usize = 16;

/// A value and the name it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    pub name: Span,
    pub value: Span,
    pub quoted: bool,
}

/// Reads each name once, however many keywords lie in it.
#[derive(Debug, Default)]
pub(super) struct Names {
    secret_done: u32,
    last: Option<(Span, Option<Assigned>)>,
}

impl Names {
    /// A keyword of a name that promises a secret.
    pub fn secret(&mut self, at: u32, cell: (usize, Cell), sink: &mut Sink<'_>) {
        if at < self.secret_done || !sink.limits.spend(1) {
            return;
        }
        let name = name_around(sink.text(), at as usize, &cell.1);
        self.secret_done = name.end.max(at + 1);
        let promise = names::promise(&sink.text()[name.range()]);
        if promise == Promise::Nothing {
            return;
        }
        if !is_value(&cell.1) {
            // Only a key that is the name, not one which merely speaks of it.
            if name.len() + 2 >= cell.1.span.len() {
                under_key(cell, sink, |value, sink| {
                    believe(value, promise, true, sink)
                });
            }
            return;
        }
        if name == cell.1.span
            && let Some(value) = named_beside(cell, sink)
        {
            return believe(value, promise, true, sink);
        }
        let before = &sink.text()[..name.start as usize];
        // `arn:aws:secretsmanager:...:secret:name` names no secret by itself.
        let in_urn = before.ends_with(b":")
            && before
                .iter()
                .rev()
                .nth(1)
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b':')
            && !before[before.len().saturating_sub(5)..].eq_ignore_ascii_case(b"$env:");
        for value in column_values(sink.text(), name, &cell.1) {
            believe(value, promise, false, sink);
        }
        if let Some(found) = self.read(name, &cell.1, sink).filter(|_| !in_urn) {
            if promise == Promise::Mnemonic {
                return believe(
                    words_from(sink.text(), found.value, &cell.1),
                    promise,
                    true,
                    sink,
                );
            }
            if !found.quoted && found.value.len() + 8 >= BARE_BYTES_MAX {
                // Longer than any value without quotes: no use in reading it again from each name inside.
                self.secret_done = found.value.end;
            }
            let rest = &sink.text()[found.value.end as usize..];
            if !rest.starts_with(b"...") {
                believe(found.value, promise, found.quoted, sink);
            }
        }
    }

    /// A keyword of a provider's name: the rule knows what the provider's values look like.
    pub fn provider(
        &mut self,
        rule: RuleId,
        any_name: bool,
        at: u32,
        cell: (usize, Cell),
        sink: &mut Sink<'_>,
        scratch: &mut Scratch,
    ) {
        if at < scratch.done[rule.index()] || !sink.limits.spend(1) {
            return;
        }
        let name = name_around(sink.text(), at as usize, &cell.1);
        scratch.done[rule.index()] = name.end;
        if !any_name && names::promise(&sink.text()[name.range()]) == Promise::Nothing {
            return;
        }
        let mut take = |value: Span, sink: &mut Sink<'_>| {
            let text = &sink.text()[value.range()];
            let matched = sink
                .rules
                .compiled(rule)
                .pattern
                .as_ref()
                .and_then(|p| p.regex())
                .is_some_and(|r| r.is_match(text));
            if matched {
                sink.accept(rule, value, &mut scratch.compact);
            }
        };
        if !is_value(&cell.1) {
            return under_key(cell, sink, take);
        }
        if name == cell.1.span
            && let Some(value) = named_beside(cell, sink)
        {
            return take(value, sink);
        }
        if let Some(found) = self.read(name, &cell.1, sink) {
            take(found.value, sink);
        }
    }

    fn read(&mut self, name: Span, cell: &Cell, sink: &Sink<'_>) -> Option<Assigned> {
        if let Some((known, found)) = self.last
            && known == name
        {
            return found;
        }
        let found = value_after(sink.text(), name, cell.span);
        self.last = Some((name, found));
        found
    }
}

/// In a table of lines: the values under a name that stands in the first line.
fn column_values(text: &[u8], name: Span, cell: &Cell) -> Vec<Span> {
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let before = &text[floor..name.start as usize];
    let after = text[name.end as usize..ceil].first();
    let delimiter = [b',', b';', b'\t', b'|']
        .into_iter()
        .find(|d| before.last() == Some(d) || after == Some(d));
    let (Some(delimiter), false) = (delimiter, before.len() > 512 || before.contains(&b'\n'))
    else {
        return Vec::new();
    };
    let column = before.iter().filter(|b| **b == delimiter).count();
    let mut out = Vec::new();
    let mut at = floor;
    for line in text[floor..ceil.min(floor + 16 * 1024)]
        .split(|b| *b == b'\n')
        .take(ELEMENTS_MAX)
    {
        let mut field = at;
        for (i, part) in line.split(|b| *b == delimiter).enumerate() {
            if i == column && at > floor {
                let quoted = part.len() > 2 && part[0] == b'"' && part[part.len() - 1] == b'"';
                let inset = usize::from(quoted);
                out.push(trim(
                    text,
                    Span::new(field + inset, field + part.len() - inset),
                ));
            }
            field += part.len() + 1;
        }
        at += line.len() + 1;
    }
    out
}

/// A value that goes on over blanks as long as there are words of lower case.
fn words_from(text: &[u8], value: Span, cell: &Cell) -> Span {
    let ceil = (cell.span.end as usize).min(value.start as usize + 256);
    let rest = &text[value.start as usize..ceil];
    let len = rest
        .iter()
        .take_while(|b| b.is_ascii_lowercase() || **b == b' ')
        .count();
    let len = rest[..len].trim_ascii_end().len().max(value.len());
    Span::new(value.start as usize, value.start as usize + len)
}

fn believe(value: Span, promise: Promise, quoted: bool, sink: &mut Sink<'_>) {
    let text = &sink.text()[value.range()];
    if promise == Promise::Mnemonic {
        if (crate::check::find("bip39").is_some_and(|c| (c.run)(text)))
            && !value::is_placeholder(text)
        {
            sink.report_for(Detector::Mnemonic, value, None);
        }
        return;
    }
    let Some(confidence) = value::judge(text, promise, quoted) else {
        return;
    };
    let detector = if promise == Promise::Password {
        Detector::GenericPassword
    } else {
        Detector::GenericSecret
    };
    sink.report_for(detector, value, Some(confidence));
}

/// The values under a key: the next cell, and the elements after it if it is an array.
fn under_key(cell: (usize, Cell), sink: &mut Sink<'_>, mut take: impl FnMut(Span, &mut Sink<'_>)) {
    let (index, key) = cell;
    for i in index + 1..index + 1 + ELEMENTS_MAX {
        match sink.node.cells.get(i) {
            Some(c) if is_value(c) && c.name == key.span => {
                let value = trim(sink.text(), c.span);
                take(value, sink);
            }
            _ => break,
        }
    }
}

/// `{"name": "DB_PASSWORD", "value": "..."}`: the value cell beside a cell that is a name.
fn named_beside(cell: (usize, Cell), sink: &Sink<'_>) -> Option<Span> {
    let text = sink.text();
    let own = &text[cell.1.name.range()];
    let is =
        |name: &[u8], list: &[&str]| list.iter().any(|w| name.eq_ignore_ascii_case(w.as_bytes()));
    if !is(
        own,
        &[
            "name",
            "key",
            "field",
            "variable",
            "var",
            "env",
            "id",
            "label",
            "param",
            "parameter",
            "header",
            "setting",
        ],
    ) {
        return None;
    }
    let near = sink
        .node
        .cells
        .get(cell.0 + 1..(cell.0 + 5).min(sink.node.cells.len()))?;
    let value = near.iter().find(|c| {
        is_value(c)
            && is(
                &text[c.name.range()],
                &[
                    "value", "val", "content", "data", "default", "secret", "text",
                ],
            )
    })?;
    Some(trim(text, value.span))
}

fn trim(text: &[u8], span: Span) -> Span {
    let value = &text[span.range()];
    let lead = value.len() - value.trim_ascii_start().len();
    let mut start = span.start as usize + lead;
    let end = start + value.trim_ascii().len();
    for scheme in ["Bearer ", "Basic ", "Token ", "token ", "bearer ", "basic "] {
        if text[start..end].starts_with(scheme.as_bytes()) {
            start += scheme.len();
        }
    }
    Span::new(start, end.min(start + VALUE_BYTES_MAX))
}

/// The identifier that `at` lies in.
fn name_around(text: &[u8], at: usize, cell: &Cell) -> Span {
    let part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.') || b >= 0x80;
    let (floor, ceil) = (cell.span.start as usize, cell.span.end as usize);
    let mut start = at;
    while start > floor && at - start < NAME_BYTES_MAX && part(text[start - 1]) {
        start -= 1;
    }
    let mut end = at;
    while end < ceil && end - at < NAME_BYTES_MAX && part(text[end]) {
        end += 1;
    }
    // `api key`, `private key`: two words that are one name.
    if end < ceil
        && text[end] == b' '
        && text[end + 1..ceil]
            .get(..3)
            .is_some_and(|w| w.eq_ignore_ascii_case(b"key"))
    {
        let after = text.get(end + 4).copied().unwrap_or(b' ');
        if !after.is_ascii_alphanumeric() {
            end += 4;
        }
    }
    while start < end && matches!(text[start], b'-' | b'.') {
        start += 1;
    }
    while end > start && matches!(text[end - 1], b'-' | b'.') {
        end -= 1;
    }
    Span::new(start, end)
}

/// The value that stands after a name, if something between them says that it is its value.
pub(super) fn value_after(text: &[u8], name: Span, cell: Span) -> Option<Assigned> {
    let ceil = (cell.end as usize).min(name.end as usize + VALUE_BYTES_MAX);
    let floor = cell.start as usize;
    let flag = name.start as usize >= floor + 2
        && &text[name.start as usize - 2..name.start as usize] == b"--";
    let mut r = Reader {
        text,
        at: name.end as usize,
        ceil,
    };
    let sep = r.separator(flag)?;
    let line = line_start(text, name.start as usize, floor);
    r.value(sep, line).map(|(value, quoted)| Assigned {
        name,
        value,
        quoted,
    })
}

/// Only blanks, a comment sign, a dash or `export` between the line's start and the name.
fn line_start(text: &[u8], name: usize, floor: usize) -> bool {
    let from = name.saturating_sub(40).max(floor);
    let before = &text[from..name];
    let line = before
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(before, |n| &before[n + 1..]);
    let line = line.trim_ascii();
    let whole = from == floor || before.contains(&b'\n');
    whole
        && (line.is_empty()
            || matches!(
                line,
                b"-" | b"#"
                    | b"//"
                    | b"export"
                    | b"set"
                    | b"ENV"
                    | b"ARG"
                    | b"$env:"
                    | b"- "
                    | b"setx"
            ))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sep {
    Equals,
    Colon,
    /// A blank after `--flag`.
    Blank,
    Table,
    Xml,
    /// `, ` between a quoted name and a quoted value; `is`.
    Loose,
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    ceil: usize,
}

impl Reader<'_> {
    fn peek(&self, n: usize) -> u8 {
        let i = self.at + n;
        if i < self.ceil { self.text[i] } else { 0 }
    }

    fn rest(&self) -> &[u8] {
        &self.text[self.at..self.ceil]
    }

    fn blanks(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(0), b' ' | b'\t') && self.at - from < 40 {
            self.at += 1;
        }
        self.at - from
    }

    fn starts(&self, word: &str) -> bool {
        self.rest().starts_with(word.as_bytes())
    }

    fn separator(&mut self, flag: bool) -> Option<Sep> {
        let mut closed = false;
        for _ in 0..4 {
            match self.peek(0) {
                b'"' | b'\'' | b'`' | b']' | b')' | b'*' => closed = true,
                b'\\' if matches!(self.peek(1), b'"' | b'\'') => {
                    closed = true;
                    self.at += 1;
                }
                _ => break,
            }
            self.at += 1;
        }
        let blanks = self.blanks();
        self.type_note();
        let sep = match self.peek(0) {
            b'=' if self.peek(1) == b'=' => return None,
            b'=' if self.peek(1) == b'>' => (Sep::Equals, 2),
            b'=' => (Sep::Equals, 1),
            b':' if self.peek(1) == b'=' => (Sep::Equals, 2),
            b':' if self.peek(1) == b':' => return None,
            b':' => (Sep::Colon, 1),
            b'?' if self.peek(1) == b'=' => (Sep::Equals, 2),
            b'{' if closed => (Sep::Equals, self.block_default()?),
            b'\t' => (Sep::Loose, 1),
            b'|' => (Sep::Table, 1),
            b'>' => (Sep::Xml, 1),
            b'<' if self.peek(1) == b'/' => (
                Sep::Xml,
                self.rest().iter().take(32).position(|b| *b == b'>')? + 1,
            ),
            b',' if closed => (Sep::Loose, 1),
            b';' if closed => (Sep::Loose, 1),
            b'\n' | b'\r' | b'\\' => return self.value_line(),
            _ if self.starts("is ") => (Sep::Loose, 3),
            _ if self.starts("value=") => (Sep::Equals, 6),
            _ if flag && blanks > 0 => (Sep::Blank, 0),
            _ if blanks == 1 && !closed && self.generated_next() => (Sep::Blank, 0),
            b'\'' | b'"' if blanks > 0 => (Sep::Loose, 0),
            _ => return None,
        };
        self.at += sep.1;
        if sep.0 == Sep::Colon {
            self.blanks();
            self.type_note();
            if self.peek(0) == b'=' && self.peek(1) != b'=' {
                self.at += 1;
            }
        }
        Some(sep.0)
    }

    /// `variable "x" { default = `: how far it is to the value.
    fn block_default(&self) -> Option<usize> {
        let rest = &self.rest()[..self.rest().len().min(160)];
        let at = memchr::memmem::find(rest, b"default")
            .or_else(|| memchr::memmem::find(rest, b"value"))?;
        let eq = rest[at..].iter().position(|b| *b == b'=')?;
        (!rest[..at].contains(&b'}')).then_some(at + eq + 1)
    }

    /// `TOKEN 5f4dcc...`: nothing between the name and something that can only be a key.
    fn generated_next(&self) -> bool {
        let rest = self.rest();
        let len = rest
            .iter()
            .take(200)
            .take_while(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=')
            })
            .count();
        let c = crate::entropy::Classes::of(&rest[..len]);
        len >= 20 && c.digit >= 4 && c.letters() >= 4 && c.changes >= 6
    }

    /// `: string =`, `: &str =`: skipped when an equals sign follows.
    fn type_note(&mut self) {
        let rest = &self.rest()[..self.rest().len().min(48)];
        let from = usize::from(rest.first() == Some(&b':'));
        let Some(eq) = rest.iter().position(|b| *b == b'=') else {
            return;
        };
        let note = &rest[from..eq];
        let plain = note.iter().all(|b| {
            b.is_ascii_alphabetic() || matches!(b, b' ' | b'&' | b'<' | b'>' | b'?' | b'|' | b'\'')
        });
        if eq > from + 2
            && plain
            && note.iter().any(u8::is_ascii_alphabetic)
            && rest.get(eq + 1) != Some(&b'=')
        {
            self.at += eq;
        }
    }

    /// Kubernetes: the value on the next line under its own key.
    fn value_line(&mut self) -> Option<Sep> {
        for _ in 0..4 {
            match (self.peek(0), self.peek(1)) {
                (b'\\', b'n' | b'r' | b't') => self.at += 2,
                (b'\n' | b'\r', _) => self.at += 1,
                _ => break,
            }
        }
        self.blanks();
        if self.peek(0) == b'"' {
            self.at += 1;
        }
        if !self.starts("value") {
            return None;
        }
        self.at += 5;
        if self.peek(0) == b'"' {
            self.at += 1;
        }
        self.blanks();
        (self.peek(0) == b':' || self.peek(0) == b'=').then(|| {
            self.at += 1;
            Sep::Colon
        })
    }

    fn value(&mut self, sep: Sep, line: bool) -> Option<(Span, bool)> {
        self.blanks();
        if sep == Sep::Xml {
            self.xml_value();
        }
        if sep == Sep::Colon && matches!(self.peek(0), b'\n' | b'\r') {
            self.at += self
                .rest()
                .iter()
                .take(2)
                .take_while(|b| matches!(b, b'\n' | b'\r'))
                .count();
            // YAML: what belongs to the key is indented.
            if self.blanks() == 0 {
                return None;
            }
            let rest = self.rest();
            let word = rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
            if rest[..word].ends_with(b":") || rest.starts_with(b"- ") {
                return None;
            }
        }
        // Rust, Python, C#: r"", b"", f"", @"", $""; YAML tags; calls such as `String::from("`.
        if matches!(self.peek(0), b'b' | b'r' | b'f' | b'u' | b'@' | b'L')
            && matches!(self.peek(1), b'"' | b'\'')
        {
            self.at += 1;
        }
        if self.peek(0) == b'*' && self.peek(1) == b'*' {
            self.at += 2;
            self.blanks();
        }
        if matches!(self.peek(0), b'[' | b'(') && matches!(self.peek(1), b'"' | b'\'') {
            self.at += 1;
        }
        for scheme in [
            "Bearer ",
            "Basic ",
            "Token ",
            "ApiKey ",
            "Api-Token ",
            "Api-Key ",
            "token ",
            "bearer ",
        ] {
            if self.starts(scheme) {
                self.at += scheme.len();
            }
        }
        let escaped = self.peek(0) == b'\\' && matches!(self.peek(1), b'"' | b'\'');
        self.at += usize::from(escaped);
        let quote = self.peek(0);
        if matches!(quote, b'"' | b'\'' | b'`') {
            self.at += 1;
            let start = self.at;
            let end = self.quoted_end(quote, escaped)?;
            return self.finish(start, end, true);
        }
        if sep == Sep::Loose && !self.loose_ok() {
            return None;
        }
        let whole_line = line && matches!(sep, Sep::Equals | Sep::Colon);
        let start = self.at;
        let mut end = start;
        let ceil = self.ceil.min(start + BARE_BYTES_MAX);
        while end < ceil && !stops(self.text[end], whole_line) {
            end += 1;
        }
        while end > start && matches!(self.text[end - 1], b',' | b';' | b'.' | b'"' | b'\'') {
            end -= 1;
        }
        self.finish(start, end, false)
    }

    /// After "is" or a comma: only something that cannot be the next word of a sentence.
    fn loose_ok(&self) -> bool {
        let word: &[u8] = self
            .rest()
            .split(|b| b.is_ascii_whitespace())
            .next()
            .unwrap_or(b"");
        word.len() >= 6 && crate::entropy::Classes::of(word).changes >= 2
    }

    /// `<key>password</key><string>...`
    fn xml_value(&mut self) {
        let rest = self.rest();
        let Some(open) = rest.iter().take(4).position(|b| *b == b'<') else {
            return;
        };
        if open > 0 && !rest[..open].iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if let Some(close) = rest.iter().take(48).position(|b| *b == b'>') {
            self.at += close + 1;
        }
    }

    fn quoted_end(&self, quote: u8, escaped: bool) -> Option<usize> {
        let mut i = self.at;
        while i < self.ceil {
            let b = self.text[i];
            if escaped && b == b'\\' && self.text.get(i + 1) == Some(&quote) {
                return Some(i);
            }
            if !escaped && b == b'\\' {
                i += 2;
                continue;
            }
            if b == quote && !escaped {
                return Some(i);
            }
            if b == b'\n' {
                return None;
            }
            i += 1;
        }
        None
    }

    fn finish(&self, start: usize, end: usize, quoted: bool) -> Option<(Span, bool)> {
        let span = trim(self.text, Span::new(start, end.min(self.ceil)));
        (!span.is_empty()).then_some((span, quoted))
    }
}

/// Ends a value that is not in quotes.
fn stops(b: u8, whole_line: bool) -> bool {
    b.is_ascii_whitespace()
        || matches!(b, b'"' | b'\'' | b'\\' | b'`' | 0x1E | 0x1F)
        || (!whole_line
            && matches!(
                b,
                b',' | b';' | b'<' | b'>' | b')' | b']' | b'}' | b'|' | b'&'
            ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LeafKind;

    fn read(text: &str, key: &str) -> Option<String> {
        let at = text.find(key).unwrap();
        let span = Span::new(0, text.len());
        let cell = Cell {
            span,
            name: Span::default(),
            kind: LeafKind::String,
            leaf: 0,
        };
        let name = name_around(text.as_bytes(), at, &cell);
        let found = value_after(text.as_bytes(), name, span)?;
        Some(text[found.value.range()].to_owned())
    }

    #[test]
    fn values_in_many_dresses() {
        let cases = [
            ("password=s3cr3t!x", Some("s3cr3t!x")),
            ("export DB_PASSWORD=a;b&c)d", Some("a;b&c)d")),
            ("password: \"ab cd\"", Some("ab cd")),
            ("\"password\" : \"abc\"", Some("abc")),
            ("\\\"password\\\":\\\"abc\\\"", Some("abc")),
            ("'password' => 'abc'", Some("abc")),
            ("const password: string = \"abc\";", Some("abc")),
            ("password := `abc`", Some("abc")),
            ("--password abc next", Some("abc")),
            ("| password | abc |", Some("abc")),
            ("<password>abc</password>", Some("abc")),
            ("<key>password</key><string>abc</string>", Some("abc")),
            ("?password=abc&x=1", Some("abc")),
            ("- name: password\n  value: abc", Some("abc")),
            ("- name: password\\n  value: abc\\nx", Some("abc")),
            ("password == x", None),
            ("password::new()", None),
            ("the password is aB3xyz9 now", Some("aB3xyz9")),
            ("the password is wrong", None),
            ("name=\"password\" value=\"abc\"", Some("abc")),
            ("define('password', 'abc')", Some("abc")),
            ("**password**: abc", Some("abc")),
            ("password:\n  abc", Some("abc")),
            ("password:\n  next: abc", None),
            (
                "variable \"password\" {\n  default = \"abc\"\n}",
                Some("abc"),
            ),
        ];
        for (text, want) in cases {
            let name = if text.contains("DB_PASSWORD") {
                "DB_PASSWORD"
            } else {
                "password"
            };
            assert_eq!(read(text, name).as_deref(), want, "{text}");
        }
    }
}
