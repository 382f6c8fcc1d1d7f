//! Opening a log, at the start or after a fault: takes the lock, reads the last segment, drops what an interrupted write
//! left at its end.
//!
//! What a checkpoint covers was whole once; if it is not any more, that is damage and the log is not opened. Whatever
//! lies after the last checkpoint and does not fit can be the trace of a crash: it is cut off. Should sound records
//! follow it (a power cut can lose pages in any order), the cut bytes are kept beside the log.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _};
use std::path::Path;

use crate::checkpoint::{self, Checkpoint, CheckpointFile};
use crate::clock;
use crate::config::{AuditError, LogConfig, Recovery};
use crate::files::{self, Disk};
use crate::frame;
use crate::index::IndexBuilder;
use crate::merkle::Chain;
use crate::record::Record;
use crate::segment::{self, Header, Line, Lines, SegmentPaths};
use crate::store::{Failed, Found, Live, Store};

/// More than any time has digits.
const KEPT_TIME_BYTES_MAX: u64 = 64;

/// Opens the log for writing.
pub(crate) fn open(config: LogConfig, disk: Disk) -> Result<(Store, Recovery), AuditError> {
    disk.make_dir(&config.dir)?;
    let lock = take_lock(&disk, &config.dir)?;
    take_over(config, disk, lock, None)
}

/// Opens a log again after a fault of the disk, once that has room.
///
/// What is on disk counts, as after a crash. Where the segment that was written is not there any more, one is begun that
/// goes on after the last record that may have been acknowledged: it shows that those before it are missing.
pub(crate) fn again(failed: &mut Failed) -> Result<(Store, Recovery), AuditError> {
    let (config, disk) = (failed.config.clone(), failed.disk.clone());
    disk.make_dir(&config.dir)?;
    let path = config.dir.join(segment::LOCK_FILE);
    if !files::is_at(&failed.lock, &path).unwrap_or(false) {
        failed.lock = take_lock(&disk, &config.dir)?;
    }
    // The lock is the open file's, which both have then.
    let lock = disk.read(&path, || failed.lock.try_clone())?;
    take_over(config, disk, lock, Some(failed))
}

fn take_over(
    config: LogConfig,
    disk: Disk,
    lock: File,
    failed: Option<&Failed>,
) -> Result<(Store, Recovery), AuditError> {
    remove_temporary(&disk, &config.dir)?;
    if failed.is_some() {
        disk.try_room(&config.dir)?;
    }
    let (covered, segments) = disk.read(&config.dir, || {
        Ok((
            segment::list_covered(&config.dir)?,
            segment::list(&config.dir)?,
        ))
    })?;
    if let Some(lost) = segment::lost_after(&covered, &segments) {
        return Err(damaged(
            lost,
            lost.first,
            "the segment is gone; there are checkpoints of it".to_owned(),
        ));
    }
    let kept_last = read_last(&disk, &config.dir)?;
    let mut recovery = Recovery {
        segments: segments.len().max(1),
        ..Recovery::default()
    };
    let mut found = match (segments.last(), failed) {
        (Some(last), None) => resume(&disk, last, kept_last, &mut recovery)?,
        (Some(last), Some(failed)) if last.first >= failed.live_first => {
            disk.rewrite(&last.log)?;
            disk.sync_dir(&config.dir)?;
            resume(&disk, last, kept_last, &mut recovery)?
        }
        (None, None) => {
            not_covered(kept_last, 0)?;
            begin(&disk, &config.dir, Chain::default())?
        }
        (_, Some(failed)) => {
            not_covered(kept_last, failed.kept_size())?;
            begin(&disk, &config.dir, failed.kept.clone())?
        }
    };
    found.kept_us = kept_time(&disk, &config.dir)?;
    let mut store = Store::new(config, disk, lock, found);
    recovery.next_sequence = store.size();
    store.finish()?;
    Ok((store, recovery))
}

fn take_lock(disk: &Disk, dir: &Path) -> Result<File, AuditError> {
    let path = dir.join(segment::LOCK_FILE);
    let lock = disk.open_append(&path)?;
    let taken = disk.read(&path, || match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    })?;
    if taken {
        Ok(lock)
    } else {
        Err(AuditError::InUse {
            dir: dir.to_owned(),
        })
    }
}

