//! The client side of HTTP+SSE (revision 2024-11-05): one GET stream down, POSTs up.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcp_codec::Whose;
use tokio::sync::Mutex;

use super::events::{self, message_of};
use super::target::ReferenceError;
use super::{Answer, EventStream, Fault, HttpLink, UpstreamHeaders, Verb};
use crate::pipeline::{Cleared, ToServer};

/// Events before the `endpoint` event that are passed over.
const PRELUDE_MAX: usize = 4;
/// How long the server may take to name its endpoint.
const ENDPOINT_WAIT: Duration = Duration::from_secs(10);

/// Longest endpoint, in bytes: it is kept with the session.
const ENDPOINT_BYTES_MAX: usize = 8 << 10;

/// Where messages are posted.
pub(super) struct SseSender {
    http: Arc<HttpLink>,
    path: String,
    // Messages of one session go up in order.
    turn: Mutex<()>,
}

/// Where messages come from.
pub(super) struct SseReceiver {
    events: Box<EventStream>,
}

/// Opens the stream and learns the endpoint, which must lie on the same origin.
pub(super) async fn open(http: &Arc<HttpLink>) -> Result<(SseSender, SseReceiver), Fault> {
    let headers = UpstreamHeaders {
        accept: Some("text/event-stream"),
        ..Default::default()
    };
    let answer = http.send(Verb::Get, &headers, None).await?;
    let mut events = match answer {
        Answer::Events(head, events) if head.status == 200 => events,
        Answer::Events(head, _)
        | Answer::Json(head, _)
        | Answer::Long(head, _)
        | Answer::Empty(head) => {
            return Err(match head.status {
                401 | 403 => Fault::Credentials(head.status),
                status => Fault::Status(status),
            });
        }
    };
    let endpoint = tokio::time::timeout(ENDPOINT_WAIT, endpoint(&mut events));
    let endpoint = endpoint.await.map_err(|_| Fault::TimedOut)??;
    let target = http.target().at(&endpoint);
    let target = target.map_err(|why| Fault::Broken(refused(why)))?;
    // The stream lives as long as the session.
    events.set_idle_timeout(None);
    let sender = SseSender {
        http: Arc::clone(http),
        path: target.path,
        turn: Mutex::new(()),
    };
    Ok((sender, SseReceiver { events }))
}

async fn endpoint(events: &mut EventStream) -> Result<String, Fault> {
    for _ in 0..PRELUDE_MAX {
        let event = match events.next().await? {
            Some(events::Said::Event(event)) => event,
            Some(events::Said::TooLong(_)) => continue,
            None => break,
        };
        if event.event.as_deref() == Some("endpoint") {
            return endpoint_of(&event.data.unwrap_or_default());
        }
    }
    Err(Fault::Broken("no endpoint event"))
}

fn refused(why: ReferenceError) -> &'static str {
    match why {
        ReferenceError::NoUri => "the endpoint is no URI",
        ReferenceError::OtherOrigin => "the endpoint lies on another origin",
        ReferenceError::Credentials => "the endpoint holds credentials",
    }
}

fn endpoint_of(data: &[u8]) -> Result<String, Fault> {
    if data.len() > ENDPOINT_BYTES_MAX {
        return Err(Fault::Broken("an endpoint above the size limit"));
    }
    let text = std::str::from_utf8(data).map_err(|_| Fault::Broken("the endpoint"))?;
    Ok(text.trim().to_owned())
}

impl SseSender {
    pub(super) async fn send(&self, message: &Cleared<ToServer>) -> Result<(), Fault> {
        let turn = tokio::time::timeout(self.http.response_timeout(), self.turn.lock());
        let _turn = turn.await.map_err(|_| Fault::TimedOut)?;
        let headers = UpstreamHeaders {
            accept: Some("application/json"),
            ..Default::default()
        };
        let answer = self
            .http
            .send_to(&self.path, Verb::Post, &headers, Some(message))
            .await?;
        let (Answer::Json(head, _)
        | Answer::Long(head, _)
        | Answer::Empty(head)
        | Answer::Events(head, _)) = answer;
        match head.status {
            200..=299 => Ok(()),
            401 | 403 => Err(Fault::Credentials(head.status)),
            status => Err(Fault::Status(status)),
        }
    }
}

/// What a server says on its stream.
pub(super) enum Said {
    /// A message.
    Message(Bytes),
    /// One that was too long to be held.
    TooLong(Whose),
}

impl SseReceiver {
    /// The next message, or `None` at the end.
    ///
    /// # Errors
    /// The stream broke off, or is none any more.
    pub(super) async fn next(&mut self) -> Result<Option<Said>, Fault> {
        loop {
            match self.events.next().await? {
                Some(events::Said::Event(mut event)) => {
                    if let Some(message) = message_of(&mut event) {
                        return Ok(Some(Said::Message(message)));
                    }
                }
                Some(events::Said::TooLong(whose)) => return Ok(Some(Said::TooLong(whose))),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_no_longer_than_it_may_be() {
        let of = |len: usize| endpoint_of("/".repeat(len).as_bytes());
        assert!(of(ENDPOINT_BYTES_MAX).is_ok());
        assert!(matches!(of(ENDPOINT_BYTES_MAX + 1), Err(Fault::Broken(_))));
        assert!(endpoint_of(b"\xff").is_err());
    }
}
