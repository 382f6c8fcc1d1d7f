//! So many calls, and so many bytes of arguments, in a window of time. Needs the grant
//! `session-state`; without a session the key's calls are counted.

use dlp_sdk::{Host, JsonSchema, LeafKind, Message, Plugin, Scope, Verdict, serde::Deserialize};

/// The plugin.
pub struct Budget(Config);

/// The bounds.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Calls of a session within the window.
    pub calls_max: i64,
    /// Bytes of arguments of one call. Absent: no bound.
    pub argument_bytes_max: Option<usize>,
    /// The window, in seconds from the first call in it. Default an hour.
    #[serde(default = "hour")]
    pub window_s: u32,
    /// Count each tool for itself. Default false.
    #[serde(default)]
    pub per_tool: bool,
}

fn hour() -> u32 {
    3600
}

impl Plugin for Budget {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.calls_max < 1 || config.window_s == 0 || config.window_s > 86_400 {
            return Err("calls_max is at least 1, window_s 1 to 86400".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        if message.method() != "tools/call" || !message.to_server() {
            return Verdict::pass();
        }
        let leaves = message.under("$.params.arguments");
        let bytes: usize = leaves
            .filter(|l| l.kind != LeafKind::Header)
            .map(|l| l.text.len())
            .sum();
        if self.0.argument_bytes_max.is_some_and(|max| bytes > max) {
            return Verdict::block("the arguments are larger than the budget allows");
        }
        let key = match message.tool().filter(|_| self.0.per_tool) {
            Some(tool) => format!("calls:{}", host.keyed_hash(tool.as_bytes())),
            None => "calls".to_owned(),
        };
        match host.state_add(Scope::Session, &key, 1, self.0.window_s) {
            Ok(calls) if calls <= self.0.calls_max => Verdict::pass(),
            Ok(_) => Verdict::block("the session has used up its calls"),
            Err(_) => Verdict::block("calls cannot be counted: grant `session-state`"),
        }
    }
}

dlp_sdk::export!(Budget);
