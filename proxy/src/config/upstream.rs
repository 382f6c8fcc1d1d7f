//! Upstreams: exactly one transport, and only what belongs to it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::{Secret, Upstream, UpstreamAuth, UpstreamTransport};

use super::check;
use super::error::{FieldError, FieldPath};
use super::load::{FILE_BYTES_MAX, read_bounded};
use super::raw;
use super::resolve::{Resolver, Secrets};
use super::secret_ref::SecretRef;

/// Largest file that a secret is read from, in bytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

const NOWHERE: &str = "says not where the server is; add one of url, sse, command. Only `weir proxy` and `weir stdio` \
                       do without: for `default` of tenant `local`, which their command line names";

impl Resolver<'_> {
    /// Nothing if something is wrong with it.
    pub(super) fn upstream(&mut self, raw: raw::Upstream, at: &FieldPath) -> Option<Upstream> {
        let breaker = raw.breaker;
        let tells_stateless = raw.stateless.unwrap_or(true);
        for (field, problem) in breaker_ranges(breaker) {
            self.wrong(&at.key("breaker").key(field), problem);
        }
        let auth = self.auth(&raw, at);
        let auth = self.ok(auth);
        let transport = match (&raw.url, &raw.sse, &raw.command) {
            (Some(url), None, None) => {
                let url = self.endpoint(url, &raw, &at.key("url"), at);
                let ca_file = self.ca_file(&raw, at);
                let (url, ca_file) = (url?, ca_file?);
                UpstreamTransport::Http { url, ca_file }
            }
            (None, Some(url), None) => {
                let url = self.endpoint(url, &raw, &at.key("sse"), at);
                let ca_file = self.ca_file(&raw, at);
                let (url, ca_file) = (url?, ca_file?);
                UpstreamTransport::Sse { url, ca_file }
            }
            (None, None, Some(_)) => self.stdio(raw, at),
            (None, None, None) => {
                self.wrong(at, NOWHERE);
                return None;
            }
            _ => {
                self.wrong(at, "has more than one of url, sse, command; keep one");
                return None;
            }
        };
        Some(Upstream {
            transport,
            auth: auth?,
            breaker_failures: breaker.failures,
            breaker_open_ms: breaker.open_ms,
            tells_stateless,
        })
    }

    fn endpoint(
        &mut self,
        url: &str,
        raw: &raw::Upstream,
        url_at: &FieldPath,
        at: &FieldPath,
    ) -> Option<String> {
        let misplaced = [
            ("args", !raw.args.is_empty()),
            ("env", !raw.env.is_empty()),
            ("env_clear", raw.env_clear),
            ("cwd", raw.cwd.is_some()),
        ];
        for (field, _) in misplaced.iter().filter(|(_, there)| *there) {
            self.wrong(&at.key(field), "belongs to `command`; take it out");
        }
        match check::url(url) {
            Err(problem) => self.wrong(url_at, problem),
            Ok(()) if self.own.is_some_and(|own| check::url_is_of(url, own)) => self.wrong(
                url_at,
                "is where Weir itself listens: each call would come back as another, until there is no room for more. \
                 Give the address of the server, or let Weir listen elsewhere (`listen`, or `--listen`)",
            ),
            Ok(()) => return Some(url.to_owned()),
        }
        None
    }

    fn ca_file(&mut self, raw: &raw::Upstream, at: &FieldPath) -> Option<Option<PathBuf>> {
        let Some(file) = &raw.ca_file else {
            return Some(None);
        };
        let pem = self.pem(file, "CERTIFICATE", &at.key("ca_file"));
        self.ok(pem).map(Some)
    }

    /// A PEM file that can be read and holds what it should; the gateway parses it in full.
    pub(super) fn pem(
        &mut self,
        file: &std::path::Path,
        kind: &str,
        at: &FieldPath,
    ) -> Result<PathBuf, FieldError> {
        let path = self.path(file);
        let text = read_bounded(&path, FILE_BYTES_MAX)
            .or_else(|problem| at.error(format!("{} {problem}", path.display())))?;
        let begins = |line: &str| line.starts_with("-----BEGIN ") && line.contains(kind);
        if !text.lines().any(begins) {
            return at.error(format!(
                "{} holds no PEM block of kind {kind}",
                path.display()
            ));
        }
        self.watch(path.clone());
        Ok(path)
    }

    fn stdio(&mut self, raw: raw::Upstream, at: &FieldPath) -> UpstreamTransport {
        if raw.ca_file.is_some() {
            self.wrong(&at.key("ca_file"), "belongs to `url` or `sse`; take it out");
        }
        let command = raw.command.unwrap_or_default();
        if command.is_empty() || command.contains('\0') {
            self.wrong(&at.key("command"), "must name a program");
        }
        if let Some(i) = raw.args.iter().position(|a| a.contains('\0')) {
            self.wrong(&at.key("args").index(i), "holds a NUL character");
        }
        let cwd = raw.cwd.as_deref().map(|dir| self.path(dir));
        if let Some(dir) = cwd.as_deref().filter(|dir| !dir.is_dir()) {
            self.wrong(&at.key("cwd"), format!("{} is no folder", dir.display()));
        }
        let mut env = BTreeMap::new();
        for (name, value) in raw.env {
            let value = self.variable(&name, &value, &at.key("env").key(&name));
            env.extend(self.ok(value).map(|value| (name, value)));
        }
        UpstreamTransport::Stdio {
            command: self.program(command),
            args: raw.args,
            env,
            env_clear: raw.env_clear,
            cwd,
        }
    }

    fn variable(
        &mut self,
        name: &str,
        value: &SecretRef,
        at: &FieldPath,
    ) -> Result<Secret, FieldError> {
        if name.is_empty() || name.contains(['=', '\0']) {
            return at.error("is no name for an environment variable");
        }
        let value = self.secret(value, at)?;
        match value.expose().contains('\0') {
            true => at.error("the value holds a NUL character"),
            false => Ok(value),
        }
    }

    /// A bare name is looked up in PATH; a relative path is taken from the file's folder.
    fn program(&self, command: String) -> String {
        if !command.contains('/') {
            return command;
        }
        let path = self.path(command.as_ref());
        path.into_os_string().into_string().unwrap_or(command)
    }

    fn auth(&mut self, raw: &raw::Upstream, at: &FieldPath) -> Result<UpstreamAuth, FieldError> {
        let at = at.key("auth");
        let raw::Auth { bearer, headers } = &raw.auth;
        let none = bearer.is_none() && headers.is_empty();
        if !none && raw.command.is_some() {
            return at.error("a stdio server takes no headers; give it its credentials by `env`");
        }
        match (bearer, headers.is_empty()) {
            (None, true) => Ok(UpstreamAuth::None),
            (Some(token), true) => {
                let at = at.key("bearer");
                let token = self.secret(token, &at)?;
                check::header_value(token.expose()).or_else(|problem| at.error(problem))?;
                Ok(UpstreamAuth::Bearer(token))
            }
            (None, false) => {
                let headers = self.headers(headers, &at.key("headers"));
                Ok(UpstreamAuth::Headers(headers))
            }
            (Some(_), false) => at.error(
                "has both bearer and headers; put `Authorization: Bearer ...` under headers instead",
            ),
        }
    }

    /// Without those that something is wrong with.
    pub(super) fn headers(
        &mut self,
        headers: &BTreeMap<String, SecretRef>,
        at: &FieldPath,
    ) -> Vec<(String, Secret)> {
        let mut out: Vec<(String, Secret)> = Vec::new();
        for (name, value) in headers {
            let header = self.header(name, value, &out, &at.key(name));
            out.extend(self.ok(header));
        }
        out
    }

    fn header(
        &mut self,
        name: &str,
        value: &SecretRef,
        others: &[(String, Secret)],
        at: &FieldPath,
    ) -> Result<(String, Secret), FieldError> {
        let name = check::header_name(name).or_else(|problem| at.error(problem))?;
        if others.iter().any(|(known, _)| *known == name) {
            return at.error("stands here twice, in another case; keep one");
        }
        let value = self.secret(value, at)?;
        check::header_value(value.expose()).or_else(|problem| at.error(problem))?;
        Ok((name, value))
    }

    /// Reads a secret from where the file says it is.
    pub(super) fn secret(
        &mut self,
        secret: &SecretRef,
        at: &FieldPath,
    ) -> Result<Secret, FieldError> {
        let read = self.read_secret(secret, at);
        match self.source.secrets {
            Secrets::Read => read,
            Secrets::Optional => Ok(read.unwrap_or_else(|_| left_out())),
            Secrets::Noted => match (read, secret) {
                (Err(unset), SecretRef::Env(_)) => {
                    self.unset
                        .push(format!("{}: {}", unset.field, unset.problem));
                    Ok(left_out())
                }
                (read, _) => read,
            },
        }
    }

    fn read_secret(&mut self, secret: &SecretRef, at: &FieldPath) -> Result<Secret, FieldError> {
        match secret {
            SecretRef::Text(text) => Ok(text.clone()),
            SecretRef::Env(name) => (self.source.env)(name).map(Secret::new).map_or_else(
                || at.error(format!("the environment variable {name:?} is not set")),
                Ok,
            ),
            SecretRef::File(file) => {
                let path = self.path(file);
                let text = read_bounded(&path, SECRET_BYTES_MAX)
                    .or_else(|problem| at.error(format!("{} {problem}", path.display())))?;
                self.watch(path);
                let line = text.strip_suffix('\n').unwrap_or(&text);
                Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line)))
            }
        }
    }
}

/// Long enough for a value to be looked for, and fit for a header.
fn left_out() -> Secret {
    Secret::new("left out, not needed")
}

fn breaker_ranges(breaker: raw::Breaker) -> Vec<(&'static str, String)> {
    let raw::Breaker { failures, open_ms } = breaker;
    let mut wrong = Vec::new();
    if failures > 1_000_000 {
        wrong.push(("failures", "must be at most 1000000".into()));
    }
    if open_ms == 0 || open_ms > 3_600_000 {
        let problem = format!("{open_ms} is out of range; use 1 to 3600000");
        wrong.push(("open_ms", problem));
    }
    wrong
}
