//! A request's head, checked once. What is not understood here goes no further up.

use std::borrow::Cow;

use audit_log::AuditId;
use base64::Engine as _;
use domain::{Era, ProtocolVersion};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::trail::Trail;
use crate::pipeline::HeaderLeaf;
use crate::reply::code;
use crate::upstream::Fault;

/// Longest value of a protocol header, in bytes.
const VALUE_BYTES_MAX: usize = 8 << 10;
const PARAM_PREFIX: &str = "mcp-param-";
/// Most `Mcp-Param-*` headers.
pub(super) const PARAMS_MAX: usize = 64;

/// A request that is refused before its body matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// JSON-RPC code.
    pub code: i32,
    /// Fixed words.
    pub text: &'static str,
    /// The record that says more, where the words cannot.
    audit_id: Option<AuditId>,
}

impl Refusal {
    /// A refusal with fixed words.
    pub const fn new(status: u16, code: i32, text: &'static str) -> Self {
        Self {
            status,
            code,
            text,
            audit_id: None,
        }
    }

    /// An upstream that did not do its part; the record says which part.
    pub fn fault(fault: &Fault, trail: &Trail) -> Self {
        Self {
            audit_id: Some(trail.audit_id().clone()),
            ..Self::new(fault.status(), code::UPSTREAM, fault.client_text())
        }
    }

    /// What the client reads.
    pub fn words(&self) -> Cow<'static, str> {
        match &self.audit_id {
            Some(id) => format!("{} Audit id: {id}", self.text).into(),
            None => self.text.into(),
        }
    }

    const fn bad(text: &'static str) -> Self {
        Self::new(400, code::INVALID_REQUEST, text)
    }

    const fn mismatch(text: &'static str) -> Self {
        Self::new(400, code::HEADER_MISMATCH, text)
    }
}

/// The protocol part of a request's head.
#[derive(Debug, Default)]
pub struct RequestHead {
    /// Which answers the client takes, in the canonical form that goes up.
    pub accept: Option<&'static str>,
    /// `Mcp-Session-Id`.
    pub session_id: Option<Box<str>>,
    /// `MCP-Protocol-Version`, if sent.
    pub version: Option<Box<str>>,
    /// `Mcp-Method`, sentinel undone.
    pub method: Option<Box<str>>,
    /// `Mcp-Name`, sentinel undone.
    pub name: Option<Box<str>>,
    /// `Last-Event-ID`.
    pub last_event_id: Option<Box<str>>,
    /// Headers that are scanned with the body: `Mcp-Param-*`, sentinel undone, and the name of each.
    pub params: Vec<HeaderLeaf>,
    /// W3C trace context.
    pub trace: Trace,
}

/// W3C trace context, as it came or as Weir began it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// 32 hexadecimal digits.
    pub trace_id: Option<Box<str>>,
    /// 16 hexadecimal digits: the caller's span.
    pub parent_id: Option<Box<str>>,
    /// Whether the caller records its trace.
    pub sampled: bool,
}

impl RequestHead {
    /// Checks the headers of a request.
    ///
    /// # Errors
    /// The first header that is doubled, malformed or too long.
    pub fn parse(headers: &HeaderMap) -> Result<Self, Refusal> {
        Ok(Self {
            accept: accept(headers),
            session_id: single(headers, "mcp-session-id")?,
            version: single(headers, "mcp-protocol-version")?,
            method: single(headers, "mcp-method")?
                .map(decode_sentinel)
                .transpose()?,
            name: single(headers, "mcp-name")?
                .map(decode_sentinel)
                .transpose()?,
            last_event_id: single(headers, "last-event-id")?,
            params: params(headers)?,
            trace: trace(headers),
        })
    }

    /// The head of one message of a batch: what is about the one POST is not about its messages.
    pub fn for_batch(&self) -> Self {
        Self {
            accept: self.accept,
            version: self.version.clone(),
            trace: self.trace.clone(),
            ..Self::default()
        }
    }

    /// The revision the header names, if Weir inspects it.
    pub fn known_version(&self) -> Option<ProtocolVersion> {
        self.version.as_deref().and_then(ProtocolVersion::parse)
    }
}

/// Whether a body may be JSON: its type is, and it is not encoded in any way.
///
/// # Errors
/// 415, by name.
pub fn check_body_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    const TYPE: Refusal = Refusal::new(
        415,
        code::INVALID_REQUEST,
        "The Content-Type must be application/json.",
    );
    if let Some(encoding) = headers.get(http::header::CONTENT_ENCODING)
        && !encoding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let text = "A Content-Encoding is not accepted; send the body as it is.";
        return Err(Refusal::new(415, code::INVALID_REQUEST, text));
    }
    let mut types = headers.get_all(http::header::CONTENT_TYPE).iter();
    let (Some(value), None) = (types.next(), types.next()) else {
        return Err(TYPE);
    };
    let mut parts = value.to_str().map_err(|_| TYPE)?.split(';');
    let essence = parts.next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(TYPE);
    }
    for parameter in parts {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"');
        if name.trim().eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8") {
            let text = "The charset must be utf-8.";
            return Err(Refusal::new(415, code::INVALID_REQUEST, text));
        }
    }
    Ok(())
}

