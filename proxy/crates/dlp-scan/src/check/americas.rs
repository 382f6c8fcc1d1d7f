//! National identifiers of the Americas, Africa and Oceania.

use super::Table;
use super::dates::valid_ymd;
use super::sums::{digit, digits, luhn, number, one_digit, weighted};

pub(crate) const CHECKS: Table = &[
    ("us-ssn", us_ssn),
    ("us-itin", us_itin),
    ("us-npi", us_npi),
    ("us-ein", us_ein),
    ("us-dea", us_dea),
    ("us-phone", us_phone),
    ("phone-plausible", phone_plausible),
    ("phone-trunk", |v| {
        // A second zero would lead abroad.
        v.starts_with(b"0") && v.get(1) != Some(&b'0') && phone_plausible(v)
    }),
    ("us-mbi", |v| {
        v.len() == 11
            && !v
                .iter()
                .any(|b| matches!(b, b'S' | b'L' | b'O' | b'I' | b'B' | b'Z'))
    }),
    ("ca-postal", ca_postal),
    ("ca-sin", |v| {
        v.len() == 9 && luhn(v) && !matches!(v[0], b'0' | b'8') && !one_digit(v)
    }),
    ("br-cpf", br_cpf),
    ("br-cnpj", br_cnpj),
    ("cl-rut", cl_rut),
    ("ar-cuit", ar_cuit),
    ("co-nit", co_nit),
    ("mx-curp", mx_curp),
    ("mx-voter-key", mx_voter_key),
    ("mx-rfc", |v| {
        matches!(v.len(), 12 | 13) && valid_ymd(&v[v.len() - 9..])
    }),
    ("ec-ci", ec_ci),
    ("uy-ci", uy_ci),
    ("do-cedula", |v| v.len() == 11 && luhn(v) && !one_digit(v)),
    ("za-id", |v| {
        v.len() == 13 && valid_ymd(v) && matches!(v[10], b'0' | b'1' | b'2') && luhn(v)
    }),
    // The day of birth begins it.
    ("cu-ni", |v| v.len() == 11 && valid_ymd(v)),
    ("au-tfn", au_tfn),
    ("au-abn", au_abn),
    ("au-acn", au_acn),
    ("au-medicare", au_medicare),
    ("nz-ird", nz_ird),
    ("nz-nhi", nz_nhi),
];

/// SSA, 20 CFR 422: areas 000, 666 and 900 up, groups 00 and serials 0000 are never issued; the numbers of
/// advertisements (078-05-1120 and the like) are nobody's.
fn us_ssn(v: &[u8]) -> bool {
    let (Some(area), Some(group), Some(serial)) = (v.get(..3), v.get(3..5), v.get(5..9)) else {
        return false;
    };
    v.len() == 9
        && v.iter().all(u8::is_ascii_digit)
        && area != b"000"
        && area != b"666"
        && area[0] != b'9'
        && group != b"00"
        && serial != b"0000"
        && !matches!(v, b"078051120" | b"219099999" | b"123456789")
        && !one_digit(v)
}

/// IRS Publication 1915: 9xx with a fourth and fifth digit of 50-65, 70-88, 90-92, 94-99.
fn us_itin(v: &[u8]) -> bool {
    v.len() == 9
        && v[0] == b'9'
        && v.get(3..5)
            .and_then(number)
            .is_some_and(|g| matches!(g, 50..=65 | 70..=88 | 90..=92 | 94..=99))
}

/// CMS, 45 CFR 162.406: Luhn with 80840 before it.
fn us_npi(v: &[u8]) -> bool {
    let mut full = b"80840".to_vec();
    full.extend_from_slice(v);
    v.len() == 10 && matches!(v[0], b'1' | b'2') && luhn(&full) && !one_digit(&v[..9])
}

/// IRS: campus prefixes in use.
fn us_ein(v: &[u8]) -> bool {
    v.len() == 9
        && v.get(..2).and_then(number).is_some_and(
            |p| !matches!(p, 0 | 7..=9 | 17..=19 | 28 | 29 | 49 | 69 | 70 | 78 | 79 | 89 | 96 | 97),
        )
}

