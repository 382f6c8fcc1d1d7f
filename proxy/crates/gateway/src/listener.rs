//! The accept loop: connections are counted, bounded, encrypted if so configured, and handed to
//! pingora's HTTP/1.1 and HTTP/2 servers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora_core::apps::{
    HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp,
};
use pingora_core::listeners::tls::Acceptor;
use pingora_core::protocols::Stream;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::v2::server::{H2Options, default_h2_options};
use pingora_core::protocols::l4::stream::Stream as TcpStreamOfPingora;
use pingora_core::server::ShutdownWatch;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::exchange;
use crate::gateway::{Gateway, SlotKind};

/// After an accept that failed for lack of descriptors: time for connections to close.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// TLS of a listener; swapped when the certificate changes, without touching open connections.
pub type TlsSlot = Arc<ArcSwap<ServerConfig>>;

/// Serves a gateway on a bound listener until [`Gateway::stop`], then waits for calls under way.
pub async fn serve(gateway: Arc<Gateway>, listener: TcpListener, tls: Option<TlsSlot>) {
    let mut stopping = gateway.stopping();
    let app = Arc::new(App {
        gateway: Arc::clone(&gateway),
        options: server_options(),
    });
    let (shutdown, watch) = watch::channel(false);
    loop {
        let accepted = tokio::select! {
            biased;
            () = Gateway::stopped(&mut stopping) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => admit(&app, stream, tls.as_ref(), &watch),
            Err(error) => pause_after(&error).await,
        }
    }
    drop(listener);
    shutdown.send_replace(true);
    drain(&gateway).await;
}

fn admit(app: &Arc<App>, stream: TcpStream, tls: Option<&TlsSlot>, shutdown: &ShutdownWatch) {
    let limits = app.gateway.snapshot().limits.clone();
    let Some(slot) = app
        .gateway
        .slot(SlotKind::Connection, limits.connections_max)
    else {
        app.gateway.metrics.connections_refused.increment(1);
        return;
    };
    // Small answers must not wait for an acknowledgement (RFC 896 against delayed ACK).
    let _ = stream.set_nodelay(true);
    let (app, shutdown) = (Arc::clone(app), shutdown.clone());
    let acceptor = tls.map(|slot| Acceptor::from_server_config(slot.load_full()));
    tokio::spawn(async move {
        let _slot = slot;
        let stream: TcpStreamOfPingora = stream.into();
        let stream: Stream = match acceptor {
            None => Box::new(stream),
            Some(acceptor) => {
                let wait = Duration::from_millis(limits.header_timeout_ms);
                match tokio::time::timeout(wait, acceptor.tls_handshake(stream)).await {
                    Ok(Ok(stream)) => Box::new(stream),
                    _ => return,
                }
            }
        };
        app.process_new(stream, &shutdown).await;
    });
}

async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

async fn drain(gateway: &Gateway) {
    let wait = Duration::from_millis(gateway.snapshot().limits.drain_timeout_ms);
    let deadline = tokio::time::Instant::now() + wait;
    while gateway.connections() > 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The one place that speaks pingora's server side; it translates and delegates.
struct App {
    gateway: Arc<Gateway>,
    options: HttpServerOptions,
}

fn server_options() -> HttpServerOptions {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    options.h2_idle_timeout = Some(Duration::from_secs(300));
    options
}

#[async_trait]
impl HttpServerApp for App {
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        session.set_pipelining_enabled(true);
        let outcome = exchange::serve_one(&self.gateway, &mut session).await;
        if outcome == exchange::After::Close || *shutdown.borrow() {
            session.set_keepalive(None);
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let reusable = session.finish().await.ok()??;
        Some(ReusedHttpStream::from_reusable_stream(reusable, settings))
    }

    fn server_options(&self) -> Option<&HttpServerOptions> {
        Some(&self.options)
    }

    fn h2_options(&self) -> Option<H2Options> {
        let limits = self.gateway.snapshot().limits.clone();
        let mut options = default_h2_options();
        options.max_concurrent_streams(limits.h2_streams_max);
        options.max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX));
        // RFC 9113 section 10.5: bounds on what one peer can make us keep or do for nothing.
        options.initial_window_size(64 << 10);
        options.initial_connection_window_size(1 << 20);
        options.max_concurrent_reset_streams(20);
        options.max_pending_accept_reset_streams(20);
        Some(options)
    }
}
