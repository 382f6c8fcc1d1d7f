//! The sums that check digits are made of.

/// The digit a byte stands for.
pub(crate) fn digit(b: u8) -> Option<u32> {
    b.is_ascii_digit().then(|| u32::from(b - b'0'))
}

/// All bytes as digits, if all are and there are `N`.
pub(crate) fn digits<const N: usize>(value: &[u8]) -> Option<[u32; N]> {
    if value.len() != N {
        return None;
    }
    let mut out = [0; N];
    for (o, b) in out.iter_mut().zip(value) {
        *o = digit(*b)?;
    }
    Some(out)
}

/// The number that digits write.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value
        .iter()
        .try_fold(0, |n, b| Some(n * 10 + u64::from(digit(*b)?)))
}

/// Sum of digit times weight, over the shorter of the two.
pub(crate) fn weighted(d: &[u32], weights: &[u32]) -> u32 {
    d.iter().zip(weights).map(|(d, w)| d * w).sum()
}

/// Luhn, ISO/IEC 7812-1 annex B, last digit the check digit.
pub(crate) fn luhn(value: &[u8]) -> bool {
    let mut sum = 0;
    for (i, b) in value.iter().rev().enumerate() {
        let Some(d) = digit(*b) else { return false };
        let d = if i % 2 == 1 { d * 2 } else { d };
        sum += if d > 9 { d - 9 } else { d };
    }
    value.len() > 1 && sum % 10 == 0
}

/// ISO 7064 MOD 11,10 over digits, last digit the check digit.
pub(crate) fn mod11_10(value: &[u8]) -> bool {
    let Some((last, body)) = value.split_last() else {
        return false;
    };
    let mut product = 10;
    for b in body {
        let Some(d) = digit(*b) else { return false };
        let sum = (d + product) % 10;
        product = (if sum == 0 { 10 } else { sum }) * 2 % 11;
    }
    digit(*last) == Some((11 - product) % 10)
}

/// Verhoeff's dihedral-group check digit (1969), as UIDAI uses it.
pub(crate) fn verhoeff(value: &[u8]) -> bool {
    const D: [[u8; 10]; 10] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
        [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
        [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
        [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
        [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
        [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
        [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
        [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    ];
    const P: [[u8; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
    let mut c = 0usize;
    for (i, b) in value.iter().rev().enumerate() {
        let Some(d) = digit(*b) else { return false };
        c = usize::from(D[c][usize::from(P[i % 8][d as usize])]);
    }
    c == 0
}

/// The remainder of a number written in digits and letters (A = 10), as ISO 7064 MOD 97-10 reads it.
pub(crate) fn mod97(value: impl Iterator<Item = u8>) -> Option<u32> {
    let mut rest = 0;
    for b in value {
        let d = char::from(b).to_digit(36)?;
        rest = if d > 9 {
            (rest * 100 + d) % 97
        } else {
            (rest * 10 + d) % 97
        };
    }
    Some(rest)
}

/// All the same digit: made up, never issued.
pub(crate) fn one_digit(value: &[u8]) -> bool {
    value.windows(2).all(|w| w[0] == w[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_their_standards() {
        assert!(luhn(b"79927398713") && !luhn(b"79927398710"));
        assert!(verhoeff(b"2363") && !verhoeff(b"2364"));
        assert!(mod11_10(b"86095742719") && !mod11_10(b"86095742718"));
        assert_eq!(
            mod97(b"3214282912345698765432161182".iter().copied()),
            Some(1)
        );
        assert!(one_digit(b"1111") && !one_digit(b"1112"));
    }
}
