//! Hosted servers that know the handshake only, for clients that know it no more.
//!
//! Each sandbox is asked once whether it speaks the stateless era. Where it does not, Weir opens a session of its own
//! for each request of that era and ends it after the answer, so that no client meets another's state. What the
//! server says of itself in the handshake becomes the answer to `server/discover`, as with stdio servers. What
//! revision 2026-07-28 asks of results and older servers do not write is added when the answer is judged.
//!
//! ```text
//! client                Weir                      sandbox
//!   tools/call  ----->   initialize        ----->
//!                        notifications/initialized ->
//!                        tools/call        ----->
//!          <-----------                    <-----  the answer, marked as an older server's
//!                        DELETE            ----->
//! ```

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::{Era, ProtocolVersion, Sharing};
use http::{HeaderName, HeaderValue};
use mcp_codec::{Document, Id, Message};
use runner_api::Lease;

use super::{Answer, Head, HttpLink, Purpose, Resolved, UpstreamHeaders, Verb};
use crate::pipeline::{Cleared, ToServer};
use crate::reply;
use crate::upstream::facade::{Handshake, Told};
use crate::upstream::hosted::Held;
use crate::upstream::{EventStream, Fault, Said};

/// How long a server may think about a method that it does not know.
const PROBE_WAIT: Duration = Duration::from_secs(5);
/// Events before the answer to words of our own.
const EVENTS_MAX: usize = 100;
const ACCEPT: &str = "application/json, text/event-stream";
/// What follows a request of the stateless era, and means nothing to a server of the other.
const STATELESS_HEADERS: [&str; 2] = ["mcp-protocol-version", "mcp-method"];
const STATELESS_PREFIXES: [&str; 2] = ["mcp-name", "mcp-param-"];

impl HttpLink {
    /// Whether a request wants a face that the server in this sandbox does not have.
    pub(super) async fn wants_older(
        &self,
        held: &mut Held,
        lease: &Lease,
        resolved: &Arc<Resolved>,
        headers: &UpstreamHeaders,
    ) -> Result<bool, Fault> {
        if headers.purpose == Purpose::Hello || !speaks_stateless(headers) {
            return Ok(false);
        }
        if let Some(knows) = held.hosted().knows_stateless(&lease.sandbox) {
            return Ok(!knows);
        }
        let knows = held.guard(self.probe(resolved)).await?;
        held.hosted().learn_stateless(&lease.sandbox, knows);
        Ok(!knows)
    }

    async fn probe(&self, resolved: &Arc<Resolved>) -> Result<bool, Fault> {
        let id = Id::Number(0);
        let version = ProtocolVersion::V2026_07_28.as_str();
        let headers = UpstreamHeaders {
            purpose: Purpose::Call,
            accept: Some(ACCEPT),
            session_id: None,
            protocol: vec![
                spoken(version)?,
                (
                    HeaderName::from_static("mcp-method"),
                    HeaderValue::from_static("server/discover"),
                ),
            ],
        };
        let ask = Cleared::<ToServer>::of_ours(reply::probe(&id));
        let answered = self.ask(resolved, &headers, ask.bytes());
        match tokio::time::timeout(PROBE_WAIT, answered).await {
            Ok(Ok((head, said))) => {
                Ok(head.status == 200 && said.is_some_and(|doc| doc.get(&["result"]).is_some()))
            }
            // It broke off or kept silent at words it does not know; a server that is gone shows that in the handshake.
            Ok(Err(_)) | Err(_) => Ok(false),
        }
    }

    /// One request of the stateless era, in a session of Weir's own.
    pub(super) async fn send_older(
        &self,
        held: &mut Held,
        resolved: &Arc<Resolved>,
        headers: &UpstreamHeaders,
        body: Option<&Cleared<ToServer>>,
    ) -> Result<Answer, Fault> {
        if headers.purpose == Purpose::Word {
            // It belongs to no session that the server knows of.
            return Ok(Answer::accepted());
        }
        let opened = held.guard(self.greet(resolved)).await?;
        let inner = UpstreamHeaders {
            session_id: opened.session_id.clone(),
            protocol: older_headers(headers, &opened.version)?,
            ..headers.clone()
        };
        if inner.session_id.is_some() && held.hosted().sharing == Sharing::Shared {
            let (link, resolved, inner) = (self.clone(), Arc::clone(resolved), inner.clone());
            held.farewell(|| async move {
                let path = &link.target.path;
                let end = link.exchange(path, resolved, Verb::Delete, &inner, None);
                // A server may refuse to end sessions; it ends them itself then.
                let _ended = end.await;
            });
        }
        held.guard(self.begin(resolved, &opened)).await?;
        if let Some(answer) = body.and_then(|body| opened.discovered(body.message()?)) {
            return answer;
        }
        let bytes = body.map(Cleared::bytes);
        let path = &self.target.path;
        let work = self.exchange(path, Arc::clone(resolved), Verb::Post, &inner, bytes);
        let mut answer = held.guard(work).await?;
        answer.head_mut().older = true;
        Ok(answer)
    }