/// DEA registration: (1st+3rd+5th) + 2 (2nd+4th+6th), last digit.
fn us_dea(v: &[u8]) -> bool {
    let Some(d) = v.get(2..9).and_then(digits::<7>) else {
        return false;
    };
    // Who signs with a hospital's number has a 9 for the second letter.
    (v[0].is_ascii_uppercase() && (v[1].is_ascii_uppercase() || v[1] == b'9'))
        && v.len() == 9
        && (d[0] + d[2] + d[4] + 2 * (d[1] + d[3] + d[5])) % 10 == d[6]
}

/// Canada Post: letter and digit in turn, without those that are read wrong, and no `W` or `Z` in front.
fn ca_postal(v: &[u8]) -> bool {
    let letter =
        |b: u8| b.is_ascii_uppercase() && !matches!(b, b'D' | b'F' | b'I' | b'O' | b'Q' | b'U');
    v.len() == 6
        && v.iter().enumerate().all(|(i, b)| {
            if i % 2 == 0 {
                letter(*b)
            } else {
                b.is_ascii_digit()
            }
        })
        && !matches!(v[0], b'W' | b'Z')
}

/// NANPA: area and exchange begin with 2 to 9 and are not N11.
fn us_phone(v: &[u8]) -> bool {
    let v = if v.len() == 11 && v[0] == b'1' {
        &v[1..]
    } else {
        v
    };
    let ok = |at: usize| matches!(v[at], b'2'..=b'9') && &v[at + 1..at + 3] != b"11";
    v.len() == 10 && ok(0) && ok(3) && !one_digit(&v[3..])
}

/// ITU-T E.164: 7 to 15 digits, not one digit over and over, not counting up.
pub(super) fn phone_plausible(v: &[u8]) -> bool {
    let counting = v.windows(2).filter(|w| w[1] == w[0] + 1).count() + 1 == v.len();
    // NANPA: 555-0100 to 555-0199 belong to nobody.
    let fiction = matches!(v.len(), 7 | 10 | 11) && v[v.len() - 7..].starts_with(b"55501");
    // What forms show, and the bounds of a number of 32 bits.
    let sample = v.ends_with(b"0000000");
    let bound = matches!(
        v,
        b"2147483647" | b"2147483648" | b"4294967295" | b"4294967296"
    );
    // Lines that many people call, free or at a price of their own: Navi Dial and Free Dial in Japan, 0800 in most countries.
    let service = matches!(v.len(), 10 | 11)
        && ["05700", "0120", "0800"]
            .iter()
            .any(|lead| v.starts_with(lead.as_bytes()));
    (7..=15).contains(&v.len())
        && !service
        && !sample
        && !bound
        && v.iter().all(u8::is_ascii_digit)
        && !one_digit(v)
        && !counting
        && !fiction
}

