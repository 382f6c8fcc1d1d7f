//! Ends a server's session that no client will end: its stream is over, or its client never heard of it.
//!
//! Nobody waits for the server's word about it, and no place of a stream or a call is held meanwhile.

use std::sync::Arc;
use std::time::Duration;

use super::Context;
use crate::session::Session;
use crate::upstream::{Link, Purpose, UpstreamHeaders, Verb};

/// How long a server may take to end a session.
const WAIT: Duration = Duration::from_secs(10);

/// Tells the server that a session of its is over. Above [`crate::gateway::FAREWELLS_MAX`] at once it is not told, and ends
/// the session itself one day.
pub(super) fn say(context: &Context, upstream_id: Option<Box<str>>) {
    let (Link::Http(_), Some(id)) = (&context.server.runtime.link, upstream_id) else {
        return;
    };
    let Ok(place) = Arc::clone(&context.gateway.farewells).try_acquire_owned() else {
        tracing::debug!(server_id = %context.server.id, "the upstream's session stays: too many end at once");
        return;
    };
    // One that stops waits for what is under way, within its bound.
    let under_way = context.gateway.turns().begin();
    let context = context.clone();
    tokio::spawn(async move {
        end(&context, id).await;
        drop((place, under_way));
    });
}

/// The same of a session that gave way to one of this context, whatever server it was for.
pub(super) fn say_of(context: &Context, gone: Option<&Session>) {
    let Some(gone) = gone else { return };
    let Some(server) = context.snapshot.server(&gone.server).cloned() else {
        return;
    };
    let of_its_server = Context {
        server,
        ..context.clone()
    };
    say(&of_its_server, gone.upstream_id());
}

async fn end(context: &Context, id: Box<str>) {
    let Link::Http(link) = &context.server.runtime.link else {
        return;
    };
    let headers = UpstreamHeaders {
        purpose: Purpose::Word,
        session_id: Some(id),
        ..UpstreamHeaders::default()
    };
    tokio::select! {
        ended = link.send(Verb::Delete, &headers, None) => if let Err(fault) = ended {
            tracing::debug!(server_id = %context.server.id, %fault, "the upstream's session stays");
        },
        () = tokio::time::sleep(WAIT) => {
            tracing::debug!(server_id = %context.server.id, "the upstream's session stays: no answer");
        }
        () = context.gateway.was_cut() => {}
    }
}