impl RequestHead {
    /// Leaves out the headers that repeat nothing of this body. What goes up beside it was then scanned as part of it.
    pub fn keep_repeated(&mut self, method: Option<&str>, name: Option<&str>) {
        if self.method.as_deref() != method {
            self.method = None;
        }
        if self.name.as_deref() != name {
            self.name = None;
        }
    }
}

/// What the 2026-07-28 headers must repeat of the body.
#[derive(Debug, Clone, Copy)]
pub struct BodyFacts<'a> {
    /// `method`.
    pub method: &'a str,
    /// `params.name`, `params.uri` or `params.taskId`, as the method has it.
    pub name: Option<&'a str>,
    /// `params._meta` version.
    pub version: Option<&'a str>,
    /// Whether the method requires `Mcp-Name`.
    pub names: bool,
}

impl RequestHead {
    /// Whether a request is of the revision that requires the headers: it is if the body says so or the header does, or
    /// whoever reads only one of the two would be told what nobody compared.
    pub fn is_stateless_with(&self, body: Option<&str>) -> bool {
        let header = self.known_version();
        body.is_some() || header.is_some_and(|version| version.era() == Era::Stateless)
    }

    /// Compares the headers with the body they came with (revision 2026-07-28, transports).
    ///
    /// Policy always goes by the body; a mismatch is refused so that nobody behind Weir can go by
    /// the header and read another call. Older clients may send these headers too, and may be as
    /// wrong; only the new revision requires them.
    ///
    /// # Errors
    /// 400 with -32020.
    pub fn agrees_with(&self, body: BodyFacts<'_>, required: bool) -> Result<(), Refusal> {
        let version = self.version.as_deref();
        if required && version.is_none() {
            return Err(Refusal::mismatch(
                "The MCP-Protocol-Version header is missing.",
            ));
        }
        if let (Some(header), Some(meta)) = (version, body.version)
            && header != meta
        {
            let text = "The MCP-Protocol-Version header and the body name different versions.";
            return Err(Refusal::mismatch(text));
        }
        match self.method.as_deref() {
            None if required => {
                return Err(Refusal::mismatch("The Mcp-Method header is missing."));
            }
            Some(method) if method != body.method => {
                let text = "The Mcp-Method header and the body name different methods.";
                return Err(Refusal::mismatch(text));
            }
            _ => {}
        }
        match (self.name.as_deref(), body.name) {
            (None, Some(_)) if required && body.names => {
                Err(Refusal::mismatch("The Mcp-Name header is missing."))
            }
            (Some(header), Some(name)) if header != name => Err(Refusal::mismatch(
                "The Mcp-Name header and the body name different things.",
            )),
            _ => Ok(()),
        }
    }
}

/// A header value that arrives intact: visible ASCII stays, anything else takes the base64 sentinel
/// of revision 2026-07-28.
pub fn encode_sentinel(text: &str) -> Option<HeaderValue> {
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    let edges = |c: char| c == ' ' || c == '\t';
    let plain = !text.is_empty()
        && !looks_encoded
        && text.bytes().all(|b| (0x20..0x7f).contains(&b))
        && !text.starts_with(edges)
        && !text.ends_with(edges);
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    HeaderValue::from_str(&format!("=?base64?{encoded}?=")).ok()
}

fn decode_sentinel(value: Box<str>) -> Result<Box<str>, Refusal> {
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|v| v.strip_suffix("?="));
    let Some(inner) = inner else { return Ok(value) };
    const BAD: Refusal = Refusal::mismatch("A header has a malformed base64 value.");
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(inner)
        .map_err(|_| BAD)?;
    String::from_utf8(bytes).map(Into::into).map_err(|_| BAD)
}

/// Whether a client of a handshake may end, with all of its calls, if one request is answered with this status: some take
/// a failure of HTTP for one of the whole connection (the Python SDK up to 1.30). Whoever names neither a session nor a
/// revision is no such client.
pub fn is_lost_by(headers: &HeaderMap, status: u16) -> bool {
    let handshake = match headers.get("mcp-protocol-version") {
        Some(value) => {
            let version = value.to_str().ok().map(str::trim);
            let version = version.and_then(ProtocolVersion::parse);
            version.is_some_and(|version| version.era() == Era::Handshake)
        }
        None => headers.contains_key("mcp-session-id"),
    };
    handshake && (matches!(status, 400 | 413 | 429) || status >= 500)
}

