//! VAT numbers of the European Union and its neighbours: two letters of the state, then its own number.

use super::passes;
use super::sums::{digits, luhn, mod11_10, number, one_digit, weighted};

/// Council Directive 2006/112/EC, VIES: each member state's own sum where it publishes one.
pub(super) fn eu_vat(v: &[u8]) -> bool {
    let (Some(state), Some(body)) = (v.get(..2), v.get(2..)) else {
        return false;
    };
    let all = |n: usize| body.len() == n && body.iter().all(u8::is_ascii_digit) && !one_digit(body);
    let sum8 = |weights: &[u32], m: u32| {
        digits::<8>(body)
            .is_some_and(|d| weighted(&d, weights).is_multiple_of(m) && !one_digit(body))
    };
    match state {
        b"DE" | b"HR" => matches!(body.len(), 9 | 11) && mod11_10(body),
        b"AT" => body.first() == Some(&b'U') && body.len() == 9 && at_uid(&body[1..]),
        b"BE" => {
            all(10)
                && number(&body[..8])
                    .zip(number(&body[8..]))
                    .is_some_and(|(n, c)| 97 - n % 97 == c)
        }
        b"BG" => all(9) || all(10),
        b"CY" => body.len() == 9 && cy_tic(body),
        b"CZ" => all(8) || all(9) || all(10),
        b"DK" => sum8(&[2, 7, 6, 5, 4, 3, 2, 1], 11),
        b"EE" => digits::<9>(body)
            .is_some_and(|d| weighted(&d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10)),
        b"EL" | b"GR" => passes("gr-afm", body),
        b"ES" => passes("es-cif", body) || passes("es-dni", body),
        b"FI" => sum8(&[7, 9, 10, 5, 8, 4, 2, 1], 11),
        b"FR" => body.len() == 11 && luhn(&body[2..]),
        b"HU" => digits::<8>(body)
            .is_some_and(|d| (10 - weighted(&d, &[9, 7, 3, 1, 9, 7, 3]) % 10) % 10 == d[7]),
        b"IE" => matches!(body.len(), 8 | 9) && body[1..7].iter().all(u8::is_ascii_digit),
        b"IT" => passes("it-vat", body),
        b"LT" => all(9) || all(12),
        b"LU" => all(8) && number(&body[..6]).map(|n| n % 89) == number(&body[6..]),
        b"LV" => all(11),
        b"MT" => digits::<8>(body)
            .is_some_and(|d| weighted(&d, &[3, 4, 6, 7, 8, 9, 10, 1]).is_multiple_of(37)),
        b"NL" => body.len() == 12 && body[9] == b'B' && digits::<9>(&body[..9]).is_some(),
        b"PL" => passes("pl-nip", body),
        b"PT" => passes("pt-nif", body),
        b"RO" => (2..=10).contains(&body.len()) && ro_cui(body),
        b"SE" => body.len() == 12 && luhn(&body[..10]),
        b"SI" => digits::<8>(body)
            .is_some_and(|d| (11 - weighted(&d, &[8, 7, 6, 5, 4, 3, 2]) % 11) % 11 % 10 == d[7]),
        b"SK" => all(10) && number(body).is_some_and(|n| n % 11 == 0),
        b"GB" | b"XI" => all(9) || all(12),
        _ => false,
    }
}

/// BMF: UID, Luhn with 4 added to the sum.
fn at_uid(body: &[u8]) -> bool {
    digits::<8>(body).is_some_and(|d| {
        let sum: u32 = d[..7]
            .iter()
            .enumerate()
            .map(|(i, n)| {
                if i % 2 == 1 {
                    n * 2 / 10 + n * 2 % 10
                } else {
                    *n
                }
            })
            .sum();
        (10 - (sum + 4) % 10) % 10 == d[7]
    })
}

/// Tax Department of Cyprus: odd places through a table, letter of the sum by 26.
pub(super) fn cy_tic(v: &[u8]) -> bool {
    const ODD: [u32; 10] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21];
    digits::<8>(v.get(..8).unwrap_or_default()).is_some_and(|d| {
        let sum: u32 = d
            .iter()
            .enumerate()
            .map(|(i, n)| if i % 2 == 0 { ODD[*n as usize] } else { *n })
            .sum();
        v.len() == 9 && u32::from(v[8].wrapping_sub(b'A')) == sum % 26
    })
}

/// ANAF: CUI, weights 753217532 aligned to the right, times ten, mod 11.
fn ro_cui(v: &[u8]) -> bool {
    let Some((last, body)) = v.split_last() else {
        return false;
    };
    let sum: u32 = body
        .iter()
        .rev()
        .zip([2u32, 3, 5, 7, 1, 2, 3, 5, 7])
        .map(|(b, w)| u32::from(b.wrapping_sub(b'0')) * w)
        .sum();
    v.iter().all(u8::is_ascii_digit) && sum * 10 % 11 % 10 == u32::from(last - b'0')
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    /// Numbers whose check digits were made by another implementation, python-stdnum.
    const RIGHT: &[(&str, &str)] = &[
        ("eu-vat", "DE986502165"),
        ("eu-vat", "DE996794224"),
        ("eu-vat", "ATU23486706"),
        ("eu-vat", "ATU39011635"),
        ("eu-vat", "BE0725322052"),
        ("eu-vat", "BE0741539561"),
        ("eu-vat", "CY59106603V"),
        ("eu-vat", "CY87977846Q"),
        ("eu-vat", "DK59493051"),
        ("eu-vat", "DK28538847"),
        ("eu-vat", "EE114347358"),
        ("eu-vat", "EE105006543"),
        ("eu-vat", "EL231339361"),
        ("eu-vat", "EL611730593"),
        ("eu-vat", "ESB68054196"),
        ("eu-vat", "ESB31043946"),
        ("eu-vat", "FI78419426"),
        ("eu-vat", "FI90999478"),
        ("eu-vat", "FR63794619361"),
        ("eu-vat", "FR36139540231"),
        ("eu-vat", "HU64074610"),
        ("eu-vat", "HU17626558"),
        ("eu-vat", "IT46496851216"),
        ("eu-vat", "IT34298790659"),
        ("eu-vat", "LU56176384"),
        ("eu-vat", "LU80121537"),
        ("eu-vat", "MT94110018"),
        ("eu-vat", "MT50651182"),
        ("eu-vat", "NL849835240B18"),
        ("eu-vat", "NL079198497B58"),
        ("eu-vat", "PL0765464218"),
        ("eu-vat", "PL6887497015"),
        ("eu-vat", "PT936154233"),
        ("eu-vat", "RO85077887"),
        ("eu-vat", "RO43938809"),
        ("eu-vat", "SE883365999101"),
        ("eu-vat", "SE797162865101"),
        ("eu-vat", "SI54161401"),
        ("eu-vat", "SI49882007"),
        ("eu-vat", "SK2584298178"),
        ("eu-vat", "SK3090515945"),
        ("eu-vat", "HR69404695751"),
        ("eu-vat", "HR16613170212"),
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
            .filter(|(_, v)| !["NL", "SE"].contains(&&v[..2]))
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
