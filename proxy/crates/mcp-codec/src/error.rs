//! Why bytes are not a message we accept. No error carries the input's text.

use thiserror::Error;

use crate::{Id, Whose};

/// A refusal, by name, with the place where it became certain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{kind} at byte {offset}")]
pub struct DecodeError {
    /// What is wrong.
    pub kind: DecodeErrorKind,
    /// Byte offset in the input. For a batch it is an offset in the whole batch.
    pub offset: usize,
    /// The id of the refused message if it could still be read, so that the reply can carry it; good for nothing else. A
    /// number may be above [`ID_NUMBER_MAX`](crate::ID_NUMBER_MAX).
    pub recovered_id: Option<Id>,
    /// Whose message it seems to be, as far as it could be read.
    pub whose: Whose,
}

/// Every way to be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// Nothing but white space.
    #[error("the input is empty")]
    Empty,
    /// A byte order mark, of whatever encoding.
    #[error("a byte order mark")]
    ByteOrderMark,
    /// Not UTF-8: invalid sequences, or UTF-16/32 text.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// The input ends inside a value.
    #[error("an unexpected end of the input")]
    UnexpectedEnd,
    /// A byte that no JSON value may have here (also `NaN`, `Infinity`, comments, single quotes).
    #[error("an unexpected byte")]
    UnexpectedByte,
    /// A comma before a closing bracket.
    #[error("a trailing comma")]
    TrailingComma,
    /// Leading zero, bare minus, missing digits.
    #[error("a malformed number")]
    BadNumber,
    /// A backslash followed by something that is no escape.
    #[error("an invalid escape sequence")]
    BadEscape,
    /// A raw control character inside a string.
    #[error("a control character in a string")]
    ControlCharacter,
    /// Something after the value.
    #[error("data after the JSON value")]
    TrailingData,
    /// Half of a surrogate pair written as an escape.
    #[error("a lone surrogate escape")]
    LoneSurrogate,
    /// Two equal keys (after unescaping) in one object.
    #[error("a duplicate key")]
    DuplicateKey,
    /// Longer than [`Limits::bytes_max`](crate::Limits::bytes_max).
    #[error("a message above the size limit")]
    TooLarge,
    /// Nested deeper than [`Limits::depth_max`](crate::Limits::depth_max).
    #[error("nesting above the depth limit")]
    TooDeep,
    /// More tokens than [`Limits::tokens_max`](crate::Limits::tokens_max).
    #[error("more values than the limit")]
    TooManyTokens,
    /// A number longer than [`Limits::number_bytes_max`](crate::Limits::number_bytes_max).
    #[error("a number above the length limit")]
    NumberTooLong,
    /// A key that differs from a protocol key of this place by letter case only.
    #[error("a key that only differs in case from a protocol key")]
    FoldedKey,
    /// U+0000 in a method, id, name or uri, or in a key.
    #[error("a NUL character in a protocol string")]
    NulInProtocolString,
    /// The message is no object (and no permitted batch).
    #[error("a message that is not an object")]
    NotAnObject,
    /// An array where the protocol revision has no batches.
    #[error("a batch where batches are not allowed")]
    BatchRefused,
    /// `[]`.
    #[error("an empty batch")]
    EmptyBatch,
    /// More messages than [`Limits::batch_max`](crate::Limits::batch_max).
    #[error("a batch above the size limit")]
    BatchTooLarge,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("a jsonrpc member that is not \"2.0\"")]
    BadVersion,
    /// `id` is no string and no plain integer, or is null where a value is required.
    #[error("an id that is neither an integer nor a string")]
    BadId,
    /// A string id longer than [`Limits::id_bytes_max`](crate::Limits::id_bytes_max).
    #[error("an id above the length limit")]
    IdTooLong,
    /// A progress token longer than [`Limits::id_bytes_max`](crate::Limits::id_bytes_max).
    #[error("a progress token above the length limit")]
    TokenTooLong,
    /// A response without an id.
    #[error("a response without an id")]
    MissingId,
    /// A method that is none of the protocol, but almost one: by letter case, blanks, or characters that nobody sees.
    #[error("a method that looks like one of the protocol")]
    FoldedMethod,
    /// `method` is not a non-empty string.
    #[error("a method that is not a non-empty string")]
    BadMethod,
    /// `params` is present and not an object.
    #[error("params that are not an object")]
    BadParams,
    /// `result` is not an object.
    #[error("a result that is not an object")]
    BadResult,
    /// `error` is not `{code: integer, message: string}`.
    #[error("an error that lacks an integer code or a message")]
    BadError,
    /// A key longer than [`StreamLimits::key_bytes_max`](crate::stream::StreamLimits::key_bytes_max); only where a message
    /// is read piece by piece.
    #[error("a key above the length limit")]
    KeyTooLong,
    /// More keys than [`StreamLimits::open_keys_max`](crate::stream::StreamLimits::open_keys_max); only where a message is
    /// read piece by piece.
    #[error("more keys than the limit")]
    TooManyKeys,
    /// A method above the length limit; and a tool name or version, where a message is read piece by piece.
    #[error("a protocol string above the length limit")]
    NameTooLong,
    /// None of, or more than one of, `method`, `result` and `error`.
    #[error("not exactly one of method, result and error")]
    AmbiguousMessage,
}

