//! A credential in the configuration: a text, or where to read it.

use std::fmt;
use std::path::PathBuf;

use domain::Secret;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// `"text"`, `{env: NAME}` or `{file: PATH}`. Nothing else in the file is ever substituted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// The value itself.
    Text(Secret),
    /// The environment variable of that name.
    Env(String),
    /// The content of that file, without the line break at its end.
    File(PathBuf),
}

const EXPECTED: &str = "a text, {env: NAME} or {file: PATH}";

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RefVisitor)
    }
}

struct RefVisitor;

/// Errors here never show what was found: it may be the secret.
impl<'de> Visitor<'de> for RefVisitor {
    type Value = SecretRef;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SecretRef, E> {
        Ok(SecretRef::Text(Secret::new(text)))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<SecretRef, E> {
        Err(quote_it())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<SecretRef, E> {
        Err(quote_it())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<SecretRef, E> {
        Err(quote_it())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<SecretRef, E> {
        Err(quote_it())
    }

    fn visit_unit<E: de::Error>(self) -> Result<SecretRef, E> {
        Err(E::custom(format!("empty; expected {EXPECTED}")))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretRef, A::Error> {
        let wrong = || de::Error::custom(format!("expected {EXPECTED}"));
        let key: String = map.next_key()?.ok_or_else(wrong)?;
        let found = match key.as_str() {
            "env" => SecretRef::Env(map.next_value()?),
            "file" => SecretRef::File(map.next_value()?),
            _ => return Err(wrong()),
        };
        match map.next_key::<String>()? {
            None => Ok(found),
            Some(_) => Err(wrong()),
        }
    }
}

fn quote_it<E: de::Error>() -> E {
    E::custom(format!(
        "expected {EXPECTED}; put quotation marks around a text that looks like a number or a boolean"
    ))
}

impl JsonSchema for SecretRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SecretRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A text, an environment variable, or a file whose content is the value.",
            "oneOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"env": {"type": "string", "description": "Name of an environment variable."}},
                    "required": ["env"],
                    "additionalProperties": false,
                },
                {
                    "type": "object",
                    "properties": {"file": {"type": "string", "description": "Path of a file."}},
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_and_no_other() {
        let good = [
            ("abc", SecretRef::Text(Secret::new("abc"))),
            ("'12'", SecretRef::Text(Secret::new("12"))),
            ("'${HOME}'", SecretRef::Text(Secret::new("${HOME}"))),
            ("{env: A}", SecretRef::Env("A".into())),
            ("{file: a/b}", SecretRef::File("a/b".into())),
        ];
        for (yaml, expected) in good {
            let got: SecretRef = serde_saphyr::from_str(yaml).unwrap();
            assert_eq!(got, expected, "{yaml}");
        }
        for yaml in [
            "12",
            "true",
            "1.5",
            "~",
            "{}",
            "{hunter2: hunter2}",
            "{env: A, file: hunter2}",
            "[hunter2]",
        ] {
            let error = serde_saphyr::from_str::<SecretRef>(yaml).unwrap_err();
            let text = error.without_snippet().to_string();
            assert!(text.contains(EXPECTED), "{yaml}: {text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
