//! What a server declared about its tools: seen in `tools/list`, used to keep redactions valid.

use std::sync::Arc;

use domain::{Direction, IdError, ToolName};
use mcp_codec::{Document, Kind, Node};
use parking_lot::RwLock;

use crate::schema::{SCHEMA_BYTES_MAX, Schema};
use crate::session::BoundedMap;

/// Tools remembered for one server. The oldest give way, and are as if they had never been listed: their redactions are
/// not held against a schema, and none of their `Mcp-Param-*` headers goes up.
const TOOLS_MAX: usize = 2048;
/// What is remembered of them, in bytes, as if every schema were compiled (some 4 MiB of text); the oldest give way here too.
const BYTES_MAX: usize = 64 << 20;
/// Arguments of one tool that headers may repeat.
const MIRRORS_MAX: usize = 64;
/// How deep such an argument may lie.
const MIRROR_DEPTH_MAX: usize = 8;
/// Longest key on the way to it, and longest name of its header, in bytes. What is longer is not declared here.
const MIRROR_NAME_BYTES_MAX: usize = 256;

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

    /// Reads what one element of a list declares.
    fn of(doc: &Document, tool: Node) -> Self {
        let input = doc.member(tool, "inputSchema");
        let output = doc.member(tool, "outputSchema");
        let short = input.filter(|node| doc.raw(*node).len() <= SCHEMA_BYTES_MAX);
        Self {
            input: Schema::new(input.map(|node| doc.raw(node))),
            output: Schema::new(output.map(|node| doc.raw(node))),
            mirrors: short.map_or_else(Vec::new, |node| mirrors(doc, node)),
        }
    }

    /// What it takes to remember this, in bytes.
    fn bytes(&self) -> usize {
        let mirror =
            |m: &Mirror| m.header.len() + m.path.iter().map(|key| key.len()).sum::<usize>();
        let mirrors = self.mirrors.iter().map(mirror).sum::<usize>();
        self.input.bytes() + self.output.bytes() + mirrors
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
    known: RwLock<Known>,
}

#[derive(Debug)]
struct Known {
    tools: BoundedMap<Arc<str>, Arc<ToolSchemas>>,
    bytes: usize,
    /// Whether it was told that a tool's name is none.
    told: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            tools: BoundedMap::new(TOOLS_MAX),
            bytes: 0,
            told: false,
        }
    }
}

impl Known {
    fn insert(&mut self, name: &str, schemas: ToolSchemas) {
        if let Some(before) = self.tools.remove(name) {
            self.bytes -= cost(name, &before);
        }
        self.bytes += cost(name, &schemas);
        while self.tools.len() >= TOOLS_MAX || self.bytes > BYTES_MAX {
            let Some((oldest, gone)) = self.tools.pop_oldest() else {
                break;
            };
            self.bytes -= cost(&oldest, &gone);
        }
        self.tools.insert(name.into(), Arc::new(schemas));
    }
}

fn cost(name: &str, schemas: &ToolSchemas) -> usize {
    name.len() + schemas.bytes()
}

