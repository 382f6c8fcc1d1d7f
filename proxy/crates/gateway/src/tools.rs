//! What a server declared about its tools: seen in `tools/list`, used to keep redactions valid.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use domain::Direction;
use mcp_codec::{Document, Kind, Node};
use parking_lot::RwLock;

/// Tools remembered for one server; the rest are judged without their schema.
const TOOLS_MAX: usize = 2048;
/// Largest schema that is kept, in bytes.
const SCHEMA_BYTES_MAX: usize = 256 << 10;

/// The declared schemas of one tool.
#[derive(Debug, Default)]
pub struct ToolSchemas {
    input: Schema,
    output: Schema,
}

impl ToolSchemas {
    /// Whether a value (JSON text) satisfies the schema of its direction.
    ///
    /// No schema accepts everything; one that does not compile accepts nothing, since nobody can
    /// say what the client will make of it.
    pub fn accepts(&self, direction: Direction, value: &[u8]) -> bool {
        match direction {
            Direction::ToServer => self.input.accepts(value),
            Direction::ToClient => self.output.accepts(value),
        }
    }
}

/// Compiled on first use: most tools are never redacted.
#[derive(Debug, Default)]
struct Schema {
    text: Option<Box<[u8]>>,
    compiled: OnceLock<Option<jsonschema::Validator>>,
}

impl Schema {
    fn new(text: Option<&[u8]>) -> Self {
        let text = text.filter(|t| t.len() <= SCHEMA_BYTES_MAX).map(Into::into);
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    fn accepts(&self, value: &[u8]) -> bool {
        let Some(text) = &self.text else { return true };
        let compiled = self.compiled.get_or_init(|| {
            let schema = serde_json::from_slice(text).ok()?;
            jsonschema::validator_for(&schema).ok()
        });
        let (Some(validator), Ok(value)) = (compiled, serde_json::from_slice(value)) else {
            return false;
        };
        validator.is_valid(&value)
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
            };
            known.insert(name.into(), Arc::new(schemas));
        }
    }

    /// The schemas of a tool, if it was ever listed.
    pub fn get(&self, tool: &str) -> Option<Arc<ToolSchemas>> {
        self.tools.read().get(tool).cloned()
    }
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
    fn a_schema_that_cannot_be_read_accepts_nothing() {
        let cache = cache(r#"[{"name":"t","outputSchema":{"type":"no such type"}}]"#);
        assert!(!cache.get("t").unwrap().accepts(Direction::ToClient, b"{}"));
    }
}
