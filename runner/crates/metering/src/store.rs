//! The meter's one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::meter::Meter;

/// The longest file: a hundred thousand windows and ten thousand readings of some hundred bytes.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Why the meter cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file system.
    #[error("{} cannot be {what}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The participle.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Not what was written.
    #[error("{} is damaged; restore it from a backup, or move it away to begin without the usage in it", .0.display())]
    Damaged(PathBuf),
}

/// Where a [`Meter`] is kept.
#[derive(Debug)]
pub struct MeterStore {
    path: PathBuf,
}

impl MeterStore {
    /// Loads what is there, or begins with nothing.
    ///
    /// # Errors
    /// A damaged file is said and not replaced.
    pub fn open(path: &Path) -> Result<(Self, Meter), StoreError> {
        let store = Self {
            path: path.to_owned(),
        };
        let meter = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Meter::default(),
            Err(error) => return Err(store.failed("read")(error)),
            Ok(found) if found.len() > FILE_BYTES_MAX => {
                return Err(StoreError::Damaged(path.to_owned()));
            }
            Ok(_) => {
                let bytes = fs::read(path).map_err(store.failed("read"))?;
                let meter = decode(&bytes).ok_or_else(|| StoreError::Damaged(path.to_owned()))?;
                meter.is_saved();
                meter
            }
        };
        Ok((store, meter))
    }

    /// Replaces the file. After an error the old one or the new one is there; the next call writes everything again.
    ///
    /// # Errors
    /// The system's.
    pub fn save(&self, meter: &Meter) -> Result<(), StoreError> {
        let unfinished = self.path.with_extension("new");
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(&encode(meter))?;
            file.sync_all()?;
            fs::rename(&unfinished, &self.path)?;
            self.path
                .parent()
                .map_or(Ok(()), |dir| File::open(dir)?.sync_all())
        };
        write().map_err(self.failed("written"))?;
        meter.is_saved();
        Ok(())
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        let path = self.path.clone();
        move |source| StoreError::Io { path, what, source }
    }
}

fn encode(meter: &Meter) -> Vec<u8> {
    let json = serde_json::to_vec(meter).expect("plain structs of text and numbers are JSON");
    let mut bytes = format!("weir-meter 1 {:08x}\n", crc32fast::hash(&json)).into_bytes();
    bytes.extend(json);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Meter> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let crc = std::str::from_utf8(&bytes[..end])
        .ok()?
        .strip_prefix("weir-meter 1 ")?;
    let json = &bytes[end + 1..];
    let whole = format!("{:08x}", crc32fast::hash(json)) == crc;
    whole.then(|| serde_json::from_slice(json).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::{Now, tests::reading};

    #[test]
    fn a_changed_file_is_damage() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("usage");
        let (store, mut meter) = MeterStore::open(&path).expect("a new one");
        meter.observe(
            Now {
                unix_ms: 5,
                boot_ms: 5,
            },
            &[reading("s", 7)],
        );
        store.save(&meter).expect("saved");
        assert_eq!(MeterStore::open(&path).expect("opens").1, meter);
        let bytes = fs::read(&path).expect("read");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(decode(&changed), None, "{at}");
            assert_eq!(decode(&bytes[..at]), None, "{at}");
        }
    }
}
