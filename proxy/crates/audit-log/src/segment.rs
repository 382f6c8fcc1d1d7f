//! Segments on disk: names, the header line, and reading lines while they may still be written.
//!
//! ```text
//! audit-00000000000000000000.log    header line, then one line per record; only ever appended to
//! audit-00000000000000000000.ckpt   checkpoints taken while it was written
//! audit-00000000000000000000.idx    index, once it is sealed
//! audit-last.ckpt                   the newest checkpoint as of an opening, a seal or an end in order
//! lock                              held by the one process that writes
//! ```
//!
//! The header repeats the tree's frontier before the segment's first record, so that a segment can be continued and
//! checked after those before it have been removed. Never writes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::frame::{self, LINE_BYTES_MAX};
use crate::hex;
use crate::merkle::{Chain, Tree};

pub(crate) const LOCK_FILE: &str = "lock";
/// Holds the newest time that the log believes, in microseconds since 1970.
pub(crate) const CLOCK_FILE: &str = "clock";
/// Holds the newest checkpoint as of an opening, a seal or an end in order.
pub(crate) const LAST_FILE: &str = "audit-last.ckpt";
pub(crate) const TEMPORARY: &str = "tmp";

const VERSION: u32 = 1;
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Files of the segment that begins with a sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentPaths {
    pub(crate) first: u64,
    pub(crate) log: PathBuf,
}

impl SegmentPaths {
    pub(crate) fn new(dir: &Path, first: u64) -> Self {
        SegmentPaths {
            first,
            log: dir.join(format!("audit-{first:020}.log")),
        }
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.log.with_extension("ckpt")
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.log.with_extension("idx")
    }

    /// Name of the log file, for people.
    pub(crate) fn name(&self) -> String {
        file_name(&self.log)
    }
}

/// The file's name without its directory.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The segments in `dir`, oldest first.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<SegmentPaths>> {
    list_files(dir, ".log")
}

/// The segments that have a checkpoint, whether their log is still there or not, oldest first.
///
/// A log is in place before its first checkpoint: so if this is called before [`list`], a segment that is only here
/// has lost its log.
pub(crate) fn list_covered(dir: &Path) -> io::Result<Vec<SegmentPaths>> {
    let mut covered = list_files(dir, ".ckpt")?;
    covered.retain(|paths| std::fs::metadata(paths.checkpoints()).is_ok_and(|data| data.len() > 0));
    Ok(covered)
}

/// The last of `covered` if it comes after all of `segments`.
pub(crate) fn lost_after<'c>(
    covered: &'c [SegmentPaths],
    segments: &[SegmentPaths],
) -> Option<&'c SegmentPaths> {
    covered
        .last()
        .filter(|last| Some(last.first) > segments.last().map(|segment| segment.first))
}

fn list_files(dir: &Path, suffix: &str) -> io::Result<Vec<SegmentPaths>> {
    let mut segments = Vec::new();
    for entry in dir.read_dir()? {
        let name = entry?.file_name();
        let digits = name
            .to_str()
            .and_then(|name| name.strip_prefix("audit-")?.strip_suffix(suffix));
        let first = digits
            .filter(|digits| digits.len() == 20)
            .and_then(|digits| digits.parse().ok());
        segments.extend(first.map(|first| SegmentPaths::new(dir, first)));
    }
    segments.sort_unstable();
    Ok(segments)
}

/// The first line of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The log up to the segment's first record.
    pub(crate) chain: Chain,
    /// When the segment was made. Data only.
    pub(crate) created_unix_us: u64,
}

#[derive(Serialize, Deserialize)]
struct RawHeader {
    segment: RawSegment,
}

#[derive(Serialize, Deserialize)]
struct RawSegment {
    version: u32,
    first: u64,
    created_unix_us: u64,
    frontier: Vec<String>,
}

impl Header {
    pub(crate) fn to_line(&self) -> Vec<u8> {
        let tree = &self.chain.tree;
        let segment = RawSegment {
            version: VERSION,
            first: tree.size(),
            created_unix_us: self.created_unix_us,
            frontier: tree
                .frontier()
                .iter()
                .map(|hash| hex::encode(hash))
                .collect(),
        };
        let mut line = Vec::new();
        let start = frame::begin(&mut line);
        serde_json::to_writer(&mut line, &RawHeader { segment })
            .expect("numbers and text serialise into memory");
        frame::finish(&mut line, start, &self.chain.link);
        line
    }

