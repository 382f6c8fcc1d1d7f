//! The JSON Schemas that servers declare: whether a value satisfies one, within a bound.
//!
//! A schema is text of the server. Two kilobytes of it can ask for more work than there are years (`$ref`s that fan out),
//! and so can one pattern. So the work is counted before it is done: each place of the schema that meets a place of the
//! value is a step, with no short cut taken, which is never less than what judging them takes.
//! What is over the bound is not satisfied: a redaction is a block then. Steps and not time, so that a busy machine
//! judges as an idle one does.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// Largest schema that is kept, in bytes.
pub(crate) const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// What a schema takes once it is compiled, in lengths of its text.
const COMPILED_TIMES: usize = 16;
/// Steps that judging one value may take: some 100 ms at the worst.
const STEPS_MAX: u64 = 2_000_000;
/// How many schemas may lie within each other where they meet a value, `$ref`s followed.
const DEPTH_MAX: usize = 512;
/// Patterns in one schema.
const PATTERNS_MAX: usize = 256;
/// Largest pattern when it is compiled, in bytes.
const PATTERN_BYTES_MAX: usize = 64 << 10;
/// Steps of a pattern for each byte that it looks at.
const PATTERN_STEPS: u64 = 32;
/// Steps of finding out whether items are all different, for each value in them.
const UNIQUE_STEPS: u64 = 16;
/// Bytes of a string that are one step where only its length or its form is asked for.
const STRING_STEP_BYTES: usize = 16;

/// A schema, compiled on first use: most tools are never redacted.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    text: Option<Box<[u8]>>,
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    schema: Value,
    validator: jsonschema::Validator,
}

impl Schema {
    /// Takes the text of a schema; one that is too large is as good as none.
    pub(crate) fn new(text: Option<&[u8]>) -> Self {
        let text = text.filter(|t| t.len() <= SCHEMA_BYTES_MAX).map(Into::into);
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    /// What it takes at the most, in bytes: it may be compiled at any time.
    pub(crate) fn bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |text| text.len());
        text * (1 + COMPILED_TIMES)
    }

    /// Whether there is one.
    pub(crate) fn declared(&self) -> bool {
        self.text.is_some()
    }

    /// Whether a value (JSON text) satisfies it, and that can be told within the bound.
    pub(crate) fn accepts(&self, value: &[u8]) -> bool {
        let Some(text) = &self.text else { return true };
        let compiled = self.compiled.get_or_init(|| Compiled::of(text));
        let (Some(compiled), Ok(value)) = (compiled, serde_json::from_slice(value)) else {
            return false;
        };
        let schema = &compiled.schema;
        let mut steps = Steps {
            root: schema,
            left: STEPS_MAX,
        };
        steps.meet(schema, &value, 0).is_some() && compiled.validator.is_valid(&value)
    }
}

impl Compiled {
    fn of(text: &[u8]) -> Option<Self> {
        let schema = serde_json::from_slice(text).ok()?;
        if patterns(&schema) > PATTERNS_MAX {
            return None;
        }
        // Linear in what they look at. What this engine cannot do (looking around, back references) does not compile.
        let engine = jsonschema::PatternOptions::regex();
        let validator = jsonschema::options()
            .with_pattern_options(engine.size_limit(PATTERN_BYTES_MAX))
            .build(&schema)
            .ok()?;
        Some(Self { schema, validator })
    }
}

/// How many patterns a schema may have at the most; a property may be called so too.
fn patterns(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| {
                let own = match (key.as_str(), member) {
                    ("pattern", _) => 1,
                    ("patternProperties", Value::Object(members)) => members.len(),
                    _ => 0,
                };
                own + patterns(member)
            })
            .sum(),
        _ => 0,
    }
}

/// What is left of the bound. `None` everywhere below: it is used up, or what cannot be counted was met.
struct Steps<'a> {
    root: &'a Value,
    left: u64,
}

