//! A message of the contract out of JSON, with the paths that Weir would give.

use serde_json::Value;

use crate::bindings::exports::weir::policy::policy as raw;
use crate::bindings::weir::policy::types;
use crate::message::LEAF_NUMBERS;
use crate::{Action, Direction, Era, LeafKind, Message, Word};

/// What a message does not say itself.
#[derive(Debug, Clone)]
pub struct About {
    /// Which way it goes.
    pub direction: Direction,
    /// The id of the server.
    pub server: String,
    /// The id of the tenant.
    pub tenant: String,
    /// The session's hash.
    pub session: Option<String>,
    /// Who called, by name and value.
    pub principal: Vec<(String, String)>,
    /// For what comes from the server: method, tool and id (JSON text) of the call.
    pub call: Option<(String, Option<String>, Option<String>)>,
    /// What the detection rules would have found.
    pub findings: Vec<FoundHere>,
}

/// A finding, named by path and text.
#[derive(Debug, Clone)]
pub struct FoundHere {
    /// Id of the rule.
    pub rule: String,
    /// Its category.
    pub category: String,
    /// Path of the leaf.
    pub path: String,
    /// The matched text, a part of the leaf.
    pub text: String,
    /// What policy says about it.
    pub action: Action,
}

impl Default for About {
    fn default() -> Self {
        Self {
            direction: Direction::ToServer,
            server: "server".into(),
            tenant: "tenant".into(),
            session: Some("session".into()),
            principal: Vec::new(),
            call: None,
            findings: Vec::new(),
        }
    }
}

/// Makes a message. Findings that are not in it are left out.
pub fn message(json: &Value, about: &About) -> Message {
    let mut out = Arena::default();
    walk(json, &mut String::from("$"), &mut out);
    let own_method = json["method"].as_str();
    let call = about.call.as_ref();
    let method = own_method.or(call.map(|(method, ..)| method.as_str()));
    let own_tool = (own_method == Some("tools/call"))
        .then(|| json["params"]["name"].as_str())
        .flatten();
    let tool = own_tool.or_else(|| call.and_then(|(_, tool, _)| tool.as_deref()));
    let call = call.map(|(method, _, id)| types::Call {
        method: out.put(method),
        id: id.as_deref().map(|id| out.put(id)),
    });
    let principal = about
        .principal
        .iter()
        .map(|(name, value)| types::Attribute {
            name: out.put(name),
            value: out.put(value),
        });
    let principal = principal.collect();
    let findings = about.findings.iter().filter_map(|f| out.finding(f));
    let findings = findings.collect();
    Message::from_raw(raw::Message {
        direction: about.direction,
        era: Era::Handshake,
        method: out.put(method.unwrap_or_default()),
        tool: tool.map(|tool| out.put(tool)),
        server: out.put(&about.server),
        tenant: out.put(&about.tenant),
        session: about.session.as_deref().map(|session| out.put(session)),
        principal,
        call,
        findings,
        leaves: out.leaves.into_flattened(),
        text: out.text,
    })
}

/// The values of a message that are no leaves.
pub(super) fn words(json: &Value) -> Vec<Word> {
    let mut out = Arena::default();
    walk(json, &mut String::from("$"), &mut out);
    out.words
}

#[derive(Default)]
struct Arena {
    text: String,
    leaves: Vec<[u32; LEAF_NUMBERS]>,
    words: Vec<Word>,
}

impl Arena {
    fn put(&mut self, text: &str) -> types::Span {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        types::Span {
            start,
            len: text.len() as u32,
        }
    }

    fn leaf(&mut self, kind: LeafKind, path: &str, text: &str) {
        let (path, text) = (self.put(path), self.put(text));
        let leaf = [kind as u32, path.start, path.len, text.start, text.len];
        self.leaves.push(leaf);
    }

    fn word(&mut self, path: &str, text: &str) {
        self.words.push(Word {
            path: path.to_owned(),
            text: text.to_owned(),
        });
    }

    fn cut(&self, span: types::Span) -> &str {
        &self.text[span.start as usize..(span.start + span.len) as usize]
    }

    fn finding(&mut self, found: &FoundHere) -> Option<types::Finding> {
        let mut leaves = self.leaves.iter().enumerate();
        let cut = |start, len| self.cut(types::Span { start, len });
        let (leaf, start) = leaves.find_map(|(index, &[_, path, path_len, text, text_len])| {
            let at = cut(text, text_len).find(&found.text)?;
            (cut(path, path_len) == found.path).then_some((index, at))
        })?;
        Some(types::Finding {
            rule: self.put(&found.rule),
            category: self.put(&found.category),
            leaf: leaf as u32,
            start: start as u32,
            end: (start + found.text.len()) as u32,
            confidence: 100,
            action: found.action,
        })
    }
}

fn walk(value: &Value, path: &mut String, out: &mut Arena) {
    let here = path.len();
    match value {
        Value::String(text) => out.leaf(LeafKind::Text, path, text),
        Value::Number(number) => out.leaf(LeafKind::Number, path, &number.to_string()),
        Value::Array(items) if items.is_empty() => out.word(path, "[]"),
        Value::Object(members) if members.is_empty() => out.word(path, "{}"),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, path, out);
                path.truncate(here);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                path.push_str("{key}");
                out.leaf(LeafKind::Key, path, key);
                path.truncate(here);
                push_key(path, key);
                walk(member, path, out);
                path.truncate(here);
            }
        }
        Value::Null | Value::Bool(_) => out.word(path, &value.to_string()),
    }
}

/// `.name` for an identifier, else `["..."]`.
fn push_key(path: &mut String, key: &str) {
    let mut bytes = key.bytes();
    let plain = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && key.len() <= 64;
    if plain {
        path.push('.');
        path.push_str(key);
    } else {
        path.push_str("[\"");
        path.extend(key.chars().take(64).collect::<String>().escape_debug());
        path.push_str(if key.chars().count() > 64 {
            "…\"]"
        } else {
            "\"]"
        });
    }
}
