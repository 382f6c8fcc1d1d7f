//! Mobile numbers as their countries group them, after the national numbering plans (ITU-T E.164, national plans). A group of
//! digits is believed only in a form that one of these countries writes: `9` is any digit.

/// Its form, and what its first digits may be.
const FORMS: &[(&str, &[&str])] = &[
    // The Netherlands, Germany, Sweden.
    (
        "99-99999999",
        &[
            "06-1", "06-21", "06-22", "06-23", "06-24", "06-25", "06-26", "06-27", "06-28",
            "06-29", "06-3", "06-4", "06-5", "06-8",
        ],
    ),
    ("9999/99999999", &["015", "016", "017"]),
    ("9999/9999999", &["015", "016", "017"]),
    ("9999-999 99 99", &["015", "016", "017"]),
    ("999-999 99 99", &["070", "072", "073", "076", "079"]),
    // Taiwan, Pakistan.
    ("9999-999-999", &["09"]),
    ("9999-9999999", &["030", "031", "032", "033", "034"]),
    // Switzerland, Vietnam, South Africa.
    ("999 999 99 99", &["075", "076", "077", "078", "079"]),
    ("9999 999 999", &["05", "07", "09"]),
    ("999 999 9999", &["06", "07", "08"]),
];

/// Takes the value as it stands.
pub(super) fn mobile_form(value: &[u8]) -> bool {
    let of_form = |form: &str| {
        form.len() == value.len()
            && form.bytes().zip(value).all(|(form, b)| match form {
                b'9' => b.is_ascii_digit(),
                sign => sign == *b,
            })
    };
    let known = FORMS.iter().find(|(form, _)| of_form(form));
    let digits = || value.iter().filter(|b| b.is_ascii_digit());
    let kinds = (b'0'..=b'9').filter(|d| digits().any(|b| b == d)).count();
    known.is_some_and(|(_, heads)| heads.iter().any(|head| value.starts_with(head.as_bytes())))
        && kinds >= 4
        // `0171/2024001`: the seventeenth of a year is no number.
        && !value[value.len() - 7..].starts_with(b"202")
}

#[cfg(test)]
mod tests {
    use super::mobile_form;

    #[test]
    fn only_forms_of_countries_are_mobile_numbers() {
        for (value, is) in [
            ("06-27221100", true),
            ("0172/93092869", true),
            ("073-645 34 53", true),
            ("0943-391-022", true),
            ("0325-3118813", true),
            ("076 747 26 08", true),
            ("06-20240115", false),
            ("16-27221100", false),
            ("0172/9309286", true),
            ("0272/9309286", false),
            ("06-00000000", false),
            ("06 63 05 81", false),
            ("06-2722-1100", false),
        ] {
            assert_eq!(mobile_form(value.as_bytes()), is, "{value}");
        }
    }
}
