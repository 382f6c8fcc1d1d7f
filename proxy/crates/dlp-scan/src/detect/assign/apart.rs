//! Values that stand apart from their names: compared with them, behind other arguments, below lines about something else.

use super::BARE_BYTES_MAX;
use super::reader::{Reader, drawn_key};

impl Reader<'_> {
    /// `token == "..."`, `key !== '...'`: how far it is to what is compared with, if that is a key that nobody writes as an example.
    pub(super) fn compared(&self) -> usize {
        let rest = self.rest();
        let signs = rest.iter().take(4);
        let signs = signs.take_while(|b| matches!(b, b'=' | b'!')).count();
        if !matches!(&rest[..signs], b"==" | b"===" | b"!=" | b"!==") {
            return 0;
        }
        let len = signs + usize::from(rest.get(signs) == Some(&b' '));
        let Some((quote @ (b'"' | b'\''), value)) = rest.get(len..).and_then(<[u8]>::split_first)
        else {
            return 0;
        };
        let end = memchr::memchr(*quote, &value[..value.len().min(BARE_BYTES_MAX)]);
        match end.is_some_and(|end| drawn_key(&value[..end])) {
            true => len,
            false => 0,
        }
    }

    /// A key in ticks or quotes.
    pub(super) fn key_in_ticks(&self) -> bool {
        let Some((quote @ (b'`' | b'"'), value)) = self.rest().split_first() else {
            return false;
        };
        let end = memchr::memchr(*quote, &value[..value.len().min(BARE_BYTES_MAX)]);
        end.is_some_and(|end| drawn_key(&value[..end]))
    }

    /// `add_argument("--password", type=str, default="...")`: how far it is to what stands for an option that is not given.
    pub(super) fn default_next(&self) -> usize {
        const BYTES_MAX: usize = 120;
        const WORD: &[u8] = b"default=";
        let rest = &self.rest()[..self.rest().len().min(BYTES_MAX)];
        let call = rest.split(|b| matches!(b, b')' | b'\n')).next();
        let at = call.and_then(|call| memchr::memmem::find(call, WORD));
        let literal = |at: usize| matches!(rest.get(at), Some(b'"' | b'\''));
        at.map(|at| at + WORD.len())
            .filter(|at| literal(*at))
            .unwrap_or(0)
    }

    /// `DB_PASSWORD:`, and under it `value: ...` or `default: ...`, alone or below what else is said of it: how far it is to the value.
    pub(super) fn member_below(&self) -> usize {
        const LINES_MAX: usize = 5;
        let rest = self.rest();
        let indent = |line: &[u8]| {
            line.iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count()
        };
        let (mut at, mut first) = (0, None);
        for line in rest.split_inclusive(|b| *b == b'\n').take(LINES_MAX) {
            let deep = indent(line);
            let name = line[deep..].iter();
            let name = name.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
            let name = name.count();
            let colon = deep + name;
            let is_member = name > 0 && line.get(colon) == Some(&b':');
            if !is_member || *first.get_or_insert(deep) != deep {
                return 0;
            }
            let called = &line[deep..colon];
            let holds = [&b"value"[..], b"default"];
            if holds.iter().any(|word| called.eq_ignore_ascii_case(word)) {
                let blanks = indent(&line[colon + 1..]);
                return at + colon + 1 + blanks;
            }
            at += line.len();
        }
        0
    }

    /// `name = ".../db_password"`, a line `type = "SecureString"` and then the value: how far it is over the lines between.
    pub(super) fn to_value_below(&self) -> usize {
        const LINES_MAX: usize = 3;
        let mut at = 0;
        for line in self
            .rest()
            .split_inclusive(|b| *b == b'\n')
            .take(LINES_MAX + 1)
        {
            let bare = line.trim_ascii_start();
            let name = bare.iter();
            let name = name.take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
            let name = name.count();
            if matches!(&bare[..name], b"value" | b"Value") {
                return at + line.len() - bare.len();
            }
            let sign = bare[name..].trim_ascii_start().first();
            if name == 0 || !matches!(sign, Some(b'=' | b':')) {
                return 0;
            }
            at += line.len();
        }
        0
    }
}
