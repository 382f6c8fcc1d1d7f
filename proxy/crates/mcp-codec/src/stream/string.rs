//! The inside of one string, in any cuts: UTF-8 checked, escapes undone.

use std::ops::Range;

use crate::DecodeErrorKind as Bad;
use crate::scan::plain_end;

/// Longest escape: a surrogate pair, `\ud83d\ude00`.
const ESCAPE_BYTES_MAX: usize = 12;

/// What is not yet whole of the string that is being read.
#[derive(Debug, Default)]
pub(super) struct Partial {
    /// The first bytes of a character, or of an escape (then the first of them is a backslash).
    held: [u8; ESCAPE_BYTES_MAX],
    len: usize,
}

/// How far a string came.
pub(super) enum Step {
    /// The input is used up.
    More,
    /// The closing quote is passed; so many bytes were used.
    Closed(usize),
}

impl Partial {
    /// Reads on in `bytes`, which begin inside the string; gives what it says to `out`, each piece with
    /// where it stands in `bytes`.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        mut out: impl FnMut(&str, Range<usize>),
    ) -> Result<Step, Bad> {
        let mut at = 0;
        while at < bytes.len() {
            if self.len > 0 {
                self.complete(bytes[at], at, &mut out)?;
                at += 1;
                continue;
            }
            let end = plain_end(bytes, at);
            self.plain(bytes, at..end, &mut out)?;
            at = end;
            match bytes.get(at) {
                None => break,
                Some(b'"') => return Ok(Step::Closed(at + 1)),
                Some(b'\\') => {
                    self.hold(b'\\');
                    at += 1;
                }
                Some(_) => return Err(Bad::ControlCharacter),
            }
        }
        Ok(Step::More)
    }

    fn hold(&mut self, byte: u8) {
        self.held[self.len] = byte;
        self.len += 1;
    }

    /// A run without quotes, backslashes and control characters.
    fn plain(
        &mut self,
        bytes: &[u8],
        run: Range<usize>,
        out: &mut impl FnMut(&str, Range<usize>),
    ) -> Result<(), Bad> {
        let is_last = run.end == bytes.len();
        let text = match std::str::from_utf8(&bytes[run.clone()]) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() && is_last => {
                let (whole, rest) = bytes[run.clone()].split_at(error.valid_up_to());
                rest.iter().for_each(|byte| self.hold(*byte));
                std::str::from_utf8(whole).map_err(|_| Bad::NotUtf8)?
            }
            Err(_) => return Err(Bad::NotUtf8),
        };
        if !text.is_empty() {
            out(text, run.start..run.start + text.len());
        }
        Ok(())
    }

    /// Adds a byte to a character or an escape that is not whole.
    fn complete(
        &mut self,
        byte: u8,
        at: usize,
        out: &mut impl FnMut(&str, Range<usize>),
    ) -> Result<(), Bad> {
        self.hold(byte);
        let held = &self.held[..self.len];
        if held[0] == b'\\' {
            if let Some(decoded) = escape(held)? {
                out(decoded.encode_utf8(&mut [0; 4]), at..at + 1);
                self.len = 0;
            }
            return Ok(());
        }
        match std::str::from_utf8(held) {
            Ok(text) => {
                out(text, at..at + 1);
                self.len = 0;
            }
            Err(error) if error.error_len().is_none() => {}
            Err(_) => return Err(Bad::NotUtf8),
        }
        Ok(())
    }
}

/// The character of an escape; `None` while it is not whole.
fn escape(held: &[u8]) -> Result<Option<char>, Bad> {
    let Some(kind) = held.get(1) else {
        return Ok(None);
    };
    let plain = match kind {
        b'"' | b'\\' | b'/' => char::from(*kind),
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => return unicode(held),
        _ => return Err(Bad::BadEscape),
    };
    Ok(Some(plain))
}

fn unicode(held: &[u8]) -> Result<Option<char>, Bad> {
    let Some(first) = hex4(held, 2)? else {
        return Ok(None);
    };
    if !(0xD800..=0xDBFF).contains(&first) {
        return char::from_u32(first).map(Some).ok_or(Bad::LoneSurrogate);
    }
    if held.get(6).is_some_and(|b| *b != b'\\') || held.get(7).is_some_and(|b| *b != b'u') {
        return Err(Bad::LoneSurrogate);
    }
    let Some(second) = hex4(held, 8)? else {
        return Ok(None);
    };
    if !(0xDC00..=0xDFFF).contains(&second) {
        return Err(Bad::LoneSurrogate);
    }
    let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    char::from_u32(code).map(Some).ok_or(Bad::LoneSurrogate)
}

/// Four digits from `at`; `None` while some are missing.
fn hex4(held: &[u8], at: usize) -> Result<Option<u32>, Bad> {
    let digits = held.get(at..).unwrap_or_default();
    let mut code = 0;
    for byte in digits.iter().take(4) {
        let digit = char::from(*byte).to_digit(16).ok_or(Bad::BadEscape)?;
        code = code << 4 | digit;
    }
    Ok((digits.len() >= 4).then_some(code))
}
