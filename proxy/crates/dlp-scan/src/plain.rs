//! What stands behind the names of passwords and is none: numbers with their units (`PW: 1000us` is how long a pulse is),
//! ratios (`Pass: 88/90`), types of programs (`password: Option<String>`), notes (`password: rotated-2024-03-01`), ports (`464/tcp`)
//! and what may be done to a file (`rwxr-xr-x`).

use crate::entropy::wordiness;

const UNITS: &[&[u8]] = &[
    b"bit",
    b"bits",
    b"bps",
    b"byte",
    b"bytes",
    b"cm",
    b"db",
    b"dpi",
    b"em",
    b"gb",
    b"ghz",
    b"gib",
    b"hours",
    b"hz",
    b"kb",
    b"kbps",
    b"kg",
    b"khz",
    b"kib",
    b"km",
    b"kw",
    b"kwh",
    b"ma",
    b"mah",
    b"mb",
    b"mbps",
    b"mhz",
    b"mib",
    b"min",
    b"mins",
    b"mm",
    b"ms",
    b"msec",
    b"mv",
    b"mw",
    b"nm",
    b"ns",
    b"nsec",
    b"ohm",
    b"pct",
    b"ppm",
    b"ps",
    b"pt",
    b"px",
    b"rem",
    b"rpm",
    b"s",
    b"sec",
    b"secs",
    b"tb",
    b"tib",
    b"us",
    b"usec",
    b"v",
    b"vh",
    b"vw",
    b"w",
    b"\xc2\xb5s",
    b"\xce\xbcs",
];

/// Types that hold others, by the last part of their names.
const HOLDERS: &[&str] = &[
    "Action",
    "Arc",
    "Array",
    "ArrayList",
    "Atom",
    "BTreeMap",
    "BTreeSet",
    "BehaviorSubject",
    "Box",
    "Cell",
    "Collection",
    "Column",
    "ComputedRef",
    "Cow",
    "Deque",
    "Dict",
    "Dictionary",
    "Either",
    "Expression",
    "Field",
    "Flow",
    "Func",
    "Future",
    "HashMap",
    "HashSet",
    "IEnumerable",
    "IList",
    "Input",
    "Iterable",
    "Iterator",
    "Lazy",
    "LinkedList",
    "List",
    "LiveData",
    "Map",
    "Mapped",
    "Maybe",
    "MutableState",
    "Mutex",
    "NonNull",
    "Nullable",
    "Observable",
    "OnceCell",
    "Option",
    "Optional",
    "Output",
    "Partial",
    "Pin",
    "PhantomData",
    "Promise",
    "Property",
    "Protected",
    "Provider",
    "Rc",
    "Readonly",
    "Record",
    "Ref",
    "RefCell",
    "Result",
    "RwLock",
    "Secret",
    "SecretBox",
    "Sensitive",
    "Sequence",
    "Set",
    "Signal",
    "Span",
    "State",
    "StateFlow",
    "Stream",
    "Supplier",
    "Task",
    "Tuple",
    "Type",
    "ValueTask",
    "Vec",
    "Zeroizing",
    "array",
    "basic_string",
    "basic_string_view",
    "deque",
    "expected",
    "function",
    "list",
    "map",
    "optional",
    "pair",
    "set",
    "shared_ptr",
    "span",
    "tuple",
    "unique_ptr",
    "unordered_map",
    "variant",
    "vector",
    "weak_ptr",
];
/// Types that hold none.
const HELD: &[&str] = &[
    "Any",
    "Bool",
    "Boolean",
    "Byte",
    "Bytes",
    "Char",
    "Character",
    "CharSequence",
    "Double",
    "Error",
    "Float",
    "Int",
    "Integer",
    "K",
    "Long",
    "Number",
    "Object",
    "OsString",
    "Path",
    "PathBuf",
    "Self",
    "Short",
    "Str",
    "String",
    "T",
    "U",
    "UUID",
    "Unit",
    "V",
    "Void",
    "a",
    "any",
    "bool",
    "boolean",
    "byte",
    "bytes",
    "char",
    "const",
    "double",
    "dyn",
    "f32",
    "f64",
    "float",
    "i128",
    "i16",
    "i32",
    "i64",
    "i8",
    "int",
    "isize",
    "long",
    "mut",
    "never",
    "null",
    "number",
    "object",
    "rune",
    "short",
    "signed",
    "static",
    "std",
    "str",
    "string",
    "u128",
    "u16",
    "u32",
    "u64",
    "u8",
    "undefined",
    "unknown",
    "unsigned",
    "usize",
    "void",
    "wchar_t",
];
/// Most digits of a number before the comma, and of one whose unit is a single letter.
const WHOLE_DIGITS_MAX: usize = 5;
const ONE_LETTER_DIGITS_MAX: usize = 4;
const DIGITS_MAX: usize = 9;

