//! Reads a server's stderr to its end, line by line, within bounds. It never stops reading while the
//! server writes, since a full stderr pipe would block the server.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A longer line is cut; the rest of it is not kept.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// How many last lines an [`crate::Exit`] carries, and how much of each.
const TAIL_LINES_MAX: usize = 8;
const TAIL_LINE_BYTES_MAX: usize = 512;

/// Gives every line to `sink` until the end of `stderr`, and returns the last few.
pub(crate) async fn read_stderr(
    mut stderr: impl AsyncRead + Unpin,
    sink: Arc<dyn Fn(&str) + Send + Sync>,
) -> Vec<String> {
    let mut lines = StderrLines::default();
    let mut chunk = vec![0u8; LINE_BYTES_MAX];
    // A read error ends the reading just as the end of the pipe does: there is nothing to repair.
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        lines.push(&chunk[..count], &*sink);
    }
    lines.finish(&*sink);
    lines.tail.into()
}

#[derive(Default)]
struct StderrLines {
    line: Vec<u8>,
    tail: VecDeque<String>,
}

impl StderrLines {
    fn push(&mut self, mut bytes: &[u8], sink: &(dyn Fn(&str) + Send + Sync)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.append(&bytes[..end]);
            self.end_line(sink);
            bytes = &bytes[end + 1..];
        }
        self.append(bytes);
    }

    fn finish(&mut self, sink: &(dyn Fn(&str) + Send + Sync)) {
        if !self.line.is_empty() {
            self.end_line(sink);
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES_MAX - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, sink: &(dyn Fn(&str) + Send + Sync)) {
        let text = printable(&self.line);
        self.line.clear();
        if text.is_empty() {
            return;
        }
        sink(&text);
        if self.tail.len() == TAIL_LINES_MAX {
            self.tail.pop_front();
        }
        self.tail
            .push_back(text[..text.floor_char_boundary(TAIL_LINE_BYTES_MAX)].to_owned());
    }
}

/// Bad UTF-8 and control characters become U+FFFD, so that a server cannot steer a terminal or forge a
/// line in a log; a tab becomes a space. Space at the end goes.
fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.trim_end()
        .chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                char::REPLACEMENT_CHARACTER
            }
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    async fn check(input: &[u8], expected: &[&str]) -> Vec<String> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let seen = Arc::clone(&seen);
            Arc::new(move |line: &str| seen.lock().unwrap().push(line.to_owned()))
        };
        let tail = read_stderr(input, sink).await;
        assert_eq!(*seen.lock().unwrap(), expected);
        tail
    }

    #[tokio::test]
    async fn lines_are_cut_and_cleaned() {
        check(b"", &[]).await;
        check(b"one\ntwo", &["one", "two"]).await;
        check(b"one\r\n\n \n", &["one"]).await;
        check(b"a\tb\x1b[31m\0\xff", &["a b\u{fffd}[31m\u{fffd}\u{fffd}"]).await;
        let long = "x".repeat(LINE_BYTES_MAX);
        let input = format!("{long}yz\nnext\n");
        check(input.as_bytes(), &[&long, "next"]).await;
    }

    #[tokio::test]
    async fn the_tail_is_the_end_and_short() {
        let all: Vec<String> = (0..20)
            .map(|n| format!("{n}{}", "\u{e9}".repeat(600)))
            .collect();
        let expected: Vec<&str> = all.iter().map(String::as_str).collect();
        let tail = check(all.join("\n").as_bytes(), &expected).await;
        assert_eq!(tail.len(), TAIL_LINES_MAX);
        assert!(tail[0].starts_with("12\u{e9}") && tail[7].starts_with("19\u{e9}"));
        assert!(tail.iter().all(|line| line.len() <= TAIL_LINE_BYTES_MAX));
    }
}
