//! What stands in the vault's files.

use domain::{ServerId, TenantId};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::VaultError;
use crate::root::Roots;
use crate::seal::{Context, Key, Sealed};
use crate::value::{SecretName, SecretValue};
use crate::vault::Scope;

/// Names of tenant files and of secret files begin so; the rest is a hash, since ids are not for file names.
pub const TENANT_PREFIX: &str = "tenant-";
pub const SECRET_PREFIX: &str = "secret-";

/// A tenant's keys. More than one while a rotation is under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantFile {
    pub tenant: TenantId,
    /// The number of the key that seals from now on; the highest there is.
    pub active: u32,
    pub keys: Vec<TenantKey>,
}

/// One key of a tenant, sealed by a root key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantKey {
    pub number: u32,
    /// Fingerprint of the root key.
    pub root: String,
    sealed: Sealed,
}

impl TenantFile {
    pub fn file_name(tenant: &TenantId) -> String {
        format!("{TENANT_PREFIX}{}", hash(&[tenant.as_str()]))
    }

    /// A new tenant, with a first key.
    pub fn new(tenant: &TenantId, roots: &Roots) -> Result<Self, VaultError> {
        let mut file = Self {
            tenant: tenant.clone(),
            active: 0,
            keys: Vec::new(),
        };
        file.add_key(roots)?;
        Ok(file)
    }

    /// Adds a key, which seals from now on.
    pub fn add_key(&mut self, roots: &Roots) -> Result<(), VaultError> {
        self.active += 1;
        let key = Key::random()?;
        self.keys
            .push(TenantKey::seal(&key, &self.tenant, self.active, roots)?);
        Ok(())
    }

    /// The key with this number.
    pub fn key(&self, number: u32, roots: &Roots) -> Result<Key, VaultError> {
        let damaged = |what| VaultError::Damaged {
            file: Self::file_name(&self.tenant),
            what,
        };
        let found = self.keys.iter().find(|key| key.number == number);
        let found = found.ok_or(damaged("a tenant key is missing"))?;
        let root = roots.by_id(&found.root)?;
        let context = TenantKey::context(&self.tenant, number, &found.root);
        let opened = root
            .open(&found.sealed, &context)
            .ok_or(damaged("a tenant key does not open"))?;
        let bytes: &[u8; 32] = opened
            .as_slice()
            .try_into()
            .map_err(|_| damaged("a tenant key has another length"))?;
        Ok(Key::from_bytes(bytes))
    }

    /// Seals every key by the current root key again; whether anything changed.
    pub fn reseal(&mut self, roots: &Roots) -> Result<bool, VaultError> {
        let old: Vec<u32> = self
            .keys
            .iter()
            .filter(|k| k.root != roots.current_id())
            .map(|k| k.number)
            .collect();
        for number in &old {
            let key = self.key(*number, roots)?;
            let sealed = TenantKey::seal(&key, &self.tenant, *number, roots)?;
            if let Some(slot) = self.keys.iter_mut().find(|k| k.number == *number) {
                *slot = sealed;
            }
        }
        Ok(!old.is_empty())
    }
}

impl TenantKey {
    fn seal(key: &Key, tenant: &TenantId, number: u32, roots: &Roots) -> Result<Self, VaultError> {
        let root = roots.current_id().to_owned();
        let sealed = roots
            .by_id(&root)?
            .seal(key.bytes(), &Self::context(tenant, number, &root))?;
        Ok(Self {
            number,
            root,
            sealed,
        })
    }

    fn context(tenant: &TenantId, number: u32, root: &str) -> Context {
        Context::new(&[
            b"tenant-key",
            tenant.as_str().as_bytes(),
            &number.to_be_bytes(),
            root.as_bytes(),
        ])
    }
}

/// One secret in its newest version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretFile {
    pub tenant: TenantId,
    pub server: ServerId,
    pub name: SecretName,
    /// From 1; one more for each new value.
    pub version: u32,
    /// When this version was set, in milliseconds since 1970 by the caller's clock.
    pub set_at_ms: u64,
    /// The tenant key that seals the data key.
    pub tenant_key: u32,
    data_key: Sealed,
    value: Sealed,
}

