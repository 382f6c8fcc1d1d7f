//! A value seen in one server's answers may not enter another server's arguments.
//!
//! Values are words of letters, digits and a few signs that are long enough to mean something, and
//! that carry a digit or are long: names, ids, addresses, tokens. Kept are keyed hashes, never the
//! values. Bind it to every server concerned, in both directions, with the grant `tenant-state`.

use dlp_sdk::{
    Action, Host, HostError, JsonSchema, LeafKind, Message, Plugin, Scope, Verdict,
    serde::Deserialize,
};

/// The plugin.
pub struct Flow(Config);

/// Which values, and for how long.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Servers whose answers are remembered. Default: every one it is bound to.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Shortest value, in bytes. Default 8.
    #[serde(default = "eight")]
    pub value_bytes_min: usize,
    /// How long a value is remembered, in seconds. Default an hour.
    #[serde(default = "hour")]
    pub remember_s: u32,
    /// Values looked at in one message; arguments with more of them are blocked. Default 500.
    #[serde(default = "five_hundred")]
    pub values_max: usize,
    /// What becomes of an answer with more values than that. Default block: what is not remembered can
    /// go anywhere.
    #[serde(default)]
    pub when_more: WhenMore,
}

/// What becomes of an answer that cannot be remembered whole.
#[derive(Deserialize, JsonSchema, Clone, Copy, Default)]
#[serde(crate = "dlp_sdk::serde", rename_all = "snake_case")]
#[schemars(crate = "dlp_sdk::schemars")]
pub enum WhenMore {
    /// It goes no further.
    #[default]
    Block,
    /// It passes with a warning; the values beyond the bound may go anywhere.
    Warn,
}

fn eight() -> usize {
    8
}
fn hour() -> u32 {
    3600
}
fn five_hundred() -> usize {
    500
}

impl Plugin for Flow {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.value_bytes_min < 4 || config.values_max == 0 || config.values_max > 1000 {
            return Err("value_bytes_min is at least 4, values_max 1 to 1000".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        let judged = if message.to_server() {
            if message.method() != "tools/call" {
                return Verdict::pass();
            }
            self.arguments(message, host)
        } else {
            self.answer(message, host)
        };
        judged.unwrap_or_else(|error| match error {
            HostError::OverQuota => Verdict::block("more values than can be remembered"),
            _ => Verdict::block("values cannot be remembered: grant `tenant-state`"),
        })
    }
}

impl Flow {
    fn answer(&self, message: &Message, host: &dyn Host) -> Result<Verdict, HostError> {
        let server = message.server();
        if !self.0.sources.is_empty() && !self.0.sources.iter().any(|source| source == server) {
            return Ok(Verdict::pass());
        }
        let leaves = message
            .under("$.result")
            .filter(|leaf| leaf.kind != LeafKind::Key);
        let values = leaves.flat_map(|leaf| self.values(leaf.text));
        for (nth, (_, value)) in values.enumerate() {
            if nth == self.0.values_max {
                let reason = "the answer holds more values than are remembered";
                return Ok(match self.0.when_more {
                    WhenMore::Block => Verdict::block(reason),
                    WhenMore::Warn => Verdict::warn(reason),
                });
            }
            let key = host.keyed_hash(value.to_lowercase().as_bytes());
            // The first server that showed a value is where it is from.
            if host.state_get(Scope::Tenant, &key)?.is_none() {
                host.state_set(Scope::Tenant, &key, server.as_bytes(), self.0.remember_s)?;
            }
        }
        Ok(Verdict::pass())
    }

    fn arguments(&self, message: &Message, host: &dyn Host) -> Result<Verdict, HostError> {
        let mut verdict = Verdict::pass();
        let mut seen = 0;
        for leaf in message.under("$.params.arguments") {
            for (at, value) in self.values(leaf.text) {
                seen += 1;
                if seen > self.0.values_max {
                    return Err(HostError::OverQuota);
                }
                let key = host.keyed_hash(value.to_lowercase().as_bytes());
                let from = host.state_get(Scope::Tenant, &key)?;
                if from.is_some_and(|from| from != message.server().as_bytes()) {
                    verdict = verdict
                        .mark(&leaf, at..at + value.len(), "other-server", Action::Block)
                        .because("an argument holds a value from another server's answer");
                }
            }
        }
        Ok(verdict)
    }

    /// The values of a text, with the byte at which each begins.
    fn values<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
        let words = text.split(move |c| !inside(c));
        let words = words.map(|word| word.trim_matches(['.', '-', '_', '+']));
        let long = self.0.value_bytes_min;
        words
            .filter(move |word| {
                let telling = word.bytes().any(|b| b.is_ascii_digit() || b == b'@');
                word.len() >= long && (telling || word.len() >= 2 * long)
            })
            .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
    }
}

dlp_sdk::export!(Flow);
