//! The strict parser: one pass, no recursion, every refusal with its place.
//!
//! It never repairs. What two readers could take differently (duplicate keys, half a surrogate pair, a byte order mark)
//! is refused, so that the tape and every other strict or lax reader agree on what the bytes say.

use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;
use smallvec::SmallVec;

use crate::document::{Document, TOKENS_CAP, Tag, Token};
use crate::scan::{copy_plain, plain_end};
use crate::skim::skim;
use crate::{DecodeError, DecodeErrorKind as Bad, Limits, duplicate};

/// Positions are 32 bits wide; nobody needs messages near that.
const BYTES_CAP: usize = 1 << 30;

/// Room for decoded strings that is made at once.
const SIDE_BYTES: usize = 64 << 10;

type Fail = (Bad, usize);

pub(crate) fn parse(bytes: Bytes, limits: &Limits) -> Result<Document, DecodeError> {
    if bytes.len() > limits.bytes_max.min(BYTES_CAP) {
        return Err(DecodeError::new(Bad::TooLarge, limits.bytes_max));
    }
    let text = text_of(bytes).map_err(|(kind, at)| DecodeError::new(kind, at))?;
    let mut parser = Parser::new(&text, limits);
    if let Err((kind, offset)) = parser.run() {
        let (recovered_id, whose) = skim(&text, limits);
        return Err(DecodeError {
            kind,
            offset,
            recovered_id,
            whose,
        });
    }
    let mut doc = parser.into_document();
    doc.text = text;
    Ok(doc)
}

/// The input as UTF-8 text. Other encodings are named as such where they can be told from broken JSON.
fn text_of(bytes: Bytes) -> Result<ByteString, Fail> {
    const MARKS: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xfe\xff", b"\xff\xfe"];
    if MARKS.iter().any(|mark| bytes.starts_with(mark)) || bytes.starts_with(b"\0\0\xfe\xff") {
        return Err((Bad::ByteOrderMark, 0));
    }
    // UTF-16 or UTF-32 without a mark: ASCII text in them has a zero byte among the first two.
    if let Some(at) = bytes.iter().take(2).position(|&byte| byte == 0) {
        return Err((Bad::NotUtf8, at));
    }
    ByteString::try_from(bytes).map_err(|error| (Bad::NotUtf8, error.valid_up_to()))
}

/// An object or array that is still open.
struct Frame {
    token: u32,
    /// Members or elements so far.
    count: u32,
    is_object: bool,
}

