//! Common layers: what many servers install, fetched once at the operator's word. A build that asks for any of it finds it
//! fetched, unpacked and compiled.
//!
//! Invariants:
//! - A common layer is made of a list of the runner's own, in a build sandbox of its own. No byte of it is a tenant's.
//! - It is named after its content, and nothing in it changes. Each build gets a copy: of a file with two names, its link
//!   count and change time would tell one tenant of another.
//! - What a tenant's layer holds is what its own installer has decided, of what its own requirements allow.
//! - There is none where the URL of the package index has a password: npm writes the URL into the cache that is copied.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, bail};
use domain::TenantId;
use runner_api::{
    ApiError, BuildEvent, BuildStage, Check, CheckState, ErrorCode, LayerId, LayerInfo, Runtime,
};
use sandbox::{GUEST_UID, on_thread};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::copy::Copy;
use super::install::{self, BuildFailed, Job};
use super::rootfs_of;
use crate::bundle::{package_json, requirements};
use crate::context::{Context, new_sandbox_id, random_name};
use crate::events::now_ms;
use crate::index;
use crate::paths::hex;
use crate::rootfs;
use crate::stock::{self, settle};
use crate::store;

/// For so long it is taken from. npm prefers what is there to what is newer, so it may not grow old.
const FRESH_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Of a list of files, or of versions, in a package.
const LISTING_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// npm's list of what is in a `node_modules`. It counts only while it is newer than what it lists.
const NODE_LISTING: &str = ".package-lock.json";

/// What a common layer is made of.
pub struct List {
    /// Its name; unique in a runtime.
    pub name: &'static str,
    /// For which servers.
    pub runtime: Runtime,
    text: &'static str,
}

const LISTS: &[List] = &[
    List {
        name: "mcp",
        runtime: Runtime::Python,
        text: include_str!("../../common/mcp.txt"),
    },
    List {
        name: "data",
        runtime: Runtime::Python,
        text: include_str!("../../common/data.txt"),
    },
    List {
        name: "mcp",
        runtime: Runtime::Node,
        text: include_str!("../../common/mcp.json"),
    },
];

impl List {
    /// The lists of a runtime.
    pub fn all(runtime: Runtime) -> impl Iterator<Item = &'static Self> {
        LISTS.iter().filter(move |list| list.runtime == runtime)
    }

    /// The packages that it names.
    fn names(&self) -> Vec<String> {
        let bytes = self.text.as_bytes();
        let all = match self.runtime {
            Runtime::Python => requirements::check(bytes),
            Runtime::Node => package_json::check(bytes),
        };
        let all = all.unwrap_or_default();
        all.iter().map(|one| name_of(one).to_owned()).collect()
    }

    fn input(&self) -> &'static str {
        match self.runtime {
            Runtime::Python => "requirements.txt",
            Runtime::Node => "package.json",
        }
    }

    fn folder(&self, state: &Path) -> PathBuf {
        let name = format!("{}-{}", self.runtime.as_str(), self.name);
        state.join("common").join(name)
    }

    /// What was made of it, and may be taken from now.
    fn current(&self, state: &Path, rootfs: &str) -> Option<(PathBuf, Made)> {
        let all = made(&self.folder(state)).into_iter();
        let fit = all.filter(|(_, made)| made.fits(self, rootfs, now_ms()));
        fit.max_by_key(|(_, made)| made.built_ms)
    }
}

/// One that is there.
#[derive(Serialize, Deserialize)]
struct Made {
    list: String,
    rootfs: String,
    index: String,
    /// What is in it, with a hash of each.
    pins: Vec<String>,
    bytes: u64,
    built_ms: u64,
}

impl Made {
    /// Of this list, for this root file system, from this index, and young.
    fn fits(&self, list: &List, rootfs: &str, now_ms: u64) -> bool {
        let age = Duration::from_millis(now_ms.saturating_sub(self.built_ms));
        self.list == list.text
            && self.rootfs == rootfs
            && index_of(list.runtime).as_ref() == Some(&self.index)
            && age <= FRESH_FOR
    }

    /// The hash of all that decides what is in it.
    fn id(&self) -> String {
        let mut hasher = Sha256::new();
        let own = ["weir common layer 1", &self.list, &self.rootfs, &self.index];
        for part in own.into_iter().chain(self.pins.iter().map(String::as_str)) {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hex(&hasher.finalize())
    }
}

/// The one that it is made of; none where it has a password.
fn index_of(runtime: Runtime) -> Option<String> {
    let index = index::of(runtime);
    (!index::has_credentials(&index)).then_some(index)
}

/// The name in `name[extras]>=1` or `@scope/name@range`.
fn name_of(dependency: &str) -> &str {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let rest = dependency.strip_prefix('@').unwrap_or(dependency);
    let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
    &dependency[..dependency.len() - rest.len() + end]
}

fn made(folder: &Path) -> Vec<(PathBuf, Made)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter_map(|place| Some((place.clone(), store::get(&place.join("info.json"))?)))
        .collect()
}

