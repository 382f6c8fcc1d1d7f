//! Against serde_json, on documents nobody thought of.

use std::collections::BTreeMap;

use bytes::Bytes;
use mcp_codec::sse::{Decoder, Event, SseLimits};
use mcp_codec::{BatchRule, Document, Edits, Kind, LeafKind, Limits, Node, decode};
use proptest::prelude::*;
use serde_json::Value;

/// A JSON value that keeps number text, with the same shape rules as ours.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?".prop_map(Json::Number),
        any_text().prop_map(Json::String),
    ];
    leaf.prop_recursive(6, 200, 24, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..24).prop_map(Json::Array),
            prop::collection::btree_map(any_text(), inner, 0..24)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,12}",
        any::<String>(),
        "[\"\\\\/\u{0}-\u{20}\u{7f}é\u{2028}😀]{0,40}",
        "[ -~]{60,100}",
    ]
}

/// Writes `json` in one of its many spellings, chosen by `dice`.
fn spell(json: &Json, dice: &mut impl FnMut() -> u8, out: &mut String) {
    let white = |dice: &mut dyn FnMut() -> u8, out: &mut String| {
        out.push_str(["", "", "", "", " ", "\n", "\t ", "\r\n"][usize::from(dice() % 8)]);
    };
    white(dice, out);
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(text) => out.push_str(text),
        Json::String(text) => spell_string(text, dice, out),
        Json::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                spell(item, dice, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (n, (key, value)) in members.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                white(dice, out);
                spell_string(key, dice, out);
                white(dice, out);
                out.push(':');
                spell(value, dice, out);
            }
            out.push('}');
        }
    }
    white(dice, out);
}

