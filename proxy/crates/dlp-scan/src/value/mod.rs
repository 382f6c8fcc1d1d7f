//! What a value under a telling name has to look like to be believed.

mod chosen;
mod files;
mod glued;
mod phrase;
mod placeholder;
mod program;
mod signs;

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::entropy::{Classes, shannon, wordiness};
use crate::names::Promise;

pub(crate) use chosen::{is_all_listed, is_drawn, is_joined_by_sign, is_listed};
use chosen::{
    is_foreign_and_number, is_foreign_words, is_numbered, is_numbered_inside, is_own_words,
    is_pair, is_pair_of_numbered, is_parted_by_number, is_phrase, is_word_and_number, is_worded,
};
pub(crate) use glued::is_of_words;
pub(crate) use phrase::is_passphrase;
pub(crate) use placeholder::{is_placeholder, is_typed, stands_for, without_word};
use program::{
    is_argument, is_certificate_type, is_constant, is_constants_name, is_few_bytes,
    is_host_and_path, is_in_module, is_key_of_a_store, is_list_of_types, is_name,
    is_numbered_notice, is_numbered_type, is_option, is_package, is_pattern, is_property, is_query,
    is_registry_path, is_renamed, is_variable,
};
use signs::is_record_id;
pub(crate) use signs::{is_bracketed, is_mail};

/// How sure, 0 to 100, or `None` when it is no secret.
pub(crate) fn judge(value: &[u8], promise: Promise, quoted: bool) -> Option<u8> {
    let phrase = promise == Promise::Passphrase
        && (is_drawn(value) || is_listed(value, 4) || is_passphrase(value, quoted));
    if phrase && !is_placeholder(value) {
        return Some(60);
    }
    if is_placeholder(value)
        || is_moment(value)
        || is_way_to_hash(value)
        || is_encrypted(value)
        || is_account_of_a_chain(value)
        || is_constant(value)
        || is_property(value)
        || is_renamed(value)
        || is_in_module(value)
        || is_list_of_types(value)
        || is_numbered_type(value)
        || is_numbered_notice(value)
        || is_pattern(value)
        || is_registry_path(value)
        || is_few_bytes(value)
        || is_host_and_path(value)
        || is_certificate_type(value)
        || matches!(value, [b'-', b'-', b'a'..=b'z', ..])
        || !quoted && is_name(value)
    {
        return None;
    }
    if !value.iter().all(|b| (0x21..0x7F).contains(b)) {
        let person = promise == Promise::Password || promise == Promise::Passphrase;
        let latin = || in_ascii(value).is_some_and(|ascii| password(&ascii, quoted).is_some());
        let own = || is_own_words(value, false) && !is_dated(value);
        return (person && (quoted && is_foreign(value) || latin() || own())).then_some(55);
    }
    match promise {
        Promise::Nothing | Promise::Mnemonic => None,
        Promise::Password | Promise::Passphrase => password(value, quoted),
        Promise::Strong if generated(value, true) => Some(70),
        Promise::Strong => is_chosen_key(value).then_some(60),
        Promise::Weak if is_key_of_a_store(value) || files::has_type(value) => None,
        Promise::Weak => generated(value, false).then_some(60),
    }
}

/// `PORT=8080`: the next variable, where the one before has no value.
pub(crate) fn is_assignment(value: &[u8]) -> bool {
    const NAME_BYTES_MIN: usize = 3;
    let of_name = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
    let name = value.iter().take_while(|b| of_name(b)).count();
    // Base64 ends with such signs.
    name >= NAME_BYTES_MIN
        && value[0].is_ascii_uppercase()
        && value[name..].starts_with(b"=")
        && value[name..].iter().any(|b| *b != b'=')
}

/// `hT7kQ(2mZRw9x`, `@kQ7vT2mZ`: letters and figures without order, and a bracket or a sign that code would have between words.
pub(crate) fn is_scattered(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 10;
    const CASE_RUN_MAX: usize = 3;
    const WORDINESS_MAX: f32 = 0.4;
    let c = Classes::of(value);
    let alike = |a: &u8, b: &u8| {
        a.is_ascii_lowercase() && b.is_ascii_lowercase()
            || a.is_ascii_uppercase() && b.is_ascii_uppercase()
    };
    let plain = value.iter().filter(|b| b.is_ascii_alphanumeric()).count();
    let called = value
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
    let call = value[called.count()..].starts_with(b"(") && value.ends_with(b")");
    value.len() >= BYTES_MIN
        && c.lower >= 2
        && c.upper >= 2
        && c.digit >= 2
        && plain * 10 >= value.len() * 7
        && !call
        && !value.iter().any(|b| b"./\\\"'".contains(b))
        && value.chunk_by(alike).all(|run| run.len() <= CASE_RUN_MAX)
        && wordiness(value) < WORDINESS_MAX
}

