//! National identifiers of Europe.

use super::Table;
use super::dates::{valid_dmy, valid_md, valid_ymd};
use super::sums::{digit, digits, luhn, mod11_10, number, one_digit, weighted};

pub(crate) const CHECKS: Table = &[
    ("uk-nhs", uk_nhs),
    ("uk-nino", uk_nino),
    ("uk-utr", uk_utr),
    ("uk-driving", uk_driving),
    ("uk-postcode", uk_postcode),
    // Identity numbers whose last sign proves the others: Spain, Chile, Singapore.
    ("signed-id", |v| {
        ["es-dni", "cl-rut", "sg-nric"]
            .iter()
            .any(|check| super::passes(check, v))
    }),
    ("uk-vrm", |v| {
        v.len() == 7 && !v.iter().any(|b| matches!(b, b'I' | b'Q'))
    }),
    ("tr-plate", |v| {
        v.get(..2)
            .and_then(number)
            .is_some_and(|p| (1..=81).contains(&p))
    }),
    ("de-steuer-id", de_steuer_id),
    ("de-id-card", de_id_card),
    ("de-passport", |v| {
        de_passport(v) && v.iter().filter(|b| b.is_ascii_digit()).count() >= 3
    }),
    ("de-document", |v| {
        v.first().is_some_and(|b| b"CFGHJKLMNPRTVWXYZ".contains(b)) && de_passport(v)
    }),
    ("de-id-card-signs", |v| {
        let sign = |b: &u8| b.is_ascii_digit() || b"CFGHJKLMNPRTVWXYZ".contains(b);
        v.first().is_some_and(|b| b"LMNPRTVWXY".contains(b))
            && v[..v.len().min(9)].iter().all(sign)
            && v.iter().filter(|b| b.is_ascii_digit()).count() >= 3
    }),
    ("de-id-card-loose", |v| {
        v.len() >= 9
            && v[0].is_ascii_uppercase()
            && v.iter().filter(|b| b.is_ascii_digit()).count() >= 4
            && de_id_card(v)
    }),
    ("de-svnr", de_svnr),
    ("de-kvnr", de_kvnr),
    ("de-lanr", de_lanr),
    ("fr-nir", fr_nir),
    ("fr-spi", |v| {
        digits::<13>(v).is_some() && number(&v[..10]).map(|n| n % 511) == number(&v[10..])
    }),
    ("es-dni", es_dni),
    ("es-cif", es_cif),
    ("it-cf", it_codice_fiscale),
    ("it-vat", |v| v.len() == 11 && luhn(v) && !one_digit(v)),
    ("pt-nif", pt_nif),
    ("nl-bsn", nl_bsn),
    ("be-nn", be_nn),
    ("lu-nn", |v| {
        v.len() == 13 && luhn(&v[..12]) && valid_ymd(&v[2..8])
    }),
    ("dk-cpr", |v| {
        v.len() == 10 && valid_dmy(v) && number(&v[6..]).is_some_and(|n| n > 0)
    }),
    ("se-pnr", se_pnr),
    ("se-orgnr", |v| {
        v.len() == 10 && luhn(v) && matches!(v[0], b'1'..=b'9') && v[2] >= b'2'
    }),
    ("no-fnr", no_fnr),
    ("fi-hetu", fi_hetu),
    ("is-kt", is_kt),
    ("pl-pesel", pl_pesel),
    ("pl-nip", pl_nip),
    ("pl-id-card", pl_id_card),
    ("cz-rc", cz_rc),
    ("ro-cnp", ro_cnp),
    ("bg-egn", bg_egn),
    ("hr-oib", |v| v.len() == 11 && mod11_10(v) && !one_digit(v)),
    ("yu-jmbg", yu_jmbg),
    ("hu-taj", hu_taj),
    ("gr-amka", |v| v.len() == 11 && valid_dmy(v) && luhn(v)),
    ("gr-afm", gr_afm),
    ("baltic-ik", baltic_ik),
    ("ie-pps", ie_pps),
    ("ch-ahv", ch_ahv),
    ("at-svnr", at_svnr),
    ("ru-inn", ru_inn),
    ("ru-snils", ru_snils),
    ("ua-rnokpp", ua_rnokpp),
    ("tr-tckn", tr_tckn),
    ("eu-vat-de", |v| v.len() == 11 && mod11_10(&v[2..])),
];

