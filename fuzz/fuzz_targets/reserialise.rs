//! What we write reads the same again, and edits do what a plain tree model says they do.
//!
//! Input: one byte with the number of edits, four bytes per edit, then the JSON.
#![no_main]

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mcp_codec::{Document, EditError, Edits, Kind, LeafId, LeafKind, Limits, Node};

fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else {
        return;
    };
    let Some((ops, json)) = rest.split_at_checked(usize::from(count % 8) * 4) else {
        return;
    };
    let Ok(doc) = Document::parse(Bytes::copy_from_slice(json), &Limits::default()) else {
        return;
    };
    round_trip(&doc);
    let (ops, _) = ops.as_chunks::<4>();
    edit(&doc, ops);
});

fn round_trip(doc: &Document) {
    let written = doc.to_bytes();
    assert!(written.len() <= doc.source().len());
    assert!(
        written.iter().all(|byte| *byte >= 0x20),
        "no raw control character"
    );
    let again =
        Document::parse(written.clone(), &Limits::default()).expect("what we write is JSON");
    assert!(again.is_canonical());
    assert_eq!(again.to_bytes(), written);
    assert!(doc.leaves().eq(again.leaves()));
    assert_eq!(Json::of(doc, doc.root()), Json::of(&again, again.root()));
}

#[derive(Clone, Debug, PartialEq)]
enum Json {
    /// Numbers, literals and whole replacements: their text.
    Text(String),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn of(doc: &Document, node: Node) -> Json {
        Model::default().apply(doc, node)
    }
}

/// The changes, by what they change.
#[derive(Default)]
struct Model {
    texts: BTreeMap<LeafId, String>,
    values: BTreeMap<Node, &'static str>,
    removed: BTreeSet<Node>,
    inserted: Vec<(Node, String)>,
}

const VALUES: [&str; 4] = ["null", "7", "\"new\"", "{\"x\":[1]}"];

impl Model {
    fn apply(&self, doc: &Document, node: Node) -> Json {
        if let Some(json) = self.values.get(&node) {
            let value = Document::parse(Bytes::from_static(json.as_bytes()), &Limits::default())
                .expect("it is constant");
            return Json::of(&value, value.root());
        }
        match doc.kind(node) {
            Kind::Array => {
                let kept = doc
                    .elements(node)
                    .filter(|item| !self.removed.contains(item));
                Json::Array(kept.map(|item| self.apply(doc, item)).collect())
            }
            Kind::Object => {
                let kept = doc
                    .members(node)
                    .filter(|(_, _, value)| !self.removed.contains(value));
                let kept =
                    kept.map(|(id, key, value)| (self.text(id, key), self.apply(doc, value)));
                let new = self.inserted.iter().filter(|(object, _)| *object == node);
                Json::Object(
                    kept.chain(new.map(|(_, key)| (key.clone(), Json::Text("1".into()))))
                        .collect(),
                )
            }
            Kind::String => match doc.leaf_of(node) {
                Some(id) => Json::String(self.text(id, doc.leaf(id).text)),
                None => unreachable!("a string is a leaf"),
            },
            Kind::Number
                if doc
                    .leaf_of(node)
                    .is_some_and(|id| self.texts.contains_key(&id)) =>
            {
                Json::Text("0".into())
            }
            _ => Json::Text(String::from_utf8_lossy(doc.raw(node)).into_owned()),
        }
    }

    fn text(&self, id: LeafId, old: &str) -> String {
        self.texts
            .get(&id)
            .cloned()
            .unwrap_or_else(|| old.to_owned())
    }
}

fn edit(doc: &Document, ops: &[[u8; 4]]) {
    let leaves: Vec<_> = doc.leaves().collect();
    if leaves.is_empty() {
        return;
    }
    let mut edits = Edits::new();
    let mut model = Model::default();
    for &[kind, pick, a, b] in ops {
        let leaf = leaves[usize::from(pick) % leaves.len()];
        // The value itself, or for a key its object's first value.
        let node = leaf.node;
        match kind % 4 {
            0 | 1 if !model.texts.contains_key(&leaf.id) => {
                let cut = |at: u8| {
                    leaf.text
                        .floor_char_boundary(usize::from(at) % (leaf.text.len() + 1))
                };
                let (from, to) = (cut(a).min(cut(b)), cut(a).max(cut(b)));
                let with = ["", "*", "[REDACTED]", "\"\\\n\u{1}é"][usize::from(kind / 4) % 4];
                edits.replace(leaf.id, from..to, with);
                model.texts.insert(
                    leaf.id,
                    format!("{}{with}{}", &leaf.text[..from], &leaf.text[to..]),
                );
            }
            2 if leaf.kind != LeafKind::Key => {
                let json = VALUES[usize::from(a) % VALUES.len()];
                edits.replace_value(node, json);
                model.values.entry(node).or_insert(json);
            }
            3 if leaf.kind != LeafKind::Key && node != doc.root() => {
                edits.remove(node);
                model.removed.insert(node);
            }
            3 if doc.kind(doc.root()) == Kind::Object => {
                let key = ["", "é\"", "z", "a"][usize::from(a) % 4];
                edits.insert_member(doc.root(), key, "1");
                model.inserted.push((doc.root(), key.into()));
            }
            _ => {}
        }
    }
    match doc.edit(&edits) {
        Ok(bytes) => {
            let edited =
                Document::parse(bytes, &Limits::default()).expect("an edited document is JSON");
            assert_eq!(
                Json::of(&edited, edited.root()),
                model.apply(doc, doc.root())
            );
        }
        Err(EditError::KeyCollision) => {
            assert!(
                model
                    .texts
                    .keys()
                    .any(|id| doc.leaf(*id).kind == LeafKind::Key)
                    || !model.inserted.is_empty()
            );
        }
        Err(EditError::BadValue(_)) => assert!(!model.values.is_empty()),
        Err(error) => panic!("{error}"),
    }
}
