//! From a path, or from the command line, to a resolved configuration.

use std::cell::RefCell;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use domain::KeyHash;
use serde::Deserialize as _;

use super::Loaded;
use super::error::{ConfigError, ConfigErrors, FieldError, FieldPath, Step};
use super::left_out::{LeftOut, Without};
use super::place::Places;
use super::raw;
use super::resolve::{self, Secrets, Source};
use super::secret_ref::SecretRef;

/// Largest configuration file, in bytes.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file in which this much has the wrong shape is not read on.
const READINGS_MAX: usize = 100;

/// How a configuration file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Whoever names it waits for it: it may be a pipe.
    First,
    /// While the program runs: only a file is opened, since a pipe would be waited for in the place of all changes to come.
    Again,
}

impl Reading {
    fn text(self, path: &Path) -> Result<String, ConfigErrors> {
        let text = match self {
            Self::First => read_given(path, FILE_BYTES_MAX).and_then(text_of),
            Self::Again => read_bounded(path, FILE_BYTES_MAX),
        };
        text.map_err(|problem| ConfigError::file(path, problem).into())
    }
}

/// Loads a configuration file.
///
/// # Errors
/// All that is wrong with it, with the places in the file. Nothing of it is taken then.
pub fn load(path: &Path) -> Result<Loaded, ConfigErrors> {
    from_text(path, &Reading::First.text(path)?, &env, Secrets::Read)
}

/// Loads a configuration file to check it: environment variables that are not set here are among the notes.
///
/// # Errors
/// As for [`load`].
pub fn to_check(path: &Path) -> Result<Loaded, ConfigErrors> {
    from_text(path, &Reading::First.text(path)?, &env, Secrets::Noted)
}

/// Loads a configuration file to look at it: what serves nothing needs no secret, nor the server that a command line names.
///
/// # Errors
/// As for [`load`].
pub fn to_look_at(path: &Path) -> Result<Loaded, ConfigErrors> {
    let text = Reading::First.text(path)?;
    from_text(path, &text, &env, Secrets::Optional)
}

