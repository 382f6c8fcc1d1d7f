//! POST to a duplex upstream: the answer comes on a channel of its own.

use std::sync::Arc;

use audit_log::UpstreamOutcome;
use domain::Era;
use mcp_codec::{Id, MessageKind};
use pingora_core::protocols::http::ServerSession;

use super::call::{Down, Handles, Origin, Source, silence};
use super::forward::{NotOpened, unless_heard_of};
use super::head::Refusal;
use super::io::{self, Gone};
use super::post::{Answered, Post};
use super::prepare::Ready;
use super::pump::Pump;
use super::{After, Context, SESSION_NOT_FOUND, TOO_MANY_CALLS};
use crate::reply::code;
use crate::session::Session;
use crate::upstream::{CallError, DuplexLink, DuplexSession, Fault, UpstreamHeaders};

const DUPLICATE_ID: Refusal = Refusal::new(
    400,
    code::INVALID_REQUEST,
    "This id or progress token is already in use.",
);

/// Opens pipes, in the place of a session that was left where all are taken.
pub(super) async fn open_in_place<F: Future<Output = Result<Arc<DuplexSession>, Fault>>>(
    context: &Context,
    open: impl Fn() -> F,
) -> Result<Arc<DuplexSession>, Fault> {
    let (server, owner) = (&context.server.id, &context.principal.owner);
    match open().await {
        Err(full @ (Fault::Busy | Fault::ShareTaken)) => {
            let own_only = full == Fault::ShareTaken;
            let sessions = &context.gateway.sessions;
            match sessions.give_way_on(server, owner, own_only) {
                // Its place is free with it; its process ends meanwhile.
                Some(gone) => drop(gone),
                None => return Err(full),
            }
            open().await
        }
        opened => opened,
    }
}

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
        let own = match (ready.era, &self.own) {
            (Era::Handshake, Some(own)) => match &own.duplex {
                Some(duplex) if duplex.is_open() => Some(Arc::clone(duplex)),
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
            _ => None,
        };
        let principal = &self.context.principal;
        let initializes = &*ready.call.method == "initialize" && ready.era == Era::Handshake;
        let opened = async {
            match own {
                Some(duplex) => Ok(duplex),
                None if initializes => open_in_place(&self.context, || link.open(principal)).await,
                None => open_in_place(&self.context, || link.shared(principal)).await,
            }
        };
        let opened = tokio::select! {
            biased;
            opened = opened => opened,
            () = io::closed(session, &self.context.gateway) => return self.left().await,
        };
        match opened {
            Ok(duplex) => self.call_duplex(session, ready, duplex).await,
            Err(fault) => self.fault(session, &ready, fault).await,
        }
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
            let facade = tokio::select! {
                biased;
                facade = duplex.facade() => facade,
                () = io::closed(session, &self.context.gateway) => return self.left().await,
            };
            let facade = match facade {
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
                return self
                    .carry_duplex(session, ready, source, None, false, None)
                    .await;
            }
            let ours = duplex.fresh_handle();
            let changes: [(&[&str], Id); 2] = [
                (&["id"], ours.clone()),
                (&["params", "_meta", "progressToken"], ours.clone()),
            ];
            let codec = &self.context.snapshot.codec;
            if ready.cleared.put_handles(&changes, codec).is_err() {
                return self.fault(session, &ready, Fault::Grown).await;
            }
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
        ready.goes_up();
        let called = tokio::select! {
            biased;
            called = duplex.call(wire_id, token, &ready.cleared, silence) => called,
            () = io::closed(session, &self.context.gateway) => return self.left().await,
        };
        ready.cleared.sent();
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
        let mut opened = None;
        if initializes {
            let duplex = Some(Arc::clone(&duplex));
            match self
                .open_session(session, &ready, &mut source, None, duplex)
                .await
            {
                Ok(new) => opened = new,
                Err(NotOpened::Answered(answered)) => return self.answer(session, *answered).await,
                Err(NotOpened::Left) => return self.left().await,
            }
        }
        self.carry_duplex(session, ready, source, handles, adapt, opened)
            .await
    }

    async fn carry_duplex(
        mut self: Box<Self>,
        session: &mut ServerSession,
        ready: Box<Ready>,
        source: Source,
        handles: Option<Handles>,
        adapt: bool,
        opened: Option<Arc<Session>>,
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
        let ended = pump.run(session, self.trail).await;
        unless_heard_of(&self.context, opened.as_deref(), ended)
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
