//! What a plugin costs: nothing, a look at every byte, a scan by Weir's rules, or an edit.

use dlp_sdk::{Host, JsonSchema, LeafKind, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Yardstick(Config);

/// What it does.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// The work.
    #[serde(default)]
    pub work: Work,
}

/// Kinds of work.
#[derive(Deserialize, JsonSchema, Clone, Copy, Default)]
#[serde(crate = "dlp_sdk::serde", rename_all = "lowercase")]
#[schemars(crate = "dlp_sdk::schemars")]
pub enum Work {
    /// None.
    #[default]
    Nothing,
    /// Every byte of every leaf is looked at.
    Read,
    /// The longest text goes through Weir's detection rules. Needs the grant `scan`.
    Scan,
    /// The last text is replaced.
    Edit,
}

impl Plugin for Yardstick {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        match self.0.work {
            Work::Nothing => Verdict::pass(),
            Work::Read => {
                let stars = message
                    .leaves()
                    .map(|leaf| leaf.text.bytes().filter(|b| *b == 0x7f).count());
                match stars.sum::<usize>() {
                    0 => Verdict::pass(),
                    _ => Verdict::warn("a delete character"),
                }
            }
            Work::Scan => {
                let longest = message.leaves().max_by_key(|leaf| leaf.text.len());
                match longest.map(|leaf| host.scan(leaf.text, &[])) {
                    Some(Err(_)) => Verdict::block("texts cannot be scanned: grant `scan`"),
                    Some(Ok(hits)) if !hits.is_empty() => Verdict::warn("the rules find something"),
                    _ => Verdict::pass(),
                }
            }
            Work::Edit => match message.leaves().filter(|l| l.kind == LeafKind::Text).last() {
                Some(leaf) => Verdict::pass().replace(&leaf, "[edited]"),
                None => Verdict::pass(),
            },
        }
    }
}

dlp_sdk::export!(Yardstick);
