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

/// Do the words before a number say that it is the number of a thing in a catalogue or of a post: `item_id`, `"sku":`, `story_fbid=`?
pub(super) fn names_thing(before: &[u8]) -> bool {
    const REACH: usize = 24;
    const THINGS: [&[u8]; 36] = [
        b"sku",
        b"upc",
        b"gtin",
        b"ean",
        b"isbn",
        b"asin",
        b"barcode",
        b"item",
        b"product",
        b"catalog",
        b"catalogue",
        b"part",
        b"mpn",
        b"serial",
        b"tweet",
        b"fb",
        b"post",
        b"message",
        b"trace",
        b"span",
        b"object",
        b"thread",
        b"video",
        b"photo",
        b"story",
        b"comment",
        b"media",
        b"snowflake",
        b"guild",
        b"channel",
        b"build",
        b"commit",
        b"job",
        b"order",
        b"asset",
        b"variant",
    ];
    const NUMBER: [&[u8]; 6] = [b"no", b"number", b"num", b"nr", b"code", b"id"];
    let near = before[before.len().saturating_sub(REACH)..].to_ascii_lowercase();
    let words = near.split(|b| !b.is_ascii_alphanumeric());
    let words = words.rev().filter(|w| !w.is_empty() && !NUMBER.contains(w));
    let thing = |word: &[u8]| {
        let bare = word.strip_suffix(b"id").unwrap_or(word);
        THINGS.contains(&bare) || THINGS.contains(&word)
    };
    words.take(1).any(thing)
}

/// Does the word before a number say that it is some id or a count: `"osm_id":`, `userId=`, `rows=`? Those of callers are their
/// numbers.
pub(super) fn names_id(before: &[u8]) -> bool {
    const REACH: usize = 32;
    const CALLED: [&[u8]; 12] = [
        b"caller",
        b"callers",
        b"phone",
        b"tel",
        b"mobile",
        b"cell",
        b"sms",
        b"whatsapp",
        b"viber",
        b"signal",
        b"line",
        b"number",
    ];
    const COUNTS: [&[u8]; 3] = [b"rows", b"epoch", b"fiscal"];
    let near = before[before.len().saturating_sub(REACH)..].trim_ascii_end();
    let words = near.rsplit(|b| !b.is_ascii_alphanumeric());
    let mut words = words.filter(|w| !w.is_empty());
    let Some(last) = words.next() else {
        return false;
    };
    if COUNTS.contains(&last) {
        return true;
    }
    let humps = last.strip_suffix(b"Id").filter(|stem| !stem.is_empty());
    let stem = match last {
        b"id" | b"ID" | b"Id" => words.next().unwrap_or_default(),
        _ => match humps {
            Some(stem) => stem,
            None => return false,
        },
    };
    let stem = stem.to_ascii_lowercase();
    !CALLED.iter().any(|called| stem.ends_with(called))
}

/// Does the name of a firm or an office stand beside a number: `VAT DE811907980 (SAP SE)`?
pub(super) fn beside_firm(text: &[u8], (start, end): (usize, usize)) -> bool {
    const REACH: usize = 56;
    /// As they are written behind a name.
    const FORMS: [&[u8]; 50] = [
        b"Inc",
        b"LLC",
        b"Ltd",
        b"Limited",
        b"PLC",
        b"plc",
        b"GmbH",
        b"AG",
        b"SE",
        b"SA",
        b"S.A",
        b"SAS",
        b"SARL",
        b"S.r.l",
        b"Srl",
        b"SpA",
        b"S.p.A",
        b"BV",
        b"B.V",
        b"NV",
        b"N.V",
        b"AB",
        b"ASA",
        b"A/S",
        b"ApS",
        b"Oy",
        b"Oyj",
        b"KG",
        b"KGaA",
        b"s.r.o",
        b"a.s",
        b"d.o.o",
        b"Pty",
        b"Corp",
        b"Corporation",
        b"Ltda",
        b"Kft",
        b"Office",
        b"Ministry",
        b"University",
        b"Foundation",
        b"Bank",
        b"Holding",
        b"Group",
        b"Authority",
        b"Agency",
        "ПАО".as_bytes(),
        "ООО".as_bytes(),
        "ЗАО".as_bytes(),
        "株式会社".as_bytes(),
    ];
    let before = &text[start.saturating_sub(REACH)..start];
    let before = memchr::memrchr(b'\n', before).map_or(before, |at| &before[at + 1..]);
    let after = &text[end..text.len().min(end + REACH)];
    let after = memchr::memchr(b'\n', after).map_or(after, |at| &after[..at]);
    let words = |part: &[u8]| {
        let mut words = part
            .split(|b| *b <= b' ' || b"()[],;:\"'".contains(b))
            .skip(1);
        words.any(|word| FORMS.contains(&word.strip_suffix(b".").unwrap_or(word)))
    };
    words(before) || words(after) || after.starts_with(b" of the firm")
}

