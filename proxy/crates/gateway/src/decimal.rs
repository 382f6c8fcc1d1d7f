//! JSON numbers, compared as what they are.

/// Whether two JSON numbers are the same one, digit by digit: no two that differ look alike for having too many.
pub(crate) fn same_number(argument: Option<&str>, header: &str) -> bool {
    let decimal = argument.and_then(Decimal::parse);
    decimal.is_some_and(|argument| Decimal::parse(header) == Some(argument))
}

/// A decimal number, written in the one way that has no needless zeros: `0.digits * 10^exponent`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Reads a JSON number (RFC 8259, section 6) and nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (rest, None),
        };
        let exponent: i64 = match exponent {
            Some(exponent) => exponent.parse().ok()?,
            None => 0,
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !all_digits(whole) || leading_zero || fraction.is_some_and(|f| !all_digits(f)) {
            return None;
        }
        let mut digits: Vec<u8> = whole
            .bytes()
            .chain(fraction.unwrap_or("").bytes())
            .collect();
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        if zeros == digits.len() {
            // Minus nothing is nothing.
            return Some(Self {
                negative: false,
                digits: Vec::new(),
                exponent: 0,
            });
        }
        let exponent = exponent.checked_add(whole.len() as i64 - zeros as i64)?;
        digits.drain(..zeros);
        let kept = digits.iter().rposition(|digit| *digit != b'0')? + 1;
        digits.truncate(kept);
        Some(Self {
            negative,
            digits,
            exponent,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_only_digit_by_digit() {
        let cases = [
            ("1", "1", true),
            ("1", "1.0", true),
            ("100", "1e2", true),
            ("1e+2", "100.00", true),
            ("0.001", "1E-3", true),
            ("-0", "0", true),
            ("-5", "-5.0", true),
            ("-5", "5", false),
            ("1", "10", false),
            ("9007199254740992", "9007199254740993", false),
            ("9007199254740993", "9007199254740993", true),
            ("12345678901234567890123", "12345678901234567890124", false),
            ("0.1", "0.10000000000000000001", false),
            ("1e400", "1e401", false),
            ("1", "", false),
            ("1", "+1", false),
            ("1", "01", false),
            ("1", "1.", false),
            ("1", "1e", false),
            ("1", "0x1", false),
            ("1", " 1", false),
            ("1", "1e99999999999999999999", false),
            ("0", "inf", false),
        ];
        for (argument, header, same) in cases {
            assert_eq!(
                same_number(Some(argument), header),
                same,
                "{argument} {header}"
            );
        }
        assert!(!same_number(None, "1"));
    }
}