/// NHS Data Dictionary: weights 10 to 2, mod 11.
fn uk_nhs(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    let rest = weighted(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    (11 - rest) % 11 == d[9] && rest != 1 && !one_digit(v)
}

/// HMRC NIM39110: prefixes never used.
fn uk_nino(v: &[u8]) -> bool {
    let (Some(a), Some(b)) = (v.first(), v.get(1)) else {
        return false;
    };
    !matches!(a, b'D' | b'F' | b'I' | b'Q' | b'U' | b'V')
        && !matches!(b, b'D' | b'F' | b'I' | b'O' | b'Q' | b'U' | b'V')
        && !matches!(
            &v[..2],
            b"BG" | b"GB" | b"KN" | b"NK" | b"NT" | b"TN" | b"ZZ"
        )
        && v.get(2..8)
            .is_some_and(|d| d.iter().all(u8::is_ascii_digit))
        && v.last().is_some_and(|c| (b'A'..=b'D').contains(c))
}

/// HMRC unique taxpayer reference: weights over the last nine, first digit the check.
fn uk_utr(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    let sum = weighted(&d[1..], &[6, 7, 8, 9, 10, 5, 4, 3, 2]) % 11;
    const CHECK: [u32; 11] = [2, 1, 9, 8, 7, 6, 5, 4, 3, 2, 1];
    CHECK[sum as usize] == d[0] && !one_digit(v)
}

/// DVLA driver number: month (plus 50 for women) and day in their places.
fn uk_driving(v: &[u8]) -> bool {
    let part = |r: std::ops::Range<usize>| v.get(r).and_then(number);
    v.len() == 16 && matches!((part(6..8), part(8..10)), (Some(m), Some(d)) if valid_md(m % 50, d))
}

/// Royal Mail PAF: the inward part ends in two letters without C, I, K, M, O, V; first letters in use.
fn uk_postcode(v: &[u8]) -> bool {
    let Some(cut) = v.len().checked_sub(3) else {
        return false;
    };
    let inward = v[cut].is_ascii_digit()
        && v[cut + 1..]
            .iter()
            .all(|b| b.is_ascii_uppercase() && !b"CIKMOV".contains(b));
    v == b"GIR0AA"
        || inward
            && (2..=4).contains(&cut)
            && !b"QVX".contains(&v[0])
            && (!v[1].is_ascii_uppercase() || !b"IJZ".contains(&v[1]))
            // What forms show.
            && !v.starts_with(b"AA")
}

/// Steuer-ID, section 139b AO: ISO 7064 MOD 11,10; among the first ten one digit repeats.
fn de_steuer_id(v: &[u8]) -> bool {
    v.len() == 11 && v[0] != b'0' && mod11_10(v) && {
        let repeats = (b'0'..=b'9')
            .map(|d| v[..10].iter().filter(|b| **b == d).count())
            .max();
        repeats.is_some_and(|n| (2..=3).contains(&n))
    }
}

/// German identity cards and passports: weights 7-3-1 over the nine-character serial (ICAO 9303 part 3).
fn de_id_card(v: &[u8]) -> bool {
    let sum = v.iter().take(9).enumerate().try_fold(0, |s, (i, b)| {
        Some(s + char::from(*b).to_digit(36)? * [7, 3, 1][i % 3])
    });
    v.len() == 9 || (v.len() == 10 && sum.map(|s| s % 10) == digit(v[9]))
}

/// ICAO Doc 9303, part 3: weights 7-3-1, mod 10; the check digit is the ninth sign, or behind the nine. Germany leaves
/// out the letters that can be mistaken for others.
fn de_passport(v: &[u8]) -> bool {
    let sign = |b: &u8| b.is_ascii_digit() || b"CFGHJKLMNPRTVWXYZ".contains(b);
    let check = |n: usize| {
        let sum = v[..n].iter().enumerate().try_fold(0, |s, (i, b)| {
            Some(s + char::from(*b).to_digit(36)? * [7, 3, 1][i % 3])
        });
        sum.map(|s| s % 10) == digit(v[n])
    };
    matches!(v.len(), 9 | 10)
        && v[0].is_ascii_uppercase()
        && v[..9].iter().all(sign)
        && check(v.len() - 1)
}

/// Rentenversicherungsnummer, VKVV section 2: weights 2-1-2-5-7-1-2-1-2-1-2-1, cross sums, mod 10.
fn de_svnr(v: &[u8]) -> bool {
    if v.len() != 12
        || !v[8].is_ascii_uppercase()
        || !valid_md(
            number(&v[4..6]).unwrap_or(0),
            number(&v[2..4]).unwrap_or(0) % 50,
        )
    {
        return false;
    }
    let letter = u32::from(v[8] - b'A') + 1;
    let mut d = Vec::with_capacity(12);
    for (i, b) in v[..11].iter().enumerate() {
        match digit(*b) {
            Some(x) => d.push(x),
            None if i == 8 => d.extend([letter / 10, letter % 10]),
            None => return false,
        }
    }
    let weights = [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1];
    let sum: u32 = d
        .iter()
        .zip(weights)
        .map(|(d, w)| {
            let p = d * w;
            p / 10 + p % 10
        })
        .sum();
    digit(v[11]) == Some(sum % 10)
}

/// Krankenversichertennummer, section 290 SGB V: letter as two digits, then Luhn from the left.
fn de_kvnr(v: &[u8]) -> bool {
    if v.len() != 10 || !v[0].is_ascii_uppercase() {
        return false;
    }
    let letter = u32::from(v[0] - b'A') + 1;
    let mut d = vec![letter / 10, letter % 10];
    for b in &v[1..9] {
        let Some(x) = digit(*b) else { return false };
        d.push(x);
    }
    let sum: u32 = d
        .iter()
        .enumerate()
        .map(|(i, d)| {
            let p = d * if i % 2 == 0 { 1 } else { 2 };
            p / 10 + p % 10
        })
        .sum();
    digit(v[9]) == Some(sum % 10)
}

/// Arztnummer, KBV guideline under section 75 SGB V: weights 4 and 9, ten's complement.
fn de_lanr(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    (10 - weighted(&d[..6], &[4, 9, 4, 9, 4, 9]) % 10) % 10 == d[6]
}

/// NIR, INSEE: 97 minus the number mod 97; Corsica's 2A and 2B count as 19 and 18.
fn fr_nir(v: &[u8]) -> bool {
    if v.len() != 15 || !matches!(v[0], b'1' | b'2' | b'3' | b'4' | b'7' | b'8') {
        return false;
    }
    let mut body = [0; 13];
    body.copy_from_slice(&v[..13]);
    if let b"2A" | b"2B" = &body[5..7] {
        let corse = if body[6] == b'A' { *b"19" } else { *b"18" };
        body[5..7].copy_from_slice(&corse);
    }
    match (number(&body), number(&v[13..])) {
        (Some(n), Some(key)) => 97 - n % 97 == key,
        _ => false,
    }
}

/// DNI and NIE, Real Decreto 1553/2005: the number mod 23 picks the letter; X, Y, Z count 0, 1, 2.
fn es_dni(v: &[u8]) -> bool {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let Some((last, body)) = v.split_last() else {
        return false;
    };
    let mut body = body.to_vec();
    if let Some(first) = body.first_mut() {
        *first = match *first {
            b'X' => b'0',
            b'Y' => b'1',
            b'Z' => b'2',
            b => b,
        };
    }
    (7..=8).contains(&body.len())
        && !one_digit(&body)
        && number(&body).is_some_and(|n| LETTERS[(n % 23) as usize] == *last)
}

/// CIF, Orden EHA/451/2008.
fn es_cif(v: &[u8]) -> bool {
    let Some(d) = v.get(1..8).and_then(digits::<7>) else {
        return false;
    };
    let even: u32 = d[1] + d[3] + d[5];
    let odd: u32 = [d[0], d[2], d[4], d[6]]
        .iter()
        .map(|d| d * 2 / 10 + d * 2 % 10)
        .sum();
    let check = (10 - (even + odd) % 10) % 10;
    v.len() == 9 && (digit(v[8]) == Some(check) || v[8] == b"JABCDEFGHI"[check as usize])
}

/// Codice fiscale, DM 12/03/1974: odd places by table, sum mod 26. Where two people would have the same, digits become letters of ten,
/// from the right on; of all seven nobody's did.
fn it_codice_fiscale(v: &[u8]) -> bool {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    const FIGURES: [usize; 7] = [6, 7, 9, 10, 12, 13, 14];
    if v.len() != 16 || !v[8].is_ascii_uppercase() || !b"ABCDEHLMPRST".contains(&v[8]) {
        return false;
    }
    let figures = || FIGURES.iter().map(|at| v[*at]);
    let figure = |b: u8| b.is_ascii_digit() || b"LMNPQRSTUV".contains(&b);
    if !figures().all(figure) || !figures().any(|b| b.is_ascii_digit()) {
        return false;
    }
    let mut sum = 0;
    for (i, b) in v[..15].iter().enumerate() {
        let value = match b {
            b'0'..=b'9' => u32::from(b - b'0'),
            b'A'..=b'Z' => u32::from(b - b'A'),
            _ => return false,
        };
        sum += if i % 2 == 0 {
            ODD[value as usize]
        } else {
            value
        };
    }
    u32::from(v[15].wrapping_sub(b'A')) == sum % 26
}

/// NIF, Portaria 377/91: weights 9 to 2, mod 11.
fn pt_nif(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    let rest = weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    matches!(d[0], 1..=3 | 5 | 6 | 8 | 9)
        && d[8] == if rest < 2 { 0 } else { 11 - rest }
        && !one_digit(v)
}

/// BSN, Wet algemene bepalingen BSN: the eleven test.
fn nl_bsn(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    let sum = weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2]);
    sum >= d[8] && (sum - d[8]).is_multiple_of(11) && !one_digit(v)
}

