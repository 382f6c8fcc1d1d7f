//! Addresses of mail, network and cards in it: found by their punctuation.

use super::Sink;
use crate::Layer;
use crate::ruleset::Detector;
use crate::text::{Cell, Span};
use crate::traces::Traces;

pub(super) fn scan(sink: &mut Sink<'_>, traces: &Traces) {
    let has = |d: Detector| sink.rules.detectors[d as usize].is_some();
    let (email, colon, dots) = (
        has(Detector::Email),
        has(Detector::Ipv6) || has(Detector::Mac),
        has(Detector::Ipv4),
    );
    if email {
        emails(sink, &traces.ats);
    }
    if colon {
        each_cell_with(&traces.colons, sink, colons);
    }
    if dots {
        each_cell_with(&traces.dots, sink, ipv4s);
    }
}

/// Calls `look` on every cell that holds one of the places, once.
fn each_cell_with(places: &[u32], sink: &mut Sink<'_>, look: fn(&Cell, &mut Sink<'_>)) {
    let node = sink.node;
    let (mut index, mut done) = (0, 0);
    for at in places.iter().map(|at| *at as usize) {
        if at < done {
            continue;
        }
        if let Some(cell) = node.cell_from(at, &mut index) {
            done = cell.span.end as usize;
            if cell.span.len() >= 6 {
                look(cell, sink);
            }
        }
    }
}

fn emails(sink: &mut Sink<'_>, ats: &[u32]) {
    let (node, mut index) = (sink.node, 0);
    // Words come together there that stand apart, or from right to left.
    let put_together = matches!(node.layer, Some(Layer::Joined | Layer::Reversed));
    for at in ats.iter().map(|at| *at as usize) {
        let Some(cell) = node.cell_from(at, &mut index) else {
            continue;
        };
        if !sink.limits.spend(1) {
            return;
        }
        let (text, base) = (&node.text[cell.span.range()], cell.span.start as usize);
        if let Some((s, e)) = email_around(text, at - base)
            && (!put_together || ends_as_usual(&text[..e]))
            && !is_of_message(text, (s, at - base, e), &node.text[cell.name.range()])
        {
            sink.report_for(Detector::Email, Span::new(base + s, base + e), None);
        }
    }
}

/// Does an address end in the code of a country, or a domain that is everybody's?
fn ends_as_usual(address: &[u8]) -> bool {
    const TOPS: [&[u8]; 16] = [
        b"com", b"org", b"net", b"edu", b"gov", b"mil", b"int", b"info", b"biz", b"name", b"pro",
        b"app", b"dev", b"xyz", b"online", b"email",
    ];
    let top = address.rsplit(|b| *b == b'.').next().unwrap_or(address);
    top.len() == 2 || !top.is_ascii() || TOPS.iter().any(|known| known.eq_ignore_ascii_case(top))
}

/// RFC 5321 in practice: dot-atom, `@`, labels, a top-level domain of letters.
/// Where a local part in quotes begins that ends with the text (RFC 5321, `Quoted-string`).
fn quoted_local(before: &[u8]) -> Option<usize> {
    let inner = before.strip_suffix(b"\"")?;
    let floor = inner.len().saturating_sub(64);
    let quote = inner[floor..].iter().rposition(|b| *b == b'"')? + floor;
    let local = &inner[quote + 1..];
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b" ._-+'".contains(b);
    (local.len() >= 3 && local.iter().all(plain)).then_some(quote)
}

