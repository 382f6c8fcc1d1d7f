//! The vault, and every access to it as an event. The only place of the runner that sees a value, and only on its way
//! into a sandbox's tmpfs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use domain::{ServerId, TenantId};
use runner_api::{ApiError, ErrorCode, EventKind, SandboxId};
use secret_prints::{Print, PrintKey, PrintSet, SecretPrints};
use vault::{Access, AccessKind, AccessLog, Dir, RootKey, Roots, Scope, Vault, VaultError};

use crate::events::{Events, now_ms};

/// Shorter lines of a value are not looked for by themselves.
const LOG_LINE_BYTES_MIN: usize = 16;
/// Lines of one value that are.
const LOG_LINES_MAX: usize = 256;
/// The root key, in the state folder, if nobody names another.
const KEY_FILE: &str = "vault.key";

/// Names of secrets, sorted, and what tells each value from any other that the name ever had, also before it was removed.
pub type Versions = Vec<(String, String)>;

/// Where the root key comes from.
#[derive(Debug, Clone, Default)]
pub struct KeySource {
    /// A file with 32 bytes, or their hexadecimal digits or base64. None: `vault.key` in the state folder, made when
    /// it is missing.
    pub file: Option<PathBuf>,
    /// The key that was in use before, while it is being replaced.
    pub previous: Option<PathBuf>,
}

/// All secrets of one runner.
pub struct Secrets {
    vault: Mutex<Vault<Dir, Told>>,
    /// What this process makes fingerprints with for itself.
    key: PrintKey,
}

/// Records accesses as events, before they happen.
struct Told(Events);

impl AccessLog for Told {
    fn record(&mut self, accesses: &[Access]) -> io::Result<()> {
        let [first, ..] = accesses else {
            return Ok(());
        };
        let names: Result<Vec<_>, _> = accesses
            .iter()
            .map(|access| runner_api::SecretName::parse(access.name.as_str()))
            .collect();
        let names = names.map_err(io::Error::other)?;
        let denied = EventKind::SecretDenied {
            name: names
                .iter()
                .map(|n| n.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            reason: "it could not be recorded".to_owned(),
        };
        let name = names[0].clone();
        let Scope { tenant, server } = &first.scope;
        let (sandbox, kind) = match &first.kind {
            AccessKind::Set => (None, EventKind::SecretSet { name }),
            AccessKind::Remove => (None, EventKind::SecretRemoved { name }),
            AccessKind::Mount { sandbox } => (
                SandboxId::parse(sandbox).ok(),
                EventKind::SecretsMounted { names },
            ),
            AccessKind::Fingerprint => (None, EventKind::SecretsFingerprinted { names }),
            AccessKind::Reseal => return Ok(()),
        };
        self.0
            .try_tell(tenant, server, sandbox.as_ref(), kind, denied)
            .map(|_| ())
    }
}

impl Secrets {
    /// Opens the vault. The passphrase or key may also come from the environment: `WEIR_VAULT_PASSPHRASE`,
    /// `WEIR_VAULT_KEY`.
    ///
    /// # Errors
    /// A wrong key or damaged files: nothing is started then.
    pub fn open(state: &Path, source: &KeySource, events: Events) -> Result<Self> {
        let disk = Dir::open(&state.join("vault")).context("open the folder of the vault")?;
        let log = Told(events);
        let mut vault = match std::env::var("WEIR_VAULT_PASSPHRASE") {
            Ok(phrase) => Vault::open_with_passphrase(disk, &phrase, None, log)?,
            Err(_) => {
                let previous = source
                    .previous
                    .as_deref()
                    .map(RootKey::from_file)
                    .transpose()?;
                let rotates = previous.is_some();
                let roots = Roots {
                    current: root(state, source)?,
                    previous,
                };
                let mut vault = Vault::open(disk, roots, log)?;
                if rotates {
                    vault
                        .rotate_root()
                        .context("seal the vault's keys with the new root key")?;
                }
                vault
            }
        };
        vault
            .resume()
            .context("finish a rotation of the vault that was cut off")?;
        Self::of(vault)
    }

    /// An empty vault in this folder, for whoever has nothing to open.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn none(dir: &Path, events: Events) -> Result<Self> {
        let roots = Roots {
            current: RootKey::from_bytes(&random()?),
            previous: None,
        };
        Self::of(Vault::open(Dir::open(dir)?, roots, Told(events))?)
    }

