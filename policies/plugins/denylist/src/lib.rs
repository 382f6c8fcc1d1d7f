//! A list of regular expressions, each with an action: what nobody may send or be sent.

use dlp_sdk::{Action, Host, JsonSchema, LeafKind, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Denylist(Config);

/// What is denied.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// The entries, at most 64. Each is looked for in every leaf at or below its path.
    pub entries: Vec<Entry>,
}

/// One entry.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Entry {
    /// A regular expression (linear: no look-around, no back-references). `(?i)` ignores case.
    pub pattern: String,
    /// The word for it in audit records.
    pub label: String,
    /// What to do. Default block.
    #[serde(default)]
    pub action: Deed,
    /// Only leaves at or below this path, such as `$.params.arguments`. Default: everywhere, as it is where
    /// a key differs from one of the path by case only.
    #[serde(default = "everywhere")]
    pub path: String,
}

/// What is done about a match.
#[derive(Deserialize, JsonSchema, Clone, Copy, Default)]
#[serde(crate = "dlp_sdk::serde", rename_all = "snake_case")]
#[schemars(crate = "dlp_sdk::schemars")]
pub enum Deed {
    /// Recorded.
    Log,
    /// Recorded, with an alert.
    Warn,
    /// Replaced by a placeholder.
    Redact,
    /// The message goes no further.
    #[default]
    Block,
}

fn everywhere() -> String {
    "$".into()
}

impl Plugin for Denylist {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.entries.is_empty() || config.entries.len() > 64 {
            return Err(format!(
                "entries: there are {}; use 1 to 64",
                config.entries.len()
            ));
        }
        for (i, entry) in config.entries.iter().enumerate() {
            let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            if entry.label.is_empty() || entry.label.len() > 64 || !entry.label.bytes().all(plain) {
                return Err(format!(
                    "entries[{i}].label: use 1 to 64 letters, digits, - _ ."
                ));
            }
            if !entry.path.starts_with('$') {
                return Err(format!("entries[{i}].path: a path begins with $"));
            }
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        let mut verdict = Verdict::pass();
        for entry in &self.0.entries {
            // A server may take a key in other letters for one of the path.
            let has_twin = message.twins_of(&[&entry.path]).next().is_some();
            let path = if has_twin { "$" } else { &*entry.path };
            for leaf in message.under(path) {
                // Redacting a number would leave a number; it is blocked instead.
                let action = match (entry.action, leaf.kind) {
                    (Deed::Redact, LeafKind::Number) | (Deed::Block, _) => Action::Block,
                    (Deed::Redact, _) => Action::Redact,
                    (Deed::Warn, _) => Action::Warn,
                    (Deed::Log, _) => Action::Log,
                };
                let Ok(found) = host.find(&entry.pattern, leaf.text, 64) else {
                    return Verdict::block("a pattern of the denylist cannot be used");
                };
                for at in found.into_iter().filter(|at| !at.is_empty()) {
                    verdict = verdict
                        .mark(&leaf, at, &entry.label, action)
                        .because(format!("{} is on the denylist", entry.label));
                }
            }
        }
        verdict
    }
}

dlp_sdk::export!(Denylist);
