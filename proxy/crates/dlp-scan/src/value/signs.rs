//! Signs in a value: brackets where no code has them, variables that something else is put in for, and what only looks like a reference.

use crate::entropy::Classes;
use crate::names::{Promise, promise};

/// Shortest password that is told from code by where its brackets stand.
const BRACKETED_BYTES_MIN: usize = 8;

/// `Walrus(57)candle`, `fnfWRG4)UM2aNu`, `Kestr[8tundra`: letters in both cases, figures, and a bracket at a place where code has none. A word
/// stands right behind a closing one, or what stands in the brackets begins as a number does and goes on as a word.
pub(crate) fn is_bracketed(value: &[u8]) -> bool {
    const OPEN: &[u8] = b"([{<";
    const CLOSE: &[u8] = b")]}>";
    let c = Classes::of(value);
    let of = |b: &u8| b.is_ascii_alphanumeric() || b"!#%*+-.?@^_~$&;|".contains(b);
    let bracket = |b: &u8| OPEN.contains(b) || CLOSE.contains(b);
    let brackets = value.iter().filter(|b| bracket(b)).count();
    if value.len() < BRACKETED_BYTES_MIN
        || !(1..=3).contains(&brackets)
        || c.lower == 0
        || c.upper == 0
        || c.digit == 0
        || !value[0].is_ascii_alphanumeric()
        || !value.iter().all(|b| of(b) || bracket(b))
        || is_of_code(value)
    {
        return false;
    }
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let behind = value
        .windows(2)
        .any(|w| CLOSE.contains(&w[0]) && w[1].is_ascii_alphanumeric());
    let glued = |part: &[u8]| {
        let digits = part.iter().take_while(|b| b.is_ascii_digit()).count();
        let letters = part[digits..]
            .iter()
            .take_while(|b| b.is_ascii_alphabetic());
        digits > 0 && letters.count() > 3
    };
    let inner = value.split(|b| !word(b)).skip(1);
    // `Option<Str`: a type that broke off at a blank.
    let typed = value.contains(&b'<') && !value.split(|b| !word(b)).any(is_drawn_part);
    !typed && (behind || inner.into_iter().any(glued) || brackets == 1 && is_odd(value))
}

/// Does a part have figures between letters, or more capitals than names have and a figure?
fn is_drawn_part(part: &[u8]) -> bool {
    let c = Classes::of(part);
    let digit = part.iter().position(u8::is_ascii_digit);
    let parted = digit.is_some_and(|at| at > 0 && part[at..].iter().any(u8::is_ascii_alphabetic));
    parted || c.digit > 0 && c.lower > 0 && c.upper * 3 > c.lower
}

/// One bracket that nothing closes or opens, with something drawn beside it. What stands before the one of a call is its name.
fn is_odd(value: &[u8]) -> bool {
    const SIDE_BYTES_MIN: usize = 3;
    let Some(at) = value.iter().position(|b| b"()[]{}<>".contains(b)) else {
        return false;
    };
    let (before, behind) = (&value[..at], &value[at + 1..]);
    let drawn = is_drawn_part(behind) || value[at] != b'(' && is_drawn_part(before);
    before.len() >= SIDE_BYTES_MIN && behind.len() >= SIDE_BYTES_MIN && drawn
}

/// `map[string]int64`, `List<T>2`, `)]foo`, `x.y(z)w`: what programs are full of.
fn is_of_code(value: &[u8]) -> bool {
    const HEADS: [&[u8]; 6] = [b"map[", b"chan[", b"func(", b"fn(", b"List<", b"Map<"];
    const SIGNS: [&[u8]; 9] = [
        b"](", b"()", b"[]", b"){", b"->", b"=>", b"&&", b"||", b"${",
    ];
    let has = |sign: &&[u8]| memchr::memmem::find(value, sign).is_some();
    HEADS.iter().any(|head| value.starts_with(head)) || SIGNS.iter().any(has)
}

/// `x-$CI_TOKEN`, `v2.$password`, `db-{name}`: a variable that something else is put in for, or a place in a template. What stands around it is
/// no password by itself. The whole of a value is looked at elsewhere.
pub(super) fn has_variable(value: &[u8]) -> bool {
    has_named_variable(value)
        || has_shell_variable(value)
        || has_place(value)
        || is_reference(value)
}

