//! Checks of single values: addresses, URLs, host names, headers, ranges.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use domain::{Policy, ToolAccess, ToolName};
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Uri};
use schemars::JsonSchema;
use serde::Serialize;

/// `IP:PORT`, or `localhost:PORT` for 127.0.0.1.
///
/// # Errors
/// What form it should have.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix("localhost:").and_then(|p| p.parse().ok());
    port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        .ok_or_else(|| {
            format!("{text:?} is no address; use IP:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080")
        })
}

/// A tool's name, or a glob over such: it must be able to match one.
///
/// # Errors
/// What no tool can be called by.
pub fn tool_pattern(text: &str) -> Result<(), String> {
    // What stands in brackets or behind a backslash can be one of several.
    let is_plain = !text.contains(['[', ']', '{', '}', '\\']);
    let name: String = text.chars().filter(|c| !matches!(c, '*' | '?')).collect();
    match is_plain && !name.is_empty() {
        true => ToolName::parse(&name).map(drop).map_err(|_| {
            format!(
                "no tool can be called {text:?}, so this could never match: a tool's name has 1 to 128 characters of A-Z, a-z, \
                 0-9, '_', '-', '.', '/' and ':'"
            )
        }),
        false => Ok(()),
    }
}

/// A field, and what is wrong with it.
pub type Wrong = (String, String);

/// What is wrong with the names of tools that may be called.
pub fn tool_access(tools: &ToolAccess) -> Vec<Wrong> {
    let lists = [("allow", &tools.allow), ("deny", &tools.deny)];
    let named = lists.iter().flat_map(|(list, globs)| {
        let globs = globs.iter().enumerate();
        globs.map(move |(i, glob)| (format!("{list}[{i}]"), glob))
    });
    let wrong = named.filter_map(|(field, glob)| Some((field, tool_pattern(glob).err()?)));
    wrong.collect()
}

/// What is wrong with the names of tools in a policy.
pub fn policy_tools(policy: &Policy) -> Vec<Wrong> {
    let bindings = policy.bindings.iter().map(|line| &line.tool).enumerate();
    let allow = policy.allow.iter().map(|line| &line.tool).enumerate();
    let bindings = bindings.map(|(i, tool)| (format!("bindings[{i}].tool"), tool));
    let allow = allow.map(|(i, tool)| (format!("allow[{i}].tool"), tool));
    let lines = bindings.chain(allow);
    let wrong =
        lines.filter_map(|(field, tool)| Some((field, tool_pattern(tool.as_ref()?).err()?)));
    let access = tool_access(&policy.tools).into_iter();
    let access = access.map(|(field, problem)| (format!("tools.{field}"), problem));
    wrong.chain(access).collect()
}

/// An absolute http or https URL with a host, without credentials and fragment.
///
/// # Errors
/// What is wrong with it. The URL is not repeated: it may hold credentials.
pub fn url(text: &str) -> Result<(), String> {
    let whole = text.contains("://");
    let uri: Uri = text.parse().map_err(|e| match whole {
        true => format!("this is no URL ({e}); use one such as https://example.com/mcp"),
        // `127.0.0.1:9000/mcp` and `localhost:9000/mcp` are not even half of one.
        false => "this is no URL; begin it with http:// or https://".to_owned(),
    })?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => {
            return Err(format!(
                "{other:?} is no scheme for this; use http or https"
            ));
        }
        None => return Err("the URL has no scheme; begin it with http:// or https://".into()),
    }
    let authority = uri.authority().map_or("", Authority::as_str);
    if authority.contains('@') {
        return Err("credentials do not belong into a URL; put them under `auth`".into());
    }
    if uri.host().is_none_or(str::is_empty) {
        return Err("the URL has no host".into());
    }
    if !port_is_sane(authority, uri.host().unwrap_or_default()) {
        return Err("the URL's port must be 1 to 65535".into());
    }
    if text.contains('#') {
        return Err("the URL has a fragment (#...), which no server would see; take it out".into());
    }
    Ok(())
}

/// Whether a URL that passed [`url`] asks for TLS.
pub fn url_is_tls(text: &str) -> bool {
    text.parse::<Uri>()
        .is_ok_and(|uri| uri.scheme_str() == Some("https"))
}

