//! Server-sent events: a stream of bytes to events and back.

use bytes::Bytes;
use thiserror::Error;

/// A comment that keeps an idle connection open.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

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

/// One event.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field.
    pub event: Option<Box<str>>,
    /// The `data` lines joined by newlines; none if there was no such line, empty for a priming event. Always UTF-8.
    pub data: Option<Bytes>,
    /// The `id` field.
    pub id: Option<Box<str>>,
    /// The `retry` field.
    pub retry_ms: Option<u64>,
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
pub struct Decoder {
    limits: SseLimits,
}

impl Decoder {
    /// An empty stream.
    pub fn new(limits: SseLimits) -> Self {
        Decoder { limits }
    }

    /// Takes the next piece of the stream. Call [`Decoder::next`] until it gives `None` before pushing again.
    pub fn push(&mut self, chunk: &[u8]) {
        let _ = (chunk, &self.limits);
        todo!()
    }

    /// The next whole event.
    #[allow(
        clippy::should_implement_trait,
        reason = "None means \"not yet\", which an iterator may not say"
    )]
    pub fn next(&mut self) -> Option<Result<Event, SseError>> {
        todo!()
    }

    /// Says whether the stream ended between events.
    pub fn finish(&mut self) -> Result<(), SseError> {
        todo!()
    }

    /// How many comment lines were dropped.
    pub fn comments(&self) -> u64 {
        todo!()
    }
}

/// Appends one event.
pub fn encode(out: &mut Vec<u8>, event: &Event) {
    let _ = (out, event);
    todo!()
}
