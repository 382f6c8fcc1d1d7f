//! Where an HTTP upstream is, and what Weir shows it as its own credentials.

use std::fmt;

use domain::UpstreamAuth;
use http::{HeaderName, HeaderValue, Uri};

/// Headers that Weir sets itself and that a configured credential may therefore not be.
const RESERVED: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "content-type",
    "accept",
    "accept-encoding",
    "mcp-session-id",
    "mcp-protocol-version",
    "upgrade",
];

/// Why a link cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Not an absolute `http` or `https` URL.
    #[error("the URL must be http://HOST[:PORT]/PATH or https://...")]
    Url,
    /// User and password in the URL end up in logs.
    #[error("the URL must not hold credentials; use auth")]
    CredentialsInUrl,
    /// A header name or value that cannot be sent, or that Weir sets itself.
    #[error("the credential header {0:?} cannot be used")]
    Header(String),
    /// A hosted server, and nobody who runs sandboxes.
    #[error("no runner is configured (hosting.runner)")]
    NoRunner,
}

/// A parsed upstream URL with credentials.
#[derive(Clone)]
pub struct Target {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port, 80 or 443 when not given.
    pub port: u16,
    /// Whether to speak TLS.
    pub tls: bool,
    /// Value of the `Host` header.
    pub authority: HeaderValue,
    /// Path and query.
    pub path: String,
    /// Weir's own credentials.
    pub credentials: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

impl Target {
    /// Parses a URL.
    ///
    /// # Errors
    /// What about it cannot be used.
    pub fn parse(url: &str, auth: &UpstreamAuth) -> Result<Self, LinkError> {
        let uri: Uri = url.parse().map_err(|_| LinkError::Url)?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(LinkError::Url),
        };
        let authority = uri.authority().ok_or(LinkError::Url)?;
        if authority.as_str().contains('@') {
            return Err(LinkError::CredentialsInUrl);
        }
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        Ok(Self {
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            tls,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| LinkError::Url)?,
            path: uri.path_and_query().map_or("/", |p| p.as_str()).to_owned(),
            credentials: credentials(auth)?,
        })
    }

    /// Where a reference leads that is read at this place (RFC 3986, section 5.2), if that is on the same origin.
    ///
    /// # Errors
    /// It is no reference to a URI, or it leads to another origin.
    pub fn at(&self, reference: &str) -> Result<Self, ReferenceError> {
        let other = self.resolved(reference)?;
        let same = (other.port, other.tls) == (self.port, self.tls)
            && other.host.eq_ignore_ascii_case(&self.host);
        let path = same.then_some(other.path);
        let path = path.ok_or(ReferenceError::OtherOrigin)?;
        Ok(Self {
            path,
            ..self.clone()
        })
    }

    /// Where a reference leads, in words for the log: what differs from here, and no text of the server's, which may be a
    /// secret. None where it is no reference to HTTP.
    pub fn leads_to(&self, reference: &str) -> Option<String> {
        let target = self.resolved(reference).ok()?;
        if !target.host.eq_ignore_ascii_case(&self.host) {
            return Some("another host".into());
        }
        let (own, other) = (path_of(&self.path), path_of(&target.path));
        let bare = |path: &str| path.strip_suffix('/').unwrap_or(path).to_owned();
        let origin = Self {
            host: self.host.clone(),
            ..target.clone()
        };
        Some(match bare(own) == bare(other) {
            true => format!("{origin:?}{other}"),
            false => format!("{origin:?}, another path"),
        })
    }

    fn resolved(&self, reference: &str) -> Result<Self, ReferenceError> {
        let (reference, _fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if reference.is_empty() || !reference.bytes().all(is_uri_byte) {
            return Err(ReferenceError::NoUri);
        }
        let path = match Leads::of(reference) {
            Leads::Away => return Self::elsewhere(reference),
            Leads::ToHost => {
                let scheme = if self.tls { "https" } else { "http" };
                return Self::elsewhere(&format!("{scheme}:{reference}"));
            }
            Leads::ToPath => reference.to_owned(),
            Leads::ToQuery => format!("{}{reference}", path_of(&self.path)),
            Leads::Beside => {
                let path = path_of(&self.path);
                let folder = path.rfind('/').map_or("/", |end| &path[..=end]);
                format!("{folder}{reference}")
            }
        };
        self.with_path(&path)
    }

    /// What a URL names; without credentials of ours.
    fn elsewhere(url: &str) -> Result<Self, ReferenceError> {
        let target = Self::parse(url, &UpstreamAuth::None).map_err(|error| match error {
            LinkError::CredentialsInUrl => ReferenceError::Credentials,
            _ if url.parse::<Uri>().is_ok() => ReferenceError::OtherOrigin,
            _ => ReferenceError::NoUri,
        })?;
        target.with_path(&target.path)
    }

    fn with_path(&self, path_and_query: &str) -> Result<Self, ReferenceError> {
        let path = without_dots(path_and_query);
        let uri: Uri = path.parse().map_err(|_| ReferenceError::NoUri)?;
        let path = uri.path_and_query().ok_or(ReferenceError::NoUri)?;
        Ok(Self {
            path: path.as_str().to_owned(),
            ..self.clone()
        })
    }
}

