//! Reads what stands between a name and its value, and where the value ends, in every dress they wear.

use super::looks::{
    arrow, begins_ending, begins_sign, drawn, fallback, is_setter, line_break, lone, opening,
    perl_quote, wrapping,
};
use super::typed::is_typed_key;
use super::{Assigned, Ends};
use super::{BARE_BYTES_MAX, VALUE_BYTES_MAX, trim};
use crate::text::Span;

/// Flags behind one dash are as long as `-password`; shorter ones are letters put together.
const FLAG_BYTES_MIN: usize = 8;

/// The value that stands after a name, if something between them says that it is its value.
pub(super) fn value_after(text: &[u8], name: Span, cell: Span) -> Option<Assigned> {
    let ceil = (cell.end as usize).min(name.end as usize + VALUE_BYTES_MAX);
    let floor = cell.start as usize;
    let before = &text[floor..name.start as usize];
    // `tool --password x`, and with one dash where that is the whole of the flag.
    let flag = before.ends_with(b"--") || before.ends_with(b" -") && name.len() >= FLAG_BYTES_MIN;
    let mut r = Reader {
        text,
        at: name.end as usize,
        ceil,
        end: cell.end as usize,
    };
    if is_setter(&text[name.range()]) && r.call_of_literal() {
        r.at += 1;
        return r
            .value(Sep::Equals, false)
            .map(|(value, quoted, ends)| Assigned {
                name,
                value,
                quoted,
                ends,
            });
    }
    let line = line_start(text, name.start as usize, floor);
    let sep = r.separator(flag, line)?;
    r.value(sep, line).map(|(value, quoted, ends)| Assigned {
        name,
        value,
        quoted,
        ends,
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

/// Words that say whose or what for a value is.
const LEADS: [&str; 26] = [
    "for", "of", "to", "für", "fuer", "zum", "zur", "vom", "do", "da", "de", "del", "della", "di",
    "du", "des", "pour", "para", "per", "voor", "van", "för", "till", "для", "от", "к",
];

/// Tags between a name and its value.
const XML_TAGS_MAX: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sep {
    Equals,
    Colon,
    /// A blank after `--flag`.
    Blank,
    Table,
    /// The end of the tag that bears the name: all is the value up to the closing one.
    Tag,
    Xml,
    /// `, ` between a quoted name and a quoted value; `is`.
    Loose,
}

pub(super) struct Reader<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
    /// How far is read, and where the cell ends.
    pub(super) ceil: usize,
    pub(super) end: usize,
}

impl Reader<'_> {
    pub(super) fn peek(&self, n: usize) -> u8 {
        let i = self.at + n;
        if i < self.ceil { self.text[i] } else { 0 }
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.text.get(self.at..self.ceil).unwrap_or_default()
    }

    pub(super) fn blanks(&mut self) -> usize {
        let from = self.at;
        while matches!(self.peek(0), b' ' | b'\t') && self.at - from < 40 {
            self.at += 1;
        }
        self.at - from
    }

    pub(super) fn starts(&self, word: &str) -> bool {
        self.rest().starts_with(word.as_bytes())
    }

    /// `flag`: the name is one of a command line; `line`: it begins its line.
    fn separator(&mut self, flag: bool, line: bool) -> Option<Sep> {
        self.at += self.rest_of_heading(self.at).max(self.whose_to_sign());
        self.bounds();
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
        self.reference();
        let from = self.at;
        let blanks = self.blanks();
        if self.leaders() {
            return Some(Sep::Loose);
        }
        let tab = self.text[from..self.at].contains(&b'\t');
        self.type_note();
        self.accessors();
        let arrow = arrow(self.rest());
        let sep = match self.peek(0) {
            b'b' | b':' if self.lazily() > 0 => (Sep::Equals, self.lazily()),
            // The sign as quoted-printable has it.
            b'=' if self.starts("=3D \"")
                || self.starts("=3D\"")
                || self.starts("=3D '")
                || self.starts("=3D'") =>
            {
                (Sep::Equals, 3)
            }
            b'=' | b'!' if self.compared() > 0 => (Sep::Equals, self.compared()),
            b'=' if self.peek(1) == b'=' => return None,
            b'=' if self.peek(1) == b'>' => (Sep::Equals, 2),
            b'=' => (Sep::Equals, 1),
            b':' if self.peek(1) == b'=' => (Sep::Equals, 2),
            b':' if self.peek(1) == b':' => return None,
            b':' => (Sep::Colon, 1),
            b'?' | b'+' if self.peek(1) == b'=' => (Sep::Equals, 2),
            b'|' if self.starts("||=") => (Sep::Equals, 3),
            b'?' if self.starts("??=") => (Sep::Equals, 3),
            b'?' if self.starts("?? \"") || self.starts("?? '") => (Sep::Equals, 2),
            b'|' if self.starts("|| \"") || self.starts("|| '") => (Sep::Equals, 2),
            b'<' if self.starts("<- \"") || self.starts("<- '") => (Sep::Equals, 2),
            // C++ and Go: `kSharedSecret{"..."}`.
            b'{' if blanks == 0 && !closed && matches!(self.peek(1), b'"') => (Sep::Equals, 1),
            // Erlang: `{default_pass, <<"...">>}`; a shell: `read -r TOKEN <<< "..."`.
            b',' if self.starts(", <<\"") => (Sep::Equals, 4),
            b'<' if self.starts("<<< \"") || self.starts("<<< '") => (Sep::Equals, 4),
            b'{' if closed && self.quoted_block() => (Sep::Equals, 1),
            b'{' if closed => (Sep::Equals, self.block_default()?),
            b'\t' => (Sep::Loose, 1),
            b'|' if self.in_template() => return None,
            b'|' => (Sep::Table, 1),
            b'>' => (Sep::Tag, 1),
            b'<' if self.peek(1) == b'/' => (
                Sep::Xml,
                self.rest().iter().take(32).position(|b| *b == b'>')? + 1,
            ),
            b',' if closed && self.value_member().is_some() => (Sep::Colon, self.value_member()?),
            b',' if closed && self.default_next() > 0 => (Sep::Equals, self.default_next()),
            b',' if closed && self.argument_next() => return None,
            b',' if closed => (Sep::Loose, 1),
            b',' | b';' if line && self.field_next() => (Sep::Loose, 1),
            b';' if closed => (Sep::Loose, 1),
            b'\n' | b'\r' | b'\\' => return self.value_line(),
            b'?' if self.peek(1) == b'\n' => return self.answer_line(),
            _ if arrow > 0 => (Sep::Colon, arrow),
            _ if self.dash_next() > 0 => (Sep::Blank, self.dash_next()),
            _ if self.copula() > 0 => (Sep::Loose, self.copula()),
            _ if self.starts("value=") => (Sep::Equals, 6),
            b'a'..=b'z' if closed && blanks > 0 && self.attributes() > 0 => {
                (Sep::Tag, self.attributes())
            }
            b'P' if self.starts("PIC ") => (Sep::Loose, self.picture()?),
            _ if tab => (Sep::Loose, 0),
            _ if blanks > 1 && !closed && self.alone_next() => (Sep::Blank, 0),
            _ if flag && blanks > 0 => (Sep::Blank, 0),
            _ if blanks == 1 && !closed && (self.generated_next() || self.chosen_next()) => {
                (Sep::Blank, 0)
            }
            b'.' if closed && self.typed_in() > 0 => (Sep::Loose, self.typed_in()),
            b'\'' | b'"' if blanks > 0 => (Sep::Loose, 0),
            _ if blanks > 0 && !closed && opening(self.rest()).is_some() => (Sep::Loose, 0),
            // `パスワードを「...」`
            _ if !closed && self.text[from - 1] >= 0x80 && self.particle_to_quote() > 0 => {
                (Sep::Loose, self.particle_to_quote())
            }
            _ if blanks == 1 && !closed && self.text[from - 1] >= 0x80 && self.foreign_next() => {
                (Sep::Blank, 0)
            }
            b'(' if blanks == 1 && !closed && self.bracketed() => (Sep::Loose, 1),
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

    /// Words that say whose it is, when the name ends behind them.
    fn whose_to_sign(&self) -> usize {
        let len = whose(self.rest());
        let after = &self.rest()[len..];
        let told = [
            &b": "[..],
            b"=",
            b" =",
            b"\"",
            b"\\\"",
            b"'",
            b"`",
            b"**",
            b"</",
            b" |",
            " — ".as_bytes(),
            " – ".as_bytes(),
            b"\n",
            b"]\n",
            b")\n",
        ];
        match len > 0 && told.iter().any(|sign| after.starts_with(sign)) {
            true => len,
            false => self.whose_to_copula(),
        }
    }

    /// `signing key for staging is ...`: where the verb stands, if a value follows that no sentence has in it.
    fn whose_to_copula(&self) -> usize {
        const WORDS_BYTES_MAX: usize = 48;
        const VERBS: [&[u8]; 13] = [
            b"is",
            b"ist",
            b"lautet",
            b"est",
            b"es",
            b"jest",
            b"war",
            b"er",
            b"este",
            b"je",
            "è".as_bytes(),
            "é".as_bytes(),
            "är".as_bytes(),
        ];
        let rest = &self.rest()[..self.rest().len().min(WORDS_BYTES_MAX)];
        let Some((b' ', words)) = rest.split_first() else {
            return 0;
        };
        let mut at = 0;
        for (nth, word) in words.split(|b| *b == b' ').take(5).enumerate() {
            if nth == 0 && !LEADS.iter().any(|l| l.as_bytes() == word) {
                return 0;
            }
            // The words are cut where they are long: it is the verb only with a blank behind it.
            if nth > 1 && VERBS.contains(&word) && words.get(at + word.len()) == Some(&b' ') {
                let behind = Reader {
                    at: self.at + 1 + at + word.len() + 1,
                    ..*self
                };
                let made = behind.generated_next() || behind.chosen_next();
                return if made { at } else { 0 };
            }
            at += word.len() + 1;
        }
        0
    }

    /// How long the word is that says in a sentence that the value follows, with what stands after it.
    fn copula(&self) -> usize {
        const WORDS: [&str; 24] = [
            "is",
            "to",
            "are",
            "was",
            "ist",
            "lautet",
            "est",
            "es",
            "er",
            "är",
            "é",
            "è",
            "este",
            "jest",
            "は",
            "です",
            "는",
            "은",
            "이",
            "是",
            "为",
            "為",
            "คือ",
            "là",
        ];
        // `is` is how `ist` begins, too.
        let said = WORDS.iter().map(|word| {
            let after = self.rest().strip_prefix(word.as_bytes())?;
            match (after.first(), after.get(1)) {
                (Some(b' '), _) | (Some(b':'), Some(b'\n')) => Some(word.len() + 1),
                (Some(b':'), Some(b' ')) => Some(word.len() + 2),
                // Where no blank stands between words.
                (Some(b'!'..=b'~'), _) if word.len() > 2 && !word.is_ascii() => Some(word.len()),
                _ => None,
            }
        });
        said.flatten().max().unwrap_or(0)
    }

    /// A fence of Markdown (with the name of its language) is no part of the value in it.
    fn fence(&mut self) {
        let rest = self.rest();
        let lines = rest
            .iter()
            .take(3)
            .take_while(|b| matches!(b, b'\n' | b'\r'))
            .count();
        let fenced = rest[lines..].starts_with(b"```");
        let end = rest[lines..].iter().take(24).position(|b| *b == b'\n');
        if let (true, Some(end)) = (fenced, end) {
            self.at += lines + end + 1;
        }
    }

    /// `TOKEN 5f4dcc...`: nothing between the name and something that can only be a key.
    pub(super) fn generated_next(&self) -> bool {
        let rest = self.rest();
        let rest = rest.strip_prefix(b"base64:").unwrap_or(rest);
        let len = rest
            .iter()
            .take(200)
            .take_while(|b| {
                b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'=')
            })
            .count();
        drawn_key(&rest[..len]) || is_typed_key(&rest[..len])
    }

    /// `password Winter2024!`: a word with letters, digits and a sign that no sentence has in it.
    pub(super) fn chosen_next(&self) -> bool {
        let rest = &self.rest()[..self.rest().len().min(64)];
        let word = rest.split(u8::is_ascii_whitespace).next().unwrap_or(b"");
        let sign = |b: &u8| {
            matches!(
                b,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?'
            )
        };
        let plain =
            |b: &u8| b.is_ascii_alphanumeric() || sign(b) || matches!(b, b'-' | b'_' | b'.');
        let ends = |b: &&u8| matches!(b, b'.' | b',' | b';');
        let inner = &word[..word.len() - word.last().iter().filter(|b| ends(b)).count()];
        inner.len() >= 8
            && word.len() < 64
            && inner.iter().all(plain)
            && inner[0].is_ascii_alphanumeric()
            && inner.iter().any(u8::is_ascii_digit)
            && inner.iter().any(u8::is_ascii_alphabetic)
            && inner.iter().any(sign)
            && (!inner[..inner.len() - 1].contains(&b'@')
                || inner.contains(&b'.') && !crate::value::is_mail(inner))
            || inner.iter().all(u8::is_ascii_alphanumeric) && drawn(inner)
            || crate::value::is_listed(inner, 4)
    }

    /// `the token (5f4dcc...) expires`: nothing else in the brackets, and no word.
    fn bracketed(&self) -> bool {
        let rest = &self.rest()[1..];
        let len = rest
            .iter()
            .take(200)
            .take_while(|b| b.is_ascii_graphic() && **b != b'(' && **b != b')')
            .count();
        let c = crate::entropy::Classes::of(&rest[..len]);
        len >= 8 && rest.get(len) == Some(&b')') && c.digit >= 2 && c.letters() >= 2
    }

    /// Something that can only be a key or a chosen password, alone on its line.
    fn alone_next(&self) -> bool {
        let rest = &self.rest()[..self.rest().len().min(BARE_BYTES_MAX)];
        let ends = |b: &u8| matches!(b, b'\n' | b'\r' | b'\\');
        let line = rest.split(ends).next().unwrap_or_default();
        let line = line.trim_ascii_end();
        crate::value::is_drawn(line)
            || !line.contains(&b' ') && (self.generated_next() || self.chosen_next() || lone(line))
    }

    /// The same in quotes, as a client of a store prints it.
    fn alone_in_quotes(&self) -> bool {
        let rest = &self.rest()[..self.rest().len().min(BARE_BYTES_MAX)];
        let ends = |b: &u8| matches!(b, b'\n' | b'\r');
        let line = rest.split(ends).next().unwrap_or_default().trim_ascii_end();
        match line {
            [open @ (b'"' | b'\'' | b'`'), inner @ .., close] if open == close => {
                crate::value::is_chosen(inner) || crate::value::stands_alone(inner) || lone(inner)
            }
            _ => false,
        }
    }

    /// `What is the password?` and on the next line `A: Tq7m!Z2vX`.
    fn answer_line(&mut self) -> Option<Sep> {
        self.at += 2;
        self.blanks();
        if self.peek(0).is_ascii_alphabetic() && self.peek(1) == b':' {
            self.at += 2;
            self.blanks();
        }
        self.alone_next().then_some(Sep::Blank)
    }

    /// `AuthError("Wrong password", code=4012)`: a call goes on with what it gives to a name of its own.
    fn argument_next(&self) -> bool {
        let rest = &self.rest()[1..self.rest().len().min(BARE_BYTES_MAX)];
        let rest = rest.trim_ascii_start();
        let part = |b: &&u8| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'_';
        let name = rest.iter().take_while(part).count();
        let line = rest.split(|b| *b == b'\n').next().unwrap_or_default();
        let called = |rest: &[u8]| rest.contains(&b')');
        name > 1
            && rest[0].is_ascii_lowercase()
            && rest.get(name) == Some(&b'=')
            && !matches!(rest.get(name + 1), Some(b'='))
            && called(line)
    }

    /// The value on the next line: under its own key, as in Kubernetes, or by itself.
    fn value_line(&mut self) -> Option<Sep> {
        let from = self.at;
        for _ in 0..4 {
            match (self.peek(0), self.peek(1)) {
                (b'\\', b'n' | b'r' | b't') => self.at += 2,
                (b'\n' | b'\r', _) => self.at += 1,
                _ => break,
            }
        }
        self.blanks();
        if self.alone_next() || self.alone_in_quotes() || self.block_below(from) {
            return Some(Sep::Blank);
        }
        // A line's number, or the sign of a diff or a quotation.
        let digits = self.rest().iter().take(6);
        let digits = digits.take_while(|b| b.is_ascii_digit()).count();
        let numbered = digits > 0 && matches!(self.peek(digits), b'\t' | b'|' | b':');
        if numbered || matches!(self.peek(0), b'+' | b'>' | b'|') {
            self.at += digits + 1;
            self.blanks();
        }
        if self.peek(0) == b'"' {
            self.at += 1;
        }
        self.at += self.to_value_below();
        if !self.starts("value") && !self.starts("Value") {
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

    fn value(&mut self, sep: Sep, line: bool) -> Option<(Span, bool, Ends)> {
        self.blanks();
        if matches!(sep, Sep::Colon | Sep::Loose | Sep::Xml) {
            self.fence();
        }
        if matches!(sep, Sep::Xml | Sep::Tag) {
            self.xml_value();
        }
        // A literal too long for the line of its name.
        if sep == Sep::Equals && matches!(self.peek(0), b'\n' | b'\r') {
            let white = |b: &&u8| b.is_ascii_whitespace();
            let gap = self.rest().iter().take(64).take_while(white).count();
            let next = Reader {
                at: self.at + gap,
                ..*self
            };
            let wrapped = line && gap <= 2 && next.key_alone();
            if matches!(self.peek(gap), b'"' | b'\'' | b'`') || wrapped {
                self.at += gap;
            }
        }
        if sep == Sep::Colon && matches!(self.peek(0), b'\n' | b'\r') {
            self.at += self
                .rest()
                .iter()
                .take(2)
                .take_while(|b| matches!(b, b'\n' | b'\r'))
                .count();
            // YAML: what belongs to the key is indented.
            let below = match matches!(self.peek(0), b' ' | b'\t') {
                true => self.member_below(),
                false => 0,
            };
            if below > 0 {
                self.at += below;
            } else if self.blanks() == 0 && !self.alone_next() {
                return None;
            }
            let rest = self.rest();
            let word = rest.iter().take_while(|b| !b.is_ascii_whitespace()).count();
            if rest[..word].ends_with(b":") || rest.starts_with(b"- ") {
                return None;
            }
        }
        if sep == Sep::Colon {
            self.at += self.block_mark();
        }
        if sep == Sep::Colon && self.starts("() => ") {
            self.at += 6;
        }
        if matches!(sep, Sep::Equals | Sep::Colon) {
            self.at += self.tag();
            self.at += fallback(self.rest());
            self.at += wrapping(self.rest());
            if let Some((open, close)) = perl_quote(self.rest()) {
                let start = self.at + open;
                let body = &self.text[start..self.ceil.min(start + BARE_BYTES_MAX)];
                if let Some(len) = body.iter().position(|b| *b == close) {
                    return self.finish(start, start + len, true, Ends::Here);
                }
            }
        }
        // Rust, Python, C#: r"", b"", f"", @"", $""; YAML tags; calls such as `String::from("`.
        if matches!(self.peek(0), b'b' | b'r' | b'f' | b'u' | b'@' | b'L')
            && matches!(self.peek(1), b'"' | b'\'')
        {
            self.at += 1;
        }
        // `*Password:* aB3xyz9`, `Password:<br>aB3xyz9`: what dresses the name up ends behind the sign.
        match (self.peek(0), self.peek(1)) {
            (b'*', b'*') => self.at += 2,
            (b'_', b'_') if self.peek(2) == b' ' => self.at += 2,
            (b'*' | b'_', b' ') => self.at += 1,
            (b'<', b'b' | b'B') => self.at += line_break(self.rest()),
            _ => {}
        }
        self.blanks();
        // The first of a list; C and Java write those in braces.
        if matches!(self.peek(0), b'[' | b'(' | b'{') {
            let blank = usize::from(self.peek(1) == b' ');
            if matches!(self.peek(1 + blank), b'"' | b'\'') && (blank == 0 || self.peek(0) == b'{')
            {
                self.at += 1 + blank;
            }
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
        if let Some(len) = self.monospaced() {
            let start = self.at + 2;
            return self.finish(start, start + len, true, Ends::Here);
        }
        // TOML and Python, in several lines: `"""\` and the value below.
        if self.starts("\"\"\"") || self.starts("'''") {
            self.at += 3;
            self.at += usize::from(self.peek(0) == b'\\');
            let white = |b: &&u8| b.is_ascii_whitespace();
            self.at += self.rest().iter().take(40).take_while(white).count();
            let start = self.at;
            let word = self.rest().iter().take(BARE_BYTES_MAX);
            let word = word.take_while(|b| b.is_ascii_graphic() && !b"\"'\\".contains(b));
            let len = word.count();
            return self.finish(start, start + len, true, Ends::Here);
        }
        if let Some((open, close)) = opening(self.rest()) {
            self.at += open.len();
            let rest = &self.rest()[..self.rest().len().min(BARE_BYTES_MAX)];
            // One that is not closed hides no value: it is read as if it were not there.
            if let Some(len) = memchr::memmem::find(rest, close.as_bytes()) {
                return self.finish(self.at, self.at + len, true, Ends::Here);
            }
        }
        let escaped = self.peek(0) == b'\\' && matches!(self.peek(1), b'"' | b'\'');
        self.at += usize::from(escaped);
        let quote = self.peek(0);
        if matches!(quote, b'"' | b'\'' | b'`') {
            self.at += 1;
            let start = self.at;
            if let Some(end) = self.quoted_end(quote, escaped) {
                return self.finish(start, end, true, Ends::Here);
            }
            let ends = Ends::Quote { quote, escaped };
            let read = &self.text[start..self.ceil];
            let cut = self.ceil < self.end && read.iter().all(|b| !ends.at(*b));
            return self.finish(start, self.ceil, true, ends).filter(|_| cut);
        }
        if sep == Sep::Loose && !self.loose_ok() {
            return None;
        }
        let whole_line = line && matches!(sep, Sep::Equals | Sep::Colon);
        let start = self.at;
        let mut end = start;
        let ceil = self.ceil.min(start + BARE_BYTES_MAX);
        if sep == Sep::Tag
            && let Some(close) = self
                .rest()
                .iter()
                .take(BARE_BYTES_MAX)
                .position(|b| *b == b'<')
            && self.rest()[close..].starts_with(b"</")
        {
            let text = &self.text[start..start + close];
            end = start + text.strip_suffix(b"]]>").unwrap_or(text).len();
        }
        while end < ceil
            && (!stops(self.text[end], whole_line) || whole_line && self.is_inner_tick(start, end))
        {
            end += 1;
        }
        if end < ceil {
            end += self.signed_on(start, end);
        }
        let cut = self.text[start..end].iter().position(|b| *b >= 0x80);
        let behind = |cut: usize| &self.text[start + cut..end];
        if let Some(cut) = cut.filter(|cut| {
            *cut >= 5 && begins_sign(behind(*cut)) || *cut >= 12 && begins_ending(behind(*cut))
        }) {
            end = start + cut;
        }
        let ends = Ends::Bare { whole_line };
        if end == ceil && end < self.end && !ends.at(self.text[end]) {
            return self.finish(start, end, false, ends);
        }
        while end > start && matches!(self.text[end - 1], b',' | b';' | b'.' | b'"' | b'\'') {
            end -= 1;
        }
        self.finish(start, end, false, Ends::Here)
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

    /// `<key>password</key><string>...`, `<td>password</td><td><code>...`
    fn xml_value(&mut self) {
        for _ in 0..XML_TAGS_MAX {
            let rest = self.rest();
            let blanks = rest
                .iter()
                .take(40)
                .take_while(|b| b.is_ascii_whitespace())
                .count();
            let tag = &rest[blanks..];
            if tag.starts_with(b"<![CDATA[") {
                self.at += blanks + 9;
                return;
            }
            let close = tag.iter().take(48).position(|b| *b == b'>');
            let (Some(b'<'), Some(close)) = (tag.first(), close) else {
                return;
            };
            self.at += blanks + close + 1;
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

    fn finish(
        &self,
        start: usize,
        end: usize,
        quoted: bool,
        ends: Ends,
    ) -> Option<(Span, bool, Ends)> {
        let span = trim(self.text, Span::new(start, end.min(self.ceil)));
        (!span.is_empty()).then_some((span, quoted, ends))
    }
}

/// Long, with letters and figures in no order.
pub(super) fn drawn_key(word: &[u8]) -> bool {
    let c = crate::entropy::Classes::of(word);
    let few = c.digit >= 2 && c.lower >= 4 && c.upper >= 4 && c.changes >= 12;
    word.len() >= 20 && (c.digit >= 4 && c.letters() >= 4 && c.changes >= 6 || few)
}

/// ` for the shop`, ` do banco`: how long the words are that say whose password it is.
pub(super) fn whose(rest: &[u8]) -> usize {
    const WORDS_BYTES_MAX: usize = 40;
    let rest = &rest[..rest.len().min(WORDS_BYTES_MAX)];
    let Some((b' ', words)) = rest.split_first() else {
        return 0;
    };
    let lead = words.split(|b| *b == b' ').next().unwrap_or_default();
    if !LEADS.iter().any(|l| l.as_bytes() == lead) {
        return 0;
    }
    let word = |b: &&u8| b.is_ascii_alphanumeric() || **b >= 0x80 || b" _-.".contains(b);
    let len = words.iter().take_while(word).count();
    let len = words[..len].trim_ascii_end().len();
    let n = words[..len].split(|b| *b == b' ').count();
    if (2..=4).contains(&n) { 1 + len } else { 0 }
}

impl Ends {
    /// Is the byte no part of the value?
    pub(super) fn at(self, b: u8) -> bool {
        match self {
            Self::Here => true,
            Self::Bare { whole_line } => stops(b, whole_line),
            Self::Quote { quote, escaped } => {
                !b.is_ascii_graphic() || b == quote || escaped && b == b'\\'
            }
            Self::Blank => !b.is_ascii_graphic(),
        }
    }
}

/// Ends a value that is not in quotes.
pub(super) fn stops(b: u8, whole_line: bool) -> bool {
    b.is_ascii_whitespace()
        || matches!(b, b'"' | b'\'' | b'\\' | b'`' | 0x1E | 0x1F)
        || (!whole_line
            && matches!(
                b,
                b',' | b';' | b'<' | b'>' | b')' | b']' | b'}' | b'|' | b'&'
            ))
}
