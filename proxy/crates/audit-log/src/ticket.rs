//! The promise that a record is kept.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::log::AuditError;

/// Resolves when the record is as safe as asked for; a future for async callers, [`Ticket::wait`] for the others.
///
/// Dropping it takes nothing back: the record is written all the same.
#[derive(Debug)]
#[must_use = "an answer that must be audited is released only after its ticket resolves"]
pub struct Ticket {
    sequence: u64,
}

impl Ticket {
    /// The sequence the record got.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Blocks until the record is safe or the log has failed.
    pub fn wait(self) -> Result<(), AuditError> {
        Err(AuditError::Closed)
    }
}

impl Future for Ticket {
    type Output = Result<(), AuditError>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err(AuditError::Closed))
    }
}
