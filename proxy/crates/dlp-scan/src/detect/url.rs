//! Credentials in URLs and in HTTP authorisation.

use super::Sink;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::{check, value};

/// So much of a URL is read to see whether somebody is named in it.
const URL_BYTES_MAX: usize = 2048;
/// Longest user and password with a slash in them.
const USER_BYTES_MAX: usize = 128;
/// Longest name of a scheme of authorisation.
const SCHEME_BYTES_MAX: usize = 32;
/// So much of a header's value is judged; the rest belongs to it.
const JUDGED_BYTES_MAX: usize = 4096;

/// Where the text goes on as in a URL, as far as it was looked at: what begins in it ends with it.
#[derive(Default)]
pub(super) struct Unbroken {
    upto: usize,
    /// Whether it is over there.
    ends: bool,
}

impl Unbroken {
    /// Where what begins at `from` ends, if that is before `ceil`.
    fn end(&mut self, text: &[u8], from: usize, ceil: usize) -> Option<usize> {
        if self.upto < ceil && !(self.ends && from <= self.upto) {
            let from = from.max(self.upto);
            let len = text[from..ceil].iter().position(|b| {
                b.is_ascii_whitespace()
                    || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\' | 0x1E | 0x1F)
            });
            (self.upto, self.ends) = (len.map_or(ceil, |len| from + len), len.is_some());
        }
        (self.ends && self.upto < ceil).then_some(self.upto)
    }
}

/// `at` is where `://` begins: `scheme://user:password@host`.
pub(super) fn credentials(at: u32, cell: &Cell, unbroken: &mut Unbroken, sink: &mut Sink<'_>) {
    let text = sink.text();
    let (floor, ceil) = (
        cell.span.start as usize,
        (cell.span.end as usize).min(at as usize + URL_BYTES_MAX),
    );
    let mut start = at as usize;
    while start > floor
        && at as usize - start < 24
        && (text[start - 1].is_ascii_alphanumeric()
            || matches!(text[start - 1], b'+' | b'-' | b'.' | b':'))
    {
        start -= 1;
    }
    let authority = at as usize + 3;
    if start == at as usize || authority >= ceil {
        return;
    }
    let begun = unbroken.upto <= authority;
    let mut url = &text[authority..ceil];
    match unbroken.end(text, authority, ceil) {
        Some(end) => url = &text[authority..end],
        // Longer than most: who it speaks of may stand behind, and what follows is part of it. What else begins in it is
        // read no further than most are, if anything else can begin in so much of it.
        None if ceil < cell.span.end as usize
            && (begun && user_end(url).is_some() || !url.iter().any(|b| b"/?#".contains(b))) =>
        {
            let whole = cell.span.end as usize;
            let end = unbroken.end(text, authority, whole).unwrap_or(whole);
            if !sink
                .limits
                .spend(crate::text::to_u32((end - authority) / 16))
            {
                return;
            }
            url = &text[authority..end];
        }
        None => {}
    }
    // The last @ before a slash that follows it: passwords hold slashes and signs of their own.
    let Some(at_sign) = user_end(url) else { return };
    let Some(colon) = url[..at_sign].iter().position(|b| *b == b':') else {
        return;
    };
    let password = &url[colon + 1..at_sign];
    if password.len() < 3 || !believable(password) || !sink.limits.spend(1) {
        return;
    }
    let whole = Span::new(start, authority + url_end(url));
    sink.report_for(Detector::UrlCredentials, whole, None);
}

fn user_end(url: &[u8]) -> Option<usize> {
    let host_stop = url
        .iter()
        .position(|b| matches!(b, b'/' | b'?' | b'#'))
        .unwrap_or(url.len());
    if let Some(n) = url[..host_stop].iter().rposition(|b| *b == b'@') {
        return Some(n);
    }
    // A slash inside the password: only if what stands before it is `user:` and an @ follows with a host.
    let colon = url[..host_stop].iter().position(|b| *b == b':')?;
    let port = url[colon + 1..host_stop].iter().all(u8::is_ascii_digit);
    let n = url.iter().take(USER_BYTES_MAX).position(|b| *b == b'@')?;
    (!port && url.get(n + 1).is_some_and(u8::is_ascii_alphanumeric)).then_some(n)
}

/// The URL's end without the punctuation of the sentence around it.
fn url_end(url: &[u8]) -> usize {
    let mut end = url.len();
    while end > 0 && matches!(url[end - 1], b'.' | b',' | b';' | b')' | b']' | b'}') {
        end -= 1;
    }
    end
}

fn believable(password: &[u8]) -> bool {
    let lower = password.to_ascii_lowercase();
    let word = |list: &[&str]| list.iter().any(|w| w.as_bytes() == lower.as_slice());
    !value::is_placeholder(password)
        && !word(&[
            "pass",
            "pwd",
            "password",
            "secret",
            "postgres",
            "guest",
            "token",
            "mypass",
            "anoncvs",
            "anonymous",
            "x-oauth-basic",
            "port",
        ])
        && !is_filled_in(password)
}

/// `$PASSWORD`, `${DB_PASS}`, `$(cat pw)`, `{password}`, `<password>`, `[:port]`: what something else is put in for. A sign within a password is
/// none: `Kestr$8tund`.
fn is_filled_in(password: &[u8]) -> bool {
    const LONG_BYTES_MIN: usize = 24;
    if password.len() >= LONG_BYTES_MIN {
        return false;
    }
    let brackets = |b: &&u8| b"{}<>[]()".contains(b);
    let first = matches!(
        password.first(),
        Some(b'$' | b'{' | b'<' | b'[' | b'(' | b'%')
    );
    // `$` and a name: a shell's, of which `p4$w0rdXy` and what begins with two of them are none.
    first
        || password.iter().any(|b| brackets(&b)) && !value::is_bracketed(password)
        || password.contains(&b'$') && !value::stands_alone(password)
}

/// `at` is where `Basic ` or `Bearer ` begins.
pub(super) fn auth_header(at: u32, cell: &Cell, sink: &mut Sink<'_>) {
    let text = sink.text();
    let from = at as usize;
    if super::token::touches_before(text, from, cell.span.start as usize) {
        return;
    }
    let ceil = cell.span.end as usize;
    let scheme = &text[from..ceil.min(from + SCHEME_BYTES_MAX)];
    let Some(blank) = scheme.iter().position(|b| *b == b' ') else {
        return;
    };
    // `Authorization: Basic: c3Zj...`, as people write it.
    let scheme = &text[from..from + blank];
    let scheme = scheme.strip_suffix(b":").unwrap_or(scheme);
    let start = from + blank + 1;
    let value_end = text[start..ceil]
        .iter()
        .position(|b| {
            !(b.is_ascii_alphanumeric()
                || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_' | b'.' | b'~' | b':'))
        })
        .map_or(ceil, |n| start + n);
    let value = &text[start..value_end];
    // No other header's value can begin in it: each is read once, however long.
    let judged = &value[..value.len().min(JUDGED_BYTES_MAX)];
    if value.len() < 8 || !sink.limits.spend(1) {
        return;
    }
    let ok = if scheme.eq_ignore_ascii_case(b"basic") {
        check::find("base64-user-pass").is_some_and(|c| (c.run)(value))
            && !check::base64_value(value).is_some_and(|v| value::is_placeholder(&v))
    } else {
        value.len() >= 16 && value::judge(judged, crate::names::Promise::Strong, false).is_some()
    };
    if ok {
        sink.report_for(Detector::AuthHeader, Span::new(start, value_end), None);
    }
}
