//! One image: in clear on a tmpfs, or encrypted on disk under a key of its own that only this process has.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, anyhow};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use tokio::sync::OwnedSemaphorePermit;
use zeroize::Zeroizing;

const CHUNK: usize = 1024 * 1024;
/// Threads that read or write one file, each with at least [`CHUNKS_EACH`].
const WORKERS: u32 = 2;
const CHUNKS_EACH: u32 = 4;
const FILES: [&str; 3] = ["checkpoint.img", "pages.img", "pages_meta.img"];

/// An image in clear, or the folder for one; gone when dropped.
pub struct Clear {
    /// Its folder.
    pub dir: PathBuf,
    /// Its share of the tmpfs, if it has to ask for one.
    pub(super) _share: Option<OwnedSemaphorePermit>,
}

impl Drop for Clear {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Clear {
    /// How large the image in a folder is.
    pub(super) fn bytes(dir: &Path) -> Result<u64> {
        let mut bytes = 0;
        for file in FILES {
            let meta = fs::metadata(dir.join(file)).context("a checkpoint is not whole")?;
            bytes += meta.len();
        }
        Ok(bytes)
    }
}

/// An image on disk, encrypted; gone when dropped.
pub(super) struct Sealed {
    dir: PathBuf,
    key: LessSafeKey,
}

impl Drop for Sealed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Sealed {
    /// Encrypts the image in a folder into a new one, under a new key.
    pub(super) fn of(from: &Path, to: PathBuf) -> Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|e| anyhow!("no random numbers: {e}"))?;
        let unbound =
            UnboundKey::new(&AES_256_GCM, &key).map_err(|_| anyhow!("32 bytes are a key"))?;
        zeroize::Zeroize::zeroize(&mut key);
        fs::create_dir(&to)?;
        let sealed = Self {
            dir: to,
            key: LessSafeKey::new(unbound),
        };
        for (file, number) in FILES.iter().zip(0u8..) {
            let (from, to) = (from.join(file), sealed.dir.join(file));
            crypt(&sealed.key, number, &from, &to, Way::Seal)?;
        }
        Ok(sealed)
    }

    /// Decrypts it into a folder.
    pub(super) fn open(&self, to: &Path) -> Result<()> {
        FILES.iter().zip(0u8..).try_for_each(|(file, number)| {
            let (from, to) = (self.dir.join(file), to.join(file));
            crypt(&self.key, number, &from, &to, Way::Open)
                .with_context(|| format!("read {file} of a checkpoint"))
        })
    }
}

enum Way {
    Seal,
    Open,
}

impl Way {
    /// A chunk as it is read, but for the last, which is shorter and may be empty.
    fn chunk(&self) -> usize {
        match self {
            Self::Seal => CHUNK,
            Self::Open => CHUNK + AES_256_GCM.tag_len(),
        }
    }
}

/// One file, chunk by chunk, by as many threads as [`WORKERS`]: somebody waits for a restore. The key is of this image
/// alone, so a counter is a nonce that never repeats; file, place and whether it is the last chunk are bound, so nothing
/// can be cut off, swapped or moved.
fn crypt(key: &LessSafeKey, file: u8, from: &Path, to: &Path, way: Way) -> Result<()> {
    let source = File::open(from)?;
    let target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let len = source.metadata()?.len();
    let last = u32::try_from(len / way.chunk() as u64).context("a checkpoint is too large")?;
    let part = Part {
        key,
        file,
        source: &source,
        len,
        target: &target,
        way,
        last,
        next: AtomicU32::new(0),
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..WORKERS.min(last / CHUNKS_EACH + 1))
            .map(|_| scope.spawn(|| part.work()))
            .collect();
        let own = part.work();
        helpers.into_iter().fold(own, |all, helper| {
            all.and(
                helper
                    .join()
                    .unwrap_or_else(|_| Err(anyhow!("a helper thread ended"))),
            )
        })
    })
}

