//! Structure of secrets. These take the value as it stands.

use smallvec::SmallVec;

use super::Table;

pub(crate) const CHECKS: Table = &[
    ("github-crc", github_crc),
    ("jwt", jwt),
    ("base64-user-pass", base64_user_pass),
    ("aws-key-id", aws_key_id),
    ("base64-json", base64_json),
    ("base64-text", base64_text),
    ("bip39", mnemonic),
    ("base58check", base58check),
    ("bech32", bech32),
    ("mixed", mixed),
    ("not-negated", not_negated),
    ("not-advice", not_advice),
    // "Никому не сообщайте код из SMS" keeps somebody's own to himself.
    ("not-own-code", |v| {
        let text = String::from_utf8_lossy(v).to_lowercase();
        let last = text.split_whitespace().next_back().unwrap_or_default();
        let last = last.trim_start_matches("смс-").trim_start_matches("sms-");
        const OWN: [&str; 14] = [
            "код",
            "парол",
            "пин",
            "пін",
            "cvv",
            "cvc",
            "pin",
            "password",
            "passcode",
            "passphrase",
            "phrase",
            "otp",
            "code",
            "secret",
        ];
        !OWN.iter().any(|own| last.starts_with(own))
    }),
    // `命令行`, `命令配方`, `命令参数`: the line, recipe or arguments of a command for a shell.
    ("not-shell-command", |v| {
        let text = String::from_utf8_lossy(v);
        let behind = text.rsplit_once("命令").map_or("", |(_, behind)| behind);
        behind.is_empty() || behind.chars().count() > 2
    }),
    // `override one or more safety rules`: an order to a model means its own, and all of them.
    ("not-some", |v| {
        let lower = v.to_ascii_lowercase();
        !SOME
            .iter()
            .any(|w| memchr::memmem::find(&lower, w).is_some())
    }),
    // A tool's handle of a session is mostly one; what a browser keeps hardly ever is.
    ("not-uuid", |v| !crate::value::is_uuid(v)),
    // "Variables of the environment override all of the above", "later lines override earlier rules": which of several settings holds.
    ("not-settings", |v| {
        let lower = v.to_ascii_lowercase();
        let mut words = lower.split(u8::is_ascii_whitespace);
        let told = words.nth(1).is_some_and(|w| w.starts_with(b"overrid"))
            && !lower.starts_with(b"overrid");
        !(told || lower.starts_with(b"overrid") && lower.ends_with(b" above"))
    }),
    ("not-issue", not_issue),
    // `"password": "비밀번호"`: what a form calls its field.
    ("not-label", |v| {
        crate::names::promise(v) < crate::names::Promise::Password
    }),
    ("not-filler", not_filler),
    ("bitlocker", bitlocker),
    ("password-like", |v| {
        crate::value::judge(v, crate::names::Promise::Password, false).is_some()
    }),
    // What stands behind a flag for a password is a literal, whatever it looks like.
    ("given-password", |v| {
        crate::value::judge(v, crate::names::Promise::Password, true).is_some()
    }),
    ("told-password", crate::value::is_told),
    ("passphrase", |v| crate::value::is_passphrase(v, true)),
    ("told-or-made", |v| {
        let told = crate::value::judge(v, crate::names::Promise::Password, false).is_some();
        let chosen = crate::value::is_listed(v, 4) || crate::value::is_joined_by_sign(v);
        told && (v.iter().any(u8::is_ascii_digit) || chosen)
    }),
    ("told-or-drawn", |v| {
        crate::value::is_told(v)
            || crate::value::judge(v, crate::names::Promise::Strong, false).is_some()
    }),
    ("digit-or-chosen", |v| {
        v.iter().any(u8::is_ascii_digit)
            || crate::value::judge(v, crate::names::Promise::Password, true).is_some()
    }),
    ("typed", typed),
    ("mobile-form", super::mobiles::mobile_form),
    ("recovery-words", |v| {
        let words = v.split(|b| !b.is_ascii_lowercase());
        let mut words = words.filter(|word| !word.is_empty());
        words.all(crate::detect::is_listed_word)
    }),
    ("verhoeff", |v| {
        let digits: Vec<u8> = v.iter().copied().filter(u8::is_ascii_digit).collect();
        super::sums::verhoeff(&digits)
    }),
    ("generated", |v| {
        crate::value::judge(v, crate::names::Promise::Strong, false).is_some()
    }),
    ("phone-trunk-or-abroad", trunk_or_abroad),
    ("day-of-life", super::dates::day_of_life),
    ("yyyymmdd", super::dates::compact_day_of_life),
    ("hex-only", |v| {
        v.iter()
            .filter(|b| b.is_ascii_alphanumeric())
            .all(u8::is_ascii_hexdigit)
            && mixed_digits(v)
    }),
    ("hex-after-0x", |v| {
        v.get(2..)
            .is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit) && mixed_digits(h))
    }),
    ("btc-address", |v| {
        matches!(v.first(), Some(b'1' | b'3')) && base58check(v)
    }),
    ("has-digits-4", |v| {
        v.iter().filter(|b| b.is_ascii_digit()).count() >= 4
    }),
    ("upi-id", |v| {
        // A domain of mail has a dot.
        let handle = v.rsplit(|b| *b == b'@').next().unwrap_or_default();
        handle.iter().all(u8::is_ascii_alphanumeric)
    }),
    ("home-address", home_address),
    ("not-a-usual-community", |v| {
        const USUAL: [&str; 16] = [
            "public",
            "private",
            "string",
            "community",
            "cisco",
            "secret",
            "name",
            "word",
            "monitor",
            "read",
            "write",
            "readonly",
            "readwrite",
            "default",
            "admin",
            "snmpd",
        ];
        let lower = v.to_ascii_lowercase();
        !USUAL.iter().any(|word| {
            lower == word.as_bytes() || lower.strip_suffix(b"-string") == Some(word.as_bytes())
        }) && !crate::value::is_placeholder(v)
    }),
    ("snowflake-first", |v| {
        // Discord's ids have 17 digits since 2015, 19 since 2022.
        let id = v.split(|b| *b == b'.').next().and_then(base64_value);
        id.is_some_and(|id| (17..=19).contains(&id.len()) && id.iter().all(u8::is_ascii_digit))
    }),
    ("has-letter", |v| v.iter().any(u8::is_ascii_alphabetic)),
    ("has-digit", |v| v.iter().any(u8::is_ascii_digit)),
    // "Hello!" and what follows it, in nearly every manual.
    ("not-an-example-seed", |v| !v.starts_with(b"JBSWY3DP")),
    // `Ctrl+Alt+F2` is pressed, not typed.
    ("not-keys", |v| {
        const KEYS: [&[u8]; 9] = [
            b"ctrl", b"alt", b"shift", b"cmd", b"win", b"meta", b"super", b"option", b"fn",
        ];
        let first = v
            .split(|b| matches!(b, b'+' | b'-'))
            .next()
            .unwrap_or_default();
        first.len() == v.len() || !KEYS.iter().any(|key| first.eq_ignore_ascii_case(key))
    }),
    ("no-words", |v| crate::entropy::wordiness(v) < 0.75),
    ("not-hex", |v| !v.iter().all(u8::is_ascii_hexdigit)),
];

