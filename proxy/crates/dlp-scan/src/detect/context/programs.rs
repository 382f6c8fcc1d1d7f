//! Words that explain a number among people and name something else in programs: `tools/call`, `ring buffer`, `phone_id`.

use std::ops::Range;

/// What people do with a number. In programs it is done to functions.
const DEEDS: [&[u8]; 3] = [b"call", b"ring", b"dial"];

/// What is said behind such a word when a person is meant.
const SAID: [&[u8]; 39] = [
    b"me",
    b"us",
    b"him",
    b"her",
    b"them",
    b"you",
    b"on",
    b"at",
    b"back",
    b"my",
    b"your",
    b"our",
    b"his",
    b"their",
    b"now",
    b"or",
    b"and",
    b"for",
    b"mum",
    b"mom",
    b"dad",
    b"home",
    b"before",
    b"after",
    b"tonight",
    b"today",
    b"tomorrow",
    b"please",
    b"asap",
    b"again",
    b"number",
    b"no",
    b"directly",
    b"meg",
    b"mig",
    b"oss",
    b"til",
    b"till",
    b"anytime",
];

/// What is said when the number itself follows.
const LEADS: [&[u8]; 3] = [b"to", b"from", b"the"];

/// Words for phones and how to reach somebody.
const PHONES: [&[u8]; 16] = [
    b"phone",
    b"mobile",
    b"cell",
    b"contact",
    b"kontakt",
    b"contacto",
    b"contato",
    b"sms",
    b"gsm",
    b"tel",
    b"fax",
    b"telephone",
    b"handset",
    b"mobil",
    b"viber",
    b"txt",
];

/// What a name is of that begins with such a word: one of many, or how something is kept.
const KEPT: [&[u8]; 30] = [
    b"id",
    b"ids",
    b"uid",
    b"uuid",
    b"build",
    b"version",
    b"line",
    b"lines",
    b"type",
    b"types",
    b"value",
    b"values",
    b"index",
    b"idx",
    b"key",
    b"keys",
    b"ref",
    b"seq",
    b"hash",
    b"ts",
    b"timestamp",
    b"time",
    b"date",
    b"status",
    b"code",
    b"offset",
    b"addr",
    b"row",
    b"column",
    b"range",
];

/// What is done about papers, and not written in them: `Passport applications up 12%`.
const ABOUT: [&[u8]; 9] = [
    b"applications",
    b"holders",
    b"renewals",
    b"issuance",
    b"statistics",
    b"offices",
    b"controls",
    b"checks",
    b"fees",
];

/// Is the phrase a word of a program, or of a report, where it stands?
pub(super) fn is_word(text: &[u8], range: Range<usize>, phrase: &[u8]) -> bool {
    let (before, after) = (&text[..range.start], &text[range.end..]);
    if DEEDS.contains(&phrase) {
        return !is_deed(before, after);
    }
    if PHONES.contains(&phrase) {
        return is_kept(phrase, after);
    }
    match phrase {
        b"birth" => [&b" of the "[..], b" of a "]
            .iter()
            .any(|of| after.starts_with(of)),
        b"passport" => is_any(
            next_word(after.strip_prefix(b" ").unwrap_or_default()),
            &ABOUT,
        ),
        _ => false,
    }
}

/// `please call 0171 711`, `Call me on ...`, but not `tools/call`, `call_id`, `v.call("tick")` or `call stack depth`.
fn is_deed(before: &[u8], after: &[u8]) -> bool {
    let glued = before
        .last()
        .is_some_and(|b| b.is_ascii_digit() || b"/_-.$@#\\".contains(b));
    // `function call 12`
    const NOUNS: [&[u8]; 8] = [
        b"function",
        b"tool",
        b"system",
        b"method",
        b"api",
        b"procedure",
        b"rpc",
        b"remote",
    ];
    let lead = before.strip_suffix(b" ").unwrap_or_default();
    let letters = lead
        .iter()
        .rev()
        .take(12)
        .take_while(|b| b.is_ascii_alphabetic());
    if glued || is_any(&lead[lead.len() - letters.count()..], &NOUNS) {
        return false;
    }
    let rest = after.strip_prefix(b":").unwrap_or(after);
    let Some(rest) = rest.strip_prefix(b" ") else {
        return false;
    };
    // Nobody has one digit.
    let number = |rest: &[u8]| match rest {
        [b'+' | b'(', ..] => true,
        [first, second, ..] => first.is_ascii_digit() && *second != b' ',
        _ => false,
    };
    let word = next_word(rest);
    let name = word.len() > 1 && word[0].is_ascii_uppercase() && word[1].is_ascii_lowercase();
    let leads = is_any(word, &LEADS) && rest.get(word.len()) == Some(&b' ');
    number(rest)
        || name
        || is_any(word, &SAID)
        || leads && number(rest.get(word.len() + 1..).unwrap_or_default())
}

