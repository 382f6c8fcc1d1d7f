//! `package.json` and its lock file: dependencies come from the registry only.

use runner_api::Refusal;
use serde_json::{Map, Value};

/// `package.json` is at most this long.
pub const FILE_BYTES_MAX: usize = 256 * 1024;
/// The lock file is at most this long.
pub const LOCK_BYTES_MAX: usize = 8 * 1024 * 1024;
const DEPENDENCIES_MAX: usize = 500;
const REFUSALS_MAX: usize = 50;
/// What npm installs.
const INSTALLED: [&str; 3] = ["dependencies", "optionalDependencies", "peerDependencies"];
/// npm looks up what these name as well, also when it is told to leave them out.
const LOOKED_UP: &str = "devDependencies";
/// What sends npm elsewhere, or changes what the others mean.
const NOT_TAKEN: [&str; 5] = [
    "overrides",
    "workspaces",
    "bundleDependencies",
    "bundledDependencies",
    "acceptDependencies",
];

/// Checks a whole file; gives the dependencies as `name@range`, sorted. Without any, npm is not run, and looks nothing up.
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
    for field in INSTALLED {
        match value.get(field) {
            None => {}
            Some(Value::Object(map)) => {
                for (name, range) in map {
                    match dependency(name, range) {
                        Ok(text) => good.push(text),
                        Err(reason) if bad.len() < REFUSALS_MAX => {
                            bad.push(refuse(format!("{field}: {reason}")))
                        }
                        Err(_) => {}
                    }
                }
            }
            Some(_) => bad.push(refuse(format!("{field} has to be an object"))),
        }
    }
    if !good.is_empty() && bad.len() < REFUSALS_MAX {
        let looked_up = locked_dependencies(LOOKED_UP, value.get(LOOKED_UP));
        bad.extend(looked_up.err().map(|reason| refuse(format!("it {reason}"))));
    }
    for field in NOT_TAKEN {
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
        if bad.len() >= REFUSALS_MAX {
            break;
        }
        if let Err(reason) = locked(place, package) {
            bad.push(refuse(format!("{} {reason}", shown(place))));
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(bad) }
}

/// One entry of a lock file. The one without a place is of the bundle itself.
fn locked(place: &str, package: &Value) -> Result<(), String> {
    let package = package.as_object().ok_or("is no object")?;
    for field in INSTALLED.into_iter().chain([LOOKED_UP]) {
        locked_dependencies(field, package.get(field))?;
    }
    if place.is_empty() {
        return match NOT_TAKEN.iter().find(|field| package.contains_key(**field)) {
            Some(field) => Err(format!("{field} is not taken")),
            None => Ok(()),
        };
    }
    let folders = place.strip_prefix("node_modules/");
    let is_place = folders.is_some_and(|names| names.split("/node_modules/").all(is_name));
    let is_link = package.get("link").is_some_and(|link| link != false);
    if is_link || !is_place {
        return Err("is no package of the registry".into());
    }
    // Where nothing else is said, npm asks for `name@version`.
    let name = package.get("name");
    if name.is_some_and(|name| !name.as_str().is_some_and(is_name)) {
        return Err("has a name that is no package's: packages of the registry only".into());
    }
    let version = package.get("version");
    if version.is_some_and(|version| !version.as_str().is_some_and(is_version)) {
        return Err("has a version that is none: packages of the registry only".into());
    }
    match package.get("resolved") {
        None if version.is_none() => Err("has no version".into()),
        None => Ok(()),
        Some(resolved) if !is_registry_url(resolved) => {
            Err("is resolved to something other than an https package of the registry".into())
        }
        Some(_) => match package.get("integrity").and_then(Value::as_str) {
            Some(integrity) if integrity.starts_with("sha512-") => Ok(()),
            _ => Err("has no sha512 integrity".into()),
        },
    }
}

/// What a locked package asks for: npm looks up what the lock file then lacks. Packages of the registry do use aliases.
fn locked_dependencies(field: &str, all: Option<&Value>) -> Result<(), String> {
    let Some(all) = all else { return Ok(()) };
    let all = all
        .as_object()
        .ok_or_else(|| format!("has {field} that are no object"))?;
    for (name, range) in all {
        let fits = range.as_str().is_some_and(|range| {
            match range.strip_prefix("npm:") {
                // The first letter may be a scope's `@`.
                Some(alias) => match alias.get(1..).and_then(|rest| rest.find('@')) {
                    Some(at) => is_name(&alias[..=at]) && !leads_elsewhere(&alias[at + 2..]),
                    None => is_name(alias),
                },
                None => !leads_elsewhere(range),
            }
        });
        if !is_name(name) || !fits {
            let name = shown(name);
            return Err(format!(
                "has {field}: {name}: packages of the registry only"
            ));
        }
    }
    Ok(())
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
    if !is_name(name) {
        return Err(format!("{} is no package name", shown(name)));
    }
    let range = range
        .as_str()
        .ok_or_else(|| format!("{name} has no text as its version"))?;
    let plain = |b: u8| b.is_ascii_alphanumeric() || b" .^~<>=|*-+".contains(&b);
    if range.len() > 128 || !range.bytes().all(plain) || leads_elsewhere(range) {
        return Err(format!(
            "{name}: packages of the registry only, with a version like \"^1.2.0\"; files, folders, archives, URLs, repositories and aliases are not taken"
        ));
    }
    Ok(format!("{name}@{range}"))
}

