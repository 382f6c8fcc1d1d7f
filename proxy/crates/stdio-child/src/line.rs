//! Cuts a byte stream into lines within a bound. It knows nothing of processes and looks into no line.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use memchr::memchr;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStdout;

use crate::{LineError, Part};

/// One read asks for this much, or for `CHUNK_BYTES_MAX` in the middle of a long line. The pipe itself
/// holds 64 KiB.
const CHUNK_BYTES: usize = 8 * 1024;
const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// The server's stdout as lines. Nothing is read ahead of [`LineReceiver::recv`] but one chunk of at
/// most 64 KiB: a slow reader makes the server wait.
#[derive(Debug)]
pub struct LineReceiver {
    /// `None` after the end.
    stdout: Option<ChildStdout>,
    decoder: LineDecoder,
}

impl LineReceiver {
    pub(crate) fn new(stdout: ChildStdout, line_bytes_max: usize) -> Self {
        Self {
            stdout: Some(stdout),
            decoder: LineDecoder::new(line_bytes_max),
        }
    }

    /// The next line without its line end (LF or CRLF); `None` at the end of the output, which comes
    /// when the server and all it started have closed it. Empty lines and bad UTF-8 are left to the
    /// caller. Cancel safe.
    pub async fn recv(&mut self) -> Option<Result<Bytes, LineError>> {
        loop {
            if let Some(line) = self.decoder.next_line() {
                return Some(line);
            }
            let stdout = self.stdout.as_mut()?;
            let read = stdout.read_buf(&mut self.decoder.space()).await;
            match read {
                Ok(1..) => {}
                Ok(0) => {
                    self.stdout = None;
                    return self.decoder.finish().map(Err);
                }
                Err(error) => {
                    self.stdout = None;
                    return Some(Err(error.into()));
                }
            }
        }
    }
}

/// The bound: it holds at most one line and one chunk, `line_bytes_max` + 64 KiB, in a buffer that may
/// have grown to twice that.
#[derive(Debug)]
struct LineDecoder {
    buffer: BytesMut,
    /// How much of `buffer` is known to hold no line feed.
    scanned: usize,
    /// Whether we are inside a line that is too long and goes on in parts.
    in_long: bool,
    line_bytes_max: usize,
}

