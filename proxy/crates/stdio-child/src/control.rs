//! The words between this process and a reaper, over one socket pair. The socket's end of file is a
//! word too: to the reaper it says that we died, to us that the reaper did.
//!
//! ```text
//!  us -> reaper   'I' + stdin descriptor   once, before the reaper runs
//!                 'T'                      end the server politely
//!                 'K'                      end it now
//!  reaper -> us   Report, 5 bytes each
//! ```

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, UnixAddr, sendmsg};

/// Asks the reaper for SIGTERM, then SIGKILL after its grace.
pub(crate) const TERMINATE: u8 = b'T';
/// Asks the reaper for SIGKILL at once.
pub(crate) const KILL: u8 = b'K';
/// Length of an encoded [`Report`].
pub(crate) const REPORT_BYTES: usize = 5;

/// What a reaper tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The server's program runs; its process id.
    Started(i32),
    /// The reaper could not set itself up; errno.
    SetupFailed(i32),
    /// The working directory cannot be entered; errno.
    CwdFailed(i32),
    /// The program cannot be executed; errno.
    ProgramFailed(i32),
    /// The server exited with this code. Its descendants may live on for a moment.
    Exited(i32),
    /// The server was ended by this signal.
    Signaled(i32),
    /// Nothing is left; the reaper ends now. Without this word the reaper was killed.
    Done,
}

impl Report {
    pub(crate) fn encode(self) -> [u8; REPORT_BYTES] {
        let (tag, value) = match self {
            Self::Started(pid) => (b's', pid),
            Self::SetupFailed(errno) => (b'u', errno),
            Self::CwdFailed(errno) => (b'c', errno),
            Self::ProgramFailed(errno) => (b'p', errno),
            Self::Exited(code) => (b'e', code),
            Self::Signaled(signal) => (b'g', signal),
            Self::Done => (b'd', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(crate) fn decode([tag, a, b, c, d]: [u8; REPORT_BYTES]) -> Option<Self> {
        let value = i32::from_le_bytes([a, b, c, d]);
        Some(match tag {
            b's' => Self::Started(value),
            b'u' => Self::SetupFailed(value),
            b'c' => Self::CwdFailed(value),
            b'p' => Self::ProgramFailed(value),
            b'e' => Self::Exited(value),
            b'g' => Self::Signaled(value),
            b'd' => Self::Done,
            _ => return None,
        })
    }
}

/// Puts `fd` into the socket's buffer, where it stays open until the reaper takes it or ends.
pub(crate) fn send_fd(socket: &UnixStream, fd: BorrowedFd<'_>) -> io::Result<()> {
    let fds = [fd.as_raw_fd()];
    sendmsg::<UnixAddr>(
        socket.as_raw_fd(),
        &[IoSlice::new(b"I")],
        &[ControlMessage::ScmRights(&fds)],
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_survive_the_wire() {
        for report in [
            Report::Started(i32::MAX),
            Report::SetupFailed(22),
            Report::CwdFailed(2),
            Report::ProgramFailed(13),
            Report::Exited(255),
            Report::Exited(-1),
            Report::Signaled(9),
            Report::Done,
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Report::decode([0, 1, 2, 3, 4]), None);
    }

    #[test]
    fn a_descriptor_goes_over() {
        use std::io::{Read, Write};
        use std::os::fd::AsFd;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        send_fd(&ours, reader.as_fd()).unwrap();
        drop(reader);
        let mut received = std::fs::File::from(crate::sys::receive_fd(&theirs).unwrap());
        writer.write_all(b"through").unwrap();
        drop(writer);
        let mut text = String::new();
        received.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        // A byte without a descriptor, and a closed socket, are errors.
        (&ours).write_all(b"I").unwrap();
        let kind = |result: io::Result<_>| result.unwrap_err().kind();
        assert_eq!(
            kind(crate::sys::receive_fd(&theirs)),
            io::ErrorKind::InvalidData
        );
        drop(ours);
        assert_eq!(
            kind(crate::sys::receive_fd(&theirs)),
            io::ErrorKind::UnexpectedEof
        );
    }
}