/// Is it one of those?
pub(crate) fn is_plain(value: &[u8], quoted: bool) -> bool {
    is_measure(value)
        || is_ratio(value)
        || is_note(value)
        || is_type(value, quoted)
        || is_port(value)
        || is_mode(value)
}

/// `464/tcp`, as lists of services have it.
fn is_port(value: &[u8]) -> bool {
    const DIGITS_MAX: usize = 5;
    const PROTOCOLS: [&[u8]; 4] = [b"/tcp", b"/udp", b"/sctp", b"/dccp"];
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=DIGITS_MAX).contains(&digits) && PROTOCOLS.contains(&&value[digits..])
}

/// `drwxr-xr-t`, `rw-r--r--`: as `ls -l` writes it (POSIX, `ls`), with or without the kind of file and the sign behind it.
fn is_mode(value: &[u8]) -> bool {
    const BITS: usize = 9;
    let value = match value {
        [bits @ .., b'.' | b'+' | b'@'] => bits,
        bits => bits,
    };
    let bits = match value {
        [b'-' | b'd' | b'l' | b'c' | b'b' | b'p' | b's', bits @ ..] if bits.len() == BITS => bits,
        bits => bits,
    };
    let may = |triple: &[u8]| {
        b"r-".contains(&triple[0]) && b"w-".contains(&triple[1]) && b"xsStT-".contains(&triple[2])
    };
    bits.len() == BITS && bits.chunks_exact(3).all(may)
}

/// `Option<String>`, `std::vector<int>`, `Map<String, List<Integer>>`. In quotes it has to be made of types that all know;
/// without, what is between the brackets may be anybody's, and it may break off at a blank.
fn is_type(value: &[u8], quoted: bool) -> bool {
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.');
    let inner = |b: &u8| name(b) || b"<>,&*?[]' ".contains(b);
    let len = value.iter().take_while(|b| name(b)).count();
    let (head, rest) = value.split_at(len);
    // Digits stand in no name of a type but in those of numbers.
    let number = |part: &[u8]| {
        let width = part.split_first().filter(|(kind, _)| b"iuf".contains(kind));
        width.is_some_and(|(_, width)| [&b"8"[..], b"16", b"32", b"64", b"128"].contains(&width))
    };
    let named = |part: &[u8]| !part.iter().any(u8::is_ascii_digit) || number(part);
    let count = |sign: u8| value.iter().filter(|b| **b == sign).count();
    let closed = rest.ends_with(b">") && count(b'<') == count(b'>');
    let cut = !quoted && count(b'<') > count(b'>');
    let shaped = head.first().is_some_and(u8::is_ascii_alphabetic)
        && rest.starts_with(b"<")
        && rest.len() > 2
        && rest.iter().all(inner)
        && (closed || cut)
        && value.split(|b| !name(b)).all(named);
    if !shaped {
        return false;
    }
    let parts = || rest.split(|b| !name(b)).filter(|part| !part.is_empty());
    let holds = is_one_of(head, HOLDERS);
    let known = |part: &[u8]| is_one_of(part, HELD) || is_one_of(part, HOLDERS);
    match quoted {
        true => holds && parts().all(|part| known(part) || is_spelled(last_of(part))),
        false => {
            holds
                || parts().all(known)
                || closed && is_spelled(last_of(head)) && parts().all(is_spelled)
        }
    }
}

/// The last part of a path.
fn last_of(path: &[u8]) -> &[u8] {
    let mut parts = path.rsplit(|b| matches!(b, b':' | b'.'));
    parts.find(|part| !part.is_empty()).unwrap_or_default()
}

fn is_one_of(path: &[u8], list: &[&str]) -> bool {
    let last = last_of(path);
    list.iter().any(|known| known.as_bytes() == last)
}

/// `LoginForm`: words with a capital each, two and more.
fn is_spelled(name: &[u8]) -> bool {
    let humps = name.iter().filter(|b| b.is_ascii_uppercase()).count();
    let mut runs = name.split(u8::is_ascii_uppercase).skip(1);
    humps >= 2
        && name[0].is_ascii_uppercase()
        && runs.all(|run| run.len() >= 2 && run.iter().all(u8::is_ascii_lowercase))
        && wordiness(name) > 0.5
}

