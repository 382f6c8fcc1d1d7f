//! Frames: a length (u32, big-endian) and that many bytes. JSON, but for the chunks of an upload, which are bare bytes.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

/// The longest JSON frame, in bytes.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// The longest chunk of an upload, in bytes.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// Why a frame could not be read or written.
#[derive(Debug, Error)]
pub enum FrameError {
    /// The connection failed.
    #[error("the connection failed")]
    Io(#[from] io::Error),
    /// Longer than the bound.
    #[error("a frame of {bytes} bytes is over the limit of {bytes_max}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// No JSON of the expected shape. What was sent is not quoted: it may hold a secret.
    #[error("a frame is not understood, at line {line} column {column}")]
    Json {
        /// Line in the frame, from 1.
        line: usize,
        /// Column in the line, from 1.
        column: usize,
    },
    /// The other side ended between two frames.
    #[error("the connection was closed")]
    Closed,
}

impl From<serde_json::Error> for FrameError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json {
            line: error.line(),
            column: error.column(),
        }
    }
}

/// Writes one JSON frame and flushes.
///
/// # Errors
/// The connection failed, or the value is over [`FRAME_BYTES_MAX`].
pub async fn write<W: AsyncWrite + Unpin, T: Serialize>(
    to: &mut W,
    value: &T,
) -> Result<(), FrameError> {
    // A frame may carry a secret on its way in; the buffer is wiped.
    let mut bytes = Zeroizing::new(Vec::with_capacity(512));
    bytes.extend_from_slice(&[0; 4]);
    serde_json::to_writer(&mut *bytes, value)?;
    let len = bytes.len() - 4;
    bytes[..4].copy_from_slice(&length(len, FRAME_BYTES_MAX)?);
    to.write_all(&bytes).await?;
    to.flush().await?;
    Ok(())
}

/// Reads one JSON frame.
///
/// # Errors
/// [`FrameError::Closed`] if the other side ended in order; else what was wrong.
pub async fn read<R: AsyncRead + Unpin, T: DeserializeOwned>(
    from: &mut R,
) -> Result<T, FrameError> {
    let bytes = Zeroizing::new(read_bytes(from, FRAME_BYTES_MAX).await?);
    Ok(serde_json::from_slice(&bytes)?)
}

/// Writes one chunk of an upload; an empty one ends it.
///
/// # Errors
/// The connection failed, or the chunk is over [`CHUNK_BYTES_MAX`].
pub async fn write_chunk<W: AsyncWrite + Unpin>(
    to: &mut W,
    chunk: &[u8],
) -> Result<(), FrameError> {
    to.write_all(&length(chunk.len(), CHUNK_BYTES_MAX)?).await?;
    to.write_all(chunk).await?;
    to.flush().await?;
    Ok(())
}

/// Reads one chunk of an upload; an empty one is the end.
///
/// # Errors
/// The connection failed or ended, or the chunk is over [`CHUNK_BYTES_MAX`].
pub async fn read_chunk<R: AsyncRead + Unpin>(from: &mut R) -> Result<Vec<u8>, FrameError> {
    read_bytes(from, CHUNK_BYTES_MAX).await
}

fn length(bytes: usize, bytes_max: usize) -> Result<[u8; 4], FrameError> {
    match u32::try_from(bytes) {
        Ok(len) if bytes <= bytes_max => Ok(len.to_be_bytes()),
        _ => Err(FrameError::TooLong { bytes, bytes_max }),
    }
}

async fn read_bytes<R: AsyncRead + Unpin>(
    from: &mut R,
    bytes_max: usize,
) -> Result<Vec<u8>, FrameError> {
    let mut head = [0; 4];
    // An end before the first byte is an end in order; an end within the head is not.
    if from.read(&mut head[..1]).await? == 0 {
        return Err(FrameError::Closed);
    }
    from.read_exact(&mut head[1..]).await?;
    let bytes = u32::from_be_bytes(head) as usize;
    if bytes > bytes_max {
        return Err(FrameError::TooLong { bytes, bytes_max });
    }
    let mut body = vec![0; bytes];
    from.read_exact(&mut body).await?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hello, Request};

    #[tokio::test]
    async fn a_frame_cut_anywhere_is_an_error_and_whole_is_itself() {
        let mut wire = Vec::new();
        write(&mut wire, &Hello::of("test")).await.expect("written");
        for cut in 0..wire.len() {
            let got: Result<Hello, _> = read(&mut &wire[..cut]).await;
            match (cut, got) {
                (0, Err(FrameError::Closed)) => {}
                (1.., Err(FrameError::Io(error))) => {
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                }
                (_, other) => panic!("cut at {cut}: {other:?}"),
            }
        }
        let got: Hello = read(&mut wire.as_slice()).await.expect("read");
        assert_eq!(got, Hello::of("test"));
    }

    #[tokio::test]
    async fn lengths_have_a_bound_in_both_directions() {
        let head = u32::try_from(FRAME_BYTES_MAX + 1)
            .expect("fits")
            .to_be_bytes();
        let got: Result<Hello, _> = read(&mut head.as_slice()).await;
        assert!(matches!(got, Err(FrameError::TooLong { .. })), "{got:?}");
        let big = "x".repeat(FRAME_BYTES_MAX);
        assert!(matches!(
            write(&mut Vec::new(), &big).await,
            Err(FrameError::TooLong { .. })
        ));
        let chunk = vec![0; CHUNK_BYTES_MAX + 1];
        assert!(write_chunk(&mut Vec::new(), &chunk).await.is_err());
        let mut wire = Vec::new();
        write_chunk(&mut wire, &chunk[1..])
            .await
            .expect("at the bound");
        assert_eq!(
            read_chunk(&mut wire.as_slice()).await.expect("read").len(),
            CHUNK_BYTES_MAX
        );
    }

    #[tokio::test]
    async fn what_is_not_understood_is_not_quoted() {
        let mut wire = Vec::new();
        write(
            &mut wire,
            &serde_json::json!({"request": "set_secret", "value": "hunter2"}),
        )
        .await
        .expect("written");
        let error = read::<_, Request>(&mut wire.as_slice())
            .await
            .expect_err("no request");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
