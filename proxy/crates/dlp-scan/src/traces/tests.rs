//! What every place shows by itself, held against what the blocks see.

use super::*;

/// What every place shows by itself.
fn naive(t: &[u8]) -> Traces {
    let is = |at: usize, n: usize, f: fn(u8) -> bool| at >= n && f(t[at - n]);
    let all = |want: &dyn Fn(usize) -> bool| {
        let places = (0..t.len()).filter(|i| want(*i));
        places.map(to_u32).collect::<Vec<_>>()
    };
    let hex = |b: u8| b.is_ascii_hexdigit();
    let digit = |b: u8| b.is_ascii_digit();
    let space = |b: u8| matches!(b, b' ' | b'\t'..=b'\r');
    let between = |i: usize, sign: u8, of: fn(u8) -> bool, lens: Range<usize>| {
        lens.into_iter()
            .find(|n| i > *n && t[i - n - 1] == sign && t[i - n..i].iter().all(|b| of(*b)))
    };
    let rows = |min: usize, of: &dyn Fn(usize) -> bool| {
        let mut rows = Vec::new();
        let mut from = 0;
        for i in 0..=t.len() {
            if i == t.len() || !of(i) {
                if i - from >= min {
                    rows.push(Span::new(from, i));
                }
                from = i + 1;
            }
        }
        rows
    };
    let words = |i: usize| match t[i] {
        b' ' => !(1..=3).any(|n| is(i, n, |b| b == b' ')),
        b => b.is_ascii_lowercase(),
    };
    let seven = |i: usize| {
        let same = (0..7).all(|n| i >= 2 * n && t[i - 2 * n] == t[i]);
        let between = (0..6).any(|n| is(i, 2 * n + 1, |b| b.is_ascii_alphanumeric()));
        same && between && b" .-_,|*/~\t\n+:;".contains(&t[i])
    };
    let pairs = |i: usize| {
        b" :-,._".contains(&t[i])
            && (0..7).all(|n| {
                let at = i.wrapping_sub(3 * n);
                i >= 3 * n + 2 && t[at] == t[i] && hex(t[at - 1]) && hex(t[at - 2])
            })
    };
    let phone = |i: usize| {
        let plus = is(i, 1, |b| b == b'+') && !is(i, 2, |b| b.is_ascii_alphanumeric());
        plus && (digit(t[i]) || b" -./(".contains(&t[i]))
            || i >= 3 && t[i - 3] == b'(' && t[i - 2..=i].iter().all(u8::is_ascii_digit)
    };
    let comma = |i: usize| {
        digit(t[i]) && is(i, 1, |b| b == b',') && i >= 2 && hex(t[i - 2])
            || (digit(t[i]) || space(t[i]))
                && i >= 3
                && space(t[i - 1])
                && t[i - 2] == b','
                && hex(t[i - 3])
    };
    Traces {
        kinds: Vec::new(),
        runs: rows(RUN_BYTES_MIN, &|i| crate::text::is_run(t[i])),
        ats: all(&|i| t[i] == b'@'),
        colons: all(&|i| {
            t[i] == b':' && between(i, b':', |b| b.is_ascii_hexdigit(), 0..5).is_some()
        }),
        dots: all(&|i| {
            let n = between(i, b'.', |b| b.is_ascii_digit(), 1..4);
            t[i] == b'.' && n.is_some_and(|n| is(i, n + 2, |b| b.is_ascii_digit()))
        }),
        commas: all(&comma),
        phones: all(&phone),
        joints: all(&|i| {
            let quote = |b: u8| b"\"'`".contains(&b);
            let signs = b"+.&~|\\".contains(&t[i]) && i > 0 && (space(t[i - 1]) || quote(t[i - 1]));
            let beside = quote(t[i]) && i > 1 && space(t[i - 1]) && quote(t[i - 2]);
            signs || beside || t[i] == b'\n' && is(i, 1, quote)
        }),
        cuts: {
            let solid = |b: u8| b.is_ascii_alphanumeric() || b"\"'`".contains(&b);
            let cut = |i: usize| {
                let gap = t[i] == b' ' && is(i, 1, |b| b == b' ') && !(i > 1 && space(t[i - 2]));
                let parted = is(i, 1, |b| b",;".contains(&b));
                gap || t[i].is_ascii_alphanumeric()
                    && i > 0
                    && (b'\t'..=b'\r').contains(&t[i - 1])
                    && t[i - 1] != b'\n'
                    || t[i] == b'|'
                    || solid(t[i]) && parted && i > 1 && solid(t[i - 2])
                    || matches!(t[i], 0x94 | 0x95 | 0xBD) && is(i, 1, |b| b == 0xE2 || b == 0xEF)
            };
            let mut cuts = all(&cut);
            cuts.dedup_by_key(|at| *at as usize / crate::traces::BLOCK);
            cuts
        },
        spaced: all(&seven),
        pairs: all(&pairs),
        words: rows(WORDS_BYTES_MIN, &words),
        strange: (0..t.len()).any(|i| {
            let before = |n: usize| if i < n { 0 } else { t[i - n] };
            let dash = |b: u8| matches!(b, 0x93 | 0x94) && !before(3).is_ascii_digit();
            !(matches!(
                (before(2), before(1), t[i]),
                (_, _, 0..0x80 | 0xC2..=0xC5 | 0xE2)
            ) || before(1) == 0xC2 && !b"\xa0\xad\xb2\xb3\xb9".contains(&t[i])
                || before(1) == 0xC3
                || before(1) == 0xC4 && t[i] != 0xB1
                || before(1) == 0xC5 && t[i] != 0xBF
                || before(1) == 0xE2 && b"\x80\x86\x94\x95\x9c".contains(&t[i])
                || before(2) == 0xE2 && b"\x86\x94\x95\x9c".contains(&before(1))
                || before(2) == 0xE2
                    && before(1) == 0x80
                    && (b"\x98\x99\x9c\x9d\xa2\xa6".contains(&t[i]) || dash(t[i])))
        }),
        quoted: (0..t.len()).any(|i| {
            let pair = || i >= 3 && t[i - 3] == b'=' && hex(t[i - 1]) && hex(t[i - 2]);
            t[i] == b'\n' && is(i, 1, |b| b == b'=') || t[i] == b'=' && pair()
        }),
        zeros: t.windows(4).any(|w| w == b"0000"),
        signs: signs(t),
        parting: to_u32(t.iter().filter(|b| matches!(b, 0x1E | 0x1F)).count()),
        written: Written {
            backslash: t.windows(2).any(|w| {
                w[0] == b'\\'
                    && (b"uUx\"_ 01234567:;<=>?@".contains(&w[1]) || (b'#'..=b'/').contains(&w[1]))
            }),
            percent: t.windows(2).any(|w| w == b"%u")
                || t.windows(3).any(|w| w[0] == b'%' && hex(w[1]) && hex(w[2])),
            entity: t
                .windows(2)
                .any(|w| w[0] == b'&' && (w[1] == b'#' || w[1].is_ascii_alphabetic())),
        },
    }
}

