//! Server-sent events: a stream of bytes to events and back.
//!
//! The decoder follows the WHATWG event stream grammar (CR, LF and CRLF, one byte order mark at the start, several `data`
//! lines, split anywhere) and is stricter in one place: bytes that are not UTF-8 end the stream with an error instead of
//! turning into replacement characters, because what was scanned must be what is sent.
//!
//! It never hands on comments or unknown fields: they are counted or dropped, so nothing unscanned rides in them. It holds
//! one unfinished event and the events of the last chunk, nothing more.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use memchr::{memchr, memchr2};
use thiserror::Error;

/// A comment that keeps an idle connection open.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

pub use crate::sse_long::LongEvent;
pub use crate::sse_over::PassedOver;
use crate::sse_over::{Field, Over, OverEvent};
use crate::{Limits, LongLine, Whose};

/// Longest wait that a server may ask for, an hour; a longer one is not handed on. It is the one number of a stream that
/// nobody scans, and no card or phone number is as short.
const RETRY_MS_MAX: u64 = 3_600_000;

/// So many times what may be held of an event is passed over of one; what goes on after that is a failure.
const OVER_TIMES_MAX: u64 = 256;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The bounds on one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseLimits {
    /// Most bytes of data in one event.
    pub event_bytes_max: usize,
    /// Longest line, of whatever field.
    pub line_bytes_max: usize,
    /// Longest event id or event name.
    pub id_bytes_max: usize,
}

impl SseLimits {
    /// Limits for events with at most so much data.
    pub fn for_event_bytes(event_bytes_max: usize) -> Self {
        // `data: ` and a byte order mark come on top of the data.
        SseLimits {
            event_bytes_max,
            line_bytes_max: event_bytes_max.saturating_add(16),
            id_bytes_max: 1024,
        }
    }
}

impl Default for SseLimits {
    fn default() -> Self {
        SseLimits::for_event_bytes(4 << 20)
    }
}

/// One event.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field.
    pub event: Option<Box<str>>,
    /// The `data` lines joined by newlines; none if there was no such line, empty for a priming event. Always UTF-8 when
    /// it comes from a decoder.
    pub data: Option<Bytes>,
    /// The `id` field.
    pub id: Option<Box<str>>,
    /// The `retry` field; from a decoder an hour at most.
    pub retry_ms: Option<u64>,
}

/// Shows sizes only: the text may be a secret.
impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("event_bytes", &self.event.as_ref().map(|name| name.len()))
            .field("data_bytes", &self.data.as_ref().map(Bytes::len))
            .field("id_bytes", &self.id.as_ref().map(|id| id.len()))
            .field("retry_ms", &self.retry_ms)
            .finish()
    }
}

/// Why a stream is refused. Nothing can be read from it after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SseError {
    /// An event with more data than allowed.
    #[error("an event above the size limit")]
    EventTooLarge,
    /// A line longer than allowed.
    #[error("a line above the size limit")]
    LineTooLong,
    /// An event id or name longer than allowed.
    #[error("an event id or name above the size limit")]
    IdTooLong,
    /// A line that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// The stream ended inside an event, which the standard says to discard.
    #[error("the stream ended inside an event")]
    Unterminated,
    /// The caller pushed again and again without taking the events out.
    #[error("more events are waiting than may be held")]
    NotDrained,
}

/// Turns chunks into events.
///
/// ```
/// use mcp_codec::sse::{Decoder, SseLimits};
///
/// let mut decoder = Decoder::new(SseLimits::default());
/// decoder.push(b": hello\r\nid: 7\r\ndata: {\"a\":");
/// assert!(decoder.next().is_none());
/// decoder.push(b"1}\r\n\r\n");
/// let event = decoder.next().expect("it is whole")?;
/// assert_eq!(event.id.as_deref(), Some("7"));
/// assert_eq!(event.data.as_deref(), Some(br#"{"a":1}"#.as_slice()));
/// assert!(decoder.next().is_none());
/// decoder.finish()?;
/// # Ok::<(), mcp_codec::sse::SseError>(())
/// ```
pub struct Decoder {
    limits: SseLimits,
    /// The line that is not yet whole.
    line: Vec<u8>,
    /// The last line ended with CR, so an LF that comes next belongs to it.
    skip_lf: bool,
    at_start: bool,
    /// The event that is not yet whole, without its data.
    event: Event,
    data: Data,
    ready: VecDeque<Event>,
    ready_bytes: usize,
    failed: Option<SseError>,
    /// What came after the beginning of a line that was too long.
    overflow: Vec<u8>,
    comments: u64,
    /// Where it passes over what is too long: within which bounds it is read for whose it is.
    passing: Option<Passing>,
    over: Option<Over>,
    /// How much of that was passed over.
    over_bytes: u64,
    passed_over: VecDeque<PassedOver>,
}

