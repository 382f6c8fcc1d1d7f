//! Searching the log, also while another process writes it.
//!
//! Sealed segments that cannot hold a match are skipped by their index; in the others a line is parsed only if its
//! bytes contain every exact field that is asked for. Never writes, never needs the lock, reads the last segment up to
//! its last whole line.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::frame::{self, LINE_BYTES_MAX};
use crate::id::AuditId;
use crate::index::SegmentIndex;
use crate::record::{Action, NAME_BYTES_MAX, Record, TEXT_BYTES_MAX, Text, cut};
use crate::retain::load_index;
use crate::segment::{self, Lines};

/// What to look for: every field that is given must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Began at or after this time.
    pub since_unix_us: Option<u64>,
    /// Began before this time.
    pub until_unix_us: Option<u64>,
    /// Exactly this tenant.
    pub tenant: Option<Text>,
    /// Exactly this key id.
    pub principal: Option<Text>,
    /// Exactly this server.
    pub server: Option<Text>,
    /// Exactly this method.
    pub method: Option<Text>,
    /// Exactly this tool.
    pub tool: Option<Text>,
    /// One of these actions; empty means any.
    pub actions: Vec<Action>,
    /// A finding of exactly this rule.
    pub rule: Option<Text>,
    /// A finding of exactly this category.
    pub category: Option<Text>,
    /// This record.
    pub id: Option<AuditId>,
    /// These characters anywhere in the record's JSON, in any ASCII letter case.
    pub text: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
    /// Which end to begin with.
    pub order: Order,
}

/// Which end of the log to begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of sequence.
    #[default]
    OldestFirst,
    /// Against it.
    NewestFirst,
}

/// What a search did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SearchStats {
    /// Records given out.
    pub matched: u64,
    /// Lines looked at.
    pub lines: u64,
    /// Segments that the index ruled out.
    pub segments_skipped: usize,
    /// Segments read.
    pub segments_read: usize,
    /// Lines that are damaged and were passed over; `verify` names the first.
    pub damaged: u64,
}

/// The log could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct ReadError {
    /// File or directory.
    pub path: PathBuf,
    /// Why.
    pub source: Arc<io::Error>,
}

/// Gives every record that fits to `found`, until that breaks off or the limit is met.
pub fn search(
    dir: &Path,
    query: &Query,
    mut found: impl FnMut(&Record) -> ControlFlow<()>,
) -> Result<SearchStats, ReadError> {
    let matcher = Matcher::new(query.clone());
    let mut segments = segment::list(dir).map_err(|error| ReadError::new(dir, error))?;
    if query.order == Order::NewestFirst {
        segments.reverse();
    }
    let mut run = Run {
        matcher: &matcher,
        stats: SearchStats::default(),
        found: &mut found,
    };
    for paths in &segments {
        if load_index(paths).is_some_and(|index| !matcher.may_match(&index)) {
            run.stats.segments_skipped += 1;
            continue;
        }
        let read = match query.order {
            Order::OldestFirst => run.forward(&paths.log),
            Order::NewestFirst => run.backward(&paths.log),
        };
        match read {
            // Removed by retention since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(ReadError::new(&paths.log, error)),
            Ok(flow) => {
                run.stats.segments_read += 1;
                if flow.is_break() {
                    break;
                }
            }
        }
    }
    Ok(run.stats)
}

impl ReadError {
    pub(crate) fn new(path: &Path, source: io::Error) -> Self {
        ReadError {
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }
}

/// A search under way.
struct Run<'a> {
    matcher: &'a Matcher,
    stats: SearchStats,
    found: &'a mut dyn FnMut(&Record) -> ControlFlow<()>,
}

impl Run<'_> {
    fn forward(&mut self, path: &Path) -> io::Result<ControlFlow<()>> {
        let mut lines = Lines::open(path)?;
        // The header.
        lines.next()?;
        while let Some(line) = lines.next()? {
            if line.ended && self.line(line.bytes).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads chunks from the end; a chunk always holds at least one whole line, unless that line is damaged.
    fn backward(&mut self, path: &Path) -> io::Result<ControlFlow<()>> {
        let file = File::open(path)?;
        let mut end = file.metadata()?.len();
        let mut chunk = Vec::new();
        let mut at_tail = true;
        while end > 0 {
            let start = end.saturating_sub(2 * LINE_BYTES_MAX as u64);
            chunk.resize((end - start) as usize, 0);
            file.read_exact_at(&mut chunk, start)?;
            let whole = if start == 0 {
                0
            } else {
                memchr::memchr(b'\n', &chunk).map_or(chunk.len(), |at| at + 1)
            };
            let mut lines = &chunk[whole..];
            if at_tail {
                // What follows the last newline is still being written.
                lines = &lines[..memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1)];
                at_tail = lines.is_empty();
            }
            let from_header = start == 0;
            if self.lines_backward(lines, from_header).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            // A chunk without a newline is a damaged line: step over it.
            end = if whole == chunk.len() {
                start
            } else {
                start + whole as u64
            };
        }
        Ok(ControlFlow::Continue(()))
    }

    fn lines_backward(&mut self, mut lines: &[u8], from_header: bool) -> ControlFlow<()> {
        while let Some(rest) = lines.strip_suffix(b"\n") {
            let start = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
            if !(start == 0 && from_header) {
                self.line(&rest[start..])?;
            }
            lines = &lines[..start];
        }
        ControlFlow::Continue(())
    }

    fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        self.stats.lines += 1;
        if !self.matcher.may_match_line(line) {
            return ControlFlow::Continue(());
        }
        let record = frame::decode(line)
            .ok()
            .and_then(|frame| serde_json::from_slice::<Record>(frame.json).ok());
        let Some(record) = record else {
            self.stats.damaged += 1;
            return ControlFlow::Continue(());
        };
        if !self.matcher.matches(&record) {
            return ControlFlow::Continue(());
        }
        if self
            .matcher
            .limit()
            .is_some_and(|limit| self.stats.matched >= limit)
        {
            return ControlFlow::Break(());
        }
        self.stats.matched += 1;
        (self.found)(&record)?;
        if self.matcher.limit() == Some(self.stats.matched) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// A query, prepared.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    query: Query,
    /// Bytes that a matching line must contain: exact fields as our serialiser writes them.
    needles: Vec<memchr::memmem::Finder<'static>>,
    text: Option<Vec<u8>>,
}