/// Why a reference is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceError {
    /// It is none.
    NoUri,
    /// It leads to another origin.
    OtherOrigin,
    /// It holds user and password.
    Credentials,
}

/// What a reference says, and what it takes from where it is read.
enum Leads {
    /// A URL of its own.
    Away,
    /// `//host/path`
    ToHost,
    /// `/path`
    ToPath,
    /// `?query`
    ToQuery,
    /// `path`, from the folder of where it is read.
    Beside,
}

impl Leads {
    fn of(reference: &str) -> Self {
        if reference.starts_with("//") {
            return Self::ToHost;
        }
        // A colon in the first segment ends a scheme.
        let first = reference.split(['/', '?']).next().unwrap_or_default();
        match reference.as_bytes()[0] {
            b'/' => Self::ToPath,
            b'?' => Self::ToQuery,
            _ if first.contains(':') => Self::Away,
            _ => Self::Beside,
        }
    }
}

/// What RFC 3986 has in a URI. What other readers make of anything else (a backslash, a line break) differs.
fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}

fn path_of(path_and_query: &str) -> &str {
    path_and_query.split('?').next().unwrap_or("/")
}

/// A path and query whose path has no `.` and `..` (RFC 3986, section 5.2.4). It goes up no further than to the root.
fn without_dots(path_and_query: &str) -> String {
    let path = path_of(path_and_query);
    let query = &path_and_query[path.len()..];
    let mut kept = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                // It is a folder that it names.
                if is_last {
                    kept.push("");
                }
            }
            name => kept.push(name),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

