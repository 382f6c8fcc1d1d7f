//! What was pushed to a `weir serve`: components and bindings, in the data folder.
//!
//! ```text
//! weir policy push/bind/rollback --lock, write beside, rename--> plugins/registry.json
//!                                                                      | watched
//! weir serve: load all, compile, swap --> plugins/applied.json <-- waited for
//! ```
//!
//! A folder, not a port: who may push is who may write there, nothing new listens, a push outlives a
//! restart, and it goes the same way into force as an edit of the configuration file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use domain::PluginBinding;
use serde::{Deserialize, Serialize};

use super::load::{read_bounded, read_bytes_bounded};
use super::plugins::{COMPONENT_BYTES_MAX, sha256_hex};
use super::signing;

const REGISTRY_BYTES_MAX: u64 = 4 << 20;
/// Versions of one plugin that are kept for going back.
const VERSIONS_MAX: usize = 16;

/// What was pushed and bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Registry {
    /// Counts changes.
    pub generation: u64,
    /// By tenant and plugin.
    #[serde(default)]
    pub plugins: BTreeMap<String, BTreeMap<String, Versions>>,
    /// By server.
    #[serde(default)]
    pub bindings: BTreeMap<String, Vec<PluginBinding>>,
    /// By server: who looks on ([`crate::taps`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub taps: BTreeMap<String, Vec<Tap>>,
}

/// Somebody who looks on for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tap {
    /// Hexadecimal; the name of its file.
    pub id: String,
    /// Glob over tool names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// One way only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<domain::Direction>,
    /// When it ends.
    pub until_unix_s: u64,
    /// After how many messages.
    pub messages_max: u32,
    /// The plugin that is watched; absent: the place itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// What is to be compared with it: the SHA-256 of a component in this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
}

/// The versions of a plugin that were pushed, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Which one is in force, by its place in the list.
    pub current: usize,
    /// All that are kept.
    pub list: Vec<Version>,
}

/// One pushed version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// What the plugin says its version is.
    pub version: String,
    /// SHA-256 of the component, which is also the name of its file.
    pub sha256: String,
    /// When it was pushed.
    pub pushed_unix_s: u64,
    /// The signature that came with it, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Of the registry that was read.
    pub generation: u64,
    /// Why it was refused; absent: it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The folder of everything about plugins.
pub fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("plugins")
}

/// The file that is watched.
pub fn registry_path(data_dir: &Path) -> PathBuf {
    folder(data_dir).join("registry.json")
}

fn applied_path(data_dir: &Path) -> PathBuf {
    folder(data_dir).join("applied.json")
}

/// The file of a tap.
pub fn tap_path(data_dir: &Path, id: &str) -> PathBuf {
    folder(data_dir).join("taps").join(format!("{id}.jsonl"))
}

/// Keeps a component that is not in force.
///
/// # Errors
/// It cannot be written.
pub fn keep(data_dir: &Path, component: &[u8]) -> std::io::Result<String> {
    let sha256 = sha256_hex(component);
    let path = component_path(data_dir, &sha256);
    if !path.exists() {
        std::fs::create_dir_all(folder(data_dir).join("components"))?;
        write_whole(&path, component)?;
    }
    Ok(sha256)
}

/// A component that is kept, checked against its hash.
///
/// # Errors
/// It is gone, or another.
pub fn kept(data_dir: &Path, sha256: &str) -> Result<Vec<u8>, String> {
    // The name goes into a path, so it must be what it says.
    if sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err("its hash is none".into());
    }
    let path = component_path(data_dir, sha256);
    let bytes = read_bytes_bounded(&path, COMPONENT_BYTES_MAX)
        .map_err(|problem| format!("{} {problem}", path.display()))?;
    if sha256_hex(&bytes) != sha256 {
        return Err(format!(
            "{} is another file than was pushed",
            path.display()
        ));
    }
    Ok(bytes)
}

fn component_path(data_dir: &Path, sha256: &str) -> PathBuf {
    folder(data_dir)
        .join("components")
        .join(format!("{sha256}.wasm"))
}