/// Whether npm takes it for something else than a version, a range or a tag. A path, a URL, a repository (`user/name`) and
/// an alias (`npm:x`) need one of / : # @. A file or a folder is also what begins with a dot, and an archive what ends like
/// one, in either case of letters; of `.tar.gz` any character may be the second dot.
fn leads_elsewhere(range: &str) -> bool {
    let range = range.trim().to_ascii_lowercase();
    let tar_gz = range.strip_suffix("gz").is_some_and(|rest| {
        let mut rest = rest.chars();
        rest.next_back().is_some() && rest.as_str().ends_with(".tar")
    });
    range.contains(['/', '\\', ':', '#', '@'])
        || range.starts_with('.')
        || range.ends_with(".tgz")
        || range.ends_with(".tar")
        || tar_gz
}

/// `1.2.3`, with what may follow it; a range or a tag is none.
fn is_version(text: &str) -> bool {
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let numbers: Vec<&str> = text[..end].split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let rest = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.');
    text.len() <= 256
        && numbers.len() == 3
        && numbers.iter().all(number)
        && text[end..].bytes().all(rest)
        && !leads_elsewhere(text)
}

fn shown(text: &str) -> String {
    text.chars()
        .take(100)
        .flat_map(char::escape_default)
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_npm_takes_for_something_else_is_refused_in_every_field() {
        for range in [
            ".",
            "..",
            "./x",
            ".x",
            " . ",
            "/x",
            "~/x",
            "c:x",
            "x.tgz",
            "x.TGZ ",
            "x.tar",
            "*.tar",
            "x.tar.gz",
            "1.0.0-x.tar-gz",
            "npm:b",
            "file:x",
            "user/repo",
            "x#v1",
        ] {
            for field in INSTALLED {
                let text = json!({field: {"a": range}}).to_string();
                let refused = check(text.as_bytes()).expect_err(range);
                let reason = &refused[0].reason;
                assert!(reason.starts_with(field), "{range}: {reason}");
                assert!(reason.contains(": a: packages of the registry only"));
            }
            let text = json!({"dependencies": {"b": "1"}, LOOKED_UP: {"a": range}}).to_string();
            let found = check(text.as_bytes());
            // What is not installed may have a name of one's own, as in a lock file.
            assert_eq!(found.is_ok(), range == "npm:b", "{range}: {found:?}");
            for refused in found.err().into_iter().flatten() {
                let expected = "it has devDependencies: a: packages of the registry only";
                assert_eq!(refused.reason, expected, "{range}");
            }
        }
        for field in NOT_TAKEN {
            let text = json!({field: {"a": "file:x"}}).to_string();
            assert!(check(text.as_bytes()).is_err(), "{field}");
        }
        let good = json!({
            "dependencies": {"a": "^1.2.0-rc.1", "b": "", "c": "latest", "d": "1.0.0 - 2.x || ~3.targz"},
            "devDependencies": {"typescript": "~5.4"},
        });
        assert_eq!(
            check(good.to_string().as_bytes()),
            Ok(vec![
                "a@^1.2.0-rc.1".into(),
                "b@".into(),
                "c@latest".into(),
                "d@1.0.0 - 2.x || ~3.targz".into()
            ]),
            "what is for development only is not installed"
        );
    }

    #[test]
    fn what_is_for_development_may_be_anywhere_where_nothing_is_installed() {
        for range in ["workspace:*", "file:../x", "catalog:", "git+ssh://git@h/x"] {
            let alone = json!({"dependencies": {}, LOOKED_UP: {"a": range}});
            assert_eq!(check(alone.to_string().as_bytes()), Ok(Vec::new()));
            let beside = json!({"dependencies": {"b": "1"}, LOOKED_UP: {"a": range}});
            assert!(check(beside.to_string().as_bytes()).is_err(), "{range}");
        }
    }

    #[test]
    fn a_lock_file_leads_to_the_registry_only() {
        let lock = |place: &str, entry: &Value| {
            let text = json!({"packages": {place: entry}}).to_string();
            check_lock(text.as_bytes())
        };
        let package = "node_modules/a";
        for (place, entry) in [
            (package, json!({"version": "file:/usr/lib"})),
            (package, json!({"version": "."})),
            (package, json!({"version": "1.0.0-x.tgz"})),
            (package, json!({"version": "latest"})),
            (package, json!({"version": 1})),
            (package, json!({})),
            (package, json!("file:/usr/lib")),
            (package, json!({"version": "1.0.0", "link": 1})),
            (package, json!({"version": "1.0.0", "name": "./usr"})),
            (package, json!({"version": "1.0.0", "resolved": null})),
            (package, json!({"version": "1.0.0", "dependencies": []})),
            ("node_modules/a/x", json!({"version": "1.0.0"})),
            ("node_modules/.", json!({"version": "1.0.0"})),
            ("usr/lib", json!({"version": "1.0.0"})),
            ("", json!({"workspaces": ["x"]})),
        ] {
            assert!(lock(place, &entry).is_err(), "{place} {entry}");
        }
        for field in INSTALLED {
            for aim in ["file:/usr/lib", "npm:b@./x", "npm:../x", "npm:@a@1", "a/b"] {
                for place in ["", package] {
                    let entry = json!({"version": "1.0.0", field: {"b": aim}});
                    assert!(lock(place, &entry).is_err(), "{place} {entry}");
                }
            }
        }
        for (place, entry) in [
            ("", json!({"name": "x", "bin": {"x": "./x.js"}})),
            ("", json!({"devDependencies": {"typescript": "^5"}})),
            (
                "node_modules/@a/b/node_modules/c",
                json!({"version": "1.0.0-rc.1+b2", "name": "@d/e"}),
            ),
            (
                package,
                json!({"version": "1.0.0", "dependencies": {"b": "npm:@c/d@^4.2.0", "e": "npm:f", "g": ">=1 <2"}}),
            ),
        ] {
            assert_eq!(lock(place, &entry), Ok(()), "{place} {entry}");
        }
    }
}
