//! Whose a text is that does not parse: its outermost members, found by brackets and quotation marks alone.
//!
//! It reads on behind what the parser refuses: many clients write the id last. What it finds is good for the id of an error
//! and for nothing else; nothing of such a text is passed on. Where it cannot be sure how the text goes on it stops, and
//! what came before counts.

use bytes::Bytes;
use memchr::memchr2;

use crate::message::told_id;
use crate::whose::{Said, Whose};
use crate::{Document, Id, Limits};

/// Brackets that may be open at a time. Far more than a message may have, since too many is what one is refused for.
const OPEN_MAX: usize = 1 << 16;

/// The id, where there is one and no second, and whose message it seems to be.
pub(crate) fn skim(text: &str, limits: &Limits) -> (Option<Id>, Whose) {
    let (mut said, mut ids, mut is_foreign) = (Said::default(), 0, false);
    let mut cursor = Cursor { text, at: 0 };
    let mut goes_on = cursor.take(b'{').is_some();
    while goes_on {
        let Some(key) = cursor.key() else { break };
        let value = cursor.member_value();
        goes_on = value.is_some_and(|(_, goes_on)| goes_on);
        let value = value.and_then(|(raw, _)| scalar(raw, limits));
        let key = scalar(key, limits);
        match key.as_ref().and_then(|key| key.str(key.root())) {
            Some("jsonrpc") => {
                said.version |= value.is_some_and(|doc| doc.str(doc.root()) == Some("2.0"));
            }
            Some("method") => said.method = true,
            Some("result" | "error") => said.outcome = true,
            Some("id") => {
                ids += 1;
                said.id = value.and_then(|doc| told_id(&doc, doc.root()));
            }
            Some("params") => {}
            _ => is_foreign = true,
        }
    }
    if ids > 1 {
        said.id = None;
    }
    (said.id.clone(), said.whose(is_foreign))
}