#[derive(Clone, Copy)]
struct Passing {
    limits: Limits,
    /// An event that may be an answer is handed over: see [`Decoder::take_long`].
    hands_over: bool,
}

/// The data lines of one event so far. One line is the rule, and it is kept without a further copy.
#[derive(Default)]
enum Data {
    #[default]
    None,
    Line(Bytes),
    Lines(Vec<u8>),
}

impl Data {
    fn into_bytes(self) -> Option<Bytes> {
        match self {
            Data::None => None,
            Data::Line(line) => Some(line),
            Data::Lines(lines) => Some(lines.into()),
        }
    }
}

/// A whole line, where it is.
enum Line<'a> {
    InChunk(&'a [u8]),
    Collected(Vec<u8>),
}

impl Line<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Line::InChunk(bytes) => bytes,
            Line::Collected(bytes) => bytes,
        }
    }

    /// Copies what is in the chunk and nothing else.
    fn into_bytes(self) -> Bytes {
        match self {
            Line::InChunk(bytes) => Bytes::copy_from_slice(bytes),
            Line::Collected(bytes) => bytes.into(),
        }
    }
}

impl Decoder {
    /// An empty stream.
    pub fn new(limits: SseLimits) -> Self {
        Decoder {
            limits,
            line: Vec::new(),
            skip_lf: false,
            at_start: true,
            event: Event::default(),
            data: Data::None,
            ready: VecDeque::new(),
            ready_bytes: 0,
            failed: None,
            overflow: Vec::new(),
            comments: 0,
            passing: None,
            over: None,
            over_bytes: 0,
            passed_over: VecDeque::new(),
        }
    }

    /// The same decoder, which does not fail by what is too long but passes over it: see [`Self::next_passed_over`].
    #[must_use]
    pub fn passing_over(self, limits: Limits) -> Self {
        let hands_over = false;
        Decoder {
            passing: Some(Passing { limits, hands_over }),
            ..self
        }
    }

    /// From now on an event that may be an answer is a failure again where [`Self::take_long`] can have it.
    pub fn hand_over(&mut self) {
        if let Some(passing) = &mut self.passing {
            passing.hands_over = true;
        }
    }

    /// The next event that was passed over, once it is known whose it is. Comments and unknown fields are not told of.
    pub fn next_passed_over(&mut self) -> Option<PassedOver> {
        self.passed_over.pop_front()
    }