/// Loads the configuration of `weir serve`.
///
/// # Errors
/// As for [`load`], and that nothing would be served: so begins a file that is still being written.
pub fn to_serve(path: &Path, reading: Reading) -> Result<Loaded, ConfigErrors> {
    let loaded = from_text(path, &reading.text(path)?, &env, Secrets::Read)?;
    if loaded.desired.servers.is_empty() && loaded.hosting.is_none() {
        let problem = "there is no server in it; add one under tenants.ID.servers, or hosting";
        return Err(ConfigError::file(path, problem).into());
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
    pub admin_listen: Option<AdminListen>,
    /// In place of the file's, or of the default.
    pub data_dir: Option<PathBuf>,
    /// A key that clients of `upstream` must show.
    pub key: Option<KeyHash>,
    /// Decide and record, but enforce nothing.
    pub dry_run: bool,
}

/// Where metrics, health and readiness are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminListen {
    /// Nowhere.
    Off,
    /// There.
    At(SocketAddr),
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
/// All that is wrong, with the places.
pub fn for_proxy(options: &ProxyOptions, reading: Reading) -> Result<Loaded, ConfigErrors> {
    let file = options.config.as_deref();
    let mut written = match file {
        Some(path) => Written::read(path, &reading.text(path)?)?,
        None => Written::nothing(Path::new("command line")),
    };
    let notes = written.change(|config| apply_options(config, options));
    let source = Source {
        file,
        env: &env,
        admin_moves: true,
        secrets: Secrets::Read,
    };
    written.resolve(source, |mut loaded| {
        loaded.notes.extend(notes.unwrap_or_default());
        reachable(loaded, options)
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

/// Puts what the command line says over what the file says.
fn apply_options(
    config: &mut raw::Config,
    options: &ProxyOptions,
) -> Result<Vec<String>, FieldError> {
    if let Some(listen) = options.listen {
        config.listen = Some(listen.to_string());
    }
    if let Some(listen) = options.admin_listen {
        config.admin_listen = Some(match listen {
            AdminListen::Off => "off".into(),
            AdminListen::At(listen) => listen.to_string(),
        });
    }
    if let Some(dir) = &options.data_dir {
        // As the user sees it: from the working directory, not from the file's folder.
        config.data_dir = Some(std::path::absolute(dir).unwrap_or_else(|_| dir.clone()));
    }
    let mut notes = Vec::new();
    if let Some(upstream) = &options.upstream {
        notes.extend(policy_of_others(config)?);
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
    Ok(notes)
}

/// Policy of other tenants does not judge the server of the command line. Whoever wrote it relies on it, so a file that says
/// nothing of the server's own tenant is refused (fail-closed); one that does is known to mean several.
fn policy_of_others(config: &raw::Config) -> Result<Option<String>, FieldError> {
    let mut tenants = config.tenants.iter();
    let other = tenants.find(|(id, tenant)| id.as_str() != PROXY_TENANT && tenant.has_policy());
    let Some((id, _)) = other else {
        return Ok(None);
    };
    let own = config.tenants.get(PROXY_TENANT);
    let servers = own.map(|own| &own.servers);
    let says = |own: &raw::Tenant| own.policy.says_something() || !own.values.is_empty();
    let of_server = servers.and_then(|servers| servers.get(PROXY_SERVER));
    if own.is_some_and(says) || of_server.is_some_and(|s| s.policy.says_something()) {
        return Ok(None);
    }
    let problem = format!(
        "this is policy of tenant {id:?}, and the server of the command line is `{PROXY_SERVER}` of tenant \
         {PROXY_TENANT:?}: it does not hold there"
    );
    let at = FieldPath::default().key("tenants").key(id);
    match own {
        Some(_) => Ok(Some(format!("{at}: {problem}"))),
        None => at.error(format!(
            "{problem}. Put it under tenants.{PROXY_TENANT}.policy, or use `weir serve`"
        )),
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
    let server = tenant.servers.entry(PROXY_SERVER.into()).or_default();
    server.upstream = upstream_of(std::mem::take(&mut server.upstream), upstream, options);
}

/// The command line says where the server is. What the file says of an upstream that it names itself (credentials, an
/// environment) belongs to that one; only the breaker is kept of it.
fn upstream_of(
    file: raw::Upstream,
    upstream: &ProxyUpstream,
    options: &ProxyOptions,
) -> raw::Upstream {
    let mut raw = match file.names_transport() {
        false => file,
        true => raw::Upstream {
            breaker: file.breaker,
            ..raw::Upstream::default()
        },
    };
    match upstream {
        ProxyUpstream::Url(url) => raw.url = Some(url.clone()),
        ProxyUpstream::Sse(url) => raw.sse = Some(url.clone()),
        ProxyUpstream::Command(words) => {
            let mut words = words.iter().cloned();
            raw.command = Some(words.next().unwrap_or_default());
            raw.args = words.collect();
        }
    }
    let headers = options.upstream_headers.iter();
    let headers = headers.map(|(name, value)| (name.clone(), SecretRef::Text(value.clone())));
    raw.auth.headers.extend(headers);
    raw
}

/// Loads a configuration from its text; `env` answers for environment variables.
pub(super) fn from_text(
    path: &Path,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
    secrets: Secrets,
) -> Result<Loaded, ConfigErrors> {
    let mut written = Written::read(path, text)?;
    let local = written.config.tenants.get_mut(PROXY_TENANT);
    if let Some(server) = local.and_then(|local| local.servers.get_mut(PROXY_SERVER))
        && secrets == Secrets::Optional
        && !server.upstream.names_transport()
    {
        // The command line says where it is, and whoever looks at the file need not know.
        server.upstream = raw::Upstream {
            command: Some("command-line".into()),
            ..raw::Upstream::default()
        };
    }
    let source = Source {
        file: Some(path),
        env,
        admin_moves: false,
        secrets,
    };
    written.resolve(source, Ok)
}

/// What is written in a file, as far as it has the shape of a configuration.
struct Written<'a> {
    path: &'a Path,
    config: raw::Config,
    places: Option<Places>,
    /// What has not that shape.
    left_out: LeftOut,
    errors: Vec<ConfigError>,
}

impl<'a> Written<'a> {
    fn nothing(path: &'a Path) -> Self {
        Self {
            path,
            config: raw::Config::default(),
            places: None,
            left_out: LeftOut::default(),
            errors: Vec::new(),
        }
    }

    /// Reads it, as often as something is wrong and without that, until nothing is.
    fn read(path: &'a Path, text: &str) -> Result<Self, ConfigErrors> {
        let mut written = Self::nothing(path);
        written.places = Places::read(text);
        let first = match yaml_text::read::<Option<raw::Config>>(text) {
            Ok(Some(config)) => {
                written.config = config;
                return Ok(written);
            }
            // Nothing was said, which is not the same as that all shall be as it is by default.
            Ok(None) => {
                let problem =
                    "there is nothing in it; `weir config example` prints a file to begin with";
                return Err(ConfigError::file(path, problem).into());
            }
            Err(wrong) => written.shaped(wrong),
        };
        written.note_twice();
        // It is one of those that stand twice, or comes again.
        let is_noted = !written.errors.is_empty();
        let mut goes_on = is_noted || written.leave_out(first);
        for _ in 0..READINGS_MAX {
            if !goes_on {
                break;
            }
            match written.read_again(text) {
                Ok(config) => {
                    written.config = config;
                    return Ok(written);
                }
                Err(next) => goes_on = written.leave_out(next),
            }
        }
        Err(ConfigErrors::new(written.errors))
    }

    /// What stands twice cannot be read either way.
    fn note_twice(&mut self) {
        let twice = self.places.as_ref().map(Places::twice).unwrap_or_default();
        for (field, at) in twice {
            let Some(Step::Key(name)) = field.steps().last() else {
                continue;
            };
            if self.left_out.add(field) {
                self.errors.push(ConfigError {
                    file: self.path.into(),
                    at: Some(at),
                    field: field.clone(),
                    problem: yaml_text::twice(name),
                });
            }
        }
    }

    /// Notes an error and leaves out what it is about; false if there is nothing to go on with.
    fn leave_out(&mut self, wrong: Misshapen) -> bool {
        let Misshapen { error, is_missing } = wrong;
        // What is missing may have been left out, or be what another name was written for.
        let follows = is_missing && self.left_out.touches(&error.field);
        let is_part = self.places.is_some() && !error.field.is_top();
        let goes_on = is_part && self.left_out.add(&error.field);
        if !follows {
            self.errors.push(error);
        }
        goes_on
    }

    fn read_again(&self, text: &str) -> Result<raw::Config, Misshapen> {
        let mut options = yaml_text::options();
        // All that stands twice is left out.
        options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
        let refused = RefCell::new(None);
        let config = yaml_text::read_with(text, options, |inner| {
            raw::Config::deserialize(Without {
                inner,
                left_out: &self.left_out,
                refused: &refused,
                at: FieldPath::default(),
            })
        });
        config.map_err(|wrong| {
            let mut wrong = self.shaped(wrong);
            if let Some(field) = refused.take() {
                wrong.error.at = self.places.as_ref().and_then(|p| p.of(&field));
                wrong.error.field = field;
            }
            wrong
        })
    }

    fn shaped(&self, wrong: yaml_text::Wrong) -> Misshapen {
        let field = match (wrong.at, &self.places) {
            (Some(at), Some(places)) if wrong.is_missing => places.holder_at(at),
            (Some(at), Some(places)) => places.field_at(at),
            _ => FieldPath::default(),
        };
        Misshapen {
            is_missing: wrong.is_missing,
            error: ConfigError {
                file: self.path.into(),
                at: wrong.at,
                field,
                problem: wrong.problem,
            },
        }
    }

    /// Changes what is written.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&mut raw::Config) -> Result<T, FieldError>,
    ) -> Option<T> {
        let changed = change(&mut self.config);
        changed
            .map_err(|error| self.errors.extend(self.located(error)))
            .ok()
    }

    /// What it means, if nothing is wrong with it and `last` has nothing against it.
    fn resolve(
        mut self,
        source: Source<'_>,
        last: impl FnOnce(Loaded) -> Result<Loaded, FieldError>,
    ) -> Result<Loaded, ConfigErrors> {
        let config = std::mem::take(&mut self.config);
        let found = match resolve::resolve(config, source, &self.left_out) {
            Ok(loaded) if self.errors.is_empty() => match last(loaded) {
                Ok(loaded) => return Ok(loaded),
                Err(error) => vec![error],
            },
            Ok(_) => Vec::new(),
            Err(found) => found,
        };
        let found: Vec<_> = found.into_iter().filter_map(|e| self.located(e)).collect();
        self.errors.extend(found);
        Err(ConfigErrors::new(self.errors))
    }

    /// The error with its place in the file; none if it may only follow from what was left out.
    fn located(&self, error: FieldError) -> Option<ConfigError> {
        let field = self.left_out.original(&error.field);
        (!self.left_out.touches(&field)).then(|| ConfigError {
            file: self.path.into(),
            at: self.places.as_ref().and_then(|p| p.of(&field)),
            field,
            problem: error.problem,
        })
    }
}

/// What has not the shape of a configuration.
struct Misshapen {
    error: ConfigError,
    is_missing: bool,
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
    fn a_value_of_the_wrong_kind_is_said_in_words() {
        let path = Path::new("weir.yaml");
        for (text, words) in [
            (
                "tenants: [a]",
                "1:10: tenants: expected fields, each as `name: value`",
            ),
            ("hosts: a", "hosts: expected a list: [a, b]"),
            ("listen: [1]", "listen: expected a single text"),
            (
                "limits: {batch_max: many}",
                "limits.batch_max: expected a whole number, 0 or more",
            ),
            (
                "limits: {batch_max: -1}",
                "expected a whole number, 0 or more",
            ),
            (
                "tenants: {a: {policy: {dry_run: maybe}}}",
                "expected true or false",
            ),
            ("hosts: [*]", "put it in quotes, such as \"*\""),
            ("hosts: [*x]", "put it in quotes, such as \"*\""),
            ("data_dir: @b", "put it in quotes"),
            ("hosts: [~]", "there is no value here"),
        ] {
            let error = from_text(path, text, &env, Secrets::Read)
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
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
