//! What may stand between a name and its value: bounds of an array, types and tags, notes of a page's snapshot, accessors, pictures,
//! dashes and dots that lead the eye; and how far a value goes that no quotation marks end.

use super::BARE_BYTES_MAX;
use super::looks::opening;
use super::reader::{Reader, drawn_key, stops, whose};
use crate::names::Promise;

/// Does the name stand in a heading of Markdown, a wiki or Org?
fn is_heading(text: &[u8], name: usize) -> bool {
    const LINE_BYTES_MAX: usize = 80;
    let before = &text[name.saturating_sub(LINE_BYTES_MAX)..name];
    let Some(line) = before.rsplit(|b| matches!(b, b'\n' | 0x1E | 0x1F)).next() else {
        return false;
    };
    let line = line.trim_ascii_start();
    let marks = line.iter().take_while(|b| b"#=*".contains(b)).count();
    let ticket = matches!(line, [b'h', b'1'..=b'6', b'.', b' ', ..]);
    let mark = line.get(..marks).unwrap_or_default();
    let plain = mark.starts_with(b"#") || marks >= 2;
    ticket || plain && line.get(marks) == Some(&b' ')
}

/// Ends of lines that a text begins with: one, or one and an empty line.
fn line_ends(text: &[u8]) -> usize {
    let ends = text.iter().take(4);
    ends.take_while(|b| matches!(b, b'\n' | b'\r')).count()
}

/// An element's line without what numbers it: `- `, `uid=2_2 `, `[13] `, `AX`.
fn without_mark(line: &[u8]) -> &[u8] {
    const MARK_BYTES_MAX: usize = 16;
    if let Some(rest) = line.strip_prefix(b"- ").or(line.strip_prefix(b"AX")) {
        return rest;
    }
    let numbers = line.starts_with(b"uid=") || line.starts_with(b"[");
    let blank = line.iter().take(MARK_BYTES_MAX).position(|b| *b == b' ');
    match blank {
        Some(at) if numbers => &line[at + 1..],
        _ => line,
    }
}

