//! Duplex upstreams: one long-lived pair of pipes (a child process, or an HTTP+SSE stream of
//! revision 2024-11-05), served to many requests.
//!
//! ```text
//! request --register(id)--> Router --line--> server
//! its own channel <--route by id, progress token, subscription-- reader task <--line-- server
//! listener channel <--everything that names no request--------------'
//! ```
//!
//! A handshake session has a duplex of its own, so its ids are the client's own. Stateless requests
//! of one principal share one; their ids and tokens are replaced by ours on the way up and put back
//! on the way down, so that two clients which both count from 0 never meet.

mod reading;

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use domain::Limits;
use mcp_codec::{Id, Message, MessageKind};
use parking_lot::Mutex;
use stdio_child::{Backoff, BackoffPolicy, Child, ChildSpec, Exit, SendError, SpawnError};
use tokio::sync::{OnceCell, mpsc, watch};

use self::reading::{Reader, Reading, Refusals};
use super::facade::Told;
use super::sse_link::SseSender;
use super::{Fault, HttpLink};
use crate::authn::Principal;
use crate::pipeline::{Cleared, ToServer};
use crate::seldom::Seldom;
use crate::shares::{Share, Shares, Taken};

/// Messages that may wait for one request's reader; above it the server waits.
const CHANNEL_MAX: usize = 64;
/// What is kept for who listens later.
const EARLY_MAX: usize = 16;
const EARLY_BYTES_MAX: usize = 64 << 10;
/// Processes or streams of one server.
const SESSIONS_MAX: usize = 256;

/// Lines of the log about a server's lines that are too long, or no messages, in so long.
const LINES_SAID: u32 = 5;
const LINES_SAID_EVERY: Duration = Duration::from_secs(10);

/// What two handles of ours add to a message at most: twenty digits each.
const HANDLES_BYTES_MAX: usize = 64;

/// How a duplex upstream is opened.
pub struct DuplexLink {
    server: Arc<str>,
    opener: Opener,
    codec: mcp_codec::Limits,
    pending_max: usize,
    share_max: usize,
    write_timeout: Duration,
    open: Arc<Shares>,
    backoff: Arc<Mutex<Restart>>,
    /// By owner. Nobody waits under this lock: who opens one holds its cell only.
    shared: Mutex<HashMap<Arc<str>, Arc<Shared>>>,
}

/// A duplex that is shared, once it was opened.
type Shared = OnceCell<Weak<DuplexSession>>;

/// When the server may be started again.
struct Restart {
    backoff: Backoff,
    not_before: Option<Instant>,
}

impl Restart {
    /// A server ended by itself after it had lived so long; or, with zero, did not even start.
    fn ended(&mut self, uptime: Duration) {
        self.not_before = Some(Instant::now() + self.backoff.after_exit(uptime));
    }
}

enum Opener {
    Stdio(Box<ChildSpec>),
    Sse(Arc<HttpLink>),
}

impl Opener {
    fn stdio(mut spec: ChildSpec, limits: &Limits) -> Self {
        spec.line_bytes_max = limits.message_bytes_max;
        // What redaction made longer goes up here as it does over HTTP.
        let edited_bytes_max = crate::codec_limits(limits).edited_bytes_max();
        spec.written_bytes_max = Some(edited_bytes_max + HANDLES_BYTES_MAX);
        Self::Stdio(Box::new(spec))
    }
}

impl std::fmt::Debug for DuplexLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DuplexLink")
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// A message of the server and how it was routed.
#[derive(Debug)]
pub struct Incoming {
    /// The message, strictly parsed; nobody has judged it.
    pub message: Message,
    /// Whether it named the request it was routed to.
    pub certain: bool,
}

/// One open pair of pipes.
pub struct DuplexSession {
    sender: Arc<Sender>,
    router: Arc<Mutex<Router>>,
    closed: watch::Receiver<bool>,
    /// The server said something.
    spoke: Arc<AtomicBool>,
    next_handle: AtomicI64,
    pending_max: usize,
    write_timeout: Duration,
    era: OnceCell<Option<Told>>,
    _share: Share,
}

enum Sender {
    Stdio(Arc<Child>),
    Sse(SseSender),
}

impl Sender {
    async fn write(&self, message: &Cleared<ToServer>, max: Duration) -> Result<(), Fault> {
        match self {
            Self::Stdio(child) => {
                // The queue is full while the process does not read.
                let sent = child.send(message.bytes().clone());
                tokio::time::timeout(max, sent)
                    .await
                    .map_err(|_| Fault::TimedOut)?
                    .map_err(|error| match error {
                        SendError::TooLong { .. } => Fault::Grown,
                        _ => Fault::Broken("the process ended"),
                    })
            }
            Self::Sse(sender) => sender.send(message).await,
        }
    }
}

