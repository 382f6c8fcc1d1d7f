//! Host, Origin and CORS: who may talk to this listener at all, before anything is read.
//!
//! A page in a browser can reach loopback; what gives it away is its `Host` (DNS rebinding) or its
//! `Origin`. Both are checked on every request of every listener.

use std::net::IpAddr;

use http::HeaderMap;

/// What a listener answers to.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    bound: Option<IpAddr>,
    hosts: Vec<Box<str>>,
    origins: Vec<Box<str>>,
    loopback: bool,
    any_address: bool,
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// `Host` is missing, doubled, or names somebody else. HTTP 421.
    Host,
    /// `Origin` is not among the configured ones. HTTP 403.
    Origin,
}

impl Guard {
    /// A guard for a listener bound to `bound`, with further host names and browser origins.
    pub fn new(bound: IpAddr, hosts: &[String], origins: &[String]) -> Self {
        let lower = |list: &[String]| list.iter().map(|s| s.to_ascii_lowercase().into()).collect();
        let mut hosts: Vec<Box<str>> = lower(hosts);
        if !bound.is_unspecified() {
            hosts.push(bound.to_string().into());
        }
        Self {
            bound: Some(bound),
            hosts,
            origins: lower(origins),
            loopback: bound.is_loopback(),
            any_address: bound.is_unspecified(),
        }
    }

    /// The same listener with other names and origins.
    pub fn with(&self, hosts: &[String], origins: &[String]) -> Self {
        self.bound
            .map_or_else(|| self.clone(), |bound| Self::new(bound, hosts, origins))
    }

    /// Checks a request.
    ///
    /// # Errors
    /// Which of the two headers is not acceptable.
    pub fn admit(&self, authority: Option<&str>, headers: &HeaderMap) -> Result<(), Denied> {
        let mut named = headers.get_all(http::header::HOST).iter();
        let host = match (authority, named.next()) {
            (Some(authority), None) => authority,
            (None, Some(host)) => host.to_str().map_err(|_| Denied::Host)?,
            // An absolute-form target or :authority must agree with Host.
            (Some(authority), Some(host)) if host.as_bytes() == authority.as_bytes() => authority,
            _ => return Err(Denied::Host),
        };
        if named.next().is_some() || !self.answers_to(host) {
            return Err(Denied::Host);
        }
        self.origin(headers).map(|_| ())
    }

    /// The origin of the request if it is a browser's and allowed.
    ///
    /// # Errors
    /// It is not allowed.
    pub fn origin<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h str>, Denied> {
        let mut all = headers.get_all(http::header::ORIGIN).iter();
        let Some(origin) = all.next() else {
            return Ok(None);
        };
        let origin = origin.to_str().map_err(|_| Denied::Origin)?;
        let known = self.origins.iter().any(|o| **o == *origin) || self.is_of_this_machine(origin);
        if all.next().is_some() || !known {
            Err(Denied::Origin)
        } else {
            Ok(Some(origin))
        }
    }

    /// Tools on the same machine (Inspector among them) have a loopback page of their own, on whatever port. Whoever names
    /// origins means those and no others.
    fn is_of_this_machine(&self, origin: &str) -> bool {
        let host = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        self.loopback
            && self.origins.is_empty()
            && host.and_then(host_part).is_some_and(is_loopback_name)
    }

    fn answers_to(&self, host: &str) -> bool {
        let Some(name) = host_part(host) else {
            return false;
        };
        let lower = name.to_ascii_lowercase();
        if self
            .hosts
            .iter()
            .any(|h| **h == *lower || **h == *host.to_ascii_lowercase())
        {
            return true;
        }
        if self.loopback || self.any_address {
            // An address in `Host` cannot be the fruit of rebinding, which needs a name.
            return is_loopback_name(name)
                || (self.any_address && bare(name).parse::<IpAddr>().is_ok());
        }
        false
    }
}