/// The signs that stand in a text.
fn signs(t: &[u8]) -> Signs {
    let any = |of: &[u8]| t.iter().any(|b| of.contains(b));
    let row = |a: &[u8], b: &[u8], c: &[u8]| {
        t.windows(3)
            .any(|w| a.contains(&w[0]) && b.contains(&w[1]) && c.contains(&w[2]))
    };
    let mark = row(b" \n", b"2", b".:,)\t")
        || row(b"8", b"5", b":d")
        || row(b"n", b" ", b"67")
        || t.windows(2).any(|w| w == b"\nl");
    let all = [
        (Signs::OPENING, any(b"{[")),
        (Signs::BRACE, any(b"{")),
        (Signs::BRACKET, any(b"[")),
        (Signs::LESS, any(b"<")),
        (Signs::EQUALS, any(b"=")),
        (Signs::SEMICOLON, any(b";")),
        (Signs::DOLLAR, any(b"$")),
        (Signs::STAR, any(b"*")),
        (Signs::CARET, any(b"^")),
        (Signs::BACKSLASH, any(b"\\")),
        (Signs::LINE, any(b"\n")),
        (Signs::TERMINAL, any(b"\x08\x1B")),
        (Signs::MARK, mark),
        (
            Signs::CONTROL,
            t.iter()
                .any(|b| (*b < 0x1E || *b == 0x7F) && !matches!(b, b'\t' | b'\n' | b'\r')),
        ),
    ];
    let there = all.into_iter().filter(|(_, is)| *is);
    there.fold(Signs::default(), |signs, (sign, _)| signs.or(sign))
}

