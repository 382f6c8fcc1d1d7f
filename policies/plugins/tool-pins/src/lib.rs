//! Tools are used as they were approved: a list with a tool whose definition is another one, or that
//! nobody approved, does not reach the client, and such a tool is not called.
//!
//! The pin of a tool is printed in Weir's log when it is missing or differs; approving it is copying it into
//! the binding. A pin is a keyed hash over every key and value of the definition, in their order, `true`,
//! `false`, `null` and empty objects and lists among them. Needs no grant.

use std::collections::BTreeMap;

use dlp_sdk::{Host, JsonSchema, LogLevel, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Pins(Config);

/// What was approved.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Pins by tool name.
    #[serde(default)]
    pub pins: BTreeMap<String, String>,
    /// Only warn and print pins: for the first run. Default false.
    #[serde(default)]
    pub learn: bool,
}

impl Plugin for Pins {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        let verdict = match (message.to_server(), message.method()) {
            (true, "tools/call") => self.called(message),
            // An answer to nobody knows what may be one to that.
            (false, "tools/list" | "") => self.listed(message, host),
            _ => Verdict::pass(),
        };
        match verdict.action() {
            Some(_) if self.0.learn => Verdict::warn(verdict.reason()),
            _ => verdict,
        }
    }
}

impl Pins {
    fn called(&self, message: &Message) -> Verdict {
        match message.tool() {
            Some(tool) if self.0.pins.contains_key(tool) => Verdict::pass(),
            _ => Verdict::block("this tool is not approved"),
        }
    }

    fn listed(&self, message: &Message, host: &dyn Host) -> Verdict {
        let mut definitions: BTreeMap<usize, (String, String)> = BTreeMap::new();
        for leaf in message.under("$.result.tools") {
            let Some((index, place)) = in_tool(leaf.path) else {
                continue;
            };
            let (name, definition) = definitions.entry(index).or_default();
            if place == ".name" {
                name.push_str(leaf.text);
            }
            write(definition, place, leaf.text);
        }
        // A tool whose `destructiveHint` is another one is another tool.
        for word in host.words() {
            let Some((index, place)) = in_tool(&word.path) else {
                continue;
            };
            let (_, definition) = definitions.entry(index).or_default();
            // No leaf begins with it.
            definition.push('w');
            write(definition, place, &word.text);
        }
        let mut unapproved = 0;
        for (name, definition) in definitions.values() {
            let pin = host.keyed_hash(definition.as_bytes());
            if self.0.pins.get(name) != Some(&pin) {
                unapproved += 1;
                let shown: String = name.chars().take(64).collect();
                host.log(
                    LogLevel::Warn,
                    &format!("tool {shown:?} is not as approved; its pin is {pin}"),
                );
            }
        }
        if unapproved == 0 {
            Verdict::pass()
        } else {
            Verdict::block(format!("{unapproved} tools are not as they were approved"))
        }
    }
}

/// Which tool a path is in, and where in it.
fn in_tool(path: &str) -> Option<(usize, &str)> {
    let (index, place) = path.strip_prefix("$.result.tools[")?.split_once(']')?;
    Some((index.parse().ok()?, place))
}

/// Lengths keep one text from running into the next.
fn write(definition: &mut String, place: &str, text: &str) {
    let (place_len, text_len) = (place.len(), text.len());
    definition.push_str(&format!("{place_len}:{place}{text_len}:{text}"));
}

dlp_sdk::export!(Pins);