/// Files that were being put in place when the last writer ended.
fn remove_temporary(disk: &Disk, dir: &Path) -> Result<(), AuditError> {
    let names = disk.read(dir, || {
        dir.read_dir()?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<_>, _>>()
    })?;
    for path in names.iter().filter(|path| {
        path.extension()
            .is_some_and(|end| end == segment::TEMPORARY)
    }) {
        disk.remove(path)?;
    }
    Ok(())
}

/// The time in the file that keeps it; one that is no number counts as none.
fn kept_time(disk: &Disk, dir: &Path) -> Result<Option<u64>, AuditError> {
    let path = dir.join(segment::CLOCK_FILE);
    let text = disk.read(&path, || match File::open(&path) {
        Ok(file) => {
            let mut text = Vec::new();
            file.take(KEPT_TIME_BYTES_MAX).read_to_end(&mut text)?;
            Ok(text)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    })?;
    let text = str::from_utf8(&text).unwrap_or_default();
    Ok(text.trim().parse().ok())
}

/// The newest checkpoint as of an opening, a seal or an end in order; a log of an older version has none.
fn read_last(disk: &Disk, dir: &Path) -> Result<Option<Checkpoint>, AuditError> {
    let path = dir.join(segment::LAST_FILE);
    let bytes = disk.read(&path, || match fs::read(&path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    })?;
    let Some(bytes) = bytes else { return Ok(None) };
    match checkpoint::parse_last(&bytes) {
        None => Err(damaged_last(0, "the checkpoint is damaged".to_owned())),
        last => Ok(last),
    }
}

/// A log that begins after so many records may not be one that had more.
fn not_covered(last: Option<Checkpoint>, begins: u64) -> Result<(), AuditError> {
    match last {
        Some(last) if last.size > begins => Err(damaged_last(
            begins,
            format!("the records are gone; the checkpoint covers {}", last.size),
        )),
        _ => Ok(()),
    }
}

fn damaged_last(sequence: u64, what: String) -> AuditError {
    AuditError::Damaged {
        file: segment::LAST_FILE.into(),
        sequence,
        what: what.into(),
    }
}

/// Begins a segment after `chain`, with nothing before it in the folder that it would go on from.
fn begin(disk: &Disk, dir: &Path, chain: Chain) -> Result<Found, AuditError> {
    let live = Live::create(disk, dir, &chain)?;
    let checkpoint = Checkpoint::of(&chain.tree, clock::unix_us());
    Ok(Found {
        live,
        chain,
        checkpoint,
        kept_us: None,
    })
}

fn resume(
    disk: &Disk,
    paths: &SegmentPaths,
    kept_last: Option<Checkpoint>,
    recovery: &mut Recovery,
) -> Result<Found, AuditError> {
    let checkpoints = read_checkpoints(disk, paths)?;
    let mut all = checkpoints.checkpoints.clone();
    all.extend(kept_last.filter(|last| last.size > paths.first));
    all.sort_by_key(|checkpoint| checkpoint.size);
    let mut scan = Scan::begin(disk, paths)?;
    let checkpoint = Checkpoint::of(&scan.chain.tree, scan.header.created_unix_us);
    let torn = scan.run(disk, &all)?;
    let checkpoint = checkpoints
        .checkpoints
        .last()
        .copied()
        .unwrap_or(checkpoint);
    let next = scan.chain.tree.size();
    let covered = all.last().map_or(0, |checkpoint| checkpoint.size);
    if covered > next {
        let what = format!("the record is gone or changed; a checkpoint covers {covered} records");
        return Err(damaged(paths, next, what));
    }
    let length = disk.read(&paths.log, || Ok(fs::metadata(&paths.log)?.len()))?;
    recovery.torn_bytes = length - scan.sound_bytes;
    if recovery.torn_bytes > 0 {
        if torn == Torn::BeforeSoundLines {
            keep_cut(disk, paths, scan.sound_bytes)?;
        }
        disk.truncate(&paths.log, scan.sound_bytes)?;
    }
    if checkpoints.torn_bytes > 0 {
        disk.truncate(&paths.checkpoints(), checkpoints.sound_bytes as u64)?;
    }
    // Left when a writer ended between sealing and the next segment; the segment is written on.
    disk.remove(&paths.index())?;
    let live = Live {
        paths: paths.clone(),
        log: disk.reopen(&paths.log)?,
        checkpoints: disk.open_append(&paths.checkpoints())?,
        bytes: scan.sound_bytes,
        created_unix_us: scan.header.created_unix_us,
        index: scan.index,
    };
    // What was read may so far be in memory only.
    disk.sync(&live.log, &live.paths.log)?;
    Ok(Found {
        live,
        chain: scan.chain,
        checkpoint,
        kept_us: None,
    })
}

fn read_checkpoints(disk: &Disk, paths: &SegmentPaths) -> Result<CheckpointFile, AuditError> {
    let path = paths.checkpoints();
    let bytes = disk.read(&path, || match fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    })?;
    CheckpointFile::parse(&bytes).map_err(|offset| AuditError::Damaged {
        file: segment::file_name(&path).into(),
        sequence: paths.first,
        what: format!("the checkpoint at byte {offset} is damaged").into(),
    })
}

