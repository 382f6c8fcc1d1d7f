//! Private keys in armour (RFC 7468, RFC 4880), whole.

use memchr::memmem;

use super::Sink;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};

/// Longest key that may be written in whatever way: a 16384-bit RSA key is about 13 KB. One that is longer ends with its
/// own last line, or is armour throughout.
const KEY_BYTES_MAX: usize = 32 * 1024;
/// Less than this between the lines is talk about a key.
const BODY_BYTES_MIN: usize = 32;
/// So long is a line of a body at the least, and so much of one holds the shortest key.
const LINE_BYTES_MIN: usize = 32;
const WHOLE_BYTES_MIN: usize = 60;
/// So much of a body tells whether it is random.
const JUDGED_BYTES_MAX: usize = 4096;

/// `at` is where `-----BEGIN` begins.
pub(super) fn private_key(at: u32, cell: &Cell, sink: &mut Sink<'_>) {
    let start = at as usize;
    let text = &sink.text()[start..cell.span.end as usize];
    let Some(title) = text
        .get(10..)
        .and_then(|t| memmem::find(&t[..t.len().min(64)], b"-----"))
        .map(|n| n + 10)
    else {
        return;
    };
    if memmem::find(&text[..title], b"PRIVATE KEY").is_none() || !sink.limits.spend(4) {
        return;
    }
    let body_at = title + 5;
    let body = &text[body_at..];
    // Every key has dashes before it: what is read of one is not read of the next.
    let body_len = match memmem::find(body, b"-----") {
        Some(len) if len <= KEY_BYTES_MAX || ends_key(&body[len..]) => len,
        Some(len) => armour_len(&body[..len]),
        None => armour_len(body),
    };
    if !plausible(&body[..body_len]) {
        return;
    }
    let mut end = body_at + body_len;
    let rest = &text[end..];
    if rest.starts_with(b"-----END")
        && let Some(close) = memmem::find(&rest[8..rest.len().min(96)], b"-----")
    {
        end += 8 + close + 5;
    }
    sink.report_for(Detector::PrivateKey, Span::new(start, start + end), None);
}

/// The last line of a private key.
fn ends_key(line: &[u8]) -> bool {
    line.starts_with(b"-----END")
        && memmem::find(&line[..line.len().min(80)], b"PRIVATE KEY").is_some()
}

/// How far a body without an end line goes.
fn armour_len(body: &[u8]) -> usize {
    let armour = |b: &u8| {
        b.is_ascii_alphanumeric()
            || matches!(
                b,
                b'+' | b'/' | b'=' | b'\n' | b'\r' | b'\\' | b' ' | b':' | b',' | b'-'
            )
    };
    body.iter().position(|b| !armour(b)).unwrap_or(body.len())
}

fn plausible(body: &[u8]) -> bool {
    let base64 = body
        .iter()
        .filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
        .count();
    // Blanks take nothing away, however many there are.
    let written = || body.iter().filter(|b| !b.is_ascii_whitespace());
    let judged: Vec<u8> = written().take(JUDGED_BYTES_MAX).copied().collect();
    // Dots stand for what was left out, unless a key is there all the same.
    let lines = body.split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/')));
    let whole: usize = lines
        .map(<[u8]>::len)
        .filter(|n| *n >= LINE_BYTES_MIN)
        .sum();
    let dots = whole < WHOLE_BYTES_MIN && memmem::find(body, b"...").is_some();
    base64 >= BODY_BYTES_MIN
        && base64 * 10 >= written().count() * 7
        && !dots
        && crate::entropy::shannon(&judged) > 3.5
}
