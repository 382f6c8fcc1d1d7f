//! What the guest says first on a connection that need not be TLS: a hello is checked there as well, whenever it comes.

use std::io;
use std::ops::RangeInclusive;
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
const READ_BYTES: usize = 2048;
/// How TLS begins, as servers take it and not as the standards have it: a record's kind, version and length, and what is in it.
/// A version of 3 and something is TLS, however it goes on. Some servers go by the rest alone if only the version is below 16; so
/// it is TLS where a hello's kind and length follow, be they in one record or in many. And some pass over a warning, before a
/// hello or between its records. Other protocols begin with the same byte, or two: the length of a login to MySQL, or of a
/// message to MongoDB.
const BEGINNINGS: [&[RangeInclusive<u8>]; 5] = [
    &[HANDSHAKE, 3..=3],
    &[HANDSHAKE, OLD, ANY, ANY, ANY, 1..=1, RECORD],
    &[HANDSHAKE, OLD, ANY, ANY, ANY, 1..=1, 0..=0, 1..=255],
    // The shortest hello has 41 bytes, or it is the next record's kind that follows.
    &[
        HANDSHAKE,
        OLD,
        ANY,
        ANY,
        ANY,
        1..=1,
        0..=0,
        0..=0,
        0x15..=255,
    ],
    &[0x15..=0x15, OLD, ANY, 0..=0, 2..=2, 1..=1, ANY, RECORD],
];
const HANDSHAKE: RangeInclusive<u8> = 0x16..=0x16;
/// What may come before a hello is whole: a warning, or more of it.
const RECORD: RangeInclusive<u8> = 0x15..=0x16;
const OLD: RangeInclusive<u8> = 0..=15;
const ANY: RangeInclusive<u8> = 0..=255;

