//! Checking a whole log offline: every line, every link, every checkpoint, every index.
//!
//! What stands in the log's own directory can be forged together by whoever can write there; only a checkpoint that
//! was kept elsewhere shows that ([`verify_against`]). Checkpoints come every so many records or seconds, so the last
//! records of a log that is written, or whose writer was killed, have none yet. That they end where they ended then
//! nothing can say; it is reported, and a fault only where there would be one. May run while the log is written. Never
//! writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::checkpoint::{self, Checkpoint, CheckpointFile};
use crate::config::LogConfig;
use crate::frame;
use crate::index::{IndexBuilder, SegmentIndex};
use crate::merkle::Chain;
use crate::record::Record;
use crate::segment::{self, Header, Line, Lines, SegmentPaths};

/// Records after the last checkpoint that a writer with the default configuration can leave: it counts after each batch, and
/// one is at most what the queue holds.
const UNVOUCHED_MAX: u64 = LogConfig::CHECKPOINT_EVERY + LogConfig::QUEUE_MAX as u64;

/// What a checkpoint from elsewhere is called.
const GIVEN: &str = "given";

/// What a log without faults looks like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Oldest record still there: more than 0 after retention removed what was before.
    pub first_sequence: u64,
    /// How many records were ever written: sequences up to this one, not included.
    pub size: u64,
    /// Segments read.
    pub segments: usize,
    /// Checkpoints in the log's directory that were found right.
    pub checkpoints: usize,
    /// Given checkpoints that were found right.
    pub given_checked: usize,
    /// Given checkpoints which cover only records that retention has removed: nothing is left to compare.
    pub given_unchecked: usize,
    /// Records after the last checkpoint, from here or given: that there were no more nothing says.
    pub unvouched: u64,
    /// Root over all records: a new checkpoint to keep elsewhere.
    pub root: [u8; 32],
    /// Bytes of an unfinished write at the end, of a crash or of a write under way.
    pub torn_bytes: u64,
    /// The same of the last checkpoint file.
    pub torn_checkpoint_bytes: u64,
    /// Sealed segments without an index; it can be rebuilt.
    pub missing_indexes: usize,
}

impl Report {
    /// Whether nothing at all is odd, an unfinished write included.
    pub fn is_clean(&self) -> bool {
        self.torn_bytes == 0 && self.torn_checkpoint_bytes == 0 && self.missing_indexes == 0
    }
}

/// The first fault of a log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum VerifyError {
    /// This record was changed, or is not the one that belongs here.
    #[error("record {sequence} ({file}, byte {offset}): {what}")]
    Record {
        /// Segment.
        file: String,
        /// Sequence of the first bad record.
        sequence: u64,
        /// Where its line begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A segment does not begin as it should, so that this record and what follows cannot be trusted.
    #[error("record {sequence} ({file}): {what}")]
    Segment {
        /// Segment.
        file: String,
        /// First record that is affected.
        sequence: u64,
        /// What is wrong.
        what: String,
    },
    /// Records are sound one by one, but they are not those that were there: all were rewritten from some point on.
    #[error(
        "a record in {since}..{size} was changed: the root differs from the checkpoint at {size} ({origin})"
    )]
    Root {
        /// Up to here the roots agree.
        since: u64,
        /// Size of the checkpoint that does not.
        size: u64,
        /// Whose checkpoint.
        origin: String,
    },
    /// The log was cut or rolled back.
    #[error(
        "record {have} is missing: the log ends there, but a checkpoint covers {size} records ({origin})"
    )]
    CutShort {
        /// Records that are there.
        have: u64,
        /// Records that were there.
        size: u64,
        /// Whose checkpoint.
        origin: String,
    },
    /// Checkpoints that the writer left are gone, so that the end of the log may have been cut off.
    #[error(
        "no checkpoint covers the records {since}..{size}, and the writer would have left one ({file}): records may be \
         missing after {size}"
    )]
    Unvouched {
        /// Where the checkpoint would be.
        file: String,
        /// First record that no checkpoint covers.
        since: u64,
        /// Records that are there.
        size: u64,
    },
    /// A file beside the log is damaged; the records themselves are sound up to there.
    #[error("{file}: {what}; records before {sequence} are sound")]
    SideFile {
        /// Checkpoint file or index.
        file: String,
        /// First record of the segment it belongs to, or the first not checked.
        sequence: u64,
        /// What is wrong.
        what: String,
    },
    /// It could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// File or directory.
        path: PathBuf,
        /// Why.
        source: Arc<io::Error>,
    },
}

