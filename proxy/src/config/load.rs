//! From a path, or from the command line, to a resolved configuration.

use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use domain::KeyHash;
use serde_saphyr::Error as YamlError;

use super::Loaded;
use super::error::{ConfigError, FieldError, FieldPath};
use super::place::{self, Places};
use super::raw;
use super::resolve::{self, Source};
use super::secret_ref::SecretRef;

/// Largest configuration file, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// How a configuration file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Whoever names it waits for it: it may be a pipe.
    First,
    /// While the program runs: only a file is opened, since a pipe would be waited for in the place of all changes to come.
    Again,
}

impl Reading {
    fn text(self, path: &Path) -> Result<String, ConfigError> {
        let text = match self {
            Self::First => read_given(path, FILE_BYTES_MAX).and_then(text_of),
            Self::Again => read_bounded(path, FILE_BYTES_MAX),
        };
        text.map_err(|problem| ConfigError::file(path, problem))
    }
}

/// Loads a configuration file.
///
/// # Errors
/// The first thing that is wrong with it, with its place in the file. Nothing of it is taken then.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    from_text(path, &Reading::First.text(path)?, &env)
}

/// Loads the configuration of `weir serve`.
///
/// # Errors
/// As for [`load`], and that nothing would be served: so begins a file that is still being written.
pub fn to_serve(path: &Path, reading: Reading) -> Result<Loaded, ConfigError> {
    let loaded = from_text(path, &reading.text(path)?, &env)?;
    if loaded.desired.servers.is_empty() && loaded.hosting.is_none() {
        let problem = "there is no server in it; add one under tenants.ID.servers, or hosting";
        return Err(ConfigError::file(path, problem));
    }
    Ok(loaded)
}

/// What `weir proxy` is told on its command line.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// The server to be fronted; `None`: all those of `config`.
    pub upstream: Option<ProxyUpstream>,
    /// Headers that Weir sends to it as its own credentials.
    pub upstream_headers: Vec<(String, domain::Secret)>,
    /// A configuration file for everything else.
    pub config: Option<PathBuf>,
    /// In place of the file's, or of the default.
    pub listen: Option<SocketAddr>,
    /// In place of the file's, or of the default.
    pub admin_listen: Option<SocketAddr>,
    /// In place of the file's, or of the default.
    pub data_dir: Option<PathBuf>,
    /// A key that clients of `upstream` must show.
    pub key: Option<KeyHash>,
    /// Decide and record, but enforce nothing.
    pub dry_run: bool,
}

/// Where the server that `weir proxy` fronts is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyUpstream {
    /// Streamable HTTP.
    Url(String),
    /// HTTP+SSE of revision 2024-11-05.
    Sse(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// The tenant that owns the server of `weir proxy`.
pub const PROXY_TENANT: &str = "local";
/// The id of the server of `weir proxy`.
pub const PROXY_SERVER: &str = "default";

/// The configuration of `weir proxy`: the command line over a file over the defaults. It goes through
/// the same checks as a file.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn for_proxy(options: &ProxyOptions, reading: Reading) -> Result<Loaded, ConfigError> {
    let command_line = Path::new("command line");
    let (mut config, places) = match &options.config {
        Some(path) => parse(path, &reading.text(path)?)?,
        None => (raw::Config::default(), None),
    };
    apply_options(&mut config, options);
    let source = Source {
        file: options.config.as_deref(),
        env: &env,
        admin_moves: true,
    };
    let loaded = resolve::resolve(config, source).and_then(|loaded| reachable(loaded, options));
    loaded.map_err(|e| {
        let at = places.as_ref().and_then(|p| p.of(&e.field));
        let file = options.config.as_deref().unwrap_or(command_line);
        ConfigError {
            file: file.into(),
            at,
            field: e.field,
            problem: e.problem,
        }
    })
}

/// Where keys are asked for, one of them must open the server of the command line.
fn reachable(loaded: Loaded, options: &ProxyOptions) -> Result<Loaded, FieldError> {
    let desired = &loaded.desired;
    let mut keys = desired.keys.iter();
    let has_key = desired.open_access || keys.any(|key| key.tenant.as_str() == PROXY_TENANT);
    if has_key || options.upstream.is_none() {
        return Ok(loaded);
    }
    let at = FieldPath::default().key("tenants");
    at.error(format!(
        "there are keys, but none of tenant {PROXY_TENANT:?}, which owns the server of the command line: \
         nobody could call it. Add a key under tenants.{PROXY_TENANT}.keys"
    ))
}

