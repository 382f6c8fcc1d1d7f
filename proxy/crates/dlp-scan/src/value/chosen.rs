//! What people choose out of words: passphrases, two words and a number.

/// Words that were drawn: four and more with a capital each, and digits at the end.
pub(super) fn is_phrase(value: &[u8]) -> bool {
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

/// Words in lower case without a number, of the list that wallets and generators of passphrases draw from (BIP-39), or four and more
/// of which none names a thing: `juniper-goblin-harbor-nutmeg`.
pub(crate) fn is_listed(value: &[u8], words_min: usize) -> bool {
    const LIKELY: usize = 4;
    let Some(sep) = value.iter().copied().find(|b| b"-._ ".contains(b)) else {
        return false;
    };
    let (mut words, mut listed, mut things) = (0, 0, 0);
    for part in value.split(|b| *b == sep) {
        let word = (3..=10).contains(&part.len()) && part.iter().all(u8::is_ascii_lowercase);
        let any_of = |list: &[&str]| list.iter().any(|n| n.as_bytes() == part);
        if !word || any_of(NAMING) || any_of(SPOKEN) {
            return false;
        }
        words += 1;
        listed += usize::from(crate::detect::is_listed_word(part));
        things += usize::from(any_of(THINGS));
    }
    words >= words_min && listed == words || sep != b' ' && words >= LIKELY && things == 0
}

/// Is it made of words of that list alone?
pub(crate) fn is_all_listed(value: &[u8]) -> bool {
    let mut words = value.split(|b| !b.is_ascii_lowercase());
    words.all(crate::detect::is_listed_word)
}

/// Words of packages and programs, of which names of four words are made.
const THINGS: &[&str] = &[
    "google", "cloud", "cli", "emulator", "plugin", "plugins", "python", "lib", "libs", "utils",
    "core", "desktop", "update", "icon", "icons", "cache", "linux", "kernel", "headers", "image",
    "images", "docker", "java", "perl", "ruby", "rust", "fonts", "tools", "library", "package",
    "packages", "module", "modules", "generic", "runtime", "engine", "extras", "browser", "driver",
    "drivers", "adapter", "handler", "helper", "wrapper", "loader", "parser", "binding",
    "bindings", "proxy", "gateway", "frontend", "backend", "worker", "checkout", "billing",
    "payment", "payments", "orders", "monitor", "metrics", "logs", "pipeline", "release", "build",
];

/// Words of the same list that tell somebody what to type.
const SPOKEN: &[&str] = &[
    "your", "you", "own", "enter", "choose", "pick", "set", "any", "other", "same", "random",
    "private", "strong", "real", "actual", "this", "that", "here", "there", "into", "only", "add",
    "create", "find", "give", "keep", "make", "need", "put", "replace", "write", "type", "insert",
    "never", "share", "when", "where", "what", "which", "access", "online", "code", "word",
    "phrase", "sign", "open", "network", "device", "machine", "system", "public",
];

/// Is it a word that tells somebody what to type?
pub(super) fn is_spoken(word: &[u8]) -> bool {
    SPOKEN.iter().any(|n| n.as_bytes() == word)
}

/// Two words in lower case and a number of two or three digits (`ribbon-meadow-96`): where a password is asked for by name, two
/// that name no things are enough.
pub(super) fn is_numbered(value: &[u8]) -> bool {
    let Some(sep) = value.iter().copied().find(|b| b"-_.".contains(b)) else {
        return false;
    };
    let mut parts = value.split(|b| *b == sep);
    let word = |part: Option<&[u8]>| {
        part.is_some_and(|part| {
            (4..=10).contains(&part.len())
                && part.iter().all(u8::is_ascii_lowercase)
                && !NAMING.iter().any(|n| n.as_bytes() == part)
        })
    };
    let number = |part: Option<&[u8]>| {
        part.is_some_and(|part| {
            (2..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit)
        })
    };
    word(parts.next()) && word(parts.next()) && number(parts.next()) && parts.next().is_none()
}

/// Two words with a capital each and a number behind them (`RiverViolin78`, `River_Violin78`), as people choose. Names
/// of things have no number, or one of a single digit, or a word that things are named with.
pub(super) fn is_pair(value: &[u8]) -> bool {
    let digits = super::digits_behind(value);
    let words = &value[..value.len() - digits];
    let Some(second) = words.iter().rposition(u8::is_ascii_uppercase) else {
        return false;
    };
    // `RiverViolin--78`: with a sign or two at the seams.
    let word = |w: &[u8]| {
        let signs = w.iter().rev().take(2).take_while(|b| b"_-.".contains(b));
        let w = &w[..w.len() - signs.count()];
        let lower = w.to_ascii_lowercase();
        (4..=10).contains(&w.len())
            && w[0].is_ascii_uppercase()
            && w[1..].iter().all(u8::is_ascii_lowercase)
            && !NAMING.iter().any(|n| n.as_bytes() == lower)
    };
    (2..=4).contains(&digits) && word(&words[..second]) && word(&words[second..])
}

/// `lagoonOrchid1`: the same with one figure, of words that no part of a program is named with.
pub(super) fn is_pair_and_figure(value: &[u8]) -> bool {
    let Some((figure, words)) = value.split_last() else {
        return false;
    };
    let Some(second) = words.iter().rposition(u8::is_ascii_uppercase) else {
        return false;
    };
    let word = |word: &[u8]| {
        let is_spelt = word.len() > 1 && word[1..].iter().all(u8::is_ascii_lowercase);
        let is_letter = word.first().is_some_and(u8::is_ascii_alphabetic);
        let named = || std::str::from_utf8(word).is_ok_and(is_naming);
        (4..=10).contains(&word.len()) && is_letter && is_spelt && !named()
    };
    figure.is_ascii_digit() && word(&words[..second]) && word(&words[second..])
}

/// `Turbin-Hall.2`, `Kadakas_Meresool8`, `Kalyna.Bilya.Richky7`: words, the first with a capital, a number behind them, and
/// more signs than two words of a name and a number have: three words, or a sign that names do not have or before the number.
pub(super) fn is_worded(value: &[u8]) -> bool {
    const JOINTS: &[u8] = b"._-+=~!&#*/@$%^";
    let digits = super::digits_behind(value);
    let words = &value[..value.len() - digits];
    let (words, apart) = match words {
        [rest @ .., sign] if JOINTS.contains(sign) => (rest, true),
        _ => (words, false),
    };
    let (mut count, mut titled, mut bytes) = (0, 0, 0);
    for word in words.split(|b| JOINTS.contains(b)) {
        let lower = word.to_ascii_lowercase();
        let plain = word.len() >= 2 && word[1..].iter().all(u8::is_ascii_lowercase);
        if !plain || !word[0].is_ascii_alphabetic() || NAMING.iter().any(|n| n.as_bytes() == lower)
        {
            return false;
        }
        count += 1;
        titled += usize::from(word[0].is_ascii_uppercase());
        bytes += word.len();
    }
    let odd = words.iter().any(|b| b"+=~!&#*@$%^".contains(b));
    let underlined = words.contains(&b'_') && titled == 2 && bytes >= 12;
    // `maple_Nordwind-761`: names keep to one sign.
    let mixed = apart && titled > 0 && !words.contains(&value[words.len()]);
    let first = value[0].is_ascii_uppercase() || titled > 0 && digits >= 2 && bytes >= 10;
    (1..=4).contains(&digits)
        && (2..=4).contains(&count)
        && bytes >= 8
        && first
        && (apart || odd || underlined || digits >= 2 || count >= 3 && titled >= 2)
        && (titled >= 2 || odd || mixed || words.contains(&b'-'))
}

/// `brioch3_Window027`: a word with a figure for its last letter, and one with a capital and a number. Names of things have a
/// number at one of their words.
pub(super) fn is_pair_of_numbered(value: &[u8]) -> bool {
    let Some(sign) = value.iter().position(|b| b"_-.".contains(b)) else {
        return false;
    };
    let (first, second) = (&value[..sign], &value[sign + 1..]);
    let (near, behind) = (super::digits_behind(first), super::digits_behind(second));
    let (one, two) = (
        &first[..first.len() - near],
        &second[..second.len() - behind],
    );
    let inner = |w: &[u8]| w.iter().all(u8::is_ascii_lowercase);
    let named = |w: &[u8]| {
        let lower = w.to_ascii_lowercase();
        let any_of = |list: &[&str]| list.iter().any(|n| n.as_bytes() == lower);
        any_of(NAMING) || any_of(THINGS) || any_of(COUNTED)
    };
    near == 1
        && (2..=4).contains(&behind)
        && (5..=10).contains(&one.len())
        && (5..=10).contains(&two.len())
        && inner(one)
        && two[0].is_ascii_uppercase()
        && inner(&two[1..])
        && !named(one)
        && !named(two)
}

/// One word and a number: `Midnattssol365`, `brezel7412`. What names have such numbers for are versions, sizes and places in a row.
pub(super) fn is_word_and_number(value: &[u8]) -> bool {
    let digits = super::digits_behind(value);
    let word = &value[..value.len() - digits];
    let Some((first, rest)) = word.split_first() else {
        return false;
    };
    let lower = word.to_ascii_lowercase();
    let any_of = |list: &[&str]| list.iter().any(|n| n.as_bytes() == lower);
    let (word_min, digits_min) = match first.is_ascii_uppercase() {
        true => (5, 2),
        false if word.len() >= 8 => (8, 2),
        false => (6, 3),
    };
    first.is_ascii_alphabetic()
        && rest.iter().all(u8::is_ascii_lowercase)
        && (word_min..=16).contains(&word.len())
        && (digits_min..=4).contains(&digits)
        && !any_of(NAMING)
        && !any_of(THINGS)
        && !any_of(SPOKEN)
        && !any_of(COUNTED)
}

/// Two words and a number between them that is right at the second: `iguana-414Ananas`. What is named for a year or a version
/// has its number at the end.
pub(super) fn is_parted_by_number(value: &[u8]) -> bool {
    let digit = |b: &u8| b.is_ascii_digit();
    let Some(start) = value.iter().position(digit) else {
        return false;
    };
    let digits = value[start..].iter().take_while(|b| digit(b)).count();
    let before = &value[..start];
    let word = |w: &[u8]| {
        let lower = w.to_ascii_lowercase();
        (4..=12).contains(&w.len())
            && w[1..].iter().all(u8::is_ascii_lowercase)
            && w[0].is_ascii_alphabetic()
            && !NAMING.iter().any(|n| n.as_bytes() == lower)
            && !THINGS.iter().any(|n| n.as_bytes() == lower)
    };
    let year =
        digits == 4 && (value[start..].starts_with(b"19") || value[start..].starts_with(b"20"));
    let first = before.strip_suffix(b"-").or(before.strip_suffix(b"_"));
    (3..=5).contains(&digits)
        && !year
        && first.is_some_and(word)
        && value
            .get(start + digits)
            .is_some_and(u8::is_ascii_uppercase)
        && word(&value[start + digits..])
}

/// `ginger4920thunder`, `Kartal5795.ns`, `Pinson_4471kb`: a word, four figures that are no year and no size, and letters again. What
/// is named for a number has it at its end, or one that is round.
pub(super) fn is_numbered_inside(value: &[u8]) -> bool {
    let Some(start) = value.iter().position(u8::is_ascii_digit) else {
        return false;
    };
    let (before, rest) = value.split_at(start);
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, behind) = rest.split_at(digits);
    let inner = |w: &[u8]| w.iter().all(u8::is_ascii_lowercase);
    let sign = |b: u8| b"._-".contains(&b);
    let word = match before {
        [word @ .., last] if sign(*last) => word,
        word => word,
    };
    let behind = match behind {
        [first, rest @ ..] if sign(*first) => rest,
        rest => rest,
    };
    let lower = word.to_ascii_lowercase();
    let any_of = |list: &[&str]| list.iter().any(|n| n.as_bytes() == lower);
    let year = number.starts_with(b"19") || number.starts_with(b"20");
    const SIZES: [&[u8]; 6] = [b"1024", b"2048", b"4096", b"8192", b"1280", b"8080"];
    digits == 4
        && !year
        && !number.ends_with(b"00")
        && !SIZES.contains(&number)
        && (5..=12).contains(&word.len())
        && word[0].is_ascii_alphabetic()
        && inner(&word[1..])
        && (2..=12).contains(&behind.len())
        && inner(behind)
        && !any_of(NAMING)
        && !any_of(THINGS)
        && !any_of(SPOKEN)
        && !any_of(COUNTED)
}

