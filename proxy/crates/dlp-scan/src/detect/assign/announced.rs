//! A value that the words around it tell of, with no sign right behind its name: `the password you wanted: ...`,
//! `... is the token for staging`, `... (api key)`, `# password of the shop` and a line below it that calls it `x`.
//!
//! Prose names passwords everywhere, so only what was drawn is taken, and nothing that another word names.

use super::reader::whose;
use crate::entropy::Classes;
use crate::names::{self, Promise};
use crate::text::Span;
use crate::value;

/// How far from a name its value is looked for.
const NEAR: usize = 140;
/// Longest value taken.
const VALUE_BYTES_MAX: usize = 256;
/// Words between a name and the sign after or before it.
const WORDS_MAX: usize = 12;
const WORDS_BEFORE_MAX: usize = 4;

/// Signs behind a value that say that its name follows.
const MARKS: [&str; 12] = [
    "(", "#", "//", "<!--", "/*", "<--", "<-", "←", "--", "—", "–", "[",
];
/// Verbs that do.
const IS: [&str; 12] = [
    " is",
    " is the",
    " is your",
    " is my",
    " is our",
    " was the",
    " as",
    " as the",
    " ist das",
    " est le",
    " es la",
    " is now the",
];
/// What a line begins with that tells of the next one.
const HEADS: [&str; 9] = ["#", "//", "--", ";", "/*", "<!--", "[", "(", "*"];

/// What is no secret though a sentence that speaks of one names it.
const OTHERS: &[&str] = &[
    "id",
    "ids",
    "hash",
    "checksum",
    "digest",
    "commit",
    "sha",
    "sha1",
    "sha256",
    "md5",
    "version",
    "url",
    "uri",
    "link",
    "ref",
    "reference",
    "uuid",
    "guid",
    "number",
    "no",
    "ticket",
    "trace",
    "request",
    "order",
    "file",
    "path",
    "name",
    "user",
    "username",
    "login",
    "email",
    "mail",
    "host",
    "policy",
    "fingerprint",
    "thumbprint",
    "expires",
    "expiry",
    "date",
    "at",
    "on",
    "since",
    "until",
    "format",
    "pattern",
    "regex",
    "example",
    "address",
    "branch",
    "tag",
    "build",
    "image",
    "etag",
    "nonce",
    "public",
    "issue",
    "bug",
    "see",
    "error",
    "code",
    "page",
    "docs",
    "account",
    "client",
    "device",
    "model",
    "serial",
    "type",
    "algorithm",
    "cipher",
    "signature",
    "job",
    "run",
    "artifact",
    "package",
    "release",
    "revision",
    "thread",
    "message",
    "channel",
    "key",
];

/// The value that is told of near the name, if it is one.
pub(super) fn announced(text: &[u8], name: Span, cell: Span, promise: Promise) -> Option<Span> {
    if promise < Promise::Strong || promise == Promise::Mnemonic {
        return None;
    }
    const BYTES_MIN: usize = 10;
    // Most names are all that stands in their cell.
    if cell.len() < name.len() + BYTES_MIN {
        return None;
    }
    let (floor, ceil) = (cell.start as usize, cell.end as usize);
    let (start, end) = (name.start as usize, name.end as usize);
    let floor = floor.max(start.saturating_sub(NEAR));
    let ceil = ceil.min(end + NEAR + VALUE_BYTES_MAX);
    let place = Place {
        text,
        before: floor..start,
        after: end..ceil,
        promise,
    };
    place
        .behind()
        .or_else(|| place.ahead())
        .or_else(|| place.below())
}

struct Place<'t> {
    text: &'t [u8],
    before: std::ops::Range<usize>,
    after: std::ops::Range<usize>,
    promise: Promise,
}