    /// Reads a header line (without its newline) of the segment that begins with `first`; the error says what is
    /// wrong.
    pub(crate) fn from_line(line: &[u8], first: u64) -> Result<Self, String> {
        let frame = frame::decode(line).map_err(|error| error.to_string())?;
        let raw: RawHeader =
            serde_json::from_slice(frame.json).map_err(|_| "not a segment header".to_owned())?;
        let segment = raw.segment;
        if segment.version != VERSION {
            return Err(format!("format version {} is not known", segment.version));
        }
        if segment.first != first {
            return Err(format!(
                "the header says that record {} comes first",
                segment.first
            ));
        }
        let hashes: Option<Vec<_>> = segment
            .frontier
            .iter()
            .map(|text| hex::decode_array(text.as_bytes()))
            .collect();
        let tree = hashes
            .and_then(|hashes| Tree::from_parts(first, hashes))
            .ok_or("the frontier does not fit")?;
        Ok(Header {
            chain: Chain {
                tree,
                link: frame.link,
            },
            created_unix_us: segment.created_unix_us,
        })
    }
}

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Where it begins.
    pub(crate) offset: u64,
    /// Its bytes without the newline; of an overlong line only the beginning.
    pub(crate) bytes: &'a [u8],
    /// Whether its newline is there: if not, it is unfinished, or still being written.
    pub(crate) ended: bool,
}

/// Reads a file line by line, with bounded memory.
#[derive(Debug)]
pub(crate) struct Lines {
    file: BufReader<File>,
    offset: u64,
    line: Vec<u8>,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Lines::from_file(File::open(path)?))
    }

    /// Reads on from where the file stands, which counts as offset 0.
    pub(crate) fn from_file(file: File) -> Self {
        Lines {
            file: BufReader::with_capacity(READ_BUFFER_BYTES, file),
            offset: 0,
            line: Vec::new(),
        }
    }

    /// Where the next line begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes to where a line begins; an unfinished line can so be read again.
    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        Ok(())
    }

    /// The next line; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let offset = self.offset;
        let mut ended = false;
        while !ended {
            let chunk = self.file.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            let newline = memchr::memchr(b'\n', chunk);
            let text = &chunk[..newline.unwrap_or(chunk.len())];
            let room = LINE_BYTES_MAX + 1 - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            let used = text.len() + usize::from(newline.is_some());
            ended = newline.is_some();
            self.file.consume(used);
            self.offset += used as u64;
        }
        Ok((self.offset > offset).then_some(Line {
            offset,
            bytes: &self.line,
            ended,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn headers_come_back_and_refuse_another_segment() {
        let mut chain = Chain::default();
        for n in 0_u8..7 {
            chain.push(&[n]);
        }
        let header = Header {
            chain,
            created_unix_us: 9,
        };
        let line = header.to_line();
        let line = line.strip_suffix(b"\n").unwrap();
        assert_eq!(Header::from_line(line, 7), Ok(header));
        assert!(Header::from_line(line, 8).unwrap_err().contains("record 7"));
        assert!(Header::from_line(&line[1..], 7).is_err());
    }

    #[test]
    fn only_segments_are_listed_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "audit-00000000000000000120.log",
            "audit-00000000000000000003.log",
            "audit-3.log",
            "lock",
            "x.log",
        ];
        for name in names {
            File::create(dir.path().join(name)).unwrap();
        }
        let firsts: Vec<u64> = list(dir.path())
            .unwrap()
            .iter()
            .map(|segment| segment.first)
            .collect();
        assert_eq!(firsts, [3, 120]);
    }

    #[test]
    fn lines_are_bounded_and_unfinished_ones_say_so() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let long = vec![b'x'; LINE_BYTES_MAX * 2];
        file.write_all(b"one\n\n").unwrap();
        file.write_all(&long).unwrap();
        file.write_all(b"\ntail").unwrap();
        let mut lines = Lines::open(file.path()).unwrap();
        assert_eq!(
            lines.next().unwrap(),
            Some(Line {
                offset: 0,
                bytes: b"one",
                ended: true
            })
        );
        assert_eq!(
            lines.next().unwrap(),
            Some(Line {
                offset: 4,
                bytes: b"",
                ended: true
            })
        );
        let line = lines.next().unwrap().unwrap();
        assert_eq!(
            (line.offset, line.bytes.len(), line.ended),
            (5, LINE_BYTES_MAX + 1, true)
        );
        let tail = 6 + long.len() as u64;
        assert_eq!(
            lines.next().unwrap(),
            Some(Line {
                offset: tail,
                bytes: b"tail",
                ended: false
            })
        );
        assert_eq!(lines.next().unwrap(), None);
        lines.seek(tail).unwrap();
        assert_eq!(
            lines.next().unwrap(),
            Some(Line {
                offset: tail,
                bytes: b"tail",
                ended: false
            })
        );
    }
}
