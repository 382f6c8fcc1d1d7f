//! Strict JSON in any cuts, as events. One pass, no recursion, nothing kept but the open brackets and what is not yet
//! whole of a key, a number or a character.

use std::ops::Range;

use super::StreamLimits;
use super::keys::{KeyFault, OpenKeys};
use super::string::{Partial, Step};
use crate::{DecodeError, DecodeErrorKind as Bad, Kind};

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// So many spaces between tokens. Line breaks and tabs there are left out: they mean nothing.
    Spaces(usize),
    /// An object or an array begins.
    Open(Kind),
    /// It ends.
    Close(Kind),
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// A key, whole and decoded.
    Key(&'a str),
    /// A string begins.
    TextStart,
    /// The next piece of it, decoded; never empty.
    Text(&'a str),
    /// It ends.
    TextEnd,
    /// A number, as it was written.
    Number(&'a str),
    /// `true`, `false` or `null`.
    Word(Kind),
}

/// Hides the text, which may be a secret.
impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Event::Spaces(count) => write!(f, "Spaces({count})"),
            Event::Open(kind) => write!(f, "Open({kind:?})"),
            Event::Close(kind) => write!(f, "Close({kind:?})"),
            Event::Comma => f.write_str("Comma"),
            Event::Colon => f.write_str("Colon"),
            Event::Key(text) => write!(f, "Key(<{} bytes>)", text.len()),
            Event::TextStart => f.write_str("TextStart"),
            Event::Text(text) => write!(f, "Text(<{} bytes>)", text.len()),
            Event::TextEnd => f.write_str("TextEnd"),
            Event::Number(text) => write!(f, "Number(<{} bytes>)", text.len()),
            Event::Word(kind) => write!(f, "Word({kind:?})"),
        }
    }
}

/// Takes what is read.
pub trait Sink {
    /// One event, and where its bytes stood in the input. For a [`Event::Text`] that was cut within a character or an
    /// escape, the place of the piece that completed it.
    ///
    /// # Errors
    /// The reader stops with this.
    fn event(&mut self, event: Event<'_>, raw: Range<u64>) -> Result<(), Bad>;
}

impl<F: FnMut(Event<'_>, Range<u64>) -> Result<(), Bad>> Sink for F {
    fn event(&mut self, event: Event<'_>, raw: Range<u64>) -> Result<(), Bad> {
        self(event, raw)
    }
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// A value; or, right after `[`, the end of the array.
    Value {
        or_end: bool,
    },
    /// A key; or, right after `{`, the end of the object.
    Key {
        or_end: bool,
    },
    Colon,
    /// A comma or a closing bracket.
    After,
    /// White space only.
    End,
    String {
        key: bool,
    },
    Number,
    Word {
        kind: Kind,
        done: usize,
    },
}

/// Reads one JSON document piece by piece.
///
/// ```
/// use mcp_codec::Limits;
/// use mcp_codec::stream::{Event, Reader, StreamLimits};
///
/// let mut texts = String::new();
/// let mut sink = |event: Event<'_>, _| {
///     if let Event::Text(piece) = event {
///         texts.push_str(piece);
///     }
///     Ok(())
/// };
/// let mut reader = Reader::new(StreamLimits::of(&Limits::default(), 1 << 30));
/// for piece in [r#"{"a":"on"#, r#"e\u00"#, r#"e9"}"#] {
///     reader.push(piece.as_bytes(), &mut sink)?;
/// }
/// reader.finish(&mut sink)?;
/// assert_eq!(texts, "oneé");
/// # Ok::<(), mcp_codec::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Reader {
    limits: StreamLimits,
    at: At,
    open: Vec<Kind>,
    keys: OpenKeys,
    partial: Partial,
    /// What is not yet whole of a key or a number.
    held: String,
    /// Bytes read before the piece at hand.
    before: u64,
    seen_any: bool,
    failed: Option<DecodeError>,
}

impl Reader {
    /// Before the first byte.
    pub fn new(limits: StreamLimits) -> Self {
        Reader {
            limits,
            at: At::Value { or_end: false },
            open: Vec::new(),
            keys: OpenKeys::default(),
            partial: Partial::default(),
            held: String::new(),
            before: 0,
            seen_any: false,
            failed: None,
        }
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.before
    }

    /// Whether the outermost value is over.
    pub fn is_over(&self) -> bool {
        self.at == At::End
    }