/// The host of `host[:port]`, brackets kept; nothing where anything else stands behind it.
fn host_part(host: &str) -> Option<&str> {
    let end = match host.strip_prefix('[') {
        Some(inner) => inner.find(']')? + 2,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, rest) = host.split_at(end);
    let port = |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(port)).then_some(name)
}

fn bare(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|n| n.strip_suffix(']'))
        .unwrap_or(name)
}

fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || bare(name)
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(guard: &Guard, host: &[&str], origin: &[&str]) -> Result<(), Denied> {
        let mut headers = HeaderMap::new();
        for h in host {
            headers.append("host", h.parse().unwrap());
        }
        for o in origin {
            headers.append("origin", o.parse().unwrap());
        }
        guard.admit(None, &headers)
    }

    #[test]
    fn a_loopback_listener_answers_loopback_names_only() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), &["weir.test".into()], &[]);
        for good in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8080",
            "weir.test:80",
        ] {
            assert_eq!(admit(&guard, &[good], &[]), Ok(()), "{good}");
        }
        for bad in [
            "evil.test",
            "127.0.0.1.evil.test",
            "localhost.evil.test",
            "",
            "10.0.0.1",
        ] {
            assert_eq!(admit(&guard, &[bad], &[]), Err(Denied::Host), "{bad}");
        }
        assert_eq!(admit(&guard, &[], &[]), Err(Denied::Host));
        assert_eq!(
            admit(&guard, &["localhost", "localhost"], &[]),
            Err(Denied::Host)
        );
    }

    #[test]
    fn origins_are_compared_whole() {
        let origins = ["https://app.test".to_owned()];
        let guard = Guard::new("10.1.2.3".parse().unwrap(), &[], &origins);
        let host = &["10.1.2.3"];
        assert_eq!(admit(&guard, host, &["https://app.test"]), Ok(()));
        for bad in [
            "https://app.test.evil",
            "http://app.test",
            "null",
            "http://localhost:1",
        ] {
            assert_eq!(admit(&guard, host, &[bad]), Err(Denied::Origin), "{bad}");
        }
        let local = Guard::new("::1".parse().unwrap(), &[], &[]);
        assert_eq!(
            admit(&local, &["[::1]:9"], &["http://localhost:6274"]),
            Ok(())
        );
        assert_eq!(
            admit(&local, &["[::1]:9"], &["http://evil.test"]),
            Err(Denied::Origin)
        );
    }

    #[test]
    fn pages_of_this_machine_may_call_until_origins_are_named() {
        let host = &["127.0.0.1:8080"];
        let own = ["http://127.0.0.1:8080".to_owned()];
        for (origins, may) in [(&[][..], true), (&own, false)] {
            let guard = Guard::new("127.0.0.1".parse().unwrap(), &[], origins);
            for origin in [
                "http://localhost:9999",
                "https://[::1]",
                "http://127.0.0.1:5000",
            ] {
                assert_eq!(admit(&guard, host, &[origin]).is_ok(), may, "{origin}");
            }
            assert_eq!(admit(&guard, host, &["http://127.0.0.1:8080"]), Ok(()));
            for origin in [
                "http://evil.test",
                "null",
                "http://localhost.evil.test",
                "file://localhost",
            ] {
                assert_eq!(
                    admit(&guard, host, &[origin]),
                    Err(Denied::Origin),
                    "{origin}"
                );
            }
        }
    }

    #[test]
    fn authority_and_host_must_agree() {
        let guard = Guard::new("127.0.0.1".parse().unwrap(), &[], &[]);
        let mut headers = HeaderMap::new();
        assert_eq!(guard.admit(Some("localhost:1"), &headers), Ok(()));
        headers.append("host", "127.0.0.1:1".parse().unwrap());
        assert_eq!(
            guard.admit(Some("localhost:1"), &headers),
            Err(Denied::Host)
        );
    }
}
