//! A line that is too long to be held: read as it passes for nothing but whose it is.

use crate::stream::{Event, Facts, MessageReader, StreamLimits};
use crate::{Id, Limits};

/// Reads the parts of one line and keeps none of them.
///
/// ```
/// use mcp_codec::{Id, Limits, LongLine, Whose};
///
/// let mut line = LongLine::new(&Limits::default());
/// line.push(br#"{"result":{"text":"as long as it likes"},"jsonrpc""#);
/// assert_eq!(line.whose(), Whose::Unknown);
/// line.push(br#":"2.0","id":7}"#);
/// assert_eq!(line.whose(), Whose::Answer(Id::Number(7)));
/// ```
#[derive(Debug)]
pub struct LongLine {
    reader: MessageReader,
    /// It is no JSON-RPC message; what was read before that may be anything.
    broken: bool,
}

/// Whose message it is, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It answers the call of this id.
    Answer(Id),
    /// It is a call of this id.
    Call(Id),
    /// It has a method, and so far no id.
    Word,
    /// It has not been said so far, or it is no message.
    Unknown,
}

impl LongLine {
    /// Before its first byte.
    pub fn new(limits: &Limits) -> Self {
        Self {
            reader: MessageReader::new(StreamLimits::of(limits, u64::MAX)),
            broken: false,
        }
    }

    /// Takes the next part.
    pub fn push(&mut self, part: &[u8]) {
        let mut nobody = |_: Event<'_>, _: std::ops::Range<u64>| Ok(());
        self.broken |= self.reader.push(part, &mut nobody).is_err();
    }

    /// What was read so far says this.
    pub fn whose(&self) -> Whose {
        let facts: &Facts = self.reader.facts();
        let id = facts.id.clone().flatten();
        match (facts.method.is_some(), id) {
            _ if self.broken => Whose::Unknown,
            (true, Some(id)) => Whose::Call(id),
            (true, None) => Whose::Word,
            (false, Some(id)) if facts.has_result || facts.has_error => Whose::Answer(id),
            (false, _) => Whose::Unknown,
        }
    }
}
