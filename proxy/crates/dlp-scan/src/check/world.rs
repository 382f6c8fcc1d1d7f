//! Tax, company and personal register numbers that the other tables do not have.
//!
//! The sums are those the issuing offices publish; where an office publishes none, the function checks the shape and
//! the rule asks for words beside the number.

use super::Table;
use super::dates::{valid_md, valid_ymd};
use super::sums::{digits, luhn, mod11_10, number, one_digit, weighted};

pub(crate) const CHECKS: Table = &[
    ("pe-ruc", pe_ruc),
    ("pe-cui", pe_cui),
    ("ve-rif", ve_rif),
    ("gt-nit", gt_nit),
    ("py-ruc", py_ruc),
    ("uy-rut", uy_rut),
    ("sv-nit", sv_nit),
    ("pt-cc", pt_cc),
    ("es-nss", es_nss),
    ("fr-siren", |v| {
        matches!(v.len(), 9 | 14) && luhn(v) && luhn(&v[..9]) && !one_digit(v)
    }),
    ("fr-spi-long", |v| {
        digits::<13>(v).is_some()
            && v[0] <= b'3'
            && number(&v[..10]).map(|n| n % 511) == number(&v[10..])
    }),
    ("hu-ado", |v| {
        digits::<10>(v)
            .is_some_and(|d| d[0] == 8 && weighted(&d, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) % 11 == d[9])
    }),
    ("lv-pk", lv_pk),
    ("pl-regon", pl_regon),
    ("by-unp", by_unp),
    ("md-idno", |v| {
        digits::<13>(v)
            .is_some_and(|d| weighted(&d, &[7, 3, 1, 7, 3, 1, 7, 3, 1, 7, 3, 1]) % 10 == d[12])
            && !one_digit(v)
    }),
    ("mk-edb", mk_edb),
    ("rs-pib", |v| v.len() == 9 && mod11_10(v) && !one_digit(v)),
    ("al-nipt", al_nipt),
    ("ua-edrpou", ua_edrpou),
    ("ru-ogrn", ru_ogrn),
    ("ru-inn-company", |v| {
        digits::<10>(v)
            .is_some_and(|d| weighted(&d, &[2, 4, 10, 3, 5, 9, 4, 6, 8]) % 11 % 10 == d[9])
            && !one_digit(v)
    }),
    ("tr-vkn", tr_vkn),
    // OMPIC: common company identifier, ISO 7064 MOD 97-10 with remainder 0.
    ("ma-ice", |v| {
        digits::<15>(v).is_some() && number(v).is_some_and(|n| n > 0 && n % 97 == 0)
    }),
    ("tn-mf", tn_mf),
    ("eg-nid", eg_nid),
    ("ke-pin", |v| {
        v.len() == 11
            && matches!(v[0], b'A' | b'P')
            && digits::<9>(&v[1..10]).is_some()
            && v[10].is_ascii_uppercase()
    }),
    ("gh-tin", gh_tin),
    ("pk-cnic", |v| {
        v.len() == 13 && (b'1'..=b'7').contains(&v[0]) && !one_digit(v)
    }),
    ("lk-nic-old", |v| {
        v.len() == 10 && day_of_year(&v[2..5]) && matches!(v[9], b'V' | b'X')
    }),
    ("ir-nid", ir_nid),
    ("cn-uscc", cn_uscc),
    ("id-npwp", |v| match v.len() {
        15 => luhn(&v[..9]) && !one_digit(v),
        16 => v[0] == b'0' && luhn(&v[..10]),
        _ => false,
    }),
    ("vn-mst", |v| {
        digits::<10>(v.get(..10).unwrap_or_default())
            .is_some_and(|d| 10 - weighted(&d, &[31, 29, 23, 19, 17, 13, 7, 5, 3]) % 11 == d[9])
    }),
    ("passport-lone", passport_lone),
    ("za-company", za_company),
    ("eu-vat", super::vat::eu_vat),
    ("cy-tic", super::vat::cy_tic),
];

