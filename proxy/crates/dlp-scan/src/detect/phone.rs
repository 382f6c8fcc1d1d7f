//! Phone numbers that say so themselves: a country code after `+`, or an area code in brackets.

use super::Sink;
use crate::check;
use crate::ruleset::Detector;
use crate::text::Span;
use crate::traces::Traces;

/// ITU-T E.164: at most 15 digits; fewer than 8 with the country code reach nobody.
const DIGITS: std::ops::RangeInclusive<usize> = 8..=15;

pub(super) fn scan(sink: &mut Sink<'_>, traces: &Traces) {
    if sink.rules.detectors[Detector::Phone as usize].is_none() {
        return;
    }
    let node = sink.node;
    let (mut index, mut done) = (0, 0);
    for place in traces.phones.iter().map(|at| *at as usize) {
        let plus = node.text[place - 1] == b'+';
        let at = place - if plus { 1 } else { 3 };
        if at < done {
            continue;
        }
        let Some(cell) = node.cell_from(at, &mut index).filter(|c| c.span.len() >= 8) else {
            continue;
        };
        let (text, base) = (&node.text[cell.span.range()], cell.span.start as usize);
        if !sink.limits.spend(1) {
            return;
        }
        let end = match plus {
            true => international(text, at - base),
            false => bracketed(text, at - base),
        };
        if let Some(end) = end {
            done = base + end;
            sink.report_for(Detector::Phone, Span::new(at, base + end), None);
        }
    }
}

/// `+49 (30) 1234-567`
fn international(text: &[u8], at: usize) -> Option<usize> {
    if at > 0
        && (text[at - 1].is_ascii_alphanumeric()
            || matches!(text[at - 1], b'.' | b'_' | b'-' | b'+' | b'/'))
    {
        return None;
    }
    let (end, digits, n) = number(text, at + 1)?;
    let digits = &digits[..n];
    if is_sum(&text[..at], &text[at + 1..end])
        || is_decimal(&text[..at], &text[at + 1..end])
        || is_snapshot(&text[at + 1..end])
        || is_place(&text[at + 1..end])
        || is_declination(&text[..at], &text[at + 1..end])
    {
        return None;
    }
    (DIGITS.contains(&n)
        && calling_code(digits)
        && plausible(digits)
        // No area of North America has the digits that its films use (NANPA).
        && !digits.starts_with(b"1555")
        && !freephone(digits)
        && !switchboard(digits, &text[..end]))
    .then_some(end)
}

/// `sqrt(2) + 95367431640625`: a sum of something and a number in one piece.
fn is_sum(before: &[u8], number: &[u8]) -> bool {
    let bare = number
        .strip_prefix(b" ")
        .is_some_and(|n| n.iter().all(u8::is_ascii_digit));
    let operand = before.trim_ascii_end().last();
    bare && operand.is_some_and(|b| b.is_ascii_digit() || matches!(b, b')' | b']'))
}

/// `whole + 2433281.5`, `-12.190100 +96.834900`: a number with a decimal point. Of a phone the dot stands behind its country's code
/// (RFC 5733, 2.5), and no other decimal before it.
fn is_decimal(before: &[u8], number: &[u8]) -> bool {
    let number = number.trim_ascii_start();
    let number = number.strip_prefix(b"(").unwrap_or(number);
    let mut parts = number.split(|b| *b == b'.');
    let (Some(whole), Some(rest), None) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if !digits(whole) || !digits(rest) {
        return false;
    }
    let part = |b: &&u8| b.is_ascii_digit() || **b == b'.';
    let near = before.trim_ascii_end();
    let last = near.iter().rev().take(16).take_while(part).count();
    let pair = near[near.len() - last..].contains(&b'.') && last > 2;
    whole.len() > 3 || rest.len() < 6 || pair || !is_code(whole)
}

/// Are the digits the code of a country, and no more?
fn is_code(digits: &[u8]) -> bool {
    let number = digits.iter().fold(0, |n, d| n * 10 + u32::from(d - b'0'));
    match digits.len() {
        1 => matches!(number, 1 | 7),
        2 => has_two_digits(number),
        _ => has_three_digits(number),
    }
}

