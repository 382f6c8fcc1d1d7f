//! One HTTP request, from its head to its audit record.
//!
//! accept -> authenticate -> route -> [the line] -> forward -> [the line] -> respond -> audit
//!
//! Which file does what: `head` checks headers, `post` `listen` `delete` `legacy` are the four
//! things a client can ask for, `prepare` checks and judges a message, `forward` and `duplex` send
//! it up, `attribute` ties messages to calls, `pump` carries an answer back, `farewell` ends
//! a server's session that no client will end, `long` one that is too long to be held (`upload` carries such a call up), `trail` gathers the
//! audit record, `io` speaks HTTP.
//!
//! What seldom happens is awaited in a box of its own. The whole exchange is one future that pingora moves for each
//! request, and it is as large as the largest thing that can happen in it.

mod attribute;
mod batch;
mod call;
mod delete;
mod drive;
mod duplex;
mod farewell;
mod forward;
mod head;
mod io;
mod large;
mod left_out;
mod legacy;
mod listed;
mod listen;
mod long;
mod post;
mod prepare;
mod pump;
mod reopened;
mod revisions;
mod stdio;
mod trail;
mod unfit;
mod upload;
mod usable;

use std::sync::Arc;
use std::time::Duration;

use domain::Limits;
use http::{HeaderValue, Method, Version};
use pingora_core::protocols::http::ServerSession;

use crate::authn::Principal;
use crate::bodies::{Bodies, Holder};
use crate::gateway::{Gateway, StreamSlot};
use crate::head_watch::{HeadWait, HeadWatch};
use crate::lobby::Seat;
use crate::reply::code;
use crate::session::Session;
use crate::shares::Taken;
use crate::snapshot::{ServerEntry, Snapshot};
use crate::upstream::Link;

pub(crate) use attribute::{handle as handle_of, subscription as subscription_of};
pub use head::Refusal;
pub(crate) use head::Trace;
pub use stdio::{FrontingStdio, Input, Output, StdioEnd, front_stdio};
pub use trail::NotAudited;

use io::{Extra, Gone};

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// It may serve another request.
    Keep,
    /// It is closed in order: the client misbehaved, or its body was not read.
    Close,
    /// It is dropped: the client is gone, too slow, or said nothing.
    Drop,
}

/// Everything that stays the same during one exchange.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) server: Arc<ServerEntry>,
    pub(crate) principal: Arc<Principal>,
    pub(crate) client: Option<Arc<str>>,
}

impl Context {
    /// A session of this principal on this server.
    pub(crate) fn session(&self, id: &str) -> Option<Arc<Session>> {
        self.gateway
            .sessions
            .find(id, &self.principal.owner, &self.server.id)
    }

    /// A place for one open stream of this principal.
    fn stream(&self) -> Result<StreamSlot, Refusal> {
        let limits = &self.snapshot.limits;
        let share = self
            .principal
            .share(limits.streams_max, limits.streams_per_principal_max);
        let taken = self.gateway.stream(&self.principal.owner, share);
        taken.map_err(|taken| match taken {
            Taken::All => TOO_MANY_STREAMS,
            Taken::Share => TOO_MANY_OF_YOURS,
        })
    }
}

impl Context {
    /// Who holds the body of this exchange. One message at least may always be held.
    fn holder(&self) -> Holder<'_> {
        let limits = &self.snapshot.limits;
        let one = Bodies::taken_by_one(limits.message_bytes_max);
        Holder {
            bodies: &self.gateway.bodies,
            owner: &self.principal.owner,
            limits: self.principal.share(
                limits.bodies_bytes_max.max(one),
                limits.bodies_bytes_per_principal_max.max(one),
            ),
        }
    }
}

const TOO_MANY_STREAMS: Refusal = Refusal::new(
    429,
    code::LIMITED,
    "Too many streams are open (limits.streams_max).",
);
const TOO_MANY_OF_YOURS: Refusal = Refusal::new(
    429,
    code::LIMITED,
    "Too many of your streams are open (limits.streams_per_principal_max).",
);

/// What a reload made of an exchange that lives longer than one call.
pub(crate) enum Renewed {
    /// Nothing: there was none.
    Same,
    /// Its state is another now.
    Changed(Box<Context>),
    /// It may not go on: its key is gone or may not reach the server any more, or the server is another.
    Gone,
}