fn email_around(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let local = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'%' | b'+' | b'-') || b >= 0x80
    };
    let mut start = at;
    while start > 0 && at - start < 64 && local(text[start - 1]) {
        start -= 1;
    }
    while start < at && !text[start].is_ascii_alphanumeric() && text[start] < 0x80 {
        start += 1;
    }
    // `\nname@...` with the escape written out.
    if start > 0
        && start < at
        && text[start - 1] == b'\\'
        && matches!(text[start], b'n' | b't' | b'r')
    {
        start += 1;
    }
    if start == at
        && let Some(quote) = quoted_local(&text[..at])
    {
        start = quote;
    } else if start == at
        || !text[at - 1].is_ascii_alphanumeric()
            && !matches!(text[at - 1], b'_' | b'-' | b'+')
            && text[at - 1] < 0x80
    {
        return None;
    }
    let domain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-') || b >= 0x80;
    // `petra.lindqvist@` and its host in the next line.
    let broken = text.get(at + 1) == Some(&b'\n') && text[start..at].contains(&b'.');
    let from = at + 1 + usize::from(broken);
    let mut end = from;
    while end < text.len() && end - at < 254 && domain(text[end]) {
        end += 1;
    }
    while end > from && matches!(text[end - 1], b'.' | b'-') {
        end -= 1;
    }
    let dot = from + text[from..end].iter().rposition(|b| *b == b'.')?;
    // What follows without a blank in a script that has none is no part of the address.
    if text.get(dot + 1).is_some_and(u8::is_ascii) {
        let latin = text[dot + 1..end].iter().take_while(|b| b.is_ascii());
        end = dot + 1 + latin.count();
    }
    let host = &text[from..end];
    let top = &text[dot + 1..end];
    let labels = host
        .split(|b| *b == b'.')
        .all(|l| !l.is_empty() && l[0] != b'-');
    let own_script = || !top.iter().any(u8::is_ascii) || top.starts_with(b"xn--");
    let latin = (2..=18).contains(&top.len()) && top.iter().all(u8::is_ascii_alphabetic);
    let known = latin || (4..=60).contains(&top.len()) && own_script();
    if !labels || !known {
        return None;
    }
    (!nobody(&text[start..at], host, text.get(end).copied(), text, start)).then_some((start, end))
}

/// Addresses that reach no person: documentation's, machines', and things that only look like mail.
fn nobody(local: &[u8], host: &[u8], after: Option<u8>, text: &[u8], start: usize) -> bool {
    let host = host.to_ascii_lowercase();
    let local = local.to_ascii_lowercase();
    let is_or_under = |d: &str| {
        host == d.as_bytes()
            || host
                .strip_suffix(d.as_bytes())
                .is_some_and(|h| h.ends_with(b"."))
    };
    const DOCS: &[&str] = &[
        "example.com",
        "example.org",
        "example.net",
        "example",
        "test",
        "invalid",
        "localhost",
        "local",
        "example.edu",
        "domain.com",
        "email.com",
        "yourdomain.com",
        "company.com",
        // Accounts of programs at Google Cloud.
        "gserviceaccount.com",
        // What its makers call an algorithm or an extension of SSH by (RFC 4251, section 6).
        "openssh.com",
    ];
    const FILES: &[&str] = &[
        "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "ts", "css", "py", "rs", "go", "json",
        "md", "html", "svc", "tsx", "jsx", "mjs", "yml", "yaml", "lock", "toml", "txt", "service",
        "target", "internal", "header", "po", "pot", "lst", "tar", "gz", "xz", "bz2", "deb", "rpm",
        "timer", "socket", "mount", "slice", "log", "cfg", "conf", "ini", "csv", "xml", "pdf",
        "patch", "diff", "orig", "jar", "exe", "dll", "bak", "tmp", "db", "sql", "cpp", "hpp",
    ];
    const MACHINES: &[&[u8]] = &[
        b"noreply",
        b"no-reply",
        b"donotreply",
        b"git",
        b"root",
        b"ssh",
        b"hg",
        b"mailer-daemon",
        b"notifications",
        b"npm",
        b"svn",
        b"user",
        b"username",
        b"you",
        b"your-email",
        b"your.email",
        b"youremail",
        b"name",
        b"email",
        b"someone",
        b"foo",
        b"bar",
        b"test",
        b"me",
        b"deploy",
        b"ops",
        b"cron",
        b"postmaster",
        b"hostmaster",
        b"webmaster",
        b"abuse",
        b"noc",
        b"mailer",
        b"bounce",
        b"bounces",
        b"alerts",
        b"monitoring",
    ];
    const GENERIC: &[&str] = &["users.noreply.github.com"];
    let top = host.rsplit(|b| *b == b'.').next().unwrap_or(b"");
    let scp =
        after == Some(b':') && (local == b"git" || text.get(start.wrapping_sub(1)) == Some(&b'/'));
    let in_url = (text[..start].ends_with(b":") || text[..start].ends_with(b"//"))
        && text[..start].windows(3).rev().take(64).any(|w| w == b"://");
    scp || in_url
        || start > 0 && matches!(text[start - 1], b'$' | b'{' | b'%')
        || after == Some(b'(')
        || after == Some(b'/') && local.len() < 3
        || DOCS.iter().chain(GENERIC).any(|d| is_or_under(d))
        || FILES.iter().any(|f| f.as_bytes() == top)
        || MACHINES.contains(&local.as_slice())
        || is_number_of_message(&local)
        || is_algorithm(&local)
        // `ipaddr.js@1.9.1`, from right to left.
        || local.iter().all(|b| b.is_ascii_digit() || *b == b'.')
            && local.iter().filter(|b| **b == b'.').count() > 1
        || host
            .split(|b| *b == b'.')
            .any(|label| memchr::memmem::find(label, b"xxxx").is_some())
        || [&local, &host].iter().any(|part| is_masked(part))
}

