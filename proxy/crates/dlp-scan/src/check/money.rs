//! Cards, accounts, companies that are persons, vehicles, devices.

use super::Table;
use super::sums::{digits, luhn, mod97, number, one_digit, weighted};

pub(crate) const CHECKS: Table = &[
    ("card", card),
    ("hex-card", |v| {
        // `0x106A9020EF4D65`: a card's number as one that programs keep.
        let hex = v.strip_prefix(b"0X").unwrap_or(v);
        std::str::from_utf8(hex)
            .ok()
            .and_then(|hex| u64::from_str_radix(hex, 16).ok())
            .is_some_and(|n| card(n.to_string().as_bytes()))
    }),
    ("luhn", |v| luhn(v) && !one_digit(v)),
    ("iban", iban),
    ("aba", aba),
    ("pl-nrb", |v| {
        v.len() == 26
            && mod97(
                v.iter()
                    .chain(b"2521")
                    .copied()
                    .skip(2)
                    .chain(v.iter().copied().take(2)),
            ) == Some(1)
    }),
    ("rs-account", |v| {
        // The middle is filled up with zeros to thirteen digits.
        let pad = 18_usize.saturating_sub(v.len());
        (13..=18).contains(&v.len())
            && number(&v[..3]).is_some_and(|bank| (100..1000).contains(&bank))
            && mod97(
                v[..3]
                    .iter()
                    .chain(std::iter::repeat_n(&b'0', pad))
                    .chain(&v[3..])
                    .copied(),
            ) == Some(1)
    }),
    ("pt-nib", |v| {
        v.len() == 21
            && v.starts_with(b"00")
            && !one_digit(v)
            && mod97(v.iter().copied()) == Some(1)
    }),
    ("fr-rib", fr_rib),
    ("cz-account", cz_account),
    ("vin", vin),
    ("imei", |v| v.len() == 15 && luhn(v) && !one_digit(v)),
    ("lei", |v| {
        v.len() == 20 && mod97(v.iter().copied()) == Some(1)
    }),
];

/// ISO/IEC 7812-1: an issuer's leading digits with the length it issues (9792: Troy, Türkiye), and Luhn.
fn card(v: &[u8]) -> bool {
    let Some(lead) = v.get(..4).and_then(number) else {
        return false;
    };
    let known = match v.len() {
        13 => lead / 1000 == 4,
        14 => (300..=305).contains(&(lead / 10)) || matches!(lead / 100, 36 | 38 | 39),
        15 => matches!(lead / 100, 34 | 37) || matches!(lead, 2014 | 2149 | 2131 | 1800),
        16 => {
            lead / 1000 == 4
                || (51..=55).contains(&(lead / 100))
                || (2221..=2720).contains(&lead)
                || (3528..=3589).contains(&lead)
                || lead == 6011
                || (644..=649).contains(&(lead / 10))
                || matches!(lead / 100, 65 | 60 | 81 | 82 | 50 | 56..=58 | 62 | 63 | 67)
                || (2200..=2205).contains(&lead)
                || lead == 9792
        }
        17 | 18 => matches!(lead / 100, 62 | 67 | 63),
        // 5060, 5061, 5078, 5079: Verve, Nigeria.
        19 => {
            lead / 1000 == 4
                || matches!(lead / 100, 62 | 65 | 67 | 63)
                || matches!(lead, 6011 | 5060 | 5061 | 5078 | 5079)
        }
        _ => false,
    };
    known && luhn(v) && !one_digit(v)
}

/// CFONB: bank, branch, account and two digits; a letter of the account counts as the digit below it on a telephone of old.
fn fr_rib(v: &[u8]) -> bool {
    if v.len() != 23 || v[..10].iter().chain(&v[21..]).any(|b| !b.is_ascii_digit()) {
        return false;
    }
    let digit = |b: u8| match b {
        b'0'..=b'9' => u64::from(b - b'0'),
        b'A'..=b'I' => u64::from(b - b'A') + 1,
        b'J'..=b'R' => u64::from(b - b'J') + 1,
        _ => u64::from(b.saturating_sub(b'S')) + 2,
    };
    let rest = v.iter().fold(0, |rest, b| (rest * 10 + digit(*b)) % 97);
    rest == 0 && v[..5].iter().any(|b| *b != b'0') && !one_digit(&v[..21])
}

