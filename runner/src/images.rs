//! Checkpoints: a server's memory just after its start, so that the next sandbox of it begins there.
//!
//! An image holds whatever the server had in memory, so it is treated as a secret: on disk it is encrypted
//! (AES-256-GCM, in chunks) under a key of its own that exists only in this process, and in clear it exists only on a
//! tmpfs, for the moment of the restore. When the runner ends, all its images are worthless; the next life takes new ones.
//! An image is used only for the very server, spec, layer, secrets, runsc and processor that it was taken of.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sandbox::on_thread;

use crate::context::random_name;

/// Images that are kept; the one not used for longest goes.
const IMAGES_MAX: usize = 64;
/// Larger ones are not kept: reading them would take longer than a cold start.
const IMAGE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
const CHUNK: usize = 1024 * 1024;
const FILES: [&str; 3] = ["checkpoint.img", "pages.img", "pages_meta.img"];

/// All images of one runner. Cheap to clone.
#[derive(Clone)]
pub struct Images(Arc<Inner>);

struct Inner {
    /// Encrypted, on disk.
    disk: PathBuf,
    /// In clear, on a tmpfs.
    memory: PathBuf,
    known: Mutex<HashMap<String, State>>,
}

enum State {
    /// Somebody takes it now.
    Making,
    Ready(Arc<Image>),
    /// It could not be taken or used: not tried again in this life.
    Bad,
}

