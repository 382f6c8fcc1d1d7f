//! DELETE: the end of a handshake session.

use pingora_core::protocols::http::ServerSession;

use super::head::{self, RequestHead};
use super::io::{self, Extra, Gone};
use super::trail::Trail;
use super::{After, Context, SESSION_NOT_FOUND, post, prepare};
use crate::upstream::{Link, Purpose, UpstreamHeaders, Verb};
use audit_log::UpstreamOutcome;
use domain::Era;

/// Serves a DELETE.
pub(super) async fn delete(
    context: Context,
    session: &mut ServerSession,
    mut extra: Extra,
) -> Result<After, Gone> {
    let head = match RequestHead::parse(&session.req_header().headers) {
        Ok(head) => head,
        Err(refusal) => return post::refuse(&context, session, refusal, None, extra).await,
    };
    if head.known_version() == Some(domain::ProtocolVersion::V2026_07_28) {
        let text = "There are no sessions in this protocol version.";
        let refusal = super::Refusal::new(405, crate::reply::code::INVALID_REQUEST, text);
        let allow = http::HeaderValue::from_static("POST, OPTIONS");
        extra.push((http::header::ALLOW, allow));
        return post::refuse(&context, session, refusal, None, extra).await;
    }
    let Some(own) = head
        .session_id
        .as_deref()
        .and_then(|id| context.session(id))
    else {
        let refusal = if head.session_id.is_some() {
            SESSION_NOT_FOUND
        } else {
            let text = "There is no session to end: Mcp-Session-Id is missing.";
            super::Refusal::new(400, crate::reply::code::INVALID_REQUEST, text)
        };
        return post::refuse(&context, session, refusal, None, extra).await;
    };
    if let Err(limited) = prepare::word_may_pass(&context) {
        return post::limited(&context, session, limited, extra).await;
    }
    let mut trail = Trail::new(&context.server);
    trail.begun(&context, Some(&own), &head.trace, 0);
    trail.spoken(Era::Handshake, Some(own.version));
    // The session ends here whatever the upstream says.
    context.gateway.sessions.close(&own);
    if let Link::Http(link) = &context.server.runtime.link {
        let mut protocol = Vec::new();
        head::push(&mut protocol, "mcp-protocol-version", own.version.as_str());
        let session_id = own.upstream_id();
        let headers = UpstreamHeaders {
            purpose: Purpose::Word,
            accept: head.accept,
            session_id,
            protocol,
        };
        trail.upstream_asked();
        let outcome = tokio::select! {
            biased;
            answer = link.send(Verb::Delete, &headers, None) => match answer {
                Ok(_) => UpstreamOutcome::Answered,
                Err(_) => UpstreamOutcome::Broken,
            },
            () = context.gateway.was_cut() => UpstreamOutcome::Cancelled,
        };
        trail.upstream_done(outcome);
    }
    let _ = trail
        .close(&context.gateway, &context.snapshot, &context.server, 204)
        .await;
    io::empty(session, 204, extra).await?;
    Ok(After::Keep)
}
