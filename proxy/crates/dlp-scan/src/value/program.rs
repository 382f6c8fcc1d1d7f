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
