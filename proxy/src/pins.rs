//! Pins of tools in the data folder: what `weir serve` saw of each server, and what people decided about it.
//!
//! ```text
//! weir serve: Pins --what was listed--> tools/SERVER.json <--lock, write beside, rename-- weir tools approve, forget
//!               ^------------ watched ----------'
//! ```
//!
//! Messages never wait for a file: they are judged by what is in memory, and a task of its own saves it. Who writes reads
//! first, under the lock, so that neither side undoes what the other did.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use domain::{PINS_MAX, ServerId, TenantId, ToolPins};
use gateway::{PinSource, Pins};
use serde::{Deserialize, Serialize};

use crate::config::{read_bounded, store};

/// Form of the files. Another one is refused.
const VERSION: u32 = 1;
/// Largest file: 4 MiB of texts, of which each byte may take two, and the rest.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// How often files are looked at, and what changed is saved.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What is kept of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    version: u32,
    /// Its tenant. A server of this id that is another tenant's is another one.
    pub tenant: TenantId,
    /// Its id.
    pub server: ServerId,
    /// Its pins.
    pub pins: ToolPins,
}

/// Only the version of a file that may be of another form.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("tools")
}

fn path_of(data_dir: &Path, server: &ServerId) -> PathBuf {
    folder(data_dir).join(format!("{server}.json"))
}

/// The servers of which something is kept.
pub fn servers(data_dir: &Path) -> anyhow::Result<Vec<ServerId>> {
    let folder = folder(data_dir);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{}", folder.display())),
    };
    let id = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.ok()?.file_name();
        ServerId::parse(name.to_str()?.strip_suffix(".json")?).ok()
    };
    let mut ids: Vec<_> = entries.filter_map(id).collect();
    ids.sort();
    Ok(ids)
}

/// What is kept of a server; `None`: nothing yet.
///
/// # Errors
/// The file cannot be read, or is not ours. Then nobody knows what was approved.
pub fn read(data_dir: &Path, server: &ServerId) -> Result<Option<Kept>, String> {
    let path = path_of(data_dir, server);
    // Where it cannot be told whether there is a file, nobody knows what was approved.
    let kept = match path.try_exists() {
        Ok(false) => return Ok(None),
        Ok(true) => read_bounded(&path, FILE_BYTES_MAX).and_then(|text| parsed(&text, server)),
        Err(error) => Err(error.to_string()),
    };
    kept.map(Some).map_err(|problem| {
        format!(
            "{}: {problem}; restore it, or remove it to have what is listed next approved as it comes",
            path.display()
        )
    })
}

fn parsed(text: &str, server: &ServerId) -> Result<Kept, String> {
    let said: Versioned = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if said.version != VERSION {
        let version = said.version;
        return Err(format!(
            "it is of version {version}, and this Weir reads {VERSION}"
        ));
    }
    let kept: Kept = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if kept.server != *server {
        return Err(format!("it is of server {}", kept.server));
    }
    match kept.pins.tools.len() {
        n if n > PINS_MAX => Err(format!("it has {n} tools, and {PINS_MAX} is the most")),
        _ => Ok(kept),
    }
}

fn write(data_dir: &Path, kept: &Kept) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(kept)?;
    let path = path_of(data_dir, &kept.server);
    store::write_whole(&path, text.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// One writer at a time, until it is dropped.
fn locked(data_dir: &Path) -> anyhow::Result<std::fs::File> {
    let folder = folder(data_dir);
    let lock = || {
        std::fs::create_dir_all(&folder)?;
        let lock = std::fs::File::create(folder.join("pins.lock"))?;
        lock.lock().map(|()| lock)
    };
    lock().with_context(|| format!("{} cannot be written", folder.display()))
}

/// Changes what people decided about a server.
///
/// # Errors
/// Nothing is kept of it, what `change` says, or it cannot be written.
pub fn decide<T>(
    data_dir: &Path,
    server: &ServerId,
    change: impl FnOnce(&mut ToolPins) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let _lock = locked(data_dir)?;
    let kept = read(data_dir, server).map_err(anyhow::Error::msg)?;
    let mut kept = kept.with_context(|| format!("nothing is known of the tools of {server}"))?;
    let out = change(&mut kept.pins)?;
    kept.pins.decisions += 1;
    write(data_dir, &kept)?;
    Ok(out)
}

/// Time, size and number of a file.
type Stamp = Option<(SystemTime, u64, u64)>;

fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

/// Keeps the pins of all servers of one `weir serve`.
pub struct Keeper {
    data_dir: PathBuf,
    servers: Mutex<BTreeMap<ServerId, Server>>,
}

struct Server {
    tenant: TenantId,
    pins: Arc<Pins>,
    /// The file as it was read or written last.
    seen: Stamp,
    /// What was wrong with it, and said.
    complained: Option<String>,
}

impl Keeper {
    /// In this data folder. Nothing is written before [`Keeper::look`].
    pub fn new(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            servers: Mutex::default(),
        }
    }

    /// Saves and watches, again and again.
    pub async fn keep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let keeper = Arc::clone(&self);
            // It only ends early when the runtime does.
            let _ = tokio::task::spawn_blocking(move || keeper.look()).await;
        }
    }

    /// Saves what is new and takes what people decided. What cannot be saved is tried again with the next look.
    pub fn look(&self) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, server) in servers.iter_mut() {
            if stamp(&path_of(&self.data_dir, id)) == server.seen && !server.pins.is_unsaved() {
                continue;
            }
            match server.sync(&self.data_dir, id) {
                Ok(()) => server.complained = None,
                Err(error) => server.complain(id, &format!("{error:#}")),
            }
        }
        // Nobody serves them any more.
        servers.retain(|_, server| Arc::strong_count(&server.pins) > 1 || server.pins.is_unsaved());
    }
}

