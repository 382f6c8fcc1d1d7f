//! Images of idle sandboxes: each is of one sandbox, is restored once at most, and goes with it.
//!
//! Their number and their bytes on disk are bounded. When one more would not fit, the oldest image of whoever has the most
//! makes room, so that nobody can push others out; whose image it was hears of it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use domain::TenantId;
use nix::sys::statvfs::statvfs;
use sandbox::on_thread;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::sealed::{Clear, Sealed};
use crate::context::random_name;

const MIB: u64 = 1024 * 1024;
/// A larger image is not taken: it would keep memory and disk of the host busy for seconds.
const ONE_BYTES_MAX: u64 = 2 * 1024 * MIB;
/// What taking one leaves free of the host's memory and of its disk.
const SPARE_BYTES: u64 = 512 * MIB;

/// How much of them there may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Images.
    pub images: usize,
    /// Bytes on disk, all together.
    pub bytes: u64,
}

/// Why no image is taken now.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refusal {
    /// Another one is being taken; to be asked again.
    #[error("another checkpoint is being taken")]
    Busy,
    /// It would be beyond a bound.
    #[error("its checkpoint would have {mib} MiB, and there is room for {max_mib} MiB")]
    TooLarge {
        /// Its size, at the most.
        mib: u64,
        /// The bound.
        max_mib: u64,
    },
}

/// All of one runner. Cheap to clone.
#[derive(Clone)]
pub struct IdleImages(Arc<Inner>);

struct Inner {
    disk: PathBuf,
    memory: PathBuf,
    bounds: Bounds,
    /// One is taken at a time: it costs a core half a second, which is a neighbour's.
    one: Arc<Semaphore>,
    /// MiB of the tmpfs that those being taken or restored may have; the other half is for images of starts.
    share: Arc<Semaphore>,
    share_mib: u64,
    lying: Mutex<Lying>,
}

#[derive(Default)]
struct Lying {
    next: u64,
    /// By age.
    images: BTreeMap<u64, One>,
}

struct One {
    tenant: TenantId,
    bytes: u64,
    sealed: Sealed,
    /// Dropped with it, which tells its sandbox.
    _told: oneshot::Sender<()>,
}

/// The right to take one image.
pub struct Taking {
    images: IdleImages,
    tenant: TenantId,
    /// Where the checkpoint is to be written.
    pub clear: Clear,
    /// How large it may be.
    pub bytes: u64,
    _one: OwnedSemaphorePermit,
}

/// An image that lies on disk; gone when dropped.
pub struct Ticket {
    images: IdleImages,
    number: u64,
    mib: u64,
    gone: oneshot::Receiver<()>,
}

impl IdleImages {
    /// None yet, with folders that are there.
    pub(super) fn new(disk: &Path, memory: &Path, bounds: Bounds) -> Self {
        let size = statvfs(memory).map_or(0, |s| s.blocks() * s.fragment_size());
        let share_mib = (size / 2 / MIB).min(Semaphore::MAX_PERMITS as u64);
        Self(Arc::new(Inner {
            disk: disk.to_owned(),
            memory: memory.to_owned(),
            bounds,
            one: Arc::new(Semaphore::new(1)),
            share: Arc::new(Semaphore::new(usize::try_from(share_mib).unwrap_or(0))),
            share_mib,
            lying: Mutex::default(),
        }))
    }

    fn lying(&self) -> MutexGuard<'_, Lying> {
        self.0.lying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True while one is being taken: there is no need to ask for another.
    pub fn busy(&self) -> bool {
        self.0.one.available_permits() == 0
    }

    /// The right to take an image of a sandbox that holds so many bytes.
    ///
    /// # Errors
    /// Why not now, or not at all.
    pub fn begin(&self, tenant: &TenantId, bytes: u64) -> Result<Taking, Refusal> {
        let inner = &self.0;
        let max = ONE_BYTES_MAX
            .min(inner.bounds.bytes)
            .min(inner.share_mib * MIB)
            .min(room(&inner.disk));
        if bytes > max || inner.bounds.images == 0 {
            return Err(Refusal::TooLarge {
                mib: bytes.div_ceil(MIB),
                max_mib: max / MIB,
            });
        }
        let one = Arc::clone(&inner.one).try_acquire_owned();
        let share = Arc::clone(&inner.share).try_acquire_many_owned(mib(bytes));
        let (Ok(one), Ok(share)) = (one, share) else {
            return Err(Refusal::Busy);
        };
        let clear = inner.folder(share).map_err(|error| {
            tracing::error!(%error, "no folder for a checkpoint can be made");
            Refusal::Busy
        })?;
        Ok(Taking {
            images: self.clone(),
            tenant: tenant.clone(),
            clear,
            bytes,
            _one: one,
        })
    }

