//! The event streams of a Streamable HTTP server for clients that cannot open one: those of 2024-11-05 and of pipes have
//! one way down for everything, and know neither GET nor `Last-Event-ID`.
//!
//! ```text
//! what the server says unasked ── GET, opened again whenever it ends ──┐
//! the answer to a call ── POST, then GET where the server hung up ─────┴──▶ the one way down
//! ```

use std::sync::Arc;
use std::time::Duration;

use domain::Era;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::call::{Down, Halt, Origin, Source, Step, stream_silence};
use super::head::{self, Trace};
use super::trail::Trail;
use super::{Context, pump};
use crate::pipeline::{Cleared, ToClient};
use crate::session::{Channel, Session};
use crate::upstream::{Answer, Fault, HttpLink, Link, Purpose, UpstreamHeaders, Verb};

/// Between two openings where the server names no time, or one that is no good (2025-11-25, transports: `retry`).
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Where a stream can be gone on with.
#[derive(Debug, Default)]
struct Place {
    event: Option<Box<str>>,
    retry: Option<Duration>,
}

impl Place {
    fn pass(&mut self, step: &Step) {
        let (Step::Send { id, retry_ms, .. } | Step::Prime { id, retry_ms }) = step else {
            return;
        };
        if id.is_some() {
            self.event.clone_from(id);
        }
        if let Some(ms) = *retry_ms {
            self.retry = Some(Duration::from_millis(ms));
        }
    }

    fn pause(&self) -> Duration {
        self.retry.unwrap_or(PAUSE).clamp(PAUSE_MIN, PAUSE_MAX)
    }

    fn headers(&self, like: &UpstreamHeaders) -> UpstreamHeaders {
        let mut protocol = like.protocol.clone();
        protocol.retain(|(name, _)| name == "mcp-protocol-version");
        if let Some(event) = &self.event {
            head::push(&mut protocol, "last-event-id", event);
        }
        UpstreamHeaders {
            purpose: Purpose::Word,
            accept: Some("text/event-stream"),
            session_id: like.session_id.clone(),
            protocol,
        }
    }
}

/// What a GET came to.
enum Opened {
    Stream(Source),
    /// The server has no such stream, or none any more.
    No(u16),
    /// It may have one later.
    Later(Fault),
}

async fn open(link: &HttpLink, headers: &UpstreamHeaders) -> Opened {
    match link.send(Verb::Get, headers, None).await {
        Ok(Answer::Events(head, mut events)) if head.status == 200 => {
            events.set_idle_timeout(None);
            Opened::Stream(Source::new(Origin::Events(events)))
        }
        Ok(answer) => match answer.head().status {
            status @ (429 | 500..) => Opened::Later(Fault::Status(status)),
            status => Opened::No(status),
        },
        Err(fault) => Opened::Later(fault),
    }
}

/// The link to a server that may be asked for streams. One to a sandbox would keep it from ever being idle.
fn link_of(context: &Context) -> Option<&HttpLink> {
    match &context.server.runtime.link {
        Link::Http(link) if !link.is_hosted() => Some(link),
        _ => None,
    }
}

/// Carries what the server says unasked, from when the client has greeted it until the client goes. A server without such a
/// stream says nothing.
pub(super) async fn listen(context: &Context, own: &Arc<Session>, channel: &Channel) {
    let Some(link) = link_of(context) else {
        return std::future::pending().await;
    };
    channel.greeted().await;
    let mut trail = Trail::new(&context.server);
    // Its messages have records of their own.
    trail.begun(context, Some(own), &Trace::default(), 0);
    trail.spoken(Era::Handshake, Some(own.version));
    let down = Down::unasked(context, &own.calls);
    let upstream = UpstreamHeaders {
        session_id: own.upstream_id(),
        ..UpstreamHeaders::default()
    };
    let mut place = Place::default();
    let mut pause = Duration::ZERO;
    loop {
        match open(link, &place.headers(&upstream)).await {
            Opened::Stream(mut source) => {
                let way = channel.answers();
                let was_heard = pass_on(&down, &mut source, &upstream, &mut place, &mut trail, way);
                match was_heard.await {
                    Heard::Something => pause = Duration::ZERO,
                    Heard::Nothing => {}
                    Heard::Enough => return,
                }
            }
            Opened::No(status) => {
                tracing::debug!(server_id = %context.server.id, status, "no stream to listen to");
                return std::future::pending().await;
            }
            Opened::Later(fault) => {
                tracing::debug!(server_id = %context.server.id, %fault, "no stream to listen to yet");
            }
        }
        pause = (pause * 2).max(place.pause()).min(PAUSE_MAX);
        tokio::time::sleep(pause).await;
    }
}

enum Heard {
    Something,
    Nothing,
    /// Nobody may or wants to hear more.
    Enough,
}

async fn pass_on(
    down: &Down<'_>,
    source: &mut Source,
    upstream: &UpstreamHeaders,
    place: &mut Place,
    trail: &mut Trail,
    way: &mpsc::Sender<Cleared<ToClient>>,
) -> Heard {
    let mut heard = Heard::Nothing;
    while let Ok(Some(item)) = source.next().await {
        let step = match down.step(item, trail).await {
            Ok(step) => step,
            // A message that is none ends its stream, and would again at once where the next one begins with it.
            Err(Halt::Fault(_)) => return Heard::Nothing,
            Err(Halt::NotAudited | Halt::Revoked) => return Heard::Enough,
        };
        heard = Heard::Something;
        place.pass(&step);
        match step {
            Step::Send { message, .. } => {
                if way.send(message).await.is_err() {
                    return Heard::Enough;
                }
            }
            Step::Skip {
                to_server: Some(word),
            } => pump::tell_server(down.context, source, upstream, &word).await,
            Step::Prime { .. } | Step::Skip { to_server: None } => {}
        }
    }
    heard
}

/// The rest of an answer whose stream the server closes before it has come, to be asked for later.
#[derive(Debug)]
pub(super) struct Rest {
    place: Place,
    /// When the server was last heard.
    heard: Instant,
}

impl Rest {
    pub(super) fn new() -> Self {
        Self {
            place: Place::default(),
            heard: Instant::now(),
        }
    }

    /// A step of the answer was taken.
    pub(super) fn pass(&mut self, step: &Step) {
        self.place.pass(step);
        self.heard = Instant::now();
    }

    /// The stream in which the answer goes on. `None`: there is none, because the server named no event to go on from.
    ///
    /// # Errors
    /// The server does not know the stream any more, or says nothing in it for too long.
    pub(super) async fn open(
        &self,
        down: &Down<'_>,
        upstream: &UpstreamHeaders,
    ) -> Result<Option<Source>, Fault> {
        let (Some(link), Some(call)) = (link_of(down.context), down.call) else {
            return Ok(None);
        };
        if self.place.event.is_none() {
            return Ok(None);
        }
        let until = stream_silence(down.context, call).map(|most| self.heard + most);
        let headers = self.place.headers(upstream);
        let mut pause = self.place.pause();
        loop {
            if until.is_some_and(|until| Instant::now() + pause > until) {
                return Err(Fault::TimedOut);
            }
            tokio::time::sleep(pause).await;
            match open(link, &headers).await {
                Opened::Stream(mut source) => {
                    source.set_idle_timeout(stream_silence(down.context, call));
                    return Ok(Some(source));
                }
                Opened::No(status) => return Err(Fault::Status(status)),
                Opened::Later(_) => pause = (pause * 2).min(PAUSE_MAX),
            }
        }
    }
}
