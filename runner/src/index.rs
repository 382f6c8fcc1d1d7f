//! Which package indexes this machine uses, as pip and npm would find them: environment first, then their own files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use egress::{Allowlist, Net, Targets};
use futures_util::future::join_all;
use runner_api::Runtime;

const PYPI: &str = "https://pypi.org/simple";
const NPM: &str = "https://registry.npmjs.org";
const HIDDEN_BYTES_MIN: usize = 4;
/// A resolver that is busy or was just started says "try again"; a build that waited minutes for its turn can.
const RESOLVE_PAUSES: [Duration; 7] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
];
/// A user's name is often a word, and a token is longer.
const HIDDEN_USER_BYTES_MIN: usize = 8;

/// The simple index of Python packages, without a slash at the end.
pub fn python_index() -> String {
    let env = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]
        .iter()
        .find_map(|name| set(name));
    env.or_else(pip_conf)
        .unwrap_or_else(|| PYPI.into())
        .trim_end_matches('/')
        .to_owned()
}

/// The npm registry, without a slash at the end.
pub fn npm_registry() -> String {
    let env = ["npm_config_registry", "NPM_CONFIG_REGISTRY"]
        .iter()
        .find_map(|name| set(name));
    env.or_else(npmrc)
        .unwrap_or_else(|| NPM.into())
        .trim_end_matches('/')
        .to_owned()
}

/// The one of a runtime.
pub fn of(runtime: Runtime) -> String {
    match runtime {
        Runtime::Python => python_index(),
        Runtime::Node => npm_registry(),
    }
}

/// Hosts (and ports) that a build of Python packages may reach.
pub fn python_hosts() -> BTreeSet<(String, u16)> {
    let index = python_index();
    let mut hosts: BTreeSet<_> = host(&index).into_iter().collect();
    if index == PYPI {
        hosts.insert(("files.pythonhosted.org".into(), 443));
    }
    hosts
}

/// Hosts (and ports) that a build of Node packages may reach.
pub fn npm_hosts() -> BTreeSet<(String, u16)> {
    host(&npm_registry()).into_iter().collect()
}

/// What a build may reach: these hosts on these ports, wherever the operator's resolver says they are. An index inside
/// the operator's own network is common, so its addresses, and only those, may be private.
///
/// # Errors
/// No host can be resolved, or one has a name that no rule can be made of.
pub async fn way_out(
    hosts: &BTreeSet<(String, u16)>,
    targets: &Targets,
) -> Result<(Allowlist, Targets)> {
    let rules: Vec<String> = hosts
        .iter()
        .map(|(host, port)| format!("{host}:{port}"))
        .collect();
    let rules = Allowlist::parse(&rules)
        .context("the package index is no host name that can be allowed")?;
    let lookup = |host: String, port| async move {
        let found = tokio::net::lookup_host((host.as_str(), port)).await?;
        Ok(found.map(|address| address.ip()).collect())
    };
    let mut targets = targets.clone();
    for address in addresses(hosts, &RESOLVE_PAUSES, lookup).await? {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        targets
            .private
            .extend(format!("{address}/{bits}").parse::<Net>());
    }
    Ok((rules, targets))
}

/// Where these hosts are. One that is not found is only told to the operator when another is: what asks the index and
/// needs none of its files still ends, and what does need them is told by its own installer, which also tries again.
async fn addresses<F: Future<Output = io::Result<Vec<IpAddr>>>>(
    hosts: &BTreeSet<(String, u16)>,
    pauses: &[Duration],
    lookup: impl Fn(String, u16) -> F,
) -> Result<Vec<IpAddr>> {
    let lookup = &lookup;
    let found = join_all(hosts.iter().map(|(host, port)| async move {
        let found = again(pauses, || lookup(host.clone(), *port)).await;
        found.with_context(|| format!("the package index {host} cannot be resolved"))
    }));
    let mut known = Vec::new();
    let mut lost = Vec::new();
    for outcome in found.await {
        match outcome {
            Ok(addresses) => known.push(addresses),
            Err(error) => lost.push(error),
        }
    }
    for error in lost {
        if known.is_empty() {
            return Err(error);
        }
        let error = format!("{error:#}");
        tracing::warn!(error, "a build goes on without one of the index's hosts");
    }
    Ok(known.concat())
}

