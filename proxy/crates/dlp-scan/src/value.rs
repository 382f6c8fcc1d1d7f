//! What a value under a telling name has to look like to be believed.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::entropy::{Classes, shannon, wordiness};
use crate::names::Promise;

/// How sure, 0 to 100, or `None` when it is no secret.
pub(crate) fn judge(value: &[u8], promise: Promise, quoted: bool) -> Option<u8> {
    if promise == Promise::Passphrase && is_drawn(value) && !is_placeholder(value) {
        return Some(60);
    }
    if is_placeholder(value) || !value.iter().all(|b| (0x21..0x7F).contains(b)) {
        return None;
    }
    match promise {
        Promise::Nothing | Promise::Mnemonic => None,
        Promise::Password | Promise::Passphrase => password(value, quoted),
        Promise::Strong => generated(value, true).then_some(70),
        Promise::Weak => generated(value, false).then_some(60),
    }
}

/// What generators make: long, mixed, no words.
fn generated(value: &[u8], strong: bool) -> bool {
    if reference(value) || value.len() > 4096 {
        return false;
    }
    if is_uuid(value) {
        return strong;
    }
    // Brackets are code's, unless there are signs in it that code does not have.
    let brackets = value
        .iter()
        .any(|b| matches!(b, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b','));
    let signs = value
        .iter()
        .filter(|b| {
            matches!(
                b,
                b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'~' | b'?'
            )
        })
        .count();
    if brackets && signs < 2 {
        return false;
    }
    let c = Classes::of(value);
    let body = value.strip_prefix(b"0x").unwrap_or(value);
    if body.iter().all(u8::is_ascii_hexdigit) {
        return body.len() >= if strong { 20 } else { 32 }
            && c.letters() > 0
            && c.digit > 0
            && shannon(body) > 2.8;
    }
    if c.digit == 0 || c.letters() == 0 {
        let odd = c.lower > 3 && c.upper > 3 && c.changes as usize * 3 > value.len();
        return strong && value.len() >= 20 && odd && wordiness(value) < 0.55;
    }
    // A short one has to be drawn from all of the alphabet, as no name is.
    let drawn = c.lower >= 2 && c.upper >= 2 && c.digit >= 2 && c.changes >= 6;
    let len_min = match strong {
        true if drawn => 12,
        true => 14,
        false => 20,
    };
    value.len() >= len_min
        && shannon(value) >= if strong { 3.0 } else { 3.3 }
        && c.changes >= 4
        && !is_identifier(value, c)
        && (wordiness(value) < 0.72 || c.changes as usize * 3 > value.len())
}

/// What people choose and machines make.
fn password(value: &[u8], quoted: bool) -> Option<u8> {
    let c = Classes::of(value);
    if value.len() < 6
        || value.len() > 256
        || reference(value)
        || crate::plain::is_plain(value)
        || c.letters() == 0 && c.other == 0 && value.len() < 8
    {
        return None;
    }
    if value.starts_with(b"0x") && value.len() <= 18 {
        return None;
    }
    if generated(value, true) {
        return Some(80);
    }
    let kinds = u32::from(c.lower > 0)
        + u32::from(c.upper > 0)
        + u32::from(c.digit > 0)
        + u32::from(c.other > 0);
    let code = !quoted
        && value
            .iter()
            .any(|b| matches!(b, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b';'));
    if is_phrase(value) || is_drawn(value) || is_pair(value) {
        return Some(60);
    }
    if code || is_identifier(value, c) {
        return None;
    }
    if c.letters() == 0 {
        return (quoted && (6..=24).contains(&c.digit) && c.other == 0).then_some(50);
    }
    (kinds >= 3
        || (kinds == 2 && (c.digit > 0 || value.len() >= 10))
        || (value.len() >= 8 && wordiness(value) < 0.4))
        .then_some(65)
}

/// Words that were drawn: four and more with a capital each, and digits at the end.
fn is_phrase(value: &[u8]) -> bool {
    let digits = value
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let words = value[..value.len() - digits].split(|b| matches!(b, b'-' | b'.' | b'_' | b' '));
    let drawn = |w: &[u8]| {
        w.len() >= 2 && w[0].is_ascii_uppercase() && w[1..].iter().all(u8::is_ascii_lowercase)
    };
    (1..=4).contains(&digits) && words.clone().all(drawn) && words.count() >= 4
}