impl SecretFile {
    pub fn file_name(scope: &Scope, name: &SecretName) -> String {
        format!(
            "{SECRET_PREFIX}{}",
            hash(&[scope.tenant.as_str(), scope.server.as_str(), name.as_str()])
        )
    }

    pub fn own_file_name(&self) -> String {
        Self::file_name(&self.scope(), &self.name)
    }

    /// Drawn anew for each value, and when a value is sealed again under another data key.
    pub fn seal_id(&self) -> &str {
        self.value.nonce()
    }

    pub fn scope(&self) -> Scope {
        Scope {
            tenant: self.tenant.clone(),
            server: self.server.clone(),
        }
    }

    /// Seals a value under a fresh data key.
    pub fn seal(
        scope: &Scope,
        name: &SecretName,
        version: u32,
        set_at_ms: u64,
        value: &SecretValue,
        (tenant_key, key): (u32, &Key),
    ) -> Result<Self, VaultError> {
        let about = |level: &'static str| context(level, scope, name, version, tenant_key);
        let data_key = Key::random()?;
        Ok(Self {
            tenant: scope.tenant.clone(),
            server: scope.server.clone(),
            name: name.clone(),
            version,
            set_at_ms,
            tenant_key,
            data_key: key.seal(data_key.bytes(), &about("data-key"))?,
            value: data_key.seal(value.expose(), &context("value", scope, name, version, 0))?,
        })
    }

    pub fn open(&self, tenant_key: &Key) -> Result<SecretValue, VaultError> {
        let data_key = self.data_key(tenant_key)?;
        let about = context("value", &self.scope(), &self.name, self.version, 0);
        let clear = data_key
            .open(&self.value, &about)
            .ok_or_else(|| self.damaged("its value does not open"))?;
        SecretValue::new(clear.to_vec())
            .map_err(|_| self.damaged("its value has an impossible length"))
    }

    /// The same value and data key, sealed by another tenant key.
    pub fn rewrap(&self, old: &Key, (number, new): (u32, &Key)) -> Result<Self, VaultError> {
        let about = context("data-key", &self.scope(), &self.name, self.version, number);
        let data_key = new.seal(self.data_key(old)?.bytes(), &about)?;
        Ok(Self {
            tenant_key: number,
            data_key,
            ..self.clone()
        })
    }

    fn data_key(&self, tenant_key: &Key) -> Result<Key, VaultError> {
        let about = context(
            "data-key",
            &self.scope(),
            &self.name,
            self.version,
            self.tenant_key,
        );
        let opened: Option<Zeroizing<Vec<u8>>> = tenant_key.open(&self.data_key, &about);
        let opened = opened.ok_or_else(|| self.damaged("its data key does not open"))?;
        let bytes: &[u8; 32] = opened
            .as_slice()
            .try_into()
            .map_err(|_| self.damaged("its data key has another length"))?;
        Ok(Key::from_bytes(bytes))
    }

    fn damaged(&self, what: &'static str) -> VaultError {
        VaultError::Damaged {
            file: self.own_file_name(),
            what,
        }
    }
}

fn context(
    level: &str,
    scope: &Scope,
    name: &SecretName,
    version: u32,
    tenant_key: u32,
) -> Context {
    Context::new(&[
        level.as_bytes(),
        scope.tenant.as_str().as_bytes(),
        scope.server.as_str().as_bytes(),
        name.as_str().as_bytes(),
        &version.to_be_bytes(),
        &tenant_key.to_be_bytes(),
    ])
}

fn hash(fields: &[&str]) -> String {
    let bytes = digest(&SHA256, fields.join("\0").as_bytes());
    bytes
        .as_ref()
        .iter()
        .take(20)
        .map(|b| format!("{b:02x}"))
        .collect()
}
