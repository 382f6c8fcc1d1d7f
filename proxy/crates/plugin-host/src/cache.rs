//! Compiled code on disk, under our own seal.
//!
//! Compiled code runs as it is: whoever can put a file here and have it believed runs code in Weir.
//! So every file begins with a keyed hash over what follows and over the component it was made of;
//! one that does not fit is as good as absent.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

const SEAL_BYTES: usize = 32;
/// Largest compiled plugin read.
pub(crate) const CODE_BYTES_MAX: usize = 128 << 20;
/// Files kept; above it the oldest go.
const FILES_MAX: usize = 256;

/// A folder of compiled plugins.
#[derive(Clone)]
pub struct Cache {
    folder: PathBuf,
    key: [u8; 32],
}

/// Without the key.
impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Cache {
    /// A cache in this folder, which is made when first written. The key must be secret and stay the
    /// same over restarts, or nothing is found again.
    pub fn new(folder: PathBuf, key: [u8; 32]) -> Self {
        Self { folder, key }
    }

    /// The file for a component, compiled by an engine of this kind.
    pub fn path(&self, component: &[u8], engine: u64) -> PathBuf {
        let hash = Sha256::digest(component);
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{hex}-{engine:016x}.code"))
    }

    /// The code, if it is there and its seal is ours.
    pub(crate) fn get(&self, component: &[u8], engine: u64) -> Option<Vec<u8>> {
        let path = self.path(component, engine);
        let size = std::fs::metadata(&path).ok()?.len();
        if size > (CODE_BYTES_MAX + SEAL_BYTES) as u64 {
            return None;
        }
        let mut file = std::fs::read(&path).ok()?;
        if file.len() < SEAL_BYTES {
            return None;
        }
        let code = file.split_off(SEAL_BYTES);
        // The comparison of `blake3::Hash` takes the same time wherever the first difference is.
        if self.seal(&path, &code) != <[u8; SEAL_BYTES]>::try_from(&*file).ok()? {
            tracing::warn!(file = %path.display(), "a compiled plugin without our seal is not used");
            return None;
        }
        Some(code)
    }

    /// Keeps code. Failing to is no fault: it will be compiled again.
    pub(crate) fn put(&self, component: &[u8], engine: u64, code: &[u8]) {
        let path = self.path(component, engine);
        if let Err(error) = self.write(&path, code) {
            tracing::warn!(%error, "a compiled plugin could not be kept");
        }
        self.tidy();
    }

    fn write(&self, path: &Path, code: &[u8]) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut file = std::fs::File::create(&unfinished)?;
        file.write_all(self.seal(path, code).as_bytes())?;
        file.write_all(code)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    }

    /// Over the file's name too: a sealed file put in another's place does not fit.
    fn seal(&self, path: &Path, code: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(code);
        hasher.finalize()
    }

    fn tidy(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        let mut files: Vec<_> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
            })
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(FILES_MAX);
        for (_, path) in files.into_iter().take(surplus) {
            // One that is gone already is as good as removed.
            let _ = std::fs::remove_file(path);
        }
    }
}
