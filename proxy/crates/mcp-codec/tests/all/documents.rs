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
