//! What values look like that no sign sets apart, and the signs of other languages that do.

use crate::entropy::{Classes, wordiness};

/// Letters of both cases and digits in no order, as no word has them.
pub(super) fn drawn(word: &[u8]) -> bool {
    let c = Classes::of(word);
    let mixed = c.lower >= 2 && c.upper >= 2 && c.digit >= 1 && c.changes >= 6;
    (10..=40).contains(&word.len()) && mixed && wordiness(word) < 0.6
}

/// Quotation marks of other languages, and what closes them.
pub(super) fn opening(text: &[u8]) -> Option<(&'static str, &'static str)> {
    const MARKS: [(&str, &str); 6] = [
        ("«", "»"),
        ("“", "”"),
        ("„", "“"),
        ("「", "」"),
        ("『", "』"),
        ("‘", "’"),
    ];
    let first = text.first().filter(|b| **b >= 0x80);
    first.and_then(|_| {
        MARKS
            .into_iter()
            .find(|(o, _)| text.starts_with(o.as_bytes()))
    })
}

/// Arrows that point from a name to its value: how long they are.
pub(super) fn arrow(text: &[u8]) -> usize {
    const ARROWS: [&str; 10] = ["→", "⇒", "⇨", "➜", "➔", "➡", "⟶", "▸", "►", "▶"];
    let first = text.first().filter(|b| **b >= 0x80);
    let found = first.and_then(|_| ARROWS.iter().find(|a| text.starts_with(a.as_bytes())));
    found.map_or(0, |a| a.len())
}

/// `[]byte("`, `SecretStr('`, `Encoding.UTF8.GetBytes("`: how far it is to the literal in a call that makes another type of it.
pub(super) fn wrapping(text: &[u8]) -> usize {
    const BYTES_MAX: usize = 48;
    const CALLS: &[&str] = &[
        "apikey",
        "apitoken",
        "asc",
        "atob",
        "b64decode",
        "bearer",
        "bearertoken",
        "bytes",
        "byte",
        "cast",
        "crypt",
        "decode",
        "encode",
        "encrypt",
        "from",
        "frombase64string",
        "fromhex",
        "fromstring",
        "getbytes",
        "guardedstring",
        "hashbytes",
        "just",
        "md5",
        "new",
        "of",
        "ofnullable",
        "ok",
        "password",
        "pgp_sym_encrypt",
        "secret",
        "secretbytes",
        "secretkeyspec",
        "secretstr",
        "secretstring",
        "secretvalue",
        "securestring",
        "sensitive",
        "sha1",
        "sha2",
        "sha256",
        "sha512",
        "some",
        "str",
        "string",
        "strip",
        "token",
        "tobytearray",
        "trim",
        "trimspace",
        "unhexlify",
        "utf8",
        "wrap",
    ];
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"_.:&!".contains(b);
    let slice = if text.starts_with(b"[]") { 2 } else { 0 };
    let near = &text[slice..text.len().min(BYTES_MAX)];
    let called = near.iter().take_while(|b| part(b)).count();
    let path = &near[..called];
    // `new String("...")`
    let created = path == b"new" && near.get(called) == Some(&b' ');
    if created {
        let inner = wrapping(&near[called + 1..]);
        return if inner > 0 { called + 1 + inner } else { 0 };
    }
    // `lazy { "..." }`
    if path == b"lazy" {
        let rest = near[called..].trim_ascii_start().strip_prefix(b"{");
        let inner = rest.map(<[u8]>::trim_ascii_start);
        let found = inner.filter(|inner| inner.starts_with(b"\""));
        return found.map_or(0, |inner| near.len() - inner.len());
    }
    let last = path.rsplit(|b| b".:&!".contains(b)).find(|w| !w.is_empty());
    let known = last.is_some_and(|last| {
        CALLS
            .iter()
            .any(|call| last.eq_ignore_ascii_case(call.as_bytes()))
    });
    let Some(inner) = near[called..].strip_prefix(b"(").filter(|_| known) else {
        return 0;
    };
    let white = inner.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let at = slice + called + 1 + white;
    let literal = matches!(
        &inner[white..],
        [b'"' | b'\'' | b'`', ..]
            | [b'b' | b'r' | b'@' | b'u', b'"' | b'\'', ..]
            | [b'\\', b'"' | b'\'', ..]
    );
    // One in the other: `Some(String::from("..."))`.
    match (literal, at) {
        (true, at) => at,
        (false, at) => match wrapping(&text[at..text.len().min(at + BYTES_MAX)]) {
            0 => 0,
            more => at + more,
        },
    }
}