/// What somebody types where a password is asked for: one that people or machines make, or some words that say nothing.
fn typed(value: &[u8]) -> bool {
    const SAID: &[&str] = &[
        "the", "of", "to", "must", "be", "is", "a", "an", "your", "and", "or", "for", "in", "not",
        "at", "least", "with", "enter", "please", "this", "that", "name", "no", "none", "it", "on",
        "from", "by", "was", "are", "if", "you",
    ];
    let words = || value.split(|b| *b == b' ');
    let judge = |promise| crate::value::judge(value, promise, false).is_some();
    let letters = |word: &[u8]| {
        word.len() <= 16 && word.iter().all(|b| b.is_ascii_alphanumeric() || *b >= 0x80)
    };
    let said = |word: &[u8]| {
        let lower = word.to_ascii_lowercase();
        SAID.iter().any(|said| said.as_bytes() == lower)
    };
    judge(crate::names::Promise::Password)
        || judge(crate::names::Promise::Passphrase)
        || (3..=10).contains(&words().count())
            && words().all(|word| letters(word) && !word.is_empty() && !said(word))
}

/// A phone number as people write it, with signs, that leads to another area or abroad; and no day.
fn trunk_or_abroad(value: &[u8]) -> bool {
    const DIGITS: std::ops::RangeInclusive<usize> = 8..=14;
    let digits: Vec<u8> = value.iter().copied().filter(u8::is_ascii_digit).collect();
    let leads = match digits.get(..3) {
        Some([b'0', b'0', third]) => *third != b'0' && digits.len() >= 10,
        Some([b'0', ..]) => true,
        _ => value.starts_with(b"+") && digits.len() >= 9,
    };
    let mut groups = value.split(|b| !b.is_ascii_digit());
    let day = groups.next().is_some_and(|g| g.len() <= 2)
        && groups.next().is_some_and(|g| g.len() <= 2)
        && groups
            .next()
            .is_some_and(|g| g.len() == 4 && (g.starts_with(b"19") || g.starts_with(b"20")));
    leads && !day && DIGITS.contains(&digits.len()) && super::americas::phone_plausible(&digits)
}

