//! One running stdio MCP server: lines go in, lines come out, and nothing outlives it.
//!
//! ```text
//!  gateway                           this process | other processes
//!  Child::send ----> queue --> stdin pipe --------|------------> server --> its children
//!  LineReceiver <--- decoder <-- stdout pipe <----|-------------'
//!  Child::stop ----> driver task <== control ==== | ===> reaper (parent of all of them)
//! ```
//!
//! The server is never a direct child of this process. Between the two stands a *reaper*: the same
//! program run again with a hidden sub-command ([`REAPER_COMMAND`]), which starts the server, adopts
//! every process that the server leaves behind, and ends all of them when it is told to or when
//! this process dies, however it dies. The reaper touches no message: the server inherits the pipes.
//!
//! What this crate never does: look into a line, restart a server by itself (see [`Backoff`] for the
//! waiting times), or hold more than the written bounds of input or output.
//!
//! Linux only: it rests on child subreapers, `signalfd` and `/proc`.

mod backoff;
mod child;
mod control;
mod driver;
mod error;
mod line;
mod procfs;
mod reaper;
mod spec;
mod stderr;
mod sweep;
mod sys;

pub use backoff::{Backoff, BackoffPolicy};
pub use child::{Child, keep_open_files_of_servers};
pub use error::{Exit, LineError, Part, SendError, SpawnError};
pub use line::LineReceiver;
pub use reaper::reaper_main;
pub use spec::{ChildSpec, REAPER_COMMAND, ReaperMode, StderrSink};
