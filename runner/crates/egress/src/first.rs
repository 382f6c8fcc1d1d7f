//! What the guest says first on a connection that need not be TLS: a hello is checked there as well, whenever it comes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::event::Refusal;
use crate::hello::{self, HelloError};
use crate::host::HostName;

/// A hello as it comes: handshake, and the heads of its records.
pub const HELLO_WIRE_BYTES_MAX: usize = hello::HELLO_BYTES_MAX + 4096;
/// Reads that a hello may take; real ones take one or two. Each is parsed from its start.
pub const HELLO_READS_MAX: usize = 256;
/// The kind of a TLS record that holds a hello.
const HANDSHAKE: u8 = 0x16;
const READ_BYTES: usize = 2048;

/// Whether a hello may go to `name`.
///
/// # Errors
/// Why not.
pub fn judge(found: Result<HostName, HelloError>, name: &HostName) -> Result<(), Refusal> {
    match found {
        Ok(found) if found == *name => Ok(()),
        Ok(_) => Err(Refusal::ServerNameDiffers),
        Err(HelloError::Encrypted) => Err(Refusal::EncryptedHello),
        Err(_) => Err(Refusal::NoServerName),
    }
}

/// The guest's side of a relay. Its first bytes are given on once they are known to be no TLS, or a hello for `name`.
///
/// ```text
/// Silent --other bytes, or the end--> Through
///    `--- a hello's first byte --> Hello -- for this name --> Giving -- all given --> Through
///                                    `---- anything else --> an error, and nothing was given
/// ```
pub struct First<'a, S> {
    inner: S,
    name: &'a HostName,
    state: State,
    /// Why the connection has to end.
    pub refused: Option<Refusal>,
}

enum State {
    Silent,
    Hello { bytes: Vec<u8>, reads: usize },
    Giving { bytes: Vec<u8>, given: usize },
    Through,
}

impl<'a, S> First<'a, S> {
    /// A guest that has said nothing yet; or has, and was checked.
    pub fn new(inner: S, name: &'a HostName, checked: bool) -> Self {
        let state = if checked {
            State::Through
        } else {
            State::Silent
        };
        Self {
            inner,
            name,
            state,
            refused: None,
        }
    }

    /// Takes what came of a hello.
    fn hear(&mut self, mut bytes: Vec<u8>, reads: usize, came: &[u8]) -> io::Result<()> {
        bytes.extend_from_slice(came);
        let more =
            !came.is_empty() && reads < HELLO_READS_MAX && bytes.len() < HELLO_WIRE_BYTES_MAX;
        let found = hello::server_name(&bytes);
        self.state = if more && found == Err(HelloError::Incomplete) {
            State::Hello { bytes, reads }
        } else {
            judge(found, self.name).map_err(|refusal| {
                self.refused = Some(refusal);
                io::Error::other(refusal)
            })?;
            State::Giving { bytes, given: 0 }
        };
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for First<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(refusal) = this.refused {
            return Poll::Ready(Err(io::Error::other(refusal)));
        }
        loop {
            match &mut this.state {
                State::Through => return Pin::new(&mut this.inner).poll_read(cx, buf),
                State::Giving { bytes, given } => {
                    let rest = &bytes[*given..];
                    let count = rest.len().min(buf.remaining());
                    buf.put_slice(&rest[..count]);
                    *given += count;
                    if *given == bytes.len() {
                        this.state = State::Through;
                    }
                    return Poll::Ready(Ok(()));
                }
                State::Silent => {
                    let before = buf.filled().len();
                    ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
                    let came = buf.filled()[before..].to_vec();
                    if came.first() != Some(&HANDSHAKE) {
                        this.state = State::Through;
                        return Poll::Ready(Ok(()));
                    }
                    buf.set_filled(before);
                    this.hear(Vec::new(), 1, &came)?;
                }
                State::Hello { bytes, reads } => {
                    let mut room = [0; READ_BYTES];
                    let mut room = ReadBuf::new(&mut room);
                    ready!(Pin::new(&mut this.inner).poll_read(cx, &mut room))?;
                    let (bytes, reads) = (std::mem::take(bytes), *reads + 1);
                    this.hear(bytes, reads, room.filled())?;
                }
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for First<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
