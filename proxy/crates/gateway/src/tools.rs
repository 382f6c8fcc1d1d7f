//! What a server declared about its tools: seen in `tools/list`, used to keep redactions valid.

use std::collections::HashMap;
use std::sync::Arc;

use domain::Direction;
use mcp_codec::{Document, Kind, Node};
use parking_lot::RwLock;

use crate::schema::Schema;

/// Tools remembered for one server; the rest are judged without their schema.
const TOOLS_MAX: usize = 2048;
/// Arguments of one tool that headers may repeat.
const MIRRORS_MAX: usize = 64;
/// How deep such an argument may lie.
const MIRROR_DEPTH_MAX: usize = 8;

/// The declared schemas of one tool.
#[derive(Debug, Default)]
pub struct ToolSchemas {
    input: Schema,
    output: Schema,
    mirrors: Vec<Mirror>,
}

/// An argument that a header repeats (`x-mcp-header`, revision 2026-07-28).
#[derive(Debug, PartialEq, Eq)]
pub struct Mirror {
    /// Lower-case header name, `mcp-param-` included.
    pub header: Box<str>,
    /// Keys from `arguments` down.
    pub path: Vec<Box<str>>,
}

impl ToolSchemas {
    /// The arguments that headers repeat.
    pub fn mirrors(&self) -> &[Mirror] {
        &self.mirrors
    }

    /// Whether there is a schema for this direction.
    pub fn declares(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => self.input.declared(),
            Direction::ToClient => self.output.declared(),
        }
    }

    /// Whether a value (JSON text) satisfies the schema of its direction.
    ///
    /// No schema accepts everything; one that does not compile, or would take too long to judge by, accepts nothing,
    /// since nobody can say what the client will make of it.
    pub fn accepts(&self, direction: Direction, value: &[u8]) -> bool {
        match direction {
            Direction::ToServer => self.input.accepts(value),
            Direction::ToClient => self.output.accepts(value),
        }
    }
}

/// The tools of one server.
#[derive(Debug, Default)]
pub struct ToolCache {
    tools: RwLock<HashMap<Box<str>, Arc<ToolSchemas>>>,
}

impl ToolCache {
    /// Remembers what a `tools/list` result declares. Later pages add to earlier ones.
    pub fn learn(&self, doc: &Document, tools: Node) {
        if doc.kind(tools) != Kind::Array {
            return;
        }
        let mut known = self.tools.write();
        for tool in doc.elements(tools) {
            let Some(name) = doc.member(tool, "name").and_then(|n| doc.str(n)) else {
                continue;
            };
            if known.len() >= TOOLS_MAX && !known.contains_key(name) {
                return;
            }
            let schema = |key| doc.member(tool, key).map(|node| doc.raw(node));
            let schemas = ToolSchemas {
                input: Schema::new(schema("inputSchema")),
                output: Schema::new(schema("outputSchema")),
                mirrors: mirrors(doc, doc.member(tool, "inputSchema")),
            };
            known.insert(name.into(), Arc::new(schemas));
        }
    }

    /// The schemas of a tool, if it was ever listed.
    pub fn get(&self, tool: &str) -> Option<Arc<ToolSchemas>> {
        self.tools.read().get(tool).cloned()
    }
}

/// Finds `x-mcp-header` on properties, nested objects included, without recursion.
fn mirrors(doc: &Document, schema: Option<Node>) -> Vec<Mirror> {
    let mut found = Vec::new();
    let mut open: Vec<(Node, Vec<Box<str>>)> =
        schema.map(|s| (s, Vec::new())).into_iter().collect();
    while let Some((node, path)) = open.pop() {
        let properties = doc
            .member(node, "properties")
            .filter(|p| doc.kind(*p) == Kind::Object);
        let Some(properties) = properties else {
            continue;
        };
        for (_, key, property) in doc.members(properties) {
            if found.len() == MIRRORS_MAX || doc.kind(property) != Kind::Object {
                continue;
            }
            let mut path = path.clone();
            path.push(key.into());
            if let Some(name) = doc
                .member(property, "x-mcp-header")
                .and_then(|n| doc.str(n))
            {
                let header = format!("mcp-param-{}", name.to_ascii_lowercase()).into();
                found.push(Mirror {
                    header,
                    path: path.clone(),
                });
            }
            if path.len() < MIRROR_DEPTH_MAX {
                open.push((property, path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(list: &str) -> ToolCache {
        let limits = mcp_codec::Limits::default();
        let doc = Document::parse(list.to_owned().into(), &limits).unwrap();
        let cache = ToolCache::default();
        cache.learn(&doc, doc.root());
        cache
    }

    #[test]
    fn a_schema_decides_what_a_redaction_may_leave() {
        let cache = cache(
            r#"[{"name":"t","outputSchema":{"type":"object","properties":{
                "s":{"type":"string"},"e":{"enum":["a"]},"m":{"type":"string","maxLength":3}}}}]"#,
        );
        let t = cache.get("t").unwrap();
        let down = Direction::ToClient;
        assert!(t.accepts(down, br#"{"s":"[REDACTED:x]"}"#));
        assert!(!t.accepts(down, br#"{"e":"[REDACTED:x]"}"#));
        assert!(!t.accepts(down, br#"{"m":"[REDACTED:x]"}"#));
        assert!(t.accepts(Direction::ToServer, br#"{"anything":1}"#));
        assert!(cache.get("other").is_none());
    }

    #[test]
    fn mirrored_arguments_are_found_where_they_lie() {
        let cache = cache(
            r#"[{"name":"t","inputSchema":{"properties":{"r":{"x-mcp-header":"Region"},
                "o":{"properties":{"k":{"x-mcp-header":"Kind"}}},"n":{"type":"string"}}}}]"#,
        );
        let tool = cache.get("t").unwrap();
        let mut found: Vec<_> = tool
            .mirrors()
            .iter()
            .map(|m| (&*m.header, m.path.join(".")))
            .collect();
        found.sort();
        let expected = [
            ("mcp-param-kind", "o.k".to_owned()),
            ("mcp-param-region", "r".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_schema_that_cannot_be_read_accepts_nothing() {
        let cache = cache(r#"[{"name":"t","outputSchema":{"type":"no such type"}}]"#);
        assert!(!cache.get("t").unwrap().accepts(Direction::ToClient, b"{}"));
    }
}