/// Tries until it works or the pauses are used up; the last error is the one that is told.
async fn again<T, E, F: Future<Output = Result<T, E>>>(
    pauses: &[Duration],
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    for &pause in pauses {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(_) => tokio::time::sleep(pause).await,
        }
    }
    attempt().await
}

/// What says who the operator is in the URL of an index, before its host.
fn credentials(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (credentials, _) = authority.rsplit_once('@')?;
    (!credentials.is_empty()).then_some(credentials)
}

/// Whether the URL of an index has a user, a password or a token in it.
pub fn has_credentials(url: &str) -> bool {
    credentials(url).is_some()
}

/// Puts `***` in the place of the credentials of an index, also where they stand alone or are written out, as installers
/// do in their messages.
pub fn hide_credentials(text: String, url: &str) -> String {
    let Some(credentials) = credentials(url) else {
        return text;
    };
    // A token is often the user, without a password or with one that says so.
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let secret = if password.is_empty() { user } else { password };
    let mut text = text;
    for (word, bytes_min) in [
        (credentials, HIDDEN_BYTES_MIN),
        (secret, HIDDEN_BYTES_MIN),
        (user, HIDDEN_USER_BYTES_MIN),
    ] {
        // What is shorter would be found in words that have nothing to do with it.
        for word in [word.to_owned(), percent_decoded(word)] {
            if word.len() >= bytes_min {
                text = text.replace(&word, "***");
            }
        }
    }
    for user in [user.to_owned(), percent_decoded(user)] {
        if !user.is_empty() {
            text = text.replace(&format!("//{user}:"), "//***:");
            text = text.replace(&format!("//{user}@"), "//***@");
        }
    }
    text
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn set(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| value.starts_with("http"))
}

fn home(file: &str) -> Option<PathBuf> {
    std::env::var_os("HOME").map(|home| PathBuf::from(home).join(file))
}

fn pip_conf() -> Option<String> {
    let files = [
        home(".config/pip/pip.conf"),
        home(".pip/pip.conf"),
        Some("/etc/pip.conf".into()),
    ];
    files
        .into_iter()
        .flatten()
        .find_map(|file| value(&fs::read_to_string(file).ok()?, "index-url"))
}

fn npmrc() -> Option<String> {
    let files = [home(".npmrc"), Some("/etc/npmrc".into())];
    files
        .into_iter()
        .flatten()
        .find_map(|file| value(&fs::read_to_string(file).ok()?, "registry"))
}

fn value(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == key && value.trim().starts_with("http")).then(|| value.trim().to_owned())
    })
}

