//! Whose a message is, where it is not accepted or not held as one.

use crate::Id;

/// Whose message it is, as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It answers the call of this id.
    Answer(Id),
    /// It is a call of this id.
    Call(Id),
    /// It has a method, and so far no id.
    Word,
    /// It may be an answer; whose it is has not been said.
    Unknown,
    /// It is no JSON-RPC message: a line of a program's log, say.
    Nobody,
}

/// What of a message's envelope was read.
#[derive(Default)]
pub(crate) struct Said {
    pub id: Option<Id>,
    /// `jsonrpc` is there, and `"2.0"`.
    pub version: bool,
    pub method: bool,
    /// A result or an error.
    pub outcome: bool,
}

impl Said {
    /// Nothing more comes. Log lines have ids, methods and errors too: without a version it is a message only if it has no member
    /// that no message has.
    pub fn whose(self, has_foreign: bool) -> Whose {
        if !self.version && (has_foreign || !(self.method || self.outcome)) {
            return Whose::Nobody;
        }
        match (self.method, self.id) {
            (true, Some(id)) => Whose::Call(id),
            (true, None) => Whose::Word,
            (false, Some(id)) => Whose::Answer(id),
            (false, None) => Whose::Unknown,
        }
    }

    /// More may come, which can only add to it.
    pub fn whose_so_far(self) -> Whose {
        match (self.method, self.id) {
            _ if !self.version => Whose::Unknown,
            (true, Some(id)) => Whose::Call(id),
            (true, None) => Whose::Word,
            (false, Some(id)) if self.outcome => Whose::Answer(id),
            (false, _) => Whose::Unknown,
        }
    }
}
