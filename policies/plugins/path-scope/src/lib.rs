//! Paths and URLs of arguments stay within given roots and hosts.

use dlp_sdk::{Host, JsonSchema, LeafKind, Message, Plugin, Verdict, serde::Deserialize};

/// The plugin.
pub struct Scope(Config);

/// Which arguments, and what they may name.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "dlp_sdk::serde", deny_unknown_fields)]
#[schemars(crate = "dlp_sdk::schemars")]
pub struct Config {
    /// Paths of arguments that hold file paths, such as `$.params.arguments.path`.
    #[serde(default)]
    pub file_arguments: Vec<String>,
    /// Folders that may be reached, absolute, with `/`.
    #[serde(default)]
    pub roots: Vec<String>,
    /// Paths of arguments that hold URLs.
    #[serde(default)]
    pub url_arguments: Vec<String>,
    /// Hosts that may be named; `*.example.com` means those below it.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Schemes that may be used. Default https.
    #[serde(default = "https")]
    pub schemes: Vec<String>,
}

fn https() -> Vec<String> {
    vec!["https".into()]
}

impl Plugin for Scope {
    type Config = Config;

    fn new(config: Config) -> Result<Self, String> {
        if config.file_arguments.is_empty() && config.url_arguments.is_empty() {
            return Err("name file_arguments or url_arguments".into());
        }
        if config
            .roots
            .iter()
            .any(|root| !root.starts_with('/') || normal(root).is_none())
        {
            return Err("roots: absolute folders without ..".into());
        }
        Ok(Self(config))
    }

    fn evaluate(&self, message: &Message, _: &dyn Host) -> Verdict {
        if !message.to_server() {
            return Verdict::pass();
        }
        let named = [&self.0.file_arguments[..], &self.0.url_arguments].concat();
        if message.twins_of(&named).next().is_some() {
            return Verdict::block("an argument's name differs from a checked one by case only");
        }
        // A key may be a path too, as in `{"files": {"/etc/hosts": "..."}}`.
        let values = |paths: &'_ [String], allowed: &dyn Fn(&str, bool) -> bool| {
            paths.iter().all(|path| {
                let mut leaves = message.under(path);
                leaves.all(|leaf| allowed(leaf.text, leaf.kind == LeafKind::Key))
            })
        };
        if !values(&self.0.file_arguments, &|text, _| self.file(text)) {
            return Verdict::block("a path leaves the folders that this tool may reach");
        }
        if !values(&self.0.url_arguments, &|text, is_key| {
            // A name of a field; one slash and a backslash are an address's to many.
            (is_key && !text.contains([':', '/', '\\'])) || self.url(text)
        }) {
            return Verdict::block("a URL names a host that this tool may not reach");
        }
        Verdict::pass()
    }
}

impl Scope {
    fn file(&self, text: &str) -> bool {
        // A URL of a file of this machine is the path that it holds.
        let text = match text.split_at_checked("file://".len()) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("file://") => {
                let rest = rest.strip_prefix("localhost").unwrap_or(rest);
                if !rest.starts_with('/') || rest.contains(['?', '#']) {
                    return false;
                }
                rest
            }
            _ => text,
        };
        // Two slashes name another machine to some systems; a space at an end is taken away by some servers.
        if text.starts_with("//") || text.trim() != text {
            return false;
        }
        if !text.starts_with('/') {
            return is_relative(text);
        }
        let Some(path) = normal(text) else {
            return false;
        };
        self.0
            .roots
            .iter()
            .filter_map(|root| normal(root))
            .any(|root| path.len() >= root.len() && path[..root.len()] == root[..])
    }

    fn url(&self, text: &str) -> bool {
        // What servers and browsers read in different ways is not let through at all.
        if text
            .chars()
            .any(|c| c.is_control() || c == ' ' || c == '\\')
        {
            return false;
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return false;
        };
        if !self
            .0
            .schemes
            .iter()
            .any(|s| s.eq_ignore_ascii_case(scheme))
        {
            return false;
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') || authority.contains('%') {
            return false;
        }
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            Some(_) => return false,
            None => authority,
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_of_name = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        // Some end a host at other signs: `evil.net;.example.com`.
        !host.is_empty()
            && host.bytes().all(is_of_name)
            && self.0.hosts.iter().any(|allowed| {
                let allowed = allowed.to_ascii_lowercase();
                match allowed.strip_prefix("*.") {
                    Some(parent) => host
                        .strip_suffix(parent)
                        .is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
                    None => host == allowed,
                }
            })
    }
}

/// A relative path is one from a root: it may not climb out, and its first step is no drive (`C:`) and no
/// scheme (`file:`), nor is it a stream of a file.
fn is_relative(text: &str) -> bool {
    let first = text.split('/').next().unwrap_or_default();
    !first.contains(':') && normal(text).is_some()
}

/// The steps of a path, or `None` for one that climbs above its beginning or hides its meaning.
fn normal(path: &str) -> Option<Vec<&str>> {
    let hides = |c: char| matches!(c, '\\' | '~') || c.is_control();
    if path.contains(hides) || is_encoded(path) {
        return None;
    }
    let mut steps = Vec::new();
    for step in path.split('/') {
        // Some take blanks and dots from the end of a step, some read wide signs as plain ones: `..` to them.
        let mut parts = step.split(SLASHES);
        if !matches!(step, "" | "." | "..") && parts.any(is_dots) {
            return None;
        }
        match step {
            "" | "." => {}
            ".." => {
                steps.pop()?;
            }
            step => steps.push(step),
        }
    }
    Some(steps)
}

/// Signs that some read as a slash or a backslash.
const SLASHES: [char; 5] = ['\u{2044}', '\u{2215}', '\u{fe68}', '\u{ff0f}', '\u{ff3c}'];

/// Whether a part is two dots or more, in any width, with blanks or without.
fn is_dots(part: &str) -> bool {
    let dots = part.chars().map(|c| match c {
        '.' | '\u{2024}' | '\u{fe52}' | '\u{ff0e}' => Some(1),
        '\u{2025}' | '\u{2026}' | '\u{fe19}' | '\u{fe30}' => Some(2),
        c if c.is_whitespace() => Some(0),
        _ => None,
    });
    dots.sum::<Option<u32>>().is_some_and(|dots| dots >= 2)
}

/// Whether bytes are written as `%2e`: what they mean depends on who reads them.
fn is_encoded(path: &str) -> bool {
    let mut parts = path.split('%').skip(1).map(str::as_bytes);
    parts.any(|part| match part {
        // As some write other characters: `%u002e`.
        [b'u' | b'U', digits @ ..] if digits.len() >= 4 => is_hex(&digits[..4]),
        _ => part.len() >= 2 && is_hex(&part[..2]),
    })
}

fn is_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

dlp_sdk::export!(Scope);
