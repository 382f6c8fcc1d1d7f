//! What is published for people who write the file: its JSON Schema and an example.

use schemars::generate::SchemaSettings;

use super::raw;

/// A commented configuration that loads as it stands. The repository has it as
/// `config/weir.example.yaml`.
pub const EXAMPLE: &str = include_str!("../../../config/weir.example.yaml");

/// The JSON Schema (2020-12) of the file. The repository has it as `config/weir.schema.json`.
pub fn schema_json() -> String {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema = generator.into_root_schema_for::<raw::Config>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_the_generated_one() {
        let published = include_str!("../../../config/weir.schema.json");
        assert!(
            published == schema_json(),
            "config/weir.schema.json is old; run `weir config schema > config/weir.schema.json`"
        );
    }
}
