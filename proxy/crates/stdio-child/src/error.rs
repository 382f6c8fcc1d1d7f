//! What can go wrong with a server process, and how one ended.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The program was not found, may not be executed, and so on; the source has the system's words.
    #[error("cannot start `{program}`")]
    Program {
        /// The program as configured (arguments may be secret and are left out).
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter the working directory {}", path.display())]
    Cwd {
        /// The directory as configured.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The reaper could not be started, or a pipe for it could not be made.
    #[error("cannot start the supervisor process for `{program}`")]
    Reaper {
        /// The program which it was to run.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The reaper ended before it had started the server.
    #[error("the supervisor process for `{program}` ended before it could start it")]
    ReaperEnded {
        /// The program which it was to run.
        program: String,
    },
    /// The reaper gave no answer in time; it has been told to end.
    #[error("`{program}` was not started within {waited:?}")]
    Timeout {
        /// The program which was to run.
        program: String,
        /// How long we waited.
        waited: Duration,
    },
}

/// Why a line was not queued.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SendError {
    /// The server has ended, is being stopped, or has closed its stdin.
    #[error("the server does not read any more")]
    Closed,
    /// The line holds a line feed, which would make two messages of one.
    #[error("a line must not hold a line feed")]
    LineFeed,
    /// The line is longer than may be written.
    #[error("a line of {bytes} bytes is over the limit of {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// A part of a line. Its text may be secret and is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Part(pub Bytes);

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part(<{} bytes>)", self.0.len())
    }
}

/// Why something on the server's stdout was not a line.
#[derive(Debug, Error)]
pub enum LineError {
    /// A part of a line that is longer than `line_bytes_max`: nobody holds the whole. Its other parts follow, then later lines.
    #[error("a line is over the limit of {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
        /// What comes next of it.
        part: Part,
        /// It is the last part. Of a line end that is CRLF the CR is in it.
        ends: bool,
    },
    /// The output ended in the middle of a line. `None` follows.
    #[error("the output ended after {bytes} bytes of an unfinished line")]
    Unfinished {
        /// How much of the line there was.
        bytes: usize,
    },
    /// The pipe cannot be read. `None` follows.
    #[error("cannot read the server's output")]
    Io(#[from] io::Error),
}

/// How a server ended. `Display` gives one line for logs and for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The program as configured.
    pub program: String,
    /// Its exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it. Neither code nor signal: the reaper was killed and nobody knows.
    pub signal: Option<i32>,
    /// The last lines of its stderr, only with [`crate::StderrSink::Log`]: at most 8 of at most 512 bytes.
    /// They are the server's words and may hold anything; not part of `Display`.
    pub stderr_tail: Vec<String>,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "`{}` exited with code {code}", self.program),
            (None, Some(signal)) => write!(f, "`{}` was ended by signal {signal}", self.program),
            (None, None) => write!(f, "`{}` ended together with its supervisor", self.program),
        }
    }
}
