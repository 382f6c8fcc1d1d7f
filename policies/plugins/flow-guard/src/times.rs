//! Dates and times, in the ways that machines and people commonly write them.

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Whether a word is nothing but a date, a date with a time, or the end of a time whose beginning stands before it
/// with a colon between. No more fits into one than a day and a time of day, to a part of a second.
pub(crate) fn is_time(before: &str, word: &str) -> bool {
    if let Some(rest) = date(word) {
        return rest.is_empty() || rest.starts_with(['T', 't', '_', '-']) && clock(&rest[1..]);
    }
    let hour = before.strip_suffix(':').unwrap_or_default();
    hour.ends_with(|c: char| c.is_ascii_digit()) && clock(word)
}

/// What stands behind the date that a word begins with.
fn date(word: &str) -> Option<&str> {
    let (first, rest) = digits(word);
    if first.len() >= 8 {
        let (year, month, day) = (&first[..4], &first[4..6], &first[6..8]);
        // Hours may follow without a sign between: `20261123101500`.
        let known = matches!(first.len(), 8 | 12 | 14) && is_date(year, month, day);
        return known.then_some(rest);
    }
    let sign = rest.chars().next().filter(|c| "-._".contains(*c))?;
    let (second, rest) = month(&rest[1..]);
    let (third, rest) = digits(rest.strip_prefix(sign)?);
    let known = if first.len() == 4 {
        is_date(first, second, third)
    } else {
        is_date(third, second, first) || is_date(third, first, second)
    };
    known.then_some(rest)
}

fn month(text: &str) -> (&str, &str) {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic());
    match letters.unwrap_or(text.len()) {
        0 => digits(text),
        end => text.split_at(end),
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn is_date(year: &str, month: &str, day: &str) -> bool {
    let within = |text: &str, from, to| {
        matches!(text.len(), 1 | 2) && text.parse().is_ok_and(|n: u8| n >= from && n <= to)
    };
    let by_name = |text: &str| {
        let name = text.to_ascii_lowercase();
        MONTHS.contains(&name.as_str())
    };
    let year_is_near = year.len() == 4 && (year.starts_with("19") || year.starts_with("20"));
    year_is_near && (within(month, 1, 12) || by_name(month)) && within(day, 1, 31)
}

/// `10`, `10-15-30`, `101530`, `30.123456`, each with a zone or without.
fn clock(text: &str) -> bool {
    let (hour, mut rest) = digits(text);
    if !matches!(hour.len(), 2 | 4 | 6) {
        return false;
    }
    for _ in 0..2 {
        let Some(next) = rest.strip_prefix(['-', '_', '.']) else {
            break;
        };
        match digits(next) {
            (pair, after) if pair.len() == 2 => rest = after,
            _ => break,
        }
    }
    if let Some(next) = rest.strip_prefix('.') {
        let (parts, after) = digits(next);
        if !(1..=9).contains(&parts.len()) {
            return false;
        }
        rest = after;
    }
    match rest.as_bytes() {
        [] | [b'Z' | b'z'] => true,
        [b'+' | b'-', zone @ ..] => {
            matches!(zone.len(), 2 | 4) && zone.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_told_from_ids() {
        for (before, word) in [
            ("", "2026-11-23"),
            ("", "2026-11-23T10"),
            ("2026-11-23T10:15:", "30.123456+01"),
            ("2026-11-23T10:15:", "30.123456789Z"),
            ("at 10:15:", "30.123456"),
            ("", "2026-11-23T10-15-30Z"),
            ("", "2026-11-23_10-15-30.123"),
            ("", "20261123"),
            ("", "20261123T101530Z"),
            ("", "20261123101530"),
            ("", "20261123-101530"),
            ("", "23.11.2026"),
            ("", "11-23-2026"),
            ("", "1_2_2026"),
            ("", "23-Nov-2026"),
            ("", "2026.1.9"),
        ] {
            assert!(is_time(before, word), "{before}{word}");
        }
        for (before, word) in [
            ("", "2026-11-23-AC2291"),
            ("", "2026-11-23-1015301"),
            ("", "2026-13-23"),
            ("", "3026-11-23"),
            ("", "20261323"),
            ("", "4111111111111111"),
            ("", "2026112310153"),
            ("", "12.3456789"),
            ("id:", "12.3456789"),
            ("10:", "1234567"),
            ("10:", "30.1234567890"),
            ("10:", "30.12+12345"),
            ("", "23-Foo-2026"),
            ("", "2026-11"),
            ("", "ticket-2026-11-23"),
            ("", "2026-11-23T10T15"),
            ("", "2026-11-2\u{661}"),
        ] {
            assert!(!is_time(before, word), "{before}{word}");
        }
    }
}
