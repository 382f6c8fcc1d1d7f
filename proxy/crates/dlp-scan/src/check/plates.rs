//! Number plates whose letters or place codes are published.

use super::Table;
use super::sums::number;

pub(crate) const CHECKS: Table = &[
    ("de-plate", de_plate),
    ("in-plate", in_plate),
    ("za-plate", za_plate),
    ("uk-vrm-old", uk_vrm_old),
];

/// FZV, annex 2: place and letters, one to three and one or two, then a number that does not begin with zero, and `E`
/// or `H`. Two or more digits: shorter ones are names of things.
fn de_plate(v: &[u8]) -> bool {
    let letters = v.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let rest = &v[letters..];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    (2..=5).contains(&letters)
        && (2..=4).contains(&digits)
        && rest[0] != b'0'
        && matches!(&rest[digits..], b"" | b"E" | b"H")
}

/// Ministry of Road Transport, India: states and territories, those that once had another code included.
const IN_STATES: &[&[u8; 2]] = &[
    b"AN", b"AP", b"AR", b"AS", b"BR", b"CG", b"CH", b"DD", b"DL", b"DN", b"GA", b"GJ", b"HP",
    b"HR", b"JH", b"JK", b"KA", b"KL", b"LA", b"LD", b"MH", b"ML", b"MN", b"MP", b"MZ", b"NL",
    b"OD", b"OR", b"PB", b"PY", b"RJ", b"SK", b"TG", b"TN", b"TR", b"TS", b"UA", b"UK", b"UP",
    b"WB",
];

/// Central Motor Vehicles Rules, rule 50: state, office, series, number; and the series `BH` of all states, that
/// begins with the year.
fn in_plate(v: &[u8]) -> bool {
    let from_end = |n: usize| v.len().checked_sub(n);
    if v.get(2..4) == Some(b"BH") {
        return (8..=10).contains(&v.len())
            && v[..2].iter().all(u8::is_ascii_digit)
            && v[4..8].iter().all(u8::is_ascii_digit)
            && v[8..]
                .iter()
                .all(|b| b.is_ascii_uppercase() && !matches!(b, b'I' | b'O'));
    }
    let Some(serial) = from_end(4).and_then(|at| number(&v[at..])) else {
        return false;
    };
    (8..=11).contains(&v.len())
        && serial > 0
        && IN_STATES.iter().any(|s| v.starts_with(&s[..]))
        && v[2].is_ascii_digit()
}

/// National Road Traffic Regulations, South Africa: what a plate of a province ends with.
fn za_plate(v: &[u8]) -> bool {
    let Some(at) = v.len().checked_sub(2) else {
        return false;
    };
    let province = matches!(
        &v[at..],
        b"GP" | b"ZN" | b"WP" | b"EC" | b"NC" | b"FS" | b"LP" | b"MP" | b"NW"
    );
    let digits = v[..at].iter().filter(|b| b.is_ascii_digit()).count();
    let letters = at - digits;
    (7..=9).contains(&v.len()) && province && (2..=3).contains(&digits) && letters >= 2
}

/// DVLA, INF104: a letter for the year before (1983 to 2001) or behind (1963 to 1983); no `I`, `O`, `Q`, `U`, `Z` for it.
fn uk_vrm_old(v: &[u8]) -> bool {
    let year = |b: &u8| b.is_ascii_uppercase() && !matches!(b, b'I' | b'O' | b'Q' | b'U' | b'Z');
    let word = |w: &[u8]| {
        w.len() == 3
            && w.iter()
                .all(|b| b.is_ascii_uppercase() && !matches!(b, b'I' | b'Q'))
    };
    let count = |w: &[u8]| (1..=3).contains(&w.len()) && number(w).is_some_and(|n| n > 0);
    let Some((last, front)) = v.split_last().filter(|_| (5..=7).contains(&v.len())) else {
        return false;
    };
    let (head, tail) = v.split_at(v.len() - 3);
    year(&v[0]) && count(&head[1..]) && word(tail)
        || year(last) && word(&front[..3]) && count(&front[3..])
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    #[test]
    fn plates() {
        for (check, value, want) in [
            ("de-plate", "HH-KL 4711", true),
            ("de-plate", "B-X 12E", true),
            ("de-plate", "ISO-A 4", false),
            ("de-plate", "B-AB 0123", false),
            ("in-plate", "KA05MN4321", true),
            ("in-plate", "DL 7C Q 1939", true),
            ("in-plate", "XX05MN4321", false),
            ("in-plate", "KA05MN0000", false),
            ("in-plate", "23BH4512AA", true),
            ("in-plate", "23BH4512IO", false),
            ("za-plate", "DF 31 KR GP", true),
            ("za-plate", "041 KTR EC", true),
            ("za-plate", "DF31KRXX", false),
            ("za-plate", "4321GP", false),
            ("uk-vrm-old", "K7 RWS", true),
            ("uk-vrm-old", "RWS 417K", true),
            ("uk-vrm-old", "I7 RWS", false),
            ("uk-vrm-old", "RWS 417Z", false),
            ("uk-vrm-old", "RWS 000K", false),
        ] {
            assert_eq!(passes(check, value), want, "{check} {value}");
        }
    }
}