/// Checks the log in `dir`.
pub fn verify(dir: &Path) -> Result<Report, VerifyError> {
    verify_against(dir, &[])
}

/// Checks the log in `dir`, also against checkpoints that were kept elsewhere.
pub fn verify_against(dir: &Path, given: &[Checkpoint]) -> Result<Report, VerifyError> {
    // First of all: the writer puts it in place last, so that the others then have what it says.
    let newest = read_newest(dir)?;
    let covered = segment::list_covered(dir).map_err(|source| unreadable(dir, source))?;
    let segments = segment::list(dir).map_err(|source| unreadable(dir, source))?;
    let mut given = given.to_vec();
    given.sort_by_key(|checkpoint| checkpoint.size);
    let mut run = Run {
        given,
        newest,
        has_newest: newest.is_some(),
        ..Run::default()
    };
    let mut left = segments.as_slice();
    while let Some((paths, later)) = left.split_first() {
        left = later;
        match run.segment(paths, later.is_empty()) {
            // Removed by retention since it was listed.
            Err(VerifyError::Read { source, .. })
                if run.report.segments == 0
                    && !later.is_empty()
                    && source.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    if let Some(lost) = segment::lost_after(&covered, &segments) {
        let what = "the segment is gone; there are checkpoints of it".to_owned();
        return Err(VerifyError::Segment {
            file: lost.name(),
            sequence: run.chain.tree.size(),
            what,
        });
    }
    run.finish()
}

#[derive(Default)]
struct Run {
    chain: Chain,
    report: Report,
    given: Vec<Checkpoint>,
    /// How many of `given` are done with.
    given_done: usize,
    /// The newest checkpoint as of an opening, a seal or an end in order, until the log came so far.
    newest: Option<Checkpoint>,
    has_newest: bool,
    /// The last segment has a checkpoint.
    last_covered: bool,
    /// Size at which the last own checkpoint agreed. Says nothing to whoever holds one from elsewhere.
    own_agreed: u64,
    /// Size at which the last given checkpoint agreed.
    given_agreed: u64,
}

impl Run {
    fn segment(&mut self, paths: &SegmentPaths, last: bool) -> Result<(), VerifyError> {
        // Before the log: what they say then holds of the log that is read after, even if it is being written.
        let (checkpoints, index) = (read_checkpoints(paths, last)?, read_index(paths)?);
        let mut lines = Lines::open(&paths.log).map_err(|source| unreadable(&paths.log, source))?;
        self.header(paths, &mut lines)?;
        self.report.segments += 1;
        let newest = self.newest.map_or(0, |newest| newest.size);
        self.compare_given()?;
        self.compare_newest()?;
        let mut own = checkpoints.checkpoints.iter().peekable();
        let mut builder = IndexBuilder::new(paths.first);
        while let Some(line) = lines
            .next()
            .map_err(|source| unreadable(&paths.log, source))?
        {
            if !line.ended && last {
                self.report.torn_bytes = line.bytes.len() as u64;
                break;
            }
            builder.add(&self.record(paths, &line)?);
            let size = self.chain.tree.size();
            while let Some(checkpoint) = own.next_if(|checkpoint| checkpoint.size <= size) {
                self.compare_own(checkpoint, paths)?;
            }
            self.compare_given()?;
            self.compare_newest()?;
        }
        if let Some(checkpoint) = own.next() {
            let origin = segment::file_name(&paths.checkpoints());
            return Err(VerifyError::CutShort {
                have: self.chain.tree.size(),
                size: checkpoint.size,
                origin,
            });
        }
        let has = |size| checkpoints.checkpoints.iter().any(|own| own.size == size);
        if newest > paths.first && newest <= self.chain.tree.size() && !has(newest) {
            let what = format!("the checkpoint at {newest} is missing");
            let have = self.chain.tree.size();
            return Err(side_file(&paths.checkpoints(), have, &what));
        }
        self.last_covered = !checkpoints.checkpoints.is_empty();
        self.report.torn_checkpoint_bytes = checkpoints.torn_bytes as u64;
        let sealed_at = checkpoints
            .checkpoints
            .last()
            .map(|checkpoint| checkpoint.size);
        if !last && sealed_at != Some(self.chain.tree.size()) {
            let what = "the checkpoint of the sealed segment is missing";
            return Err(side_file(
                &paths.checkpoints(),
                self.chain.tree.size(),
                what,
            ));
        }
        self.index(paths, last, index, builder.finish(lines.offset()))
    }

    fn header(&mut self, paths: &SegmentPaths, lines: &mut Lines) -> Result<(), VerifyError> {
        let line = lines
            .next()
            .map_err(|source| unreadable(&paths.log, source))?;
        let fault = |what: String, sequence| VerifyError::Segment {
            file: paths.name(),
            sequence,
            what,
        };
        let header = match line {
            Some(Line {
                bytes, ended: true, ..
            }) => Header::from_line(bytes, paths.first),
            _ => Err("the header is missing".to_owned()),
        };
        let header = header.map_err(|what| fault(what, paths.first))?;
        if self.report.segments == 0 {
            let empty = Chain::default();
            if paths.first == 0 && header.chain != empty {
                return Err(fault(
                    "the header does not begin an empty log".to_owned(),
                    0,
                ));
            }
            self.report.first_sequence = paths.first;
            let removed = |checkpoint: &&Checkpoint| checkpoint.size < paths.first;
            self.report.given_unchecked = self.given.iter().take_while(removed).count();
            self.given_done = self.report.given_unchecked;
            // Nothing of a log vouches for what comes before its first segment.
            self.newest = self.newest.filter(|newest| newest.size >= paths.first);
            self.own_agreed = paths.first;
            self.chain = header.chain;
        } else if self.chain.tree.size() != paths.first {
            let what = format!(
                "it begins with record {}, those between are missing",
                paths.first
            );
            return Err(fault(what, self.chain.tree.size()));
        } else if self.chain != header.chain {
            return Err(fault(
                "the header does not continue the segment before".to_owned(),
                paths.first,
            ));
        }
        Ok(())
    }

    fn record(&mut self, paths: &SegmentPaths, line: &Line<'_>) -> Result<Record, VerifyError> {
        let sequence = self.chain.tree.size();
        let fault = |what: String| VerifyError::Record {
            file: paths.name(),
            sequence,
            offset: line.offset,
            what,
        };
        let frame = frame::decode(line.bytes).map_err(|error| fault(error.to_string()))?;
        let record: Record = serde_json::from_slice(frame.json)
            .map_err(|error| fault(format!("not a record: {error}")))?;
        if record.sequence != sequence {
            return Err(fault(format!(
                "record {} stands in its place",
                record.sequence
            )));
        }
        if !line.ended {
            return Err(fault("the line is cut short".to_owned()));
        }
        if !self.chain.push_if(frame.json, &frame.link) {
            return Err(fault(
                "the link to the record before does not match".to_owned(),
            ));
        }
        Ok(record)
    }

    fn compare_given(&mut self) -> Result<(), VerifyError> {
        while let Some(checkpoint) = self.given.get(self.given_done).copied() {
            if checkpoint.size > self.chain.tree.size() {
                break;
            }
            self.compare(&checkpoint, self.given_agreed, GIVEN)?;
            self.given_agreed = checkpoint.size;
            self.given_done += 1;
            self.report.given_checked += 1;
        }
        Ok(())
    }

    fn compare_newest(&mut self) -> Result<(), VerifyError> {
        let Some(newest) = self.newest.filter(|n| n.size <= self.chain.tree.size()) else {
            return Ok(());
        };
        let since = self.own_agreed.max(self.given_agreed);
        self.compare(&newest, since.min(newest.size), segment::LAST_FILE)?;
        self.own_agreed = self.own_agreed.max(newest.size);
        self.newest = None;
        Ok(())
    }

    fn compare_own(
        &mut self,
        checkpoint: &Checkpoint,
        paths: &SegmentPaths,
    ) -> Result<(), VerifyError> {
        let since = self.own_agreed.max(self.given_agreed);
        self.compare(checkpoint, since, &segment::file_name(&paths.checkpoints()))?;
        self.own_agreed = checkpoint.size;
        self.report.checkpoints += 1;
        Ok(())
    }

    fn compare(
        &self,
        checkpoint: &Checkpoint,
        since: u64,
        origin: &str,
    ) -> Result<(), VerifyError> {
        let size = self.chain.tree.size();
        if checkpoint.size == size && checkpoint.root == self.chain.tree.root() {
            return Ok(());
        }
        let since = since.min(checkpoint.size);
        Err(VerifyError::Root {
            since,
            size: checkpoint.size,
            origin: origin.to_owned(),
        })
    }

    fn index(
        &mut self,
        paths: &SegmentPaths,
        last: bool,
        index: Option<SegmentIndex>,
        rebuilt: SegmentIndex,
    ) -> Result<(), VerifyError> {
        match index {
            Some(index) if index != rebuilt => Err(side_file(
                &paths.index(),
                self.chain.tree.size(),
                "the index is not that of its segment",
            )),
            None if !last => {
                self.report.missing_indexes += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self) -> Result<Report, VerifyError> {
        let have = self.chain.tree.size();
        self.compare_given()?;
        if let Some(checkpoint) = self.given.get(self.given_done) {
            return Err(VerifyError::CutShort {
                have,
                size: checkpoint.size,
                origin: GIVEN.to_owned(),
            });
        }
        if let Some(newest) = self.newest {
            return Err(VerifyError::CutShort {
                have,
                size: newest.size,
                origin: segment::LAST_FILE.to_owned(),
            });
        }
        let since = self.own_agreed.max(self.given_agreed);
        self.report.unvouched = have.saturating_sub(since);
        // The writer leaves one before the first record, and one after so many.
        let none_at_all = !self.has_newest && !self.last_covered && self.report.unvouched > 0;
        if none_at_all || self.report.unvouched > UNVOUCHED_MAX {
            return Err(VerifyError::Unvouched {
                file: segment::LAST_FILE.to_owned(),
                since,
                size: have,
            });
        }
        self.report.size = have;
        self.report.root = self.chain.tree.root();
        Ok(self.report)
    }
}

fn read_checkpoints(paths: &SegmentPaths, last: bool) -> Result<CheckpointFile, VerifyError> {
    let path = paths.checkpoints();
    let bytes = read_if_there(&path)?.unwrap_or_default();
    let file = CheckpointFile::parse(&bytes).map_err(|offset| {
        side_file(
            &path,
            paths.first,
            &format!("the line at byte {offset} is damaged"),
        )
    })?;
    if file.torn_bytes > 0 && !last {
        return Err(side_file(&path, paths.first, "the last line is cut short"));
    }
    Ok(file)
}

fn read_newest(dir: &Path) -> Result<Option<Checkpoint>, VerifyError> {
    let path = dir.join(segment::LAST_FILE);
    let Some(bytes) = read_if_there(&path)? else {
        return Ok(None);
    };
    match checkpoint::parse_last(&bytes) {
        None => Err(side_file(&path, 0, "the checkpoint is damaged")),
        newest => Ok(newest),
    }
}

fn read_index(paths: &SegmentPaths) -> Result<Option<SegmentIndex>, VerifyError> {
    let path = paths.index();
    let Some(bytes) = read_if_there(&path)? else {
        return Ok(None);
    };
    match SegmentIndex::from_file(&bytes) {
        None => Err(side_file(&path, paths.first, "the index is damaged")),
        index => Ok(index),
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, VerifyError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unreadable(path, source)),
    }
}

fn side_file(path: &Path, sequence: u64, what: &str) -> VerifyError {
    VerifyError::SideFile {
        file: segment::file_name(path),
        sequence,
        what: what.to_owned(),
    }
}

fn unreadable(path: &Path, source: io::Error) -> VerifyError {
    VerifyError::Read {
        path: path.to_owned(),
        source: Arc::new(source),
    }
}

#[cfg(test)]
mod tests;
