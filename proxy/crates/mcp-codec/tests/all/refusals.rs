//! Every refusal by name, with its place; and what looks alike and is accepted.

use bytes::Bytes;
use mcp_codec::{DecodeErrorKind as Bad, Document, Limits};

fn refusal(bytes: &[u8], limits: &Limits) -> Option<(Bad, usize)> {
    Document::parse(Bytes::copy_from_slice(bytes), limits)
        .err()
        .map(|error| (error.kind, error.offset))
}

#[track_caller]
fn check(bytes: &[u8], expected: impl Into<Option<(Bad, usize)>>) {
    assert_eq!(
        refusal(bytes, &Limits::default()),
        expected.into(),
        "{}",
        String::from_utf8_lossy(bytes)
    );
}

#[test]
fn not_json() {
    let cases: &[(&[u8], Bad, usize)] = &[
        (b"", Bad::Empty, 0),
        (b"  \n", Bad::Empty, 3),
        (b"\xef\xbb\xbf{}", Bad::ByteOrderMark, 0),
        (b"\xff\xfe{\0}\0", Bad::ByteOrderMark, 0),
        (b"\xfe\xff\0{\0}", Bad::ByteOrderMark, 0),
        (b"\0\0\xfe\xff\0\0\0{", Bad::ByteOrderMark, 0),
        (b"{\0}\0", Bad::NotUtf8, 1),
        (b"\0{\0}", Bad::NotUtf8, 0),
        (b"{\0\0\0}\0\0\0", Bad::NotUtf8, 1),
        (b"\"a\xff\"", Bad::NotUtf8, 2),
        (b"\"\xc0\xaf\"", Bad::NotUtf8, 1),
        (b"\"\xed\xa0\x80\"", Bad::NotUtf8, 1),
        (b"\"\xf4\x90\x80\x80\"", Bad::NotUtf8, 1),
        (b"\"ab\xe2\x82", Bad::NotUtf8, 3),
        (b"+ADs-", Bad::UnexpectedByte, 0),
        (b" \xc2\xa0{}", Bad::UnexpectedByte, 1),
        (b"{} {}", Bad::TrailingData, 3),
        (b"{}\0", Bad::TrailingData, 2),
        (b"[1] x", Bad::TrailingData, 4),
        (b"1 2", Bad::TrailingData, 2),
        (b"[1,]", Bad::TrailingComma, 3),
        (b"{\"a\":1,}", Bad::TrailingComma, 7),
        (b"[,1]", Bad::UnexpectedByte, 1),
        (b"[1 2]", Bad::UnexpectedByte, 3),
        (b"[1}", Bad::UnexpectedByte, 2),
        (b"{\"a\":1]", Bad::UnexpectedByte, 6),
        (b"{\"a\" 1}", Bad::UnexpectedByte, 5),
        (b"{\"a\":}", Bad::UnexpectedByte, 5),
        (b"{a:1}", Bad::UnexpectedByte, 1),
        (b"{1:1}", Bad::UnexpectedByte, 1),
        (b"{'a':1}", Bad::UnexpectedByte, 1),
        (b"{\"a\":1 // x\n}", Bad::UnexpectedByte, 7),
        (b"/* */ {}", Bad::UnexpectedByte, 0),
        (b"NaN", Bad::UnexpectedByte, 0),
        (b"Infinity", Bad::UnexpectedByte, 0),
        (b"-Infinity", Bad::BadNumber, 1),
        (b"nul", Bad::UnexpectedEnd, 3),
        (b"nulL", Bad::UnexpectedByte, 3),
        (b"True", Bad::UnexpectedByte, 0),
        (b"truefalse", Bad::TrailingData, 4),
        (b"]", Bad::UnexpectedByte, 0),
        (b"[", Bad::UnexpectedEnd, 1),
        (b"{\"a", Bad::UnexpectedEnd, 3),
        (b"{\"a\"", Bad::UnexpectedEnd, 4),
        (b"{\"a\":", Bad::UnexpectedEnd, 5),
        (b"{\"a\":1", Bad::UnexpectedEnd, 6),
        (b"{\"a\":1,", Bad::UnexpectedEnd, 7),
        (b"undefined", Bad::UnexpectedByte, 0),
    ];
    for &(bytes, kind, offset) in cases {
        check(bytes, (kind, offset));
        let error = Document::parse(Bytes::copy_from_slice(bytes), &Limits::default()).unwrap_err();
        assert_eq!(error.json_rpc_code(), -32700, "{kind:?}");
    }
}

