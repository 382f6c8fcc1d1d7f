//! A bare hyper proxy: server connections on one side, a small pool of client connections on the other.

use super::announce;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};

/// Idle upstream connections kept.
const POOL_MAX: usize = 128;

type Sender = SendRequest<Incoming>;
type Body = BoxBody<bytes::Bytes, hyper::Error>;

/// Serves until the process is killed.
pub fn serve(upstream: SocketAddr, threads: usize) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()?
        .block_on(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            announce(listener.local_addr()?)?;
            let pool = Arc::new(Pool {
                upstream,
                idle: Mutex::new(Vec::new()),
            });
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(connection(stream, Arc::clone(&pool)));
            }
        })
}

async fn connection(stream: TcpStream, pool: Arc<Pool>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(move |request| forward(request, Arc::clone(&pool)));
    // A client that goes away is how every connection ends.
    let _ = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

struct Pool {
    upstream: SocketAddr,
    idle: Mutex<Vec<Sender>>,
}

async fn forward(
    request: Request<Incoming>,
    pool: Arc<Pool>,
) -> Result<Response<Body>, std::convert::Infallible> {
    Ok(match try_forward(request, &pool).await {
        Ok(response) => response,
        Err(_) => {
            let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed());
            *response.status_mut() = hyper::StatusCode::BAD_GATEWAY;
            response
        }
    })
}

async fn try_forward(
    request: Request<Incoming>,
    pool: &Arc<Pool>,
) -> anyhow::Result<Response<Body>> {
    let mut sender = pool.take().await?;
    let response = sender.send_request(request).await?;
    let (parts, body) = response.into_parts();
    // It is free again when the answer's body has been read; `take` passes over it until then.
    pool.give(sender);
    Ok(Response::from_parts(parts, body.boxed()))
}

impl Pool {
    async fn take(&self) -> anyhow::Result<Sender> {
        if let Some(sender) = self.ready() {
            return Ok(sender);
        }
        let stream = TcpStream::connect(self.upstream).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    /// The most recently used connection that is done with its last answer.
    fn ready(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().ok()?;
        idle.retain(|sender| !sender.is_closed());
        let at = idle.iter().rposition(SendRequest::is_ready)?;
        Some(idle.remove(at))
    }

    fn give(&self, sender: Sender) {
        if let Ok(mut idle) = self.idle.lock()
            && idle.len() < POOL_MAX
        {
            idle.push(sender);
        }
    }
}