/// `Skomaker.Bunn3`, `fløteis-8-kuler`, `gAmle_Erik5`: words of any script that programs name nothing with, figures and signs
/// together, and in a sentence (`told`) two words at least. Without a capital or a letter that programs do not have, a longer word and a number behind it: `hakkebrett_60`.
pub(super) fn is_own_words(value: &[u8], told: bool) -> bool {
    const CHARS: std::ops::RangeInclusive<usize> = 8..=40;
    const SIGNS: &str = "._-+=~!&#*@$%^?§€£";
    let Some(text) = std::str::from_utf8(value)
        .ok()
        .filter(|t| t.len() <= 4 * CHARS.end())
    else {
        return false;
    };
    let of = |c: char| c.is_alphabetic() || c.is_ascii_digit() || SIGNS.contains(c);
    if !CHARS.contains(&text.chars().count())
        || !text.chars().all(of)
        || !text.starts_with(|c: char| c.is_alphanumeric())
    {
        return false;
    }
    let (mut letters, mut longest, mut capitals) = (0, 0, 0);
    let (mut words, mut long) = (0, 0);
    for run in text.split(|c: char| !c.is_alphabetic()) {
        letters += run.chars().count();
        capitals += run.chars().filter(|c| c.is_uppercase()).count();
        for word in in_humps(run) {
            words += 1;
            let len = word.chars().count();
            longest = longest.max(len);
            long += usize::from(len >= 3);
            if is_naming(word) {
                return false;
            }
        }
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    // `report-2024Final` is a file's name.
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let dated = numbers.any(|n| n.len() == 4 && (n.starts_with("19") || n.starts_with("20")));
    // `OpenSSH-9.6`, and in a sentence `Chrome-118`: what programs and chapters are called.
    let version = has_version(value);
    let signs = text.bytes().filter(u8::is_ascii_punctuation).count();
    if version || told && (long < 2 || signs == 0 || digits == 0) {
        return false;
    }
    let odd = text.contains(['!', '&', '#', '*', '@', '$', '%', '^', '+', '=', '~']);
    let foreign = !text.is_ascii();
    // A word in capitals and a number is what standards are called.
    let mixed = capitals > 0 && capitals * 2 <= letters;
    let counted = longest >= 7 && digits >= 2 && super::digits_behind(value) == digits;
    let joined = signs > 0 && (mixed || foreign)
        || mixed && (words >= 2 && digits >= 2 || foreign && digits >= 1);
    let named = counted && signs == 1 && text.contains(['_', '-']);
    // `ti-små-Hvaler` has no figure, and letters that programs do not have.
    let figured = (1..=8).contains(&digits) || foreign && signs > 0 && capitals > 0 && letters >= 9;
    longest >= 4 && letters >= 5 && (odd || !dated) && figured && (joined || named)
}

/// `Wiesensalbei-im-Juni`, `klappStuhl5`, `lakritz_Schnecke`: words that no program is written in. Two with a sign between them that
/// names have, or one and a number or another sign. What refers to a value is called in English, or by a word for what it is.
pub(super) fn is_foreign_words(value: &[u8]) -> bool {
    const CHARS: std::ops::RangeInclusive<usize> = 8..=40;
    const SIGNS: &str = "._-+!&#*@$%^?~=";
    let Some(text) = std::str::from_utf8(value)
        .ok()
        .filter(|t| t.len() <= 2 * CHARS.end())
    else {
        return false;
    };
    let of = |c: char| c.is_alphabetic() || c.is_ascii_digit() || SIGNS.contains(c);
    if !CHARS.contains(&text.chars().count())
        || !text.chars().all(of)
        || !text.starts_with(|c: char| c.is_alphabetic())
    {
        return false;
    }
    let (mut letters, mut words, mut english) = (0, 0, 0);
    let mut longest = 0;
    for word in text
        .split(|c: char| !c.is_alphabetic())
        .flat_map(in_humps)
        .filter(|word| !word.is_empty())
    {
        let lower = word.to_lowercase();
        let len = lower.chars().count();
        // What has no vowels is short for something.
        let spoken = lower.contains(|c: char| "aeiouy".contains(c) || !c.is_ascii());
        if is_naming(word) || len >= 3 && !spoken {
            return false;
        }
        letters += len;
        words += usize::from(len >= 3);
        if is_english(&lower) {
            english += usize::from(len >= 3);
        } else {
            longest = longest.max(len);
        }
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let signs = text.bytes().filter(u8::is_ascii_punctuation).count();
    let own = text.contains(['+', '!', '&', '#', '*', '@', '$', '%', '^', '?', '~', '=']);
    let capitals = text.contains(char::is_uppercase);
    letters >= 8
        && longest >= 4
        && english * 2 < words
        && digits <= 4
        && !has_version(value)
        && (words >= 2 && (signs > 0 && capitals || digits > 0) || own)
}

/// `Chornobryvtsi21`: one such word and a number of two digits or more.
pub(super) fn is_foreign_and_number(value: &[u8]) -> bool {
    let digits = super::digits_behind(value);
    let word = String::from_utf8_lossy(&value[..value.len() - digits]).to_lowercase();
    is_word_and_number(value) && word.len() >= 8 && !is_english(&word)
}

/// A word of English, as it is or with an ending.
fn is_english(word: &str) -> bool {
    const ENDINGS: [&str; 7] = ["s", "es", "ed", "er", "ing", "ly", "d"];
    let known = crate::detect::is_english;
    let bare = |ending: &&str| {
        word.strip_suffix(*ending)
            .is_some_and(|w| w.len() > 2 && known(w))
    };
    known(word) || ENDINGS.iter().any(bare)
}

/// `OpenSSH-9.6`
fn has_version(value: &[u8]) -> bool {
    let digit = |b: &u8| b.is_ascii_digit();
    let mut three = value.windows(3);
    three.any(|w| w[1] == b'.' && digit(&w[0]) && digit(&w[2]))
}

/// The words of `hakkeSpett`.
fn in_humps(run: &str) -> impl Iterator<Item = &str> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let mut last = rest.chars().next()?;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let begins = c.is_uppercase() && last.is_lowercase();
            last = *c;
            begins
        });
        let (word, left) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = left;
        Some(word)
    })
}