    /// Takes the next piece of the stream. Call [`Decoder::next`] until it gives `None` before pushing again.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let outcome = match self.ready_bytes > self.limits.event_bytes_max {
            true => Err(SseError::NotDrained),
            false => self.take_all(chunk),
        };
        if let Err(error) = outcome {
            self.failed = Some(error);
            let is_long = error == SseError::LineTooLong && matches!(self.data, Data::None);
            if !is_long {
                (self.line, self.overflow) = (Vec::new(), Vec::new());
            }
            self.data = Data::None;
        }
    }

    /// The next whole event. After an error there are no further events, only that error.
    #[allow(
        clippy::should_implement_trait,
        reason = "None means \"not yet\", which an iterator may not say"
    )]
    pub fn next(&mut self) -> Option<Result<Event, SseError>> {
        match self.ready.pop_front() {
            Some(event) => {
                self.ready_bytes -= weight(&event);
                Some(Ok(event))
            }
            None => self.failed.map(Err),
        }
    }

    /// Says whether the stream ended between events. The standard discards an unfinished event, and so does this.
    pub fn finish(&mut self) -> Result<(), SseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let line = std::mem::take(&mut self.line);
        let line = if self.at_start {
            without_mark(&line)
        } else {
            &line
        };
        let inside_line = !line.is_empty() && line[0] != b':';
        let inside_event = self.take_event().is_some() | matches!(self.over, Some(Over::Event(_)));
        if inside_line || inside_event {
            Err(SseError::Unterminated)
        } else {
            Ok(())
        }
    }

    /// The event whose first data line was too long, where that is why the stream failed: it can be read on piece by piece.
    /// Nothing else can be read from the stream after that.
    pub fn take_long(&mut self) -> Option<LongEvent> {
        if self.failed != Some(SseError::LineTooLong) || !self.ready.is_empty() {
            return None;
        }
        let mut line = std::mem::take(&mut self.line);
        let overflow = std::mem::take(&mut self.overflow);
        // A whole line may have come at once.
        let taken = match line.len() < FIELD.len() {
            true => overflow.len().min(FIELD.len() - line.len()),
            false => 0,
        };
        line.extend_from_slice(&overflow[..taken]);
        let value = line.strip_prefix(FIELD)?;
        let id = self.event.id.take();
        Some(LongEvent::new(id, value, &overflow[taken..]))
    }

    /// How many comment lines were dropped. A peer's keep-alives are such lines.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Takes a piece, and passes over what in it is too long.
    fn take_all(&mut self, chunk: &[u8]) -> Result<(), SseError> {
        let mut rest = Cow::Borrowed(chunk);
        loop {
            if let Some(over) = self.over.take() {
                self.over_bytes += rest.len() as u64;
                if self.over_bytes / OVER_TIMES_MAX > self.limits.line_bytes_max as u64 {
                    return Err(SseError::EventTooLarge);
                }
                match self.pass_over(over, &rest) {
                    Some(at) => rest = rest[at..].to_vec().into(),
                    None => return Ok(()),
                }
            }
            match self.take(&rest) {
                Err(error @ (SseError::LineTooLong | SseError::EventTooLarge)) => {
                    let over = self.begin_over(error).ok_or(error)?;
                    (self.over, self.over_bytes) = (Some(over), 0);
                    rest = std::mem::take(&mut self.overflow).into();
                }
                outcome => return outcome,
            }
        }
    }

    /// Where to go on behind what is too long; `None` where it goes on with the next piece.
    fn pass_over(&mut self, mut over: Over, rest: &[u8]) -> Option<usize> {
        let after = match &mut over {
            // What is left of it is read as a comment.
            Over::Line => memchr2(b'\r', b'\n', rest).map(|end| &rest[end..]),
            Over::Event(event) => {
                let (after, told) = event.take(rest);
                self.passed_over.extend(told);
                self.skip_lf = event.skips_lf();
                after
            }
        };
        match after {
            Some(after) => {
                if matches!(over, Over::Line) {
                    self.line = b":".to_vec();
                }
                Some(rest.len() - after.len())
            }
            None => {
                self.over = Some(over);
                None
            }
        }
    }

    /// What to pass over after a line or an event was found too long; `None` where that is a failure.
    fn begin_over(&mut self, error: SseError) -> Option<Over> {
        let passing = self.passing?;
        let value = match error {
            SseError::LineTooLong => match self.begun_field() {
                Field::Short => return None,
                Field::Ignored => return Some(Over::Line),
                Field::Data => self.begun_value(passing)?,
            },
            _ => std::mem::take(&mut self.line),
        };
        let event = std::mem::take(&mut self.event).event;
        let held = std::mem::take(&mut self.data)
            .into_bytes()
            .unwrap_or_default();
        let over = OverEvent::new(&passing.limits, event, &held, &value);
        Some(Over::Event(Box::new(over)))
    }

    /// Which field the line is that is too long. Its name may stand in what came last.
    fn begun_field(&mut self) -> Field {
        let lacks = (BYTE_ORDER_MARK.len() + FIELD.len()).saturating_sub(self.line.len());
        let more = lacks.min(self.overflow.len());
        self.line.extend(self.overflow.drain(..more));
        if std::mem::take(&mut self.at_start) {
            self.line = without_mark(&self.line).to_vec();
        }
        Field::of(&self.line)
    }

    /// What there is of a data line that is too long; `None` where its event is handed over.
    fn begun_value(&mut self, passing: Passing) -> Option<Vec<u8>> {
        if passing.hands_over && matches!(self.data, Data::None) {
            let mut line = LongLine::new(&passing.limits);
            line.push(&self.line[FIELD.len()..]);
            line.push(&self.overflow);
            if !matches!(line.so_far(), Whose::Word | Whose::Call(_)) {
                return None;
            }
        }
        let mut line = std::mem::take(&mut self.line);
        Some(line.split_off(FIELD.len()))
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), SseError> {
        let mut rest = chunk;
        if !rest.is_empty() && std::mem::take(&mut self.skip_lf) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\r', b'\n', rest) {
            self.check_line_len(end, rest)?;
            let line = match self.line.is_empty() {
                true => Line::InChunk(&rest[..end]),
                false => {
                    self.line.extend_from_slice(&rest[..end]);
                    Line::Collected(std::mem::take(&mut self.line))
                }
            };
            self.line_done(line)
                .inspect_err(|_| self.overflow = rest[end..].to_vec())?;
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.skip_lf = true,
                }
            }
        }
        self.check_line_len(rest.len(), rest)?;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    fn check_line_len(&mut self, more: usize, rest: &[u8]) -> Result<(), SseError> {
        match self.line.len() + more > self.limits.line_bytes_max {
            true => {
                self.overflow = rest.to_vec();
                Err(SseError::LineTooLong)
            }
            false => Ok(()),
        }
    }

    fn line_done(&mut self, line: Line<'_>) -> Result<(), SseError> {
        let bytes = line.bytes();
        let mark_bytes = match std::mem::take(&mut self.at_start) {
            true => bytes.len() - without_mark(bytes).len(),
            false => 0,
        };
        let text = std::str::from_utf8(&bytes[mark_bytes..]).map_err(|_| SseError::NotUtf8)?;
        if text.is_empty() {
            self.dispatch();
            return Ok(());
        }
        let colon = memchr(b':', text.as_bytes());
        let (field, value) = match colon {
            Some(0) => {
                self.comments += 1;
                return Ok(());
            }
            Some(at) => (
                &text[..at],
                text[at + 1..].strip_prefix(' ').unwrap_or(&text[at + 1..]),
            ),
            None => (text, ""),
        };
        match field {
            "data" => {
                let value_start = bytes.len() - value.len();
                self.add_data(line, value_start)
            }
            "event" => self.short(value).map(|name| self.event.event = Some(name)),
            // The standard ignores an id with a NUL.
            "id" if value.contains('\0') => Ok(()),
            "id" => self.short(value).map(|id| self.event.id = Some(id)),
            "retry" => {
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let retry_ms = value.parse().ok().filter(|_| is_number);
                let retry_ms = retry_ms.filter(|ms| *ms <= RETRY_MS_MAX);
                self.event.retry_ms = retry_ms.or(self.event.retry_ms);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn short(&self, value: &str) -> Result<Box<str>, SseError> {
        match value.len() > self.limits.id_bytes_max {
            true => Err(SseError::IdTooLong),
            false => Ok(value.into()),
        }
    }

    fn add_data(&mut self, line: Line<'_>, value_start: usize) -> Result<(), SseError> {
        let held = match &self.data {
            Data::None => 0,
            Data::Line(first) => first.len() + 1,
            Data::Lines(lines) => lines.len() + 1,
        };
        if held + line.bytes().len() - value_start > self.limits.event_bytes_max {
            self.line = line.bytes()[value_start..].to_vec();
            return Err(SseError::EventTooLarge);
        }
        self.data = match std::mem::take(&mut self.data) {
            Data::None => Data::Line(line.into_bytes().slice(value_start..)),
            Data::Line(first) => {
                Data::Lines([&first, b"\n".as_slice(), &line.bytes()[value_start..]].concat())
            }
            Data::Lines(mut lines) => {
                lines.push(b'\n');
                lines.extend_from_slice(&line.bytes()[value_start..]);
                Data::Lines(lines)
            }
        };
        Ok(())
    }

    fn dispatch(&mut self) {
        if let Some(event) = self.take_event() {
            self.ready_bytes += weight(&event);
            self.ready.push_back(event);
        }
    }

    /// What was collected, unless there was no field at all.
    fn take_event(&mut self) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        event.data = std::mem::take(&mut self.data).into_bytes();
        if event == Event::default() {
            None
        } else {
            Some(event)
        }
    }
}

pub(crate) const FIELD: &[u8] = b"data:";

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("line_bytes", &self.line.len())
            .field("ready", &self.ready.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

/// What a waiting event counts against the bound; its own size counts too, so that empty ones do.
fn weight(event: &Event) -> usize {
    let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    size_of::<Event>()
        + event.data.as_ref().map_or(0, Bytes::len)
        + text(&event.event)
        + text(&event.id)
}

/// Appends one event, with one `data` line per line of its data.
///
/// A line break in an event's name or id cannot be written and is left out, so that neither can start a field of its own.
pub fn encode(out: &mut Vec<u8>, event: &Event) {
    if let Some(id) = &event.id {
        push_field(out, "id", id);
    }
    if let Some(name) = &event.event {
        push_field(out, "event", name);
    }
    if let Some(retry_ms) = event.retry_ms {
        push_field(out, "retry", &retry_ms.to_string());
    }
    if let Some(data) = &event.data {
        push_data(out, data);
    }
    out.push(b'\n');
}

fn push_field(out: &mut Vec<u8>, field: &str, value: &str) {
    out.extend_from_slice(field.as_bytes());
    out.extend_from_slice(b": ");
    out.extend(value.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')));
    out.push(b'\n');
}

fn push_data(out: &mut Vec<u8>, data: &[u8]) {
    let mut rest = data;
    loop {
        let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        rest = match &rest[end..] {
            [] => return,
            [b'\r', b'\n', after @ ..] => after,
            [_, after @ ..] => after,
        };
    }
}
