//! Where strings, quoted names and comments begin and end: what stands outside of them is the statement.
//!
//! The parser has its own opinion, and servers have theirs: about backslashes, dollars, brackets, what begins a
//! comment and what ends it, and whether an operator may hold one. Text that one takes for a string and another for
//! a statement is how a write gets past a reader. So a text is read once more here, by the few rules of the server
//! that it is for, and what the parser did not cut at the very same bytes is refused.

use std::borrow::Cow;

use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Whitespace};

use crate::DialectName;
use crate::reading::is_money;

/// Something that is no statement, by its bytes: from its opening quote or sign to behind its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    start: usize,
    end: usize,
    is_comment: bool,
}

/// How a server tells strings, names and comments from the rest.
#[derive(Debug, Clone, Copy, Default)]
struct Lexis {
    /// In strings a backslash takes the next character with it.
    backslashes: bool,
    /// `--` begins a comment only before a blank.
    dashes_need_blank: bool,
    /// `#` begins a comment.
    sharps: bool,
    /// Comments count the ones they hold.
    nested: bool,
    /// A carriage return ends a line's comment.
    returns: bool,
    /// A backtick begins a name.
    backticks: bool,
    /// `[` begins a name.
    brackets: Brackets,
    /// `$tag$`, `E'...'` and `U&'...'`.
    dollars: bool,
    /// `$name(...)` is a parameter, whatever the brackets hold.
    variables: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Brackets {
    #[default]
    None,
    /// `]]` is a `]` of the name.
    Doubled,
    First,
}

const POSTGRES: Lexis = Lexis {
    backslashes: false,
    dashes_need_blank: false,
    sharps: false,
    nested: true,
    returns: true,
    backticks: false,
    brackets: Brackets::None,
    dollars: true,
    variables: false,
};
const MYSQL: Lexis = Lexis {
    backslashes: true,
    dashes_need_blank: true,
    sharps: true,
    nested: false,
    returns: false,
    backticks: true,
    brackets: Brackets::None,
    dollars: false,
    variables: false,
};
const MSSQL: Lexis = Lexis {
    backslashes: false,
    dashes_need_blank: false,
    sharps: false,
    nested: true,
    returns: false,
    backticks: false,
    brackets: Brackets::Doubled,
    dollars: false,
    variables: false,
};
const SQLITE: Lexis = Lexis {
    backslashes: false,
    dashes_need_blank: false,
    sharps: false,
    nested: false,
    returns: false,
    backticks: true,
    brackets: Brackets::First,
    dollars: false,
    variables: true,
};

/// Whether the server cuts the text where the parser did.
pub(crate) fn agree(dialect: DialectName, sql: &str, tokens: &[TokenWithSpan]) -> bool {
    let servers: &[Lexis] = match dialect {
        DialectName::Postgres => &[POSTGRES],
        DialectName::Mysql => &[MYSQL],
        DialectName::Mssql => &[MSSQL],
        DialectName::Sqlite => &[SQLITE],
        DialectName::Generic => &[POSTGRES, MYSQL, MSSQL, SQLITE],
    };
    // An index or a plain name between other signs is no string to anybody.
    let counts = |region: &Region| {
        dialect != DialectName::Generic || !is_plain_name(&sql[region.start..region.end])
    };
    let Some(parsed) = of_tokens(dialect, sql, tokens) else {
        return false;
    };
    servers.iter().all(|server| {
        server.regions(sql).is_some_and(|regions| {
            let regions = regions.iter().filter(|region| counts(region));
            regions.eq(parsed.iter().filter(|region| counts(region)))
        })
    })
}

/// The text with blanks for the two dashes that are all there is on a line, or at the end: a comment to MySQL, which the
/// parser only takes for one before a space.
pub(crate) fn without_bare_dashes(dialect: DialectName, sql: &str) -> Cow<'_, str> {
    let regions = match dialect {
        DialectName::Mysql if sql.contains("--") => MYSQL.regions(sql),
        _ => None,
    };
    let is_blank = |text: &str| text.bytes().all(|b| b" \t\r\n".contains(&b));
    let is_bare = |region: &&Region| {
        // Two dashes end their line, so none is looked at twice.
        let line = || sql[..region.start].rsplit('\n').next();
        &sql[region.start..region.end] == "--"
            && (line().is_some_and(is_blank) || is_blank(&sql[region.end..]))
    };
    let mut text = String::new();
    let mut at = 0;
    for region in regions.iter().flatten().filter(is_bare) {
        text.push_str(&sql[at..region.start]);
        text.push_str("  ");
        at = region.end;
    }
    match at {
        0 => Cow::Borrowed(sql),
        at => Cow::Owned(text + &sql[at..]),
    }
}

