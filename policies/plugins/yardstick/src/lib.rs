//! What a plugin costs: nothing, a look at every byte, or an edit.

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
    /// The last text is replaced.
    Edit,
}

impl Plugin for Yardstick {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, _: &dyn Host) -> Verdict {
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
            Work::Edit => match message.leaves().filter(|l| l.kind == LeafKind::Text).last() {
                Some(leaf) => Verdict::pass().replace(&leaf, "[edited]"),
                None => Verdict::pass(),
            },
        }
    }
}

dlp_sdk::export!(Yardstick);
