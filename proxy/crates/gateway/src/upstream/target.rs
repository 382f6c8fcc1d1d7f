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

    /// The same origin with another path, if `location` stays on it.
    ///
    /// # Errors
    /// It leads to another origin.
    pub fn at(&self, location: &str) -> Result<Self, LinkError> {
        if location.starts_with('/') && !location.starts_with("//") {
            let uri: Uri = location.parse().map_err(|_| LinkError::Url)?;
            let path = uri
                .path_and_query()
                .ok_or(LinkError::Url)?
                .as_str()
                .to_owned();
            return Ok(Self {
                path,
                ..self.clone()
            });
        }
        let other = Self::parse(location, &UpstreamAuth::None)?;
        let same = (&other.host, other.port, other.tls) == (&self.host, self.port, self.tls);
        if same {
            Ok(Self {
                path: other.path,
                ..self.clone()
            })
        } else {
            Err(LinkError::Url)
        }
    }
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
        let t = Target::parse("http://h:1/sse", &UpstreamAuth::None).unwrap();
        assert_eq!(t.at("/message?s=1").unwrap().path, "/message?s=1");
        assert_eq!(t.at("http://h:1/m").unwrap().path, "/m");
        for bad in [
            "//evil/x",
            "http://evil/x",
            "http://h:2/x",
            "https://h:1/x",
            "message",
        ] {
            assert!(t.at(bad).is_err(), "{bad}");
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
