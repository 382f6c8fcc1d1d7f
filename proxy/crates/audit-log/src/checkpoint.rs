//! Checkpoints: the root of the log at a size, to be kept where the log's host cannot rewrite it.
//!
//! On disk there is one checkpoint file beside each segment. Outside, a checkpoint travels as the text that
//! transparency logs agree on (C2SP `tlog-checkpoint`): origin, size, root. Signatures are lines after the empty
//! line of that text; nothing here makes or checks them yet, readers pass them over.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::frame;
use crate::hex;
use crate::merkle::{Hash, Tree};

const TIME_LINE: &str = "time-unix-us ";

/// The root of the log at a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// How many records it covers: sequences `0..size`.
    pub size: u64,
    /// Merkle tree hash of those records (RFC 6962).
    #[serde(with = "root_hex")]
    pub root: [u8; 32],
    /// When it was taken. Data only.
    pub time_unix_us: u64,
}

/// Text that is not a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a checkpoint: expected the lines origin, size, root in base64")]
pub struct BadCheckpoint;

impl Checkpoint {
    pub(crate) fn of(tree: &Tree, time_unix_us: u64) -> Self {
        Checkpoint {
            size: tree.size(),
            root: tree.root(),
            time_unix_us,
        }
    }

    /// The text to keep elsewhere. `origin` names the log; it must be one line.
    ///
    /// ```
    /// use audit_log::Checkpoint;
    /// let checkpoint = Checkpoint { size: 3, root: [7; 32], time_unix_us: 1 };
    /// let note = checkpoint.to_note("example.org/weir");
    /// assert_eq!(Checkpoint::from_note(&note), Ok(checkpoint));
    /// ```
    pub fn to_note(&self, origin: &str) -> String {
        let origin = origin.replace(['\n', '\r'], " ");
        let root = BASE64_STANDARD.encode(self.root);
        format!(
            "{origin}\n{}\n{root}\n{TIME_LINE}{}\n",
            self.size, self.time_unix_us
        )
    }

    /// Reads such a text; lines it does not know, signatures among them, are passed over.
    pub fn from_note(note: &str) -> Result<Self, BadCheckpoint> {
        let mut lines = note.lines();
        let (_origin, size, root) = (lines.next(), lines.next(), lines.next());
        let size = size
            .and_then(|size| size.parse().ok())
            .ok_or(BadCheckpoint)?;
        let root = root
            .and_then(|root| BASE64_STANDARD.decode(root).ok())
            .ok_or(BadCheckpoint)?;
        let root: Hash = root.try_into().map_err(|_| BadCheckpoint)?;
        let mut extensions = lines.take_while(|line| !line.is_empty());
        let time = extensions.find_map(|line| line.strip_prefix(TIME_LINE)?.parse().ok());
        Ok(Checkpoint {
            size,
            root,
            time_unix_us: time.unwrap_or(0),
        })
    }

    pub(crate) fn to_line(self) -> Vec<u8> {
        let json = serde_json::to_vec(&self).expect("numbers and text serialise");
        frame::sealed_line(&json)
    }

    pub(crate) fn from_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(frame::checked(line).ok()?).ok()
    }
}

/// The checkpoints of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointFile {
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// Bytes up to the end of the last sound line.
    pub(crate) sound_bytes: usize,
    /// Bytes after it, when they are an unfinished last line.
    pub(crate) torn_bytes: usize,
}

impl CheckpointFile {
    /// Reads a file; the error is the offset of a line that is damaged and not merely unfinished.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let mut file = CheckpointFile::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n").map(Checkpoint::from_line) {
                Some(Some(checkpoint)) => {
                    file.checkpoints.push(checkpoint);
                    file.sound_bytes += line.len();
                }
                Some(None) => return Err(file.sound_bytes),
                None => file.torn_bytes = line.len(),
            }
        }
        Ok(file)
    }
}

/// Reads the file that holds the newest checkpoint alone. It is put in place whole: `None` is one that is damaged.
pub(crate) fn parse_last(bytes: &[u8]) -> Option<Checkpoint> {
    let file = CheckpointFile::parse(bytes).ok()?;
    match file.checkpoints[..] {
        [last] if file.torn_bytes == 0 => Some(last),
        _ => None,
    }
}

mod root_hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(root: &[u8; 32], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&super::hex::encode(root))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(input)?;
        super::hex::decode_array(text.as_bytes())
            .ok_or_else(|| D::Error::custom("expected 64 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Checkpoint = Checkpoint {
        size: 1,
        root: [1; 32],
        time_unix_us: 5,
    };

    #[test]
    fn notes_with_and_without_extras_are_read() {
        let note = ONE.to_note("a\nb");
        assert_eq!(note.lines().next(), Some("a b"));
        let signed = format!("{note}\n\u{2014} key AAAA\n");
        for text in [note, signed] {
            assert_eq!(Checkpoint::from_note(&text), Ok(ONE));
        }
        for text in ["", "a\n1\n", "a\nx\nAQ==\n", "a\n1\nAQ==\n", "a\n-1\n"] {
            assert_eq!(Checkpoint::from_note(text), Err(BadCheckpoint), "{text:?}");
        }
    }

    #[test]
    fn an_unfinished_last_line_is_torn_and_a_bad_line_before_it_is_damage() {
        let two = [ONE.to_line(), ONE.to_line()].concat();
        let line = two.len() / 2;
        for cut in 0..two.len() {
            let file = CheckpointFile::parse(&two[..cut]).unwrap();
            assert_eq!(
                (file.checkpoints.len(), file.torn_bytes),
                (cut / line, cut % line)
            );
        }
        let mut bad = two.clone();
        bad[line + 12] ^= 1;
        assert_eq!(CheckpointFile::parse(&bad), Err(line));
    }
}
