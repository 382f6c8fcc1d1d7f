//! The stock: bundles and layers on disk. What no server is started from any more goes, but for the newest of each tenant:
//! going back to one of those costs no upload and no build.
//!
//! And a guard over that disk: what is sold to all sandboxes together may be more than it has, so who has written the
//! most ends before the others meet an error.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use domain::TenantId;
use runner_api::{GoneReason, SandboxId, ServerSpec};
use sandbox::on_thread;

use crate::boxes::Saved;
use crate::context::{Context, random_name};
use crate::layers::{self, common};
use crate::room::{FREE_BYTES, free_bytes};
use crate::store;

/// Bundles, and layers, that each tenant keeps although no server is started from them.
const KEPT: usize = 8;
/// The same, of those that were asked for within [`NEW`].
const KEPT_NEW: usize = 64;
/// Who deploys many servers uploads them first, perhaps all of them.
const NEW: Duration = Duration::from_secs(3600);
/// How long any is kept since somebody last asked for it.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Below this a sandbox has to end.
const LAST_BYTES: u64 = FREE_BYTES / 2;
/// Between two looks of the guard, while there is time and when there may be little.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const LOOK_OFTEN: Duration = Duration::from_millis(50);
/// After an end until the next: the storage goes with it.
const END_MAX: Duration = Duration::from_secs(5);
/// What all sandboxes have to have written together.
const WORTH_BYTES: u64 = 256 * 1024 * 1024;
/// Below this the disk is short.
const SHORT_BYTES: u64 = 4 * FREE_BYTES;
/// Two looks at the stock are at least so far apart, however much is uploaded.
const PAUSE: Duration = Duration::from_secs(1);
/// And at most so far.
const EVERY: Duration = Duration::from_secs(3600);

/// Moves a finished folder to its place; another one that got there first is as good. What is in it is on the disk then:
/// after a power cut a place has the whole of it or is not there.
pub fn settle(making: &Path, place: &Path) -> io::Result<()> {
    let parent = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(parent)?;
    // One call for thousands of small files.
    nix::unistd::syncfs(File::open(making)?)?;
    match fs::rename(making, place) {
        Err(_) if place.join("info.json").exists() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(parent)?.sync_all(),
    }
}

/// Notes that somebody asked for what is in a place.
pub fn asked_for(place: &Path) {
    let noted =
        File::open(place.join("info.json")).and_then(|info| info.set_modified(SystemTime::now()));
    if let Err(error) = noted {
        tracing::warn!(path = %place.display(), %error, "a use cannot be noted");
    }
}

/// Keeps the stock small, for as long as the runner runs.
pub async fn run(ctx: Arc<Context>) {
    loop {
        let own = Arc::clone(&ctx);
        on_thread("weir-stock", move || tend(&own)).await;
        tokio::time::sleep(PAUSE).await;
        // What came meanwhile is told at once.
        let _ = tokio::time::timeout(EVERY, ctx.stocked.notified()).await;
    }
}

/// Guards the disk, for as long as the runner runs. A disk that does not tell what is free ends nobody.
pub async fn guard(ctx: Arc<Context>) {
    let state = ctx.paths.state.clone();
    loop {
        let free = free_bytes(&state).unwrap_or(u64::MAX);
        if free >= LAST_BYTES {
            let short = free < SHORT_BYTES;
            tokio::time::sleep(if short { LOOK_OFTEN } else { LOOK_EVERY }).await;
            continue;
        }
        // Of sandboxes, and of builds.
        let folders = ["storage", "uploads"].map(|folder| state.join(folder));
        let written = on_thread("weir-stock", move || written(&folders)).await;
        let own = written.into_iter().filter_map(|(id, bytes)| {
            let tenant = ctx.enders.owner(&id)?;
            Some((tenant, id, bytes))
        });
        let chosen = chosen(own.collect(), ctx.room.written());
        let Some((ender, id, bytes)) =
            chosen.and_then(|(id, bytes)| Some((ctx.enders.take(&id)?, id, bytes)))
        else {
            tracing::error!("the disk of the state folder is full, and not of sandboxes");
            tokio::time::sleep(END_MAX).await;
            continue;
        };
        tracing::error!(sandbox = %id, mib = bytes >> 20, "the disk is nearly full: of the tenant that has written the most, the largest sandbox is ended");
        ender.end(GoneReason::HostDiskFull);
        let deadline = tokio::time::Instant::now() + END_MAX;
        let image = state.join("storage").join(format!("{id}.ext4"));
        while image.exists() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(LOOK_OFTEN).await;
        }
    }
}