fn credentials(auth: &UpstreamAuth) -> Result<Vec<(HeaderName, HeaderValue)>, LinkError> {
    let pair = |name: &str, value: String| {
        let bad = || LinkError::Header(name.to_owned());
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(bad());
        }
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        Ok((parsed, value))
    };
    match auth {
        UpstreamAuth::None => Ok(Vec::new()),
        UpstreamAuth::Bearer(token) => Ok(vec![pair(
            "authorization",
            format!("Bearer {}", token.expose()),
        )?]),
        UpstreamAuth::Headers(headers) => headers
            .iter()
            .map(|(name, value)| pair(name, value.expose().to_owned()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Secret;

    #[test]
    fn urls_are_absolute_http_without_credentials() {
        let ok = Target::parse("https://[::1]:8443/a/mcp?x=1", &UpstreamAuth::None).unwrap();
        assert_eq!((ok.host.as_str(), ok.port, ok.tls), ("::1", 8443, true));
        assert_eq!(ok.path, "/a/mcp?x=1");
        assert_eq!(
            Target::parse("http://h", &UpstreamAuth::None).unwrap().port,
            80
        );
        for bad in [
            "",
            "/mcp",
            "ftp://h/",
            "h:80",
            "http:///x",
            "file:///etc/passwd",
        ] {
            assert_eq!(
                Target::parse(bad, &UpstreamAuth::None).unwrap_err(),
                LinkError::Url,
                "{bad}"
            );
        }
        let e = Target::parse("http://u:p@h/", &UpstreamAuth::None).unwrap_err();
        assert_eq!(e, LinkError::CredentialsInUrl);
    }

    #[test]
    fn a_named_endpoint_stays_on_its_origin() {
        let at = |place: &str, reference: &str| {
            let place = Target::parse(place, &UpstreamAuth::None).unwrap();
            place.at(reference).map(|target| target.path)
        };
        for (reference, expected) in [
            ("/message?s=1", "/message?s=1"),
            ("http://h:1/m", "/m"),
            ("http://H:1", "/"),
            ("//h:1/m?x", "/m?x"),
            ("messages/?s=1", "/a/b/messages/?s=1"),
            ("./m?s=1", "/a/b/m?s=1"),
            ("../m?s=1", "/a/m?s=1"),
            ("../../../../m", "/m"),
            ("..", "/a/"),
            (".", "/a/b/"),
            ("c/./d/../e", "/a/b/c/e"),
            ("/x/../y?z=../..", "/y?z=../.."),
            ("?s=1", "/a/b/sse?s=1"),
            ("m?u=http://evil/", "/a/b/m?u=http://evil/"),
            ("m#part", "/a/b/m"),
            ("%2e%2e/m", "/a/b/%2e%2e/m"),
        ] {
            let found = at("http://h:1/a/b/sse?t=/c/d", reference);
            assert_eq!(found.as_deref(), Ok(expected), "{reference}");
        }
        assert_eq!(at("http://h", "m").as_deref(), Ok("/m"));
        assert_eq!(at("https://h/sse", "//h:443/m").as_deref(), Ok("/m"));
        for (reference, expected) in [
            ("//evil/x", ReferenceError::OtherOrigin),
            ("http://evil/x", ReferenceError::OtherOrigin),
            ("http://h:2/x", ReferenceError::OtherOrigin),
            ("https://h:1/x", ReferenceError::OtherOrigin),
            ("ftp://h:1/x", ReferenceError::OtherOrigin),
            ("http://u:p@h:1/x", ReferenceError::Credentials),
            ("//h:1@evil/x", ReferenceError::Credentials),
            ("", ReferenceError::NoUri),
            ("#part", ReferenceError::NoUri),
            ("a b", ReferenceError::NoUri),
            ("/a\tb", ReferenceError::NoUri),
            (r"\\evil\x", ReferenceError::NoUri),
            ("/\u{e9}", ReferenceError::NoUri),
            ("http://", ReferenceError::NoUri),
        ] {
            let found = at("http://h:1/sse", reference);
            assert_eq!(found.as_deref(), Err(&expected), "{reference}");
        }
    }

    #[test]
    fn where_a_redirect_leads_is_said_in_words_of_our_own() {
        let place = Target::parse("http://h:1/mcp?key=k", &UpstreamAuth::None).unwrap();
        for (reference, expected) in [
            ("/mcp/?key=k", Some("http://h:1/mcp/")),
            ("https://H/mcp?key=k#k", Some("https://h:443/mcp")),
            ("/secret", Some("http://h:1, another path")),
            ("https://h:2/secret", Some("https://h:2, another path")),
            ("//secret.example/mcp", Some("another host")),
            ("http://u:p@h:1/x", None),
            ("mailto:a@b", None),
            ("/a b", None),
        ] {
            assert_eq!(
                place.leads_to(reference).as_deref(),
                expected,
                "{reference}"
            );
        }
    }

    #[test]
    fn credentials_are_not_printed_and_cannot_take_our_headers() {
        let t = Target::parse("http://h/", &UpstreamAuth::Bearer(Secret::new("tok"))).unwrap();
        assert!(!format!("{t:?} {:?}", t.credentials).contains("tok"));
        for name in ["host", "Content-Length", "bad name"] {
            let auth = UpstreamAuth::Headers(vec![(name.into(), Secret::new("v"))]);
            assert!(Target::parse("http://h/", &auth).is_err(), "{name}");
        }
    }
}
