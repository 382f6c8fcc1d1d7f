//! What programs and people who describe them write behind a word for a secret: arguments, members, options, packages.

use super::{digits_behind, humps, is_moment, is_uuid};
use crate::names::Promise;

/// `hide_input=True`: a constant that is given to another name than that of the password.
pub(super) fn is_constant(value: &[u8]) -> bool {
    const CONSTANTS: [&[u8]; 8] = [
        b"True", b"False", b"None", b"true", b"false", b"null", b"nil", b"nullptr",
    ];
    let of_program = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_';
    given(value).is_some_and(|(name, told)| {
        name.first().is_some_and(u8::is_ascii_lowercase)
            && name.iter().all(of_program)
            && CONSTANTS.contains(&told)
    })
}

/// `correlation_id=a4f1...`, `jwt.expiration=3600000`: a name of two words is one of a program, and says itself if it is that of a
/// secret. What people hang on two words with such a sign is shorter than numbers and ids of programs are.
pub(super) fn is_argument(value: &[u8]) -> bool {
    const NUMBER_BYTES_MIN: usize = 5;
    const ID_BYTES_MIN: usize = 16;
    let Some((name, told)) = given(value) else {
        return false;
    };
    let part = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(b);
    let number = told.len() >= NUMBER_BYTES_MIN && told.iter().all(u8::is_ascii_digit);
    let id = told.len() >= ID_BYTES_MIN && told.iter().all(u8::is_ascii_hexdigit);
    name.first().is_some_and(u8::is_ascii_lowercase)
        && name.iter().all(part)
        && name.iter().any(|b| b"_.".contains(b))
        && (number || id || is_uuid(told) || is_moment(told))
        && crate::names::promise(name) == Promise::Nothing
}

/// What stands before the first `=`, and behind it without what ends a call or a list.
fn given(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let sign = memchr::memchr(b'=', value)?;
    let told = &value[sign + 1..];
    let ends = told.iter().rev().take_while(|b| b"),;".contains(b));
    Some((&value[..sign], &told[..told.len() - ends.count()]))
}

/// `ctx.flags.password`, `result.canary?.pass`: the member of something, called as the name is that it stands behind.
pub(super) fn is_property(value: &[u8]) -> bool {
    let name = |part: &[u8]| {
        let part = part.strip_suffix(b"?").unwrap_or(part);
        let part = part.strip_suffix(b"!").unwrap_or(part);
        let of = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
        !part.is_empty() && part.iter().all(of) && humps(part)
    };
    let Some(dot) = memchr::memrchr(b'.', value) else {
        return false;
    };
    let (first, last) = (&value[..dot], &value[dot + 1..]);
    first.first().is_some_and(u8::is_ascii_lowercase)
        && value.split(|b| *b == b'.').all(name)
        && crate::names::promise(last) >= Promise::Strong
}

/// `rsa.PrivateKey.load_pkcs1`, `x25519.X25519PrivateKey`: something in a module, with a word for what is secret in its name.
pub(super) fn is_in_module(value: &[u8]) -> bool {
    const PARTS_MAX: usize = 6;
    const TYPES: [&[u8]; 6] = [
        b"Key",
        b"Token",
        b"Secret",
        b"Password",
        b"Credentials",
        b"Passphrase",
    ];
    let of = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    // A name in code has its figures together.
    let name = |part: &[u8]| {
        let figures = part
            .split(|b| !b.is_ascii_digit())
            .filter(|run| !run.is_empty());
        part.first().is_some_and(u8::is_ascii_alphabetic)
            && part.iter().all(of)
            && figures.count() <= 1
    };
    let parts = || value.split(|b| *b == b'.');
    let secret = |part: &[u8]| {
        TYPES.iter().any(|end| part.ends_with(end))
            || humps(part) && crate::names::promise(part) >= Promise::Strong
    };
    (2..=PARTS_MAX).contains(&parts().count())
        && value[0].is_ascii_lowercase()
        && parts().all(name)
        && parts().skip(1).any(secret)
}

/// `X25519PrivateKey,X448PublicKey`: types that are listed.
pub(super) fn is_list_of_types(value: &[u8]) -> bool {
    const ENDS: [&[u8]; 4] = [b"Key", b"Keys", b"Token", b"Secret"];
    let named = |part: &[u8]| {
        let part = part.trim_ascii();
        part.first().is_some_and(u8::is_ascii_uppercase)
            && part.iter().all(u8::is_ascii_alphanumeric)
            && ENDS.iter().any(|end| part.ends_with(end))
    };
    let mut parts = value.split(|b| *b == b',');
    value.contains(&b',') && parts.next().is_some_and(named) && parts.next().is_some_and(named)
}

