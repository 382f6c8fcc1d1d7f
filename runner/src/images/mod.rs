//! Checkpoints: a server's memory just after its start, so that the next sandbox of it begins there; and that of a sandbox
//! that nobody uses at the moment, so that it can go on there ([`idle`]).
//!
//! An image holds whatever the server had in memory, so it is treated as a secret: on disk it is encrypted
//! (AES-256-GCM, in chunks) under a key of its own that exists only in this process, and in clear it exists only on a
//! tmpfs, for the moment of the restore. When the runner ends, all its images are worthless; the next life takes new ones.
//! An image is used only for the very server, spec, layer, secrets, runsc and processor that it was taken of.

pub mod idle;
mod sealed;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use domain::TenantId;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use sandbox::on_thread;

use self::idle::IdleImages;
pub use self::sealed::Clear;
use self::sealed::Sealed;
use crate::context::random_name;

/// Images that are kept.
const IMAGES_MAX: usize = 64;
/// Larger ones are not kept: reading them would take longer than a cold start.
const IMAGE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// All images of one runner. Cheap to clone.
#[derive(Clone)]
pub struct Images(Arc<Inner>);

struct Inner {
    /// Encrypted, on disk.
    disk: PathBuf,
    /// In clear, on a tmpfs.
    memory: PathBuf,
    known: Mutex<HashMap<String, State>>,
    idle: IdleImages,
}

enum State {
    /// Somebody takes it now.
    Making,
    Ready(Arc<Image>),
    /// It could not be taken or used: not tried again in this life.
    Bad,
}

struct Image {
    tenant: TenantId,
    sealed: Sealed,
    used: Mutex<u64>,
}

/// A claim to take an image; without [`Claim::keep`] nobody tries again.
pub struct Claim {
    images: Images,
    name: String,
    tenant: TenantId,
    /// Where the checkpoint is to be written.
    pub clear: Clear,
}

impl Images {
    /// Begins with none; what an earlier life left cannot be opened any more and is removed.
    ///
    /// # Errors
    /// The tmpfs cannot be mounted.
    pub fn begin(disk: &Path, memory: &Path, bounds: idle::Bounds) -> Result<Self> {
        for entry in fs::read_dir(disk)?.flatten() {
            let _ = fs::remove_dir_all(entry.path());
        }
        let _ = umount2(memory, MntFlags::MNT_DETACH);
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(
            Some("weir-images"),
            memory,
            Some("tmpfs"),
            flags,
            Some("mode=0700,size=50%,noswap"),
        )
        .or_else(|_| {
            mount(
                Some("weir-images"),
                memory,
                Some("tmpfs"),
                flags,
                Some("mode=0700,size=50%"),
            )
        })
        .context("mount a tmpfs for images")?;
        Ok(Self(Arc::new(Inner {
            disk: disk.to_owned(),
            memory: memory.to_owned(),
            known: Mutex::default(),
            idle: IdleImages::new(disk, memory, bounds),
        })))
    }

    /// Those of idle sandboxes.
    pub fn idle(&self) -> &IdleImages {
        &self.0.idle
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if there is one.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.known().get(name), Some(State::Ready(_)))
    }

    /// Whether an image of this size can be taken.
    ///
    /// # Errors
    /// It would be too large, or leave too little of the host's memory or disk.
    pub fn fits(&self, bytes: u64) -> Result<()> {
        let max = idle::room(&self.0.disk).min(IMAGE_BYTES_MAX);
        ensure!(
            bytes <= max,
            "a checkpoint of {} MiB is too large, there is room for {} MiB",
            bytes >> 20,
            max >> 20
        );
        Ok(())
    }

    /// The right to take an image of this name, if nobody has it, had it, or failed at it.
    pub fn claim(&self, name: &str, tenant: &TenantId) -> Option<Claim> {
        if self.known().contains_key(name) {
            return None;
        }
        self.make_room(tenant);
        let mut known = self.known();
        if known.contains_key(name) {
            return None;
        }
        let clear = self.folder().ok()?;
        known.insert(name.to_owned(), State::Making);
        Some(Claim {
            images: self.clone(),
            name: name.to_owned(),
            tenant: tenant.clone(),
            clear,
        })
    }

    /// It turned out to be no good.
    pub fn forget(&self, name: &str) {
        self.known().insert(name.to_owned(), State::Bad);
    }

    /// Lets go of all whose names begin so, and of what is known of them; one that is being taken is not kept.
    pub fn drop_all(&self, prefix: &str) {
        self.known().retain(|name, _| !name.starts_with(prefix));
    }

    /// A folder on the tmpfs.
    fn folder(&self) -> std::io::Result<Clear> {
        let dir = self.0.memory.join(random_name());
        fs::create_dir(&dir)?;
        Ok(Clear { dir, _share: None })
    }

    /// The image in clear, if there is one.
    pub async fn open(&self, name: &str) -> Option<Clear> {
        let image = match self.known().get(name) {
            Some(State::Ready(image)) => Arc::clone(image),
            _ => return None,
        };
        if let Ok(mut used) = image.used.lock() {
            *used = crate::events::now_ms();
        }
        let clear = self.folder();
        let done = on_thread("weir-image", move || {
            let clear = clear.context("make a folder for a checkpoint")?;
            image.sealed.open(&clear.dir)?;
            Ok::<_, anyhow::Error>(clear)
        })
        .await;
        match done {
            Ok(clear) => Some(clear),
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "a checkpoint cannot be read");
                self.forget(name);
                None
            }
        }
    }

    /// Takes the tmpfs away.
    pub fn end(&self) {
        let _ = umount2(&self.0.memory, MntFlags::MNT_DETACH);
    }

    /// Lets images go until there is a place for one more: those that are no good first, then the one not used for longest
    /// of whoever has the most, so that nobody can push others out.
    fn make_room(&self, newcomer: &TenantId) {
        let mut known = self.known();
        while known.len() >= IMAGES_MAX {
            let Some(name) = to_go(&known, newcomer) else {
                return;
            };
            known.remove(&name);
        }
    }
}

