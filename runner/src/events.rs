//! Events: kept in a ring and in a file of two parts, told to whoever asks from a number on.
//!
//! A number is never given twice: who has stored an event asks for what comes after it, and would never hear of another one
//! with a lower number. What was written last may be missing in the file after a power cut, or never have got there for want
//! of disk, so numbers are taken in advance, in a note that is safe before they are used.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::{ServerId, TenantId};
use runner_api::{Event, EventKind, SandboxId};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::store;

/// Events in memory.
const RING_MAX: usize = 10_000;
/// And their bytes, as they are in the file: a start is told with its whole environment.
const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Numbers that are taken at once.
const TAKEN_AT_ONCE: u64 = 10_000;
/// A part of the file; there are two.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// All events of one runner. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    inner: Arc<Mutex<Inner>>,
    last: watch::Sender<u64>,
}

struct Inner {
    /// Each with its bytes.
    ring: VecDeque<(Event, usize)>,
    ring_bytes: usize,
    next: u64,
    taken: Taken,
    path: PathBuf,
    file: Option<File>,
    file_bytes: u64,
}

/// How far numbers are taken.
#[derive(Debug, Serialize, Deserialize)]
struct Taken {
    upto: u64,
    /// The start of the machine in which all that was told is in the file, whatever became of this program; empty if some
    /// of it is not.
    boot: String,
}

