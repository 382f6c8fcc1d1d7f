//! Streamable HTTP upstreams over pingora's HTTP/1.1 client.
//!
//! Only an allowlist of headers goes up: Weir's own credentials and the protocol's. Redirects are
//! not followed, compressed answers are refused, and nothing is retried: a call may have effects.

mod leased;
mod media;
mod older;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::{Bytes, BytesMut};
use domain::Limits;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION, TRANSFER_ENCODING,
};
use http::{HeaderName, HeaderValue};
use mcp_codec::sse::SseLimits;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::protocols::http::v1::client::HttpSession as H1Session;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType};
use pingora_http::RequestHeader;

use super::hosted::Hosted;
use super::pool::Pool;
use super::{EventStream, Fault, LinkOptions, LongBody, Oversize, Target};
use crate::gather::{self, Gather};
use crate::pipeline::{Cleared, ToServer};
use crate::turns::Turns;

/// How long an address stays good before the name is looked up again.
const RESOLVED_FOR: Duration = Duration::from_secs(30);
/// Largest head of an answer, in bytes of names and values.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Informational answers that are passed over before the real one.
const INFORMATIONAL_MAX: usize = 8;

/// An HTTP upstream. Clones share connections and addresses.
#[derive(Clone)]
pub struct HttpLink {
    connector: Arc<TransportConnector>,
    pool: Arc<Pool>,
    turns: Arc<Turns>,
    target: Target,
    resolved: Arc<ArcSwapOption<Resolved>>,
    bounds: Bounds,
    hosted: Option<Hosted>,
}

/// What of the limits holds for exchanges with an upstream.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    connect_timeout: Duration,
    response_timeout: Duration,
    write_timeout: Duration,
    message_bytes_max: usize,
    /// Longest body that is handed on piece by piece.
    streamed_bytes_max: Option<u64>,
    sse: SseLimits,
    codec: mcp_codec::Limits,
}

impl Bounds {
    fn of(limits: &Limits) -> Self {
        Self {
            connect_timeout: Duration::from_millis(limits.upstream_connect_timeout_ms),
            response_timeout: Duration::from_millis(limits.upstream_response_timeout_ms),
            write_timeout: Duration::from_millis(limits.write_timeout_ms),
            message_bytes_max: limits.message_bytes_max,
            streamed_bytes_max: limits.streams().then_some(limits.streamed_bytes_max),
            sse: SseLimits {
                event_bytes_max: limits.message_bytes_max,
                line_bytes_max: limits.message_bytes_max + 64,
                id_bytes_max: 1024,
            },
            codec: crate::codec_limits(limits),
        }
    }

    /// What a sandbox answers is held whole: a lease ends with its answer.
    fn held_whole(self) -> Self {
        Self {
            streamed_bytes_max: None,
            ..self
        }
    }
}

pub(super) struct Resolved {
    peer: HttpPeer,
    address: SocketAddr,
    at: Instant,
    /// Connections to this and nothing else: those to a sandbox are never used for another that has its address later.
    pool: Arc<Pool>,
}

impl std::fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpLink")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// What is asked of the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Send a message.
    Post,
    /// Listen.
    Get,
    /// End the session.
    Delete,
}

/// What a message is for, as far as a hosted server's sandbox depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    /// Opens a session.
    Hello,
    /// Wants an answer.
    Call,
    /// Anything else.
    #[default]
    Word,
}

/// The headers that may go up, beside Weir's credentials.
#[derive(Debug, Clone, Default)]
pub struct UpstreamHeaders {
    /// What they go up with.
    pub purpose: Purpose,
    /// Which answers the client can take.
    pub accept: Option<&'static str>,
    /// The upstream's own session id.
    pub session_id: Option<Box<str>>,
    /// Further protocol headers, already checked: version, `Mcp-*`, `Last-Event-ID`, trace context.
    pub protocol: Vec<(HeaderName, HeaderValue)>,
}

/// The head of an answer: what of it may matter to the client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// The upstream's own session id, if it minted one.
    pub session_id: Option<Box<str>>,
    /// A server of the handshake era gave it to a client of the stateless one.
    pub older: bool,
    /// The type of its content, for the log.
    pub content_type: &'static str,
}

/// An answer. Nobody has judged it yet.
#[derive(Debug)]
pub enum Answer {
    /// A JSON body.
    Json(Head, Bytes),
    /// One that is longer than may be held, and its beginning.
    Long(Head, Box<LongBody>),
    /// An event stream.
    Events(Head, Box<EventStream>),
    /// No body, or one of another type, which was not looked at.
    Empty(Head),
}