/// `curve25519-sha256@libssh.org`, `rijndael-cbc@lysator.liu.se`: names of algorithms have a domain behind them in SSH (RFC 4251,
/// section 6).
fn is_algorithm(local: &[u8]) -> bool {
    const PARTS: [&[u8]; 8] = [
        b"sha1", b"sha2", b"sha256", b"sha512", b"cbc", b"gcm", b"ctr", b"md5",
    ];
    local.contains(&b'-')
        && local
            .split(|b| *b == b'-')
            .any(|part| PARTS.contains(&part))
}

/// `UID:ab4e63c5-5955-46fa-8523-44df5e2d9545@cal.nordkai.eu`: what a calendar or a mail is known by (RFC 5545, 3.8.4.7; RFC 5322, 3.6.4).
fn is_number_of_message(local: &[u8]) -> bool {
    const HEX_MIN: usize = 24;
    let hex = local.iter().all(u8::is_ascii_hexdigit) && local.len() >= HEX_MIN;
    hex || crate::value::is_uuid(local)
}

/// Is it what a mail, a part of one or an event is known by (RFC 5322, 3.6.4; RFC 5545, 3.8.4.7), and nobody's address?
fn is_of_message(text: &[u8], (start, at, end): (usize, usize, usize), name: &[u8]) -> bool {
    const NAMES: [&[u8]; 11] = [
        b"messageid",
        b"inreplyto",
        b"references",
        b"icaluid",
        b"contentid",
        b"internetmessageid",
        b"resentmessageid",
        b"uid",
        b"xgooglecalendarid",
        b"threadindex",
        b"originalmessageid",
    ];
    const HOSTS: [&[u8]; 4] = [
        b"mail.gmail.com",
        b"group.calendar.google.com",
        b"group.v.calendar.google.com",
        b"resource.calendar.google.com",
    ];
    const MADE_BYTES_MIN: usize = 20;
    const BARE_BYTES_MIN: usize = 16;
    const LINE_BYTES_MAX: usize = 300;
    let (local, host) = (&text[start..at], &text[at + 1..end]);
    let is = |list: &[&[u8]], word: &[u8]| list.iter().any(|w| w.eq_ignore_ascii_case(word));
    let host_of = |end: &[u8]| {
        host.len() > end.len() && host[host.len() - end.len()..].eq_ignore_ascii_case(end)
    };
    let digits = local.iter().filter(|b| b.is_ascii_digit()).count();
    // Events of Google Calendar; no account has such a name.
    let made = local.len() >= MADE_BYTES_MIN
        && digits >= 3
        && local
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_');
    if is(&HOSTS, host)
        || host_of(b".amazonses.com")
        || host_of(b".prod.outlook.com") && digits >= 3
        || made && host.eq_ignore_ascii_case(b"google.com")
    {
        return true;
    }
    let letters = |name: &[u8]| -> Vec<u8> {
        name.iter()
            .copied()
            .filter(u8::is_ascii_alphanumeric)
            .collect()
    };
    let in_brackets = start > 0 && text[start - 1] == b'<' && text.get(end) == Some(&b'>');
    // The value of such a field: `{"messageId":"<...>"}`; a name before it stands alone.
    // Without brackets it may be somebody's address for all that.
    let told = in_brackets || digits >= 3 && local.len() >= BARE_BYTES_MIN;
    let whole = start == 0 || in_brackets && start == 1;
    if told && whole && name.len() <= 32 && is(&NAMES, &letters(name)) {
        return true;
    }
    let floor = start.saturating_sub(LINE_BYTES_MAX);
    let line = memchr::memrchr(b'\n', &text[floor..start]).map_or(floor, |n| floor + n + 1);
    let before = &text[line..start];
    let head = before.iter().position(|b| matches!(b, b':' | b'='));
    let head = head.map(|colon| letters(&before[..colon]));
    let field = head.is_some_and(|head| head.len() <= 20 && is(&NAMES, &head));
    field && told
}

