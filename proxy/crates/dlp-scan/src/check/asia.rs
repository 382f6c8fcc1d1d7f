//! National identifiers of Asia and the Middle East.

use super::Table;
use super::dates::{valid_md, valid_ymd, valid_yyyymmdd};
use super::sums::{digit, digits, luhn, number, one_digit, verhoeff, weighted};

pub(crate) const CHECKS: Table = &[
    ("in-aadhaar", |v| {
        v.len() == 12 && matches!(v[0], b'2'..=b'9') && verhoeff(v) && !one_digit(v)
    }),
    ("in-pan", |v| {
        v.len() == 10 && b"ABCFGHLJPTK".contains(&v[3])
    }),
    ("in-gstin", in_gstin),
    ("in-gstin-shape", |v| {
        v.len() == 15
            && v[13] == b'Z'
            && matches!(v.get(..2).and_then(number), Some(1..=38 | 97 | 99))
    }),
    ("ph-mobile", |v| {
        v.len() == 11 && v[1] == b'9' && !one_digit(&v[2..])
    }),
    ("sg-nric-shape", |v| {
        v.len() == 9 && b"STFGM".contains(&v[0])
    }),
    ("cn-id", cn_id),
    ("hk-hkid", hk_hkid),
    ("tw-id", tw_id),
    ("sg-nric", sg_nric),
    ("my-nric", |v| v.len() == 12 && valid_ymd(v)),
    ("th-id", th_id),
    ("sg-uen", sg_uen),
    ("ph-tin", ph_tin),
    ("kr-driver", |v| {
        v.len() == 12 && matches!(v.get(..2).and_then(number), Some(11..=26 | 28))
    }),
    // Ministry of Foreign Affairs, Korea: kinds of passports.
    ("kr-passport", |v| v.len() == 9 && b"MSRODG".contains(&v[0])),
    ("kr-rrn-old", kr_rrn_old),
    ("tr-phone", tr_phone),
    ("id-nik", id_nik),
    ("kr-rrn", kr_rrn),
    ("kr-brn", kr_brn),
    ("jp-my-number", jp_my_number),
    ("jp-corporate", jp_corporate),
    ("il-id", |v| (8..=9).contains(&v.len()) && il_id(v)),
    ("ae-id", |v| {
        v.len() == 15 && v.starts_with(b"784") && luhn(v)
    }),
    ("sa-id", |v| {
        v.len() == 10 && matches!(v[0], b'1' | b'2') && luhn(v)
    }),
    ("kw-id", kw_id),
    ("kz-iin", kz_iin),
    ("lk-nic", |v| v.len() == 12 || v.len() == 10),
];

/// GSTN: state code, PAN inside, and a check character mod 36.
fn in_gstin(v: &[u8]) -> bool {
    if v.len() != 15 || !matches!(v.get(..2).and_then(number), Some(1..=38 | 97 | 99)) {
        return false;
    }
    let mut sum = 0;
    for (i, b) in v[..14].iter().enumerate() {
        let Some(d) = char::from(*b).to_digit(36) else {
            return false;
        };
        let p = d * if i % 2 == 0 { 1 } else { 2 };
        sum += p / 36 + p % 36;
    }
    char::from(v[14]).to_digit(36) == Some((36 - sum % 36) % 36)
}

