//! Events: kept in a ring and in a file of two parts, told to whoever asks from a number on.
//!
//! A number is never given twice: who has stored an event asks for what comes after it, and would never hear of another one
//! with a lower number. What was written last may be missing in the file after a power cut, or never have got there for want
//! of disk, so numbers are taken in advance, in a note that is safe before they are used.

mod taken;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use domain::{ServerId, TenantId};
use runner_api::{Event, EventKind, SandboxId};
use tokio::sync::watch;

use self::taken::{Note, Taken};

/// Events in memory.
const RING_MAX: usize = 10_000;
/// And their bytes, as they are in the file: a start is told with its whole environment.
const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Numbers that are taken at once.
const TAKEN_AT_ONCE: u64 = 10_000;
/// A part of the file; there are two.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Events that are given at once.
const GIVEN_MAX: usize = 100;
/// How near to an event in the file is near enough to read on from there.
const NEAR_BYTES: u64 = 64 * 1024;

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
    /// The start of the machine.
    boot: String,
    /// Whether the last number that was told of may not be in the file.
    unwritten: bool,
    /// On the disk, and what it says.
    note: Note,
    noted: Taken,
    /// Whether it could not be written when it had to be last.
    note_fails: bool,
    path: PathBuf,
    file: Option<File>,
    file_bytes: u64,
}