struct Image {
    dir: PathBuf,
    key: LessSafeKey,
    used: Mutex<u64>,
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A claim to take an image; without [`Claim::keep`] nobody tries again.
pub struct Claim {
    images: Images,
    name: String,
    /// Where the checkpoint is to be written.
    pub dir: PathBuf,
}

/// An image in clear, gone when dropped.
pub struct Open {
    /// Its folder.
    pub dir: PathBuf,
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Images {
    /// Begins with none; what an earlier life left cannot be opened any more and is removed.
    ///
    /// # Errors
    /// The tmpfs cannot be mounted.
    pub fn begin(disk: &Path, memory: &Path) -> Result<Self> {
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
        })))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if there is one.
    pub fn has(&self, name: &str) -> bool {
        matches!(self.known().get(name), Some(State::Ready(_)))
    }

    /// The right to take an image of this name, if nobody has it, had it, or failed at it.
    pub fn claim(&self, name: &str) -> Option<Claim> {
        let mut known = self.known();
        if known.contains_key(name) {
            return None;
        }
        let dir = self.0.memory.join(random_name());
        fs::create_dir(&dir).ok()?;
        known.insert(name.to_owned(), State::Making);
        Some(Claim {
            images: self.clone(),
            name: name.to_owned(),
            dir,
        })
    }

    /// It turned out to be no good.
    pub fn forget(&self, name: &str) {
        self.known().insert(name.to_owned(), State::Bad);
    }

    /// The image in clear, if there is one. About 50 ms for 44 MB.
    pub async fn open(&self, name: &str) -> Option<Open> {
        let image = match self.known().get(name) {
            Some(State::Ready(image)) => Arc::clone(image),
            _ => return None,
        };
        if let Ok(mut used) = image.used.lock() {
            *used = crate::events::now_ms();
        }
        let open = Open {
            dir: self.0.memory.join(random_name()),
        };
        let to = open.dir.clone();
        let done = on_thread("weir-image", move || {
            fs::create_dir(&to)?;
            FILES.iter().zip(0u8..).try_for_each(|(file, number)| {
                crypt(
                    &image,
                    number,
                    &image.dir.join(file),
                    &to.join(file),
                    Way::Open,
                )
            })
        })
        .await;
        match done {
            Ok(()) => Some(open),
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

    fn make_room(&self) {
        let mut known = self.known();
        while known.len() >= IMAGES_MAX {
            let used = |state: &State| match state {
                State::Ready(image) => image.used.lock().map_or(0, |used| *used),
                State::Bad => 0,
                State::Making => u64::MAX,
            };
            let Some(oldest) = known
                .iter()
                .min_by_key(|(_, state)| used(state))
                .map(|(name, _)| name.clone())
            else {
                return;
            };
            known.remove(&oldest);
        }
    }
}

impl Claim {
    /// Encrypts what was written into the folder and keeps it; gives its size.
    ///
    /// # Errors
    /// It is too large, or the disk's.
    pub async fn keep(self) -> Result<u64> {
        let (from, to) = (self.dir.clone(), self.images.0.disk.join(random_name()));
        let (image, bytes) = on_thread("weir-image", move || {
            let sizes = FILES.map(|file| fs::metadata(from.join(file)).map(|m| m.len()));
            let bytes = sizes
                .into_iter()
                .sum::<io::Result<u64>>()
                .context("a checkpoint is not whole")?;
            ensure!(
                bytes <= IMAGE_BYTES_MAX,
                "a checkpoint of {} MiB is too large to be of use",
                bytes >> 20
            );
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(|e| anyhow::anyhow!("no random numbers: {e}"))?;
            let unbound = UnboundKey::new(&AES_256_GCM, &key)
                .map_err(|_| anyhow::anyhow!("32 bytes are a key"))?;
            zeroize::Zeroize::zeroize(&mut key);
            fs::create_dir(&to)?;
            let image = Image {
                dir: to,
                key: LessSafeKey::new(unbound),
                used: Mutex::new(crate::events::now_ms()),
            };
            for (file, number) in FILES.iter().zip(0u8..) {
                crypt(
                    &image,
                    number,
                    &from.join(file),
                    &image.dir.join(file),
                    Way::Seal,
                )?;
            }
            Ok::<_, anyhow::Error>((image, bytes))
        })
        .await?;
        self.images.make_room();
        self.images
            .known()
            .insert(self.name.clone(), State::Ready(Arc::new(image)));
        Ok(bytes)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
        let mut known = self.images.known();
        if let Some(state @ State::Making) = known.get_mut(&self.name) {
            *state = State::Bad;
        }
    }
}

enum Way {
    Seal,
    Open,
}

/// One file, chunk by chunk. The key is of this image alone, so a counter is a nonce that never repeats; file, place and
/// whether it is the last chunk are bound, so nothing can be cut off, swapped or moved.
fn crypt(image: &Image, file: u8, from: &Path, to: &Path, way: Way) -> Result<()> {
    let mut source = File::open(from)?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let size = match way {
        Way::Seal => CHUNK,
        Way::Open => CHUNK + AES_256_GCM.tag_len(),
    };
    let mut number = 0u32;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK + AES_256_GCM.tag_len());
        (&mut source).take(size as u64).read_to_end(&mut chunk)?;
        let last = chunk.len() < size;
        let mut nonce = [0; 12];
        nonce[0] = file;
        nonce[1..5].copy_from_slice(&number.to_be_bytes());
        let (nonce, aad) = (
            Nonce::assume_unique_for_key(nonce),
            Aad::from([u8::from(last)]),
        );
        match way {
            Way::Seal => {
                image
                    .key
                    .seal_in_place_append_tag(nonce, aad, &mut chunk)
                    .map_err(|_| anyhow::anyhow!("a chunk cannot be sealed"))?;
                target.write_all(&chunk)?;
            }
            Way::Open => {
                let clear = image
                    .key
                    .open_in_place(nonce, aad, &mut chunk)
                    .map_err(|_| anyhow::anyhow!("a checkpoint on disk was changed"))?;
                target.write_all(clear)?;
            }
        }
        if last {
            return Ok(());
        }
        number = number
            .checked_add(1)
            .context("a checkpoint has too many chunks")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(dir: &Path) -> Image {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).expect("a key"));
        Image {
            dir: dir.join("image"),
            key,
            used: Mutex::new(0),
        }
    }

    #[test]
    fn what_is_sealed_opens_whole_or_not_at_all() {
        let dir = tempfile::tempdir().expect("a folder");
        let image = image(dir.path());
        let path = |name: &str| dir.path().join(name);
        for (round, len) in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK]
            .into_iter()
            .enumerate()
        {
            let clear: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            let names = ["clear", "sealed", "opened"].map(|n| path(&format!("{n}{round}")));
            fs::write(&names[0], &clear).expect("written");
            crypt(&image, 1, &names[0], &names[1], Way::Seal).expect("sealed");
            crypt(&image, 1, &names[1], &names[2], Way::Open).expect("opened");
            assert_eq!(fs::read(&names[2]).expect("read"), clear, "{len} bytes");
            let sealed = fs::read(&names[1]).expect("read");
            let mut wrong = vec![
                sealed[..sealed.len() - 1].to_vec(),
                [&sealed[..], &[0]].concat(),
            ];
            let mut flipped = sealed.clone();
            flipped[len / 2] ^= 1;
            wrong.push(flipped);
            if len > CHUNK {
                wrong.push(sealed[..CHUNK + 16].to_vec());
                wrong.push([&sealed[CHUNK + 16..], &sealed[..CHUNK + 16]].concat());
            }
            for (case, bytes) in wrong.iter().enumerate() {
                let (bad, out) = (
                    path(&format!("bad{round}-{case}")),
                    path(&format!("out{round}-{case}")),
                );
                fs::write(&bad, bytes).expect("written");
                assert!(
                    crypt(&image, 1, &bad, &out, Way::Open).is_err(),
                    "{len} bytes, case {case}"
                );
            }
            assert!(
                crypt(
                    &image,
                    2,
                    &names[1],
                    &path(&format!("other{round}")),
                    Way::Open
                )
                .is_err(),
                "another file"
            );
        }
    }
}
