//! Results that are too large, or have too many rows, do not go to the client.

use dlp_sdk::{Action, Host, JsonSchema, LeafKind, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Caps(Config);

/// The bounds; at least one.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Bytes of text over the whole result.
    pub bytes_max: Option<usize>,
    /// Rows: elements of any one list in the structured content, or lines of one text.
    pub rows_max: Option<usize>,
    /// Only warn. Default false.
    #[serde(default)]
    pub warn_only: bool,
}

impl Plugin for Caps {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.bytes_max.is_none() && config.rows_max.is_none() {
            return Err("name bytes_max or rows_max".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, _: &dyn Host) -> Verdict {
        if message.to_server() {
            return Verdict::pass();
        }
        let action = if self.0.warn_only {
            Action::Warn
        } else {
            Action::Block
        };
        let bytes: usize = message.under("$.result").map(|leaf| leaf.text.len()).sum();
        if self.0.bytes_max.is_some_and(|max| bytes > max) {
            return Verdict::of(action, "the result is larger than this tool may give");
        }
        if self.0.rows_max.is_some_and(|max| rows(message) > max) {
            return Verdict::of(action, "the result has more rows than this tool may give");
        }
        Verdict::pass()
    }
}

fn rows(message: &Message) -> usize {
    let lines = message
        .under("$.result.content")
        .filter(|leaf| leaf.kind == LeafKind::Text);
    let lines = lines.map(|leaf| {
        leaf.text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .count()
    });
    let elements = message
        .under("$.result.structuredContent")
        .filter_map(|leaf| indexes(leaf.path));
    lines.chain(elements).max().unwrap_or(0)
}

/// The largest index in a path, and one: how many elements that list has at least.
fn indexes(path: &str) -> Option<usize> {
    let parts = path.split('[').skip(1);
    let numbers = parts.filter_map(|part| part.split_once(']')?.0.parse::<usize>().ok());
    numbers.max().map(|index| index + 1)
}

dlp_sdk::export!(Caps);
