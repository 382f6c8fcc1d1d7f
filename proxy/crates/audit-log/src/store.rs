//! The live segment: appends batches, seals and starts segments, leaves checkpoints. Used by the writer thread only.
//!
//! Order on disk, so that a crash between any two steps leaves a log that opens: records are synced before the
//! checkpoint that covers them is written; a segment's last checkpoint and index are in place before the next
//! segment appears, and that one appears whole, header and all.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use crate::checkpoint::Checkpoint;
use crate::clock::{self, ClockWatch};
use crate::config::LogConfig;
use crate::files::{Disk, Fault};
use crate::frame;
use crate::index::IndexBuilder;
use crate::merkle::Chain;
use crate::record::Record;
use crate::retain;
use crate::segment::{Header, SegmentPaths};

/// The buffer is written out when it holds this much, and given back when it grew beyond.
const BUFFER_BYTES: usize = 1 << 20;
/// With a retention, segments are sealed at this age, so that they can be removed in time.
const SEGMENT_AGE_MAX_US: u64 = 86_400_000_000;

/// The writer's end of the log.
#[derive(Debug)]
pub(crate) struct Store {
    config: LogConfig,
    disk: Disk,
    live: Live,
    chain: Chain,
    buffer: Vec<u8>,
    unsynced_since: Option<Instant>,
    checkpoint: Checkpoint,
    checkpoint_at: Instant,
    clock: ClockWatch,
    /// Held, not used: the lock goes with the file.
    _lock: File,
}

/// What is on disk when a store takes over.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) live: Live,
    pub(crate) chain: Chain,
    /// The last one on disk.
    pub(crate) checkpoint: Checkpoint,
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
        } = found;
        Store {
            config,
            disk,
            live,
            chain,
            buffer: Vec::new(),
            unsynced_since: None,
            checkpoint,
            checkpoint_at: now,
            clock: ClockWatch::start(clock::unix_us(), now),
            _lock: lock,
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

    /// Appends records; when it returns, the kernel has them.
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
        Ok(())
    }

    /// Syncs what was written.
    pub(crate) fn sync(&mut self) -> Result<(), Fault> {
        if self.unsynced_since.take().is_some() {
            self.disk.sync(&self.live.log, &self.live.paths.log)?;
        }
        Ok(())
    }

    /// Does what is due by now: a sync of records nobody waits for, a checkpoint.
    pub(crate) fn housekeep(&mut self, now: Instant) -> Result<(), Fault> {
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
        self.sync_due()
            .into_iter()
            .chain(self.checkpoint_due())
            .min()
    }

    /// Syncs and leaves a last checkpoint.
    pub(crate) fn finish(&mut self) -> Result<(), Fault> {
        self.sync()?;
        self.leave_checkpoint()?;
        self.disk
            .sync(&self.live.checkpoints, &self.live.paths.checkpoints())
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

    /// Removes what the retention lets go, unless the clock was set since the last look.
    fn remove_expired(&mut self) -> Result<(), Fault> {
        let now = clock::unix_us();
        let agrees = self.clock.agrees(now, Instant::now());
        match self.config.retention_days {
            Some(days) if agrees => {
                let kept = now.saturating_sub(u64::from(days).saturating_mul(86_400_000_000));
                retain::remove_ended_before(&self.disk, &self.config.dir, kept).map(drop)
            }
            _ => Ok(()),
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