/// `h•••@g•••.com`: a single one between letters takes nothing away.
fn is_masked(part: &[u8]) -> bool {
    memchr::memmem::find(part, "••".as_bytes()).is_some()
}

/// `2001:db8:41::/64`, `100.64.0.0/10`: a network, in which nothing behind its prefix is set. With a prefix a machine's own address is
/// still one.
fn is_network(address: u128, bits: u32, after: &[u8]) -> bool {
    let Some((b'/', rest)) = after.split_first() else {
        return false;
    };
    // `130.225.16.0/255.255.255.0`
    if bits == 32 && rest.starts_with(b"255.") {
        return address.trailing_zeros() >= 8;
    }
    let len = rest.iter().take(4).take_while(|b| b.is_ascii_digit());
    let length = std::str::from_utf8(&rest[..len.count()]).ok();
    let length = length.and_then(|len| len.parse::<u32>().ok());
    length.is_some_and(|length| length + 1 < bits && address.trailing_zeros() >= bits - length)
}

/// IPv6 (RFC 4291) and EUI-48: hex groups and colons.
fn colons(cell: &Cell, sink: &mut Sink<'_>) {
    let (node, base) = (sink.node, cell.span.start as usize);
    let text = &node.text[cell.span.range()];
    let part = |b: u8| b.is_ascii_hexdigit() || b == b':';
    let mut done = 0;
    for at in memchr::memchr_iter(b':', text) {
        if at < done {
            continue;
        }
        let next = text.get(at + 1).copied().unwrap_or(0);
        let after_colon = at > 0 && text[at - 1] == b':';
        if !part(next) && !after_colon {
            continue;
        }
        let mut start = at;
        while start > done && part(text[start - 1]) && at - start < 5 {
            start -= 1;
        }
        let mut end = at;
        while end < text.len() && (part(text[end]) || text[end] == b'.') && end - start < 46 {
            end += 1;
        }
        // What goes on is longer than any address, and its end is none either: the fingerprint of a key.
        let rest = text[end..].iter().take_while(|b| part(**b)).count();
        while end > start && rest == 0 && matches!(text[end - 1], b'.') {
            end -= 1;
        }
        done = end + rest;
        let word = |b: Option<&u8>| {
            b.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b':')
        };
        if end - start < 6
            || word(text.get(end))
            || start > 0 && word(text.get(start - 1))
            || !sink.limits.spend(1)
        {
            continue;
        }
        let token = &text[start..end];
        let span = Span::new(base + start, base + end);
        if is_mac(token, b':') {
            sink.report_for(Detector::Mac, span, None);
        } else if is_ipv6(token)
            && !v6(token).is_some_and(|ip| is_network(ip.to_bits(), 128, &text[end..]))
            && !text[..start].trim_ascii_end().ends_with(b" AAAA")
        {
            sink.report_for(Detector::Ipv6, span, None);
        }
    }
}