/// Words that were drawn from a list, in lower case with the same sign between each two, and a number before or behind
/// them, as generators of passphrases write them (`ribbon-meadow-zipper-96`). Names of things are written so, too, but
/// of words that name things.
pub(crate) fn is_drawn(value: &[u8]) -> bool {
    let Some(sep) = value.iter().copied().find(|b| b"-._ ".contains(b)) else {
        return false;
    };
    let (mut words, mut numbers, mut parts) = (0, 0, 0);
    // `otter-sable-umber-ripple48`: the number at the last word; four words then, as `worker-pool-blue2` names a thing.
    let digits = value
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let glued = (2..=4).contains(&digits) && value[value.len() - digits - 1].is_ascii_lowercase();
    let (value, words_min) = match glued {
        true => (&value[..value.len() - digits], 4),
        false => (value, 3),
    };
    numbers += usize::from(glued);
    for part in value.split(|b| *b == sep) {
        parts += 1;
        let word = part.len() >= 3 && part.len() <= 12 && part.iter().all(u8::is_ascii_lowercase);
        if word && !NAMING.iter().any(|n| n.as_bytes() == part) {
            words += 1;
        }
        numbers +=
            usize::from((1..=4).contains(&part.len()) && part.iter().all(u8::is_ascii_digit));
    }
    words >= words_min && numbers == 1 && words + numbers == parts + usize::from(glued)
}

/// Two words with a capital each and a number behind them (`RiverViolin78`, `River_Violin78`), as people choose. Names
/// of things have no number, or one of a single digit, or a word that things are named with.
fn is_pair(value: &[u8]) -> bool {
    let digits = value
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let words = &value[..value.len() - digits];
    let Some(second) = words.iter().rposition(u8::is_ascii_uppercase) else {
        return false;
    };
    let word = |w: &[u8]| {
        let w = w.strip_suffix(b"_").or(w.strip_suffix(b"-")).unwrap_or(w);
        let lower = w.to_ascii_lowercase();
        (4..=10).contains(&w.len())
            && w[0].is_ascii_uppercase()
            && w[1..].iter().all(u8::is_ascii_lowercase)
            && !NAMING.iter().any(|n| n.as_bytes() == lower)
    };
    (2..=4).contains(&digits) && word(&words[..second]) && word(&words[second..])
}

/// Words that things in programs are named with.
const NAMING: &[&str] = &[
    "password",
    "passwd",
    "pass",
    "secret",
    "secrets",
    "token",
    "key",
    "keys",
    "database",
    "prod",
    "production",
    "staging",
    "stage",
    "dev",
    "test",
    "tests",
    "app",
    "api",
    "apis",
    "service",
    "services",
    "svc",
    "user",
    "users",
    "admin",
    "root",
    "name",
    "ref",
    "vault",
    "env",
    "config",
    "default",
    "value",
    "path",
    "file",
    "field",
    "input",
    "label",
    "login",
    "auth",
    "credential",
    "credentials",
    "account",
    "accounts",
    "store",
    "manager",
    "mysql",
    "postgres",
    "postgresql",
    "redis",
    "mongo",
    "kube",
    "cluster",
    "server",
    "client",
    "host",
    "reset",
    "min",
    "max",
    "length",
    "policy",
    "hash",
    "cert",
    "rotate",
    "version",
    "new",
    "old",
    "your",
    "the",
    "example",
    "local",
    "shared",
    "common",
    "base",
    "main",
    "backup",
    "web",
    "http",
    "data",
    "mail",
    "smtp",
    "email",
    "aws",
    "azure",
    "gcp",
    "must",
    "not",
    "and",
    "with",
    "for",
    "from",
    "use",
    "see",
    "are",
    "has",
    "required",
    "change",
    "form",
    "group",
    "text",
    "error",
    "message",
    "help",
    "type",
    "page",
    "step",
    "item",
    "role",
    "node",
    "job",
    "task",
    "queue",
    "bucket",
    "region",
    "east",
    "west",
    "north",
    "south",
    "central",
    "model",
    "turbo",
    "preview",
    "latest",
    "mini",
    "large",
    "small",
];

/// What only stands in code, URLs and lookups.
static REFERENCES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    words(&[
        "://",
        "::",
        "()",
        "->",
        "process.env",
        "os.environ",
        "getenv",
        "$(",
    ])
});

/// Signs of code in a value that is none: what stands between them was drawn, and is no name.
fn refers(value: &[u8]) -> bool {
    REFERENCES.is_match(value)
        && (memchr::memmem::find(value, b"://").is_some()
            || !pieces(&REFERENCES, value).any(|at| {
                let c = Classes::of(&value[at.clone()]);
                at.len() >= 8
                    && (c.lower >= 2 && c.upper >= 2 && c.digit >= 1 && c.changes >= 6)
                    && wordiness(&value[at.clone()]) < 0.4
                    && !is_identifier(&value[at], c)
            }))
}