/// `1000us`, `19.2 px`. Nobody measures with eight figures.
fn is_measure(value: &[u8]) -> bool {
    let number = value
        .iter()
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b','))
        .count();
    let (number, unit) = (&value[..number], value[number..].trim_ascii());
    let digits = number.iter().filter(|b| b.is_ascii_digit()).count();
    let sign = number.iter().rposition(|b| !b.is_ascii_digit());
    let whole = sign.map_or(digits, |at| digits - (number.len() - at - 1));
    let whole_max = match unit.len() {
        1 => ONE_LETTER_DIGITS_MAX,
        _ => WHOLE_DIGITS_MAX,
    };
    (1..=DIGITS_MAX).contains(&digits)
        && whole <= whole_max
        && UNITS.iter().any(|known| unit.eq_ignore_ascii_case(known))
}

/// `88/90-r2`, `37/52-2TD`: so many of so many, and a short word with a number on it.
fn is_ratio(value: &[u8]) -> bool {
    const FIGURES_MAX: usize = 4;
    let number = |text: &[u8]| {
        let figures = text.iter().take_while(|b| b.is_ascii_digit()).count();
        let fits = (1..=FIGURES_MAX).contains(&figures);
        let read = |text| str::from_utf8(text).ok()?.parse::<u32>().ok();
        fits.then(|| Some((figures, read(&text[..figures])?)))?
    };
    let Some((at, some)) = number(value).filter(|(at, _)| value.get(*at) == Some(&b'/')) else {
        return false;
    };
    let rest = &value[at + 1..];
    let Some((at, all)) = number(rest) else {
        return false;
    };
    let rest = &rest[at..];
    let word = match rest.split_first() {
        Some((b'-' | b'+' | b'_' | b',' | b'(', word)) => word.strip_suffix(b")").unwrap_or(word),
        _ => rest,
    };
    some <= all
        && word.len() <= 4
        && word.iter().all(u8::is_ascii_alphanumeric)
        && (word.is_empty() || word.iter().any(u8::is_ascii_digit))
}

/// What is said of a password instead of telling it.
const SAID: &[&str] = &[
    "ago",
    "changed",
    "created",
    "disabled",
    "due",
    "expired",
    "expires",
    "expiry",
    "generated",
    "issued",
    "locked",
    "modified",
    "pending",
    "removed",
    "renewed",
    "replaced",
    "revoked",
    "rotated",
    "rotation",
    "scheduled",
    "since",
    "stored",
    "until",
    "updated",
];
/// What is said beside one of those, and makes part of a password as well.
const SAID_BESIDE: &[&str] = &["after", "before", "last", "next", "reset", "valid"];

/// `rotated-2024-03-01`, `last-changed-2w`: words of which one says what became of it, and when.
fn is_note(value: &[u8]) -> bool {
    const WORDS_MAX: usize = 8;
    const NOTE_BYTES: std::ops::Range<usize> = 6..64;
    if !NOTE_BYTES.contains(&value.len()) || !value[0].is_ascii_alphabetic() {
        return false;
    }
    let sign = |b: &u8| b"-_./: ".contains(b);
    let is =
        |word: &[u8], list: &[&str]| list.iter().any(|w| w.as_bytes().eq_ignore_ascii_case(word));
    let (mut said, mut words, mut numbers, mut times) = (0, 0, 0, 0);
    for part in value.split(sign) {
        if part.iter().all(u8::is_ascii_alphabetic) && part.len() >= 2 {
            said += 2 * usize::from(is(part, SAID)) + usize::from(is(part, SAID_BESIDE));
            words += 1;
        } else if is_time(part) {
            times += 1;
        } else if (1..=4).contains(&part.len()) && part.iter().all(u8::is_ascii_digit) {
            numbers += 1;
        } else {
            return false;
        }
    }
    said >= 2 && words <= WORDS_MAX && (times == 1 && numbers == 0 || times == 0 && numbers == 3)
}

