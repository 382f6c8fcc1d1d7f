//! The connections of the admin API: so many at once, and none that says nothing, or takes nothing, for long. All of it
//! holds before a token is looked at.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep};

use crate::error::ControlError;

/// Connections served at once; those above it wait to be accepted.
const CONNECTIONS_MAX: usize = 256;
/// Largest request head, and what is read ahead of a slow handler.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Time for a whole request head, and for a kept-alive connection to begin one.
const HEADER_WAIT: Duration = Duration::from_secs(30);
/// Longest silence within a request's body.
const BODY_WAIT: Duration = Duration::from_secs(60);
/// A client that takes no byte for so long is cut.
const WRITE_WAIT: Duration = Duration::from_secs(60);
/// After an accept that failed for lack of descriptors: time for connections to close.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves a router until `stop` comes, then waits for requests under way.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (stopping, _) = watch::channel(false);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        match accepted {
            Ok((stream, slot)) => {
                tokio::spawn(one(stream, router.clone(), slot, stopping.subscribe()));
            }
            Err(error) => {
                tracing::warn!(%error, "an admin connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    stopping.send_replace(true);
    // Every slot is back when the last connection has ended.
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = slots.acquire_many(all).await;
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    Ok((listener.accept().await?.0, slot))
}

async fn one(
    stream: TcpStream,
    router: Router,
    slot: OwnedSemaphorePermit,
    mut stopping: watch::Receiver<bool>,
) {
    let _slot = slot;
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_WAIT)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(Impatient::new(stream, WRITE_WAIT)), service);
    tokio::pin!(connection);
    tokio::select! {
        // What a client breaks is its own loss.
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Changes under way, also those that nobody waits for any more.
const CHANGES_MAX: u32 = 256;

/// Places for changes.
pub(super) fn changes() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(CHANGES_MAX as usize))
}

/// Waits until no change is under way. None begins after it.
pub(super) async fn all_done(changes: &Semaphore) {
    let _ = changes.acquire_many(CHANGES_MAX).await;
}

/// Carries a change through although whoever asked for it goes away: half of it would be in the runner, or in the gateway,
/// and not in the store.
pub(super) async fn whole(
    State(changes): State<Arc<Semaphore>>,
    request: Request,
    next: Next,
) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let Ok(place) = changes.try_acquire_owned() else {
        let text = format!("{CHANGES_MAX} changes are under way already; try again");
        return ControlError::Conflict(text).into_response();
    };
    let carried = tokio::spawn(async move {
        let response = next.run(request).await;
        drop(place);
        response
    });
    match carried.await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The program ends.
            Err(_) => {
                ControlError::Conflict("it was not carried through".to_owned()).into_response()
            }
        },
    }
}

/// A request whose body fails once its client is silent for too long.
pub(super) async fn timed_body(request: Request, next: Next) -> Response {
    next.run(request.map(|body| within(body, BODY_WAIT))).await
}

fn within(body: Body, wait: Duration) -> Body {
    let next = move |parts: Option<BodyDataStream>| async move {
        let mut parts = parts?;
        match tokio::time::timeout(wait, parts.next()).await {
            Ok(Some(part)) => Some((part.map_err(io::Error::other), Some(parts))),
            Ok(None) => None,
            Err(_) => {
                let silent: io::Result<Bytes> = Err(io::ErrorKind::TimedOut.into());
                Some((silent, None))
            }
        }
    };
    Body::from_stream(stream::unfold(Some(body.into_data_stream()), next))
}

/// A stream whose writes fail once the other side takes nothing for too long.
struct Impatient<S> {
    inner: S,
    wait: Duration,
    /// Since when a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    fn new(inner: S, wait: Duration) -> Self {
        Self {
            inner,
            wait,
            waiting: None,
        }
    }

    /// What a write said, or that it waited too long.
    fn judge<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let until = Instant::now() + self.wait;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.judge(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.judge(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        self.judge(shut, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_write_that_nobody_takes_fails_and_one_that_is_taken_does_not() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut near = Impatient::new(near, SHORT);
        near.write_all(&[0; 16]).await.expect("it fits");
        let error = near.write_all(&[0; 1]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        far.read_exact(&mut [0; 16]).await.expect("there they are");
        near.write_all(&[0; 16]).await.expect("it fits again");
    }

    #[tokio::test]
    async fn a_body_that_stops_is_an_error_and_not_an_end() {
        let parts = || stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"begun"))]);
        let whole = Body::from_stream(parts());
        let whole = axum::body::to_bytes(within(whole, SHORT), 64).await;
        assert_eq!(whole.expect("it ends"), "begun");
        let silent = Body::from_stream(parts().chain(stream::pending()));
        assert!(
            axum::body::to_bytes(within(silent, SHORT), 64)
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn connections_above_the_bound_wait_until_one_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("it is bound");
        let router = Router::new().route("/", axum::routing::get(|| async { "here" }));
        let server = tokio::spawn(serve(listener, router, std::future::pending()));
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(addr).await.expect("it listens"));
        }
        let mut late = TcpStream::connect(addr).await.expect("the kernel accepts");
        let request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        late.write_all(request).await.expect("it takes it");
        let mut answer = Vec::new();
        let early = tokio::time::timeout(SHORT, late.read_to_end(&mut answer)).await;
        assert!(early.is_err() && answer.is_empty(), "{answer:?}");
        silent.pop();
        late.read_to_end(&mut answer).await.expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
        server.abort();
    }
}