impl Place<'_> {
    fn line_behind(&self) -> &[u8] {
        let rest = &self.text[self.after.clone()];
        &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]
    }

    fn line_ahead(&self) -> &[u8] {
        let before = &self.text[self.before.clone()];
        &before[memchr::memrchr(b'\n', before).map_or(0, |n| n + 1)..]
    }

    /// `the password of the account you wanted: ...`
    fn behind(&self) -> Option<Span> {
        let line = self.line_behind();
        let words = &line[..line.len().min(NEAR)];
        if !matches!(words.first(), Some(b' ' | b',')) {
            return None;
        }
        let (mut at, sign) = first_sign(words)?;
        if at < 3 {
            return None;
        }
        let told = words[..at].trim_ascii();
        let mut spoken = told.split(|b| *b == b' ');
        let last = spoken.clone().next_back().unwrap_or_default();
        if spoken.by_ref().count() > WORDS_MAX || names_other(last) {
            return None;
        }
        at += sign;
        let behind = &line[at..];
        let blanks = behind
            .iter()
            .take_while(|b| b" \t\"'`*".contains(b))
            .count();
        let blanks = blanks + quote_len(&behind[blanks..]);
        let value = &behind[blanks..];
        let len = value_len(value);
        let ends = ends_here(&value[len..]);
        let start = self.after.start + at + blanks;
        (blanks > 0 && ends && self.is_value(&value[..len], false))
            .then(|| Span::new(start, start + len))
    }

    /// `... # token of the bot`, `... is the password`, and a line in brackets below a value.
    fn ahead(&self) -> Option<Span> {
        let line = self.line_ahead();
        let behind = self.line_behind();
        let rest = &behind[whose(behind)..];
        let plain = rest.len() - rest.iter().take_while(|b| is_word(**b)).count();
        let mut told = line.trim_ascii_end();
        let mut marked = None;
        for _ in 0..=WORDS_BEFORE_MAX {
            let ending = |sign: &&&str| told.ends_with(sign.as_bytes());
            if let Some(mark) = MARKS.iter().find(ending) {
                marked = Some((mark, true));
                break;
            }
            if let Some(verb) = IS.iter().rev().find(ending) {
                marked = Some((verb, false));
                break;
            }
            let word = told.iter().rev().take_while(|b| is_letter(**b)).count();
            let left = told[..told.len() - word].trim_ascii_end();
            if word == 0 || left.len() == told.len() - word {
                return None;
            }
            told = left;
        }
        let (mark, is_sign) = marked?;
        let closes = matches!(*mark, "(" | "[");
        // The brackets hold nothing but the name, a comment little more.
        let closed = rest.first().is_some_and(|b| matches!(b, b')' | b']'));
        if closes && !closed || is_sign && !closes && plain > 2 {
            return None;
        }
        let mut end =
            self.before.start + (self.before.len() - line.len()) + told.len() - mark.len();
        let floor = self.before.start;
        let own = &self.text[floor..end];
        let whole = own.trim_ascii_end();
        // The line of the value: this one, or the one before where this has nothing else.
        let crossed = whole.len() < own.len() && own[whole.len()..].contains(&b'\n');
        if crossed && !closes || own.len() == whole.len() && is_sign {
            return None;
        }
        end = floor + whole.len();
        let line = &whole[memchr::memrchr(b'\n', whole).map_or(0, |n| n + 1)..];
        let closing = line
            .iter()
            .rev()
            .take_while(|b| b"\"'`*;,".contains(b))
            .count();
        let body = &line[..line.len() - closing];
        let len = body.iter().rev().take_while(|b| is_part(**b)).count();
        let (lead, value) = body.split_at(body.len() - len);
        let lead = lead.trim_ascii();
        // In code a value stands in quotes or behind a sign; in prose after a blank.
        let alone = lead.is_empty() || matches!(lead, b"-" | b"*" | b">");
        let sums = value.iter().any(|b| b"*+/%&^".contains(b));
        let assigned = (lead.ends_with(b"=") || lead.ends_with(b":")) && !sums || closing > 0;
        let prose = !is_sign && lead.iter().all(|b| is_word(*b) || b".,!?:".contains(b));
        if !(alone || assigned || prose) {
            return None;
        }
        let end = end - closing;
        self.is_value(value, is_sign)
            .then(|| Span::new(end - len, end))
    }

    /// A comment that is a label: the value of the next line, whatever that calls it.
    fn below(&self) -> Option<Span> {
        let head = self.line_ahead().trim_ascii_start();
        if !HEADS.iter().any(|h| head.starts_with(h.as_bytes())) {
            return None;
        }
        let whole = memchr::memrchr(b'\n', &self.text[self.before.clone()]).is_some()
            || self.before.len() < NEAR;
        let told = head.iter().chain(self.line_behind());
        let words = told.clone().filter(|b| **b == b' ').count();
        let plain = |b: &u8| is_word(*b) || b"#/-;*<!>[]().:_".contains(b);
        if !whole || words > WORDS_MAX || !told.clone().all(plain) {
            return None;
        }
        let from = self.after.start + self.line_behind().len() + 1;
        if from >= self.after.end {
            return None;
        }
        let rest = &self.text[from..self.after.end];
        let line = &rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())];
        let sign = line
            .iter()
            .take(64)
            .position(|b| matches!(b, b'=' | b':'))?;
        let called = line[..sign].trim_ascii();
        let named = called.split(|b| !b.is_ascii_alphanumeric()).next_back();
        if named.is_none_or(|last| last.is_empty() || names_other(last)) {
            return None;
        }
        let behind = &line[sign + 1..];
        let blanks = behind.iter().take_while(|b| b" \t\"'`".contains(b)).count();
        let value = &behind[blanks..];
        let len = value_len(value);
        let start = from + sign + 1 + blanks;
        let rest = value[len..].trim_ascii();
        let ends = rest.len() <= 2 && rest.iter().all(|b| b"\"'`;,".contains(b))
            || rest.starts_with(b"</");
        (ends && self.is_value(&value[..len], false)).then(|| Span::new(start, start + len))
    }

    /// Something drawn or chosen, and no name of something else. Digits that may be a hash only where the name is right behind.
    fn is_value(&self, value: &[u8], hash: bool) -> bool {
        if !(8..=VALUE_BYTES_MAX).contains(&value.len()) || value::is_assignment(value) {
            return false;
        }
        let c = Classes::of(value);
        let body = value.strip_prefix(b"0x").unwrap_or(value);
        let hex = body.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
        if hex {
            return hash && self.promise == Promise::Strong && c.letters() > 0;
        }
        let sign = value.iter().any(|b| b"!@#$%^&*?".contains(b));
        let signed = sign && c.lower > 0 && c.upper > 0 && c.digit > 0 && value[0] != b'@';
        let mail = value::is_mail(value);
        let drawn = c.lower >= 2 && c.upper >= 2 && c.digit >= 1 && c.changes >= 6;
        let chosen = self.promise > Promise::Strong && value::is_chosen(value);
        !mail && (signed || chosen || (drawn || c.digit >= 3) && value::stands_alone(value))
    }
}