fn damaged(paths: &SegmentPaths, sequence: u64, what: String) -> AuditError {
    AuditError::Damaged {
        file: paths.name().into(),
        sequence,
        what: what.into(),
    }
}

/// What was found where the sound records end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Torn {
    /// Nothing, or one unfinished write.
    AtTheEnd,
    /// Something unsound with sound lines after it.
    BeforeSoundLines,
}

/// Reads a segment from its header to the last record that fits.
struct Scan<'p> {
    paths: &'p SegmentPaths,
    lines: Lines,
    header: Header,
    chain: Chain,
    index: IndexBuilder,
    sound_bytes: u64,
}

impl<'p> Scan<'p> {
    fn begin(disk: &Disk, paths: &'p SegmentPaths) -> Result<Self, AuditError> {
        let mut lines = disk.read(&paths.log, || Lines::open(&paths.log))?;
        let line = disk.read(&paths.log, || lines.next())?;
        let header = match line {
            Some(Line {
                bytes, ended: true, ..
            }) => Header::from_line(bytes, paths.first),
            _ => Err("the header is missing".to_owned()),
        };
        let header = header.map_err(|what| damaged(paths, paths.first, what))?;
        let (chain, sound_bytes) = (header.chain.clone(), lines.offset());
        Ok(Scan {
            paths,
            lines,
            header,
            chain,
            index: IndexBuilder::new(paths.first),
            sound_bytes,
        })
    }

    fn run(&mut self, disk: &Disk, checkpoints: &[Checkpoint]) -> Result<Torn, AuditError> {
        let mut torn = Torn::AtTheEnd;
        let mut due = checkpoints.iter().peekable();
        let mut unsound = false;
        while let Some(line) = disk.read(&self.paths.log, || self.lines.next())? {
            if unsound {
                if line.ended && frame::decode(line.bytes).is_ok() {
                    torn = Torn::BeforeSoundLines;
                }
                continue;
            }
            match fitting(&line, &mut self.chain) {
                Some(record) => self.index.add(&record),
                None => {
                    unsound = true;
                    continue;
                }
            }
            self.sound_bytes = self.lines.offset();
            let size = self.chain.tree.size();
            while let Some(checkpoint) = due.next_if(|checkpoint| checkpoint.size <= size) {
                if checkpoint.size != size || checkpoint.root != self.chain.tree.root() {
                    let what =
                        format!("the records do not have the root of the checkpoint at {size}");
                    return Err(damaged(self.paths, checkpoint.size.saturating_sub(1), what));
                }
            }
        }
        Ok(torn)
    }
}

/// The record of the line, if it is the one that comes next.
fn fitting(line: &Line<'_>, chain: &mut Chain) -> Option<Record> {
    let frame = line.ended.then(|| frame::decode(line.bytes).ok())??;
    let record: Record = serde_json::from_slice(frame.json).ok()?;
    (record.sequence == chain.tree.size() && chain.push_if(frame.json, &frame.link))
        .then_some(record)
}

/// Keeps what is about to be cut off.
fn keep_cut(disk: &Disk, paths: &SegmentPaths, sound_bytes: u64) -> Result<(), AuditError> {
    let bytes = disk.read(&paths.log, || fs::read(&paths.log))?;
    let cut = bytes.get(sound_bytes as usize..).unwrap_or_default();
    disk.put(&paths.log.with_extension(format!("cut-{sound_bytes}")), cut)?;
    Ok(())
}
