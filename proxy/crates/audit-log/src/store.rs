//! The live segment: appends batches, seals and starts segments, leaves checkpoints. Used by the writer thread only.
//!
//! Order on disk, so that a crash between any two steps leaves a log that opens: records are synced before the
//! checkpoint that covers them is written; a segment's last checkpoint and index are in place before the next
//! segment appears, and that one appears whole, header and all. At an opening, a seal and an end in order the newest
//! checkpoint is put into a file of its own as well, last of all: from the first record on a log has one.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::checkpoint::Checkpoint;
use crate::clock::{self, ClockWatch};
use crate::config::LogConfig;
use crate::files::{Disk, Fault};
use crate::frame;
use crate::index::IndexBuilder;
use crate::merkle::Chain;
use crate::record::Record;
use crate::retain;
use crate::segment::{self, Header, SegmentPaths};

/// The buffer is written out when it holds this much, and given back when it grew beyond.
const BUFFER_BYTES: usize = 1 << 20;
/// Segments that go when one is sealed: were the clock wrong all the same, most of the log would outlast the day on
/// which somebody notices.
const REMOVED_MAX: usize = 4;
/// How often the time that is believed is kept, while records are written: after `kill -9` the log may have to wait as
/// long before it removes anything.
const CLOCK_KEPT_EVERY: Duration = Duration::from_secs(3600);
/// How often a log that has nothing to write looks whether its file is still there.
const LOOKED_EVERY: Duration = Duration::from_secs(1);
/// With a retention, segments are sealed at this age, so that they can be removed in time.
const SEGMENT_AGE_MAX_US: u64 = 86_400_000_000;

/// The writer's end of the log.
#[derive(Debug)]
pub(crate) struct Store {
    config: LogConfig,
    disk: Disk,
    live: Live,
    chain: Chain,
    /// The chain as far as the kernel has its records.
    kept: Chain,
    looked_at: Instant,
    buffer: Vec<u8>,
    unsynced_since: Option<Instant>,
    checkpoint: Checkpoint,
    checkpoint_at: Instant,
    clock: ClockWatch,
    clock_kept_at: Instant,
    /// Held: the lock goes with the file.
    lock: File,
}

/// What is left of a store after a fault.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) config: LogConfig,
    pub(crate) disk: Disk,
    pub(crate) lock: File,
    /// The log up to the last record that may have been acknowledged.
    pub(crate) kept: Chain,
    /// First record of the segment that was being written.
    pub(crate) live_first: u64,
}

impl Failed {
    pub(crate) fn kept_size(&self) -> u64 {
        self.kept.tree.size()
    }
}

/// What is on disk when a store takes over.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) live: Live,
    pub(crate) chain: Chain,
    /// The last one on disk.
    pub(crate) checkpoint: Checkpoint,
    /// The time that was believed when the log was last open, if that was kept.
    pub(crate) kept_us: Option<u64>,
}

/// The segment being written.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) paths: SegmentPaths,
    pub(crate) log: File,
    pub(crate) checkpoints: File,
    pub(crate) bytes: u64,
    pub(crate) created_unix_us: u64,
    pub(crate) index: IndexBuilder,
}

impl Live {
    /// Starts a segment after `chain`.
    pub(crate) fn create(disk: &Disk, dir: &Path, chain: &Chain) -> Result<Self, Fault> {
        let paths = SegmentPaths::new(dir, chain.tree.size());
        let header = Header {
            chain: chain.clone(),
            created_unix_us: clock::unix_us(),
        };
        let line = header.to_line();
        let checkpoints = disk.open_append(&paths.checkpoints())?;
        disk.put(&paths.log, &line)?;
        let log = disk.reopen(&paths.log)?;
        disk.sync_dir(dir)?;
        let index = IndexBuilder::new(paths.first);
        let created_unix_us = header.created_unix_us;
        Ok(Live {
            paths,
            log,
            checkpoints,
            bytes: line.len() as u64,
            created_unix_us,
            index,
        })
    }
}

impl Store {
    pub(crate) fn new(config: LogConfig, disk: Disk, lock: File, found: Found) -> Self {
        let now = Instant::now();
        let Found {
            live,
            chain,
            checkpoint,
            kept_us,
        } = found;
        let known_us = clock::known_at_opening(kept_us, checkpoint.time_unix_us, clock::unix_us());
        Store {
            config,
            disk,
            live,
            kept: chain.clone(),
            looked_at: now,
            chain,
            buffer: Vec::new(),
            unsynced_since: None,
            checkpoint,
            checkpoint_at: now,
            clock: ClockWatch::start(known_us, now),
            clock_kept_at: now,
            lock,
        }
    }

