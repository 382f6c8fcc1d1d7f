//! What stands behind the names of passwords and is none: numbers with their units (`PW: 1000us` is how long a pulse is),
//! and types of programs (`password: Option<String>`).

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

/// Is it one of those?
pub(crate) fn is_plain(value: &[u8]) -> bool {
    is_measure(value) || is_type(value)
}

/// `Option<String>`, `std::vector<int>`, `Map<String, List<Integer>>`.
fn is_type(value: &[u8]) -> bool {
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.');
    let inner = |b: &u8| name(b) || b"<>,&*?[]' ".contains(b);
    let len = value.iter().take_while(|b| name(b)).count();
    let (head, rest) = value.split_at(len);
    // Digits stand in no name of a type but in those of numbers.
    let number = |part: &[u8]| {
        let width = part.split_first().filter(|(kind, _)| b"iuf".contains(kind));
        width.is_some_and(|(_, width)| [&b"8"[..], b"16", b"32", b"64", b"128"].contains(&width))
    };
    let named = |part: &[u8]| !part.iter().any(u8::is_ascii_digit) || number(part);
    let count = |sign: u8| value.iter().filter(|b| **b == sign).count();
    let begins = head.first().is_some_and(u8::is_ascii_alphabetic);
    begins
        && rest.starts_with(b"<")
        && rest.ends_with(b">")
        && rest.len() > 2
        && rest.iter().all(inner)
        && count(b'<') == count(b'>')
        && value.split(|b| !name(b)).all(named)
}

/// `1000us`, `19.2 px`.
fn is_measure(value: &[u8]) -> bool {
    let number = value
        .iter()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b','))
        .count();
    let unit = value[number..].trim_ascii();
    number > 0 && UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::{is_measure, is_type};
    use crate::names::Promise;
    use crate::value::judge;

    #[test]
    fn measures_are_numbers_with_a_unit() {
        for value in ["1000us", "1920px", "19.2 px", "250µs", "1,5GB"] {
            assert!(is_measure(value.as_bytes()), "{value}");
        }
        for value in ["1000", "us", "1000usx", "a1000us", "12ab", ""] {
            assert!(!is_measure(value.as_bytes()), "{value}");
        }
    }

    /// Nobody's password, but the number of an invoice.
    #[test]
    fn many_digits_are_no_password() {
        let judge = |value: &str| judge(value.as_bytes(), Promise::Password, true);
        assert!(judge("0503201201176001321000110010030009900641234567814").is_none());
        assert!(judge("050320120117").is_some());
    }

    #[test]
    fn types_have_types_between_brackets() {
        for value in [
            "Option<String>",
            "std::vector<int>",
            "Map<String, List<Integer>>",
            "Vec<u8>",
        ] {
            assert!(is_type(value.as_bytes()), "{value}");
        }
        for value in [
            "<password>",
            "Xk9<vQ2>mZ",
            "ab<",
            "x<>",
            "Zq7k2<W8m3>",
            "Xk9<vQ2>",
            "a<b",
        ] {
            assert!(!is_type(value.as_bytes()), "{value}");
        }
    }
}
