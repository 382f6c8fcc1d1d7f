//! Reading a document: what is found in it, and what is written again.

use bytes::Bytes;
use mcp_codec::{Document, Kind, LeafKind, Limits};

pub fn parse(json: &str) -> Document {
    Document::parse(Bytes::copy_from_slice(json.as_bytes()), &Limits::default())
        .unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn navigation() {
    let doc = parse(
        r#" {"a": [1, {"b\u0041": "x\ny"}, [], -2.5e3], "c": {"d": null, "e": true}, "f": false} "#,
    );
    let root = doc.root();
    assert_eq!(doc.kind(root), Kind::Object);
    let keys: Vec<_> = doc
        .members(root)
        .map(|(_, key, value)| (key, doc.kind(value)))
        .collect();
    assert_eq!(
        keys,
        [("a", Kind::Array), ("c", Kind::Object), ("f", Kind::False)]
    );
    let array = doc.get(&["a"]).unwrap();
    let kinds: Vec<_> = doc.elements(array).map(|node| doc.kind(node)).collect();
    assert_eq!(
        kinds,
        [Kind::Number, Kind::Object, Kind::Array, Kind::Number]
    );
    let inner = doc.elements(array).nth(1).unwrap();
    assert_eq!(doc.str(doc.member(inner, "bA").unwrap()), Some("x\ny"));
    assert_eq!(doc.raw(inner), br#"{"b\u0041": "x\ny"}"#);
    assert_eq!(doc.kind(doc.get(&["c", "d"]).unwrap()), Kind::Null);
    assert_eq!(doc.get(&["c", "x"]), None);
    assert_eq!(doc.get(&["f", "x"]), None);
    assert_eq!(doc.elements(root).count(), 0);
    assert_eq!(doc.members(array).count(), 0);
    assert_eq!(
        doc.number(doc.elements(array).nth(3).unwrap()),
        Some("-2.5e3")
    );
    assert_eq!(doc.number(root), None);
    assert_eq!(doc.str(root), None);
    assert_eq!(doc.leaf_of(root), None);
    assert_eq!(doc.raw_span(root), 1..doc.source().len() - 1);
}

#[test]
fn leaves_come_in_document_order_with_the_name_above() {
    let doc = parse(r#"{"a":["x",[1,"y"]],"b":{"c":"z","d":null},"e":true,"f":2}"#);
    let seen: Vec<_> = doc
        .leaves()
        .map(|leaf| (leaf.text, leaf.kind, leaf.name))
        .collect();
    use LeafKind::*;
    let expected = [
        ("a", Key, None),
        ("x", String, Some("a")),
        ("1", Number, Some("a")),
        ("y", String, Some("a")),
        ("b", Key, None),
        ("c", Key, None),
        ("z", String, Some("c")),
        ("d", Key, None),
        ("e", Key, None),
        ("f", Key, None),
        ("2", Number, Some("f")),
    ];
    assert_eq!(seen, expected);
    assert_eq!(doc.leaves().len(), expected.len());
    assert_eq!(doc.leaves().skip(3).count(), expected.len() - 3);
    for leaf in doc.leaves() {
        assert_eq!(doc.leaf(leaf.id), leaf);
        assert_eq!(doc.leaf_of(leaf.node), Some(leaf.id));
    }
    let under: Vec<_> = doc
        .leaves_under(doc.get(&["b"]).unwrap())
        .map(|leaf| leaf.text)
        .collect();
    assert_eq!(under, ["c", "z", "d"]);
    let scalar: Vec<_> = doc
        .leaves_under(doc.get(&["f"]).unwrap())
        .map(|leaf| leaf.text)
        .collect();
    assert_eq!(scalar, ["2"]);
    for (json, name) in [
        (r#""x""#, None),
        (r#"["x"]"#, None),
        (r#"[{"k":["x"]}]"#, Some("k")),
    ] {
        let doc = parse(json);
        assert_eq!(doc.leaves().last().unwrap().name, name, "{json}");
    }
}

#[test]
fn written_again() {
    let cases = [
        (r#"{"a":[1,"x"]}"#, None),
        (r#" { "a" : [ 1 , "x" ] } "#, None),
        (r#""a\"b\\c\n\r\t\b\f\u0001\u001f""#, None),
        ("\"é\u{7f}\u{2028}😀\"", None),
        (r#"[1.0,-0,1E400,100000000000000000000000]"#, None),
        ("{\n\t\"a\": [1,\r\n 2]\n}", Some(r#"{"a":[1,2]}"#)),
        ("[]\n", Some("[]")),
        (
            r#" {"a":{},"b":[],"c":[[],{"d":[]}],"e\u002f":null} "#,
            Some(r#"{"a":{},"b":[],"c":[[],{"d":[]}],"e/":null}"#),
        ),
        (
            r#"["\/","\u0041","\u000a","\u001F","\u00e9","\ud83d\ude00","\u007f"]"#,
            Some("[\"/\",\"A\",\"\\n\",\"\\u001f\",\"é\",\"😀\",\"\u{7f}\"]"),
        ),
        (
            r#"{"\u0022\u005c":true, "x":false}"#,
            Some(r#"{"\"\\":true,"x":false}"#),
        ),
        (" \"\\u002e\" ", Some("\".\"")),
        ("\t1", Some("1")),
    ];
    for (text, expected) in cases {
        let doc = parse(text);
        let written = doc.to_bytes();
        assert_eq!(written, expected.unwrap_or(text), "{text}");
        assert_eq!(doc.is_canonical(), expected.is_none(), "{text}");
        if expected.is_none() {
            assert_eq!(
                written.as_ptr(),
                doc.source().as_ptr(),
                "not copied: {text}"
            );
        }
        assert!(
            !written
                .iter()
                .any(|byte| matches!(byte, b'\r' | b'\n' | b'\t')),
            "{text}"
        );
        assert!(parse(std::str::from_utf8(&written).unwrap()).is_canonical());
    }
}

#[test]
fn paths() {
    let doc = parse(
        r#"{"params":{"arguments":{"items":[0,[],{"name":"N"}],"_x1":"U","a-b":"D","io.x/y":"S","":"E","\"\n\u202e":"C","ключ":"R","1a":"1A"}}}"#,
    );
    let path = |text: &str| {
        doc.path(doc.leaves().find(|leaf| leaf.text == text).unwrap().id)
            .to_string()
    };
    let cases = [
        ("N", "$.params.arguments.items[2].name"),
        ("0", "$.params.arguments.items[0]"),
        ("U", "$.params.arguments._x1"),
        ("D", r#"$.params.arguments["a-b"]"#),
        ("S", r#"$.params.arguments["io.x/y"]"#),
        ("E", r#"$.params.arguments[""]"#),
        ("C", r#"$.params.arguments["\"\n\u{202e}"]"#),
        ("R", r#"$.params.arguments["ключ"]"#),
        ("1A", r#"$.params.arguments["1a"]"#),
        ("name", "$.params.arguments.items[2]{key}"),
        ("params", "${key}"),
        ("a-b", "$.params.arguments{key}"),
    ];
    for (text, expected) in cases {
        assert_eq!(path(text), expected);
    }
    let id = |text: &str| doc.leaves().find(|leaf| leaf.text == text).unwrap().id;
    let masked = [id("arguments"), id("name")];
    assert_eq!(
        doc.path_masked(id("N"), &masked).to_string(),
        "$.params.{masked}.items[2].{masked}"
    );
    assert_eq!(
        doc.path_masked(id("name"), &masked).to_string(),
        "$.params.{masked}.items[2]{key}"
    );
    let scalar = parse("7");
    assert_eq!(
        scalar.path(scalar.leaves().next().unwrap().id).to_string(),
        "$"
    );
}

#[test]
fn long_paths_are_capped() {
    let key = "k".repeat(1000);
    let doc = parse(&format!(r#"{{"{key}":1}}"#));
    let path = doc.path(doc.leaves().last().unwrap().id).to_string();
    assert_eq!(path, format!("$[\"{}…\"]", "k".repeat(64)));

    let deep = format!("{}\"end\"{}", r#"{"level":["#.repeat(32), "]}".repeat(32));
    let doc = parse(&deep);
    let path = doc.path(doc.leaves().last().unwrap().id).to_string();
    assert_eq!(path.chars().count(), mcp_codec::PATH_CHARS_MAX);
    assert!(
        path.starts_with("$.level[0].level[0]")
            && path.contains('…')
            && path.ends_with(".level[0]"),
        "{path}"
    );
}

#[test]
fn a_node_of_another_document_is_no_panic() {
    let big = parse(r#"{"a":[1,2,3,{"b":["x","y"]}]}"#);
    let small = parse("{}");
    for leaf in big.leaves() {
        let node = leaf.node;
        assert!(
            small.str(node).is_none() && small.number(node).is_none() && small.raw(node).is_empty()
        );
        assert!(small.leaf_of(node).is_none() && small.member(node, "a").is_none());
        assert_eq!(
            small.elements(node).count()
                + small.members(node).count()
                + small.leaves_under(node).count(),
            0
        );
        assert_eq!(small.kind(node), Kind::Null);
        assert!(small.path(leaf.id).to_string().starts_with('$'));
    }
}

#[test]
fn no_text_in_debug_output() {
    let doc = parse(r#"{"hunter2":"hunter2"}"#);
    assert!(!format!("{doc:?}").contains("hunter2"));
    assert!(!format!("{:?}", doc.leaves().next()).contains("hunter2"));
    assert!(!format!("{:?}", doc.leaves()).contains("hunter2"));
}

#[test]
fn documents_go_to_other_threads() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Document>();
    check::<mcp_codec::Message>();
    check::<mcp_codec::Edits>();
}