/// `+20221128-1`: the day of a snapshot and the package's revision behind a version (Debian Policy, 5.6.12).
fn is_snapshot(number: &[u8]) -> bool {
    let Some((day, revision)) = number.split_at_checked(8) else {
        return false;
    };
    let [b'-', revision @ ..] = revision else {
        return false;
    };
    (1..=2).contains(&revision.len())
        && day.starts_with(b"20")
        && check::find("yyyymmdd").is_some_and(|c| (c.run)(day))
}

/// `+4734-05243`, `+384038-0873143`: degrees and minutes north and west (ISO 6709).
fn is_place(number: &[u8]) -> bool {
    let mut parts = number.split(|b| *b == b'-');
    let (Some(latitude), Some(longitude), None) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let upto = |digits: &[u8], max: u32| {
        let n = digits.iter().try_fold(0, |n, b| {
            b.is_ascii_digit().then(|| n * 10 + u32::from(b - b'0'))
        });
        n.is_some_and(|n| n <= max)
    };
    matches!((latitude.len(), longitude.len()), (4, 5) | (6, 7))
        && upto(&latitude[..2], 90)
        && upto(&latitude[2..4], 59)
        && upto(&longitude[..3], 180)
        && upto(&longitude[3..5], 59)
}

/// `00 42 44.3 +41 16 09.2 3.44`: degrees, minutes and seconds north of the equator behind hours, minutes and seconds.
fn is_declination(before: &[u8], number: &[u8]) -> bool {
    let part = |b: &&u8| b.is_ascii_digit() || matches!(b, b'.' | b' ' | b':');
    let near = before.iter().rev().take(16).take_while(part).count();
    let hours = before[before.len() - near..].split(|b| matches!(b, b' ' | b':'));
    let hours = hours.filter(|h| !h.is_empty());
    let degrees = number.split(|b| *b == b' ').take(3);
    let two = |d: &[u8]| {
        d.len() >= 2
            && d[..2].iter().all(u8::is_ascii_digit)
            && matches!(d.get(2), None | Some(b'.'))
    };
    hours.clone().count() >= 3
        && hours.rev().take(3).all(two)
        && degrees.clone().count() == 3
        && degrees.into_iter().all(two)
}