impl Events {
    /// Goes on where the file ends, or as far as numbers were taken.
    pub fn open(path: &Path) -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self::open_in(path, boot.trim())
    }

    fn open_in(path: &Path, boot: &str) -> Self {
        let mut ring = VecDeque::new();
        for part in parts(path) {
            let text = fs::read(part).unwrap_or_default();
            // A torn line is left out.
            let lines = text
                .split(|b| *b == b'\n')
                .filter_map(|line| Some((serde_json::from_slice::<Event>(line).ok()?, line.len())));
            ring.extend(lines);
        }
        let last = ring.back().map_or(0, |(event, _)| event.seq);
        let (note, noted) = Note::open(path);
        let unwritten = noted.upto > 0 && (noted.boot != boot || boot.is_empty());
        let next = if unwritten {
            noted.upto.max(last)
        } else {
            last
        } + 1;
        let mut inner = Inner {
            ring_bytes: ring.iter().map(|(_, bytes)| bytes).sum(),
            ring,
            next,
            boot: boot.to_owned(),
            unwritten,
            note,
            noted,
            note_fails: false,
            path: path.to_owned(),
            file: None,
            file_bytes: 0,
        };
        inner.shorten();
        inner.note();
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
        let event = inner.event(tenant, server, sandbox, kind);
        let line = line_of(&event);
        // It is in memory all the same.
        let _ = inner.write(&line);
        self.keep(&mut inner, event, line.len());
    }

    /// Something is about to happen that may not happen without being on record; gives its number.
    ///
    /// # Errors
    /// It cannot be written. Then `instead` is what was told.
    pub fn try_tell(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        sandbox: Option<&SandboxId>,
        kind: EventKind,
        instead: EventKind,
    ) -> io::Result<u64> {
        let mut inner = self.lock();
        let mut event = inner.event(tenant, server, sandbox, kind);
        let (seq, mut line) = (event.seq, line_of(&event));
        let written = inner.write(&line);
        if written.is_err() {
            event.kind = instead;
            line = line_of(&event);
        }
        self.keep(&mut inner, event, line.len());
        written.map(|()| seq)
    }

    /// The program ends in order: the next one goes on with the next number, also after the machine has started anew. If
    /// something is told after this, numbers are taken again.
    pub fn end(&self) {
        self.lock().end();
    }

    fn keep(&self, inner: &mut Inner, event: Event, bytes: usize) {
        self.last.send_replace(event.seq);
        inner.ring.push_back((event, bytes));
        inner.ring_bytes += bytes;
        inner.shorten();
    }

    /// Waits for events after a number; at most 100 at once, never none. What ring and file have lost shows as a gap.
    pub async fn after(&self, after: u64) -> Vec<Event> {
        let mut last = self.last.subscribe();
        loop {
            let found = self.lock().since(after);
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
    /// One that happens now, with the next number.
    fn event(
        &mut self,
        tenant: &TenantId,
        server: &ServerId,
        sandbox: Option<&SandboxId>,
        kind: EventKind,
    ) -> Event {
        self.note();
        let seq = self.next;
        self.next += 1;
        Event {
            seq,
            at_unix_ms: now_ms(),
            tenant: tenant.clone(),
            server: server.clone(),
            sandbox: sandbox.cloned(),
            kind,
        }
    }

    fn shorten(&mut self) {
        while self.ring.len() > RING_MAX || self.ring_bytes > RING_BYTES_MAX {
            let Some((_, bytes)) = self.ring.pop_front() else {
                return;
            };
            self.ring_bytes -= bytes;
        }
    }

    /// Those after a number that there are.
    fn since(&self, after: u64) -> Vec<Event> {
        let first = self.ring.front().map_or(self.next, |(event, _)| event.seq);
        if after.saturating_add(1) < first {
            let older = self.older(after, first);
            if !older.is_empty() {
                return older;
            }
        }
        let start = self.ring.partition_point(|(event, _)| event.seq <= after);
        let found = self.ring.iter().skip(start).take(GIVEN_MAX);
        found.map(|(event, _)| event.clone()).collect()
    }

    /// Those that are in the file and not in the ring any more. Under the lock, so that the file's parts stay what they are.
    fn older(&self, after: u64, below: u64) -> Vec<Event> {
        let mut found = Vec::new();
        for part in parts(&self.path) {
            match events_in(&part, after, below, GIVEN_MAX - found.len()) {
                Ok(more) => found.extend(more),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::error!(%error, "events cannot be read"),
            }
        }
        found
    }

    /// Sees to it that the disk knows how far numbers are taken, and does not say that the last one is in the file if it is
    /// not. What fails is tried again with the next event.
    fn note(&mut self) {
        let upto = match self.noted.upto {
            upto if self.next > upto => self.next + TAKEN_AT_ONCE,
            upto => upto,
        };
        let boot = if self.unwritten { "" } else { &self.boot };
        if self.noted.upto == upto && self.noted.boot == boot {
            return;
        }
        let wanted = Taken {
            upto,
            boot: boot.to_owned(),
        };
        match self.note.write(&wanted) {
            Ok(()) => (self.noted, self.note_fails) = (wanted, false),
            Err(error) => {
                if !std::mem::replace(&mut self.note_fails, true) {
                    tracing::error!(%error, "numbers of events cannot be taken");
                }
            }
        }
    }

    /// Notes that no number is taken but those that were told of. What of them is not in the file after that is a gap as large
    /// as it is.
    fn end(&mut self) {
        let wanted = Taken {
            upto: self.next - 1,
            boot: String::new(),
        };
        let noted = sync(&self.path).and_then(|()| self.note.write(&wanted));
        match noted {
            Ok(()) => self.noted = wanted,
            Err(error) => {
                tracing::error!(%error, "events are not safe from a start of the machine")
            }
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let file = self.file();
        let written = file.and_then(|file| file.write_all(line));
        match &written {
            Ok(()) => self.file_bytes += line.len() as u64,
            Err(error) => {
                if !self.unwritten {
                    tracing::error!(%error, "events cannot be written");
                }
                self.file = None;
            }
        }
        self.unwritten = written.is_err();
        self.note();
        written
    }

    /// The file, at the start of a line.
    fn file(&mut self) -> io::Result<&mut File> {
        if self.file_bytes > FILE_BYTES_MAX {
            match fs::rename(&self.path, self.path.with_extension("old")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => (self.file, self.file_bytes) = (None, 0),
            }
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let (file, bytes) = at_a_line(&self.path)?;
                self.file_bytes = bytes;
                file
            }
        };
        Ok(self.file.insert(file))
    }
}

/// Sees to it that what was written is on the disk.
fn sync(path: &Path) -> io::Result<()> {
    for part in parts(path) {
        match File::open(part).and_then(|file| file.sync_all()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    path.parent()
        .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// The older one first.
fn parts(path: &Path) -> [PathBuf; 2] {
    [path.with_extension("old"), path.to_owned()]
}

fn line_of(event: &Event) -> Vec<u8> {
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Opens a file to go on with, and gives its length. A line that was cut off ends where it was cut: it may not take the next
/// one with it.
fn at_a_line(path: &Path) -> io::Result<(File, u64)> {
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    let bytes = file.metadata()?.len();
    let mut end = [b'\n'];
    if bytes > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut end)?;
    }
    if end == [b'\n'] {
        return Ok((file, bytes));
    }
    file.write_all(b"\n")?;
    Ok((file, bytes + 1))
}

/// Events of a part of the file with numbers between these two, so many at the most. Numbers only ever grow in it.
fn events_in(path: &Path, after: u64, below: u64, max: usize) -> io::Result<Vec<Event>> {
    let mut file = BufReader::new(File::open(path)?);
    let (mut low, mut high) = (0, file.get_ref().metadata()?.len());
    // `low` is where a line begins that is not behind the first wanted one.
    while high.saturating_sub(low) > NEAR_BYTES {
        let middle = low + (high - low) / 2;
        file.seek(SeekFrom::Start(middle))?;
        let start = middle + file.skip_until(b'\n')? as u64;
        match next_event(&mut file)? {
            Some(event) if event.seq <= after => low = start,
            _ => high = middle,
        }
    }
    file.seek(SeekFrom::Start(low))?;
    let mut found = Vec::new();
    while found.len() < max
        && let Some(event) = next_event(&mut file)?
        && event.seq < below
    {
        found.extend((event.seq > after).then_some(event));
    }
    Ok(found)
}

/// The next line that is an event.
fn next_event(file: &mut impl BufRead) -> io::Result<Option<Event>> {
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        if let Ok(event) = serde_json::from_slice(&line) {
            return Ok(Some(event));
        }
        line.clear();
    }
    Ok(None)
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Events {
    /// The next event has to open it again.
    pub(crate) fn close_file(&self) {
        self.lock().file = None;
    }
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

    #[tokio::test]
    async fn an_orderly_end_leaves_no_gap() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("events.jsonl");
        let events = |boot: &str| Events::open_in(&path, boot);
        let first = events("one");
        assert_eq!([1, 1, 1].map(|bytes| tell(&first, bytes)), [1, 2, 3]);
        first.end();
        // Also when nothing was told since.
        events("two").end();
        let third = events("three");
        assert_eq!(tell(&third, 1), 4);
        third.end();
        let fourth = events("three");
        assert_eq!(tell(&fourth, 1), 5);
        let seqs = events("three").after(0).await;
        let seqs: Vec<u64> = seqs.iter().map(|event| event.seq).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5]);
        // What is told after the end counts, and has none.
        fourth.end();
        assert_eq!(tell(&fourth, 1), 6);
        assert_eq!(tell(&fourth, 1), 7);
        fs::write(&path, "").expect("not synced when the power was cut");
        let after = tell(&events("four"), 1);
        assert!(after > TAKEN_AT_ONCE, "{after}");
        // What the disk had no room for is a gap, and no larger than it is.
        let last = events("four");
        let before = tell(&last, 1);
        last.lock().file = full();
        tell(&last, 1);
        last.end();
        assert_eq!(tell(&events("five"), 1), before + 2);
    }

    /// What can be opened and never written.
    fn full() -> Option<File> {
        Some(File::open("/dev/null").expect("there"))
    }

    #[test]
    fn numbers_go_on_after_what_the_disk_had_no_room_for() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("events.jsonl");
        let mut last = 0;
        // Some events; more than numbers are taken at once, and again.
        for told in [1, TAKEN_AT_ONCE + 5, 3 * TAKEN_AT_ONCE] {
            let events = Events::open_in(&path, "one");
            let first = tell(&events, 1);
            assert!(first > last, "{told}: {first}");
            // No new file has room either.
            fs::create_dir(dir.path().join("events.slots.new")).expect("in the way");
            for _ in 0..told {
                events.lock().file = full();
                last = tell(&events, 1);
            }
            assert_eq!(last, first + told);
            drop(events);
            // Whoever comes and tells of nothing changes nothing.
            drop(Events::open_in(&path, "one"));
            drop(Events::open_in(&path, "one"));
            fs::remove_dir(dir.path().join("events.slots.new")).expect("removed");
        }
        assert!(tell(&Events::open_in(&path, "one"), 1) > last);
    }

    #[test]
    fn numbers_go_on_after_a_disk_that_was_full() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().expect("a folder");
        let flags = nix::mount::MsFlags::empty();
        nix::mount::mount(
            Some("disk"),
            dir.path(),
            Some("tmpfs"),
            flags,
            Some("size=256k"),
        )
        .expect("mounted");
        let path = dir.path().join("events.jsonl");
        let events = Events::open_in(&path, "one");
        let told = tell(&events, 1);
        let mut filler = File::create(dir.path().join("filler")).expect("made");
        while filler.write_all(&[1; 512]).is_ok() {}
        let mut last = told;
        for _ in 0..2 * TAKEN_AT_ONCE {
            last = tell(&events, 1000);
        }
        drop(events);
        assert!(last >= told + 2 * TAKEN_AT_ONCE);
        // Also while the disk is full still.
        let again = Events::open_in(&path, "one");
        let next = tell(&again, 1000);
        drop((again, filler));
        fs::remove_file(dir.path().join("filler")).expect("there");
        let after = tell(&Events::open_in(&path, "one"), 1);
        nix::mount::umount(dir.path()).expect("unmounted");
        assert!(last < next && next < after, "{last} {next} {after}");
    }

    #[tokio::test]
    async fn a_line_that_was_cut_off_takes_no_other_with_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("events.jsonl");
        tell(&Events::open_in(&path, "one"), 1);
        let whole = fs::read(&path).expect("written");
        fs::write(&path, [&whole[..], &whole[..20]].concat()).expect("half a line");
        let told = tell(&Events::open_in(&path, "one"), 1);
        let seqs: Vec<u64> = (Events::open_in(&path, "one").after(0).await)
            .iter()
            .map(|event| event.seq)
            .collect();
        assert_eq!(seqs, [1, told]);
    }

    #[tokio::test]
    async fn what_the_ring_has_lost_comes_from_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let events = Events::open_in(&dir.path().join("events.jsonl"), "one");
        // More than the ring holds, over both parts of the file.
        let (mut count, mut bytes) = (0, 0);
        while count < 3 * RING_MAX as u64 || bytes < FILE_BYTES_MAX + FILE_BYTES_MAX / 2 {
            let size = (count % 400) as usize;
            count = tell(&events, size);
            bytes += size as u64 + 100;
        }
        assert!(dir.path().join("events.old").exists());
        let mut seen = 0;
        while seen < count {
            for event in events.after(seen).await {
                assert_eq!(event.seq, seen + 1);
                seen = event.seq;
            }
        }
        // What is in neither is a gap.
        fs::remove_file(dir.path().join("events.old")).expect("there");
        let first = events.after(0).await[0].seq;
        assert!(first > 1 && first < count - RING_MAX as u64, "{first}");
        fs::remove_file(dir.path().join("events.jsonl")).expect("there");
        let first = events.after(0).await[0].seq;
        assert_eq!(first, count - RING_MAX as u64 + 1);
    }

    #[test]
    fn what_is_kept_in_memory_is_bounded_in_bytes() {
        let dir = tempfile::tempdir().expect("a folder");
        let events = Events::open_in(&dir.path().join("events.jsonl"), "one");
        let each = RING_BYTES_MAX / 100;
        for _ in 0..200 {
            tell(&events, each);
        }
        let (count, bytes, first) = {
            let inner = events.lock();
            let first = inner.ring.front().map(|(event, _)| event.seq);
            (inner.ring.len(), inner.ring_bytes, first)
        };
        assert!(
            (90..=100).contains(&count) && bytes <= RING_BYTES_MAX,
            "{count}"
        );
        assert_eq!(first, Some(201 - count as u64));
    }
}
