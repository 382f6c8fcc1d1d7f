//! The admin listener: metrics, health and readiness, apart from clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderValue, Method};
use pingora_core::apps::{HttpServerApp, ReusedHttpStream, ServerApp};
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::l4::stream::Stream as TcpStreamOfPingora;
use pingora_core::server::ShutdownWatch;
use pingora_http::ResponseHeader;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::gateway::Gateway;
use crate::gather::Gather;
use crate::guard::Guard;
use crate::head_watch::HeadWatch;
use crate::listener::Serving;

/// Connections served at once.
const CONNECTIONS_MAX: usize = 64;
/// Time for a request head. Who asks is near, and says all of it at once; who says nothing keeps a probe from its answer.
const HEADER_WAIT: Duration = Duration::from_secs(1);
/// Largest request head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// A client that takes no byte for so long is cut.
const WRITE_WAIT: Duration = Duration::from_secs(10);
/// Time to flush what is left of an answer and close in order.
const FINISH_WAIT: Duration = Duration::from_secs(10);

/// What an admin page says.
pub type AdminPage = Arc<dyn Fn() -> String + Send + Sync>;

/// Serves `/metrics` (text from `metrics`), `/healthz` and `/readyz` until the gateway stops.
pub fn serve_admin(gateway: Arc<Gateway>, listener: TcpListener, metrics: AdminPage) -> Serving {
    Box::pin(accept_all(gateway, listener, metrics))
}

async fn accept_all(gateway: Arc<Gateway>, listener: TcpListener, metrics: AdminPage) {
    let ip = listener
        .local_addr()
        .map_or(IpAddr::from([127, 0, 0, 1]), |a| a.ip());
    let hosts = gateway.snapshot().hosts.clone();
    let guard = Guard::new(ip, &hosts, &[]);
    let app = Arc::new(Admin {
        gateway: Arc::clone(&gateway),
        metrics,
        guard,
    });
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (_shutdown, watch) = watch::channel(false);
    let mut stopping = gateway.stopping();
    loop {
        let accepted = tokio::select! {
            biased;
            () = Gateway::stopped(&mut stopping) => return,
            accepted = listener.accept() => accepted,
        };
        let (Ok((stream, _)), Ok(slot)) = (accepted, Arc::clone(&slots).try_acquire_owned()) else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (app, watch) = (Arc::clone(&app), watch.clone());
        tokio::spawn(async move {
            let _slot = slot;
            let stream: Stream = Box::new(TcpStreamOfPingora::from(stream));
            let head = Arc::new(HeadWatch::default());
            head.begin(HEAD_BYTES_MAX, 0);
            let stream = Gather::watched(stream, Arc::default(), head);
            app.process_new(Box::new(stream), &watch).await;
        });
    }
}

struct Admin {
    gateway: Arc<Gateway>,
    metrics: AdminPage,
    guard: Guard,
}

#[async_trait]
impl HttpServerApp for Admin {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        // One request for each connection: there are few, and few askers.
        session.set_keepalive(None);
        session.set_write_timeout(Some(WRITE_WAIT));
        let read = tokio::time::timeout(HEADER_WAIT, session.read_request()).await;
        if !matches!(read, Ok(Ok(true))) {
            return None;
        }
        let (status, body) = self.page(&session);
        let mut head = ResponseHeader::build_no_case(status, Some(4)).ok()?;
        let text = "text/plain; version=0.0.4; charset=utf-8";
        head.append_header(http::header::CONTENT_TYPE, HeaderValue::from_static(text))
            .ok()?;
        head.append_header(http::header::CONTENT_LENGTH, body.len())
            .ok()?;
        session.write_response_header(Box::new(head)).await.ok()?;
        session
            .write_response_body(Bytes::from(body), true)
            .await
            .ok()?;
        let _ = tokio::time::timeout(FINISH_WAIT, session.finish()).await;
        None
    }
}

impl Admin {
    fn page(&self, session: &ServerSession) -> (u16, String) {
        let head = session.req_header();
        if self.guard.admit(None, &head.headers).is_err() {
            return (
                421,
                "this listener does not answer to that Host or Origin\n".into(),
            );
        }
        if head.method != Method::GET {
            return (405, "only GET is answered here\n".into());
        }
        match head.raw_path() {
            b"/metrics" => {
                self.gateway.note_sessions();
                (200, (self.metrics)())
            }
            b"/healthz" => (200, "ok\n".into()),
            b"/readyz" => match self.gateway.ready() {
                Ok(()) => (200, "ready\n".into()),
                Err(why) => {
                    tracing::error!(%why, "not ready");
                    (503, "the audit log cannot be kept\n".into())
                }
            },
            _ => (404, "here are /metrics, /healthz and /readyz\n".into()),
        }
    }
}