fn is_mac(token: &[u8], sep: u8) -> bool {
    let all = token.len() == 17
        && token.iter().enumerate().all(|(i, b)| {
            if i % 3 == 2 {
                *b == sep
            } else {
                b.is_ascii_hexdigit()
            }
        });
    all && token.iter().any(|b| !matches!(b, b'0' | b':' | b'-'))
        && token
            .iter()
            .any(|b| !matches!(b, b'f' | b'F' | b':' | b'-'))
        && !token.to_ascii_lowercase().starts_with(b"aa:bb:cc:dd:")
        && !token.starts_with(b"00:11:22:33:44")
        // One byte over and over only shows the form.
        && token.chunks(3).any(|byte| byte[..2] != token[..2])
        // Docker makes them of the addresses of its containers.
        && !token.starts_with(b"02:42:")
        // Groups of IPv4 and IPv6, and of bridges; what is kept for documents and for routers that stand in for each other
        // (RFC 9542, sections 2.1 and 5): nobody's card.
        && !["01:00:5e:", "33:33:", "01:80:c2:", "00:00:5e:"].iter().any(|group| {
            let head = token.get(..group.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(group.as_bytes()))
        })
}

fn v6(token: &[u8]) -> Option<std::net::Ipv6Addr> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

fn v4(token: &[u8]) -> Option<std::net::Ipv4Addr> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

fn is_ipv6(token: &[u8]) -> bool {
    let Some(ip) = v6(token) else {
        return false;
    };
    let groups = token
        .split(|b| *b == b':')
        .filter(|g| !g.is_empty())
        .count();
    let telling = token.len() >= 8 && groups >= 3;
    // The resolvers that everybody asks.
    const RESOLVERS: [&str; 6] = [
        "2001:4860:4860::8888",
        "2001:4860:4860::8844",
        "2606:4700:4700::1111",
        "2606:4700:4700::1001",
        "2620:fe::fe",
        "2620:fe::9",
    ];
    is_public_v6(ip)
        && telling
        && !RESOLVERS
            .iter()
            .any(|known| token.eq_ignore_ascii_case(known.as_bytes()))
        && token.iter().filter(|b| **b == b':').count() >= 2
        && !is_of_fingerprint(token)
}

/// Somebody's on the Internet, and no address of the second block for documentation (RFC 9637), in a network of one's own (RFC 4193), of a group
/// or a link (RFC 4291), or out of the block that is kept for the protocol itself (0000::/8). One of IPv4 in the form of IPv6 is
/// what that is.
fn is_public_v6(ip: std::net::Ipv6Addr) -> bool {
    if let Some(ip) = ip.to_ipv4_mapped() {
        return is_public_v4(ip.to_string().as_bytes());
    }
    let bits = ip.to_bits();
    let mask = bits.leading_ones() >= 16 && bits.leading_ones() + bits.trailing_zeros() == 128;
    // One of 2001:db8::/32 (RFC 3849) often is what somebody put in place of a real one, and told as that.
    let documents = matches!(ip.segments(), [0x3fff, 0..=0xfff, ..]);
    let reserved = ip.segments()[0] < 0x100 && ip.segments()[..2] != [0x64, 0xff9b];
    !mask
        && !documents
        && !reserved
        && !ip.is_unique_local()
        && !ip.is_unicast_link_local()
        && !ip.is_multicast()
}

/// `9d:7e:62:22:da:de:18:27`: eight bytes of a longer row that was broken into lines.
fn is_of_fingerprint(token: &[u8]) -> bool {
    let mut groups = token.split(|b| *b == b':');
    groups.clone().count() == 8 && groups.all(|group| group.len() == 2)
}