/// Rijksregisternummer, KB 3/4/1984: 97 minus the number mod 97; a 2 before it from 2000 on.
fn be_nn(v: &[u8]) -> bool {
    if v.len() != 11 || number(&v[2..4]).is_none_or(|m| m % 20 > 12) {
        return false;
    }
    let (Some(n), Some(key)) = (number(&v[..9]), number(&v[9..])) else {
        return false;
    };
    97 - n % 97 == key || 97 - (2_000_000_000 + n) % 97 == key
}

/// Personnummer, SFS 1967:518: date and Luhn over ten; coordination numbers add 60 to the day.
fn se_pnr(v: &[u8]) -> bool {
    let v = if v.len() == 12 { &v[2..] } else { v };
    let part = |r: std::ops::Range<usize>| v.get(r).and_then(number).unwrap_or(0);
    v.len() == 10
        && luhn(v)
        && (valid_md(part(2..4), part(4..6)) || valid_md(part(2..4), part(4..6).wrapping_sub(60)))
}

/// Fødselsnummer, Skatteetaten: two mod 11 check digits; D-numbers add 4 to the first digit.
fn no_fnr(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    let check = |weights: &[u32]| (11 - weighted(&d, weights) % 11) % 11;
    let day = (d[0] % 4) * 10 + d[1];
    valid_md(u64::from((d[2] * 10 + d[3]) % 40), u64::from(day))
        && check(&[3, 7, 6, 1, 8, 9, 4, 5, 2]) == d[9]
        && check(&[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) == d[10]
}

/// Henkilötunnus, Väestörekisterikeskus: date and number mod 31 pick the character.
fn fi_hetu(v: &[u8]) -> bool {
    const CHARS: &[u8; 31] = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let Some((last, body)) = v.split_last() else {
        return false;
    };
    let mut n = [0; 9];
    match body.len() {
        9 => n.copy_from_slice(body),
        10 => {
            n[..6].copy_from_slice(&body[..6]);
            n[6..].copy_from_slice(&body[7..]);
        }
        _ => return false,
    }
    valid_dmy(&n) && number(&n).is_some_and(|n| CHARS[(n % 31) as usize] == *last)
}

/// Kennitala, Þjóðskrá: weights 3-2-7-6-5-4-3-2, mod 11.
fn is_kt(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    let check = (11 - weighted(&d, &[3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    valid_md(
        u64::from(d[2] * 10 + d[3]),
        u64::from((d[0] % 4) * 10 + d[1]),
    ) && check == d[8]
        && matches!(d[9], 0 | 8 | 9)
}

/// PESEL, Dz.U. 2010 nr 217: weights 1-3-7-9; the century is added to the month.
fn pl_pesel(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    let month = u64::from((d[2] % 2) * 10 + d[3]);
    valid_md(month, u64::from(d[4] * 10 + d[5]))
        && weighted(&d, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]).is_multiple_of(10)
}

/// NIP, Dz.U. 1995 nr 142: weights 6-5-7-2-3-4-5-6-7, mod 11.
fn pl_nip(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    weighted(&d, &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == d[9] && !one_digit(v)
}

/// Dowód osobisty: letters count from A = 10, weights 7-3-1-9-7-3-1-7-3, mod 10.
fn pl_id_card(v: &[u8]) -> bool {
    let weights = [7, 3, 1, 9, 7, 3, 1, 7, 3];
    let sum = v
        .iter()
        .zip(weights)
        .try_fold(0, |s, (b, w)| Some(s + char::from(*b).to_digit(36)? * w));
    v.len() == 9 && v[..3].iter().all(u8::is_ascii_uppercase) && sum.is_some_and(|s| s % 10 == 0)
}

/// Rodné číslo, zákon 133/2000 Sb.: ten digits divide by 11; women add 50 to the month.
fn cz_rc(v: &[u8]) -> bool {
    let Some(n) = number(v) else { return false };
    let part = |r: std::ops::Range<usize>| v.get(r).and_then(number).unwrap_or(0);
    v.len() == 10
        && valid_md(part(2..4) % 50 % 20, part(4..6))
        && (n % 11 == 0 || (n / 10 % 11 == 10 && v[9] == b'0'))
}

/// CNP, Legea 105/1996: weights 279146358279, mod 11.
fn ro_cnp(v: &[u8]) -> bool {
    let Some(d) = digits::<13>(v) else {
        return false;
    };
    let rest = weighted(&d, &[2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9]) % 11;
    d[0] != 0 && valid_ymd(&v[1..7]) && d[12] == if rest == 10 { 1 } else { rest }
}

/// EGN, Наредба РД-02-20-9/2012: weights 2-4-8-5-10-9-7-3-6, mod 11 mod 10; the century is added to the month.
fn bg_egn(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    let month = u64::from(d[2] * 10 + d[3]) % 20;
    valid_md(month, u64::from(d[4] * 10 + d[5]))
        && weighted(&d, &[2, 4, 8, 5, 10, 9, 7, 3, 6]) % 11 % 10 == d[9]
}

/// JMBG / EMŠO: weights 7-6-5-4-3-2 twice, mod 11; day, month, last three of the year first.
fn yu_jmbg(v: &[u8]) -> bool {
    let Some(d) = digits::<13>(v) else {
        return false;
    };
    let rest = weighted(&d, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    valid_md(u64::from(d[2] * 10 + d[3]), u64::from(d[0] * 10 + d[1]))
        && matches!(d[4], 0 | 9)
        && rest != 1
        && d[12] == (11 - rest) % 11
}

/// TAJ, 1996. évi XX. törvény: weights 3 and 7, mod 10.
fn hu_taj(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    weighted(&d, &[3, 7, 3, 7, 3, 7, 3, 7]) % 10 == d[8] && !one_digit(v)
}

/// ΑΦΜ: powers of two, mod 11 mod 10.
fn gr_afm(v: &[u8]) -> bool {
    let Some(d) = digits::<9>(v) else {
        return false;
    };
    weighted(&d, &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == d[8] && !one_digit(v)
}

/// Estonian isikukood (EVS 585) and Lithuanian asmens kodas: two rounds of weights, mod 11.
fn baltic_ik(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    let first = weighted(&d, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 1]) % 11;
    let check = if first < 10 {
        first
    } else {
        weighted(&d, &[3, 4, 5, 6, 7, 8, 9, 1, 2, 3]) % 11 % 10
    };
    matches!(d[0], 1..=8) && valid_ymd(&v[1..7]) && check == d[10]
}

/// PPS number, Social Welfare Consolidation Act 2005: weights 8 to 2 (a ninth letter weighs 9), mod 23.
fn ie_pps(v: &[u8]) -> bool {
    let Some(d) = v.get(..7).and_then(digits::<7>) else {
        return false;
    };
    let extra = match v.get(8) {
        None => 0,
        Some(b'W') => 0,
        Some(b) if b.is_ascii_uppercase() => u32::from(b - b'A') + 1,
        _ => return false,
    };
    let rest = (weighted(&d, &[8, 7, 6, 5, 4, 3, 2]) + extra * 9) % 23;
    (8..=9).contains(&v.len())
        && v[7]
            == if rest == 0 {
                b'W'
            } else {
                b'A' + (rest as u8) - 1
            }
}

/// AHV number: EAN-13 with the country 756 (BSV directive).
fn ch_ahv(v: &[u8]) -> bool {
    let Some(d) = digits::<13>(v) else {
        return false;
    };
    v.starts_with(b"756")
        && weighted(&d, &[1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1]).is_multiple_of(10)
}

/// Sozialversicherungsnummer, Dachverband: weights 3-7-9, 5-8-4-2-1-6, mod 11 in fourth place.
fn at_svnr(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    let sum = weighted(&d, &[3, 7, 9, 0, 5, 8, 4, 2, 1, 6]) % 11;
    d[0] != 0 && sum == d[3] && valid_md(u64::from(d[6] * 10 + d[7]), u64::from(d[4] * 10 + d[5]))
}

/// INN of a person: two check digits (FNS order MMV-7-6/435).
fn ru_inn(v: &[u8]) -> bool {
    let Some(d) = digits::<12>(v) else {
        return false;
    };
    let check = |w: &[u32]| weighted(&d, w) % 11 % 10;
    check(&[7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) == d[10]
        && check(&[3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8]) == d[11]
        && !one_digit(v)
}

/// SNILS: weights 9 to 1, mod 101, 100 counts as 0.
fn ru_snils(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    weighted(&d, &[9, 8, 7, 6, 5, 4, 3, 2, 1]) % 101 % 100 == d[9] * 10 + d[10] && !one_digit(v)
}

/// РНОКПП: weights -1-5-7-9-4-6-10-5-7, mod 11 mod 10 (shifted to stay positive).
fn ua_rnokpp(v: &[u8]) -> bool {
    let Some(d) = digits::<10>(v) else {
        return false;
    };
    (weighted(&d, &[10, 5, 7, 9, 4, 6, 10, 5, 7]) % 11) % 10 == d[9] && !one_digit(v)
}

/// T.C. kimlik no, Nüfus Hizmetleri Kanunu: two sums mod 10.
fn tr_tckn(v: &[u8]) -> bool {
    let Some(d) = digits::<11>(v) else {
        return false;
    };
    let odd: u32 = d[0] + d[2] + d[4] + d[6] + d[8];
    let even: u32 = d[1] + d[3] + d[5] + d[7];
    d[0] != 0 && (odd * 7 + 90 - even) % 10 == d[9] && d[..10].iter().sum::<u32>() % 10 == d[10]
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    #[test]
    fn europe() {
        let cases: &[(&str, &str, bool)] = &[
            ("uk-nhs", "943 476 5919", true),
            ("uk-nhs", "943 476 5918", false),
            ("uk-nino", "AB 12 34 56 C", true),
            ("uk-nino", "GB123456C", false),
            ("de-steuer-id", "86095742719", true),
            ("de-steuer-id", "86095742718", false),
            ("de-svnr", "15070649C103", true),
            ("de-svnr", "15070649C104", false),
            ("de-kvnr", "A123456780", true),
            ("de-kvnr", "A123456781", false),
            ("fr-nir", "2 55 08 14 168 025 38", true),
            ("fr-nir", "2 55 08 14 168 025 39", false),
            ("es-dni", "12345678Z", true),
            ("es-dni", "12345678A", false),
            ("es-dni", "X1234567L", true),
            ("es-cif", "A58818501", true),
            ("es-cif", "A58818502", false),
            ("it-cf", "RSSMRA85T10A562S", true),
            ("it-cf", "RSSMRA85T10A562T", false),
            ("it-cf", "RSSMRA85T10A56NH", true),
            ("it-cf", "INVALIDCHARACTER", false),
            ("it-vat", "01333550323", true),
            ("pt-nif", "123456789", true),
            ("pt-nif", "123456788", false),
            ("nl-bsn", "111222333", true),
            ("nl-bsn", "111222334", false),
            ("be-nn", "85.07.30-033.28", true),
            ("be-nn", "85.07.30-033.29", false),
            ("se-pnr", "811228-9874", true),
            ("se-pnr", "811228-9875", false),
            ("no-fnr", "15076500565", true),
            ("no-fnr", "15076500566", false),
            ("fi-hetu", "131052-308T", true),
            ("fi-hetu", "131052-308U", false),
            ("pl-pesel", "44051401359", true),
            ("pl-pesel", "44051401358", false),
            ("pl-nip", "123-456-32-18", true),
            ("pl-id-card", "ABA300000", true),
            ("cz-rc", "710319/2745", true),
            ("cz-rc", "710319/2746", false),
            ("ro-cnp", "1630615123457", true),
            ("ro-cnp", "1630615123458", false),
            ("bg-egn", "7523169263", true),
            ("bg-egn", "7523169264", false),
            ("hr-oib", "33392005961", true),
            ("yu-jmbg", "0101006500006", true),
            ("gr-afm", "094259216", true),
            ("baltic-ik", "37605030299", true),
            ("baltic-ik", "37605030298", false),
            ("ie-pps", "6433435F", true),
            ("ie-pps", "6433435E", false),
            ("ch-ahv", "756.9217.0769.85", true),
            ("ch-ahv", "756.9217.0769.84", false),
            ("at-svnr", "1237 010180", true),
            ("ru-inn", "500100732259", true),
            ("ru-snils", "112-233-445 95", true),
            ("tr-tckn", "10000000146", true),
            ("tr-tckn", "10000000147", false),
        ];
        for (check, value, want) in cases {
            assert_eq!(passes(check, value), *want, "{check} {value}");
        }
    }
}
