//! Values that must not get through, and the search for them in everything that was written.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::search::Search;

/// A made-up secret that looks real to the last check digit. Each one is different, so that a find can be told
/// from another test's.
#[derive(Debug, Clone)]
pub struct Canary {
    value: String,
}

impl Canary {
    /// A GitHub token (classic), its checksum right.
    pub fn github() -> Self {
        let body = base62(30);
        Self {
            value: format!("gh{}_{body}{}", 'p', crc_base62(&body)),
        }
    }

    /// The same with this word somewhere inside.
    pub fn github_holding(word: &str) -> Self {
        let mut body = base62(30);
        body.replace_range(12..12 + word.len(), word);
        Self {
            value: format!("gh{}_{body}{}", 'p', crc_base62(&body)),
        }
    }

    /// An AWS access key id.
    pub fn aws() -> Self {
        const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let tail: String = random_bytes(16)
            .iter()
            .map(|b| BASE32[usize::from(b % 32)] as char)
            .collect();
        Self {
            value: format!("AK{}{tail}", "IA"),
        }
    }

    /// A Stripe live key.
    pub fn stripe() -> Self {
        Self {
            value: format!("sk_{}_{}", "live", base62(24)),
        }
    }

    /// A card number, its check digit right: PII.
    pub fn card() -> Self {
        let mut digits = vec![4];
        digits.extend(random_bytes(14).iter().map(|b| b % 10));
        let sum: u32 = digits
            .iter()
            .rev()
            .enumerate()
            .map(|(i, d)| {
                let d = u32::from(*d);
                if i % 2 == 0 {
                    d * 2 / 10 + d * 2 % 10
                } else {
                    d
                }
            })
            .sum();
        digits.push(u8::try_from((10 - sum % 10) % 10).expect("one digit"));
        Self {
            value: digits.iter().map(|d| char::from(b'0' + d)).collect(),
        }
    }

    /// The value itself.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The value in base64.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.value)
    }

    /// The value in lower-case hex.
    pub fn hex(&self) -> String {
        self.value.bytes().map(|b| format!("{b:02x}")).collect()
    }

    /// What the value looks like wherever it was written, and what each form is called.
    pub fn forms(&self) -> Vec<(&'static str, Vec<u8>)> {
        let bytes = self.value.as_bytes();
        let mut forms = vec![
            ("plain", bytes.to_vec()),
            ("reversed", bytes.iter().rev().copied().collect()),
            ("hex", self.hex().into_bytes()),
            ("hex", self.hex().to_uppercase().into_bytes()),
        ];
        // Base64 of a text that holds the value looks different for each of three alignments. The characters at
        // both ends mix with the neighbours and are left out.
        for shift in 0..3 {
            let mut padded = vec![0; shift];
            padded.extend_from_slice(bytes);
            let coded = STANDARD_NO_PAD.encode(&padded);
            let inner = &coded[(shift * 8).div_ceil(6)..coded.len() - 1];
            forms.push(("base64", inner.as_bytes().to_vec()));
            let url_safe = inner.replace('+', "-").replace('/', "_");
            forms.push(("base64", url_safe.into_bytes()));
        }
        forms
    }

    /// In which form the value stands in these bytes, if it does.
    pub fn found_in(&self, bytes: &[u8]) -> Option<&'static str> {
        let search = Search::new(std::slice::from_ref(self));
        search.bytes("", bytes).first().map(|found| found.form)
    }

    /// Where under `dir` the value was written, if it was.
    pub fn found_under(&self, dir: &Path) -> Option<String> {
        let seen = Search::new(std::slice::from_ref(self)).tree(dir);
        seen.found.first().map(ToString::to_string)
    }
}

/// A key in the form that `weir key new` prints, and what the configuration stores of it.
pub fn api_key() -> (String, String) {
    use sha2::{Digest, Sha256};
    let body = format!("weir_{}", base62(27));
    let key = format!("{body}{}", crc_base62(&body));
    let hash = Sha256::digest(key.as_bytes())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect::<String>();
    (key, format!("sha256:{hash}"))
}

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn crc_base62(body: &str) -> String {
    let mut crc = crc32fast::hash(body.as_bytes());
    let mut sum = [b'0'; 6];
    for digit in sum.iter_mut().rev() {
        *digit = BASE62[(crc % 62) as usize];
        crc /= 62;
    }
    String::from_utf8_lossy(&sum).into_owned()
}

fn base62(len: usize) -> String {
    random_bytes(len)
        .iter()
        .map(|b| BASE62[usize::from(b % 62)] as char)
        .collect()
}

/// Different in every call, process and thread; quality does not matter here.
fn random_bytes(len: usize) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_nanos();
    let seed = format!(
        "{now} {} {}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let mut out = Sha256::digest(seed.as_bytes()).to_vec();
    out.truncate(len);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_in_every_form() {
        for canary in [
            Canary::github(),
            Canary::aws(),
            Canary::stripe(),
            Canary::card(),
        ] {
            let v = canary.value();
            for (text, form) in [
                (format!("x{v}y"), "plain"),
                (STANDARD.encode(v), "base64"),
                (STANDARD.encode(format!("a{v}")), "base64"),
                (STANDARD.encode(format!("ab{v}cd")), "base64"),
                (canary.hex().to_uppercase(), "hex"),
                (v.chars().rev().collect(), "reversed"),
            ] {
                assert_eq!(canary.found_in(text.as_bytes()), Some(form), "{text}");
            }
            assert_eq!(canary.found_in(b"nothing here"), None);
        }
    }

    #[test]
    fn a_github_canary_has_its_checksum() {
        let token = Canary::github();
        assert_eq!(token.value().len(), 40);
        assert_ne!(token.value(), Canary::github().value());
    }
}