fn single(headers: &HeaderMap, name: &'static str) -> Result<Option<Box<str>>, Refusal> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else {
        return Ok(None);
    };
    if all.next().is_some() {
        return Err(Refusal::bad("A protocol header is there twice."));
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(Refusal::bad("A protocol header is too long."));
    }
    let text = value
        .to_str()
        .map_err(|_| Refusal::bad("A protocol header is not plain ASCII."))?;
    Ok(Some(text.trim().into()))
}

fn params(headers: &HeaderMap) -> Result<Vec<HeaderLeaf>, Refusal> {
    let mut found: Vec<HeaderLeaf> = Vec::new();
    for (name, value) in headers {
        if !name.as_str().starts_with(PARAM_PREFIX) {
            continue;
        }
        if found.len() == 2 * PARAMS_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(Refusal::bad(
                "The Mcp-Param headers are too many or too long.",
            ));
        }
        if found.iter().any(|h| &*h.name == name.as_str()) {
            return Err(Refusal::bad("A protocol header is there twice."));
        }
        let text = value.to_str();
        let text = text.map_err(|_| Refusal::bad("A protocol header is not plain ASCII."))?;
        found.push(HeaderLeaf {
            name: name.as_str().into(),
            value: decode_sentinel(text.trim().into())?,
        });
        // A name is text of the client as much as its value.
        found.push(HeaderLeaf::fixed(&name.as_str()[PARAM_PREFIX.len()..]));
    }
    Ok(found)
}

/// Which `Mcp-Param-*` headers a page would send along, by the header of its preflight (Fetch standard, section 4.8): what
/// they are called is for the tools to say.
pub(super) fn params_asked_for(asked: &HeaderValue) -> Vec<HeaderName> {
    let text = asked.to_str().unwrap_or_default();
    let names = text.split(',').filter_map(|name| {
        let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
        name.as_str().starts_with(PARAM_PREFIX).then_some(name)
    });
    names.collect()
}

fn accept(headers: &HeaderMap) -> Option<&'static str> {
    let (mut json, mut events) = (false, false);
    for value in headers.get_all(http::header::ACCEPT) {
        for range in value.to_str().unwrap_or("").split(',') {
            let essence = range.split(';').next().unwrap_or("").trim();
            let all = essence == "*/*";
            json |= all
                || ["application/json", "application/*"]
                    .iter()
                    .any(|t| essence.eq_ignore_ascii_case(t));
            events |= all
                || ["text/event-stream", "text/*"]
                    .iter()
                    .any(|t| essence.eq_ignore_ascii_case(t));
        }
    }
    match (json, events) {
        (true, true) => Some("application/json, text/event-stream"),
        (true, false) => Some("application/json"),
        (false, true) => Some("text/event-stream"),
        (false, false) => None,
    }
}

/// Trace context level 1: `00-<32 hex>-<16 hex>-<2 hex>`; anything else starts a new trace.
pub fn trace(headers: &HeaderMap) -> Trace {
    let value = headers.get("traceparent").and_then(|v| v.to_str().ok());
    let parts: Vec<&str> = value.unwrap_or("").split('-').collect();
    let hex = |text: &str, len: usize| {
        text.len() == len
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            && text.bytes().any(|b| b != b'0')
    };
    match parts[..] {
        ["00", trace, span, flags] if hex(trace, 32) && hex(span, 16) && flags.len() == 2 => {
            let sampled = u8::from_str_radix(flags, 16).is_ok_and(|f| f & 1 == 1);
            Trace {
                trace_id: Some(trace.into()),
                parent_id: Some(span.into()),
                sampled,
            }
        }
        _ => Trace::default(),
    }
}