impl Matcher {
    pub(crate) fn new(mut query: Query) -> Self {
        // Records are cut to the caps, so what is looked for is too.
        for name in [
            &mut query.tenant,
            &mut query.principal,
            &mut query.server,
            &mut query.rule,
            &mut query.category,
        ] {
            name.iter_mut().for_each(|text| cut(text, NAME_BYTES_MAX));
        }
        for text in [&mut query.method, &mut query.tool] {
            text.iter_mut().for_each(|text| cut(text, TEXT_BYTES_MAX));
        }
        let id = query.id.clone().map(Text::from);
        let fields = [
            ("id", &id),
            ("tenant", &query.tenant),
            ("principal", &query.principal),
            ("server", &query.server),
            ("method", &query.method),
            ("tool", &query.tool),
            ("rule", &query.rule),
            ("category", &query.category),
        ];
        let needle = |(name, text): (&str, &Option<Text>)| {
            let value = serde_json::to_string(text.as_ref()?).expect("text serialises");
            Some(memchr::memmem::Finder::new(format!("\"{name}\":{value}").as_bytes()).into_owned())
        };
        let needles = fields.into_iter().filter_map(needle).collect();
        let text = query
            .text
            .as_ref()
            .map(|text| text.to_ascii_lowercase().into_bytes());
        Matcher {
            query,
            needles,
            text,
        }
    }

    fn limit(&self) -> Option<u64> {
        self.query.limit.map(|limit| limit as u64)
    }

    /// Whether a segment with this index can hold a match.
    pub(crate) fn may_match(&self, index: &SegmentIndex) -> bool {
        let query = &self.query;
        let id_ms = query.id.as_ref().map(AuditId::time_unix_ms);
        let words = [
            (&query.tenant, &index.tenants),
            (&query.principal, &index.principals),
            (&query.server, &index.servers),
            (&query.method, &index.methods),
            (&query.tool, &index.tools),
            (&query.rule, &index.rules),
            (&query.category, &index.categories),
        ];
        query
            .since_unix_us
            .is_none_or(|since| index.time_max >= since)
            && query
                .until_unix_us
                .is_none_or(|until| index.time_min < until)
            && id_ms.is_none_or(|time| (index.id_ms_min..=index.id_ms_max).contains(&time))
            && (query.actions.is_empty()
                || query
                    .actions
                    .iter()
                    .any(|action| index.actions.contains(action)))
            && words
                .into_iter()
                .all(|(word, words)| word.as_ref().is_none_or(|word| words.may_hold(word)))
    }

    /// Whether the line can be a match: cheap, and never wrong with no.
    pub(crate) fn may_match_line(&self, line: &[u8]) -> bool {
        self.needles
            .iter()
            .all(|needle| needle.find(line).is_some())
            && self
                .text
                .as_ref()
                .is_none_or(|text| contains_ignoring_case(line.get(frame::PREFIX_BYTES..), text))
    }

    /// Whether the record fits, but for `text`, which is about the line.
    pub(crate) fn matches(&self, record: &Record) -> bool {
        let query = &self.query;
        let is = |wanted: &Option<Text>, value: Option<&Text>| {
            wanted.is_none() || wanted.as_ref() == value
        };
        query
            .since_unix_us
            .is_none_or(|since| record.time_unix_us >= since)
            && query
                .until_unix_us
                .is_none_or(|until| record.time_unix_us < until)
            && is(&query.tenant, Some(&record.tenant))
            && is(&query.principal, record.principal.as_ref())
            && is(&query.server, Some(&record.server))
            && is(&query.method, record.method.as_ref())
            && is(&query.tool, record.tool.as_ref())
            && (query.actions.is_empty() || query.actions.contains(&record.action))
            && query.id.as_ref().is_none_or(|id| *id == record.id)
            && (query.rule.is_none()
                || record
                    .findings
                    .iter()
                    .any(|finding| is(&query.rule, Some(&finding.rule))))
            && (query.category.is_none()
                || record
                    .findings
                    .iter()
                    .any(|finding| is(&query.category, Some(&finding.category))))
    }
}

/// `needle` is in lower case.
fn contains_ignoring_case(text: Option<&[u8]>, needle: &[u8]) -> bool {
    let (Some(text), Some(first)) = (text, needle.first()) else {
        return needle.is_empty();
    };
    memchr::memchr2_iter(*first, first.to_ascii_uppercase(), text).any(|at| {
        text[at..]
            .get(..needle.len())
            .is_some_and(|window| window.eq_ignore_ascii_case(needle))
    })
}
