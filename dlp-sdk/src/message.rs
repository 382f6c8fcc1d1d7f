//! A message as a plugin sees it.

use crate::bindings::exports::weir::policy::policy as raw;
use crate::bindings::weir::policy::types;
use crate::verdict::Action;

pub use types::{Direction, Era};

/// Numbers that stand for one leaf in the contract.
pub(crate) const LEAF_NUMBERS: usize = 5;

/// What a leaf is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafKind {
    /// The key of an object's member.
    Key = 0,
    /// A string value.
    Text = 1,
    /// A number value, as it was written.
    Number = 2,
    /// An HTTP header that is judged with the message.
    Header = 3,
}

/// One message: what it says, which way it goes, and what was found in it so far.
#[derive(Debug, Clone)]
pub struct Message {
    raw: raw::Message,
}

/// A decoded string, key, number or header of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Leaf<'a> {
    /// Its place among the leaves; marks and edits name it by this.
    pub index: u32,
    /// What it is.
    pub kind: LeafKind,
    /// Where it stands, such as `$.params.arguments.query`; a key's path ends in `{key}`.
    pub path: &'a str,
    /// Its text, with JSON escapes undone.
    pub text: &'a str,
}

/// What a detection rule found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finding<'a> {
    /// Its place among the findings; a ruling names it by this.
    pub index: u32,
    /// Id of the rule.
    pub rule: &'a str,
    /// `secret`, `pii` or `injection`.
    pub category: &'a str,
    /// The leaf it is in.
    pub leaf: u32,
    /// First byte of the match in the leaf's text.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// 0 to 100: how sure the rule is.
    pub confidence: u8,
    /// What policy says about it so far.
    pub action: Action,
}

/// The request that a message from the server belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Call<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its JSON-RPC id, as JSON text.
    pub id: Option<&'a str>,
}

impl Message {
    /// Takes a message as the contract has it. Spans that point nowhere read as empty text.
    pub fn from_raw(raw: raw::Message) -> Self {
        Self { raw }
    }

    /// Which way it goes.
    pub fn direction(&self) -> Direction {
        self.raw.direction
    }

    /// Whether it goes to the server.
    pub fn to_server(&self) -> bool {
        self.raw.direction == Direction::ToServer
    }

    /// How it is spoken.
    pub fn era(&self) -> Era {
        self.raw.era
    }

    /// Its method; of a result or an error that of the request it answers, or empty if unknown.
    pub fn method(&self) -> &str {
        self.cut(self.raw.method)
    }

    /// The tool it belongs to, where that is known.
    pub fn tool(&self) -> Option<&str> {
        self.raw.tool.map(|span| self.cut(span))
    }

    /// The id of the server.
    pub fn server(&self) -> &str {
        self.cut(self.raw.server)
    }

    /// The id of the tenant.
    pub fn tenant(&self) -> &str {
        self.cut(self.raw.tenant)
    }

    /// A short hash that is the same for all messages of one session.
    pub fn session(&self) -> Option<&str> {
        self.raw.session.map(|span| self.cut(span))
    }

    /// What is known about who called, by name (`key-id`).
    pub fn principal(&self, name: &str) -> Option<&str> {
        let known = self.raw.principal.iter();
        let mut known = known.filter(|attribute| self.cut(attribute.name) == name);
        known.next().map(|attribute| self.cut(attribute.value))
    }