#[test]
fn numbers() {
    for good in [
        "0",
        "-0",
        "1",
        "-1",
        "10",
        "0.0",
        "1e5",
        "1E+5",
        "1e-5",
        "-0.0e-0",
        "1E400",
        "12345678901234567890123",
    ] {
        check(good.as_bytes(), None);
        let doc = super::documents::parse(&format!("[{good}]"));
        assert_eq!(
            doc.to_bytes(),
            format!("[{good}]"),
            "a number stays as it is"
        );
    }
    let cases = [
        ("01", Bad::BadNumber, 0),
        ("-01", Bad::BadNumber, 1),
        ("00", Bad::BadNumber, 0),
        ("[-]", Bad::BadNumber, 2),
        ("-", Bad::UnexpectedEnd, 1),
        ("1.", Bad::UnexpectedEnd, 2),
        ("[1.]", Bad::BadNumber, 3),
        ("[1.e3]", Bad::BadNumber, 3),
        ("[1e]", Bad::BadNumber, 3),
        ("[1e+]", Bad::BadNumber, 4),
        ("1e", Bad::UnexpectedEnd, 2),
        ("+1", Bad::UnexpectedByte, 0),
        (".5", Bad::UnexpectedByte, 0),
        ("0x10", Bad::TrailingData, 1),
        ("[0x10]", Bad::UnexpectedByte, 2),
        ("[1_000]", Bad::UnexpectedByte, 2),
        ("[--1]", Bad::BadNumber, 2),
    ];
    for (text, kind, offset) in cases {
        check(text.as_bytes(), (kind, offset));
    }
}