impl std::fmt::Debug for DuplexSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DuplexSession")
    }
}

#[derive(Default)]
struct Router {
    waiting: HashMap<Id, Waiting>,
    tokens: HashMap<Id, Id>,
    listener: Option<mpsc::Sender<Heard>>,
    /// What was said while nobody listened: a client opens its stream only after the server has heard that it is ready.
    early: VecDeque<(Incoming, usize)>,
    early_bytes: usize,
}

/// What comes for a request: a message, or why the one that was meant for it does not.
type Heard = Result<Incoming, Fault>;

struct Waiting {
    channel: mpsc::Sender<Heard>,
    token: Option<Id>,
    asks: Arc<AtomicBool>,
}

/// How long a server that owes an answer may say nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// From the request, and again from each message about it.
    pub max: Duration,
    /// Once the server asked something itself: it may be the client (a person) who is silent.
    pub asking_max: Duration,
}

impl Silence {
    /// What the limits allow.
    pub fn of(limits: &Limits) -> Self {
        let max = Duration::from_millis(limits.upstream_response_timeout_ms);
        let idle = Duration::from_millis(limits.upstream_idle_timeout_ms);
        Self {
            max,
            asking_max: max.max(idle),
        }
    }
}

/// The messages of one request. Dropping it forgets the request.
pub struct Subscription {
    receiver: mpsc::Receiver<Heard>,
    id: Option<Id>,
    session: Arc<DuplexSession>,
    silence: Option<Silence>,
    asks: Arc<AtomicBool>,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Subscription")
    }
}

impl Subscription {
    /// The next message, or `None` when the server is gone. May be dropped between polls.
    ///
    /// # Errors
    /// The server said nothing for longer than [`Silence`] allows, counted from this call: time
    /// that the client took for the message before is not the server's.
    pub async fn next(&mut self) -> Result<Option<Incoming>, Fault> {
        let Some(silence) = self.silence else {
            return self.receiver.recv().await.transpose();
        };
        let since = tokio::time::Instant::now();
        loop {
            // The server's question may have gone to a listener while this call waited.
            let asks = self.asks.load(Ordering::Relaxed);
            let max = if asks {
                silence.asking_max
            } else {
                silence.max
            };
            let next = tokio::time::timeout_at(since + max, self.receiver.recv()).await;
            match next {
                Ok(next) => return next.transpose(),
                Err(_) if !asks && self.asks.load(Ordering::Relaxed) => {}
                Err(_) => return Err(Fault::TimedOut),
            }
        }
    }

    /// Forgets the request: nothing more that comes for it is wanted, and its place is free.
    pub fn forget(&self) {
        let Some(id) = &self.id else { return };
        let mut router = self.session.router.lock();
        let waits = router.waiting.get(id);
        // Once it was answered its id may be another request's.
        if waits.is_some_and(|w| Arc::ptr_eq(&w.asks, &self.asks)) {
            router.forget(id);
        }
    }

    /// By which id the server knows the request; absent for a listener.
    pub fn id(&self) -> Option<&Id> {
        self.id.as_ref()
    }

    /// The session it belongs to.
    pub fn session(&self) -> &Arc<DuplexSession> {
        &self.session
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.forget();
    }
}

impl DuplexLink {
    /// A link to a child process.
    pub fn stdio(server: &str, spec: ChildSpec, limits: &Limits) -> Self {
        Self::new(server.into(), Opener::stdio(spec, limits), limits)
    }

    /// A link to an HTTP+SSE server.
    pub fn sse(server: &str, http: HttpLink, limits: &Limits) -> Self {
        Self::new(server.into(), Opener::Sse(Arc::new(http)), limits)
    }

    /// The same under other limits. What is open keeps those it was opened with and goes on counting; stateless requests
    /// share a new one from now on.
    pub fn with_limits(&self, limits: &Limits) -> Self {
        let opener = match &self.opener {
            Opener::Stdio(spec) => Opener::stdio(ChildSpec::clone(spec), limits),
            Opener::Sse(http) => Opener::Sse(Arc::new(http.with_limits(limits))),
        };
        Self {
            open: Arc::clone(&self.open),
            backoff: Arc::clone(&self.backoff),
            ..Self::new(Arc::clone(&self.server), opener, limits)
        }
    }