/// Adds a header if its value can be sent.
pub fn push(list: &mut Vec<(HeaderName, HeaderValue)>, name: &str, value: &str) {
    let name = HeaderName::from_bytes(name.as_bytes());
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
        list.push((name, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        headers
    }

    #[test]
    fn a_doubled_protocol_header_is_refused() {
        for name in [
            "Mcp-Session-Id",
            "Mcp-Name",
            "Mcp-Method",
            "MCP-Protocol-Version",
            "Mcp-Param-X",
        ] {
            let twice = map(&[(name, "a"), (name, "a")]);
            assert_eq!(
                RequestHead::parse(&twice).unwrap_err().status,
                400,
                "{name}"
            );
        }
    }

    #[test]
    fn the_body_must_be_plain_json() {
        let cases = [
            (vec![("content-type", "application/json")], true),
            (
                vec![("content-type", "Application/JSON; charset=\"UTF-8\"")],
                true,
            ),
            (
                vec![
                    ("content-type", "application/json"),
                    ("content-encoding", "identity"),
                ],
                true,
            ),
            (
                vec![
                    ("content-type", "application/json"),
                    ("content-encoding", "gzip"),
                ],
                false,
            ),
            (
                vec![("content-type", "application/json; charset=utf-16")],
                false,
            ),
            (vec![("content-type", "text/plain")], false),
            (
                vec![
                    ("content-type", "application/json"),
                    ("content-type", "text/plain"),
                ],
                false,
            ),
            (vec![], false),
        ];
        for (headers, ok) in cases {
            assert_eq!(
                check_body_headers(&map(&headers)).is_ok(),
                ok,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn the_sentinel_round_trips_and_is_compared_decoded() {
        for text in [
            "plain",
            "with space",
            "é",
            " leading",
            "=?base64?eA==?=",
            "",
        ] {
            let value = encode_sentinel(text).unwrap();
            let back = decode_sentinel(value.to_str().unwrap().into()).unwrap();
            assert_eq!(&*back, text);
        }
        assert!(decode_sentinel("=?base64?!?=".into()).is_err());
        let head = RequestHead::parse(&map(&[
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?dA==?="),
            ("mcp-protocol-version", "2026-07-28"),
        ]))
        .unwrap();
        let body = BodyFacts {
            method: "tools/call",
            name: Some("t"),
            version: Some("2026-07-28"),
            names: true,
        };
        assert!(head.agrees_with(body, true).is_ok());
        for wrong in [
            BodyFacts {
                method: "ping",
                ..body
            },
            BodyFacts {
                name: Some("T"),
                ..body
            },
            BodyFacts {
                version: Some("2025-11-25"),
                ..body
            },
        ] {
            assert_eq!(
                head.agrees_with(wrong, true).unwrap_err().code,
                code::HEADER_MISMATCH
            );
        }
        let none = RequestHead::default();
        assert!(none.agrees_with(body, true).is_err());
        assert!(none.agrees_with(body, false).is_ok());
    }

    #[test]
    fn either_of_header_and_body_can_require_the_headers() {
        let cases = [
            (Some("2026-07-28"), None, true),
            (None, Some("2026-07-28"), true),
            (Some("2025-11-25"), Some("2026-07-28"), true),
            (Some("2025-11-25"), None, false),
            (Some("1999-01-01"), None, false),
            (None, None, false),
        ];
        for (header, body, required) in cases {
            let head = RequestHead {
                version: header.map(Into::into),
                ..RequestHead::default()
            };
            assert_eq!(
                head.is_stateless_with(body),
                required,
                "{header:?} {body:?}"
            );
        }
    }

    #[test]
    fn what_repeats_nothing_of_the_body_is_left_out() {
        let cases = [
            (Some("tools/call"), Some("t"), (true, true)),
            (Some("tools/call"), Some("u"), (true, false)),
            (Some("tools/list"), None, (false, false)),
            (None, None, (false, false)),
        ];
        for (method, name, kept) in cases {
            let pairs = map(&[("mcp-method", "tools/call"), ("mcp-name", "t")]);
            let mut head = RequestHead::parse(&pairs).unwrap();
            head.keep_repeated(method, name);
            let left = (head.method.is_some(), head.name.is_some());
            assert_eq!(left, kept, "{method:?} {name:?}");
        }
    }

    #[test]
    fn the_names_of_parameter_headers_are_scanned_too_and_there_are_only_so_many() {
        let head = RequestHead::parse(&map(&[("Mcp-Param-Some-Text", "v")])).unwrap();
        let leaves: Vec<_> = head
            .params
            .iter()
            .map(|h| (h.is_fixed(), &*h.value))
            .collect();
        assert_eq!(leaves, [(false, "v"), (true, "some-text")]);
        let names: Vec<_> = (0..=PARAMS_MAX).map(|n| format!("mcp-param-{n}")).collect();
        let pairs: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
        assert!(RequestHead::parse(&map(&pairs[1..])).is_ok());
        assert_eq!(RequestHead::parse(&map(&pairs)).unwrap_err().status, 400);
    }

    #[test]
    fn accept_is_made_canonical() {
        let of = |v: &str| accept(&map(&[("accept", v)]));
        assert_eq!(of("*/*"), Some("application/json, text/event-stream"));
        assert_eq!(of("text/event-stream;q=0.5, application/json"), of("*/*"));
        assert_eq!(of("application/json"), Some("application/json"));
        assert_eq!(of("image/png"), None);
    }

    #[test]
    fn only_a_well_formed_trace_is_continued() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let t = trace(&map(&[("traceparent", good)]));
        assert_eq!(
            t.trace_id.as_deref(),
            Some("0af7651916cd43dd8448eb211c80319c")
        );
        assert!(t.sampled);
        for bad in [
            "",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            &good[..50],
            &good.to_uppercase(),
        ] {
            assert_eq!(
                trace(&map(&[("traceparent", bad)])),
                Trace::default(),
                "{bad}"
            );
        }
    }
}