impl ToolCache {
    /// Remembers what a `tools/list` result declares. Later pages add to earlier ones. A tool that nobody may call for
    /// its name is none; the first one of a server is given back with what is wrong, so that it can be told once.
    pub fn learn(&self, doc: &Document, tools: Node) -> Option<IdError> {
        if doc.kind(tools) != Kind::Array {
            return None;
        }
        let mut wrong = None;
        let mut known = self.known.write();
        for tool in doc.elements(tools) {
            let Some(name) = doc.member(tool, "name").and_then(|n| doc.str(n)) else {
                continue;
            };
            match ToolName::parse(name) {
                Ok(_) => known.insert(name, ToolSchemas::of(doc, tool)),
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        wrong.filter(|_| !std::mem::replace(&mut known.told, true))
    }

    /// The schemas of a tool, if it was listed and did not give way since.
    pub fn get(&self, tool: &str) -> Option<Arc<ToolSchemas>> {
        self.known.read().tools.get(tool).cloned()
    }
}

/// Finds `x-mcp-header` on properties, nested objects included, without recursion.
fn mirrors(doc: &Document, schema: Node) -> Vec<Mirror> {
    let mut found = Vec::new();
    let mut open: Vec<(Node, Vec<Box<str>>)> = vec![(schema, Vec::new())];
    while let Some((node, path)) = open.pop() {
        let properties = doc
            .member(node, "properties")
            .filter(|p| doc.kind(*p) == Kind::Object);
        let Some(properties) = properties else {
            continue;
        };
        for (_, key, property) in doc.members(properties) {
            let is_short = key.len() <= MIRROR_NAME_BYTES_MAX;
            if found.len() == MIRRORS_MAX || !is_short || doc.kind(property) != Kind::Object {
                continue;
            }
            let mut path = path.clone();
            path.push(key.into());
            if let Some(name) = doc
                .member(property, "x-mcp-header")
                .and_then(|n| doc.str(n))
                .filter(|name| name.len() <= MIRROR_NAME_BYTES_MAX)
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
    fn a_name_that_is_none_is_told_once() {
        let cache = ToolCache::default();
        let limits = mcp_codec::Limits::default();
        let learn = |list: &str| {
            let doc = Document::parse(list.to_owned().into(), &limits).unwrap();
            cache.learn(&doc, doc.root()).map(|error| error.to_string())
        };
        assert_eq!(learn(r#"[{"name":"read"}]"#), None);
        let told = learn(r#"[{"name":"read"},{"name":"read file"},{"name":""}]"#).unwrap();
        assert!(told.contains("found ' ' at position 4"), "{told}");
        assert_eq!(learn(r#"[{"name":"read file"}]"#), None, "told before");
        assert!(cache.get("read").is_some());
        assert!(cache.get("read file").is_none());
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
    fn what_is_remembered_of_tools_has_a_bound_in_bytes() {
        let text = "x".repeat(SCHEMA_BYTES_MAX - 40);
        let schema = format!(r#"{{"type":"object","description":"{text}"}}"#);
        let cache = ToolCache::default();
        let limits = mcp_codec::Limits::default();
        for n in 0..100 {
            let list =
                format!(r#"[{{"name":"t{n}","inputSchema":{schema},"outputSchema":{schema}}}]"#);
            let doc = Document::parse(list.into(), &limits).unwrap();
            cache.learn(&doc, doc.root());
            // Listed again, it is counted once.
            cache.learn(&doc, doc.root());
            let known = cache.known.read();
            assert!(known.bytes <= BYTES_MAX, "{n}: {}", known.bytes);
        }
        assert!(cache.get("t0").is_none(), "the oldest gives way");
        assert!(
            cache
                .get("t99")
                .is_some_and(|t| t.declares(Direction::ToClient))
        );
        let known = cache.known.read();
        let pair = 2 * known.tools.get("t99").map_or(0, |t| t.input.bytes());
        assert_eq!(known.tools.len(), BYTES_MAX / pair);
    }

    #[test]
    fn no_more_tools_are_remembered_than_may_be_and_none_that_cannot_be_called() {
        let names: Vec<_> = (0..=TOOLS_MAX)
            .map(|n| format!(r#"{{"name":"t{n}"}}"#))
            .collect();
        let known = cache(&format!("[{}]", names.join(",")));
        assert!(known.get("t0").is_none() && known.get("t1").is_some());
        assert_eq!(known.known.read().tools.len(), TOOLS_MAX);
        for name in [
            "x".repeat(3_900_000),
            "x".repeat(129),
            "a b".into(),
            String::new(),
        ] {
            let known = cache(&format!(r#"[{{"name":"{name}"}},{{"name":"t"}}]"#));
            assert!(known.get(&name).is_none() && known.get("t").is_some());
            assert_eq!(known.known.read().bytes, 1);
        }
    }

    #[test]
    fn a_way_to_an_argument_is_short_or_not_known() {
        let of = |key: usize, header: usize| {
            let (key, header) = ("k".repeat(key), "h".repeat(header));
            let schema = format!(r#"{{"properties":{{"{key}":{{"x-mcp-header":"{header}"}}}}}}"#);
            let cache = cache(&format!(r#"[{{"name":"t","inputSchema":{schema}}}]"#));
            cache.get("t").unwrap().mirrors().len()
        };
        let max = MIRROR_NAME_BYTES_MAX;
        assert_eq!([of(max, max), of(max + 1, 1), of(1, max + 1)], [1, 0, 0]);
        assert_eq!(of(1, SCHEMA_BYTES_MAX), 0);
    }

    #[test]
    fn a_schema_that_cannot_be_read_accepts_nothing() {
        let cache = cache(r#"[{"name":"t","outputSchema":{"type":"no such type"}}]"#);
        assert!(!cache.get("t").unwrap().accepts(Direction::ToClient, b"{}"));
    }
}
