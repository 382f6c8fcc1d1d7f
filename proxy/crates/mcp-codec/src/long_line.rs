//! A message that is too long to be held: read as it passes for nothing but whose it is.

use crate::stream::{Event, MessageReader, StreamLimits};
use crate::whose::{Said, Whose};
use crate::{Id, Limits};

/// Reads the parts of one message and keeps none of them.
///
/// ```
/// use mcp_codec::{Id, Limits, LongLine, Whose};
///
/// let mut line = LongLine::new(&Limits::default());
/// line.push(br#"{"result":{"text":"as long as it likes"},"jsonrpc""#);
/// assert_eq!(line.so_far(), Whose::Unknown);
/// line.push(br#":"2.0","id":7"#);
/// line.push(b"}");
/// assert_eq!(line.so_far(), Whose::Answer(Id::Number(7)));
/// ```
#[derive(Debug)]
pub struct LongLine {
    reader: MessageReader,
    /// It is no JSON-RPC message; what was read before that may be anything.
    broken: bool,
}

impl LongLine {
    /// Before its first byte.
    pub fn new(limits: &Limits) -> Self {
        Self::within(StreamLimits::of(limits, u64::MAX))
    }

    /// The same, with bounds of its own: what does not keep them is no message.
    pub fn within(limits: StreamLimits) -> Self {
        Self {
            reader: MessageReader::new(limits),
            broken: false,
        }
    }

    /// Takes the next part.
    pub fn push(&mut self, part: &[u8]) {
        if !self.broken {
            let mut nobody = |_: Event<'_>, _: std::ops::Range<u64>| Ok(());
            self.broken = self.reader.push(part, &mut nobody).is_err();
        }
    }

    /// What was read so far says this; `Unknown` where more may say something else.
    pub fn so_far(&self) -> Whose {
        self.said().whose_so_far()
    }

    /// What it says, now that it is whole, or that it is known to go on no further.
    pub fn whose(&self) -> Whose {
        self.said().whose(self.reader.facts().has_foreign)
    }

    /// What was read so far is no message, or is none that is accepted: the rest may say anything.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    fn said(&self) -> Said {
        let facts = self.reader.facts();
        let id: Option<&Id> = facts.id.as_ref().and_then(Option::as_ref);
        Said {
            id: id.cloned(),
            version: facts.version_seen,
            method: facts.method.is_some(),
            outcome: facts.has_result || facts.has_error,
        }
    }
}