/// What stands between words in a value.
fn pieces<'v>(words: &'v AhoCorasick, value: &'v [u8]) -> impl Iterator<Item = Range<usize>> + 'v {
    let mut words = words.find_iter(value).map(|word| word.range());
    let mut at = Some(0);
    std::iter::from_fn(move || {
        let from = at?;
        let word = words.next();
        at = word.as_ref().map(|w| w.end);
        Some(from..word.map_or(value.len(), |w| w.start))
    })
}

/// Finds any of the words, in lower case.
fn words(words: &[&str]) -> AhoCorasick {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(words)
        .expect("a few short words")
}

/// Something that points to a value instead of being one: a path, a URL, a variable, a call, a lookup.
fn reference(value: &[u8]) -> bool {
    let starts = |p: &str| value.starts_with(p.as_bytes());
    starts("/") && value.iter().filter(|b| **b == b'/').count() >= 2 && wordiness(value) > 0.5
        || starts("./")
        || starts("../")
        || starts("~/")
        || starts("@")
            && value
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || b"@_./-:".contains(b))
        || starts("&")
        || refers(value)
        || starts("arn:")
        || starts("vault:")
        || starts("op:")
        || starts("secret/")
        || starts("secrets.")
        || starts("data:")
        // What Mapbox calls a public token.
        || starts("pk.eyJ")
        || starts("sha256:")
        || starts("ssh-")
        || starts("urn:")
        || [
            "!vault", "!secret", "!env", "!ref", "!sub", "!getatt", "!import",
        ]
        .iter()
        .any(|tag| {
            value.len() >= tag.len() && value[..tag.len()].eq_ignore_ascii_case(tag.as_bytes())
        })
}

/// `some_name`, `SomeName`, `some.name.here`, `kebab-name-2`: parts that are words.
fn is_identifier(value: &[u8], c: Classes) -> bool {
    if c.digit as usize * 4 > value.len()
        || !value
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':'))
    {
        return false;
    }
    let (mut parts, mut words) = (0, 0);
    for part in value
        .split(|b| !b.is_ascii_alphanumeric())
        .filter(|p| !p.is_empty())
    {
        parts += 1;
        let letters = Classes::of(part);
        let tail_digits = part.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let plain = letters.digit as usize == tail_digits
            && (letters.upper == 0 || letters.lower == 0 || humps(part));
        words += i32::from(plain && (part.len() <= 3 || wordiness(part) > 0.5));
    }
    parts > 0 && words == parts
}

/// Upper case only where words begin.
fn humps(part: &[u8]) -> bool {
    let c = Classes::of(part);
    c.upper * 3 <= c.lower
}

/// 8-4-4-4-12 hex digits.
pub(crate) fn is_uuid(v: &[u8]) -> bool {
    v.len() == 36
        && v.iter().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

/// Words that only stand where somebody is told to put their own.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "your_",
    "your-",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "yourapi",
    "yourpass",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "replace",
    "dummy",
    "insert",
    "redacted",
    "xxxx",
    "****",
    "....",
    "todo",
    "fixme",
    "tokenhere",
    "keyhere",
    "secrethere",
    "helloworld",
    "hello_world",
    "${",
    "{{",
    "%(",
    "$(",
    "#{",
    "[[",
    "my_secret",
    "my-secret",
    "mysecret",
    "my_token",
    "my-token",
    "mytoken",
    "my_api",
    "my-api",
    "myapi",
    "my_pass",
    "mypass",
    "fake",
    "sample",
    "notreal",
    "not_real",
    "not-real",
    "undefined",
    "process.env",
    "00000000",
    "11111111",
    "deadbeef",
    "test_key",
    "test-key",
    "testkey",
    "testtoken",
    "test_token",
    "test-token",
    "some_",
    "enter_",
    "put_",
    "-here",
    "_here",
    "goes",
    "-----",
    "____",
    "secret_key_here",
    "truncated",
    "omitted",
    "removed",
    "hidden",
    "masked",
    "null",
];
static PLACEHOLDER: LazyLock<AhoCorasick> = LazyLock::new(|| words(PLACEHOLDERS));