/// The first sign that says that a value follows, if nothing but words stands before it: where it is and how long.
fn first_sign(words: &[u8]) -> Option<(usize, usize)> {
    const SIGNS: [&str; 7] = ["->", "=>", "→", "–", "—", ":", "="];
    let begins = |b: &u8| matches!(b, b':' | b'=' | 0xE2) || !is_word(*b);
    let mut at = 0;
    loop {
        at += words[at..].iter().position(|b| begins(b) || *b == b'-')?;
        let rest = &words[at..];
        match SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
            Some(sign) => return Some((at, sign.len())),
            None if !is_word(words[at]) => return None,
            None => at += 1,
        }
    }
}

/// What stands between words of a sentence.
fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || b" ,'-_/".contains(&b)
}

fn is_letter(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b >= 0x80 || matches!(b, b'-' | b'_')
}

/// What values have in them and code has not.
fn is_part(b: u8) -> bool {
    b.is_ascii_graphic() && !b"()[]{}<>\"'`;,\\|".contains(&b)
}

fn names_other(last: &[u8]) -> bool {
    let lower = last.to_ascii_lowercase();
    OTHERS.iter().any(|w| w.as_bytes() == lower) && names::promise(last) < Promise::Strong
}

fn quote_len(text: &[u8]) -> usize {
    let quotes = ["«", "“", "„", "「", "『"];
    let found = quotes.iter().find(|q| text.starts_with(q.as_bytes()));
    found.map_or(0, |q| q.len())
}

