//! Who is calling: API keys by hash, from `X-API-Key` or `Authorization: Bearer`.

use std::collections::HashMap;
use std::sync::Arc;

use dlp_policy::ToolFilter;
use domain::{KeyHash, ServerId};
use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::gate::Gate;
use crate::shares::ShareLimits;

/// Longest key that is looked at, in bytes.
const KEY_BYTES_MAX: usize = 512;

/// Who a credential names.
#[derive(Debug)]
pub struct Principal {
    /// Tenant and key id: what sessions are bound to.
    pub owner: Arc<str>,
    /// The key it came with; absent where none is asked for.
    pub key: Option<KeyHash>,
    /// The key's id, for logs and audit records.
    pub key_id: Arc<str>,
    /// The tenant; absent for the local principal of `weir proxy`, who may reach every server.
    pub tenant: Option<Arc<str>>,
    /// Servers it may reach; empty: all of the tenant's.
    pub servers: Vec<ServerId>,
    /// Tools it may call.
    pub tools: ToolFilter,
    /// Its call limits.
    pub gate: Arc<Gate>,
}

impl Principal {
    /// How many it may have of what all principals share. Where everybody is this one there is nobody to leave any to.
    pub fn share(&self, all_max: usize, share_max: usize) -> ShareLimits {
        let share_max = match self.tenant {
            Some(_) => share_max,
            None => all_max,
        };
        ShareLimits { all_max, share_max }
    }

    /// Whether it may reach a server of this tenant.
    pub fn may_reach(&self, server: &str, tenant: &str) -> bool {
        let own = self.tenant.as_deref().is_none_or(|own| own == tenant);
        own && (self.servers.is_empty() || self.servers.iter().any(|s| s.as_str() == server))
    }
}

/// All keys of a snapshot.
#[derive(Debug, Default)]
pub struct Keys {
    by_hash: HashMap<KeyHash, Arc<Principal>>,
    open: Option<Arc<Principal>>,
}

/// The credentials are missing or not ours. Which of the two is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unauthenticated;

impl Keys {
    /// Adds a key.
    pub fn add(&mut self, hash: KeyHash, principal: Arc<Principal>) {
        self.by_hash.insert(hash, principal);
    }

    /// Lets everyone in as this principal.
    pub fn open_to_all(&mut self, principal: Arc<Principal>) {
        self.open = Some(principal);
    }

    /// The principal that everyone is, where no key is asked for.
    pub fn open(&self) -> Option<&Arc<Principal>> {
        self.open.as_ref()
    }

    /// The principal of a stored hash.
    pub fn by_hash(&self, hash: &KeyHash) -> Option<&Arc<Principal>> {
        self.by_hash.get(hash)
    }

    /// Who that principal is now; `None`: its key is gone, or another one has its name.
    pub fn still(&self, principal: &Principal) -> Option<&Arc<Principal>> {
        let now = match (&self.open, &principal.key) {
            (Some(open), _) => open,
            (None, key) => self.by_hash.get(key.as_ref()?)?,
        };
        (now.owner == principal.owner).then_some(now)
    }

    /// Who sent these headers.
    ///
    /// # Errors
    /// No key, an unknown one, or several.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Unauthenticated> {
        if let Some(open) = &self.open {
            return Ok(Arc::clone(open));
        }
        let key = presented_key(headers).ok_or(Unauthenticated)?;
        // A look-up by SHA-256 tells nothing about other keys by its timing: who can steer the
        // digest's bytes already has the key.
        self.by_hash
            .get(&hash_key(key))
            .cloned()
            .ok_or(Unauthenticated)
    }
}

/// What is stored in place of a key: its SHA-256. A key carries enough random bits that nothing
/// slower is needed.
pub fn hash_key(key: &str) -> KeyHash {
    KeyHash(Sha256::digest(key.as_bytes()).into())
}

fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let mut own = headers.get_all("x-api-key").iter();
    let mut bearer = headers.get_all(http::header::AUTHORIZATION).iter();
    let key = match (own.next(), bearer.next()) {
        (Some(key), None) => key.to_str().ok()?,
        (None, Some(value)) => bearer_token(value.to_str().ok()?)?,
        // Both: clients that send a stale bearer beside the key are common; the key decides.
        (Some(key), Some(_)) => key.to_str().ok()?,
        (None, None) => return None,
    };
    let alone = own.next().is_none() && bearer.next().is_none();
    let key = key.trim();
    (alone && !key.is_empty() && key.len() <= KEY_BYTES_MAX).then_some(key)
}

fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::CallLimits;

    fn principal(tenant: Option<&str>, servers: &[&str]) -> Principal {
        Principal {
            owner: "t/k".into(),
            key: None,
            key_id: "k".into(),
            tenant: tenant.map(Into::into),
            servers: servers
                .iter()
                .map(|s| ServerId::parse(s).unwrap())
                .collect(),
            tools: ToolFilter::default(),
            gate: Gate::new(&CallLimits::default()),
        }
    }

    #[test]
    fn a_key_is_taken_from_either_header_but_only_once() {
        let mut keys = Keys::default();
        keys.add(hash_key("k1"), Arc::new(principal(Some("t"), &[])));
        let cases: [(&[(&str, &str)], bool); 10] = [
            (&[("x-api-key", "k1")], true),
            (&[("authorization", "Bearer k1")], true),
            (&[("authorization", "bearer  k1 ")], true),
            (
                &[("x-api-key", "k1"), ("authorization", "Bearer other")],
                true,
            ),
            (&[("x-api-key", "k2")], false),
            (&[("x-api-key", "")], false),
            (&[("authorization", "Basic k1")], false),
            (&[("authorization", "k1")], false),
            (&[("x-api-key", "k1"), ("x-api-key", "k1")], false),
            (&[], false),
        ];
        for (headers, ok) in cases {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(
                    http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    value.parse().unwrap(),
                );
            }
            assert_eq!(keys.authenticate(&map).is_ok(), ok, "{headers:?}");
        }
    }

    #[test]
    fn reach_is_tenant_first_then_the_list() {
        assert!(principal(Some("t"), &[]).may_reach("s", "t"));
        assert!(!principal(Some("t"), &[]).may_reach("s", "u"));
        assert!(!principal(Some("t"), &["a"]).may_reach("s", "t"));
        assert!(!principal(Some("t"), &["s"]).may_reach("s", "u"));
        assert!(principal(None, &[]).may_reach("s", "u"));
    }
}