fn spell_string(text: &str, dice: &mut impl FnMut() -> u8, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        let escape = c < ' ' || c == '"' || c == '\\';
        match dice() % 16 {
            0 => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
            1 => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| out.push_str(&format!("\\u{unit:04X}"))),
            2 if c == '/' => out.push_str("\\/"),
            _ if escape => {
                let quoted = serde_json::to_string(&c).unwrap();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn spelled(json: &Json, seed: u64) -> String {
    let mut state = seed | 1;
    let mut dice = move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as u8
    };
    let mut out = String::new();
    spell(json, &mut dice, &mut out);
    out
}

fn read_back(doc: &Document, node: Node) -> Json {
    match doc.kind(node) {
        Kind::Null => Json::Null,
        Kind::True => Json::Bool(true),
        Kind::False => Json::Bool(false),
        Kind::Number => Json::Number(doc.number(node).unwrap().into()),
        Kind::String => Json::String(doc.str(node).unwrap().into()),
        Kind::Array => Json::Array(
            doc.elements(node)
                .map(|node| read_back(doc, node))
                .collect(),
        ),
        Kind::Object => Json::Object(
            doc.members(node)
                .map(|(_, key, node)| (key.to_owned(), read_back(doc, node)))
                .collect(),
        ),
    }
}

fn parse(bytes: impl Into<Bytes>) -> Document {
    Document::parse(bytes.into(), &Limits::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_was_meant(json in any_json(), seed: u64) {
        let text = spelled(&json, seed);
        let doc = parse(text.clone());
        prop_assert_eq!(&read_back(&doc, doc.root()), &json);
        prop_assert_eq!(doc.leaves().count(), doc.leaves().len());
        if let Ok(value) = serde_json::from_str::<Value>(&text) {
            prop_assert_eq!(serde_json::from_slice::<Value>(&doc.to_bytes()).unwrap(), value);
        }
    }

    #[test]
    fn what_is_written_is_stable_and_says_the_same(json in any_json(), seed: u64) {
        let doc = parse(spelled(&json, seed));
        let written = doc.to_bytes();
        prop_assert!(!written.iter().any(|byte| *byte < 0x20));
        let again = parse(written.clone());
        prop_assert!(again.is_canonical());
        prop_assert_eq!(again.to_bytes(), written);
        prop_assert_eq!(read_back(&again, again.root()), json);
        let leaves = doc.leaves().zip(again.leaves());
        for (a, b) in leaves {
            prop_assert_eq!((a.id, a.text, a.kind, a.name), (b.id, b.text, b.kind, b.name));
            prop_assert_eq!(doc.path(a.id).to_string(), again.path(b.id).to_string());
        }
    }

    #[test]
    fn an_edit_changes_its_leaf_only(json in any_json(), seed: u64, picks in prop::collection::vec((any::<prop::sample::Index>(), any::<(u16, u16)>(), any_text()), 1..5)) {
        let doc = parse(spelled(&json, seed));
        prop_assume!(doc.leaves().len() > 0);
        let mut edits = Edits::new();
        let mut expected = BTreeMap::new();
        for (pick, (from, to), with) in &picks {
            let leaf = doc.leaves().nth(pick.index(doc.leaves().len())).unwrap();
            if expected.contains_key(&leaf.id) {
                continue;
            }
            let cut = |at: u16| { let mut at = usize::from(at) % (leaf.text.len() + 1); while !leaf.text.is_char_boundary(at) { at -= 1 } at };
            let (from, to) = (cut(*from).min(cut(*to)), cut(*from).max(cut(*to)));
            edits.replace(leaf.id, from..to, with);
            let text = match leaf.kind {
                LeafKind::Number => "0".to_owned(),
                _ => format!("{}{with}{}", &leaf.text[..from], &leaf.text[to..]),
            };
            expected.insert(leaf.id, text);
        }
        let Ok(bytes) = doc.edit(&edits) else {
            // Only a key can be refused: when it would equal a sibling.
            prop_assert!(expected.keys().any(|id| doc.leaf(*id).kind == LeafKind::Key));
            return Ok(());
        };
        let edited = parse(bytes);
        prop_assert_eq!(edited.leaves().len(), doc.leaves().len());
        for (before, after) in doc.leaves().zip(edited.leaves()) {
            let text = expected.get(&before.id).map_or(before.text, String::as_str);
            prop_assert_eq!(after.text, text);
            prop_assert_eq!((after.id, after.kind), (before.id, before.kind));
        }
    }

    #[test]
    fn no_bytes_make_it_panic_and_serde_never_sees_less(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\ux0123456789abcdef \n-+.eE".to_vec())], 0..200)) {
        if let Ok(doc) = Document::parse(bytes.clone().into(), &Limits::default()) {
            prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
            prop_assert!(doc.leaves().all(|leaf| doc.leaf(leaf.id) == leaf));
        }
        let _ = decode(bytes.into(), &Limits::default(), BatchRule::Allowed);
    }

    #[test]
    fn a_changed_byte_is_seen_by_both_or_refused(json in any_json(), seed: u64, at: prop::sample::Index, byte: u8) {
        let mut bytes = spelled(&json, seed).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(doc) = Document::parse(bytes.clone().into(), &Limits::default())
            && let Ok(value) = serde_json::from_slice::<Value>(&bytes)
        {
            prop_assert_eq!(serde_json::from_slice::<Value>(&doc.to_bytes()).unwrap(), value);
        }
    }

    #[test]
    fn chunks_do_not_matter(text in "((data|id|event|retry|x|)(: ?|)[a-z0-9é😀]{0,8}(\n|\r|\r\n)){0,20}[a-z:]{0,5}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let whole = events([text.as_bytes()]);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let parts = events(at.windows(2).map(|pair| &text.as_bytes()[pair[0]..pair[1]]));
        prop_assert_eq!(whole, parts);
    }
}

fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, bool, u64) {
    let mut decoder = Decoder::new(SseLimits::default());
    let mut events = Vec::new();
    for chunk in chunks {
        decoder.push(chunk);
        while let Some(event) = decoder.next() {
            events.push(event.unwrap());
        }
    }
    (events, decoder.finish().is_ok(), decoder.comments())
}
