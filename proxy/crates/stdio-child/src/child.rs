//! The handle to one running server.

use bytes::Bytes;

use crate::{ChildSpec, Exit, LineError, SendError, SpawnError};

/// One running server. Dropping it stops the server in the background, as [`Child::stop`] does.
#[derive(Debug)]
pub struct Child {
    _private: (),
}

impl Child {
    /// Starts the server; returns when its program has been executed.
    pub async fn spawn(spec: &ChildSpec) -> Result<(Child, LineReceiver), SpawnError> {
        Err(SpawnError::ReaperEnded {
            program: spec.program.to_string_lossy().into_owned(),
        })
    }

    /// Queues `line` and a line feed for the server's stdin; waits while the queue is full. Once this
    /// returns `Ok` the line is written whole or not at all, also if the caller goes away.
    pub async fn send(&self, _line: Bytes) -> Result<(), SendError> {
        Err(SendError::Closed)
    }

    /// Whether the server has not been seen to end yet.
    pub fn is_alive(&self) -> bool {
        false
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        0
    }

    /// Ends the server and all it started: stdin is closed; after the grace SIGTERM to all;
    /// after another grace SIGKILL to all. Returns when all are gone. May be called again, from anywhere.
    pub async fn stop(&self) -> Exit {
        self.exited().await
    }

    /// Resolves when the server and everything it started are gone. Does not borrow the child.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + 'static {
        std::future::pending()
    }
}

/// The server's stdout as lines. Nothing is read ahead of [`LineReceiver::recv`] but one chunk: a slow
/// reader makes the server wait.
#[derive(Debug)]
pub struct LineReceiver {
    _private: (),
}

impl LineReceiver {
    /// The next line without its line end (LF or CRLF); `None` at the end of the output. Empty lines
    /// and bad UTF-8 are left to the caller. Cancel safe.
    pub async fn recv(&mut self) -> Option<Result<Bytes, LineError>> {
        None
    }
}
