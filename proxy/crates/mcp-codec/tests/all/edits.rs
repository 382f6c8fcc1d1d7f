//! Edits change what they name and nothing else.

use mcp_codec::{DecodeErrorKind, Document, EditError, Edits, LeafId, Limits, Node};

use super::documents::parse;

fn leaf(doc: &Document, text: &str) -> LeafId {
    doc.leaves()
        .find(|leaf| leaf.text == text)
        .unwrap_or_else(|| panic!("no leaf {text}"))
        .id
}

fn node(doc: &Document, path: &[&str]) -> Node {
    doc.get(path)
        .unwrap_or_else(|| panic!("nothing at {path:?}"))
}

#[track_caller]
fn check(json: &str, edit: impl Fn(&Document, &mut Edits), expected: Result<&str, EditError>) {
    let doc = parse(json);
    let mut edits = Edits::new();
    edit(&doc, &mut edits);
    let edited = doc.edit(&edits);
    assert_eq!(
        edited,
        expected.map(|text| bytes::Bytes::copy_from_slice(text.as_bytes())),
        "{json}"
    );
    if let Ok(bytes) = edited {
        assert!(
            Document::parse(bytes.clone(), &Limits::default()).is_ok(),
            "{bytes:?}"
        );
    }
}

#[test]
fn ranges() {
    let one = |text: &'static str, range: std::ops::Range<usize>, with: &'static str| {
        move |doc: &Document, edits: &mut Edits| edits.replace(leaf(doc, text), range.clone(), with)
    };
    check(
        r#"{"a":"x secret y", "b":1}"#,
        one("x secret y", 2..8, "***"),
        Ok(r#"{"a":"x *** y", "b":1}"#),
    );
    check(r#"["abc"]"#, one("abc", 0..3, ""), Ok(r#"[""]"#));
    check(r#"["abc"]"#, one("abc", 3..3, "d"), Ok(r#"["abcd"]"#));
    check(
        r#"["abc"]"#,
        one("abc", 1..2, "\"\n/\u{1}é"),
        Ok(r#"["a\"\n/\u0001éc"]"#),
    );
    check(
        r#"["a\u0062\n\/c","\u0064"]"#,
        one("ab\n/c", 1..2, "X"),
        Ok(r#"["aX\n/c","d"]"#),
    );
    check(r#"["é"]"#, one("é", 1..2, "X"), Err(EditError::BadRange));
    check(r#"["é"]"#, one("é", 0..3, "X"), Err(EditError::BadRange));
    #[allow(
        clippy::reversed_empty_ranges,
        reason = "a caller's mistake must not panic"
    )]
    check(
        r#"["abc"]"#,
        one("abc", 2..1, "X"),
        Err(EditError::BadRange),
    );
    check(r#"[12345, 6]"#, one("12345", 1..3, "***"), Ok("[0, 6]"));
    check(
        r#"{"secret":1,"b":2}"#,
        one("secret", 0..6, "b"),
        Err(EditError::KeyCollision),
    );
    check(
        r#"{"secret":1,"b":2}"#,
        one("secret", 0..6, "c"),
        Ok(r#"{"c":1,"b":2}"#),
    );
    check(
        r#"{"b":1,"x":{"secret":2}}"#,
        one("secret", 0..6, "b"),
        Ok(r#"{"b":1,"x":{"b":2}}"#),
    );
    check(
        "{\n\"a\": \"secret\"\n}",
        one("secret", 0..6, "x"),
        Ok(r#"{"a":"x"}"#),
    );
    check(r#""secret""#, one("secret", 0..6, "x"), Ok(r#""x""#));
}

type Ranges = &'static [(std::ops::Range<usize>, &'static str)];

#[test]
fn overlapping_ranges_merge_and_the_first_replacement_stays() {
    let edit = |ranges: Ranges| {
        move |doc: &Document, edits: &mut Edits| {
            for (range, with) in ranges {
                edits.replace(leaf(doc, "0123456789"), range.clone(), with);
            }
        }
    };
    let cases: &[(Ranges, &str)] = &[
        (&[(2..5, "A"), (4..8, "B")], "01A89"),
        (&[(4..8, "B"), (2..5, "A")], "01A89"),
        (&[(2..8, "A"), (4..5, "B")], "01A89"),
        (&[(2..5, "A"), (2..8, "B")], "01A89"),
        (&[(2..5, "A"), (5..8, "B")], "01AB89"),
        (&[(8..10, "B"), (0..2, "A")], "A234567B"),
        (&[(0..10, "A"), (0..10, "B")], "A"),
        (&[(0..4, "A"), (3..6, "B"), (5..9, "C")], "A9"),
    ];
    for (ranges, expected) in cases {
        check(
            r#"["0123456789"]"#,
            edit(ranges),
            Ok(&format!(r#"["{expected}"]"#)),
        );
    }
}

#[test]
fn edited_keys_are_compared_with_each_other() {
    let two = |doc: &Document, edits: &mut Edits| {
        edits.replace(leaf(doc, "one"), 0..3, "same");
        edits.replace(leaf(doc, "two"), 0..3, "same");
    };
    check(r#"{"one":1,"two":2}"#, two, Err(EditError::KeyCollision));
    check(
        r#"[{"one":1},{"two":2}]"#,
        two,
        Ok(r#"[{"same":1},{"same":2}]"#),
    );
    let swap = |doc: &Document, edits: &mut Edits| {
        edits.replace(leaf(doc, "one"), 0..3, "two");
        edits.replace(leaf(doc, "two"), 0..3, "one");
    };
    check(r#"{"one":1,"two":2}"#, swap, Ok(r#"{"two":1,"one":2}"#));
    let freed = |doc: &Document, edits: &mut Edits| {
        edits.replace(leaf(doc, "one"), 0..3, "two");
        edits.remove(node(doc, &["two"]));
    };
    check(r#"{"one":1,"two":2}"#, freed, Ok(r#"{"two":1}"#));
}

#[test]
fn values() {
    let value = |json: &'static str| {
        move |doc: &Document, edits: &mut Edits| edits.replace_value(node(doc, &["a"]), json)
    };
    check(
        r#"{"a": [1,{"x":2}], "b": 3}"#,
        value("null"),
        Ok(r#"{"a": null, "b": 3}"#),
    );
    check(
        r#"{"a":1}"#,
        value("{\n \"k\": [\"\\u0041\"] }"),
        Ok(r#"{"a":{"k":["A"]}}"#),
    );
    check(
        r#"{"a":1}"#,
        value("1,\"b\":2"),
        Err(EditError::BadValue(DecodeErrorKind::TrailingData)),
    );
    check(
        r#"{"a":1}"#,
        value(""),
        Err(EditError::BadValue(DecodeErrorKind::Empty)),
    );
    check(
        r#"{"a":1}"#,
        value(r#"{"x":1,"x":2}"#),
        Err(EditError::BadValue(DecodeErrorKind::DuplicateKey)),
    );
    check(
        "{\"a\":1}",
        |doc, edits| edits.replace_value(doc.root(), "[]"),
        Ok("[]"),
    );

    // The outer change wins over what is inside it; of two for the same value the first.
    check(
        r#"{"a":{"b":"secret","c":1},"d":2}"#,
        |doc, edits| {
            edits.replace(leaf(doc, "secret"), 0..6, "***");
            edits.remove(node(doc, &["a", "c"]));
            edits.insert_member(node(doc, &["a"]), "z", "1");
            edits.replace_value(node(doc, &["a"]), "7");
            edits.replace_value(node(doc, &["a"]), "8");
        },
        Ok(r#"{"a":7,"d":2}"#),
    );
    check(
        r#"["x"]"#,
        |doc, edits| {
            edits.replace(leaf(doc, "x"), 0..1, "leaf");
            edits.replace_value(doc.leaf(leaf(doc, "x")).node, "\"value\"");
        },
        Ok(r#"["value"]"#),
    );
    check(
        r#"{"a":1}"#,
        |doc, edits| edits.replace_value(doc.leaf(leaf(doc, "a")).node, "2"),
        Err(EditError::NoSuchNode),
    );
}

#[test]
fn depth_counts_what_is_around_a_new_value() {
    let doc = parse(r#"{"a":[[1]]}"#);
    let one = doc.leaves().last().unwrap().node;
    for (depth, fits) in [(61, true), (62, false)] {
        let mut edits = Edits::new();
        edits.replace_value(one, &format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        let edited = doc.edit(&edits);
        assert_eq!(edited.is_ok(), fits, "{depth}");
        if let Ok(bytes) = edited {
            assert!(Document::parse(bytes, &Limits::default()).is_ok());
        }
    }
}

#[test]
fn removals_take_their_comma_along() {
    let texts = [
        r#"[ "a" , "b" , "c" ]"#,
        r#"["a","b","c"]"#,
        r#"{"a":"a","b":"b","c":"c"}"#,
        r#" { "a" : "a" ,"b":"b" , "c": "c" } "#,
    ];
    for json in texts {
        let doc = parse(json);
        let nodes: Vec<Node> = match json.contains('{') {
            true => doc.members(doc.root()).map(|(_, _, value)| value).collect(),
            false => doc.elements(doc.root()).collect(),
        };
        for mask in 0..8u32 {
            let mut edits = Edits::new();
            let is_gone = |n: usize| mask & 1 << n != 0;
            nodes
                .iter()
                .enumerate()
                .filter(|(n, _)| is_gone(*n))
                .for_each(|(_, node)| edits.remove(*node));
            let bytes = doc.edit(&edits).unwrap();
            let edited = Document::parse(bytes.clone(), &Limits::default())
                .unwrap_or_else(|e| panic!("{e} {bytes:?}"));
            let left: Vec<_> = edited
                .leaves()
                .filter(|leaf| leaf.kind != mcp_codec::LeafKind::Key)
                .map(|leaf| leaf.text)
                .collect();
            let expected: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .enumerate()
                .filter(|(n, _)| !is_gone(*n))
                .map(|(_, t)| t)
                .collect();
            assert_eq!(left, expected, "{json} without {mask:03b}: {bytes:?}");
        }
    }
    // The only element has the same span with and without its (missing) comma.
    check(
        r#"{"a":["x"]}"#,
        |doc, edits| {
            edits.replace(leaf(doc, "x"), 0..1, "y");
            edits.replace_value(doc.leaf(leaf(doc, "x")).node, "2");
            edits.remove(doc.leaf(leaf(doc, "x")).node);
        },
        Ok(r#"{"a":[]}"#),
    );
    check(
        "[1]",
        |doc, edits| edits.remove(doc.root()),
        Err(EditError::NoSuchNode),
    );
    check(
        r#"{"a":1}"#,
        |doc, edits| edits.remove(doc.leaf(leaf(doc, "a")).node),
        Err(EditError::NoSuchNode),
    );
}

#[test]
fn insertions() {
    let insert = |path: &'static [&'static str], key: &'static str, json: &'static str| {
        move |doc: &Document, edits: &mut Edits| edits.insert_member(node(doc, path), key, json)
    };
    check("{}", insert(&[], "k\"", "[1, 2]"), Ok(r#"{"k\"":[1, 2]}"#));
    check(
        r#"{"a":{"b":1}}"#,
        insert(&["a"], "c", "true"),
        Ok(r#"{"a":{"b":1,"c":true}}"#),
    );
    check(
        r#"{"a":1}"#,
        insert(&[], "a", "2"),
        Err(EditError::KeyCollision),
    );
    check(
        r#"{"a":1}"#,
        insert(&["a"], "b", "2"),
        Err(EditError::NoSuchNode),
    );
    check(
        r#"{"a":1}"#,
        insert(&[], "b", "nope"),
        Err(EditError::BadValue(DecodeErrorKind::UnexpectedByte)),
    );
    let both = |doc: &Document, edits: &mut Edits| {
        edits.remove(node(doc, &["a"]));
        edits.insert_member(doc.root(), "a", "2");
        edits.insert_member(doc.root(), "b", "3");
    };
    check(r#"{"a":1}"#, both, Ok(r#"{"a":2,"b":3}"#));
    check(r#"{"z":0,"a":1}"#, both, Ok(r#"{"z":0,"a":2,"b":3}"#));
    check(
        "{}",
        |doc, edits| {
            edits.insert_member(doc.root(), "a", "2");
            edits.insert_member(doc.root(), "a", "3");
        },
        Err(EditError::KeyCollision),
    );
}

#[test]
fn nothing_changes_without_edits_and_nothing_grows_past_the_limit() {
    let doc = parse("[1,\t\"\\u0041\"]");
    assert!(Edits::new().is_empty());
    assert_eq!(doc.edit(&Edits::new()).unwrap(), r#"[1,"A"]"#);

    let limits = Limits {
        bytes_max: 20,
        ..Limits::default()
    };
    let doc = Document::parse(r#"["abcdefghijklm"]"#.into(), &limits).unwrap();
    for (len, fits) in [(16, true), (36, true), (37, false), (100, false)] {
        let mut edits = Edits::new();
        edits.replace(leaf(&doc, "abcdefghijklm"), 0..13, &"x".repeat(len));
        assert_eq!(doc.edit(&edits).is_ok(), fits, "{len}");
    }
}

#[test]
fn edits_of_another_document_are_refused() {
    let big = parse(r#"{"a":[1,2,3,{"b":"secret"}]}"#);
    let small = parse("{}");
    let mut edits = Edits::new();
    edits.replace(leaf(&big, "secret"), 0..6, "x");
    assert_eq!(small.edit(&edits), Err(EditError::NoSuchNode));
    let mut edits = Edits::new();
    edits.replace_value(node(&big, &["a"]), "1");
    assert_eq!(small.edit(&edits), Err(EditError::NoSuchNode));
    let mut edits = Edits::new();
    edits.remove(node(&big, &["a"]));
    assert_eq!(small.edit(&edits), Err(EditError::NoSuchNode));
}

#[test]
fn no_text_in_debug_output() {
    let mut edits = Edits::new();
    let doc = parse(r#"["x"]"#);
    edits.replace(leaf(&doc, "x"), 0..1, "hunter2");
    assert!(!format!("{edits:?}").contains("hunter2"));
}
