//! An event that is too long to be held: its data piece by piece.

use std::fmt;

use memchr::memchr2;

use crate::sse::FIELD;

/// Longest line of another field in a long event; what is longer is passed over as unknown fields are.
const LONG_FIELD_BYTES_MAX: usize = 64;

/// An event that is too long to be held.
pub struct LongEvent {
    /// Its `id`, if that came before its data.
    pub id: Option<Box<str>>,
    begun: Vec<u8>,
    at: LongAt,
    /// The beginning of the line at hand.
    line: Vec<u8>,
    skip_lf: bool,
    is_over: bool,
}

/// Where in its lines a long event is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LongAt {
    /// Before a data line's value, whose first space is no part of it.
    Value,
    Data,
    /// In the field's name, or in another field.
    Field,
}

/// Shows sizes only.
impl fmt::Debug for LongEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongEvent")
            .field("begun", &self.begun.len())
            .finish_non_exhaustive()
    }
}

impl LongEvent {
    /// `value` is what is known of its first data line, `rest` what followed in the stream.
    pub(crate) fn new(id: Option<Box<str>>, value: &[u8], rest: &[u8]) -> Self {
        let mut long = LongEvent {
            id,
            begun: Vec::new(),
            at: LongAt::Value,
            line: Vec::new(),
            skip_lf: false,
            is_over: false,
        };
        let mut begun = Vec::with_capacity(value.len() + rest.len());
        long.take(value, &mut begun);
        long.take(rest, &mut begun);
        long.begun = begun;
        long
    }

    /// The data that came before it was known to be long; once.
    pub fn take_begun(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.begun)
    }

    /// Whether the event is whole.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The data in the next piece of the stream. What comes after the event is dropped.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut data = Vec::with_capacity(chunk.len());
        self.take(chunk, &mut data);
        data
    }

    /// Gives what came after the event.
    pub(crate) fn take<'c>(&mut self, chunk: &'c [u8], data: &mut Vec<u8>) -> &'c [u8] {
        let mut rest = chunk;
        while !rest.is_empty() && !self.is_over {
            if std::mem::take(&mut self.skip_lf) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = memchr2(b'\r', b'\n', rest);
            let run = &rest[..end.unwrap_or(rest.len())];
            self.run(run, data);
            let Some(end) = end else { return &[] };
            self.skip_lf = rest[end] == b'\r';
            rest = &rest[end + 1..];
            self.line_done(data);
        }
        rest
    }

    /// A line feed that comes next belongs to what was taken.
    pub(crate) fn skips_lf(&self) -> bool {
        self.skip_lf
    }

    /// A piece of one line.
    fn run(&mut self, run: &[u8], data: &mut Vec<u8>) {
        let mut run = run;
        if self.at == LongAt::Field {
            let room = FIELD.len().saturating_sub(self.line.len()).min(run.len());
            self.line.extend_from_slice(&run[..room]);
            run = &run[room..];
            if self.line != FIELD {
                let more = LONG_FIELD_BYTES_MAX.saturating_sub(self.line.len());
                self.line.extend_from_slice(&run[..run.len().min(more)]);
                return;
            }
            // Lines of data are joined by line breaks.
            data.push(b'\n');
            self.line.clear();
            self.at = LongAt::Value;
        }
        if self.at == LongAt::Value && !run.is_empty() {
            run = run.strip_prefix(b" ").unwrap_or(run);
            self.at = LongAt::Data;
        }
        data.extend_from_slice(run);
    }

    fn line_done(&mut self, data: &mut Vec<u8>) {
        if self.at == LongAt::Field {
            // `data` without a colon is an empty line of data.
            match self.line.as_slice() {
                b"" => self.is_over = true,
                b"data" => data.push(b'\n'),
                _ => {}
            }
        }
        self.line.clear();
        self.at = LongAt::Field;
    }
}
