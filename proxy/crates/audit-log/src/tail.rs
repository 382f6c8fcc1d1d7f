//! Following the log as it is written, by this or another process, over rotation and retention.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::frame;
use crate::query::{Matcher, Order, Query, ReadError, search};
use crate::record::Record;
use crate::segment::{self, Lines, SegmentPaths};

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailStart {
    /// With the last records that fit, at most so many.
    Last(usize),
    /// With this sequence, or the first after it that is still there.
    Sequence(u64),
}

/// A reader that picks up where it left off. Call [`Tail::poll`] as often as you like.
#[derive(Debug)]
pub struct Tail {
    dir: PathBuf,
    matcher: Matcher,
    next: u64,
    segment: Option<(SegmentPaths, Lines)>,
    damaged: u64,
}

impl Tail {
    /// Follows the records that fit `query`; its limit and order do not count here.
    pub fn open(dir: &Path, start: TailStart, query: Query) -> Result<Self, ReadError> {
        let query = Query {
            limit: None,
            order: Order::OldestFirst,
            ..query
        };
        let next = match start {
            TailStart::Sequence(sequence) => sequence,
            TailStart::Last(count) => first_of_last(dir, count, &query)?,
        };
        Ok(Tail {
            dir: dir.to_owned(),
            matcher: Matcher::new(query),
            next,
            segment: None,
            damaged: 0,
        })
    }

    /// Gives out what was written since the last call; returns how many records that were.
    pub fn poll(&mut self, mut found: impl FnMut(&Record)) -> Result<u64, ReadError> {
        let mut count = 0;
        loop {
            // Listed before the segment is read to its end: a later segment means that this one will not grow.
            let segments =
                segment::list(&self.dir).map_err(|error| ReadError::new(&self.dir, error))?;
            if self.segment.is_none() && !self.enter(&segments)? {
                return Ok(count);
            }
            count += self.drain(&mut found)?;
            let here = self.segment.as_ref().map_or(0, |(paths, _)| paths.first);
            match segments.iter().find(|paths| paths.first > here) {
                None => return Ok(count),
                Some(later) => {
                    self.next = self.next.max(later.first);
                    self.segment = None;
                }
            }
        }
    }

    /// Lines that were damaged and passed over.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Opens the segment that holds `next`; false if there is none yet.
    fn enter(&mut self, segments: &[SegmentPaths]) -> Result<bool, ReadError> {
        let at = segments
            .partition_point(|paths| paths.first <= self.next)
            .saturating_sub(1);
        for paths in segments.get(at..).unwrap_or_default() {
            match Lines::open(&paths.log)
                .and_then(|mut lines| lines.next().map(|_header| ()).map(|()| lines))
            {
                Ok(lines) => {
                    self.segment = Some((paths.clone(), lines));
                    return Ok(true);
                }
                // Removed by retention since it was listed: the next one is the oldest now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ReadError::new(&paths.log, error)),
            }
        }
        Ok(false)
    }

    fn drain(&mut self, found: &mut impl FnMut(&Record)) -> Result<u64, ReadError> {
        let Some((paths, lines)) = &mut self.segment else {
            return Ok(0);
        };
        let mut count = 0;
        loop {
            let line = match lines.next() {
                Err(error) => return Err(ReadError::new(&paths.log, error)),
                Ok(None) => return Ok(count),
                Ok(Some(line)) if !line.ended => {
                    let offset = line.offset;
                    lines
                        .seek(offset)
                        .map_err(|error| ReadError::new(&paths.log, error))?;
                    return Ok(count);
                }
                Ok(Some(line)) => line,
            };
            if !self.matcher.may_match_line(line.bytes) {
                continue;
            }
            let record = frame::decode(line.bytes)
                .ok()
                .and_then(|frame| serde_json::from_slice(frame.json).ok());
            let Some(record): Option<Record> = record else {
                self.damaged += 1;
                continue;
            };
            if record.sequence >= self.next && self.matcher.matches(&record) {
                self.next = record.sequence + 1;
                count += 1;
                found(&record);
            }
        }
    }
}

/// The sequence of the oldest of the last `count` records that fit, or the one that comes next if there are none.
fn first_of_last(dir: &Path, count: usize, query: &Query) -> Result<u64, ReadError> {
    let mut first = None;
    let newest = |query: Query, limit| Query {
        order: Order::NewestFirst,
        limit: Some(limit),
        ..query
    };
    let mut note = |record: &Record| {
        first = Some(record.sequence);
        ControlFlow::Continue(())
    };
    search(dir, &newest(query.clone(), count), &mut note)?;
    if let Some(first) = first {
        return Ok(first);
    }
    let mut end = 0;
    search(dir, &newest(Query::default(), 1), |record| {
        end = record.sequence + 1;
        ControlFlow::Break(())
    })?;
    Ok(end)
}