/// Whether a URL that passed [`url`] leads to a listener on this machine, as far as the URL alone says.
pub fn url_is_of(text: &str, listener: SocketAddr) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let by_scheme = if url_is_tls(text) { 443 } else { 80 };
    let port = uri.port_u16().unwrap_or(by_scheme);
    let host = uri.host().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_here = match address {
        // Any address of the machine is the listener's then; those of others are not known to be.
        Some(ip) if listener.ip().is_unspecified() => ip.is_loopback() || ip.is_unspecified(),
        Some(ip) => ip == listener.ip(),
        None => {
            let ip = listener.ip();
            host.eq_ignore_ascii_case("localhost") && (ip.is_loopback() || ip.is_unspecified())
        }
    };
    is_here && port == listener.port() && port != 0
}

fn port_is_sane(authority: &str, host: &str) -> bool {
    match authority.strip_prefix(host) {
        None | Some("") => true,
        Some(rest) => rest
            .strip_prefix(':')
            .and_then(|p| p.parse::<u16>().ok())
            .is_some_and(|p| p > 0),
    }
}

/// A host name or address, with or without a port, in lower case.
pub(super) fn host(text: &str) -> Result<String, String> {
    let bad = || {
        format!("{text:?} is no host name; write it like weir.example.com or weir.example.com:8443")
    };
    let authority: Authority = text.parse().map_err(|_| bad())?;
    let named = !authority.host().is_empty() && !text.contains(['@', '*']);
    if named && port_is_sane(authority.as_str(), authority.host()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err(bad())
    }
}

/// An exact browser origin: scheme, host and port, in lower case.
pub(super) fn origin(text: &str) -> Result<String, String> {
    if text.contains('*') {
        return Err("origins are exact; a pattern would let foreign pages call".into());
    }
    let bad =
        || format!("{text:?} is no origin; write it like https://app.example.com, without a path");
    url(text).map_err(|_| bad())?;
    let uri: Uri = text.parse().map_err(|_| bad())?;
    if text.ends_with('/') || uri.path() != "/" || uri.query().is_some() {
        return Err(bad());
    }
    Ok(text.to_ascii_lowercase())
}

/// A header that may be added to upstream requests, in lower case.
pub(super) fn header_name(text: &str) -> Result<String, String> {
    let name = HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| format!("{text:?} is no header name"))?;
    let name = name.as_str();
    if OURS.contains(&name) || name.starts_with("mcp-") || name.starts_with("proxy-") {
        return Err(format!("the header {name:?} is Weir's own to set"));
    }
    Ok(name.to_owned())
}

/// Headers that frame a message or belong to the protocol.
const OURS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A header's value. The message does not show it.
pub(super) fn header_value(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("the value is empty".into());
    }
    match HeaderValue::from_str(text) {
        Ok(value) if value.to_str().is_ok() => Ok(()),
        _ => Err("the value holds characters that no header may have".into()),
    }
}