/// `2w`, `30d`, `20240301`
fn is_time(part: &[u8]) -> bool {
    let digits = part.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, unit) = part.split_at(digits);
    let units = [
        "s", "m", "h", "d", "w", "y", "min", "hrs", "days", "mo", "months", "weeks", "yr", "years",
    ];
    match unit {
        b"" => number.len() == 8 && (number.starts_with(b"20") || number.starts_with(b"19")),
        unit => (1..=3).contains(&digits) && units.iter().any(|u| u.as_bytes() == unit),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_measure, is_mode, is_note, is_port, is_ratio, is_type};
    use crate::names::Promise;
    use crate::value::judge;

    fn check(is: impl Fn(&[u8]) -> bool, cases: &[(&str, bool)]) {
        for (value, want) in cases {
            assert_eq!(is(value.as_bytes()), *want, "{value}");
        }
    }

    #[test]
    fn ports_and_modes_are_written_in_one_way() {
        let ports = ["749/tcp", "5060/udp", "9/sctp"];
        let no = ["749", "tcp", "749/tcp4", "123456/tcp", "749/Tulip", "/tcp"];
        check(is_port, &ports.map(|value| (value, true)));
        check(is_port, &no.map(|value| (value, false)));
        let modes = [
            "rw-r-----",
            "drwxrwxrwt",
            "-rwsr-xr-x",
            "lrwxrwxrwx",
            "rw-r--r--.",
            "crw--w----+",
        ];
        let no = [
            "rwx",
            "rwxr-xr-y",
            "xrw-r--r--",
            "rwxrwxrwxrwx",
            "wrx-rx-rw",
            "rw-r--r--1",
        ];
        check(is_mode, &modes.map(|value| (value, true)));
        check(is_mode, &no.map(|value| (value, false)));
    }

    #[test]
    fn measures_are_numbers_with_a_unit() {
        let yes = [
            "1000us",
            "1920px",
            "19.2 px",
            "250µs",
            "1,5GB",
            "1,920px",
            "12.345678s",
            "90000ms",
            "3600s",
        ];
        let no = [
            "1000",
            "us",
            "1000usx",
            "a1000us",
            "12ab",
            "",
            "83920175w",
            "8392017546s",
            "4815162342px",
            "839,201.75MB",
            "48151623ms",
            "83920w",
        ];
        check(is_measure, &yes.map(|value| (value, true)));
        check(is_measure, &no.map(|value| (value, false)));
    }

    #[test]
    fn ratios_are_so_many_of_so_many() {
        let yes = ["88/90-r2", "37/52-2TD", "12/14", "9/10+2x"];
        let no = [
            "88",
            "88/",
            "/90",
            "88/90-harbor",
            "88/90!",
            "83920/17546",
            "ab/cd-1",
            "8/9/2024-Qx7Lm",
            "24/7-Ops",
            "12/25-Ops",
            "24/7-r2",
        ];
        check(is_ratio, &yes.map(|value| (value, true)));
        check(is_ratio, &no.map(|value| (value, false)));
    }

    #[test]
    fn notes_say_what_became_of_it_and_when() {
        let yes = [
            "rotated-2024-03-01",
            "last-changed-2w",
            "expires_20250101",
            "Rotated:2024-03-01",
            "stored-in-vault-since-3d",
            "last-reset.01.03.2024",
        ];
        let no = [
            "summer-2024-03-01",
            "rotated-2024",
            "rotated",
            "last-2w-Xk9vQ2",
            "ribbon-meadow-zipper-96",
            "red-2024-03-01",
            "last-2w-3d",
            "2024-03-01",
            "changed-83920175",
            "Ahmed-19900101",
            "Mohamed.14.08.1990",
            "Speed-Racer-90d",
            "Reset-Admin-20240615",
            "Next-Level-20240101",
        ];
        check(is_note, &yes.map(|value| (value, true)));
        check(is_note, &no.map(|value| (value, false)));
    }

    /// Nobody's password, but the number of an invoice.
    #[test]
    fn many_digits_are_no_password() {
        let judge = |value: &str| judge(value.as_bytes(), Promise::Password, true);
        assert!(judge("0503201201176001321000110010030009900641234567814").is_none());
        assert!(judge("050320120117").is_some());
        assert!(judge("0503201201176001321000110010").is_some());
    }

    #[test]
    fn types_have_types_between_brackets() {
        let always = [
            "Option<String>",
            "std::vector<int>",
            "Map<String, List<Integer>>",
            "Vec<u8>",
            "Option<LoginForm>",
        ];
        let bare = [
            "Map<String,",
            "Guarded<string>",
            "SecureField<LoginForm>",
            "Option<Wort>",
            "Box<dyn",
        ];
        let never = [
            "<password>",
            "Xk9<vQ2>mZ",
            "ab<",
            "x<>",
            "Zq7k2<W8m3>",
            "Xk9<vQ2>",
            "a<b",
            "Xkqv<Tzmw>",
            "SuperGeheim<Wort>",
            "Tr<?xQ*&[]ab>",
            "Qvxkz<QvxKzt>",
        ];
        for quoted in [false, true] {
            check(
                |value| is_type(value, quoted),
                &always.map(|value| (value, true)),
            );
            check(
                |value| is_type(value, quoted),
                &bare.map(|value| (value, !quoted)),
            );
            check(
                |value| is_type(value, quoted),
                &never.map(|value| (value, false)),
            );
        }
    }
}
