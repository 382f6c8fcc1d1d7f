//! The accept loop: connections are counted, bounded, encrypted if so configured, and handed to
//! pingora's HTTP/1.1 and HTTP/2 servers.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora_core::apps::{
    HttpPersistentSettings, HttpServerApp, HttpServerOptions, ReusedHttpStream, ServerApp,
};
use pingora_core::listeners::tls::Acceptor;
use pingora_core::protocols::http::v2::server::{H2Options, default_h2_options};
use pingora_core::protocols::http::{ReusableHttpStream, ServerSession};
use pingora_core::protocols::l4::stream::Stream as TcpStreamOfPingora;
use pingora_core::protocols::{ALPN, GetSocketDigest, SocketDigest, Stream};
use pingora_core::server::ShutdownWatch;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::exchange::{self, After, HeadSoFar};
use crate::gateway::{ConnectionSlot, Gateway};
use crate::gather::Gather;
use crate::head_watch::HeadWatch;
use crate::lobby::Seat;

/// After an accept that failed for lack of descriptors: time for connections to close.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long calls that were told to end may take to close their records.
const RECORDS_WAIT: Duration = Duration::from_secs(2);

/// Time to flush what is left of an answer and close in order.
const FINISH_WAIT: Duration = Duration::from_secs(10);
/// What pingora gives a new connection to begin its first request.
const KEEPALIVE_S: u64 = 60;
/// Between two looks at a preface that came in pieces.
const PEEK_AGAIN: Duration = Duration::from_millis(5);
/// How HTTP/2 without TLS begins (RFC 9113 section 3.4).
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// TLS of a listener; swapped when the certificate changes, without touching open connections.
pub type TlsSlot = Arc<ArcSwap<ServerConfig>>;

/// A listener that is served. Boxed, so that the whole way of a call is compiled once, here, and not again in each program
/// and test that serves one: what an `async fn` does is compiled by whoever polls it.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves a gateway on a bound listener until [`Gateway::stop`], then waits for calls under way.
pub fn serve(gateway: Arc<Gateway>, listener: TcpListener, tls: Option<TlsSlot>) -> Serving {
    Box::pin(accept_all(gateway, listener, tls))
}

