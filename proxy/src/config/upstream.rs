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
    pub(super) fn upstream(
        &mut self,
        raw: raw::Upstream,
        at: &FieldPath,
    ) -> Result<Upstream, FieldError> {
        if let Err((field, problem)) = breaker_ranges(raw.breaker) {
            return at.key("breaker").key(field).error(problem);
        }
        let breaker = raw.breaker;
        let tells_stateless = raw.stateless.unwrap_or(true);
        let auth = self.auth(&raw, at)?;
        let transport = match (&raw.url, &raw.sse, &raw.command) {
            (Some(url), None, None) => {
                let url = self.endpoint(url, &raw, &at.key("url"), at)?;
                let ca_file = self.ca_file(&raw, at)?;
                UpstreamTransport::Http { url, ca_file }
            }
            (None, Some(url), None) => {
                let url = self.endpoint(url, &raw, &at.key("sse"), at)?;
                let ca_file = self.ca_file(&raw, at)?;
                UpstreamTransport::Sse { url, ca_file }
            }
            (None, None, Some(_)) => self.stdio(raw, at)?,
            (None, None, None) => {
                return at.error(NOWHERE);
            }
            _ => return at.error("has more than one of url, sse, command; keep one"),
        };
        Ok(Upstream {
            transport,
            auth,
            breaker_failures: breaker.failures,
            breaker_open_ms: breaker.open_ms,
            tells_stateless,
        })
    }

    fn endpoint(
        &self,
        url: &str,
        raw: &raw::Upstream,
        url_at: &FieldPath,
        at: &FieldPath,
    ) -> Result<String, FieldError> {
        check::url(url).or_else(|problem| url_at.error(problem))?;
        if self.own.is_some_and(|own| check::url_is_of(url, own)) {
            return url_at.error(
                "is where Weir itself listens: each call would come back as another, until there is no room for more. \
                 Give the address of the server, or let Weir listen elsewhere (`listen`, or `--listen`)",
            );
        }
        let misplaced = [
            ("args", !raw.args.is_empty()),
            ("env", !raw.env.is_empty()),
            ("env_clear", raw.env_clear),
            ("cwd", raw.cwd.is_some()),
        ];
        match misplaced.iter().find(|(_, there)| *there) {
            Some((field, _)) => at.key(field).error("belongs to `command`; take it out"),
            None => Ok(url.to_owned()),
        }
    }

    fn ca_file(
        &mut self,
        raw: &raw::Upstream,
        at: &FieldPath,
    ) -> Result<Option<PathBuf>, FieldError> {
        let Some(file) = &raw.ca_file else {
            return Ok(None);
        };
        let at = at.key("ca_file");
        self.pem(file, "CERTIFICATE", &at).map(Some)
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

    fn stdio(
        &mut self,
        raw: raw::Upstream,
        at: &FieldPath,
    ) -> Result<UpstreamTransport, FieldError> {
        if raw.ca_file.is_some() {
            return at
                .key("ca_file")
                .error("belongs to `url` or `sse`; take it out");
        }
        let command = raw.command.unwrap_or_default();
        if command.is_empty() || command.contains('\0') {
            return at.key("command").error("must name a program");
        }
        if let Some(i) = raw.args.iter().position(|a| a.contains('\0')) {
            return at.key("args").index(i).error("holds a NUL character");
        }
        let cwd = raw.cwd.as_deref().map(|dir| self.path(dir));
        if let Some(dir) = cwd.as_deref().filter(|dir| !dir.is_dir()) {
            return at
                .key("cwd")
                .error(format!("{} is no folder", dir.display()));
        }
        let mut env = BTreeMap::new();
        for (name, value) in raw.env {
            let at = at.key("env").key(&name);
            if name.is_empty() || name.contains(['=', '\0']) {
                return at.error("is no name for an environment variable");
            }
            let value = self.secret(&value, &at)?;
            if value.expose().contains('\0') {
                return at.error("the value holds a NUL character");
            }
            env.insert(name, value);
        }
        Ok(UpstreamTransport::Stdio {
            command: self.program(command),
            args: raw.args,
            env,
            env_clear: raw.env_clear,
            cwd,
        })
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
            (None, false) => self
                .headers(headers, &at.key("headers"))
                .map(UpstreamAuth::Headers),
            (Some(_), false) => at.error(
                "has both bearer and headers; put `Authorization: Bearer ...` under headers instead",
            ),
        }
    }

    pub(super) fn headers(
        &mut self,
        headers: &BTreeMap<String, SecretRef>,
        at: &FieldPath,
    ) -> Result<Vec<(String, Secret)>, FieldError> {
        let mut out: Vec<(String, Secret)> = Vec::new();
        for (name, value) in headers {
            let at = at.key(name);
            let name = check::header_name(name).or_else(|problem| at.error(problem))?;
            if out.iter().any(|(known, _)| *known == name) {
                return at.error("stands here twice, in another case; keep one");
            }
            let value = self.secret(value, &at)?;
            check::header_value(value.expose()).or_else(|problem| at.error(problem))?;
            out.push((name, value));
        }
        Ok(out)
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

fn breaker_ranges(breaker: raw::Breaker) -> Result<(), (&'static str, String)> {
    match breaker {
        raw::Breaker { failures, .. } if failures > 1_000_000 => {
            Err(("failures", "must be at most 1000000".into()))
        }
        raw::Breaker { open_ms, .. } if open_ms == 0 || open_ms > 3_600_000 => Err((
            "open_ms",
            format!("{open_ms} is out of range; use 1 to 3600000"),
        )),
        _ => Ok(()),
    }
}