fn to_go(known: &HashMap<String, State>, newcomer: &TenantId) -> Option<String> {
    let bad = |(_, state): &(&String, &State)| matches!(state, State::Bad);
    if let Some((name, _)) = known.iter().find(bad) {
        return Some(name.clone());
    }
    let ready = known.iter().filter_map(|(name, state)| match state {
        State::Ready(image) => Some((name, image)),
        State::Making | State::Bad => None,
    });
    let mut held: HashMap<&TenantId, usize> = HashMap::from([(newcomer, 1)]);
    for (_, image) in ready.clone() {
        *held.entry(&image.tenant).or_default() += 1;
    }
    let used = |image: &Image| image.used.lock().map_or(0, |used| *used);
    let most = |(_, image): &(&String, &Arc<Image>)| (held[&image.tenant], Reverse(used(image)));
    ready.max_by_key(most).map(|(name, _)| name.clone())
}

impl Claim {
    /// Encrypts what was written into the folder and keeps it; gives its size.
    ///
    /// # Errors
    /// It is too large, or nobody may use it any more, or the disk's.
    pub async fn keep(self) -> Result<u64> {
        let from = self.clear.dir.clone();
        let to = self.images.0.disk.join(random_name());
        let (sealed, bytes) = on_thread("weir-image", move || {
            let bytes = Clear::bytes(&from)?;
            ensure!(
                bytes <= IMAGE_BYTES_MAX,
                "a checkpoint of {} MiB is too large to be of use",
                bytes >> 20
            );
            Ok((Sealed::of(&from, to)?, bytes))
        })
        .await?;
        let image = Image {
            tenant: self.tenant.clone(),
            sealed,
            used: Mutex::new(crate::events::now_ms()),
        };
        let mut known = self.images.known();
        let state = known.get_mut(&self.name);
        *state.context("its server is another meanwhile")? = State::Ready(Arc::new(image));
        Ok(bytes)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut known = self.images.known();
        if let Some(state @ State::Making) = known.get_mut(&self.name) {
            *state = State::Bad;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tenant_with_many_images_pushes_out_its_own() {
        let dir = tempfile::tempdir().expect("a folder");
        let [disk, memory] = ["disk", "memory"].map(|name| dir.path().join(name));
        for path in [&disk, &memory] {
            fs::create_dir(path).expect("made");
        }
        let bounds = idle::Bounds {
            images: 0,
            bytes: 0,
        };
        let images = Images(Arc::new(Inner {
            idle: IdleImages::new(&disk, &memory, bounds),
            disk: disk.clone(),
            memory,
            known: Mutex::default(),
        }));
        let take = async |name: String, tenant: &str| {
            let tenant = TenantId::parse(tenant).expect("an id");
            let claim = images.claim(&name, &tenant).expect("nobody has it");
            for file in ["checkpoint.img", "pages.img", "pages_meta.img"] {
                fs::write(claim.clear.dir.join(file), "x").expect("written");
            }
            claim.keep().await.expect("kept");
        };
        take("few".into(), "few").await;
        for number in 0..2 * IMAGES_MAX {
            take(format!("many{number}"), "many").await;
        }
        assert!(images.has("few") && images.has(&format!("many{}", 2 * IMAGES_MAX - 1)));
        assert_eq!(images.known().len(), IMAGES_MAX);
        assert_eq!(fs::read_dir(&disk).expect("read").count(), IMAGES_MAX);
        // What is no good goes first, and is not kept without end either.
        let many = TenantId::parse("many").expect("an id");
        for number in 0..2 * IMAGES_MAX {
            drop(images.claim(&format!("bad{number}"), &many));
        }
        assert!(images.has("few") && images.known().len() <= IMAGES_MAX);
        // Those of a server whose owner wants new ones go at once, and one that is just being taken does not stay.
        images.drop_all("many");
        images.drop_all("bad");
        assert!(images.has("few"));
        assert_eq!(fs::read_dir(&disk).expect("read").count(), 1);
        let claim = images.claim("many-late", &many).expect("nobody has it");
        for file in ["checkpoint.img", "pages.img", "pages_meta.img"] {
            fs::write(claim.clear.dir.join(file), "x").expect("written");
        }
        images.drop_all("many");
        assert!(claim.keep().await.is_err() && !images.has("many-late"));
        assert_eq!(fs::read_dir(&disk).expect("read").count(), 1);
    }
}