impl<'a> Steps<'a> {
    fn take(&mut self, steps: u64) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }

    /// A schema meets a value.
    fn meet(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.take(1)?;
        let Value::Object(schema) = schema else {
            return Some(());
        };
        if let Value::String(text) = value {
            self.take((text.len() / STRING_STEP_BYTES) as u64)?;
        }
        for (keyword, asked) in schema {
            self.take(1)?;
            self.keyword(schema, keyword, asked, value, depth)?;
        }
        Some(())
    }

    fn keyword(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        asked: &'a Value,
        value: &Value,
        depth: usize,
    ) -> Option<()> {
        match (keyword, asked) {
            ("$ref", Value::String(place)) => {
                let target = self.target(place)?;
                self.meet(target, value, depth + 1)
            }
            // Where these lead depends on the way that was come, and they judge what was judged once more.
            ("$dynamicRef" | "$recursiveRef" | "unevaluatedProperties" | "unevaluatedItems", _) => {
                None
            }
            // References below it start from another root.
            ("$id" | "id", Value::String(_)) if !self.is_root(schema) => None,
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                let mut all = all.iter();
                all.try_for_each(|one| self.meet(one, value, depth + 1))
            }
            ("not" | "if" | "then" | "else", one) => self.meet(one, value, depth + 1),
            ("enum" | "const", values) => self.weigh(values, 1),
            ("pattern", _) => match value {
                Value::String(text) => self.take(PATTERN_STEPS * (1 + text.len() as u64)),
                _ => Some(()),
            },
            ("dependentSchemas" | "dependencies", Value::Object(declared)) => {
                for (key, one) in declared {
                    self.take(1)?;
                    match one {
                        Value::Array(keys) => self.take(keys.len() as u64)?,
                        one if value.get(key).is_some() => self.meet(one, value, depth + 1)?,
                        _ => {}
                    }
                }
                Some(())
            }
            _ => match value {
                Value::Object(members) => self.members(schema, keyword, asked, members, depth),
                Value::Array(items) => self.items(schema, keyword, asked, items, depth),
                _ => Some(()),
            },
        }
    }

    fn members(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        asked: &'a Value,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Option<()> {
        match (keyword, asked) {
            ("properties", Value::Object(declared)) => {
                self.take(declared.len() as u64)?;
                let mut declared = declared.iter();
                declared.try_for_each(|(key, one)| match members.get(key) {
                    Some(member) => self.meet(one, member, depth + 1),
                    None => Some(()),
                })
            }
            ("patternProperties", Value::Object(declared)) => {
                for (key, member) in members {
                    self.take(declared.len() as u64 * PATTERN_STEPS * (1 + key.len() as u64))?;
                    let mut declared = declared.values();
                    declared.try_for_each(|one| self.meet(one, member, depth + 1))?;
                }
                Some(())
            }
            ("additionalProperties", one) => {
                let declared = schema.get("properties").and_then(Value::as_object);
                for (key, member) in members {
                    self.take(1)?;
                    if declared.is_none_or(|declared| !declared.contains_key(key)) {
                        self.meet(one, member, depth + 1)?;
                    }
                }
                Some(())
            }
            ("propertyNames", one) => members.keys().try_for_each(|key| {
                self.take(1)?;
                self.meet(one, &Value::String(key.clone()), depth + 1)
            }),
            ("required" | "dependentRequired", keys) => self.weigh(keys, 1),
            _ => Some(()),
        }
    }

    fn items(
        &mut self,
        schema: &'a Map<String, Value>,
        keyword: &str,
        asked: &'a Value,
        items: &[Value],
        depth: usize,
    ) -> Option<()> {
        let length = |keyword| {
            schema
                .get(keyword)
                .and_then(Value::as_array)
                .map_or(0, Vec::len)
        };
        let from = match keyword {
            "prefixItems" | "contains" => 0,
            "items" if asked.is_array() => 0,
            "items" => length("prefixItems"),
            "additionalItems" => length("items"),
            "uniqueItems" => {
                return items
                    .iter()
                    .try_for_each(|item| self.weigh(item, UNIQUE_STEPS));
            }
            _ => return Some(()),
        };
        let mut items = items.iter().skip(from);
        match asked {
            Value::Array(each) => items
                .zip(each)
                .try_for_each(|(item, one)| self.meet(one, item, depth + 1)),
            one => items.try_for_each(|item| self.meet(one, item, depth + 1)),
        }
    }

    /// Takes so many steps for each value within this one.
    fn weigh(&mut self, value: &Value, steps: u64) -> Option<()> {
        self.take(steps)?;
        match value {
            Value::String(text) => self.take(steps * (text.len() / STRING_STEP_BYTES) as u64),
            Value::Array(items) => items.iter().try_for_each(|item| self.weigh(item, steps)),
            Value::Object(members) => members.values().try_for_each(|v| self.weigh(v, steps)),
            _ => Some(()),
        }
    }

    fn is_root(&self, schema: &Map<String, Value>) -> bool {
        let root = self.root.as_object();
        root.is_some_and(|root| std::ptr::eq(root, schema))
    }

    /// What a reference within the schema means. Others are not followed.
    fn target(&self, place: &str) -> Option<&'a Value> {
        let mut at = self.root;
        let path = place.strip_prefix('#').filter(|path| !path.contains('%'))?;
        if path.is_empty() {
            return Some(at);
        }
        for step in path.strip_prefix('/')?.split('/') {
            let step = step.replace("~1", "/").replace("~0", "~");
            at = match at {
                Value::Object(members) => members.get(&step)?,
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
            let names = |key| at.get(key).is_some_and(Value::is_string);
            if names("$id") || names("id") {
                return None;
            }
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, value: &Value, accepted: bool) {
        let read = Schema::new(Some(schema.to_string().as_bytes()));
        let got = read.accepts(value.to_string().as_bytes());
        let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
        assert_eq!(got, accepted, "{} {}", short(schema), short(value));
    }

    /// Each of `n` definitions asks twice for the one before it.
    fn fan(n: usize, twice: impl Fn(Value) -> Value) -> Value {
        let mut definitions = json!({ "0": { "type": "string", "maxLength": 3 } });
        for i in 1..=n {
            let before = json!({ "$ref": format!("#/$defs/{}", i - 1) });
            definitions[i.to_string()] = twice(before);
        }
        json!({ "$defs": definitions, "properties": { "s": { "$ref": format!("#/$defs/{n}") } } })
    }

    #[test]
    fn what_fans_out_is_not_followed_to_its_end() {
        let fans: [fn(Value) -> Value; 4] = [
            |r| json!({ "anyOf": [r, r] }),
            |r| json!({ "allOf": [r, r] }),
            |r| json!({ "oneOf": [r, { "not": r }] }),
            |r| json!({ "if": r, "then": r, "else": r }),
        ];
        for twice in fans {
            check(&fan(60, twice), &json!({ "s": "abc" }), false);
            // It is the value that it meets which counts.
            check(&fan(60, twice), &json!({ "t": "abc" }), true);
        }
        check(&fan(8, fans[0]), &json!({ "s": "abc" }), true);
        check(&fan(8, fans[0]), &json!({ "s": "abcd" }), false);
        let tree = json!({ "anyOf": [
            { "properties": { "c": { "$ref": "#" } } }, { "properties": { "c": { "$ref": "#" } } }] });
        let nested = (0..40).fold(json!({}), |inner, _| json!({ "c": inner }));
        check(&tree, &nested, false);
        let around = json!({ "$ref": "#/$defs/a", "$defs": {
            "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
        check(&around, &json!(1), false);
    }

    #[test]
    fn patterns_take_time_in_proportion_to_what_they_look_at() {
        let list = |pattern: &str| json!({ "items": { "pattern": pattern } });
        let long: Vec<_> = (0..2000).map(|_| "a".repeat(30)).collect();
        check(&list("^(a+)+b"), &json!(["a".repeat(1000)]), false);
        check(&list("^a+$"), &json!(["aaa", "aa"]), true);
        check(&list("^a+$"), &json!(["ab"]), false);
        // Looking around is not linear, so it is not done.
        check(&list("^(?=(a+)+b)a"), &json!([]), false);
        check(&list("^a+$"), &json!(long), true);
        check(&list("^a+$"), &json!(["a".repeat(70_000)]), false);
        check(&list("((x{90}){90}){90}"), &json!([]), false);
        let many: Map<_, _> = (0..=PATTERNS_MAX)
            .map(|n| (n.to_string(), json!({ "pattern": "a" })))
            .collect();
        check(&json!({ "properties": many }), &json!({}), false);
    }

    #[test]
    fn what_is_large_and_plain_is_judged() {
        let row = json!({ "type": "object", "required": ["id", "note"], "additionalProperties": false,
            "properties": { "id": { "type": "integer" }, "note": { "$ref": "#/$defs/note" } } });
        let schema = json!({ "type": "object", "$defs": { "note": { "type": ["string", "null"] } },
            "properties": { "rows": { "type": "array", "items": row } } });
        let rows: Vec<_> = (0..40_000)
            .map(|n| json!({ "id": n, "note": "text" }))
            .collect();
        check(&schema, &json!({ "rows": rows }), true);
        check(
            &schema,
            &json!({ "rows": [{ "id": "x", "note": "" }] }),
            false,
        );
        let choice = json!({ "enum": vec!["x"; 10_000] });
        check(&json!({ "items": choice }), &json!(vec!["x"; 1000]), false);
        let tree = json!({ "properties": { "next": { "$ref": "#" }, "v": { "type": "integer" } } });
        let nested = (0..60).fold(json!({}), |inner, n| json!({ "next": inner, "v": n }));
        check(&tree, &nested, true);
    }

    #[test]
    fn what_cannot_be_counted_is_not_satisfied() {
        for schema in [
            json!({ "$ref": "https://example.com/other" }),
            json!({ "$ref": "#anchor", "$defs": { "a": { "$anchor": "anchor" } } }),
            json!({ "$dynamicRef": "#/$defs/a", "$defs": { "a": true } }),
            json!({ "properties": { "a": { "$id": "other", "type": "string" } } }),
            json!({ "$ref": "#/$defs/a/$defs/b", "$defs": { "a": { "$id": "x", "$defs": { "b": true } } } }),
            json!({ "unevaluatedProperties": false }),
            json!({ "type": "no such type" }),
        ] {
            check(&schema, &json!({ "a": "x" }), false);
        }
        let within = json!({ "$id": "https://example.com/a", "$ref": "#/$defs/a~1b/prefixItems/0",
            "$defs": { "a/b": { "prefixItems": [{ "type": "object" }] } } });
        check(&within, &json!({}), true);
    }
}