/// GB 11643-1999: ISO 7064 MOD 11-2, 10 is X.
fn cn_id(v: &[u8]) -> bool {
    let Some(d) = v.get(..17).and_then(digits::<17>) else {
        return false;
    };
    let rest = weighted(&d, &[7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11;
    v.len() == 18
        && valid_yyyymmdd(&v[6..14])
        && (1..=8).contains(&d[0])
        && v[17] == b"10X98765432"[rest as usize]
}

/// Hong Kong Immigration Department: letters from 10, weights 9 to 2, mod 11, 10 is A.
fn hk_hkid(v: &[u8]) -> bool {
    let letters = v.iter().take_while(|b| b.is_ascii_uppercase()).count();
    if !(1..=2).contains(&letters) || v.len() != letters + 7 {
        return false;
    }
    let mut sum = if letters == 1 { 36 * 9 } else { 0 };
    for (i, b) in v[..v.len() - 1].iter().enumerate() {
        let Some(d) = char::from(*b).to_digit(36) else {
            return false;
        };
        sum += d * (9 - (i + 2 - letters) as u32);
    }
    let want = match (11 - sum % 11) % 11 {
        10 => b'A',
        n => b'0' + n as u8,
    };
    v[v.len() - 1] == want
}

/// Ministry of the Interior, Taiwan: letter as two digits, weights 1-9-8...1-1, mod 10.
fn tw_id(v: &[u8]) -> bool {
    const ORDER: &[u8; 26] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    let (Some(first), Some(d)) = (v.first(), v.get(1..).and_then(digits::<9>)) else {
        return false;
    };
    let Some(place) = ORDER.iter().position(|b| b == first) else {
        return false;
    };
    let n = place as u32 + 10;
    matches!(d[0], 1 | 2 | 8 | 9)
        && (n / 10 + n % 10 * 9 + weighted(&d, &[8, 7, 6, 5, 4, 3, 2, 1, 1])).is_multiple_of(10)
}

/// ICA: weights 2-7-6-5-4-3-2; T and G add 4, M adds 3.
fn sg_nric(v: &[u8]) -> bool {
    let Some(d) = v.get(1..8).and_then(digits::<7>) else {
        return false;
    };
    let sum = weighted(&d, &[2, 7, 6, 5, 4, 3, 2]);
    let (sum, table): (u32, &[u8; 11]) = match v[0] {
        b'S' => (sum, b"JZIHGFEDCBA"),
        b'T' => (sum + 4, b"JZIHGFEDCBA"),
        b'F' => (sum, b"XWUTRQPNMLK"),
        b'G' => (sum + 4, b"XWUTRQPNMLK"),
        b'M' => (sum + 3, b"KLJNPQRTUWX"),
        _ => return false,
    };
    let at = sum as usize % 11;
    v.len() == 9
        && v[8]
            == if v[0] == b'M' {
                table[10 - at]
            } else {
                table[at]
            }
}

/// Thai Ministry of the Interior: weights 13 to 2, mod 11 mod 10. The second and third digit are the province.
fn th_id(v: &[u8]) -> bool {
    let Some(d) = digits::<13>(v) else {
        return false;
    };
    let sum = weighted(&d, &[13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    let province =
        matches!(d[1] * 10 + d[2], 10..=27 | 30..=58 | 60..=67 | 70..=77 | 80..=86 | 90..=96);
    (1..=8).contains(&d[0]) && province && (11 - sum % 11) % 10 == d[12] && !one_digit(v)
}

/// ACRA, Singapore: businesses, companies, and all others, each with weights and check letters of their own.
fn sg_uen(v: &[u8]) -> bool {
    const OTHER: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWX0123456789";
    match v.len() {
        9 => digits::<8>(&v[..8]).is_some_and(|d| {
            let sum = weighted(&d, &[10, 4, 9, 3, 8, 2, 7, 1]) as usize;
            b"XMKECAWLJDB"[sum % 11] == v[8] && !one_digit(&v[..8])
        }),
        10 if v[0].is_ascii_digit() => digits::<9>(&v[..9]).is_some_and(|d| {
            let sum = weighted(&d, &[10, 8, 6, 4, 9, 7, 5, 3, 1]) as usize;
            b"ZKCMDNERGWH"[sum % 11] == v[9] && !one_digit(&v[..9])
        }),
        10 if matches!(v[0], b'R' | b'S' | b'T') => {
            let place = |b: &u8| OTHER.iter().position(|o| o == b);
            let terms = v[..9].iter().zip([4, 3, 5, 3, 10, 2, 2, 5, 7]);
            let sum: Option<usize> = terms.map(|(b, w)| place(b).map(|p| p * w)).sum();
            sum.is_some_and(|sum| OTHER[(sum + 11 - 5) % 11] == v[9])
        }
        _ => false,
    }
}

/// BIR, Philippines: weights 9 to 2, mod 11, in ninth place; a branch may follow.
fn ph_tin(v: &[u8]) -> bool {
    matches!(v.len(), 9 | 12)
        && digits::<9>(&v[..9])
            .is_some_and(|d| weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11 == d[8])
        && !one_digit(&v[..9])
}

/// A registration number without its dash and without a word: with the check digit of the years before 2020 (weights 2
/// to 9 and 2 to 5, mod 11, two more for foreigners), and no millisecond of 2014 to 2030, which begins the same.
fn kr_rrn_old(v: &[u8]) -> bool {
    let Some(d) = digits::<13>(v) else {
        return false;
    };
    let sum = weighted(&d, &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]) % 11;
    let from = if d[6] >= 5 { 13 } else { 11 };
    kr_rrn(v)
        && (from - sum) % 10 == d[12]
        && !matches!(&v[..2], [b'1', b'4'..=b'8'])
        && !one_digit(v)
}

/// BTK, Türkiye, numbering plan: mobile codes, and the codes of places.
fn tr_phone(v: &[u8]) -> bool {
    const PLACES: [u64; 83] = [
        212, 216, 222, 224, 226, 228, 232, 236, 242, 246, 248, 252, 256, 258, 262, 264, 266, 272,
        274, 276, 282, 284, 286, 288, 312, 318, 322, 324, 326, 328, 332, 338, 342, 344, 346, 348,
        352, 354, 356, 358, 362, 364, 366, 368, 370, 372, 374, 376, 378, 380, 382, 384, 386, 388,
        392, 412, 414, 416, 422, 424, 426, 428, 432, 434, 436, 438, 442, 446, 452, 454, 456, 458,
        462, 464, 466, 472, 474, 476, 478, 482, 484, 486, 488,
    ];
    let v = v.strip_prefix(b"0").unwrap_or(v);
    let code = v.get(..3).and_then(number).unwrap_or(0);
    v.len() == 10 && (matches!(code, 500..=599) || PLACES.contains(&code))
}

/// NIK, Indonesia: region, date (women add 40 to the day), serial.
fn id_nik(v: &[u8]) -> bool {
    let part = |r: std::ops::Range<usize>| v.get(r).and_then(number).unwrap_or(0);
    v.len() == 16
        && (11..=94).contains(&part(0..2))
        && valid_md(part(8..10), part(6..8) % 40)
        && part(12..16) > 0
}

/// Resident and foreigner registration: weights 2 to 9 and 2 to 5, mod 11. From October 2020 the check digit is not
/// kept, so a good date and century digit are enough; context must say the rest.
fn kr_rrn(v: &[u8]) -> bool {
    v.len() == 13 && v.iter().all(u8::is_ascii_digit) && valid_ymd(v) && matches!(v[6], b'1'..=b'8')
}

/// National Tax Service, Korea: weights 1-3-7-1-3-7-1-3-5, mod 10.
fn kr_brn(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    let sum = weighted(&d, &[1, 3, 7, 1, 3, 7, 1, 3, 5]) + d[8] * 5 / 10;
    (10 - sum % 10) % 10 == d[9] && !one_digit(v)
}

/// Ordinance 85 of 2014 under the My Number Act: weights 6-5-4-3-2-7-6-5-4-3-2, mod 11.
fn jp_my_number(v: &[u8]) -> bool {
    let Some(d) = digits::<12>(v) else {
        return false;
    };
    let rest = weighted(&d, &[6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    d[11] == if rest <= 1 { 0 } else { 11 - rest } && !one_digit(v)
}

/// National Tax Agency, Japan: 9 minus the weighted sum mod 9, in first place.
fn jp_corporate(v: &[u8]) -> bool {
    let Some(d) = digits::<13>(v) else {
        return false;
    };
    let sum = weighted(&d[1..], &[2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1]);
    d[0] == 9 - sum % 9
}

/// Teudat zehut: Luhn, weights from the left, padded to nine.
fn il_id(v: &[u8]) -> bool {
    luhn(v) && !one_digit(v)
}

/// PACI, Kuwait: weights 2-1-6-3-7-9-10-5-8-4-2, mod 11.
fn kw_id(v: &[u8]) -> bool {
    let Some(d) = digits::<12>(v) else {
        return false;
    };
    matches!(d[0], 2 | 3)
        && valid_ymd(&v[1..7])
        && 11 - weighted(&d, &[2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11 == d[11]
}

/// IIN, Kazakhstan: two rounds of weights, mod 11.
fn kz_iin(v: &[u8]) -> bool {
    let Some(d) = digits::<12>(v) else {
        return false;
    };
    let first = weighted(&d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) % 11;
    let check = if first < 10 {
        first
    } else {
        weighted(&d, &[3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2]) % 11
    };
    valid_ymd(v) && (1..=6).contains(&d[6]) && check == d[11] && digit(v[0]).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    #[test]
    fn asia() {
        let cases: &[(&str, &str, bool)] = &[
            ("in-aadhaar", "2341 2341 2346", true),
            ("in-aadhaar", "2341 2341 2347", false),
            ("in-gstin", "27AAPFU0939F1ZV", true),
            ("in-gstin", "27AAPFU0939F1ZW", false),
            ("cn-id", "11010519491231002X", true),
            ("cn-id", "110105194912310021", false),
            ("hk-hkid", "A123456(3)", true),
            ("hk-hkid", "A123456(4)", false),
            ("tw-id", "A123456789", true),
            ("tw-id", "A123456788", false),
            ("sg-nric", "S1234567D", true),
            ("sg-nric", "S1234567E", false),
            ("sg-nric", "F1234567N", true),
            ("th-id", "1234567890121", true),
            ("th-id", "1994567890124", false),
            ("sg-uen", "53012345D", false),
            ("ph-tin", "210-000-004", true),
            ("ph-tin", "210-000-005", false),
            ("kr-driver", "11-07-314159-26", true),
            ("kr-driver", "39-07-314159-26", false),
            ("kr-rrn-old", "8802291234561", true),
            ("kr-rrn-old", "8802291234567", false),
            ("kr-rrn-old", "1704011234560", false),
            ("tr-phone", "0212 345 67 89", true),
            ("tr-phone", "0213 345 67 89", false),
            ("th-id", "1234567890122", false),
            ("kr-rrn", "880229-1234567", true),
            ("kr-rrn", "881329-1234567", false),
            ("kr-brn", "104-86-56659", true),
            ("kr-brn", "104-86-56658", false),
            ("jp-my-number", "123456789018", true),
            ("jp-my-number", "123456789019", false),
            ("il-id", "000000018", true),
            ("il-id", "000000019", false),
            ("ae-id", "784-1980-1234567-9", false),
        ];
        for (check, value, want) in cases {
            assert_eq!(passes(check, value), *want, "{check} {value}");
        }
    }
}
