//! What the words and signs beside a number say that it is: one of a thing, an amount, a part of something longer.

/// Do the words before a number say that it is one of a thing or of a list: `SKU 045-22-1180`, `part no. 045-22-1180`, `token contract: 0x...`?
pub(super) fn names_goods(before: &[u8]) -> bool {
    const REACH: usize = 32;
    const GOODS: [&str; 36] = [
        "sku",
        "part",
        "parts",
        "pn",
        "mpn",
        "model",
        "catalog",
        "catalogue",
        "cat",
        "item",
        "order",
        "invoice",
        "ticket",
        "serial",
        "sn",
        "product",
        "article",
        "lot",
        "batch",
        "drawing",
        "upc",
        "stock",
        "contract",
        "token",
        "erc20",
        "bep20",
        "trc20",
        "ref",
        "reference",
        "version",
        "position",
        "partition",
        "run",
        "build",
        "job",
        "commit",
    ];
    const NUMBER: [&str; 9] = [
        "no", "number", "num", "nr", "code", "id", "is", "at", "address",
    ];
    let near = before[before.len().saturating_sub(REACH)..].to_ascii_lowercase();
    if memchr::memchr(b'\n', &near)
        .is_some_and(|at| at + 1 < near.len() && near[at + 1..].trim_ascii().is_empty())
    {
        return false;
    }
    let words = near.split(|b| !b.is_ascii_alphanumeric());
    let mut words = words.rev().filter(|w| !w.is_empty());
    let is = |word: &[u8], list: &[&str]| list.iter().any(|w| w.as_bytes() == word);
    let last = words.find(|w| !is(w, &NUMBER));
    // `P/N 045-22-1180`, `S/N: ...`
    let parted = last == Some(b"n") && matches!(words.next(), Some(b"p" | b"s"));
    parted || last.is_some_and(|w| is(w, &GOODS))
}

/// Do the words before a number say that it is an amount of something, as in `rx_bytes 4240941569547042` or
/// `http_requests_total{code="200"} 2340515060177062` (Prometheus, "Metric and label naming")?
pub(super) fn names_amount(before: &[u8]) -> bool {
    const REACH: usize = 96;
    const UNITS: [&[u8]; 16] = [
        b"bytes",
        b"octets",
        b"packets",
        b"seconds",
        b"nanoseconds",
        b"microseconds",
        b"milliseconds",
        b"nanos",
        b"micros",
        b"millis",
        b"ns",
        b"ticks",
        b"cycles",
        b"jiffies",
        b"cpu",
        b"inode",
    ];
    // The last words of names, which stand in sentences as well.
    const ENDS: [&[u8]; 9] = [
        b"total", b"count", b"sum", b"bucket", b"us", b"ms", b"offset", b"hash", b"seed",
    ];
    let near = &before[before.len().saturating_sub(REACH)..];
    let line = memchr::memrchr(b'\n', near).map_or(0, |at| at + 1);
    let mut near = near[line..].trim_ascii_end();
    if let Some(labels) = near.strip_suffix(b"}") {
        near = &labels[..memchr::memrchr(b'{', labels).unwrap_or(0)];
    }
    let letter = |b: &u8| b.is_ascii_alphanumeric();
    let stop = near.iter().rposition(letter).map_or(0, |at| at + 1);
    let start = near[..stop].iter().rposition(|b| !letter(b));
    let start = start.map_or(0, |at| at + 1);
    let is = |list: &[&[u8]]| {
        list.iter()
            .any(|word| word.eq_ignore_ascii_case(&near[start..stop]))
    };
    is(&UNITS) || near[..start].ends_with(b"_") && is(&ENDS)
}

/// Does a text say how numbers are written, and not which one somebody has?
pub(super) fn describes(before: &[u8]) -> bool {
    const REACH: usize = 28;
    const WORDS: [&[u8]; 7] = [
        b"looks like",
        b"look like",
        b"format:",
        b"format is",
        b"in the format",
        b"of the form",
        b"formatted as",
    ];
    let near = before[before.len().saturating_sub(REACH)..].to_ascii_lowercase();
    // Nearly all lack both.
    let may = |four: &[u8]| matches!(four, b"look" | b"form");
    if !near.windows(4).any(may) {
        return false;
    }
    WORDS
        .iter()
        .any(|words| memchr::memmem::find(&near, words).is_some())
}

/// `1993-2007`: the years of a copyright or of a life.
pub(super) fn are_years(value: &[u8]) -> bool {
    const YEARS: std::ops::RangeInclusive<&[u8]> = b"1400"..=b"2060";
    value.len() == 9
        && value[4] == b'-'
        && [&value[..4], &value[5..]]
            .iter()
            .all(|year| year.iter().all(u8::is_ascii_digit) && YEARS.contains(year))
        && value[..4] <= value[5..]
}

/// Does a time with nanoseconds follow, as a system has it of its files: `2025-06-03 13:03:54.000000000`? A day alone is
/// kept with the hour at which it begins.
pub(super) fn is_stamp(after: &[u8]) -> bool {
    const CLOCK: &[u8; 10] = b" 00:00:00.";
    const FRACTION: usize = 9;
    let Some((clock, fraction)) = after.split_at_checked(CLOCK.len()) else {
        return false;
    };
    let formed = clock.iter().zip(CLOCK).all(|(b, form)| match form {
        b'0' => b.is_ascii_digit(),
        _ => b == form,
    });
    let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
    formed && digits == FRACTION && clock[1..] != CLOCK[1..]
}

/// `e8 62 01 02 00`: bytes in a dump, of which one beside them has a letter.
pub(super) fn is_of_dump(
    text: &[u8],
    (start, end): (usize, usize),
    (floor, ceil): (usize, usize),
) -> bool {
    if text[start..end].get(2) != Some(&b' ') {
        return false;
    }
    let pairs = text[start..end].split(|b| *b == b' ');
    let paired = pairs.clone().count() >= 3 && pairs.clone().all(|pair| pair.len() == 2);
    let is_byte = |pair: &[u8]| {
        pair.iter().all(u8::is_ascii_hexdigit)
            && pair.iter().any(u8::is_ascii_digit)
            && !pair.iter().all(u8::is_ascii_digit)
    };
    let word = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let before = &text[floor..start];
    let after = &text[end..ceil];
    let follows = match before {
        [.., a, b, b' '] => is_byte(&[*a, *b]) && !word(before.iter().nth_back(3)),
        _ => false,
    };
    let goes_on = match after {
        [b' ', a, b, ..] => is_byte(&[*a, *b]) && !word(after.get(3)),
        _ => false,
    };
    paired && (follows || goes_on)
}

/// `arn:aws:ec2:eu-central-1:184008247829:...`: the fourth field behind the first is an account at Amazon (AWS General
/// Reference, "Amazon Resource Names").
pub(super) fn is_of_arn(before: &[u8]) -> bool {
    const REACH: usize = 80;
    if before.last() != Some(&b':') {
        return false;
    }
    let near = &before[before.len().saturating_sub(REACH)..];
    let word = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-');
    let start = near.iter().rposition(|b| !word(b)).map_or(0, |at| at + 1);
    let mut fields = near[start..].split(|b| *b == b':');
    fields.next() == Some(b"arn")
        && fields.next().is_some_and(|f| f.starts_with(b"aws"))
        && fields.count() == 3
}