/// `PyInit_pwd`, `!!ownPass`, `CFStringRef`: names of code that stand where a value does, in letters alone.
pub(super) fn is_name(value: &[u8]) -> bool {
    let body = value.strip_prefix(b"!").unwrap_or(value);
    let body = body.strip_prefix(b"!").unwrap_or(body);
    let denied = body.len() < value.len();
    // `scmVersion=`, as a completion offers it.
    if let Some(name) = body.strip_suffix(b"=") {
        return name.iter().all(u8::is_ascii_alphabetic) && humps(name) && name.len() >= 3;
    }
    if body.len() < 3 || !body.iter().all(|b| b.is_ascii_alphabetic() || *b == b'_') {
        return false;
    }
    let last = body.rsplit(|b| *b == b'_').next().unwrap_or_default();
    let called = last.len() < body.len() && crate::names::promise(last) >= Promise::Strong;
    denied && humps(body) || called || is_prefixed_type(body)
}

/// `CURLOPT_READDATA`: words in capitals, as constants are called.
pub(super) fn is_constants_name(value: &[u8]) -> bool {
    names_in(value, u8::is_ascii_uppercase).is_some_and(|words| words > 1)
}

/// `proxy_auth`: two or three words, as variables are called; a phrase that somebody chose has more.
pub(super) fn is_variable(value: &[u8]) -> bool {
    names_in(value, u8::is_ascii_lowercase).is_some_and(|words| (2..=3).contains(&words))
}

/// How many words of these letters a name has, with `_` between them.
fn names_in(value: &[u8], is: fn(&u8) -> bool) -> Option<usize> {
    let words = || value.split(|b| *b == b'_');
    let is_word = |word: &[u8]| word.len() > 1 && word.iter().all(is);
    words().all(is_word).then(|| words().count())
}

/// `CFStringRef`: two or three capitals for whose it is, and words.
fn is_prefixed_type(name: &[u8]) -> bool {
    const ENDS: [&[u8]; 16] = [
        b"Ref", b"Ptr", b"String", b"Data", b"Buffer", b"Type", b"Info", b"Handle", b"Value",
        b"Object", b"Array", b"Bytes", b"Flags", b"Options", b"Result", b"Error",
    ];
    let capitals = name.iter().take_while(|b| b.is_ascii_uppercase()).count();
    (3..=4).contains(&capitals)
        && ENDS.iter().any(|end| name.ends_with(end))
        && name.len() > capitals + 4
}

/// `Uint8Array`, `uint8_t`: types that have a number in them.
pub(super) fn is_numbered_type(value: &[u8]) -> bool {
    const BITS: [&[u8]; 4] = [b"8", b"16", b"32", b"64"];
    let letters = value.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let (kind, rest) = value.split_at(letters);
    let kinds: [&[u8]; 6] = [b"Uint", b"Int", b"Float", b"BigInt", b"BigUint", b"uint"];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (bits, end) = rest.split_at(digits);
    (kinds.contains(&kind) || kind == b"int")
        && BITS.contains(&bits)
        && matches!(end, b"Array" | b"ClampedArray" | b"_t" | b"")
}

/// `example.com:1234/foo/bar?baz`: a host and a path, without the scheme of their URL.
pub(super) fn is_host_and_path(value: &[u8]) -> bool {
    let Some(slash) = memchr::memchr(b'/', value) else {
        return false;
    };
    let host = &value[..slash];
    let name = match memchr::memchr(b':', host) {
        Some(at) if host[at + 1..].iter().all(u8::is_ascii_digit) => &host[..at],
        Some(_) => return false,
        None => host,
    };
    let last = name.rsplit(|b| *b == b'.').next().unwrap_or_default();
    name.contains(&b'.')
        && (2..=6).contains(&last.len())
        && last.iter().all(u8::is_ascii_lowercase)
        && name
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(b))
}

/// `X509Result`: a type of a library for certificates.
pub(super) fn is_certificate_type(value: &[u8]) -> bool {
    let rest = value
        .strip_prefix(b"X509")
        .or_else(|| value.strip_prefix(b"x509"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && rest.iter().all(u8::is_ascii_alphabetic) && humps(rest)
    })
}