/// What the storage of each sandbox takes of the disk, in bytes. A build has one in each folder.
fn written(folders: &[PathBuf]) -> Vec<(SandboxId, u64)> {
    let each = |image: PathBuf| {
        let id = image.file_name()?.to_str()?.strip_suffix(".ext4")?;
        // Blocks of `stat` are always of 512 bytes.
        let bytes = fs::metadata(&image).ok()?.blocks() * 512;
        Some((SandboxId::parse(id).ok()?, bytes))
    };
    let mut sums = HashMap::new();
    let images = folders.iter().flat_map(|folder| entries(folder));
    for (id, bytes) in images.filter_map(each) {
        *sums.entry(id).or_default() += bytes;
    }
    sums.into_iter().collect()
}

/// Who ends: the largest of the tenant whose sandboxes and builds have written the most together, so that nobody hides a
/// flood in many small ones; what a tenant is just uploading or unpacking counts, too. None if all together have not written
/// much: then the disk is full of something else.
fn chosen(
    all: Vec<(TenantId, SandboxId, u64)>,
    beside: HashMap<TenantId, u64>,
) -> Option<(SandboxId, u64)> {
    let mut sums: HashMap<TenantId, u64> = HashMap::new();
    for (tenant, _, bytes) in &all {
        *sums.entry(tenant.clone()).or_default() += bytes;
    }
    if sums.values().sum::<u64>() < WORTH_BYTES {
        return None;
    }
    for (tenant, bytes) in beside {
        // Who has nothing that could be ended is not chosen.
        sums.entry(tenant).and_modify(|sum| *sum += bytes);
    }
    let (most, _) = sums.into_iter().max_by_key(|(_, sum)| *sum)?;
    let own = all.into_iter().filter(|(tenant, ..)| *tenant == most);
    own.map(|(_, id, bytes)| (id, bytes))
        .max_by_key(|(_, bytes)| *bytes)
}

fn tend(ctx: &Context) {
    let state = &ctx.paths.state;
    common::tend(state);
    let short = free_bytes(state).is_some_and(|free| free < SHORT_BYTES);
    let kinds = ["bundles", "layers"].map(|kind| entries(&state.join(kind)));
    let folders: Vec<Vec<Kept>> = kinds
        .iter()
        .flatten()
        .map(|tenant| Kept::all(tenant))
        .collect();
    let now = SystemTime::now();
    if folders
        .iter()
        .all(|all| surplus(all, now, short).is_empty())
    {
        return;
    }
    let used = match used(ctx) {
        Ok(used) => used,
        Err(error) => {
            tracing::warn!(%error, "nothing of the stock is removed: not all that is in use is known");
            return;
        }
    };
    for mut all in folders {
        all.retain(|kept| !used.contains(&kept.place));
        for kept in surplus(&all, now, short) {
            kept.remove(&state.join("uploads"));
        }
    }
}

/// What servers are started from, and what sandboxes stand on.
///
/// # Errors
/// That cannot be told of all: then nothing may go.
fn used(ctx: &Context) -> io::Result<HashSet<PathBuf>> {
    let state = &ctx.paths.state;
    let unclear = |what: &str, of: &dyn std::fmt::Display| io::Error::other(format!("{what} {of}"));
    let mut used = HashSet::new();
    for spec in store::every::<ServerSpec>(&state.join("servers"))? {
        let bundle = ctx.paths.bundle(&spec.tenant, &spec.bundle);
        if !bundle.try_exists()? {
            continue;
        }
        let layer = layers::place_of(ctx, &spec);
        used.insert(layer.ok_or_else(|| unclear("the layer of server", &spec.id))?);
        used.insert(bundle);
    }
    for saved in store::every::<Saved>(&state.join("boxes"))? {
        for part in [&saved.app, &saved.deps] {
            // An older runner did not write it down.
            let place = part.parent();
            let place = place.ok_or_else(|| unclear("the parts of sandbox", &saved.placed.id))?;
            used.insert(place.to_owned());
        }
    }
    Ok(used)
}