    fn new(server: Arc<str>, opener: Opener, limits: &Limits) -> Self {
        Self {
            server,
            opener,
            codec: crate::codec_limits(limits),
            pending_max: limits.pending_calls_max,
            share_max: limits.processes_per_principal_max,
            write_timeout: Duration::from_millis(limits.write_timeout_ms),
            open: Arc::default(),
            backoff: Arc::new(Mutex::new(Restart {
                backoff: Backoff::new(BackoffPolicy::default(), jitter_seed()),
                not_before: None,
            })),
            shared: Mutex::default(),
        }
    }

    /// Opens a pair of pipes for a principal.
    ///
    /// # Errors
    /// It cannot be opened, too many are open, or it failed so lately that it is left alone.
    pub async fn open(&self, principal: &Principal) -> Result<Arc<DuplexSession>, Fault> {
        self.wait_out_backoff()?;
        let limits = principal.share(SESSIONS_MAX, self.share_max);
        let share = self.open.take(&principal.owner, limits);
        let share = share.map_err(|taken| match taken {
            Taken::All => Fault::Busy,
            Taken::Share => Fault::ShareTaken,
        })?;
        let opened = match &self.opener {
            Opener::Stdio(spec) => match Child::spawn(spec).await {
                Ok((child, lines)) => {
                    let child = Arc::new(child);
                    let reader = Reader::Stdio(lines, Arc::clone(&child));
                    Ok((Sender::Stdio(child), reader))
                }
                Err(error) => Err(Fault::Unreachable(not_started(&error))),
            },
            Opener::Sse(http) => super::sse_link::open(http)
                .await
                .map(|(sender, receiver)| (Sender::Sse(sender), Reader::Sse(receiver))),
        };
        let (sender, reader) = match opened {
            Ok(opened) => opened,
            Err(fault) => {
                self.backoff.lock().ended(Duration::ZERO);
                return Err(fault);
            }
        };
        let sender = Arc::new(sender);
        let (closing, closed) = watch::channel(false);
        let router: Arc<Mutex<Router>> = Arc::default();
        let spoke = Arc::new(AtomicBool::new(false));
        let reading = Reading {
            server: Arc::clone(&self.server),
            router: Arc::downgrade(&router),
            refusals: Refusals::new(Arc::downgrade(&sender), self.write_timeout),
            codec: self.codec,
            spoke: Arc::clone(&spoke),
            backoff: Arc::clone(&self.backoff),
            long_lines: Seldom::new(LINES_SAID, LINES_SAID_EVERY),
            odd_lines: Seldom::new(LINES_SAID, LINES_SAID_EVERY),
        };
        tokio::spawn(reading.run(reader, closing));
        Ok(Arc::new(DuplexSession {
            sender,
            router,
            closed,
            spoke,
            next_handle: AtomicI64::new(1),
            pending_max: self.pending_max,
            write_timeout: self.write_timeout,
            era: OnceCell::new(),
            _share: share,
        }))
    }

    /// The duplex that stateless requests of this principal share; opened when there is none.
    ///
    /// # Errors
    /// As for [`DuplexLink::open`].
    pub async fn shared(&self, principal: &Principal) -> Result<Arc<DuplexSession>, Fault> {
        let shared = self.shared_of(&principal.owner);
        // Held until this returns: the cell itself keeps no server running.
        let mut opened = None;
        let held = &mut opened;
        let session = shared.get_or_try_init(|| async move {
            let session = self.open(principal).await?;
            keep_for_the_next(&session);
            Ok(Arc::downgrade(held.insert(session)))
        });
        let session = session.await?.upgrade();
        session.ok_or(Fault::Broken("the server ended"))
    }

    /// The cell of an owner: what is in it runs, or it is empty and whoever comes first fills it. One who leaves while it
    /// does gives way to the next.
    fn shared_of(&self, owner: &Arc<str>) -> Arc<Shared> {
        let mut all = self.shared.lock();
        all.retain(|_, shared| match shared.get() {
            Some(session) => session.upgrade().is_some_and(|session| session.is_open()),
            None => Arc::strong_count(shared) > 1,
        });
        Arc::clone(all.entry(Arc::clone(owner)).or_default())
    }

    fn wait_out_backoff(&self) -> Result<(), Fault> {
        let not_before = self.backoff.lock().not_before;
        match not_before.and_then(|until| until.checked_duration_since(Instant::now())) {
            Some(wait) => Err(Fault::Resting(wait)),
            None => Ok(()),
        }
    }
}

/// How long what a server said before its end may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How a server's process ended.
#[derive(Debug)]
pub struct Ended {
    /// It had said something before.
    pub spoke: bool,
    /// Its code or the signal that ended it.
    pub exit: Exit,
}

/// How long a shared duplex is kept without a request.
const SHARED_IDLE: Duration = Duration::from_secs(60);

