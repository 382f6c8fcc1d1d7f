//! Reads what a server says until its end, and routes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use mcp_codec::{LongLine, Message, Whose};
use parking_lot::Mutex;
use stdio_child::{Child, LineError, LineReceiver};
use tokio::sync::{mpsc, watch};

use super::{Heard, Incoming, Restart, Router};
use crate::seldom::Seldom;
use crate::upstream::sse_link::SseReceiver;
use crate::upstream::{Fault, Oversize};

/// What a server says, as it comes.
pub(super) enum Reader {
    Stdio(LineReceiver, Arc<Child>),
    Sse(SseReceiver),
}

/// What a reader gives.
enum Read {
    Message(Bytes),
    /// A part of a line over the bound, and whether the line ends with it.
    Part(Bytes, bool),
    /// What was left at the end is no line.
    Unfinished,
}

impl Reader {
    async fn next(&mut self) -> Option<Read> {
        match self {
            Self::Stdio(lines, _) => Some(match lines.recv().await? {
                Ok(line) => Read::Message(line),
                Err(LineError::TooLong { part, ends, .. }) => Read::Part(part.0, ends),
                Err(LineError::Unfinished { .. } | LineError::Io(_)) => Read::Unfinished,
            }),
            Self::Sse(events) => events.next().await.map(Read::Message),
        }
    }
}

/// A line that is too long.
struct Long {
    line: LongLine,
    /// Whose it is was found, and done.
    is_settled: bool,
}

/// Reads what a server says until its end, and routes it.
pub(super) struct Reading {
    pub server: Arc<str>,
    pub router: Weak<Mutex<Router>>,
    pub codec: mcp_codec::Limits,
    pub spoke: Arc<AtomicBool>,
    pub backoff: Arc<Mutex<Restart>>,
    /// How often it is said that a line was too long.
    pub long_lines: Seldom,
}

impl Reading {
    pub async fn run(self, mut reader: Reader, closing: watch::Sender<bool>) {
        let started = Instant::now();
        let mut long = None;
        loop {
            // A stream that says nothing more would hold its connection long after its session.
            let read = tokio::select! {
                read = reader.next() => read,
                () = closing.closed() => None,
            };
            let Some(read) = read else { break };
            let Some(router) = self.router.upgrade() else {
                break;
            };
            let bytes = match read {
                Read::Message(bytes) => bytes,
                Read::Part(part, ends) => {
                    self.pass_over(&mut long, &part, ends, &router);
                    continue;
                }
                Read::Unfinished => continue,
            };
            if let Some((channel, incoming)) = self.route(bytes, &router) {
                drop(router);
                // A reader that is gone loses its message; one that is slow makes the server wait.
                let _ = channel.send(Ok(incoming)).await;
            }
        }
        closing.send_replace(true);
        let wanted = self.router.upgrade();
        if let Some(router) = &wanted {
            *router.lock() = Router::default();
            // Somebody still wanted it, so it ended by itself. One that spoke did start; that one
            // session ended says nothing about the next.
            if !self.spoke.load(Ordering::Relaxed) {
                self.backoff.lock().ended(started.elapsed());
            }
        }
        if let Reader::Stdio(_, child) = reader {
            let by_itself = wanted.is_some() && !child.is_told_to_stop();
            let exit = child.stop().await;
            if by_itself {
                tracing::warn!(server_id = %self.server, %exit, "the server ended by itself");
            }
        }
    }

    /// Reads on in a line that is too long: as soon as it says whose answer it is, that call is failed and no other.
    fn pass_over(&self, long: &mut Option<Long>, part: &[u8], ends: bool, router: &Mutex<Router>) {
        let line = long.get_or_insert_with(|| Long {
            line: LongLine::new(&self.codec),
            is_settled: false,
        });
        if !line.is_settled {
            line.line.push(part);
            line.is_settled = self.settle(line.line.whose(), ends, router);
        }
        if ends {
            *long = None;
        }
    }

    /// Whether nothing more has to be known of a line that is too long.
    fn settle(&self, whose: Whose, ends: bool, router: &Mutex<Router>) -> bool {
        let fault = Fault::TooLarge(Oversize::Pipe);
        let what = match whose {
            Whose::Answer(id) => {
                router.lock().fail(Some(&id), &fault);
                "its call is failed"
            }
            Whose::Call(_) | Whose::Word => "it is dropped",
            Whose::Unknown if !ends => return false,
            Whose::Unknown => {
                // Whose answer it was cannot be told; nobody is left waiting for it.
                router.lock().fail(None, &fault);
                "whose answer it is cannot be told, so the calls that wait are failed"
            }
        };
        if let Some(left_out) = self.long_lines.admits(Instant::now()) {
            tracing::warn!(
                server_id = %self.server, left_out,
                "a server's line is longer than limits.message_bytes_max: {what}"
            );
        }
        true
    }

    fn route(
        &self,
        bytes: Bytes,
        router: &Mutex<Router>,
    ) -> Option<(mpsc::Sender<Heard>, Incoming)> {
        let message = Message::decode(bytes, &self.codec);
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(
                    server_id = %self.server, reason = %error.kind,
                    "a server's line is no message; it is dropped"
                );
                if let Some(id) = error.recovered_id {
                    router.lock().forget(&id);
                }
                return None;
            }
        };
        self.spoke.store(true, Ordering::Relaxed);
        let (channel, certain) = router.lock().route(&message)?;
        Some((channel, Incoming { message, certain }))
    }
}
