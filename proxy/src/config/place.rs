//! Where each field of a YAML text stands.
//!
//! The text is read twice: once into the typed configuration, once into this tree of places. So the
//! typed structures stay plain, and every later complaint about a field can still name its line.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::error::{FieldPath, Step};

/// The places of all nodes of one YAML text.
#[derive(Debug)]
pub(super) struct Places(Vec<(FieldPath, At)>);

/// Line and column, from 1.
pub(super) type At = (u64, u64);

impl Places {
    /// Reads a text; `None` if it is no YAML, which the typed reading will say better.
    pub(super) fn read(yaml: &str) -> Option<Self> {
        let mut options = yaml_text::options();
        // The typed reading refuses what stands twice; here it shall have a place.
        options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::PassThrough;
        let tree: Tree = serde_saphyr::from_str_with_options(yaml, options).ok()?;
        let mut places = Vec::new();
        flatten(tree, FieldPath::default(), &mut places);
        Some(Self(places))
    }

    /// The place of a field or, if it is not there, of the nearest thing above it.
    pub(super) fn of(&self, field: &FieldPath) -> Option<At> {
        let steps = field.steps();
        (0..=steps.len())
            .rev()
            .find_map(|n| self.0.iter().find(|(path, _)| path.steps() == &steps[..n]))
            .map(|&(_, at)| at)
    }

    /// Fields that stand among the same ones before, with the places where they do again.
    pub(super) fn twice(&self) -> Vec<(&FieldPath, At)> {
        let mut seen = HashSet::new();
        let mut again = Vec::new();
        for (path, at) in &self.0 {
            if !seen.insert(path) {
                again.push((path, *at));
            }
        }
        again
    }

    /// The field that stands at a place: the last one that begins there or before.
    pub(super) fn field_at(&self, at: At) -> FieldPath {
        self.0
            .iter()
            .filter(|&&(_, begin)| begin <= at)
            .max_by_key(|(path, begin)| (*begin, path.steps().len()))
            .map(|(path, _)| path.clone())
            .unwrap_or_default()
    }

    /// What holds the fields at a place: a complaint about a missing field points at the first one that
    /// is there.
    pub(super) fn holder_at(&self, at: At) -> FieldPath {
        let field = self.field_at(at);
        let is_entry = matches!(field.steps().last(), Some(Step::Key(_)));
        if is_entry && self.of(&field) == Some(at) {
            field.parent()
        } else {
            field
        }
    }
}

/// A node: where it begins and what is in it. Entries of a map begin at their key.
struct Tree(Vec<(Step, Option<At>, Tree)>);

fn flatten(tree: Tree, path: FieldPath, into: &mut Vec<(FieldPath, At)>) {
    for (step, at, child) in tree.0 {
        let path = path.with(step);
        if let Some(at) = at {
            into.push((path.clone(), at));
        }
        flatten(child, path, into);
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

macro_rules! leaf {
    ($($visit:ident($type:ty)),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Tree, E> {
            Ok(Tree(Vec::new()))
        })*
    };
}

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    leaf!(
        visit_bool(bool),
        visit_i64(i64),
        visit_u64(u64),
        visit_i128(i128),
        visit_u128(u128)
    );
    leaf!(visit_f64(f64), visit_str(&str), visit_bytes(&[u8]));

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree(Vec::new()))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree(Vec::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut children = Vec::new();
        while let Some(child) = seq.next_element::<Spanned<Tree>>()? {
            let place = yaml_text::place(child.referenced);
            children.push((Step::Index(children.len()), place, child.value));
        }
        Ok(Tree(children))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut children = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let child = map.next_value::<Tree>()?;
            let place = yaml_text::place(key.referenced);
            children.push((Step::Key(key.value), place, child));
        }
        Ok(Tree(children))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "listen: 1\ntenants:\n  a:\n    keys:\n      - id: x\n      - id: y\n    12: {z: [1,  2]}\n";

    #[test]
    fn fields_have_places() {
        let places = Places::read(YAML).unwrap();
        let top = FieldPath::default();
        for (field, expected) in [
            ("listen", (1, 1)),
            ("tenants", (2, 1)),
            ("tenants.a.keys[1].id", (6, 9)),
            ("tenants.a.keys[1].hash", (6, 9)), // not there: the element
            ("tenants.a.12.z[1]", (7, 18)),
            ("tenants.b.keys", (2, 1)),
        ] {
            assert_eq!(places.of(&top.join(field)), Some(expected), "{field}");
        }
        assert_eq!(places.of(&top.key("nothing")), None);
    }

    #[test]
    fn places_have_fields() {
        let places = Places::read(YAML).unwrap();
        for (at, expected) in [
            ((1, 9), "listen"),
            ((5, 13), "tenants.a.keys[0].id"),
            ((7, 18), "tenants.a.12.z[1]"),
        ] {
            assert_eq!(places.field_at(at).to_string(), expected, "{at:?}");
        }
    }

    #[test]
    fn what_is_no_yaml_has_no_places() {
        assert!(Places::read("a: [1").is_none());
    }
}