fn is_plain_name(text: &str) -> bool {
    let inner = match text.as_bytes() {
        [b'[', inner @ .., b']'] | [b'`', inner @ .., b'`'] => inner,
        _ => return false,
    };
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_ $,.:".contains(b);
    inner.iter().all(plain)
}

/// The regions that the parser saw; nothing if a token is not what is written there.
fn of_tokens(dialect: DialectName, sql: &str, tokens: &[TokenWithSpan]) -> Option<Vec<Region>> {
    let mut regions = Vec::new();
    let mut chars = Chars::new(sql);
    let mut before: Option<&Token> = None;
    for TokenWithSpan { token, span } in tokens {
        let start = chars.at;
        let end = chars.go_to(span.end)?;
        let raw = &sql[start..end];
        match token {
            Token::Whitespace(Whitespace::SingleLineComment { .. }) => {
                let text = raw.trim_end_matches(['\r', '\n']);
                // What ends a line, or a text, for one of them.
                if text.chars().any(ends_a_line) {
                    return None;
                }
                regions.push(Region {
                    start,
                    end: start + text.len(),
                    is_comment: true,
                });
            }
            Token::Whitespace(Whitespace::MultiLineComment(_)) => regions.push(Region {
                start,
                end,
                is_comment: true,
            }),
            _ => match opening(token, raw) {
                Some(quote) => regions.push(Region {
                    start: start + quote,
                    end,
                    is_comment: false,
                }),
                None if is_as_written(token, raw) && !are_glued(dialect, before, token) => {}
                None => return None,
            },
        }
        before = Some(token);
    }
    (chars.at == sql.len()).then_some(regions)
}

/// Where a string or a quoted name of the parser has its opening quote.
fn opening(token: &Token, raw: &str) -> Option<usize> {
    match token {
        Token::Word(word) => word.quote_style.map(|_| 0),
        Token::DollarQuotedString(_) => Some(0),
        // Without a quote it is a number: `0x1f`.
        Token::HexStringLiteral(_) => raw.find('\''),
        token if is_string(token) => raw.find(['\'', '"']),
        _ => None,
    }
}

/// Strings of every kind, save numbers in hexadecimal and what stands between dollars.
pub(crate) fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
    )
}

/// Whether a token of the statement is what is written: some take a character more with them, and blanks that only
/// some servers know as such are letters to others.
fn is_as_written(token: &Token, raw: &str) -> bool {
    let known = |c: char| match c {
        ' ' | '\t' | '\r' | '\n' => true,
        c if c.is_ascii() => c.is_ascii_graphic(),
        c => c.is_alphanumeric(),
    };
    raw.chars().all(known)
        && match token {
            Token::Whitespace(_) => true,
            Token::Neq => raw == "<>" || raw == "!=",
            Token::HexStringLiteral(digits) => raw.get(2..) == Some(digits),
            // Servers end a number where a letter begins, and some a statement: `$1DELETE`.
            Token::Placeholder(name) => raw == name && !is_number_with_letters(name),
            token => raw.trim_end() == token.to_string(),
        }
}

fn is_number_with_letters(parameter: &str) -> bool {
    let name = parameter.get(1..).unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_digit()) && !name.bytes().all(|b| b.is_ascii_digit())
}