const WHOLE: &[&str] = &[
    "none",
    "null",
    "nil",
    "true",
    "false",
    "password",
    "passwd",
    "secret",
    "token",
    "string",
    "str",
    "test",
    "testing",
    "admin",
    "root",
    "user",
    "default",
    "required",
    "optional",
    "empty",
    "unset",
    "changeit",
    "qwerty",
    "foobar",
    "hunter",
    "letmein",
    "secure",
    "bearer",
    "basic",
    "digest",
    "apikey",
    "api_key",
    "value",
    "unknown",
    "number",
    "boolean",
    "object",
    "integer",
    "text",
    "hash",
    "yes",
    "key",
    "username",
    "passphrase",
    "password123",
    "password1",
    "secret123",
    "test123",
    "test1234",
    "admin123",
    "abc123",
    "mypassword",
];

/// So much of a value that is masked or cut off still shows where it is not the value any more.
const SHOWN_BYTES_MAX: usize = 40;

/// A word excuses a value whose rest is dull, too: not one with a value beside the word, that is as long as `least`.
fn excused(value: &[u8], lower: &[u8], least: impl Fn() -> usize) -> bool {
    if !PLACEHOLDER.is_match(lower) {
        return false;
    }
    // The secret keys of AWS's documentation end so, and are as long as others with it.
    if value.len() == 40 && value.ends_with(b"EXAMPLEKEY") {
        return true;
    }
    let masked = ["xxxx", "****", "...."];
    let masked = (masked.iter()).any(|m| memchr::memmem::find(lower, m.as_bytes()).is_some());
    let least = least().max(if masked { SHOWN_BYTES_MAX } else { 0 });
    !pieces(&PLACEHOLDER, lower).any(|at| {
        let piece = &value[at];
        piece.len() >= least
            && generated(piece, true)
            && !run_of_one(piece)
            && !counts(&piece.to_ascii_lowercase())
            && !prose(piece)
    })
}

/// A token without the word that was hung on it: `sk-...-example`.
pub(crate) fn without_word(value: &[u8]) -> Option<usize> {
    const WORD_BYTES_MAX: usize = 24;
    let tail = value.len().saturating_sub(WORD_BYTES_MAX);
    let at = tail
        + value[tail..]
            .iter()
            .rposition(|b| matches!(b, b'-' | b'_'))?;
    let word = value[at..].to_ascii_lowercase();
    (PLACEHOLDERS.iter())
        .any(|p| p.as_bytes() == &word[1..] || p.as_bytes() == word)
        .then_some(at)
}

/// Stands for a value that is to be filled in, or was taken out, or was typed by counting.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    stands_for(value, || 0)
}

/// The same, of a value that has `least` bytes if it is one.
pub(crate) fn stands_for(value: &[u8], least: impl Fn() -> usize) -> bool {
    in_lower_case(value, |lower| {
        marks_a_place(value, lower, &least) || counts(lower)
    })
}

/// Counts up and down the keyboard, and marks no place otherwise: what people type where a key belongs.
pub(crate) fn is_typed(value: &[u8]) -> bool {
    in_lower_case(value, |lower| {
        counts(lower) && !marks_a_place(value, lower, || 0)
    })
}

/// Asks about the value in lower case; what is longer than placeholders are is none.
fn in_lower_case(value: &[u8], ask: impl Fn(&[u8]) -> bool) -> bool {
    if value.len() > 200 {
        return false;
    }
    let mut lower = [0u8; 200];
    let lower = &mut lower[..value.len()];
    lower.copy_from_slice(value);
    lower.make_ascii_lowercase();
    ask(lower)
}

/// Says by its words, its signs or by one character repeated that the value is yet to come, or is gone.
fn marks_a_place(value: &[u8], lower: &[u8], least: impl Fn() -> usize) -> bool {
    if WHOLE.iter().any(|w| w.as_bytes() == lower) || excused(value, lower, least) {
        return true;
    }
    let first = lower.first();
    if matches!(first, Some(b'$'))
        && lower[1..]
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'}' || *b == b'{')
        && !lower.get(1..3).is_some_and(|p| p.contains(&b'2'))
    {
        return true;
    }
    // `%s`, `{password}`, `[token]`, `:param`
    matches!(
        (first, lower.last()),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) | (Some(b'%'), Some(b'%'))
    ) || lower.len() <= 3
        || first == Some(&b'<') && lower.contains(&b'>')
        || lower.windows(2).any(|w| w == b"'$" || w == b"\"$")
        || run_of_one(lower)
        || prose(value)
}

/// Letters or digits in their order, in all of it or in a long part.
fn counts(lower: &[u8]) -> bool {
    const PARTS: [&[u8]; 3] = [b"1234567890", b"0123456789abcdef", b"abcdefgh"];
    let pairs = lower.len().saturating_sub(1).max(1);
    let up = |w: &&[u8]| w[1] == w[0].wrapping_add(1);
    lower.len() >= 6 && lower.windows(2).filter(up).count() * 10 > pairs * 7
        || counts_up(lower)
        || PARTS
            .iter()
            .any(|part| memchr::memmem::find(lower, part).is_some())
}