impl Registry {
    /// Reads it; where there is none, nothing was pushed.
    ///
    /// # Errors
    /// It cannot be read, or is not ours.
    pub fn read(data_dir: &Path) -> Result<Self, String> {
        let path = registry_path(data_dir);
        if !path.exists() {
            return Ok(Self::default());
        }
        let text = read_bounded(&path, REGISTRY_BYTES_MAX)
            .map_err(|problem| format!("{} {problem}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Changes it, one writer at a time.
    ///
    /// # Errors
    /// What `change` says, or the folder cannot be written.
    pub fn change<T>(
        data_dir: &Path,
        change: impl FnOnce(&mut Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<(u64, T)> {
        let folder = folder(data_dir);
        std::fs::create_dir_all(folder.join("components"))?;
        let lock = std::fs::File::create(folder.join("registry.lock"))?;
        lock.lock()?;
        let mut registry = Self::read(data_dir).map_err(anyhow::Error::msg)?;
        let out = change(&mut registry)?;
        for taps in registry.taps.values_mut() {
            taps.retain(|tap| !crate::taps::left(tap).is_zero());
        }
        registry.taps.retain(|_, taps| !taps.is_empty());
        registry.generation += 1;
        write_whole(
            &registry_path(data_dir),
            serde_json::to_string_pretty(&registry)?.as_bytes(),
        )?;
        registry.forget_components(data_dir);
        Ok((registry.generation, out))
    }

    /// Adds a version and puts it in force; the oldest beyond the bound are forgotten.
    ///
    /// # Errors
    /// The component cannot be written.
    pub fn push(
        &mut self,
        data_dir: &Path,
        tenant: &str,
        name: &str,
        version: Version,
        component: &[u8],
    ) -> anyhow::Result<()> {
        keep(data_dir, component)?;
        let versions = self
            .plugins
            .entry(tenant.to_owned())
            .or_default()
            .entry(name.to_owned())
            .or_insert(Versions {
                current: 0,
                list: Vec::new(),
            });
        versions.list.push(version);
        if versions.list.len() > VERSIONS_MAX {
            versions.list.remove(0);
        }
        versions.current = versions.list.len() - 1;
        Ok(())
    }

    /// Removes components that nothing names any more. One that is still being read is read again with
    /// the next generation.
    fn forget_components(&self, data_dir: &Path) {
        let versions = self.plugins.values().flat_map(BTreeMap::values);
        let versions = versions.flat_map(|versions| &versions.list);
        let candidates = self.taps.values().flatten();
        let named: BTreeSet<&str> = versions
            .map(|version| &*version.sha256)
            .chain(candidates.filter_map(|tap| tap.candidate.as_deref()))
            .collect();
        let Ok(entries) = std::fs::read_dir(folder(data_dir).join("components")) else {
            return;
        };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().and_then(|name| name.to_str());
            // Not those that are being written.
            let whole = name.and_then(|name| name.strip_suffix(".wasm"));
            if whole.is_some_and(|sha256| !named.contains(sha256)) {
                // One that cannot be removed is removed the next time.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// The component in force, checked against its hash and, where the tenant has keys, its signature.
    ///
    /// # Errors
    /// It is gone, another, or not signed.
    pub fn component(
        &self,
        data_dir: &Path,
        versions: &Versions,
        keys: &[String],
    ) -> Result<Vec<u8>, String> {
        let version = versions
            .list
            .get(versions.current)
            .ok_or("it has no version in force")?;
        let bytes = kept(data_dir, &version.sha256)?;
        if !keys.is_empty() {
            let signature = version
                .signature
                .as_deref()
                .ok_or("it is not signed, and the tenant has plugin_keys")?;
            signing::check(signature, &bytes, keys)?;
        }
        Ok(bytes)
    }
}

/// Says what became of a generation, for whoever pushed it.
pub fn acknowledge(data_dir: &Path, applied: &Applied) {
    if !folder(data_dir).is_dir() {
        return;
    }
    let written = serde_json::to_string(applied)
        .map_err(std::io::Error::other)
        .and_then(|text| write_whole(&applied_path(data_dir), text.as_bytes()));
    if let Err(error) = written {
        tracing::warn!(%error, "what became of a push could not be said");
    }
}

/// What was said last.
pub fn applied(data_dir: &Path) -> Option<Applied> {
    let text = read_bounded(&applied_path(data_dir), 1 << 20).ok()?;
    serde_json::from_str(&text).ok()
}

/// Writes beside and renames, so that nobody reads half a file.
///
/// # Errors
/// It cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = std::fs::File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, path)
}