/// An address that no firm's name stands before, and none that licences and manuals are full of.
fn home_address(value: &[u8]) -> bool {
    const KNOWN: &[&str] = &[
        "51 franklin st",
        "59 temple place",
        "31 milk street",
        "675 mass ave",
        "171 second street",
        "559 nathan abbott",
        "160 saratoga avenue",
        "444 castro street",
        "149 new montgomery",
        "1600 amphitheatre p",
        "1 microsoft way",
        "1 infinite loop",
        "1 hacker way",
        "po box 1866",
        "any street",
        "any town",
        "anytown",
        "anywhere",
        "example",
    ];
    let lower = value.to_ascii_lowercase();
    value
        .first()
        .is_some_and(|b| b.is_ascii_digit() || *b == b'P')
        && !KNOWN
            .iter()
            .any(|known| memchr::memmem::find(&lower, known.as_bytes()).is_some())
}

/// GitHub (and npm) tokens end in CRC32 of the 30 characters after the prefix, in 6 base62 digits
/// (GitHub engineering blog, "Behind GitHub's new authentication token formats", 2021).
fn github_crc(value: &[u8]) -> bool {
    const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some(at) = value.iter().position(|b| *b == b'_') else {
        return false;
    };
    let body = &value[at + 1..];
    if body.len() != 36 {
        return false;
    }
    let mut crc = crc32fast::hash(&body[..30]);
    body[30..].iter().rev().all(|b| {
        let want = BASE62[(crc % 62) as usize];
        crc /= 62;
        *b == want
    })
}

/// RFC 7519: three base64url parts, the first a JSON object with `alg` or `enc` or `typ` (RFC 7515, 4.1).
fn jwt(value: &[u8]) -> bool {
    let Some(head) = value.split(|b| *b == b'.').next() else {
        return false;
    };
    let Some(json) = base64_value(head) else {
        return false;
    };
    let json = json.trim_ascii();
    json.first() == Some(&b'{')
        && json.last() == Some(&b'}')
        && ["\"alg\"", "\"enc\"", "\"typ\"", "\"kid\""]
            .iter()
            .any(|k| memchr::memmem::find(json, k.as_bytes()).is_some())
}

/// RFC 7617: `user:password`, printable.
fn base64_user_pass(value: &[u8]) -> bool {
    base64_value(value).is_some_and(|v| {
        let colon = v.iter().position(|b| *b == b':');
        v.iter().all(|b| (0x20..0x7F).contains(b))
            && colon.is_some_and(|c| c > 0 && c + 1 < v.len())
    })
}

/// AWS key ids are base32 after the 4-letter prefix, 20 characters in all (IAM reference, "unique identifiers").
fn aws_key_id(value: &[u8]) -> bool {
    value.len() == 20
        && value[4..]
            .iter()
            .all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7'))
}

/// Base64 of a JSON object.
fn base64_json(value: &[u8]) -> bool {
    base64_value(value).is_some_and(|v| v.first() == Some(&b'{') && v.contains(&b'"'))
}

/// Base64 of printable text, as the manifest of a Secret holds it (RFC 4648, section 4), and of more than one word.
fn base64_text(value: &[u8]) -> bool {
    value.len().is_multiple_of(4)
        && base64_value(value).is_some_and(|v| {
            let text = |b: &u8| (0x20..0x7F).contains(b) || matches!(b, b'\n' | b'\r' | b'\t');
            let sign = |b: &u8| !b.is_ascii_alphabetic();
            v.len() >= 6
                && v.iter().all(text)
                && v.trim_ascii().iter().any(sign)
                && (v[0] == b'{' || !crate::value::is_placeholder(&v))
        })
}