/// `ENC[AES256_GCM,data:...,iv:...,tag:...,type:str]`, `ENC[PKCS7,MII...]`: what SOPS and eyaml have encrypted. Whoever wrote
/// `ENC[` before a password has not.
fn is_encrypted(value: &[u8]) -> bool {
    const SEALED_BYTES_MIN: usize = 200;
    let Some(sealed) = value
        .strip_prefix(b"ENC[")
        .and_then(|v| v.strip_suffix(b"]"))
    else {
        return false;
    };
    let has = |part: &str| memchr::memmem::find(sealed, part.as_bytes()).is_some();
    let base64 = |b: &u8| b.is_ascii_alphanumeric() || b"+/=".contains(b);
    let sops = sealed.starts_with(b"AES256_GCM,data:") && has(",iv:") && has(",tag:");
    let sealed = [&b"PKCS7,"[..], b"GPG,"]
        .iter()
        .find_map(|head| sealed.strip_prefix(*head));
    sops || sealed.is_some_and(|body| body.len() >= SEALED_BYTES_MIN && body.iter().all(base64))
}

/// `0x6B17...1d0F`: twenty bytes are where somebody or some contract is reached; keys have more.
fn is_account_of_a_chain(value: &[u8]) -> bool {
    const DIGITS: usize = 40;
    let digits = value.strip_prefix(b"0x");
    digits.is_some_and(|d| d.len() == DIGITS && d.iter().all(u8::is_ascii_hexdigit))
}

/// `2024-05-03T10:11:12Z`, `2024-05-03`, `v3.2.1`: when something was changed, or what of it.
fn is_moment(value: &[u8]) -> bool {
    const BYTES_MAX: usize = 35;
    let digit = |at: usize| value.get(at).is_some_and(u8::is_ascii_digit);
    let of = |b: &u8| b.is_ascii_digit() || b"-:.+TZtz".contains(b);
    let day = value.len() >= 10
        && (0..4).chain(5..7).chain(8..10).all(digit)
        && value[4] == b'-'
        && value[7] == b'-';
    let body = value.strip_prefix(b"v").unwrap_or(value);
    let version = body.contains(&b'.')
        && body
            .split(|b| *b == b'.')
            .all(|part| (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit));
    value.len() <= BYTES_MAX && (day && value.iter().all(of) || version || is_release(body))
        || is_clock(value)
}

/// `25:35.123456789Z`, `44:49+0200`: the rest of a time whose hour was taken for a name. Behind its zone the next line may be joined.
fn is_clock(value: &[u8]) -> bool {
    /// A point and milliseconds.
    const FRACTION_MIN: usize = 4;
    let two = |at: usize| {
        let digits = value.get(at..at + 2);
        digits.is_some_and(|d| (b'0'..b'6').contains(&d[0]) && d[1].is_ascii_digit())
    };
    if !two(0) || value.get(2) != Some(&b':') || !two(3) {
        return false;
    }
    let rest = &value[5..];
    let fraction = match rest.split_first() {
        Some((b'.' | b',', digits)) => 1 + digits.iter().take_while(|b| b.is_ascii_digit()).count(),
        _ => 0,
    };
    match &rest[fraction..] {
        [b'Z'] => true,
        [b'Z', ..] => fraction >= FRACTION_MIN,
        [b'+' | b'-', zone @ ..] => {
            zone.len() <= 5 && zone.iter().all(|b| b.is_ascii_digit() || *b == b':')
        }
        rest => rest.is_empty(),
    }
}

