//! Who may use the admin API: whoever holds the token, from a place that is meant.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use domain::Secret;
use http::HeaderMap;
use http::HeaderValue;
use http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::ControlError;

/// SHA-256 of the admin token, which carries at least 128 random bits.
#[derive(Clone)]
pub struct AdminToken([u8; 32]);

impl AdminToken {
    /// Takes the token.
    pub fn new(token: &Secret) -> Self {
        Self(Sha256::digest(token.expose().as_bytes()).into())
    }

    fn fits(&self, shown: &str) -> bool {
        let shown: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        self.0.ct_eq(&shown).into()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken(***)")
    }
}

/// What requests are checked against.
#[derive(Debug, Clone)]
pub struct Door {
    token: AdminToken,
    hosts: Arc<[String]>,
}

impl Door {
    /// `names` are further host names, without a port, beside those of loopback and the address itself.
    pub fn new(token: AdminToken, address: SocketAddr, names: &[String]) -> Self {
        let port = address.port();
        let loopback = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
        let own = match address {
            SocketAddr::V4(v4) => v4.ip().to_string(),
            SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
        };
        let all = loopback
            .into_iter()
            .chain([own])
            .chain(names.iter().map(|n| n.to_ascii_lowercase()));
        let hosts = all
            .flat_map(|name| [format!("{name}:{port}"), name])
            .collect();
        Self { token, hosts }
    }

    fn check(&self, headers: &HeaderMap) -> Result<(), ControlError> {
        // A name that is not ours leads here by DNS rebinding: a page of another site, in a browser of ours.
        let host = one(headers, &HOST)
            .filter(|h| self.hosts.iter().any(|known| known.eq_ignore_ascii_case(h)));
        let host = host.ok_or(ControlError::Forbidden(
            "the Host header names another host",
        ))?;
        if headers.contains_key(ORIGIN) {
            let same = |origin: &str| {
                let rest = origin
                    .strip_prefix("http://")
                    .or_else(|| origin.strip_prefix("https://"));
                rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
            };
            if !one(headers, &ORIGIN).is_some_and(same) {
                return Err(ControlError::Forbidden(
                    "the Origin header names another site",
                ));
            }
        }
        // The scheme's name is in either case (RFC 9110 section 11.1).
        let shown = one(headers, &AUTHORIZATION)
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token);
        if shown.is_some_and(|token| self.token.fits(token)) {
            Ok(())
        } else {
            Err(ControlError::Unauthorized)
        }
    }
}

/// The one value of a header; none if there are two.
fn one<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// The middleware before every route.
pub async fn guard(
    State(door): State<Door>,
    request: Request,
    next: Next,
) -> Result<Response, ControlError> {
    door.check(request.headers())?;
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(headers: &[(&'static str, &str)]) -> &'static str {
        let address = "127.0.0.1:8090".parse().expect("an address");
        let door = Door::new(
            AdminToken::new(&Secret::new("token")),
            address,
            &["weir.example".to_owned()],
        );
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        match door.check(&map) {
            Ok(()) => "in",
            Err(ControlError::Unauthorized) => "token",
            Err(_) => "place",
        }
    }

    #[test]
    fn only_with_the_token_and_from_where_it_is_meant() {
        let (host, token) = (
            ("host", "127.0.0.1:8090"),
            ("authorization", "Bearer token"),
        );
        for (headers, wanted) in [
            (&[host, token][..], "in"),
            (&[("host", "localhost:8090"), token], "in"),
            (&[("host", "Weir.Example"), token], "in"),
            (&[host, token, ("origin", "http://127.0.0.1:8090")], "in"),
            (&[host], "token"),
            (&[host, ("authorization", "Bearer tokem")], "token"),
            (&[host, ("authorization", "Bearer ")], "token"),
            (&[host, ("authorization", "token")], "token"),
            (&[host, token, token], "token"),
            (&[host, ("x-api-key", "token")], "token"),
            (&[token], "place"),
            (&[("host", "evil.example:8090"), token], "place"),
            (&[("host", "127.0.0.1:8091"), token], "place"),
            (&[("host", "127.0.0.1.evil.example"), token], "place"),
            (&[host, host, token], "place"),
            (&[host, token, ("origin", "https://evil.example")], "place"),
            (&[host, token, ("origin", "null")], "place"),
            (&[host, token, ("origin", "http://localhost:8090")], "place"),
            (
                &[
                    host,
                    token,
                    ("origin", "http://127.0.0.1:8090"),
                    ("origin", "http://evil.example"),
                ],
                "place",
            ),
        ] {
            assert_eq!(check(headers), wanted, "{headers:?}");
        }
    }
}
