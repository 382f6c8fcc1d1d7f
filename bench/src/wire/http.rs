//! HTTP/1.1 framing over blocking sockets: heads by `httparse`, bodies by length or by chunks.
//!
//! It never follows redirects, never decompresses and knows no TLS. Heads and bodies have fixed upper bounds.

use std::io::{self, Read};

/// The largest head accepted.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
/// The largest body accepted.
pub const BODY_BYTES_MAX: usize = 80 << 20;
const HEADERS_MAX: usize = 64;
const READ_BYTES: usize = 32 << 10;

/// A head and the bytes it took, or `None` while it is not complete.
type Parsed = io::Result<Option<(usize, Head)>>;

/// Reads messages off a connection, keeping what belongs to the next one.
pub struct Reader<S> {
    source: S,
    /// Bytes read and not used yet: `held[at..]`.
    held: Vec<u8>,
    at: usize,
}

/// The parts of a head that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Status of an answer, 0 for a request.
    pub status: u16,
    /// Method of a request, empty for an answer.
    pub method: String,
    /// Target of a request, empty for an answer.
    pub path: String,
    /// How the body is framed.
    pub framing: Framing,
    /// The sender will close, or wants us to.
    pub close: bool,
    /// The client waits for `100 Continue`.
    pub expects_continue: bool,
    /// The media type without parameters, lower case.
    pub media: String,
    /// The session id of Streamable HTTP, when there is one.
    pub session: Option<String>,
}

/// How long the body is.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub enum Framing {
    /// No body.
    #[default]
    Empty,
    /// `Content-Length`.
    Length(usize),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Until the connection ends (answers only).
    UntilClose,
}

impl<S: Read> Reader<S> {
    /// Wraps a connection.
    pub fn new(source: S) -> Reader<S> {
        Reader {
            source,
            held: Vec::with_capacity(READ_BYTES),
            at: 0,
        }
    }

    /// The connection itself, to write on.
    pub fn source(&mut self) -> &mut S {
        &mut self.source
    }