/// Whether two words or numbers stand together without anything between: where the one ends is read in many ways.
fn are_glued(dialect: DialectName, before: Option<&Token>, token: &Token) -> bool {
    let is_number = |token: &Token| {
        matches!(
            token,
            Token::Number(..) | Token::HexStringLiteral(_) | Token::Placeholder(_)
        )
    };
    let Some(before) = before else { return false };
    match token {
        Token::Word(_) => is_number(before),
        Token::Number(..) if dialect == DialectName::Mssql && is_money(before, token) => false,
        Token::Number(..) => is_number(before) || matches!(before, Token::Word(_)),
        _ => false,
    }
}

fn ends_a_line(c: char) -> bool {
    c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Characters with the place that the tokenizer counts by.
struct Chars<'s> {
    sql: &'s str,
    at: usize,
    place: Location,
}

impl<'s> Chars<'s> {
    fn new(sql: &'s str) -> Self {
        let place = Location { line: 1, column: 1 };
        Self { sql, at: 0, place }
    }

    fn go_to(&mut self, place: Location) -> Option<usize> {
        while self.place < place {
            let c = self.sql[self.at..].chars().next()?;
            self.at += c.len_utf8();
            if c == '\n' {
                self.place.line += 1;
                self.place.column = 1;
            } else {
                self.place.column += 1;
            }
        }
        (self.place == place).then_some(self.at)
    }
}

impl Lexis {
    /// The regions of a text; nothing if one does not end, or nobody can say where.
    fn regions(&self, sql: &str) -> Option<Vec<Region>> {
        let bytes = sql.as_bytes();
        let mut regions = Vec::new();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let next = bytes.get(at + 1).copied();
            let start = at;
            let mut is_comment = false;
            match (byte, next) {
                (b'\'' | b'"', _) => at = quoted(bytes, at, self.backslashes)?,
                (b'`', _) if self.backticks => at = quoted(bytes, at, false)?,
                (b'[', _) if self.brackets != Brackets::None => at = self.bracketed(bytes, at)?,
                (b'-', Some(b'-')) if self.is_dashes(&sql[at + 2..])? => {
                    (at, is_comment) = (self.line(bytes, at), true);
                }
                (b'#', _) if self.sharps => (at, is_comment) = (self.line(bytes, at), true),
                (b'/', Some(b'*')) => (at, is_comment) = (self.block(bytes, at)?, true),
                (b'$', _) if self.dollars => match dollars(bytes, at) {
                    Dollars::Text(end) => at = end?,
                    Dollars::Other(end) => {
                        at = end;
                        continue;
                    }
                },
                // No variable: a cast to Postgres, an error to SQLite.
                (b':', Some(b':')) if self.variables => {
                    at += 2;
                    continue;
                }
                (b'$' | b'@' | b':' | b'#', _) if self.variables => {
                    at = variable(bytes, at + 1);
                    if at > start + 1 && bytes.get(at) == Some(&b'(') {
                        return None;
                    }
                    continue;
                }
                (b, _) if begins_word(b) => {
                    at = word(bytes, at);
                    if !self.dollars {
                        continue;
                    }
                    let rest = bytes.get(at..).unwrap_or_default();
                    let (quote, backslashes) = match (&bytes[start..at], rest) {
                        ([b'e' | b'E'], [b'\'', ..]) => (at, true),
                        ([b'u' | b'U'], [b'&', b'\'', ..]) => (at + 1, false),
                        _ => continue,
                    };
                    at = quoted(bytes, quote, backslashes)?;
                    regions.push(Region {
                        start: quote,
                        end: at,
                        is_comment,
                    });
                    // The next string would go on with this one, backslashes and all.
                    if self.goes_on(bytes, at) {
                        return None;
                    }
                    continue;
                }
                _ => {
                    at += 1;
                    continue;
                }
            }
            regions.push(Region {
                start,
                end: at,
                is_comment,
            });
        }
        Some(regions)
    }

    /// Whether the `--` before this begins a comment; nothing if that depends on the connection's character set.
    fn is_dashes(&self, behind: &str) -> Option<bool> {
        match behind.chars().next() {
            None => Some(true),
            Some(_) if !self.dashes_need_blank => Some(true),
            Some(c) if c.is_ascii() => Some(c == ' ' || c.is_ascii_control()),
            Some(c) if c.is_whitespace() || c.is_control() => None,
            Some(_) => Some(false),
        }
    }

    /// The end of a line's comment, without what ends the line.
    fn line(&self, bytes: &[u8], at: usize) -> usize {
        let ends = |b: &u8| *b == b'\n' || (self.returns && *b == b'\r');
        let mut end = bytes[at..]
            .iter()
            .position(ends)
            .map_or(bytes.len(), |n| at + n);
        while end > at && bytes[end - 1] == b'\r' {
            end -= 1;
        }
        end
    }

    fn block(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut at = at;
        loop {
            match (bytes.get(at)?, bytes.get(at + 1)?) {
                (b'/', b'*') if depth == 0 || self.nested => (depth, at) = (depth + 1, at + 2),
                (b'*', b'/') if depth == 1 => return Some(at + 2),
                (b'*', b'/') => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
        }
    }

    fn bracketed(&self, bytes: &[u8], at: usize) -> Option<usize> {
        let mut at = at + 1;
        loop {
            match (bytes.get(at)?, bytes.get(at + 1)) {
                (b']', Some(b']')) if self.brackets == Brackets::Doubled => at += 2,
                (b']', _) => return Some(at + 1),
                _ => at += 1,
            }
        }
    }

    /// Whether nothing but blanks and lines' comments stand before another string.
    fn goes_on(&self, bytes: &[u8], mut at: usize) -> bool {
        loop {
            match (bytes.get(at), bytes.get(at + 1)) {
                (Some(b'\''), _) => return true,
                (Some(b), _) if *b <= b' ' => at += 1,
                (Some(b'-'), Some(b'-')) => at = self.line(bytes, at),
                _ => return false,
            }
        }
    }
}