/// What a build asks for.
pub(super) struct Wanted {
    pub rootfs: String,
    pub runtime: Runtime,
    pub dependencies: Vec<String>,
    /// There is a lock file: versions are decided.
    pub locked: bool,
}

/// Puts copies of what a build may want where its installer looks first. Without them it fetches everything, as ever.
pub(super) fn pour(state: &Path, wanted: &Wanted, out: &Path) {
    for list in List::all(wanted.runtime) {
        let names = list.names();
        let asked = |one: &String| names.iter().any(|name| name == name_of(one));
        if !wanted.dependencies.iter().any(asked) {
            continue;
        }
        let Some((place, _)) = list.current(state, &wanted.rootfs) else {
            continue;
        };
        if let Err(error) = pour_from(&place, wanted, out) {
            tracing::warn!(place = %place.display(), error = format!("{error:#}"), "a common layer cannot be used");
            for poured in ["cache", "build"] {
                let _ = fs::remove_dir_all(out.join(poured));
            }
            return;
        }
    }
}

fn pour_from(place: &Path, wanted: &Wanted, out: &Path) -> Result<()> {
    let mut copy = Copy::owned_by(GUEST_UID);
    if wanted.runtime == Runtime::Python || wanted.locked {
        return copy.folder(&place.join("cache"), &out.join("cache"), 0);
    }
    let build = out.join("build");
    fs::create_dir(&build)?;
    std::os::unix::fs::chown(&build, Some(GUEST_UID), Some(GUEST_UID))?;
    let modules = build.join("node_modules");
    copy.folder(&place.join("node_modules"), &modules, 0)?;
    File::open(modules.join(NODE_LISTING))?.set_modified(SystemTime::now())?;
    Ok(())
}

/// Makes one anew, of the newest versions that its list allows. The one before goes.
///
/// # Errors
/// What the installer said, or that there is no room.
pub async fn build(
    ctx: &Arc<Context>,
    list: &'static List,
    tell: mpsc::Sender<BuildEvent>,
) -> Result<LayerInfo, ApiError> {
    let began = Instant::now();
    let elapsed_ms = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let rootfs = rootfs_of(ctx, list.runtime)?;
    if index_of(list.runtime).is_none() {
        return Err(ApiError::new(
            ErrorCode::Conflict,
            "there is no common layer of a package index that has a password in its URL: the installer's cache has it, and would be copied to every build; servers are built without common layers, or give this host an index without one",
        ));
    }
    ctx.room.check()?;
    let stage = async |stage| {
        let elapsed_ms = elapsed_ms();
        let _ = tell.send(BuildEvent::Stage { stage, elapsed_ms }).await;
    };
    // In its turn, as if it were one more tenant.
    let operator = TenantId::parse("operator").expect("letters");
    stage(BuildStage::Queued).await;
    let _slot = ctx.builds.enter_leaving_one(&operator).await;
    stage(BuildStage::Installing).await;
    let sandbox = new_sandbox_id();
    let making = ctx.paths.state.join("uploads").join(sandbox.as_str());
    let job = Job {
        ctx,
        id: &sandbox,
        tenant: &operator,
        runtime: list.runtime,
        rootfs: &rootfs.path,
        making: &making,
        tell: &tell,
    };
    let result = async {
        job.prepare().await?;
        fs::write(job.input().join(list.input()), list.text).context("write a list")?;
        job.run(install::common_installer(list.runtime)).await?;
        stage(BuildStage::Sealing).await;
        let copy = Copy::within(job.room_for_a_copy()?);
        let (making, state, root) = (making.clone(), ctx.paths.state.clone(), rootfs.id.clone());
        let sealed = on_thread("weir-seal", move || seal(copy, &making, &state, list, root));
        sealed.await.map_err(BuildFailed::Runner)
    }
    .await;
    job.clean().await;
    ctx.stocked.notify_one();
    let (id, made) = result.map_err(BuildFailed::told)?;
    Ok(LayerInfo {
        id: LayerId::parse(&id).map_err(|e| ApiError::new(ErrorCode::Internal, e.to_string()))?,
        packages: u32::try_from(made.pins.len()).unwrap_or(u32::MAX),
        bytes: made.bytes,
        cached: false,
        elapsed_ms: elapsed_ms(),
    })
}