fn value_len(text: &[u8]) -> usize {
    let len = text
        .iter()
        .take(VALUE_BYTES_MAX)
        .take_while(|b| is_part(**b))
        .count();
    let dots = text[..len]
        .iter()
        .rev()
        .take_while(|b| b".,:".contains(b))
        .count();
    len - dots
}

/// The sentence or the line ends behind the value.
fn ends_here(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_end();
    let closing = |b: &u8| b"\"'`*.,;:!?)".contains(b);
    let signs = rest.iter().take_while(|b| closing(b)).count();
    let rest = &rest[signs..];
    signs > 0 || rest.is_empty() || rest[0] == b' ' || rest[0] >= 0x80 || rest[0] == b'\\'
}

#[cfg(test)]
mod tests {
    use super::announced;
    use crate::names::Promise;
    use crate::text::Span;

    fn told(text: &str, name: &str, promise: Promise) -> Option<String> {
        let at = text.find(name).unwrap();
        let cell = Span::new(0, text.len());
        announced(
            text.as_bytes(),
            Span::new(at, at + name.len()),
            cell,
            promise,
        )
        .map(|span| text[span.range()].to_owned())
    }

    #[test]
    fn what_a_sentence_tells_of() {
        for (text, want) in [
            (
                "Here is the password of the admin account you wanted: Mistral_70.nnkKy!",
                Some("Mistral_70.nnkKy!"),
            ),
            (
                "the password that Ilse gave me yesterday: \"Rk7#hwQ2pz\".",
                Some("Rk7#hwQ2pz"),
            ),
            (
                "new password, as agreed → Rk7#hwQ2pz, thanks",
                Some("Rk7#hwQ2pz"),
            ),
            ("Rk7#hwQ2pz is the password", Some("Rk7#hwQ2pz")),
            (
                "Rk7#hwQ2pz is the new admin password for the shop",
                Some("Rk7#hwQ2pz"),
            ),
            ("Rk7#hwQ2pz  # vault password", Some("Rk7#hwQ2pz")),
            (
                "x = 'Rk7#hwQ2pz'; // password of the shop",
                Some("Rk7#hwQ2pz"),
            ),
            ("Rk7#hwQ2pz (password)", Some("Rk7#hwQ2pz")),
            ("Rk7#hwQ2pz\n(password of the shop)", Some("Rk7#hwQ2pz")),
            (
                "# password of the shop\nx = \"Rk7#hwQ2pz\"",
                Some("Rk7#hwQ2pz"),
            ),
            ("<!-- password -->\nentry: Rk7#hwQ2pz", Some("Rk7#hwQ2pz")),
            ("the password changed, request id: aB3xYz9Q2kLm", None),
            ("password policy says at least: eight", None),
            ("compute(a1Bb2!c3)  # password length", None),
            ("user@Mail-7.example.org (password sent)", None),
            ("x += y2*Width3  # password", None),
            ("# password\ncommit: aB3xYz9Q2kLmN7pR4tVw", None),
            ("the password was wrong: see Winter2024 notes", None),
            ("# password\nx = get_it()", None),
            ("run Rk7#hwQ2pz and forget the password", None),
        ] {
            assert_eq!(
                told(text, "password", Promise::Password).as_deref(),
                want,
                "{text}"
            );
        }
    }

    #[test]
    fn a_hash_is_a_key_only_with_the_name_right_behind() {
        let hex = "3f9a0c77d1e24b6895ac0be1f2d37a46";
        let told = |text: &str| told(text, "api key", Promise::Strong);
        assert_eq!(told(&format!("{hex}  # api key")).as_deref(), Some(hex));
        assert_eq!(told(&format!("{hex} (api key)")).as_deref(), Some(hex));
        assert_eq!(told(&format!("the api key was rotated in: {hex}")), None);
    }
}