/// `(415) 555-0132`: North America, where brackets round the area code are the custom.
fn bracketed(text: &[u8], at: usize) -> Option<usize> {
    let shape = text.get(at..at + 5)?;
    let area = shape[1..4].iter().all(u8::is_ascii_digit) && shape[4] == b')';
    if !area || at > 0 && text[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let (end, digits, n) = number(text, at)?;
    let check = check::find("us-phone")?;
    (n == 10 && (check.run)(&digits[..n])).then_some(end)
}

/// Digits with single separators between them: where they end, and what they are.
fn number(text: &[u8], from: usize) -> Option<(usize, [u8; 16], usize)> {
    let mut digits = [0; 16];
    let (mut n, mut end, mut gap) = (0, from, 0);
    let mut at = from;
    while let Some(b) = text.get(at) {
        if b.is_ascii_digit() {
            if n == digits.len() {
                return None;
            }
            digits[n] = *b;
            n += 1;
            (end, gap) = (at + 1, 0);
        } else if matches!(b, b' ' | b'-' | b'.' | b'(' | b')' | b'/')
            && gap < 2
            // Two blanks part columns.
            && !(gap == 1 && *b == b' ' && text[at - 1] == b' ')
        {
            gap += 1;
        } else {
            break;
        }
        at += 1;
    }
    let glued = text
        .get(end)
        .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_' || *b == b':');
    (!glued && n > 0).then_some((end, digits, n))
}

fn plausible(digits: &[u8]) -> bool {
    check::find("phone-plausible").is_some_and(|c| (c.run)(digits))
        && digits[2..].iter().any(|d| *d != b'0')
}

/// The numbers that cost the caller nothing are of firms and offices: nobody has one at home. North America by the
/// NANPA's list of toll-free codes, elsewhere by the plans of the countries.
fn freephone(digits: &[u8]) -> bool {
    const PREFIXES: [&str; 24] = [
        "1800", "1833", "1844", "1855", "1866", "1877", "1888", "32800", "31800", "33800", "33805",
        "34800", "34900", "351800", "353800", "353180", "39800", "41800", "43800", "44800",
        "44808", "46200", "49800", "61180",
    ];
    PREFIXES.iter().any(|p| digits.starts_with(p.as_bytes()))
}

/// `+49 30 9056-0`: where extensions are dialled through, -0 is the desk of the firm (DIN 5008).
fn switchboard(digits: &[u8], number: &[u8]) -> bool {
    matches!(&digits[..2], b"49" | b"43" | b"41") && number.ends_with(b"-0")
}

/// ITU-T E.164 list of assigned country codes.
fn calling_code(digits: &[u8]) -> bool {
    let n = |len: usize| {
        digits[..len]
            .iter()
            .fold(0u32, |n, d| n * 10 + u32::from(d - b'0'))
    };
    if matches!(n(1), 1 | 7) {
        return digits.len() == 11;
    }
    has_two_digits(n(2)) || has_three_digits(n(3))
}

fn has_two_digits(code: u32) -> bool {
    matches!(code, 20 | 27 | 30..=34 | 36 | 39..=41 | 43..=49 | 51..=58 | 60..=66 | 81 | 82 | 84 | 86 | 90..=95 | 98)
}

fn has_three_digits(code: u32) -> bool {
    matches!(code, 211..=213 | 216 | 218 | 220..=269 | 290 | 291 | 297..=299 | 350..=359 | 370..=389 | 420 | 421 | 423
        | 500..=509 | 590..=599 | 670 | 672..=692 | 850 | 852 | 853 | 855 | 856 | 880 | 886 | 960..=968 | 970..=977 | 992..=998)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_say_so() {
        let cases: &[(&str, Option<&str>)] = &[
            ("+36 20 123 3301 x", Some("+36 20 123 3301")),
            ("+44 (20) 7123 4567", Some("+44 (20) 7123 4567")),
            ("+64211235632", Some("+64211235632")),
            ("+1 212 702 3599.", Some("+1 212 702 3599")),
            ("+49 800 330 1000", None),
            ("+1 (888) 234-9100", None),
            ("+49 30 9056-0, Mo", None),
            ("+49 30 9056-410", Some("+49 30 9056-410")),
            ("+999 123 456 789", None),
            ("+1-555-555-5555", None),
            ("+1 added", None),
            ("+02:00", None),
            ("+20260101120000123456", None),
            ("+20221128-1 x", None),
            ("+20191307-1", Some("+20191307-1")),
            ("+4734-05243\tAmerica", None),
            ("+384038-0873143 x", None),
            ("+4761-05243", Some("+4761-05243")),
            ("+ 49 171 5550123", Some("+ 49 171 5550123")),
        ];
        for (text, want) in cases {
            let got = international(text.as_bytes(), 0).map(|end| &text[..end]);
            assert_eq!(got, *want, "{text}");
        }
        assert_eq!(international(b"sqrt(2) + 95367431640625", 8), None);
        assert_eq!(international(b"x = 3 + 4915155501234", 6), None);
        assert_eq!(international(b"jd = whole + 2433281.5", 11), None);
        assert_eq!(
            international(b"x - 67310.5 + (8640184.812866 + y", 12),
            None
        );
        assert_eq!(international(b"-12.190100 +96.834900", 11), None);
        assert_eq!(international(b"-12.190100 +49.834900", 11), None);
        assert_eq!(international(b"p: +49.6170834900", 3), Some(17));
        assert_eq!(bracketed(b"(415) 555-0132", 0), Some(14));
        assert_eq!(bracketed(b"(111) 555-0132", 0), None);
        assert_eq!(bracketed(b"(415)555-0132x", 0), None);
    }
}