fn seal(
    mut copy: Copy,
    making: &Path,
    state: &Path,
    list: &List,
    rootfs: String,
) -> Result<(String, Made)> {
    let layer = making.join("layer");
    copy.folder(&making.join("out/deps"), &layer, 0)?;
    let made = Made {
        list: list.text.to_owned(),
        rootfs,
        index: index_of(list.runtime).context("the package index has a password by now")?,
        pins: pins(&layer, list.runtime)?,
        bytes: copy.bytes,
        built_ms: now_ms(),
    };
    let (id, folder) = (made.id(), list.folder(state));
    store::put(&layer.join("info.json"), &made)?;
    let place = folder.join(&id);
    // The one that was there has the same packages, and a file of it may be broken by now.
    remove(&place, &state.join("uploads"));
    settle(&layer, &place).context("put a common layer in its place")?;
    for (other, _) in self::made(&folder) {
        if other != place {
            remove(&other, &state.join("uploads"));
        }
    }
    Ok((id, made))
}

/// What is in it: each package with its version, and a hash of what its files are.
fn pins(layer: &Path, runtime: Runtime) -> Result<Vec<String>> {
    let mut pins = Vec::new();
    match runtime {
        Runtime::Python => {
            for package in fs::read_dir(layer.join("cache/archive-v0"))? {
                for entry in fs::read_dir(package?.path())? {
                    let entry = entry?;
                    let name = entry.file_name().to_string_lossy().into_owned();
                    if let Some(name) = name.strip_suffix(".dist-info") {
                        let record = read(&entry.path().join("RECORD"))?;
                        pins.push(format!("{name} sha256:{}", hex(&Sha256::digest(record))));
                    }
                }
            }
        }
        Runtime::Node => {
            let listing = read(&layer.join("node_modules").join(NODE_LISTING))?;
            let listing: Value = serde_json::from_slice(&listing)?;
            let packages = listing["packages"].as_object();
            for (place, package) in packages.context("npm listed nothing")? {
                let word = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
                pins.push(format!("{place} {} {}", word("version"), word("integrity")));
            }
        }
    }
    pins.sort();
    if pins.is_empty() {
        bail!("a common layer is empty");
    }
    Ok(pins)
}

/// A file that a package brought. A link would lead out of it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LISTING_BYTES_MAX)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Removes what is not taken from any more: it is old, or its list, index or root file system is another one by now.
pub fn tend(state: &Path) {
    for folder in stock::entries(&state.join("common")) {
        let list = LISTS.iter().find(|list| list.folder(state) == folder);
        // Without a root file system nobody builds, and it may come back.
        let rootfs = list.map(|list| rootfs::find(state, list.runtime));
        for place in stock::entries(&folder) {
            let made: Option<Made> = store::get(&place.join("info.json"));
            let stays = match (list, &rootfs, made) {
                (Some(list), Some(Ok(rootfs)), Some(made)) => made.fits(list, &rootfs.id, now_ms()),
                (Some(_), Some(Err(_)), Some(_)) => true,
                _ => false,
            };
            if !stays {
                remove(&place, &state.join("uploads"));
            }
        }
    }
}

fn remove(place: &Path, uploads: &Path) {
    // Where the next life sweeps, should this one end before it is done.
    let going = uploads.join(random_name());
    let removed = fs::rename(place, &going).and_then(|()| fs::remove_dir_all(&going));
    match removed {
        Ok(()) => tracing::info!(path = %place.display(), "a common layer is removed"),
        Err(error) => {
            tracing::warn!(path = %place.display(), %error, "a common layer cannot be removed")
        }
    }
}

