//! Reads a text as if some of its fields were not there.
//!
//! A typed reading ends at the first field that is wrong. Read again without that one it comes to the next, so that all of
//! them can be told at once.

use std::cell::RefCell;
use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};

use super::error::{FieldPath, Step};

/// Fields that are passed over, as a tree of the file.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    whole: bool,
    below: Vec<(Step, LeftOut)>,
}

impl LeftOut {
    /// Leaves out one more; false if it is left out already.
    pub(super) fn add(&mut self, field: &FieldPath) -> bool {
        let mut node = self;
        for step in field.steps() {
            if node.whole {
                return false;
            }
            let at = node.below.iter().position(|(known, _)| known == step);
            let at = at.unwrap_or_else(|| {
                node.below.push((step.clone(), Self::default()));
                node.below.len() - 1
            });
            node = &mut node.below[at].1;
        }
        !std::mem::replace(&mut node.whole, true)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.whole && self.below.is_empty()
    }

    /// Whether a part of this field, or something that it is a part of, is left out: what is said of it then may only
    /// be true because of that.
    pub(super) fn touches(&self, field: &FieldPath) -> bool {
        let mut node = self;
        for step in field.steps() {
            if node.whole {
                return true;
            }
            match node.below(step) {
                Some(below) => node = below,
                None => return false,
            }
        }
        !node.is_empty()
    }

    /// The field that is meant by one of what was read: elements behind one that is left out moved up.
    pub(super) fn original(&self, field: &FieldPath) -> FieldPath {
        let mut node = Some(self);
        let mut path = FieldPath::default();
        for step in field.steps() {
            let step = match (step, node) {
                (Step::Index(index), Some(node)) => Step::Index(node.moved(*index)),
                _ => step.clone(),
            };
            node = node.and_then(|node| node.below(&step));
            path = path.with(step);
        }
        path
    }

    fn moved(&self, index: usize) -> usize {
        let is_there = |i: &usize| {
            !self
                .below(&Step::Index(*i))
                .is_some_and(|below| below.whole)
        };
        (0..).filter(is_there).nth(index).unwrap_or(index)
    }

    fn below(&self, step: &Step) -> Option<&Self> {
        let mut below = self.below.iter();
        below.find(|(known, _)| known == step).map(|(_, b)| b)
    }
}

/// A deserializer without what is left out. It knows where it is only around that: elsewhere the reader below is the visitor's
/// own.
pub(super) struct Without<'a, D> {
    pub inner: D,
    pub left_out: &'a LeftOut,
    /// The field whose name was refused, for the reader below does not know where it stands.
    pub refused: &'a RefCell<Option<FieldPath>>,
    pub at: FieldPath,
}

impl<'a, D> Without<'a, D> {
    fn holding<T>(&self, inner: T) -> Without<'a, T> {
        Without {
            inner,
            left_out: self.left_out,
            refused: self.refused,
            at: self.at.clone(),
        }
    }

    /// The same below a step that something is left out under.
    fn down<T>(&self, step: Step, left_out: &'a LeftOut, inner: T) -> Without<'a, T> {
        Without {
            inner,
            left_out,
            refused: self.refused,
            at: self.at.with(step),
        }
    }
}

macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*)),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.holding(visitor);
            self.inner.$method($($argument,)* visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Without<'_, D> {
    type Error = D::Error;

    forward!(
        deserialize_any(),
        deserialize_option(),
        deserialize_seq(),
        deserialize_map(),
        deserialize_newtype_struct(name: &'static str),
        deserialize_struct(name: &'static str, fields: &'static [&'static str]),
    );

    // Something is left out of it, so it is a map or a list.
    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Without<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.holding(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        let deserializer = self.holding(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        let access = Elements {
            seq: self.holding(seq),
            next: 0,
        };
        self.inner.visit_seq(access)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let access = Entries {
            map: self.holding(map),
            key: None,
        };
        self.inner.visit_map(access)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Without<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.holding(deserializer);
        self.inner.deserialize(deserializer)
    }
}

struct Elements<'a, A> {
    seq: Without<'a, A>,
    next: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Elements<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        loop {
            let step = Step::Index(self.next);
            self.next += 1;
            match self.seq.left_out.below(&step) {
                None => return self.seq.inner.next_element_seed(seed),
                Some(below) if below.whole => {
                    if self.seq.inner.next_element::<IgnoredAny>()?.is_none() {
                        return Ok(None);
                    }
                }
                Some(below) => {
                    let seed = self.seq.down(step, below, seed);
                    return self.seq.inner.next_element_seed(seed);
                }
            }
        }
    }
}

struct Entries<'a, A> {
    map: Without<'a, A>,
    key: Option<String>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.inner.next_key::<String>()? {
            let below = self.map.left_out.below(&Step::Key(key.clone()));
            if below.is_some_and(|below| below.whole) {
                self.map.inner.next_value::<IgnoredAny>()?;
                continue;
            }
            self.key = Some(key.clone());
            let at = self.map.at.key(&key);
            let known = seed.deserialize(key.into_deserializer());
            return known.map(Some).inspect_err(|_: &A::Error| {
                *self.map.refused.borrow_mut() = Some(at);
            });
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let key = self
            .key
            .take()
            .ok_or_else(|| de::Error::custom("a value without a name"))?;
        let step = Step::Key(key);
        match self.map.left_out.below(&step) {
            Some(below) => {
                let seed = self.map.down(step, below, seed);
                self.map.inner.next_value_seed(seed)
            }
            None => self.map.inner.next_value_seed(seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(fields: &[&str]) -> LeftOut {
        let mut left_out = LeftOut::default();
        for field in fields {
            assert!(left_out.add(&FieldPath::default().join(field)), "{field}");
        }
        left_out
    }

    #[test]
    fn what_is_left_out_is_not_read() {
        let yaml = "a: {b: 1, c: [x, w, {d: 1, e: 2}, z]}\nf: g\n";
        for (fields, expected) in [
            (
                &["f"][..],
                r#"{"a":{"b":1,"c":["x","w",{"d":1,"e":2},"z"]}}"#,
            ),
            (&["a"], r#"{"f":"g"}"#),
            (
                &["a.b", "a.c[0]", "a.c[2].d"],
                r#"{"a":{"c":["w",{"e":2},"z"]},"f":"g"}"#,
            ),
            (
                &["a.c[1]", "a.c[2]"],
                r#"{"a":{"b":1,"c":["x","z"]},"f":"g"}"#,
            ),
            (
                &["a.c[2].d", "a.c[2].e", "a.b"],
                r#"{"a":{"c":["x","w",{},"z"]},"f":"g"}"#,
            ),
        ] {
            let (left_out, refused) = (without(fields), RefCell::new(None));
            let value: serde_json::Value =
                serde_saphyr::with_deserializer_from_str(yaml, |inner| {
                    serde::Deserialize::deserialize(Without {
                        inner,
                        left_out: &left_out,
                        refused: &refused,
                        at: FieldPath::default(),
                    })
                })
                .unwrap();
            assert_eq!(value.to_string(), expected, "{fields:?}");
        }
    }

    #[test]
    fn what_is_left_out_has_a_place() {
        let left_out = without(&["a.c[0]", "a.c[2]", "a.c[4].d"]);
        let path = |text: &str| FieldPath::default().join(text);
        for (read, original) in [
            ("a.c[0]", "a.c[1]"),
            ("a.c[1].e", "a.c[3].e"),
            ("b[2]", "b[2]"),
        ] {
            assert_eq!(left_out.original(&path(read)), path(original), "{read}");
        }
        for (field, expected) in [
            ("a", true),
            ("a.c[0].x", true),
            ("a.c[4]", true),
            ("a.c[4].e", false),
            ("a.b", false),
        ] {
            assert_eq!(left_out.touches(&path(field)), expected, "{field}");
        }
        let mut left_out = left_out;
        assert!(!left_out.add(&path("a.c[2]")) && !left_out.add(&path("a.c[2].x")));
    }
}
