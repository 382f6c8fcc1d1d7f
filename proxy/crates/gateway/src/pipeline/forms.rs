//! What stands in the place of a redacted value.
//!
//! Each form has a length below which it would give the value away; such a value gets the placeholder, and so does
//! one that lay under an encoding, since the text in its place is not the value. Forms that are the same for equal
//! values are keyed with the tenant's key: nobody else's equal value becomes equal, and without the key the value
//! cannot be tried out.

use dlp_scan::Finding;
use domain::RedactForm;

/// Shortest value, in characters, of which the last four may stay: two thirds and more are gone.
const KEEP_CHARS_MIN: usize = 12;
/// Fewest letters and digits to be exchanged: fewer have too few other forms.
const PRESERVE_CHARS_MIN: usize = 6;
/// Longest value that is exchanged character by character.
const PRESERVE_BYTES_MAX: usize = 4096;

/// The key of one tenant's forms. Shown nowhere.
#[derive(Clone)]
pub(crate) struct FormKey([u8; 32]);

impl std::fmt::Debug for FormKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FormKey(..)")
    }
}

impl FormKey {
    /// The tenant's own, out of the process's.
    pub(super) fn of_tenant(process_key: &[u8; 32], tenant: &str) -> Self {
        let mut hasher = blake3::Hasher::new_keyed(process_key);
        hasher.update(b"weir redaction form\0");
        hasher.update(tenant.as_bytes());
        Self(*hasher.finalize().as_bytes())
    }

    fn stream(&self, of: &[u8], round: u8) -> blake3::OutputReader {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&[round]);
        hasher.update(of);
        hasher.finalize_xof()
    }
}

/// The text in the place of a value, and whether it may look like a value of its own to a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub text: String,
    /// Made up by us in the value's own format: a rule that finds it finds nothing real.
    pub made_up: bool,
}

/// What replaces `value`, which `finding` is about, as far as its form can hold.
pub(super) fn replacement(
    form: RedactForm,
    value: &str,
    finding: &Finding,
    rule: &str,
    key: &FormKey,
) -> Replacement {
    let plain = finding.layers.is_empty();
    let text = match form {
        RedactForm::KeepLast4 if plain => keep_last4(value),
        RedactForm::FormatPreserving if plain => {
            if let Some(text) = preserve(value, key) {
                return Replacement {
                    text,
                    made_up: true,
                };
            }
            None
        }
        // The fingerprint is of the decoded value, so this form works under encodings, too.
        RedactForm::Hash => Some(hash(finding, rule, key)),
        _ => None,
    };
    Replacement {
        text: text.unwrap_or_else(|| placeholder(rule)),
        made_up: false,
    }
}

/// No rule matches it; the rules' own tests see to that.
pub(super) fn placeholder(rule: &str) -> String {
    format!("[REDACTED:{rule}]")
}

fn hash(finding: &Finding, rule: &str, key: &FormKey) -> String {
    let mut bytes = [0; 8];
    key.stream(finding.fingerprint.as_bytes(), 0xFF)
        .fill(&mut bytes);
    format!("[HASH:{rule}:{:016x}]", u64::from_be_bytes(bytes))
}

/// As many stars for every length: how long the value was stays unsaid.
fn keep_last4(value: &str) -> Option<String> {
    let count = value.chars().count();
    let last: String = value.chars().skip(count.checked_sub(4)?).collect();
    (count >= KEEP_CHARS_MIN && last.chars().all(|c| c.is_ascii_alphanumeric()))
        .then(|| format!("****{last}"))
}

/// Each digit becomes a digit, each letter a letter of its case; the rest stays.
fn preserve(value: &str, key: &FormKey) -> Option<String> {
    let exchanged = value.bytes().filter(u8::is_ascii_alphanumeric).count();
    if exchanged < PRESERVE_CHARS_MIN || value.len() > PRESERVE_BYTES_MAX {
        return None;
    }
    // Letters and digits of other scripts would stay as they are.
    if value.chars().any(|c| !c.is_ascii() && c.is_alphanumeric()) {
        return None;
    }
    // One in a million and less comes out as it went in.
    (0..8)
        .map(|round| exchange(value, key, round))
        .find(|text| text != value)
}