impl Context {
    /// The same exchange under the state in force now.
    pub(crate) fn renewed(&self) -> Renewed {
        let snapshot = self.gateway.snapshot();
        if Arc::ptr_eq(&snapshot, &self.snapshot) {
            return Renewed::Same;
        }
        let principal = snapshot.keys().still(&self.principal).cloned();
        let server = snapshot.server(&self.server.id).cloned();
        let (Some(principal), Some(server)) = (principal, server) else {
            return Renewed::Gone;
        };
        // A pipe is the session's own and lives on; what is heard over HTTP comes from where it was asked.
        let elsewhere = matches!(self.server.runtime.link, Link::Http(_))
            && self.server.runtime.made_from != server.runtime.made_from;
        if elsewhere || !principal.may_reach(&server.id, &server.tenant) {
            return Renewed::Gone;
        }
        Renewed::Changed(Box::new(Self {
            gateway: Arc::clone(&self.gateway),
            snapshot,
            server,
            principal,
            client: self.client.clone(),
        }))
    }

    /// Whether the exchange may go on under the state in force now.
    pub(crate) fn lives_on(&self) -> bool {
        !matches!(self.renewed(), Renewed::Gone)
    }
}

/// What leaves no record is not done: it is refused before it goes up, where that is known by then.
const NOT_RECORDED: Refusal = Refusal::new(
    503,
    code::UNAVAILABLE,
    "The gateway cannot keep its audit log; nothing is answered until it can.",
);
const NO_KEY: Refusal = Refusal::new(
    401,
    code::UNAUTHENTICATED,
    "A valid API key is needed: X-API-Key, or Authorization: Bearer.",
);
const NOT_FOUND: Refusal = Refusal::new(404, code::NOT_FOUND, "There is nothing here.");
const TOO_MANY_CALLS: Refusal = Refusal::new(
    429,
    code::LIMITED,
    "Too many calls of this session wait for their answer (limits.pending_calls_max).",
);
const SESSION_NOT_FOUND: Refusal = Refusal::new(404, code::NOT_FOUND, "Session not found.");

/// What is known of a head of HTTP/1.x before it is read.
#[derive(Clone, Copy)]
pub(crate) struct HeadSoFar<'a> {
    /// Who counts it.
    pub(crate) watch: &'a HeadWatch,
    /// Bytes of it that came with the request before it.
    pub(crate) there: usize,
    /// Where its connection waits.
    pub(crate) seat: &'a Seat,
}

/// Serves one request on a connection. A stream of HTTP/2 has its head already.
pub(crate) async fn serve_one(
    gateway: &Arc<Gateway>,
    session: &mut ServerSession,
    client: Option<Arc<str>>,
    head: Option<HeadSoFar<'_>>,
) -> After {
    let snapshot = gateway.snapshot();
    let limits = &snapshot.limits;
    session.set_write_timeout(Some(Duration::from_millis(limits.write_timeout_ms)));
    session.set_read_timeout(Some(Duration::from_millis(limits.header_timeout_ms)));
    match read_head(session, limits, head).await {
        Some(Ok(true)) => {}
        Some(Ok(false)) | None => return After::Drop,
        Some(Err(error)) => {
            // The error's text repeats the request; it is not logged.
            drop(error);
            gateway.metrics.refused.increment(1);
            let is_too_large = head.is_some_and(|head| head.watch.is_full());
            let status = if is_too_large { TOO_LARGE.status } else { 400 };
            let _ = io::empty(session, status, close()).await;
            return After::Close;
        }
    }
    if let Some(head) = head {
        head.watch.end();
        if !head.seat.begin() {
            return After::Drop;
        }
    }
    let _under_way = gateway.turns().begin();
    if session
        .get_header(http::header::TRANSFER_ENCODING)
        .is_some()
    {
        // Chunk heads have leniences of their own (extensions, bare LF) on which two parsers can
        // differ about where the body ends. Nothing that follows on this connection is a request.
        session.set_keepalive(None);
        session.set_pipelining_enabled(false);
    }
    match dispatch(gateway, snapshot, session, client).await {
        Ok(after) if session.is_body_done() => after,
        Ok(After::Drop) | Err(Gone) => After::Drop,
        Ok(_) => After::Close,
    }
}

/// `None` when it does not come in time: a kept-alive connection waits here for its next request, and a head that has begun
/// must end soon.
async fn read_head(
    session: &mut ServerSession,
    limits: &Limits,
    head: Option<HeadSoFar<'_>>,
) -> Option<pingora_core::Result<bool>> {
    let wait = HeadWait {
        idle: Duration::from_millis(limits.idle_timeout_ms),
        whole: Duration::from_millis(limits.header_timeout_ms),
    };
    let Some(head) = head else {
        let read = tokio::time::timeout(wait.whole, session.read_request());
        return read.await.ok();
    };
    head.watch.begin(limits.header_bytes_max, head.there);
    head.watch.within(wait, session.read_request()).await
}