/// Keeps a shared duplex for a while after its last request, so that the next need not start it again.
fn keep_for_the_next(session: &Arc<DuplexSession>) {
    let keep = Arc::clone(session);
    tokio::spawn(async move {
        while Arc::strong_count(&keep) > 1 || keep.used_lately() {
            tokio::time::sleep(SHARED_IDLE).await;
            if !keep.is_open() {
                break;
            }
        }
    });
}

impl DuplexSession {
    /// Whether the server is still there.
    pub fn is_open(&self) -> bool {
        !*self.closed.borrow()
    }

    /// Ends the server and waits until it is gone.
    pub async fn stop(&self) -> Option<Ended> {
        let Sender::Stdio(child) = &*self.sender else {
            return None;
        };
        let exit = child.stop().await;
        // What it said last may still be on its way to the reader.
        let mut closed = self.closed.clone();
        let read = closed.wait_for(|closed| *closed);
        let _ = tokio::time::timeout(LAST_WORDS, read).await;
        Some(Ended {
            spoke: self.spoke.load(Ordering::Relaxed),
            exit,
        })
    }

    fn used_lately(&self) -> bool {
        !self.router.lock().waiting.is_empty()
    }

    /// Which era the server turned out to speak.
    pub(super) fn era(&self) -> &OnceCell<Option<Told>> {
        &self.era
    }

    /// A handle of ours that no request of this duplex has.
    pub fn fresh_handle(&self) -> Id {
        Id::Number(self.next_handle.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a request and subscribes to what comes of it. Without `silence` the server may take as
    /// long as it likes.
    ///
    /// # Errors
    /// The id is in use, too many requests wait, or the server is gone or does not read.
    pub async fn call(
        self: &Arc<Self>,
        id: Id,
        token: Option<Id>,
        request: &Cleared<ToServer>,
        silence: Option<Silence>,
    ) -> Result<Subscription, CallError> {
        let (channel, receiver) = mpsc::channel(CHANNEL_MAX);
        let asks = Arc::new(AtomicBool::new(false));
        let waiting = Waiting {
            channel,
            token,
            asks: Arc::clone(&asks),
        };
        self.router
            .lock()
            .register(id.clone(), waiting, self.pending_max)?;
        let subscription = Subscription {
            receiver,
            id: Some(id),
            session: Arc::clone(self),
            silence,
            asks,
        };
        self.send(request).await.map_err(CallError::Fault)?;
        Ok(subscription)
    }

    /// Sends a message that wants no answer here.
    ///
    /// # Errors
    /// The server is gone or does not read.
    pub async fn send(&self, message: &Cleared<ToServer>) -> Result<(), Fault> {
        self.write(message).await?;
        if let Some(id) = cancelled_by(message) {
            // The server need not answer it now (cancellation, all revisions that have one); so nobody waits for it.
            self.router.lock().fail(Some(&id), &Fault::Cancelled);
        }
        Ok(())
    }

    async fn write(&self, message: &Cleared<ToServer>) -> Result<(), Fault> {
        self.sender.write(message, self.write_timeout).await
    }

    /// Subscribes to what names no request. A later listener takes an earlier one's place.
    pub fn listen(self: &Arc<Self>) -> Subscription {
        let (channel, receiver) = mpsc::channel(CHANNEL_MAX);
        self.router.lock().listen(channel);
        Subscription {
            receiver,
            id: None,
            session: Arc::clone(self),
            silence: None,
            asks: Arc::default(),
        }
    }
}

impl Drop for DuplexSession {
    fn drop(&mut self) {
        if let (Sender::Stdio(child), Ok(runtime)) =
            (&*self.sender, tokio::runtime::Handle::try_current())
        {
            let child = Arc::clone(child);
            runtime.spawn(async move { child.stop().await });
        }
    }
}

/// Which call a message takes back.
fn cancelled_by(message: &Cleared<ToServer>) -> Option<Id> {
    let message = message.message()?;
    let doc = (message.method() == Some("notifications/cancelled")).then(|| message.doc())?;
    let id = doc.get(&["params", "requestId"])?;
    crate::exchange::handle_of(doc, id)
}

/// Why a request was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The client used an id or progress token that is still in use.
    DuplicateId,
    /// Too many requests wait.
    TooMany,
    /// The server.
    Fault(Fault),
}

impl Router {
    fn register(&mut self, id: Id, waiting: Waiting, max: usize) -> Result<(), CallError> {
        if self.waiting.len() >= max {
            return Err(CallError::TooMany);
        }
        let token = waiting.token.as_ref();
        if self.waiting.contains_key(&id) || token.is_some_and(|t| self.tokens.contains_key(t)) {
            return Err(CallError::DuplicateId);
        }
        if let Some(token) = token {
            self.tokens.insert(token.clone(), id.clone());
        }
        self.waiting.insert(id, waiting);
        Ok(())
    }

