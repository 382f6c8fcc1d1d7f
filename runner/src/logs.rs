//! What servers write to stdout and stderr: read at a bounded rate, kept in a bounded ring and in a file of two parts.
//!
//! The guest writes into a named pipe that it holds open itself: when the runner dies nothing breaks, and when the
//! runner is slow or away the guest waits, as with any full pipe.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use runner_api::{LogLine, LogStream, SandboxId};
use secret_prints::PrintSet;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::events::now_ms;

const RING_LINES_MAX: usize = 10_000;
const RING_BYTES_MAX: usize = 4 * 1024 * 1024;
const LINE_BYTES_MAX: usize = 4096;
/// What is cut off a line may be the rest of a secret, so this much of it is looked at. No print is of more than about 8 KiB: of
/// what begins in a line's place there is never more to be seen.
const REST_BYTES_MAX: usize = 16 * 1024;
/// Stands in the place of a secret.
const SECRET_COVERED: &str = "[secret]";
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Lines that are kept per second and sandbox; more are counted and dropped.
const LINES_PER_SECOND: u32 = 500;
/// Bytes that are hashed to find the secrets in one line, and in those of a second. A line needs about as many as its secrets
/// have; only where many values begin alike, or are very many, it is more.
const LINE_HASHED_MAX: usize = 256 * 1024;
const HASHED_PER_SECOND: usize = 16 * 1024 * 1024;
/// A hash of fewer bytes takes as long as one of these.
const HASHED_AT_ONCE: usize = 64;
/// Bytes that are read per second and sandbox; a guest that writes more waits.
const BYTES_PER_SECOND: usize = 4 * 1024 * 1024;
/// Between two reads of one stream.
const GATHERED_FOR: Duration = Duration::from_millis(10);

/// The log of one server. Cheap to clone.
#[derive(Clone)]
pub struct Log {
    inner: Arc<Mutex<Inner>>,
    last: watch::Sender<u64>,
}

struct Inner {
    ring: VecDeque<LogLine>,
    bytes: usize,
    /// Number of the ring's first line.
    first: u64,
    path: PathBuf,
    file: Option<File>,
    file_bytes: u64,
}

impl Log {
    /// Goes on where the file ends.
    pub fn open(path: &Path) -> Self {
        let mut inner = Inner {
            ring: VecDeque::new(),
            bytes: 0,
            first: 1,
            path: path.to_owned(),
            file: None,
            file_bytes: 0,
        };
        for part in [path.with_extension("old"), path.to_owned()] {
            let text = fs::read(part).unwrap_or_default();
            for line in text
                .split(|b| *b == b'\n')
                .filter_map(|line| serde_json::from_slice(line).ok())
            {
                inner.keep(line);
            }
        }
        let last = inner.first + inner.ring.len() as u64 - 1;
        Self {
            inner: Arc::new(Mutex::new(inner)),
            last: watch::Sender::new(last),
        }
    }

    /// Adds a line.
    pub fn add(&self, line: LogLine) {
        let mut inner = self.lock();
        inner.write(&line);
        inner.keep(line);
        let last = inner.first + inner.ring.len() as u64 - 1;
        drop(inner);
        self.last.send_replace(last);
    }

    /// The runner's own words about a sandbox.
    pub fn say(&self, sandbox: &SandboxId, text: impl Into<String>) {
        self.add(LogLine {
            at_unix_ms: now_ms(),
            sandbox: sandbox.clone(),
            stream: LogStream::Lifecycle,
            text: text.into(),
            dropped: 0,
        });
    }

    /// The last lines, and the number to go on from.
    pub fn tail(&self, lines: usize) -> (Vec<LogLine>, u64) {
        let inner = self.lock();
        let skip = inner.ring.len().saturating_sub(lines);
        (
            inner.ring.iter().skip(skip).cloned().collect(),
            inner.first + inner.ring.len() as u64,
        )
    }

