//! Removal of old records: whole sealed segments from the old end, never the one being written, never a gap.

use std::fs;
use std::path::Path;

use crate::config::AuditError;
use crate::files::{Disk, Fault};
use crate::frame;
use crate::index::{IndexBuilder, SegmentIndex};
use crate::record::Record;
use crate::segment::{self, Lines, SegmentPaths};

/// Removes the oldest segments whose records all began before `unix_us`, up to the first that must stay. The segment
/// being written always stays. Gives how many were removed. May run while the log is written.
pub fn remove_before(dir: &Path, unix_us: u64) -> Result<usize, AuditError> {
    let disk = Disk::new(true);
    Ok(remove_ended_before(&disk, dir, unix_us, usize::MAX)?)
}

/// The same, `max` segments at most.
pub(crate) fn remove_ended_before(
    disk: &Disk,
    dir: &Path,
    unix_us: u64,
    max: usize,
) -> Result<usize, Fault> {
    let segments = disk.read(dir, || segment::list(dir))?;
    let sealed = segments
        .split_last()
        .map_or(&[][..], |(_live, sealed)| sealed);
    let mut removed = 0;
    for paths in sealed.iter().take(max) {
        if last_time(disk, paths)? >= unix_us {
            break;
        }
        // The log goes first: a side file without its log is litter, a log without its checkpoints looks tampered with.
        disk.remove(&paths.log)?;
        disk.remove(&paths.checkpoints())?;
        disk.remove(&paths.index())?;
        removed += 1;
    }
    if removed > 0 {
        disk.sync_dir(dir)?;
    }
    Ok(removed)
}

/// The latest time in a sealed segment, from its index or, without one, from its records.
fn last_time(disk: &Disk, paths: &SegmentPaths) -> Result<u64, Fault> {
    if let Some(index) = load_index(paths) {
        return Ok(index.time_max);
    }
    Ok(disk.read(&paths.log, || build_index(paths))?.time_max)
}

/// The index of a sealed segment; `None` if it is absent, damaged or not of this segment as it is.
pub(crate) fn load_index(paths: &SegmentPaths) -> Option<SegmentIndex> {
    let index = SegmentIndex::from_file(&fs::read(paths.index()).ok()?)?;
    let bytes = fs::metadata(&paths.log).ok()?.len();
    (index.first == paths.first && index.bytes == bytes).then_some(index)
}

fn build_index(paths: &SegmentPaths) -> std::io::Result<SegmentIndex> {
    let mut lines = Lines::open(&paths.log)?;
    let mut index = IndexBuilder::new(paths.first);
    while let Some(line) = lines.next()? {
        let json = frame::decode(line.bytes).map(|frame| frame.json);
        // The header is a sound line too, and no record.
        if let Ok(Ok(record)) = json.map(serde_json::from_slice::<Record>) {
            index.add(&record);
        }
    }
    Ok(index.finish(lines.offset()))
}

/// Makes the missing, stale or damaged indexes of sealed segments anew; gives how many.
pub fn rebuild_indexes(dir: &Path) -> Result<usize, AuditError> {
    let disk = Disk::new(true);
    let segments = disk.read(dir, || segment::list(dir))?;
    let mut rebuilt = 0;
    for paths in segments.iter().rev().skip(1) {
        if load_index(paths).is_none() {
            let index = disk.read(&paths.log, || build_index(paths))?;
            disk.put(&paths.index(), &index.to_line())?;
            rebuilt += 1;
        }
    }
    Ok(rebuilt)
}