/// `2.2.7.Final|lib`, `4.1.100.Final-redhat1`, `5.3.0-M1`: three numbers, and words as releases are called.
fn is_release(value: &[u8]) -> bool {
    const NUMBERS: usize = 3;
    const NUMBER_BYTES: std::ops::RangeInclusive<usize> = 1..=3;
    let mut rest = value;
    for nth in 0..NUMBERS {
        let Some(number) = rest.strip_prefix(if nth == 0 { &b""[..] } else { b"." }) else {
            return false;
        };
        let len = number.iter().take_while(|b| b.is_ascii_digit()).count();
        if !NUMBER_BYTES.contains(&len) {
            return false;
        }
        rest = &number[len..];
    }
    // A word is all in one case but for its first letter, and has a short number behind it at most.
    let word = |part: &[u8]| {
        let letters = part.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let (letters, number) = part.split_at(letters);
        let rest = letters.get(1..).unwrap_or_default();
        let cased =
            rest.iter().all(u8::is_ascii_lowercase) || letters.iter().all(u8::is_ascii_uppercase);
        cased && number.len() <= *NUMBER_BYTES.end() && number.iter().all(u8::is_ascii_digit)
    };
    rest.split(|b| b".-_+|:/<>,;".contains(b)).all(word)
}

/// `argon2id`, `pbkdf2-sha256`, `Argon2d, Argon2i, and`: how a password is kept.
fn is_way_to_hash(value: &[u8]) -> bool {
    const WAYS: [&[u8]; 9] = [
        b"argon2", b"bcrypt", b"scrypt", b"pbkdf2", b"sha256", b"sha512", b"sha1", b"md5", b"ssha",
    ];
    const BYTES_MAX: usize = 40;
    if value.len() > BYTES_MAX {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    let kind = |rest: &[u8]| matches!(rest, b"" | b"id" | b"i" | b"d");
    let way = |part: &[u8]| {
        WAYS.iter()
            .any(|way| part.strip_prefix(*way).is_some_and(kind))
    };
    let mut parts = lower
        .split(|b| b"-_:,/ ()".contains(b))
        .filter(|part| !part.is_empty());
    parts.next().is_some_and(way)
        && parts.all(|part| way(part) || kind(part) || matches!(part, b"and" | b"or" | b"password"))
}

/// `Снегирь-Маяк_31`: letters of another script in both cases with a number and a sign.
fn is_foreign(value: &[u8]) -> bool {
    const CHARS_MAX: usize = 40;
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let any = |is: fn(char) -> bool| text.chars().any(is);
    text.chars().take(CHARS_MAX + 1).count() <= CHARS_MAX
        && value.len() >= 8
        && !any(|c| c.is_whitespace() || c.is_control())
        && any(char::is_uppercase)
        && any(char::is_lowercase)
        && any(|c| !c.is_ascii() && c.is_alphabetic())
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_punctuation)
        && !value.iter().any(|b| b"()[]{}<>=,;:/\\".contains(b))
}

/// `Kråkbo-vind5` without its marks, if it has a number or a sign as passwords have: words of other languages have neither.
fn in_ascii(value: &[u8]) -> Option<Vec<u8>> {
    const BYTES_MAX: usize = 80;
    let text = std::str::from_utf8(value)
        .ok()
        .filter(|text| text.len() <= BYTES_MAX)?;
    let bare = |c: char| match c.is_ascii_graphic() {
        true => Some(c as u8),
        false => crate::decode::bare_letter(c).map(|c| c as u8),
    };
    let ascii: Vec<u8> = text.chars().map(bare).collect::<Option<_>>()?;
    let cased = ascii.iter().any(u8::is_ascii_uppercase);
    let signed = cased && chosen::is_joined_by_sign(&ascii);
    (ascii.iter().any(u8::is_ascii_digit) || signed).then_some(ascii)
}