impl Answer {
    /// Its head.
    pub fn head(&self) -> &Head {
        match self {
            Self::Json(head, _)
            | Self::Long(head, _)
            | Self::Events(head, _)
            | Self::Empty(head) => head,
        }
    }
}

impl HttpLink {
    /// Prepares a link.
    pub fn new(
        target: Target,
        ca_file: Option<&Path>,
        limits: &Limits,
        options: &LinkOptions,
    ) -> Self {
        let connector = match ca_file.and_then(Path::to_str) {
            Some(file) => {
                let mut options = ConnectorOptions::new(128);
                options.ca_file = Some(file.to_owned());
                Arc::new(TransportConnector::new(Some(options)))
            }
            None => options.connector(),
        };
        Self {
            connector,
            pool: Arc::default(),
            turns: Arc::clone(&options.turns),
            target,
            resolved: Arc::default(),
            bounds: Bounds::of(limits),
            hosted: None,
        }
    }

    /// The same path, within sandboxes.
    pub fn hosted(self, hosted: Hosted) -> Self {
        Self {
            bounds: self.bounds.held_whole(),
            hosted: Some(hosted),
            ..self
        }
    }

    /// The same under other limits. Connections are shared; the address is looked up anew, as it is kept with the time to connect.
    pub fn with_limits(&self, limits: &Limits) -> Self {
        let bounds = Bounds::of(limits);
        Self {
            bounds: match self.hosted {
                Some(_) => bounds.held_whole(),
                None => bounds,
            },
            resolved: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether exchanges go to sandboxes.
    pub fn is_hosted(&self) -> bool {
        self.hosted.is_some()
    }

    /// The target this link was made for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// How long an answer may keep its reader waiting.
    pub(super) fn response_timeout(&self) -> Duration {
        self.bounds.response_timeout
    }

    /// The same where it is bounded here: a sandbox has a bound of its own, which may be longer.
    fn patience(&self) -> Option<Duration> {
        self.hosted
            .is_none()
            .then_some(self.bounds.response_timeout)
    }

    /// Sends one request and reads its answer up to the head, or whole if it is not a stream.
    ///
    /// # Errors
    /// The upstream did not do its part. Nothing of what it sent is in the error.
    pub async fn send(
        &self,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Cleared<ToServer>>,
    ) -> Result<Answer, Fault> {
        self.send_to(&self.target.path, verb, headers, body).await
    }

    /// The same, and says when the request is written and only its answer is awaited. Of a sandbox it says so with the answer.
    ///
    /// # Errors
    /// As for [`HttpLink::send`].
    pub async fn send_telling(
        &self,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Cleared<ToServer>>,
        sent: impl FnOnce() + Send,
    ) -> Result<Answer, Fault> {
        if self.is_hosted() {
            let answer = self.send(verb, headers, body).await;
            sent();
            return answer;
        }
        let resolved = self.resolve().await?;
        let body = body.map(Cleared::bytes);
        let path = &self.target.path;
        let session = self.write(path, &resolved, verb, headers, body).await?;
        sent();
        self.read_answer(session, resolved).await
    }

    /// The same to another path of the same origin.
    ///
    /// # Errors
    /// As for [`HttpLink::send`].
    pub async fn send_to(
        &self,
        path: &str,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Cleared<ToServer>>,
    ) -> Result<Answer, Fault> {
        if let Some(hosted) = &self.hosted {
            return Box::pin(self.send_leased(hosted, verb, headers, body)).await;
        }
        let resolved = self.resolve().await?;
        let body = body.map(Cleared::bytes);
        self.exchange(path, resolved, verb, headers, body).await
    }

    async fn exchange(
        &self,
        path: &str,
        resolved: Arc<Resolved>,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Bytes>,
    ) -> Result<Answer, Fault> {
        let session = self.write(path, &resolved, verb, headers, body).await?;
        self.read_answer(session, resolved).await
    }

    /// Writes a request.
    async fn write(
        &self,
        path: &str,
        resolved: &Resolved,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Bytes>,
    ) -> Result<HttpSession, Fault> {
        let more_follows = body.is_some_and(|body| !body.is_empty());
        let mut session = self.connect_to(resolved, more_follows).await?;
        let framing = body.map(|body| Framing::Sized(body.len()));
        let request = self.request(path, verb, headers, framing)?;
        session
            .write_request_header(Box::new(request))
            .await
            .map_err(|e| io_fault(&e))?;
        if let Some(body) = body {
            session
                .write_request_body(body.clone(), true)
                .await
                .map_err(|e| io_fault(&e))?;
        }
        session
            .finish_request_body()
            .await
            .map_err(|e| io_fault(&e))?;
        Ok(session)
    }

    /// A connection, of the pool or a new one. `more_follows` on the head.
    pub(super) async fn connect(
        &self,
        more_follows: bool,
    ) -> Result<(HttpSession, Arc<Resolved>), Fault> {
        let resolved = self.resolve().await?;
        Ok((self.connect_to(&resolved, more_follows).await?, resolved))
    }

    async fn connect_to(
        &self,
        resolved: &Resolved,
        more_follows: bool,
    ) -> Result<HttpSession, Fault> {
        let mut stream = match resolved.pool.take(resolved.address) {
            Some(stream) => stream,
            None => {
                // Seldom, and by far the largest future of an exchange: it can shake hands by TLS.
                let stream = Box::pin(self.connector.new_stream(&resolved.peer)).await;
                let stream =
                    stream.map_err(|e| connect_fault(&e, &self.target, resolved.address))?;
                Box::new(Gather::new(stream, Arc::clone(&self.turns)))
            }
        };
        if more_follows {
            stream.more_follows();
        }
        let mut session = HttpSession::H1(H1Session::new(stream));
        session.set_write_timeout(Some(self.bounds.write_timeout));
        Ok(session)
    }

    /// Reads an answer up to the head, or whole if it is not a stream. One deadline for all of that: a server that sends a
    /// byte now and then would be in time with each of them for ever.
    pub(super) async fn read_answer(
        &self,
        session: HttpSession,
        resolved: Arc<Resolved>,
    ) -> Result<Answer, Fault> {
        let answer = self.read_up_to_a_stream(session, resolved);
        match self.patience() {
            Some(patience) => pingora_timeout::timeout(patience, answer)
                .await
                .unwrap_or(Err(Fault::TimedOut)),
            None => answer.await,
        }
    }

    /// A redirect is not followed; where it leads is most often what should stand in the configuration.
    fn say_redirect(&self, status: u16, session: &HttpSession) {
        let location = session
            .response_header()
            .and_then(|response| response.headers.get(LOCATION))
            .and_then(|location| location.to_str().ok());
        if let Some(to) = location.and_then(|location| self.target.leads_to(location)) {
            tracing::warn!(upstream = ?self.target, status, %to, "a redirect of the server is not followed");
        }
    }

    async fn read_up_to_a_stream(
        &self,
        mut session: HttpSession,
        resolved: Arc<Resolved>,
    ) -> Result<Answer, Fault> {
        let (head, kind) = read_head(&mut session).await?;
        if (300..400).contains(&head.status) {
            self.say_redirect(head.status, &session);
        }
        match kind {
            BodyKind::Events => {
                session.set_read_timeout(self.patience());
                let stream =
                    EventStream::new(session, resolved, self.bounds.sse, self.bounds.codec);
                Ok(Answer::Events(head, Box::new(stream)))
            }
            BodyKind::Json => {
                match (
                    self.read_body(&mut session).await?,
                    self.bounds.streamed_bytes_max,
                ) {
                    (Body::Whole(body), _) => {
                        self.release(session, &resolved).await;
                        Ok(Answer::Json(head, body))
                    }
                    (Body::Over(begun), Some(bytes_max)) => {
                        session.set_read_timeout(self.patience());
                        let body = LongBody::new(begun, session, resolved, bytes_max);
                        Ok(Answer::Long(head, Box::new(body)))
                    }
                    (Body::Over(_), None) => Err(Fault::TooLarge(Oversize::Off)),
                }
            }
            BodyKind::Other => {
                // A short body is read so that the connection can be used again; never looked at.
                if let Ok(Body::Whole(_)) = self.read_body(&mut session).await {
                    self.release(session, &resolved).await;
                }
                Ok(Answer::Empty(head))
            }
        }
    }

    async fn read_body(&self, session: &mut HttpSession) -> Result<Body, Fault> {
        let Some(first) = session
            .read_response_body()
            .await
            .map_err(|e| io_fault(&e))?
        else {
            return Ok(Body::Whole(Bytes::new()));
        };
        let Some(second) = session
            .read_response_body()
            .await
            .map_err(|e| io_fault(&e))?
        else {
            return Ok(match first.len() > self.bounds.message_bytes_max {
                true => Body::Over(first),
                false => Body::Whole(first),
            });
        };
        let mut body = BytesMut::with_capacity((first.len() + second.len()) * 2);
        body.extend_from_slice(&first);
        body.extend_from_slice(&second);
        while body.len() <= self.bounds.message_bytes_max {
            match session
                .read_response_body()
                .await
                .map_err(|e| io_fault(&e))?
            {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => return Ok(Body::Whole(body.freeze())),
            }
        }
        Ok(Body::Over(body.freeze()))
    }

    /// Gives the connection of a body that ended in order back to the pool.
    pub async fn give_back_long(&self, body: LongBody) {
        if let Some((session, resolved)) = body.into_ended() {
            self.release(session, &resolved).await;
        }
    }

    /// Gives the connection of a stream that ended in order back to the pool.
    pub async fn give_back(&self, stream: EventStream) {
        if let Some((session, resolved)) = stream.into_ended() {
            self.release(session, &resolved).await;
        }
    }

    pub(super) async fn release(&self, session: HttpSession, resolved: &Resolved) {
        let HttpSession::H1(mut session) = session else {
            return;
        };
        session.respect_keepalive();
        if let Some(stream) = session.reuse().await.and_then(gather::regain) {
            resolved.pool.put(stream, resolved.address);
        }
    }

    pub(super) fn request(
        &self,
        path: &str,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<Framing>,
    ) -> Result<RequestHeader, Fault> {
        let method = match verb {
            Verb::Post => "POST",
            Verb::Get => "GET",
            Verb::Delete => "DELETE",
        };
        let mut request = RequestHeader::build_no_case(method, path.as_bytes(), Some(12))
            .map_err(|_| Fault::Broken("the path cannot be sent"))?;
        let mut set = |name: HeaderName, value: HeaderValue| {
            request
                .append_header(name, value)
                .map_err(|_| Fault::Broken("a header cannot be sent"))
        };
        set(HOST, self.target.authority.clone())?;
        set(ACCEPT_ENCODING, HeaderValue::from_static("identity"))?;
        if let Some(accept) = headers.accept {
            set(ACCEPT, HeaderValue::from_static(accept))?;
        }
        if let Some(body) = body {
            set(CONTENT_TYPE, HeaderValue::from_static("application/json"))?;
            match body {
                Framing::Sized(bytes) => set(CONTENT_LENGTH, HeaderValue::from(bytes))?,
                Framing::Chunked => set(TRANSFER_ENCODING, HeaderValue::from_static("chunked"))?,
            };
        }
        if let Some(id) = &headers.session_id {
            let id = HeaderValue::from_str(id).map_err(|_| Fault::Broken("a session id"))?;
            set(HeaderName::from_static("mcp-session-id"), id)?;
        }
        for (name, value) in headers.protocol.iter().chain(&self.target.credentials) {
            set(name.clone(), value.clone())?;
        }
        Ok(request)
    }

    async fn resolve(&self) -> Result<Arc<Resolved>, Fault> {
        if let Some(resolved) = self.resolved.load_full()
            && resolved.at.elapsed() < RESOLVED_FOR
        {
            return Ok(resolved);
        }
        let address = self.look_up().await?;
        let mut peer = HttpPeer::new(address, self.target.tls, self.target.host.clone());
        peer.options.connection_timeout = Some(self.bounds.connect_timeout);
        peer.options.total_connection_timeout = Some(self.bounds.connect_timeout * 2);
        let resolved = Arc::new(Resolved {
            peer,
            address,
            at: Instant::now(),
            pool: Arc::clone(&self.pool),
        });
        self.resolved.store(Some(Arc::clone(&resolved)));
        Ok(resolved)
    }

    async fn look_up(&self) -> Result<SocketAddr, Fault> {
        if let Ok(ip) = self.target.host.parse() {
            return Ok(SocketAddr::new(ip, self.target.port));
        }
        let found = tokio::net::lookup_host((self.target.host.as_str(), self.target.port));
        let found = tokio::time::timeout(self.bounds.connect_timeout, found);
        let found = found
            .await
            .map_err(|_| self.no_address("the look-up took too long"))?;
        let mut found = found
            .map_err(|e| self.no_address(&e.to_string()))?
            .peekable();
        let first = found.peek().copied();
        // Many servers listen on IPv4 only while `localhost` names both.
        let v4 = found.find(SocketAddr::is_ipv4).or(first);
        v4.ok_or_else(|| self.no_address("it has none"))
    }

    fn no_address(&self, why: &str) -> Fault {
        let host = &self.target.host;
        Fault::Unreachable(format!("no address was found for {host}: {why}"))
    }
}

/// How the end of a request's body is told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Framing {
    Sized(usize),
    Chunked,
}

enum Body {
    Whole(Bytes),
    /// What was read when it became too long.
    Over(Bytes),
}

enum BodyKind {
    Json,
    Events,
    Other,
}

async fn read_head(session: &mut HttpSession) -> Result<(Head, BodyKind), Fault> {
    for _ in 0..=INFORMATIONAL_MAX {
        session
            .read_response_header()
            .await
            .map_err(|e| io_fault(&e))?;
        let Some(response) = session.response_header() else {
            return Err(Fault::Broken("no answer head"));
        };
        let status = response.status.as_u16();
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        if status == 101 {
            return Err(Fault::Broken("an unasked protocol switch"));
        }
        let bytes: usize = response
            .headers
            .iter()
            .map(|(n, v)| n.as_str().len() + v.len())
            .sum();
        if bytes > HEAD_BYTES_MAX {
            return Err(Fault::Broken("an answer head above the size limit"));
        }
        let encoding = response.headers.get(http::header::CONTENT_ENCODING);
        if encoding.is_some_and(|e| !e.as_bytes().eq_ignore_ascii_case(b"identity")) {
            return Err(Fault::Broken("a compressed answer"));
        }
        let mut ids = response.headers.get_all("mcp-session-id").iter();
        let session_id = match (ids.next(), ids.next()) {
            (None, _) => None,
            (Some(id), None) => Some(session_id(id)?),
            _ => return Err(Fault::Broken("two session ids")),
        };
        let kind = body_kind(response.headers.get(CONTENT_TYPE));
        let head = Head {
            status,
            session_id,
            older: false,
            content_type: media::named(response.headers.get(CONTENT_TYPE)),
        };
        return Ok((head, kind));
    }
    Err(Fault::Broken("too many informational answers"))
}

/// Visible ASCII only, as the specification has it, and no longer than a header of ours.
fn session_id(value: &HeaderValue) -> Result<Box<str>, Fault> {
    let text = value
        .to_str()
        .map_err(|_| Fault::Broken("a malformed session id"))?;
    let visible = text.bytes().all(|b| (0x21..=0x7e).contains(&b));
    if text.is_empty() || text.len() > 1024 || !visible {
        return Err(Fault::Broken("a malformed session id"));
    }
    Ok(text.into())
}

fn body_kind(content_type: Option<&HeaderValue>) -> BodyKind {
    let Some(value) = content_type.and_then(|v| v.to_str().ok()) else {
        return BodyKind::Other;
    };
    let essence = value.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        BodyKind::Json
    } else if essence.eq_ignore_ascii_case("text/event-stream") {
        BodyKind::Events
    } else {
        BodyKind::Other
    }
}

