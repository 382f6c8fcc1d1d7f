//! An HTTP/1.1 client that sends exactly the bytes it is given.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::sse::{self, Event};
use crate::wait::PATIENCE;

/// One connection.
pub struct Conn {
    stream: TcpStream,
    buf: Vec<u8>,
}

/// The head of a response, and how its body is framed.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The bytes as they came.
    pub raw: Vec<u8>,
}

impl Head {
    /// The first header of this (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    fn content_length(&self) -> Option<usize> {
        self.header("content-length").and_then(|v| v.parse().ok())
    }

    fn chunked(&self) -> bool {
        self.header("transfer-encoding")
            .is_some_and(|v| v.eq_ignore_ascii_case("chunked"))
    }

    fn bodiless(&self) -> bool {
        matches!(self.status, 100..=199 | 204 | 304)
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub struct Response {
    /// Its head.
    pub head: Head,
    /// The body, framing taken off.
    pub body: Vec<u8>,
}

impl Response {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Conn {
    /// Connects; panics when nobody listens.
    pub fn open(addr: SocketAddr) -> Self {
        Self::try_open(addr).unwrap_or_else(|e| panic!("connect {addr}: {e}"))
    }

    /// Connects.
    pub fn try_open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buf: Vec::new(),
        })
    }

    /// Sends these bytes. A peer that has closed already is no fault here: what it answered is what counts.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let _closed = self.stream.write_all(bytes.as_ref());
        self
    }

    /// Sends one byte per segment.
    pub fn send_slowly(&mut self, bytes: &[u8]) -> &mut Self {
        for byte in bytes {
            self.send([*byte]);
        }
        self
    }

    /// Sends bytes that may fail; true when all were taken.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Says that nothing more will be sent.
    pub fn finish(&mut self) -> &mut Self {
        let _closed = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// Reads a whole response; the error tells why there is none.
    pub fn response(&mut self) -> io::Result<Response> {
        let deadline = Instant::now() + PATIENCE;
        let head = self.head_until(deadline)?;
        let body = self.body(&head, deadline)?;
        Ok(Response { head, body })
    }

    /// Reads a whole response to a HEAD request.
    pub fn head(&mut self) -> io::Result<Head> {
        self.head_until(Instant::now() + PATIENCE)
    }

    /// Everything the peer still sends until it closes, or until `timeout`.
    pub fn rest(&mut self, timeout: Duration) -> Rest {
        let deadline = Instant::now() + timeout;
        let end = loop {
            match self.fill(deadline) {
                Ok(0) => break End::Closed,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::TimedOut => break End::StillOpen,
                Err(_) => break End::Reset,
            }
        };
        Rest {
            bytes: std::mem::take(&mut self.buf),
            end,
        }
    }

    /// The next event of a chunked or close-delimited event stream whose head was read.
    pub fn event(&mut self, stream: &mut EventStream, timeout: Duration) -> io::Result<Event> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(event) = sse::take(&mut stream.decoded) {
                return Ok(event);
            }
            if stream.over {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            match stream.chunked {
                false => {
                    if self.buf.is_empty() && self.fill(deadline)? == 0 {
                        stream.over = true;
                    }
                    stream.decoded.append(&mut self.buf);
                }
                true => match self.chunk(deadline)? {
                    data if data.is_empty() => stream.over = true,
                    data => stream.decoded.extend_from_slice(&data),
                },
            }
        }
    }

    fn head_until(&mut self, deadline: Instant) -> io::Result<Head> {
        loop {
            if let Some(end) = find(&self.buf, b"\r\n\r\n") {
                let raw: Vec<u8> = self.buf.drain(..end + 4).collect();
                return parse_head(raw);
            }
            if self.fill(deadline)? == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    format!(
                        "closed before a head; had {:?}",
                        String::from_utf8_lossy(&self.buf)
                    ),
                ));
            }
        }
    }

    fn body(&mut self, head: &Head, deadline: Instant) -> io::Result<Vec<u8>> {
        if head.bodiless() {
            return Ok(Vec::new());
        }
        if head.chunked() {
            let mut body = Vec::new();
            loop {
                let data = self.chunk(deadline)?;
                if data.is_empty() {
                    return Ok(body);
                }
                body.extend_from_slice(&data);
            }
        }
        if let Some(len) = head.content_length() {
            while self.buf.len() < len {
                if self.fill(deadline)? == 0 {
                    return Err(io::Error::new(
                        ErrorKind::UnexpectedEof,
                        "closed within the body",
                    ));
                }
            }
            return Ok(self.buf.drain(..len).collect());
        }
        while self.fill(deadline)? != 0 {}
        Ok(std::mem::take(&mut self.buf))
    }

    /// The next chunk, empty for the last one (its trailer is read too).
    fn chunk(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let line = self.line(deadline)?;
        let size = usize::from_str_radix(line.split(';').next().unwrap_or("").trim(), 16)
            .map_err(|_| io::Error::new(ErrorKind::InvalidData, format!("chunk size {line:?}")))?;
        if size == 0 {
            while !self.line(deadline)?.is_empty() {}
            return Ok(Vec::new());
        }
        while self.buf.len() < size + 2 {
            if self.fill(deadline)? == 0 {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "closed within a chunk",
                ));
            }
        }
        let data = self.buf.drain(..size).collect();
        self.buf.drain(..2);
        Ok(data)
    }

    fn line(&mut self, deadline: Instant) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.buf, b"\r\n") {
                let line = String::from_utf8_lossy(&self.buf[..end]).into_owned();
                self.buf.drain(..end + 2);
                return Ok(line);
            }
            if self.fill(deadline)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self, deadline: Instant) -> io::Result<usize> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece) {
            Ok(n) => {
                self.buf.extend_from_slice(&piece[..n]);
                Ok(n)
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"))
            }
            Err(e) => Err(e),
        }
    }
}

/// What came after the part that was asked for, and how the connection stands.
#[derive(Debug)]
pub struct Rest {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How it ended.
    pub end: End,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer closed it in order.
    Closed,
    /// The peer reset it.
    Reset,
    /// It did not end within the time given.
    StillOpen,
}

/// Where in an event stream a reader is.
pub struct EventStream {
    chunked: bool,
    decoded: Vec<u8>,
    over: bool,
}

impl EventStream {
    /// The stream that this head begins.
    pub fn new(head: &Head) -> Self {
        Self {
            chunked: head.chunked(),
            decoded: Vec::new(),
            over: false,
        }
    }
}

/// `needle`'s first place in `hay`.
pub fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|w| w == needle)
}

fn parse_head(raw: Vec<u8>) -> io::Result<Head> {
    let text = String::from_utf8_lossy(&raw).into_owned();
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| first.strip_prefix("HTTP/1.0 "))
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, format!("status line {first:?}")))?;
    let headers = lines
        .filter(|l| !l.is_empty())
        .filter_map(|l| l.split_once(':'))
        .map(|(n, v)| (n.to_ascii_lowercase(), v.trim().to_owned()))
        .collect();
    Ok(Head {
        status,
        headers,
        raw,
    })
}
