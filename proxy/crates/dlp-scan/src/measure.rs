//! Numbers with their units, which stand behind short names as passwords do: `PW: 1000us` is how long a pulse is.

const UNITS: &[&[u8]] = &[
    b"bit",
    b"bits",
    b"bps",
    b"byte",
    b"bytes",
    b"cm",
    b"db",
    b"dpi",
    b"em",
    b"gb",
    b"ghz",
    b"gib",
    b"hours",
    b"hz",
    b"kb",
    b"kbps",
    b"kg",
    b"khz",
    b"kib",
    b"km",
    b"kw",
    b"kwh",
    b"ma",
    b"mah",
    b"mb",
    b"mbps",
    b"mhz",
    b"mib",
    b"min",
    b"mins",
    b"mm",
    b"ms",
    b"msec",
    b"mv",
    b"mw",
    b"nm",
    b"ns",
    b"nsec",
    b"ohm",
    b"pct",
    b"ppm",
    b"ps",
    b"pt",
    b"px",
    b"rem",
    b"rpm",
    b"s",
    b"sec",
    b"secs",
    b"tb",
    b"tib",
    b"us",
    b"usec",
    b"v",
    b"vh",
    b"vw",
    b"w",
    b"\xc2\xb5s",
    b"\xce\xbcs",
];

/// `1000us`, `19.2 px`.
pub(crate) fn is_measure(value: &[u8]) -> bool {
    let number = value
        .iter()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b','))
        .count();
    let unit = value[number..].trim_ascii();
    number > 0 && UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::is_measure;

    #[test]
    fn measures_are_numbers_with_a_unit() {
        for value in ["1000us", "1920px", "19.2 px", "250µs", "1,5GB"] {
            assert!(is_measure(value.as_bytes()), "{value}");
        }
        for value in ["1000", "us", "1000usx", "a1000us", "12ab", ""] {
            assert!(!is_measure(value.as_bytes()), "{value}");
        }
    }
}