async fn accept_all(gateway: Arc<Gateway>, listener: TcpListener, tls: Option<TlsSlot>) {
    let mut stopping = gateway.stopping();
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    gateway.turns().shared_by(workers);
    let (shutdown, watch) = watch::channel(false);
    loop {
        let accepted = tokio::select! {
            biased;
            () = Gateway::stopped(&mut stopping) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                match gateway
                    .place_for_connection(gateway.connections_max())
                    .await
                {
                    Some(slot) => admit(slot, &gateway, stream, peer, tls.as_ref(), &watch),
                    None => gateway.metrics.connections_refused.increment(1),
                }
            }
            Err(error) => {
                gateway.could_not_accept(&error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    shutdown.send_replace(true);
    drain(&gateway).await;
}

fn admit(
    slot: ConnectionSlot,
    gateway: &Arc<Gateway>,
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<&TlsSlot>,
    shutdown: &ShutdownWatch,
) {
    // Small answers must not wait for an acknowledgement (RFC 896 against delayed ACK).
    let _ = stream.set_nodelay(true);
    let (gateway, shutdown) = (Arc::clone(gateway), shutdown.clone());
    let acceptor = tls.map(|slot| Acceptor::from_server_config(slot.load_full()));
    let seat = Arc::new(gateway.lobby.seat());
    tokio::spawn(async move {
        let _slot = slot;
        let served = converse(gateway, Arc::clone(&seat), stream, peer, acceptor, shutdown);
        tokio::select! {
            biased;
            () = served => {}
            // No request is under way then.
            () = seat.told_to_leave() => {}
        }
    });
}

/// Serves a connection to its end.
async fn converse(
    gateway: Arc<Gateway>,
    seat: Arc<Seat>,
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<Acceptor>,
    shutdown: ShutdownWatch,
) {
    let wait = Duration::from_millis(gateway.snapshot().limits.header_timeout_ms);
    let turns = Arc::clone(gateway.turns());
    let h2c = match acceptor {
        Some(_) => false,
        None => match tokio::time::timeout(wait, starts_h2(&stream)).await {
            Ok(Ok(h2c)) => h2c,
            // It said nothing, or not enough, for as long as a whole head may take.
            Ok(Err(_)) | Err(_) => return,
        },
    };
    let options = server_options(h2c);
    let app = Arc::new(App {
        gateway,
        options,
        seat,
    });
    let stream = known_as(peer, stream);
    let stream: Stream = match acceptor {
        None => Box::new(stream),
        Some(acceptor) => {
            let shaken = Box::pin(acceptor.tls_handshake(stream));
            match tokio::time::timeout(wait, shaken).await {
                Ok(Ok(stream)) => Box::new(stream),
                _ => return,
            }
        }
    };
    let h2 = app.options.h2c || matches!(stream.selected_alpn_proto(), Some(ALPN::H2));
    let head = Arc::new(HeadWatch::default());
    let stream = Box::new(Gather::watched(stream, turns, Arc::clone(&head)));
    if h2 {
        app.serve_h2(stream, &head, wait, &shutdown).await;
    } else {
        app.serve_h1(stream, &head, &shutdown).await;
    }
}

/// The stream as pingora knows it. Made of a socket it would not say whose it is.
fn known_as(peer: SocketAddr, stream: TcpStream) -> TcpStreamOfPingora {
    let mut stream: TcpStreamOfPingora = stream.into();
    let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
    // A listener on `[::]` sees IPv4 clients as IPv6 ones; people search for what they know.
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let _ = digest.peer_addr.set(Some(peer.into()));
    stream.set_socket_digest(digest);
    stream
}

/// Who is at the other side, for audit records.
fn client_of(session: &ServerSession) -> Option<Arc<str>> {
    session.client_addr().map(|a| a.to_string().into())
}

/// Waits for calls under way. Those that take too long are told to end, so that each leaves its audit record.
async fn drain(gateway: &Gateway) {
    let wait = Duration::from_millis(gateway.snapshot().limits.drain_timeout_ms);
    let are_over = || gateway.turns().under_way() == 0;
    if until(wait, || gateway.connections() == 0 && are_over()).await {
        return;
    }
    gateway.cut();
    if !until(RECORDS_WAIT, are_over).await {
        let calls = gateway.turns().under_way();
        tracing::warn!(
            calls,
            "calls did not end in time; they leave no audit record"
        );
    }
}

/// Whether it came true in time.
async fn until(wait: Duration, is_so: impl Fn() -> bool) -> bool {
    let deadline = tokio::time::Instant::now() + wait;
    while !is_so() {
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    true
}

/// The one place that speaks pingora's server side; it translates and delegates. One for each connection.
struct App {
    gateway: Arc<Gateway>,
    options: HttpServerOptions,
    seat: Arc<Seat>,
}

/// Whether a connection begins with the HTTP/2 preface. Looks without taking anything.
async fn starts_h2(stream: &TcpStream) -> io::Result<bool> {
    let mut seen = [0u8; H2_PREFACE.len()];
    loop {
        let len = stream.peek(&mut seen).await?;
        if len == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if seen[..len] != H2_PREFACE[..len] {
            return Ok(false);
        }
        if len == H2_PREFACE.len() {
            return Ok(true);
        }
        // The rest of the preface is on its way; `peek` would return at once with the same bytes.
        tokio::time::sleep(PEEK_AGAIN).await;
    }
}

fn server_options(h2c: bool) -> HttpServerOptions {
    let mut options = HttpServerOptions::default();
    options.h2c = h2c;
    options.h2_idle_timeout = Some(Duration::from_secs(300));
    options
}

impl App {
    /// One request after the other on a connection of HTTP/1.x. What pingora's own loop does too, but that makes a future
    /// of each request anew, and the future of an exchange is large to allocate and to move.
    async fn serve_h1(&self, stream: Stream, head: &HeadWatch, shutdown: &ShutdownWatch) {
        let mut session = ServerSession::new_http1(stream);
        let client = client_of(&session);
        // Bytes of the next head that came with the request before it.
        let mut there = 0;
        session.set_keepalive((!*shutdown.borrow()).then_some(KEEPALIVE_S));
        loop {
            let head = HeadSoFar {
                watch: head,
                there,
                seat: &self.seat,
            };
            let served = self.serve(session, client.clone(), Some(head), shutdown);
            let Some((reusable, mut settings)) = served.await else {
                return;
            };
            self.seat.end();
            let (stream, prefix) = reusable.into_parts();
            there = prefix.as_ref().map_or(0, |prefix| prefix.len());
            if let Some(prefix) = prefix {
                settings.set_pipelined_prefix(prefix);
            }
            session = ServerSession::new_http1(stream);
            settings.apply_to_session(&mut session);
        }
    }

    /// Every request of a connection of HTTP/2, by pingora's own loop. That waits for the preface as long as it takes; here it
    /// has the time of a head. Without TLS it was there before.
    async fn serve_h2(
        self: &Arc<Self>,
        stream: Stream,
        head: &HeadWatch,
        wait: Duration,
        shutdown: &ShutdownWatch,
    ) {
        head.begin(usize::MAX, 0);
        let silent = async {
            tokio::time::sleep(wait).await;
            let is_silent = head.bytes() < H2_PREFACE.len();
            head.end();
            if !is_silent {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            _ = self.process_new(stream, shutdown) => {}
            () = silent => {}
        }
    }

    /// Serves one request; gives the connection back if it may serve another.
    async fn serve(
        &self,
        mut session: ServerSession,
        client: Option<Arc<str>>,
        head: Option<HeadSoFar<'_>>,
        shutdown: &ShutdownWatch,
    ) -> Option<(ReusableHttpStream, HttpPersistentSettings)> {
        session.set_pipelining_enabled(true);
        match exchange::serve_one(&self.gateway, &mut session, client, head).await {
            // Nothing can be said or awaited any more; dropping the stream closes it.
            After::Drop => return None,
            After::Close => session.set_keepalive(None),
            After::Keep if *shutdown.borrow() => session.set_keepalive(None),
            After::Keep => {}
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let finished = tokio::time::timeout(FINISH_WAIT, session.finish()).await;
        let reusable = finished.ok()?.ok()??;
        Some((reusable, settings))
    }
}

#[async_trait]
impl HttpServerApp for App {
    async fn process_new_http(
        self: &Arc<Self>,
        session: ServerSession,
        shutdown: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        if !self.seat.begin() {
            return None;
        }
        let client = client_of(&session);
        let served = self.serve(session, client, None, shutdown).await;
        self.seat.end();
        let (reusable, settings) = served?;
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
