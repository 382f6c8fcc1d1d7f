//! The vault itself.

use std::collections::BTreeMap;
use std::io;

use domain::{SECRETS_PER_SERVER_MAX, ServerId, TenantId};
use serde::de::DeserializeOwned;

use crate::disk::Disk;
use crate::error::VaultError;
use crate::files::Files;
use crate::record::{SECRET_PREFIX, SecretFile, TENANT_PREFIX, TenantFile};
use crate::root::{Kdf, RootKey, Roots};
use crate::seal::Key;
use crate::value::{SecretName, SecretValue};

const KDF_FILE: &str = "kdf";

/// Whose secrets.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    /// The tenant.
    pub tenant: TenantId,
    /// The server.
    pub server: ServerId,
}

/// What may be known of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretInfo {
    /// Its name.
    pub name: SecretName,
    /// From 1; one more for each new value, and from 1 again for one that was removed meanwhile.
    pub version: u32,
    /// Never the same for two values, whatever their versions. Sealed again ([`Vault::rotate_data_keys`]), the same value has
    /// another one.
    pub seal_id: String,
    /// When this version was set, in milliseconds since 1970.
    pub set_at_ms: u64,
}

/// One access, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Whose.
    pub scope: Scope,
    /// Which secret.
    pub name: SecretName,
    /// The version that was read, written or removed.
    pub version: u32,
    /// What was done.
    pub kind: AccessKind,
}

/// What is done with a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessKind {
    /// A new value.
    Set,
    /// Given to a sandbox.
    Mount {
        /// Which one.
        sandbox: String,
    },
    /// Opened to make fingerprints of it, which go to whoever looks for it in traffic.
    Fingerprint,
    /// Removed.
    Remove,
    /// Sealed by other keys.
    Reseal,
}

/// Where accesses are recorded. It is asked first: what cannot be recorded does not happen.
pub trait AccessLog {
    /// Records accesses that are about to happen together: of one kind, to secrets of one server.
    ///
    /// # Errors
    /// Then they are refused, all of them.
    fn record(&mut self, accesses: &[Access]) -> io::Result<()>;
}

/// All secrets of all servers.
pub struct Vault<D, L> {
    files: Files<D>,
    roots: Roots,
    log: L,
    tenants: BTreeMap<TenantId, TenantFile>,
    secrets: BTreeMap<(Scope, SecretName), SecretFile>,
}

impl<D: Disk, L: AccessLog> Vault<D, L> {
    /// Opens a vault, or begins one on an empty disk.
    ///
    /// # Errors
    /// Damaged files, another root key, or the system's errors. Nothing is used of a vault that is not whole.
    pub fn open(disk: D, roots: Roots, log: L) -> Result<Self, VaultError> {
        let files = Files::open(disk)?;
        Self::load(files, roots, log)
    }