/// What generators make: long, mixed, no words.
fn generated(value: &[u8], strong: bool) -> bool {
    if reference(value) || value.len() > 4096 {
        return false;
    }
    if is_uuid(value) || !strong && is_named_hash(value) {
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
    if brackets && signs < 2 && !is_scattered(value) {
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
    let mixed = c.lower >= 2 && c.upper >= 2 && c.changes >= 6;
    let drawn = mixed && (c.digit >= 2 || c.digit == 1 && wordiness(value) < 0.3);
    let len_min = match strong {
        true if drawn && wordiness(value) < 0.3 => 10,
        true if drawn => 12,
        true => 14,
        false => 20,
    };
    value.len() >= len_min
        && shannon(value) >= if strong { 3.0 } else { 3.3 }
        && c.changes >= 4
        && !is_identifier(value, c)
        && !is_dated(value)
        && (wordiness(value) < 0.72 || c.changes as usize * 3 > value.len())
}

/// `linux-node-modules-7ba62e74...`: words and a hash behind them, as caches name what they keep.
fn is_named_hash(value: &[u8]) -> bool {
    let mut parts = value.rsplit(|b| *b == b'-');
    let hash = |part: &[u8]| part.len() >= 32 && part.iter().all(u8::is_ascii_hexdigit);
    let word = |part: &&[u8]| part.len() >= 3 && part.iter().all(u8::is_ascii_alphabetic);
    parts.next().is_some_and(hash) && parts.filter(word).count() >= 2
}

/// People give passwords of their own to what asks for a key, too. As a key can be anything, only what no name looks like:
/// a word with figures and a sign (`Summer24!`, `L3m0n@46`), or words with a number as for a password.
fn is_chosen_key(value: &[u8]) -> bool {
    const SIGNS: &[u8] = b"!@#$%^&*?";
    if value.len() < 8 || value.len() > 40 || reference(value) || is_dated(value) {
        return false;
    }
    let c = Classes::of(value);
    let others = value.iter().filter(|b| !b.is_ascii_alphanumeric());
    let signed = c.lower >= 2
        && c.upper >= 1
        && c.digit >= 2
        && c.other >= 1
        && others
            .clone()
            .all(|b| SIGNS.contains(b) || b"-_.".contains(b))
        && others.clone().any(|b| SIGNS.contains(b))
        && value[0].is_ascii_alphabetic();
    signed && !crate::plain::is_plain(value, true)
        || is_pair(value)
        // `markup.heading.1.markdown`: what parts of a program are called has dots.
        || !value.contains(&b'.') && (is_drawn(value) || is_listed(value, 4))
}

/// Longest password of digits alone: numbers of invoices and the like are longer.
const PIN_BYTES_MAX: usize = 32;
/// Of one that is not in quotes.
const BARE_PIN_BYTES: std::ops::RangeInclusive<usize> = 8..=10;

/// What people choose and machines make.
fn password(value: &[u8], quoted: bool) -> Option<u8> {
    let c = Classes::of(value);
    if is_titled(value) || is_worded(value) {
        return Some(60);
    }
    if value.len() < 6
        || value.len() > 256
        || is_constants_name(value)
        || !quoted && is_variable(value)
        || reference(value)
        || crate::plain::is_plain(value, quoted)
        || c.letters() == 0 && c.other == 0 && value.len() < 8
    {
        return None;
    }
    let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    if value.len() <= 18 && value.strip_prefix(b"0x").is_some_and(is_number) {
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
            .any(|b| matches!(b, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b';'))
        && !is_scattered(value)
        && !is_bracketed(value);
    let told = without_last_sign(value);
    if is_phrase(told)
        || is_drawn(told)
        || is_pair(told)
        || chosen::is_pair_and_figure(told)
        || is_pair_of_numbered(told)
        || is_numbered(told)
        || is_listed(told, 3)
        || is_word_and_number(told)
        || quoted && signs::is_pair_of_counted(value)
        || is_own_words(value, false) && !is_dated(value) && (quoted || !is_member(value))
        || is_foreign_words(value)
            && !is_dated(value)
            && (quoted || !is_member(value) || c.upper > 0 && c.digit > 0)
    {
        return Some(60);
    }
    if code || told.len() == value.len() && is_identifier(value, c) {
        return None;
    }
    if c.letters() == 0 {
        // Without quotes a day or a count stands so as well.
        let bare = || {
            let day = value.starts_with(b"19") || value.starts_with(b"20");
            BARE_PIN_BYTES.contains(&value.len()) && !day && !value.ends_with(b"000")
        };
        return ((quoted && (6..=PIN_BYTES_MAX).contains(&value.len()) || bare()) && c.other == 0)
            .then_some(50);
    }
    (kinds >= 3
        || (kinds == 2 && (c.digit > 0 || value.len() >= 10))
        || (value.len() >= 8 && wordiness(value) < 0.4))
        .then_some(65)
}

/// Chosen by a person, and nothing that things are named like.
pub(crate) fn is_chosen(value: &[u8]) -> bool {
    is_titled(value) || is_worded(value) || is_drawn(value) || is_pair(value)
}

/// `Guide.Lonely53`: two words with capitals, a sign between them, and a number. What a program calls a member has no such number.
/// With a year the second word need not have a capital: `Copper-lantern2023`.
fn is_titled(value: &[u8]) -> bool {
    const WORD_MIN: usize = 3;
    let value = without_last_sign(value);
    let digits = digits_behind(value);
    let words = &value[..value.len() - digits];
    let mut parts = words.split(|b| b"._-+=~".contains(b));
    let word = |part: &[u8]| part.len() >= WORD_MIN && part[1..].iter().all(u8::is_ascii_lowercase);
    let titled = |part: &[u8]| word(part) && part[0].is_ascii_uppercase();
    let year = digits == 4 && matches!(&value[words.len()..words.len() + 2], b"19" | b"20");
    (2..=4).contains(&digits)
        && parts.next().is_some_and(titled)
        && parts
            .next()
            .is_some_and(|part| titled(part) || year && word(part))
        && parts.next().is_none()
}

/// `Lantern_Copper84_`: people hang a sign behind the number, which names do not have.
fn without_last_sign(value: &[u8]) -> &[u8] {
    match value {
        [rest @ .., b'-' | b'_' | b'.'] if rest.last().is_some_and(u8::is_ascii_digit) => rest,
        _ => value,
    }
}

/// How many digits a value ends with.
fn digits_behind(value: &[u8]) -> usize {
    let behind = value.iter().rev().take_while(|b| b.is_ascii_digit());
    behind.count()
}

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
        "[type=",
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

/// What public keys begin with in base64 (RFC 5280, 4.1; RFC 5480, 2; RFC 8410, 4): RSA of 1,024, 2,048, 3,072 and 4,096 bits, P-256,
/// P-384, Ed25519.
const PUBLIC_KEYS: [&str; 7] = [
    "MIGfMA0GCSqGSIb3DQEBAQUAA4GNAD",
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A",
    "MIIBojANBgkqhkiG9w0BAQEFAAOCAY8A",
    "MIICIjANBgkqhkiG9w0BAQEFAAOCAg8A",
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE",
    "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE",
    "MCowBQYDK2Vw",
];

/// What an address is taken of, or the name of an anchor.
fn is_place(text: &[u8]) -> bool {
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"_-.:>[]()*&".contains(b);
    text.iter().all(part)
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
            && !is_scattered(value)
            && !signs::is_chosen_behind(b'@', value)
        || value.strip_prefix(b"&").is_some_and(is_place)
            && !is_scattered(value)
            && !signs::is_chosen_behind(b'&', value)
        || files::is_file(value)
        || is_quoted_pattern(value)
        || refers(value)
        || starts("%2F")
        || starts(".%2F")
        || starts("..%2F")
        || starts("arn:")
        || starts("vault:")
        || starts("op:")
        || starts("secret/")
        || starts("secrets.")
        || starts("data:")
        || is_sealed(value)
        || PUBLIC_KEYS.iter().any(|head| starts(head))
        // What Mapbox calls a public token.
        || starts("pk.eyJ")
        // What Stripe and others call publishable keys.
        || starts("pk_live_")
        || starts("pk_test_")
        || starts("sha256:")
        || starts("hmac-sha")
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

/// `qr/^[A-Za-z0-9]{20,40}$/x`, `m{[0-9a-f]{32}}`: a pattern, as Perl writes it.
fn is_quoted_pattern(value: &[u8]) -> bool {
    const FLAGS_MAX: usize = 6;
    let quoted = value
        .strip_prefix(b"qr")
        .or_else(|| value.strip_prefix(b"m"));
    let Some([open, body @ ..]) = quoted else {
        return false;
    };
    let close = match open {
        b'/' | b'!' | b'|' | b'#' | b'~' => *open,
        b'{' => b'}',
        b'(' => b')',
        b'[' => b']',
        _ => return false,
    };
    let flags = body
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_lowercase())
        .count();
    let body = &body[..body.len() - flags];
    // Sets, counts and groups are what a pattern is for.
    let of_pattern = |inner: &[u8]| inner.iter().any(|b| b"[]{}()\\^*".contains(b));
    flags <= FLAGS_MAX
        && body
            .split_last()
            .is_some_and(|(last, inner)| *last == close && of_pattern(inner))
}

/// What `kubeseal` makes for a cluster that alone can read it (Sealed Secrets: the length of what RSA-OAEP made with a key of 4,096
/// bits, then that): far longer than keys are. A rule's pattern may have taken its first 80 bytes only.
fn is_sealed(value: &[u8]) -> bool {
    const BYTES_MIN: usize = 78;
    let base64 = |b: &u8| b.is_ascii_alphanumeric() || b"+/=".contains(b);
    value.len() >= BYTES_MIN
        && value.starts_with(b"Ag")
        && matches!(value[2], b'A'..=b'D')
        && value.iter().all(base64)
}

/// `Settings.item_2`: what code calls the member of something.
fn is_member(value: &[u8]) -> bool {
    let name = |part: &[u8]| {
        part.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
            && part.first().is_some_and(|b| !b.is_ascii_digit())
    };
    value.contains(&b'.') && value.split(|b| *b == b'.').all(name)
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
        let tail_digits = digits_behind(part);
        // `Win32`: one capital, and it is the first letter.
        let titled = letters.upper == 1 && part[0].is_ascii_uppercase();
        let plain = letters.digit as usize == tail_digits
            && (letters.upper == 0 || letters.lower == 0 || titled || humps(part));
        words += i32::from(plain && (part.len() <= 3 || wordiness(part) > 0.5));
    }
    parts > 0 && words == parts
}

/// `gpt-4o-2024-08-06`, `backup.20240806.v2`: a name with a day in it.
fn is_dated(value: &[u8]) -> bool {
    /// Of a name that somebody gave.
    const PARTS_MAX: usize = 12;
    const NUMBERED_MAX: usize = 2;
    let mut all = [&value[..0]; PARTS_MAX];
    let mut len = 0;
    for part in value.split(|b| b"-_.:/".contains(b)) {
        if len == PARTS_MAX {
            return false;
        }
        all[len] = part;
        len += 1;
    }
    let parts = &all[..len];
    let Some(day) = (0..len).find_map(|at| day_at(parts, at)) else {
        return false;
    };
    let (before, behind) = (&parts[..day.start], &parts[day.end..]);
    let others = || before.iter().chain(behind);
    let numbered = others().filter(|part| part.iter().any(u8::is_ascii_digit));
    others().any(|part| part.len() > 1 && part[0].is_ascii_alphabetic())
        && others().all(|part| is_named(part))
        && numbered.count() <= NUMBERED_MAX
}

/// The parts of a day that begins with the one at `at`: `20240806`, or `2024`, `08`, `06`.
fn day_at(parts: &[&[u8]], at: usize) -> Option<std::ops::Range<usize>> {
    let digits = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let two = |part: &&[u8]| part.len() == 2 && digits(part);
    let year = parts[at];
    if !digits(year) || !year.starts_with(b"20") && !year.starts_with(b"19") {
        return None;
    }
    match (year.len(), parts.get(at + 1..at + 3)) {
        (8, _) => Some(at..at + 1),
        (4, Some(rest)) if rest.iter().all(two) => Some(at..at + 3),
        _ => None,
    }
}

/// `backup`, `v2`, `4o`, `Model3`: a word with a number behind it, or a number with a letter.
fn is_named(part: &[u8]) -> bool {
    let figures =
        |text: &mut dyn Iterator<Item = &u8>| text.take_while(|b| b.is_ascii_digit()).count();
    let (head, tail) = (figures(&mut part.iter()), figures(&mut part.iter().rev()));
    if part.len() <= 3 && head > 0 {
        return head == part.len() || head + 1 == part.len() && part[head].is_ascii_alphabetic();
    }
    let word = &part[..part.len() - tail];
    let cased = word.iter().all(u8::is_ascii_uppercase) || humps(word);
    let plain = word.iter().all(u8::is_ascii_alphabetic) && cased;
    tail <= 3 && plain && (part.len() <= 3 || humps(word) && wordiness(word) > 0.4)
}

/// Would it be taken for a secret whatever it is called? One that was generated, or has signs in it as passwords have.
pub(crate) fn stands_alone(value: &[u8]) -> bool {
    let c = Classes::of(value);
    let sign = value.iter().any(|b| b"!@#$^&*?~+=".contains(b));
    generated(value, true) || sign && c.letters() > 0 && c.digit > 0 && value.len() >= 8
}

/// A password that a sentence tells of without a sign before it: nothing else that sentences have in them.
pub(crate) fn is_told(value: &[u8]) -> bool {
    const BYTES: std::ops::RangeInclusive<usize> = 7..=64;
    // A sentence ends.
    let dots = value.iter().rev().take_while(|b| b".,;:".contains(b));
    let value = &value[..value.len() - dots.count()];
    if value.is_empty() {
        return false;
    }
    if !value.is_ascii() {
        return is_own_words(value, true) || in_ascii(value).is_some_and(|ascii| is_told(&ascii));
    }
    let c = Classes::of(value);
    let hex = value.iter().all(|b| b.is_ascii_hexdigit() || *b == b'-');
    let mail = is_mail(value);
    let other = || {
        is_dated(value)
            || is_moment(value)
            || is_way_to_hash(value)
            || is_assignment(value)
            || is_argument(value)
            || is_option(value)
            || is_package(value)
            || is_query(value)
            || is_numbered_notice(value)
            || is_certificate_type(value)
            || is_record_id(value)
            || memchr::memmem::find(value, b"://").is_some()
    };
    if !BYTES.contains(&value.len()) || hex || mail || other() {
        return false;
    }
    let signed = value.iter().any(|b| b"!@#$%^&*?".contains(b)) && value[0] != b'@';
    let cased = c.lower >= 2 && c.upper >= 1 && c.digit >= 2;
    let odd = !is_identifier(value, c) || c.digit >= 4;
    let plain = value.iter().all(u8::is_ascii_alphanumeric);
    // `Tramonto1135_`: no name ends so.
    let signed_off = matches!(value.last(), Some(b'_' | b'+' | b'=' | b'~'))
        && is_word_and_number(&value[..value.len() - 1]);
    is_chosen(value)
        || is_own_words(value, true) && !is_member(value)
        || is_foreign_and_number(value)
        || is_foreign_words(value)
            && (!is_member(value) || c.upper > 0 && c.digit > 0)
            && value.iter().any(|b| b"0123456789+!&#*@$%^?~=".contains(b))
        || is_numbered(value)
        || is_parted_by_number(value)
        || is_numbered_inside(value)
        || signed_off
        || signed && c.letters() >= 2 && c.digit >= 1
        || cased && plain && odd && c.changes >= 3
        || c.digit >= 3 && stands_alone(value)
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
            "kbp6LFgdnmRQ-2024-08-06",
            "x9k-2mq-v7z-w3t-20240601",
            "abQ-7Kx-9Zp-2Lm-4Vw-20240806",
            "prod-Zq7-K8x-2024-06-01-M4p",
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
            "gpt-4o-2024-08-06",
            "nightly-backup_20240806.v2",
            "claude-3-5-sonnet-20241022",
            "exports/2024/01/77c66f29-5f06-ecee-c0a1-c291bca8b8ba.parquet",
            "img/9f8c27d41b6e5a30c2d4.png",
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
            "Turbin-Hall.2",
            "Kadakas_Meresool8",
            "Zmeură&Cozonac12",
            "Kalyna.Bilya.Richky7",
            "Kråkbo-vind5",
            "Çınaraltı-Simit58",
            "Gångjärn*Olja",
            "Mnazi-Dau+Pwani3",
            "horse-Battery42",
            "Midnattssol365",
            "brezel7412",
            "fossekall19",
            "Skomaker.Bunn3",
            "Gruvlampa.442-Z",
            "Ruska_77-lampi",
            "Brosme_hav_14",
            "gAmle_Erik5",
            "hakkeSpett_208",
            "hakkebrett_60",
            "кисель-дом-58",
            "fløteis-8-kuler",
            "Wiesensalbei-im-Juni",
            "klappStuhl5",
            "lakritz_Schnecke",
            "gurke-Salat_kalt",
            "Fledermaus.Turm",
            "Kiebitz+Ei",
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
            "String!",
            "[String!]!",
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
            "Windows_Server_2",
            "employee42",
            "Section12",
            "redis-Cluster42",
            "Settings.Value2",
            "Forms.Password1",
            "param_12",
            "notifications.v2",
            "oublié",
            "zurücksetzen",
            "contraseña_nueva",
            "Größe/Länge",
            "vergeßlich-heute",
        ] {
            assert!(
                judge(v.as_bytes(), Promise::Password, true).is_none(),
                "{v}"
            );
        }
    }
}