impl Events {
    /// Goes on where the file ends, or as far as numbers were taken.
    pub fn open(path: &Path) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self::open_in(path, boot.trim())
    }

    fn open_in(path: &Path, boot: &str) -> Self {
        let mut ring = VecDeque::new();
        for part in [path.with_extension("old"), path.to_owned()] {
            let text = fs::read(part).unwrap_or_default();
            // A torn last line is left out.
            let lines = text
                .split(|b| *b == b'\n')
                .filter_map(|line| Some((serde_json::from_slice::<Event>(line).ok()?, line.len())));
            ring.extend(lines);
        }
        let last = ring.back().map_or(0, |(event, _)| event.seq);
        let known: Option<Taken> = store::get(&path.with_extension("taken"));
        let safe = known.filter(|taken| taken.boot != boot || boot.is_empty());
        let next = safe.map_or(last, |taken| taken.upto.max(last)) + 1;
        let mut inner = Inner {
            ring_bytes: ring.iter().map(|(_, bytes)| bytes).sum(),
            ring,
            next,
            taken: Taken {
                upto: 0,
                boot: boot.to_owned(),
            },
            path: path.to_owned(),
            file: None,
            file_bytes: 0,
        };
        inner.shorten();
        inner.take_numbers();
        Self {
            inner: Arc::new(Mutex::new(inner)),
            last: watch::Sender::new(next - 1),
        }
    }

    /// Something happened.
    pub fn tell(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        sandbox: Option<&SandboxId>,
        kind: EventKind,
    ) {
        let mut inner = self.lock();
        let event = Event {
            seq: inner.next,
            at_unix_ms: now_ms(),
            tenant: tenant.clone(),
            server: server.clone(),
            sandbox: sandbox.cloned(),
            kind,
        };
        inner.take_numbers();
        inner.next += 1;
        let bytes = inner.write(&event);
        self.last.send_replace(event.seq);
        inner.ring.push_back((event, bytes));
        inner.ring_bytes += bytes;
        inner.shorten();
    }

    /// Waits for events after a number; at most 100 at once, never none. What the ring has lost shows as a gap.
    pub async fn after(&self, after: u64) -> Vec<Event> {
        let mut last = self.last.subscribe();
        loop {
            let found: Vec<Event> = {
                let inner = self.lock();
                let start = inner.ring.partition_point(|(event, _)| event.seq <= after);
                let found = inner.ring.iter().skip(start).take(100);
                found.map(|(event, _)| event.clone()).collect()
            };
            if !found.is_empty() {
                return found;
            }
            if last.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn shorten(&mut self) {
        while self.ring.len() > RING_MAX || self.ring_bytes > RING_BYTES_MAX {
            let Some((_, bytes)) = self.ring.pop_front() else {
                return;
            };
            self.ring_bytes -= bytes;
        }
    }

    /// Has the next number taken.
    fn take_numbers(&mut self) {
        if self.next > self.taken.upto {
            self.taken.upto = self.next + TAKEN_AT_ONCE;
            self.note();
        }
    }

    fn note(&self) {
        if let Err(error) = store::put(&self.path.with_extension("taken"), &self.taken) {
            tracing::error!(%error, "numbers of events cannot be taken");
        }
    }

    /// Gives its bytes.
    fn write(&mut self, event: &Event) -> usize {
        if self.file.is_none() || self.file_bytes > FILE_BYTES_MAX {
            if self.file_bytes > FILE_BYTES_MAX {
                let _ = fs::rename(&self.path, self.path.with_extension("old"));
            }
            self.file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)
                .ok();
            self.file_bytes = self
                .file
                .as_ref()
                .and_then(|f| f.metadata().ok())
                .map_or(0, |m| m.len());
        }
        let mut line = serde_json::to_vec(event).unwrap_or_default();
        line.push(b'\n');
        self.file_bytes += line.len() as u64;
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&line)
        {
            tracing::error!(%error, "an event cannot be written");
            self.file = None;
        }
        if self.file.is_none() && !self.taken.boot.is_empty() {
            self.taken.boot.clear();
            self.note();
        }
        line.len()
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(events: &Events, env_bytes: usize) -> u64 {
        let env = vec![("A".to_owned(), "x".repeat(env_bytes))];
        let (tenant, server) = (TenantId::parse("acme"), ServerId::parse("one"));
        let (tenant, server) = (tenant.expect("an id"), server.expect("an id"));
        events.tell(&tenant, &server, None, EventKind::Starting { env });
        *events.last.borrow()
    }

    #[test]
    fn a_number_is_never_given_twice() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("events.jsonl");
        let told = |boot: &str, count: usize| {
            let events = Events::open_in(&path, boot);
            (0..count).fold(0, |_, _| tell(&events, 1))
        };
        assert_eq!(told("one", 3), 3);
        // A kill of the runner loses nothing.
        assert_eq!(told("one", 3), 6);
        // A power cut may lose all that was not synced.
        fs::write(&path, "").expect("cut off");
        let after = told("two", 1);
        assert!(after > 6, "{after}");
        assert_eq!(told("two", 1), after + 1);
        let many = TAKEN_AT_ONCE as usize + 5;
        let last = told("two", many);
        fs::write(&path, "").expect("cut off");
        assert!(told("three", 1) > last);
    }

    #[test]
    fn numbers_go_on_after_what_the_disk_had_no_room_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("events.jsonl");
        let events = Events::open_in(&path, "one");
        tell(&events, 1);
        // What can be opened and never written.
        events.lock().file = Some(File::open("/dev/null").expect("there"));
        let last = tell(&events, 1);
        drop(events);
        assert!(tell(&Events::open_in(&path, "one"), 1) > last);
    }

    #[tokio::test]
    async fn what_is_kept_in_memory_is_bounded_in_bytes() {
        let dir = tempfile::tempdir().expect("a folder");
        let events = Events::open_in(&dir.path().join("events.jsonl"), "one");
        let each = RING_BYTES_MAX / 100;
        for _ in 0..200 {
            tell(&events, each);
        }
        let (count, bytes) = {
            let inner = events.lock();
            (inner.ring.len(), inner.ring_bytes)
        };
        assert!(
            (90..=100).contains(&count) && bytes <= RING_BYTES_MAX,
            "{count}"
        );
        assert_eq!(
            events.after(0).await.first().map(|e| e.seq),
            Some(201 - count as u64)
        );
    }
}
