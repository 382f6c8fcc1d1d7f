//! Bodies that are too long to be held, piece by piece.

use std::sync::Arc;

use bytes::Bytes;
use pingora_core::protocols::http::client::HttpSession;

use super::http::{Framing, Resolved, io_fault};
use super::{Answer, Fault, HttpLink, Oversize, UpstreamHeaders, Verb};
use crate::pipeline::{Passed, ToServer};

/// The body of an answer that nobody has judged yet.
pub struct LongBody {
    begun: Option<Bytes>,
    session: HttpSession,
    resolved: Arc<Resolved>,
    bytes_left: u64,
    ended: bool,
}

impl std::fmt::Debug for LongBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LongBody")
    }
}

impl LongBody {
    pub(super) fn new(
        begun: Bytes,
        session: HttpSession,
        resolved: Arc<Resolved>,
        bytes_max: u64,
    ) -> Self {
        Self {
            bytes_left: bytes_max.saturating_sub(begun.len() as u64),
            begun: Some(begun),
            session,
            resolved,
            ended: false,
        }
    }

    /// What was read before it was known to be long; once.
    pub fn take_begun(&mut self) -> Bytes {
        self.begun.take().unwrap_or_default()
    }

    /// The next piece, or `None` at the end. Reads no faster than it is asked.
    ///
    /// # Errors
    /// The upstream broke off, fell silent, or sends more than allowed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let read = self.session.read_response_body().await;
        let Some(piece) = read.map_err(|e| io_fault(&e))? else {
            self.ended = true;
            return Ok(None);
        };
        self.bytes_left = self
            .bytes_left
            .checked_sub(piece.len() as u64)
            .ok_or(Fault::Broken("an answer above limits.streamed_bytes_max"))?;
        Ok(Some(piece))
    }

    pub(super) fn into_ended(self) -> Option<(HttpSession, Arc<Resolved>)> {
        self.ended.then_some((self.session, self.resolved))
    }
}

/// A request whose body goes up piece by piece. Dropped before its end, the connection breaks off and the server sees a
/// body that is not whole.
pub struct Upload {
    session: HttpSession,
    resolved: Arc<Resolved>,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upload")
    }
}

impl Upload {
    /// Sends the next piece; waits until the server takes it.
    ///
    /// # Errors
    /// The server is gone or does not read.
    pub async fn write(&mut self, piece: &Passed<ToServer>) -> Result<(), Fault> {
        if piece.bytes().is_empty() {
            return Ok(());
        }
        let write = self
            .session
            .write_request_body(piece.bytes().clone(), false);
        write.await.map_err(|e| io_fault(&e))
    }
}

impl HttpLink {
    /// Begins a POST.
    ///
    /// # Errors
    /// As for [`HttpLink::send`].
    pub async fn begin_upload(&self, headers: &UpstreamHeaders) -> Result<Upload, Fault> {
        if self.is_hosted() {
            return Err(Fault::TooLarge(Oversize::Off));
        }
        let (mut session, resolved) = self.connect(true).await?;
        let path = &self.target().path;
        let request = self.request(path, Verb::Post, headers, Some(Framing::Chunked))?;
        let write = session.write_request_header(Box::new(request));
        write.await.map_err(|e| io_fault(&e))?;
        Ok(Upload { session, resolved })
    }

    /// Ends the request and reads its answer as [`HttpLink::send`] does.
    ///
    /// # Errors
    /// The same.
    pub async fn finish_upload(&self, upload: Upload) -> Result<Answer, Fault> {
        let Upload {
            mut session,
            resolved,
        } = upload;
        let finish = session.finish_request_body();
        finish.await.map_err(|e| io_fault(&e))?;
        self.read_answer(session, resolved).await
    }
}