    /// The last lines that one sandbox wrote.
    pub fn tail_of(&self, sandbox: &SandboxId, lines: usize) -> Vec<String> {
        let inner = self.lock();
        let own = inner
            .ring
            .iter()
            .rev()
            .filter(|l| l.sandbox == *sandbox && l.stream != LogStream::Lifecycle);
        let mut found: Vec<String> = own.take(lines).map(|l| l.text.clone()).collect();
        found.reverse();
        found
    }

    /// Waits for lines from a number on; gives them and the next number.
    pub async fn from(&self, number: u64) -> (Vec<LogLine>, u64) {
        let mut last = self.last.subscribe();
        loop {
            {
                let inner = self.lock();
                let skip = number.saturating_sub(inner.first);
                let found: Vec<LogLine> = inner
                    .ring
                    .iter()
                    .skip(usize::try_from(skip).unwrap_or(usize::MAX))
                    .take(200)
                    .cloned()
                    .collect();
                if !found.is_empty() {
                    let next = number.max(inner.first) + found.len() as u64;
                    return (found, next);
                }
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
    fn keep(&mut self, line: LogLine) {
        self.bytes += line.text.len();
        self.ring.push_back(line);
        while self.ring.len() > RING_LINES_MAX || self.bytes > RING_BYTES_MAX {
            let Some(old) = self.ring.pop_front() else {
                return;
            };
            self.bytes -= old.text.len();
            self.first += 1;
        }
    }

    fn write(&mut self, line: &LogLine) {
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
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        self.file_bytes += text.len() as u64;
        if let Some(file) = &mut self.file
            && file.write_all(&text).is_err()
        {
            self.file = None;
        }
    }
}

/// The pipe of one stream of one sandbox.
pub fn pipe_path(dir: &Path, id: &str, stream: LogStream) -> PathBuf {
    dir.join(id).with_extension(if stream == LogStream::Stdout {
        "out"
    } else {
        "err"
    })
}

/// Makes the pipe and opens the guest's end of it. The guest holds both directions, so it never meets a broken pipe.
///
/// # Errors
/// The system's.
pub fn make_pipe(path: &Path) -> io::Result<OwnedFd> {
    let _ = fs::remove_file(path);
    nix::unistd::mkfifo(path, Mode::from_bits_truncate(0o600))?;
    Ok(OpenOptions::new().read(true).write(true).open(path)?.into())
}

/// Reads a pipe into a log, in a task that ends when it is aborted. Without the secrets that are to be covered, nothing of what
/// it reads is kept.
///
/// # Errors
/// The pipe cannot be opened.
pub fn follow(
    path: &Path,
    log: Log,
    sandbox: SandboxId,
    stream: LogStream,
    secrets: Option<Arc<PrintSet>>,
) -> io::Result<tokio::task::JoinHandle<()>> {
    let mut receiver = pipe::OpenOptions::new()
        .read_write(true)
        .open_receiver(path)?;
    Ok(tokio::spawn(async move {
        let mut lines = secrets.map(|secrets| Lines {
            log,
            sandbox,
            stream,
            secrets,
            partial: Vec::new(),
            second: Instant::now(),
            kept: 0,
            hashed: 0,
            dropped: 0,
        });
        // As much as a pipe holds.
        let mut buffer = vec![0; 64 * 1024];
        // The rate is kept by a pause after each read, long enough for what was read; and a guest that writes many short
        // lines wakes us no oftener than one that writes few long ones.
        loop {
            let count = match tokio::time::timeout(
                Duration::from_secs(1),
                receiver.read(&mut buffer),
            )
            .await
            {
                Ok(Ok(count @ 1..)) => count,
                Ok(_) => return,
                // Quiet again: what was dropped is said now, not with the next line, which may never come.
                Err(_) => {
                    lines.iter_mut().for_each(Lines::tell_dropped);
                    continue;
                }
            };
            if let Some(lines) = &mut lines {
                lines.take(&buffer[..count]);
            }
            let due = Duration::from_secs(1) * (count as u32) / (BYTES_PER_SECOND as u32);
            tokio::time::sleep(due.max(GATHERED_FOR)).await;
        }
    }))
}

/// What a sandbox wrote last without the end of a line is kept too.
impl Drop for Lines {
    fn drop(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
        self.tell_dropped();
    }
}

struct Lines {
    log: Log,
    sandbox: SandboxId,
    stream: LogStream,
    /// A server that writes its secrets out does not make them part of its log.
    secrets: Arc<PrintSet>,
    partial: Vec<u8>,
    second: Instant,
    kept: u32,
    hashed: usize,
    dropped: u64,
}

impl Lines {
    fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            let rest = if self.secrets.is_empty() {
                0
            } else {
                REST_BYTES_MAX
            };
            let room = (LINE_BYTES_MAX + rest).saturating_sub(self.partial.len());
            self.partial.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn tell_dropped(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let text = format!("{dropped} lines were dropped");
            self.log.add(LogLine {
                at_unix_ms: now_ms(),
                sandbox: self.sandbox.clone(),
                stream: self.stream,
                text,
                dropped,
            });
        }
    }

    fn end_line(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        if self.second.elapsed() >= Duration::from_secs(1) {
            self.second = Instant::now();
            (self.kept, self.hashed) = (0, 0);
        }
        self.kept += 1;
        if self.kept > LINES_PER_SECOND {
            self.dropped += 1;
            return;
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let line_max = self.hashed + LINE_HASHED_MAX;
        let look = |bytes: usize| {
            self.hashed += bytes.max(HASHED_AT_ONCE);
            self.hashed <= line_max.min(HASHED_PER_SECOND)
        };
        let text = cut_and_covered(text, &self.secrets, look);
        let dropped = std::mem::take(&mut self.dropped);
        self.log.add(LogLine {
            at_unix_ms: now_ms(),
            sandbox: self.sandbox.clone(),
            stream: self.stream,
            text,
            dropped,
        });
    }
}

/// A line of at most [`LINE_BYTES_MAX`] bytes with a word in place of each secret, also of one that the cut goes through. What
/// there is no budget to look at counts as one, with all that comes after it.
fn cut_and_covered(text: &str, secrets: &PrintSet, mut look: impl FnMut(usize) -> bool) -> String {
    let bytes = text.as_bytes();
    let most = text.floor_char_boundary(LINE_BYTES_MAX);
    let (mut covered, mut end, mut spent) = (String::new(), 0, false);
    for at in secrets.candidates(bytes).take_while(|at| *at < most) {
        if at < end {
            continue;
        }
        let found = secrets.at(bytes, at, |bytes| {
            spent = !look(bytes);
            !spent
        });
        let until = match found.len {
            _ if spent => most,
            Some(len) => at + len,
            None => continue,
        };
        // A long value is looked for in parts, and the cut between two of them may go through a character.
        let clear = text.ceil_char_boundary(end)..text.floor_char_boundary(at);
        covered += text.get(clear).unwrap_or_default();
        covered += SECRET_COVERED;
        end = until;
    }
    let clear = text.ceil_char_boundary(end)..most;
    covered + text.get(clear).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: String) -> LogLine {
        let sandbox = SandboxId::parse("abcdefghijkl").expect("an id");
        LogLine {
            at_unix_ms: 1,
            sandbox,
            stream: LogStream::Stdout,
            text,
            dropped: 0,
        }
    }

    #[test]
    fn the_ring_is_bounded_in_lines_and_bytes() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(&dir.path().join("x.log"));
        for number in 0..RING_LINES_MAX + 50 {
            log.add(line(number.to_string()));
        }
        let (lines, next) = log.tail(usize::MAX);
        assert_eq!(
            (lines.len(), lines[0].text.as_str()),
            (RING_LINES_MAX, "50")
        );
        assert_eq!(next, RING_LINES_MAX as u64 + 51);
        for _ in 0..1100 {
            log.add(line("x".repeat(LINE_BYTES_MAX)));
        }
        assert!(log.lock().bytes <= RING_BYTES_MAX);
        // And what was written is there after a restart, within the file's bound.
        assert!(!Log::open(&dir.path().join("x.log")).tail(10).0.is_empty());
    }

    fn secrets(values: &[&[u8]]) -> PrintSet {
        let key = secret_prints::PrintKey::new([1; 32]);
        let prints = values.iter().flat_map(|value| key.prints(value)).collect();
        PrintSet::new(&secret_prints::SecretPrints { key, prints })
    }

    /// Within one second for a minute to come.
    fn lines(log: &Log, secrets: PrintSet) -> Lines {
        Lines {
            log: log.clone(),
            sandbox: SandboxId::parse("abcdefghijkl").expect("an id"),
            stream: LogStream::Stdout,
            secrets: Arc::new(secrets),
            partial: Vec::new(),
            second: Instant::now() + Duration::from_secs(60),
            kept: 0,
            hashed: 0,
            dropped: 0,
        }
    }

    impl Lines {
        fn end_second(&mut self) {
            let past = Instant::now().checked_sub(Duration::from_secs(2));
            self.second = past.expect("a time");
        }

        /// What becomes of one.
        fn of(&mut self, line: &[u8]) -> String {
            self.take(&[line, b"\n"].concat());
            self.log.tail(1).0.remove(0).text
        }
    }

    #[tokio::test]
    async fn a_flood_is_counted() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(&dir.path().join("x.log"));
        let mut lines = self::lines(&log, secrets(&[b"pass-8f2e7c"]));
        lines.take(&b"flood\n".repeat(LINES_PER_SECOND as usize + 7));
        lines.end_second();
        lines.take(b"after\n");
        let (kept, _) = log.tail(usize::MAX);
        let last = kept.last().expect("lines");
        assert_eq!(
            (kept.len(), last.text.as_str(), last.dropped),
            (LINES_PER_SECOND as usize + 1, "after", 7)
        );
        // A line without end takes no more than its bound.
        lines.take(&vec![b'x'; 3 * LINE_BYTES_MAX]);
        lines.take(b"\n");
        assert_eq!(log.tail(1).0[0].text.len(), LINE_BYTES_MAX);
        // Nor is what it is cut in the middle of seen.
        for over in 1..12 {
            let mut line = vec![b' '; LINE_BYTES_MAX - over];
            line.extend(b"pass-8f2e7c and more\n");
            lines.take(&line);
            let text = log.tail(1).0.remove(0).text;
            assert_eq!(text.trim_start(), "[secret]", "{over} bytes before the cut");
        }
        // A secret of the server that it writes itself.
        lines.take(b"the key is pass-8f2e7c, really\r\n");
        assert_eq!(log.tail(1).0[0].text, "the key is [secret], really");
        // What has no end when it is over, too.
        lines.take(b"last words with pass-8f2e7c");
        drop(lines);
        assert_eq!(log.tail(1).0[0].text, "last words with [secret]");
    }