/// BIP-39: 12, 15, 18, 21 or 24 words of one of its lists. The check digits may be wrong, as in a phrase copied with a
/// mistake: the list alone leaves no room for prose.
fn mnemonic(value: &[u8]) -> bool {
    // Monero and Algorand have one more word.
    const WORDS_MAX: usize = 25;
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let words = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|w| !w.is_empty());
    let words: SmallVec<[&str; WORDS_MAX]> = words.take(WORDS_MAX + 1).collect();
    matches!(words.len(), 12 | 13 | 15 | 18 | 21 | 24 | 25)
        && bip39::Language::ALL
            .iter()
            .any(|list| words.iter().all(|word| list.find_word(word).is_some()))
}

/// Base58Check as in Bitcoin addresses and keys: version, payload, first 4 bytes of double SHA-256.
fn base58check(value: &[u8]) -> bool {
    const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    if !(25..=120).contains(&value.len()) {
        return false;
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(90);
    for b in value {
        let Some(d) = ALPHABET.iter().position(|a| a == b) else {
            return false;
        };
        let mut carry = d as u32;
        for out in bytes.iter_mut().rev() {
            carry += u32::from(*out) * 58;
            *out = (carry & 0xFF) as u8;
            carry >>= 8;
        }
        if carry > 0 {
            bytes.insert(0, carry as u8);
        }
    }
    let zeros = value.iter().take_while(|b| **b == b'1').count();
    let mut full = vec![0; zeros];
    full.extend_from_slice(&bytes);
    let Some(cut) = full.len().checked_sub(4) else {
        return false;
    };
    sha256d_prefix(&full[..cut]) == full[cut..]
}

fn sha256d_prefix(data: &[u8]) -> [u8; 4] {
    use sha2::{Digest, Sha256};
    let twice = Sha256::digest(Sha256::digest(data));
    [twice[0], twice[1], twice[2], twice[3]]
}

/// Bech32 and Bech32m checksums (BIP-173, BIP-350).
fn bech32(value: &[u8]) -> bool {
    const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const GEN: [u32; 5] = [
        0x3b6a_57b2,
        0x2650_8e6d,
        0x1ea1_19fa,
        0x3d42_33dd,
        0x2a14_62b3,
    ];
    let Some(sep) = value.iter().rposition(|b| *b == b'1') else {
        return false;
    };
    if sep == 0 || value.len() < sep + 7 || value.len() > 120 {
        return false;
    }
    let mut sum = 1u32;
    let mut step = |v: u32| {
        let top = sum >> 25;
        sum = ((sum & 0x1ff_ffff) << 5) ^ v;
        for (i, g) in GEN.iter().enumerate() {
            sum ^= if (top >> i) & 1 == 1 { *g } else { 0 };
        }
    };
    let lower = |b: &u8| b.to_ascii_lowercase();
    value[..sep]
        .iter()
        .map(lower)
        .for_each(|b| step(u32::from(b >> 5)));
    step(0);
    value[..sep]
        .iter()
        .map(lower)
        .for_each(|b| step(u32::from(b & 31)));
    for b in value[sep + 1..].iter().map(lower) {
        let Some(v) = ALPHABET.iter().position(|a| *a == b) else {
            return false;
        };
        step(v as u32);
    }
    sum == 1 || sum == 0x2bc8_30a3
}

/// Letters and digits, and not one run of each: what a generator makes and people do not.
fn mixed(value: &[u8]) -> bool {
    let c = crate::entropy::Classes::of(value);
    c.digit > 0 && c.letters() > 0 && c.changes >= 3
}

/// A phrase that says not to is none: the pattern takes the negation in, and this throws it out. Negations stand before
/// the verb ("do not ignore", "no ignores", "не забудь", "不要忽略") or right after it ("vergiss nicht", "glöm inte").
fn not_negated(value: &[u8]) -> bool {
    const WORDS: [&str; 16] = [
        "not", "never", "without", "no", "nunca", "não", "nao", "non", "mai", "nie", "nu", "не",
        "ni", "đừng", "jangan", "dont",
    ];
    const STARTS: [&str; 10] = [
        "don'", "don’", "n'", "n’", "不要", "请勿", "切勿", "別", "别", "勿",
    ];
    const AFTER: [&str; 6] = ["nicht", "niet", "inte", "ikke", "nie", "not"];
    let head = String::from_utf8_lossy(&value[..value.len().min(64)]).to_lowercase();
    let mut words = head.split(|c: char| c.is_whitespace() || c == ',');
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    !(WORDS.contains(&first)
        || STARTS.iter().any(|s| first.starts_with(s))
        || AFTER.contains(&second))
}

/// How many are meant where it is not all of them.
const SOME: [&[u8]; 3] = [b" one or more ", b" one or several ", b" any number of "];

/// "Do not tell the user their password is wrong" says how to put something, not to conceal an act: the pattern takes
/// in the word that shows it, and this throws it out. So does "forget everything you know about" a subject.
fn not_advice(value: &[u8]) -> bool {
    const TELLING: [&[u8]; 17] = [
        b"their",
        b"his",
        b"her",
        b"which",
        b"whether",
        b"how",
        b"where",
        b"about",
        b"until",
        b"unless",
        b"before",
        // Where a subject is learned.
        b"school",
        b"college",
        b"university",
        b"class",
        // What is said of a letter or a file.
        b"content",
        b"contents",
    ];
    let last = value
        .rsplit(|b| b.is_ascii_whitespace())
        .next()
        .unwrap_or_default();
    !TELLING.iter().any(|w| last.eq_ignore_ascii_case(w))
}

/// `aws-cli#847.`: an issue of a project.
fn not_issue(value: &[u8]) -> bool {
    let value = value.strip_suffix(b".").unwrap_or(value);
    let Some(sign) = memchr::memchr(b'#', value) else {
        return true;
    };
    let named = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(b);
    let project = value[..sign].iter().any(|b| b"-.".contains(b));
    !(project
        && value[..sign].iter().all(named)
        && value[sign + 1..].iter().all(u8::is_ascii_digit))
}

/// Nothing that only marks a place. Less strict than [`crate::value::is_placeholder`], for rules that know the
/// service, the word and the length: there, a value that merely counts up is still taken for a key.
fn not_filler(value: &[u8]) -> bool {
    const FILLERS: [&[u8]; 12] = [
        b"xxxx",
        b"your",
        b"example",
        b"placeholder",
        b"changeme",
        b"redacted",
        b"dummy",
        b"****",
        b"....",
        b"<",
        b"${",
        b"_here",
    ];
    let lower = value.to_ascii_lowercase();
    let longest = lower.chunk_by(|a, b| a == b).map(<[u8]>::len).max();
    longest.unwrap_or(0) < 7
        && !FILLERS
            .iter()
            .any(|f| memchr::memmem::find(&lower, f).is_some())
}

/// A recovery password of BitLocker: each group of six digits is 11 times a number of 16 bits.
fn bitlocker(value: &[u8]) -> bool {
    let digits: Vec<u32> = value
        .iter()
        .filter(|b| b.is_ascii_digit())
        .map(|b| u32::from(b - b'0'))
        .collect();
    let groups = digits
        .chunks(6)
        .map(|g| g.iter().fold(0, |n, d| n * 10 + d));
    let right = |n: u32| n.is_multiple_of(11) && n / 11 <= u32::from(u16::MAX);
    digits.len() == 48 && groups.clone().all(right) && groups.sum::<u32>() > 0
}

/// Not one character repeated.
fn mixed_digits(value: &[u8]) -> bool {
    value
        .iter()
        .filter(|b| b.is_ascii_alphanumeric())
        .collect::<std::collections::BTreeSet<_>>()
        .len()
        > 2
}

/// Decodes base64 in either alphabet, padded or not. Short values only.
pub(crate) fn base64_value(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() > 16 * 1024 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() * 3 / 4 + 3);
    let (mut acc, mut bits) = (0u32, 0);
    for b in text {
        if *b == b'=' {
            break;
        }
        acc = acc << 6 | u32::from(base64_digit(*b)?);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((acc >> bits) as u8);
        }
    }
    Some(out)
}

