//! The strict decoder against serde_json: what we accept says the same to both, what we call "not JSON" is none to it.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_codec::{BatchRule, Document, Kind, LeafKind, Limits, Message, Node, Payload, decode};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    compare(&bytes);
    // Small limits: other ways out of the parser, never another reading.
    let small = Limits {
        bytes_max: 512,
        depth_max: 3,
        tokens_max: 12,
        number_bytes_max: 4,
        id_bytes_max: 3,
        batch_max: 2,
    };
    if Document::parse(bytes.clone(), &small).is_ok() {
        assert!(Document::parse(bytes.clone(), &Limits::default()).is_ok());
    }
    for limits in [small, Limits::default()] {
        for rule in [BatchRule::Allowed, BatchRule::Refused] {
            check_messages(&bytes, &limits, rule);
        }
    }
});

fn compare(bytes: &Bytes) {
    // An object with this key is how serde_json passes numbers to itself.
    if bytes.windows(8).any(|window| window == b"$serde_j") {
        return;
    }
    let serde = serde_json::from_slice::<Value>(bytes);
    match Document::parse(bytes.clone(), &Limits::default()) {
        Ok(doc) => {
            assert_same(
                &doc,
                doc.root(),
                &serde.expect("serde_json reads what we accept"),
            );
            check_leaves(&doc);
        }
        Err(error) => {
            assert!(error.offset <= bytes.len());
            assert!(!error.client_text().is_empty());
            assert!(
                error.json_rpc_code() != -32700 || serde.is_err(),
                "serde_json reads what we call {error}"
            );
        }
    }
}

fn assert_same(doc: &Document, node: Node, value: &Value) {
    match (doc.kind(node), value) {
        (Kind::Null, Value::Null) => {}
        (Kind::True, Value::Bool(true)) | (Kind::False, Value::Bool(false)) => {}
        (Kind::Number, Value::Number(number)) => {
            assert_eq!(
                doc.number(node).map(as_serde_keeps_it).as_deref(),
                Some(number.as_str())
            );
        }
        (Kind::String, Value::String(text)) => assert_eq!(doc.str(node), Some(text.as_str())),
        (Kind::Array, Value::Array(items)) => {
            assert_eq!(doc.elements(node).count(), items.len());
            doc.elements(node)
                .zip(items)
                .for_each(|(node, item)| assert_same(doc, node, item));
        }
        (Kind::Object, Value::Object(map)) => {
            assert_eq!(doc.members(node).count(), map.len());
            for ((_, key, node), (name, item)) in doc.members(node).zip(map) {
                assert_eq!(key, name);
                assert_same(doc, node, item);
            }
        }
        (kind, _) => panic!("we read {kind:?}, serde_json something else"),
    }
}

/// serde_json keeps a number's text but for its exponent, which it writes as `e+` or `e-`.
fn as_serde_keeps_it(number: &str) -> String {
    match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) if exponent.starts_with(['+', '-']) => {
            format!("{mantissa}e{exponent}")
        }
        Some((mantissa, exponent)) => format!("{mantissa}e+{exponent}"),
        None => number.to_owned(),
    }
}

fn check_leaves(doc: &Document) {
    assert_eq!(doc.leaves().len(), doc.leaves().count());
    let mut before = 0;
    for leaf in doc.leaves() {
        let span = doc.raw_span(leaf.node);
        assert!(span.start >= before && span.end <= doc.source().len());
        before = span.end;
        assert_eq!(doc.leaf_of(leaf.node), Some(leaf.id));
        assert_eq!(
            leaf.kind == LeafKind::Number,
            doc.number(leaf.node).is_some()
        );
        assert!(doc.path(leaf.id).to_string().chars().count() <= mcp_codec::PATH_CHARS_MAX);
    }
}

fn check_messages(bytes: &Bytes, limits: &Limits, rule: BatchRule) {
    match decode(bytes.clone(), limits, rule) {
        Ok(Payload::Single(message)) => check_message(&message, limits),
        Ok(Payload::Batch(messages)) => {
            assert!(
                rule == BatchRule::Allowed
                    && !messages.is_empty()
                    && messages.len() <= limits.batch_max
            );
            messages
                .iter()
                .for_each(|message| check_message(message, limits));
        }
        Err(error) => assert!(error.offset <= bytes.len()),
    }
}

fn check_message(message: &Message, limits: &Limits) {
    let parts = [
        message.method().is_some(),
        message.result().is_some(),
        message.error().is_some(),
    ];
    assert_eq!(parts.iter().filter(|part| **part).count(), 1);
    let again =
        Message::decode(message.doc().to_bytes(), limits).expect("what we write is a message");
    assert_eq!(
        (again.kind(), again.id(), again.method()),
        (message.kind(), message.id(), message.method())
    );
    if let Some(id) = message.id() {
        assert!(serde_json::from_str::<Value>(&id.to_json()).is_ok());
    }
}