/// What is in a folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// One bundle or layer.
struct Kept {
    place: PathBuf,
    /// When it was last asked for.
    asked_for: SystemTime,
}

impl Kept {
    /// All in a folder, what was asked for last first.
    fn all(folder: &Path) -> Vec<Self> {
        let mut all: Vec<Self> = entries(folder)
            .into_iter()
            .filter_map(|place| {
                let asked_for = asked_for_at(&place)?;
                Some(Self { place, asked_for })
            })
            .collect();
        all.sort_by_key(|kept| std::cmp::Reverse(kept.asked_for));
        all
    }

    /// Takes it away, unless somebody asked for it meanwhile. At once for whoever looks; its files go after that.
    fn remove(&self, uploads: &Path) {
        if asked_for_at(&self.place) != Some(self.asked_for) {
            return;
        }
        // Where the next life sweeps, should this one end before it is done.
        let going = uploads.join(random_name());
        let removed = fs::rename(&self.place, &going).and_then(|()| fs::remove_dir_all(&going));
        match removed {
            Ok(()) => {
                tracing::info!(path = %self.place.display(), "no server is started from it any more: it is removed")
            }
            Err(error) => {
                tracing::warn!(path = %self.place.display(), %error, "it cannot be removed")
            }
        }
    }
}

fn asked_for_at(place: &Path) -> Option<SystemTime> {
    fs::metadata(place.join("info.json"))
        .and_then(|meta| meta.modified())
        .ok()
}

