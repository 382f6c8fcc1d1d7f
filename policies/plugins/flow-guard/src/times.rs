//! Dates and times, in the ways that machines and people commonly write them.

const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// Whether a word is nothing but a date, a date with a time, or the end of a time whose beginning stands before it
/// with a colon between. No more fits into one than a day and a time of day, to a part of a second.
pub(crate) fn is_time(before: &str, word: &str) -> bool {
    // Hours may follow without a sign between: `20261123101530`.
    if let (12 | 14, Some((day, time))) = (digits(word).0.len(), word.split_at_checked(8)) {
        return date(day) == Some("") && clock(time);
    }
    if let Some(rest) = date(word) {
        return rest.is_empty() || rest.starts_with(['T', 't', '_', '-']) && clock(&rest[1..]);
    }
    let hour = before.strip_suffix(':').unwrap_or_default();
    let (pair, rest) = digits(word);
    hour.ends_with(|c: char| c.is_ascii_digit()) && is_pair(pair, 60) && ends(rest)
}

/// What stands behind the date that a word begins with.
fn date(word: &str) -> Option<&str> {
    let (first, rest) = digits(word);
    if first.len() == 8 {
        return is_date(&first[..4], &first[4..6], &first[6..]).then_some(rest);
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

/// `10`, `10-15-30`, `101530`, `10-15-30.123456`, each with a zone or without.
fn clock(text: &str) -> bool {
    let (first, mut rest) = digits(text);
    let (mut pairs, highest) = (first, [23, 59, 60]);
    let mut told = 0;
    for highest in highest {
        if let Some((pair, after)) = pairs.split_at_checked(2) {
            // The hour, or what follows it without a sign between.
            if !is_pair(pair, highest) {
                return false;
            }
            pairs = after;
        } else if let (2, Some((pair, after))) = (first.len(), next_pair(rest))
            && is_pair(pair, highest)
        {
            rest = after;
        } else {
            break;
        }
        told += 1;
    }
    // Parts are of a second.
    told > 0 && pairs.is_empty() && (told == 3 || !rest.starts_with('.')) && ends(rest)
}

/// The two digits behind a sign, and what follows.
fn next_pair(text: &str) -> Option<(&str, &str)> {
    let (pair, rest) = digits(text.strip_prefix(['-', '_', '.'])?);
    (pair.len() == 2).then_some((pair, rest))
}

fn is_pair(text: &str, highest: u8) -> bool {
    let is_number = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
    is_number && text.parse().is_ok_and(|n: u8| n <= highest)
}

/// Parts of a second and a zone, or nothing.
fn ends(text: &str) -> bool {
    let (parts, rest) = text.strip_prefix('.').map_or(("0", text), digits);
    let is_zone = match rest.as_bytes() {
        [] | [b'Z' | b'z'] => true,
        [b'+' | b'-', ..] => {
            let (hour, minute) = rest[1..].split_at_checked(2).unwrap_or_default();
            is_pair(hour, 14) && (minute.is_empty() || is_pair(minute, 59))
        }
        _ => false,
    };
    (1..=9).contains(&parts.len()) && is_zone
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
            ("", "202611231015"),
            ("", "20261123101530.123+0100"),
            ("", "2026-11-23T23-59-60Z"),
            ("", "2026-11-23_10.15.30.5-0930"),
            ("", "2026-11-23T1015+01"),
            ("10:", "15-0800"),
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
            ("", "20261123998877"),
            ("", "20261123106015"),
            ("", "202611232460"),
            ("", "2026112310153061"),
            ("", "20261123101530-7781"),
            ("", "20261123101530-1500"),
            ("", "20261123101530-10-15"),
            ("", "20261123999999-99-99.999999999+9999"),
            ("", "2026-11-23-7781"),
            ("", "2026-11-23-10-99"),
            ("", "2026-11-23-10.123456789"),
            ("", "2026-11-23_101530-99"),
            ("", "2026-11-23T10-15-30+0960"),
            ("10:", "99.123456789"),
            ("10:", "153045"),
            ("10:", "30+\u{661}1"),
            ("10:", "30++1"),
        ] {
            assert!(!is_time(before, word), "{before}{word}");
        }
    }
}