/// Whether these bytes begin TLS. None: more have to be seen.
fn is_tls(bytes: &[u8]) -> Option<bool> {
    let fits = |beginning: &&&[RangeInclusive<u8>]| {
        let mut both = bytes.iter().zip(**beginning);
        both.all(|(byte, range)| range.contains(byte))
    };
    let seen = BEGINNINGS
        .iter()
        .filter(fits)
        .map(|b| b.len() <= bytes.len());
    seen.reduce(|one, other| one || other)
        .map_or(Some(false), |whole| whole.then_some(true))
}

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
/// Silent -- other bytes, or the end --> Through
///    `--- what may be TLS --> Hello -- for this name, or no TLS --> Giving -- all given --> Through
///                               `---- anything else --> an error, and nothing was given
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
        let tls = is_tls(&bytes);
        // The end, and no server has seen a hello in so few.
        if tls == Some(false) || (tls.is_none() && came.is_empty()) {
            self.state = State::Giving { bytes, given: 0 };
            return Ok(());
        }
        let more =
            !came.is_empty() && reads < HELLO_READS_MAX && bytes.len() < HELLO_WIRE_BYTES_MAX;
        let found = hello::server_name(&bytes);
        self.state = if more && (tls.is_none() || found == Err(HelloError::Incomplete)) {
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
                    if came.is_empty() || is_tls(&came) == Some(false) {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::hello::tests::{hello_for, records};

    /// A guest that says this, and then nothing more.
    struct Guest(VecDeque<Vec<u8>>);

    impl AsyncRead for Guest {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let mut said = self.0.pop_front().unwrap_or_default();
            let rest = said.split_off(said.len().min(buf.remaining()));
            buf.put_slice(&said);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
            Poll::Ready(Ok(()))
        }
    }

    /// What arrives, or why nothing does; however it is cut.
    async fn arrives(said: &[u8]) -> Result<Vec<u8>, Refusal> {
        let name = HostName::parse("db.example.com").expect("a name");
        let cuts = (0..=said.len()).map(|at| [&said[..at], &said[at..]]);
        let mut pieces: Vec<Vec<&[u8]>> = cuts.map(|cut| cut.to_vec()).collect();
        // In as many as a hello may take.
        pieces.push(said.chunks(said.len() / 200 + 1).collect());
        let mut outcome = None;
        for pieces in pieces {
            let pieces = pieces.iter().filter(|piece| !piece.is_empty());
            let guest = Guest(pieces.map(|piece| piece.to_vec()).collect());
            let mut first = First::new(guest, &name, false);
            let mut all = Vec::new();
            let read = first.read_to_end(&mut all).await;
            let one = match first.refused {
                Some(refusal) => Err(refusal),
                None => Ok(all),
            };
            assert_eq!(read.is_ok(), one.is_ok());
            let outcome = outcome.get_or_insert_with(|| one.clone());
            assert_eq!(*outcome, one, "{said:02x?}");
        }
        outcome.expect("at least one cut")
    }

    #[tokio::test]
    async fn a_hello_is_for_this_name_or_refused() {
        let (own, hello) = (
            hello_for(b"db.example.com"),
            hello_for(b"other.example.com"),
        );
        for each in [1, 2, 3, 4, 5, 1 << 14] {
            let mut own = records(&own, each);
            own.extend(b"more");
            assert_eq!(arrives(&own).await, Ok(own));
            let mut other = records(&hello, each);
            other.extend(b"more");
            assert_eq!(arrives(&other).await, Err(Refusal::ServerNameDiffers));
            // Versions that only some servers take.
            for version in [0, 1, 2, 4, 15] {
                let mut other = other.clone();
                other[1] = version;
                assert_eq!(
                    arrives(&other).await,
                    Err(Refusal::NoServerName),
                    "{version} {each}"
                );
            }
            // A warning between its records.
            for version in [0, 1, 2, 3, 4, 15] {
                let (mut other, first) = (records(&hello, each), 5 + each.min(hello.len()));
                other[1] = version;
                let warning = [0x15, version, 0, 0, 2, 1, 90];
                let other = [&other[..first], &warning, &other[first..]].concat();
                let refused = arrives(&other).await.expect_err("no hello for this name");
                assert!(
                    refused == Refusal::NoServerName || each > hello.len(),
                    "{version} {each}: {refused:?}"
                );
            }
            // A warning before it, or two.
            for version in [1, 3] {
                for warnings in 1..3 {
                    let warning = [0x15, version, 1, 0, 2, 1, 90].repeat(warnings);
                    let other = [&warning, &other[..]].concat();
                    assert_eq!(arrives(&other).await, Err(Refusal::NoServerName));
                }
            }
        }
        assert_eq!(arrives(&[0x16, 3]).await, Err(Refusal::NoServerName));
        assert_eq!(
            arrives(b"\x16\x03 and what is no hello").await,
            Err(Refusal::NoServerName)
        );
    }

    #[tokio::test]
    async fn what_only_begins_with_the_same_byte_arrives_whole() {
        // The answer of a client of MySQL to the server's greeting, of 278 bytes.
        let mut mysql = vec![0x16, 1, 0, 1, 0x85, 0xa2, 0xff, 0x19, 0, 0, 0, 1, 0xff];
        mysql.resize(4 + 0x116, b'm');
        // First messages of clients of MongoDB: length, number, no answer to any, OP_MSG.
        let mongo = |length: u16, number: u32| {
            let [low, high] = length.to_le_bytes();
            let number = number.to_le_bytes();
            let mut message = [&[low, high, 0, 0], &number[..], &[0; 4], &[0xdd, 7, 0, 0]].concat();
            message.resize(usize::from(length), b'm');
            message
        };
        let mut all = vec![
            mysql,
            vec![0x16],
            vec![0x16, 1],
            vec![0x15],
            vec![0x16, 16],
            vec![],
            b"GET / HTTP/1.1\r\n".to_vec(),
        ];
        for length in [0x115, 0x116, 0x215, 0x216] {
            all.extend([0, 1, 2, 256, 257, 258, 300].map(|number| mongo(length, number)));
        }
        for said in all {
            assert_eq!(arrives(&said).await, Ok(said));
        }
    }
}