/// `CVE-2019-13117`, `PKCS#10`: what a standard or a hole is called.
pub(super) fn is_numbered_notice(value: &[u8]) -> bool {
    const WHO: [&[u8]; 12] = [
        b"CVE", b"CWE", b"RHSA", b"RHBA", b"DSA", b"DLA", b"USN", b"RFC", b"ISO", b"PKCS", b"PKSC",
        b"FIPS",
    ];
    let capitals = value.iter().take_while(|b| b.is_ascii_uppercase()).count();
    let (who, number) = value.split_at(capitals);
    WHO.contains(&who)
        && number
            .iter()
            .all(|b| b.is_ascii_digit() || b"-#:.,)".contains(b))
        && number.iter().any(u8::is_ascii_digit)
}

/// `(?:[^:]+)`, `[^/]*`: a pattern.
pub(super) fn is_pattern(value: &[u8]) -> bool {
    let heads: [&[u8]; 5] = [b"(?:", b"(?P<", b"(?i", b"[^", b"^["];
    let sets: [&[u8]; 4] = [b"[0-9A-F", b"[0-9a-f", b"[A-Za-z", b"[a-zA-Z"];
    heads.iter().any(|head| value.starts_with(head))
        || sets
            .iter()
            .any(|set| memchr::memmem::find(value, set).is_some())
}

/// `SOFTWARE\Microsoft\Windows`: a path of three parts and more, as a registry has it.
pub(super) fn is_registry_path(value: &[u8]) -> bool {
    let part = |part: &[u8]| {
        !part.is_empty()
            && part
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || b"-_. ".contains(b))
    };
    let mut parts = value.split(|b| *b == b'\\').filter(|part| !part.is_empty());
    let first = parts.clone().next();
    first.is_some_and(|first| first.len() >= 4 && first.iter().all(u8::is_ascii_alphabetic))
        && parts.clone().count() >= 3
        && parts.all(part)
}

/// `\xa1\xa2`: a few bytes that are written as such, for what no text has.
pub(super) fn is_few_bytes(value: &[u8]) -> bool {
    const BYTES_MAX: usize = 4;
    let escape =
        |code: &[u8]| code.starts_with(b"\\x") && code[2..].iter().all(u8::is_ascii_hexdigit);
    value.len() <= 4 * BYTES_MAX && value.len().is_multiple_of(4) && value.chunks(4).all(escape)
}

/// `characters&n=1`: the end of a query.
pub(super) fn is_query(value: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'&', value) else {
        return false;
    };
    let (word, rest) = (&value[..at], &value[at + 1..]);
    let name = rest
        .iter()
        .take_while(|b| b.is_ascii_lowercase() || **b == b'_')
        .count();
    word.iter().all(u8::is_ascii_alphabetic) && name > 0 && rest.get(name) == Some(&b'=')
}

/// `defaultApiKey$1`: a variable with the number that a bundler hung on it where two had the same name.
pub(super) fn is_renamed(value: &[u8]) -> bool {
    const DIGITS_MAX: usize = 2;
    let digits = digits_behind(value);
    let Some(name) = value[..value.len() - digits].strip_suffix(b"$") else {
        return false;
    };
    (1..=DIGITS_MAX).contains(&digits)
        && name.first().is_some_and(u8::is_ascii_lowercase)
        && name.iter().all(u8::is_ascii_alphabetic)
        && name.iter().any(u8::is_ascii_uppercase)
        && crate::names::promise(name) > Promise::Nothing
}

/// `cart:9f78c767a4fda528`: what a store keeps things under, its kind and a number of it. Shorter than keys are.
pub(super) fn is_key_of_a_store(value: &[u8]) -> bool {
    const HEX_BYTES_MAX: usize = 24;
    let Some(sign) = memchr::memrchr(b':', value) else {
        return false;
    };
    let (kind, id) = (&value[..sign], &value[sign + 1..]);
    let plain = |b: &u8| b.is_ascii_lowercase() || b"_-:".contains(b);
    let person = |kind: &[u8]| {
        let last = kind.rsplit(|b| *b == b':').next().unwrap_or_default();
        matches!(
            last,
            b"user" | b"admin" | b"root" | b"api" | b"basic" | b"key"
        ) || crate::names::promise(last) > Promise::Nothing
    };
    kind.len() >= 2
        && kind.iter().all(plain)
        && !person(kind)
        && (id.len() <= HEX_BYTES_MAX && id.iter().all(u8::is_ascii_hexdigit) || is_uuid(id))
}