/// Receita Federal, IN 1548/2015: two mod 11 check digits.
fn br_cpf(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    let check = |w: &[u32]| weighted(&d, w) * 10 % 11 % 10;
    !one_digit(v)
        && check(&[10, 9, 8, 7, 6, 5, 4, 3, 2]) == d[9]
        && check(&[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) == d[10]
}

/// Receita Federal, IN 2119/2022.
fn br_cnpj(v: &[u8]) -> bool {
    let Some(d) = digits::<14>(v) else {
        return false;
    };
    let check = |w: &[u32]| match weighted(&d, w) % 11 {
        0 | 1 => 0,
        r => 11 - r,
    };
    !one_digit(v)
        && check(&[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) == d[12]
        && check(&[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) == d[13]
}

/// Registro Civil: weights 2 to 7 from the right, mod 11, 10 is K.
fn cl_rut(v: &[u8]) -> bool {
    let Some((last, body)) = v.split_last() else {
        return false;
    };
    let mut sum = 0;
    for (i, b) in body.iter().rev().enumerate() {
        let Some(d) = digit(*b) else { return false };
        sum += d * (2 + i as u32 % 6);
    }
    let want = match 11 - sum % 11 {
        11 => b'0',
        10 => b'K',
        n => b'0' + n as u8,
    };
    (7..=8).contains(&body.len()) && *last == want && !one_digit(body)
}

/// AFIP: weights 5-4-3-2-7-6-5-4-3-2, mod 11.
fn ar_cuit(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    let check = (11 - weighted(&d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    matches!(number(&v[..2]), Some(20 | 23 | 24 | 27 | 30 | 33 | 34)) && check == d[10]
}

/// DIAN: primes from the right, mod 11. Nine digits and one for companies, the number of the card and one for persons.
fn co_nit(v: &[u8]) -> bool {
    const WEIGHTS: [u32; 10] = [3, 7, 13, 17, 19, 23, 29, 37, 41, 43];
    let Some((check, number)) = v.split_last() else {
        return false;
    };
    if !(6..=WEIGHTS.len()).contains(&number.len()) || !v.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits = number.iter().rev().map(|b| u32::from(b - b'0'));
    let rest = digits.zip(WEIGHTS).map(|(d, w)| d * w).sum::<u32>() % 11;
    u32::from(check - b'0') == if rest < 2 { rest } else { 11 - rest }
}

/// RENAPO, Instructivo normativo: weights 18 down over an alphabet with Ñ, mod 10.
fn mx_curp(v: &[u8]) -> bool {
    const STATES: &[u8] = b"AS BC BS CC CL CM CS CH DF DG GT GR HG JC MC MN MS NT NL OC PL QT QR SP SL SR TC TS TL VZ YN ZS NE";
    if v.len() != 18
        || !valid_ymd(&v[4..10])
        || !matches!(v[1], b'A' | b'E' | b'I' | b'O' | b'U' | b'X')
        || !matches!(v[10], b'H' | b'M' | b'X')
        || !STATES.chunks(3).any(|s| s[..2] == v[11..13])
    {
        return false;
    }
    let mut sum = 0;
    for (i, b) in v[..17].iter().enumerate() {
        let value = match b {
            b'0'..=b'9' => u32::from(b - b'0'),
            b'A'..=b'N' => u32::from(b - b'A') + 10,
            b'O'..=b'Z' => u32::from(b - b'A') + 11,
            _ => return false,
        };
        sum += value * (18 - i as u32);
    }
    digit(v[17]) == Some((10 - sum % 10) % 10)
}

/// Instituto Nacional Electoral: six letters, date of birth, federal entity (those born abroad: 33 and up to 35), sex.
fn mx_voter_key(v: &[u8]) -> bool {
    v.len() == 18
        && v[..6].iter().all(u8::is_ascii_uppercase)
        && valid_ymd(&v[6..12])
        && matches!(number(&v[12..14]), Some(1..=35 | 87 | 88))
        && matches!(v[14], b'H' | b'M')
}

/// Registro Civil, Ecuador: province, Luhn over ten.
fn ec_ci(v: &[u8]) -> bool {
    v.len() == 10
        && matches!(v.get(..2).and_then(number), Some(1..=24 | 30))
        && v[2] < b'6'
        && luhn(v)
}

/// DNIC, Uruguay: weights 2-9-8-7-6-3-4, mod 10.
fn uy_ci(v: &[u8]) -> bool {
    let Some(d) = digits::<8>(v) else {
        return false;
    };
    (10 - weighted(&d, &[2, 9, 8, 7, 6, 3, 4]) % 10) % 10 == d[7] && !one_digit(v)
}

/// ATO: weights 1-4-3-7-5-8-6-9-10, mod 11.
fn au_tfn(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    weighted(&d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11) && !one_digit(v)
}

/// ABR: one less in first place, weights 10-1-3-5..., mod 89.
fn au_abn(v: &[u8]) -> bool {
    let Some(mut d) = digits::<11>(v) else {
        return false;
    };
    if d[0] == 0 {
        return false;
    }
    d[0] -= 1;
    weighted(&d, &[10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19]).is_multiple_of(89)
}

/// ASIC: weights 8 to 1, mod 10.
fn au_acn(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    (10 - weighted(&d, &[8, 7, 6, 5, 4, 3, 2, 1]) % 10) % 10 == d[8] && !one_digit(v)
}

/// Services Australia: weights 1-3-7-9, mod 10, in ninth place; first digit 2 to 6.
fn au_medicare(v: &[u8]) -> bool {
    let Some(d) = v.get(..10).and_then(digits::<10>) else {
        return false;
    };
    (10..=11).contains(&v.len())
        && (2..=6).contains(&d[0])
        && weighted(&d, &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == d[8]
}

/// Inland Revenue NZ: weights 3-2-7-6-5-4-3-2, then 7-4-3-2-5-2-7-6, mod 11.
fn nz_ird(v: &[u8]) -> bool {
    let mut padded = b"0".to_vec();
    padded.extend_from_slice(v);
    let full = if v.len() == 8 { &padded[..] } else { v };
    let Some(d) = digits::<9>(full) else {
        return false;
    };
    let check = |w: &[u32]| (11 - weighted(&d, w) % 11) % 11;
    let first = check(&[3, 2, 7, 6, 5, 4, 3, 2]);
    let check = if first == 10 {
        check(&[7, 4, 3, 2, 5, 2, 7, 6])
    } else {
        first
    };
    check == d[8] && number(full).is_some_and(|n| (10_000_000..=150_000_000).contains(&n))
}

/// HISO 10046: three letters without I and O, weights 7 to 2, mod 11.
fn nz_nhi(v: &[u8]) -> bool {
    let value = |b: &u8| match b {
        b'A'..=b'H' => Some(u32::from(b - b'A') + 1),
        b'J'..=b'N' => Some(u32::from(b - b'A')),
        b'P'..=b'Z' => Some(u32::from(b - b'A') - 1),
        b'0'..=b'9' => Some(u32::from(b - b'0')),
        _ => None,
    };
    let sum = v
        .iter()
        .take(6)
        .zip([7, 6, 5, 4, 3, 2])
        .try_fold(0, |s, (b, w)| Some(s + value(b)? * w));
    let Some(sum) = sum else { return false };
    v.len() == 7
        && v[..3].iter().all(u8::is_ascii_uppercase)
        && sum % 11 != 0
        && digit(v[6]) == Some((11 - sum % 11) % 10)
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    #[test]
    fn americas_africa_oceania() {
        let cases: &[(&str, &str, bool)] = &[
            ("us-ssn", "219-09-9998", true),
            ("us-ssn", "000-12-3456", false),
            ("us-ssn", "666-12-3456", false),
            ("us-ssn", "912-12-3456", false),
            ("us-itin", "912-70-1234", true),
            ("us-itin", "912-45-1234", false),
            ("us-npi", "1234567893", true),
            ("us-npi", "1234567894", false),
            ("us-dea", "AB1234563", true),
            ("us-dea", "AB1234564", false),
            ("us-phone", "212-702-3599", true),
            ("us-phone", "112-702-3599", false),
            ("ca-sin", "130 692 544", true),
            ("ca-sin", "130 692 545", false),
            ("br-cpf", "111.444.777-35", true),
            ("br-cpf", "111.444.777-36", false),
            ("br-cnpj", "11.222.333/0001-81", true),
            ("br-cnpj", "11.222.333/0001-82", false),
            ("cl-rut", "12.345.678-5", true),
            ("cl-rut", "12.345.678-6", false),
            ("ar-cuit", "20-12345678-6", true),
            ("ar-cuit", "20-12345678-7", false),
            ("mx-curp", "HEGG560427MVZRRL04", true),
            ("mx-curp", "HEGG560427MVZRRL05", false),
            ("ec-ci", "1710034065", true),
            ("uy-ci", "1.234.567-2", true),
            ("za-id", "8001015009087", true),
            ("za-id", "8001015009088", false),
            ("au-tfn", "123 456 782", true),
            ("au-tfn", "123 456 783", false),
            ("au-abn", "51 824 753 556", true),
            ("au-abn", "51 824 753 557", false),
            ("au-acn", "004 085 616", true),
            ("au-medicare", "2123 45670 1", true),
            ("nz-ird", "49-091-850", true),
            ("nz-ird", "49-091-851", false),
            ("nz-nhi", "ZAA0067", true),
            ("nz-nhi", "ZAA0068", false),
        ];
        for (check, value, want) in cases {
            assert_eq!(passes(check, value), *want, "{check} {value}");
        }
    }
}
