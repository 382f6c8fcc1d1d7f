//! POST to a duplex upstream: the answer comes on a channel of its own.

use std::sync::Arc;

use audit_log::UpstreamOutcome;
use domain::Era;
use mcp_codec::{Id, MessageKind};
use pingora_core::protocols::http::ServerSession;

use super::call::{Down, Handles, Origin, Source, silence};
use super::head::Refusal;
use super::io::Gone;
use super::post::{Answered, Post};
use super::prepare::Ready;
use super::pump::Pump;
use super::{After, SESSION_NOT_FOUND, TOO_MANY_CALLS};
use crate::reply::code;
use crate::upstream::{CallError, DuplexLink, DuplexSession, Fault, UpstreamHeaders};

const DUPLICATE_ID: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "This id or progress token is already in use.",
);

impl Post {
    /// Sends a cleared message into the pipes it belongs to.
    pub(super) async fn forward_duplex(
        self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        link: &DuplexLink,
    ) -> Result<After, Gone> {
        if ready.kind != MessageKind::Request {
            return self.tell_duplex(session, ready).await;
        }
        let opened = match (ready.era, &self.own) {
            (Era::Stateless, _) => link.shared(&self.context.principal).await,
            (Era::Handshake, Some(own)) => match &own.duplex {
                Some(duplex) if duplex.is_open() => Ok(Arc::clone(duplex)),
                _ => {
                    self.context.gateway.sessions.close(own);
                    return self
                        .answer(
                            session,
                            Answered::Refused(SESSION_NOT_FOUND, ready.call.id.clone(), None),
                        )
                        .await;
                }
            },
            (Era::Handshake, None) if &*ready.call.method == "initialize" => {
                link.open(&self.context.principal).await
            }
            (Era::Handshake, None) => link.shared(&self.context.principal).await,
        };
        let duplex = match opened {
            Ok(duplex) => duplex,
            Err(fault) => return self.fault(session, &ready, fault).await,
        };
        self.call_duplex(session, ready, duplex).await
    }

    async fn call_duplex(
        mut self: Box<Self>,
        session: &mut ServerSession,
        mut ready: Box<Ready>,
        duplex: Arc<DuplexSession>,
    ) -> Result<After, Gone> {
        let initializes = &*ready.call.method == "initialize";
        let own_duplex = self.own.is_some() || initializes;
        let Some(id) = ready.call.id.clone() else {
            return Err(Gone);
        };
        let mut handles = None;
        let mut adapt = false;
        if !own_duplex {
            let facade = match duplex.facade().await {
                Ok(facade) => facade,
                Err(fault) => return self.fault(session, &ready, fault).await,
            };
            adapt = facade.is_some() && ready.era == Era::Stateless;
            if let (Some(hello), true, "server/discover") = (facade, adapt, &*ready.call.method) {
                let hello = match hello {
                    Ok(hello) => hello,
                    Err(fault) => return self.fault(session, &ready, fault.clone()).await,
                };
                let source = Source::new(Origin::Body(Some(hello.discovered(&id))));
                return self.carry_duplex(session, ready, source, None, false).await;
            }
            let ours = duplex.fresh_handle();
            let changes: [(&[&str], Id); 2] = [
                (&["id"], ours.clone()),
                (&["params", "_meta", "progressToken"], ours.clone()),
            ];
            ready.cleared = match ready
                .cleared
                .with_handles(&changes, &self.context.snapshot.codec)
            {
                Ok(cleared) => cleared,
                Err(_) => return Err(Gone),
            };
            handles = Some(Handles {
                ours,
                id: id.clone(),
                token: ready.progress.take(),
            });
        }
        let (wire_id, token) = match &handles {
            Some(h) => (h.ours.clone(), h.token.as_ref().map(|_| h.ours.clone())),
            None => (id, ready.progress.clone()),
        };
        let silence = silence(&self.context, &ready.call);
        let called = duplex.call(wire_id, token, &ready.cleared, silence).await;
        let subscription = match called {
            Ok(subscription) => subscription,
            Err(CallError::DuplicateId) => {
                return self
                    .answer(
                        session,
                        Answered::Refused(DUPLICATE_ID, ready.call.id.clone(), None),
                    )
                    .await;
            }
            Err(CallError::TooMany) => {
                let refused = Answered::Refused(TOO_MANY_CALLS, ready.call.id.clone(), Some(1));
                return self.answer(session, refused).await;
            }
            Err(CallError::Fault(fault)) => return self.fault(session, &ready, fault).await,
        };
        if own_duplex {
            // Only now: one that is refused for its id may not touch the call that has it.
            ready.calls.opened(&ready.call, ready.progress.clone());
        }
        let mut source = Source::new(Origin::Duplex(subscription));
        if initializes {
            match self
                .open_session(&ready, &mut source, None, Some(Arc::clone(&duplex)))
                .await
            {
                Ok(_) => {}
                Err(answered) => return self.answer(session, *answered).await,
            }
        }
        self.carry_duplex(session, ready, source, handles, adapt)
            .await
    }

    async fn carry_duplex(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        source: Source,
        handles: Option<Handles>,
        adapt: bool,
    ) -> Result<After, Gone> {
        let down = Down {
            context: &self.context,
            era: ready.era,
            calls: &ready.calls,
            call: Some(&ready.call),
            resumed: None,
            handles: handles.as_ref(),
            refusal: false,
            adapt,
        };
        let extra = std::mem::take(&mut self.extra);
        let upstream = UpstreamHeaders::default();
        let pump = Pump {
            down,
            source,
            status: 200,
            extra,
            upstream,
            events: false,
            resumable: false,
        };
        pump.run(session, self.trail).await
    }

    async fn tell_duplex(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
    ) -> Result<After, Gone> {
        let told = match &self.own {
            Some(own) => match &own.duplex {
                Some(duplex) => duplex.send(&ready.cleared).await,
                None => Err(Fault::Broken("the session has no duplex")),
            },
            // Without a session there is nobody whom a notification could reach.
            None => Ok(()),
        };
        match told {
            Ok(()) => {
                self.trail.upstream_done(UpstreamOutcome::Accepted);
                self.accepted(session).await
            }
            Err(fault) => self.fault(session, &ready, fault).await,
        }
    }
}