/// `-DBUILD_AVX512=1`, `--max-old-space=4096`: an option of a command.
pub(super) fn is_option(value: &[u8]) -> bool {
    let Some(name) = value.strip_prefix(b"-") else {
        return false;
    };
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let Some(sign) = memchr::memchr(b'=', name) else {
        return false;
    };
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"_-.".contains(b);
    let words = name[..sign].iter().any(|b| b"_-".contains(b));
    sign >= 2 && words && name[0].is_ascii_alphabetic() && name[..sign].iter().all(part)
}

/// `python3-precis-i18n`: a package, called after what it is for with a number, or after a word that is shortened by one.
pub(super) fn is_package(value: &[u8]) -> bool {
    const MADE_FOR: [&[u8]; 10] = [
        b"python",
        b"php",
        b"lua",
        b"qt",
        b"gtk",
        b"gir",
        b"ruby",
        b"postgresql",
        b"llvm",
        b"openjdk",
    ];
    const SHORTENED: [&[u8]; 6] = [b"i18n", b"l10n", b"a11y", b"k8s", b"o11y", b"g11n"];
    let part = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.+".contains(b);
    let mut parts = value.split(|b| *b == b'-');
    let made_for = |first: &[u8]| {
        let word = first.iter().take_while(|b| b.is_ascii_lowercase()).count();
        let number = |b: &u8| b.is_ascii_digit() || *b == b'.';
        word < first.len() && MADE_FOR.contains(&&first[..word]) && first[word..].iter().all(number)
    };
    value.contains(&b'-')
        && value.iter().all(part)
        && (parts.clone().next().is_some_and(made_for) || parts.any(|p| SHORTENED.contains(&p)))
}

#[cfg(test)]
mod tests {
    use crate::names::Promise;
    use crate::value::judge;

    #[test]
    fn what_programs_write_is_no_secret() {
        for (value, promise) in [
            ("markup.heading.1.markdown", Promise::Strong),
            ("regexp.charclass.keyword.operator", Promise::Strong),
            ("x25519.X25519PrivateKey", Promise::Weak),
            ("rsa.PrivateKey.load_pkcs1", Promise::Strong),
            ("X25519PrivateKey,X448PublicKey", Promise::Strong),
            ("Uint8Array", Promise::Password),
            ("CFStringRef", Promise::Passphrase),
            ("!!ownPass", Promise::Password),
            ("PyInit_pwd", Promise::Password),
            ("Win32_System_Memory", Promise::Strong),
            ("test-ca/rsa-2048/end.key", Promise::Strong),
            (".%2Ftests%2Fcerts%2Fclient.crt", Promise::Strong),
            ("SOFTWARE\\Microsoft\\VisualStudio\\SxS\\VC7", Promise::Weak),
            ("CVE-2019-13117", Promise::Strong),
            ("--proxy1.0", Promise::Password),
            ("\\fB\\-\\-help\\fR", Promise::Password),
            ("Argon2d,Argon2i,and", Promise::Password),
            ("(?:[^\\[\\]%:/?#]|%[a-fA-F0-9]{2})*", Promise::Strong),
            ("host[:port]", Promise::Password),
            ("\\xa1\\xa2", Promise::Password),
            ("example.com:1234/foo/bar?baz#quux", Promise::Password),
            ("X509Result", Promise::Password),
            ("scmVersion=", Promise::Password),
            ("CURLOPT_READDATA", Promise::Password),
            ("proxy_auth", Promise::Password),
            ("a8Kd93jf02mmLq91Zx7B.json", Promise::Weak),
            ("a8Kd93jf02mmLq91Zx7B-2.tar.gz", Promise::Weak),
        ] {
            let bare = judge(value.as_bytes(), promise, false);
            assert!(bare.is_none(), "{value} {bare:?}");
        }
    }

    #[test]
    fn what_people_choose_still_is_one() {
        for value in [
            "Lantern_Copper4471",
            "rV7pQ2mXk9Zt",
            "Kestr$8tund",
            "Walrus(57)candle",
            "maple.Nordwind.761",
            "Win32!Kestrel",
            "brook-lantern-nutmeg-96",
            "kestrel_river_lamp_moss",
        ] {
            let quoted = judge(value.as_bytes(), Promise::Password, true);
            assert!(quoted.is_some(), "{value}");
        }
    }
}