    /// Reads the next piece.
    ///
    /// # Errors
    /// The input is refused; every further call says the same.
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut at = 0;
        let outcome = self.read(bytes, &mut at, sink);
        let offset = self.before + at as u64;
        self.before += bytes.len() as u64;
        let is_too_large = self.before > self.limits.bytes_max;
        let outcome = match outcome {
            Ok(()) if is_too_large => Err(Bad::TooLarge),
            other => other,
        };
        outcome.map_err(|kind| self.fail(kind, offset))
    }

    /// The input has ended.
    ///
    /// # Errors
    /// It is no whole document.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Result<(), DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let end = self.before;
        let outcome = match self.at {
            At::Number => self.number_done(end, sink),
            _ => Ok(()),
        };
        let outcome = match (outcome, self.at) {
            (Ok(()), At::End) => Ok(()),
            (Ok(()), _) if !self.seen_any => Err(Bad::Empty),
            (Ok(()), _) => Err(Bad::UnexpectedEnd),
            (error, _) => error,
        };
        outcome.map_err(|kind| self.fail(kind, end))
    }

    fn fail(&mut self, kind: Bad, offset: u64) -> DecodeError {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let error = DecodeError::new(kind, offset);
        self.failed = Some(error.clone());
        error
    }

    fn read(&mut self, bytes: &[u8], at: &mut usize, sink: &mut impl Sink) -> Result<(), Bad> {
        while let Some(&byte) = bytes.get(*at) {
            let place = self.before + *at as u64;
            match self.at {
                At::String { key } => self.string(bytes, at, key, sink)?,
                At::Number if is_number_byte(byte) => {
                    if self.held.len() == self.limits.number_bytes_max {
                        return Err(Bad::NumberTooLong);
                    }
                    self.held.push(char::from(byte));
                    *at += 1;
                }
                At::Number => self.number_done(place, sink)?,
                At::Word { kind, done } => {
                    self.word(byte, kind, done, place, sink)?;
                    *at += 1;
                }
                _ if is_white(byte) => *at += self.white(&bytes[*at..], place, sink)?,
                _ => {
                    self.seen_any = true;
                    self.structure(byte, place, sink)?;
                    *at += 1;
                }
            }
        }
        Ok(())
    }

    fn white(&mut self, bytes: &[u8], place: u64, sink: &mut impl Sink) -> Result<usize, Bad> {
        let run = bytes.iter().take_while(|byte| is_white(**byte)).count();
        let spaces = bytes[..run].iter().filter(|byte| **byte == b' ').count();
        if spaces > 0 {
            sink.event(Event::Spaces(spaces), place..place + run as u64)?;
        }
        Ok(run)
    }

    /// A byte outside of strings, numbers and words.
    fn structure(&mut self, byte: u8, place: u64, sink: &mut impl Sink) -> Result<(), Bad> {
        let raw = place..place + 1;
        match (self.at, byte) {
            (At::Value { .. }, b'"') => {
                self.at = At::String { key: false };
                sink.event(Event::TextStart, raw)
            }
            (At::Value { .. }, b'{') => self.opened(Kind::Object, raw, sink),
            (At::Value { .. }, b'[') => self.opened(Kind::Array, raw, sink),
            (At::Value { .. }, b'-' | b'0'..=b'9') => {
                self.held.clear();
                self.held.push(char::from(byte));
                self.at = At::Number;
                Ok(())
            }
            (At::Value { .. }, b't' | b'f' | b'n') => {
                let kind = match byte {
                    b't' => Kind::True,
                    b'f' => Kind::False,
                    _ => Kind::Null,
                };
                self.at = At::Word { kind, done: 1 };
                Ok(())
            }
            (At::Value { or_end: true }, b']') => self.closed(Kind::Array, raw, sink),
            (At::Key { .. }, b'"') => {
                self.held.clear();
                self.at = At::String { key: true };
                Ok(())
            }
            (At::Key { or_end: true }, b'}') => self.closed(Kind::Object, raw, sink),
            (At::Key { or_end: false }, b'}' | b']') => Err(Bad::TrailingComma),
            (At::Value { or_end: false }, b'}' | b']') if !self.open.is_empty() => {
                Err(Bad::TrailingComma)
            }
            (At::Colon, b':') => {
                self.at = At::Value { or_end: false };
                sink.event(Event::Colon, raw)
            }
            (At::After, b',') => {
                self.at = match self.open.last() {
                    Some(Kind::Object) => At::Key { or_end: false },
                    _ => At::Value { or_end: false },
                };
                sink.event(Event::Comma, raw)
            }
            (At::After, b'}') if self.open.last() == Some(&Kind::Object) => {
                self.closed(Kind::Object, raw, sink)
            }
            (At::After, b']') if self.open.last() == Some(&Kind::Array) => {
                self.closed(Kind::Array, raw, sink)
            }
            (At::End, _) => Err(Bad::TrailingData),
            _ => Err(Bad::UnexpectedByte),
        }
    }

    fn opened(&mut self, kind: Kind, raw: Range<u64>, sink: &mut impl Sink) -> Result<(), Bad> {
        if self.open.len() >= self.limits.depth_max {
            return Err(Bad::TooDeep);
        }
        self.open.push(kind);
        self.at = match kind {
            Kind::Object => {
                self.keys.open();
                At::Key { or_end: true }
            }
            _ => At::Value { or_end: true },
        };
        sink.event(Event::Open(kind), raw)
    }

    fn closed(&mut self, kind: Kind, raw: Range<u64>, sink: &mut impl Sink) -> Result<(), Bad> {
        self.open.pop();
        if kind == Kind::Object {
            self.keys.close();
        }
        self.value_done();
        sink.event(Event::Close(kind), raw)
    }

    fn value_done(&mut self) {
        self.at = if self.open.is_empty() {
            At::End
        } else {
            At::After
        };
    }

    fn string(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        key: bool,
        sink: &mut impl Sink,
    ) -> Result<(), Bad> {
        let start = self.before + *at as u64;
        let (held, mut refused) = (&mut self.held, Ok(()));
        let step = self.partial.read(&bytes[*at..], |piece, raw| {
            if refused.is_err() {
                return;
            }
            if !key {
                let raw = start + raw.start as u64..start + raw.end as u64;
                refused = sink.event(Event::Text(piece), raw);
            } else if held.len() + piece.len() > self.limits.key_bytes_max {
                refused = Err(Bad::KeyTooLong);
            } else {
                held.push_str(piece);
            }
        });
        refused?;
        let Step::Closed(used) = step? else {
            *at = bytes.len();
            return Ok(());
        };
        *at += used;
        let raw = start..self.before + *at as u64;
        if !key {
            self.value_done();
            return sink.event(Event::TextEnd, raw);
        }
        self.at = At::Colon;
        if self.held.contains('\0') {
            return Err(Bad::NulInProtocolString);
        }
        match self.keys.add(&self.held, self.limits.open_keys_max) {
            Ok(()) => sink.event(Event::Key(&self.held), raw),
            Err(KeyFault::Second) => Err(Bad::DuplicateKey),
            Err(KeyFault::TooMany) => Err(Bad::TooManyKeys),
        }
    }

    fn word(
        &mut self,
        byte: u8,
        kind: Kind,
        done: usize,
        place: u64,
        sink: &mut impl Sink,
    ) -> Result<(), Bad> {
        let word: &[u8] = match kind {
            Kind::True => b"true",
            Kind::False => b"false",
            _ => b"null",
        };
        if word.get(done) != Some(&byte) {
            return Err(Bad::UnexpectedByte);
        }
        if done + 1 < word.len() {
            self.at = At::Word {
                kind,
                done: done + 1,
            };
            return Ok(());
        }
        self.value_done();
        let end = place + 1;
        sink.event(
            Event::Word(kind),
            end.saturating_sub(word.len() as u64)..end,
        )
    }

    fn number_done(&mut self, end: u64, sink: &mut impl Sink) -> Result<(), Bad> {
        if !is_number(self.held.as_bytes()) {
            return Err(Bad::BadNumber);
        }
        self.value_done();
        let raw = end.saturating_sub(self.held.len() as u64)..end;
        sink.event(Event::Number(&self.held), raw)
    }
}

fn is_white(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

fn is_number_byte(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// RFC 8259 section 6.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || whole > 1 && text[0] == b'0' {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(after) = rest.strip_prefix(b".") {
        let fraction = digits(after);
        if fraction == 0 {
            return false;
        }
        rest = &after[fraction..];
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = after
            .strip_prefix(b"+")
            .or(after.strip_prefix(b"-"))
            .unwrap_or(after);
        let exponent = digits(after);
        if exponent == 0 {
            return false;
        }
        rest = &after[exponent..];
    }
    rest.is_empty()
}