    /// Lets go of the files, which may be gone already; the lock is kept.
    pub(crate) fn fail(self) -> Failed {
        Failed {
            live_first: self.live.paths.first,
            config: self.config,
            disk: self.disk,
            lock: self.lock,
            kept: self.kept,
        }
    }

    /// How many records the log holds, written or about to be.
    pub(crate) fn size(&self) -> u64 {
        self.chain.tree.size()
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.unsynced_since.is_none()
    }

    pub(crate) fn last_checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    /// Appends records; when it returns, the kernel has them, in a file that is there.
    pub(crate) fn write<'r>(
        &mut self,
        records: impl Iterator<Item = &'r Record>,
    ) -> Result<(), Fault> {
        if self.too_old() {
            self.rotate()?;
        }
        for record in records {
            debug_assert_eq!(record.sequence, self.size());
            let start = self.place(record)?;
            let link = self.chain.push(frame::json_at(&self.buffer, start));
            frame::finish(&mut self.buffer, start, &link);
            self.live.index.add(record);
            if self.buffer.len() >= BUFFER_BYTES {
                self.write_out(self.buffer.len())?;
            }
        }
        self.write_out(self.buffer.len())?;
        self.buffer.shrink_to(BUFFER_BYTES);
        self.look(Instant::now())?;
        self.kept.clone_from(&self.chain);
        Ok(())
    }

    /// Looks whether what is written can be read.
    fn look(&mut self, now: Instant) -> Result<(), Fault> {
        self.looked_at = now;
        self.disk.is_there(&self.live.log, &self.live.paths.log)
    }

    /// Syncs what was written.
    pub(crate) fn sync(&mut self) -> Result<(), Fault> {
        if self.unsynced_since.take().is_some() {
            self.disk.sync(&self.live.log, &self.live.paths.log)?;
        }
        Ok(())
    }

    /// Does what is due by now: a look at the file, a sync of records nobody waits for, a checkpoint.
    pub(crate) fn housekeep(&mut self, now: Instant) -> Result<(), Fault> {
        if self.looked_at + LOOKED_EVERY <= now {
            self.look(now)?;
        }
        if self.sync_due().is_some_and(|due| due <= now) {
            self.sync()?;
        }
        let uncovered = self.size() - self.checkpoint.size;
        if uncovered >= self.config.checkpoint_every
            || self.checkpoint_due().is_some_and(|due| due <= now)
        {
            self.leave_checkpoint()?;
        }
        Ok(())
    }

    /// When [`Store::housekeep`] has something to do next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        let look = self.looked_at + LOOKED_EVERY;
        let dues = self.sync_due().into_iter().chain(self.checkpoint_due());
        dues.chain([look]).min()
    }

    /// Syncs, leaves a last checkpoint, and keeps the time.
    pub(crate) fn finish(&mut self) -> Result<(), Fault> {
        self.sync()?;
        self.kept.clone_from(&self.chain);
        self.leave_checkpoint()?;
        self.keep_clock()?;
        self.disk
            .sync(&self.live.checkpoints, &self.live.paths.checkpoints())?;
        self.look(Instant::now())?;
        let last = self.config.dir.join(segment::LAST_FILE);
        self.disk.put(&last, &self.checkpoint.to_line())
    }

    /// Serialises the record at the end of the buffer, after sealing the segment if it does not fit; gives its start.
    fn place(&mut self, record: &Record) -> Result<usize, Fault> {
        let start = frame::begin(&mut self.buffer);
        serde_json::to_writer(&mut self.buffer, record).expect("plain data serialises into memory");
        let bytes = self.live.bytes + self.buffer.len() as u64 + 1;
        if bytes <= self.config.segment_bytes_max || self.live.index.count() == 0 {
            return Ok(start);
        }
        self.write_out(start)?;
        self.rotate()?;
        Ok(0)
    }

    /// Writes the first `bytes` of the buffer and keeps the rest.
    fn write_out(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes == 0 {
            return Ok(());
        }
        self.disk.append(
            &mut self.live.log,
            &self.live.paths.log,
            &self.buffer[..bytes],
        )?;
        self.live.bytes += bytes as u64;
        self.buffer.drain(..bytes);
        self.unsynced_since.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// Seals the live segment and starts the next.
    fn rotate(&mut self) -> Result<(), Fault> {
        self.finish()?;
        let index = self.live.index.finish(self.live.bytes);
        self.disk.put(&self.live.paths.index(), &index.to_line())?;
        self.live = Live::create(&self.disk, &self.config.dir, &self.chain)?;
        self.remove_expired()
    }

    /// Removes what the retention lets go, unless the clock shows a time that cannot be.
    fn remove_expired(&mut self) -> Result<(), Fault> {
        let Some(days) = self.config.retention_days else {
            return Ok(());
        };
        match self.clock.believed(clock::unix_us(), Instant::now()) {
            Ok(now) => {
                let kept = now.saturating_sub(u64::from(days).saturating_mul(86_400_000_000));
                retain::remove_ended_before(&self.disk, &self.config.dir, kept, REMOVED_MAX)
                    .map(drop)
            }
            Err(ahead) => {
                metrics::counter!("weir_audit_retention_held_total").increment(1);
                tracing::error!(
                    dir = %self.config.dir.display(),
                    ahead_s = ahead.as_secs(),
                    "the clock is ahead of the audit log by more than has passed: no old record is removed until that \
                     time has run; if the clock is right, stop, remove the file `clock` there, and start again"
                );
                Ok(())
            }
        }
    }

    fn leave_checkpoint(&mut self) -> Result<(), Fault> {
        if self.size() == self.checkpoint.size {
            return Ok(());
        }
        self.sync()?;
        let checkpoint = Checkpoint::of(&self.chain.tree, clock::unix_us());
        let path = self.live.paths.checkpoints();
        self.disk
            .append(&mut self.live.checkpoints, &path, &checkpoint.to_line())?;
        self.checkpoint = checkpoint;
        self.checkpoint_at = Instant::now();
        if self.checkpoint_at.duration_since(self.clock_kept_at) >= CLOCK_KEPT_EVERY {
            self.keep_clock()?;
        }
        Ok(())
    }

    fn keep_clock(&mut self) -> Result<(), Fault> {
        let now = Instant::now();
        let known_us = self.clock.known_us(clock::unix_us(), now);
        let path = self.config.dir.join(segment::CLOCK_FILE);
        self.disk.put(&path, format!("{known_us}\n").as_bytes())?;
        self.clock_kept_at = now;
        Ok(())
    }

    fn sync_due(&self) -> Option<Instant> {
        self.unsynced_since
            .map(|since| since + self.config.sync_interval)
    }

    fn checkpoint_due(&self) -> Option<Instant> {
        (self.size() > self.checkpoint.size)
            .then(|| self.checkpoint_at + self.config.checkpoint_interval)
    }

    fn too_old(&self) -> bool {
        let age_us = clock::unix_us().saturating_sub(self.live.created_unix_us);
        self.config.retention_days.is_some()
            && self.live.index.count() > 0
            && age_us >= SEGMENT_AGE_MAX_US
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::checkpoint::CheckpointFile;
    use crate::config::Durability;
    use crate::files::tests::scratch;
    use crate::{AuditLog, verify};

    const YEAR_US: u64 = 365 * 86_400_000_000;

    /// Writes records that are older than any retention; gives how many segments there were after each.
    fn write(config: &LogConfig, records: u64) -> Vec<usize> {
        let log = AuditLog::open(config.clone()).unwrap();
        let mut segments = Vec::new();
        for n in 0..records {
            let mut record = Record::new(1_000_000 + n, "acme".into(), "github".into());
            record.method = Some("a".repeat(200).into());
            log.append(record, Durability::Written)
                .unwrap()
                .wait()
                .unwrap();
            segments.push(segment::list(&config.dir).unwrap().len());
        }
        log.close().unwrap();
        segments
    }

    fn small(dir: &Path, retention_days: Option<u32>) -> LogConfig {
        LogConfig {
            segment_bytes_max: 4 << 10,
            fsync: false,
            retention_days,
            ..LogConfig::new(dir)
        }
    }

    /// The log as it would be had it been written so long ago.
    fn set_back(dir: &Path, by_us: u64) {
        let last = segment::list(dir).unwrap().pop().unwrap();
        let file = CheckpointFile::parse(&fs::read(last.checkpoints()).unwrap()).unwrap();
        let back = file.checkpoints.into_iter().map(|checkpoint| Checkpoint {
            time_unix_us: checkpoint.time_unix_us - by_us,
            ..checkpoint
        });
        let lines: Vec<u8> = back.flat_map(Checkpoint::to_line).collect();
        fs::write(last.checkpoints(), lines).unwrap();
        let clock = clock_file(dir);
        let known_us: u64 = fs::read_to_string(&clock).unwrap().trim().parse().unwrap();
        fs::write(clock, (known_us - by_us).to_string()).unwrap();
    }

    fn clock_file(dir: &Path) -> std::path::PathBuf {
        dir.join(segment::CLOCK_FILE)
    }

    #[test]
    fn a_clock_that_is_years_ahead_removes_nothing_however_often_it_starts() {
        for kept in [true, false] {
            let dir = scratch();
            write(&small(dir.path(), None), 60);
            set_back(dir.path(), 3 * YEAR_US);
            if !kept {
                // As a log is that an older version wrote.
                fs::remove_file(clock_file(dir.path())).unwrap();
            }
            for records in [1, 39, 40] {
                write(&small(dir.path(), Some(30)), records);
            }
            let report = verify(dir.path()).unwrap();
            assert_eq!((report.first_sequence, report.size), (0, 140));
            assert!(report.is_clean());
        }
    }

    #[test]
    fn a_writer_that_never_ends_leaves_the_time_all_the_same() {
        let dir = scratch();
        write(&small(dir.path(), None), 60);
        set_back(dir.path(), 3 * YEAR_US);
        fs::remove_file(clock_file(dir.path())).unwrap();
        let log = AuditLog::open(small(dir.path(), Some(30))).unwrap();
        let known = fs::read_to_string(clock_file(dir.path())).unwrap();
        let known_us: u64 = known.trim().parse().unwrap();
        assert!(clock::unix_us() - known_us > 2 * YEAR_US, "{known}");
        drop(log);
    }

    #[test]
    fn who_removes_the_kept_time_says_that_the_clock_is_right() {
        let dir = scratch();
        write(&small(dir.path(), None), 60);
        set_back(dir.path(), 3 * YEAR_US);
        write(&small(dir.path(), Some(30)), 40);
        fs::remove_file(clock_file(dir.path())).unwrap();
        write(&small(dir.path(), Some(30)), 40);
        assert!(verify(dir.path()).unwrap().first_sequence > 0);
    }

    #[test]
    fn a_time_to_come_that_was_kept_is_corrected() {
        for kept_us in [clock::unix_us() + 10 * YEAR_US, u64::MAX] {
            let dir = scratch();
            write(&small(dir.path(), None), 1);
            fs::write(clock_file(dir.path()), kept_us.to_string()).unwrap();
            write(&small(dir.path(), None), 1);
            let known = fs::read_to_string(clock_file(dir.path())).unwrap();
            let known_us: u64 = known.trim().parse().unwrap();
            assert!(known_us <= clock::unix_us(), "{known}");
        }
    }

    #[test]
    fn a_kept_time_that_is_none_is_as_none() {
        let dir = scratch();
        write(&small(dir.path(), None), 60);
        for text in ["", "soon", "-1", "99999999999999999999999999"] {
            fs::write(clock_file(dir.path()), text).unwrap();
            write(&small(dir.path(), None), 1);
        }
        fs::write(clock_file(dir.path()), [0xff; 9]).unwrap();
        write(&small(dir.path(), None), 1);
        let known = fs::read_to_string(clock_file(dir.path())).unwrap();
        assert!(known.trim().parse::<u64>().unwrap() > YEAR_US);
    }

    #[test]
    fn no_segment_that_is_sealed_takes_many_old_ones_with_it() {
        let dir = scratch();
        let before = *write(&small(dir.path(), None), 100).last().unwrap();
        assert!(before > 3 * REMOVED_MAX);
        // What was written an hour ago is no matter.
        set_back(dir.path(), YEAR_US / 365 / 24);
        let after = write(&small(dir.path(), Some(30)), 100);
        let sealed = after.windows(2).filter(|pair| pair[0] != pair[1]);
        let mut changes = sealed.map(|pair| pair[0] + 1 - pair[1]);
        assert_eq!(changes.next(), Some(REMOVED_MAX));
        assert!(after.last().unwrap() < &REMOVED_MAX, "{after:?}");
    }
}
