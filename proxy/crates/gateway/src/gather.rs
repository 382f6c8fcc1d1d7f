//! A stream whose small writes gather until they are flushed, so that a head and its body are one
//! write, one segment and one wake-up of the other side. Never holds anything back by itself: what
//! was written goes out at the next flush at the latest, and what is large goes through, in one write
//! with what gathered before it. A flush may let the others who are ready go first (see `turns`). Where a
//! request head is waited for, what is read is counted, and no more is read than a head may have (see `head_watch`).

use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{SslDigest, TlsRef};
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, IO, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::head_watch::HeadWatch;
use crate::turns::Turns;

/// Bytes that may gather: a head and a small message.
const HELD_MAX: usize = 16 << 10;
/// Slices that one write takes; of more than these the rest waits for the next.
const SLICES_MAX: usize = 8;

/// A stream whose small writes gather.
#[derive(Debug)]
pub struct Gather {
    inner: Stream,
    held: Vec<u8>,
    /// How much of `held` was written.
    written: usize,
    more_follows: bool,
    turns: Arc<Turns>,
    /// The flush under way has let the others go first.
    gave_way: bool,
    /// Who waits for heads here.
    watch: Option<Arc<HeadWatch>>,
}

impl Gather {
    /// Around a stream that writes at once.
    pub fn new(inner: Stream, turns: Arc<Turns>) -> Self {
        Self {
            inner,
            held: Vec::new(),
            written: 0,
            more_follows: false,
            turns,
            gave_way: false,
            watch: None,
        }
    }

    /// The same, watched while heads are read from it.
    pub fn watched(inner: Stream, turns: Arc<Turns>, watch: Arc<HeadWatch>) -> Self {
        Self {
            watch: Some(watch),
            ..Self::new(inner, turns)
        }
    }

    /// The next flush is no end: more is written right after it, and flushed. For a request's head,
    /// which pingora flushes although a body follows.
    pub fn more_follows(&mut self) {
        self.more_follows = true;
    }