    /// The call it belongs to, for what comes from the server.
    pub fn call(&self) -> Option<Call<'_>> {
        self.raw.call.as_ref().map(|call| Call {
            method: self.cut(call.method),
            id: call.id.map(|span| self.cut(span)),
        })
    }

    /// All leaves, in the order of the message.
    pub fn leaves(&self) -> impl Iterator<Item = Leaf<'_>> {
        (0u32..)
            .zip(self.raw.leaves.as_chunks().0)
            .map(|(index, leaf)| self.leaf_of(index, leaf))
    }

    /// One leaf.
    pub fn leaf(&self, index: u32) -> Option<Leaf<'_>> {
        let leaf = self.raw.leaves.as_chunks().0.get(index as usize)?;
        Some(self.leaf_of(index, leaf))
    }

    /// The value at exactly this path.
    pub fn at(&self, path: &str) -> Option<Leaf<'_>> {
        self.leaves().find(|leaf| leaf.path == path)
    }

    /// The leaves at this path and below it: keys, strings and numbers.
    pub fn under<'a>(&'a self, path: &'a str) -> impl Iterator<Item = Leaf<'a>> {
        self.leaves().filter(move |leaf| {
            let rest = leaf.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', '{']))
        })
    }

    /// Keys that some servers would take for a step of one of these paths, though they are written in other
    /// letters: `SQL` beside or instead of `sql`. Many read keys without case, and which of two they take is
    /// anybody's guess. A plugin that judges arguments by their paths should block a call that has one.
    ///
    /// A key that is itself a step of one of the paths is none.
    pub fn twins_of<'a, P: AsRef<str>>(&'a self, paths: &'a [P]) -> impl Iterator<Item = Leaf<'a>> {
        let keys = self.leaves().filter(|leaf| leaf.kind == LeafKind::Key);
        keys.filter(move |key| {
            let Some(place) = key.path.strip_suffix("{key}") else {
                return false;
            };
            let steps = || {
                let rests = paths.iter().map(|path| path.as_ref().strip_prefix(place));
                rests.filter_map(|rest| first_key(rest?))
            };
            // As a path writes it.
            let written: String = key.text.escape_debug().collect();
            steps().any(|step| folds_to(&written, step)) && steps().all(|step| step != written)
        })
    }

    /// What the detection rules found.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        (0u32..).zip(&self.raw.findings).map(|(index, f)| Finding {
            index,
            rule: self.cut(f.rule),
            category: self.cut(f.category),
            leaf: f.leaf,
            start: f.start,
            end: f.end,
            confidence: f.confidence,
            action: f.action,
        })
    }

    fn leaf_of(&self, index: u32, leaf: &[u32; LEAF_NUMBERS]) -> Leaf<'_> {
        let &[kind, path, path_len, text, text_len] = leaf;
        let cut = |start, len| self.cut(types::Span { start, len });
        Leaf {
            index,
            kind: match kind {
                0 => LeafKind::Key,
                2 => LeafKind::Number,
                3 => LeafKind::Header,
                _ => LeafKind::Text,
            },
            path: cut(path, path_len),
            text: cut(text, text_len),
        }
    }

    fn cut(&self, span: types::Span) -> &str {
        let start = span.start as usize;
        let end = start.saturating_add(span.len as usize);
        self.raw.text.get(start..end).unwrap_or_default()
    }
}

/// The key that a path goes on with: of `.sql[0]` that is `sql`, of `["a b"].c` it is `a b`.
fn first_key(path: &str) -> Option<&str> {
    if let Some(quoted) = path.strip_prefix("[\"") {
        return quoted.split_once("\"]").map(|(key, _)| key);
    }
    let name = path.strip_prefix('.')?;
    let end = name.find(['.', '[', '{']).unwrap_or(name.len());
    Some(&name[..end])
}

/// Whether two keys are one to a reader that minds no case.
fn folds_to(one: &str, other: &str) -> bool {
    fn fold(text: &str) -> impl Iterator<Item = char> {
        // Up and down again: a long s becomes an s, the sign of Kelvin a k.
        let upper = text.chars().flat_map(char::to_uppercase);
        upper.flat_map(char::to_lowercase)
    }
    fold(one).eq(fold(other))
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use serde_json::json;

    use crate::testing::{About, message};

    #[test]
    fn a_twin_is_a_key_that_differs_by_case_only() {
        let check = |arguments: serde_json::Value, paths: &[&str], expected: &[&str]| {
            let call = json!({"method": "tools/call", "params": {"arguments": arguments}});
            let message = message(&call, &About::default());
            let twins: Vec<_> = message.twins_of(paths).map(|key| key.text).collect();
            assert_eq!(twins, expected, "{arguments}");
        };
        let sql = &["$.params.arguments.sql"];
        check(json!({"sql": "a", "note": "b"}), sql, &[]);
        check(json!({"sql": "a", "SQL": "b"}), sql, &["SQL"]);
        check(json!({"Sql": null}), sql, &["Sql"]);
        check(json!({"\u{17F}ql": {"a": 1}}), sql, &["\u{17F}ql"]);
        check(json!({"a": {"SQL": "b"}, "sqls": 1, "SQ": 2}), sql, &[]);
        let deep = &[
            "$.params.arguments.task.items[0]",
            "$.params.arguments[\"a b\"].c",
        ];
        check(json!({"task": {"ITEMS": []}}), deep, &["ITEMS"]);
        check(json!({"Task": {"items": []}}), deep, &["Task"]);
        check(json!({"A b": 1, "a b": {"C": 1}}), deep, &["A b", "C"]);
        check(
            json!({"ta\u{17F}\u{212A}": 1}),
            deep,
            &["ta\u{17F}\u{212A}"],
        );
        // What is named itself is looked at by its name.
        let both = &["$.params.arguments.sql", "$.params.arguments.SQL"];
        check(json!({"sql": "a", "SQL": "b"}), both, &[]);
        check(json!({"sQl": "a"}), both, &["sQl"]);
    }
}