    fn of(vault: Vault<Dir, Told>) -> Result<Self> {
        Ok(Self {
            vault: Mutex::new(vault),
            key: PrintKey::new(random()?),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vault<Dir, Told>> {
        self.vault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a value.
    ///
    /// # Errors
    /// In words for the owner; the value is in none of them.
    pub fn set(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &runner_api::SecretName,
        value: runner_api::SecretValue,
    ) -> Result<(), ApiError> {
        let name = own_name(name)?;
        let value = vault::SecretValue::new(value.expose().to_vec())
            .map_err(|e| ApiError::new(ErrorCode::BadRequest, e.to_string()))?;
        self.lock()
            .set(&scope(tenant, server), &name, &value, now_ms())
            .map(|_| ())
            .map_err(api_error)
    }

    /// Names, sorted.
    pub fn list(&self, tenant: &TenantId, server: &ServerId) -> Vec<runner_api::SecretName> {
        let found = self.lock().list(&scope(tenant, server));
        found
            .iter()
            .filter_map(|info| runner_api::SecretName::parse(info.name.as_str()).ok())
            .collect()
    }

    /// Which values there are.
    pub fn versions(&self, tenant: &TenantId, server: &ServerId) -> Versions {
        versions(&self.lock().list(&scope(tenant, server)))
    }

    /// Removes a value.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn remove(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        name: &runner_api::SecretName,
    ) -> Result<(), ApiError> {
        let name = own_name(name)?;
        self.lock()
            .remove(&scope(tenant, server), &name)
            .map_err(api_error)
    }

    /// Removes all values of a server.
    ///
    /// # Errors
    /// The disk's.
    pub fn remove_server(&self, tenant: &TenantId, server: &ServerId) -> Result<(), ApiError> {
        self.lock()
            .remove_server(&scope(tenant, server))
            .map_err(api_error)
    }

    /// Values for the tmpfs of a sandbox, by name, and which they are.
    ///
    /// # Errors
    /// One cannot be opened or its access not be recorded; then none is given.
    pub fn mount(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        sandbox: &SandboxId,
    ) -> Result<(Versions, Vec<(vault::SecretName, vault::SecretValue)>)> {
        let mut vault = self.lock();
        let scope = scope(tenant, server);
        let found = vault.list(&scope);
        let versions = versions(&found);
        let names: Vec<_> = found.into_iter().map(|info| info.name).collect();
        Ok((versions, vault.mount(&scope, &names, sandbox.as_str())?))
    }

    /// Fingerprints of all values of a server, for whoever looks for them in its traffic.
    ///
    /// # Errors
    /// One cannot be opened, or its access not be recorded.
    pub fn prints(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        key: &PrintKey,
    ) -> Result<BTreeMap<runner_api::SecretName, Vec<Print>>, ApiError> {
        let values = self.lock().fingerprint(&scope(tenant, server));
        let prints = values
            .map_err(api_error)?
            .into_iter()
            .filter_map(|(name, value)| {
                let name = runner_api::SecretName::parse(name.as_str()).ok()?;
                Some((name, key.prints(value.expose())))
            });
        Ok(prints.collect())
    }

    /// What covers these values in a log.
    pub fn cover(&self, values: &[(vault::SecretName, vault::SecretValue)]) -> PrintSet {
        let prints = values
            .iter()
            .flat_map(|(_, value)| log_prints(&self.key, value.expose()));
        PrintSet::new(&SecretPrints {
            prints: prints.collect(),
            key: self.key.clone(),
        })
    }

    /// The same for a sandbox that was mounted in an earlier life. None if it is not known with which values (unless there are
    /// none), or one of them is there no more.
    ///
    /// # Errors
    /// One cannot be opened, or its access not be recorded.
    pub fn cover_again(
        &self,
        tenant: &TenantId,
        server: &ServerId,
        mounted: Option<&Versions>,
    ) -> Result<Option<PrintSet>> {
        let mut vault = self.lock();
        let scope = scope(tenant, server);
        let today = versions(&vault.list(&scope));
        let can_be_covered = match mounted {
            Some(mounted) => mounted.iter().all(|one| today.contains(one)),
            None => today.is_empty(),
        };
        if !can_be_covered {
            return Ok(None);
        }
        let values = vault.fingerprint(&scope)?;
        Ok(Some(self.cover(&values)))
    }
}

fn versions(found: &[vault::SecretInfo]) -> Versions {
    let version = |info: &vault::SecretInfo| (info.name.as_str().to_owned(), info.seal_id.clone());
    found.iter().map(version).collect()
}

/// The values of a sandbox as its log is searched for them: each whole, and each of its lines, since a log has lines.
fn log_prints(key: &PrintKey, value: &[u8]) -> Vec<Print> {
    let lines = value
        .split(|b| *b == b'\n')
        .filter(|line| line.len() >= LOG_LINE_BYTES_MIN && !line.starts_with(b"-----"));
    let mut prints = key.prints(value);
    prints.extend(lines.take(LOG_LINES_MAX).flat_map(|line| key.prints(line)));
    prints
}

fn scope(tenant: &TenantId, server: &ServerId) -> Scope {
    Scope {
        tenant: tenant.clone(),
        server: server.clone(),
    }
}

fn own_name(name: &runner_api::SecretName) -> Result<vault::SecretName, ApiError> {
    vault::SecretName::parse(name.as_str())
        .map_err(|e| ApiError::new(ErrorCode::BadRequest, e.to_string()))
}

fn api_error(error: VaultError) -> ApiError {
    match error {
        VaultError::Unknown => {
            ApiError::new(ErrorCode::NotFound, "there is no secret of this name")
        }
        VaultError::TooMany { .. } => ApiError::new(ErrorCode::BadRequest, error.to_string()),
        error => {
            tracing::error!(%error, "the vault failed");
            ApiError::new(
                ErrorCode::Internal,
                "the vault failed; the runner's log has the reason",
            )
        }
    }
}

fn random() -> Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|e| anyhow::anyhow!("no random numbers: {e}"))?;
    Ok(key)
}

fn root(state: &Path, source: &KeySource) -> Result<RootKey> {
    if let Ok(text) = std::env::var("WEIR_VAULT_KEY") {
        return Ok(RootKey::from_text(&text)?);
    }
    let path = source.file.clone().unwrap_or_else(|| state.join(KEY_FILE));
    if source.file.is_none() && !path.exists() {
        if state
            .join("vault")
            .read_dir()
            .is_ok_and(|mut d| d.any(|e| e.is_ok_and(|e| e.file_name() != "lock")))
        {
            bail!(
                "{} is missing, but there are secrets sealed with it; put it back",
                path.display()
            );
        }
        let text = format!("{}\n", crate::paths::hex(&random()?));
        // Whole or not at all: half a key, left by a power cut or a full disk, would keep every later start from it.
        vault::replace(&mut Dir::within(state), KEY_FILE, text.as_bytes())
            .context("make a root key for the vault")?;
        tracing::warn!(path = %path.display(), "a root key for the vault was made; keep a copy elsewhere, or name one with --vault-key");
    }
    Ok(RootKey::from_file(&path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Rig {
        dir: tempfile::TempDir,
        events: Events,
        secrets: Secrets,
        tenant: TenantId,
        server: ServerId,
    }

    impl Rig {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let events = Events::open(&dir.path().join("events.jsonl"));
            let vault = dir.path().join("vault");
            let secrets = Secrets::none(&vault, events.clone()).expect("a vault");
            let (tenant, server) = (TenantId::parse("acme"), ServerId::parse("one"));
            Self {
                dir,
                events,
                secrets,
                tenant: tenant.expect("an id"),
                server: server.expect("an id"),
            }
        }

        fn set(&self, name: &str, value: &str) -> Result<(), ApiError> {
            let value = runner_api::SecretValue::new(value.as_bytes().to_vec()).expect("a value");
            let (tenant, server) = (&self.tenant, &self.server);
            self.secrets.set(tenant, server, &secret_name(name), value)
        }

        fn versions(&self) -> Versions {
            self.secrets.versions(&self.tenant, &self.server)
        }

        async fn told(&self, after: u64) -> Vec<EventKind> {
            let events = self.events.after(after).await;
            events.into_iter().map(|event| event.kind).collect()
        }
    }

    fn secret_name(name: &str) -> runner_api::SecretName {
        runner_api::SecretName::parse(name).expect("a name")
    }

    #[test]
    fn a_value_after_a_removed_one_is_another() {
        let rig = Rig::new();
        rig.set("TOKEN", "first").expect("set");
        let first = rig.versions();
        let name = secret_name("TOKEN");
        rig.secrets
            .remove(&rig.tenant, &rig.server, &name)
            .expect("removed");
        rig.set("TOKEN", "second").expect("set");
        assert_eq!((first.len(), rig.versions().len()), (1, 1));
        assert_ne!(first, rig.versions());
    }

    #[test]
    fn only_values_that_are_still_there_can_be_covered_again() {
        let rig = Rig::new();
        let again = |mounted: Option<&Versions>| {
            let set = rig.secrets.cover_again(&rig.tenant, &rig.server, mounted);
            set.expect("recorded").map(|set| set.is_empty())
        };
        let none = rig.versions();
        assert_eq!(again(Some(&none)), Some(true), "there is nothing to cover");
        assert_eq!(again(None), Some(true), "nor for one of an older runner");
        rig.set("TOKEN", "first-of-its-values").expect("set");
        let first = rig.versions();
        assert_eq!(again(Some(&first)), Some(false));
        // Another name takes nothing away.
        rig.set("OTHER", "another-value").expect("set");
        assert_eq!(again(Some(&first)), Some(false));
        let both = rig.versions();
        rig.set("TOKEN", "second-of-its-values").expect("set");
        assert_eq!([again(Some(&first)), again(Some(&both))], [None, None]);
        let name = secret_name("TOKEN");
        rig.secrets
            .remove(&rig.tenant, &rig.server, &name)
            .expect("removed");
        assert_eq!([again(Some(&both)), again(None)], [None, None]);
    }

    #[tokio::test]
    async fn all_secrets_of_a_server_are_one_event() {
        let rig = Rig::new();
        let names = ["A", "B", "C"].map(secret_name).to_vec();
        for name in &names {
            rig.set(name.as_str(), "a-value-of-it").expect("set");
        }
        let key = PrintKey::new([1; 32]);
        let prints = rig.secrets.prints(&rig.tenant, &rig.server, &key);
        assert_eq!(prints.expect("prints").len(), 3);
        let sandbox = SandboxId::parse("abcdefghijkl").expect("an id");
        let mounted = rig.secrets.mount(&rig.tenant, &rig.server, &sandbox);
        let (versions, values) = mounted.expect("values");
        assert_eq!((versions, values.len()), (rig.versions(), 3));
        let expected = [
            EventKind::SecretsFingerprinted {
                names: names.clone(),
            },
            EventKind::SecretsMounted { names },
        ];
        assert_eq!(rig.told(3).await, expected);
    }

    #[tokio::test]
    async fn what_cannot_be_recorded_does_not_happen() {
        let rig = Rig::new();
        rig.set("TOKEN", "first").expect("set");
        let before = rig.versions();
        // In the place of the file is what nobody can write to.
        let file = rig.dir.path().join("events.jsonl");
        std::fs::remove_file(&file).expect("there");
        std::fs::create_dir(&file).expect("in the way");
        rig.events.close_file();
        let (tenant, server) = (&rig.tenant, &rig.server);
        assert!(rig.set("TOKEN", "second").is_err());
        let name = secret_name("TOKEN");
        assert!(rig.secrets.remove(tenant, server, &name).is_err());
        let sandbox = SandboxId::parse("abcdefghijkl").expect("an id");
        assert!(rig.secrets.mount(tenant, server, &sandbox).is_err());
        let key = PrintKey::new([1; 32]);
        assert!(rig.secrets.prints(tenant, server, &key).is_err());
        assert_eq!(rig.versions(), before);
        let told = rig.told(1).await;
        let denied = |kind: &EventKind| matches!(kind, EventKind::SecretDenied { name, .. } if name == "TOKEN");
        assert!(told.len() == 4 && told.iter().all(denied), "{told:?}");
        std::fs::remove_dir(&file).expect("room");
        rig.set("TOKEN", "second").expect("set");
        assert_ne!(rig.versions(), before);
    }

    /// A folder without room.
    struct Full(tempfile::TempDir);

    impl Full {
        fn new() -> Self {
            use nix::mount::{MsFlags, mount};
            let dir = tempfile::tempdir().expect("a folder");
            let (at, flags) = (dir.path(), MsFlags::empty());
            mount(Some("none"), at, Some("tmpfs"), flags, Some("size=64k")).expect("mounted");
            while std::fs::write(dir.path().join("much"), vec![1; 64 * 1024]).is_ok() {
                std::fs::rename(dir.path().join("much"), dir.path().join("more")).expect("renamed");
            }
            Self(dir)
        }
    }

    impl Drop for Full {
        fn drop(&mut self) {
            let _ = nix::mount::umount2(self.0.path(), nix::mount::MntFlags::MNT_DETACH);
        }
    }

    #[test]
    fn a_root_key_is_made_whole_or_not_at_all() {
        if !nix::unistd::geteuid().is_root() {
            assert!(
                std::env::var_os("WEIR_KIT_REQUIRED").is_none(),
                "needs root"
            );
            return;
        }
        let full = Full::new();
        let (state, source) = (full.0.path(), KeySource::default());
        assert!(root(state, &source).is_err(), "there is no room for it");
        for file in ["much", "more"] {
            let _ = std::fs::remove_file(state.join(file));
        }
        root(state, &source).expect("there is room now");
        let key = std::fs::read_to_string(state.join(KEY_FILE)).expect("there");
        assert_eq!(key.trim().len(), 64);
        root(state, &source).expect("the same key");
        let again = std::fs::read_to_string(state.join(KEY_FILE)).expect("there");
        assert_eq!(again, key);
    }
}