/// Host and port of an http(s) URL; credentials and paths are left out.
fn host(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let default = if scheme == "https" { 443 } else { 80 };
    match authority.rsplit_once(':') {
        Some((host, port)) => Some((host.to_ascii_lowercase(), port.parse().ok()?)),
        None => Some((authority.to_ascii_lowercase(), default)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_urls() {
        assert_eq!(
            host("https://pypi.org/simple"),
            Some(("pypi.org".into(), 443))
        );
        assert_eq!(
            host("http://u:p@Mirror.example:8081/x"),
            Some(("mirror.example".into(), 8081))
        );
        assert_eq!(host("no url"), None);
    }

    #[tokio::test]
    async fn a_resolver_that_is_busy_is_asked_again() {
        for (failures, expected) in [(0, Ok(0)), (3, Ok(3)), (4, Ok(4)), (5, Err(4))] {
            let mut asked = 0;
            let outcome = again(&[Duration::ZERO; 4], || {
                let now = asked;
                asked += 1;
                std::future::ready(if now < failures { Err(now) } else { Ok(now) })
            })
            .await;
            assert_eq!(outcome, expected, "{failures} failures");
        }
    }

    #[tokio::test]
    async fn a_build_goes_on_while_one_host_of_the_index_is_found() {
        let hosts = |names: &[&str]| -> BTreeSet<(String, u16)> {
            names.iter().map(|&name| (name.to_owned(), 443)).collect()
        };
        let lookup = |host: String, port: u16| {
            let known = host.strip_prefix("known").map(str::parse::<u8>);
            std::future::ready(match known {
                Some(Ok(last)) => Ok(vec![IpAddr::from([192, 0, 2, last])]),
                _ => Err(io::Error::other(format!("port {port}: try again"))),
            })
        };
        for (names, expected) in [
            (&["known1", "known2"][..], Ok(&[1, 2][..])),
            (&["known1", "lost"], Ok(&[1])),
            (&["alone", "known2"], Ok(&[2])),
            (
                &["alone", "lost"],
                Err("alone cannot be resolved: port 443"),
            ),
        ] {
            let found = addresses(&hosts(names), &[Duration::ZERO; 2], lookup).await;
            match (found, expected) {
                (Ok(found), Ok(last)) => {
                    let last = last.iter().map(|&last| IpAddr::from([192, 0, 2, last]));
                    assert_eq!(found, Vec::from_iter(last), "{names:?}");
                }
                (Err(error), Err(words)) => assert!(format!("{error:#}").contains(words)),
                (found, _) => panic!("{names:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn credentials_of_an_index_are_hidden() {
        let url = "https://svc-user:hunter%402pass@pypi.example/simple";
        assert!(has_credentials(url));
        for said in [
            format!("GET {url}/numpy/ failed"),
            "user svc-user, password hunter@2pass".into(),
            "401 for https://svc-user:hunter%402pass@other.example/x".into(),
        ] {
            let shown = hide_credentials(said, url);
            assert!(!shown.contains("hunter"), "{shown}");
            assert!(shown.contains("***"), "{shown}");
            assert!(!shown.contains("svc-user"), "{shown}");
        }
        let oauth = "https://ghp%5Ftoken0123:x-oauth-basic@pypi.example/simple";
        for said in ["bad ghp_token0123", "bad ghp%5Ftoken0123"] {
            assert_eq!(hide_credentials(said.into(), oauth), "bad ***");
        }
        let short = "https://me:hunter2pass@pypi.example/simple";
        for (said, shown) in [
            ("some //me:old@h and //me@h", "some //***:old@h and //***@h"),
            ("https://me:hunter2pass@h/x", "https://***@h/x"),
        ] {
            assert_eq!(hide_credentials(said.into(), short), shown);
        }
        let token = "https://a-token-of-ours@pypi.example/simple";
        let colon = "https://a-token-of-ours:@pypi.example/simple";
        for url in [token, colon] {
            let shown = hide_credentials("bad a-token-of-ours".into(), url);
            assert_eq!((shown.as_str(), has_credentials(url)), ("bad ***", true));
        }
        for plain in ["https://pypi.org/simple", "https://h/a@b", "no url"] {
            assert!(!has_credentials(plain), "{plain}");
            assert_eq!(hide_credentials("a@b".into(), plain), "a@b");
        }
    }

    #[test]
    fn configuration_files_are_read_like_pip_and_npm_do() {
        assert_eq!(
            value(
                "[global]\nindex-url = https://a.example/simple\n",
                "index-url"
            )
            .as_deref(),
            Some("https://a.example/simple")
        );
        assert_eq!(
            value("registry=https://b.example/\n", "registry").as_deref(),
            Some("https://b.example/")
        );
        assert_eq!(value("#registry\n", "registry"), None);
    }
}