/// Do most numbers around that have as many digits have a wrong sum? Then this one has a right one by chance.
pub(super) fn is_by_chance(
    text: &[u8],
    at: (usize, usize),
    passes: impl Fn(&[u8]) -> bool,
) -> bool {
    const REACH: usize = 600;
    const OTHERS_MIN: usize = 3;
    let len = at.1 - at.0;
    let near = &text[at.0.saturating_sub(REACH)..text.len().min(at.1 + REACH)];
    let own = &text[at.0..at.1];
    let (mut right, mut wrong) = (0, 0);
    for word in near.split(|b| !b.is_ascii_alphanumeric()) {
        if word.len() == len && word != own && word.iter().all(u8::is_ascii_digit) {
            match passes(word) {
                true => right += 1,
                false => wrong += 1,
            }
        }
    }
    wrong >= OTHERS_MIN && wrong > right
}

/// Do the words before a number say that it is an amount of something, as in `rx_bytes 4240941569547042` or
/// `http_requests_total{code="200"} 2340515060177062` (Prometheus, "Metric and label naming")?
pub(super) fn names_amount(before: &[u8]) -> bool {
    const REACH: usize = 96;
    const UNITS: [&[u8]; 20] = [
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
        b"offset",
        b"lag",
        b"timestamp",
        b"checksum",
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

/// `1234567890 views`: a number of things, whatever word stands before it.
pub(super) fn counts(value: &[u8], after: &[u8]) -> bool {
    const THINGS: [&[u8]; 22] = [
        b"views",
        b"bytes",
        b"rows",
        b"items",
        b"records",
        b"users",
        b"requests",
        b"times",
        b"hits",
        b"ms",
        b"points",
        b"lines",
        b"calls",
        b"events",
        b"files",
        b"entries",
        b"followers",
        b"downloads",
        b"packets",
        b"seconds",
        b"blocks",
        b"ns",
    ];
    let Some(rest) = after.strip_prefix(b" ") else {
        return false;
    };
    let len = rest.iter().take(12).take_while(|b| b.is_ascii_alphabetic());
    value.iter().all(u8::is_ascii_digit) && THINGS.contains(&&rest[..len.count()])
}

/// `255 250 250` and a tab: red, green and blue in a list of colours (X11, `rgb.txt`).
pub(super) fn is_colour(value: &[u8], after: &[u8]) -> bool {
    let part = |group: &[u8]| {
        let n = group.iter().try_fold(0u32, |n, b| {
            b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0'))
        });
        (1..=3).contains(&group.len()) && n.is_some_and(|n| n <= 255)
    };
    let mut groups = value.split(|b| *b == b' ');
    let gap = after.iter().take(2).take_while(|b| **b == b' ').count();
    after.get(gap) == Some(&b'\t') && groups.clone().count() == 3 && groups.all(part)
}

/// `## Date: 2000-07-11`, `.TH FUSER 1 2022-11-02`: the day of a text, in its head, which nobody was born on.
pub(super) fn heads(before: &[u8]) -> bool {
    const REACH: usize = 48;
    const LABELS: [&[u8]; 7] = [
        b"date",
        b"datum",
        b"revision",
        b"modified",
        b"created",
        b"updated",
        b"released",
    ];
    let near = &before[before.len().saturating_sub(REACH)..];
    let line = memchr::memrchr(b'\n', near).map_or(0, |at| at + 1);
    let line = &near[line..];
    if line.starts_with(b".TH ") {
        return true;
    }
    let Some(label) = line.trim_ascii_end().strip_suffix(b":") else {
        return false;
    };
    let signs = |b: &u8| b"%#*.\\\"/ \t-$".contains(b);
    let start = label.iter().position(|b| !signs(b)).unwrap_or(label.len());
    start > 0
        && LABELS
            .iter()
            .any(|word| word.eq_ignore_ascii_case(&label[start..]))
}

/// `242-8502, Japan`, `Kanagawa-ken, 242-8502`, `Tokyo 108-8639`: seven digits with a dash are a postcode in Japan (Japan Post).
pub(super) fn is_postcode_of_japan(before: &[u8], value: &[u8], after: &[u8]) -> bool {
    let formed = value.len() == 8 && value[3] == b'-';
    let after = after.strip_prefix(b",").unwrap_or(after);
    let after = after.strip_prefix(b" ").unwrap_or(after);
    let before = before.trim_ascii_end();
    let before = before.strip_suffix(b",").unwrap_or(before);
    let ends = |word: &&[u8]| before.to_ascii_lowercase().ends_with(word);
    let near = &before[before.len().saturating_sub(8)..];
    formed
        && (after
            .get(..5)
            .is_some_and(|w| w.eq_ignore_ascii_case(b"japan"))
            || [&b"-ken"[..], b"-shi", b"-ku", b"tokyo", b"-fu", b"japan"]
                .iter()
                .any(|word| near.len() >= word.len() && ends(word)))
}

/// `CVE-2024-35235`, `Closes: #1056581`: a weakness or a report that is known by its number.
pub(super) fn is_reference(before: &[u8], value: &[u8]) -> bool {
    const WORDS: [&[u8]; 8] = [
        b"closes: ",
        b"closes ",
        b"bug ",
        b"issue ",
        b"pr ",
        b"fixes ",
        b"refs ",
        b"see ",
    ];
    let near = &before[before.len().saturating_sub(12)..];
    let low = near.to_ascii_lowercase();
    let marked = low.strip_suffix(b"#");
    value.starts_with(b"CVE-")
        || low.ends_with(b"cve-")
        || marked.is_some_and(|near| WORDS.iter().any(|word| near.ends_with(word)))
}

/// `<U00EA>`: a sign by its number in the sources of a locale (POSIX, localedef).
pub(super) fn is_code_point(before: Option<u8>, value: &[u8], after: &[u8]) -> bool {
    before == Some(b'<')
        && after.first() == Some(&b'>')
        && value
            .strip_prefix(b"U")
            .is_some_and(|hex| hex.len() >= 4 && hex.iter().all(u8::is_ascii_hexdigit))
}

/// `6572 7266 7365 2868`: two bytes each in a dump, of which a neighbour has a letter.
fn is_of_words(value: &[u8], before: &[u8], after: &[u8]) -> bool {
    let groups = value.split(|b| *b == b' ');
    let of_four = groups.clone().count() >= 2 && groups.clone().all(|group| group.len() == 4);
    let is_word = |word: &[u8]| {
        word.iter().all(u8::is_ascii_hexdigit)
            && word.iter().any(u8::is_ascii_digit)
            && word.iter().any(u8::is_ascii_alphabetic)
    };
    let left = before.strip_suffix(b" ").is_some_and(|text| {
        let (lead, word) = text.split_at(text.len().saturating_sub(4));
        word.len() == 4 && is_word(word) && lead.last().is_none_or(u8::is_ascii_whitespace)
    });
    let right = after
        .strip_prefix(b" ")
        .filter(|text| text.get(4).is_none_or(u8::is_ascii_whitespace))
        .and_then(|text| text.get(..4))
        .is_some_and(is_word);
    of_four && (left || right)
}

/// `  40:\tba 05 00 00 00`: the bytes of an instruction behind their address, as `objdump` shows them.
fn is_of_listing(before: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(40)..];
    let line = memchr::memrchr(b'\n', near).map_or(0, |at| at + 1);
    let line = near[line..].trim_ascii_start();
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let Some(bytes) = line[digits..].strip_prefix(b":\t") else {
        return false;
    };
    let pair =
        |pair: &[u8]| pair.is_empty() || pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
    digits > 0 && bytes.split(|b| *b == b' ').all(pair)
}

/// Does a text say how numbers are written, and not which one somebody has?
pub(super) fn describes(before: &[u8]) -> bool {
    const REACH: usize = 28;
    const WORDS: [&[u8]; 9] = [
        b"example_",
        b"sample_",
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
    let may = |four: &[u8]| matches!(four, b"look" | b"form" | b"ple_");
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
    let (value, before, after) = (&text[start..end], &text[floor..start], &text[end..ceil]);
    if value.get(4) == Some(&b' ') {
        return is_of_words(value, before, after);
    }
    if value.get(2) != Some(&b' ') {
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
    let follows = match before {
        [.., a, b, b' '] => is_byte(&[*a, *b]) && !word(before.iter().nth_back(3)),
        _ => false,
    };
    let goes_on = match after {
        [b' ', a, b, ..] => is_byte(&[*a, *b]) && !word(after.get(3)),
        _ => false,
    };
    paired && (follows || goes_on || is_of_listing(before))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_of_somebody() {
        assert!(counts(b"1234567890", b" views"));
        assert!(!counts(b"1234567890", b" and views"));
        assert!(heads(b".TH FUSER 1 ") && heads(b"x\n## Date: ") && heads(b"% Revision: "));
        assert!(!heads(b"Birth Date: ") && !heads(b"Date: ") && !heads(b"Geburtsdatum: "));
        assert!(is_postcode_of_japan(
            b"Yamato-shi, Kanagawa-ken, ",
            b"242-8502",
            b""
        ));
        assert!(is_postcode_of_japan(b"Tokyo ", b"108-8639", b", Japan"));
        assert!(!is_postcode_of_japan(b"tel ", b"555-1234", b""));
        assert!(is_reference(b"", b"CVE-2024-35235") && is_reference(b"Closes: #", b"1056581"));
        assert!(!is_reference(b"member #", b"1056581"));
        for (before, expected) in [
            (&b"osm_id"[..], true),
            (b"x, userId: ", true),
            (b"rows=", true),
            (b"ID: ", true),
            (b"caller id: ", false),
            (b"phoneId", false),
            (b"paid ", false),
            (b"phone", false),
        ] {
            assert_eq!(names_id(before), expected, "{}", before.escape_ascii());
        }
        assert!(is_code_point(Some(b'<'), b"U00EA", b">"));
        assert!(!is_code_point(Some(b'<'), b"W1A1AA", b">"));
        assert!(
            is_colour(b"255 250 250", b"\tsnow")
                && is_colour(b"72 209 204", b"\tx")
                && !is_colour(b"212 555 250", b"\tsnow")
        );
        assert!(!is_of_dump(b"card 6572 7266 7365 2868", (5, 24), (0, 24)));
        assert!(is_of_dump(b"x 2e73 6572 7266 7365 2868", (7, 26), (0, 26)));
        assert!(is_of_dump(b"2e73 6572 7266 7365 2868", (5, 24), (0, 24)));
        let listing = b"  40:\tba 05 00 00 00   \tmov";
        assert!(is_of_dump(listing, (9, 20), (0, listing.len())));
        assert!(!is_of_dump(b"tel 06 12 34 56 78", (4, 18), (0, 18)));
    }
}