fn same(text: &[u8], got: &Traces, what: &str) {
    let want = naive(text);
    let shown = String::from_utf8_lossy(text);
    let lists = |t: &Traces| {
        [
            t.ats.clone(),
            t.colons.clone(),
            t.dots.clone(),
            t.commas.clone(),
            t.phones.clone(),
            t.joints.clone(),
            t.cuts.clone(),
            t.spaced.clone(),
            t.pairs.clone(),
        ]
    };
    assert_eq!(lists(got), lists(&want), "{what}: {shown:?}");
    assert_eq!(
        (&got.runs, &got.words),
        (&want.runs, &want.words),
        "{what}: {shown:?}"
    );
    // Marks are not asked for any more where another sign speaks of them.
    let marks = |t: &Traces| t.signs.any(Signs::OF_MARKS) || t.signs.any(Signs::MARK);
    assert_eq!(marks(got), marks(&want), "{what}: {shown:?}");
    let others = |signs: Signs| match signs.any(Signs::OF_MARKS) {
        true => signs.or(Signs::MARK),
        false => signs,
    };
    let flags = |t: &Traces| {
        (
            t.strange,
            t.quoted,
            t.zeros,
            t.written,
            others(t.signs),
            t.parting,
        )
    };
    assert_eq!(flags(got), flags(&want), "{what}: {shown:?}");
    let digits: Vec<usize> = (0..text.len())
        .filter(|i| text[*i].is_ascii_digit())
        .collect();
    let mut at = 0;
    let mut found = Vec::new();
    while let Some(digit) = got.next_digit(at) {
        found.push(digit);
        at = digit + 1;
    }
    assert_eq!(found, digits, "{what}: {shown:?}");
    for at in (0..text.len()).step_by(7) {
        let of_word = |b: &&u8| b.is_ascii_alphanumeric();
        let (floor, ceil) = (at / 2, text.len() - (text.len() - at) / 3);
        let len = text[at..ceil].iter().take_while(of_word).count();
        let digits = text[at..at + len].iter().any(u8::is_ascii_digit);
        let letters = text[at..at + len].iter().any(u8::is_ascii_alphabetic);
        assert_eq!(
            got.word(at..ceil),
            (len, digits, letters),
            "{what}: {shown:?} {at}"
        );
        let small = text[..at].iter().rev().take(16);
        let small = small.take_while(|b| b.is_ascii_lowercase()).count();
        assert_eq!(got.small_before(at), small, "{what}: {shown:?} {at}");
        let before = text[floor..at].iter().rev().take_while(of_word).count();
        assert_eq!(
            got.word_start(at, floor),
            at - before,
            "{what}: {shown:?} {at}"
        );
    }
}

/// Texts of what the traces are made of, with rows of it now and then.
fn texts() -> impl Iterator<Item = Vec<u8>> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "7",
        "0",
        "0000",
        " ",
        "  ",
        ",",
        ", ",
        ".",
        ":",
        "::",
        "-",
        "/",
        "+",
        "(",
        "@",
        "=",
        "=\n",
        "=41",
        "\"",
        "' + '",
        "\" . \"",
        "_",
        "é",
        "\u{ad}",
        "ı",
        "“",
        "–",
        "→",
        "日",
        "\n",
        "\t",
        "12",
        "192.168",
        "fe80:",
        "word ",
        "phrase ",
        "of ",
        "ABCDEF",
        "g h ",
        "67 ",
        "68:",
        "s.",
        "abcdefghijklmnop",
        "0123456789abcdef",
        "\u{1f}",
        "(415",
        "+49 ",
        "|| ",
        "\\",
        "\\u",
        "%4",
        "%u",
        "&",
        "#",
        " 2. ",
        "\n2)",
        "\nl",
        "n 6",
        "b85d",
        "{",
        "[",
        "<",
        ";",
        "$",
        "*",
        "^",
        "\u{1b}",
        "\u{8}",
    ];
    let mut seed = 11_u64;
    let mut next = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % n
    };
    (0..3000).map(move |_| {
        let mut text = "x".repeat(next(70)).into_bytes();
        for _ in 0..next(40) {
            let piece = PIECES[next(PIECES.len())].as_bytes();
            let times = if next(4) == 0 { next(30) } else { 1 };
            text.extend(piece.repeat(times));
        }
        text
    })
}

/// In every way that this processor can.
fn check(text: &[u8], traces: &mut Traces) {
    traces.read(text);
    same(text, traces, "as this processor reads");
    #[cfg(target_arch = "x86_64")]
    for wide in wide::Wide::detect() {
        traces.clear();
        wide.read(text, traces);
        same(text, traces, &format!("{wide:?}"));
    }
    traces.clear();
    Reader::read::<Plain>(text, traces);
    same(text, traces, "as any processor reads");
}

#[test]
fn every_block_sees_what_each_place_shows_by_itself() {
    let mut traces = Traces::default();
    for text in texts() {
        check(&text, &mut traces);
    }
}

#[test]
fn every_byte_is_told_apart() {
    let mut traces = Traces::default();
    for byte in 0..=u8::MAX {
        for pad in [0, 1, 62, 63, 64, 65] {
            let mut text = vec![b'1'; pad];
            text.extend([byte, b'2', byte, byte]);
            check(&text, &mut traces);
        }
    }
}