/// IPv4, four numbers up to 255, no version and no part of something longer.
fn ipv4s(cell: &Cell, sink: &mut Sink<'_>) {
    let (node, base) = (sink.node, cell.span.start as usize);
    let text = &node.text[cell.span.range()];
    // Moved letters leave digits as they are: only the word that says "version" is lost.
    if node.layer == Some(Layer::Rot13) || names_version(&node.text[cell.name.range()]) {
        return;
    }
    let mut done = 0;
    for at in memchr::memchr_iter(b'.', text) {
        if at < done
            || at == 0
            || !text[at - 1].is_ascii_digit()
            || !text.get(at + 1).is_some_and(u8::is_ascii_digit)
        {
            continue;
        }
        let mut start = at;
        while start > done && at - start < 4 && text[start - 1].is_ascii_digit() {
            start -= 1;
        }
        let mut end = at;
        while end < text.len()
            && end - start < 24
            && (text[end].is_ascii_digit() || text[end] == b'.')
        {
            end += 1;
        }
        while end > start && text[end - 1] == b'.' {
            end -= 1;
        }
        done = end;
        let glued = |b: Option<&u8>| {
            b.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'='))
        };
        let before = start > 0
            && (text[start - 1].is_ascii_alphanumeric()
                || matches!(text[start - 1], b'_' | b'-' | b'.' | b'~' | b'^' | b'+'));
        if before
            || glued(text.get(end)) && !matches!(text.get(end), Some(b'-'))
            || !sink.limits.spend(1)
        {
            continue;
        }
        if is_public_v4(&text[start..end])
            && (!is_low(&text[start..end])
                || speaks_of_machine(&text[..start], &node.text[cell.name.range()]))
            && !version_before(&text[..start])
            && !version_after(&text[end..])
            && !is_of_path(&text[..start], &text[end..])
            && !v4(&text[start..end])
                .is_some_and(|ip| is_network(ip.to_bits().into(), 32, &text[end..]))
        {
            sink.report_for(Detector::Ipv4, Span::new(base + start, base + end), None);
        }
    }
}

fn is_public_v4(token: &[u8]) -> bool {
    let Some(ip) = v4(token) else {
        return false;
    };
    let o = ip.octets();
    let mask = o[0] == 255 || o[0] == 0;
    let resolver = matches!(
        o,
        [8, 8, 8 | 4, 8 | 4] | [1, 1, 1, 1] | [1, 0, 0, 1] | [9, 9, 9, 9]
    );
    // RFC 5737: for documentation.
    let example = matches!(o, [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _]);
    // RFC 6598: between a provider and its customers' routers.
    let shared = o[0] == 100 && (64..128).contains(&o[1]);
    let version_like = o.iter().all(|n| *n < 20) && o[0] < 10;
    !(ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_broadcast()
        || mask
        || resolver
        || example
        || shared
        // Names a machine in some network, and nobody.
        || ip.is_private()
        || ip.is_link_local()
        || version_like
        || is_object(o)
        || ip.is_multicast())
}

/// Versions and numbers of sections are as low as this, and one address in 4,096.
fn is_low(token: &[u8]) -> bool {
    v4(token).is_some_and(|ip| ip.octets().iter().all(|n| *n < 32))
}

/// Does what stands before an address, or the name of its field, speak of machines?
fn speaks_of_machine(before: &[u8], name: &[u8]) -> bool {
    const WORDS: [&[u8]; 12] = [
        b"ip", b"client", b"from", b"host", b"@", b"src", b"dst", b"addr", b"remote", b"server",
        b"peer", b"://",
    ];
    let tail = &before[before.len().saturating_sub(24)..];
    [tail, name].iter().any(|text| {
        let lower = text.to_ascii_lowercase();
        WORDS
            .iter()
            .any(|word| memchr::memmem::find(&lower, word).is_some())
    })
}

/// What the directory and its keys are known by (ITU-T X.660; the arcs of X.500, ISO 9796 and the curves of RFC 8410).
fn is_object(octets: [u8; 4]) -> bool {
    matches!(
        octets,
        [2, 5, 4 | 8 | 29, _] | [1, 3, 6 | 14 | 36 | 101 | 132, _]
    )
}

/// Does the name of a field say that it holds a version: `v8`, `firmwareVersion`, `release`, `oid`?
fn names_version(name: &[u8]) -> bool {
    const PARTS: [&[u8]; 5] = [b"version", b"release", b"firmware", b"build", b"oid"];
    let whole = [&b"v8"[..], b"ver", b"rev", b"oid"];
    let ends = |part: &&[u8]| {
        let at = name.len().wrapping_sub(part.len());
        part.len() > 3
            && name
                .get(at..)
                .is_some_and(|end| end.eq_ignore_ascii_case(part))
    };
    whole.iter().any(|word| word.eq_ignore_ascii_case(name)) || PARTS.iter().any(ends)
}