    /// The next request, or `None` when the peer closed between two of them. The body replaces what `body` held.
    pub fn request(
        &mut self,
        body: &mut Vec<u8>,
        on_continue: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Option<Head>> {
        let Some(head) = self.head(parse_request)? else {
            return Ok(None);
        };
        if head.expects_continue && head.framing != Framing::Empty {
            on_continue()?;
        }
        self.body(head.framing, body)?;
        Ok(Some(head))
    }

    /// The next final answer (1xx are skipped), or `None` when the peer closed instead.
    pub fn answer(&mut self, body: &mut Vec<u8>) -> io::Result<Option<Head>> {
        for _ in 0..8 {
            let Some(head) = self.head(parse_answer)? else {
                return Ok(None);
            };
            if head.status >= 200 {
                self.body(head.framing, body)?;
                return Ok(Some(head));
            }
        }
        Err(invalid("too many interim answers"))
    }

    fn head(&mut self, parse: fn(&[u8]) -> Parsed) -> io::Result<Option<Head>> {
        loop {
            if self.at < self.held.len()
                && let Some((used, head)) = parse(&self.held[self.at..])?
            {
                self.at += used;
                return Ok(Some(head));
            }
            if self.held.len() - self.at > HEAD_BYTES_MAX {
                return Err(invalid("head too large"));
            }
            if self.fill()? == 0 {
                let clean = self.at == self.held.len();
                return if clean {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    fn body(&mut self, framing: Framing, body: &mut Vec<u8>) -> io::Result<()> {
        body.clear();
        match framing {
            Framing::Empty => Ok(()),
            Framing::Length(length) => self.exactly(length, body),
            Framing::Chunked => self.chunks(body),
            Framing::UntilClose => {
                body.extend_from_slice(&self.held[self.at..]);
                self.at = self.held.len();
                let room = (BODY_BYTES_MAX + 1).saturating_sub(body.len()) as u64;
                (&mut self.source).take(room).read_to_end(body)?;
                if body.len() > BODY_BYTES_MAX {
                    Err(invalid("body too large"))
                } else {
                    Ok(())
                }
            }
        }
    }

    /// Appends `length` bytes to `body`: first what is held, then straight from the socket.
    fn exactly(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        if length > BODY_BYTES_MAX || body.len() + length > BODY_BYTES_MAX {
            return Err(invalid("body too large"));
        }
        let held = length.min(self.held.len() - self.at);
        body.extend_from_slice(&self.held[self.at..self.at + held]);
        self.at += held;
        let missing = length - held;
        body.reserve(missing);
        let got = (&mut self.source).take(missing as u64).read_to_end(body)?;
        if got == missing {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let line = self.line()?;
            let digits = line
                .split(|&b| b == b';')
                .next()
                .unwrap_or_default()
                .trim_ascii();
            let size = std::str::from_utf8(digits)
                .ok()
                .and_then(|d| usize::from_str_radix(d, 16).ok());
            let size = size.ok_or_else(|| invalid("chunk size"))?;
            if size == 0 {
                // Trailers, at most as many as headers, up to the empty line.
                for _ in 0..=HEADERS_MAX {
                    if self.line()?.is_empty() {
                        return Ok(());
                    }
                }
                return Err(invalid("too many trailers"));
            }
            self.exactly(size, body)?;
            if !self.line()?.is_empty() {
                return Err(invalid("chunk end"));
            }
        }
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let rest = &self.held[self.at..];
            if let Some(end) = memchr::memchr(b'\n', rest) {
                let line = rest[..end]
                    .strip_suffix(b"\r")
                    .unwrap_or(&rest[..end])
                    .to_vec();
                self.at += end + 1;
                return Ok(line);
            }
            if rest.len() > 4096 {
                return Err(invalid("line too long"));
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.held.drain(..self.at);
        self.at = 0;
        let before = self.held.len();
        self.held.resize(before + READ_BYTES, 0);
        let got = self.source.read(&mut self.held[before..]);
        self.held
            .truncate(before + got.as_ref().copied().unwrap_or(0));
        got
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn parse_request(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes).map_err(|_| invalid("request head"))? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(used) => {
            let mut head = fields(request.headers, Framing::Empty)?;
            head.method = request.method.unwrap_or_default().to_owned();
            head.path = request.path.unwrap_or_default().to_owned();
            Ok(Some((used, head)))
        }
    }
}

fn parse_answer(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut answer = httparse::Response::new(&mut headers);
    match answer.parse(bytes).map_err(|_| invalid("answer head"))? {
        httparse::Status::Partial => Ok(None),
        httparse::Status::Complete(used) => {
            let status = answer.code.unwrap_or_default();
            let bodiless = status < 200 || status == 204 || status == 304;
            let mut head = fields(answer.headers, Framing::UntilClose)?;
            head.status = status;
            if bodiless {
                head.framing = Framing::Empty;
            }
            head.close |= head.framing == Framing::UntilClose;
            Ok(Some((used, head)))
        }
    }
}

fn fields(headers: &[httparse::Header<'_>], unframed: Framing) -> io::Result<Head> {
    let mut head = Head {
        framing: unframed,
        ..Head::default()
    };
    for header in headers {
        let value = std::str::from_utf8(header.value)
            .map_err(|_| invalid("header value"))?
            .trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" if head.framing != Framing::Chunked => {
                let length = value.parse().map_err(|_| invalid("content-length"))?;
                head.framing = if length == 0 {
                    Framing::Empty
                } else {
                    Framing::Length(length)
                };
            }
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => {
                head.framing = Framing::Chunked
            }
            "transfer-encoding" => return Err(invalid("transfer-encoding")),
            "connection" => head.close |= value.eq_ignore_ascii_case("close"),
            "expect" => head.expects_continue = value.eq_ignore_ascii_case("100-continue"),
            "content-type" => {
                head.media = value
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase();
            }
            "mcp-session-id" => head.session = Some(value.to_owned()),
            _ => {}
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a byte string in pieces of a fixed size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(into.len()).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn answers(wire: &str, piece: usize) -> Vec<Result<(u16, String), io::ErrorKind>> {
        let mut reader = Reader::new(Pieces(wire.as_bytes(), piece));
        let (mut body, mut all) = (Vec::new(), Vec::new());
        loop {
            match reader.answer(&mut body) {
                Ok(None) => return all,
                Ok(Some(head)) => {
                    all.push(Ok((head.status, String::from_utf8(body.clone()).unwrap())))
                }
                Err(error) => {
                    all.push(Err(error.kind()));
                    return all;
                }
            }
        }
    }

    #[test]
    fn answers_in_any_pieces() {
        let wire = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
                    HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n\
                    HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nA: b\r\n\r\n\
                    HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 502 Bad\r\n\r\nrest";
        let expected = [
            (200, "hello"),
            (202, ""),
            (200, "abcde"),
            (204, ""),
            (502, "rest"),
        ];
        for piece in 1..wire.len() {
            let got: Vec<_> = answers(wire, piece)
                .into_iter()
                .map(Result::unwrap)
                .collect();
            let got: Vec<_> = got
                .iter()
                .map(|(status, body)| (*status, body.as_str()))
                .collect();
            assert_eq!(got, expected, "pieces of {piece}");
        }
    }

    #[test]
    fn broken_answers_are_errors() {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        let cases = [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                UnexpectedEof,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Le", UnexpectedEof),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", InvalidData),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
                InvalidData,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
                InvalidData,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                InvalidData,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                InvalidData,
            ),
            ("garbage\r\n\r\n", InvalidData),
        ];
        for (wire, kind) in cases {
            assert_eq!(answers(wire, 7), [Err(kind)], "{wire:?}");
        }
        assert_eq!(
            answers(
                &format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(HEAD_BYTES_MAX * 2)),
                4096
            ),
            [Err(InvalidData)]
        );
    }

    #[test]
    fn requests_keep_their_fields() {
        let wire = "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: Application/JSON; charset=utf-8\r\nMcp-Session-Id: s1\r\n\
                    Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}GET /stats HTTP/1.1\r\nConnection: close\r\n\r\n";
        let mut reader = Reader::new(Pieces(wire.as_bytes(), 3));
        let (mut body, mut continues) = (Vec::new(), 0);
        let mut count = || {
            continues += 1;
            Ok(())
        };
        let first = reader.request(&mut body, &mut count).unwrap().unwrap();
        assert_eq!(
            (
                first.method.as_str(),
                first.path.as_str(),
                first.media.as_str()
            ),
            ("POST", "/mcp", "application/json")
        );
        assert_eq!(
            (first.session.as_deref(), body.as_slice()),
            (Some("s1"), &b"{}"[..])
        );
        let second = reader.request(&mut body, &mut count).unwrap().unwrap();
        assert_eq!(
            (second.path.as_str(), second.close, body.is_empty()),
            ("/stats", true, true)
        );
        assert!(reader.request(&mut body, &mut count).unwrap().is_none());
        assert_eq!(continues, 1);
    }
}