/// Letters in the order of the alphabet, or digits in theirs, whatever stands between: typed, not generated.
fn counts_up(v: &[u8]) -> bool {
    let steps = |keep: fn(&u8) -> bool, last: u8, first: u8, least: usize| {
        let (mut prev, mut n, mut up) = (0u8, 0usize, 0usize);
        for b in v.iter().copied().filter(keep) {
            n += 1;
            let next = b == prev.wrapping_add(1)
                || prev == last && b == first
                || prev == b'f' && b == b'a';
            up += usize::from(prev != 0 && next);
            prev = b;
        }
        n >= least && up * 10 >= (n - 1) * 7
    };
    v.len() >= 10
        && (steps(u8::is_ascii_lowercase, b'z', b'a', 8)
            || steps(u8::is_ascii_digit, b'9', b'0', 8))
}

/// Long, and all of it words.
fn prose(v: &[u8]) -> bool {
    let letters = v.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let one = !v.iter().any(u8::is_ascii_whitespace);
    one && v.len() >= 24 && letters * 4 >= v.len() * 3 && wordiness(v) > 0.8 && !is_drawn(v)
}

/// One character makes up most of it.
fn run_of_one(v: &[u8]) -> bool {
    let same = v.windows(2).filter(|w| w[0] == w[1]).count();
    let pairs = v.len().saturating_sub(1).max(1);
    let longest = v.chunk_by(|a, b| a == b).map(<[u8]>::len).max();
    longest.unwrap_or(0) >= 8 && v[0] != b'a' || v.len() >= 6 && same * 10 > pairs * 6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_values_are_believed_and_words_are_not() {
        let strong = [
            "77c66f29-5f06-ecee-c0a1-c291bca8b8ba",
            "2X1TDDKFuYDsqFc7eNfYODrhHB55wwSc",
            "c5c4a5771f219f7d3db6b69f50c997f8",
            "kbp6LFgdnmRQzyvSSKa1UJ",
        ];
        for v in strong {
            assert!(judge(v.as_bytes(), Promise::Strong, true).is_some(), "{v}");
        }
        let nothing = [
            "your_api_key_goes_here_1",
            "xxxxxxxxxxxxxxxxxxxx",
            "${API_TOKEN}",
            "process.env.TOKEN_2",
            "my_service_account_v2",
            "config/token.json",
            "self.token_2()",
            "https://example.com/a1",
            "REDACTED",
            "arn:aws:secretsmanager:eu-west-1:123456789012:secret:x",
            "TokenRefreshHandler2",
            "!vault-ref data/app#2",
        ];
        for v in nothing {
            assert!(judge(v.as_bytes(), Promise::Strong, true).is_none(), "{v}");
        }
    }

    #[test]
    fn passwords() {
        for v in [
            "Iqvldm982*cfBKh",
            "hunter2!",
            "Tr0ub4dor&3",
            "correct9horse",
            "s3cr3tP@ss",
            "@nch0r1987!",
            "RiverViolin78",
            "River_Violin78",
            "ribbon-meadow-zipper-96",
            "Iqvldm982*cfBKhexample",
            "nullIqvldm982*cfBKh",
            "aB3()xK9mQ2zLw",
            "k9->Zq72LmPw4t",
            "otter-sable-umber-ripple48",
            "7.copper.lantern.walrus",
        ] {
            assert!(
                judge(v.as_bytes(), Promise::Password, true).is_some(),
                "{v}"
            );
        }
        let words = b"athlete ivory cabin jacket arrow 971";
        assert!(judge(words, Promise::Passphrase, false).is_some());
        assert!(judge(words, Promise::Password, false).is_none());
        for v in [
            "password",
            "getPassword",
            "user.password",
            "<password>",
            "$DB_PASSWORD",
            "********",
            "changeme",
            "PASSWORD_DEFAULT",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "your-api-key-here-1234",
            "your_api_key_1a2B3c4D5e6F7g8H",
            "Zq7kW2mXv9xxxxxxxxxxxxLp4TsR8b",
            "config2()->getKey3",
            "Vault2::readX509Key3()",
            "us-east-vault-2",
            "TokenVersion12",
            "the-shared-password-2",
            "null",
            "abc",
            "RiverViolin",
        ] {
            assert!(
                judge(v.as_bytes(), Promise::Password, true).is_none(),
                "{v}"
            );
        }
    }
}