    #[tokio::test]
    async fn what_cannot_be_covered_is_read_and_not_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(&dir.path().join("x.log"));
        let path = dir.path().join("pipe");
        let mut guest = File::from(make_pipe(&path).expect("made"));
        let id = line(String::new()).sandbox;
        let follow = |secrets| {
            let stream = LogStream::Stdout;
            super::follow(&path, log.clone(), id.clone(), stream, secrets).expect("read")
        };
        let withheld = follow(None);
        // More than a pipe holds: somebody reads it.
        for _ in 0..200 {
            let half = "pass-8f2e7c\n".repeat(100);
            guest.write_all(half.as_bytes()).expect("written");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        tokio::time::sleep(GATHERED_FOR * 10).await;
        withheld.abort();
        let _ = withheld.await;
        let covered = follow(Some(Arc::new(secrets(&[b"pass-8f2e7c"]))));
        guest.write_all(b"with pass-8f2e7c\n").expect("written");
        let (lines, _) = tokio::time::timeout(Duration::from_secs(10), log.from(1))
            .await
            .expect("it is kept");
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["with [secret]"]);
        covered.abort();
    }

    #[test]
    fn values_are_covered() {
        let long = "ab".to_owned() + &"ä".repeat(40);
        let long = long + &(0..2100).map(|n| format!("{n:03}é")).collect::<String>();
        assert!(!long.is_char_boundary(4096), "parts are cut there");
        let values = ["s3cr3t-v4lue", "pässwörter", &long];
        let set = secrets(&values.map(str::as_bytes));
        let cases = [
            ("nothing", "nothing"),
            ("s3cr3t-v4lue", "[secret]"),
            (
                "a s3cr3t-v4lue, s3cr3t-v4lues3cr3t-v4lue.",
                "a [secret], [secret][secret].",
            ),
            ("ä pässwörter ö", "ä [secret] ö"),
            ("ä retröwssäp ö", "ä [secret] ö"),
        ];
        for (text, expected) in cases {
            let covered = cut_and_covered(text, &set, |_| true);
            assert_eq!(covered, expected, "{text}");
        }
        // A part by itself.
        let covered = cut_and_covered(&long[4000..], &set, |_| true);
        assert_eq!(covered, long[4000..4095].to_owned() + "[secret]");
    }

    #[test]
    fn what_there_is_no_budget_to_look_at_is_covered() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(&dir.path().join("x.log"));
        let values: Vec<String> = (0..20)
            .map(|n| "A".repeat(3000 + n) + "-never-written")
            .collect();
        let values: Vec<&[u8]> = values.iter().map(String::as_bytes).collect();
        let mut lines = lines(&log, secrets(&values));
        let costly = "A".repeat(LINE_BYTES_MAX - 10);
        for _ in 0..3 {
            let before = lines.hashed;
            assert_eq!(
                lines.of(format!("first {costly}").as_bytes()),
                "first AAAA[secret]"
            );
            let hashed = lines.hashed - before;
            assert!(
                (LINE_HASHED_MAX..LINE_HASHED_MAX + 4096).contains(&hashed),
                "{hashed}"
            );
        }
        // All lines of a second have no more than so much.
        for _ in 0..2 * HASHED_PER_SECOND / LINE_HASHED_MAX {
            lines.of(costly.as_bytes());
        }
        assert!(lines.hashed <= HASHED_PER_SECOND + 1024 * LINE_BYTES_MAX);
        let few = "one AAAAAAAA two".to_owned() + &"x".repeat(3100);
        assert_eq!(lines.of(few.as_bytes()), "one [secret]");
        assert_eq!(lines.of(b"what is no secret"), "what is no secret");
        lines.end_second();
        assert_eq!(lines.of(few.as_bytes()), few);
    }

    #[test]
    fn a_line_that_was_seen_whole_keeps_what_only_begins_like_a_secret() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(&dir.path().join("x.log"));
        let secret = format!("eyJhbGciOiJIUzI1NiJ9.{}", "0123456789".repeat(60));
        let mut lines = lines(&log, secrets(&[secret.as_bytes()]));
        // Bytes that are no text get longer, and are no reason to take the line for cut.
        for (with, blanks) in [(&b" "[..], 4000), (b"\xff", 1300)] {
            let line = [
                &with.repeat(blanks),
                &b" eyJhbGciOiJIUzI1NiJ9.another"[..],
                &b" and more".repeat(50),
            ]
            .concat();
            let expected = String::from_utf8_lossy(&line).into_owned();
            assert_eq!(
                lines.of(&line),
                expected[..expected.floor_char_boundary(LINE_BYTES_MAX)]
            );
        }
    }

    #[test]
    fn the_longest_print_is_seen_from_the_last_byte_that_is_kept() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = Log::open(&dir.path().join("x.log"));
        let value: Vec<u8> = (0..4159u32)
            .map(|n| 0x80 | (n * 7 + n / 128) as u8)
            .collect();
        let hex: String = value.iter().map(|b| format!("{b:02x}")).collect();
        let mut lines = lines(&log, secrets(&[&value]));
        let line = " ".repeat(LINE_BYTES_MAX - 1) + &hex;
        for end in ["", &"f".repeat(REST_BYTES_MAX)] {
            let text = lines.of((line.clone() + end).as_bytes());
            assert_eq!(text.trim_start(), "[secret]");
        }
    }
}
