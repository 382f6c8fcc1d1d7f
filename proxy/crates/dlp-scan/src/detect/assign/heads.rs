//! Heads of columns that name a password or something else: in a list of tests `Pass` counts them.

use crate::LeafKind;
use crate::detect::Sink;
use crate::text::{Cell, Span};

/// What may be something else.
const DOUBTFUL: [&str; 4] = ["pass", "passes", "passed", "pw"];
/// Heads of the columns beside those of passwords, by their last words.
const OF_LOGINS: &[&str] = &[
    "user", "username", "usr", "uid", "login", "logon", "email", "mail", "account", "host",
    "hostname", "server", "url", "db", "database", "ssid", "ip", "endpoint", "role", "password",
    "pwd", "secret",
];
/// So many heads on either side are asked, and so many bytes of a line.
const HEADS_MAX: usize = 8;
const LINE_BYTES_MAX: usize = 256;

/// Does the name head a column that is one of passwords only if what stands in it looks like that? No head beside it is of
/// logins.
pub(super) fn is_doubtful(name: Span, cell: (usize, Cell), sink: &Sink<'_>) -> bool {
    let text = sink.text();
    let called = &text[name.range()];
    let is =
        |word: &[u8], list: &[&str]| list.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
    if !is(called, &DOUBTFUL) {
        return false;
    }
    let of_login = |head: &[u8]| {
        let mut words = head
            .rsplit(|b| !b.is_ascii_alphanumeric())
            .filter(|w| !w.is_empty());
        words.next().is_some_and(|last| is(last, OF_LOGINS))
    };
    let (nth, own) = cell;
    if name == own.span {
        let near = &sink.node.cells[nth.saturating_sub(HEADS_MAX)..];
        let mut heads = near.iter().take(2 * HEADS_MAX + 1);
        return !heads.any(|c| {
            c.kind == LeafKind::String && c.name == own.name && of_login(&text[c.span.range()])
        });
    }
    let (start, end) = (name.start as usize, name.end as usize);
    let before = &text[start
        .saturating_sub(LINE_BYTES_MAX)
        .max(own.span.start as usize)..start];
    let after = &text[end..(end + LINE_BYTES_MAX).min(own.span.end as usize)];
    let line = |part: &u8| *part == b'\n';
    let before = before.rsplit(line).next().unwrap_or_default();
    let after = after.split(line).next().unwrap_or_default();
    let fields = |part: &'_ [u8]| part.split(|b| b",;|\t".contains(b)).any(of_login);
    !fields(before) && !fields(after)
}