impl Reader<'_> {
    /// C: `char name[] = `, `name[33] = `. The bounds are skipped.
    pub(super) fn bounds(&mut self) {
        const BOUND_BYTES_MAX: usize = 24;
        let Some(inner) = self.rest().strip_prefix(b"[") else {
            return;
        };
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'+' | b' ');
        let len = inner
            .iter()
            .take(BOUND_BYTES_MAX)
            .take_while(|b| part(b))
            .count();
        let behind = inner.get(len..).unwrap_or_default();
        let Some(behind) = behind.strip_prefix(b"]") else {
            return;
        };
        if matches!(behind.trim_ascii_start(), [b'=', sign, ..] if *sign != b'=') {
            self.at += len + 2;
        }
    }

    /// `textbox "Password" [ref=e48]: `: what a snapshot of a page notes of an element stands between its name and its value.
    pub(super) fn reference(&mut self) {
        const NOTES_MAX: usize = 4;
        const NOTE_BYTES_MAX: usize = 24;
        let mut at = 0;
        let rest = self.rest();
        for _ in 0..NOTES_MAX {
            let Some(note) = rest[at..].strip_prefix(b" [") else {
                break;
            };
            let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'=' | b'-' | b'_');
            let len = note
                .iter()
                .take(NOTE_BYTES_MAX)
                .take_while(|b| part(b))
                .count();
            if note.get(len) != Some(&b']') {
                return;
            }
            at += 2 + len + 1;
        }
        if rest.get(at) == Some(&b':') {
            self.at += at;
        }
    }

    /// `## Password of the router`, `== Admin password ==`: how long the rest of a heading is, where its value stands below it.
    pub(super) fn rest_of_heading(&self, name: usize) -> usize {
        const REST_BYTES_MAX: usize = 48;
        let rest = &self.rest()[..self.rest().len().min(REST_BYTES_MAX)];
        if rest.first() != Some(&b' ') {
            return 0;
        }
        // Another word behind the name is what the heading is about: `Password manager`.
        let len = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(0);
        let told = &rest[..len];
        let closes = told.iter().all(|b| b" =#*".contains(b)) || told.starts_with(b" (");
        match len > 0 && (closes || whose(told) == len) && is_heading(self.text, name) {
            true => len,
            false => 0,
        }
    }

    /// Under a heading the value may stand alone, in a block of its own, or be what a page's snapshot tells of the next element. `from`
    /// is where the name ends. Steps to the value.
    pub(super) fn block_below(&mut self, from: usize) -> bool {
        let ruled = self.rule_below();
        let fenced = self.fence_below();
        if ruled || fenced || is_heading(self.text, from) {
            // A list of one, a quotation.
            if !fenced && matches!(self.peek(0), b'-' | b'*' | b'>') && self.peek(1) == b' ' {
                self.at += 2;
            }
            return self.word_alone(fenced);
        }
        self.element_below()
    }

    /// The line under a title: `-----`; behind it a sign for a block (reStructuredText).
    fn rule_below(&mut self) -> bool {
        let rest = self.rest();
        let sign = self.peek(0);
        let len = rest.iter().take(80).take_while(|b| **b == sign).count();
        let lines = line_ends(&rest[len.min(rest.len())..]);
        let is = matches!(sign, b'-' | b'=' | b'~' | b'^') && len >= 4 && lines > 0;
        if is {
            self.at += len + lines;
            if self.rest().starts_with(b"::\n") {
                self.at += 2 + line_ends(&self.rest()[2..]);
            }
            self.blanks();
        }
        is
    }

    fn fence_below(&mut self) -> bool {
        const FENCES: [&str; 7] = [
            "```",
            "~~~\n",
            "{code",
            "{noformat",
            "#+begin",
            "#+BEGIN",
            "<pre>",
        ];
        const INFO_BYTES_MAX: usize = 32;
        let rest = self.rest();
        let fence = FENCES.iter().any(|f| rest.starts_with(f.as_bytes()));
        let end = rest.iter().take(INFO_BYTES_MAX).position(|b| *b == b'\n');
        if let (true, Some(end)) = (fence, end) {
            self.at += end + 1;
            self.blanks();
            return true;
        }
        false
    }

    /// One word with a figure in it that is all of its line, and of its block; or a phrase in a block.
    fn word_alone(&self, fenced: bool) -> bool {
        const ENDS: [&str; 7] = [
            "```",
            "~~~",
            "{code}",
            "{noformat}",
            "#+end",
            "#+END",
            "</pre>",
        ];
        let rest = &self.rest()[..self.rest().len().min(BARE_BYTES_MAX)];
        let mut lines = rest.split(|b| *b == b'\n');
        let line = lines.next().unwrap_or_default().trim_ascii_end();
        let next = lines.next().unwrap_or_default().trim_ascii();
        let ends = match fenced {
            true => ENDS.iter().any(|end| next.starts_with(end.as_bytes())),
            false => next.is_empty(),
        };
        // A comment over a setting is no heading: `# Database password`, `DB_POOL_SIZE=10`.
        let setting = line.iter().skip(1).any(|b| matches!(b, b'=' | b':'))
            && line.first().is_some_and(u8::is_ascii_alphabetic)
            && line
                .iter()
                .take_while(|b| !matches!(b, b'=' | b':'))
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        if setting && !fenced {
            return false;
        }
        let sure = crate::value::is_told(line) || drawn_key(line);
        let word = line.len() >= 6
            && line.iter().all(u8::is_ascii_graphic)
            && line.iter().any(u8::is_ascii_digit)
            && (sure || crate::value::judge(line, Promise::Password, false).is_some());
        ends && (word || fenced && crate::value::is_passphrase(line, false))
    }

    /// `- code: ...`, `- generic [ref=e9]: ...`, `uid=2_2 StaticText "..."`: the next element of a page.
    fn element_below(&mut self) -> bool {
        const ROLES: [&str; 15] = [
            "code",
            "text",
            "generic",
            "definition",
            "strong",
            "paragraph",
            "cell",
            "textbox",
            "gridcell",
            "listitem",
            "term",
            "status",
            "emphasis",
            "StaticText",
            "TextField",
        ];
        let rest = self.rest();
        let marked = without_mark(rest);
        let role = ROLES.iter().find(|role| {
            let behind = marked.strip_prefix(role.as_bytes());
            behind.is_some_and(|b| matches!(b.first(), Some(b' ' | b':')))
        });
        let Some(role) = role else {
            return false;
        };
        let mut behind = Reader {
            at: self.at + (rest.len() - marked.len()) + role.len(),
            ..*self
        };
        behind.reference();
        let known = match (behind.peek(0), behind.peek(1)) {
            (b':', b' ') if marked.len() < rest.len() => {
                behind.at += 2;
                behind.word_of_element()
            }
            (b' ', quote @ (b'"' | b'\'')) => {
                behind.at += 1;
                let inner = &behind.rest()[1..];
                let inner = &inner[..inner.len().min(BARE_BYTES_MAX)];
                let inner = inner.split(|b| *b == quote || *b == b'\n').next();
                inner.is_some_and(|inner| {
                    crate::value::is_chosen(inner) || crate::value::stands_alone(inner)
                })
            }
            _ => false,
        };
        if known {
            self.at = behind.at;
        }
        known
    }

    /// Nothing else in the element, and no word of a page.
    fn word_of_element(&self) -> bool {
        let rest = &self.rest()[..self.rest().len().min(BARE_BYTES_MAX)];
        let line = rest.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = line.trim_ascii_end();
        let quoted = line.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\""));
        let line = quoted.unwrap_or(line);
        let made = || crate::value::judge(line, Promise::Strong, false).is_some();
        !line.contains(&b' ') && (crate::value::is_told(line) || made())
    }

    /// C#: `Name { get; set; } = `. The accessors are skipped.
    pub(super) fn accessors(&mut self) {
        let rest = &self.rest()[..self.rest().len().min(48)];
        if (rest.starts_with(b"{ get") || rest.starts_with(b"{get"))
            && let Some(end) = rest.iter().position(|b| *b == b'}')
        {
            self.at += end + 1;
            self.blanks();
        }
    }

    /// COBOL: `PIC X(14) VALUE '...'`; how far it is to the value.
    pub(super) fn picture(&self) -> Option<usize> {
        let rest = &self.rest()[..self.rest().len().min(40)];
        memchr::memmem::find(rest, b"VALUE ").map(|at| at + 6)
    }

    /// `: String by lazy { "..."`, in Kotlin: how far it is to the literal.
    pub(super) fn lazily(&self) -> usize {
        let rest = &self.rest()[..self.rest().len().min(48)];
        let Some(at) = memchr::memmem::find(rest, b"by lazy") else {
            return 0;
        };
        let typed = |b: &u8| b.is_ascii_alphanumeric() || b": <>?.".contains(b);
        let open = rest[at..].iter().position(|b| *b == b'{');
        let behind = open.map_or(&b""[..], |open| rest[at + open + 1..].trim_ascii_start());
        let literal = matches!(behind.first(), Some(b'"'));
        match open {
            Some(open) if literal && rest[..at].iter().all(typed) => at + open + 1,
            _ => 0,
        }
    }

    /// `ENV.fetch("X") { "..." }`, in Ruby: nothing but a literal in the block.
    pub(super) fn quoted_block(&self) -> bool {
        let inner = &self.rest()[1..self.rest().len().min(4)];
        matches!(inner.trim_ascii_start().first(), Some(b'"' | b'\''))
    }

    /// `API_KEY — 5f4dcc...`: a dash that something follows that no sentence has in it. How far it is to that.
    pub(super) fn dash_next(&self) -> usize {
        const DASHES: [&str; 3] = ["— ", "– ", "- "];
        let dash = DASHES.iter().find(|dash| self.starts(dash));
        let len = dash.map_or(0, |dash| dash.len());
        let behind = Reader {
            at: self.at + len,
            ..*self
        };
        let next = || behind.generated_next() || behind.chosen_next() || behind.key_in_ticks();
        match len > 0 && next() {
            true => len,
            false => 0,
        }
    }

    /// `: string =`, `: &str =`: skipped when an equals sign follows.
    pub(super) fn type_note(&mut self) {
        let rest = &self.rest()[..self.rest().len().min(48)];
        let from = usize::from(rest.first() == Some(&b':'));
        let Some(eq) = rest.iter().position(|b| *b == b'=') else {
            return;
        };
        // Ada and Pascal: `: String := "..."`.
        let note = &rest[from..eq];
        let word = |note: &&[u8]| !note.trim_ascii().contains(&b' ');
        let note = note.strip_suffix(b":").filter(word).unwrap_or(note);
        // `&[u8; 32]`, `char[17]`
        let array = note.contains(&b'[');
        // `KEY: X509KeyUsageFlags = 4`: a type of three words and more may have a number in it.
        let humps = note
            .windows(2)
            .filter(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase());
        let numbered = rest[from..eq].ends_with(b" ") && humps.count() >= 2 && word(&note);
        let plain = note.iter().all(|b| {
            numbered && b.is_ascii_digit()
                || b.is_ascii_alphabetic()
                || matches!(b, b' ' | b'&' | b'<' | b'>' | b'?' | b'|' | b'\'')
                || array && (b.is_ascii_digit() || matches!(b, b'[' | b']' | b';'))
        });
        if eq > from + 2
            && plain
            && note.iter().any(u8::is_ascii_alphabetic)
            && rest.get(eq + 1) != Some(&b'=')
        {
            self.at += eq;
        }
    }

    /// `Password ........ Tq7m!Z2vX`, as forms lead the eye: the dots are skipped.
    pub(super) fn leaders(&mut self) -> bool {
        let dots = self.rest().iter().take(80).take_while(|b| **b == b'.');
        let dots = dots.count();
        if dots >= 3 && self.peek(dots) == b' ' {
            self.at += dots;
            self.blanks();
            return true;
        }
        false
    }

    /// `variable "x" { default = `: how far it is to the value.
    pub(super) fn block_default(&self) -> Option<usize> {
        let rest = &self.rest()[..self.rest().len().min(160)];
        let at = memchr::memmem::find(rest, b"default")
            .or_else(|| memchr::memmem::find(rest, b"value"))?;
        let eq = rest[at..].iter().position(|b| *b == b'=')?;
        (!rest[..at].contains(&b'}')).then_some(at + eq + 1)
    }

    /// `"name": "X", "value": `, in a piece of JSON: how far it is to the value.
    pub(super) fn value_member(&self) -> Option<usize> {
        let rest = &self.rest()[..self.rest().len().min(32)];
        let skip = |from: usize| {
            let part = |b: &u8| matches!(b, b' ' | b'\n' | b'\t' | b'\\' | b'"' | b'\'');
            from + rest[from..].iter().take_while(|b| part(b)).count()
        };
        let word = skip(1);
        let letters = rest[word..].iter().take_while(|b| b.is_ascii_alphabetic());
        let called = &rest[word..word + letters.count()];
        let named = [&b"value"[..], b"val"]
            .iter()
            .any(|w| called.eq_ignore_ascii_case(w));
        let sign = skip(word + called.len());
        (named && word > 1 && matches!(rest.get(sign), Some(b':' | b'='))).then_some(sign + 1)
    }

    /// `!!binary ZGt...`, `!!str x`: how long the tag is that YAML gives the type by.
    pub(super) fn tag(&self) -> usize {
        let Some(rest) = self.rest().strip_prefix(b"!!") else {
            return 0;
        };
        let word = rest.iter().take(12);
        let word = word.take_while(|b| b.is_ascii_lowercase()).count();
        let blank = rest.get(word) == Some(&b' ');
        if word > 0 && blank { 2 + word + 1 } else { 0 }
    }

    /// `>-`, `|`, at the end of a line: what YAML begins a value below with. How far it is to that.
    pub(super) fn block_mark(&self) -> usize {
        const INDENT_MAX: usize = 40;
        let rest = self.rest();
        if !matches!(rest.first(), Some(b'>' | b'|')) {
            return 0;
        }
        let mark = 1 + usize::from(matches!(rest.get(1), Some(b'-' | b'+')));
        let line = mark + usize::from(rest.get(mark) == Some(&b'\r'));
        let blanks = rest.iter().skip(line + 1).take(INDENT_MAX);
        let blanks = blanks.take_while(|b| **b == b' ').count();
        match rest.get(line) {
            Some(b'\n') if blanks > 0 => line + 1 + blanks,
            _ => 0,
        }
    }

    /// Something drawn that is all of its line and gives nothing a value: `KEY=` stands over it.
    pub(super) fn key_alone(&self) -> bool {
        let rest = &self.rest()[..self.rest().len().min(BARE_BYTES_MAX)];
        let line = rest.split(|b| matches!(b, b'\n' | b'\r')).next();
        let line = line.unwrap_or_default().trim_ascii_end();
        let padding = line.iter().rev().take_while(|b| **b == b'=').count();
        let body = &line[..line.len() - padding];
        let part = |b: &u8| b.is_ascii_alphanumeric() || b"+/_-".contains(b);
        padding <= 2 && body.iter().all(part) && drawn_key(body)
    }

    /// `{{ .Values.password | b64enc | quote }}`: what the value goes through.
    pub(super) fn in_template(&self) -> bool {
        const REACH: usize = 80;
        let before = &self.text[self.at.saturating_sub(REACH)..self.at];
        let line = &before[memchr::memrchr(b'\n', before).map_or(0, |n| n + 1)..];
        let open = memchr::memmem::rfind(line, b"{{");
        let close = memchr::memmem::rfind(line, b"}}");
        let ends = memchr::memmem::find(&self.rest()[..self.rest().len().min(REACH)], b"}}");
        ends.is_some() && open.is_some_and(|open| close.is_none_or(|close| close < open))
    }

    /// Does a bracket open here, and a text in quotation marks in it?
    pub(super) fn call_of_literal(&self) -> bool {
        let quote = |b: u8| matches!(b, b'"' | b'\'' | b'`');
        self.peek(0) == b'('
            && (quote(self.peek(1)) || self.peek(1) == b'\\' && quote(self.peek(2)))
    }

    /// How far a value without quotes goes on behind a sign that ends most of them: `un09kiwt!j^b1o4)*za_-r`, to the next blank, if
    /// no code or query looks like all of it.
    pub(super) fn signed_on(&self, start: usize, end: usize) -> usize {
        let behind = &self.text[end..self.ceil.min(start + BARE_BYTES_MAX)];
        let len = behind.iter().take_while(|b| !stops(**b, true)).count();
        // The sign may be the sentence's, the list's or the query's.
        let goes_on = len > 4
            && matches!(
                behind[0],
                b',' | b')' | b']' | b'}' | b'&' | b';' | b'|' | b'<' | b'>'
            )
            && !behind[..len].contains(&b'=');
        let value = &self.text[start..end + len];
        // What closes the sentence, the list or the code around it is none of it.
        let closing = value.iter().rev().take_while(|b| b")]}>,;".contains(b));
        let inner = &value[..value.len() - closing.count()];
        if goes_on && inner.len() > end - start && crate::value::is_bracketed(inner) {
            return inner.len() - (end - start);
        }
        let signs = value.iter().filter(|b| b"!@#$%^*~?+".contains(b)).count();
        match goes_on
            && (signs >= 2 || crate::value::is_scattered(value))
            && crate::value::stands_alone(value)
        {
            true => len,
            false => 0,
        }
    }

    /// `{{5f4dcc...}}`, as Jira's and Confluence's markup writes code: how long it is, if it can be no variable's name.
    pub(super) fn monospaced(&self) -> Option<usize> {
        let body = self.rest().strip_prefix(b"{{")?;
        let len = body
            .iter()
            .take(BARE_BYTES_MAX)
            .take_while(|b| b.is_ascii_graphic() && !matches!(b, b'{' | b'}' | b'(' | b'|'))
            .count();
        let c = crate::entropy::Classes::of(&body[..len]);
        let generated = c.digit >= 2 && c.changes >= 4 || len >= 20 && c.changes >= 6;
        (body[len..].starts_with(b"}}") && generated).then_some(len)
    }

    /// ` translatable="false">`: what a tag says besides the name, up to its end.
    pub(super) fn attributes(&self) -> usize {
        const BYTES_MAX: usize = 64;
        let rest = &self.rest()[..self.rest().len().min(BYTES_MAX)];
        let Some(end) = memchr::memchr(b'>', rest) else {
            return 0;
        };
        let said = &rest[..end];
        let own = |b: &u8| b.is_ascii_alphanumeric() || b" =\"':_-".contains(b);
        let whole = said.ends_with(b"\"") && said.iter().all(own);
        if whole { end + 1 } else { 0 }
    }

    /// `密码 fRgkOptcn39`: letters and digits of ASCII, which words of such a language have not.
    pub(super) fn foreign_next(&self) -> bool {
        let rest = &self.rest()[..self.rest().len().min(64)];
        let len = rest.iter().take_while(|b| b.is_ascii_graphic()).count();
        let word = &rest[..len];
        let dots = word
            .iter()
            .rev()
            .take_while(|b| b".,;:".contains(b))
            .count();
        let word = &word[..len - dots];
        let c = crate::entropy::Classes::of(word);
        let plain = |b: &u8| b.is_ascii_alphanumeric() || b"!@#$%^&*?-_.+=~".contains(b);
        (6..64).contains(&word.len())
            && word.iter().all(plain)
            && c.digit > 0
            && c.letters() > 1
            && !crate::value::is_mail(word)
    }

    /// `getByLabel("Password").fill("...")`: how long the call is that types the value.
    pub(super) fn typed_in(&self) -> usize {
        const CALLS: [&str; 6] = [
            ".fill(",
            ".type(",
            ".sendKeys(",
            ".send_keys(",
            ".setValue(",
            ".pressSequentially(",
        ];
        let call = CALLS.iter().find(|call| self.starts(call));
        call.map_or(0, |call| call.len())
    }

    /// How long the particle is that a quotation mark of Japanese follows.
    pub(super) fn particle_to_quote(&self) -> usize {
        const PARTICLES: [&str; 3] = ["を", "は", "が"];
        let particle = PARTICLES.iter().find(|p| self.starts(p));
        particle.map_or(0, |p| match opening(&self.rest()[p.len()..]) {
            Some(_) => p.len(),
            None => 0,
        })
    }

    /// ``DB_PASSWORD=Kestr`8tundra``: a backtick within a value that is all of its line opens and closes nothing.
    pub(super) fn is_inner_tick(&self, start: usize, at: usize) -> bool {
        let beside = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        self.text[at] == b'`' && at > start && beside(at - 1) && beside(at + 1)
    }

    /// `DB_PASSWORD,u8K2rTqa1,2025-02-01`: the next field of a line whose first field the name is.
    pub(super) fn field_next(&self) -> bool {
        let rest = self.rest();
        let mut field = rest[1..].split(|b| *b == rest[0] || matches!(b, b'\n' | b'\r'));
        let field = field.next().unwrap_or_default();
        let c = crate::entropy::Classes::of(&field[..field.len().min(BARE_BYTES_MAX)]);
        let graphic = field.iter().all(u8::is_ascii_graphic);
        graphic && field.len() >= 8 && c.digit >= 1 && c.letters() >= 2 && c.changes >= 2
    }
}