/// Which there are, for the operator.
pub fn checks(state: &Path, options: &str) -> Vec<Check> {
    let check = |list: &List| {
        let rootfs = rootfs::find(state, list.runtime).ok()?;
        let found = match list.current(state, &rootfs.id) {
            Some((_, made)) => format!(
                "{} packages, {} MiB, {} h old",
                made.pins.len(),
                made.bytes >> 20,
                now_ms().saturating_sub(made.built_ms) / 3_600_000
            ),
            None if index_of(list.runtime).is_none() => {
                "none, as the package index has a password in its URL; builds fetch all anew"
                    .to_owned()
            }
            None => format!(
                "none; builds fetch all anew. weir-runner{options} common build {} {}",
                list.runtime.as_str(),
                list.name
            ),
        };
        Some(Check {
            name: format!("{} for {}", list.name, list.runtime.as_str()),
            state: CheckState::Ok,
            found,
            mend: None,
        })
    };
    LISTS.iter().filter_map(check).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_one_that_a_tenant_could_have_sent() {
        for list in LISTS {
            assert!(!list.names().is_empty(), "{}", list.name);
        }
        let names = |at: usize| LISTS[at].names().join(" ");
        assert!(names(0).contains("mcp") && names(2).contains("@modelcontextprotocol/sdk"));
    }

    #[test]
    fn names_are_found_in_both_spellings() {
        for (dependency, name) in [
            ("mcp[cli]>=1.0.0,<2.0.0", "mcp"),
            ("httpx", "httpx"),
            ("pandas==2 --hash=sha256:00", "pandas"),
            ("express@5.x", "express"),
            ("@modelcontextprotocol/sdk@1.x", "@modelcontextprotocol/sdk"),
            ("@a/b", "@a/b"),
            ("", ""),
        ] {
            assert_eq!(name_of(dependency), name, "{dependency}");
        }
    }

    fn put(state: &Path, list: &List, change: impl FnOnce(&mut Made)) -> PathBuf {
        let mut made = Made {
            list: list.text.to_owned(),
            rootfs: "root".to_owned(),
            index: index_of(list.runtime).expect("it has no password"),
            pins: vec!["mcp-1 sha256:00".to_owned()],
            bytes: 1,
            built_ms: now_ms(),
        };
        change(&mut made);
        let place = list.folder(state).join(made.id());
        fs::create_dir_all(place.join("cache/wheels")).expect("made");
        fs::write(place.join("cache/wheels").join(list.name), "wheel").expect("written");
        std::os::unix::fs::symlink("wheels", place.join("cache/link")).expect("linked");
        store::put(&place.join("info.json"), &made).expect("written");
        place
    }

    fn wanted(dependencies: &[&str]) -> Wanted {
        Wanted {
            rootfs: "root".to_owned(),
            runtime: Runtime::Python,
            dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
            locked: false,
        }
    }

    #[test]
    fn only_what_fits_is_poured_and_only_where_it_is_asked_for() {
        type Change = fn(&mut Made);
        let cases: [(&str, Change, bool); 5] = [
            ("fits", |_| {}, true),
            ("another list", |made| made.list.push('x'), false),
            ("another root", |made| made.rootfs.push('x'), false),
            ("another index", |made| made.index.push('x'), false),
            ("old", |made| made.built_ms = 0, false),
        ];
        for (name, change, poured) in cases {
            let dir = tempfile::tempdir().expect("a folder");
            let place = put(dir.path(), &LISTS[0], change);
            let out = dir.path().join("out");
            fs::create_dir(&out).expect("made");
            pour(dir.path(), &wanted(&["flask>=1", "mcp[cli]>=1"]), &out);
            assert_eq!(out.join("cache/wheels/mcp").exists(), poured, "{name}");
            // A copy, and no second name of the same file.
            use std::os::unix::fs::MetadataExt as _;
            let meta = fs::metadata(place.join("cache/wheels/mcp")).expect("there");
            assert_eq!(meta.nlink(), 1, "{name}");
        }
        let dir = tempfile::tempdir().expect("a folder");
        for list in &LISTS[..2] {
            put(dir.path(), list, |_| {});
        }
        let out = dir.path().join("out");
        for (dependencies, expected) in [
            (&["flask"][..], (false, false)),
            (&["pandas==2"], (false, true)),
            (&["numpy", "httpx"], (true, true)),
        ] {
            fs::create_dir(&out).expect("made");
            pour(dir.path(), &wanted(dependencies), &out);
            let there = |name: &str| out.join("cache/wheels").join(name).exists();
            assert_eq!((there("mcp"), there("data")), expected, "{dependencies:?}");
            fs::remove_dir_all(&out).expect("removed");
        }
    }

    #[test]
    fn what_is_not_taken_from_any_more_is_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let state = dir.path();
        fs::create_dir(state.join("uploads")).expect("made");
        let old = put(state, &LISTS[0], |made| made.built_ms = 0);
        // No root file system is here: whether the others fit cannot be told.
        let other = put(state, &LISTS[1], |made| made.built_ms = 0);
        let unknown = state.join("common/python-gone/x");
        fs::create_dir_all(&unknown).expect("made");
        tend(state);
        assert!(old.exists() && other.exists() && !unknown.exists());
        let id = rootfs::id(Runtime::Python);
        let root = state.join("rootfs").join(&id);
        fs::create_dir_all(root.join("etc")).expect("made");
        fs::write(root.join("etc/weir-rootfs"), &id).expect("written");
        let fits = put(state, &LISTS[0], |made| made.rootfs = id);
        tend(state);
        assert!(!old.exists() && !other.exists() && fits.exists());
        assert_eq!(stock::entries(&state.join("uploads")).len(), 0);
    }
}
