//! An upstream's stream of events.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_codec::Whose;
use mcp_codec::sse::{Decoder, Event, LongEvent, SseError, SseLimits};
use pingora_core::protocols::http::client::HttpSession;

use super::hosted::Held;
use super::http::{Resolved, io_fault};
use super::{Fault, Oversize};

/// What a stream says.
#[derive(Debug)]
pub enum Said {
    /// An event.
    Event(Event),
    /// An event with a message that was too long to be held, and is passed over.
    TooLong(Whose),
}

/// Messages are events named `message`, or not named at all; others are the transport's own, like `ping`.
fn is_message(name: Option<&str>) -> bool {
    name.is_none_or(|name| matches!(name, "" | "message"))
}

/// The message in an event.
pub fn message_of(event: &mut Event) -> Option<Bytes> {
    let is_message = is_message(event.event.as_deref());
    let data = event.data.take();
    data.filter(|data| is_message && !data.is_empty())
}

/// A stream of events that nobody has judged yet.
pub struct EventStream {
    session: HttpSession,
    resolved: Arc<Resolved>,
    decoder: Decoder,
    ended: bool,
    /// The sandbox that it comes from.
    held: Option<Held>,
}

impl std::fmt::Debug for EventStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventStream")
    }
}

impl EventStream {
    pub(super) fn new(
        session: HttpSession,
        resolved: Arc<Resolved>,
        limits: SseLimits,
        codec: mcp_codec::Limits,
    ) -> Self {
        Self {
            session,
            resolved,
            decoder: Decoder::new(limits).passing_over(codec),
            ended: false,
            held: None,
        }
    }

    /// Keeps the sandbox that it comes from leased until its end.
    pub(super) fn hold(&mut self, held: Held) {
        self.held = Some(held);
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Fault> {
        let session = &mut self.session;
        let read = async { session.read_response_body().await.map_err(|e| io_fault(&e)) };
        match &mut self.held {
            // Who listens may do so anew; an open stream would keep the sandbox from ever being idle.
            Some(held) => match held.guard(read).await {
                Err(Fault::TimedOut) if held.is_open_ended() => Ok(None),
                read => read,
            },
            None => read.await,
        }
    }

    /// How long the upstream may be silent; `None`: as long as it likes, and a sandbox as long as a call may take.
    pub fn set_idle_timeout(&mut self, timeout: Option<Duration>) {
        match &mut self.held {
            None => self.session.set_read_timeout(timeout),
            Some(held) if timeout.is_none() => held.open_ended(),
            Some(_) => {}
        }
    }

    /// The next event, or `None` at the end. May be dropped between polls without losing bytes.
    ///
    /// # Errors
    /// The stream broke off or broke the format; nothing more comes.
    pub async fn next(&mut self) -> Result<Option<Said>, Fault> {
        loop {
            while let Some(over) = self.decoder.next_passed_over() {
                if is_message(over.event.as_deref()) {
                    return Ok(Some(Said::TooLong(over.whose)));
                }
            }
            if let Some(event) = self.decoder.next() {
                return event
                    .map(|event| Some(Said::Event(event)))
                    .map_err(|error| match error {
                        SseError::LineTooLong | SseError::EventTooLarge => {
                            Fault::TooLarge(Oversize::Off)
                        }
                        SseError::NotUtf8 => Fault::Broken("an event stream that is not UTF-8"),
                        SseError::IdTooLong => {
                            Fault::Broken("an event id or name above the size limit")
                        }
                        _ => Fault::Broken("a malformed event stream"),
                    });
            }
            if self.ended {
                return Ok(None);
            }
            match self.read().await? {
                Some(chunk) => self.decoder.push(&chunk),
                None => {
                    self.ended = true;
                    self.held = None;
                    // An event without its blank line is not an event (WHATWG); it is dropped.
                    let _ = self.decoder.finish();
                }
            }
        }
    }

    /// From now on [`Self::next`] fails by an event that is too long and may be an answer, so that [`Self::take_long`] can have it.
    pub fn hand_over(&mut self) {
        self.decoder.hand_over();
    }

    /// The event that was too long, after [`Self::next`] failed by it: it can be read on with
    /// [`Self::next_of`], and nothing else can.
    pub fn take_long(&mut self) -> Option<LongEvent> {
        self.decoder.take_long()
    }

    /// The next piece of a long event, or `None` when it is whole.
    ///
    /// # Errors
    /// The stream broke off within it.
    pub async fn next_of(&mut self, event: &mut LongEvent) -> Result<Option<Vec<u8>>, Fault> {
        if event.is_over() {
            return Ok(None);
        }
        match self.read().await? {
            Some(chunk) => Ok(Some(event.push(&chunk))),
            None => Err(Fault::Cut),
        }
    }

    /// Its connection, if it ended in order.
    pub(super) fn into_ended(self) -> Option<(HttpSession, Arc<Resolved>)> {
        self.ended.then_some((self.session, self.resolved))
    }
}