/// `svc1-$USER`, `test-$HOSTNAME-1`, `app2-$stage`, ``a`hostname` ``: a name in capitals, or a word that signs part from the rest.
fn has_shell_variable(value: &[u8]) -> bool {
    const CAPITALS_MIN: usize = 3;
    let backticks = value.iter().filter(|b| **b == b'`').count() == 2;
    let parts = |b: &u8| b"-_./:@".contains(b);
    backticks
        || memchr::memchr_iter(b'$', value).any(|at| {
            let rest = &value[at + 1..];
            let name = &rest[..rest
                .iter()
                .take_while(|b| b.is_ascii_alphabetic() || **b == b'_')
                .count()];
            let ends = rest.get(name.len()).is_none_or(parts);
            let capitals = name.len() >= CAPITALS_MIN
                && name.iter().all(|b| b.is_ascii_uppercase() || *b == b'_');
            let parted = !name.is_empty()
                && value[..at].last().is_some_and(parts)
                && name.iter().all(|b| b.is_ascii_lowercase() || *b == b'_');
            at > 0 && ends && (capitals || parted)
        })
}

/// `$env:DB_PW1`, `$Config.Password1`, `%{pw1}`, `((pw1))`: the whole of it stands for something else.
fn is_reference(value: &[u8]) -> bool {
    let enclosed = |open: &[u8], close: &[u8]| value.starts_with(open) && value.ends_with(close);
    let path = value.strip_prefix(b"$").is_some_and(|rest| {
        rest.contains(&b'.')
            && rest.split(|b| *b == b'.').all(|part| {
                part.first().is_some_and(u8::is_ascii_alphabetic)
                    && part.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
            })
    });
    value.starts_with(b"$env:") || path || enclosed(b"%{", b"}") || enclosed(b"((", b"))")
}

fn has_named_variable(value: &[u8]) -> bool {
    const NAME_BYTES_MIN: usize = 4;
    memchr::memchr_iter(b'$', value).any(|at| {
        let rest = &value[at + 1..];
        let part = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        let name = &rest[..rest.iter().take_while(part).count()];
        let large = |b: &u8| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_';
        let one_case = name.iter().all(large) || !name.iter().any(u8::is_ascii_uppercase);
        at > 0
            && name.len() >= NAME_BYTES_MIN
            && !name[0].is_ascii_digit()
            && (name.iter().all(large) && name[1..].contains(&b'_')
                || one_case && promise(name) > Promise::Nothing)
    })
}

/// `{name}`, `{0}`, `{}`: what a program fills in.
fn has_place(value: &[u8]) -> bool {
    const INNER_BYTES_MAX: usize = 32;
    let Some(open) = memchr::memchr(b'{', value) else {
        return false;
    };
    let inner = &value[open + 1..];
    let Some(close) = memchr::memchr(b'}', inner).filter(|len| *len <= INNER_BYTES_MAX) else {
        return false;
    };
    let (inner, behind) = (&inner[..close], &inner[close + 1..]);
    let part = |b: &u8| b.is_ascii_lowercase() || b"_.".contains(b);
    let named = inner.iter().all(part) || inner.len() == 1 && inner[0].is_ascii_digit();
    let around = [&value[..open], behind].concat();
    let c = Classes::of(&around);
    named && !(c.lower > 0 && c.upper > 0 && c.digit > 0)
}

/// `@Kestrel8tundra41`, `&Kestrel8tundra41`: behind the sign that refers to something else, what nothing is called: a figure between letters,
/// and letters of both cases.
pub(super) fn is_chosen_behind(sign: u8, value: &[u8]) -> bool {
    let Some(([first], rest)) = value.split_first_chunk::<1>() else {
        return false;
    };
    let c = Classes::of(rest);
    let digit = rest.iter().position(u8::is_ascii_digit);
    let parted = digit.is_some_and(|at| rest[at..].iter().any(u8::is_ascii_alphabetic));
    *first == sign
        && rest.len() >= 8
        && rest.iter().all(u8::is_ascii_alphanumeric)
        && c.lower >= 2
        && c.upper >= 1
        && c.digit >= 2
        && parted
}

/// `Kestrel8/tundra41`: two words with a number each and a sign of paths between them, one of the words with a capital. Folders and files have a
/// number at one of them.
pub(super) fn is_pair_of_counted(value: &[u8]) -> bool {
    let Some(sign) = value.iter().position(|b| b"/:".contains(b)) else {
        return false;
    };
    let counted = |part: &[u8]| {
        let digits = super::digits_behind(part);
        let word = &part[..part.len() - digits];
        (1..=4).contains(&digits)
            && word.len() >= 4
            && word[0].is_ascii_alphabetic()
            && word[1..].iter().all(u8::is_ascii_lowercase)
            && std::str::from_utf8(word).is_ok_and(|word| !super::chosen::is_naming(word))
    };
    let (first, second) = (&value[..sign], &value[sign + 1..]);
    counted(first) && counted(second) && value.iter().any(u8::is_ascii_uppercase)
}