    /// Opens a session of Weir's own, and gives its id. What the server says of itself there was told to clients, through
    /// the line.
    pub(super) async fn open_own(
        &self,
        resolved: &Arc<Resolved>,
    ) -> Result<Option<Box<str>>, Fault> {
        let opened = self.greet(resolved).await?;
        self.begin(resolved, &opened).await?;
        Ok(opened.session_id)
    }

    /// The first half of the handshake: from here on there is a session, which wants an end.
    async fn greet(&self, resolved: &Arc<Resolved>) -> Result<Opened, Fault> {
        const REFUSED: Fault = Fault::Broken("the server refuses the handshake");
        let ours = UpstreamHeaders {
            purpose: Purpose::Hello,
            accept: Some(ACCEPT),
            ..UpstreamHeaders::default()
        };
        let hello = Cleared::<ToServer>::of_ours(reply::hello(&Id::Number(0)));
        let (head, said) = self.ask(resolved, &ours, hello.bytes()).await?;
        let said = said.filter(|doc| head.status == 200 && doc.get(&["result"]).is_some());
        let said = said.ok_or(REFUSED)?;
        let version = said
            .get(&["result", "protocolVersion"])
            .and_then(|node| said.str(node))
            .and_then(ProtocolVersion::parse)
            .ok_or(REFUSED)?;
        Ok(Opened {
            session_id: head.session_id,
            version: version.as_str().into(),
            handshake: Handshake::of(&said),
        })
    }

    /// The second half.
    async fn begin(&self, resolved: &Arc<Resolved>, opened: &Opened) -> Result<(), Fault> {
        let ours = UpstreamHeaders {
            purpose: Purpose::Word,
            accept: Some(ACCEPT),
            session_id: opened.session_id.clone(),
            protocol: vec![spoken(&opened.version)?],
        };
        let word = Cleared::<ToServer>::of_ours(reply::initialized());
        self.ask(resolved, &ours, word.bytes()).await.map(drop)
    }

    /// Sends words of our own; gives the head and the first message of the answer.
    async fn ask(
        &self,
        resolved: &Arc<Resolved>,
        headers: &UpstreamHeaders,
        body: &Bytes,
    ) -> Result<(Head, Option<Document>), Fault> {
        let path = &self.target.path;
        let resolved = Arc::clone(resolved);
        let answer = self.exchange(path, resolved, Verb::Post, headers, Some(body));
        let (head, said) = match answer.await? {
            Answer::Json(head, body) => (head, Some(body)),
            // The connection is not used again.
            Answer::Events(head, mut events) => return Ok((head, answer_in(&mut events).await?)),
            Answer::Long(head, _) | Answer::Empty(head) => (head, None),
        };
        Ok((head, said.and_then(document)))
    }
}

/// The answer among the events of a stream; logs and progress may come before it.
async fn answer_in(events: &mut EventStream) -> Result<Option<Document>, Fault> {
    for _ in 0..EVENTS_MAX {
        let event = match events.next().await? {
            Some(Said::Event(event)) => event,
            Some(Said::TooLong(_)) => continue,
            None => break,
        };
        let said = event.data.and_then(document);
        if let Some(said) = said.filter(|doc| doc.get(&["method"]).is_none()) {
            return Ok(Some(said));
        }
    }
    Ok(None)
}

fn document(bytes: Bytes) -> Option<Document> {
    Document::parse(bytes, &mcp_codec::Limits::default()).ok()
}

/// A session of Weir's own in a sandbox.
struct Opened {
    session_id: Option<Box<str>>,
    version: Box<str>,
    handshake: Told,
}

impl Opened {
    /// The answer to `server/discover`, if that is what is asked.
    fn discovered(&self, asked: &Message) -> Option<Result<Answer, Fault>> {
        let id = asked
            .id()
            .filter(|_| asked.method() == Some("server/discover"))?;
        let head = Head {
            status: 200,
            older: true,
            ..Head::default()
        };
        let handshake = self.handshake.as_ref().map_err(Fault::clone);
        Some(handshake.map(|said| Answer::Json(head, said.discovered(id))))
    }
}

/// Whether a message is of the era that has no sessions.
pub(super) fn speaks_stateless(headers: &UpstreamHeaders) -> bool {
    let version = headers
        .protocol
        .iter()
        .find(|(name, _)| name.as_str() == "mcp-protocol-version");
    let version = version.and_then(|(_, value)| ProtocolVersion::parse(value.to_str().ok()?));
    version.is_some_and(|version| version.era() == Era::Stateless)
}

fn older_headers(
    headers: &UpstreamHeaders,
    version: &str,
) -> Result<Vec<(HeaderName, HeaderValue)>, Fault> {
    let stateless = |name: &str| {
        STATELESS_HEADERS.contains(&name) || STATELESS_PREFIXES.iter().any(|p| name.starts_with(p))
    };
    let kept = headers.protocol.iter();
    let mut kept: Vec<_> = kept
        .filter(|(n, _)| !stateless(n.as_str()))
        .cloned()
        .collect();
    kept.push(spoken(version)?);
    Ok(kept)
}

fn spoken(version: &str) -> Result<(HeaderName, HeaderValue), Fault> {
    let value = HeaderValue::from_str(version).map_err(|_| Fault::Broken("a version"))?;
    Ok((HeaderName::from_static("mcp-protocol-version"), value))
}
