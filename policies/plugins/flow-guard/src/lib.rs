//! A value that one server has shown may not enter another server's arguments.
//!
//! Values are words of letters, digits and a few signs that are long enough to mean something, and
//! that carry a digit or are long: names, ids, addresses, tokens; dates and times are none, as everybody
//! says them. A server shows them in results, errors and notifications. Kept are keyed hashes, never the
//! values. Bind it to every server concerned, in both directions, with the grant `tenant-state`.
//!
//! A value is from every server that has shown it, and no server becomes the owner of one by showing it
//! first: it goes to a server only if that one alone has shown it. One server's answers can fill no more
//! than its share of what is remembered.

mod times;

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
    /// New values of one server that are remembered within the time that one is. Default 4,000; what is
    /// remembered of all servers together is bounded too.
    #[serde(default = "four_thousand")]
    pub values_per_server_max: i64,
    /// A value that the server has shown itself may go to it though another one has shown it too. Default
    /// false: a server that guesses values and shows them would be told which of them are right.
    #[serde(default)]
    pub shared_values_pass: bool,
    /// What becomes of an answer with more values than these. Default block: what is not remembered can
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
fn four_thousand() -> i64 {
    4000
}

/// Where a server's message shows values.
const SHOWN: &[&str] = &["$.result", "$.error", "$.params"];
/// Where they may enter another: what tools and prompts are given, what resource is asked for, and what a
/// question of the server is answered.
const GOES: &[&str] = &[
    "$.params.arguments",
    "$.params.argument",
    "$.params.uri",
    "$.result",
];

/// Servers by which a value is remembered; one that more have shown goes to none.
const SOURCES_MAX: usize = 8;
/// Stands for them.
const MANY: &str = "*";

impl Plugin for Flow {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.value_bytes_min < 4 || config.values_max == 0 || config.values_max > 1000 {
            return Err("value_bytes_min is at least 4, values_max 1 to 1000".into());
        }
        if config.values_per_server_max < 1 {
            return Err("values_per_server_max is at least 1".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, host: &dyn Host) -> Verdict {
        let judged = if message.to_server() {
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
        // The definitions of tools and prompts have the same keys at many servers.
        let defines = message.method().ends_with("/list");
        let leaves = SHOWN.iter().flat_map(|path| message.under(path));
        let values = leaves.flat_map(|leaf| {
            let is_key = leaf.kind == LeafKind::Key;
            // So have results, unless a value is the key: then mostly with a digit in it.
            self.values(leaf.text)
                .filter(move |(_, value)| !is_key || (!defines && is_telling(value)))
        });
        let counter = format!("values of {server}");
        let before = host.state_add(Scope::Tenant, &counter, 0, self.0.remember_s)?;
        let mut fresh = 0;
        let mut verdict = Verdict::pass();
        for (nth, (_, value)) in values.enumerate() {
            if nth == self.0.values_max {
                verdict = self.too_many("the answer holds more values than are remembered");
                break;
            }
            let key = host.keyed_hash(value.to_lowercase().as_bytes());
            let known = sources(host, &key)?;
            if known.is_empty() {
                if before.saturating_add(fresh) >= self.0.values_per_server_max {
                    verdict =
                        self.too_many("this server has shown more values than are remembered");
                    break;
                }
                fresh += 1;
            }
            if let Some(all) = with(&known, server) {
                host.state_set(Scope::Tenant, &key, all.as_bytes(), self.0.remember_s)?;
            }
        }
        if fresh > 0 {
            host.state_add(Scope::Tenant, &counter, fresh, self.0.remember_s)?;
        }
        Ok(verdict)
    }

    fn too_many(&self, reason: &str) -> Verdict {
        match self.0.when_more {
            WhenMore::Block => Verdict::block(reason),
            WhenMore::Warn => Verdict::warn(reason),
        }
    }

    fn arguments(&self, message: &Message, host: &dyn Host) -> Result<Verdict, HostError> {
        let mut verdict = Verdict::pass();
        let mut seen = 0;
        for leaf in GOES.iter().flat_map(|path| message.under(path)) {
            for (at, value) in self.values(leaf.text) {
                seen += 1;
                if seen > self.0.values_max {
                    return Err(HostError::OverQuota);
                }
                let key = host.keyed_hash(value.to_lowercase().as_bytes());
                if !self.may_go(&sources(host, &key)?, message.server()) {
                    verdict = verdict
                        .mark(&leaf, at..at + value.len(), "other-server", Action::Block)
                        .because("an argument holds a value from another server's answer");
                }
            }
        }
        Ok(verdict)
    }

    fn may_go(&self, sources: &str, server: &str) -> bool {
        let own = sources.lines().any(|source| source == server);
        let others = sources.lines().any(|source| source != server);
        !others || (own && self.0.shared_values_pass)
    }

    /// The values of a text, with the byte at which each begins.
    fn values<'t>(&'t self, text: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
        let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+');
        let words = text.split(move |c| !inside(c));
        let words = words.map(|word| word.trim_matches(['.', '-', '_', '+']));
        let long = self.0.value_bytes_min;
        words
            .filter(move |word| word.len() >= long && (is_telling(word) || word.len() >= 2 * long))
            .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
            .filter(|(at, word)| !times::is_time(&text[..*at], word))
    }
}

fn is_telling(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit() || b == b'@')
}

/// The servers that have shown a value, one a line.
fn sources(host: &dyn Host, key: &str) -> Result<String, HostError> {
    let known = host.state_get(Scope::Tenant, key)?.unwrap_or_default();
    Ok(String::from_utf8(known).unwrap_or_else(|_| MANY.to_owned()))
}

/// The servers with one more, or nothing new.
fn with(known: &str, server: &str) -> Option<String> {
    if known == MANY || known.lines().any(|source| source == server) {
        return None;
    }
    if known.is_empty() {
        return Some(server.to_owned());
    }
    if known.lines().count() >= SOURCES_MAX {
        return Some(MANY.to_owned());
    }
    Some(format!("{known}\n{server}"))
}

dlp_sdk::export!(Flow);
