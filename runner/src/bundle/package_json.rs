//! `package.json` and its lock file: dependencies come from the registry only.

use runner_api::Refusal;
use serde_json::{Map, Value};

/// `package.json` is at most this long.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// The lock file is at most this long.
pub const LOCK_BYTES_MAX: usize = 8 * 1024 * 1024;
const DEPENDENCIES_MAX: usize = 500;

/// Checks a whole file; gives the dependencies as `name@range`, sorted.
///
/// # Errors
/// Everything that is refused, at most 50.
pub fn check(bytes: &[u8]) -> Result<Vec<String>, Vec<Refusal>> {
    let refuse = |reason: String| Refusal {
        path: Some("package.json".into()),
        line: None,
        reason,
    };
    let value = object(bytes, FILE_BYTES_MAX).map_err(|reason| vec![refuse(reason)])?;
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for field in ["dependencies", "optionalDependencies", "peerDependencies"] {
        match value.get(field) {
            None => {}
            Some(Value::Object(map)) => {
                for (name, range) in map {
                    match dependency(name, range) {
                        Ok(text) => good.push(text),
                        Err(reason) if bad.len() < 50 => {
                            bad.push(refuse(format!("{field}: {reason}")))
                        }
                        Err(_) => {}
                    }
                }
            }
            Some(_) => bad.push(refuse(format!("{field} has to be an object"))),
        }
    }
    for field in [
        "overrides",
        "workspaces",
        "bundleDependencies",
        "bundledDependencies",
    ] {
        if value.contains_key(field) {
            bad.push(refuse(format!("{field} is not taken")));
        }
    }
    if good.len() > DEPENDENCIES_MAX {
        bad.push(refuse(format!(
            "it names more than {DEPENDENCIES_MAX} dependencies"
        )));
    }
    good.sort();
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}

/// Checks that a lock file sends npm nowhere but to the registry.
///
/// # Errors
/// The first places that are refused.
pub fn check_lock(bytes: &[u8]) -> Result<(), Vec<Refusal>> {
    let refuse = |reason: String| Refusal {
        path: Some("package-lock.json".into()),
        line: None,
        reason,
    };
    let value = object(bytes, LOCK_BYTES_MAX).map_err(|reason| vec![refuse(reason)])?;
    let Some(Value::Object(packages)) = value.get("packages") else {
        return Err(vec![refuse(
            "it has no \"packages\"; make it anew with npm 7 or newer".into(),
        )]);
    };
    let mut bad = Vec::new();
    for (place, package) in packages {
        if bad.len() >= 50 || place.is_empty() {
            continue;
        }
        let place: String = place
            .chars()
            .take(100)
            .flat_map(char::escape_default)
            .collect();
        if package["link"] == true || !place.starts_with("node_modules/") || place.contains("..") {
            bad.push(refuse(format!("{place} is no package of the registry")));
        } else if package.get("resolved").is_some_and(|r| !is_registry_url(r)) {
            bad.push(refuse(format!(
                "{place} is resolved to something other than an https package of the registry"
            )));
        } else if package.get("resolved").is_some()
            && !package["integrity"]
                .as_str()
                .is_some_and(|i| i.starts_with("sha512-"))
        {
            bad.push(refuse(format!("{place} has no sha512 integrity")));
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(bad) }
}

/// Any https archive: to which host the build may connect is decided by its network, not here.
fn is_registry_url(value: &Value) -> bool {
    value.as_str().is_some_and(|url| {
        url.starts_with("https://") && url.ends_with(".tgz") && !url.contains(['@', '\\', '?', '#'])
            || url.starts_with("https://")
                && url.contains("/@")
                && url.ends_with(".tgz")
                && url.matches('@').count() == 1
                && !url.contains(['\\', '?', '#'])
    })
}

fn object(bytes: &[u8], bytes_max: usize) -> Result<Map<String, Value>, String> {
    if bytes.len() > bytes_max {
        return Err(format!("it is longer than {} KiB", bytes_max / 1024));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("it is not a JSON object".into()),
        Err(error) => Err(format!(
            "it is not JSON, at line {} column {}",
            error.line(),
            error.column()
        )),
    }
}

fn dependency(name: &str, range: &Value) -> Result<String, String> {
    let shown: String = name
        .chars()
        .take(100)
        .flat_map(char::escape_default)
        .collect();
    if !is_name(name) {
        return Err(format!("{shown} is no package name"));
    }
    let range = range
        .as_str()
        .ok_or_else(|| format!("{shown} has no text as its version"))?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b" .^~<>=|*-+".contains(&b);
    // A path, a URL, a repository (`user/name`), an alias (`npm:x`) and a tag of a repository all need one of / : # @.
    if range.len() > 128 || !range.bytes().all(plain) {
        return Err(format!(
            "{shown}: versions come from the registry, like \"^1.2.0\"; files, URLs, repositories and aliases are not taken"
        ));
    }
    Ok(format!("{name}@{range}"))
}

fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '_', '-'])
            && part.bytes().all(|b| {
                b.is_ascii_lowercase()
                    || b.is_ascii_uppercase()
                    || b.is_ascii_digit()
                    || matches!(b, b'-' | b'_' | b'.')
            })
    };
    name.len() <= 214
        && match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
            None => part(name),
            Some(Some((scope, name))) => part(scope) && part(name),
            Some(None) => false,
        }
}
