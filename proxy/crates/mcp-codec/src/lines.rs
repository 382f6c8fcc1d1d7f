//! Newline-delimited JSON, as MCP's stdio transport has it.
//!
//! Only LF ends a line; a CR before it is dropped, and empty lines are skipped. Whether a line is UTF-8 is for
//! [`Document::parse`](crate::Document::parse) to say. It holds one unfinished line and the lines of the last chunk.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use memchr::memchr;
use thiserror::Error;

use crate::{Limits, LongLine, Whose};

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// Longer than allowed. The rest of the line is skipped; the next line is read as usual.
    #[error("a line above the size limit")]
    TooLong,
    /// The stream ended inside a line.
    #[error("the stream ended inside a line")]
    Unterminated,
    /// The caller pushed again and again without taking the lines out. Nothing more is read after that.
    #[error("more lines are waiting than may be held")]
    NotDrained,
    /// A message to be written holds a raw line break.
    #[error("a message with a raw line break")]
    LineBreak,
}

/// Turns chunks into lines.
///
/// ```
/// let mut decoder = mcp_codec::lines::Decoder::new(1024);
/// decoder.push(b"{\"a\":1}\r\n\n{\"b\"");
/// assert_eq!(decoder.next().expect("it is whole")?, br#"{"a":1}"#.as_slice());
/// assert!(decoder.next().is_none());
/// assert!(decoder.finish().is_err());
/// # Ok::<(), mcp_codec::lines::LineError>(())
/// ```
pub struct Decoder {
    line_bytes_max: usize,
    /// The line that is not yet whole.
    line: Vec<u8>,
    /// The current line is too long and was reported.
    skipping: bool,
    ready: VecDeque<Result<Bytes, LineError>>,
    ready_bytes: usize,
    failed: bool,
    /// Within which bounds lines that are too long are read for whose they are.
    reads_long: Option<Limits>,
    /// The one that is being skipped.
    long: Option<Box<LongLine>>,
    /// Those that have ended, in the order in which they were reported.
    skipped: VecDeque<Whose>,
}

impl Decoder {
    /// An empty stream.
    pub fn new(line_bytes_max: usize) -> Self {
        Decoder {
            line_bytes_max,
            line: Vec::new(),
            skipping: false,
            ready: VecDeque::new(),
            ready_bytes: 0,
            failed: false,
            reads_long: None,
            long: None,
            skipped: VecDeque::new(),
        }
    }

    /// The same decoder, which also finds out whose a line is that is too long: see [`Self::next_skipped`].
    #[must_use]
    pub fn reading_long(self, limits: Limits) -> Self {
        Decoder {
            reads_long: Some(limits),
            ..self
        }
    }

    /// Whose the next line was that is too long, once that line has ended: one for each that was reported, in their order.
    pub fn next_skipped(&mut self) -> Option<Whose> {
        self.skipped.pop_front()
    }

    /// Takes the next piece of the stream. Call [`Decoder::next`] until it gives `None` before pushing again.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.failed {
            return;
        }
        if self.ready_bytes > self.line_bytes_max {
            self.failed = true;
            self.line = Vec::new();
            return;
        }
        let mut rest = chunk;
        while let Some(end) = memchr(b'\n', rest) {
            self.collect(&rest[..end]);
            self.line_done();
            rest = &rest[end + 1..];
        }
        self.collect(rest);
    }

    /// The next whole line without its line end; empty lines are skipped.
    #[allow(
        clippy::should_implement_trait,
        reason = "None means \"not yet\", which an iterator may not say"
    )]
    pub fn next(&mut self) -> Option<Result<Bytes, LineError>> {
        match self.ready.pop_front() {
            Some(line) => {
                self.ready_bytes -= weight(&line);
                Some(line)
            }
            None => self.failed.then_some(Err(LineError::NotDrained)),
        }
    }

    /// Says whether the stream ended between lines.
    pub fn finish(&mut self) -> Result<(), LineError> {
        let rest = std::mem::take(&mut self.line);
        self.skipped_whole();
        if rest.is_empty() && !self.skipping {
            Ok(())
        } else {
            Err(LineError::Unterminated)
        }
    }

    /// One byte more than allowed is held, since it may be the CR of a line end.
    fn collect(&mut self, part: &[u8]) {
        if self.skipping {
            if let Some(long) = &mut self.long {
                long.push(part);
            }
            return;
        }
        if self.line.len() + part.len() > self.line_bytes_max.saturating_add(1) {
            self.report_too_long();
            self.collect(part);
            return;
        }
        self.line.extend_from_slice(part);
        // The byte above the bound can only be forgiven if it is that CR.
        if self.line.len() > self.line_bytes_max && self.line.last() != Some(&b'\r') {
            self.report_too_long();
        }
    }

    fn report_too_long(&mut self) {
        let begun = std::mem::take(&mut self.line);
        self.long = self.reads_long.as_ref().map(|limits| {
            let mut long = LongLine::new(limits);
            long.push(&begun);
            Box::new(long)
        });
        self.skipping = true;
        self.queue(Err(LineError::TooLong));
    }

    fn line_done(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skipping) {
            self.skipped_whole();
            return;
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if !line.is_empty() {
            self.queue(Ok(line.into()));
        }
    }

    fn skipped_whole(&mut self) {
        let whose = self.long.take().map(|long| long.whose());
        self.skipped.extend(whose);
    }

    fn queue(&mut self, line: Result<Bytes, LineError>) {
        self.ready_bytes += weight(&line);
        self.ready.push_back(line);
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("line_bytes", &self.line.len())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

/// What a waiting line counts against the bound; its own size counts too, so that short ones do.
fn weight(line: &Result<Bytes, LineError>) -> usize {
    size_of::<Result<Bytes, LineError>>() + line.as_ref().map_or(0, Bytes::len)
}

/// Appends one message as a line. [`Document::to_bytes`](crate::Document::to_bytes) never holds a line break.
pub fn encode(out: &mut Vec<u8>, json: &[u8]) -> Result<(), LineError> {
    if memchr::memchr2(b'\r', b'\n', json).is_some() {
        return Err(LineError::LineBreak);
    }
    out.reserve(json.len() + 1);
    out.extend_from_slice(json);
    out.push(b'\n');
    Ok(())
}