fn apply_options(config: &mut raw::Config, options: &ProxyOptions) {
    if let Some(listen) = options.listen {
        config.listen = Some(listen.to_string());
    }
    if let Some(listen) = options.admin_listen {
        config.admin_listen = Some(listen.to_string());
    }
    if let Some(dir) = &options.data_dir {
        // As the user sees it: from the working directory, not from the file's folder.
        config.data_dir = Some(std::path::absolute(dir).unwrap_or_else(|_| dir.clone()));
    }
    if let Some(upstream) = &options.upstream {
        add_server(config, upstream, options);
    }
    if options.dry_run {
        for tenant in config.tenants.values_mut() {
            tenant.policy.dry_run = Some(true);
            for server in tenant.servers.values_mut() {
                server.policy.dry_run = Some(true);
            }
        }
    }
}

fn add_server(config: &mut raw::Config, upstream: &ProxyUpstream, options: &ProxyOptions) {
    let tenant = config.tenants.entry(PROXY_TENANT.into()).or_default();
    if let Some(hash) = &options.key {
        tenant.keys.push(raw::Key {
            id: "command-line".into(),
            hash: super::keys::hash_text(hash),
            servers: vec![PROXY_SERVER.into()],
            tools: domain::ToolAccess::default(),
            limits: domain::CallLimits::default(),
        });
    }
    tenant
        .servers
        .insert(PROXY_SERVER.into(), proxy_server(upstream, options));
}

fn proxy_server(upstream: &ProxyUpstream, options: &ProxyOptions) -> raw::Server {
    let mut raw = raw::Upstream::default();
    match upstream {
        ProxyUpstream::Url(url) => raw.url = Some(url.clone()),
        ProxyUpstream::Sse(url) => raw.sse = Some(url.clone()),
        ProxyUpstream::Command(words) => {
            let mut words = words.iter().cloned();
            raw.command = Some(words.next().unwrap_or_default());
            raw.args = words.collect();
        }
    }
    raw.auth.headers = options
        .upstream_headers
        .iter()
        .map(|(name, value)| (name.clone(), SecretRef::Text(value.clone())))
        .collect();
    raw::Server {
        upstream: raw,
        policy: raw::Policy::default(),
        limits: domain::CallLimits::default(),
        rules: Vec::new(),
        values: std::collections::BTreeMap::new(),
        plugins: Vec::new(),
    }
}

/// Loads a configuration from its text; `env` answers for environment variables.
pub(super) fn from_text(
    path: &Path,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Loaded, ConfigError> {
    let (config, places) = parse(path, text)?;
    let source = Source {
        file: Some(path),
        env,
        admin_moves: false,
    };
    resolve::resolve(config, source).map_err(|e| ConfigError {
        file: path.into(),
        at: places.as_ref().and_then(|p| p.of(&e.field)),
        field: e.field,
        problem: e.problem,
    })
}

fn parse(path: &Path, text: &str) -> Result<(raw::Config, Option<Places>), ConfigError> {
    let places = Places::read(text);
    match serde_saphyr::from_str_with_options::<Option<raw::Config>>(text, yaml_options()) {
        Ok(Some(config)) => Ok((config, places)),
        // Nothing was said, which is not the same as that all shall be as it is by default.
        Ok(None) => Err(ConfigError::file(
            path,
            "there is nothing in it; `weir config example` prints a file to begin with",
        )),
        Err(error) => {
            let at = error.location().and_then(place::at);
            let field = match (at, &places) {
                (Some(at), Some(places)) if is_missing(&error) => places.holder_at(at),
                (Some(at), Some(places)) => places.field_at(at),
                _ => FieldPath::default(),
            };
            Err(ConfigError {
                file: path.into(),
                at,
                field,
                problem: say(error.without_snippet()),
            })
        }
    }
}

fn is_missing(error: &YamlError) -> bool {
    matches!(error.without_snippet(), YamlError::SerdeMissingField { .. })
}

/// Tighter than the parser's own bounds: a configuration is small and flat.
pub(super) fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_nodes: 200_000,
            max_events: 500_000,
        },
        with_snippet: false,
    }
}

