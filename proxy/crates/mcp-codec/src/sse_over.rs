//! What of an event stream is too long to be held and passed over: the rest is read on.

use crate::sse::{FIELD, LongEvent};
use crate::{Limits, LongLine, Whose};

/// An event that was too long and passed over.
#[derive(Debug)]
pub struct PassedOver {
    /// Its `event` field, if that came before its data.
    pub event: Option<Box<str>>,
    /// Whose message it is.
    pub whose: Whose,
}

/// Where in what is passed over a stream is.
pub(super) enum Over {
    /// In a line that nobody asks for.
    Line,
    /// In an event.
    Event(Box<OverEvent>),
}

/// An event on its way past.
pub(super) struct OverEvent {
    event: Option<Box<str>>,
    rest: LongEvent,
    line: LongLine,
    /// Whose it is was told.
    is_told: bool,
}

impl OverEvent {
    /// `held` is what there is of its data, `value` what is known of the data line at hand.
    pub(super) fn new(limits: &Limits, event: Option<Box<str>>, held: &[u8], value: &[u8]) -> Self {
        let mut line = LongLine::new(limits);
        if !held.is_empty() {
            line.push(held);
            line.push(b"\n");
        }
        let mut rest = LongEvent::new(None, value, b"");
        line.push(&rest.take_begun());
        Self {
            event,
            rest,
            line,
            is_told: false,
        }
    }

    /// Takes the next piece of the stream: gives what came after the event, if that is over, and whose it is, once.
    pub(super) fn take<'c>(&mut self, chunk: &'c [u8]) -> (Option<&'c [u8]>, Option<PassedOver>) {
        let mut data = Vec::with_capacity(chunk.len());
        let after = self.rest.take(chunk, &mut data);
        if !self.is_told {
            self.line.push(&data);
        }
        let is_over = self.rest.is_over();
        let whose = match self.line.so_far() {
            whose @ (Whose::Answer(_) | Whose::Call(_)) => Some(whose),
            _ => is_over.then(|| self.line.whose()),
        };
        let whose = whose.filter(|_| !self.is_told);
        self.is_told |= whose.is_some();
        let event = &mut self.event;
        let told = whose.map(|whose| PassedOver {
            event: event.take(),
            whose,
        });
        (is_over.then_some(after), told)
    }

    /// A line feed that comes after its end belongs to it.
    pub(super) fn skips_lf(&self) -> bool {
        self.rest.skips_lf()
    }
}

/// What a line is that is too long, by its beginning.
#[derive(PartialEq, Eq)]
pub(super) enum Field {
    Data,
    /// A comment, a number or nothing that is known.
    Ignored,
    /// An id or a name: what it belongs to cannot be told without it.
    Short,
}

impl Field {
    pub(super) fn of(begun: &[u8]) -> Self {
        match begun {
            _ if begun.starts_with(FIELD) => Self::Data,
            _ if begun.starts_with(b"id:") || begun.starts_with(b"event:") => Self::Short,
            _ => Self::Ignored,
        }
    }
}