/// `11.3.244.8-node.38`, `5.15.146.1-microsoft-standard`, `19.1.2.254 installed`: what goes on as versions do.
fn version_after(after: &[u8]) -> bool {
    const WORDS: [&[u8]; 14] = [
        b" installed",
        b" released",
        b" is out",
        b"-node",
        b"-microsoft",
        b"-rc",
        b"-beta",
        b"-alpha",
        b"-stable",
        b"-generic",
        b"-dev",
        b"-snapshot",
        b"-release",
        b"-pre",
    ];
    WORDS.iter().any(|word| after.starts_with(word))
}

/// `2.74.76 3.6.6.84 1.62`: decimals with a dot for their nought, among others, in the path of a drawing (SVG 2, section 9.3).
fn is_of_path(before: &[u8], after: &[u8]) -> bool {
    let part = |b: &&u8| b.is_ascii_digit() || matches!(**b, b'.' | b'-');
    let is_decimal = |len: usize, text: &[u8]| {
        len > 1 && matches!(text.iter().filter(|b| **b == b'.').count(), 1 | 2)
    };
    let Some(before) = before.strip_suffix(b" ") else {
        return false;
    };
    let last = before.iter().rev().take(16).take_while(part).count();
    let follows = after.strip_prefix(b" ").unwrap_or(after);
    let next = follows.iter().take(16).take_while(part).count();
    is_decimal(last, &before[before.len() - last..]) && is_decimal(next, &follows[..next])
}

/// `(>= 1:1.0.99.4)`, `libxrandr (2:1.2.99.4`: the epoch of a package (Debian Policy, 5.6.12); `R03591:1.1.1.218`: a reaction and
/// its enzyme.
fn ends_with_epoch(before: &[u8]) -> bool {
    let Some(number) = before.strip_suffix(b":") else {
        return false;
    };
    let digits = number.iter().rev().take_while(|b| b.is_ascii_digit());
    let lead = &number[..number.len() - digits.count()];
    let epoch = lead.len() + 1 == number.len();
    let reaction = number.len() - lead.len() == 5
        && lead
            .strip_suffix(b"r")
            .is_some_and(|before| !before.last().is_some_and(u8::is_ascii_alphabetic));
    epoch && (lead.ends_with(b"(") || lead.ends_with(b"= ")) || reaction
}

/// `libX11 1.4.99.1`: a library and its version.
fn is_library(before: &[u8]) -> bool {
    let Some(word) = before.strip_suffix(b" ") else {
        return false;
    };
    let start = word.iter().rposition(|b| !b.is_ascii_alphanumeric());
    let word = &word[start.map_or(0, |at| at + 1)..];
    let named = |b: &u8| b.is_ascii_digit() || b.is_ascii_uppercase();
    word.len() > 3
        && word[..3].eq_ignore_ascii_case(b"lib")
        && (word[3..].iter().any(named) || word[3..].contains(&b'x'))
}

/// `version 1.2.3.4`, `v1.2.3.4`, `rev`, `release`, `build` just before.
fn version_before(before: &[u8]) -> bool {
    let tail = &before[before.len().saturating_sub(24)..];
    let lower = tail.to_ascii_lowercase();
    [
        "version", "ver.", "ver ", "release", "build", "chrome/", "safari/", "edg/", "firefox/",
        "rev", "assembly", "oid", "section", "upgrade", "fortran", "changes in ", "new in ", "v8\"",
    ]
    .iter()
    .any(|w| memchr::memmem::find(&lower, w.as_bytes()).is_some())
        || [&b"kernel "[..], b"driver ", b"firmware ", b"agent "]
            .iter()
            .any(|word| lower.ends_with(word))
        // Enzymes (IUBMB): `EC 3.4.21.4`.
        || lower.ends_with(b"ec ")
        || ends_with_epoch(&lower)
        || is_library(&lower)
        || lower.ends_with(b"/")
            && lower
                .iter()
                .rev()
                .nth(1)
                .is_some_and(u8::is_ascii_alphabetic)
}