fn exchange(value: &str, key: &FormKey, round: u8) -> String {
    let mut stream = key.stream(value.as_bytes(), round);
    let mut pick = |count: u16, first: u8| {
        let mut bytes = [0; 2];
        stream.fill(&mut bytes);
        // 16 bits for at most 26 outcomes: none is more likely than another by more than 1 in 2000.
        let nth = u16::from_le_bytes(bytes) % count;
        char::from(first + u8::try_from(nth).unwrap_or(0))
    };
    value
        .chars()
        .map(|c| match c {
            '0'..='9' => pick(10, b'0'),
            'a'..='z' => pick(26, b'a'),
            'A'..='Z' => pick(26, b'A'),
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dlp_scan::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

    fn key(tenant: &str) -> FormKey {
        FormKey::of_tenant(&[3; 32], tenant)
    }

    /// A finding to hang a value on: plain, or under an encoding.
    fn finding(encoded: bool) -> Finding {
        let text = match encoded {
            false => "ana@mailbox.org".to_owned(),
            true => "ana@mailbox.org"
                .bytes()
                .map(|b| format!("%{b:02x}"))
                .collect(),
        };
        let leaf = LeafInput {
            text: &text,
            kind: LeafKind::String,
            name: None,
        };
        let mut scanner = Scanner::new(FingerprintKey::new([1; 32]));
        let found = scanner.scan(RuleSet::builtin(), [leaf].into_iter(), &Budget::default());
        assert_eq!(found.findings[0].layers.is_empty(), !encoded);
        found.findings[0]
    }

    fn made(form: RedactForm, value: &str) -> String {
        replacement(form, value, &finding(false), "r", &key("a")).text
    }

    #[test]
    fn the_last_four_stay_of_long_values_only() {
        for (value, expected) in [
            ("4111 1111 1111 1234", "****1234"),
            ("abcdefgh1234", "****1234"),
            ("abcdefg1234", "[REDACTED:r]"),
            ("1234", "[REDACTED:r]"),
            ("", "[REDACTED:r]"),
            ("a secret with end!", "[REDACTED:r]"),
            ("ääääääääääää", "[REDACTED:r]"),
            ("äääääääääää1234", "****1234"),
        ] {
            assert_eq!(made(RedactForm::KeepLast4, value), expected, "{value}");
        }
    }

    #[test]
    fn a_format_is_kept_and_nothing_else() {
        for value in [
            "4111-1111-1111-1234",
            "ana.lindqvist@mailbox.org",
            "AKIAQ3EGRX7ZKTWM4LHB",
            "+49 30 901820",
            "\"quoted\\value\"\n123",
        ] {
            let text = made(RedactForm::FormatPreserving, value);
            assert_eq!(text.len(), value.len());
            assert_ne!(text, value);
            for (a, b) in value.chars().zip(text.chars()) {
                assert_eq!(a.is_ascii_digit(), b.is_ascii_digit(), "{value} {text}");
                assert_eq!(a.is_ascii_lowercase(), b.is_ascii_lowercase());
                assert_eq!(a.is_ascii_uppercase(), b.is_ascii_uppercase());
                assert!(a.is_ascii_alphanumeric() || a == b);
            }
            // Equal for a tenant, and for nobody else.
            assert_eq!(made(RedactForm::FormatPreserving, value), text);
            let other = replacement(
                RedactForm::FormatPreserving,
                value,
                &finding(false),
                "r",
                &key("b"),
            );
            assert!(other.made_up && other.text != text);
        }
        let long = "x".repeat(PRESERVE_BYTES_MAX + 1);
        for value in ["", "12345", "a-1-b-2", "Ångström", "١٢٣٤٥٦٧٨", &long] {
            assert_eq!(
                made(RedactForm::FormatPreserving, value),
                "[REDACTED:r]",
                "{value}"
            );
        }
    }

    /// Every short value of a kind: none comes out as it went in.
    #[test]
    fn no_short_value_leaks() {
        for n in 0..20_000 {
            let value = format!("{n:06}");
            for form in [
                RedactForm::KeepLast4,
                RedactForm::FormatPreserving,
                RedactForm::Hash,
                RedactForm::Placeholder,
            ] {
                assert!(!made(form, &value).contains(&value), "{form:?} {value}");
            }
        }
    }

    #[test]
    fn encoded_values_get_the_placeholder_or_the_hash_of_what_they_are() {
        let value = "%61%6e%61%40%6d";
        for (form, begins) in [
            (RedactForm::KeepLast4, "[REDACTED:r]"),
            (RedactForm::FormatPreserving, "[REDACTED:r]"),
            (RedactForm::Placeholder, "[REDACTED:r]"),
            (RedactForm::Hash, "[HASH:r:"),
        ] {
            let text = replacement(form, value, &finding(true), "r", &key("a")).text;
            assert!(text.starts_with(begins), "{form:?} {text}");
        }
        let plain = made(RedactForm::Hash, "ana@mailbox.org");
        let encoded = replacement(RedactForm::Hash, value, &finding(true), "r", &key("a")).text;
        assert_eq!(plain, encoded);
        assert_eq!(plain.len(), "[HASH:r:0123456789abcdef]".len());
        let other = replacement(RedactForm::Hash, value, &finding(true), "r", &key("b")).text;
        assert_ne!(plain, other);
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{:?}", key("a")), "FormKey(..)");
    }
}
