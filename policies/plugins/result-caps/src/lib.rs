//! Results that are too large, or have too many rows, do not go to the client, and neither do errors and
//! notifications that are: what may not come as the one would come as the other.

use dlp_sdk::{
    Action, Host, JsonSchema, Leaf, LeafKind, Message, Plugin, Verdict, serde::Deserialize,
};

/// The plugin.
pub struct Caps(Config);

/// The bounds; at least one.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Bytes of text over the whole result, error or notification.
    pub bytes_max: Option<usize>,
    /// Rows: elements of any one list in the structured content, in an error's data or in a notification, or
    /// lines of one text or of all texts of a result.
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
        let said = message.leaves().filter(|leaf| !is_envelope(leaf));
        let bytes: usize = said.map(|leaf| leaf.text.len()).sum();
        if self.0.bytes_max.is_some_and(|max| bytes > max) {
            return Verdict::of(
                action,
                "what the server says is larger than this tool may give",
            );
        }
        if self.0.rows_max.is_some_and(|max| rows(message) > max) {
            return Verdict::of(
                action,
                "what the server says has more rows than this tool may give",
            );
        }
        Verdict::pass()
    }
}

/// What every message has, and headers: which message it is, and none of what it says.
fn is_envelope(leaf: &Leaf<'_>) -> bool {
    match leaf.kind {
        LeafKind::Header => true,
        LeafKind::Key => leaf.path == "${key}",
        _ => matches!(leaf.path, "$.jsonrpc" | "$.id" | "$.method"),
    }
}

/// Where results of calls, of resources and of prompts have their texts.
const RESULTS: &[&str] = &["$.result.content", "$.result.contents", "$.result.messages"];

fn rows(message: &Message) -> usize {
    // Rows that are a text each are rows as much as the lines of one are.
    let together = RESULTS.iter().map(|path| {
        let texts = message
            .under(path)
            .filter(|leaf| leaf.path.ends_with(".text"));
        texts.map(|leaf| lines(leaf.text)).sum()
    });
    let each = RESULTS.iter().chain(&["$.error", "$.params"]);
    let each = each.flat_map(|path| message.under(path));
    let each = each.filter(|leaf| leaf.kind == LeafKind::Text);
    let lines = together.chain(each.map(|leaf| lines(leaf.text)));
    let lists = ["$.result.structuredContent", "$.error.data", "$.params"];
    let elements = lists.iter().flat_map(|path| message.under(path));
    let elements = elements.filter_map(|leaf| indexes(leaf.path));
    lines.chain(elements).max().unwrap_or(0)
}

fn lines(text: &str) -> usize {
    let ends = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ];
    text.split(ends)
        .filter(|line| !line.trim().is_empty())
        .count()
}

/// The largest index in a path, and one: how many elements that list has at least.
fn indexes(path: &str) -> Option<usize> {
    let parts = path.split('[').skip(1);
    let numbers = parts.filter_map(|part| part.split_once(']')?.0.parse::<usize>().ok());
    numbers.max().map(|index| index + 1)
}

dlp_sdk::export!(Caps);