#[test]
fn strings() {
    let good = [
        r#""""#,
        r#""\"\\\/\b\f\n\r\t""#,
        r#""\u0041""#,
        r#""\ud83d\ude00""#,
        r#""\uD83D\uDE00""#,
        "\"é\u{7f}\u{2028}\"",
        r#""\u0000""#,
        r#""\uFFFF""#,
    ];
    for text in good {
        check(text.as_bytes(), None);
    }
    let cases: &[(&[u8], Bad, usize)] = &[
        (b"\"a\nb\"", Bad::ControlCharacter, 2),
        (b"\"a\tb\"", Bad::ControlCharacter, 2),
        (b"\"ab\0\"", Bad::ControlCharacter, 3),
        (b"\"\\n\x1f\"", Bad::ControlCharacter, 3),
        (b"{\"a\x01\":1}", Bad::ControlCharacter, 3),
        (br#""\x41""#, Bad::BadEscape, 1),
        (br#""\'""#, Bad::BadEscape, 1),
        (br#""\N""#, Bad::BadEscape, 1),
        (b"\"a\\\n\"", Bad::BadEscape, 2),
        (br#""\u12g4""#, Bad::BadEscape, 1),
        (br#""\u+123""#, Bad::BadEscape, 1),
        (br#""\U0041""#, Bad::BadEscape, 1),
        (br#""\ud83d\u00g0""#, Bad::BadEscape, 7),
        (br#""\"#, Bad::UnexpectedEnd, 2),
        (br#""\u12"#, Bad::UnexpectedEnd, 5),
        (br#""\ud83d"#, Bad::UnexpectedEnd, 7),
        (br#""\ud83d\"#, Bad::UnexpectedEnd, 8),
        (br#""\ud83d\u12"#, Bad::UnexpectedEnd, 11),
        (br#""abc"#, Bad::UnexpectedEnd, 4),
        (br#""a\u0041"#, Bad::UnexpectedEnd, 8),
        (br#""\ud800""#, Bad::LoneSurrogate, 1),
        (br#""\udc00""#, Bad::LoneSurrogate, 1),
        (br#""a\ud83dx""#, Bad::LoneSurrogate, 2),
        (br#""\ud83d\n""#, Bad::LoneSurrogate, 1),
        (br#""\ud83d\ud83d""#, Bad::LoneSurrogate, 1),
        (br#""\ud83d\u0041""#, Bad::LoneSurrogate, 1),
        (br#""\ude00\ud83d""#, Bad::LoneSurrogate, 1),
        (br#"{"\udead":1}"#, Bad::LoneSurrogate, 2),
    ];
    for &(bytes, kind, offset) in cases {
        check(bytes, (kind, offset));
    }
}

#[test]
fn duplicate_keys_at_any_depth_and_in_any_spelling() {
    let cases = [
        (r#"{"a":1,"a":1}"#, Some(7)),
        (r#"{"a":1,"\u0061":2}"#, Some(7)),
        (r#"{"\u0061":1,"a":2}"#, Some(12)),
        (r#"{"a\/b":1,"a/b":2}"#, Some(10)),
        (r#"{"":1,"":2}"#, Some(6)),
        (r#"{"x":[{"y":{"a":1,"b":2,"a":3}}]}"#, Some(24)),
        (r#"{"a":{"b":1},"c":{"b":1},"b":1}"#, None),
        (r#"[{"a":1},{"a":1}]"#, None),
        (r#"{"a":1,"A":2,"a ":3,"":4}"#, None),
        (
            r#"{"12345678a":1,"12345678b":2,"12345678":3,"1234567":4}"#,
            None,
        ),
        (
            r#"{"12345678abc":1,"12345678abd":2,"12345678abc":3}"#,
            Some(33),
        ),
        (r#"{"é":1,"e\u0301":2}"#, None),
        (r#"{"é":1,"\u00e9":2}"#, Some(8)),
        (r#"{"a":1,"a\u0000":2}"#, None),
    ];
    for (text, at) in cases {
        check(text.as_bytes(), at.map(|at| (Bad::DuplicateKey, at)));
    }
}

#[test]
fn duplicate_keys_in_objects_of_every_size() {
    for count in (2..40).chain([100, 1000]) {
        for (first, second) in [(0, 1), (0, count - 1), (count / 2, count - 1)] {
            if first == second {
                continue;
            }
            let keys: Vec<_> = (0..count)
                .map(|n| format!("\"some_longer_key_{n}\":{{\"v\":[{n}]}}"))
                .collect();
            check(format!("{{{}}}", keys.join(",")).as_bytes(), None);
            let mut twice = keys.clone();
            twice[second] = keys[first].replace("some", "\\u0073ome");
            let text = format!("{{{}}}", twice.join(","));
            let at = text.find("\\u0073").unwrap() - 1;
            check(text.as_bytes(), (Bad::DuplicateKey, at));
        }
    }
}

/// A quadratic comparison of 250,000 keys would take minutes; keys are made alike so that a lazy one would be slow too.
#[test]
fn an_object_of_nothing_but_keys_is_not_quadratic() {
    let mut text = String::from("{");
    for n in 0..240_000 {
        text.push_str(&format!("\"aaaaaa{n:06}\":1,"));
    }
    text.push_str("\"last\":1}");
    assert!(text.len() < Limits::default().bytes_max);
    check(text.as_bytes(), None);
    let twice = text.replace("\"last\"", "\"aaaaaa000000\"");
    check(
        twice.as_bytes(),
        (Bad::DuplicateKey, twice.rfind("\"aaaaaa000000\"").unwrap()),
    );
}

#[test]
fn limits_are_reached_and_not_passed() {
    let small = Limits {
        bytes_max: 100,
        depth_max: 4,
        tokens_max: 10,
        number_bytes_max: 5,
        ..Limits::default()
    };
    let check = |text: String, expected: Option<(Bad, usize)>| {
        assert_eq!(refusal(text.as_bytes(), &small), expected, "{text}");
    };
    check(format!("\"{}\"", "a".repeat(98)), None);
    check(
        format!("\"{}\"", "a".repeat(99)),
        Some((Bad::TooLarge, 100)),
    );
    check("[[[[1]]]]".into(), None);
    check("[[[[[]]]]]".into(), Some((Bad::TooDeep, 4)));
    check(r#"[{"a":[{"b":1}]}]"#.into(), None);
    check(r#"[{"a":[{"b":{}}]}]"#.into(), Some((Bad::TooDeep, 12)));
    check("[1,2,3,4,5,6,7,8,9]".into(), None);
    check(
        "[1,2,3,4,5,6,7,8,9,0]".into(),
        Some((Bad::TooManyTokens, 19)),
    );
    check(r#"{"a":1,"b":2,"c":3,"d":4}"#.into(), None);
    check(
        r#"{"a":1,"b":2,"c":3,"d":4,"e":[]}"#.into(),
        Some((Bad::TooManyTokens, 29)),
    );
    check(
        "[[],[],[],[],[],[],[],[],[],[]]".into(),
        Some((Bad::TooManyTokens, 28)),
    );
    check("[12345,1e300]".into(), None);
    check("[12345,1e3000]".into(), Some((Bad::NumberTooLong, 7)));
}

#[test]
fn default_limits() {
    let limits = Limits::default();
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check(nested(64).as_bytes(), None);
    check(nested(65).as_bytes(), (Bad::TooDeep, 64));
    check("[".repeat(100_000).as_bytes(), (Bad::TooDeep, 64));
    check("{\"a\":".repeat(100_000).as_bytes(), (Bad::TooDeep, 320));
    check("9".repeat(limits.number_bytes_max).as_bytes(), None);
    check(
        "9".repeat(limits.number_bytes_max + 1).as_bytes(),
        (Bad::NumberTooLong, 0),
    );
    check("9".repeat(1 << 20).as_bytes(), (Bad::NumberTooLong, 0));
    let items = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
    check(items(limits.tokens_max - 1).as_bytes(), None);
    let over = refusal(items(limits.tokens_max).as_bytes(), &limits).unwrap();
    assert_eq!(over.0, Bad::TooManyTokens);
    check(
        &vec![b' '; limits.bytes_max + 1],
        (Bad::TooLarge, limits.bytes_max),
    );
}

#[test]
fn no_error_shows_the_input() {
    let cases = [
        r#"{"hunter2":1,"hunter2":2}"#,
        "hunter2",
        r#"{"jsonrpc":"hunter2"}"#,
        r#"{"id":"hunter2","id":"x"}"#,
    ];
    for text in cases {
        let error = mcp_codec::Message::decode(Bytes::from(text), &Limits::default()).unwrap_err();
        for shown in [
            error.to_string(),
            format!("{error:?}"),
            error.client_text().into(),
        ] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}