struct Parser<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    limits: Limits,
    tokens_max: usize,
    tape: Vec<Token>,
    /// UTF-8 between any two escapes: what is in it was checked, or is a whole character.
    side: Vec<u8>,
    decoded: Vec<Range<u32>>,
    stack: SmallVec<[Frame; 32]>,
    leaf_count: u32,
    canonical: bool,
    has_nul: bool,
    has_rows: bool,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, limits: &Limits) -> Self {
        Parser {
            text,
            bytes: text.as_bytes(),
            at: 0,
            limits: *limits,
            tokens_max: limits.tokens_max.min(TOKENS_CAP),
            tape: Vec::with_capacity((text.len() / 8).clamp(16, 4096)),
            side: Vec::new(),
            decoded: Vec::new(),
            stack: SmallVec::new(),
            leaf_count: 0,
            canonical: true,
            has_nul: false,
            has_rows: false,
        }
    }

    /// The text is left empty for the caller to fill in, which saves a reference count.
    fn into_document(self) -> Document {
        Document {
            text: ByteString::new(),
            tape: self.tape,
            side: String::from_utf8(self.side)
                .expect("runs of the checked text between ASCII bytes, and whole characters"),
            decoded: self.decoded,
            leaf_count: self.leaf_count,
            canonical: self.canonical,
            has_nul: self.has_nul,
            has_rows: self.has_rows,
            limits: self.limits,
        }
    }

    fn run(&mut self) -> Result<(), Fail> {
        self.white();
        if self.at == self.bytes.len() {
            return Err((Bad::Empty, self.at));
        }
        loop {
            if self.value()? {
                continue;
            }
            if !self.after_value()? {
                break;
            }
        }
        self.white();
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => Err((Bad::TrailingData, self.at)),
        }
    }

    /// Reads a scalar or an empty container, or opens a container; then it stands before the first inner value and the
    /// answer is true.
    #[inline(always)]
    fn value(&mut self) -> Result<bool, Fail> {
        let (parent, ordinal) = match self.stack.last_mut() {
            None => (0, 0),
            Some(frame) if frame.is_object => (self.tape.len() as u32 - 1, 0),
            Some(frame) => {
                frame.count += 1;
                (frame.token, frame.count - 1)
            }
        };
        match self.bytes.get(self.at) {
            Some(b'"') => self.string(Tag::String, parent, ordinal)?,
            Some(b'{') => return self.open(Tag::Object, parent, ordinal),
            Some(b'[') => return self.open(Tag::Array, parent, ordinal),
            Some(b'-' | b'0'..=b'9') => self.number(parent, ordinal)?,
            Some(b't') => self.word(b"true", Tag::True, parent, ordinal)?,
            Some(b'f') => self.word(b"false", Tag::False, parent, ordinal)?,
            Some(b'n') => self.word(b"null", Tag::Null, parent, ordinal)?,
            Some(_) => return Err((Bad::UnexpectedByte, self.at)),
            None => return Err((Bad::UnexpectedEnd, self.at)),
        }
        Ok(false)
    }

    /// Closes what ends here; then either stands before the next value (true) or after the outermost one (false).
    #[inline(always)]
    fn after_value(&mut self) -> Result<bool, Fail> {
        loop {
            let Some(frame) = self.stack.last() else {
                return Ok(false);
            };
            let is_object = frame.is_object;
            self.white();
            match self.bytes.get(self.at) {
                Some(b',') => {
                    self.at += 1;
                    self.white();
                    if let Some(b'}' | b']') = self.bytes.get(self.at) {
                        return Err((Bad::TrailingComma, self.at));
                    }
                    if is_object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                Some(b'}') if is_object => self.close()?,
                Some(b']') if !is_object => self.close()?,
                Some(_) => return Err((Bad::UnexpectedByte, self.at)),
                None => return Err((Bad::UnexpectedEnd, self.at)),
            }
        }
    }

    fn open(&mut self, tag: Tag, parent: u32, ordinal: u32) -> Result<bool, Fail> {
        if self.stack.len() >= self.limits.depth_max {
            return Err((Bad::TooDeep, self.at));
        }
        let is_object = tag == Tag::Object;
        let in_array = self.stack.last().is_some_and(|outer| !outer.is_object);
        self.has_rows |= in_array && !is_object;
        let token = self.tape.len() as u32;
        self.push(
            tag,
            self.at..self.at + 1,
            0,
            parent,
            Token::meta(tag, ordinal, false, false),
        )?;
        self.stack.push(Frame {
            token,
            count: 0,
            is_object,
        });
        self.at += 1;
        self.white();
        match (self.bytes.get(self.at), is_object) {
            (Some(b'}'), true) | (Some(b']'), false) => self.close().map(|()| false),
            (_, true) => self.key().map(|()| true),
            (_, false) => Ok(true),
        }
    }

    fn close(&mut self) -> Result<(), Fail> {
        let Some(frame) = self.stack.pop() else {
            return Ok(());
        };
        self.at += 1;
        let len = self.tape.len() as u32;
        let token = &mut self.tape[frame.token as usize];
        token.link = len;
        token.end = self.at as u32;
        if frame.is_object && frame.count > 1 {
            let found = duplicate::find(
                self.text,
                &self.side,
                &self.decoded,
                &self.tape,
                frame.token,
                frame.count,
            );
            if let Some(key) = found {
                return Err((Bad::DuplicateKey, self.tape[key as usize].start as usize));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn key(&mut self) -> Result<(), Fail> {
        match self.bytes.get(self.at) {
            Some(b'"') => {}
            Some(_) => return Err((Bad::UnexpectedByte, self.at)),
            None => return Err((Bad::UnexpectedEnd, self.at)),
        }
        let Some(frame) = self.stack.last_mut() else {
            return Ok(());
        };
        frame.count += 1;
        let parent = frame.token;
        self.string(Tag::Key, parent, 0)?;
        self.white();
        match self.bytes.get(self.at) {
            Some(b':') => self.at += 1,
            Some(_) => return Err((Bad::UnexpectedByte, self.at)),
            None => return Err((Bad::UnexpectedEnd, self.at)),
        }
        self.white();
        Ok(())
    }

    #[inline(always)]
    fn white(&mut self) {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ') => self.at += 1,
                Some(b'\n' | b'\r' | b'\t') => {
                    self.at += 1;
                    self.canonical = false;
                }
                _ => return,
            }
        }
    }

    #[inline(always)]
    fn push(
        &mut self,
        tag: Tag,
        span: Range<usize>,
        link: u32,
        parent: u32,
        meta: u32,
    ) -> Result<(), Fail> {
        if self.tape.len() >= self.tokens_max {
            return Err((Bad::TooManyTokens, span.start));
        }
        self.leaf_count += matches!(tag, Tag::Key | Tag::String | Tag::Number) as u32;
        self.tape.push(Token {
            start: span.start as u32,
            end: span.end as u32,
            link,
            parent,
            meta,
        });
        Ok(())
    }

    #[inline(always)]
    fn string(&mut self, tag: Tag, parent: u32, ordinal: u32) -> Result<(), Fail> {
        let start = self.at;
        let end = plain_end(self.bytes, start + 1);
        match self.bytes.get(end) {
            Some(b'"') => {
                self.at = end + 1;
                self.push(
                    tag,
                    start..end + 1,
                    0,
                    parent,
                    Token::meta(tag, ordinal, false, false),
                )
            }
            Some(b'\\') => self.escaped_string(tag, start, end, parent, ordinal),
            Some(_) => Err((Bad::ControlCharacter, end)),
            None => Err((Bad::UnexpectedEnd, end)),
        }
    }

    /// The rest of a string whose first backslash is at `slash`.
    fn escaped_string(
        &mut self,
        tag: Tag,
        start: usize,
        slash: usize,
        parent: u32,
        ordinal: u32,
    ) -> Result<(), Fail> {
        if self.side.capacity() == 0 {
            // What is decoded is never longer than its source, so up to here the buffer does not move.
            self.side
                .reserve((self.bytes.len() - start).min(SIDE_BYTES));
        }
        let side_start = self.side.len() as u32;
        let mut rewrite = false;
        self.side.extend_from_slice(&self.bytes[start + 1..slash]);
        let mut at = slash;
        loop {
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += self.escape(at, &mut rewrite)?,
                Some(_) => return Err((Bad::ControlCharacter, at)),
                None => return Err((Bad::UnexpectedEnd, at)),
            }
            at = copy_plain(self.bytes, at, &mut self.side);
        }
        self.at = at + 1;
        self.canonical &= !rewrite;
        let link = self.decoded.len() as u32;
        self.decoded.push(side_start..self.side.len() as u32);
        self.push(
            tag,
            start..at + 1,
            link,
            parent,
            Token::meta(tag, ordinal, true, rewrite),
        )
    }

    /// Decodes the escape at `at` into the side buffer; gives its length in the input.
    #[inline]
    fn escape(&mut self, at: usize, rewrite: &mut bool) -> Result<usize, Fail> {
        let Some(&sign) = self.bytes.get(at + 1) else {
            return Err((Bad::UnexpectedEnd, at + 1));
        };
        match (SHORT_ESCAPES[usize::from(sign)], sign) {
            (0, b'u') => self.unicode_escape(at, rewrite),
            (0, _) => Err((Bad::BadEscape, at)),
            (plain, _) => {
                *rewrite |= sign == b'/';
                self.side.push(plain);
                Ok(2)
            }
        }
    }

    fn unicode_escape(&mut self, at: usize, rewrite: &mut bool) -> Result<usize, Fail> {
        let first = self.hex4(at + 2)?;
        let (code, len) = match first {
            0xD800..=0xDBFF => {
                let rest = &self.bytes[at + 6..];
                if !rest.starts_with(b"\\u") {
                    // Cut off, or without its other half.
                    let is_cut = b"\\u".starts_with(rest);
                    return Err(if is_cut {
                        (Bad::UnexpectedEnd, self.bytes.len())
                    } else {
                        (Bad::LoneSurrogate, at)
                    });
                }
                let second = self.hex4(at + 8)?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err((Bad::LoneSurrogate, at));
                }
                (0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00), 12)
            }
            _ => (first, 6),
        };
        // Only the low half of a pair standing alone is left to fail here.
        let Some(decoded) = char::from_u32(code) else {
            return Err((Bad::LoneSurrogate, at));
        };
        self.has_nul |= decoded == '\0';
        *rewrite |= !is_our_unicode_escape(code, &self.bytes[at + 2..at + 6]);
        self.side
            .extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(len)
    }

    fn hex4(&self, at: usize) -> Result<u32, Fail> {
        let mut code = 0;
        for place in at..at + 4 {
            let byte = *self
                .bytes
                .get(place)
                .ok_or((Bad::UnexpectedEnd, self.bytes.len()))?;
            let digit = (byte as char)
                .to_digit(16)
                .ok_or((Bad::BadEscape, at - 2))?;
            code = code << 4 | digit;
        }
        Ok(code)
    }

    fn word(&mut self, word: &[u8], tag: Tag, parent: u32, ordinal: u32) -> Result<(), Fail> {
        let rest = &self.bytes[self.at..];
        if !rest.starts_with(word) {
            let same = rest.iter().zip(word).take_while(|(a, b)| a == b).count();
            let kind = if same == rest.len() {
                Bad::UnexpectedEnd
            } else {
                Bad::UnexpectedByte
            };
            return Err((kind, self.at + same));
        }
        let span = self.at..self.at + word.len();
        self.at = span.end;
        self.push(
            tag,
            span,
            0,
            parent,
            Token::meta(tag, ordinal, false, false),
        )
    }

    fn number(&mut self, parent: u32, ordinal: u32) -> Result<(), Fail> {
        let start = self.at;
        let mut at = start + (self.bytes[start] == b'-') as usize;
        let whole = at;
        at = self.digits(at)?;
        if self.bytes[whole] == b'0' && at > whole + 1 {
            return Err((Bad::BadNumber, whole));
        }
        if self.bytes.get(at) == Some(&b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(at) {
            at += 1;
            at += matches!(self.bytes.get(at), Some(b'+' | b'-')) as usize;
            at = self.digits(at)?;
        }
        if at - start > self.limits.number_bytes_max {
            return Err((Bad::NumberTooLong, start));
        }
        self.at = at;
        self.push(
            Tag::Number,
            start..at,
            0,
            parent,
            Token::meta(Tag::Number, ordinal, false, false),
        )
    }

    /// At least one digit; gives where they end.
    #[inline]
    fn digits(&self, from: usize) -> Result<usize, Fail> {
        let mut at = from;
        while let Some(b'0'..=b'9') = self.bytes.get(at) {
            at += 1;
        }
        match (at > from, at < self.bytes.len()) {
            (true, _) => Ok(at),
            (false, true) => Err((Bad::BadNumber, at)),
            (false, false) => Err((Bad::UnexpectedEnd, at)),
        }
    }
}

/// What a short escape stands for, by the byte after its backslash; 0 for all others.
const SHORT_ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = *b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut at = 0;
    while at < pairs.len() {
        table[pairs[at] as usize] = pairs[at + 1];
        at += 2;
    }
    table
};

/// Whether [`crate::push_string`] would write exactly this: lower-case hex, for a control character without a short form.
fn is_our_unicode_escape(code: u32, hex: &[u8]) -> bool {
    code < 0x20
        && !matches!(code, 0x08 | 0x09 | 0x0a | 0x0c | 0x0d)
        && !hex.iter().any(u8::is_ascii_uppercase)
}
