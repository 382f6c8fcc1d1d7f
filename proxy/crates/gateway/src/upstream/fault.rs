//! What can go wrong with an upstream. The client hears fixed words about it.

use std::time::Duration;

use mcp_codec::DecodeErrorKind;

/// What a fault tells of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Nothing: it is a bound of Weir's own.
    Unknown,
    /// It lives: it answered, though not what was wanted.
    Lives,
    /// It fails.
    Fails,
}

/// An upstream that did not do its part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It could not be reached, or its process could not be started: why, with the address or the program.
    #[error("{0}")]
    Unreachable(String),
    /// Its process ended or did not start, and is not started again yet.
    #[error("it failed just now: it is started again in {} ms at the earliest", .0.as_millis())]
    Resting(Duration),
    /// It did not answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// It broke HTTP, SSE or JSON-RPC, or was not there for what it owed.
    #[error("broken: {0}")]
    Broken(&'static str),
    /// The connection broke off.
    #[error("the connection broke or HTTP was malformed")]
    Cut,
    /// It said something that is no message.
    #[error("broken: a message that is not accepted: {0}")]
    Malformed(DecodeErrorKind),
    /// Its answer is larger than may be held, and may not pass in steps.
    #[error("an answer above the size limit: {0}")]
    TooLarge(Oversize),
    /// The message became longer than may be sent to it when something in it was redacted.
    #[error("not sent: redaction made the message too long")]
    Grown,
    /// It refused Weir's credentials.
    #[error("refused Weir's credentials (HTTP {0})")]
    Credentials(u16),
    /// It answered with a status that says it failed.
    #[error("answered HTTP {0}")]
    Status(u16),
    /// The client uses an id or progress token again that is still in use.
    #[error("an id that is in use")]
    IdInUse,
    /// The client does not want the answer any more.
    #[error("cancelled by the client")]
    Cancelled,
    /// Its circuit is open.
    #[error("the circuit is open for {} ms more", .0.as_millis())]
    CircuitOpen(Duration),
    /// Too many of its processes run already.
    #[error("too many processes of it run")]
    Busy,
    /// Too many of its processes run for this principal already.
    #[error("too many processes of it run for one principal")]
    ShareTaken,
    /// Its sandbox ended under the call.
    #[error("its sandbox ended: {0}")]
    Gone(&'static str),
    /// Its sandbox could not be started.
    #[error("its sandbox could not be started")]
    NotStarted,
    /// The queue for its sandboxes is full, or the wait took too long.
    #[error("no sandbox became free")]
    Crowded,
    /// The runner, which holds the sandboxes, cannot be reached.
    #[error("the runner cannot be asked for a sandbox")]
    NoRunner,
}

impl Fault {
    /// The status for the client: 504 for lateness, 503, 429, 413 and 400 for what is not sent, 499 for what nobody wants, else 502.
    pub fn status(&self) -> u16 {
        match self {
            Self::TimedOut => 504,
            Self::CircuitOpen(_) | Self::Resting(_) | Self::Busy | Self::NoRunner => 503,
            Self::Crowded | Self::ShareTaken => 429,
            Self::Grown => 413,
            Self::IdInUse => 400,
            Self::Cancelled => 499,
            _ => 502,
        }
    }

    /// What it tells of the server. A status below 500 is its answer to one call: it may be another's to another.
    pub fn health(&self) -> Health {
        match self {
            Self::CircuitOpen(_)
            | Self::Cancelled
            | Self::Resting(_)
            | Self::Busy
            | Self::ShareTaken
            | Self::Grown
            | Self::IdInUse
            | Self::Crowded
            | Self::NoRunner => Health::Unknown,
            Self::Credentials(_) | Self::TooLarge(_) | Self::Status(..500) => Health::Lives,
            Self::Unreachable(_)
            | Self::TimedOut
            | Self::Broken(_)
            | Self::Cut
            | Self::Malformed(_)
            | Self::Status(_)
            | Self::Gone(_)
            | Self::NotStarted => Health::Fails,
        }
    }

    /// Whether no answer can come any more: the server never had the call, or would not have it.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Credentials(_)
            | Self::Cancelled
            | Self::CircuitOpen(_)
            | Self::Resting(_)
            | Self::Busy
            | Self::ShareTaken
            | Self::Grown
            | Self::NotStarted
            | Self::Crowded
            | Self::NoRunner => true,
            // The call that has the id goes on.
            Self::IdInUse => false,
            // It may still work on it, or what stands between may have lost its answer.
            Self::TimedOut
            | Self::Broken(_)
            | Self::Cut
            | Self::Malformed(_)
            | Self::TooLarge(_)
            | Self::Status(_)
            | Self::Gone(_) => false,
        }
    }

    /// Seconds after which the client may try again.
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Crowded | Self::ShareTaken | Self::NoRunner => Some(5),
            Self::Resting(wait) | Self::CircuitOpen(wait) => Some(wait.as_secs() + 1),
            _ => None,
        }
    }

    /// One fixed sentence for the client.
    pub fn client_text(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "The MCP server cannot be reached.",
            Self::TimedOut => "The MCP server did not answer in time.",
            Self::Broken(_) => "The MCP server gave an answer that cannot be used.",
            Self::Cut => "The connection to the MCP server broke off.",
            Self::Malformed(kind) => of_the_server(*kind),
            Self::Status(_) => "The MCP server answered with an HTTP error.",
            Self::TooLarge(Oversize::Off) => {
                "The MCP server's answer is larger than allowed (limits.message_bytes_max)."
            }
            Self::TooLarge(why) => why.text(),
            Self::Grown => {
                "The message is larger than allowed, once what may not go on in it is redacted."
            }
            Self::IdInUse => "This id or progress token is already in use.",
            Self::Credentials(_) => "The MCP server refused the gateway's credentials.",
            Self::Cancelled => "The call was cancelled.",
            Self::CircuitOpen(_) => {
                "The MCP server failed repeatedly and is not called for a while."
            }
            Self::Resting(_) => {
                "The MCP server failed just now and is started again in a moment; try again later."
            }
            Self::Busy => "Too many sessions of this MCP server are running.",
            Self::ShareTaken => {
                "Too many of your sessions of this MCP server are running (limits.processes_per_principal_max)."
            }
            Self::Gone("out of memory") => "The MCP server's sandbox ended: out of memory.",
            Self::Gone("too many processes") => {
                "The MCP server's sandbox ended: too many processes."
            }
            Self::Gone("its program ended") => "The MCP server's sandbox ended: its program ended.",
            Self::Gone("a call took too long") => {
                "The MCP server's sandbox ended: a call took too long."
            }
            Self::Gone(_) => "The MCP server's sandbox was stopped.",
            Self::NotStarted => "The MCP server's sandbox could not be started; its log says why.",
            Self::Crowded => "Too many calls wait for this MCP server; try again later.",
            Self::NoRunner => "The MCP server's sandboxes cannot be reached at the moment.",
        }
    }
}