impl LineDecoder {
    fn new(line_bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            in_long: false,
            line_bytes_max,
        }
    }

    /// Where the next bytes go. Larger in the middle of a line, so that long ones take fewer reads.
    fn space(&mut self) -> impl BufMut {
        let chunk = self.buffer.len().clamp(CHUNK_BYTES, CHUNK_BYTES_MAX);
        if self.buffer.is_empty() && self.buffer.capacity() > CHUNK_BYTES_MAX {
            // One long line must not keep its memory for the rest of the session.
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(chunk);
        (&mut self.buffer).limit(chunk)
    }

    /// The next line that is complete, or the next part of one that is too long.
    fn next_line(&mut self) -> Option<Result<Bytes, LineError>> {
        let Some(found) = memchr(b'\n', &self.buffer[self.scanned..]) else {
            return self.no_line_end();
        };
        let mut line = self.buffer.split_to(self.scanned + found);
        self.buffer.advance(1);
        self.scanned = 0;
        if std::mem::take(&mut self.in_long) {
            return Some(Err(self.too_long(line, true)));
        }
        let text = line.len() - usize::from(line.last() == Some(&b'\r'));
        if text > self.line_bytes_max {
            return Some(Err(self.too_long(line, true)));
        }
        line.truncate(text);
        Some(Ok(line.freeze()))
    }

    /// Gives a line in parts as soon as it cannot be within the limit any more. A carriage return at the end
    /// may be half of a line end.
    fn no_line_end(&mut self) -> Option<Result<Bytes, LineError>> {
        self.scanned = self.buffer.len();
        let line_bytes = match self.buffer.last() {
            Some(b'\r') => self.buffer.len() - 1,
            _ => self.buffer.len(),
        };
        if self.buffer.is_empty() || !self.in_long && line_bytes <= self.line_bytes_max {
            return None;
        }
        self.scanned = 0;
        self.in_long = true;
        let part = std::mem::take(&mut self.buffer);
        Some(Err(self.too_long(part, false)))
    }

    /// At the end of the stream: what is left is no line.
    fn finish(&mut self) -> Option<LineError> {
        let bytes = std::mem::take(&mut self.buffer).len();
        self.scanned = 0;
        (bytes > 0 || self.in_long).then_some(LineError::Unfinished { bytes })
    }

    fn too_long(&self, part: BytesMut, ends: bool) -> LineError {
        LineError::TooLong {
            bytes_max: self.line_bytes_max,
            part: Part(part.freeze()),
            ends,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The items of `input`, fed in pieces of `step` bytes: a line as text, or the error's first letter; the parts of one line
    /// as one.
    fn lines(input: &[u8], line_bytes_max: usize, step: usize) -> Vec<String> {
        let mut decoder = LineDecoder::new(line_bytes_max);
        let mut items: Vec<String> = Vec::new();
        let mut goes_on = false;
        let mut drain = |decoder: &mut LineDecoder| {
            while let Some(item) = decoder.next_line() {
                match item {
                    Ok(line) => items.push(format!("={}", String::from_utf8_lossy(&line))),
                    Err(LineError::TooLong { part, ends, .. }) => {
                        let part = String::from_utf8_lossy(&part.0).into_owned();
                        match std::mem::replace(&mut goes_on, !ends) {
                            true => items.last_mut().expect("it has begun").push_str(&part),
                            false => items.push(format!("T{part}")),
                        }
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        };
        for piece in input.chunks(step) {
            decoder.space().put_slice(piece);
            drain(&mut decoder);
            assert!(
                decoder.buffer.len() <= line_bytes_max + 1,
                "holds more than a line"
            );
        }
        if let Some(LineError::Unfinished { bytes }) = decoder.finish() {
            items.push(format!("U{bytes}"));
        }
        items
    }

    /// The answer may not change wherever the stream is cut.
    fn check(input: &str, expected: &[&str]) {
        for step in 1..=input.len().max(1) {
            assert_eq!(
                lines(input.as_bytes(), 5, step),
                expected,
                "{input:?} by {step}"
            );
        }
    }

    #[test]
    fn every_cut_gives_the_same_lines() {
        check("", &[]);
        check("a\n", &["=a"]);
        check("a\nbc\n", &["=a", "=bc"]);
        check("a\r\nb\r\n", &["=a", "=b"]);
        check("\n\r\n\n", &["=", "=", "="]);
        check("a\rb\n", &["=a\rb"]);
        check("a\r\r\n", &["=a\r"]);
        check("12345\n", &["=12345"]);
        check("12345\r\n", &["=12345"]);
        check("123456\n1\n", &["T123456", "=1"]);
        check("1234567890123\nok\n", &["T1234567890123", "=ok"]);
        check("1234567890123\r\nok\n", &["T1234567890123\r", "=ok"]);
        check("12345\r\r\nok\n", &["T12345\r\r", "=ok"]);
        check("123456\n654321\nok\n", &["T123456", "T654321", "=ok"]);
        check("12345\rx\nok\n", &["T12345\rx", "=ok"]);
        check("a\nhalf", &["=a", "U4"]);
        check("half\r", &["U5"]);
        check("12345\r", &["U6"]);
    }

    #[test]
    fn an_endless_line_comes_in_parts_and_takes_no_memory() {
        let mut decoder = LineDecoder::new(1000);
        let mut bytes = 0;
        for _ in 0..10_000 {
            decoder.space().put_slice(&[b'x'; CHUNK_BYTES]);
            while let Some(item) = decoder.next_line() {
                let Err(LineError::TooLong {
                    part, ends: false, ..
                }) = item
                else {
                    panic!("no part of the line");
                };
                bytes += part.0.len();
            }
            assert!(decoder.buffer.capacity() <= 2 * (1000 + CHUNK_BYTES_MAX));
        }
        assert_eq!(bytes, 10_000 * CHUNK_BYTES);
        decoder.space().put_slice(b"\nback\n");
        let end = decoder.next_line().unwrap();
        assert!(
            matches!(end, Err(LineError::TooLong { part, ends: true, .. }) if part.0.is_empty())
        );
        assert_eq!(decoder.next_line().unwrap().unwrap(), "back");
    }

    #[test]
    fn the_memory_of_a_long_line_is_given_back() {
        let mut decoder = LineDecoder::new(1 << 20);
        for _ in 0..16 {
            decoder.space().put_slice(&[b'x'; CHUNK_BYTES]);
            assert!(decoder.next_line().is_none());
        }
        decoder.space().put_slice(b"\n");
        assert_eq!(
            decoder.next_line().unwrap().unwrap().len(),
            16 * CHUNK_BYTES
        );
        let _ = decoder.space();
        assert!(decoder.buffer.capacity() <= CHUNK_BYTES_MAX);
    }
}