/// Compares every number in `value` with the range that its type's schema gives; those outside of it are told.
pub(super) fn ranges<T: JsonSchema + Serialize>(value: &T) -> Vec<Wrong> {
    let schema = schemars::schema_for!(T);
    let value = match serde_json::to_value(value) {
        Ok(value) => value,
        Err(error) => return vec![(String::new(), error.to_string())],
    };
    let properties = schema.get("properties").and_then(|p| p.as_object());
    let fields = value.as_object();
    let mut wrong = Vec::new();
    for (name, property) in properties.into_iter().flatten() {
        let Some(number) = fields.and_then(|f| f.get(name)).and_then(|v| v.as_f64()) else {
            continue;
        };
        let bound = |key| property.get(key).and_then(serde_json::Value::as_f64);
        let (min, max) = (bound("minimum"), bound("maximum"));
        if min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max) {
            let (min, max) = (min.unwrap_or(0.0), max.unwrap_or(f64::MAX));
            let problem = format!("{number} is out of range; use {min} to {max}");
            wrong.push((name.clone(), problem));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for good in [
            "http://127.0.0.1:9000/mcp",
            "https://example.com",
            "https://example.com/mcp?x=1",
            "http://[::1]:80/",
            "HTTPS://Example.com/",
        ] {
            assert_eq!(url(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "no URL"),
            ("example.com", "no scheme"),
            ("/mcp", "no scheme"),
            ("ftp://x/", "use http or https"),
            ("file:///etc/passwd", "no URL"),
            ("http:///mcp", "no URL"),
            ("https://user:hunter2@example.com/", "credentials"),
            ("https://exa mple.com/", "no URL"),
            ("https://example.com/#a", "fragment"),
            ("https://example.com:0/", "port"),
            ("https://example.com:99999/", "port"),
            ("http://a\n/", "no URL"),
        ] {
            let error = url(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
            assert!(!error.contains("hunter2"));
        }
    }

    #[test]
    fn urls_of_a_listener() {
        for (url, listener, is_own) in [
            ("http://127.0.0.1:8080/mcp", "127.0.0.1:8080", true),
            (
                "http://localhost:8080/servers/a/mcp",
                "127.0.0.1:8080",
                true,
            ),
            ("http://LOCALHOST:8080/mcp", "0.0.0.0:8080", true),
            ("http://[::1]:8080/mcp", "[::]:8080", true),
            ("http://10.0.0.7:8080/mcp", "10.0.0.7:8080", true),
            ("https://127.0.0.1/mcp", "127.0.0.1:443", true),
            ("http://127.0.0.1/mcp", "127.0.0.1:443", false),
            ("http://127.0.0.1:8081/mcp", "127.0.0.1:8080", false),
            ("http://127.0.0.2:8080/mcp", "127.0.0.1:8080", false),
            ("http://example.com:8080/mcp", "127.0.0.1:8080", false),
            ("http://10.0.0.7:8080/mcp", "0.0.0.0:8080", false),
        ] {
            let found = url_is_of(url, listener.parse().unwrap());
            assert_eq!(found, is_own, "{url} {listener}");
        }
    }

    #[test]
    fn addresses_hosts_and_origins() {
        for (text, ok) in [
            ("127.0.0.1:0", true),
            ("[::1]:8080", true),
            ("localhost:80", true),
            ("0.0.0.0:80", true),
            (":80", false),
            ("127.0.0.1", false),
            ("example.com:80", false),
            ("localhost:99999", false),
        ] {
            assert_eq!(socket_address(text).is_ok(), ok, "{text}");
        }
        for (text, expected) in [
            ("Weir.Example.com", Some("weir.example.com")),
            ("weir.example.com:8443", Some("weir.example.com:8443")),
            ("[::1]:80", Some("[::1]:80")),
            ("", None),
            ("a b", None),
            ("https://x", None),
            ("x/y", None),
            ("u@x", None),
            ("*.x", None),
            ("x:0", None),
        ] {
            assert_eq!(host(text).ok().as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("https://App.example.com", Some("https://app.example.com")),
            ("http://localhost:3000", Some("http://localhost:3000")),
            ("https://app.example.com/", None),
            ("https://app.example.com/x", None),
            ("app.example.com", None),
            ("null", None),
            ("*", None),
            ("https://*.example.com", None),
        ] {
            assert_eq!(origin(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn headers() {
        assert_eq!(header_name("X-Api-Key").as_deref(), Ok("x-api-key"));
        assert_eq!(header_name("Authorization").as_deref(), Ok("authorization"));
        for bad in [
            "",
            "a b",
            "a:",
            "Host",
            "content-length",
            "Mcp-Session-Id",
            "Transfer-Encoding",
        ] {
            assert!(header_name(bad).is_err(), "{bad}");
        }
        assert!(header_value("Bearer x").is_ok());
        for bad in ["", "a\r\nb", "a\0", "é"] {
            assert!(header_value(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_limit_has_a_range_and_the_defaults_are_in_it() {
        let limits = domain::Limits::default();
        assert_eq!(ranges(&limits), []);
        let schema = schemars::schema_for!(domain::Limits);
        for (name, property) in schema.get("properties").unwrap().as_object().unwrap() {
            let min = property["minimum"].as_u64();
            let max = property["maximum"].as_u64();
            // 0 switches a thing off that need not be there.
            let least = u64::from(!["streamed_bytes_max", "clean_messages_max"].contains(&&**name));
            assert!(
                min.is_some_and(|min| min >= least) && min < max,
                "{name} has no range"
            );
        }
        let over = domain::Limits {
            message_bytes_max: domain::Limits::MESSAGE_BYTES_CEILING + 1,
            ..domain::Limits::default()
        };
        assert_eq!(
            ranges(&over),
            [(
                "message_bytes_max".to_owned(),
                "67108865 is out of range; use 1024 to 67108864".to_owned()
            )]
        );
    }
}