/// The end of what the quote at `at` begins; two of them are one of the text.
fn quoted(bytes: &[u8], at: usize, backslashes: bool) -> Option<usize> {
    let quote = bytes[at];
    let mut at = at + 1;
    loop {
        match *bytes.get(at)? {
            b'\\' if backslashes => at += 2,
            b if b == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            b if b == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

enum Dollars {
    /// The end of a string between two tags, if it has one.
    Text(Option<usize>),
    /// A parameter, or nothing.
    Other(usize),
}

fn dollars(bytes: &[u8], at: usize) -> Dollars {
    let mut end = at + 1;
    match bytes.get(end) {
        Some(b) if b.is_ascii_digit() => {
            while bytes.get(end).is_some_and(u8::is_ascii_digit) {
                end += 1;
            }
            return Dollars::Other(end);
        }
        _ => {
            while bytes.get(end).is_some_and(|b| *b != b'$' && is_of_word(*b)) {
                end += 1;
            }
        }
    }
    if bytes.get(end) != Some(&b'$') {
        return Dollars::Other(end);
    }
    let tag = &bytes[at..=end];
    let text = end + 1;
    let found = bytes[text..].windows(tag.len()).position(|w| w == tag);
    Dollars::Text(found.map(|n| text + n + tag.len()))
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_of_word(byte: u8) -> bool {
    begins_word(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// The end of a variable of SQLite, which goes on over `::`.
fn variable(bytes: &[u8], at: usize) -> usize {
    let mut at = word(bytes, at);
    while bytes.get(at..).is_some_and(|rest| rest.starts_with(b"::")) {
        at = word(bytes, at + 2);
    }
    at
}

fn word(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|b| is_of_word(*b)) {
        at += 1;
    }
    at
}