    /// Whether the other side is silent and there: what an idle connection must be to be used.
    pub fn is_idle(&mut self) -> bool {
        let mut byte = [0u8; 1];
        let mut buf = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(std::task::Waker::noop());
        // Bytes without a question, an end or an error: none of them is silence.
        self.held.is_empty()
            && Pin::new(&mut self.inner)
                .poll_read(&mut context, &mut buf)
                .is_pending()
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.held.len() {
            let rest = &self.held[self.written..];
            let written = ready!(Pin::new(&mut self.inner).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        self.held.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    /// Writes what is held and, in the same write, as much of `more` as the other side takes; gives how much of `more`.
    fn poll_drain_with(
        &mut self,
        context: &mut Context<'_>,
        more: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        while self.written < self.held.len() {
            let rest = &self.held[self.written..];
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            slices[0] = IoSlice::new(rest);
            let count = 1 + more.len().min(SLICES_MAX - 1);
            slices[1..count].copy_from_slice(&more[..count - 1]);
            let rest = rest.len();
            let inner = Pin::new(&mut self.inner);
            let written = ready!(inner.poll_write_vectored(context, &slices[..count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written.min(rest);
            if written > rest {
                self.held.clear();
                self.written = 0;
                return Poll::Ready(Ok(written - rest));
            }
        }
        self.held.clear();
        self.written = 0;
        Pin::new(&mut self.inner).poll_write_vectored(context, more)
    }

    /// Pending once for each flush when turns are shared: the task comes back at the end of the turn.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let has_gone = self.written > 0 || self.held.is_empty();
        if self.gave_way || has_gone || !self.turns.are_shared() {
            return Poll::Ready(());
        }
        self.gave_way = true;
        // The first poll arranges to be woken, and is all there is to it.
        pin!(tokio::task::yield_now()).poll(context)
    }

    fn fits(&self, bytes: usize) -> bool {
        // Once it is being written nothing is added: `written` counts from its start.
        self.written == 0 && self.held.len() + bytes <= HELD_MAX
    }
}

impl AsyncWrite for Gather {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.fits(bytes.len()) {
            this.held.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        if this.held.is_empty() {
            return Pin::new(&mut this.inner).poll_write(context, bytes);
        }
        this.poll_drain_with(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let bytes = slices.iter().map(|s| s.len()).sum();
        if this.fits(bytes) {
            for slice in slices {
                this.held.extend_from_slice(slice);
            }
            return Poll::Ready(Ok(bytes));
        }
        this.poll_drain_with(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if std::mem::take(&mut this.more_follows) {
            return Poll::Ready(Ok(()));
        }
        ready!(this.poll_turn(context));
        ready!(this.poll_drain(context))?;
        this.gave_way = false;
        Pin::new(&mut this.inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(context))?;
        Pin::new(&mut this.inner).poll_shutdown(context)
    }
}

impl AsyncRead for Gather {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let Some(watch) = &this.watch else {
            return Pin::new(&mut this.inner).poll_read(context, buf);
        };
        if watch.is_full() {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buf))?;
        watch.count(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Shutdown for Gather {
    async fn shutdown(&mut self) {
        // Who shuts down has flushed what was to be sent.
        self.inner.shutdown().await;
    }
}

#[async_trait]
impl Peek for Gather {
    async fn try_peek(&mut self, buf: &mut [u8]) -> io::Result<bool> {
        self.inner.try_peek(buf).await
    }
}

impl UniqueID for Gather {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for Gather {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.inner.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

impl GetTimingDigest for Gather {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }
}

impl GetProxyDigest for Gather {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }
}

impl GetSocketDigest for Gather {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.inner.set_socket_digest(digest);
    }
}

/// The stream inside a session that was made of a [`Gather`].
pub fn regain(stream: Stream) -> Option<Box<Gather>> {
    let any: Box<dyn IO> = stream;
    any.into_any().downcast().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pingora_core::protocols::l4::stream::Stream as L4Stream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    async fn pair() -> (Gather, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (far, _) = listener.accept().await.unwrap();
        let near: L4Stream = near.into();
        (Gather::new(Box::new(near), Arc::default()), far)
    }

    #[tokio::test]
    async fn small_writes_go_out_at_the_flush_that_ends_them() {
        let (mut near, mut far) = pair().await;
        near.write_all(b"head ").await.unwrap();
        near.more_follows();
        near.flush().await.unwrap();
        assert_eq!(near.held.len(), 5, "the head waits for its body");
        near.write_all(b"body").await.unwrap();
        near.flush().await.unwrap();
        let mut seen = [0; 9];
        far.read_exact(&mut seen).await.unwrap();
        assert_eq!(&seen, b"head body");
        near.write_all(b"next").await.unwrap();
        near.flush().await.unwrap();
        far.read_exact(&mut seen[..4]).await.unwrap();
        assert_eq!(&seen[..4], b"next", "only one flush is no end");
    }

    #[tokio::test]
    async fn a_flush_in_a_shared_turn_lets_those_who_are_ready_go_first() {
        let (mut near, mut far) = pair().await;
        near.turns.shared_by(1);
        let under_way: Vec<_> = (0..4).map(|_| near.turns.begin()).collect();
        assert!(near.turns.are_shared());
        near.write_all(b"late").await.unwrap();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let flush = |near: &mut Gather, context: &mut Context<'_>| {
            Pin::new(near).poll_flush(context).is_ready()
        };
        assert!(!flush(&mut near, &mut context));
        assert_eq!(near.held.len(), 4, "nothing is written yet");
        assert!(flush(&mut near, &mut context), "it gives way only once");
        let mut seen = [0; 4];
        far.read_exact(&mut seen).await.unwrap();
        assert_eq!(&seen, b"late");
        near.write_all(b"more").await.unwrap();
        near.flush().await.unwrap();
        drop(under_way);
        near.write_all(b"soon").await.unwrap();
        assert!(flush(&mut near, &mut context), "nobody to give way to");
    }

    #[tokio::test]
    async fn nothing_is_lost_or_reordered_whatever_the_sizes() {
        let (mut near, mut far) = pair().await;
        let sizes = [1, HELD_MAX - 1, 1, 2, HELD_MAX, HELD_MAX + 1, 3 << 20, 5];
        let total: usize = sizes.iter().sum();
        let bytes: Vec<u8> = (0..total).map(|i| (i * 31 % 251) as u8).collect();
        let expected = bytes.clone();
        let reader = tokio::spawn(async move {
            let mut seen = vec![0; expected.len()];
            far.read_exact(&mut seen).await.unwrap();
            assert!(seen == expected);
            far
        });
        let mut rest = &bytes[..];
        for size in sizes {
            near.write_all(&rest[..size]).await.unwrap();
            assert!(near.held.len() <= HELD_MAX);
            rest = &rest[size..];
        }
        AsyncWriteExt::shutdown(&mut near).await.unwrap();
        reader.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_large_goes_out_with_what_gathered_before_it() {
        let (mut near, mut far) = pair().await;
        near.write_all(b"head ").await.unwrap();
        let body = vec![b'b'; HELD_MAX];
        let written = near.write(&body).await.unwrap();
        assert!(written > 0 && near.held.is_empty(), "both in one write");
        near.write_all(b"head ").await.unwrap();
        let slices = [IoSlice::new(&body), IoSlice::new(b"tail")];
        let more = near.write_vectored(&slices).await.unwrap();
        assert!(more > 0 && near.held.is_empty());
        let mut seen = vec![0; written + more + 10];
        far.read_exact(&mut seen).await.unwrap();
        let expected = [
            b"head ",
            &body[..written],
            b"head ",
            &[&body[..], b"tail"].concat()[..more],
        ];
        assert!(seen == expected.concat());
    }

    #[tokio::test]
    async fn no_more_is_read_than_a_head_may_have_until_it_is_there() {
        let (near, mut far) = pair().await;
        let watch = Arc::new(HeadWatch::default());
        let mut near = Gather::watched(near.inner, Arc::default(), Arc::clone(&watch));
        far.write_all(&[b'x'; 64]).await.unwrap();
        watch.begin(16, 0);
        let mut seen = [0; 10];
        near.read_exact(&mut seen).await.unwrap();
        near.read_exact(&mut seen).await.unwrap();
        let full = near.read(&mut seen).await.unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::InvalidData);
        watch.end();
        near.read_exact(&mut [0; 44]).await.unwrap();
    }

    #[tokio::test]
    async fn an_idle_connection_is_silent_and_open() {
        let (mut near, mut far) = pair().await;
        assert!(near.is_idle());
        far.write_all(b"unasked").await.unwrap();
        while near.is_idle() {
            tokio::task::yield_now().await;
        }
        let (mut near, far) = pair().await;
        drop(far);
        while near.is_idle() {
            tokio::task::yield_now().await;
        }
    }
}
