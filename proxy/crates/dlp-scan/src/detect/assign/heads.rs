//! Heads of columns that name a password or something else: in a list of tests `Pass` counts them.

use crate::LeafKind;
use crate::detect::Sink;
use crate::text::{Cell, Span};

/// What may be something else.
const DOUBTFUL: [&str; 4] = ["pass", "passes", "passed", "pw"];
/// What words of heads in lists of tests and of what was measured begin with.
const OF_TESTS: &[&str] = &[
    "abort", "assert", "attempt", "average", "bench", "case", "check", "coverage", "duration",
    "elapsed", "error", "expected", "fail", "fps", "flak", "frame", "height", "latency", "loss",
    "metric", "ms", "percent", "ph", "ratio", "rate", "result", "run", "score", "skip", "suite",
    "test", "todo", "total", "verdict", "warn", "width", "rush", "yard", "yds", "xfail", "xpass",
];
/// So many heads on either side are asked, and so many bytes of a line.
const HEADS_MAX: usize = 8;
const LINE_BYTES_MAX: usize = 256;

/// Does the name head a column that is one of passwords only if what stands in it looks like that? A head beside it is of
/// tests, and none is of logins.
pub(super) fn is_doubtful<'t>(name: Span, cell: (usize, Cell), sink: &'t Sink<'_>) -> bool {
    let text: &'t [u8] = sink.text();
    let called = &text[name.range()];
    if !DOUBTFUL
        .iter()
        .any(|w| called.eq_ignore_ascii_case(w.as_bytes()))
    {
        return false;
    }
    let (nth, own) = cell;
    if name == own.span {
        let near = &sink.node.cells[nth.saturating_sub(HEADS_MAX)..];
        let heads = near.iter().take(2 * HEADS_MAX + 1);
        let beside = heads.filter(|c| c.kind == LeafKind::String && c.name == own.name);
        return are_of_tests(beside.map(|c| &text[c.span.range()]));
    }
    let (start, end) = (name.start as usize, name.end as usize);
    let before = &text[start
        .saturating_sub(LINE_BYTES_MAX)
        .max(own.span.start as usize)..start];
    let after = &text[end..(end + LINE_BYTES_MAX).min(own.span.end as usize)];
    let line = |part: &u8| *part == b'\n';
    let before = before.rsplit(line).next().unwrap_or_default();
    let after = after.split(line).next().unwrap_or_default();
    let fields = |part: &'t [u8]| part.split(|b| b",;|\t".contains(b));
    are_of_tests(fields(before).chain(fields(after)))
}

/// One of them is, and none is of an account.
fn are_of_tests<'t>(heads: impl Iterator<Item = &'t [u8]>) -> bool {
    let mut of_tests = false;
    for head in heads.take(4 * HEADS_MAX) {
        let head = &head[..head.len().min(LINE_BYTES_MAX)];
        let words = head.split(|b| !b.is_ascii_alphanumeric());
        for word in words.filter(|w| !w.is_empty()) {
            if is_of_login(word) {
                return false;
            }
            let begins = |w: &&str| {
                word.len() >= w.len() && word[..w.len()].eq_ignore_ascii_case(w.as_bytes())
            };
            of_tests |= OF_TESTS.iter().any(begins);
        }
    }
    of_tests
}

/// What is told of an account, in a head or before a password.
const OF_LOGINS: &[&str] = &[
    "user", "username", "usr", "uid", "login", "logon", "email", "mail", "account", "host",
    "hostname", "server", "url", "db", "database", "ssid", "ip", "endpoint", "role", "password",
    "pwd", "secret", "port", "ftp",
];

/// Is it a word of that?
pub(super) fn is_of_login(word: &[u8]) -> bool {
    OF_LOGINS
        .iter()
        .any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}