    /// How many there are, and their bytes.
    pub fn held(&self) -> (usize, u64) {
        let lying = self.lying();
        (
            lying.images.len(),
            lying.images.values().map(|one| one.bytes).sum(),
        )
    }

    /// Takes the oldest away until one more of this size fits.
    fn make_room(&self, tenant: &TenantId, bytes: u64) {
        let bounds = self.0.bounds;
        loop {
            let mut lying = self.lying();
            let held: u64 = lying.images.values().map(|one| one.bytes).sum();
            let too_many = lying.images.len() >= bounds.images;
            if !too_many && held.saturating_add(bytes) <= bounds.bytes {
                return;
            }
            let Some(number) = lying.to_go(tenant, bytes, too_many) else {
                return;
            };
            let gone = lying.images.remove(&number);
            drop(lying);
            // Its files are removed without the lock.
            drop(gone);
        }
    }
}

impl Inner {
    fn folder(&self, share: OwnedSemaphorePermit) -> std::io::Result<Clear> {
        let dir = self.memory.join(random_name());
        fs::create_dir(&dir)?;
        Ok(Clear {
            dir,
            _share: Some(share),
        })
    }
}

impl Lying {
    /// The oldest of the tenant who has the most, the newcomer's own counted: images if those are too many, else bytes.
    fn to_go(&self, newcomer: &TenantId, bytes: u64, too_many: bool) -> Option<u64> {
        let weight = |bytes: u64| if too_many { 1 } else { bytes };
        let mut held: HashMap<&TenantId, u64> = HashMap::new();
        for one in self.images.values() {
            *held.entry(&one.tenant).or_default() += weight(one.bytes);
        }
        if let Some(own) = held.get_mut(newcomer) {
            *own += weight(bytes);
        }
        // Among equals, whose oldest is the oldest of all: the first found stays.
        let mut worst: Option<(u64, u64)> = None;
        let mut seen = Vec::new();
        for (number, one) in &self.images {
            if seen.contains(&&one.tenant) {
                continue;
            }
            seen.push(&one.tenant);
            let held = held.get(&one.tenant).copied().unwrap_or(0);
            if worst.is_none_or(|(most, _)| held > most) {
                worst = Some((held, *number));
            }
        }
        worst.map(|(_, number)| number)
    }
}

impl Taking {
    /// Encrypts what was written into the folder and keeps it; gives its size.
    ///
    /// # Errors
    /// It is too large, or the disk's.
    pub async fn keep(self) -> Result<(Ticket, u64)> {
        let (from, images, tenant) = (
            self.clear.dir.clone(),
            self.images.clone(),
            self.tenant.clone(),
        );
        let sealed = on_thread("weir-image", move || {
            let bytes = Clear::bytes(&from)?;
            // More than the whole share would be waited for in vain when it is to be opened.
            let inner = &images.0;
            let share = inner.share_mib.saturating_mul(MIB);
            let max = ONE_BYTES_MAX.min(inner.bounds.bytes).min(share);
            ensure!(
                bytes <= max,
                "a checkpoint of {} MiB is too large",
                bytes / MIB
            );
            images.make_room(&tenant, bytes);
            let sealed = Sealed::of(&from, images.0.disk.join(random_name()))
                .context("write a checkpoint to the disk")?;
            Ok::<_, anyhow::Error>((sealed, bytes))
        })
        .await;
        let (sealed, bytes) = sealed?;
        let (told, gone) = oneshot::channel();
        let mut lying = self.images.lying();
        let number = lying.next;
        lying.next += 1;
        let one = One {
            tenant: self.tenant.clone(),
            bytes,
            sealed,
            _told: told,
        };
        lying.images.insert(number, one);
        drop(lying);
        let ticket = Ticket {
            images: self.images.clone(),
            number,
            mib: bytes.div_ceil(MIB),
            gone,
        };
        Ok((ticket, bytes))
    }
}

impl Ticket {
    /// Resolves when it had to make room.
    pub async fn made_room(&mut self) {
        // Nothing is ever sent: the end of the sender is the word.
        let _ = (&mut self.gone).await;
    }

    /// The image in clear; on disk nothing is left of it.
    ///
    /// # Errors
    /// It had to make room, or what lies there was changed.
    pub async fn open(self) -> Result<Clear> {
        let share = Arc::clone(&self.images.0.share)
            .acquire_many_owned(u32::try_from(self.mib).unwrap_or(u32::MAX))
            .await?;
        let taken = self.images.lying().images.remove(&self.number);
        let one = taken.context("the checkpoint had to make room for others")?;
        let clear = self.images.0.folder(share)?;
        on_thread("weir-image", move || {
            one.sealed.open(&clear.dir)?;
            Ok(clear)
        })
        .await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let gone = self.images.lying().images.remove(&self.number);
        drop(gone);
    }
}