/// `ENV["X"] || "..."`, `os.getenv("X") or "..."`: how far it is to the literal that is taken where nothing else is given.
pub(super) fn fallback(text: &[u8]) -> usize {
    const BYTES_MAX: usize = 80;
    const SIGNS: [&[u8]; 4] = [b" || ", b" ?? ", b" ?: ", b" or "];
    let near = &text[..text.len().min(BYTES_MAX)];
    let part = |b: &u8| b.is_ascii_alphanumeric() || b"_.$[]()\"':-".contains(b);
    let len = near.iter().take_while(|b| part(b)).count();
    let Some(sign) = SIGNS.iter().find(|sign| near[len..].starts_with(sign)) else {
        return 0;
    };
    let at = len + sign.len();
    let asked = near[..len].iter().any(|b| b"[(.".contains(b));
    match near.get(at) {
        Some(b'"' | b'\'' | b'`') if asked => at,
        _ => 0,
    }
}

/// `q{...}`, `qq(...)`, `qw[...]`: how long what opens a literal in Perl is, and what closes it.
pub(super) fn perl_quote(text: &[u8]) -> Option<(usize, u8)> {
    let rest = text.strip_prefix(b"q")?;
    let more = usize::from(matches!(rest.first(), Some(b'q' | b'w')));
    let close = match rest.get(more)? {
        b'{' => b'}',
        b'(' => b')',
        b'[' => b']',
        b'<' => b'>',
        sign @ (b'|' | b'!' | b'/' | b'~') => *sign,
        _ => return None,
    };
    Some((2 + more, close))
}

/// Does it begin with what ends a sentence of Japanese or Korean behind a value, with no blank between: `5f4d...です`?
pub(super) fn begins_ending(text: &[u8]) -> bool {
    const ENDINGS: [&str; 8] = [
        "です",
        "だ",
        "でした",
        "に",
        "を",
        "입니다",
        "이다",
        "이에요",
    ];
    ENDINGS.iter().any(|word| text.starts_with(word.as_bytes()))
}

/// Does it begin with a sign that ends a part of a sentence in Chinese, Japanese or Arabic?
pub(super) fn begins_sign(text: &[u8]) -> bool {
    const SIGNS: [&str; 14] = [
        "，", "。", "；", "、", "）", "】", "」", "』", "”", "’", "»", "…", "！", "،",
    ];
    SIGNS.iter().any(|s| text.starts_with(s.as_bytes()))
}

/// What stands alone on its line and is neither a word nor code: three kinds of characters, a sign of passwords too.
pub(super) fn lone(line: &[u8]) -> bool {
    let c = Classes::of(line);
    let sign = |b: &u8| b"!@#$%^&*?+~".contains(b);
    let code = |b: &u8| b"()[]{}<>=:;,/\\|\"'`".contains(b);
    let mail = line.contains(&b'@') && line.contains(&b'.');
    let kinds = [c.lower, c.upper, c.digit]
        .iter()
        .filter(|n| **n > 0)
        .count();
    (8..64).contains(&line.len())
        && line[0].is_ascii_alphanumeric()
        && line.iter().all(u8::is_ascii_graphic)
        && !line.iter().any(code)
        && !mail
        && kinds >= 2
        && line.iter().any(sign)
}

/// `<br>` or `<br />`, and the end of the line behind it: how long they are.
pub(super) fn line_break(text: &[u8]) -> usize {
    let tags = ["<br>", "<br/>", "<br />", "<BR>"];
    let tag = tags.iter().find(|tag| text.starts_with(tag.as_bytes()));
    tag.map_or(0, |tag| {
        let behind = text[tag.len()..].iter().take(3);
        tag.len() + behind.take_while(|b| b.is_ascii_whitespace()).count()
    })
}

/// `setDbPassword("...")`, `with_api_key('...')`: what is given to a setter has its name.
pub(super) fn is_setter(name: &[u8]) -> bool {
    let name = name.rsplit(|b| *b == b'.').next().unwrap_or_default();
    ["set", "with"].iter().any(|verb| {
        let behind = name
            .get(..verb.len())
            .filter(|head| head.eq_ignore_ascii_case(verb.as_bytes()))
            .and_then(|_| name.get(verb.len()));
        behind.is_some_and(|b| b.is_ascii_uppercase() || *b == b'_')
    })
}