/// `Kestre@f3nc3.6769` is no address of mail: what stands behind its last dot is a number, and no part of an address of four.
pub(crate) fn is_mail(value: &[u8]) -> bool {
    let Some(at) = memchr::memrchr(b'@', value) else {
        return false;
    };
    let host = &value[at + 1..];
    let Some(dot) = memchr::memrchr(b'.', host) else {
        return false;
    };
    let last = &host[dot + 1..];
    let numbered = (2..=4).contains(&last.len()) && last.iter().all(u8::is_ascii_digit);
    let address = host.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    !numbered || address || at == 0
}

/// `req_8zqA0WxefVGbYA`: what stands for a record, as many APIs write it.
pub(super) fn is_record_id(value: &[u8]) -> bool {
    const KIND: std::ops::RangeInclusive<usize> = 2..=5;
    const BYTES_MIN: usize = 12;
    let Some(sign) = value.iter().position(|b| *b == b'_') else {
        return false;
    };
    let (kind, id) = (&value[..sign], &value[sign + 1..]);
    KIND.contains(&kind.len())
        && kind.iter().all(u8::is_ascii_lowercase)
        && id.len() >= BYTES_MIN
        && id.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_of_passwords_and_of_code() {
        for (value, is) in [
            ("Walrus(57)candle", true),
            ("Walrus[57]candle", true),
            ("Walrus{57}candle", true),
            ("Kestr(8tundra", true),
            ("Walrus{57candle", true),
            ("fnfWRG4)UM2aNu", true),
            ("kliHVK9<BcTFgi", true),
            ("Option8<Strings", false),
            ("hashWith2(Password", false),
            ("getPass(a1)", false),
            ("getPassword(user1)[0]", false),
            ("Config.get2(name)", false),
            ("map[string]Int64x", false),
            ("Option<String8>", false),
            ("Vec<Pass2Word>", false),
            ("items[0].Pass", false),
            ("Foo1(bar).baz", false),
            ("[text](Url1)x", false),
            ("A[i]b", false),
            ("lower(57)case", false),
        ] {
            assert_eq!(is_bracketed(value.as_bytes()), is, "{value}");
        }
    }

    #[test]
    fn variables_in_values() {
        for (value, has) in [
            ("x-$CI_TOKEN", true),
            ("v2.$password", true),
            ("db-{name}", true),
            ("pre{0}x", true),
            ("svc1-$USER", true),
            ("Passw0rd$RANDOM", true),
            ("app2-$stage", true),
            ("a1`hostname`", true),
            ("$env:DB_PW1", true),
            ("$Config.Password1", true),
            ("%{pw1}", true),
            ("((pw1))", true),
            ("Lantern44$river", false),
            ("P@river$1^280&x", false),
            ("$Kestrel8.", false),
            ("Kestr$8tund", false),
            ("aB3$kLm9Qz", false),
            ("Badger2589lamp$", false),
            ("LuGTO4RHtD$ZPMf", false),
            ("Winter$ummer", false),
            ("Walrus{57}candle", false),
            ("Ab1{xy}9zk", false),
        ] {
            assert_eq!(has_variable(value.as_bytes()), has, "{value}");
        }
    }

    #[test]
    fn signs_of_references() {
        for (value, is) in [
            ("@Kestrel8tundra41", true),
            ("@string2", false),
            ("@Param12", false),
            ("@Scope/name12", false),
        ] {
            assert_eq!(is_chosen_behind(b'@', value.as_bytes()), is, "{value}");
        }
        for (value, is) in [
            ("Kestrel8/tundra41", true),
            ("Kestrel8:tundra41", true),
            ("auth/token2", false),
            ("Users1/login2", false),
            ("docs/Chapter41", false),
        ] {
            assert_eq!(is_pair_of_counted(value.as_bytes()), is, "{value}");
        }
        for (value, is) in [
            ("Kestre@f3nc3.6769", false),
            ("ops@10.0.0.51", true),
            ("ops@mail.firm.io", true),
            ("ops@host", false),
        ] {
            assert_eq!(is_mail(value.as_bytes()), is, "{value}");
        }
    }
}