async fn dispatch(
    gateway: &Arc<Gateway>,
    snapshot: Arc<Snapshot>,
    session: &mut ServerSession,
    client: Option<Arc<str>>,
) -> Result<After, Gone> {
    let client_is = client.as_deref();
    if let Err(refusal) = well_formed(session, &snapshot) {
        gateway.note_refusal(refusal.status, refusal.text, client_is);
        io::refuse(session, refusal, None, close()).await?;
        return Ok(After::Close);
    }
    let mut extra = Extra::new();
    if let Err(refusal) = admit(gateway, session, &mut extra) {
        gateway.note_refusal(refusal.status, refusal.text, client_is);
        io::refuse(session, refusal, None, extra).await?;
        return Ok(After::Close);
    }
    if session.req_header().method == Method::OPTIONS {
        let headers = &session.req_header().headers;
        let asked = headers.get_all(http::header::ACCESS_CONTROL_REQUEST_HEADERS);
        let extra = preflight(extra, asked.iter());
        io::empty(session, 204, extra).await?;
        return Ok(After::Keep);
    }
    let Some((server_id, endpoint, hosted)) = route(gateway, session.req_header().raw_path())
    else {
        gateway.note_refusal(NOT_FOUND.status, "no endpoint has this path", client_is);
        io::refuse(session, NOT_FOUND, None, extra).await?;
        return Ok(After::Keep);
    };
    let Ok(principal) = snapshot.keys().authenticate(&session.req_header().headers) else {
        gateway.note_refusal(NO_KEY.status, NO_KEY.text, client_is);
        let challenge = HeaderValue::from_static("Bearer realm=\"weir\"");
        extra.push((http::header::WWW_AUTHENTICATE, challenge));
        io::refuse(session, NO_KEY, None, extra).await?;
        return Ok(After::Keep);
    };
    let server = snapshot.server(&server_id);
    let reachable = server
        .filter(|s| principal.may_reach(&s.id, &s.tenant) && s.runtime.link.is_hosted() == hosted)
        .cloned();
    let Some(server) = reachable else {
        let why = "there is no such server, or this key may not reach it";
        gateway.note_refusal(NOT_FOUND.status, why, client_is);
        io::refuse(session, NOT_FOUND, None, extra).await?;
        return Ok(After::Keep);
    };
    let context = Context {
        gateway: Arc::clone(gateway),
        snapshot,
        server,
        principal,
        client,
    };
    serve_endpoint(context, session, endpoint, extra).await
}

async fn serve_endpoint(
    context: Context,
    session: &mut ServerSession,
    endpoint: Endpoint,
    mut extra: Extra,
) -> Result<After, Gone> {
    if context.gateway.leaves_no_record() {
        let after = post::refuse(&context, session, NOT_RECORDED, None, extra).await?;
        io::discard_body(session).await;
        return Ok(after);
    }
    let method = session.req_header().method.clone();
    match (endpoint, method) {
        (Endpoint::Mcp, Method::POST) => post::post(context, session, extra).await,
        (Endpoint::Mcp, Method::GET) => Box::pin(listen::listen(context, session, extra)).await,
        (Endpoint::Mcp, Method::DELETE) => Box::pin(delete::delete(context, session, extra)).await,
        (Endpoint::Sse, Method::GET) => Box::pin(legacy::stream(context, session, extra)).await,
        (Endpoint::Message, Method::POST) => {
            Box::pin(legacy::message(context, session, extra)).await
        }
        (endpoint, _) => {
            let allow = match endpoint {
                Endpoint::Mcp => "GET, POST, DELETE, OPTIONS",
                Endpoint::Sse => "GET, OPTIONS",
                Endpoint::Message => "POST, OPTIONS",
            };
            extra.push((http::header::ALLOW, HeaderValue::from_static(allow)));
            let text = "This method is not supported here.";
            io::refuse(
                session,
                Refusal::new(405, code::INVALID_REQUEST, text),
                None,
                extra,
            )
            .await?;
            Ok(After::Keep)
        }
    }
}

/// What stands behind a server's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    /// Streamable HTTP.
    Mcp,
    /// The event stream of revision 2024-11-05.
    Sse,
    /// Where a client of 2024-11-05 posts.
    Message,
}