/// The six bits of a base64 or base64url character.
pub(crate) const fn base64_digit(b: u8) -> Option<u8> {
    Some(match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::check_passes as passes;

    #[test]
    fn structure_of_secrets() {
        let cases: &[(&str, &str, bool)] = &[
            ("jwt", "eyJhbGciOiJIUzI1NiJ9.e30.x", true),
            ("jwt", "eyJub3RoaW5nIjoxfQ.e30.x", false),
            ("jwt", "notbase64!", false),
            ("base64-user-pass", "dXNlcjpwYXNz", true),
            ("base64-user-pass", "dXNlcnBhc3M=", false),
            (
                "bip39",
                "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about",
                true,
            ),
            ("bip39", "one two three", false),
            ("base58check", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", true),
            ("base58check", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", false),
            ("bech32", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", true),
            (
                "bech32",
                "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
                true,
            ),
            (
                "bech32",
                "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
                false,
            ),
            ("mixed", "aB3dE5", true),
            (
                "bitlocker",
                "256586-024321-209187-010967-582406-633787-625438-278344",
                true,
            ),
            (
                "bitlocker",
                "256587-024321-209187-010967-582406-633787-625438-278344",
                false,
            ),
            (
                "bitlocker",
                "999999-024321-209187-010967-582406-633787-625438-278344",
                false,
            ),
            ("told-password", "iguana-414Ananas", true),
            ("told-password", "maple_Nordwind-761", true),
            ("told-password", "7551Brambory$iguana", true),
            ("told-password", "Tramonto1135_", true),
            ("told-password", "ginger4920thunder", true),
            ("told-password", "Kartal5795.ns", true),
            ("told-password", "frame1280wide", false),
            ("told-password", "2024-05-03T10:11:12Z", false),
            ("told-password", "pbkdf2-sha256", false),
            ("told-password", "req_8zqA0WxefVGbYA", false),
            ("password-like", "argon2id", false),
            ("password-like", "v3.2.1", false),
            ("password-like", "2.2.7.Final|lib", false),
            ("password-like", "4.1.100.Final-redhat1", false),
            ("password-like", "v5.3.0-M1", false),
            ("password-like", "2.7.Sommer|Regen", true),
            ("password-like", "2.2.7.rBx9|Lq", true),
            ("password-like", "qr/^[A-Za-z0-9]{20,40}$/x", false),
            ("password-like", "m{^sk-(\\d+)Q7z}", false),
            ("password-like", "qr/Kx7mQ2vRt9", true),
            ("password-like", "m/Kx7mQ2vRt9/", true),
            ("password-like", "2024-05-03T10:11:12Z", false),
            ("password-like", "2024-05-03Tulip", true),
            ("told-or-drawn", "rfc8018", false),
            ("told-or-drawn", "D7C1D2F6F7D6D2D2D7E3C6C6", true),
            ("told-password", "report2024final", false),
            ("told-password", "report-2024Final", false),
            ("told-password", "Knedlik.8.zeli", true),
            (
                "told-password",
                "\u{433}\u{440}\u{435}\u{447}\u{43a}\u{430}_\u{43d}\u{430}_\u{443}\u{436}\u{438}\u{43d}7",
                true,
            ),
            ("told-password", "Kubernetes-1.29", false),
            ("told-password", "job_id=4418207", false),
            (
                "told-password",
                "trace_id=7c1e9b04d2f84a6fa3350be1c86d92f7",
                false,
            ),
            ("told-password", "maple_river=4418", true),
            ("told-password", "-DUSE_SHA256=on1", false),
            ("told-password", "python3-gi-cairo2", false),
            ("told-password", "Chrome-118", false),
            ("told-password", "Keycloak.Realm2", false),
            ("told-password", "backup_server-761", false),
            ("told-password", "worker-12Pool", false),
            ("told-password", "my_Module-12", false),
            ("mixed", "abcdef123", false),
            ("not-keys", "Ctrl+Alt+F2", false),
            ("not-keys", "Alt3r+ation9", true),
        ];
        for (check, value, want) in cases {
            assert_eq!(passes(check, value), *want, "{check} {value}");
        }
    }

    #[test]
    fn github_checksum_is_the_crc_of_the_body() {
        let body = "abcdefghijABCDEFGHIJ0123456789";
        let mut crc = crc32fast::hash(body.as_bytes());
        let mut tail = Vec::new();
        for _ in 0..6 {
            tail.push(
                b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                    [(crc % 62) as usize],
            );
            crc /= 62;
        }
        tail.reverse();
        let tail = String::from_utf8(tail).unwrap();
        assert!(passes("github-crc", &format!("ghp_{body}{tail}")));
        assert!(!passes("github-crc", &format!("ghp_{body}000000")));
    }
}