/// What is wrong with the text of a server's message.
fn of_the_server(kind: DecodeErrorKind) -> &'static str {
    match kind {
        DecodeErrorKind::TooLarge => {
            "The MCP server's answer is larger than allowed (limits.message_bytes_max)."
        }
        DecodeErrorKind::TooDeep => "The MCP server's answer is nested deeper than allowed.",
        DecodeErrorKind::TooManyTokens => "The MCP server's answer has more values than allowed.",
        DecodeErrorKind::NumberTooLong => {
            "The MCP server's answer has a number that is longer than allowed."
        }
        DecodeErrorKind::DuplicateKey => {
            "The MCP server's answer has an object with the same key twice."
        }
        DecodeErrorKind::NotUtf8 => "The MCP server's answer is not valid UTF-8.",
        _ => "The MCP server's answer is not valid JSON-RPC.",
    }
}

/// Why a message above `limits.message_bytes_max` is refused and not scanned while it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Oversize {
    /// Nothing is streamed (`limits.streamed_bytes_max` is 0), or not over this transport.
    #[error("nothing is streamed here (limits.streamed_bytes_max)")]
    Off,
    /// It came over a pipe.
    #[error("a line of a pipe is not streamed (limits.message_bytes_max)")]
    Pipe,
    /// It came as an event of HTTP+SSE.
    #[error("an event of HTTP+SSE is not streamed (limits.message_bytes_max)")]
    Event,
    /// Policy can block it.
    #[error("policy can block it, so it is not streamed")]
    PolicyBlocks,
    /// A plugin judges it.
    #[error("a plugin judges it, so it is not streamed")]
    Plugin,
    /// Its beginning does not say what it is.
    #[error("its beginning does not say what it is")]
    Unnamed,
    /// Messages of its kind are changed on the way, or decide about what follows.
    #[error("messages of its kind are not streamed")]
    Kind,
    /// Headers repeat its arguments, which can only be compared with the whole.
    #[error("headers repeat its arguments")]
    Mirrored,
    /// HTTP/1.0 cannot tell a cut answer from a whole one.
    #[error("the client speaks HTTP/1.0")]
    OldHttp,
}

impl Oversize {
    /// One fixed sentence for the client.
    pub fn text(self) -> &'static str {
        match self {
            Self::Off => "The message is larger than allowed.",
            Self::Pipe | Self::Event => "The message is larger than limits.message_bytes_max.",
            Self::PolicyBlocks => {
                "The message is larger than limits.message_bytes_max, and streaming is off for it because policy can block it."
            }
            Self::Plugin => {
                "The message is larger than limits.message_bytes_max, and streaming is off for it because a plugin judges it."
            }
            Self::Unnamed => {
                "The message is larger than limits.message_bytes_max, and cannot be streamed: jsonrpc, id, method and params.name must come first."
            }
            Self::Kind => {
                "The message is larger than limits.message_bytes_max; messages of its kind are not streamed."
            }
            Self::Mirrored => {
                "The message is larger than limits.message_bytes_max, and cannot be streamed: headers repeat its arguments."
            }
            Self::OldHttp => {
                "The message is larger than limits.message_bytes_max, and cannot be streamed over HTTP/1.0."
            }
        }
    }
}

impl From<crate::pipeline::Undecidable> for Oversize {
    fn from(why: crate::pipeline::Undecidable) -> Self {
        match why {
            crate::pipeline::Undecidable::PolicyBlocks => Self::PolicyBlocks,
            crate::pipeline::Undecidable::Plugin => Self::Plugin,
        }
    }
}
