//! Bytes between a guest and a name, counted while they flow.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::serve::Traffic;

/// Bytes held for one direction of one connection.
const BUFFER_BYTES: usize = 16 * 1024;

/// What one connection moved so far.
#[derive(Default)]
pub struct Flow {
    pub up: AtomicU64,
    pub down: AtomicU64,
}

/// Moves bytes until both ends are done, one fails, or nothing moved for `idle_max`.
pub async fn relay(
    guest: &mut (impl AsyncRead + AsyncWrite + Unpin),
    remote: &mut TcpStream,
    flow: &Flow,
    traffic: &Traffic,
    idle_max: Duration,
) -> io::Result<()> {
    let up = |bytes| {
        flow.up.fetch_add(bytes, Ordering::Relaxed);
        traffic.add_up(bytes);
    };
    let down = |bytes| {
        flow.down.fetch_add(bytes, Ordering::Relaxed);
        traffic.add_down(bytes);
    };
    let mut guest = Counted {
        inner: guest,
        count: &up,
    };
    let mut remote = Counted {
        inner: remote,
        count: &down,
    };
    let copy = tokio::io::copy_bidirectional_with_sizes(
        &mut guest,
        &mut remote,
        BUFFER_BYTES,
        BUFFER_BYTES,
    );
    tokio::select! {
        done = copy => done.map(|_| ()),
        () = idle(flow, idle_max) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Returns once nothing was counted for between one and two times half of `idle_max`.
async fn idle(flow: &Flow, idle_max: Duration) {
    let sum = || {
        flow.up
            .load(Ordering::Relaxed)
            .wrapping_add(flow.down.load(Ordering::Relaxed))
    };
    let mut seen = sum();
    let mut quiet = 0;
    while quiet < 2 {
        tokio::time::sleep(idle_max / 2).await;
        let now = sum();
        quiet = if now == seen { quiet + 1 } else { 0 };
        seen = now;
    }
}

/// Counts what is read from a stream.
struct Counted<'a, S> {
    inner: &'a mut S,
    count: &'a (dyn Fn(u64) + Sync),
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut *self.inner).poll_read(cx, buf))?;
        let read = (buf.filled().len() - before) as u64;
        if read > 0 {
            (self.count)(read);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inner).poll_shutdown(cx)
    }
}