    fn listen(&mut self, channel: mpsc::Sender<Heard>) {
        for (incoming, _) in self.early.drain(..) {
            let _ = channel.try_send(Ok(incoming));
        }
        self.early_bytes = 0;
        self.listener = Some(channel);
    }

    /// Keeps what nobody listens to; the oldest goes first where it is too much.
    fn hold(&mut self, incoming: Incoming, bytes: usize) {
        self.early_bytes += bytes;
        self.early.push_back((incoming, bytes));
        while self.early.len() > EARLY_MAX || self.early_bytes > EARLY_BYTES_MAX {
            let Some((_, bytes)) = self.early.pop_front() else {
                return;
            };
            self.early_bytes -= bytes;
        }
    }

    fn forget(&mut self, id: &Id) {
        if let Some(waiting) = self.waiting.remove(id)
            && let Some(token) = waiting.token
        {
            self.tokens.remove(&token);
        }
    }

    /// The request that waits, where it is the only one.
    fn only_one(&self) -> Option<Id> {
        let mut ids = self.waiting.keys();
        ids.next().filter(|_| ids.next().is_none()).cloned()
    }

    /// Fails a request, or (where it cannot be told which is meant) every one that waits.
    fn fail(&mut self, id: Option<&Id>, fault: &Fault) {
        let ids: Vec<Id> = match id {
            Some(id) => vec![id.clone()],
            None => self.waiting.keys().cloned().collect(),
        };
        for id in ids {
            if let Some(waiting) = self.waiting.get(&id) {
                // A reader so far behind that this does not fit finds the channel closed.
                let _ = waiting.channel.try_send(Err(fault.clone()));
            }
            self.forget(&id);
        }
    }

    /// Where a message goes, and whether it said so itself.
    fn route(&mut self, message: &Message) -> Option<(mpsc::Sender<Heard>, bool)> {
        if matches!(
            message.kind(),
            MessageKind::Response | MessageKind::ErrorResponse
        ) {
            // An answer to nothing (late, doubled, made up) goes nowhere; an error without an id can only mean the one that waits.
            let id = message.id().cloned().or_else(|| self.only_one())?;
            let channel = self.waiting.get(&id)?.channel.clone();
            // Its place is free before the client can know of its answer.
            self.forget(&id);
            return Some((channel, true));
        }
        if message.kind() == MessageKind::Request && message.method() != Some("ping") {
            // In the course of which call is often not said; each may now wait for the client.
            for waiting in self.waiting.values() {
                waiting.asks.store(true, Ordering::Relaxed);
            }
        }
        if let Some(id) = self.named_request(message) {
            return self.waiting.get(&id).map(|w| (w.channel.clone(), true));
        }
        let mut all = self.waiting.values();
        match (all.next(), all.next()) {
            (Some(only), None) => Some((only.channel.clone(), true)),
            (Some(any), Some(_)) => {
                let channel = self.listener.clone().filter(|l| !l.is_closed());
                Some((channel.unwrap_or_else(|| any.channel.clone()), false))
            }
            _ => {
                let channel = self.listener.clone().filter(|l| !l.is_closed());
                channel.map(|channel| (channel, false))
            }
        }
    }

    fn named_request(&self, message: &Message) -> Option<Id> {
        let doc = message.doc();
        if message.method() == Some("notifications/progress") {
            let token = doc.get(&["params", "progressToken"])?;
            let token = crate::exchange::handle_of(doc, token)?;
            return self.tokens.get(&token).cloned();
        }
        crate::exchange::subscription_of(message)
    }
}

/// Why a program does not run, and what to do. Its arguments may be secret and are left out.
fn not_started(error: &SpawnError) -> String {
    let SpawnError::Program { program, source } = error else {
        let source = std::error::Error::source(error);
        return source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
    };
    let why = match source.kind() {
        ErrorKind::NotFound if program.contains(' ') => {
            "there is no such program; what follows the program's name belongs under `args`"
        }
        ErrorKind::NotFound if !program.contains('/') => "it is not found in PATH",
        ErrorKind::NotFound => {
            "there is no such file, or the interpreter that its first line names is missing"
        }
        ErrorKind::PermissionDenied => "it may not be executed; look at its permissions",
        _ => return format!("{error}: {source}"),
    };
    format!("{error}: {why}")
}

fn jitter_seed() -> u64 {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_or(0, |()| u64::from_le_bytes(bytes))
}
