//! Events: kept in a ring and in a file of two parts, told to whoever asks from a number on.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::{ServerId, TenantId};
use runner_api::{Event, EventKind, SandboxId};
use tokio::sync::watch;

/// Events in memory.
const RING_MAX: usize = 10_000;
/// A part of the file; there are two.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// All events of one runner. Cheap to clone.
#[derive(Clone)]
pub struct Events {
    inner: Arc<Mutex<Inner>>,
    last: watch::Sender<u64>,
}

struct Inner {
    ring: VecDeque<Event>,
    next: u64,
    path: PathBuf,
    file: Option<File>,
    file_bytes: u64,
}

impl Events {
    /// Goes on where the file ends.
    pub fn open(path: &Path) -> Self {
        let mut ring = VecDeque::new();
        for part in [path.with_extension("old"), path.to_owned()] {
            let text = fs::read(part).unwrap_or_default();
            // A torn last line is left out.
            let lines = text
                .split(|b| *b == b'\n')
                .filter_map(|line| serde_json::from_slice::<Event>(line).ok());
            ring.extend(lines);
        }
        while ring.len() > RING_MAX {
            ring.pop_front();
        }
        let next = ring.back().map_or(1, |event: &Event| event.seq + 1);
        let inner = Inner {
            ring,
            next,
            path: path.to_owned(),
            file: None,
            file_bytes: 0,
        };
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
        inner.next += 1;
        inner.write(&event);
        self.last.send_replace(event.seq);
        if inner.ring.len() == RING_MAX {
            inner.ring.pop_front();
        }
        inner.ring.push_back(event);
    }

    /// Waits for events after a number; at most 100 at once, never none. What the ring has lost shows as a gap.
    pub async fn after(&self, after: u64) -> Vec<Event> {
        let mut last = self.last.subscribe();
        loop {
            let found: Vec<Event> = {
                let inner = self.lock();
                let start = inner.ring.partition_point(|event| event.seq <= after);
                inner.ring.iter().skip(start).take(100).cloned().collect()
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
    fn write(&mut self, event: &Event) {
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
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