/// Czech National Bank, decree 169/2011: prefix, number and the bank's code, the first two by weights modulo 11. The
/// prefix is short; where there is one, the number has ten digits.
fn cz_account(v: &[u8]) -> bool {
    const WEIGHTS: [u32; 10] = [1, 2, 4, 8, 5, 10, 9, 7, 3, 6];
    let Some((account, _bank)) = v.len().checked_sub(4).map(|n| v.split_at(n)) else {
        return false;
    };
    let (prefix, number) = account.split_at(account.len().saturating_sub(10));
    let holds = |part: &[u8]| {
        let sum = part
            .iter()
            .rev()
            .zip(WEIGHTS)
            .try_fold(0, |sum, (b, w)| Some(sum + super::sums::digit(*b)? * w));
        sum.is_some_and(|s| s % 11 == 0)
    };
    number.len() >= 8 && !one_digit(number) && prefix.len() <= 6 && holds(prefix) && holds(number)
}

/// ISO 13616: the country's length, digits alone where it has no letters, and ISO 7064 MOD 97-10. A hash may begin with
/// `be` and two digits as well.
pub(crate) fn iban(v: &[u8]) -> bool {
    let Some((country, len)) = v.get(..2).zip(iban_len(v)) else {
        return false;
    };
    v.len() == len
        && v[2..4].iter().all(u8::is_ascii_digit)
        && (!IBAN_OF_DIGITS.iter().any(|c| c.as_bytes() == country)
            || v[4..].iter().all(u8::is_ascii_digit))
        && mod97(v[4..].iter().chain(&v[..4]).copied()) == Some(1)
}

/// How long an account number is that begins so, if its country has any.
pub(crate) fn iban_len(head: &[u8]) -> Option<usize> {
    let country = head.get(..2)?;
    let of = |(c, _): &&(&str, usize)| c.as_bytes() == country;
    IBAN_LENGTHS.iter().find(of).map(|(_, len)| *len)
}

/// Whose account numbers are digits alone by the same registry.
const IBAN_OF_DIGITS: &[&str] = &[
    "AE", "AT", "BA", "BE", "CR", "CZ", "DE", "DK", "EE", "EG", "ES", "FI", "FO", "GL", "HR", "HU",
    "IL", "IS", "LT", "ME", "MR", "NO", "PL", "PT", "RS", "SD", "SE", "SI", "SK", "TL", "TN", "VA",
    "XK",
];

/// SWIFT IBAN registry, release 98.
const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HN", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IR", 26),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
    ("YE", 30),
];

/// ABA routing number: 3-7-1 weights mod 10 and a Federal Reserve prefix (ABA key to routing numbers).
fn aba(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    let lead = d[0] * 10 + d[1];
    (matches!(lead, 1..=12 | 21..=32 | 61..=72 | 80))
        && weighted(&d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)
}

/// ISO 3779 shape with the check digit of 49 CFR 565 where it fits, else any VIN without I, O, Q that has both
/// letters and digits and ends in digits as manufacturers number them; context must say so.
fn vin(v: &[u8]) -> bool {
    v.len() == 17
        && v.iter()
            .all(|b| b.is_ascii_alphanumeric() && !matches!(b, b'I' | b'O' | b'Q'))
        && v.iter().filter(|b| b.is_ascii_digit()).count() >= 3
        && v.iter().filter(|b| b.is_ascii_alphabetic()).count() >= 3
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    #[test]
    fn money() {
        let cases: &[(&str, &str, bool)] = &[
            ("card", "4111 1111 1111 1111", true),
            ("card", "4444 4444 4444 4448", true),
            ("card", "6666 6666 6666 6666", false),
            ("card", "4012 8888 8888 1881", true),
            ("card", "5555 5555 5555 4444", true),
            ("card", "378282246310005", true),
            ("card", "4012 8888 8888 1882", false),
            ("card", "9012 8888 8888 1881", false),
            ("iban", "GB82 WEST 1234 5698 7654 32", true),
            ("iban", "GB82 WEST 1234 5698 7654 33", false),
            ("iban", "DE89370400440532013000", true),
            ("iban", "ZZ89370400440532013000", false),
            ("iban", "BE79EF00B13C25F9", false),
            ("hex-card", "0x106A9020EF4D65", true),
            ("hex-card", "0x106A9020EF4D66", false),
            ("rs-account", "160-3596742421026-38", true),
            ("rs-account", "160-3596742421026-39", false),
            ("pt-nib", "003365934267429124886", true),
            ("pt-nib", "003365934267429124887", false),
            ("fr-rib", "10278 45329 64025776612 90", true),
            ("fr-rib", "10278 45329 64025776612 91", false),
            ("fr-rib", "20041 01005 0500013M026 06", true),
            ("aba", "021000021", true),
            ("aba", "021000022", false),
            ("vin", "1HGCM82633A004352", true),
            ("vin", "1HGCM82633A00435O", false),
            ("imei", "490154203237518", true),
            ("imei", "490154203237519", false),
        ];
        for (check, value, want) in cases {
            assert_eq!(passes(check, value), *want, "{check} {value}");
        }
    }
}