/// The work on one file.
struct Part<'a> {
    key: &'a LessSafeKey,
    file: u8,
    source: &'a File,
    /// Of the source, in bytes.
    len: u64,
    target: &'a File,
    way: Way,
    last: u32,
    next: AtomicU32,
}

impl Part<'_> {
    /// Chunk by chunk, until none is left or one is wrong.
    fn work(&self) -> Result<()> {
        // One for all of them: the pages of a new one each time cost as much as the cipher.
        let mut chunk = Zeroizing::new(Vec::with_capacity(CHUNK + AES_256_GCM.tag_len()));
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number > self.last {
                return Ok(());
            }
            if let Err(error) = self.one(number, &mut chunk) {
                // The others need not go on.
                self.next.store(self.last + 1, Ordering::Relaxed);
                return Err(error);
            }
        }
    }

    fn one(&self, number: u32, chunk: &mut Vec<u8>) -> Result<()> {
        let size = self.way.chunk();
        let from = u64::from(number) * size as u64;
        let last = number == self.last;
        let left = self.len.saturating_sub(from);
        chunk.clear();
        chunk.resize(usize::try_from(left).map_or(size, |left| left.min(size)), 0);
        self.source.read_exact_at(chunk, from)?;
        let mut nonce = [0; 12];
        nonce[0] = self.file;
        nonce[1..5].copy_from_slice(&number.to_be_bytes());
        let (nonce, aad) = (
            Nonce::assume_unique_for_key(nonce),
            Aad::from([u8::from(last)]),
        );
        let tag = AES_256_GCM.tag_len() as u64;
        match self.way {
            Way::Seal => {
                self.key
                    .seal_in_place_append_tag(nonce, aad, chunk)
                    .map_err(|_| anyhow!("a chunk cannot be sealed"))?;
                self.target
                    .write_all_at(chunk, from + u64::from(number) * tag)?;
            }
            Way::Open => {
                let clear = self
                    .key
                    .open_in_place(nonce, aad, chunk)
                    .map_err(|_| anyhow!("a checkpoint on disk was changed"))?;
                self.target
                    .write_all_at(clear, from - u64::from(number) * tag)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_whole_or_not_at_all() {
        let dir = tempfile::tempdir().expect("a folder");
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).expect("a key"));
        let path = |name: &str| dir.path().join(name);
        for (round, len) in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 9 * CHUNK + 5]
            .into_iter()
            .enumerate()
        {
            let clear: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            let names = ["clear", "sealed", "opened"].map(|n| path(&format!("{n}{round}")));
            fs::write(&names[0], &clear).expect("written");
            crypt(&key, 1, &names[0], &names[1], Way::Seal).expect("sealed");
            crypt(&key, 1, &names[1], &names[2], Way::Open).expect("opened");
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
                    crypt(&key, 1, &bad, &out, Way::Open).is_err(),
                    "{len} bytes, case {case}"
                );
            }
            assert!(
                crypt(
                    &key,
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

    #[test]
    fn a_file_that_was_changed_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        for name in ["taken", "opened"] {
            fs::create_dir(path(name)).expect("made");
        }
        for name in FILES {
            fs::write(path("taken").join(name), name.repeat(99)).expect("written");
        }
        let bytes = Clear::bytes(&path("taken")).expect("whole");
        let sealed = Sealed::of(&path("taken"), path("sealed")).expect("sealed");
        let pages = path("sealed").join(FILES[1]);
        let whole = fs::read(&pages).expect("read");
        assert!(whole.len() as u64 <= bytes + 3 * 16);
        fs::write(&pages, [&[whole[0] ^ 1], &whole[1..]].concat()).expect("written");
        let error = sealed.open(&path("opened")).expect_err("it was changed");
        let words = format!("{error:#}");
        assert!(
            words.contains(FILES[1]) && words.contains("changed"),
            "{words}"
        );
        drop(sealed);
        assert!(!path("sealed").exists(), "nothing is left of it");
    }
}
