//! Reads what a server says until its end, and routes it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mcp_codec::{DecodeError, DecodeErrorKind, Id, LongLine, Message, MessageKind, Whose};
use parking_lot::Mutex;
use stdio_child::{Child, LineError, LineReceiver};
use tokio::sync::{Semaphore, mpsc, watch};

use super::{Heard, Incoming, Restart, Router, Sender};
use crate::pipeline::{Cleared, ToServer};
use crate::reply::{self, code};
use crate::seldom::Seldom;
use crate::upstream::sse_link::{Said, SseReceiver};
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
    /// An event over the bound.
    Long(Whose),
    /// What was left at the end is no line.
    Unfinished,
    /// There is nothing more to read, and this is why.
    Broken(Fault),
}

impl Reader {
    async fn next(&mut self) -> Option<Read> {
        match self {
            Self::Stdio(lines, _) => Some(match lines.recv().await? {
                Ok(line) => Read::Message(line),
                Err(LineError::TooLong { part, ends, .. }) => Read::Part(part.0, ends),
                Err(LineError::Unfinished { .. } | LineError::Io(_)) => Read::Unfinished,
            }),
            Self::Sse(events) => match events.next().await.transpose()? {
                Ok(Said::Message(message)) => Some(Read::Message(message)),
                Ok(Said::TooLong(whose)) => Some(Read::Long(whose)),
                Err(fault) => Some(Read::Broken(fault)),
            },
        }
    }

    /// Why a message that is too long for it does not come.
    fn too_long(&self) -> Fault {
        Fault::TooLarge(match self {
            Self::Stdio(..) => Oversize::Pipe,
            Self::Sse(_) => Oversize::Event,
        })
    }
}

/// Refusals of a server's own questions that wait to be written; a server that does not read them has no more told.
const REFUSALS_MAX: usize = 8;

/// Tells a server that its question is not passed on. The reader waits for none of it: a server that does not read may wait to
/// be read.
pub(super) struct Refusals {
    sender: Weak<Sender>,
    write_timeout: Duration,
    places: Arc<Semaphore>,
}

impl Refusals {
    pub fn new(sender: Weak<Sender>, write_timeout: Duration) -> Self {
        Self {
            sender,
            write_timeout,
            places: Arc::new(Semaphore::new(REFUSALS_MAX)),
        }
    }

    /// Whether it is told.
    fn tell(&self, id: &Id, why: DecodeErrorKind) -> bool {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let (Some(sender), Ok(place)) = (self.sender.upgrade(), place) else {
            return false;
        };
        let own = reply::error(Some(id), code::INVALID_REQUEST, why.client_text());
        let word = Cleared::<ToServer>::of_ours(own);
        let max = self.write_timeout;
        tokio::spawn(async move {
            // One that is gone has nobody who waits.
            let _ = sender.write(&word, max).await;
            drop(place);
        });
        true
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
    pub refusals: Refusals,
    /// How often it is said that a line was too long.
    pub long_lines: Seldom,
    /// How often it is said that a line was no message.
    pub odd_lines: Seldom,
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
                Read::Long(whose) => {
                    self.settle(&whose, &reader.too_long(), &router);
                    continue;
                }
                Read::Unfinished => continue,
                Read::Broken(fault) => {
                    tracing::warn!(server_id = %self.server, %fault, "the server's event stream is over");
                    break;
                }
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
            let whose = match line.line.so_far() {
                whose @ (Whose::Answer(_) | Whose::Call(_)) => Some(whose),
                _ => ends.then(|| line.line.whose()),
            };
            line.is_settled = whose.is_some();
            if let Some(whose) = whose {
                self.settle(&whose, &Fault::TooLarge(Oversize::Pipe), router);
            }
        }
        if ends {
            *long = None;
        }
    }

    /// What a message that is too long means for those who wait.
    fn settle(&self, whose: &Whose, fault: &Fault, router: &Mutex<Router>) {
        let what = match whose {
            Whose::Answer(id) => {
                router.lock().fail(Some(id), fault);
                "its call is failed"
            }
            Whose::Unknown => {
                // Whose answer it was cannot be told; nobody is left waiting for it.
                router.lock().fail(None, fault);
                "whose answer it is cannot be told, so the calls that wait are failed"
            }
            Whose::Call(id) if self.refusals.tell(id, DecodeErrorKind::TooLarge) => {
                "it is dropped, and the server is told so"
            }
            Whose::Call(_) | Whose::Word | Whose::Nobody => "it is dropped",
        };
        if let Some(left_out) = self.long_lines.admits(Instant::now()) {
            tracing::warn!(
                server_id = %self.server, left_out,
                "a server's message is longer than limits.message_bytes_max: {what}"
            );
        }
    }

    /// What a line that is no message means for those who wait. Programs write their logs there, too.
    fn ill_formed(&self, error: &DecodeError, router: &Mutex<Router>) {
        let fault = Fault::Malformed(error.kind);
        let what = match &error.whose {
            Whose::Answer(id) => {
                router.lock().fail(Some(id), &fault);
                "its call is failed"
            }
            Whose::Unknown => {
                let mut router = router.lock();
                match router.only_one() {
                    Some(id) => {
                        router.fail(Some(&id), &fault);
                        "the only call that waits is failed"
                    }
                    None => "it is dropped",
                }
            }
            Whose::Call(id) if self.refusals.tell(id, error.kind) => {
                "it is dropped, and the server is told so"
            }
            Whose::Call(_) | Whose::Word | Whose::Nobody => "it is dropped",
        };
        if let Some(left_out) = self.odd_lines.admits(Instant::now()) {
            tracing::warn!(
                server_id = %self.server, reason = %error.kind, left_out,
                "a server's line is no message: {what}"
            );
        }
    }

    fn route(
        &self,
        bytes: Bytes,
        router: &Mutex<Router>,
    ) -> Option<(mpsc::Sender<Heard>, Incoming)> {
        let size = bytes.len();
        let message = match Message::decode(bytes, &self.codec) {
            Ok(message) => message,
            Err(error) => {
                self.ill_formed(&error, router);
                return None;
            }
        };
        self.spoke.store(true, Ordering::Relaxed);
        let mut router = router.lock();
        if let Some((channel, certain)) = router.route(&message) {
            return Some((channel, Incoming { message, certain }));
        }
        let says = matches!(
            message.kind(),
            MessageKind::Request | MessageKind::Notification
        );
        if says {
            let certain = false;
            router.hold(Incoming { message, certain }, size);
        }
        None
    }
}