fn mib(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX)
}

/// How large an image may be now, so that enough is left of the host's memory and of its disk.
pub(super) fn room(disk: &Path) -> u64 {
    let free = free_memory().min(free_disk(disk));
    free.saturating_sub(SPARE_BYTES)
}

/// What the kernel could give to programs now.
fn free_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().split(' ').next())
        .and_then(|number| number.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

fn free_disk(at: &Path) -> u64 {
    statvfs(at).map_or(0, |s| s.blocks_available() * s.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lab {
        _dir: tempfile::TempDir,
        images: IdleImages,
    }

    fn lab(images: usize, bytes: u64) -> Lab {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["disk", "memory"] {
            fs::create_dir(dir.path().join(name)).expect("made");
        }
        let images = IdleImages::new(
            &dir.path().join("disk"),
            &dir.path().join("memory"),
            Bounds { images, bytes },
        );
        Lab { _dir: dir, images }
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).expect("an id")
    }

    impl Lab {
        async fn take(&self, name: &str, bytes: usize) -> Result<Ticket> {
            let taking = self.images.begin(&tenant(name), bytes as u64)?;
            fs::write(taking.clear.dir.join("checkpoint.img"), vec![7; bytes])?;
            for name in ["pages.img", "pages_meta.img"] {
                fs::write(taking.clear.dir.join(name), "")?;
            }
            Ok(taking.keep().await?.0)
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.images.0.disk).expect("read").count()
        }
    }

    #[tokio::test]
    async fn the_oldest_of_who_has_the_most_makes_room() {
        let lab = lab(100, 1000);
        let mut small = lab.take("small", 100).await.expect("room");
        let mut first = lab.take("large", 300).await.expect("room");
        let mut second = lab.take("large", 300).await.expect("room");
        let third = lab.take("large", 350).await.expect("room is made");
        assert_eq!(lab.images.held(), (3, 750));
        first.made_room().await;
        assert!(first.open().await.is_err(), "it is gone");
        // The newcomer's own size counts against it, and never does it go itself.
        let fourth = lab.take("large", 900).await.expect("room is made");
        assert_eq!(lab.images.held(), (2, 1000));
        second.made_room().await;
        drop(third);
        assert_eq!(lab.files(), 2);
        // Nothing is left of one that is opened, or let go.
        let clear = fourth.open().await.expect("it lies there");
        assert_eq!(Clear::bytes(&clear.dir).expect("whole"), 900);
        assert_eq!((lab.files(), lab.images.held()), (1, (1, 100)));
        tokio::select! {
            biased;
            () = small.made_room() => panic!("it has not"),
            () = std::future::ready(()) => {}
        }
        drop(small);
        assert_eq!((lab.files(), lab.images.held()), (0, (0, 0)));
    }

    #[tokio::test]
    async fn their_number_is_bounded() {
        let lab = lab(3, u64::MAX);
        let mut tickets = Vec::new();
        for name in ["a", "b", "b", "c", "d"] {
            tickets.push(lab.take(name, 10).await.expect("room is made"));
            assert!(lab.images.held().0 <= 3);
        }
        // First one of b's, who had two; then, among equals, the oldest.
        let left: Vec<u64> = lab.images.lying().images.keys().copied().collect();
        assert_eq!(left, [2, 3, 4]);
        let none = super::tests::lab(0, u64::MAX);
        assert!(none.take("a", 1).await.is_err(), "none are wanted");
    }

    #[tokio::test]
    async fn what_is_too_large_is_refused_and_one_is_taken_at_a_time() {
        let lab = lab(9, 64 * MIB);
        let refused = lab.images.begin(&tenant("a"), 65 * MIB).err();
        assert_eq!(
            refused,
            Some(Refusal::TooLarge {
                mib: 65,
                max_mib: 64
            })
        );
        let taking = lab.images.begin(&tenant("a"), MIB).expect("room");
        let dir = taking.clear.dir.clone();
        let other = lab.images.begin(&tenant("b"), MIB).err();
        assert_eq!(other, Some(Refusal::Busy));
        // Half made: nothing is kept.
        fs::write(dir.join("pages.img"), "x").expect("written");
        assert!(taking.keep().await.is_err());
        assert!(!dir.exists() && lab.files() == 0);
        lab.images.begin(&tenant("b"), MIB).expect("it is over");
    }
}
