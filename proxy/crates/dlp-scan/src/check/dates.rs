//! Dates inside identifiers. No clock: any date that a living person may carry will do.

use super::sums::number;

/// Days in a month of a leap year: a number whose century is not known gets the benefit of the doubt.
const DAYS: [u64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// A month and a day that go together.
pub(crate) fn valid_md(month: u64, day: u64) -> bool {
    (1..=12).contains(&month) && day >= 1 && day <= DAYS[(month - 1) as usize]
}

/// `YYMMDD`.
pub(crate) fn valid_ymd(value: &[u8]) -> bool {
    let part = |r: std::ops::Range<usize>| value.get(r).and_then(number);
    matches!((part(0..2), part(2..4), part(4..6)), (Some(_), Some(m), Some(d)) if valid_md(m, d))
}

/// `DDMMYY`.
pub(crate) fn valid_dmy(value: &[u8]) -> bool {
    let part = |r: std::ops::Range<usize>| value.get(r).and_then(number);
    matches!((part(0..2), part(2..4), part(4..6)), (Some(d), Some(m), Some(_)) if valid_md(m, d))
}

/// `YYYYMMDD`, 1900 to 2050.
pub(crate) fn valid_yyyymmdd(value: &[u8]) -> bool {
    value
        .get(0..4)
        .and_then(number)
        .is_some_and(|y| (1900..=2050).contains(&y))
        && valid_ymd(&value[2..])
}

/// `YYYYMMDD`, for a day of birth: no later than a year that a living person can be born in.
pub(crate) fn compact_day_of_life(value: &[u8]) -> bool {
    value.len() == 8 && valid_yyyymmdd(value)
}

/// The number of a month by its first three letters in English.
fn month_name(word: &[u8]) -> Option<u64> {
    const NAMES: &[u8; 36] = b"janfebmaraprmayjunjulaugsepoctnovdec";
    let at = NAMES.chunks(3).position(|m| m.eq_ignore_ascii_case(word))?;
    u64::try_from(at + 1).ok()
}

/// Years of the Buddhist era, which Thai documents count in, are 543 more.
const BUDDHIST_ERA: std::ops::RangeInclusive<u64> = 1900 + 543..=2050 + 543;

/// Years of the solar Hijri calendar, which Persian documents count in, are 621 fewer.
const PERSIAN_ERA: std::ops::RangeInclusive<u64> = 1900 - 621..=2050 - 621;

/// A date somebody living can be born on, in one of the usual ways to write it: `1967-08-11`, `05/05/1983`,
/// `5.5.83`, with any of `-/.` or blanks between.
pub(crate) fn day_of_life(value: &[u8]) -> bool {
    if let Some((day, [a, b, c, year @ ..])) = value.split_at_checked(2)
        && matches!(value.len(), 7 | 9)
        && let (Some(day), Some(month), Some(year)) =
            (number(day), month_name(&[*a, *b, *c]), number(year))
    {
        return valid_md(month, day) && (year < 100 || (1900..=2050).contains(&year));
    }
    let mut parts = [0u64; 3];
    let mut lens = [0usize; 3];
    let mut n = 0;
    for part in value
        .split(|b| !b.is_ascii_alphanumeric())
        .filter(|p| !p.is_empty())
    {
        let (true, Some(v)) = (n < 3, number(part).or_else(|| month_name(part))) else {
            return false;
        };
        (parts[n], lens[n]) = (v, part.len());
        n += 1;
    }
    let year = |v: u64, len: usize| {
        len == 4
            && ((1900..=2050).contains(&v) || BUDDHIST_ERA.contains(&v) || PERSIAN_ERA.contains(&v))
            || len == 2
    };
    // What stands for no day at all.
    let none = n == 3 && [[1900, 1, 1], [1, 1, 1900], [1970, 1, 1], [1, 1, 1970]].contains(&parts);
    n == 3
        && !none
        && ((lens[0] == 4 && year(parts[0], 4) && valid_md(parts[1], parts[2]))
            || (year(parts[2], lens[2])
                && (valid_md(parts[1], parts[0]) || valid_md(parts[0], parts[1]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for good in [
            "1967-08-11",
            "05/05/1983",
            "31.12.99",
            "12/31/1999",
            "1 2 2003",
            "14-MAR-1985",
            "4 jul 1976",
            "12/05/2544",
            "14MAR86",
            "02nov1979",
        ] {
            assert!(day_of_life(good.as_bytes()), "{good}");
        }
        for bad in [
            "1967-13-11",
            "32/01/1983",
            "1.2",
            "2026-1-1-1",
            "1850-01-01",
            "13/13/2000",
            "14-FOO-1985",
            "14FOO86",
            "31FEB86",
            "1970-01-01",
            "12/05/2644",
        ] {
            assert!(!day_of_life(bad.as_bytes()), "{bad}");
        }
        assert!(
            valid_ymd(b"991231")
                && !valid_ymd(b"991331")
                && valid_dmy(b"311299")
                && !valid_dmy(b"321299")
        );
        assert!(valid_yyyymmdd(b"19991231") && !valid_yyyymmdd(b"18991231"));
    }
}