/// Numbers of passports that stand by themselves: letter and eight digits where a country's begin so (Korea, South
/// Africa, the United States), two letters and seven digits, or the letters of an Italian card.
fn passport_lone(v: &[u8]) -> bool {
    let letters = v.iter().take_while(|b| b.is_ascii_uppercase()).count();
    v.len() >= 9
        && (letters != 1 || b"ADEGMORST".contains(&v[0]) || super::passes("de-passport", v))
        && !one_digit(&v[letters..])
}

/// CIPC, South Africa: year, number, and the kind of company.
fn za_company(v: &[u8]) -> bool {
    let kind = v.get(10..).and_then(number);
    v.len() == 12
        && matches!(v.get(..4).and_then(number), Some(1890..=2050))
        && matches!(kind, Some(1..=31))
}

/// SUNAT: RUC, mod 11 with weights 5 to 2 and 7 to 2; kinds 10, 15, 16, 17 and 20.
fn pe_ruc(v: &[u8]) -> bool {
    digits::<11>(v).is_some_and(|d| {
        (11 - weighted(&d, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 10 == d[10]
            && matches!(&v[..2], b"10" | b"15" | b"16" | b"17" | b"20")
    })
}

/// RENIEC: the DNI with its check character, digit or letter of the same row.
fn pe_cui(v: &[u8]) -> bool {
    let Some(d) = digits::<8>(v.get(..8).unwrap_or_default()) else {
        return false;
    };
    let row = weighted(&d, &[3, 2, 7, 6, 5, 4, 3, 2]) as usize % 11;
    v.len() == 9
        && (v[8] == b"65432110987"[row] || v[8] == b"KJIHGFEDCBA"[row])
        && !one_digit(&v[..8])
}

/// SENIAT: RIF; the letter counts as 4 (V), 8 (E), 12 (J), 16 (P), 20 (G).
fn ve_rif(v: &[u8]) -> bool {
    let kind = match v.first() {
        Some(b'V') => 4,
        Some(b'E') => 8,
        Some(b'J' | b'C') => 12,
        Some(b'P') => 16,
        Some(b'G') => 20,
        _ => return false,
    };
    digits::<9>(v.get(1..).unwrap_or_default()).is_some_and(|d| {
        let sum = kind + weighted(&d, &[3, 2, 7, 6, 5, 4, 3, 2]);
        [0, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1][sum as usize % 11] == d[8]
    })
}

/// Sum of digits with weights 2, 3, 4... from the right.
fn rising(body: &[u8]) -> Option<u32> {
    body.iter().rev().zip(2..).try_fold(0, |sum, (b, w)| {
        b.is_ascii_digit().then(|| sum + u32::from(b - b'0') * w)
    })
}

/// SAT of Guatemala: NIT, mod 11, `K` for ten.
fn gt_nit(v: &[u8]) -> bool {
    let Some((last, body)) = v.split_last().filter(|(_, b)| (6..=9).contains(&b.len())) else {
        return false;
    };
    rising(body).is_some_and(|sum| b"0123456789K"[(11 - sum as usize % 11) % 11] == *last)
        && !one_digit(v)
}

/// DNIT of Paraguay: RUC, mod 11.
fn py_ruc(v: &[u8]) -> bool {
    let Some((last, body)) = v.split_last().filter(|(_, b)| (5..=8).contains(&b.len())) else {
        return false;
    };
    rising(body).is_some_and(|sum| (11 - sum % 11) % 11 % 10 == u32::from(last.wrapping_sub(b'0')))
        && !one_digit(v)
}

/// DGI of Uruguay: RUT, office 01 to 22, `001` before the check digit.
fn uy_rut(v: &[u8]) -> bool {
    digits::<12>(v).is_some_and(|d| {
        (11 - weighted(&d, &[4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11 == d[11]
            && (1..=22).contains(&(d[0] * 10 + d[1]))
            && &v[8..11] == b"001"
    })
}

/// Ministerio de Hacienda of El Salvador: NIT, old series up to 100, new ones after.
fn sv_nit(v: &[u8]) -> bool {
    digits::<14>(v).is_some_and(|d| {
        let check = if d[10] == 0 || v[10..13] == *b"100" {
            weighted(&d, &[14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11 % 10
        } else {
            (11 - weighted(&d, &[2, 7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10
        };
        check == d[13] && matches!(d[0], 0 | 1 | 9)
    })
}

/// AMA, "Validação de número de documento do cartão de cidadão": Luhn in base 36 over twelve characters.
fn pt_cc(v: &[u8]) -> bool {
    // The version of the document has letters (`ZZ4`), or it would be twelve digits of anything.
    let version = v
        .get(9..11)
        .is_some_and(|v| v.iter().any(u8::is_ascii_alphabetic));
    if v.len() != 12
        || !version
        || !v[..9].iter().all(u8::is_ascii_digit)
        || !v[11].is_ascii_digit()
    {
        return false;
    }
    let sum: u32 = v
        .iter()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let n = char::from(*b).to_digit(36).unwrap_or(0);
            let n = if i % 2 == 1 { n * 2 } else { n };
            if i % 2 == 1 && n > 9 { n - 9 } else { n }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Seguridad Social: province, eight digits, and the remainder of both by 97.
fn es_nss(v: &[u8]) -> bool {
    if digits::<12>(v).is_none() {
        return false;
    }
    let (province, serial) = (number(&v[..2]).unwrap_or(0), number(&v[2..10]).unwrap_or(0));
    let whole = if serial < 10_000_000 {
        province * 10_000_000 + serial
    } else {
        province * 100_000_000 + serial
    };
    Some(whole % 97) == number(&v[10..]) && (1..=66).contains(&province)
}

/// PMLP: personas kods; the old form is a birth date, the new one begins with 32.
fn lv_pk(v: &[u8]) -> bool {
    digits::<11>(v).is_some_and(|d| {
        let sum = weighted(&d, &[1, 6, 3, 7, 9, 10, 5, 8, 4, 2]);
        let dated = valid_md(u64::from(d[2] * 10 + d[3]), u64::from(d[0] * 10 + d[1])) && d[6] <= 2;
        (&v[..2] == b"32" || dated) && (1101 - sum) % 11 == d[10]
    })
}

/// GUS: REGON of 9 or 14 digits.
fn pl_regon(v: &[u8]) -> bool {
    let nine = digits::<9>(v.get(..9).unwrap_or_default())
        .is_some_and(|d| weighted(&d, &[8, 9, 2, 3, 4, 5, 6, 7]) % 11 % 10 == d[8]);
    let rest = v.len() == 9
        || digits::<14>(v).is_some_and(|d| {
            weighted(&d, &[2, 4, 8, 5, 0, 9, 7, 3, 6, 1, 2, 4, 8]) % 11 % 10 == d[13]
        });
    nine && rest && !one_digit(v)
}

/// MNS of Belarus: UNP, mod 11 with primes; people's begin with two letters of a set.
fn by_unp(v: &[u8]) -> bool {
    const WEIGHTS: [u32; 8] = [29, 23, 19, 17, 13, 7, 5, 3];
    if v.len() != 9 || !v[2..].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let second = match v[1] {
        b if b.is_ascii_digit() && v[0].is_ascii_digit() => Some(u32::from(b - b'0')),
        b => b"ABCEHKMOPT".iter().position(|c| *c == b).map(|n| n as u32),
    };
    let (Some(first), Some(second)) = (char::from(v[0]).to_digit(36), second) else {
        return false;
    };
    let tail: u32 = v[2..8]
        .iter()
        .zip(&WEIGHTS[2..])
        .map(|(b, w)| u32::from(b - b'0') * w)
        .sum();
    let sum = (first * WEIGHTS[0] + second * WEIGHTS[1] + tail) % 11;
    sum == u32::from(v[8] - b'0') && b"1234567ABCEHKM".contains(&v[0])
}

/// UJP of North Macedonia: EDB, mod 11.
fn mk_edb(v: &[u8]) -> bool {
    digits::<13>(v).is_some_and(|d| {
        (11 - weighted(&d, &[7, 6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10 == d[12]
            && matches!(d[0], 4 | 5 | 8)
    })
}

/// QKB of Albania: NIPT; decade letter, month with its offset, day, letter at the end.
fn al_nipt(v: &[u8]) -> bool {
    v.len() == 10
        && v[0].is_ascii_uppercase()
        && v[9].is_ascii_uppercase()
        && digits::<8>(&v[1..9]).is_some()
}

/// Derzhstat of Ukraine: EDRPOU, two rows of weights.
fn ua_edrpou(v: &[u8]) -> bool {
    digits::<8>(v).is_some_and(|d| {
        let mut weights = if (3..=5).contains(&d[0]) {
            [7, 1, 2, 3, 4, 5, 6]
        } else {
            [1, 2, 3, 4, 5, 6, 7]
        };
        let mut rest = weighted(&d, &weights) % 11;
        if rest == 10 {
            weights.iter_mut().for_each(|w| *w += 2);
            rest = weighted(&d, &weights) % 11 % 10;
        }
        rest == d[7] && !one_digit(v)
    })
}

/// FNS: OGRN of 13 digits by 11, OGRNIP of 15 by 13.
fn ru_ogrn(v: &[u8]) -> bool {
    let by = |n: u64| {
        let (body, last) = v.split_at(v.len() - 1);
        number(body).map(|b| b % n % 10) == number(last)
    };
    match v.len() {
        13 => v[0] != b'0' && by(11),
        15 => matches!(v[0], b'3' | b'4') && by(13),
        _ => false,
    }
}

/// GİB: VKN; each digit is shifted by its place and multiplied by a power of two, mod 9.
fn tr_vkn(v: &[u8]) -> bool {
    digits::<10>(v).is_some_and(|d| {
        let sum: u32 = (1..=9u32)
            .map(|i| {
                let c = (d[9 - i as usize] + i) % 10;
                if c == 0 {
                    0
                } else {
                    ((c << i) % 9).max(u32::from((c << i) % 9 == 0) * 9)
                }
            })
            .sum();
        (10 - sum % 10) % 10 == d[9] && !one_digit(v)
    })
}

/// DGI of Tunisia: matricule fiscal; seven digits, a letter, then VAT code, category and office.
fn tn_mf(v: &[u8]) -> bool {
    v.len() == 13
        && digits::<7>(&v[..7]).is_some()
        && b"ABCDEFGHJKLMNPQRSTVWXYZ".contains(&v[7])
        && b"APBFDN".contains(&v[8])
        && b"MPCNE".contains(&v[9])
        && digits::<3>(&v[10..]).is_some()
}

/// Civil status of Egypt: century, birth date, governorate.
fn eg_nid(v: &[u8]) -> bool {
    digits::<14>(v).is_some()
        && matches!(v[0], b'2' | b'3')
        && valid_ymd(&v[1..7])
        && number(&v[7..9]).is_some_and(|g| (1..=35).contains(&g) || g == 88)
}

/// GRA of Ghana: TIN, mod 11, `X` for ten.
fn gh_tin(v: &[u8]) -> bool {
    if v.len() != 11 || !b"PCGQV".contains(&v[0]) {
        return false;
    }
    digits::<9>(&v[1..10]).is_some_and(|d| {
        b"0123456789X"[weighted(&d, &[1, 2, 3, 4, 5, 6, 7, 8, 9]) as usize % 11] == v[10]
    })
}

fn day_of_year(v: &[u8]) -> bool {
    number(v).is_some_and(|n| (1..=366).contains(&n) || (501..=866).contains(&n))
}

/// National code of Iran: mod 11, remainders under two stand for themselves.
fn ir_nid(v: &[u8]) -> bool {
    digits::<10>(v).is_some_and(|d| {
        let rest = weighted(&d, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
        (if rest < 2 { rest } else { 11 - rest }) == d[9] && !one_digit(v)
    })
}

/// GB 32100-2015: unified social credit identifier, mod 31 over an alphabet without I, O, S, V, Z.
fn cn_uscc(v: &[u8]) -> bool {
    const ALPHABET: &[u8; 31] = b"0123456789ABCDEFGHJKLMNPQRTUWXY";
    const WEIGHTS: [usize; 17] = [
        1, 3, 9, 27, 19, 26, 16, 17, 20, 29, 25, 13, 8, 24, 10, 30, 28,
    ];
    let Some(values) = v
        .iter()
        .map(|b| ALPHABET.iter().position(|a| a == b))
        .collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    let sum: usize = values.iter().zip(WEIGHTS).map(|(n, w)| n * w).sum();
    v.len() == 18 && digits::<6>(&v[2..8]).is_some() && (31 - sum % 31) % 31 == values[17]
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    /// Numbers whose check digits were made by another implementation, python-stdnum.
    const RIGHT: &[(&str, &str)] = &[
        ("pe-ruc", "20902062492"),
        ("pe-ruc", "20496438877"),
        ("pe-cui", "31462648-1"),
        ("pe-cui", "11334650-2"),
        ("ve-rif", "J-68815507-9"),
        ("ve-rif", "J-75364655-7"),
        ("gt-nit", "69720903-2"),
        ("gt-nit", "20069163-5"),
        ("py-ruc", "80575935-2"),
        ("py-ruc", "80720493-5"),
        ("uy-rut", "214309380017"),
        ("uy-rut", "212796700016"),
        ("sv-nit", "0876-063907-111-5"),
        ("sv-nit", "0090-794419-171-8"),
        ("pt-cc", "49138922 8 ZZ3"),
        ("pt-cc", "17004882 7 ZZ5"),
        ("es-nss", "287750255274"),
        ("es-nss", "288963371630"),
        ("fr-siren", "30078034325761"),
        ("fr-siren", "31921503442584"),
        ("fr-siren", "927852137"),
        ("fr-siren", "951547108"),
        ("fr-spi-long", "3004947985221"),
        ("fr-spi-long", "3848513372165"),
        ("hu-ado", "8915967763"),
        ("hu-ado", "8688419035"),
        ("lv-pk", "220755-18507"),
        ("lv-pk", "150751-14195"),
        ("pl-regon", "403204647"),
        ("pl-regon", "515680097"),
        ("pl-regon", "80370308835903"),
        ("pl-regon", "01404437074552"),
        ("by-unp", "278987856"),
        ("by-unp", "146818225"),
        ("md-idno", "1929592227602"),
        ("md-idno", "1009796301857"),
        ("mk-edb", "4410203959433"),
        ("mk-edb", "4162736666949"),
        ("rs-pib", "530274717"),
        ("rs-pib", "006633873"),
        ("al-nipt", "J24012506F"),
        ("al-nipt", "J83072793O"),
        ("ua-edrpou", "36159464"),
        ("ua-edrpou", "52739631"),
        ("ru-ogrn", "1718754638150"),
        ("ru-ogrn", "1681602699436"),
        ("ru-ogrn", "333667833592005"),
        ("ru-ogrn", "384833513040362"),
        ("ru-inn-company", "7733398040"),
        ("ru-inn-company", "7784308710"),
        ("tr-vkn", "1846332032"),
        ("tr-vkn", "0655361034"),
        ("ma-ice", "008171715747474"),
        ("ma-ice", "003130847448055"),
        ("tn-mf", "4100155B/A/M/000"),
        ("tn-mf", "6593730B/A/M/000"),
        ("gh-tin", "C0065852990"),
        ("gh-tin", "C0085247375"),
        ("cn-uscc", "91110000Y1ULH93EGM"),
        ("cn-uscc", "91110000TKXGRK0JQH"),
        ("id-npwp", "18.575.380.3-617.000"),
        ("id-npwp", "66.274.579.3-490.000"),
        ("vn-mst", "1843891129"),
        ("vn-mst", "5937921859"),
    ];

    #[test]
    fn numbers_with_right_check_digits_pass() {
        let wrong: Vec<_> = RIGHT.iter().filter(|(c, v)| !passes(c, v)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn one_digit_off_fails() {
        // Shape alone, or check digits that do not stand last.
        for (check, value) in RIGHT
            .iter()
            .filter(|(c, _)| !["al-nipt", "tn-mf", "id-npwp", "gh-tin"].contains(c))
        {
            let last = value.rfind(|c: char| c.is_ascii_digit()).unwrap();
            let digit = value.as_bytes()[last];
            let other = if digit == b'9' {
                '0'
            } else {
                char::from(digit + 1)
            };
            let near = format!("{}{other}{}", &value[..last], &value[last + 1..]);
            assert!(!passes(check, &near), "{check} {near} beside {value}");
        }
    }
}