/// Exactly one spelling of a path means something; every other is not found. The last of the three: whether it is the
/// path of a hosted server.
fn route(gateway: &Gateway, path: &[u8]) -> Option<(String, Endpoint, bool)> {
    let path = std::str::from_utf8(path).ok()?;
    let (path, _query) = path.split_once('?').unwrap_or((path, ""));
    let endpoint = |last| match last {
        "mcp" => Some(Endpoint::Mcp),
        "sse" => Some(Endpoint::Sse),
        "message" => Some(Endpoint::Message),
        _ => None,
    };
    let rest = path.strip_prefix('/')?;
    if let Some((id, last)) = rest
        .strip_prefix("servers/")
        .and_then(|r| r.split_once('/'))
    {
        let id = domain::ServerId::parse(id).ok()?;
        return Some((id.to_string(), endpoint(last)?, false));
    }
    if let Some(rest) = rest.strip_prefix("sandbox/") {
        let id = domain::ServerId::parse(rest.strip_suffix("/mcp")?).ok()?;
        return Some((id.to_string(), Endpoint::Mcp, true));
    }
    Some((gateway.single()?.to_string(), endpoint(rest)?, false))
}

/// What HTTP itself leaves open and Weir does not: see research on smuggling in docs/security.md.
fn well_formed(session: &mut ServerSession, snapshot: &Snapshot) -> Result<(), Refusal> {
    const BAD: Refusal = Refusal::new(400, code::INVALID_REQUEST, "The HTTP request is malformed.");
    let limits = &snapshot.limits;
    let head = session.req_header();
    let has_body = head.headers.contains_key(http::header::TRANSFER_ENCODING)
        || head
            .headers
            .get(http::header::CONTENT_LENGTH)
            .is_some_and(|v| v != "0");
    let (is_post, is_h2) = (head.method == Method::POST, head.version == Version::HTTP_2);
    // Over HTTP/2 a body needs no header.
    if !is_post && (has_body || is_h2 && !session.is_body_empty()) {
        let text = "Only a POST may have a body here.";
        return Err(Refusal::new(400, code::INVALID_REQUEST, text));
    }
    let head = session.req_header();
    if head.headers.len() > limits.headers_max {
        let text = "The request has too many headers.";
        return Err(Refusal::new(431, code::INVALID_REQUEST, text));
    }
    if head.version == Version::HTTP_2 {
        let bytes: usize = head
            .headers
            .iter()
            .map(|(n, v)| n.as_str().len() + v.len())
            .sum();
        return if bytes > limits.header_bytes_max {
            Err(TOO_LARGE)
        } else {
            Ok(())
        };
    }
    if !matches!(head.version, Version::HTTP_11 | Version::HTTP_10) {
        return Err(BAD);
    }
    let raw = session.to_h1_raw();
    if raw.len() > limits.header_bytes_max {
        return Err(TOO_LARGE);
    }
    if !strict_h1(&raw) { Err(BAD) } else { Ok(()) }
}

const TOO_LARGE: Refusal = Refusal::new(
    431,
    code::INVALID_REQUEST,
    "The request's headers are too large.",
);

/// RFC 9112 without its leniences: CRLF only, no folding, no NUL or bare CR, one framing header,
/// one `Host`, no `Upgrade`, a path as target.
fn strict_h1(raw: &[u8]) -> bool {
    let mut lines = lines(raw);
    let Some(request_line) = lines.next().and_then(|l| l.strip_suffix(b"\r")) else {
        return false;
    };
    if !plain(request_line) || request_line.split(|b| *b == b' ').count() != 3 {
        return false;
    }
    let target = request_line
        .split(|b| *b == b' ')
        .nth(1)
        .unwrap_or_default();
    if target.first() != Some(&b'/') || target.contains(&b'#') {
        return false;
    }
    let (mut framing, mut hosts) = (0, 0);
    for line in lines {
        let Some(line) = line.strip_suffix(b"\r") else {
            // What follows the last line end is the empty rest.
            if line.is_empty() {
                continue;
            } else {
                return false;
            };
        };
        if line.is_empty() {
            continue;
        }
        let Some(colon) = memchr::memchr(b':', line) else {
            return false;
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if !plain(value) || name.is_empty() || name.contains(&b'_') && is_framing_twin(name) {
            return false;
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            framing += 1;
            if !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                return false;
            }
        } else if name.eq_ignore_ascii_case(b"content-length") {
            framing += 1;
            let digits = value.trim_ascii();
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return false;
            }
        } else if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            // h2c by Upgrade, WebSocket: nothing here speaks them.
            return false;
        }
    }
    framing <= 1 && hosts == 1
}