/// A string or a number that is no longer than one of the envelope that counts.
fn scalar(raw: &str, limits: &Limits) -> Option<Document> {
    // Six bytes for a character that is written as an escape, and the quotation marks.
    let bytes_max = limits.id_bytes_max.saturating_mul(6).saturating_add(2);
    let is_scalar = matches!(raw.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    let is_read = is_scalar && raw.len() <= bytes_max;
    is_read
        .then(|| Document::parse(Bytes::copy_from_slice(raw.as_bytes()), limits).ok())
        .flatten()
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// A key, as it is written, and the colon behind it.
    fn key(&mut self) -> Option<&'t str> {
        self.white();
        let key = self.string()?;
        self.take(b':')?;
        Some(key)
    }

    /// The value of an outermost member, as it is written, and whether another member follows. None where it does not end:
    /// a number that is cut off is another number.
    fn member_value(&mut self) -> Option<(&'t str, bool)> {
        let raw = self.value()?;
        if self.take(b',').is_some() {
            return Some((raw, true));
        }
        self.take(b'}').map(|()| (raw, false))
    }

    /// Two values with nothing between them are none: there a quotation mark in a text was not escaped, and what is text
    /// and what is not cannot be told any more.
    fn value(&mut self) -> Option<&'t str> {
        self.white();
        let start = self.at;
        let (mut open, mut is_over) = (Vec::new(), false);
        loop {
            self.white();
            match self.peek()? {
                b',' | b':' if !open.is_empty() => {
                    self.at += 1;
                    is_over = false;
                    continue;
                }
                close @ (b'}' | b']') => {
                    self.at += 1;
                    is_over = open.pop()? == close;
                }
                _ if is_over || open.len() == OPEN_MAX => return None,
                begin @ (b'{' | b'[') => {
                    self.at += 1;
                    open.push(if begin == b'{' { b'}' } else { b']' });
                    continue;
                }
                b'"' => is_over = self.string().is_some(),
                _ => is_over = self.word(),
            }
            match (is_over, open.is_empty()) {
                (false, _) => return None,
                (true, true) => return self.text.get(start..self.at),
                (true, false) => {}
            }
        }
    }

    /// A string, as it is written.
    fn string(&mut self) -> Option<&'t str> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return None;
        }
        let mut at = start + 1;
        loop {
            at += memchr2(b'"', b'\\', self.text.as_bytes().get(at..)?)?;
            if self.text.as_bytes()[at] == b'"' {
                break;
            }
            at += 2;
        }
        self.at = at + 1;
        self.text.get(start..self.at)
    }

    /// Passes over a number, a word, or what stands in the place of one.
    fn word(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let ends = |byte: &u8| matches!(byte, b',' | b':' | b'{' | b'}' | b'[' | b']' | b'"');
        let len = rest
            .iter()
            .take_while(|byte| !ends(byte) && !is_white(**byte))
            .count();
        self.at += len;
        len > 0
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.white();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn white(&mut self) {
        while self.peek().is_some_and(is_white) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, id: Option<i64>, whose: Whose) {
        let found = skim(text, &Limits::default());
        assert_eq!(found, (id.map(Id::Number), whose), "{text:.200}");
    }

    #[test]
    fn an_id_behind_what_is_refused_is_found() {
        let call = |value: &str| {
            format!(r#"{{"method":"m","params":{{"a":{value}}},"jsonrpc":"2.0","id":7}}"#)
        };
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        for value in [
            r#""\ud83d""#,
            r#""\q \" ]}""#,
            r#"{"b":[1,{"id":8}],"id":9}"#,
            "NaN",
            "-Infinity",
            "01",
            "[1,]",
            "1e99999",
            "\"a\tb\"",
            &deep,
            &"9".repeat(1000),
        ] {
            check(&call(value), Some(7), Whose::Call(Id::Number(7)));
        }
        let answer = r#"{"result":{"a":"\udc00"},"jsonrpc":"2.0","id":7}"#;
        check(answer, Some(7), Whose::Answer(Id::Number(7)));
        let word = r#"{"params":{"a":"\udc00"},"jsonrpc":"2.0","method":"m"}"#;
        check(word, None, Whose::Word);
        check(
            r#"{"a":NaN,"\u0069\u0064":7,"jsonrpc":"2.0"} x"#,
            Some(7),
            Whose::Answer(Id::Number(7)),
        );
    }

    #[test]
    fn what_is_not_sure_is_not_taken() {
        for (text, whose) in [
            // A quotation mark that was not escaped.
            (r#"{"jsonrpc":"2.0","method":"x"y","id":7}"#, Whose::Word),
            (
                r#"{"jsonrpc":"2.0","params":["x"y",{"id":7}]}"#,
                Whose::Unknown,
            ),
            // Brackets that do not match.
            (
                r#"{"jsonrpc":"2.0","method":"m","params":{"a":[1}],"id":7}"#,
                Whose::Word,
            ),
            // Another one, however it is written.
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"m","a":NaN,"i\u0064":7}"#,
                Whose::Word,
            ),
            // It may go on.
            (r#"{"jsonrpc":"2.0","method":"m","id":7"#, Whose::Word),
            (r#"{"jsonrpc":"2.0","result":{"a":"#, Whose::Unknown),
            (r#"{"result":{"a":"#, Whose::Unknown),
            // No id that could be told.
            (r#"{"jsonrpc":"2.0","a":NaN,"id":{"id":7}}"#, Whose::Unknown),
            (r#"{"jsonrpc":"2.0","a":NaN,"id":1.5}"#, Whose::Unknown),
            // Log lines, and what is no object.
            (
                r#"{"level":"info","a":NaN,"id":7,"error":"x"}"#,
                Whose::Nobody,
            ),
            (r#"[{"jsonrpc":"2.0","id":7,"a":NaN}]"#, Whose::Nobody),
            ("", Whose::Nobody),
        ] {
            let found = skim(text, &Limits::default());
            let told = text.contains("level").then_some(Id::Number(7));
            assert_eq!(found, (told, whose), "{text}");
        }
    }

    #[test]
    fn so_many_brackets_and_no_more_are_remembered() {
        let of = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"jsonrpc":"2.0","method":"m","a":{open}{close},"id":7}}"#)
        };
        check(&of(OPEN_MAX), Some(7), Whose::Call(Id::Number(7)));
        check(&of(OPEN_MAX + 1), None, Whose::Word);
    }
}
