//! What a server says among events that is no message, or too long to be held: it goes no further, and nothing that does not
//! depend on it ends with it.

use std::time::Instant;

use domain::Era;
use mcp_codec::{DecodeError, DecodeErrorKind, Message, Whose};

use super::call::{Down, Halt, Step};
use super::trail::Trail;
use crate::pipeline::{self, Cleared};
use crate::reply::{self, code};
use crate::upstream::{Fault, Oversize};

/// What is wrong with an answer, by what is wrong with its text.
pub(super) fn broken(error: &DecodeError) -> Halt {
    Halt::Fault(Fault::Malformed(error.kind))
}

impl Down<'_> {
    /// An event was too long to be held.
    pub(super) async fn too_long(&self, whose: Whose, trail: &Trail) -> Result<Step, Halt> {
        let fault = Fault::TooLarge(Oversize::Off);
        match (&whose, self.call) {
            (Whose::Answer(id), Some(call)) if self.awaits(call, id) => Err(Halt::Fault(fault)),
            // It may be the answer.
            (Whose::Unknown, Some(_)) => Err(Halt::Fault(fault)),
            (Whose::Answer(id), None) if self.may_be_answered_here(Some(id)) => {
                self.note_dropped(DecodeErrorKind::TooLarge, trail).await?;
                // Nobody looked through it: unless the client gave the id itself it is text of the server.
                let id = Some(id).filter(|id| self.is_clients_own(id));
                let own = reply::error(id, code::UPSTREAM, fault.client_text());
                Ok(Step::Send {
                    message: Cleared::of_ours(own),
                    last: true,
                    id: None,
                    retry_ms: None,
                })
            }
            _ => self.dropped(&whose, DecodeErrorKind::TooLarge, trail).await,
        }
    }

    /// An event's data is no message that is accepted.
    pub(super) async fn ill_formed(&self, error: DecodeError, trail: &Trail) -> Result<Step, Halt> {
        match &error.whose {
            whose @ (Whose::Call(_) | Whose::Word) => self.dropped(whose, error.kind, trail).await,
            // It may be the answer.
            _ => Err(broken(&error)),
        }
    }

    /// The server asks its client something, as it may in a session, and there is none: whoever runs Weir can mend it.
    pub(super) fn note_unasked(&self, asked: &Message) {
        let server = &self.context.server;
        if self.era == Era::Stateless
            && let Some(left_out) = server.runtime.asks.admits(Instant::now())
        {
            let method = pipeline::written(&server.rules, asked.method().unwrap_or_default());
            tracing::warn!(
                server_id = %server.id, method, left_out,
                "the server asks its client something that only a session can answer, and the client speaks the stateless revision; with \
                 `upstream.stateless: false` clients that know a handshake begin with one"
            );
        }
    }

    /// Nothing of it goes on; who asked something hears why.
    async fn dropped(
        &self,
        whose: &Whose,
        why: DecodeErrorKind,
        trail: &Trail,
    ) -> Result<Step, Halt> {
        self.note_dropped(why, trail).await?;
        let refused = match whose {
            Whose::Call(id) => Some(id),
            _ => None,
        };
        let own =
            refused.map(|id| reply::error(Some(id), code::INVALID_REQUEST, why.client_text()));
        Ok(Step::Skip {
            to_server: own.map(Cleared::of_ours),
        })
    }

    async fn note_dropped(&self, why: DecodeErrorKind, trail: &Trail) -> Result<(), Halt> {
        let context = self.context;
        let server = &context.server;
        if let Some(left_out) = server.runtime.dropped.admits(Instant::now()) {
            tracing::warn!(
                server_id = %server.id, reason = %why, left_out,
                "a message of the server is not accepted; it is dropped, and the stream goes on"
            );
        }
        let mut own = trail.branch();
        own.dropped(why.client_text());
        let kept = own.close(&context.gateway, &context.snapshot, server, 200);
        Ok(kept.await?)
    }
}