/// Of what no server is started from, sorted: what is not worth its room.
fn surplus(unused: &[Kept], now: SystemTime, short: bool) -> Vec<&Kept> {
    let (kept_new, kept_old) = if short { (KEPT, 0) } else { (KEPT_NEW, KEPT) };
    let older = |kept: &Kept, age| now.duration_since(kept.asked_for).is_ok_and(|a| a > age);
    let goes = |at: usize, kept: &Kept| {
        let max = if older(kept, NEW) { kept_old } else { kept_new };
        at >= max || older(kept, KEPT_FOR)
    };
    let all = unused.iter().enumerate();
    all.filter(|(at, kept)| goes(*at, kept))
        .map(|(_, kept)| kept)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(all: &[&Kept]) -> Vec<String> {
        all.iter()
            .map(|kept| kept.place.display().to_string())
            .collect()
    }

    #[test]
    fn the_newest_stay_and_the_old_go() {
        let now = SystemTime::now();
        let hours = |n: u64| Duration::from_secs(n * 3600);
        let kept = |name: &str, age| Kept {
            place: name.into(),
            asked_for: now - age,
        };
        let few = [
            kept("a", hours(0)),
            kept("b", hours(2)),
            kept("c", hours(200)),
        ];
        assert_eq!(places(&surplus(&few, now, false)), ["c"]);
        assert_eq!(places(&surplus(&few, now, true)), ["b", "c"]);
        let many = |count, age| -> Vec<_> {
            let each = |n: usize| kept(&n.to_string(), age + Duration::from_secs(n as u64));
            (0..count).map(each).collect()
        };
        assert_eq!(
            places(&surplus(&many(10, hours(2)), now, false)),
            ["8", "9"]
        );
        assert_eq!(
            places(&surplus(&many(66, hours(0)), now, false)),
            ["64", "65"]
        );
        assert_eq!(places(&surplus(&many(10, hours(0)), now, true)), ["8", "9"]);
        assert_eq!(surplus(&many(10, hours(2)), now, true).len(), 10);
        // A clock that was set back makes nothing old.
        let ahead = [Kept {
            place: "later".into(),
            asked_for: now + hours(1),
        }];
        assert!(surplus(&ahead, now, true).is_empty());
    }

    #[test]
    fn what_was_asked_for_meanwhile_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let (uploads, tenant) = (dir.path().join("uploads"), dir.path().join("tenant"));
        fs::create_dir(&uploads).expect("made");
        for (name, age) in [("asked", 20), ("left", 10)] {
            let making = dir.path().join("making");
            fs::create_dir_all(making.join("app")).expect("made");
            fs::write(making.join("info.json"), "{}").expect("written");
            settle(&making, &tenant.join(name)).expect("settled");
            File::open(tenant.join(name).join("info.json"))
                .and_then(|info| info.set_modified(SystemTime::now() - Duration::from_secs(age)))
                .expect("older");
        }
        let all = Kept::all(&tenant);
        assert_eq!(
            places(&all.iter().collect::<Vec<_>>()),
            [
                tenant.join("left").display().to_string(),
                tenant.join("asked").display().to_string()
            ]
        );
        asked_for(&tenant.join("asked"));
        all.iter().for_each(|kept| kept.remove(&uploads));
        assert!(tenant.join("asked/app").exists());
        assert!(!tenant.join("left").exists());
        assert_eq!(entries(&uploads).len(), 0);
    }

    #[test]
    fn what_is_sold_and_not_written_does_not_count() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("aaaaaaaaaaaa.ext4"), vec![1; 64 << 10]).expect("written");
        fs::write(dir.path().join("other"), vec![1; 99 << 10]).expect("written");
        let sparse = File::create(dir.path().join("bbbbbbbbbbbb.ext4")).expect("made");
        sparse.set_len(1 << 30).expect("sized");
        // A build writes to two.
        let uploads = dir.path().join("uploads");
        fs::create_dir(&uploads).expect("made");
        fs::write(uploads.join("bbbbbbbbbbbb.ext4"), vec![1; 32 << 10]).expect("written");
        let mut all = written(&[dir.path().to_owned(), uploads]);
        all.sort();
        let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["aaaaaaaaaaaa", "bbbbbbbbbbbb"]);
        assert!(all[0].1 >= 64 << 10, "{all:?}");
        assert!((32 << 10..64 << 10).contains(&all[1].1), "{all:?}");
    }

    #[test]
    fn who_ends_is_of_the_tenant_that_has_written_the_most() {
        let of = |tenant: &str, id: &str, mib: u64| {
            let (tenant, id) = (TenantId::parse(tenant), SandboxId::parse(id));
            (tenant.expect("an id"), id.expect("an id"), mib << 20)
        };
        let chosen = |all: &[(&str, &str, u64)]| {
            let all = all.iter().map(|(tenant, id, mib)| of(tenant, id, *mib));
            super::chosen(all.collect(), HashMap::new()).map(|(id, _)| id.to_string())
        };
        let many = [
            ("keeps", "aaaaaaaaaaaa", 4000),
            ("floods", "bbbbbbbbbbbb", 2000),
            ("floods", "cccccccccccc", 3000),
        ];
        assert_eq!(chosen(&many).as_deref(), Some("cccccccccccc"));
        // In many small ones.
        let ids: Vec<_> = (0..9).map(|n| format!("small000000{n}")).collect();
        let mut all: Vec<_> = ids.iter().map(|id| ("floods", id.as_str(), 60)).collect();
        all.push(("keeps", "aaaaaaaaaaaa", 300));
        let one = chosen(&all);
        assert!(
            one.as_ref().is_some_and(|id| id.starts_with("small")),
            "{one:?}"
        );
        // Of many tenants, none of whom has written much.
        let many: Vec<_> = (0..10)
            .map(|n| {
                (
                    format!("tenant-{n}"),
                    format!("aaaaaaaaaaa{n}"),
                    200 + n % 7,
                )
            })
            .collect();
        let many: Vec<_> = many
            .iter()
            .map(|(tenant, id, mib)| (tenant.as_str(), id.as_str(), *mib))
            .collect();
        assert_eq!(chosen(&many).as_deref(), Some("aaaaaaaaaaa6"));
        // What is being unpacked counts for whom it is unpacked; who has nothing to end is not chosen.
        let two = || {
            let all = [
                ("keeps", "aaaaaaaaaaaa", 400),
                ("unpacks", "bbbbbbbbbbbb", 300),
            ];
            all.map(|(tenant, id, mib)| of(tenant, id, mib)).to_vec()
        };
        for (tenant, expected) in [
            ("keeps", "aaaaaaaaaaaa"),
            ("unpacks", "bbbbbbbbbbbb"),
            ("other", "aaaaaaaaaaaa"),
        ] {
            let tenant_id = TenantId::parse(tenant).expect("an id");
            let beside = HashMap::from([(tenant_id, 200 << 20)]);
            let one = super::chosen(two(), beside).map(|(id, _)| id.to_string());
            assert_eq!(one.as_deref(), Some(expected), "{tenant}");
        }
        // The disk is full of something else.
        assert_eq!(chosen(&all[..4]), None);
        assert_eq!(chosen(&[]), None);
    }
}