/// All words that things in programs are called.
pub(super) fn naming() -> impl Iterator<Item = &'static str> {
    [NAMING, THINGS, SPOKEN, COUNTED]
        .into_iter()
        .flatten()
        .copied()
}

/// Is it a word that things in programs are called?
pub(super) fn is_naming(word: &str) -> bool {
    let lower = word.to_lowercase();
    let any_of = |list: &[&str]| list.contains(&&*lower);
    any_of(NAMING) || any_of(THINGS) || any_of(SPOKEN) || any_of(COUNTED)
}

/// Words that numbers stand behind in names.
const COUNTED: &[&str] = &[
    "argon",
    "blake",
    "float",
    "keccak",
    "curve",
    "ripemd",
    "camellia",
    "threefish",
    "serpent",
    "twofish",
    "salsa",
    "chacha",
    "poseidon",
    "bcrypt",
    "scrypt",
    "pbkdf",
    "shake",
    "windows",
    "ubuntu",
    "debian",
    "fedora",
    "centos",
    "oracle",
    "release",
    "revision",
    "level",
    "layer",
    "block",
    "chapter",
    "section",
    "figure",
    "table",
    "line",
    "column",
    "items",
    "option",
    "options",
    "fields",
    "param",
    "params",
    "argument",
    "arguments",
    "output",
    "string",
    "strings",
    "buffer",
    "bytes",
    "sample",
    "customer",
    "employee",
    "member",
    "guest",
    "worker",
    "workers",
    "port",
    "channel",
    "camera",
    "sensor",
    "device",
    "printer",
    "room",
    "floor",
    "thread",
    "process",
    "session",
    "status",
    "event",
    "record",
    "entry",
    "index",
    "index",
    "vector",
    "matrix",
    "point",
    "slot",
    "stack",
    "frame",
    "window",
    "button",
    "color",
    "colour",
    "image",
    "header",
    "footer",
    "title",
    "number",
    "count",
    "total",
    "limit",
    "timeout",
    "delay",
    "passwd",
    "passwort",
    "passwords",
    "contrasena",
    "senha",
    "wachtwoord",
    "haslo",
    "heslo",
    "parola",
    "salasana",
    "kennwort",
    "testuser",
    "testing",
    "dummy",
    "placeholder",
];

/// Letters with a sign between them that words of a language do not have there.
pub(crate) fn is_joined_by_sign(value: &[u8]) -> bool {
    value.windows(3).any(|w| {
        b"!&*#+$%^".contains(&w[1]) && w[0].is_ascii_alphabetic() && w[2].is_ascii_alphabetic()
    })
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
