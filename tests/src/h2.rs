//! HTTP/2 by hand: frames as the test wants them, headers without compression. Only what the attacks need.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Frame types.
pub mod kind {
    /// A piece of a body.
    pub const DATA: u8 = 0;
    /// A head.
    pub const HEADERS: u8 = 1;
    /// The end of one stream.
    pub const RST_STREAM: u8 = 3;
    /// Settings, or their acknowledgement.
    pub const SETTINGS: u8 = 4;
    /// Are you there.
    pub const PING: u8 = 6;
    /// The end of the connection.
    pub const GOAWAY: u8 = 7;
    /// More of a head.
    pub const CONTINUATION: u8 = 9;
}

/// The stream ends here.
pub const END_STREAM: u8 = 1;
/// The head ends here.
pub const END_HEADERS: u8 = 4;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// A connection with prior knowledge, its preface and empty settings sent.
pub struct H2 {
    stream: TcpStream,
    buf: Vec<u8>,
}

/// How a stream ended.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The header block of the answer as it came (compressed).
    pub head: Option<Vec<u8>>,
    /// The body of the answer.
    pub body: Vec<u8>,
    /// The error code of a reset.
    pub reset: Option<u32>,
    /// The answer is whole.
    pub ended: bool,
}

impl H2 {
    /// Connects.
    pub fn open(addr: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(addr).unwrap_or_else(|e| panic!("connect {addr}: {e}"));
        stream.set_nodelay(true).expect("a connected socket");
        let settings = frame(kind::SETTINGS, 0, 0, &[]);
        stream
            .write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &settings].concat())
            .expect("a listener");
        Self {
            stream,
            buf: Vec::new(),
        }
    }

    /// Sends a frame; false when the peer is gone.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        self.stream
            .write_all(&frame(kind, flags, stream, payload))
            .is_ok()
    }

    /// Sends a request with a body.
    pub fn request(&mut self, stream: u32, headers: &[(&str, &str)], body: &[u8]) -> bool {
        let mut ok = self.send(kind::HEADERS, END_HEADERS, stream, &head(headers));
        let mut pieces = body.chunks(16_000).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() {
                END_STREAM
            } else {
                0
            };
            ok = ok && self.send(kind::DATA, flags, stream, piece);
        }
        ok
    }

    /// The next frame; `None` when the peer closed or nothing came in time.
    pub fn frame(&mut self, deadline: Instant) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            let left = deadline
                .checked_duration_since(Instant::now())
                .filter(|d| !d.is_zero())?;
            self.stream.set_read_timeout(Some(left)).ok()?;
            let mut piece = [0; 16_384];
            match self.stream.read(&mut piece) {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.buf.extend_from_slice(&piece[..n]),
            }
        }
    }

    /// Reads until this stream has ended, acknowledging settings and pings; the flag says that the connection ended.
    pub fn outcome(&mut self, stream: u32, timeout: Duration) -> (Outcome, bool) {
        let deadline = Instant::now() + timeout;
        let mut outcome = Outcome::default();
        while let Some(frame) = self.frame(deadline) {
            match frame.kind {
                kind::SETTINGS if frame.flags & 1 == 0 => {
                    self.send(kind::SETTINGS, 1, 0, &[]);
                }
                kind::PING if frame.flags & 1 == 0 => {
                    self.send(kind::PING, 1, 0, &frame.payload);
                }
                kind::GOAWAY => return (outcome, true),
                kind::HEADERS if frame.stream == stream => outcome.head = Some(frame.payload),
                kind::DATA if frame.stream == stream => outcome.body.extend(frame.payload),
                kind::RST_STREAM if frame.stream == stream => {
                    outcome.reset = frame.payload.try_into().ok().map(u32::from_be_bytes);
                    return (outcome, false);
                }
                _ => continue,
            }
            let of_ours =
                frame.stream == stream && matches!(frame.kind, kind::HEADERS | kind::DATA);
            if of_ours && frame.flags & END_STREAM != 0 {
                outcome.ended = true;
                return (outcome, false);
            }
        }
        let open = Instant::now() >= deadline;
        (outcome, !open)
    }

    /// How many frames of each kind come until the peer closes or the time is over; the flag says that it closed.
    pub fn drain(&mut self, timeout: Duration) -> (BTreeMap<u8, usize>, bool) {
        let deadline = Instant::now() + timeout;
        let mut kinds = BTreeMap::new();
        while let Some(frame) = self.frame(deadline) {
            *kinds.entry(frame.kind).or_default() += 1;
        }
        (kinds, Instant::now() < deadline)
    }

    fn take(&mut self) -> Option<Frame> {
        let head: [u8; 9] = self.buf.get(..9)?.try_into().ok()?;
        let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let payload = self.buf.get(9..9 + len)?.to_vec();
        self.buf.drain(..9 + len);
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream,
            payload,
        })
    }
}

/// A header block: each header literally, without indexing and without Huffman coding.
pub fn head(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        text(&mut block, name.as_bytes());
        text(&mut block, value.as_bytes());
    }
    block
}

/// A text of a header block.
pub fn text(block: &mut Vec<u8>, bytes: &[u8]) {
    let mut len = bytes.len();
    if len < 127 {
        block.push(u8::try_from(len).expect("below 127"));
    } else {
        block.push(127);
        len -= 127;
        while len >= 128 {
            block.push(u8::try_from(len % 128).expect("below 128") | 128);
            len /= 128;
        }
        block.push(u8::try_from(len).expect("below 128"));
    }
    block.extend_from_slice(bytes);
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len())
        .expect("a short frame")
        .to_be_bytes();
    let mut bytes = vec![len[1], len[2], len[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}
