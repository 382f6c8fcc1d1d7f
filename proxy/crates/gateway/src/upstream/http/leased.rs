//! Exchanges with the sandboxes of a hosted server.
//!
//! A sandbox may have been ended since a session began: it was idle, it ran out of memory, it was restarted. The one in
//! its place knows nothing of the session and says 404. The client need not notice: Weir opens a session of its own in
//! it and sends the request there. That is no retry of a call: a 404 to a session id says that nothing was done.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use domain::Sharing;
use pingora_core::upstreams::peer::HttpPeer;
use runner_api::Lease;

use super::older::speaks_stateless;
use super::{Answer, Head, HttpLink, Purpose, Resolved, UpstreamHeaders, Verb};
use crate::pipeline::{Cleared, ToServer};
use crate::upstream::Fault;
use crate::upstream::hosted::{self, Hosted};

impl HttpLink {
    /// One exchange with a sandbox. Accepting a connection is dear in one, so it is kept for the next exchange with the same
    /// sandbox, for a moment only: what is at rest is frozen or ended.
    pub(super) async fn send_leased(
        &self,
        hosted: &Hosted,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Cleared<ToServer>>,
    ) -> Result<Answer, Fault> {
        let hello = headers.purpose == Purpose::Hello;
        let known = headers.session_id.as_deref().map(hosted::parts);
        if let (Verb::Delete, Some((key, _))) = (verb, known)
            && hosted.end_session(key).await?
        {
            return Ok(Answer::accepted());
        }
        if hosted.sharing == Sharing::Call && headers.purpose == Purpose::Word {
            // Nobody is there to hear it: the sandbox of the call that it is about has ended, or not begun.
            return Ok(Answer::accepted());
        }
        let key = match known {
            Some((key, _)) => Some(key.to_owned()),
            None if hello => Some(hosted::new_key()?),
            None => None,
        };
        let (mut held, lease) = hosted.lease(key.as_deref()).await?;
        let resolved = self.resolved_to(hosted, &lease);
        let older = verb == Verb::Post
            && self
                .wants_older(&mut held, &lease, &resolved, headers)
                .await?;
        let mut answer = if older {
            self.send_older(&mut held, &resolved, headers, body).await?
        } else {
            let body = body.map(Cleared::bytes);
            let work = self.in_sandbox(hosted, &resolved, verb, headers, body);
            held.guard(work).await?
        };
        let head = answer.head_mut();
        head.session_id = match (hello, head.status, &key) {
            (true, 200, Some(key)) => Some(hosted::joined(key, head.session_id.as_deref())),
            _ => None,
        };
        if let Answer::Events(_, events) = &mut answer {
            events.hold(held);
        }
        Ok(answer)
    }

    async fn in_sandbox(
        &self,
        hosted: &Hosted,
        resolved: &Arc<Resolved>,
        verb: Verb,
        headers: &UpstreamHeaders,
        body: Option<&Bytes>,
    ) -> Result<Answer, Fault> {
        let known = headers.session_id.as_deref().map(hosted::parts);
        let mut headers = UpstreamHeaders {
            session_id: known.and_then(|(key, own)| hosted.renewed(key).or(own.map(Into::into))),
            ..headers.clone()
        };
        let path = &self.target.path;
        let asks = verb == Verb::Post && headers.purpose != Purpose::Hello;
        // With a sandbox per call there is no session to go on with, also for a client that has none.
        let anew = hosted.sharing == Sharing::Call && asks && !speaks_stateless(&headers);
        if !anew {
            let mut answer = self
                .exchange(path, Arc::clone(resolved), verb, &headers, body)
                .await?;
            let forgotten = answer.head_mut().status == 404 && headers.session_id.is_some();
            if !(asks && forgotten) {
                return Ok(answer);
            }
            if headers.purpose == Purpose::Word {
                // What it is about went with the session; and a client that is refused its answer takes the transport for broken.
                return Ok(Answer::accepted());
            }
        }
        headers.session_id = self.open_own(resolved).await?;
        if let Some((key, _)) = known {
            hosted.renew(key, headers.session_id.as_deref());
        }
        self.exchange(path, Arc::clone(resolved), verb, &headers, body)
            .await
    }

    fn resolved_to(&self, hosted: &Hosted, lease: &Lease) -> Arc<Resolved> {
        let address = lease.address;
        let mut peer = HttpPeer::new(address, false, String::new());
        peer.options.connection_timeout = Some(self.bounds.connect_timeout);
        peer.options.total_connection_timeout = Some(self.bounds.connect_timeout);
        let at = Instant::now();
        let pool = hosted.connections(&lease.sandbox);
        Arc::new(Resolved {
            peer,
            address,
            at,
            pool,
        })
    }
}

impl Answer {
    pub(super) fn head_mut(&mut self) -> &mut Head {
        let (Self::Json(head, _) | Self::Long(head, _) | Self::Events(head, _) | Self::Empty(head)) =
            self;
        head
    }

    /// A word was taken.
    pub(super) fn accepted() -> Self {
        Self::Empty(Head {
            status: 202,
            ..Head::default()
        })
    }
}