/// `phone_id`, `mobile_build`, `cellLine`; `cell A12`, and `contacts`, which are counted.
fn is_kept(phrase: &[u8], after: &[u8]) -> bool {
    if phrase == b"contact" && after.first().is_some_and(|b| b.eq_ignore_ascii_case(&b's')) {
        return true;
    }
    let (lead, word) = match after {
        [lead @ (b'_' | b'-' | b' '), rest @ ..] => (*lead, next_word(rest)),
        [b'A'..=b'Z', ..] => (b'_', hump(after)),
        _ => return false,
    };
    let place = |word: &[u8]| {
        let letters = word.iter().take_while(|b| b.is_ascii_uppercase()).count();
        let digits = word[letters..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
        (1..=3).contains(&letters) && digits > 0 && letters + digits == word.len()
    };
    match lead {
        b' ' => phrase == b"cell" && (place(word) || is_any(word, &KEPT)),
        _ => is_any(word, &KEPT),
    }
}

/// The letters and digits that a text begins with.
fn next_word(text: &[u8]) -> &[u8] {
    let len = text
        .iter()
        .take(16)
        .take_while(|b| b.is_ascii_alphanumeric());
    &text[..len.count()]
}

/// The word of a name in humps that a text begins with.
fn hump(text: &[u8]) -> &[u8] {
    let small = text
        .iter()
        .skip(1)
        .take(16)
        .take_while(|b| b.is_ascii_lowercase());
    &text[..text.len().min(1 + small.count())]
}

fn is_any(word: &[u8], list: &[&[u8]]) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::is_word;

    #[test]
    fn words_of_programs() {
        for (before, phrase, after, is) in [
            ("tools/", "call", "\u{1e}174313577", true),
            ("function_", "call", ": 174313577", true),
            ("", "call", "_id 1234567890", true),
            ("", "call", " stack depth 1234567890", true),
            ("v.", "call", "(\"tick\")", true),
            ("", "call", "   14b10", true),
            ("", "ring", " buffer size 2048 4096", true),
            ("", "ring", " 0 at 1234567890", true),
            ("COMPLETION_", "RING", ": u64 = 6442450944", true),
            ("please ", "call", " 0171 7113108", false),
            ("", "Call", ": (212) 324-5130", false),
            ("", "call", " or text 212-324-5130", false),
            ("", "call", " Maria at 212-324-5130", false),
            ("", "call", " to 0171 7113108", false),
            ("", "call", " to foo", true),
            ("", "cell", " A12: 1234567890", true),
            ("", "cell", " 0171", false),
            ("", "cell", "_line", true),
            ("", "cell", " phone", false),
            ("", "mobile", "_build", true),
            ("", "mobile", "_no", false),
            ("", "phone", "Id", true),
            ("", "phone", "Number", false),
            ("", "contact", "s: 12", true),
            ("", "birth", " of the crate", true),
            ("", "birth", ": 12", false),
            ("", "Passport", " applications up", true),
            ("", "passport", " AB1234567", false),
        ] {
            let text = format!("{before}{phrase}{after}");
            let range = before.len()..before.len() + phrase.len();
            let phrase = phrase.to_ascii_lowercase();
            assert_eq!(
                is_word(text.as_bytes(), range, phrase.as_bytes()),
                is,
                "{text}"
            );
        }
    }
}