/// The parser's complaint in our words. What was found in place of a value is never repeated: it may
/// be a secret in the wrong field.
fn say(error: &YamlError) -> String {
    match error {
        YamlError::SerdeUnknownField {
            field, expected, ..
        } => unknown("field", field, expected),
        YamlError::SerdeUnknownVariant {
            variant, expected, ..
        } => unknown("word", variant, expected),
        YamlError::SerdeMissingField { field, .. } => {
            format!("the field {field:?} is missing; add it")
        }
        YamlError::SerdeInvalidType {
            unexpected,
            expected,
            ..
        }
        | YamlError::SerdeInvalidValue {
            unexpected,
            expected,
            ..
        } => format!("expected {expected}, found {}", kind_of(unexpected)),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => {
            format!("{key:?} stands here twice; keep one")
        }
        YamlError::InvalidScalar { ty, .. } => format!("expected {ty}"),
        YamlError::MultipleDocuments { .. } => "a configuration is one YAML document".into(),
        YamlError::Budget { .. } => "larger or deeper than a configuration may be".into(),
        other => strip_place(&other.to_string()),
    }
}

fn unknown(what: &str, word: &str, known: &[&'static str]) -> String {
    let word: String = word.chars().take(64).collect();
    match domain::nearest(&word, known.iter().copied()) {
        Some(near) => format!("there is no {what} {word:?} here; did you mean {near:?}?"),
        None => format!(
            "there is no {what} {word:?} here; use one of: {}",
            known.join(", ")
        ),
    }
}

/// `string "abc"` -> `string`
fn kind_of(unexpected: &str) -> &str {
    let end = unexpected.find(['"', '`']).unwrap_or(unexpected.len());
    unexpected[..end].trim_end()
}

/// The parser ends its messages with the place, which stands at the front of ours.
fn strip_place(text: &str) -> String {
    let end = text
        .find(" at line ")
        .or_else(|| text.find("\n"))
        .unwrap_or(text.len());
    text[..end].trim_end_matches([',', ':']).to_owned()
}

/// Reads a file that was named on the command line, up to a bound. It may be a pipe: whoever names one waits for it.
pub fn read_given(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return Err("is a folder; name a file".into());
    }
    read_up_to(file, bytes_max)
}

/// Reads a text file that something else names, up to a bound.
pub fn read_bounded(path: &Path, bytes_max: u64) -> Result<String, String> {
    text_of(read_bytes_bounded(path, bytes_max)?)
}

/// Reads a file that something else names and that may not be larger than this. A pipe or a device would be waited for, or
/// have no end: it is not even opened, and one that is put in its place meanwhile is not waited for.
pub fn read_bytes_bounded(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let opened = |e| format!("cannot be opened: {e}");
    let kind = std::fs::metadata(path).map_err(opened)?.file_type();
    if kind.is_dir() {
        return Err("is a folder; name a file".into());
    }
    let no_file = || Err("is a pipe or a device; name a file".into());
    if !kind.is_file() {
        return no_file();
    }
    let file = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits())
        .open(path)
        .map_err(opened)?;
    if !file.metadata().map_err(opened)?.is_file() {
        return no_file();
    }
    read_up_to(file, bytes_max)
}

/// What was read, as text.
pub fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".into())
}

fn read_up_to(file: std::fs::File, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("is larger than {bytes_max} bytes"));
    }
    Ok(bytes)
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn a_pipe_in_the_files_place_is_waited_for_by_nobody_who_is_at_work() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.yaml");
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        for read in [
            to_serve(&path, Reading::Again).unwrap_err().to_string(),
            read_bounded(&path, 100).unwrap_err(),
        ] {
            assert!(
                read.ends_with("is a pipe or a device; name a file"),
                "{read}"
            );
        }
        // At the start somebody writes into it: `weir serve -c <(...)`.
        let text = "tenants: {a: {servers: {s: {upstream: {command: x}}}}}\n";
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, text).unwrap()
        });
        assert!(to_serve(&path, Reading::First).is_ok());
        writer.join().unwrap();
    }

    #[test]
    fn what_would_serve_nothing_is_not_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.yaml");
        for (text, problem) in [
            ("", "there is nothing in it"),
            ("# being written\n", "there is nothing in it"),
            ("listen: 127.0.0.1:0\n", "there is no server in it"),
            (
                "tenants:\n  a:\n    policy: {dry_run: true}\n",
                "there is no server in it",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            for reading in [Reading::First, Reading::Again] {
                let error = to_serve(&path, reading).unwrap_err().to_string();
                assert!(error.contains(problem), "{text:?}: {error}");
            }
        }
        std::fs::write(&path, "hosting: {}\n").unwrap();
        assert!(to_serve(&path, Reading::Again).is_ok());
    }
}