impl DecodeError {
    /// The id for a reply to whoever sent the message: none if it seems to be an answer, since an error with its id would
    /// pass for an answer itself.
    pub fn reply_id(&self) -> Option<&Id> {
        let answers = matches!(self.whose, Whose::Answer(_));
        self.recovered_id.as_ref().filter(|_| !answers)
    }

    pub(crate) fn new(kind: DecodeErrorKind, offset: usize) -> Self {
        DecodeError {
            kind,
            offset,
            recovered_id: None,
            whose: Whose::Nobody,
        }
    }

    /// -32700 if the input is not JSON, -32600 if it is JSON but no message we accept.
    pub fn json_rpc_code(&self) -> i32 {
        use DecodeErrorKind::*;
        match self.kind {
            Empty | ByteOrderMark | NotUtf8 | UnexpectedEnd | UnexpectedByte | TrailingComma
            | BadNumber | BadEscape | ControlCharacter | TrailingData => -32700,
            _ => -32600,
        }
    }

    /// One fixed sentence for the peer. It never repeats the input.
    pub fn client_text(&self) -> &'static str {
        self.kind.client_text()
    }
}

impl DecodeErrorKind {
    /// One fixed sentence for the peer. It never repeats the input.
    pub fn client_text(self) -> &'static str {
        use DecodeErrorKind::*;
        match self {
            Empty => "The message is empty.",
            ByteOrderMark => "The message starts with a byte order mark; send plain UTF-8.",
            NotUtf8 => "The message is not valid UTF-8.",
            UnexpectedEnd => "The message is not valid JSON: it ends too early.",
            UnexpectedByte => {
                "The message is not valid JSON: a character is not allowed where it stands."
            }
            TrailingComma => {
                "The message is not valid JSON: a comma stands before a closing bracket."
            }
            BadNumber => "The message is not valid JSON: a number is malformed.",
            BadEscape => "The message is not valid JSON: a string has an invalid escape sequence.",
            ControlCharacter => {
                "The message is not valid JSON: a string has an unescaped control character."
            }
            TrailingData => "The message is not valid JSON: there is data after the value.",
            LoneSurrogate => "A string in the message has half of a surrogate pair.",
            DuplicateKey => "An object in the message has the same key twice.",
            TooLarge => "The message is larger than allowed.",
            TooDeep => "The message is nested deeper than allowed.",
            TooManyTokens => "The message has more values than allowed.",
            NumberTooLong => "A number in the message is longer than allowed.",
            FoldedKey => "A key in the message differs from a protocol key only by letter case.",
            FoldedMethod => {
                "The method differs from one of the protocol only by letter case, blanks or look-alike characters."
            }
            NulInProtocolString => "A protocol string in the message has a NUL character.",
            NotAnObject => "The message must be a JSON object.",
            BatchRefused => "Batches are not allowed in this protocol version.",
            EmptyBatch => "The batch is empty.",
            BatchTooLarge => "The batch has more messages than allowed.",
            BadVersion => "The jsonrpc member must be \"2.0\".",
            BadId => "The id must be an integer or a string.",
            IdTooLong => "The id is longer than allowed.",
            TokenTooLong => "The progressToken is longer than allowed; choose a shorter one.",
            MissingId => "The response has no id.",
            BadMethod => "The method must be a non-empty string.",
            BadParams => "The params must be an object.",
            BadResult => "The result must be an object.",
            BadError => "The error must have an integer code and a message string.",
            KeyTooLong => "A key in the message is longer than allowed.",
            TooManyKeys => "The message has more keys than allowed.",
            NameTooLong => "A name in the message is longer than allowed.",
            AmbiguousMessage => "The message must have exactly one of method, result and error.",
        }
    }
}