/// Why there is no connection, in words. What the other side sent is not repeated.
fn connect_fault(error: &Error, target: &Target, address: SocketAddr) -> Fault {
    let at = match target.host.parse::<std::net::IpAddr>() {
        Ok(_) => address.to_string(),
        Err(_) => format!("{}:{} ({})", target.host, target.port, address.ip()),
    };
    let why = match error.etype() {
        ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => return Fault::TimedOut,
        ErrorType::ConnectRefused => "refuses connections: nothing listens there".to_owned(),
        ErrorType::ConnectNoRoute => "cannot be reached: there is no route to it".into(),
        ErrorType::InvalidCert
        | ErrorType::HandshakeError
        | ErrorType::TLSWantX509Lookup
        | ErrorType::TLSHandshakeFailure => {
            format!("does not agree on TLS: {}", tls_problem(&error.to_string()))
        }
        ErrorType::BindError | ErrorType::SocketError => {
            "cannot be reached: the system gives no socket".into()
        }
        _ => "cannot be reached".into(),
    };
    Fault::Unreachable(format!("{at} {why}"))
}

/// Which of what people can mend it is.
fn tls_problem(chain: &str) -> &'static str {
    let known = [
        (
            "UnknownIssuer",
            "nobody who is trusted signed its certificate; name the PEM file of its authority under `ca_file`",
        ),
        (
            "CaUsedAsEndEntity",
            "its certificate is that of an authority; let it use one that an authority signed, and name that under `ca_file`",
        ),
        ("NotValidForName", "its certificate is for another name"),
        ("Expired", "its certificate has expired"),
        ("NotValidYet", "its certificate is not valid yet"),
        (
            "InvalidContentType",
            "it speaks something else there; is it http:// ?",
        ),
    ];
    let found = known.into_iter().find(|(word, _)| chain.contains(word));
    found.map_or(
        "its certificate or its version of TLS is not accepted; a certificate of your own needs `ca_file`",
        |(_, words)| words,
    )
}

pub(super) fn io_fault(error: &Error) -> Fault {
    match error.etype() {
        ErrorType::ReadTimedout | ErrorType::WriteTimedout => Fault::TimedOut,
        _ => Fault::Cut,
    }
}