impl Server {
    fn sync(&mut self, data_dir: &Path, id: &ServerId) -> anyhow::Result<()> {
        let _lock = locked(data_dir)?;
        let kept = read(data_dir, id).map_err(anyhow::Error::msg)?;
        let kept = kept.filter(|kept| kept.tenant == self.tenant);
        if let Some(unsaved) = self.pins.to_save(kept.as_ref().map(|kept| &kept.pins)) {
            let now = Kept {
                version: VERSION,
                tenant: self.tenant.clone(),
                server: id.clone(),
                pins: unsaved.pins.clone(),
            };
            if let Err(error) = write(data_dir, &now) {
                self.pins.not_saved(unsaved);
                return Err(error);
            }
        }
        self.seen = stamp(&path_of(data_dir, id));
        Ok(())
    }

    /// Says it once.
    fn complain(&mut self, id: &ServerId, problem: &str) {
        if self.complained.as_deref() != Some(problem) {
            tracing::warn!(server_id = %id, problem, "pins of tools cannot be kept; those in memory stay in force");
            self.complained = Some(problem.to_owned());
        }
    }
}

impl PinSource for Keeper {
    fn pins(&self, tenant: &TenantId, id: &ServerId) -> Result<Arc<Pins>, String> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = servers.get(id).filter(|known| known.tenant == *tenant) {
            return Ok(Arc::clone(&known.pins));
        }
        let seen = stamp(&path_of(&self.data_dir, id));
        let kept = read(&self.data_dir, id)?.filter(|kept| kept.tenant == *tenant);
        let pins = Arc::new(Pins::kept(kept.map(|kept| kept.pins).unwrap_or_default()));
        let server = Server {
            tenant: tenant.clone(),
            pins: Arc::clone(&pins),
            seen,
            complained: None,
        };
        servers.insert(id.clone(), server);
        Ok(pins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> (TenantId, ServerId) {
        (
            TenantId::parse("acme").unwrap(),
            ServerId::parse("files").unwrap(),
        )
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (tenant, id) = ids();
        assert_eq!(read(dir.path(), &id), Ok(None));
        assert!(Keeper::new(dir.path()).pins(&tenant, &id).is_ok());
        std::fs::create_dir(folder(dir.path())).unwrap();
        let whole = r#"{"version":1,"tenant":"acme","server":"files","pins":{}}"#;
        for (text, problem) in [
            ("", "EOF"),
            ("{}", "version"),
            (&whole[..40], "EOF"),
            (
                &whole.replace(":1", ":2"),
                "version 2, and this Weir reads 1",
            ),
            (&whole.replace("files", "other"), "of server other"),
            (&whole.replace("{}", r#"{"tols":{}}"#), "tols"),
        ] {
            std::fs::write(path_of(dir.path(), &id), text).unwrap();
            let refused = Keeper::new(dir.path()).pins(&tenant, &id).unwrap_err();
            assert!(
                refused.contains("files.json") && refused.contains(problem),
                "{text}: {refused}"
            );
        }
        std::fs::write(path_of(dir.path(), &id), whole).unwrap();
        assert!(Keeper::new(dir.path()).pins(&tenant, &id).is_ok());
        let file = std::fs::File::create(path_of(dir.path(), &id)).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert!(read(dir.path(), &id).is_err());
    }

    #[test]
    fn a_server_of_another_tenant_is_another_server() {
        let dir = tempfile::tempdir().unwrap();
        let (tenant, id) = ids();
        let keeper = Keeper::new(dir.path());
        let ours = keeper.pins(&tenant, &id).unwrap();
        assert!(Arc::ptr_eq(&ours, &keeper.pins(&tenant, &id).unwrap()));
        let theirs = keeper
            .pins(&TenantId::parse("other").unwrap(), &id)
            .unwrap();
        assert!(!Arc::ptr_eq(&ours, &theirs));
        drop((ours, theirs));
        keeper.look();
        assert!(keeper.servers.lock().unwrap().is_empty());
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            0,
            "nothing to keep"
        );
    }

    #[test]
    fn what_nobody_saw_cannot_be_decided_about() {
        let dir = tempfile::tempdir().unwrap();
        let (_, id) = ids();
        let refused = decide(dir.path(), &id, |_| Ok(())).unwrap_err();
        assert!(
            refused.to_string().contains("nothing is known"),
            "{refused}"
        );
        assert!(servers(dir.path()).unwrap().is_empty());
    }
}
