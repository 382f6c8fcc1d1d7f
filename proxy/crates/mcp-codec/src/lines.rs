//! Newline-delimited JSON, as MCP's stdio transport has it.

use bytes::Bytes;
use thiserror::Error;

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// Longer than allowed. The rest of the line is skipped; the next line is read as usual.
    #[error("a line above the size limit")]
    TooLong,
    /// The stream ended inside a line.
    #[error("the stream ended inside a line")]
    Unterminated,
    /// The caller pushed again and again without taking the lines out.
    #[error("more lines are waiting than may be held")]
    NotDrained,
    /// A message to be written holds a raw newline.
    #[error("a message with a raw newline")]
    Newline,
}

/// Turns chunks into lines.
pub struct Decoder {
    line_bytes_max: usize,
}

impl Decoder {
    /// An empty stream.
    pub fn new(line_bytes_max: usize) -> Self {
        Decoder { line_bytes_max }
    }

    /// Takes the next piece of the stream. Call [`Decoder::next`] until it gives `None` before pushing again.
    pub fn push(&mut self, chunk: &[u8]) {
        let _ = (chunk, self.line_bytes_max);
        todo!()
    }

    /// The next whole line without its line end; empty lines are skipped.
    #[allow(
        clippy::should_implement_trait,
        reason = "None means \"not yet\", which an iterator may not say"
    )]
    pub fn next(&mut self) -> Option<Result<Bytes, LineError>> {
        todo!()
    }

    /// Says whether the stream ended between lines.
    pub fn finish(&mut self) -> Result<(), LineError> {
        todo!()
    }
}

/// Appends one message as a line.
pub fn encode(out: &mut Vec<u8>, json: &[u8]) -> Result<(), LineError> {
    let _ = (out, json);
    todo!()
}