    /// As [`Vault::open`], with a passphrase; the salt is kept beside the secrets.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn open_with_passphrase(
        disk: D,
        current: &str,
        previous: Option<&str>,
        log: L,
    ) -> Result<Self, VaultError> {
        let mut files = Files::open(disk)?;
        let kdf = if files.list()?.iter().any(|name| name == KDF_FILE) {
            parse(KDF_FILE, &files.read(KDF_FILE)?)?
        } else {
            let kdf = Kdf::new()?;
            files.replace(KDF_FILE, &bytes_of(&kdf))?;
            kdf
        };
        let derive = |phrase| RootKey::from_passphrase(phrase, &kdf);
        let roots = Roots {
            current: derive(current)?,
            previous: previous.map(derive).transpose()?,
        };
        Self::load(files, roots, log)
    }

    fn load(files: Files<D>, roots: Roots, log: L) -> Result<Self, VaultError> {
        let mut vault = Self {
            files,
            roots,
            log,
            tenants: BTreeMap::new(),
            secrets: BTreeMap::new(),
        };
        for name in vault.files.list()? {
            let damaged = |what| VaultError::Damaged {
                file: name.clone(),
                what,
            };
            if name.starts_with(TENANT_PREFIX) {
                let file: TenantFile = parse(&name, &vault.files.read(&name)?)?;
                if name != TenantFile::file_name(&file.tenant) {
                    return Err(damaged("it belongs under another name"));
                }
                // A wrong root key is found now, and not when a sandbox waits.
                file.key(file.active, &vault.roots)?;
                vault.tenants.insert(file.tenant.clone(), file);
            } else if name.starts_with(SECRET_PREFIX) {
                let file: SecretFile = parse(&name, &vault.files.read(&name)?)?;
                if name != file.own_file_name() {
                    return Err(damaged("it belongs under another name"));
                }
                vault
                    .secrets
                    .insert((file.scope(), file.name.clone()), file);
            }
        }
        for secret in vault.secrets.values() {
            vault.tenant(&secret.tenant)?;
        }
        Ok(vault)
    }

    /// Stores a value, as a new version if there is one of this name; gives the version. `now_ms` is the time in
    /// milliseconds since 1970.
    ///
    /// # Errors
    /// See [`VaultError`]. After an error of the disk the old value or the new one is there.
    pub fn set(
        &mut self,
        scope: &Scope,
        name: &SecretName,
        value: &SecretValue,
        now_ms: u64,
    ) -> Result<u32, VaultError> {
        let at = (scope.clone(), name.clone());
        let version = match self.secrets.get(&at) {
            Some(old) => old.version.saturating_add(1),
            None if self.of(scope).count() >= SECRETS_PER_SERVER_MAX => {
                return Err(VaultError::TooMany {
                    max: SECRETS_PER_SERVER_MAX,
                });
            }
            None => 1,
        };
        self.record(scope, name, version, AccessKind::Set)?;
        self.ensure_tenant(&scope.tenant)?;
        let (active, key) = self.active_key(&scope.tenant)?;
        let file = SecretFile::seal(scope, name, version, now_ms, value, (active, &key))?;
        self.store(file)?;
        Ok(version)
    }

    /// What there is, without values.
    pub fn list(&self, scope: &Scope) -> Vec<SecretInfo> {
        let info = |file: &SecretFile| SecretInfo {
            name: file.name.clone(),
            version: file.version,
            seal_id: file.seal_id().to_owned(),
            set_at_ms: file.set_at_ms,
        };
        self.of(scope).map(info).collect()
    }

    /// Removes a secret.
    ///
    /// # Errors
    /// [`VaultError::Unknown`] if there is none of this name, and the disk's.
    pub fn remove(&mut self, scope: &Scope, name: &SecretName) -> Result<(), VaultError> {
        let at = (scope.clone(), name.clone());
        let version = self.secrets.get(&at).ok_or(VaultError::Unknown)?.version;
        self.record(scope, name, version, AccessKind::Remove)?;
        self.files.remove(&SecretFile::file_name(scope, name))?;
        self.secrets.remove(&at);
        Ok(())
    }

    /// Removes all secrets of a server.
    ///
    /// # Errors
    /// The first that failed; the rest is there still.
    pub fn remove_server(&mut self, scope: &Scope) -> Result<(), VaultError> {
        let names: Vec<SecretName> = self.of(scope).map(|file| file.name.clone()).collect();
        names.iter().try_for_each(|name| self.remove(scope, name))
    }

    /// Gives the values of these secrets of a server, for the tmpfs of this sandbox of it.
    ///
    /// # Errors
    /// If one is not there, cannot be opened, or its access cannot be recorded, none is given.
    pub fn mount(
        &mut self,
        scope: &Scope,
        names: &[SecretName],
        sandbox: &str,
    ) -> Result<Vec<(SecretName, SecretValue)>, VaultError> {
        let kind = AccessKind::Mount {
            sandbox: sandbox.to_owned(),
        };
        self.open_values(scope, names, &kind)
    }

    /// Gives all values of a server to whoever makes fingerprints of them, and of nothing else.
    ///
    /// # Errors
    /// As [`Vault::mount`].
    pub fn fingerprint(
        &mut self,
        scope: &Scope,
    ) -> Result<Vec<(SecretName, SecretValue)>, VaultError> {
        let names: Vec<SecretName> = self.of(scope).map(|file| file.name.clone()).collect();
        self.open_values(scope, &names, &AccessKind::Fingerprint)
    }

    fn open_values(
        &mut self,
        scope: &Scope,
        names: &[SecretName],
        kind: &AccessKind,
    ) -> Result<Vec<(SecretName, SecretValue)>, VaultError> {
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            let at = (scope.clone(), name.clone());
            files.push(self.secrets.get(&at).ok_or(VaultError::Unknown)?);
        }
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let access = |file: &&SecretFile| Access {
            scope: scope.clone(),
            name: file.name.clone(),
            version: file.version,
            kind: kind.clone(),
        };
        let accesses: Vec<Access> = files.iter().map(access).collect();
        self.log
            .record(&accesses)
            .map_err(VaultError::NotRecorded)?;
        let open = |file: &SecretFile| -> Result<_, VaultError> {
            let tenant = self.tenant(&scope.tenant)?;
            let key = tenant.key(file.tenant_key, &self.roots)?;
            Ok((file.name.clone(), file.open(&key)?))
        };
        files.into_iter().map(open).collect()
    }

    /// Seals every value of a server again, under fresh data keys. Cut off, it can be called again.
    ///
    /// # Errors
    /// See [`VaultError`].
    pub fn rotate_data_keys(&mut self, scope: &Scope) -> Result<(), VaultError> {
        let files: Vec<SecretFile> = self.of(scope).cloned().collect();
        for old in files {
            self.record(scope, &old.name, old.version, AccessKind::Reseal)?;
            let key = self
                .tenant(&scope.tenant)?
                .key(old.tenant_key, &self.roots)?;
            let value = old.open(&key)?;
            let (active, key) = self.active_key(&scope.tenant)?;
            let file = SecretFile::seal(
                scope,
                &old.name,
                old.version,
                old.set_at_ms,
                &value,
                (active, &key),
            )?;
            self.store(file)?;
        }
        Ok(())
    }

    /// Gives a tenant a new key and seals its data keys by it; then the old key is forgotten. Values are not opened.
    ///
    /// # Errors
    /// See [`VaultError`]. Cut off, [`Vault::resume`] finishes it.
    pub fn rotate_tenant_key(&mut self, tenant: &TenantId) -> Result<(), VaultError> {
        self.finish_tenant(tenant)?;
        let mut file = self.tenant(tenant)?.clone();
        file.add_key(&self.roots)?;
        self.store_tenant(file)?;
        self.finish_tenant(tenant)
    }

    /// Seals every tenant key by the current root key. Afterwards the previous one is not needed any more.
    ///
    /// # Errors
    /// See [`VaultError`]. Cut off, it can be called again.
    pub fn rotate_root(&mut self) -> Result<(), VaultError> {
        let tenants: Vec<TenantFile> = self.tenants.values().cloned().collect();
        for mut file in tenants {
            if file.reseal(&self.roots)? {
                self.store_tenant(file)?;
            }
        }
        Ok(())
    }

    /// Finishes rotations that were cut off: to be called after opening.
    ///
    /// # Errors
    /// See [`VaultError`].
    pub fn resume(&mut self) -> Result<(), VaultError> {
        let tenants: Vec<TenantId> = self.tenants.keys().cloned().collect();
        tenants
            .iter()
            .try_for_each(|tenant| self.finish_tenant(tenant))?;
        self.rotate_root()
    }

    fn finish_tenant(&mut self, tenant: &TenantId) -> Result<(), VaultError> {
        let Some(mut file) = self
            .tenants
            .get(tenant)
            .filter(|file| file.keys.len() > 1)
            .cloned()
        else {
            return Ok(());
        };
        let new = file.key(file.active, &self.roots)?;
        let ours =
            |secret: &&SecretFile| secret.tenant == *tenant && secret.tenant_key != file.active;
        let old: Vec<SecretFile> = self.secrets.values().filter(ours).cloned().collect();
        for secret in old {
            self.record(
                &secret.scope(),
                &secret.name,
                secret.version,
                AccessKind::Reseal,
            )?;
            let key = file.key(secret.tenant_key, &self.roots)?;
            self.store(secret.rewrap(&key, (file.active, &new))?)?;
        }
        file.keys.retain(|key| key.number == file.active);
        self.store_tenant(file)
    }

    fn of<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = &'a SecretFile> {
        self.secrets
            .iter()
            .filter(move |((at, _), _)| at == scope)
            .map(|(_, file)| file)
    }

    fn tenant(&self, tenant: &TenantId) -> Result<&TenantFile, VaultError> {
        let missing = || VaultError::Damaged {
            file: TenantFile::file_name(tenant),
            what: "it is missing",
        };
        self.tenants.get(tenant).ok_or_else(missing)
    }

    fn active_key(&self, tenant: &TenantId) -> Result<(u32, Key), VaultError> {
        let file = self.tenant(tenant)?;
        Ok((file.active, file.key(file.active, &self.roots)?))
    }

    /// Makes the tenant's first key when it has none.
    fn ensure_tenant(&mut self, tenant: &TenantId) -> Result<(), VaultError> {
        if self.tenants.contains_key(tenant) {
            return Ok(());
        }
        let file = TenantFile::new(tenant, &self.roots)?;
        self.store_tenant(file)
    }

    fn store_tenant(&mut self, file: TenantFile) -> Result<(), VaultError> {
        self.files
            .replace(&TenantFile::file_name(&file.tenant), &bytes_of(&file))?;
        self.tenants.insert(file.tenant.clone(), file);
        Ok(())
    }

    fn store(&mut self, file: SecretFile) -> Result<(), VaultError> {
        self.files
            .replace(&file.own_file_name(), &bytes_of(&file))?;
        self.secrets.insert((file.scope(), file.name.clone()), file);
        Ok(())
    }

    fn record(
        &mut self,
        scope: &Scope,
        name: &SecretName,
        version: u32,
        kind: AccessKind,
    ) -> Result<(), VaultError> {
        let access = Access {
            scope: scope.clone(),
            name: name.clone(),
            version,
            kind,
        };
        self.log.record(&[access]).map_err(VaultError::NotRecorded)
    }
}

fn parse<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, VaultError> {
    let what = "it is not what the vault writes";
    serde_json::from_slice(bytes).map_err(|_| VaultError::Damaged {
        file: name.to_owned(),
        what,
    })
}

fn bytes_of<T: serde::Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs of text and numbers are JSON")
}