/// Back ends that map `-` to `_` (CGI, WSGI) read these as the real ones.
fn is_framing_twin(name: &[u8]) -> bool {
    let dashed: Vec<u8> = name
        .iter()
        .map(|b| if *b == b'_' { b'-' } else { *b })
        .collect();
    [&b"content-length"[..], b"transfer-encoding"]
        .iter()
        .any(|n| dashed.eq_ignore_ascii_case(n))
}

/// What stands between line feeds, and after the last of them.
fn lines(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', raw).chain([raw.len()]);
    ends.scan(0, |from, end| {
        let line = &raw[*from..end];
        *from = end + 1;
        Some(line)
    })
}

/// Looks at every byte, whatever the first ones are: so it compiles to vector instructions.
fn plain(text: &[u8]) -> bool {
    let control = |b: u8| ((b < 0x20) & (b != b'\t')) | (b == 0x7f);
    !text.iter().fold(false, |bad, b| bad | control(*b))
}

fn admit(gateway: &Gateway, session: &ServerSession, extra: &mut Extra) -> Result<(), Refusal> {
    let head = session.req_header();
    let guard = gateway.guard();
    let authority = head.uri.authority().map(http::uri::Authority::as_str);
    match guard.admit(authority, &head.headers) {
        Err(crate::guard::Denied::Host) => {
            let text =
                "This gateway does not answer to that Host; see `hosts` in its configuration.";
            Err(Refusal::new(421, code::INVALID_REQUEST, text))
        }
        Err(crate::guard::Denied::Origin) => {
            let text = "This Origin may not call; see `cors.origins` in the configuration.";
            Err(Refusal::new(403, code::INVALID_REQUEST, text))
        }
        Ok(()) => {
            if let Ok(Some(origin)) = guard.origin(&head.headers) {
                cors(extra, origin);
            }
            Ok(())
        }
    }
}

fn cors(extra: &mut Extra, origin: &str) {
    let Ok(origin) = HeaderValue::from_str(origin) else {
        return;
    };
    extra.push((http::header::ACCESS_CONTROL_ALLOW_ORIGIN, origin));
    extra.push((http::header::VARY, HeaderValue::from_static("Origin")));
    let exposed = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";
    let exposed = HeaderValue::from_static(exposed);
    extra.push((http::header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed));
}

/// What a page may send along, beside the `Mcp-Param-*` that its tools declare.
const ALLOWED_HEADERS: &str = "Content-Type, Accept, Authorization, X-API-Key, Mcp-Session-Id, \
    MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, traceparent, tracestate";

fn preflight<'a>(mut extra: Extra, asked: impl Iterator<Item = &'a HeaderValue>) -> Extra {
    let allow = "GET, POST, DELETE, OPTIONS";
    extra.push((http::header::ALLOW, HeaderValue::from_static(allow)));
    if !extra
        .iter()
        .any(|(name, _)| *name == http::header::ACCESS_CONTROL_ALLOW_ORIGIN)
    {
        return extra;
    }
    let methods = HeaderValue::from_static(allow);
    extra.push((http::header::ACCESS_CONTROL_ALLOW_METHODS, methods));
    let mut headers = ALLOWED_HEADERS.to_owned();
    for name in asked
        .flat_map(head::params_asked_for)
        .take(head::PARAMS_MAX)
    {
        headers += ", ";
        headers += name.as_str();
    }
    let Ok(headers) = HeaderValue::try_from(headers) else {
        return extra;
    };
    extra.push((http::header::ACCESS_CONTROL_ALLOW_HEADERS, headers));
    let age = HeaderValue::from_static("600");
    extra.push((http::header::ACCESS_CONTROL_MAX_AGE, age));
    extra
}

fn close() -> Extra {
    vec![(http::header::CONNECTION, HeaderValue::from_static("close"))]
}

#[cfg(test)]
mod tests {
    use super::strict_h1;

    #[test]
    fn only_unambiguous_heads_pass() {
        let good = "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nX-A: b\tc\r\n\r\n";
        assert!(strict_h1(good.as_bytes()));
        assert!(strict_h1(
            b"POST /mcp HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
        let bad = [
            "POST /mcp HTTP/1.1\nHost: h\n\n",
            "POST /mcp HTTP/1.1\r\nHost: h\nX: y\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length: 2, 2\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nContent_Length: 2\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nX: y\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n",
            "POST /mcp HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\n\r\n",
            "POST /mcp#x HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST http://h/mcp HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST /a b HTTP/1.1\r\nHost: h\r\n\r\n",
        ];
        for head in bad {
            assert!(!strict_h1(head.as_bytes()), "{head:?}");
        }
    }
}
